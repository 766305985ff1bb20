//! Whether a node of Kubernetes takes pods, and whether any there has a GPU: from two files that kubectl
//! wrote. This program asks no API server.
//!
//! Source: Kubernetes API reference v1.34, Node and Pod: `spec.unschedulable`, `spec.nodeName`,
//! `status.phase`, `resources`, `spec.resourceClaims`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::input::{self, InputError};

/// How old the files may be, in seconds: a pod may have come since.
const MAX_AGE: u64 = 300;

/// Extended resources of GPUs.
const PREFIX: &str = "nvidia.com/";

#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
    #[serde(default)]
    spec: NodeSpec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
}

#[derive(Default, Deserialize)]
struct NodeSpec {
    #[serde(default)]
    unschedulable: bool,
}

#[derive(Deserialize)]
struct Pods {
    items: Vec<Pod>,
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    #[serde(default)]
    node_name: Option<String>,
    #[serde(default)]
    containers: Vec<Container>,
    #[serde(default)]
    init_containers: Vec<Container>,
    /// Of all containers together.
    #[serde(default)]
    resources: Resources,
    #[serde(default)]
    resource_claims: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct Container {
    #[serde(default)]
    resources: Resources,
}

#[derive(Default, Deserialize)]
struct Resources {
    #[serde(default)]
    limits: BTreeMap<String, IgnoredAny>,
    #[serde(default)]
    requests: BTreeMap<String, IgnoredAny>,
}

#[derive(Default, Deserialize)]
struct PodStatus {
    #[serde(default)]
    phase: String,
}

impl Resources {
    fn has_gpu(&self) -> bool {
        self.limits.keys().chain(self.requests.keys()).any(|name| name.starts_with(PREFIX))
    }
}

impl Pod {
    /// True if it has ended, and holds nothing any more.
    fn is_over(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    fn has_gpu(&self) -> bool {
        let PodSpec { containers, init_containers, resources, resource_claims, .. } = &self.spec;
        let mut each = containers.iter().chain(init_containers).map(|one| &one.resources);
        resources.has_gpu() || !resource_claims.is_empty() || each.any(Resources::has_gpu)
    }
}

/// Why the node may have work with GPUs, or get some; none if it is cordoned and has none.
pub(super) fn busy(node: &str, files: (&Path, &Path), now: Option<u64>) -> Option<String> {
    judge(node, files, now).unwrap_or_else(|error| Some(crate::cli::chain(&error)))
}

fn judge(
    node: &str,
    (node_file, pods_file): (&Path, &Path),
    now: Option<u64>,
) -> Result<Option<String>, InputError> {
    let seen: Node = read(node_file, now)?;
    if seen.metadata.name != node {
        let problem = format!("it is of node `{}`, not of `{node}`", seen.metadata.name);
        return Err(InputError::content(node_file, problem));
    }
    if !seen.spec.unschedulable {
        return Ok(Some(format!(
            "node {node} takes pods: kubectl drain {node} --ignore-daemonsets, then write the files anew"
        )));
    }
    let pods: Pods = read(pods_file, now)?;
    let here: Vec<&Pod> =
        pods.items.iter().filter(|pod| pod.spec.node_name.as_deref() == Some(node)).collect();
    // The pods of DaemonSets stay on a node that is drained. A list without any was asked for
    // another node.
    if here.is_empty() {
        let problem = format!(
            "it has no pod of node {node} at all: kubectl get pods -A -o json --field-selector \
             spec.nodeName={node}"
        );
        return Err(InputError::content(pods_file, problem));
    }
    let using = here.iter().find(|pod| !pod.is_over() && pod.has_gpu());
    Ok(using.map(|pod| {
        let Metadata { namespace, name } = &pod.metadata;
        format!("pod {namespace}/{name} has a GPU: kubectl drain {node} --ignore-daemonsets")
    }))
}

/// Reads a file that is new enough.
fn read<T: DeserializeOwned>(file: &Path, now: Option<u64>) -> Result<T, InputError> {
    let written = fs::metadata(file).and_then(|metadata| metadata.modified());
    let written = written.map_err(|source| InputError::read(file, source))?;
    let written = written.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs());
    match written.zip(now).map(|(written, now)| now.saturating_sub(written)) {
        Some(age) if age <= MAX_AGE => {}
        Some(age) => {
            let problem = format!("it is {age} s old, and may be {MAX_AGE} s: write it anew");
            return Err(InputError::content(file, problem));
        }
        None => return Err(InputError::content(file, "how old it is is not known")),
    }
    let bytes = input::contents(file)?;
    serde_json::from_slice(&bytes).map_err(|error| InputError::json(file, None, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::SystemTime;

    const DRIVER: &str = "kube-system/driver";

    fn pod(name: &str, phase: &str, spec: Value) -> Value {
        let (namespace, name) = name.split_once('/').unwrap();
        let mut spec = spec;
        spec["nodeName"] = json!("n1");
        json!({ "metadata": { "namespace": namespace, "name": name }, "spec": spec,
            "status": { "phase": phase } })
    }

    /// What is said of a node with its Node and its pods, read so long after they were written.
    fn said(node: &Value, pods: &[Value], after: u64) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let (node_file, pods_file) = (dir.path().join("node.json"), dir.path().join("pods.json"));
        fs::write(&node_file, node.to_string()).unwrap();
        fs::write(&pods_file, json!({ "items": pods }).to_string()).unwrap();
        let written = fs::metadata(&pods_file).unwrap().modified().unwrap();
        let written = written.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        busy("n1", (&node_file, &pods_file), Some(written + after))
    }

    fn cordoned() -> Value {
        json!({ "metadata": { "name": "n1" }, "spec": { "unschedulable": true } })
    }

    fn uses(what: Value) -> Value {
        json!({ "containers": [{ "name": "c", "resources": what }] })
    }

    #[test]
    fn a_cordoned_node_without_gpus_in_use_is_out_of_work() {
        let driver = pod(DRIVER, "Running", json!({ "containers": [{ "name": "c" }] }));
        let ended = pod("a/b", "Succeeded", uses(json!({ "limits": { "nvidia.com/gpu": "8" } })));
        let cpus = pod("a/c", "Running", uses(json!({ "requests": { "cpu": "8" } })));
        assert_eq!(said(&cordoned(), &[driver, ended, cpus], 0), None);
    }

    #[test]
    fn whoever_asks_for_a_gpu_keeps_the_node_at_work() {
        let mig = json!({ "limits": { "nvidia.com/mig-1g.10gb": 1 } });
        for (phase, spec) in [
            ("Running", uses(json!({ "limits": { "nvidia.com/gpu": "1" } }))),
            ("Running", uses(mig.clone())),
            ("Running", json!({ "containers": [], "initContainers": [{ "resources": mig }] })),
            ("Running", json!({ "containers": [], "resourceClaims": [{ "name": "gpu" }] })),
            // It has the node already, and starts any moment.
            ("Pending", uses(json!({ "requests": { "nvidia.com/gpu": 1 } }))),
            ("Unknown", uses(json!({ "requests": { "nvidia.com/gpu": 1 } }))),
        ] {
            let said = said(&cordoned(), &[pod("team/job", phase, spec.clone())], 0);
            let said = said.unwrap_or_default();
            assert!(said.starts_with("pod team/job has a GPU"), "{spec}: {said}");
        }
    }

    #[test]
    fn what_is_not_certain_keeps_the_node_at_work() {
        let driver = [pod(DRIVER, "Running", json!({ "containers": [] }))];
        let open = json!({ "metadata": { "name": "n1" }, "spec": {} });
        let other = json!({ "metadata": { "name": "n2" }, "spec": { "unschedulable": true } });
        for (node, pods, after, why) in [
            (&open, &driver[..], 0, "node n1 takes pods"),
            (&other, &driver, 0, "it is of node `n2`"),
            (&cordoned(), &[], 0, "no pod of node n1 at all"),
            (&cordoned(), &driver, 301, "it is 301 s old"),
            (&json!({}), &driver, 0, "missing field `metadata`"),
        ] {
            let said = said(node, pods, after).unwrap_or_default();
            assert!(said.contains(why), "{why}: {said}");
        }
        assert_eq!(said(&cordoned(), &driver, 300), None);
    }
}
