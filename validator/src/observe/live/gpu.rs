//! Reading one GPU.
//!
//! What decides most comes first, so that a GPU that hangs later has been judged as far as can be.

use std::collections::BTreeSet;

use fleetc_schema::mig::Placement;
use fleetc_schema::pci::{BusId, DeviceId};
use fleetc_schema::units::{Celsius, Mhz, Mib, Milliwatts};

use super::GpuProbe;
use super::probe::{Probe, absent, reading, unknown_value, words};
use super::raw::{
    self, Device, Fault, GpuInstance, INVALID_ARGUMENT, InstanceInfo, NO_PERMISSION, NOT_FOUND,
    NOT_SUPPORTED, Nvml, Outcome,
};
use crate::state::{
    AddressingMode, ClocksEventReasons, ComputeInstanceState, ComputeMode, EccCounts, Fabric,
    FabricHealth, FabricState, GpuInstanceState, GpuState, MigDevice, MigMode, MigProfileState,
    Mode, NvLink, NvLinkErrors, NvLinkRemote, Platform, Reading, RecoveryAction, RemappedRows,
    RepairPending, RetiredPages, RowHistogram, VirtualizationMode,
};

/// Enum indexes of GPU instance profiles that are asked for: `NVML_GPU_INSTANCE_PROFILE_COUNT` is 18
/// in API 13, and more may come.
const PROFILES: u32 = 32;

/// Enum indexes of compute instance profiles: `NVML_COMPUTE_INSTANCE_PROFILE_COUNT` is 9.
const COMPUTE_PROFILES: u32 = 16;

/// NVLinks that are asked for where the driver does not tell how many there are:
/// `NVML_NVLINK_MAX_LINKS` is 18 in API 12, and 36 in the newest.
const NVLINKS: u32 = 36;

/// The most MIG devices of one GPU.
const MIG_DEVICES: u32 = 64;

/// `NVML_FI_DEV_NVLINK_LINK_COUNT`.
const FIELD_NVLINK_COUNT: u32 = 91;
/// `NVML_FI_DEV_GET_GPU_RECOVERY_ACTION`.
const FIELD_RECOVERY_ACTION: u32 = 230;

const MIG_IS_OFF: &str = "MIG mode is off";
const MIG_IS_ON: &str = "MIG mode is on";

/// What is read only on demand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Extra {
    /// The checksum of the InfoROM, which takes a read of flash.
    pub(super) inforom: bool,
}

impl Probe<GpuProbe> {
    fn set_gpu(&self, change: impl FnOnce(&mut GpuState)) {
        self.set(|found| change(&mut found.gpu));
    }
}

/// Reads all of a GPU.
pub(super) fn read(nvml: &Nvml, device: Device, extra: Extra, probe: &Probe<GpuProbe>) {
    read_identity(nvml, device, probe);
    read_volatile(nvml, device, probe);
    probe.tell();
    read_modes(nvml, device, probe);
    read_health(nvml, device, probe);
    read_nvlink_errors(nvml, device, probe);
    read_pcie(nvml, device, probe);
    read_rest(nvml, device, extra, probe);
    read_condition(probe);
}

/// What all calls so far say about the GPU.
pub(super) fn read_condition(probe: &Probe<GpuProbe>) {
    probe.set_gpu(|gpu| gpu.condition = Reading::Value(raw::condition()));
}

/// Reads what is read twice before a node is turned away for it: MIG, NVLinks, fabric.
pub(super) fn read_volatile(nvml: &Nvml, device: Device, probe: &Probe<GpuProbe>) {
    let mode = reading(
        nvml.mig_mode(device)
            .map(|(current, pending)| MigMode { current: current != 0, pending: pending != 0 }),
    );
    let is_on = mode.value().map(|mode| mode.current);
    let has_mig = !matches!(mode, Reading::NotApplicable(_));
    probe.set_gpu(|gpu| gpu.mig_mode = mode);
    read_mig(nvml, device, has_mig, is_on, probe);
    let links = read_nvlinks(nvml, device, is_on);
    probe.set_gpu(|gpu| gpu.nvlinks = links);
    let fabric = read_fabric(nvml, device);
    probe.set_gpu(|gpu| gpu.fabric = fabric);
}

