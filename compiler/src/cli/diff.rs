//! `fleetc diff`.

use std::borrow::Cow;
use std::io::Write;

use camino::Utf8Path;
use fleetc_schema::intent::{INTENT_SCHEMA, Intent, IntentDocument};

use super::args::{DiffArgs, Format};
use super::{CommandError, FAILED, OK, Outcome, Stream, locate};
use crate::output::{self, FLEET_FILE, MANIFEST};
use crate::render::plan::Texts;
use crate::{Checked, emit, plan, render};

/// Says what changes between two fleets.
pub fn run(
    root: Option<&Utf8Path>,
    args: &DiffArgs,
    out: &mut dyn Write,
    err: &mut dyn Stream,
) -> Outcome {
    let old = side(root, &args.old, err)?;
    let new = side(root, &args.new, err)?;
    let (Some(old), Some(new)) = (old, new) else { return Ok(FAILED) };
    let plan = plan::plan(&old.intent, &new.intent);
    let found = plan::findings(&old.intent, &new.intent);
    let diffs = render::plan::file_diffs(&emit(&old.intent), &emit(&new.intent));
    let fleet = new.intent.fleet.name.as_str();
    let text = match args.format {
        Format::Json => render::plan::document(fleet, &plan, &diffs),
        Format::Text => {
            let texts = if args.full { Texts::Full } else { Texts::Folded };
            render::plan::text(fleet, &plan, &diffs, texts)
        }
    };
    write!(out, "{text}")?;
    let width = err.width();
    for finding in &found {
        let text = match &new.checked {
            Some(checked) => render::text::one(checked, finding, width),
            None => render::text::bare(finding, width),
        };
        writeln!(err, "{text}")?;
    }
    let changed = !plan.is_empty() || !diffs.is_empty();
    Ok(if args.exit_code && changed { FAILED } else { OK })
}

/// One side of a difference.
pub(super) struct Side {
    pub(super) intent: Intent,
    /// Where its items are written, if it is a spec.
    checked: Option<Checked>,
}

/// Reads a spec or an output folder. None if the spec has errors, which are printed.
pub(super) fn side(
    root: Option<&Utf8Path>,
    path: &Utf8Path,
    err: &mut dyn Stream,
) -> Result<Option<Side>, CommandError> {
    if path.join(MANIFEST).is_file() {
        return from_folder(path).map(|intent| Some(Side { intent, checked: None }));
    }
    let checked = locate::check_spec(root, path)?;
    match checked.intent().cloned() {
        Some(intent) => Ok(Some(Side { intent, checked: Some(checked) })),
        None => {
            let width = err.width();
            write!(err, "{}", render::text::report(&checked, width))?;
            writeln!(err, "{path}: {}", render::counts(&checked.diagnostics))?;
            Ok(None)
        }
    }
}

/// Reads back the Intent of an output folder, and proves it by the digest of the manifest.
fn from_folder(folder: &Utf8Path) -> Result<Intent, CommandError> {
    let other =
        |why: String| CommandError::Other(format!("reading {}: {why}", folder.join(FLEET_FILE)));
    let manifest = output::read_manifest(folder)?;
    let bytes = output::read(&folder.join(FLEET_FILE))?;
    let (Some(manifest), Some(bytes)) = (manifest, bytes) else {
        return Err(other("the file is missing".to_owned()));
    };
    if output::sha256(&bytes) != manifest.intent {
        return Err(other(
            "its digest is not the manifest's: it was edited, or a run was cut off".to_owned(),
        ));
    }
    let document: IntentDocument<'_> =
        serde_json::from_slice(&bytes).map_err(|error| other(error.to_string()))?;
    match document.schema.as_ref() {
        INTENT_SCHEMA => Ok(Cow::into_owned(document.intent)),
        schema => Err(other(format!("its schema is `{schema}`, not `{INTENT_SCHEMA}`"))),
    }
}
