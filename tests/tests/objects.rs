//! Every Kubernetes object that is written, held against the schema of its kind, and against the other
//! objects that it speaks of.
//!
//! Schemas are upstream's own (`tests/crds/`), read as the API server reads them under
//! `fieldValidation=Strict`: an unknown field is an error, and so is a kind without a schema.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::collections::{BTreeMap, BTreeSet};

use fleetc_schema::Hostlist;
use fleetc_schema::intent::{Intent, Scheduler};
use fleetc_tests::{
    FLEETS, Form, Texts, check_fleet, check_text, compiled, folder, repository, with_prelude,
};
use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// What the example fleets do not show: fragments, each over the prelude.
const MORE: &[(&str, &str)] = &[
    (
        "flux",
        r#"
tier "urgent" priority=30
tier "normal" priority=20 preemptible=#true
cluster "serve" {
    kubernetes "1.35" {
        distribution "eks"; gpu-operator "26.7.0" namespace="gpu"
        driver "580.105.08" owner="operator"; dra-driver "0.5"; queue "none"
        gitops "flux" repo="ssh://git@git.example.com/fleet.git" branch="main"
    }
}
pool "grow" { cluster "serve"; system "pcie-l40s-4"; count 20; sharing "mps" replicas=8; taint "example.com/grow" effect="NoSchedule" }
pool "claims" {
    cluster "serve"; system "dgx-h100"; nodes "c[8-11]"; devices "dra"; sharing "whole"
    taint "nvidia.com/gpu" value="present" effect="NoSchedule"; taint "example.com/claims" effect="NoExecute"
}
team "research" { quota "grow" guaranteed=8 }
"#,
    ),
    (
        "no operator",
        r#"
cluster "serve" { kubernetes "1.34" { distribution "upstream"; driver "580.105.08" owner="os"; dra-driver "0.5"; queue "none" } }
"#,
    ),
    (
        "openshift",
        r#"
cluster "serve" { kubernetes "1.34" { distribution "openshift"; gpu-operator "26.7" namespace="nvidia-gpu-operator"; driver "580.105.08" owner="operator"; queue "none"; gitops "argocd" repo="https://git.example.com/f.git" branch="main" path="out" } }
"#,
    ),
    (
        "kueue",
        r#"
cluster "serve" {
    kubernetes "1.36" {
        distribution "upstream"; gpu-operator "26.7" namespace="gpu-operator"
        driver "580.105.08" owner="os"; dra-driver "0.5"; queue "kueue" version="0.19"
    }
}
tier "urgent" priority=30
tier "normal" priority=20 preemptible=#true
pool "kept" {
    cluster "serve"; system "dgx-h100"; nodes "k[1-4]"; sharing "whole"
    taint "nvidia.com/gpu" value="present" effect="NoSchedule"
    taint "example.com/kept" value="yes" effect="NoExecute"; taint "example.com/slow" effect="PreferNoSchedule"
}
pool "claims" { cluster "serve"; system "dgx-h100"; nodes "c[1-4]"; devices "dra"; sharing "whole" }
team "research" { quota "kept" guaranteed=16; quota "claims" guaranteed=8 }
team "guest"
workload "train" { team "research"; pool "kept"; kind "pretrain"; tier "normal"; gpus 16; memory "60GiB" }
workload "chat" { team "research"; pool "claims"; kind "inference"; tier "urgent"; gpus 1; memory "60GiB" }
"#,
    ),
];

/// Every fleet with its Intent and files.
fn fleets() -> Vec<(&'static str, Intent, Texts)> {
    let examples = FLEETS.iter().map(|(name, spec)| (*name, check_fleet(spec).unwrap()));
    let more = MORE.iter().map(|(name, fragment)| {
        (*name, check_text(Form::Kdl, &with_prelude(Form::Kdl, fragment)).unwrap())
    });
    examples
        .chain(more)
        .map(|(name, checked)| {
            let found = &checked.diagnostics;
            let intent = checked.intent().unwrap_or_else(|| panic!("{name}: {found:#?}"));
            (name, intent.clone(), compiled(&checked).unwrap())
        })
        .collect()
}

/// True for a file that holds an object, and not values of a chart or a list of what to apply.
fn is_object(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["clusters", _, "kubernetes", _, file] => {
            file.ends_with(".yaml") && *file != "kustomization.yaml"
        }
        ["fleet", "gitops", _, file] => file.ends_with(".yaml"),
        _ => false,
    }
}

