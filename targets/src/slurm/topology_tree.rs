//! The tree of switches for `topology.conf`. Source: topology.conf(5) and topology.html, releases
//! 22.05 to 26.05.
//!
//! slurmctld never uses a node that stands in no switch, ends over a switch with neither nodes nor
//! switches, and over a graph that is no tree. A fabric is more than a tree: a node with rails hangs
//! on several leaves, and a leaf on several spines. What is reached alike is one switch here.

use std::collections::{BTreeMap, BTreeSet};

use fleetc_schema::intent::{Cluster, Fabric, Intent};
use fleetc_schema::name::{FabricName, PoolName};
use fleetc_schema::{Hostlist, ItemPath};
use indexmap::{IndexMap, IndexSet};

/// The longest name of a switch. Source: SchedMD/slurm, topology/tree.
const NAME_LIMIT: usize = 64;

/// A switch as Slurm sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// Nodes on it; none if it has switches below.
    pub nodes: Hostlist,
    /// Switches below it.
    pub switches: Vec<String>,
    /// Items behind it.
    pub items: Vec<ItemPath>,
}

/// The switches of a cluster's nodes, those with nodes first; none where nothing says how nodes are
/// connected.
///
/// A node stands in the fabric that the cluster names, else in the best one that has it. Fabrics share no root: a job stays within one.
/// Where no fabric has nodes of the cluster, racks stand for switches. Nodes that neither has, such
/// as elastic ones, get a switch of their pool.
pub fn tree(intent: &Intent, cluster: &Cluster, of_tree: Option<&FabricName>) -> Vec<Switch> {
    let classes = || intent.classes_of(&cluster.name);
    let mut left = classes().fold(Hostlist::default(), |all, class| all.union(&class.nodes));
    let mut tree = Vec::new();
    let is_meant = |name: &FabricName| of_tree.is_none_or(|fabric| fabric == name);
    let fabrics = intent.fabrics.iter().filter(|(name, _)| is_meant(name));
    let mut fabrics: Vec<(&FabricName, &Fabric)> = fabrics.collect();
    fabrics.sort_by_key(|(_, fabric)| fabric.kind);
    for (name, fabric) in fabrics {
        tree.extend(of_fabric(name, fabric, &mut left));
    }
    let racks = match tree.is_empty() {
        true => of_racks(intent, &mut left),
        false => Vec::new(),
    };
    if tree.is_empty() && racks.is_empty() {
        return Vec::new();
    }
    let by_racks = !racks.is_empty();
    tree.extend(racks);
    let mut pools: IndexMap<&PoolName, Hostlist> = IndexMap::new();
    for class in classes() {
        let rest = class.nodes.intersection(&left);
        if !rest.is_empty() {
            let pool = pools.entry(&class.node.pool).or_default();
            *pool = pool.union(&rest);
        }
    }
    for (pool, nodes) in pools {
        let items = vec![ItemPath::item("pool", pool)];
        let leaf = Switch { name: pool.to_string(), nodes, switches: Vec::new(), items };
        tree.push(leaf);
    }
    rename_clashes(&mut tree);
    if by_racks {
        tree.extend(root_of(intent, &tree));
    }
    tree
}

/// Racks that hold nodes of the cluster.
fn of_racks(intent: &Intent, left: &mut Hostlist) -> Vec<Switch> {
    let mut leaves = Vec::new();
    for (name, rack) in &intent.racks {
        let nodes = rack.nodes.intersection(left);
        if !nodes.is_empty() {
            *left = left.difference(&nodes);
            let items = vec![ItemPath::item("rack", name)];
            leaves.push(Switch { name: name.to_string(), nodes, switches: Vec::new(), items });
        }
    }
    leaves
}

/// The switch above all leaves but those of elastic pools, where no fabric says what reaches what.
fn root_of(intent: &Intent, leaves: &[Switch]) -> Option<Switch> {
    let elastic = intent.pools.values().filter(|pool| pool.elastic.is_some());
    let elastic = elastic.fold(Hostlist::default(), |all, pool| all.union(&pool.nodes));
    let joined: Vec<&Switch> =
        leaves.iter().filter(|leaf| leaf.nodes.intersection(&elastic).is_empty()).collect();
    if joined.len() < 2 {
        return None;
    }
    let mut name = "racks".to_owned();
    while leaves.iter().any(|leaf| leaf.name == name) {
        name.push_str("-all");
    }
    Some(Switch {
        name,
        nodes: Hostlist::default(),
        switches: joined.iter().map(|leaf| leaf.name.clone()).collect(),
        items: joined.iter().flat_map(|leaf| leaf.items.iter().cloned()).collect(),
    })
}

/// A switch of two fabrics, or one that is called like a pool, is told apart by a number.
fn rename_clashes(tree: &mut [Switch]) {
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut below: BTreeMap<String, String> = BTreeMap::new();
    for switch in tree {
        // Those below stand before it, and the last of a name is the one of its fabric.
        for name in &mut switch.switches {
            if let Some(new) = below.get(name) {
                name.clone_from(new);
            }
        }
        let mut name = switch.name.clone();
        let mut number = 2;
        while !used.insert(name.clone()) {
            name = format!("{}.{number}", switch.name);
            number += 1;
        }
        below.insert(switch.name.clone(), name.clone());
        switch.name = name;
    }
}

