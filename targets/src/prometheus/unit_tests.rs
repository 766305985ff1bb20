//! `rules.test.yaml`: promtool unit tests. Each alert has a test in which it fires and one in which it
//! stays quiet; what is expected by class is tested for every class.
//!
//! Each class has two nodes, `a` that is well and `b`: a join that is only right for one node fails with
//! two. promtool evaluates groups in a random order unless it is told one.

use fleetc_schema::intent::{
    AlertClass, AlertSeverity, Class, GpuInstance, GpuSlot, StandardAlert,
};
use fleetc_schema::units::Seconds;
use fleetc_schema::xid::{XIDS, Xid};
use indexmap::IndexMap;
use serde::Serialize;

use super::alerts::{definition, xid_class};
use super::metrics::Metric;
use super::rules::{alert_labels, annotations};
use super::site::{Labels, Site, has_mig, labels};

#[derive(Serialize)]
pub struct TestFile {
    rule_files: Vec<&'static str>,
    evaluation_interval: &'static str,
    group_eval_order: Vec<String>,
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
    values: String,
}

#[derive(Serialize)]
struct AlertTest {
    eval_time: String,
    alertname: &'static str,
    exp_alerts: Vec<Alert>,
}

#[derive(Serialize)]
struct Alert {
    exp_labels: Labels,
    exp_annotations: Labels,
}

/// Between two samples, and two evaluations.
const INTERVAL: &str = "1m";
/// The same in seconds.
const STEP: u64 = 60;
/// The node that is well, and the other one.
const WELL: &str = "a";
const OTHER: &str = "b";
/// How long after its `for` an alert is looked at.
const MARGIN: u64 = 300;
/// A code that no catalog has.
const UNKNOWN_XID: u16 = 999;

/// Writes the tests of the rules that do without the table of XIDs.
pub fn file(site: &Site<'_>, groups: Vec<String>) -> TestFile {
    let mut tests = Vec::new();
    for class in &site.classes {
        Bench { site, class }.presence(&mut tests);
    }
    let mut tests = merged(tests);
    tests.extend(of_alerts(site, |alert| !is_about_xids(alert)));
    test_file(vec!["rules.yaml"], groups, tests)
}

/// Tests of one name as one: the nodes of every class stand side by side, and promtool is quicker.
fn merged(tests: Vec<Test>) -> Vec<Test> {
    let mut all: Vec<Test> = Vec::new();
    for test in tests {
        let Some(known) = all.iter_mut().find(|known| known.name == test.name) else {
            all.push(test);
            continue;
        };
        for series in test.input_series {
            if !known.input_series.iter().rev().any(|other| other.series == series.series) {
                known.input_series.push(series);
            }
        }
        for alert in test.alert_rule_test {
            let mut same = known.alert_rule_test.iter_mut();
            match same.find(|other| other.alertname == alert.alertname) {
                Some(other) => other.exp_alerts.extend(alert.exp_alerts),
                None => known.alert_rule_test.push(alert),
            }
        }
    }
    all
}

/// Writes the tests of the alerts about XIDs. A file of their own: promtool evaluates every rule for
/// every test, and the table has more rules than all the rest.
pub fn xid_file(site: &Site<'_>, groups: Vec<String>) -> TestFile {
    test_file(vec!["rules.yaml", "xids.yaml"], groups, of_alerts(site, is_about_xids))
}

fn is_about_xids(alert: StandardAlert) -> bool {
    xid_class(alert).is_some() || alert == StandardAlert::GpuXidUnknown
}

fn test_file(rule_files: Vec<&'static str>, groups: Vec<String>, tests: Vec<Test>) -> TestFile {
    TestFile { rule_files, evaluation_interval: INTERVAL, group_eval_order: groups, tests }
}

