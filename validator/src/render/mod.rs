//! Renderers of a report.

mod condition;
mod json;
mod junit;
mod line;
mod prometheus;
mod text;

use std::borrow::Cow;

use crate::report::{Finding, Severity};

pub use condition::{Before, CONDITION, before, condition};
pub use json::json;
#[cfg(feature = "json-schema")]
pub use json::schema as report_schema;
pub use junit::junit;
pub(crate) use line::ascii;
pub use line::line;
pub use prometheus::prometheus;
pub use text::text;
pub(crate) use text::{mark, subject};

/// The word for a severity, in labels and attributes.
fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Blocking => "blocking",
        Severity::Warning => "warning",
        Severity::Undecided => "undecided",
        Severity::Info => "info",
    }
}

/// What a finding says, in one line: what was not read says so itself.
pub(crate) fn contrast(finding: &Finding) -> String {
    let Finding { expected, seen, .. } = finding;
    match finding.severity == Severity::Undecided {
        true => format!("wants {expected}; {seen}"),
        false => format!("wants {expected}, has {seen}"),
    }
}

/// A text from outside, fit for a terminal: no control character, nothing that turns its direction.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if harmful(c) { printable.extend(c.escape_unicode()) } else { printable.push(c) }
    }
    Cow::Owned(printable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_a_terminal_is_spelt_out() {
        assert_eq!(printable("7 × 1g.10gb"), "7 × 1g.10gb");
        assert_eq!(printable("a\u{1b}[2J\nb"), "a\\u{1b}[2J\\u{a}b");
        assert_eq!(printable("\u{202e}x"), "\\u{202e}x");
    }
}
