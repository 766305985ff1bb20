//! Sites, fabrics and racks.

use std::collections::BTreeMap;

use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::hostlist::clashes;
use fleetc_schema::intent::{Attachment, Fabric, Rack, RackDomain, Site, SwitchGroup};
use fleetc_schema::name::{FabricName, RackName, SiteName};
use fleetc_schema::{Hostlist, ItemPath};
use indexmap::IndexMap;

use super::inventory::Rows;
use super::names::{Declared, Names, report_clashes};
use super::systems::Systems;
use crate::language::{At, Cx, did_you_mean, kinds};

/// The items that racks, switches and attachments of the Intent were written in.
#[derive(Debug, Default)]
pub struct Items {
    /// The item of each rack; one item may name several.
    pub racks: IndexMap<RackName, ItemPath>,
    /// The items of each fabric.
    pub fabrics: IndexMap<FabricName, FabricItems>,
}

/// The items of a fabric, in the order of the Intent.
#[derive(Debug, Default)]
pub struct FabricItems {
    /// One for each group of switches.
    pub switches: Vec<ItemPath>,
    /// One for each attachment.
    pub attachments: Vec<ItemPath>,
}

/// The most racks that one item may name.
const MAX_RACKS: u64 = 4_096;

/// Lowers sites.
pub fn sites(spec: &kinds::Spec) -> IndexMap<SiteName, Site> {
    let site = |item: &kinds::Site| {
        let region = item.region.as_ref().map(|region| region.value.clone());
        Some((item.arg.as_ref()?.value.clone(), Site { region }))
    };
    spec.sites.iter().filter_map(site).collect()
}

/// Lowers racks; a node stands in one. The nodes of an item that names several are dealt out in
/// order, so many to each.
pub fn racks(
    spec: &kinds::Spec,
    names: &Names,
    systems: &Systems<'_>,
    rows: Rows<'_>,
    items: &mut Items,
    cx: &mut Cx,
) -> IndexMap<RackName, Rack> {
    let mut racks: IndexMap<RackName, Rack> = IndexMap::new();
    let mut lists = Vec::new();
    let mut by_rows = match spec.racks.iter().any(|item| item.nodes.is_none()) {
        true => rows.by_rack(),
        false => BTreeMap::new(),
    };
    for item in &spec.racks {
        let product = item.system.as_ref().and_then(|system| systems.rack(system, cx));
        if let (Some(partitions), None) = (&item.partitions, &item.system) {
            let title = "`partitions` belongs to a rack product";
            let finding = Diagnostic::new(&rules::SPEC_UNKNOWN_PROPERTY, title)
                .at(partitions.span, "has no NVLink switches to cut");
            cx.report(finding.help("remove it, or name the product: `system=\"gb200-nvl72\"`"));
        }
        let site = item.site.as_ref().and_then(|site| names.sites.resolve(site, cx));
        let Some(list) = &item.arg else { continue };
        if let Some(nodes) = &item.nodes {
            lists.push((list.value.to_string(), nodes));
        }
        let count = list.value.len();
        if count > MAX_RACKS {
            let title =
                format!("`{}` names {count} racks, at most {MAX_RACKS} are taken", list.value);
            let finding = Diagnostic::new(&rules::SPEC_OUT_OF_RANGE, title);
            cx.report(finding.at(list.span, "too many").help("define them in several items"));
            continue;
        }
        let all = item.nodes.as_ref().map_or(0, |nodes| nodes.value.len());
        if let Some(nodes) = item.nodes.as_ref().filter(|_| !all.is_multiple_of(count)) {
            let title = format!("{all} nodes cannot be dealt out evenly to {count} racks");
            let finding = Diagnostic::new(&rules::SPEC_OUT_OF_RANGE, title)
                .at(nodes.span, format!("{all} nodes"))
                .at(list.span, format!("{count} racks"));
            cx.report(finding.help("define racks that hold fewer nodes in an item of their own"));
            continue;
        }
        let each = all / count;
        for (index, name) in (0..).zip(list.value.names()) {
            let name = match RackName::new(&name) {
                Ok(name) => name,
                Err(error) => {
                    let finding = Diagnostic::new(&rules::NAME_ILLEGAL, error.to_string());
                    let finding = finding.at(list.span, "not a rack name");
                    cx.report(finding.help("write a rack name such as `\"r1\"`"));
                    break;
                }
            };
            let nodes = match &item.nodes {
                Some(nodes) => nodes.value.slice(index * each, each),
                None => by_rows.remove(name.as_str()).unwrap_or_default(),
            };
            let unread = || cx.poisoned.contains(&item.path.child("nodes"));
            if nodes.is_empty() && !rows.inventory.broken && !unread() {
                let title = format!("rack `{name}` states no `nodes`");
                let finding = Diagnostic::new(&rules::SPEC_MISSING, title);
                let finding = finding.at(item.span, "`nodes` is missing in here");
                cx.report(finding.help(
                    "add `nodes=\"gpu[001-032]\"`, or name the rack in the rows of an inventory",
                ));
            }
            let rack = Rack {
                nodes,
                product: product.map(|product| product.key.clone()),
                domain: product.map(|product| RackDomain {
                    gpus: product.nvlink_domain,
                    racks: product.racks,
                    trays: product.trays_per_rack,
                }),
                partitions: item.partitions.as_ref().map(|partitions| partitions.value.0),
                power: item.power.as_ref().map(|power| power.value),
                site: site.clone(),
            };
            items.racks.insert(name.clone(), item.path.clone());
            if racks.insert(name.clone(), rack).is_some() {
                let title = format!("rack `{name}` is defined twice");
                let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, title);
                cx.report(finding.at(list.span, "defined again here").help("name each rack once"));
            }
        }
    }
    report_clashes(&rules::NAME_NODE_TWICE, "rack", &lists, cx);
    racks
}

