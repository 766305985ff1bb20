//! Alerts: every name that a rule uses is exported or recorded, every alert is tested, and objects stay
//! below the limits of their consumers. That the rules do what they say is promtool's to judge, in
//! `cargo xtask conformance`.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::collections::BTreeSet;

use fleetc_schema::intent::StandardAlert;
use fleetc_tests::{
    FLEETS, Form, Texts, check_fleet, check_text, compiled, rule_files, with_prelude,
};
use serde_json::Value;

/// Series of others: Prometheus itself, kube-state-metrics, slurm_exporter.
const FOREIGN: &[&str] = &["up", "kube_node_spec_unschedulable", "slurm_node_drain_reason_info"];

/// What the prometheus-operator takes of an object. Source: prometheus-operator v0.93.0, maximum size of
/// all rules of an object in its admission webhook.
const RULE_LIMIT: usize = 512 * 1024;

struct Rules {
    records: BTreeSet<String>,
    alerts: BTreeSet<String>,
    /// Series that expressions read.
    used: BTreeSet<String>,
}

fn clusters(files: &Texts) -> BTreeSet<String> {
    let cluster = |path: &String| {
        path.strip_suffix("/monitoring/rules.test.yaml")?
            .strip_prefix("clusters/")
            .map(str::to_owned)
    };
    files.keys().filter_map(cluster).collect()
}

fn rules(files: &Texts, cluster: &str) -> Rules {
    let mut all =
        Rules { records: BTreeSet::new(), alerts: BTreeSet::new(), used: BTreeSet::new() };
    for text in rule_files(files, cluster).unwrap().values() {
        let document: Value = serde_yaml::from_str(text).unwrap();
        for rule in
            document["groups"].as_array().unwrap().iter().flat_map(|g| g["rules"].as_array())
        {
            for rule in rule {
                all.used.extend(series(rule["expr"].as_str().unwrap()));
                all.records.extend(rule["record"].as_str().map(str::to_owned));
                all.alerts.extend(rule["alert"].as_str().map(str::to_owned));
            }
        }
    }
    all
}

/// Names of series in an expression: words outside of strings, label lists and selectors, that are no
/// function and no keyword.
fn series(expr: &str) -> BTreeSet<String> {
    let words = [
        "by",
        "on",
        "or",
        "and",
        "unless",
        "bool",
        "group_left",
        "max",
        "min",
        "sum",
        "count",
        "vector",
        "floor",
        "abs",
        "increase",
        "avg_over_time",
        "label_replace",
    ];
    let mut found = BTreeSet::new();
    let mut rest = expr;
    let mut skip_list = false;
    while let Some(c) = rest.chars().next() {
        let end = match c {
            '"' => rest[1..].find('"').unwrap() + 2,
            '{' => {
                // Braces of a selector hold no braces, but strings do: `{4}` of a regular expression.
                let mut quoted = false;
                rest.find(|c| {
                    quoted ^= c == '"';
                    c == '}' && !quoted
                })
                .unwrap()
                    + 1
            }
            '[' => rest.find(']').unwrap() + 1,
            '(' if skip_list => rest.find(')').unwrap() + 1,
            c if c.is_ascii_alphabetic() || c == '_' => {
                let end = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':')
                    .unwrap_or(rest.len());
                let word = &rest[..end];
                skip_list = matches!(word, "by" | "on" | "group_left");
                if !words.contains(&word) {
                    found.insert(word.to_owned());
                }
                end
            }
            c => c.len_utf8(),
        };
        skip_list &= c.is_ascii_alphabetic() || c == ' ';
        rest = &rest[end..];
    }
    found
}

#[test]
fn names_are_found_in_expressions() {
    let found = series(
        "sum by (node) (A_B >= bool 1) < on (class) group_left (pool) fleetc:x{node=~\"a[0-9]{4}\"} \
         or label_replace(C{x!=\"\"}, \"y\", \"$1\", \"z\", \"(.*)\") and avg_over_time(d[10m]) > 0",
    );
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(found, ["A_B", "C", "d", "fleetc:x"]);
}

#[test]
fn every_series_of_a_rule_is_exported_or_recorded() {
    for (name, spec) in FLEETS {
        let files = compiled(&check_fleet(spec).unwrap()).unwrap();
        assert!(!clusters(&files).is_empty());
        for cluster in clusters(&files) {
            let csv = &files[&format!("clusters/{cluster}/monitoring/dcgm-exporter.csv")];
            let exported: BTreeSet<&str> = csv
                .lines()
                .filter(|line| !line.starts_with('#'))
                .map(|line| line.split(',').next().unwrap())
                .collect();
            let rules = rules(&files, &cluster);
            for used in &rules.used {
                assert!(
                    exported.contains(used.as_str())
                        || rules.records.contains(used)
                        || FOREIGN.contains(&used.as_str())
                        // Nothing is expected of hardware that is not there.
                        || used.starts_with("fleetc:class_"),
                    "{name}/{cluster}: {used} comes from nowhere"
                );
            }
        }
    }
}

