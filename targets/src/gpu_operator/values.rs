//! Helm values: what of the charts' defaults this fleet needs otherwise.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{
    Cluster, Devices, DriverOwner, GpuOperator, Intent, Kubernetes, Pool, TaintEffect,
};
use fleetc_schema::name::PoolName;
use fleetc_schema::version::Version;
use serde::Serialize;

use super::mig_manager;
use crate::manifest::{self, DCGM_EXPORTER, DEVICE_PLUGIN_CONFIG, Stage};
use crate::pods::OnPools;
use crate::write::{header, mig_parted, yaml};
use crate::{OutputFile, OutputTree, pods};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OperatorValues<'a> {
    driver: DriverValues<'a>,
    mig: Mig<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    daemonsets: Option<Tolerating<'a>>,
    #[serde(rename = "node-feature-discovery", skip_serializing_if = "Option::is_none")]
    node_feature_discovery: Option<Discovery<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mig_manager: Option<Configured<'a>>,
    device_plugin: DevicePlugin<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dcgm_exporter: Option<DcgmExporter<'a>>,
}

/// The chart takes the name of a ConfigMap with the key `dcgm-metrics.csv`; who scrapes is ours.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DcgmExporter<'a> {
    config: Named<'a>,
    service_monitor: Enabled,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct DriverValues<'a> {
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a Version>,
}

#[derive(Serialize)]
struct Mig<'a> {
    strategy: &'a str,
}

#[derive(Serialize)]
struct Tolerating<'a> {
    tolerations: Vec<Toleration<'a>>,
}

#[derive(Serialize)]
struct Discovery<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    master: Option<Master>,
    worker: Tolerating<'a>,
}

#[derive(Serialize)]
struct Master {
    config: MasterConfig,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MasterConfig {
    enable_taints: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Toleration<'a> {
    key: &'a str,
    operator: &'a str,
    effect: &'a str,
}

#[derive(Serialize)]
struct Configured<'a> {
    config: Config<'a>,
}

#[derive(Serialize)]
struct DevicePlugin<'a> {
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<Config<'a>>,
}

#[derive(Serialize)]
struct Config<'a> {
    create: bool,
    name: &'a str,
    default: &'a str,
}

/// The pools of a cluster whose GPUs are advertised so.
fn pools<'a>(
    intent: &'a Intent,
    cluster: &'a Cluster,
    devices: Devices,
) -> impl Iterator<Item = (&'a PoolName, &'a Pool)> {
    intent
        .pools
        .iter()
        .filter(move |(_, pool)| pool.devices == devices && pool.parts.contains_key(&cluster.name))
}

/// What the charts tolerate by themselves. A list in values replaces the chart's own.
const GPU: Toleration<'_> =
    Toleration { key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule" };
/// What the workers of node-feature-discovery tolerate besides.
const CONTROL_PLANE: Toleration<'_> = Toleration {
    key: "node-role.kubernetes.io/control-plane",
    operator: "Exists",
    effect: "NoSchedule",
};

/// What a node has until its hardware is proven: without these daemons it never is.
const UNPROVEN: Toleration<'_> =
    Toleration { key: pods::UNPROVEN_TAINT, operator: "Exists", effect: "NoSchedule" };

/// What a daemon must tolerate to run on every node of these pools: the chart's own first. None if
/// that is enough.
fn tolerations<'a>(
    kubernetes: &Kubernetes,
    pools: impl Iterator<Item = (&'a PoolName, &'a Pool)>,
    own: &[Toleration<'a>],
) -> Option<Vec<Toleration<'a>>> {
    let mut all = own.to_vec();
    all.extend(pods::has_unproven_nodes(kubernetes).then_some(UNPROVEN));
    for taint in pools.flat_map(|(_, pool)| &pool.taints) {
        let toleration =
            Toleration { key: &taint.key, operator: "Exists", effect: taint.effect.as_str() };
        if taint.effect != TaintEffect::PreferNoSchedule && !all.contains(&toleration) {
            all.push(toleration);
        }
    }
    (all.len() > own.len()).then_some(all)
}

