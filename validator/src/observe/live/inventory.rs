//! The probe of the node: whether NVML can be used at all, what it counts, and how GPUs are paired.

use std::ffi::OsStr;

use fleetc_schema::pci::BusId;
use serde::{Deserialize, Serialize};

use super::probe::{Probe, absent, reading, unknown_value};
use super::raw::{Device, Fault, NOT_SUPPORTED, Nvml};
use crate::state::{Confidential, DriverState, ExcludedGpu, P2pStatus, PeerLink, Reading};

/// The most GPUs of a node that are asked for.
const MOST_GPUS: u32 = 256;

/// `NVML_P2P_CAPS_INDEX_NVLINK`.
const CAPABILITY_NVLINK: u32 = 2;

/// What the probe of the node finds.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Inventory {
    /// How far it came.
    pub(super) progress: Progress,
    /// Version of the driver.
    pub(super) driver: Reading<String>,
    /// What else there is to know of it. The kernel module is read elsewhere.
    pub(super) driver_state: DriverState,
    /// GPUs that NVML gives a handle for.
    pub(super) listed: Vec<Listed>,
    /// Indexes that it counts and gives no handle for, with its return code.
    pub(super) without_handle: Vec<(u32, u32)>,
    /// Pairs of GPUs.
    pub(super) peers: Reading<Vec<PeerLink>>,
}

/// How far the probe of the node came.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Progress {
    /// NVML is not initialised yet.
    #[default]
    Starting,
    /// The library cannot be loaded; what the loader says.
    NoLibrary(String),
    /// `nvmlInit_v2` refuses; its return code.
    NoInit(u32),
    /// NVML is initialised, and its GPUs are being listed.
    Listing,
    /// Every GPU that NVML counts was asked for.
    Listed,
}

/// A GPU that NVML gives a handle for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listed {
    /// Its index.
    pub(super) index: u32,
    /// Where it is.
    pub(super) bus_id: BusId,
}

/// Loads and initialises NVML, and reads the inventory.
pub(super) fn read(library: &OsStr, probe: &Probe<Inventory>) {
    let nvml = match Nvml::load(library) {
        Ok(nvml) => nvml,
        Err(why) => return probe.set(|found| found.progress = Progress::NoLibrary(why)),
    };
    let outcome = nvml.init();
    // Works without an initialised NVML, and says what does not fit together.
    let version = reading(nvml.nvml_version());
    probe.set(|found| found.driver_state.nvml = version);
    if let Err(fault) = outcome {
        return probe.set(|found| found.progress = Progress::NoInit(code_of(fault)));
    }
    let driver = reading(nvml.driver_version());
    let cuda = reading(nvml.cuda_version());
    let cuda = cuda.map(|version| format!("{}.{}", version / 1000, version % 1000 / 10));
    probe.set(|found| {
        found.progress = Progress::Listing;
        found.driver = driver;
        found.driver_state.cuda = cuda;
    });
    let handles = list(&nvml, probe);
    let excluded = read_excluded(&nvml);
    let confidential =
        reading(nvml.confidential().map(|(feature, dev_tools)| Confidential {
            on: feature != 0,
            dev_tools: dev_tools != 0,
        }));
    probe.set(|found| {
        found.driver_state.excluded = excluded;
        found.driver_state.confidential = confidential;
    });
    let peers = read_peers(&nvml, &handles);
    probe.set(|found| found.peers = peers);
}

/// A missing function is what NVML itself calls 13, `FUNCTION_NOT_FOUND`.
fn code_of(fault: Fault) -> u32 {
    match fault {
        Fault::Code(code) => code,
        Fault::Missing(_) => 13,
    }
}

/// Asks for every GPU by its index. One that is refused costs no other.
fn list(nvml: &Nvml, probe: &Probe<Inventory>) -> Vec<(BusId, Device)> {
    let mut handles = Vec::new();
    let count = match nvml.count() {
        Ok(count) => count,
        Err(fault) => {
            probe.set(|found| found.driver_state.gpu_count = absent(fault));
            return handles;
        }
    };
    probe.set(|found| found.driver_state.gpu_count = Reading::Value(count));
    for index in 0..count.min(MOST_GPUS) {
        // A GPU without a handle is asked for once more by its bus id, in its own probe, which says
        // why it is refused.
        let found = nvml.by_index(index).and_then(|device| Ok((device, nvml.pci(device)?)));
        let (device, (bus_id, ..)) = match found {
            Ok(found) => found,
            Err(fault) => {
                let code = code_of(fault);
                probe.set(|found| found.without_handle.push((index, code)));
                continue;
            }
        };
        let Ok(bus_id) = bus_id.parse::<BusId>() else { continue };
        probe.set(|found| found.listed.push(Listed { index, bus_id }));
        handles.push((bus_id, device));
    }
    probe.set(|found| found.progress = Progress::Listed);
    handles
}

fn read_excluded(nvml: &Nvml) -> Reading<Vec<ExcludedGpu>> {
    let count = match nvml.excluded_count() {
        Ok(count) => count,
        Err(fault) => return absent(fault),
    };
    let mut excluded = Vec::new();
    for index in 0..count.min(MOST_GPUS) {
        let (bus_id, uuid) = match nvml.excluded(index) {
            Ok(gpu) => gpu,
            Err(fault) => return absent(fault),
        };
        let Ok(bus_id) = bus_id.parse::<BusId>() else {
            return unknown_value("nvmlGetExcludedDeviceInfoByIndex", bus_id);
        };
        excluded.push(ExcludedGpu { bus_id, uuid });
    }
    Reading::Value(excluded)
}

fn has_mig_on(nvml: &Nvml, device: Device) -> bool {
    nvml.mig_mode(device).is_ok_and(|(current, _)| current != 0)
}

fn read_peers(nvml: &Nvml, handles: &[(BusId, Device)]) -> Reading<Vec<PeerLink>> {
    let mut sorted = handles.to_vec();
    sorted.sort_by_key(|(bus_id, _)| *bus_id);
    let mut peers = Vec::new();
    let mut rest = sorted.as_slice();
    while let [(a, of_a), others @ ..] = rest {
        for (b, of_b) in others {
            let nvlink = match nvml.p2p(*of_a, *of_b, CAPABILITY_NVLINK) {
                Ok(0) => P2pStatus::Ok,
                Ok(1) => P2pStatus::ChipsetNotSupported,
                Ok(2) => P2pStatus::GpuNotSupported,
                Ok(3) => P2pStatus::TopologyNotSupported,
                Ok(4) => P2pStatus::DisabledByRegkey,
                Ok(5) => P2pStatus::NotSupported,
                Ok(6) => P2pStatus::Unknown,
                Ok(other) => return unknown_value("nvmlDeviceGetP2PStatus", other),
                // Not between GPUs that are cut into instances.
                Err(NOT_SUPPORTED) if has_mig_on(nvml, *of_a) || has_mig_on(nvml, *of_b) => {
                    continue;
                }
                Err(fault) => return absent(fault),
            };
            peers.push(PeerLink { a: *a, b: *b, nvlink });
        }
        rest = others;
    }
    Reading::Value(peers)
}
