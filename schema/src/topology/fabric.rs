//! The logical switches of one fabric.
//!
//! A topology that a scheduler reads is a tree of logical switches: the rails of a set of nodes are
//! one leaf, and switches with equal down-links are one switch. Switches are kept as hostlists of
//! alike ones, so the cost is by what the spec distinguishes.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::unionfind::UnionFind;

use crate::Hostlist;
use crate::hostlist::{clashes, cuts};
use crate::intent::Fabric;

/// The logical switches of a fabric.
#[derive(Debug, Clone, Default)]
pub struct LogicalFabric {
    /// Its switches. Uplinks among them run in no circle: those that do are left out.
    pub switches: Vec<LogicalSwitch>,
    /// Switches whose uplinks lead back to themselves, each circle by itself.
    pub cycles: Vec<Hostlist>,
}

/// One switch for a scheduler: a switch, the rails of a set of nodes, or spines that are alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogicalSwitch {
    /// The switches that it stands for.
    pub names: Hostlist,
    /// Attachments of the fabric that hang nodes on it, by position.
    pub attachments: Vec<usize>,
    /// Rails of its nodes: the most that one of its attachments has; none without rails.
    pub rails: Option<u32>,
    /// Positions of the logical switches above it.
    pub uplinks: Vec<usize>,
    /// Positions of the logical switches below it.
    pub downlinks: Vec<usize>,
    /// The number of the island that it is in: switches of one island reach each other, those of two
    /// do not.
    pub island: usize,
}

/// Switches that no word of the fabric tells apart.
struct Piece {
    names: Hostlist,
    attachments: Vec<usize>,
    /// Pieces above.
    above: BTreeSet<usize>,
}

impl LogicalFabric {
    /// Merges the switches of a fabric.
    pub fn of(fabric: &Fabric) -> Self {
        let pieces = pieces(fabric);
        let mut sets: UnionFind<usize> = UnionFind::new(pieces.len());
        let links: Vec<(usize, usize)> = pieces
            .iter()
            .enumerate()
            .flat_map(|(low, piece)| piece.above.iter().map(move |high| (low, *high)))
            .collect();
        let mut circles = circles(pieces.len(), &links);
        let straight = without(links, &circles);
        merge_rails(&pieces, &mut sets);
        // Rails that are one leaf may close a circle that single switches leave open.
        let merged: Vec<(usize, usize)> = straight
            .iter()
            .map(|(low, high)| (sets.find_mut(*low), sets.find_mut(*high)))
            .filter(|(low, high)| low != high)
            .collect();
        for circle in self::circles(pieces.len(), &merged) {
            let members = (0..pieces.len()).filter(|piece| circle.contains(&sets.find(*piece)));
            circles.push(members.collect());
        }
        let straight = without(straight, &circles);
        merge_alike(&pieces, &straight, &mut sets);
        let names = |members: &BTreeSet<usize>| {
            let members = members.iter().filter_map(|piece| pieces.get(*piece));
            members.fold(Hostlist::default(), |all, piece| all.union(&piece.names))
        };
        let cycles = circles.iter().map(names).collect();
        Self { switches: collect(fabric, &pieces, &straight, &mut sets), cycles }
    }

    /// Switches that hold neither nodes nor switches.
    pub fn orphans(&self) -> impl Iterator<Item = &LogicalSwitch> {
        self.switches
            .iter()
            .filter(|switch| switch.attachments.is_empty() && switch.downlinks.is_empty())
    }

    /// Nodes that hang on two logical switches: positions of the two, and the nodes.
    pub fn nodes_on_two(&self, fabric: &Fabric) -> Vec<(usize, usize, Hostlist)> {
        let lists: Vec<Hostlist> = self
            .switches
            .iter()
            .map(|switch| {
                let own = switch.attachments.iter().filter_map(|at| fabric.attachments.get(*at));
                own.fold(Hostlist::default(), |all, attachment| all.union(&attachment.nodes))
            })
            .collect();
        let indexed: Vec<(usize, &Hostlist)> = lists.iter().enumerate().collect();
        clashes(&indexed)
    }

    /// The switch and everything above it, nearest first.
    pub fn path_up(&self, from: usize) -> Vec<usize> {
        let mut path = vec![from];
        let mut at = 0;
        while let Some(switch) = path.get(at).and_then(|index| self.switches.get(*index)) {
            for high in &switch.uplinks {
                if !path.contains(high) {
                    path.push(*high);
                }
            }
            at += 1;
        }
        path
    }
}

