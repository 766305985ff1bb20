//! Labels and taints of nodes: a NodeFeatureRule a class where node-feature-discovery is there to read it, and a
//! list to set by hand or in a node group where it is not or nodes have no names.
//!
//! The GPU Operator brings node-feature-discovery. A rule sets labels of any namespace but those of
//! Kubernetes; a label that a person set otherwise is overwritten. Source: node-feature-discovery
//! v0.19.0, "NodeFeatureRule custom resource" (taints are off unless its master is told) and feature `system.name`, whose `nodename` is the name
//! of the Node object.

use fleetc_schema::intent::{Class, Cluster, Intent, Kubernetes, Pool};
use fleetc_schema::topology::{PlaceLabel, Topology};
use fleetc_schema::{Hostlist, ItemPath};
use indexmap::IndexMap;
use serde::Serialize;

use crate::manifest::{self, Metadata, Stage};
use crate::write::{header, yaml};
use crate::{OutputFile, OutputTree};

/// Labels that agents of the node set themselves.
const PUBLISHED: &[&str] = &["nvidia.com/gpu.product"];
/// Patterns of one object: with names of 253 characters it stays below the 1.5 MiB of a request.
const PATTERNS: usize = 4_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeFeatureRule<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Metadata,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Spec<'a> {
    rules: Vec<Rule<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule<'a> {
    name: String,
    labels: IndexMap<String, &'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    taints: Vec<TaintOf<'a>>,
    match_features: [Matcher<'a>; 1],
}

#[derive(Serialize)]
struct TaintOf<'a> {
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    effect: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Matcher<'a> {
    feature: &'a str,
    match_expressions: IndexMap<&'a str, Expression<'a>>,
}

#[derive(Serialize)]
struct Expression<'a> {
    op: &'a str,
    value: &'a [String],
}

/// Writes the labels of a cluster's nodes.
pub fn emit(intent: &Intent, cluster: &Cluster, kubernetes: &Kubernetes) -> OutputTree {
    let mut tree = OutputTree::default();
    for class in intent.classes_of(&cluster.name) {
        let Some(pool) = intent.pools.get(&class.node.pool) else { continue };
        match is_ruled(kubernetes, pool) {
            true => rules(&mut tree, intent, cluster, class, pool),
            false => list(&mut tree, intent, cluster, class, pool),
        }
    }
    tree
}

fn labels(class: &Class) -> IndexMap<String, &str> {
    let all = class.node.advertised.labels.iter();
    all.filter(|(key, _)| !PUBLISHED.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.as_str()))
        .collect()
}

/// True if a rule can name the nodes of a class.
fn is_ruled(kubernetes: &Kubernetes, pool: &Pool) -> bool {
    kubernetes.gpu_operator.is_some() && pool.elastic.is_none()
}

fn items(class: &Class) -> Vec<ItemPath> {
    let pool = ItemPath::item("pool", &class.node.pool);
    let exceptions = class.node.paths.exceptions.iter().map(|source| source.path.clone());
    [pool.child("nodes")].into_iter().chain(exceptions).chain([pool]).collect()
}

fn rules(tree: &mut OutputTree, intent: &Intent, cluster: &Cluster, class: &Class, pool: &Pool) {
    let taints = pool.taints.iter().map(|taint| TaintOf {
        key: &taint.key,
        value: taint.value.as_deref(),
        effect: taint.effect.as_str(),
    });
    let patterns = patterns(&class.nodes);
    for (index, patterns) in patterns.chunks(PATTERNS).enumerate() {
        // A class may hold `_`, which the name of an object may not.
        let name = numbered(class.node.name.as_str().replace('_', "-"), index);
        let rule = Rule {
            name: class.node.name.to_string(),
            labels: labels(class),
            taints: taints.clone().collect(),
            match_features: [matcher(patterns)],
        };
        add(tree, intent, cluster, &name, items(class), vec![rule]);
    }
}

/// Patterns of node names. node-feature-discovery looks for a match anywhere in a name.
fn patterns(nodes: &Hostlist) -> Vec<String> {
    nodes.regexes().into_iter().map(|names| format!("^{names}$")).collect()
}

fn matcher(patterns: &[String]) -> Matcher<'_> {
    Matcher {
        feature: "system.name",
        match_expressions: IndexMap::from([(
            "nodename",
            Expression { op: "InRegexp", value: patterns },
        )]),
    }
}

/// The name of the object that holds one part of several.
fn numbered(name: String, index: usize) -> String {
    match index {
        0 => name,
        index => format!("{name}-{}", index + 1),
    }
}

