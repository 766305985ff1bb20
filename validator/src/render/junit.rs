//! The report as JUnit XML: one test case a finding, and one for all that holds.
//!
//! Source: the schema that Jenkins and GitLab read, `testsuites/testsuite/testcase` with `failure`,
//! `error` and `skipped`. A blocking finding is a failure, an undecided one an error, a warning or
//! a note is skipped with its text.

use std::fmt::Write;

use super::{contrast, word};
use crate::report::{Finding, Report, Severity};

/// The report as JUnit XML, with a newline at its end.
pub fn junit(report: &Report) -> String {
    let rest = u32::from(report.passed > 0);
    let tests = report.findings.len().saturating_add(usize::try_from(rest).unwrap_or_default());
    let counts = format!(
        "tests=\"{tests}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        report.count(Severity::Blocking),
        report.count(Severity::Undecided),
        report.count(Severity::Warning).saturating_add(report.count(Severity::Info)),
    );
    let (node, class) = (escaped(&report.node), escaped(&report.class.to_string()));
    let fleet = escaped(&report.fleet.to_string());
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    line(format!("<testsuites name=\"{fleet}\" {counts}>"));
    line(format!("  <testsuite name=\"{node}\" hostname=\"{node}\" {counts}>"));
    line("    <properties>".to_owned());
    let digest = &report.class_sha256;
    for (name, value) in [("fleet", &fleet), ("class", &class), ("class_sha256", digest)] {
        line(format!("      <property name=\"{name}\" value=\"{value}\"/>"));
    }
    line("    </properties>".to_owned());
    for (finding, name) in report.findings.iter().zip(names(&report.findings)) {
        let (check, name) = (escaped(finding.check.as_str()), escaped(&name));
        line(format!("    <testcase classname=\"{check}\" name=\"{name}\">"));
        line(verdict(finding));
        line("    </testcase>".to_owned());
    }
    if report.passed > 0 {
        // One name whatever their number: a name that changes is another test.
        line("    <testcase classname=\"all\" name=\"every other check\"/>".to_owned());
    }
    line("  </testsuite>".to_owned());
    line("</testsuites>".to_owned());
    out
}

/// What tells the findings of one check apart: the GPU, and a number where that is not enough.
fn names(findings: &[Finding]) -> Vec<String> {
    let base = |finding: &Finding| match finding.gpu {
        Some(gpu) => format!("GPU {}", gpu.bus_id),
        None => "node".to_owned(),
    };
    let mut names: Vec<(&str, String)> = Vec::with_capacity(findings.len());
    for finding in findings {
        let key = (finding.check.as_str(), base(finding));
        let mut name = key.clone();
        for number in 2.. {
            if !names.contains(&name) {
                break;
            }
            name = (key.0, format!("{} ({number})", key.1));
        }
        names.push(name);
    }
    names.into_iter().map(|(_, name)| name).collect()
}

fn verdict(finding: &Finding) -> String {
    let Finding { actions, path, spec, .. } = finding;
    let place = spec.as_ref().map_or_else(|| path.to_string(), ToString::to_string);
    let mut text = format!("spec: {place}\n");
    for action in actions {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "do: {action}");
    }
    let text = escaped(&text);
    let (tag, message) = (tag(finding.severity), escaped(&contrast(finding)));
    // A case that is skipped has no type in the schema.
    let kind = match tag == SKIPPED {
        true => String::new(),
        false => format!(" type=\"{}\"", word(finding.severity)),
    };
    format!("      <{tag}{kind} message=\"{message}\">{text}</{tag}>")
}

const SKIPPED: &str = "skipped";

fn tag(severity: Severity) -> &'static str {
    match severity {
        Severity::Blocking => "failure",
        Severity::Undecided => "error",
        Severity::Warning | Severity::Info => SKIPPED,
    }
}

/// A text in an attribute or between tags. Characters that XML 1.0 has not are left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => {}
            _ if c.is_control() => {}
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_stays_text() {
        assert_eq!(escaped("a<b>&\"c\"\n\u{1b}[2J×"), "a&lt;b&gt;&amp;&quot;c&quot;&#10;[2J×");
    }
}
