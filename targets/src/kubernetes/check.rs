//! What Kubernetes takes, and then does not hold.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Cluster, Intent, Kubernetes};
use fleetc_schema::name::{PoolName, TeamName};
use indexmap::IndexSet;

use super::resource_quota::{cap, holders};
use crate::kueue;

/// `kubernetes/open-pool-lifts-caps`: a pool without quotas hands out what teams are guaranteed in
/// another. A cap knows resources and no pools, so none is written for that resource.
pub fn open_pool_lifts_caps(
    intent: &Intent,
    cluster: &Cluster,
    kubernetes: &Kubernetes,
    found: &mut Vec<Diagnostic>,
) {
    let queued = kueue::covered(intent, cluster, kubernetes);
    let is_queued = |team: &TeamName, resource: &String| {
        queued.get(team).is_some_and(|resources| resources.contains(resource))
    };
    let mut lost = holders(intent, cluster);
    lost.retain(|resource, holders| {
        let mut teams = intent.teams.keys();
        !holders.governed.is_empty() && teams.any(|team| !is_queued(team, resource))
    });
    let open: IndexSet<&PoolName> = lost.values().flat_map(|h| h.open.iter().copied()).collect();
    for pool in open {
        let here = || lost.iter().filter(|(_, holders)| holders.open.contains(&pool));
        let closed: IndexSet<&PoolName> =
            here().flat_map(|(_, holders)| holders.governed.iter().copied()).collect();
        let capped = |team: &&TeamName| {
            let team = intent.teams.get(*team);
            team.is_some_and(|team| {
                here().any(|(resource, _)| cap(intent, team, cluster, resource) > 0)
            })
        };
        let teams = intent.teams.keys().filter(capped);
        let title = format!(
            "pool `{pool}` is open to every team, so nothing caps {} of pool {}",
            in_words(here().map(|(resource, _)| resource)),
            in_words(&closed),
        );
        let mut finding = Diagnostic::new(&rules::KUBERNETES_OPEN_POOL_LIFTS_CAPS, title)
            .at(ItemPath::item("pool", pool), "no team has a quota here");
        for closed in closed {
            finding = finding.at(ItemPath::item("pool", closed), "kept for teams with quotas");
        }
        found.push(
            finding
                .note("a ResourceQuota counts a resource in all pools of the cluster alike, and here some of it is free to all")
                .note(format!("any team may now take what is guaranteed to {}", in_words(teams)))
                .help(format!("give the teams that use `{pool}` a `quota \"{pool}\"` each"))
                .help("or let a queue count by pools: `queue \"kueue\"`"),
        );
    }
}

/// Names in backticks: `a`, `b` and `c`.
fn in_words<T: std::fmt::Display>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
