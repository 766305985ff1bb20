//! The pods of a Kubernetes workload, and the names that objects of several targets share.

use fleetc_schema::Hostlist;
use fleetc_schema::intent::{
    Cluster, Devices, Intent, Kubernetes, Pool, Resource, Scheduler, TaintEffect, TopologyLevel,
    Workload,
};
use fleetc_schema::name::{ClusterName, PoolName, WorkloadName};
use fleetc_schema::topology::place_key;
use serde::Serialize;

use crate::manifest::{content_hash, shortened};

/// The longest name that Kueue takes in `deviceClassMappings`: it reads a class as the name part of a
/// label key. Source: kueue v0.19.2 `pkg/config/validation.go`.
const CLASS_LIMIT: usize = 63;

/// The class of IMEX channels that the DRA driver's chart brings. Source:
/// kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1, `deviceclass-compute-domain-default-channel.yaml`.
pub const CHANNEL_CLASS: &str = "compute-domain-default-channel.nvidia.com";

/// The node label by which nodes of one NVLink domain are told; GPU Feature Discovery sets it.
pub const CLIQUE_LABEL: &str = "nvidia.com/gpu.clique";

/// The label that every node has.
const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";

/// The queue of each team's namespace; jobs that name none go there.
pub const LOCAL_QUEUE: &str = "default";

/// The taint of GPU nodes that pods and daemons tolerate, as NVIDIA's charts do.
const GPU_TAINT: &str = "nvidia.com/gpu";

/// The taint of nodes whose hardware is not proven. Its controller takes keys of this domain only;
/// what must run before a node is proven tolerates it, and no workload.
pub const UNPROVEN_TAINT: &str = "readiness.k8s.io/gpu-unproven";

/// The affinity of pods that run on the nodes of some pools.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OnPools<'a> {
    node_affinity: NodeAffinity<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeAffinity<'a> {
    required_during_scheduling_ignored_during_execution: NodeSelector<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeSelector<'a> {
    node_selector_terms: [NodeSelectorTerm<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeSelectorTerm<'a> {
    match_expressions: [NodeSelectorRequirement<'a>; 1],
}

#[derive(Debug, Serialize)]
struct NodeSelectorRequirement<'a> {
    key: String,
    operator: &'static str,
    values: Vec<&'a str>,
}

impl<'a> OnPools<'a> {
    /// On these pools; the prefix is that of node labels.
    pub fn new(prefix: &str, pools: Vec<&'a str>) -> Self {
        let key = format!("{prefix}/pool");
        let pool = NodeSelectorRequirement { key, operator: "In", values: pools };
        let term = NodeSelectorTerm { match_expressions: [pool] };
        let required = NodeSelector { node_selector_terms: [term] };
        Self {
            node_affinity: NodeAffinity {
                required_during_scheduling_ignored_during_execution: required,
            },
        }
    }
}

/// True if nodes of a cluster have that taint.
pub fn has_unproven_nodes(kubernetes: &Kubernetes) -> bool {
    kubernetes.validator.as_ref().is_some_and(|validator| validator.readiness.is_some())
}

/// A toleration of pods.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Toleration {
    key: String,
    operator: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    effect: &'static str,
}

/// What pods of a pool tolerate: the taint of GPU nodes, whatever its value, and those of the pool.
pub fn tolerations(pool: &Pool) -> Vec<Toleration> {
    let gpus = Toleration {
        key: GPU_TAINT.to_owned(),
        operator: "Exists",
        value: None,
        effect: TaintEffect::NoSchedule.as_str(),
    };
    let mut tolerations = vec![gpus];
    for taint in &pool.taints {
        let covered = taint.key == GPU_TAINT && taint.effect == TaintEffect::NoSchedule;
        if !covered {
            tolerations.push(Toleration {
                key: taint.key.clone(),
                operator: if taint.value.is_some() { "Equal" } else { "Exists" },
                value: taint.value.clone(),
                effect: taint.effect.as_str(),
            });
        }
    }
    tolerations
}

/// The pods of one job, or of one replica of a service.
pub struct Pods<'a> {
    /// The workload's name.
    pub name: &'a WorkloadName,
    /// The workload.
    pub workload: &'a Workload,
    /// Its pool.
    pub pool: &'a Pool,
    /// What it asks for; none if it asks for no GPU.
    pub unit: Option<Resource>,
    /// How many pods.
    pub count: u32,
    /// Units of each.
    pub each: u32,
}

