//! GPU products.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Confidence, Fact, MigTableRow};
use crate::name::GpuName;
use crate::version::Version;

/// A GPU product. Sizes are computed from `nvml_total_mib`, never from the marketing label.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Key, such as `h100-sxm5-80gb`.
    pub key: GpuName,
    /// Name that NVML reports; none if no released driver has named it yet.
    pub nvml_name: Option<String>,
    /// Other names that drivers have reported.
    #[serde(default)]
    pub also_seen: Vec<String>,
    /// Value of the node label `nvidia.com/gpu.product`.
    pub gfd_product: Option<String>,
    /// The type in Slurm's GRES: a substring of the NVML name in lower case with `_` for blanks,
    /// else slurmd does not match the device. Sticks once deployed.
    pub gres_type: String,
    /// PCI device ids, `0x2330`. The vendor is always NVIDIA's.
    pub pci_device_ids: Fact<Vec<String>>,
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
    pub gflops_dense: Fact<DenseGflops>,
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
    pub row_remap: Option<bool>,
    /// Where a fabric manager must run.
    pub fabric_manager: Fact<FabricManager>,
    /// Whether nodes run IMEX.
    pub imex: Imex,
    /// The product family, to order generations.
    #[serde(default)]
    pub family: Fact<Family>,
    /// The last driver branch that drives it, such as 580; none if no end is known.
    #[serde(default)]
    pub last_driver_branch: Fact<u16>,
    /// Keys of the row's sources.
    pub source: Vec<String>,
    /// Confidence of every field that states none.
    pub confidence: Confidence,
    /// Doubts and remarks.
    #[serde(default)]
    pub note: Option<String>,
}

impl Gpu {
    /// True if the GPU is known to have MIG.
    pub fn has_mig(&self) -> bool {
        self.mig.capable == Some(true)
    }

    /// True if NVLink can join it to others.
    pub fn has_nvlink(&self) -> bool {
        self.nvlink.max_domain > 1
    }

    /// The NVML name, then other names that drivers have reported.
    pub fn nvml_names(&self) -> impl Iterator<Item = &String> {
        self.nvml_name.iter().chain(&self.also_seen)
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

impl Architecture {
    /// Every architecture as a word, oldest first.
    pub const WORDS: &'static [&'static str] =
        &["volta", "turing", "ampere", "ada", "hopper", "blackwell", "rubin"];

    const ALL: [Self; 7] = [
        Self::Volta,
        Self::Turing,
        Self::Ampere,
        Self::Ada,
        Self::Hopper,
        Self::Blackwell,
        Self::Rubin,
    ];

    /// The architecture of a word, if it is one.
    pub fn of(word: &str) -> Option<Self> {
        let at = Self::WORDS.iter().position(|known| *known == word)?;
        Self::ALL.get(at).copied()
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = Self::ALL.iter().zip(Self::WORDS);
        let word = words.into_iter().find(|(known, _)| *known == self).map(|(_, word)| *word);
        f.write_str(word.unwrap_or_default())
    }
}

/// Dense throughput of the tensor cores, in GFLOPS.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenseGflops {
    /// FP16; stated for products without BF16 only.
    #[serde(default)]
    pub fp16: Option<u32>,
    /// BF16.
    pub bf16: Option<u32>,
    /// FP8.
    pub fp8: Option<u32>,
    /// FP4.
    pub fp4: Option<u32>,
}

/// NVLink of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvLink {
    /// Generation; none without NVLink.
    pub generation: Option<u8>,
    /// Links of the GPU; 0 without NVLink.
    pub links: Option<u8>,
    /// Bandwidth of one link, both directions added, in MB/s.
    #[serde(default)]
    pub link_bidir_mb_per_s: Option<u32>,
    /// Bandwidth of all links, both directions added, in MB/s.
    pub aggregate_bidir_mb_per_s: Option<u32>,
    /// The largest domain it can be part of, in GPUs.
    pub max_domain: u16,
    /// True if the usual system joins its GPUs through NVSwitch.
    pub nvswitch: bool,
    /// How GPUs are joined.
    #[serde(default)]
    pub how: Option<String>,
}

/// PCIe of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pcie {
    /// Generation.
    pub generation: u8,
    /// Lanes.
    pub width: u8,
}

/// Power limits in watts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
pub struct MigSupport {
    /// True if the GPU has MIG; none if nobody knows.
    pub capable: Option<bool>,
    /// The most GPU instances; 0 without MIG.
    pub max_instances: Option<u8>,
    /// Key of its table; a capable GPU may have none here.
    pub table: Option<String>,
    /// The first driver that cuts it. Source: NVIDIA MIG User Guide, "Deployment Considerations".
    #[serde(default)]
    pub min_driver: Fact<Version>,
    /// A table that a fleet states; it goes before that of the catalog.
    #[serde(skip)]
    pub own: Option<Arc<MigTableRow>>,
}

/// Where a fabric manager must run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FabricManager {
    /// Nowhere.
    None,
    /// On nodes with NVSwitch chips.
    #[serde(rename = "nvswitch")]
    NvSwitch,
    /// On nodes with NVSwitch chips, with NVIDIA's NVLink subnet manager (`nvlsm`).
    #[serde(rename = "nvswitch-nvlsm")]
    NvSwitchNvlsm,
    /// On the switch trays of the rack, on no compute node.
    SwitchTrays,
}

/// Whether nodes run IMEX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Imex {
    /// No.
    None,
    /// In an NVL32 rack only.
    Nvl32,
    /// On every node of a multi-node NVLink domain.
    Domain,
}

/// A product family.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Its name, such as `H100`.
    pub name: String,
    /// The first year in which it shipped. Orders generations, proves nothing else.
    pub ship_year: u16,
}
