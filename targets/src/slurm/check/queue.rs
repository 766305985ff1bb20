//! What decides who runs: limits and preemption.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{
    Intent, PreemptBy, PreemptMode, Quota, Resource, Workload, WorkloadKind,
};

use super::Fleet;
use crate::slurm::qos::{self, Qos, Use};
use crate::slurm::tres::{GPU, typed};

/// `slurm/limits-not-enforced`: quotas, tiers or preemption by QOS in a cluster without a database.
/// They are accounts and QOS in Slurm, which slurmdbd keeps.
pub fn limits_not_enforced(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    if fleet.slurm.database.is_some() {
        return;
    }
    let of_team = |(name, team): (_, &fleetc_schema::intent::Team)| {
        let quota = team.quotas.iter().find(|quota| quota.cluster == fleet.cluster.name)?;
        Some((quota.path.clone(), format!("a quota of team `{name}`")))
    };
    let tiers = fleet.slurm.partitions.iter().filter(|(_, partition)| !partition.tiers.is_empty());
    let tiers = tiers.map(|(name, _)| {
        let path = fleet.path().keyed("partition", [name]).child("tiers");
        (path, format!("tiers of partition `{name}`"))
    });
    let preempt = fleet.slurm.preempt.filter(|preempt| preempt.by == PreemptBy::Qos);
    let preempt = preempt.map(|_| (fleet.path().child("preempt"), "preemption by QOS".to_owned()));
    let ignored: Vec<(ItemPath, String)> =
        fleet.intent.teams.iter().filter_map(of_team).chain(tiers).chain(preempt).collect();
    if ignored.is_empty() {
        return;
    }
    let title = format!("nothing in cluster `{}` keeps to quotas and tiers", fleet.cluster.name);
    let mut finding = Diagnostic::new(&rules::SLURM_LIMITS_NOT_ENFORCED, title)
        .at(fleet.path(), "no `database` in here");
    for (path, what) in ignored {
        finding = finding.at(path, what);
    }
    found.push(
        finding
            .note("accounts, QOS and their limits are kept by slurmdbd; without it any job runs")
            .help("add `database \"db1\"`, the host of slurmdbd"),
    );
}

/// `slurm/requeue`: training that is stopped for others and begins again from nothing.
pub fn requeue(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    let Some(preempt) = fleet.slurm.preempt else { return };
    if preempt.mode != PreemptMode::Requeue {
        return;
    }
    for (name, workload) in &fleet.intent.workloads {
        let trains = matches!(workload.kind, WorkloadKind::Pretrain | WorkloadKind::Finetune);
        let here = workload.cluster == fleet.cluster.name;
        let Some(tier) = &workload.tier else { continue };
        let stopped = fleet.intent.tiers.get(tier).is_some_and(|tier| tier.preemptible);
        if !trains || !here || !stopped || workload.checkpoint.is_some() {
            continue;
        }
        let path = ItemPath::item("workload", name);
        let title = format!("workload `{name}` begins again from nothing when it is preempted");
        found.push(
            Diagnostic::new(&rules::SLURM_REQUEUE, title)
                .at(path, "no `checkpoint` in here")
                .at(ItemPath::item("tier", tier), "its jobs may be stopped for others")
                .at(fleet.path().child("preempt").child("mode"), "they go back into the queue")
                .help("add `checkpoint every=\"20m\"`, or give it a tier that is not preemptible"),
        );
    }
}

/// `slurm/job-above-qos`: a job that each QOS of its team is too small for.
///
/// A job has one QOS, so what a team is guaranteed and what it borrows do not add up for it.
pub fn job_above_qos(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    let all = qos::all(fleet.intent, fleet.cluster, fleet.slurm);
    for (name, workload) in &fleet.intent.workloads {
        let here = workload.cluster == fleet.cluster.name;
        if !here || !fleet.intent.is_governed(&workload.pool, &fleet.cluster.name) {
            continue;
        }
        let gpus = u64::from(workload.gpus);
        let limits = quotas_above(fleet.intent, workload).into_iter();
        let mut limits = limits.filter_map(|quota| quota.limit);
        if limits.any(|limit| gpus > u64::from(limit)) {
            // That is told as such, whatever the scheduler.
            continue;
        }
        let caps: Option<Vec<(&Qos, u64)>> = qos_of(fleet, workload, &all)
            .into_iter()
            .map(|qos| Some((qos, most_in_one_job(qos, workload)?)))
            .collect();
        // A QOS without a cap takes it.
        let Some(caps) = caps else { continue };
        let Some(most) = caps.iter().map(|(_, most)| *most).max().filter(|most| *most < gpus)
        else {
            continue;
        };
        let title = format!(
            "workload `{name}` asks for {gpus} GPUs, and no QOS of team `{}` takes more than {most} in \
             pool `{}`",
            workload.team, workload.pool
        );
        let mut finding = Diagnostic::new(&rules::SLURM_JOB_ABOVE_QOS, title)
            .at(ItemPath::item("workload", name).child("gpus"), format!("{gpus} in one job"));
        for (qos, most) in &caps {
            let what = match qos.use_ {
                Use::Guarantee(_) => "what the team is guaranteed, less what teams within it are",
                Use::Borrow(_) => "what it may borrow, its limit less its guarantee",
                Use::Tier { .. } => "what its tier allows a job",
            };
            finding = finding.note(format!("QOS `{}` takes {most}: {what}", qos.name));
        }
        if let Some(quota) = quotas_above(fleet.intent, workload).first() {
            finding = finding.at(quota.path.child("guaranteed"), "guaranteed");
        }
        let held = caps.iter().find(|(qos, _)| matches!(qos.use_, Use::Guarantee(_)));
        let more = gpus.saturating_sub(held.map_or(0, |(_, most)| *most));
        found.push(
            finding
                .note("a job has one QOS: it cannot take a part from each")
                .help(format!("guarantee the team {more} more, or ask for {most} at most")),
        );
    }
}

