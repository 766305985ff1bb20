//! Shared GPUs: who may share, with whom, and with what at stake.

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::Gpu;
use fleetc_schema::diag::{Diagnostic, Rule, rules};
use fleetc_schema::intent::{Pool, Shared, Sharing, Workload, WorkloadKind};
use fleetc_schema::name::{PoolName, WorkloadName};
use fleetc_schema::units::{Bytes, Mib};
use fleetc_schema::version::Version;

use crate::lower::Lowered;
use crate::lower::quoted;

/// The tier that is taken for user-facing, by its name.
const PRODUCTION: &str = "production";
/// The most clients of one GPU under MPS, and on a GPU below compute capability 7.5. Source:
/// NVIDIA/k8s-device-plugin v0.20.0 `cmd/mps-control-daemon/mps/device.go`.
const MPS_CLIENTS: (u32, u32) = (48, 16);
/// Parameters above which fine-tuning is taken for training that wants a whole GPU. A choice of ours.
const LARGE_FINETUNE: u64 = 3_000_000_000;

/// The way of sharing of a pool, if processes share its GPUs.
fn shared(pool: &Pool) -> Option<&Shared> {
    match &pool.sharing {
        Sharing::Mps(shared) | Sharing::TimeSlicing(shared) => Some(shared),
        Sharing::Whole | Sharing::Mig { .. } => None,
    }
}

fn path(pool: &PoolName) -> ItemPath {
    ItemPath::item("pool", pool).child("sharing")
}

/// Workloads with the pool that they run in.
fn workloads(lowered: &Lowered) -> impl Iterator<Item = (&WorkloadName, &Workload, &Pool)> {
    let pool = |workload: &Workload| lowered.intent.pools.get(&workload.pool);
    lowered.intent.workloads.iter().filter_map(move |(name, w)| Some((name, w, pool(w)?)))
}

/// `sharing/slo-on-time-slicing` and `sharing/slo-on-mps`: promises on GPUs without isolation.
pub fn slo(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, workload, pool) in workloads(lowered) {
        let (rule, how, why): (&'static Rule, _, _) = match &pool.sharing {
            Sharing::TimeSlicing(_) => (
                &rules::SHARING_SLO_ON_TIME_SLICING,
                "time-slicing",
                "clients take turns without a share of their own: one busy neighbour decides the latency",
            ),
            Sharing::Mps(_) => (
                &rules::SHARING_SLO_ON_MPS,
                "MPS",
                "clients share one fault domain: a fault of one ends all of them",
            ),
            Sharing::Whole | Sharing::Mig { .. } => continue,
        };
        let item = ItemPath::item("workload", name);
        let production = workload.tier.as_ref().is_some_and(|tier| tier.as_str() == PRODUCTION);
        let (place, promise) = match (&workload.slo, production) {
            (Some(_), _) => (item.child("slo"), "has an SLO"),
            (None, true) => (item.child("tier"), "is of tier `production`"),
            (None, false) => continue,
        };
        let title = format!("workload `{name}` {promise} and runs under {how}");
        found.push(
            Diagnostic::new(rule, title)
                .at(place, "a promise to users")
                .at(path(&workload.pool), "GPUs without isolation")
                .note(why)
                .help("run it on a whole GPU or on a MIG slice"),
        );
    }
}

/// `sharing/mps-many-teams`: one fault domain for several teams.
pub fn mps_many_teams(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    for (name, pool) in &intent.pools {
        let Sharing::Mps(Shared { team: None, .. }) = &pool.sharing else { continue };
        let on_pool: Vec<_> = intent
            .teams
            .iter()
            .filter(|(_, team)| team.quotas.iter().any(|quota| quota.pool == *name))
            .map(|(name, _)| name)
            .collect();
        let open = on_pool.is_empty();
        let teams: Vec<_> = if open { intent.teams.keys().collect() } else { on_pool };
        if teams.len() < 2 {
            continue;
        }
        let title = format!("MPS pool `{name}` is open to {} teams", teams.len());
        let finding = Diagnostic::new(&rules::SHARING_MPS_MANY_TEAMS, title)
            .at(path(name), "one fault domain")
            .note(format!("{} may use it; a fault of one client ends all of them", quoted(teams)));
        found.push(match open {
            true => finding.help("add `team=\"…\"`, or give one team a quota on it"),
            false => finding.help("add `team=\"…\"`, or split the pool by team"),
        });
    }
}

