//! Replacing a file whole: a reader sees the old text or the new one, and a run that is killed leaves
//! one of the two.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};

use camino::Utf8Path;

use crate::output::WriteError;

/// Writes a file beside the old one and renames it into place. The file keeps its permissions; a link
/// stays a link to the file that is replaced.
pub fn file(path: &Utf8Path, text: &str) -> Result<(), WriteError> {
    let full = path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    let temporary = full.with_file_name(format!(".{}.fleetc-next", full.file_name().unwrap_or("")));
    let replaced = write(&temporary, &full, text);
    if replaced.is_err() {
        // What failed is said below; that the rest of it stays too would be a second failure of one cause.
        let _ = fs::remove_file(&temporary);
    }
    replaced.map_err(|error| WriteError::Io { doing: "writing", path: path.to_owned(), error })
}

fn write(temporary: &Utf8Path, full: &Utf8Path, text: &str) -> io::Result<()> {
    // The rest of a run that was killed; a link of that name is removed, not followed.
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(temporary)?;
    file.write_all(text.as_bytes())?;
    if let Ok(old) = fs::metadata(full) {
        file.set_permissions(old.permissions())?;
    }
    file.sync_all()?;
    fs::rename(temporary, full)
}
