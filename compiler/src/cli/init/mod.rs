//! `fleetc init`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_schema::name::FleetName;

use super::args::InitArgs;
use super::{CommandError, OK, Outcome, locate};
use crate::format::whole::relative;
use crate::output::WriteError;

/// The spec, with a place for the fleet's name.
const SPEC: &str = include_str!("fleet.kdl");
/// The CI workflow, with places for the spec's path in the repository.
const WORKFLOW: &str = include_str!("workflow.yml");

/// Writes a small working fleet and a CI workflow. If one of the files is there, none is written.
pub fn run(args: &InitArgs, out: &mut dyn Write) -> Outcome {
    let name = fleet_name(args)?;
    let spec = args.folder.join("fleet.kdl");
    let (workflows, below) = workflows_of(&args.folder);
    let workflow = WORKFLOW.replace("@SPEC@", &below).replace("@NAME@", name.as_str());
    let files = [
        (spec, SPEC.replace("@NAME@", name.as_str())),
        (workflows.join(format!("fleet-{name}.yml")), workflow),
    ];
    if let Some((taken, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        let why = format!("{taken} is there already: nothing was written");
        return Err(CommandError::Other(why));
    }
    for (path, text) in &files {
        write(path, text).map_err(|error| WriteError::Io {
            doing: "writing",
            path: path.clone(),
            error,
        })?;
        writeln!(out, "{path}")?;
    }
    let folder = &args.folder;
    writeln!(out, "next: fleetc check {folder}, then fleetc compile {folder} -o out")?;
    Ok(OK)
}

/// The name as asked for, else the folder's as far as it can be a name.
fn fleet_name(args: &InitArgs) -> Result<FleetName, CommandError> {
    let (text, given) = match &args.name {
        Some(name) => (name.clone(), true),
        None => {
            let full = locate::full(&args.folder);
            let name = full.file_name().unwrap_or_default().to_lowercase();
            let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let name: String = name.chars().map(legal).collect();
            (name.trim_matches('-').to_owned(), false)
        }
    };
    FleetName::new(&text).map_err(|error| {
        let hint = if given { "" } else { ": choose a name with --name" };
        CommandError::Other(format!("`{text}` cannot be the name of a fleet: {error}{hint}"))
    })
}

/// The folder of workflows at the root of the repository, else in this folder; and the spec's folder
/// from there.
fn workflows_of(folder: &Utf8Path) -> (Utf8PathBuf, String) {
    const WORKFLOWS: &str = ".github/workflows";
    let full = locate::full(folder);
    // The shell of the workflow reads the path: one that it could read otherwise stays out.
    let plain = |below: &&Utf8Path| {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
        below.as_str().chars().all(legal) && !below.as_str().is_empty()
    };
    let root = full.ancestors().find(|ancestor| ancestor.join(".git").exists());
    let found = root.and_then(|root| Some((root, full.strip_prefix(root).ok().filter(plain)?)));
    match found {
        Some((root, below)) => {
            let workflows = root.join(WORKFLOWS);
            let shown = match folder.is_relative() {
                true => relative(&locate::full(Utf8Path::new(".")), &workflows),
                false => workflows,
            };
            (shown, below.to_string())
        }
        None => (folder.join(WORKFLOWS), ".".to_owned()),
    }
}

/// Writes a file that is not there.
fn write(path: &Utf8Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}
