//! What the library answers: a node with its GPUs, and the faults that are played.
//!
//! It is written as JSON into the file that [`STATE_VARIABLE`](crate::STATE_VARIABLE) names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Node {
    /// `nvmlSystemGetDriverVersion`.
    pub driver: String,
    /// `nvmlSystemGetNVMLVersion`.
    pub nvml: String,
    /// 1000 × major + 10 × minor.
    pub cuda: i32,
    /// What `nvmlInit_v2` returns.
    pub init: u32,
    /// True if the caller may do what takes a privileged user.
    pub root: bool,
    /// What `nvmlDeviceGetCount_v2` gives, if not the number of GPUs.
    pub count: Option<u32>,
    /// GPUs that are excluded: bus id and UUID.
    pub excluded: Vec<(String, String)>,
    /// The GPUs, by index.
    pub gpus: Vec<Gpu>,
    /// `NVML_GPU_INSTANCE_PROFILE_COUNT` of this library.
    pub profile_count: u32,
    /// The latest version of a call's struct that this library knows, if not the newest.
    pub versions: BTreeMap<String, u32>,
    /// `nvmlGpuP2PStatus_t` of every pair.
    pub p2p: u32,
    /// Confidential computing: feature and developers' mode. Not supported if none.
    pub confidential: Option<(u32, u32)>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            driver: "580.105.08".into(),
            nvml: "13.580.105.08".into(),
            cuda: 13_000,
            init: 0,
            root: true,
            count: None,
            excluded: Vec::new(),
            gpus: Vec::new(),
            profile_count: 18,
            versions: BTreeMap::new(),
            p2p: 0,
            confidential: None,
            faults: Vec::new(),
        }
    }
}

/// Something that goes wrong in a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The function, by its exact name.
    pub call: String,
    /// The index of the GPU; none for every one, and for calls without a GPU.
    #[serde(default)]
    pub gpu: Option<usize>,
    /// How many calls of it, in all processes, go right before.
    #[serde(default)]
    pub after: u64,
    /// What happens.
    pub effect: Effect,
}

/// What happens in a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Effect {
    /// It does not come back.
    Hang,
    /// It comes back after so many milliseconds.
    Slow(u64),
    /// It returns this code.
    Return(u32),
    /// The process dies in it.
    Crash,
    /// The GPU has this value from then on, for this call: a JSON pointer into [`Gpu`] and the value.
    Set(String, Value),
}

/// A GPU. What is none is not supported, if nothing else is said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gpu {
    /// In the form of NVML.
    pub bus_id: String,
    /// `pciDeviceId`: the device in the upper half, the vendor in the lower.
    pub device_id: u32,
    /// `pciSubSystemId`.
    pub subsystem_id: u32,
    /// Product.
    pub name: String,
    /// UUID.
    pub uuid: String,
    /// Serial number.
    pub serial: Option<String>,
    /// Board part number.
    pub board_part_number: Option<String>,
    /// Minor number.
    pub minor: u32,
    /// Slot on the baseboard.
    pub module_id: Option<u32>,
    /// `nvmlDeviceArchitecture_t`.
    pub architecture: u32,
    /// Compute capability.
    pub capability: (i32, i32),
    /// Total, reserved and used memory in bytes.
    pub memory: (u64, u64, u64),
    /// Whether nothing works but the count: what every call returns, 15 lost or 16 reset required.
    pub dead: Option<u32>,
    /// MIG; none on a GPU without.
    pub mig: Option<Mig>,
    /// ECC mode, current and pending.
    pub ecc: Option<(u32, u32)>,
    /// Persistence mode.
    pub persistence: u32,
    /// Compute mode.
    pub compute_mode: u32,
    /// Virtualization mode.
    pub virtualization: u32,
    /// Addressing mode.
    pub addressing: Option<u32>,
    /// Limit, default, enforced, least, most: milliwatts.
    pub power: Option<[u32; 5]>,
    /// SMs and memory, in MHz.
    pub max_clocks: (u32, u32),
    /// Application clocks; none of a driver that calls them deprecated.
    pub application_clocks: Option<(u32, u32)>,
    /// Width, most, generation, most, the device's own.
    pub pcie: [u32; 5],
    /// Replays.
    pub replays: u32,
    /// NVLinks.
    pub nvlinks: Vec<NvLink>,
    /// Fabric.
    pub fabric: Option<Fabric>,
    /// C2C.
    pub c2c: Option<u32>,
    /// The GPU's own NUMA node.
    pub numa_node: Option<u32>,
    /// NUMA nodes nearby, as bits.
    pub near_nodes: u64,
    /// Correctable, uncorrectable, pending, failure.
    pub remapped_rows: Option<[u32; 4]>,
    /// Banks: max, high, partial, low, none.
    pub row_histogram: Option<[u32; 5]>,
    /// Single-bit, double-bit, pending.
    pub retired_pages: Option<[u32; 3]>,
    /// Volatile corrected and not, aggregate corrected and not; none without ECC.
    pub ecc_errors: Option<[u64; 4]>,
    /// Whether SRAM errors passed their threshold. Root only.
    pub sram_exceeded: Option<u32>,
    /// Channel and TPC repair pending.
    pub repair: Option<(u32, u32)>,
    /// Field 230.
    pub recovery_action: Option<u32>,
    /// Clocks event reasons.
    pub event_reasons: u64,
    /// Degrees.
    pub temperature: u32,
    /// Shutdown and slowdown.
    pub thresholds: (u32, u32),
    /// Margin.
    pub margin: Option<i32>,
    /// VBIOS.
    pub vbios: String,
    /// InfoROM image.
    pub inforom: Option<String>,
    /// Whether the InfoROM's checksum is wrong.
    pub inforom_corrupted: bool,
    /// GSP firmware.
    pub gsp: Option<String>,
    /// Compute processes.
    pub processes: Vec<u32>,
    /// Processes that compute through MPS.
    pub mps_processes: Vec<u32>,
    /// Platform: chassis serial, slot, tray, host, peer type, module.
    pub platform: Option<(String, [u8; 5])>,
}

