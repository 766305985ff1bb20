//! A GPU: as PCI shows it, and as NVML does.

use serde::{Deserialize, Serialize};

use super::Reading;
use super::health::Health;
use super::link::{C2c, Fabric, Numa, NvLink, PcieLink};
use super::mig::{GpuInstanceState, MigDevice, MigMode, MigProfileState};
use fleetc_schema::pci::{BusId, DeviceId};
use fleetc_schema::units::{Mhz, Mib, Milliwatts};

/// A GPU as PCI shows it: `/sys/bus/pci/devices`, vendor 0x10de, class 0x0300 or 0x0302.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PciGpu {
    /// Where it is.
    pub bus_id: BusId,
    /// What it is.
    pub device_id: DeviceId,
    /// True if it answers on the bus: a GPU that has fallen off it reads as all ones.
    #[serde(default)]
    pub answers: Reading<bool>,
    /// The kernel driver that has it, such as `nvidia` or `vfio-pci`; not applicable if none has.
    #[serde(default)]
    pub kernel_driver: Reading<String>,
    /// Its link, read without the driver.
    #[serde(default)]
    pub link: PcieSysfs,
}

impl PciGpu {
    /// A GPU of which nothing else is known.
    pub fn new(bus_id: BusId, device_id: DeviceId) -> Self {
        let (answers, kernel_driver) = Default::default();
        Self { bus_id, device_id, answers, kernel_driver, link: PcieSysfs::default() }
    }
}

/// A PCIe link as sysfs shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PcieSysfs {
    /// Lanes in use: `current_link_width`.
    pub width: Reading<u8>,
    /// Lanes that device and slot have: `max_link_width`.
    pub max_width: Reading<u8>,
    /// Generation in use, of `current_link_speed`. Falls when idle.
    pub generation: Reading<u8>,
    /// Generation of the device, of `max_link_speed`.
    pub max_generation: Reading<u8>,
    /// NUMA node of the slot: `numa_node`; not applicable where the kernel says -1.
    pub numa_node: Reading<u32>,
}

/// A GPU as NVML shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuState {
    /// Where it is.
    pub bus_id: BusId,
    /// Its NVML index.
    pub index: u32,
    /// Whether any call said that the GPU is lost, or has to be reset: `nvmlReturn_t` 15 and 16.
    #[serde(default)]
    pub condition: Reading<Condition>,
    /// `nvmlDeviceGetName`.
    #[serde(default)]
    pub name: Reading<String>,
    /// The device half of `pciDeviceId`.
    #[serde(default)]
    pub device_id: Reading<DeviceId>,
    /// Total memory in MiB: `nvmlDeviceGetMemoryInfo_v2`.
    #[serde(rename = "memory_mib", default)]
    pub memory: Reading<Mib>,
    /// Memory in use, in MiB, without what the driver keeps back. From the same call.
    #[serde(rename = "memory_used_mib", default)]
    pub memory_used: Reading<Mib>,
    /// `nvmlDeviceGetMigMode`; not applicable on a GPU without MIG.
    #[serde(default)]
    pub mig_mode: Reading<MigMode>,
    /// GPU instances; not applicable while MIG mode is off. Only root may list them.
    #[serde(default)]
    pub gpu_instances: Reading<Vec<GpuInstanceState>>,
    /// MIG devices, which anyone may list; not applicable while MIG mode is off.
    #[serde(default)]
    pub mig_devices: Reading<Vec<MigDevice>>,
    /// Profiles of GPU instances that the driver offers; not applicable on a GPU without MIG.
    #[serde(default)]
    pub mig_profiles: Reading<Vec<MigProfileState>>,
    /// Numbers and names of this very GPU.
    #[serde(default)]
    pub identity: Identity,
    /// Modes that someone sets.
    #[serde(default)]
    pub modes: Modes,
    /// Power limits.
    #[serde(default)]
    pub power: Power,
    /// Clocks.
    #[serde(default)]
    pub clocks: Clocks,
    /// Its PCIe link.
    #[serde(default)]
    pub pcie: PcieLink,
    /// Its NVLinks; not applicable on a GPU without any, and while it has MIG mode on.
    #[serde(default)]
    pub nvlinks: Reading<Vec<NvLink>>,
    /// `nvmlDeviceGetGpuFabricInfoV`; not applicable on a GPU outside an NVSwitch fabric.
    #[serde(default)]
    pub fabric: Reading<Fabric>,
    /// Its link to a Grace processor.
    #[serde(default)]
    pub c2c: C2c,
    /// NUMA nodes.
    #[serde(default)]
    pub numa: Numa,
    /// Memory errors, temperature, throttling.
    #[serde(default)]
    pub health: Health,
    /// What runs on it.
    #[serde(default)]
    pub processes: Processes,
    /// Versions of its firmware.
    #[serde(default)]
    pub firmware: Firmware,
}

