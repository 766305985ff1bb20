//! What a workload is given: a GPU, a GPU instance, or a share of a GPU.

use fleetc_schema::intent::{Class, GpuModel, Intent, Resource, Sharing, Workload};
use fleetc_schema::units::Mib;

/// A unit of a pool, with its memory.
#[derive(Debug)]
pub struct Place<'a> {
    /// A class that hands it out.
    pub class: &'a Class,
    /// The GPU that it is, or is part of.
    pub gpu: &'a GpuModel,
    /// The unit.
    pub resource: Resource,
    /// What it is called in a sentence.
    pub name: String,
    /// The most memory that it can take.
    pub size: Mib,
    /// The part that is its own: the same, but where clients take turns on a GPU.
    pub share: Mib,
}

/// What the workload runs on. None if that is not clear, or if its memory is not known.
pub fn place<'a>(intent: &'a Intent, workload: &Workload) -> Option<Place<'a>> {
    let resource = resource(intent, workload)?;
    let sharing = &intent.pools.get(&workload.pool)?.sharing;
    let class = intent.classes.values().find(|class| {
        class.node.pool == workload.pool
            && class.node.cluster == workload.cluster
            && class.node.advertised.units.contains_key(&resource)
    })?;
    let gpu = class.node.gpu.as_ref()?;
    let (name, size, share) = match &resource {
        Resource::Gpu => {
            let memory = gpu.memory?.nominal;
            (gpu.key.to_string(), memory, memory)
        }
        Resource::Shared => {
            let memory = gpu.memory?.nominal;
            let part = |replicas: u32| Mib(memory.0 / u64::from(replicas.max(1)));
            match sharing {
                // The plugin gives each client an equal share and no more. Source:
                // NVIDIA/k8s-device-plugin v0.20.0 `cmd/mps-control-daemon/mps/daemon.go`.
                Sharing::Mps(shared) => {
                    let name = format!("a 1/{} share of {}", shared.replicas, gpu.key);
                    (name, part(shared.replicas), part(shared.replicas))
                }
                Sharing::TimeSlicing(shared) => {
                    (gpu.key.to_string(), memory, part(shared.replicas))
                }
                Sharing::Whole | Sharing::Mig { .. } => return None,
            }
        }
        Resource::Slice(profile) => {
            let mut instances = class.node.gpus.iter().filter_map(|slot| slot.mig.as_ref());
            let instance = instances.find_map(|all| all.iter().find(|i| i.profile == *profile))?;
            let memory = instance.memory?;
            (format!("{profile} of {}", gpu.key), memory, memory)
        }
    };
    Some(Place { class, gpu, resource, name, size, share })
}

/// The unit that a workload asks for: its slice, or what the pool hands out if that is one thing.
pub fn resource(intent: &Intent, workload: &Workload) -> Option<Resource> {
    if let Some(slice) = &workload.slice {
        return Some(Resource::Slice(slice.clone()));
    }
    let units = intent.capacity(&workload.pool, &workload.cluster);
    match units.into_keys().collect::<Vec<_>>().as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}