fn objects(files: &Texts) -> Vec<(&str, Value)> {
    let objects = files.iter().filter(|(path, _)| is_object(path));
    objects.map(|(path, text)| (path.as_str(), serde_yaml::from_str(text).unwrap())).collect()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// `group_version_kind` as the files of schemas are called.
fn key(object: &Value) -> String {
    let version = text(object, "/apiVersion");
    let version = match version.split_once('/') {
        Some((group, version)) => format!("{group}_{version}"),
        None => format!("core_{version}"),
    };
    format!("{version}_{}", text(object, "/kind").to_lowercase())
}

fn schemas() -> BTreeMap<String, Validator> {
    let mut schemas = BTreeMap::new();
    for (path, text) in folder(&repository().join("tests/crds")).unwrap() {
        let Some(name) = path.rsplit('/').next().and_then(|file| file.strip_suffix(".json")) else {
            continue;
        };
        let file: Value = serde_json::from_str(&text).unwrap();
        for word in ["source", "commit", "licence", "date"] {
            assert!(file[word].is_string(), "{path} does not say its {word}");
        }
        assert!(!text.contains("\"description\":\""), "{path} has descriptions");
        let mut schema = strict(&file["schema"]);
        schema["properties"]["metadata"] = metadata();
        schema["required"] = json!(["apiVersion", "kind", "metadata"]);
        let validator = jsonschema::options().build(&schema).unwrap();
        assert!(schemas.insert(name.to_owned(), validator).is_none(), "{name} is there twice");
    }
    schemas
}

/// A structural schema as JSON Schema: what is not named is refused.
fn strict(schema: &Value) -> Value {
    let Value::Object(from) = schema else { return schema.clone() };
    let mut to = Map::new();
    for (word, value) in from {
        let value = match (word.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, schema)| (name.clone(), strict(schema))).collect()
            }
            ("items" | "additionalProperties", schema) => strict(schema),
            (word, _) if word.starts_with("x-") => continue,
            ("nullable" | "default" | "format", _) => continue,
            (_, value) => value.clone(),
        };
        to.insert(word.clone(), value);
    }
    let said = |word: &str| from.get(word) == Some(&Value::Bool(true));
    if said("x-kubernetes-int-or-string") {
        to.insert("type".to_owned(), json!(["integer", "string"]));
    }
    if said("nullable")
        && let Some(kind) = from.get("type")
    {
        to.insert("type".to_owned(), json!([kind, "null"]));
    }
    let open = said("x-kubernetes-preserve-unknown-fields");
    if from.contains_key("properties") && !from.contains_key("additionalProperties") && !open {
        to.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Value::Object(to)
}

