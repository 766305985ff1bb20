//! `sources.jsonl`: where items of the spec are written. A courtesy to the reader of a finding.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use fleetc_schema::ItemPath;
use fleetc_schema::intent::SourceLine;
use serde::{Serialize, Serializer};

use crate::input::{InputError, MAX_BYTES};

/// The longest line that is taken.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// The most steps from an item to its nearest written ancestor.
const MAX_STEPS: usize = 64;

/// Where an item is written: a file, relative to the root of the spec, and a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecPlace {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

impl fmt::Display for SpecPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl Serialize for SpecPlace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where the items behind a node's expectations, and their ancestors, are written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources(BTreeMap<ItemPath, SpecPlace>);

impl Sources {
    /// Where the item is written, or else its nearest written ancestor.
    pub fn place_of(&self, path: &ItemPath) -> Option<&SpecPlace> {
        lineage(path).find_map(|path| self.0.get(&path))
    }

    /// Reads the file line by line and keeps what concerns these items.
    pub(crate) fn read(shown: &Path, file: File, items: &[ItemPath]) -> Result<Self, InputError> {
        let mut places: BTreeMap<ItemPath, Option<SpecPlace>> =
            items.iter().flat_map(lineage).map(|path| (path, None)).collect();
        let (mut reader, mut line) = (BufReader::new(file), Vec::new());
        let mut total = 0_u64;
        for number in 1.. {
            line.clear();
            let read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
            let length = read.map_err(|source| InputError::read(shown, source))?;
            let length = u64::try_from(length).unwrap_or(u64::MAX);
            if length == 0 {
                break;
            }
            if length == MAX_LINE_BYTES && !line.ends_with(b"\n") {
                let problem = format!("line {number} is longer than {MAX_LINE_BYTES} bytes");
                return Err(InputError::content(shown, problem));
            }
            total = total.saturating_add(length);
            if total > MAX_BYTES {
                return Err(InputError::TooLarge { file: shown.to_owned(), limit: MAX_BYTES });
            }
            let source: SourceLine = serde_json::from_slice(line.trim_ascii_end())
                .map_err(|error| InputError::json(shown, Some(number), &error))?;
            if let Some(place @ None) = places.get_mut(&source.path) {
                *place = Some(SpecPlace { file: source.file, line: source.line });
            }
        }
        let found = |(path, place): (_, Option<SpecPlace>)| place.map(|place| (path, place));
        Ok(Self(places.into_iter().filter_map(found).collect()))
    }
}

/// An item and its ancestors, nearest first.
fn lineage(path: &ItemPath) -> impl Iterator<Item = ItemPath> + use<> {
    std::iter::successors(Some(path.clone()), ItemPath::parent).take(MAX_STEPS)
}
