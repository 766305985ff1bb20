//! Partitions: how long jobs run in them, and what two of them share.

use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Partition, PreemptBy};
use fleetc_schema::name::PoolName;
use fleetc_schema::{Hostlist, ItemPath};

use super::Fleet;
use crate::slurm::partition_line::priority_tier;
use crate::slurm::slurm_conf::LONGEST_WINDOW;

/// `slurm/no-default-time` and `slurm/backfill-blind`: times that leave the backfill scheduler
/// without a gap to fill.
pub fn times(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    for (name, partition) in &fleet.slurm.partitions {
        let path = fleet.path().keyed("partition", [name]);
        match partition.max_time {
            Some(time) if time <= LONGEST_WINDOW => {}
            Some(time) => {
                let title = format!(
                    "jobs of partition `{name}` may run for {time}, and backfill looks {LONGEST_WINDOW} ahead"
                );
                found.push(
                    Diagnostic::new(&rules::SLURM_BACKFILL_BLIND, title)
                        .at(path.child("max-time"), "beyond the longest `bf_window`")
                        .note("what ends after the window is not planned with, so that small jobs keep large ones waiting")
                        .help(format!("lower it to `max-time \"{LONGEST_WINDOW}\"`, and let longer jobs save and go on")),
                );
            }
            None => {
                let title = format!("jobs of partition `{name}` may run without end");
                found.push(
                    Diagnostic::new(&rules::SLURM_BACKFILL_BLIND, title)
                        .at(path.clone(), "no `max-time` in here")
                        .note("MaxTime is UNLIMITED unless said: backfill cannot know when nodes become free")
                        .help(match partition.default_time {
                            Some(_) => "add `max-time \"2d\"`",
                            None => "add `max-time \"2d\"` and `default-time \"4h\"`",
                        }),
                );
            }
        }
        if let (Some(longest), None) = (partition.max_time, partition.default_time) {
            let title =
                format!("a job of partition `{name}` that states no time may run for {longest}");
            found.push(
                Diagnostic::new(&rules::SLURM_NO_DEFAULT_TIME, title)
                    .at(path, "no `default-time` in here")
                    .at(fleet.path().keyed("partition", [name]).child("max-time"), "the longest")
                    .note("DefaultTime is MaxTime unless said, so no gap in the plan is long enough for it")
                    .help("add `default-time \"4h\"`"),
            );
        }
    }
}

/// `slurm/partition-overlap`: two partitions of equal tier share nodes where the tier decides which
/// job gives way.
pub fn overlap(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    if fleet.slurm.preempt.is_none_or(|preempt| preempt.by != PreemptBy::Partition) {
        return;
    }
    let nodes = |partition: &Partition| {
        let pools = partition.pools.iter().filter_map(|pool| fleet.intent.pools.get(pool));
        let parts = pools.filter_map(|pool| pool.parts.get(&fleet.cluster.name));
        parts.fold(Hostlist::default(), |all, part| all.union(part))
    };
    let partitions: Vec<_> = fleet.slurm.partitions.iter().collect();
    for (index, (name, partition)) in partitions.iter().enumerate() {
        for (other, earlier) in partitions.iter().take(index) {
            let tier = priority_tier(fleet.intent, partition);
            let shared = nodes(partition).intersection(&nodes(earlier));
            if shared.is_empty() || tier != priority_tier(fleet.intent, earlier) {
                continue;
            }
            let title =
                format!("partitions `{other}` and `{name}` share nodes, and neither gives way");
            let path = |name| fleet.path().keyed("partition", [name]);
            found.push(
                Diagnostic::new(&rules::SLURM_PARTITION_OVERLAP, title)
                    .at(path(*name), format!("PriorityTier {tier}"))
                    .at(path(*other), format!("PriorityTier {tier}"))
                    .note(format!("both have `{shared}`; jobs of the higher PriorityTier preempt, and theirs is equal"))
                    .help("give one of them `tiers` of another priority, or let their pools differ"),
            );
        }
    }
}

/// `slurm/cpu-jobs-strand-gpus`: nodes with GPUs and nodes without in one partition. Source:
/// slurm.conf(5), "Weight": of equal nodes slurmctld takes any, and otherwise the lightest first.
pub fn cpu_jobs(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    for (name, partition) in &fleet.slurm.partitions {
        if open_and_closed(fleet, partition).is_some() {
            continue;
        }
        let has_gpus = |pool: &&PoolName| {
            let mut classes = fleet.classes().filter(|class| class.node.pool == **pool);
            classes.any(|class| class.node.gpu.is_some())
        };
        let (with, without): (Vec<&PoolName>, Vec<&PoolName>) =
            partition.pools.iter().partition(has_gpus);
        // A node weighs 1 unless said.
        let weight = |pool: &&&PoolName| {
            fleet.intent.pools.get(**pool).and_then(|pool| pool.weight).unwrap_or(1)
        };
        let lightest = with.iter().min_by_key(weight);
        let heaviest = without.iter().max_by_key(weight);
        let (Some(with), Some(without)) = (lightest, heaviest) else { continue };
        if weight(&without) < weight(&with) {
            continue;
        }
        let title = format!(
            "jobs without GPUs may fill the processors of `{with}` while `{without}` is idle"
        );
        found.push(
            Diagnostic::new(&rules::SLURM_CPU_JOBS_STRAND_GPUS, title)
                .at(fleet.path().keyed("partition", [name]).child("pools"), "both in one partition")
                .at(ItemPath::item("pool", *with), "has GPUs")
                .at(ItemPath::item("pool", *without), "has none")
                .note("nothing keeps processors for GPUs: a GPU whose processors are taken is idle")
                .help(format!(
                    "give `{without}` a partition of its own, or let `{with}` weigh more: `weight 100`"
                )),
        );
    }
}

/// `slurm/mixed-partition`: a pool that teams are guaranteed and an open one in one partition.
pub fn mixed(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    for (name, partition) in &fleet.slurm.partitions {
        let Some((closed, open)) = open_and_closed(fleet, partition) else { continue };
        let title = format!(
            "partition `{name}` holds `{closed}`, which teams are guaranteed, and `{open}`, which is open"
        );
        found.push(
            Diagnostic::new(&rules::SLURM_MIXED_PARTITION, title)
                .at(fleet.path().keyed("partition", [name]).child("pools"), "both in one partition")
                .at(ItemPath::item("pool", closed), "has quotas")
                .at(ItemPath::item("pool", open), "has none")
                .note(format!(
                    "the partition takes only the QOS of teams with quotas: no other team can use \
                     `{open}`, and GPUs there are counted as those of `{closed}`"
                ))
                .help(format!("give `{open}` a partition of its own")),
        );
    }
}

/// A pool of the partition that teams are guaranteed, and one that is open.
fn open_and_closed<'a>(
    fleet: Fleet<'_>,
    partition: &'a Partition,
) -> Option<(&'a PoolName, &'a PoolName)> {
    // Without a database there are no QOS that a partition could take.
    fleet.slurm.database.as_ref()?;
    let governed = |pool: &&PoolName| fleet.intent.is_governed(pool, &fleet.cluster.name);
    let closed = partition.pools.iter().find(governed)?;
    Some((closed, partition.pools.iter().find(|pool| !governed(pool))?))
}
