//! Which GPU of the node is which GPU of the class.
//!
//! A GPU number of the spec is the rank by PCI bus id on a complete node, which is NVML's index. A
//! GPU that NVML has lost shifts the ranks after it; then PCI, if it still shows every GPU, tells. If
//! an inventory states the addresses, they tell, as long as every GPU is at one of them.

use std::collections::BTreeSet;

use fleetc_schema::intent::GpuSlot;

use crate::intent::NodeIntent;
use crate::state::{GpuState, PciGpu, Reading};
use fleetc_schema::pci::BusId;

/// The GPUs in the order of their bus ids, each with its slot.
///
/// # Errors
/// Says why it is not certain which GPU is which. A count that is wrong is a finding elsewhere.
pub(super) fn match_slots<'a>(
    intent: &'a NodeIntent,
    pci_gpus: &Reading<Vec<PciGpu>>,
    gpus: &'a [GpuState],
) -> Result<Vec<(&'a GpuState, &'a GpuSlot)>, String> {
    let class = &intent.class;
    if let Some(matched) = by_address(intent, gpus) {
        return Ok(matched);
    }
    let mut sorted: Vec<&GpuState> = gpus.iter().collect();
    sorted.sort_by_key(|gpu| gpu.bus_id);
    if !sorted.is_sorted_by_key(|gpu| gpu.index) {
        return Err("NVML numbers the GPUs in another order than PCI".to_owned());
    }
    let (wanted, seen) = (class.gpus.len(), sorted.len());
    if seen == wanted {
        return Ok(sorted.into_iter().zip(&class.gpus).collect());
    }
    let uncertain = || format!("NVML shows {seen} of {wanted} GPUs");
    let on_pci = pci_gpus.value().ok_or_else(uncertain)?;
    let all: BTreeSet<BusId> = on_pci.iter().map(|gpu| gpu.bus_id).collect();
    if all.len() != wanted {
        return Err(uncertain());
    }
    let by_rank = all.into_iter().zip(&class.gpus);
    let mut rest = sorted.into_iter().peekable();
    let mut matched = Vec::with_capacity(seen);
    for (bus_id, slot) in by_rank {
        if let Some(gpu) = rest.next_if(|gpu| gpu.bus_id == bus_id) {
            matched.push((gpu, slot));
        }
    }
    // A GPU that PCI does not show stops the walk, and is left over.
    if rest.next().is_some() { Err(uncertain()) } else { Ok(matched) }
}

/// The GPUs by the addresses of the inventory. None unless all of them are known.
fn by_address<'a>(
    intent: &'a NodeIntent,
    gpus: &'a [GpuState],
) -> Option<Vec<(&'a GpuState, &'a GpuSlot)>> {
    let slot = |gpu: &'a GpuState| {
        let at = |slot: &&GpuSlot| intent.address(slot) == Some(gpu.bus_id);
        Some((gpu, intent.class.gpus.iter().find(at)?))
    };
    intent.known.as_ref()?;
    let mut matched: Vec<_> = gpus.iter().map(slot).collect::<Option<_>>()?;
    matched.sort_by_key(|(gpu, _)| gpu.bus_id);
    Some(matched)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn ranks(pci: &Reading<Vec<PciGpu>>, gpus: &[GpuState]) -> Result<Vec<u8>, String> {
        let intent = example::mixed_mig();
        let matched = match_slots(&intent, pci, gpus)?;
        Ok(matched.into_iter().map(|(_, slot)| slot.index).collect())
    }

    #[test]
    fn pci_tells_which_gpu_nvml_has_lost() {
        let state = example::state_of(&example::mixed_mig());
        let mut gpus = state.gpus.value().unwrap().clone();
        assert_eq!(ranks(&state.pci_gpus, &gpus), Ok(vec![0, 1, 2, 3]));
        gpus.remove(1);
        assert_eq!(ranks(&state.pci_gpus, &gpus), Ok(vec![0, 2, 3]));
        let unknown = Reading::Unknown("no sysfs".into());
        assert_eq!(ranks(&unknown, &gpus), Err("NVML shows 3 of 4 GPUs".into()));
    }

    #[test]
    fn addresses_of_an_inventory_tell_without_pci() {
        let intent = example::at_known_addresses(example::mixed_mig());
        let state = example::state_of(&intent);
        let mut gpus = state.gpus.value().unwrap().clone();
        gpus.remove(1);
        let unknown = Reading::Unknown("no sysfs".into());
        let matched = match_slots(&intent, &unknown, &gpus).unwrap();
        let slots: Vec<u8> = matched.into_iter().map(|(_, slot)| slot.index).collect();
        assert_eq!(slots, [0, 2, 3]);
        gpus[2].bus_id = example::bus_id(9);
        let found = match_slots(&intent, &unknown, &gpus);
        assert_eq!(found, Err("NVML shows 3 of 4 GPUs".into()), "an address that nobody knows");
    }

    #[test]
    fn the_order_in_the_snapshot_does_not_matter_but_nvmls_does() {
        let state = example::state_of(&example::mixed_mig());
        let mut gpus = state.gpus.value().unwrap().clone();
        gpus.reverse();
        assert_eq!(ranks(&state.pci_gpus, &gpus), Ok(vec![0, 1, 2, 3]));
        for (index, gpu) in (0..).zip(&mut gpus) {
            gpu.index = index;
        }
        assert!(ranks(&state.pci_gpus, &gpus).is_err());
    }
}
