//! JSON Schemas of the documents that an output tree holds, as they are committed.

use fleetc_schema::intent::{ClassDocument, Index, IntentDocument, SourceLine};
use fleetc_targets::write::json;

/// Every schema with its file name under `schema/json/`.
pub fn all() -> Vec<(String, String)> {
    let file = |name: &str, schema: schemars::Schema| {
        (format!("{name}.schema.json"), json::pretty(&schema))
    };
    vec![
        file("intent", schemars::schema_for!(IntentDocument<'static>)),
        file("index", schemars::schema_for!(Index)),
        file("class", schemars::schema_for!(ClassDocument<'static>)),
        file("source-line", schemars::schema_for!(SourceLine)),
    ]
}
