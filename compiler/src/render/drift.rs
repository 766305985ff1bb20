//! The fleet against its nodes' reports, as text and as JSON (`fleetc/drift/v1`).

use std::collections::BTreeMap;
use std::fmt::Write;

use fleetc_schema::Hostlist;
use fleetc_targets::write::json;
use serde::Serialize;

use super::plural;
use crate::drift::{ClassDrift, Summary, Told};

/// The schema tag of the document.
pub const SCHEMA: &str = "fleetc/drift/v1";

/// The longest list of nodes in a line.
const LINE: usize = 72;

/// What `fleetc drift --format json` prints: the nodes of each class by what their reports say. Each
/// node is in one list of its class. Lists are hostlists.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(title = "Drift", deny_unknown_fields))]
struct Document<'a> {
    /// The schema tag.
    #[cfg_attr(feature = "json-schema", schemars(extend("const" = SCHEMA)))]
    schema: &'a str,
    /// The fleet.
    fleet: &'a str,
    /// True if every node conforms and nothing is missing, old, unknown or unreadable.
    holds: bool,
    /// Classes, in the order of the spec.
    classes: Vec<ClassDocument<'a>>,
    /// Nodes with more than one report; the first counts.
    twice: ToldDocument<'a>,
    /// Reports of nodes that the fleet has not.
    unknown: ToldDocument<'a>,
    /// Reports that cannot be read.
    unreadable: ToldDocument<'a>,
}

/// A class.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(title = "Class", deny_unknown_fields))]
struct ClassDocument<'a> {
    /// Its name.
    class: &'a str,
    /// How many nodes it has.
    nodes: u64,
    /// Nodes that conform.
    conforming: String,
    /// Nodes that do not.
    failing: String,
    /// Nodes that could not be judged.
    undecided: String,
    /// Nodes that were judged by another class, or by an older version of it.
    old: String,
    /// Nodes without a report.
    missing: String,
    /// True if missing nodes may be gone, since their pool is elastic.
    elastic: bool,
    /// Checks that fail or could not be decided, with their nodes.
    checks: BTreeMap<&'a str, String>,
}

/// Something that is counted; the first of it in words.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(title = "Told", deny_unknown_fields))]
struct ToldDocument<'a> {
    /// How many.
    count: u64,
    /// The first of them.
    first: &'a [String],
}

/// The JSON Schema of the document.
#[cfg(feature = "json-schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Document<'static>)
}

fn told(told: &Told) -> ToldDocument<'_> {
    ToldDocument { count: told.count, first: &told.first }
}

/// Renders it as JSON.
pub fn document(summary: &Summary) -> String {
    json::pretty(&Document {
        schema: SCHEMA,
        fleet: summary.fleet.as_str(),
        holds: summary.holds(),
        classes: summary.classes.iter().map(class_document).collect(),
        twice: told(&summary.twice),
        unknown: told(&summary.unknown),
        unreadable: told(&summary.unreadable),
    })
}

fn class_document(class: &ClassDrift) -> ClassDocument<'_> {
    ClassDocument {
        class: class.class.as_str(),
        nodes: class.nodes.len(),
        conforming: class.conforming.to_string(),
        failing: class.failing.to_string(),
        undecided: class.undecided.to_string(),
        old: class.old.to_string(),
        missing: class.missing.to_string(),
        elastic: class.elastic,
        checks: class
            .checks
            .iter()
            .map(|(check, nodes)| (check.as_str(), nodes.to_string()))
            .collect(),
    }
}

/// Renders it for people: a line a class, then who is not as it should be.
pub fn text(summary: &Summary) -> String {
    let mut out = String::new();
    let sum = |of: fn(&ClassDrift) -> u64| summary.classes.iter().map(of).sum::<u64>();
    let (nodes, conforming) = (sum(|class| class.nodes.len()), sum(|class| class.conforming.len()));
    line(
        &mut out,
        &format!("{}: {conforming} of {} conform", summary.fleet, plural(nodes, "node")),
    );
    line(&mut out, "");
    let heads = ["class", "nodes", "conform", "fail", "undecided", "old", "missing"];
    let mut rows = vec![heads.map(str::to_owned)];
    for class in &summary.classes {
        let missing = match class.elastic && !class.missing.is_empty() {
            true => format!("({})", class.missing.len()),
            false => class.missing.len().to_string(),
        };
        rows.push([
            class.class.to_string(),
            class.nodes.len().to_string(),
            class.conforming.len().to_string(),
            class.failing.len().to_string(),
            class.undecided.len().to_string(),
            class.old.len().to_string(),
            missing,
        ]);
    }
    table(&mut out, &rows);
    if summary.classes.iter().any(|class| class.elastic && !class.missing.is_empty()) {
        line(&mut out, "  (n): elastic nodes, which may be gone");
    }
    for class in &summary.classes {
        for (check, nodes) in &class.checks {
            // A check may fail on one node and be undecided on another.
            let fails = nodes.intersection(&class.failing);
            named(&mut out, "fails", &format!("{}  {check}", class.class), &fails);
            let open = nodes.intersection(&class.undecided);
            named(&mut out, "undecided", &format!("{}  {check}", class.class), &open);
        }
        named(&mut out, "old intent", class.class.as_str(), &class.old);
        if !class.elastic {
            named(&mut out, "missing", class.class.as_str(), &class.missing);
        }
    }
    for (what, told) in [
        ("reported twice", &summary.twice),
        ("not in the fleet", &summary.unknown),
        ("unreadable", &summary.unreadable),
    ] {
        if told.count == 0 {
            continue;
        }
        line(&mut out, "");
        line(&mut out, &format!("{what}: {}", told.count));
        for words in &told.first {
            line(&mut out, &format!("  {}", printable(words)));
        }
        let more = told.count.saturating_sub(told.first.len() as u64);
        if more > 0 {
            line(&mut out, &format!("  and {more} more"));
        }
    }
    out
}

fn named(out: &mut String, what: &str, of: &str, nodes: &Hostlist) {
    if nodes.is_empty() {
        return;
    }
    let mut names = nodes.to_string();
    if names.len() > LINE {
        // Cut between two names; the JSON form has all of them.
        let end = names.char_indices().take_while(|(at, _)| *at < LINE).filter(|(_, c)| *c == ',');
        let end = end.last().map_or(0, |(at, _)| at);
        names.truncate(end);
        names.push_str(",…");
    }
    let count = plural(nodes.len(), "node");
    line(out, &format!("  {what}  {of}  {count}: {names}"));
}

fn table(out: &mut String, rows: &[[String; 7]]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    for row in rows {
        let mut text = String::from(" ");
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            // Names to the left, numbers to the right.
            match column {
                0 => text.push_str(&format!(" {cell:width$}")),
                _ => text.push_str(&format!("  {cell:>width$}")),
            }
        }
        line(out, &text);
    }
}

/// A text from a report, fit for a terminal.
fn printable(text: &str) -> String {
    text.chars().flat_map(|c| {
        let harmful = c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match harmful {
            true => c.escape_unicode().collect::<Vec<char>>(),
            false => vec![c],
        }
    }).collect()
}

fn line(out: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}", text.trim_end());
}