fn of_alerts(site: &Site<'_>, which: fn(StandardAlert) -> bool) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut well: IndexMap<String, String> = IndexMap::new();
    let mut quiet = Vec::new();
    for alert in StandardAlert::ALL.iter().filter(|alert| which(**alert)) {
        let (Ok(class), Ok(_)) = (site.subject(*alert), definition(site, *alert)) else { continue };
        let bench = Bench { site, class };
        let Some(scenario) = bench.scenario(*alert) else { continue };
        let all_quiet = bench.expect(*alert, Vec::new());
        // The silent nodes are given as sums, and each XID alert the XIDs of another.
        if *alert == StandardAlert::GpuNodesSilent || is_about_xids(*alert) {
            let what = format!("{alert} is quiet");
            tests.push(bench.test(&what, scenario.well, vec![all_quiet]));
        } else {
            for Series { series, values } in scenario.well {
                let kept = well.entry(series).or_default();
                // The longer of two runs of one value.
                if (kept.len(), &*kept) < (values.len(), &values) {
                    *kept = values;
                }
            }
            quiet.push(all_quiet);
        }
        let name = alert.as_str();
        for (what, series, expected) in scenario.ill {
            let fires = vec![bench.expect(*alert, vec![expected])];
            tests.push(bench.test(&format!("{name}: {what}"), series, fires));
        }
        for (what, series) in scenario.quiet {
            let quiet = vec![bench.expect(*alert, Vec::new())];
            tests.push(bench.test(&format!("{name} is quiet: {what}"), series, quiet));
        }
    }
    let series = well.into_iter().map(|(series, values)| Series { series, values }).collect();
    if quiet.is_empty() {
        return tests;
    }
    let all_well = Test {
        name: "every alert is quiet where all is well".to_owned(),
        interval: INTERVAL,
        input_series: series,
        alert_rule_test: quiet,
    };
    tests.insert(0, all_well);
    tests
}

/// What an alert must say: its own labels, and its value.
struct Expected {
    labels: Labels,
    value: String,
}

/// Tests with nodes of one class.
struct Bench<'a> {
    site: &'a Site<'a>,
    class: &'a Class,
}

