//! What a change disturbs in a Slurm cluster.
//!
//! Source: scontrol(1), "reconfigure", and slurm.conf(5), 22.05 to 26.05. From 23.11 a
//! reconfiguration starts new daemons, so nearly nothing needs a restart; before, slurmctld ends
//! when a node is added by reconfiguration, and keeps what many keys said.

use fleetc_schema::Hostlist;
use fleetc_schema::intent::{DriverOwner, NodeClass, PreemptBy, Slurm};
use fleetc_schema::name::{ClusterName, PoolName};
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect, Presence};

use super::features::Feature;
use super::topology_conf::Told;
use crate::Scope;
use crate::changed::Sides;

const RECONFIGURE: &str = "scontrol reconfigure";
const ACCOUNTING: &str = "accounting.sh, then scontrol reconfigure";

/// Rates a change.
pub fn of(change: &Change, old: Option<&Scope<'_>>, new: Option<&Scope<'_>>) -> Effect {
    let rating = Rating { sides: Sides { old, new } };
    match &change.kind {
        ChangeKind::Cluster(cluster, presence) => rating.cluster(cluster, *presence),
        ChangeKind::SchedulerVersion(cluster)
        | ChangeKind::Controllers(cluster)
        | ChangeKind::Database(cluster)
        | ChangeKind::AutoDetect(cluster)
        | ChangeKind::Driver(cluster)
        | ChangeKind::SlurmSettings(cluster)
        | ChangeKind::Partition(cluster, ..)
        | ChangeKind::PartitionPools(cluster, _)
        | ChangeKind::PartitionSettings(cluster, _)
        | ChangeKind::Quota(_, _, cluster)
            if !rating.is_here(cluster) =>
        {
            Effect::none()
        }
        ChangeKind::SchedulerVersion(_) => restart("slurmctld and slurmd are upgraded"),
        ChangeKind::Controllers(_) => restart("slurmctld moves: every daemon and client is told"),
        ChangeKind::Database(_) => {
            rating.reload_or_restart("slurmctld connects to another slurmdbd")
        }
        // That every build reads NVML anew on a reconfiguration is not known.
        ChangeKind::AutoDetect(_) => restart("slurmd finds its GPUs otherwise"),
        ChangeKind::Driver(_) => rating.driver(rating.sides.every_old_node()),
        ChangeKind::PoolDriver(pool) => {
            rating.driver(rating.sides.differing(pool, |class| class.driver.clone()))
        }
        ChangeKind::SlurmSettings(_) => match setting(change) {
            // Neither stands in a file of Slurm's.
            "login" | "hosted-by" => Effect::none(),
            "power-saving" | "health-check" => reload(RECONFIGURE),
            // The site may have said anything.
            _ => rating.reload_or_restart(RECONFIGURE),
        },
        ChangeKind::Partition(_, _, Presence::Removed) => {
            reload("scontrol reconfigure; jobs of the partition are cancelled")
        }
        ChangeKind::Partition(..)
        | ChangeKind::PartitionPools(..)
        | ChangeKind::PartitionSettings(..) => reload(RECONFIGURE),
        ChangeKind::PoolSettings(pool) => match setting(change) {
            "features" | "weight" if rating.has(pool) => reload(RECONFIGURE),
            _ => Effect::none(),
        },
        ChangeKind::SharingMode(pool) | ChangeKind::MigLayout(pool) | ChangeKind::Missing(pool) => {
            rating.gres(pool)
        }
        ChangeKind::System(pool) => match rating.gres(pool) {
            nothing if nothing.disruption == Disruption::None => rating.host(pool),
            effect => effect,
        },
        ChangeKind::Nodes(pool) | ChangeKind::Pool(pool, _) => rating.nodes(pool),
        ChangeKind::Topology if rating.told_changes() => rating.topology(),
        // PriorityTier of partitions comes from tiers.
        ChangeKind::Tier if rating.preempts_by_partition() => reload(RECONFIGURE),
        ChangeKind::Quota(..) | ChangeKind::Tier | ChangeKind::Team(..) => rating.accounting(),
        ChangeKind::TeamSettings(_) => match setting(change) {
            "contact" => Effect::none(),
            _ => rating.accounting(),
        },
        // Nothing of these stands in the files of this target.
        ChangeKind::Topology
        | ChangeKind::FleetName
        | ChangeKind::AsOf
        | ChangeKind::LabelPrefix
        | ChangeKind::Distribution(_)
        | ChangeKind::GpuOperator(_)
        | ChangeKind::Queue(_)
        | ChangeKind::DraDriver(_)
        | ChangeKind::GitOps(_)
        | ChangeKind::Validator(_)
        | ChangeKind::SharingName(_)
        | ChangeKind::Devices(_)
        | ChangeKind::Alerting
        | ChangeKind::MigStrategy(_)
        | ChangeKind::Replicas(_)
        | ChangeKind::ExceptionReason(_)
        | ChangeKind::Overrides(_)
        | ChangeKind::MaxUnavailable(_)
        | ChangeKind::Policy
        | ChangeKind::Namespace(_)
        | ChangeKind::Workload
        | ChangeKind::Taints(_)
        | ChangeKind::Exporter => Effect::none(),
    }
}

/// The word of the spec that changed: the last step of the path.
fn setting(change: &Change) -> &str {
    change.path.as_str().rsplit('/').next().unwrap_or_default()
}