fn read_identity(nvml: &Nvml, device: Device, probe: &Probe<GpuProbe>) {
    let name = reading(nvml.name(device));
    probe.set_gpu(|gpu| gpu.name = name);
    let (device_id, subsystem) = match nvml.pci(device) {
        Ok((_, device_id, subsystem)) => (device_id_of(device_id), Reading::Value(subsystem)),
        Err(fault) => (absent(fault), absent(fault)),
    };
    probe.set_gpu(|gpu| {
        gpu.device_id = device_id;
        gpu.identity.subsystem = subsystem;
    });
    let (total, used) = match nvml.memory(device) {
        Ok((total, used)) => (Reading::Value(mib(total)), Reading::Value(mib(used))),
        Err(fault) => (absent(fault), absent(fault)),
    };
    probe.set_gpu(|gpu| {
        gpu.memory = total;
        gpu.memory_used = used;
    });
    let uuid = reading(nvml.uuid(device));
    let minor = reading(nvml.minor(device));
    probe.set_gpu(|gpu| {
        gpu.identity.uuid = uuid;
        gpu.identity.minor = minor;
    });
}

/// The upper half of `pciDeviceId`; the lower one is the vendor.
fn device_id_of(device_id: u32) -> Reading<DeviceId> {
    match format!("0x{:04x}", device_id >> 16).parse() {
        Ok(id) => Reading::Value(id),
        Err(_) => unknown_value("nvmlDeviceGetPciInfo_v3", device_id),
    }
}

/// Whole MiB, rounded down, as `nvidia-smi` prints them.
fn mib(bytes: u64) -> Mib {
    Mib(bytes >> 20)
}

fn read_mig(
    nvml: &Nvml,
    device: Device,
    has_mig: bool,
    is_on: Option<bool>,
    probe: &Probe<GpuProbe>,
) {
    if !has_mig {
        let none = "the GPU has no MIG";
        return probe.set_gpu(|gpu| {
            gpu.mig_profiles = Reading::NotApplicable(none.to_owned());
            gpu.gpu_instances = Reading::NotApplicable(none.to_owned());
            gpu.mig_devices = Reading::NotApplicable(none.to_owned());
        });
    }
    let profiles = read_profiles(nvml, device);
    let (instances, devices) = match is_on {
        Some(false) => {
            let off = || MIG_IS_OFF.to_owned();
            (Reading::NotApplicable(off()), Reading::NotApplicable(off()))
        }
        _ => {
            let instances = match &profiles {
                Ok(profiles) => read_gpu_instances(nvml, device, profiles),
                Err(fault) => Err(*fault),
            };
            let instances = match instances {
                Err(NO_PERMISSION) => {
                    Reading::Unknown("no permission: only root may list GPU instances".to_owned())
                }
                // MIG mode is said to be on, so this is a contradiction and not an answer.
                Err(fault @ NOT_SUPPORTED) => Reading::Unknown(words(fault)),
                outcome => outcome.unwrap_or_else(absent),
            };
            (instances, read_mig_devices(nvml, device))
        }
    };
    let profiles = match profiles {
        Ok(profiles) => Reading::Value(profiles),
        Err(fault) => absent(fault),
    };
    probe.set_gpu(|gpu| {
        gpu.mig_profiles = profiles;
        gpu.gpu_instances = instances;
        gpu.mig_devices = devices;
    });
}

