//! Writing an output tree into a folder.
//!
//! The manifest names every file of ours with its SHA-256 and is renamed into place last. Files that
//! it does not name are never touched; files of ours that were edited are refused; files of ours that
//! are no longer written are removed. Unchanged files keep their modification time. A run that is
//! killed leaves whole files, and the next one finishes or undoes it.

mod journal;

use std::io;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use fleetc_targets::OutputTree;
use fleetc_targets::write::json;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::SOURCES_FILE;
use journal::{Journal, Step};

/// Name of the manifest.
pub const MANIFEST: &str = "fleetc.manifest.json";
/// The schema tag of the manifest.
pub const MANIFEST_SCHEMA: &str = "fleetc/manifest/v1";
/// Where files are staged before they are renamed into place.
const STAGE: &str = ".fleetc-next";
/// The file whose digest is the digest of the fleet.
pub const FLEET_FILE: &str = "fleet/intent/fleet.json";
/// The largest file of an output folder that is read back.
const MAX_READ: u64 = 256 << 20;

/// `fleetc.manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_SCHEMA`].
    pub schema: String,
    /// Version of the compiler, which stands in no other file.
    pub compiler: String,
    /// SHA-256 of `fleet.json`: the digest of the fleet.
    pub intent: String,
    /// Every file, sorted by path.
    pub files: Vec<ManifestFile>,
}

/// A file of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestFile {
    /// Path, relative to the folder.
    pub path: Utf8PathBuf,
    /// SHA-256; none for the side table, which enters no hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// Why a tree cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Something about a file.
    #[error("{doing} {path}: {error}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: Utf8PathBuf,
        /// Why it failed.
        #[source]
        error: io::Error,
    },
    /// The manifest of the folder is not one.
    #[error("{path} is not a manifest of fleetc: {why}")]
    Manifest {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Files of ours were edited by hand.
    #[error("edited by hand since the last run: {}\n  put the change into the spec, or overwrite with --force", list(.files))]
    Edited {
        /// The files.
        files: Vec<Utf8PathBuf>,
    },
    /// Files that we would write and that are not ours.
    #[error("not written by fleetc: {}\n  choose an empty folder, or overwrite with --force", list(.files))]
    NotOurs {
        /// The files.
        files: Vec<Utf8PathBuf>,
    },
    /// A path in the folder is a symbolic link.
    #[error("{path} is a symbolic link: nothing is written through links")]
    Link {
        /// The link.
        path: Utf8PathBuf,
    },
}

fn list(files: &[Utf8PathBuf]) -> String {
    files.iter().map(|file| format!("\n    {file}")).collect()
}

/// What writing changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// Files that are new or have other bytes.
    pub changed: Vec<Utf8PathBuf>,
    /// Files that had these bytes already.
    pub unchanged: usize,
    /// Files of ours that are gone.
    pub removed: Vec<Utf8PathBuf>,
    /// True if an earlier run was interrupted, and had to be finished.
    pub interrupted: bool,
}

/// SHA-256 in hex.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The manifest of a tree.
pub fn manifest(tree: &OutputTree) -> Manifest {
    let fleet = tree.get(FLEET_FILE).map(|file| sha256(file.text().as_bytes()));
    let files = tree.files().into_iter().map(|(path, file)| ManifestFile {
        path: path.to_owned(),
        sha256: (path != SOURCES_FILE).then(|| sha256(file.text().as_bytes())),
    });
    Manifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        compiler: env!("CARGO_PKG_VERSION").to_owned(),
        intent: fleet.unwrap_or_default(),
        files: files.collect(),
    }
}

/// Reads the manifest of a folder; none if it has none.
///
/// # Errors
/// It cannot be read, or is not a manifest.
pub fn read_manifest(folder: &Utf8Path) -> Result<Option<Manifest>, WriteError> {
    let path = folder.join(MANIFEST);
    let Some(bytes) = read(&path)? else { return Ok(None) };
    let bad = |why: String| WriteError::Manifest { path: path.clone(), why };
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
    if manifest.schema != MANIFEST_SCHEMA {
        return Err(bad(format!("its schema is `{}`", manifest.schema)));
    }
    match manifest.files.iter().find(|file| leads_out(&file.path)) {
        Some(file) => Err(bad(format!("`{}` leads out of the folder", file.path))),
        None => Ok(Some(manifest)),
    }
}

