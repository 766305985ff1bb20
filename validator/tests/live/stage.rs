//! A node that conforms, as a fake library and fake files of the kernel show it, and one way to run
//! the program on it. Products, MIG profiles and placements come from the catalog.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use fleetc_fake_nvml::node::{
    ComputeInstance, Effect, Fabric, Fault, Gpu, GpuInstance, Mig, Node, NvLink, Profile,
};
use fleetc_fake_nvml::{SETTERS, STATE_VARIABLE, library};
use fleetc_schema::ItemPath;
use fleetc_schema::catalog::{self, Catalog};
use fleetc_schema::intent::{
    Advertised, CLASS_SCHEMA, CheckLevel, ClassDocument, ClassPaths, Driver, DriverOwner,
    GpuIndexes, GpuInstance as WantedInstance, GpuModel, GpuSlot, Host, MemoryRange, NodeCheck,
    NodeClass, NodePolicy, Services,
};
use fleetc_schema::mig::{Demand, MigTable, place};
use fleetc_schema::units::Mib;
use serde_json::{Value, json};
use tempfile::TempDir;

/// `NVML_GPU_INSTANCE_PROFILE_*` of API 13, in order.
const PROFILES: [&str; 18] = [
    "1_SLICE",
    "2_SLICE",
    "3_SLICE",
    "4_SLICE",
    "7_SLICE",
    "8_SLICE",
    "6_SLICE",
    "1_SLICE_REV1",
    "2_SLICE_REV1",
    "1_SLICE_REV2",
    "1_SLICE_GFX",
    "2_SLICE_GFX",
    "4_SLICE_GFX",
    "1_SLICE_NO_ME",
    "2_SLICE_NO_ME",
    "1_SLICE_ALL_ME",
    "2_SLICE_ALL_ME",
    "3_SLICE_GFX",
];

/// Devices that every Linux has, with their minor numbers. Source: the kernel's `devices.txt`.
const DEVICES: [(&str, u32); 6] = [
    ("/dev/tty", 0),
    ("/dev/null", 3),
    ("/dev/zero", 5),
    ("/dev/full", 7),
    ("/dev/random", 8),
    ("/dev/urandom", 9),
];

/// A node that is ready to be read.
pub struct Stage {
    /// Its folder.
    pub dir: TempDir,
    /// What the library answers.
    pub node: Node,
    /// What the node should be.
    pub class: NodeClass,
    /// The library that is loaded.
    pub library: PathBuf,
    /// The deadline.
    pub deadline: &'static str,
    /// Processes that stand for probes of earlier runs.
    pub sleepers: Vec<Child>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        for sleeper in &mut self.sleepers {
            // It may have ended.
            let _ = sleeper.kill();
            let _ = sleeper.wait();
        }
    }
}

/// What a run of the program did.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
    pub took: Duration,
}

impl Run {
    /// Findings of the report that are no notes: check, severity, index of the GPU, what was seen.
    pub fn findings(&self) -> Vec<(String, String, Option<u64>, String)> {
        let report: Value =
            serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let findings = report["findings"].as_array().unwrap().iter();
        findings
            .map(|finding| {
                let index = finding["gpu"]["index"].as_u64();
                (text(&finding["check"]), text(&finding["severity"]), index, text(&finding["seen"]))
            })
            .filter(|(_, severity, ..)| severity != "info")
            .collect()
    }

    /// What was seen, of the findings of one check.
    pub fn seen(&self, check: &str) -> Vec<String> {
        let found = self.findings().into_iter().filter(|(of, ..)| of == check);
        found.map(|(.., seen)| seen).collect()
    }
}

pub fn bus_id(rank: usize) -> String {
    format!("00000000:{:02X}:00.0", 0x10 + rank * 0x10)
}

/// The same with a domain of four digits, in lower case.
pub fn in_sysfs(bus_id: &str) -> String {
    bus_id.replacen("0000", "", 1).to_lowercase()
}

