//! `fleetc convert`.

use std::io::Write;

use camino::Utf8Path;
use fleetc_schema::diag::Span;

use super::args::ConvertArgs;
use super::{CommandError, FAILED, OK, Outcome, Stream, locate, replace};
use crate::format::convert::convert;
use crate::render;
use crate::source::Form;

/// Writes a spec in the other form.
pub fn run(
    root: Option<&Utf8Path>,
    args: &ConvertArgs,
    out: &mut dyn Write,
    err: &mut dyn Stream,
) -> Outcome {
    let to = Form::from(args.to);
    if let Some(output) = &args.output
        && form_of(output).is_some_and(|form| form != to)
    {
        let why = format!("{output} does not end as {} does", name(to));
        return Err(CommandError::Other(why));
    }
    let checked = locate::check_spec(root, &args.spec)?;
    let width = err.width();
    write!(err, "{}", render::text::report(&checked, width))?;
    if checked.intent().is_none() {
        let counts = render::counts(&checked.diagnostics);
        writeln!(err, "{}: {counts}; nothing was written", args.spec)?;
        return Ok(FAILED);
    }
    let bug = |why: &str| Err(CommandError::Bug(format!("{}: {why}", args.spec)));
    let entry = Span { file: 0, start: 0, end: 0 };
    let Some(source) = checked.sources.of(entry) else { return bug("the spec has no file") };
    let Some(from) = form_of(&source.path) else { return bug("the spec has no form") };
    if from == to {
        let why = format!("{} is {} already; `fleetc fmt` puts it in style", args.spec, name(to));
        return Err(CommandError::Other(why));
    }
    let Ok(converted) = convert(from, &source.text) else {
        return bug("converted, it would say something else; nothing was written");
    };
    match &args.output {
        Some(output) => replace::file(output, &converted.text)?,
        None => write!(out, "{}", converted.text)?,
    }
    if converted.dropped > 0 {
        let comments = render::plural(u64::try_from(converted.dropped).unwrap_or(0), "comment");
        writeln!(err, "{}: {comments} dropped, for want of a place", args.spec)?;
    }
    Ok(OK)
}

fn form_of(path: &Utf8Path) -> Option<Form> {
    match path.extension() {
        Some("kdl") => Some(Form::Kdl),
        Some("yaml" | "yml") => Some(Form::Yaml),
        _ => None,
    }
}

fn name(form: Form) -> &'static str {
    match form {
        Form::Kdl => "KDL",
        Form::Yaml => "YAML",
    }
}
