//! What goes wrong in drivers, each played by the library: the rest is reported, and in time.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use fleetc_fake_nvml::node::{Effect, Fault};
use fleetc_fake_nvml::without_symbols;
use serde_json::json;

use crate::stage::{Run, Stage, fault, sliced, stage, whole};

/// The deadline of these tests, and what the answer may take beyond it.
const DEADLINE: Duration = Duration::from_secs(3);
const GRACE: Duration = Duration::from_secs(1);

fn hurried(mut stage: Stage) -> Stage {
    stage.deadline = "3s";
    stage
}

fn in_time(run: &Run) {
    assert!(run.took < DEADLINE + GRACE, "it took {:?}", run.took);
}

#[test]
fn a_gpu_that_hangs_costs_its_own_readings_only() {
    let mut stage = hurried(sliced());
    stage.node.faults.push(fault("nvmlDeviceGetGpuInstances", Some(1), Effect::Hang));
    // A finding of another GPU is still found.
    stage.node.gpus[3].mig.as_mut().unwrap().gpu_instances.clear();
    let run = stage.check();
    in_time(&run);
    assert_eq!(run.code, 1, "{run:?}");
    let found = run.findings();
    let of = |check: &str, gpu: u64| {
        let found = found.iter().find(|(of, _, at, _)| of == check && *at == Some(gpu));
        found.map(|(_, severity, _, seen)| (severity.as_str(), seen.as_str()))
    };
    assert_eq!(of("mig.layout", 3), Some(("blocking", "no GPU instance")));
    let (severity, seen) = of("mig.layout", 1).unwrap();
    assert_eq!(severity, "undecided");
    assert!(seen.contains("nvmlDeviceGetGpuInstances did not answer in "), "{seen}");
    let (severity, seen) = of("nvml.hang", 1).unwrap();
    assert_eq!(severity, "undecided");
    assert!(seen.starts_with("nvmlDeviceGetGpuInstances gave none in "), "{seen}");
    // What it had told before is kept: the count, the product and MIG mode are no findings.
    assert_eq!((of("gpu.model", 1), of("mig.mode", 1)), (None, None));
    let others = found.iter().filter(|(_, severity, at, _)| {
        *at != Some(3) && (*at, severity.as_str()) != (Some(1), "undecided")
    });
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&_>::new(), "the others are good");
    assert!(stage.notes().is_empty(), "it could be killed");
}

#[test]
fn every_call_may_hang_and_the_answer_comes_in_time() {
    for call in [
        "nvmlInit_v2",
        "nvmlDeviceGetCount_v2",
        "nvmlDeviceGetHandleByIndex_v2",
        "nvmlDeviceGetHandleByPciBusId_v2",
        "nvmlDeviceGetPciInfo_v3",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetFieldValues",
        "nvmlDeviceGetP2PStatus",
    ] {
        let mut stage = hurried(stage("h100-sxm5-80gb", 2, &[]));
        stage.node.faults.push(fault(call, None, Effect::Hang));
        let run = stage.check();
        in_time(&run);
        assert_eq!(run.code, 2, "{call}: {run:?}");
        assert!(run.seen("nvml.hang").iter().all(|seen| seen.starts_with(call)), "{call}: {run:?}");
        assert!(!run.seen("nvml.hang").is_empty(), "{call}");
    }
}

#[test]
fn a_gpu_without_a_handle_that_hangs_keeps_its_index() {
    let mut stage = hurried(stage("h100-sxm5-80gb", 4, &[]));
    // By index in the inventory, by bus id in its own probe.
    for call in ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByPciBusId_v2"] {
        stage.node.faults.push(fault(call, Some(2), Effect::Hang));
    }
    let run = stage.check();
    in_time(&run);
    assert_eq!(run.code, 2);
    assert_eq!(run.seen("gpu.count"), [""; 0], "four count, though one does not answer");
    assert!(
        run.findings().iter().all(|(_, severity, gpu, _)| {
            severity == "undecided" && matches!(gpu, None | Some(2))
        }),
        "{run:?}"
    );
}

