//! MIG: modes, instances, devices, and what the driver offers.

use fleetc_schema::mig::Placement;
use fleetc_schema::units::Mib;
use serde::{Deserialize, Serialize};

use super::Reading;
use super::gpu::Mode;

/// MIG mode of a GPU.
pub type MigMode = Mode;

/// A GPU instance: `nvmlGpuInstanceInfo_t`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuInstanceState {
    /// Its id, which changes each time that it is made.
    pub id: u32,
    /// The profile id, not the NVML enum index.
    pub profile_id: u32,
    /// Where it stands, in memory slices.
    pub placement: Placement,
    /// Compute instances in it.
    #[serde(default)]
    pub compute_instances: Reading<Vec<ComputeInstanceState>>,
}

/// A compute instance: `nvmlComputeInstanceInfo_t`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputeInstanceState {
    /// Its id within the GPU instance.
    pub id: u32,
    /// The profile id: 0 is one slice, 1 is two, as NVML numbers them.
    pub profile_id: u32,
    /// Where it stands in its GPU instance, in compute slices.
    pub placement: Placement,
}

/// A MIG device: what CUDA sees, a compute instance in its GPU instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigDevice {
    /// Its index on the GPU. Indexes have holes.
    pub index: u32,
    /// `MIG-…`.
    #[serde(default)]
    pub uuid: Reading<String>,
    /// `nvmlDeviceGetGpuInstanceId`.
    #[serde(default)]
    pub gpu_instance: Reading<u32>,
    /// `nvmlDeviceGetComputeInstanceId`.
    #[serde(default)]
    pub compute_instance: Reading<u32>,
    /// `nvmlDeviceGetName`, which ends in the profile on new drivers.
    #[serde(default)]
    pub name: Reading<String>,
    /// Memory of its GPU instance, in MiB: `nvmlDeviceGetAttributes_v2`.
    #[serde(rename = "memory_mib", default)]
    pub memory: Reading<Mib>,
    /// Compute slices of its GPU instance, from the same call.
    #[serde(default)]
    pub gpu_instance_slices: Reading<u32>,
    /// Compute slices of its own.
    #[serde(default)]
    pub compute_instance_slices: Reading<u32>,
}

impl MigDevice {
    /// A device of which nothing else is known.
    pub fn new(index: u32) -> Self {
        Self {
            index,
            uuid: Reading::default(),
            gpu_instance: Reading::default(),
            compute_instance: Reading::default(),
            name: Reading::default(),
            memory: Reading::default(),
            gpu_instance_slices: Reading::default(),
            compute_instance_slices: Reading::default(),
        }
    }
}

/// A profile of GPU instances that the driver offers: `nvmlDeviceGetGpuInstanceProfileInfoV`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigProfileState {
    /// The profile id.
    pub id: u32,
    /// Its name, such as `1g.10gb`; not applicable for a driver that does not tell.
    #[serde(default)]
    pub name: Reading<String>,
    /// Compute slices.
    pub slices: u32,
    /// Memory in MiB.
    #[serde(rename = "memory_mib")]
    pub memory: Mib,
    /// How many fit on an empty GPU.
    pub instances: u32,
    /// Where one may stand on an empty GPU: `nvmlDeviceGetGpuInstancePossiblePlacements_v2`. Root only.
    #[serde(default)]
    pub placements: Reading<Vec<Placement>>,
}
