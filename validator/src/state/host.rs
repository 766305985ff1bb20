//! The node around its GPUs: kernel, services, network, disks, and what the schedulers' agents see.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Reading;
use fleetc_schema::pci::BusId;
use fleetc_schema::units::{Bytes, Mib, Seconds};

/// The node around its GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostState {
    /// When all of this was read.
    pub time: Reading<UnixTime>,
    /// Time since boot: `/proc/uptime`, whole seconds.
    pub uptime: Reading<Seconds>,
    /// Release of the kernel: `/proc/sys/kernel/osrelease`.
    pub kernel: Reading<String>,
    /// Processors that are online.
    pub cpu: Reading<Cpu>,
    /// `MemTotal` of `/proc/meminfo`, in MiB.
    #[serde(rename = "memory_mib")]
    pub memory: Reading<Mib>,
    /// What NVIDIA's driver said since boot: `/dev/kmsg`. Old records may be gone.
    pub kernel_log: Reading<KernelLog>,
    /// Names of the loaded kernel modules, sorted: `/proc/modules`.
    pub modules: Reading<Vec<String>>,
    /// Character devices of NVIDIA in `/dev`, sorted by path.
    pub device_nodes: Reading<Vec<DeviceNode>>,
    /// `/proc/driver/nvidia-caps/mig-minors`; not applicable without that file.
    pub mig_caps: Reading<Vec<MigCap>>,
    /// The fabric manager: unit `nvidia-fabricmanager`.
    pub fabric_manager: Service,
    /// IMEX: unit `nvidia-imex`.
    pub imex: Service,
    /// IMEX channels, rising: `/dev/nvidia-caps-imex-channels/channelN`.
    pub imex_channels: Reading<Vec<u32>>,
    /// The persistence daemon: unit `nvidia-persistenced`. Its version is not read.
    pub persistenced: Service,
    /// Whether Slurm is at work here: unit `slurmd`, or `slurmstepd.scope` with steps of jobs.
    pub slurmd: Reading<UnitState>,
    /// Whether Kubernetes is: unit `kubelet`, one of a distribution that runs the kubelet inside
    /// (`k3s`, `k3s-agent`, `rke2-server`, `rke2-agent`), or `kubepods.slice` with pods.
    pub kubelet: Reading<UnitState>,
    /// Ports of InfiniBand and RoCE adapters: `/sys/class/infiniband`.
    pub infiniband: Reading<Vec<IbPort>>,
    /// NVMe disks: `/sys/class/nvme`.
    pub nvme: Reading<Vec<NvmeDisk>>,
    /// Mounted file systems, but for those that show the kernel and those of containers, sorted by where
    /// they are: `/proc/1/mounts`.
    pub mounts: Reading<Vec<Mount>>,
    /// `/sys/kernel/mm/hugepages`, by page size.
    pub hugepages: Reading<Vec<HugePages>>,
    /// `/proc/sys/kernel/numa_balancing`.
    pub numa_balancing: Reading<bool>,
    /// Frequency governors in use, sorted, each once: `scaling_governor` of the processors.
    pub governors: Reading<Vec<String>>,
    /// Generic resources as slurmd finds them: `slurmd -G`, which needs root. Not applicable without
    /// slurmd.
    pub slurm_gres: Reading<Vec<SlurmGres>>,
    /// What the kubelet hands out. Not applicable off Kubernetes.
    pub kubernetes: Reading<Allocatable>,
}

/// A moment, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixTime(pub u64);

/// Processors that are online: `/sys/devices/system/cpu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Sockets.
    pub sockets: u32,
    /// Cores of all sockets.
    pub cores: u32,
    /// Hardware threads of all cores.
    pub threads: u32,
}

/// What NVIDIA's driver said in the kernel log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelLog {
    /// The events, oldest first.
    pub events: Vec<LogEvent>,
    /// True if the log no longer reaches back to the boot: what was said first is lost.
    pub truncated: bool,
}

/// One line of NVIDIA's driver that tells of a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogEvent {
    /// When, in seconds since boot.
    pub at: u64,
    /// The GPU, if the line names one.
    pub gpu: Option<BusId>,
    /// What it tells.
    pub kind: LogEventKind,
}

