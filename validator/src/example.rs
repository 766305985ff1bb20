//! Small classes, and states of nodes that conform to them. For tests.

use fleetc_schema::intent::{
    Advertised, ClassPaths, DraDevice, Driver, DriverOwner, FabricKind, GpuIndexes, GpuInstance,
    GpuModel, GpuSlot, Gres, Host, HostCpu, HostPorts, HugePageSize, MemoryRange, NodeClass,
    NodePolicy, Override, Services, WantedHugePages, WantedMount,
};
use fleetc_schema::mig::Placement;
use fleetc_schema::units::{Celsius, GbitPerSec, Mhz, Mib, Milliwatts, Seconds, Watts};
use fleetc_schema::{Hostlist, ItemPath};

use crate::intent::{NodeIntent, Sources};
use crate::state::{
    Allocatable, CapDevice, Clocks, ClocksEventReasons, ComputeInstanceState, ComputeMode,
    Condition, Cpu, DeviceNode, EccCounts, Fabric, FabricHealth, FabricState, Firmware,
    GpuInstanceState, GpuState, Health, HostState, HugePages, IbPort, Identity, KernelLog, MigCap,
    MigDevice, MigMode, Modes, Mount, NodeState, NvLink, NvLinkErrors, NvLinkRemote, P2pStatus,
    PciGpu, PcieLink, PcieSysfs, PeerLink, Platform, Power, Processes, Reading, RecoveryAction,
    RemappedRows, RepairPending, RetiredPages, RowHistogram, Service, SlurmGres, Thermal,
    UnitState, UnixTime, VirtualizationMode,
};
use fleetc_schema::pci::BusId;

/// Profile, profile id, size, and where instances of it stand.
type Slices = (&'static str, u32, u8, &'static [u8]);

const SEVEN: Slices = ("1g.10gb", 19, 1, &[0, 1, 2, 3, 4, 5, 6]);
const TWO: Slices = ("3g.40gb", 9, 4, &[0, 4]);

/// Four GPUs: 0 and 1 in 7 × 1g.10gb, 2 and 3 in 2 × 3g.40gb.
pub(crate) fn mixed_mig() -> NodeIntent {
    let slices = [Some(SEVEN), Some(SEVEN), Some(TWO), Some(TWO)];
    intent(Some(h100()), &slices)
}

/// Two GPUs in 7 × 1g.10gb.
pub(crate) fn uniform_mig() -> NodeIntent {
    intent(Some(h100()), &[Some(SEVEN), Some(SEVEN)])
}

/// Three GPUs, the last of which is cut.
pub(crate) fn partly_mig() -> NodeIntent {
    intent(Some(h100()), &[None, None, Some(TWO)])
}

/// Two whole GPUs that have MIG.
pub(crate) fn whole() -> NodeIntent {
    intent(Some(h100()), &[None, None])
}

/// Two GPUs that do not have MIG.
pub(crate) fn without_mig() -> NodeIntent {
    intent(Some(l40s()), &[None, None])
}

/// A node without GPUs.
pub(crate) fn without_gpus() -> NodeIntent {
    intent(None, &[])
}

/// A server of eight H100 behind NVSwitches, under Slurm, with all that a policy and a fabric say.
pub(crate) fn hgx() -> NodeIntent {
    let model = GpuModel {
        nvlinks: 18,
        nvlink_domain: Some(8),
        fabric: Some(true),
        gres_type: "h100".into(),
        ..h100()
    };
    let mut intent = intent(Some(model), &[None; 8]);
    let class = &mut intent.class;
    // Half of them at each socket.
    class.gpus.iter_mut().for_each(|slot| slot.numa = Some(slot.index / 4));
    class.host = Host {
        cpu: Some(HostCpu { sockets: 2, cores: 112, threads: 224 }),
        memory: Some(Mib(2_097_152)),
        pcie_width: Some(16),
        ports: vec![HostPorts {
            fabric: "ib".parse().unwrap(),
            kind: FabricKind::Infiniband,
            count: 8,
            rate: Some(GbitPerSec(400)),
        }],
    };
    class.services = Services { fabric_manager: Some(true), imex: None };
    class.policy = Some(("hopper".parse().unwrap(), policy()));
    let gres = |kind: &str, count| Gres { name: "gpu".into(), kind: kind.into(), count };
    class.advertised.gres = vec![gres("h100", 8)];
    intent
}

