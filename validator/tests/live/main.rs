//! The program on a node: through the real loader, against a library that answers from a file.

#![cfg(test)]

mod checks;
mod faults;
mod fix;
mod history;
mod stage;

use fleetc_fake_nvml::node::{Effect, Fabric};
use fleetc_schema::catalog::Catalog;
use serde_json::{Value, json};

use stage::{Stage, fault, sliced, stage, whole};

/// A node that is as it should be, live and from its snapshot, to the byte.
fn conforms(stage: &Stage) -> Value {
    let live = stage.check();
    assert_eq!(live.findings(), [], "{}", live.err);
    assert_eq!((live.code, live.err.as_str()), (0, ""));
    let state = stage.snapshot();
    let kept = stage.check_snapshot();
    assert_eq!((kept.code, kept.out), (0, live.out));
    assert!(stage.notes().is_empty(), "no probe is left: {:?}", stage.notes());
    state
}

#[test]
fn eight_whole_h100_are_read_in_full() {
    let state = conforms(&whole());
    let gpu = &state["gpus"]["value"][3];
    assert_eq!(gpu["bus_id"], "00000000:40:00.0");
    assert_eq!(gpu["index"], 3);
    assert_eq!(gpu["device_id"], json!({ "value": "0x2330" }));
    assert_eq!(gpu["memory_mib"], json!({ "value": 81_559 }));
    assert_eq!(gpu["memory_used_mib"], json!({ "value": 0 }), "what is reserved is not in use");
    assert_eq!(gpu["mig_mode"], json!({ "value": { "current": false, "pending": false } }));
    assert_eq!(gpu["gpu_instances"], json!({ "not_applicable": "MIG mode is off" }));
    assert_eq!(gpu["modes"]["ecc"], json!({ "value": { "current": true, "pending": true } }));
    assert_eq!(gpu["power"]["max_limit_mw"], json!({ "value": 700_000 }));
    let deprecated = json!({ "not_applicable": "NVML: deprecated" });
    assert_eq!(gpu["clocks"]["application_sm_mhz"], deprecated);
    assert_eq!(gpu["pcie"]["device_generation"], json!({ "value": 5 }));
    let links = gpu["nvlinks"]["value"].as_array().unwrap();
    assert_eq!(links.len(), 18);
    assert_eq!(links[17]["active"], json!({ "value": true }));
    assert_eq!(links[17]["remote"], json!({ "value": "switch" }));
    let hidden = json!({ "not_applicable": "the fabric hides it" });
    assert_eq!(links[17]["remote_bus_id"], hidden);
    assert_eq!(gpu["fabric"]["value"]["state"], "completed");
    assert_eq!(gpu["fabric"]["value"]["health"]["value"]["summary"], 1);
    assert_eq!(gpu["health"]["recovery_action"], json!({ "value": "none" }));
    assert_eq!(gpu["health"]["thermal"]["margin"], json!({ "value": 50 }));
    assert_eq!(gpu["firmware"]["gsp"], json!({ "value": "580.105.08" }));
    assert_eq!(gpu["numa"]["near_nodes"], json!({ "value": [0] }));
    let placements = gpu["mig_profiles"]["value"][0]["placements"]["value"].as_array().unwrap();
    assert_eq!(placements.len(), 7, "1g.10gb stands at 0 to 6");
    assert_eq!(state["peers"]["value"].as_array().unwrap().len(), 28, "8 × 7 / 2 pairs");
    assert_eq!(state["pci_gpus"]["value"].as_array().unwrap().len(), 8, "no NVSwitch");
    assert_eq!(state["pci_gpus"]["value"][0]["link"]["max_generation"], json!({ "value": 5 }));
    assert_eq!(state["driver_state"]["cuda"], json!({ "value": "13.0" }));
    assert_eq!(state["driver_state"]["kernel_module"], json!({ "value": "580.105.08" }));
    assert_eq!(state["host"]["memory_mib"], json!({ "value": 2_063_888 }));
}

#[test]
fn a_sliced_node_is_read_with_its_placements() {
    let state = conforms(&sliced());
    let gpu = &state["gpus"]["value"][2];
    let instances = gpu["gpu_instances"]["value"].as_array().unwrap();
    assert_eq!(instances.len(), 2);
    assert_eq!(instances[1]["placement"], json!({ "start": 4, "size": 4 }));
    let compute = json!({ "value": [
        { "id": 0, "profile_id": 2, "placement": { "start": 0, "size": 3 } },
    ] });
    assert_eq!(instances[1]["compute_instances"], compute);
    let devices = gpu["mig_devices"]["value"].as_array().unwrap();
    let indexes: Vec<u64> =
        devices.iter().map(|device| device["index"].as_u64().unwrap()).collect();
    assert_eq!(indexes, [0, 2], "a hole is not the end");
    assert_eq!(devices[1]["gpu_instance"], json!({ "value": 2 }));
    assert_eq!(devices[1]["name"], json!({ "value": "NVIDIA H100 80GB HBM3 MIG 3g.40gb" }));
    assert_eq!(gpu["nvlinks"], json!({ "not_applicable": "MIG mode is on" }));
    let not_supported = json!({ "not_applicable": "NVML: not supported" });
    assert_eq!(gpu["health"]["remapped_rows"], not_supported, "not with GPU instances");
}

