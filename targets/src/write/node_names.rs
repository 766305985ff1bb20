//! Node names as regular expressions: one for each range of a hostlist, never one for each node.
//!
//! The form is RE2, which node-feature-discovery reads: anchored on both sides, since it looks for a
//! match anywhere in a name.

use fleetc_schema::Hostlist;
use fleetc_schema::hostlist::Shape;

/// Patterns that match the names of a list, and no others.
pub fn patterns(nodes: &Hostlist) -> Vec<String> {
    let pattern = |(shape, lo, hi): (Shape<'_>, u64, u64)| {
        let number = match shape.digits {
            0 => String::new(),
            digits => {
                let (lo, hi) = (format!("{lo:0digits$}"), format!("{hi:0digits$}"));
                one_of(&between(lo.as_bytes(), hi.as_bytes()))
            }
        };
        format!("^{}{number}{}$", literal(shape.prefix), literal(shape.suffix))
    };
    nodes.ranges().map(pattern).collect()
}

/// Only dots mean something else: names hold letters, digits, `-`, `_` and `.`.
fn literal(text: &str) -> String {
    text.replace('.', "\\.")
}

fn one_of(patterns: &[String]) -> String {
    match patterns {
        [one] => one.clone(),
        several => format!("({})", several.join("|")),
    }
}

/// Patterns of the numbers from `lo` to `hi`, which have equally many digits.
fn between(lo: &[u8], hi: &[u8]) -> Vec<String> {
    let (Some((first, lo_rest)), Some((last, hi_rest))) = (lo.split_first(), hi.split_first())
    else {
        return vec![String::new()];
    };
    let under = |digit: u8, rest: Vec<String>| -> Vec<String> {
        rest.into_iter().map(|rest| char::from(digit).to_string() + &rest).collect()
    };
    if first == last {
        return under(*first, between(lo_rest, hi_rest));
    }
    let length = lo_rest.len();
    // The digits whose numbers are all within: the ends are, if nothing below or above is left out.
    let from_start = lo_rest.iter().all(|digit| *digit == b'0');
    let to_end = hi_rest.iter().all(|digit| *digit == b'9');
    let (from, to) =
        (if from_start { *first } else { first + 1 }, if to_end { *last } else { last - 1 });
    let mut patterns = Vec::new();
    if !from_start {
        patterns.extend(under(*first, between(lo_rest, &vec![b'9'; length])));
    }
    if from <= to {
        patterns.push(digit(from, to) + &any(length));
    }
    if !to_end {
        patterns.extend(under(*last, between(&vec![b'0'; length], hi_rest)));
    }
    patterns
}

fn digit(from: u8, to: u8) -> String {
    match from == to {
        true => char::from(from).to_string(),
        false => format!("[{}-{}]", char::from(from), char::from(to)),
    }
}

fn any(digits: usize) -> String {
    match digits {
        0 => String::new(),
        1 => "[0-9]".to_owned(),
        digits => format!("[0-9]{{{digits}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_one_pattern() {
        for (list, expected) in [
            ("inf[01-08]", &["^inf0[1-8]$"] as &[&str]),
            ("gb[001-036]", &["^gb(00[1-9]|0[1-2][0-9]|03[0-6])$"]),
            ("gpu[000-999]", &["^gpu[0-9][0-9]{2}$"]),
            ("n[10-29]", &["^n[1-2][0-9]$"]),
            ("n[0150-0250]", &["^n(01[5-9][0-9]|02[0-4][0-9]|0250)$"]),
            ("gpu007", &["^gpu007$"]),
            ("login", &["^login$"]),
            ("n7.example.com", &["^n7\\.example\\.com$"]),
            // Numbers without padding have a pattern for each length.
            ("n[8-11]", &["^n[8-9]$", "^n1[0-1]$"]),
        ] {
            let nodes: Hostlist = list.parse().unwrap();
            assert_eq!(patterns(&nodes), expected, "{list}");
        }
    }
}
