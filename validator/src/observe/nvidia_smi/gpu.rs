//! A `gpu` element.
//!
//! An element's text is a value, `N/A`, or an error in words: `GPU is lost`, `Unknown Error`. Elements
//! that are not there are unknown, since another driver would have written them.

use std::str::FromStr;

use fleetc_schema::pci::{BusId, DeviceId};
use fleetc_schema::units::{Celsius, Mhz, Mib, Milliwatts};

use super::xml::Element;
use crate::intent::MAX_INSTANCES;
use crate::state::{
    AddressingMode, C2c, Clocks, ClocksEventReasons, ComputeMode, Condition, EccCounts, Fabric,
    FabricHealth, FabricState, Firmware, GpuState, Health, Identity, MigDevice, Mode, Modes,
    PcieLink, Platform, Power, Processes, Reading, RecoveryAction, RemappedRows, RepairPending,
    RetiredPages, RowHistogram, Thermal, VirtualizationMode,
};

/// What nvidia-smi writes where NVML calls a GPU lost, and where it has to be reset.
const LOST: &str = "GPU is lost";
const RESET: &str = "GPU requires reset";

/// Reads a GPU.
pub(super) fn read(gpu: &Element, bus_id: BusId, index: u32) -> GpuState {
    let mig_mode = mode(gpu, ["mig_mode", "current_mig", "pending_mig"]);
    let without_mig = match &mig_mode {
        Reading::Value(Mode { current: false, .. }) => Some("MIG mode is off"),
        Reading::NotApplicable(_) => Some("the GPU has no MIG"),
        _ => None,
    };
    let without = |why: &str| Reading::NotApplicable(why.to_owned());
    let unknown = |option: &str| {
        Reading::Unknown(format!("not in the XML: give the output of `nvidia-smi {option}`"))
    };
    GpuState {
        condition: condition(gpu),
        name: string(gpu, &["product_name"]),
        device_id: device_id(gpu),
        memory: number(gpu, &["fb_memory_usage", "total"]).map(Mib),
        memory_used: number(gpu, &["fb_memory_usage", "used"]).map(Mib),
        gpu_instances: match without_mig {
            Some(why) => without(why),
            None => unknown("mig -lgi"),
        },
        mig_devices: match without_mig {
            Some(why) => Reading::NotApplicable(why.to_owned()),
            None => mig_devices(gpu),
        },
        mig_profiles: match &mig_mode {
            Reading::NotApplicable(why) => Reading::NotApplicable(why.clone()),
            _ => Reading::Unknown("not in the XML".to_owned()),
        },
        mig_mode,
        identity: identity(gpu),
        modes: Modes {
            ecc: mode(gpu, ["ecc_mode", "current_ecc", "pending_ecc"]),
            persistence: flag(gpu, &["persistence_mode"]),
            compute: word(
                gpu,
                &["compute_mode"],
                &[
                    ("Default", ComputeMode::Default),
                    ("Exclusive_Thread", ComputeMode::ExclusiveThread),
                    ("Prohibited", ComputeMode::Prohibited),
                    ("Exclusive_Process", ComputeMode::ExclusiveProcess),
                ],
            ),
            addressing: word(
                gpu,
                &["addressing_mode"],
                &[
                    ("HMM", AddressingMode::Hmm),
                    ("ATS", AddressingMode::Ats),
                    ("None", AddressingMode::None),
                ],
            ),
            virtualization: word(
                gpu,
                &["gpu_virtualization_mode", "virtualization_mode"],
                &[
                    ("None", VirtualizationMode::None),
                    ("Pass-Through", VirtualizationMode::Passthrough),
                    ("VGPU", VirtualizationMode::Vgpu),
                    ("Host VGPU", VirtualizationMode::HostVgpu),
                    ("Host VSGA", VirtualizationMode::HostVsga),
                ],
            ),
        },
        power: power(gpu),
        clocks: Clocks {
            max_sm: number(gpu, &["max_clocks", "sm_clock"]).map(Mhz),
            max_memory: number(gpu, &["max_clocks", "mem_clock"]).map(Mhz),
            application_sm: number(gpu, &["applications_clocks", "graphics_clock"]).map(Mhz),
            application_memory: number(gpu, &["applications_clocks", "mem_clock"]).map(Mhz),
        },
        pcie: PcieLink {
            width: number(gpu, &["pci", LINK, "link_widths", "current_link_width"]),
            max_width: number(gpu, &["pci", LINK, "link_widths", "max_link_width"]),
            generation: number(gpu, &["pci", LINK, "pcie_gen", "current_link_gen"]),
            max_generation: number(gpu, &["pci", LINK, "pcie_gen", "max_link_gen"]),
            device_generation: number(gpu, &["pci", LINK, "pcie_gen", "max_device_link_gen"]),
            replays: number(gpu, &["pci", "replay_counter"]),
        },
        nvlinks: Reading::Unknown("not in the XML".to_owned()),
        fabric: fabric(gpu),
        c2c: C2c { enabled: flag(gpu, &["c2c_mode"]) },
        health: health(gpu),
        processes: Processes { compute: processes(gpu) },
        firmware: Firmware {
            vbios: string(gpu, &["vbios_version"]),
            inforom: string(gpu, &["inforom_version", "img_version"]),
            gsp: string(gpu, &["gsp_firmware_version"]),
            ..Firmware::default()
        },
        ..GpuState::new(bus_id, index)
    }
}

