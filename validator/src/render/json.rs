//! The report as JSON, one document.

use fleetc_schema::intent::REPORT_SCHEMA;
use serde::Serialize;

use crate::report::Report;

/// What `fleetc-validate check --format json` prints: a node, compared with what its class says.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(title = "Report", extend("unevaluatedProperties" = false)))]
struct Document<'a> {
    /// The schema tag.
    #[cfg_attr(feature = "json-schema", schemars(extend("const" = REPORT_SCHEMA)))]
    schema: &'static str,
    #[serde(flatten)]
    report: &'a Report,
}

/// The report as JSON, with a newline at its end.
///
/// # Errors
/// Only if a report cannot be serialised, which would be a bug.
pub fn json(report: &Report) -> serde_json::Result<String> {
    let document = Document { schema: REPORT_SCHEMA, report };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

/// The JSON Schema of a report.
#[cfg(feature = "json-schema")]
pub fn schema() -> schemars::Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Document<'static>>()
}
