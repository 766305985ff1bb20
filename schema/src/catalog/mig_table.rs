//! MIG tables: what a GPU can be cut into, with sources and doubts.
//!
//! The geometry alone is [`MigTable`], which the search for placements reads. Sources of the form:
//! NVIDIA MIG User Guide, "Supported MIG Profiles"; NVIDIA/mig-parted `config-default.yaml`.

use indexmap::IndexMap;
use serde::Deserialize;

use super::{Confidence, Fact};
use crate::mig::{Engines, GiProfile, MigProfile, MigTable};
use crate::name::GpuName;
use crate::version::Version;

/// A MIG table with its sources.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Row")]
pub struct MigTableRow {
    /// Key.
    pub key: String,
    /// GPUs that are cut so.
    pub gpus: Vec<GpuName>,
    /// The geometry.
    pub table: MigTable,
    /// What the geometry leaves out, for each profile.
    pub facts: IndexMap<MigProfile, ProfileFacts>,
    /// Multiprocessors of a compute slice; profiles may have more.
    pub sm_per_compute_slice: Option<u16>,
    /// How sure starts and sizes are.
    pub placements: Basis,
    /// How sure profile ids are.
    pub profile_ids: Basis,
    /// Names that other drivers give to the same profiles.
    pub name_variants: Vec<NameVariant>,
    /// Compute instances that a GPU instance can be cut into.
    pub compute_instances: Vec<ComputeInstances>,
    /// Keys of the row's sources.
    pub source: Vec<String>,
    /// Confidence of every field that states none.
    pub confidence: Confidence,
    /// Doubts and remarks.
    pub note: Option<String>,
}

/// What is known about a profile beside the geometry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFacts {
    /// Confidence of engines and multiprocessors, if it is not the row's.
    pub engine_confidence: Option<Confidence>,
    /// Every memory size that a listing showed, in MiB, rounded down.
    pub memory_mib_seen: Vec<u64>,
    /// The first driver that has the profile, if later than the GPU's own.
    pub min_driver: Fact<Version>,
}

/// Why something is held to be so.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Basis {
    /// How sure it is.
    pub confidence: Confidence,
    /// What it rests on.
    pub basis: String,
}

/// Another set of names for the profiles of a table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameVariant {
    /// Profile id to name.
    pub names: IndexMap<u32, MigProfile>,
    /// Where it was seen.
    pub source: Vec<String>,
}

/// Compute instances of one size of GPU instance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputeInstances {
    /// Compute slices of the whole GPU: 7, or 4 on A30 and RTX PRO 6000.
    pub gpu_compute_slices: u8,
    /// Compute slices of the GPU instance.
    pub gi_slices: u8,
    /// What it can be cut into.
    pub profiles: Vec<CiProfile>,
    /// Keys of the row's sources.
    pub source: Vec<String>,
    /// Confidence of the row.
    pub confidence: Confidence,
}

/// A compute instance profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CiProfile {
    /// Compute slices, the `c` of a name.
    pub slices: u8,
    /// The profile id that `nvidia-smi mig -cci` takes.
    pub id: u32,
    /// How many fit in one GPU instance at most.
    pub max_count: u8,
    /// True if `-C` makes this one.
    pub default: bool,
}

impl MigTableRow {
    /// A table that a fleet states of its own GPU: nothing is known of it but the geometry.
    pub fn stated(gpu: GpuName, table: MigTable) -> Self {
        let known = || ProfileFacts {
            engine_confidence: None,
            memory_mib_seen: Vec::new(),
            min_driver: Fact::default(),
        };
        let basis =
            || Basis { confidence: Confidence::Sure, basis: "stated by the fleet".to_owned() };
        Self {
            key: gpu.to_string(),
            gpus: vec![gpu],
            facts: table.profiles.iter().map(|profile| (profile.name.clone(), known())).collect(),
            table,
            sm_per_compute_slice: None,
            placements: basis(),
            profile_ids: basis(),
            name_variants: Vec::new(),
            compute_instances: Vec::new(),
            source: Vec::new(),
            confidence: Confidence::Sure,
            note: None,
        }
    }

