//! A NodeReadinessRule a pool, where the spec asks for it: its controller keeps a taint on nodes whose
//! condition does not say that they conform.
//!
//! One rule a pool, since the selector of a rule cannot change and pools come and go; selectors of rules
//! with one taint must not overlap. Source: kubernetes-sigs/node-readiness-controller v0.5.0, its CRD and
//! `internal/webhook`, 2026-08-16.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Readiness, TaintEffect};
use fleetc_schema::name::ClusterName;
use indexmap::IndexMap;
use serde::Serialize;

use super::daemon_set::Pods;
use super::{CONDITION, NAME};
use crate::OutputTree;
use crate::manifest::{Metadata, Object, Spec, Stage};
use crate::pods::UNPROVEN_TAINT;
use crate::write::header;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeReadinessRule<'a> {
    conditions: [Condition; 1],
    enforcement_mode: &'static str,
    node_selector: Selector<'a>,
    taint: Taint,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: &'static str,
    required_status: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Selector<'a> {
    match_labels: IndexMap<String, &'a str>,
}

#[derive(Serialize)]
struct Taint {
    key: &'static str,
    effect: &'static str,
}

/// Writes them.
pub fn emit(
    tree: &mut OutputTree,
    cluster: &ClusterName,
    pods: &Pods<'_>,
    mode: Readiness,
    head: &str,
    item: &ItemPath,
) {
    let head = header(&[
        head,
        "Its mode, nodes and taint cannot be changed: to change one, delete the rule first.",
    ]);
    for pool in &pods.pools {
        let rule = NodeReadinessRule {
            conditions: [Condition { kind: CONDITION, required_status: "True" }],
            enforcement_mode: mode.as_str(),
            node_selector: Selector {
                match_labels: IndexMap::from([(format!("{}/pool", pods.prefix), *pool)]),
            },
            taint: Taint { key: UNPROVEN_TAINT, effect: TaintEffect::NoSchedule.as_str() },
        };
        let object = Object {
            api_version: "readiness.node.x-k8s.io/v1alpha1",
            kind: "NodeReadinessRule",
            metadata: Metadata::of(format!("{NAME}.{pool}")),
            body: Spec { spec: rule },
        };
        let items = [item.clone(), ItemPath::item("pool", pool)];
        tree.add(object.path(cluster, Stage::Nodes), object.file(&head, items));
    }
}