/// Every profile that the driver offers, by its id.
fn read_profiles(nvml: &Nvml, device: Device) -> Outcome<Vec<MigProfileState>> {
    let mut profiles: Vec<MigProfileState> = Vec::new();
    for index in 0..PROFILES {
        let info = match nvml.profile(device, index) {
            Ok(info) => info,
            // A hole, or the end of what this driver knows.
            Err(NOT_SUPPORTED | INVALID_ARGUMENT | NOT_FOUND) => continue,
            Err(fault) => return Err(fault),
        };
        if profiles.iter().any(|profile| profile.id == info.id) {
            continue;
        }
        let placements = match nvml.placements(device, info.id) {
            Ok(placements) => placed_all(&placements),
            Err(fault) => absent(fault),
        };
        let name = match info.name {
            Some(name) => {
                // Drivers write `MIG 1g.10gb`.
                let short = name.strip_prefix("MIG ").map(str::to_owned);
                Reading::Value(short.unwrap_or(name))
            }
            None => Reading::NotApplicable("told with MIG mode on, by new drivers".to_owned()),
        };
        profiles.push(MigProfileState {
            id: info.id,
            name,
            slices: info.slices,
            memory: Mib(info.memory_mib),
            instances: info.instances,
            placements,
        });
    }
    Ok(profiles)
}

fn placed(start: u32, size: u32) -> Option<Placement> {
    Some(Placement { start: u8::try_from(start).ok()?, size: u8::try_from(size).ok()? })
}

fn placed_all(placements: &[(u32, u32)]) -> Reading<Vec<Placement>> {
    let all: Option<Vec<Placement>> =
        placements.iter().map(|(start, size)| placed(*start, *size)).collect();
    match all {
        Some(mut all) => {
            all.sort_unstable();
            Reading::Value(all)
        }
        None => unknown_value("nvmlDeviceGetGpuInstancePossiblePlacements_v2", "a huge placement"),
    }
}

/// GPU instances of every profile id, in the order of their ids.
fn read_gpu_instances(
    nvml: &Nvml,
    device: Device,
    profiles: &[MigProfileState],
) -> Outcome<Reading<Vec<GpuInstanceState>>> {
    let mut seen = BTreeSet::new();
    let mut instances = Vec::new();
    for profile in profiles {
        for instance in nvml.gpu_instances(device, profile.id, profile.instances)? {
            let info = nvml.gpu_instance(instance)?;
            if !seen.insert(info.id) {
                continue;
            }
            let InstanceInfo { id, profile_id, start, size } = info;
            let Some(placement) = placed(start, size) else {
                return Ok(unknown_value("nvmlGpuInstanceGetInfo", start));
            };
            let compute_instances = read_compute_instances(nvml, instance);
            instances.push(GpuInstanceState { id, profile_id, placement, compute_instances });
        }
    }
    instances.sort_by_key(|instance| instance.id);
    Ok(Reading::Value(instances))
}

fn read_compute_instances(
    nvml: &Nvml,
    instance: GpuInstance,
) -> Reading<Vec<ComputeInstanceState>> {
    let mut ids = BTreeSet::new();
    let mut instances = Vec::new();
    // Every GPU instance has some of the profiles. If all are refused, nothing was listed.
    let mut refused = Some(NOT_SUPPORTED);
    for index in 0..COMPUTE_PROFILES {
        let (profile_id, most) = match nvml.compute_profile(instance, index) {
            Ok(profile) => profile,
            Err(NOT_SUPPORTED | INVALID_ARGUMENT | NOT_FOUND) => continue,
            Err(fault) => return absent(fault),
        };
        let found = match nvml.compute_instances(instance, profile_id, most) {
            Ok(found) => found,
            Err(NOT_SUPPORTED) => continue,
            Err(fault) => return absent(fault),
        };
        refused = None;
        for info in found {
            // One that does not tell of itself is there all the same.
            let InstanceInfo { id, profile_id, start, size } = match info {
                Ok(info) => info,
                Err(fault) => return absent(fault),
            };
            let Some(placement) = placed(start, size) else {
                return unknown_value("nvmlComputeInstanceGetInfo_v2", start);
            };
            if ids.insert(id) {
                instances.push(ComputeInstanceState { id, profile_id, placement });
            }
        }
    }
    if let Some(fault) = refused {
        return absent(fault);
    }
    instances.sort_by_key(|instance| instance.id);
    Reading::Value(instances)
}

