//! Nodes: what slurmctld and slurmd must find on them.

use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{AutoDetect, Class, Sharing, SlurmTopology, TopologyPlugin};
use fleetc_schema::mig::MigProfile;
use fleetc_schema::name::PoolName;
use fleetc_schema::topology::{Block, Topology};
use fleetc_schema::version::SlurmRelease;
use fleetc_schema::{Hostlist, ItemPath};

use super::Fleet;
use crate::slurm::features::Feature;
use crate::slurm::{gres_conf, is_elastic};

/// The most nodes of a cluster. Source: SchedMD/slurm, `MAX_SLURM_NODES` 64 × 1,024.
const MAX_NODES: u64 = 65_536;

/// `slurm/shared-gpus`: MPS and time-slicing in a pool that Slurm owns.
pub fn shared_gpus(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    for (name, pool) in &fleet.intent.pools {
        let shared = match pool.sharing {
            Sharing::Mps(_) | Sharing::TimeSlicing(_) => pool.sharing.mode(),
            Sharing::Whole | Sharing::Mig { .. } => continue,
        };
        if !pool.parts.contains_key(&fleet.cluster.name) {
            continue;
        }
        let path = ItemPath::item("pool", name);
        let title = format!("pool `{name}` shares its GPUs through {shared}, and Slurm owns it");
        found.push(
            Diagnostic::new(&rules::SLURM_SHARED_GPUS, title)
                .at(path.child("sharing"), "no GRES is written for this")
                .at(fleet.path(), "a Slurm cluster")
                .note("Slurm has the GRES `shard` and `mps` for shared GPUs; they are not written yet")
                .help("share whole GPUs or MIG slices, or give the pool to a Kubernetes cluster"),
        );
    }
}

/// `catalog/missing-fact`: NodeName needs processors and memory, which a generic server leaves open.
pub fn missing_facts(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    for class in one_of_each_pool(fleet) {
        let (node, host) = (&class.node, &class.node.host);
        let missing = match (host.cpu, host.memory) {
            (None, None) => "processors and memory",
            (None, Some(_)) => "processors",
            (Some(_), None) => "memory",
            (Some(_), Some(_)) => continue,
        };
        let system = &node.system;
        let title = format!("nothing states the {missing} of `{system}`, and Slurm needs them");
        found.push(
            Diagnostic::new(&rules::CATALOG_MISSING_FACT, title)
                .at(&node.paths.system, "a generic server")
                .note("slurmd offers one CPU and 1 MiB of a node whose NodeName line does not say more")
                .help(format!(
                    "define a system of your own: `system \"my-{system}\" extends=\"{system}\" \
                     {{ cpu sockets=2 cores=64 threads=128; memory \"768GiB\" }}`"
                )),
        );
    }
}

/// `slurm/version-feature`: what the release of the cluster does not have.
pub fn version_features(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    let release = fleet.slurm.version;
    let lacks = |feature: Feature| !feature.is_in(release);
    let finding = |feature: Feature, what: &str| {
        let title = format!("Slurm {release} has no {what}: it came with {}", feature.since());
        Diagnostic::new(&rules::SLURM_VERSION_FEATURE, title)
    };
    let version = |finding: Diagnostic| finding.at(fleet.path(), format!("Slurm {release}"));
    let feature = Feature::AutoDetectNvidia;
    if fleet.slurm.autodetect == AutoDetect::Nvidia && lacks(feature) {
        let place = fleet.path().child("gres").child("autodetect");
        let finding = finding(feature, "`AutoDetect=nvidia`").at(place, "not a word there");
        found.push(
            version(finding)
                .note("slurmd says `unknown autodetect flag`, goes on, and finds no GPU")
                .help("write `autodetect=\"nvml\"` if slurmd is built with NVML, else `\"off\"`"),
        );
    }
    let feature = Feature::TopologyBlock;
    let block = |topology: &&SlurmTopology| topology.plugin == TopologyPlugin::Block;
    if fleet.slurm.topology.as_ref().filter(block).is_some() && lacks(feature) {
        let place = fleet.path().child("topology");
        let finding = finding(feature, "topology of blocks").at(place, "not a plugin there");
        found.push(
            version(finding)
                .note("slurmctld ends: it finds no plugin `topology/block`")
                .help("write `topology \"tree\"`, or upgrade"),
        );
    }
    for (name, pool) in &fleet.intent.pools {
        let Some(nodes) = pool.parts.get(&fleet.cluster.name) else { continue };
        let feature = Feature::HostlistSuffix;
        if let Some(list) = suffixed(nodes).filter(|_| lacks(feature)) {
            let place = ItemPath::item("pool", name).child("nodes");
            let finding = finding(feature, "text after the brackets of a list")
                .at(place, format!("written as `{list}`"));
            found.push(
                version(finding)
                    .note("slurmctld ends: `Unable to create NodeName list`")
                    .help("name the nodes so that their number stands last"),
            );
        }
    }
    let feature = Feature::MigProfileSuffix;
    for class in one_of_each_pool(fleet).filter(|_| lacks(feature)) {
        let counts = class.node.mig_counts();
        if let Some(profile) = counts.keys().find(|profile| has_suffix(profile)) {
            let finding = finding(feature, &format!("GRES type `{profile}`"))
                .at(&class.node.paths.sharing, "slurmd calls it by its size alone");
            found.push(
                version(finding)
                    .note(
                        "before 23.02 the type is computed from size and memory, without a suffix",
                    )
                    .help("use profiles without a suffix"),
            );
        }
    }
}