/// True if a path of a manifest, which is untrusted, is not inside the folder.
fn leads_out(path: &Utf8Path) -> bool {
    !path.components().all(|part| matches!(part, Utf8Component::Normal(_)))
        || path.as_str().is_empty()
}

/// What a folder lacks to be what this tree would make it.
///
/// # Errors
/// The folder cannot be read.
pub fn stale(folder: &Utf8Path, tree: &OutputTree) -> Result<Written, WriteError> {
    let old = read_manifest(folder)?;
    let mut difference = compare(folder, tree, old.as_ref())?;
    difference.interrupted = Journal::left_in(folder)?.is_some();
    let wanted = json::pretty(&manifest(tree));
    if read(&folder.join(MANIFEST))?.is_none_or(|bytes| bytes != wanted.as_bytes()) {
        difference.changed.push(MANIFEST.into());
    }
    Ok(difference)
}

/// Makes the folder hold this tree.
///
/// # Errors
/// Nothing is written if a file of ours was edited, or if a file that is not ours is in the way,
/// unless `force` is set.
pub fn write(folder: &Utf8Path, tree: &OutputTree, force: bool) -> Result<Written, WriteError> {
    write_by_steps(folder, tree, force, &mut || Ok(()))
}

fn write_by_steps(
    folder: &Utf8Path,
    tree: &OutputTree,
    force: bool,
    step: Step<'_>,
) -> Result<Written, WriteError> {
    let interrupted = finish_earlier(folder, force, step)?;
    let old = read_manifest(folder)?;
    refuse_links(folder, paths(tree, old.as_ref()))?;
    let difference = compare(folder, tree, old.as_ref())?;
    if !force {
        refuse_foreign(folder, tree, old.as_ref(), &difference)?;
    }
    let difference = Written { interrupted, ..difference };
    let manifest_text = json::pretty(&manifest(tree));
    let same = read(&folder.join(MANIFEST))?.is_some_and(|b| b == manifest_text.as_bytes());
    if same && difference.changed.is_empty() && difference.removed.is_empty() {
        return Ok(difference);
    }
    let stage = folder.join(STAGE);
    for path in &difference.changed {
        if let Some(file) = tree.get(path.as_str()) {
            step().map_err(io_error("writing", path))?;
            put(&stage.join(path), file.text().as_bytes())?;
        }
    }
    step().map_err(io_error("writing", Utf8Path::new(MANIFEST)))?;
    put(&stage.join(MANIFEST), manifest_text.as_bytes())?;
    let journal = Journal::of(folder, &difference.changed, &difference.removed)?;
    journal.begin(folder, step)?;
    journal.finish(folder, step)?;
    remove_stage(&stage, step)?;
    Ok(difference)
}

/// Finishes or undoes a run that was interrupted. True if there was one to finish.
fn finish_earlier(folder: &Utf8Path, force: bool, step: Step<'_>) -> Result<bool, WriteError> {
    let stage = folder.join(STAGE);
    refuse_links(folder, [Utf8Path::new(STAGE)])?;
    let journal = Journal::left_in(folder)?;
    if let Some(journal) = &journal {
        refuse_links(folder, journal.paths())?;
        let edited = journal.edited(folder)?;
        if !edited.is_empty() && !force {
            return Err(WriteError::Edited { files: edited });
        }
        journal.finish(folder, step)?;
    }
    remove_stage(&stage, step)?;
    Ok(journal.is_some())
}

/// Every file that would be written or removed.
fn paths<'a>(
    tree: &'a OutputTree,
    old: Option<&'a Manifest>,
) -> impl Iterator<Item = &'a Utf8Path> {
    let written = tree.files().into_iter().map(|(path, _)| path);
    written.chain(old.into_iter().flat_map(|old| old.files.iter().map(|file| file.path.as_path())))
}

fn compare(
    folder: &Utf8Path,
    tree: &OutputTree,
    old: Option<&Manifest>,
) -> Result<Written, WriteError> {
    let mut difference = Written::default();
    for (path, file) in tree.files() {
        match read(&folder.join(path))? {
            Some(bytes) if bytes == file.text().as_bytes() => difference.unchanged += 1,
            _ => difference.changed.push(path.to_owned()),
        }
    }
    for file in old.iter().flat_map(|manifest| &manifest.files) {
        if tree.get(file.path.as_str()).is_none() && folder.join(&file.path).is_file() {
            difference.removed.push(file.path.clone());
        }
    }
    Ok(difference)
}

