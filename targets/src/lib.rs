//! The back ends: from the Intent to an output tree.
//!
//! One folder a back end, one module an output file. A back end knows the Intent and the writers in
//! [`write`], and nothing else: no spec, no disk, no other back end.
//!
//! Invariant: bytes are a function of the Intent alone.

pub mod write;

mod alertmanager;
mod changed;
mod device_plugin;
mod dra;
mod gitops;
mod gpu_operator;
mod intent;
mod kubernetes;
mod kueue;
mod manifest;
mod mig;
mod node_files;
mod on_node;
mod pods;
mod prometheus;
mod slurm;
mod tree;
mod unwritten;
mod validator;
mod workloads;

pub use gitops::{BUNDLES, bundles};
pub use prometheus::{Absent, absent as absent_alert};
pub use tree::{Block, OutputFile, OutputTree};
pub use unwritten::unwritten;

use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{Cluster, Intent, Kubernetes, Scheduler, Slurm};
use fleetc_schema::plan::{Change, Effect};

/// A back end.
pub trait Target: Sync {
    /// Its name on the command line and in reports.
    fn id(&self) -> &'static str;

    /// What it writes, in one line.
    fn summary(&self) -> &'static str;

    /// The versions of its consumer that it writes for.
    fn versions(&self) -> String;

    /// The parts of the fleet that it writes for.
    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>>;

    /// Refuses what its consumer would refuse. Rules that hold for any consumer are the compiler's.
    fn check(&self, scope: &Scope<'_>, found: &mut Vec<Diagnostic>);

    /// Writes. Cannot fail: what cannot be written was refused by `check`.
    fn emit(&self, scope: &Scope<'_>) -> OutputTree;

    /// What a change disturbs here. Both scopes are given where they exist.
    fn disruption(
        &self,
        change: &Change,
        old: Option<&Scope<'_>>,
        new: Option<&Scope<'_>>,
    ) -> Effect;
}

/// A part of the fleet that a target writes for.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// All of it.
    Fleet(&'a Intent),
    /// A cluster, whatever its scheduler.
    Cluster(&'a Intent, &'a Cluster),
    /// A Slurm cluster.
    Slurm(&'a Intent, &'a Cluster, &'a Slurm),
    /// A Kubernetes cluster.
    Kubernetes(&'a Intent, &'a Cluster, &'a Kubernetes),
}

impl<'a> Scope<'a> {
    /// The fleet.
    pub fn intent(&self) -> &'a Intent {
        match *self {
            Self::Fleet(intent)
            | Self::Cluster(intent, _)
            | Self::Slurm(intent, ..)
            | Self::Kubernetes(intent, ..) => intent,
        }
    }

    /// The cluster, unless the scope is the fleet.
    pub fn cluster(&self) -> Option<&'a Cluster> {
        match *self {
            Self::Fleet(_) => None,
            Self::Cluster(_, cluster)
            | Self::Slurm(_, cluster, _)
            | Self::Kubernetes(_, cluster, _) => Some(cluster),
        }
    }

    /// The name that tells scopes of one target apart: the cluster's, or empty for the fleet.
    pub fn name(&self) -> &'a str {
        self.cluster().map_or("", |cluster| cluster.name.as_str())
    }
}

/// Every back end, in the order of their output.
pub static TARGETS: &[&dyn Target] = &[
    &intent::IntentFiles,
    &slurm::SlurmConf,
    &kubernetes::Objects,
    &gpu_operator::GpuOperatorValues,
    &device_plugin::DevicePlugin,
    &dra::Dra,
    &kueue::Kueue,
    &workloads::Workloads,
    &mig::MigParted,
    &prometheus::Alerts,
    &alertmanager::Routing,
    &validator::NodeValidator,
];

/// Every cluster of the fleet.
fn clusters(intent: &Intent) -> impl Iterator<Item = Scope<'_>> {
    intent.clusters.values().map(move |cluster| Scope::Cluster(intent, cluster))
}

/// Every Slurm cluster of the fleet.
fn slurm_clusters(intent: &Intent) -> Vec<Scope<'_>> {
    let scope = |cluster| match scheduled(intent, cluster) {
        scope @ Scope::Slurm(..) => Some(scope),
        _ => None,
    };
    intent.clusters.values().filter_map(scope).collect()
}

/// Every Kubernetes cluster of the fleet.
fn kubernetes_clusters(intent: &Intent) -> Vec<Scope<'_>> {
    let scope = |cluster| match scheduled(intent, cluster) {
        scope @ Scope::Kubernetes(..) => Some(scope),
        _ => None,
    };
    intent.clusters.values().filter_map(scope).collect()
}

/// The scope of a cluster by its scheduler.
fn scheduled<'a>(intent: &'a Intent, cluster: &'a Cluster) -> Scope<'a> {
    match &cluster.scheduler {
        Scheduler::Slurm(slurm) => Scope::Slurm(intent, cluster, slurm),
        Scheduler::Kubernetes(kubernetes) => Scope::Kubernetes(intent, cluster, kubernetes),
    }
}