/// All that a policy can say, but `checks`.
fn policy() -> NodePolicy {
    NodePolicy {
        pools: Vec::new(),
        driver: Some(">=580.105".parse().unwrap()),
        ecc: Some(true),
        persistence: Some(true),
        power_limit: Some(Watts(700)),
        pcie_gen: Some(5),
        pcie_width: Some(16),
        nvlinks: Some(18),
        mounts: vec![WantedMount {
            target: "/scratch".parse().unwrap(),
            kind: Some("xfs".parse().unwrap()),
        }],
        hugepages: vec![WantedHugePages { size: HugePageSize::Mib2, count: 1024 }],
        checks: Default::default(),
    }
}

/// A tray of four GB200 in a rack of eighteen, under Slurm.
pub(crate) fn tray() -> NodeIntent {
    let model = GpuModel {
        nvlinks: 18,
        nvlink_domain: Some(72),
        fabric: Some(true),
        ..model("gb200", "NVIDIA GB200", "0x2941", 189_471, true)
    };
    let mut intent = intent(Some(model), &[None; 4]);
    intent.class.services = Services { fabric_manager: Some(false), imex: Some(true) };
    let gres = Gres { name: "gpu".into(), kind: "gb200".into(), count: 4 };
    intent.class.advertised.gres = vec![gres];
    intent
}

/// The same tray, under Kubernetes with the driver of Dynamic Resource Allocation.
pub(crate) fn dra_tray() -> NodeIntent {
    let mut intent = tray();
    intent.class.services.imex = Some(false);
    intent.class.advertised.gres.clear();
    let device = |index| DraDevice {
        name: format!("gpu-{index}"),
        kind: "gpu".into(),
        product: None,
        profile: None,
        memory: None,
    };
    intent.class.advertised.devices = (0..4).map(device).collect();
    intent
}

/// Two GPUs in 7 × 1g.10gb, under Kubernetes.
pub(crate) fn kubernetes_mig() -> NodeIntent {
    let mut intent = uniform_mig();
    let advertised = &mut intent.class.advertised;
    advertised.resources.insert("nvidia.com/mig-1g.10gb".into(), 14);
    advertised.labels.insert("nvidia.com/mig.config".into(), "p".into());
    advertised.labels.insert("fleetc.dev/pool".into(), "p".into());
    intent
}

/// Two GPUs in 7 × 1g.10gb, under Slurm.
pub(crate) fn slurm_mig() -> NodeIntent {
    let mut intent = uniform_mig();
    let gres = Gres { name: "gpu".into(), kind: "1g.10gb".into(), count: 14 };
    intent.class.advertised.gres = vec![gres];
    intent
}

/// Two GPUs from before rows were remapped.
pub(crate) fn old() -> NodeIntent {
    let model =
        GpuModel { row_remap: Some(false), ..model("t4", "Tesla T4", "0x1eb8", 15_360, false) };
    intent(Some(model), &[None, None])
}

/// Eight H200 NVL in two bridges of four.
pub(crate) fn islands() -> NodeIntent {
    let model = GpuModel {
        nvlink_domain: Some(4),
        ..model("h200-nvl-141gb", "NVIDIA H200 NVL", "0x233b", 143_771, true)
    };
    intent(Some(model), &[None; 8])
}

/// The same node, with the addresses of its GPUs in an inventory.
pub(crate) fn at_known_addresses(mut intent: NodeIntent) -> NodeIntent {
    let pci = intent.class.gpus.iter().map(|gpu| bus_id(gpu.slot)).collect();
    let path = ItemPath::item("pool", "p").keyed("pci", [&intent.node]);
    intent.known = Some(Override { nodes: Hostlist::single(&intent.node), pci, path });
    intent
}

fn h100() -> GpuModel {
    model("h100-sxm5-80gb", "NVIDIA H100 80GB HBM3", "0x2330", 81_559, true)
}

fn l40s() -> GpuModel {
    model("l40s-48gb", "NVIDIA L40S", "0x26b9", 46_068, false)
}

fn model(key: &str, name: &str, id: &str, mib: u64, mig_capable: bool) -> GpuModel {
    let (min, nominal, max) = (Mib(mib - 800), Mib(mib), Mib(mib + 800));
    GpuModel {
        key: key.parse().unwrap(),
        nvml_names: vec![name.into()],
        pci_device_ids: vec![id.into()],
        memory: Some(MemoryRange { min, nominal, max }),
        gres_type: "gpu".into(),
        mig_capable,
        mig_mode_needs_reset: false,
        nvlinks: 0,
        nvlink_domain: Some(1),
        fabric: Some(false),
        row_remap: Some(true),
    }
}

