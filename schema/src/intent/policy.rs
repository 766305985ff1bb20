//! Node policies: what a good node is.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{NodeCheck, words};
use crate::name::PoolName;
use crate::units::Watts;
use crate::version::VersionReq;

/// What a good node is. A value that is absent is not judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NodePolicy {
    /// Pools that it names; none: every pool that no other policy names.
    pub pools: Vec<PoolName>,
    /// Condition on the driver.
    pub driver: Option<VersionReq>,
    /// ECC mode.
    pub ecc: Option<bool>,
    /// Persistence mode.
    pub persistence: Option<bool>,
    /// Power limit of a GPU.
    pub power_limit: Option<Watts>,
    /// PCIe generation.
    pub pcie_gen: Option<u8>,
    /// PCIe lanes.
    pub pcie_width: Option<u8>,
    /// Active NVLinks of a GPU.
    pub nvlinks: Option<u8>,
    /// How much checks of the validator matter, where it is not as its table says.
    #[serde(default)]
    pub checks: IndexMap<NodeCheck, CheckLevel>,
}

words! {
    /// How much a check of the validator matters.
    CheckLevel {
        /// A node that fails it must not take work.
        Block = "block",
        /// It is told.
        Warn = "warn",
        /// It is noted.
        Info = "info",
    }
}
