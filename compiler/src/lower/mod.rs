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

use std::collections::BTreeSet;

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::Catalog;
use fleetc_schema::diag::{Diagnostic, Span};
use fleetc_schema::intent::Intent;
use indexmap::IndexMap;

use crate::language::{Cx, kinds};
use names::Names;

/// The lowered fleet and what is known about its text.
#[derive(Debug)]
pub struct Lowered {
    /// The Intent; complete only if no finding is an error.
    pub intent: Intent,
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
        let inside = |outer: &str, inner: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '[']))
        };
        self.poisoned
            .iter()
            .any(|p| inside(p.as_str(), path.as_str()) || inside(path.as_str(), p.as_str()))
    }
}

/// Lowers a spec.
pub fn lower(spec: &kinds::Spec, catalog: &Catalog, start: Span, mut cx: Cx) -> Lowered {
    let names = Names::declared(spec);
    let fleet = fleet::lower(spec, start, &mut cx);
    let systems = systems::lower(spec, catalog, &mut cx);
    let racks = pools::racks(spec, &mut cx);
    let pools = pools::lower(spec, catalog, &systems, &names, &mut cx);
    let clusters = clusters::lower(spec, &names, &pools, &mut cx);
    let policies = policies::lower(spec, &names, &mut cx);
    let classes = classes::lower(&fleet, &pools, &clusters, &policies, &mut cx);
    let mut intent = Intent {
        fleet,
        clusters,
        racks,
        pools: pools.into_iter().map(|(name, pool)| (name, pool.pool)).collect(),
        classes,
        policies,
        teams: IndexMap::new(),
        workloads: IndexMap::new(),
        monitoring: fleet::monitoring(spec),
    };
    intent.teams = teams::lower(spec, &names, &intent, &mut cx);
    intent.workloads = teams::workloads(spec, &names, &intent, &mut cx);
    Lowered { intent, places: cx.places, poisoned: cx.poisoned, diagnostics: cx.diagnostics }
}
