//! What Slurm would refuse, or what we cannot write for it.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Cluster, Intent, Sharing};

/// `slurm/shared-gpus`: MPS and time-slicing in a pool that Slurm owns.
pub fn shared_gpus(intent: &Intent, cluster: &Cluster, found: &mut Vec<Diagnostic>) {
    for (name, pool) in &intent.pools {
        let shared = match pool.sharing {
            Sharing::Mps(_) | Sharing::TimeSlicing(_) => pool.sharing.mode(),
            Sharing::Whole | Sharing::Mig { .. } => continue,
        };
        if !pool.parts.contains_key(&cluster.name) {
            continue;
        }
        let path = ItemPath::item("pool", name);
        let title = format!("pool `{name}` shares its GPUs through {shared}, and Slurm owns it");
        found.push(
            Diagnostic::new(&rules::SLURM_SHARED_GPUS, title)
                .at(path.child("sharing"), "no GRES is written for this")
                .at(ItemPath::item("cluster", &cluster.name).child("slurm"), "a Slurm cluster")
                .note("Slurm has the GRES `shard` and `mps` for shared GPUs; they are not written yet")
                .help("share whole GPUs or MIG slices, or give the pool to a Kubernetes cluster"),
        );
    }
}

/// `catalog/missing-fact`: NodeName needs processors and memory, which a generic server leaves open.
pub fn missing_facts(intent: &Intent, cluster: &Cluster, found: &mut Vec<Diagnostic>) {
    let mut told = Vec::new();
    for class in intent.classes_of(&cluster.name) {
        let (node, host) = (&class.node, &class.node.host);
        let missing = match (host.cpu, host.memory) {
            (None, None) => "processors and memory",
            (None, Some(_)) => "processors",
            (Some(_), None) => "memory",
            (Some(_), Some(_)) => continue,
        };
        if told.contains(&&node.pool) {
            continue;
        }
        told.push(&node.pool);
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
