//! MIG layouts: the configuration of mig-parted, one entry a class.
//!
//! Source: NVIDIA/mig-parted v0.15.0 `api/spec/v1`: the version is required and unknown fields are
//! refused. mig-parted has no field for placements and leaves a GPU alone that no entry names, so
//! every GPU of a class is named; placements are in the Intent, where the validator reads them.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{Class, Cluster, GpuSlot, Intent};
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect};
use indexmap::IndexMap;
use serde::Serialize;

use crate::changed::Sides;
use crate::write::{header, yaml};
use crate::{OutputFile, OutputTree, Scope, Target, clusters};

/// mig-parted.
pub struct MigParted;

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

impl Target for MigParted {
    fn id(&self) -> &'static str {
        "mig"
    }

    fn summary(&self) -> &'static str {
        "configuration of mig-parted, one entry a class"
    }

    fn versions(&self) -> String {
        "mig-parted 0.5 to 0.15".to_owned()
    }

    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>> {
        clusters(intent).collect()
    }

    fn check(&self, _: &Scope<'_>, _: &mut Vec<Diagnostic>) {}

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let mut tree = OutputTree::default();
        let Some(cluster) = scope.cluster() else { return tree };
        let intent = scope.intent();
        let capable = |class: &&Class| class.node.gpu.as_ref().is_some_and(|gpu| gpu.mig_capable);
        let classes: Vec<&Class> = intent.classes_of(&cluster.name).filter(capable).collect();
        if !classes.is_empty() {
            let file = file(intent, cluster, &classes);
            tree.add(format!("clusters/{}/mig/mig-parted.yaml", cluster.name), file);
        }
        tree
    }

    fn disruption(
        &self,
        change: &Change,
        old: Option<&Scope<'_>>,
        new: Option<&Scope<'_>>,
    ) -> Effect {
        let sides = Sides { old, new };
        match &change.kind {
            ChangeKind::MigLayout(pool) | ChangeKind::Missing(pool) => Effect::on(
                Disruption::Drain,
                sides.differing(pool, |class| {
                    class.gpus.iter().map(|g| g.mig.clone()).collect::<Vec<_>>()
                }),
                "GPU instances are destroyed and created: no process may use them",
            ),
            ChangeKind::SharingMode(pool) => {
                let nodes = sides.differing(pool, |class| {
                    class.gpus.iter().map(|gpu| gpu.mig.is_some()).collect::<Vec<_>>()
                });
                let resets = [old, new].into_iter().flatten().any(|scope| {
                    let classes = scope.intent().classes_of_pool(pool);
                    let mut gpus = classes.filter_map(|class| class.node.gpu.as_ref());
                    gpus.any(|gpu| gpu.mig_mode_needs_reset)
                });
                match resets {
                    true => Effect::on(
                        Disruption::GpuReset,
                        nodes,
                        "MIG mode changes: Ampere takes a reset",
                    ),
                    false => Effect::on(Disruption::Drain, nodes, "MIG mode changes"),
                }
            }
            // The layout of a pool's nodes does not depend on these.
            ChangeKind::FleetName
            | ChangeKind::AsOf
            | ChangeKind::LabelPrefix
            | ChangeKind::Cluster(..)
            | ChangeKind::SchedulerVersion(_)
            | ChangeKind::Controllers(_)
            | ChangeKind::Database(_)
            | ChangeKind::AutoDetect(_)
            | ChangeKind::Driver(_)
            | ChangeKind::Partition(..)
            | ChangeKind::PartitionPools(..)
            | ChangeKind::PartitionSettings(..)
            | ChangeKind::Distribution(_)
            | ChangeKind::GpuOperator(_)
            | ChangeKind::Queue(_)
            | ChangeKind::Topology
            | ChangeKind::SlurmSettings(_)
            | ChangeKind::DraDriver(_)
            | ChangeKind::GitOps(_)
            | ChangeKind::SharingName(_)
            | ChangeKind::Devices(_)
            | ChangeKind::PoolDriver(_)
            | ChangeKind::PoolSettings(_)
            | ChangeKind::Tier
            | ChangeKind::TeamSettings(_)
            | ChangeKind::Alerting
            | ChangeKind::Pool(..)
            | ChangeKind::System(_)
            | ChangeKind::Nodes(_)
            | ChangeKind::MigStrategy(_)
            | ChangeKind::Replicas(_)
            | ChangeKind::ExceptionReason(_)
            | ChangeKind::Overrides(_)
            | ChangeKind::MaxUnavailable(_)
            | ChangeKind::Policy
            | ChangeKind::Team(..)
            | ChangeKind::Namespace(_)
            | ChangeKind::Quota(..)
            | ChangeKind::Workload
            | ChangeKind::Exporter => Effect::none(),
        }
    }
}

fn file(intent: &Intent, cluster: &Cluster, classes: &[&Class]) -> OutputFile {
    let configs = classes.iter().map(|class| (class.node.name.as_str(), entries(&class.node.gpus)));
    let config = Config { version: "v1", mig_configs: configs.collect() };
    let head = format!("fleet {}, cluster {}: one entry a class.", intent.fleet.name, cluster.name);
    let text = header(&[&head]) + &yaml::document(&config);
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
    OutputFile::one(unique, text)
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
