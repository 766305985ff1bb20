//! What schedulers are told of the topology, and nodes that they would not find in it.

use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{
    Cluster, Queue, QueueKind, Scheduler, Slurm, SlurmTopology, TopologyLevel, TopologyPlugin,
};
use fleetc_schema::name::ClusterName;
use fleetc_schema::topology::{Block, BlockName, Standing};
use fleetc_schema::version::SlurmRelease;
use fleetc_schema::{Hostlist, ItemPath};

use super::{jobs, place_is_unclear, slurm_topology};
use crate::lower::Lowered;

/// Nodes of some groups together.
fn nodes<'a>(standings: impl Iterator<Item = Standing<'a>>) -> Hostlist {
    standings.fold(Hostlist::default(), |all, s| all.union(&s.group.nodes))
}

/// `topology/unattached-node`: nodes in no rack and on no switch where that matters: the cluster's
/// Slurm places by topology, jobs of the pool span nodes, or other nodes of the pool have a place.
pub fn unattached_node(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    if place_is_unclear(lowered) {
        return;
    }
    for (name, pool) in &intent.pools {
        if pool.elastic.is_some() || pool.nodes.len() < 2 {
            continue;
        }
        for cluster in pool.parts.keys() {
            let here = || lowered.topology.standings_of(name, cluster);
            let seen = slurm_topology(lowered, cluster);
            let sees = |s: &Standing<'_>| match seen {
                None => s.is_placed(),
                Some(topology) => is_seen(topology, s),
            };
            let lost = nodes(here().filter(|s| !sees(s)));
            let spans = || {
                let mut all = jobs(lowered);
                all.any(|job| {
                    let here = job.workload.pool == *name && job.workload.cluster == *cluster;
                    here && (job.spans_nodes() || job.workload.gang.is_some())
                })
            };
            let stated = !intent.racks.is_empty() || !intent.fabrics.is_empty();
            let matters = match seen {
                // A file without any block is another finding.
                Some(topology) => {
                    topology.plugin == TopologyPlugin::Tree
                        || !lowered.topology.slurm_blocks(cluster).is_empty()
                }
                None => stated && (here().any(|s| sees(&s)) || spans()),
            };
            if lost.is_empty() || !matters || is_placed_by_levels(lowered, cluster) {
                continue;
            }
            let stand = if lost.len() == 1 { "stands" } else { "stand" };
            let place = match seen.map(|topology| topology.plugin) {
                Some(TopologyPlugin::Tree) => "on no switch",
                Some(TopologyPlugin::Block) => "in no rack",
                None => "in no rack and on no switch",
            };
            let note = match seen {
                Some(_) => "slurmctld gives no job a node that its topology does not hold",
                None => {
                    "no scheduler can place by what it does not know, and a gang may be scattered"
                }
            };
            let title = format!("`{lost}` of pool `{name}` {stand} {place}");
            let help = match seen.map(|topology| topology.plugin) {
                Some(TopologyPlugin::Tree) => {
                    format!("add them to a fabric: `attach \"leaf1\" nodes=\"{lost}\"`")
                }
                Some(TopologyPlugin::Block) | None => {
                    format!("say where they are: `rack \"r1\" nodes=\"{lost}\"`")
                }
            };
            found.push(
                Diagnostic::new(&rules::TOPOLOGY_UNATTACHED_NODE, title)
                    .at(ItemPath::item("pool", name).child("nodes"), "their place is not stated")
                    .note(note)
                    .help(help),
            );
        }
    }
}

/// True if the cluster's queue wants a label of ours that a node without a place lacks: that it is
/// missing is another finding.
fn is_placed_by_levels(lowered: &Lowered, cluster: &ClusterName) -> bool {
    let Some(Scheduler::Kubernetes(kubernetes)) =
        lowered.intent.clusters.get(cluster).map(|cluster| &cluster.scheduler)
    else {
        return false;
    };
    let of_place = [TopologyLevel::Site, TopologyLevel::Leaf, TopologyLevel::Rack];
    let mut levels = kubernetes.queue.levels.iter();
    reads_levels(&kubernetes.queue)
        && levels.any(|(level, label)| label.label.is_none() && of_place.contains(level))
}

/// True if the queue finds levels in node labels. Volcano is told of nodes by name.
fn reads_levels(queue: &Queue) -> bool {
    match queue.kind {
        QueueKind::Kueue | QueueKind::Kai => true,
        QueueKind::Volcano | QueueKind::None => false,
    }
}

