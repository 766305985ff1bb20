//! Renderers: diagnostics and plans as text for people and as JSON for tools.

pub mod json;
pub mod plan;
pub mod summary;
pub mod text;

use fleetc_schema::diag::{Diagnostic, Severity};

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