/// What we write of `metadata`. Names are DNS subdomains, label values are short.
fn metadata() -> Value {
    let label = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
    json!({
        "type": "object",
        "required": ["name"],
        "additionalProperties": false,
        "properties": {
            "name": {
                "type": "string",
                "maxLength": 253,
                "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
            },
            "namespace": {
                "type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            },
            "labels": {
                "type": "object",
                "additionalProperties": { "type": "string", "maxLength": 63, "pattern": label },
            },
            "annotations": { "type": "object", "additionalProperties": { "type": "string" } },
        },
    })
}

#[test]
fn every_object_is_of_its_kind() {
    let schemas = schemas();
    let mut kinds = BTreeSet::new();
    for (fleet, _, files) in fleets() {
        for (path, object) in objects(&files) {
            let key = key(&object);
            let schema = schemas.get(&key);
            let schema = schema.unwrap_or_else(|| panic!("{fleet}/{path}: no schema for {key}"));
            let errors: Vec<String> = schema
                .iter_errors(&object)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert_eq!(errors, [""; 0], "{fleet}/{path}");
            let kind = text(&object, "/kind").to_lowercase();
            let file = path.rsplit('/').next().unwrap();
            assert!(file.starts_with(&format!("{kind}-")), "{fleet}/{path} holds a {kind}");
            kinds.insert(key);
        }
    }
    assert!(kinds.len() >= 19, "the fleets show {kinds:?} only");
}

#[test]
fn an_unknown_field_and_a_wrong_type_are_refused() {
    let schemas = schemas();
    let mut tried = 0;
    for (_, _, files) in fleets() {
        for (path, object) in objects(&files) {
            let schema = &schemas[&key(&object)];
            for place in ["", "/metadata", "/spec", "/spec/rules/0", "/spec/source"] {
                let mut wrong = object.clone();
                let Some(Value::Object(map)) = wrong.pointer_mut(place) else { continue };
                map.insert("unheardOf".to_owned(), json!(1));
                assert!(!schema.is_valid(&wrong), "{path}: {place} takes any field");
                tried += 1;
            }
            let mut wrong = object.clone();
            wrong["metadata"]["name"] = json!(7);
            assert!(!schema.is_valid(&wrong), "{path}");
        }
    }
    assert!(tried > 50);
}

#[test]
fn kustomizations_list_each_object_once_and_the_stages_in_order() {
    for (fleet, intent, files) in fleets() {
        for (cluster, _) in kubernetes(&intent) {
            let root = format!("clusters/{cluster}/kubernetes");
            let list = |path: &str| -> Vec<String> {
                let document: Value = serde_yaml::from_str(&files[path]).unwrap();
                let list = document["resources"].as_array().unwrap();
                list.iter().map(|file| file.as_str().unwrap().to_owned()).collect()
            };
            let stages = list(&format!("{root}/kustomization.yaml"));
            let mut sorted = stages.clone();
            sorted.sort();
            assert_eq!(stages, sorted, "{fleet}: stages");
            let listed: Vec<String> = stages
                .iter()
                .flat_map(|stage| {
                    let files = list(&format!("{root}/{stage}/kustomization.yaml"));
                    files.into_iter().map(move |file| format!("{stage}/{file}"))
                })
                .map(|file| format!("{root}/{file}"))
                .collect();
            let written: Vec<&str> = objects(&files)
                .into_iter()
                .map(|(path, _)| path)
                .filter(|path| path.starts_with(&format!("{root}/")))
                .filter(|path| !path.contains("/90-workloads/"))
                .collect();
            assert_eq!(listed, written, "{fleet}: {cluster}");
            // A label chooses from a configuration: that must be there before it.
            let first = |kind: &str| listed.iter().position(|file| file.contains(kind));
            if let (Some(config), Some(rule)) = (first("/configmap-"), first("/nodefeaturerule-")) {
                assert!(config < rule, "{fleet}: {cluster}");
            }
        }
    }
}

/// Namespaces that Kubernetes has itself or that the install of Kueue makes, which brings its CRDs too.
const OF_OTHERS: &[&str] = &["kube-system", "kueue-system"];

#[test]
fn a_namespace_comes_before_what_is_in_it() {
    for (fleet, intent, files) in fleets() {
        for (cluster, _) in kubernetes(&intent) {
            let root = format!("clusters/{cluster}/kubernetes/");
            let here: Vec<_> =
                objects(&files).into_iter().filter(|(path, _)| path.starts_with(&root)).collect();
            let made: Vec<&str> = here
                .iter()
                .filter(|(_, object)| object["kind"] == "Namespace")
                .map(|(_, object)| text(object, "/metadata/name"))
                .collect();
            for (path, object) in &here {
                let Some(namespace) = object["metadata"].get("namespace") else { continue };
                let namespace = namespace.as_str().unwrap();
                assert!(
                    made.contains(&namespace) || OF_OTHERS.contains(&namespace),
                    "{fleet}/{path}: nobody makes the namespace {namespace}"
                );
            }
        }
    }
}

/// Nodes that are not proven have a taint. What proves them tolerates it, and no workload does.
#[test]
fn a_node_is_proven_before_workloads_come() {
    let mut rules = 0;
    for (fleet, _, files) in fleets() {
        let objects = objects(&files);
        let of_kind = |kind: &'static str| {
            objects.iter().map(|(_, object)| object).filter(move |object| object["kind"] == kind)
        };
        let Some(rule) = of_kind("NodeReadinessRule").next() else { continue };
        let taint = &rule["spec"]["taint"];
        let tolerates = |toleration: &Value| {
            (toleration["key"] == taint["key"] || toleration.get("key").is_none())
                && (toleration["effect"] == taint["effect"] || toleration.get("effect").is_none())
        };
        let any = |tolerations: &Value| tolerations.as_array().unwrap().iter().any(tolerates);
        let daemons = of_kind("DaemonSet").next().unwrap();
        assert!(any(&daemons["spec"]["template"]["spec"]["tolerations"]), "{fleet}");
        for (path, text) in files.iter().filter(|(path, _)| path.contains("/values/")) {
            let values: Value = serde_yaml::from_str(text).unwrap();
            let lists = ["/daemonsets", "/node-feature-discovery/worker", "/kubeletPlugin"];
            let lists = lists.iter().filter_map(|at| values.pointer(&format!("{at}/tolerations")));
            let lists: Vec<&Value> = lists.collect();
            assert!(!lists.is_empty() && lists.into_iter().all(any), "{fleet}/{path}");
        }
        for (path, _) in objects.iter().filter(|(path, _)| path.contains("/90-workloads/")) {
            let tolerates = files[*path].contains(text(taint, "/key"));
            assert!(!tolerates, "{fleet}/{path} tolerates it");
        }
        let affinity = "/spec/template/spec/affinity/nodeAffinity/\
            requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0";
        let judged = &daemons.pointer(affinity).unwrap()["values"];
        let pool = |rule: &Value| {
            let labels = rule["spec"]["nodeSelector"]["matchLabels"].as_object().unwrap();
            labels["fleetc.dev/pool"].clone()
        };
        let mut tainted: Vec<Value> = of_kind("NodeReadinessRule").map(pool).collect();
        let mut judged = judged.as_array().unwrap().clone();
        for list in [&mut tainted, &mut judged] {
            list.sort_by_key(|name| name.as_str().unwrap().to_owned());
        }
        assert_eq!(tainted, judged, "{fleet}: who is tainted is judged");
        rules += tainted.len();
    }
    assert!(rules >= 5, "{rules} rules");
}

