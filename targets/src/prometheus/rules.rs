//! Rule groups: what is expected, what is seen, and the alerts between the two.

use fleetc_schema::intent::{AlertSeverity, Class, StandardAlert};
use fleetc_schema::xid::XIDS;
use indexmap::IndexSet;
use serde::Serialize;

use super::alerts::{self, Definition, Texts, UP, by_gpu, by_workload, workload_labels};
use super::metrics::Metric;
use super::site::{Labels, Site, labels};

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
        #[serde(skip_serializing_if = "Option::is_none")]
        r#for: Option<String>,
        labels: Labels,
        annotations: Labels,
    },
}

/// How often rules are evaluated: as often as the exporter is read.
const INTERVAL: &str = "30s";

/// The most that the rules of one group take as text. A PrometheusRule is refused above 512 KiB
/// (prometheus-operator), and the text around them and their indent come on top.
const GROUP_BYTES: usize = 300_000;

/// The group of the table of XIDs.
pub fn xid_group(site: &Site<'_>) -> Group {
    group(site, "xids", xids())
}

fn group(site: &Site<'_>, part: &str, rules: Vec<Rule>) -> Group {
    Group { name: format!("fleetc-{}-{part}", site.cluster.name), interval: INTERVAL, rules }
}

/// Every other group, in the order in which they must be evaluated.
pub fn groups(site: &Site<'_>) -> Vec<Group> {
    let group = |part: &str, rules| group(site, part, rules);
    let mut groups = Vec::new();
    for (index, rules) in shards(expectations(site)).into_iter().enumerate() {
        let part = match index {
            0 => "expected".to_owned(),
            more => format!("expected-{}", more + 1),
        };
        groups.push(group(&part, rules));
    }
    groups.push(group("seen", sightings(site)));
    groups.push(group("alerts", alerts(site)));
    groups
}

/// Rules of classes in groups that stay below the limit.
fn shards(rules: Vec<Rule>) -> Vec<Vec<Rule>> {
    let mut shards: Vec<Vec<Rule>> = vec![Vec::new()];
    let mut bytes = 0;
    for rule in rules {
        // JSON is about as long as our YAML with its indents.
        let more = serde_json::to_string(&rule).map_or(0, |text| text.len() + 40);
        bytes += more;
        if bytes > GROUP_BYTES {
            shards.push(Vec::new());
            bytes = more;
        }
        if let Some(last) = shards.last_mut() {
            last.push(rule);
        }
    }
    shards
}

/// What the spec says of each class, and of namespaces.
fn expectations(site: &Site<'_>) -> Vec<Rule> {
    let mut rules = Vec::new();
    for class in &site.classes {
        of_class(site, class, &mut rules);
    }
    if site.is_kubernetes() {
        let mut told = IndexSet::new();
        for (team, of) in &site.intent.teams {
            // Two teams in one namespace cannot be told apart: the first one is told.
            if told.insert(of.namespace.as_str()) {
                rules.push(Rule::Record {
                    record: "fleetc:namespace_team",
                    expr: "vector(1)".to_owned(),
                    labels: labels([("namespace", of.namespace.as_str()), ("team", team.as_str())]),
                });
            }
        }
    }
    rules
}

