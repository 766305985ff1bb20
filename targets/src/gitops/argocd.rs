//! Argo CD: one Application a cluster, for Argo CD's own cluster.
//!
//! It syncs when someone says so: a label of a node may start a change of its MIG layout, and who
//! merges has read the plan but not drained the nodes. Source: Argo CD v3.5.1, "Declarative Setup" and
//! "Sync Options".

use fleetc_schema::intent::GitSource;
use serde::Serialize;

use super::Bundle;
use crate::manifest::Metadata;
use crate::write::{header, yaml};
use crate::{OutputFile, OutputTree};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Application<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Metadata,
    spec: Spec<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    project: &'a str,
    source: Source<'a>,
    destination: Destination<'a>,
    sync_policy: SyncPolicy<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Source<'a> {
    #[serde(rename = "repoURL")]
    repo_url: &'a str,
    target_revision: &'a str,
    path: String,
}

#[derive(Serialize)]
struct Destination<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SyncPolicy<'a> {
    sync_options: [&'a str; 3],
}

/// Writes the Application of a cluster.
pub fn emit(tree: &mut OutputTree, bundle: &Bundle<'_>, source: &GitSource) {
    let name = format!("{}-{}", bundle.intent.fleet.name, bundle.cluster.name);
    let application = Application {
        api_version: "argoproj.io/v1alpha1",
        kind: "Application",
        metadata: Metadata::within("argocd", &name),
        spec: Spec {
            project: "default",
            source: Source {
                repo_url: &source.repo,
                target_revision: &source.branch,
                path: bundle.folder(source),
            },
            destination: Destination { name: bundle.cluster.name.as_str() },
            sync_policy: SyncPolicy {
                sync_options: [
                    "ServerSideApply=true",
                    // Objects of an operator may come before its CRDs: they wait for their wave.
                    "SkipDryRunOnMissingResource=true",
                    "PruneLast=true",
                ],
            },
        },
    };
    let lines = [
        bundle.head(),
        format!("For the cluster of Argo CD, which knows this one as {}.", bundle.cluster.name),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let text = header(&lines) + &yaml::document(&application);
    let path = format!("fleet/gitops/{}/application-{name}.yaml", bundle.cluster.name);
    tree.add(path, OutputFile::one([bundle.item()], text));
}