/// Nodes of a class, and the labels that they should have.
type Labelled = (Hostlist, BTreeMap<String, String>);

/// The Kubernetes clusters of a fleet, with their classes.
fn kubernetes(intent: &Intent) -> Vec<(String, Vec<Labelled>)> {
    let clusters = intent.clusters.iter();
    clusters
        .filter(|(_, cluster)| matches!(cluster.scheduler, Scheduler::Kubernetes(_)))
        .map(|(name, _)| {
            let classes = intent.classes_of(name).map(|class| {
                let labels = class.node.advertised.labels.clone();
                (class.nodes.clone(), labels.into_iter().collect())
            });
            (name.to_string(), classes.collect())
        })
        .collect()
}

fn matches(patterns: &[String], names: &[String]) -> Vec<String> {
    let any: Vec<Value> = patterns.iter().map(|pattern| json!({ "pattern": pattern })).collect();
    let schema = jsonschema::options().build(&json!({ "anyOf": any })).unwrap();
    names.iter().filter(|name| schema.is_valid(&json!(name))).cloned().collect()
}

#[test]
fn each_node_gets_the_labels_of_its_class_and_no_others() {
    let mut rules = 0;
    for (fleet, intent, files) in fleets() {
        for (cluster, classes) in kubernetes(&intent) {
            let nodes: Vec<String> = classes.iter().flat_map(|(nodes, _)| nodes.names()).collect();
            let root = format!("clusters/{cluster}/kubernetes/30-nodes/nodefeaturerule-");
            let mut labelled: BTreeMap<String, Value> = BTreeMap::new();
            // Rules of places are about all classes; a test of queues reads them.
            let of_class =
                |path: &str| path.starts_with(&root) && !path.contains("/nodefeaturerule-place-");
            for (path, object) in objects(&files).iter().filter(|(path, _)| of_class(path)) {
                for rule in object["spec"]["rules"].as_array().unwrap() {
                    let expression = "/matchFeatures/0/matchExpressions/nodename";
                    let expression = rule.pointer(expression).unwrap();
                    assert_eq!(expression["op"], "InRegexp", "{path}");
                    let patterns: Vec<String> =
                        serde_json::from_value(expression["value"].clone()).unwrap();
                    for node in matches(&patterns, &nodes) {
                        let labels = rule["labels"].clone();
                        let twice = labelled.insert(node.clone(), labels);
                        assert_eq!(twice, None, "{fleet}/{path}: {node} is of two classes");
                    }
                    rules += 1;
                }
            }
            for (list, labels) in &classes {
                for node in list.names() {
                    let Some(found) = labelled.get(&node) else {
                        // Its labels stand in a list for its node group.
                        let pool =
                            &labels.iter().find(|(key, _)| key.ends_with("/pool")).unwrap().1;
                        let elastic = intent.pools[pool.as_str()].elastic.is_some();
                        assert!(elastic || fleet == "no operator", "{fleet}: {node} has no labels");
                        continue;
                    };
                    let mut wanted = labels.clone();
                    wanted.remove("nvidia.com/gpu.product");
                    assert_eq!(found, &json!(wanted), "{fleet}: {node}");
                }
            }
        }
    }
    assert!(rules >= 8, "{rules} rules");
}

