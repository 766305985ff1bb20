//! Blocks of Slurm's topology/block.
//!
//! Source: SchedMD/slurm, src/plugins/topology/block (in 23.11 also src/plugins/select/cons_tres),
//! releases 23.11 to 26.05; topology.conf(5).

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;

use super::{Block, BlockName, Topology, Vertex};
use crate::name::{ClusterName, RackName};

impl Topology {
    /// The blocks of `topology/block` for a cluster, in the order of the racks, since Slurm pairs
    /// those that follow each other: NVLink domains that join nodes, racks for the rest. Nodes in
    /// neither are in no block, nor are those that stand beside the trays of a domain and that it
    /// does not join.
    pub fn slurm_blocks(&self, cluster: &ClusterName) -> IndexMap<BlockName, Block> {
        let joined = self.standings().filter(|standing| standing.joined_in().is_some());
        let joined: BTreeSet<&RackName> = joined.filter_map(|standing| standing.rack).collect();
        let mut blocks: IndexMap<BlockName, Block> = IndexMap::new();
        for standing in self.standings().filter(|s| s.group.cluster == *cluster) {
            let domain = standing.joined_in().cloned().map(BlockName::Domain);
            let rack = standing.rack.filter(|rack| !joined.contains(rack));
            if let Some(name) = domain.or_else(|| rack.cloned().map(BlockName::Rack)) {
                blocks.entry(name).or_default().add(standing.group);
            }
        }
        let racks = self.graph.node_weights().filter_map(|vertex| match vertex {
            Vertex::Rack(rack) => Some(rack),
            Vertex::Site(_) | Vertex::Switch(..) | Vertex::Domain(_) | Vertex::Group(_) => None,
        });
        let order: BTreeMap<&RackName, usize> = racks.zip(0..).collect();
        blocks.sort_by_cached_key(|name, _| match name {
            BlockName::Domain(rack) | BlockName::Rack(rack) => order.get(rack).copied(),
            BlockName::Leaf(..) => None,
        });
        blocks
    }
}

/// The sizes by which jobs are planned, in nodes, the base size first: those that are stated, else
/// the smallest block.
///
/// A job of the base size or less gets nodes of one block. So a base size above that of a block
/// leaves it unused by larger jobs, and one above every block keeps jobs waiting for ever; a smaller
/// one only promises less.
pub fn block_sizes(stated: &[u32], blocks: &IndexMap<BlockName, Block>) -> Vec<u32> {
    if !stated.is_empty() {
        return stated.to_vec();
    }
    let smallest = blocks.values().map(|block| block.nodes.len()).min();
    smallest.map(|size| u32::try_from(size).unwrap_or(u32::MAX)).into_iter().collect()
}

/// The level of a size: it is the base size times two to the power of this; none if it is no such
/// size, which slurmctld refuses.
pub fn block_level(base: u32, size: u32) -> Option<u32> {
    let times = size.checked_div(base).filter(|times| times.checked_mul(base) == Some(size))?;
    times.is_power_of_two().then(|| times.trailing_zeros())
}
