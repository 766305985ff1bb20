//! Namespaces: one a team, and that of the GPU Operator.
//!
//! Namespaces that Kubernetes has itself (`default`, `kube-…`) are not ours to own. The operator's pods
//! are privileged. Source: NVIDIA GPU Operator documentation, "Installing the NVIDIA GPU Operator": the
//! namespace is labelled for Pod Security admission.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent, Kubernetes};
use indexmap::IndexMap;
use serde::Serialize;

use crate::manifest::{self, Metadata, Stage};
use crate::write::{header, yaml};
use crate::{OutputFile, OutputTree};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Namespace<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Metadata,
}

/// What a namespace is, and whose.
#[derive(Default)]
struct Owned {
    labels: IndexMap<String, String>,
    items: Vec<ItemPath>,
}

/// Writes the namespaces of a cluster.
pub fn emit(intent: &Intent, cluster: &Cluster, kubernetes: &Kubernetes) -> OutputTree {
    let mut owned: IndexMap<&str, Owned> = IndexMap::new();
    let label = format!("{}/team", intent.fleet.label_prefix);
    for (name, team) in &intent.teams {
        if is_of_kubernetes(team.namespace.as_str()) {
            continue;
        }
        let namespace = owned.entry(team.namespace.as_str()).or_default();
        // Two teams in one namespace are a finding; the label is the first one's.
        namespace.labels.entry(label.clone()).or_insert_with(|| name.to_string());
        namespace.items.push(ItemPath::item("team", name));
    }
    if let Some(operator) = &kubernetes.gpu_operator
        && !is_of_kubernetes(operator.namespace.as_str())
    {
        let namespace = owned.entry(operator.namespace.as_str()).or_default();
        let enforce = "pod-security.kubernetes.io/enforce".to_owned();
        namespace.labels.insert(enforce, "privileged".to_owned());
        let item = ItemPath::item("cluster", &cluster.name).child("kubernetes");
        namespace.items.push(item.child("gpu-operator"));
    }
    let mut tree = OutputTree::default();
    for (name, Owned { labels, items }) in owned {
        let metadata = Metadata { labels, ..Metadata::of(name) };
        let object = Namespace { api_version: "v1", kind: "Namespace", metadata };
        let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
        let text = header(&[&head]) + &yaml::document(&object);
        let path = manifest::object(&cluster.name, Stage::Namespaces, "Namespace", name);
        tree.add(path, OutputFile::one(items, text));
    }
    tree
}

/// Source: Kubernetes documentation, "Namespaces": the prefix `kube-` is reserved.
fn is_of_kubernetes(namespace: &str) -> bool {
    namespace == "default" || namespace.starts_with("kube-")
}
