//! Lines that are too long to be drawn: of a file without line ends, what is around its labels.

use std::collections::BTreeMap;
use std::ops::Range;

use fleetc_schema::diag::Span;

use crate::source::Source;

/// The longest line that is drawn whole, in bytes. miette counts columns in 16 bits.
const LONGEST_LINE: usize = 2_000;

/// So many bytes before a label and after its start are kept of a longer one.
const AROUND: usize = 200;

/// The most lines of a label that are drawn.
const MOST_LINES: u32 = 40;

/// What stands for the rest of a line.
const REST: &str = "…";

/// A text to draw in place of a file's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cropped {
    /// The text: every line has its number, and lines that are not drawn are empty.
    pub text: String,
    /// The labels in it, in bytes.
    pub labels: Vec<Range<usize>>,
    /// By line, how many columns were cut off before what is kept.
    pub columns: BTreeMap<u32, u32>,
}

/// The file around these labels; none if it can be drawn as it is.
pub fn cropped(source: &Source, labels: &[Span]) -> Option<Cropped> {
    let lines = |span: &Span| {
        let (first, last) = (source.position(span.start).line, source.position(span.end).line);
        first..=last.min(first.saturating_add(MOST_LINES))
    };
    let mut drawn: BTreeMap<u32, Option<usize>> = BTreeMap::new();
    let mut too_large = false;
    for span in labels {
        let (from, to) = lines(span).into_inner();
        too_large |= source.position(span.end).line > to;
        for line in from.saturating_sub(1)..=to.saturating_add(1) {
            let start = (line == from).then_some(span.start as usize);
            let seen = drawn.entry(line).or_default();
            *seen = seen.or(start);
        }
    }
    too_large |= drawn.keys().any(|line| source.line(*line).len() > LONGEST_LINE);
    if !too_large {
        return None;
    }
    let mut text = String::new();
    let mut columns = BTreeMap::new();
    // Where each drawn part of the file stands in the new text.
    let mut parts: Vec<(Range<usize>, usize)> = Vec::new();
    for line in 1..=drawn.keys().next_back().copied().unwrap_or_default() {
        if let Some(start) = drawn.get(&line) {
            let whole = source.line(line);
            let kept = kept(&source.text, &whole, start.unwrap_or(whole.start));
            if kept.start > whole.start {
                text.push_str(REST);
                let before = source.text.get(whole.start..kept.start).unwrap_or_default();
                let count = before.chars().count().saturating_sub(1);
                columns.insert(line, u32::try_from(count).unwrap_or(u32::MAX));
            }
            parts.push((kept.clone(), text.len()));
            text.push_str(source.text.get(kept.clone()).unwrap_or_default());
            if kept.end < whole.end {
                text.push_str(REST);
            }
        }
        text.push('\n');
    }
    let place = |byte: u32| {
        let byte = byte as usize;
        let part = parts.iter().rev().find(|(kept, _)| kept.start <= byte).or(parts.first());
        part.map_or(0, |(kept, at)| at + byte.clamp(kept.start, kept.end) - kept.start)
    };
    let labels = labels.iter().map(|span| place(span.start)..place(span.end)).collect();
    Some(Cropped { text, labels, columns })
}

/// What is kept of a line whose label starts here.
fn kept(text: &str, line: &Range<usize>, start: usize) -> Range<usize> {
    if line.len() <= LONGEST_LINE {
        return line.clone();
    }
    let whole = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let from = whole(start.saturating_sub(AROUND)).max(line.start);
    from..whole((start + AROUND).min(line.end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Sources;

    #[test]
    fn a_long_line_is_cut_around_its_label() {
        let mut sources = Sources::default();
        let text = format!("a\n{}é\"x\"{}\nb\n", "é ".repeat(40_000), " é".repeat(40_000));
        let start = u32::try_from(text.find('"').unwrap()).unwrap();
        let span = Span { file: sources.add("a.kdl".into(), text), start, end: start + 3 };
        let source = sources.of(span).unwrap();
        let cropped = cropped(source, &[span]).unwrap();
        assert_eq!(cropped.text.get(cropped.labels[0].clone()), Some("\"x\""));
        assert!(cropped.text.len() < 3 * AROUND);
        let line = cropped.text.lines().nth(1).unwrap();
        let column = line.chars().position(|c| c == '"').unwrap() + 1;
        let columns = usize::try_from(cropped.columns[&2]).unwrap();
        assert_eq!(column + columns, source.position(start).column as usize);
        assert_eq!(
            (cropped.text.lines().next(), cropped.text.lines().nth(2)),
            (Some("a"), Some("b"))
        );
    }

    #[test]
    fn a_label_over_many_lines_is_cut_at_its_end() {
        let mut sources = Sources::default();
        let text = "x\n".repeat(1_000);
        let file = sources.add("a.kdl".into(), text);
        let span = Span { file, start: 4, end: 1_999 };
        let cropped = cropped(sources.of(span).unwrap(), &[span]).unwrap();
        assert!(cropped.text.lines().count() < 50);
        assert!(cropped.labels[0].end <= cropped.text.len());
    }

    #[test]
    fn what_can_be_drawn_is_left_alone() {
        let mut sources = Sources::default();
        let file = sources.add("a.kdl".into(), "pool \"a\"\n".into());
        let span = Span { file, start: 5, end: 8 };
        assert_eq!(cropped(sources.of(span).unwrap(), &[span]), None);
    }
}
