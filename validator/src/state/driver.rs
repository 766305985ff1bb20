//! The driver, its library, and the GPUs that they refuse.

use serde::{Deserialize, Serialize};

use super::Reading;
use fleetc_schema::pci::BusId;

/// The driver, beside its version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriverState {
    /// Version of the kernel module: `/proc/driver/nvidia/version`. Another than the library's after an
    /// upgrade without a reboot.
    pub kernel_module: Reading<String>,
    /// Version of NVML: `nvmlSystemGetNVMLVersion`.
    pub nvml: Reading<String>,
    /// The latest CUDA that the driver can run, such as `13.0`: `nvmlSystemGetCudaDriverVersion_v2`.
    pub cuda: Reading<String>,
    /// How many GPUs NVML counts: `nvmlDeviceGetCount_v2`. May be more than it gives a handle for.
    pub gpu_count: Reading<u32>,
    /// GPUs that an administrator has excluded: `nvmlGetExcludedDeviceInfoByIndex`.
    pub excluded: Reading<Vec<ExcludedGpu>>,
    /// GPUs that NVML gives no handle for, with its reason.
    pub refused: Vec<RefusedGpu>,
    /// Confidential computing: `nvmlSystemGetConfComputeState`.
    pub confidential: Reading<Confidential>,
}

/// A GPU that the driver leaves alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExcludedGpu {
    /// Where it is.
    pub bus_id: BusId,
    /// Its UUID.
    pub uuid: String,
}

/// A GPU that NVML gives no handle for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedGpu {
    /// Where it is; none if only its index is known.
    pub bus_id: Option<BusId>,
    /// Its NVML index, if it has one.
    pub index: Option<u32>,
    /// `nvmlReturn_t`: 15 lost, 16 reset required, 8 no power, 11 interrupts, 28 not found.
    pub code: u32,
    /// What NVML says, in words.
    pub why: String,
}

/// State of confidential computing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confidential {
    /// True if it is on.
    pub on: bool,
    /// True if it is on for developers, without protection.
    pub dev_tools: bool,
}