/// The pods of every workload of a cluster that says what it asks for.
pub fn of_cluster<'a>(intent: &'a Intent, cluster: &'a ClusterName) -> Vec<Pods<'a>> {
    let here = intent.workloads.iter().filter(|(_, workload)| workload.cluster == *cluster);
    here.filter_map(|(name, workload)| Pods::of(intent, name, workload)).collect()
}

impl<'a> Pods<'a> {
    /// Spreads a job over as few nodes as hold it, evenly.
    fn of(intent: &'a Intent, name: &'a WorkloadName, workload: &'a Workload) -> Option<Self> {
        let pool = intent.pools.get(&workload.pool)?;
        if workload.gpus == 0 {
            return Some(Self { name, workload, pool, unit: None, count: 1, each: 0 });
        }
        let unit = unit(intent, workload)?;
        let classes =
            intent.classes_of(&workload.cluster).filter(|class| class.node.pool == workload.pool);
        let most = classes.filter_map(|class| class.node.advertised.units.get(&unit)).max()?;
        let even =
            |count: &u32| workload.gpus.is_multiple_of(*count) && workload.gpus / count <= *most;
        let count = (1..=workload.gpus).find(even)?;
        let each = workload.gpus / count;
        Some(Self { name, workload, pool, unit: Some(unit), count, each })
    }

    /// True if the pods of a replica reach each other through NVLink and the domain must be made:
    /// several nodes of racks that are one NVLink domain, and a driver that makes domains.
    pub fn has_compute_domain(&self, intent: &Intent, kubernetes: &Kubernetes) -> bool {
        self.count > 1
            && kubernetes.dra_driver.is_some()
            && is_nvlink_domain(intent, &self.workload.cluster, self.pool)
    }

    /// True if its nodes must stand close together.
    pub fn is_contiguous(&self) -> bool {
        self.workload.gang.is_some_and(|gang| gang.contiguous)
    }

    /// The class of its devices, if DRA hands them out.
    pub fn device_class(&self, intent: &Intent) -> Option<String> {
        let unit = self.unit.as_ref().filter(|_| self.pool.devices == Devices::Dra)?;
        Some(device_class(intent, &self.workload.pool, unit))
    }

    /// The name of its ResourceClaimTemplate. A template cannot be changed, so other content is
    /// another name.
    pub fn claim_template(&self, intent: &Intent) -> Option<String> {
        let class = self.device_class(intent)?;
        Some(format!("{}-gpus-{}", self.name, content_hash(&(class, self.each))))
    }

    /// The name of the ResourceClaimTemplate that the DRA driver makes for its domain.
    pub fn channel_template(&self) -> String {
        format!("{}-channel", self.name)
    }
}

/// What a workload asks for: its slice, or what the pool hands out if that is one thing.
fn unit(intent: &Intent, workload: &Workload) -> Option<Resource> {
    if let Some(slice) = &workload.slice {
        return Some(Resource::Slice(slice.clone()));
    }
    let units = intent.capacity(&workload.pool, &workload.cluster);
    match units.into_keys().collect::<Vec<_>>().as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// True if every node of the part stands in a rack that is one NVLink domain.
pub fn is_nvlink_domain(intent: &Intent, cluster: &ClusterName, pool: &Pool) -> bool {
    let Some(nodes) = pool.parts.get(cluster) else { return false };
    let racks = intent.racks.values().filter(|rack| rack.product.is_some());
    let within = racks.fold(Hostlist::default(), |all, rack| all.union(&rack.nodes));
    !nodes.is_empty() && nodes.difference(&within).is_empty()
}

/// A level at which jobs of a pool are kept together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// What it is.
    pub level: TopologyLevel,
    /// The node label that carries it.
    pub label: String,
}

