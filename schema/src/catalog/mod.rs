//! The hardware catalog: GPUs, MIG tables and systems, each fact with its source.
//!
//! The rows are JSON under `schema/catalog/`, one file a family, embedded and parsed once. A row
//! names its sources and how sure it is; a field that differs from its row says so itself
//! ([`Fact`]). An absent value is never zero.

mod fact;
mod rows;

pub use fact::{Confidence, Fact};
pub use rows::{
    Architecture, Cpu, FabricManager, Gpu, Imex, MigSupport, MigTableRow, NvLink, Pcie, PowerLimit,
    System, Tflops,
};

use indexmap::IndexMap;

use crate::name::{GpuName, SystemName};

/// Everything that is known about hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    /// GPU products by key.
    pub gpus: IndexMap<GpuName, Gpu>,
    /// Systems by key.
    pub systems: IndexMap<SystemName, System>,
    /// Public documents that rows cite, by key.
    pub sources: IndexMap<String, String>,
    mig_tables: IndexMap<String, MigTableRow>,
}

/// A catalog file that does not parse: a bug of ours, since the files are embedded.
#[derive(Debug, thiserror::Error)]
#[error("catalog file {file}: {error}")]
pub struct CatalogError {
    file: &'static str,
    #[source]
    error: serde_json::Error,
}

macro_rules! embedded {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../catalog/", $path)))),+]
    };
}

const SOURCES: &str = include_str!("../../catalog/sources.json");
const GPUS: &[(&str, &str)] = embedded!["gpus/hopper.json", "gpus/ada.json"];
const MIG: &[(&str, &str)] = embedded!["mig/hopper.json"];
const SYSTEMS: &[(&str, &str)] = embedded!["systems/nvidia-dgx.json", "systems/pcie.json"];

impl Catalog {
    /// The catalog that stands in the binary.
    ///
    /// # Errors
    /// An embedded file is not what its type says, which a test excludes.
    pub fn embedded() -> Result<Self, CatalogError> {
        let sources = serde_json::from_str(SOURCES)
            .map_err(|error| CatalogError { file: "sources.json", error })?;
        Ok(Self {
            gpus: keyed(rows::<Gpu>(GPUS)?, |gpu| gpu.key.clone()),
            systems: keyed(rows::<System>(SYSTEMS)?, |system| system.key.clone()),
            mig_tables: keyed(rows::<MigTableRow>(MIG)?, |table| table.key.clone()),
            sources,
        })
    }

    /// The MIG table of this key.
    pub fn mig_table(&self, key: &str) -> Option<&MigTableRow> {
        self.mig_tables.get(key)
    }

    /// Every MIG table.
    pub fn mig_tables(&self) -> impl Iterator<Item = &MigTableRow> {
        self.mig_tables.values()
    }
}

fn rows<T: serde::de::DeserializeOwned>(
    files: &[(&'static str, &str)],
) -> Result<Vec<T>, CatalogError> {
    let mut all = Vec::new();
    for (file, text) in files {
        let rows: Vec<T> =
            serde_json::from_str(text).map_err(|error| CatalogError { file, error })?;
        all.extend(rows);
    }
    Ok(all)
}

fn keyed<K: std::hash::Hash + Eq, T>(rows: Vec<T>, key: impl Fn(&T) -> K) -> IndexMap<K, T> {
    rows.into_iter().map(|row| (key(&row), row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_cites_sources_that_exist() {
        let catalog = Catalog::embedded().unwrap();
        let cited = catalog
            .gpus
            .values()
            .flat_map(Gpu::cited)
            .chain(catalog.systems.values().flat_map(|s| &s.source))
            .chain(catalog.mig_tables().flat_map(|t| &t.source));
        for source in cited {
            assert!(catalog.sources.contains_key(source), "{source}");
        }
    }

    #[test]
    fn keys_and_device_ids_are_unique_and_references_hold() {
        let catalog = Catalog::embedded().unwrap();
        let mut ids: Vec<&String> = catalog.gpus.values().flat_map(|g| &g.pci_device_ids).collect();
        ids.sort();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]));
        for gpu in catalog.gpus.values() {
            if let Some(table) = &gpu.mig.table {
                let table = catalog.mig_table(table).expect("table exists");
                assert!(table.gpus.contains(&gpu.key), "{}", gpu.key);
            }
        }
        for system in catalog.systems.values() {
            assert!(catalog.gpus.contains_key(&system.gpu), "{}", system.key);
        }
    }

    #[test]
    fn starts_stay_inside_the_gpu_and_counts_follow_from_starts_and_engines() {
        let catalog = Catalog::embedded().unwrap();
        for row in catalog.mig_tables() {
            for profile in &row.table.profiles {
                let end = |start: &u8| start + profile.memory_slices;
                assert!(profile.starts.iter().all(|s| end(s) <= row.table.memory_slices));
                let demand = |count| crate::mig::Demand { profile, count };
                let most = u32::from(profile.max_count);
                assert!(crate::mig::place(&row.table, &[demand(most)]).is_ok(), "{}", profile.name);
                assert!(crate::mig::place(&row.table, &[demand(most + 1)]).is_err());
            }
        }
    }

    #[test]
    fn profile_names_follow_from_the_total_memory() {
        // fraction = ceil(8 × instance / total) / 8; GB = round half away(fraction × ceil(total GiB)).
        let catalog = Catalog::embedded().unwrap();
        for row in catalog.mig_tables() {
            for gpu in &row.gpus {
                let total_mib = catalog.gpus[gpu].nvml_total_mib.value.unwrap();
                let total_gb = total_mib.div_ceil(1024);
                for profile in &row.table.profiles {
                    let eighths =
                        u64::from(profile.memory_slices) * 8 / u64::from(row.table.memory_slices);
                    let gb = (eighths * total_gb * 2 + 8) / 16;
                    assert_eq!(u64::from(profile.name.label_gb), gb, "{} on {gpu}", profile.name);
                    if let Some(memory) = profile.memory_mib {
                        assert_eq!((memory * 8).div_ceil(total_mib), eighths, "{}", profile.name);
                    }
                }
            }
        }
    }
}
