//! Every check of the table in four states: it holds, it fails, it does not apply, it is not known.
//!
//! Each is a small change to the state of a node that conforms.

use fleetc_schema::pci::BusId;
use fleetc_schema::units::{Celsius, Mib, Milliwatts, Seconds};

use super::{CHECKS, CheckId, Level, Options, compare, compare_with, row};
use crate::example;
use crate::intent::NodeIntent;
use crate::report::{Finding, Report, Severity, Verdict};
use crate::state::{
    ClocksEventReasons, ComputeMode, Condition, EccCounts, ExcludedGpu, Fabric, FabricState,
    GpuState, KernelLog, LogEvent, LogEventKind, Mode, NodeState, P2pStatus, PciGpu, ProbeEnd,
    Reading, RecoveryAction, RefusedGpu, RemappedRows, RepairPending, RetiredPages, RowHistogram,
    StuckProbe, UnitState,
};

type Intent = fn() -> NodeIntent;
type Change = fn(&mut NodeState);

/// What becomes of a check whose reading is gone.
enum Gone {
    /// It is undecided itself.
    Here(Change),
    /// Another check, whose reading it is, is undecided.
    There(Change, CheckId),
}
use Gone::{Here, There};

struct Case {
    check: CheckId,
    intent: Intent,
    fails: Change,
    absent: (Intent, Change),
    gone: Gone,
}

fn gpus(state: &mut NodeState) -> &mut Vec<GpuState> {
    match &mut state.gpus {
        Reading::Value(gpus) => gpus,
        _ => panic!("no GPUs"),
    }
}

fn each(state: &mut NodeState, change: impl FnMut(&mut GpuState)) {
    gpus(state).iter_mut().for_each(change);
}

fn pci(state: &mut NodeState) -> &mut Vec<PciGpu> {
    match &mut state.pci_gpus {
        Reading::Value(gpus) => gpus,
        _ => panic!("no PCI"),
    }
}

fn fabric(gpu: &mut GpuState) -> &mut Fabric {
    value(&mut gpu.fabric)
}

fn value<T>(reading: &mut Reading<T>) -> &mut T {
    match reading {
        Reading::Value(value) => value,
        _ => panic!("no value"),
    }
}

fn unknown<T>() -> Reading<T> {
    Reading::Unknown("no answer".into())
}

fn absent<T>() -> Reading<T> {
    Reading::NotApplicable("not supported".into())
}

fn rows(state: &mut NodeState) -> &mut RemappedRows {
    value(&mut gpus(state)[0].health.remapped_rows)
}

fn log(state: &mut NodeState, kind: LogEventKind) {
    let gpu = Some(example::bus_id(0));
    let event = LogEvent { at: 120, gpu, kind };
    value(&mut state.host.kernel_log).events.push(event);
}

fn xid(code: u16) -> LogEventKind {
    LogEventKind::Xid { code, text: "pid='<unknown>'".into() }
}

fn mig_on(gpu: &mut GpuState) {
    gpu.mig_mode = Reading::Value(Mode { current: true, pending: true });
}

fn busy(gpu: &mut GpuState) {
    gpu.processes.compute = Reading::Value(vec![4711]);
    gpu.health.clocks_event_reasons = Reading::Value(ClocksEventReasons(0));
}

/// A driver of this version, with all that comes with it.
fn driver_is(state: &mut NodeState, version: &str) {
    let reading = || Reading::Value(version.to_owned());
    state.driver = reading();
    state.driver_state.kernel_module = reading();
    state.driver_state.nvml = Reading::Value(format!("13.{version}"));
    state.host.fabric_manager.version = reading();
    each(state, |gpu| gpu.firmware.gsp = reading());
}

fn nothing(_: &mut NodeState) {}

fn stuck(end: ProbeEnd) -> StuckProbe {
    let gpu: Option<BusId> = Some(example::bus_id(0));
    StuckProbe { gpu, call: Some("nvmlDeviceGetMemoryInfo_v2".into()), end, pid: 4711 }
}

