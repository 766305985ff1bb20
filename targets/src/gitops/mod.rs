//! What applies the objects: a kustomization a stage and one for all of a cluster, and the
//! Application of Argo CD or the Kustomizations of Flux that read them.
//!
//! No target of its own but a pass over the finished tree, since it lists what all of them wrote.
//! Order under Argo CD is by waves, which are annotations; the kustomization of a stage puts them on,
//! so that no object knows what applies it. Flux has no waves: there each stage waits for the one
//! before it. Source: Argo CD documentation, "Sync Phases and Waves"; Flux documentation,
//! "Kustomization".

mod argocd;
mod flux;
mod kustomization;

use camino::Utf8Path;
use fleetc_schema::intent::{Cluster, GitOpsTool, GitSource, Intent, Kubernetes};

use crate::manifest::{self, Stage};
use crate::{OutputTree, Scope, kubernetes_clusters};

/// What the pass is called in reports, and what it writes.
pub const BUNDLES: (&str, &str) =
    ("gitops", "kustomization.yaml a stage, and the objects of Argo CD or Flux that apply them");

/// What a cluster applies: its stages in order, each with the files of its objects.
struct Bundle<'a> {
    intent: &'a Intent,
    cluster: &'a Cluster,
    kubernetes: &'a Kubernetes,
    stages: Vec<(Stage, Vec<String>)>,
}

impl Bundle<'_> {
    /// The item that says how it is applied.
    fn item(&self) -> fleetc_schema::ItemPath {
        let item = fleetc_schema::ItemPath::item("cluster", &self.cluster.name).child("kubernetes");
        match self.kubernetes.gitops {
            Some(_) => item.child("gitops"),
            None => item,
        }
    }

    /// The folder of the objects in the repository.
    fn folder(&self, source: &GitSource) -> String {
        let folder = manifest::folder(&self.cluster.name);
        match &source.path {
            Some(path) => format!("{}/{folder}", path.trim_end_matches('/')),
            None => folder,
        }
    }

    fn head(&self) -> String {
        format!("fleet {}, cluster {}", self.intent.fleet.name, self.cluster.name)
    }
}

/// Writes what applies the objects of a finished tree.
pub fn bundles(intent: &Intent, tree: &OutputTree) -> OutputTree {
    let mut added = OutputTree::default();
    for scope in kubernetes_clusters(intent) {
        let Scope::Kubernetes(intent, cluster, kubernetes) = scope else { continue };
        let stages = stages(cluster, tree);
        if stages.is_empty() {
            continue;
        }
        let bundle = Bundle { intent, cluster, kubernetes, stages };
        kustomization::emit(&mut added, &bundle);
        let Some(gitops) = &kubernetes.gitops else { continue };
        let Some(source) = &gitops.source else { continue };
        match gitops.tool {
            GitOpsTool::ArgoCd => argocd::emit(&mut added, &bundle, source),
            GitOpsTool::Flux => flux::emit(&mut added, &bundle, source),
        }
    }
    added
}

/// The objects of a tree by stage: `.yaml` files right in its folder.
fn stages(cluster: &Cluster, tree: &OutputTree) -> Vec<(Stage, Vec<String>)> {
    let files = tree.files();
    let stages = Stage::ALL.into_iter().filter(|stage| stage.is_applied());
    stages
        .filter_map(|stage| {
            let folder = manifest::path(&cluster.name, stage, "");
            let of_stage = |path: &Utf8Path| {
                let file = path.as_str().strip_prefix(&folder)?;
                (file.ends_with(".yaml") && !file.contains('/')).then(|| file.to_owned())
            };
            let objects: Vec<String> =
                files.iter().filter_map(|(path, _)| of_stage(path)).collect();
            (!objects.is_empty()).then_some((stage, objects))
        })
        .collect()
}
