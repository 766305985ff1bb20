//! Clusters: who schedules.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::words;
use crate::Hostlist;
use crate::name::{ClusterName, FabricName, NamespaceName, PartitionName, PoolName, TierName};
use crate::units::Seconds;
use crate::version::{KubernetesRelease, SlurmRelease, Version};

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Its name.
    pub name: ClusterName,
    /// Its scheduler.
    pub scheduler: Scheduler,
}

/// The scheduler of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// Slurm.
    Slurm(Slurm),
    /// Kubernetes.
    Kubernetes(Kubernetes),
}

/// A Slurm cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Slurm {
    /// The release that is written for.
    pub version: SlurmRelease,
    /// Hosts of slurmctld.
    pub controllers: Hostlist,
    /// Host of slurmdbd.
    pub database: Option<Hostlist>,
    /// `AutoDetect` of gres.conf: what this Slurm build has.
    pub autodetect: AutoDetect,
    /// The NVIDIA driver of the nodes.
    pub driver: Driver,
    /// Hosts where people log in.
    pub login: Hostlist,
    /// Whether and how running jobs make room for others.
    pub preempt: Option<Preempt>,
    /// How elastic nodes come and go.
    pub power_saving: Option<PowerSaving>,
    /// `HealthCheckProgram`: whether nodes judge themselves, and drain if they do not conform.
    pub health_check: Option<HealthCheck>,
    /// What slurmctld knows of the topology; none: a tree of fabrics or racks, if there are any.
    pub topology: Option<SlurmTopology>,
    /// Lines that the site adds, by file.
    pub extra: IndexMap<String, Vec<String>>,
    /// The Kubernetes cluster that its daemons run in, if the nodes are in both on purpose.
    pub hosted_by: Option<ClusterName>,
    /// Partitions.
    pub partitions: IndexMap<PartitionName, Partition>,
}

words! {
    /// `AutoDetect` of gres.conf.
    AutoDetect {
        /// slurmd reads the GPUs through NVML.
        Nvml = "nvml",
        /// slurmd reads the GPUs without NVML: no MIG. From 24.11.
        Nvidia = "nvidia",
        /// slurmd reads what gres.conf says.
        Off = "off",
    }
}

/// How running jobs make room for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Preempt {
    /// `PreemptType`.
    pub by: PreemptBy,
    /// `PreemptMode`.
    pub mode: PreemptMode,
}

words! {
    /// `PreemptType`: what decides which job gives way.
    PreemptBy {
        /// The QOS of the jobs (`preempt/qos`).
        Qos = "qos",
        /// The partition's PriorityTier (`preempt/partition_prio`).
        Partition = "partition",
    }
}

words! {
    /// `PreemptMode`: what happens to it.
    PreemptMode {
        /// It goes back into the queue.
        Requeue = "requeue",
        /// It ends.
        Cancel = "cancel",
    }
}

/// What slurmctld knows of the topology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SlurmTopology {
    /// `TopologyPlugin`.
    pub plugin: TopologyPlugin,
    /// The fabric whose switches are meant; none: each node's first.
    pub fabric: Option<FabricName>,
    /// `BlockSizes`, in nodes, the base size first.
    pub block_sizes: Vec<u32>,
}

words! {
    /// `TopologyPlugin`: how slurmctld sees the topology.
    TopologyPlugin {
        /// Leaf switches and the switches above them (`topology/tree`).
        Tree = "tree",
        /// NVLink domains, or racks (`topology/block`). From 23.11.
        Block = "block",
    }
}

/// How elastic nodes come and go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PowerSaving {
    /// `ResumeProgram`.
    pub resume: String,
    /// `SuspendProgram`.
    pub suspend: String,
    /// `SuspendTime`.
    pub idle: Seconds,
}

/// How the nodes of a Slurm cluster judge themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HealthCheck {
    /// `HealthCheckInterval`.
    pub interval: Seconds,
    /// No node is drained while so many are drained by the check.
    pub max_drained: u32,
}

/// How the nodes of a Kubernetes cluster judge themselves: a DaemonSet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Validator {
    /// An image with `fleetc-validate`, `kubectl` and a shell.
    pub image: String,
    /// How often.
    pub interval: Seconds,
    /// When a taint keeps pods away from nodes that are not proven; none: nothing taints.
    pub readiness: Option<Readiness>,
}

