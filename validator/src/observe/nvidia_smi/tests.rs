//! Captures of our own, in the structure of the public ones, with values that tell fields apart.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::state::{
    AddressingMode, ClocksEventReasons, Condition, EccCounts, FabricFault, FabricState, GpuState,
    Mode, P2pStatus, RecoveryAction, RemappedRows, RepairPending, RowHistogram,
};
use fleetc_schema::mig::Placement;
use fleetc_schema::units::{Celsius, Mhz, Mib, Milliwatts};

const A100: &str = include_str!("captures/v11-a100-mig.xml");
const LGI: &str = include_str!("captures/v11-a100-mig.lgi.txt");
const LCI: &str = include_str!("captures/v11-a100-mig.lci.txt");
const LIST: &str = include_str!("captures/v11-a100-mig.list.txt");
const TOPO: &str = include_str!("captures/v11-a100.topo.txt");
const GB200: &str = include_str!("captures/v13-gb200.xml");

/// Captures by the names of their options.
fn read(captures: &[(&str, &str)]) -> Result<Inferred, String> {
    let dir = TempDir::new().unwrap();
    let file = |name: &str| {
        let (_, text) = captures.iter().find(|(known, _)| *known == name)?;
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        Some(path)
    };
    let source = NvidiaSmi {
        query: file("xml").unwrap(),
        list: file("list"),
        gpu_instances: file("lgi"),
        compute_instances: file("lci"),
        topology: file("topo"),
    };
    let folder = format!("{}/", dir.path().display());
    source.read().map_err(|error| error.to_string().replace(&folder, ""))
}

fn gpus(captures: &[(&str, &str)]) -> Vec<GpuState> {
    read(captures).unwrap().state.gpus.value().unwrap().clone()
}

fn is_unknown<T>(reading: &Reading<T>) -> bool {
    matches!(reading, Reading::Unknown(_))
}

fn is_not_applicable<T>(reading: &Reading<T>) -> bool {
    matches!(reading, Reading::NotApplicable(_))
}

#[test]
fn a_document_of_v11() {
    let state = read(&[("xml", A100)]).unwrap().state;
    assert_eq!(state.driver, Reading::Value("470.182.03".to_owned()));
    assert_eq!(state.driver_state.cuda, Reading::Value("11.4".to_owned()));
    assert_eq!(state.driver_state.gpu_count, Reading::Value(2));
    assert!(is_unknown(&state.pci_gpus), "PCI is another witness");
    let gpus = state.gpus.value().unwrap();
    let [gpu, off] = gpus.as_slice() else { panic!("{gpus:?}") };
    assert_eq!((gpu.bus_id.to_string().as_str(), gpu.index), ("00000000:07:00.0", 0));
    assert_eq!(gpu.identity.minor, Reading::Value(2), "the minor is not the index");
    assert_eq!(gpu.identity.module_id, Reading::Value(4));
    assert_eq!(gpu.identity.architecture, Reading::Value(7));
    assert_eq!(gpu.identity.subsystem, Reading::Value(0x134f_10de));
    assert_eq!(gpu.device_id.value().unwrap().to_string(), "0x20b0");
    assert_eq!(
        (&gpu.memory, &gpu.memory_used),
        (&Reading::Value(Mib(40_536)), &Reading::Value(Mib(25)))
    );
    assert_eq!(gpu.mig_mode, Reading::Value(Mode { current: true, pending: true }));
    assert_eq!(gpu.modes.ecc, Reading::Value(Mode { current: true, pending: false }));
    assert_eq!((&gpu.pcie.width, &gpu.pcie.max_width), (&Reading::Value(8), &Reading::Value(16)));
    assert_eq!(gpu.pcie.max_generation, Reading::Value(4));
    assert_eq!(gpu.pcie.replays, Reading::Value(3));
    assert!(is_unknown(&gpu.pcie.device_generation), "v11 does not tell");
    assert_eq!(gpu.power.limit, Reading::Value(Milliwatts(375_500)));
    assert_eq!(gpu.power.enforced_limit, Reading::Value(Milliwatts(350_000)));
    assert_eq!(gpu.clocks.max_memory, Reading::Value(Mhz(1_215)));
    assert_eq!(gpu.health.clocks_event_reasons, Reading::Value(ClocksEventReasons(0x84)));
    let counts = EccCounts { corrected: 4, uncorrected: 6 };
    assert_eq!(gpu.health.ecc_volatile, Reading::Value(counts));
    assert!(is_not_applicable(&gpu.health.ecc_aggregate));
    assert!(is_not_applicable(&gpu.health.remapped_rows));
    assert!(is_not_applicable(&gpu.health.retired_pages));
    assert_eq!(gpu.health.thermal.slowdown, Reading::Value(Celsius(89)));
    assert_eq!(gpu.processes.compute, Reading::Value(vec![17, 4_242]));
    assert!(is_not_applicable(&gpu.firmware.gsp));
    assert!(is_unknown(&gpu.gpu_instances), "the XML has no placements");
    let devices = gpu.mig_devices.value().unwrap();
    let ids = |device: &crate::state::MigDevice| (device.index, device.gpu_instance.clone());
    assert_eq!(devices.iter().map(ids).collect::<Vec<_>>()[1], (1, Reading::Value(5)));
    assert_eq!(devices[2].memory, Reading::Value(Mib(4_864)));
    assert_eq!(off.mig_mode, Reading::Value(Mode { current: false, pending: true }));
    assert!(is_not_applicable(&off.gpu_instances) && is_not_applicable(&off.mig_devices));
    assert_eq!(off.processes.compute, Reading::Value(Vec::new()));
    assert!(is_unknown(&off.fabric), "v11 does not tell");
}

