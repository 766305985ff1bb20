//! Snapshots of nodes that are as a class says.

use fleetc_schema::intent::{FabricKind, NodeClass};
use fleetc_validate::observe::SNAPSHOT_SCHEMA;
use serde_json::{Value, json};

/// A snapshot of a node that conforms to a class.
pub fn conforming(node: &str, class: &NodeClass) -> Value {
    let bus_id = |slot: u8| format!("00000000:{:02x}:00.0", 0x10 + slot * 8);
    let device = class.gpu.as_ref().and_then(|gpu| gpu.pci_device_ids.first());
    let name = class.gpu.as_ref().and_then(|gpu| gpu.nvml_names.first());
    let memory = class.gpu.as_ref().and_then(|gpu| gpu.memory).map(|memory| memory.nominal.0);
    let mig_capable = class.gpu.as_ref().is_some_and(|gpu| gpu.mig_capable);
    let pci: Vec<Value> = class
        .gpus
        .iter()
        .map(|gpu| {
            json!({
                "bus_id": bus_id(gpu.slot), "device_id": device,
                "answers": { "value": true }, "kernel_driver": { "value": "nvidia" },
            })
        })
        .collect();
    let policy = class.policy.as_ref().map(|(_, policy)| policy);
    let nvlinks = policy.and_then(|policy| policy.nvlinks);
    let nvlinks = nvlinks.or(class.gpu.as_ref().map(|gpu| gpu.nvlinks)).unwrap_or(0);
    let generation = policy.and_then(|policy| policy.pcie_gen).unwrap_or(5);
    let width = policy.and_then(|policy| policy.pcie_width).unwrap_or(16);
    let mounts = policy.into_iter().flat_map(|policy| &policy.mounts).map(|mount| {
        let kind = mount.kind.as_ref().map_or("ext4", |kind| kind.as_str());
        json!({ "target": mount.target, "source": "/dev/md0", "type": kind, "read_only": false })
    });
    let mounts: Vec<Value> = mounts.collect();
    let hugepages = policy.into_iter().flat_map(|policy| &policy.hugepages).map(
        |pages| json!({ "size_kib": pages.size.kib(), "total": pages.count, "free": pages.count }),
    );
    let hugepages: Vec<Value> = hugepages.collect();
    let power = policy.and_then(|policy| policy.power_limit).map_or(300, |watts| watts.0);
    let power = json!({ "value": power * 1_000 });
    let ecc = policy.and_then(|policy| policy.ecc).unwrap_or(true);
    let persistence = policy.and_then(|policy| policy.persistence).unwrap_or(true);
    let (width, generation) = (json!({ "value": width }), json!({ "value": generation }));
    let driver = json!({ "value": class.driver.version.to_string() });
    let no_errors = json!({ "value": { "corrected": 0, "uncorrected": 0 } });
    let gpus: Vec<Value> = class
        .gpus
        .iter()
        .map(|gpu| {
            let on = gpu.mig.is_some();
            let links: Vec<Value> = (0..nvlinks)
                .map(|link| json!({ "link": link, "active": { "value": true } }))
                .collect();
            let instances: Vec<Value> = gpu
                .mig
                .iter()
                .flatten()
                .zip(1..)
                .map(|(instance, id)| {
                    json!({
                        "id": id,
                        "profile_id": instance.profile_id,
                        "placement": instance.placement,
                        "compute_instances": { "value": [{
                            "id": 0,
                            "profile_id": 0,
                            "placement": { "start": 0, "size": instance.profile.slices },
                        }] },
                    })
                })
                .collect();
            let devices: Vec<Value> =
                (0..instances.len()).map(|index| json!({ "index": index })).collect();
            json!({
                "bus_id": bus_id(gpu.slot),
                "index": gpu.index,
                "condition": { "value": "usable" },
                "name": { "value": name },
                "device_id": { "value": device },
                "memory_mib": { "value": memory },
                "mig_mode": match mig_capable {
                    true => json!({ "value": { "current": on, "pending": on } }),
                    false => json!({ "not_applicable": "the GPU has no MIG" }),
                },
                "gpu_instances": match on {
                    true => json!({ "value": instances }),
                    false => json!({ "not_applicable": "MIG mode is off" }),
                },
                "mig_devices": match on {
                    true => json!({ "value": devices }),
                    false => json!({ "not_applicable": "MIG mode is off" }),
                },
                "identity": { "minor": { "value": gpu.index } },
                "modes": {
                    "ecc": { "value": { "current": ecc, "pending": ecc } },
                    "persistence": { "value": persistence },
                    "compute": { "value": "default" },
                },
                "power": { "limit_mw": power, "enforced_limit_mw": power },
                "pcie": {
                    "width": width, "max_width": width,
                    "generation": generation, "max_generation": generation,
                },
                "nvlinks": match (on, nvlinks) {
                    (true, _) => json!({ "not_applicable": "MIG mode is on" }),
                    (false, 0) => json!({ "not_applicable": "NVML: not supported" }),
                    (false, _) => json!({ "value": links }),
                },
                "fabric": match class.gpu.as_ref().is_some_and(|gpu| gpu.fabric == Some(true)) {
                    true => json!({ "value": {
                        "state": "completed", "status": 0, "clique": 1,
                        "cluster_uuid": "7f6d1c8e-52b1-4a0e-9d0b-6f0f7d7b4a11",
                        "health": { "value": { "mask": 0, "summary": 1 } },
                    } }),
                    false => json!({ "not_applicable": "NVML: not supported" }),
                },
                "health": {
                    "recovery_action": { "value": "none" },
                    "remapped_rows": match on {
                        true => json!({ "not_applicable": "NVML: not supported" }),
                        false => json!({ "value": {
                            "correctable": 0, "uncorrectable": 0, "pending": false, "failure": false,
                        } }),
                    },
                    "ecc_volatile": no_errors,
                    "ecc_aggregate": no_errors,
                    "sram_threshold_exceeded": { "value": false },
                    "clocks_event_reasons": { "value": 1 },
                },
                "firmware": { "gsp": driver },
            })
        })
        .collect();
    let gres: Vec<Value> = class
        .advertised
        .gres
        .iter()
        .map(|gres| {
            json!({ "name": gres.name, "type": gres.kind, "count": gres.count, "files": [] })
        })
        .collect();
    let slots: Vec<u8> = class.gpus.iter().map(|gpu| gpu.slot).collect();
    let pairs = slots.iter().flat_map(|a| {
        let after = slots.iter().filter(move |b| a < b);
        after.map(move |b| json!({ "a": bus_id(*a), "b": bus_id(*b), "nvlink": "ok" }))
    });
    let pairs: Vec<Value> = pairs.collect();
    json!({
        "schema": SNAPSHOT_SCHEMA,
        "node": node,
        "state": {
            "driver": driver,
            "driver_state": {
                "kernel_module": driver,
                "nvml": { "value": format!("13.{}", class.driver.version) },
                "gpu_count": { "value": class.gpus.len() },
                "excluded": { "value": [] },
            },
            "pci_gpus": { "value": pci },
            "gpus": { "value": gpus },
            "peers": { "value": pairs },
            "host": {
                "mounts": { "value": mounts },
                "hugepages": { "value": hugepages },
                "uptime": { "value": "1d" },
                "kernel_log": { "value": { "events": [], "truncated": false } },
                "modules": { "value": ["nvidia", "nvidia_uvm"] },
                "device_nodes": { "value": device_nodes(class) },
                "mig_caps": { "value": capabilities(class) },
                "fabric_manager": service(class.services.fabric_manager, &driver),
                "imex": service(class.services.imex, &driver),
                "infiniband": { "value": ports(class) },
                "slurm_gres": { "value": gres },
                "kubernetes": { "value": {
                    "resources": class.advertised.resources, "labels": class.advertised.labels,
                } },
            },
        },
    })
}

