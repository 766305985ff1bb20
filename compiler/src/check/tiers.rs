//! Tiers: who goes first, who gives way, and who may hold a pool for ever.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Intent, Scheduler, Slurm, Tier, Workload, WorkloadKind};
use fleetc_schema::name::{ClusterName, PoolName, TierName};
use indexmap::{IndexMap, IndexSet};

use super::quota;
use crate::lower::Lowered;

/// The tier that is taken for people at work, by its name.
const INTERACTIVE: &str = "interactive";
/// The highest value of a PriorityClass; those above are of Kubernetes itself. Source: Kubernetes
/// `pkg/apis/scheduling/types.go`, HighestUserDefinablePriority.
const HIGHEST_PRIORITY: u32 = 1_000_000_000;

/// `quota/one-job-blocks-all`: a tier whose jobs can hold a whole pool that people work on.
pub fn one_job_blocks_all(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for ((name, pool), (units, unit)) in blocking(lowered) {
        let title =
            format!("one job of tier `{name}` can hold all {units} {unit} of pool `{pool}`");
        found.push(
            Diagnostic::new(&rules::QUOTA_ONE_JOB_BLOCKS_ALL, title)
                .at(ItemPath::item("tier", name), "neither gives way nor has an end or a size")
                .at(ItemPath::item("pool", pool), "people work here")
                .help("add `max-gpus-per-job 2` or `max-time \"8h\"`, or `preemptible=#true`"),
        );
    }
}

/// Tiers whose jobs can hold a whole pool that people work on, with what the pool has.
pub fn blocking(lowered: &Lowered) -> IndexMap<(&TierName, &PoolName), (u64, String)> {
    let intent = &lowered.intent;
    let people = intent.workloads.values().filter(|workload| is_interactive(workload));
    let interactive: IndexSet<_> = people.map(|w| (&w.pool, &w.cluster)).collect();
    let mut blocking: IndexMap<(&TierName, &PoolName), (u64, String)> = IndexMap::new();
    for workload in intent.workloads.values() {
        let Workload { pool, cluster, tier: Some(name), .. } = workload else { continue };
        let Some(tier) = intent.tiers.get(name) else { continue };
        let unread = lowered.is_poisoned(&ItemPath::item("tier", name));
        if !interactive.contains(&(pool, cluster)) || unread || !quota::is_counted(lowered, pool) {
            continue;
        }
        let capacity = intent.capacity(pool, cluster);
        let Some(resource) = quota::resource_of(workload, &capacity) else { continue };
        let units = capacity.get(&resource).copied().unwrap_or_default();
        let below = |most: u32| u64::from(most) < units;
        let bounded = tier.preemptible
            || tier.max_gpus_per_job.is_some_and(below)
            || tier.max_time.is_some()
            || partitions_end_jobs(intent, cluster, pool, name)
            || quota::cap(intent, &workload.team, pool, cluster, &resource).is_some_and(below);
        if units > 1 && !bounded {
            let whole = (units, resource.plural());
            let most = blocking.entry((name, pool)).or_insert_with(|| whole.clone());
            *most = whole.max(most.clone());
        }
    }
    blocking
}

/// True for workloads that people sit at.
pub fn is_interactive(workload: &Workload) -> bool {
    workload.kind == WorkloadKind::Notebook
        || workload.tier.as_ref().is_some_and(|tier| tier.as_str() == INTERACTIVE)
}

/// True if every partition that takes jobs of the tier to the pool ends them.
pub fn partitions_end_jobs(
    intent: &Intent,
    cluster: &ClusterName,
    pool: &PoolName,
    tier: &TierName,
) -> bool {
    let Some(Scheduler::Slurm(slurm)) = intent.clusters.get(cluster).map(|c| &c.scheduler) else {
        return false;
    };
    let open = |p: &&fleetc_schema::intent::Partition| {
        p.pools.contains(pool) && (p.tiers.is_empty() || p.tiers.contains(tier))
    };
    let mut partitions = slurm.partitions.values().filter(open).peekable();
    partitions.peek().is_some() && partitions.all(|partition| partition.max_time.is_some())
}

/// `quota/priority-order`: a tier that gives way and goes first, and priorities that Kubernetes keeps
/// for itself.
pub fn priority_order(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    let item = |name: &TierName| ItemPath::item("tier", name);
    for (name, tier) in &intent.tiers {
        if tier.priority > HIGHEST_PRIORITY
            && let Some(cluster) = super::names::first_kubernetes(intent)
        {
            let title = format!(
                "priority {} of tier `{name}` is above 1000000000, which Kubernetes keeps for itself",
                tier.priority
            );
            found.push(
                Diagnostic::new(&rules::QUOTA_PRIORITY_ORDER, title)
                    .at(item(name).child("priority"), "too high for a PriorityClass")
                    .at(ItemPath::item("cluster", cluster), "a Kubernetes cluster")
                    .note("kube-apiserver refuses a PriorityClass above it")
                    .help("number the tiers from 100 to 1000: only their order matters"),
            );
        }
    }
    for (name, tier) in intent.tiers.iter().filter(|(_, tier)| tier.preemptible) {
        let above = |(other, stays): &(&TierName, &Tier)| {
            !stays.preemptible
                && tier.priority > stays.priority
                && !lowered.is_poisoned(&item(other))
                && meet(intent, name, other)
        };
        let Some((other, stays)) =
            intent.tiers.iter().filter(above).min_by_key(|(_, t)| t.priority)
        else {
            continue;
        };
        let title = format!(
            "tier `{name}` gives way and goes before `{other}`, which does not: {} is above {}",
            tier.priority, stays.priority
        );
        let lower = stays.priority.saturating_sub(1);
        found.push(
            Diagnostic::new(&rules::QUOTA_PRIORITY_ORDER, title)
                .at(item(name).child("priority"), "goes first")
                .at(item(name).child("preemptible"), "and is stopped for others")
                .at(item(other).child("priority"), "goes later and stays")
                .note("a stopped job waits before the one that it was stopped for, and takes its place again")
                .help(format!("write `priority={lower}` or less, or make it `preemptible=#false`")),
        );
    }
}

/// True if jobs of the two tiers can meet where running jobs make room for others.
fn meet(intent: &Intent, one: &TierName, other: &TierName) -> bool {
    let takes = |partition: &fleetc_schema::intent::Partition, tier| {
        partition.tiers.is_empty() || partition.tiers.contains(tier)
    };
    // A tier that only partitions name does not run in Kubernetes.
    let partitions = intent.clusters.values().filter_map(|cluster| match &cluster.scheduler {
        Scheduler::Slurm(slurm) => Some(slurm.partitions.values()),
        Scheduler::Kubernetes(_) => None,
    });
    let named: Vec<&TierName> = partitions.flatten().flat_map(|p| &p.tiers).collect();
    let runs_in = |tier: &TierName, cluster: &ClusterName| {
        let here = |w: &Workload| w.cluster == *cluster && w.tier.as_ref() == Some(tier);
        !named.contains(&tier) || intent.workloads.values().any(here)
    };
    intent.clusters.values().any(|cluster| match &cluster.scheduler {
        Scheduler::Kubernetes(_) => runs_in(one, &cluster.name) && runs_in(other, &cluster.name),
        Scheduler::Slurm(Slurm { preempt: None, .. }) => false,
        Scheduler::Slurm(slurm) => {
            let both = |p| takes(p, one) && takes(p, other);
            slurm.partitions.is_empty() || slurm.partitions.values().any(both)
        }
    })
}
