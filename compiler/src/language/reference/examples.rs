//! Examples of the language reference: found in a spec or made from the table, printed in both
//! forms.

use fleetc_schema::diag::Span;
use fleetc_targets::write::yaml;
use serde_json::{Map, Value as Json};

use crate::language::{Arg, Field, Form, Kind, Occurs, Reference, Shape, Type, ValueType};
use crate::syntax::{Node, Scalar, Value, Word};

/// Lines of KDL longer than this are broken.
const WIDTH: usize = 88;

/// Every item of some specs with its kind.
pub(super) struct Examples {
    root: &'static Kind,
    items: Vec<(&'static Kind, Node)>,
}

impl Examples {
    pub(super) fn new(root: &'static Kind, specs: &[Node]) -> Self {
        let top = Node {
            name: Word { text: root.name.to_owned(), span: NOWHERE },
            args: Vec::new(),
            props: Vec::new(),
            children: specs.to_vec(),
        };
        let mut items = vec![(root, top)];
        collect(root, specs, &mut items);
        Self { root, items }
    }

    /// An item of a kind in KDL and in YAML: the one that shows the most of its fields.
    pub(super) fn of(&self, kind: &'static Kind, occurs: Occurs) -> (String, String) {
        let shown = |node: &Node| kind.fields.iter().filter(|field| has(node, field)).count();
        let mut best: Option<&Node> = None;
        for node in self.items_of(kind) {
            if best.is_none_or(|best| shown(node) > shown(best)) {
                best = Some(node);
            }
        }
        let node = best.cloned().unwrap_or_else(|| self.made(kind));
        let mut text = String::new();
        kdl(&node, 0, &mut text);
        let body = item(&node, kind);
        let body = match occurs {
            Occurs::Optional | Occurs::Required => body,
            Occurs::Listed => Json::Array(vec![body]),
            Occurs::Named => {
                let name = node.args.first().map(|arg| plain(&arg.scalar)).unwrap_or_default();
                Json::Object(Map::from_iter([(name, body)]))
            }
        };
        (text, yaml::document(&Json::Object(Map::from_iter([(kind.name.to_owned(), body)]))))
    }

    /// A field in KDL, as some item writes it, or made from its type.
    pub(super) fn field(&self, kind: &'static Kind, field: &Field, ty: &Type) -> String {
        let found = self.items_of(kind).find_map(|node| match field.form {
            Form::Property(_) => {
                let (word, value) = node.props.iter().find(|(word, _)| word.text == field.key)?;
                Some(format!("{}={}", word.text, scalar(&value.scalar)))
            }
            Form::Value(_) | Form::List(_) | Form::Kind(_) => {
                let child = node.children.iter().find(|child| child.name.text == field.key)?;
                Some(head(child))
            }
        });
        found.unwrap_or_else(|| {
            let example = self.example(kind, field.key, ty);
            match field.form {
                Form::Property(_) => format!("{}={example}", field.key),
                Form::Value(_) | Form::List(_) | Form::Kind(_) => {
                    format!("{} {example}", field.key)
                }
            }
        })
    }

    /// The kind that a name refers to: the one of that word, or the item's own.
    pub(super) fn target(
        &self,
        kind: &'static Kind,
        key: &str,
        ty: &Type,
    ) -> Option<&'static Kind> {
        if ty.name != Reference::TYPE.name {
            return None;
        }
        let named = |word: &str| {
            self.root.fields.iter().find_map(|field| match field.form {
                Form::Kind(child) if child().name == word => Some(child()),
                _ => None,
            })
        };
        named(key).or_else(|| named(key.strip_suffix('s')?)).or_else(|| named(kind.name))
    }

    /// An example of a value in KDL: of a name, the example of what it refers to.
    fn example(&self, kind: &'static Kind, key: &str, ty: &Type) -> String {
        match (self.target(kind, key, ty).map(|target| &target.arg), ty.shape) {
            (Some(Arg::Name(name)), _) => name.example.to_owned(),
            (_, Shape::Number { min, max }) => match ty.example.parse::<u32>() {
                Ok(number) => number.clamp(min, max).to_string(),
                Err(_) => ty.example.to_owned(),
            },
            _ => ty.example.to_owned(),
        }
    }

    /// An item with every value that it can have, and the items that it must have.
    fn made(&self, kind: &'static Kind) -> Node {
        let word = |text: &str| Word { text: text.to_owned(), span: NOWHERE };
        let value = |key: &str, ty: &Type| {
            let scalar = written(&self.example(kind, key, ty));
            Value { scalar, span: NOWHERE }
        };
        let empty = |name: &str| Node {
            name: word(name),
            args: Vec::new(),
            props: Vec::new(),
            children: Vec::new(),
        };
        let mut node = empty(kind.name);
        match kind.arg {
            Arg::Nothing => {}
            Arg::Name(ty) | Arg::NameAndValues(ty) | Arg::Value { ty, .. } => {
                node.args.push(value("", ty));
            }
        }
        for field in kind.fields {
            match field.form {
                Form::Property(ty) => node.props.push((word(field.key), value(field.key, ty))),
                Form::Value(ty) | Form::List(ty) => {
                    let args = vec![value(field.key, ty)];
                    node.children.push(Node { args, ..empty(field.key) });
                }
                Form::Kind(child) if field.occurs == Occurs::Required => {
                    node.children.push(self.made(child()));
                }
                Form::Kind(_) => {}
            }
        }
        node
    }

