//! LocalQueue: the door to a team's queue, in its namespace.
//!
//! It is called `default`: Kueue sends jobs there that name no queue (since 0.12), so none runs beside
//! the quotas and none is held for want of a label. Its ClusterQueue cannot be changed, and is always
//! the team's. Source: kueue v0.19.2 `pkg/controller/jobframework/defaults.go`.

use fleetc_schema::intent::{Cluster, Intent};
use serde::Serialize;

use super::cluster_queue::{causes, covered};
use super::flavors::Group;
use super::share::Shares;
use super::{API, head};
use crate::OutputTree;
use crate::manifest::{Metadata, Object, Spec, Stage};
use crate::pods::LOCAL_QUEUE;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LocalQueue {
    cluster_queue: String,
}

/// Writes the local queues of a cluster.
pub fn emit(
    intent: &Intent,
    cluster: &Cluster,
    groups: &[Group<'_>],
    shares: &Shares<'_>,
    tree: &mut OutputTree,
) {
    for (name, team) in &intent.teams {
        if covered(groups, shares, name).is_empty() {
            continue;
        }
        let object = Object {
            api_version: API,
            kind: "LocalQueue",
            metadata: Metadata::within(&team.namespace, LOCAL_QUEUE),
            body: Spec { spec: LocalQueue { cluster_queue: name.to_string() } },
        };
        let head = head(intent, cluster, &format!(", team {name}"));
        let path = object.path_as(&cluster.name, Stage::Queues, name.as_str());
        tree.add(path, object.file(&head, causes(cluster, name, team)));
    }
}