impl GpuState {
    /// A GPU of which nothing else is known.
    pub fn new(bus_id: BusId, index: u32) -> Self {
        Self {
            bus_id,
            index,
            condition: Reading::default(),
            name: Reading::default(),
            device_id: Reading::default(),
            memory: Reading::default(),
            memory_used: Reading::default(),
            mig_mode: Reading::default(),
            gpu_instances: Reading::default(),
            mig_devices: Reading::default(),
            mig_profiles: Reading::default(),
            identity: Identity::default(),
            modes: Modes::default(),
            power: Power::default(),
            clocks: Clocks::default(),
            pcie: PcieLink::default(),
            nvlinks: Reading::default(),
            fabric: Reading::default(),
            c2c: C2c::default(),
            numa: Numa::default(),
            health: Health::default(),
            processes: Processes::default(),
            firmware: Firmware::default(),
        }
    }
}

/// What calls say about the GPU that they are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// None complains.
    Usable,
    /// It has fallen off the bus, or is not accessible otherwise.
    Lost,
    /// It has to be reset before it can be used.
    ResetRequired,
}

/// Numbers and names of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Identity {
    /// `nvmlDeviceGetUUID`, `GPU-…`.
    pub uuid: Reading<String>,
    /// `nvmlDeviceGetSerial`.
    pub serial: Reading<String>,
    /// `nvmlDeviceGetBoardPartNumber`.
    pub board_part_number: Reading<String>,
    /// The N of `/dev/nvidiaN`: `nvmlDeviceGetMinorNumber`. Not the index.
    pub minor: Reading<u32>,
    /// Slot on the baseboard: `nvmlDeviceGetModuleId`. 0 or 1 on cards without one.
    pub module_id: Reading<u32>,
    /// `nvmlDeviceArchitecture_t` as NVML numbers it: 7 Ampere, 8 Ada, 9 Hopper, 10 Blackwell.
    pub architecture: Reading<u32>,
    /// Such as `9.0`: `nvmlDeviceGetCudaComputeCapability`.
    pub compute_capability: Reading<String>,
    /// Both halves of `pciSubSystemId`, as NVML gives it.
    pub subsystem: Reading<u32>,
    /// `nvmlDeviceGetPlatformInfo`; not applicable before Blackwell, and outside a rack system.
    pub platform: Reading<Platform>,
}

/// Where a GPU stands in a rack system: `nvmlPlatformInfo_v2_t`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    /// Serial number of the chassis.
    pub chassis_serial: String,
    /// Slot of the tray in the rack.
    pub slot: u8,
    /// Index of the tray among those of its kind.
    pub tray: u8,
    /// Number of the host on its tray.
    pub host: u8,
    /// 0 a direct link, 1 a switch.
    pub peer_type: u8,
    /// Number of the module on its host.
    pub module_id: u8,
}

/// A mode that takes effect at the next reset or reboot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    /// What it is.
    pub current: bool,
    /// What it will be after a reset of the GPU or a reboot.
    pub pending: bool,
}

