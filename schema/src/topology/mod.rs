//! The topology graph: sites, racks, switches, NVLink domains, and groups of nodes.
//!
//! Invariant: a vertex is a group of nodes, never a node: nodes of one class that stand in one rack
//! and hang on the same switches. So the graph of 10,000 nodes is as large as that of 10 that are
//! laid out alike.
//!
//! Invariant: edges lead from what is inside to what is around it, and in no circle.

mod blocks;
mod fabric;
mod places;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use indexmap::IndexMap;
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

pub use blocks::{block_level, block_sizes};
pub use fabric::{LogicalFabric, LogicalSwitch};
pub use places::{PlaceLabel, place_key};

use crate::Hostlist;
use crate::hostlist::cuts;
use crate::intent::{Class, Intent};
use crate::name::{ClassName, ClusterName, FabricName, PoolName, RackName, SiteName};

/// The topology of a fleet.
#[derive(Debug, Clone, Default)]
pub struct Topology {
    graph: DiGraph<Vertex, Edge>,
    groups: Vec<NodeIndex>,
    /// The groups of each pool and owner.
    by_pool: BTreeMap<(PoolName, ClusterName), Vec<NodeIndex>>,
    fabrics: IndexMap<FabricName, LogicalFabric>,
}

/// A vertex of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Vertex {
    /// A site.
    Site(SiteName),
    /// A rack.
    Rack(RackName),
    /// A logical switch: its fabric and its position in it.
    Switch(FabricName, usize),
    /// NVLink domains that are alike.
    Domain(Domain),
    /// Nodes that are alike and stand alike.
    Group(Group),
}

/// How one vertex is inside another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Nodes in a rack, a rack at a site.
    Stands,
    /// Nodes on their leaf switch.
    Hangs,
    /// A switch on one above it.
    Uplink,
    /// GPUs of nodes in an NVLink domain.
    Joins,
}

/// NVLink domains: one that joins the nodes of a rack product, or those inside alike nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// GPUs of one domain when it is complete.
    pub gpus: u32,
    /// How many there are.
    pub count: u64,
    /// The rack, or the first of several, if the domain joins nodes.
    pub rack: Option<RackName>,
}

/// Nodes of one class in one rack and on the same switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The nodes.
    pub nodes: Hostlist,
    /// Their class.
    pub class: ClassName,
    /// Their pool.
    pub pool: PoolName,
    /// Their owner.
    pub cluster: ClusterName,
    /// GPUs of each.
    pub gpus: u32,
    /// GPUs of a node that lacks none.
    pub complete: u32,
    /// GPUs of one NVLink domain of the system, if anybody knows.
    pub nvlink_domain: Option<u32>,
}

impl Group {
    /// True if NVLink joins its nodes to others: the system of a rack, not of a box.
    pub fn is_rack_scale(&self) -> bool {
        self.nvlink_domain.is_some_and(|size| size > self.complete)
    }
}

/// A group and what it is inside of.
#[derive(Debug, Clone)]
pub struct Standing<'a> {
    /// The group.
    pub group: &'a Group,
    /// Its rack.
    pub rack: Option<&'a RackName>,
    /// The site of the rack.
    pub site: Option<&'a SiteName>,
    /// Its leaves: at most one a fabric in a fleet without errors.
    pub leaves: Vec<(&'a FabricName, usize)>,
    /// Its NVLink domain, or the domains inside its nodes.
    pub domain: Option<&'a Domain>,
}

impl Standing<'_> {
    /// The rack after which the NVLink domain is named that joins its nodes to others.
    pub fn joined_in(&self) -> Option<&RackName> {
        self.domain?.rack.as_ref()
    }

    /// True if it stands in a rack or hangs on a switch.
    pub fn is_placed(&self) -> bool {
        self.rack.is_some() || !self.leaves.is_empty()
    }
}

/// What a block of nodes is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockName {
    /// An NVLink domain that joins nodes, by its (first) rack.
    Domain(RackName),
    /// A rack.
    Rack(RackName),
    /// A leaf switch, by fabric and names.
    Leaf(FabricName, String),
}

impl fmt::Display for BlockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(rack) => write!(f, "the NVLink domain of rack `{rack}`"),
            Self::Rack(rack) => write!(f, "rack `{rack}`"),
            Self::Leaf(fabric, names) => write!(f, "leaf `{names}` of fabric `{fabric}`"),
        }
    }
}

