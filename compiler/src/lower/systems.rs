//! Systems: the catalog's, and the fleet's own on top of them.

use fleetc_schema::catalog::{Catalog, Cpu, Fact, System};
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::name::SystemName;
use indexmap::IndexMap;

use crate::language::{At, Cx, Reference, did_you_mean, kinds, listing};

/// The systems that a fleet can use.
#[derive(Debug)]
pub struct Systems<'a> {
    catalog: &'a Catalog,
    /// The fleet's own; none for one that could not be lowered.
    own: IndexMap<String, Option<System>>,
}

/// Lowers the fleet's own systems.
pub fn lower<'a>(spec: &kinds::Spec, catalog: &'a Catalog, cx: &mut Cx) -> Systems<'a> {
    let mut systems = Systems { catalog, own: IndexMap::new() };
    for item in &spec.systems {
        let Some(name) = &item.arg else { continue };
        let system = lower_one(item, &name.value, &systems, cx);
        if system.is_none() {
            cx.poison(&item.path);
        }
        systems.own.insert(name.value.to_string(), system);
    }
    systems
}

fn lower_one(
    item: &kinds::System,
    name: &SystemName,
    systems: &Systems<'_>,
    cx: &mut Cx,
) -> Option<System> {
    let base = systems.resolve(item.extends.as_ref()?, cx)?;
    let mut system = System { key: name.clone(), ..base };
    if let Some(cpu) = &item.cpu {
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
        system.cpu =
            Some(Cpu { model: None, sockets: number(s), cores: number(c), threads: number(t) });
    }
    if let Some(memory) = &item.memory {
        system.memory_gib =
            u32::try_from(memory.value.0 >> 30).map_or_else(|_| Fact::default(), Fact::stated);
    }
    Some(system)
}

impl Systems<'_> {
    /// The system behind a reference. None if there is none (reported), or if its own definition
    /// could not be lowered (reported there).
    pub fn resolve(&self, reference: &At<Reference>, cx: &mut Cx) -> Option<System> {
        let Reference(text) = &reference.value;
        if let Some(own) = self.own.get(text) {
            return own.clone();
        }
        if let Some(system) = self.catalog.system(text) {
            return Some(system);
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
        cx.report(match (self.catalog.rack(text), near) {
            (Some(rack), _) => {
                finding.help(format!("that is a rack; its nodes are trays: `{}`", rack.tray))
            }
            (None, Some(near)) => finding.help(format!("did you mean `{near}`?")),
            (None, None) => finding.help(format!(
                "known systems are {}; a fleet can define one: `system \"{text}\" extends=\"…\"`",
                listing(known())
            )),
        });
        cx.poison(&reference.path);
        None
    }
}
