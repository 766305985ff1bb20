//! Who owns which node.

use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Cluster, Devices, DriverOwner, Pool, Scheduler};
use fleetc_schema::name::PoolName;
use fleetc_schema::{Hostlist, ItemPath};

use crate::lower::Lowered;

/// `ownership/unowned`: nodes of a split pool that no part names.
pub fn unowned(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, pool) in &lowered.intent.pools {
        let path = ItemPath::item("pool", name);
        let split = path.child("split");
        if lowered.is_poisoned(&split) || lowered.is_poisoned(&path.child("nodes")) {
            continue;
        }
        let owned = pool.parts.values().fold(Hostlist::default(), |all, part| all.union(part));
        let rest = pool.nodes.difference(&owned);
        if rest.is_empty() {
            continue;
        }
        let (verb, they) = if rest.len() == 1 { ("has", "it") } else { ("have", "them") };
        let title = format!("`{rest}` of pool `{name}` {verb} no owner");
        found.push(
            Diagnostic::new(&rules::OWNERSHIP_UNOWNED, title)
                .at(split, format!("no part names {they}"))
                .at(path.child("nodes"), "the pool's nodes")
                .note("a node without an owner is in no configuration, quota or alert")
                .help(format!("add {they} to a part, or remove {they} from the pool")),
        );
    }
}

/// `ownership/driver-unowned`: nobody installs the driver, or two do.
pub fn driver_unowned(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, cluster) in &lowered.intent.clusters {
        let path = ItemPath::item("cluster", name);
        let (path, driver, operator) = match &cluster.scheduler {
            Scheduler::Slurm(slurm) => {
                // Daemons that run in pods stand on nodes that the operator of their host serves.
                let host = |host| lowered.intent.clusters.get(host);
                let hosted = slurm.hosted_by.as_ref();
                let operator = hosted.is_some_and(|name| host(name).is_none_or(has_operator));
                (path.child("slurm"), &slurm.driver, operator)
            }
            Scheduler::Kubernetes(kubernetes) => {
                (path.child("kubernetes"), &kubernetes.driver, has_operator(cluster))
            }
        };
        if driver.owner != DriverOwner::Operator {
            continue;
        }
        let place = path.child("driver").child("owner");
        let report = |title: String| Diagnostic::new(&rules::OWNERSHIP_DRIVER_UNOWNED, title);
        if !operator {
            let title = format!("nobody installs the NVIDIA driver in cluster `{name}`");
            found.push(
                report(title)
                    .at(place, "the cluster has no GPU Operator")
                    .help("write `owner=\"os\"`, or add `gpu-operator` to a Kubernetes cluster"),
            );
            continue;
        }
        let dgx =
            lowered.intent.classes_of(name).find(|c| c.node.system.as_str().starts_with("dgx-"));
        if let Some(class) = dgx {
            let title = format!("two install the NVIDIA driver in cluster `{name}`");
            found.push(
                report(title)
                    .at(place, "the GPU Operator installs one")
                    .at(&class.node.paths.system, "DGX OS brings its own")
                    .note("where the host has a driver the operator's is not loaded, and its version does not run")
                    .help("write `owner=\"os\"`"),
            );
        }
    }
}

/// `ownership/two-mechanisms`: the device plugin and DRA in one cluster, and nothing that keeps the plugin
/// off the nodes of the other.
pub fn two_mechanisms(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    for (name, cluster) in &intent.clusters {
        let Scheduler::Kubernetes(kubernetes) = &cluster.scheduler else { continue };
        let path = ItemPath::item("cluster", name).child("kubernetes");
        // Without a DRA driver nothing is handed out twice, which is `dra/no-driver`.
        if kubernetes.gpu_operator.is_some()
            || kubernetes.dra_driver.is_none()
            || lowered.is_poisoned(&path.child("gpu-operator"))
        {
            continue;
        }
        let pool = |devices| {
            let here = |(pool, item): &(&PoolName, &Pool)| {
                item.devices == devices && !intent.capacity(pool, name).is_empty()
            };
            intent.pools.iter().find(here).map(|(name, _)| name)
        };
        let (Some(plugin), Some(dra)) = (pool(Devices::DevicePlugin), pool(Devices::Dra)) else {
            continue;
        };
        let title = format!("the device plugin may hand out the GPUs of pool `{dra}` too");
        found.push(
            Diagnostic::new(&rules::OWNERSHIP_TWO_MECHANISMS, title)
                .at(ItemPath::item("pool", dra).child("devices"), "handed out through DRA")
                .at(ItemPath::item("pool", plugin), "handed out by the device plugin")
                .at(path, "no GPU Operator that keeps the plugin off a node")
                .note("a GPU that both hand out goes to two pods at once: neither knows of the other")
                .help("add `gpu-operator` to the cluster, or keep the device plugin off these nodes yourself and `allow` it"),
        );
    }
}

fn has_operator(cluster: &Cluster) -> bool {
    match &cluster.scheduler {
        Scheduler::Kubernetes(kubernetes) => kubernetes.gpu_operator.is_some(),
        Scheduler::Slurm(_) => false,
    }
}