/// Lowers fabrics. Switches that are named as uplinks or attached must be defined.
pub fn fabrics(spec: &kinds::Spec, items: &mut Items, cx: &mut Cx) -> IndexMap<FabricName, Fabric> {
    let mut fabrics = IndexMap::new();
    for item in &spec.fabrics {
        let defined = item
            .switches
            .iter()
            .filter_map(|switch| switch.arg.as_ref())
            .fold(Hostlist::default(), |all, names| all.union(&names.value));
        let mut written = FabricItems::default();
        let mut switches = Vec::new();
        twice(&item.switches, cx);
        for switch in &item.switches {
            let Some(names) = &switch.arg else { continue };
            let uplinks = switch.uplinks.as_ref();
            let known = uplinks.is_none_or(|uplinks| are_defined(uplinks, &defined, cx));
            let uplinks = uplinks.filter(|_| known).map(|uplinks| uplinks.value.clone());
            written.switches.push(switch.path.clone());
            switches.push(SwitchGroup {
                names: names.value.clone(),
                uplinks: uplinks.unwrap_or_default(),
            });
        }
        let mut attachments = Vec::new();
        for attach in &item.attachments {
            let (Some(on), Some(nodes)) = (&attach.arg, &attach.nodes) else { continue };
            let fits = are_defined(on, &defined, cx) & rails_fit(on, attach.rails.as_ref(), cx);
            if fits {
                written.attachments.push(attach.path.clone());
                attachments.push(Attachment {
                    switches: on.value.clone(),
                    nodes: nodes.value.clone(),
                    rails: attach.rails.as_ref().map(|rails| rails.value.0),
                });
            }
        }
        if let (Some(name), Some(kind)) = (&item.arg, &item.kind_) {
            let rate = item.rate.as_ref().map(|rate| rate.value);
            let fabric = Fabric { kind: kind.value, rate, switches, attachments };
            items.fabrics.insert(name.value.clone(), written);
            fabrics.insert(name.value.clone(), fabric);
        }
    }
    fabrics
}

/// A switch is defined once.
fn twice(switches: &[kinds::Switch], cx: &mut Cx) {
    let lists: Vec<&At<Hostlist>> = switches.iter().filter_map(|item| item.arg.as_ref()).collect();
    let indexed: Vec<(usize, &Hostlist)> =
        lists.iter().enumerate().map(|(index, list)| (index, &list.value)).collect();
    for (a, b, common) in clashes(&indexed) {
        let (Some(first), Some(second)) = (lists.get(a), lists.get(b)) else { continue };
        let finding =
            Diagnostic::new(&rules::SPEC_DUPLICATE, format!("switch `{common}` is defined twice"))
                .at(second.span, "defined again here")
                .at(first.span, "first defined here");
        cx.report(finding.help(format!("leave `{common}` in one of the two")));
        cx.poison(&second.path);
    }
}

fn are_defined(list: &At<Hostlist>, defined: &Hostlist, cx: &mut Cx) -> bool {
    let strangers = list.value.difference(defined);
    if strangers.is_empty() {
        return true;
    }
    let title = format!("no switch of the fabric is called `{strangers}`");
    let finding = Diagnostic::new(&rules::NAME_UNKNOWN, title).at(list.span, "not defined");
    let known = defined.to_string();
    let near = did_you_mean(&strangers.to_string(), [known.as_str()]).map(str::to_owned);
    cx.report(match near {
        Some(near) => finding.help(format!("did you mean `{near}`?")),
        None => finding.help(format!("define it: `switch \"{strangers}\"`")),
    });
    cx.poison(&list.path);
    false
}

/// A node with rails has one port on each of its switches; one without hangs on one switch.
fn rails_fit(
    on: &At<Hostlist>,
    rails: Option<&At<crate::language::Count<2, 64>>>,
    cx: &mut Cx,
) -> bool {
    let (count, wanted) = (on.value.len(), rails.map_or(1, |rails| u64::from(rails.value.0)));
    if count == wanted {
        return true;
    }
    let title = match rails {
        Some(_) => format!("{wanted} rails on {count} switches"),
        None => format!("nodes hang on {count} switches without rails"),
    };
    let finding = Diagnostic::new(&rules::SPEC_OUT_OF_RANGE, title);
    let finding = finding.at(on.span, format!("{count} switches"));
    cx.report(match rails {
        Some(rails) => {
            finding.at(rails.span, "rails of a node").help(format!("write `rails={count}`"))
        }
        None => finding.help(format!("write `rails={count}`, or attach nodes to each switch")),
    });
    cx.poison(&on.path);
    false
}

/// The declared names of sites.
pub fn declared_sites(spec: &kinds::Spec) -> Declared {
    Declared::of("site", spec.sites.iter().map(|item| (&item.path, item.span)))
}
