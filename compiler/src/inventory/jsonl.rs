//! JSON Lines: one object a line, its keys the columns. Source: jsonlines.org.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use fleetc_schema::diag::rules;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::table::{Cell, Row, Table};
use super::{Column, Errors, MAX_LINE_BYTES, letter, lines, offset, says_nothing};

/// Reads the rows of a file.
pub(super) fn read(text: &str, file: u32, table: &mut Table, errors: &mut Errors) {
    let mut unknown = BTreeSet::new();
    for (start, line) in lines(text).filter(|(_, line)| !says_nothing(line)) {
        if line.len() > MAX_LINE_BYTES {
            let title =
                format!("the line has {} bytes, at most {MAX_LINE_BYTES} are taken", line.len());
            errors.syntax(letter(line, start), &title, "begins here", "write one object a line");
            continue;
        }
        let object: Object<'_> = match serde_json::from_str(line) {
            Ok(object) => object,
            Err(error) => {
                let text = error.to_string();
                let place = format!(" at line {} column {}", error.line(), error.column());
                let problem = text.strip_suffix(&place).unwrap_or(&text);
                // The reader counts bytes, and may stop inside a letter.
                let mut at = error.column().saturating_sub(1).min(line.len());
                while !line.is_char_boundary(at) {
                    at -= 1;
                }
                let here = letter(line.get(at..).unwrap_or_default(), start + at);
                let title = format!("not a row in JSON: {problem}");
                let help = "write one object a line: `{\"node\": \"gpu001\", \"pool\": \"train\"}`";
                errors.syntax(here, &title, "here", help);
                continue;
            }
        };
        let line = Line { text: line, start };
        if let Some(row) = line.row(object, &mut unknown, errors)
            && !table.push(file, row, errors)
        {
            return;
        }
    }
}

/// A line and where it begins.
struct Line<'t> {
    text: &'t str,
    start: usize,
}

impl<'t> Line<'t> {
    /// The row that an object says. None if it has a mistake, which is reported.
    fn row(
        &self,
        Object(fields): Object<'t>,
        unknown: &mut BTreeSet<String>,
        errors: &mut Errors,
    ) -> Option<Row<'t>> {
        let mut row = Row::at((offset(self.start), offset(self.start + self.text.len())));
        let mut seen = [None; super::COLUMNS.len()];
        let mut fine = true;
        for (Text(key), value) in fields {
            let here = self.span(&key);
            let Some(column) = Column::of(&key) else {
                // The same word in every row is one mistake.
                if unknown.len() < super::MAX_FINDINGS && unknown.insert(key.clone().into_owned()) {
                    errors.unknown_column(&key, here);
                }
                continue;
            };
            if seen.contains(&Some(column)) {
                let title = || format!("the row states `{key}` twice");
                let help = "keep one of the two";
                errors.report(&rules::SPEC_DUPLICATE, here, title, "a second one", help);
                fine = false;
                continue;
            }
            if let Some(free) = seen.iter_mut().find(|seen| seen.is_none()) {
                *free = Some(column);
            }
            let list = matches!(column, Column::Switch | Column::Pci);
            match value {
                JsonValue::Null => {}
                JsonValue::Text(text) if is_odd(&text) => {
                    let title = format!("`{key}` holds a control character");
                    errors.syntax(here, &title, "in its value", "write plain text");
                    fine = false;
                }
                JsonValue::Text(text) => row.fill(column, self.cell(text)),
                JsonValue::List { first, last, joined } if list => {
                    let ((start, _), (_, end)) = (self.span(&first), self.span(&last));
                    row.fill(column, Cell { text: Cow::Owned(joined), start, end });
                }
                JsonValue::List { .. } | JsonValue::Other => {
                    let kind = if list { "a text or a list of texts" } else { "a text" };
                    let title = || format!("`{key}` takes {kind}");
                    let help = format!("write `\"{key}\": \"…\"`");
                    errors.report(&rules::SPEC_WRONG_TYPE, here, title, "another type", help);
                    fine = false;
                }
            }
        }
        fine.then_some(row)
    }

    fn cell(&self, text: Cow<'t, str>) -> Cell<'t> {
        let (start, end) = self.span(&text);
        Cell { text, start, end }
    }

    /// Where a text stands that was borrowed from the line; the whole line if it has an escape.
    fn span(&self, text: &str) -> (u32, u32) {
        let inside = (text.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize);
        match inside.filter(|at| at + text.len() <= self.text.len()) {
            Some(at) => (offset(self.start + at), offset(self.start + at + text.len())),
            None => (offset(self.start), offset(self.start + self.text.len())),
        }
    }
}

