//! What a site has before anything of ours is applied, and what its agents publish: nodes with labels,
//! taints and resources, and devices of DRA, all as the Intent says they will be.

use std::collections::{BTreeMap, BTreeSet};

use fleetc_schema::intent::{Class, Cluster, Devices, DraDevice, Intent, Kubernetes};
use fleetc_schema::name::{ClusterName, RackName};
use fleetc_schema::topology::{PlaceLabel, Topology};
use serde_json::{Map, Value, json};

use super::Failure;
use super::objects::text;

/// NVIDIA's drivers of DRA.
const GPUS: &str = "gpu.nvidia.com";
const DOMAINS: &str = "compute-domain.nvidia.com";
/// The class of IMEX channels that the chart of the DRA driver brings. Source:
/// kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1, `deviceclass-compute-domain-default-channel.yaml`.
const CHANNEL_CLASS: &str = "compute-domain-default-channel.nvidia.com";
/// Set by GPU Feature Discovery on nodes of one NVLink domain.
const CLIQUE: &str = "nvidia.com/gpu.clique";
/// The taint that node groups with GPUs have at most providers; pods of ours say that they bear it.
const GPU_TAINT: &str = "nvidia.com/gpu";

/// The most nodes of a class that are made: enough for any gang of an example.
const NODES: usize = 256;
/// Devices of a network plugin on each node, where a template asks for one.
const NETWORK_DEVICES: &str = "64";
/// Of a node whose processors or memory nobody states.
const PROCESSORS: &str = "256";
const MEMORY: &str = "4Ti";

/// A `List` of objects.
pub fn list(items: Vec<Value>) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// Nodes of a class, as many as are made.
pub fn nodes_of(class: &Class) -> impl Iterator<Item = String> + '_ {
    class.nodes.names().take(NODES)
}

/// The nodes of a cluster. Whatever templates ask for that is no GPU is there too.
pub fn nodes(intent: &Intent, cluster: &ClusterName, templates: &[Value]) -> Vec<Value> {
    let wanted: BTreeSet<String> = templates.iter().flat_map(network_devices).collect();
    let item = intent.clusters.get(cluster);
    let places = item.map(|item| Topology::of(intent).place_labels(intent, item));
    let places = places.unwrap_or_default();
    let mut nodes = Vec::new();
    for class in intent.classes_of(cluster) {
        for name in nodes_of(class) {
            nodes.push(node(intent, class, &name, &places, &wanted));
        }
    }
    nodes
}

fn node(
    intent: &Intent,
    class: &Class,
    name: &str,
    places: &[PlaceLabel],
    wanted: &BTreeSet<String>,
) -> Value {
    let node = &class.node;
    let mut labels: BTreeMap<&str, String> =
        node.advertised.labels.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    labels.insert("kubernetes.io/hostname", name.to_owned());
    for label in places {
        let place = label.places.iter().find(|(_, nodes)| nodes.contains(name));
        labels.extend(place.map(|(place, _)| (label.key.as_str(), place.clone())));
    }
    if let Some(rack) = rack(intent, name) {
        labels.insert(CLIQUE, format!("{rack}.0"));
    }
    let mut taints = vec![json!({ "key": GPU_TAINT, "value": "present", "effect": "NoSchedule" })];
    for taint in intent.pools.get(&node.pool).iter().flat_map(|pool| &pool.taints) {
        taints.retain(|other| text(other, "/key") != taint.key);
        taints.push(
            json!({ "key": taint.key, "value": taint.value, "effect": taint.effect.as_str() }),
        );
    }
    let mut capacity = Map::new();
    let cpu = node.host.cpu.map_or(PROCESSORS.to_owned(), |cpu| cpu.threads.to_string());
    let memory = node.host.memory.map_or(MEMORY.to_owned(), |memory| format!("{}Mi", memory.0));
    capacity.insert("cpu".to_owned(), json!(cpu));
    capacity.insert("memory".to_owned(), json!(memory));
    capacity.insert("pods".to_owned(), json!("250"));
    for (resource, count) in &node.advertised.resources {
        capacity.insert(resource.clone(), json!(count.to_string()));
    }
    for resource in wanted {
        capacity.insert(resource.clone(), json!(NETWORK_DEVICES));
    }
    let since = "2026-01-01T00:00:00Z";
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": labels },
        "spec": { "taints": taints },
        "status": {
            "capacity": capacity, "allocatable": capacity,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Conformance", "message": "an object",
                "lastHeartbeatTime": since, "lastTransitionTime": since,
            }],
        },
    })
}