/// MIG devices, which anyone may list. Indexes have holes.
fn read_mig_devices(nvml: &Nvml, device: Device) -> Reading<Vec<MigDevice>> {
    let most = match nvml.max_mig_devices(device) {
        Ok(most) => most.min(MIG_DEVICES),
        Err(fault) => return absent(fault),
    };
    let mut devices = Vec::new();
    for index in 0..most {
        let mig = match nvml.mig_device(device, index) {
            Ok(mig) => mig,
            Err(NOT_FOUND) => continue,
            Err(fault) => return absent(fault),
        };
        let attributes = nvml.attributes(mig);
        let of = |pick: fn((u64, u32, u32)) -> u32| reading(attributes.map(pick));
        devices.push(MigDevice {
            uuid: reading(nvml.uuid(mig)),
            gpu_instance: reading(nvml.gpu_instance_id(mig)),
            compute_instance: reading(nvml.compute_instance_id(mig)),
            name: reading(nvml.name(mig)),
            memory: reading(attributes.map(|(memory, ..)| Mib(memory))),
            gpu_instance_slices: of(|(_, slices, _)| slices),
            compute_instance_slices: of(|(.., slices)| slices),
            ..MigDevice::new(index)
        });
    }
    Reading::Value(devices)
}

fn read_nvlinks(nvml: &Nvml, device: Device, mig_is_on: Option<bool>) -> Reading<Vec<NvLink>> {
    if mig_is_on == Some(true) {
        // The driver shows the links of such a GPU as down, or not at all.
        return Reading::NotApplicable(MIG_IS_ON.to_owned());
    }
    let count = nvml.field(device, FIELD_NVLINK_COUNT).ok();
    let count = count.and_then(|count| u32::try_from(count).ok()).filter(|count| *count <= NVLINKS);
    let mut links = Vec::new();
    for number in 0..count.unwrap_or(NVLINKS) {
        let active = match nvml.nvlink_state(device, number) {
            Ok(state) => Reading::Value(state != 0),
            // Beyond the last link, or a GPU without any.
            Err(NOT_SUPPORTED | INVALID_ARGUMENT) if count.is_none() || number == 0 => break,
            Err(fault) if number == 0 => return absent(fault),
            Err(fault) => absent(fault),
        };
        let is_active = active.value() == Some(&true);
        let mut link = NvLink { active, ..NvLink::new(number) };
        if is_active {
            link.version = reading(nvml.nvlink_version(device, number));
            link.remote = match nvml.nvlink_remote(device, number) {
                Ok(0) => Reading::Value(NvLinkRemote::Gpu),
                Ok(1) => Reading::Value(NvLinkRemote::Ibmnpu),
                Ok(2) => Reading::Value(NvLinkRemote::Switch),
                Ok(255) => Reading::Value(NvLinkRemote::Unknown),
                Ok(other) => unknown_value("nvmlDeviceGetNvLinkRemoteDeviceType", other),
                Err(fault) => absent(fault),
            };
            link.remote_bus_id = match nvml.nvlink_remote_bus_id(device, number) {
                Ok(bus_id) => match bus_id.parse::<BusId>() {
                    Ok(bus_id) => Reading::Value(bus_id),
                    // All ones, which is no address.
                    Err(_) => Reading::NotApplicable("the fabric hides it".to_owned()),
                },
                Err(fault) => absent(fault),
            };
        } else {
            let down = "the link is not active";
            link.version = Reading::NotApplicable(down.to_owned());
            link.remote = Reading::NotApplicable(down.to_owned());
            link.remote_bus_id = Reading::NotApplicable(down.to_owned());
        }
        links.push(link);
    }
    match links.is_empty() {
        true => Reading::NotApplicable("the GPU has no NVLink".to_owned()),
        false => Reading::Value(links),
    }
}

