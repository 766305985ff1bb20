//! MIG layouts that can be placed, but should not stand as they are.

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::{Catalog, MigTableRow};
use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::intent::{
    Class, Devices, Intent, MigLayout, MigStrategy, Pool, Resource, Scheduler, Sharing,
};
use fleetc_schema::mig::{Demand, MigProfile, room_left};
use fleetc_schema::name::{GpuName, PoolName};
use fleetc_schema::version::Version;
use indexmap::IndexMap;

use super::node_policy;
use crate::lower::{Lowered, quoted};

/// The MIG pools of a fleet with the table of their GPUs.
fn mig_pools<'a>(
    lowered: &'a Lowered,
    catalog: &'a Catalog,
) -> impl Iterator<Item = (&'a PoolName, &'a Pool, &'a GpuName, &'a MigTableRow)> {
    lowered.intent.pools.iter().filter_map(|(name, pool)| {
        let gpu = lowered.gpus.get(name)?;
        let row = catalog.mig_table_of(gpu)?;
        matches!(pool.sharing, Sharing::Mig { .. }).then_some((name, pool, &gpu.key, row))
    })
}

/// Classes whose instances NVIDIA's device plugin advertises under this strategy. Slurm and DRA
/// know no strategy.
fn advertised_by_plugin(intent: &Intent, wanted: MigStrategy) -> impl Iterator<Item = &Class> {
    intent.classes.values().filter(move |class| {
        let cluster = intent.clusters.get(&class.node.cluster);
        let kubernetes = cluster.is_some_and(|c| matches!(c.scheduler, Scheduler::Kubernetes(_)));
        let pool = intent.pools.get(&class.node.pool);
        kubernetes
            && pool.is_some_and(|pool| {
                pool.devices == Devices::DevicePlugin
                    && matches!(&pool.sharing, Sharing::Mig { strategy, .. } if *strategy == wanted)
            })
    })
}

fn sharing(pool: &PoolName) -> ItemPath {
    ItemPath::item("pool", pool).child("sharing")
}

/// The item of a layout, whose name may be written otherwise than its GPUs print: `3,0-2`.
fn layout_path(intent: &Intent, pool: &PoolName, layout: &MigLayout) -> ItemPath {
    let mut slots = intent.classes_of_pool(pool).flat_map(|class| &class.node.gpus);
    let slot = slots.find(|slot| layout.gpus.contains(slot.slot));
    slot.map_or_else(|| sharing(pool).keyed("gpus", [&layout.gpus]), |slot| slot.path.clone())
}

/// `mig/slices-left-over`: something more fits on a GPU than is cut.
pub fn slices_left_over(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let Ok(catalog) = Catalog::embedded() else { return };
    for (name, pool, _, row) in mig_pools(lowered, catalog) {
        let Sharing::Mig { layouts, .. } = &pool.sharing else { continue };
        for layout in layouts {
            let demands: Vec<Demand<'_>> = layout
                .slices
                .iter()
                .filter_map(|slice| {
                    Some(Demand { profile: row.profile(&slice.profile)?, count: slice.count })
                })
                .collect();
            let room = room_left(&row.table, &demands);
            if room.is_empty() || demands.is_empty() {
                continue;
            }
            let room: Vec<String> = room.iter().map(ToString::to_string).collect();
            let title = format!("the layout of GPUs {} leaves room for more", layout.gpus);
            found.push(
                Diagnostic::new(&rules::MIG_SLICES_LEFT_OVER, title)
                    .at(layout_path(&lowered.intent, name, layout), "memory slices stay unused")
                    .note("what is not cut serves nobody")
                    .help(format!("there is still room for {}", room.join(", or for "))),
            );
        }
    }
}

/// `mig/mixed-with-single-strategy`: the strategy `single` with more than one kind of device.
pub fn mixed_with_single_strategy(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let mut told = Vec::new();
    for class in advertised_by_plugin(&lowered.intent, MigStrategy::Single) {
        let node = &class.node;
        if told.contains(&&node.pool) {
            continue;
        }
        let profiles: Vec<MigProfile> = node.mig_counts().into_keys().collect();
        let whole = node.whole_gpus() > 0;
        let empty = node.gpus.iter().any(|gpu| gpu.mig.as_ref().is_some_and(Vec::is_empty));
        let why = match (profiles.len(), whole, empty) {
            (0 | 1, false, false) => continue,
            (_, true, _) => "MIG and whole GPUs on one node".to_owned(),
            (_, _, true) => "a GPU without instances".to_owned(),
            _ => format!("{} on one node", quoted(&profiles)),
        };
        told.push(&node.pool);
        let title = format!("strategy `single` with {why}");
        found.push(
            Diagnostic::new(&rules::MIG_MIXED_WITH_SINGLE_STRATEGY, title)
                .at(sharing(&node.pool).child("strategy"), "wants one profile on every GPU")
                .note("GFD then labels the node MIG-INVALID with 0 GPUs, and the plugin advertises none")
                .help("write `strategy=\"mixed\"`, or cut every GPU alike"),
        );
    }
}

