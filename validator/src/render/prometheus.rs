//! The report as metrics, for the textfile collector of node_exporter.
//!
//! Labels are bounded by the GPUs of a node and the checks there are: no UUID, no text that was read.
//! A check that holds has no series of its own, so an alert on one ends when it is mended. The node is
//! the `instance` of who scrapes. Source: the Prometheus text exposition format, 0.0.4.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use super::word;
use crate::report::{Report, Severity, Verdict};

const PREFIX: &str = "fleetc_validate_";

/// Metrics of a run, with a newline at their end. Without a report the run itself failed; `now` is in
/// seconds since 1970.
pub fn prometheus(report: Option<&Report>, now: Option<u64>) -> String {
    let mut metrics = Metrics(String::new());
    let verdict = match report.map(|report| report.verdict) {
        Some(Verdict::Conforms) => "conforms",
        Some(Verdict::DoesNotConform) => "does_not_conform",
        Some(Verdict::Undecided) => "undecided",
        None => "error",
    };
    let all = ["conforms", "does_not_conform", "undecided", "error"];
    metrics.family(
        "verdict",
        "1 for what the last run came to, 0 for the others",
        all.map(|name| (vec![("verdict", name.to_owned())], u64::from(name == verdict))),
    );
    if let Some(report) = report {
        let labels = vec![
            ("fleet", report.fleet.to_string()),
            ("class", report.class.to_string()),
            ("class_sha256", report.class_sha256.clone()),
        ];
        metrics.family("intent_info", "What the node was judged by", [(labels, 1)]);
        let severities =
            [Severity::Blocking, Severity::Warning, Severity::Undecided, Severity::Info];
        metrics.family(
            "findings",
            "Findings of the last run, by severity",
            severities.map(|severity| {
                let count = u64::try_from(report.count(severity)).unwrap_or(u64::MAX);
                (vec![("severity", word(severity).to_owned())], count)
            }),
        );
        let mut findings: BTreeMap<(&str, Severity, String), u64> = BTreeMap::new();
        for finding in &report.findings {
            let gpu = finding.gpu.map_or_else(String::new, |gpu| gpu.bus_id.to_string());
            let key = (finding.check.as_str(), finding.severity, gpu);
            let count = findings.entry(key).or_default();
            *count = count.saturating_add(1);
        }
        let series = findings.into_iter().map(|((check, severity, gpu), count)| {
            let mut labels = vec![("check", check.to_owned())];
            labels.push(("severity", word(severity).to_owned()));
            if !gpu.is_empty() {
                labels.push(("gpu", gpu));
            }
            (labels, count)
        });
        metrics.family("finding", "Findings of a check, of a GPU or of the node", series);
        let passed = [(Vec::new(), u64::from(report.passed))];
        metrics.family(
            "passed_checks",
            "Checks that hold; one of each GPU counts once a GPU",
            passed,
        );
    }
    if let Some(now) = now {
        let help = "When the last run ended, in seconds since 1970";
        metrics.family("last_run_timestamp_seconds", help, [(Vec::new(), now)]);
    }
    metrics.0
}

struct Metrics(String);

type Labels = Vec<(&'static str, String)>;

impl Metrics {
    /// A metric with its series; nothing if there is none.
    fn family(&mut self, name: &str, help: &str, series: impl IntoIterator<Item = (Labels, u64)>) {
        let mut series = series.into_iter().peekable();
        if series.peek().is_none() {
            return;
        }
        self.line(format_args!("# HELP {PREFIX}{name} {help}."));
        self.line(format_args!("# TYPE {PREFIX}{name} gauge"));
        for (labels, value) in series {
            let labels: Vec<String> = labels.iter().map(label).collect();
            let labels = match labels.is_empty() {
                true => String::new(),
                false => format!("{{{}}}", labels.join(",")),
            };
            self.line(format_args!("{PREFIX}{name}{labels} {value}"));
        }
    }

    fn line(&mut self, text: impl Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{text}");
    }
}

fn label((name, value): &(&'static str, String)) -> String {
    let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}
