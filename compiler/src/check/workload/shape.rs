//! The shape of a workload: its degrees, and what it asks for against what there is.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::intent::{
    Devices, Intent, Isolation, Kubernetes, Pool, QueueKind, Quota, Resource, Sharing, Workload,
};
use fleetc_schema::name::{PoolName, TeamName};
use fleetc_schema::units::Mib;

use super::{Job, jobs};
use crate::check::sharing;
use crate::lower::{Lowered, quoted};
use crate::sizing;

/// `workload/parallel-product`: degrees that do not make up the GPUs.
pub fn parallel_product(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        let Some(split) = job.workload.parallel else { continue };
        let (gpus, path) = (job.workload.gpus, job.item.child("gpus").child("parallel"));
        // Expert ranks are ranks of one pipeline stage, reused.
        let stage = [split.tensor, split.context, split.data];
        let stage: u128 = stage.iter().map(|degree| u128::from(*degree)).product();
        let product = stage * u128::from(split.pipeline);
        if product != u128::from(gpus) {
            let title =
                format!("workload `{}` has {gpus} GPUs, and its degrees make {product}", job.name);
            let mut finding = Diagnostic::new(&rules::WORKLOAD_PARALLEL_PRODUCT, title)
                .at(path, format!("{product} ranks"))
                .at(job.item.child("gpus"), format!("{gpus} GPUs"))
                .note(format!(
                    "tensor {} × pipeline {} × context {} × data {} = {product}; what is not said is 1",
                    split.tensor, split.pipeline, split.context, split.data
                ));
            let rest = product / u128::from(split.data.max(1));
            if rest > 0 && u128::from(gpus).is_multiple_of(rest) {
                let data = u128::from(gpus) / rest;
                finding = finding.help(format!("write `data={data}`, or `gpus {product}`"));
            } else {
                finding = finding.help(format!("write `gpus {product}`, or other degrees"));
            }
            found.push(finding);
        } else if !stage.is_multiple_of(u128::from(split.expert.max(1))) {
            let title = format!(
                "workload `{}` has {} expert ranks, and {stage} ranks to place them on",
                job.name, split.expert
            );
            found.push(
                Diagnostic::new(&rules::WORKLOAD_PARALLEL_PRODUCT, title)
                    .at(path.child("expert"), format!("does not divide {stage}"))
                    .note(format!(
                        "expert ranks reuse those of a stage: tensor {} × context {} × data {} = {stage}",
                        split.tensor, split.context, split.data
                    ))
                    .help(format!("take a divisor of {stage}")),
            );
        }
    }
}

/// `workload/no-tenancy-decision`: a pool of parts, and nothing says which part or with whom.
pub fn no_tenancy_decision(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        let workload = job.workload;
        if workload.slice.is_some() || workload.isolation.is_some() {
            continue;
        }
        let units = lowered.intent.capacity(&workload.pool, &workload.cluster);
        let finding = match (&job.pool.sharing, units.len()) {
            (Sharing::Mps(_) | Sharing::TimeSlicing(_), _) if !has_other_finding(&job) => {
                let title = format!("workload `{}` does not say that it may share a GPU", job.name);
                Diagnostic::new(&rules::WORKLOAD_NO_TENANCY_DECISION, title)
                    .at(job.item.clone(), "no `isolation`")
                    .note("neighbours on the GPU take its time, and under MPS a fault of one ends all")
                    .help("add `isolation \"shared\"`, or take a pool of slices or whole GPUs")
            }
            (Sharing::Mig { .. }, 2..) => {
                let names = quoted(units.keys());
                let title = format!("workload `{}` does not say which slice it asks for", job.name);
                let first = units.keys().map(ToString::to_string).next().unwrap_or_default();
                let finding = Diagnostic::new(&rules::WORKLOAD_NO_TENANCY_DECISION, title)
                    .at(job.item.clone(), "no `slice`")
                    .note(format!("pool `{}` hands out {names}", workload.pool));
                let (fit, not) = fitting(&job);
                let example = fit.first().cloned().unwrap_or(first);
                let finding = match (fit.is_empty(), not.is_empty()) {
                    (false, false) => finding.severity(Severity::Error).note(format!(
                        "{} holds it, {} does not",
                        fit.join(", "),
                        not.join(", ")
                    )),
                    _ => finding,
                };
                finding.help(format!("add `slice \"{example}\"`"))
            }
            _ => continue,
        };
        found.push(finding.at(job.pool_path().child("sharing"), "how its GPUs are shared"));
    }
}

