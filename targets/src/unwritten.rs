//! What a spec may say and no target writes yet, so that nobody takes it for done.

use fleetc_schema::intent::{
    Cluster, Devices, Fabric, Intent, Kubernetes, QueueKind, Scheduler, Slurm, SlurmTopology,
    TopologyPlugin,
};
use fleetc_schema::name::ClusterName;
use fleetc_schema::{Hostlist, ItemPath};

/// Items of the fleet with the words in them that reach no file but the Intent, in its order.
pub fn unwritten(intent: &Intent) -> Vec<(ItemPath, Vec<&'static str>)> {
    let mut found = Vec::new();
    for (name, cluster) in &intent.clusters {
        let words = match &cluster.scheduler {
            Scheduler::Slurm(slurm) => of_slurm(slurm),
            Scheduler::Kubernetes(kubernetes) => of_kubernetes(kubernetes),
        };
        found.push((ItemPath::item("cluster", name), words));
    }
    let slurm_nodes = slurm_nodes(intent);
    for (name, fabric) in &intent.fabrics {
        // A tree of switches is written for the nodes of Slurm.
        let words = match nodes_of(fabric).intersection(&slurm_nodes).is_empty() {
            true => vec!["switch", "attach"],
            false => Vec::new(),
        };
        found.push((ItemPath::item("fabric", name), words));
    }
    for (name, pool) in &intent.pools {
        let in_slurm = !pool.nodes.intersection(&slurm_nodes).is_empty();
        let words = [
            ("devices dra", pool.devices == Devices::Dra),
            ("placement", pool.placement.is_some()),
            ("features", !pool.features.is_empty() && !in_slurm),
            ("weight", pool.weight.is_some() && !in_slurm),
        ];
        found.push((ItemPath::item("pool", name), said(&words)));
    }
    // Tiers, quotas and weights are QOS and accounts in Slurm, where it has a database.
    let keeps_accounts = intent.clusters.values().any(has_accounts);
    let kubernetes = intent.clusters.values().any(|cluster| !is_slurm(cluster));
    for name in intent.tiers.keys() {
        let words = [
            ("priority under Kubernetes", kubernetes && keeps_accounts),
            ("priority", !keeps_accounts),
        ];
        found.push((ItemPath::item("tier", name), said(&words)));
    }
    let is_lost = |cluster: &ClusterName| {
        let cluster = intent.clusters.get(cluster);
        cluster.is_some_and(|cluster| is_slurm(cluster) && !has_accounts(cluster))
    };
    for (name, team) in &intent.teams {
        let words = [
            ("quota under Slurm", team.quotas.iter().any(|quota| is_lost(&quota.cluster))),
            ("weight", team.weight.is_some() && !keeps_accounts),
            ("contact", team.contact.is_some()),
        ];
        found.push((ItemPath::item("team", name), said(&words)));
    }
    if let Some(monitoring) = &intent.monitoring {
        let words = [
            ("slack", monitoring.slack_url_file.is_some()),
            ("receiver", !monitoring.receivers.is_empty()),
            ("route", !monitoring.routes.is_empty()),
            ("alert", !monitoring.alerts.is_empty()),
        ];
        found.push((ItemPath::default().child("monitoring"), said(&words)));
    }
    found.retain(|(_, words)| !words.is_empty());
    found
}

fn of_slurm(slurm: &Slurm) -> Vec<&'static str> {
    let block = |topology: &SlurmTopology| topology.plugin == TopologyPlugin::Block;
    said(&[("topology block", slurm.topology.as_ref().is_some_and(block))])
}

fn of_kubernetes(kubernetes: &Kubernetes) -> Vec<&'static str> {
    said(&[
        ("dra-driver", kubernetes.dra_driver.is_some()),
        ("queue", kubernetes.queue.kind != QueueKind::None),
        ("level", !kubernetes.queue.levels.is_empty()),
        ("gitops", kubernetes.gitops.is_some()),
    ])
}

fn is_slurm(cluster: &Cluster) -> bool {
    matches!(cluster.scheduler, Scheduler::Slurm(_))
}

fn has_accounts(cluster: &Cluster) -> bool {
    match &cluster.scheduler {
        Scheduler::Slurm(slurm) => slurm.database.is_some(),
        Scheduler::Kubernetes(_) => false,
    }
}

fn slurm_nodes(intent: &Intent) -> Hostlist {
    let clusters = intent.clusters.values().filter(|cluster| is_slurm(cluster));
    let classes = clusters.flat_map(|cluster| intent.classes_of(&cluster.name));
    classes.fold(Hostlist::default(), |all, class| all.union(&class.nodes))
}

fn nodes_of(fabric: &Fabric) -> Hostlist {
    let attachments = fabric.attachments.iter();
    attachments.fold(Hostlist::default(), |all, attachment| all.union(&attachment.nodes))
}

fn said(words: &[(&'static str, bool)]) -> Vec<&'static str> {
    words.iter().filter(|(_, said)| *said).map(|(word, _)| *word).collect()
}
