//! NVLink domains: racks that are one, and jobs that leave one.

use std::collections::BTreeMap;

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::{Catalog, Confidence};
use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::intent::{Class, Rack, RackDomain, WorkloadKind};
use fleetc_schema::name::{ClusterName, RackName, SystemName};
use fleetc_schema::topology::Standing;
use indexmap::{IndexMap, IndexSet};

use super::{jobs, place_is_unclear};
use crate::lower::{Lowered, quoted};

/// `topology/nvlink-domain-size`: racks of a rack product that are not what it is.
pub fn nvlink_domain_size(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    if place_is_unclear(lowered) {
        return;
    }
    // GPUs of each rack, and nodes of it that have none: no trays.
    let mut contents: BTreeMap<&RackName, (u64, u64)> = BTreeMap::new();
    let standings: Vec<Standing<'_>> = lowered.topology.standings().collect();
    for standing in &standings {
        if let Some(rack) = standing.rack {
            let all = standing.group.nodes.len().saturating_mul(u64::from(standing.group.complete));
            let (gpus, without) = contents.entry(rack).or_default();
            *gpus += all;
            *without += if all == 0 { standing.group.nodes.len() } else { 0 };
        }
    }
    // Racks of one item are alike.
    let mut told: IndexSet<&ItemPath> = IndexSet::new();
    for (name, rack) in &lowered.intent.racks {
        let (Some(product), Some(domain), Some(item)) =
            (&rack.product, rack.domain, lowered.items.racks.get(name))
        else {
            continue;
        };
        let (gpus, without) = contents.get(name).copied().unwrap_or_default();
        let nodes = rack.nodes.len().saturating_sub(without);
        let rack = ProductRack { name, rack, product, domain, item, nodes, gpus };
        let finding = rack.of_another_system(lowered).or_else(|| rack.of_another_size());
        if let Some(finding) = finding
            && told.insert(item)
        {
            found.push(finding);
        }
    }
    split_domains(lowered, found);
}

/// A rack that is a product.
struct ProductRack<'a> {
    name: &'a RackName,
    rack: &'a Rack,
    product: &'a SystemName,
    domain: RackDomain,
    item: &'a ItemPath,
    /// Its nodes that may be trays.
    nodes: u64,
    /// GPUs of its nodes when they are complete.
    gpus: u64,
}

impl ProductRack<'_> {
    fn of_another_size(&self) -> Option<Diagnostic> {
        let (nodes, trays) = (self.nodes, u64::from(self.domain.trays));
        let gpus = self.gpus;
        let most = u64::from(self.domain.gpus / u16::from(self.domain.racks.max(1)));
        let (name, product) = (self.name, self.product);
        let place = self.item.child("nodes");
        if nodes > trays || gpus > most {
            let title = format!(
                "rack `{name}` has {nodes} nodes with {gpus} GPUs, a {product} has {trays} with {most}"
            );
            let finding = Diagnostic::new(&rules::TOPOLOGY_NVLINK_DOMAIN_SIZE, title)
                .at(place, "more than the NVLink domain joins")
                .at(self.item.child("system"), "one NVLink domain")
                .help(format!("give the rack {trays} nodes, and the others a rack of their own"));
            return Some(self.weigh(finding));
        }
        if nodes == trays {
            return None;
        }
        let title = format!("rack `{name}` has {nodes} nodes, a {product} has {trays} trays");
        let finding = Diagnostic::new(&rules::TOPOLOGY_NVLINK_DOMAIN_SIZE, title)
            .severity(Severity::Warning)
            .at(place, format!("{} missing", trays - nodes))
            .note("what is not in the spec is not checked, handed out or watched")
            .help(
                "add the missing nodes; if they are gone or were sold apart, say so: \
                 `allow \"topology/nvlink-domain-size\" reason=\"…\"` in the rack",
            );
        Some(finding)
    }

    /// Nodes that are no trays of the product.
    fn of_another_system(&self, lowered: &Lowered) -> Option<Diagnostic> {
        let class = lowered.intent.classes.values().find(|class| {
            let size = class.node.gpu.as_ref().and_then(|gpu| gpu.nvlink_domain);
            size.is_some_and(|size| size != self.domain.gpus)
                && !class.nodes.intersection(&self.rack.nodes).is_empty()
        })?;
        let size = class.node.gpu.as_ref()?.nvlink_domain?;
        let (name, product, system) = (self.name, self.product, &class.node.system);
        let title = format!(
            "rack `{name}` is a {product}, one NVLink domain of {} GPUs, and `{system}` joins {size}",
            self.domain.gpus
        );
        let tray = Catalog::embedded().ok().and_then(|catalog| catalog.rack(product.as_str()));
        let tray = tray.map_or_else(String::new, |row| format!(" of `{}`", row.tray));
        let finding = Diagnostic::new(&rules::TOPOLOGY_NVLINK_DOMAIN_SIZE, title)
            .at(self.item.child("system"), format!("made of trays{tray}"))
            .at(&class.node.paths.system, "another machine")
            .help("remove `system` from the rack, or correct the system of the pool");
        Some(self.weigh(finding))
    }

    /// The finding as it is, or the warning that it is if the catalog is not sure of the product.
    fn weigh(&self, finding: Diagnostic) -> Diagnostic {
        let row = Catalog::embedded().ok().and_then(|c| c.rack(self.product.as_str()));
        if row.is_none_or(|row| row.confidence > Confidence::Unsure) {
            return finding;
        }
        let rule = finding.rule.name;
        let note =
            format!("this would be `{rule}`, but the catalog is not sure of `{}`", self.product);
        Diagnostic { rule: &rules::CATALOG_UNSURE_FACT, ..finding }
            .severity(rules::CATALOG_UNSURE_FACT.severity)
            .note(note)
            .help("ask a node which GPUs its domain joins: `nvidia-smi topo -m`, `nvidia-smi -q`")
    }
}

