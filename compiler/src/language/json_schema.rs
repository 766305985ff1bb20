//! The JSON Schema (draft 2020-12) of a spec's YAML form, from the table of kinds.
//!
//! Editors complete and check specs with it. What it says is what the table says: words, types and
//! how often. That names exist, layouts fit and numbers add up is the compiler's to say, so it lets
//! through what the compiler refuses, never the other way round.

use serde_json::{Map, Value, json};

use crate::syntax::REPLACE;

use super::{Arg, Field, Form, Kind, Occurs, Shape, Type};

/// The schema of a spec.
pub fn schema(root: &'static Kind) -> Value {
    let mut kinds = Kinds { names: Vec::new() };
    kinds.add(root, "");
    let definitions: Map<String, Value> =
        kinds.names.iter().skip(1).map(|(name, kind)| (name.clone(), kinds.item(kind))).collect();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A fleetc spec in YAML",
    });
    if let (Value::Object(schema), Value::Object(body)) = (&mut schema, kinds.fields(root)) {
        schema.extend(body);
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

/// Every kind with the name of its definition, in the order of the table.
struct Kinds {
    names: Vec<(String, &'static Kind)>,
}

impl Kinds {
    /// Adds a kind and those below it. Two kinds of one word are told apart by where they stand.
    fn add(&mut self, kind: &'static Kind, parent: &str) {
        if self.names.iter().any(|(_, known)| std::ptr::eq(*known, kind)) {
            return;
        }
        let taken = self.names.iter().any(|(name, _)| name == kind.name);
        let name = match taken {
            true => format!("{parent}.{}", kind.name),
            false => kind.name.to_owned(),
        };
        self.names.push((name.clone(), kind));
        for field in kind.fields {
            if let Form::Kind(child) = field.form {
                self.add(child(), &name);
            }
        }
    }

    fn reference(&self, kind: &'static Kind) -> Value {
        let name = self.names.iter().find(|(_, known)| std::ptr::eq(*known, kind));
        let name = name.map_or(kind.name, |(name, _)| name.as_str());
        json!({ "$ref": format!("#/$defs/{name}") })
    }

    /// What stands for one item: a map of its fields, or what is shorter.
    fn item(&self, kind: &'static Kind) -> Value {
        let body = self.fields(kind);
        let incomplete = kind.fields.iter().any(|field| field.occurs == Occurs::Required);
        let short: Vec<Value> = match kind.arg {
            _ if incomplete => Vec::new(),
            Arg::Value { ty, .. } => vec![value(ty)],
            Arg::NameAndValues(_) => vec![values()],
            Arg::Nothing | Arg::Name(_) => {
                vec![json!({ "const": true }), json!({ "type": "null" })]
            }
        };
        if short.is_empty() {
            return described(body, kind.doc);
        }
        let forms: Vec<Value> = short.into_iter().chain([body]).collect();
        described(json!({ "anyOf": forms }), kind.doc)
    }

    /// The map of an item's fields.
    fn fields(&self, kind: &'static Kind) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        if let Arg::Value { ty, required: needed } = kind.arg {
            properties.insert("is".to_owned(), value(ty));
            required.extend(needed.then_some("is"));
        }
        if let Arg::Name(_) = kind.arg {
            let doc = "In an overlay: takes the place of the item of the base.";
            properties.insert(REPLACE.to_owned(), described(json!({ "type": "boolean" }), doc));
        }
        for field in kind.fields {
            properties.insert(field.key.to_owned(), described(self.field(field), field.doc));
            required.extend((field.occurs == Occurs::Required).then_some(field.key));
        }
        let mut body = json!({ "type": "object", "properties": properties });
        if let Value::Object(body) = &mut body {
            if !required.is_empty() {
                body.insert("required".to_owned(), json!(required));
            }
            body.insert("additionalProperties".to_owned(), json!(false));
        }
        body
    }

    fn field(&self, field: &Field) -> Value {
        let kind = match field.form {
            Form::Property(ty) | Form::Value(ty) => return value(ty),
            // One value may stand without the brackets of a list.
            Form::List(ty) => {
                let list = json!({ "type": "array", "items": value(ty), "minItems": 1 });
                return json!({ "anyOf": [value(ty), list] });
            }
            Form::Kind(kind) => kind(),
        };
        let item = self.reference(kind);
        match (field.occurs, &kind.arg) {
            (Occurs::Optional | Occurs::Required, _) => item,
            (Occurs::Listed, _) => json!({ "type": "array", "items": item }),
            (Occurs::Named, Arg::Name(ty) | Arg::NameAndValues(ty)) => json!({
                "type": "object",
                "propertyNames": value(ty),
                "additionalProperties": item,
            }),
            (Occurs::Named, Arg::Nothing | Arg::Value { .. }) => {
                json!({ "type": "object", "additionalProperties": item })
            }
        }
    }
}

/// A value of a type.
fn value(ty: &Type) -> Value {
    match ty.shape {
        Shape::Text(None) => json!({ "type": "string" }),
        Shape::Text(Some(pattern)) => json!({ "type": "string", "pattern": pattern }),
        Shape::Words(words) => json!({ "enum": words }),
        Shape::Number { min, max: u32::MAX } => json!({ "type": "integer", "minimum": min }),
        Shape::Number { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Share => json!({ "type": ["number", "string"] }),
        Shape::Bool => json!({ "type": "boolean" }),
    }
}

/// A value of any type, or several.
fn values() -> Value {
    let scalar = json!({ "type": ["string", "number", "boolean"] });
    json!({ "anyOf": [scalar, { "type": "array", "items": scalar }] })
}

/// The schema with a description in front.
fn described(schema: Value, doc: &str) -> Value {
    let mut described = Map::new();
    described.insert("description".to_owned(), Value::String(doc.trim().to_owned()));
    if let Value::Object(schema) = schema {
        described.extend(schema);
    }
    Value::Object(described)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::kinds::Spec;

    #[test]
    fn every_reference_has_a_definition() {
        fn walk(value: &Value, schema: &Value) {
            if let Some(Value::String(reference)) = value.get("$ref") {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(schema.pointer(pointer).is_some(), "{reference}");
            }
            match value {
                Value::Object(map) => map.values().for_each(|inner| walk(inner, schema)),
                Value::Array(items) => items.iter().for_each(|inner| walk(inner, schema)),
                _ => {}
            }
        }
        let schema = schema(Spec::kind());
        walk(&schema, &schema);
    }

    #[test]
    fn two_kinds_of_one_word_have_two_definitions() {
        let schema = schema(Spec::kind());
        let properties = |name: &str| {
            let kind = &schema["$defs"][name];
            let body = kind["anyOf"].as_array().and_then(|forms| forms.last()).unwrap_or(kind);
            body["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(properties("sharing.gpus"), ["replace", "slice"]);
        assert_eq!(properties("workload.gpus"), ["is", "parallel"]);
    }
}