/// The QOS that a workload may run in.
fn qos_of<'a>(fleet: Fleet<'_>, workload: &Workload, all: &'a [Qos]) -> Vec<&'a Qos> {
    let Fleet { intent, cluster, slurm } = fleet;
    let Some(team) = intent.teams.get(&workload.team) else { return Vec::new() };
    let mine = qos::of_account(intent, cluster, slurm, &workload.team, team, all);
    let partitions =
        slurm.partitions.values().filter(|partition| partition.pools.contains(&workload.pool));
    let taken: Vec<&str> = partitions
        .filter_map(|partition| qos::allowed(intent, cluster, partition, all))
        .flatten()
        .collect();
    let may = |qos: &&Qos| mine.contains(&qos.name) && taken.contains(&qos.name.as_str());
    all.iter().filter(may).collect()
}

/// GPUs that a job of a QOS may have of what a workload asks for; none if there is no cap.
fn most_in_one_job(qos: &Qos, workload: &Workload) -> Option<u64> {
    let slice = workload.slice.as_ref().map(|profile| typed(&profile.to_string()));
    let of_all = qos.grp_tres.get(GPU).copied();
    let of_slice = slice.and_then(|slice| qos.grp_tres.get(&slice).copied());
    [of_all, of_slice, qos.max_gpus_per_job.map(u64::from)].into_iter().flatten().min()
}

/// The quotas that a workload counts against: of its team, and of the teams around it.
fn quotas_above<'a>(intent: &'a Intent, workload: &Workload) -> Vec<&'a Quota> {
    let counts = |quota: &&Quota| {
        quota.pool == workload.pool
            && quota.cluster == workload.cluster
            && workload
                .slice
                .as_ref()
                .is_none_or(|slice| quota.resource == Resource::Slice(slice.clone()))
    };
    let mut quotas = Vec::new();
    let mut at = intent.teams.get(&workload.team);
    while let Some(team) = at {
        quotas.extend(team.quotas.iter().filter(counts));
        // A team stands after its parent, so the walk ends.
        at = team.parent.as_ref().and_then(|parent| intent.teams.get(parent));
    }
    quotas
}

/// `slurm/tier-holds-guarantee`: a partition lets jobs that do not give way onto GPUs that teams are
/// guaranteed.
pub fn tier_holds_guarantee(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    let by_qos = |preempt: fleetc_schema::intent::Preempt| preempt.by == PreemptBy::Qos;
    if fleet.slurm.database.is_none() || !fleet.slurm.preempt.is_some_and(by_qos) {
        return;
    }
    for (name, partition) in &fleet.slurm.partitions {
        let mut pools = partition.pools.iter();
        let Some(pool) = pools.find(|pool| fleet.intent.is_governed(pool, &fleet.cluster.name))
        else {
            continue;
        };
        let mut tiers = partition.tiers.iter();
        let stays = |tier: &&_| fleet.intent.tiers.get(*tier).is_some_and(|tier| !tier.preemptible);
        let Some(tier) = tiers.find(stays) else { continue };
        let title = format!(
            "jobs of tier `{tier}` in partition `{name}` may hold what teams are guaranteed of pool `{pool}`"
        );
        let quotas = fleet.intent.teams.values().flat_map(|team| &team.quotas);
        let on = |quota: &&Quota| quota.pool == *pool && quota.cluster == fleet.cluster.name;
        let mut finding = Diagnostic::new(&rules::SLURM_TIER_HOLDS_GUARANTEE, title)
            .at(fleet.path().keyed("partition", [name]).child("tiers"), "takes them")
            .at(ItemPath::item("tier", tier), "its jobs do not give way");
        if let Some(quota) = quotas.into_iter().find(on) {
            finding = finding.at(quota.path.clone(), "a guarantee");
        }
        found.push(
            finding
                .note(format!(
                    "QOS `{tier}` has no cap of its own, and no QOS of a team preempts it"
                ))
                .help("give the partition tiers that are `preemptible` only, or a pool without quotas"),
        );
    }
}
