//! Who owns which node.

use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::{Hostlist, ItemPath};

use crate::lower::Lowered;

/// `ownership/unowned`: nodes of a split pool that no part names.
pub fn unowned(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, pool) in &lowered.intent.pools {
        let path = ItemPath::item("pool", name);
        let split = path.child("split");
        if lowered.is_poisoned(&split) || lowered.is_poisoned(&path.child("nodes")) {
            continue;
        }
        let owned = pool.parts.values().fold(Hostlist::default(), |all, part| all.union(part));
        let rest = pool.nodes.difference(&owned);
        if rest.is_empty() {
            continue;
        }
        let (verb, they) = if rest.len() == 1 { ("has", "it") } else { ("have", "them") };
        let title = format!("`{rest}` of pool `{name}` {verb} no owner");
        found.push(
            Diagnostic::new(&rules::OWNERSHIP_UNOWNED, title)
                .at(split, format!("no part names {they}"))
                .at(path.child("nodes"), "the pool's nodes")
                .note("a node without an owner is in no configuration, quota or alert")
                .help(format!("add {they} to a part, or remove {they} from the pool")),
        );
    }
}
