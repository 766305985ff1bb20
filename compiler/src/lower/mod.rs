//! Lowering: from decoded items to the Intent.
//!
//! Names are resolved, systems looked up, MIG layouts placed and node classes computed here, once;
//! rules and targets read the result. An item that cannot be lowered is left out and its path
//! poisoned, so that one cause stays one diagnostic.

mod classes;
mod clusters;
mod fleet;
mod inventory;
mod mig;
mod mig_table;
mod names;
mod origin;
mod policies;
mod pools;
mod systems;
mod teams;
mod tiers;
mod topology;

use std::collections::BTreeSet;
use std::ops::Bound;

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::{Catalog, Gpu, Nics};
use fleetc_schema::diag::{Diagnostic, Span};
use fleetc_schema::intent::Intent;
use fleetc_schema::name::PoolName;
use fleetc_schema::topology::Topology;
use fleetc_schema::units::Watts;
use indexmap::IndexMap;

use crate::language::{Cx, kinds};
pub use inventory::{Loose, Rows};
pub use mig::{MissingProfile, missing_profile};
use names::Names;
pub use names::quoted;
pub use origin::Origin;
pub use topology::{FabricItems, Items};

/// The lowered fleet and what is known about its text.
#[derive(Debug)]
pub struct Lowered {
    /// The Intent; complete only if no finding is an error.
    pub intent: Intent,
    /// The GPU product of each pool that has GPUs: the catalog's, or the fleet's own.
    pub gpus: IndexMap<PoolName, Gpu>,
    /// The network cards of a node of each pool, where they are known.
    pub nics: IndexMap<PoolName, Nics>,
    /// The power of a node of each pool, where it is known.
    pub power: IndexMap<PoolName, Watts>,
    /// Where things are: built from the Intent, once.
    pub topology: Topology,
    /// The items that racks, switches and attachments were written in.
    pub items: Items,
    /// Where items and values are written.
    pub places: IndexMap<ItemPath, Span>,
    /// Where the values of the fleet's own hardware come from.
    pub origins: IndexMap<ItemPath, Vec<Origin>>,
    /// Paths of what could not be read or lowered.
    pub poisoned: BTreeSet<ItemPath>,
    /// What the rows of inventories leave open.
    pub loose: Loose,
    /// Findings so far.
    pub diagnostics: Vec<Diagnostic>,
}

impl Lowered {
    /// True if this item, something in it, or something around it could not be lowered: a rule that
    /// depends on it stays silent.
    pub fn is_poisoned(&self, path: &ItemPath) -> bool {
        let inside = |mark: &str| {
            let first = format!("{path}{mark}");
            let from = (Bound::Included(first.as_str()), Bound::Unbounded);
            self.poisoned
                .range::<str, _>(from)
                .next()
                .is_some_and(|p| p.as_str().starts_with(&first))
        };
        let around = |path: &str| self.poisoned.contains(path);
        let ends = path.as_str().match_indices(['/', '[']).map(|(at, _)| at);
        inside("/")
            || inside("[")
            || around(path.as_str())
            || ends.filter_map(|end| path.as_str().get(..end)).any(around)
    }

    /// True if an item of this top-level kind, or something in one, could not be read or lowered, or one
    /// may stand under a misspelt word: then nothing can be said about all of them.
    pub fn is_any_poisoned(&self, kind: &str) -> bool {
        let kind = ItemPath::default().child(kind);
        self.poisoned.iter().any(|path| path.is_within(&kind))
    }
}

/// Lowers a spec. Nodes that only its inventories state are filled in.
pub fn lower(
    spec: &mut kinds::Spec,
    catalog: &Catalog,
    start: Span,
    rows: Rows<'_>,
    mut cx: Cx,
) -> Lowered {
    let names = Names::declared(spec);
    let mut loose = inventory::nodes(spec, &names, rows, &mut cx);
    let spec = &*spec;
    let fleet = fleet::lower(spec, start, &mut cx);
    let systems = systems::lower(spec, catalog, &mut cx);
    let mut items = Items::default();
    let mut racks = topology::racks(spec, &names, &systems, rows, &mut items, &mut cx);
    inventory::racks(spec, &mut racks, &mut items, rows, &mut cx);
    let mut fabrics = topology::fabrics(spec, &mut items, &mut cx);
    inventory::attachments(spec, &mut fabrics, &mut items, rows, &mut cx);
    let mut pools = pools::lower(spec, catalog, &systems, &names, &mut cx);
    inventory::overrides(&mut pools, rows, &mut cx);
    loose.without_pool(&pools, rows);
    let clusters = clusters::lower(spec, &names, &pools, &mut cx);
    let policies = policies::lower(spec, &names, &mut cx);
    let classes = classes::lower(&fleet, &pools, &clusters, &policies, &fabrics, &mut cx);
    let monitoring = fleet::monitoring(spec, &names, &mut cx);
    let product = |(name, pool): (&PoolName, &pools::LoweredPool)| {
        Some((name.clone(), pool.system.gpu.clone()?))
    };
    let gpus = pools.iter().filter_map(product).collect();
    let cards = |(name, pool): (&PoolName, &pools::LoweredPool)| {
        Some((name.clone(), pool.system.nics.clone()?))
    };
    let nics = pools.iter().filter_map(cards).collect();
    let power = pools.iter().filter_map(|(name, pool)| Some((name.clone(), pool.system.power?)));
    let power = power.collect();
    let mut intent = Intent {
        fleet,
        clusters,
        sites: topology::sites(spec),
        fabrics,
        racks,
        pools: pools.into_iter().map(|(name, pool)| (name, pool.pool)).collect(),
        classes,
        policies,
        tiers: tiers::lower(spec),
        teams: IndexMap::new(),
        workloads: IndexMap::new(),
        monitoring,
    };
    intent.teams = teams::lower(spec, &names, &intent, &mut cx);
    intent.workloads = teams::workloads(spec, &names, &intent, &mut cx);
    let Cx { diagnostics, places, poisoned, .. } = cx;
    Lowered {
        topology: Topology::of(&intent),
        intent,
        gpus,
        nics,
        power,
        items,
        places,
        origins: systems.origins,
        poisoned,
        loose,
        diagnostics,
    }
}
