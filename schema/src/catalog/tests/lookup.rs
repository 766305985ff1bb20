//! Looking systems up by key, and cloud shapes as systems.

use super::catalog;
use crate::catalog::{Cloud, Cpu, CpuArch};

fn cpu(sockets: u16, cores: u16, threads: u16) -> Option<Cpu> {
    Some(Cpu { model: None, sockets, cores, threads })
}

#[test]
fn servers_trays_and_shapes_are_found_racks_are_not() {
    let catalog = catalog();
    for key in ["dgx-h100", "pcie-l40s-4", "gb200-nvl72-compute-tray", "aws/p5.48xlarge"] {
        assert_eq!(catalog.system(key).unwrap().key.as_str(), key);
        assert!(catalog.system_keys().any(|known| known.as_str() == key));
    }
    // A rack is many nodes.
    assert!(catalog.system("gb200-nvl72").is_none());
    assert_eq!(catalog.rack("gb200-nvl72").unwrap().trays(), 18);
    assert_eq!(catalog.rack("gb200-nvl36x2").unwrap().trays(), 18);
    assert!(catalog.rack("dgx-h100").is_none());
    assert!(catalog.system("p5.48xlarge").is_none());
}

#[test]
fn shapes_are_found_in_any_case_and_keep_the_spelling_of_the_cloud() {
    let catalog = catalog();
    let azure = catalog.cloud_shape("azure/Standard_ND96isr_H100_v5").unwrap();
    assert_eq!(azure.key.as_str(), "azure/standard_nd96isr_h100_v5");
    assert_eq!((azure.cloud, azure.shape.as_str()), (Cloud::Azure, "Standard_ND96isr_H100_v5"));
    let system = catalog.system("azure/Standard_ND96isr_H100_v5").unwrap();
    assert_eq!(system, azure.to_system());
    let meant = |name: &str| catalog.shape_named(name).map(|shape| shape.key.as_str());
    assert_eq!(meant("P5.48xlarge"), Some("aws/p5.48xlarge"));
    assert_eq!(meant("BM.GPU.GB200-v2.4"), Some("oci/bm.gpu.gb200.4"));
    assert_eq!(meant("dgx-h100"), None);
    for shape in catalog.cloud_shapes.values() {
        let cloud = serde_json::to_value(shape.cloud).unwrap();
        let key = format!("{}/{}", cloud.as_str().unwrap(), shape.shape).to_ascii_lowercase();
        assert_eq!(shape.key.as_str(), key);
    }
}

#[test]
fn a_shape_has_processors_only_if_all_of_them_follow() {
    let cpu_of = |key: &str| catalog().system(key).unwrap().cpu;
    // Two sockets are stated, and a vCPU of an x86 type is a thread.
    assert_eq!(cpu_of("aws/p5.48xlarge"), cpu(2, 96, 192));
    assert_eq!(cpu_of("aws/p4d.24xlarge"), cpu(2, 48, 96));
    // Threads are off.
    assert_eq!(cpu_of("azure/standard_nd96isr_h100_v5"), cpu(2, 96, 96));
    // Grace cores have one thread.
    assert_eq!(cpu_of("gcp/a4x-highgpu-4g"), cpu(2, 140, 140));
    // Sockets are not stated, or threads are not.
    for open in ["aws/p5en.48xlarge", "gcp/a3-highgpu-8g", "oci/bm.gpu.h100.8"] {
        assert_eq!(cpu_of(open), None, "{open}");
    }
}

#[test]
fn a_shape_keeps_what_a_system_has_room_for() {
    let system = catalog().system("aws/p5.48xlarge").unwrap();
    assert_eq!((system.gpu.as_str(), system.gpus_per_node), ("h100-sxm5-80gb", 8));
    assert_eq!((system.memory_gib.value, system.nvlink_domain), (Some(2048), 8));
    assert_eq!(system.local_disk.unwrap().total_gb, 30_400);
    let nics = system.nics.unwrap().compute;
    assert_eq!((nics.count, nics.mbit_per_s), (Some(32), Some(100_000)));
    let tray = catalog().system("aws/p6e-gb200.36xlarge").unwrap();
    assert_eq!((tray.arch, tray.nvlink_domain), (CpuArch::Arm64, 72));
    // No count, so no rate of one: the total is of all 17 cards.
    assert_eq!(tray.nics.unwrap().compute.mbit_per_s, None);
    assert_eq!(catalog().system("gcp/g2-standard-4").unwrap().nics, None);
    assert_eq!(catalog().system("oci/bm.gpu.b200.8").unwrap().memory_gib.value, None);
}
