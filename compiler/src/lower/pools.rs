//! Pools.

use fleetc_schema::catalog::Catalog;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{
    Capacity, Devices, Exception, GpuIndexes, MigStrategy, Pool, Shared, Sharing, Taint,
};
use fleetc_schema::name::{ClusterName, PoolName, TeamName};
use fleetc_schema::{Hostlist, ItemPath};
use indexmap::IndexMap;

use super::mig::{self, Board, Placed};
use super::names::{Names, report_clashes};
use super::systems::{Hardware, Systems};
use crate::language::kinds::SharingMode;
use crate::language::{At, Cx, kinds};

/// A pool with what its classes are made from.
#[derive(Debug)]
pub struct LoweredPool {
    /// As it goes into the Intent.
    pub pool: Pool,
    /// Its hardware.
    pub system: Hardware,
    /// Its MIG layouts; empty unless it is shared through MIG.
    pub layouts: Vec<Placed>,
    /// Its item.
    pub path: ItemPath,
}

/// Lowers pools; a node is in one.
pub fn lower(
    spec: &kinds::Spec,
    catalog: &Catalog,
    systems: &Systems<'_>,
    names: &Names,
    cx: &mut Cx,
) -> IndexMap<PoolName, LoweredPool> {
    let mut pools = IndexMap::new();
    let mut nodes = Vec::new();
    for item in &spec.pools {
        elastic_or_named(item, cx);
        if let Some(list) = &item.nodes {
            let name = item.arg.as_ref().map_or_else(String::new, |name| name.value.to_string());
            nodes.push((name, list));
        }
        match lower_pool(item, catalog, systems, names, cx) {
            Some((name, pool)) => {
                pools.insert(name, pool);
            }
            None => cx.poison(&item.path),
        }
    }
    report_clashes(&rules::NAME_NODE_TWICE, "pool", &nodes, cx);
    pools
}

fn lower_pool(
    item: &kinds::Pool,
    catalog: &Catalog,
    systems: &Systems<'_>,
    names: &Names,
    cx: &mut Cx,
) -> Option<(PoolName, LoweredPool)> {
    // Every part is read before any is given up, so that each mistake shows in one run.
    let system_ref = item.system.as_ref();
    let system = system_ref.and_then(|system| systems.resolve(system, cx));
    let parts = owners(item, names, cx);
    let sharing = match (&item.sharing, &system, system_ref) {
        (Some(sharing), Some(system), Some(reference)) => match &system.gpu {
            Some(gpu) => {
                let board = Board { gpu, count: system.gpus, system: reference.span };
                lower_sharing(sharing, board, names, catalog, cx)
            }
            None => {
                let title = format!("`{}` has no GPU to share", system.key);
                let finding = Diagnostic::new(&rules::CATALOG_EXCEEDS_SYSTEM, title)
                    .at(sharing.span, "of what?")
                    .at(reference.span, "a system without GPUs");
                cx.report(finding.help("remove `sharing`"));
                None
            }
        },
        (None, ..) if !cx.poisoned.contains(&item.path.child("sharing")) => {
            Some((Sharing::Whole, Vec::new()))
        }
        _ => None,
    };
    let nodes = nodes_of(item);
    let exceptions = match (&nodes, &system) {
        (Some(nodes), Some(system)) => Some(exceptions(item, nodes, system.gpus, cx)),
        _ => None,
    };
    let capacity = match &item.capacity {
        None => None,
        Some(capacity) => Some(Capacity {
            model: capacity.arg.as_ref()?.value,
            provider: capacity.provider.as_ref().map(|provider| provider.value.clone()),
            region: capacity.region.as_ref().map(|region| region.value.clone()),
            price: capacity.price.as_ref().map(|price| price.value),
        }),
    };
    placement_of_named(item, cx);
    let (sharing, layouts) = sharing?;
    let system = system?;
    let pool = Pool {
        system: system.key.clone(),
        nodes: nodes?.value,
        parts: parts?,
        sharing,
        exceptions: exceptions?,
        overrides: Vec::new(),
        elastic: item.count.as_ref().map(|count| count.value.0),
        devices: item.devices.as_ref().map_or(Devices::DevicePlugin, |devices| devices.value),
        max_unavailable: item.max_unavailable.as_ref().map(|count| count.value.0),
        capacity,
        placement: item.placement.as_ref().map(|placement| placement.value),
        features: item.features.iter().flatten().map(|feature| feature.value.clone()).collect(),
        weight: item.weight.as_ref().map(|weight| weight.value.0),
        taints: item.taints.iter().filter_map(|taint| lower_taint(taint, cx)).collect(),
        driver: item.driver.as_ref().map(|driver| driver.value.clone()),
        gpu_reset: item.gpu_reset.as_ref().is_none_or(|reset| reset.value),
    };
    let name = item.arg.as_ref()?.value.clone();
    Some((name, LoweredPool { pool, system, layouts, path: item.path.clone() }))
}

