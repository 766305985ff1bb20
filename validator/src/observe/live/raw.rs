//! NVML, called through its C functions. The one place of the program with `unsafe`.
//!
//! `nvml-wrapper-sys` loads the library and has the types; its function table is used as it is, since
//! the safe wrapper has no names for the return codes 23 to 30, cuts field values, and lacks most of
//! what is read here. A function that the driver lacks is a fault of that call only.
//!
//! Each call notes its name first, so that a hang can be named. Source: nvml.h, API 13.

use std::ffi::{CString, OsStr, c_char, c_int, c_uint, c_ulong, c_ulonglong};
use std::mem::{ManuallyDrop, size_of};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nvml_wrapper_sys::bindings as sys;

use super::probe::entering;
use crate::state::Condition;

/// Why a call gave no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// What it returned: `nvmlReturn_t`.
    Code(u32),
    /// The driver's library has no such function.
    Missing(&'static str),
}

/// The outcome of a call.
pub(super) type Outcome<T> = Result<T, Fault>;

pub(super) const INVALID_ARGUMENT: Fault = Fault::Code(2);
pub(super) const NOT_SUPPORTED: Fault = Fault::Code(3);
pub(super) const NO_PERMISSION: Fault = Fault::Code(4);
pub(super) const NOT_FOUND: Fault = Fault::Code(6);
const INSUFFICIENT_SIZE: Fault = Fault::Code(7);
pub(super) const VERSION_MISMATCH: Fault = Fault::Code(25);
const NOT_READY: u32 = 27;

/// How often calls that are not ready are made again, all of a process together, and after how long.
static RETRIES: AtomicU32 = AtomicU32::new(20);
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// The most entries that any list of NVML is given room for.
const MOST: usize = 4096;

/// The library, loaded.
///
/// It is never unloaded: what the library does then could let go the GPUs before all are read.
pub(super) struct Nvml {
    lib: ManuallyDrop<sys::NvmlLib>,
}

/// A GPU, or a MIG device. Lives as long as the process: nothing here shuts NVML down.
#[derive(Clone, Copy)]
pub(super) struct Device(sys::nvmlDevice_t);

/// A GPU instance.
#[derive(Clone, Copy)]
pub(super) struct GpuInstance(sys::nvmlGpuInstance_t);

/// Where an instance stands, and what it is of.
pub(super) struct InstanceInfo {
    pub(super) id: u32,
    pub(super) profile_id: u32,
    pub(super) start: u32,
    pub(super) size: u32,
}

/// A profile of GPU instances.
pub(super) struct ProfileInfo {
    pub(super) id: u32,
    pub(super) slices: u32,
    pub(super) instances: u32,
    pub(super) memory_mib: u64,
    /// None from a driver that does not tell.
    pub(super) name: Option<String>,
}

/// Fabric information, of whichever version.
pub(super) struct FabricInfo {
    pub(super) cluster_uuid: [u8; 16],
    pub(super) status: u32,
    pub(super) clique: u32,
    pub(super) state: u8,
    pub(super) health: Option<(u32, Option<u8>)>,
}

/// Calls a function of the table, with its name noted, and again while NVML is not ready.
macro_rules! call {
    ($nvml:expr, $symbol:ident ( $($arg:expr),* $(,)? )) => {
        match &$nvml.lib.$symbol {
            Ok(function) => {
                entering(stringify!($symbol));
                loop {
                    // SAFETY: the function has this signature in nvml.h; every pointer is to a live
                    // local of the right type, with its version or room set as the header asks, or to
                    // a handle that NVML gave out and that stays valid while the process lives.
                    let code = unsafe { function($($arg),*) };
                    if code != NOT_READY || !has_retry() {
                        break answer(code);
                    }
                    std::thread::sleep(RETRY_AFTER);
                }
            }
            Err(_) => Err(Fault::Missing(stringify!($symbol))),
        }
    };
}

/// The gravest that any call has said of the GPU: lost, else a reset required, else 0.
static GRAVEST: AtomicU32 = AtomicU32::new(0);
const LOST: u32 = 15;
const RESET_REQUIRED: u32 = 16;

