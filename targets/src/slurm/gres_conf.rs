//! `gres.conf`. Source: gres.conf(5), releases 22.05 to 26.05.

use fleetc_schema::intent::{AutoDetect, Class, Cluster, GpuIndexes, Intent, Slurm};
use fleetc_schema::{Hostlist, ItemPath};

use super::is_elastic;
use crate::write::key_value::{KeyValueFile, Line};

/// Where slurmd finds its GPUs.
///
/// With AutoDetect no device, count or MIG layout stands here: `slurm.conf` says how many of each
/// type there must be, and slurmd checks what it found. Elastic nodes cannot detect anything, since
/// slurmctld reads their part of this file before they exist: up to 23.02 it ends over AutoDetect
/// on one of them, from 23.11 it skips the file for it. They have lines of devices.
pub fn emit(intent: &Intent, cluster: &Cluster, slurm: &Slurm) -> KeyValueFile {
    let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
    let item = ItemPath::item("cluster", &cluster.name).child("slurm");
    let mut file = KeyValueFile::new([item.clone()], &[&head]);
    let classes: Vec<&Class> = intent.classes_of(&cluster.name).collect();
    let (detected, listed): (Vec<&Class>, Vec<&Class>) = classes
        .iter()
        .copied()
        .filter(|class| !class.node.gpus.is_empty())
        .partition(|class| detects(intent, slurm, class));
    if slurm.autodetect != AutoDetect::Off && !detected.is_empty() {
        let setting = item.child("gres").child("autodetect");
        if detected.len() == classes.len() {
            file.line([setting], Line::new("AutoDetect", slurm.autodetect));
        } else {
            // Nodes without GPUs have nothing to look for, and elastic ones must not look. A line a pool,
            // so that one pool more is one line more.
            for pool in detected.chunk_by(|a, b| a.node.pool == b.node.pool) {
                let all = |all: Hostlist, class: &&Class| all.union(&class.nodes);
                let nodes = pool.iter().fold(Hostlist::default(), all);
                let line = Line::new("NodeName", nodes).pair("AutoDetect", slurm.autodetect);
                file.line([setting.clone()], line);
            }
        }
    }
    for class in listed {
        let pool = ItemPath::item("pool", &class.node.pool);
        let exceptions = class.node.paths.exceptions.iter().map(|source| source.path.clone());
        let items: Vec<ItemPath> =
            exceptions.chain([class.node.paths.system.clone(), pool]).collect();
        file.section(items.clone(), &[&format!("class {}", class.node.name)]);
        if let Some(line) = devices(class) {
            file.line(items.clone(), line);
        }
    }
    file
}

/// True if slurmd looks for the GPUs of these nodes itself.
pub fn detects(intent: &Intent, slurm: &Slurm, class: &Class) -> bool {
    slurm.autodetect != AutoDetect::Off && !is_elastic(intent, class)
}

/// The devices of whole GPUs. GPU instances are refused by `slurm/mig-needs-nvml`: their devices
/// have numbers that only the node's driver knows.
fn devices(class: &Class) -> Option<Line> {
    let gpus = class.node.gpus.iter().filter(|gpu| gpu.mig.is_none()).map(|gpu| gpu.index);
    let gpus = GpuIndexes::new(gpus.collect());
    let model = class.node.gpu.as_ref()?;
    let first = gpus.iter().next()?;
    let file = match gpus.len() {
        1 => format!("/dev/nvidia{first}"),
        _ => format!("/dev/nvidia[{gpus}]"),
    };
    let line = Line::new("NodeName", &class.nodes).pair("Name", "gpu");
    Some(line.pair("Type", &model.gres_type).pair("File", file))
}
