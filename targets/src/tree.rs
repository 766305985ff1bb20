//! What a target writes: files of blocks, each with the items that caused it.

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_schema::ItemPath;
use indexmap::IndexMap;

/// Files by path, relative to the output folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputTree {
    files: IndexMap<Utf8PathBuf, OutputFile>,
}

/// One file: blocks in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputFile {
    /// The blocks; their texts joined are the file.
    pub blocks: Vec<Block>,
}

/// Some lines of a file, and the items of the spec behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Items, the nearest cause first.
    pub items: Vec<ItemPath>,
    /// Whole lines.
    pub text: String,
}

impl OutputFile {
    /// Adds a block.
    pub fn push(&mut self, items: impl IntoIterator<Item = ItemPath>, text: String) {
        self.blocks.push(Block { items: items.into_iter().collect(), text });
    }

    /// A file of one block.
    pub fn one(items: impl IntoIterator<Item = ItemPath>, text: String) -> Self {
        let mut file = Self::default();
        file.push(items, text);
        file
    }

    /// The bytes of the file.
    pub fn text(&self) -> String {
        self.blocks.iter().map(|block| block.text.as_str()).collect()
    }
}

impl OutputTree {
    /// Adds a file. Two targets never write one path, which a test holds.
    pub fn add(&mut self, path: impl Into<Utf8PathBuf>, file: OutputFile) {
        self.files.insert(path.into(), file);
    }

    /// Adds the files of another tree.
    pub fn extend(&mut self, other: Self) {
        self.files.extend(other.files);
    }

    /// The file of this path.
    pub fn get(&self, path: &str) -> Option<&OutputFile> {
        self.files.get(Utf8Path::new(path))
    }

    /// Files with their paths, sorted.
    pub fn files(&self) -> Vec<(&Utf8Path, &OutputFile)> {
        let mut files: Vec<_> =
            self.files.iter().map(|(path, file)| (path.as_path(), file)).collect();
        files.sort_by_key(|(path, _)| *path);
        files
    }

    /// How many files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// True if there is no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}
