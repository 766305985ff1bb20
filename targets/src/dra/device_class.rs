//! DeviceClass: one for each unit that a DRA pool hands out.
//!
//! It selects by driver and by what the driver publishes: the type, and the profile of a MIG device.
//! Neither an index nor the NVLink domain is published; nodes are told by our label. No extended
//! resource is named: Kueue would count a device twice.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent, Resource};
use serde::Serialize;

use crate::OutputTree;
use crate::manifest::{Metadata, Object, Spec, Stage};
use crate::pods;
use crate::write::header;

/// The driver, and the domain of its attributes.
const DRIVER: &str = "gpu.nvidia.com";

#[derive(Serialize)]
struct DeviceClass {
    selectors: Vec<Selector>,
}

#[derive(Serialize)]
struct Selector {
    cel: Cel,
}

#[derive(Serialize)]
struct Cel {
    expression: String,
}

/// Writes the classes of a cluster.
pub fn emit(intent: &Intent, cluster: &Cluster, tree: &mut OutputTree) {
    for (pool, _) in pods::dra_pools(intent, cluster) {
        for unit in intent.capacity(pool, &cluster.name).keys() {
            let expression = expression(unit);
            let object = Object {
                api_version: "resource.k8s.io/v1",
                kind: "DeviceClass",
                metadata: Metadata::of(pods::device_class(intent, pool, unit)),
                body: Spec {
                    spec: DeviceClass { selectors: vec![Selector { cel: Cel { expression } }] },
                },
            };
            let head =
                format!("fleet {}, cluster {}, pool {pool}", intent.fleet.name, cluster.name);
            let items = [ItemPath::item("pool", pool).child("devices")];
            let path = object.path(&cluster.name, Stage::Devices);
            tree.add(path, object.file(&header(&[&head]), items));
        }
    }
}

/// A CEL expression over the attributes of a device.
fn expression(unit: &Resource) -> String {
    let is = |attribute: &str, value: &str| {
        format!("device.attributes[\"{DRIVER}\"].{attribute} == \"{value}\"")
    };
    let driver = format!("device.driver == \"{DRIVER}\"");
    match unit {
        Resource::Gpu | Resource::Shared => format!("{driver} && {}", is("type", "gpu")),
        Resource::Slice(profile) => {
            format!("{driver} && {} && {}", is("type", "mig"), is("profile", &profile.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_selected_by_its_profile() {
        assert_eq!(
            expression(&Resource::Slice("1g.10gb+me".parse().unwrap())),
            "device.driver == \"gpu.nvidia.com\" \
             && device.attributes[\"gpu.nvidia.com\"].type == \"mig\" \
             && device.attributes[\"gpu.nvidia.com\"].profile == \"1g.10gb+me\""
        );
    }
}
