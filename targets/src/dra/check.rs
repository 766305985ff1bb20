//! What DRA would not serve.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Cluster, Intent, Kubernetes, Sharing};

use crate::pods;

/// `dra/shared-gpus`: replicas of a GPU are the device plugin's; DRA shares by claims.
pub fn shared_gpus(intent: &Intent, cluster: &Cluster, found: &mut Vec<Diagnostic>) {
    for (pool, item) in pods::dra_pools(intent, cluster) {
        let mode = match item.sharing {
            Sharing::Mps(_) | Sharing::TimeSlicing(_) => item.sharing.mode(),
            Sharing::Whole | Sharing::Mig { .. } => continue,
        };
        let path = ItemPath::item("pool", pool);
        let title = format!("pool `{pool}` shares its GPUs through {mode}, and DRA hands them out");
        found.push(
            Diagnostic::new(&rules::DRA_SHARED_GPUS, title)
                .at(path.child("sharing"), "a DRA driver has no replicas")
                .at(path.child("devices"), "hands out whole devices")
                .note("under DRA pods share a GPU by sharing one claim, and MPS and time-slicing are alpha gates of the driver that are off")
                .help("write `devices \"device-plugin\"`, or share whole GPUs or MIG slices"),
        );
    }
}

/// `dra/two-domains-in-clique`: two workloads make NVLink domains of their own on the same nodes.
pub fn two_domains_in_clique(
    intent: &Intent,
    cluster: &Cluster,
    kubernetes: &Kubernetes,
    found: &mut Vec<Diagnostic>,
) {
    let mut seen: Vec<pods::Pods<'_>> = Vec::new();
    for pods in pods::of_cluster(intent, &cluster.name) {
        if !pods.has_compute_domain(intent, kubernetes) {
            continue;
        }
        let meets = |rack: &fleetc_schema::intent::Rack, other: &pods::Pods<'_>| {
            rack.product.is_some()
                && [&pods, other].into_iter().all(|side| {
                    let nodes = side.pool.parts.get(&cluster.name);
                    nodes.is_some_and(|nodes| !nodes.intersection(&rack.nodes).is_empty())
                })
        };
        let first = seen.iter().find(|other| intent.racks.values().any(|rack| meets(rack, other)));
        if let Some(first) = first {
            let title = format!(
                "workloads `{}` and `{}` each make an NVLink domain, and may share a rack",
                first.name, pods.name
            );
            found.push(
                Diagnostic::new(&rules::DRA_TWO_DOMAINS_IN_CLIQUE, title)
                    .at(ItemPath::item("workload", pods.name), "a ComputeDomain of its own")
                    .at(ItemPath::item("workload", first.name), "and one here")
                    .note("with two domains in one clique, memory of other nodes now and then cannot be mapped: CUDA_ERROR_NOT_SUPPORTED (dra-driver-nvidia-gpu, issue 892)")
                    .help("give each a pool of its own racks"),
            );
        }
        seen.push(pods);
    }
}
