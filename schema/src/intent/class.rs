//! Node classes: all that a node should be, except where it stands and its own serials.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Driver, FabricKind, GpuIndexes, NodePolicy, Resource};
use crate::mig::{MigProfile, Placement};
use crate::name::{ClassName, ClusterName, FabricName, GpuName, PolicyName, PoolName, SystemName};
use crate::units::{GbitPerSec, Mib};
use crate::{Hostlist, ItemPath};

/// A node class and its nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Its nodes.
    pub nodes: Hostlist,
    /// What each of them should be.
    pub node: NodeClass,
}

/// What a node of a class should be: self-contained, so a node can be judged without the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NodeClass {
    /// Its name: the pool's, the cluster's if the pool is split, what an exception changes.
    pub name: ClassName,
    /// The pool.
    pub pool: PoolName,
    /// The cluster that owns the nodes.
    pub cluster: ClusterName,
    /// The hardware.
    pub system: SystemName,
    /// Processors and memory.
    pub host: Host,
    /// The GPU product; none on nodes without GPUs.
    pub gpu: Option<GpuModel>,
    /// Every GPU that the node should have, in the order of its NVML index.
    pub gpus: Vec<GpuSlot>,
    /// Numbers of GPUs that an exception takes away.
    pub missing: GpuIndexes,
    /// The NVIDIA driver.
    pub driver: Driver,
    /// What runs beside the driver.
    #[serde(default)]
    pub services: Services,
    /// The policy that applies.
    pub policy: Option<(PolicyName, NodePolicy)>,
    /// What the node's agents will publish.
    pub advertised: Advertised,
    /// Items of the spec behind the expectations.
    pub paths: ClassPaths,
}

/// Processors and memory of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Processors; none if neither catalog nor fleet states them.
    pub cpu: Option<HostCpu>,
    /// Installed memory; none if neither catalog nor fleet states it.
    pub memory: Option<Mib>,
    /// PCIe lanes that each GPU has: none where slots are up to who built the node.
    #[serde(default)]
    pub pcie_width: Option<u8>,
    /// Ports on fabrics that every node of the class hangs on.
    #[serde(default)]
    pub ports: Vec<HostPorts>,
}

/// Ports of a node on one fabric, of InfiniBand or RoCE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostPorts {
    /// The fabric.
    pub fabric: FabricName,
    /// What it is made of.
    pub kind: FabricKind,
    /// How many at least: one a rail.
    pub count: u32,
    /// Rate of each; none if the fabric states none.
    pub rate: Option<GbitPerSec>,
}

/// Services of NVIDIA's that a node runs beside the driver: true if it must, false if it must not, none
/// if it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Services {
    /// `nvidia-fabricmanager`, on nodes that have NVSwitches.
    pub fabric_manager: Option<bool>,
    /// `nvidia-imex`, on nodes whose NVLink domain spans several.
    pub imex: Option<bool>,
}

/// Processors of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostCpu {
    /// Sockets.
    pub sockets: u16,
    /// Cores of all sockets.
    pub cores: u16,
    /// Hardware threads of all cores.
    pub threads: u16,
}

/// What tells a GPU product apart, and what its size is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GpuModel {
    /// Key in the catalog.
    pub key: GpuName,
    /// Name that NVML reports, first the current one.
    pub nvml_names: Vec<String>,
    /// PCI device ids, `0x2330`.
    pub pci_device_ids: Vec<String>,
    /// Memory that NVML may report; none if the catalog does not know it.
    pub memory: Option<MemoryRange>,
    /// The type in Slurm's GRES.
    pub gres_type: String,
    /// True if the GPU has MIG.
    pub mig_capable: bool,
    /// True if a change of MIG mode takes a GPU reset: on Ampere only. Source: NVIDIA MIG User
    /// Guide, "Deployment Considerations".
    pub mig_mode_needs_reset: bool,
    /// NVLink links that every such GPU has: 0 where a bridge is optional.
    pub nvlinks: u8,
    /// GPUs of one NVLink domain of the system: more than a node has where trays are joined, fewer
    /// where a node holds several islands, 1 where GPUs meet over PCIe only. None if nobody knows.
    pub nvlink_domain: Option<u16>,
    /// True if the GPUs register with a fabric of NVSwitches, and NVML tells how far they are: since
    /// Hopper. None if nobody knows.
    #[serde(default)]
    pub fabric: Option<bool>,
    /// True if rows of memory are remapped, false if pages are retired. None if nobody knows.
    #[serde(default)]
    pub row_remap: Option<bool>,
}