fn intent(model: Option<GpuModel>, gpus: &[Option<Slices>]) -> NodeIntent {
    let pool = ItemPath::item("pool", "p");
    let slot = |(index, slices): (u8, &Option<Slices>)| GpuSlot {
        slot: index,
        index,
        numa: None,
        mig: slices.map(instances),
        path: pool.child("sharing"),
    };
    let ids = model.iter().flat_map(|model| &model.pci_device_ids);
    let device_ids = ids.map(|id| id.parse().unwrap()).collect();
    let class = NodeClass {
        name: "p".parse().unwrap(),
        pool: "p".parse().unwrap(),
        cluster: "c".parse().unwrap(),
        system: "s".parse().unwrap(),
        host: Host { cpu: None, memory: None, pcie_width: None, ports: Vec::new() },
        gpu: model,
        gpus: (0..).zip(gpus).map(slot).collect(),
        missing: GpuIndexes::default(),
        driver: Driver { version: "580.105.08".parse().unwrap(), owner: DriverOwner::Os },
        services: Services::default(),
        policy: None,
        advertised: Advertised::default(),
        paths: ClassPaths {
            system: pool.child("system"),
            sharing: pool.child("sharing"),
            driver: Some(ItemPath::item("cluster", "c").child("driver")),
            exceptions: Vec::new(),
        },
    };
    NodeIntent {
        node: "n1".into(),
        class_sha256: String::new(),
        fleet: "lab".parse().unwrap(),
        rack: None,
        class,
        device_ids,
        known: None,
        sources: Sources::default(),
    }
}

fn instances((profile, profile_id, size, starts): Slices) -> Vec<GpuInstance> {
    let instance = |start: &u8| GpuInstance {
        profile: profile.parse().unwrap(),
        profile_id,
        placement: Placement { start: *start, size },
        memory: None,
    };
    starts.iter().map(instance).collect()
}

/// The bus id of the GPU with this rank.
pub(crate) fn bus_id(rank: u8) -> BusId {
    format!("0000:{:02x}:00.0", 16 * (rank + 1)).parse().unwrap()
}

/// The state of a node that conforms.
pub(crate) fn state_of(intent: &NodeIntent) -> NodeState {
    let Some(model) = &intent.class.gpu else {
        let none = "no driver on this node";
        let mut state = NodeState {
            driver: Reading::NotApplicable(none.into()),
            pci_gpus: Reading::Value(Vec::new()),
            gpus: Reading::NotApplicable("".into()),
            host: host_of(intent, &[]),
            ..NodeState::default()
        };
        state.driver_state.excluded = Reading::NotApplicable(none.into());
        return state;
    };
    let gpus: Vec<GpuState> =
        intent.class.gpus.iter().map(|slot| gpu_of(intent, model, slot)).collect();
    let pci_gpus: Vec<PciGpu> = gpus.iter().map(pci_of).collect();
    let mut state = NodeState {
        driver: Reading::Value("580.105.08".into()),
        pci_gpus: Reading::Value(pci_gpus),
        peers: Reading::Value(peers_of(model, &gpus)),
        host: host_of(intent, &gpus),
        ..NodeState::default()
    };
    state.driver_state.kernel_module = Reading::Value("580.105.08".into());
    state.driver_state.nvml = Reading::Value("13.580.105.08".into());
    state.driver_state.cuda = Reading::Value("13.0".into());
    state.driver_state.gpu_count = Reading::Value(u32::try_from(gpus.len()).unwrap());
    state.driver_state.excluded = Reading::Value(Vec::new());
    state.driver_state.confidential = Reading::NotApplicable("NVML: not supported".into());
    state.gpus = Reading::Value(gpus);
    state
}

fn pci_of(gpu: &GpuState) -> PciGpu {
    let value = |number| Reading::Value(number);
    PciGpu {
        answers: Reading::Value(true),
        kernel_driver: Reading::Value("nvidia".into()),
        link: PcieSysfs {
            width: value(16),
            max_width: value(16),
            generation: value(5),
            max_generation: value(5),
            numa_node: Reading::Value(gpu.index / 4),
        },
        ..PciGpu::new(gpu.bus_id, *gpu.device_id.value().unwrap())
    }
}