    fn items_of(&self, kind: &'static Kind) -> impl Iterator<Item = &Node> {
        let of = move |known: &'static Kind| std::ptr::eq(known, kind);
        self.items.iter().filter(move |(known, _)| of(known)).map(|(_, node)| node)
    }
}

fn collect(kind: &'static Kind, nodes: &[Node], items: &mut Vec<(&'static Kind, Node)>) {
    for node in nodes {
        if let Some(Field { form: Form::Kind(child), .. }) = kind.field(&node.name.text) {
            items.push((child(), node.clone()));
            collect(child(), &node.children, items);
        }
    }
}

fn has(node: &Node, field: &Field) -> bool {
    node.props.iter().any(|(word, _)| word.text == field.key)
        || node.children.iter().any(|child| child.name.text == field.key)
}

const NOWHERE: Span = Span { file: 0, start: 0, end: 0 };

/// The scalar of an example in the table, which is written in KDL.
fn written(example: &str) -> Scalar {
    match (example, example.parse()) {
        ("#true", _) => Scalar::Bool(true),
        ("#false", _) => Scalar::Bool(false),
        (_, Ok(number)) => Scalar::Integer(number),
        (text, Err(_)) => Scalar::String(text.trim_matches('"').to_owned()),
    }
}

fn kdl(node: &Node, indent: usize, text: &mut String) {
    let pad = " ".repeat(indent);
    let short = line(node);
    if indent + short.chars().count() <= WIDTH {
        text.push_str(&format!("{pad}{short}\n"));
        return;
    }
    text.push_str(&format!("{pad}{} {{\n", head(node)));
    for child in &node.children {
        kdl(child, indent + 4, text);
    }
    text.push_str(&format!("{pad}}}\n"));
}

/// An item on one line.
fn line(node: &Node) -> String {
    let children: Vec<String> = node.children.iter().map(line).collect();
    match children.is_empty() {
        true => head(node),
        false => format!("{} {{ {} }}", head(node), children.join("; ")),
    }
}

/// The word, its values and its properties.
fn head(node: &Node) -> String {
    let args = node.args.iter().map(|arg| scalar(&arg.scalar));
    let props =
        node.props.iter().map(|(word, value)| format!("{}={}", word.text, scalar(&value.scalar)));
    std::iter::once(node.name.text.clone()).chain(args).chain(props).collect::<Vec<_>>().join(" ")
}

fn scalar(scalar: &Scalar) -> String {
    match scalar {
        Scalar::String(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        Scalar::Integer(number) => number.to_string(),
        Scalar::Decimal(text) => text.clone(),
        Scalar::Bool(value) => format!("#{value}"),
        Scalar::Null | Scalar::Collection(_) => "#null".to_owned(),
    }
}

fn plain(value: &Scalar) -> String {
    match value {
        Scalar::String(text) | Scalar::Decimal(text) => text.clone(),
        other => scalar(other),
    }
}

/// An item as YAML has it.
fn item(node: &Node, kind: &'static Kind) -> Json {
    if let Arg::NameAndValues(_) = kind.arg {
        return Json::Array(node.args.iter().skip(1).map(|arg| json(&arg.scalar)).collect());
    }
    let mut map = Map::new();
    let argument = node.args.first().map(|arg| json(&arg.scalar));
    if let (Arg::Value { .. }, Some(argument)) = (&kind.arg, &argument) {
        map.insert("is".to_owned(), argument.clone());
    }
    for (word, value) in &node.props {
        map.insert(word.text.clone(), json(&value.scalar));
    }
    for child in &node.children {
        let Some(field) = kind.field(&child.name.text) else { continue };
        let values = || child.args.iter().map(|arg| json(&arg.scalar)).collect::<Vec<_>>();
        let body = match field.form {
            Form::Property(_) | Form::Value(_) => values().into_iter().next().unwrap_or_default(),
            Form::List(_) => Json::Array(values()),
            Form::Kind(inner) => item(child, inner()),
        };
        match field.occurs {
            Occurs::Optional | Occurs::Required => {
                map.insert(field.key.to_owned(), body);
            }
            Occurs::Named => {
                let name = child.args.first().map(|arg| plain(&arg.scalar)).unwrap_or_default();
                let all = map.entry(field.key).or_insert_with(|| Json::Object(Map::new()));
                if let Json::Object(all) = all {
                    all.insert(name, body);
                }
            }
            Occurs::Listed => {
                let all = map.entry(field.key).or_insert_with(|| Json::Array(Vec::new()));
                if let Json::Array(all) = all {
                    all.push(body);
                }
            }
        }
    }
    match (&kind.arg, argument, map.len()) {
        (Arg::Value { .. }, Some(argument), 1) => argument,
        (Arg::Nothing | Arg::Name(_), _, 0) => Json::Bool(true),
        _ => Json::Object(map),
    }
}

fn json(scalar: &Scalar) -> Json {
    match scalar {
        Scalar::String(text) | Scalar::Decimal(text) => Json::String(text.clone()),
        Scalar::Integer(number) => i64::try_from(*number).map_or(Json::Null, Json::from),
        Scalar::Bool(value) => Json::Bool(*value),
        Scalar::Null | Scalar::Collection(_) => Json::Null,
    }
}
