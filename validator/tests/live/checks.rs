//! Every check of the table, through the real loader and files of a root folder: it passes on a node that
//! is as it should be, and fails, alone, once that node has the fault that it is for.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use fleetc_fake_nvml::node::{Effect, Gpu};
use fleetc_schema::intent::{
    CheckLevel, DraDevice, FabricKind, Gres, Host, HostCpu, HostPorts, HugePageSize, NodeCheck,
    NodePolicy, Override, Services, WantedHugePages, WantedMount,
};
use fleetc_schema::units::{GbitPerSec, Mib, Watts};
use fleetc_schema::{Hostlist, ItemPath};
use fleetc_validate::compare::row;
use serde_json::{Value, json};

use crate::stage::{Stage, bus_id, fault, in_sysfs, stage};

const VERSION: &str = "580.105.08";

/// A check, a node that it passes on, and the fault that makes it fail.
struct Case {
    check: NodeCheck,
    node: fn() -> Stage,
    fault: fn(&mut Stage),
}

fn cases() -> Vec<Case> {
    use NodeCheck as Is;
    let case = |check, node: fn() -> Stage, fault: fn(&mut Stage)| Case { check, node, fault };
    vec![
        case(Is::NvmlHang, server, leave_a_probe),
        case(Is::DriverMatch, server, |s| {
            s.write("proc/driver/nvidia/version", "NVRM version: x  580.95.05  Wed Oct 29 2025\n");
        }),
        case(Is::DriverPolicy, server, |s| {
            policy(s).driver = Some(">=590".parse().unwrap());
            s.write_intent();
        }),
        case(Is::DriverVersion, server, |s| {
            s.class.driver.version = "580.126.09".parse().unwrap();
            s.write_intent();
        }),
        case(Is::GpuCount, server, |s| s.remove_pci(3)),
        case(Is::GpuHandle, server, |s| s.node.count = Some(5)),
        // Of its calls one only says so: the version of a link is judged by no check.
        case(Is::GpuLost, server, |s| {
            s.node.faults.push(fault("nvmlDeviceGetNvLinkVersion", Some(1), Effect::Return(15)));
        }),
        case(Is::GpuOnBus, server, |s| {
            let device = s.path("root/sys/bus/pci/devices").join(in_sysfs(&bus_id(1)));
            fs::write(device.join("config"), [0xff; 64]).unwrap();
        }),
        case(Is::GpuKernelDriver, server, |s| s.write_driver(&bus_id(1), "vfio-pci")),
        case(Is::GpuAddress, server, |s| {
            s.remove_pci(1);
            s.node.gpus[1].bus_id = "00000000:21:00.0".into();
            s.write_pci("00000000:21:00.0", 0x2330, "0x030200");
            s.write("sys/bus/pci/devices/0000:21:00.0/numa_node", "0\n");
        }),
        case(Is::GpuModel, server, |s| gpu(s).memory.0 = 40 << 30),
        case(Is::GpuMinor, claimed, |s| {
            gpu(s).minor = 3;
            s.write_device("nvidia3", 3);
        }),
        case(Is::GpuPlace, server, |s| gpu(s).module_id = Some(4)),
        case(Is::GpuNuma, server, |s| write_numa_node(s, 1, "1")),
        case(Is::MigMode, cut, |s| gpu(s).mig.as_mut().unwrap().current = 0),
        case(Is::MigLayout, cut, |s| drop(gpu(s).mig.as_mut().unwrap().gpu_instances.pop())),
        case(Is::MigCompute, cut, |s| {
            gpu(s).mig.as_mut().unwrap().gpu_instances[2].compute_instances.clear();
        }),
        case(Is::MigDevices, cut, |s| {
            let call = "nvmlDeviceGetMigDeviceHandleByIndex";
            s.node.faults.push(fault(call, Some(0), Effect::Return(6)));
        }),
        case(Is::MigCaps, cut, |s| remove(s, "dev/nvidia-caps/nvidia-cap5")),
        case(Is::EccMode, server, |s| gpu(s).ecc = Some((0, 1))),
        case(Is::PersistenceMode, server, |s| gpu(s).persistence = 0),
        case(Is::ComputeMode, server, |s| gpu(s).compute_mode = 2),
        case(Is::PowerLimit, server, |s| {
            gpu(s).power = Some([500_000, 700_000, 500_000, 200_000, 700_000]);
        }),
        case(Is::PowerEnforced, server, |s| {
            gpu(s).power = Some([700_000, 700_000, 500_000, 200_000, 700_000]);
        }),
        case(Is::PcieWidth, server, |s| gpu(s).pcie[0] = 8),
        case(Is::PcieGeneration, server, |s| {
            s.node.gpus.iter_mut().for_each(|gpu| gpu.pcie = [16, 16, 4, 4, 5]);
        }),
        case(Is::PcieGenerationInUse, busy, |s| gpu(s).pcie[2] = 2),
        case(Is::PcieAlike, server, |s| gpu(s).pcie[1] = 8),
        case(Is::PcieReplay, server, |s| gpu(s).replays = 100_000),
        case(Is::NvlinkActive, server, |s| gpu(s).nvlinks[17].active = 0),
        case(Is::NvlinkPeers, server, |s| s.node.p2p = 5),
        case(Is::NvlinkErrors, server, |s| gpu(s).nvlinks[3].errors = [0, 1, 0]),
        case(Is::FabricState, server, |s| gpu(s).fabric.as_mut().unwrap().state = 2),
        case(Is::FabricStatus, server, |s| gpu(s).fabric.as_mut().unwrap().status = 999),
        // Too few NVLinks.
        case(Is::FabricHealth, server, |s| gpu(s).fabric.as_mut().unwrap().mask = 5 << 8),
        case(Is::FabricClique, server, |s| gpu(s).fabric.as_mut().unwrap().clique = 1),
        case(Is::FabricDomain, tray, |s| {
            for gpu in &mut s.node.gpus {
                gpu.fabric.as_mut().unwrap().cluster_uuid = [0; 16];
            }
        }),
        case(Is::FabricManagerRuns, server, |s| write_processes(s, "nvidia-fabricmanager", "")),
        case(Is::FabricManagerVersion, server, |s| {
            program(s, "usr/bin/nv-fabricmanager", "Fabric Manager version is : 580.95.05");
        }),
        case(Is::ImexRuns, tray, |s| write_processes(s, "nvidia-imex", "")),
        case(Is::ImexVersion, tray, |s| {
            program(s, "usr/bin/nvidia-imex", "IMEX version is: 580.95.05");
        }),
        case(Is::RecoveryAction, server, |s| gpu(s).recovery_action = Some(1)),
        case(Is::RemapFailure, server, |s| gpu(s).remapped_rows = Some([0, 0, 0, 1])),
        case(Is::RemapPending, server, |s| gpu(s).remapped_rows = Some([0, 0, 1, 0])),
        case(Is::RemapSpare, server, |s| gpu(s).row_histogram = Some([1_270, 6, 2, 1, 1])),
        case(Is::RemapGrowth, server, |s| gpu(s).remapped_rows = Some([0, 2, 0, 0])),
        case(Is::RetiredPending, old, |s| gpu(s).retired_pages = Some([0, 0, 1])),
        case(Is::RetiredCount, old, |s| gpu(s).retired_pages = Some([55, 5, 0])),
        case(Is::EccUncorrected, server, |s| gpu(s).ecc_errors = Some([0, 1, 0, 0])),
        case(Is::EccGrowth, server, |s| gpu(s).ecc_errors = Some([0, 0, 0, 3])),
        case(Is::EccRate, server, |s| gpu(s).ecc_errors = Some([0, 0, 100_000, 0])),
        case(Is::SramThreshold, server, |s| gpu(s).sram_exceeded = Some(1)),
        case(Is::RepairPending, server, |s| gpu(s).repair = Some((1, 0))),
        case(Is::MemoryLeak, server, |s| gpu(s).memory.2 = 12 << 30),
        case(Is::ThrottleHardware, server, |s| gpu(s).event_reasons = 0x1 | 0x80),
        case(Is::ThermalMargin, server, |s| gpu(s).margin = Some(-2)),
        case(Is::FirmwareVbios, server, |s| gpu(s).vbios = "96.00.74.00.01".into()),
        case(Is::FirmwareInforom, server, |s| gpu(s).inforom = Some("G520.0200.00.01".into())),
        case(Is::FirmwareInforomValid, server, |s| gpu(s).inforom_corrupted = true),
        case(Is::FirmwareGsp, server, |s| gpu(s).gsp = Some("580.95.05".into())),
        // A driver that does not tell what it wants done.
        case(Is::LogXid, server, |s| {
            gpu(s).recovery_action = None;
            log(s, "NVRM: Xid (PCI:0000:10:00): 95, Uncontained ECC error");
        }),
        case(Is::LogDriver, server, |s| {
            gpu(s).recovery_action = None;
            log(s, "NVRM: GPU 0000:10:00.0: GPU has fallen off the bus.");
        }),
        case(Is::LogSwitch, server, |s| {
            log(s, "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 46");
        }),
        case(Is::LogComplete, server, |s| s.write("dev/kmsg", "6,900,70000000,-;usb: hub\n")),
        case(Is::ModulesNvidia, server, |s| s.write("proc/modules", "nvidia_uvm 1 0 - Live 0x0\n")),
        case(Is::ModulesUvm, server, |s| s.write("proc/modules", "nvidia 1 0 - Live 0x0\n")),
        case(Is::ModulesDrm, cut, |s| {
            let loaded =
                "nvidia_drm 1 0 - Live 0x0\nnvidia_uvm 1 0 - Live 0x0\nnvidia 1 1 - Live 0x0\n";
            s.write("proc/modules", loaded);
        }),
        case(Is::DevicesGpu, server, |s| remove(s, "dev/nvidia5")),
        case(Is::DevicesUvm, server, |s| remove(s, "dev/nvidia-uvm")),
        case(Is::HostCpu, server, |s| s.write("sys/devices/system/cpu/online", "0-5\n")),
        case(Is::HostMemory, server, |s| s.write("proc/meminfo", "MemTotal:  1981325312 kB\n")),
        case(Is::HostMount, server, |s| s.write("proc/1/mounts", "/dev/sda1 / ext4 rw 0 0\n")),
        case(Is::HostHugepages, server, |s| write_pages(s, 512)),
        case(Is::NetworkPorts, server, |s| write_port(s, 3, "4: ACTIVE", 200, "28.43.2026")),
        // Beside those that the spec needs.
        case(Is::NetworkPortsDown, server, |s| write_port(s, 4, "1: DOWN", 400, "28.43.2026")),
        case(Is::NetworkFirmware, server, |s| write_port(s, 3, "4: ACTIVE", 400, "28.39.1002")),
        case(Is::SlurmGres, server, |s| slurmd(s, "h100", &[3, 5, 7])),
        case(Is::SlurmFiles, server, |s| slurmd(s, "h100", &[3, 5, 7, 6])),
        case(Is::KubernetesResources, plugged, |s| write_node(s, 6, "p")),
        case(Is::KubernetesLabels, plugged, |s| write_node(s, 7, "all-disabled")),
    ]
}

