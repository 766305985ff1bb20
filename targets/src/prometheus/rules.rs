//! `rules.yaml`: what is expected, what is seen, and the alerts between the two.
//!
//! Metric names are those of dcgm-exporter 4.8 (`etc/default-counters.csv`): DCGM_FI_DEV_GPU_TEMP has
//! a value for every GPU, DCGM_FI_DEV_FB_USED one for every GPU instance. Under MIG the exporter gives
//! only series of instances, with the GPU's UUID; so GPUs are counted by UUID.

use std::collections::BTreeMap;

use fleetc_schema::intent::{Class, Cluster};
use fleetc_schema::mig::MigProfile;
use indexmap::IndexMap;
use serde::Serialize;

/// Series that carry the exporter's own health.
pub const UP: &str = "up{job=\"dcgm-exporter\"}";
/// A metric that every GPU has.
pub const GPU_METRIC: &str = "DCGM_FI_DEV_GPU_TEMP";
/// A metric that every GPU instance has.
pub const INSTANCE_METRIC: &str = "DCGM_FI_DEV_FB_USED";
/// How long a shortage lasts before it alerts.
pub const FOR: &str = "5m";

#[derive(Serialize)]
pub struct RuleFile {
    pub groups: Vec<Group>,
}

#[derive(Serialize)]
pub struct Group {
    pub name: String,
    pub interval: &'static str,
    pub rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum Rule {
    Record {
        record: &'static str,
        expr: String,
        #[serde(skip_serializing_if = "Labels::is_empty")]
        labels: Labels,
    },
    Alert {
        alert: &'static str,
        expr: String,
        r#for: &'static str,
        labels: Labels,
        annotations: Labels,
    },
}

pub type Labels = BTreeMap<&'static str, String>;

/// Names of the groups, in the order in which they must be evaluated.
pub fn group_names(cluster: &Cluster) -> [String; 3] {
    ["expected", "seen", "alerts"].map(|part| format!("fleetc-{}-{part}", cluster.name))
}

/// Writes the rules of a cluster.
pub fn file(cluster: &Cluster, classes: &[&Class]) -> RuleFile {
    let [expected, seen, alerts] = group_names(cluster);
    let profiles = profiles(classes);
    RuleFile {
        groups: vec![
            Group { name: expected, interval: "30s", rules: expectations(classes) },
            Group { name: seen, interval: "30s", rules: sightings(&profiles) },
            Group {
                name: alerts,
                interval: "30s",
                rules: self::alerts(cluster, !profiles.is_empty()),
            },
        ],
    }
}

/// Profiles of the cluster, each with the classes that have it.
pub fn profiles<'a>(classes: &[&'a Class]) -> IndexMap<MigProfile, Vec<&'a Class>> {
    let mut profiles: IndexMap<MigProfile, Vec<&Class>> = IndexMap::new();
    for class in classes {
        for profile in class.node.mig_counts().into_keys() {
            profiles.entry(profile).or_default().push(class);
        }
    }
    profiles
}

fn labels<const N: usize>(pairs: [(&'static str, &str); N]) -> Labels {
    pairs.into_iter().map(|(key, value)| (key, value.to_owned())).collect()
}

fn expectations(classes: &[&Class]) -> Vec<Rule> {
    let mut rules = Vec::new();
    for class in classes {
        let (name, pool) = (class.node.name.as_str(), class.node.pool.as_str());
        rules.push(Rule::Record {
            record: "fleetc:class_gpus_expected",
            expr: format!("vector({})", class.node.gpus.len()),
            labels: labels([("class", name), ("pool", pool)]),
        });
        for (profile, count) in class.node.mig_counts() {
            rules.push(Rule::Record {
                record: "fleetc:class_mig_instances_expected",
                expr: format!("vector({count})"),
                labels: labels([
                    ("class", name),
                    ("pool", pool),
                    ("GPU_I_PROFILE", &profile.to_string()),
                ]),
            });
        }
    }
    rules
}

fn sightings(profiles: &IndexMap<MigProfile, Vec<&Class>>) -> Vec<Rule> {
    let mut rules = vec![Rule::Record {
        record: "fleetc:node_gpus_seen",
        expr: format!(
            "count by (node, class) (max by (node, class, UUID) ({GPU_METRIC})) \
             or max by (node, class) (0 * ({UP} == 1))"
        ),
        labels: Labels::new(),
    }];
    for (profile, classes) in profiles {
        let names: Vec<&str> = classes.iter().map(|class| class.node.name.as_str()).collect();
        let of = names.join("|").replace('.', "\\\\.");
        rules.push(Rule::Record {
            record: "fleetc:node_mig_instances_seen",
            expr: format!(
                "count by (node, class) (max by (node, class, UUID, GPU_I_ID) \
                 ({INSTANCE_METRIC}{{GPU_I_PROFILE=\"{profile}\"}})) \
                 or max by (node, class) (0 * (up{{job=\"dcgm-exporter\",class=~\"{of}\"}} == 1))"
            ),
            labels: labels([("GPU_I_PROFILE", &profile.to_string())]),
        });
    }
    rules
}

/// The labels that an alert has beside those of its series.
pub fn alert_labels(cluster: &Cluster, severity: &str) -> Labels {
    labels([("cluster", cluster.name.as_str()), ("severity", severity)])
}

/// What each alert says, with `$value` the number seen.
pub fn annotations(what: &str, action: &str) -> Labels {
    labels([("action", action), ("summary", what)])
}

pub const GPUS_MISSING: (&str, &str) = (
    "{{ $labels.node }} (pool {{ $labels.pool }}) shows {{ $value }} GPUs, fewer than class {{ $labels.class }} has",
    "drain the node, look for XID 79 in its kernel log, then run fleetc-validate check on it",
);

pub const MIG_INSTANCES_MISSING: (&str, &str) = (
    "{{ $labels.node }} (pool {{ $labels.pool }}) shows {{ $value }} × {{ $labels.GPU_I_PROFILE }}, fewer than class {{ $labels.class }} has",
    "run fleetc-validate check on the node; when it is empty, apply its entry of mig-parted.yaml",
);

fn alerts(cluster: &Cluster, mig: bool) -> Vec<Rule> {
    let mut rules = vec![Rule::Alert {
        alert: "GpusMissing",
        expr: "fleetc:node_gpus_seen < on (class) group_left (pool) fleetc:class_gpus_expected"
            .to_owned(),
        r#for: FOR,
        labels: alert_labels(cluster, "critical"),
        annotations: annotations(GPUS_MISSING.0, GPUS_MISSING.1),
    }];
    if mig {
        rules.push(Rule::Alert {
            alert: "MigInstancesMissing",
            expr: "fleetc:node_mig_instances_seen < on (class, GPU_I_PROFILE) group_left (pool) \
                   fleetc:class_mig_instances_expected"
                .to_owned(),
            r#for: FOR,
            labels: alert_labels(cluster, "warning"),
            annotations: annotations(MIG_INSTANCES_MISSING.0, MIG_INSTANCES_MISSING.1),
        });
    }
    rules
}