/// An object as it is written: repeated keys are kept.
struct Object<'t>(Vec<(Text<'t>, JsonValue<'t>)>);

/// A text, borrowed unless it has an escape.
#[derive(Deserialize)]
struct Text<'t>(#[serde(borrow)] Cow<'t, str>);

/// True for what a terminal would obey: an escape of JSON can say it.
fn is_odd(text: &str) -> bool {
    // ASCII is decided byte by byte, which is faster than by characters.
    match text.is_ascii() {
        true => text.bytes().any(|byte| byte.is_ascii_control()),
        false => text.contains(char::is_control),
    }
}

/// A value, as far as a row may hold one.
enum JsonValue<'t> {
    Null,
    Text(Cow<'t, str>),
    /// Texts, with blanks between them; and the first and the last as they stand.
    List {
        first: Cow<'t, str>,
        last: Cow<'t, str>,
        joined: String,
    },
    Other,
}

impl<'t> Deserialize<'t> for Object<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'t> Visitor<'t> for Fields {
            type Value = Object<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Object<'t>, A::Error> {
                let mut fields = Vec::with_capacity(super::COLUMNS.len());
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl<'t> Deserialize<'t> for JsonValue<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'t> Visitor<'t> for Any {
            type Value = JsonValue<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<JsonValue<'t>, E> {
                Ok(JsonValue::Null)
            }

            fn visit_borrowed_str<E>(self, text: &'t str) -> Result<JsonValue<'t>, E> {
                Ok(JsonValue::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<JsonValue<'t>, E> {
                Ok(JsonValue::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_bool<E>(self, _: bool) -> Result<JsonValue<'t>, E> {
                Ok(JsonValue::Other)
            }

            fn visit_i64<E>(self, _: i64) -> Result<JsonValue<'t>, E> {
                Ok(JsonValue::Other)
            }

            fn visit_u64<E>(self, _: u64) -> Result<JsonValue<'t>, E> {
                Ok(JsonValue::Other)
            }

            fn visit_f64<E>(self, _: f64) -> Result<JsonValue<'t>, E> {
                Ok(JsonValue::Other)
            }

            fn visit_seq<A: SeqAccess<'t>>(self, mut seq: A) -> Result<JsonValue<'t>, A::Error> {
                let (mut joined, mut other) = (String::new(), false);
                let mut ends: Option<(Cow<'t, str>, Cow<'t, str>)> = None;
                while let Some(value) = seq.next_element()? {
                    let JsonValue::Text(text) = value else {
                        other = true;
                        continue;
                    };
                    other |= is_odd(&text);
                    if !joined.is_empty() {
                        joined.push(' ');
                    }
                    joined.push_str(&text);
                    ends = Some(match ends {
                        Some((first, _)) => (first, text),
                        None => (text.clone(), text),
                    });
                }
                Ok(match ends {
                    _ if other => JsonValue::Other,
                    Some((first, last)) => JsonValue::List { first, last, joined },
                    None => JsonValue::Null,
                })
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<JsonValue<'t>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(JsonValue::Other)
            }
        }
        deserializer.deserialize_any(Any)
    }
}