/// Refuses to overwrite or remove what somebody else wrote.
fn refuse_foreign(
    folder: &Utf8Path,
    tree: &OutputTree,
    old: Option<&Manifest>,
    difference: &Written,
) -> Result<(), WriteError> {
    let (mut edited, mut foreign) = (Vec::new(), Vec::new());
    for path in difference.changed.iter().chain(&difference.removed) {
        let Some(bytes) = read(&folder.join(path))? else { continue };
        let ours = old.and_then(|manifest| manifest.files.iter().find(|file| file.path == *path));
        match ours {
            Some(ManifestFile { sha256: None, .. }) => {}
            Some(ManifestFile { sha256: Some(hash), .. }) if *hash == sha256(&bytes) => {}
            Some(_) => edited.push(path.clone()),
            None if tree.get(path.as_str()).is_some() => foreign.push(path.clone()),
            None => {}
        }
    }
    if !edited.is_empty() {
        return Err(WriteError::Edited { files: edited });
    }
    match foreign.is_empty() {
        true => Ok(()),
        false => Err(WriteError::NotOurs { files: foreign }),
    }
}

/// Refuses symbolic links on the way to any of these files.
fn refuse_links<'a>(
    folder: &Utf8Path,
    paths: impl IntoIterator<Item = &'a Utf8Path>,
) -> Result<(), WriteError> {
    let mut last: Option<&Utf8Path> = None;
    for path in paths {
        for step in path.ancestors().take_while(|step| !step.as_str().is_empty()) {
            if last.is_some_and(|last| last.starts_with(step)) {
                break;
            }
            let full = folder.join(step);
            if full.symlink_metadata().is_ok_and(|meta| meta.file_type().is_symlink()) {
                return Err(WriteError::Link { path: full });
            }
        }
        last = path.parent();
    }
    Ok(())
}

fn io_error(doing: &'static str, path: &Utf8Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_owned();
    move |error| WriteError::Io { doing, path, error }
}

/// The bytes of a file; none if there is none.
pub(crate) fn read(path: &Utf8Path) -> Result<Option<Vec<u8>>, WriteError> {
    use std::io::Read;
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("reading", path)(error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_READ).read_to_end(&mut bytes).map_err(io_error("reading", path))?;
    Ok(Some(bytes))
}

fn put(path: &Utf8Path, bytes: &[u8]) -> Result<(), WriteError> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(io_error("creating", parent))?;
    }
    std::fs::write(path, bytes).map_err(io_error("writing", path))
}

fn rename(from: &Utf8Path, to: &Utf8Path) -> Result<(), WriteError> {
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(io_error("creating", parent))?;
    }
    std::fs::rename(from, to).map_err(io_error("writing", to))
}

/// Removes a file of ours and the folders that are empty then.
fn remove(folder: &Utf8Path, path: &Utf8Path) -> Result<(), WriteError> {
    let full = folder.join(path);
    std::fs::remove_file(&full).map_err(io_error("removing", &full))?;
    for parent in path.ancestors().skip(1).take_while(|parent| !parent.as_str().is_empty()) {
        // A folder that holds something else stays.
        if std::fs::remove_dir(folder.join(parent)).is_err() {
            break;
        }
    }
    Ok(())
}

