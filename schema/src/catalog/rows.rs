//! The rows of the catalog.

use serde::{Deserialize, Serialize};

use super::{Confidence, Fact};
use crate::mig::MigTable;
use crate::name::{GpuName, SystemName};

/// A GPU product. Sizes are computed from `nvml_total_mib`, never from the marketing label.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Key, such as `h100-sxm5-80gb`.
    pub key: GpuName,
    /// Name that NVML reports.
    pub nvml_name: String,
    /// Other names that drivers have reported.
    #[serde(default)]
    pub also_seen: Vec<String>,
    /// Value of the node label `nvidia.com/gpu.product`.
    pub gfd_product: String,
    /// The type in Slurm's GRES. Sticks once deployed.
    pub gres_type: String,
    /// PCI device ids, `0x2330`.
    pub pci_device_ids: Vec<String>,
    /// Architecture.
    pub architecture: Architecture,
    /// CUDA compute capability, `9.0`.
    pub compute_capability: String,
    /// The label on the box, in GB. Sizes nothing.
    pub memory_gb: u32,
    /// Memory that NVML reports, in MiB.
    pub nvml_total_mib: Fact<u64>,
    /// Memory technology.
    pub memory_type: String,
    /// Memory bandwidth in GB/s.
    pub bandwidth_gb_per_s: Fact<u32>,
    /// Dense throughput. Sparse figures are never stored.
    pub tflops_dense: Fact<Tflops>,
    /// NVLink.
    pub nvlink: NvLink,
    /// Form factor.
    pub form_factor: String,
    /// PCIe of the device.
    pub pcie: Fact<Pcie>,
    /// Board power by data sheet, in watts.
    pub tdp_w: Fact<u32>,
    /// Limits that NVML reports, in watts.
    pub power_limit_w: Fact<PowerLimit>,
    /// MIG.
    pub mig: MigSupport,
    /// True if the memory has ECC.
    pub ecc: bool,
    /// True if rows can be remapped (Ampere and later data-centre parts).
    pub row_remap: bool,
    /// Where a fabric manager must run.
    pub fabric_manager: FabricManager,
    /// Whether nodes run IMEX.
    pub imex: Imex,
    /// Keys of the row's sources.
    pub source: Vec<String>,
    /// Confidence of every field that states none.
    pub confidence: Confidence,
    /// Doubts and remarks.
    #[serde(default)]
    pub note: Option<String>,
}

impl Gpu {
    /// Every source that the row and its fields cite.
    pub fn cited(&self) -> impl Iterator<Item = &String> {
        let own = [
            &self.nvml_total_mib.source,
            &self.bandwidth_gb_per_s.source,
            &self.tflops_dense.source,
            &self.pcie.source,
            &self.tdp_w.source,
            &self.power_limit_w.source,
        ];
        self.source.iter().chain(own.into_iter().flatten().flatten())
    }
}

/// GPU architecture, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// V100.
    Volta,
    /// T4.
    Turing,
    /// A100, A30, A40, A10.
    Ampere,
    /// L4, L40, L40S.
    Ada,
    /// H100, H200, GH200.
    Hopper,
    /// B200, B300, GB200, GB300, RTX PRO.
    Blackwell,
    /// Vera Rubin.
    Rubin,
}

/// Dense throughput in TFLOPS.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Tflops {
    /// BF16.
    pub bf16: Option<u32>,
    /// FP8.
    pub fp8: Option<u32>,
}

/// NVLink of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NvLink {
    /// Generation; none without NVLink.
    pub generation: Option<u8>,
    /// Links of the GPU.
    pub links: u8,
    /// The largest domain it can be part of, in GPUs.
    pub max_domain: u16,
    /// Bandwidth of all links, both directions added, in GB/s.
    pub aggregate_bidir_gb_per_s: u32,
}

/// PCIe of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Pcie {
    /// Generation.
    pub generation: u8,
    /// Lanes.
    pub width: u8,
}

/// Power limits in watts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct PowerLimit {
    /// The least that can be set.
    pub min: u32,
    /// The most that can be set.
    pub max: u32,
    /// What the board starts with.
    pub default: u32,
}

/// MIG of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MigSupport {
    /// True if the GPU has MIG.
    pub capable: bool,
    /// Key of its table; a capable GPU may have none here.
    pub table: Option<String>,
}

/// Where a fabric manager must run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FabricManager {
    /// Nowhere.
    None,
    /// On nodes with NVSwitch chips.
    NvSwitch,
}

/// Whether nodes run IMEX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Imex {
    /// No.
    None,
    /// On every node of a multi-node NVLink domain.
    Domain,
}

/// A MIG table with its sources.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MigTableRow {
    /// Key.
    pub key: String,
    /// GPUs that are cut so.
    pub gpus: Vec<GpuName>,
    /// The geometry.
    #[serde(flatten)]
    pub table: MigTable,
    /// Keys of the row's sources.
    pub source: Vec<String>,
    /// Confidence of the row.
    pub confidence: Confidence,
}

/// A server or tray: one operating system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Key, such as `dgx-h100`.
    pub key: SystemName,
    /// Its GPUs.
    pub gpu: GpuName,
    /// How many.
    pub gpus_per_node: u8,
    /// Processors; none where the builder decides.
    pub cpu: Option<Cpu>,
    /// Memory in GiB; none where the builder decides.
    pub memory_gib: Option<u32>,
    /// GPUs of one NVLink domain.
    pub nvlink_domain: u16,
    /// Power of the whole system in watts.
    pub power_w: Option<u32>,
    /// Keys of the row's sources.
    pub source: Vec<String>,
    /// Confidence of the row.
    pub confidence: Confidence,
    /// Doubts and remarks.
    #[serde(default)]
    pub note: Option<String>,
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
