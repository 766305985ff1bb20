//! Strings of KDL in one style: values in quotes, names without if they can be. A string keeps the
//! escapes that its author wrote; a raw string stays raw if it would need some.

use std::borrow::Cow;

use kdl::KdlIdentifier;

use super::tokens::NEWLINES;

/// Where a string stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// As a name: of a node, property or type.
    Name,
    /// As a value.
    Value,
}

/// An atom as it is printed; the lines of a string of several lines are indented by `indent`.
pub fn print(atom: &str, role: Role, indent: usize) -> Cow<'_, str> {
    if atom.contains(NEWLINES) {
        return several_lines(atom, indent);
    }
    let atom = plain(atom);
    match role {
        Role::Value if is_bare(&atom) => format!("\"{atom}\"").into(),
        Role::Name => match bare(&atom) {
            Some(word) => word.into(),
            None => atom,
        },
        Role::Value => atom,
    }
}

/// A value as a string.
pub fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if is_hidden(c) => quoted.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A name: bare if it can be.
pub fn name(text: &str) -> String {
    match is_word(text) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// Characters that KDL does not allow as they are, or that nobody sees.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
        || c == '\u{feff}'
}

/// A raw string without need becomes a plain one.
fn plain(atom: &str) -> Cow<'_, str> {
    let body = atom.strip_prefix('#').map(|_| atom.trim_matches('#'));
    match body.and_then(|body| body.strip_prefix('"')?.strip_suffix('"')) {
        Some(body) if !body.contains(['"', '\\']) => format!("\"{body}\"").into(),
        _ => atom.into(),
    }
}

/// True for a string without quotes.
fn is_bare(atom: &str) -> bool {
    let unsigned = atom.strip_prefix(['+', '-']).unwrap_or(atom);
    !atom.starts_with(['"', '#']) && !unsigned.starts_with(|c: char| c.is_ascii_digit())
}

/// The word in the quotes, if it needs none.
fn bare(atom: &str) -> Option<String> {
    let word = atom.strip_prefix('"')?.strip_suffix('"')?;
    is_word(word).then(|| word.to_owned())
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && is_bare(text)
        && !text.contains(is_hidden)
        && KdlIdentifier::parse(text).is_ok_and(|read| read.value() == text)
}

/// A string of several lines. What stands before every line is no part of it and follows the indent,
/// but where a `\` joins lines the string stays as it is.
fn several_lines(atom: &str, indent: usize) -> Cow<'_, str> {
    let raw = atom.starts_with('#');
    let text = atom.replace("\r\n", "\n").replace(NEWLINES, "\n");
    if !raw && text.contains('\\') {
        return text.into();
    }
    let mut lines: Vec<&str> = text.split('\n').collect();
    let (Some(open), Some(close)) = (lines.first().copied(), lines.pop()) else {
        return text.into();
    };
    let marks = close.trim_start();
    let prefix = close.strip_suffix(marks).unwrap_or_default();
    let pad = " ".repeat(indent);
    let mut printed = open.to_owned();
    for line in lines.iter().skip(1) {
        printed.push('\n');
        if !line.trim().is_empty() {
            printed.push_str(&pad);
            printed.push_str(line.strip_prefix(prefix).unwrap_or(line));
        }
    }
    printed.push('\n');
    printed.push_str(&pad);
    printed.push_str(marks);
    printed.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kdl::KdlEntry;
    use proptest::prelude::*;

    fn value(atom: &str) -> String {
        print(atom, Role::Value, 0).into_owned()
    }

    #[test]
    fn values_are_quoted_and_names_are_bare() {
        assert_eq!(value("whole"), "\"whole\"");
        assert_eq!(value("#\"whole\"#"), "\"whole\"");
        assert_eq!(value(r##"#"a\b"#"##), r##"#"a\b"#"##);
        assert_eq!(value(r#""a\tb""#), r#""a\tb""#);
        for number in ["8", "-1.50", "+0x1f", "1_000", "#true", "#null", "#-inf"] {
            assert_eq!(value(number), number);
        }
        assert_eq!(print("\"pool\"", Role::Name, 0), "pool");
        for name in ["\"a b\"", "\"1g.10gb\"", "\"true\"", "\"\"", "\"-1\"", "\"+.5\"", "\"a#\""] {
            assert_eq!(print(name, Role::Name, 0), name);
        }
    }

    #[test]
    fn lines_of_a_string_follow_the_indent() {
        let text = "\"\"\"\n\ta\n\t  b \n \n\t\"\"\"";
        assert_eq!(print(text, Role::Value, 4), "\"\"\"\n    a\n      b \n\n    \"\"\"");
        let joined = "\"\"\"\n  a \\\n  b\n  \"\"\"";
        assert_eq!(print(joined, Role::Value, 8), joined);
        let raw = "#\"\"\"\n  a \\\n  b\n  \"\"\"#";
        assert_eq!(print(raw, Role::Value, 0), "#\"\"\"\na \\\nb\n\"\"\"#");
    }

    proptest! {
        #[test]
        fn any_text_is_read_back(text in any::<String>()) {
            let entry = KdlEntry::parse(&quoted(&text)).unwrap();
            prop_assert_eq!(entry.value().as_string(), Some(text.as_str()));
            let word = KdlIdentifier::parse(&name(&text)).unwrap();
            prop_assert_eq!(word.value(), text.as_str());
        }
    }
}
