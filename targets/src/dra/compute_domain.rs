//! ComputeDomain: one for each workload that spans the nodes of an NVLink domain.
//!
//! The driver makes the ResourceClaimTemplate of its channels itself, so none is written here. The
//! number of nodes is left at 0, as upstream recommends; replicas of the workload share the domain.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent, Kubernetes};
use serde::Serialize;

use crate::OutputTree;
use crate::manifest::{Metadata, Object, Spec, Stage};
use crate::pods;
use crate::write::header;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ComputeDomain {
    num_nodes: u32,
    channel: Channel,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Channel {
    allocation_mode: &'static str,
    resource_claim_template: Name,
}

#[derive(Serialize)]
struct Name {
    name: String,
}

/// Writes the domains of a cluster.
pub fn emit(intent: &Intent, cluster: &Cluster, kubernetes: &Kubernetes, tree: &mut OutputTree) {
    for pods in pods::of_cluster(intent, &cluster.name) {
        let Some(team) = intent.teams.get(&pods.workload.team) else { continue };
        if !pods.has_compute_domain(intent, kubernetes) {
            continue;
        }
        let channel = Channel {
            allocation_mode: "Single",
            resource_claim_template: Name { name: pods.channel_template() },
        };
        let object = Object {
            api_version: "resource.nvidia.com/v1beta1",
            kind: "ComputeDomain",
            metadata: Metadata::within(&team.namespace, pods.name.as_str()),
            body: Spec { spec: ComputeDomain { num_nodes: 0, channel } },
        };
        let head = format!(
            "fleet {}, cluster {}, workload {}: NVLink between the nodes of a replica",
            intent.fleet.name, cluster.name, pods.name
        );
        let items =
            [ItemPath::item("workload", pods.name), ItemPath::item("pool", &pods.workload.pool)];
        let path = object.path(&cluster.name, Stage::Devices);
        tree.add(path, object.file(&header(&[&head]), items));
    }
}
