//! Kubernetes clusters: what one cannot do, or was never tried with.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Distribution, Kubernetes, Pool, Scheduler, TaintEffect};
use fleetc_schema::name::{ClusterName, PoolName};

use crate::lower::Lowered;

/// Nodes of a cluster that the Kubernetes project tests with. Source: Kubernetes documentation,
/// "Considerations for large clusters". Clouds raise it for control planes of their own.
const TESTED_NODES: u64 = 5_000;

/// `kubernetes/too-many-nodes`: more nodes than upstream Kubernetes is tested with.
pub fn too_many_nodes(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    for (cluster, kubernetes) in clusters(lowered) {
        if kubernetes.distribution != Distribution::Upstream {
            continue;
        }
        let parts = || {
            let parts = intent.pools.iter();
            parts.filter_map(|(name, pool)| Some((name, pool.parts.get(cluster)?.len())))
        };
        let nodes: u64 = parts().map(|(_, nodes)| nodes).sum();
        let Some((largest, most)) =
            parts().max_by_key(|(_, nodes)| *nodes).filter(|_| nodes > TESTED_NODES)
        else {
            continue;
        };
        let title = format!(
            "cluster `{cluster}` has {nodes} nodes, and Kubernetes is tested with {TESTED_NODES}"
        );
        found.push(
            Diagnostic::new(&rules::KUBERNETES_TOO_MANY_NODES, title)
                .at(ItemPath::item("cluster", cluster).child("kubernetes"), format!("{nodes} nodes"))
                .at(ItemPath::item("pool", largest), format!("{most} of them"))
                .note("above it etcd, the watches of every agent and the lists of nodes grow slow together")
                .help("split the pools over two clusters, or `allow` it if the control plane was tried at this size"),
        );
    }
}

/// `kubernetes/untainted-gpu-nodes`: pods without a GPU may fill GPU nodes, although the cluster has
/// others for them.
pub fn untainted_gpu_nodes(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    for (cluster, _) in clusters(lowered) {
        let has_gpus = |pool: &PoolName| {
            let mut classes = intent.classes_of(cluster).filter(|class| class.node.pool == *pool);
            classes.any(|class| !class.node.gpus.is_empty())
        };
        let keeps_away = |pool: &Pool| {
            pool.taints.iter().any(|taint| taint.effect != TaintEffect::PreferNoSchedule)
        };
        let here = || {
            let pools = intent.pools.iter();
            pools.filter(|(_, pool)| pool.parts.contains_key(cluster))
        };
        let Some((home, _)) = here().find(|(name, pool)| !has_gpus(name) && !keeps_away(pool))
        else {
            continue;
        };
        for (name, _) in here().filter(|(name, pool)| has_gpus(name) && !keeps_away(pool)) {
            let item = ItemPath::item("pool", name);
            if lowered.is_poisoned(&item.child("taint")) {
                continue;
            }
            let title = format!("pods that ask for no GPU may fill the nodes of pool `{name}`");
            found.push(
                Diagnostic::new(&rules::KUBERNETES_UNTAINTED_GPU_NODES, title)
                    .at(&item, "no taint keeps them away")
                    .at(ItemPath::item("pool", home), "where they belong")
                    .note("a node without CPU or memory left takes no job, and its GPUs stand idle")
                    .help("add `taint \"nvidia.com/gpu\" value=\"present\" effect=\"NoSchedule\"`")
                    .help("NVIDIA's agents tolerate it; pods that ask for GPUs must too"),
            );
        }
    }
}

fn clusters(lowered: &Lowered) -> impl Iterator<Item = (&ClusterName, &Kubernetes)> {
    lowered.intent.clusters.iter().filter_map(|(name, cluster)| match &cluster.scheduler {
        Scheduler::Kubernetes(kubernetes) => Some((name, kubernetes)),
        Scheduler::Slurm(_) => None,
    })
}
