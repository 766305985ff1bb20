//! YAML in one style: block maps and lists, two-space indents, flow for lists of numbers and for
//! what is empty, literal blocks for text of several lines.
//!
//! A string that YAML 1.1 or 1.2 could read as something else (`no`, `08`, `1e3`, `12:30`, `1.10`)
//! is quoted: Kubernetes reads YAML 1.1, Prometheus 1.2.

use serde::Serialize;
use serde_json::Value;

/// Writes one document, without `---`.
pub fn document(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or(Value::Null);
    let mut text = String::new();
    match &value {
        Value::Object(map) if !map.is_empty() => write_map(&mut text, map, 0),
        Value::Array(items) if !is_flow(items) => write_list(&mut text, items, 0),
        other => {
            scalar(&mut text, other, 0);
            text.push('\n');
        }
    }
    text
}

type Map = serde_json::Map<String, Value>;

fn write_map(text: &mut String, map: &Map, indent: usize) {
    for (index, (key, value)) in map.iter().enumerate() {
        if index > 0 {
            pad(text, indent);
        }
        string(text, key);
        text.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                text.push('\n');
                pad(text, indent + 2);
                write_map(text, inner, indent + 2);
            }
            Value::Array(items) if !is_flow(items) => {
                text.push('\n');
                pad(text, indent + 2);
                write_list(text, items, indent + 2);
            }
            other => {
                text.push(' ');
                scalar(text, other, indent + 2);
                text.push('\n');
            }
        }
    }
}

fn write_list(text: &mut String, items: &[Value], indent: usize) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            pad(text, indent);
        }
        text.push_str("- ");
        match item {
            Value::Object(inner) if !inner.is_empty() => write_map(text, inner, indent + 2),
            Value::Array(inner) if !is_flow(inner) => write_list(text, inner, indent + 2),
            other => {
                scalar(text, other, indent + 2);
                text.push('\n');
            }
        }
    }
}

fn pad(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

fn scalar(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::String(value) if is_literal(value) => literal(text, value, indent),
        Value::String(value) => string(text, value),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            text.push('[');
            text.push_str(&items.join(", "));
            text.push(']');
        }
        Value::Object(_) => text.push_str("{}"),
    }
}

/// True for lists that go on one line: those of numbers, and empty ones.
fn is_flow(items: &[Value]) -> bool {
    items.iter().all(Value::is_number)
}

/// True if the text goes into a literal block without loss: several lines, the last one ended, no
/// line that starts or ends with a blank at the start or end of the text, no control characters.
fn is_literal(value: &str) -> bool {
    let lines = value.strip_suffix('\n');
    lines.is_some_and(|lines| {
        lines.contains('\n')
            && !lines.starts_with([' ', '\n', '\t'])
            && !lines.ends_with('\n')
            && lines.lines().all(|line| !line.ends_with([' ', '\t']))
            && lines.chars().all(|c| c == '\n' || is_plain_character(c))
    })
}

/// Characters that YAML allows unescaped in every kind of scalar.
fn is_plain_character(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

fn literal(text: &mut String, value: &str, indent: usize) {
    text.push('|');
    for line in value.trim_end_matches('\n').split('\n') {
        text.push('\n');
        if !line.is_empty() {
            pad(text, indent);
            text.push_str(line);
        }
    }
}

fn string(text: &mut String, value: &str) {
    if is_plain(value) {
        text.push_str(value);
        return;
    }
    if value.contains(['"', '\\']) && value.chars().all(|c| matches!(c, ' '..='~')) {
        text.push('\'');
        text.push_str(&value.replace('\'', "''"));
        text.push('\'');
        return;
    }
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            c if is_plain_character(c) => text.push(c),
            c => match u32::from(c) {
                code @ 0..=0xff => text.push_str(&format!("\\x{code:02x}")),
                code @ 0x100..=0xffff => text.push_str(&format!("\\u{code:04x}")),
                code => text.push_str(&format!("\\U{code:08x}")),
            },
        }
    }
    text.push('"');
}

/// True if every YAML reads the bare text as this very string.
fn is_plain(value: &str) -> bool {
    let Some(first) = value.chars().next() else { return false };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_./+@%()=,[]{}:<>*$^~|' ".contains(c);
    let starts = first.is_ascii_alphabetic() || matches!(first, '/' | '_' | '.' | '(' | '+');
    let word = value.to_ascii_lowercase();
    let special =
        ["y", "n", "yes", "no", "on", "off", "true", "false", "null", ".inf", ".nan", "+.inf"];
    let looks_like_a_number = value.chars().any(|c| c.is_ascii_digit())
        && value.chars().all(|c| c.is_ascii_digit() || "+-._:eExXoObBaAcCdDfF".contains(c));
    starts
        && value.chars().all(allowed)
        && !value.ends_with(' ')
        && !value.ends_with(':')
        && !value.contains(": ")
        && !value.contains(" #")
        && !special.contains(&word.as_str())
        && !looks_like_a_number
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn one_style_for_every_document() {
        let value = json!({
            "version": "v1",
            "flags": {"migStrategy": "mixed", "on": true},
            "list": [{"a": 1, "b": ["x"]}, [1, 2], "08"],
            "empty": {}, "none": [],
            "text": "a: 1\n\nb: 2\n",
        });
        let expected = "\
version: v1
flags:
  migStrategy: mixed
  \"on\": true
list:
  - a: 1
    b:
      - x
  - [1, 2]
  - \"08\"
empty: {}
none: []
text: |
  a: 1

  b: 2
";
        assert_eq!(document(&value), expected);
    }

    #[test]
    fn strings_that_any_yaml_reads_otherwise_are_quoted() {
        for text in [
            "no",
            "Yes",
            "y",
            "08",
            "1e3",
            "12:30",
            "1.10",
            "0x1f",
            "null",
            "~",
            "",
            " a",
            "a ",
            "a: b",
            "a #b",
            "- a",
            "# a",
            "!x",
            "&a",
            "*a",
            "2026-11-30",
            "1_000",
            ".5",
            "+1",
            "é",
            "=",
            "<<",
        ] {
            assert!(!is_plain(text), "{text}");
        }
        for text in
            ["mixed", "nvidia.com/mig-1g.10gb", "v1", "gpu[01-04]", "fleetc:class_gpus_expected"]
        {
            assert!(is_plain(text), "{text}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
            "[a-z0-9:.#\\-+_ \\n\\t]{0,20}".prop_map(Value::from),
            "(yes|no|on|off|0x[0-9a-f]{2}|[0-9]{1,3}[:._e][0-9]{1,3}|~|null)".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z0-9: #.\\-]{0,8}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_independent_reader_gives_the_value_back(value in values()) {
            let text = document(&value);
            prop_assert!(text.ends_with('\n') && !text.ends_with("\n\n"));
            prop_assert!(text.lines().all(|line| !line.ends_with(' ')));
            let read: Value = serde_yaml::from_str(&text).unwrap();
            prop_assert_eq!(read, value);
        }
    }
}
