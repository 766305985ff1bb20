//! The spec's files: finding them, reading them, and turning bytes into lines and columns.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use fleetc_schema::diag::Span;

use crate::files::{Files, MAX_FILE_BYTES};

/// Files that were read, in order; a [`Span`] names one by its number.
#[derive(Debug, Clone, Default)]
pub struct Sources(Vec<Source>);

/// One file.
#[derive(Debug, Clone)]
pub struct Source {
    /// Path relative to the root.
    pub path: Utf8PathBuf,
    /// Its text.
    pub text: String,
    /// Where lines begin, once somebody asks: an inventory has a million.
    index: OnceLock<Index>,
}

/// What positions are read from.
#[derive(Debug, Clone)]
struct Index {
    /// Where each line begins.
    line_starts: Vec<usize>,
    /// How many characters stand before each block of [`BLOCK`] bytes.
    characters: Vec<usize>,
}

/// Bytes of a text whose characters are counted at once.
const BLOCK: usize = 1024;

/// A position for people: both from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

/// How many characters start in these bytes of UTF-8.
fn starts(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| !matches!(byte, 0x80..=0xbf)).count()
}

impl Sources {
    /// Adds a file and returns its number.
    pub fn add(&mut self, path: Utf8PathBuf, text: String) -> u32 {
        self.0.push(Source { path, text, index: OnceLock::new() });
        u32::try_from(self.0.len() - 1).unwrap_or(u32::MAX)
    }

    /// The file of a span.
    pub fn of(&self, span: Span) -> Option<&Source> {
        usize::try_from(span.file).ok().and_then(|file| self.0.get(file))
    }

    /// The text of a span.
    pub fn text(&self, span: Span) -> &str {
        let range = span.start as usize..span.end as usize;
        self.of(span).and_then(|source| source.text.get(range)).unwrap_or_default()
    }
}

impl Source {
    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let ends = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            let characters = self.text.as_bytes().chunks(BLOCK).scan(0, |before, block| {
                let here = *before;
                *before += starts(block);
                Some(here)
            });
            Index {
                line_starts: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect(),
                characters: characters.collect(),
            }
        })
    }

    /// The lines around some bytes, so many more on either side: their bytes, and the number of the
    /// first, from 0.
    pub fn around(&self, bytes: Range<usize>, more: usize) -> (Range<usize>, usize) {
        let starts = &self.index().line_starts;
        let line = |byte: usize| starts.partition_point(|start| *start <= byte).saturating_sub(1);
        let first = line(bytes.start).saturating_sub(more);
        let after = line(bytes.end).saturating_add(more).saturating_add(1);
        let start = starts.get(first).copied().unwrap_or(0);
        (start..starts.get(after).copied().unwrap_or(self.text.len()), first)
    }

    /// The position of a byte.
    pub fn position(&self, byte: u32) -> Position {
        let byte = (byte as usize).min(self.text.len());
        let starts = &self.index().line_starts;
        let line = starts.partition_point(|start| *start <= byte).max(1);
        let start = starts.get(line - 1).copied().unwrap_or(0);
        let before = self.characters_before(byte).saturating_sub(self.characters_before(start));
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Position { line: number(line), column: number(before + 1) }
    }

    /// The bytes of a line, from 1, without its end; nothing if there is none.
    pub(crate) fn line(&self, number: u32) -> Range<usize> {
        let starts = &self.index().line_starts;
        let start_of = |line: usize| starts.get(line).copied();
        let line = (number as usize).wrapping_sub(1);
        match start_of(line) {
            Some(start) => {
                start
                    ..line
                        .checked_add(1)
                        .and_then(start_of)
                        .map_or(self.text.len(), |next| next - 1)
            }
            None => 0..0,
        }
    }

    /// Costs by the block, not by the line, which may be all of the text.
    fn characters_before(&self, byte: usize) -> usize {
        let block = byte / BLOCK;
        let rest = self.text.as_bytes().get(block * BLOCK..byte).unwrap_or_default();
        match self.index().characters.get(block) {
            Some(before) => before + starts(rest),
            // The end of a text that fills its last block.
            None => self.text.chars().count(),
        }
    }
}

/// The form of a spec file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// KDL 2.
    Kdl,
    /// YAML.
    Yaml,
}

/// Why a spec cannot be read at all: the world is wrong, not the spec.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Neither a file nor a folder with `fleet.kdl` or `fleet.yaml`.
    #[error("{path}: no such spec: neither a file nor a folder with fleet.kdl or fleet.yaml")]
    NoSpec {
        /// The path as asked for.
        path: Utf8PathBuf,
    },
    /// A folder with both forms.
    #[error(
        "{path} holds fleet.kdl and fleet.yaml: name the file, or keep the twin in {path}/yaml/"
    )]
    BothForms {
        /// The folder.
        path: Utf8PathBuf,
    },
    /// A file whose name says neither KDL nor YAML.
    #[error("{path}: a spec ends in .kdl, .yaml or .yml")]
    UnknownForm {
        /// The file.
        path: Utf8PathBuf,
    },
    /// A path that leaves the root.
    #[error("{path} is outside the root: a spec reads nothing above it (see --root)")]
    OutsideRoot {
        /// The path as asked for.
        path: Utf8PathBuf,
    },
    /// The file cannot be read.
    #[error("reading {path}: {error}")]
    Io {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The file is not UTF-8.
    #[error("reading {path}: not UTF-8 at byte {at}")]
    NotUtf8 {
        /// The file.
        path: Utf8PathBuf,
        /// The first byte that is wrong.
        at: usize,
    },
}

