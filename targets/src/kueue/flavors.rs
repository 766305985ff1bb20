//! What a cluster's queues count: flavors and resources, in groups.
//!
//! Kueue gives a job one flavor for all resources of a group, and takes a resource or flavor in one
//! group only. So pools that hand out a resource of one name are in one group, with all that they
//! hand out; a flavor of a group names every resource of it, in one order.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Devices, Intent, Kubernetes, Pool, Resource};
use fleetc_schema::name::PoolName;
use serde::Serialize;

use super::resource_flavor;
use super::share::Share;
use crate::pods;

/// Pools that share the names of what they hand out.
pub struct Group<'a> {
    /// Names of resources.
    pub resources: Vec<String>,
    /// A flavor for each pool.
    pub flavors: Vec<Flavor<'a>>,
}

/// A pool.
pub struct Flavor<'a> {
    /// Its name.
    pub pool: &'a PoolName,
    /// The name of its ResourceFlavor.
    pub name: String,
    /// What it hands out, each with the name under which Kueue counts it.
    pub units: Vec<(Resource, String)>,
    /// Its place among the pools of the fleet: a job tries flavors in this order.
    order: usize,
    /// IMEX channels: their resource, and how many there are.
    pub channels: Option<(String, u64)>,
}

/// The groups of a cluster, in the order of pools.
pub fn groups<'a>(
    intent: &'a Intent,
    cluster: &'a Cluster,
    kubernetes: &Kubernetes,
) -> Vec<Group<'a>> {
    let domains: Vec<&PoolName> = pods::of_cluster(intent, &cluster.name)
        .into_iter()
        .filter(|pods| pods.has_compute_domain(intent, kubernetes))
        .map(|pods| &pods.workload.pool)
        .collect();
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (order, (pool, item)) in intent.pools.iter().enumerate() {
        let Some(nodes) = item.parts.get(&cluster.name) else { continue };
        let capacity = intent.capacity(pool, &cluster.name);
        let units: Vec<_> = capacity
            .into_keys()
            .map(|unit| (unit.clone(), name(intent, pool, item, &unit)))
            .collect();
        if units.is_empty() {
            continue;
        }
        // A node has one channel to give; GPUs run out first.
        let channels =
            domains.contains(&pool).then(|| (pods::channel_resource(intent), nodes.len()));
        let flavor = Flavor {
            pool,
            name: resource_flavor::name(intent, cluster, pool),
            units,
            order,
            channels,
        };
        add(&mut groups, flavor);
    }
    groups
}

/// Adds a flavor to the groups that it meets, which become one at the place of the first.
fn add<'a>(groups: &mut Vec<Group<'a>>, flavor: Flavor<'a>) {
    let meets = |group: &Group<'_>| {
        flavor.resources().any(|name| group.resources.iter().any(|other| other == name))
    };
    let at = groups.iter().position(meets);
    let (met, mut apart): (Vec<_>, Vec<_>) = std::mem::take(groups).into_iter().partition(meets);
    let mut flavors: Vec<Flavor<'a>> = met.into_iter().flat_map(|group| group.flavors).collect();
    flavors.push(flavor);
    flavors.sort_by_key(|flavor| flavor.order);
    let mut resources: Vec<String> = Vec::new();
    for name in flavors.iter().flat_map(Flavor::resources) {
        if !resources.iter().any(|other| other == name) {
            resources.push(name.to_owned());
        }
    }
    // What stands before the first that is met is not met.
    apart.insert(at.unwrap_or(apart.len()), Group { resources, flavors });
    *groups = apart;
}

impl Flavor<'_> {
    /// Names of all that it hands out.
    pub fn resources(&self) -> impl Iterator<Item = &str> {
        let channels = self.channels.iter().map(|(name, _)| name.as_str());
        self.units.iter().map(|(_, name)| name.as_str()).chain(channels)
    }
}

/// The name under which Kueue counts a unit: the device plugin's resource, or for DRA the one that
/// the manager's configuration maps to the pool's DeviceClass.
fn name(intent: &Intent, name: &PoolName, pool: &Pool, unit: &Resource) -> String {
    match pool.devices {
        Devices::DevicePlugin => pool.sharing.kubernetes_resource(unit),
        Devices::Dra => pods::counted_resource(intent, name, unit),
    }
}

/// `resourceGroups` of a queue or Cohort.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceGroup {
    covered_resources: Vec<String>,
    flavors: Vec<FlavorQuotas>,
}

impl ResourceGroup {
    /// Names of the resources that it covers.
    pub fn covered(&self) -> &[String] {
        &self.covered_resources
    }
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct FlavorQuotas {
    name: String,
    resources: Vec<ResourceQuota>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceQuota {
    name: String,
    nominal_quota: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    borrowing_limit: Option<String>,
}

/// Writes groups with the quotas that `quota` gives. A flavor stands in them only if it gives one
/// for any of its units; what it gives none for cannot be used there.
pub fn quotas<'a>(
    groups: &[Group<'a>],
    may_borrow: bool,
    quota: impl Fn(&Flavor<'a>, &Resource) -> Option<Share>,
    channels: impl Fn(&Flavor<'a>) -> u64,
) -> Vec<ResourceGroup> {
    let mut written = Vec::new();
    for group in groups {
        let used: Vec<&Flavor<'a>> = group
            .flavors
            .iter()
            .filter(|flavor| flavor.units.iter().any(|(unit, _)| quota(flavor, unit).is_some()))
            .collect();
        let covered: Vec<&String> = group
            .resources
            .iter()
            .filter(|name| used.iter().any(|flavor| flavor.resources().any(|r| r == *name)))
            .collect();
        if covered.is_empty() {
            continue;
        }
        let share = |flavor: &Flavor<'a>, name: &str| {
            if let Some((unit, _)) = flavor.units.iter().find(|(_, resource)| resource == name) {
                return quota(flavor, unit);
            }
            let (_, _) = flavor.channels.as_ref().filter(|(resource, _)| resource == name)?;
            Some(Share { nominal: channels(flavor), borrowing: None })
        };
        let flavors = used.iter().map(|flavor| FlavorQuotas {
            name: flavor.name.clone(),
            resources: covered
                .iter()
                .map(|name| entry(name, share(flavor, name), may_borrow))
                .collect(),
        });
        written.push(ResourceGroup {
            flavors: flavors.collect(),
            covered_resources: covered.into_iter().cloned().collect(),
        });
    }
    written
}

fn entry(name: &str, share: Option<Share>, may_borrow: bool) -> ResourceQuota {
    let closed = Share { nominal: 0, borrowing: may_borrow.then_some(0) };
    let Share { nominal, borrowing } = share.unwrap_or(closed);
    ResourceQuota {
        name: name.to_owned(),
        nominal_quota: nominal.to_string(),
        borrowing_limit: borrowing.map(|most| most.to_string()),
    }
}

/// Items behind the groups: the pools.
pub fn items<'a>(groups: &'a [Group<'_>]) -> impl Iterator<Item = ItemPath> + 'a {
    let flavors = groups.iter().flat_map(|group| &group.flavors);
    flavors.map(|flavor| ItemPath::item("pool", flavor.pool))
}
