//! What teams are promised, against capacity, each other and the jobs that they run.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::intent::{
    Intent, QueueKind, Quota, Resource, Scheduler, Sharing, Team, Workload,
};
use fleetc_schema::name::{ClusterName, PoolName, TeamName};
use indexmap::{IndexMap, IndexSet};

use crate::lower::{Lowered, quoted};

/// `quota/above-capacity`: the guarantees of a pool exceed what it has.
pub fn above_capacity(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    for (pool, item) in &intent.pools {
        if !is_counted(lowered, pool) {
            continue;
        }
        for cluster in item.parts.keys() {
            for (resource, capacity) in intent.capacity(pool, cluster) {
                let claims = claims(lowered, pool, cluster, &resource).top;
                let sum = sum(&claims);
                if sum > capacity {
                    found.push(finding(lowered, pool, cluster, &resource, capacity, sum, &claims));
                }
            }
        }
    }
}

/// True if nothing is wrong that decides how much a pool hands out.
pub fn is_counted(lowered: &Lowered, pool: &PoolName) -> bool {
    let path = ItemPath::item("pool", pool);
    let parts = ["system", "nodes", "split", "sharing", "exception"];
    !parts.iter().any(|part| lowered.is_poisoned(&path.child(part)))
}

/// A team with what it claims, and the quota that a finding points at.
#[derive(Clone, Copy)]
struct Claim<'a> {
    team: &'a TeamName,
    guaranteed: u64,
    quota: &'a Quota,
}

/// Who claims how much of one resource of a pool.
struct Claims<'a> {
    /// Teams that are part of no other.
    top: Vec<Claim<'a>>,
    /// The teams right within each team, as far as they claim anything.
    within: IndexMap<&'a TeamName, Vec<Claim<'a>>>,
}

/// What teams claim. A team's own guarantee holds those of its children; a team without one claims
/// what its children claim together.
fn claims<'a>(
    lowered: &'a Lowered,
    pool: &PoolName,
    cluster: &ClusterName,
    resource: &Resource,
) -> Claims<'a> {
    let mut claims = Claims { top: Vec::new(), within: IndexMap::new() };
    // Children stand after their parents: walk back and hand up what parents do not hold themselves.
    for (name, team) in lowered.intent.teams.iter().rev() {
        let own = own(team, pool, cluster, resource);
        let of_children = || {
            let children = claims.within.get(name)?;
            Some((sum(children), children.first()?.quota))
        };
        let own = own.map(|quota| (u64::from(quota.guaranteed), quota));
        let Some((guaranteed, quota)) = own.or_else(of_children) else { continue };
        let claim = Claim { team: name, guaranteed, quota };
        match &team.parent {
            Some(parent) => claims.within.entry(parent).or_default().insert(0, claim),
            None => claims.top.insert(0, claim),
        }
    }
    claims
}

fn sum(claims: &[Claim<'_>]) -> u64 {
    claims.iter().map(|claim| claim.guaranteed).sum()
}

/// The quota that a team itself has on a resource.
fn own<'a>(
    team: &'a Team,
    pool: &PoolName,
    cluster: &ClusterName,
    resource: &Resource,
) -> Option<&'a Quota> {
    team.quotas.iter().find(|quota| {
        quota.pool == *pool && quota.cluster == *cluster && quota.resource == *resource
    })
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

