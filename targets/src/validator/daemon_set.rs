//! The DaemonSet: on each node of the fleet it judges at intervals, and patches the condition
//! `fleetc.dev/GPUConforms` into the node's status. Nobody is tainted or cordoned by it.
//!
//! A pod sees GPU instances of the node only if it is privileged and asks for the capability to
//! monitor them. Source: NVIDIA/nvidia-container-toolkit, `NVIDIA_MIG_MONITOR_DEVICES`; Kubernetes
//! documentation, "Projected Volumes"; kubectl reference, `patch --subresource`.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::Validator;
use fleetc_schema::name::ClusterName;
use indexmap::IndexMap;
use serde::Serialize;

use super::{CONDITION, NAME};
use crate::OutputTree;
use crate::manifest::{Metadata, Object, Spec, Stage};
use crate::node_files::{Held, key};
use crate::on_node::{HISTORY, HISTORY_DIR, INTENT, PROGRAM, STATE};
use crate::pods::OnPools;
use crate::write::{header, shell};

/// Where a pod sees the node's own files: in its own `/sys`, `/dev` and `/usr/bin` control groups,
/// device nodes and programs of the node are missing or older than the pod.
const HOST: &str = "/host";

/// What pods there are.
pub struct Pods<'a> {
    /// The prefix of node labels.
    pub prefix: &'a str,
    /// Pools with GPUs: other nodes have no runtime for them.
    pub pools: Vec<&'a str>,
    /// Where they are.
    pub namespace: &'a str,
    /// What the spec says of them.
    pub validator: &'a Validator,
    /// The RuntimeClass that gives them the driver's libraries.
    pub runtime_class: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DaemonSet<'a> {
    selector: Selector<'a>,
    update_strategy: UpdateStrategy,
    template: Template<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Selector<'a> {
    match_labels: IndexMap<&'a str, &'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdateStrategy {
    #[serde(rename = "type")]
    kind: &'static str,
    rolling_update: RollingUpdate,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RollingUpdate {
    max_unavailable: &'static str,
}

#[derive(Serialize)]
struct Template<'a> {
    metadata: Labels<'a>,
    spec: PodSpec<'a>,
}

