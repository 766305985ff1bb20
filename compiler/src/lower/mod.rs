//! Lowering: from decoded items to the Intent.
//!
//! Names are resolved, systems looked up, MIG layouts placed and node classes computed here, once;
//! rules and targets read the result. An item that cannot be lowered is left out and its path
//! poisoned, so that one cause stays one diagnostic.

mod classes;
mod clusters;
mod fleet;
mod mig;
mod names;
mod policies;
mod pools;
mod systems;
mod teams;
mod tiers;
mod topology;

use std::collections::BTreeSet;

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::{Catalog, Gpu, Nics};
use fleetc_schema::diag::{Diagnostic, Span};
use fleetc_schema::intent::Intent;
use fleetc_schema::name::PoolName;
use fleetc_schema::topology::Topology;
use fleetc_schema::units::Watts;
use indexmap::IndexMap;

use crate::language::{Cx, kinds};
use names::Names;
pub use names::quoted;
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
    /// Paths of what could not be read or lowered.
    pub poisoned: BTreeSet<ItemPath>,
    /// Findings so far.
    pub diagnostics: Vec<Diagnostic>,
}

impl Lowered {
    /// True if this item, something in it, or something around it could not be lowered: a rule that
    /// depends on it stays silent.
    pub fn is_poisoned(&self, path: &ItemPath) -> bool {
        self.poisoned.iter().any(|p| p.is_within(path) || path.is_within(p))
    }
}

/// Lowers a spec.
pub fn lower(spec: &kinds::Spec, catalog: &Catalog, start: Span, mut cx: Cx) -> Lowered {
    let names = Names::declared(spec);
    let fleet = fleet::lower(spec, start, &mut cx);
    let systems = systems::lower(spec, catalog, &mut cx);
    let mut items = Items::default();
    let racks = topology::racks(spec, &names, &systems, &mut items, &mut cx);
    let fabrics = topology::fabrics(spec, &mut items, &mut cx);
    let pools = pools::lower(spec, catalog, &systems, &names, &mut cx);
    let clusters = clusters::lower(spec, &names, &pools, &mut cx);
    let policies = policies::lower(spec, &names, &mut cx);
    let classes = classes::lower(&fleet, &pools, &clusters, &policies, &mut cx);
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
    Lowered {
        topology: Topology::of(&intent),
        intent,
        gpus,
        nics,
        power,
        items,
        places: cx.places,
        poisoned: cx.poisoned,
        diagnostics: cx.diagnostics,
    }
}
