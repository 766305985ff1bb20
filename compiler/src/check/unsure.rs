//! `catalog/unsure-fact`: an error that would rest on a fact nobody is sure of.

use fleetc_schema::catalog::{Catalog, Confidence, Fact, Gpu};
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::name::GpuName;

/// The finding as it is, or as the warning that it is if the fact is unsure. `field` picks the fact
/// of the GPU, `what` names it, `command` reads it on a node.
pub fn weigh<T>(
    finding: Diagnostic,
    gpu: &GpuName,
    field: impl Fn(&Gpu) -> &Fact<T>,
    what: &str,
    command: &str,
) -> Diagnostic {
    let row = Catalog::embedded().ok().and_then(|catalog| catalog.gpu(gpu.as_str()));
    let unsure =
        row.is_some_and(|row| field(row).confidence_in(row.confidence) == Confidence::Unsure);
    if !unsure {
        return finding;
    }
    let rule = finding.rule.name;
    let weighed = Diagnostic { rule: &rules::CATALOG_UNSURE_FACT, ..finding };
    weighed
        .severity(rules::CATALOG_UNSURE_FACT.severity)
        .note(format!("this would be `{rule}`, but the catalog is not sure of {what} of {gpu}"))
        .help(format!("read it on a node: `{command}`, and state it in a `gpu` of the fleet's own"))
}
