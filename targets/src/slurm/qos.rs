//! QOS of a cluster: one for each tier, and those of the teams that have quotas.
//!
//! Slurm has no guarantee: GrpTRES is a cap, and fair share only orders the queue. So a guarantee is
//! a QOS that is capped at it and preempts, beside one for what is borrowed, which gives way:
//! `research.pretrain` and `research.pretrain.borrow`. They hold as long as nothing that cannot be
//! preempted runs beside them, so a partition with such a pool takes no other QOS. Where jobs do not
//! make room for others by QOS, nothing takes back what was borrowed, and a team has one QOS for a
//! pool, capped at its limit, else at its guarantee. Source: resource_limits.html, preempt.html and
//! qos.html of Slurm's documentation.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{
    Cluster, Intent, Partition, PreemptBy, Quota, Resource, Slurm, Team, Tier,
};
use fleetc_schema::name::{PoolName, TeamName};
use fleetc_schema::units::Seconds;
use indexmap::IndexMap;

use super::tres::{GPU, typed};

/// A QOS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qos {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub use_: Use,
    /// `Priority`.
    pub priority: u32,
    /// `GrpTRES`: what all its jobs may have together.
    pub grp_tres: IndexMap<String, u64>,
    /// `MaxTRESPerJob` of `gres/gpu`.
    pub max_gpus_per_job: Option<u32>,
    /// `MaxWall`.
    pub max_wall: Option<Seconds>,
    /// `Preempt`: QOS whose jobs make room for its own.
    pub preempt: Vec<String>,
    /// Items behind it.
    pub items: Vec<ItemPath>,
}

/// What a QOS is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// Jobs of a tier.
    Tier {
        /// True if they may be stopped for others.
        preemptible: bool,
    },
    /// What a team is guaranteed of a pool, or its cap where nothing is borrowed.
    Guarantee(PoolName),
    /// What a team takes of a pool beyond its guarantee.
    Borrow(PoolName),
}

impl Qos {
    /// The pool that it is confined to.
    fn pool(&self) -> Option<&PoolName> {
        match &self.use_ {
            Use::Tier { .. } => None,
            Use::Guarantee(pool) | Use::Borrow(pool) => Some(pool),
        }
    }

    /// True if its jobs may be stopped for others.
    fn gives_way(&self) -> bool {
        match self.use_ {
            Use::Tier { preemptible } => preemptible,
            Use::Guarantee(_) => false,
            Use::Borrow(_) => true,
        }
    }
}

/// Every QOS of a cluster: tiers in their order, then teams and their pools in theirs. None without
/// a database, where Slurm has no QOS.
pub fn all(intent: &Intent, cluster: &Cluster, slurm: &Slurm) -> Vec<Qos> {
    if slurm.database.is_none() {
        return Vec::new();
    }
    let scope = Scope { intent, cluster, slurm };
    let mut all: Vec<Qos> =
        intent.tiers.iter().map(|(name, tier)| scope.of_tier(name, tier)).collect();
    for (name, team) in &intent.teams {
        for pool in scope.pools_of(team) {
            all.extend(scope.of_team(name, team, pool));
        }
    }
    let preempt: Vec<Vec<String>> = all.iter().map(|qos| scope.preempted(qos, &all)).collect();
    for (qos, preempt) in all.iter_mut().zip(preempt) {
        qos.preempt = preempt;
    }
    all
}

/// The QOS that a partition takes; none if it takes all.
pub fn allowed<'a>(
    intent: &Intent,
    cluster: &Cluster,
    partition: &Partition,
    all: &'a [Qos],
) -> Option<Vec<&'a str>> {
    let governed = |pool: &PoolName| intent.is_governed(pool, &cluster.name);
    let is_governed = partition.pools.iter().any(governed);
    if !is_governed && partition.tiers.is_empty() {
        return None;
    }
    let is_taken = |qos: &&Qos| match qos.pool() {
        Some(pool) => partition.pools.contains(pool),
        None => partition.tiers.iter().any(|tier| tier.as_str() == qos.name),
    };
    let taken: Vec<&str> = all.iter().filter(is_taken).map(|qos| qos.name.as_str()).collect();
    (!taken.is_empty()).then_some(taken)
}

/// The QOS that jobs of a team may have, the one of jobs that name none first.
pub fn of_account(
    intent: &Intent,
    cluster: &Cluster,
    slurm: &Slurm,
    name: &TeamName,
    team: &Team,
    all: &[Qos],
) -> Vec<String> {
    let scope = Scope { intent, cluster, slurm };
    let pools = scope.pools_of(team);
    let names = pools.into_iter().flat_map(|pool| {
        let borrow = scope.borrows().then(|| scope.borrow_name(scope.borrower(name, pool), pool));
        std::iter::once(scope.qos_name(name, pool)).chain(borrow)
    });
    let mut names: Vec<String> =
        names.filter(|name| all.iter().any(|qos| qos.name == *name)).collect();
    let mut tiers: Vec<(&str, u32)> =
        intent.tiers.iter().map(|(name, tier)| (name.as_str(), tier.priority)).collect();
    // A job that does not say how urgent it is, is of the least urgent tier.
    tiers.sort_by_key(|(_, priority)| *priority);
    names.extend(tiers.iter().map(|(name, _)| (*name).to_owned()));
    if tiers.is_empty() {
        names.push("normal".to_owned());
    }
    names
}

