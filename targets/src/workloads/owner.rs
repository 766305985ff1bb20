//! What owns the pods: a Job, a Deployment, or a LeaderWorkerSet for a service whose replica spans
//! nodes.
//!
//! Work that ends is a Job; a multi-node one is indexed, so that each pod knows its rank. A service is
//! a Deployment; pods of a Deployment know no groups, so a replica of several pods is a group of a
//! LeaderWorkerSet, which the cluster must have.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent, Kubernetes, QueueKind, WorkloadKind};
use indexmap::IndexMap;
use serde::Serialize;

use super::pod::{self, PodTemplate};
use crate::OutputTree;
use crate::manifest::{Metadata, Object, Spec, Stage};
use crate::pods::{LOCAL_QUEUE, Pods};
use crate::write::header;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_mode: Option<&'static str>,
    completions: u32,
    parallelism: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_deadline_seconds: Option<u64>,
    template: PodTemplate,
}

#[derive(Serialize)]
struct Deployment {
    replicas: u32,
    selector: Selector,
    template: PodTemplate,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    match_labels: IndexMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LeaderWorkerSet {
    replicas: u32,
    leader_worker_template: Group,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    size: u32,
    restart_policy: &'static str,
    worker_template: PodTemplate,
}

/// Who owns the pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A Job.
    Job,
    /// A Deployment.
    Deployment,
    /// A LeaderWorkerSet.
    LeaderWorkerSet,
}

impl Owner {
    fn of(pods: &Pods<'_>) -> Self {
        match pods.workload.kind {
            WorkloadKind::Pretrain
            | WorkloadKind::Finetune
            | WorkloadKind::BatchScoring
            | WorkloadKind::Sweep
            | WorkloadKind::Ci => Self::Job,
            WorkloadKind::Inference | WorkloadKind::Notebook if pods.count > 1 => {
                Self::LeaderWorkerSet
            }
            WorkloadKind::Inference | WorkloadKind::Notebook => Self::Deployment,
        }
    }
}

/// Writes the template of one workload.
pub fn emit(
    intent: &Intent,
    cluster: &Cluster,
    kubernetes: &Kubernetes,
    pods: &Pods<'_>,
    tree: &mut OutputTree,
) {
    let Some(team) = intent.teams.get(&pods.workload.team) else { return };
    let owner = Owner::of(pods);
    let template = pod::template(intent, kubernetes, pods, owner);
    let mut metadata = Metadata::within(&team.namespace, pods.name.as_str());
    if kubernetes.queue.kind == QueueKind::Kueue {
        let queue = LOCAL_QUEUE.to_owned();
        metadata.labels.insert("kueue.x-k8s.io/queue-name".to_owned(), queue);
        if let Some(tier) = &pods.workload.tier {
            let tier = tier.to_string();
            metadata.labels.insert("kueue.x-k8s.io/priority-class".to_owned(), tier);
        }
    }
    let head = head(intent, cluster, kubernetes, pods, owner);
    let replicas = pods.workload.replicas.min;
    let item = [ItemPath::item("workload", pods.name)];
    match owner {
        Owner::Job => {
            let tier = pods.workload.tier.as_ref().and_then(|tier| intent.tiers.get(tier));
            let object = Object {
                api_version: "batch/v1",
                kind: "Job",
                metadata,
                body: Spec {
                    spec: Job {
                        completion_mode: (pods.count > 1).then_some("Indexed"),
                        completions: pods.count,
                        parallelism: pods.count,
                        active_deadline_seconds: tier
                            .and_then(|tier| tier.max_time)
                            .map(|time| time.0),
                        template,
                    },
                },
            };
            let path = object.path(&cluster.name, Stage::Workloads);
            tree.add(path, object.file(&head, item));
        }
        Owner::Deployment => {
            let object = Object {
                api_version: "apps/v1",
                kind: "Deployment",
                metadata,
                body: Spec {
                    spec: Deployment {
                        replicas,
                        selector: Selector { match_labels: pod::labels(intent, pods) },
                        template,
                    },
                },
            };
            let path = object.path(&cluster.name, Stage::Workloads);
            tree.add(path, object.file(&head, item));
        }
        Owner::LeaderWorkerSet => {
            let group = Group {
                size: pods.count,
                // A rank that is gone leaves the others waiting.
                restart_policy: "RecreateGroupOnPodRestart",
                worker_template: template,
            };
            let object = Object {
                api_version: "leaderworkerset.x-k8s.io/v1",
                kind: "LeaderWorkerSet",
                metadata,
                body: Spec { spec: LeaderWorkerSet { replicas, leader_worker_template: group } },
            };
            let path = object.path(&cluster.name, Stage::Workloads);
            tree.add(path, object.file(&head, item));
        }
    }
}

/// What the owner has to know.
fn head(
    intent: &Intent,
    cluster: &Cluster,
    kubernetes: &Kubernetes,
    pods: &Pods<'_>,
    owner: Owner,
) -> String {
    let mut lines = vec![
        format!(
            "fleet {}, cluster {}, workload {}: a template, not applied.",
            intent.fleet.name, cluster.name, pods.name
        ),
        format!("Replace the image {} and the command {}.", pod::IMAGE, pod::COMMAND),
    ];
    let (min, max) = (pods.workload.replicas.min, pods.workload.replicas.max);
    match owner {
        Owner::Job if min > 1 => {
            lines.push(format!("{min} run at once: each is a Job with a name of its own."));
        }
        Owner::Deployment | Owner::LeaderWorkerSet if max > min => {
            lines.push(format!("Scale it between {min} and {max} replicas."));
        }
        Owner::Job | Owner::Deployment | Owner::LeaderWorkerSet => {}
    }
    if owner == Owner::LeaderWorkerSet {
        lines.push("The cluster must have kubernetes-sigs/lws.".to_owned());
    }
    match kubernetes.queue.kind {
        QueueKind::None | QueueKind::Kueue => {}
        QueueKind::Kai | QueueKind::Volcano => {
            lines.push(format!("Add the scheduler and queue of {}.", kubernetes.queue.kind));
        }
    }
    if pod::rdma(intent, pods).is_some() {
        lines
            .push("Resources of RDMA are called and counted as the site's plugin does.".to_owned());
    }
    header(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}
