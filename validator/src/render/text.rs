//! The report as text. Its first line alone is fit to be the reason of a drained node.

use std::fmt::Write;

use super::printable;
use crate::report::{Finding, Report, Severity, Verdict};

/// The report as text, with a newline at its end.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let verdict = match report.verdict {
        Verdict::Conforms => "conforms to",
        Verdict::DoesNotConform => "does not conform to",
        Verdict::Undecided => "cannot be judged against",
    };
    let Report { node, fleet, class, .. } = report;
    let node = printable(node);
    line(&mut out, format_args!("{node}: {verdict} {fleet} (class {class})"));
    line(&mut out, format_args!(""));

    let check_width = width(report.findings.iter().map(|finding| finding.check.as_str()));
    let subjects: Vec<String> = report.findings.iter().map(subject).collect();
    let subject_width = width(subjects.iter().map(String::as_str));
    for (finding, subject) in report.findings.iter().zip(&subjects) {
        let (mark, check) = (mark(finding.severity), finding.check.as_str());
        let (contrast, place) = (contrast(finding), place(finding));
        let subject = match subject_width {
            0 => String::new(),
            _ => format!("{subject:subject_width$}  "),
        };
        let head = format_args!("  {mark} {check:check_width$}  {subject}{contrast}  {place}");
        line(&mut out, head);
        let indent = " ".repeat("  ✗ ".chars().count() + check_width + 2);
        for (number, action) in finding.actions.iter().enumerate() {
            let lead = if number == 0 { "do: " } else { "    " };
            line(&mut out, format_args!("{indent}{lead}{}", printable(action)));
        }
    }
    if report.passed > 0 {
        let more = if report.findings.is_empty() { "" } else { "more " };
        let checks = if report.passed == 1 { "check" } else { "checks" };
        line(&mut out, format_args!("  ✓ {} {more}{checks} passed", report.passed));
    }
    line(&mut out, format_args!(""));
    let count = |severity| report.count(severity);
    let (blocking, warning) = (count(Severity::Blocking), count(Severity::Warning));
    let undecided = count(Severity::Undecided);
    let summary =
        format_args!("  blocking: {blocking}   warning: {warning}   undecided: {undecided}");
    line(&mut out, summary);
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}

/// The mark of a severity.
pub(crate) fn mark(severity: Severity) -> char {
    match severity {
        Severity::Blocking => '✗',
        Severity::Warning => '!',
        Severity::Undecided => '?',
        Severity::Info => '·',
    }
}

/// The GPU that a finding is about; empty if it is about the node.
pub(crate) fn subject(finding: &Finding) -> String {
    finding.gpu.map_or_else(String::new, |gpu| format!("GPU {} {}", gpu.index, gpu.bus_id))
}

fn contrast(finding: &Finding) -> String {
    let (expected, seen) = (printable(&finding.expected), printable(&finding.seen));
    match finding.severity {
        Severity::Blocking | Severity::Warning | Severity::Info => {
            format!("wants {expected}, has {seen}")
        }
        // What was not read says so itself.
        Severity::Undecided => format!("wants {expected}; {seen}"),
    }
}

fn place(finding: &Finding) -> String {
    match &finding.spec {
        Some(place) => printable(&place.to_string()).into_owned(),
        None => printable(finding.path.as_str()).into_owned(),
    }
}

fn width<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}
