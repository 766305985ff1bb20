//! Diagnostics as workflow commands of GitHub Actions: each becomes an annotation of the pull
//! request, at its lines.
//!
//! The form of a command and its escapes are those of `@actions/core` (`packages/core/src` in
//! actions/toolkit). A runner drops the columns of an annotation over several lines, since the
//! checks API has none there (actions/runner, `ActionCommandManager.cs`), so they are left out.

use fleetc_schema::diag::{Diagnostic, Severity};

use super::located;
use crate::Checked;
use crate::letters::printable;

/// Renders every finding, one line each.
pub fn report(checked: &Checked) -> String {
    checked.diagnostics.iter().map(|found| command(checked, found)).collect()
}

fn command(checked: &Checked, found: &Diagnostic) -> String {
    let name = match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties: Vec<(&str, String)> = Vec::new();
    if let Some(at) = found.labels.first().and_then(|label| located(checked, label)) {
        properties.push(("file", at.file.to_owned()));
        properties.push(("line", at.start.line.to_string()));
        let one_line = at.start.line == at.end.line;
        if one_line {
            properties.push(("col", at.start.column.to_string()));
        }
        properties.push(("endLine", at.end.line.to_string()));
        if one_line {
            properties.push(("endColumn", at.end.column.to_string()));
        }
    }
    properties.push(("title", found.rule.name.to_owned()));
    let properties: Vec<String> =
        properties.iter().map(|(key, value)| format!("{key}={}", property(value))).collect();
    format!("::{name} {}::{}\n", properties.join(","), printable(&data(&message(checked, found))))
}

/// The title, what the places say, the notes and the help lines.
fn message(checked: &Checked, found: &Diagnostic) -> String {
    let mut lines = vec![found.title.clone()];
    for (index, label) in found.labels.iter().enumerate() {
        match located(checked, label) {
            _ if label.text.is_empty() => {}
            Some(at) if index > 0 => {
                let (line, column) = (at.start.line, at.start.column);
                lines.push(format!("{}:{line}:{column}: {}", at.file, label.text));
            }
            _ => lines.push(format!("here: {}", label.text)),
        }
    }
    lines.extend(found.notes.iter().map(|note| format!("note: {note}")));
    lines.extend(found.help.iter().map(|help| format!("help: {help}")));
    lines.join("\n")
}

/// Escapes what would end a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes what would end a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_command_or_a_property_is_escaped() {
        assert_eq!(data("100 %\r\na: b, c"), "100 %25%0D%0Aa: b, c");
        assert_eq!(property("a%b:c,d\ne"), "a%25b%3Ac%2Cd%0Ae");
    }
}