#[test]
fn labels_and_values_name_what_is_there() {
    for (fleet, intent, files) in fleets() {
        for (cluster, classes) in kubernetes(&intent) {
            let root = format!("clusters/{cluster}/kubernetes");
            let data = |name: &str| -> Map<String, Value> {
                let text = files.get(&format!("{root}/30-nodes/configmap-{name}.yaml"));
                let object: Value =
                    serde_yaml::from_str(text.map_or("{}", String::as_str)).unwrap();
                object["data"].as_object().cloned().unwrap_or_default()
            };
            let plugin = data("fleetc-device-plugin");
            let parted = data("fleetc-mig-parted");
            let layouts: Value = parted
                .get("config.yaml")
                .map_or(Value::Null, |text| serde_yaml::from_str(text.as_str().unwrap()).unwrap());
            for (nodes, labels) in &classes {
                if let Some(key) = labels.get("nvidia.com/device-plugin.config") {
                    assert!(plugin.contains_key(key), "{fleet}: {nodes} names the config {key}");
                }
                if let Some(entry) = labels.get("nvidia.com/mig.config")
                    && fleet != "no operator"
                {
                    let there = layouts["mig-configs"].get(entry).is_some();
                    assert!(there, "{fleet}: {nodes} names the layout {entry}");
                }
            }
            // Whatever the chart says here beats the strategy of every key.
            let Some(values) = files.get(&format!("{root}/40-operator/values/gpu-operator.yaml"))
            else {
                continue;
            };
            let values: Value = serde_yaml::from_str(values).unwrap();
            assert_eq!(values["mig"]["strategy"], "", "{fleet}");
            for part in ["devicePlugin", "migManager"] {
                let config = &values[part]["config"];
                if config.is_null() {
                    continue;
                }
                let name = text(config, "/name");
                assert!(!data(name).is_empty(), "{fleet}: {part} names {name}");
            }
        }
    }
}

#[test]
fn stages_are_waves_under_argo_cd_and_dependencies_under_flux() {
    for (fleet, _, files) in fleets() {
        if fleet == "superpod-h100" {
            assert!(!files.keys().any(|path| path.contains("/kubernetes/")));
            continue;
        }
        let read = |path: String| -> Value { serde_yaml::from_str(&files[&path]).unwrap() };
        let stage = |stage: &str, key: &str| {
            let path = format!("clusters/serve/kubernetes/{stage}/kustomization.yaml");
            read(path)["commonAnnotations"][key].clone()
        };
        let wave = stage("30-nodes", "argocd.argoproj.io/sync-wave");
        let kept = stage("10-namespaces", "argocd.argoproj.io/sync-options");
        let kept_by_flux = stage("10-namespaces", "kustomize.toolkit.fluxcd.io/prune");
        match fleet {
            "northwind" | "openshift" => {
                assert_eq!(wave, "30", "{fleet}");
                assert_eq!(kept, "Prune=false,Delete=false", "{fleet}");
                assert_eq!(kept_by_flux, Value::Null);
            }
            "flux" | "nvl72" => {
                assert_eq!((&wave, &kept), (&Value::Null, &Value::Null));
                assert_eq!(kept_by_flux, "disabled");
            }
            _ => assert_eq!((wave, kept, kept_by_flux), (Value::Null, Value::Null, Value::Null)),
        }
        if fleet != "flux" {
            continue;
        }
        let root = read("clusters/serve/kubernetes/kustomization.yaml".to_owned());
        let stages: Vec<String> = serde_json::from_value(root["resources"].clone()).unwrap();
        assert!(stages.len() >= 4, "{stages:?}");
        let mut before = Value::Null;
        for stage in stages {
            let name = format!("example-{stage}");
            let object = read(format!("fleet/gitops/serve/kustomization-{name}.yaml"));
            let path = format!("./clusters/serve/kubernetes/{stage}");
            assert_eq!(object["spec"]["path"], path.as_str());
            assert_eq!(object["spec"]["dependsOn"], before);
            before = json!([{ "name": name }]);
        }
    }
}