/// The list as it is written, if a bracket is followed by more than the next name.
fn suffixed(nodes: &Hostlist) -> Option<String> {
    let text = nodes.to_string();
    let more = |rest: &str| !rest.is_empty() && !rest.starts_with([',', '[']);
    text.split(']').skip(1).any(more).then_some(text)
}

fn has_suffix(profile: &MigProfile) -> bool {
    profile.to_string().contains(['+', '-'])
}

/// `slurm/gres-type-not-substring`: slurmd takes a GPU that it found for a configured one if the
/// type is a part of the GPU's name. Source: SchedMD/slurm, plugins/gres/gpu: the name in lower
/// case, with `_` for blanks.
pub fn gres_types(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    for class in one_of_each_pool(fleet) {
        let Some(gpu) = &class.node.gpu else { continue };
        let kind = &gpu.gres_type;
        // GPU instances have their profile as type, which their names end with.
        let is_used = class.node.advertised.gres.iter().any(|gres| gres.kind == *kind);
        if !is_used || !gres_conf::detects(fleet.intent, fleet.slurm, class) {
            continue;
        }
        let detected = |name: &String| name.to_lowercase().replace(char::is_whitespace, "_");
        let names: Vec<String> = gpu.nvml_names.iter().map(detected).collect();
        let matches = names.iter().any(|name| name.contains(&kind.to_lowercase()));
        let Some(name) = names.first().filter(|_| !matches) else { continue };
        let title = format!("slurmd will not find a GPU of type `{kind}`: it calls them `{name}`");
        found.push(
            Diagnostic::new(&rules::SLURM_GRES_TYPE_NOT_SUBSTRING, title)
                .at(&class.node.paths.system, format!("GPUs of type `{kind}`"))
                .at(fleet.path().child("gres").child("autodetect"), "slurmd goes by their names")
                .note("a type must be a part of the name; a node without its GPUs is set INVAL")
                .help(format!("give the GPU a `gres-type` that is a part of `{name}`")),
        );
    }
}

/// `slurm/mig-needs-nvml`: GPU instances that slurmd cannot find, and whose devices nobody can name.
pub fn mig_needs_nvml(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    let autodetect = fleet.slurm.autodetect;
    for class in one_of_each_pool(fleet) {
        let (pool, elastic) = (&class.node.pool, is_elastic(fleet.intent, class));
        let is_cut = class.node.gpus.iter().any(|gpu| gpu.mig.is_some());
        if !is_cut || (autodetect == AutoDetect::Nvml && !elastic) {
            continue;
        }
        let setting = fleet.path().child("gres").child("autodetect");
        let finding = |title: String| {
            Diagnostic::new(&rules::SLURM_MIG_NEEDS_NVML, title)
                .at(&class.node.paths.sharing, "GPU instances")
                .note("their device files are numbered by the driver of each node, so none can be written")
        };
        found.push(if elastic {
            finding(format!("slurmd finds no GPU instances on the elastic nodes of pool `{pool}`"))
                .at(ItemPath::item("pool", pool).child("count"), "nodes that come and go")
                .note("AutoDetect cannot be used with nodes in state CLOUD (gres.conf)")
                .help("share whole GPUs, or name the nodes of the pool")
        } else {
            finding(format!("slurmd finds no GPU instances with `autodetect=\"{autodetect}\"`"))
                .at(setting, "only NVML knows them")
                .help("write `autodetect=\"nvml\"` with a slurmd that is built with NVML, or share whole GPUs")
        });
    }
}

