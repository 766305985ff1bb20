//! Workloads against what they run on.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Class, Resource, Workload};
use fleetc_schema::units::Mib;

use super::unsure;
use crate::lower::Lowered;

/// `workload/does-not-fit`: the stated memory exceeds the GPU or slice.
///
/// A GPU or slice whose size nobody has read says nothing.
pub fn does_not_fit(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, workload) in &lowered.intent.workloads {
        let path = ItemPath::item("workload", name);
        let Some(memory) = workload.memory else { continue };
        let classes = lowered.intent.classes_of(&workload.cluster);
        let Some(class) = classes.into_iter().find(|class| class.node.pool == workload.pool) else {
            continue;
        };
        let Some((what, size)) = target(class, workload) else { continue };
        let needed = memory.to_mib_ceil();
        if memory.0 <= size.to_bytes().0 {
            continue;
        }
        let percent = u128::from(memory.0) * 100 / u128::from(size.to_bytes().0.max(1));
        let title = format!("workload `{name}` needs {needed}, and {what} has {size}");
        let finding = Diagnostic::new(&rules::WORKLOAD_DOES_NOT_FIT, title)
            .at(path.child("memory"), format!("{needed}, {percent} % of what there is"))
            .note(format!("{size} is {} MiB as NVML reports it, not the GB on the label", size.0));
        let finding = match &workload.slice {
            Some(_) => finding.at(path.child("slice"), "asks for this slice"),
            None => finding.at(path.child("pool"), "runs in this pool"),
        };
        let finding = match larger(class, needed) {
            Some(larger) => finding.help(format!("`{larger}` of the same pool holds it")),
            None => finding.help("take a larger GPU or slice, or spread the job over more of them"),
        };
        found.push(match &class.node.gpu {
            Some(gpu) if workload.slice.is_none() => {
                let command = "nvidia-smi --query-gpu=memory.total --format=csv";
                unsure::weigh(finding, &gpu.key, |row| &row.nvml_total_mib, "the memory", command)
            }
            _ => finding,
        });
    }
}

/// What the workload runs on, with its memory. None if that is not clear or not known.
fn target(class: &Class, workload: &Workload) -> Option<(String, Mib)> {
    let units = &class.node.advertised.units;
    let resource = match (&workload.slice, units.keys().collect::<Vec<_>>().as_slice()) {
        (Some(slice), _) => Resource::Slice(slice.clone()),
        (None, [only]) => (*only).clone(),
        (None, _) => return None,
    };
    let gpu = class.node.gpu.as_ref()?;
    match &resource {
        Resource::Gpu | Resource::Shared => Some((gpu.key.to_string(), gpu.memory?.nominal)),
        Resource::Slice(profile) => {
            let mut instances =
                class.node.gpus.iter().filter_map(|slot| slot.mig.as_ref()).flatten();
            let instance = instances.find(|instance| instance.profile == *profile)?;
            Some((format!("{profile} of {}", gpu.key), instance.memory?))
        }
    }
}

/// The smallest slice of the pool that holds it.
fn larger(class: &Class, needed: Mib) -> Option<String> {
    let instances = class.node.gpus.iter().filter_map(|slot| slot.mig.as_ref()).flatten();
    instances
        .filter_map(|instance| Some((instance.memory?, &instance.profile)))
        .filter(|(memory, _)| *memory >= needed)
        .min()
        .map(|(_, profile)| profile.to_string())
}