fn cases() -> Vec<Case> {
    use CheckId as Id;
    use example::{
        dra_tray, hgx, kubernetes_mig, old, slurm_mig, tray, uniform_mig, whole, without_gpus,
        without_mig,
    };
    let known: Intent = || example::at_known_addresses(whole());
    let case = |check, intent, fails, absent, gone| Case { check, intent, fails, absent, gone };
    vec![
        case(
            Id::NvmlHang,
            hgx,
            |s| s.stuck.push(stuck(ProbeEnd::StillThere)),
            (without_gpus, nothing),
            Here(|s| s.stuck.push(stuck(ProbeEnd::Killed { after_ms: 20_000 }))),
        ),
        case(
            Id::DriverMatch,
            hgx,
            |s| s.driver_state.kernel_module = Reading::Value("580.95.05".into()),
            (without_gpus, nothing),
            Here(|s| s.driver_state.kernel_module = unknown()),
        ),
        case(
            Id::DriverPolicy,
            hgx,
            |s| driver_is(s, "570.195.03"),
            (whole, nothing),
            Here(|s| s.driver = unknown()),
        ),
        case(
            Id::DriverVersion,
            hgx,
            |s| driver_is(s, "580.126.09"),
            (without_gpus, nothing),
            Here(|s| s.driver = unknown()),
        ),
        case(
            Id::GpuCount,
            hgx,
            |s| drop(gpus(s).pop()),
            // What an administrator has excluded does not count, if the spec takes it away, too.
            (without_gpus, |s| s.pci_gpus = absent()),
            Here(|s| s.gpus = unknown()),
        ),
        case(
            Id::GpuHandle,
            hgx,
            |s| {
                let why = "GPU is lost".to_owned();
                let (bus_id, index) = (Some(example::bus_id(7)), Some(7));
                s.driver_state.refused.push(RefusedGpu { bus_id, index, code: 15, why });
            },
            (without_gpus, nothing),
            Here(|s| s.driver_state.gpu_count = unknown()),
        ),
        case(
            Id::GpuLost,
            hgx,
            |s| gpus(s)[4].condition = Reading::Value(Condition::Lost),
            (without_gpus, nothing),
            Here(|s| gpus(s)[4].condition = unknown()),
        ),
        case(
            Id::GpuOnBus,
            hgx,
            |s| pci(s)[3].answers = Reading::Value(false),
            (without_gpus, nothing),
            Here(|s| pci(s)[3].answers = unknown()),
        ),
        case(
            Id::GpuKernelDriver,
            hgx,
            |s| pci(s)[3].kernel_driver = Reading::Value("vfio-pci".into()),
            (without_gpus, nothing),
            Here(|s| pci(s)[3].kernel_driver = unknown()),
        ),
        case(
            Id::GpuAddress,
            known,
            |s| {
                gpus(s)[1].bus_id = example::bus_id(9);
                pci(s)[1].bus_id = example::bus_id(9);
            },
            (whole, nothing),
            There(
                |s| {
                    s.gpus = unknown();
                    s.pci_gpus = unknown();
                },
                Id::GpuCount,
            ),
        ),
        case(
            Id::GpuModel,
            hgx,
            |s| gpus(s)[2].memory = Reading::Value(Mib(40_960)),
            (
                || {
                    let mut intent = whole();
                    intent.device_ids.clear();
                    let model = intent.class.gpu.as_mut().unwrap();
                    model.nvml_names.clear();
                    model.memory = None;
                    intent
                },
                nothing,
            ),
            Here(|s| gpus(s)[2].memory = unknown()),
        ),
        case(
            Id::GpuMinor,
            dra_tray,
            |s| gpus(s)[0].identity.minor = Reading::Value(1),
            (tray, |s| gpus(s)[0].identity.minor = Reading::Value(1)),
            Here(|s| gpus(s)[0].identity.minor = unknown()),
        ),
        case(
            Id::GpuPlace,
            hgx,
            |s| gpus(s)[1].identity.module_id = Reading::Value(1),
            (whole, |s| each(s, |gpu| gpu.identity.module_id = Reading::Value(0))),
            Here(|s| gpus(s)[1].identity.module_id = unknown()),
        ),
        case(
            Id::GpuNuma,
            hgx,
            |s| pci(s)[0].link.numa_node = Reading::Value(1),
            (hgx, |s| pci(s).iter_mut().for_each(|gpu| gpu.link.numa_node = absent())),
            Here(|s| pci(s)[0].link.numa_node = unknown()),
        ),
        case(
            Id::MigMode,
            uniform_mig,
            |s| {
                gpus(s)[0].mig_mode = Reading::Value(Mode { current: false, pending: false });
            },
            (without_mig, nothing),
            Here(|s| gpus(s)[0].mig_mode = unknown()),
        ),
        case(
            Id::MigLayout,
            uniform_mig,
            |s| drop(value(&mut gpus(s)[0].gpu_instances).pop()),
            (whole, nothing),
            Here(|s| gpus(s)[0].gpu_instances = unknown()),
        ),
        case(
            Id::MigCompute,
            uniform_mig,
            |s| {
                let instances = value(&mut gpus(s)[0].gpu_instances);
                value(&mut instances[0].compute_instances).clear();
            },
            (whole, nothing),
            Here(|s| value(&mut gpus(s)[0].gpu_instances)[0].compute_instances = unknown()),
        ),
        case(
            Id::MigDevices,
            uniform_mig,
            |s| value(&mut gpus(s)[0].mig_devices).clear(),
            (whole, nothing),
            Here(|s| gpus(s)[0].mig_devices = unknown()),
        ),
        case(
            Id::MigCaps,
            slurm_mig,
            |s| value(&mut s.host.mig_caps).iter_mut().for_each(|cap| cap.has_node = false),
            (whole, |s| s.host.mig_caps = unknown()),
            Here(|s| s.host.mig_caps = unknown()),
        ),
        case(
            Id::EccMode,
            hgx,
            |s| {
                gpus(s)[1].modes.ecc = Reading::Value(Mode { current: false, pending: true });
            },
            (whole, |s| each(s, |gpu| gpu.modes.ecc = unknown())),
            Here(|s| gpus(s)[1].modes.ecc = absent()),
        ),
        case(
            Id::PersistenceMode,
            hgx,
            |s| gpus(s)[1].modes.persistence = Reading::Value(false),
            (whole, |s| each(s, |gpu| gpu.modes.persistence = Reading::Value(false))),
            Here(|s| gpus(s)[1].modes.persistence = unknown()),
        ),
        case(
            Id::ComputeMode,
            hgx,
            |s| gpus(s)[1].modes.compute = Reading::Value(ComputeMode::Prohibited),
            (whole, |s| each(s, |gpu| gpu.modes.compute = absent())),
            Here(|s| gpus(s)[1].modes.compute = unknown()),
        ),
        case(
            Id::PowerLimit,
            hgx,
            |s| gpus(s)[1].power.limit = Reading::Value(Milliwatts(500_000)),
            (whole, |s| each(s, |gpu| gpu.power.limit = unknown())),
            Here(|s| gpus(s)[1].power.limit = unknown()),
        ),
        case(
            Id::PowerEnforced,
            hgx,
            |s| gpus(s)[1].power.enforced_limit = Reading::Value(Milliwatts(500_000)),
            (whole, |s| each(s, |gpu| gpu.power.enforced_limit = absent())),
            Here(|s| gpus(s)[1].power.enforced_limit = unknown()),
        ),
        case(
            Id::PcieWidth,
            hgx,
            |s| gpus(s)[4].pcie.width = Reading::Value(8),
            (whole, |s| each(s, |gpu| gpu.pcie.width = Reading::Value(8))),
            Here(|s| gpus(s)[4].pcie.width = unknown()),
        ),
        case(
            Id::PcieGeneration,
            hgx,
            |s| gpus(s)[4].pcie.max_generation = Reading::Value(4),
            (whole, |s| each(s, |gpu| gpu.pcie.max_generation = Reading::Value(4))),
            Here(|s| gpus(s)[4].pcie.max_generation = unknown()),
        ),
        case(
            Id::PcieGenerationInUse,
            hgx,
            |s| {
                busy(&mut gpus(s)[4]);
                gpus(s)[4].pcie.generation = Reading::Value(2);
            },
            (whole, |s| each(s, |gpu| gpu.pcie.generation = Reading::Value(1))),
            Here(|s| {
                busy(&mut gpus(s)[4]);
                gpus(s)[4].pcie.generation = unknown();
            }),
        ),
        case(
            Id::PcieAlike,
            whole,
            |s| gpus(s)[1].pcie.max_width = Reading::Value(8),
            (whole, |s| each(s, |gpu| gpu.pcie.max_width = absent())),
            Here(|s| gpus(s)[1].pcie.max_width = unknown()),
        ),
        case(
            Id::PcieReplay,
            hgx,
            // Nine within the minute.
            |s| gpus(s)[0].pcie.replays = Reading::Value(9),
            (hgx, |s| each(s, |gpu| gpu.identity.uuid = Reading::Value("GPU-new".into()))),
            Here(|s| gpus(s)[0].pcie.replays = unknown()),
        ),
        case(
            Id::NvlinkActive,
            hgx,
            |s| value(&mut gpus(s)[2].nvlinks)[17].active = Reading::Value(false),
            // DCGM reads the links of such a GPU as down.
            (hgx, |s| {
                each(s, |gpu| {
                    mig_on(gpu);
                    let links = value(&mut gpu.nvlinks).iter_mut();
                    links.for_each(|link| link.active = Reading::Value(false));
                });
            }),
            Here(|s| gpus(s)[2].nvlinks = absent()),
        ),
        case(
            Id::NvlinkPeers,
            hgx,
            |s| value(&mut s.peers)[0].nvlink = P2pStatus::NotSupported,
            (hgx, |s| {
                each(s, mig_on);
                s.peers = absent();
            }),
            Here(|s| s.peers = unknown()),
        ),
        case(
            Id::NvlinkErrors,
            hgx,
            |s| value(&mut gpus(s)[0].health.nvlink_errors)[17].recovery = 1,
            (hgx, |s| each(s, |gpu| gpu.identity.uuid = Reading::Value("GPU-new".into()))),
            Here(|s| gpus(s)[0].health.nvlink_errors = unknown()),
        ),
        case(
            Id::FabricState,
            hgx,
            |s| fabric(&mut gpus(s)[0]).state = FabricState::InProgress,
            (whole, |s| each(s, |gpu| gpu.fabric = absent())),
            Here(|s| gpus(s)[0].fabric = absent()),
        ),
        case(
            Id::FabricStatus,
            hgx,
            |s| fabric(&mut gpus(s)[0]).status = 999,
            (whole, nothing),
            There(|s| each(s, |gpu| gpu.fabric = unknown()), Id::FabricState),
        ),
        case(
            Id::FabricHealth,
            hgx,
            // Too few NVLinks.
            |s| value(&mut fabric(&mut gpus(s)[0]).health).mask = 5 << 8,
            (hgx, |s| each(s, |gpu| fabric(gpu).health = absent())),
            Here(|s| fabric(&mut gpus(s)[0]).health = unknown()),
        ),
        case(
            Id::FabricClique,
            tray,
            |s| fabric(&mut gpus(s)[3]).clique = 1,
            (whole, nothing),
            There(|s| each(s, |gpu| gpu.fabric = unknown()), Id::FabricState),
        ),
        case(
            Id::FabricDomain,
            tray,
            |s| {
                each(s, |gpu| {
                    fabric(gpu).cluster_uuid = "00000000-0000-0000-0000-000000000000".into();
                });
            },
            (hgx, nothing),
            There(|s| each(s, |gpu| gpu.fabric = unknown()), Id::FabricState),
        ),
        case(
            Id::FabricManagerRuns,
            hgx,
            |s| s.host.fabric_manager.unit = Reading::Value(UnitState::Inactive),
            (whole, |s| s.host.fabric_manager.unit = unknown()),
            Here(|s| s.host.fabric_manager.unit = unknown()),
        ),
        case(
            Id::FabricManagerVersion,
            hgx,
            |s| s.host.fabric_manager.version = Reading::Value("580.95.05".into()),
            (hgx, |s| s.host.fabric_manager.version = absent()),
            Here(|s| s.host.fabric_manager.version = unknown()),
        ),
        case(
            Id::ImexRuns,
            tray,
            |s| s.host.imex.unit = Reading::Value(UnitState::Inactive),
            (hgx, |s| s.host.imex.unit = unknown()),
            Here(|s| s.host.imex.unit = unknown()),
        ),
        case(
            Id::ImexVersion,
            tray,
            |s| s.host.imex.version = Reading::Value("580.95.05".into()),
            (dra_tray, nothing),
            Here(|s| s.host.imex.version = unknown()),
        ),
        case(
            Id::RecoveryAction,
            hgx,
            |s| gpus(s)[1].health.recovery_action = Reading::Value(RecoveryAction::GpuReset),
            (hgx, |s| each(s, |gpu| gpu.health.recovery_action = absent())),
            Here(|s| gpus(s)[1].health.recovery_action = unknown()),
        ),
        case(
            Id::RemapFailure,
            hgx,
            |s| rows(s).failure = true,
            (uniform_mig, nothing),
            Here(|s| gpus(s)[0].health.remapped_rows = absent()),
        ),
        case(
            Id::RemapPending,
            hgx,
            |s| rows(s).pending = true,
            (uniform_mig, nothing),
            Here(|s| gpus(s)[0].health.remapped_rows = unknown()),
        ),
        case(
            Id::RemapSpare,
            hgx,
            |s| {
                let (max, high, partial, low) = (2550, 6, 2, 1);
                gpus(s)[0].health.row_histogram =
                    Reading::Value(RowHistogram { max, high, partial, low, none: 1 });
            },
            (uniform_mig, nothing),
            Here(|s| gpus(s)[0].health.row_histogram = unknown()),
        ),
        case(
            Id::RemapGrowth,
            hgx,
            |s| rows(s).uncorrectable = 2,
            (hgx, |s| each(s, |gpu| gpu.identity.uuid = Reading::Value("GPU-new".into()))),
            Here(|s| gpus(s)[0].health.remapped_rows = unknown()),
        ),
        case(
            Id::RetiredPending,
            old,
            |s| value(&mut gpus(s)[0].health.retired_pages).pending = true,
            (whole, nothing),
            Here(|s| gpus(s)[0].health.retired_pages = unknown()),
        ),
        case(
            Id::RetiredCount,
            old,
            |s| {
                gpus(s)[0].health.retired_pages =
                    Reading::Value(RetiredPages { single_bit: 55, double_bit: 5, pending: false });
            },
            (whole, nothing),
            Here(|s| gpus(s)[0].health.retired_pages = unknown()),
        ),
        case(
            Id::EccUncorrected,
            hgx,
            |s| value(&mut gpus(s)[0].health.ecc_volatile).uncorrected = 1,
            (whole, |s| {
                each(s, |gpu| {
                    gpu.modes.ecc = Reading::Value(Mode { current: false, pending: false });
                    gpu.health.ecc_volatile = absent();
                });
            }),
            Here(|s| gpus(s)[0].health.ecc_volatile = absent()),
        ),
        case(
            Id::EccGrowth,
            hgx,
            |s| {
                let counts = EccCounts { corrected: 0, uncorrected: 3 };
                gpus(s)[0].health.ecc_aggregate = Reading::Value(counts);
            },
            (hgx, |s| each(s, |gpu| gpu.identity.uuid = unknown())),
            Here(|s| gpus(s)[0].health.ecc_aggregate = unknown()),
        ),
        case(
            Id::EccRate,
            hgx,
            |s| value(&mut gpus(s)[0].health.ecc_aggregate).corrected = 11,
            (hgx, |s| each(s, |gpu| gpu.identity.uuid = Reading::Value("GPU-new".into()))),
            Here(|s| gpus(s)[0].health.ecc_aggregate = unknown()),
        ),
        case(
            Id::SramThreshold,
            hgx,
            |s| gpus(s)[0].health.sram_threshold_exceeded = Reading::Value(true),
            (old, |s| each(s, |gpu| gpu.health.sram_threshold_exceeded = absent())),
            Here(|s| gpus(s)[0].health.sram_threshold_exceeded = unknown()),
        ),
        case(
            Id::RepairPending,
            hgx,
            |s| {
                gpus(s)[0].health.repair_pending =
                    Reading::Value(RepairPending { channel: true, tpc: false });
            },
            (hgx, |s| each(s, |gpu| gpu.health.repair_pending = absent())),
            Here(|s| gpus(s)[0].health.repair_pending = unknown()),
        ),
        case(
            Id::MemoryLeak,
            hgx,
            |s| gpus(s)[0].memory_used = Reading::Value(Mib(12_000)),
            (hgx, |s| {
                each(s, |gpu| {
                    busy(gpu);
                    gpu.memory_used = Reading::Value(Mib(70_000));
                });
            }),
            Here(|s| gpus(s)[0].processes.compute = unknown()),
        ),
        case(
            Id::ThrottleHardware,
            hgx,
            |s| {
                gpus(s)[0].health.clocks_event_reasons =
                    Reading::Value(ClocksEventReasons(0x1 | 0x80));
            },
            (without_gpus, nothing),
            Here(|s| gpus(s)[0].health.clocks_event_reasons = absent()),
        ),
        case(
            Id::ThermalMargin,
            hgx,
            |s| gpus(s)[0].health.thermal.margin = Reading::Value(Celsius(-2)),
            (old, |s| {
                each(s, |gpu| {
                    gpu.health.thermal.margin = absent();
                    gpu.health.thermal.slowdown = absent();
                });
            }),
            Here(|s| {
                gpus(s)[0].health.thermal.margin = unknown();
                gpus(s)[0].health.thermal.slowdown = unknown();
            }),
        ),
        case(
            Id::FirmwareVbios,
            hgx,
            |s| gpus(s)[5].firmware.vbios = Reading::Value("96.00.89.00.01".into()),
            (without_gpus, nothing),
            Here(|s| gpus(s)[5].firmware.vbios = unknown()),
        ),
        case(
            Id::FirmwareInforom,
            hgx,
            |s| gpus(s)[5].firmware.inforom = Reading::Value("G520.0200.00.01".into()),
            (without_gpus, nothing),
            Here(|s| gpus(s)[5].firmware.inforom = unknown()),
        ),
        case(
            Id::FirmwareInforomValid,
            hgx,
            |s| gpus(s)[5].firmware.inforom_valid = Reading::Value(false),
            (hgx, |s| each(s, |gpu| gpu.firmware.inforom_valid = absent())),
            Here(|s| gpus(s)[5].firmware.inforom_valid = unknown()),
        ),
        case(
            Id::FirmwareGsp,
            hgx,
            |s| gpus(s)[5].firmware.gsp = Reading::Value("580.95.05".into()),
            (old, |s| each(s, |gpu| gpu.firmware.gsp = absent())),
            Here(|s| gpus(s)[5].firmware.gsp = unknown()),
        ),
        case(
            Id::LogXid,
            hgx,
            |s| {
                gpus(s)[0].health.recovery_action = absent();
                log(s, xid(95));
            },
            (without_gpus, |s| s.host.kernel_log = unknown()),
            Here(|s| s.host.kernel_log = unknown()),
        ),
        case(
            Id::LogDriver,
            hgx,
            |s| {
                drop(gpus(s).remove(0));
                log(s, LogEventKind::FallenOffBus);
            },
            (without_gpus, |s| s.host.kernel_log = unknown()),
            Here(|s| s.host.kernel_log = unknown()),
        ),
        case(
            Id::LogSwitch,
            hgx,
            |s| log(s, LogEventKind::Sxid { code: 12_028, text: "Non-fatal".into() }),
            (without_gpus, |s| s.host.kernel_log = unknown()),
            Here(|s| s.host.kernel_log = unknown()),
        ),
        case(
            Id::LogComplete,
            hgx,
            |s| {
                let log = KernelLog { events: Vec::new(), truncated: true };
                s.host.kernel_log = Reading::Value(log);
            },
            (without_gpus, |s| s.host.kernel_log = unknown()),
            Here(|s| s.host.kernel_log = unknown()),
        ),
        case(
            Id::ModulesNvidia,
            hgx,
            |s| value(&mut s.host.modules).retain(|name| name != "nvidia"),
            (without_gpus, nothing),
            Here(|s| s.host.modules = unknown()),
        ),
        case(
            Id::ModulesUvm,
            hgx,
            |s| value(&mut s.host.modules).retain(|name| name != "nvidia_uvm"),
            (without_gpus, nothing),
            Here(|s| s.host.modules = unknown()),
        ),
        case(
            Id::ModulesDrm,
            || {
                let mut intent = uniform_mig();
                intent.class.gpu.as_mut().unwrap().mig_mode_needs_reset = true;
                intent
            },
            |s| value(&mut s.host.modules).push("nvidia_drm".into()),
            (uniform_mig, |s| value(&mut s.host.modules).push("nvidia_drm".into())),
            Here(|s| s.host.modules = unknown()),
        ),
        case(
            Id::DevicesGpu,
            hgx,
            |s| value(&mut s.host.device_nodes).retain(|node| node.path != "/dev/nvidia6"),
            (without_gpus, nothing),
            Here(|s| s.host.device_nodes = unknown()),
        ),
        case(
            Id::DevicesUvm,
            hgx,
            |s| value(&mut s.host.device_nodes).retain(|node| node.path != "/dev/nvidia-uvm"),
            (without_gpus, nothing),
            Here(|s| s.host.device_nodes = unknown()),
        ),
        case(
            Id::HostCpu,
            hgx,
            |s| value(&mut s.host.cpu).threads = 112,
            (whole, nothing),
            Here(|s| s.host.cpu = unknown()),
        ),
        case(
            Id::HostMemory,
            hgx,
            |s| s.host.memory = Reading::Value(Mib(1_900_000)),
            (whole, nothing),
            Here(|s| s.host.memory = unknown()),
        ),
        case(
            Id::HostMount,
            hgx,
            |s| value(&mut s.host.mounts).clear(),
            (whole, |s| s.host.mounts = unknown()),
            Here(|s| s.host.mounts = unknown()),
        ),
        case(
            Id::HostHugepages,
            hgx,
            |s| value(&mut s.host.hugepages)[0].total = 1023,
            (whole, |s| s.host.hugepages = unknown()),
            Here(|s| s.host.hugepages = unknown()),
        ),
        case(
            Id::NetworkPorts,
            hgx,
            |s| value(&mut s.host.infiniband)[3].state = Reading::Value("DOWN".into()),
            (whole, |s| s.host.infiniband = unknown()),
            Here(|s| value(&mut s.host.infiniband)[3].rate = unknown()),
        ),
        case(
            Id::NetworkPortsDown,
            hgx,
            |s| {
                let ports = value(&mut s.host.infiniband);
                let mut storage = ports[0].clone();
                storage.device = "mlx5_8".into();
                ports.push(storage);
                ports[3].state = Reading::Value("DOWN".into());
            },
            (whole, |s| s.host.infiniband = unknown()),
            There(|s| s.host.infiniband = unknown(), Id::NetworkPorts),
        ),
        case(
            Id::NetworkFirmware,
            hgx,
            |s| value(&mut s.host.infiniband)[3].firmware = Reading::Value("28.39.1002".into()),
            (whole, |s| s.host.infiniband = absent()),
            Here(|s| s.host.infiniband = unknown()),
        ),
        case(
            Id::SlurmGres,
            hgx,
            |s| value(&mut s.host.slurm_gres)[0].count = 7,
            (kubernetes_mig, |s| s.host.slurm_gres = unknown()),
            Here(|s| s.host.slurm_gres = unknown()),
        ),
        case(
            Id::SlurmFiles,
            hgx,
            |s| value(&mut s.host.slurm_gres)[0].files.push("/dev/nvidia8".into()),
            (hgx, |s| value(&mut s.host.slurm_gres)[0].files.clear()),
            Here(|s| gpus(s)[0].identity.minor = unknown()),
        ),
        case(
            Id::KubernetesResources,
            kubernetes_mig,
            |s| {
                let resources = &mut value(&mut s.host.kubernetes).resources;
                resources.insert("nvidia.com/mig-1g.10gb".into(), 0);
            },
            (kubernetes_mig, |s| s.host.kubernetes = absent()),
            Here(|s| s.host.kubernetes = unknown()),
        ),
        case(
            Id::KubernetesLabels,
            kubernetes_mig,
            |s| {
                let labels = &mut value(&mut s.host.kubernetes).labels;
                labels.insert("nvidia.com/mig.config".into(), "all-disabled".into());
            },
            (hgx, nothing),
            Here(|s| s.host.kubernetes = unknown()),
        ),
    ]
}