impl Bench<'_> {
    /// A series that keeps its value for as long as the alert needs.
    fn steady(alert: StandardAlert, site: &Site<'_>, series: String, value: &str) -> Series {
        let samples = (site.after(alert).0 + 2 * MARGIN) / STEP;
        Series { series, values: format!("{value}x{samples}") }
    }

    /// The name of a node of this class.
    fn host(&self, node: &str) -> String {
        format!("{node}.{}", self.class.node.name)
    }

    fn node(&self, node: &str) -> String {
        format!("node=\"{}\",class=\"{}\"", self.host(node), self.class.node.name)
    }

    fn board(&self, node: &str, gpu: &GpuSlot) -> String {
        let (host, index) = (self.host(node), gpu.index);
        format!("{},gpu=\"{index}\",UUID=\"GPU-{host}-{index}\"", self.node(node))
    }

    fn name(&self, metric: Metric) -> &'static str {
        self.site.name(metric).unwrap_or("")
    }

    /// An alert and its state at the time when it must have fired.
    fn expect(&self, alert: StandardAlert, expected: Vec<Expected>) -> AlertTest {
        let Seconds(after) = self.site.after(alert);
        AlertTest {
            eval_time: Seconds(after + MARGIN).to_string(),
            alertname: alert.as_str(),
            exp_alerts: expected.into_iter().filter_map(|e| self.fired(alert, e)).collect(),
        }
    }

    fn fired(&self, alert: StandardAlert, expected: Expected) -> Option<Alert> {
        let definition = definition(self.site, alert).ok()?;
        let mut exp_labels = self.site.class_labels(self.class);
        exp_labels.extend(alert_labels(self.site, alert));
        exp_labels.extend(expected.labels);
        exp_labels.retain(|_, value| !value.is_empty());
        let mut exp_annotations = annotations(&definition.texts);
        for text in exp_annotations.values_mut() {
            *text = filled(text, &exp_labels, &expected.value);
        }
        Some(Alert { exp_labels, exp_annotations })
    }

    fn test(&self, what: &str, series: Vec<Series>, alerts: Vec<AlertTest>) -> Test {
        Test {
            name: what.to_owned(),
            interval: INTERVAL,
            input_series: series,
            alert_rule_test: alerts,
        }
    }

    /// GPUs and GPU instances against what the class has.
    fn presence(&self, tests: &mut Vec<Test>) {
        let node = &self.class.node;
        let whole = |more: Vec<Series>| {
            let well = self.exported(WELL, |_| true, |_, _| true);
            well.into_iter().chain(more).collect::<Vec<_>>()
        };
        let quiet = || {
            let drift = definition(self.site, StandardAlert::MigLayoutDrift).is_ok();
            let mut alerts = vec![self.expect(StandardAlert::GpusMissing, Vec::new())];
            alerts.extend(drift.then(|| self.expect(StandardAlert::MigLayoutDrift, Vec::new())));
            alerts
        };
        let other = self.exported(OTHER, |_| true, |_, _| true);
        tests.push(self.test("as it should be", whole(other), quiet()));

        let last = node.gpus.len().saturating_sub(1);
        let without_last = |gpu: &GpuSlot| usize::from(gpu.index) != last;
        let mut alerts = vec![self.gpus_missing(last)];
        alerts.extend(self.drifts(without_last));
        let other = self.exported(OTHER, without_last, |_, _| true);
        tests.push(self.test("one GPU gone", whole(other), alerts));

        let mut drained = self.exported(OTHER, without_last, |_, _| true);
        drained.push(self.drained(&self.host(OTHER)));
        tests.push(self.test("one GPU gone on a drained node", whole(drained), quiet()));

        let mut alerts = vec![self.gpus_missing(0)];
        alerts.extend(self.drifts(|_| false));
        let other = self.exported(OTHER, |_| false, |_, _| true);
        tests.push(self.test("every GPU gone", whole(other), alerts));

        self.instances(&whole, tests);
        self.foreign_instance(&whole, tests);

        if self.site.is_elastic(self.class) {
            let alert = StandardAlert::GpuExporterDown;
            let known = |alert| definition(self.site, alert).is_ok();
            let alerts = [alert, StandardAlert::GpuNodesSilent];
            let alerts: Vec<AlertTest> = alerts
                .into_iter()
                .filter(|alert| known(*alert))
                .map(|alert| self.expect(alert, Vec::new()))
                .collect();
            if !alerts.is_empty() {
                let down = format!("up{{job=\"dcgm-exporter\",{}}}", self.node(OTHER));
                let mut series = self.scraped(StandardAlert::GpuNodesSilent, 0);
                series.push(Self::steady(alert, self.site, down, "0"));
                tests.push(self.test("elastic nodes come and go", whole(series), alerts));
            }
        }
    }

    /// One instance less on the first GPU that has any.
    fn instances(&self, whole: &dyn Fn(Vec<Series>) -> Vec<Series>, tests: &mut Vec<Test>) {
        let node = &self.class.node;
        let Some((profile, count)) = node.mig_counts().into_iter().next() else { return };
        let of_profile = |gpu: &&GpuSlot| gpu.mig.iter().flatten().any(|i| i.profile == profile);
        let Some(victim) = node.gpus.iter().find(of_profile) else { return };
        let start = victim.mig.iter().flatten().find(|i| i.profile == profile);
        let start = start.map(|instance| instance.placement.start);
        let keep = |gpu: &GpuSlot, instance: &GpuInstance| {
            (gpu.index, Some(instance.placement.start)) != (victim.index, start)
        };
        let drift = |profile: &str, seen: u32| {
            let labels = labels([("node", &self.host(OTHER)), ("GPU_I_PROFILE", profile)]);
            let expected = vec![Expected { labels, value: seen.to_string() }];
            vec![
                self.expect(StandardAlert::GpusMissing, Vec::new()),
                self.expect(StandardAlert::MigLayoutDrift, expected),
            ]
        };
        let other = self.exported(OTHER, |_| true, keep);
        let alerts = drift(&profile.to_string(), count.saturating_sub(1));
        tests.push(self.test("one GPU instance gone", whole(other), alerts));
    }

    /// An instance of a profile that the class has not: of a GPU that was cut by hand, or otherwise.
    fn foreign_instance(&self, whole: &dyn Fn(Vec<Series>) -> Vec<Series>, tests: &mut Vec<Test>) {
        let alert = StandardAlert::MigLayoutDrift;
        let first = self.site.subject(alert).is_ok_and(|c| c.node.name == self.class.node.name);
        let Some(gpu) = self.class.node.gpus.first() else { return };
        if definition(self.site, alert).is_err() || !(first || has_mig(self.class)) {
            return;
        }
        let foreign = format!("{},GPU_I_ID=\"99\",GPU_I_PROFILE=\"other\"", self.board(OTHER, gpu));
        let foreign = format!("{}{{{foreign}}}", self.name(Metric::FbUsed));
        let mut other = self.exported(OTHER, |_| true, |_, _| true);
        other.push(Self::steady(alert, self.site, foreign, "1"));
        let labels = labels([("node", &self.host(OTHER)), ("GPU_I_PROFILE", "other")]);
        let expected = vec![Expected { labels, value: "1".to_owned() }];
        let alerts =
            vec![self.expect(StandardAlert::GpusMissing, Vec::new()), self.expect(alert, expected)];
        tests.push(self.test("a GPU instance of another profile", whole(other), alerts));
    }

    fn drained(&self, node: &str) -> Series {
        let series = match self.site.is_kubernetes() {
            true => format!("kube_node_spec_unschedulable{{node=\"{node}\"}}"),
            false => format!("slurm_node_drain_reason_info{{node=\"{node}\",reason=\"RMA\"}}"),
        };
        // The longest of what is asked of a drained node.
        let longest = [
            StandardAlert::GpusMissing,
            StandardAlert::MigLayoutDrift,
            StandardAlert::GpuNodesSilent,
        ];
        let longest = longest.into_iter().max_by_key(|alert| self.site.after(*alert).0);
        let alert = longest.unwrap_or(StandardAlert::GpusMissing);
        Self::steady(alert, self.site, series, "1")
    }

    /// What the exporter of one node gives, without GPUs and instances that are gone.
    fn exported(
        &self,
        node: &str,
        has_gpu: impl Fn(&GpuSlot) -> bool,
        has_instance: impl Fn(&GpuSlot, &GpuInstance) -> bool,
    ) -> Vec<Series> {
        let longest = [StandardAlert::GpusMissing, StandardAlert::MigLayoutDrift];
        let longest = longest.into_iter().max_by_key(|alert| self.site.after(*alert).0);
        let alert = longest.unwrap_or(StandardAlert::GpusMissing);
        let series = |series: String| Self::steady(alert, self.site, series, "1");
        let mut all = vec![series(format!("up{{job=\"dcgm-exporter\",{}}}", self.node(node)))];
        let (temperature, memory) = (self.name(Metric::GpuTemp), self.name(Metric::FbUsed));
        for gpu in self.class.node.gpus.iter().filter(|gpu| has_gpu(gpu)) {
            let board = self.board(node, gpu);
            let Some(instances) = &gpu.mig else {
                all.push(series(format!("{temperature}{{{board}}}")));
                continue;
            };
            for instance in instances.iter().filter(|instance| has_instance(gpu, instance)) {
                // The number of an instance says nothing but that it is another one.
                let (id, profile) = (instance.placement.start, &instance.profile);
                for metric in [temperature, memory] {
                    all.push(series(format!(
                        "{metric}{{{board},GPU_I_ID=\"{id}\",GPU_I_PROFILE=\"{profile}\"}}"
                    )));
                }
            }
        }
        all
    }

    fn gpus_missing(&self, seen: usize) -> AlertTest {
        let expected =
            Expected { labels: labels([("node", &self.host(OTHER))]), value: seen.to_string() };
        self.expect(StandardAlert::GpusMissing, vec![expected])
    }

    /// The drift of profiles that have fewer instances on the GPUs that are left.
    fn drifts(&self, has_gpu: impl Fn(&GpuSlot) -> bool) -> Option<AlertTest> {
        let counts = self.class.node.mig_counts();
        let mut alerts = Vec::new();
        for (profile, expected) in &counts {
            let left = self.class.node.gpus.iter().filter(|gpu| has_gpu(gpu));
            let instances = left.flat_map(|gpu| gpu.mig.iter().flatten());
            let seen = instances.filter(|instance| instance.profile == *profile).map(|_| 1).sum();
            if seen < *expected {
                let profile = profile.to_string();
                let labels = labels([("node", &self.host(OTHER)), ("GPU_I_PROFILE", &profile)]);
                alerts.push(Expected { labels, value: u32::to_string(&seen) });
            }
        }
        (!counts.is_empty()).then(|| self.expect(StandardAlert::MigLayoutDrift, alerts))
    }

    /// None for alerts that are tested by class.
    fn scenario(&self, alert: StandardAlert) -> Option<Scenario> {
        use StandardAlert as A;
        let flag = |metric, what, good, bad| Some(self.flag(alert, metric, what, good, bad));
        match alert {
            A::GpusMissing | A::MigLayoutDrift => None,
            A::GpuNodesSilent => Some(self.nodes_silent()),
            A::GpuExporterDown => Some(self.exporter_down()),
            A::GpuXidHardware
            | A::GpuXidFabric
            | A::GpuXidDriver
            | A::GpuXidApplication
            | A::GpuXidConfig
            | A::GpuXidFacility
            | A::GpuXidUnknown => Some(self.xid(alert)),
            A::GpuRecoveryActionRequired => {
                flag(Metric::RecoveryAction, "the driver asks for a reboot", "0", "2")
            }
            A::GpuDoubleBitEcc => flag(Metric::EccDbe, "one error", "0", "1"),
            A::GpuSramThresholdExceeded => flag(Metric::SramThreshold, "exceeded", "0", "1"),
            A::GpuRowRemapFailure => flag(Metric::RemapFailure, "failed", "0", "1"),
            A::GpuRowRemapPending => flag(Metric::RemapPending, "pending", "0", "1"),
            A::GpuRowRemapBanksExhausted => flag(Metric::RemapBanksNone, "two banks", "0", "2"),
            A::GpuMemoryUnrepairable => flag(Metric::MemoryUnrepairable, "unrepairable", "0", "1"),
            A::GpuEccOff => flag(Metric::EccMode, "off", "1", "0"),
            // 4 is the power cap, which is how a GPU at work looks; 32 and 8 are not.
            A::GpuThermalThrottle => Some(self.throttled(alert, "sw_thermal", "36")),
            A::GpuHwSlowdown => Some(self.throttled(alert, "hw_slowdown", "12")),
            A::GpuPowerLimitDrift => {
                let (_, policy) = self.class.node.policy.as_ref()?;
                let limit = policy.power_limit?.0;
                let (good, bad) = (limit.to_string(), (limit + 50).to_string());
                flag(Metric::PowerLimit, "another limit", good.as_str(), bad.as_str())
            }
            A::GpuDriverDrift => Some(self.driver_drift()),
            A::NvlinkDown => self.nvlink_down(),
            A::NvlinkRecoveryErrors => flag(Metric::NvlinkRecovery, "links recover", "5+0", "5+1"),
            A::FabricManagerFailed => flag(Metric::FabricManager, "failed", "3", "4"),
            A::FabricHealthDegraded => flag(Metric::FabricHealth, "unhealthy", "1", "2"),
            A::PcieLinkDegraded => Some(self.pcie()),
            A::GpuProfilingLost => Some(self.profiling_lost()),
            A::GpuAllocatedButIdle => Some(self.idle()),
        }
    }

    /// Both exporters up, and a series of each node.
    fn nodes(
        &self,
        alert: StandardAlert,
        other: &str,
        series: impl Fn(&str) -> String,
    ) -> Vec<Series> {
        let up = |node| format!("up{{job=\"dcgm-exporter\",{}}}", self.node(node));
        let steady = |series, value: &str| Self::steady(alert, self.site, series, value);
        vec![steady(up(WELL), "1"), steady(up(OTHER), "1"), steady(series(OTHER), other)]
    }

    fn first_gpu(&self, node: &str) -> String {
        self.class.node.gpus.first().map(|gpu| self.board(node, gpu)).unwrap_or_default()
    }

    fn gpu_labels(&self) -> Labels {
        let index = self.class.node.gpus.first().map_or(0, |gpu| gpu.index);
        labels([
            ("node", &self.host(OTHER)),
            ("gpu", &index.to_string()),
            ("UUID", &format!("GPU-{}-{index}", self.host(OTHER))),
        ])
    }

    /// A value of the first GPU of each node.
    fn flag(
        &self,
        alert: StandardAlert,
        metric: Metric,
        what: &str,
        good: &str,
        bad: &str,
    ) -> Scenario {
        let series = |node: &str| format!("{}{{{}}}", self.name(metric), self.first_gpu(node));
        let with = |value: &str| {
            let mut all = self.nodes(alert, value, series);
            all.push(Self::steady(alert, self.site, series(WELL), good));
            all
        };
        let expected = Expected { labels: self.gpu_labels(), value: bad.to_owned() };
        Scenario::new(with(good), what, with(bad), expected)
    }

    fn throttled(&self, alert: StandardAlert, reason: &str, bad: &str) -> Scenario {
        let mut scenario = self.flag(alert, Metric::ClocksEventReasons, reason, "4", bad);
        for (_, _, expected) in &mut scenario.ill {
            expected.labels.insert("reason", reason.to_owned());
            expected.value = "1".to_owned();
        }
        scenario
    }

    /// How many nodes of each class are scraped: all, but for this class.
    fn scraped(&self, alert: StandardAlert, nodes: u64) -> Vec<Series> {
        let fixed = self.site.classes.iter().filter(|class| !self.site.is_elastic(class));
        let series = |class: &&Class| {
            let own = class.node.name == self.class.node.name;
            let nodes = if own { nodes } else { class.nodes.len() };
            let series = format!("fleetc:class_nodes_scraped{{class=\"{}\"}}", class.node.name);
            Self::steady(alert, self.site, series, &nodes.to_string())
        };
        fixed.map(series).collect()
    }

    /// The sum over nodes is given, so that a class of any size can be tested.
    fn nodes_silent(&self) -> Scenario {
        let alert = StandardAlert::GpuNodesSilent;
        let scraped = |nodes| self.scraped(alert, nodes);
        let all = self.class.nodes.len();
        let expected = Expected { labels: Labels::new(), value: "1".to_owned() };
        let mut scenario =
            Scenario::new(scraped(all), "one node", scraped(all.saturating_sub(1)), expected);
        if let Some(first) = self.class.nodes.first() {
            let mut drained = scraped(all.saturating_sub(1));
            drained.push(self.drained(&first));
            scenario.quiet.push(("the node is drained", drained));
        }
        scenario
    }

    fn exporter_down(&self) -> Scenario {
        let alert = StandardAlert::GpuExporterDown;
        let up = |node: &str, value: &str| {
            let series = format!("up{{job=\"dcgm-exporter\",{}}}", self.node(node));
            Self::steady(alert, self.site, series, value)
        };
        let expected =
            Expected { labels: labels([("node", &self.host(OTHER))]), value: "0".to_owned() };
        let both = |value: &str| vec![up(WELL, "1"), up(OTHER, value)];
        let mut scenario = Scenario::new(both("1"), "one node", both("0"), expected);
        let mut drained = both("0");
        let longest = self.drained(&self.host(OTHER));
        drained.push(Self::steady(alert, self.site, longest.series, "1"));
        scenario.quiet.push(("the node is drained", drained));
        scenario
    }

    fn xid(&self, alert: StandardAlert) -> Scenario {
        let class = xid_class(alert);
        let of = |class: AlertClass| {
            let all = || XIDS.iter().filter(move |xid| xid.class == Some(class));
            all().find(|xid| xid.severity == AlertSeverity::Critical).or_else(|| all().next())
        };
        let code = |xid: Option<&Xid>| xid.map_or(UNKNOWN_XID, |xid| xid.code);
        let xid = class.and_then(of);
        // A code of another class, that this alert must not tell of.
        let elsewhere = match class {
            Some(AlertClass::Application) => of(AlertClass::Hardware),
            _ => of(AlertClass::Application),
        };
        let (workload, of_workload) = self.workload();
        let series = |node: &str, code: u16| {
            let board = self.first_gpu(node);
            format!("{}{{{board},xid=\"{code}\",{workload}}}", self.name(Metric::XidCount))
        };
        let none = format!("{}{{{}}}", self.name(Metric::XidCount), self.first_gpu(WELL));
        let with = |code: u16| {
            let mut all = self.nodes(alert, "1", |node| series(node, code));
            all.push(Self::steady(alert, self.site, none.clone(), "0"));
            all
        };
        let mut labels = self.gpu_labels();
        labels.insert("xid", code(xid).to_string());
        if let Some(xid) = xid {
            labels.insert("xid_name", xid.name.to_owned());
            labels.insert("severity", xid.severity.as_str().to_owned());
            labels.insert("action", xid.action.to_owned());
        }
        if class == Some(AlertClass::Application) {
            labels.extend(of_workload);
        }
        let expected = Expected { labels, value: "1".to_owned() };
        let what = format!("XID {}", code(xid));
        Scenario::new(with(code(elsewhere)), &what, with(code(xid)), expected)
    }

    /// A workload as the exporter labels it, and what an alert knows of it.
    fn workload(&self) -> (String, Labels) {
        if !self.site.is_kubernetes() {
            return ("hpc_job=\"4711\"".to_owned(), labels([("hpc_job", "4711")]));
        }
        let team = self.site.intent.teams.iter().next();
        let namespace = team.map_or("default", |(_, team)| team.namespace.as_str());
        let mut known = labels([("namespace", namespace), ("pod", "job-0")]);
        if let Some((name, _)) = team {
            known.insert("team", name.to_string());
        }
        // The target has labels of these names too: those of the exporter's own pod.
        let series = format!(
            "namespace=\"gpu-operator\",pod=\"exporter\",exported_namespace=\"{namespace}\",exported_pod=\"job-0\""
        );
        (series, known)
    }

    fn driver_drift(&self) -> Scenario {
        let alert = StandardAlert::GpuDriverDrift;
        let (temperature, label) = (self.name(Metric::GpuTemp), self.name(Metric::DriverVersion));
        let version = self.class.node.driver.version.to_string();
        let series = |node: &str, version: &str| {
            format!("{temperature}{{{},{label}=\"{version}\"}}", self.first_gpu(node))
        };
        let with = |other: &str| {
            let mut all = self.nodes(alert, "40", |node| series(node, other));
            all.push(Self::steady(alert, self.site, series(WELL, &version), "40"));
            all
        };
        let expected = Expected {
            labels: labels([("node", &self.host(OTHER)), (label, "1.2.3")]),
            value: "1".to_owned(),
        };
        Scenario::new(with(&version), "another version", with("1.2.3"), expected)
    }

    fn nvlink_down(&self) -> Option<Scenario> {
        let alert = StandardAlert::NvlinkDown;
        let links = Site::nvlinks(self.class)?;
        let index = self.class.node.gpus.first().map_or(0, |gpu| gpu.index);
        let series = |node: &'static str, up: u8| {
            (0..links).map(move |link| {
                let series = format!(
                    "{}{{{},gpu=\"{index}\",nvlink=\"{link}\"}}",
                    self.name(Metric::NvlinkState),
                    self.node(node)
                );
                Self::steady(alert, self.site, series, if link < up { "1" } else { "0" })
            })
        };
        let with = |up: u8| series(WELL, links).chain(series(OTHER, up)).collect::<Vec<_>>();
        let expected = |up: u8| Expected {
            labels: labels([("node", &self.host(OTHER)), ("gpu", &index.to_string())]),
            value: up.to_string(),
        };
        let fewer = links - 1;
        let mut scenario =
            Scenario::new(with(links), "one link is down", with(fewer), expected(fewer));
        if fewer > 0 {
            scenario.ill.push(("every link is down".to_owned(), with(0), expected(0)));
        }
        Some(scenario)
    }

    fn pcie(&self) -> Scenario {
        let alert = StandardAlert::PcieLinkDegraded;
        let mut scenario = self.flag(alert, Metric::PcieWidth, "half of the lanes", "16", "8");
        let most = || {
            [WELL, OTHER].map(|node| {
                let series =
                    format!("{}{{{}}}", self.name(Metric::PcieMaxWidth), self.first_gpu(node));
                Self::steady(alert, self.site, series, "16")
            })
        };
        scenario.well.extend(most());
        for (_, series, _) in &mut scenario.ill {
            series.extend(most());
        }
        scenario
    }

    fn profiling_lost(&self) -> Scenario {
        let alert = StandardAlert::GpuProfilingLost;
        let series = |metric, node: &str| {
            let series = format!("{}{{{}}}", self.name(metric), self.first_gpu(node));
            Self::steady(alert, self.site, series, "1")
        };
        let lost = || {
            vec![
                series(Metric::GpuTemp, WELL),
                series(Metric::GpuTemp, OTHER),
                series(Metric::GrEngineActive, WELL),
            ]
        };
        let mut well = lost();
        well.push(series(Metric::GrEngineActive, OTHER));
        let expected =
            Expected { labels: labels([("node", &self.host(OTHER))]), value: "1".to_owned() };
        Scenario::new(well, "no profiling metric", lost(), expected)
    }

    fn idle(&self) -> Scenario {
        let alert = StandardAlert::GpuAllocatedButIdle;
        let (workload, mut labels) = self.workload();
        let series = |metric, node: &str| {
            format!("{}{{{},{workload}}}", self.name(metric), self.first_gpu(node))
        };
        // Just below what the fleet asks for, and well above.
        let below = self.site.below(alert).map_or(0, |below| below.0);
        let bad = fleetc_schema::units::Ratio(below.saturating_sub(below / 5)).to_string();
        let with = |value: &str| {
            let mut all = self.nodes(alert, value, |node| series(Metric::SmActive, node));
            let steady = |series, value: &str| Self::steady(alert, self.site, series, value);
            all.push(steady(series(Metric::SmActive, WELL), "1"));
            // Something runs all the time, which is no proof of work.
            all.push(steady(series(Metric::GrEngineActive, OTHER), "1"));
            all
        };
        labels.insert("node", self.host(OTHER));
        Scenario::new(with("1"), "hardly active", with(&bad), Expected { labels, value: bad })
    }
}