fn gpu(stage: &mut Stage) -> &mut Gpu {
    &mut stage.node.gpus[0]
}

fn policy(stage: &mut Stage) -> &mut NodePolicy {
    &mut stage.class.policy.as_mut().unwrap().1
}

fn remove(stage: &Stage, name: &str) {
    fs::remove_file(stage.path("root").join(name)).unwrap();
}

/// A program that prints one line, whatever it is asked.
fn program(stage: &Stage, name: &str, line: &str) {
    stage.write(name, &format!("#!/bin/sh\necho '{line}'\n"));
    let path = stage.path("root").join(name);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The NUMA node of a GPU's slot.
fn write_numa_node(stage: &Stage, rank: usize, node: &str) {
    let device = format!("sys/bus/pci/devices/{}", in_sysfs(&bus_id(rank)));
    stage.write(&format!("{device}/numa_node"), &format!("{node}\n"));
}

fn write_processes(stage: &Stage, unit: &str, processes: &str) {
    stage.write(&format!("sys/fs/cgroup/system.slice/{unit}.service/cgroup.procs"), processes);
}

fn log(stage: &Stage, line: &str) {
    stage.write("dev/kmsg", &format!("6,0,0,-;Linux version\n3,9,61000000,-;{line}\n"));
}

fn write_pages(stage: &Stage, count: u32) {
    let folder = "sys/kernel/mm/hugepages/hugepages-2048kB";
    stage.write(&format!("{folder}/nr_hugepages"), &format!("{count}\n"));
    stage.write(&format!("{folder}/free_hugepages"), "0\n");
}

fn write_port(stage: &Stage, number: u32, state: &str, rate: u32, firmware: &str) {
    let adapter = format!("sys/class/infiniband/mlx5_{number}");
    stage.write(&format!("{adapter}/fw_ver"), &format!("{firmware}\n"));
    stage.write(&format!("{adapter}/board_id"), "MT_0000000838\n");
    stage.write(&format!("{adapter}/ports/1/state"), &format!("{state}\n"));
    stage.write(&format!("{adapter}/ports/1/rate"), &format!("{rate} Gb/sec (4X NDR)\n"));
    stage.write(&format!("{adapter}/ports/1/link_layer"), "InfiniBand\n");
}

/// What slurmd says: a GPU a line, by its minor number.
fn slurmd(stage: &Stage, kind: &str, minors: &[u32]) {
    let line =
        |minor: &u32| format!("slurmd: Gres Name=gpu Type={kind} Count=1 File=/dev/nvidia{minor}");
    let lines: Vec<String> = minors.iter().map(line).collect();
    program(stage, "usr/sbin/slurmd", &lines.join("\n"));
}

/// The node of Kubernetes with so many MIG devices, and the layout that the MIG manager was given.
fn write_node(stage: &Stage, devices: u32, layout: &str) {
    let node = json!({
        "metadata": { "labels": { "nvidia.com/mig.config": layout } },
        "status": { "allocatable": { "nvidia.com/mig-1g.10gb": devices.to_string() } },
    });
    stage.write("node.json", &node.to_string());
}

/// A process that stands for a probe of the second GPU in an earlier run, which nothing could end.
fn leave_a_probe(stage: &mut Stage) {
    let sleeper = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", sleeper.id())).unwrap();
    let start = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().to_owned();
    let note = stage.path(&format!("notes/probe-{}", sleeper.id()));
    stage.sleepers.push(sleeper);
    fs::create_dir_all(note.parent().unwrap()).unwrap();
    fs::write(note, format!("gpu=00000000:20:00.0 {start} 0\n")).unwrap();
}

/// Gives GPUs minor numbers of devices that are there, and modules of their own.
fn at_devices(stage: &mut Stage, minors: &[u32]) {
    for (index, (gpu, minor)) in (0..).zip(stage.node.gpus.iter_mut().zip(minors)) {
        fs::remove_file(stage.dir.path().join(format!("root/dev/nvidia{index}"))).unwrap();
        (gpu.minor, gpu.module_id) = (*minor, Some(index + 1));
        gpu.repair = Some((0, 0));
    }
    // What a policy says of devices is for nodes without any.
    policy(stage).checks.clear();
    stage.write_kernel();
}

fn gres(kind: &str, count: u32) -> Gres {
    Gres { name: "gpu".into(), kind: kind.into(), count }
}

/// A server of four H100 behind NVSwitches, under Slurm, with all that a policy, a fabric and an
/// inventory say.
fn server() -> Stage {
    let mut stage = stage("h100-sxm5-80gb", 4, &[]);
    at_devices(&mut stage, &[3, 5, 7, 8]);
    let model = stage.class.gpu.as_mut().unwrap();
    (model.nvlink_domain, model.row_remap) = (Some(4), Some(true));
    stage.class.host = Host {
        cpu: Some(HostCpu { sockets: 2, cores: 4, threads: 8 }),
        memory: Some(Mib(2_097_152)),
        pcie_width: Some(16),
        ports: vec![HostPorts {
            fabric: "ib".parse().unwrap(),
            kind: FabricKind::Infiniband,
            count: 4,
            rate: Some(GbitPerSec(400)),
        }],
    };
    stage.class.services = Services { fabric_manager: Some(true), imex: None };
    *policy(&mut stage) = NodePolicy {
        pools: Vec::new(),
        driver: Some(">=580.105".parse().unwrap()),
        ecc: Some(true),
        persistence: Some(true),
        power_limit: Some(Watts(700)),
        pcie_gen: Some(5),
        pcie_width: Some(16),
        nvlinks: Some(18),
        mounts: vec![WantedMount {
            target: "/scratch".parse().unwrap(),
            kind: Some("xfs".parse().unwrap()),
        }],
        hugepages: vec![WantedHugePages { size: HugePageSize::Mib2, count: 1024 }],
        checks: Default::default(),
    };
    stage.class.advertised.gres = vec![gres("h100", 4)];
    stage.class.gpus.iter_mut().for_each(|slot| slot.numa = Some(0));
    (0..4).for_each(|rank| write_numa_node(&stage, rank, "0"));
    stage.write_intent();
    write_addresses(&stage);
    write_cpus(&stage);
    (0..4).for_each(|port| write_port(&stage, port, "4: ACTIVE", 400, "28.43.2026"));
    stage.write("proc/1/mounts", "/dev/sda1 / ext4 rw 0 0\n/dev/md0 /scratch xfs rw 0 0\n");
    write_pages(&stage, 1024);
    write_processes(&stage, "nvidia-fabricmanager", "4711\n");
    let says = format!("Fabric Manager version is : {VERSION}");
    program(&stage, "usr/bin/nv-fabricmanager", &says);
    slurmd(&stage, "h100", &[3, 5, 7, 8]);
    stage
}

/// Where the inventory says that the GPUs are.
fn write_addresses(stage: &Stage) {
    let pci = (0..4).map(|rank| bus_id(rank).parse().unwrap()).collect();
    let path = ItemPath::item("pool", "p").keyed("pci", ["n1"]);
    let known = Override { nodes: Hostlist::single("n1"), pci, path };
    let folder = stage.path("intent/overrides");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("p.jsonl"), serde_json::to_string(&known).unwrap() + "\n").unwrap();
    let index = stage.path("intent/index.json");
    let mut listed: Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
    listed["overrides"] = json!({ "p": 1 });
    fs::write(index, listed.to_string()).unwrap();
}

