//! What is generated and committed: JSON Schemas of what is read and written, and the language
//! reference.

use std::io;

use fleetc::language::{json_schema, kinds, reference};
use fleetc::syntax::{Node, kdl};
use fleetc_schema::intent::{ClassDocument, Index, IntentDocument, Override, SourceLine};
use fleetc_targets::write::json;

/// Path of the language reference.
pub const LANGUAGE_PAGE: &str = "docs/language.md";

/// Path of the page about inventories.
pub const INVENTORY_PAGE: &str = "docs/inventory.md";

/// Path of the page about the checks of the validator.
pub const CHECKS_PAGE: &str = "docs/checks.md";

/// Specs that the language reference takes its examples from, best first; a folder is all its files.
pub const EXAMPLES: &[&str] =
    &["fleets/lab/fleet.kdl", "fleets/northwind", "tests/src/examples.kdl"];

/// Every schema with its file name under `schema/json/`.
pub fn all() -> Vec<(String, String)> {
    let file = |name: &str, schema: schemars::Schema| {
        (format!("{name}.schema.json"), json::pretty(&schema))
    };
    let spec = json::pretty(&json_schema::schema(kinds::Spec::kind()));
    vec![
        ("spec.schema.json".to_owned(), spec),
        file("intent", schemars::schema_for!(IntentDocument<'static>)),
        file("index", schemars::schema_for!(Index)),
        file("class", schemars::schema_for!(ClassDocument<'static>)),
        file("override", schemars::schema_for!(Override)),
        file("source-line", schemars::schema_for!(SourceLine)),
        file("diagnostics", fleetc::render::json::schema()),
        file("plan", fleetc::render::plan::schema()),
        file("drift", fleetc::render::drift::schema()),
        file("report", fleetc_validate::render::report_schema()),
        file("fix", fleetc_validate::fix::schema()),
    ]
}

/// The page about the checks of the validator.
pub fn checks_page() -> String {
    fleetc_validate::compare::page()
}

/// The language reference.
///
/// # Errors
/// A spec that it takes examples from cannot be read.
pub fn language_page() -> io::Result<String> {
    let mut nodes: Vec<Node> = Vec::new();
    for path in EXAMPLES {
        let path = crate::repository().join(path);
        let texts: Vec<String> = match path.is_dir() {
            true => {
                let files = crate::folder(&path)?.into_iter();
                files.filter(|(name, _)| name.ends_with(".kdl")).map(|(_, text)| text).collect()
            }
            false => vec![std::fs::read_to_string(path)?],
        };
        for text in texts {
            nodes.extend(kdl::parse(0, &text, &mut Vec::new()));
        }
    }
    Ok(reference::page(kinds::Spec::kind(), &nodes))
}
