//! Where things are, and what that does to the jobs that are placed there.
//!
//! Facts about Slurm are from its sources (topology/tree, topology/block) and from runs of
//! slurmctld 22.05, 24.11 and 26.05, 2026-11.

mod domains;
mod fabrics;
mod gangs;
mod levels;
mod racks;

pub use domains::{nvlink_domain_size, tensor_parallel_leaves_nvlink};
pub use fabrics::{cycle, orphan_switch, two_uplink_trees};
pub use gangs::{crosses_block, not_contiguous, pipeline_over_slow_link, placement_unknown};
pub use levels::{block_size, level_without_label, outside_blocks, unattached_node};
pub use racks::rack_power;

use fleetc_schema::intent::{Resource, Scheduler, Sharing, SlurmTopology, Workload};
use fleetc_schema::name::{ClusterName, WorkloadName};

use crate::lower::Lowered;

/// True if a rack or fabric could not be lowered: then nobody knows where nodes are.
fn place_is_unclear(lowered: &Lowered) -> bool {
    ["rack", "fabric"].into_iter().any(|kind| lowered.is_any_poisoned(kind))
}

/// A job of whole GPUs, and the nodes that it needs.
struct Job<'a> {
    name: &'a WorkloadName,
    workload: &'a Workload,
    /// GPUs of a complete node.
    each: u32,
}

impl Job<'_> {
    /// Nodes whose GPUs it takes all of, and GPUs that it takes of one more.
    fn shape(&self) -> (u64, u32) {
        let each = self.each.max(1);
        (u64::from(self.workload.gpus / each), self.workload.gpus % each)
    }

    /// Nodes that it needs.
    fn nodes(&self) -> u64 {
        let (full, rest) = self.shape();
        full + u64::from(rest > 0)
    }

    /// True if it needs more than one node.
    fn spans_nodes(&self) -> bool {
        self.nodes() > 1
    }
}

/// Every workload of whole GPUs that its pool has: one that asks for more is another finding.
fn jobs(lowered: &Lowered) -> impl Iterator<Item = Job<'_>> {
    lowered.intent.workloads.iter().filter_map(|(name, workload)| {
        let pool = lowered.intent.pools.get(&workload.pool)?;
        let classes = lowered.intent.classes_of(&workload.cluster);
        let each = classes
            .filter(|class| class.node.pool == workload.pool)
            .map(|class| class.node.gpus.len() + class.node.missing.len())
            .max()?;
        let each = u32::try_from(each).unwrap_or(u32::MAX);
        let all = lowered.intent.capacity(&workload.pool, &workload.cluster);
        let has = all.get(&Resource::Gpu).copied().unwrap_or(u64::MAX) >= u64::from(workload.gpus);
        let whole = matches!(pool.sharing, Sharing::Whole) && each > 0 && has;
        whole.then_some(Job { name, workload, each })
    })
}

/// What the slurmctld of a cluster knows of the topology, if it is one and knows any.
fn slurm_topology<'a>(lowered: &'a Lowered, cluster: &ClusterName) -> Option<&'a SlurmTopology> {
    match &lowered.intent.clusters.get(cluster)?.scheduler {
        Scheduler::Slurm(slurm) => slurm.topology.as_ref(),
        Scheduler::Kubernetes(_) => None,
    }
}
