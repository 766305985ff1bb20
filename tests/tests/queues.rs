//! What teams have in the queues of Kueue, and what pods ask for: against numbers computed by hand,
//! and against what Kueue's webhooks demand of any fleet.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::collections::BTreeMap;

use fleetc_tests::{Form, Texts, check_text, compiled};
use proptest::prelude::*;
use serde_json::{Value, json};

const KUEUE: &str = r#"
fleet "f"
cluster "k" { kubernetes "1.36" { distribution "upstream"; driver "580.105.08" owner="os"; dra-driver "0.5"; queue "kueue" version="0.19" } }
"#;

/// The files of a fleet that has a Kubernetes cluster `k` with Kueue.
fn compile(rest: &str) -> Texts {
    let checked = check_text(Form::Kdl, &format!("{KUEUE}{rest}")).unwrap();
    let found: Vec<&String> = checked.diagnostics.iter().map(|found| &found.title).collect();
    compiled(&checked).unwrap_or_else(|| panic!("{found:?}\n{rest}"))
}

fn object(files: &Texts, path: &str) -> Value {
    let path = format!("clusters/k/kubernetes/{path}");
    let text = files.get(&path).unwrap_or_else(|| panic!("no {path}: {:?}", files.keys()));
    serde_yaml::from_str(text).unwrap()
}

fn manager(files: &Texts) -> Value {
    let config = object(files, "60-queues/configmap-kueue-manager-config.yaml");
    serde_yaml::from_str(config["data"]["controller_manager_config.yaml"].as_str().unwrap())
        .unwrap()
}

/// Quotas of a queue or Cohort by flavor and resource: nominal, and borrowing limit if there is one.
fn quotas(object: &Value) -> BTreeMap<(String, String), (u64, Option<u64>)> {
    let number = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
    let groups = object["spec"]["resourceGroups"].as_array().into_iter().flatten();
    let flavors = groups.flat_map(|group| group["flavors"].as_array().unwrap());
    flavors
        .flat_map(|flavor| {
            flavor["resources"].as_array().unwrap().iter().map(|quota| {
                let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
                let limit = quota.get("borrowingLimit").map(number);
                ((name(flavor), name(quota)), (number(&quota["nominalQuota"]), limit))
            })
        })
        .collect()
}

fn quota(files: &Texts, path: &str, flavor: &str, resource: &str) -> Option<(u64, Option<u64>)> {
    let object = object(files, &format!("60-queues/{path}.yaml"));
    quotas(&object).get(&(flavor.to_owned(), resource.to_owned())).copied()
}

/// 32 GPUs that teams are guaranteed 26 of, and 16 that are open to all.
const TEAMS: &str = r#"
pool "held" { cluster "k"; system "dgx-h100"; nodes "h[1-4]"; sharing "whole" }
pool "open" { cluster "k"; system "dgx-h100"; nodes "o[1-2]"; sharing "whole" }
team "lab" {
    quota "held" guaranteed=20 limit=28
    weight 3
    team "x" { quota "held" guaranteed=8 }
    team "y" { quota "held" guaranteed=4 limit=10 }
}
team "org" {
    team "p" { quota "held" guaranteed=3 }
    team "q" { quota "held" guaranteed=2 limit=2 }
}
team "solo" { quota "held" guaranteed=1 }
team "guest"
tier "urgent" priority=1000
tier "night" priority=10 preemptible=#true
"#;

