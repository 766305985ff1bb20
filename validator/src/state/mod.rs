//! What was read on a node. Every reading is a value, not applicable, or unknown.
//!
//! Words, units and their meaning are those of nvml.h, API 13; each field names its call or file. A
//! source fills in what it can read; what it leaves out is unknown. Nothing here judges.

mod driver;
mod gpu;
mod health;
mod host;
mod link;
mod mig;

use serde::{Deserialize, Serialize};

use fleetc_schema::pci::BusId;

pub use driver::{Confidential, DriverState, ExcludedGpu, RefusedGpu};
pub use gpu::{
    AddressingMode, Clocks, ComputeMode, Condition, Firmware, GpuState, Identity, Mode, Modes,
    PciGpu, PcieSysfs, Platform, Power, Processes, VirtualizationMode,
};
pub use health::{
    ClocksEventReasons, EccCounts, Health, NvLinkErrors, RecoveryAction, RemappedRows,
    RepairPending, RetiredPages, RowHistogram, Thermal,
};
pub use host::{
    Allocatable, CapDevice, Cpu, DeviceNode, HostState, HugePages, IbPort, KernelLog, LogEvent,
    LogEventKind, MigCap, Mount, NvmeDisk, Service, SlurmGres, UnitState, UnixTime,
};
pub use link::{
    C2c, Fabric, FabricFault, FabricHealth, FabricState, Numa, NvLink, NvLinkRemote, P2pStatus,
    PcieLink, PeerLink,
};
pub use mig::{ComputeInstanceState, GpuInstanceState, MigDevice, MigMode, MigProfileState};

/// One reading. Only a value can fail a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// What was read.
    Value(T),
    /// This GPU, driver or mode has no such thing; says why.
    NotApplicable(String),
    /// It could not be read; says why: an error, no permission, no answer in time.
    Unknown(String),
}

/// The reason of a reading that nobody has come to.
pub(crate) const NOT_READ: &str = "not read";

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self::Unknown(NOT_READ.to_owned())
    }
}

impl<T> Reading<T> {
    /// The value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::NotApplicable(_) | Self::Unknown(_) => None,
        }
    }

    /// Why there is no value, in words; none if there is one.
    pub fn absence(&self) -> Option<String> {
        match self {
            Self::Value(_) => None,
            Self::NotApplicable(why) => Some(format!("not applicable: {why}")),
            Self::Unknown(why) => Some(format!("unknown: {why}")),
        }
    }

    /// The same reading of something else that follows from the value.
    pub fn map<U>(self, other: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Value(value) => Reading::Value(other(value)),
            Self::NotApplicable(why) => Reading::NotApplicable(why),
            Self::Unknown(why) => Reading::Unknown(why),
        }
    }
}

/// What was read on a node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeState {
    /// Version of the NVIDIA driver: `nvmlSystemGetDriverVersion`.
    pub driver: Reading<String>,
    /// What else there is to know of the driver.
    pub driver_state: DriverState,
    /// GPUs that PCI shows, whether the driver could open them or not. No NVSwitches.
    pub pci_gpus: Reading<Vec<PciGpu>>,
    /// GPUs that NVML shows. Bus ids and indexes are distinct.
    pub gpus: Reading<Vec<GpuState>>,
    /// Every pair of GPUs, once: `nvmlDeviceGetP2PStatus`. Pairs with a GPU in MIG mode may be missing.
    pub peers: Reading<Vec<PeerLink>>,
    /// The rest of the node.
    pub host: HostState,
    /// Probes that did not come to their end. Empty if all did.
    pub stuck: Vec<StuckProbe>,
}

/// A probe that NVML left without an answer, or that ended before its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StuckProbe {
    /// The GPU that it was about; none if it was about the node.
    pub gpu: Option<BusId>,
    /// The call that did not come back, such as `nvmlInit_v2`; none if it is not known.
    pub call: Option<String>,
    /// How the probe ended.
    pub end: ProbeEnd,
    /// Its process id.
    pub pid: u32,
}

/// How a probe ended that did not come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ProbeEnd {
    /// No answer in time; it was killed.
    Killed {
        /// How long it was waited for, in milliseconds.
        after_ms: u64,
    },
    /// No answer in time, and it cannot be killed: it waits in the kernel, in state D.
    Unkillable {
        /// How long it was waited for, in milliseconds.
        after_ms: u64,
    },
    /// It still waits in the kernel since an earlier run, so no other was started.
    StillThere,
    /// A signal ended it: the library or the driver crashed.
    Crashed {
        /// The number of the signal.
        signal: i32,
    },
    /// It ended by itself with this exit code, and without an answer.
    Exited {
        /// The exit code.
        code: i32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_exactly_one_of_three() {
        let read = |text: &str| serde_json::from_str::<Reading<u32>>(text);
        assert_eq!(read(r#"{"value": 3}"#).unwrap(), Reading::Value(3));
        let why = "no permission".to_owned();
        assert_eq!(read(r#"{"unknown": "no permission"}"#).unwrap(), Reading::Unknown(why));
        for wrong in [
            "3",
            "null",
            "{}",
            r#"{"value": 3, "unknown": "x"}"#,
            r#"{"unknown": null}"#,
            "\"value\"",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_a_snapshot_leaves_out_is_unknown() {
        let state: NodeState = serde_json::from_str("{}").unwrap();
        assert_eq!(state, NodeState::default());
        assert_eq!(state.driver, Reading::Unknown("not read".into()));
        let gpu = r#"{ "bus_id": "0000:1b:00.0", "index": 0 }"#;
        let gpu: GpuState = serde_json::from_str(gpu).unwrap();
        assert_eq!(gpu, GpuState::new("0000:1b:00.0".parse().unwrap(), 0));
        assert!(serde_json::from_str::<GpuState>("{}").is_err(), "a GPU has a bus id");
        assert!(serde_json::from_str::<NodeState>(r#"{ "more": 1 }"#).is_err());
    }
}
