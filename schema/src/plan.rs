//! The vocabulary of a plan: what changed between two Intents, and what a change disturbs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::{ClusterName, PartitionName, PoolName, TeamName};
use crate::{Hostlist, ItemPath};

/// What a change does to nodes that are in service, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disruption {
    /// Nothing running notices.
    None,
    /// A daemon reads its configuration again.
    Reload,
    /// A daemon restarts; jobs go on.
    RestartDaemon,
    /// Nodes must be empty.
    Drain,
    /// GPUs must be reset.
    GpuReset,
    /// Nodes must boot.
    Reboot,
}

impl fmt::Display for Disruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Reload => "reload",
            Self::RestartDaemon => "restart-daemon",
            Self::Drain => "drain",
            Self::GpuReset => "gpu-reset",
            Self::Reboot => "reboot",
        })
    }
}

/// What one target says about one change in one scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// How bad it is.
    pub disruption: Disruption,
    /// Nodes that are disturbed.
    pub nodes: Hostlist,
    /// True if an immutable object must be made anew under another name.
    pub recreate: bool,
    /// What happens, in a few words.
    pub what: String,
}

impl Effect {
    /// Nothing happens here.
    pub fn none() -> Self {
        Self {
            disruption: Disruption::None,
            nodes: Hostlist::default(),
            recreate: false,
            what: String::new(),
        }
    }

    /// Something happens to the scheduler or its daemons, not to nodes.
    pub fn daemon(disruption: Disruption, what: &str) -> Self {
        Self { disruption, what: what.to_owned(), ..Self::none() }
    }

    /// Something happens to nodes; nothing if there are none.
    pub fn on(disruption: Disruption, nodes: Hostlist, what: &str) -> Self {
        match nodes.is_empty() {
            true => Self::none(),
            false => Self { disruption, nodes, recreate: false, what: what.to_owned() },
        }
    }
}

/// Whether an item came or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// The new Intent has it, the old one has not.
    Added,
    /// The old Intent has it, the new one has not.
    Removed,
}

/// What changed. A target rates each by a `match` without a catch-all, so a new kind of change does
/// not compile until every target has said what it disturbs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// The fleet's name.
    FleetName,
    /// The date that dates are compared with.
    AsOf,
    /// The prefix of our node labels.
    LabelPrefix,
    /// A cluster came or went, or changed its scheduler.
    Cluster(ClusterName, Presence),
    /// The release of Slurm or Kubernetes.
    SchedulerVersion(ClusterName),
    /// Hosts of slurmctld.
    Controllers(ClusterName),
    /// Host of slurmdbd.
    Database(ClusterName),
    /// `AutoDetect` of gres.conf.
    AutoDetect(ClusterName),
    /// Version or owner of the driver.
    Driver(ClusterName),
    /// A partition came or went.
    Partition(ClusterName, PartitionName, Presence),
    /// Pools of a partition.
    PartitionPools(ClusterName, PartitionName),
    /// Times or default of a partition.
    PartitionSettings(ClusterName, PartitionName),
    /// The distribution of Kubernetes.
    Distribution(ClusterName),
    /// Version or namespace of the GPU Operator.
    GpuOperator(ClusterName),
    /// What queues jobs.
    Queue(ClusterName),
    /// Login hosts, preemption, power saving, the health check, topology, the site's own lines, or where
    /// the daemons run.
    SlurmSettings(ClusterName),
    /// Version of the DRA driver.
    DraDriver(ClusterName),
    /// What applies the output.
    GitOps(ClusterName),
    /// The DaemonSet by which nodes judge themselves.
    Validator(ClusterName),
    /// A site, rack or fabric came, went or changed.
    Topology,
    /// A pool came or went.
    Pool(PoolName, Presence),
    /// The hardware of a pool.
    System(PoolName),
    /// Nodes of a pool joined, left, or changed their owner.
    Nodes(PoolName),
    /// How the GPUs of a pool are shared.
    SharingMode(PoolName),
    /// How GPU instances are named.
    MigStrategy(PoolName),
    /// GPU instances of a pool.
    MigLayout(PoolName),
    /// Clients of a shared GPU.
    Replicas(PoolName),
    /// The name under which shares of GPUs are advertised.
    SharingName(PoolName),
    /// Who advertises the GPUs.
    Devices(PoolName),
    /// Taints of the Kubernetes nodes of a pool.
    Taints(PoolName),
    /// The driver of a pool that has one of its own.
    PoolDriver(PoolName),
    /// Payment, placement, features, weight or the one team of a pool.
    PoolSettings(PoolName),
    /// GPUs that nodes of a pool lack.
    Missing(PoolName),
    /// The reason of an exception, or how it is written.
    ExceptionReason(PoolName),
    /// What an inventory says of single nodes of a pool.
    Overrides(PoolName),
    /// How many nodes may be out of service at once.
    MaxUnavailable(PoolName),
    /// A node policy.
    Policy,
    /// A tier.
    Tier,
    /// A team came or went.
    Team(TeamName, Presence),
    /// A team's namespace.
    Namespace(TeamName),
    /// A team's parent, account, contact or weight.
    TeamSettings(TeamName),
    /// A quota came, went or changed.
    Quota(TeamName, PoolName, ClusterName),
    /// A workload.
    Workload,
    /// The exporter of GPU metrics.
    Exporter,
    /// Receivers, routes, or changes to the standard alerts.
    Alerting,
}

/// One change, with the item on each side and its values in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What changed.
    pub kind: ChangeKind,
    /// The item, on the new side if it is there.
    pub path: ItemPath,
    /// In a few words: `MIG layout of GPUs 4-7`.
    pub what: String,
    /// The old value; none if the item is new.
    pub old: Option<String>,
    /// The new value; none if the item is gone.
    pub new: Option<String>,
}
