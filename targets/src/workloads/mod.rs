//! Templates of workloads: what a Job or service must say to run as the fleet says it does.
//!
//! A template is for the owner of the workload to copy; nothing applies it. Image and command are
//! placeholders that the API server takes and no node can pull.
//!
//! Source: kubernetes/api `batch/v1`, `apps/v1`, `core/v1`; kubernetes-sigs/lws v0.10.0; kueue v0.19.2,
//! "Run Jobs", "Run Deployments", "Run LeaderWorkerSets".

mod owner;
mod pod;

use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::Intent;
use fleetc_schema::plan::{Change, ChangeKind, Effect};

use crate::pods;
use crate::{OutputTree, Scope, Target, kubernetes_clusters};

/// Templates of workloads.
pub struct Workloads;

impl Target for Workloads {
    fn id(&self) -> &'static str {
        "workloads"
    }

    fn summary(&self) -> &'static str {
        "a template for each Kubernetes workload"
    }

    fn versions(&self) -> String {
        "batch/v1, apps/v1 and leaderworkerset.x-k8s.io/v1".to_owned()
    }

    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>> {
        kubernetes_clusters(intent)
    }

    fn check(&self, _: &Scope<'_>, _: &mut Vec<Diagnostic>) {}

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let mut tree = OutputTree::default();
        let Scope::Kubernetes(intent, cluster, kubernetes) = scope else { return tree };
        for pods in pods::of_cluster(intent, &cluster.name) {
            owner::emit(intent, cluster, kubernetes, &pods, &mut tree);
        }
        tree
    }

    /// Nothing applies a template, so nothing is disturbed by one.
    fn disruption(&self, change: &Change, _: Option<&Scope<'_>>, _: Option<&Scope<'_>>) -> Effect {
        match &change.kind {
            ChangeKind::FleetName
            | ChangeKind::AsOf
            | ChangeKind::LabelPrefix
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
            | ChangeKind::Queue(_)
            | ChangeKind::SlurmSettings(_)
            | ChangeKind::DraDriver(_)
            | ChangeKind::GitOps(_)
            | ChangeKind::Validator(_)
            | ChangeKind::Topology
            | ChangeKind::Pool(..)
            | ChangeKind::System(_)
            | ChangeKind::Nodes(_)
            | ChangeKind::SharingMode(_)
            | ChangeKind::MigStrategy(_)
            | ChangeKind::MigLayout(_)
            | ChangeKind::Replicas(_)
            | ChangeKind::SharingName(_)
            | ChangeKind::Devices(_)
            | ChangeKind::PoolDriver(_)
            | ChangeKind::PoolSettings(_)
            | ChangeKind::Taints(_)
            | ChangeKind::Missing(_)
            | ChangeKind::Overrides(_)
            | ChangeKind::ExceptionReason(_)
            | ChangeKind::MaxUnavailable(_)
            | ChangeKind::Policy
            | ChangeKind::Tier
            | ChangeKind::Team(..)
            | ChangeKind::Namespace(_)
            | ChangeKind::TeamSettings(_)
            | ChangeKind::Quota(..)
            | ChangeKind::Workload
            | ChangeKind::Exporter
            | ChangeKind::Alerting => Effect::none(),
        }
    }
}