fn of_class(site: &Site<'_>, class: &Class, rules: &mut Vec<Rule>) {
    let node = &class.node;
    let elastic = site.is_elastic(class);
    let with = |more: &[(&'static str, &str)]| {
        let mut all = site.class_labels(class);
        all.extend(more.iter().map(|(key, value)| (*key, (*value).to_owned())));
        all
    };
    let mut expect = |record, value: String, labels: Labels| {
        rules.push(Rule::Record { record, expr: format!("vector({value})"), labels });
    };
    let info = [
        ("sharing", site.sharing(class)),
        ("elastic", if elastic { "yes" } else { "no" }),
        ("gpu", node.gpu.as_ref().map_or("", |gpu| gpu.key.as_str())),
    ];
    expect("fleetc:class_info", "1".to_owned(), with(&info));
    expect("fleetc:class_gpus_expected", node.gpus.len().to_string(), with(&[]));
    for (profile, count) in node.mig_counts() {
        let profile = profile.to_string();
        let labels = with(&[("GPU_I_PROFILE", &profile)]);
        expect("fleetc:class_mig_instances_expected", count.to_string(), labels);
    }
    if let Some(label) = site.exported().name(Metric::DriverVersion) {
        let labels = with(&[(label, &node.driver.version.to_string())]);
        expect("fleetc:class_driver_expected", "1".to_owned(), labels);
    }
    if let Some(links) = Site::nvlinks(class) {
        expect("fleetc:class_nvlinks_expected", links.to_string(), with(&[]));
    }
    if let Some((_, policy)) = &node.policy {
        if let Some(limit) = policy.power_limit {
            let watts = limit.0.to_string();
            expect("fleetc:class_power_limit_watts_expected", watts, with(&[]));
        }
        if policy.ecc == Some(true) {
            expect("fleetc:class_ecc_expected", "1".to_owned(), with(&[]));
        }
    }
    if !elastic {
        expect("fleetc:class_nodes_expected", class.nodes.len().to_string(), with(&[]));
        // Drained nodes that nothing scrapes have no label `class`: they are known by name.
        rules.push(Rule::Record {
            record: "fleetc:class_nodes_drained",
            expr: format!(
                "count(fleetc:node_drained{{node=~\"{}\"}} unless on (node) {UP})",
                class.nodes.regex()
            ),
            labels: labels([("class", node.name.as_str())]),
        });
    }
}

/// What each XID is about.
fn xids() -> Vec<Rule> {
    let rule = |xid: &fleetc_schema::xid::Xid| Rule::Record {
        record: "fleetc:xid_info",
        expr: "vector(1)".to_owned(),
        labels: labels([
            ("xid", &xid.code.to_string()),
            ("xid_name", xid.name),
            ("route", xid.class.map_or("none", |class| class.as_str())),
            ("severity", xid.severity.as_str()),
            ("action", xid.action),
        ]),
    };
    XIDS.iter().map(rule).collect()
}

/// What the exporters show, in our own names.
fn sightings(site: &Site<'_>) -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut record = |record, expr: String, labels: Labels| {
        rules.push(Rule::Record { record, expr, labels });
    };
    // Of kube-state-metrics, and of slurm_exporter (SckyzO, 1.8 and later).
    let drained = match site.is_kubernetes() {
        true => "kube_node_spec_unschedulable == 1",
        false => "slurm_node_drain_reason_info == 1",
    };
    record("fleetc:node_drained", format!("max by (node) ({drained})"), Labels::new());
    record("fleetc:class_nodes_scraped", format!("count by (class) ({UP})"), Labels::new());
    let name = |metric| site.exported().name(metric);
    if let Some(temperature) = name(Metric::GpuTemp) {
        // A node all of whose GPUs are gone still has its exporter, so "none seen" is counted as 0:
        // a comparison with an absent series never fires.
        let expr = format!(
            "count by (node, class) (max by (node, class, UUID) ({temperature})) \
             or max by (node, class) (0 * ({UP} == 1))"
        );
        record("fleetc:node_gpus_seen", expr, Labels::new());
    }
    if let Some(memory) = name(Metric::FbUsed) {
        for profile in site.profiles() {
            let expr = format!(
                "count by (node, class) (max by (node, class, UUID, GPU_I_ID) \
                 ({memory}{{GPU_I_PROFILE=\"{profile}\"}})) \
                 and on (class) fleetc:class_mig_instances_expected{{GPU_I_PROFILE=\"{profile}\"}} \
                 or max by (node, class) (0 * ({UP} == 1)) \
                 and on (class) fleetc:class_mig_instances_expected{{GPU_I_PROFILE=\"{profile}\"}}"
            );
            let labels = labels([("GPU_I_PROFILE", &profile.to_string())]);
            record("fleetc:node_mig_instances_seen", expr, labels);
        }
        if alerts::definition(site, StandardAlert::MigLayoutDrift).is_ok() {
            let expr = format!(
                "count by (node, class, GPU_I_PROFILE) \
                 (max by (node, class, UUID, GPU_I_ID, GPU_I_PROFILE) ({memory}{{GPU_I_ID!=\"\"}})) \
                 unless on (class, GPU_I_PROFILE) fleetc:class_mig_instances_expected"
            );
            record("fleetc:node_mig_instances_unexpected", expr, Labels::new());
        }
    }
    let workload = workload_labels(site);
    if let Some(xids) = name(Metric::XidCount) {
        let series = by_workload(site, &format!("{xids}{{xid!=\"\"}} > 0"));
        let expr = alerts::of_class(&format!(
            "max by (node, class, gpu, UUID, xid, {workload}) ({series})"
        ));
        record("fleetc:gpu_xid", expr, Labels::new());
    }
    if let Some(reasons) = name(Metric::ClocksEventReasons) {
        // Bits of the mask; PromQL has no operator for them. Source: NVIDIA/DCGM, dcgm_fields.h.
        for (reason, bit) in
            [("hw_slowdown", 8), ("sw_thermal", 32), ("hw_thermal", 64), ("hw_power_brake", 128)]
        {
            let expr = by_gpu(&format!("floor({reasons} / {bit}) % 2"));
            record("fleetc:gpu_throttle", expr, labels([("reason", reason)]));
        }
    }
    if let (Some(sm), Some(engines)) = (name(Metric::SmActive), name(Metric::GrEngineActive)) {
        let held = if site.is_kubernetes() { "exported_pod!=\"\"" } else { "hpc_job!=\"\"" };
        let busiest = |metric: &str| {
            let series = by_workload(site, &format!("{metric}{{{held}}}"));
            format!("max by (node, class, {workload}) ({series})")
        };
        // SM activity says how much of the GPU works; where it is missing, that anything runs.
        let expr = format!(
            "({} or {}) * on (class) group_left (pool, team) fleetc:class_info{{sharing=~\"whole|mig\"}}",
            busiest(sm),
            busiest(engines)
        );
        record("fleetc:workload_gpu_activity", expr, Labels::new());
    }
    rules
}

/// The labels that an alert has beside those of its series.
pub fn alert_labels(site: &Site<'_>, alert: StandardAlert) -> Labels {
    let kind = alert.kind();
    let mut all = labels([("cluster", site.cluster.name.as_str()), ("route", kind.class.as_str())]);
    if let Some(severity) = kind.severity {
        all.insert("severity", AlertSeverity::as_str(severity).to_owned());
    }
    all
}

/// The annotations of an alert.
pub fn annotations(texts: &Texts) -> Labels {
    labels([
        ("action", &texts.action),
        ("description", &texts.description),
        ("summary", &texts.summary),
    ])
}

fn alerts(site: &Site<'_>) -> Vec<Rule> {
    let rule = |alert: &StandardAlert| {
        let Definition { expr, texts } = alerts::definition(site, *alert).ok()?;
        let after = site.after(*alert);
        Some(Rule::Alert {
            alert: alert.as_str(),
            expr,
            r#for: (after.0 > 0).then(|| after.to_string()),
            labels: alert_labels(site, *alert),
            annotations: annotations(&texts),
        })
    };
    StandardAlert::ALL.iter().filter_map(rule).collect()
}