#[test]
fn taints_are_set_and_the_agents_of_the_node_tolerate_them() {
    let fleets = fleets();
    let (_, _, files) = fleets.iter().find(|(fleet, ..)| *fleet == "flux").unwrap();
    let read = |path: &str| -> Value {
        let path = format!("clusters/serve/kubernetes/{path}");
        serde_yaml::from_str(&files[&path]).unwrap()
    };
    let rule = read("30-nodes/nodefeaturerule-claims.yaml");
    let taints = json!([
        { "key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule" },
        { "key": "example.com/claims", "effect": "NoExecute" },
    ]);
    assert_eq!(rule["spec"]["rules"][0]["taints"], taints);
    // Elastic nodes get theirs from their node group.
    let list = &files["clusters/serve/kubernetes/30-nodes/grow.taints"];
    assert_eq!(list.lines().last(), Some("example.com/grow:NoSchedule"));
    let toleration =
        |key: &str, effect: &str| json!({ "key": key, "operator": "Exists", "effect": effect });
    let gpu = toleration("nvidia.com/gpu", "NoSchedule");
    let claims = toleration("example.com/claims", "NoExecute");
    let grow = toleration("example.com/grow", "NoSchedule");
    let values = read("40-operator/values/gpu-operator.yaml");
    assert_eq!(values["daemonsets"]["tolerations"], json!([gpu, grow, claims]));
    let discovery = &values["node-feature-discovery"];
    assert_eq!(discovery["master"]["config"]["enableTaints"], true);
    let control = toleration("node-role.kubernetes.io/control-plane", "NoSchedule");
    assert_eq!(discovery["worker"]["tolerations"], json!([control, gpu, grow, claims]));
    let dra = read("40-operator/values/dra-driver.yaml");
    assert_eq!(dra["kubeletPlugin"]["tolerations"], json!([gpu, claims]));
    // Where nothing is tainted the charts keep what they have.
    let (_, _, lab) = fleets.iter().find(|(fleet, ..)| *fleet == "lab").unwrap();
    let values = &lab["clusters/serve/kubernetes/40-operator/values/gpu-operator.yaml"];
    assert!(!values.contains("toleration") && !values.contains("enableTaints"), "{values}");
}

/// The object of a file of the cluster `serve` of one of the fleets.
fn read(files: &Texts, path: &str) -> Value {
    let path = format!("clusters/serve/kubernetes/{path}");
    serde_yaml::from_str(files.get(&path).unwrap_or_else(|| panic!("no {path}"))).unwrap()
}

#[test]
fn pods_and_flavors_tolerate_the_taints_of_their_pool() {
    let fleets = fleets();
    let (_, _, files) = fleets.iter().find(|(fleet, ..)| *fleet == "kueue").unwrap();
    let gpu = json!({ "key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule" });
    let kept = json!([
        gpu,
        { "key": "example.com/kept", "operator": "Equal", "value": "yes", "effect": "NoExecute" },
        { "key": "example.com/slow", "operator": "Exists", "effect": "PreferNoSchedule" },
    ]);
    let pod = |path: &str| read(files, path)["spec"]["template"]["spec"]["tolerations"].clone();
    assert_eq!(pod("90-workloads/job-train.yaml"), kept);
    assert_eq!(pod("90-workloads/deployment-chat.yaml"), json!([gpu]));
    let flavor = |name: &str| {
        read(files, &format!("60-queues/resourceflavor-{name}.yaml"))["spec"]["tolerations"].clone()
    };
    assert_eq!(flavor("kept"), kept);
    assert_eq!(flavor("claims"), json!([gpu]));
}

