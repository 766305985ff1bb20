//! Diagnostics for a terminal: the lines of the spec with labels under the exact tokens.
//!
//! The drawing is miette's; what it draws is ours, so that the same findings go to JSON.

use std::fmt;

use fleetc_schema::diag::{Diagnostic, Severity, Span};
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};

use crate::Checked;
use crate::source::Source;

/// Width that lines are wrapped to.
const WIDTH: usize = 110;

/// Renders every finding, then a line that counts them.
pub fn report(checked: &Checked) -> String {
    let mut text = String::new();
    for found in &checked.diagnostics {
        text.push_str(&one(checked, found));
        text.push('\n');
    }
    text
}

/// Renders one finding.
pub fn one(checked: &Checked, found: &Diagnostic) -> String {
    let placed: Vec<(Span, &str)> = found
        .labels
        .iter()
        .filter_map(|label| Some((checked.span(&label.place)?, label.text.as_str())))
        .collect();
    let source = placed.first().and_then(|(span, _)| checked.sources.of(*span));
    let snippet = Snippet { found, labels: labels(&placed), source: source.map(named) };
    let mut theme = GraphicalTheme::unicode();
    let head = format!("{}[{}]:", found.severity, found.rule.name);
    match found.severity {
        Severity::Error => theme.characters.error = head,
        Severity::Warning => theme.characters.warning = head,
        Severity::Note => theme.characters.advice = head,
    }
    let handler = GraphicalReportHandler::new_themed(theme).with_width(WIDTH).with_links(false);
    let mut drawn = String::new();
    if handler.render_report(&mut drawn, &snippet).is_err() {
        drawn = format!("{}[{}]: {}\n", found.severity, found.rule.name, found.title);
    }
    // The drawing starts with an empty line and indents its title, which is the head of a finding.
    let drawn = drawn.trim_start_matches('\n');
    let drawn = drawn.strip_prefix("  ").unwrap_or(drawn);
    let mut text = String::new();
    for line in drawn.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let notes = found.notes.iter().map(|note| ("note", note));
    let help = found.help.iter().map(|help| ("help", help));
    for (word, body) in notes.chain(help) {
        let mut lines = body.lines();
        let first = lines.next().unwrap_or_default();
        text.push_str(&format!("  \u{1b}[36m{word}:\u{1b}[0m {first}\n"));
        for line in lines {
            text.push_str(&format!("        {line}\n"));
        }
    }
    text
}

fn named(source: &Source) -> NamedSource<String> {
    NamedSource::new(source.path.as_str(), source.text.clone())
}

/// Labels of the first label's file; an empty text draws a bare underline.
fn labels(placed: &[(Span, &str)]) -> Vec<LabeledSpan> {
    let file = placed.first().map(|(span, _)| span.file);
    placed
        .iter()
        .enumerate()
        .filter(|(_, (span, _))| Some(span.file) == file)
        .map(|(index, (span, text))| {
            let text = (!text.is_empty()).then(|| (*text).to_owned());
            let range = (span.start as usize, (span.end - span.start) as usize);
            match index {
                0 => LabeledSpan::new_primary_with_span(text, range),
                _ => LabeledSpan::new_with_span(text, range),
            }
        })
        .collect()
}

/// A finding as miette wants it.
#[derive(Debug)]
struct Snippet<'a> {
    found: &'a Diagnostic,
    labels: Vec<LabeledSpan>,
    source: Option<NamedSource<String>>,
}

impl fmt::Display for Snippet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.found.title)
    }
}

impl std::error::Error for Snippet<'_> {}

impl miette::Diagnostic for Snippet<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.found.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Note => miette::Severity::Advice,
        })
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}
