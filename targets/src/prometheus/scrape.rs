//! How the exporters are scraped, so that targets carry the labels that the rules ask for.
//!
//! Sources: prometheus-operator v0.93.0, ServiceMonitor; Prometheus 2.42 documentation, `relabel_config`;
//! NVIDIA/gpu-operator: the Service of dcgm-exporter has the label `app: nvidia-dcgm-exporter` and the
//! port `gpu-metrics`, its ConfigMap the key `dcgm-metrics.csv`.

use serde::Serialize;

use super::site::{Labels, Site, labels};
use crate::manifest::DCGM_EXPORTER;
use crate::write::yaml;

/// Name of the objects.
pub const NAME: &str = DCGM_EXPORTER;

/// What stands above the scrape configuration of a Slurm cluster.
pub const HEAD: &[&str] = &[
    "A job for Prometheus. The site lists the exporters, host:9400, in the file that it names.",
    "A node keeps its class by its name.",
];

const INTERVAL: &str = "30s";

#[derive(Serialize)]
struct ScrapeFile {
    scrape_configs: [ScrapeConfig; 1],
}

#[derive(Serialize)]
struct ScrapeConfig {
    job_name: &'static str,
    scrape_interval: &'static str,
    file_sd_configs: [FileSd; 1],
    relabel_configs: Vec<RelabelConfig>,
}

#[derive(Serialize)]
struct FileSd {
    files: [&'static str; 1],
}

#[derive(Serialize)]
struct RelabelConfig {
    source_labels: [&'static str; 1],
    regex: String,
    target_label: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    replacement: Option<String>,
}

/// The scrape configuration of a Slurm cluster.
pub fn slurm(site: &Site<'_>) -> String {
    // A node is called as in slurm.conf: short, unless its NodeName has a domain.
    let domains = site.classes.iter().any(|class| class.nodes.regex().contains("[.]"));
    let host = if domains { "([^:]+)(:.*)?" } else { "([^:.]+).*" };
    let node = RelabelConfig {
        source_labels: ["__address__"],
        regex: host.to_owned(),
        target_label: "node",
        replacement: None,
    };
    let classes = site.classes.iter().map(|class| RelabelConfig {
        source_labels: ["node"],
        regex: class.nodes.regex(),
        target_label: "class",
        replacement: Some(class.node.name.to_string()),
    });
    yaml::document(&ScrapeFile {
        scrape_configs: [ScrapeConfig {
            job_name: "dcgm-exporter",
            scrape_interval: INTERVAL,
            file_sd_configs: [FileSd { files: ["dcgm-exporter.targets.yaml"] }],
            relabel_configs: std::iter::once(node).chain(classes).collect(),
        }],
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceMonitor {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: ServiceMonitorSpec,
}

#[derive(Serialize)]
struct Metadata {
    name: &'static str,
    namespace: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServiceMonitorSpec {
    attach_metadata: AttachMetadata,
    namespace_selector: NamespaceSelector,
    selector: Selector,
    endpoints: [Endpoint; 1],
}

#[derive(Serialize)]
struct AttachMetadata {
    node: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NamespaceSelector {
    match_names: [String; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    match_labels: Labels,
}

#[derive(Serialize)]
struct Endpoint {
    port: &'static str,
    interval: &'static str,
    relabelings: Vec<Relabeling>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Relabeling {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    source_labels: Vec<String>,
    target_label: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    replacement: Option<&'static str>,
}

/// The ServiceMonitor of the GPU Operator's exporter.
pub fn service_monitor(site: &Site<'_>, namespace: &str) -> ServiceMonitor {
    let from = |source: String, target_label| Relabeling {
        source_labels: vec![source],
        target_label,
        replacement: None,
    };
    let class = format!("{}/class", site.intent.fleet.label_prefix);
    let class: String =
        class.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let job = Relabeling {
        source_labels: Vec::new(),
        target_label: "job",
        replacement: Some("dcgm-exporter"),
    };
    ServiceMonitor {
        api_version: "monitoring.coreos.com/v1",
        kind: "ServiceMonitor",
        metadata: Metadata { name: NAME, namespace: namespace.to_owned() },
        spec: ServiceMonitorSpec {
            attach_metadata: AttachMetadata { node: true },
            namespace_selector: NamespaceSelector { match_names: [namespace.to_owned()] },
            selector: Selector { match_labels: labels([("app", "nvidia-dcgm-exporter")]) },
            endpoints: [Endpoint {
                port: "gpu-metrics",
                interval: INTERVAL,
                relabelings: vec![
                    job,
                    from("__meta_kubernetes_pod_node_name".to_owned(), "node"),
                    from(format!("__meta_kubernetes_node_label_{class}"), "class"),
                ],
            }],
        },
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMap {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    data: Labels,
}

/// The ConfigMap that the GPU Operator gives to the exporter.
pub fn metrics_config(csv: String, namespace: &str) -> ConfigMap {
    ConfigMap {
        api_version: "v1",
        kind: "ConfigMap",
        metadata: Metadata { name: NAME, namespace: namespace.to_owned() },
        data: Labels::from([("dcgm-metrics.csv", csv)]),
    }
}
