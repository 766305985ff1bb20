//! `PartitionName` lines of slurm.conf.

use fleetc_schema::Hostlist;
use fleetc_schema::intent::{Class, Cluster, Intent, Partition, PreemptBy, Slurm};
use fleetc_schema::name::PartitionName;

use super::node_line::{real_memory, threads_per_core};
use super::qos::{self, Qos};
use super::slurm_time::SlurmTime;
use crate::write::key_value::Line;

/// The line of a partition.
pub fn line(
    intent: &Intent,
    cluster: &Cluster,
    slurm: &Slurm,
    (name, partition): (&PartitionName, &Partition),
    all_qos: &[Qos],
) -> Line {
    let in_it = |class: &&Class| partition.pools.contains(&class.node.pool);
    let classes: Vec<&Class> = intent.classes_of(&cluster.name).filter(in_it).collect();
    let all = |all: Hostlist, class: &&Class| all.union(&class.nodes);
    let nodes = classes.iter().fold(Hostlist::default(), all);
    let qos = qos::allowed(intent, cluster, partition, all_qos);
    let by_partition = slurm.preempt.is_some_and(|preempt| preempt.by == PreemptBy::Partition);
    let line = Line::new("PartitionName", name)
        .pair("Nodes", nodes)
        .maybe("Default", partition.default.then_some("YES"))
        .maybe("MaxTime", partition.max_time.map(SlurmTime))
        .maybe("DefaultTime", partition.default_time.map(SlurmTime))
        .maybe("AllowQos", qos.map(|names| names.join(",")))
        .maybe("PriorityTier", by_partition.then(|| priority_tier(intent, partition)))
        .maybe("DefCpuPerGPU", cpus_per_gpu(&classes));
    // Without a default a job that states no memory takes all of its node, and the other GPUs idle.
    // A partition takes one of the two keys, and only nodes with GPUs can go by GPU.
    match memory_per_gpu(&classes) {
        Some(memory) => line.pair("DefMemPerGPU", memory),
        None => line.maybe("DefMemPerCPU", memory_per_cpu(&classes)),
    }
}

/// `PriorityTier` under preemption by partition: the rank of the most urgent tier that the partition
/// takes, among all priorities of the fleet, least urgent first. Jobs of a higher one preempt those
/// of a lower one.
pub fn priority_tier(intent: &Intent, partition: &Partition) -> usize {
    let mut ranks: Vec<u32> = intent.tiers.values().map(|tier| tier.priority).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let taken = partition.tiers.iter().filter_map(|tier| intent.tiers.get(tier));
    let most = taken.map(|tier| tier.priority).max().or(ranks.last().copied());
    let rank = most.and_then(|most| ranks.iter().position(|priority| *priority == most));
    rank.map_or(1, |rank| rank + 1)
}

/// GPUs or GPU instances of a node.
fn gpus(class: &Class) -> u64 {
    class.node.advertised.gres.iter().map(|gres| u64::from(gres.count)).sum()
}

/// CPUs for each GPU, so that a job can have all GPUs of any node of the partition; whole cores,
/// since slurmctld gives out no parts of them.
fn cpus_per_gpu(classes: &[&Class]) -> Option<u64> {
    let each = classes.iter().filter(|class| gpus(class) > 0).map(|class| {
        let (cpus, step) = (u64::from(class.node.host.cpu?.threads), threads_per_core(class));
        Some(cpus / gpus(class) / step * step)
    });
    each.collect::<Option<Vec<u64>>>()?.into_iter().min().filter(|cpus| *cpus > 0)
}

/// MiB for each GPU, likewise; none if a node of the partition has no GPU.
fn memory_per_gpu(classes: &[&Class]) -> Option<u64> {
    let each = classes.iter().map(|class| real_memory(class)?.checked_div(gpus(class)));
    each.collect::<Option<Vec<u64>>>()?.into_iter().min()
}

/// MiB for each CPU.
fn memory_per_cpu(classes: &[&Class]) -> Option<u64> {
    let each = classes.iter().map(|class| {
        let cpus = u64::from(class.node.host.cpu?.threads);
        real_memory(class)?.checked_div(cpus)
    });
    each.collect::<Option<Vec<u64>>>()?.into_iter().min()
}
