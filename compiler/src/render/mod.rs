//! Renderers: diagnostics as text for people and as JSON, SARIF and annotations for tools; plans as
//! text and JSON.

mod crop;
pub mod drift;
pub mod entry;
pub mod explain;
pub mod github;
pub mod hardware;
pub mod json;
pub mod mig;
pub mod plan;
pub mod sarif;
pub mod summary;
pub mod text;

use fleetc_schema::diag::{Diagnostic, Label, Severity, Span};

use crate::Checked;
use crate::source::Position;

/// Where a label stands in its file.
pub(crate) struct Located<'a> {
    /// The file, relative to the root.
    pub file: &'a str,
    /// Its bytes.
    pub span: Span,
    /// Its first character.
    pub start: Position,
    /// The character after its last.
    pub end: Position,
}

/// Where a label stands; none if its item has no written ancestor.
pub(crate) fn located<'a>(checked: &'a Checked, label: &Label) -> Option<Located<'a>> {
    let span = checked.span(&label.place)?;
    let source = checked.sources.of(span)?;
    let (start, end) = (source.position(span.start), source.position(span.end));
    Some(Located { file: source.path.as_str(), span, start, end })
}

/// `1 error, 2 warnings`, or what there is of it.
pub fn counts(diagnostics: &[Diagnostic]) -> String {
    let count = |severity| diagnostics.iter().filter(|found| found.severity == severity).count();
    let parts: Vec<String> = [Severity::Error, Severity::Warning, Severity::Note]
        .into_iter()
        .filter_map(|severity| match count(severity) {
            0 => None,
            1 => Some(format!("1 {severity}")),
            many => Some(format!("{many} {severity}s")),
        })
        .collect();
    parts.join(", ")
}

/// `1 node`, `2 nodes`.
pub(crate) fn plural(count: u64, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}
