//! `topology.conf`: a tree of switches, or blocks. Source: topology.conf(5), releases 22.05 to 26.05.

use std::collections::BTreeSet;

use fleetc_schema::intent::{Cluster, Intent, Scheduler, SlurmTopology, TopologyPlugin};
use fleetc_schema::topology::{BlockName, Topology, block_level, block_sizes};
use fleetc_schema::{Hostlist, ItemPath};

use super::features::Feature;
use super::topology_tree::{self, Switch};
use crate::write::key_value::{KeyValueFile, Line};

/// What slurmctld is told of the topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Switches, those with nodes first.
    Tree(Vec<Switch>),
    /// Blocks.
    Blocks(Vec<Block>, Sizes),
}

/// Nodes that a job of the base size or less does not leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Its name.
    name: String,
    /// Its nodes.
    nodes: Hostlist,
    /// Items behind it.
    items: Vec<ItemPath>,
}

/// By what jobs are planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sizes {
    /// `BlockSizes`: nodes, the base size first.
    Nodes(Vec<u32>),
    /// `BlockLevels` of 23.11, where every block is of the base size: a block of level `n` is two to
    /// the power of `n` of them.
    Levels(Vec<u32>),
}

impl Told {
    /// What a cluster is told; none where nothing says how its nodes are connected.
    pub fn of(intent: &Intent, cluster: &Cluster) -> Option<Self> {
        let Scheduler::Slurm(slurm) = &cluster.scheduler else { return None };
        let stated = slurm.topology.as_ref();
        if let Some(stated) = stated.filter(|stated| stated.plugin == TopologyPlugin::Block) {
            let sizes = match Feature::BlockSizes.is_in(slurm.version) {
                true => Sizes::Nodes,
                false => |sizes: Vec<u32>| Sizes::Levels(levels(&sizes)),
            };
            return Self::blocks(intent, cluster, stated, sizes);
        }
        let fabric = stated.and_then(|topology| topology.fabric.as_ref());
        let tree = topology_tree::tree(intent, cluster, fabric);
        (!tree.is_empty()).then_some(Self::Tree(tree))
    }

    /// The blocks. Nodes in none are left out: where all nodes that a job may have are in none,
    /// slurmctld plans it without a topology (from 23.11 on).
    fn blocks(
        intent: &Intent,
        cluster: &Cluster,
        stated: &SlurmTopology,
        sizes: fn(Vec<u32>) -> Sizes,
    ) -> Option<Self> {
        let found = Topology::of(intent).slurm_blocks(&cluster.name);
        let sizes = sizes(block_sizes(&stated.block_sizes, &found));
        let mut used = BTreeSet::new();
        let mut blocks = Vec::new();
        for (block, held) in found {
            // slurmctld ends over two blocks of one name.
            let (name, items) = match block {
                BlockName::Domain(rack) | BlockName::Rack(rack) => {
                    (rack.to_string(), vec![ItemPath::item("rack", rack)])
                }
                BlockName::Leaf(fabric, names) => (names, vec![ItemPath::item("fabric", fabric)]),
            };
            let mut numbers = 2..;
            let mut unique = name.clone();
            while !used.insert(unique.clone()) {
                unique = format!("{name}.{}", numbers.next().unwrap_or_default());
            }
            blocks.push(Block { name: unique, nodes: held.nodes, items });
        }
        (!blocks.is_empty()).then_some(Self::Blocks(blocks, sizes))
    }

    /// `TopologyPlugin`.
    pub fn plugin(&self) -> &'static str {
        match self {
            Self::Tree(_) => "topology/tree",
            Self::Blocks(..) => "topology/block",
        }
    }

    /// Items behind it, each once.
    pub fn items(&self) -> Vec<ItemPath> {
        let items: BTreeSet<&ItemPath> = match self {
            Self::Tree(tree) => tree.iter().flat_map(|switch| &switch.items).collect(),
            Self::Blocks(blocks, _) => blocks.iter().flat_map(|block| &block.items).collect(),
        };
        items.into_iter().cloned().collect()
    }

    /// The same, whatever the items behind it.
    pub fn without_items(mut self) -> Self {
        match &mut self {
            Self::Tree(tree) => tree.iter_mut().for_each(|switch| switch.items.clear()),
            Self::Blocks(blocks, _) => blocks.iter_mut().for_each(|block| block.items.clear()),
        }
        self
    }
}

/// Writes the file; none where nothing says how nodes are connected.
pub fn emit(intent: &Intent, cluster: &Cluster) -> Option<KeyValueFile> {
    let told = Told::of(intent, cluster)?;
    let item = ItemPath::item("cluster", &cluster.name).child("slurm");
    let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
    let mut file = KeyValueFile::new([item.clone()], &[&head]);
    match told {
        Told::Tree(tree) => {
            for switch in tree {
                let line = Line::new("SwitchName", &switch.name);
                let line = match switch.switches.is_empty() {
                    true => line.pair("Nodes", &switch.nodes),
                    false => line.pair("Switches", switch.switches.join(",")),
                };
                file.line(switch.items, line);
            }
        }
        Told::Blocks(blocks, sizes) => {
            for block in blocks {
                let line = Line::new("BlockName", &block.name).pair("Nodes", &block.nodes);
                file.line(block.items, line);
            }
            let list =
                |all: Vec<u32>| all.iter().map(u32::to_string).collect::<Vec<String>>().join(",");
            // Without it 24.05 and later take the first block for the base size, and all of them pair
            // blocks up to sixteen.
            let line = match sizes {
                Sizes::Nodes(sizes) => Line::new("BlockSizes", list(sizes)),
                Sizes::Levels(levels) => Line::new("BlockLevels", list(levels)),
            };
            file.line([item.child("topology")], line);
        }
    }
    Some(file)
}

fn levels(sizes: &[u32]) -> Vec<u32> {
    let base = sizes.first().copied().unwrap_or_default();
    sizes.iter().filter_map(|size| block_level(base, *size)).collect()
}
