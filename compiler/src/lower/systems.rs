//! Hardware: the catalog's systems and GPUs, and the fleet's own on top of them.

use std::sync::Arc;

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::{
    Catalog, Confidence, Cpu, Fact, Gpu, Imex, MigSupport, MigTableRow, Nics, NvLink, RackProduct,
    System,
};
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::name::{GpuName, SystemName};
use fleetc_schema::units::{Mib, Watts};
use indexmap::IndexMap;

use super::classes;
use super::mig_table;
use super::origin::{self, Origin};
use crate::language::{At, Cx, Reference, did_you_mean, kinds, listing};

/// A node's hardware, as far as the fleet needs it.
#[derive(Debug, Clone)]
pub struct Hardware {
    /// Its key.
    pub key: SystemName,
    /// Its GPUs; none on a node without.
    pub gpu: Option<Gpu>,
    /// How many.
    pub gpus: u8,
    /// Its processors, if they are known.
    pub cpu: Option<Cpu>,
    /// Its memory, if it is known.
    pub memory: Option<Mib>,
    /// Its network cards, if they are known.
    pub nics: Option<Nics>,
    /// Its power, if anybody is sure of it.
    pub power: Option<Watts>,
    /// GPUs of one NVLink domain, if anybody knows.
    pub nvlink_domain: Option<u16>,
    /// NUMA nodes of the GPUs, by index of a complete node; empty if they are not known.
    pub numa: Vec<u8>,
}

/// The hardware that a fleet can use.
#[derive(Debug)]
pub struct Systems<'a> {
    catalog: &'a Catalog,
    /// The fleet's own GPUs; none for one that could not be lowered.
    gpus: IndexMap<String, Option<Gpu>>,
    /// The fleet's own systems.
    own: IndexMap<String, Option<Hardware>>,
    /// Where the values of those that extend others come from.
    pub origins: IndexMap<ItemPath, Vec<Origin>>,
}

/// Lowers the fleet's own GPUs and systems.
pub fn lower<'a>(spec: &kinds::Spec, catalog: &'a Catalog, cx: &mut Cx) -> Systems<'a> {
    let mut systems =
        Systems { catalog, gpus: IndexMap::new(), own: IndexMap::new(), origins: IndexMap::new() };
    for item in &spec.gpus {
        let Some(name) = &item.arg else { continue };
        let gpu = lower_gpu(item, &name.value, &systems, cx);
        if gpu.is_none() {
            cx.poison(&item.path);
        }
        if let (Some(gpu), Some(base)) = (&gpu, &item.extends) {
            systems.gpu_origins(&item.path, gpu, base, cx);
        }
        systems.gpus.insert(name.value.to_string(), gpu);
    }
    for item in &spec.systems {
        let Some(name) = &item.arg else { continue };
        let system = lower_system(item, &name.value, &systems, cx);
        if system.is_none() {
            cx.poison(&item.path);
        }
        if let (Some(system), Some(base)) = (&system, &item.extends) {
            systems.system_origins(&item.path, system, base, cx);
        }
        systems.own.insert(name.value.to_string(), system);
    }
    systems
}

fn lower_gpu(item: &kinds::Gpu, name: &GpuName, systems: &Systems<'_>, cx: &mut Cx) -> Option<Gpu> {
    let Some(extends) = &item.extends else {
        return new_gpu(item, name, cx);
    };
    let base = systems.gpu(extends, cx)?;
    let mut gpu = Gpu { key: name.clone(), ..base };
    if let Some(architecture) = &item.architecture {
        gpu.architecture = architecture.value;
    }
    if let Some(nvml_name) = &item.nvml_name {
        gpu.nvml_name = Some(nvml_name.value.clone());
        // The label follows from the name; what another product is labelled does not hold.
        gpu.gfd_product = None;
        gpu.also_seen.clear();
    }
    if let Some(memory) = &item.memory {
        let stated = memory.value.0 >> 20;
        // Profiles are named and sized by the memory: of another, the base's table does not hold.
        let range = gpu.nvml_total_mib.value.map(classes::memory_range);
        if range.is_none_or(|range| stated < range.min.0 || range.max.0 < stated) {
            (gpu.mig.table, gpu.mig.own) = (None, None);
        }
        gpu.nvml_total_mib = Fact::stated(stated);
    }
    if let Some(ids) = &item.device_ids {
        gpu.pci_device_ids = Fact::stated(ids.iter().map(|id| id.value.clone()).collect());
    }
    if let Some(gres_type) = &item.gres_type {
        gpu.gres_type = gres_type.value.clone();
    }
    if let Some(mig) = item.mig.as_ref().filter(|mig| gpu.mig.capable != Some(mig.value)) {
        gpu.mig = mig_support(mig.value);
    }
    own_table(item, &mut gpu, cx)?;
    if let Some(nvlink) = item.nvlink.as_ref().filter(|link| gpu.has_nvlink() != link.value) {
        gpu.nvlink = unread_nvlink(nvlink.value);
    }
    Some(gpu)
}