fn reload(what: &str) -> Effect {
    Effect::daemon(Disruption::Reload, what)
}

fn restart(what: &str) -> Effect {
    Effect::daemon(Disruption::RestartDaemon, what)
}

/// The two sides of a change.
struct Rating<'a> {
    sides: Sides<'a>,
}

impl Rating<'_> {
    fn is_here(&self, cluster: &ClusterName) -> bool {
        let scopes = [self.sides.old, self.sides.new].into_iter().flatten();
        scopes.into_iter().any(|scope| scope.name() == cluster.as_str())
    }

    /// The cluster's settings, after the change if it is there.
    fn slurm(&self) -> Option<&Slurm> {
        match self.sides.new.or(self.sides.old) {
            Some(Scope::Slurm(_, _, slurm)) => Some(slurm),
            _ => None,
        }
    }

    /// A new process takes over on a reconfiguration, or daemons are restarted.
    fn reload_or_restart(&self, what: &str) -> Effect {
        let version = self.slurm().map(|slurm| slurm.version);
        match version.is_none_or(|version| Feature::ReconfigureByNewProcess.is_in(version)) {
            true => reload(what),
            false => restart(what),
        }
    }

    fn cluster(&self, cluster: &ClusterName, presence: Presence) -> Effect {
        match presence {
            Presence::Removed if self.is_here(cluster) => {
                Effect::on(Disruption::Drain, self.sides.every_old_node(), "the cluster ends")
            }
            Presence::Removed | Presence::Added => Effect::none(),
        }
    }

    /// True if the cluster has nodes of a pool.
    fn has(&self, pool: &PoolName) -> bool {
        let scopes = [self.sides.old, self.sides.new].into_iter().flatten();
        let mut scopes = scopes.filter_map(|scope| Some((scope.intent(), scope.cluster()?)));
        scopes.any(|(intent, cluster)| {
            let pool = intent.pools.get(pool);
            pool.is_some_and(|pool| pool.parts.contains_key(&cluster.name))
        })
    }

    fn gres(&self, pool: &PoolName) -> Effect {
        Effect::on(
            Disruption::Drain,
            self.sides.differing(pool, |class| class.advertised.gres.clone()),
            "GRES change: a count below the configured one sets a node INVAL",
        )
    }

    /// Jobs end when sockets or cores of their node change; more or less memory is only read.
    fn host(&self, pool: &PoolName) -> Effect {
        let cores = |class: &NodeClass| class.host.cpu;
        let nodes = self.sides.differing(pool, cores);
        if !nodes.is_empty() {
            return Effect::on(Disruption::Drain, nodes, "sockets or cores change: jobs would end");
        }
        match self.sides.differing(pool, |class| class.host.memory).is_empty() {
            true => Effect::none(),
            false => self.reload_or_restart("RealMemory changes"),
        }
    }

    /// Nodes that leave are drained; nodes that join need a slurmctld that can take them.
    fn nodes(&self, pool: &PoolName) -> Effect {
        let leaving = self.sides.leaving(pool);
        if !leaving.is_empty() {
            return Effect::on(Disruption::Drain, leaving, "nodes leave Slurm");
        }
        match self.sides.joining(pool).is_empty() {
            true => Effect::none(),
            false => {
                self.reload_or_restart("nodes join: slurmctld and every slurmd read slurm.conf")
            }
        }
    }

    fn told_changes(&self) -> bool {
        self.told(self.sides.old) != self.told(self.sides.new)
    }

    /// What slurmctld is told of the topology on a side, whatever the items behind it.
    fn told(&self, scope: Option<&Scope<'_>>) -> Option<Told> {
        let scope = scope?;
        Some(Told::of(scope.intent(), scope.cluster()?)?.without_items())
    }

    /// Switches and blocks are read anew; the plugin that reads them is loaded at the start.
    fn topology(&self) -> Effect {
        let plugin = |scope| self.told(scope).map(|told| told.plugin());
        match plugin(self.sides.old) == plugin(self.sides.new) {
            true => reload("topology.conf: scontrol reconfigure"),
            false => self.reload_or_restart("TopologyPlugin changes"),
        }
    }

    /// QOS and limits hold at once; which QOS a partition takes is read anew. A limit that falls
    /// stops no job that runs.
    fn accounting(&self) -> Effect {
        let database = |scope: Option<&Scope<'_>>| match scope {
            Some(Scope::Slurm(_, _, slurm)) => slurm.database.is_some(),
            _ => false,
        };
        match database(self.sides.old) || database(self.sides.new) {
            true => reload(ACCOUNTING),
            false => Effect::none(),
        }
    }

    fn preempts_by_partition(&self) -> bool {
        let preempt = self.slurm().and_then(|slurm| slurm.preempt);
        preempt.is_some_and(|preempt| preempt.by == PreemptBy::Partition)
    }

    fn driver(&self, nodes: Hostlist) -> Effect {
        match self.slurm().map(|slurm| slurm.driver.owner) {
            Some(DriverOwner::Operator) => {
                Effect::on(Disruption::Drain, nodes, "the operator loads another driver")
            }
            Some(DriverOwner::Os) | None => {
                Effect::on(Disruption::Reboot, nodes, "the driver of the OS changes")
            }
        }
    }
}