fn catalog_gpu(key: &str) -> &'static catalog::Gpu {
    Catalog::embedded().unwrap().gpu(key).unwrap()
}

/// The MIG table of a GPU.
pub fn table_of(key: &str) -> &'static MigTable {
    &Catalog::embedded().unwrap().mig_table_of(catalog_gpu(key)).unwrap().table
}

/// A node of so many GPUs, of which the first are cut so: counts by profile.
pub fn stage(key: &str, count: usize, layouts: &[&[(&str, u32)]]) -> Stage {
    let row = catalog_gpu(key);
    let memory = row.nvml_total_mib.value.unwrap_or(80_000);
    let id = row.pci_device_ids.value.as_ref().and_then(|ids| ids.first());
    let id = id.map_or(0x2330, |id| u32::from_str_radix(id.trim_start_matches("0x"), 16).unwrap());
    let mut gpus = Vec::new();
    let mut slots = Vec::new();
    for at in 0..count {
        let layout = layouts.get(at).copied();
        let slot = u8::try_from(at).unwrap();
        slots.push(GpuSlot {
            slot,
            index: slot,
            numa: None,
            mig: layout.map(|layout| wanted(table_of(key), layout)),
            path: ItemPath::item("pool", "p").child("sharing"),
        });
        let wanted = slots[at].mig.as_deref();
        let number = u32::try_from(at).unwrap();
        gpus.push(Gpu {
            bus_id: bus_id(at),
            device_id: id << 16 | 0x10de,
            name: row.nvml_name.clone().unwrap(),
            uuid: format!("GPU-00000000-0000-0000-0000-{at:012}"),
            minor: number,
            memory: (memory << 20, 600 << 20, 0),
            mig: row.has_mig().then(|| mig(table_of(key), wanted, at)),
            nvlinks: nvlinks(row.nvlink.links.unwrap_or(0)),
            fabric: row.nvlink.nvswitch.then_some(Fabric {
                cluster_uuid: [0; 16],
                status: 0,
                clique: 0,
                state: 3,
                mask: 0,
                summary: 1,
            }),
            ..Gpu::default()
        });
    }
    let model = GpuModel {
        key: key.parse().unwrap(),
        nvml_names: row.nvml_names().cloned().collect(),
        pci_device_ids: row.pci_device_ids.value.clone().unwrap_or_default(),
        memory: row.nvml_total_mib.value.map(|mib| MemoryRange {
            min: Mib(mib - 400),
            nominal: Mib(mib),
            max: Mib(mib + 400),
        }),
        gres_type: row.gres_type.clone(),
        mig_capable: row.has_mig(),
        mig_mode_needs_reset: false,
        nvlinks: row.nvlink.links.unwrap_or(0),
        nvlink_domain: None,
        fabric: Some(row.nvlink.nvswitch),
        row_remap: None,
    };
    let pool = ItemPath::item("pool", "p");
    let class = NodeClass {
        name: "p".parse().unwrap(),
        pool: "p".parse().unwrap(),
        cluster: "c".parse().unwrap(),
        system: "s".parse().unwrap(),
        host: Host { cpu: None, memory: None, pcie_width: None, ports: Vec::new() },
        gpu: Some(model),
        gpus: slots,
        missing: GpuIndexes::default(),
        driver: Driver { version: "580.105.08".parse().unwrap(), owner: DriverOwner::Os },
        services: Services::default(),
        policy: Some(("p".parse().unwrap(), policy())),
        advertised: Advertised::default(),
        paths: ClassPaths {
            system: pool.child("system"),
            sharing: pool.child("sharing"),
            driver: None,
            exceptions: Vec::new(),
        },
    };
    let node = Node { gpus, ..Node::default() };
    let stage = Stage {
        dir: tempfile::tempdir().unwrap(),
        node,
        class,
        library: library().unwrap(),
        deadline: "20s",
        sleepers: Vec::new(),
    };
    stage.write_intent();
    stage.write_kernel();
    stage
}