/// Nodes that stand close together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// The nodes.
    pub nodes: Hostlist,
    /// How many nodes have so many GPUs.
    pub by_gpus: BTreeMap<u32, u64>,
}

impl Block {
    fn add(&mut self, group: &Group) {
        self.nodes = self.nodes.union(&group.nodes);
        *self.by_gpus.entry(group.gpus).or_insert(0) += group.nodes.len();
    }

    /// GPUs of all its nodes.
    pub fn gpus(&self) -> u64 {
        self.by_gpus.iter().map(|(gpus, nodes)| u64::from(*gpus).saturating_mul(*nodes)).sum()
    }

    /// The most GPUs that a job gets which takes whole nodes of `each` GPUs, and `rest` of one more.
    pub fn holds(&self, full: u64, rest: u32, each: u32) -> bool {
        let with = |least: u32| self.by_gpus.range(least..).map(|(_, nodes)| *nodes).sum::<u64>();
        let complete = with(each);
        complete >= full && (rest == 0 || with(rest) > full)
    }
}

/// A switch of a tree that holds only some nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeSwitch {
    /// The switches that it stands for.
    pub names: Hostlist,
    /// Nodes right on it.
    pub nodes: Hostlist,
    /// Positions in the tree of switches right below it.
    pub children: Vec<usize>,
}

impl Topology {
    /// Builds the graph. What the Intent contradicts itself in is left out; rules report it.
    pub fn of(intent: &Intent) -> Self {
        let mut topology = Self::default();
        let mut sites: IndexMap<&SiteName, NodeIndex> = IndexMap::new();
        let mut racks: IndexMap<&RackName, NodeIndex> = IndexMap::new();
        for (name, rack) in &intent.racks {
            let at = topology.graph.add_node(Vertex::Rack(name.clone()));
            racks.insert(name, at);
            if let Some(site) = &rack.site {
                let graph = &mut topology.graph;
                let to = *sites
                    .entry(site)
                    .or_insert_with(|| graph.add_node(Vertex::Site(site.clone())));
                topology.graph.add_edge(at, to, Edge::Stands);
            }
        }
        let domains = topology.add_domains(intent);
        let leaves = topology.add_fabrics(intent);
        let classes: Vec<(&ClassName, &Class)> = intent.classes.iter().collect();
        let class_lists = classes.iter().map(|(_, class)| &class.nodes);
        let rack_lists = intent.racks.values().map(|rack| &rack.nodes);
        let leaf_lists = leaves.iter().map(|(nodes, _)| *nodes);
        let lists: Vec<&Hostlist> = class_lists.chain(rack_lists).chain(leaf_lists).collect();
        for (sets, nodes) in cuts(&lists) {
            let Some((name, class)) = sets.first().and_then(|set| classes.get(*set)) else {
                continue;
            };
            let rack = |set: usize| racks.get_index(set.checked_sub(classes.len())?);
            let leaf = |set: usize| leaves.get(set.checked_sub(classes.len() + racks.len())?);
            let group = group_of(name, class, nodes);
            let (count, complete, size) = (group.nodes.len(), group.complete, group.nvlink_domain);
            let key = (group.pool.clone(), group.cluster.clone());
            let at = topology.graph.add_node(Vertex::Group(group));
            topology.groups.push(at);
            topology.by_pool.entry(key).or_default().push(at);
            let rack = sets.iter().find_map(|set| rack(*set));
            if let Some((_, rack)) = rack {
                topology.graph.add_edge(at, *rack, Edge::Stands);
            }
            for (_, leaf) in sets.iter().filter_map(|set| leaf(*set)) {
                topology.graph.update_edge(at, *leaf, Edge::Hangs);
            }
            let joined = rack.and_then(|(name, _)| domains.get(*name));
            match (size, joined) {
                (Some(size), Some(domain)) if size > complete => {
                    topology.graph.add_edge(at, *domain, Edge::Joins);
                }
                (Some(size), _) if size > 1 && size <= complete => {
                    let islands = u64::from(complete.div_ceil(size));
                    let domain =
                        Domain { gpus: size, count: count.saturating_mul(islands), rack: None };
                    let domain = topology.graph.add_node(Vertex::Domain(domain));
                    topology.graph.add_edge(at, domain, Edge::Joins);
                }
                _ => {}
            }
        }
        topology
    }

