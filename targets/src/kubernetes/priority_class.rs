//! PriorityClasses: one a tier.
//!
//! A tier that gives way may be stopped by any above it. Kubernetes cannot say that of a pod: it stops
//! whatever is below the pod that waits, unless that pod's class says `preemptionPolicy: Never`. So a
//! class stops others only if every tier of the cluster below it gives way. Value and policy are fixed
//! once the object is there. `globalDefault` is not written: the API server keeps no `false`, so text
//! that has one would look changed for ever to whoever compares it with the cluster. Source: Kubernetes
//! documentation, "Pod Priority and Preemption".

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent, Tier};
use fleetc_schema::name::TierName;
use serde::Serialize;

use crate::manifest::{self, Metadata, Stage};
use crate::write::{header, yaml};
use crate::{OutputFile, OutputTree};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PriorityClass<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Metadata,
    value: u32,
    preemption_policy: &'a str,
    description: String,
}

/// Writes the priority classes of a cluster.
pub fn emit(intent: &Intent, cluster: &Cluster) -> OutputTree {
    let mut tree = OutputTree::default();
    for (name, tier) in intent.tiers_of(&cluster.name) {
        let object = PriorityClass {
            api_version: "scheduling.k8s.io/v1",
            kind: "PriorityClass",
            metadata: Metadata::of(name.as_str()),
            value: tier.priority,
            preemption_policy: match intent.protected_below(&cluster.name, tier).is_none() {
                true => "PreemptLowerPriority",
                false => "Never",
            },
            description: description(intent, cluster, name, tier),
        };
        let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
        let text = header(&[&head]) + &yaml::document(&object);
        let path =
            manifest::object(&cluster.name, Stage::Priorities, "PriorityClass", name.as_str());
        tree.add(path, OutputFile::one([ItemPath::item("tier", name)], text));
    }
    tree
}

fn description(intent: &Intent, cluster: &Cluster, name: &TierName, tier: &Tier) -> String {
    let fleet = &intent.fleet.name;
    let gives_way = if tier.preemptible { "Gives way" } else { "Is not to be stopped" };
    match intent.protected_below(&cluster.name, tier) {
        Some(below) => format!(
            "Tier {name} of fleet {fleet}. {gives_way}. Stops nobody: {below} is below it and is not to be stopped."
        ),
        None => format!("Tier {name} of fleet {fleet}. {gives_way}. Stops what is below it."),
    }
}
