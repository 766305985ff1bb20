//! Prometheus: rule files of a cluster, with their unit tests.
//!
//! Expectations are series by class (`fleetc:class_gpus_expected{class}`); targets carry the labels
//! `node` and `class`. A node all of whose GPUs are gone still has its exporter, so "none seen" is
//! counted as 0 wherever the exporter is up: a comparison with an absent series never fires.

mod rules;
mod unit_tests;

use fleetc_schema::ItemPath;
use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{Class, Intent};
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect};

use crate::write::{header, yaml};
use crate::{OutputFile, OutputTree, Scope, Target, clusters};

/// Alert rules.
pub struct Alerts;

impl Target for Alerts {
    fn id(&self) -> &'static str {
        "prometheus"
    }

    fn summary(&self) -> &'static str {
        "alert rules of each cluster, with their promtool unit tests"
    }

    fn versions(&self) -> String {
        "Prometheus 2.42 and later, dcgm-exporter 4.8".to_owned()
    }

    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>> {
        match intent.monitoring {
            Some(_) => clusters(intent).collect(),
            None => Vec::new(),
        }
    }

    fn check(&self, _: &Scope<'_>, _: &mut Vec<Diagnostic>) {}

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let mut tree = OutputTree::default();
        let Some(cluster) = scope.cluster() else { return tree };
        let intent = scope.intent();
        let classes: Vec<&Class> =
            intent.classes_of(&cluster.name).filter(|class| !class.node.gpus.is_empty()).collect();
        if classes.is_empty() {
            return tree;
        }
        let folder = format!("clusters/{}/monitoring", cluster.name);
        let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
        let labels =
            "Targets carry the labels node and class; the exporter's job is dcgm-exporter.";
        let items: Vec<ItemPath> =
            classes.iter().map(|class| ItemPath::item("pool", &class.node.pool)).collect();
        let text = header(&[&head, labels]) + &yaml::document(&rules::file(cluster, &classes));
        tree.add(format!("{folder}/rules.yaml"), OutputFile::one(items.clone(), text));
        let text = header(&[&head, "promtool test rules rules.test.yaml"])
            + &yaml::document(&unit_tests::file(cluster, &classes));
        tree.add(format!("{folder}/rules.test.yaml"), OutputFile::one(items, text));
        tree
    }

    fn disruption(&self, change: &Change, _: Option<&Scope<'_>>, _: Option<&Scope<'_>>) -> Effect {
        match &change.kind {
            ChangeKind::Exporter => {
                Effect::daemon(Disruption::RestartDaemon, "the exporter changes its version")
            }
            ChangeKind::Cluster(..)
            | ChangeKind::Pool(..)
            | ChangeKind::System(_)
            | ChangeKind::SharingMode(_)
            | ChangeKind::MigLayout(_)
            | ChangeKind::Missing(_)
            | ChangeKind::Alerting => {
                Effect::daemon(Disruption::Reload, "Prometheus reads its rules")
            }
            ChangeKind::FleetName
            | ChangeKind::AsOf
            | ChangeKind::LabelPrefix
            | ChangeKind::SchedulerVersion(_)
            | ChangeKind::Controllers(_)
            | ChangeKind::Database(_)
            | ChangeKind::AutoDetect(_)
            | ChangeKind::Driver(_)
            | ChangeKind::Partition(..)
            | ChangeKind::PartitionPools(..)
            | ChangeKind::PartitionSettings(..)
            | ChangeKind::Distribution(_)
            | ChangeKind::GpuOperator(_)
            | ChangeKind::Queue(_)
            | ChangeKind::Topology
            | ChangeKind::SlurmSettings(_)
            | ChangeKind::DraDriver(_)
            | ChangeKind::GitOps(_)
            | ChangeKind::SharingName(_)
            | ChangeKind::Devices(_)
            | ChangeKind::Taints(_)
            | ChangeKind::PoolDriver(_)
            | ChangeKind::PoolSettings(_)
            | ChangeKind::Tier
            | ChangeKind::TeamSettings(_)
            | ChangeKind::Nodes(_)
            | ChangeKind::MigStrategy(_)
            | ChangeKind::Replicas(_)
            | ChangeKind::ExceptionReason(_)
            | ChangeKind::Overrides(_)
            | ChangeKind::MaxUnavailable(_)
            | ChangeKind::Policy
            | ChangeKind::Team(..)
            | ChangeKind::Namespace(_)
            | ChangeKind::Quota(..)
            | ChangeKind::Workload => Effect::none(),
        }
    }
}
