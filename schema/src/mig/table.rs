//! What a GPU product can be cut into: its profiles, their sizes, and where each may start.

use serde::{Deserialize, Serialize};

use super::MigProfile;

/// The MIG profiles of one or more GPU products.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigTable {
    /// Memory slices of the GPU: 8, or 4 on A30 and RTX PRO 6000.
    pub memory_slices: u8,
    /// Compute slices of the GPU.
    pub compute_slices: u8,
    /// Engines of the whole GPU, shared out among the instances.
    pub engine_totals: Engines,
    /// Every GPU instance profile.
    pub profiles: Vec<GiProfile>,
}

/// Counts of the engines beside the SMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Engines {
    /// Copy engines.
    pub ce: u8,
    /// Video decoders (NVDEC).
    pub dec: u8,
    /// Video encoders (NVENC).
    pub enc: u8,
    /// JPEG decoders.
    pub jpeg: u8,
    /// Optical flow accelerators.
    pub ofa: u8,
}

/// One GPU instance profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GiProfile {
    /// Its name on this GPU.
    pub name: MigProfile,
    /// The profile id that NVML and `nvidia-smi mig -cgi` take. Not the NVML enum index.
    pub id: u32,
    /// The NVML enum `NVML_GPU_INSTANCE_PROFILE_*`, without its prefix.
    pub nvml: String,
    /// Memory slices that an instance takes.
    pub memory_slices: u8,
    /// How many fit on one GPU at most.
    pub max_count: u8,
    /// Memory slices at which an instance may start.
    pub starts: Vec<u8>,
    /// Memory of an instance in MiB, the least that was seen; none where nobody has read it.
    pub memory_mib: Option<u64>,
    /// Streaming multiprocessors of an instance.
    pub sm: u16,
    /// Engines that an instance takes.
    #[serde(flatten)]
    pub engines: Engines,
}

/// Where an instance stands, in memory slices: NVML's `nvmlGpuInstancePlacement_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// First memory slice.
    pub start: u8,
    /// Number of memory slices.
    pub size: u8,
}

impl MigTable {
    /// The profile of this name.
    pub fn profile(&self, name: &MigProfile) -> Option<&GiProfile> {
        self.profiles.iter().find(|profile| profile.name == *name)
    }
}

impl Engines {
    /// The engines of both together.
    pub fn plus(self, other: Self) -> Self {
        let add = u8::saturating_add;
        Self {
            ce: add(self.ce, other.ce),
            dec: add(self.dec, other.dec),
            enc: add(self.enc, other.enc),
            jpeg: add(self.jpeg, other.jpeg),
            ofa: add(self.ofa, other.ofa),
        }
    }

    /// True if no count is above the other's.
    pub fn fits_in(self, totals: Self) -> bool {
        self.ce <= totals.ce
            && self.dec <= totals.dec
            && self.enc <= totals.enc
            && self.jpeg <= totals.jpeg
            && self.ofa <= totals.ofa
    }
}
