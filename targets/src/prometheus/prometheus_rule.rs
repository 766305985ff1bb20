//! PrometheusRule: the rules as objects of prometheus-operator, one group an object, so that each stays
//! below the 512 KiB that its webhook takes.
//!
//! Source: prometheus-operator v0.93.0, `monitoring.coreos.com/v1`.

use serde::Serialize;

use super::rules::{Group, RuleFile};

/// An object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PrometheusRule {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: RuleFile,
}

#[derive(Serialize)]
struct Metadata {
    name: String,
    namespace: String,
}

/// The object of a group.
pub fn object(group: Group, namespace: &str) -> PrometheusRule {
    PrometheusRule {
        api_version: "monitoring.coreos.com/v1",
        kind: "PrometheusRule",
        metadata: Metadata { name: group.name.clone(), namespace: namespace.to_owned() },
        spec: RuleFile { groups: vec![group] },
    }
}