/// A layout of every GPU with MIG: one instance of each profile that has room, largest last.
#[test]
fn every_gpu_of_the_catalog_with_mig_is_read_as_it_is_cut() {
    let catalog = Catalog::embedded().unwrap();
    let mut families = 0;
    for row in catalog.mig_tables() {
        let Some(key) = row
            .gpus
            .iter()
            .map(ToString::to_string)
            .find(|key| catalog.gpu(key).is_some_and(|gpu| gpu.nvml_name.is_some()))
        else {
            continue;
        };
        families += 1;
        for profile in &row.table.profiles {
            let name = profile.name.to_string();
            let layout = [(name.as_str(), u32::from(profile.max_count))];
            let stage = stage(&key, 1, &[&layout]);
            let run = stage.check();
            assert_eq!((run.code, run.findings()), (0, Vec::new()), "{key} {name}: {}", run.err);
        }
    }
    assert!(families >= 9, "A30, A100, H100, H200, B200 and so on: {families}");
}

#[test]
fn pairs_of_gpus_in_mig_mode_are_missing() {
    let state = conforms(&stage("h100-sxm5-80gb", 4, &[&[("3g.40gb", 2)]]));
    let peers = state["peers"]["value"].as_array().unwrap();
    assert_eq!(peers.len(), 3, "three GPUs are whole");
}

#[test]
fn a_tray_of_gb200_says_its_clique_and_its_place() {
    let mut stage = stage("gb200", 4, &[]);
    for gpu in &mut stage.node.gpus {
        let cluster_uuid = *b"0123456789abcdef";
        gpu.fabric =
            Some(Fabric { cluster_uuid, status: 0, clique: 7, state: 3, mask: 0, summary: 1 });
        gpu.platform = Some(("1820325191234".into(), [12, 3, 1, 1, 2]));
        gpu.c2c = Some(1);
        gpu.numa_node = Some(2);
        gpu.addressing = Some(2);
    }
    let state = conforms(&stage);
    let gpu = &state["gpus"]["value"][0];
    assert_eq!(gpu["fabric"]["value"]["clique"], 7);
    assert_eq!(gpu["fabric"]["value"]["cluster_uuid"], "30313233-3435-3637-3839-616263646566");
    let platform = json!({ "value": { "chassis_serial": "1820325191234", "slot": 12, "tray": 3,
        "host": 1, "peer_type": 1, "module_id": 2 } });
    assert_eq!(gpu["identity"]["platform"], platform);
    assert_eq!(gpu["c2c"]["enabled"], json!({ "value": true }));
    assert_eq!(gpu["numa"]["own_node"], json!({ "value": 2 }));
    assert_eq!(gpu["modes"]["addressing"], json!({ "value": "ats" }));
}

#[test]
fn l40s_have_no_mig_no_nvlink_and_no_fabric() {
    let state = conforms(&stage("l40s", 8, &[]));
    let gpu = &state["gpus"]["value"][7];
    for absent in ["mig_mode", "gpu_instances", "nvlinks", "fabric"] {
        assert!(gpu[absent].get("not_applicable").is_some(), "{absent}: {}", gpu[absent]);
    }
}

#[test]
fn a_wrong_layout_is_found_with_the_way_to_mend_it() {
    let mut stage = sliced();
    let mig = stage.node.gpus[1].mig.as_mut().unwrap();
    mig.gpu_instances.remove(6);
    let run = stage.check();
    assert_eq!(run.code, 1);
    assert_eq!(run.seen("mig.layout"), ["6 × 1g.10gb (at 0-5)"]);
    assert!(run.out.contains("nvidia-smi mig -i 00000000:20:00.0 -cgi 19:6 -C"), "{}", run.out);
}

#[test]
fn snapshots_of_a_bad_node_are_judged_as_the_node() {
    let mut stage = sliced();
    stage.node.gpus[2].mig.as_mut().unwrap().pending = 0;
    stage.node.gpus[3].dead = Some(15);
    stage.node.faults.push(fault("nvmlDeviceGetGpuInstances", Some(0), Effect::Return(4)));
    let live = stage.check();
    stage.snapshot();
    let kept = stage.check_snapshot();
    assert_eq!((live.code, live.out), (kept.code, kept.out));
    assert_eq!(live.code, 1);
}