/// The report after a change, and with what the node was before it.
fn report(intent: Intent, change: Change) -> Report {
    let intent = intent();
    let before = example::state_of(&intent);
    let mut state = before.clone();
    change(&mut state);
    let options = Options { earlier: Some(&before), ..Options::default() };
    compare_with(&intent, &state, &options)
}

fn of(report: &Report, check: CheckId) -> (Vec<&Finding>, [u32; 4]) {
    let findings = report.findings.iter().filter(|finding| finding.check == check).collect();
    let counts = report.checks.iter().find(|counts| counts.check == check);
    let counts = counts.map_or([0; 4], |counts| {
        [counts.passed, counts.failed, counts.undecided, counts.not_applicable]
    });
    (findings, counts)
}

#[test]
fn every_check_is_tried_in_every_state() {
    let mut tried: Vec<CheckId> = cases().iter().map(|case| case.check).collect();
    tried.sort();
    assert_eq!(tried, CHECKS);
}

#[test]
fn every_check_holds_on_a_node_that_conforms() {
    for case in cases() {
        let report = report(case.intent, nothing);
        assert_eq!(report.findings, [], "{}", case.check.as_str());
        let (_, [passed, ..]) = of(&report, case.check);
        // What holds only under load has nothing to judge on an idle node.
        let idle = case.check == CheckId::PcieGenerationInUse;
        assert_eq!(passed > 0, !idle, "{}", case.check.as_str());
    }
}

