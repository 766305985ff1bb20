//! Node classes: pool × owner × what an exception changes, and what their nodes advertise.

use fleetc_schema::catalog::{Architecture, Confidence, FabricManager, Gpu, Imex};
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{
    Advertised, Class, ClassPaths, Cluster, Devices, DraDevice, Driver, DriverOwner,
    ExceptionSource, Fabric, FabricKind, Fleet, GpuIndexes, GpuModel, GpuSlot, Gres, Host, HostCpu,
    HostPorts, MemoryRange, NodeClass, NodePolicy, Resource, Scheduler, Services, Sharing,
};
use fleetc_schema::name::{ClassName, ClusterName, FabricName, PolicyName, PoolName};
use fleetc_schema::units::Mib;
use fleetc_schema::{Hostlist, ItemPath};
use indexmap::IndexMap;

use super::policies;
use super::pools::LoweredPool;
use crate::language::Cx;

/// How far the memory that NVML reports may be from the catalog's, in percent: drivers differ in
/// what they keep back.
const MEMORY_TOLERANCE_PERCENT: u64 = 2;

/// Computes every class, in the order of pools, owners and exceptions.
pub fn lower(
    fleet: &Fleet,
    pools: &IndexMap<PoolName, LoweredPool>,
    clusters: &IndexMap<ClusterName, Cluster>,
    policies: &IndexMap<PolicyName, NodePolicy>,
    fabrics: &IndexMap<FabricName, Fabric>,
    cx: &mut Cx,
) -> IndexMap<ClassName, Class> {
    let mut classes = IndexMap::new();
    for (name, pool) in pools {
        let policy = policies::of_pool(policies, name);
        for (owner, nodes) in &pool.pool.parts {
            // A cluster that could not be lowered is reported; its nodes have no class.
            let Some(cluster) = clusters.get(owner) else { continue };
            for variant in variants(pool, nodes) {
                let text = class_name(name, owner, pool, &variant.missing);
                let class_name = match ClassName::new(&text) {
                    Ok(name) => name,
                    Err(error) => {
                        let title =
                            format!("a class of the pool would have an illegal name: {error}");
                        let finding = Diagnostic::new(&rules::NAME_ILLEGAL, title);
                        let finding = finding.at(&pool.path, "names pool, cluster and exception");
                        cx.report(finding.help("use a shorter name for the pool or the cluster"));
                        continue;
                    }
                };
                let maker = Maker { fleet, name, pool, cluster, policy, fabrics };
                let node = maker.node_class(class_name.clone(), &variant);
                classes.insert(class_name, Class { nodes: variant.nodes, node });
            }
        }
    }
    classes
}

/// Nodes of one part that lack the same GPUs.
struct Variant {
    nodes: Hostlist,
    missing: GpuIndexes,
    sources: Vec<ExceptionSource>,
}

fn variants(pool: &LoweredPool, nodes: &Hostlist) -> Vec<Variant> {
    let mut special: Vec<Variant> = Vec::new();
    let mut rest = nodes.clone();
    for exception in &pool.pool.exceptions {
        let here = exception.nodes.intersection(nodes);
        if here.is_empty() || exception.missing.is_empty() {
            continue;
        }
        rest = rest.difference(&here);
        let source = ExceptionSource { nodes: here.clone(), path: exception.path.clone() };
        match special.iter_mut().find(|variant| variant.missing == exception.missing) {
            Some(variant) => {
                variant.nodes = variant.nodes.union(&here);
                variant.sources.push(source);
            }
            None => special.push(Variant {
                nodes: here,
                missing: exception.missing.clone(),
                sources: vec![source],
            }),
        }
    }
    let plain = Variant { nodes: rest, missing: GpuIndexes::default(), sources: Vec::new() };
    std::iter::once(plain).chain(special).filter(|variant| !variant.nodes.is_empty()).collect()
}

/// The pool's name, the owner's if the pool is split, and what the exception changes.
fn class_name(
    name: &PoolName,
    owner: &ClusterName,
    pool: &LoweredPool,
    missing: &GpuIndexes,
) -> String {
    let mut text = name.to_string();
    if pool.pool.parts.len() > 1 {
        text = format!("{text}.{owner}");
    }
    if !missing.is_empty() {
        let slots: Vec<String> = missing.iter().map(|slot| slot.to_string()).collect();
        text = format!("{text}.missing-{}", slots.join("_"));
    }
    text
}

