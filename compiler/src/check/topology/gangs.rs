//! Jobs of several nodes, and where their nodes can stand.

use std::collections::BTreeMap;

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, Rule, rules};
use fleetc_schema::intent::CapacityModel;
use fleetc_schema::name::{FabricName, SiteName};
use fleetc_schema::topology::{Block, BlockName};
use indexmap::{IndexMap, IndexSet};

use super::{Job, jobs, place_is_unclear};
use crate::lower::{Lowered, quoted};

/// `topology/pipeline-over-slow-link`: pipeline stages in more than one fabric or site.
pub fn pipeline_over_slow_link(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let piped = |job: &Job<'_>| job.workload.parallel.is_some_and(|p| p.pipeline > 1);
    for job in jobs(lowered).filter(|job| piped(job)) {
        let rule = &rules::TOPOLOGY_PIPELINE_OVER_SLOW_LINK;
        found.extend(spread(lowered, &job, rule, "pipeline", "stages hand over every batch"));
    }
}

/// `topology/crosses-block`: data parallel ranks in more than one fabric or site.
pub fn crosses_block(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    // With pipeline stages too, the other rule tells it.
    let ranks =
        |job: &Job<'_>| job.workload.parallel.is_some_and(|p| p.data > 1 && p.pipeline <= 1);
    for job in jobs(lowered).filter(|job| ranks(job)) {
        let rule = &rules::TOPOLOGY_CROSSES_BLOCK;
        found.extend(spread(lowered, &job, rule, "data", "ranks add up gradients every step"));
    }
}

/// Nodes that one fabric joins, by site.
#[derive(Debug, Default)]
struct Reach<'a> {
    /// Nodes of each site; none: nobody says where they stand.
    by_site: BTreeMap<Option<&'a SiteName>, u64>,
}

impl Reach<'_> {
    /// The most nodes at one site. Those that may stand anywhere may stand there too.
    fn most(&self) -> u64 {
        let anywhere = self.by_site.get(&None).copied().unwrap_or(0);
        let sites = self.by_site.iter().filter(|(site, _)| site.is_some());
        anywhere + sites.map(|(_, nodes)| *nodes).max().unwrap_or(0)
    }
}

/// A job that does not fit into what one fabric joins at one site.
fn spread(
    lowered: &Lowered,
    job: &Job<'_>,
    rule: &'static Rule,
    word: &str,
    why: &str,
) -> Option<Diagnostic> {
    let workload = job.workload;
    let pool = lowered.intent.pools.get(&workload.pool)?;
    if pool.elastic.is_some() || place_is_unclear(lowered) || !job.spans_nodes() {
        return None;
    }
    // What one fabric joins: an island of one fabric, or all nodes of which no fabric is known.
    let mut reaches: IndexMap<Option<(&FabricName, usize)>, Reach<'_>> = IndexMap::new();
    let groups: Vec<_> = lowered.topology.standings_of(&workload.pool, &workload.cluster).collect();
    let mut sites: Vec<&SiteName> = Vec::new();
    let mut total = 0;
    for standing in &groups {
        let nodes = standing.group.nodes.len();
        total += nodes;
        if let Some(site) = standing.site.filter(|site| !sites.contains(site)) {
            sites.push(site);
        }
        let mut add = |key| {
            *reaches.entry(key).or_default().by_site.entry(standing.site).or_insert(0) += nodes;
        };
        if standing.leaves.is_empty() {
            add(None);
        }
        for (fabric, leaf) in &standing.leaves {
            // A job that names its network talks over no other.
            if workload.network.as_ref().is_none_or(|wanted| wanted == *fabric) {
                let switch = lowered.topology.fabric(fabric)?.switches.get(*leaf)?;
                add(Some((*fabric, switch.island)));
            }
        }
    }
    // Nodes on no fabric that is known may be on any.
    let loose = reaches.shift_remove(&None).unwrap_or_default();
    let with_loose = |reach: &Reach<'_>| {
        let mut all = Reach { by_site: loose.by_site.clone() };
        for (site, nodes) in &reach.by_site {
            *all.by_site.entry(*site).or_insert(0) += nodes;
        }
        all.most()
    };
    let most = reaches.values().map(with_loose).max().unwrap_or_else(|| loose.most());
    let wanted = job.nodes();
    // A job that the whole pool does not hold is another finding.
    if most >= wanted || total < wanted {
        return None;
    }
    let name = job.name;
    let title = format!(
        "workload `{name}` needs {wanted} nodes, and one fabric at one site joins {most} of `{}`",
        workload.pool
    );
    let fabrics: IndexSet<&FabricName> =
        reaches.keys().flatten().map(|(fabric, _)| *fabric).collect();
    let place = ItemPath::item("workload", name).child("gpus").child("parallel").child(word);
    let finding = Diagnostic::new(rule, title)
        .at(place, why)
        .at(ItemPath::item("pool", &workload.pool).child("nodes"), format!("{total} nodes"));
    let gpus = most.saturating_mul(u64::from(job.each));
    Some(if sites.len() > 1 {
        finding
            .note(format!("its nodes stand at {}", quoted(&sites)))
            .help(format!("ask for {gpus} GPUs or fewer, so that one site holds them"))
    } else {
        finding
            .note(format!("its nodes hang in {}, in parts that no switch joins", quoted(&fabrics)))
            .help(format!(
                "ask for {gpus} GPUs or fewer, or connect the parts: uplinks to a common switch"
            ))
    })
}

