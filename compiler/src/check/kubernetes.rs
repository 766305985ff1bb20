//! Kubernetes clusters: what one cannot do, or was never tried with.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{
    Devices, Distribution, Kubernetes, Pool, Scheduler, Taint, TaintEffect,
};
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

/// What the agents of NVIDIA tolerate unless told otherwise. Source: NVIDIA/k8s-device-plugin v0.20.0 and
/// NVIDIA/gpu-operator v26.7.0, `tolerations` of the charts' values.
const TOLERATED: &str = "nvidia.com/gpu";

/// `kubernetes/taint-not-tolerated`: a taint that keeps NVIDIA's agents away, in a cluster where no values
/// are written that would tell them of it.
pub fn taint_not_tolerated(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (cluster, kubernetes) in clusters(lowered) {
        let path = ItemPath::item("cluster", cluster).child("kubernetes");
        let why = match (&kubernetes.gpu_operator, kubernetes.distribution) {
            (Some(_), Distribution::Openshift) => "OpenShift installs the operator without values",
            (Some(_), _) => continue,
            (None, _) if lowered.is_poisoned(&path.child("gpu-operator")) => continue,
            (None, _) => "no GPU Operator whose values are written",
        };
        for (name, pool) in &lowered.intent.pools {
            // Values of the DRA driver are written, whoever installs the rest.
            let told = pool.devices == Devices::Dra && kubernetes.dra_driver.is_some();
            if told || lowered.intent.capacity(name, cluster).is_empty() {
                continue;
            }
            let keeps_away = |taint: &&Taint| {
                taint.effect != TaintEffect::PreferNoSchedule && taint.key != TOLERATED
            };
            let Some(taint) = pool.taints.iter().find(keeps_away) else { continue };
            let place = ItemPath::item("pool", name).keyed("taint", [&taint.key]);
            let title = format!("the taint `{taint}` may keep NVIDIA's agents off pool `{name}`");
            found.push(
                Diagnostic::new(&rules::KUBERNETES_TAINT_NOT_TOLERATED, title)
                    .at(place, format!("they tolerate `{TOLERATED}` and no other"))
                    .at(&path, why)
                    .note("without the device plugin on a node its GPUs are not there: it has 0")
                    .help(format!("taint it with `{TOLERATED}`, or have every agent tolerate this one and `allow` it")),
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
