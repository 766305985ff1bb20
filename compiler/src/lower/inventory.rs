//! What inventories say, brought together with the spec: nodes of pools and racks, switches, and
//! PCI addresses.
//!
//! A pool or rack that states its nodes is held against the rows; one that does not takes them from
//! there. Work goes by runs of rows and by distinct texts of a column, never by rows.

use std::collections::{BTreeMap, BTreeSet};

use fleetc_schema::diag::{Diagnostic, Span, rules};
use fleetc_schema::intent::{Attachment, Fabric, Override, Rack};
use fleetc_schema::name::{FabricName, PoolName, RackName};
use fleetc_schema::pci::BusId;
use fleetc_schema::{Hostlist, ItemPath};
use indexmap::IndexMap;

use super::names::{Names, quoted};
use super::pools::{LoweredPool, nodes_of};
use super::topology::Items;
use crate::inventory::{Inventory, MAX_FINDINGS, Run, Text, Texts};
use crate::language::{At, Cx, Reference, did_you_mean, kinds, listing};
use crate::source::Sources;

/// The rows of all inventories, with the texts that they stand in.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// What was read.
    pub inventory: &'a Inventory,
    /// The texts.
    pub sources: &'a Sources,
}

/// What the rows leave open: no mistake, but worth a warning.
#[derive(Debug, Default)]
pub struct Loose {
    /// Nodes that a pool states and no row gives to it, of pools that some row names.
    pub missing: Vec<(PoolName, Hostlist)>,
    /// Nodes with a row that are in no pool.
    pub without_pool: Hostlist,
    /// Where the row of the first of these stands.
    pub first_without_pool: Option<Span>,
}

impl<'a> Rows<'a> {
    /// The nodes of runs.
    fn nodes(&self, runs: &[&'a Run]) -> Hostlist {
        self.inventory.table.nodes(runs.iter().copied())
    }

    /// The nodes of each rack that rows name.
    pub fn by_rack(&self) -> BTreeMap<&'a str, Hostlist> {
        let texts = self.texts(&self.inventory.table.racks, Run::rack);
        texts.into_iter().map(|(text, nodes)| (text.text, nodes)).collect()
    }

    /// The distinct texts of a column, each with its nodes, in the order of appearance.
    fn texts(
        &self,
        texts: &'a Texts,
        fact: impl Fn(&Run) -> Option<u32>,
    ) -> Vec<(Text<'a>, Hostlist)> {
        let table = &self.inventory.table;
        let runs = table.runs().iter().filter_map(|run| Some((fact(run)?, run)));
        let mut runs: Vec<(u32, &Run)> = runs.collect();
        runs.sort_by_key(|(id, _)| *id);
        let mut groups = runs.chunk_by(|(a, _), (b, _)| a == b).peekable();
        let mut found = Vec::new();
        for text in texts.iter() {
            // A text may have lost all its rows to others that came first.
            let of_text = |group: &&[(u32, &Run)]| group.iter().all(|(id, _)| *id == text.id);
            if let Some(group) = groups.next_if(of_text) {
                found.push((text, table.nodes(group.iter().map(|(_, run)| *run))));
            }
        }
        found
    }

    /// Where the row of the first of these nodes stands.
    fn row(&self, nodes: &Hostlist, text: Span) -> Span {
        let row = nodes.first().and_then(|node| self.row_of(&node));
        row.unwrap_or(text)
    }

    fn row_of(&self, node: &str) -> Option<Span> {
        self.inventory.table.row_of(node, self.sources)
    }
}

/// Reports at most so many findings of one column, then how many more there are.
struct Limit {
    left: usize,
    more: usize,
}

impl Limit {
    fn new() -> Self {
        Self { left: MAX_FINDINGS, more: 0 }
    }

    fn report(&mut self, finding: Diagnostic, cx: &mut Cx) {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                cx.report(finding);
            }
            None => self.more += 1,
        }
    }

    /// The last word about a column.
    fn finish(self, column: &str, cx: &mut Cx) {
        if self.more > 0 {
            let title = format!("{} more mistakes in column `{column}` are not shown", self.more);
            let finding = Diagnostic::new(&rules::SPEC_SYNTAX, title);
            let finding = finding.at(ItemPath::default().child("inventory"), "in an inventory");
            cx.report(finding.help("mend those that are shown, and check again"));
        }
    }
}