#[test]
fn every_alert_fires_in_one_test_and_is_quiet_in_another() {
    for (name, spec) in FLEETS {
        let files = compiled(&check_fleet(spec).unwrap()).unwrap();
        for cluster in clusters(&files) {
            let (mut fires, mut quiet) = (BTreeSet::new(), BTreeSet::new());
            for tests in ["rules.test.yaml", "xids.test.yaml"] {
                let text = &files[&format!("clusters/{cluster}/monitoring/{tests}")];
                let document: Value = serde_yaml::from_str(text).unwrap();
                assert!(document["group_eval_order"].as_array().unwrap().len() > 1);
                for test in document["tests"].as_array().unwrap() {
                    for alert in test["alert_rule_test"].as_array().unwrap() {
                        let alertname = alert["alertname"].as_str().unwrap().to_owned();
                        match alert["exp_alerts"].as_array().unwrap().is_empty() {
                            true => quiet.insert(alertname),
                            false => fires.insert(alertname),
                        };
                    }
                }
            }
            let alerts = rules(&files, &cluster).alerts;
            assert_eq!(fires, alerts, "{name}/{cluster}: fires");
            assert_eq!(quiet, alerts, "{name}/{cluster}: is quiet");
        }
    }
}

#[test]
fn the_examples_have_every_standard_alert() {
    let files = compiled(&check_fleet("fleets/northwind").unwrap()).unwrap();
    let present: BTreeSet<String> =
        clusters(&files).iter().flat_map(|cluster| rules(&files, cluster).alerts).collect();
    let all: BTreeSet<String> =
        StandardAlert::WORDS.iter().map(|alert| (*alert).to_owned()).collect();
    assert_eq!(present, all);
}

#[test]
fn an_alert_of_the_spec_changes_the_standard_one() {
    let spec = "monitoring {
        exporter \"dcgm-exporter\" version=\"4.8.3\"
        alert \"GpuAllocatedButIdle\" after=\"90m\" below=0.2
        alert \"GpusMissing\" after=\"0s\"
    }\n";
    let checked = check_text(Form::Kdl, &with_prelude(Form::Kdl, spec)).unwrap();
    let files = compiled(&checked).unwrap();
    let text = &files["clusters/hpc/monitoring/rules.yaml"];
    let document: Value = serde_yaml::from_str(text).unwrap();
    let rule = |name: &str| -> Value {
        let groups = document["groups"].as_array().unwrap();
        let all = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
        all.into_iter().find(|rule| rule["alert"] == name).unwrap().clone()
    };
    assert_eq!(rule("GpuAllocatedButIdle")["for"], "90m");
    assert!(rule("GpuAllocatedButIdle")["expr"].as_str().unwrap().ends_with("< 0.2"));
    assert_eq!(rule("GpusMissing").get("for"), None);
    assert_eq!(rule("GpuExporterDown")["for"], "5m");
}

#[test]
fn rules_and_export_follow_the_version_of_the_exporter() {
    for (version, temperature, links) in [
        ("4.6.0", "DCGM_FI_DEV_GPU_TEMP", None),
        ("4.8.2", "DCGM_FI_DEV_GPU_TEMP", Some("DCGM_FI_DEV_NVLINK_GET_STATE")),
        ("4.9.0", "DCGM_FI_DEV_GPU_TEMP_CELSIUS", Some("DCGM_FI_DEV_NVLINK_LINK_STATUS")),
    ] {
        let spec = format!("monitoring {{ exporter \"dcgm-exporter\" version=\"{version}\" }}\n");
        let checked = check_text(Form::Kdl, &with_prelude(Form::Kdl, &spec)).unwrap();
        let files = compiled(&checked).unwrap();
        let rules = rules(&files, "hpc");
        assert!(rules.used.contains(temperature), "{version}");
        assert_eq!(rules.alerts.contains("NvlinkDown"), links.is_some(), "{version}");
        let csv = &files["clusters/hpc/monitoring/dcgm-exporter.csv"];
        assert!(csv.contains(&format!("\n{temperature}, gauge, ")), "{version}");
        if let Some(name) = links {
            assert!(rules.used.contains(name) && csv.contains(name), "{version}");
        }
    }
}

#[test]
fn objects_of_many_classes_stay_below_the_limit() {
    // Each node lacks another set of GPUs, and so is a class of its own.
    let exceptions: String = (1..=200_u32)
        .map(|set| {
            let missing: Vec<String> =
                (0..8).filter(|gpu| set & (1 << gpu) != 0).map(|gpu| gpu.to_string()).collect();
            format!("exception node=\"n{set:03}\" {{ missing {} }}\n", missing.join(" "))
        })
        .collect();
    let pools: String = (0..4)
        .map(|pool| {
            let exceptions = exceptions.replace("\"n", &format!("\"p{pool}n"));
            format!(
                "pool \"p{pool}\" {{ cluster \"serve\"; system \"dgx-h100\"; nodes \"p{pool}n[001-200]\"; \
                 sharing \"whole\"\n{exceptions} }}\n"
            )
        })
        .collect();
    let spec = format!("{pools}monitoring {{ exporter \"dcgm-exporter\" version=\"4.8.3\" }}\n");
    let checked = check_text(Form::Kdl, &with_prelude(Form::Kdl, &spec)).unwrap();
    let files = compiled(&checked).unwrap();
    let folder = "clusters/serve/kubernetes/80-monitoring/prometheusrule-";
    let objects: Vec<(&String, &String)> =
        files.iter().filter(|(path, _)| path.starts_with(folder)).collect();
    for (path, text) in &objects {
        assert!(text.len() < RULE_LIMIT, "{path} has {} bytes", text.len());
    }
    let shards = objects.iter().filter(|(path, _)| path.contains("-expected")).count();
    assert!(shards > 1, "{shards} object holds the rules of every class");
    // Every group has its place in the order, and a name of its own.
    let text = &files["clusters/serve/monitoring/rules.test.yaml"];
    let tests: Value = serde_yaml::from_str(text).unwrap();
    assert_eq!(tests["group_eval_order"].as_array().unwrap().len(), objects.len() - 1);
}
