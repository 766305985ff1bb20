//! Rules about a change, which neither fleet breaks alone.

use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Class, Intent, Scheduler};
use fleetc_schema::name::ClusterName;
use fleetc_schema::{Hostlist, ItemPath};

/// Findings of a change. Places are items of the new fleet.
pub fn findings(old: &Intent, new: &Intent) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    mode_needs_reset(old, new, &mut found);
    priority_changed(old, new, &mut found);
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
    let kubernetes = |intent: &Intent, name: &ClusterName| {
        let scheduler = intent.clusters.get(name).map(|cluster| &cluster.scheduler);
        matches!(scheduler, Some(Scheduler::Kubernetes(_)))
    };
    let both = |name: &&ClusterName| kubernetes(old, name) && kubernetes(new, name);
    let Some(cluster) = new.clusters.keys().find(both) else { return };
    for (name, tier) in &new.tiers {
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
