//! What each team has of each unit: the arithmetic of guarantees, limits and what is idle.
//!
//! A team's guarantee holds those of the teams within it, so its own queue has what they leave. A
//! Cohort's quota in Kueue comes on top of its queues', so only the Cohort of the whole cluster has
//! one: what nobody is guaranteed. All quotas together are what the pool has.

use fleetc_schema::intent::{Cluster, Intent, Quota, Resource, Sharing, Team};
use fleetc_schema::name::{PoolName, TeamName};
use indexmap::{IndexMap, IndexSet};

/// A quota of one unit of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// What is its own.
    pub nominal: u64,
    /// The most that it may borrow; none: what is idle.
    pub borrowing: Option<u64>,
}

/// Shares of every unit of every pool of a cluster.
pub struct Shares<'a> {
    units: IndexMap<(&'a PoolName, Resource), Unit<'a>>,
    parents: IndexSet<&'a TeamName>,
}

struct Unit<'a> {
    idle: u64,
    teams: IndexMap<&'a TeamName, Claim>,
}

/// What a team is told about one unit.
#[derive(Clone, Copy, Default)]
struct Claim {
    guaranteed: u64,
    /// What the teams right within it are guaranteed together.
    within: u64,
    limit: Option<u64>,
    /// True if it may use the unit at all.
    allowed: bool,
}

impl<'a> Shares<'a> {
    /// Computes them.
    pub fn of(intent: &'a Intent, cluster: &Cluster) -> Self {
        let here = intent.pools.iter().filter(|(_, pool)| pool.parts.contains_key(&cluster.name));
        let mut units = IndexMap::new();
        for (pool, item) in here {
            let governed = intent.is_governed(pool, &cluster.name);
            for (resource, capacity) in intent.capacity(pool, &cluster.name) {
                let quota = |team: &'a Team| {
                    team.quotas.iter().find(|quota| {
                        quota.pool == *pool
                            && quota.cluster == cluster.name
                            && quota.resource == resource
                    })
                };
                let mut unit = unit(intent, capacity, governed, quota);
                if let Some(only) = one_team(&item.sharing) {
                    for (name, claim) in &mut unit.teams {
                        let within = || ancestors(intent, name).any(|(name, _)| name == only);
                        claim.allowed &= within();
                    }
                }
                units.insert((pool, resource), unit);
            }
        }
        let parents = intent.teams.values().filter_map(|team| team.parent.as_ref()).collect();
        Self { units, parents }
    }

    /// True if there are teams within the team.
    pub fn is_parent(&self, team: &TeamName) -> bool {
        self.parents.contains(team)
    }

    /// What the queue of a team has; none if it may not use the unit.
    pub fn queue(&self, team: &TeamName, pool: &'a PoolName, unit: &Resource) -> Option<Share> {
        let claim = self.claim(team, pool, unit)?;
        let nominal = claim.guaranteed.saturating_sub(claim.within);
        // The limit of a team with teams within it holds for all of them: it stands at its Cohort.
        let limit = claim.limit.filter(|_| !self.is_parent(team));
        Some(Share { nominal, borrowing: limit.map(|most| most.saturating_sub(claim.guaranteed)) })
    }

    /// What the Cohort of a team with teams within it has: no quota of its own, and the most that
    /// all of them may borrow; none if that is what is idle.
    pub fn cohort(&self, team: &TeamName, pool: &'a PoolName, unit: &Resource) -> Option<Share> {
        let claim = self.claim(team, pool, unit)?;
        let borrowing = claim.limit?.saturating_sub(claim.guaranteed);
        Some(Share { nominal: 0, borrowing: Some(borrowing) })
    }

    /// What nobody is guaranteed.
    pub fn idle(&self, pool: &'a PoolName, unit: &Resource) -> Option<Share> {
        let unit = self.units.get(&(pool, unit.clone()))?;
        Some(Share { nominal: unit.idle, borrowing: None })
    }

    fn claim(&self, team: &TeamName, pool: &'a PoolName, unit: &Resource) -> Option<Claim> {
        let unit = self.units.get(&(pool, unit.clone()))?;
        unit.teams.get(team).copied().filter(|claim| claim.allowed)
    }
}

/// The one team whose clients may share the GPUs of a pool, with the teams within it.
fn one_team(sharing: &Sharing) -> Option<&TeamName> {
    match sharing {
        Sharing::Mps(shared) | Sharing::TimeSlicing(shared) => shared.team.as_ref(),
        Sharing::Whole | Sharing::Mig { .. } => None,
    }
}

/// The claims on one unit. A team without a quota of its own is guaranteed what the teams within it
/// are; where any team has a quota, one may use the unit if it, a team around it or one within it has.
fn unit<'a>(
    intent: &'a Intent,
    capacity: u64,
    governed: bool,
    quota: impl Fn(&'a Team) -> Option<&'a Quota>,
) -> Unit<'a> {
    let mut teams: IndexMap<&TeamName, Claim> =
        intent.teams.keys().map(|name| (name, Claim::default())).collect();
    let mut top = 0;
    // A parent stands before its children: from the leaves up, then from the root down.
    for (name, team) in intent.teams.iter().rev() {
        let own = quota(team);
        let Some(claim) = teams.get_mut(name) else { continue };
        claim.guaranteed = own.map_or(claim.within, |quota| u64::from(quota.guaranteed));
        claim.limit = own.and_then(|quota| quota.limit).map(u64::from);
        claim.allowed |= own.is_some() || !governed;
        let (guaranteed, allowed) = (claim.guaranteed, claim.allowed);
        match &team.parent {
            None => top += guaranteed,
            Some(parent) => {
                let Some(around) = teams.get_mut(parent) else { continue };
                around.within += guaranteed;
                around.allowed |= allowed;
            }
        }
    }
    for (name, team) in &intent.teams {
        let around = team.parent.as_ref().is_some_and(|parent| {
            let has = |team: &'a Team| quota(team).is_some();
            ancestors(intent, parent).any(|(_, team)| has(team))
        });
        if let Some(claim) = teams.get_mut(name) {
            claim.allowed |= around;
        }
    }
    Unit { idle: capacity.saturating_sub(top), teams }
}

/// A team and those around it, the nearest first.
fn ancestors<'a>(
    intent: &'a Intent,
    team: &'a TeamName,
) -> impl Iterator<Item = (&'a TeamName, &'a Team)> {
    let of = |team: &'a TeamName| intent.teams.get_key_value(team);
    std::iter::successors(of(team), move |(_, team)| of(team.parent.as_ref()?))
}