/// A product that is like no other: only what the fleet states is known of it. None if a word is
/// missing (reported, each) or could not be read (reported there).
fn new_gpu(item: &kinds::Gpu, name: &GpuName, cx: &mut Cx) -> Option<Gpu> {
    for (word, is_there, example) in [
        ("architecture", item.architecture.is_some(), "\"blackwell\""),
        ("nvml-name", item.nvml_name.is_some(), "\"NVIDIA …\""),
        ("memory", item.memory.is_some(), "\"…MiB\""),
        ("pci-device-ids", item.device_ids.is_some(), "\"0x…\""),
        ("gres-type", item.gres_type.is_some(), "\"…\""),
        ("mig", item.mig.is_some(), "#false"),
        ("nvlink", item.nvlink.is_some(), "#false"),
    ] {
        if !is_there && !cx.poisoned.contains(&item.path.child(word)) {
            missing_word(item, name, word, example, cx);
        }
    }
    let memory_mib = item.memory.as_ref()?.value.0 >> 20;
    let ids = item.device_ids.as_ref()?;
    let mut gpu = Gpu {
        key: name.clone(),
        nvml_name: Some(item.nvml_name.as_ref()?.value.clone()),
        also_seen: Vec::new(),
        gfd_product: None,
        gres_type: item.gres_type.as_ref()?.value.clone(),
        pci_device_ids: Fact::stated(ids.iter().map(|id| id.value.clone()).collect()),
        architecture: item.architecture.as_ref()?.value,
        compute_capability: String::new(),
        memory_gb: u32::try_from(memory_mib.div_ceil(1024)).unwrap_or(u32::MAX),
        nvml_total_mib: Fact::stated(memory_mib),
        memory_type: String::new(),
        bandwidth_gb_per_s: Fact::default(),
        gflops_dense: Fact::default(),
        nvlink: unread_nvlink(item.nvlink.as_ref()?.value),
        form_factor: String::new(),
        pcie: Fact::default(),
        tdp_w: Fact::default(),
        power_limit_w: Fact::default(),
        mig: mig_support(item.mig.as_ref()?.value),
        ecc: false,
        row_remap: None,
        fabric_manager: Fact::default(),
        imex: Imex::None,
        family: Fact::default(),
        last_driver_branch: Fact::default(),
        source: Vec::new(),
        confidence: Confidence::Sure,
        note: None,
    };
    own_table(item, &mut gpu, cx)?;
    Some(gpu)
}

/// Gives a GPU the MIG table that the fleet states, if it states one. None if that is wrong (reported).
fn own_table(item: &kinds::Gpu, gpu: &mut Gpu, cx: &mut Cx) -> Option<()> {
    if let Some(stated) = &item.mig_table {
        let table = mig_table::lower(stated, gpu, cx)?;
        gpu.mig.own = Some(Arc::new(MigTableRow::stated(gpu.key.clone(), table)));
    }
    Some(())
}

fn missing_word(item: &kinds::Gpu, name: &GpuName, word: &str, example: &str, cx: &mut Cx) {
    let title = format!("gpu `{name}` states no `{word}`");
    let finding = Diagnostic::new(&rules::SPEC_MISSING, title)
        .at(item.span, format!("extends no product, so `{word}` is needed"));
    cx.report(finding.help(format!("add `{word} {example}`, or `extends=` a product like it")));
}

/// MIG of a product of which only this is known.
fn mig_support(capable: bool) -> MigSupport {
    let max_instances = (!capable).then_some(0);
    MigSupport {
        capable: Some(capable),
        max_instances,
        table: None,
        min_driver: Fact::default(),
        own: None,
    }
}

/// NVLink of a product of which only this is known: links and domain are up to the server.
fn unread_nvlink(is_there: bool) -> NvLink {
    NvLink {
        generation: None,
        links: (!is_there).then_some(0),
        link_bidir_mb_per_s: None,
        aggregate_bidir_mb_per_s: None,
        max_domain: if is_there { u16::MAX } else { 1 },
        nvswitch: false,
        how: None,
    }
}

