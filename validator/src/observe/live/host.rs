//! Reading the node around its GPUs: files of the kernel.
//!
//! Everything is read below a root folder, which is `/` but for tests and for containers that have the
//! host mounted elsewhere. A file that is not there is not applicable; one that cannot be read is
//! unknown. Sources: proc(5); the kernel's documentation of sysfs ABI and of `/dev/kmsg`.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use fleetc_schema::pci::{BusId, DeviceId};
use fleetc_schema::units::{Bytes, Mib, Seconds};
use serde::{Deserialize, Serialize};

use super::kernel_log;
use super::probe::{Probe, entering};
use super::programs::{dotted_version, kubernetes, slurm_gres, version};
use crate::state::{
    CapDevice, Cpu, DeviceNode, HostState, HugePages, IbPort, KernelLog, MigCap, Mount, NvmeDisk,
    PciGpu, PcieSysfs, Reading, Service, UnitState,
};

/// The most bytes of a file that are read.
pub(super) const MAX_BYTES: u64 = 16 << 20;

/// The most entries of a folder that are looked at.
const MAX_ENTRIES: usize = 8192;

/// PCI vendor of NVIDIA.
const NVIDIA: &str = "0x10de";

/// `O_NONBLOCK` of Linux on every processor that has NVIDIA's driver.
const O_NONBLOCK: i32 = 0o4000;

/// Where systemd has control groups: version 2, then version 1.
const CONTROL_GROUPS: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/systemd"];

/// The agent of a scheduler: units that run it, and control groups of what it has started, which may
/// outlive it.
struct Agent {
    units: &'static [&'static str],
    work: &'static [&'static str],
}

/// Source: Slurm, "Control Group v2 plugin": steps are in `slurmstepd.scope`.
const SLURM: Agent = Agent { units: &["slurmd"], work: &["system.slice/slurmstepd.scope"] };

/// Source: Kubernetes, "About cgroup v2" and KubeletConfiguration (`cgroupRoot`): pods are below
/// `kubepods.slice` with the driver systemd, below `kubepods` with cgroupfs. K3s and RKE2 run the
/// kubelet in their own process.
const KUBERNETES: Agent = Agent {
    units: &["kubelet", "k3s", "k3s-agent", "rke2-server", "rke2-agent"],
    work: &["kubepods.slice", "kubepods"],
};

/// What the probe of the host finds.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    /// GPUs on PCI.
    pub(super) pci_gpus: Reading<Vec<PciGpu>>,
    /// Version of the kernel module.
    pub(super) kernel_module: Reading<String>,
    /// True if `/dev/nvidiactl` is there.
    pub(super) has_control_node: Option<bool>,
    /// How many `/dev/nvidiaN` there are.
    pub(super) gpu_nodes: Option<usize>,
    /// The rest.
    pub(super) host: HostState,
}

/// What is read only on demand.
#[derive(Debug, Clone, Default)]
pub(super) struct Extra {
    /// The program slurmd.
    pub(super) slurmd: Option<PathBuf>,
    /// A file with the Node of Kubernetes as JSON.
    pub(super) kubernetes_node: Option<PathBuf>,
}

