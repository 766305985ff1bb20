//! The configuration of mig-parted, which its own command and the MIG manager of the GPU Operator read.
//!
//! Unknown keys are errors there. Source: NVIDIA/mig-parted v0.15.0 `api/spec/v1`.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Class, Cluster, GpuSlot, Intent};
use indexmap::IndexMap;
use serde::Serialize;

use super::yaml;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Config<'a> {
    version: &'a str,
    mig_configs: IndexMap<&'a str, Vec<Entry>>,
}

#[derive(Serialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    devices: Vec<u8>,
    mig_enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    mig_devices: Option<IndexMap<String, u32>>,
}

/// Classes of a cluster whose GPUs have MIG.
pub fn classes<'a>(intent: &'a Intent, cluster: &'a Cluster) -> Vec<&'a Class> {
    let capable = |class: &&Class| class.node.gpu.as_ref().is_some_and(|gpu| gpu.mig_capable);
    intent.classes_of(&cluster.name).filter(capable).collect()
}

/// One entry a class, under its name.
pub fn config(classes: &[&Class]) -> String {
    let configs = classes.iter().map(|class| (class.node.name.as_str(), entries(&class.node.gpus)));
    yaml::document(&Config { version: "v1", mig_configs: configs.collect() })
}

/// Items of the spec behind the entries.
pub fn items(classes: &[&Class]) -> Vec<ItemPath> {
    let items = classes.iter().flat_map(|class| {
        let layouts = class.node.gpus.iter().map(|gpu| gpu.path.clone());
        layouts.chain([ItemPath::item("pool", &class.node.pool)])
    });
    let mut unique: Vec<ItemPath> = Vec::new();
    for item in items {
        if !unique.contains(&item) {
            unique.push(item);
        }
    }
    unique
}

/// GPUs with equal layouts share an entry.
fn entries(gpus: &[GpuSlot]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for gpu in gpus {
        let mig_devices = gpu.mig.as_ref().map(|instances| {
            let mut counts = IndexMap::new();
            for instance in instances {
                *counts.entry(instance.profile.to_string()).or_insert(0) += 1;
            }
            counts
        });
        let mig_enabled = mig_devices.is_some();
        match entries
            .iter_mut()
            .find(|e| e.mig_enabled == mig_enabled && e.mig_devices == mig_devices)
        {
            Some(entry) => entry.devices.push(gpu.index),
            None => entries.push(Entry { devices: vec![gpu.index], mig_enabled, mig_devices }),
        }
    }
    entries
}