/// Gives the nodes of rows to pools that state none, and holds them against those that do.
pub fn nodes(spec: &mut kinds::Spec, names: &Names, rows: Rows<'_>, cx: &mut Cx) -> Loose {
    let mut loose = Loose::default();
    if rows.inventory.broken {
        // What is missing in such a pool may stand in a row that could not be read.
        for pool in spec.pools.iter().filter(|pool| pool.nodes.is_none() && pool.count.is_none()) {
            cx.poison(&pool.path.child("nodes"));
        }
    }
    let mut limit = Limit::new();
    let stated: Vec<(String, At<Hostlist>)> = spec
        .pools
        .iter()
        .filter_map(|pool| Some((pool.path.last_name().to_owned(), nodes_of(pool)?)))
        .collect();
    let all_stated = stated.iter().fold(Hostlist::default(), |all, (_, at)| all.union(&at.value));
    let with_rows = match stated.is_empty() {
        true => Hostlist::default(),
        false => rows.inventory.table.nodes(rows.inventory.table.runs()),
    };
    for (text, mut nodes) in rows.texts(&rows.inventory.table.pools, Run::pool) {
        let path = ItemPath::default().child("inventory");
        let reference = At { value: Reference(text.text.to_owned()), span: text.span, path };
        let before = cx.diagnostics.len();
        let Some(name) = names.pools.resolve::<PoolName>(&reference, cx) else {
            // The finding is taken back and counted, so that a wrong file is not a million of them.
            if cx.diagnostics.len() > before
                && let Some(finding) = cx.diagnostics.pop()
            {
                limit.report(finding, cx);
            }
            continue;
        };
        let Some(pool) = spec.pools.iter_mut().find(|pool| pool.path.last_name() == text.text)
        else {
            continue;
        };
        let own = stated.iter().find(|(name, _)| name == text.text).map(|(_, nodes)| nodes);
        let others = all_stated.intersection(&nodes);
        let strangers = match own {
            Some(own) => nodes.difference(&own.value),
            None => others,
        };
        if let Some(first) = strangers.first() {
            let (are, them) = if strangers.len() == 1 { ("is", "it") } else { ("are", "them") };
            let holds = |(_, at): &&(String, At<Hostlist>)| at.value.contains(&first);
            let elsewhere = stated.iter().find(holds);
            let title = match elsewhere {
                Some((other, _)) => format!(
                    "`{strangers}` {are} in pool `{name}` by a row, and in `{other}` by the spec"
                ),
                None => {
                    format!("`{strangers}` {are} in pool `{name}` by a row, and not by the spec")
                }
            };
            let mut finding = Diagnostic::new(&rules::INVENTORY_DISAGREES, title)
                .at(rows.row(&strangers, text.span), "this row");
            if let Some(own) = own {
                finding = finding.at(own.span, "the pool's nodes");
            }
            if let Some((other, at)) = elsewhere {
                finding = finding.at(at.span, format!("nodes of `{other}`"));
            }
            let help = match own {
                Some(_) => format!("add {them} to `nodes` of `{name}`, or mend the row"),
                None => format!("take {them} out of the other pool, or mend the row"),
            };
            limit.report(finding.help(help), cx);
            nodes = nodes.difference(&strangers);
        }
        match own {
            Some(own) => {
                let missing = own.value.difference(&with_rows);
                if !missing.is_empty() && !rows.inventory.broken && pool.count.is_none() {
                    loose.missing.push((name, missing));
                }
            }
            None if cx.poisoned.contains(&pool.path.child("nodes")) => {}
            None if nodes.is_empty() => cx.poison(&pool.path.child("nodes")),
            None => {
                let path = pool.path.child("nodes");
                let span = rows.row(&nodes, text.span);
                cx.places.entry(path.clone()).or_insert(span);
                pool.nodes = Some(At { value: nodes, span, path });
            }
        }
    }
    limit.finish("pool", cx);
    loose
}

