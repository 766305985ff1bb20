//! The `Key=Value` lines of Slurm's files.
//!
//! Source: slurm.conf(5): keys and values joined by `=`, blanks between pairs, double quotes around
//! a value with blanks, `#` starts a comment.

use std::fmt::Display;

use fleetc_schema::ItemPath;

use super::header;
use crate::OutputFile;

/// A line of `Key=Value` pairs.
#[derive(Debug, Clone, Default)]
pub struct Line {
    text: String,
    lead: (String, String),
}

impl Line {
    /// A line that starts with this pair.
    pub fn new(key: &str, value: impl Display) -> Self {
        Self::default().pair(key, value)
    }

    /// Adds a pair.
    pub fn pair(mut self, key: &str, value: impl Display) -> Self {
        // A double quote or a line break cannot be written in a value: they are left out.
        let value = value.to_string().replace(['"', '\n', '\r'], "");
        if self.text.is_empty() {
            self.lead = (key.to_owned(), value.clone());
        } else {
            self.text.push(' ');
        }
        let quote = value.is_empty() || value.contains(|c: char| c.is_whitespace() || c == '#');
        self.text.push_str(key);
        self.text.push('=');
        if quote {
            self.text.push('"');
        }
        self.text.push_str(&value);
        if quote {
            self.text.push('"');
        }
        self
    }

    /// Adds a pair if there is a value.
    pub fn maybe(self, key: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.pair(key, value),
            None => self,
        }
    }

    /// The line with its end.
    pub fn end(self) -> String {
        let Self { mut text, .. } = self;
        text.push('\n');
        text
    }
}

/// A file of such lines. It knows which keys its lines start with, so that what a site adds can be
/// held against what is written here.
#[derive(Debug, Clone, Default)]
pub struct KeyValueFile {
    file: OutputFile,
    keys: Vec<(String, String)>,
}

impl KeyValueFile {
    /// A file that starts with these comments.
    pub fn new(items: impl IntoIterator<Item = ItemPath>, comments: &[&str]) -> Self {
        Self { file: OutputFile::one(items, header(comments)), keys: Vec::new() }
    }

    /// Adds a comment after a blank line: the head of what follows.
    pub fn section(&mut self, items: impl IntoIterator<Item = ItemPath>, comments: &[&str]) {
        self.file.push(items, format!("\n{}", header(comments)));
    }

    /// Adds a line.
    pub fn line(&mut self, items: impl IntoIterator<Item = ItemPath>, line: Line) {
        self.keys.push(line.lead.clone());
        self.file.push(items, line.end());
    }

    /// Adds lines that someone else wrote, as they are.
    pub fn verbatim(&mut self, items: impl IntoIterator<Item = ItemPath>, text: String) {
        self.file.push(items, text);
    }

    /// The first key of each line with its value, in the order of the file. What was added verbatim
    /// is not among them.
    pub fn keys(&self) -> &[(String, String)] {
        &self.keys
    }

    /// The file.
    pub fn into_file(self) -> OutputFile {
        self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_blanks_or_hashes_are_quoted() {
        let line =
            Line::new("NodeName", "gpu[01-04]").pair("Reason", "at RMA #3").maybe("X", None::<u8>);
        assert_eq!(line.end(), "NodeName=gpu[01-04] Reason=\"at RMA #3\"\n");
        assert_eq!(Line::new("A", "x\"y\nz").end(), "A=xyz\n");
    }

    #[test]
    fn a_file_knows_what_its_lines_start_with() {
        let mut file = KeyValueFile::new([], &["fleet x"]);
        file.section([], &["nodes"]);
        file.line([], Line::new("NodeName", "gpu1").pair("CPUs", 8));
        file.verbatim([], "SlurmUser=slurm\n".to_owned());
        assert_eq!(file.keys(), [("NodeName".to_owned(), "gpu1".to_owned())]);
        let text = file.into_file().text();
        assert_eq!(text, "# fleet x\n\n# nodes\nNodeName=gpu1 CPUs=8\nSlurmUser=slurm\n");
    }
}
