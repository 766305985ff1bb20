//! Where nodes are, in words that a node label can hold.

use indexmap::IndexMap;

use super::Topology;
use crate::Hostlist;
use crate::intent::{Cluster, Intent, QueueKind, Scheduler, TopologyLevel};
use crate::name::{ClusterName, FabricName};

/// The longest value of a node label. Source: Kubernetes, "Labels and Selectors".
const LABEL_LIMIT: usize = 63;

/// A level whose label tells where nodes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceLabel {
    /// The level.
    pub level: TopologyLevel,
    /// The key of its label.
    pub key: String,
    /// Its values, each with the nodes that have it.
    pub places: IndexMap<String, Hostlist>,
}

/// The key of the label of a level that is ours; none for those that agents of the node name.
pub fn place_key(intent: &Intent, level: TopologyLevel) -> Option<String> {
    match level {
        TopologyLevel::Site | TopologyLevel::Leaf | TopologyLevel::Rack => {
            Some(format!("{}/{level}", intent.fleet.label_prefix))
        }
        TopologyLevel::NvlinkDomain | TopologyLevel::Host => None,
    }
}

impl Topology {
    /// Labels of ours by which the queue of a cluster keeps jobs together. Kueue reads them; of the
    /// other queues nothing is written.
    pub fn place_labels(&self, intent: &Intent, cluster: &Cluster) -> Vec<PlaceLabel> {
        let Scheduler::Kubernetes(kubernetes) = &cluster.scheduler else { return Vec::new() };
        match kubernetes.queue.kind {
            QueueKind::Kueue => {}
            QueueKind::Kai | QueueKind::Volcano | QueueKind::None => return Vec::new(),
        }
        let ours = kubernetes.queue.levels.iter().filter(|(_, said)| said.label.is_none());
        ours.filter_map(|(level, _)| {
            let places = self.places(intent, &cluster.name, *level);
            Some(PlaceLabel { level: *level, key: place_key(intent, *level)?, places })
        })
        .collect()
    }

    /// The nodes of a cluster by the place that a level names: sites, racks, or leaf switches of the
    /// best fabric that has them. Empty for levels that agents of the node name themselves.
    fn places(
        &self,
        intent: &Intent,
        cluster: &ClusterName,
        level: TopologyLevel,
    ) -> IndexMap<String, Hostlist> {
        let mut places: IndexMap<String, Hostlist> = IndexMap::new();
        // The same name in two fabrics is two switches.
        let mut fabric_of: IndexMap<String, &FabricName> = IndexMap::new();
        for standing in self.standings().filter(|s| s.group.cluster == *cluster) {
            let place = match level {
                TopologyLevel::Site => standing.site.map(ToString::to_string),
                TopologyLevel::Rack => standing.rack.map(ToString::to_string),
                TopologyLevel::Leaf => {
                    let gain = |(fabric, _): &&(&FabricName, usize)| {
                        intent.fabrics.get(*fabric).map(|fabric| fabric.kind)
                    };
                    standing.leaves.iter().min_by_key(gain).and_then(|(fabric, at)| {
                        let switch = self.fabric(fabric)?.switches.get(*at)?;
                        let name = switch.names.as_word(LABEL_LIMIT);
                        let first = *fabric_of.entry(name.clone()).or_insert(*fabric);
                        Some(match first == *fabric {
                            true => name,
                            false => name_in(fabric, &switch.names),
                        })
                    })
                }
                TopologyLevel::NvlinkDomain | TopologyLevel::Host => None,
            };
            if let Some(place) = place {
                let nodes = places.entry(place).or_default();
                *nodes = nodes.union(&standing.group.nodes);
            }
        }
        places
    }
}

/// The name of a switch where another fabric has one of that name.
fn name_in(fabric: &FabricName, switches: &Hostlist) -> String {
    let room = LABEL_LIMIT.saturating_sub(fabric.as_str().len() + 1);
    format!("{}.{fabric}", switches.as_word(room))
}