/// Puts the nodes of rows into racks; a rack that the spec does not define is made.
pub fn racks(
    spec: &kinds::Spec,
    racks: &mut IndexMap<RackName, Rack>,
    items: &mut Items,
    rows: Rows<'_>,
    cx: &mut Cx,
) {
    let mut limit = Limit::new();
    let stated: Vec<&At<Hostlist>> =
        spec.racks.iter().filter_map(|rack| rack.nodes.as_ref()).collect();
    let all_stated = stated.iter().fold(Hostlist::default(), |all, at| all.union(&at.value));
    let by_rows = spec
        .racks
        .iter()
        .filter(|rack| rack.nodes.is_none())
        .filter_map(|rack| rack.arg.as_ref())
        .fold(Hostlist::default(), |all, names| all.union(&names.value));
    for (text, nodes) in rows.texts(&rows.inventory.table.racks, Run::rack) {
        let name = match RackName::new(text.text) {
            Ok(name) => name,
            Err(error) => {
                let finding = Diagnostic::new(&rules::NAME_ILLEGAL, error.to_string());
                let finding = finding.at(text.span, "not a rack name");
                limit.report(finding.help("write a rack name such as `r1`"), cx);
                continue;
            }
        };
        // A rack of the spec that states nodes is held against these; one that does not has them.
        let defined = racks.get(&name).map(|rack| &rack.nodes);
        let wrong = match defined.filter(|_| !by_rows.contains(text.text)) {
            Some(own) => nodes.difference(own),
            None => nodes.intersection(&all_stated),
        };
        let is_defined = defined.is_some();
        if let Some(first) = wrong.first() {
            let are = if wrong.len() == 1 { "is" } else { "are" };
            let title = format!("`{wrong}` {are} in rack `{name}` by a row, and not by the spec");
            let mut finding = Diagnostic::new(&rules::INVENTORY_DISAGREES, title)
                .at(rows.row(&wrong, text.span), "this row");
            let other = stated.iter().find(|at| at.value.contains(&first));
            let own = spec.racks.iter().find(|rack| {
                rack.arg.as_ref().is_some_and(|names| names.value.contains(text.text))
            });
            if let Some(at) = other {
                finding = finding.at(at.span, "nodes of another rack");
            }
            if let Some(rack) = own {
                finding = finding.at(rack.span, "this rack");
            }
            limit.report(finding.help("mend the row, or `nodes` of the rack"), cx);
        }
        if !is_defined {
            let nodes = if wrong.is_empty() { nodes } else { nodes.difference(&wrong) };
            let path = ItemPath::item("rack", &name);
            cx.places.entry(path.clone()).or_insert(text.span);
            items.racks.insert(name.clone(), path);
            let rack = Rack {
                nodes,
                product: None,
                domain: None,
                partitions: None,
                power: None,
                site: None,
            };
            racks.insert(name, rack);
        }
    }
    limit.finish("rack", cx);
}

/// Attaches the nodes of rows to switches. A node may hang on switches of several fabrics.
pub fn attachments(
    spec: &kinds::Spec,
    fabrics: &mut IndexMap<FabricName, Fabric>,
    items: &mut Items,
    rows: Rows<'_>,
    cx: &mut Cx,
) {
    let mut limit = Limit::new();
    let mut found: BTreeMap<(FabricName, String), (Hostlist, Hostlist, Span)> = BTreeMap::new();
    let mut unknown = BTreeSet::new();
    for (text, nodes) in rows.texts(&rows.inventory.table.switches, Run::switch) {
        let mut on: IndexMap<FabricName, Hostlist> = IndexMap::new();
        for (part, span) in parts(text, rows.sources) {
            let has =
                |fabric: &Fabric| fabric.switches.iter().any(|group| group.names.contains(part));
            let mut having = fabrics.iter().filter(|(_, fabric)| has(fabric)).map(|(name, _)| name);
            match (having.next(), having.next()) {
                (Some(fabric), None) => {
                    let list = on.entry(fabric.clone()).or_default();
                    *list = list.union(&Hostlist::single(part));
                }
                (Some(a), Some(b)) => {
                    let title = format!("fabrics `{a}` and `{b}` both have a switch `{part}`");
                    let finding = Diagnostic::new(&rules::NAME_UNKNOWN, title);
                    let finding = finding.at(span, "which of the two?");
                    limit.report(
                        finding.help("give switches of different fabrics different names"),
                        cx,
                    );
                }
                // The same name in other cells is the same mistake.
                (None, _) if unknown.len() > MAX_FINDINGS || unknown.insert(part) => {
                    limit.report(unknown_switch(part, span, fabrics), cx);
                }
                (None, _) => {}
            }
        }
        for (fabric, switches) in on {
            let key = (fabric, switches.to_string());
            let entry =
                found.entry(key).or_insert_with(|| (switches, Hostlist::default(), text.span));
            entry.1 = entry.1.union(&nodes);
        }
    }
    for ((name, _), (switches, mut nodes, span)) in found {
        let item = spec.fabrics.iter().find(|item| item.path.last_name() == name.as_str());
        for attach in item.iter().flat_map(|item| &item.attachments) {
            let (Some(on), Some(stated)) = (&attach.arg, &attach.nodes) else { continue };
            let common = nodes.intersection(&stated.value);
            if common.is_empty() {
                continue;
            }
            nodes = nodes.difference(&common);
            if on.value != switches {
                let (hang, their) =
                    if common.len() == 1 { ("hangs", "its") } else { ("hang", "their") };
                let title = format!(
                    "`{common}` {hang} on `{switches}` by {their} row, and on `{}` by the spec",
                    on.value
                );
                let finding = Diagnostic::new(&rules::INVENTORY_DISAGREES, title)
                    .at(rows.row(&common, span), "this row")
                    .at(stated.span, format!("nodes on `{}`", on.value));
                limit.report(finding.help("mend the row, or `attach` in the spec"), cx);
            }
        }
        if let Some(fabric) = fabrics.get_mut(&name).filter(|_| !nodes.is_empty()) {
            let rails = u32::try_from(switches.len()).ok().filter(|rails| *rails > 1);
            fabric.attachments.push(Attachment { switches, nodes, rails });
            // No item of the spec holds it: the nearest is the fabric.
            if let Some(written) = items.fabrics.get_mut(&name) {
                written.attachments.push(ItemPath::item("fabric", &name));
            }
        }
    }
    limit.finish("switch", cx);
}

