//! `fleetc drift`.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_schema::intent::REPORT_SCHEMA;

use super::args::{DriftArgs, Format};
use super::{CommandError, FAILED, OK, Outcome, Stream, diff};
use crate::drift::{Drift, Report};
use crate::output::{self, MANIFEST};
use crate::{emit, render};

/// The largest report, and the longest line of a file of reports.
const MAX_REPORT: u64 = 4 << 20;

/// Holds many nodes' reports against the fleet.
pub fn run(
    root: Option<&Utf8Path>,
    args: &DriftArgs,
    out: &mut dyn Write,
    err: &mut dyn Stream,
) -> Outcome {
    let Some(side) = diff::side(root, &args.spec, err)? else { return Ok(FAILED) };
    let intent = side.intent;
    // A folder was perhaps written by another version of the compiler: what nodes have is its files.
    let manifest = match args.spec.join(MANIFEST).is_file() {
        true => output::read_manifest(&args.spec)?,
        false => None,
    };
    let manifest = manifest.unwrap_or_else(|| output::manifest(&emit(&intent)));
    let mut drift = Drift::new(&intent, &manifest);
    for file in reports(&args.folder)? {
        read(&file, &mut drift);
    }
    let summary = drift.summary();
    let text = match args.format {
        Format::Text => render::drift::text(&summary),
        Format::Json => render::drift::document(&summary),
    };
    write!(out, "{text}")?;
    Ok(if summary.holds() { OK } else { FAILED })
}

/// The files of reports in a folder, by name.
fn reports(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, CommandError> {
    let refuse = |error: io::Error| CommandError::Other(format!("reading {folder}: {error}"));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        // A name that is not UTF-8 is none of a node.
        let Ok(path) = Utf8PathBuf::try_from(path) else { continue };
        if matches!(path.extension(), Some("json" | "jsonl")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a file: one report, or one a line.
fn read(path: &Utf8Path, drift: &mut Drift<'_>) {
    let name = path.file_name().unwrap_or_default();
    // Opening a pipe would wait for a writer.
    let file = match path.is_file() {
        true => File::open(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    };
    let file = match file {
        Ok(file) => file,
        Err(error) => return drift.unreadable(name, &error.to_string()),
    };
    if path.extension() == Some("json") {
        let mut bytes = Vec::new();
        match file.take(MAX_REPORT.saturating_add(1)).read_to_end(&mut bytes) {
            Ok(_) => take(&bytes, name, drift),
            Err(error) => drift.unreadable(name, &error.to_string()),
        }
        return;
    }
    let mut reader = BufReader::new(file);
    let mut bytes = Vec::new();
    for line in 1_u64.. {
        bytes.clear();
        let read = reader.by_ref().take(MAX_REPORT.saturating_add(1)).read_until(b'\n', &mut bytes);
        let place = format!("{name}:{line}");
        match read {
            Ok(0) => return,
            Ok(_) if bytes.trim_ascii().is_empty() => {}
            Ok(_) => {
                let is_cut = bytes.len() as u64 > MAX_REPORT;
                take(&bytes, &place, drift);
                if is_cut {
                    // Where the next one begins is not known.
                    return;
                }
            }
            Err(error) => return drift.unreadable(&place, &error.to_string()),
        }
    }
}

fn take(bytes: &[u8], place: &str, drift: &mut Drift<'_>) {
    if bytes.len() as u64 > MAX_REPORT {
        return drift.unreadable(place, "larger than 4 MiB");
    }
    match serde_json::from_slice::<Report>(bytes) {
        Ok(report) if report.schema == REPORT_SCHEMA => drift.add(report),
        Ok(report) => {
            let why = format!("its schema is `{}`, not `{REPORT_SCHEMA}`", report.schema);
            drift.unreadable(place, &why);
        }
        Err(error) => drift.unreadable(place, &error.to_string()),
    }
}