/// A taint that Kubernetes takes, and node-feature-discovery sets: its key has a prefix, and none of
/// Kubernetes itself. Source: node-feature-discovery v0.19.0, "NodeFeatureRule", taints.
fn lower_taint(item: &kinds::Taint, cx: &mut Cx) -> Option<Taint> {
    let key = item.arg.as_ref()?;
    let part = |text: &str, limit: usize| {
        let ends = |c: char| c.is_ascii_alphanumeric();
        text.len() <= limit
            && text.starts_with(ends)
            && text.ends_with(ends)
            && text.chars().all(|c| ends(c) || matches!(c, '-' | '_' | '.'))
    };
    let mut illegal = |at: &At<String>, problem: &str, help: &str| {
        let title = format!("`{}` {problem}", at.value);
        let finding = Diagnostic::new(&rules::NAME_ILLEGAL, title).at(at.span, "not of a taint");
        cx.report(finding.help(help));
    };
    let kept = |prefix: &str| {
        ["kubernetes.io", "k8s.io"].iter().any(|domain| {
            let rest = prefix.strip_suffix(domain);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    };
    match key.value.split_once('/') {
        Some((prefix, name)) if part(prefix, 253) && part(name, 63) && !kept(prefix) => {}
        Some((prefix, _)) if kept(prefix) => {
            let help = "write a domain of your own, or `nvidia.com/gpu`";
            illegal(key, "is a key of Kubernetes itself", help);
            return None;
        }
        Some(_) | None => {
            let help = "write a domain, `/` and a name: `nvidia.com/gpu`";
            illegal(key, "is no key of a taint with a prefix", help);
            return None;
        }
    }
    if let Some(value) = item.value.as_ref().filter(|value| !part(&value.value, 63)) {
        let help = "use at most 63 letters, digits, `-`, `_` and `.`, or leave it out";
        illegal(value, "is no value of a taint", help);
        return None;
    }
    Some(Taint {
        key: key.value.clone(),
        value: item.value.as_ref().map(|value| value.value.clone()),
        effect: item.effect.as_ref()?.value,
    })
}

/// A pool has nodes by name, or a number of nodes that come and go.
fn elastic_or_named(item: &kinds::Pool, cx: &mut Cx) {
    let name = item.path.last_name();
    match (&item.nodes, &item.count) {
        (Some(nodes), Some(count)) => {
            let title = format!("pool `{name}` has nodes by name and by number");
            let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, title)
                .at(count.span, "a number of nodes")
                .at(nodes.span, "nodes by name");
            cx.report(finding.help("keep `nodes`, or `count` if the nodes come and go"));
            cx.poison(&nodes.path);
        }
        (None, None) => {
            let unread = ["nodes", "count"].map(|key| item.path.child(key));
            if !unread.iter().any(|path| cx.poisoned.contains(path))
                && !cx.unclear.contains(&item.path)
            {
                let title = format!("pool `{name}` states no `nodes`");
                let finding = Diagnostic::new(&rules::SPEC_MISSING, title)
                    .at(item.span, "neither `nodes` nor `count` in here");
                let finding = match cx.places.contains_key(&ItemPath::default().child("inventory"))
                {
                    true => finding.note("no row of an inventory names this pool"),
                    false => finding,
                };
                cx.report(
                    finding.help("add `nodes \"gpu[001-032]\"`, or `count 16` if they come and go"),
                );
            }
        }
        (Some(_), None) | (None, Some(_)) => {}
    }
}

/// A placement is asked of a provider when nodes come; nodes that are there stand where they stand.
fn placement_of_named(item: &kinds::Pool, cx: &mut Cx) {
    if let (Some(placement), Some(nodes)) = (&item.placement, &item.nodes) {
        let title = "`placement` belongs to a pool whose nodes come and go";
        let finding = Diagnostic::new(&rules::SPEC_UNKNOWN_NODE, title)
            .at(placement.span, "has no meaning here")
            .at(nodes.span, "these nodes stand where they stand");
        cx.report(finding.help("remove it; racks and fabrics say where named nodes are"));
    }
}

/// The nodes of a pool; those of an elastic one are `<pool>-[0001-0016]`, always four digits.
pub(super) fn nodes_of(item: &kinds::Pool) -> Option<At<Hostlist>> {
    match (&item.nodes, &item.count) {
        (Some(nodes), _) => Some(nodes.clone()),
        (None, Some(count)) => {
            let name = &item.arg.as_ref()?.value;
            let list = format!("{name}-[0001-{:04}]", count.value.0);
            let value = list.parse().ok()?;
            Some(At { value, span: count.span, path: count.path.clone() })
        }
        (None, None) => None,
    }
}

/// The owner of the pool, or the owners of its parts.
fn owners(
    item: &kinds::Pool,
    names: &Names,
    cx: &mut Cx,
) -> Option<IndexMap<ClusterName, Hostlist>> {
    match (&item.cluster, &item.split) {
        (Some(cluster), Some(split)) => {
            let title = "a pool has one owner or is split, not both";
            let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, title)
                .at(split.span, "split here")
                .at(cluster.span, "one owner here");
            cx.report(finding.help("remove `cluster`, or remove `split`"));
            None
        }
        (None, None) => {
            let unread = cx.poisoned.contains(&item.path.child("cluster"));
            if !unread && !cx.unclear.contains(&item.path) {
                let title = match &item.arg {
                    Some(name) => format!("pool `{}` has no owner", name.value),
                    None => "the pool has no owner".to_owned(),
                };
                let finding = Diagnostic::new(&rules::SPEC_MISSING, title)
                    .at(item.span, "neither `cluster` nor `split` in here");
                cx.report(
                    finding.help("add `cluster \"…\"`, or `split { cluster \"…\" nodes=\"…\" }`"),
                );
            }
            None
        }
        (Some(cluster), None) => {
            let owner = names.clusters.resolve(cluster, cx)?;
            Some(IndexMap::from([(owner, nodes_of(item)?.value)]))
        }
        (None, Some(split)) => parts(item, split, names, cx),
    }
}

