//! The report as one line of ASCII, for who cuts long messages short: node-problem-detector takes 80
//! bytes of them, and `sinfo -R` shows what fits a column.
//!
//! What matters most comes first: the check, the GPU, how many more there are, then what was seen.

use super::printable;
use crate::report::{Finding, Report, Severity, Verdict};

/// The report as one line of at most so many bytes, without a newline.
pub fn line(report: &Report, limit: usize) -> String {
    let first = |severity| report.findings.iter().find(|finding| finding.severity == severity);
    let text = match report.verdict {
        Verdict::Conforms => {
            let Report { fleet, class, .. } = report;
            let warnings = match first(Severity::Warning) {
                Some(finding) => format!("; warning: {}", short(report, finding)),
                None => String::new(),
            };
            format!("conforms to {fleet}, class {class}{warnings}")
        }
        Verdict::DoesNotConform => match first(Severity::Blocking) {
            Some(finding) => short(report, finding),
            None => "does not conform".to_owned(),
        },
        Verdict::Undecided => match first(Severity::Undecided) {
            Some(finding) => format!("undecided: {}", short(report, finding)),
            None => "undecided".to_owned(),
        },
    };
    ascii(&text, limit)
}

/// A finding with how many more of its severity there are.
fn short(report: &Report, finding: &Finding) -> String {
    let gpu = finding.gpu.map_or_else(String::new, |gpu| format!(" GPU {}", gpu.index));
    let more = match report.count(finding.severity).saturating_sub(1) {
        0 => String::new(),
        more => format!(" (+{more})"),
    };
    let Finding { check, expected, seen, .. } = finding;
    let seen = match finding.severity == Severity::Undecided {
        true => seen.clone(),
        false => format!("has {seen}, wants {expected}"),
    };
    format!("{}{gpu}{more}: {seen}", check.as_str())
}

/// A text in printable ASCII, of at most so many bytes. Quotes become single ones, since who reads the
/// line may put it between double ones.
pub(crate) fn ascii(text: &str, limit: usize) -> String {
    let text = printable(text);
    let plain = text.chars().map(|c| match c {
        '×' => 'x',
        '"' | '\'' | '`' | '’' => '\'',
        ' '..='~' => c,
        _ => '?',
    });
    let mut line: String = plain.collect();
    if line.len() > limit {
        line.truncate(limit.saturating_sub(3));
        line.push_str("...");
        line.truncate(limit);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_plain_and_as_long_as_allowed() {
        assert_eq!(ascii("7 × 1g.10gb", 80), "7 x 1g.10gb");
        assert_eq!(ascii("a \"b\" `c`\nü", 80), "a 'b' 'c'\\u{a}?");
        assert_eq!(ascii("abcdefgh", 8), "abcdefgh");
        assert_eq!(ascii("abcdefghi", 8), "abcde...");
        assert_eq!(ascii("abcdefghi", 2), "..");
        assert_eq!(ascii("××××", 4), "xxxx");
    }
}