/// `mig/two-gpu-types`: one resource name for instances of different GPUs in one cluster.
pub fn two_gpu_types(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    for cluster in intent.clusters.values() {
        let mut first: IndexMap<&MigProfile, (&GpuName, &PoolName)> = IndexMap::new();
        let mut told = Vec::new();
        let here = advertised_by_plugin(intent, MigStrategy::Mixed);
        for class in here.filter(|class| class.node.cluster == cluster.name) {
            let Some(gpu) = &class.node.gpu else { continue };
            for resource in class.node.advertised.units.keys() {
                let Resource::Slice(profile) = resource else { continue };
                let (other, pool) = *first.entry(profile).or_insert((&gpu.key, &class.node.pool));
                if *other == gpu.key || told.contains(&(profile, &class.node.pool)) {
                    continue;
                }
                told.push((profile, &class.node.pool));
                let title = format!(
                    "`{profile}` is cut from {other} and from {} in cluster `{}`",
                    gpu.key, cluster.name
                );
                found.push(
                    Diagnostic::new(&rules::MIG_TWO_GPU_TYPES, title)
                        .at(sharing(&class.node.pool), format!("from {}", gpu.key))
                        .at(sharing(pool), format!("from {other}"))
                        .note(format!(
                            "both are `{}` to the scheduler, and differ in SMs and bandwidth",
                            profile.kubernetes_resource()
                        ))
                        .help("select nodes by pool in the workloads, or keep the two in two clusters"),
                );
            }
        }
    }
}

/// `mig/multi-gpu-workload`: a job that spreads over instances, which have no P2P.
pub fn multi_gpu_workload(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, workload) in &lowered.intent.workloads {
        let pool = lowered.intent.pools.get(&workload.pool);
        if workload.gpus < 2 || !pool.is_some_and(|p| matches!(p.sharing, Sharing::Mig { .. })) {
            continue;
        }
        let item = ItemPath::item("workload", name).child("gpus");
        let split = workload.parallel.filter(|p| p.tensor > 1 || p.pipeline > 1);
        let title = format!("workload `{name}` spreads over {} MIG slices", workload.gpus);
        let finding = Diagnostic::new(&rules::MIG_MULTI_GPU_WORKLOAD, title);
        let (finding, place) = match split {
            Some(_) => (finding, item.child("parallel")),
            None => (finding.severity(Severity::Warning), item),
        };
        found.push(
            finding
                .at(place, "needs to talk between slices")
                .at(sharing(&workload.pool), "slices have no P2P and no NVLink")
                .note("traffic between GPU instances goes through host memory, and NCCL on MIG is experimental")
                .help("take one larger slice, or whole GPUs"),
        );
    }
}

/// `mig/name-by-driver`: another driver prints the profiles under other names.
pub fn name_by_driver(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let Ok(catalog) = Catalog::embedded() else { return };
    for (name, pool, key, row) in mig_pools(lowered, catalog) {
        let Sharing::Mig { layouts, .. } = &pool.sharing else { continue };
        let mut renamed: Vec<String> = Vec::new();
        for slice in layouts.iter().flat_map(|layout| &layout.slices) {
            let Some(profile) = row.profile(&slice.profile) else { continue };
            let others =
                row.name_variants.iter().filter_map(|variant| variant.names.get(&profile.id));
            for other in others.chain([&profile.name]).filter(|other| **other != slice.profile) {
                let words = format!("{} as {other}", slice.profile);
                if !renamed.contains(&words) {
                    renamed.push(words);
                }
            }
        }
        if renamed.is_empty() {
            continue;
        }
        let title = format!("some drivers name profiles of {key} otherwise");
        found.push(
            Diagnostic::new(&rules::MIG_NAME_BY_DRIVER, title)
                .at(sharing(name), renamed.join(", "))
                .note("the GB in a name are computed from the memory that the driver reports")
                .help("compare with `nvidia-smi mig -lgip` on a node before the first roll-out"),
        );
    }
}

/// `mig/profile-not-on-gpu`: the driver of the nodes does not have the profile yet.
pub fn driver_too_old(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let Ok(catalog) = Catalog::embedded() else { return };
    for (name, pool, key, row) in mig_pools(lowered, catalog) {
        let Sharing::Mig { layouts, .. } = &pool.sharing else { continue };
        let classes = lowered.intent.classes_of_pool(name);
        // A driver that knows no MIG of this GPU at all is told of once, as that.
        let gpu = lowered.gpus.get(name);
        let cuts = |driver: &&Version| {
            gpu.is_none_or(|gpu| node_policy::too_old_for_mig(gpu, driver).is_none())
        };
        let drivers: Vec<&Version> =
            classes.map(|class| &class.node.driver.version).filter(cuts).collect();
        for layout in layouts {
            for slice in &layout.slices {
                let Some(profile) = row.profile(&slice.profile) else { continue };
                let facts = row.facts.get(&profile.name);
                let Some(least) = facts.and_then(|facts| facts.min_driver.value.as_ref()) else {
                    continue;
                };
                let Some(driver) = drivers.iter().find(|driver| !driver.is_since(least)) else {
                    continue;
                };
                let place = layout_path(&lowered.intent, name, layout);
                let place = place.keyed("slice", [&slice.profile]);
                let title =
                    format!("`{}` of {key} needs driver {least}, and {driver} runs", slice.profile);
                found.push(
                    Diagnostic::new(&rules::MIG_PROFILE_NOT_ON_GPU, title)
                        .at(place, "not in this driver")
                        .help("take a later driver, or another profile"),
                );
            }
        }
    }
}
