//! Where GPUs stand: in which tray of which chassis, and on which module of their baseboard.
//!
//! Trays of a rack are swapped in repairs, and one in a wrong slot is cabled to a wrong place. Source:
//! nvml.h, API 13, `nvmlPlatformInfo_v2_t` and `nvmlDeviceGetModuleId`.

use std::collections::BTreeMap;

use super::node::{Node, all_alike};
use super::outcome::{Answer, Contrast, Outcome};
use crate::state::{GpuState, Reading};

/// `gpu.place`.
pub(super) fn places(node: &Node<'_>, outcome: &mut Outcome) {
    if node.model().is_none() {
        return;
    }
    let tray = |gpu: &GpuState| {
        let platform = gpu.identity.platform.clone();
        platform.map(|place| (place.chassis_serial, place.slot, place.tray))
    };
    let shown = |(chassis, slot, tray): &(String, u8, u8)| {
        format!("chassis {chassis}, slot {slot}, tray {tray}")
    };
    let answer = match all_alike(node.gpus, "tray", tray, shown) {
        Answer::Fails(contrast) => Answer::Fails(
            contrast
                .advise("the boards of this node are of several trays: look at what was repaired"),
        ),
        answer => answer,
    };
    outcome.node(&node.system_path(), answer);
    outcome.node(&node.system_path(), modules(node.gpus));
}

/// `gpu.numa`: CPUs are bound to GPUs by it. The kernel knows it without the driver.
pub(super) fn numa(node: &Node<'_>, outcome: &mut Outcome) {
    let path = node.system_path();
    for (gpu, slot) in node.slots.iter().flatten() {
        let Some(wanted) = slot.numa else { continue };
        let expected = format!("NUMA node {wanted}");
        let unread = Reading::default();
        let on_pci = node.state.pci_gpus.value().into_iter().flatten();
        let on_pci = on_pci.filter(|on_pci| on_pci.bus_id == gpu.bus_id);
        let reading = on_pci.map(|on_pci| &on_pci.link.numa_node).next().unwrap_or(&unread);
        let answer = match reading {
            Reading::Value(seen) if *seen == u32::from(wanted) => Answer::Holds,
            Reading::Value(seen) => {
                Answer::Fails(Contrast::new(expected, format!("NUMA node {seen}")).advise(
                    "look at sub-NUMA clustering in the BIOS, and at the order of the GPUs",
                ))
            }
            reading => Answer::unless_expected(true, "NUMA node", reading, expected),
        };
        outcome.gpu(gpu, &path, answer);
    }
}

/// Whether each GPU says a module of its own. Cards without a baseboard all say 0, or all say 1.
fn modules(gpus: &[GpuState]) -> Answer {
    let expected = "a module of its own for each GPU";
    let mut by_module: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for gpu in gpus {
        match &gpu.identity.module_id {
            Reading::Value(module) => by_module.entry(*module).or_default().push(gpu.index),
            reading => return Answer::unless_expected(true, "module", reading, expected),
        }
    }
    if by_module.len() < 2 {
        return Answer::NotHere;
    }
    let shared = by_module.iter().filter(|(_, gpus)| gpus.len() > 1).map(|(module, gpus)| {
        let mut gpus = gpus.clone();
        gpus.sort_unstable();
        let gpus: Vec<String> = gpus.iter().map(u32::to_string).collect();
        format!("module {module} is said by GPU {}", gpus.join(" "))
    });
    let shared: Vec<String> = shared.collect();
    match shared.is_empty() {
        true => Answer::Holds,
        false => {
            Answer::Fails(Contrast::new(expected, shared.join(", ")).advise(
                "run the vendor's field diagnostics: the baseboard does not know its modules",
            ))
        }
    }
}