/// What a class is made from.
struct Maker<'a> {
    fleet: &'a Fleet,
    name: &'a PoolName,
    pool: &'a LoweredPool,
    cluster: &'a Cluster,
    policy: Option<(&'a PolicyName, &'a NodePolicy)>,
    fabrics: &'a IndexMap<FabricName, Fabric>,
}

/// The fewest GPUs of a server that joins them through NVSwitches: boards with fewer join them link to
/// link, and need no fabric manager. Source: NVIDIA HGX H100 and A100, boards of 4 and 8 GPUs.
const NVSWITCH_GPUS: u8 = 8;

impl Maker<'_> {
    fn node_class(&self, name: ClassName, variant: &Variant) -> NodeClass {
        let system = &self.pool.system;
        let gpus = self.slots(&variant.missing);
        let advertised = self.advertised(&name, &gpus);
        NodeClass {
            name,
            pool: self.name.clone(),
            cluster: self.cluster.name.clone(),
            system: system.key.clone(),
            host: Host {
                cpu: system.cpu.as_ref().map(|cpu| HostCpu {
                    sockets: cpu.sockets,
                    cores: cpu.cores,
                    threads: cpu.threads,
                }),
                memory: system.memory,
                pcie_width: self.pcie_width(),
                ports: self.ports(&variant.nodes),
            },
            gpu: system.gpu.as_ref().map(|gpu| GpuModel {
                fabric: Some(self.is_in_fabric(gpu) && gpu.architecture >= Architecture::Hopper),
                ..model(gpu, system.nvlink_domain)
            }),
            gpus,
            missing: variant.missing.clone(),
            services: self.services(),
            driver: self.driver(),
            policy: self.policy.map(|(name, policy)| (name.clone(), policy.clone())),
            advertised,
            paths: ClassPaths {
                system: self.pool.path.child("system"),
                sharing: self.pool.path.child("sharing"),
                driver: Some(match self.pool.pool.driver {
                    Some(_) => self.pool.path.child("driver"),
                    None => ItemPath::item("cluster", &self.cluster.name).child("driver"),
                }),
                exceptions: variant.sources.clone(),
            },
        }
    }

    /// True if NVSwitches join the GPUs, in the node or in the rack.
    fn is_in_fabric(&self, gpu: &Gpu) -> bool {
        let system = &self.pool.system;
        let joined = system.nvlink_domain.is_some_and(|gpus| gpus > 1);
        let has_switches = system.gpus >= NVSWITCH_GPUS || gpu.imex == Imex::Domain;
        gpu.nvlink.nvswitch && joined && has_switches
    }

    /// A board gives each of its GPUs all lanes. What a cloud or a slot gives is another matter, and so
    /// is the generation, which the host decides.
    fn pcie_width(&self) -> Option<u8> {
        let system = &self.pool.system;
        let gpu = system.gpu.as_ref()?;
        let on_board = gpu.form_factor.starts_with("SXM") && !system.key.as_str().contains('/');
        let pcie = &gpu.pcie;
        let sure = pcie.value.is_some() && pcie.confidence_in(gpu.confidence) > Confidence::Unsure;
        pcie.value.filter(|_| on_board && sure).map(|pcie| pcie.width)
    }

    /// Ports on the fabrics that all these nodes hang on.
    fn ports(&self, nodes: &Hostlist) -> Vec<HostPorts> {
        let mut ports = Vec::new();
        for (name, fabric) in self.fabrics {
            if !matches!(fabric.kind, FabricKind::Infiniband | FabricKind::Roce) {
                continue;
            }
            let here =
                fabric.attachments.iter().filter(|at| !at.nodes.intersection(nodes).is_empty());
            let (mut rest, mut count) = (nodes.clone(), u32::MAX);
            for attachment in here {
                rest = rest.difference(&attachment.nodes);
                count = count.min(attachment.rails.unwrap_or(1));
            }
            if rest.is_empty() && count < u32::MAX {
                let (kind, rate) = (fabric.kind, fabric.rate);
                ports.push(HostPorts { fabric: name.clone(), kind, count, rate });
            }
        }
        ports
    }

    /// What runs beside the driver. A fabric manager of the GPU Operator runs in its driver container,
    /// which no unit of the node tells of. With the driver of Dynamic Resource Allocation, IMEX runs in
    /// pods, and a second one on the node takes its port. Source: kubernetes-sigs/dra-driver-nvidia-gpu,
    /// issue 524.
    fn services(&self) -> Services {
        let mut services = Services::default();
        let Some(gpu) = &self.pool.system.gpu else { return services };
        let sure = gpu.fabric_manager.confidence_in(gpu.confidence) > Confidence::Unsure;
        let manager = gpu.fabric_manager.value.filter(|_| sure);
        services.fabric_manager = match manager {
            Some(FabricManager::NvSwitch | FabricManager::NvSwitchNvlsm) => {
                let by_os = self.driver().owner == DriverOwner::Os;
                (by_os && self.is_in_fabric(gpu)).then_some(true)
            }
            Some(FabricManager::SwitchTrays) => Some(false),
            Some(FabricManager::None) | None => None,
        };
        let spans_nodes = self.pool.system.nvlink_domain > Some(u16::from(self.pool.system.gpus));
        if gpu.imex == Imex::Domain && spans_nodes {
            services.imex = match &self.cluster.scheduler {
                Scheduler::Slurm(_) => Some(true),
                Scheduler::Kubernetes(kubernetes) => kubernetes.dra_driver.as_ref().map(|_| false),
            };
        }
        services
    }

    /// The cluster's driver, at the pool's version if it has one of its own.
    fn driver(&self) -> Driver {
        let driver = match &self.cluster.scheduler {
            Scheduler::Slurm(slurm) => &slurm.driver,
            Scheduler::Kubernetes(kubernetes) => &kubernetes.driver,
        };
        let version = self.pool.pool.driver.clone().unwrap_or_else(|| driver.version.clone());
        Driver { version, owner: driver.owner }
    }

    fn slots(&self, missing: &GpuIndexes) -> Vec<GpuSlot> {
        let present = (0..self.pool.system.gpus).filter(|slot| !missing.contains(*slot));
        present
            .zip(0..)
            .map(|(slot, index)| {
                let layout =
                    self.pool.layouts.iter().find(|placed| placed.layout.gpus.contains(slot));
                GpuSlot {
                    slot,
                    index,
                    numa: self.pool.system.numa.get(usize::from(slot)).copied(),
                    mig: layout.map(|placed| placed.instances.clone()),
                    path: layout.map_or_else(
                        || self.pool.path.child("sharing"),
                        |placed| placed.path.clone(),
                    ),
                }
            })
            .collect()
    }

    /// What the node's agents publish.
    fn advertised(&self, class: &ClassName, gpus: &[GpuSlot]) -> Advertised {
        let mut units: IndexMap<Resource, u32> = IndexMap::new();
        for slot in gpus {
            match (&slot.mig, &self.pool.pool.sharing) {
                (Some(instances), _) => {
                    for instance in instances {
                        *units.entry(Resource::Slice(instance.profile.clone())).or_insert(0) += 1;
                    }
                }
                (None, Sharing::Mps(shared) | Sharing::TimeSlicing(shared)) => {
                    *units.entry(Resource::Shared).or_insert(0) += shared.replicas;
                }
                (None, Sharing::Whole | Sharing::Mig { .. }) => {
                    *units.entry(Resource::Gpu).or_insert(0) += 1;
                }
            }
        }
        let mut advertised = Advertised { units, ..Advertised::default() };
        match &self.cluster.scheduler {
            Scheduler::Slurm(_) => advertised.gres = self.gres(&advertised.units),
            Scheduler::Kubernetes(_) => {
                if self.pool.pool.devices == Devices::DevicePlugin {
                    advertised.resources = self.resources(&advertised.units);
                }
                advertised.labels = self.labels(class, gpus);
                if self.pool.pool.devices == Devices::Dra {
                    advertised.devices = self.devices(gpus);
                }
            }
        }
        advertised
    }

    /// The devices of the DRA driver: whole GPUs, or the GPU instances of those that are cut.
    fn devices(&self, gpus: &[GpuSlot]) -> Vec<DraDevice> {
        let model = self.pool.system.gpu.as_ref().map(|gpu| model(gpu, None));
        let product = model.as_ref().and_then(|model| match model.nvml_names.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        });
        let memory = model.as_ref().and_then(|model| model.memory).map(|range| range.nominal);
        let mut devices = Vec::new();
        for slot in gpus {
            let whole = DraDevice {
                name: format!("gpu-{}", slot.index),
                kind: "gpu".to_owned(),
                product: product.clone(),
                profile: None,
                memory,
            };
            let Some(instances) = &slot.mig else {
                devices.push(whole);
                continue;
            };
            devices.extend(instances.iter().map(|instance| DraDevice {
                name: format!(
                    "{}-mig-{}-{}-{}",
                    whole.name,
                    instance.profile.to_string().replace('.', ""),
                    instance.profile_id,
                    instance.placement.start
                ),
                kind: "mig".to_owned(),
                profile: Some(instance.profile.clone()),
                memory: instance.memory,
                product: product.clone(),
            }));
        }
        devices
    }

    /// The device plugin's extended resources. Several profiles may come under one name.
    fn resources(&self, units: &IndexMap<Resource, u32>) -> IndexMap<String, u64> {
        let mut resources = IndexMap::new();
        for (unit, count) in units {
            let resource = self.pool.pool.sharing.kubernetes_resource(unit);
            *resources.entry(resource).or_insert(0) += u64::from(*count);
        }
        resources
    }

    /// Slurm's generic resources. MIG types are the bare profile: slurmd matches a type as a
    /// substring of the device's name, and `h100_1g.10gb` is not one of
    /// `nvidia_h100_80gb_hbm3_1g.10gb`. Source: SchedMD/slurm, plugins gres/gpu and gpu/nvml.
    fn gres(&self, units: &IndexMap<Resource, u32>) -> Vec<Gres> {
        let gres = |kind: String, count: &u32| Gres { name: "gpu".to_owned(), kind, count: *count };
        units
            .iter()
            .filter_map(|(resource, count)| match resource {
                Resource::Gpu => {
                    let gpu = self.pool.system.gpu.as_ref()?;
                    Some(gres(gpu.gres_type.clone(), count))
                }
                Resource::Slice(profile) => Some(gres(profile.to_string(), count)),
                // Slurm has `shard` and `mps` for this; the Slurm target refuses such pools.
                Resource::Shared => None,
            })
            .collect()
    }

    fn labels(&self, class: &ClassName, gpus: &[GpuSlot]) -> IndexMap<String, String> {
        let prefix = &self.fleet.label_prefix;
        let mut labels = IndexMap::from([
            (format!("{prefix}/pool"), self.name.to_string()),
            (format!("{prefix}/class"), class.to_string()),
        ]);
        let Some(gpu) = &self.pool.system.gpu else { return labels };
        // Where every GPU is gone, nothing finds a product.
        if let (Some(product), false) = (&gpu.gfd_product, gpus.is_empty()) {
            labels.insert("nvidia.com/gpu.product".to_owned(), product.clone());
        }
        match self.pool.pool.devices {
            Devices::DevicePlugin => {
                labels.insert("nvidia.com/device-plugin.config".to_owned(), self.name.to_string());
            }
            // The GPU Operator keeps a value that is there. Source: NVIDIA/gpu-operator v26.7.0
            // `controllers/nodelabeling_controller.go`.
            Devices::Dra => {
                let deploy = "nvidia.com/gpu.deploy.device-plugin".to_owned();
                labels.insert(deploy, "false".to_owned());
            }
        }
        if gpu.has_mig() {
            labels.insert("nvidia.com/mig.config".to_owned(), class.to_string());
        }
        labels
    }
}

