//! `fleetc explain`: a rule, an item, a node, or a line of the output.

use std::io::Write;

use camino::Utf8Path;
use fleetc_schema::diag::rules;

use super::args::ExplainArgs;
use super::{CommandError, FAILED, OK, Outcome, Stream, locate};
use crate::Checked;
use crate::language::did_you_mean;
use crate::render::{self, explain};

/// Explains what is asked for; without anything, lists the rules.
pub fn run(
    root: Option<&Utf8Path>,
    args: &ExplainArgs,
    out: &mut dyn Write,
    err: &mut dyn Stream,
) -> Outcome {
    let words: Vec<&str> = args.what.iter().map(String::as_str).collect();
    let spec = |path: &str| locate::check_spec(root, Utf8Path::new(path));
    match words.as_slice() {
        [] | ["rule"] => list(out),
        ["rule", name] | [name] => rule(name, out),
        ["item", path, item] => answer(&spec(path)?, explain::item, item, out, err),
        ["node", path, node] => answer(&spec(path)?, explain::node, node, out, err),
        ["line", path, line] => answer(&spec(path)?, explain::line, line, out, err),
        [what, ..] => Err(CommandError::Other(format!(
            "`{what}` cannot be explained; try `explain rule NAME`, `explain item SPEC PATH`, \
             `explain node SPEC NAME` or `explain line SPEC FILE:LINE`"
        ))),
    }
}

fn list(out: &mut dyn Write) -> Outcome {
    for rule in rules::ALL {
        writeln!(out, "{:32} {:8} {}", rule.name, rule.severity.as_str(), rule.summary)?;
    }
    Ok(OK)
}

fn rule(name: &str, out: &mut dyn Write) -> Outcome {
    match rules::find(name) {
        Some(rule) => {
            write!(out, "{}", rule.page)?;
            Ok(OK)
        }
        None => {
            let near = did_you_mean(name, rules::ALL.iter().map(|rule| rule.name));
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`fleetc explain` lists them".to_owned(),
            };
            Err(CommandError::Other(format!("no rule is called `{name}`: {hint}")))
        }
    }
}

/// Prints an explanation of a fleet without errors; else its findings.
fn answer(
    checked: &Checked,
    explain: impl Fn(&Checked, &str) -> Result<String, String>,
    what: &str,
    out: &mut dyn Write,
    err: &mut dyn Stream,
) -> Outcome {
    if checked.intent().is_none() {
        write!(err, "{}", render::text::report(checked, err.width()))?;
        writeln!(err, "{}", render::counts(&checked.diagnostics))?;
        return Ok(FAILED);
    }
    match explain(checked, what) {
        Ok(text) => {
            write!(out, "{text}")?;
            Ok(OK)
        }
        Err(why) => Err(CommandError::Other(why)),
    }
}