/// `quota/child-above-parent`: the teams within a team are guaranteed more than it is.
pub fn child_above_parent(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let teams = &lowered.intent.teams;
    let parents: IndexSet<&TeamName> = teams.values().filter_map(|t| t.parent.as_ref()).collect();
    for (parent, team) in teams.iter().filter(|(name, _)| parents.contains(name)) {
        for quota in &team.quotas {
            let Quota { pool, cluster, resource, guaranteed, .. } = quota;
            let claims = claims(lowered, pool, cluster, resource);
            let Some(children) = claims.within.get(parent) else { continue };
            let (sum, guaranteed) = (sum(children), u64::from(*guaranteed));
            let largest = children.iter().max_by_key(|child| child.guaranteed);
            let Some(largest) = largest.filter(|_| sum > guaranteed) else { continue };
            let unit = resource.plural();
            let names = quoted(children.iter().map(|child| child.team));
            let are = if children.len() == 1 { "is" } else { "are" };
            let title = format!(
                "{names} {are} guaranteed {sum} {unit} of `{pool}`, and `{parent}` around has {guaranteed}"
            );
            let mut finding = Diagnostic::new(&rules::QUOTA_CHILD_ABOVE_PARENT, title);
            let others = children.iter().filter(|child| child.team != largest.team);
            for child in std::iter::once(largest).chain(others) {
                let text = format!("{} to `{}`", child.guaranteed, child.team);
                finding = finding.at(child.quota.path.child("guaranteed"), text);
            }
            let finding = finding
                .at(quota.path.child("guaranteed"), format!("{guaranteed} to `{parent}`"))
                .note("what a team is guaranteed holds the guarantees of the teams within it");
            let over = sum - guaranteed;
            found.push(match largest.guaranteed.checked_sub(over) {
                Some(less) => {
                    let team = largest.team;
                    finding.help(format!("raise `{parent}` to {sum}, or lower `{team}` to {less}"))
                }
                None => finding.help(format!("raise `{parent}` to {sum}")),
            });
        }
    }
}

/// `quota/child-above-parent`: a team may use more than the team around it, so it never will.
pub fn limit_above_parent(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    for (name, team) in &intent.teams {
        for quota in &team.quotas {
            let Quota { pool, cluster, resource, limit: Some(limit), .. } = quota else { continue };
            let around = ancestors(intent, team).find_map(|(name, team)| {
                let quota = own(team, pool, cluster, resource)?;
                Some((name, quota, quota.limit?))
            });
            let Some((parent, outer, most)) = around.filter(|(.., most)| most < limit) else {
                continue;
            };
            // If its guarantee alone is too much, that is the cause.
            if quota.guaranteed > most {
                continue;
            }
            let unit = resource.plural();
            let title = format!(
                "`{name}` may use {limit} {unit} of `{pool}`, and `{parent}` around at most {most}"
            );
            found.push(
                Diagnostic::new(&rules::QUOTA_CHILD_ABOVE_PARENT, title)
                    .severity(Severity::Warning)
                    .at(quota.path.child("limit"), "never reached")
                    .at(outer.path.child("limit"), format!("`{name}` is within `{parent}`"))
                    .help(format!("write `limit={most}` or less, or raise that of `{parent}`")),
            );
        }
    }
}

/// The teams around a team, the nearest first.
fn ancestors<'a>(
    intent: &'a Intent,
    team: &'a Team,
) -> impl Iterator<Item = (&'a TeamName, &'a Team)> {
    let of = |team: &'a Team| intent.teams.get_key_value(team.parent.as_ref()?);
    std::iter::successors(of(team), move |(_, team)| of(team))
}

