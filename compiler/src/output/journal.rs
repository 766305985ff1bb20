//! What a run is about to do to a folder, so that the next one can finish it.
//!
//! Files are staged first, then the journal is renamed into place, then files move. A run that is
//! killed before the journal is there has changed nothing, and what it staged is thrown away; one that
//! is killed after it is finished by the next run. Either way each file is whole.

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_targets::write::json;
use serde::{Deserialize, Serialize};

use super::{MANIFEST, STAGE, WriteError, io_error, leads_out, put, read, remove, rename, sha256};

/// Name of the journal in the stage.
const JOURNAL: &str = "fleetc.journal.json";
/// The schema tag of the journal.
const JOURNAL_SCHEMA: &str = "fleetc/journal/v1";

/// Called before each change of the disk; an error stops there, as if the run were killed.
pub type Step<'a> = &'a mut dyn FnMut() -> std::io::Result<()>;

/// What is about to happen to a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// [`JOURNAL_SCHEMA`].
    schema: String,
    /// Files that move from the stage into the folder.
    changed: Vec<Entry>,
    /// Files that go.
    removed: Vec<Entry>,
}

/// A file, and what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    path: Utf8PathBuf,
    /// SHA-256 of what was there; none if nothing was.
    was: Option<String>,
}

impl Journal {
    /// The journal of a change to a folder as it is now.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn of(
        folder: &Utf8Path,
        changed: &[Utf8PathBuf],
        removed: &[Utf8PathBuf],
    ) -> Result<Self, WriteError> {
        let entries = |paths: &[Utf8PathBuf]| -> Result<Vec<Entry>, WriteError> {
            let entry = |path: &Utf8PathBuf| {
                let was = read(&folder.join(path))?.map(|bytes| sha256(&bytes));
                Ok(Entry { path: path.clone(), was })
            };
            paths.iter().map(entry).collect()
        };
        Ok(Self {
            schema: JOURNAL_SCHEMA.to_owned(),
            changed: entries(changed)?,
            removed: entries(removed)?,
        })
    }

    /// The journal of a run that was interrupted, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or is not one of ours.
    pub fn left_in(folder: &Utf8Path) -> Result<Option<Self>, WriteError> {
        let path = folder.join(STAGE).join(JOURNAL);
        let Some(bytes) = read(&path)? else { return Ok(None) };
        let bad = |why: String| WriteError::Manifest { path: path.clone(), why };
        let journal: Self = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
        if journal.schema != JOURNAL_SCHEMA {
            return Err(bad(format!("its schema is `{}`", journal.schema)));
        }
        let stray = journal.paths().find(|path| leads_out(path)).map(Utf8Path::to_owned);
        match stray {
            Some(stray) => Err(bad(format!("`{stray}` leads out of the folder"))),
            None => Ok(Some(journal)),
        }
    }

    /// Every file that it is about.
    pub fn paths(&self) -> impl Iterator<Item = &Utf8Path> {
        self.changed.iter().chain(&self.removed).map(|entry| entry.path.as_path())
    }

    /// Puts the journal into the stage: from here on the run will be finished.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(&self, folder: &Utf8Path, step: Step<'_>) -> Result<(), WriteError> {
        let (stage, path) = (folder.join(STAGE), folder.join(STAGE).join(JOURNAL));
        let next = stage.join(format!("{JOURNAL}.next"));
        step().map_err(io_error("writing", &next))?;
        put(&next, json::pretty(self).as_bytes())?;
        step().map_err(io_error("writing", &path))?;
        rename(&next, &path)
    }

    /// Files that are neither what they were nor what they are about to be.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn edited(&self, folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, WriteError> {
        let mut edited = Vec::new();
        for entry in &self.changed {
            // What moved already is not in the stage any more.
            if let Some(staged) = read(&folder.join(STAGE).join(&entry.path))?
                && let Some(bytes) = read(&folder.join(&entry.path))?
                && bytes != staged
                && entry.was.as_ref() != Some(&sha256(&bytes))
            {
                edited.push(entry.path.clone());
            }
        }
        for entry in &self.removed {
            let bytes = read(&folder.join(&entry.path))?;
            if bytes.is_some_and(|bytes| entry.was.as_ref() != Some(&sha256(&bytes))) {
                edited.push(entry.path.clone());
            }
        }
        Ok(edited)
    }

    /// Does what is left to do: files move, others go, the manifest is last, then the journal goes.
    ///
    /// # Errors
    /// A file cannot be moved or removed.
    pub fn finish(&self, folder: &Utf8Path, step: Step<'_>) -> Result<(), WriteError> {
        let stage = folder.join(STAGE);
        for entry in &self.changed {
            move_in(&stage, folder, &entry.path, step)?;
        }
        for entry in &self.removed {
            if folder.join(&entry.path).is_file() {
                step().map_err(io_error("removing", &entry.path))?;
                remove(folder, &entry.path)?;
            }
        }
        move_in(&stage, folder, Utf8Path::new(MANIFEST), step)?;
        let path = stage.join(JOURNAL);
        step().map_err(io_error("removing", &path))?;
        std::fs::remove_file(&path).map_err(io_error("removing", &path))
    }
}

/// Moves a file from the stage into the folder, if it has not moved yet.
fn move_in(
    stage: &Utf8Path,
    folder: &Utf8Path,
    path: &Utf8Path,
    step: Step<'_>,
) -> Result<(), WriteError> {
    let from = stage.join(path);
    if !from.is_file() {
        return Ok(());
    }
    step().map_err(io_error("writing", path))?;
    rename(&from, &folder.join(path))
}
