//! `clusters/*/intent`: what nodes need to validate themselves is whole, refers to nothing beside it and
//! stays small; the ConfigMap of a Kubernetes cluster holds the same files.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::fmt::Write;

use camino::Utf8Path;
use fleetc::output::sha256;
use fleetc_schema::intent::Scheduler;
use fleetc_tests::{FLEETS, Form, Texts, check_beside, check_fleet, compiled};
use fleetc_validate::intent::load;
use serde_json::Value;

const CONFIG_MAP: &str = "kubernetes/40-operator/configmap-fleetc-intent.yaml";

/// The files of a cluster's bundle, by path within it.
fn bundle(files: &Texts, cluster: &str) -> Texts {
    let folder = format!("clusters/{cluster}/intent/");
    let here = files.iter().filter_map(|(path, text)| Some((path.strip_prefix(&folder)?, text)));
    here.map(|(path, text)| (path.to_owned(), text.clone())).collect()
}

fn config_map(text: &str) -> Texts {
    let object: Value = serde_yaml::from_str(text).unwrap();
    let data = object["data"].as_object().unwrap();
    data.iter().map(|(key, text)| (key.clone(), text.as_str().unwrap().to_owned())).collect()
}

#[test]
fn each_node_finds_its_class_and_its_place_in_the_bundle_of_its_cluster() {
    for (name, spec) in FLEETS {
        let checked = check_fleet(spec).unwrap();
        let (intent, files) = (checked.intent().unwrap(), compiled(&checked).unwrap());
        for cluster in intent.clusters.keys() {
            // Alone in a folder: nothing else of the output is there to be read.
            let folder = tempfile::tempdir().unwrap();
            let root = Utf8Path::from_path(folder.path()).unwrap();
            let bundle = bundle(&files, cluster.as_str());
            for (path, text) in &bundle {
                let path = root.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            let index: Value = serde_json::from_str(&bundle["index.json"]).unwrap();
            for (path, text) in bundle.iter().filter(|(path, _)| *path != "index.json") {
                assert_eq!(index["files"][path], sha256(text.as_bytes()), "{name} {path}");
            }
            assert_eq!(index["files"].as_object().unwrap().len() + 1, bundle.len());
            for class in intent.classes_of(cluster) {
                let node = class.nodes.first().unwrap();
                let known = load(root.as_std_path(), &node).unwrap();
                assert_eq!(known.class, class.node);
                let rack = intent.racks.iter().find(|(_, rack)| rack.nodes.contains(&node));
                assert_eq!(known.rack.as_ref(), rack.map(|(name, _)| name), "{node}");
                let pool = &intent.pools[&class.node.pool];
                let stated = pool.overrides.iter().find(|known| known.nodes.contains(&node));
                assert_eq!(known.known.map(|k| k.pci), stated.map(|k| k.pci.clone()), "{node}");
            }
        }
    }
}

#[test]
fn a_bundle_that_was_copied_in_part_is_refused() {
    let files = compiled(&check_fleet("fleets/northwind").unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(folder.path()).unwrap();
    for (path, text) in bundle(&files, "serve") {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    load(root.as_std_path(), "inf01").unwrap();
    for name in ["classes/chat.json", "overrides/chat.jsonl"] {
        let path = root.join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}\n")).unwrap();
        let error = load(root.as_std_path(), "inf01").unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("copied in part"), "{error}");
        std::fs::write(&path, text).unwrap();
    }
}

#[test]
fn a_config_map_holds_the_bundle_of_a_kubernetes_cluster() {
    let mut held_by = 0;
    for (name, spec) in FLEETS {
        let checked = check_fleet(spec).unwrap();
        let files = compiled(&checked).unwrap();
        for (cluster, item) in &checked.intent().unwrap().clusters {
            let held = files.get(&format!("clusters/{cluster}/{CONFIG_MAP}"));
            if let Scheduler::Slurm(_) = item.scheduler {
                assert!(held.is_none(), "{name}/{cluster}");
                continue;
            }
            let bundle = bundle(&files, cluster.as_str());
            let dotted: Texts =
                bundle.iter().map(|(path, text)| (path.replace('/', "."), text.clone())).collect();
            assert_eq!(config_map(held.unwrap()), dotted, "{name}/{cluster}");
            assert_eq!(dotted.len(), bundle.len());
            held_by += 1;
        }
    }
    assert!(held_by >= 3, "{held_by}");
}

/// A cluster of 10,000 nodes: slices, and an exception; GPUs at the addresses that `address` says.
fn large(address: impl Fn(u32) -> u32) -> Texts {
    let spec = "fleet \"large\"
inventory \"nodes.csv\"
cluster \"serve\" { kubernetes \"1.36\" {
    distribution \"eks\"; gpu-operator \"26.7\" namespace=\"gpu-operator\"
    driver \"580.105.08\" owner=\"os\"; queue \"none\"
} }
pool \"chat\" {
    cluster \"serve\"; system \"dgx-h100\"; nodes \"n[00001-10000]\"
    sharing \"mig\" strategy=\"mixed\" { gpus \"0-7\" { slice \"1g.10gb\" count=7 } }
    exception node=\"n00007\" { missing 3; reason \"at RMA\" }
}
";
    let mut rows = "node,pool,rack,pci\n".to_owned();
    for node in 1..=10_000 {
        write!(rows, "n{node:05},chat,r{},", node / 8 + 1).unwrap();
        let gpus = (0..8).map(|gpu| format!("0000:{:02x}:00.0", address(node) + gpu * 8));
        writeln!(rows, "{}", gpus.collect::<Vec<_>>().join(" ")).unwrap();
    }
    let beside = Texts::from([("nodes.csv".to_owned(), rows)]);
    let checked = check_beside(Form::Kdl, spec, &beside).unwrap();
    compiled(&checked).unwrap_or_else(|| panic!("{:#?}", checked.diagnostics))
}

#[test]
fn ten_thousand_nodes_in_a_few_classes_are_a_small_bundle() {
    // Two boards, which alternate: the worst that two can do to a hostlist.
    let files = large(|node| 1 + node % 2);
    let bytes: usize = bundle(&files, "serve").values().map(String::len).sum();
    assert!(bytes < 256 << 10, "{bytes}");
    let held = config_map(&files[&format!("clusters/serve/{CONFIG_MAP}")]);
    assert_eq!(held.len(), bundle(&files, "serve").len());
}
