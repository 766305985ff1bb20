//! Renderers of a report.

mod json;
mod text;

use std::borrow::Cow;

pub use json::{REPORT_SCHEMA, json};
pub use text::text;

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
