//! Tiers: how urgent workloads are.

use serde::{Deserialize, Serialize};

use crate::units::Seconds;

/// A tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// Its priority: a higher one goes first.
    pub priority: u32,
    /// True if its jobs may be stopped for others.
    pub preemptible: bool,
    /// GPUs that a job may have at most.
    pub max_gpus_per_job: Option<u32>,
    /// How long a job may run at most.
    pub max_time: Option<Seconds>,
    /// How long a job may hold GPUs without using them.
    pub idle_after: Option<Seconds>,
}
