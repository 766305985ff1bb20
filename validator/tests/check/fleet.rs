//! The fleet of these tests, a node that conforms to it, and one way to run the program.
//!
//! Nodes mig01 and mig02 are of a system with four H100, of which GPU 1 is gone. GPUs 0 and 2 are cut
//! into 7 × 1g.10gb, GPU 3 into 2 × 3g.40gb. So NVML's indexes are 0, 1 and 2.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use fleetc_schema::intent::Advertised;
use fleetc_validate::cli::{self, Environment};
use serde_json::{Value, json};
use tempfile::TempDir;

const SEVEN: &[u8] = &[0, 1, 2, 3, 4, 5, 6];

pub fn index() -> Value {
    json!({
        "schema": "fleetc/index/v1",
        "fleet": "lab",
        "classes": { "train": "gpu[01-04]", "slices.hpc": "mig[01-02]" },
        "racks": { "r1": "gpu[01-04]", "r2": "mig[01-02]" },
    })
}

pub fn class() -> Value {
    let instance = |profile: &str, id: u32, size: u8, start: u8| {
        let placement = json!({ "start": start, "size": size });
        json!({ "profile": profile, "profile_id": id, "placement": placement, "memory": null })
    };
    let gpu = |slot: u8, index: u8, gpus: &str, mig: Vec<Value>| {
        let path = format!("pool/slices/sharing/gpus[{gpus}]");
        json!({ "slot": slot, "index": index, "mig": mig, "path": path })
    };
    let seven = || SEVEN.iter().map(|start| instance("1g.10gb", 19, 1, *start)).collect();
    let two = vec![instance("3g.40gb", 9, 4, 0), instance("3g.40gb", 9, 4, 4)];
    json!({
        "schema": "fleetc/class/v1",
        "class": {
            "name": "slices.hpc", "pool": "slices", "cluster": "hpc", "system": "h100-4",
            "host": { "cpu": null, "memory": null },
            "gpu": {
                "key": "h100-sxm5-80gb",
                "nvml_names": ["NVIDIA H100 80GB HBM3"],
                "pci_device_ids": ["0x2330"],
                "memory": { "min": 80_000, "nominal": 81_559, "max": 83_000 },
                "gres_type": "h100", "mig_capable": true,
                "mig_mode_needs_reset": false, "nvlinks": 18,
            },
            "gpus": [gpu(0, 0, "0-2", seven()), gpu(2, 1, "0-2", seven()), gpu(3, 2, "3", two)],
            "missing": "1",
            "driver": { "version": "580.105.08", "owner": "os" },
            "policy": null,
            "advertised": Advertised::default(),
            "paths": {
                "system": "pool/slices/system",
                "sharing": "pool/slices/sharing",
                "exceptions": [
                    { "nodes": "mig[01-02]", "path": "pool/slices/exception[mig[01-02]]" },
                ],
            },
        },
    })
}

pub fn sources() -> String {
    let line = |path: &str, line: u32| {
        let place = json!({ "path": path, "file": "lab/fleet.kdl", "line": line,
            "column": 5, "start": 0, "end": 9 });
        format!("{place}\n")
    };
    [
        line("pool/train", 25),
        line("pool/slices", 29),
        line("pool/slices/sharing/gpus[0-2]", 33),
        line("pool/slices/exception[mig[01-02]]", 36),
    ]
    .concat()
}

pub const BUS_IDS: [&str; 3] = ["00000000:1b:00.0", "00000000:43:00.0", "00000000:52:00.0"];

