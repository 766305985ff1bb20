//! The account of the DaemonSet, and what it may do: read nodes, and change their status.
//!
//! Nodes are of the whole cluster, so no Role of a namespace is enough. Source: Kubernetes
//! documentation, "Using RBAC Authorization", "Referring to resources": a subresource is `nodes/status`.
//! `kubectl patch --subresource=status` reads it before it patches.

use fleetc_schema::ItemPath;
use fleetc_schema::name::ClusterName;
use serde::Serialize;

use super::NAME;
use crate::OutputTree;
use crate::manifest::{Metadata, Object, Stage};
use crate::write::header;

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Rules {
    rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    api_groups: [&'static str; 1],
    resources: [&'static str; 1],
    verbs: &'static [&'static str],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding<'a> {
    role_ref: RoleRef,
    subjects: [Subject<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RoleRef {
    api_group: &'static str,
    kind: &'static str,
    name: &'static str,
}

#[derive(Serialize)]
struct Subject<'a> {
    kind: &'static str,
    name: &'static str,
    namespace: &'a str,
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// Writes them.
pub fn emit(
    tree: &mut OutputTree,
    cluster: &ClusterName,
    namespace: &str,
    head: &str,
    item: &ItemPath,
) {
    let head = header(&[head]);
    let account = Object {
        api_version: "v1",
        kind: "ServiceAccount",
        metadata: Metadata::within(namespace, NAME),
        body: Nothing {},
    };
    tree.add(account.path(cluster, Stage::Operator), account.file(&head, [item.clone()]));
    let rule = |resource, verbs| Rule { api_groups: [""], resources: [resource], verbs };
    let role = Object {
        api_version: RBAC,
        kind: "ClusterRole",
        metadata: Metadata::of(NAME),
        body: Rules {
            rules: vec![rule("nodes", &["get"]), rule("nodes/status", &["get", "patch"])],
        },
    };
    tree.add(role.path(cluster, Stage::Operator), role.file(&head, [item.clone()]));
    let binding = Object {
        api_version: RBAC,
        kind: "ClusterRoleBinding",
        metadata: Metadata::of(NAME),
        body: Binding {
            role_ref: RoleRef {
                api_group: "rbac.authorization.k8s.io",
                kind: "ClusterRole",
                name: NAME,
            },
            subjects: [Subject { kind: "ServiceAccount", name: NAME, namespace }],
        },
    };
    tree.add(binding.path(cluster, Stage::Operator), binding.file(&head, [item.clone()]));
}