/// Reads all of the host.
pub(super) fn read(root: &Path, extra: &Extra, probe: &Probe<Host>) {
    let files = Files { root };
    entering("reading /sys/bus/pci/devices");
    let pci_gpus = files.pci_gpus();
    let kernel_module = files.kernel_module();
    let control = files.root.join("dev/nvidiactl").try_exists().ok();
    let is_node = |name: &&String| {
        name.strip_prefix("nvidia").is_some_and(|minor| minor.parse::<u32>().is_ok())
    };
    let gpu_nodes = files.names("dev").map(|names| names.iter().filter(is_node).count()).ok();
    probe.set(|found| {
        found.pci_gpus = pci_gpus;
        found.kernel_module = kernel_module;
        found.has_control_node = control;
        found.gpu_nodes = gpu_nodes;
    });
    entering("reading /proc and /sys");
    let uptime = files.uptime();
    let kernel = files.line("proc/sys/kernel/osrelease");
    let (cpu, memory, modules) = (files.cpu(), files.memory(), files.modules());
    let (device_nodes, mig_caps) = (files.device_nodes(), files.mig_caps());
    let imex_channels = files.imex_channels();
    probe.set(|found| {
        let host = &mut found.host;
        (host.uptime, host.kernel) = (uptime, kernel);
        (host.cpu, host.memory, host.modules) = (cpu, memory, modules);
        (host.device_nodes, host.mig_caps) = (device_nodes, mig_caps);
        host.imex_channels = imex_channels;
    });
    let (infiniband, nvme, mounts) = (files.infiniband(), files.nvme(), files.mounts());
    let (hugepages, numa_balancing) = (files.hugepages(), files.numa_balancing());
    let governors = files.governors();
    probe.set(|found| {
        let host = &mut found.host;
        (host.infiniband, host.nvme, host.mounts) = (infiniband, nvme, mounts);
        (host.hugepages, host.numa_balancing) = (hugepages, numa_balancing);
        host.governors = governors;
    });
    entering("reading /dev/kmsg");
    let log = files.kernel_log();
    probe.set(|found| found.host.kernel_log = log);
    entering("asking nv-fabricmanager");
    let fabric_manager = files.service("nvidia-fabricmanager", Some("nv-fabricmanager"));
    probe.set(|found| found.host.fabric_manager = fabric_manager);
    entering("asking nvidia-imex");
    let imex = files.service("nvidia-imex", Some("nvidia-imex"));
    let persistenced = files.service("nvidia-persistenced", None);
    probe.set(|found| (found.host.imex, found.host.persistenced) = (imex, persistenced));
    entering("reading /sys/fs/cgroup");
    let (slurmd, kubelet) = (files.agent(&SLURM), files.agent(&KUBERNETES));
    probe.set(|found| (found.host.slurmd, found.host.kubelet) = (slurmd, kubelet));
    entering("asking slurmd");
    let gres = match &extra.slurmd {
        Some(slurmd) => slurm_gres(slurmd),
        None => Reading::NotApplicable("not asked for".to_owned()),
    };
    let kubernetes = match &extra.kubernetes_node {
        Some(file) => kubernetes(file),
        None => Reading::NotApplicable("not asked for".to_owned()),
    };
    probe.set(|found| (found.host.slurm_gres, found.host.kubernetes) = (gres, kubernetes));
}

/// Files below a root.
struct Files<'a> {
    root: &'a Path,
}

/// What an error of a file means for a reading.
fn refused<T>(path: &str, error: &io::Error) -> Reading<T> {
    match error.kind() {
        ErrorKind::NotFound => Reading::NotApplicable(format!("there is no /{path}")),
        ErrorKind::PermissionDenied => {
            Reading::Unknown(format!("no permission to read /{path}: it takes root"))
        }
        _ => Reading::Unknown(format!("reading /{path}: {error}")),
    }
}

fn odd<T>(path: &str) -> Reading<T> {
    Reading::Unknown(format!("/{path} is not as this program knows it"))
}

