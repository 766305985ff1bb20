//! The files of a spec that belong together: the entry file and what it includes.

use camino::{Utf8Path, Utf8PathBuf};

use super::parse;
use crate::files::Files;
use crate::load::{FileWord, each_file};
use crate::source::{Form, ReadError, form_of, normalise, read_text};
use crate::syntax::Scalar;

/// A file of a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Where it is below the root.
    pub path: Utf8PathBuf,
    /// Its form.
    pub form: Form,
    /// Its text, without a byte order mark.
    pub text: String,
}

/// The entry file and the files that it includes, each once, in the order of reading. What it extends
/// is another spec. What a file includes that does not parse stays unknown.
///
/// # Errors
/// One of them cannot be read.
pub fn parts(files: &dyn Files, entry: &Utf8Path) -> Result<Vec<Part>, ReadError> {
    let mut parts: Vec<Part> = Vec::new();
    let mut open = vec![entry.to_owned()];
    while let Some(path) = open.pop() {
        if parts.iter().any(|part| part.path == path) {
            continue;
        }
        let Some(form) = form_of(&path) else { return Err(ReadError::UnknownForm { path }) };
        let text = read_text(files, &path)?;
        let mut nodes = parse(form, &text).unwrap_or_default();
        let mut included = Vec::new();
        each_file(&mut nodes, &mut |word, value| {
            if let (FileWord::Include, Scalar::String(name)) = (word, &value.scalar) {
                included.push(beside(&path, name));
            }
        });
        for path in included.into_iter().rev() {
            open.push(path?);
        }
        parts.push(Part { path, form, text });
    }
    Ok(parts)
}

/// The path below the root of a file that another one names.
///
/// # Errors
/// It is above the root.
pub fn beside(from: &Utf8Path, name: &str) -> Result<Utf8PathBuf, ReadError> {
    normalise(&from.parent().unwrap_or(Utf8Path::new("")).join(name))
}

/// The way from a folder to a file; both are absolute, or both below one root.
pub fn relative(folder: &Utf8Path, file: &Utf8Path) -> Utf8PathBuf {
    let common = folder.components().zip(file.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(common).map(|_| "..");
    let down = file.components().skip(common).map(|part| part.as_str());
    up.chain(down).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Memory;

    #[test]
    fn includes_are_followed_once_and_bases_are_not() {
        let files = Memory(
            [
                ("f/fleet.kdl", "fleet \"x\" { include \"a.kdl\" \"b/b.yaml\"; extends \"../g\" }"),
                ("f/a.kdl", "include \"b/b.yaml\""),
                ("f/b/b.yaml", "include: [../c.kdl]"),
                ("f/c.kdl", "pool {"),
                ("g/fleet.kdl", "fleet \"g\""),
            ]
            .map(|(path, text)| (path.into(), text.to_owned()))
            .into(),
        );
        let parts = parts(&files, "f/fleet.kdl".into()).unwrap();
        let paths: Vec<&str> = parts.iter().map(|part| part.path.as_str()).collect();
        assert_eq!(paths, ["f/fleet.kdl", "f/a.kdl", "f/b/b.yaml", "f/c.kdl"]);
    }

    #[test]
    fn ways_go_up_and_down() {
        for (folder, file, way) in [
            ("a/b", "a/b/c.kdl", "c.kdl"),
            ("a/b", "a/c.kdl", "../c.kdl"),
            ("a/b/d", "c/e.kdl", "../../../c/e.kdl"),
            ("", "c.kdl", "c.kdl"),
        ] {
            assert_eq!(relative(folder.into(), file.into()), way);
        }
    }
}
