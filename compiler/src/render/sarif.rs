//! Diagnostics as SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format), for code
//! scanning.
//!
//! One run, whose rules are those that fired, each with its page. Files are relative to the root
//! (`%SRCROOT%`), columns count characters. A fingerprint holds no line and no value, so that a
//! finding stays the same finding when lines move.

use std::collections::BTreeMap;

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, Label, Place, Rule, Severity};
use serde::Serialize;

use super::located;
use crate::Checked;
use crate::output::sha256;

/// The identifier of the schema, as OASIS publishes it.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// Stands for the root in every location.
const ROOT: &str = "%SRCROOT%";

#[derive(Serialize)]
struct Log<'a> {
    #[serde(rename = "$schema")]
    schema: &'a str,
    version: &'a str,
    runs: [Run<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    tool: Tool<'a>,
    original_uri_base_ids: BTreeMap<&'a str, Described>,
    column_kind: &'a str,
    results: Vec<SarifResult<'a>>,
}

#[derive(Serialize)]
struct Described {
    description: Text,
}

#[derive(Serialize)]
struct Tool<'a> {
    driver: Driver<'a>,
}

#[derive(Serialize)]
struct Driver<'a> {
    name: &'a str,
    version: &'a str,
    rules: Vec<RuleEntry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleEntry<'a> {
    id: &'a str,
    short_description: Text,
    help: Page<'a>,
    default_configuration: Configuration<'a>,
}

#[derive(Serialize)]
struct Page<'a> {
    text: &'a str,
    markdown: &'a str,
}

#[derive(Serialize)]
struct Configuration<'a> {
    level: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult<'a> {
    rule_id: &'a str,
    rule_index: usize,
    level: &'a str,
    message: Text,
    locations: Vec<Location<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location<'a>>,
    partial_fingerprints: BTreeMap<&'a str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    physical_location: Option<PhysicalLocation<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalLocation<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Text>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation<'a> {
    artifact_location: ArtifactLocation<'a>,
    region: Region,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactLocation<'a> {
    uri: String,
    uri_base_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    start_column: u32,
    end_line: u32,
    end_column: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation<'a> {
    fully_qualified_name: &'a str,
}

#[derive(Serialize)]
struct Text {
    text: String,
}

/// Renders every finding.
pub fn report(checked: &Checked) -> String {
    let mut rules: Vec<&'static Rule> = Vec::new();
    let mut seen = BTreeMap::new();
    let mut results = Vec::new();
    for found in &checked.diagnostics {
        let known = rules.iter().position(|rule| rule.name == found.rule.name);
        let rule_index = known.unwrap_or_else(|| {
            rules.push(found.rule);
            rules.len() - 1
        });
        results.push(result(checked, found, rule_index, &mut seen));
    }
    let root = "the root of the spec, above which nothing is read".to_owned();
    let root = Described { description: Text { text: root } };
    let driver = Driver {
        name: "fleetc",
        version: env!("CARGO_PKG_VERSION"),
        rules: rules.into_iter().map(entry).collect(),
    };
    let run = Run {
        tool: Tool { driver },
        original_uri_base_ids: BTreeMap::from([(ROOT, root)]),
        column_kind: "unicodeCodePoints",
        results,
    };
    fleetc_targets::write::json::pretty(&Log { schema: SCHEMA, version: "2.1.0", runs: [run] })
}

fn entry(rule: &'static Rule) -> RuleEntry<'static> {
    RuleEntry {
        id: rule.name,
        short_description: Text { text: rule.summary.to_owned() },
        help: Page { text: rule.page, markdown: rule.page },
        default_configuration: Configuration { level: level(rule.severity) },
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn result<'a>(
    checked: &'a Checked,
    found: &'a Diagnostic,
    rule_index: usize,
    seen: &mut BTreeMap<String, usize>,
) -> SarifResult<'a> {
    let mut locations = found.labels.iter().map(|label| location(checked, label));
    let primary = locations.next().into_iter().collect();
    SarifResult {
        rule_id: found.rule.name,
        rule_index,
        level: level(found.severity),
        message: message(&text(found)),
        locations: primary,
        related_locations: locations.collect(),
        partial_fingerprints: BTreeMap::from([(
            "ruleAndItem/v1",
            fingerprint(checked, found, seen),
        )]),
    }
}

/// The title, then the notes and the help lines.
fn text(found: &Diagnostic) -> String {
    let notes = found.notes.iter().map(|note| format!("note: {note}"));
    let help = found.help.iter().map(|help| format!("help: {help}"));
    std::iter::once(found.title.clone()).chain(notes).chain(help).collect::<Vec<_>>().join("\n")
}

/// A message. Braces are doubled, since one alone starts a placeholder (section 3.11.5).
fn message(text: &str) -> Text {
    Text { text: text.replace('{', "{{").replace('}', "}}") }
}

fn location<'a>(checked: &'a Checked, label: &'a Label) -> Location<'a> {
    let physical_location = located(checked, label).map(|at| PhysicalLocation {
        artifact_location: ArtifactLocation { uri: uri(at.file), uri_base_id: ROOT },
        region: Region {
            start_line: at.start.line,
            start_column: at.start.column,
            end_line: at.end.line,
            end_column: at.end.column,
        },
    });
    let logical_locations = item(checked, label)
        .map(|path| LogicalLocation { fully_qualified_name: path.as_str() })
        .into_iter()
        .collect();
    let message = (!label.text.is_empty()).then(|| message(&label.text));
    Location { physical_location, logical_locations, message }
}

/// The item that a label is about: the one that the rule names, or the one that stands there.
fn item<'a>(checked: &'a Checked, label: &'a Label) -> Option<&'a ItemPath> {
    match &label.place {
        Place::Item(path) => Some(path),
        Place::Span(span) => checked.item_at(*span),
    }
}

/// A path as a relative URI reference (RFC 3986): what is not unreserved is percent-encoded, and a
/// first part with a colon would be read as a scheme, so the colon is too.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// A digest of the rule and of the item, or of the token if it is no item. Two findings of one
/// rule about equal tokens are told apart by their order.
fn fingerprint(
    checked: &Checked,
    found: &Diagnostic,
    seen: &mut BTreeMap<String, usize>,
) -> String {
    let subject = found.labels.first().map(|label| match (item(checked, label), &label.place) {
        (Some(path), _) => path.as_str(),
        (None, Place::Span(span)) => checked.sources.text(*span),
        (None, Place::Item(_)) => "",
    });
    let subject = subject.unwrap_or_default();
    let key = format!("{}\0{subject}", found.rule.name);
    let count = seen.entry(key.clone()).or_insert(0);
    *count += 1;
    sha256(format!("{key}\0{count}").as_bytes()).chars().take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_percent_encoded_part_by_part() {
        assert_eq!(uri("fleets/lab/fleet.kdl"), "fleets/lab/fleet.kdl");
        assert_eq!(uri("a b/é:#?[1].kdl"), "a%20b/%C3%A9%3A%23%3F%5B1%5D.kdl");
    }

    #[test]
    fn braces_of_a_message_are_no_placeholders() {
        assert_eq!(message("add `{ slice … }`").text, "add `{{ slice … }}`");
    }
}