impl Default for Gpu {
    fn default() -> Self {
        Self {
            bus_id: "00000000:1B:00.0".into(),
            device_id: 0x2330_10de,
            subsystem_id: 0x16c1_10de,
            name: "NVIDIA H100 80GB HBM3".into(),
            uuid: "GPU-11111111-2222-3333-4444-555555555555".into(),
            serial: Some("1650000000001".into()),
            board_part_number: Some("692-2G520-0200-000".into()),
            minor: 0,
            module_id: Some(1),
            architecture: 9,
            capability: (9, 0),
            memory: (81_559 << 20, 600 << 20, 0),
            dead: None,
            mig: None,
            ecc: Some((1, 1)),
            persistence: 1,
            compute_mode: 0,
            virtualization: 0,
            addressing: Some(0),
            power: Some([700_000, 700_000, 700_000, 200_000, 700_000]),
            max_clocks: (1_980, 2_619),
            application_clocks: None,
            pcie: [16, 16, 5, 5, 5],
            replays: 0,
            nvlinks: Vec::new(),
            fabric: None,
            c2c: None,
            numa_node: None,
            near_nodes: 1,
            remapped_rows: Some([0; 4]),
            row_histogram: Some([1_280, 0, 0, 0, 0]),
            retired_pages: None,
            ecc_errors: Some([0; 4]),
            sram_exceeded: Some(0),
            repair: None,
            recovery_action: Some(0),
            event_reasons: 1,
            temperature: 32,
            thresholds: (92, 89),
            margin: Some(50),
            vbios: "96.00.89.00.01".into(),
            inforom: Some("G520.0200.00.05".into()),
            inforom_corrupted: false,
            gsp: Some("580.105.08".into()),
            processes: Vec::new(),
            mps_processes: Vec::new(),
            platform: None,
        }
    }
}

/// MIG of a GPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mig {
    /// Mode.
    pub current: u32,
    /// Mode after the next reset.
    pub pending: u32,
    /// Profiles.
    pub profiles: Vec<Profile>,
    /// GPU instances.
    pub gpu_instances: Vec<GpuInstance>,
    /// `nvmlDeviceGetMaxMigDeviceCount` while the mode is on.
    pub max_devices: u32,
}

/// A profile of GPU instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Enum index: `NVML_GPU_INSTANCE_PROFILE_*`.
    pub index: u32,
    /// Profile id.
    pub id: u32,
    /// Name, such as `MIG 1g.10gb`.
    pub name: String,
    /// Compute slices.
    pub slices: u32,
    /// How many fit.
    pub instances: u32,
    /// MiB.
    pub memory: u64,
    /// Start and size of each.
    pub placements: Vec<(u32, u32)>,
}

/// A GPU instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuInstance {
    /// Id.
    pub id: u32,
    /// Profile id.
    pub profile_id: u32,
    /// Start and size.
    pub placement: (u32, u32),
    /// Compute instances.
    pub compute_instances: Vec<ComputeInstance>,
}

/// A compute instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputeInstance {
    /// Id in the GPU instance.
    pub id: u32,
    /// Profile id.
    pub profile_id: u32,
    /// Start and size.
    pub placement: (u32, u32),
    /// Index of its MIG device on the GPU.
    pub device_index: u32,
    /// UUID of its MIG device.
    pub uuid: String,
}

/// An NVLink.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvLink {
    /// Whether it is active.
    pub active: u32,
    /// Version.
    pub version: u32,
    /// Kind of the remote: 0 GPU, 2 switch.
    pub remote: u32,
    /// Bus id of the remote.
    pub remote_bus_id: String,
    /// Replays, recoveries, CRC errors of flits.
    #[serde(default)]
    pub errors: [u64; 3],
}

/// Fabric information.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fabric {
    /// UUID of the domain.
    pub cluster_uuid: [u8; 16],
    /// Status.
    pub status: u32,
    /// Clique.
    pub clique: u32,
    /// State.
    pub state: u8,
    /// Health mask.
    pub mask: u32,
    /// Health summary.
    pub summary: u8,
}
