//! Diagnostics as JSON: `fleetc/diagnostics/v1`.

use fleetc_schema::diag::{Diagnostic, Place, Severity};
use serde::Serialize;

use crate::Checked;

/// The schema tag of the document.
pub const SCHEMA: &str = "fleetc/diagnostics/v1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'a str,
    errors: usize,
    warnings: usize,
    notes: usize,
    diagnostics: Vec<Finding<'a>>,
}

#[derive(Serialize)]
struct Finding<'a> {
    rule: &'a str,
    severity: &'a str,
    title: &'a str,
    labels: Vec<Label<'a>>,
    notes: &'a [String],
    help: &'a [String],
}

/// A place: lines and columns from 1, columns in characters, bytes from 0.
#[derive(Serialize)]
struct Label<'a> {
    primary: bool,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(flatten)]
    range: Option<Range>,
}

#[derive(Serialize)]
struct Range {
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    start: u32,
    end: u32,
}

/// Renders every finding.
pub fn report(checked: &Checked) -> String {
    let count = |severity| checked.diagnostics.iter().filter(|f| f.severity == severity).count();
    let document = Document {
        schema: SCHEMA,
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
        notes: count(Severity::Note),
        diagnostics: checked.diagnostics.iter().map(|found| finding(checked, found)).collect(),
    };
    fleetc_targets::write::json::pretty(&document)
}

fn finding<'a>(checked: &'a Checked, found: &'a Diagnostic) -> Finding<'a> {
    let labels = found.labels.iter().enumerate().map(|(index, label)| {
        let span = checked.span(&label.place);
        let source = span.and_then(|span| checked.sources.of(span));
        let range = span.zip(source).map(|(span, source)| {
            let (start, end) = (source.position(span.start), source.position(span.end));
            Range {
                line: start.line,
                column: start.column,
                end_line: end.line,
                end_column: end.column,
                start: span.start,
                end: span.end,
            }
        });
        Label {
            primary: index == 0,
            text: &label.text,
            item: match &label.place {
                Place::Item(path) => Some(path.as_str()),
                Place::Span(_) => None,
            },
            file: source.map(|source| source.path.as_str()),
            range,
        }
    });
    Finding {
        rule: found.rule.name,
        severity: found.severity.as_str(),
        title: &found.title,
        labels: labels.collect(),
        notes: &found.notes,
        help: &found.help,
    }
}