#[test]
fn a_queue_has_what_the_teams_within_leave_and_borrows_up_to_the_limit() {
    let files = compile(TEAMS);
    let of = |path: &str, flavor: &str| quota(&files, path, flavor, "nvidia.com/gpu");
    // 32 less 20 of lab, 3 + 2 of org and 1 of solo; nobody is guaranteed any of the open pool.
    assert_eq!(of("cohort-fleet.f", "held"), Some((6, None)));
    assert_eq!(of("cohort-fleet.f", "open"), Some((16, None)));
    // 20 less 8 and 4. The limit of 28 holds for lab with x and y: 28 less 20 is borrowed at most.
    assert_eq!(of("clusterqueue-lab", "held"), Some((8, None)));
    assert_eq!(of("cohort-lab", "held"), Some((0, Some(8))));
    assert_eq!(of("cohort-lab", "open"), None);
    assert_eq!(of("clusterqueue-x", "held"), Some((8, None)));
    assert_eq!(of("clusterqueue-y", "held"), Some((4, Some(6))));
    // org states nothing: it has what p and q have, and they leave it nothing.
    assert_eq!(of("clusterqueue-org", "held"), Some((0, None)));
    assert_eq!(of("cohort-org", "held"), None);
    assert_eq!(of("clusterqueue-p", "held"), Some((3, None)));
    assert_eq!(of("clusterqueue-q", "held"), Some((2, Some(0))));
    assert_eq!(of("clusterqueue-solo", "held"), Some((1, None)));
    // Some teams have a quota on the pool, so one without may not use it; the other pool is open.
    assert_eq!(of("clusterqueue-guest", "held"), None);
    assert_eq!(of("clusterqueue-guest", "open"), Some((0, None)));
}

#[test]
fn the_tree_of_teams_is_a_tree_of_cohorts() {
    let files = compile(TEAMS);
    let of = |path: &str| object(&files, &format!("60-queues/{path}.yaml"))["spec"].clone();
    assert_eq!(of("cohort-lab")["parentName"], "fleet.f");
    assert_eq!(of("cohort-fleet.f").get("parentName"), None);
    for (queue, cohort) in [("lab", "lab"), ("x", "lab"), ("p", "org"), ("solo", "fleet.f")] {
        assert_eq!(of(&format!("clusterqueue-{queue}"))["cohortName"], cohort, "{queue}");
    }
    // A weight is against neighbours, so it stands at the Cohort of lab, not at the queue within.
    assert_eq!(of("cohort-lab")["fairSharing"]["weight"], "3");
    assert_eq!(of("clusterqueue-lab")["fairSharing"]["weight"], "1");
    assert_eq!(of("clusterqueue-solo")["fairSharing"]["weight"], "1");
    let strategies = json!(["LessThanOrEqualToFinalShare", "LessThanInitialShare"]);
    assert_eq!(manager(&files)["fairSharing"]["preemptionStrategies"], strategies);
}

#[test]
fn without_weights_and_preemptible_tiers_nothing_is_shared_by_weight_or_stopped_in_a_queue() {
    let plain = TEAMS.replace("weight 3", "").replace("preemptible=#true", "");
    let (with, without) = (compile(TEAMS), compile(&plain));
    let preemption = |files: &Texts| {
        object(files, "60-queues/clusterqueue-solo.yaml")["spec"]["preemption"].clone()
    };
    let expected =
        |within: &str| json!({"reclaimWithinCohort": "Any", "withinClusterQueue": within});
    assert_eq!(preemption(&with), expected("LowerPriority"));
    assert_eq!(preemption(&without), expected("Never"));
    assert_eq!(manager(&without).get("fairSharing"), None);
    let queue = object(&without, "60-queues/clusterqueue-solo.yaml");
    assert_eq!(queue["spec"].get("fairSharing"), None);
}

#[test]
fn jobs_that_name_no_queue_go_to_the_queue_of_their_namespace() {
    let files =
        compile(&TEAMS.replace("team \"guest\"", "team \"guest\" { namespace \"visitors\" }"));
    let local = object(&files, "60-queues/localqueue-guest.yaml");
    assert_eq!(local["metadata"], json!({"name": "default", "namespace": "visitors"}));
    assert_eq!(local["spec"]["clusterQueue"], "guest");
    let queue = object(&files, "60-queues/clusterqueue-guest.yaml");
    let labels = &queue["spec"]["namespaceSelector"]["matchLabels"];
    assert_eq!(*labels, json!({"kubernetes.io/metadata.name": "visitors"}));
    let manager = manager(&files);
    assert_eq!(manager["manageJobsWithoutQueueName"], true);
    let namespaces = &manager["managedJobsNamespaceSelector"]["matchExpressions"][0]["values"];
    assert_eq!(*namespaces, json!(["lab", "org", "p", "q", "solo", "visitors", "x", "y"]));
}

