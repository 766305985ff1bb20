//! What decides who runs: limits and preemption.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{PreemptBy, PreemptMode, WorkloadKind};

use super::Fleet;

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
