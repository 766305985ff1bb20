//! Keys are unique, references resolve, every source is there and every number is possible.

use std::collections::BTreeSet;

use serde_json::Value;

use super::catalog;
use crate::catalog::{AffinityMap, Cloud, files};

/// Every file as plain JSON.
fn documents() -> Vec<(&'static str, Value)> {
    let all = files::ALL.iter().flat_map(|list| list.iter());
    all.map(|(file, text)| (*file, serde_json::from_str(text).unwrap())).collect()
}

/// Calls `visit` with every object in a document.
fn objects(value: &Value, visit: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            visit(map);
            map.values().for_each(|value| objects(value, visit));
        }
        Value::Array(list) => list.iter().for_each(|value| objects(value, visit)),
        _ => {}
    }
}

#[test]
fn every_source_that_is_cited_exists_and_every_source_is_cited() {
    let mut cited = BTreeSet::new();
    for (file, document) in documents() {
        objects(&document, &mut |map| {
            if let Some(sources) = map.get("source") {
                let sources = sources.as_array().unwrap_or_else(|| panic!("{file}: {sources}"));
                cited.extend(sources.iter().map(|source| source.as_str().unwrap().to_owned()));
            }
        });
    }
    let known: BTreeSet<String> = catalog().sources.keys().cloned().collect();
    assert_eq!(cited, known);
    for (key, text) in &catalog().sources {
        assert!(text.lines().count() == 1 && !text.ends_with('.'), "{key}");
        if text.starts_with("github ") {
            assert!(text.contains('('), "{key} names no date");
        }
    }
}

#[test]
fn every_row_has_a_source_and_a_confidence() {
    for (file, document) in documents() {
        objects(&document, &mut |map| {
            if map.contains_key("confidence") && !map.contains_key("basis") {
                assert!(map.contains_key("source"), "{file}: {map:?}");
            }
            if let Some(Value::Array(sources)) = map.get("source") {
                let unknown = map.get("seconds") == Some(&Value::Null);
                assert!(!sources.is_empty() || unknown, "{file}: {map:?}");
            }
        });
    }
}

#[test]
fn no_row_was_lost_to_an_equal_key() {
    let rows = |file: &str| -> usize {
        let of = |(name, document): &(&str, Value)| match name.starts_with(file) {
            true => document.as_array().unwrap().len(),
            false => 0,
        };
        documents().iter().map(of).sum()
    };
    let catalog = catalog();
    assert_eq!((catalog.gpus.len(), rows("gpus/")), (38, 38));
    assert_eq!((catalog.systems.len(), rows("systems/")), (22, 22));
    assert_eq!((catalog.racks.len(), rows("racks")), (4, 4));
    assert_eq!((catalog.cloud_shapes.len(), rows("clouds/")), (77, 77));
    assert_eq!(catalog.mig_tables().count(), 17);
    let keys: BTreeSet<_> = catalog.system_keys().chain(catalog.racks.keys()).collect();
    assert_eq!(keys.len(), 22 + 77 + 4);
}

#[test]
fn pci_device_ids_are_hexadecimal_and_of_one_product() {
    let mut seen = BTreeSet::new();
    for gpu in catalog().gpus.values() {
        for id in gpu.pci_device_ids.value.as_ref().unwrap() {
            let digits = id.strip_prefix("0x").unwrap();
            assert!(digits.len() == 4 && u16::from_str_radix(digits, 16).is_ok(), "{id}");
            assert_eq!(*id, format!("0x{}", digits.to_uppercase()));
            assert!(seen.insert(id), "{id} is of two products");
        }
    }
    assert_eq!(catalog().rules.pci_vendor, "0x10DE");
}

#[test]
fn gpus_and_tables_name_each_other() {
    let catalog = catalog();
    for gpu in catalog.gpus.values() {
        let Some(table) = &gpu.mig.table else {
            assert!(!gpu.has_mig(), "{} has MIG and no table", gpu.key);
            continue;
        };
        assert!(gpu.has_mig());
        assert!(catalog.mig_table(table).unwrap().gpus.contains(&gpu.key), "{}", gpu.key);
    }
    for row in catalog.mig_tables() {
        for gpu in &row.gpus {
            assert_eq!(catalog.mig_table_of(&catalog.gpus[gpu]), Some(row), "{gpu}");
            let instances = catalog.gpus[gpu].mig.max_instances.unwrap();
            assert_eq!(instances, row.table.compute_slices, "{gpu}");
        }
    }
    for product in &catalog.mig_products {
        if let Some(gpu) = &product.gpu {
            let row = &catalog.gpus[gpu];
            assert_eq!(row.mig.max_instances, product.max_instances, "{gpu}");
        }
    }
}