const LINK: &str = "pci_gpu_link_info";

/// The text of an element: a value, `N/A`, or an error.
pub(super) fn string(from: &Element, path: &[&str]) -> Reading<String> {
    let mut element = from;
    for name in path {
        match element.child(name) {
            Some(child) => element = child,
            // A group that says `N/A` as a whole says it of what is in it.
            None if element.children.is_empty() && is_absent(&element.text) => {
                return Reading::NotApplicable("nvidia-smi says N/A".to_owned());
            }
            None => return Reading::Unknown(format!("no `{name}` in the XML")),
        }
    }
    let text = element.text.as_str();
    if !element.children.is_empty() {
        return Reading::Unknown(format!("`{}` holds elements", element.name));
    }
    if is_absent(text) {
        return Reading::NotApplicable(format!("nvidia-smi says {text}"));
    }
    match is_error(text) {
        true => Reading::Unknown(format!("nvidia-smi says `{text}`")),
        false => Reading::Value(text.to_owned()),
    }
}

fn is_absent(text: &str) -> bool {
    ["N/A", "[N/A]", "Not Supported", "[Not Supported]"].contains(&text)
}

/// What any reading says of the GPU as a whole.
fn condition(gpu: &Element) -> Reading<Condition> {
    fn any(element: &Element, says: &str) -> bool {
        element.text.trim_matches(['[', ']']).starts_with(says)
            || element.children.iter().any(|child| any(child, says))
    }
    Reading::Value(if any(gpu, LOST) {
        Condition::Lost
    } else if any(gpu, RESET) {
        Condition::ResetRequired
    } else {
        Condition::Usable
    })
}

/// What nvidia-smi writes where a call failed.
fn is_error(text: &str) -> bool {
    let errors = [
        LOST,
        "Unknown Error",
        "Insufficient Permissions",
        RESET,
        "Requested functionality has been deprecated",
        "Not Found",
        "ERR!",
    ];
    text.is_empty() || errors.iter().any(|error| text.trim_matches(['[', ']']).starts_with(error))
}

/// A reading that follows from a text; unknown if it does not.
fn read_as<T>(reading: Reading<String>, read: impl FnOnce(&str) -> Option<T>) -> Reading<T> {
    match reading {
        Reading::Value(text) => match read(&text) {
            Some(value) => Reading::Value(value),
            None => Reading::Unknown(format!("nvidia-smi says `{text}`")),
        },
        Reading::NotApplicable(why) => Reading::NotApplicable(why),
        Reading::Unknown(why) => Reading::Unknown(why),
    }
}

/// A whole number before its unit: `81559 MiB`, `16x`, `33 C`.
pub(super) fn number<N: FromStr>(from: &Element, path: &[&str]) -> Reading<N> {
    read_as(string(from, path), whole)
}

fn whole<N: FromStr>(text: &str) -> Option<N> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = unit.trim_start();
    let plain = unit.chars().all(|c| c.is_ascii_alphabetic() || "()/%".contains(c));
    if plain { digits.parse().ok() } else { None }
}

fn flag(from: &Element, path: &[&str]) -> Reading<bool> {
    let words = [("Enabled", true), ("Disabled", false), ("Yes", true), ("No", false)];
    word(from, path, &words)
}

/// One of a closed set of words, in any case.
fn word<T: Copy>(from: &Element, path: &[&str], words: &[(&str, T)]) -> Reading<T> {
    read_as(string(from, path), |text| {
        let known = words.iter().find(|(known, _)| known.eq_ignore_ascii_case(text));
        known.map(|(_, value)| *value)
    })
}

