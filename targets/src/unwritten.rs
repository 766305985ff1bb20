//! What a spec may say and no target writes yet, so that nobody takes it for done.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{
    AutoDetect, Devices, Intent, Kubernetes, Pool, QueueKind, Scheduler, Slurm,
};
use fleetc_schema::name::ClusterName;

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
    for name in intent.fabrics.keys() {
        found.push((ItemPath::item("fabric", name), vec!["switch", "attach"]));
    }
    let slurm = |pool: &Pool| pool.parts.keys().any(|cluster| is_slurm(intent, cluster));
    for (name, pool) in &intent.pools {
        let words = [
            ("count", pool.elastic.is_some() && slurm(pool)),
            ("devices dra", pool.devices == Devices::Dra),
            ("placement", pool.placement.is_some()),
            ("features", !pool.features.is_empty()),
            ("weight", pool.weight.is_some()),
        ];
        found.push((ItemPath::item("pool", name), said(&words)));
    }
    for name in intent.tiers.keys() {
        found.push((ItemPath::item("tier", name), vec!["priority"]));
    }
    for (name, team) in &intent.teams {
        let words = [
            ("quota under Slurm", team.quotas.iter().any(|q| is_slurm(intent, &q.cluster))),
            ("weight", team.weight.is_some()),
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
    said(&[
        ("devices of gres.conf", slurm.autodetect == AutoDetect::Off),
        ("preempt", slurm.preempt.is_some()),
        ("power-saving", slurm.power_saving.is_some()),
        ("topology", slurm.topology.is_some()),
        ("tiers", slurm.partitions.values().any(|partition| !partition.tiers.is_empty())),
        ("extra", !slurm.extra.is_empty()),
    ])
}

fn of_kubernetes(kubernetes: &Kubernetes) -> Vec<&'static str> {
    said(&[
        ("dra-driver", kubernetes.dra_driver.is_some()),
        ("queue", kubernetes.queue.kind != QueueKind::None),
        ("level", !kubernetes.queue.levels.is_empty()),
        ("gitops", kubernetes.gitops.is_some()),
    ])
}

fn is_slurm(intent: &Intent, cluster: &ClusterName) -> bool {
    let cluster = intent.clusters.get(cluster);
    cluster.is_some_and(|cluster| matches!(cluster.scheduler, Scheduler::Slurm(_)))
}

fn said(words: &[(&'static str, bool)]) -> Vec<&'static str> {
    words.iter().filter(|(_, said)| *said).map(|(word, _)| *word).collect()
}
