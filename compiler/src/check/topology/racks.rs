//! The power of racks.

use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::name::{RackName, SystemName};
use fleetc_schema::units::Watts;
use fleetc_schema::{Hostlist, ItemPath};
use indexmap::{IndexMap, IndexSet};

use super::place_is_unclear;
use crate::lower::Lowered;

/// `topology/rack-power`: nodes that draw more than their rack has, and racks of rack-scale systems
/// whose power nobody has stated.
pub fn rack_power(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    if place_is_unclear(lowered) {
        return;
    }
    // Nodes of each system in each rack, with the power of one.
    let mut contents: IndexMap<&RackName, IndexMap<&SystemName, (u64, Option<Watts>)>> =
        IndexMap::new();
    let standings: Vec<_> = lowered.topology.standings().collect();
    let mut rack_scale: IndexSet<&RackName> = IndexSet::new();
    for standing in &standings {
        let class = lowered.intent.classes.get(&standing.group.class);
        let (Some(rack), Some(class)) = (standing.rack, class) else { continue };
        let power = lowered.power.get(&standing.group.pool).copied();
        let held = contents.entry(rack).or_default();
        held.entry(&class.node.system).or_insert((0, power)).0 += standing.group.nodes.len();
        if standing.group.is_rack_scale() {
            rack_scale.insert(rack);
        }
    }
    // Racks of one item are alike: the first stands for them.
    let mut told: IndexSet<&ItemPath> = IndexSet::new();
    for (name, rack) in &lowered.intent.racks {
        let (Some(budget), Some(held), Some(item)) =
            (rack.power, contents.get(name), lowered.items.racks.get(name))
        else {
            continue;
        };
        let draws =
            |(count, power): (u64, Option<Watts>)| count * power.map_or(0, |p| u64::from(p.0));
        let sum: u64 = held.values().copied().map(draws).sum();
        if sum <= u64::from(budget.0) || !told.insert(item) {
            continue;
        }
        let total = kilowatts(sum);
        let has = kilowatts(u64::from(budget.0));
        let title = format!("rack `{name}` has {has}, and its nodes draw {total}");
        let terms: Vec<String> = held
            .iter()
            .map(|(system, (count, power))| match power {
                Some(power) => {
                    format!("{count} × `{system}` at {}", kilowatts(u64::from(power.0)))
                }
                None => format!("{count} × `{system}`, whose power is not known"),
            })
            .collect();
        let finding = Diagnostic::new(&rules::TOPOLOGY_RACK_POWER, title)
            .at(item.child("power"), format!("{total} are needed"))
            .at(item.child("nodes"), terms.join(", "))
            .note("data sheets state the most that a system draws, and training comes close to it");
        let alone = match held.as_slice().iter().next() {
            Some((_, (_, Some(power)))) if held.len() == 1 => budget.0.checked_div(power.0),
            _ => None,
        };
        found.push(match alone {
            Some(fit) => {
                finding.help(format!("{fit} of them fit: move the others, or raise `power`"))
            }
            None => finding.help("move nodes to another rack, or raise `power`"),
        });
    }
    let dark = lowered.intent.racks.iter().filter(|(name, rack)| {
        rack.power.is_none() && (rack.domain.is_some() || rack_scale.contains(*name))
    });
    let dark: Vec<&RackName> = dark.map(|(name, _)| name).collect();
    let Some(item) = dark.first().and_then(|name| lowered.items.racks.get(*name)) else { return };
    let names = dark
        .iter()
        .fold(Hostlist::default(), |all, name| all.union(&Hostlist::single(name.as_str())));
    let title = match names.len() {
        1 => format!("rack `{names}` of a rack-scale NVLink system states no `power`"),
        _ => format!("racks `{names}` of rack-scale NVLink systems state no `power`"),
    };
    found.push(
        Diagnostic::new(&rules::TOPOLOGY_RACK_POWER, title)
            .severity(Severity::Note)
            .at(item, "how much may it draw?")
            .note("power and cooling decide where such a rack can stand, before its GPUs do")
            .help("add what the rack may draw: `power=\"140kW\"`"),
    );
}

/// `40.8 kW`; watts that are no tenth of a kilowatt are rounded up.
fn kilowatts(watts: u64) -> String {
    let tenths = watts.div_ceil(100);
    match tenths % 10 {
        0 => format!("{} kW", tenths / 10),
        tenth => format!("{}.{tenth} kW", tenths / 10),
    }
}