fn parts(
    item: &kinds::Pool,
    split: &kinds::Split,
    names: &Names,
    cx: &mut Cx,
) -> Option<IndexMap<ClusterName, Hostlist>> {
    let mut parts = IndexMap::new();
    let mut lists = Vec::new();
    let mut complete = !split.parts.is_empty();
    if split.parts.is_empty() {
        let finding = Diagnostic::new(&rules::SPEC_MISSING, "the split names no owner");
        cx.report(finding.at(split.span, "empty").help("add `cluster \"…\" nodes=\"…\"`"));
    }
    for part in &split.parts {
        let owner = part.arg.as_ref().and_then(|name| names.clusters.resolve(name, cx));
        let (Some(owner), Some(nodes)) = (owner, &part.nodes) else {
            complete = false;
            continue;
        };
        if let Some(all) = nodes_of(item) {
            complete &= inside(nodes, &all, &item.arg, cx);
        }
        lists.push((ClusterName::to_string(&owner), nodes));
        parts.insert(owner, nodes.value.clone());
    }
    let before = cx.diagnostics.len();
    report_clashes(&rules::OWNERSHIP_TWO_SCHEDULERS, "the part of cluster", &lists, cx);
    (complete && cx.diagnostics.len() == before).then_some(parts)
}

/// Checks that all nodes of a list are nodes of the pool.
fn inside(
    list: &At<Hostlist>,
    all: &At<Hostlist>,
    pool: &Option<At<PoolName>>,
    cx: &mut Cx,
) -> bool {
    let strangers = list.value.difference(&all.value);
    if strangers.is_empty() {
        return true;
    }
    let are = if strangers.len() == 1 { "is" } else { "are" };
    let pool = pool.as_ref().map_or_else(String::new, |name| format!(" `{}`", name.value));
    let title = format!("`{strangers}` {are} not in pool{pool}");
    let finding = Diagnostic::new(&rules::NAME_UNKNOWN, title)
        .at(list.span, "names nodes from outside")
        .at(all.span, "the pool's nodes");
    cx.report(finding.help(format!("add `{strangers}` to the pool's nodes, or remove it here")));
    cx.poison(&list.path);
    false
}

