//! Cohort: the tree of teams. The one of the whole cluster has what nobody is guaranteed; that of a
//! team with teams within it has the most that all of them may borrow.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent};
use fleetc_schema::name::TeamName;
use serde::Serialize;

use super::cluster_queue::{self, FairSharing};
use super::flavors::{Group, ResourceGroup, items, quotas};
use super::share::Shares;
use super::{API, head};
use crate::OutputTree;
use crate::manifest::{Metadata, Object, Spec, Stage};
use crate::write::header;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cohort {
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_name: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_groups: Vec<ResourceGroup>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fair_sharing: Option<FairSharing>,
}

/// The name of the Cohort of the whole cluster. No team has a dot in its name.
pub fn root(intent: &Intent) -> String {
    format!("fleet.{}", intent.fleet.name)
}

/// The Cohort that a team, or the queue of a team, stands in.
pub fn around(intent: &Intent, parent: Option<&TeamName>) -> String {
    parent.map_or_else(|| root(intent), ToString::to_string)
}

/// Writes the Cohorts of a cluster.
pub fn emit(
    intent: &Intent,
    cluster: &Cluster,
    groups: &[Group<'_>],
    shares: &Shares<'_>,
    tree: &mut OutputTree,
) {
    let idle = quotas(groups, false, |flavor, unit| shares.idle(flavor.pool, unit), |_| 0);
    let whole = Object {
        api_version: API,
        kind: "Cohort",
        metadata: Metadata::of(root(intent)),
        body: Spec {
            spec: Cohort { parent_name: None, resource_groups: idle, fair_sharing: None },
        },
    };
    let head_of_root = head(intent, cluster, ": the Cohort of all teams.")
        + &header(&["Its quotas are what no team is guaranteed; every team may borrow of them."]);
    let path = whole.path(&cluster.name, Stage::Queues);
    let cause = [ItemPath::item("cluster", &cluster.name).child("kubernetes").child("queue")];
    tree.add(path, whole.file(&head_of_root, cause.into_iter().chain(items(groups))));
    for (name, team) in intent.teams.iter().filter(|(name, _)| shares.is_parent(name)) {
        let cohort =
            |flavor: &super::flavors::Flavor<'_>, unit: &_| shares.cohort(name, flavor.pool, unit);
        // What has no limit is not named: then it may borrow what is idle.
        let limits = quotas(groups, false, cohort, |_| 0);
        let object = Object {
            api_version: API,
            kind: "Cohort",
            metadata: Metadata::of(name.as_str()),
            body: Spec {
                spec: Cohort {
                    parent_name: Some(around(intent, team.parent.as_ref())),
                    resource_groups: limits,
                    fair_sharing: cluster_queue::fair_sharing(intent, team.weight),
                },
            },
        };
        let head = head(intent, cluster, &format!(", team {name} with the teams within it"));
        let path = object.path(&cluster.name, Stage::Queues);
        tree.add(path, object.file(&head, cluster_queue::causes(cluster, name, team)));
    }
}
