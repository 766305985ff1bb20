//! `fleetc compile`.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_schema::intent::Intent;
use fleetc_targets::{BUNDLES, OutputTree, TARGETS};

use super::args::CompileArgs;
use super::{FAILED, OK, Outcome, Stream, locate};
use crate::output::{self, Written};
use crate::render;

/// Writes the output tree of a spec, or says what of it is stale.
pub fn run(
    root: Option<&Utf8Path>,
    args: &CompileArgs,
    out: &mut dyn Write,
    err: &mut dyn Stream,
) -> Outcome {
    let checked = locate::check_spec(root, &args.spec)?;
    let width = err.width();
    write!(err, "{}", render::text::report(&checked, width))?;
    let (Some(intent), Some(tree)) = (checked.intent(), crate::compile(&checked)) else {
        let counts = render::counts(&checked.diagnostics);
        writeln!(err, "{}: {counts}; nothing was written", args.spec)?;
        return Ok(FAILED);
    };
    if args.check {
        let stale = output::stale(&args.output, &tree)?;
        return report_stale(&args.output, &stale, out);
    }
    let written = output::write(&args.output, &tree, args.force)?;
    if written.interrupted {
        writeln!(err, "{}: finished an earlier run that was interrupted", args.output)?;
    }
    write!(out, "{}", render::summary::fleet(intent))?;
    write!(out, "{}", counts(intent, &args.output, &tree, &written))?;
    write!(out, "{}", render::summary::unwritten(intent))?;
    Ok(OK)
}

fn report_stale(folder: &Utf8Path, stale: &Written, out: &mut dyn Write) -> Outcome {
    let list = |out: &mut dyn Write, what: &str, files: &[Utf8PathBuf]| {
        files.iter().try_for_each(|file| writeln!(out, "  {what}  {file}"))
    };
    if stale.changed.is_empty() && stale.removed.is_empty() && !stale.interrupted {
        writeln!(out, "{folder} is up to date")?;
        return Ok(OK);
    }
    writeln!(out, "{folder} is not up to date:")?;
    if stale.interrupted {
        writeln!(out, "  an earlier run was interrupted; the next one finishes it")?;
    }
    list(out, "differs", &stale.changed)?;
    list(out, "should go", &stale.removed)?;
    Ok(FAILED)
}

/// Which files came from which target, and what this run changed.
fn counts(intent: &Intent, folder: &Utf8Path, tree: &OutputTree, written: &Written) -> String {
    let digest: String = output::manifest(tree).intent.chars().take(7).collect();
    let mut text = format!(
        "{folder}: {} files ({} written, {} unchanged, {} removed), intent {digest}\n",
        tree.len(),
        written.changed.len(),
        written.unchanged,
        written.removed.len(),
    );
    let written = TARGETS.iter().filter(|target| !target.scopes(intent).is_empty());
    let targets = written.map(|target| (target.id(), target.summary()));
    for (id, summary) in targets.chain([BUNDLES]) {
        text.push_str(&format!("  {id:14} {summary}\n"));
    }
    text
}
