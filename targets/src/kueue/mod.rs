//! Kueue: flavors, the tree of teams with what each is guaranteed, priorities, and the manager's own
//! configuration.
//!
//! A pool is a ResourceFlavor. A team is a ClusterQueue; a team with teams within it is a Cohort too,
//! and its own queue stands in it. One Cohort holds all of a cluster.
//!
//! Source: kubernetes-sigs/kueue v0.16.0 to v0.19.2, `apis/kueue/v1beta2`, `apis/config/v1beta2` and
//! `pkg/webhooks`.

mod check;
mod cluster_queue;
mod cohort;
mod configuration;
mod flavors;
mod local_queue;
mod priority;
mod resource_flavor;
mod share;

use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{Cluster, Intent, Kubernetes, QueueKind, Tier};
use fleetc_schema::name::{PoolName, TeamName};
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect};
use fleetc_schema::version::{Known, KueueRelease};
use indexmap::IndexMap;

use crate::write::header;
use crate::{OutputFile, OutputTree, Scope, Target, kubernetes_clusters};

/// Kueue.
pub struct Kueue;

/// The group and version of what is written: stored since 0.16, and the older one is deprecated in
/// every release that is known here.
const API: &str = "kueue.x-k8s.io/v1beta2";

impl Target for Kueue {
    fn id(&self) -> &'static str {
        "kueue"
    }

    fn summary(&self) -> &'static str {
        "queues, quotas and borrowing of teams in Kueue"
    }

    fn versions(&self) -> String {
        let all = KueueRelease::ALL;
        match (all.first(), all.last()) {
            (Some(first), Some(last)) => format!("Kueue {first} to {last}"),
            _ => String::new(),
        }
    }

    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>> {
        let queued = |scope: &Scope<'_>| match scope {
            Scope::Kubernetes(_, _, kubernetes) => kubernetes.queue.kind == QueueKind::Kueue,
            Scope::Fleet(_) | Scope::Cluster(..) | Scope::Slurm(..) => false,
        };
        kubernetes_clusters(intent).into_iter().filter(queued).collect()
    }

    fn check(&self, scope: &Scope<'_>, found: &mut Vec<Diagnostic>) {
        let Scope::Kubernetes(intent, cluster, kubernetes) = scope else { return };
        check::dra_unsupported(intent, cluster, kubernetes, found);
        check::too_many_flavors(intent, cluster, kubernetes, found);
        check::preempts_by_priority(intent, cluster, found);
    }

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let mut tree = OutputTree::default();
        let Scope::Kubernetes(intent, cluster, kubernetes) = scope else { return tree };
        let groups = flavors::groups(intent, cluster, kubernetes);
        let shares = share::Shares::of(intent, cluster);
        resource_flavor::emit(intent, cluster, &mut tree);
        cohort::emit(intent, cluster, &groups, &shares, &mut tree);
        cluster_queue::emit(intent, cluster, &groups, &shares, &mut tree);
        local_queue::emit(intent, cluster, &groups, &shares, &mut tree);
        priority::emit(intent, cluster, &mut tree);
        configuration::emit(intent, cluster, kubernetes, &mut tree);
        tree
    }

    fn disruption(
        &self,
        change: &Change,
        old: Option<&Scope<'_>>,
        new: Option<&Scope<'_>>,
    ) -> Effect {
        let here = |name: &str| [old, new].into_iter().flatten().any(|scope| scope.name() == name);
        let has = |pool: &PoolName| {
            [old, new].into_iter().flatten().any(|scope| {
                let pool = scope.intent().pools.get(pool);
                pool.is_some_and(|p| p.parts.keys().any(|cluster| cluster.as_str() == scope.name()))
            })
        };
        match &change.kind {
            ChangeKind::Queue(cluster) if here(cluster.as_str()) => Effect::daemon(
                Disruption::RestartDaemon,
                "Kueue comes, goes or restarts; jobs of queues that go are held",
            ),
            ChangeKind::Quota(_, _, cluster) if here(cluster.as_str()) => {
                Effect::daemon(Disruption::Reload, "Kueue admits by the new quotas at once")
            }
            ChangeKind::Team(..) | ChangeKind::TeamSettings(_) | ChangeKind::Namespace(_) => {
                // The manager reads the namespaces that it manages when it starts.
                Effect::daemon(Disruption::RestartDaemon, "queues of teams change in Kueue")
            }
            ChangeKind::Pool(..)
            | ChangeKind::Nodes(_)
            | ChangeKind::SharingMode(_)
            | ChangeKind::SharingName(_)
            | ChangeKind::MigStrategy(_)
            | ChangeKind::MigLayout(_)
            | ChangeKind::Replicas(_)
            | ChangeKind::Missing(_) => {
                Effect::daemon(Disruption::Reload, "Kueue counts what the pool hands out anew")
            }
            // Names of devices, domains and topologies hang on these.
            ChangeKind::Devices(_)
            | ChangeKind::LabelPrefix
            | ChangeKind::Workload
            | ChangeKind::DraDriver(_)
            | ChangeKind::Topology => self.renamed(old, new),
            ChangeKind::Taints(pool) if has(pool) => match self.renamed(old, new) {
                effect if effect == Effect::none() => {
                    Effect::daemon(Disruption::Reload, "jobs that start tolerate other taints")
                }
                effect => effect,
            },
            ChangeKind::Tier => {
                Effect::daemon(Disruption::Reload, "WorkloadPriorityClasses come, go or change")
            }
            // Nothing of these stands in the files of this target, or they are about another cluster.
            ChangeKind::Queue(_)
            | ChangeKind::Quota(..)
            | ChangeKind::Taints(_)
            | ChangeKind::FleetName
            | ChangeKind::AsOf
            | ChangeKind::Cluster(..)
            | ChangeKind::SchedulerVersion(_)
            | ChangeKind::Controllers(_)
            | ChangeKind::Database(_)
            | ChangeKind::AutoDetect(_)
            | ChangeKind::Driver(_)
            | ChangeKind::Partition(..)
            | ChangeKind::PartitionPools(..)
            | ChangeKind::PartitionSettings(..)
            | ChangeKind::Distribution(_)
            | ChangeKind::GpuOperator(_)
            | ChangeKind::SlurmSettings(_)
            | ChangeKind::GitOps(_)
            | ChangeKind::Validator(_)
            | ChangeKind::System(_)
            | ChangeKind::PoolDriver(_)
            | ChangeKind::PoolSettings(_)
            | ChangeKind::Overrides(_)
            | ChangeKind::ExceptionReason(_)
            | ChangeKind::MaxUnavailable(_)
            | ChangeKind::Policy
            | ChangeKind::Exporter
            | ChangeKind::Alerting => Effect::none(),
        }
    }
}

