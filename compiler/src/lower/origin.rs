//! Where the values of a fleet's own hardware come from.

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::{Gpu, NicGroup};
use fleetc_schema::units::Mib;

use super::systems::Hardware;
use crate::language::Cx;

/// A value of an item that extends another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// What it is, by the word of the language where there is one.
    pub word: &'static str,
    /// The value that holds; none if it is not known.
    pub value: Option<String>,
    /// The value of the base; none if it is not known.
    pub base: Option<String>,
    /// The base: `catalog h100-sxm5-80gb` or `gpu/mine`.
    pub source: String,
    /// True if the item states it.
    pub written: bool,
}

type Facts = Vec<(&'static str, Option<String>)>;

/// Compares the facts of an item with those of its base, in their order. What neither knows is left out.
pub fn compare(path: &ItemPath, source: &str, own: Facts, base: Facts, cx: &Cx) -> Vec<Origin> {
    let pairs = own.into_iter().zip(base);
    let known = pairs.filter(|((_, value), (_, base))| value.is_some() || base.is_some());
    let origin = |((word, value), (_, base)): ((&'static str, Option<String>), (_, _))| Origin {
        word,
        value,
        base,
        source: source.to_owned(),
        written: cx.places.contains_key(&path.child(word)),
    };
    known.map(origin).collect()
}

/// What a fleet can know of a GPU product.
pub fn of_gpu(gpu: &Gpu) -> Facts {
    let yes_no = |has: bool| if has { "true" } else { "false" }.to_owned();
    vec![
        ("architecture", Some(gpu.architecture.to_string())),
        ("nvml-name", gpu.nvml_name.clone()),
        ("gpu.product", gpu.gfd_product.clone()),
        ("memory", gpu.nvml_total_mib.value.map(|mib| Mib(mib).to_string())),
        ("pci-device-ids", gpu.pci_device_ids.value.as_ref().map(|ids| ids.join(" "))),
        ("gres-type", Some(gpu.gres_type.clone())),
        ("mig", gpu.mig.capable.map(yes_no)),
        ("MIG profiles", gpu.mig.table.clone()),
        ("nvlink", Some(yes_no(gpu.has_nvlink()))),
    ]
}

/// What a fleet can know of a system.
pub fn of_system(system: &Hardware) -> Facts {
    let gpus = system.gpu.as_ref().map(|gpu| format!("{} count={}", gpu.key, system.gpus));
    let cpu = system
        .cpu
        .as_ref()
        .map(|cpu| format!("sockets={} cores={} threads={}", cpu.sockets, cpu.cores, cpu.threads));
    let numa: Vec<String> = system.numa.iter().map(ToString::to_string).collect();
    let cards = |cards: &NicGroup| match cards.count {
        Some(count) => format!("{count} × {}", cards.model),
        None => cards.model.clone(),
    };
    let nics = system.nics.as_ref().map(|nics| cards(&nics.compute));
    vec![
        ("gpus", gpus),
        ("cpu", cpu),
        ("memory", system.memory.map(|memory| memory.to_string())),
        ("power", system.power.map(|power| power.to_string())),
        ("nvlink-domain", system.nvlink_domain.map(|gpus| gpus.to_string())),
        ("NUMA nodes of GPUs", (!numa.is_empty()).then(|| numa.join(" "))),
        ("network cards between GPUs", nics),
    ]
}
