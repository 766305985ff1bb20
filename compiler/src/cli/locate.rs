//! From a path on the command line to the files below a root.

use camino::{Utf8Path, Utf8PathBuf};

use super::CommandError;
use crate::files::Disk;
use crate::source::ReadError;
use crate::{Checked, check};

/// Checks the spec that an argument names.
pub fn check_spec(root: Option<&Utf8Path>, spec: &Utf8Path) -> Result<Checked, CommandError> {
    let (files, path) = locate(root, spec)?;
    Ok(check(&files, &path)?)
}

/// The files below the root, and the spec's path in them.
pub fn locate(
    root: Option<&Utf8Path>,
    spec: &Utf8Path,
) -> Result<(Disk, Utf8PathBuf), CommandError> {
    let no_spec = || ReadError::NoSpec { path: spec.to_owned() };
    let full = spec.canonicalize_utf8().map_err(|_| no_spec())?;
    let root = match root {
        Some(root) => root
            .canonicalize_utf8()
            .map_err(|error| CommandError::Other(format!("--root {root}: {error}")))?,
        None => default_root(&full),
    };
    let path = full
        .strip_prefix(&root)
        .map_err(|_| ReadError::OutsideRoot { path: spec.to_owned() })?
        .to_owned();
    Ok((Disk::new(root), path))
}

/// The nearest folder with `.git`, else the spec's own folder.
fn default_root(spec: &Utf8Path) -> Utf8PathBuf {
    let folder = match spec.is_dir() {
        true => spec,
        false => spec.parent().unwrap_or(spec),
    };
    let repository = folder.ancestors().find(|ancestor| ancestor.join(".git").exists());
    repository.unwrap_or(folder).to_owned()
}

/// The absolute path of a file or folder that may not be there yet.
pub fn full(path: &Utf8Path) -> Utf8PathBuf {
    let start = |ancestor: &Utf8Path| match ancestor.as_str() {
        "" => Utf8Path::new(".").canonicalize_utf8(),
        _ => ancestor.canonicalize_utf8(),
    };
    path.ancestors()
        .find_map(|ancestor| {
            let rest = path.strip_prefix(ancestor).ok()?;
            let start = start(ancestor).ok()?;
            Some(if rest.as_str().is_empty() { start } else { start.join(rest) })
        })
        .unwrap_or_else(|| path.to_owned())
}