/// One domain that several clusters own parts of.
fn split_domains(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let mut owners: IndexMap<&RackName, IndexMap<&ClusterName, &Class>> = IndexMap::new();
    let standings: Vec<_> = lowered.topology.standings().collect();
    for standing in &standings {
        let class = lowered.intent.classes.get(&standing.group.class);
        if let (Some(domain), Some(class)) =
            (standing.domain.and_then(|domain| domain.rack.as_ref()), class)
        {
            let clusters = owners.entry(domain).or_default();
            clusters.entry(&class.node.cluster).or_insert(class);
        }
    }
    for (rack, clusters) in owners {
        let partitions = lowered.intent.racks.get(rack).and_then(|rack| rack.partitions);
        let wanted = clusters.len();
        if wanted < 2 || partitions.is_some_and(|count| u64::from(count) >= wanted as u64) {
            continue;
        }
        let Some(item) = lowered.items.racks.get(rack) else { continue };
        let title = format!(
            "the NVLink domain of rack `{rack}` is owned by clusters {}",
            quoted(clusters.keys())
        );
        let place = match partitions {
            Some(_) => item.child("partitions"),
            None => item.child("system"),
        };
        let finding = Diagnostic::new(&rules::TOPOLOGY_NVLINK_DOMAIN_SIZE, title).at(
            place,
            match partitions {
                Some(count) => format!("{count} partitions"),
                None => "one domain, not partitioned".to_owned(),
            },
        );
        let finding = clusters.iter().fold(finding, |finding, (cluster, class)| {
            let pool = ItemPath::item("pool", &class.node.pool);
            finding.at(pool, format!("has nodes of it in `{cluster}`"))
        });
        found.push(
            finding.note("two schedulers hand out one memory fabric without knowing it").help(
                format!(
                    "give the rack to one cluster, or state that its switches are partitioned: \
                 `partitions={wanted}`"
                ),
            ),
        );
    }
}

/// `topology/tensor-parallel-leaves-nvlink`: tensor parallel ranks that NVLink does not join.
pub fn tensor_parallel_leaves_nvlink(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        let (name, workload) = (job.name, job.workload);
        let Some(parallel) = workload.parallel else { continue };
        let classes = lowered.intent.classes_of(&workload.cluster);
        let classes: Vec<&Class> = classes.filter(|c| c.node.pool == workload.pool).collect();
        let reach = classes.iter().filter_map(|class| lowered.topology.nvlink_reach(class)).max();
        let (Some(reach), Some(class)) = (reach, classes.first()) else { continue };
        let tensor = parallel.tensor;
        if tensor <= reach {
            continue;
        }
        let system = &class.node.system;
        let joins = match reach {
            0 | 1 => format!("GPUs of `{system}` meet over PCIe only"),
            reach => format!("it joins {reach} GPUs of `{system}`"),
        };
        // Tokens of a service are few enough that PCIe can carry them; a training step is not.
        let serves = match workload.kind {
            WorkloadKind::Inference | WorkloadKind::BatchScoring => tensor <= job.each,
            WorkloadKind::Pretrain
            | WorkloadKind::Finetune
            | WorkloadKind::Sweep
            | WorkloadKind::Notebook
            | WorkloadKind::Ci => false,
        };
        let rule = &rules::TOPOLOGY_TENSOR_PARALLEL_LEAVES_NVLINK;
        let severity = if serves { Severity::Note } else { rule.severity };
        let title = format!("tensor parallel degree {tensor} leaves NVLink: {joins}");
        let path = ItemPath::item("workload", name).child("gpus").child("parallel");
        let finding = Diagnostic::new(rule, title)
            .severity(severity)
            .at(path.child("tensor"), format!("{tensor} ranks exchange every layer"))
            .at(&class.node.paths.system, joins)
            // Peak rates of a Hopper GPU, both directions: NVLink 900, PCIe 5 128, a 400 Gb/s port
            // 100 GB/s. Source: schema/catalog/links.json.
            .note("PCIe carries a seventh of what NVLink does, a 400 Gb/s port a ninth");
        let factor = tensor.checked_div(reach).filter(|_| tensor.is_multiple_of(reach.max(1)));
        found.push(match factor {
            Some(factor) if reach > 1 => {
                let pipeline = parallel.pipeline.saturating_mul(factor);
                finding.help(format!("write `tensor={reach} pipeline={pipeline}`"))
            }
            _ => finding.help("lower `tensor`, or take a pool whose GPUs NVLink joins"),
        });
    }
}
