//! Kubernetes: one ResourceQuota a team.
//!
//! Source: Kubernetes documentation, "Resource Quotas": a quota on an extended resource has the
//! prefix `requests.`; without it nothing is counted.

mod resource_quota;

use fleetc_schema::Hostlist;
use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{DriverOwner, Intent};
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect, Presence};
use fleetc_schema::version::KubernetesRelease;

use crate::changed::Sides;
use crate::{OutputTree, Scope, Target, kubernetes_clusters};

/// Kubernetes quotas.
pub struct Quotas;

impl Target for Quotas {
    fn id(&self) -> &'static str {
        "kubernetes"
    }

    fn summary(&self) -> &'static str {
        "one ResourceQuota a team"
    }

    fn versions(&self) -> String {
        let all = KubernetesRelease::ALL;
        match (all.first(), all.last()) {
            (Some(first), Some(last)) => format!("Kubernetes {first} to {last}"),
            _ => String::new(),
        }
    }

    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>> {
        kubernetes_clusters(intent)
    }

    fn check(&self, _: &Scope<'_>, _: &mut Vec<Diagnostic>) {}

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        match scope {
            Scope::Kubernetes(intent, cluster, _) => resource_quota::emit(intent, cluster),
            Scope::Fleet(_) | Scope::Cluster(..) | Scope::Slurm(..) => OutputTree::default(),
        }
    }

    fn disruption(
        &self,
        change: &Change,
        old: Option<&Scope<'_>>,
        new: Option<&Scope<'_>>,
    ) -> Effect {
        let sides = Sides { old, new };
        let here = |name: &str| [old, new].into_iter().flatten().any(|scope| scope.name() == name);
        match &change.kind {
            ChangeKind::Cluster(cluster, Presence::Removed) if here(cluster.as_str()) => {
                Effect::on(Disruption::Drain, sides.every_old_node(), "the cluster ends")
            }
            ChangeKind::Driver(cluster) if here(cluster.as_str()) => {
                driver(sides.new, sides.every_old_node())
            }
            ChangeKind::PoolDriver(pool) => {
                driver(sides.new, sides.differing(pool, |class| class.driver.clone()))
            }
            ChangeKind::Nodes(pool) | ChangeKind::Pool(pool, _) => {
                Effect::on(Disruption::Drain, sides.leaving(pool), "nodes leave Kubernetes")
            }
            ChangeKind::System(pool) => Effect::on(
                Disruption::Drain,
                sides.differing(pool, |class| class.system.clone()),
                "the hardware is replaced",
            ),
            ChangeKind::Quota(_, _, cluster) if here(cluster.as_str()) => {
                Effect::daemon(Disruption::Reload, "the ResourceQuota holds for new pods at once")
            }
            ChangeKind::Team(..) | ChangeKind::Namespace(_) => {
                Effect::daemon(Disruption::Reload, "ResourceQuotas come or go")
            }
            ChangeKind::LabelPrefix => Effect::daemon(Disruption::Reload, "nodes get other labels"),
            // Nothing of these stands in the files of this target, or they are about another cluster.
            ChangeKind::Cluster(..)
            | ChangeKind::Driver(_)
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
            | ChangeKind::GpuOperator(_)
            | ChangeKind::Queue(_)
            | ChangeKind::Topology
            | ChangeKind::SlurmSettings(_)
            | ChangeKind::DraDriver(_)
            | ChangeKind::GitOps(_)
            | ChangeKind::SharingName(_)
            | ChangeKind::Devices(_)
            | ChangeKind::PoolSettings(_)
            | ChangeKind::Tier
            | ChangeKind::TeamSettings(_)
            | ChangeKind::Alerting
            | ChangeKind::SharingMode(_)
            | ChangeKind::MigStrategy(_)
            | ChangeKind::MigLayout(_)
            | ChangeKind::Replicas(_)
            | ChangeKind::Missing(_)
            | ChangeKind::ExceptionReason(_)
            | ChangeKind::Overrides(_)
            | ChangeKind::MaxUnavailable(_)
            | ChangeKind::Policy
            | ChangeKind::Workload
            | ChangeKind::Exporter => Effect::none(),
        }
    }
}

fn driver(scope: Option<&Scope<'_>>, nodes: Hostlist) -> Effect {
    let owner = match scope {
        Some(Scope::Kubernetes(_, _, kubernetes)) => Some(kubernetes.driver.owner),
        _ => None,
    };
    match owner {
        Some(DriverOwner::Operator) => {
            Effect::on(Disruption::Drain, nodes, "the operator evicts GPU pods node by node")
        }
        Some(DriverOwner::Os) | None => {
            Effect::on(Disruption::Reboot, nodes, "the driver of the OS changes")
        }
    }
}