/// Device nodes cannot be made without root. The checks of them are tried elsewhere, and notes here.
fn policy() -> NodePolicy {
    let notes = [NodeCheck::DevicesGpu, NodeCheck::DevicesUvm];
    NodePolicy {
        pools: Vec::new(),
        driver: None,
        ecc: None,
        persistence: None,
        power_limit: None,
        pcie_gen: None,
        pcie_width: None,
        nvlinks: None,
        mounts: Vec::new(),
        hugepages: Vec::new(),
        checks: notes.map(|check| (check, CheckLevel::Info)).into(),
    }
}

/// Eight H100, whole.
pub fn whole() -> Stage {
    stage("h100-sxm5-80gb", 8, &[])
}

/// Two H100 in 7 × 1g.10gb, and two in 2 × 3g.40gb.
pub fn sliced() -> Stage {
    let (seven, two): (&[_], &[_]) = (&[("1g.10gb", 7)], &[("3g.40gb", 2)]);
    stage("h100-sxm5-80gb", 4, &[seven, seven, two, two])
}

fn wanted(table: &MigTable, layout: &[(&str, u32)]) -> Vec<WantedInstance> {
    let demands: Vec<Demand<'_>> = layout
        .iter()
        .map(|(name, count)| {
            let profile = table.profile(&name.parse().unwrap()).unwrap();
            Demand { profile, count: *count }
        })
        .collect();
    let placed = place(table, &demands).unwrap().into_iter();
    let instance = |(profile, placement): (&fleetc_schema::mig::GiProfile, _)| WantedInstance {
        profile: profile.name.clone(),
        profile_id: profile.id,
        placement,
        memory: None,
    };
    placed.map(instance).collect()
}

/// MIG of a GPU that is as wanted, or has MIG mode off.
fn mig(table: &MigTable, wanted: Option<&[WantedInstance]>, gpu: usize) -> Mig {
    let profiles = table.profiles.iter().map(|profile| Profile {
        index: PROFILES.iter().position(|name| *name == profile.nvml).unwrap() as u32,
        id: profile.id,
        name: format!("MIG {}", profile.name),
        slices: profile.compute_slices().into(),
        instances: profile.max_count.into(),
        memory: profile.memory_mib.unwrap_or(9_984),
        placements: profile
            .starts
            .iter()
            .map(|start| (u32::from(*start), u32::from(profile.memory_slices)))
            .collect(),
    });
    let on = u32::from(wanted.is_some());
    let instances = wanted.unwrap_or_default().iter().zip(1_u32..);
    let instances = instances.map(|(instance, id)| {
        let slices = table.profile_by_id(instance.profile_id).unwrap().compute_slices();
        // Compute profiles have the numbers of 1, 2, 3, 4, 7 slices.
        let profile_id = [1, 2, 3, 4, 7].iter().position(|size| *size == slices).unwrap() as u32;
        GpuInstance {
            id,
            profile_id: instance.profile_id,
            placement: (instance.placement.start.into(), instance.placement.size.into()),
            compute_instances: vec![ComputeInstance {
                id: 0,
                profile_id,
                placement: (0, slices.into()),
                // Indexes of MIG devices have holes: the first is 0, the second 2.
                device_index: if id == 1 { 0 } else { id },
                uuid: format!("MIG-{gpu:08}-0000-0000-0000-{id:012}"),
            }],
        }
    });
    Mig {
        current: on,
        pending: on,
        profiles: profiles.collect(),
        gpu_instances: instances.collect(),
        max_devices: 8,
    }
}

fn nvlinks(count: u8) -> Vec<NvLink> {
    let hidden = "FFFFFFFF:FF:FF.0".to_owned();
    let link = NvLink { active: 1, version: 4, remote: 2, remote_bus_id: hidden, errors: [0; 3] };
    vec![link; count.into()]
}