fn unknown_switch(name: &str, span: Span, fabrics: &IndexMap<FabricName, Fabric>) -> Diagnostic {
    let title = format!("no fabric has a switch `{name}`");
    let finding = Diagnostic::new(&rules::NAME_UNKNOWN, title).at(span, "not defined");
    let known: Vec<String> = fabrics
        .values()
        .flat_map(|fabric| &fabric.switches)
        .flat_map(|group| group.names.slice(0, 1_000).names().collect::<Vec<_>>())
        .collect();
    let known = || known.iter().map(String::as_str);
    match did_you_mean(name, known()) {
        Some(near) => finding.help(format!("did you mean `{near}`?")),
        None if fabrics.is_empty() => finding
            .help("define it: `fabric \"compute\" kind=\"infiniband\" { switch \"leaf[1-8]\" }`"),
        None => finding.help(format!("the fabrics have {}", listing(known()))),
    }
}

/// The words of a cell that holds several, each with its place if the file has it verbatim.
fn parts<'a>(text: Text<'a>, sources: &'a Sources) -> impl Iterator<Item = (&'a str, Span)> {
    let written = sources.text(text.span);
    let words = text.text.split([' ', ';']).filter(|word| !word.is_empty());
    let mut from = 0;
    words.map(move |word| {
        let at = written.get(from..).and_then(|rest| rest.find(word)).map(|at| from + at);
        let Some(at) = at else { return (word, text.span) };
        from = at + word.len();
        let place = |at: usize| text.span.start.saturating_add(u32::try_from(at).unwrap_or(0));
        (word, Span { file: text.span.file, start: place(at), end: place(from) })
    })
}