#[test]
fn every_check_fails_with_the_severity_of_the_table() {
    for case in cases() {
        let name = case.check.as_str();
        let report = report(case.intent, case.fails);
        let (findings, [_, failed, ..]) = of(&report, case.check);
        let (severity, verdict) = match row(case.check).level {
            Level::Block => (Severity::Blocking, Verdict::DoesNotConform),
            Level::Warn => (Severity::Warning, Verdict::Conforms),
            Level::Info => (Severity::Info, Verdict::Conforms),
        };
        assert!(failed > 0, "{name}");
        let wrong = findings.iter().find(|finding| finding.severity != severity);
        assert!(!findings.is_empty() && wrong.is_none(), "{name}: {findings:#?}");
        assert_eq!(report.verdict, verdict, "{name}: {:#?}", report.findings);
        for finding in findings {
            let texts = [&finding.expected, &finding.seen];
            assert!(texts.iter().all(|text| !text.is_empty()), "{name}");
            let idle = finding.action == crate::report::Action::None;
            let says = !finding.actions.is_empty() || severity != Severity::Blocking;
            assert!(idle || says, "{name} says nothing of what to do");
        }
    }
}

#[test]
fn every_check_lets_pass_what_cannot_apply() {
    for case in cases() {
        let name = case.check.as_str();
        let (intent, change) = case.absent;
        let report = report(intent, change);
        let (findings, [_, failed, undecided, _]) = of(&report, case.check);
        assert!(findings.is_empty(), "{name}: {findings:#?}");
        assert_eq!((failed, undecided), (0, 0), "{name}");
    }
}