fn mode(from: &Element, [group, current, pending]: [&str; 3]) -> Reading<Mode> {
    let (current, pending) = (flag(from, &[group, current]), flag(from, &[group, pending]));
    both(current, pending, |current, pending| Mode { current, pending })
}

/// What follows from two readings; the first that is missing says why there is none.
fn both<A, B, T>(a: Reading<A>, b: Reading<B>, join: impl FnOnce(A, B) -> T) -> Reading<T> {
    match (a, b) {
        (Reading::Value(a), Reading::Value(b)) => Reading::Value(join(a, b)),
        (Reading::Unknown(why), _) | (_, Reading::Unknown(why)) => Reading::Unknown(why),
        (Reading::NotApplicable(why), _) | (_, Reading::NotApplicable(why)) => {
            Reading::NotApplicable(why)
        }
    }
}

/// `pci_device_id` is the device, then the vendor: `233010DE`.
fn device_id(gpu: &Element) -> Reading<DeviceId> {
    read_as(string(gpu, &["pci", "pci_device_id"]), |text| {
        let text = text.trim_start_matches("0x");
        let (device, vendor) = text.split_at_checked(4)?;
        if !vendor.eq_ignore_ascii_case("10de") {
            return None;
        }
        format!("0x{}", device.to_ascii_lowercase()).parse().ok()
    })
}

fn identity(gpu: &Element) -> Identity {
    let module = match string(gpu, &["platformInfo", "module_id"]) {
        Reading::Value(_) => number(gpu, &["platformInfo", "module_id"]),
        // Before v13 it stood alone.
        _ => number(gpu, &["gpu_module_id"]),
    };
    let architectures =
        [("Turing", 6), ("Ampere", 7), ("Ada Lovelace", 8), ("Hopper", 9), ("Blackwell", 10)];
    Identity {
        uuid: string(gpu, &["uuid"]),
        serial: string(gpu, &["serial"]),
        board_part_number: string(gpu, &["board_part_number"]),
        minor: number(gpu, &["minor_number"]),
        module_id: module,
        architecture: word(gpu, &["product_architecture"], &architectures),
        compute_capability: Reading::Unknown("not in the XML".to_owned()),
        subsystem: read_as(string(gpu, &["pci", "pci_sub_system_id"]), |text| {
            u32::from_str_radix(text.trim_start_matches("0x"), 16).ok()
        }),
        platform: platform(gpu),
    }
}

fn platform(gpu: &Element) -> Reading<Platform> {
    let part = |name| number::<u8>(gpu, &["platformInfo", name]);
    let serial = string(gpu, &["platformInfo", "chassis_serial_number"]);
    let peers = [("Direct Connected", 0_u8), ("Switch Connected", 1)];
    let peer = word(gpu, &["platformInfo", "peer_type"], &peers);
    let where_in = both(part("slot_number"), part("tray_index"), |slot, tray| (slot, tray));
    let what = both(part("host_id"), part("module_id"), |host, module| (host, module));
    let numbers = both(where_in, what, |a, b| (a, b));
    let rest = both(peer, numbers, |peer, numbers| (peer, numbers));
    both(serial, rest, |chassis_serial, (peer_type, ((slot, tray), (host, module_id)))| Platform {
        chassis_serial,
        slot,
        tray,
        host,
        peer_type,
        module_id,
    })
}

fn power(gpu: &Element) -> Power {
    // v11 has one group, and other words in it.
    let group = match gpu.child("gpu_power_readings") {
        Some(_) => "gpu_power_readings",
        None => "power_readings",
    };
    let watts = |name: &str| read_as(string(gpu, &[group, name]), milliwatts);
    let either = |new: &str, old: &str| match gpu.child(group).and_then(|group| group.child(new)) {
        Some(_) => watts(new),
        None => watts(old),
    };
    Power {
        // What was asked for; `current` is what holds, which may be less.
        limit: either("requested_power_limit", "power_limit"),
        default_limit: watts("default_power_limit"),
        enforced_limit: either("current_power_limit", "enforced_power_limit"),
        min_limit: watts("min_power_limit"),
        max_limit: watts("max_power_limit"),
    }
}

/// `700.00 W` in milliwatts, without going through a float.
fn milliwatts(text: &str) -> Option<Milliwatts> {
    let number = text.strip_suffix('W')?.trim_end();
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    if part.len() > 3 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = format!("{part:0<3}").parse().ok()?;
    whole.checked_mul(1_000)?.checked_add(part)?.try_into().ok().map(Milliwatts)
}

