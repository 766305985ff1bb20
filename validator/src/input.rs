//! Reading the files that the validator is given. All of them are untrusted.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The most bytes that a file may have.
pub const MAX_BYTES: u64 = 64 << 20;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The system refuses to read it.
    #[error("reading {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A folder, a device, a pipe.
    #[error("{} is not a regular file", file.display())]
    NotAFile {
        /// The file.
        file: PathBuf,
    },
    /// A link that leads out of the folder.
    #[error("{} leads out of its folder", file.display())]
    Outside {
        /// The file.
        file: PathBuf,
    },
    /// More bytes than any real one has.
    #[error("{} is larger than {limit} bytes", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// Not JSON, or not JSON of this kind.
    #[error("{}:{line}:{column}: {message}", file.display())]
    Json {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1; 0 if the end of the line before is meant.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// Not the text that it should be, at this place.
    #[error("{}:{line}:{column}: {message}", file.display())]
    Place {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A document of another kind or of another version.
    #[error("{}: its schema is `{found}`, this program reads `{known}`", file.display())]
    Schema {
        /// The file.
        file: PathBuf,
        /// The tag that it bears.
        found: String,
        /// The tag that it should bear.
        known: &'static str,
    },
    /// Well-formed, but it contradicts itself or another file.
    #[error("{}: {problem}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl InputError {
    /// A contradiction in a file.
    pub(crate) fn content(file: &Path, problem: impl Into<String>) -> Self {
        Self::Content { file: file.to_owned(), problem: problem.into() }
    }

    /// The system's refusal to read a file.
    pub(crate) fn read(file: &Path, source: io::Error) -> Self {
        Self::Read { file: file.to_owned(), source }
    }

    /// What serde_json says, with its place in front; `line` is the line of the file if the JSON is
    /// one line of it.
    pub(crate) fn json(file: &Path, line: Option<usize>, error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        let line = line.unwrap_or(error.line());
        Self::Json { file: file.to_owned(), line, column: error.column(), message }
    }

    /// True if the file is not there.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// A folder that nothing is read outside of.
#[derive(Debug)]
pub(crate) struct Folder {
    /// As the user wrote it, for messages.
    shown: PathBuf,
    /// With every link followed.
    real: PathBuf,
}

/// A file of a folder, opened.
pub(crate) struct OpenFile {
    /// As the user would write it, for messages.
    pub(crate) shown: PathBuf,
    /// The file.
    pub(crate) file: File,
}

impl Folder {
    /// A folder that exists.
    pub(crate) fn open(path: &Path) -> Result<Self, InputError> {
        let real = path.canonicalize().map_err(|source| InputError::read(path, source))?;
        Ok(Self { shown: path.to_owned(), real })
    }

    /// Opens a regular file. Links are followed as long as they stay in the folder: a mounted
    /// ConfigMap consists of such links.
    pub(crate) fn file(&self, name: &str) -> Result<OpenFile, InputError> {
        let shown = self.shown.join(name);
        let read = |source| InputError::read(&shown, source);
        let real = self.real.join(name).canonicalize().map_err(read)?;
        if !real.starts_with(&self.real) {
            return Err(InputError::Outside { file: shown });
        }
        // Opening a pipe would wait for a writer, so the kind is asked for first.
        if !real.metadata().map_err(read)?.is_file() {
            return Err(InputError::NotAFile { file: shown });
        }
        let file = File::open(&real).map_err(read)?;
        Ok(OpenFile { shown, file })
    }
}

/// Reads a file that the user names.
pub(crate) fn contents(shown: &Path) -> Result<Vec<u8>, InputError> {
    let file = File::open(shown).map_err(|source| InputError::read(shown, source))?;
    read_to_end(shown, file)
}

/// Reads a file to its end, if that is near enough.
pub(crate) fn read_to_end(shown: &Path, file: File) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|source| InputError::read(shown, source))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= MAX_BYTES) {
        Ok(bytes)
    } else {
        Err(InputError::TooLarge { file: shown.to_owned(), limit: MAX_BYTES })
    }
}

/// The schema tag of a JSON document.
pub(crate) fn schema_of(shown: &Path, bytes: &[u8]) -> Result<String, InputError> {
    #[derive(Deserialize)]
    struct Tagged {
        schema: String,
    }
    let json = |error| InputError::json(shown, None, &error);
    serde_json::from_slice(bytes).map(|Tagged { schema }| schema).map_err(json)
}

/// Reads a JSON document that bears this schema tag.
///
/// The tag is looked at first: fields of a later version should not be called unknown.
pub(crate) fn document<T: DeserializeOwned>(
    shown: &Path,
    bytes: &[u8],
    schema: &'static str,
) -> Result<T, InputError> {
    let found = schema_of(shown, bytes)?;
    if found != schema {
        return Err(InputError::Schema { file: shown.to_owned(), found, known: schema });
    }
    serde_json::from_slice(bytes).map_err(|error| InputError::json(shown, None, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Thing {
        #[serde(rename = "schema")]
        _schema: String,
    }

    fn read(text: &str) -> String {
        let thing: Result<Thing, _> = document(Path::new("d/x.json"), text.as_bytes(), "t/v1");
        thing.map_or_else(|error| error.to_string(), |_| "fine".to_owned())
    }

    #[test]
    fn errors_name_file_line_and_column() {
        assert_eq!(read(r#"{"schema": "t/v1"}"#), "fine");
        assert_eq!(
            read("{\"schema\": \"t/v1\",\n \"more\": 1}"),
            "d/x.json:2:7: unknown field `more`, expected `schema`"
        );
        assert_eq!(read("{\"schema\":"), "d/x.json:1:10: EOF while parsing a value");
        assert_eq!(read("{}"), "d/x.json:1:2: missing field `schema`");
    }

    #[test]
    fn a_later_version_is_named_before_its_fields() {
        assert_eq!(
            read(r#"{"schema": "t/v2", "more": 1}"#),
            "d/x.json: its schema is `t/v2`, this program reads `t/v1`"
        );
    }

    #[test]
    fn deep_nesting_is_refused_and_does_not_overflow() {
        let deep = "[".repeat(1 << 20);
        assert!(read(&format!("{{\"schema\": {deep}")).contains("x.json:1:"));
        assert!(read(&format!("{{\"schema\": \"t/v1\", \"more\": {deep}")).contains("x.json:1:"));
    }
}
