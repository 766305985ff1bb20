//! Rules about a change, which neither fleet breaks alone.

use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Class, Devices, Intent, Scheduler, WorkloadKind};
use fleetc_schema::name::{ClusterName, PoolName, TierName, WorkloadName};
use fleetc_schema::{Hostlist, ItemPath};

/// Findings of a change. Places are items of the new fleet.
pub fn findings(old: &Intent, new: &Intent) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    mode_needs_reset(old, new, &mut found);
    priority_changed(old, new, &mut found);
    immutable_change(old, new, &mut found);
    dra_everything_at_once(old, new, &mut found);
    gres_decrease(old, new, &mut found);
    found
}

/// `mig/mode-needs-reset`: nodes that stay in the old MIG mode, since their GPUs cannot be reset.
/// Only Ampere takes a reset for it. Source: NVIDIA MIG User Guide, "Enable MIG Mode".
fn mode_needs_reset(old: &Intent, new: &Intent, found: &mut Vec<Diagnostic>) {
    let fixed = new.pools.iter().filter(|(_, pool)| !pool.gpu_reset);
    for (name, _) in fixed {
        let mut stuck = Hostlist::default();
        for class in new.classes_of_pool(name) {
            if class.node.gpu.as_ref().is_some_and(|gpu| gpu.mig_mode_needs_reset) {
                for other in old.classes.values().filter(|other| modes(other) != modes(class)) {
                    stuck = stuck.union(&other.nodes.intersection(&class.nodes));
                }
            }
        }
        if stuck.is_empty() {
            continue;
        }
        let title = format!("MIG mode changes on {stuck}, whose GPUs cannot be reset");
        let item = ItemPath::item("pool", name);
        found.push(
            Diagnostic::new(&rules::MIG_MODE_NEEDS_RESET, title)
                .at(item.child("sharing"), "asks for another mode")
                .at(item.child("gpu-reset"), "says so")
                .note("on Ampere the mode stays pending until the GPU is reset or the node reboots")
                .help("reboot these nodes, from the host if they are virtual machines"),
        );
    }
}

/// Whether each slot of a node is in MIG mode.
fn modes(class: &Class) -> Vec<(u8, bool)> {
    class.node.gpus.iter().map(|gpu| (gpu.slot, gpu.mig.is_some())).collect()
}

/// `quota/priority-changed`: a PriorityClass keeps the value that it was made with. Source:
/// Kubernetes `pkg/apis/scheduling/validation/validation.go`, ValidatePriorityClassUpdate.
fn priority_changed(old: &Intent, new: &Intent, found: &mut Vec<Diagnostic>) {
    for (name, tier) in &new.tiers {
        let Some(cluster) = priority_class_stays(old, new, name).next() else { continue };
        let Some(was) = old.tiers.get(name).filter(|was| was.priority != tier.priority) else {
            continue;
        };
        let title = format!(
            "the priority of tier `{name}` goes from {} to {}, and a PriorityClass keeps its value",
            was.priority, tier.priority
        );
        found.push(
            Diagnostic::new(&rules::QUOTA_PRIORITY_CHANGED, title)
                .at(ItemPath::item("tier", name).child("priority"), format!("was {}", was.priority))
                .at(ItemPath::item("cluster", cluster), "a Kubernetes cluster")
                .note("kube-apiserver refuses the update, and what is applied after it waits")
                .help(format!(
                    "give the tier a new name, or first `kubectl delete priorityclass {name}`: pods \
                     that run keep the old value"
                )),
        );
    }
}

/// The Kubernetes clusters that have a PriorityClass of this tier before and after.
fn priority_class_stays<'a>(
    old: &'a Intent,
    new: &'a Intent,
    tier: &'a TierName,
) -> impl Iterator<Item = &'a ClusterName> {
    let has = move |intent: &Intent, name: &ClusterName| {
        let scheduler = intent.clusters.get(name).map(|cluster| &cluster.scheduler);
        matches!(scheduler, Some(Scheduler::Kubernetes(_)))
            && intent.tiers_of(name).any(|(offered, _)| offered == tier)
    };
    new.clusters.keys().filter(move |name| has(old, name) && has(new, name))
}

/// `kubernetes/immutable-change`: a PriorityClass keeps its preemption policy too. Source: as above.
fn immutable_change(old: &Intent, new: &Intent, found: &mut Vec<Diagnostic>) {
    for (name, tier) in &new.tiers {
        let Some(was) = old.tiers.get(name) else { continue };
        let policies = |cluster| {
            (cluster, old.protected_below(cluster, was), new.protected_below(cluster, tier))
        };
        let changes =
            |(_, before, after): &(_, Option<_>, Option<_>)| before.is_none() != after.is_none();
        let mut clusters = priority_class_stays(old, new, name).map(policies);
        let Some((cluster, before, after)) = clusters.find(changes) else { continue };
        let (title, item, label) = match (before, after) {
            (None, Some(below)) => (
                format!(
                    "tier `{name}` may no longer stop others, and a PriorityClass keeps its policy"
                ),
                below,
                format!("is below `{name}` and does not give way"),
            ),
            (Some(_), None) => (
                format!("tier `{name}` may stop others now, and a PriorityClass keeps its policy"),
                name,
                "every tier below it gives way now".to_owned(),
            ),
            (None, None) | (Some(_), Some(_)) => continue,
        };
        // A new priority has been told already, and the class is made anew for it.
        if was.priority != tier.priority {
            continue;
        }
        found.push(
            Diagnostic::new(&rules::KUBERNETES_IMMUTABLE_CHANGE, title)
                .at(ItemPath::item("tier", item), label)
                .at(ItemPath::item("cluster", cluster), "a Kubernetes cluster")
                .note("kube-apiserver refuses the update, and what is applied after it waits")
                .help(format!(
                    "first `kubectl delete priorityclass {name}`: pods that run keep the old policy, \
                     and new ones are refused until it is there again"
                )),
        );
    }
}