fn health(gpu: &Element) -> Health {
    let rows = |name: &str| -> Reading<u32> { number(gpu, &["remapped_rows", name]) };
    let row_flag = |name: &str| flag(gpu, &["remapped_rows", name]);
    let counts = both(rows("remapped_row_corr"), rows("remapped_row_unc"), |c, u| (c, u));
    let flags = both(
        row_flag("remapped_row_pending"),
        row_flag("remapped_row_failure"),
        |pending, failure| (pending, failure),
    );
    let remapped_rows = both(counts, flags, |(correctable, uncorrectable), (pending, failure)| {
        RemappedRows { correctable, uncorrectable, pending, failure }
    });
    Health {
        recovery_action: word(
            gpu,
            &["gpu_recovery_action"],
            &[
                ("None", RecoveryAction::None),
                ("Reset", RecoveryAction::GpuReset),
                ("GPU Reset", RecoveryAction::GpuReset),
                ("Reboot", RecoveryAction::NodeReboot),
                ("Node Reboot", RecoveryAction::NodeReboot),
                ("Drain P2P", RecoveryAction::DrainP2p),
                ("Drain and Reset", RecoveryAction::DrainAndReset),
                ("Recover IMEX", RecoveryAction::RecoverImex),
                ("Bus Reset", RecoveryAction::BusReset),
                ("System Reboot", RecoveryAction::SystemReboot),
            ],
        ),
        remapped_rows,
        row_histogram: histogram(gpu),
        retired_pages: retired_pages(gpu),
        ecc_volatile: ecc(gpu, "volatile"),
        ecc_aggregate: ecc(gpu, "aggregate"),
        sram_threshold_exceeded: flag(gpu, &["ecc_errors", "aggregate", "sram_threshold_exceeded"]),
        nvlink_errors: Reading::Unknown("not in the XML".to_owned()),
        repair_pending: both(
            flag(gpu, &["ecc_errors", "channel_repair_pending"]),
            flag(gpu, &["ecc_errors", "tpc_repair_pending"]),
            |channel, tpc| RepairPending { channel, tpc },
        ),
        clocks_event_reasons: event_reasons(gpu),
        thermal: thermal(gpu),
    }
}

fn histogram(gpu: &Element) -> Reading<RowHistogram> {
    let banks = |name: &str| -> Reading<u32> {
        let name = format!("row_remapper_histogram_{name}");
        number(gpu, &["remapped_rows", "row_remapper_histogram", &name])
    };
    let most = both(banks("max"), banks("high"), |max, high| (max, high));
    let fewer = both(banks("partial"), banks("low"), |partial, low| (partial, low));
    let some = both(most, fewer, |most, fewer| (most, fewer));
    both(some, banks("none"), |((max, high), (partial, low)), none| RowHistogram {
        max,
        high,
        partial,
        low,
        none,
    })
}

fn retired_pages(gpu: &Element) -> Reading<RetiredPages> {
    let count =
        |group: &str| -> Reading<u32> { number(gpu, &["retired_pages", group, "retired_count"]) };
    let counts =
        both(count("multiple_single_bit_retirement"), count("double_bit_retirement"), |s, d| {
            (s, d)
        });
    let pending = flag(gpu, &["retired_pages", "pending_retirement"]);
    both(counts, pending, |(single_bit, double_bit), pending| RetiredPages {
        single_bit,
        double_bit,
        pending,
    })
}

/// The sum of SRAM and DRAM, as `nvmlDeviceGetTotalEccErrors` has it. What SRAM has is split by kind on
/// new drivers, and there is no SRAM before Turing.
fn ecc(gpu: &Element, group: &str) -> Reading<EccCounts> {
    let count = |name: &str| -> Reading<u64> { number(gpu, &["ecc_errors", group, name]) };
    let sum = |names: &[&str]| {
        let there = names.iter().filter(|name| {
            let errors = gpu.child("ecc_errors").and_then(|errors| errors.child(group));
            errors.is_some_and(|errors| errors.child(name).is_some())
        });
        let mut total: Option<Reading<u64>> = None;
        for name in there {
            let count = count(name);
            total = Some(match total {
                None => count,
                Some(total) => both(total, count, u64::saturating_add),
            });
        }
        // None of them: say of the first why.
        total.unwrap_or_else(|| count(names.first().copied().unwrap_or_default()))
    };
    let corrected = sum(&["dram_correctable", "sram_correctable"]);
    let uncorrected = sum(&[
        "dram_uncorrectable",
        "sram_uncorrectable",
        "sram_uncorrectable_parity",
        "sram_uncorrectable_secded",
    ]);
    both(corrected, uncorrected, |corrected, uncorrected| EccCounts { corrected, uncorrected })
}