/// `slurm/power-save`: elastic nodes that nothing starts.
pub fn power_save(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    if fleet.slurm.power_saving.is_some() {
        return;
    }
    for class in one_of_each_pool(fleet).filter(|class| is_elastic(fleet.intent, class)) {
        let pool = &class.node.pool;
        let title = format!("nothing starts the elastic nodes of pool `{pool}`");
        found.push(
            Diagnostic::new(&rules::SLURM_POWER_SAVE, title)
                .at(fleet.path(), "no `power-saving` in here")
                .at(ItemPath::item("pool", pool).child("count"), "nodes that come and go")
                .note("slurmctld says nothing, and jobs wait for nodes that never come")
                .help("add `power-saving resume=\"/opt/fleet/resume\" suspend=\"/opt/fleet/suspend\" idle=\"10m\"`"),
        );
    }
}

/// `slurm/elastic-in-block`: 25.11 before its third patch forgets the block of a node in state CLOUD
/// when it powers down. Source: SchedMD/slurm, CHANGELOG of 25.11.3. `Topology=` in the node's line
/// is no way out: beside topology.conf it takes the node out of the set by which slurmctld decides
/// whether blocks matter at all (topology_p_add_rm_node, 25.05 to 26.05).
pub fn elastic_in_block(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    let topology = fleet.slurm.topology.as_ref();
    let of_blocks = topology.is_some_and(|topology| topology.plugin == TopologyPlugin::Block);
    if !of_blocks || fleet.slurm.version != SlurmRelease::V25_11 {
        return;
    }
    let blocks = Topology::of(fleet.intent).slurm_blocks(&fleet.cluster.name);
    for class in one_of_each_pool(fleet).filter(|class| is_elastic(fleet.intent, class)) {
        let pool = &class.node.pool;
        let held = |block: &&Block| !block.nodes.intersection(&class.nodes).is_empty();
        let Some(block) = blocks.values().find(held) else { continue };
        let nodes = block.nodes.intersection(&class.nodes);
        let title = format!("Slurm 25.11.0 to 25.11.2 take `{nodes}` out of their block");
        found.push(
            Diagnostic::new(&rules::SLURM_ELASTIC_IN_BLOCK, title)
                .at(fleet.path().child("topology"), "of blocks")
                .at(ItemPath::item("pool", pool).child("count"), "nodes that come and go")
                .note("when such a node powers down it is in no block any more, until slurmctld restarts")
                .help(
                    "run 25.11.3 or later, and say so: \
                     `allow \"slurm/elastic-in-block\" reason=\"we run 25.11.5\"` in the pool",
                ),
        );
    }
}

/// `slurm/too-many-nodes`: more nodes than a cluster of Slurm can have.
pub fn too_many(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    let all: u64 = fleet.classes().map(|class| class.nodes.len()).sum();
    if all <= MAX_NODES {
        return;
    }
    let name = &fleet.cluster.name;
    let title = format!("cluster `{name}` has {all} nodes, and Slurm takes {MAX_NODES}");
    let mut finding = Diagnostic::new(&rules::SLURM_TOO_MANY_NODES, title)
        .at(ItemPath::item("cluster", name), format!("{all} nodes"));
    for (pool, item) in &fleet.intent.pools {
        if let Some(nodes) = item.parts.get(name) {
            let path = ItemPath::item("pool", pool).child("nodes");
            finding = finding.at(path, format!("{} of them", nodes.len()));
        }
    }
    found.push(
        finding
            .note("slurmctld ends: `Attempting to create nodes past max node limit`")
            .help("make two clusters, and a federation of them"),
    );
}

/// A class of each pool, the first one: what a rule says holds for the pool.
fn one_of_each_pool<'a>(fleet: Fleet<'a>) -> impl Iterator<Item = &'a Class> {
    let mut told: Vec<&PoolName> = Vec::new();
    fleet.classes().filter(move |class| {
        let is_new = !told.contains(&&class.node.pool);
        told.push(&class.node.pool);
        is_new
    })
}
