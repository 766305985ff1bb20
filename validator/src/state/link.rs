//! How a GPU is joined to others and to the host.

use serde::{Deserialize, Serialize};

use super::Reading;
use fleetc_schema::pci::BusId;

/// A PCIe link as NVML shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PcieLink {
    /// Lanes in use: `nvmlDeviceGetCurrPcieLinkWidth`.
    pub width: Reading<u32>,
    /// Lanes that GPU and slot have: `nvmlDeviceGetMaxPcieLinkWidth`.
    pub max_width: Reading<u32>,
    /// Generation in use: `nvmlDeviceGetCurrPcieLinkGeneration`. Falls when idle.
    pub generation: Reading<u32>,
    /// Generation that GPU and slot have: `nvmlDeviceGetMaxPcieLinkGeneration`.
    pub max_generation: Reading<u32>,
    /// Generation of the GPU alone: `nvmlDeviceGetGpuMaxPcieLinkGeneration`.
    pub device_generation: Reading<u32>,
    /// `nvmlDeviceGetPcieReplayCounter`. Not 0 on good GPUs either.
    pub replays: Reading<u32>,
}

/// One NVLink of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvLink {
    /// Its number.
    pub link: u32,
    /// True if it is active: `nvmlDeviceGetNvLinkState`.
    #[serde(default)]
    pub active: Reading<bool>,
    /// `nvmlDeviceGetNvLinkVersion`.
    #[serde(default)]
    pub version: Reading<u32>,
    /// `nvmlDeviceGetNvLinkRemoteDeviceType`.
    #[serde(default)]
    pub remote: Reading<NvLinkRemote>,
    /// `nvmlDeviceGetNvLinkRemotePciInfo_v2`; not applicable where the fabric hides it.
    #[serde(default)]
    pub remote_bus_id: Reading<BusId>,
}

impl NvLink {
    /// A link of which nothing else is known.
    pub fn new(link: u32) -> Self {
        let (active, version) = Default::default();
        let (remote, remote_bus_id) = Default::default();
        Self { link, active, version, remote, remote_bus_id }
    }
}

/// `nvmlIntNvLinkDeviceType_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NvLinkRemote {
    /// A GPU.
    Gpu,
    /// An IBM POWER processor.
    Ibmnpu,
    /// An NVSwitch.
    Switch,
    /// NVML does not know.
    Unknown,
}

/// What a pair of GPUs can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerLink {
    /// The one with the lower bus id.
    pub a: BusId,
    /// The other.
    pub b: BusId,
    /// Over NVLink: capability index `NVML_P2P_CAPS_INDEX_NVLINK`.
    pub nvlink: P2pStatus,
}

/// `nvmlGpuP2PStatus_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum P2pStatus {
    /// It works.
    Ok,
    /// Chipset without it.
    ChipsetNotSupported,
    /// GPU without it.
    GpuNotSupported,
    /// Topology without it.
    TopologyNotSupported,
    /// Switched off by a registry key.
    DisabledByRegkey,
    /// Not supported.
    NotSupported,
    /// NVML does not know.
    Unknown,
}

/// A GPU's place in an NVSwitch fabric: `nvmlGpuFabricInfo_v3_t`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fabric {
    /// How far registration is.
    pub state: FabricState,
    /// `nvmlReturn_t` of the registration; 0 is success. Says something only once it is completed.
    pub status: u32,
    /// UUID of the NVLink domain; all zero on a node with its own switches.
    pub cluster_uuid: String,
    /// Fabric clique: the partition.
    pub clique: u32,
    /// Health; not applicable for a driver that does not tell.
    #[serde(default)]
    pub health: Reading<FabricHealth>,
}

/// `NVML_GPU_FABRIC_STATE_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FabricState {
    /// Not started.
    NotStarted,
    /// In progress: as a rule for a while after boot.
    InProgress,
    /// Completed.
    Completed,
}

/// Health of a GPU's place in the fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FabricHealth {
    /// `healthMask`.
    pub mask: u32,
    /// `healthSummary`: 0 not supported, 1 healthy, 2 unhealthy, 3 limited capacity. None before its
    /// version 3.
    pub summary: Option<u8>,
}

