//! Where a value comes from, what a node will look like, and the spec behind a line of output.

use camino::Utf8Path;
use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Place, Span};
use fleetc_schema::intent::{Class, Intent, NodeClass, Workload};
use fleetc_schema::topology::{Domain, Topology};

use crate::language::did_you_mean;
use crate::lower::Origin;
use crate::{Checked, compile, sizing};

/// `fleet.kdl:14:18` with the line that it is.
fn place(checked: &Checked, span: Span) -> String {
    let Some(source) = checked.sources.of(span) else { return String::new() };
    let position = source.position(span.start);
    let line = source.text.lines().nth(position.line as usize - 1).unwrap_or_default();
    format!("{}:{}:{}\n    {}", source.path, position.line, position.column, line.trim())
}

/// Explains an item: where it is written, what an overlay replaced, and which files hold it.
///
/// # Errors
/// The spec has no such item.
pub fn item(checked: &Checked, text: &str) -> Result<String, String> {
    let Ok(path) = text.parse::<ItemPath>();
    let Some(span) = checked.places().get(&path) else {
        let near = did_you_mean(text, checked.places().keys().map(ItemPath::as_str));
        let hint = near.map_or_else(
            || "paths look like `pool/train/nodes`".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(format!("the spec has no item `{text}`: {hint}"));
    };
    let mut out = format!("{path}\n  written at {}\n", place(checked, *span));
    for over in checked.overrides().iter().filter(|over| over.path == path) {
        out.push_str(&format!("  wins over {}\n", place(checked, over.loser)));
    }
    if let Some(origins) = checked.origins().get(&path) {
        out.push_str("  values\n");
        origins.iter().for_each(|origin| out.push_str(&origin_line(origin)));
    }
    let workloads = &checked.partial_intent().workloads;
    if let Some((_, workload)) =
        workloads.iter().find(|(name, _)| ItemPath::item("workload", name) == path)
    {
        out.push_str(&memory(checked.partial_intent(), workload));
    }
    let inside: Vec<&ItemPath> =
        checked.places().keys().filter(|other| **other != path && other.is_within(&path)).collect();
    if !inside.is_empty() {
        out.push_str("  holds\n");
        for other in inside {
            let value = checked.places().get(other).map(|span| checked.sources.text(*span));
            out.push_str(&format!("    {other}  {}\n", value.unwrap_or_default()));
        }
    }
    if let Some(tree) = compile(checked) {
        let caused = |file: &fleetc_targets::OutputFile| {
            let items = file.blocks.iter().flat_map(|block| &block.items);
            items.into_iter().any(|item| item.is_within(&path) || path.is_within(item))
        };
        let files: Vec<&Utf8Path> = tree
            .files()
            .into_iter()
            .filter(|(name, file)| !name.as_str().contains("/intent/") && caused(file))
            .map(|(name, _)| name)
            .collect();
        if !files.is_empty() {
            out.push_str("  goes into\n");
            files.iter().for_each(|file| out.push_str(&format!("    {file}\n")));
        }
    }
    Ok(out)
}

/// A value of a fleet's own hardware, with where it comes from or what it replaced.
fn origin_line(origin: &Origin) -> String {
    let unknown = "not known";
    let value = origin.value.as_deref().unwrap_or(unknown);
    let base = origin.base.as_deref().unwrap_or(unknown);
    let from = match (origin.written, origin.value == origin.base) {
        (true, true) => format!("written, as in {}", origin.source),
        (true, false) => format!("written, replaces {base} from {}", origin.source),
        (false, true) => format!("from {}", origin.source),
        (false, false) => {
            format!("follows from what is written; {base} in {}", origin.source)
        }
    };
    format!("    {}: {value}  ({from})\n", origin.word)
}

/// What a workload needs of a GPU or slice, term by term, and what it is given.
fn memory(intent: &Intent, workload: &Workload) -> String {
    let Some(need) = sizing::need(workload) else { return String::new() };
    let mut out = "  memory\n".to_owned();
    need.notes.iter().for_each(|note| out.push_str(&format!("    {note}\n")));
    if let (true, Some(derived)) = (need.stated, sizing::derive(workload)) {
        out.push_str(&format!("    {}\n", derived.weights.text));
    }
    if let Some(place) = sizing::place(intent, workload) {
        let percent = sizing::percent(need.likely, place.size);
        out.push_str(&format!("    {percent} of the {} of {}\n", place.size, place.name));
    }
    out
}

/// Explains a node: its class, its place, and what Slurm, Kubernetes and NVML will show.
///
/// # Errors
/// No class has the node.
pub fn node(checked: &Checked, name: &str) -> Result<String, String> {
    let intent = checked.partial_intent();
    let Some(class) = intent.classes.values().find(|class| class.nodes.contains(name)) else {
        let firsts: Vec<String> =
            intent.classes.values().filter_map(|class| class.nodes.first()).collect();
        let hint = match did_you_mean(name, firsts.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "nodes look like {}",
                crate::language::listing(firsts.iter().map(String::as_str))
            ),
        };
        return Err(format!("no class has a node `{name}`: {hint}"));
    };
    let node = &class.node;
    let mut out = format!(
        "{name}\n  class    {} ({} of {})\n  cluster  {}\n  system   {}\n",
        node.name,
        position(class, name),
        class.nodes.len(),
        node.cluster,
        node.system
    );
    out.push_str(&whereabouts(checked.topology(), name));
    out.push_str(&format!("  driver   {} ({})\n", node.driver.version, node.driver.owner));
    if let Some((policy, _)) = &node.policy {
        out.push_str(&format!("  policy   {policy}\n"));
    }
    out.push_str(&published(intent, node, &place_labels(checked, node, name)));
    out.push_str(&gpus(intent, node, name));
    out.push_str(&addresses(intent, node, name));
    Ok(out)
}