/// What QOS are computed from.
#[derive(Clone, Copy)]
struct Scope<'a> {
    intent: &'a Intent,
    cluster: &'a Cluster,
    slurm: &'a Slurm,
}

impl<'a> Scope<'a> {
    /// True if jobs make room for others by their QOS.
    fn borrows(&self) -> bool {
        self.slurm.preempt.is_some_and(|preempt| preempt.by == PreemptBy::Qos)
    }

    fn of_tier(&self, name: impl ToString + std::fmt::Display, tier: &Tier) -> Qos {
        Qos {
            items: vec![ItemPath::item("tier", &name)],
            name: name.to_string(),
            use_: Use::Tier { preemptible: tier.preemptible },
            priority: tier.priority,
            grp_tres: IndexMap::new(),
            max_gpus_per_job: tier.max_gpus_per_job,
            max_wall: tier.max_time,
            preempt: Vec::new(),
        }
    }

    /// Pools of this cluster that a team has quotas in.
    fn pools_of(&self, team: &'a Team) -> Vec<&'a PoolName> {
        let mut pools = Vec::new();
        for quota in team.quotas.iter().filter(|quota| quota.cluster == self.cluster.name) {
            if !pools.contains(&&quota.pool) {
                pools.push(&quota.pool);
            }
        }
        pools
    }

    fn of_team(&self, name: &TeamName, team: &'a Team, pool: &'a PoolName) -> Vec<Qos> {
        let items: Vec<ItemPath> =
            self.quotas(team, pool).map(|quota| quota.path.clone()).collect();
        // A guarantee is as urgent as the most urgent tier, and what is borrowed as the least: it
        // stands behind a guarantee in any case.
        let tiers = self.intent.tiers.values().map(|tier| tier.priority);
        let (least, most) = (tiers.clone().min().unwrap_or(0), tiers.max().unwrap_or(0));
        let most = most.max(least.saturating_add(1));
        let make = |name, use_, priority, grp_tres| Qos {
            name,
            use_,
            priority,
            grp_tres,
            max_gpus_per_job: None,
            max_wall: None,
            preempt: Vec::new(),
            items: items.clone(),
        };
        let mut found = Vec::new();
        let cap =
            |resource: &Resource| Some(self.own(name, pool, resource, |quota| self.held(quota)));
        let caps = self.tres(pool, cap);
        if caps.values().any(|cap| *cap > 0) {
            let use_ = Use::Guarantee(pool.clone());
            found.push(make(self.qos_name(name, pool), use_, most, caps));
        }
        if self.borrows() && self.borrower(name, pool) == name {
            let caps = self.tres(pool, |resource| self.borrowed(name, pool, resource));
            // Nothing to borrow if the limit is the guarantee. What has no limit stands in no cap.
            let capacity = self.intent.capacity(pool, &self.cluster.name);
            let mut resources = capacity.keys();
            if caps.is_empty()
                || resources.any(|resource| self.borrowed(name, pool, resource) != Some(0))
            {
                let use_ = Use::Borrow(pool.clone());
                found.push(make(self.borrow_name(name, pool), use_, least, caps));
            }
        }
        found
    }

    fn quotas(&self, team: &'a Team, pool: &'a PoolName) -> impl Iterator<Item = &'a Quota> {
        let cluster = &self.cluster.name;
        team.quotas.iter().filter(move |quota| quota.pool == *pool && quota.cluster == *cluster)
    }

