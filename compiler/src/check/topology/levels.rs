//! What schedulers are told of the topology, and nodes that they would not find in it.

use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::intent::{
    Cluster, Queue, QueueKind, Scheduler, Slurm, SlurmTopology, TopologyLevel, TopologyPlugin,
};
use fleetc_schema::name::{ClusterName, PoolName};
use fleetc_schema::topology::{Block, BlockName, Standing, block_level};
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
/// Nodes that blocks leave out are [`outside_blocks`].
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
            if seen.is_some_and(|topology| topology.plugin == TopologyPlugin::Block) {
                continue;
            }
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
            let matters = seen.is_some() || (stated && (here().any(|s| sees(&s)) || spans()));
            if lost.is_empty() || !matters || is_placed_by_levels(lowered, cluster) {
                continue;
            }
            let stand = if lost.len() == 1 { "stands" } else { "stand" };
            let place = match seen {
                Some(_) => "on no switch",
                None => "in no rack and on no switch",
            };
            let note = match seen {
                Some(_) => "slurmctld gives no job a node that its topology does not hold",
                None => {
                    "no scheduler can place by what it does not know, and a gang may be scattered"
                }
            };
            let title = format!("`{lost}` of pool `{name}` {stand} {place}");
            let help = match seen {
                Some(_) => format!("add them to a fabric: `attach \"leaf1\" nodes=\"{lost}\"`"),
                None => format!("say where they are: `rack \"r1\" nodes=\"{lost}\"`"),
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

/// True if slurmctld finds the nodes in the tree that it is told.
fn is_seen(topology: &SlurmTopology, standing: &Standing<'_>) -> bool {
    match &topology.fabric {
        None => !standing.leaves.is_empty(),
        Some(fabric) => standing.leaves.iter().any(|(name, _)| *name == fabric),
    }
}

/// The Slurm clusters that are told of blocks, in a release that knows them.
fn clusters_of_blocks(
    lowered: &Lowered,
) -> impl Iterator<Item = (&ClusterName, &Slurm, &SlurmTopology)> {
    lowered.intent.clusters.iter().filter_map(|(name, cluster)| {
        let Scheduler::Slurm(slurm) = &cluster.scheduler else { return None };
        let topology = slurm.topology.as_ref()?;
        let known = slurm.version >= SlurmRelease::V23_11;
        (topology.plugin == TopologyPlugin::Block && known).then_some((name, slurm, topology))
    })
}

/// `topology/unattached-node` for blocks: nodes in none, in a partition that holds nodes of blocks.
/// Where a job may have nodes of a block slurmctld gives it no others; where it may have none, it is
/// planned as if there were no topology. Source: SchedMD/slurm, topology_p_eval_nodes.
pub fn outside_blocks(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    if place_is_unclear(lowered) {
        return;
    }
    for (cluster, slurm, _) in clusters_of_blocks(lowered) {
        let blocks = lowered.topology.slurm_blocks(cluster);
        let held = blocks.values().fold(Hostlist::default(), |all, b| all.union(&b.nodes));
        let part = |pool: &PoolName| lowered.intent.pools.get(pool)?.parts.get(cluster);
        let in_blocks =
            |pool: &PoolName| part(pool).is_some_and(|p| !p.intersection(&held).is_empty());
        for (name, pool) in &lowered.intent.pools {
            let Some(lost) = part(name).map(|part| part.difference(&held)) else { continue };
            // A file without any block is another finding.
            if lost.is_empty() || held.is_empty() {
                continue;
            }
            let mut own = slurm.partitions.iter().filter(|(_, p)| p.pools.contains(name));
            let mixed = own.clone().find(|(_, p)| p.pools.iter().any(in_blocks));
            if mixed.is_none() && (own.next().is_some() || !in_blocks(name)) {
                continue;
            }
            let (is, gets) = if lost.len() == 1 { ("is", "gets") } else { ("are", "get") };
            let key = if pool.elastic.is_some() { "count" } else { "nodes" };
            let title = format!("`{lost}` of pool `{name}` {is} in no block, and {gets} no job");
            let mut finding = Diagnostic::new(&rules::TOPOLOGY_UNATTACHED_NODE, title)
                .at(ItemPath::item("pool", name).child(key), "in no rack of the spec");
            if let Some((partition, _)) = mixed {
                let item = ItemPath::item("cluster", cluster).child("slurm");
                finding = finding.at(
                    item.keyed("partition", [partition]).child("pools"),
                    "holds nodes of blocks too",
                );
            }
            let place = format!("say where they are: `rack \"r1\" nodes=\"{lost}\"`");
            found.push(
                finding
                    .note("where a job may have nodes of a block, slurmctld gives it no others")
                    .help(match in_blocks(name) {
                        true => place,
                        false if pool.elastic.is_some() => {
                            format!("give `{name}` a partition of its own")
                        }
                        false => format!("{place}; or give `{name}` a partition of its own"),
                    }),
            );
        }
    }
}

/// `topology/block-size`: blocks that this release of slurmctld refuses.
pub fn block_size(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    if place_is_unclear(lowered) {
        return;
    }
    for (name, slurm, topology) in clusters_of_blocks(lowered) {
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
        found.extend(above_all(&item, slurm, topology, &blocks));
    }
}

/// Sizes above the base that are no power-of-two multiple of it. Source: slurm topology_block.c,
/// `Invalid BlockSizes value`; 23.11 has `BlockLevels` instead, which are such powers.
fn no_power_of_two(item: &ItemPath, slurm: &Slurm, topology: &SlurmTopology) -> Option<Diagnostic> {
    let base = *topology.block_sizes.first()?;
    let fits = |size: u32| block_level(base, size).is_some();
    let wrong = topology.block_sizes.iter().copied().find(|size| !fits(*size))?;
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
            .note(match slurm.version < SlurmRelease::V24_05 {
                true => "23.11 has `BlockLevels`: powers of two, and no others",
                false => "slurmctld ends with `Invalid BlockSizes value`",
            })
            .help(match wrong < base {
                true => "name the base size, the smallest, first".to_owned(),
                false => format!("write {near}"),
            }),
    )
}

/// A base size above every block, where the release takes that: a job of the base size or less gets
/// nodes of one block.
fn above_all(
    item: &ItemPath,
    slurm: &Slurm,
    topology: &SlurmTopology,
    blocks: &[(BlockName, Block)],
) -> Option<Diagnostic> {
    let base = u64::from(*topology.block_sizes.first()?);
    let largest = blocks.iter().map(|(_, block)| block.nodes.len()).max()?;
    if base <= largest || slurm.version <= SlurmRelease::V24_11 {
        return None;
    }
    let title = format!("the base size is {base}, and no block has more than {}", count(largest));
    Some(
        Diagnostic::new(&rules::TOPOLOGY_BLOCK_SIZE, title)
            .severity(Severity::Warning)
            .at(item.child("block-sizes"), format!("the base size is {base}"))
            .note(format!(
                "a job of {base} nodes or fewer gets nodes of one block, so one of {} never starts",
                match largest + 1 == base {
                    true => count(base),
                    false => format!("{} to {base} nodes", largest + 1),
                }
            ))
            .help(format!("take a base size of {largest} or less")),
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
