//! Kubernetes itself: namespaces and quotas of teams, priorities of tiers, labels of nodes.

mod check;
mod namespace;
mod node_labels;
mod priority_class;
mod resource_quota;

use fleetc_schema::Hostlist;
use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{DriverOwner, Intent, Taint, TaintEffect};
use fleetc_schema::name::PoolName;
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect, Presence};
use fleetc_schema::version::KubernetesRelease;

use crate::changed::Sides;
use crate::{OutputTree, Scope, Target, kubernetes_clusters};

/// Objects of Kubernetes itself.
pub struct Objects;

impl Target for Objects {
    fn id(&self) -> &'static str {
        "kubernetes"
    }

    fn summary(&self) -> &'static str {
        "Namespace and ResourceQuota a team, PriorityClass a tier, NodeFeatureRule a class"
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

    fn check(&self, scope: &Scope<'_>, found: &mut Vec<Diagnostic>) {
        let Scope::Kubernetes(intent, cluster, kubernetes) = scope else { return };
        check::open_pool_lifts_caps(intent, cluster, kubernetes, found);
    }

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let mut tree = OutputTree::default();
        let Scope::Kubernetes(intent, cluster, kubernetes) = scope else { return tree };
        tree.extend(namespace::emit(intent, cluster, kubernetes));
        tree.extend(priority_class::emit(intent, cluster));
        tree.extend(node_labels::emit(intent, cluster, kubernetes));
        tree.extend(node_labels::emit_places(intent, cluster, kubernetes));
        tree.extend(resource_quota::emit(intent, cluster, kubernetes));
        tree
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
            ChangeKind::Pool(pool, Presence::Added)
                if !sides.joining(pool).is_empty() && quotas(old) != quotas(new) =>
            {
                Effect::daemon(
                    Disruption::Reload,
                    "ResourceQuotas come or go with what the pool hands out",
                )
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
                match quotas(old) == quotas(new) {
                    true => Effect::none(),
                    false => Effect::daemon(
                        Disruption::Reload,
                        "the ResourceQuota holds for new pods at once",
                    ),
                }
            }
            ChangeKind::Queue(cluster) if here(cluster.as_str()) => {
                match quotas(old) == quotas(new) {
                    true => Effect::none(),
                    false => Effect::daemon(
                        Disruption::Reload,
                        "ResourceQuotas come or go with what the queue counts",
                    ),
                }
            }
            ChangeKind::Team(..) | ChangeKind::Namespace(_) => {
                Effect::daemon(Disruption::Reload, "namespaces and ResourceQuotas come or go")
            }
            ChangeKind::Tier => {
                Effect::daemon(Disruption::Reload, "PriorityClasses hold for new pods")
            }
            ChangeKind::Taints(pool) => taints(sides, pool),
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
            | ChangeKind::Validator(_)
            | ChangeKind::SharingName(_)
            | ChangeKind::Devices(_)
            | ChangeKind::PoolSettings(_)
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

/// The texts of the ResourceQuotas of a scope.
fn quotas(scope: Option<&Scope<'_>>) -> Vec<String> {
    let Some(Scope::Kubernetes(intent, cluster, kubernetes)) = scope else { return Vec::new() };
    let tree = resource_quota::emit(intent, cluster, kubernetes);
    tree.files().iter().map(|(_, file)| file.text().to_string()).collect()
}

/// A taint `NoExecute` that comes evicts what does not tolerate it; others hold for new pods.
fn taints(sides: Sides<'_>, pool: &PoolName) -> Effect {
    let evicts = |scope: Option<&Scope<'_>>| -> Vec<Taint> {
        let pool = scope.and_then(|scope| scope.intent().pools.get(pool));
        let taints = pool.map(|pool| pool.taints.clone()).unwrap_or_default();
        taints.into_iter().filter(|taint| taint.effect == TaintEffect::NoExecute).collect()
    };
    let before = evicts(sides.old);
    match evicts(sides.new).iter().any(|taint| !before.contains(taint)) {
        true => Effect::on(
            Disruption::Drain,
            sides.staying(pool),
            "pods that do not tolerate the taint are evicted",
        ),
        false => Effect::daemon(Disruption::Reload, "taints hold for new pods"),
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