/// `sharing/memory-oversubscribed`: the peaks of the clients of one GPU exceed its memory.
pub fn memory_oversubscribed(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, pool) in &lowered.intent.pools {
        // Under MPS each client has a share of its own: what exceeds it does not fit.
        let Sharing::TimeSlicing(shared) = &pool.sharing else { continue };
        let clients = shared.replicas as usize;
        let class = lowered.intent.classes_of_pool(name).next();
        let gpu = class.and_then(|class| class.node.gpu.as_ref());
        let Some((key, memory)) = gpu.and_then(|gpu| Some((&gpu.key, gpu.memory?.nominal))) else {
            continue;
        };
        // The largest peaks that may meet on one GPU; one that is too large alone does not fit, which
        // is another finding.
        let mut peaks: Vec<(Bytes, &WorkloadName)> = Vec::new();
        for (workload_name, workload, _) in workloads(lowered) {
            let peak = workload.memory.filter(|peak| *peak <= memory.to_bytes());
            if let (Some(peak), true) = (peak, workload.pool == *name) {
                let count = (workload.replicas.max as usize).min(clients);
                peaks.extend(std::iter::repeat_n((peak, workload_name), count));
            }
        }
        peaks.sort_by(|a, b| b.cmp(a));
        peaks.truncate(clients);
        let sum: u64 = peaks.iter().map(|(peak, _)| peak.0).fold(0, u64::saturating_add);
        if sum <= memory.to_bytes().0 {
            continue;
        }
        let mut names: Vec<&WorkloadName> = peaks.iter().map(|(_, name)| *name).collect();
        names.dedup();
        let wanted: Mib = Bytes(sum).to_mib_ceil();
        let title =
            format!("{} clients of one GPU may need {wanted}, and {key} has {memory}", peaks.len());
        let finding = Diagnostic::new(&rules::SHARING_MEMORY_OVERSUBSCRIBED, title)
            .at(path(name), format!("{clients} clients a GPU"))
            .note("nothing bounds the memory of a client here: the last one to ask gets nothing");
        let finding = names.iter().fold(finding, |finding, name| {
            finding.at(ItemPath::item("workload", name).child("memory"), "peak of a client")
        });
        found.push(
            finding.help("lower `replicas`, or use MIG slices, which have memory of their own"),
        );
    }
}

/// `sharing/replicas`: a number of clients that the device plugin refuses.
pub fn replicas(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, pool) in &lowered.intent.pools {
        let Some(shared) = shared(pool) else { continue };
        let most = mps_clients(lowered.gpus.get(name));
        let (label, help) = match (&pool.sharing, shared.replicas) {
            (_, 0 | 1) => ("fewer than 2", "write 2 or more, or `sharing \"whole\"`".to_owned()),
            (Sharing::Mps(_), count) if count > most => {
                ("more than MPS takes", format!("write {most} at most"))
            }
            _ => continue,
        };
        let title = format!("the device plugin refuses `replicas={}`", shared.replicas);
        found.push(
            Diagnostic::new(&rules::SHARING_REPLICAS, title)
                .at(path(name).child("replicas"), label)
                .note("its pods end with an error, and the node advertises no GPU")
                .help(help),
        );
    }
}

fn mps_clients(gpu: Option<&Gpu>) -> u32 {
    let capability = gpu.and_then(|gpu| gpu.compute_capability.parse::<Version>().ok());
    match capability {
        Some(capability) if !capability.is_at_least(7, 5) => MPS_CLIENTS.1,
        _ => MPS_CLIENTS.0,
    }
}

/// `sharing/ambiguous-resource`: a share of a GPU under the name of a GPU.
pub fn ambiguous_resource(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, pool) in &lowered.intent.pools {
        if shared(pool).is_none_or(|shared| shared.rename) {
            continue;
        }
        let title = format!("pool `{name}` advertises shares of GPUs as `nvidia.com/gpu`");
        found.push(
            Diagnostic::new(&rules::SHARING_AMBIGUOUS_RESOURCE, title)
                .at(path(name).child("rename"), "shares have no name of their own")
                .note("a pod that asks for a GPU may get a share, and no quota tells the two apart")
                .help("remove `rename`: shares are then called `nvidia.com/gpu.shared`"),
        );
    }
}

/// True for training that keeps whole GPUs busy.
pub fn wants_whole_gpus(workload: &Workload) -> bool {
    match workload.kind {
        WorkloadKind::Pretrain => true,
        WorkloadKind::Finetune => {
            workload.model.as_ref().is_some_and(|model| model.params.0 > LARGE_FINETUNE)
        }
        WorkloadKind::Inference
        | WorkloadKind::BatchScoring
        | WorkloadKind::Sweep
        | WorkloadKind::Notebook
        | WorkloadKind::Ci => false,
    }
}

/// True for a workload that is user-facing: it has an SLO, or the tier that says so by its name.
pub fn promises(workload: &Workload) -> bool {
    let production = workload.tier.as_ref().is_some_and(|tier| tier.as_str() == PRODUCTION);
    workload.slo.is_some() || production
}

/// `sharing/training-on-slice`: training on less than a GPU.
pub fn training_on_slice(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, workload, pool) in workloads(lowered) {
        let less = match &pool.sharing {
            Sharing::Mig { .. } => "a MIG slice",
            Sharing::Mps(_) | Sharing::TimeSlicing(_) => "a share of a GPU",
            Sharing::Whole => continue,
        };
        if !wants_whole_gpus(workload) {
            continue;
        }
        let title = format!("workload `{name}` trains on {less}");
        found.push(
            Diagnostic::new(&rules::SHARING_TRAINING_ON_SLICE, title)
                .at(
                    ItemPath::item("workload", name).child("kind"),
                    "keeps a GPU busy for its whole run",
                )
                .at(path(&workload.pool), "less than a GPU")
                .help("run it on whole GPUs"),
        );
    }
}
