//! The pod of a template.
//!
//! Limits are equal to requests: GPUs cannot be overcommitted, and what a pod may use beyond its
//! request it takes from the data loaders of its neighbours.

use fleetc_schema::intent::{Devices, FabricKind, Intent, Kubernetes, TopologyLevel};
use fleetc_schema::units::Bytes;
use indexmap::IndexMap;
use serde::Serialize;

use super::owner::Owner;
use crate::pods::{self, CLIQUE_LABEL, Pods, Toleration, topology_levels};

/// The image of a template: `.invalid` is a domain that never resolves (RFC 2606).
pub const IMAGE: &str = "image.invalid/set-by-owner";
/// The command of a template.
pub const COMMAND: &str = "/set-by-owner";

/// Seconds beyond the time of a checkpoint: to notice the signal, and to end.
const GRACE: u64 = 30;

/// The shared RDMA device of NVIDIA's network operator as its documentation names it. One gives a
/// pod every port of the node. Source: Mellanox/network-operator, example NicClusterPolicy.
const RDMA: &str = "rdma/rdma_shared_device_a";
/// Source: aws/eks-charts, aws-efa-k8s-device-plugin.
const EFA: &str = "vpc.amazonaws.com/efa";

/// Pods of a template.
#[derive(Serialize)]
pub struct PodTemplate {
    metadata: PodMetadata,
    spec: PodSpec,
}