/// Reads the error counters of the links that were found active.
fn read_nvlink_errors(nvml: &Nvml, device: Device, probe: &Probe<GpuProbe>) {
    let mut links = Reading::default();
    probe.set_gpu(|gpu| links = gpu.nvlinks.clone());
    let errors = match links {
        Reading::Value(links) => {
            let active = links.iter().filter(|link| link.active.value() == Some(&true));
            let of = |link: u32, counter| nvml.nvlink_errors(device, link, counter);
            let errors = active.map(|NvLink { link, .. }| {
                let (replay, recovery) = (of(*link, 0)?, of(*link, 1)?);
                Ok(NvLinkErrors { link: *link, replay, recovery, crc_flit: of(*link, 2)? })
            });
            reading(errors.collect())
        }
        Reading::NotApplicable(why) => Reading::NotApplicable(why),
        Reading::Unknown(why) => Reading::Unknown(why),
    };
    probe.set_gpu(|gpu| gpu.health.nvlink_errors = errors);
}

fn read_fabric(nvml: &Nvml, device: Device) -> Reading<Fabric> {
    let info = match nvml.fabric(device) {
        Ok(info) => info,
        Err(fault) => return absent(fault),
    };
    let state = match info.state {
        0 => return Reading::NotApplicable("the GPU is in no NVSwitch fabric".to_owned()),
        1 => FabricState::NotStarted,
        2 => FabricState::InProgress,
        3 => FabricState::Completed,
        other => return unknown_value("nvmlDeviceGetGpuFabricInfoV", other),
    };
    let health = match info.health {
        Some((mask, summary)) => Reading::Value(FabricHealth { mask, summary }),
        None => Reading::NotApplicable("this driver does not tell".to_owned()),
    };
    let cluster_uuid = uuid_text(&info.cluster_uuid);
    Reading::Value(Fabric { state, status: info.status, cluster_uuid, clique: info.clique, health })
}