#[derive(Serialize)]
struct Labels<'a> {
    labels: IndexMap<&'a str, &'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime_class_name: Option<&'static str>,
    service_account_name: &'static str,
    #[serde(rename = "hostPID")]
    host_pid: bool,
    termination_grace_period_seconds: u32,
    affinity: OnPools<'a>,
    tolerations: [Toleration; 1],
    containers: [Container<'a>; 1],
    volumes: [Volume<'a>; 5],
}

#[derive(Serialize)]
struct Toleration {
    operator: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Container<'a> {
    name: &'static str,
    image: &'a str,
    command: [&'static str; 2],
    args: [String; 1],
    env: [Env; 4],
    resources: Resources,
    security_context: SecurityContext,
    volume_mounts: [Mount; 5],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Env {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_from: Option<ValueFrom>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ValueFrom {
    field_ref: FieldRef,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FieldRef {
    field_path: &'static str,
}

#[derive(Serialize)]
struct Resources {
    requests: Amounts,
    limits: Memory,
}

#[derive(Serialize)]
struct Amounts {
    cpu: &'static str,
    memory: &'static str,
}

#[derive(Serialize)]
struct Memory {
    memory: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SecurityContext {
    privileged: bool,
    read_only_root_filesystem: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Mount {
    name: &'static str,
    mount_path: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    read_only: bool,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Volume<'a> {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    projected: Option<Projected<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    empty_dir: Option<EmptyDir>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_path: Option<HostPath>,
}

#[derive(Serialize)]
struct HostPath {
    path: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct EmptyDir {
    medium: &'static str,
}

#[derive(Serialize)]
struct Projected<'a> {
    sources: Vec<Source<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Source<'a> {
    config_map: ConfigMap<'a>,
}

#[derive(Serialize)]
struct ConfigMap<'a> {
    name: &'a str,
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    key: String,
    path: &'a str,
}

/// Writes it.
pub fn emit(
    tree: &mut OutputTree,
    cluster: &ClusterName,
    pods: &Pods<'_>,
    held: &[Held<'_>],
    head: &str,
    item: &ItemPath,
) {
    let labels = || IndexMap::from([("app.kubernetes.io/name", NAME)]);
    let object = Object {
        api_version: "apps/v1",
        kind: "DaemonSet",
        metadata: Metadata::within(pods.namespace, NAME),
        body: Spec {
            spec: DaemonSet {
                selector: Selector { match_labels: labels() },
                // Nothing depends on it being up at any moment.
                update_strategy: UpdateStrategy {
                    kind: "RollingUpdate",
                    rolling_update: RollingUpdate { max_unavailable: "10%" },
                },
                template: Template { metadata: Labels { labels: labels() }, spec: pod(pods, held) },
            },
        },
    };
    let head = header(&[head, &format!("Nodes judge themselves: condition {CONDITION}.")]);
    tree.add(object.path(cluster, Stage::Operator), object.file(&head, [item.clone()]));
}

fn pod<'a>(pods: &Pods<'a>, held: &'a [Held<'a>]) -> PodSpec<'a> {
    let sources = held.iter().map(|Held { name, files }| {
        let items = files.iter().map(|(path, _)| Item { key: key(path), path }).collect();
        Source { config_map: ConfigMap { name, items } }
    });
    PodSpec {
        runtime_class_name: pods.runtime_class,
        service_account_name: NAME,
        host_pid: true,
        termination_grace_period_seconds: 5,
        affinity: OnPools::new(pods.prefix, pods.pools.clone()),
        // A node with a taint is judged too: often it has it for its GPUs.
        tolerations: [Toleration { operator: "Exists" }],
        containers: [container(pods)],
        volumes: [
            Volume {
                name: "intent",
                projected: Some(Projected { sources: sources.collect() }),
                ..Volume::default()
            },
            Volume {
                name: "tmp",
                empty_dir: Some(EmptyDir { medium: "Memory" }),
                ..Volume::default()
            },
            // A probe that hangs in the kernel outlives the pod: the next one must know of it.
            Volume {
                name: "state",
                host_path: Some(HostPath { path: STATE, kind: "DirectoryOrCreate" }),
                ..Volume::default()
            },
            // Rows are remapped by a reset or a reboot: what was read before must outlive both.
            Volume {
                name: "history",
                host_path: Some(HostPath { path: HISTORY_DIR, kind: "DirectoryOrCreate" }),
                ..Volume::default()
            },
            Volume {
                name: "host",
                host_path: Some(HostPath { path: "/", kind: "Directory" }),
                ..Volume::default()
            },
        ],
    }
}

fn container<'a>(pods: &Pods<'a>) -> Container<'a> {
    let value = |name, value| Env { name, value: Some(value), value_from: None };
    let field = |name, field_path| Env {
        name,
        value: None,
        value_from: Some(ValueFrom { field_ref: FieldRef { field_path } }),
    };
    Container {
        name: NAME,
        image: &pods.validator.image,
        command: ["/bin/sh", "-c"],
        args: [script(pods.validator.interval.0)],
        env: [
            field("NODE_NAME", "spec.nodeName"),
            value("NVIDIA_VISIBLE_DEVICES", "all"),
            value("NVIDIA_DRIVER_CAPABILITIES", "utility"),
            value("NVIDIA_MIG_MONITOR_DEVICES", "all"),
        ],
        resources: Resources {
            requests: Amounts { cpu: "10m", memory: "64Mi" },
            limits: Memory { memory: "256Mi" },
        },
        security_context: SecurityContext { privileged: true, read_only_root_filesystem: true },
        volume_mounts: [
            Mount { name: "intent", mount_path: INTENT, read_only: true },
            Mount { name: "tmp", mount_path: "/tmp", read_only: false },
            Mount { name: "state", mount_path: STATE, read_only: false },
            Mount { name: "history", mount_path: HISTORY_DIR, read_only: false },
            Mount { name: "host", mount_path: HOST, read_only: true },
        ],
    }
}

/// What the container does for ever. The verdict is in the condition, so no exit code ends it; the
/// condition that the node had tells since when it holds.
fn script(interval: u64) -> String {
    let check = shell::command(
        PROGRAM,
        &[
            &["check", "--intent", INTENT, "--source", "nvml", "--root", HOST],
            &["--kubernetes-node", "node.json", "--history", HISTORY][..],
            &["--format", "k8s-condition"][..],
        ]
        .concat(),
    );
    let check = check.trim_end();
    format!(
        "trap 'exit 0' TERM\n\
         cd /tmp\n\
         while true; do\n\
         \x20 kubectl get node \"$NODE_NAME\" -o json > node.json || echo '{{}}' > node.json\n\
         \x20 {check} --previous node.json > patch.json || true\n\
         \x20 kubectl patch node \"$NODE_NAME\" --subresource=status --type=strategic \\\n\
         \x20   --patch-file patch.json > /dev/null || true\n\
         \x20 sleep {interval} &\n\
         \x20 wait $!\n\
         done\n"
    )
}