#[test]
fn a_document_of_v13() {
    let Inferred { state, inferred } = read(&[("xml", GB200)]).unwrap();
    assert_eq!(inferred, ["NVML indexes, from the order of the GPUs"]);
    assert_eq!(state.driver, Reading::Value("580.105.08".to_owned()), "under its new name");
    assert_eq!(state.driver_state.cuda, Reading::Value("13.0".to_owned()));
    let gpus = state.gpus.value().unwrap();
    let [gpu, lost] = gpus.as_slice() else { panic!("{gpus:?}") };
    let platform = gpu.identity.platform.value().unwrap();
    assert_eq!((platform.slot, platform.tray, platform.host), (14, 4, 1));
    assert_eq!((platform.module_id, platform.peer_type), (2, 1));
    assert_eq!(gpu.identity.module_id, Reading::Value(2));
    assert_eq!(gpu.modes.addressing, Reading::Value(AddressingMode::Ats));
    assert_eq!(gpu.c2c.enabled, Reading::Value(true));
    assert_eq!(gpu.health.recovery_action, Reading::Value(RecoveryAction::DrainAndReset));
    assert_eq!(gpu.health.clocks_event_reasons, Reading::Value(ClocksEventReasons(0x41)));
    let counts = EccCounts { corrected: 0, uncorrected: 7 };
    assert_eq!(gpu.health.ecc_volatile, Reading::Value(counts));
    assert_eq!(gpu.health.sram_threshold_exceeded, Reading::Value(true));
    let repair = RepairPending { channel: false, tpc: true };
    assert_eq!(gpu.health.repair_pending, Reading::Value(repair));
    let rows = RemappedRows { correctable: 0, uncorrectable: 2, pending: true, failure: false };
    assert_eq!(gpu.health.remapped_rows, Reading::Value(rows));
    let banks = RowHistogram { max: 5_110, high: 9, partial: 1, low: 0, none: 0 };
    assert_eq!(gpu.health.row_histogram, Reading::Value(banks));
    assert_eq!(gpu.health.thermal.margin, Reading::Value(Celsius(-3)));
    assert_eq!(gpu.power.limit, Reading::Value(Milliwatts(1_200_000)), "not the module's");
    assert_eq!(gpu.power.enforced_limit, Reading::Value(Milliwatts(1_100_000)));
    assert!(is_unknown(&gpu.clocks.application_sm), "deprecated is no value");
    assert!(is_not_applicable(&gpu.processes.compute));
    let fabric = gpu.fabric.value().unwrap();
    assert_eq!((fabric.state, fabric.status, fabric.clique), (FabricState::Completed, 0, 7));
    let health = fabric.health.value().unwrap();
    assert_eq!((health.summary, health.faults()), (Some(3), vec![FabricFault::DegradedBandwidth]));

    assert_eq!(gpu.condition, Reading::Value(Condition::Usable));
    assert_eq!(lost.condition, Reading::Value(Condition::Lost));
    assert!(is_unknown(&lost.mig_mode) && is_unknown(&lost.memory));
    assert!(is_unknown(&lost.identity.uuid), "what is lost has no UUID of that name");
    assert_eq!(lost.fabric.value().unwrap().state, FabricState::InProgress);
}