/// True if another rule says of the same workload that it must not share a GPU.
fn has_other_finding(job: &Job<'_>) -> bool {
    sharing::promises(job.workload) || sharing::wants_whole_gpus(job.workload)
}

/// Slices of the pool that hold the workload, and those that do not; of unknown size or need neither.
fn fitting(job: &Job<'_>) -> (Vec<String>, Vec<String>) {
    let (mut fit, mut not): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let Some(need) = sizing::need(job.workload) else { return (fit, not) };
    let slots = job.classes().flat_map(|class| &class.node.gpus);
    let instances = slots.filter_map(|slot| slot.mig.as_ref()).flatten();
    let mut sizes: Vec<(Mib, String)> = instances
        .filter_map(|instance| Some((instance.memory?, instance.profile.to_string())))
        .collect();
    sizes.sort();
    sizes.dedup();
    for (size, name) in sizes {
        let list = if need.least.0 <= size.to_bytes().0 { &mut fit } else { &mut not };
        list.push(name);
    }
    (fit, not)
}

/// `workload/never-schedulable`: more than there is, or something that there is not.
pub fn never_schedulable(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        let finding = no_such_unit(&job)
            .or_else(|| several_shares(&job))
            .or_else(|| above_tier(&job))
            .or_else(|| above_pool(&job))
            .or_else(|| above_quota(&job));
        found.extend(finding);
    }
}

fn never(title: String) -> Diagnostic {
    Diagnostic::new(&rules::WORKLOAD_NEVER_SCHEDULABLE, title)
}

/// The pool hands out nothing that the workload accepts.
fn no_such_unit(job: &Job<'_>) -> Option<Diagnostic> {
    let Workload { pool, isolation, .. } = job.workload;
    let units = job.lowered.intent.capacity(pool, &job.workload.cluster);
    if units.is_empty() {
        // Every GPU of the pool may be gone by exception; only a system without says it for sure.
        let mut classes = job.classes().peekable();
        let none = classes.peek().is_some() && classes.all(|class| class.node.gpu.is_none());
        return none.then(|| {
            never(format!("workload `{}` asks for a GPU, and pool `{pool}` has none", job.name))
                .at(job.item.child("pool"), "nodes without GPUs")
                .at(job.pool_path().child("system"), "no GPU in it")
                .help("take a pool of GPUs")
        });
    }
    let wanted = match isolation {
        Some(Isolation::Whole) => "a whole GPU",
        Some(Isolation::Slice) => "a GPU or slice of its own",
        Some(Isolation::Shared) | None => return None,
    };
    let accepted = units.keys().any(|unit| match unit {
        Resource::Gpu => true,
        Resource::Slice(_) => *isolation == Some(Isolation::Slice),
        Resource::Shared => false,
    });
    if accepted {
        return None;
    }
    let there = quoted(units.keys());
    Some(
        never(format!("workload `{}` asks for {wanted}, and pool `{pool}` has none", job.name))
            .at(job.item.child("isolation"), "accepts no less")
            .at(job.pool_path().child("sharing"), format!("hands out {there}"))
            .help("take another pool, or accept what this one hands out"),
    )
}

