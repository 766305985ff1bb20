//! Pools: nodes that are alike.

use std::fmt;
use std::str::FromStr;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Resource, words};
use crate::mig::MigProfile;
use crate::name::{ClusterName, SystemName, TeamName};
use crate::pci::BusId;
use crate::units::GpuHourPrice;
use crate::version::Version;
use crate::{Hostlist, ItemPath, serde_as_text};

/// Nodes that are alike: one hardware, one sharing policy, one owner each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Their hardware.
    pub system: SystemName,
    /// All its nodes.
    pub nodes: Hostlist,
    /// The nodes of each owner; more than one if the pool is split.
    pub parts: IndexMap<ClusterName, Hostlist>,
    /// How many nodes there may be, if they come and go.
    pub elastic: Option<u32>,
    /// Who advertises the GPUs under Kubernetes.
    pub devices: Devices,
    /// How a GPU is shared.
    pub sharing: Sharing,
    /// Nodes that differ.
    pub exceptions: Vec<Exception>,
    /// What an inventory says of single nodes, by the first of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// How many nodes may be out of service at once.
    pub max_unavailable: Option<u32>,
    /// How the hardware is paid for.
    pub capacity: Option<Capacity>,
    /// How close the nodes of an elastic pool are asked for.
    pub placement: Option<ElasticPlacement>,
    /// `Features` of its Slurm nodes.
    pub features: Vec<String>,
    /// `Weight` of its Slurm nodes: the lowest goes first.
    pub weight: Option<u32>,
    /// Taints of its Kubernetes nodes.
    pub taints: Vec<Taint>,
    /// The NVIDIA driver, if it is another than the cluster's.
    pub driver: Option<Version>,
    /// False where a GPU cannot be reset, as in a virtual machine with passthrough.
    pub gpu_reset: bool,
}

/// A taint of Kubernetes nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Taint {
    /// Its key, with a prefix: `nvidia.com/gpu`.
    pub key: String,
    /// Its value, if it has one.
    pub value: Option<String>,
    /// What it does to pods that do not tolerate it.
    pub effect: TaintEffect,
}

impl fmt::Display for Taint {
    /// As `kubectl taint` writes it: `nvidia.com/gpu=present:NoSchedule`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}:{}", self.key, self.effect),
            None => write!(f, "{}:{}", self.key, self.effect),
        }
    }
}

words! {
    /// What a taint does to pods that do not tolerate it.
    TaintEffect {
        /// They do not come.
        NoSchedule = "NoSchedule",
        /// They come if nothing else is free.
        PreferNoSchedule = "PreferNoSchedule",
        /// They do not come, and those that run are evicted.
        NoExecute = "NoExecute",
    }
}

words! {
    /// Who advertises GPUs under Kubernetes.
    Devices {
        /// The NVIDIA device plugin.
        DevicePlugin = "device-plugin",
        /// The NVIDIA driver of Dynamic Resource Allocation.
        Dra = "dra",
    }
}

words! {
    /// How close to each other a provider is asked to place nodes that come and go.
    ElasticPlacement {
        /// In one placement group: a cluster placement group of AWS, a compact placement policy of
        /// Google, a proximity placement group of Azure, a cluster network of Oracle.
        Cluster = "cluster",
        /// In one block of the provider's network, held for the fleet.
        Block = "block",
    }
}

/// How the hardware of a pool is paid for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// The model.
    pub model: CapacityModel,
    /// Whose it is.
    pub provider: Option<String>,
    /// Where it is.
    pub region: Option<String>,
    /// What it costs.
    pub price: Option<GpuHourPrice>,
}

words! {
    /// A purchase model.
    CapacityModel {
        /// Bought.
        Owned = "owned",
        /// Paid for by term.
        Committed = "committed",
        /// Held by reservation.
        Reserved = "reserved",
        /// Held for a dated block.
        CapacityBlock = "capacity-block",
        /// Paid for by use.
        OnDemand = "on-demand",
        /// Paid for by use, may be taken away.
        Spot = "spot",
    }
}

/// How the GPUs of a pool are shared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "mode")]
pub enum Sharing {
    /// A GPU goes to one job.
    Whole,
    /// GPUs are cut into GPU instances.
    Mig {
        /// How the device plugin names them.
        strategy: MigStrategy,
        /// The layout of each set of GPUs; together they name every GPU of a node once.
        layouts: Vec<MigLayout>,
    },
    /// Several processes share a GPU through MPS.
    Mps(Shared),
    /// Several processes take turns on a GPU.
    TimeSlicing(Shared),
}

/// How a GPU is shared by processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Shared {
    /// Clients of a GPU.
    pub replicas: u32,
    /// True if a share is advertised under a name of its own (`nvidia.com/gpu.shared`).
    pub rename: bool,
    /// The one team that the clients are of, if only one may use the pool.
    pub team: Option<TeamName>,
}

impl Sharing {
    /// The word of the spec.
    pub fn mode(&self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Mig { .. } => "mig",
            Self::Mps(_) => "mps",
            Self::TimeSlicing(_) => "time-slicing",
        }
    }

    /// The extended resource under which the device plugin advertises a unit of a pool that is
    /// shared so. Source: NVIDIA/k8s-device-plugin v0.20.0: `renameByDefault` appends `.shared`, and
    /// the MIG strategy `single` advertises instances under the name of a GPU.
    pub fn kubernetes_resource(&self, unit: &Resource) -> String {
        const GPU: &str = "nvidia.com/gpu";
        match (unit, self) {
            (Resource::Slice(_), Self::Mig { strategy: MigStrategy::Single, .. })
            | (Resource::Gpu, _) => GPU.to_owned(),
            (Resource::Shared, Self::Mps(shared) | Self::TimeSlicing(shared)) if !shared.rename => {
                GPU.to_owned()
            }
            (Resource::Shared, _) => format!("{GPU}.shared"),
            (Resource::Slice(profile), _) => profile.kubernetes_resource(),
        }
    }
}

