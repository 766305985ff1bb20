//! What Kueue would refuse or not hold.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Cluster, Intent, Kubernetes, Workload};
use fleetc_schema::name::TierName;
use fleetc_schema::version::KueueRelease;
use indexmap::IndexMap;

use super::{configuration, flavors, release, stops_jobs};
use crate::pods;

/// `maxItems` of `spec.resourceGroups`. Source: CustomResourceDefinitions of kueue v0.19.2.
const GROUPS: usize = 16;
/// `maxItems` of `flavors` in a group.
const FLAVORS: usize = 64;
/// `maxItems` of `coveredResources` in a group.
const RESOURCES: usize = 64;
/// The most `deviceClassMappings`. Source: kueue v0.19.2 `pkg/config/validation.go`.
const MAPPINGS: usize = 16;
/// The most flavors of a queue, resources of a queue, and pairs of them in a group. Source: kueue
/// v0.19.2 `pkg/webhooks/clusterqueue_webhook.go`.
const IN_ALL: usize = 256;
const PAIRS: usize = 512;

/// `kueue/dra-unsupported`: Kueue before 0.18 does not count devices of DRA.
pub fn dra_unsupported(
    intent: &Intent,
    cluster: &Cluster,
    kubernetes: &Kubernetes,
    found: &mut Vec<Diagnostic>,
) {
    let Some(release) = release(kubernetes).filter(|release| *release < KueueRelease::V0_18) else {
        return;
    };
    for (pool, _) in pods::dra_pools(intent, cluster) {
        if intent.capacity(pool, &cluster.name).is_empty() {
            continue;
        }
        let title = format!(
            "pool `{pool}` hands its GPUs out through DRA, and Kueue {release} does not count them"
        );
        found.push(
            Diagnostic::new(&rules::KUEUE_DRA_UNSUPPORTED, title)
                .at(queue(cluster).child("version"), "counts devices of DRA from 0.18 on")
                .at(ItemPath::item("pool", pool).child("devices"), "no extended resource to count")
                .note("a job that claims its GPUs is admitted as if it asked for none: no quota holds")
                .help("run Kueue 0.18 or later, or write `devices \"device-plugin\"`"),
        );
    }
}

/// `kueue/too-many-flavors`: more pools or resources than the objects hold.
pub fn too_many_flavors(
    intent: &Intent,
    cluster: &Cluster,
    kubernetes: &Kubernetes,
    found: &mut Vec<Diagnostic>,
) {
    let groups = flavors::groups(intent, cluster, kubernetes);
    let mappings = configuration::mappings(intent, cluster, kubernetes).len();
    let largest = |size: fn(&flavors::Group<'_>) -> usize| groups.iter().map(size).max();
    let total = |size: fn(&flavors::Group<'_>) -> usize| groups.iter().map(size).sum::<usize>();
    let of_flavors = |group: &flavors::Group<'_>| group.flavors.len();
    let of_resources = |group: &flavors::Group<'_>| group.resources.len();
    let pairs = |group: &flavors::Group<'_>| group.flavors.len() * group.resources.len();
    let counts = [
        (mappings, MAPPINGS, "resources of DRA pools"),
        (groups.len(), GROUPS, "groups of pools that share no resource"),
        (largest(of_flavors).unwrap_or_default(), FLAVORS, "pools that share a resource"),
        (largest(of_resources).unwrap_or_default(), RESOURCES, "resources of pools that share one"),
        (total(of_flavors), IN_ALL, "pools"),
        (total(of_resources), IN_ALL, "resources"),
        (largest(pairs).unwrap_or_default(), PAIRS, "pairs of a pool and a resource in a group"),
    ];
    // One cause: the first limit that is passed.
    let Some((count, most, what)) = counts.into_iter().find(|(count, most, _)| count > most) else {
        return;
    };
    let title = format!("cluster `{}` has {count} {what}, and Kueue takes {most}", cluster.name);
    found.push(
        Diagnostic::new(&rules::KUEUE_TOO_MANY_FLAVORS, title)
            .at(queue(cluster), format!("{most} at most"))
            .note("each pool is a ResourceFlavor, and Kueue refuses queues and configurations that are longer")
            .help("make one pool of pools that are alike, or use a second cluster"),
    );
}

/// `kueue/preempts-by-priority`: a tier that does not give way, below another of the same team.
pub fn preempts_by_priority(intent: &Intent, cluster: &Cluster, found: &mut Vec<Diagnostic>) {
    if !stops_jobs(intent) {
        return;
    }
    let here = || intent.workloads.iter().filter(|(_, w)| w.cluster == cluster.name);
    let tier = |workload: &Workload| intent.tiers.get(workload.tier.as_ref()?);
    let mut told: IndexMap<&TierName, ()> = IndexMap::new();
    for (name, workload) in here() {
        let (Some(stays), Some(own)) = (&workload.tier, tier(workload)) else { continue };
        if own.preemptible || told.contains_key(stays) {
            continue;
        }
        let above = here().find(|(_, other)| {
            other.team == workload.team
                && other.pool == workload.pool
                && tier(other).is_some_and(|tier| tier.priority > own.priority)
        });
        let Some((other_name, Workload { tier: Some(other), .. })) = above else { continue };
        told.insert(stays, ());
        let title = format!(
            "tier `{stays}` does not give way, and Kueue stops its jobs for those of `{other}`"
        );
        found.push(
            Diagnostic::new(&rules::KUEUE_PREEMPTS_BY_PRIORITY, title)
                .at(ItemPath::item("tier", stays).child("priority"), format!("`{name}` runs at it"))
                .at(ItemPath::item("tier", other).child("priority"), format!("`{other_name}`, of the same team, goes first"))
                .note("within a queue Kueue stops jobs by priority alone, and a tier of this fleet is preemptible")
                .help(format!("give both tiers one priority, or make `{stays}` preemptible too")),
        );
    }
}

fn queue(cluster: &Cluster) -> ItemPath {
    ItemPath::item("cluster", &cluster.name).child("kubernetes").child("queue")
}
