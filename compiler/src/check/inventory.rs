//! Inventories against the rest of the fleet.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};

use crate::lower::Lowered;

/// `inventory/node-missing`: the rows name a pool, but not all of its nodes.
pub fn node_missing(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, missing) in &lowered.loose.missing {
        let nodes = ItemPath::item("pool", name).child("nodes");
        if lowered.is_poisoned(&nodes) {
            continue;
        }
        let (has, them) = if missing.len() == 1 { ("has", "it") } else { ("have", "them") };
        let title = format!("`{missing}` of pool `{name}` {has} no row in the inventory");
        found.push(
            Diagnostic::new(&rules::INVENTORY_NODE_MISSING, title)
                .at(nodes, "the pool's nodes")
                .note("other rows name this pool, so it seems complete")
                .help(format!("add {them} to the inventory, or take {them} out of `nodes`")),
        );
    }
}

/// `inventory/node-without-pool`: rows about nodes that are in no pool.
pub fn node_without_pool(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let nodes = &lowered.loose.without_pool;
    let Some(row) = lowered.loose.first_without_pool else { return };
    // A pool that could not be lowered may be theirs.
    if lowered.is_any_poisoned("pool") {
        return;
    }
    let are = if nodes.len() == 1 { "is" } else { "are" };
    let title = format!("`{nodes}` of the inventory {are} in no pool");
    found.push(
        Diagnostic::new(&rules::INVENTORY_NODE_WITHOUT_POOL, title)
            .at(row, "the first such row")
            .at(ItemPath::default().child("inventory"), "read here")
            .help("name the pool in column `pool`, or leave the row out"),
    );
}
