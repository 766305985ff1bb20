//! ResourceClaimTemplate: one for each workload whose devices DRA hands out.
//!
//! Each pod has a claim of its own from it. It asks for exactly so many: Kueue takes neither
//! `firstAvailable` nor the allocation mode `All`.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent};
use serde::Serialize;

use crate::OutputTree;
use crate::manifest::{Metadata, Object, Spec, Stage};
use crate::pods;
use crate::write::header;

#[derive(Serialize)]
struct Template {
    spec: Claim,
}

#[derive(Serialize)]
struct Claim {
    devices: Devices,
}

#[derive(Serialize)]
struct Devices {
    requests: Vec<Request>,
}

#[derive(Serialize)]
struct Request {
    name: &'static str,
    exactly: Exactly,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Exactly {
    device_class_name: String,
    allocation_mode: &'static str,
    count: u32,
}

/// Writes the templates of a cluster.
pub fn emit(intent: &Intent, cluster: &Cluster, tree: &mut OutputTree) {
    for pods in pods::of_cluster(intent, &cluster.name) {
        let (Some(class), Some(name)) = (pods.device_class(intent), pods.claim_template(intent))
        else {
            continue;
        };
        let Some(team) = intent.teams.get(&pods.workload.team) else { continue };
        let request = Request {
            name: "gpus",
            exactly: Exactly {
                device_class_name: class,
                allocation_mode: "ExactCount",
                count: pods.each,
            },
        };
        let object = Object {
            api_version: "resource.k8s.io/v1",
            kind: "ResourceClaimTemplate",
            metadata: Metadata::within(&team.namespace, name),
            body: Spec {
                spec: Template { spec: Claim { devices: Devices { requests: vec![request] } } },
            },
        };
        let head = format!(
            "fleet {}, cluster {}, workload {}: the devices of a pod",
            intent.fleet.name, cluster.name, pods.name
        );
        let item = ItemPath::item("workload", pods.name);
        let path = object.path(&cluster.name, Stage::Devices);
        tree.add(path, object.file(&header(&[&head]), [item.child("gpus"), item]));
    }
}