    /// The profile of this name, or of a name that another driver gives it.
    pub fn profile(&self, name: &MigProfile) -> Option<&GiProfile> {
        self.table.profile(name).or_else(|| {
            let named = |variant: &NameVariant| {
                variant.names.iter().find(|(_, other)| *other == name).map(|(id, _)| *id)
            };
            let id = self.name_variants.iter().find_map(named)?;
            self.table.profiles.iter().find(|profile| profile.id == id)
        })
    }

    /// What GPU instances of a profile can be cut into.
    pub fn compute_instances_of(&self, profile: &GiProfile) -> &[CiProfile] {
        let row = self.compute_instances.iter().find(|row| row.gi_slices == profile.name.slices);
        row.map_or(&[], |row| &row.profiles)
    }
}

/// A table as it stands in JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    key: String,
    gpus: Vec<GpuName>,
    memory_slices: u8,
    compute_slices: u8,
    engine_totals: Totals,
    sm_per_compute_slice: Option<u16>,
    profiles: Vec<Profile>,
    placements: Basis,
    profile_ids: Basis,
    #[serde(default)]
    name_variants: Vec<NameVariant>,
    source: Vec<String>,
    confidence: Confidence,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Totals {
    ce: Option<u8>,
    dec: Option<u8>,
    enc: Option<u8>,
    jpeg: Option<u8>,
    ofa: Option<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    name: MigProfile,
    id: u32,
    nvml: String,
    memory_slices: u8,
    max_count: u8,
    starts: Vec<u8>,
    memory_mib: Option<u64>,
    #[serde(default)]
    memory_mib_seen: Vec<u64>,
    sm: Option<u16>,
    ce: Option<u8>,
    dec: Option<u8>,
    enc: Option<u8>,
    jpeg: Option<u8>,
    ofa: Option<u8>,
    #[serde(default)]
    engine_confidence: Option<Confidence>,
    #[serde(default)]
    min_driver: Fact<Version>,
}

impl From<Row> for MigTableRow {
    fn from(row: Row) -> Self {
        let Totals { ce, dec, enc, jpeg, ofa } = row.engine_totals;
        let mut facts = IndexMap::with_capacity(row.profiles.len());
        let mut profiles = Vec::with_capacity(row.profiles.len());
        for profile in row.profiles {
            let (geometry, known) = split(profile);
            facts.insert(geometry.name.clone(), known);
            profiles.push(geometry);
        }
        Self {
            key: row.key,
            gpus: row.gpus,
            table: MigTable {
                memory_slices: row.memory_slices,
                compute_slices: row.compute_slices,
                engine_totals: Engines { ce, dec, enc, jpeg, ofa },
                profiles,
            },
            facts,
            sm_per_compute_slice: row.sm_per_compute_slice,
            placements: row.placements,
            profile_ids: row.profile_ids,
            name_variants: row.name_variants,
            compute_instances: Vec::new(),
            source: row.source,
            confidence: row.confidence,
            note: row.note,
        }
    }
}

/// Splits a profile into its geometry and what the geometry has no room for.
fn split(profile: Profile) -> (GiProfile, ProfileFacts) {
    let Profile { ce, dec, enc, jpeg, ofa, .. } = profile;
    let facts = ProfileFacts {
        engine_confidence: profile.engine_confidence,
        memory_mib_seen: match profile.memory_mib_seen.is_empty() {
            true => profile.memory_mib.into_iter().collect(),
            false => profile.memory_mib_seen,
        },
        min_driver: profile.min_driver,
    };
    let geometry = GiProfile {
        name: profile.name,
        id: profile.id,
        nvml: profile.nvml,
        memory_slices: profile.memory_slices,
        max_count: profile.max_count,
        starts: profile.starts,
        memory_mib: profile.memory_mib,
        sm: profile.sm,
        engines: Engines { ce, dec, enc, jpeg, ofa },
    };
    (geometry, facts)
}
