//! A plan and what came of it, as text and as JSON.

use std::fmt::Write;

use serde::Serialize;

use super::{By, Outcome, Plan, Rest, Step, StepResult};
use crate::render::{contrast, mark, printable, subject};
use crate::report::Verdict;

/// The schema tag of what `fix` prints.
pub const FIX_SCHEMA: &str = "fleetc/fix/v1";

/// What `fleetc-validate fix --format json` prints: a plan, and what came of it if it was applied.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(title = "Fix", extend("unevaluatedProperties" = false)))]
struct Document<'a> {
    /// The schema tag.
    #[cfg_attr(feature = "json-schema", schemars(extend("const" = FIX_SCHEMA)))]
    schema: &'static str,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

/// What came of it as JSON, with a newline at its end.
///
/// # Errors
/// Only if it cannot be serialised, which would be a bug.
pub fn json(outcome: &Outcome) -> serde_json::Result<String> {
    let document = Document { schema: FIX_SCHEMA, outcome };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

/// The JSON Schema of it.
#[cfg(feature = "json-schema")]
pub fn schema() -> schemars::Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Document<'static>>()
}

/// What came of it as text, with a newline at its end. Why it was refused is not in it.
pub fn text(outcome: &Outcome) -> String {
    let Outcome { plan, refused, results, after } = outcome;
    let mut out = String::new();
    head(&mut out, plan);
    let results = results.as_deref().unwrap_or_default();
    let width = plan.steps.iter().map(|step| step.check.as_str().len()).max().unwrap_or(0);
    for (at, step) in plan.steps.iter().enumerate() {
        write_step(&mut out, (at + 1, width), step, results.get(at));
    }
    match after {
        Some(after) => {
            line(&mut out, format_args!(""));
            line(&mut out, format_args!("read again: {}", verdict(after)));
            let left = after.steps.len();
            if left > 0 {
                let steps = if left == 1 { "step is" } else { "steps are" };
                line(&mut out, format_args!("  {left} {steps} left: `fix` shows the plan"));
            }
            write_rest(&mut out, &after.rest);
        }
        None => {
            write_rest(&mut out, &plan.rest);
            if plan.to_take().next().is_some() && refused.is_empty() {
                line(&mut out, format_args!(""));
                line(
                    &mut out,
                    format_args!("nothing is done yet. On a node out of service, as root:"),
                );
                line(&mut out, format_args!("  the same with --apply {}", plan.digest));
            }
        }
    }
    if plan.steps.iter().any(|step| step.by == By::Nvml) && refused.is_empty() {
        line(&mut out, format_args!(""));
        line(
            &mut out,
            format_args!(
                "What NVML sets ends with a reboot, and limits with the driver: a unit at boot keeps it."
            ),
        );
    }
    out
}

fn head(out: &mut String, plan: &Plan) {
    let steps = match plan.steps.len() {
        0 => "nothing to mend here".to_owned(),
        1 => "1 step".to_owned(),
        steps => format!("{steps} steps"),
    };
    line(out, format_args!("{}: {}: {steps}", printable(&plan.node), verdict(plan)));
    line(out, format_args!(""));
}

fn verdict(plan: &Plan) -> String {
    let verdict = match plan.verdict {
        Verdict::Conforms => "conforms to",
        Verdict::DoesNotConform => "does not conform to",
        Verdict::Undecided => "cannot be judged against",
    };
    let Plan { fleet, class, .. } = plan;
    format!("{verdict} {fleet} (class {class})")
}

/// A step with its number; checks are padded to a width.
fn write_step(
    out: &mut String,
    (number, width): (usize, usize),
    step: &Step,
    result: Option<&StepResult>,
) {
    let Step { check, gpu, from, to, by, commands, setting: _ } = step;
    let (from, to) = (printable(from), printable(to));
    let by = match by {
        By::Nvml => "",
        By::Script => "  by the script",
        By::Hand => "  by hand",
    };
    let (index, bus_id) = (gpu.index, gpu.bus_id);
    let check = check.as_str();
    line(out, format_args!("  {number}  {check:width$}  GPU {index} {bus_id}  {from} → {to}{by}"));
    for command in commands {
        line(out, format_args!("       {}", printable(command)));
    }
    let result = match result {
        None | Some(StepResult::ByHand) => return,
        Some(StepResult::Done) => "done".to_owned(),
        Some(StepResult::NotSeen) => "set, and it does not read so".to_owned(),
        Some(StepResult::Failed(why)) => format!("failed: {}", printable(why)),
        Some(StepResult::NotTried) => "not tried, after the one that failed".to_owned(),
    };
    line(out, format_args!("       {result}"));
}

fn write_rest(out: &mut String, rest: &[Rest]) {
    if rest.is_empty() {
        return;
    }
    line(out, format_args!(""));
    line(out, format_args!("not mended here:"));
    for Rest { finding, why } in rest {
        let gpu = match subject(finding) {
            gpu if gpu.is_empty() => gpu,
            gpu => format!("  {gpu}"),
        };
        let (mark, check) = (mark(finding.severity), finding.check.as_str());
        line(out, format_args!("  {mark} {check}{gpu}  {}", printable(&contrast(finding))));
        if let Some(why) = why {
            line(out, format_args!("       {}", printable(why)));
        }
        for (number, action) in finding.actions.iter().enumerate() {
            let lead = if number == 0 { "do: " } else { "    " };
            line(out, format_args!("       {lead}{}", printable(action)));
        }
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}
