//! `rules.test.yaml`: promtool unit tests, for each class one that stays quiet and those that fire.
//!
//! Each test has two nodes of the class: a join that is only right for one node fails with two.

use fleetc_schema::intent::{Class, Cluster, GpuInstance, GpuSlot};
use serde::Serialize;

use super::rules::{
    GPU_METRIC, GPUS_MISSING, INSTANCE_METRIC, Labels, MIG_INSTANCES_MISSING, alert_labels,
    annotations, group_names,
};

#[derive(Serialize)]
pub struct TestFile {
    rule_files: [&'static str; 1],
    evaluation_interval: &'static str,
    group_eval_order: [String; 3],
    tests: Vec<Test>,
}

#[derive(Serialize)]
struct Test {
    name: String,
    interval: &'static str,
    input_series: Vec<Series>,
    alert_rule_test: Vec<AlertTest>,
}

#[derive(Serialize)]
struct Series {
    series: String,
    values: &'static str,
}

#[derive(Serialize)]
struct AlertTest {
    eval_time: &'static str,
    alertname: &'static str,
    exp_alerts: Vec<Alert>,
}

#[derive(Serialize)]
struct Alert {
    exp_labels: Labels,
    exp_annotations: Labels,
}

/// Twenty minutes of samples.
const STEADY: &str = "1x40";
/// Past `for`, within the samples.
const EVAL: &str = "10m";

/// Writes the tests of a cluster.
pub fn file(cluster: &Cluster, classes: &[&Class]) -> TestFile {
    TestFile {
        rule_files: ["rules.yaml"],
        evaluation_interval: "30s",
        group_eval_order: group_names(cluster),
        tests: classes.iter().flat_map(|class| tests(cluster, class)).collect(),
    }
}

fn tests(cluster: &Cluster, class: &Class) -> Vec<Test> {
    let name = &class.node.name;
    let whole = || node_series(class, "a", |_| true, |_, _| true);
    let test = |what: &str, second: Vec<Series>, alerts: Vec<AlertTest>| Test {
        name: format!("{name}: {what}"),
        interval: "30s",
        input_series: whole().into_iter().chain(second).collect(),
        alert_rule_test: alerts,
    };
    let gpus = class.node.gpus.len();
    let mut tests =
        vec![test("as it should be", node_series(class, "b", |_| true, |_, _| true), quiet(class))];
    let last = gpus.saturating_sub(1);
    let without_last = |gpu: &GpuSlot| usize::from(gpu.index) != last;
    let mut fires = vec![gpus_missing(cluster, class, last)];
    fires.extend(instances_missing(cluster, class, without_last));
    tests.push(test("one GPU gone", node_series(class, "b", without_last, |_, _| true), fires));

    let mut fires = vec![gpus_missing(cluster, class, 0)];
    fires.extend(instances_missing(cluster, class, |_| false));
    tests.push(test("every GPU gone", node_series(class, "b", |_| false, |_, _| true), fires));

    if let Some(profile) = class.node.mig_counts().into_keys().next() {
        // One instance less on the first GPU that has any: the GPU is still there.
        let victim = class
            .node
            .gpus
            .iter()
            .find(|gpu| gpu.mig.iter().flatten().any(|instance| instance.profile == profile));
        let index = victim.map(|gpu| gpu.index);
        let at = victim.and_then(|gpu| gpu.mig.as_ref()?.iter().find(|i| i.profile == profile));
        let at = at.map(|instance| instance.placement.start);
        let keep = move |gpu: &GpuSlot, instance: &GpuInstance| {
            (Some(gpu.index), Some(instance.placement.start)) != (index, at)
        };
        let count = class.node.mig_counts().get(&profile).copied().unwrap_or(0).saturating_sub(1);
        let alert = mig_alert(cluster, class, &profile.to_string(), count);
        let alerts = vec![
            AlertTest { eval_time: EVAL, alertname: "GpusMissing", exp_alerts: Vec::new() },
            AlertTest {
                eval_time: EVAL,
                alertname: "MigInstancesMissing",
                exp_alerts: vec![alert],
            },
        ];
        tests.push(test("one GPU instance gone", node_series(class, "b", |_| true, keep), alerts));
    }
    tests
}

/// What the exporter of one node gives, without GPUs and instances that are gone.
fn node_series(
    class: &Class,
    node: &str,
    has_gpu: impl Fn(&GpuSlot) -> bool,
    has_instance: impl Fn(&GpuSlot, &GpuInstance) -> bool,
) -> Vec<Series> {
    let name = &class.node.name;
    let who = format!("node=\"{node}\",class=\"{name}\"");
    let series = |series: String| Series { series, values: STEADY };
    let mut all = vec![series(format!("up{{job=\"dcgm-exporter\",{who}}}"))];
    for gpu in class.node.gpus.iter().filter(|gpu| has_gpu(gpu)) {
        let board = format!("{who},gpu=\"{}\",UUID=\"GPU-{node}-{}\"", gpu.index, gpu.index);
        let Some(instances) = &gpu.mig else {
            all.push(series(format!("{GPU_METRIC}{{{board}}}")));
            continue;
        };
        for instance in instances.iter().filter(|instance| has_instance(gpu, instance)) {
            // The number of an instance says nothing but that it is another one.
            let (id, profile) = (instance.placement.start, &instance.profile);
            for metric in [GPU_METRIC, INSTANCE_METRIC] {
                all.push(series(format!(
                    "{metric}{{{board},GPU_I_ID=\"{id}\",GPU_I_PROFILE=\"{profile}\"}}"
                )));
            }
        }
    }
    all
}

fn quiet(class: &Class) -> Vec<AlertTest> {
    let alert = |alertname| AlertTest { eval_time: EVAL, alertname, exp_alerts: Vec::new() };
    let mut tests = vec![alert("GpusMissing")];
    if !class.node.mig_counts().is_empty() {
        tests.push(alert("MigInstancesMissing"));
    }
    tests
}

fn filled(text: &str, class: &Class, value: usize, profile: &str) -> String {
    text.replace("{{ $labels.node }}", "b")
        .replace("{{ $labels.pool }}", class.node.pool.as_str())
        .replace("{{ $labels.class }}", class.node.name.as_str())
        .replace("{{ $labels.GPU_I_PROFILE }}", profile)
        .replace("{{ $value }}", &value.to_string())
}

fn alert(
    cluster: &Cluster,
    class: &Class,
    severity: &str,
    texts: (&str, &str),
    value: usize,
    profile: &str,
) -> Alert {
    let mut exp_labels = alert_labels(cluster, severity);
    exp_labels.insert("node", "b".to_owned());
    exp_labels.insert("class", class.node.name.to_string());
    exp_labels.insert("pool", class.node.pool.to_string());
    if !profile.is_empty() {
        exp_labels.insert("GPU_I_PROFILE", profile.to_owned());
    }
    let exp_annotations = annotations(&filled(texts.0, class, value, profile), texts.1);
    Alert { exp_labels, exp_annotations }
}

fn gpus_missing(cluster: &Cluster, class: &Class, seen: usize) -> AlertTest {
    let alert = alert(cluster, class, "critical", GPUS_MISSING, seen, "");
    AlertTest { eval_time: EVAL, alertname: "GpusMissing", exp_alerts: vec![alert] }
}

fn mig_alert(cluster: &Cluster, class: &Class, profile: &str, seen: u32) -> Alert {
    let seen = usize::try_from(seen).unwrap_or(0);
    alert(cluster, class, "warning", MIG_INSTANCES_MISSING, seen, profile)
}

/// The alerts for profiles that have fewer instances on the GPUs that are left.
fn instances_missing(
    cluster: &Cluster,
    class: &Class,
    has_gpu: impl Fn(&GpuSlot) -> bool,
) -> Option<AlertTest> {
    let counts = class.node.mig_counts();
    if counts.is_empty() {
        return None;
    }
    let mut exp_alerts = Vec::new();
    for (profile, expected) in counts {
        let left = class.node.gpus.iter().filter(|gpu| has_gpu(gpu));
        let instances = left.flat_map(|gpu| gpu.mig.iter().flatten());
        let seen = instances.filter(|instance| instance.profile == profile).map(|_| 1).sum::<u32>();
        if seen < expected {
            exp_alerts.push(mig_alert(cluster, class, &profile.to_string(), seen));
        }
    }
    Some(AlertTest { eval_time: EVAL, alertname: "MigInstancesMissing", exp_alerts })
}