#[test]
fn the_inforom_is_validated_on_demand() {
    let mut stage = stage("h100-sxm5-80gb", 2, &[]);
    stage.node.gpus[1].inforom_corrupted = true;
    let state = stage.snapshot();
    assert!(state["gpus"]["value"][1]["firmware"]["inforom_valid"].get("unknown").is_some());
    let run = stage.live(&["snapshot", "--inforom"]);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    let valid = |gpu: usize| &document["state"]["gpus"]["value"][gpu]["firmware"]["inforom_valid"];
    assert_eq!((valid(0), valid(1)), (&json!({ "value": true }), &json!({ "value": false })));
}

#[test]
fn files_of_the_kernel_are_read_below_the_root() {
    let stage = whole();
    stage.write(
        "dev/kmsg",
        "6,0,0,-;Linux version\n3,9,61000000,-;NVRM: Xid (PCI:0000:20:00): 79, GPU has fallen off\n",
    );
    let port = "sys/class/infiniband/mlx5_0/ports/1";
    stage.write(&format!("{port}/state"), "4: ACTIVE\n");
    stage.write(&format!("{port}/phys_state"), "5: LinkUp\n");
    stage.write(&format!("{port}/rate"), "400 Gb/sec (4X NDR)\n");
    stage.write(&format!("{port}/link_layer"), "InfiniBand\n");
    stage.write("sys/class/infiniband/mlx5_0/fw_ver", "28.39.3004\n");
    stage.write("sys/fs/cgroup/system.slice/nvidia-fabricmanager.service/cgroup.procs", "4711\n");
    stage.write("usr/lib/systemd/system/nvidia-imex.service", "[Unit]\n");
    stage.write(
        "usr/bin/nv-fabricmanager",
        "#!/bin/sh\necho Fabric Manager version is : 580.95.05\n",
    );
    executable(&stage, "usr/bin/nv-fabricmanager");
    stage.write("proc/driver/nvidia-caps/mig-minors", "config 1\nmonitor 2\ngpu0/gi1/access 12\n");
    stage.write("dev/nvidia-caps/nvidia-cap12", "");
    stage.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "1024\n");
    stage.write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "1000\n");
    let host = &stage.snapshot()["host"];
    let xid = json!({ "at": 61, "gpu": "00000000:20:00.0",
        "kind": { "xid": { "code": 79, "text": "GPU has fallen off" } } });
    assert_eq!(host["kernel_log"]["value"]["events"], json!([xid]));
    let port = &host["infiniband"]["value"][0];
    assert_eq!(port["state"], json!({ "value": "ACTIVE" }));
    assert_eq!(port["rate_gbit"], json!({ "value": 400 }));
    assert_eq!(port["firmware"], json!({ "value": "28.39.3004" }));
    assert_eq!(host["fabric_manager"]["unit"], json!({ "value": "active" }));
    assert_eq!(host["fabric_manager"]["version"], json!({ "value": "580.95.05" }));
    assert_eq!(host["imex"]["unit"], json!({ "value": "inactive" }));
    assert_eq!(host["persistenced"]["unit"], json!({ "value": "not_found" }));
    let instance = json!({ "device": { "gpu_instance": { "gpu": 0, "id": 1 } }, "cap": 12,
        "has_node": true });
    assert_eq!(host["mig_caps"]["value"][2], instance);
    let pages = json!({ "value": [{ "size_kib": 2048, "total": 1024, "free": 1000 }] });
    assert_eq!(host["hugepages"], pages);
    assert_eq!(host["modules"], json!({ "value": ["nvidia", "nvidia_uvm"] }));
}

fn executable(stage: &Stage, name: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = stage.path("root").join(name);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn agents_are_asked_on_demand() {
    let stage = whole();
    let slurmd =
        "#!/bin/sh\necho 'slurmd: Gres Name=gpu Type=h100 Count=1 File=/dev/nvidia0' >&2\n";
    stage.write("usr/sbin/slurmd", slurmd);
    executable(&stage, "usr/sbin/slurmd");
    let node = json!({
        "metadata": { "labels": { "nvidia.com/gpu.count": "8", "kubernetes.io/os": "linux" } },
        "status": { "allocatable": { "cpu": "192", "nvidia.com/gpu": "8" } },
    });
    stage.write("node.json", &node.to_string());
    let (slurmd, node) = (stage.path("root/usr/sbin/slurmd"), stage.path("root/node.json"));
    let run = stage.live(&[
        "snapshot",
        "--slurmd",
        slurmd.to_str().unwrap(),
        "--kubernetes-node",
        node.to_str().unwrap(),
    ]);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    let gres = json!({ "value": [
        { "name": "gpu", "type": "h100", "count": 1, "files": ["/dev/nvidia0"] },
    ] });
    assert_eq!(document["state"]["host"]["slurm_gres"], gres);
    let kubernetes = json!({ "value": {
        "resources": { "nvidia.com/gpu": 8 }, "labels": { "nvidia.com/gpu.count": "8" },
    } });
    assert_eq!(document["state"]["host"]["kubernetes"], kubernetes);
}