/// What the calls of this process say about the GPU that it is about.
pub(super) fn condition() -> Condition {
    match GRAVEST.load(Ordering::Relaxed) {
        LOST => Condition::Lost,
        RESET_REQUIRED => Condition::ResetRequired,
        _ => Condition::Usable,
    }
}

fn answer(code: u32) -> Outcome<()> {
    match code {
        0 => return Ok(()),
        LOST => GRAVEST.store(LOST, Ordering::Relaxed),
        RESET_REQUIRED => {
            // A lost GPU stays lost.
            let _ = GRAVEST.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
        }
        _ => {}
    }
    Err(Fault::Code(code))
}

/// Takes one of the retries, if any is left.
fn has_retry() -> bool {
    let left = |left: u32| left.checked_sub(1);
    RETRIES.try_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
}

/// A struct of C whose fields are numbers and arrays of them, all zero.
macro_rules! zeroed {
    ($kind:ty) => {
        // SAFETY: all bits zero is a value of every such struct: they hold integers, arrays of
        // integers and null pointers.
        unsafe { std::mem::zeroed::<$kind>() }
    };
}

/// `NVML_STRUCT_VERSION`: the size of a struct and the number of its version.
fn version_of<T>(version: u32) -> c_uint {
    u32::try_from(size_of::<T>()).unwrap_or(u32::MAX) | (version << 24)
}