#[test]
fn systems_shapes_and_racks_name_what_exists() {
    let catalog = catalog();
    let systems = catalog.system_keys().map(|key| catalog.system(key.as_str()).unwrap());
    for system in systems {
        let gpu = catalog.gpus.get(&system.gpu).unwrap_or_else(|| panic!("{}", system.key));
        let domain = system.nvlink_domain;
        // A bridge joins as many as the data sheet says, NVSwitch as many as the builder wires up.
        assert!(gpu.nvlink.nvswitch || domain <= gpu.nvlink.max_domain.max(1), "{}", system.key);
        let whole = u16::from(system.gpus_per_node);
        assert!(whole.is_multiple_of(domain) || domain.is_multiple_of(whole), "{}", system.key);
        if let Some(cpu) = &system.cpu {
            assert!(cpu.cores.is_multiple_of(cpu.sockets), "{}", system.key);
            assert!(cpu.threads.is_multiple_of(cpu.cores), "{}", system.key);
        }
        if system.generic {
            let open = system.cpu.is_none() && system.memory_gib.value.is_none();
            assert!(open && system.nics.is_none(), "{}", system.key);
        }
    }
    for rack in catalog.racks.values() {
        let tray = &catalog.systems[&rack.tray];
        let of_trays = |each: u16| rack.trays_per_rack * each;
        assert_eq!(rack.gpus_per_rack, of_trays(tray.gpus_per_node.into()), "{}", rack.key);
        assert_eq!(rack.trays() * u16::from(tray.gpus_per_node), rack.nvlink_domain);
        assert_eq!(rack.nvlink_domain, tray.nvlink_domain, "{}", rack.key);
        let sockets = tray.cpu.as_ref().unwrap().sockets;
        assert!(rack.cpus_per_rack.is_none_or(|cpus| cpus == of_trays(sockets)), "{}", rack.key);
    }
}

#[test]
fn islands_of_generic_servers_follow_from_their_bridges() {
    let islands: Vec<(&str, u16)> = catalog()
        .systems
        .values()
        .filter(|system| system.generic)
        .map(|system| (system.key.as_str(), system.nvlink_domains_per_node()))
        .collect();
    let expected = [
        ("pcie-l40s-4", 4),
        ("pcie-l40s-8", 8),
        ("pcie-a100-80gb-8", 8),
        ("pcie-h100-8", 8),
        ("pcie-h100-nvl-2", 1),
        ("pcie-h100-nvl-8", 4),
        ("pcie-h200-nvl-8", 2),
        ("pcie-rtx-pro-6000-8", 8),
    ];
    assert_eq!(islands, expected);
}

#[test]
fn affinity_maps_cover_their_systems() {
    let catalog = catalog();
    for map in &catalog.affinity {
        for key in &map.systems {
            let system = catalog.system(key.as_str()).unwrap_or_else(|| panic!("{key}"));
            assert_eq!(catalog.affinity_of(key.as_str()).map(|m| &m.key), Some(&map.key));
            assert_eq!(map.gpus.len(), usize::from(system.gpus_per_node), "{key}");
            if let Some(cpu) = &system.cpu {
                assert_eq!(cpu.threads, map.cpu_threads, "{key}");
            }
            if let (Some(ours), Some(theirs)) = (map.numa_nodes, system.numa_nodes) {
                assert_eq!(ours, theirs, "{key}");
            }
        }
        coherent(map);
    }
    assert!(catalog.affinity_of("dgx-h200").is_some());
    assert!(catalog.affinity_of("pcie-l40s-4").is_none());
}

fn coherent(map: &AffinityMap) {
    let mut nics: Vec<&String> = map.other_nics.iter().collect();
    for (index, gpu) in map.gpus.iter().enumerate() {
        assert_eq!(usize::from(gpu.gpu), index, "{}", map.key);
        assert!(map.numa_nodes.is_none_or(|nodes| gpu.numa < nodes), "{}", map.key);
        assert!(gpu.cpus.ranges().iter().all(|(_, last)| *last < map.cpu_threads));
        let alike = map.gpus.iter().filter(|other| other.numa == gpu.numa);
        alike.for_each(|other| assert_eq!(other.cpus, gpu.cpus, "{}", map.key));
        nics.extend(&gpu.nics);
    }
    let shared = map.gpus.iter().any(|gpu| gpu.nics.len() > 1);
    let distinct: BTreeSet<_> = nics.iter().collect();
    assert!(shared || distinct.len() == nics.len(), "{}", map.key);
}

#[test]
fn no_price_is_zero_and_every_cloud_has_a_notice_row() {
    let catalog = catalog();
    let shapes = catalog.cloud_shapes.values().filter_map(|shape| shape.price.as_ref());
    let prices: Vec<_> = shapes.chain(catalog.prices.iter().map(|list| &list.price)).collect();
    assert_eq!(prices.len(), 23 + 3);
    assert!(prices.iter().all(|price| price.micros > 0));
    for cloud in [Cloud::Aws, Cloud::Gcp, Cloud::Azure, Cloud::Oci, Cloud::CoreWeave] {
        assert!(catalog.spot_notice(cloud).is_some_and(|notice| notice.seconds != Some(0)));
    }
}
