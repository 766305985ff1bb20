//! Diagnostics for a terminal: the lines of the spec with labels under the exact tokens.
//!
//! The drawing of lines is miette's; what it draws is ours, so that the same findings go to JSON.
//! Colours are ANSI codes, which the streams of the command line take out where they do not belong.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use fleetc_schema::diag::{Diagnostic, Severity, Span};
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents,
    SourceCode, SourceSpan, SpanContents,
};

use super::crop::{Cropped, cropped};
use crate::Checked;
use crate::letters::{drawable, printable};
use crate::source::Source;

/// How wide text may be, in columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width(usize);

impl Width {
    /// Below this, lines break so often that nothing can be read.
    const LEAST: usize = 60;

    /// The width of a terminal with so many columns; without a terminal, the default.
    pub fn of(columns: Option<usize>) -> Self {
        columns.map_or_else(Self::default, |columns| Self(columns.max(Self::LEAST)))
    }
}

impl Default for Width {
    fn default() -> Self {
        Self(110)
    }
}

/// Labels further apart than so many lines are drawn apart.
const FAR: u32 = 6;

/// Renders every finding, an empty line after each.
pub fn report(checked: &Checked, width: Width) -> String {
    let mut text = String::new();
    for found in &checked.diagnostics {
        text.push_str(&one(checked, found, width));
        text.push('\n');
    }
    text
}

/// Renders one finding: its title, the lines of each file that it is about, notes and help.
pub fn one(checked: &Checked, found: &Diagnostic, width: Width) -> String {
    let mut text = title(found, width);
    for (file, labels) in by_file(checked, found) {
        if let Some(source) = checked.sources.of(Span { file, start: 0, end: 0 }) {
            for labels in by_distance(source, labels) {
                text.push_str(&snippet(source, &labels, width));
            }
        }
    }
    text + &notes(found, width)
}

/// Renders a finding about a fleet whose files are not at hand.
pub fn bare(found: &Diagnostic, width: Width) -> String {
    title(found, width) + &notes(found, width)
}

fn title(found: &Diagnostic, width: Width) -> String {
    let (word, colour) = match found.severity {
        Severity::Error => ("error", 31),
        Severity::Warning => ("warning", 33),
        Severity::Note => ("note", 36),
    };
    let head = format!("{word}[{}]:", found.rule.name);
    let wrapped = wrapped(&printable(&found.title), width, head.chars().count() + 1, 2);
    format!("\u{1b}[{colour}m{head}\u{1b}[0m {wrapped}")
}

fn notes(found: &Diagnostic, width: Width) -> String {
    let mut text = String::new();
    let notes = found.notes.iter().map(|note| ("note", note));
    let help = found.help.iter().map(|help| ("help", help));
    for (word, body) in notes.chain(help) {
        text.push_str(&format!("  \u{1b}[36m{word}:\u{1b}[0m "));
        for (number, line) in printable(body).lines().enumerate() {
            if number > 0 {
                text.push_str("        ");
            }
            text.push_str(&wrapped(line, width, 8, 8));
        }
    }
    text
}

/// A label with its place.
struct Placed<'a> {
    span: Span,
    text: &'a str,
    primary: bool,
}