/// Text in a buffer of C, up to its zero.
fn text(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> =
        buffer.iter().map(|c| c.to_ne_bytes()[0]).take_while(|b| *b != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Methods for functions that take a device and give one number.
macro_rules! numbers {
    ($($name:ident = $symbol:ident: $kind:ty;)+) => {
        impl Nvml {
            $(pub(super) fn $name(&self, device: Device) -> Outcome<$kind> {
                let mut value: $kind = 0;
                call!(self, $symbol(device.0, &mut value))?;
                Ok(value)
            })+
        }
    };
}

numbers! {
    index = nvmlDeviceGetIndex: c_uint;
    minor = nvmlDeviceGetMinorNumber: c_uint;
    module_id = nvmlDeviceGetModuleId: c_uint;
    architecture = nvmlDeviceGetArchitecture: c_uint;
    persistence = nvmlDeviceGetPersistenceMode: c_uint;
    compute_mode = nvmlDeviceGetComputeMode: c_uint;
    virtualization = nvmlDeviceGetVirtualizationMode: c_uint;
    power_limit = nvmlDeviceGetPowerManagementLimit: c_uint;
    default_power_limit = nvmlDeviceGetPowerManagementDefaultLimit: c_uint;
    enforced_power_limit = nvmlDeviceGetEnforcedPowerLimit: c_uint;
    pcie_width = nvmlDeviceGetCurrPcieLinkWidth: c_uint;
    pcie_max_width = nvmlDeviceGetMaxPcieLinkWidth: c_uint;
    pcie_generation = nvmlDeviceGetCurrPcieLinkGeneration: c_uint;
    pcie_max_generation = nvmlDeviceGetMaxPcieLinkGeneration: c_uint;
    pcie_device_generation = nvmlDeviceGetGpuMaxPcieLinkGeneration: c_uint;
    pcie_replays = nvmlDeviceGetPcieReplayCounter: c_uint;
    max_mig_devices = nvmlDeviceGetMaxMigDeviceCount: c_uint;
    gpu_instance_id = nvmlDeviceGetGpuInstanceId: c_uint;
    compute_instance_id = nvmlDeviceGetComputeInstanceId: c_uint;
    retired_pages_pending = nvmlDeviceGetRetiredPagesPendingStatus: c_uint;
    numa_node = nvmlDeviceGetNumaNodeId: c_uint;
    event_reasons = nvmlDeviceGetCurrentClocksEventReasons: c_ulonglong;
    throttle_reasons = nvmlDeviceGetCurrentClocksThrottleReasons: c_ulonglong;
}

/// Methods for functions that take a device and fill a buffer with text.
macro_rules! texts {
    ($($name:ident = $symbol:ident: $room:literal;)+) => {
        impl Nvml {
            $(pub(super) fn $name(&self, device: Device) -> Outcome<String> {
                let mut buffer: [c_char; $room] = [0; $room];
                call!(self, $symbol(device.0, buffer.as_mut_ptr(), $room))?;
                Ok(text(&buffer))
            })+
        }
    };
}

texts! {
    name = nvmlDeviceGetName: 96;
    uuid = nvmlDeviceGetUUID: 96;
    serial = nvmlDeviceGetSerial: 30;
    board_part_number = nvmlDeviceGetBoardPartNumber: 80;
    vbios = nvmlDeviceGetVbiosVersion: 32;
    inforom = nvmlDeviceGetInforomImageVersion: 16;
}

/// Methods for functions that take a device and give two numbers.
macro_rules! pairs {
    ($($name:ident = $symbol:ident: $kind:ty;)+) => {
        impl Nvml {
            $(pub(super) fn $name(&self, device: Device) -> Outcome<($kind, $kind)> {
                let (mut a, mut b): ($kind, $kind) = (0, 0);
                call!(self, $symbol(device.0, &mut a, &mut b))?;
                Ok((a, b))
            })+
        }
    };
}

pairs! {
    mig_mode = nvmlDeviceGetMigMode: c_uint;
    ecc_mode = nvmlDeviceGetEccMode: c_uint;
    power_constraints = nvmlDeviceGetPowerManagementLimitConstraints: c_uint;
    compute_capability = nvmlDeviceGetCudaComputeCapability: c_int;
}

/// Methods for functions that take a device and a number, and give one number.
macro_rules! asked {
    ($($name:ident = $symbol:ident;)+) => {
        impl Nvml {
            $(pub(super) fn $name(&self, device: Device, of: u32) -> Outcome<u32> {
                let mut value: c_uint = 0;
                call!(self, $symbol(device.0, of, &mut value))?;
                Ok(value)
            })+
        }
    };
}

asked! {
    max_clock = nvmlDeviceGetMaxClockInfo;
    application_clock = nvmlDeviceGetApplicationsClock;
    nvlink_state = nvmlDeviceGetNvLinkState;
    nvlink_version = nvmlDeviceGetNvLinkVersion;
    nvlink_remote = nvmlDeviceGetNvLinkRemoteDeviceType;
    temperature = nvmlDeviceGetTemperature;
    temperature_threshold = nvmlDeviceGetTemperatureThreshold;
}

impl Nvml {
    /// Loads the library.
    ///
    /// # Errors
    /// What the loader says.
    pub(super) fn load(library: &OsStr) -> Result<Self, String> {
        entering("dlopen");
        // SAFETY: loading runs the library's initialisers. It is the NVML that the administrator has
        // installed or named, and this process exists to call it.
        let lib = unsafe { sys::NvmlLib::new(library) };
        lib.map(|lib| Self { lib: ManuallyDrop::new(lib) }).map_err(|error| error.to_string())
    }

    pub(super) fn init(&self) -> Outcome<()> {
        call!(self, nvmlInit_v2())
    }

    pub(super) fn driver_version(&self) -> Outcome<String> {
        let mut buffer: [c_char; 80] = [0; 80];
        call!(self, nvmlSystemGetDriverVersion(buffer.as_mut_ptr(), 80))?;
        Ok(text(&buffer))
    }

    pub(super) fn nvml_version(&self) -> Outcome<String> {
        let mut buffer: [c_char; 80] = [0; 80];
        call!(self, nvmlSystemGetNVMLVersion(buffer.as_mut_ptr(), 80))?;
        Ok(text(&buffer))
    }

    /// 1000 × major + 10 × minor.
    pub(super) fn cuda_version(&self) -> Outcome<i32> {
        let mut version: c_int = 0;
        call!(self, nvmlSystemGetCudaDriverVersion_v2(&mut version))?;
        Ok(version)
    }

    /// Feature and developers' mode.
    pub(super) fn confidential(&self) -> Outcome<(u32, u32)> {
        let mut state = zeroed!(sys::nvmlConfComputeSystemState_t);
        call!(self, nvmlSystemGetConfComputeState(&mut state))?;
        Ok((state.ccFeature, state.devToolsMode))
    }

    pub(super) fn count(&self) -> Outcome<u32> {
        let mut count: c_uint = 0;
        call!(self, nvmlDeviceGetCount_v2(&mut count))?;
        Ok(count)
    }

    pub(super) fn by_index(&self, index: u32) -> Outcome<Device> {
        let mut device: sys::nvmlDevice_t = null_mut();
        call!(self, nvmlDeviceGetHandleByIndex_v2(index, &mut device))?;
        Ok(Device(device))
    }

    pub(super) fn by_bus_id(&self, bus_id: &str) -> Outcome<Device> {
        let bus_id = CString::new(bus_id).map_err(|_| INVALID_ARGUMENT)?;
        let mut device: sys::nvmlDevice_t = null_mut();
        call!(self, nvmlDeviceGetHandleByPciBusId_v2(bus_id.as_ptr(), &mut device))?;
        Ok(Device(device))
    }

    /// Bus id, `pciDeviceId` and `pciSubSystemId`.
    pub(super) fn pci(&self, device: Device) -> Outcome<(String, u32, u32)> {
        let mut pci = zeroed!(sys::nvmlPciInfo_t);
        call!(self, nvmlDeviceGetPciInfo_v3(device.0, &mut pci))?;
        Ok((text(&pci.busId), pci.pciDeviceId, pci.pciSubSystemId))
    }

    pub(super) fn excluded_count(&self) -> Outcome<u32> {
        let mut count: c_uint = 0;
        call!(self, nvmlGetExcludedDeviceCount(&mut count))?;
        Ok(count)
    }

    /// Bus id and UUID of an excluded GPU.
    pub(super) fn excluded(&self, index: u32) -> Outcome<(String, String)> {
        let mut info = zeroed!(sys::nvmlExcludedDeviceInfo_t);
        call!(self, nvmlGetExcludedDeviceInfoByIndex(index, &mut info))?;
        Ok((text(&info.pciInfo.busId), text(&info.uuid)))
    }

    /// Chassis serial number, slot, tray, host, peer type, module.
    pub(super) fn platform(&self, device: Device) -> Outcome<(String, [u8; 5])> {
        let mut info = zeroed!(sys::nvmlPlatformInfo_t);
        info.version = version_of::<sys::nvmlPlatformInfo_t>(2);
        call!(self, nvmlDeviceGetPlatformInfo(device.0, &mut info))?;
        let serial = info.chassisSerialNumber.iter().copied().take_while(|b| *b != 0);
        let serial = String::from_utf8_lossy(&serial.collect::<Vec<u8>>()).into_owned();
        let sys::nvmlPlatformInfo_t { slotNumber, trayIndex, hostId, peerType, moduleId, .. } =
            info;
        Ok((serial, [slotNumber, trayIndex, hostId, peerType, moduleId]))
    }

    /// Total, used: bytes.
    pub(super) fn memory(&self, device: Device) -> Outcome<(u64, u64)> {
        let mut memory = zeroed!(sys::nvmlMemory_v2_t);
        memory.version = version_of::<sys::nvmlMemory_v2_t>(2);
        match call!(self, nvmlDeviceGetMemoryInfo_v2(device.0, &mut memory)) {
            Ok(()) => Ok((memory.total, memory.used)),
            // Drivers before 510 have the first version only, which counts what is reserved as used.
            Err(Fault::Missing(_) | VERSION_MISMATCH) => {
                let mut memory = zeroed!(sys::nvmlMemory_t);
                call!(self, nvmlDeviceGetMemoryInfo(device.0, &mut memory))?;
                Ok((memory.total, memory.used))
            }
            Err(fault) => Err(fault),
        }
    }

    /// The profile with this enum index, from 0: not the profile id.
    pub(super) fn profile(&self, device: Device, index: u32) -> Outcome<ProfileInfo> {
        let mut info = zeroed!(sys::nvmlGpuInstanceProfileInfo_v2_t);
        info.version = version_of::<sys::nvmlGpuInstanceProfileInfo_v2_t>(2);
        match call!(self, nvmlDeviceGetGpuInstanceProfileInfoV(device.0, index, &mut info)) {
            Ok(()) => Ok(ProfileInfo {
                id: info.id,
                slices: info.sliceCount,
                instances: info.instanceCount,
                memory_mib: info.memorySizeMB,
                name: Some(text(&info.name)),
            }),
            // A wrong version is a wrong argument to some drivers, and the versioned call wants MIG
            // mode on where the first one does not.
            Err(Fault::Missing(_) | VERSION_MISMATCH | INVALID_ARGUMENT | NOT_SUPPORTED) => {
                let mut info = zeroed!(sys::nvmlGpuInstanceProfileInfo_t);
                call!(self, nvmlDeviceGetGpuInstanceProfileInfo(device.0, index, &mut info))?;
                Ok(ProfileInfo {
                    id: info.id,
                    slices: info.sliceCount,
                    instances: info.instanceCount,
                    memory_mib: info.memorySizeMB,
                    name: None,
                })
            }
            Err(fault) => Err(fault),
        }
    }

    /// Start and size of every placement of a profile id.
    pub(super) fn placements(&self, device: Device, profile_id: u32) -> Outcome<Vec<(u32, u32)>> {
        let mut count: c_uint = 0;
        let none = null_mut();
        call!(
            self,
            nvmlDeviceGetGpuInstancePossiblePlacements_v2(device.0, profile_id, none, &mut count)
        )?;
        let empty = sys::nvmlGpuInstancePlacement_t { start: 0, size: 0 };
        let mut placements = vec![empty; room(count)];
        count = length(&placements);
        call!(
            self,
            nvmlDeviceGetGpuInstancePossiblePlacements_v2(
                device.0,
                profile_id,
                placements.as_mut_ptr(),
                &mut count,
            )
        )?;
        Ok(first(placements, count).map(|placement| (placement.start, placement.size)).collect())
    }

    /// GPU instances of a profile id, of which so many can be.
    pub(super) fn gpu_instances(
        &self,
        device: Device,
        profile_id: u32,
        most: u32,
    ) -> Outcome<Vec<GpuInstance>> {
        let mut instances: Vec<sys::nvmlGpuInstance_t> = vec![null_mut(); room(most)];
        let mut count = length(&instances);
        call!(
            self,
            nvmlDeviceGetGpuInstances(device.0, profile_id, instances.as_mut_ptr(), &mut count)
        )?;
        Ok(first(instances, count).map(GpuInstance).collect())
    }

    pub(super) fn gpu_instance(&self, instance: GpuInstance) -> Outcome<InstanceInfo> {
        let mut info = zeroed!(sys::nvmlGpuInstanceInfo_t);
        call!(self, nvmlGpuInstanceGetInfo(instance.0, &mut info))?;
        let sys::nvmlGpuInstancePlacement_t { start, size } = info.placement;
        Ok(InstanceInfo { id: info.id, profile_id: info.profileId, start, size })
    }

    /// Profile id and the most instances of the profile with this enum index.
    pub(super) fn compute_profile(&self, instance: GpuInstance, index: u32) -> Outcome<(u32, u32)> {
        let mut info = zeroed!(sys::nvmlComputeInstanceProfileInfo_t);
        // Engines are always shared: `NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED`.
        call!(self, nvmlGpuInstanceGetComputeInstanceProfileInfo(instance.0, index, 0, &mut info))?;
        Ok((info.id, info.instanceCount))
    }

    /// Compute instances of a profile id, of which so many can be.
    pub(super) fn compute_instances(
        &self,
        instance: GpuInstance,
        profile_id: u32,
        most: u32,
    ) -> Outcome<Vec<Outcome<InstanceInfo>>> {
        let mut instances: Vec<sys::nvmlComputeInstance_t> = vec![null_mut(); room(most)];
        let mut count = length(&instances);
        call!(
            self,
            nvmlGpuInstanceGetComputeInstances(
                instance.0,
                profile_id,
                instances.as_mut_ptr(),
                &mut count,
            )
        )?;
        let of = |instance| {
            let mut info = zeroed!(sys::nvmlComputeInstanceInfo_t);
            call!(self, nvmlComputeInstanceGetInfo_v2(instance, &mut info))?;
            let sys::nvmlComputeInstancePlacement_t { start, size } = info.placement;
            Ok(InstanceInfo { id: info.id, profile_id: info.profileId, start, size })
        };
        Ok(first(instances, count).map(of).collect())
    }

    pub(super) fn mig_device(&self, device: Device, index: u32) -> Outcome<Device> {
        let mut mig: sys::nvmlDevice_t = null_mut();
        call!(self, nvmlDeviceGetMigDeviceHandleByIndex(device.0, index, &mut mig))?;
        Ok(Device(mig))
    }

    /// Memory in MiB, slices of the GPU instance, slices of the compute instance.
    pub(super) fn attributes(&self, mig: Device) -> Outcome<(u64, u32, u32)> {
        let mut attributes = zeroed!(sys::nvmlDeviceAttributes_t);
        call!(self, nvmlDeviceGetAttributes_v2(mig.0, &mut attributes))?;
        let slices = (attributes.gpuInstanceSliceCount, attributes.computeInstanceSliceCount);
        Ok((attributes.memorySizeMB, slices.0, slices.1))
    }

    pub(super) fn addressing(&self, device: Device) -> Outcome<u32> {
        let mut mode = zeroed!(sys::nvmlDeviceAddressingMode_t);
        mode.version = version_of::<sys::nvmlDeviceAddressingMode_t>(1);
        call!(self, nvmlDeviceGetAddressingMode(device.0, &mut mode))?;
        Ok(mode.value)
    }

    pub(super) fn nvlink_remote_bus_id(&self, device: Device, link: u32) -> Outcome<String> {
        let mut pci = zeroed!(sys::nvmlPciInfo_t);
        call!(self, nvmlDeviceGetNvLinkRemotePciInfo_v2(device.0, link, &mut pci))?;
        Ok(text(&pci.busId))
    }

    /// An error counter of a link: 0 replay, 1 recovery, 2 CRC of flits.
    pub(super) fn nvlink_errors(&self, device: Device, link: u32, counter: u32) -> Outcome<u64> {
        let mut value: c_ulonglong = 0;
        call!(self, nvmlDeviceGetNvLinkErrorCounter(device.0, link, counter, &mut value))?;
        Ok(value)
    }

    /// Status of a pair for a capability: 2 is NVLink.
    pub(super) fn p2p(&self, a: Device, b: Device, capability: u32) -> Outcome<u32> {
        let mut status: c_uint = 0;
        call!(self, nvmlDeviceGetP2PStatus(a.0, b.0, capability, &mut status))?;
        Ok(status)
    }

    pub(super) fn fabric(&self, device: Device) -> Outcome<FabricInfo> {
        let mut info = zeroed!(sys::nvmlGpuFabricInfo_v3_t);
        for version in [3, 2] {
            info.version = match version {
                3 => version_of::<sys::nvmlGpuFabricInfo_v3_t>(3),
                _ => version_of::<sys::nvmlGpuFabricInfo_v2_t>(2),
            };
            // The third version is the second with one more field at its end.
            match call!(self, nvmlDeviceGetGpuFabricInfoV(device.0, &mut info)) {
                Ok(()) => {
                    let summary = (version == 3).then_some(info.healthSummary);
                    return Ok(FabricInfo {
                        cluster_uuid: info.clusterUuid,
                        status: info.status,
                        clique: info.cliqueId,
                        state: info.state,
                        health: Some((info.healthMask, summary)),
                    });
                }
                Err(VERSION_MISMATCH | INVALID_ARGUMENT) => {}
                Err(Fault::Missing(_)) => break,
                Err(fault) => return Err(fault),
            }
        }
        let mut info = zeroed!(sys::nvmlGpuFabricInfo_t);
        call!(self, nvmlDeviceGetGpuFabricInfo(device.0, &mut info))?;
        Ok(FabricInfo {
            cluster_uuid: info.clusterUuid,
            status: info.status,
            clique: info.cliqueId,
            state: info.state,
            health: None,
        })
    }

    pub(super) fn c2c(&self, device: Device) -> Outcome<bool> {
        let mut info = zeroed!(sys::nvmlC2cModeInfo_v1_t);
        call!(self, nvmlDeviceGetC2cModeInfoV(device.0, &mut info))?;
        Ok(info.isC2cEnabled != 0)
    }

    /// NUMA nodes nearby: bit N of word W is node 64 × W + N.
    pub(super) fn memory_affinity(&self, device: Device) -> Outcome<[c_ulong; 16]> {
        let mut nodes: [c_ulong; 16] = [0; 16];
        // Scope 0 is the NUMA node.
        call!(self, nvmlDeviceGetMemoryAffinity(device.0, 16, nodes.as_mut_ptr(), 0))?;
        Ok(nodes)
    }

    /// Correctable, uncorrectable, pending, failure.
    pub(super) fn remapped_rows(&self, device: Device) -> Outcome<[u32; 4]> {
        let (mut a, mut b, mut c, mut d): (c_uint, c_uint, c_uint, c_uint) = (0, 0, 0, 0);
        call!(self, nvmlDeviceGetRemappedRows(device.0, &mut a, &mut b, &mut c, &mut d))?;
        Ok([a, b, c, d])
    }

    /// Banks: max, high, partial, low, none.
    pub(super) fn row_histogram(&self, device: Device) -> Outcome<[u32; 5]> {
        let mut banks = zeroed!(sys::nvmlRowRemapperHistogramValues_t);
        call!(self, nvmlDeviceGetRowRemapperHistogram(device.0, &mut banks))?;
        Ok([banks.max, banks.high, banks.partial, banks.low, banks.none])
    }

    /// How many pages were retired for this cause: 0 single-bit errors, 1 a double-bit error.
    pub(super) fn retired_pages(&self, device: Device, cause: u32) -> Outcome<u32> {
        let mut count: c_uint = 0;
        let (pages, times) = (null_mut(), null_mut());
        // Without room for addresses it gives their number, with or without an error for it.
        match call!(self, nvmlDeviceGetRetiredPages_v2(device.0, cause, &mut count, pages, times)) {
            Ok(()) | Err(INSUFFICIENT_SIZE) => Ok(count),
            Err(fault) => Err(fault),
        }
    }

    /// Errors of a kind (0 corrected, 1 not) since a time (0 driver load, 1 ever).
    pub(super) fn ecc_errors(&self, device: Device, kind: u32, since: u32) -> Outcome<u64> {
        let mut count: c_ulonglong = 0;
        call!(self, nvmlDeviceGetTotalEccErrors(device.0, kind, since, &mut count))?;
        Ok(count)
    }

    pub(super) fn sram_threshold_exceeded(&self, device: Device) -> Outcome<bool> {
        let mut status = zeroed!(sys::nvmlEccSramErrorStatus_t);
        status.version = version_of::<sys::nvmlEccSramErrorStatus_t>(1);
        call!(self, nvmlDeviceGetSramEccErrorStatus(device.0, &mut status))?;
        Ok(status.bThresholdExceeded != 0)
    }

    /// Channel and TPC.
    pub(super) fn repair_pending(&self, device: Device) -> Outcome<(bool, bool)> {
        let mut status = zeroed!(sys::nvmlRepairStatus_t);
        status.version = version_of::<sys::nvmlRepairStatus_t>(1);
        call!(self, nvmlDeviceGetRepairStatus(device.0, &mut status))?;
        Ok((status.bChannelRepairPending != 0, status.bTpcRepairPending != 0))
    }

    pub(super) fn margin_temperature(&self, device: Device) -> Outcome<i32> {
        let mut margin = zeroed!(sys::nvmlMarginTemperature_t);
        margin.version = version_of::<sys::nvmlMarginTemperature_t>(1);
        call!(self, nvmlDeviceGetMarginTemperature(device.0, &mut margin))?;
        Ok(margin.marginTemperature)
    }

    /// The value of a field that is an unsigned number.
    pub(super) fn field(&self, device: Device, field: u32) -> Outcome<u64> {
        let mut value = zeroed!(sys::nvmlFieldValue_t);
        value.fieldId = field;
        call!(self, nvmlDeviceGetFieldValues(device.0, 1, &mut value))?;
        match (value.nvmlReturn, value.valueType) {
            // SAFETY: the type says which member of the union was written, and every member is plain
            // numbers over bytes that were zeroed before.
            (0, 1) => Ok(u64::from(unsafe { value.value.uiVal })),
            // SAFETY: as above.
            (0, 2) => Ok(unsafe { value.value.ulVal }),
            // SAFETY: as above.
            (0, 3) => Ok(unsafe { value.value.ullVal }),
            (0, _) => Err(Fault::Code(999)),
            (code, _) => Err(Fault::Code(code)),
        }
    }

    /// Whether the checksum of the InfoROM holds.
    pub(super) fn validate_inforom(&self, device: Device) -> Outcome<()> {
        call!(self, nvmlDeviceValidateInforom(device.0))
    }

    /// GSP's firmware version. The buffer takes `NVML_GSP_FIRMWARE_VERSION_BUF_SIZE`, 0x40.
    pub(super) fn gsp(&self, device: Device) -> Outcome<String> {
        let mut buffer: [c_char; 0x40] = [0; 0x40];
        call!(self, nvmlDeviceGetGspFirmwareVersion(device.0, buffer.as_mut_ptr()))?;
        Ok(text(&buffer))
    }
}

/// Methods for functions that list the processes of a GPU: their ids.
macro_rules! processes {
    ($($name:ident = $symbol:ident;)+) => {
        impl Nvml {
            $(pub(super) fn $name(&self, device: Device) -> Outcome<Vec<u32>> {
                let mut count: c_uint = 0;
                match call!(self, $symbol(device.0, &mut count, null_mut())) {
                    Ok(()) => return Ok(Vec::new()),
                    Err(INSUFFICIENT_SIZE) => {}
                    Err(fault) => return Err(fault),
                }
                // More may have started since.
                let most = room(count.saturating_add(64));
                let mut processes = vec![zeroed!(sys::nvmlProcessInfo_t); most];
                count = length(&processes);
                let infos = processes.as_mut_ptr();
                call!(self, $symbol(device.0, &mut count, infos))?;
                Ok(first(processes, count).map(|process| process.pid).collect())
            })+
        }
    };
}

processes! {
    compute_processes = nvmlDeviceGetComputeRunningProcesses_v3;
    mps_processes = nvmlDeviceGetMPSComputeRunningProcesses_v3;
}

/// Methods for functions that take a device and set one number of it. They need root.
macro_rules! setters {
    ($($name:ident = $symbol:ident;)+) => {
        impl Nvml {
            $(pub(super) fn $name(&self, device: Device, value: u32) -> Outcome<()> {
                call!(self, $symbol(device.0, value))
            })+
        }
    };
}

// These three and no others: what takes a reset, a reboot or a new driver is for people to do.
setters! {
    set_persistence = nvmlDeviceSetPersistenceMode;
    set_compute_mode = nvmlDeviceSetComputeMode;
    set_power_limit = nvmlDeviceSetPowerManagementLimit;
}

/// Room for so many entries, within reason; at least one, so that a pointer is never dangling.
fn room(count: u32) -> usize {
    usize::try_from(count).unwrap_or(MOST).clamp(1, MOST)
}

fn length<T>(list: &[T]) -> c_uint {
    c_uint::try_from(list.len()).unwrap_or(0)
}

/// The entries that NVML filled in.
fn first<T>(list: Vec<T>, count: c_uint) -> impl Iterator<Item = T> {
    list.into_iter().take(usize::try_from(count).unwrap_or(0))
}
