//! Templates of workloads as their owners run them, and pods that ask for what a node has.

use serde_json::{Value, json};

use super::Failure;
use super::objects::{set, text};

/// What an owner puts in for the placeholders.
const IMAGE: &str = "registry.example/owner/program:1";
const COMMAND: &str = "/program";

/// A template as its owner runs it: one job, or one replica of a service.
pub struct Run {
    /// The object to create.
    pub object: Value,
    /// How many pods it makes.
    pub pods: u64,
}

/// The template of the pods within a template of a workload.
pub fn pod(template: &Value) -> Option<&Value> {
    let group = "/spec/leaderWorkerTemplate/workerTemplate";
    template.pointer("/spec/template").or_else(|| template.pointer(group))
}

/// The template as it comes to be stored. The webhook of LeaderWorkerSets is not here: it fills in how they
/// roll out, which Kueue's webhook leaves empty on its way.
pub fn with_defaults(template: &Value) -> Result<Value, Failure> {
    let mut template = template.clone();
    if text(&template, "/kind") == "LeaderWorkerSet" {
        set(&mut template, "/spec", "rolloutStrategy", json!({ "type": "RollingUpdate" }))?;
    }
    Ok(template)
}

/// The template with an image and a command.
pub fn filled(template: &Value) -> Result<Value, Failure> {
    let mut filled = template.clone();
    let group = "/spec/leaderWorkerTemplate/workerTemplate";
    let at = if template.pointer(group).is_some() { group } else { "/spec/template" };
    let containers = filled.pointer_mut(&format!("{at}/spec/containers"));
    let containers =
        containers.and_then(Value::as_array_mut).ok_or("a template has no containers")?;
    for container in containers {
        set(container, "", "image", json!(IMAGE))?;
        set(container, "", "command", json!([COMMAND]))?;
    }
    Ok(filled)
}

/// One job or replica of a template.
pub fn run(template: &Value) -> Result<Run, Failure> {
    let mut object = filled(template)?;
    match text(template, "/kind") {
        "Job" => {
            let pods = object.pointer("/spec/parallelism").and_then(Value::as_u64);
            let pods = pods.ok_or("a Job states no parallelism")?;
            Ok(Run { object, pods })
        }
        "Deployment" => {
            set(&mut object, "/spec", "replicas", json!(1))?;
            Ok(Run { object, pods: 1 })
        }
        // The controller of LeaderWorkerSets is the site's: what it makes of one group is pods that know
        // their group.
        "LeaderWorkerSet" => {
            let pods = object.pointer("/spec/leaderWorkerTemplate/size").and_then(Value::as_u64);
            let pods = pods.ok_or("a LeaderWorkerSet states no size")?;
            Ok(Run { object: job(template, text(template, "/metadata/name"), pods)?, pods })
        }
        kind => Err(format!("nobody runs a template of kind {kind}").into()),
    }
}

/// A Job of so many pods of a template, whatever its kind.
pub fn job(template: &Value, name: &str, pods: u64) -> Result<Value, Failure> {
    Ok(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": metadata(template, name),
        "spec": {
            "completionMode": "Indexed", "completions": pods, "parallelism": pods,
            "template": pods_that_end(template)?,
        },
    }))
}

/// A Workload of Kueue of so many pods of a template, as Kueue makes one of a job: it reserves quota, and
/// nothing runs.
pub fn reservation(template: &Value, name: &str, pods: u64) -> Result<Value, Failure> {
    Ok(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": { "name": name, "namespace": text(template, "/metadata/namespace") },
        "spec": {
            "queueName": text(template, "/metadata/labels/kueue.x-k8s.io~1queue-name"),
            "podSets": [{ "name": "main", "count": pods, "template": pods_that_end(template)? }],
        },
    }))
}

fn metadata(template: &Value, name: &str) -> Value {
    json!({
        "name": name, "namespace": text(template, "/metadata/namespace"),
        "labels": template.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({})),
    })
}

fn pods_that_end(template: &Value) -> Result<Value, Failure> {
    let filled = filled(template)?;
    let mut pods = pod(&filled).ok_or("a template has no pods")?.clone();
    set(&mut pods, "/spec", "restartPolicy", json!("Never"))?;
    if text(template, "/kind") == "LeaderWorkerSet" {
        let name = text(template, "/metadata/name");
        set(&mut pods, "/metadata/labels", "leaderworkerset.sigs.k8s.io/name", json!(name))?;
        set(&mut pods, "/metadata/labels", "leaderworkerset.sigs.k8s.io/group-index", json!("0"))?;
    }
    Ok(pods)
}

/// What a probe asks for.
pub enum Ask<'a> {
    /// So many of an extended resource.
    Resource(&'a str, u64),
    /// The claim of a template.
    Claim(&'a str),
}

/// A pod of nobody's that runs on nodes with a label, whatever their taints.
pub fn probe(namespace: &str, name: &str, (label, value): (&str, &str), ask: &Ask<'_>) -> Value {
    let (resources, claims) = match ask {
        Ask::Resource(resource, count) => {
            (json!({ "limits": { *resource: count.to_string() } }), json!([]))
        }
        Ask::Claim(template) => (
            json!({ "claims": [{ "name": "devices" }] }),
            json!([{ "name": "devices", "resourceClaimTemplateName": template }]),
        ),
    };
    let container =
        json!({ "name": "main", "image": IMAGE, "command": [COMMAND], "resources": resources });
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "restartPolicy": "Never", "nodeSelector": { label: value },
            "tolerations": [{ "operator": "Exists" }],
            "containers": [container], "resourceClaims": claims,
        },
    })
}

/// A template of claims for so many devices of a class.
pub fn claim_template(namespace: &str, name: &str, class: &str, count: u64) -> Value {
    let request = json!({
        "name": "devices",
        "exactly": { "deviceClassName": class, "allocationMode": "ExactCount", "count": count },
    });
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "spec": { "devices": { "requests": [request] } } },
    })
}