fn peers_of(model: &GpuModel, gpus: &[GpuState]) -> Vec<PeerLink> {
    let domain = usize::from(model.nvlink_domain.unwrap_or(1));
    let mut pairs = Vec::new();
    for (at, a) in gpus.iter().enumerate() {
        for (other, b) in gpus.iter().enumerate().skip(at + 1) {
            let nvlink = match at / domain == other / domain {
                true => P2pStatus::Ok,
                false => P2pStatus::NotSupported,
            };
            pairs.push(PeerLink { a: a.bus_id, b: b.bus_id, nvlink });
        }
    }
    pairs
}

fn host_of(intent: &NodeIntent, gpus: &[GpuState]) -> HostState {
    let class = &intent.class;
    let policy = class.policy.iter().map(|(_, policy)| policy);
    let service = |runs: Option<bool>| match runs {
        Some(true) => Service {
            unit: Reading::Value(UnitState::Active),
            version: Reading::Value("580.105.08".into()),
        },
        _ => Service {
            unit: Reading::Value(UnitState::NotFound),
            version: Reading::NotApplicable("not installed".into()),
        },
    };
    let modules = match gpus.is_empty() {
        false => vec!["nvidia".to_owned(), "nvidia_uvm".to_owned()],
        true => Vec::new(),
    };
    let cpu = class.host.cpu.map(|cpu| Cpu {
        sockets: cpu.sockets.into(),
        cores: cpu.cores.into(),
        threads: cpu.threads.into(),
    });
    HostState {
        time: Reading::Value(UnixTime(1_795_000_000)),
        uptime: Reading::Value(Seconds(86_400)),
        cpu: cpu.map_or_else(Reading::default, Reading::Value),
        // Firmware and kernel keep a part.
        memory: class
            .host
            .memory
            .map_or_else(Reading::default, |memory| Reading::Value(Mib(memory.0 / 100 * 98))),
        kernel_log: Reading::Value(KernelLog::default()),
        modules: Reading::Value(modules),
        device_nodes: Reading::Value(device_nodes(gpus)),
        mig_caps: match gpus.iter().any(|gpu| gpu.gpu_instances.value().is_some()) {
            true => Reading::Value(mig_caps(gpus)),
            false => Reading::NotApplicable("no MIG".into()),
        },
        fabric_manager: service(class.services.fabric_manager),
        imex: service(class.services.imex),
        infiniband: Reading::Value(class.host.ports.iter().flat_map(ports).collect()),
        mounts: Reading::Value(
            policy.clone().flat_map(|policy| &policy.mounts).map(mount).collect(),
        ),
        hugepages: Reading::Value(
            policy.clone().flat_map(|policy| &policy.hugepages).map(pages).collect(),
        ),
        slurm_gres: match class.advertised.gres.as_slice() {
            [] => Reading::NotApplicable("no slurmd".into()),
            wanted => Reading::Value(wanted.iter().map(|gres| slurm_gres(gres, gpus)).collect()),
        },
        kubernetes: match class.advertised.resources.is_empty()
            && class.advertised.devices.is_empty()
        {
            true => Reading::NotApplicable("no kubelet".into()),
            false => Reading::Value(allocatable(&class.advertised)),
        },
        ..HostState::default()
    }
}

fn mount(wanted: &WantedMount) -> Mount {
    Mount {
        target: wanted.target.to_string(),
        source: "/dev/md0".into(),
        kind: wanted.kind.as_ref().map_or_else(|| "ext4".to_owned(), ToString::to_string),
        read_only: false,
    }
}

fn pages(wanted: &WantedHugePages) -> HugePages {
    let count = wanted.count.into();
    HugePages { size_kib: wanted.size.kib(), total: count, free: count }
}

fn device_nodes(gpus: &[GpuState]) -> Vec<DeviceNode> {
    let node = |path: String, major, minor| DeviceNode { path, major, minor, mode: "0666".into() };
    let mut nodes = Vec::new();
    if !gpus.is_empty() {
        let minors = gpus.iter().map(|gpu| *gpu.identity.minor.value().unwrap());
        nodes.push(node("/dev/nvidia-uvm".into(), 511, 0));
        nodes.extend(minors.map(|minor| node(format!("/dev/nvidia{minor}"), 195, minor)));
        nodes.push(node("/dev/nvidiactl".into(), 195, 255));
    }
    nodes
}

fn mig_caps(gpus: &[GpuState]) -> Vec<MigCap> {
    let mut devices = vec![CapDevice::Config, CapDevice::Monitor];
    for gpu in gpus {
        let minor = *gpu.identity.minor.value().unwrap();
        for instance in gpu.gpu_instances.value().into_iter().flatten() {
            devices.push(CapDevice::GpuInstance { gpu: minor, id: instance.id });
            devices.push(CapDevice::ComputeInstance {
                gpu: minor,
                gpu_instance: instance.id,
                id: 0,
            });
        }
    }
    let with_number = (1..).zip(devices);
    with_number.map(|(cap, device)| MigCap { device, cap, has_node: true }).collect()
}