fn lower_system(
    item: &kinds::System,
    name: &SystemName,
    systems: &Systems<'_>,
    cx: &mut Cx,
) -> Option<Hardware> {
    let mut hardware = match &item.extends {
        Some(base) => Hardware { key: name.clone(), ..systems.resolve(base, cx)? },
        None => Hardware {
            key: name.clone(),
            gpu: None,
            gpus: 0,
            cpu: None,
            memory: None,
            nics: None,
            power: None,
            nvlink_domain: None,
            numa: Vec::new(),
        },
    };
    if let Some(gpus) = &item.gpus {
        let gpu = systems.gpu(gpus.arg.as_ref()?, cx)?;
        let count = u8::try_from(gpus.count.as_ref()?.value.0).ok()?;
        // Other GPUs, or another number of them, draw another power and are joined otherwise.
        let same = hardware.gpu.as_ref().is_some_and(|base| base.key == gpu.key);
        if !same || hardware.gpus != count {
            hardware.power = None;
            hardware.nvlink_domain = domain_of(&gpu, count);
            hardware.numa.clear();
        }
        (hardware.gpu, hardware.gpus) = (Some(gpu), count);
    }
    if let Some(cpu) = &item.cpu {
        hardware.cpu = Some(lower_cpu(cpu, cx)?);
        hardware.numa.clear();
    }
    if let Some(memory) = &item.memory {
        hardware.memory = Some(Mib(memory.value.0 >> 20));
    }
    if let Some(power) = &item.power {
        hardware.power = Some(power.value);
    }
    if let Some(domain) = &item.nvlink_domain {
        hardware.nvlink_domain = u16::try_from(domain.value.0).ok();
    }
    Some(hardware)
}

/// GPUs of one NVLink domain in a server that states only its GPUs: all of them where an NVSwitch
/// joins them in one box, one where they have no NVLink. Bridges and racks are up to the builder.
fn domain_of(gpu: &Gpu, count: u8) -> Option<u16> {
    let link = &gpu.nvlink;
    match link.max_domain {
        0 | 1 => Some(1),
        most if link.nvswitch && gpu.imex != Imex::Domain => Some(most.min(u16::from(count))),
        _ => None,
    }
}

fn lower_cpu(cpu: &kinds::Cpu, cx: &mut Cx) -> Option<Cpu> {
    let (Some(sockets), Some(cores), Some(threads)) = (&cpu.sockets, &cpu.cores, &cpu.threads)
    else {
        return None;
    };
    let (s, c, t) = (sockets.value.0, cores.value.0, threads.value.0);
    for (count, of, what) in [(c, s, cores.span), (t, c, threads.span)] {
        if !count.is_multiple_of(of) {
            let title = format!("`{count}` is not a multiple of {of}");
            let finding = Diagnostic::new(&rules::SPEC_OUT_OF_RANGE, title)
                .at(what, "sockets have equal cores, and cores equal threads");
            cx.report(finding.help("count the cores and threads of all sockets together"));
            return None;
        }
    }
    let number = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
    Some(Cpu { model: None, sockets: number(s), cores: number(c), threads: number(t) })
}