words! {
    /// When a NodeReadinessRule keeps pods away from a node.
    Readiness {
        /// Until the node has conformed once.
        BootstrapOnly = "bootstrap-only",
        /// Whenever it is not known to conform.
        Continuous = "continuous",
    }
}

/// The NVIDIA driver of a cluster's nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// Its version.
    pub version: Version,
    /// Who installs it.
    pub owner: DriverOwner,
}

words! {
    /// Who installs the driver.
    DriverOwner {
        /// The node's operating system image.
        Os = "os",
        /// The GPU Operator.
        Operator = "operator",
    }
}

/// A Slurm partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// Pools whose nodes it holds.
    pub pools: Vec<PoolName>,
    /// `MaxTime`.
    pub max_time: Option<Seconds>,
    /// `DefaultTime`.
    pub default_time: Option<Seconds>,
    /// `Default=YES`.
    pub default: bool,
    /// Tiers whose jobs it takes; none: all.
    pub tiers: Vec<TierName>,
}

/// A Kubernetes cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Kubernetes {
    /// The release that is written for.
    pub version: KubernetesRelease,
    /// Whose Kubernetes it is.
    pub distribution: Distribution,
    /// The NVIDIA GPU Operator, if it is installed.
    pub gpu_operator: Option<GpuOperator>,
    /// The NVIDIA driver of the nodes.
    pub driver: Driver,
    /// The NVIDIA driver of Dynamic Resource Allocation, if it is installed.
    pub dra_driver: Option<Version>,
    /// What queues jobs.
    pub queue: Queue,
    /// What applies the output.
    pub gitops: Option<GitOps>,
    /// Whether nodes judge themselves, and report it as a condition.
    pub validator: Option<Validator>,
}

words! {
    /// A distribution of Kubernetes.
    Distribution {
        /// As the Kubernetes project ships it.
        Upstream = "upstream",
        /// Amazon EKS.
        Eks = "eks",
        /// Google GKE.
        Gke = "gke",
        /// Azure AKS.
        Aks = "aks",
        /// Oracle OKE.
        Oke = "oke",
        /// Red Hat OpenShift.
        Openshift = "openshift",
    }
}

/// What queues jobs in a Kubernetes cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Which program.
    pub kind: QueueKind,
    /// Its version; none if nothing queues.
    pub version: Option<Version>,
    /// Levels of the topology that jobs are placed by, coarsest first.
    pub levels: IndexMap<TopologyLevel, LevelLabel>,
}

words! {
    /// A level of the topology.
    TopologyLevel {
        /// The site.
        Site = "site",
        /// The leaf switch, all rails of it.
        Leaf = "leaf",
        /// The rack.
        Rack = "rack",
        /// The NVLink domain that joins several nodes.
        NvlinkDomain = "nvlink-domain",
        /// The node.
        Host = "host",
    }
}

/// The node label that carries a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LevelLabel {
    /// The label that something else sets; none: one of ours.
    pub label: Option<String>,
}

words! {
    /// A program that queues jobs.
    QueueKind {
        /// Nothing: pods go straight to the scheduler.
        None = "none",
        /// Kueue.
        Kueue = "kueue",
        /// KAI Scheduler.
        Kai = "kai",
        /// Volcano.
        Volcano = "volcano",
    }
}

/// What applies the output to a cluster, and where it finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GitOps {
    /// Which program.
    pub tool: GitOpsTool,
    /// Where it finds the output; none if nobody said.
    pub source: Option<GitSource>,
}

/// Where the output stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GitSource {
    /// URL of the repository.
    pub repo: String,
    /// The branch.
    pub branch: String,
    /// The folder in it; none: its root.
    pub path: Option<String>,
}

words! {
    /// A program that applies what stands in a repository.
    GitOpsTool {
        /// Argo CD.
        ArgoCd = "argocd",
        /// Flux.
        Flux = "flux",
    }
}

/// The NVIDIA GPU Operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GpuOperator {
    /// Its version.
    pub version: Version,
    /// Its namespace.
    pub namespace: NamespaceName,
}