#[test]
fn tables_of_instances_make_layouts_exact() {
    let all = [("xml", A100), ("lgi", LGI), ("lci", LCI), ("list", LIST), ("topo", TOPO)];
    let Inferred { state, inferred } = read(&all).unwrap();
    assert_eq!(inferred.len(), 2, "{inferred:?}");
    let gpus = state.gpus.value().unwrap();
    let instances = gpus[0].gpu_instances.value().unwrap();
    let shape = |at: usize| (instances[at].profile_id, instances[at].id, instances[at].placement);
    assert_eq!(shape(0), (19, 13, Placement { start: 6, size: 1 }));
    assert_eq!(shape(2), (9, 1, Placement { start: 0, size: 4 }));
    let compute = instances[2].compute_instances.value().unwrap();
    assert_eq!((compute[0].id, compute[0].placement.start), (1, 1));
    assert!(is_not_applicable(&gpus[1].gpu_instances), "MIG mode is off there");
    let devices = gpus[0].mig_devices.value().unwrap();
    assert_eq!(devices[1].name.value().unwrap(), "NVIDIA A100-SXM4-40GB MIG 2g.10gb");
    assert_eq!(devices[1].uuid.value().unwrap(), "MIG-00000000-0000-5000-8000-00000000000b");
    assert!(is_unknown(&devices[2].uuid), "the list has two");
    let peers = state.peers.value().unwrap();
    assert_eq!(peers.len(), 1);
    assert_eq!(peers[0].nvlink, P2pStatus::Ok);
    assert_eq!(gpus[1].numa.near_nodes, Reading::Value(vec![1, 2]));
}

#[test]
fn no_instance_at_all_is_a_reading_too() {
    let none = "No GPU instances found: Not Found\n";
    let gpus = gpus(&[("xml", A100), ("lgi", none)]);
    assert_eq!(gpus[0].gpu_instances, Reading::Value(Vec::new()));
}

#[test]
fn what_is_wrong_is_refused_at_its_place() {
    let refused = |captures: &[(&str, &str)]| read(captures).unwrap_err();
    let xml = |text: &str| refused(&[("xml", text)]);
    assert!(xml("<html></html>").starts_with("xml:1:1: `html`, where"), "{}", xml("<html></html>"));
    let no_id = "<nvidia_smi_log>\n <gpu></gpu></nvidia_smi_log>";
    assert!(xml(no_id).starts_with("xml:2:2: `` is not a PCI bus id"), "{}", xml(no_id));
    let twice = A100.replace("00000000:0F:00.0", "0000:07:00.0");
    assert!(xml(&twice).contains(": a second GPU at 00000000:07:00.0"), "{}", xml(&twice));
    for length in (0..GB200.len()).step_by(61).filter(|length| *length + 20 < GB200.len()) {
        let error = xml(GB200.get(..length).unwrap());
        let place = error.strip_prefix("xml:").unwrap().split(':').take(2);
        assert!(place.into_iter().all(|number| number.parse::<usize>().is_ok()), "{error}");
    }
    for (option, text, error) in [
        ("lgi", "nothing", "lgi: holds no table `GPU instances:`"),
        ("lgi", "GPU instances:\n|  9  MIG 1g.5gb  19  1  0:1 |", "lgi:2:4: the XML has no GPU 9"),
        (
            "lgi",
            "GPU instances:\n|  0  MIG 1g.5gb  19  1  0:x |",
            "lgi:2:26: `0:x` is not a placement",
        ),
        ("lgi", "GPU instances:\n|  0  MIG 1g.5gb  19  |", "lgi:2:1: not a row"),
        (
            "lgi",
            "GPU instances:\n|  1  MIG 1g.5gb  19  1  0:1 |",
            "lgi:2:4: in the XML this GPU has",
        ),
        ("list", "  MIG 1g.5gb Device 0: (UUID: x)", "list:1:1: not a line of `nvidia-smi -L`"),
        ("topo", "x", "topo: holds no matrix"),
        ("topo", "\tGPU0\tGPU1\nGPU0\tX\tQQ\n", "topo:2:8: `QQ` is no link of GPUs"),
    ] {
        let found = refused(&[("xml", A100), (option, text)]);
        assert!(found.starts_with(error), "{found}");
    }
}