fn add(
    tree: &mut OutputTree,
    intent: &Intent,
    cluster: &Cluster,
    name: &str,
    items: Vec<ItemPath>,
    rules: Vec<Rule<'_>>,
) {
    let object = NodeFeatureRule {
        api_version: "nfd.k8s-sigs.io/v1alpha1",
        kind: "NodeFeatureRule",
        metadata: Metadata::of(format!("fleetc-{name}")),
        spec: Spec { rules },
    };
    let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
    let text = header(&[&head]) + &yaml::document(&object);
    let path = manifest::object(&cluster.name, Stage::Nodes, "NodeFeatureRule", name);
    tree.add(path, OutputFile::one(items, text));
}

/// Places by which a queue keeps jobs together: one object a level, one rule a place.
pub fn emit_places(intent: &Intent, cluster: &Cluster, kubernetes: &Kubernetes) -> OutputTree {
    let mut tree = OutputTree::default();
    if kubernetes.queue.levels.is_empty() {
        return tree;
    }
    let classes = intent.classes_of(&cluster.name).filter(|class| {
        intent.pools.get(&class.node.pool).is_some_and(|pool| is_ruled(kubernetes, pool))
    });
    let ruled = classes.fold(Hostlist::default(), |all, class| all.union(&class.nodes));
    for PlaceLabel { level, key, places } in Topology::of(intent).place_labels(intent, cluster) {
        let item = ItemPath::item("cluster", &cluster.name)
            .child("kubernetes")
            .child("queue")
            .keyed("level", [level]);
        let ours = places.iter().map(|(place, nodes)| (place, nodes.intersection(&ruled)));
        let ours: Vec<_> = ours
            .filter(|(_, nodes)| !nodes.is_empty())
            .map(|(place, nodes)| (place, patterns(&nodes)))
            .collect();
        for (index, part) in parts(&ours).enumerate() {
            let rules = part.iter().map(|(place, patterns)| Rule {
                name: format!("{level} {place}"),
                labels: IndexMap::from([(key.clone(), place.as_str())]),
                taints: Vec::new(),
                match_features: [matcher(patterns)],
            });
            let name = numbered(format!("place-{level}"), index);
            add(&mut tree, intent, cluster, &name, vec![item.clone()], rules.collect());
        }
        let rest: String = places
            .iter()
            .map(|(place, nodes)| (place, nodes.difference(&ruled)))
            .filter(|(_, nodes)| !nodes.is_empty())
            .map(|(place, nodes)| format!("{nodes} {key}={place}\n"))
            .collect();
        if !rest.is_empty() {
            let fleet = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
            let why = "No rule can set these labels: set them with kubectl label, or when the nodes join.";
            let path =
                manifest::path(&cluster.name, Stage::Nodes, &format!("place-{level}.labels"));
            tree.add(path, OutputFile::one([item], header(&[&fleet, why]) + &rest));
        }
    }
    tree
}

/// Places in as few parts as hold so many patterns each.
fn parts<T>(places: &[(T, Vec<String>)]) -> impl Iterator<Item = &[(T, Vec<String>)]> {
    let mut left = places;
    std::iter::from_fn(move || {
        let mut patterns = 0;
        let fits = |(_, of): &&(T, Vec<String>)| {
            patterns += of.len();
            patterns <= PATTERNS
        };
        let count = left.iter().take_while(fits).count().max(1).min(left.len());
        let (part, rest) = left.split_at(count);
        left = rest;
        (!part.is_empty()).then_some(part)
    })
}

/// Files to be read by a person or a script: labels, and taints if there are any.
fn list(tree: &mut OutputTree, intent: &Intent, cluster: &Cluster, class: &Class, pool: &Pool) {
    let fleet = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
    let nodes = format!("kubectl label and kubectl taint on {}.", class.nodes);
    let why: &[&str] = match pool.elastic {
        Some(_) => &[
            &fleet,
            "Nodes of this class come and go, so no rule can name them: give these to their node group, or",
            "to kubelet with --node-labels and --register-with-taints. A node must have them when it joins.",
        ],
        None => &[
            &fleet,
            "No GPU Operator is declared, so nothing is known to read a NodeFeatureRule: set these with",
            &nodes,
        ],
    };
    let mut add = |ending: &str, lines: String| {
        let text = header(why) + &lines;
        let file = format!("{}.{ending}", class.node.name);
        let path = manifest::path(&cluster.name, Stage::Nodes, &file);
        tree.add(path, OutputFile::one(items(class), text));
    };
    let labels = labels(class);
    add("labels", labels.iter().map(|(key, value)| format!("{key}={value}\n")).collect());
    if !pool.taints.is_empty() {
        add("taints", pool.taints.iter().map(|taint| format!("{taint}\n")).collect());
    }
}
