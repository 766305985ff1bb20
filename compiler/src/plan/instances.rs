//! Which GPU instances survive a change of a MIG layout, by the placements that both sides have.
//!
//! With `fleetc-mig.sh` an instance stays if the new layout has one of its profile id at its start.
//! mig-parted, and so the MIG manager of the GPU Operator, clears a GPU whose instances differ before
//! it creates any, so nothing stays (NVIDIA/mig-parted@bd7160f4 `pkg/mig/config/config.go`).

use fleetc_schema::Hostlist;
use fleetc_schema::intent::{Class, GpuIndexes, GpuInstance, GpuSlot, Intent, Scheduler};
use fleetc_schema::name::PoolName;
use fleetc_schema::plan::{Change, ChangeKind};

/// What happens to the instances of some GPUs that go the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceChange {
    /// Their numbers on a complete node.
    pub gpus: GpuIndexes,
    /// The nodes.
    pub nodes: Hostlist,
    /// What the layouts say.
    pub way: InstanceWay,
}

/// Instances of a GPU before and after, by start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceWay {
    /// Those that stay.
    pub keep: Vec<GpuInstance>,
    /// Those that go.
    pub destroy: Vec<GpuInstance>,
    /// Those that come.
    pub create: Vec<GpuInstance>,
}

/// What a change does to GPU instances, GPU by GPU; empty unless it changes a MIG layout.
pub fn instance_changes(change: &Change, old: &Intent, new: &Intent) -> Vec<InstanceChange> {
    let ChangeKind::MigLayout(pool) = &change.kind else { return Vec::new() };
    let mut by_gpu: Vec<(u8, Hostlist, InstanceWay)> = Vec::new();
    for (class, nodes, before, after) in slots(pool, old, new) {
        let (Some(from), Some(to)) = (&before.mig, &after.mig) else { continue };
        let laid_out = after.path.is_within(&change.path) || before.path.is_within(&change.path);
        if !laid_out || from == to {
            continue;
        }
        let way = match has_mig_manager(new, class) {
            true => way(from, to, |_, _| false),
            false => {
                way(from, to, |a, b| (a.profile_id, a.placement) == (b.profile_id, b.placement))
            }
        };
        match by_gpu.iter_mut().find(|(slot, _, known)| *slot == after.slot && *known == way) {
            Some((_, known, _)) => *known = known.union(&nodes),
            None => by_gpu.push((after.slot, nodes, way)),
        }
    }
    let mut changes: Vec<(Vec<u8>, Hostlist, InstanceWay)> = Vec::new();
    for (slot, nodes, way) in by_gpu {
        match changes.iter_mut().find(|(_, known, other)| *known == nodes && *other == way) {
            Some((slots, ..)) => slots.push(slot),
            None => changes.push((vec![slot], nodes, way)),
        }
    }
    let change = |(slots, nodes, way)| InstanceChange { gpus: GpuIndexes::new(slots), nodes, way };
    changes.into_iter().map(change).collect()
}

/// True if the MIG manager of the GPU Operator cuts the GPUs of a class.
fn has_mig_manager(intent: &Intent, class: &Class) -> bool {
    let cluster = intent.clusters.get(&class.node.cluster);
    cluster.is_some_and(|cluster| match &cluster.scheduler {
        Scheduler::Slurm(_) => false,
        Scheduler::Kubernetes(kubernetes) => kubernetes.gpu_operator.is_some(),
    })
}

/// The GPUs of nodes that a pool has on both sides, with the new class and those nodes.
fn slots<'a>(
    pool: &'a PoolName,
    old: &'a Intent,
    new: &'a Intent,
) -> impl Iterator<Item = (&'a Class, Hostlist, &'a GpuSlot, &'a GpuSlot)> {
    old.classes_of_pool(pool).flat_map(move |before| {
        new.classes_of_pool(pool).flat_map(move |after| {
            let nodes = before.nodes.intersection(&after.nodes);
            let both = after.node.gpus.iter().filter_map(move |slot| {
                let same = before.node.gpus.iter().find(|other| other.slot == slot.slot)?;
                (!nodes.is_empty()).then(|| (after, nodes.clone(), same, slot))
            });
            both.collect::<Vec<_>>()
        })
    })
}

/// The way from one layout to another, of which those stay that are the same.
fn way(
    from: &[GpuInstance],
    to: &[GpuInstance],
    same: impl Fn(&GpuInstance, &GpuInstance) -> bool,
) -> InstanceWay {
    let pick = |all: &[GpuInstance], others: &[GpuInstance], there: bool| {
        let is_there = |one: &GpuInstance| others.iter().any(|other| same(one, other));
        let picked = all.iter().filter(|instance| is_there(instance) == there);
        let mut picked: Vec<GpuInstance> = picked.cloned().collect();
        picked.sort_by_key(|instance| instance.placement);
        picked
    };
    InstanceWay {
        keep: pick(from, to, true),
        destroy: pick(from, to, false),
        create: pick(to, from, false),
    }
}
