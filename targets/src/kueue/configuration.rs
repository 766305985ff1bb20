//! The manager's configuration, as the ConfigMap that upstream's manifests and its chart both make.
//!
//! - Jobs of teams' namespaces are managed whether they name a queue or not: else they would run
//!   beside every quota. Those of a team that may use nothing in the cluster are held.
//! - Processors, memory and network devices are not counted; no quota of a fleet is in them. What is
//!   left and no queue covers is refused, which is the manager's default.
//! - Each DeviceClass of a DRA pool is counted under the resource that queues cover. The class of
//!   IMEX channels too: a claim on a class that is not mapped makes a job inadmissible.
//!
//! Source: kueue v0.19.2 `apis/config/v1beta2`, `config/components/manager`, `pkg/dra/claims.go`.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent, Kubernetes};
use fleetc_schema::version::KueueRelease;
use indexmap::IndexMap;
use serde::Serialize;

use super::{cluster_queue, head, release};
use crate::OutputTree;
use crate::manifest::{Metadata, Object, Stage};
use crate::pods;
use crate::write::header;
use crate::write::yaml;

/// Name and namespace of upstream's manifests. Source: kueue v0.19.2 `config/default`.
const NAME: &str = "kueue-manager-config";
const NAMESPACE: &str = "kueue-system";

/// How long pods of an admitted job may take to be ready; the default from 0.19, off before. Images
/// of many GiB are pulled in this time.
const READY_WITHIN: &str = "30m";

/// What no queue counts. Huge pages come in sizes; network devices under the names of their plugins.
const NOT_COUNTED: &[&str] =
    &["cpu", "memory", "ephemeral-storage", "hugepages-", "pods", "rdma/", "vpc.amazonaws.com/efa"];

#[derive(Serialize)]
struct Data {
    data: IndexMap<&'static str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    api_version: &'static str,
    kind: &'static str,
    manage_jobs_without_queue_name: bool,
    managed_jobs_namespace_selector: Selector,
    wait_for_pods_ready: WaitForPodsReady,
    integrations: Integrations,
    #[serde(skip_serializing_if = "Option::is_none")]
    fair_sharing: Option<FairSharing>,
    resources: Resources,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    match_expressions: Vec<Expression>,
}

#[derive(Serialize)]
struct Expression {
    key: &'static str,
    operator: &'static str,
    values: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitForPodsReady {
    timeout: &'static str,
    recovery_timeout: &'static str,
    block_admission: bool,
}

#[derive(Serialize)]
struct Integrations {
    frameworks: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FairSharing {
    preemption_strategies: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resources {
    exclude_resource_prefixes: &'static [&'static str],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    device_class_mappings: Vec<Mapping>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mapping {
    name: String,
    device_class_names: Vec<String>,
}

/// Writes the configuration of a cluster's Kueue.
pub fn emit(intent: &Intent, cluster: &Cluster, kubernetes: &Kubernetes, tree: &mut OutputTree) {
    let Some(release) = release(kubernetes) else { return };
    let mut namespaces: Vec<String> =
        intent.teams.values().map(|team| team.namespace.to_string()).collect();
    namespaces.sort();
    namespaces.dedup();
    let strategies = vec!["LessThanOrEqualToFinalShare", "LessThanInitialShare"];
    let configuration = Configuration {
        api_version: "config.kueue.x-k8s.io/v1beta2",
        kind: "Configuration",
        manage_jobs_without_queue_name: true,
        managed_jobs_namespace_selector: Selector {
            match_expressions: vec![Expression {
                key: "kubernetes.io/metadata.name",
                operator: "In",
                values: namespaces,
            }],
        },
        wait_for_pods_ready: WaitForPodsReady {
            timeout: READY_WITHIN,
            recovery_timeout: READY_WITHIN,
            // One job at a time would be admitted in the whole cluster.
            block_admission: false,
        },
        integrations: Integrations { frameworks: frameworks(release) },
        fair_sharing: cluster_queue::shares_fairly(intent)
            .then_some(FairSharing { preemption_strategies: strategies }),
        resources: Resources {
            exclude_resource_prefixes: NOT_COUNTED,
            device_class_mappings: mappings(intent, cluster, kubernetes),
        },
    };
    let data = IndexMap::from([("controller_manager_config.yaml", yaml::document(&configuration))]);
    let object = Object {
        api_version: "v1",
        kind: "ConfigMap",
        metadata: Metadata::within(NAMESPACE, NAME),
        body: Data { data },
    };
    let head = head(intent, cluster, ": what Kueue's manager reads when it starts.")
        + &header(&[
            "Under Helm give the same text to managerConfig.controllerManagerConfigYaml.",
            "Restart deployment/kueue-controller-manager after a change.",
        ]);
    let item = ItemPath::item("cluster", &cluster.name).child("kubernetes").child("queue");
    tree.add(path(cluster.name.as_str()), object.file(&head, [item]));
}

/// The path of the configuration of a cluster.
pub fn path(cluster: &str) -> String {
    format!("clusters/{cluster}/kubernetes/{}/configmap-{NAME}.yaml", Stage::Queues.folder())
}

/// How devices of DRA are counted: each class under one name.
pub fn mappings(intent: &Intent, cluster: &Cluster, kubernetes: &Kubernetes) -> Vec<Mapping> {
    let mut mappings = Vec::new();
    for (pool, _) in pods::dra_pools(intent, cluster) {
        for unit in intent.capacity(pool, &cluster.name).keys() {
            mappings.push(Mapping {
                name: pods::counted_resource(intent, pool, unit),
                device_class_names: vec![pods::device_class(intent, pool, unit)],
            });
        }
    }
    let has_domain = |pods: &pods::Pods<'_>| pods.has_compute_domain(intent, kubernetes);
    if pods::of_cluster(intent, &cluster.name).iter().any(has_domain) {
        mappings.push(Mapping {
            name: pods::channel_resource(intent),
            device_class_names: vec![pods::CHANNEL_CLASS.to_owned()],
        });
    }
    mappings
}

/// The kinds of jobs that upstream's manifests have Kueue manage. Source: kueue v0.16.0 to v0.19.2,
/// `config/components/manager/controller_manager_config.yaml`.
fn frameworks(release: KueueRelease) -> Vec<&'static str> {
    let mut all = vec!["batch/job", "kubeflow.org/mpijob", "ray.io/rayjob", "ray.io/raycluster"];
    let training = [
        "kubeflow.org/paddlejob",
        "kubeflow.org/pytorchjob",
        "kubeflow.org/tfjob",
        "kubeflow.org/xgboostjob",
        "kubeflow.org/jaxjob",
    ];
    match release {
        KueueRelease::V0_16 => {
            all.push("jobset.x-k8s.io/jobset");
            all.extend(training);
        }
        KueueRelease::V0_17 | KueueRelease::V0_18 => {
            all.extend(["ray.io/rayservice", "jobset.x-k8s.io/jobset"]);
            all.extend(training);
        }
        KueueRelease::V0_19 => all.extend(["ray.io/rayservice", "jobset.x-k8s.io/jobset"]),
    }
    all.extend(["workload.codeflare.dev/appwrapper", "trainer.kubeflow.org/trainjob"]);
    all.extend(["pod", "deployment", "statefulset"]);
    all.push("leaderworkerset.x-k8s.io/leaderworkerset");
    all
}