fn device_nodes(class: &NodeClass) -> Vec<Value> {
    let gpus = class.gpus.iter().map(|gpu| (format!("/dev/nvidia{}", gpu.index), gpu.index));
    let shared = [("/dev/nvidia-uvm".to_owned(), 0), ("/dev/nvidiactl".to_owned(), 255)];
    let all = gpus.chain(shared);
    all.map(|(path, minor)| json!({ "path": path, "major": 195, "minor": minor, "mode": "0666" }))
        .collect()
}

/// Two capabilities a GPU instance, whose ids count from 1.
fn capabilities(class: &NodeClass) -> Vec<Value> {
    let mut all = Vec::new();
    for gpu in &class.gpus {
        for (_, id) in gpu.mig.iter().flatten().zip(1..) {
            let compute = json!({ "gpu": gpu.index, "gpu_instance": id, "id": 0 });
            all.push(json!({ "gpu_instance": { "gpu": gpu.index, "id": id } }));
            all.push(json!({ "compute_instance": compute }));
        }
    }
    let numbered = all.into_iter().zip(3..);
    numbered
        .map(
            |(device, cap): (Value, u32)| json!({ "device": device, "cap": cap, "has_node": true }),
        )
        .collect()
}

fn service(runs: Option<bool>, driver: &Value) -> Value {
    match runs {
        Some(true) => json!({ "unit": { "value": "active" }, "version": driver }),
        Some(false) | None => json!({
            "unit": { "value": "not_found" }, "version": { "not_applicable": "not installed" },
        }),
    }
}

fn ports(class: &NodeClass) -> Vec<Value> {
    let mut all = Vec::new();
    for wanted in &class.host.ports {
        let layer = match wanted.kind {
            FabricKind::Infiniband => "InfiniBand",
            FabricKind::Roce | FabricKind::Ethernet | FabricKind::Efa => "Ethernet",
        };
        for _ in 0..wanted.count {
            all.push(json!({
                "device": format!("mlx5_{}", all.len()), "port": 1,
                "state": { "value": "ACTIVE" }, "link_layer": { "value": layer },
                "rate_gbit": { "value": wanted.rate.map_or(400, |rate| rate.0) },
            }));
        }
    }
    all
}