/// The reasons as bits. Source: nvml.h, `nvmlClocksEventReason*`.
fn event_reasons(gpu: &Element) -> Reading<ClocksEventReasons> {
    let reasons = [
        ("gpu_idle", 0x1),
        ("applications_clocks_setting", 0x2),
        ("sw_power_cap", 0x4),
        ("hw_slowdown", 0x8),
        ("sync_boost", 0x10),
        ("sw_thermal_slowdown", 0x20),
        ("hw_thermal_slowdown", 0x40),
        ("hw_power_brake_slowdown", 0x80),
        ("display_clocks_setting", 0x100),
    ];
    // Before v12.
    let (group, prefix) = match gpu.child("clocks_event_reasons") {
        Some(_) => ("clocks_event_reasons", "clocks_event_reason_"),
        None => ("clocks_throttle_reasons", "clocks_throttle_reason_"),
    };
    let words = [("Active", true), ("Not Active", false)];
    let mut bits = Reading::Value(0_u64);
    for (name, bit) in reasons {
        let name = format!("{prefix}{name}");
        let is_there = gpu.child(group).is_some_and(|group| group.child(&name).is_some());
        // Drivers differ in the last ones; that none is there says nothing.
        if is_there || bit == 0x1 {
            let active = word(gpu, &[group, &name], &words);
            bits = both(bits, active, |bits, active| if active { bits | bit } else { bits });
        }
    }
    bits.map(ClocksEventReasons)
}

fn thermal(gpu: &Element) -> Thermal {
    let at = |name: &str| number(gpu, &["temperature", name]).map(Celsius);
    Thermal {
        gpu: at("gpu_temp"),
        slowdown: at("gpu_temp_slow_threshold"),
        shutdown: at("gpu_temp_max_threshold"),
        margin: at("gpu_temp_tlimit"),
    }
}

fn fabric(gpu: &Element) -> Reading<Fabric> {
    let states = [
        ("Not Started", FabricState::NotStarted),
        ("In Progress", FabricState::InProgress),
        ("Completed", FabricState::Completed),
    ];
    let state = match word(gpu, &["fabric", "state"], &states) {
        Reading::Value(state) => state,
        Reading::NotApplicable(why) => return Reading::NotApplicable(why),
        Reading::Unknown(why) => return Reading::Unknown(why),
    };
    // It says something only once the registration is over.
    let status = match string(gpu, &["fabric", "status"]) {
        Reading::Value(text) if text == "Success" => 0,
        Reading::Value(_) => UNKNOWN_STATUS,
        Reading::NotApplicable(_) if state != FabricState::Completed => 0,
        Reading::NotApplicable(why) => return Reading::NotApplicable(why),
        Reading::Unknown(why) => return Reading::Unknown(why),
    };
    let clique = number(gpu, &["fabric", "cliqueId"]);
    let uuid = string(gpu, &["fabric", "clusterUuid"]);
    let health = fabric_health(gpu);
    match (clique, uuid, state) {
        (Reading::Value(clique), Reading::Value(cluster_uuid), _) => {
            Reading::Value(Fabric { state, status, cluster_uuid, clique, health })
        }
        // None writes them before the registration is over; NVML has zeros then.
        (clique, uuid, FabricState::NotStarted | FabricState::InProgress) => {
            let cluster_uuid = uuid.value().cloned().unwrap_or_else(|| NO_CLUSTER.to_owned());
            let clique = clique.value().copied().unwrap_or_default();
            Reading::Value(Fabric { state, status, cluster_uuid, clique, health })
        }
        (clique, uuid, FabricState::Completed) => both(clique, uuid, |clique, cluster_uuid| {
            Fabric { state, status, cluster_uuid, clique, health }
        }),
    }
}

/// The UUID of no NVLink domain.
const NO_CLUSTER: &str = "00000000-0000-0000-0000-000000000000";
/// `NVML_ERROR_UNKNOWN`: the XML has words for a status, not its number.
const UNKNOWN_STATUS: u32 = 999;