#[test]
fn every_check_is_undecided_without_its_reading() {
    for case in cases() {
        let name = case.check.as_str();
        let (change, there) = match case.gone {
            Here(change) => (change, case.check),
            There(change, there) => (change, there),
        };
        let report = report(case.intent, change);
        let (findings, [_, failed, ..]) = of(&report, case.check);
        assert_eq!(failed, 0, "{name}: {findings:#?}");
        let (findings, [.., undecided, _]) = of(&report, there);
        assert!(undecided > 0, "{name}: {:#?}", report.findings);
        match row(there).level {
            Level::Block => {
                let all = findings.iter().all(|finding| finding.severity == Severity::Undecided);
                assert!(!findings.is_empty() && all, "{name}: {findings:#?}");
                assert_eq!(report.verdict, Verdict::Undecided, "{name}: {:#?}", report.findings);
            }
            Level::Warn | Level::Info => assert!(findings.is_empty(), "{name}"),
        }
    }
}

/// What starts late, and the change that shows it not started.
const LATE: &[(CheckId, Intent, Change)] = &[
    (CheckId::FabricState, example::hgx, |s| {
        fabric(&mut gpus(s)[0]).state = FabricState::InProgress;
    }),
    (CheckId::FabricManagerRuns, example::hgx, |s| {
        s.host.fabric_manager.unit = Reading::Value(UnitState::Inactive);
    }),
    (CheckId::ImexRuns, example::tray, |s| {
        s.host.imex.unit = Reading::Value(UnitState::Inactive);
    }),
    (CheckId::KubernetesResources, example::kubernetes_mig, |s| {
        value(&mut s.host.kubernetes).resources.clear();
    }),
    (CheckId::ModulesUvm, example::hgx, |s| {
        value(&mut s.host.modules).retain(|name| name != "nvidia_uvm");
    }),
];