fn ports(wanted: &HostPorts) -> impl Iterator<Item = IbPort> {
    let rate = wanted.rate.map_or_else(Reading::default, |rate| Reading::Value(rate.0));
    (0..wanted.count).map(move |number| IbPort {
        device: format!("mlx5_{number}"),
        port: 1,
        state: Reading::Value("ACTIVE".into()),
        physical_state: Reading::Value("LinkUp".into()),
        rate: rate.clone(),
        link_layer: Reading::Value("InfiniBand".into()),
        firmware: Reading::Value("28.43.2026".into()),
        board: Reading::Value("MT_0000000838".into()),
        bus_id: Reading::default(),
    })
}

fn slurm_gres(wanted: &Gres, gpus: &[GpuState]) -> SlurmGres {
    let minors = gpus.iter().map(|gpu| *gpu.identity.minor.value().unwrap());
    SlurmGres {
        name: wanted.name.clone(),
        kind: Some(wanted.kind.clone()),
        count: wanted.count.into(),
        files: minors.map(|minor| format!("/dev/nvidia{minor}")).collect(),
    }
}

fn allocatable(advertised: &Advertised) -> Allocatable {
    let resources = advertised.resources.iter().map(|(name, count)| (name.clone(), *count));
    let labels = advertised.labels.iter().filter(|(name, _)| name.starts_with("nvidia.com/"));
    Allocatable {
        resources: resources.collect(),
        labels: labels.map(|(name, value)| (name.clone(), value.clone())).collect(),
    }
}

fn gpu_of(intent: &NodeIntent, model: &GpuModel, slot: &GpuSlot) -> GpuState {
    let h100 = || "0x2330".parse().unwrap();
    let device_id = intent.device_ids.first().copied().unwrap_or_else(h100);
    let name = model.nvml_names.first().map_or("NVIDIA H100 80GB HBM3", String::as_str);
    let current = slot.mig.is_some();
    let off = || "MIG mode is off".to_owned();
    let on = || "MIG mode is on".to_owned();
    GpuState {
        condition: Reading::Value(Condition::Usable),
        name: Reading::Value(name.to_owned()),
        device_id: Reading::Value(device_id),
        memory: model.memory.map_or_else(Reading::default, |range| Reading::Value(range.nominal)),
        memory_used: Reading::Value(Mib(0)),
        mig_mode: match model.mig_capable {
            true => Reading::Value(MigMode { current, pending: current }),
            false => Reading::NotApplicable("no MIG".into()),
        },
        gpu_instances: match &slot.mig {
            Some(mig) => Reading::Value(mig.iter().map(instance_state).collect()),
            None => Reading::NotApplicable(off()),
        },
        mig_devices: match &slot.mig {
            Some(mig) => Reading::Value((0..).zip(mig).map(|(at, _)| MigDevice::new(at)).collect()),
            None => Reading::NotApplicable(off()),
        },
        identity: Identity {
            minor: Reading::Value(slot.index.into()),
            uuid: Reading::Value(format!("GPU-00000000-0000-0000-0000-{:012}", slot.slot)),
            module_id: Reading::Value(u32::from(slot.index) + 1),
            platform: match model.nvlink_domain {
                Some(72) => Reading::Value(Platform {
                    chassis_serial: "1820325191234".into(),
                    slot: 12,
                    tray: 3,
                    host: 1,
                    peer_type: 1,
                    module_id: slot.index + 1,
                }),
                _ => Reading::NotApplicable("NVML: not supported".into()),
            },
            ..Identity::default()
        },
        modes: Modes {
            ecc: Reading::Value(MigMode { current: true, pending: true }),
            persistence: Reading::Value(true),
            compute: Reading::Value(ComputeMode::Default),
            addressing: Reading::NotApplicable("NVML: not supported".into()),
            virtualization: Reading::Value(VirtualizationMode::None),
        },
        power: Power {
            limit: Reading::Value(Milliwatts(700_000)),
            default_limit: Reading::Value(Milliwatts(700_000)),
            enforced_limit: Reading::Value(Milliwatts(700_000)),
            min_limit: Reading::Value(Milliwatts(200_000)),
            max_limit: Reading::Value(Milliwatts(700_000)),
        },
        clocks: Clocks { max_sm: Reading::Value(Mhz(1_980)), ..Clocks::default() },
        pcie: PcieLink {
            width: Reading::Value(16),
            max_width: Reading::Value(16),
            generation: Reading::Value(5),
            max_generation: Reading::Value(5),
            device_generation: Reading::Value(5),
            replays: Reading::Value(0),
        },
        nvlinks: match (current, model.nvlinks) {
            (true, _) => Reading::NotApplicable(on()),
            (false, 0) => Reading::NotApplicable("NVML: not supported".into()),
            (false, count) => Reading::Value((0..count.into()).map(nvlink).collect()),
        },
        fabric: match model.fabric {
            Some(true) => Reading::Value(Fabric {
                state: FabricState::Completed,
                status: 0,
                // A node with its own switches is alone, and its UUID is all zero.
                cluster_uuid: match model.nvlink_domain {
                    Some(72) => "a9c9cb85-8f2a-4c6b-9b0c-2f9b3a1f5d10".into(),
                    _ => "00000000-0000-0000-0000-000000000000".into(),
                },
                clique: 0,
                health: Reading::Value(FabricHealth { mask: 0, summary: Some(1) }),
            }),
            Some(false) | None => Reading::NotApplicable("NVML: not supported".into()),
        },
        health: health_of(model, current),
        processes: Processes { compute: Reading::Value(Vec::new()) },
        firmware: Firmware {
            vbios: Reading::Value("96.00.74.00.01".into()),
            inforom: Reading::Value("G520.0200.00.05".into()),
            inforom_valid: Reading::Value(true),
            gsp: Reading::Value("580.105.08".into()),
        },
        ..GpuState::new(bus_id(slot.index), slot.index.into())
    }
}