/// What NVML may report on a GPU with so many MiB.
pub fn memory_range(nominal: u64) -> MemoryRange {
    let tolerance = nominal * MEMORY_TOLERANCE_PERCENT / 100;
    MemoryRange {
        min: Mib(nominal - tolerance),
        nominal: Mib(nominal),
        max: Mib(nominal.saturating_add(tolerance)),
    }
}

fn model(gpu: &Gpu, nvlink_domain: Option<u16>) -> GpuModel {
    GpuModel {
        key: gpu.key.clone(),
        nvml_names: gpu.nvml_names().cloned().collect(),
        pci_device_ids: gpu.pci_device_ids.value.clone().unwrap_or_default(),
        memory: gpu.nvml_total_mib.value.map(memory_range),
        gres_type: gpu.gres_type.clone(),
        mig_capable: gpu.has_mig(),
        mig_mode_needs_reset: gpu.architecture == Architecture::Ampere,
        nvlinks: built_in_nvlinks(gpu),
        nvlink_domain,
        fabric: None,
        row_remap: gpu.row_remap,
    }
}

/// Links that are there whoever built the server: on SXM boards and behind NVSwitch. PCIe boards have
/// theirs only if somebody bought the bridges.
fn built_in_nvlinks(gpu: &Gpu) -> u8 {
    match gpu.nvlink.nvswitch || gpu.form_factor.starts_with("SXM") {
        true => gpu.nvlink.links.unwrap_or_default(),
        false => 0,
    }
}
