//! `spec/unused`: what the spec defines and nothing uses.
//!
//! Asked of the items as written, since references to GPUs and systems stand in no Intent.

use std::collections::BTreeSet;

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::Gpu;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Intent, Sharing, Team};
use fleetc_schema::name::{PoolName, TeamName};
use fleetc_targets::{Absent, absent_alert};
use indexmap::IndexMap;

use crate::language::{At, Reference, kinds};
use crate::lower::Lowered;

/// Every item that nothing uses.
pub fn find(spec: &kinds::Spec, lowered: &Lowered) -> Vec<Diagnostic> {
    let intent = &lowered.intent;
    let mut found = Vec::new();
    let mut add = |path: &ItemPath, why: &str, help: &str| {
        let (kind, name) = (path.as_str().split('/').next().unwrap_or_default(), path.last_name());
        let within =
            path.as_str().strip_prefix("monitoring/").and_then(|rest| rest.split_once('['));
        let kind = within.map_or(kind, |(kind, _)| kind);
        let finding = Diagnostic::new(&rules::SPEC_UNUSED, format!("nothing uses {kind} `{name}`"));
        found.push(finding.at(path, why).help(help));
    };
    let (gpus, systems) = hardware(spec, &lowered.gpus);
    for item in spec.gpus.iter().filter(|item| !gpus.contains(item.path.last_name())) {
        add(&item.path, "no pool has it", "name it in the `system` of a pool, or remove it");
    }
    for item in spec.systems.iter().filter(|item| !systems.contains(item.path.last_name())) {
        add(&item.path, "no pool or rack is of it", "name it in a pool, or remove it");
    }
    let sites = named(spec.racks.iter().map(|rack| &rack.site));
    for item in spec.sites.iter().filter(|item| !sites.contains(item.path.last_name())) {
        add(&item.path, "no rack stands there", "add `site=` to racks, or remove it");
    }
    let networks = named(spec.workloads.iter().map(|workload| &workload.network));
    for item in &spec.fabrics {
        let used = networks.contains(item.path.last_name());
        // Switches without nodes are the topology's to judge.
        if !used && item.attachments.is_empty() && item.switches.is_empty() {
            add(&item.path, "nothing is on it", "attach nodes to it, or remove it");
        }
    }
    clusters(spec, intent, &mut add);
    tiers(spec, &mut add);
    policies(spec, intent, &mut add);
    for (name, team) in &intent.teams {
        if may_use_nothing(intent, name, team) {
            let help = "give it a quota, or remove it";
            add(&ItemPath::item("team", name), "every pool is kept for others", help);
        }
    }
    if let Some(monitoring) = &spec.monitoring {
        let told: BTreeSet<&str> =
            monitoring.routes.iter().filter_map(|route| text(&route.to)).collect();
        for item in monitoring.receivers.iter().filter(|i| !told.contains(i.path.last_name())) {
            add(&item.path, "no route leads to it", "add `route to=` it, or remove it");
        }
        for item in &monitoring.alerts {
            let alert = item.arg.as_ref().map(|alert| absent_alert(intent, alert.value));
            if alert == Some(Some(Absent::NoHardware)) {
                add(&item.path, "no node is of the kind that it tells of", "remove it");
            }
        }
    }
    found
}

type Add<'a> = dyn FnMut(&ItemPath, &str, &str) + 'a;

fn text(reference: &Option<At<Reference>>) -> Option<&str> {
    reference.as_ref().map(|reference| reference.value.0.as_str())
}

fn named<'a>(references: impl Iterator<Item = &'a Option<At<Reference>>>) -> BTreeSet<&'a str> {
    references.filter_map(text).collect()
}