/// `topology/not-contiguous`: a gang that asks for one block and fits into none.
pub fn not_contiguous(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    if place_is_unclear(lowered) {
        return;
    }
    // The blocks of each pool and owner; none while some of its nodes have no place: that is another
    // finding, and they may stand in any block.
    let mut known: BTreeMap<_, Option<IndexMap<BlockName, Block>>> = BTreeMap::new();
    for job in jobs(lowered) {
        let workload = job.workload;
        let elastic = lowered.intent.pools.get(&workload.pool).is_some_and(|p| p.elastic.is_some());
        if elastic || !workload.gang.is_some_and(|gang| gang.contiguous) {
            continue;
        }
        let (pool, cluster) = (&workload.pool, &workload.cluster);
        let blocks = known.entry((pool, cluster)).or_insert_with(|| {
            let placed = lowered.topology.standings_of(pool, cluster).all(|s| s.is_placed());
            placed.then(|| lowered.topology.blocks(pool, cluster))
        });
        let blocks: Vec<(&BlockName, &Block)> = blocks
            .iter()
            .flatten()
            .filter(|(name, _)| match (name, &workload.network) {
                (BlockName::Leaf(fabric, _), Some(network)) => fabric == network,
                _ => true,
            })
            .collect();
        let (full, rest) = job.shape();
        let Some((name, largest)) = blocks.iter().max_by_key(|(_, block)| block.gpus()) else {
            continue;
        };
        if blocks.iter().any(|(_, block)| block.holds(full, rest, job.each)) {
            continue;
        }
        let path = ItemPath::item("workload", job.name);
        let (gpus, each) = (workload.gpus, job.each);
        let title = match largest.gpus() >= u64::from(gpus) {
            true => {
                format!("no block has {full} complete nodes for the {gpus} GPUs of `{}`", job.name)
            }
            false => format!("no block has the {gpus} GPUs that `{}` asks for together", job.name),
        };
        let parts: Vec<String> =
            largest.by_gpus.iter().rev().map(|(gpus, nodes)| format!("{nodes} × {gpus}")).collect();
        let whole = largest.by_gpus.range(each..).map(|(_, nodes)| *nodes).sum::<u64>();
        let fits = whole.saturating_mul(u64::from(each));
        found.push(
            Diagnostic::new(&rules::TOPOLOGY_NOT_CONTIGUOUS, title)
                .at(path.child("gang").child("contiguous"), "one block is asked for")
                .at(path.child("gpus"), shape(full, rest, each))
                .at(ItemPath::item("pool", &workload.pool).child("nodes"), "the pool's nodes")
                .note(format!("the largest block is {name}: {} GPUs on nodes", parts.join(" + ")))
                .help(format!("ask for {fits} GPUs or fewer, or leave out `contiguous`")),
        );
    }
}

fn shape(full: u64, rest: u32, each: u32) -> String {
    match (full, rest) {
        (0, rest) => format!("{rest} GPUs of one node"),
        (full, 0) => format!("{full} nodes with {each} GPUs each"),
        (full, rest) => format!("{full} nodes with {each} GPUs each, and {rest} GPUs of one more"),
    }
}

/// `topology/placement-unknown`: a gang on nodes that come from anywhere.
pub fn placement_unknown(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, pool) in &lowered.intent.pools {
        // A capacity block is one part of a provider's network.
        // Source: AWS, "Capacity Blocks for ML": instances are placed close together.
        let block = pool.capacity.as_ref().is_some_and(|c| c.model == CapacityModel::CapacityBlock);
        let item = ItemPath::item("pool", name);
        if pool.elastic.is_none() || pool.placement.is_some() || block || lowered.is_poisoned(&item)
        {
            continue;
        }
        let gangs: Vec<Job<'_>> = jobs(lowered)
            .filter(|job| {
                job.workload.pool == *name && job.workload.gang.is_some() && job.spans_nodes()
            })
            .collect();
        let Some(first) = gangs.first() else { continue };
        let gang = quoted(gangs.iter().map(|job| job.name));
        let start = if gangs.len() == 1 { "starts" } else { "start" };
        let title =
            format!("nodes of pool `{name}` may be far apart, and {gang} {start} on them as one");
        let finding = Diagnostic::new(&rules::TOPOLOGY_PLACEMENT_UNKNOWN, title)
            .at(item.child("count"), "nodes come from wherever there is room");
        let finding = gangs.iter().fold(finding, |finding, job| {
            let gang = ItemPath::item("workload", job.name).child("gang");
            finding.at(gang, format!("{} nodes that wait for each other", job.nodes()))
        });
        let nodes = first.nodes();
        found.push(
            finding
                .note(format!(
                    "the slowest of {nodes} nodes sets the pace, and the farthest is the slowest"
                ))
                .help(
                    "ask the provider for nodes close together and say so: \
                     `placement \"cluster\"`, or `\"block\"` if a block is held for you",
                ),
        );
    }
}