/// True if slurmctld finds the nodes in what it is told.
fn is_seen(topology: &SlurmTopology, standing: &Standing<'_>) -> bool {
    match (topology.plugin, &topology.fabric) {
        (TopologyPlugin::Tree, None) => !standing.leaves.is_empty(),
        (TopologyPlugin::Tree, Some(fabric)) => {
            standing.leaves.iter().any(|(name, _)| *name == fabric)
        }
        (TopologyPlugin::Block, _) => standing.rack.is_some(),
    }
}

/// `topology/block-size`: blocks that this release of slurmctld refuses.
pub fn block_size(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    if place_is_unclear(lowered) {
        return;
    }
    for (name, Cluster { scheduler, .. }) in &lowered.intent.clusters {
        let Scheduler::Slurm(slurm) = scheduler else { continue };
        let Some(topology) = &slurm.topology else { continue };
        if topology.plugin != TopologyPlugin::Block || slurm.version < SlurmRelease::V23_11 {
            continue;
        }
        let item = ItemPath::item("cluster", name).child("slurm").child("topology");
        let blocks: Vec<(BlockName, Block)> =
            lowered.topology.slurm_blocks(name).into_iter().collect();
        if blocks.is_empty() {
            let title = format!("cluster `{name}` has no block: none of its nodes is in a rack");
            found.push(
                Diagnostic::new(&rules::TOPOLOGY_BLOCK_SIZE, title)
                    .at(item, "blocks of what?")
                    .note("slurmctld does not start with a topology that holds no node")
                    .help("say where the nodes are: `rack \"r1\" nodes=\"…\"`"),
            );
            continue;
        }
        found.extend(no_power_of_two(&item, slurm, topology));
        found.extend(refused(&item, slurm, topology, &blocks));
    }
}

/// Sizes above the base that are no power-of-two multiple of it. Source: slurm topology_block.c,
/// `Invalid BlockSizes value`; 23.11 has `BlockLevels` instead.
fn no_power_of_two(item: &ItemPath, slurm: &Slurm, topology: &SlurmTopology) -> Option<Diagnostic> {
    let base = *topology.block_sizes.first()?;
    let fits =
        |size: u32| size.is_multiple_of(base.max(1)) && (size / base.max(1)).is_power_of_two();
    let wrong = topology.block_sizes.iter().copied().find(|size| !fits(*size))?;
    if slurm.version < SlurmRelease::V24_05 {
        return None;
    }
    let (mut low, mut next) = (base, base);
    while next < wrong {
        (low, next) = (next, next.checked_mul(2)?);
    }
    let near =
        if low == next || low == base { next.to_string() } else { format!("{low} or {next}") };
    let title = format!("block size {wrong} is not {base} times a power of two");
    Some(
        Diagnostic::new(&rules::TOPOLOGY_BLOCK_SIZE, title)
            .at(item.child("block-sizes"), format!("the base size is {base}"))
            .note("slurmctld ends with `Invalid BlockSizes value`")
            .help(match wrong < base {
                true => "name the base size, the smallest, first".to_owned(),
                false => format!("write {near}"),
            }),
    )
}

/// Blocks of a size that the release does not take. Source: slurm topology_block.c and
/// block_record.c: 23.11 wants all blocks equal, 24.05 and 24.11 none below the base size, 25.05 and
/// later take any.
fn refused(
    item: &ItemPath,
    slurm: &Slurm,
    topology: &SlurmTopology,
    blocks: &[(BlockName, Block)],
) -> Option<Diagnostic> {
    let size = |(_, block): &(BlockName, Block)| block.nodes.len();
    let release = slurm.version;
    let finding = |title: String| Diagnostic::new(&rules::TOPOLOGY_BLOCK_SIZE, title);
    if release < SlurmRelease::V24_05 {
        let largest = blocks.iter().max_by_key(|block| size(block))?;
        let smallest = blocks.iter().min_by_key(|block| size(block))?;
        if size(largest) == size(smallest) {
            return None;
        }
        let title = format!(
            "{} has {} and {} has {}: Slurm {release} wants equal blocks",
            largest.0,
            count(size(largest)),
            smallest.0,
            count(size(smallest))
        );
        let finding = finding(title).at(item, "blocks of different sizes");
        return Some(
            finding
                .note("slurmctld ends with `children count no equal bblock_node_cnt`")
                .help("upgrade to 24.05 or later, or write `topology \"tree\"`"),
        );
    }
    if release > SlurmRelease::V24_11 {
        return None;
    }
    let base = u64::from(*topology.block_sizes.first()?);
    let small: Vec<&(BlockName, Block)> =
        blocks.iter().filter(|block| size(block) < base).collect();
    let first = small.first()?;
    let least = small.iter().map(|block| size(block)).min()?;
    let title = format!(
        "{} has {}, fewer than the base size of {base}: Slurm {release} refuses it",
        first.0,
        count(size(first))
    );
    let finding = finding(title).at(item.child("block-sizes"), format!("the base size is {base}"));
    let finding = match small.len() {
        1 => finding,
        more => finding.note(format!("so have {} other blocks", more - 1)),
    };
    Some(
        finding
            .note("slurmctld ends with `children count lower than bblock_node_cnt`; 25.05 takes it")
            .help(format!("take a base size of {least} or less: what a block has more is spare")),
    )
}

