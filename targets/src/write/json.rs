//! JSON with two-space indents, in the order of the structs.

use serde::Serialize;

/// Writes a document.
///
/// Types of the Intent serialise without error: their maps have string keys and they hold no
/// floats. Should one fail, the text is empty and every test that reads it fails.
pub fn pretty(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// Writes one line of JSON Lines.
pub fn line(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string(value).unwrap_or_default();
    text.push('\n');
    text
}
