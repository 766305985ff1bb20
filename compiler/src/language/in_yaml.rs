//! What a message says in KDL, said in YAML: help for a YAML file shows YAML.

use kdl::{KdlDocument, KdlEntry, KdlNode, KdlValue};

use super::{Arg, Form, Kind, Occurs, kinds::Spec};

/// A line of help with each piece of KDL between backticks as it would stand in YAML. What is not a
/// piece of the language stays as it is.
pub fn in_yaml(help: &str) -> String {
    let pieces = help.split('`').enumerate();
    let pieces = pieces.map(|(index, piece)| match index % 2 {
        0 => piece.to_owned(),
        _ => translated(piece).unwrap_or_else(|| piece.to_owned()),
    });
    pieces.collect::<Vec<_>>().join("`")
}

fn translated(piece: &str) -> Option<String> {
    match piece {
        "#true" | "#false" => return piece.get(1..).map(str::to_owned),
        _ if !piece.contains([' ', '=']) => return None,
        _ => {}
    }
    let first = piece.split(' ').next()?;
    if first.contains('=') && !first.starts_with(['"', '>', '<', '=']) {
        let document = KdlDocument::parse_v2(&format!("x {piece}")).ok()?;
        let node = document.nodes().first()?;
        let entries = node.entries().iter();
        let all: Vec<String> = entries.map(property).collect::<Option<_>>()?;
        return Some(all.join(", "));
    }
    let document = KdlDocument::parse_v2(piece).ok()?;
    let nodes: Vec<String> = document.nodes().iter().map(node).collect::<Option<_>>()?;
    (!nodes.is_empty()).then(|| nodes.join(", "))
}

fn property(entry: &KdlEntry) -> Option<String> {
    Some(format!("{}: {}", entry.name()?.value(), scalar(entry.value())))
}

fn node(node: &KdlNode) -> Option<String> {
    let word = node.name().value();
    if word == "…" {
        return Some("…".to_owned());
    }
    let (named, args): (Vec<&KdlEntry>, Vec<&KdlEntry>) =
        node.entries().iter().partition(|entry| entry.name().is_some());
    let mut inner: Vec<String> =
        named.iter().map(|entry| property(entry)).collect::<Option<_>>()?;
    let children = node.children().map(KdlDocument::nodes).unwrap_or_default();
    inner.extend(children.iter().map(self::node).collect::<Option<Vec<_>>>()?);
    let args: Vec<String> = args.iter().map(|entry| scalar(entry.value())).collect();
    let words: Vec<&str> = named
        .iter()
        .filter_map(|entry| Some(entry.name()?.value()))
        .chain(children.iter().map(|child| child.name().value()))
        .collect();
    let is_text = node.entries().first().is_some_and(|entry| entry.value().is_string());
    let meaning = meaning(Spec::kind(), word, &words, is_text)?;
    let body = match (meaning, args.as_slice()) {
        (Meaning::List, _) => format!("[{}]", args.join(", ")),
        (Meaning::Value, [value]) => value.clone(),
        (Meaning::Kind(kind, occurs), _) => item(kind, occurs, &args, &inner)?,
        _ => return None,
    };
    Some(format!("{word}: {body}"))
}

fn item(kind: &Kind, occurs: Occurs, args: &[String], inner: &[String]) -> Option<String> {
    let map = format!("{{{}}}", inner.join(", "));
    let one = match (&kind.arg, args) {
        (Arg::Name(_), [name]) if inner.is_empty() => format!("{{{name}: true}}"),
        (Arg::Name(_), [name]) => format!("{{{name}: {map}}}"),
        (Arg::NameAndValues(_), [name, values @ ..]) => {
            format!("{{{name}: [{}]}}", values.join(", "))
        }
        (Arg::Value { .. }, [value]) if inner.is_empty() && occurs != Occurs::Listed => {
            value.clone()
        }
        (Arg::Value { .. }, [value]) => {
            let is = std::iter::once(format!("is: {value}"));
            format!("{{{}}}", is.chain(inner.iter().cloned()).collect::<Vec<_>>().join(", "))
        }
        (Arg::Nothing | Arg::Value { .. }, []) if inner.is_empty() => "true".to_owned(),
        (Arg::Nothing | Arg::Value { .. }, []) => map,
        _ => return None,
    };
    Some(if occurs == Occurs::Listed { format!("[{one}]") } else { one })
}