#[derive(Serialize)]
struct PodMetadata {
    labels: IndexMap<String, String>,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    annotations: IndexMap<&'static str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    restart_policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority_class_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    termination_grace_period_seconds: Option<u64>,
    node_selector: IndexMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    affinity: Option<Affinity>,
    tolerations: Vec<Toleration>,
    containers: Vec<Container>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_claims: Vec<PodClaim>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    volumes: Vec<Volume>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Affinity {
    pod_affinity: PodAffinity,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PodAffinity {
    required_during_scheduling_ignored_during_execution: Vec<Term>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Term {
    label_selector: LabelSelector,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    match_label_keys: Vec<&'static str>,
    topology_key: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LabelSelector {
    match_labels: IndexMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: &'static str,
    image: &'static str,
    command: Vec<&'static str>,
    resources: Resources,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    volume_mounts: Vec<Mount>,
}

#[derive(Serialize)]
struct Resources {
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    requests: IndexMap<String, String>,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    limits: IndexMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    claims: Vec<ClaimName>,
}

#[derive(Serialize)]
struct ClaimName {
    name: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PodClaim {
    name: &'static str,
    resource_claim_template_name: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Mount {
    name: &'static str,
    mount_path: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Volume {
    name: &'static str,
    empty_dir: EmptyDir,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EmptyDir {
    medium: &'static str,
    size_limit: String,
}

/// The pods of a workload.
pub fn template(
    intent: &Intent,
    kubernetes: &Kubernetes,
    pods: &Pods<'_>,
    owner: Owner,
) -> PodTemplate {
    let workload = pods.workload;
    let claims = claims(intent, kubernetes, pods);
    let resources = resources(intent, pods);
    let shm = workload.host.and_then(|host| host.shm);
    let container = Container {
        name: "main",
        image: IMAGE,
        command: vec![COMMAND],
        resources: Resources {
            requests: resources.clone(),
            limits: resources,
            claims: claims.iter().map(|claim| ClaimName { name: claim.name }).collect(),
        },
        volume_mounts: shm
            .map(|_| Mount { name: "shm", mount_path: "/dev/shm" })
            .into_iter()
            .collect(),
    };
    let shm = |size| Volume {
        name: "shm",
        empty_dir: EmptyDir { medium: "Memory", size_limit: quantity(size) },
    };
    let saves = workload.checkpoint.as_ref().and_then(|checkpoint| checkpoint.takes);
    let pool = (format!("{}/pool", intent.fleet.label_prefix), workload.pool.to_string());
    let spec = PodSpec {
        restart_policy: (owner == Owner::Job).then_some("Never"),
        priority_class_name: workload.tier.as_ref().map(ToString::to_string),
        termination_grace_period_seconds: saves.map(|takes| takes.0.saturating_add(GRACE)),
        node_selector: IndexMap::from([pool]),
        affinity: pods
            .has_compute_domain(intent, kubernetes)
            .then(|| together(intent, pods, owner)),
        tolerations: pods::tolerations(pods.pool),
        containers: vec![container],
        resource_claims: claims,
        volumes: workload.host.and_then(|host| host.shm).map(shm).into_iter().collect(),
    };
    let metadata =
        PodMetadata { labels: labels(intent, pods), annotations: annotations(intent, pods) };
    PodTemplate { metadata, spec }
}

/// The label by which pods of a workload are told.
pub fn labels(intent: &Intent, pods: &Pods<'_>) -> IndexMap<String, String> {
    IndexMap::from([(format!("{}/workload", intent.fleet.label_prefix), pods.name.to_string())])
}

/// How Kueue places the pods, where the flavor of the pool has a topology: a job that says nothing is
/// refused there.
///
/// A job that must be kept together asks for one block: an NVLink domain, a leaf or a rack, whichever
/// is the widest that its levels know. Others that span nodes are packed as closely as they can be.
fn annotations(intent: &Intent, pods: &Pods<'_>) -> IndexMap<&'static str, String> {
    let Some(cluster) = intent.clusters.get(&pods.workload.cluster) else { return IndexMap::new() };
    let levels = topology_levels(intent, cluster, &pods.workload.pool);
    if levels.is_empty() {
        return IndexMap::new();
    }
    let labelled = |level| levels.iter().find(|l| l.level == level).map(|l| l.label.clone());
    let block = [TopologyLevel::NvlinkDomain, TopologyLevel::Leaf, TopologyLevel::Rack];
    let block = block.into_iter().find_map(labelled).filter(|_| pods.is_contiguous());
    let closest = levels.iter().rfind(|level| level.level != TopologyLevel::Host);
    let annotation = match (block, closest) {
        (Some(block), _) => ("kueue.x-k8s.io/podset-required-topology", block),
        (None, Some(level)) if pods.count > 1 => {
            ("kueue.x-k8s.io/podset-preferred-topology", level.label.clone())
        }
        (None, _) => ("kueue.x-k8s.io/podset-unconstrained-topology", "true".to_owned()),
    };
    IndexMap::from([annotation])
}

/// The pods of a replica stand in one NVLink domain; two replicas may stand in two.
fn together(intent: &Intent, pods: &Pods<'_>, owner: Owner) -> Affinity {
    let (match_labels, match_label_keys) = match owner {
        Owner::Job | Owner::Deployment => (labels(intent, pods), Vec::new()),
        Owner::LeaderWorkerSet => (
            IndexMap::from([(
                "leaderworkerset.sigs.k8s.io/name".to_owned(),
                pods.name.to_string(),
            )]),
            vec!["leaderworkerset.sigs.k8s.io/group-index"],
        ),
    };
    let term = Term {
        label_selector: LabelSelector { match_labels },
        match_label_keys,
        topology_key: CLIQUE_LABEL,
    };
    let pod_affinity =
        PodAffinity { required_during_scheduling_ignored_during_execution: vec![term] };
    Affinity { pod_affinity }
}

fn claims(intent: &Intent, kubernetes: &Kubernetes, pods: &Pods<'_>) -> Vec<PodClaim> {
    let gpus = pods
        .claim_template(intent)
        .map(|template| PodClaim { name: "gpus", resource_claim_template_name: template });
    let channel = pods.has_compute_domain(intent, kubernetes).then(|| PodClaim {
        name: "channel",
        resource_claim_template_name: pods.channel_template(),
    });
    gpus.into_iter().chain(channel).collect()
}

/// What a pod asks for and may use: for each GPU or slice its processors and memory, the GPUs, and
/// the network.
fn resources(intent: &Intent, pods: &Pods<'_>) -> IndexMap<String, String> {
    let each = u64::from(pods.each.max(1));
    let mut resources = IndexMap::new();
    if let Some(host) = pods.workload.host {
        if let Some(cpu) = host.cpu {
            resources.insert("cpu".to_owned(), (u64::from(cpu) * each).to_string());
        }
        if let Some(Bytes(memory)) = host.memory {
            let memory = quantity(Bytes(memory.saturating_mul(each)));
            resources.insert("memory".to_owned(), memory);
        }
    }
    if let Some(unit) = pods.unit.as_ref().filter(|_| pods.pool.devices == Devices::DevicePlugin) {
        resources.insert(pods.pool.sharing.kubernetes_resource(unit), pods.each.to_string());
    }
    if let Some(device) = rdma(intent, pods) {
        resources.insert(device.to_owned(), "1".to_owned());
    }
    resources
}

/// The network device of a pod, if its job spans nodes and talks over a fabric that is one.
pub fn rdma(intent: &Intent, pods: &Pods<'_>) -> Option<&'static str> {
    let fabric = intent.fabrics.get(pods.workload.network.as_ref()?)?;
    let device = match fabric.kind {
        FabricKind::Infiniband | FabricKind::Roce => RDMA,
        FabricKind::Efa => EFA,
        FabricKind::Ethernet => return None,
    };
    (pods.count > 1).then_some(device)
}

/// A quantity of Kubernetes, in the largest binary unit that is whole.
fn quantity(Bytes(bytes): Bytes) -> String {
    const UNITS: [(&str, u64); 3] = [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
    let whole = UNITS.into_iter().find(|(_, unit)| bytes > 0 && bytes % unit == 0);
    whole.map_or_else(|| bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_exact() {
        for (bytes, text) in [
            (8 << 30, "8Gi"),
            (1536 << 20, "1536Mi"),
            (1 << 10, "1Ki"),
            (1_000_000_000, "1000000000"),
            (0, "0"),
        ] {
            assert_eq!(quantity(Bytes(bytes)), text);
        }
    }
}