/// Two sockets of two cores of two threads.
fn write_cpus(stage: &Stage) {
    let folder = "sys/devices/system/cpu";
    stage.write(&format!("{folder}/online"), "0-7\n");
    for cpu in 0..8 {
        let (socket, core) = (cpu % 4 / 2, cpu % 4);
        let topology = format!("{folder}/cpu{cpu}/topology");
        stage.write(&format!("{topology}/physical_package_id"), &format!("{socket}\n"));
        let siblings = format!("{core},{}\n", core + 4);
        stage.write(&format!("{topology}/thread_siblings_list"), &siblings);
    }
}

/// The same server at work.
fn busy() -> Stage {
    let mut stage = server();
    for gpu in &mut stage.node.gpus {
        (gpu.processes, gpu.event_reasons) = (vec![4711], 0);
    }
    stage
}

/// An H100 in 7 × 1g.10gb, under Slurm, where a change of MIG mode takes a reset.
fn cut() -> Stage {
    let mut stage = stage("h100-sxm5-80gb", 1, &[&[("1g.10gb", 7)]]);
    at_devices(&mut stage, &[3]);
    stage.class.gpu.as_mut().unwrap().mig_mode_needs_reset = true;
    stage.class.advertised.gres = vec![gres("1g.10gb", 7)];
    stage.write_intent();
    program(&stage, "usr/sbin/slurmd", "slurmd: Gres Name=gpu Type=1g.10gb Count=7");
    stage
}

