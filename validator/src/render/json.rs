//! The report as JSON, one document.

use serde::Serialize;

use crate::report::Report;

/// The schema tag of a report.
pub const REPORT_SCHEMA: &str = "fleetc/report/v1";

#[derive(Serialize)]
struct Document<'a> {
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
