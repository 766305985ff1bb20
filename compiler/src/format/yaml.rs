//! What is safe to do to YAML: blanks at line ends, line ends and the end of the file. No printer of
//! YAML keeps comments and the author's choice of flow and block style, so the rest stays as it is.
//!
//! A tab between tokens is refused, as YAML forbids it in indentation and editors show it at will.
//! Inside scalars and comments nothing is touched but line ends.

use std::ops::Range;

use fleetc_schema::diag::{Diagnostic, Span, rules};
use granit_parser::{Event, Parser};

use super::Refused;

/// Cleans a text that parses.
///
/// # Errors
/// Tabs stand between tokens.
pub fn clean(text: &str) -> Result<String, Refused> {
    let found = tabs(text).ok_or(Refused::Bug)?;
    if !found.is_empty() {
        return Err(Refused::Syntax(found));
    }
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines = clean_lines(&text).ok_or(Refused::Bug)?;
    let ended = |text: &str| if text.is_empty() { String::new() } else { format!("{text}\n") };
    // Empty lines at the end belong to a block scalar that keeps them (`|+`).
    let candidates = [
        ended(lines.trim_end_matches([' ', '\n'])),
        ended(lines.strip_suffix('\n').unwrap_or(&lines)),
    ];
    candidates.into_iter().find(|clean| reads_alike(&text, clean)).ok_or(Refused::Bug)
}

/// The text without blanks at line ends that are outside of scalars.
fn clean_lines(text: &str) -> Option<String> {
    let scalars = ranges(text, |event| matches!(event, Event::Scalar(..)))?;
    let mut clean = String::new();
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        end += line.len();
        let inside = contain(&scalars, end - 1);
        match line.strip_suffix('\n') {
            Some(line) if !inside => {
                clean.push_str(line.trim_end_matches([' ', '\t']));
                clean.push('\n');
            }
            None if !inside => clean.push_str(line.trim_end_matches([' ', '\t'])),
            _ => clean.push_str(line),
        }
    }
    Some(clean)
}

/// A finding for every run of tabs between tokens, but for those at line ends.
fn tabs(text: &str) -> Option<Vec<Diagnostic>> {
    let free = ranges(text, |event| matches!(event, Event::Scalar(..) | Event::Comment(..)))?;
    let mut found = Vec::new();
    let mut last = None;
    for (at, _) in text.match_indices('\t') {
        let after = text.get(at..).unwrap_or_default().trim_start_matches([' ', '\t']);
        let at_line_end = after.is_empty() || after.starts_with(['\r', '\n']);
        let goes_on = last == Some(at);
        last = Some(at + 1);
        if at_line_end || goes_on || contain(&free, at) {
            continue;
        }
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let here = Span { file: 0, start: number(at), end: number(at + 1) };
        let finding = Diagnostic::new(&rules::SPEC_SYNTAX, "a tab stands between the words");
        found.push(finding.at(here, "a tab").help("use blanks"));
    }
    Some(found)
}

/// Bytes of the events that are asked for, in order; none if the text does not parse.
fn ranges(text: &str, wanted: fn(&Event<'_>) -> bool) -> Option<Vec<Range<usize>>> {
    let events = Parser::new_from_str(text).collect::<Result<Vec<_>, _>>().ok()?;
    let wanted = events.iter().filter(|(event, _)| wanted(event));
    let mut ranges: Vec<Range<usize>> = wanted.filter_map(|(_, span)| span.byte_range()).collect();
    ranges.sort_by_key(|range| range.start);
    Some(ranges)
}

/// True if the byte is in one of the ranges, which are sorted and apart.
fn contain(ranges: &[Range<usize>], at: usize) -> bool {
    let after = ranges.partition_point(|range| range.start <= at);
    let last = after.checked_sub(1).and_then(|index| ranges.get(index));
    last.is_some_and(|range| range.contains(&at))
}

/// True if both texts give the same events, comments included.
fn reads_alike(a: &str, b: &str) -> bool {
    let events = |text| Parser::new_from_str(text).collect::<Result<Vec<_>, _>>();
    let (Ok(a), Ok(b)) = (events(a), events(b)) else { return false };
    let alike = |a: &Event<'_>, b: &Event<'_>| match (a, b) {
        (Event::Comment(a, _), Event::Comment(b, _)) => a.trim_end() == b.trim_end(),
        _ => a == b,
    };
    a.len() == b.len() && a.iter().zip(&b).all(|((a, _), (b, _))| alike(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::format;
    use crate::source::Form;
    use proptest::prelude::*;

    #[test]
    fn blanks_and_line_ends_go_where_they_mean_nothing() {
        let text = "# a  \r\nrack: \r\n  r1: {nodes: x}  # b \r\n\r\n\r\n";
        assert_eq!(clean(text).unwrap(), "# a\nrack:\n  r1: {nodes: x}  # b\n");
        assert_eq!(clean("").unwrap(), "");
        assert_eq!(clean("\n\n").unwrap(), "");
        assert_eq!(clean("a: 1").unwrap(), "a: 1\n");
    }

    #[test]
    fn scalars_keep_their_blanks() {
        for text in [
            "a: |\n  x  \n\n  y \nb: 1\n",
            "a: \"x\\ \n  y\"\n",
            "a: |+\n  x\n\n\n",
            "a: >-\n  x  \n   y\n",
        ] {
            assert_eq!(clean(text).unwrap(), text);
        }
        assert_eq!(clean("a: |\n  x\n\n\n").unwrap(), "a: |\n  x\n");
    }

    #[test]
    fn a_tab_between_words_is_refused_and_one_in_a_text_is_not() {
        assert!(matches!(clean("a:\t1\n"), Err(Refused::Syntax(found)) if found.len() == 1));
        assert!(matches!(clean("a: {b:\t\t1,\tc: 2}\n"), Err(Refused::Syntax(f)) if f.len() == 2));
        assert_eq!(clean("a: \"\t\" # \t.\n").unwrap(), "a: \"\t\" # \t.\n");
        assert_eq!(clean("a: 1\t\n").unwrap(), "a: 1\n");
    }

    proptest! {
        #[test]
        fn any_text_that_parses_is_cleaned_once(text in "([a-z]: |- |[|>][+-]?\n|[ \t\r\n]{1,3}|\"|#|[a-z]){0,20}") {
            if let Ok(once) = format(Form::Yaml, &text) {
                prop_assert_eq!(clean(&once).unwrap(), once);
            }
        }
    }
}
