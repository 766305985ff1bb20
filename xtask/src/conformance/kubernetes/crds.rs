//! Definitions of the resources that a site's operators bring, made from the schemas of `tests/crds/`: a
//! field that is not named there is refused.

use fleetc_tests::{folder, repository};
use serde_json::{Value, json};

use super::Failure;

/// Whose definitions are not made from the schemas: what the API server has itself, and what Kueue's own
/// module brings.
const OTHERS: [&str; 2] = ["kubernetes/", "kueue/"];

/// A `List` of every definition.
pub fn definitions() -> Result<Value, Failure> {
    let mut definitions = Vec::new();
    for (path, text) in folder(&repository().join("tests/crds"))? {
        let Some(key) = path.strip_suffix(".json") else { continue };
        if OTHERS.iter().any(|other| path.starts_with(other)) {
            continue;
        }
        let file: Value = serde_json::from_str(&text)?;
        let word = |word: &str| {
            let found = file.get(word).and_then(Value::as_str);
            found.ok_or_else(|| format!("tests/crds/{path} does not say its {word}"))
        };
        let key = key.rsplit('/').next().unwrap_or(key);
        let mut parts = key.split('_');
        let (Some(group), Some(version)) = (parts.next(), parts.next()) else {
            return Err(
                format!("tests/crds/{path} is not called by group, version and kind").into()
            );
        };
        let (kind, plural, scope) = (word("kind")?, word("plural")?, word("scope")?);
        let schema =
            file.get("schema").ok_or_else(|| format!("tests/crds/{path} has no schema"))?;
        definitions.push(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{group}") },
            "spec": {
                "group": group, "scope": scope,
                "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List") },
                "versions": [{
                    "name": version, "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": schema },
                }],
            },
        }));
    }
    Ok(json!({ "apiVersion": "v1", "kind": "List", "items": definitions }))
}