/// What a word is.
#[derive(Clone, Copy)]
enum Meaning {
    Value,
    List,
    Kind(&'static Kind, Occurs),
}

/// The meaning of a word somewhere in the language that has these words inside: a value if there are
/// none and it can be one, else a kind.
fn meaning(root: &'static Kind, word: &str, inside: &[&str], is_text: bool) -> Option<Meaning> {
    let (mut open, mut seen) = (vec![root], Vec::new());
    let mut found = None;
    while let Some(kind) = open.pop() {
        // A kind is met again below itself, and kinds of one word differ in their fields.
        if seen.iter().any(|other| std::ptr::eq(*other, kind)) {
            continue;
        }
        seen.push(kind);
        for field in kind.fields {
            let here = field.key == word;
            match field.form {
                Form::Value(_) if here && inside.is_empty() => return Some(Meaning::Value),
                Form::List(_) if here && inside.is_empty() => return Some(Meaning::List),
                Form::Kind(child) => {
                    let child = child();
                    let has = |word: &&str| *word == "…" || child.field(word).is_some();
                    let numbers =
                        |ty: &super::Type| matches!(ty.shape, super::Shape::Number { .. });
                    let takes = match child.arg {
                        Arg::Value { ty, .. } => numbers(ty) != is_text,
                        Arg::Name(_) | Arg::NameAndValues(_) => is_text,
                        Arg::Nothing => true,
                    };
                    if here && takes && inside.iter().all(has) && found.is_none() {
                        found = Some(Meaning::Kind(child, field.occurs));
                    }
                    open.push(child);
                }
                _ => {}
            }
        }
    }
    found
}

fn scalar(value: &KdlValue) -> String {
    match value {
        KdlValue::String(text) => {
            let first = |c: char| c.is_ascii_alphabetic() || c == '…';
            let rest =
                |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '…');
            let word = matches!(
                text.to_ascii_lowercase().as_str(),
                "true" | "false" | "null" | "yes" | "no" | "on" | "off"
            );
            match text.starts_with(first) && text.chars().all(rest) && !word {
                true => text.clone(),
                false => format!("\"{text}\""),
            }
        }
        KdlValue::Bool(value) => value.to_string(),
        KdlValue::Null => "null".to_owned(),
        KdlValue::Integer(number) => number.to_string(),
        KdlValue::Float(number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::in_yaml;

    #[test]
    fn help_is_said_in_yaml() {
        for (kdl, yaml) in [
            ("add `system \"…\"`", "add `system: …`"),
            ("add `replicas=4`", "add `replicas: 4`"),
            ("it takes `params=\"7B\" dtype=\"fp16\"`", "it takes `params: \"7B\", dtype: fp16`"),
            ("write `#true`", "write `true`"),
            ("add `slice=\"1g.10gb\"`", "add `slice: \"1g.10gb\"`"),
            ("add `nodes \"gpu[001-032]\"`", "add `nodes: \"gpu[001-032]\"`"),
            (
                "add `slurm \"24.11\" { … }` or `kubernetes \"1.36\" { … }`",
                "add `slurm: {is: \"24.11\", …}` or `kubernetes: {is: \"1.36\", …}`",
            ),
            ("add `gpus \"0-7\" { slice … }`", "add `gpus: {\"0-7\": {slice: …}}`"),
            ("write `gpus 8`", "write `gpus: 8`"),
            ("write `quota \"…\"`", "write `quota: [{is: …}]`"),
            ("define it: `team \"x\" { … }`", "define it: `team: {x: {…}}`"),
            (
                "a fleet can define one: `system \"h100\" extends=\"…\"`",
                "a fleet can define one: `system: {h100: {extends: …}}`",
            ),
            (
                "add `split { cluster \"…\" nodes=\"…\" }`",
                "add `split: {cluster: {…: {nodes: …}}}`",
            ),
            ("write `include \"pools.kdl\"`", "write `include: [pools.kdl]`"),
            ("did you mean `h100`?", "did you mean `h100`?"),
            ("put it in quotes: `\"24.11\"`", "put it in quotes: `\"24.11\"`"),
            ("run `nvidia-smi -q`", "run `nvidia-smi -q`"),
            ("write `\">=580\"`", "write `\">=580\"`"),
        ] {
            assert_eq!(in_yaml(kdl), yaml);
        }
    }
}