fn remove_stage(stage: &Utf8Path, step: Step<'_>) -> Result<(), WriteError> {
    step().map_err(io_error("removing", stage))?;
    match std::fs::remove_dir_all(stage) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_error("removing", stage)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetc_targets::OutputFile;

    fn tree(files: &[(&str, &str)]) -> OutputTree {
        let mut tree = OutputTree::default();
        for (path, text) in files {
            tree.add(*path, OutputFile::one([], (*text).to_owned()));
        }
        tree
    }

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::try_from(dir.path().join("out")).unwrap();
        (dir, path)
    }

    #[test]
    fn stale_files_of_ours_go_and_files_of_others_stay() {
        let (_dir, out) = folder();
        write(&out, &tree(&[("a/x", "1\n"), ("a/y", "2\n"), ("b/z", "3\n")]), false).unwrap();
        std::fs::write(out.join("a/site"), "mine").unwrap();
        let written = write(&out, &tree(&[("a/x", "1\n"), ("c", "4\n")]), false).unwrap();
        assert_eq!(written.changed, ["c"]);
        assert_eq!(written.removed, ["a/y", "b/z"]);
        assert_eq!(written.unchanged, 1);
        assert!(out.join("a/site").is_file() && !out.join("a/y").exists());
        assert!(!out.join("b").exists() && !out.join(STAGE).exists());
    }

    #[test]
    fn files_that_were_edited_are_refused_without_force() {
        let (_dir, out) = folder();
        write(&out, &tree(&[("a", "1\n"), ("b", "1\n")]), false).unwrap();
        std::fs::write(out.join("a"), "edited\n").unwrap();
        let next = tree(&[("a", "2\n"), ("b", "2\n")]);
        assert!(
            matches!(write(&out, &next, false), Err(WriteError::Edited { files }) if files == ["a"])
        );
        assert_eq!(std::fs::read_to_string(out.join("b")).unwrap(), "1\n", "nothing was written");
        write(&out, &next, true).unwrap();
        assert_eq!(std::fs::read_to_string(out.join("a")).unwrap(), "2\n");
    }

    #[test]
    fn a_file_edited_and_no_longer_written_is_refused_too() {
        let (_dir, out) = folder();
        write(&out, &tree(&[("a", "1\n"), ("b", "1\n")]), false).unwrap();
        std::fs::write(out.join("b"), "edited\n").unwrap();
        assert!(matches!(
            write(&out, &tree(&[("a", "1\n")]), false),
            Err(WriteError::Edited { .. })
        ));
    }

    #[test]
    fn a_file_that_is_not_ours_is_not_overwritten() {
        let (_dir, out) = folder();
        std::fs::create_dir_all(&out).unwrap();
        std::fs::write(out.join("a"), "theirs").unwrap();
        let ours = tree(&[("a", "1\n")]);
        assert!(matches!(write(&out, &ours, false), Err(WriteError::NotOurs { .. })));
        write(&out, &ours, true).unwrap();
    }

    #[test]
    fn a_manifest_that_leads_out_of_the_folder_is_refused() {
        let (_dir, out) = folder();
        std::fs::create_dir_all(&out).unwrap();
        for path in ["../x", "/etc/x", "a/../../x", ""] {
            let manifest = Manifest {
                schema: MANIFEST_SCHEMA.into(),
                compiler: String::new(),
                intent: String::new(),
                files: vec![ManifestFile { path: path.into(), sha256: None }],
            };
            std::fs::write(out.join(MANIFEST), json::pretty(&manifest)).unwrap();
            let result = write(&out, &tree(&[("a", "1\n")]), true);
            assert!(matches!(result, Err(WriteError::Manifest { .. })), "{path}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn nothing_is_written_through_a_link() {
        let (dir, out) = folder();
        std::fs::create_dir_all(&out).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, out.join("a")).unwrap();
        let result = write(&out, &tree(&[("a/x", "1\n")]), true);
        assert!(matches!(result, Err(WriteError::Link { .. })));
        assert!(!elsewhere.join("x").exists());
    }

    /// The files of a folder but those of the stage.
    fn texts(out: &Utf8Path) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut open = vec![out.to_owned()];
        while let Some(folder) = open.pop() {
            for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
                match entry.path() {
                    path if path.file_name() == Some(STAGE) => {}
                    path if path.is_dir() => open.push(path.to_owned()),
                    path => {
                        let name = path.strip_prefix(out).unwrap().to_string();
                        found.push((name, std::fs::read_to_string(path).unwrap()));
                    }
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_run_that_is_killed_anywhere_leaves_whole_files_and_the_next_one_finishes_or_undoes_it() {
        let before = tree(&[("a/x", "old\n"), ("a/y", "gone\n"), ("b", "same\n")]);
        let after = tree(&[("a/x", "new\n"), ("b", "same\n"), ("c/d", "fresh\n")]);
        let other = tree(&[("a/x", "other\n"), ("e", "else\n")]);
        let whole = |name: &str, text: &str| match name {
            "a/x" => ["old\n", "new\n"].contains(&text),
            "a/y" => text == "gone\n",
            "b" => text == "same\n",
            "c/d" => text == "fresh\n",
            "site" => text == "mine",
            MANIFEST => text.ends_with("}\n"),
            _ => false,
        };
        let (mut finished, mut undone, mut stop) = (0, 0, 0);
        loop {
            let mut done = false;
            for next in [&after, &other] {
                let (_dir, out) = folder();
                write(&out, &before, false).unwrap();
                std::fs::write(out.join("site"), "mine").unwrap();
                let mut left = stop;
                let killed = write_by_steps(&out, &after, false, &mut || match left {
                    0 => Err(io::Error::other("killed")),
                    _ => {
                        left -= 1;
                        Ok(())
                    }
                });
                done = killed.is_ok();
                for (name, text) in texts(&out) {
                    assert!(whole(&name, &text), "stopped at {stop}: {name} holds {text}");
                }
                let interrupted = Journal::left_in(&out).unwrap().is_some();
                assert_eq!(stale(&out, &after).unwrap().interrupted, interrupted);
                let written = write(&out, next, false).unwrap();
                assert_eq!(written.interrupted, interrupted, "stopped at {stop}");
                *if interrupted { &mut finished } else { &mut undone } += 1;

                let (_clean_dir, clean) = folder();
                write(&clean, next, false).unwrap();
                std::fs::write(clean.join("site"), "mine").unwrap();
                assert_eq!(texts(&out), texts(&clean), "stopped at {stop}");
                assert!(!out.join(STAGE).exists() && !out.join("a/y").exists());
            }
            if done {
                break;
            }
            stop += 1;
        }
        assert!(finished >= 8 && undone >= 8, "{finished} finished, {undone} undone");
    }

    #[test]
    fn an_interrupted_run_does_not_overwrite_what_was_edited_since() {
        let (_dir, out) = folder();
        write(&out, &tree(&[("a", "1\n"), ("b", "1\n")]), false).unwrap();
        let next = tree(&[("a", "2\n")]);
        let mut steps = 0;
        // The start, two files and the journal in two steps; then the first file would move.
        let killed = write_by_steps(&out, &next, false, &mut || {
            steps += 1;
            if steps > 5 { Err(io::Error::other("killed")) } else { Ok(()) }
        });
        assert!(killed.is_err() && Journal::left_in(&out).unwrap().is_some());
        for edited in ["a", "b"] {
            let kept = std::fs::read_to_string(out.join(edited)).unwrap();
            std::fs::write(out.join(edited), "edited\n").unwrap();
            let refused = write(&out, &next, false);
            assert!(matches!(refused, Err(WriteError::Edited { files }) if files == [edited]));
            std::fs::write(out.join(edited), kept).unwrap();
        }
        assert!(write(&out, &next, false).unwrap().interrupted);
        assert!(!out.join("b").exists());
    }

    #[test]
    fn a_journal_that_leads_out_of_the_folder_is_refused() {
        let (_dir, out) = folder();
        std::fs::create_dir_all(out.join(STAGE)).unwrap();
        let journal = r#"{"schema": "fleetc/journal/v1", "changed": [], "removed": [{"path": "../x", "was": null}]}"#;
        std::fs::write(out.join(STAGE).join("fleetc.journal.json"), journal).unwrap();
        let result = write(&out, &tree(&[("a", "1\n")]), true);
        assert!(matches!(result, Err(WriteError::Manifest { .. })));
    }

    #[test]
    fn an_unchanged_tree_is_not_stale_and_keeps_its_times() {
        let (_dir, out) = folder();
        let ours = tree(&[("a", "1\n"), ("fleet/intent/sources.jsonl", "{}\n")]);
        assert!(!stale(&out, &ours).unwrap().changed.is_empty());
        write(&out, &ours, false).unwrap();
        let time = |path: &str| out.join(path).metadata().unwrap().modified().unwrap();
        let before = (time("a"), time(MANIFEST));
        assert_eq!(stale(&out, &ours).unwrap(), Written { unchanged: 2, ..Written::default() });
        write(&out, &ours, false).unwrap();
        assert_eq!((time("a"), time(MANIFEST)), before);
    }
}