fn nvlink(link: u32) -> NvLink {
    NvLink {
        active: Reading::Value(true),
        version: Reading::Value(4),
        remote: Reading::Value(NvLinkRemote::Switch),
        remote_bus_id: Reading::NotApplicable("the fabric hides it".into()),
        ..NvLink::new(link)
    }
}

fn health_of(model: &GpuModel, mig: bool) -> Health {
    let (correctable, uncorrectable, pending, failure) = (0, 0, false, false);
    let none = EccCounts { corrected: 0, uncorrected: 0 };
    let not_supported = "NVML: not supported";
    let remaps = model.row_remap == Some(true) && !mig;
    let absent = || not_supported.to_owned();
    let (max, high, partial, low) = (2560, 0, 0, 0);
    Health {
        recovery_action: Reading::Value(RecoveryAction::None),
        remapped_rows: match remaps {
            true => Reading::Value(RemappedRows { correctable, uncorrectable, pending, failure }),
            false => Reading::NotApplicable(absent()),
        },
        row_histogram: match remaps {
            true => Reading::Value(RowHistogram { max, high, partial, low, none: 0 }),
            false => Reading::NotApplicable(absent()),
        },
        retired_pages: match model.row_remap {
            Some(false) => Reading::Value(RetiredPages { single_bit: 0, double_bit: 0, pending }),
            _ => Reading::NotApplicable(absent()),
        },
        ecc_volatile: Reading::Value(none),
        ecc_aggregate: Reading::Value(none),
        sram_threshold_exceeded: Reading::Value(false),
        repair_pending: Reading::Value(RepairPending { channel: false, tpc: false }),
        clocks_event_reasons: Reading::Value(ClocksEventReasons(1)),
        nvlink_errors: match (mig, model.nvlinks) {
            (false, count @ 1..) => Reading::Value((0..count.into()).map(no_errors).collect()),
            _ => Reading::NotApplicable(absent()),
        },
        thermal: Thermal {
            gpu: Reading::Value(Celsius(35)),
            slowdown: Reading::Value(Celsius(87)),
            shutdown: Reading::Value(Celsius(92)),
            margin: Reading::Value(Celsius(52)),
        },
    }
}

fn no_errors(link: u32) -> NvLinkErrors {
    NvLinkErrors { link, replay: 0, recovery: 0, crc_flit: 0 }
}

fn instance_state(instance: &GpuInstance) -> GpuInstanceState {
    let (profile_id, placement) = (instance.profile_id, instance.placement);
    let whole = Placement { start: 0, size: instance.profile.slices };
    let compute = ComputeInstanceState { id: 0, profile_id: 0, placement: whole };
    GpuInstanceState {
        id: u32::from(placement.start) + 1,
        profile_id,
        placement,
        compute_instances: Reading::Value(vec![compute]),
    }
}