/// The node with every reading that a check of its class asks for.
pub fn snapshot() -> Value {
    let instance = |id: u8, profile: u32, size: u8, slices: u8, start: u8| {
        let whole =
            json!({ "id": 0, "profile_id": 0, "placement": { "start": 0, "size": slices } });
        json!({
            "id": id, "profile_id": profile, "placement": { "start": start, "size": size },
            "compute_instances": { "value": [whole] },
        })
    };
    let seven = || SEVEN.iter().map(|start| instance(start + 7, 19, 1, 1, *start)).collect();
    let two = vec![instance(2, 9, 4, 3, 4), instance(1, 9, 4, 3, 0)];
    let layouts: [Vec<Value>; 3] = [seven(), seven(), two];
    let none = json!({ "value": { "corrected": 0, "uncorrected": 0 } });
    let gpu = |index: u32, bus_id: &str, instances: Vec<Value>| {
        let devices: Vec<Value> =
            (0..instances.len()).map(|index| json!({ "index": index })).collect();
        json!({
            "bus_id": bus_id, "index": index,
            "condition": { "value": "usable" },
            "name": { "value": "NVIDIA H100 80GB HBM3" },
            "device_id": { "value": "0x2330" },
            "memory_mib": { "value": 81_559 },
            "mig_mode": { "value": { "current": true, "pending": true } },
            "gpu_instances": { "value": instances },
            "mig_devices": { "value": devices },
            "identity": { "minor": { "value": index } },
            "modes": { "compute": { "value": "default" } },
            "health": {
                "recovery_action": { "value": "none" },
                "remapped_rows": { "not_applicable": "NVML: not supported" },
                "ecc_volatile": none,
                "sram_threshold_exceeded": { "value": false },
                "clocks_event_reasons": { "value": 1 },
            },
        })
    };
    let gpus: Vec<Value> = (0..)
        .zip(BUS_IDS.iter().zip(layouts))
        .map(|(index, (bus_id, instances))| gpu(index, bus_id, instances))
        .collect();
    // PCI in the spelling of sysfs.
    let pci: Vec<Value> = BUS_IDS
        .iter()
        .map(|id| {
            json!({
                "bus_id": id.replacen("0000", "", 1), "device_id": "0x2330",
                "answers": { "value": true }, "kernel_driver": { "value": "nvidia" },
            })
        })
        .collect();
    let caps: Vec<Value> = gpus
        .iter()
        .flat_map(|gpu| {
            let index = gpu["index"].clone();
            let instances = gpu["gpu_instances"]["value"].as_array().unwrap();
            instances.iter().flat_map(move |instance| {
                let id = &instance["id"];
                let whole = json!({ "gpu_instance": { "gpu": index, "id": id } });
                let compute = json!({ "gpu": index, "gpu_instance": id, "id": 0 });
                [whole, json!({ "compute_instance": compute })]
            })
        })
        .zip(3..)
        .map(
            |(device, cap): (Value, u32)| json!({ "device": device, "cap": cap, "has_node": true }),
        )
        .collect();
    let node = |path: &str, minor: u32| json!({ "path": path, "major": 195, "minor": minor, "mode": "0666" });
    json!({
        "schema": "fleetc/snapshot/v2",
        "node": "mig01",
        "state": {
            "driver": { "value": "580.105.08" },
            "driver_state": {
                "kernel_module": { "value": "580.105.08" },
                "nvml": { "value": "13.580.105.08" },
                "gpu_count": { "value": 3 },
                "excluded": { "value": [] },
            },
            "pci_gpus": { "value": pci },
            "gpus": { "value": gpus },
            "host": {
                "uptime": { "value": "24h" },
                "kernel_log": { "value": { "events": [], "truncated": false } },
                "modules": { "value": ["nvidia", "nvidia_uvm"] },
                "device_nodes": { "value": [
                    node("/dev/nvidia-uvm", 0), node("/dev/nvidia0", 0), node("/dev/nvidia1", 1),
                    node("/dev/nvidia2", 2), node("/dev/nvidiactl", 255),
                ] },
                "mig_caps": { "value": caps },
            },
        },
    })
}

/// What a run of the program did.
#[derive(Debug)]
pub struct Run {
    pub code: u8,
    pub out: String,
    pub err: String,
}

pub fn run(args: &[&str], env: Environment) -> Run {
    let args = ["fleetc-validate"].iter().chain(args).map(OsString::from);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = cli::run(args, env, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code, out: text(out), err: text(err) }
}

/// A folder with the intent, and a snapshot beside it.
pub fn stage() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("intent/classes")).unwrap();
    write(dir.path(), "intent/index.json", &index().to_string());
    write(dir.path(), "intent/classes/slices.hpc.json", &class().to_string());
    write(dir.path(), "intent/sources.jsonl", &sources());
    write(dir.path(), "node.json", &snapshot().to_string());
    dir
}

pub fn write(dir: &Path, name: &str, text: &str) {
    fs::write(dir.join(name), text).unwrap();
}

pub fn check_with(dir: &TempDir, more: &[&str]) -> Run {
    let intent = dir.path().join("intent");
    let source = format!("snapshot:{}", dir.path().join("node.json").display());
    let args = ["check", "--intent", intent.to_str().unwrap(), "--source", &source];
    run(&[&args[..], more].concat(), Environment::default())
}

pub fn check(dir: &TempDir) -> Run {
    check_with(dir, &["--node", "mig01"])
}

/// Runs `check` on the conforming node after a change to its state.
pub fn check_changed(change: impl FnOnce(&mut Value)) -> Run {
    let (dir, mut snapshot) = (stage(), snapshot());
    change(&mut snapshot["state"]);
    write(dir.path(), "node.json", &snapshot.to_string());
    check(&dir)
}

/// Runs `check` with one file replaced; it must be refused.
pub fn refused(file: &str, text: &str) -> String {
    let dir = stage();
    write(dir.path(), file, text);
    let Run { code, out, err } = check(&dir);
    assert_eq!((code, out.as_str()), (cli::EXIT_INPUT, ""), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    err.replace(dir.path().to_str().unwrap(), "DIR")
}
