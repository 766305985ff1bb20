//! The bundle of a Kubernetes cluster as ConfigMaps, which the pods that validate nodes mount.
//!
//! All files are in one ConfigMap as long as they fit. A key holds no `/`, so the path of a file has dots
//! there: a volume that gives each key its path again shows the folder. The name stays when the content
//! changes: the kubelet swaps the mounted files, and the validator reads them anew at each run, so a
//! change of the fleet restarts nothing. Source: Kubernetes, "ConfigMaps" (at most 1 MiB; keys of
//! letters, digits, `-`, `_` and `.`; updates of mounted ConfigMaps).

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Class, Cluster, GpuOperator, Intent, Scheduler};
use indexmap::IndexMap;
use serde::Serialize;

use crate::manifest::{Metadata, Object, Stage};
use crate::write::header;
use crate::{OutputFile, OutputTree};

/// The name of the ConfigMap, and how the names of several begin.
const NAME: &str = "fleetc-intent";

/// The most bytes of files in one ConfigMap: what Kubernetes takes is 1 MiB, keys and all.
const MAX_BYTES: usize = 1000 << 10;

#[derive(Serialize)]
struct Data<'a> {
    data: IndexMap<String, &'a str>,
}

/// Writes the ConfigMaps into the namespace of the GPU Operator; without one there is no namespace that
/// is sure to be there, and the site puts the folder where it wants it.
pub fn emit(
    tree: &mut OutputTree,
    intent: &Intent,
    cluster: &Cluster,
    files: &[(String, OutputFile)],
) {
    let Some(operator) = operator(cluster) else { return };
    let texts: Vec<(&str, String)> =
        files.iter().map(|(path, file)| (path.as_str(), file.text())).collect();
    let fits = texts.iter().map(|(path, text)| path.len() + text.len()).sum::<usize>() <= MAX_BYTES;
    let parts: Vec<(String, &[(&str, String)])> = match fits {
        true => vec![(NAME.to_owned(), texts.as_slice())],
        false => texts.chunks(1).map(|one| (name_of(one), one)).collect(),
    };
    let fleet = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
    let head = header(&[
        fleet.as_str(),
        "What nodes need to validate themselves; a key is a path of clusters/*/intent, with dots.",
    ]);
    for (name, texts) in parts {
        let data = texts.iter().map(|(path, text)| (key(path), text.as_str())).collect();
        let object = Object {
            api_version: "v1",
            kind: "ConfigMap",
            metadata: Metadata::within(&operator.namespace, name),
            body: Data { data },
        };
        let items = [ItemPath::item("fleet", &intent.fleet.name)];
        tree.add(object.path(&cluster.name, Stage::Operator), object.file(&head, items));
    }
}

fn operator(cluster: &Cluster) -> Option<&GpuOperator> {
    match &cluster.scheduler {
        Scheduler::Kubernetes(kubernetes) => kubernetes.gpu_operator.as_ref(),
        Scheduler::Slurm(_) => None,
    }
}

/// `kubernetes/object-too-large`: the names of a cluster's nodes alone are more than a ConfigMap takes.
/// Everything else is dealt to as many objects as it needs: classes and overrides by file, rules of
/// Prometheus by group, NodeFeatureRules by number of patterns.
pub fn object_too_large(intent: &Intent, cluster: &Cluster, found: &mut Vec<Diagnostic>) {
    if operator(cluster).is_none() {
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

/// The key of a file. No two are alike: the first word says what the file is, and of a class that has
/// numbered files there is no class whose name goes on with a number.
fn key(path: &str) -> String {
    path.replace('/', ".")
}

fn name_of(texts: &[(&str, String)]) -> String {
    let path = texts.first().map_or("", |(path, _)| path);
    // Names of objects hold no `_`, which those of classes do.
    format!("{NAME}-{}", key(path).replace('_', "-"))
}