#[test]
fn what_starts_late_is_judged_once_the_grace_time_is_over() {
    for (check, intent, change) in LATE {
        let intent = intent();
        let severity = |uptime: Reading<Seconds>, grace: u64| {
            let mut state = example::state_of(&intent);
            change(&mut state);
            state.host.uptime = uptime;
            let options = Options { grace: Seconds(grace), ..Options::default() };
            let report = compare_with(&intent, &state, &options);
            of(&report, *check).0.first().map(|finding| finding.severity)
        };
        let after = |seconds| Reading::Value(Seconds(seconds));
        assert_eq!(severity(after(299), 300), Some(Severity::Undecided), "{check:?}");
        assert_eq!(severity(after(300), 300), Some(Severity::Blocking), "{check:?}");
        assert_eq!(severity(after(10), 0), Some(Severity::Blocking), "{check:?}");
        assert_eq!(severity(unknown(), 300), Some(Severity::Undecided), "{check:?}");
    }
}

#[test]
fn persistence_right_after_boot_is_no_warning() {
    let intent = example::hgx();
    let mut state = example::state_of(&intent);
    gpus(&mut state)[0].modes.persistence = Reading::Value(false);
    state.host.uptime = Reading::Value(Seconds(20));
    assert_eq!(compare(&intent, &state).findings, []);
}

