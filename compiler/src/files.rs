//! Where spec files come from. The compiler reads only through [`Files`], so a test needs no disk.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

/// The largest spec file that is read. A fleet of 100,000 nodes takes about 40 KB.
pub const MAX_FILE_BYTES: u64 = 4 << 20;

/// Read access to the files below a root.
pub trait Files {
    /// The bytes of a file; `path` is relative to the root.
    ///
    /// # Errors
    /// The file is not there, cannot be read, or has more than `most` bytes.
    fn read(&self, path: &Utf8Path, most: u64) -> io::Result<Vec<u8>>;

    /// True if there is a file of this name.
    fn has(&self, path: &Utf8Path) -> bool;
}

/// Files of a folder on disk.
#[derive(Debug, Clone)]
pub struct Disk {
    root: Utf8PathBuf,
}

impl Disk {
    /// Files below this folder, which must be a canonical path.
    pub fn new(root: Utf8PathBuf) -> Self {
        Self { root }
    }

    /// The folder.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }
}

impl Files for Disk {
    fn read(&self, path: &Utf8Path, most: u64) -> io::Result<Vec<u8>> {
        use std::io::Read;
        let full = self.root.join(path).canonicalize_utf8()?;
        if !full.starts_with(&self.root) {
            let why = "it leads outside the root, and a spec reads nothing above it";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        // Opening a pipe would wait for a writer.
        if !full.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let file = std::fs::File::open(full)?;
        // Room for all of it at once: a large file that grows by doubling is copied often.
        let length = file.metadata()?.len().min(most).saturating_add(1);
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        match u64::try_from(bytes.len()) {
            Ok(length) if length <= most => Ok(bytes),
            _ => Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("the file is larger than {} MiB, the most that is taken", most >> 20),
            )),
        }
    }

    fn has(&self, path: &Utf8Path) -> bool {
        self.root.join(path).is_file()
    }
}

/// Files in memory.
#[derive(Debug, Clone, Default)]
pub struct Memory(pub BTreeMap<Utf8PathBuf, String>);

impl Memory {
    /// One file.
    pub fn one(path: &str, text: &str) -> Self {
        Self(BTreeMap::from([(path.into(), text.to_owned())]))
    }
}

impl Files for Memory {
    fn read(&self, path: &Utf8Path, _: u64) -> io::Result<Vec<u8>> {
        match self.0.get(path) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn has(&self, path: &Utf8Path) -> bool {
        self.0.contains_key(path)
    }
}
