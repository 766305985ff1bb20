//! Guarantees against capacity.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Quota, Resource};
use fleetc_schema::name::{ClusterName, PoolName, TeamName};
use indexmap::IndexMap;

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
                let sum: u64 = claims.iter().map(|claim| claim.guaranteed).sum();
                if sum > capacity {
                    found.push(finding(lowered, pool, cluster, &resource, capacity, sum, &claims));
                }
            }
        }
    }
}

/// A top-level team with what it claims, and the quota that a finding points at.
struct Claim<'a> {
    team: &'a TeamName,
    guaranteed: u64,
    quota: &'a Quota,
}

/// What top-level teams claim. A team's own guarantee holds those of its children; a team without
/// one claims what its children claim together.
fn claims<'a>(
    lowered: &'a Lowered,
    pool: &PoolName,
    cluster: &ClusterName,
    resource: &Resource,
) -> Vec<Claim<'a>> {
    let of = |quota: &&Quota| {
        quota.pool == *pool && quota.cluster == *cluster && quota.resource == *resource
    };
    let teams = &lowered.intent.teams;
    let mut claims = Vec::new();
    // Children stand after their parents: walk back and hand up what parents do not hold themselves.
    let mut below: IndexMap<&TeamName, (u64, &Quota)> = IndexMap::new();
    for (name, team) in teams.iter().rev() {
        let own = team.quotas.iter().find(of).map(|quota| (u64::from(quota.guaranteed), quota));
        let Some((guaranteed, quota)) = own.or_else(|| below.get(name).copied()) else { continue };
        match &team.parent {
            Some(parent) => {
                let entry = below.entry(parent).or_insert((0, quota));
                entry.0 += guaranteed;
            }
            None => claims.push(Claim { team: name, guaranteed, quota }),
        }
    }
    claims.reverse();
    claims
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
    for Claim { team, guaranteed, quota } in claims {
        let place = quota.path.child("guaranteed");
        finding = finding.at(place, format!("{guaranteed} to `{team}`"));
    }
    let finding = finding.note(proof(lowered, pool, cluster, resource, capacity));
    let over = sum - capacity;
    match claims.iter().max_by_key(|claim| claim.guaranteed) {
        Some(Claim { team, guaranteed, .. }) if *guaranteed >= over => {
            let less = guaranteed - over;
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