#[test]
fn an_xid_counts_until_the_driver_asks_for_nothing_more() {
    let intent = example::hgx();
    let severity = |code: u16, recovery: Reading<RecoveryAction>| {
        let mut state = example::state_of(&intent);
        gpus(&mut state)[0].health.recovery_action = recovery;
        log(&mut state, xid(code));
        log(&mut state, xid(code));
        let findings = compare(&intent, &state).findings;
        let found = findings.iter().find(|finding| finding.check == CheckId::LogXid);
        found.map(|finding| finding.severity)
    };
    let none = || Reading::Value(RecoveryAction::None);
    assert_eq!(severity(95, none()), Some(Severity::Warning));
    assert_eq!(
        severity(95, Reading::Value(RecoveryAction::DrainAndReset)),
        Some(Severity::Blocking)
    );
    assert_eq!(severity(95, absent()), Some(Severity::Blocking), "an A100 does not tell");
    assert_eq!(severity(95, unknown()), Some(Severity::Undecided));
    // Faults of an application, and what calls for nobody.
    assert_eq!(severity(31, none()), None);
    assert_eq!(severity(45, absent()), None);
    assert_eq!(severity(63, absent()), Some(Severity::Warning));
    assert_eq!(severity(9_999, none()), Some(Severity::Warning), "no table knows it");
}