/// Gives pools the PCI addresses of their nodes.
pub fn overrides(pools: &mut IndexMap<PoolName, LoweredPool>, rows: Rows<'_>, cx: &mut Cx) {
    let table = &rows.inventory.table;
    let mut limit = Limit::new();
    let mut lists: BTreeMap<u32, (Vec<BusId>, Span)> = BTreeMap::new();
    for text in table.pci.iter() {
        match addresses(text, rows.sources) {
            Ok(list) => {
                lists.insert(text.id, (list, text.span));
            }
            Err(finding) => limit.report(*finding, cx),
        }
    }
    // Each pool's nodes by their addresses, however these are spelt.
    let ids: BTreeMap<u32, PoolName> = table
        .pools
        .iter()
        .filter_map(|text| Some((text.id, PoolName::new(text.text).ok()?)))
        .collect();
    let mut runs: BTreeMap<(Option<&PoolName>, u32), Vec<&Run>> = BTreeMap::new();
    for run in table.runs() {
        if let Some(pci) = run.pci().filter(|pci| lists.contains_key(pci)) {
            let pool = run.pool().and_then(|id| ids.get(&id));
            runs.entry((pool, pci)).or_default().push(run);
        }
    }
    let mut found: BTreeMap<(usize, &[BusId]), (Hostlist, Span)> = BTreeMap::new();
    for ((named, pci), runs) in runs {
        let Some((list, span)) = lists.get(&pci) else { continue };
        let nodes = rows.nodes(&runs);
        let candidates = match named {
            Some(name) => pools.get_full(name).map(|(at, ..)| at..at + 1).unwrap_or_default(),
            None => 0..pools.len(),
        };
        for at in candidates {
            let Some((_, pool)) = pools.get_index(at) else { continue };
            let here = nodes.intersection(&pool.pool.nodes);
            if !here.is_empty() {
                let entry = found.entry((at, list)).or_insert((Hostlist::default(), *span));
                entry.0 = entry.0.union(&here);
            }
        }
    }
    for ((at, list), (nodes, text)) in found {
        let Some((name, pool)) = pools.get_index_mut(at) else { continue };
        let (count, gpus) = (list.len(), usize::from(pool.system.gpus));
        if count != gpus {
            let addresses = if count == 1 { "address" } else { "addresses" };
            let title = format!("{count} PCI {addresses}, a node of `{name}` has {gpus} GPUs");
            let mut finding = Diagnostic::new(&rules::SPEC_OUT_OF_RANGE, title)
                .at(text, format!("{count} {addresses}"))
                .at(pool.path.child("system"), format!("{gpus} GPUs"));
            if count < gpus {
                finding =
                    finding.note("a GPU that an `exception` takes away keeps its address here");
            }
            let help = match gpus {
                0 => "leave the cell empty".to_owned(),
                _ => format!("write the addresses of all {gpus} GPUs of a complete node, rising"),
            };
            limit.report(finding.help(help), cx);
            continue;
        }
        // The first node tells one override of a pool from another.
        let first = nodes.first().unwrap_or_default();
        let path = pool.path.keyed("pci", [first]);
        cx.places.entry(path.clone()).or_insert(text);
        pool.pool.overrides.push(Override { nodes, pci: list.to_vec(), path });
    }
    for pool in pools.values_mut() {
        pool.pool.overrides.sort_by(|a, b| a.nodes.cmp_first(&b.nodes));
    }
    limit.finish("pci", cx);
}

/// The addresses of a cell.
fn addresses(text: Text<'_>, sources: &Sources) -> Result<Vec<BusId>, Box<Diagnostic>> {
    let mut list: Vec<BusId> = Vec::new();
    for (word, span) in parts(text, sources) {
        match word.parse::<BusId>() {
            Ok(id) => list.push(id),
            Err(error) => {
                let finding = Diagnostic::new(&rules::SPEC_WRONG_TYPE, error.to_string());
                let finding = finding.at(span, "not an address");
                let help = "`nvidia-smi --query-gpu=pci.bus_id --format=csv` prints them";
                return Err(Box::new(finding.help(help)));
            }
        }
    }
    if list.is_sorted_by(|a, b| a < b) {
        return Ok(list);
    }
    let mut sorted = list.clone();
    sorted.sort();
    let repeats = sorted.windows(2).any(|pair| matches!(pair, [a, b] if a == b));
    let finding = match repeats {
        true => Diagnostic::new(&rules::SPEC_DUPLICATE, "one PCI address for two GPUs")
            .at(text.span, "an address stands twice")
            .help("write the address of each GPU once"),
        false => Diagnostic::new(&rules::SPEC_OUT_OF_RANGE, "the PCI addresses do not rise")
            .at(text.span, "in another order")
            .note("GPU numbers count by PCI address, as NVML's indexes do")
            .help(format!("write {}", quoted([joined(&sorted)]))),
    };
    Err(Box::new(finding))
}

fn joined(list: &[BusId]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

impl Loose {
    /// Notes the nodes with a row that are in no pool.
    pub fn without_pool(&mut self, pools: &IndexMap<PoolName, LoweredPool>, rows: Rows<'_>) {
        let table = &rows.inventory.table;
        let all = table.nodes(table.runs().iter().filter(|run| run.pool().is_none()));
        let pooled =
            pools.values().fold(Hostlist::default(), |all, pool| all.union(&pool.pool.nodes));
        self.without_pool = all.difference(&pooled);
        let first = self.without_pool.first();
        self.first_without_pool = first.and_then(|node| rows.row_of(&node));
    }
}
