//! ResourceQuota: one a team, on what no queue counts.
//!
//! Source: Kubernetes documentation, "Resource Quotas": a quota on an extended resource has the
//! prefix `requests.`; without it nothing is counted.
//!
//! A ResourceQuota is a cap and nothing else. Without a queue nothing takes back what was borrowed,
//! so a guarantee is kept only if every team is capped at its own: the cap is the stated limit, else
//! the guarantee. A team without a quota on a governed resource is capped at 0. A resource that an
//! open pool of the cluster hands out too is not capped, since a cap knows no pools.
//!
//! With Kueue it is the queue of a team that guarantees, lends and takes back. A cap beside it would
//! forbid what the queue lends, so what the queue covers is not capped.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Devices, Intent, Kubernetes, Quota, Team};
use fleetc_schema::name::{PoolName, TeamName};
use indexmap::IndexMap;
use serde::Serialize;

use crate::kueue;
use crate::manifest::{self, Metadata, Stage};
use crate::write::{header, yaml};
use crate::{OutputFile, OutputTree};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceQuota<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Serialize)]
struct Spec {
    hard: IndexMap<String, String>,
}

/// Name of the object in each team's namespace.
const NAME: &str = "fleetc-gpus";

/// Writes the quotas of a cluster.
pub fn emit(intent: &Intent, cluster: &Cluster, kubernetes: &Kubernetes) -> OutputTree {
    let mut tree = OutputTree::default();
    let governed = governed(intent, cluster);
    if governed.is_empty() {
        return tree;
    }
    let queued = kueue::covered(intent, cluster, kubernetes);
    for (name, team) in &intent.teams {
        let queued = queued.get(name).map_or(&[][..], Vec::as_slice);
        let hard: IndexMap<String, String> = governed
            .iter()
            .filter(|resource| !queued.contains(resource))
            .map(|resource| {
                let cap = cap(intent, team, cluster, resource);
                (format!("requests.{resource}"), cap.to_string())
            })
            .collect();
        if hard.is_empty() {
            continue;
        }
        let document = ResourceQuota {
            api_version: "v1",
            kind: "ResourceQuota",
            metadata: Metadata::within(team.namespace.as_str(), NAME),
            spec: Spec { hard },
        };
        let head = format!("fleet {}, cluster {}, team {name}", intent.fleet.name, cluster.name);
        let text = header(&[&head]) + &yaml::document(&document);
        let path = manifest::object(&cluster.name, Stage::Quotas, "ResourceQuota", name.as_str());
        tree.add(path, OutputFile::one(items(name, team, cluster), text));
    }
    tree
}

/// Extended resources that only governed pools of the cluster hand out, in the order of pools.
fn governed(intent: &Intent, cluster: &Cluster) -> Vec<String> {
    let all = holders(intent, cluster).into_iter();
    all.filter(|(_, holders)| holders.open.is_empty()).map(|(resource, _)| resource).collect()
}

/// The pools of a cluster that hand out one extended resource.
#[derive(Default)]
pub struct Holders<'a> {
    /// Those on which teams have quotas.
    pub governed: Vec<&'a PoolName>,
    /// Those that every team may use.
    pub open: Vec<&'a PoolName>,
}

/// Every extended resource of a cluster with the pools that hand it out, in the order of pools.
pub fn holders<'a>(intent: &'a Intent, cluster: &Cluster) -> IndexMap<String, Holders<'a>> {
    let mut all: IndexMap<String, Holders<'_>> = IndexMap::new();
    for (name, pool) in &intent.pools {
        // GPUs that DRA hands out are no extended resource.
        if !pool.parts.contains_key(&cluster.name) || pool.devices == Devices::Dra {
            continue;
        }
        let is_governed = intent.is_governed(name, &cluster.name);
        for resource in intent.capacity(name, &cluster.name).keys() {
            let holders = all.entry(pool.sharing.kubernetes_resource(resource)).or_default();
            let pools = if is_governed { &mut holders.governed } else { &mut holders.open };
            if !pools.contains(&name) {
                pools.push(name);
            }
        }
    }
    all
}

/// The cap of a team on a resource: its limits, else its guarantees, on all pools that hand it out.
pub fn cap(intent: &Intent, team: &Team, cluster: &Cluster, resource: &str) -> u64 {
    let of = |quota: &&Quota| {
        let pool = intent.pools.get(&quota.pool);
        let carries = pool.map(|pool| pool.sharing.kubernetes_resource(&quota.resource));
        let plugin = pool.is_some_and(|pool| pool.devices == Devices::DevicePlugin);
        plugin && quota.cluster == cluster.name && carries.as_deref() == Some(resource)
    };
    team.quotas
        .iter()
        .filter(of)
        .map(|quota| u64::from(quota.limit.unwrap_or(quota.guaranteed)))
        .sum()
}

fn items(name: &TeamName, team: &Team, cluster: &Cluster) -> Vec<ItemPath> {
    let here = team.quotas.iter().filter(|quota| quota.cluster == cluster.name);
    here.map(|quota| quota.path.clone()).chain([ItemPath::item("team", name)]).collect()
}