/// Levels at which jobs of a pool are kept together, the widest first; none if no job of it spans
/// nodes or no label tells its nodes apart. Kueue places no DRA devices in a topology.
///
/// They are the levels of the queue that every node of the pool has. Of a queue without levels, jobs
/// that ask for it are kept in an NVLink domain, whose label needs nobody to set it.
pub fn topology_levels(intent: &Intent, cluster: &Cluster, pool: &PoolName) -> Vec<Level> {
    let Scheduler::Kubernetes(kubernetes) = &cluster.scheduler else { return Vec::new() };
    let Some(item) = intent.pools.get(pool).filter(|pool| pool.devices == Devices::DevicePlugin)
    else {
        return Vec::new();
    };
    let stated = &kubernetes.queue.levels;
    let mut jobs =
        of_cluster(intent, &cluster.name).into_iter().filter(|p| p.workload.pool == *pool);
    let is_placed = match stated.is_empty() {
        true => jobs.any(|pods| pods.is_contiguous()),
        false => jobs.any(|pods| pods.count > 1 || pods.workload.gang.is_some()),
    };
    if !is_placed {
        return Vec::new();
    }
    let levels: Vec<Level> = match stated.is_empty() {
        true => [TopologyLevel::NvlinkDomain, TopologyLevel::Host]
            .into_iter()
            .filter(|level| has_level(intent, cluster, item, *level))
            .map(|level| Level { level, label: level_label(intent, level) })
            .collect(),
        false => stated
            .iter()
            .filter_map(|(level, said)| match &said.label {
                Some(label) => Some(Level { level: *level, label: label.clone() }),
                None if has_level(intent, cluster, item, *level) => {
                    Some(Level { level: *level, label: level_label(intent, *level) })
                }
                None => None,
            })
            .collect(),
    };
    // By nodes alone no job is kept together.
    match levels.iter().all(|level| level.level == TopologyLevel::Host) {
        true => Vec::new(),
        false => levels,
    }
}

/// The label of a level that nobody gave another: agents of the node set two of them, our rules the
/// rest.
fn level_label(intent: &Intent, level: TopologyLevel) -> String {
    let of_agents = match level {
        TopologyLevel::NvlinkDomain => CLIQUE_LABEL,
        TopologyLevel::Site | TopologyLevel::Leaf | TopologyLevel::Rack | TopologyLevel::Host => {
            HOSTNAME_LABEL
        }
    };
    place_key(intent, level).unwrap_or_else(|| of_agents.to_owned())
}

/// True if the level says something about every node of a pool in the cluster.
fn has_level(intent: &Intent, cluster: &Cluster, pool: &Pool, level: TopologyLevel) -> bool {
    let Some(nodes) = pool.parts.get(&cluster.name) else { return false };
    let racks = |at_site: bool| {
        let racks = intent.racks.values().filter(move |rack| !at_site || rack.site.is_some());
        racks.fold(Hostlist::default(), |all, rack| all.union(&rack.nodes))
    };
    let placed = match level {
        TopologyLevel::Host => return true,
        TopologyLevel::NvlinkDomain => return is_nvlink_domain(intent, &cluster.name, pool),
        TopologyLevel::Site => racks(true),
        TopologyLevel::Rack => racks(false),
        TopologyLevel::Leaf => {
            let attached = intent.fabrics.values().flat_map(|fabric| &fabric.attachments);
            attached.fold(Hostlist::default(), |all, attached| all.union(&attached.nodes))
        }
    };
    !nodes.is_empty() && nodes.difference(&placed).is_empty()
}

/// The name of the DeviceClass of one unit of a pool: `domain.fleetc.dev`.
pub fn device_class(intent: &Intent, pool: &PoolName, unit: &Resource) -> String {
    let prefix = &intent.fleet.label_prefix;
    shortened(format!("{}.{prefix}", part(pool, unit)), CLASS_LIMIT)
}

/// The resource under which Kueue counts one unit of a pool whose devices DRA hands out.
pub fn counted_resource(intent: &Intent, pool: &PoolName, unit: &Resource) -> String {
    format!("{}/{}", intent.fleet.label_prefix, shortened(part(pool, unit), CLASS_LIMIT))
}

/// The resource under which Kueue counts IMEX channels. No pool has a dot in its name.
pub fn channel_resource(intent: &Intent) -> String {
    format!("{}/imex.channel", intent.fleet.label_prefix)
}

fn part(pool: &PoolName, unit: &Resource) -> String {
    match unit {
        Resource::Gpu | Resource::Shared => pool.to_string(),
        Resource::Slice(profile) => format!("{pool}-{}", profile.to_string().replace('+', ".")),
    }
}

/// Pools of a cluster whose GPUs the DRA driver hands out.
pub fn dra_pools<'a>(
    intent: &'a Intent,
    cluster: &'a Cluster,
) -> impl Iterator<Item = (&'a PoolName, &'a Pool)> {
    let here = |(_, pool): &(&PoolName, &Pool)| {
        pool.devices == Devices::Dra && pool.parts.contains_key(&cluster.name)
    };
    intent.pools.iter().filter(here)
}
