//! Diagnostics as JSON: `fleetc/diagnostics/v1`.

use fleetc_schema::diag::{Diagnostic, Place, Severity};
use serde::Serialize;

use super::located;
use crate::Checked;

/// The schema tag of the document.
pub const SCHEMA: &str = "fleetc/diagnostics/v1";

/// What `fleetc check --format json` prints: every finding about a spec, by place.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(title = "Diagnostics", deny_unknown_fields))]
struct Document<'a> {
    /// The schema tag.
    #[cfg_attr(feature = "json-schema", schemars(extend("const" = SCHEMA)))]
    schema: &'a str,
    /// How many findings are errors: with none, the spec compiles.
    errors: usize,
    /// How many are warnings.
    warnings: usize,
    /// How many are notes.
    notes: usize,
    /// The findings.
    diagnostics: Vec<Finding<'a>>,
}

/// One finding.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
struct Finding<'a> {
    /// The rule, `family/name`; `fleetc explain` prints its page.
    rule: &'a str,
    /// How bad it is.
    #[cfg_attr(feature = "json-schema", schemars(extend("enum" = ["error", "warning", "note"])))]
    severity: &'a str,
    /// What is wrong, in one line.
    title: &'a str,
    /// Where. The first is the place whose edit mends it.
    labels: Vec<Label<'a>>,
    /// Why, or the numbers behind it; a note may hold several lines.
    notes: &'a [String],
    /// How to mend it.
    help: &'a [String],
}

/// A place: lines and columns from 1, columns in characters, bytes from 0.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
struct Label<'a> {
    /// True for the first place.
    primary: bool,
    /// What there is to say about it; may be empty.
    text: &'a str,
    /// The path of the item that it is about, if the rule names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'a str>,
    /// The file, relative to the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(flatten)]
    range: Option<Range>,
}

/// The part of the file.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
struct Range {
    /// Line of its first character.
    line: u32,
    /// Column of its first character.
    column: u32,
    /// Line of the character after its last.
    end_line: u32,
    /// Column of the character after its last.
    end_column: u32,
    /// Its first byte.
    start: u32,
    /// The byte after its last.
    end: u32,
}

/// The JSON Schema of the document.
#[cfg(feature = "json-schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Document<'static>)
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
        let located = located(checked, label);
        let range = located.as_ref().map(|at| Range {
            line: at.start.line,
            column: at.start.column,
            end_line: at.end.line,
            end_column: at.end.column,
            start: at.span.start,
            end: at.span.end,
        });
        Label {
            primary: index == 0,
            text: &label.text,
            item: match &label.place {
                Place::Item(path) => Some(path.as_str()),
                Place::Span(_) => None,
            },
            file: located.map(|at| at.file),
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