    fn quota(&self, team: &TeamName, pool: &'a PoolName, resource: &Resource) -> Option<&'a Quota> {
        let team = self.intent.teams.get(team)?;
        self.quotas(team, pool).find(|quota| quota.resource == *resource)
    }

    /// What the first QOS of a quota is capped at.
    fn held(&self, quota: &Quota) -> Option<u64> {
        let cap = if self.borrows() { None } else { quota.limit };
        Some(u64::from(cap.unwrap_or(quota.guaranteed)))
    }

    /// What a team may borrow beyond its guarantee: its limit less its guarantee. None if there is
    /// no limit.
    fn borrowed(&self, name: &TeamName, pool: &'a PoolName, resource: &Resource) -> Option<u64> {
        let spare = |quota: &Quota| Some(u64::from(quota.limit?.saturating_sub(quota.guaranteed)));
        match self.quota(name, pool, resource) {
            // A resource of a governed pool that a team has no quota in is not for it.
            None => Some(0),
            Some(quota) if quota.limit.is_none() => None,
            Some(_) => Some(self.own(name, pool, resource, spare)),
        }
    }

    /// A value of a team's quota, less that of the nearest teams below it: the QOS of a team does
    /// not count the jobs of its children, whose share is inside its own.
    fn own(
        &self,
        name: &TeamName,
        pool: &'a PoolName,
        resource: &Resource,
        value: impl Fn(&Quota) -> Option<u64> + Copy,
    ) -> u64 {
        let of = |team: &TeamName| self.quota(team, pool, resource).and_then(value);
        let Some(all) = of(name) else { return 0 };
        let mut open = vec![name];
        let mut below = 0_u64;
        while let Some(parent) = open.pop() {
            let children = self.intent.teams.iter();
            for (child, _) in children.filter(|(_, team)| team.parent.as_ref() == Some(parent)) {
                match of(child) {
                    Some(value) => below = below.saturating_add(value),
                    None => open.push(child),
                }
            }
        }
        all.saturating_sub(below)
    }

    /// The team whose QOS a team borrows through: the nearest one at or above it that states a limit
    /// in the pool, so that the limit holds for it and its children together; else its own.
    fn borrower(&self, name: &'a TeamName, pool: &'a PoolName) -> &'a TeamName {
        let mut at = name;
        // A team stands after its parent, so the walk ends.
        while let Some((key, team)) = self.intent.teams.get_key_value(at) {
            if self.quotas(team, pool).any(|quota| quota.limit.is_some()) {
                return key;
            }
            match &team.parent {
                Some(parent) => at = parent,
                None => break,
            }
        }
        name
    }

    /// The `GrpTRES` of a QOS that is capped at `cap` of each resource of a pool.
    ///
    /// A request without a type goes round the cap of a type, so the sum stands there too. Where a
    /// pool hands out one thing, the sum is all there is to say.
    fn tres(
        &self,
        pool: &PoolName,
        cap: impl Fn(&Resource) -> Option<u64>,
    ) -> IndexMap<String, u64> {
        let resources: Vec<Resource> =
            self.intent.capacity(pool, &self.cluster.name).into_keys().collect();
        let caps: Vec<Option<u64>> = resources.iter().map(&cap).collect();
        let mut tres = IndexMap::new();
        if let Some(all) = caps.iter().copied().sum::<Option<u64>>() {
            tres.insert(GPU.to_owned(), all);
        }
        if resources.len() > 1 {
            for (resource, cap) in resources.iter().zip(caps) {
                if let (Some(kind), Some(cap)) = (self.gres_type(pool, resource), cap) {
                    tres.insert(typed(&kind), cap);
                }
            }
        }
        tres
    }

    fn gres_type(&self, pool: &PoolName, resource: &Resource) -> Option<String> {
        match resource {
            Resource::Slice(profile) => Some(profile.to_string()),
            Resource::Shared => None,
            Resource::Gpu => {
                let mut classes = self.intent.classes_of(&self.cluster.name);
                let class = classes.find(|class| class.node.pool == *pool)?;
                Some(class.node.gpu.as_ref()?.gres_type.clone())
            }
        }
    }

    /// QOS are of the database, not of a cluster: the parts of a split pool are told apart.
    fn qos_name(&self, team: &TeamName, pool: &PoolName) -> String {
        let split = self.intent.pools.get(pool).is_some_and(|pool| pool.parts.len() > 1);
        match split {
            true => format!("{team}.{pool}.{}", self.cluster.name),
            false => format!("{team}.{pool}"),
        }
    }

    fn borrow_name(&self, team: &TeamName, pool: &PoolName) -> String {
        format!("{}.borrow", self.qos_name(team, pool))
    }

    /// The QOS that give way to this one: for a tier, less urgent ones that are preemptible; for a
    /// guarantee, what is preemptible in a partition with its pool.
    fn preempted(&self, qos: &Qos, all: &[Qos]) -> Vec<String> {
        let meets: Vec<&str> = match &qos.use_ {
            Use::Borrow(_) | Use::Tier { preemptible: true } => return Vec::new(),
            Use::Tier { .. } => {
                let below = all.iter().filter(|other| other.pool().is_none());
                let below = below.filter(|other| other.priority < qos.priority);
                below.map(|other| other.name.as_str()).collect()
            }
            Use::Guarantee(_) if !self.borrows() => return Vec::new(),
            Use::Guarantee(pool) => {
                let partitions = self.slurm.partitions.values();
                let partitions = partitions.filter(|partition| partition.pools.contains(pool));
                partitions
                    .filter_map(|partition| allowed(self.intent, self.cluster, partition, all))
                    .flatten()
                    .collect()
            }
        };
        let gives_way = |other: &&Qos| other.gives_way() && meets.contains(&other.name.as_str());
        all.iter().filter(gives_way).map(|other| other.name.clone()).collect()
    }
}