/// `dra/everything-at-once`: a cluster that had no DRA gets it for several workloads, or for a service.
fn dra_everything_at_once(old: &Intent, new: &Intent, found: &mut Vec<Diagnostic>) {
    let pools = |intent: &Intent, cluster: &ClusterName| -> Vec<PoolName> {
        let claimed = intent.pools.iter().filter(|(name, pool)| {
            pool.devices == Devices::Dra && !intent.capacity(name, cluster).is_empty()
        });
        claimed.map(|(name, _)| name.clone()).collect()
    };
    for (cluster, item) in &new.clusters {
        let kubernetes = matches!(item.scheduler, Scheduler::Kubernetes(_));
        let was_there = old.clusters.contains_key(cluster);
        if !kubernetes || !was_there || !pools(old, cluster).is_empty() {
            continue;
        }
        let first = pools(new, cluster);
        let on_them: Vec<(&WorkloadName, WorkloadKind)> = new
            .workloads
            .iter()
            .filter(|(_, workload)| workload.cluster == *cluster && first.contains(&workload.pool))
            .map(|(name, workload)| (name, workload.kind))
            .collect();
        let service = on_them.iter().find(|(_, kind)| *kind == WorkloadKind::Inference);
        let (title, item, label) = match (on_them.as_slice(), service) {
            ([_, .., (last, _)], _) => (
                format!(
                    "cluster `{cluster}` gets DRA for {} workloads at once, and had none",
                    on_them.len()
                ),
                last,
                "one of them",
            ),
            (_, Some((name, _))) => (
                format!("cluster `{cluster}` gets DRA with the service `{name}`, and had none"),
                name,
                "users wait for it",
            ),
            _ => continue,
        };
        let devices = first.iter().map(|pool| ItemPath::item("pool", pool).child("devices"));
        let finding = Diagnostic::new(&rules::DRA_EVERYTHING_AT_ONCE, title)
            .at(ItemPath::item("workload", item), label);
        found.push(
            devices
                .fold(finding, |finding, place| finding.at(place, "handed out through DRA from now on"))
                .note("claims, quotas and monitoring of devices are another path than those of `nvidia.com/gpu`: what goes wrong on it goes wrong for all of these")
                .help("begin with one job that gains from it, such as one over an NVLink domain, in a pool of its own"),
        );
    }
}

/// `slurm/gres-decrease`: nodes that stay in a Slurm cluster and hand out fewer of a GRES, and not more
/// of another: that is a new layout, of which the plan says that instances are destroyed. Source:
/// gres.conf(5), and runs of slurmctld 22.05 and 24.11: a node that registers with less than
/// slurm.conf says is set INVAL, and jobs that hold what goes are ended.
fn gres_decrease(old: &Intent, new: &Intent, found: &mut Vec<Diagnostic>) {
    for cluster in new.clusters.values() {
        if !matches!(cluster.scheduler, Scheduler::Slurm(_)) {
            continue;
        }
        for class in new.classes_of(&cluster.name) {
            let count = |class: &Class, kind: &str| {
                let of_kind = class.node.advertised.gres.iter().filter(|gres| gres.kind == kind);
                of_kind.map(|gres| gres.count).sum::<u32>()
            };
            for before in old.classes_of(&cluster.name) {
                let nodes = before.nodes.intersection(&class.nodes);
                let mut gres = before.node.advertised.gres.iter();
                let less = gres.find(|gres| count(class, &gres.kind) < gres.count);
                let mut after = class.node.advertised.gres.iter();
                let trades = after.any(|gres| count(before, &gres.kind) < gres.count);
                let Some(less) = less.filter(|_| !trades && !nodes.is_empty()) else { continue };
                let (kind, was, now) = (&less.kind, less.count, count(class, &less.kind));
                let go = if nodes.len() == 1 { "goes" } else { "go" };
                let title = format!("{nodes} {go} from {was} to {now} of `gpu:{kind}`");
                let paths = &class.node.paths;
                let exception = paths.exceptions.last().map(|source| &source.path);
                found.push(
                    Diagnostic::new(&rules::SLURM_GRES_DECREASE, title)
                        .at(exception.unwrap_or(&paths.sharing), format!("{now} of them"))
                        .note(
                            "Slurm ends jobs that hold what goes, and a node that has less than \
                             slurm.conf says is set INVAL",
                        )
                        .help(format!(
                            "drain them before anything else: `scontrol update NodeName={nodes} \
                             State=DRAIN Reason=\"fewer GPUs\"`"
                        )),
                );
            }
        }
    }
}
