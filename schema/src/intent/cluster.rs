//! Clusters: who schedules.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::words;
use crate::Hostlist;
use crate::name::{ClusterName, NamespaceName, PartitionName, PoolName};
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
    /// Partitions.
    pub partitions: IndexMap<PartitionName, Partition>,
}

words! {
    /// `AutoDetect` of gres.conf.
    AutoDetect {
        /// slurmd reads the GPUs through NVML.
        Nvml = "nvml",
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
    /// What queues jobs.
    pub queue: Queue,
}

words! {
    /// A distribution of Kubernetes.
    Distribution {
        /// As the Kubernetes project ships it.
        Upstream = "upstream",
    }
}

words! {
    /// What queues jobs in a Kubernetes cluster.
    Queue {
        /// Nothing: pods go straight to the scheduler.
        None = "none",
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
