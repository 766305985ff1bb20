//! Teams with their quotas, and workloads.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::words;
use crate::mig::{MigProfile, MigProfileError};
use crate::name::{ClusterName, NamespaceName, PoolName, TeamName};
use crate::units::Bytes;
use crate::{ItemPath, serde_as_text};

/// A team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Team {
    /// Its Kubernetes namespace.
    pub namespace: NamespaceName,
    /// What it is guaranteed.
    pub quotas: Vec<Quota>,
}

/// What a team is guaranteed of one resource of one pool in one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// The pool.
    pub pool: PoolName,
    /// The cluster: the owner of the pool, or of a part of it.
    pub cluster: ClusterName,
    /// What is counted.
    pub resource: Resource,
    /// How many are guaranteed.
    pub guaranteed: u32,
    /// How many it may use at most; none: what is idle in the pool.
    pub limit: Option<u32>,
    /// Its item.
    pub path: ItemPath,
}

/// The unit in which a pool is handed out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// Whole GPUs.
    Gpu,
    /// Clients of shared GPUs, under MPS or time-slicing.
    Shared,
    /// GPU instances of one profile.
    Slice(MigProfile),
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gpu => f.write_str("gpu"),
            Self::Shared => f.write_str("gpu.shared"),
            Self::Slice(profile) => write!(f, "{profile}"),
        }
    }
}

impl FromStr for Resource {
    type Err = MigProfileError;

    fn from_str(text: &str) -> Result<Self, MigProfileError> {
        match text {
            "gpu" => Ok(Self::Gpu),
            "gpu.shared" => Ok(Self::Shared),
            profile => profile.parse().map(Self::Slice),
        }
    }
}

serde_as_text!(Resource);

impl Resource {
    /// The extended resource of Kubernetes that carries it.
    ///
    /// Shared GPUs are renamed (`renameByDefault`), so nobody takes one for a whole GPU.
    pub fn kubernetes(&self) -> String {
        match self {
            Self::Gpu => "nvidia.com/gpu".to_owned(),
            Self::Shared => "nvidia.com/gpu.shared".to_owned(),
            Self::Slice(profile) => profile.kubernetes_resource(),
        }
    }

    /// How it is called in a sentence about several.
    pub fn plural(&self) -> String {
        match self {
            Self::Gpu => "GPUs".to_owned(),
            Self::Shared => "shares of GPUs".to_owned(),
            Self::Slice(profile) => format!("× {profile}"),
        }
    }
}

/// A workload: a shape that must fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Whose it is.
    pub team: TeamName,
    /// Where it runs.
    pub pool: PoolName,
    /// The cluster: the owner of the pool, or of a part of it.
    pub cluster: ClusterName,
    /// What it is.
    pub kind: WorkloadKind,
    /// The slice that it asks for; none: what the pool hands out, if that is one thing.
    pub slice: Option<MigProfile>,
    /// GPUs, or slices, of a job or replica.
    pub gpus: u32,
    /// How a job is spread over its GPUs.
    pub parallel: Option<Parallel>,
    /// How many alike run at once.
    pub replicas: Replicas,
    /// Peak memory of a GPU or slice.
    pub memory: Option<Bytes>,
    /// What it accepts from its neighbours.
    pub isolation: Option<Isolation>,
}

words! {
    /// The kind of a workload.
    WorkloadKind {
        /// Training from the start.
        Pretrain = "pretrain",
        /// Training of a model that exists.
        Finetune = "finetune",
        /// A service.
        Inference = "inference",
        /// Inference over a set of items.
        BatchScoring = "batch-scoring",
        /// Many small runs over parameters.
        Sweep = "sweep",
        /// A person at work.
        Notebook = "notebook",
        /// Tests.
        Ci = "ci",
    }
}

words! {
    /// What a workload accepts from its neighbours.
    Isolation {
        /// A GPU shared with others is fine.
        Shared = "shared",
    }
}

/// Degrees of parallelism; their product is the number of GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// Tensor parallel degree.
    pub tensor: u32,
    /// Pipeline parallel degree.
    pub pipeline: u32,
    /// Context parallel degree.
    pub context: u32,
    /// Data parallel degree.
    pub data: u32,
}

/// How many alike run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Replicas {
    /// The least.
    pub min: u32,
    /// The most.
    pub max: u32,
}