/// The part of a fabric that nodes in `left` hang on; takes them out of it.
fn of_fabric(name: &FabricName, fabric: &Fabric, left: &mut Hostlist) -> Vec<Switch> {
    let path = ItemPath::item("fabric", name);
    let groups = Groups::of(fabric);
    // What Slurm sees as one switch: its nodes, its parent, and the items behind it.
    let mut nodes: BTreeMap<usize, Hostlist> = BTreeMap::new();
    let mut items: BTreeMap<usize, Vec<ItemPath>> = BTreeMap::new();
    let mut parents: BTreeMap<usize, usize> = BTreeMap::new();
    for attachment in &fabric.attachments {
        let here = attachment.nodes.intersection(left);
        let Some(group) = groups.of_any(&attachment.switches) else { continue };
        if here.is_empty() {
            continue;
        }
        *left = left.difference(&here);
        let all = nodes.entry(group).or_default();
        *all = all.union(&here);
        let keys = [attachment.switches.to_string(), attachment.nodes.to_string()];
        items.entry(group).or_default().push(path.keyed("attach", keys));
    }
    for switches in &fabric.switches {
        let above = groups.of_any(&switches.uplinks);
        let mut members: Vec<usize> =
            switches.names.names().filter_map(|n| groups.find(&n)).collect();
        members.dedup();
        for member in members {
            items.entry(member).or_default().push(path.keyed("switch", [&switches.names]));
            // A link that leads back is left out: slurmctld ends over a loop.
            if let Some(above) = above.filter(|above| !leads_to(&parents, *above, member)) {
                parents.entry(member).or_insert(above);
            }
        }
    }
    // What nodes are reached through, from each leaf up.
    let mut children: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut depth_of: BTreeMap<usize, usize> = nodes.keys().map(|leaf| (*leaf, 0)).collect();
    for leaf in nodes.keys() {
        let (mut at, mut depth) = (*leaf, 0);
        while let Some(parent) = parents.get(&at).copied() {
            depth += 1;
            children.entry(parent).or_default().insert(at);
            let deepest = depth_of.entry(parent).or_insert(depth);
            *deepest = (*deepest).max(depth);
            at = parent;
        }
    }
    let mut order: Vec<(usize, usize)> =
        depth_of.into_iter().map(|(group, depth)| (depth, group)).collect();
    order.sort_unstable();
    let mut found = Vec::new();
    for (_, group) in order {
        let items = items.get(&group).cloned().unwrap_or_default();
        let name = groups.name(group);
        let own = nodes.get(&group).cloned().unwrap_or_default();
        let mut below: Vec<String> =
            children.get(&group).into_iter().flatten().map(|child| groups.name(*child)).collect();
        if !below.is_empty() && !own.is_empty() {
            // Nodes on a switch that has switches below: a leaf of their own under it.
            let leaf = format!("{name}.nodes");
            below.push(leaf.clone());
            let items = items.clone();
            found.push(Switch { name: leaf, nodes: own.clone(), switches: Vec::new(), items });
        }
        let nodes = if below.is_empty() { own } else { Hostlist::default() };
        found.push(Switch { name, nodes, switches: below, items });
    }
    found
}

/// True if the way up from `at` meets `target`.
fn leads_to(parents: &BTreeMap<usize, usize>, at: usize, target: usize) -> bool {
    let way = std::iter::successors(Some(at), |at| parents.get(at).copied());
    way.into_iter().any(|at| at == target)
}

/// Switches of a fabric that Slurm sees as one: those that one node hangs on, and those that one
/// switch hangs on.
struct Groups {
    names: IndexSet<String>,
    /// The group of each switch: the number of its first one.
    group: Vec<usize>,
    /// The switches of each group, at the number of its first one.
    members: Vec<Vec<usize>>,
}

impl Groups {
    fn of(fabric: &Fabric) -> Self {
        let names: IndexSet<String> =
            fabric.switches.iter().flat_map(|switches| switches.names.names()).collect();
        let group: Vec<usize> = (0..names.len()).collect();
        let members = group.iter().map(|number| vec![*number]).collect();
        let mut groups = Self { names, group, members };
        for attachment in &fabric.attachments {
            groups.join(&attachment.switches);
        }
        // What is joined below may join more above.
        loop {
            let mut above: BTreeMap<usize, Hostlist> = BTreeMap::new();
            for switches in &fabric.switches {
                let names = switches.names.names();
                let of: BTreeSet<usize> = names.filter_map(|name| groups.find(&name)).collect();
                for group in of {
                    let all = above.entry(group).or_default();
                    *all = all.union(&switches.uplinks);
                }
            }
            let joined = above.values().fold(false, |any, uplinks| groups.join(uplinks) | any);
            if !joined {
                return groups;
            }
        }
    }

    /// Makes one group of these switches; true if they were several.
    fn join(&mut self, switches: &Hostlist) -> bool {
        let mut groups: BTreeSet<usize> =
            switches.names().filter_map(|name| self.find(&name)).collect();
        let Some(first) = groups.pop_first() else { return false };
        for group in &groups {
            let moved = self.members.get_mut(*group).map(std::mem::take).unwrap_or_default();
            for member in &moved {
                if let Some(group) = self.group.get_mut(*member) {
                    *group = first;
                }
            }
            if let Some(members) = self.members.get_mut(first) {
                members.extend(moved);
            }
        }
        !groups.is_empty()
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.group.get(self.names.get_index_of(name)?).copied()
    }

    /// The group of a list of switches that were joined.
    fn of_any(&self, switches: &Hostlist) -> Option<usize> {
        self.find(&switches.first()?)
    }

    /// The name of a group: its switches without the signs of a list, `leaf1-8`.
    fn name(&self, group: usize) -> String {
        let numbers = self.members.get(group).into_iter().flatten();
        let names = numbers.filter_map(|number| self.names.get_index(*number));
        let all = names.fold(Hostlist::default(), |all, name| all.union(&Hostlist::single(name)));
        all.as_word(NAME_LIMIT)
    }
}

#[cfg(test)]
#[path = "topology_tree_tests.rs"]
mod tests;
