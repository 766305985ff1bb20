//! Objects as JSON: what is read of them, and how two of them are compared.

use serde_json::Value;

use super::Failure;

/// The text at a pointer; empty if there is none.
pub fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Kind, namespace and name.
pub fn name(object: &Value) -> String {
    let part = |pointer| text(object, pointer);
    format!("{} {}/{}", part("/kind"), part("/metadata/namespace"), part("/metadata/name"))
}

/// Status and message of a condition.
pub fn condition<'v>(object: &'v Value, kind: &str) -> Option<(&'v str, &'v str)> {
    let all = object.pointer("/status/conditions")?.as_array()?;
    let found = all.iter().find(|condition| text(condition, "/type") == kind)?;
    Some((text(found, "/status"), text(found, "/message")))
}

/// The pointer of the first value that is not in `there` as it is in `written`. What `there` has beside
/// is the server's.
pub fn differs(written: &Value, there: &Value) -> Option<String> {
    match (written, there) {
        (Value::Object(written), Value::Object(there)) => {
            written.iter().find_map(|(word, value)| {
                let step = format!("/{}", word.replace('~', "~0").replace('/', "~1"));
                match there.get(word) {
                    Some(there) => differs(value, there).map(|rest| step + &rest),
                    None => Some(step),
                }
            })
        }
        (Value::Array(written), Value::Array(there)) if written.len() == there.len() => {
            let mut pairs = written.iter().zip(there).enumerate();
            pairs.find_map(|(at, (written, there))| {
                Some(format!("/{at}{}", differs(written, there)?))
            })
        }
        (written, there) if written == there => None,
        _ => Some(String::new()),
    }
}

/// The objects of a `List`, or the one that it is.
pub fn items(object: Value) -> Vec<Value> {
    match object {
        Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => {
            match list.remove("items") {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            }
        }
        one => vec![one],
    }
}

/// Sets a word of the map at a pointer.
pub fn set(object: &mut Value, at: &str, word: &str, value: Value) -> Result<(), Failure> {
    let map = object.pointer_mut(at).and_then(Value::as_object_mut);
    map.ok_or_else(|| format!("no map at `{at}`"))?.insert(word.to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_server_adds_is_no_difference_and_what_it_writes_otherwise_is() {
        let written = json!({ "a/b": [{ "c": "1000m" }], "d": false });
        let same = json!({ "a/b": [{ "c": "1000m", "e": 1 }], "d": false, "status": {} });
        assert_eq!(differs(&written, &same), None);
        for (there, path) in [
            (json!({ "a/b": [{ "c": "1" }], "d": false }), "/a~1b/0/c"),
            (json!({ "a/b": [{ "c": "1000m" }] }), "/d"),
            (json!({ "a/b": [{ "c": "1000m" }, {}], "d": false }), "/a~1b"),
            (json!({ "a/b": [{}], "d": false }), "/a~1b/0/c"),
        ] {
            assert_eq!(differs(&written, &there).as_deref(), Some(path));
        }
    }
}