fn pieces(fabric: &Fabric) -> Vec<Piece> {
    let groups = fabric.switches.len();
    let names = fabric.switches.iter().map(|group| &group.names);
    let uplinks = fabric.switches.iter().map(|group| &group.uplinks);
    let attached = fabric.attachments.iter().map(|attachment| &attachment.switches);
    let lists: Vec<&Hostlist> = names.chain(uplinks).chain(attached).collect();
    let cut = cuts(&lists);
    let mut above_group: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (piece, (sets, _)) in cut.iter().enumerate() {
        for group in sets.iter().filter(|set| (groups..2 * groups).contains(set)) {
            above_group.entry(group - groups).or_default().insert(piece);
        }
    }
    cut.into_iter()
        .map(|(sets, names)| Piece {
            names,
            attachments: sets.iter().filter_map(|set| set.checked_sub(2 * groups)).collect(),
            above: sets.iter().filter_map(|set| above_group.get(set)).flatten().copied().collect(),
        })
        .collect()
}

/// Vertices that lie on a circle, each circle by itself.
fn circles(vertices: usize, links: &[(usize, usize)]) -> Vec<BTreeSet<usize>> {
    let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(vertices, links.len());
    let index: Vec<NodeIndex> = (0..vertices).map(|_| graph.add_node(())).collect();
    for (low, high) in links {
        if let (Some(low), Some(high)) = (index.get(*low), index.get(*high)) {
            graph.add_edge(*low, *high, ());
        }
    }
    let mut found: Vec<BTreeSet<usize>> = tarjan_scc(&graph)
        .into_iter()
        .filter(|members| match members.as_slice() {
            [only] => graph.contains_edge(*only, *only),
            _ => true,
        })
        .map(|members| members.into_iter().map(NodeIndex::index).collect())
        .collect();
    found.sort();
    found
}

/// The links without those between vertices of circles.
fn without(links: Vec<(usize, usize)>, circles: &[BTreeSet<usize>]) -> Vec<(usize, usize)> {
    let circular: BTreeSet<usize> = circles.iter().flatten().copied().collect();
    let kept = |(low, high): &(usize, usize)| !(circular.contains(low) && circular.contains(high));
    links.into_iter().filter(kept).collect()
}

/// The switches of an attachment with rails are one leaf.
fn merge_rails(pieces: &[Piece], sets: &mut UnionFind<usize>) {
    let mut first: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, piece) in pieces.iter().enumerate() {
        for attachment in &piece.attachments {
            sets.union(index, *first.entry(*attachment).or_insert(index));
        }
    }
}

/// Switches without nodes whose down-links are equal are one. What is merged may make switches
/// above it equal, so this goes on until nothing changes: once a level.
fn merge_alike(pieces: &[Piece], links: &[(usize, usize)], sets: &mut UnionFind<usize>) {
    let leaves: BTreeSet<usize> = pieces
        .iter()
        .enumerate()
        .filter(|(_, piece)| !piece.attachments.is_empty())
        .map(|(index, _)| index)
        .collect();
    loop {
        let mut below: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (low, high) in links {
            let (low, high) = (sets.find_mut(*low), sets.find_mut(*high));
            if low != high {
                below.entry(high).or_default().insert(low);
            }
        }
        let with_nodes: BTreeSet<usize> = leaves.iter().map(|leaf| sets.find(*leaf)).collect();
        let mut alike: BTreeMap<BTreeSet<usize>, usize> = BTreeMap::new();
        let mut merged = false;
        for (switch, down) in below {
            if !with_nodes.contains(&switch) {
                merged |= sets.union(switch, *alike.entry(down).or_insert(switch));
            }
        }
        if !merged {
            return;
        }
    }
}

fn collect(
    fabric: &Fabric,
    pieces: &[Piece],
    links: &[(usize, usize)],
    sets: &mut UnionFind<usize>,
) -> Vec<LogicalSwitch> {
    let mut position: BTreeMap<usize, usize> = BTreeMap::new();
    let mut switches: Vec<LogicalSwitch> = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let at = *position.entry(sets.find_mut(index)).or_insert(switches.len());
        if at == switches.len() {
            switches.push(LogicalSwitch::default());
        }
        if let Some(switch) = switches.get_mut(at) {
            switch.names = switch.names.union(&piece.names);
            switch.attachments.extend(&piece.attachments);
        }
    }
    for switch in &mut switches {
        switch.attachments.sort_unstable();
        switch.attachments.dedup();
        let own = switch.attachments.iter().filter_map(|at| fabric.attachments.get(*at));
        switch.rails = own.filter_map(|attachment| attachment.rails).max();
    }
    let mut linked: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (low, high) in links {
        let (low, high) = (sets.find_mut(*low), sets.find_mut(*high));
        if let (Some(low), Some(high)) = (position.get(&low), position.get(&high))
            && low != high
        {
            linked.insert((*low, *high));
        }
    }
    let mut islands: UnionFind<usize> = UnionFind::new(switches.len());
    for (low, high) in linked {
        if let Some(switch) = switches.get_mut(low) {
            switch.uplinks.push(high);
        }
        if let Some(switch) = switches.get_mut(high) {
            switch.downlinks.push(low);
        }
        islands.union(low, high);
    }
    for (switch, island) in switches.iter_mut().zip(islands.into_labeling()) {
        switch.island = island;
    }
    switches
}
