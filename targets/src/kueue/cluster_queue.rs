//! ClusterQueue: one for each team that may use anything in the cluster.
//!
//! What a team borrows it gives back: a queue that is owed its guarantee stops jobs that borrow, the
//! least urgent first. Within a queue jobs are stopped for others only if a tier of the fleet says
//! that its jobs may be.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent, Team};
use fleetc_schema::name::TeamName;
use indexmap::IndexMap;
use serde::Serialize;

use super::cohort::around;
use super::flavors::{Flavor, Group, ResourceGroup, quotas};
use super::share::Shares;
use super::{API, head, stops_jobs};
use crate::OutputTree;
use crate::manifest::{Metadata, Object, Spec, Stage};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterQueue {
    cohort_name: String,
    namespace_selector: NamespaceSelector,
    queueing_strategy: &'static str,
    resource_groups: Vec<ResourceGroup>,
    preemption: Preemption,
    #[serde(skip_serializing_if = "Option::is_none")]
    fair_sharing: Option<FairSharing>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NamespaceSelector {
    match_labels: IndexMap<&'static str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Preemption {
    reclaim_within_cohort: &'static str,
    within_cluster_queue: &'static str,
}

/// `fairSharing` of a queue or Cohort.
#[derive(Serialize)]
pub struct FairSharing {
    weight: String,
}

/// The share of a team among its neighbours, where any team states one.
pub fn fair_sharing(intent: &Intent, weight: Option<u32>) -> Option<FairSharing> {
    // Kueue's default, written out so that applying it twice changes nothing.
    let weight = weight.unwrap_or(1).to_string();
    shares_fairly(intent).then_some(FairSharing { weight })
}

/// True if any team states a weight.
pub fn shares_fairly(intent: &Intent) -> bool {
    intent.teams.values().any(|team| team.weight.is_some())
}

/// What a team's queue covers; empty if it may use nothing here.
pub fn covered(groups: &[Group<'_>], shares: &Shares<'_>, team: &TeamName) -> Vec<ResourceGroup> {
    let share = |flavor: &Flavor<'_>, unit: &_| shares.queue(team, flavor.pool, unit);
    let channels = |flavor: &Flavor<'_>| flavor.channels.as_ref().map_or(0, |(_, count)| *count);
    quotas(groups, true, share, channels)
}

/// Writes the queues of a cluster.
pub fn emit(
    intent: &Intent,
    cluster: &Cluster,
    groups: &[Group<'_>],
    shares: &Shares<'_>,
    tree: &mut OutputTree,
) {
    for (name, team) in &intent.teams {
        let resource_groups = covered(groups, shares, name);
        if resource_groups.is_empty() {
            continue;
        }
        let is_parent = shares.is_parent(name);
        let (parent, weight) = match is_parent {
            // The team's weight stands at its Cohort.
            true => (Some(name), None),
            false => (team.parent.as_ref(), team.weight),
        };
        let namespace = ("kubernetes.io/metadata.name", team.namespace.to_string());
        let object = Object {
            api_version: API,
            kind: "ClusterQueue",
            metadata: Metadata::of(name.as_str()),
            body: Spec {
                spec: ClusterQueue {
                    cohort_name: around(intent, parent),
                    namespace_selector: NamespaceSelector {
                        match_labels: IndexMap::from([namespace]),
                    },
                    queueing_strategy: "BestEffortFIFO",
                    resource_groups,
                    preemption: Preemption {
                        reclaim_within_cohort: "Any",
                        within_cluster_queue: match stops_jobs(intent) {
                            true => "LowerPriority",
                            false => "Never",
                        },
                    },
                    fair_sharing: fair_sharing(intent, weight),
                },
            },
        };
        let what = match is_parent {
            true => format!(", team {name}: what the teams within it leave"),
            false => format!(", team {name}"),
        };
        let path = object.path(&cluster.name, Stage::Queues);
        let file = object.file(&head(intent, cluster, &what), causes(cluster, name, team));
        tree.add(path, file);
    }
}

/// Items behind the objects of a team: its quotas here, then the team.
pub fn causes(cluster: &Cluster, name: &TeamName, team: &Team) -> Vec<ItemPath> {
    let here = team.quotas.iter().filter(|quota| quota.cluster == cluster.name);
    here.map(|quota| quota.path.clone()).chain([ItemPath::item("team", name)]).collect()
}