/// What a line of the kernel log tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LogEventKind {
    /// `NVRM: Xid (PCI:0000:9b:00): 79, …`: an XID of a GPU.
    Xid {
        /// The code.
        code: u16,
        /// What follows the code.
        text: String,
    },
    /// `nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 12028, …`: an error of an NVSwitch.
    Sxid {
        /// The code.
        code: u32,
        /// What follows the code.
        text: String,
    },
    /// `GPU has fallen off the bus`, which may come without an XID.
    FallenOffBus,
    /// `RmInitAdapter failed!`: the driver could not start the GPU.
    InitFailed {
        /// What follows.
        text: String,
    },
    /// `API mismatch`: library and kernel module differ.
    ApiMismatch {
        /// What follows.
        text: String,
    },
}

/// A character device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceNode {
    /// Its path, such as `/dev/nvidia0`.
    pub path: String,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Permissions, such as `0666`.
    pub mode: String,
}

/// A line of `mig-minors`: who may open this device may use what it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigCap {
    /// What it stands for.
    pub device: CapDevice,
    /// N of `/dev/nvidia-caps/nvidia-capN`.
    pub cap: u32,
    /// True if that node is there.
    pub has_node: bool,
}

/// What a capability stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CapDevice {
    /// To change MIG layouts.
    Config,
    /// To see them.
    Monitor,
    /// A GPU instance.
    GpuInstance {
        /// Minor number of the GPU.
        gpu: u32,
        /// Id of the GPU instance.
        id: u32,
    },
    /// A compute instance.
    ComputeInstance {
        /// Minor number of the GPU.
        gpu: u32,
        /// Id of the GPU instance.
        gpu_instance: u32,
        /// Id of the compute instance.
        id: u32,
    },
}

/// A systemd unit and its program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Service {
    /// Whether it runs.
    pub unit: Reading<UnitState>,
    /// What its program says that it is; not applicable if it is not installed.
    pub version: Reading<String>,
}

/// State of a systemd unit, as far as files tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitState {
    /// It has processes.
    Active,
    /// It is installed and has none: stopped, failed, or not started yet.
    Inactive,
    /// It is not installed.
    NotFound,
}

/// A port of an adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IbPort {
    /// The adapter, such as `mlx5_0`.
    pub device: String,
    /// The port, from 1.
    pub port: u32,
    /// Logical state, such as `ACTIVE`: the word of `state`.
    #[serde(default)]
    pub state: Reading<String>,
    /// Physical state, such as `LinkUp`: the words of `phys_state`.
    #[serde(default)]
    pub physical_state: Reading<String>,
    /// Rate in Gb/s, whole: the number of `rate`.
    #[serde(rename = "rate_gbit", default)]
    pub rate: Reading<u32>,
    /// `InfiniBand` or `Ethernet`: `link_layer`.
    #[serde(default)]
    pub link_layer: Reading<String>,
    /// Firmware of the adapter: `fw_ver`.
    #[serde(default)]
    pub firmware: Reading<String>,
    /// Board of the adapter: `board_id`.
    #[serde(default)]
    pub board: Reading<String>,
    /// Where the adapter is on PCI.
    #[serde(default)]
    pub bus_id: Reading<BusId>,
}

/// An NVMe disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvmeDisk {
    /// Its controller, such as `nvme0`.
    pub name: String,
    /// Its model.
    #[serde(default)]
    pub model: Reading<String>,
    /// Its state, such as `live`.
    #[serde(default)]
    pub state: Reading<String>,
    /// Size of all its namespaces.
    #[serde(default)]
    pub size: Reading<Bytes>,
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Where it is mounted.
    pub target: String,
    /// What is mounted, such as `/dev/md0` or `server:/export`.
    pub source: String,
    /// Kind of file system, such as `xfs`.
    #[serde(rename = "type")]
    pub kind: String,
    /// True if it may not be written.
    pub read_only: bool,
}

/// Huge pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HugePages {
    /// Size of a page in KiB.
    pub size_kib: u64,
    /// How many there are.
    pub total: u64,
    /// How many are free.
    pub free: u64,
}

/// A generic resource as slurmd finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlurmGres {
    /// Its name, such as `gpu`.
    pub name: String,
    /// Its type; none if it has none.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// How many.
    pub count: u64,
    /// Its device files.
    pub files: Vec<String>,
}

/// What the kubelet hands out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allocatable {
    /// Extended resources: `status.allocatable` of the node, those of `nvidia.com/`.
    pub resources: BTreeMap<String, u64>,
    /// Labels of the node, those of `nvidia.com/`.
    pub labels: BTreeMap<String, String>,
}