#[test]
fn what_a_queue_covers_no_resource_quota_caps() {
    let fleets = fleets();
    let mut capped = 0;
    for (fleet, intent, files) in &fleets {
        for (cluster, _) in kubernetes(intent) {
            let root = format!("clusters/{cluster}/kubernetes");
            for team in intent.teams.keys() {
                let quota = files.get(&format!("{root}/70-quotas/resourcequota-{team}.yaml"));
                let queue = files.get(&format!("{root}/60-queues/clusterqueue-{team}.yaml"));
                let parse = |text: &String| serde_yaml::from_str::<Value>(text).unwrap();
                let Some(quota) = quota.map(parse) else { continue };
                capped += 1;
                let hard = quota["spec"]["hard"].as_object().unwrap();
                assert!(!hard.is_empty(), "{fleet}: {team}");
                let groups = queue.map(parse).unwrap_or_default();
                let groups = groups["spec"]["resourceGroups"].as_array().cloned();
                for covered in groups
                    .iter()
                    .flatten()
                    .flat_map(|group| group["coveredResources"].as_array().unwrap())
                {
                    let name = format!("requests.{}", covered.as_str().unwrap());
                    assert!(!hard.contains_key(&name), "{fleet}: {team} is capped on {name}");
                }
            }
        }
    }
    assert!(capped >= 4, "{capped}");
    let (_, _, files) = fleets.iter().find(|(fleet, ..)| *fleet == "kueue").unwrap();
    // The queue of research has 16 and lends and borrows; no queue is guest's, so a cap of 0 stays.
    let quota = "clusters/serve/kubernetes/70-quotas/resourcequota-research.yaml";
    assert!(!files.contains_key(quota));
    let guest = read(files, "70-quotas/resourcequota-guest.yaml");
    assert_eq!(guest["spec"]["hard"], json!({ "requests.nvidia.com/gpu": "0" }));
}

#[test]
fn a_template_names_a_priority_that_is_written() {
    let mut named = 0;
    for (fleet, intent, files) in fleets() {
        for (cluster, _) in kubernetes(&intent) {
            let root = format!("clusters/{cluster}/kubernetes");
            let templates = format!("{root}/90-workloads/");
            for (path, object) in objects(&files).iter().filter(|(p, _)| p.starts_with(&templates))
            {
                let group = "/spec/leaderWorkerTemplate/workerTemplate/spec/priorityClassName";
                let class = match text(object, "/spec/template/spec/priorityClassName") {
                    "" => text(object, group),
                    class => class,
                };
                let label = &object["metadata"]["labels"]["kueue.x-k8s.io/priority-class"];
                if class.is_empty() {
                    assert!(label.is_null(), "{fleet}/{path}");
                    continue;
                }
                named += 1;
                let there = |stage: &str, kind: &str| {
                    files.contains_key(&format!("{root}/{stage}/{kind}-{class}.yaml"))
                };
                assert!(there("20-priorities", "priorityclass"), "{fleet}/{path}: {class}");
                if !label.is_null() {
                    assert_eq!(label, class, "{fleet}/{path}");
                    assert!(there("60-queues", "workloadpriorityclass"), "{fleet}/{path}: {class}");
                }
            }
        }
    }
    assert!(named >= 4, "{named}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_pattern_matches_its_range_and_nothing_else(lo in 0_u64..3000, more in 0_u64..3000, width in 1_usize..6) {
        let hi = lo + more;
        let (low, high) = (format!("{lo:0width$}"), format!("{hi:0width$}"));
        // A padded range has ends of one length; without padding it may grow.
        prop_assume!(low.len() == high.len() || !low.starts_with('0') || low == "0");
        let list: Hostlist = format!("a.b-[{low}-{high}]x").parse().unwrap();
        let others: Vec<String> = (0..6500)
            .flat_map(|n| [format!("a.b-{n}x"), format!("a.b-{n:04}x"), format!("a.b-{n:05}x")])
            .chain(["a.b-x", "aXb-0001x", "a.b-0001", "xa.b-0001x", "a.b-0001xx"].map(str::to_owned))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let wanted: Vec<String> =
            others.iter().filter(|name| list.contains(name)).cloned().collect();
        let pattern = format!("^(?:{})$", list.regex());
        prop_assert_eq!(matches(&[pattern], &others), wanted);
    }
}

/// What a ConfigMap may hold for `kubectl apply`: it keeps a copy in an annotation of 256 KiB.
/// Source: Kubernetes, `TotalAnnotationSizeLimitB`.
const APPLIED: usize = 256 << 10;