/// The same under Kubernetes.
fn plugged() -> Stage {
    let mut stage = stage("h100-sxm5-80gb", 1, &[&[("1g.10gb", 7)]]);
    at_devices(&mut stage, &[3]);
    let advertised = &mut stage.class.advertised;
    advertised.resources.insert("nvidia.com/mig-1g.10gb".into(), 7);
    advertised.labels.insert("nvidia.com/mig.config".into(), "p".into());
    stage.write_intent();
    write_node(&stage, 7, "p");
    stage
}

/// A GPU that the DRA driver hands out.
fn claimed() -> Stage {
    let mut stage = stage("h100-sxm5-80gb", 1, &[]);
    // The numbers of index and device node are the same here.
    at_devices(&mut stage, &[0]);
    let (name, kind) = ("gpu-0".to_owned(), "gpu".to_owned());
    let device = DraDevice { name, kind, product: None, profile: None, memory: None };
    stage.class.advertised.devices = vec![device];
    stage.write_intent();
    let node = json!({ "metadata": { "labels": {} }, "status": { "allocatable": {} } });
    stage.write("node.json", &node.to_string());
    stage
}

/// A tray of four GB200 in a rack of eighteen.
fn tray() -> Stage {
    let mut stage = stage("gb200", 4, &[]);
    at_devices(&mut stage, &[3, 5, 7, 8]);
    for gpu in &mut stage.node.gpus {
        gpu.fabric.as_mut().unwrap().cluster_uuid = *b"0123456789abcdef";
        gpu.platform = Some(("1820325191234".into(), [12, 3, 1, 1, 2]));
    }
    stage.class.gpu.as_mut().unwrap().nvlink_domain = Some(72);
    stage.class.services = Services { fabric_manager: Some(false), imex: Some(true) };
    stage.write_intent();
    write_processes(&stage, "nvidia-imex", "4711\n");
    program(&stage, "usr/bin/nvidia-imex", &format!("IMEX version is: {VERSION}"));
    stage
}

