//! The Intent: the lowered fleet, and the narrow waist of the compiler.
//!
//! Invariant: it carries no spans and no numeric ids. Items refer to each other by typed names that
//! were proved to exist; maps are in the author's order; every value is filled in, so an `Option`
//! means truly absent. It holds no floats.

mod class;
mod cluster;
mod documents;
mod monitoring;
mod node_check;
mod policy;
mod pool;
mod team;
mod tier;
mod topology;

pub use class::{
    Advertised, Class, ClassPaths, DraDevice, ExceptionSource, GpuInstance, GpuModel, GpuSlot,
    Gres, Host, HostCpu, HostPorts, MemoryRange, NodeClass, Services,
};
pub use cluster::{
    AutoDetect, Cluster, Distribution, Driver, DriverOwner, GitOps, GitOpsTool, GitSource,
    GpuOperator, HealthCheck, Kubernetes, LevelLabel, Partition, PowerSaving, Preempt, PreemptBy,
    PreemptMode, Queue, QueueKind, Readiness, Scheduler, Slurm, SlurmTopology, TopologyLevel,
    TopologyPlugin, Validator,
};
pub use documents::{
    CLASS_SCHEMA, ClassDocument, INDEX_SCHEMA, INTENT_SCHEMA, Index, IntentDocument, REPORT_SCHEMA,
    SourceLine, overrides_file, overrides_number,
};
pub use monitoring::{
    AlertChange, AlertClass, AlertKind, AlertSeverity, Exporter, ExporterKind, Monitoring,
    Receiver, Route, RouteTarget, StandardAlert,
};
pub use node_check::NodeCheck;
pub use policy::{CheckLevel, HugePageSize, NodePolicy, WantedHugePages, WantedMount};
pub use pool::{
    Capacity, CapacityModel, Devices, ElasticPlacement, Exception, GpuIndexes, MigLayout,
    MigStrategy, Override, Pool, Shared, Sharing, Slice, Taint, TaintEffect,
};
pub use team::{
    Checkpoint, Contact, Dtype, Gang, HostDemand, Isolation, Model, Parallel, Quota, Replicas,
    Resource, Slo, Team, Workload, WorkloadKind,
};
pub use tier::Tier;
pub use topology::{Attachment, Fabric, FabricKind, Rack, RackDomain, Site, SwitchGroup};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::name::{
    ClassName, ClusterName, FabricName, FleetName, PolicyName, PoolName, RackName, SiteName,
    TeamName, TierName, WorkloadName,
};
use crate::units::Date;

/// Implements a closed set of words: its text form, reader and serde.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every word, in the order of the documentation.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The value of a word, if it is one.
            pub fn of(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
use words;

/// The whole fleet, lowered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Intent {
    /// The fleet itself.
    pub fleet: Fleet,
    /// Clusters.
    pub clusters: IndexMap<ClusterName, Cluster>,
    /// Sites.
    pub sites: IndexMap<SiteName, Site>,
    /// Network fabrics.
    pub fabrics: IndexMap<FabricName, Fabric>,
    /// Racks.
    pub racks: IndexMap<RackName, Rack>,
    /// Pools.
    pub pools: IndexMap<PoolName, Pool>,
    /// Node classes, computed from pools, clusters and exceptions.
    pub classes: IndexMap<ClassName, Class>,
    /// Node policies.
    pub policies: IndexMap<PolicyName, NodePolicy>,
    /// Tiers.
    pub tiers: IndexMap<TierName, Tier>,
    /// Teams, a parent before its children.
    pub teams: IndexMap<TeamName, Team>,
    /// Workloads.
    pub workloads: IndexMap<WorkloadName, Workload>,
    /// Monitoring, if the fleet has any.
    pub monitoring: Option<Monitoring>,
}

/// The fleet's own settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// Its name.
    pub name: FleetName,
    /// The date that dates of the spec are compared with.
    pub as_of: Option<Date>,
    /// Prefix of our node labels, `fleetc.dev` unless the spec says otherwise.
    pub label_prefix: String,
}

impl Intent {
    /// The classes of one cluster, in order.
    pub fn classes_of<'a>(&'a self, cluster: &'a ClusterName) -> impl Iterator<Item = &'a Class> {
        self.classes.values().filter(move |class| class.node.cluster == *cluster)
    }

    /// The classes of one pool, whoever owns them, in order.
    pub fn classes_of_pool<'a>(&'a self, pool: &'a PoolName) -> impl Iterator<Item = &'a Class> {
        self.classes.values().filter(move |class| class.node.pool == *pool)
    }

    /// What a pool hands out in one cluster: each resource with how many there are.
    pub fn capacity(&self, pool: &PoolName, cluster: &ClusterName) -> IndexMap<Resource, u64> {
        let mut capacity = IndexMap::new();
        for class in self.classes_of(cluster).filter(|class| class.node.pool == *pool) {
            for (resource, count) in &class.node.advertised.units {
                let all = class.nodes.len().saturating_mul(u64::from(*count));
                *capacity.entry(resource.clone()).or_insert(0) += all;
            }
        }
        capacity
    }

    /// The tiers that a Kubernetes cluster offers: those whose workloads are not all elsewhere.
    pub fn tiers_of<'a>(
        &'a self,
        cluster: &'a ClusterName,
    ) -> impl Iterator<Item = (&'a TierName, &'a Tier)> {
        self.tiers.iter().filter(move |(name, _)| {
            let mut named =
                self.workloads.values().filter(|workload| workload.tier.as_ref() == Some(name));
            let first = named.next();
            first.is_none_or(|first| {
                first.cluster == *cluster || named.any(|workload| workload.cluster == *cluster)
            })
        })
    }

    /// The lowest tier of a Kubernetes cluster that is below this one and does not give way: then
    /// nothing of this tier may stop what is below it, since Kubernetes would stop that tier too.
    pub fn protected_below<'a>(
        &'a self,
        cluster: &'a ClusterName,
        tier: &Tier,
    ) -> Option<&'a TierName> {
        let protected = |other: &Tier| other.priority < tier.priority && !other.preemptible;
        let below = self.tiers_of(cluster).filter(|(_, other)| protected(other));
        below.min_by_key(|(_, other)| other.priority).map(|(name, _)| name)
    }

    /// True if any team has a quota on this pool: then teams without one may not use it.
    pub fn is_governed(&self, pool: &PoolName, cluster: &ClusterName) -> bool {
        let on = |quota: &Quota| quota.pool == *pool && quota.cluster == *cluster;
        self.teams.values().any(|team| team.quotas.iter().any(on))
    }
}
