//! ResourceFlavor: one a pool, by our node label; and Topology, where jobs must stand close together.
//!
//! Jobs that Kueue admits to a pool tolerate its taints, so only they need be told of them.
//! A job that names no topology is refused on a flavor that has one, so a flavor has one only if a
//! workload of the pool asks for it. Kueue lets neither be changed, so their names hold their content.
//! Kueue places no DRA devices in a topology. Source: kueue v0.19.2,
//! `pkg/scheduler/flavorassigner/tas_flavorassigner.go` and `keps/2941-DRA`.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent};
use fleetc_schema::name::PoolName;
use indexmap::IndexMap;
use serde::Serialize;

use super::{API, head};
use crate::OutputTree;
use crate::manifest::{Metadata, Object, Spec, Stage, content_hash};
use crate::pods::{self, Toleration};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceFlavor {
    node_labels: IndexMap<String, String>,
    tolerations: Vec<Toleration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topology_name: Option<String>,
}

#[derive(Serialize)]
struct Topology {
    levels: Vec<Level>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Level {
    node_label: String,
}

/// Writes the flavors of a cluster, and their topologies.
pub fn emit(intent: &Intent, cluster: &Cluster, tree: &mut OutputTree) {
    for (pool, _) in intent.pools.iter().filter(|(_, p)| p.parts.contains_key(&cluster.name)) {
        if intent.capacity(pool, &cluster.name).is_empty() {
            continue;
        }
        let head = head(intent, cluster, &format!(", pool {pool}"));
        let item = || [ItemPath::item("pool", pool)];
        let levels = pods::topology_levels(intent, cluster, pool);
        if !levels.is_empty() {
            let topology = Object {
                api_version: API,
                kind: "Topology",
                metadata: Metadata::of(topology_name(pool, &levels)),
                body: Spec { spec: topology(&levels) },
            };
            let path = topology.path(&cluster.name, Stage::Queues);
            tree.add(path, topology.file(&head, item()));
        }
        let flavor = Object {
            api_version: API,
            kind: "ResourceFlavor",
            metadata: Metadata::of(name(intent, cluster, pool)),
            body: Spec { spec: flavor(intent, cluster, pool) },
        };
        tree.add(flavor.path(&cluster.name, Stage::Queues), flavor.file(&head, item()));
    }
}

/// The name of a pool's flavor.
pub fn name(intent: &Intent, cluster: &Cluster, pool: &PoolName) -> String {
    let flavor = flavor(intent, cluster, pool);
    match flavor.topology_name {
        None => pool.to_string(),
        Some(_) => format!("{pool}-{}", content_hash(&flavor)),
    }
}

fn flavor(intent: &Intent, cluster: &Cluster, pool: &PoolName) -> ResourceFlavor {
    let label = format!("{}/pool", intent.fleet.label_prefix);
    let levels = pods::topology_levels(intent, cluster, pool);
    let item = intent.pools.get(pool);
    ResourceFlavor {
        node_labels: IndexMap::from([(label, pool.to_string())]),
        tolerations: item.map(pods::tolerations).unwrap_or_default(),
        topology_name: (!levels.is_empty()).then(|| topology_name(pool, &levels)),
    }
}

fn topology(levels: &[pods::Level]) -> Topology {
    let label = |level: &pods::Level| Level { node_label: level.label.clone() };
    Topology { levels: levels.iter().map(label).collect() }
}

fn topology_name(pool: &PoolName, levels: &[pods::Level]) -> String {
    format!("{pool}-{}", content_hash(&topology(levels)))
}
