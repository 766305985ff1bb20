//! The Intent as files: the whole of it, and for each cluster what its nodes need to judge
//! themselves.
//!
//! `fleet.json` is the whole Intent and its SHA-256 the digest of the fleet; `index.json` says which
//! class a node is of; `classes/<name>.json` says what such a node should be.

use std::borrow::Cow;

use fleetc_schema::Hostlist;
use fleetc_schema::ItemPath;
use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{
    CLASS_SCHEMA, Class, ClassDocument, INDEX_SCHEMA, INTENT_SCHEMA, Index, Intent, IntentDocument,
};
use fleetc_schema::plan::{Change, Effect};
use indexmap::IndexMap;

use crate::write::json;
use crate::{OutputFile, OutputTree, Scope, Target, clusters};

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

    fn check(&self, _: &Scope<'_>, _: &mut Vec<Diagnostic>) {}

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let intent = scope.intent();
        let folder = match scope.cluster() {
            None => "fleet/intent".to_owned(),
            Some(cluster) => format!("clusters/{}/intent", cluster.name),
        };
        let here = |class: &&Class| match scope.cluster() {
            None => true,
            Some(cluster) => class.node.cluster == cluster.name,
        };
        let classes: Vec<&Class> = intent.classes.values().filter(here).collect();
        let mut tree = OutputTree::default();
        let fleet = ItemPath::item("fleet", &intent.fleet.name);
        if scope.cluster().is_none() {
            let document = IntentDocument {
                schema: Cow::Borrowed(INTENT_SCHEMA),
                intent: Cow::Borrowed(intent),
            };
            let file = OutputFile::one([fleet.clone()], json::pretty(&document));
            tree.add(format!("{folder}/fleet.json"), file);
        }
        let file = OutputFile::one([fleet], json::pretty(&index(intent, &classes)));
        tree.add(format!("{folder}/index.json"), file);
        for class in classes {
            let document = ClassDocument {
                schema: Cow::Borrowed(CLASS_SCHEMA),
                class: Cow::Borrowed(&class.node),
            };
            let pool = ItemPath::item("pool", &class.node.pool);
            let file = OutputFile::one([pool], json::pretty(&document));
            tree.add(format!("{folder}/classes/{}.json", class.node.name), file);
        }
        tree
    }

    fn disruption(&self, _: &Change, _: Option<&Scope<'_>>, _: Option<&Scope<'_>>) -> Effect {
        // Nodes read the Intent anew at each run; nothing restarts for it, whatever changed.
        Effect::none()
    }
}

/// Which class each node is of, and its rack; racks of other clusters' nodes are left out.
fn index(intent: &Intent, classes: &[&Class]) -> Index {
    let nodes = classes.iter().fold(Hostlist::default(), |all, class| all.union(&class.nodes));
    let racks = intent.racks.iter().map(|(name, rack)| (name, rack.nodes.intersection(&nodes)));
    Index {
        schema: INDEX_SCHEMA.to_owned(),
        fleet: intent.fleet.name.clone(),
        classes: classes
            .iter()
            .map(|class| (class.node.name.clone(), class.nodes.clone()))
            .collect::<IndexMap<_, _>>(),
        racks: racks
            .filter(|(_, nodes)| !nodes.is_empty())
            .map(|(name, nodes)| (name.clone(), nodes))
            .collect(),
    }
}
