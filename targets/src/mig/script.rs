//! `fleetc-mig.sh` and `fleetc-mig.service`: GPU instances at their placements, without mig-parted.
//!
//! One script a cluster finds the class of its node by ranges of names, so that the same file goes into
//! every image. `nvidia-smi mig -cgi` takes `<profile id>:<start>`; ids of instances are the driver's
//! own, so they are read and never written. Sources: NVIDIA MIG User Guide, r580, "Creating GPU
//! Instances", "Destroying GPU Instances" and "Deployment Considerations"; `nvidia-smi mig --help`:
//! `-cci` without a profile makes the compute instance that takes a GPU instance whole.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Class, Cluster, GpuSlot, Intent, Scheduler};
use serde::Serialize;

use crate::write::mig_parted;
use crate::write::template::{Language, render};
use crate::{OutputFile, OutputTree};

const SCRIPT: &str = include_str!("fleetc-mig.sh");
const CLASS: &str = include_str!("class.sh");
const UNIT: &str = include_str!("fleetc-mig.service");

#[derive(Serialize)]
struct Head<'a> {
    fleet: &'a str,
    cluster: &'a str,
    /// Who hands the GPUs out: `slurm` or `kubernetes`.
    scheduler: &'a str,
    /// The unit that must find the instances when it starts.
    agent: &'a str,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    reset: &'a str,
    device_ids: String,
    products: &'a [String],
    nodes: Vec<Range<'a>>,
    gpus: Vec<Gpu>,
}

#[derive(Serialize)]
struct Range<'a> {
    prefix: &'a str,
    suffix: &'a str,
    digits: usize,
    first: u64,
    last: u64,
}

#[derive(Serialize)]
struct Gpu {
    index: u8,
    mode: &'static str,
    instances: Vec<String>,
}

/// Writes both where any GPU has instances; none where the MIG manager of the GPU Operator owns them.
pub fn emit(tree: &mut OutputTree, intent: &Intent, cluster: &Cluster) {
    let classes: Vec<&Class> = intent.classes_of(&cluster.name).collect();
    let cut = |class: &&Class| class.node.gpus.iter().any(|gpu| gpu.mig.is_some());
    let owned = match &cluster.scheduler {
        Scheduler::Slurm(_) => false,
        Scheduler::Kubernetes(kubernetes) => kubernetes.gpu_operator.is_some(),
    };
    let cuts: Vec<&Class> = classes.iter().copied().filter(cut).collect();
    if owned || cuts.is_empty() {
        return;
    }
    let (scheduler, agent) = match &cluster.scheduler {
        Scheduler::Slurm(_) => ("slurm", "slurmd.service"),
        Scheduler::Kubernetes(_) => ("kubernetes", "kubelet.service"),
    };
    let fleet = intent.fleet.name.as_str();
    let head = Head { fleet, cluster: cluster.name.as_str(), scheduler, agent };
    let mut file = OutputFile::default();
    let item = ItemPath::item("cluster", &cluster.name);
    file.push([item.clone()], render(SCRIPT, Language::Shell, &head));
    for class in classes {
        let text = render(CLASS, Language::Shell, &row(class));
        file.push(mig_parted::items(&[class]), text);
    }
    file.push([item], "\nmain\n".to_owned());
    let folder = format!("clusters/{}/mig", cluster.name);
    tree.add(format!("{folder}/fleetc-mig.sh"), file);
    let unit = render(UNIT, Language::Unit, &head);
    tree.add(
        format!("{folder}/fleetc-mig.service"),
        OutputFile::one(mig_parted::items(&cuts), unit),
    );
}

/// A class with its nodes. GPUs without MIG have no line: there is nothing to do to them.
fn row(class: &Class) -> Row<'_> {
    let node = &class.node;
    let ranges = class.nodes.ranges().map(|(shape, first, last)| Range {
        prefix: shape.prefix,
        suffix: shape.suffix,
        digits: shape.digits,
        first,
        last,
    });
    let model = node.gpu.as_ref();
    let capable = model.is_some_and(|model| model.mig_capable);
    Row {
        name: node.name.as_str(),
        reset: if model.is_some_and(|model| model.mig_mode_needs_reset) { "yes" } else { "no" },
        device_ids: model.map(|model| model.pci_device_ids.join(",")).unwrap_or_default(),
        products: model.map(|model| model.nvml_names.as_slice()).unwrap_or_default(),
        nodes: ranges.collect(),
        gpus: node.gpus.iter().filter(|_| capable).map(gpu).collect(),
    }
}

fn gpu(slot: &GpuSlot) -> Gpu {
    let instances = slot.mig.iter().flatten().map(|instance| {
        format!("{}:{}:{}", instance.profile_id, instance.placement.start, instance.profile)
    });
    Gpu {
        index: slot.index,
        mode: if slot.mig.is_some() { "on" } else { "off" },
        instances: instances.collect(),
    }
}
