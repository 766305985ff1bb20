//! XML as `nvidia-smi -q -x` writes it, read into elements with their places.
//!
//! The document type is not looked at, and nothing is fetched for it; entities other than those of XML
//! itself are refused. Depth and number of elements are bounded.

use std::path::Path;

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

use crate::input::InputError;

/// The deepest nesting: real documents have less than 10.
const MAX_DEPTH: usize = 32;
/// The most elements: 16 GPUs with all the clocks that they support have less than a tenth of it.
const MAX_ELEMENTS: usize = 400_000;

/// An element.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Element {
    pub(super) name: String,
    /// The attribute `id`.
    pub(super) id: Option<String>,
    /// The text right in it, without blanks around it.
    pub(super) text: String,
    pub(super) children: Vec<Element>,
    /// Where it starts.
    pub(super) at: Place,
}

/// A place: line and column from 1, the column in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Element {
    /// The first child of this name.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Children of this name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Reads a document: its one outermost element.
///
/// # Errors
/// Says what is wrong, with line and column.
pub(super) fn parse(file: &Path, bytes: &[u8]) -> Result<Element, InputError> {
    let text = str::from_utf8(bytes).map_err(|error| {
        let place = Cursor::default().place(bytes, error.valid_up_to());
        at(file, place, "not UTF-8".to_owned())
    })?;
    let mut reader = Reader::from_str(text);
    let mut cursor = Cursor::default();
    let mut open: Vec<Element> = Vec::new();
    let mut root: Option<Element> = None;
    let mut elements = 0_usize;
    loop {
        let start = position(reader.buffer_position());
        let event = reader.read_event();
        let place = cursor.place(bytes, start);
        let event = event.map_err(|error| {
            // The error may stand before or behind the start of what was read.
            let offset = position(reader.error_position()).min(bytes.len());
            let place = Cursor::default().place(bytes, offset);
            at(file, place, error.to_string())
        })?;
        match event {
            Event::Start(start) => {
                elements = elements.saturating_add(1);
                let element = element(file, &start, place)?;
                if root.is_some() && open.is_empty() {
                    return Err(at(file, place, "a second outermost element".to_owned()));
                }
                if open.len() >= MAX_DEPTH || elements > MAX_ELEMENTS {
                    let problem = format!(
                        "more than {MAX_DEPTH} levels or {MAX_ELEMENTS} elements: not of nvidia-smi"
                    );
                    return Err(at(file, place, problem));
                }
                open.push(element);
            }
            Event::Empty(start) => {
                elements = elements.saturating_add(1);
                let element = element(file, &start, place)?;
                close(element, &mut open, &mut root);
            }
            Event::End(_) => {
                // The reader has seen that it ends the one that is open.
                if let Some(mut element) = open.pop() {
                    let trimmed = element.text.trim().to_owned();
                    element.text = trimmed;
                    close(element, &mut open, &mut root);
                }
            }
            Event::Text(text) => add(&mut open, file, place, &text.xml10_content())?,
            Event::CData(text) => add(&mut open, file, place, &text.xml10_content())?,
            Event::GeneralRef(entity) => {
                let char = entity.resolve_char_ref();
                let char = char.map_err(|error| at(file, place, error.to_string()))?;
                let text = match char {
                    Some(char) => char.to_string(),
                    None => match resolve_predefined_entity(&entity) {
                        Some(text) => text.to_owned(),
                        None => {
                            let problem = format!("unknown entity `&{};`", &*entity);
                            return Err(at(file, place, problem));
                        }
                    },
                };
                add(&mut open, file, place, &text)?;
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            Event::Eof => {
                let problem = match (open.last(), root) {
                    (None, Some(root)) => return Ok(root),
                    (None, None) => "no element".to_owned(),
                    (Some(open), _) => {
                        let Place { line, column } = open.at;
                        format!("the end comes within `{}` of {line}:{column}", open.name)
                    }
                };
                return Err(at(file, place, problem));
            }
        }
    }
}

fn position(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn element(file: &Path, start: &BytesStart<'_>, place: Place) -> Result<Element, InputError> {
    let id = start.try_get_attribute("id");
    let id = id.map_err(|error| at(file, place, error.to_string()))?;
    Ok(Element {
        name: start.name().0.to_owned(),
        id: id.map(|id| id.value.into_owned()),
        at: place,
        ..Element::default()
    })
}

fn close(element: Element, open: &mut [Element], root: &mut Option<Element>) {
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None => *root = Some(element),
    }
}

fn add(open: &mut [Element], file: &Path, place: Place, text: &str) -> Result<(), InputError> {
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err(at(file, place, "text outside of any element: not XML".to_owned())),
    }
    Ok(())
}

pub(super) fn at(file: &Path, place: Place, problem: String) -> InputError {
    let Place { line, column } = place;
    InputError::Place { file: file.to_owned(), line, column, message: problem }
}

/// Turns rising offsets into places, each byte looked at once.
#[derive(Default)]
struct Cursor {
    offset: usize,
    newlines: usize,
    line_start: usize,
}

impl Cursor {
    fn place(&mut self, bytes: &[u8], offset: usize) -> Place {
        let offset = offset.min(bytes.len());
        for (number, byte) in bytes.iter().enumerate().take(offset).skip(self.offset) {
            if *byte == b'\n' {
                self.newlines = self.newlines.saturating_add(1);
                self.line_start = number.saturating_add(1);
            }
        }
        self.offset = self.offset.max(offset);
        let column = offset.saturating_sub(self.line_start).saturating_add(1);
        Place { line: self.newlines.saturating_add(1), column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Element, String> {
        parse(Path::new("x.xml"), text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn elements_have_text_children_and_places() {
        let text = "<?xml version=\"1.0\" ?>\n<!DOCTYPE a SYSTEM \"b.dtd\">\n<a>\n\t<!-- c -->\n\t<b \
                    id=\"7\">x &amp; y &#48;</b>\n\t<b/>\n</a>\n";
        let root = read(text).unwrap();
        assert_eq!((root.name.as_str(), root.at), ("a", Place { line: 3, column: 1 }));
        let all: Vec<&Element> = root.all("b").collect();
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].id.as_deref(), all[0].text.as_str()), (Some("7"), "x & y 0"));
        assert_eq!(all[0].at, Place { line: 5, column: 2 });
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, error) in [
            ("", "x.xml:1:1: no element"),
            ("Failed to initialize NVML", "x.xml:1:1: text outside of any element: not XML"),
            ("<a>\n<b>1</b>", "x.xml:2:9: the end comes within `a` of 1:1"),
            ("<a>\n  <b>1</c></a>", "x.xml:2:7: ill-formed"),
            ("<a>\n<b", "x.xml:2:1: syntax error"),
            ("<a>&x;</a>", "x.xml:1:4: unknown entity `&x;`"),
            ("<a/><b></b>", "x.xml:1:5: a second outermost element"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.starts_with(error), "{text:?}: {found}");
        }
        let deep = "<a>".repeat(100);
        assert!(read(&deep).unwrap_err().starts_with("x.xml:1:97: more than 32 levels"));
        let bytes = parse(Path::new("x.xml"), b"<a>\n\xff</a>").unwrap_err();
        assert_eq!(bytes.to_string(), "x.xml:2:1: not UTF-8");
    }
}