/// `quota/unreachable`: whole jobs of the team's declared workloads cannot use the guarantee up.
pub fn unreachable(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    if lowered.is_any_poisoned("workload") || lowered.is_any_poisoned("team") {
        return;
    }
    let mut workloads: IndexMap<_, Vec<_>> = IndexMap::new();
    for (name, workload) in intent.workloads.iter().filter(|(_, w)| w.gpus > 0) {
        let place = (&workload.pool, &workload.cluster);
        workloads.entry(place).or_default().push((name, workload));
    }
    for (name, team) in &intent.teams {
        for quota in &team.quotas {
            let Quota { pool, cluster, resource, guaranteed, .. } = quota;
            let here = workloads.get(&(pool, cluster)).filter(|_| is_counted(lowered, pool));
            let Some(here) = here else { continue };
            let capacity = intent.capacity(pool, cluster);
            let mut jobs: Vec<_> = here
                .iter()
                .filter(|(_, w)| is_within(intent, &w.team, name))
                .filter(|(_, w)| resource_of(w, &capacity).as_ref() == Some(resource))
                .map(|(workload, w)| (u64::from(w.gpus), *workload))
                .collect();
            jobs.sort();
            let sizes: Vec<u64> = jobs.iter().map(|(size, _)| *size).collect();
            let Some((smallest, workload)) = jobs.first() else { continue };
            let placeable = placeable(intent, pool, cluster, resource, &sizes);
            let guaranteed = u64::from(*guaranteed);
            let reached = largest_sum(guaranteed.min(placeable), &sizes);
            // A guarantee above what there is, or a job that fits nowhere, is another finding.
            let there = capacity.get(resource).copied().unwrap_or_default();
            if reached == guaranteed || guaranteed > there || (placeable == 0 && guaranteed > 0) {
                continue;
            }
            let unit = resource.plural();
            let title = format!(
                "whole jobs of `{name}` use {reached} of the {guaranteed} {unit} that it is guaranteed in `{pool}`"
            );
            let item = ItemPath::item("workload", workload);
            let mut finding = Diagnostic::new(&rules::QUOTA_UNREACHABLE, title)
                .at(
                    quota.path.child("guaranteed"),
                    format!("{} are of no use", guaranteed - reached),
                )
                .at(item.child("gpus"), format!("the smallest job takes {smallest}"));
            if placeable < guaranteed {
                let note = format!("jobs of these sizes fit on {placeable} of the {there} {unit}");
                finding = finding.note(format!("{note}: what is left on a node is too little"));
            }
            let names = quoted(jobs.iter().map(|(_, workload)| workload));
            let help = match least_sum(guaranteed, placeable, &sizes) {
                Some(more) => format!("guarantee {reached} or {more}"),
                None => format!("guarantee {reached}"),
            };
            found.push(
                finding
                    .note(format!("workloads of `{name}` in this pool: {names}"))
                    .help(format!("{help}, or declare the smaller jobs that use the rest")),
            );
        }
    }
}

/// True if the team is this one or part of it.
fn is_within(intent: &Intent, team: &TeamName, outer: &TeamName) -> bool {
    let around = |team| ancestors(intent, team).any(|(name, _)| name == outer);
    team == outer || intent.teams.get(team).is_some_and(around)
}

/// What a workload takes: its slice, or the one thing that the pool hands out.
pub fn resource_of(workload: &Workload, capacity: &IndexMap<Resource, u64>) -> Option<Resource> {
    match (&workload.slice, capacity.keys().collect::<Vec<_>>().as_slice()) {
        (Some(slice), _) => Some(Resource::Slice(slice.clone())),
        (None, [only]) => Some((*only).clone()),
        (None, _) => None,
    }
}

/// How many units of a pool whole jobs of these sizes can hold at most, if it is all theirs. A job
/// that fits on a node stays on one; a larger one takes as many of each node as of the next.
fn placeable(
    intent: &Intent,
    pool: &PoolName,
    cluster: &ClusterName,
    resource: &Resource,
    sizes: &[u64],
) -> u64 {
    let classes = intent.classes_of(cluster).filter(|class| class.node.pool == *pool);
    let nodes: Vec<(u64, u64)> = classes
        .filter_map(|class| {
            let units = class.node.advertised.units.get(resource)?;
            Some((class.nodes.len(), u64::from(*units)))
        })
        .collect();
    let most = nodes.iter().map(|(_, units)| *units).max().unwrap_or_default().max(1);
    let parts: Vec<u64> = sizes
        .iter()
        .map(|size| {
            let spread = size.div_ceil(most);
            // A size that does not divide may be spread in any way.
            if size.is_multiple_of(spread) { size / spread } else { 1 }
        })
        .collect();
    nodes.iter().map(|(count, units)| count.saturating_mul(largest_sum(*units, &parts))).sum()
}

/// The most units up to which sums are tried one by one; above it their greatest common divisor
/// decides, which never says too little.
const TRIED: u64 = 1 << 16;

