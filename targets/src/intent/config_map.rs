//! The bundle of a Kubernetes cluster as ConfigMaps, which the pods that validate nodes mount.
//!
//! All files are in one ConfigMap as long as they fit. A key holds no `/`, so the path of a file has dots
//! there: a volume that gives each key its path again shows the folder. The name stays when the content
//! changes: the kubelet swaps the mounted files, and the validator reads them anew at each run, so a
//! change of the fleet restarts nothing. Source: Kubernetes, "ConfigMaps" (at most 1 MiB; keys of
//! letters, digits, `-`, `_` and `.`; updates of mounted ConfigMaps).

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Class, Cluster, Intent, Scheduler};
use indexmap::IndexMap;
use serde::Serialize;

use crate::manifest::{Metadata, Object, Stage};
use crate::node_files::{Held, key};
use crate::write::header;
use crate::{OutputFile, OutputTree, node_files};

#[derive(Serialize)]
struct Data<'a> {
    data: IndexMap<String, &'a str>,
}

/// Writes the ConfigMaps, where there is a namespace for them; else the site puts the folder where it
/// wants it.
pub fn emit(
    tree: &mut OutputTree,
    intent: &Intent,
    cluster: &Cluster,
    files: &[(String, OutputFile)],
) {
    let Some(namespace) = namespace(cluster) else { return };
    let fleet = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
    let head = header(&[
        fleet.as_str(),
        "What nodes need to validate themselves; a key is a path of clusters/*/intent, with dots.",
    ]);
    for Held { name, files } in node_files::config_maps(files) {
        let data = files.iter().map(|(path, text)| (key(path), text.as_str())).collect();
        let object = Object {
            api_version: "v1",
            kind: "ConfigMap",
            metadata: Metadata::within(namespace, name),
            body: Data { data },
        };
        let items = [ItemPath::item("fleet", &intent.fleet.name)];
        tree.add(object.path(&cluster.name, Stage::Operator), object.file(&head, items));
    }
}

fn namespace(cluster: &Cluster) -> Option<&str> {
    match &cluster.scheduler {
        Scheduler::Kubernetes(kubernetes) => node_files::namespace(kubernetes),
        Scheduler::Slurm(_) => None,
    }
}

/// `kubernetes/object-too-large`: the names of a cluster's nodes alone are more than a ConfigMap takes.
/// Everything else is dealt to as many objects as it needs: classes and overrides by file, rules of
/// Prometheus by group, NodeFeatureRules by number of patterns.
pub fn object_too_large(intent: &Intent, cluster: &Cluster, found: &mut Vec<Diagnostic>) {
    if namespace(cluster).is_none() {
        return;
    }
    let names = |class: &Class| class.nodes.to_string().len();
    let classes = || intent.classes_of(&cluster.name);
    let bytes: usize = classes().map(names).sum();
    let largest = classes().max_by_key(|class| names(class));
    let Some(largest) = largest.filter(|_| bytes > LIMIT) else { return };
    let title = format!(
        "the names of the nodes of cluster `{}` take {} KiB, and a ConfigMap holds {}",
        cluster.name,
        bytes >> 10,
        LIMIT >> 10
    );
    let pool = ItemPath::item("pool", &largest.node.pool);
    let ranges = format!("{} ranges of names", largest.nodes.ranges().count());
    let kubernetes = ItemPath::item("cluster", &cluster.name).child("kubernetes");
    found.push(
        Diagnostic::new(&rules::KUBERNETES_OBJECT_TOO_LARGE, title)
            .at(pool.child("nodes"), ranges)
            .at(kubernetes, "has them in one ConfigMap")
            .note("names that differ in their last number alone are one range; a number before it makes a range for each of its values")
            .help("give the nodes names that count in one number, or split the pool over two clusters"),
    );
}

/// The most bytes that a ConfigMap holds.
const LIMIT: usize = 1 << 20;