/// Finds the entry file of a spec: `path` is relative to the root, a file or a folder.
///
/// # Errors
/// There is none, or it is not clear which.
pub fn entry_file(files: &dyn Files, path: &Utf8Path) -> Result<(Utf8PathBuf, Form), ReadError> {
    let path = normalise(path)?;
    if files.has(&path) {
        return match form_of(&path) {
            Some(form) => Ok((path, form)),
            None => Err(ReadError::UnknownForm { path }),
        };
    }
    let (kdl, yaml) = (path.join("fleet.kdl"), path.join("fleet.yaml"));
    match (files.has(&kdl), files.has(&yaml)) {
        (true, false) => Ok((kdl, Form::Kdl)),
        (false, true) => Ok((yaml, Form::Yaml)),
        (true, true) => Err(ReadError::BothForms { path }),
        (false, false) => Err(ReadError::NoSpec { path }),
    }
}

/// The form of a file, by its name.
pub fn form_of(file: &Utf8Path) -> Option<Form> {
    match file.extension() {
        Some("kdl") => Some(Form::Kdl),
        Some("yaml" | "yml") => Some(Form::Yaml),
        _ => None,
    }
}

/// Reads a file as UTF-8, without a byte order mark.
///
/// # Errors
/// It cannot be read or is not UTF-8.
pub fn read_text(files: &dyn Files, path: &Utf8Path) -> Result<String, ReadError> {
    match read_marked(files, path)? {
        (text, None) => Ok(text),
        (_, Some(at)) => Err(ReadError::NotUtf8 { path: path.to_owned(), at }),
    }
}

/// Reads a file, without a byte order mark. If it is not UTF-8, a U+FFFD stands for each part that is
/// not, and the place of the first is given.
///
/// # Errors
/// It cannot be read.
pub fn read_marked(
    files: &dyn Files,
    path: &Utf8Path,
) -> Result<(String, Option<usize>), ReadError> {
    let bytes = files
        .read(path, MAX_FILE_BYTES)
        .map_err(|error| ReadError::Io { path: path.to_owned(), error })?;
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    match str::from_utf8(bytes) {
        Ok(text) => Ok((text.to_owned(), None)),
        Err(error) => Ok((String::from_utf8_lossy(bytes).into_owned(), Some(error.valid_up_to()))),
    }
}

/// Resolves `.` and `..` by text alone.
///
/// # Errors
/// The path leads above the root.
pub fn normalise(path: &Utf8Path) -> Result<Utf8PathBuf, ReadError> {
    let outside = || ReadError::OutsideRoot { path: path.to_owned() };
    let mut clean = Utf8PathBuf::new();
    for component in path.components() {
        match component {
            Utf8Component::Normal(part) => clean.push(part),
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir if clean.pop() => {}
            _ => return Err(outside()),
        }
    }
    Ok(clean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Memory;

    #[test]
    fn positions_count_characters_from_one() {
        let mut sources = Sources::default();
        let file = sources.add("a.kdl".into(), "é x\ny".into());
        let source = sources.of(Span { file, start: 0, end: 0 }).unwrap();
        assert_eq!(source.position(3), Position { line: 1, column: 3 });
        assert_eq!(source.position(5), Position { line: 2, column: 1 });
        assert_eq!(source.position(99), Position { line: 2, column: 2 });
    }

    #[test]
    fn positions_on_a_long_line_are_counted_in_characters_too() {
        let text = "aé\u{1f600}".repeat(2_048);
        let mut sources = Sources::default();
        let file = sources.add("a.kdl".into(), text.clone());
        let source = sources.of(Span { file, start: 0, end: 0 }).unwrap();
        for (at, (byte, _)) in text.char_indices().enumerate() {
            let column = u32::try_from(at).unwrap() + 1;
            let byte = u32::try_from(byte).unwrap();
            assert_eq!(source.position(byte), Position { line: 1, column });
        }
        let end = u32::try_from(text.len()).unwrap();
        assert_eq!(source.position(end), Position { line: 1, column: 6_145 });
    }

    #[test]
    fn a_folder_means_its_fleet_file_and_two_are_too_many() {
        let one = Memory::one("f/fleet.yaml", "");
        assert_eq!(entry_file(&one, "f".into()).unwrap(), ("f/fleet.yaml".into(), Form::Yaml));
        let mut both = one;
        both.0.insert("f/fleet.kdl".into(), String::new());
        assert!(matches!(entry_file(&both, "f".into()), Err(ReadError::BothForms { .. })));
        assert!(matches!(entry_file(&both, "g".into()), Err(ReadError::NoSpec { .. })));
        assert!(matches!(entry_file(&both, "../f".into()), Err(ReadError::OutsideRoot { .. })));
        assert!(matches!(entry_file(&both, "/f".into()), Err(ReadError::OutsideRoot { .. })));
    }
}
