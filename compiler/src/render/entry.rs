//! Single rows of the hardware catalog with their sources and doubts, as they stand in its files.

use fleetc_schema::catalog::{Catalog, Price};
use fleetc_targets::write::json;
use serde::Deserialize;
use serde_json::Value;

use super::hardware::{Document, SCHEMA};

/// One entry with its sources and doubts. None if the catalog has no such key.
pub fn entry(catalog: &Catalog, key: &str) -> Option<String> {
    let (kind, row) = catalog.raw(key)?;
    let key = row.get("key").and_then(Value::as_str).unwrap_or(key);
    Some(described(catalog, &format!("{key} ({kind})"), &row))
}

/// One entry as JSON, as it stands in the catalog.
pub fn entry_json(catalog: &Catalog, key: &str) -> Option<String> {
    let (_, row) = catalog.raw(key)?;
    Some(json::pretty(&Document { schema: SCHEMA, rows: [row] }))
}

/// A row under its title: a line for each field, then its note, confidence and sources.
fn described(catalog: &Catalog, title: &str, row: &Value) -> String {
    let mut text = format!("{title}\n");
    for (name, value) in row.as_object().into_iter().flatten() {
        if matches!(name.as_str(), "key" | "source" | "confidence" | "note") {
            continue;
        }
        let name = name.replace('_', " ");
        match value.as_array().filter(|items| items.iter().any(Value::is_object)) {
            Some(items) => {
                text.push_str(&format!("  {name}\n"));
                for item in items {
                    text.push_str(&format!("    {}\n", plain(item)));
                }
            }
            None => text.push_str(&format!("  {name:28} {}\n", plain(value))),
        }
    }
    if let Some(note) = row.get("note").and_then(Value::as_str) {
        text.push_str(&format!("  note: {note}\n"));
    }
    if let Some(confidence) = row.get("confidence").and_then(Value::as_str) {
        text.push_str(&format!("  confidence: {confidence}\n"));
    }
    let mut cited = Vec::new();
    cite(row.get("source"), &mut cited);
    cite_within(row, &mut cited);
    let documents: Vec<&String> =
        cited.iter().filter_map(|source| catalog.sources.get(*source)).collect();
    if !documents.is_empty() {
        text.push_str("  sources\n");
    }
    for document in documents {
        text.push_str(&format!("    {document}\n"));
    }
    text
}

/// Adds the keys of the sources that a field `source` names, each once.
fn cite<'a>(source: Option<&'a Value>, cited: &mut Vec<&'a str>) {
    for key in source.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !cited.contains(&key) {
            cited.push(key);
        }
    }
}

/// Adds the sources of every fact in a value.
fn cite_within<'a>(value: &'a Value, cited: &mut Vec<&'a str>) {
    cite(value.get("source"), cited);
    let fields = value.as_object().into_iter().flat_map(serde_json::Map::values);
    for inner in fields.chain(value.as_array().into_iter().flatten()) {
        cite_within(inner, cited);
    }
}

/// A value in a line: lists with commas, fields as `name value`, `unknown` for null, a doubt in
/// brackets behind what it is about.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "unknown".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let confidence = fields.get("confidence").and_then(Value::as_str);
            let doubt = confidence.filter(|confidence| *confidence != "sure");
            let doubt = doubt.map(|doubt| format!("   ({doubt})")).unwrap_or_default();
            if let Some(value) = fields.get("value") {
                return format!("{}{doubt}", plain(value));
            }
            if let Ok(price) = Price::deserialize(value) {
                return format!("{price}{doubt}");
            }
            if let (Some(confidence), Some(basis)) = (confidence, fields.get("basis")) {
                return format!("{confidence}: {}", plain(basis));
            }
            let fields = fields.iter().filter(|(name, _)| {
                let name = name.as_str();
                name != "source" && name != "confidence"
            });
            let fields: Vec<String> = fields
                .map(|(name, value)| format!("{} {}", name.replace('_', " "), plain(value)))
                .collect();
            format!("{}{doubt}", fields.join(", "))
        }
    }
}
