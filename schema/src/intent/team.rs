//! Teams with their quotas, and workloads.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::words;
use crate::mig::{MigProfile, MigProfileError};
use crate::name::{ClusterName, FabricName, NamespaceName, PoolName, TeamName, TierName};
use crate::units::{Bytes, BytesPerSec, Date, Milliseconds, Parameters, Seconds};
use crate::{ItemPath, serde_as_text};

/// A team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Team {
    /// The team that it is part of.
    pub parent: Option<TeamName>,
    /// Its Kubernetes namespace.
    pub namespace: NamespaceName,
    /// Its Slurm account.
    pub account: String,
    /// Where it can be reached.
    pub contact: Option<Contact>,
    /// Its share of what is idle, against the weights of its neighbours.
    pub weight: Option<u32>,
    /// What it is guaranteed.
    pub quotas: Vec<Quota>,
}

/// Where a team can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Contact {
    /// Slack channel.
    pub slack: Option<String>,
    /// Mail address.
    pub email: Option<String>,
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
    /// How urgent it is.
    pub tier: Option<TierName>,
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
    /// The model that it holds, from which memory is derived.
    pub model: Option<Model>,
    /// What it needs of the host, for each GPU or slice.
    pub host: Option<HostDemand>,
    /// What each GPU or slice reads of its data.
    pub data_rate: Option<BytesPerSec>,
    /// What it promises its users.
    pub slo: Option<Slo>,
    /// Set if all its pods or tasks must start together.
    pub gang: Option<Gang>,
    /// The fabric that it talks over.
    pub network: Option<FabricName>,
    /// How it saves its state.
    pub checkpoint: Option<Checkpoint>,
    /// What it accepts from its neighbours.
    pub isolation: Option<Isolation>,
}

/// The model of a workload: what weights and KV cache are computed from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Parameters.
    pub params: Parameters,
    /// Parameters that a token uses, of a mixture of experts; none: all.
    pub active_params: Option<Parameters>,
    /// Type of the weights.
    pub dtype: Dtype,
    /// Type of the KV cache; none: what the engine chooses, 16 bits with narrower weights.
    pub cache_dtype: Option<Dtype>,
    /// Layers.
    pub layers: Option<u32>,
    /// Heads of keys and values.
    pub kv_heads: Option<u32>,
    /// Dimension of a head.
    pub head_dim: Option<u32>,
    /// Tokens of a sequence.
    pub context: Option<u32>,
    /// Sequences at once.
    pub concurrency: Option<u32>,
}

words! {
    /// A number format.
    Dtype {
        /// 32-bit floating point.
        Fp32 = "fp32",
        /// 16-bit floating point.
        Fp16 = "fp16",
        /// 16-bit brain floating point.
        Bf16 = "bf16",
        /// 8-bit floating point.
        Fp8 = "fp8",
        /// 8-bit integer.
        Int8 = "int8",
        /// 4-bit integer.
        Int4 = "int4",
        /// 4-bit floating point.
        Fp4 = "fp4",
    }
}

impl Dtype {
    /// Bits of a number.
    pub fn bits(self) -> u32 {
        match self {
            Self::Fp32 => 32,
            Self::Fp16 | Self::Bf16 => 16,
            Self::Fp8 | Self::Int8 => 8,
            Self::Int4 | Self::Fp4 => 4,
        }
    }
}

/// What a workload needs of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostDemand {
    /// CPUs for each GPU or slice.
    pub cpu: Option<u32>,
    /// Memory for each GPU or slice.
    pub memory: Option<Bytes>,
    /// `/dev/shm` of a pod.
    pub shm: Option<Bytes>,
}

/// What a workload promises its users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Slo {
    /// Latency that 99 of 100 requests stay under.
    pub p99: Option<Milliseconds>,
    /// Tokens a second of one sequence.
    pub tokens_per_second: Option<u32>,
}

/// All pods or tasks start together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Gang {
    /// True if they must stand in one block of the topology.
    pub contiguous: bool,
}

/// How a workload saves its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Time between two.
    pub every: Seconds,
    /// Time that one takes.
    pub takes: Option<Seconds>,
    /// True if each rank writes its own part.
    pub sharded: bool,
    /// When restoring was last tried.
    pub tested: Option<Date>,
    /// True if the job depends on a save when it is told to stop.
    pub on_notice: bool,
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
        /// A MIG slice of its own.
        Slice = "slice",
        /// A whole GPU.
        Whole = "whole",
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
    /// Expert parallel degree, which reuses data ranks.
    pub expert: u32,
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
