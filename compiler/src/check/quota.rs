//! Guarantees against capacity.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Quota, Resource};
use fleetc_schema::name::{ClusterName, PoolName, TeamName};

use crate::lower::Lowered;

/// `quota/above-capacity`: the guarantees of a pool exceed what it has.
pub fn above_capacity(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    for (pool, item) in &intent.pools {
        let path = ItemPath::item("pool", pool);
        if ["system", "nodes", "split", "sharing", "exception"]
            .iter()
            .any(|part| lowered.is_poisoned(&path.child(part)))
        {
            continue;
        }
        for cluster in item.parts.keys() {
            for (resource, capacity) in intent.capacity(pool, cluster) {
                let claims = claims(lowered, pool, cluster, &resource);
                let sum: u64 = claims.iter().map(|(_, quota)| u64::from(quota.guaranteed)).sum();
                if sum > capacity {
                    found.push(finding(lowered, pool, cluster, &resource, capacity, sum, &claims));
                }
            }
        }
    }
}

type Claim<'a> = (&'a TeamName, &'a Quota);

fn claims<'a>(
    lowered: &'a Lowered,
    pool: &PoolName,
    cluster: &ClusterName,
    resource: &Resource,
) -> Vec<Claim<'a>> {
    let of = |quota: &&Quota| {
        quota.pool == *pool && quota.cluster == *cluster && quota.resource == *resource
    };
    let teams = lowered.intent.teams.iter();
    teams.flat_map(|(name, team)| team.quotas.iter().filter(of).map(move |q| (name, q))).collect()
}

fn finding(
    lowered: &Lowered,
    pool: &PoolName,
    cluster: &ClusterName,
    resource: &Resource,
    capacity: u64,
    sum: u64,
    claims: &[Claim<'_>],
) -> Diagnostic {
    let split = lowered.intent.pools.get(pool).is_some_and(|pool| pool.parts.len() > 1);
    let whole = if split { format!("`{pool}` in `{cluster}`") } else { format!("`{pool}`") };
    let unit = resource.plural();
    let title = format!("pool {whole} guarantees {sum} {unit} and has {capacity}");
    let mut finding = Diagnostic::new(&rules::QUOTA_ABOVE_CAPACITY, title);
    for (team, quota) in claims {
        let place = quota.path.child("guaranteed");
        finding = finding.at(place, format!("{} to `{team}`", quota.guaranteed));
    }
    let finding = finding.note(proof(lowered, pool, cluster, resource, capacity));
    let over = sum - capacity;
    match claims.iter().max_by_key(|(_, quota)| quota.guaranteed) {
        Some((team, quota)) if u64::from(quota.guaranteed) >= over => {
            let less = u64::from(quota.guaranteed) - over;
            finding.help(format!("lower `{team}` to {less}, or another by {over} in all"))
        }
        _ => finding.help(format!("lower the guarantees by {over} in all")),
    }
}

/// How the capacity comes about: `capacity: 3 nodes × 8 (train) + 1 node × 7 (train.missing-3) = 31`.
fn proof(
    lowered: &Lowered,
    pool: &PoolName,
    cluster: &ClusterName,
    resource: &Resource,
    capacity: u64,
) -> String {
    let classes = lowered.intent.classes_of(cluster).filter(|class| class.node.pool == *pool);
    let terms: Vec<String> = classes
        .filter_map(|class| {
            let each = class.node.advertised.units.get(resource)?;
            let nodes = class.nodes.len();
            let word = if nodes == 1 { "node" } else { "nodes" };
            Some(format!("{nodes} {word} × {each} ({})", class.node.name))
        })
        .collect();
    format!("capacity: {} = {capacity}", terms.join(" + "))
}
