//! Dynamic Resource Allocation: a DeviceClass for what a pool hands out, a ResourceClaimTemplate a
//! workload, and a ComputeDomain where a workload spans the nodes of an NVLink domain.
//!
//! Source: kubernetes/api `resource/v1` (1.34 to 1.37); kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1,
//! `cmd/gpu-kubelet-plugin` and `api/nvidia.com/resource/v1beta1`.

mod check;
mod compute_domain;
mod device_class;
mod resource_claim_template;

use std::collections::BTreeSet;

use fleetc_schema::diag::Diagnostic;
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect};

use crate::{OutputTree, Scope, Target, kubernetes_clusters};

/// Devices of Dynamic Resource Allocation.
pub struct Dra;

impl Target for Dra {
    fn id(&self) -> &'static str {
        "dra"
    }

    fn summary(&self) -> &'static str {
        "device classes, claims and NVLink domains of DRA"
    }

    fn versions(&self) -> String {
        "resource.k8s.io/v1 (Kubernetes 1.34 and later), NVIDIA's DRA driver 0.4 and 0.5".to_owned()
    }

    fn scopes<'a>(&self, intent: &'a fleetc_schema::intent::Intent) -> Vec<Scope<'a>> {
        kubernetes_clusters(intent)
    }

    fn check(&self, scope: &Scope<'_>, found: &mut Vec<Diagnostic>) {
        let Scope::Kubernetes(intent, cluster, kubernetes) = scope else { return };
        check::shared_gpus(intent, cluster, found);
        check::two_domains_in_clique(intent, cluster, kubernetes, found);
    }

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let mut tree = OutputTree::default();
        let Scope::Kubernetes(intent, cluster, kubernetes) = scope else { return tree };
        device_class::emit(intent, cluster, &mut tree);
        resource_claim_template::emit(intent, cluster, &mut tree);
        compute_domain::emit(intent, cluster, kubernetes, &mut tree);
        tree
    }

    fn disruption(
        &self,
        change: &Change,
        old: Option<&Scope<'_>>,
        new: Option<&Scope<'_>>,
    ) -> Effect {
        match &change.kind {
            ChangeKind::Devices(pool) => {
                let parts = [old, new].into_iter().flatten();
                let mut nodes =
                    parts.filter_map(|s| s.intent().pools.get(pool)?.parts.get(s.name()));
                let nodes = nodes.next().cloned().unwrap_or_default();
                Effect::on(
                    Disruption::Drain,
                    nodes,
                    "pods hold devices that another driver gives out",
                )
            }
            // Class, count and template of a workload hang on these; a template cannot be changed.
            ChangeKind::Workload
            | ChangeKind::DraDriver(_)
            | ChangeKind::Topology
            | ChangeKind::LabelPrefix
            | ChangeKind::MigLayout(_)
            | ChangeKind::SharingMode(_)
            | ChangeKind::System(_)
            | ChangeKind::Missing(_)
            | ChangeKind::Pool(..) => {
                let paths = |scope: Option<&Scope<'_>>| -> BTreeSet<String> {
                    let tree = scope.map(|scope| self.emit(scope)).unwrap_or_default();
                    tree.files().into_iter().map(|(path, _)| path.to_string()).collect()
                };
                let (before, after) = (paths(old), paths(new));
                if old.is_none() || new.is_none() || before.is_subset(&after) {
                    return Effect::none();
                }
                let what = "device classes or claim templates go or get new names";
                Effect { recreate: true, what: what.to_owned(), ..Effect::none() }
            }
            // Nothing of these stands in the files of this target.
            ChangeKind::Queue(_)
            | ChangeKind::Quota(..)
            | ChangeKind::FleetName
            | ChangeKind::AsOf
            | ChangeKind::Cluster(..)
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
            | ChangeKind::SlurmSettings(_)
            | ChangeKind::GitOps(_)
            | ChangeKind::Validator(_)
            | ChangeKind::Nodes(_)
            | ChangeKind::MigStrategy(_)
            | ChangeKind::Replicas(_)
            | ChangeKind::SharingName(_)
            | ChangeKind::PoolDriver(_)
            | ChangeKind::PoolSettings(_)
            | ChangeKind::Taints(_)
            | ChangeKind::Overrides(_)
            | ChangeKind::ExceptionReason(_)
            | ChangeKind::MaxUnavailable(_)
            | ChangeKind::Policy
            | ChangeKind::Tier
            | ChangeKind::Team(..)
            | ChangeKind::Namespace(_)
            | ChangeKind::TeamSettings(_)
            | ChangeKind::Exporter
            | ChangeKind::Alerting => Effect::none(),
        }
    }
}