/// Words with the values that they stand for.
type Words<'a> = &'a [(&'a str, u32)];

/// The health mask, put together from its words. Source: nvml.h, API 13,
/// `NVML_GPU_FABRIC_HEALTH_MASK_*`: in most fields 1 is yes and 2 no.
fn fabric_health(gpu: &Element) -> Reading<FabricHealth> {
    let part = |name| string(gpu, &["fabric", "health", name]);
    let fields: [(&str, u32, Words<'_>); 6] = [
        ("bandwidth", 0, &[("Degraded", 1), ("Full", 2)]),
        ("route_recovery_in_progress", 2, &[("True", 1), ("False", 2)]),
        ("route_unhealthy", 4, &[("True", 1), ("False", 2)]),
        ("access_timeout_recovery", 6, &[("True", 1), ("False", 2)]),
        (
            "incorrect_configuration",
            8,
            &[
                ("None", 1),
                ("False", 1),
                ("Incorrect SysGUID", 2),
                ("Incorrect Chassis SN", 3),
                ("No Partition", 4),
                ("Insufficient Nvlinks", 5),
                ("Incompatible GPU Firmware", 6),
                ("Invalid Location", 7),
                ("Invalid State", 8),
            ],
        ),
        ("partition_assigned", 12, &[("True", 1), ("False", 2)]),
    ];
    let mut mask = 0_u32;
    let mut is_told = false;
    for (name, shift, words) in fields {
        match part(name) {
            Reading::Value(text) => {
                let known = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(&text));
                let value = match (known, name) {
                    (Some((_, value)), _) => *value,
                    // Some other wrong configuration.
                    (None, "incorrect_configuration") => 0xf,
                    (None, _) => return Reading::Unknown(format!("nvidia-smi says `{text}`")),
                };
                mask |= value << shift;
                is_told = true;
            }
            Reading::NotApplicable(_) => {}
            Reading::Unknown(why)
                if gpu.child("fabric").is_some_and(|f| f.child("health").is_some())
                    && why.contains("nvidia-smi says") =>
            {
                return Reading::Unknown(why);
            }
            // Older drivers have fewer fields.
            Reading::Unknown(_) => {}
        }
    }
    let summaries = [("Healthy", 1_u8), ("Unhealthy", 2), ("Limited Capacity", 3)];
    let summary = word(gpu, &["fabric", "health", "summary"], &summaries);
    match (is_told, summary.value()) {
        (false, None) => Reading::NotApplicable("the driver does not tell".to_owned()),
        (_, summary) => Reading::Value(FabricHealth { mask, summary: summary.copied() }),
    }
}

/// Processes that compute, alone or beside graphics or MPS.
fn processes(gpu: &Element) -> Reading<Vec<u32>> {
    let Some(processes) = gpu.child("processes") else {
        return Reading::Unknown("no `processes` in the XML".to_owned());
    };
    if processes.children.is_empty() && is_absent(&processes.text) {
        return Reading::NotApplicable("nvidia-smi says N/A".to_owned());
    }
    let mut pids = Reading::Value(Vec::new());
    for process in processes.all("process_info") {
        let kind = string(process, &["type"]);
        if kind.value().is_some_and(|kind| !kind.split('+').any(|part| part == "C")) {
            continue;
        }
        let pid = number::<u32>(process, &["pid"]);
        pids = both(pids, pid, |mut pids, pid| {
            pids.push(pid);
            pids
        });
    }
    pids.map(|mut pids| {
        pids.sort_unstable();
        pids.dedup();
        pids
    })
}

fn mig_devices(gpu: &Element) -> Reading<Vec<MigDevice>> {
    let Some(devices) = gpu.child("mig_devices") else {
        return Reading::Unknown("no `mig_devices` in the XML".to_owned());
    };
    if devices.children.is_empty() && is_error(&devices.text) && !devices.text.is_empty() {
        return Reading::Unknown(format!("nvidia-smi says `{}`", devices.text));
    }
    let mut all = Vec::new();
    for (position, device) in (0..).zip(devices.all("mig_device")) {
        if all.len() >= MAX_INSTANCES {
            return Reading::Unknown(format!("more than {MAX_INSTANCES} MIG devices"));
        }
        // Some drivers write one index for all; their order then is that of the indexes.
        let index = number(device, &["index"]).value().copied().unwrap_or(position);
        let taken = all.iter().any(|other: &MigDevice| other.index == index);
        let index = if taken { position } else { index };
        all.push(MigDevice {
            uuid: string(device, &["uuid"]),
            gpu_instance: number(device, &["gpu_instance_id"]),
            compute_instance: number(device, &["compute_instance_id"]),
            memory: number(device, &["fb_memory_usage", "total"]).map(Mib),
            ..MigDevice::new(index)
        });
    }
    Reading::Value(all)
}
