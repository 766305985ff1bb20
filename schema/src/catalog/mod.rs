//! The hardware catalog: GPUs, MIG tables, systems, racks, cloud shapes, prices, each fact with its
//! source.
//!
//! The rows are JSON under `schema/catalog/`, one file a family, embedded and parsed once in a
//! process. A row names its sources and how sure it is; a field that differs from its row says so
//! itself ([`Fact`]). An absent value is not known, never zero. Integers only: decimals of the
//! sources are scaled, and the unit is in the field's name.

mod affinity;
mod cloud;
mod fact;
mod files;
mod gpu;
mod link;
mod mig_table;
mod price;
mod rules;
mod system;
#[cfg(test)]
mod tests;

pub use affinity::{AffinityMap, CpuList, CpuListError, GpuAffinity};
pub use cloud::{Cloud, CloudShape, CpuVendor, NicKind, ShapeNics};
pub use fact::{Confidence, Fact};
pub use files::CatalogError;
pub use gpu::{
    Architecture, DenseGflops, FabricManager, Family, Gpu, Imex, MigSupport, NvLink, Pcie,
    PowerLimit,
};
pub use link::{Direction, LinkEnd, LinkRate};
pub use mig_table::{Basis, CiProfile, ComputeInstances, MigTableRow, NameVariant, ProfileFacts};
pub use price::{
    Currency, InterruptionRate, ListPrice, PercentRange, Price, PriceUnit, Spot, SpotDiscount,
    SpotNotice,
};
pub use rules::{MemoryShare, MigProduct, MigRules, NvmlNumbers, Rules, SinceHopper};
pub use system::{Cpu, CpuArch, LocalDisk, MemoryUnit, NicGroup, Nics, RackProduct, System};

use std::sync::OnceLock;

use indexmap::IndexMap;

use crate::name::{GpuName, SystemName};

/// Everything that is known about hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    /// GPU products by key.
    pub gpus: IndexMap<GpuName, Gpu>,
    /// Systems by key: servers and trays. [`Catalog::system`] finds cloud shapes too.
    pub systems: IndexMap<SystemName, System>,
    /// Rack products by key.
    pub racks: IndexMap<SystemName, RackProduct>,
    /// Cloud shapes by key.
    pub cloud_shapes: IndexMap<SystemName, CloudShape>,
    /// Products that have MIG but no GPU row or no table.
    pub mig_products: Vec<MigProduct>,
    /// Affinity maps.
    pub affinity: Vec<AffinityMap>,
    /// Rates of links.
    pub links: Vec<LinkRate>,
    /// Prices of what is not an instance.
    pub prices: Vec<ListPrice>,
    /// Spare capacity.
    pub spot: Spot,
    /// What holds for all GPUs.
    pub rules: Rules,
    /// Public documents that rows cite, by key.
    pub sources: IndexMap<String, String>,
    mig_tables: IndexMap<String, MigTableRow>,
}

