//! Setting something of a GPU: the side of the process that does it, and what it tells.
//!
//! Only what works at once, takes no reset, and ends with the driver or a reboot. Nothing is set on a GPU
//! that a process has a context on. Source: nvml.h, API 13: the three functions need root; a power limit
//! outside of the constraints is INVALID_ARGUMENT.

use std::ffi::OsStr;
use std::fs::File;
use std::time::Duration;

use fleetc_schema::pci::BusId;
use fleetc_schema::units::Milliwatts;
use serde::{Deserialize, Serialize};

use super::engine::Ended;
use super::probe::{Probe, words};
use super::raw::{Device, Fault, NO_PERMISSION, NOT_SUPPORTED, Nvml, Outcome};

/// `NVML_COMPUTEMODE_DEFAULT`.
const COMPUTE_MODE_DEFAULT: u32 = 0;

/// Something of a GPU that may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Persistence mode.
    Persistence(bool),
    /// Compute mode Default.
    ComputeModeDefault,
    /// Power limit.
    PowerLimit(Milliwatts),
}

/// What the process tells.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    /// Nothing yet.
    #[default]
    Nothing,
    /// It is set.
    Set,
    /// It is not, and why.
    NotSet(String),
}

/// What came of it.
pub(super) fn outcome(ended: &Ended) -> Result<(), String> {
    match ended.told::<Told>().map(|told| told.state) {
        Some(Told::Set) => Ok(()),
        Some(Told::NotSet(why)) => Err(why),
        Some(Told::Nothing) | None => Err("its process told nothing".to_owned()),
    }
}

/// The side of the process.
pub(super) fn run(tell: File, gpu: BusId, limit: Duration, library: &OsStr, setting: Setting) {
    let probe = Probe::start(tell, Told::default(), limit);
    let told = match set(gpu, library, setting) {
        Ok(()) => Told::Set,
        Err(why) => Told::NotSet(why),
    };
    probe.set(|state| *state = told);
    probe.finish();
}

fn set(gpu: BusId, library: &OsStr, setting: Setting) -> Result<(), String> {
    let nvml = Nvml::load(library)?;
    let failed = |call: &str, fault: Fault| format!("{call}: {}", words(fault));
    nvml.init().map_err(|fault| failed("nvmlInit_v2", fault))?;
    let device = nvml.by_bus_id(&gpu.to_string());
    let device = device.map_err(|fault| failed("nvmlDeviceGetHandleByPciBusId_v2", fault))?;
    // It was looked at before; a process may have started since.
    is_free(&nvml, device)?;
    let (call, set): (&str, Outcome<()>) = match setting {
        Setting::Persistence(mode) => {
            ("nvmlDeviceSetPersistenceMode", nvml.set_persistence(device, mode.into()))
        }
        Setting::ComputeModeDefault => {
            ("nvmlDeviceSetComputeMode", nvml.set_compute_mode(device, COMPUTE_MODE_DEFAULT))
        }
        Setting::PowerLimit(limit) => {
            ("nvmlDeviceSetPowerManagementLimit", nvml.set_power_limit(device, limit.0))
        }
    };
    set.map_err(|fault| match fault {
        NO_PERMISSION => format!("{call}: no permission: only root may set it"),
        fault => failed(call, fault),
    })
}

/// Nothing has a context on the GPU, itself or through MPS.
fn is_free(nvml: &Nvml, device: Device) -> Result<(), String> {
    let compute = nvml.compute_processes(device);
    let mps = match nvml.mps_processes(device) {
        // A driver without the call, or a GPU without MPS.
        Err(Fault::Missing(_) | NOT_SUPPORTED) => Ok(Vec::new()),
        answer => answer,
    };
    for (call, processes) in [
        ("nvmlDeviceGetComputeRunningProcesses_v3", compute),
        ("nvmlDeviceGetMPSComputeRunningProcesses_v3", mps),
    ] {
        match processes {
            Ok(processes) => match processes.first() {
                None => {}
                Some(pid) => return Err(format!("process {pid} is on the GPU")),
            },
            Err(fault) => {
                return Err(format!(
                    "whether a process is on the GPU is unknown: {call}: {}",
                    words(fault)
                ));
            }
        }
    }
    Ok(())
}