fn exceptions(
    item: &kinds::Pool,
    nodes: &At<Hostlist>,
    gpus_per_node: u8,
    cx: &mut Cx,
) -> Vec<Exception> {
    let mut exceptions: Vec<Exception> = Vec::new();
    for exception in &item.exceptions {
        let (Some(list), Some(missing)) = (&exception.node, &exception.missing) else { continue };
        if !inside(list, nodes, &item.arg, cx) {
            continue;
        }
        let earlier = exceptions.iter().find_map(|other| {
            let common = other.nodes.intersection(&list.value);
            (!common.is_empty()).then(|| (common, other.path.clone()))
        });
        if let Some((common, first)) = earlier {
            let title = format!("`{common}` has two exceptions");
            let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, title)
                .at(list.span, "a second one")
                .at(first, "the first one");
            cx.report(finding.help("join them: `missing 2 3`"));
            cx.poison(&exception.path);
            continue;
        }
        let mut slots = Vec::new();
        for slot in missing {
            match u8::try_from(slot.value.0) {
                Ok(slot) if slot < gpus_per_node => slots.push(slot),
                _ => {
                    let last = gpus_per_node.saturating_sub(1);
                    let title = format!(
                        "GPU {} is out of range: a node has {gpus_per_node} GPUs, 0 to {last}",
                        slot.value.0
                    );
                    let finding = Diagnostic::new(&rules::CATALOG_EXCEEDS_SYSTEM, title);
                    let finding = finding.at(slot.span, "beyond the last GPU");
                    cx.report(finding.help(format!("numbers go from 0 to {last}")));
                    cx.poison(&exception.path);
                }
            }
        }
        exceptions.push(Exception {
            nodes: list.value.clone(),
            missing: GpuIndexes::new(slots),
            reason: exception.reason.as_ref().map(|reason| reason.value.clone()),
            path: exception.path.clone(),
        });
    }
    exceptions
}

fn lower_sharing(
    item: &kinds::Sharing,
    board: Board<'_>,
    names: &Names,
    catalog: &Catalog,
    cx: &mut Cx,
) -> Option<(Sharing, Vec<Placed>)> {
    let mode = item.arg.as_ref()?;
    misplaced(item, mode, cx);
    match mode.value {
        SharingMode::Whole => Some((Sharing::Whole, Vec::new())),
        SharingMode::Mig => {
            let layouts = mig::lower(item, board, catalog, cx)?;
            let strategy = item.strategy.as_ref().map_or(MigStrategy::Mixed, |s| s.value);
            let in_intent = layouts.iter().map(|placed| placed.layout.clone()).collect();
            Some((Sharing::Mig { strategy, layouts: in_intent }, layouts))
        }
        SharingMode::Mps | SharingMode::TimeSlicing => {
            let Some(replicas) = &item.replicas else {
                if !cx.poisoned.contains(&item.path.child("replicas")) {
                    let finding =
                        Diagnostic::new(&rules::SPEC_MISSING, "sharing states no `replicas`")
                            .at(item.span, "how many clients has a GPU?");
                    cx.report(finding.help("add `replicas=4`"));
                }
                return None;
            };
            let team = match &item.team {
                Some(team) => Some(names.teams.resolve::<TeamName>(team, cx)?),
                None => None,
            };
            let rename = item.rename.as_ref().is_none_or(|rename| rename.value);
            let shared = Shared { replicas: replicas.value.0, rename, team };
            let sharing = match mode.value {
                SharingMode::Mps => Sharing::Mps(shared),
                _ => Sharing::TimeSlicing(shared),
            };
            Some((sharing, Vec::new()))
        }
    }
}

/// Reports fields of another way of sharing.
fn misplaced(item: &kinds::Sharing, mode: &At<SharingMode>, cx: &mut Cx) {
    let mig = mode.value == SharingMode::Mig;
    let replicated = matches!(mode.value, SharingMode::Mps | SharingMode::TimeSlicing);
    let strategy = item.strategy.as_ref().filter(|_| !mig).map(|s| ("strategy", s.span, "`mig`"));
    let gpus = item.gpus.first().filter(|_| !mig).map(|g| ("gpus", g.span, "`mig`"));
    let replicas = item.replicas.as_ref().filter(|_| !replicated);
    let replicas = replicas.map(|r| ("replicas", r.span, "`mps` and `time-slicing`"));
    let shares = "`mps` and `time-slicing`";
    let rename = item.rename.as_ref().filter(|_| !replicated).map(|r| ("rename", r.span, shares));
    let team = item.team.as_ref().filter(|_| !replicated).map(|t| ("team", t.span, shares));
    for (word, span, belongs) in [strategy, gpus, replicas, rename, team].into_iter().flatten() {
        let rule = match word {
            "gpus" => &rules::SPEC_UNKNOWN_NODE,
            _ => &rules::SPEC_UNKNOWN_PROPERTY,
        };
        let title = format!("`{word}` belongs to sharing {belongs}");
        let finding = Diagnostic::new(rule, title)
            .at(span, "has no meaning here")
            .at(mode.span, "this way of sharing has none");
        cx.report(finding.help(format!("remove it, or share through {belongs}")));
    }
}