#[test]
fn a_gpu_that_is_excluded_on_purpose_is_not_counted_on_pci() {
    let mut intent = example::whole();
    intent.class.gpus.pop();
    let mut state = example::state_of(&example::whole());
    gpus(&mut state).pop();
    state.driver_state.gpu_count = Reading::Value(1);
    let count = |state: &NodeState| {
        let report = compare(&intent, state);
        let found = of(&report, CheckId::GpuCount).0;
        found.first().map(|finding| (finding.severity, finding.seen.clone()))
    };
    let text = "2 on PCI, 1 in NVML, not in NVML: 00000000:20:00.0".to_owned();
    assert_eq!(count(&state), Some((Severity::Blocking, text)));
    let (bus_id, uuid) = (example::bus_id(1), "GPU-2".into());
    state.driver_state.excluded = Reading::Value(vec![ExcludedGpu { bus_id, uuid }]);
    assert_eq!(count(&state), None);
    state.driver_state.excluded = unknown();
    let text = "perhaps excluded, perhaps not opened: 00000000:20:00.0".to_owned();
    assert_eq!(count(&state), Some((Severity::Undecided, text)));
}

#[test]
fn bridges_make_islands_and_each_gpu_reaches_those_of_its_own() {
    let intent = example::islands();
    let mut state = example::state_of(&intent);
    assert_eq!(compare(&intent, &state).findings, []);
    // GPU 1 loses its bridge.
    let lost = example::bus_id(1);
    for pair in value(&mut state.peers) {
        if pair.a == lost || pair.b == lost {
            pair.nvlink = P2pStatus::NotSupported;
        }
    }
    let report = compare(&intent, &state);
    let found: Vec<u32> =
        report.findings.iter().filter_map(|finding| finding.gpu.map(|gpu| gpu.index)).collect();
    assert_eq!(found, [0, 1, 2, 3], "and so do the three others of its island");
    assert_eq!(report.findings[1].seen, "0 peers over NVLink, none to GPU 0 2 3 4 5 6 7");
}

#[test]
fn a_policy_decides_how_much_a_check_matters() {
    let mut intent = example::hgx();
    let mut state = example::state_of(&intent);
    value(&mut state.host.modules).retain(|name| name != "nvidia_uvm");
    let checks = |intent: &NodeIntent| compare(intent, &state).verdict;
    assert_eq!(checks(&intent), Verdict::DoesNotConform);
    let (_, policy) = intent.class.policy.as_mut().unwrap();
    policy.checks.insert(CheckId::ModulesUvm, Level::Warn);
    assert_eq!(checks(&intent), Verdict::Conforms);
}

#[test]
fn a_product_of_which_nobody_knows_if_rows_are_remapped_may_answer_or_not() {
    let mut intent = example::whole();
    intent.class.gpu.as_mut().unwrap().row_remap = None;
    let mut state = example::state_of(&example::whole());
    assert_eq!(compare(&intent, &state).findings, [], "zeros, as an RTX 4090 answers");
    each(&mut state, |gpu| gpu.health.remapped_rows = absent());
    assert_eq!(compare(&intent, &state).findings, []);
    let failed = RemappedRows { correctable: 0, uncorrectable: 1, pending: false, failure: true };
    gpus(&mut state)[0].health.remapped_rows = Reading::Value(failed);
    assert_eq!(compare(&intent, &state).verdict, Verdict::DoesNotConform);
}

#[test]
fn imex_beside_the_dra_driver_is_one_too_many() {
    let intent = example::dra_tray();
    let mut state = example::state_of(&intent);
    assert_eq!(compare(&intent, &state).findings, [], "no daemon while there is no ComputeDomain");
    state.host.imex.unit = Reading::Value(UnitState::Active);
    let report = compare(&intent, &state);
    let (found, _) = of(&report, CheckId::ImexRuns);
    assert_eq!(found[0].actions, ["systemctl disable --now nvidia-imex"]);
    assert_eq!(report.verdict, Verdict::DoesNotConform);
}