impl Systems<'_> {
    fn gpu_origins(&mut self, path: &ItemPath, gpu: &Gpu, base: &At<Reference>, cx: &Cx) {
        let Reference(key) = &base.value;
        let own = self.gpus.get(key);
        let source = source_of("gpu", key, own.is_some());
        let catalog = self.catalog.gpu(key);
        let Some(base) = own.map_or(catalog, |own| own.as_ref()) else { return };
        let origins = origin::compare(path, &source, origin::of_gpu(gpu), origin::of_gpu(base), cx);
        self.origins.insert(path.clone(), origins);
    }

    fn system_origins(
        &mut self,
        path: &ItemPath,
        system: &Hardware,
        base: &At<Reference>,
        cx: &mut Cx,
    ) {
        let Reference(key) = &base.value;
        let source = source_of("system", key, self.own.contains_key(key));
        let Some(base) = self.resolve(base, cx) else { return };
        let (own, base) = (origin::of_system(system), origin::of_system(&base));
        self.origins.insert(path.clone(), origin::compare(path, &source, own, base, cx));
    }

    /// The hardware behind a reference. None if there is none (reported), or if its own definition
    /// could not be lowered (reported there).
    pub fn resolve(&self, reference: &At<Reference>, cx: &mut Cx) -> Option<Hardware> {
        let Reference(text) = &reference.value;
        if let Some(own) = self.own.get(text) {
            return own.clone();
        }
        if let Some(system) = self.catalog.system(text) {
            return Some(self.of_catalog(system));
        }
        let known = || {
            let own = self.own.keys().map(String::as_str);
            own.chain(self.catalog.system_keys().map(SystemName::as_str))
        };
        let title = format!("no system is called `{text}`");
        let finding = Diagnostic::new(&rules::CATALOG_UNKNOWN_SYSTEM, title)
            .at(reference.span, "neither in the catalog nor in the fleet");
        let shape = self.catalog.shape_named(text).map(|shape| shape.key.as_str());
        let near = shape.or_else(|| did_you_mean(text, known()));
        // A GPU is often named where its server is asked for.
        let line = text.to_ascii_lowercase();
        let with_gpu: Vec<&str> = match text.is_empty() {
            true => Vec::new(),
            false => self.catalog.systems_with(&line).map(SystemName::as_str).collect(),
        };
        cx.report(match (self.catalog.rack(text), near) {
            (Some(rack), _) => {
                finding.help(format!("that is a rack; its nodes are trays: `{}`", rack.tray))
            }
            (None, _) if !with_gpu.is_empty() => finding.help(format!(
                "that is a GPU; servers and trays that have it are {}",
                listing(with_gpu.iter().copied())
            )),
            (None, Some(near)) => finding.help(format!("did you mean `{near}`?")),
            (None, None) => finding.help(format!(
                "known systems are {}; a fleet can define one: `system \"{text}\" extends=\"…\"`",
                listing(known())
            )),
        });
        cx.poison(&reference.path);
        None
    }

    fn of_catalog(&self, system: System) -> Hardware {
        // A fleet's own GPU of this key stands for the catalog's.
        let own = self.gpus.get(system.gpu.as_str()).cloned().flatten();
        let numa = self.numa_of(&system);
        Hardware {
            numa,
            gpu: own.or_else(|| self.catalog.gpu(system.gpu.as_str()).cloned()),
            gpus: system.gpus_per_node,
            cpu: system.cpu,
            memory: system.memory_gib.value.map(|gib| Mib(u64::from(gib) * 1024)),
            nics: system.nics,
            power: system.power_w.filter(|_| system.confidence > Confidence::Unsure).map(Watts),
            nvlink_domain: Some(system.nvlink_domain),
            key: system.key,
        }
    }

    /// NUMA nodes of the GPUs of a system, where its map is certain and of as many threads. Firmware that
    /// can cut a socket in several ways (`nps`) gives other numbers.
    fn numa_of(&self, system: &System) -> Vec<u8> {
        let threads = system.cpu.as_ref().map(|cpu| cpu.threads);
        let map = self.catalog.affinity_of(system.key.as_str()).filter(|map| {
            let is_fixed = map.nps.is_none() && map.confidence == Confidence::Sure;
            let is_whole = map.gpus.len() == usize::from(system.gpus_per_node);
            is_fixed && is_whole && Some(map.cpu_threads) == threads
        });
        map.map_or_else(Vec::new, |map| map.gpus.iter().map(|gpu| gpu.numa).collect())
    }

    /// The rack product behind a reference; none if there is none (reported).
    pub fn rack(&self, reference: &At<Reference>, cx: &mut Cx) -> Option<&'_ RackProduct> {
        let Reference(text) = &reference.value;
        if let Some(rack) = self.catalog.rack(text) {
            return Some(rack);
        }
        let title = format!("no rack product is called `{text}`");
        let finding = Diagnostic::new(&rules::CATALOG_UNKNOWN_SYSTEM, title)
            .at(reference.span, "not in the catalog");
        let known = || self.catalog.racks.keys().map(SystemName::as_str);
        cx.report(match did_you_mean(text, known()) {
            Some(near) => finding.help(format!("did you mean `{near}`?")),
            None => finding.help(format!("rack products are {}", listing(known()))),
        });
        cx.poison(&reference.path);
        None
    }

    /// The GPU product behind a reference; none if there is none (reported).
    fn gpu(&self, reference: &At<Reference>, cx: &mut Cx) -> Option<Gpu> {
        let Reference(text) = &reference.value;
        if let Some(own) = self.gpus.get(text) {
            return own.clone();
        }
        if let Some(gpu) = self.catalog.gpu(text) {
            return Some(gpu.clone());
        }
        let known = || {
            let own = self.gpus.keys().map(String::as_str);
            own.chain(self.catalog.gpus.keys().map(GpuName::as_str))
        };
        // `A100` is a product line: its products begin with it.
        let line = text.to_ascii_lowercase();
        let begins =
            |key: &&str| key.strip_prefix(line.as_str()).is_some_and(|rest| rest.starts_with('-'));
        let products: Vec<&str> = known().filter(begins).collect();
        let (title, label) = match products.is_empty() {
            false => (format!("`{text}` is a product line"), "which product?"),
            true => {
                (format!("no GPU is called `{text}`"), "neither in the catalog nor in the fleet")
            }
        };
        let finding = Diagnostic::new(&rules::CATALOG_UNKNOWN_GPU, title).at(reference.span, label);
        cx.report(match (products.is_empty(), did_you_mean(text, known())) {
            (false, _) => finding.help(format!("its products are {}", listing(products))),
            (true, Some(near)) => finding.help(format!("did you mean `{near}`?")),
            (true, None) => finding.help("`fleetc catalog` lists the products"),
        });
        cx.poison(&reference.path);
        None
    }
}

/// What an item extends, for people.
fn source_of(kind: &str, key: &str, is_own: bool) -> String {
    match is_own {
        true => format!("{kind}/{key}"),
        false => format!("catalog {key}"),
    }
}