impl Kueue {
    /// What it takes if objects get other names, or the manager another configuration.
    fn renamed(&self, old: Option<&Scope<'_>>, new: Option<&Scope<'_>>) -> Effect {
        let (Some(old), Some(new)) = (old, new) else { return Effect::none() };
        let (before, after) = (self.emit(old), self.emit(new));
        let recreate = before.files().iter().any(|(path, _)| after.get(path.as_str()).is_none());
        let path = configuration::path(new.name());
        let restart =
            before.get(&path).map(OutputFile::text) != after.get(&path).map(OutputFile::text);
        match (recreate, restart) {
            (false, false) => Effect::none(),
            (_, true) => Effect {
                recreate,
                ..Effect::daemon(
                    Disruption::RestartDaemon,
                    "Kueue's manager reads the names of devices when it starts",
                )
            },
            (true, false) => Effect {
                recreate,
                ..Effect::daemon(Disruption::Reload, "flavors or topologies get other names")
            },
        }
    }
}

/// Resources that the queue of each team covers: what Kueue counts and nothing else need cap. Empty
/// where Kueue does not queue.
pub fn covered<'a>(
    intent: &'a Intent,
    cluster: &Cluster,
    kubernetes: &Kubernetes,
) -> IndexMap<&'a TeamName, Vec<String>> {
    if kubernetes.queue.kind != QueueKind::Kueue {
        return IndexMap::new();
    }
    let groups = flavors::groups(intent, cluster, kubernetes);
    let shares = share::Shares::of(intent, cluster);
    let names = |team| {
        let groups = cluster_queue::covered(&groups, &shares, team);
        groups.iter().flat_map(|group| group.covered().iter().cloned()).collect()
    };
    intent.teams.keys().map(|team| (team, names(team))).collect()
}

/// The release of a cluster's Kueue; the newest that is known, if it is newer.
fn release(kubernetes: &Kubernetes) -> Option<KueueRelease> {
    match KueueRelease::of(kubernetes.queue.version.as_ref()?) {
        Known::Yes(release) | Known::Newer(release) => Some(release),
        Known::TooOld | Known::No => None,
    }
}

/// True if any tier lets its jobs be stopped for others.
fn stops_jobs(intent: &Intent) -> bool {
    intent.tiers.values().any(|tier: &Tier| tier.preemptible)
}

/// The first line of a file.
fn head(intent: &Intent, cluster: &Cluster, what: &str) -> String {
    header(&[&format!("fleet {}, cluster {}{what}", intent.fleet.name, cluster.name)])
}
