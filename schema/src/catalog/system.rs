//! Systems: servers and trays, and the racks that trays make up.

use serde::{Deserialize, Serialize};

use super::{Confidence, Fact};
use crate::name::{GpuName, SystemName};

/// A server, a tray or a cloud's instance: one operating system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Key, such as `dgx-h100` or `aws/p5.48xlarge`.
    pub key: SystemName,
    /// Its GPUs.
    pub gpu: GpuName,
    /// How many.
    pub gpus_per_node: u8,
    /// True for any builder's server around these GPUs: a fleet states the rest.
    #[serde(default)]
    pub generic: bool,
    /// Instruction set.
    #[serde(default)]
    pub arch: CpuArch,
    /// Processors; none where the builder decides, or where not all of it is known.
    pub cpu: Option<Cpu>,
    /// Memory in GiB; none where the builder decides.
    pub memory_gib: Fact<u32>,
    /// The unit in which the source prints the memory. Modules are binary, so a printed GB is read
    /// as a GiB.
    #[serde(default)]
    pub memory_printed_in: MemoryUnit,
    /// NUMA nodes that have CPUs. GPU memory of a Grace tray shows up as more, without CPUs.
    #[serde(default)]
    pub numa_nodes: Option<u8>,
    /// GPUs of one NVLink domain: more than a node has where trays are joined, fewer where a node
    /// holds several islands.
    pub nvlink_domain: u16,
    /// NVSwitch chips in the node.
    pub nvswitch_chips: Option<u8>,
    /// Network cards; none where the builder decides.
    pub nics: Option<Nics>,
    /// Local disks; none where the builder decides.
    pub local_disk: Option<LocalDisk>,
    /// Power of the whole system in watts.
    pub power_w: Option<u32>,
    /// Keys of the row's sources.
    pub source: Vec<String>,
    /// Confidence of every field that states none.
    pub confidence: Confidence,
    /// Doubts and remarks.
    #[serde(default)]
    pub note: Option<String>,
}

impl System {
    /// NVLink domains that lie inside one node: 1 also for a node that is part of a larger domain.
    pub fn nvlink_domains_per_node(&self) -> u16 {
        u16::from(self.gpus_per_node).div_ceil(self.nvlink_domain.max(1))
    }
}

/// Instruction set, in the words of the node label `kubernetes.io/arch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CpuArch {
    /// x86-64.
    #[default]
    Amd64,
    /// 64-bit ARM: Grace and Vera.
    Arm64,
}

/// The unit in which a source prints memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum MemoryUnit {
    /// GiB.
    #[default]
    #[serde(rename = "GiB")]
    Gib,
    /// GB, by which the source means GiB.
    #[serde(rename = "GB")]
    Gb,
}

/// Processors of a system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// What they are.
    #[serde(default)]
    pub model: Option<String>,
    /// Sockets.
    pub sockets: u16,
    /// Cores of all sockets.
    pub cores: u16,
    /// Hardware threads of all cores.
    pub threads: u16,
}

/// Network cards of a system, by what they are for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nics {
    /// Between GPUs.
    pub compute: NicGroup,
    /// Storage and management; none if not known apart.
    #[serde(default)]
    pub storage: Option<NicGroup>,
}

/// Network cards that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicGroup {
    /// What they are.
    pub model: String,
    /// How many.
    pub count: Option<u16>,
    /// Rate of one, one way, in Mbit/s.
    pub mbit_per_s: Option<u32>,
}

/// Local disks of a system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalDisk {
    /// How many.
    pub count: Option<u8>,
    /// All of them together, in GB.
    pub total_gb: u32,
    /// Form factor.
    #[serde(default)]
    pub form: Option<String>,
}

/// A rack product: trays that are sold and cabled as one NVLink domain.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RackProduct {
    /// Key, such as `gb200-nvl72`.
    pub key: SystemName,
    /// The system of its trays, one node each.
    pub tray: SystemName,
    /// Racks that it stands in.
    pub racks: u8,
    /// Compute trays of one rack.
    pub trays_per_rack: u16,
    /// GPUs of one rack.
    pub gpus_per_rack: u16,
    /// CPUs of one rack.
    pub cpus_per_rack: Option<u16>,
    /// GPUs of the NVLink domain.
    pub nvlink_domain: u16,
    /// Switch trays of one rack.
    pub switch_trays_per_rack: Option<u8>,
    /// NVSwitch chips of one rack.
    pub nvswitch_chips_per_rack: Option<u8>,
    /// NVLink bandwidth of the domain, both directions added, in GB/s.
    pub nvlink_total_gb_per_s: Option<u32>,
    /// GPU memory of the domain by data sheet, in GB.
    pub hbm_gb: Option<u32>,
    /// Other names, and what they count.
    #[serde(default)]
    pub also_called: Vec<String>,
    /// Keys of the row's sources.
    pub source: Vec<String>,
    /// Confidence of the row.
    pub confidence: Confidence,
    /// Doubts and remarks.
    #[serde(default)]
    pub note: Option<String>,
}

impl RackProduct {
    /// Compute trays of the whole product, in all its racks.
    pub fn trays(&self) -> u16 {
        self.trays_per_rack.saturating_mul(u16::from(self.racks))
    }
}