/// The largest sum of these sizes, each taken any number of times, that is at most `limit`.
fn largest_sum(limit: u64, sizes: &[u64]) -> u64 {
    let sizes: Vec<u64> = sizes.iter().copied().filter(|s| 0 < *s && *s <= limit).collect();
    let common = sizes.iter().copied().fold(0, gcd);
    match (common, sizes.as_slice()) {
        (0, _) => 0,
        (_, [_]) => limit - limit % common,
        _ if limit > TRIED => limit - limit % common,
        _ => sums(limit, &sizes).last().copied().unwrap_or_default(),
    }
}

/// The smallest such sum above `from` and up to `limit`, for a help line.
fn least_sum(from: u64, limit: u64, sizes: &[u64]) -> Option<u64> {
    let reach = from.saturating_add(*sizes.iter().min()?).min(limit).min(TRIED);
    sums(reach, sizes).into_iter().find(|sum| *sum > from)
}

/// Every such sum up to `limit`, rising.
fn sums(limit: u64, sizes: &[u64]) -> Vec<u64> {
    let mut reached = std::collections::BTreeSet::from([0]);
    for sum in 1..=limit {
        let from = |size: &u64| sum.checked_sub(*size).is_some_and(|rest| reached.contains(&rest));
        if sizes.iter().any(from) {
            reached.insert(sum);
        }
    }
    reached.into_iter().collect()
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

/// Neighbours in the tree of teams that meet in pools.
#[derive(Default)]
struct Meeting<'a> {
    teams: IndexSet<&'a TeamName>,
    pools: IndexSet<&'a PoolName>,
}

/// `quota/no-fair-share`: several teams use one pool, and nothing says who gets what is idle.
pub fn no_fair_share(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    if lowered.is_any_poisoned("team") {
        return;
    }
    // By the team around them, and by whether anything queues: one finding for teams, not for pools.
    let mut meetings: IndexMap<(Option<&TeamName>, bool), Meeting<'_>> = IndexMap::new();
    for (pool, item) in &intent.pools {
        let one = |shared: &fleetc_schema::intent::Shared| shared.team.is_some();
        if matches!(&item.sharing, Sharing::Mps(shared) | Sharing::TimeSlicing(shared) if one(shared))
        {
            continue;
        }
        for cluster in item.parts.keys() {
            let queues = has_queue(intent, cluster);
            for (around, teams) in neighbours(intent, pool, cluster) {
                let borrows = |team: &&TeamName| may_borrow(intent, team, pool, cluster);
                let weighs = |team: &&TeamName| {
                    queues && intent.teams.get(*team).is_some_and(|team| team.weight.is_some())
                };
                if teams.len() < 2 || teams.iter().any(borrows) || teams.iter().any(weighs) {
                    continue;
                }
                let meeting = meetings.entry((around, queues)).or_default();
                meeting.teams.extend(teams);
                meeting.pools.insert(pool);
            }
        }
    }
    for ((_, queues), Meeting { teams, pools }) in meetings {
        let what = if pools.len() == 1 { "pool" } else { "pools" };
        let title = format!(
            "{} share {what} {}, and nothing says who gets what is idle",
            quoted(&teams),
            quoted(&pools)
        );
        let mut finding = Diagnostic::new(&rules::QUOTA_NO_FAIR_SHARE, title);
        for team in teams.iter().take(4) {
            let text = if queues { "no weight" } else { "no limit above a guarantee" };
            finding = finding.at(ItemPath::item("team", team), text);
        }
        found.push(match queues {
            true => finding
                .note("who asks first takes all, and large jobs wait for as long as small ones come")
                .help("give each team a `weight`, or a `limit` above what it is guaranteed"),
            false => finding
                .note("without a queue a guarantee is a cap: what one team leaves idle no other may use")
                .help("let a `queue` share by `weight`, or state a `limit` above the guarantee"),
        });
    }
}

