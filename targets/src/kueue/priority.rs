//! WorkloadPriorityClass: one a tier, beside the PriorityClass of the same name.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent};
use serde::Serialize;

use super::{API, head};
use crate::OutputTree;
use crate::manifest::{Metadata, Object, Stage};

#[derive(Serialize)]
struct Priority {
    value: u32,
    description: &'static str,
}

/// Writes the priorities of a cluster.
pub fn emit(intent: &Intent, cluster: &Cluster, tree: &mut OutputTree) {
    for (name, tier) in intent.tiers_of(&cluster.name) {
        let object = Object {
            api_version: API,
            kind: "WorkloadPriorityClass",
            metadata: Metadata::of(name.as_str()),
            body: Priority {
                value: tier.priority,
                description: match tier.preemptible {
                    true => "Jobs may be stopped for others.",
                    false => "Jobs are not meant to be stopped for others.",
                },
            },
        };
        let head = head(intent, cluster, &format!(", tier {name}"));
        let path = object.path(&cluster.name, Stage::Queues);
        tree.add(path, object.file(&head, [ItemPath::item("tier", name)]));
    }
}