#[test]
fn files_that_hang_cost_what_is_in_them() {
    let mut stage = hurried(whole());
    fs::remove_file(stage.path("root/proc/modules")).unwrap();
    let pipe = Command::new("mkfifo").arg(stage.path("root/proc/modules")).status().unwrap();
    assert!(pipe.success());
    stage.node.gpus[0].memory.0 = 40 << 30;
    let run = stage.check();
    in_time(&run);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(run.seen("gpu.model").len(), 1, "GPUs are judged all the same");
    assert_eq!(run.seen("gpu.count"), [""; 0], "PCI was read before");
    assert!(
        run.seen("nvml.hang")[0].starts_with("reading /proc and /sys gave none in "),
        "{run:?}"
    );
}

/// Functions that the library has.
fn functions(stage: &Stage) -> Vec<String> {
    let bytes = fs::read(&stage.library).unwrap();
    let words = bytes.split(|byte| *byte == 0).filter_map(|word| std::str::from_utf8(word).ok());
    let is_name = |word: &&str| {
        word.starts_with("nvml") && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let mut names: Vec<String> = words.filter(is_name).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn whatever_a_call_returns_it_turns_no_good_node_away() {
    let mut stage = stage("h100-sxm5-80gb", 2, &[&[("3g.40gb", 2)]]);
    let functions = functions(&stage);
    assert!(functions.len() > 60, "{functions:?}");
    // Not supported, no permission, deprecated, unknown, and what no header knows.
    let mut codes = [3, 4, 26, 999, 77].into_iter().cycle();
    for call in functions {
        // A lost GPU that gives no handle is gone: that is a finding.
        let codes: Vec<u32> = match call.starts_with("nvmlDeviceGetHandleBy") {
            true => vec![4, 999, 77],
            false => codes.by_ref().take(1).collect(),
        };
        for code in codes {
            stage.node.faults = vec![fault(&call, None, Effect::Return(code))];
            let run = stage.check();
            assert!(matches!(run.code, 0 | 2), "{call} returns {code}: {run:?}");
            let findings = run.findings();
            let undecided = findings.iter().all(|(_, severity, ..)| severity == "undecided");
            assert!(undecided, "{call} returns {code}: {findings:?}");
        }
    }
}

#[test]
fn a_slow_call_is_waited_for() {
    let mut stage = whole();
    stage.node.faults.push(fault("nvmlDeviceGetMigMode", Some(3), Effect::Slow(700)));
    let run = stage.check();
    assert_eq!((run.code, run.findings()), (0, Vec::new()), "{}", run.err);
    assert!(run.took >= Duration::from_millis(700));
}

#[test]
fn a_lost_gpu_is_told_with_its_address_and_costs_no_other() {
    for (code, why) in [(15, "the GPU is lost"), (16, "the GPU requires a reset")] {
        let mut stage = whole();
        stage.node.gpus[5].dead = Some(code);
        let run = stage.check();
        assert_eq!(run.code, 1);
        let seen = "8 on PCI, 7 in NVML, not in NVML: 00000000:60:00.0";
        assert_eq!(run.seen("gpu.count"), [seen]);
        let state = stage.snapshot();
        assert_eq!(state["driver_state"]["gpu_count"], json!({ "value": 8 }), "it still counts");
        let refused = json!([{ "bus_id": "00000000:60:00.0", "index": null, "code": code,
            "why": format!("NVML: {why}") }]);
        assert_eq!(state["driver_state"]["refused"], refused);
    }
}

#[test]
fn a_gpu_that_is_lost_while_it_is_read_is_told() {
    let mut stage = whole();
    stage.node.faults.push(fault("nvmlDeviceGetMemoryInfo_v2", Some(2), Effect::Return(15)));
    stage.node.faults.push(fault("nvmlDeviceGetGpuFabricInfoV", Some(2), Effect::Return(15)));
    let run = stage.check();
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(run.seen("gpu.lost"), ["NVML says that the GPU is lost"]);
    // Said once, and not again: one reading turns no node away.
    let mut stage = whole();
    stage.node.faults.push(fault("nvmlDeviceGetMemoryInfo_v2", Some(2), Effect::Return(16)));
    let run = stage.check();
    assert_eq!(run.code, 2, "{run:?}");
}

#[test]
fn a_gpu_that_the_driver_could_not_start_is_on_pci_only() {
    let mut stage = whole();
    stage.node.gpus.pop();
    let run = stage.check();
    assert_eq!(run.code, 1);
    assert_eq!(run.seen("gpu.count"), ["8 on PCI, 7 in NVML, not in NVML: 00000000:80:00.0"]);
}

#[test]
fn a_count_short_by_one_is_found_without_pci_too() {
    let mut stage = whole();
    stage.node.count = Some(7);
    fs::remove_dir_all(stage.path("root/sys")).unwrap();
    let run = stage.check();
    assert_eq!(run.code, 1);
    assert_eq!(run.seen("gpu.count")[0], "7 in NVML");
}

#[test]
fn a_gpu_that_is_gone_from_pci_is_still_read() {
    let stage = whole();
    stage.remove_pci(0);
    let run = stage.check();
    assert_eq!(run.code, 1);
    assert_eq!(run.seen("gpu.count"), ["7 on PCI, 8 in NVML, not on PCI: 00000000:10:00.0"]);
}

#[test]
fn a_container_with_some_of_the_devices_decides_nothing_about_the_others() {
    let mut stage = whole();
    stage.node.gpus.truncate(2);
    for minor in 2..8 {
        fs::remove_file(stage.path(&format!("root/dev/nvidia{minor}"))).unwrap();
    }
    let run = stage.check();
    assert_eq!(run.code, 2, "{run:?}");
    let seen = run.seen("gpu.count").concat();
    assert!(seen.contains("there are fewer /dev/nvidiaN than GPUs"), "{seen}");
}

#[test]
fn a_process_with_threads_starts_no_probe() {
    let stage = whole();
    let live = fleetc_validate::observe::Live {
        library: stage.library.clone().into(),
        root: stage.path("root"),
        state_dir: stage.path("notes"),
        deadline: DEADLINE,
        slurmd: None,
        kubernetes_node: None,
        inforom: false,
        now: None,
    };
    // This process has more than one thread: the harness has one a test.
    let error = fleetc_validate::observe::Observe::observe(&live).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "only a process with one thread can read the node");
}

#[test]
fn a_return_code_that_nobody_knows_decides_nothing() {
    let mut stage = sliced();
    stage.node.faults.push(fault("nvmlDeviceGetMigMode", Some(0), Effect::Return(77)));
    let run = stage.check();
    assert_eq!(run.code, 2);
    let seen = &run.seen("mig.mode")[0];
    assert_eq!(seen, "MIG mode unknown: NVML answers 77, which this program does not know");
    // A handle that is refused so is no lost GPU.
    let mut stage = whole();
    stage.node.faults.push(fault("nvmlDeviceGetHandleByPciBusId_v2", Some(0), Effect::Return(999)));
    let run = stage.check();
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.seen("gpu.model")[0].contains("unknown error"), "{run:?}");
}

