//! The node validator, where the spec asks for it: a unit and scripts for the nodes of a Slurm cluster,
//! a DaemonSet with its intent for those of a Kubernetes cluster.
//!
//! Nothing here reports an image or a path that nobody stated: without `health-check` or `validator` in
//! the spec there is no file.

mod daemon_set;
mod node_problem_detector;
mod rbac;
mod readiness;
mod scripts;

use fleetc_schema::ItemPath;
use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{Class, Intent, Readiness};
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect};

use crate::{OutputFile, OutputTree, Scope, Target, clusters, node_files};

/// The node validator.
pub struct NodeValidator;

/// The condition of a node that says whether it conforms, as the program names it.
const CONDITION: &str = "fleetc.dev/GPUConforms";

/// The name of its objects.
const NAME: &str = "fleetc-validate";

impl Target for NodeValidator {
    fn id(&self) -> &'static str {
        "validator"
    }

    fn summary(&self) -> &'static str {
        "how nodes judge themselves: a unit and scripts for Slurm, a DaemonSet for Kubernetes"
    }

    fn versions(&self) -> String {
        "fleetc-validate of the same release, node-problem-detector 0.8 to 1.35".to_owned()
    }

    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>> {
        let scopes = clusters(intent).filter_map(|scope| scope.cluster());
        scopes.map(|cluster| crate::scheduled(intent, cluster)).filter(asks).collect()
    }

    fn check(&self, _: &Scope<'_>, _: &mut Vec<Diagnostic>) {}

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let mut tree = OutputTree::default();
        match scope {
            Scope::Slurm(intent, cluster, slurm) => {
                let Some(check) = &slurm.health_check else { return tree };
                let item = ItemPath::item("cluster", &cluster.name).child("slurm");
                let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
                for (name, text) in scripts::all(&head, check) {
                    let file = OutputFile::one([item.child("health-check")], text);
                    tree.add(format!("clusters/{}/validator/{name}", cluster.name), file);
                }
            }
            Scope::Kubernetes(intent, cluster, kubernetes) => {
                let Some(validator) = &kubernetes.validator else { return tree };
                let item = ItemPath::item("cluster", &cluster.name).child("kubernetes");
                let item = item.child("validator");
                let Some(namespace) = node_files::namespace(kubernetes) else { return tree };
                let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
                let classes: Vec<&Class> = intent.classes_of(&cluster.name).collect();
                let files = node_files::files(intent, &classes);
                let held = node_files::config_maps(&files);
                rbac::emit(&mut tree, &cluster.name, namespace, &head, &item);
                let with_gpus = classes.iter().filter(|class| !class.node.gpus.is_empty());
                let mut pools: Vec<&str> =
                    with_gpus.map(|class| class.node.pool.as_str()).collect();
                pools.dedup();
                let pods = daemon_set::Pods {
                    pools,
                    prefix: &intent.fleet.label_prefix,
                    namespace,
                    validator,
                    // The operator's toolkit makes the class; elsewhere the runtime is the default.
                    runtime_class: kubernetes.gpu_operator.is_some().then_some("nvidia"),
                };
                daemon_set::emit(&mut tree, &cluster.name, &pods, &held, &head, &item);
                if let Some(mode) = validator.readiness {
                    let item = item.child("readiness");
                    readiness::emit(&mut tree, &cluster.name, &pods, mode, &head, &item);
                }
                let path =
                    format!("clusters/{}/validator/{}", cluster.name, node_problem_detector::FILE);
                let text = node_problem_detector::config(validator.interval);
                tree.add(path, OutputFile::one([item], text));
            }
            Scope::Fleet(_) | Scope::Cluster(..) => {}
        }
        tree
    }

    fn disruption(
        &self,
        change: &Change,
        old: Option<&Scope<'_>>,
        new: Option<&Scope<'_>>,
    ) -> Effect {
        let here = |name: &str| [old, new].into_iter().flatten().any(|scope| scope.name() == name);
        let restarts =
            || Effect::daemon(Disruption::RestartDaemon, "fleetc-validate restarts, node by node");
        let in_kubernetes = matches!(new, Some(Scope::Kubernetes(..)));
        match &change.kind {
            ChangeKind::Validator(cluster)
                if here(cluster.as_str()) && readiness_of(old) != readiness_of(new) =>
            {
                Effect::daemon(
                    Disruption::RestartDaemon,
                    "nodes are tainted by another rule: delete NodeReadinessRules that are there",
                )
            }
            ChangeKind::Validator(cluster) | ChangeKind::GpuOperator(cluster)
                if here(cluster.as_str()) =>
            {
                restarts()
            }
            // Its pods name their pools, and each file of the intent that they mount. What is in the
            // files the kubelet swaps.
            ChangeKind::LabelPrefix
            | ChangeKind::Pool(..)
            | ChangeKind::System(_)
            | ChangeKind::Missing(_)
            | ChangeKind::Overrides(_)
                if in_kubernetes =>
            {
                restarts()
            }
            ChangeKind::Validator(_)
            | ChangeKind::GpuOperator(_)
            | ChangeKind::FleetName
            | ChangeKind::LabelPrefix
            | ChangeKind::Driver(_)
            | ChangeKind::PoolDriver(_)
            | ChangeKind::Pool(..)
            | ChangeKind::System(_)
            | ChangeKind::Nodes(_)
            | ChangeKind::SharingMode(_)
            | ChangeKind::MigStrategy(_)
            | ChangeKind::MigLayout(_)
            | ChangeKind::Replicas(_)
            | ChangeKind::SharingName(_)
            | ChangeKind::Devices(_)
            | ChangeKind::Missing(_)
            | ChangeKind::Overrides(_)
            | ChangeKind::Policy
            | ChangeKind::Topology
            // A script is read at each run.
            | ChangeKind::SlurmSettings(_)
            | ChangeKind::AsOf
            | ChangeKind::Cluster(..)
            | ChangeKind::SchedulerVersion(_)
            | ChangeKind::Controllers(_)
            | ChangeKind::Database(_)
            | ChangeKind::AutoDetect(_)
            | ChangeKind::Partition(..)
            | ChangeKind::PartitionPools(..)
            | ChangeKind::PartitionSettings(..)
            | ChangeKind::Distribution(_)
            | ChangeKind::Queue(_)
            | ChangeKind::DraDriver(_)
            | ChangeKind::GitOps(_)
            | ChangeKind::Taints(_)
            | ChangeKind::PoolSettings(_)
            | ChangeKind::Tier
            | ChangeKind::TeamSettings(_)
            | ChangeKind::Alerting
            | ChangeKind::ExceptionReason(_)
            | ChangeKind::MaxUnavailable(_)
            | ChangeKind::Team(..)
            | ChangeKind::Namespace(_)
            | ChangeKind::Quota(..)
            | ChangeKind::Workload
            | ChangeKind::Exporter => Effect::none(),
        }
    }
}

/// When nodes are tainted.
fn readiness_of(scope: Option<&Scope<'_>>) -> Option<Readiness> {
    match scope? {
        Scope::Kubernetes(_, _, kubernetes) => kubernetes.validator.as_ref()?.readiness,
        Scope::Slurm(..) | Scope::Fleet(_) | Scope::Cluster(..) => None,
    }
}

/// True if the spec asks for it here.
fn asks(scope: &Scope<'_>) -> bool {
    match scope {
        Scope::Slurm(_, _, slurm) => slurm.health_check.is_some(),
        Scope::Kubernetes(_, _, kubernetes) => kubernetes.validator.is_some(),
        Scope::Fleet(_) | Scope::Cluster(..) => false,
    }
}