pub fn fault(call: &str, gpu: Option<usize>, effect: Effect) -> Fault {
    Fault { call: call.to_owned(), gpu, after: 0, effect }
}

impl Stage {
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file of the node's kernel.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path("root").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes what the node should be.
    pub fn write_intent(&self) {
        let folder = self.path("intent/classes");
        fs::create_dir_all(&folder).unwrap();
        let index = json!({ "schema": "fleetc/index/v1", "fleet": "lab",
            "classes": { "p": "n1" }, "racks": {} });
        fs::write(self.path("intent/index.json"), index.to_string()).unwrap();
        let class = std::borrow::Cow::Borrowed(&self.class);
        let document = ClassDocument { schema: CLASS_SCHEMA.into(), class };
        fs::write(folder.join("p.json"), serde_json::to_string(&document).unwrap()).unwrap();
    }

    /// Writes the files of the kernel.
    pub fn write_kernel(&self) {
        for gpu in &self.node.gpus {
            self.write_device(&format!("nvidia{}", gpu.minor), gpu.minor);
            self.write_pci(&gpu.bus_id, gpu.device_id >> 16, "0x030200");
        }
        // An NVSwitch is NVIDIA's too, and no GPU.
        self.write_pci("00000000:C1:00.0", 0x1af1, "0x068000");
        self.write("proc/driver/nvidia/version", &self.module_line());
        self.write("proc/uptime", "86400.12 600000.00\n");
        self.write("proc/modules", "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 1 - Live 0x0\n");
        self.write("proc/meminfo", "MemTotal:       2113421312 kB\nMemFree: 1 kB\n");
        self.write_device("nvidiactl", 3);
        self.write_device("nvidia-uvm", 3);
        self.write_caps();
        self.write("dev/kmsg", "6,0,0,-;Linux version 6.8.0\n");
    }

    /// A device with this minor number: a link to one that every Linux has, since only root can make
    /// one; a plain file where no such device is.
    pub fn write_device(&self, name: &str, minor: u32) {
        let path = self.path("root/dev").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if path.symlink_metadata().is_ok() {
            fs::remove_file(&path).unwrap();
        }
        match DEVICES.iter().find(|(_, of)| *of == minor) {
            Some((device, _)) => symlink(device, path).unwrap(),
            None => fs::write(path, "").unwrap(),
        }
    }

    /// What the driver makes for each instance: a minor number, and a device node.
    fn write_caps(&self) {
        let mut minors = String::from("config 1\nmonitor 2\n");
        let mut next = 3..;
        let mut add = |what: String| {
            let minor = next.next().unwrap();
            minors += &format!("{what}/access {minor}\n");
            self.write(&format!("dev/nvidia-caps/nvidia-cap{minor}"), "");
        };
        for gpu in &self.node.gpus {
            for instance in gpu.mig.iter().flat_map(|mig| &mig.gpu_instances) {
                let at = format!("gpu{}/gi{}", gpu.minor, instance.id);
                add(at.clone());
                instance.compute_instances.iter().for_each(|ci| add(format!("{at}/ci{}", ci.id)));
            }
        }
        self.write("proc/driver/nvidia-caps/mig-minors", &minors);
    }

    fn module_line(&self) -> String {
        let driver = &self.node.driver;
        format!("NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Wed Oct 29 2025\n")
    }

    /// A device on PCI.
    pub fn write_pci(&self, bus_id: &str, device: u32, class: &str) {
        let name = in_sysfs(bus_id);
        let at = format!("sys/bus/pci/devices/{name}");
        for (file, text) in [
            ("vendor", "0x10de\n"),
            ("class", class),
            ("device", &format!("0x{device:04x}\n")),
            ("config", "\u{de}\u{10}rest"),
            ("current_link_width", "16\n"),
            ("max_link_width", "16\n"),
            ("current_link_speed", "2.5 GT/s PCIe\n"),
            ("max_link_speed", "32.0 GT/s PCIe\n"),
            ("numa_node", "-1\n"),
        ] {
            self.write(&format!("{at}/{file}"), text);
        }
        self.write_driver(bus_id, "nvidia");
    }

