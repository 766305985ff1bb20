//! Switches that make up no tree.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::intent::{Fabric, TopologyPlugin};
use fleetc_schema::name::FabricName;
use fleetc_schema::topology::LogicalFabric;

use super::slurm_topology;
use crate::lower::{FabricItems, Lowered, quoted};

/// Fabrics that were read whole, with their logical switches and their items.
fn fabrics(
    lowered: &Lowered,
) -> impl Iterator<Item = (&FabricName, &Fabric, &LogicalFabric, &FabricItems)> {
    lowered.intent.fabrics.iter().filter_map(|(name, fabric)| {
        if lowered.is_poisoned(&ItemPath::item("fabric", name)) {
            return None;
        }
        let logical = lowered.topology.fabric(name)?;
        Some((name, fabric, logical, lowered.items.fabrics.get(name)?))
    })
}

/// `topology/cycle`: uplinks that lead back to where they started.
pub fn cycle(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, fabric, logical, items) in fabrics(lowered) {
        for circle in &logical.cycles {
            let title = format!("the uplinks of `{circle}` in fabric `{name}` lead in a circle");
            let inside = fabric.switches.iter().zip(&items.switches).filter(|(group, _)| {
                !group.names.intersection(circle).is_empty()
                    && !group.uplinks.intersection(circle).is_empty()
            });
            // The last uplink that was written closes the circle.
            let finding = inside.rev().enumerate().fold(
                Diagnostic::new(&rules::TOPOLOGY_CYCLE, title),
                |finding, (index, (_, path))| {
                    let text = if index == 0 { "closes the circle" } else { "part of it" };
                    finding.at(path.child("uplinks"), text)
                },
            );
            found.push(
                finding
                    .note("slurmctld ends with `Switch configuration is not a tree`")
                    .help("name as uplinks only switches that stand above"),
            );
        }
    }
}

/// `topology/orphan-switch`: a switch with neither nodes nor switches.
pub fn orphan_switch(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, fabric, logical, items) in fabrics(lowered) {
        if !logical.cycles.is_empty() {
            continue;
        }
        for (group, path) in fabric.switches.iter().zip(&items.switches) {
            let orphans =
                logical.orphans().fold(fleetc_schema::Hostlist::default(), |all, orphan| {
                    all.union(&orphan.names.intersection(&group.names))
                });
            if orphans.is_empty() {
                continue;
            }
            let holds = if orphans.len() == 1 { "holds" } else { "hold" };
            let title =
                format!("`{orphans}` of fabric `{name}` {holds} neither nodes nor switches");
            found.push(
                Diagnostic::new(&rules::TOPOLOGY_ORPHAN_SWITCH, title)
                    .at(path, "nothing hangs here")
                    .note("slurmctld up to 24.11 does not start with a switch that holds nothing")
                    .help(format!("add `attach \"{orphans}\" nodes=\"…\"`, or remove `{orphans}`")),
            );
        }
    }
}

/// `topology/two-uplink-trees`: nodes on two leaves of a fabric, or switches below two others that
/// are not alike.
pub fn two_uplink_trees(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, fabric, logical, items) in fabrics(lowered) {
        for (first, second, nodes) in logical.nodes_on_two(fabric) {
            let of = |switch: usize| {
                let switch = logical.switches.get(switch)?;
                let mut own = switch.attachments.iter();
                own.find_map(|at| {
                    let attachment = fabric.attachments.get(*at)?;
                    let here = !attachment.nodes.intersection(&nodes).is_empty();
                    here.then_some((&attachment.switches, items.attachments.get(*at)?))
                })
            };
            let (Some((first, first_item)), Some((second, second_item))) = (of(first), of(second))
            else {
                continue;
            };
            let hang = if nodes.len() == 1 { "hangs" } else { "hang" };
            let title =
                format!("`{nodes}` {hang} on `{first}` and on `{second}` of fabric `{name}`");
            let both = first.union(second);
            found.push(
                Diagnostic::new(&rules::TOPOLOGY_TWO_UPLINK_TREES, title)
                    .at(second_item.child("nodes"), "a second leaf")
                    .at(first_item.child("nodes"), "the first leaf")
                    .note("a tree has one leaf for each node: slurmctld takes the last and says little")
                    .help(format!(
                        "leave them on one; if each node has a port on every one of them, write \
                         `attach \"{both}\" nodes=\"{nodes}\" rails={}`",
                        both.len()
                    )),
            );
        }
        not_alike(lowered, name, logical, fabric, items, found);
    }
}

/// A switch below two logical switches: an error where a tree of them is read.
fn not_alike(
    lowered: &Lowered,
    name: &FabricName,
    logical: &LogicalFabric,
    fabric: &Fabric,
    items: &FabricItems,
    found: &mut Vec<Diagnostic>,
) {
    let read = lowered.topology.standings().any(|standing| {
        let topology = slurm_topology(lowered, &standing.group.cluster);
        let tree = topology.is_some_and(|topology| {
            topology.plugin == TopologyPlugin::Tree
                && topology.fabric.as_ref().is_none_or(|fabric| fabric == name)
        });
        tree && standing.leaves.iter().any(|(fabric, _)| *fabric == name)
    });
    let severity = if read { Severity::Error } else { Severity::Warning };
    for (group, path) in fabric.switches.iter().zip(&items.switches) {
        let torn = logical.switches.iter().find(|switch| {
            switch.uplinks.len() > 1 && !switch.names.intersection(&group.names).is_empty()
        });
        let Some(torn) = torn else { continue };
        let above = torn.uplinks.iter().filter_map(|at| logical.switches.get(*at));
        let above = quoted(above.map(|switch| &switch.names));
        let title = format!("`{}` has uplinks to {above}, which are not alike", torn.names);
        found.push(
            Diagnostic::new(&rules::TOPOLOGY_TWO_UPLINK_TREES, title)
                .severity(severity)
                .at(path.child("uplinks"), "no tree can be read from this")
                .note("switches are one for a scheduler if the same switches hang below them")
                .help("connect every switch of a level to the same switches above"),
        );
    }
}