/// Several shares for one pod: the device plugin refuses them as it is configured.
///
/// Source: NVIDIA/k8s-device-plugin v0.20.0 README, `failRequestsGreaterThanOne`: on by default
/// under MPS, and on in what fleetc writes for time-slicing.
fn several_shares(job: &Job<'_>) -> Option<Diagnostic> {
    let how = match &job.pool.sharing {
        Sharing::Mps(_) => "MPS",
        Sharing::TimeSlicing(_) => "time-slicing",
        Sharing::Whole | Sharing::Mig { .. } => return None,
    };
    job.kubernetes()?;
    let gpus = job.workload.gpus;
    (gpus > 1).then(|| {
        never(format!("workload `{}` asks for {gpus} shares of GPUs under {how}", job.name))
            .at(job.item.child("gpus"), "one a pod at most")
            .at(job.pool_path().child("sharing"), "hands out shares")
            .note("two shares may be of one GPU and bring no more of it, so the device plugin is told to refuse them: the pod ends with UnexpectedAdmissionError")
            .help("ask for 1, or take a pool of whole GPUs")
    })
}

/// A job larger than its tier lets in.
fn above_tier(job: &Job<'_>) -> Option<Diagnostic> {
    let (name, gpus) = (job.workload.tier.as_ref()?, job.workload.gpus);
    let most = job.lowered.intent.tiers.get(name)?.max_gpus_per_job?;
    (gpus > most).then(|| {
        let title = format!(
            "workload `{}` asks for {gpus} GPUs, and tier `{name}` lets in {most}",
            job.name
        );
        never(title)
            .at(job.item.child("gpus"), format!("{gpus} in one job"))
            .at(ItemPath::item("tier", name).child("max-gpus-per-job"), format!("{most} at most"))
            .help("take another tier, or a smaller job")
    })
}

/// More than the pool has: by the least number of replicas; the most may wait.
fn above_pool(job: &Job<'_>) -> Option<Diagnostic> {
    let Workload { pool, cluster, gpus, replicas, .. } = job.workload;
    let resource = sizing::resource(&job.lowered.intent, job.workload)?;
    let has = *job.lowered.intent.capacity(pool, cluster).get(&resource)?;
    let (least, most) = (total(*gpus, replicas.min), total(*gpus, replicas.max));
    let unit = resource.plural();
    let place = || match u64::from(*gpus) > has {
        true => job.item.child("gpus"),
        false => job.item.child("replicas"),
    };
    if least > has {
        let title =
            format!("workload `{}` asks for {least} {unit}, and pool `{pool}` has {has}", job.name);
        return Some(
            never(title)
                .at(place(), asked(job, replicas.min))
                .at(job.item.child("pool"), format!("{has} {unit}"))
                .help(format!("stay within {has}, or take a larger pool")),
        );
    }
    (most > has).then(|| {
        let title = format!(
            "workload `{}` may ask for {most} {unit}, and pool `{pool}` has {has}",
            job.name
        );
        never(title)
            .severity(Severity::Note)
            .at(job.item.child("replicas").child("max"), asked(job, replicas.max))
            .at(job.item.child("pool"), format!("{has} {unit}"))
            .help(format!("no more than {} replicas ever start", has / u64::from((*gpus).max(1))))
    })
}

fn total(gpus: u32, replicas: u32) -> u64 {
    u64::from(gpus) * u64::from(replicas)
}

fn asked(job: &Job<'_>, replicas: u32) -> String {
    match (job.workload.gpus, replicas) {
        (gpus, 1) => gpus.to_string(),
        (1, replicas) => replicas.to_string(),
        (gpus, replicas) => format!("{replicas} × {gpus} = {}", total(gpus, replicas)),
    }
}