    /// Adds the domains of rack products. Where a domain stands in several racks, racks of one
    /// product are taken in the order of the spec, so many to each.
    fn add_domains<'a>(&mut self, intent: &'a Intent) -> BTreeMap<&'a RackName, NodeIndex> {
        let mut domains = BTreeMap::new();
        let mut open: BTreeMap<_, (NodeIndex, u8)> = BTreeMap::new();
        for (name, rack) in &intent.racks {
            let Some(domain) = rack.domain else { continue };
            let at = match open.get_mut(&rack.product) {
                Some((at, left)) if *left > 0 => {
                    *left -= 1;
                    *at
                }
                _ => {
                    let gpus = u32::from(domain.gpus);
                    let vertex = Domain { gpus, count: 1, rack: Some(name.clone()) };
                    let at = self.graph.add_node(Vertex::Domain(vertex));
                    open.insert(&rack.product, (at, domain.racks.saturating_sub(1)));
                    at
                }
            };
            domains.insert(name, at);
        }
        domains
    }

    /// Adds the logical switches, and gives the nodes of every attachment with their leaf.
    fn add_fabrics<'a>(&mut self, intent: &'a Intent) -> Vec<(&'a Hostlist, NodeIndex)> {
        let mut leaves = Vec::new();
        for (name, fabric) in &intent.fabrics {
            let logical = LogicalFabric::of(fabric);
            let vertices: Vec<NodeIndex> = (0..logical.switches.len())
                .map(|at| self.graph.add_node(Vertex::Switch(name.clone(), at)))
                .collect();
            for (switch, low) in logical.switches.iter().zip(&vertices) {
                for high in switch.uplinks.iter().filter_map(|high| vertices.get(*high)) {
                    self.graph.add_edge(*low, *high, Edge::Uplink);
                }
                let own = switch.attachments.iter().filter_map(|at| fabric.attachments.get(*at));
                leaves.extend(own.map(|attachment| (&attachment.nodes, *low)));
            }
            self.fabrics.insert(name.clone(), logical);
        }
        leaves
    }

    /// How many vertices the graph has.
    pub fn size(&self) -> usize {
        self.graph.node_count()
    }

    /// The logical switches of a fabric.
    pub fn fabric(&self, name: &FabricName) -> Option<&LogicalFabric> {
        self.fabrics.get(name)
    }

    /// Every group with what it is inside of, in the order of the classes.
    pub fn standings(&self) -> impl Iterator<Item = Standing<'_>> {
        self.groups.iter().filter_map(|at| self.standing(*at))
    }

    /// The groups of a pool that one cluster owns.
    pub fn standings_of(
        &self,
        pool: &PoolName,
        cluster: &ClusterName,
    ) -> impl Iterator<Item = Standing<'_>> {
        let groups = self.by_pool.get(&(pool.clone(), cluster.clone()));
        groups.into_iter().flatten().filter_map(|at| self.standing(*at))
    }

    /// Where a node is.
    pub fn standing_of(&self, node: &str) -> Option<Standing<'_>> {
        self.standings().find(|standing| standing.group.nodes.contains(node))
    }

    fn standing(&self, at: NodeIndex) -> Option<Standing<'_>> {
        let Some(Vertex::Group(group)) = self.graph.node_weight(at) else { return None };
        let mut standing =
            Standing { group, rack: None, site: None, leaves: Vec::new(), domain: None };
        for edge in self.graph.edges(at) {
            match self.graph.node_weight(edge.target()) {
                Some(Vertex::Rack(rack)) => {
                    standing.rack = Some(rack);
                    standing.site = self.site(edge.target());
                }
                Some(Vertex::Switch(fabric, leaf)) => standing.leaves.push((fabric, *leaf)),
                Some(Vertex::Domain(domain)) => standing.domain = Some(domain),
                Some(Vertex::Site(_) | Vertex::Group(_)) | None => {}
            }
        }
        // Edges come last first.
        standing.leaves.reverse();
        Some(standing)
    }

    fn site(&self, rack: NodeIndex) -> Option<&SiteName> {
        let mut around = self.graph.neighbors_directed(rack, Direction::Outgoing);
        around.find_map(|at| match self.graph.node_weight(at) {
            Some(Vertex::Site(site)) => Some(site),
            _ => None,
        })
    }

    /// The blocks that hold some nodes of a pool and owner: NVLink domains that join nodes, racks,
    /// and leaf switches.
    pub fn blocks(&self, pool: &PoolName, cluster: &ClusterName) -> IndexMap<BlockName, Block> {
        let mut blocks: IndexMap<BlockName, Block> = IndexMap::new();
        for standing in self.standings_of(pool, cluster) {
            let leaf = |(fabric, at): &(&FabricName, usize)| {
                let switch = self.fabrics.get(*fabric)?.switches.get(*at)?;
                Some(BlockName::Leaf((*fabric).clone(), switch.names.to_string()))
            };
            let domain = standing.joined_in().cloned().map(BlockName::Domain);
            let rack = standing.rack.cloned().map(BlockName::Rack);
            let leaves = standing.leaves.iter().filter_map(leaf);
            for name in domain.into_iter().chain(rack).chain(leaves) {
                blocks.entry(name).or_default().add(standing.group);
            }
        }
        blocks
    }

    /// The tree of a fabric's logical switches that hold some of the wanted nodes.
    pub fn tree(
        &self,
        fabric: &FabricName,
        wanted: impl Fn(&Standing<'_>) -> bool,
    ) -> Vec<TreeSwitch> {
        let Some(logical) = self.fabrics.get(fabric) else { return Vec::new() };
        let mut nodes: BTreeMap<usize, Hostlist> = BTreeMap::new();
        for standing in self.standings().filter(wanted) {
            for (_, leaf) in standing.leaves.iter().filter(|(name, _)| *name == fabric) {
                let held = nodes.entry(*leaf).or_default();
                *held = held.union(&standing.group.nodes);
            }
        }
        let used: std::collections::BTreeSet<usize> =
            nodes.keys().flat_map(|leaf| logical.path_up(*leaf)).collect();
        let position: BTreeMap<usize, usize> =
            used.iter().enumerate().map(|(position, at)| (*at, position)).collect();
        used.iter()
            .filter_map(|at| {
                let switch = logical.switches.get(*at)?;
                let children = switch.downlinks.iter().filter_map(|low| position.get(low));
                Some(TreeSwitch {
                    names: switch.names.clone(),
                    nodes: nodes.get(at).cloned().unwrap_or_default(),
                    children: children.copied().collect(),
                })
            })
            .collect()
    }

    /// The most GPUs of a class that NVLink joins: those that are there of its largest domain, of
    /// its pool and owner; the size of a domain if nobody says which racks make it up. None if
    /// nobody knows how the GPUs are joined.
    pub fn nvlink_reach(&self, class: &Class) -> Option<u32> {
        let node = &class.node;
        let size = u32::from(node.gpu.as_ref()?.nvlink_domain?);
        let present = u32::try_from(node.gpus.len()).unwrap_or(u32::MAX);
        let complete = u32::try_from(node.gpus.len() + node.missing.len()).unwrap_or(u32::MAX);
        if size <= complete {
            return Some(size.min(present.max(1)));
        }
        let mut domains: BTreeMap<&RackName, u64> = BTreeMap::new();
        let mut loose = false;
        let standings: Vec<Standing<'_>> = self.standings_of(&node.pool, &node.cluster).collect();
        for standing in &standings {
            match standing.joined_in() {
                Some(rack) => {
                    let gpus = u64::from(standing.group.gpus);
                    *domains.entry(rack).or_insert(0) +=
                        standing.group.nodes.len().saturating_mul(gpus);
                }
                None => loose |= standing.group.class == node.name,
            }
        }
        let largest = domains.values().max().map(|gpus| u32::try_from(*gpus).unwrap_or(u32::MAX));
        match (loose, largest) {
            (false, Some(largest)) => Some(largest.min(size)),
            _ => Some(size),
        }
    }
}

fn group_of(name: &ClassName, class: &Class, nodes: Hostlist) -> Group {
    let (present, missing) = (class.node.gpus.len(), class.node.missing.len());
    let count = |gpus: usize| u32::try_from(gpus).unwrap_or(u32::MAX);
    Group {
        nodes,
        class: name.clone(),
        pool: class.node.pool.clone(),
        cluster: class.node.cluster.clone(),
        gpus: count(present),
        complete: count(present + missing),
        nvlink_domain: class.node.gpu.as_ref().and_then(|g| g.nvlink_domain).map(u32::from),
    }
}