words! {
    /// How the device plugin names GPU instances.
    MigStrategy {
        /// One resource for each profile.
        Mixed = "mixed",
        /// Instances are advertised as GPUs; all of a node have one profile.
        Single = "single",
    }
}

/// The MIG layout of a set of GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MigLayout {
    /// GPU numbers on a complete node.
    pub gpus: GpuIndexes,
    /// Instances of each profile, with placements. Empty: MIG mode on, no instance.
    pub slices: Vec<Slice>,
}

/// The instances of one profile on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// The profile.
    pub profile: MigProfile,
    /// How many.
    pub count: u32,
}

/// GPU numbers of a node: `0-3,6`. A GPU number is the NVML index on a complete node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GpuIndexes(Vec<u8>);

impl GpuIndexes {
    /// The largest number of GPUs of one node that is taken.
    pub const LIMIT: u8 = 64;

    /// Sorted and without repeats.
    pub fn new(mut indexes: Vec<u8>) -> Self {
        indexes.sort_unstable();
        indexes.dedup();
        Self(indexes)
    }

    /// The numbers, rising.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.iter().copied()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the number is one of them.
    pub fn contains(&self, index: u8) -> bool {
        self.0.binary_search(&index).is_ok()
    }

    /// The largest number.
    pub fn last(&self) -> Option<u8> {
        self.0.last().copied()
    }
}

impl fmt::Display for GpuIndexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        while let Some(first) = rest.first() {
            let run = rest.iter().zip(*first..).take_while(|(a, b)| *a == b).count();
            let (head, tail) = rest.split_at(run);
            match head.last() {
                Some(last) if last > first => write!(f, "{first}-{last}")?,
                _ => write!(f, "{first}")?,
            }
            rest = tail;
            if !rest.is_empty() {
                f.write_str(",")?;
            }
        }
        Ok(())
    }
}

/// The text names no GPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no GPUs: write numbers and ranges such as `0-3,6`")]
pub struct GpuIndexesError(pub String);

impl FromStr for GpuIndexes {
    type Err = GpuIndexesError;

    fn from_str(text: &str) -> Result<Self, GpuIndexesError> {
        let error = || GpuIndexesError(text.to_owned());
        let number = |part: &str| -> Option<u8> {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            if digits { part.parse().ok().filter(|n| *n < Self::LIMIT) } else { None }
        };
        let mut indexes = Vec::new();
        // No GPU at all is a set too: what a node lacks is empty for most.
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Some(first), Some(last)) = (number(first), number(last)) else {
                return Err(error());
            };
            if last < first {
                return Err(error());
            }
            indexes.extend(first..=last);
        }
        let count = indexes.len();
        let indexes = Self::new(indexes);
        if indexes.len() < count { Err(error()) } else { Ok(indexes) }
    }
}

serde_as_text!(GpuIndexes);

/// Nodes of a pool that differ from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The nodes.
    pub nodes: Hostlist,
    /// Numbers of the GPUs that are gone.
    pub missing: GpuIndexes,
    /// Why.
    pub reason: Option<String>,
    /// Its item.
    pub path: ItemPath,
}

/// Facts of single nodes: those that say the same stand together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Override {
    /// The nodes.
    pub nodes: Hostlist,
    /// PCI addresses of the GPUs of a complete node: the first is that of GPU 0.
    pub pci: Vec<BusId>,
    /// The first row that says so.
    pub path: ItemPath,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_plugin_names_what_it_advertises_by_how_a_pool_is_shared() {
        let shared = |rename| Shared { replicas: 4, rename, team: None };
        let mig = |strategy| Sharing::Mig { strategy, layouts: Vec::new() };
        let slice = Resource::Slice("1g.10gb".parse().unwrap());
        for (sharing, unit, name) in [
            (Sharing::Whole, &Resource::Gpu, "nvidia.com/gpu"),
            (Sharing::TimeSlicing(shared(true)), &Resource::Shared, "nvidia.com/gpu.shared"),
            (Sharing::TimeSlicing(shared(false)), &Resource::Shared, "nvidia.com/gpu"),
            (Sharing::Mps(shared(false)), &Resource::Shared, "nvidia.com/gpu"),
            (mig(MigStrategy::Mixed), &slice, "nvidia.com/mig-1g.10gb"),
            (mig(MigStrategy::Single), &slice, "nvidia.com/gpu"),
        ] {
            assert_eq!(sharing.kubernetes_resource(unit), name, "{}", sharing.mode());
        }
    }

    #[test]
    fn gpu_numbers_read_and_fold() {
        for (text, folded) in
            [("0-3", "0-3"), ("", ""), ("7", "7"), ("3,0,1,2", "0-3"), ("0,2-3", "0,2-3")]
        {
            assert_eq!(text.parse::<GpuIndexes>().unwrap().to_string(), folded);
        }
        for wrong in ["a", ",", "3-1", "0-3,2", "64", "-1", "0-"] {
            assert!(wrong.parse::<GpuIndexes>().is_err(), "{wrong}");
        }
    }
}