#[test]
fn a_probe_that_crashes_costs_its_own_gpu_only() {
    let mut stage = whole();
    stage.node.faults.push(fault("nvmlDeviceGetSerial", Some(6), Effect::Crash));
    let run = stage.check();
    assert_eq!(run.code, 2);
    assert_eq!(run.seen("nvml.hang").len(), 1);
    assert!(run.seen("nvml.hang")[0].contains("crashed with signal 6"), "{run:?}");
    let of_it = |(_, severity, gpu, _): &(String, String, Option<u64>, String)| {
        (severity.as_str(), *gpu) == ("undecided", Some(6))
    };
    assert!(run.findings().iter().all(of_it), "{run:?}");
    assert!(run.seen("gpu.model").is_empty(), "it was told before: {run:?}");
}

#[test]
fn layouts_take_root_and_the_report_says_so() {
    let mut stage = sliced();
    stage.node.root = false;
    let run = stage.check();
    assert_eq!(run.code, 2);
    let why = "GPU instances unknown: no permission: only root may list GPU instances";
    assert_eq!(run.seen("mig.layout"), [why; 4]);
    let state = stage.snapshot();
    let devices = &state["gpus"]["value"][0]["mig_devices"]["value"];
    assert_eq!(devices.as_array().unwrap().len(), 7, "anyone may list MIG devices");
}