/// Labels of the place of a node by which its queue keeps jobs together.
fn place_labels(checked: &Checked, node: &NodeClass, name: &str) -> Vec<String> {
    let intent = checked.partial_intent();
    let Some(cluster) = intent.clusters.get(&node.cluster) else { return Vec::new() };
    let labels = checked.topology().place_labels(intent, cluster);
    let of_node = labels.iter().filter_map(|label| {
        let (place, _) = label.places.iter().find(|(_, nodes)| nodes.contains(name))?;
        Some(format!("{}={place}", label.key))
    });
    of_node.collect()
}

/// Which of the class's nodes it is, from 1.
fn position(class: &Class, name: &str) -> u64 {
    let before = |count: u64| class.nodes.slice(0, count).contains(name);
    // The least count of leading nodes that holds it.
    let (mut low, mut high) = (1, class.nodes.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match before(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    low
}

/// Its rack and site, its leaf in each fabric with what stands above, and its NVLink domain.
fn whereabouts(topology: &Topology, name: &str) -> String {
    let mut out = String::new();
    let Some(standing) = topology.standing_of(name) else { return out };
    if let Some(rack) = standing.rack {
        let site = standing.site.map(|site| format!(" at {site}")).unwrap_or_default();
        out.push_str(&format!("  rack     {rack}{site}\n"));
    }
    for (fabric, leaf) in &standing.leaves {
        let Some(logical) = topology.fabric(fabric) else { continue };
        let switch = |at: usize| logical.switches.get(at);
        let Some(nearest) = switch(*leaf) else { continue };
        let rails = nearest.rails.map(|n| format!(", {n} rails")).unwrap_or_default();
        out.push_str(&format!("  fabric   {fabric}: {}{rails}", nearest.names));
        for above in logical.path_up(*leaf).into_iter().skip(1).filter_map(switch) {
            out.push_str(&format!(", below {}", above.names));
        }
        out.push('\n');
    }
    let joins = match (standing.domain, standing.group.nvlink_domain) {
        (Some(Domain { gpus, rack: Some(rack), .. }), _) => {
            format!("one domain of {gpus} GPUs with the other nodes of rack {rack}")
        }
        (Some(Domain { gpus, .. }), _) if *gpus == standing.group.complete => {
            format!("one domain of {gpus} GPUs in the node")
        }
        (Some(Domain { gpus, .. }), _) => {
            let islands = standing.group.complete.div_ceil(*gpus);
            format!("{islands} domains of {gpus} GPUs in the node")
        }
        (None, Some(1)) if standing.group.complete > 0 => "none: GPUs meet over PCIe".to_owned(),
        (None, Some(gpus)) if gpus > 1 => {
            format!("part of a domain of {gpus} GPUs, in no rack that is one")
        }
        (None, _) => return out,
    };
    out.push_str(&format!("  NVLink   {joins}\n"));
    out
}

/// What the agents of the node publish.
fn published(intent: &Intent, node: &NodeClass, places: &[String]) -> String {
    let mut out = String::new();
    let pool = intent.pools.get(&node.pool);
    if !node.advertised.gres.is_empty() {
        let gres: Vec<String> = node
            .advertised
            .gres
            .iter()
            .map(|gres| format!("{}:{}:{}", gres.name, gres.kind, gres.count))
            .collect();
        out.push_str(&format!("  Slurm\n    Gres={}\n", gres.join(",")));
        let features = pool.map(|pool| pool.features.join(",")).unwrap_or_default();
        if !features.is_empty() {
            out.push_str(&format!("    Features={features}\n"));
        }
    }
    if !node.advertised.resources.is_empty() || !node.advertised.labels.is_empty() {
        out.push_str("  Kubernetes\n");
        for (resource, count) in &node.advertised.resources {
            out.push_str(&format!("    {resource}: {count}\n"));
        }
        for (label, value) in &node.advertised.labels {
            out.push_str(&format!("    label {label}={value}\n"));
        }
        places.iter().for_each(|label| out.push_str(&format!("    label {label}\n")));
    }
    if !node.advertised.devices.is_empty() {
        out.push_str("  DRA, driver gpu.nvidia.com\n");
        for device in &node.advertised.devices {
            let product = device.product.as_ref().map(|name| format!(" productName={name}"));
            let profile = device.profile.as_ref().map(|profile| format!(" profile={profile}"));
            let memory = device.memory.map(|memory| format!(" memory={}Mi", memory.0));
            let told = [product, profile, memory].into_iter().flatten().collect::<String>();
            out.push_str(&format!("    {} type={}{told}\n", device.name, device.kind));
        }
    }
    out
}

/// The GPUs as NVML will list them; equal neighbours share a line.
fn gpus(intent: &Intent, node: &NodeClass, name: &str) -> String {
    let Some(gpu) = &node.gpu else { return "  no GPU\n".to_owned() };
    let mut out = format!("  NVML\n    {} × {}\n", node.gpus.len(), gpu.nvml_names.join(" or "));
    if !node.missing.is_empty() {
        let exceptions = intent.pools.get(&node.pool).map(|pool| pool.exceptions.as_slice());
        let mut here = exceptions.unwrap_or_default().iter().filter(|e| e.nodes.contains(name));
        let reason = here.find_map(|exception| exception.reason.as_ref());
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        out.push_str(&format!("    GPU {} of a complete node is gone{reason}\n", node.missing));
    }
    let layout = |slot: &fleetc_schema::intent::GpuSlot| match &slot.mig {
        None => "MIG off".to_owned(),
        Some(instances) if instances.is_empty() => "MIG on, no instance".to_owned(),
        Some(instances) => {
            let parts: Vec<String> =
                instances.iter().map(|i| format!("{}@{}", i.profile, i.placement.start)).collect();
            parts.join(" ")
        }
    };
    let mut rest = node.gpus.as_slice();
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|slot| layout(slot) == layout(first)).count();
        let (run, tail) = rest.split_at(same);
        let index = match run.last() {
            Some(last) if last.index != first.index => format!("{}-{}", first.index, last.index),
            _ => first.index.to_string(),
        };
        out.push_str(&format!("    index {index}: {}\n", layout(first)));
        rest = tail;
    }
    out
}

