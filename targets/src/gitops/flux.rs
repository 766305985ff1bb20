//! Flux: the repository and one Kustomization a stage, each after the one before it, for the cluster
//! itself.
//!
//! Source: fluxcd/source-controller `docs/spec/v1/gitrepositories.md` and fluxcd/kustomize-controller
//! v1.9.4 `docs/spec/v1/kustomizations.md`.

use fleetc_schema::intent::GitSource;
use serde::Serialize;

use super::Bundle;
use crate::manifest::Metadata;
use crate::write::{header, yaml};
use crate::{OutputFile, OutputTree};

/// Where Flux looks for its objects.
const NAMESPACE: &str = "flux-system";
/// How often it looks: a required field, at the value of Flux's own examples.
const INTERVAL: &str = "10m";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Object<'a, S> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Metadata,
    spec: S,
}

#[derive(Serialize)]
struct GitRepository<'a> {
    interval: &'a str,
    url: &'a str,
    #[serde(rename = "ref")]
    reference: Branch<'a>,
}

#[derive(Serialize)]
struct Branch<'a> {
    branch: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Kustomization<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    depends_on: Option<[Reference<'a>; 1]>,
    interval: &'a str,
    source_ref: SourceReference<'a>,
    path: String,
    prune: bool,
    wait: bool,
}

#[derive(Serialize)]
struct Reference<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct SourceReference<'a> {
    kind: &'a str,
    name: &'a str,
}

/// Writes the objects of Flux for a cluster.
pub fn emit(tree: &mut OutputTree, bundle: &Bundle<'_>, source: &GitSource) {
    let fleet = bundle.intent.fleet.name.as_str();
    let repository = Object {
        api_version: "source.toolkit.fluxcd.io/v1",
        kind: "GitRepository",
        metadata: Metadata::within(NAMESPACE, fleet),
        spec: GitRepository {
            interval: INTERVAL,
            url: &source.repo,
            reference: Branch { branch: &source.branch },
        },
    };
    add(tree, bundle, &format!("gitrepository-{fleet}"), &yaml::document(&repository));
    let mut before: Option<String> = None;
    for (stage, _) in &bundle.stages {
        let name = format!("{fleet}-{}", stage.folder());
        let kustomization = Object {
            api_version: "kustomize.toolkit.fluxcd.io/v1",
            kind: "Kustomization",
            metadata: Metadata::within(NAMESPACE, &name),
            spec: Kustomization {
                depends_on: before.as_deref().map(|name| [Reference { name }]),
                interval: INTERVAL,
                source_ref: SourceReference { kind: "GitRepository", name: fleet },
                path: format!("./{}/{}", bundle.folder(source), stage.folder()),
                prune: true,
                wait: true,
            },
        };
        add(tree, bundle, &format!("kustomization-{name}"), &yaml::document(&kustomization));
        before = Some(name);
    }
}

fn add(tree: &mut OutputTree, bundle: &Bundle<'_>, file: &str, document: &str) {
    let path = format!("fleet/gitops/{}/{file}.yaml", bundle.cluster.name);
    let text = header(&[&bundle.head()]) + document;
    tree.add(path, OutputFile::one([bundle.item()], text));
}