/// What a health mask complains of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FabricFault {
    /// Less bandwidth than there should be.
    DegradedBandwidth,
    /// Routes are being recovered.
    RouteRecovery,
    /// A route is unhealthy.
    RouteUnhealthy,
    /// Recovery from an access timeout.
    AccessTimeoutRecovery,
    /// A wrong system GUID.
    IncorrectSysGuid,
    /// A wrong chassis serial number.
    IncorrectChassis,
    /// In no partition.
    NoPartition,
    /// Too few NVLinks.
    InsufficientNvlinks,
    /// Firmware of the GPU does not fit.
    IncompatibleFirmware,
    /// In a wrong place.
    InvalidLocation,
    /// The GPU is in a wrong state.
    InvalidGpuState,
    /// Another wrong configuration, which this program does not know.
    OtherConfiguration,
    /// No partition is assigned.
    PartitionNotAssigned,
    /// The global fabric manager is not connected.
    FabricManagerDisconnected,
}

impl FabricFault {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DegradedBandwidth => "degraded bandwidth",
            Self::RouteRecovery => "route recovery in progress",
            Self::RouteUnhealthy => "a route is unhealthy",
            Self::AccessTimeoutRecovery => "recovering from an access timeout",
            Self::IncorrectSysGuid => "incorrect system GUID",
            Self::IncorrectChassis => "incorrect chassis serial number",
            Self::NoPartition => "no partition",
            Self::InsufficientNvlinks => "insufficient NVLinks",
            Self::IncompatibleFirmware => "incompatible GPU firmware",
            Self::InvalidLocation => "invalid location",
            Self::InvalidGpuState => "invalid state of the GPU",
            Self::OtherConfiguration => "incorrect configuration",
            Self::PartitionNotAssigned => "no partition assigned",
            Self::FabricManagerDisconnected => "global fabric manager disconnected",
        }
    }
}

impl FabricHealth {
    /// What the mask complains of. Source: nvml.h, API 13, `NVML_GPU_FABRIC_HEALTH_MASK_*`.
    pub fn faults(self) -> Vec<FabricFault> {
        let at = |shift: u32, width: u32| (self.mask >> shift) & width;
        // In two-bit fields 0 is "not supported", and the value beside it is the complaint.
        let flags = [
            (0, 1, FabricFault::DegradedBandwidth),
            (2, 1, FabricFault::RouteRecovery),
            (4, 1, FabricFault::RouteUnhealthy),
            (6, 1, FabricFault::AccessTimeoutRecovery),
            (12, 2, FabricFault::PartitionNotAssigned),
            (14, 2, FabricFault::FabricManagerDisconnected),
        ];
        let flags = flags.into_iter().filter(|(shift, bad, _)| at(*shift, 3) == *bad);
        let mut faults: Vec<FabricFault> = flags.map(|(_, _, fault)| fault).collect();
        faults.extend(match at(8, 0xf) {
            0 | 1 => None,
            2 => Some(FabricFault::IncorrectSysGuid),
            3 => Some(FabricFault::IncorrectChassis),
            4 => Some(FabricFault::NoPartition),
            5 => Some(FabricFault::InsufficientNvlinks),
            6 => Some(FabricFault::IncompatibleFirmware),
            7 => Some(FabricFault::InvalidLocation),
            8 => Some(FabricFault::InvalidGpuState),
            _ => Some(FabricFault::OtherConfiguration),
        });
        faults.sort_unstable();
        faults
    }
}

/// Link of a GPU to a Grace processor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct C2c {
    /// `nvmlDeviceGetC2cModeInfoV`; not applicable without such a link.
    pub enabled: Reading<bool>,
}

/// NUMA nodes of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Numa {
    /// The node that is the GPU's own memory, on Grace: `nvmlDeviceGetNumaNodeId`.
    pub own_node: Reading<u32>,
    /// NUMA nodes nearby, rising: `nvmlDeviceGetMemoryAffinity`.
    pub near_nodes: Reading<Vec<u32>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(mask: u32) -> Vec<FabricFault> {
        FabricHealth { mask, summary: None }.faults()
    }

    #[test]
    fn a_mask_says_what_is_wrong() {
        assert_eq!(faults(0), [], "a driver that supports none of it");
        // Not degraded, no recovery, healthy routes, no timeout, configuration right, assigned,
        // connected.
        let healthy = 2 | 2 << 2 | 2 << 4 | 2 << 6 | 1 << 8 | 1 << 12 | 1 << 14;
        assert_eq!(faults(healthy), []);
        assert_eq!(faults(healthy & !3 | 1), [FabricFault::DegradedBandwidth]);
        let few = healthy & !(0xf << 8) | 5 << 8;
        assert_eq!(faults(few), [FabricFault::InsufficientNvlinks]);
        assert_eq!(faults(healthy | 0xf << 8), [FabricFault::OtherConfiguration]);
        let lost = healthy & !(3 << 14) | 2 << 14;
        assert_eq!(faults(lost), [FabricFault::FabricManagerDisconnected]);
    }
}