/// GPUs from before rows were remapped.
fn old() -> Stage {
    let mut stage = stage("h100-sxm5-80gb", 2, &[]);
    at_devices(&mut stage, &[3, 5]);
    for gpu in &mut stage.node.gpus {
        (gpu.remapped_rows, gpu.row_histogram) = (None, None);
        gpu.retired_pages = Some([0, 0, 0]);
    }
    stage.class.gpu.as_mut().unwrap().row_remap = Some(false);
    stage.write_intent();
    stage
}

/// Judges a node, with all that can be asked of it: code, and report.
fn judge(stage: &Stage) -> (i32, Value) {
    let text = |name: &str| stage.path(name).to_str().unwrap().to_owned();
    let mut args: Vec<String> =
        ["check", "--format", "json", "--inforom", "--intent"].map(str::to_owned).into();
    args.extend([text("intent"), "--history".into(), text("history.json")]);
    for (flag, name) in
        [("--slurmd", "root/usr/sbin/slurmd"), ("--kubernetes-node", "root/node.json")]
    {
        if stage.path(name).exists() {
            args.extend([flag.to_owned(), text(name)]);
        }
    }
    let run = stage.live(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(run.err, "");
    (run.code, serde_json::from_str(&run.out).unwrap())
}

/// Checks that found something, with how much it matters. What could not be read is no fault: a probe
/// that hangs takes the other readings of its GPU with it.
fn failed(report: &Value) -> BTreeSet<(&str, &str)> {
    found(report).into_iter().filter(|(_, severity)| *severity != "undecided").collect()
}

/// All findings: checks, with how much each matters.
fn found(report: &Value) -> BTreeSet<(&str, &str)> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|f| (f["check"].as_str().unwrap(), f["severity"].as_str().unwrap())).collect()
}

