//! What was read on a node. Every reading is a value, not applicable, or unknown.

use fleetc_schema::mig::Placement;
use fleetc_schema::units::Mib;
use serde::{Deserialize, Serialize};

use fleetc_schema::pci::{BusId, DeviceId};

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
}

/// What was read on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Version of the NVIDIA driver: `nvmlSystemGetDriverVersion`.
    pub driver: Reading<String>,
    /// GPUs that PCI shows, whether the driver could open them or not. No NVSwitches.
    pub pci_gpus: Reading<Vec<PciGpu>>,
    /// GPUs that NVML shows. Bus ids and indexes are distinct.
    pub gpus: Reading<Vec<GpuState>>,
}

/// A GPU as PCI shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PciGpu {
    /// Where it is.
    pub bus_id: BusId,
    /// What it is.
    pub device_id: DeviceId,
}

/// A GPU as NVML shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuState {
    /// Where it is.
    pub bus_id: BusId,
    /// Its NVML index.
    pub index: u32,
    /// `nvmlDeviceGetName`.
    pub name: Reading<String>,
    /// The device half of `pciDeviceId`.
    pub device_id: Reading<DeviceId>,
    /// Total memory in MiB: `nvmlDeviceGetMemoryInfo_v2`.
    #[serde(rename = "memory_mib")]
    pub memory: Reading<Mib>,
    /// `nvmlDeviceGetMigMode`; not applicable on a GPU without MIG.
    pub mig_mode: Reading<MigMode>,
    /// GPU instances; not applicable while MIG mode is off.
    pub gpu_instances: Reading<Vec<GpuInstanceState>>,
}

/// MIG mode of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigMode {
    /// What it is.
    pub current: bool,
    /// What it will be after a reset of the GPU or a reboot.
    pub pending: bool,
}

/// A GPU instance: `nvmlGpuInstanceInfo_t`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuInstanceState {
    /// Its id, which changes each time that it is made.
    pub id: u32,
    /// The profile id, not the NVML enum index.
    pub profile_id: u32,
    /// Where it stands, in memory slices.
    #[serde(with = "StrictPlacement")]
    pub placement: Placement,
}

/// Reads a [`Placement`] and refuses unknown fields, which the schema's type lets pass.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Placement", deny_unknown_fields)]
struct StrictPlacement {
    start: u8,
    size: u8,
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
}