/// Teams that have a quota or a workload in a pool, by the team around them: who meets whom there.
fn neighbours<'a>(
    intent: &'a Intent,
    pool: &PoolName,
    cluster: &ClusterName,
) -> IndexMap<Option<&'a TeamName>, IndexSet<&'a TeamName>> {
    let has_quota =
        |team: &Team| team.quotas.iter().any(|q| q.pool == *pool && q.cluster == *cluster);
    let with_quota = intent.teams.iter().filter(|(_, team)| has_quota(team)).map(|(name, _)| name);
    let here = intent.workloads.values().filter(|w| w.pool == *pool && w.cluster == *cluster);
    // Where some have a quota, a team without one may not come.
    let governed = intent.teams.values().any(has_quota);
    let may_come = |name: &TeamName| {
        let Some(team) = intent.teams.get(name) else { return false };
        !governed || has_quota(team) || ancestors(intent, team).any(|(_, team)| has_quota(team))
    };
    let here = here.filter(|workload| may_come(&workload.team));
    let mut meeting: IndexMap<Option<&TeamName>, IndexSet<&TeamName>> = IndexMap::new();
    for name in with_quota.chain(here.map(|workload| &workload.team)) {
        let Some((name, team)) = intent.teams.get_key_value(name) else { continue };
        for (name, team) in std::iter::once((name, team)).chain(ancestors(intent, team)) {
            meeting.entry(team.parent.as_ref()).or_default().insert(name);
        }
    }
    meeting
}

/// True if a quota of the team on the pool says that it may use more than it is guaranteed.
fn may_borrow(intent: &Intent, team: &TeamName, pool: &PoolName, cluster: &ClusterName) -> bool {
    let more = |quota: &Quota| {
        quota.pool == *pool
            && quota.cluster == *cluster
            && quota.limit.is_some_and(|limit| limit > quota.guaranteed)
    };
    intent.teams.get(team).is_some_and(|team| team.quotas.iter().any(more))
}

/// True if something orders the jobs of a cluster by team: Slurm itself, or a queue.
fn has_queue(intent: &Intent, cluster: &ClusterName) -> bool {
    intent.clusters.get(cluster).is_none_or(|cluster| match &cluster.scheduler {
        Scheduler::Slurm(_) => true,
        Scheduler::Kubernetes(kubernetes) => kubernetes.queue.kind != QueueKind::None,
    })
}

/// The most that a team may use of a resource by what it and the teams around it are told; none if
/// that is what is idle.
pub fn cap(
    intent: &Intent,
    team: &TeamName,
    pool: &PoolName,
    cluster: &ClusterName,
    resource: &Resource,
) -> Option<u32> {
    let (name, team) = intent.teams.get_key_value(team)?;
    let queues = has_queue(intent, cluster);
    std::iter::once((name, team))
        .chain(ancestors(intent, team))
        .filter_map(|(_, team)| {
            let quota = own(team, pool, cluster, resource)?;
            // Without a queue the guarantee is the cap of a team that states no other.
            quota.limit.or_else(|| (!queues).then_some(quota.guaranteed))
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_sum_takes_each_size_any_number_of_times() {
        for (limit, sizes, sum) in [
            (12, &[8][..], 8),
            (24, &[16], 16),
            (31, &[8, 4], 28),
            (7, &[3, 5], 6),
            (4, &[8], 0),
            (9, &[], 0),
            (5, &[0, 2], 4),
            // Above what is tried: 3 and 5 reach every number from 8 on.
            (1_000_001, &[3, 5], 1_000_001),
            (1_000_001, &[16], 1_000_000),
        ] {
            assert_eq!(largest_sum(limit, sizes), sum, "{limit} {sizes:?}");
        }
    }

    #[test]
    fn the_next_sum_is_above_and_within_reach() {
        assert_eq!(least_sum(12, 32, &[8]), Some(16));
        assert_eq!(least_sum(12, 15, &[8]), None);
        assert_eq!(least_sum(7, 100, &[3, 5]), Some(8));
    }
}