#[test]
fn renamed_profiles_are_the_same_profiles() {
    let mut stage = sliced();
    for gpu in &mut stage.node.gpus {
        for profile in &mut gpu.mig.as_mut().unwrap().profiles {
            profile.name = profile.name.replace("10gb", "11gb");
        }
    }
    let run = stage.check();
    assert_eq!((run.code, run.findings()), (0, Vec::new()), "{}", run.err);
    let state = stage.snapshot();
    let profiles = &state["gpus"]["value"][0]["mig_profiles"]["value"];
    assert!(profiles.to_string().contains("1g.11gb"));
}

#[test]
fn two_readings_that_differ_turn_no_node_away() {
    let off = Fault {
        after: 0,
        ..fault("nvmlDeviceGetMigMode", Some(0), Effect::Set("/mig/current".into(), json!(0)))
    };
    // One GPU has no peers, so the inventory does not ask for its mode, and calls can be counted.
    let one = || stage("h100-sxm5-80gb", 1, &[&[("1g.10gb", 7)]]);
    // Off in every reading: blocks.
    let mut stage = one();
    stage.node.faults.push(off.clone());
    let run = stage.check();
    assert_eq!(run.code, 1, "{run:?}");
    // Off at first, then on.
    let mut stage = one();
    stage.node.gpus[0].mig.as_mut().unwrap().current = 0;
    let on = Effect::Set("/mig/current".into(), json!(1));
    stage.node.faults.push(Fault { after: 1, ..fault("nvmlDeviceGetMigMode", Some(0), on) });
    let run = stage.check();
    assert_eq!(run.code, 2, "{run:?}");
    let differ = "MIG mode unknown: two readings, one after the other, differ";
    assert_eq!(run.seen("mig.mode"), [differ]);
    assert_eq!(stage.calls("nvmlDeviceGetMigMode", 0), 2);
}

#[test]
fn a_good_node_is_read_once() {
    let mut stage = stage("h100-sxm5-80gb", 1, &[&[("1g.10gb", 7)]]);
    // A fault that never comes counts the calls.
    let never = Effect::Return(999);
    stage.node.faults.push(Fault { after: 100, ..fault("nvmlDeviceGetMigMode", Some(0), never) });
    assert_eq!(stage.check().code, 0);
    assert_eq!(stage.calls("nvmlDeviceGetMigMode", 0), 1);
}

#[test]
fn an_old_driver_lacks_functions_and_versions() {
    let mut stage = stage("h100-sxm5-80gb", 2, &[&[("3g.40gb", 2)]]);
    let copy = stage.path("libnvidia-ml.so.1");
    // What 535 does not have.
    let names = [
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetPlatformInfo",
        "nvmlDeviceGetMarginTemperature",
        "nvmlDeviceGetNumaNodeId",
        "nvmlDeviceGetC2cModeInfoV",
        "nvmlDeviceGetRepairStatus",
        "nvmlDeviceGetAddressingMode",
        "nvmlDeviceGetCurrentClocksEventReasons",
    ];
    without_symbols(&stage.library, &names, &copy).unwrap();
    stage.library = copy;
    stage.node.profile_count = 13;
    for gpu in &mut stage.node.gpus {
        gpu.recovery_action = None;
    }
    let run = stage.check();
    assert_eq!((run.code, run.findings()), (0, Vec::new()), "{}", run.err);
    let state = stage.snapshot();
    let gpu = &state["gpus"]["value"][1];
    assert_eq!(gpu["fabric"]["value"]["state"], "completed", "by the call without a version");
    let health = json!({ "not_applicable": "this driver does not tell" });
    assert_eq!(gpu["fabric"]["value"]["health"], health);
    let lacks = json!({ "not_applicable":
        "this driver's library has no nvmlDeviceGetMarginTemperature" });
    assert_eq!(gpu["health"]["thermal"]["margin"], lacks);
    assert_eq!(gpu["health"]["clocks_event_reasons"], json!({ "value": 1 }), "by its old name");
    let no_field = json!({ "not_applicable": "this driver has no such field" });
    assert_eq!(gpu["health"]["recovery_action"], no_field);
}