/// GPUs and systems that a pool or rack leads to, also by way of what they extend. A GPU of the
/// fleet's own may stand for the catalog's without being named.
fn hardware<'a>(
    spec: &'a kinds::Spec,
    products: &'a IndexMap<PoolName, Gpu>,
) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
    let pools = spec.pools.iter().map(|pool| &pool.system);
    let mut systems = named(pools.chain(spec.racks.iter().map(|rack| &rack.system)));
    // What extends another stands after it, so one walk back meets every use first.
    for item in spec.systems.iter().rev() {
        if systems.contains(item.path.last_name()) {
            systems.extend(text(&item.extends));
        }
    }
    let mut gpus: BTreeSet<&str> = products.values().map(|gpu| gpu.key.as_str()).collect();
    for item in spec.gpus.iter().rev() {
        if gpus.contains(item.path.last_name()) {
            gpus.extend(text(&item.extends));
        }
    }
    (gpus, systems)
}

/// A cluster that owns no node, unless the daemons of another run in it. A spec without any pool is
/// one that is begun, or the base of others.
fn clusters(spec: &kinds::Spec, intent: &Intent, add: &mut Add<'_>) {
    if intent.pools.is_empty() {
        return;
    }
    let slurm = spec.clusters.iter().filter_map(|item| item.slurm.as_ref());
    let hosts = named(slurm.map(|slurm| &slurm.hosted_by));
    for (item, name) in spec.clusters.iter().filter_map(|item| Some((item, item.arg.as_ref()?))) {
        let owns = intent.pools.values().any(|pool| pool.parts.contains_key(&name.value));
        if !owns && !hosts.contains(item.path.last_name()) {
            add(&item.path, "it owns no node", "give it a pool, or remove it");
        }
    }
}

/// A tier that no workload and no partition names. Workloads are examples of what runs, so a fleet
/// none of whose workloads names a tier says nothing about which are in use.
fn tiers(spec: &kinds::Spec, add: &mut Add<'_>) {
    let of_workloads = named(spec.workloads.iter().map(|workload| &workload.tier));
    if of_workloads.is_empty() {
        return;
    }
    let slurm = spec.clusters.iter().filter_map(|item| item.slurm.as_ref());
    let partitions = slurm.flat_map(|slurm| &slurm.partitions).filter_map(|p| p.tiers.as_ref());
    let of_partitions: BTreeSet<&str> =
        partitions.flatten().map(|tier| tier.value.0.as_str()).collect();
    for item in &spec.tiers {
        let name = item.path.last_name();
        if !of_workloads.contains(name) && !of_partitions.contains(name) {
            let why = "no workload and no partition names it";
            add(&item.path, why, "name it in a workload or partition, or remove it");
        }
    }
}

/// A policy for the rest, where no pool is left.
fn policies(spec: &kinds::Spec, intent: &Intent, add: &mut Add<'_>) {
    let elsewhere = |pool: &_| intent.policies.values().any(|policy| policy.pools.contains(pool));
    if intent.pools.keys().any(|pool| !elsewhere(pool)) {
        return;
    }
    for item in spec.policies.iter().filter(|item| item.pools.as_ref().is_none_or(Vec::is_empty)) {
        add(
            &item.path,
            "every pool is named by another policy",
            "remove it, or take a pool out of another policy",
        );
    }
}

/// True for a team that has and holds nothing while every pool is kept for teams that do.
fn may_use_nothing(intent: &Intent, name: &TeamName, team: &Team) -> bool {
    let of_it = |other: &Team| other.parent.as_ref() == Some(name);
    let mut around = std::iter::successors(Some(team), |team| {
        team.parent.as_ref().and_then(|parent| intent.teams.get(parent))
    });
    let busy = around.any(|team| !team.quotas.is_empty())
        || intent.teams.values().any(of_it)
        || intent.workloads.values().any(|workload| workload.team == *name);
    let open = |pool: &fleetc_schema::intent::Pool| match &pool.sharing {
        Sharing::Mps(shared) | Sharing::TimeSlicing(shared) => {
            shared.team.as_ref().is_none_or(|team| team == name)
        }
        Sharing::Whole | Sharing::Mig { .. } => true,
    };
    let may_use = intent.pools.iter().any(|(name, pool)| {
        open(pool) && pool.parts.keys().any(|cluster| !intent.is_governed(name, cluster))
    });
    !busy && !may_use && !intent.pools.is_empty()
}
