//! Node policies: what a good node is.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{NodeCheck, words};
use crate::name::{FileSystem, MountPoint, PoolName};
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
    /// File systems that are mounted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<WantedMount>,
    /// Huge pages of the kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hugepages: Vec<WantedHugePages>,
    /// How much checks of the validator matter, where it is not as its table says.
    #[serde(default)]
    pub checks: IndexMap<NodeCheck, CheckLevel>,
}

/// A file system that a node has mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WantedMount {
    /// Where.
    pub target: MountPoint,
    /// Its type; none if any will do.
    #[serde(rename = "type")]
    pub kind: Option<FileSystem>,
}

/// Huge pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WantedHugePages {
    /// The size of one.
    pub size: HugePageSize,
    /// How many there are at least.
    pub count: u32,
}

words! {
    /// Sizes of huge pages: x86-64 has 2 MiB and 1 GiB, Arm has others by the size of its base pages.
    /// Source: Linux, `Documentation/arch/arm64/hugetlbpage.rst`, read 2026-11-30.
    HugePageSize {
        /// Arm with base pages of 4 KiB.
        Kib64 = "64KiB",
        /// x86-64, and Arm.
        Mib2 = "2MiB",
        /// Arm.
        Mib32 = "32MiB",
        /// Arm with base pages of 64 KiB, such as Grace.
        Mib512 = "512MiB",
        /// x86-64, and Arm.
        Gib1 = "1GiB",
        /// Arm with base pages of 64 KiB.
        Gib16 = "16GiB",
    }
}

impl HugePageSize {
    /// In KiB, as the kernel names it: `hugepages-2048kB`.
    pub fn kib(self) -> u64 {
        match self {
            Self::Kib64 => 64,
            Self::Mib2 => 2 << 10,
            Self::Mib32 => 32 << 10,
            Self::Mib512 => 512 << 10,
            Self::Gib1 => 1 << 20,
            Self::Gib16 => 16 << 20,
        }
    }
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
