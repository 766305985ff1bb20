//! The NVIDIA GPU Operator and the DRA driver beside it: values of their Helm charts, and the
//! configuration of the operator's MIG manager.
//!
//! Values, and no ClusterPolicy: a ClusterPolicy needs the image of every operand, which the chart
//! knows for its version. Source: NVIDIA/gpu-operator v26.7.0 `deployments/gpu-operator/values.yaml`.

mod mig_manager;
mod values;

use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{Distribution, Intent};
use fleetc_schema::name::PoolName;
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect};

use crate::pods;
use crate::{OutputTree, Scope, Target, kubernetes_clusters};

/// Values of the GPU Operator and of the DRA driver.
pub struct GpuOperatorValues;

impl Target for GpuOperatorValues {
    fn id(&self) -> &'static str {
        "gpu-operator"
    }

    fn summary(&self) -> &'static str {
        "chart values of GPU Operator and DRA driver, configuration of the MIG manager"
    }

    fn versions(&self) -> String {
        "GPU Operator 25.10 to 26.7, DRA driver 0.4 to 0.5".to_owned()
    }

    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>> {
        kubernetes_clusters(intent)
    }

    fn check(&self, _: &Scope<'_>, _: &mut Vec<Diagnostic>) {}

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let mut tree = OutputTree::default();
        let Scope::Kubernetes(intent, cluster, kubernetes) = scope else { return tree };
        if let Some(operator) = &kubernetes.gpu_operator {
            mig_manager::emit(&mut tree, intent, cluster, operator);
            // OpenShift installs the operator through OLM, which reads no values.
            if kubernetes.distribution != Distribution::Openshift {
                values::gpu_operator(&mut tree, intent, cluster, kubernetes, operator);
            }
        }
        if let Some(version) = &kubernetes.dra_driver {
            values::dra_driver(&mut tree, intent, cluster, kubernetes, version);
        }
        tree
    }

    fn disruption(
        &self,
        change: &Change,
        old: Option<&Scope<'_>>,
        new: Option<&Scope<'_>>,
    ) -> Effect {
        let scopes = || [old, new].into_iter().flatten();
        let here = |name: &str| scopes().any(|scope| scope.name() == name);
        let has = |pool: &PoolName| {
            scopes().any(|scope| {
                let pool = scope.intent().pools.get(pool);
                pool.is_some_and(|p| p.parts.keys().any(|cluster| cluster.as_str() == scope.name()))
            })
        };
        match &change.kind {
            ChangeKind::GpuOperator(cluster) if here(cluster.as_str()) => Effect::daemon(
                Disruption::RestartDaemon,
                "helm upgrade rolls the operands of the GPU Operator",
            ),
            ChangeKind::Validator(cluster)
                if here(cluster.as_str()) && tolerates_unproven(old) != tolerates_unproven(new) =>
            {
                Effect::daemon(
                    Disruption::RestartDaemon,
                    "helm upgrade tells the operands what they tolerate: before a rule taints",
                )
            }
            ChangeKind::DraDriver(cluster) if here(cluster.as_str()) => Effect::daemon(
                Disruption::RestartDaemon,
                "helm upgrade rolls the kubelet plugin of the DRA driver",
            ),
            ChangeKind::LabelPrefix if scopes().any(chooses_by_label) => Effect::daemon(
                Disruption::RestartDaemon,
                "the DRA driver's plugin is placed by a label that changes: helm upgrade first",
            ),
            ChangeKind::Devices(pool) if has(pool) => Effect::daemon(
                Disruption::RestartDaemon,
                "the kubelet plugin of the DRA driver comes or goes with the pool's nodes",
            ),
            ChangeKind::Taints(pool) if has(pool) => Effect::daemon(
                Disruption::RestartDaemon,
                "helm upgrade tells the operands what they tolerate",
            ),
            // Rated by the target `mig` with the nodes: this says what must be done there.
            ChangeKind::MigLayout(pool) | ChangeKind::SharingMode(pool) if has(pool) => {
                Effect::daemon(
                    Disruption::RestartDaemon,
                    "the MIG manager of a drained node must restart to read its new entry",
                )
            }
            // Nothing of these stands in the files of this target, or they are about another cluster.
            ChangeKind::GpuOperator(_)
            | ChangeKind::DraDriver(_)
            | ChangeKind::Devices(_)
            | ChangeKind::MigLayout(_)
            | ChangeKind::SharingMode(_)
            | ChangeKind::Cluster(..)
            | ChangeKind::Driver(_)
            | ChangeKind::Quota(..)
            | ChangeKind::FleetName
            | ChangeKind::AsOf
            | ChangeKind::LabelPrefix
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
            | ChangeKind::GitOps(_)
            | ChangeKind::Validator(_)
            | ChangeKind::Pool(..)
            | ChangeKind::System(_)
            | ChangeKind::Nodes(_)
            | ChangeKind::SharingName(_)
            | ChangeKind::Taints(_)
            | ChangeKind::PoolDriver(_)
            | ChangeKind::PoolSettings(_)
            | ChangeKind::Tier
            | ChangeKind::Team(..)
            | ChangeKind::Namespace(_)
            | ChangeKind::TeamSettings(_)
            | ChangeKind::Alerting
            | ChangeKind::MigStrategy(_)
            | ChangeKind::Replicas(_)
            | ChangeKind::Missing(_)
            | ChangeKind::Overrides(_)
            | ChangeKind::ExceptionReason(_)
            | ChangeKind::MaxUnavailable(_)
            | ChangeKind::Policy
            | ChangeKind::Workload
            | ChangeKind::Exporter => Effect::none(),
        }
    }
}

/// True if daemons tolerate the taint of nodes that are not proven.
fn tolerates_unproven(scope: Option<&Scope<'_>>) -> bool {
    match scope {
        Some(Scope::Kubernetes(_, _, kubernetes)) => pods::has_unproven_nodes(kubernetes),
        Some(Scope::Fleet(_) | Scope::Cluster(..) | Scope::Slurm(..)) | None => false,
    }
}

/// True if the kubelet plugin of a DRA driver runs where a label of ours says so.
fn chooses_by_label(scope: &Scope<'_>) -> bool {
    match scope {
        Scope::Kubernetes(_, _, kubernetes) => kubernetes.dra_driver.is_some(),
        Scope::Fleet(_) | Scope::Cluster(..) | Scope::Slurm(..) => false,
    }
}