#[test]
fn every_check_of_the_table_has_a_case() {
    let cases: Vec<NodeCheck> = cases().iter().map(|case| case.check).collect();
    assert_eq!(cases, NodeCheck::ALL);
}

#[test]
fn every_check_passes_on_a_good_node() {
    let (mut tried, mut passed) = (Vec::new(), BTreeSet::new());
    for case in cases() {
        let node = case.node as usize;
        if tried.contains(&node) {
            continue;
        }
        tried.push(node);
        let stage = (case.node)();
        // What was read before is compared with from the second time on.
        for _ in 0..2 {
            let (code, report) = judge(&stage);
            assert_eq!((code, found(&report)), (0, BTreeSet::new()), "{:#}", report["findings"]);
            let counts = report["checks"].as_array().unwrap().iter();
            let counts = counts.filter(|count| count["passed"].as_u64() > Some(0));
            passed.extend(counts.map(|count| count["check"].as_str().unwrap().to_owned()));
        }
    }
    let missing: Vec<&NodeCheck> =
        NodeCheck::ALL.iter().filter(|check| !passed.contains(check.as_str())).collect();
    assert_eq!(missing, [&NodeCheck::NvmlHang; 0]);
}

#[test]
fn every_check_fails_alone_on_its_fault() {
    let mut wrong = Vec::new();
    for case in cases() {
        let mut stage = (case.node)();
        judge(&stage);
        (case.fault)(&mut stage);
        let (code, report) = judge(&stage);
        let (severity, expected) = match row(case.check).level {
            CheckLevel::Block => ("blocking", 1),
            CheckLevel::Warn => ("warning", 0),
            CheckLevel::Info => ("info", 0),
        };
        let alone = BTreeSet::from([(case.check.as_str(), severity)]);
        if (code, failed(&report)) != (expected, alone) {
            wrong.push(format!("{}: code {code}\n{:#}", case.check, report["findings"]));
        }
    }
    assert!(wrong.is_empty(), "{} checks:\n{}", wrong.len(), wrong.join("\n"));
}
