//! Instances that clouds rent out.

use serde::{Deserialize, Serialize};

use super::{Confidence, Cpu, CpuArch, Fact, LocalDisk, MemoryUnit, NicGroup, Nics, Price, System};
use crate::name::{GpuName, SystemName};

/// A cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cloud {
    /// Amazon Web Services.
    Aws,
    /// Google Cloud.
    Gcp,
    /// Microsoft Azure.
    Azure,
    /// Oracle Cloud Infrastructure.
    Oci,
    /// CoreWeave.
    CoreWeave,
}

/// A shape: a kind of instance that a cloud rents out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudShape {
    /// Key: cloud, `/` and the shape in lower case, such as `aws/p5.48xlarge`.
    pub key: SystemName,
    /// The cloud.
    pub cloud: Cloud,
    /// The shape as the cloud writes it.
    pub shape: String,
    /// Later versions of the same shape.
    #[serde(default)]
    pub also: Vec<String>,
    /// Its GPUs.
    pub gpu: GpuName,
    /// How many.
    pub gpus_per_node: u8,
    /// Instruction set.
    #[serde(default)]
    pub arch: CpuArch,
    /// True for a whole machine without a hypervisor.
    #[serde(default)]
    pub bare_metal: bool,
    /// CPUs that the operating system sees.
    pub vcpus: Fact<u16>,
    /// Sockets that the operating system sees.
    #[serde(default)]
    pub sockets: Option<u16>,
    /// Cores of all sockets, where the cloud counts those.
    #[serde(default)]
    pub cores: Option<u16>,
    /// True if a core shows as two CPUs.
    #[serde(default)]
    pub smt: Fact<bool>,
    /// NUMA nodes.
    #[serde(default)]
    pub numa_nodes: Option<u8>,
    /// Who made the processors.
    #[serde(default)]
    pub cpu_vendor: Option<CpuVendor>,
    /// Memory in GiB.
    pub memory_gib: Fact<u32>,
    /// The unit in which the cloud prints the memory.
    #[serde(default)]
    pub memory_printed_in: MemoryUnit,
    /// Network.
    pub nics: Option<ShapeNics>,
    /// Local disks, all together, in GB.
    pub local_disk_gb: Option<u32>,
    /// GPUs of one NVLink domain.
    pub nvlink_domain: u16,
    /// List price on demand; none if unknown, which is never free.
    pub price: Option<Price>,
    /// Keys of the row's sources.
    pub source: Vec<String>,
    /// Confidence of every field that states none.
    pub confidence: Confidence,
    /// Doubts and remarks.
    #[serde(default)]
    pub note: Option<String>,
}

/// Who made the processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CpuVendor {
    /// AMD.
    Amd,
    /// Intel.
    Intel,
}

/// The network of a shape.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapeNics {
    /// What carries traffic between GPUs of different nodes.
    pub kind: NicKind,
    /// The cloud's word for it.
    pub model: String,
    /// Interfaces.
    #[serde(default)]
    pub count: Option<u16>,
    /// Network cards, where that is all the cloud counts.
    #[serde(default)]
    pub cards: Option<u16>,
    /// Interfaces that serve GPUs, where the total has others too.
    #[serde(default)]
    pub gpu_nics: Option<u16>,
    /// Rate of one interface, one way, in Mbit/s.
    #[serde(default)]
    pub mbit_per_s: Option<u32>,
    /// Rate of all interfaces, one way, in Mbit/s.
    #[serde(default)]
    pub total_mbit_per_s: Option<u32>,
}

/// A kind of fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NicKind {
    /// InfiniBand.
    Infiniband,
    /// Elastic Fabric Adapter.
    Efa,
    /// RDMA over Converged Ethernet.
    Roce,
    /// Ethernet without RDMA, or with an offload of the cloud's own.
    Ethernet,
}

impl CloudShape {
    /// The shape as a system. Its processors are there only if sockets, cores and threads all
    /// follow from what is known.
    pub fn to_system(&self) -> System {
        System {
            key: self.key.clone(),
            gpu: self.gpu.clone(),
            gpus_per_node: self.gpus_per_node,
            generic: false,
            arch: self.arch,
            cpu: self.cpu(),
            memory_gib: self.memory_gib.clone(),
            memory_printed_in: self.memory_printed_in,
            numa_nodes: self.numa_nodes,
            nvlink_domain: self.nvlink_domain,
            nvswitch_chips: None,
            nics: self.nics.as_ref().map(ShapeNics::to_nics),
            local_disk: self.local_disk_gb.map(|total_gb| LocalDisk {
                count: None,
                total_gb,
                form: None,
            }),
            power_w: None,
            source: self.source.clone(),
            confidence: self.confidence,
            note: self.note.clone(),
        }
    }

    fn cpu(&self) -> Option<Cpu> {
        let sockets = self.sockets?;
        let per_core = if self.smt.value? { 2 } else { 1 };
        let (cores, threads) = match (self.cores, self.vcpus.value) {
            (Some(cores), Some(threads)) => (cores, threads),
            (Some(cores), None) => (cores, cores.checked_mul(per_core)?),
            (None, Some(threads)) => (threads / per_core, threads),
            (None, None) => return None,
        };
        let whole = cores.is_multiple_of(sockets) && cores.checked_mul(per_core) == Some(threads);
        whole.then_some(Cpu { model: None, sockets, cores, threads })
    }
}

impl ShapeNics {
    fn to_nics(&self) -> Nics {
        let each = |total: u32| total.checked_div(u32::from(self.count?));
        let compute = NicGroup {
            model: self.model.clone(),
            count: self.count.or(self.gpu_nics),
            mbit_per_s: self.mbit_per_s.or_else(|| each(self.total_mbit_per_s?)),
        };
        Nics { compute, storage: None }
    }
}
