//! The shape of a workload against the scheduler of its cluster.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::intent::{Scheduler, WorkloadKind};

use super::{Job, jobs};
use crate::lower::{Lowered, quoted};

/// `workload/no-queue`: no partition takes its jobs.
///
/// A cluster that states no partition has them elsewhere, as has one whose `extra` lines bring some.
pub fn no_queue(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        let Scheduler::Slurm(slurm) = &job.cluster.scheduler else { continue };
        let elsewhere = |line: &String| {
            let line = line.trim_start().to_ascii_lowercase();
            line.starts_with("partitionname") || line.starts_with("include")
        };
        let unread = lowered.is_poisoned(&ItemPath::item("cluster", &job.workload.cluster));
        if unread || slurm.partitions.is_empty() || slurm.extra.values().flatten().any(elsewhere) {
            continue;
        }
        let pool = &job.workload.pool;
        let holds = slurm.partitions.iter().filter(|(_, partition)| partition.pools.contains(pool));
        let holds: Vec<_> = holds.collect();
        let takes = holds.iter().any(|(_, partition)| {
            let tier = job.workload.tier.as_ref();
            partition.tiers.is_empty() || tier.is_none_or(|tier| partition.tiers.contains(tier))
        });
        if takes {
            continue;
        }
        let cluster = ItemPath::item("cluster", &job.workload.cluster).child("slurm");
        let (title, finding) = match (holds.first(), &job.workload.tier) {
            (Some((name, _)), Some(tier)) => {
                let names = quoted(holds.iter().map(|(name, _)| *name));
                let place = cluster.keyed("partition", [name]).child("tiers");
                (
                    format!(
                        "no partition of pool `{pool}` takes tier `{tier}` of workload `{}`",
                        job.name
                    ),
                    (
                        job.item.child("tier"),
                        place,
                        format!("{names}: other tiers"),
                        format!("add `{tier}` to the tiers of {names}, or take another tier"),
                    ),
                )
            }
            _ => (
                format!("no partition holds pool `{pool}` of workload `{}`", job.name),
                (
                    job.item.child("pool"),
                    cluster,
                    "in none of its partitions".to_owned(),
                    format!("add `{pool}` to the pools of a partition"),
                ),
            ),
        };
        let (place, other, label, help) = finding;
        found.push(
            Diagnostic::new(&rules::WORKLOAD_NO_QUEUE, title)
                .at(place, "no job of it can be submitted")
                .at(other, label)
                .help(help),
        );
    }
}

/// `workload/no-gang`: pods that need each other, and nothing that starts them together. Pretraining
/// has a rule of its own.
pub fn no_gang(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        let Some(queue) = job.without_queue() else { continue };
        if job.workload.kind == WorkloadKind::Pretrain || !job.spans_nodes() {
            continue;
        }
        let (gpus, node) = (job.workload.gpus, job.units_of_node().unwrap_or(1));
        let title = format!(
            "workload `{}` needs {gpus} GPUs on several nodes, and nothing starts its pods together",
            job.name
        );
        let finding = Diagnostic::new(&rules::WORKLOAD_NO_GANG, title);
        let alone = is_single_tenant(&job);
        let finding = if alone { finding.severity(Severity::Note) } else { finding };
        found.push(
            finding
                .at(job.item.child("gpus"), format!("{gpus} GPUs, {node} a node at most"))
                .at(queue, "admits pods one by one")
                .note(format!(
                    "pods that start hold their GPUs and wait for the rest: two such jobs can hold each other's GPUs for ever{}",
                    if alone { "; here one team only uses the pool" } else { "" }
                ))
                .help("queue with `kueue`, `kai` or `volcano`, which admit all pods of a job or none"),
        );
    }
}

/// True if one team alone may use the pool.
fn is_single_tenant(job: &Job<'_>) -> bool {
    let intent = &job.lowered.intent;
    let (pool, cluster) = (&job.workload.pool, &job.workload.cluster);
    let teams = match intent.is_governed(pool, cluster) {
        true => intent
            .teams
            .values()
            .filter(|team| team.quotas.iter().any(|q| q.pool == *pool && q.cluster == *cluster))
            .count(),
        false => intent.teams.len(),
    };
    teams < 2
}

/// `workload/service-on-slurm`: jobs end, services do not.
pub fn service_on_slurm(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        let slurm = matches!(job.cluster.scheduler, Scheduler::Slurm(_));
        if !slurm || job.workload.kind != WorkloadKind::Inference {
            continue;
        }
        let cluster = &job.workload.cluster;
        let title = format!("workload `{}` is a service, and `{cluster}` is Slurm", job.name);
        found.push(
            Diagnostic::new(&rules::WORKLOAD_SERVICE_ON_SLURM, title)
                .at(job.item.child("kind"), "runs without an end")
                .at(ItemPath::item("cluster", cluster).child("slurm"), "runs jobs that end")
                .note("a job ends at the partition's time limit, and Slurm neither rolls nor scales it nor sends it traffic")
                .help("serve from a Kubernetes cluster; for a bounded set of items the kind is `batch-scoring`"),
        );
    }
}

/// `workload/pretrain-on-plain-kubernetes`: pretraining without a queue.
pub fn pretrain_on_plain_kubernetes(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        let Some(queue) = job.without_queue() else { continue };
        if job.workload.kind != WorkloadKind::Pretrain {
            continue;
        }
        let cluster = &job.workload.cluster;
        let title =
            format!("workload `{}` pretrains in `{cluster}`, where nothing queues", job.name);
        let finding = Diagnostic::new(&rules::WORKLOAD_PRETRAIN_ON_PLAIN_KUBERNETES, title)
            .at(job.item.child("kind"), "a long job of many GPUs")
            .at(queue, "no queue");
        let finding = match job.spans_nodes() {
            true => finding.note(
                "its pods start one by one: those that run hold their GPUs and wait for the rest",
            ),
            false => finding,
        };
        found.push(
            finding
                .note("without a queue there is no fair share, no preemption and no order: who asks first holds the GPUs")
                .help("queue with `kueue`, `kai` or `volcano`, or pretrain under Slurm"),
        );
    }
}