#[test]
fn structs_of_older_versions_are_tried() {
    let mut stage = stage("h100-sxm5-80gb", 1, &[]);
    stage.node.versions.insert("nvmlDeviceGetGpuFabricInfoV".into(), 2);
    stage.node.gpus[0].fabric.as_mut().unwrap().mask = 0x2a;
    let state = stage.snapshot();
    let health = &state["gpus"]["value"][0]["fabric"]["value"]["health"];
    assert_eq!(health, &json!({ "value": { "mask": 0x2a, "summary": null } }));
}

#[test]
fn each_way_of_having_no_driver_has_its_own_words() {
    let comes_to = |code: i32, stage: &Stage, words: &str| {
        let run = stage.check();
        assert_eq!(run.code, code, "{run:?}");
        let seen = run.seen("gpu.count").concat();
        assert!(seen.contains(words), "{seen}");
    };
    let says = |stage: &Stage, words: &str| comes_to(2, stage, words);
    let two = || stage("h100-sxm5-80gb", 2, &[]);

    let mut stage = two();
    stage.library = stage.path("nowhere/libnvidia-ml.so.1");
    says(&stage, "the driver 580.105.08 is loaded, but its library cannot be: ");
    fs::remove_file(stage.path("root/proc/driver/nvidia/version")).unwrap();
    says(&stage, "NVIDIA's library is not installed: ");

    let mut stage = two();
    stage.node.init = 9;
    says(&stage, "the driver 580.105.08 is loaded, but NVML does not reach it");
    fs::remove_file(stage.path("root/dev/nvidiactl")).unwrap();
    says(&stage, "but /dev/nvidiactl is not here: give this container the devices of the host");
    fs::remove_file(stage.path("root/proc/driver/nvidia/version")).unwrap();
    says(&stage, "NVIDIA's kernel driver is not loaded");

    let mut stage = two();
    stage.node.init = 18;
    stage.node.nvml = "13.590.48.01".into();
    // That the two differ was read, so `driver.match` fails.
    comes_to(
        1,
        &stage,
        "the kernel module is 580.105.08 and NVML is 13.590.48.01: the driver was changed",
    );

    let mut stage = two();
    stage.node.init = 4;
    says(&stage, "no permission to open NVIDIA's devices: run it as root");
}

#[test]
fn a_node_without_gpus_is_not_one_that_could_not_be_read() {
    let mut stage = stage("h100-sxm5-80gb", 1, &[]);
    stage.remove_pci(0);
    stage.library = stage.path("nowhere/libnvidia-ml.so.1");
    fs::remove_file(stage.path("root/proc/driver/nvidia/version")).unwrap();
    let run = stage.check();
    assert_eq!(run.code, 1, "PCI shows none of one");
    assert!(run.seen("gpu.count").iter().any(|seen| seen.starts_with("0 on PCI")), "{run:?}");
    let seen = run.seen("gpu.count").concat();
    assert!(seen.contains("PCI shows no NVIDIA GPU"), "{seen}");
}

#[test]
fn no_second_probe_is_started_over_one_that_is_stuck() {
    let mut stage = hurried(whole());
    let counted = Effect::Return(999);
    stage.node.faults.push(Fault { after: 100, ..fault("nvmlInit_v2", None, counted) });
    // A process that stands for a probe of an earlier run which nothing could end.
    let mut sleeper = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", sleeper.id())).unwrap();
    let start = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().to_owned();
    fs::create_dir(stage.path("notes")).unwrap();
    let note = stage.path(&format!("notes/probe-{}", sleeper.id()));
    fs::write(&note, format!("gpu=00000000:30:00.0 {start} 0\n")).unwrap();
    let run = stage.check();
    in_time(&run);
    assert_eq!(run.code, 1, "it is past its time");
    assert_eq!(run.seen("nvml.hang"), ["an earlier probe still waits in the kernel"]);
    let of_it = |(_, _, gpu, _): &(String, String, Option<u64>, String)| *gpu == Some(2);
    assert!(run.findings().iter().all(of_it), "the others are judged: {run:?}");

    fs::write(&note, format!("inventory {start} 0\n")).unwrap();
    let run = stage.check();
    assert_eq!(run.code, 1);
    let seen = run.seen("gpu.count").concat();
    assert!(seen.contains("still waits in the kernel"), "{seen}");

    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(stage.check().code, 0, "it has gone");
    assert!(stage.notes().is_empty());
}