fn count(nodes: u64) -> String {
    if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") }
}

/// `topology/level-without-label`: a level of a queue whose node label nothing sets on nodes of a
/// pool that it places jobs on.
pub fn level_without_label(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    if place_is_unclear(lowered) {
        return;
    }
    for (name, Cluster { scheduler, .. }) in &lowered.intent.clusters {
        let Scheduler::Kubernetes(kubernetes) = scheduler else { continue };
        let queue = &kubernetes.queue;
        if !reads_levels(queue) {
            continue;
        }
        let item = ItemPath::item("cluster", name).child("kubernetes").child("queue");
        let ours = queue.levels.iter().filter(|(_, label)| label.label.is_none());
        for (level, _) in ours {
            for (pool_name, pool) in &lowered.intent.pools {
                let here = || lowered.topology.standings_of(pool_name, name);
                let lost = nodes(here().filter(|s| !has_level(*level, s)));
                let gang = jobs(lowered).any(|job| {
                    let here = job.workload.pool == *pool_name && job.workload.cluster == *name;
                    here && (job.spans_nodes() || job.workload.gang.is_some())
                });
                // A pool is placed by the levels that its nodes have; one without any is not placed,
                // which only its jobs over nodes mind.
                let has_another = || {
                    queue.levels.iter().any(|(other, said)| {
                        *other != TopologyLevel::Host
                            && (said.label.is_some() || here().all(|s| has_level(*other, &s)))
                    })
                };
                let is_placed = here().any(|s| has_level(*level, &s));
                if lost.is_empty() || !(is_placed || gang && !has_another()) {
                    continue;
                }
                let title = format!("nothing sets the label of level `{level}` on `{lost}`");
                let pool_item = ItemPath::item("pool", pool_name);
                let (key, why) = match pool.elastic {
                    Some(_) => ("count", "nodes that come and go have no place of ours"),
                    None => ("nodes", "their place is not stated"),
                };
                let finding = Diagnostic::new(&rules::TOPOLOGY_LEVEL_WITHOUT_LABEL, title)
                    .at(item.keyed("level", [level]), format!("places jobs of `{pool_name}`"))
                    .at(pool_item.child(key), why)
                    .note(format!(
                        "{} takes a node only if it has the label of every level",
                        queue.kind
                    ));
                found.push(match (pool.elastic, level) {
                    (Some(_), _) => finding.help(format!(
                        "name the label that the cloud sets: `level \"{level}\" label=\"…\"`"
                    )),
                    (None, TopologyLevel::Leaf) => finding
                        .help(format!("add them to a fabric: `attach \"leaf1\" nodes=\"{lost}\"`")),
                    (None, TopologyLevel::Site) => {
                        finding.help("give their racks a `site`".to_owned())
                    }
                    (None, _) => {
                        finding.help(format!("say where they are: `rack \"r1\" nodes=\"{lost}\"`"))
                    }
                });
            }
        }
    }
}

/// True if the level says something about nodes that stand so. A node whose NVLink domain lies
/// inside it is a domain by itself.
fn has_level(level: TopologyLevel, standing: &Standing<'_>) -> bool {
    match level {
        TopologyLevel::Site => standing.site.is_some(),
        TopologyLevel::Leaf => !standing.leaves.is_empty(),
        TopologyLevel::Rack => standing.rack.is_some(),
        TopologyLevel::NvlinkDomain => standing.domain.is_some() || !standing.group.is_rack_scale(),
        TopologyLevel::Host => true,
    }
}
