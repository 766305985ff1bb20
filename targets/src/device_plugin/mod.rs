//! Configuration of the NVIDIA device plugin: one ConfigMap a cluster, one key a pool.
//!
//! A node picks its key with the label `nvidia.com/device-plugin.config`. The plugin drops unknown
//! keys without a word, so only documented ones are written. The number of slices is not in here:
//! the plugin finds the instances itself. Source: NVIDIA/k8s-device-plugin v0.20.0 `api/config/v1`.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{Devices, Intent, Pool, Shared, Sharing};
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect};
use indexmap::IndexMap;
use serde::Serialize;

use crate::manifest::{self, DEVICE_PLUGIN_CONFIG, Metadata, Stage};
use crate::write::{header, yaml};
use crate::{OutputFile, OutputTree, Scope, Target, kubernetes_clusters};

/// Configuration of the device plugin.
pub struct DevicePlugin;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConfigMap<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Metadata,
    data: IndexMap<&'a str, String>,
}

#[derive(Serialize)]
struct Config {
    version: &'static str,
    flags: Flags,
    #[serde(skip_serializing_if = "Option::is_none")]
    sharing: Option<SharingConfig>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Flags {
    mig_strategy: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum SharingConfig {
    TimeSlicing(Replicated),
    Mps(Replicated),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Replicated {
    rename_by_default: bool,
    fail_requests_greater_than_one: bool,
    resources: Vec<ReplicatedResource>,
}

#[derive(Serialize)]
struct ReplicatedResource {
    name: &'static str,
    replicas: u32,
}

impl Target for DevicePlugin {
    fn id(&self) -> &'static str {
        "device-plugin"
    }

    fn summary(&self) -> &'static str {
        "configuration of the NVIDIA device plugin, one key a pool"
    }

    fn versions(&self) -> String {
        "k8s-device-plugin 0.17 to 0.20".to_owned()
    }

    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>> {
        kubernetes_clusters(intent)
    }

    fn check(&self, _: &Scope<'_>, _: &mut Vec<Diagnostic>) {}

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let mut tree = OutputTree::default();
        let Scope::Kubernetes(intent, cluster, kubernetes) = scope else { return tree };
        let pools: Vec<_> = intent
            .pools
            .iter()
            .filter(|(_, pool)| pool.parts.contains_key(&cluster.name))
            .filter(|(_, pool)| pool.devices == Devices::DevicePlugin)
            .collect();
        if pools.is_empty() {
            return tree;
        }
        let namespace =
            kubernetes.gpu_operator.as_ref().map(|operator| operator.namespace.as_str());
        let document = ConfigMap {
            api_version: "v1",
            kind: "ConfigMap",
            metadata: Metadata::within(namespace.unwrap_or("kube-system"), DEVICE_PLUGIN_CONFIG),
            data: pools
                .iter()
                .map(|(name, pool)| (name.as_str(), yaml::document(&config(pool))))
                .collect(),
        };
        let fleet = format!(
            "fleet {}, cluster {}: one key a pool, chosen by the node label",
            intent.fleet.name, cluster.name
        );
        let lines = [
            &fleet,
            "nvidia.com/device-plugin.config. A plugin reads its key when it starts: after a change,",
            "kubectl rollout restart its DaemonSet.",
        ];
        let text = header(&lines) + &yaml::document(&document);
        let items = pools.iter().map(|(name, _)| ItemPath::item("pool", name).child("sharing"));
        let path = manifest::object(&cluster.name, Stage::Nodes, "ConfigMap", DEVICE_PLUGIN_CONFIG);
        tree.add(path, OutputFile::one(items, text));
        tree
    }

    fn disruption(
        &self,
        change: &Change,
        old: Option<&Scope<'_>>,
        new: Option<&Scope<'_>>,
    ) -> Effect {
        let (ChangeKind::SharingMode(pool)
        | ChangeKind::Replicas(pool)
        | ChangeKind::SharingName(pool)
        | ChangeKind::Devices(pool)
        | ChangeKind::MigStrategy(pool)) = &change.kind
        else {
            return other(change);
        };
        let nodes = [old, new]
            .into_iter()
            .flatten()
            .find_map(|scope| scope.intent().pools.get(pool)?.parts.get(scope.name()).cloned());
        let what = "pods hold devices that will be called otherwise";
        Effect::on(Disruption::Drain, nodes.unwrap_or_default(), what)
    }
}

/// Changes that do not touch the plugin's configuration, or touch it without harm.
fn other(change: &Change) -> Effect {
    match &change.kind {
        ChangeKind::Pool(..) | ChangeKind::GpuOperator(_) => {
            Effect::daemon(Disruption::RestartDaemon, "the device plugin reads its configuration")
        }
        ChangeKind::SharingMode(_)
        | ChangeKind::Replicas(_)
        | ChangeKind::SharingName(_)
        | ChangeKind::Devices(_)
        | ChangeKind::MigStrategy(_)
        | ChangeKind::MigLayout(_)
        | ChangeKind::FleetName
        | ChangeKind::AsOf
        | ChangeKind::LabelPrefix
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
        | ChangeKind::Queue(_)
        | ChangeKind::Topology
        | ChangeKind::SlurmSettings(_)
        | ChangeKind::DraDriver(_)
        | ChangeKind::GitOps(_)
        | ChangeKind::Validator(_)
        | ChangeKind::Taints(_)
        | ChangeKind::PoolDriver(_)
        | ChangeKind::PoolSettings(_)
        | ChangeKind::Tier
        | ChangeKind::TeamSettings(_)
        | ChangeKind::Alerting
        | ChangeKind::System(_)
        | ChangeKind::Nodes(_)
        | ChangeKind::Missing(_)
        | ChangeKind::ExceptionReason(_)
        | ChangeKind::Overrides(_)
        | ChangeKind::MaxUnavailable(_)
        | ChangeKind::Policy
        | ChangeKind::Team(..)
        | ChangeKind::Namespace(_)
        | ChangeKind::Quota(..)
        | ChangeKind::Workload
        | ChangeKind::Exporter => Effect::none(),
    }
}

fn config(pool: &Pool) -> Config {
    let replicated = |shared: &Shared| Replicated {
        // Renamed, so that nobody takes a share for a GPU; a request of two would give no more.
        rename_by_default: shared.rename,
        fail_requests_greater_than_one: true,
        resources: vec![ReplicatedResource { name: "nvidia.com/gpu", replicas: shared.replicas }],
    };
    let (mig_strategy, sharing) = match &pool.sharing {
        Sharing::Whole => ("none", None),
        Sharing::Mig { strategy, .. } => (strategy.as_str(), None),
        Sharing::Mps(shared) => ("none", Some(SharingConfig::Mps(replicated(shared)))),
        Sharing::TimeSlicing(shared) => {
            ("none", Some(SharingConfig::TimeSlicing(replicated(shared))))
        }
    };
    Config { version: "v1", flags: Flags { mig_strategy }, sharing }
}