    /// The kernel driver that has a device.
    pub fn write_driver(&self, bus_id: &str, driver: &str) {
        let device = self.path("root/sys/bus/pci/devices").join(in_sysfs(bus_id));
        let link = device.join("driver");
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link).unwrap();
        }
        symlink(format!("../../../bus/pci/drivers/{driver}"), link).unwrap();
    }

    /// Takes a GPU off PCI.
    pub fn remove_pci(&self, rank: usize) {
        let name = in_sysfs(&bus_id(rank));
        fs::remove_dir_all(self.path("root/sys/bus/pci/devices").join(name)).unwrap();
    }

    /// Runs the program.
    #[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
    pub fn run(&self, args: &[&str]) -> Run {
        let state = self.path("state.json");
        fs::write(&state, serde_json::to_string(&self.node).unwrap()).unwrap();
        let started = Instant::now();
        let output = Command::new(env!("CARGO_BIN_EXE_fleetc-validate"))
            .args(args)
            .arg("--node")
            .arg("n1")
            .env_clear()
            .env(STATE_VARIABLE, &state)
            .output()
            .unwrap();
        let took = started.elapsed();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run {
            code: output.status.code().unwrap_or(-1),
            out: text(output.stdout),
            err: text(output.stderr),
            took,
        }
    }

    /// Runs the program with what is needed to read the node.
    pub fn live(&self, args: &[&str]) -> Run {
        let library = self.library.to_str().unwrap().to_owned();
        let (root, notes) = (self.path("root"), self.path("notes"));
        let mut all = args.to_vec();
        all.extend(["--library", &library, "--deadline", self.deadline]);
        all.extend(["--root", root.to_str().unwrap(), "--state-dir", notes.to_str().unwrap()]);
        self.run(&all)
    }

    /// Runs `check` on the node itself; the report is JSON.
    pub fn check(&self) -> Run {
        let intent = self.path("intent");
        self.live(&["check", "--format", "json", "--intent", intent.to_str().unwrap()])
    }

    /// Takes a snapshot of the node, and gives its state.
    pub fn snapshot(&self) -> Value {
        let file = self.path("snapshot.json");
        let run = self.live(&["snapshot", "-o", file.to_str().unwrap()]);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        let document: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        document["state"].clone()
    }

    /// Runs `check` on the snapshot that was taken last.
    pub fn check_snapshot(&self) -> Run {
        let source = format!("snapshot:{}", self.path("snapshot.json").display());
        let intent = self.path("intent");
        let args = ["check", "--format", "json", "--intent", intent.to_str().unwrap()];
        self.run(&[&args[..], &["--source", &source]].concat())
    }

    /// Takes over what was set on the node.
    pub fn reload(&mut self) {
        let text = fs::read_to_string(self.path("state.json")).unwrap();
        self.node = serde_json::from_str(&text).unwrap();
    }

    /// Calls that would have set something: name, index of the GPU, value.
    pub fn setters(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path(&format!("state.json{SETTERS}")));
        log.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// How often a call was made, where a fault counts calls.
    pub fn calls(&self, call: &str, gpu: usize) -> u64 {
        let file = self.path(&format!("state.json.{call}.{gpu}"));
        fs::metadata(file).map_or(0, |metadata| metadata.len())
    }

    /// Notes of probes that are left.
    pub fn notes(&self) -> BTreeMap<String, String> {
        let Ok(notes) = fs::read_dir(self.path("notes")) else { return BTreeMap::new() };
        let text = |path: &Path| fs::read_to_string(path).unwrap();
        let note = |entry: fs::DirEntry| {
            (entry.file_name().to_string_lossy().into_owned(), text(&entry.path()))
        };
        notes.map(|entry| note(entry.unwrap())).collect()
    }
}