/// Where the GPUs of the node are, if an inventory says so.
fn addresses(intent: &Intent, node: &NodeClass, name: &str) -> String {
    let pool = intent.pools.get(&node.pool);
    let mut overrides = pool.iter().flat_map(|pool| &pool.overrides);
    let Some(known) = overrides.find(|known| known.nodes.contains(name)) else {
        return String::new();
    };
    let mut out = "  PCI\n".to_owned();
    for slot in &node.gpus {
        if let Some(address) = known.pci.get(usize::from(slot.slot)) {
            out.push_str(&format!("    index {}: {address}\n", slot.index));
        }
    }
    out
}

/// Explains a line of the output: the items that caused it and where they are written.
///
/// # Errors
/// There is no such file or line.
pub fn line(checked: &Checked, text: &str) -> Result<String, String> {
    let wanted =
        text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<usize>().ok()?)));
    let Some((file, number)) = wanted else {
        return Err(format!(
            "`{text}` is not FILE:LINE, such as `clusters/hpc/slurm/slurm.conf:7`"
        ));
    };
    let Some(tree) = compile(checked) else { return Err("the fleet has errors".to_owned()) };
    let names: Vec<&str> = tree.files().into_iter().map(|(name, _)| name.as_str()).collect();
    let ends = |name: &&str| Utf8Path::new(file).ends_with(name) || *name == file;
    let Some(name) = names.iter().copied().find(ends) else {
        let hint = match did_you_mean(file, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "files are named as in the output folder".to_owned(),
        };
        return Err(format!("no file `{file}` is written: {hint}"));
    };
    let mut from = 1;
    for block in tree.get(name).iter().flat_map(|file| &file.blocks) {
        let lines = block.text.lines().count();
        if (from..from + lines).contains(&number) {
            let shown = block.text.lines().nth(number - from).unwrap_or_default();
            let mut out = format!("{name}:{number}\n    {}\n", shown.trim());
            for item in &block.items {
                let span = checked.span(&Place::Item(item.clone()));
                let at = span.map(|span| place(checked, span)).unwrap_or_default();
                out.push_str(&format!("  {item}\n  {at}\n"));
            }
            return Ok(out);
        }
        from += lines;
    }
    Err(format!("{name} has {} lines", from - 1))
}