/// More than the team may ever have.
fn above_quota(job: &Job<'_>) -> Option<Diagnostic> {
    let intent = &job.lowered.intent;
    let Workload { team, pool, cluster, gpus, replicas, .. } = job.workload;
    let resource = sizing::resource(intent, job.workload)?;
    if !intent.is_governed(pool, cluster) || job.lowered.is_poisoned(&ItemPath::item("team", team))
    {
        return None;
    }
    let on = |quota: &&Quota| quota.pool == *pool && quota.cluster == *cluster;
    let counts = |quota: &&Quota| on(quota) && quota.resource == resource;
    let kin = kin(intent, team);
    let has = |name: &&TeamName| {
        intent.teams.get(*name).is_some_and(|team| team.quotas.iter().any(|q| counts(&q)))
    };
    let unit = resource.plural();
    if !kin.iter().any(has) {
        let title = format!(
            "team `{team}` of workload `{}` has no quota on {unit} of pool `{pool}`",
            job.name
        );
        let quotas = intent.teams.values().flat_map(|team| &team.quotas);
        let first = quotas.into_iter().find(on)?;
        return Some(
            never(title)
                .at(job.item.child("team"), "may not use it")
                .at(&first.path, "a quota governs the pool")
                .note("a pool with any quota is open to teams with one only")
                .help(format!("give `{team}` a quota on `{pool}`, or take another pool")),
        );
    }
    let least = total(*gpus, replicas.min);
    let (cap, quota) = cap(job, &resource)?;
    (least > cap).then(|| {
        let title = format!(
            "workload `{}` asks for {least} {unit}, and team `{team}` may have {cap} at most",
            job.name
        );
        let place = if u64::from(*gpus) > cap { "gpus" } else { "replicas" };
        let word = if quota.limit.is_some() { "limit" } else { "guaranteed" };
        never(title)
            .at(job.item.child(place), asked(job, replicas.min))
            .at(quota.path.child(word), format!("{cap} at most"))
            .help(format!("stay within {cap}, or raise `{word}`"))
    })
}

/// The team, those that it is part of, and those that are part of it: a quota of any may carry it.
fn kin<'a>(intent: &'a Intent, team: &'a TeamName) -> Vec<&'a TeamName> {
    let mut kin = vec![team];
    let mut up = team;
    while let Some(parent) = intent.teams.get(up).and_then(|team| team.parent.as_ref()) {
        if kin.contains(&parent) {
            break;
        }
        kin.push(parent);
        up = parent;
    }
    // A parent stands before its children.
    let mut below = vec![team];
    for (name, item) in &intent.teams {
        if item.parent.as_ref().is_some_and(|parent| below.contains(&parent)) {
            below.push(name);
        }
    }
    kin.extend(below.into_iter().skip(1));
    kin
}

/// The most that the team itself may have of the resource, with the quota that says so: its limit,
/// or what a ResourceQuota caps it at where nothing queues.
fn cap<'a>(job: &Job<'a>, resource: &Resource) -> Option<(u64, &'a Quota)> {
    let intent = &job.lowered.intent;
    let Workload { team, pool, cluster, .. } = job.workload;
    let team = intent.teams.get(team)?;
    let counts = |quota: &&Quota| {
        quota.pool == *pool && quota.cluster == *cluster && quota.resource == *resource
    };
    let quota = team.quotas.iter().find(counts)?;
    match (quota.limit, job.kubernetes()) {
        (Some(limit), _) => Some((u64::from(limit), quota)),
        (None, Some(kubernetes)) if is_capped(job, kubernetes, resource) => {
            Some((u64::from(quota.guaranteed), quota))
        }
        _ => None,
    }
}

/// True if a ResourceQuota counts this resource and no other pool goes by the same name, which
/// would make the cap a sum of several.
fn is_capped(job: &Job<'_>, kubernetes: &Kubernetes, resource: &Resource) -> bool {
    let intent = &job.lowered.intent;
    let name = job.pool.sharing.kubernetes_resource(resource);
    let same = |(other, item): (&PoolName, &Pool)| {
        let cluster = &job.workload.cluster;
        *other != job.workload.pool
            && item.devices == Devices::DevicePlugin
            && intent
                .capacity(other, cluster)
                .keys()
                .any(|unit| item.sharing.kubernetes_resource(unit) == name)
    };
    kubernetes.queue.kind == QueueKind::None
        && job.pool.devices == Devices::DevicePlugin
        && !intent.pools.iter().any(same)
}
