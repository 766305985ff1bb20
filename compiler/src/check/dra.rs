//! Dynamic Resource Allocation: who publishes devices.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Devices, Kubernetes, Scheduler};

use crate::lower::Lowered;

/// `dra/no-driver`: nothing publishes the devices of a pool.
pub fn no_driver(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    for (pool, item) in intent.pools.iter().filter(|(_, pool)| pool.devices == Devices::Dra) {
        for (name, cluster) in
            item.parts.keys().filter_map(|name| intent.clusters.get_key_value(name))
        {
            let Scheduler::Kubernetes(Kubernetes { dra_driver: None, .. }) = &cluster.scheduler
            else {
                continue;
            };
            let kubernetes = ItemPath::item("cluster", name).child("kubernetes");
            let unread = lowered.is_poisoned(&kubernetes.child("dra-driver"));
            if unread || intent.capacity(pool, name).is_empty() {
                continue;
            }
            let title = format!(
                "pool `{pool}` hands its GPUs out through DRA, and cluster `{name}` has no driver for it"
            );
            found.push(
                Diagnostic::new(&rules::DRA_NO_DRIVER, title)
                    .at(ItemPath::item("pool", pool).child("devices"), "nothing publishes these devices")
                    .at(kubernetes, "no `dra-driver`")
                    .note("a claim on them waits for ever: no ResourceSlice names a device")
                    .help("add `dra-driver \"0.5\"` to the cluster, or write `devices \"device-plugin\"`"),
            );
        }
    }
}
