//! The Intent as files: the whole of it, and for each cluster what its nodes need to judge
//! themselves.
//!
//! `fleet.json` is the whole Intent and its SHA-256 the digest of the fleet; `index.json` says which
//! class a node is of, where it stands, and what the hashes of the other files are;
//! `classes/<name>.json` says what such a node should be, and `overrides/<name>.jsonl` what is known of
//! single nodes of the class.
//!
//! What a cluster gets has no digest of the whole fleet: a change of one cluster would touch all others.

mod config_map;

use std::borrow::Cow;

use fleetc_schema::ItemPath;
use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{Class, INTENT_SCHEMA, Intent, IntentDocument};
use fleetc_schema::plan::{Change, Effect};

use crate::write::json;
use crate::{OutputFile, OutputTree, Scope, Target, clusters, node_files};

/// The Intent as files.
pub struct IntentFiles;

impl Target for IntentFiles {
    fn id(&self) -> &'static str {
        "intent"
    }

    fn summary(&self) -> &'static str {
        "the Intent: fleet.json, and what nodes need to validate themselves"
    }

    fn versions(&self) -> String {
        "fleetc-validate of the same release".to_owned()
    }

    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>> {
        std::iter::once(Scope::Fleet(intent)).chain(clusters(intent)).collect()
    }

    fn check(&self, scope: &Scope<'_>, found: &mut Vec<Diagnostic>) {
        if let Some(cluster) = scope.cluster() {
            config_map::object_too_large(scope.intent(), cluster, found);
        }
    }

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let intent = scope.intent();
        let mut tree = OutputTree::default();
        let (folder, classes): (String, Vec<&Class>) = match scope.cluster() {
            None => ("fleet/intent".to_owned(), intent.classes.values().collect()),
            Some(cluster) => (
                format!("clusters/{}/intent", cluster.name),
                intent.classes_of(&cluster.name).collect(),
            ),
        };
        let files = node_files::files(intent, &classes);
        match scope.cluster() {
            Some(cluster) => config_map::emit(&mut tree, intent, cluster, &files),
            None => {
                let document = IntentDocument {
                    schema: Cow::Borrowed(INTENT_SCHEMA),
                    intent: Cow::Borrowed(intent),
                };
                let fleet = ItemPath::item("fleet", &intent.fleet.name);
                let file = OutputFile::one([fleet], json::pretty(&document));
                tree.add(format!("{folder}/fleet.json"), file);
            }
        }
        for (name, file) in files {
            tree.add(format!("{folder}/{name}"), file);
        }
        tree
    }

    fn disruption(&self, _: &Change, _: Option<&Scope<'_>>, _: Option<&Scope<'_>>) -> Effect {
        // Nodes read the Intent anew at each run; nothing restarts for it, whatever changed.
        Effect::none()
    }
}