impl Files<'_> {
    fn text(&self, path: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(self.root.join(path))?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The first line of a file, without what is blank around it.
    fn line(&self, path: &str) -> Reading<String> {
        match self.text(path) {
            Ok(text) => Reading::Value(text.lines().next().unwrap_or_default().trim().to_owned()),
            Err(error) => refused(path, &error),
        }
    }

    fn parsed<T>(&self, path: &str, parse: impl FnOnce(&str) -> Option<T>) -> Reading<T> {
        match self.line(path) {
            Reading::Value(line) => parse(&line).map_or_else(|| odd(path), Reading::Value),
            Reading::NotApplicable(why) => Reading::NotApplicable(why),
            Reading::Unknown(why) => Reading::Unknown(why),
        }
    }

    /// Names in a folder, sorted.
    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(self.root.join(path))?.take(MAX_ENTRIES);
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<io::Result<Vec<String>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    /// Devices of a class; none where the kernel has no such class, unless it shows no class at all.
    fn class<T>(&self, path: &str) -> Result<Vec<String>, Reading<T>> {
        match self.names(path) {
            Ok(names) => Ok(names),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match self.root.join("sys/class").is_dir() {
                    true => Ok(Vec::new()),
                    false => Err(Reading::Unknown("there is no /sys/class to read".to_owned())),
                }
            }
            Err(error) => Err(refused(path, &error)),
        }
    }

    /// NVIDIA's GPUs: class 0x0302, or 0x0300 where they have a display. NVSwitches are 0x0680.
    fn pci_gpus(&self) -> Reading<Vec<PciGpu>> {
        const DEVICES: &str = "sys/bus/pci/devices";
        let names = match self.names(DEVICES) {
            Ok(names) => names,
            // A container without sysfs; it does not follow that there are no GPUs.
            Err(error) => return Reading::Unknown(format!("reading /{DEVICES}: {error}")),
        };
        let mut gpus = Vec::new();
        for name in names {
            let Ok(bus_id) = name.parse::<BusId>() else { continue };
            let at = format!("{DEVICES}/{name}");
            match self.line(&format!("{at}/vendor")) {
                Reading::Value(vendor) if vendor == NVIDIA => {}
                Reading::Value(_) => continue,
                // Gone since the folder was listed.
                Reading::NotApplicable(_) => continue,
                Reading::Unknown(why) => return Reading::Unknown(why),
            }
            let class = self.line(&format!("{at}/class"));
            let is_gpu =
                |class: &String| class.starts_with("0x0302") || class.starts_with("0x0300");
            if !class.value().is_some_and(is_gpu) {
                continue;
            }
            let device_id = self.parsed(&format!("{at}/device"), |id| id.parse::<DeviceId>().ok());
            match device_id {
                Reading::Value(device_id) => gpus.push(self.pci_gpu(&at, bus_id, device_id)),
                Reading::NotApplicable(why) | Reading::Unknown(why) => {
                    return Reading::Unknown(why);
                }
            }
        }
        gpus.sort_by_key(|gpu| gpu.bus_id);
        Reading::Value(gpus)
    }

    fn pci_gpu(&self, at: &str, bus_id: BusId, device_id: DeviceId) -> PciGpu {
        let config = format!("{at}/config");
        let answers = match File::open(self.root.join(&config)) {
            Ok(mut file) => {
                let mut vendor = [0; 2];
                match file.read_exact(&mut vendor) {
                    Ok(()) => Reading::Value(vendor != [0xff; 2]),
                    Err(error) => refused(&config, &error),
                }
            }
            Err(error) => refused(&config, &error),
        };
        let kernel_driver = match fs::read_link(self.root.join(at).join("driver")) {
            Ok(driver) => {
                let name = driver.file_name().unwrap_or_default();
                Reading::Value(name.to_string_lossy().into_owned())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Reading::NotApplicable("no kernel driver has it".to_owned())
            }
            Err(error) => refused(at, &error),
        };
        // A dead device reads as 63 lanes.
        let lanes = |text: &str| text.parse::<u8>().ok().filter(|lanes| *lanes <= 32);
        let width = |name: &str| self.parsed(&format!("{at}/{name}"), lanes);
        let generation = |name: &str| self.parsed(&format!("{at}/{name}"), pcie_generation);
        let numa = self.parsed(&format!("{at}/numa_node"), |text| text.parse::<i64>().ok());
        let numa_node = match numa {
            Reading::Value(node) => match u32::try_from(node) {
                Ok(node) => Reading::Value(node),
                Err(_) => Reading::NotApplicable("the kernel knows no NUMA node of it".to_owned()),
            },
            Reading::NotApplicable(why) => Reading::NotApplicable(why),
            Reading::Unknown(why) => Reading::Unknown(why),
        };
        let link = PcieSysfs {
            width: width("current_link_width"),
            max_width: width("max_link_width"),
            generation: generation("current_link_speed"),
            max_generation: generation("max_link_speed"),
            numa_node,
        };
        PciGpu { bus_id, device_id, answers, kernel_driver, link }
    }

    /// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.105.08  Wed …`, or with `Open` in it.
    fn kernel_module(&self) -> Reading<String> {
        const FILE: &str = "proc/driver/nvidia/version";
        match self.text(FILE) {
            Ok(text) => {
                let line = text.lines().find(|line| line.starts_with("NVRM version:"));
                match line.and_then(dotted_version) {
                    Some(version) => Reading::Value(version),
                    None => odd(FILE),
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Reading::NotApplicable("NVIDIA's kernel module is not loaded".to_owned())
            }
            Err(error) => refused(FILE, &error),
        }
    }

    fn uptime(&self) -> Reading<Seconds> {
        self.parsed("proc/uptime", |line| line.split('.').next()?.parse().ok().map(Seconds))
    }

    fn cpu(&self) -> Reading<Cpu> {
        const CPUS: &str = "sys/devices/system/cpu";
        let online = match self.line(&format!("{CPUS}/online")) {
            Reading::Value(online) => online,
            Reading::NotApplicable(why) => return Reading::NotApplicable(why),
            Reading::Unknown(why) => return Reading::Unknown(why),
        };
        let Some(online) = numbers(&online) else { return odd(CPUS) };
        let (mut sockets, mut cores) = (BTreeSet::new(), BTreeSet::new());
        let mut counted: BTreeSet<u32> = BTreeSet::new();
        let mut threads = 0_u32;
        for cpu in online {
            threads = threads.saturating_add(1);
            if counted.contains(&cpu) {
                continue;
            }
            let at = format!("{CPUS}/cpu{cpu}/topology");
            let number = |name: &str| self.line(&format!("{at}/{name}"));
            let Reading::Value(package) = number("physical_package_id") else { return odd(&at) };
            // The threads of one core share one look.
            let siblings = number("thread_siblings_list");
            let Some(siblings) = siblings.value().and_then(|list| numbers(list)) else {
                return odd(&at);
            };
            cores.insert((package.clone(), siblings.iter().min().copied()));
            sockets.insert(package);
            counted.extend(siblings);
        }
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Reading::Value(Cpu { sockets: count(sockets.len()), cores: count(cores.len()), threads })
    }

    fn memory(&self) -> Reading<Mib> {
        self.parsed("proc/meminfo", |line| {
            let kib = line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?;
            Some(Mib(kib.trim().parse::<u64>().ok()? >> 10))
        })
    }

    fn modules(&self) -> Reading<Vec<String>> {
        match self.text("proc/modules") {
            Ok(text) => {
                let names = text.lines().filter_map(|line| line.split(' ').next());
                let mut names: Vec<String> = names.map(str::to_owned).collect();
                names.sort_unstable();
                Reading::Value(names)
            }
            Err(error) => refused("proc/modules", &error),
        }
    }

    fn device_nodes(&self) -> Reading<Vec<DeviceNode>> {
        let names = match self.names("dev") {
            Ok(names) => names,
            Err(error) => return refused("dev", &error),
        };
        let mut nodes = Vec::new();
        for name in names.iter().filter(|name| name.starts_with("nvidia")) {
            let path = self.root.join("dev").join(name);
            // Through links, as a program that opens it goes.
            let Ok(metadata) = fs::metadata(path) else { continue };
            if metadata.file_type().is_char_device() {
                let (major, minor) = device_numbers(metadata.rdev());
                let mode = format!("{:04o}", metadata.mode() & 0o7777);
                nodes.push(DeviceNode { path: format!("/dev/{name}"), major, minor, mode });
            }
        }
        Reading::Value(nodes)
    }

    fn mig_caps(&self) -> Reading<Vec<MigCap>> {
        const FILE: &str = "proc/driver/nvidia-caps/mig-minors";
        let text = match self.text(FILE) {
            Ok(text) => text,
            Err(error) => return refused(FILE, &error),
        };
        let nodes = self.names("dev/nvidia-caps").unwrap_or_default();
        let nodes: BTreeSet<u32> =
            nodes.iter().filter_map(|name| name.strip_prefix("nvidia-cap")?.parse().ok()).collect();
        let mut caps = Vec::new();
        for line in text.lines() {
            let Some((device, cap)) = mig_cap(line) else { return odd(FILE) };
            // Thousands of lines stand there for instances that may be made one day: those that
            // have no node say nothing.
            let has_node = nodes.contains(&cap);
            if has_node || matches!(device, CapDevice::Config | CapDevice::Monitor) {
                caps.push(MigCap { device, cap, has_node });
            }
        }
        caps.sort_by_key(|cap| cap.device);
        Reading::Value(caps)
    }

    fn imex_channels(&self) -> Reading<Vec<u32>> {
        const FOLDER: &str = "dev/nvidia-caps-imex-channels";
        match self.names(FOLDER) {
            Ok(names) => {
                let channel = |name: &String| name.strip_prefix("channel")?.parse().ok();
                let mut channels: Vec<u32> = names.iter().filter_map(channel).collect();
                channels.sort_unstable();
                Reading::Value(channels)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Reading::Value(Vec::new()),
            Err(error) => refused(FOLDER, &error),
        }
    }

    fn infiniband(&self) -> Reading<Vec<IbPort>> {
        const FOLDER: &str = "sys/class/infiniband";
        let devices = match self.class(FOLDER) {
            Ok(devices) => devices,
            Err(absent) => return absent,
        };
        let mut found = Vec::new();
        for device in devices {
            let at = format!("{FOLDER}/{device}");
            let Ok(ports) = self.names(&format!("{at}/ports")) else { continue };
            let ports: BTreeSet<u32> = ports.iter().filter_map(|port| port.parse().ok()).collect();
            let firmware = self.line(&format!("{at}/fw_ver"));
            let board = self.line(&format!("{at}/board_id"));
            let bus_id = fs::read_link(self.root.join(&at).join("device")).ok();
            let bus_id = bus_id.as_deref().and_then(Path::file_name);
            let bus_id = bus_id.and_then(|name| name.to_str()?.parse::<BusId>().ok());
            let bus_id = match bus_id {
                Some(bus_id) => Reading::Value(bus_id),
                None => Reading::NotApplicable("it is not on PCI".to_owned()),
            };
            for port in ports {
                let at = format!("{at}/ports/{port}");
                // `4: ACTIVE` and `5: LinkUp`.
                let word = |line: &str| Some(line.split_once(": ")?.1.to_owned());
                found.push(IbPort {
                    device: device.clone(),
                    port,
                    state: self.parsed(&format!("{at}/state"), word),
                    physical_state: self.parsed(&format!("{at}/phys_state"), word),
                    // `400 Gb/sec (4X NDR)`.
                    rate: self.parsed(&format!("{at}/rate"), |line| {
                        line.split([' ', '.']).next()?.parse().ok()
                    }),
                    link_layer: self.line(&format!("{at}/link_layer")),
                    firmware: firmware.clone(),
                    board: board.clone(),
                    bus_id: bus_id.clone(),
                });
            }
        }
        Reading::Value(found)
    }

    fn nvme(&self) -> Reading<Vec<NvmeDisk>> {
        const FOLDER: &str = "sys/class/nvme";
        let disks = match self.class(FOLDER) {
            Ok(disks) => disks,
            Err(absent) => return absent,
        };
        let disk = |name: String| {
            let at = format!("{FOLDER}/{name}");
            let spaces = self.names(&at).unwrap_or_default();
            // `nvme0n1`, or `nvme0c0n1` for a path of a shared one; sectors are of 512 bytes.
            let sectors = spaces.iter().filter(|space| space.starts_with("nvme"));
            let sectors = sectors.filter_map(|space| {
                self.line(&format!("{at}/{space}/size")).value()?.parse::<u64>().ok()
            });
            let size = sectors.fold(0_u64, |sum, size| sum.saturating_add(size));
            let model = self.line(&format!("{at}/model"));
            let state = self.line(&format!("{at}/state"));
            NvmeDisk { name, model, state, size: Reading::Value(Bytes(size.saturating_mul(512))) }
        };
        Reading::Value(disks.into_iter().map(disk).collect())
    }

    fn mounts(&self) -> Reading<Vec<Mount>> {
        // A pod with the host's processes has mounts of its own. Those of process 1 are the host's.
        const FILE: &str = "proc/1/mounts";
        let text = match self.text(FILE) {
            Ok(text) => text,
            Err(error) => return refused(FILE, &error),
        };
        let mut mounts: Vec<Mount> = text.lines().filter_map(mount).collect();
        mounts.sort_by(|a, b| a.target.cmp(&b.target));
        mounts.truncate(MAX_ENTRIES / 2);
        Reading::Value(mounts)
    }

    fn hugepages(&self) -> Reading<Vec<HugePages>> {
        const FOLDER: &str = "sys/kernel/mm/hugepages";
        let sizes = match self.names(FOLDER) {
            Ok(sizes) => sizes,
            Err(error) => return refused(FOLDER, &error),
        };
        let mut found = Vec::new();
        for name in sizes {
            let size = name.strip_prefix("hugepages-").and_then(|size| size.strip_suffix("kB"));
            let Some(size_kib) = size.and_then(|size| size.parse().ok()) else { continue };
            let number = |file: &str| {
                self.line(&format!("{FOLDER}/{name}/{file}")).value()?.parse::<u64>().ok()
            };
            let (Some(total), Some(free)) = (number("nr_hugepages"), number("free_hugepages"))
            else {
                return odd(FOLDER);
            };
            found.push(HugePages { size_kib, total, free });
        }
        found.sort_by_key(|pages| pages.size_kib);
        Reading::Value(found)
    }

    fn numa_balancing(&self) -> Reading<bool> {
        self.parsed("proc/sys/kernel/numa_balancing", |line| {
            line.parse::<u32>().ok().map(|mode| mode != 0)
        })
    }

    fn governors(&self) -> Reading<Vec<String>> {
        const FOLDER: &str = "sys/devices/system/cpu/cpufreq";
        match self.names(FOLDER) {
            Ok(policies) => {
                let governor = |policy: &String| {
                    self.line(&format!("{FOLDER}/{policy}/scaling_governor")).value().cloned()
                };
                let governors: BTreeSet<String> = policies.iter().filter_map(governor).collect();
                Reading::Value(governors.into_iter().collect())
            }
            Err(error) => refused(FOLDER, &error),
        }
    }

    fn kernel_log(&self) -> Reading<KernelLog> {
        const FILE: &str = "dev/kmsg";
        let path = self.root.join(FILE);
        let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path);
        let mut file = match file {
            Ok(file) => file,
            // Every kernel has one: what hides it is a container.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Reading::Unknown("there is no /dev/kmsg here".to_owned());
            }
            Err(error) => return refused(FILE, &error),
        };
        let mut log = kernel_log::Reader::default();
        // The device gives one record a read; none of them is longer.
        let mut buffer = vec![0; 64 << 10];
        let mut total = 0_u64;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    total = total.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
                    log.take(buffer.get(..length).unwrap_or_default());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // Records were written over while this was read: EPIPE.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => log.lost(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return refused(FILE, &error),
            }
            if total > MAX_BYTES {
                break;
            }
        }
        Reading::Value(log.finish())
    }

    /// A unit and its program's version.
    fn service(&self, unit: &str, program: Option<&str>) -> Service {
        let version = match program {
            Some(program) => version(&self.root.join("usr/bin").join(program)),
            None => Reading::Unknown("not read".to_owned()),
        };
        Service { unit: self.unit(unit), version }
    }

    /// A unit, by what systemd leaves in the file system.
    fn unit(&self, unit: &str) -> Reading<UnitState> {
        let slice = "system.slice";
        let folders = ["etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"];
        let is_installed = || {
            folders.iter().any(|folder| {
                self.root.join(folder).join(format!("{unit}.service")).symlink_metadata().is_ok()
            })
        };
        let has_groups =
            || CONTROL_GROUPS.iter().any(|groups| self.root.join(groups).join(slice).is_dir());
        match self.has_processes(&format!("{slice}/{unit}.service")) {
            Some(true) => Reading::Value(UnitState::Active),
            Some(false) => Reading::Value(UnitState::Inactive),
            None if !has_groups() => {
                Reading::Unknown("systemd's control groups are not to be seen".to_owned())
            }
            None if is_installed() => Reading::Value(UnitState::Inactive),
            None => Reading::Value(UnitState::NotFound),
        }
    }

    /// Whether a control group has processes, itself or below; none if it is not there.
    fn has_processes(&self, group: &str) -> Option<bool> {
        let file = |name: &str| {
            CONTROL_GROUPS
                .iter()
                .find_map(|groups| self.text(&format!("{groups}/{group}/{name}")).ok())
        };
        let processes = file("cgroup.procs")?;
        // A service that makes groups of its own has its processes below; version 2 only tells.
        let below = file("cgroup.events").is_some_and(|text| text.contains("populated 1"));
        Some(below || !processes.trim().is_empty())
    }

    /// Whether the agent of a scheduler runs, or what it has started.
    fn agent(&self, agent: &Agent) -> Reading<UnitState> {
        let units: Vec<_> = agent.units.iter().map(|unit| self.unit(unit)).collect();
        let has_work = agent.work.iter().any(|group| self.has_processes(group) == Some(true));
        let is = |state: UnitState| units.contains(&Reading::Value(state));
        if has_work || is(UnitState::Active) {
            return Reading::Value(UnitState::Active);
        }
        match units.iter().find(|unit| unit.value().is_none()) {
            Some(unknown) => unknown.clone(),
            None if is(UnitState::Inactive) => Reading::Value(UnitState::Inactive),
            None => Reading::Value(UnitState::NotFound),
        }
    }
}