impl Catalog {
    /// The catalog that stands in the binary, parsed at the first call.
    ///
    /// # Errors
    /// An embedded file is not what its type says, which a test excludes.
    pub fn embedded() -> Result<&'static Self, CatalogError> {
        static CATALOG: OnceLock<Catalog> = OnceLock::new();
        if let Some(catalog) = CATALOG.get() {
            return Ok(catalog);
        }
        let catalog = Self::parse()?;
        Ok(CATALOG.get_or_init(|| catalog))
    }

    fn parse() -> Result<Self, CatalogError> {
        let compute: Vec<ComputeInstances> = files::rows(files::MIG_COMPUTE)?;
        let mut tables: Vec<MigTableRow> = files::rows(files::MIG_TABLES)?;
        for row in &mut tables {
            let slices = row.table.compute_slices;
            let alike = compute.iter().filter(|ci| ci.gpu_compute_slices == slices);
            row.compute_instances = alike.cloned().collect();
        }
        let shapes: Vec<CloudShape> = files::rows(files::CLOUDS)?;
        Ok(Self {
            gpus: files::keyed(files::rows(files::GPUS)?, |gpu: &Gpu| gpu.key.clone()),
            systems: files::keyed(files::rows(files::SYSTEMS)?, |s: &System| s.key.clone()),
            racks: files::keyed(files::rows(files::RACKS)?, |r: &RackProduct| r.key.clone()),
            cloud_shapes: files::keyed(shapes, |shape| shape.key.clone()),
            mig_products: files::rows(files::MIG_PRODUCTS)?,
            affinity: files::rows(files::AFFINITY)?,
            links: files::rows(files::LINKS)?,
            prices: files::rows(files::PRICES)?,
            spot: files::document(files::SPOT)?,
            rules: files::document(files::RULES)?,
            sources: files::document(files::SOURCES)?,
            mig_tables: files::keyed(tables, |table| table.key.clone()),
        })
    }

    /// The row of this key as it stands in the catalog's files, with what it is: `gpu`, `mig-table`,
    /// `system`, `rack` or `shape`. For display: parses the files anew.
    pub fn raw(&self, key: &str) -> Option<(&'static str, serde_json::Value)> {
        let lower = key.to_ascii_lowercase();
        let kinds = [
            ("gpu", files::GPUS),
            ("mig-table", files::MIG_TABLES),
            ("system", files::SYSTEMS),
            ("rack", files::RACKS),
            ("shape", files::CLOUDS),
        ];
        kinds.into_iter().find_map(|(kind, files)| {
            let rows: Vec<serde_json::Value> = files::rows(files).ok()?;
            let row = rows.into_iter().find(|row| row.get("key").is_some_and(|k| *k == lower))?;
            Some((kind, row))
        })
    }

    /// The GPU of this key.
    pub fn gpu(&self, key: &str) -> Option<&Gpu> {
        self.gpus.get(key)
    }

    /// The system of this key: a server, a tray or a cloud shape. Shapes are found however their
    /// letters are cased, as clouds differ in that.
    pub fn system(&self, key: &str) -> Option<System> {
        let shape = || self.cloud_shape(key).map(CloudShape::to_system);
        self.systems.get(key).cloned().or_else(shape)
    }

    /// Keys of everything that [`Catalog::system`] finds.
    pub fn system_keys(&self) -> impl Iterator<Item = &SystemName> {
        self.systems.keys().chain(self.cloud_shapes.keys())
    }

    /// Keys of the systems and shapes that have a GPU product, or one of a product line: `h100` is the
    /// line of `h100-sxm5-80gb`.
    pub fn systems_with<'a>(&'a self, gpu: &'a str) -> impl Iterator<Item = &'a SystemName> {
        let is = move |name: &GpuName| {
            name.as_str()
                .strip_prefix(gpu)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let systems = self.systems.values().filter(move |system| is(&system.gpu)).map(|s| &s.key);
        systems.chain(self.cloud_shapes.values().filter(move |s| is(&s.gpu)).map(|s| &s.key))
    }

    /// The cloud shape of this key, `<cloud>/<shape>` in any case.
    pub fn cloud_shape(&self, key: &str) -> Option<&CloudShape> {
        self.cloud_shapes.get(key.to_ascii_lowercase().as_str())
    }

    /// The cloud shape of this name without its cloud, in any case: what someone means who left
    /// the cloud out.
    pub fn shape_named(&self, name: &str) -> Option<&CloudShape> {
        let named = |shape: &&CloudShape| {
            let mut names = std::iter::once(&shape.shape).chain(&shape.also);
            names.any(|other| other.eq_ignore_ascii_case(name))
        };
        self.cloud_shapes.values().find(named)
    }

    /// The rack product of this key.
    pub fn rack(&self, key: &str) -> Option<&RackProduct> {
        self.racks.get(key)
    }

    /// The MIG table of this key.
    pub fn mig_table(&self, key: &str) -> Option<&MigTableRow> {
        self.mig_tables.get(key)
    }

    /// Every MIG table.
    pub fn mig_tables(&self) -> impl Iterator<Item = &MigTableRow> {
        self.mig_tables.values()
    }

    /// The MIG table of a GPU.
    pub fn mig_table_of<'a>(&'a self, gpu: &'a Gpu) -> Option<&'a MigTableRow> {
        match &gpu.mig.own {
            Some(own) => Some(own),
            None => self.mig_table(gpu.mig.table.as_ref()?),
        }
    }

    /// What is known of a product that has MIG but no table: of those whose memory is the GPU's, and
    /// whose words all stand in its names, the one with the most words.
    pub fn mig_product_of(&self, gpu: &Gpu) -> Option<&MigProduct> {
        let names: Vec<&str> = gpu.nvml_names().map(String::as_str).collect();
        let text = format!("{} {} {}", gpu.key, names.join(" "), gpu.form_factor);
        let text = text.to_ascii_lowercase();
        let fits = |product: &&MigProduct| {
            product.gpu.as_ref() == Some(&gpu.key)
                || (product.has_memory_of(gpu) && product.words().all(|word| text.contains(&word)))
        };
        self.mig_products.iter().filter(fits).max_by_key(|product| product.words().count())
    }

    /// The affinity map that was seen on a system.
    pub fn affinity_of(&self, system: &str) -> Option<&AffinityMap> {
        self.affinity.iter().find(|map| map.systems.iter().any(|key| key.as_str() == system))
    }

    /// What a cloud says before it takes a spot instance away.
    pub fn spot_notice(&self, cloud: Cloud) -> Option<&SpotNotice> {
        self.spot.notices.iter().find(|notice| notice.cloud == cloud)
    }
}
