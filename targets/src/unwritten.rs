//! What a spec may say and no target writes yet, so that nobody takes it for done.

use fleetc_schema::intent::{
    Cluster, Distribution, DriverOwner, Fabric, Intent, Kubernetes, Pool, QueueKind, Scheduler,
};
use fleetc_schema::name::ClusterName;
use fleetc_schema::{Hostlist, ItemPath};

/// Items of the fleet with the words in them that reach no file but the Intent, in its order.
pub fn unwritten(intent: &Intent) -> Vec<(ItemPath, Vec<&'static str>)> {
    let mut found = Vec::new();
    for (name, cluster) in &intent.clusters {
        let words = match &cluster.scheduler {
            Scheduler::Slurm(_) => Vec::new(),
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
            ("driver", pool.driver.is_some() && operator_installs(intent, pool)),
            ("placement", pool.placement.is_some()),
            ("features", !pool.features.is_empty() && !in_slurm),
            ("weight", pool.weight.is_some() && !in_slurm),
            ("taint", !pool.taints.is_empty() && !owners(intent, pool).any(is_kubernetes)),
        ];
        found.push((ItemPath::item("pool", name), said(&words)));
    }
    // Tiers, quotas and weights are QOS and accounts in Slurm, where it has a database. In Kubernetes
    // tiers are PriorityClasses, and weights are Kueue's.
    let keeps_accounts = intent.clusters.values().any(has_accounts);
    let queues_fairly = intent.clusters.values().any(has_kueue);
    for name in intent.tiers.keys() {
        let mut kubernetes = intent.clusters.values().filter(|cluster| is_kubernetes(cluster));
        let is_class = |cluster: &Cluster| {
            let mut tiers = intent.tiers_of(&cluster.name);
            tiers.any(|(other, _)| other == name)
        };
        let written = keeps_accounts || kubernetes.any(is_class);
        found.push((ItemPath::item("tier", name), said(&[("priority", !written)])));
    }
    let is_lost = |cluster: &ClusterName| {
        let cluster = intent.clusters.get(cluster);
        cluster.is_some_and(|cluster| is_slurm(cluster) && !has_accounts(cluster))
    };
    for (name, team) in &intent.teams {
        let words = [
            ("quota under Slurm", team.quotas.iter().any(|quota| is_lost(&quota.cluster))),
            ("weight", team.weight.is_some() && !keeps_accounts && !queues_fairly),
            // Alertmanager needs a mail server for this, which no word names.
            ("email", team.contact.as_ref().is_some_and(|contact| contact.email.is_some())),
        ];
        found.push((ItemPath::item("team", name), said(&words)));
    }
    found.retain(|(_, words)| !words.is_empty());
    found
}

fn of_kubernetes(kubernetes: &Kubernetes) -> Vec<&'static str> {
    said(&[
        // OpenShift installs it through OLM.
        (
            "gpu-operator",
            kubernetes.gpu_operator.is_some() && kubernetes.distribution == Distribution::Openshift,
        ),
        ("queue", matches!(kubernetes.queue.kind, QueueKind::Kai | QueueKind::Volcano)),
        ("gitops", kubernetes.gitops.as_ref().is_some_and(|gitops| gitops.source.is_none())),
    ])
}

/// True if the GPU Operator would have to install the driver of a pool that has one of its own.
fn operator_installs(intent: &Intent, pool: &Pool) -> bool {
    owners(intent, pool).any(|cluster| match &cluster.scheduler {
        Scheduler::Slurm(_) => false,
        Scheduler::Kubernetes(kubernetes) => kubernetes.driver.owner == DriverOwner::Operator,
    })
}

/// The clusters that have nodes of a pool.
fn owners<'a>(intent: &'a Intent, pool: &'a Pool) -> impl Iterator<Item = &'a Cluster> {
    pool.parts.keys().filter_map(|cluster| intent.clusters.get(cluster))
}

fn is_kubernetes(cluster: &Cluster) -> bool {
    !is_slurm(cluster)
}

fn has_kueue(cluster: &Cluster) -> bool {
    match &cluster.scheduler {
        Scheduler::Slurm(_) => false,
        Scheduler::Kubernetes(kubernetes) => kubernetes.queue.kind == QueueKind::Kueue,
    }
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