/// The least and the most memory, in MiB: drivers differ in what they keep back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MemoryRange {
    /// The least.
    pub min: Mib,
    /// What the catalog states.
    pub nominal: Mib,
    /// The most.
    pub max: Mib,
}

/// One GPU of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GpuSlot {
    /// Its number on a complete node.
    pub slot: u8,
    /// Its NVML index on a node of this class: lower if GPUs before it are gone.
    pub index: u8,
    /// NUMA node of its slot, if that is known of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u8>,
    /// GPU instances; none if MIG mode is off.
    pub mig: Option<Vec<GpuInstance>>,
    /// The item that lays it out.
    pub path: ItemPath,
}

/// A GPU instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GpuInstance {
    /// Its profile.
    pub profile: MigProfile,
    /// The profile id of NVML.
    pub profile_id: u32,
    /// Where it stands.
    pub placement: Placement,
    /// Its memory; none if nobody has read it.
    pub memory: Option<Mib>,
}

/// What the agents of a node publish, exactly: computed once, read by every target and rule.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Advertised {
    /// What a node hands out, in the unit of quotas and workloads.
    pub units: IndexMap<Resource, u32>,
    /// Generic resources of slurmd, in the order of the `Gres=` value.
    pub gres: Vec<Gres>,
    /// Extended resources of the kubelet.
    pub resources: IndexMap<String, u64>,
    /// Labels of the Kubernetes node.
    pub labels: IndexMap<String, String>,
    /// Devices of Dynamic Resource Allocation.
    pub devices: Vec<DraDevice>,
}

/// A device in the ResourceSlice of a node, with what a claim can select on. Source: the driver
/// gpu.nvidia.com of kubernetes-sigs/dra-driver-nvidia-gpu, releases 0.4 and 0.5, read 2026-11-30: no
/// index, no memory attribute and no NVLink domain are published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DraDevice {
    /// Its name: `gpu-<minor>`, or that with profile, profile id and placement. The minor number is the
    /// index on a node where no GPU was taken from the driver.
    pub name: String,
    /// Attribute `type`: `gpu` or `mig`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Attribute `productName`; none if drivers differ in it.
    pub product: Option<String>,
    /// Attribute `profile`.
    pub profile: Option<MigProfile>,
    /// Capacity `memory`; none if nobody has read it.
    pub memory: Option<Mib>,
}

/// One generic resource: `gpu:h100:8`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Gres {
    /// Its name, a word of `GresTypes`.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// How many a node has.
    pub count: u32,
}

/// Items of the spec behind the expectations of a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClassPaths {
    /// What says which system it is.
    pub system: ItemPath,
    /// What says how GPUs are shared.
    pub sharing: ItemPath,
    /// What says which driver it is; none in files of before.
    #[serde(default)]
    pub driver: Option<ItemPath>,
    /// Exceptions that made the class, each with its nodes.
    pub exceptions: Vec<ExceptionSource>,
}

/// An exception and its nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ExceptionSource {
    /// The nodes.
    pub nodes: Hostlist,
    /// The item.
    pub path: ItemPath,
}

impl NodeClass {
    /// How many instances of each profile a node has, in the order of first appearance.
    pub fn mig_counts(&self) -> IndexMap<MigProfile, u32> {
        let mut counts = IndexMap::new();
        for instance in self.gpus.iter().filter_map(|gpu| gpu.mig.as_ref()).flatten() {
            *counts.entry(instance.profile.clone()).or_insert(0) += 1;
        }
        counts
    }

    /// How many GPUs have MIG mode off.
    pub fn whole_gpus(&self) -> u32 {
        self.gpus.iter().filter(|gpu| gpu.mig.is_none()).map(|_| 1).sum()
    }

    /// The item behind the number of GPUs of one node: its exception, or the system.
    pub fn count_path(&self, node: &str) -> &ItemPath {
        let of_node = self.paths.exceptions.iter().find(|source| source.nodes.contains(node));
        of_node.map_or(&self.paths.system, |source| &source.path)
    }
}
