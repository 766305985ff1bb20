//! Prometheus: alert rules of a cluster with their unit tests, and what the exporter must export.
//!
//! Slurm clusters get a rule file, Kubernetes clusters objects of prometheus-operator. Expectations are
//! series by class (`fleetc:class_gpus_expected{class}`); targets carry the labels `node` and `class`,
//! so nothing here grows with nodes. Rules take the names of metrics from the same table as the CSV
//! that the exporter reads: a name that is not exported cannot be written.

mod alerts;
mod metrics;
mod prometheus_rule;
mod rules;
mod scrape;
mod site;
mod unit_tests;

use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{Intent, Scheduler, StandardAlert};
use fleetc_schema::name::TeamName;
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect};

pub use site::Absent;

use crate::write::{header, yaml};
use crate::{OutputFile, OutputTree, Scope, Target, clusters};
use rules::RuleFile;
use site::Site;

/// Alert rules.
pub struct Alerts;

/// Why no cluster of the fleet has this alert; none if one has it, or nothing is monitored.
pub fn absent(intent: &Intent, alert: StandardAlert) -> Option<Absent> {
    let mut worst = None;
    for site in intent.clusters.values().filter_map(|cluster| Site::of(intent, cluster)) {
        match alerts::definition(&site, alert) {
            Ok(_) => return None,
            Err(absent) => worst = worst.max(Some(absent)),
        }
    }
    worst
}

/// What stands above the table of XIDs.
const XIDS: &str =
    "What each XID is about; NVIDIA's codes and first steps, our classes and severities.";
/// Where objects go if no GPU Operator says.
const NAMESPACE: &str = "monitoring";

