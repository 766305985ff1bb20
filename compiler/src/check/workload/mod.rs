//! Workloads: what they need against what they run on, and their shape against who schedules them.
//!
//! In the order in which it counts: does it fit in memory, can it be placed and admitted, is it fast
//! enough, is it worth its price.

mod host;
mod memory;
mod schedule;
mod shape;
mod speed;

pub use host::{data_rate, no_rdma, shm_too_small, strands_gpus};
pub use memory::{does_not_fit, oversized, sharded_needlessly, tight_fit};
pub use schedule::{no_gang, no_queue, pretrain_on_plain_kubernetes, service_on_slurm};
pub use shape::{never_schedulable, no_tenancy_decision, parallel_product};
pub use speed::{bandwidth_below_slo, kind_against_gpu};

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::Gpu;
use fleetc_schema::intent::{Class, Cluster, Kubernetes, Pool, QueueKind, Scheduler, Workload};
use fleetc_schema::name::WorkloadName;

use crate::lower::Lowered;

/// A workload with where it runs.
struct Job<'a> {
    name: &'a WorkloadName,
    workload: &'a Workload,
    pool: &'a Pool,
    cluster: &'a Cluster,
    /// Its item.
    item: ItemPath,
    lowered: &'a Lowered,
}

/// Every workload of which all could be read, as could its pool. Its cluster is there; what could not be
/// read in it (a pool of a partition) concerns the rules about that alone.
fn jobs(lowered: &Lowered) -> impl Iterator<Item = Job<'_>> {
    lowered.intent.workloads.iter().filter_map(|(name, workload)| {
        let item = ItemPath::item("workload", name);
        let unread = [&item, &ItemPath::item("pool", &workload.pool)];
        if unread.into_iter().any(|path| lowered.is_poisoned(path)) {
            return None;
        }
        let pool = lowered.intent.pools.get(&workload.pool)?;
        let cluster = lowered.intent.clusters.get(&workload.cluster)?;
        Some(Job { name, workload, pool, cluster, item, lowered })
    })
}

impl<'a> Job<'a> {
    /// The classes that it may run on.
    fn classes(&self) -> impl Iterator<Item = &'a Class> {
        let cluster = &self.workload.cluster;
        let classes = self.lowered.intent.classes_of_pool(&self.workload.pool);
        classes.filter(move |class| class.node.cluster == *cluster)
    }

    /// The GPU product of its pool.
    fn gpu(&self) -> Option<&'a Gpu> {
        self.lowered.gpus.get(&self.workload.pool)
    }

    /// The most GPUs, slices or shares that one node has for it; none if it is not clear which.
    fn units_of_node(&self) -> Option<u32> {
        let resource = crate::sizing::resource(&self.lowered.intent, self.workload)?;
        self.classes().filter_map(|class| class.node.advertised.units.get(&resource).copied()).max()
    }

    /// True if its GPUs are more than any node has.
    fn spans_nodes(&self) -> bool {
        self.units_of_node().is_some_and(|most| self.workload.gpus > most)
    }

    /// Its cluster's Kubernetes, if it is one.
    fn kubernetes(&self) -> Option<&'a Kubernetes> {
        match &self.cluster.scheduler {
            Scheduler::Kubernetes(kubernetes) => Some(kubernetes),
            Scheduler::Slurm(_) => None,
        }
    }

    /// The path of its cluster's `queue`, if it is a Kubernetes without one.
    fn without_queue(&self) -> Option<ItemPath> {
        let none = self.kubernetes()?.queue.kind == QueueKind::None;
        let cluster = ItemPath::item("cluster", &self.workload.cluster);
        none.then(|| cluster.child("kubernetes").child("queue"))
    }

    /// The path of its pool.
    fn pool_path(&self) -> ItemPath {
        ItemPath::item("pool", &self.workload.pool)
    }
}