/// `16.0 GT/s PCIe`: the generation of a speed. Source: PCI Express Base Specification.
fn pcie_generation(speed: &str) -> Option<u8> {
    match speed.split(' ').next()? {
        "2.5" => Some(1),
        "5.0" | "5" => Some(2),
        "8.0" | "8" => Some(3),
        "16.0" | "16" => Some(4),
        "32.0" | "32" => Some(5),
        "64.0" | "64" => Some(6),
        _ => None,
    }
}

/// `0-3,8`.
fn numbers(list: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in list.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        if last.checked_sub(first)? > 1 << 16 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// Major and minor number of a device, as glibc and the kernel pack them.
fn device_numbers(device: u64) -> (u32, u32) {
    let part = |value: u64| u32::try_from(value & 0xffff_ffff).unwrap_or(0);
    let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
    let minor = (device & 0xff) | (device >> 12 & 0xffff_ff00);
    (part(major), part(minor))
}

/// A line of `mig-minors`: `gpu0/gi1/ci0/access 4`.
fn mig_cap(line: &str) -> Option<(CapDevice, u32)> {
    let (name, cap) = line.rsplit_once(' ')?;
    let cap = cap.parse().ok()?;
    let number = |part: &str, prefix: &str| part.strip_prefix(prefix)?.parse::<u32>().ok();
    let parts: Vec<&str> = name.split('/').collect();
    let device = match parts.as_slice() {
        ["config"] => CapDevice::Config,
        ["monitor"] => CapDevice::Monitor,
        [gpu, gi, "access"] => {
            CapDevice::GpuInstance { gpu: number(gpu, "gpu")?, id: number(gi, "gi")? }
        }
        [gpu, gi, ci, "access"] => CapDevice::ComputeInstance {
            gpu: number(gpu, "gpu")?,
            gpu_instance: number(gi, "gi")?,
            id: number(ci, "ci")?,
        },
        _ => return None,
    };
    Some((device, cap))
}

/// Types of file systems that show the kernel itself. Source: proc(5), `/proc/filesystems`.
const OF_KERNEL: &[&str] = &[
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tracefs",
];

/// Folders below which mounts are those of containers, which come and go.
const OF_CONTAINERS: &[&str] =
    &["/run/", "/var/lib/containerd/", "/var/lib/docker/", "/var/lib/kubelet/pods/"];

/// A line of a table of mounts, if the mount is neither the kernel's own nor a container's.
fn mount(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ');
    let (source, target) = (fields.next()?, unescaped(fields.next()?));
    let (kind, options) = (fields.next()?, fields.next()?);
    let of_container = OF_CONTAINERS.iter().any(|folder| target.starts_with(folder));
    (!of_container && !OF_KERNEL.contains(&kind)).then(|| Mount {
        target,
        source: unescaped(source),
        kind: kind.to_owned(),
        read_only: options.split(',').any(|option| option == "ro"),
    })
}

/// A field of a table of mounts, where a blank is `\040`.
fn unescaped(field: &str) -> String {
    field.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mig_minors_are_read() {
        assert_eq!(mig_cap("config 1"), Some((CapDevice::Config, 1)));
        assert_eq!(
            mig_cap("gpu2/gi9/access 300"),
            Some((CapDevice::GpuInstance { gpu: 2, id: 9 }, 300))
        );
        assert_eq!(
            mig_cap("gpu0/gi1/ci0/access 4"),
            Some((CapDevice::ComputeInstance { gpu: 0, gpu_instance: 1, id: 0 }, 4))
        );
        assert_eq!(mig_cap("gpu0/other 4"), None);
        assert_eq!(mig_cap("config"), None);
    }

    #[test]
    fn mounts_of_the_kernel_and_of_containers_are_left_out() {
        assert_eq!(mount("proc /proc proc rw,nosuid 0 0"), None);
        let secret = "tmpfs /var/lib/kubelet/pods/1f/volumes/token tmpfs rw 0 0";
        assert_eq!(mount(secret), None);
        assert_eq!(mount("tmpfs /tmp tmpfs rw 0 0").unwrap().kind, "tmpfs");
        let scratch = mount("/dev/md0 /mnt/local\\040scratch xfs rw,noatime 0 0").unwrap();
        assert_eq!((scratch.target.as_str(), scratch.read_only), ("/mnt/local scratch", false));
        let home = mount("nfs1:/home /home nfs4 ro,vers=4.2 0 0").unwrap();
        assert_eq!((home.source.as_str(), home.read_only), ("nfs1:/home", true));
    }

    #[test]
    fn device_numbers_are_unpacked() {
        // makedev(195, 255), and makedev(509, 300).
        assert_eq!(device_numbers(0xc3ff), (195, 255));
        assert_eq!(device_numbers(0x11_fd2c), (509, 300));
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(numbers("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(numbers("3-1"), None);
        assert_eq!(numbers(""), Some(Vec::new()));
    }
}
