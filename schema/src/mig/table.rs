//! What a GPU product can be cut into: its profiles, their sizes, and where each may start.

use std::cmp::{Ordering, Reverse};

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

/// Counts of the engines beside the SMs. None where nobody has read a count: it binds no layout,
/// and it is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Engines {
    /// Copy engines.
    pub ce: Option<u8>,
    /// Video decoders (NVDEC).
    pub dec: Option<u8>,
    /// Video encoders (NVENC).
    pub enc: Option<u8>,
    /// JPEG decoders.
    pub jpeg: Option<u8>,
    /// Optical flow accelerators.
    pub ofa: Option<u8>,
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
    /// Streaming multiprocessors of an instance; none where nobody has read them.
    pub sm: Option<u16>,
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

    /// The profile of this id, as NVML reports it of an instance. Names change with the driver,
    /// ids do not.
    pub fn profile_by_id(&self, id: u32) -> Option<&GiProfile> {
        self.profiles.iter().find(|profile| profile.id == id)
    }

    /// The profile nearest to a name that the GPU does not have: of those with as many compute slices the
    /// one nearest in size, then one with the same attributes. None if none has so many.
    pub fn nearest(&self, name: &MigProfile) -> Option<&GiProfile> {
        let same = self.profiles.iter().filter(|profile| profile.name.slices == name.slices);
        same.min_by_key(|profile| {
            let other = &profile.name;
            (other.label_gb.abs_diff(name.label_gb), other.attributes != name.attributes)
        })
    }

    /// Every profile in canonical order: [`GiProfile::canonical_cmp`].
    pub fn canonical(&self) -> Vec<&GiProfile> {
        let mut profiles: Vec<&GiProfile> = self.profiles.iter().collect();
        profiles.sort_by(|a, b| a.canonical_cmp(b));
        profiles
    }
}

impl GiProfile {
    /// Compute slices of an instance.
    pub fn compute_slices(&self) -> u8 {
        self.name.slices
    }

    /// The order in which lists name profiles and the search places them: most memory slices
    /// first, then as [`MigProfile::canonical_cmp`].
    pub fn canonical_cmp(&self, other: &Self) -> Ordering {
        Reverse(self.memory_slices)
            .cmp(&Reverse(other.memory_slices))
            .then_with(|| self.name.canonical_cmp(&other.name))
    }
}

impl Engines {
    /// The engines of both together. What is known of one alone counts alone.
    pub fn plus(self, other: Self) -> Self {
        let add = |a: Option<u8>, b: Option<u8>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (one, None) | (None, one) => one,
        };
        Self {
            ce: add(self.ce, other.ce),
            dec: add(self.dec, other.dec),
            enc: add(self.enc, other.enc),
            jpeg: add(self.jpeg, other.jpeg),
            ofa: add(self.ofa, other.ofa),
        }
    }

    /// True if no count is above the other's, as far as both are known.
    pub fn fits_in(self, totals: Self) -> bool {
        let fits = |own: Option<u8>, total: Option<u8>| {
            own.zip(total).is_none_or(|(own, total)| own <= total)
        };
        fits(self.ce, totals.ce)
            && fits(self.dec, totals.dec)
            && fits(self.enc, totals.enc)
            && fits(self.jpeg, totals.jpeg)
            && fits(self.ofa, totals.ofa)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_count_that_nobody_has_read_binds_nothing() {
        let one = Engines { dec: Some(4), ..Engines::default() };
        let totals = Engines { ce: Some(4), dec: Some(7), ..Engines::default() };
        assert!(one.fits_in(totals));
        assert!(!one.plus(one).fits_in(totals));
        assert_eq!(one.plus(Engines { ce: Some(2), ..Engines::default() }).ce, Some(2));
    }
}
