//! The plan: what changed between two Intents, and what each change disturbs.
//!
//! It works on Intents, never on text. Each target rates each change in each of its scopes; the plan
//! joins the ratings by cluster.

mod check;
mod diff;
mod instances;

pub use check::findings;
pub use diff::changes;
pub use instances::{InstanceChange, InstanceWay, instance_changes};

use std::collections::BTreeMap;

use fleetc_schema::Hostlist;
use fleetc_schema::intent::{Intent, Scheduler};
use fleetc_schema::plan::{Change, Disruption, Effect};
use fleetc_targets::{Scope, TARGETS};

/// What changed, each with what it disturbs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The changes, in the order of the Intent.
    pub steps: Vec<Step>,
}

/// A change with its effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What changed.
    pub change: Change,
    /// The worst that it does anywhere.
    pub disruption: Disruption,
    /// What it does, by cluster; the fleet's own scope has no cluster.
    pub effects: Vec<ClusterEffect>,
    /// What it does to GPU instances, if it changes a MIG layout.
    pub instances: Vec<InstanceChange>,
}

/// What a change does in one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterEffect {
    /// The cluster; empty for the fleet.
    pub cluster: String,
    /// `Slurm` or `Kubernetes`; empty for the fleet.
    pub scheduler: &'static str,
    /// The worst that any target says.
    pub disruption: Disruption,
    /// Nodes that are disturbed.
    pub nodes: Hostlist,
    /// True if an object must be made anew.
    pub recreate: bool,
    /// What happens, by target.
    pub reasons: Vec<(&'static str, String)>,
}

impl Plan {
    /// True if nothing changed.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The worst that happens.
    pub fn disruption(&self) -> Disruption {
        self.steps.iter().map(|step| step.disruption).max().unwrap_or(Disruption::None)
    }

    /// Every node that is drained, reset or rebooted.
    pub fn disturbed_nodes(&self) -> Hostlist {
        let effects = self.steps.iter().flat_map(|step| &step.effects);
        effects
            .filter(|effect| effect.disruption >= Disruption::Drain)
            .fold(Hostlist::default(), |all, effect| all.union(&effect.nodes))
    }
}

/// Compares two Intents.
pub fn plan(old: &Intent, new: &Intent) -> Plan {
    let steps = changes(old, new).into_iter().map(|change| step(change, old, new)).collect();
    Plan { steps }
}

fn step(change: Change, old: &Intent, new: &Intent) -> Step {
    let mut by_cluster: BTreeMap<String, ClusterEffect> = BTreeMap::new();
    for target in TARGETS {
        let (before, after) = (target.scopes(old), target.scopes(new));
        let mut names: Vec<&str> = before.iter().chain(&after).map(Scope::name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let of = |scopes: &[Scope<'_>]| scopes.iter().position(|scope| scope.name() == name);
            let old_scope = of(&before).and_then(|at| before.get(at));
            let new_scope = of(&after).and_then(|at| after.get(at));
            let effect = target.disruption(&change, old_scope, new_scope);
            if effect == Effect::none() {
                continue;
            }
            let scheduler = new_scope.or(old_scope).map_or("", scheduler);
            let entry = by_cluster.entry(name.to_owned()).or_insert_with(|| ClusterEffect {
                cluster: name.to_owned(),
                scheduler,
                disruption: Disruption::None,
                nodes: Hostlist::default(),
                recreate: false,
                reasons: Vec::new(),
            });
            entry.disruption = entry.disruption.max(effect.disruption);
            entry.nodes = entry.nodes.union(&effect.nodes);
            entry.recreate |= effect.recreate;
            entry.reasons.push((target.id(), effect.what));
        }
    }
    let effects: Vec<ClusterEffect> = by_cluster.into_values().collect();
    let disruption = effects.iter().map(|e| e.disruption).max().unwrap_or(Disruption::None);
    let instances = instance_changes(&change, old, new);
    Step { change, disruption, effects, instances }
}

fn scheduler(scope: &Scope<'_>) -> &'static str {
    match scope.cluster().map(|cluster| &cluster.scheduler) {
        None => "",
        Some(Scheduler::Slurm(_)) => "Slurm",
        Some(Scheduler::Kubernetes(_)) => "Kubernetes",
    }
}