/// Values of the chart `gpu-operator`.
///
/// `mig.strategy` is empty: whatever it says beats the `migStrategy` of every key of the device
/// plugin's configuration. The defaults of both configurations are empty too: a node that the fleet
/// does not name is left as it is, where `all-disabled` would be an entry that is not there.
pub fn gpu_operator(
    tree: &mut OutputTree,
    intent: &Intent,
    cluster: &Cluster,
    kubernetes: &Kubernetes,
    operator: &GpuOperator,
) {
    let owned = kubernetes.driver.owner == DriverOwner::Operator;
    let config = |name| Config { create: false, name, default: "" };
    let mig = !mig_parted::classes(intent, cluster).is_empty();
    let plugin = pools(intent, cluster, Devices::DevicePlugin).next().is_some();
    let every = || {
        let here = |(_, pool): &(&PoolName, &Pool)| pool.parts.contains_key(&cluster.name);
        intent.pools.iter().filter(here)
    };
    let tainted = every().any(|(_, pool)| !pool.taints.is_empty());
    let own = [CONTROL_PLANE, GPU];
    let worker = tolerations(kubernetes, every(), &own);
    let worker = worker.or_else(|| tainted.then(|| own.to_vec()));
    let values = OperatorValues {
        driver: DriverValues {
            enabled: owned,
            version: owned.then_some(&kubernetes.driver.version),
        },
        mig: Mig { strategy: "" },
        daemonsets: tolerations(kubernetes, every(), &[GPU])
            .map(|tolerations| Tolerating { tolerations }),
        node_feature_discovery: worker.map(|tolerations| Discovery {
            master: tainted.then_some(Master { config: MasterConfig { enable_taints: true } }),
            worker: Tolerating { tolerations },
        }),
        mig_manager: mig.then(|| Configured { config: config(mig_manager::CONFIG_MAP) }),
        device_plugin: DevicePlugin {
            enabled: plugin,
            config: plugin.then(|| config(DEVICE_PLUGIN_CONFIG)),
        },
        dcgm_exporter: intent.monitoring.as_ref().map(|_| DcgmExporter {
            config: Named { name: DCGM_EXPORTER },
            service_monitor: Enabled { enabled: false },
        }),
    };
    let lines = [
        &format!("fleet {}, cluster {}", intent.fleet.name, cluster.name),
        "Values of the Helm chart gpu-operator: helm upgrade --install gpu-operator \\",
        &format!(
            "nvidia/gpu-operator --version {} --namespace {} --values gpu-operator.yaml",
            operator.version, operator.namespace
        ),
    ];
    let text = header(&lines) + &yaml::document(&values);
    let item = ItemPath::item("cluster", &cluster.name).child("kubernetes");
    let items = [item.child("gpu-operator"), item.child("driver")];
    let path = manifest::path(&cluster.name, Stage::Operator, "values/gpu-operator.yaml");
    tree.add(path, OutputFile::one(items, text));
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DraValues<'a> {
    nvidia_driver_root: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_resources_enabled_override: Option<bool>,
    resources: Resources,
    #[serde(skip_serializing_if = "Option::is_none")]
    kubelet_plugin: Option<KubeletPlugin<'a>>,
}

#[derive(Serialize)]
struct Resources {
    gpus: Enabled,
}

#[derive(Serialize)]
struct Enabled {
    enabled: bool,
}

#[derive(Serialize)]
struct KubeletPlugin<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerations: Option<Vec<Toleration<'a>>>,
    affinity: OnPools<'a>,
}

/// Values of the chart `dra-driver-nvidia-gpu`: its plugin runs where the pools are that it
/// advertises, since it and the device plugin must not share a node.
///
/// Source: kubernetes-sigs/dra-driver-nvidia-gpu v0.5.0-dev (2026-08-07), `values.yaml` and
/// `templates/validation.yaml`: GPUs need the override.
pub fn dra_driver(
    tree: &mut OutputTree,
    intent: &Intent,
    cluster: &Cluster,
    kubernetes: &Kubernetes,
    version: &Version,
) {
    let names: Vec<&str> =
        pools(intent, cluster, Devices::Dra).map(|(name, _)| name.as_str()).collect();
    let gpus = !names.is_empty();
    let affinity = OnPools::new(&intent.fleet.label_prefix, names.clone());
    let values = DraValues {
        nvidia_driver_root: match kubernetes.driver.owner {
            DriverOwner::Os => "/",
            DriverOwner::Operator => "/run/nvidia/driver",
        },
        gpu_resources_enabled_override: gpus.then_some(true),
        resources: Resources { gpus: Enabled { enabled: gpus } },
        kubelet_plugin: gpus.then(|| KubeletPlugin {
            tolerations: tolerations(kubernetes, pools(intent, cluster, Devices::Dra), &[GPU]),
            affinity,
        }),
    };
    let fleet = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
    let chart = format!("Values of the Helm chart dra-driver-nvidia-gpu {version}.");
    let text = header(&[&fleet, &chart]) + &yaml::document(&values);
    let item = ItemPath::item("cluster", &cluster.name).child("kubernetes");
    let items = [item.child("dra-driver")]
        .into_iter()
        .chain(names.iter().map(|name| ItemPath::item("pool", name).child("devices")));
    let path = manifest::path(&cluster.name, Stage::Operator, "values/dra-driver.yaml");
    tree.add(path, OutputFile::one(items, text));
}