#[test]
fn pools_that_hand_out_one_resource_are_in_one_group() {
    let files = compile(
        r#"
pool "a" { cluster "k"; system "dgx-h100"; nodes "a1"; sharing "whole" }
pool "b" { cluster "k"; system "dgx-h100"; nodes "b1"; sharing "mig" strategy="mixed" { gpus "0-3" { slice "1g.10gb" count=7 }; gpus "4-7" { slice "3g.40gb" count=2 } } }
pool "c" { cluster "k"; system "dgx-h100"; nodes "c1"; sharing "whole" }
pool "d" { cluster "k"; system "dgx-h100"; nodes "d1"; sharing "mig" strategy="mixed" { gpus "0-7" { slice "3g.40gb" count=2 } } }
pool "e" { cluster "k"; system "dgx-h100"; nodes "e1"; devices "dra"; sharing "whole" }
team "t" { quota "b" slice="1g.10gb" guaranteed=20 }
"#,
    );
    let groups = |path: &str| {
        let object = object(&files, &format!("60-queues/{path}.yaml"));
        let groups = object["spec"]["resourceGroups"].as_array().unwrap().clone();
        let names = |group: &Value| {
            let flavors = group["flavors"].as_array().unwrap().iter();
            (
                group["coveredResources"].clone(),
                flavors
                    .map(|flavor| flavor["name"].as_str().unwrap().to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        groups.iter().map(names).collect::<Vec<_>>()
    };
    let (gpu, slices) =
        (json!(["nvidia.com/gpu"]), json!(["nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"]));
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let claimed = (json!(["fleetc.dev/e"]), names(&["e"]));
    let whole = vec![(gpu, names(&["a", "c"])), (slices, names(&["b", "d"])), claimed];
    assert_eq!(groups("cohort-fleet.f"), whole);
    assert_eq!(groups("clusterqueue-t"), whole);
    // Of b the team may use what it has a quota on: 28 small slices, 20 of them its own.
    let of = |path, flavor, slice| quota(&files, path, flavor, &format!("nvidia.com/mig-{slice}"));
    assert_eq!(of("clusterqueue-t", "b", "1g.10gb"), Some((20, None)));
    assert_eq!(of("clusterqueue-t", "b", "3g.40gb"), Some((0, Some(0))));
    assert_eq!(of("clusterqueue-t", "d", "1g.10gb"), Some((0, Some(0))));
    assert_eq!(of("clusterqueue-t", "d", "3g.40gb"), Some((0, None)));
    assert_eq!(of("cohort-fleet.f", "b", "1g.10gb"), Some((8, None)));
    assert_eq!(of("cohort-fleet.f", "d", "3g.40gb"), Some((16, None)));
}

#[test]
fn a_pool_that_meets_two_groups_makes_them_one_in_the_order_of_pools() {
    let cut = |name: &str, layout: &str| {
        format!(
            "pool \"{name}\" {{ cluster \"k\"; system \"dgx-h100\"; nodes \"{name}1\"; sharing \"mig\" strategy=\"mixed\" {{ {layout} }} }}\n"
        )
    };
    let (small, large) = ("{ slice \"1g.10gb\" count=7 }", "{ slice \"3g.40gb\" count=2 }");
    let pools = [
        cut("z", &format!("gpus \"0-7\" {small}")),
        "pool \"y\" { cluster \"k\"; system \"dgx-h100\"; nodes \"y1\"; sharing \"whole\" }\n"
            .to_owned(),
        cut("x", &format!("gpus \"0-7\" {large}")),
        cut("w", &format!("gpus \"0-3\" {large}; gpus \"4-7\" {small}")),
    ];
    let files = compile(&format!("{}team \"t\"\n", pools.concat()));
    let queue = object(&files, "60-queues/clusterqueue-t.yaml");
    let groups = queue["spec"]["resourceGroups"].as_array().unwrap();
    let covered: Vec<&Value> = groups.iter().map(|group| &group["coveredResources"]).collect();
    let slices = json!(["nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"]);
    assert_eq!(covered, [&slices, &json!(["nvidia.com/gpu"])]);
    let flavors = groups[0]["flavors"].as_array().unwrap();
    let names: Vec<&Value> = flavors.iter().map(|flavor| &flavor["name"]).collect();
    assert_eq!(names, ["z", "x", "w"]);
}

#[test]
fn a_plan_says_what_queues_and_claims_a_change_touches() {
    use fleetc::plan::plan;
    let fleet = |guaranteed: u32, gpus: u32| {
        let text = format!(
            r#"{KUEUE}
pool "p" {{ cluster "k"; system "dgx-h100"; nodes "n[1-2]"; devices "dra"; sharing "whole" }}
team "t" {{ quota "p" guaranteed={guaranteed} }}
workload "w" {{ team "t"; pool "p"; kind "ci"; gpus {gpus}; memory "60GiB" }}
"#
        );
        check_text(Form::Kdl, &text).unwrap()
    };
    let reasons = |old: &fleetc::Checked, new: &fleetc::Checked| {
        let plan = plan(old.intent().unwrap(), new.intent().unwrap());
        let effects = plan.steps.iter().flat_map(|step| &step.effects);
        effects
            .flat_map(|effect| effect.reasons.iter().map(|(target, _)| (*target, effect.recreate)))
            .collect::<Vec<_>>()
    };
    let base = fleet(8, 1);
    assert!(reasons(&base, &fleet(16, 1)).contains(&("kueue", false)));
    // The claim template of a pod with two GPUs is another object.
    assert_eq!(reasons(&base, &fleet(8, 2)), [("dra", true)]);
}

#[test]
fn a_pool_of_one_team_is_closed_to_the_teams_around_it() {
    let files = compile(
        r#"
pool "shared" { cluster "k"; system "dgx-h100"; nodes "s1"; sharing "mps" replicas=8 team="inner" }
pool "whole" { cluster "k"; system "dgx-h100"; nodes "w1"; sharing "whole" }
team "outer" { team "inner" { quota "shared" guaranteed=60 } }
"#,
    );
    let of = |path: &str| quota(&files, path, "shared", "nvidia.com/gpu.shared");
    // 8 GPUs of 8 clients.
    assert_eq!(of("clusterqueue-inner"), Some((60, None)));
    assert_eq!(of("cohort-fleet.f"), Some((4, None)));
    assert_eq!(of("clusterqueue-outer"), None);
}

/// Two racks of 18 trays with 4 GPUs each.
const RACKS: &str = r#"
rack "r[1-2]" system="gb200-nvl72" nodes="gb[001-036]"
team "t"
"#;

#[test]
fn a_service_over_trays_has_claims_a_domain_and_channels_that_are_counted() {
    let pool = "pool \"nvl\" { cluster \"k\"; system \"gb200-nvl72-compute-tray\"; nodes \"gb[001-036]\"; devices \"dra\"; sharing \"whole\" }\n";
    let workload = r#"
workload "serve" { team "t"; pool "nvl"; kind "inference"; replicas 4; gpus 8 { parallel tensor=8 }; memory "150GiB"; host cpu=16 memory="128GiB" shm="32GiB" }
"#;
    let files = compile(&format!("{RACKS}{pool}{workload}"));
    let class = object(&files, "50-devices/deviceclass-nvl.fleetc.dev.yaml");
    assert_eq!(class["spec"].get("extendedResourceName"), None);
    let domain = object(&files, "50-devices/computedomain-serve.yaml");
    assert_eq!(domain["spec"]["channel"]["resourceClaimTemplate"]["name"], "serve-channel");
    // 8 GPUs over trays of 4: two pods, each with a claim on 4.
    let set = object(&files, "90-workloads/leaderworkerset-serve.yaml");
    assert_eq!(
        (&set["spec"]["replicas"], &set["spec"]["leaderWorkerTemplate"]["size"]),
        (&json!(4), &json!(2))
    );
    let pod = &set["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"];
    let claims = pod["resourceClaims"].as_array().unwrap();
    let template = claims[0]["resourceClaimTemplateName"].as_str().unwrap();
    assert_eq!(claims[1]["resourceClaimTemplateName"], "serve-channel");
    let template = object(&files, &format!("50-devices/resourceclaimtemplate-{template}.yaml"));
    let request = &template["spec"]["spec"]["devices"]["requests"][0]["exactly"];
    assert_eq!(
        (&request["deviceClassName"], &request["count"]),
        (&json!("nvl.fleetc.dev"), &json!(4))
    );
    // Processors and memory are stated for each GPU: 4 × 16 and 4 × 128 GiB.
    let resources = &pod["containers"][0]["resources"];
    assert_eq!(resources["limits"], json!({"cpu": "64", "memory": "512Gi"}));
    assert_eq!(resources["limits"], resources["requests"]);
    // Both classes are mapped, and what they are mapped to is covered; else nothing is admitted.
    let mappings = json!([
        {"name": "fleetc.dev/nvl", "deviceClassNames": ["nvl.fleetc.dev"]},
        {"name": "fleetc.dev/imex.channel", "deviceClassNames": ["compute-domain-default-channel.nvidia.com"]},
    ]);
    assert_eq!(manager(&files)["resources"]["deviceClassMappings"], mappings);
    let of = |path, name: &str| quota(&files, path, "nvl", &format!("fleetc.dev/{name}"));
    assert_eq!(of("clusterqueue-t", "nvl"), Some((0, None)));
    // One channel a node, for whoever may use the pool: GPUs are what is scarce.
    assert_eq!(of("clusterqueue-t", "imex.channel"), Some((36, None)));
    assert_eq!(of("cohort-fleet.f", "nvl"), Some((144, None)));
    // Other content is another name, since a template cannot be changed.
    let other = compile(&format!(
        "{RACKS}{pool}{}",
        workload.replace("gpus 8 { parallel tensor=8 }", "gpus 2 { parallel tensor=2 }")
    ));
    let names = |files: &Texts| {
        files
            .keys()
            .filter(|path| path.contains("resourceclaimtemplate"))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_ne!(names(&files), names(&other));
    assert!(!other.keys().any(|path| path.contains("computedomain")));
}

#[test]
fn a_job_that_must_stay_together_has_a_topology_and_the_jobs_beside_it_say_that_they_need_not() {
    let files = compile(&format!(
        r#"{RACKS}
pool "nvl" {{ cluster "k"; system "gb200-nvl72-compute-tray"; nodes "gb[001-036]"; sharing "whole" }}
workload "train" {{ team "t"; pool "nvl"; kind "finetune"; gpus 16 {{ parallel tensor=4 data=4 }}; gang contiguous=#true; memory "150GiB"; host shm="32GiB" }}
workload "small" {{ team "t"; pool "nvl"; kind "ci"; gpus 1; memory "150GiB" }}
"#
    ));
    let name = |kind: &str| {
        let start = format!("clusters/k/kubernetes/60-queues/{kind}-");
        files.keys().find_map(|path| path.strip_prefix(&start)?.strip_suffix(".yaml")).unwrap()
    };
    let (flavor, topology) = (name("resourceflavor"), name("topology"));
    let levels = &object(&files, &format!("60-queues/topology-{topology}.yaml"))["spec"]["levels"];
    let expected =
        json!([{"nodeLabel": "nvidia.com/gpu.clique"}, {"nodeLabel": "kubernetes.io/hostname"}]);
    assert_eq!(*levels, expected);
    // Neither can be changed, so their names hold their content, and queues name the flavor so.
    assert!(flavor.starts_with("nvl-") && topology.starts_with("nvl-") && flavor != topology);
    let flavor_of = object(&files, &format!("60-queues/resourceflavor-{flavor}.yaml"));
    assert_eq!(flavor_of["spec"]["topologyName"], topology);
    assert_eq!(quota(&files, "clusterqueue-t", flavor, "nvidia.com/gpu"), Some((0, None)));
    let annotations = |job: &str| {
        object(&files, &format!("90-workloads/job-{job}.yaml"))["spec"]["template"]["metadata"]["annotations"].clone()
    };
    let required = json!({"kueue.x-k8s.io/podset-required-topology": "nvidia.com/gpu.clique"});
    assert_eq!(annotations("train"), required);
    let free = json!({"kueue.x-k8s.io/podset-unconstrained-topology": "true"});
    assert_eq!(annotations("small"), free);
}

/// Two leaves of two racks each; the second pool stands in one rack that hangs on no leaf.
const PLACES: &str = r#"
fleet "f"
cluster "k" { kubernetes "1.36" { distribution "upstream"; gpu-operator "26.7" namespace="gpu-operator"; driver "580.105.08" owner="os"; queue "kueue" version="0.19" { level "leaf"; level "rack"; level "nvlink-domain"; level "host" } } }
rack "r1" nodes="h[1-4]"
rack "r2" nodes="h[5-8]"
rack "r3" nodes="h[9-12]"
rack "r4" nodes="h[13-16]"
rack "r5" nodes="o[1-4]"
fabric "storage" kind="ethernet" { switch "l1"; attach "l1" nodes="h[1-16]" }
fabric "ib" kind="infiniband" {
    switch "s[1-2]"
    switch "l[1-4]" uplinks="s[1-2]"
    attach "l[1-2]" nodes="h[1-8]" rails=2
    attach "l[3-4]" nodes="h[9-16]" rails=2
}
pool "held" { cluster "k"; system "dgx-h100"; nodes "h[1-16]"; sharing "whole" }
pool "open" { cluster "k"; system "dgx-h100"; nodes "o[1-4]"; sharing "whole" }
team "lab"
workload "block" { team "lab"; pool "held"; gpus 64; gang contiguous=#true; memory "20GiB"; kind "pretrain" }
workload "close" { team "lab"; pool "held"; gpus 32; gang; memory "20GiB"; kind "finetune" }
workload "one" { team "lab"; pool "held"; gpus 8; memory "20GiB"; kind "finetune" }
workload "rack" { team "lab"; pool "open"; gpus 16; gang contiguous=#true; memory "20GiB"; kind "finetune" }
"#;

#[test]
fn jobs_are_kept_together_at_the_levels_that_their_nodes_have() {
    let checked = check_text(Form::Kdl, PLACES).unwrap();
    let found: Vec<&String> = checked.diagnostics.iter().map(|found| &found.title).collect();
    let files = compiled(&checked).unwrap_or_else(|| panic!("{found:?}"));
    let named = |start: &str| {
        let start = format!("clusters/k/kubernetes/60-queues/{start}");
        let path = files.keys().find(|path| path.starts_with(&start)).unwrap();
        object(&files, path.strip_prefix("clusters/k/kubernetes/").unwrap())
    };
    let levels = |pool: &str| named(&format!("topology-{pool}-"))["spec"]["levels"].clone();
    let (leaf, rack) = ("fleetc.dev/leaf", "fleetc.dev/rack");
    let host = "kubernetes.io/hostname";
    // Their NVLink domains lie inside the nodes: no level of theirs.
    assert_eq!(
        levels("held"),
        json!([{"nodeLabel": leaf}, {"nodeLabel": rack}, {"nodeLabel": host}])
    );
    assert_eq!(levels("open"), json!([{"nodeLabel": rack}, {"nodeLabel": host}]));

    let asks = |workload: &str| {
        let job = object(&files, &format!("90-workloads/job-{workload}.yaml"));
        job["spec"]["template"]["metadata"]["annotations"].clone()
    };
    let annotation = |kind: &str, value: &str| {
        let mut all = serde_json::Map::new();
        all.insert(format!("kueue.x-k8s.io/podset-{kind}-topology"), json!(value));
        Value::Object(all)
    };
    // 64 GPUs are 8 nodes, more than a rack has: the block is a leaf.
    assert_eq!(asks("block"), annotation("required", leaf));
    assert_eq!(asks("close"), annotation("preferred", rack));
    assert_eq!(asks("one"), annotation("unconstrained", "true"));
    assert_eq!(asks("rack"), annotation("required", rack));

    let places = |level: &str| {
        let path = format!("30-nodes/nodefeaturerule-place-{level}.yaml");
        let rules = object(&files, &path)["spec"]["rules"].clone();
        let rules = rules.as_array().unwrap().iter().map(|rule| {
            let names = &rule["matchFeatures"][0]["matchExpressions"]["nodename"]["value"];
            (rule["labels"][format!("fleetc.dev/{level}")].clone(), names.clone())
        });
        rules.collect::<Vec<_>>()
    };
    // InfiniBand before Ethernet, and the rails of a node are one leaf.
    assert_eq!(
        places("leaf"),
        [(json!("l1-2"), json!(["^h[1-8]$"])), (json!("l3-4"), json!(["^h9$", "^h1[0-6]$"])),]
    );
    assert_eq!(
        places("rack"),
        [
            (json!("r1"), json!(["^h[1-4]$"])),
            (json!("r2"), json!(["^h[5-8]$"])),
            (json!("r3"), json!(["^h9$", "^h1[0-2]$"])),
            (json!("r4"), json!(["^h1[3-6]$"])),
            (json!("r5"), json!(["^o[1-4]$"])),
        ]
    );
    // The agents of a node set the labels of the other two.
    assert!(!files.keys().any(|path| path.contains("place-host") || path.contains("place-nvlink")));
}

#[test]
fn a_job_over_nodes_is_indexed_has_time_to_save_and_asks_for_its_network() {
    let files = compile(
        r#"
pool "whole" { cluster "k"; system "dgx-h100"; nodes "w[1-4]"; sharing "whole" }
fabric "ib" kind="infiniband" rate="400Gb/s" { switch "leaf1"; attach "leaf1" nodes="w[1-4]" }
tier "batch" priority=100 preemptible=#true { max-time "8h" }
team "t"
workload "tune" {
    team "t"; pool "whole"; kind "finetune"; tier "batch"; gpus 24; gang; network "ib"; memory "60GiB"
    host cpu=8 memory="100GiB" shm="16GiB"
    checkpoint every="20m" takes="90s" tested="2026-11-02"
}
"#,
    );
    let job = object(&files, "90-workloads/job-tune.yaml");
    let labels =
        json!({"kueue.x-k8s.io/queue-name": "default", "kueue.x-k8s.io/priority-class": "batch"});
    assert_eq!(job["metadata"]["labels"], labels);
    let spec = &job["spec"];
    // 24 GPUs on nodes of 8; 8 hours are 28,800 seconds.
    let expected = json!(["Indexed", 3, 3, 28800]);
    let seen = ["completionMode", "completions", "parallelism", "activeDeadlineSeconds"]
        .map(|key| spec[key].clone());
    assert_eq!(json!(seen), expected);
    let pod = &spec["template"]["spec"];
    // 90 seconds to save, and 30 to notice and to end.
    assert_eq!(pod["terminationGracePeriodSeconds"], 120);
    assert_eq!(pod["restartPolicy"], "Never");
    assert_eq!(pod["nodeSelector"], json!({"fleetc.dev/pool": "whole"}));
    let resources = json!({"cpu": "64", "memory": "800Gi", "nvidia.com/gpu": "8", "rdma/rdma_shared_device_a": "1"});
    assert_eq!(pod["containers"][0]["resources"]["limits"], resources);
    assert_eq!(pod["containers"][0]["resources"]["requests"], resources);
    assert_eq!(pod["volumes"][0]["emptyDir"], json!({"medium": "Memory", "sizeLimit": "16Gi"}));
}

/// A team with what it is told and the teams within it.
#[derive(Debug, Clone)]
struct Tree {
    /// What it has beyond the teams within it, and how much more it may use; none: no quota.
    own: Option<(u64, Option<u64>)>,
    within: Vec<Tree>,
}

impl Tree {
    fn guaranteed(&self) -> u64 {
        let within: u64 = self.within.iter().map(Self::guaranteed).sum();
        within + self.own.map_or(0, |(more, _)| more)
    }

    fn kdl(&self, name: &str) -> String {
        let children: String = self
            .within
            .iter()
            .enumerate()
            .map(|(i, team)| team.kdl(&format!("{name}-{i}")))
            .collect();
        let quota = self.own.map_or_else(String::new, |(_, more)| {
            let guaranteed = self.guaranteed();
            let limit =
                more.map_or_else(String::new, |more| format!(" limit={}", guaranteed + more));
            format!("quota \"p\" guaranteed={guaranteed}{limit}")
        });
        format!("team \"{name}\" {{\n{quota}\n{children}}}\n")
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let own = || prop::option::of((0..6_u64, prop::option::of(0..9_u64)));
    let leaf = own().prop_map(|own| Tree { own, within: Vec::new() });
    leaf.prop_recursive(3, 12, 3, move |inner| {
        (own(), prop::collection::vec(inner, 0..3)).prop_map(|(own, within)| Tree { own, within })
    })
}

/// Checks the queues of a team and of those within it, and gives what they have together.
fn sum_of(files: &Texts, name: &str, tree: &Tree, around: &str) -> u64 {
    let key = ("p".to_owned(), "nvidia.com/gpu".to_owned());
    let path = |kind: &str| format!("clusters/k/kubernetes/60-queues/{kind}-{name}.yaml");
    let read = |kind: &str| {
        files.get(&path(kind)).map(|text| serde_yaml::from_str::<Value>(text).unwrap())
    };
    let (queue, cohort) = (read("clusterqueue"), read("cohort"));
    let is_parent = !tree.within.is_empty();
    assert_eq!(cohort.is_some(), is_parent, "{name}");
    let limit = tree.own.and_then(|(_, more)| more);
    let mut sum = 0;
    if let Some(cohort) = &cohort {
        assert_eq!(cohort["spec"]["parentName"], around);
        // No quota of its own, and a limit if the team states one.
        assert_eq!(
            quotas(cohort).get(&key).copied(),
            limit.map(|limit| (0, Some(limit))),
            "{name}"
        );
    }
    if let Some(queue) = &queue {
        assert_eq!(queue["spec"]["cohortName"], if is_parent { name } else { around });
        let (nominal, borrowing) = quotas(queue)[&key];
        assert_eq!(borrowing, limit.filter(|_| !is_parent), "{name}");
        sum += nominal;
    }
    for (index, team) in tree.within.iter().enumerate() {
        sum += sum_of(files, &format!("{name}-{index}"), team, name);
    }
    assert_eq!(sum, tree.guaranteed(), "{name}");
    sum
}

/// What the webhooks of Kueue v0.19.2 demand of the groups of a queue or Cohort.
fn is_admitted(path: &str, object: &Value) {
    let spec = &object["spec"];
    let in_cohort = spec.get("cohortName").or(spec.get("parentName")).is_some();
    let (mut resources, mut flavors) = (Vec::new(), Vec::new());
    for group in spec["resourceGroups"].as_array().into_iter().flatten() {
        let covered: Vec<&Value> = group["coveredResources"].as_array().unwrap().iter().collect();
        for flavor in group["flavors"].as_array().unwrap() {
            let quotas = flavor["resources"].as_array().unwrap();
            let named: Vec<&Value> = quotas.iter().map(|quota| &quota["name"]).collect();
            assert_eq!(
                named, covered,
                "{path}: resources of a flavor stand in the order of the group"
            );
            let bounded = quotas.iter().any(|quota| quota.get("borrowingLimit").is_some());
            assert!(in_cohort || !bounded, "{path}: a limit needs a Cohort");
            flavors.push(&flavor["name"]);
        }
        assert!(!flavors.is_empty(), "{path}");
        resources.extend(covered);
    }
    for names in [resources, flavors] {
        let count = names.len();
        let mut texts: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), count, "{path}: each once");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn quotas_add_up_to_guarantees_and_to_the_pool(teams in prop::collection::vec(trees(), 1..4)) {
        let kdl: String = teams.iter().enumerate().map(|(i, team)| team.kdl(&format!("t{i}"))).collect();
        let pool = "pool \"p\" { cluster \"k\"; system \"dgx-h100\"; nodes \"n[001-050]\"; sharing \"whole\" }\n";
        let files = compile(&format!("{pool}{kdl}"));
        let guaranteed: u64 = teams
            .iter()
            .enumerate()
            .map(|(i, team)| sum_of(&files, &format!("t{i}"), team, "fleet.f"))
            .sum();
        // 50 nodes of 8.
        let root = quota(&files, "cohort-fleet.f", "p", "nvidia.com/gpu");
        prop_assert_eq!(root, Some((400 - guaranteed, None)));
        for (path, text) in files.iter().filter(|(path, _)| path.contains("/60-queues/c")) {
            is_admitted(path, &serde_yaml::from_str(text).unwrap());
        }
    }
}
