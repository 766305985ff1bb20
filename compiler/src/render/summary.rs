//! A fleet in a few lines, for the end of a compile.

use fleetc_schema::Hostlist;
use fleetc_schema::intent::{Cluster, Intent, Resource, Scheduler};

use super::plural;

/// What the fleet is, cluster by cluster.
pub fn fleet(intent: &Intent) -> String {
    let nodes: u64 = intent.classes.values().map(|class| class.nodes.len()).sum();
    let gpus: u64 = intent
        .classes
        .values()
        .map(|class| class.nodes.len() * class.node.gpus.iter().map(|_| 1_u64).sum::<u64>())
        .sum();
    let mut text = format!(
        "{}: {}, {}, {}, {}\n",
        intent.fleet.name,
        plural(intent.clusters.len() as u64, "cluster"),
        plural(intent.pools.len() as u64, "pool"),
        plural(nodes, "node"),
        plural(gpus, "GPU"),
    );
    let width = intent.clusters.keys().map(|name| name.as_str().len()).max().unwrap_or(0);
    for cluster in intent.clusters.values() {
        text.push_str(&one(intent, cluster, width));
    }
    text
}

fn one(intent: &Intent, cluster: &Cluster, width: usize) -> String {
    let scheduler = match &cluster.scheduler {
        Scheduler::Slurm(slurm) => format!("Slurm {}", slurm.version),
        Scheduler::Kubernetes(kubernetes) => format!("Kubernetes {}", kubernetes.version),
    };
    let mut text = format!("  {:width$}  {scheduler}\n", cluster.name.as_str());
    for (name, pool) in &intent.pools {
        let Some(nodes) = pool.parts.get(&cluster.name).filter(|nodes| !nodes.is_empty()) else {
            continue;
        };
        let capacity: Vec<String> = intent
            .capacity(name, &cluster.name)
            .iter()
            .map(|(resource, count)| match resource {
                Resource::Gpu => plural(*count, "GPU"),
                Resource::Shared => plural(*count, "share") + " of GPUs",
                Resource::Slice(profile) => format!("{count} × {profile}"),
            })
            .collect();
        let nodes = format!("{} ({nodes})", plural(Hostlist::len(nodes), "node"));
        let capacity = match capacity.is_empty() {
            true => "no GPU".to_owned(),
            false => capacity.join(" + "),
        };
        text.push_str(&format!("  {:width$}    {name}: {nodes}, {capacity}\n", ""));
    }
    text
}

/// What the spec says and no file has yet; empty if there is nothing.
pub fn unwritten(intent: &Intent) -> String {
    let found = fleetc_targets::unwritten(intent);
    let width = found.iter().map(|(item, _)| item.as_str().len()).max().unwrap_or(0);
    let mut text = String::new();
    for (item, words) in &found {
        text.push_str(&format!("  {:width$}  {}\n", item.as_str(), words.join(", ")));
    }
    match text.is_empty() {
        true => text,
        false => format!("only in the Intent so far, written by no target:\n{text}"),
    }
}