/// The labels of a finding by file: that of the first label first.
fn by_file<'a>(checked: &Checked, found: &'a Diagnostic) -> Vec<(u32, Vec<Placed<'a>>)> {
    let mut files: Vec<(u32, Vec<Placed<'a>>)> = Vec::new();
    for (index, label) in found.labels.iter().enumerate() {
        let Some(span) = checked.span(&label.place) else { continue };
        let placed = Placed { span, text: &label.text, primary: index == 0 };
        match files.iter_mut().find(|(file, _)| *file == span.file) {
            Some((_, labels)) => labels.push(placed),
            None => files.push((span.file, vec![placed])),
        }
    }
    files
}

/// Labels that stand near each other, so that what is between distant ones is not drawn: first those
/// near the first label, then the others from above down.
fn by_distance<'a>(source: &Source, labels: Vec<Placed<'a>>) -> Vec<Vec<Placed<'a>>> {
    let Some(first) = labels.first().map(|label| label.span) else { return Vec::new() };
    let mut sorted = labels;
    // Labels of one place keep their order.
    sorted.sort_by_key(|label| label.span.start);
    let mut groups: Vec<(u32, Vec<Placed<'a>>)> = Vec::new();
    for label in sorted {
        let line = |byte: u32| source.position(byte).line;
        let (from, to) = (line(label.span.start), line(label.span.end));
        match groups.last_mut() {
            Some((last, group)) if from <= *last + FAR => {
                *last = to.max(*last);
                group.push(label);
            }
            _ => groups.push((to, vec![label])),
        }
    }
    groups
        .sort_by_key(|(_, group)| !group.iter().any(|label| label.primary && label.span == first));
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The lines of one file with labels under them.
fn snippet(source: &Source, labels: &[Placed<'_>], width: Width) -> String {
    let spans: Vec<Span> = labels.iter().map(|label| label.span).collect();
    let name = printable(source.path.as_str());
    let (source_code, ranges, columns) = match cropped(source, &spans) {
        Some(Cropped { text, labels, columns }) => {
            let text = drawable(&text).into_owned();
            (Lines { name: name.to_string(), text, start: 0, first: 0 }, labels, columns)
        }
        None => {
            let range = |span: &Span| span.start as usize..span.end as usize;
            let ranges: Vec<Range<usize>> = spans.iter().map(range).collect();
            let from = ranges.iter().map(|range| range.start).min().unwrap_or_default();
            let to = ranges.iter().map(|range| range.end).max().unwrap_or_default();
            // A file that is large is not read from its start.
            let (window, first) = source.around(from..to, 2);
            let text = source.text.get(window.clone()).unwrap_or_default();
            let text = drawable(text).into_owned();
            let lines = Lines { name: name.to_string(), text, start: window.start, first };
            (lines, ranges, BTreeMap::new())
        }
    };
    let labeled = |(label, range): (&Placed<'_>, Range<usize>)| {
        let cut = columns.get(&source.position(label.span.start).line).copied().unwrap_or(0);
        labeled(source, label, range, cut, width)
    };
    let snippet =
        Snippet { labels: labels.iter().zip(ranges).map(labeled).collect(), source: source_code };
    let theme = GraphicalTheme::unicode();
    let corner = theme.characters.ltop;
    let handler = GraphicalReportHandler::new_themed(theme).with_width(width.0).with_links(false);
    let mut drawn = String::new();
    if handler.render_report(&mut drawn, &snippet).is_err() {
        return String::new();
    }
    // What stands above the box is the title, which is ours.
    let mut text = String::new();
    for line in drawn.lines().skip_while(|line| !line.contains(corner)) {
        match line.contains(corner) {
            true => text.push_str(&with_column(line, &name, source, labels)),
            false => text.push_str(line.trim_end()),
        }
        text.push('\n');
    }
    text
}

/// The head of a box, `[fleet.kdl:1:79]`, with the column in characters of the whole line: miette
/// counts the bytes of what it draws.
fn with_column(head: &str, name: &str, source: &Source, labels: &[Placed<'_>]) -> String {
    let mark = format!("{name}:");
    let Some((before, rest)) = head.split_once(&mark) else { return head.to_owned() };
    let end = rest.find(|c: char| c != ':' && !c.is_ascii_digit()).unwrap_or(rest.len());
    let (numbers, after) = rest.split_at(end);
    let line = numbers.split_once(':').and_then(|(line, _)| line.parse::<u32>().ok());
    let start = |label: &Placed<'_>| source.position(label.span.start);
    let here = |label: &&Placed<'_>| Some(start(label).line) == line;
    let primary = labels.iter().filter(here).find(|label| label.primary);
    match primary.or_else(|| labels.iter().find(here)).map(start) {
        Some(start) => format!("{before}{mark}{}:{}{after}", start.line, start.column),
        None => head.to_owned(),
    }
}

/// An empty text draws a bare underline. So many columns of its line are not drawn.
fn labeled(
    source: &Source,
    label: &Placed<'_>,
    range: Range<usize>,
    cut: u32,
    width: Width,
) -> LabeledSpan {
    let Span { start, end, .. } = label.span;
    let (from, to) = (source.position(start), source.position(end));
    // The text hangs from the middle of what is underlined, right of the line numbers.
    let length = if from.line == to.line { to.column.saturating_sub(from.column) } else { 0 };
    let middle = from.column.saturating_sub(cut) + length / 2;
    let before = middle as usize + "1000 │  ╰── ".chars().count();
    let room = width.0.saturating_sub(before).max(Width::LEAST / 2);
    let text = lines(&printable(label.text), room, room).join("\n");
    let text = (!text.is_empty()).then_some(text);
    let range = (range.start, range.len());
    match label.primary {
        true => LabeledSpan::new_primary_with_span(text, range),
        false => LabeledSpan::new_with_span(text, range),
    }
}

/// A line broken at blanks, with a newline at its end. So many columns of its first line are taken;
/// the others are indented, beyond the line's own indentation.
fn wrapped(line: &str, width: Width, taken: usize, indent: usize) -> String {
    let own = line.chars().take_while(|c| *c == ' ').count();
    let room = |taken: usize| width.0.saturating_sub(taken);
    let pad = format!("\n{}", " ".repeat(indent + own));
    lines(line, room(taken), room(indent + own)).join(&pad) + "\n"
}

/// A text in lines of so many columns, broken at blanks; one that fits stays as it is. A count and
/// what it counts (`2 × 3g.40gb`) stay together.
fn lines(text: &str, first: usize, rest: usize) -> Vec<String> {
    if text.chars().count() <= first {
        return vec![text.to_owned()];
    }
    let text = text.replace(" × ", "\u{a0}×\u{a0}");
    let body = text.trim_start_matches(' ');
    let mut lines: Vec<String> = Vec::new();
    let mut line = " ".repeat(text.len() - body.len());
    let mut empty = true;
    for word in body.split(' ') {
        let room = if lines.is_empty() { first } else { rest };
        if !empty && line.chars().count() + 1 + word.chars().count() > room {
            lines.push(line.trim_end().to_owned());
            line = String::new();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        // Blanks at a break are left out.
        empty &= word.is_empty() && !lines.is_empty();
        line.push_str(word);
    }
    lines.push(line);
    lines.iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

/// The lines of one file as miette wants them.
#[derive(Debug)]
struct Snippet {
    labels: Vec<LabeledSpan>,
    source: Lines,
}

impl fmt::Display for Snippet {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl std::error::Error for Snippet {}

impl miette::Diagnostic for Snippet {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

/// Lines of a file, with where they stand in it.
#[derive(Debug)]
struct Lines {
    name: String,
    text: String,
    /// The byte of the file that the text starts at.
    start: usize,
    /// The number of its first line, from 0.
    first: usize,
}

impl SourceCode for Lines {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let here = span.offset().checked_sub(self.start).ok_or(MietteError::OutOfBounds)?;
        let read = self.text.read_span(&(here, span.len()).into(), before, after)?;
        let shown = (read.span().offset() + self.start, read.span().len());
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            read.data(),
            shown.into(),
            read.line() + self.first,
            read.column(),
            read.line_count(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_never_taken_for_narrower_than_60_columns() {
        assert_eq!(Width::of(Some(20)), Width(60));
        assert_eq!(Width::of(Some(200)), Width(200));
        assert_eq!(Width::of(None), Width(110));
    }

    #[test]
    fn text_breaks_at_blanks_and_keeps_its_indentation() {
        let wrap = |line: &str| wrapped(line, Width(20), 8, 8);
        assert_eq!(wrap("one two"), "one two\n");
        assert_eq!(wrap("one two three four"), "one two\n        three four\n");
        assert_eq!(wrap("  a  1 two three"), "  a  1 two\n          three\n");
        assert_eq!(wrap("averyveryverylongword x"), "averyveryverylongword\n        x\n");
        assert_eq!(wrap("try again 1 × 1g.10gb"), "try again\n        1 × 1g.10gb\n");
        assert_eq!(wrap(""), "\n");
    }
}
