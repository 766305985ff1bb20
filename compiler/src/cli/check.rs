//! `fleetc check`.

use std::io::Write;

use camino::Utf8Path;

use super::args::{CheckArgs, Format};
use super::{FAILED, OK, Outcome, locate};
use crate::render;

/// Reports everything that is wrong with a spec.
pub fn run(
    root: Option<&Utf8Path>,
    args: &CheckArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Outcome {
    let checked = locate::check_spec(root, &args.spec)?;
    match args.format {
        Format::Json => write!(out, "{}", render::json::report(&checked))?,
        Format::Text => {
            write!(out, "{}", render::text::report(&checked))?;
            match checked.diagnostics.is_empty() {
                true => writeln!(err, "{}: no finding", args.spec)?,
                false => writeln!(err, "{}: {}", args.spec, render::counts(&checked.diagnostics))?,
            }
        }
    }
    Ok(if checked.intent().is_some() { OK } else { FAILED })
}
