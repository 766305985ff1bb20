//! `fleetc explain`.

use std::io::Write;

use fleetc_schema::diag::rules;

use super::args::ExplainArgs;
use super::{CommandError, OK, Outcome};
use crate::language::did_you_mean;

/// Explains a rule, or lists them.
pub fn run(args: &ExplainArgs, out: &mut dyn Write) -> Outcome {
    let words: Vec<&str> = args.what.iter().map(String::as_str).collect();
    let name = match words.as_slice() {
        [] | ["rule"] => {
            for rule in rules::ALL {
                writeln!(out, "{:26} {:8} {}", rule.name, rule.severity.as_str(), rule.summary)?;
            }
            return Ok(OK);
        }
        ["rule", name] | [name] => *name,
        [what, ..] => {
            return Err(CommandError::Other(format!(
                "`{what}` cannot be explained; try `explain rule NAME`"
            )));
        }
    };
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