/// How an alert is tried out.
struct Scenario {
    /// Both nodes are well.
    well: Vec<Series>,
    /// What is wrong, the series, and what is said of it.
    ill: Vec<(String, Vec<Series>, Expected)>,
    /// Other ways to be quiet.
    quiet: Vec<(&'static str, Vec<Series>)>,
}

impl Scenario {
    fn new(well: Vec<Series>, what: &str, ill: Vec<Series>, expected: Expected) -> Self {
        Self { well, ill: vec![(what.to_owned(), ill, expected)], quiet: Vec::new() }
    }
}

/// A template with its labels and value filled in, as Prometheus does it.
fn filled(text: &str, labels: &Labels, value: &str) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let (template, after) = after.split_once("}}").unwrap_or((after, ""));
        rest = after;
        match template.trim() {
            "$value" => filled.push_str(value),
            "$value | humanizePercentage" => {
                let share: Option<fleetc_schema::units::Ratio> = value.parse().ok();
                let percent = share.map_or(0, |share| u64::from(share.0));
                let digits = format!("{}.{:04}", percent / 10_000, percent % 10_000);
                filled.push_str(digits.trim_end_matches('0').trim_end_matches('.'));
                filled.push('%');
            }
            label => {
                let label = label.strip_prefix("$labels.").unwrap_or_default();
                filled.push_str(labels.get(label).map_or("", String::as_str));
            }
        }
    }
    filled.push_str(rest);
    filled
}