impl Target for Alerts {
    fn id(&self) -> &'static str {
        "prometheus"
    }

    fn summary(&self) -> &'static str {
        "alert rules of each cluster with their promtool unit tests, and the exporter's metrics"
    }

    fn versions(&self) -> String {
        "Prometheus 2.42 and later, prometheus-operator 0.93, dcgm-exporter 4.0 to 4.9".to_owned()
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
        let Some(site) = Site::of(intent, cluster) else { return tree };
        let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
        let folder = format!("clusters/{}/monitoring", cluster.name);
        let groups = rules::groups(&site);
        let xids = rules::xid_group(&site);
        let xid_group = xids.name.clone();
        let mut names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
        let mut add = |path: String, lines: &[&str], text: String| {
            let text = header(&[&[head.as_str()], lines].concat()) + &text;
            tree.add(path, OutputFile::one(site.items(), text));
        };
        let needs = "Targets of the job dcgm-exporter carry the labels node and class.";
        let run = match &cluster.scheduler {
            Scheduler::Slurm(_) => {
                let text = yaml::document(&RuleFile { groups });
                add(format!("{folder}/rules.yaml"), &[needs], text);
                let text = yaml::document(&RuleFile { groups: vec![xids] });
                add(format!("{folder}/xids.yaml"), &[XIDS], text);
                add(format!("{folder}/scrape.yaml"), scrape::HEAD, scrape::slurm(&site));
                "promtool test rules rules.test.yaml xids.test.yaml"
            }
            Scheduler::Kubernetes(kubernetes) => {
                let operator = kubernetes.gpu_operator.as_ref();
                let namespace = operator.map_or(NAMESPACE, |operator| operator.namespace.as_str());
                let stage = format!("clusters/{}/kubernetes/80-monitoring", cluster.name);
                for group in groups.into_iter().chain([xids]) {
                    let path = format!("{stage}/prometheusrule-{}.yaml", group.name);
                    let object = prometheus_rule::object(group, namespace);
                    add(path, &[needs], yaml::document(&object));
                }
                if let Some(operator) = operator {
                    let name = scrape::NAME;
                    let object = scrape::service_monitor(&site, operator.namespace.as_str());
                    let path = format!("{stage}/servicemonitor-{name}.yaml");
                    add(path, &[], yaml::document(&object));
                    let csv = site.exported().csv("");
                    let object = scrape::metrics_config(csv, operator.namespace.as_str());
                    let stage = format!("clusters/{}/kubernetes/40-operator", cluster.name);
                    let path = format!("{stage}/configmap-{name}.yaml");
                    let note = "The GPU Operator reads it: dcgmExporter.config.name.";
                    add(path, &[note], yaml::document(&object));
                }
                "rules.yaml is the .spec of the PrometheusRule objects, joined; that of XIDs is xids.yaml"
            }
        };
        let tests = unit_tests::file(&site, names.clone());
        add(format!("{folder}/rules.test.yaml"), &[run], yaml::document(&tests));
        names.insert(0, xid_group);
        let tests = unit_tests::xid_file(&site, names);
        add(format!("{folder}/xids.test.yaml"), &[run], yaml::document(&tests));
        let what = "what dcgm-exporter exports: field, type, help";
        add(format!("{folder}/dcgm-exporter.csv"), &[what], site.exported().csv(""));
        tree
    }

    fn disruption(
        &self,
        change: &Change,
        old: Option<&Scope<'_>>,
        new: Option<&Scope<'_>>,
    ) -> Effect {
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
            | ChangeKind::Nodes(_)
            | ChangeKind::Driver(_)
            | ChangeKind::PoolDriver(_)
            | ChangeKind::Policy
            | ChangeKind::LabelPrefix
            | ChangeKind::GpuOperator(_)
            | ChangeKind::Alerting => {
                Effect::daemon(Disruption::Reload, "Prometheus reads its rules")
            }
            ChangeKind::Team(..) | ChangeKind::Namespace(_) | ChangeKind::Quota(..)
                if owners(old) != owners(new) =>
            {
                Effect::daemon(Disruption::Reload, "alerts are of other teams")
            }
            ChangeKind::Team(..)
            | ChangeKind::Namespace(_)
            | ChangeKind::Quota(..)
            | ChangeKind::FleetName
            | ChangeKind::AsOf
            | ChangeKind::SchedulerVersion(_)
            | ChangeKind::Controllers(_)
            | ChangeKind::Database(_)
            | ChangeKind::AutoDetect(_)
            | ChangeKind::Partition(..)
            | ChangeKind::PartitionPools(..)
            | ChangeKind::PartitionSettings(..)
            | ChangeKind::Distribution(_)
            | ChangeKind::Queue(_)
            | ChangeKind::Topology
            | ChangeKind::SlurmSettings(_)
            | ChangeKind::DraDriver(_)
            | ChangeKind::GitOps(_)
            | ChangeKind::Validator(_)
            | ChangeKind::SharingName(_)
            | ChangeKind::Devices(_)
            | ChangeKind::Taints(_)
            | ChangeKind::PoolSettings(_)
            | ChangeKind::Tier
            | ChangeKind::TeamSettings(_)
            | ChangeKind::MigStrategy(_)
            | ChangeKind::Replicas(_)
            | ChangeKind::ExceptionReason(_)
            | ChangeKind::Overrides(_)
            | ChangeKind::MaxUnavailable(_)
            | ChangeKind::Workload => Effect::none(),
        }
    }
}

/// The team of each class and namespace, as the rules have it.
fn owners<'a>(scope: Option<&Scope<'a>>) -> Vec<(&'a str, Option<&'a TeamName>)> {
    let Some((intent, cluster)) = scope.and_then(|scope| Some((scope.intent(), scope.cluster()?)))
    else {
        return Vec::new();
    };
    let Some(site) = Site::of(intent, cluster) else { return Vec::new() };
    let classes = site.classes.iter().map(|class| (class.node.name.as_str(), site.team(class)));
    let teams = intent.teams.iter().map(|(name, team)| (team.namespace.as_str(), Some(name)));
    classes.chain(teams.filter(|_| site.is_kubernetes())).collect()
}
