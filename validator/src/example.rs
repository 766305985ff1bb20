//! Small classes, and states of nodes that conform to them. For tests.

use fleetc_schema::intent::{
    Advertised, ClassPaths, Driver, DriverOwner, GpuIndexes, GpuInstance, GpuModel, GpuSlot, Host,
    MemoryRange, NodeClass, Override,
};
use fleetc_schema::mig::Placement;
use fleetc_schema::units::Mib;
use fleetc_schema::{Hostlist, ItemPath};

use crate::intent::{NodeIntent, Sources};
use crate::state::{GpuInstanceState, GpuState, MigMode, NodeState, PciGpu, Reading};
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
    }
}

fn intent(model: Option<GpuModel>, gpus: &[Option<Slices>]) -> NodeIntent {
    let pool = ItemPath::item("pool", "p");
    let slot = |(index, slices): (u8, &Option<Slices>)| GpuSlot {
        slot: index,
        index,
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
        host: Host { cpu: None, memory: None },
        gpu: model,
        gpus: (0..).zip(gpus).map(slot).collect(),
        missing: GpuIndexes::default(),
        driver: Driver { version: "580.105.08".parse().unwrap(), owner: DriverOwner::Os },
        policy: None,
        advertised: Advertised::default(),
        paths: ClassPaths {
            system: pool.child("system"),
            sharing: pool.child("sharing"),
            exceptions: Vec::new(),
        },
    };
    NodeIntent {
        node: "n1".into(),
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
        let none = || Reading::NotApplicable("no driver on this node".to_owned());
        let pci_gpus = Reading::Value(Vec::new());
        return NodeState { driver: none(), pci_gpus, gpus: Reading::NotApplicable("".into()) };
    };
    let h100 = || "0x2330".parse().unwrap();
    let device_id = intent.device_ids.first().copied().unwrap_or_else(h100);
    let name = model.nvml_names.first().map_or("NVIDIA H100 80GB HBM3", String::as_str);
    let gpu = |slot: &GpuSlot| {
        let current = slot.mig.is_some();
        GpuState {
            bus_id: bus_id(slot.index),
            index: slot.index.into(),
            name: Reading::Value(name.to_owned()),
            device_id: Reading::Value(device_id),
            memory: Reading::Value(model.memory.unwrap().nominal),
            mig_mode: match model.mig_capable {
                true => Reading::Value(MigMode { current, pending: current }),
                false => Reading::NotApplicable("no MIG".into()),
            },
            gpu_instances: match &slot.mig {
                Some(mig) => Reading::Value(mig.iter().map(instance_state).collect()),
                None => Reading::NotApplicable("MIG mode is off".into()),
            },
        }
    };
    let gpus: Vec<GpuState> = intent.class.gpus.iter().map(gpu).collect();
    let pci_gpus = gpus.iter().map(|gpu| PciGpu { bus_id: gpu.bus_id, device_id });
    NodeState {
        driver: Reading::Value("580.105.08".into()),
        pci_gpus: Reading::Value(pci_gpus.collect()),
        gpus: Reading::Value(gpus),
    }
}

fn instance_state(instance: &GpuInstance) -> GpuInstanceState {
    let (profile_id, placement) = (instance.profile_id, instance.placement);
    GpuInstanceState { id: u32::from(placement.start) + 1, profile_id, placement }
}
