//! Snapshots of nodes that are as a class says.

use fleetc_schema::intent::NodeClass;
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
        .map(|gpu| json!({ "bus_id": bus_id(gpu.slot), "device_id": device }))
        .collect();
    let gpus: Vec<Value> = class
        .gpus
        .iter()
        .map(|gpu| {
            let on = gpu.mig.is_some();
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
                    })
                })
                .collect();
            json!({
                "bus_id": bus_id(gpu.slot),
                "index": gpu.index,
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
            })
        })
        .collect();
    json!({
        "schema": "fleetc/snapshot/v1",
        "node": node,
        "driver": { "value": class.driver.version.to_string() },
        "pci_gpus": { "value": pci },
        "gpus": { "value": gpus },
    })
}
