//! Tables and rules that hold for all GPUs: NVML's enumerations, how MIG behaves, and products
//! that have MIG but no row here.

use indexmap::IndexMap;
use serde::Deserialize;

use super::{Architecture, Confidence, Fact, Gpu};
use crate::name::GpuName;
use crate::version::Version;

/// What holds for all GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// PCI vendor id of every GPU in the catalog.
    pub pci_vendor: String,
    /// NVML's numbers.
    pub nvml: NvmlNumbers,
    /// How MIG behaves.
    pub mig: MigRules,
}

/// Enumerations of `nvml.h`: names without their prefix, with their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvmlNumbers {
    /// `NVML_GPU_INSTANCE_PROFILE_*`. Not the profile ids that `nvidia-smi mig -cgi` takes.
    pub gpu_instance_profiles: IndexMap<String, u32>,
    /// `NVML_COMPUTE_INSTANCE_PROFILE_*`.
    pub compute_instance_profiles: IndexMap<String, u32>,
    /// `NVML_DEVICE_ARCH_*`, in lower case.
    pub architectures: IndexMap<String, u32>,
    /// Keys of the sources.
    pub source: Vec<String>,
    /// Confidence.
    pub confidence: Confidence,
}

/// How MIG behaves beyond the tables.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigRules {
    /// Memory in profile names is counted in this many parts of the GPU.
    pub name_denominator: u8,
    /// The first and last GPU instance id, by the share of memory that an instance takes.
    pub gpu_instance_ids: IndexMap<MemoryShare, (u8, u8)>,
    /// Whether MIG mode survives a reboot. Instances never do.
    pub mode_survives_reboot: SinceHopper,
    /// Whether a change of MIG mode takes a GPU reset.
    pub mode_change_resets_gpu: SinceHopper,
    /// True if GPU instances reach each other's memory.
    pub p2p_between_instances: bool,
    /// True if GPUs in MIG mode reach each other's memory.
    pub gpu_to_gpu_p2p_in_mig_mode: bool,
    /// Keys of the sources.
    pub source: Vec<String>,
    /// Confidence.
    pub confidence: Confidence,
}

/// The share of a GPU's memory that an instance takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryShare {
    /// All of it.
    Full,
    /// Half.
    Half,
    /// A quarter.
    Quarter,
    /// An eighth.
    Eighth,
}

/// Something that changed with Hopper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinceHopper {
    /// On Ampere.
    pub ampere: bool,
    /// On Hopper and later.
    pub hopper_and_later: bool,
}

impl SinceHopper {
    /// What holds for an architecture. Ada has no MIG, so the question does not arise there.
    pub fn on(self, architecture: Architecture) -> bool {
        match architecture {
            Architecture::Volta | Architecture::Turing | Architecture::Ampere => self.ampere,
            Architecture::Ada
            | Architecture::Hopper
            | Architecture::Blackwell
            | Architecture::Rubin => self.hopper_and_later,
        }
    }
}

/// A product that has MIG, but no GPU row or no table of its own: a fleet may define them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MigProduct {
    /// The product as NVIDIA names it.
    pub product: String,
    /// The label on the box, in GB.
    pub memory_gb: Option<u32>,
    /// The most GPU instances.
    pub max_instances: Option<u8>,
    /// The GPU row that it is a case of, if there is one.
    pub gpu: Option<GpuName>,
    /// The first driver that cuts it.
    pub min_driver: Fact<Version>,
    /// Keys of the row's sources.
    pub source: Vec<String>,
    /// Confidence of every field that states none.
    pub confidence: Confidence,
    /// Doubts and remarks.
    #[serde(default)]
    pub note: Option<String>,
}

impl MigProduct {
    /// The words of its name in lower case, but for its memory.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        let memory = self.memory_gb.map(|gb| gb.to_string());
        let name = self.product.to_ascii_lowercase();
        let words: Vec<String> = name.split_whitespace().map(str::to_owned).collect();
        words.into_iter().filter(move |word| word != "gb" && Some(word) != memory.as_ref())
    }

    /// True if the GPU reports about as many GiB as the label on the box says GB: ECC and firmware
    /// take a part, and labels are read as binary.
    pub(super) fn has_memory_of(&self, gpu: &Gpu) -> bool {
        let (Some(gb), Some(mib)) = (self.memory_gb, gpu.nvml_total_mib.value) else {
            return false;
        };
        let label = u64::from(gb) * 1024;
        label.abs_diff(mib) * 20 <= label
    }
}
