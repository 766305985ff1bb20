//! `fleetc check`.

use std::io::Write;

use camino::Utf8Path;

use super::args::{CheckArgs, FindingsFormat};
use super::{FAILED, OK, Outcome, Stream, locate};
use crate::render;

/// Reports everything that is wrong with a spec.
pub fn run(
    root: Option<&Utf8Path>,
    args: &CheckArgs,
    out: &mut dyn Stream,
    err: &mut dyn Write,
) -> Outcome {
    let checked = locate::check_spec(root, &args.spec)?;
    let text = match args.format {
        FindingsFormat::Text => render::text::report(&checked, out.width()),
        FindingsFormat::Json => render::json::report(&checked),
        FindingsFormat::Sarif => render::sarif::report(&checked),
        FindingsFormat::Github => render::github::report(&checked),
    };
    write!(out, "{text}")?;
    // These are read by people, who also want to know that there is nothing to read.
    if matches!(args.format, FindingsFormat::Text | FindingsFormat::Github) {
        match checked.diagnostics.is_empty() {
            true => writeln!(err, "{}: no finding", args.spec)?,
            false => writeln!(err, "{}: {}", args.spec, render::counts(&checked.diagnostics))?,
        }
    }
    Ok(if checked.intent().is_some() { OK } else { FAILED })
}
