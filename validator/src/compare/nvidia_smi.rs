//! The commands of `nvidia-smi` that make a GPU what it should be. Only as text: nothing runs them.
//!
//! Source: NVIDIA MIG User Guide, "Enable MIG Mode", "Creating GPU Instances" and "Destroying GPU
//! Instances". `-i` takes a PCI bus id, and `-cgi` takes `<profile id>:<start>`.

use super::mig::Instance;
use fleetc_schema::pci::BusId;

/// Turns MIG mode on or off.
pub(super) fn set_mode(gpu: BusId, mode: bool) -> String {
    format!("nvidia-smi -i {gpu} -mig {}", u8::from(mode))
}

/// Resets a GPU, which nothing may use.
pub(super) fn reset(gpu: BusId) -> String {
    format!("nvidia-smi --gpu-reset -i {gpu}")
}

/// Makes a pending mode the current one.
pub(super) fn apply_mode(gpu: BusId) -> String {
    // A virtual machine may refuse the reset of a GPU that is passed through to it.
    format!("{}, or a reboot", reset(gpu))
}

/// Destroys every compute instance and GPU instance.
pub(super) fn destroy(gpu: BusId) -> [String; 2] {
    ["-dci", "-dgi"].map(|action| format!("nvidia-smi mig -i {gpu} {action}"))
}

/// Creates GPU instances, each with its compute instance; none if there is nothing to create.
pub(super) fn create(gpu: BusId, instances: &[Instance]) -> Option<String> {
    let each =
        instances.iter().map(|(profile, placement)| format!("{profile}:{}", placement.start));
    let each: Vec<String> = each.collect();
    match each.is_empty() {
        true => None,
        false => Some(format!("nvidia-smi mig -i {gpu} -cgi {} -C", each.join(","))),
    }
}

/// Turns the instances that are there into those that are wanted. If none must go, none does.
pub(super) fn change(gpu: BusId, wanted: &[Instance], seen: &[Instance]) -> Vec<String> {
    let mut missing = wanted.to_vec();
    let mut too_many = false;
    for instance in seen {
        match missing.iter().position(|other| other == instance) {
            Some(at) => {
                missing.remove(at);
            }
            None => too_many = true,
        }
    }
    if too_many {
        destroy(gpu).into_iter().chain(create(gpu, wanted)).collect()
    } else {
        create(gpu, &missing).into_iter().collect()
    }
}
