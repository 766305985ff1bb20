//! Slurm: `slurm.conf` and `gres.conf`.
//!
//! `slurm.conf` here is the part that must agree about GPUs (GresTypes, NodeName, PartitionName);
//! a site includes it in its own. Source: slurm.conf(5), gres.conf(5), releases 22.05 to 26.05.

mod check;
mod extra;
mod gres;
mod slurm_conf;

use fleetc_schema::Hostlist;
use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{DriverOwner, Intent, Slurm};
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect, Presence};
use fleetc_schema::version::SlurmRelease;

use crate::changed::Sides;
use crate::{OutputTree, Scope, Target, slurm_clusters};

/// Slurm.
pub struct SlurmConf;

impl Target for SlurmConf {
    fn id(&self) -> &'static str {
        "slurm"
    }

    fn summary(&self) -> &'static str {
        "slurm.conf (GresTypes, NodeName, PartitionName) and gres.conf"
    }

    fn versions(&self) -> String {
        let all = SlurmRelease::ALL;
        match (all.first(), all.last()) {
            (Some(first), Some(last)) => format!("Slurm {first} to {last}"),
            _ => String::new(),
        }
    }

    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>> {
        slurm_clusters(intent)
    }

    fn check(&self, scope: &Scope<'_>, found: &mut Vec<Diagnostic>) {
        if let Scope::Slurm(intent, cluster, slurm) = scope {
            extra::conflicts(intent, cluster, slurm, found);
            check::shared_gpus(intent, cluster, found);
            check::missing_facts(intent, cluster, found);
        }
    }

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let mut tree = OutputTree::default();
        if let Scope::Slurm(intent, cluster, slurm) = scope {
            let folder = format!("clusters/{}/slurm", cluster.name);
            tree.add(format!("{folder}/slurm.conf"), slurm_conf::emit(intent, cluster, slurm));
            tree.add(format!("{folder}/gres.conf"), gres::emit(intent, cluster, slurm));
        }
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
        let reload = |what| Effect::daemon(Disruption::Reload, what);
        let restart = |what| Effect::daemon(Disruption::RestartDaemon, what);
        match &change.kind {
            ChangeKind::Cluster(cluster, _) if !here(cluster.as_str()) => Effect::none(),
            ChangeKind::Cluster(_, Presence::Removed) => {
                Effect::on(Disruption::Drain, sides.every_old_node(), "the cluster ends")
            }
            ChangeKind::Cluster(_, Presence::Added) => Effect::none(),
            ChangeKind::SchedulerVersion(cluster)
            | ChangeKind::Controllers(cluster)
            | ChangeKind::Database(cluster)
            | ChangeKind::AutoDetect(cluster)
            | ChangeKind::Driver(cluster)
            | ChangeKind::Partition(cluster, ..)
            | ChangeKind::PartitionPools(cluster, _)
            | ChangeKind::PartitionSettings(cluster, _)
                if !here(cluster.as_str()) =>
            {
                Effect::none()
            }
            ChangeKind::SchedulerVersion(_) => restart("slurmctld and slurmd are upgraded"),
            ChangeKind::Controllers(_) => restart("slurmctld moves"),
            ChangeKind::Database(_) => restart("slurmctld connects to another slurmdbd"),
            ChangeKind::AutoDetect(_) => restart("slurmd finds its GPUs otherwise"),
            ChangeKind::Driver(_) => driver(sides.new, sides.every_old_node()),
            ChangeKind::PoolDriver(pool) => {
                driver(sides.new, sides.differing(pool, |class| class.driver.clone()))
            }
            ChangeKind::SlurmSettings(cluster) if !here(cluster.as_str()) => Effect::none(),
            ChangeKind::SlurmSettings(_) | ChangeKind::PoolSettings(_) => {
                reload("scontrol reconfigure")
            }
            ChangeKind::Partition(..)
            | ChangeKind::PartitionPools(..)
            | ChangeKind::PartitionSettings(..) => reload("scontrol reconfigure"),
            ChangeKind::SharingMode(pool)
            | ChangeKind::MigLayout(pool)
            | ChangeKind::Missing(pool)
            | ChangeKind::System(pool) => Effect::on(
                Disruption::Drain,
                sides.differing(pool, |class| class.advertised.gres.clone()),
                "GRES change: a count below the configured one sets a node INVAL",
            ),
            ChangeKind::Nodes(pool) | ChangeKind::Pool(pool, _) => nodes(sides, pool),
            // Nothing of these stands in the files of this target.
            ChangeKind::FleetName
            | ChangeKind::AsOf
            | ChangeKind::LabelPrefix
            | ChangeKind::Distribution(_)
            | ChangeKind::GpuOperator(_)
            | ChangeKind::Queue(_)
            | ChangeKind::Topology
            | ChangeKind::DraDriver(_)
            | ChangeKind::GitOps(_)
            | ChangeKind::SharingName(_)
            | ChangeKind::Devices(_)
            | ChangeKind::Tier
            | ChangeKind::TeamSettings(_)
            | ChangeKind::Alerting
            | ChangeKind::MigStrategy(_)
            | ChangeKind::Replicas(_)
            | ChangeKind::ExceptionReason(_)
            | ChangeKind::Overrides(_)
            | ChangeKind::MaxUnavailable(_)
            | ChangeKind::Policy
            | ChangeKind::Team(..)
            | ChangeKind::Namespace(_)
            | ChangeKind::Quota(..)
            | ChangeKind::Workload
            | ChangeKind::Exporter => Effect::none(),
        }
    }
}

/// Nodes that leave are drained; nodes that join need a slurmctld that can take them.
fn nodes(sides: Sides<'_>, pool: &fleetc_schema::name::PoolName) -> Effect {
    let leaving = sides.leaving(pool);
    if !leaving.is_empty() {
        return Effect::on(Disruption::Drain, leaving, "nodes leave Slurm");
    }
    if sides.joining(pool).is_empty() {
        return Effect::none();
    }
    match slurm_of(sides.new) {
        // Adding a node by reconfigure ends slurmctld before 23.11.
        Some(slurm) if slurm.version < SlurmRelease::V23_11 => {
            Effect::daemon(Disruption::RestartDaemon, "nodes join: restart slurmctld")
        }
        _ => Effect::daemon(Disruption::Reload, "nodes join: scontrol reconfigure"),
    }
}

fn driver(scope: Option<&Scope<'_>>, nodes: Hostlist) -> Effect {
    let owner = slurm_of(scope).map(|slurm| slurm.driver.owner);
    match owner {
        Some(DriverOwner::Operator) => {
            Effect::on(Disruption::Drain, nodes, "the operator loads another driver")
        }
        Some(DriverOwner::Os) | None => {
            Effect::on(Disruption::Reboot, nodes, "the driver of the OS changes")
        }
    }
}

fn slurm_of<'a>(scope: Option<&'a Scope<'a>>) -> Option<&'a Slurm> {
    match scope {
        Some(Scope::Slurm(_, _, slurm)) => Some(slurm),
        _ => None,
    }
}
