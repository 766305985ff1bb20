//! `kustomization.yaml`: one a stage with its objects, one above them with the stages in order.
//!
//! Source: Kustomize documentation, "kustomization.yaml"; `sortOptions` is of Kustomize 5.0, which
//! kubectl has since 1.27.

use fleetc_schema::intent::{GitOps, GitOpsTool};
use indexmap::IndexMap;
use serde::Serialize;

use super::Bundle;
use crate::manifest::{self, Stage};
use crate::write::{header, yaml};
use crate::{OutputFile, OutputTree};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Kustomization<'a> {
    api_version: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort_options: Option<SortOptions<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<Labels<'a>>,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    common_annotations: IndexMap<&'a str, &'a str>,
    resources: Vec<&'a str>,
}

#[derive(Serialize)]
struct SortOptions<'a> {
    order: &'a str,
}

#[derive(Serialize)]
struct Labels<'a> {
    pairs: IndexMap<&'a str, &'a str>,
}

/// Writes the kustomizations of a cluster.
pub fn emit(tree: &mut OutputTree, bundle: &Bundle<'_>) {
    let cluster = &bundle.cluster.name;
    let whole = Kustomization {
        api_version: "kustomize.config.k8s.io/v1beta1",
        kind: "Kustomization",
        // As listed: the order by kinds would part what a stage holds together.
        sort_options: Some(SortOptions { order: "fifo" }),
        labels: Vec::new(),
        common_annotations: IndexMap::new(),
        resources: bundle.stages.iter().map(|(stage, _)| stage.folder()).collect(),
    };
    let path = format!("{}/kustomization.yaml", manifest::folder(cluster));
    add(tree, bundle, path, &whole);
    for (stage, objects) in &bundle.stages {
        let kustomization = Kustomization {
            sort_options: None,
            labels: vec![Labels {
                pairs: IndexMap::from([
                    ("app.kubernetes.io/managed-by", "fleetc"),
                    ("app.kubernetes.io/part-of", bundle.intent.fleet.name.as_str()),
                ]),
            }],
            common_annotations: annotations(*stage, bundle.kubernetes.gitops.as_ref()),
            resources: objects.iter().map(String::as_str).collect(),
            ..whole
        };
        add(tree, bundle, manifest::path(cluster, *stage, "kustomization.yaml"), &kustomization);
    }
}

fn add(tree: &mut OutputTree, bundle: &Bundle<'_>, path: String, document: &Kustomization<'_>) {
    let text = header(&[&bundle.head()]) + &yaml::document(document);
    tree.add(path, OutputFile::one([bundle.item()], text));
}

/// The wave, and for namespaces that they are never pruned: all that a team has would go with one.
fn annotations(stage: Stage, gitops: Option<&GitOps>) -> IndexMap<&'static str, &'static str> {
    let mut annotations = IndexMap::new();
    let kept = stage == Stage::Namespaces;
    match gitops.map(|gitops| gitops.tool) {
        Some(GitOpsTool::ArgoCd) => {
            annotations.insert("argocd.argoproj.io/sync-wave", stage.number());
            if kept {
                annotations.insert("argocd.argoproj.io/sync-options", "Prune=false,Delete=false");
            }
        }
        Some(GitOpsTool::Flux) if kept => {
            annotations.insert("kustomize.toolkit.fluxcd.io/prune", "disabled");
        }
        Some(GitOpsTool::Flux) | None => {}
    }
    annotations
}