/// `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
fn uuid_text(uuid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in uuid.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

fn read_modes(nvml: &Nvml, device: Device, probe: &Probe<GpuProbe>) {
    let ecc = reading(
        nvml.ecc_mode(device)
            .map(|(current, pending)| Mode { current: current != 0, pending: pending != 0 }),
    );
    let persistence = reading(nvml.persistence(device).map(|mode| mode != 0));
    let compute = match nvml.compute_mode(device) {
        Ok(0) => Reading::Value(ComputeMode::Default),
        Ok(1) => Reading::Value(ComputeMode::ExclusiveThread),
        Ok(2) => Reading::Value(ComputeMode::Prohibited),
        Ok(3) => Reading::Value(ComputeMode::ExclusiveProcess),
        Ok(other) => unknown_value("nvmlDeviceGetComputeMode", other),
        Err(fault) => absent(fault),
    };
    let addressing = match nvml.addressing(device) {
        Ok(0) => Reading::Value(AddressingMode::None),
        Ok(1) => Reading::Value(AddressingMode::Hmm),
        Ok(2) => Reading::Value(AddressingMode::Ats),
        Ok(other) => unknown_value("nvmlDeviceGetAddressingMode", other),
        Err(fault) => absent(fault),
    };
    let virtualization = match nvml.virtualization(device) {
        Ok(0) => Reading::Value(VirtualizationMode::None),
        Ok(1) => Reading::Value(VirtualizationMode::Passthrough),
        Ok(2) => Reading::Value(VirtualizationMode::Vgpu),
        Ok(3) => Reading::Value(VirtualizationMode::HostVgpu),
        Ok(4) => Reading::Value(VirtualizationMode::HostVsga),
        Ok(other) => unknown_value("nvmlDeviceGetVirtualizationMode", other),
        Err(fault) => absent(fault),
    };
    let limit = reading(nvml.power_limit(device).map(Milliwatts));
    let default_limit = reading(nvml.default_power_limit(device).map(Milliwatts));
    let enforced_limit = reading(nvml.enforced_power_limit(device).map(Milliwatts));
    let constraints = nvml.power_constraints(device);
    let clock = |kind| reading(nvml.max_clock(device, kind).map(Mhz));
    // `nvmlClockType_t`: 1 is the SMs, 2 is the memory.
    let (max_sm, max_memory) = (clock(1), clock(2));
    let clock = |kind| reading(nvml.application_clock(device, kind).map(Mhz));
    let (application_sm, application_memory) = (clock(1), clock(2));
    probe.set_gpu(|gpu| {
        let modes = &mut gpu.modes;
        (modes.ecc, modes.persistence, modes.compute) = (ecc, persistence, compute);
        (modes.addressing, modes.virtualization) = (addressing, virtualization);
        let power = &mut gpu.power;
        (power.limit, power.default_limit) = (limit, default_limit);
        power.enforced_limit = enforced_limit;
        power.min_limit = reading(constraints.map(|(min, _)| Milliwatts(min)));
        power.max_limit = reading(constraints.map(|(_, max)| Milliwatts(max)));
        let clocks = &mut gpu.clocks;
        (clocks.max_sm, clocks.max_memory) = (max_sm, max_memory);
        (clocks.application_sm, clocks.application_memory) = (application_sm, application_memory);
    });
}

fn read_health(nvml: &Nvml, device: Device, probe: &Probe<GpuProbe>) {
    let recovery = match nvml.field(device, FIELD_RECOVERY_ACTION) {
        Ok(0) => Reading::Value(RecoveryAction::None),
        Ok(1) => Reading::Value(RecoveryAction::GpuReset),
        Ok(2) => Reading::Value(RecoveryAction::NodeReboot),
        Ok(3) => Reading::Value(RecoveryAction::DrainP2p),
        Ok(4) => Reading::Value(RecoveryAction::DrainAndReset),
        Ok(5) => Reading::Value(RecoveryAction::RecoverImex),
        Ok(6) => Reading::Value(RecoveryAction::BusReset),
        Ok(7) => Reading::Value(RecoveryAction::SystemReboot),
        Ok(other) => unknown_value("the field of the recovery action", other),
        // A driver that does not know the field calls it an invalid argument.
        Err(INVALID_ARGUMENT) => Reading::NotApplicable("this driver has no such field".to_owned()),
        Err(fault) => absent(fault),
    };
    probe.set_gpu(|gpu| gpu.health.recovery_action = recovery);
    let remapped = nvml.remapped_rows(device);
    let remapped = reading(remapped.map(|[correctable, uncorrectable, pending, failure]| {
        let (pending, failure) = (pending != 0, failure != 0);
        RemappedRows { correctable, uncorrectable, pending, failure }
    }));
    let histogram = nvml.row_histogram(device);
    let histogram = reading(histogram.map(|[max, high, partial, low, none]| RowHistogram {
        max,
        high,
        partial,
        low,
        none,
    }));
    let retired = || {
        Ok(RetiredPages {
            single_bit: nvml.retired_pages(device, 0)?,
            double_bit: nvml.retired_pages(device, 1)?,
            pending: nvml.retired_pages_pending(device)? != 0,
        })
    };
    let retired = reading(retired());
    let ecc = |since| {
        let corrected = nvml.ecc_errors(device, 0, since)?;
        Ok(EccCounts { corrected, uncorrected: nvml.ecc_errors(device, 1, since)? })
    };
    let (volatile, aggregate) = (reading(ecc(0)), reading(ecc(1)));
    let sram = reading(nvml.sram_threshold_exceeded(device));
    let repair = nvml.repair_pending(device);
    let repair = reading(repair.map(|(channel, tpc)| RepairPending { channel, tpc }));
    let reasons = match nvml.event_reasons(device) {
        // The older name of the same call.
        Err(Fault::Missing(_)) => nvml.throttle_reasons(device),
        outcome => outcome,
    };
    let reasons = reading(reasons.map(ClocksEventReasons));
    let celsius = |outcome: Outcome<u32>| match outcome.map(i32::try_from) {
        Ok(Ok(degrees)) => Reading::Value(Celsius(degrees)),
        Ok(Err(_)) => unknown_value("nvmlDeviceGetTemperature", "a huge number"),
        Err(fault) => absent(fault),
    };
    let temperature = celsius(nvml.temperature(device, 0));
    // `nvmlTemperatureThresholds_t`: 0 shutdown, 1 slowdown.
    let shutdown = celsius(nvml.temperature_threshold(device, 0));
    let slowdown = celsius(nvml.temperature_threshold(device, 1));
    let margin = reading(nvml.margin_temperature(device).map(Celsius));
    probe.set_gpu(|gpu| {
        let health = &mut gpu.health;
        (health.remapped_rows, health.row_histogram) = (remapped, histogram);
        health.retired_pages = retired;
        (health.ecc_volatile, health.ecc_aggregate) = (volatile, aggregate);
        (health.sram_threshold_exceeded, health.repair_pending) = (sram, repair);
        health.clocks_event_reasons = reasons;
        let thermal = &mut health.thermal;
        (thermal.gpu, thermal.margin) = (temperature, margin);
        (thermal.shutdown, thermal.slowdown) = (shutdown, slowdown);
    });
}

fn read_pcie(nvml: &Nvml, device: Device, probe: &Probe<GpuProbe>) {
    let width = reading(nvml.pcie_width(device));
    let max_width = reading(nvml.pcie_max_width(device));
    let generation = reading(nvml.pcie_generation(device));
    let max_generation = reading(nvml.pcie_max_generation(device));
    let device_generation = reading(nvml.pcie_device_generation(device));
    let replays = reading(nvml.pcie_replays(device));
    probe.set_gpu(|gpu| {
        let pcie = &mut gpu.pcie;
        (pcie.width, pcie.max_width) = (width, max_width);
        (pcie.generation, pcie.max_generation) = (generation, max_generation);
        (pcie.device_generation, pcie.replays) = (device_generation, replays);
    });
}

fn read_rest(nvml: &Nvml, device: Device, extra: Extra, probe: &Probe<GpuProbe>) {
    let c2c = reading(nvml.c2c(device));
    let own_node = reading(nvml.numa_node(device));
    let near = reading(nvml.memory_affinity(device).map(|words| {
        let bits = (0_u32..).step_by(64).zip(words);
        let nodes = bits.flat_map(|(base, word)| {
            (0_u32..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| base + bit)
        });
        nodes.collect()
    }));
    probe.set_gpu(|gpu| {
        gpu.c2c.enabled = c2c;
        (gpu.numa.own_node, gpu.numa.near_nodes) = (own_node, near);
    });
    let serial = reading(nvml.serial(device));
    let board = reading(nvml.board_part_number(device));
    let module_id = reading(nvml.module_id(device));
    let architecture = reading(nvml.architecture(device));
    let capability = nvml.compute_capability(device);
    let capability = reading(capability.map(|(major, minor)| format!("{major}.{minor}")));
    let platform = nvml.platform(device);
    let platform =
        reading(platform.map(|(chassis_serial, [slot, tray, host, peer_type, module])| Platform {
            chassis_serial,
            slot,
            tray,
            host,
            peer_type,
            module_id: module,
        }));
    let vbios = reading(nvml.vbios(device));
    let inforom = reading(nvml.inforom(device));
    let gsp = reading(nvml.gsp(device));
    let processes = reading(nvml.compute_processes(device).map(|mut processes| {
        processes.sort_unstable();
        processes.dedup();
        processes
    }));
    probe.set_gpu(|gpu| {
        let identity = &mut gpu.identity;
        (identity.serial, identity.board_part_number) = (serial, board);
        (identity.module_id, identity.architecture) = (module_id, architecture);
        (identity.compute_capability, identity.platform) = (capability, platform);
        let firmware = &mut gpu.firmware;
        (firmware.vbios, firmware.inforom, firmware.gsp) = (vbios, inforom, gsp);
        gpu.processes.compute = processes;
    });
    if extra.inforom {
        let valid = match nvml.validate_inforom(device) {
            Ok(()) => Reading::Value(true),
            // CORRUPTED_INFOROM is the answer that it asks for.
            Err(Fault::Code(14)) => Reading::Value(false),
            Err(fault) => absent(fault),
        };
        probe.set_gpu(|gpu| gpu.firmware.inforom_valid = valid);
    }
}