/// The rack of a node, if it is one NVLink domain.
fn rack<'a>(intent: &'a Intent, node: &str) -> Option<&'a RackName> {
    let mut racks = intent.racks.iter().filter(|(_, rack)| rack.product.is_some());
    racks.find(|(_, rack)| rack.nodes.contains(node)).map(|(name, _)| name)
}

/// Extended resources of a template that a network plugin of the site publishes.
fn network_devices(template: &Value) -> Vec<String> {
    let containers = super::jobs::pod(template).and_then(|pod| pod.pointer("/spec/containers"));
    let containers = containers.and_then(Value::as_array).into_iter().flatten();
    let limits = containers.filter_map(|c| c.pointer("/resources/limits")?.as_object());
    let names = limits.flat_map(Map::keys);
    names.filter(|name| name.contains('/') && !name.starts_with("nvidia.com/")).cloned().collect()
}

/// What NVIDIA's DRA drivers publish and bring: the devices of each node, and a channel of the NVLink
/// domain that it stands in, with the class of channels.
pub fn devices(intent: &Intent, cluster: &Cluster, kubernetes: &Kubernetes) -> Vec<Value> {
    let mut objects = Vec::new();
    if kubernetes.dra_driver.is_none() {
        return objects;
    }
    let channel = json!({
        "name": "channel-0",
        "attributes": { "type": { "string": "channel" }, "id": { "int": 0 } },
    });
    for class in intent.classes_of(&cluster.name) {
        let pool = intent.pools.get(&class.node.pool);
        let dra = pool.is_some_and(|pool| pool.devices == Devices::Dra);
        let devices: Vec<Value> = class.node.advertised.devices.iter().map(device).collect();
        for node in nodes_of(class) {
            if dra {
                objects.push(slice(&node, GPUS, &json!(devices)));
            }
            if rack(intent, &node).is_some() {
                objects.push(slice(&node, DOMAINS, &json!([channel])));
            }
        }
    }
    if !objects.is_empty() {
        let expression = format!(
            "device.driver == '{DOMAINS}' && device.attributes['{DOMAINS}'].type == 'channel' \
             && device.attributes['{DOMAINS}'].id == 0"
        );
        objects.push(json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
            "metadata": { "name": CHANNEL_CLASS },
            "spec": { "selectors": [{ "cel": { "expression": expression } }] },
        }));
    }
    objects
}

fn slice(node: &str, driver: &str, devices: &Value) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": { "name": format!("{node}-{driver}") },
        "spec": {
            "driver": driver, "nodeName": node, "devices": devices,
            "pool": { "name": node, "generation": 1, "resourceSliceCount": 1 },
        },
    })
}

fn device(device: &DraDevice) -> Value {
    let mut attributes = Map::new();
    let mut say = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            attributes.insert(name.to_owned(), json!({ "string": value }));
        }
    };
    say("type", Some(device.kind.clone()));
    say("productName", device.product.clone());
    say("profile", device.profile.as_ref().map(ToString::to_string));
    let capacity =
        device.memory.map(|memory| json!({ "memory": { "value": format!("{}Mi", memory.0) } }));
    json!({ "name": device.name, "attributes": attributes, "capacity": capacity.unwrap_or_else(|| json!({})) })
}

/// The claim templates that the DRA driver makes for the domains that are written.
pub fn channel_templates(domains: &[Value]) -> Result<Vec<Value>, Failure> {
    let template = |domain: &Value| {
        let name = text(domain, "/spec/channel/resourceClaimTemplate/name");
        if name.is_empty() {
            return Err(format!("a ComputeDomain names no template: {domain}").into());
        }
        let request = json!({ "name": "channel", "exactly": { "deviceClassName": CHANNEL_CLASS } });
        Ok(json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
            "metadata": { "name": name, "namespace": text(domain, "/metadata/namespace") },
            "spec": { "spec": { "devices": { "requests": [request] } } },
        }))
    };
    domains.iter().map(template).collect()
}