/// Modes that someone sets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Modes {
    /// `nvmlDeviceGetEccMode`.
    pub ecc: Reading<Mode>,
    /// `nvmlDeviceGetPersistenceMode`.
    pub persistence: Reading<bool>,
    /// `nvmlDeviceGetComputeMode`. Ends with a reboot.
    pub compute: Reading<ComputeMode>,
    /// `nvmlDeviceGetAddressingMode`.
    pub addressing: Reading<AddressingMode>,
    /// `nvmlDeviceGetVirtualizationMode`.
    pub virtualization: Reading<VirtualizationMode>,
}

/// `nvmlComputeMode_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComputeMode {
    /// Several contexts.
    Default,
    /// One context of one thread; no driver offers it any more.
    ExclusiveThread,
    /// None.
    Prohibited,
    /// One context.
    ExclusiveProcess,
}

/// `nvmlDeviceAddressingModeType_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressingMode {
    /// Heterogeneous memory management, in software.
    Hmm,
    /// Address translation services, in hardware, on Grace.
    Ats,
    /// Neither.
    None,
}

/// `nvmlGpuVirtualizationMode_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VirtualizationMode {
    /// A real machine.
    None,
    /// Passed through to this virtual machine.
    Passthrough,
    /// A vGPU of this virtual machine.
    Vgpu,
    /// A host of vGPUs.
    HostVgpu,
    /// A host of vGPUs over SR-IOV.
    HostVsga,
}

/// Power limits, in milliwatts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Power {
    /// What someone set: `nvmlDeviceGetPowerManagementLimit`.
    #[serde(rename = "limit_mw")]
    pub limit: Reading<Milliwatts>,
    /// `nvmlDeviceGetPowerManagementDefaultLimit`.
    #[serde(rename = "default_limit_mw")]
    pub default_limit: Reading<Milliwatts>,
    /// What holds: the least of all limiters. `nvmlDeviceGetEnforcedPowerLimit`.
    #[serde(rename = "enforced_limit_mw")]
    pub enforced_limit: Reading<Milliwatts>,
    /// The least that may be set: `nvmlDeviceGetPowerManagementLimitConstraints`.
    #[serde(rename = "min_limit_mw")]
    pub min_limit: Reading<Milliwatts>,
    /// The most that may be set.
    #[serde(rename = "max_limit_mw")]
    pub max_limit: Reading<Milliwatts>,
}

/// Clocks, in MHz.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clocks {
    /// `nvmlDeviceGetMaxClockInfo`, of the SMs.
    #[serde(rename = "max_sm_mhz")]
    pub max_sm: Reading<Mhz>,
    /// The same, of the memory.
    #[serde(rename = "max_memory_mhz")]
    pub max_memory: Reading<Mhz>,
    /// Application clock of the SMs: `nvmlDeviceGetApplicationsClock`. New drivers have none.
    #[serde(rename = "application_sm_mhz")]
    pub application_sm: Reading<Mhz>,
    /// The same, of the memory.
    #[serde(rename = "application_memory_mhz")]
    pub application_memory: Reading<Mhz>,
}

/// What runs on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Processes {
    /// Process ids, rising: `nvmlDeviceGetComputeRunningProcesses_v3`. Those of other namespaces are
    /// missing in a container.
    pub compute: Reading<Vec<u32>>,
}

/// Versions of a GPU's firmware.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Firmware {
    /// `nvmlDeviceGetVbiosVersion`.
    pub vbios: Reading<String>,
    /// `nvmlDeviceGetInforomImageVersion`.
    pub inforom: Reading<String>,
    /// `nvmlDeviceValidateInforom`: true if its checksum holds. Read on demand, since it reads flash.
    pub inforom_valid: Reading<bool>,
    /// `nvmlDeviceGetGspFirmwareVersion`; not applicable where no GSP runs.
    pub gsp: Reading<String>,
}