#[test]
fn the_daemon_set_mounts_the_intent_of_its_cluster() {
    let mut mounted = 0;
    for (fleet, intent, files) in fleets() {
        for (cluster, _) in kubernetes(&intent) {
            let here = format!("clusters/{cluster}/kubernetes/");
            let objects: Vec<(&str, Value)> =
                objects(&files).into_iter().filter(|(path, _)| path.starts_with(&here)).collect();
            let daemon_sets = objects.iter().filter(|(_, object)| object["kind"] == "DaemonSet");
            for (path, daemon_set) in daemon_sets {
                let volumes = daemon_set.pointer("/spec/template/spec/volumes").unwrap();
                let sources = volumes[0]["projected"]["sources"].as_array().unwrap();
                let mut seen = BTreeMap::new();
                for source in sources {
                    let map = &source["configMap"];
                    let of_name = |(_, object): &&(&str, Value)| {
                        object["kind"] == "ConfigMap"
                            && object["metadata"]["name"] == map["name"]
                            && object["metadata"]["namespace"]
                                == daemon_set["metadata"]["namespace"]
                    };
                    let (_, object) = objects.iter().find(of_name).unwrap();
                    assert!(object.to_string().len() < APPLIED, "{fleet}/{path}");
                    for item in map["items"].as_array().unwrap() {
                        let text =
                            text(&object["data"], &format!("/{}", item["key"].as_str().unwrap()));
                        seen.insert(item["path"].as_str().unwrap().to_owned(), text.to_owned());
                    }
                }
                let folder = format!("clusters/{cluster}/intent/");
                let of_cluster = files.iter().filter_map(|(path, text)| {
                    Some((path.strip_prefix(&folder)?.to_owned(), text.clone()))
                });
                let of_cluster: BTreeMap<String, String> = of_cluster.collect();
                assert_eq!(seen, of_cluster, "{fleet}: {cluster}");
                mounted += 1;
            }
        }
    }
    assert!(mounted > 0, "no fleet has a DaemonSet");
}

/// The words of each command line that calls the validator in a file.
fn validator_commands(path: &str, text: &str) -> Vec<Vec<String>> {
    if path.ends_with("node-problem-detector.json") {
        let config: Value = serde_json::from_str(text).unwrap();
        let args = config["rules"][0]["args"].as_array().unwrap();
        return vec![args.iter().map(|arg| arg.as_str().unwrap().to_owned()).collect()];
    }
    let program = "/usr/bin/fleetc-validate ";
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let commands = lines.filter_map(|line| line.split_once(program));
    commands
        .map(|(_, args)| args.split_whitespace().map(str::to_owned).collect::<Vec<String>>())
        // What follows belongs to the shell.
        .map(|args| args.into_iter().take_while(|arg| arg != ">" && arg != "||").collect())
        .collect()
}

#[test]
fn the_validator_understands_the_commands_that_are_written() {
    let mut tried = BTreeSet::new();
    for (fleet, _, files) in fleets() {
        for (path, text) in
            files.iter().filter(|(_, text)| text.contains("/usr/bin/fleetc-validate"))
        {
            for args in validator_commands(path, text) {
                let is_source = |at: usize| at > 0 && args[at - 1] == "--source";
                assert!((0..args.len()).any(is_source), "{fleet}/{path}: {args:?}");
                // This machine is no node of the fleet: a file that is not there stands for it.
                let here = (0..).zip(&args).map(|(at, arg)| match is_source(at) {
                    true => "snapshot:/no/such/file".to_owned(),
                    false => arg.clone(),
                });
                let style = args.iter().position(|arg| arg == "--exit-style");
                let style = style.map_or("native", |at| &args[at + 1]);
                let node = ["--node".to_owned(), "n1".to_owned()];
                let line = std::iter::once("fleetc-validate".to_owned()).chain(here).chain(node);
                let (mut out, mut err) = (Vec::new(), Vec::new());
                let env = fleetc_validate::cli::Environment::default();
                let line = line.map(std::ffi::OsString::from);
                let code = fleetc_validate::cli::run(line, env, &mut out, &mut err);
                let err = String::from_utf8(err).unwrap();
                // Not a wrong command line but a missing intent, in the exit codes of the style.
                assert!(err.contains("reading "), "{fleet}/{path}: {args:?}: {err}");
                let expected = match style {
                    "native" => fleetc_validate::cli::EXIT_INPUT,
                    "npd" => 2,
                    "prolog" => 0,
                    _ => 1,
                };
                assert_eq!(code, expected, "{fleet}/{path}: {args:?}");
                tried.insert(path.rsplit('/').next().unwrap().to_owned());
            }
        }
    }
    let files: Vec<&str> = tried.iter().map(String::as_str).collect();
    let all = [
        "daemonset-fleetc-validate.yaml",
        "fleetc-validate.service",
        "health-check.sh",
        "node-problem-detector.json",
        "prolog.sh",
    ];
    assert_eq!(files, all);
}
