//! Decoding: from the tree to typed items, collecting every mistake on the way.

use std::collections::{BTreeMap, BTreeSet};

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, Span, rules};
use indexmap::IndexMap;

use super::{Arg, Field, Form, Kind, Occurs, Shape, ValueType, did_you_mean, kinds, listing};
use crate::syntax::{Node, Scalar, Value, Word};

/// A value with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it is written.
    pub span: Span,
    /// Its path.
    pub path: ItemPath,
}

/// A name that refers to another item; whether that exists is asked in lowering.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference(pub String);

/// What decoding gathers beside the items.
#[derive(Debug, Default)]
pub struct Cx {
    /// Findings.
    pub diagnostics: Vec<Diagnostic>,
    /// Where each item and value is written.
    pub places: IndexMap<ItemPath, Span>,
    /// Paths of what could not be read: later rules are silent about them.
    pub poisoned: BTreeSet<ItemPath>,
    /// Items with words that nobody knows: what they seem to lack may be what was meant.
    pub unclear: BTreeSet<ItemPath>,
}

impl Cx {
    /// Reports a finding.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Notes that there is something at this path which could not be read.
    pub fn poison(&mut self, path: &ItemPath) {
        self.poisoned.insert(path.clone());
    }

    fn place(&mut self, path: &ItemPath, span: Span) {
        self.places.entry(path.clone()).or_insert(span);
    }

    /// Checks the words of an item against its kind: unknown and repeated ones, and what is missing.
    ///
    /// One cause is one finding: what is missing because it is written otherwise is not news.
    pub(super) fn check_words(&mut self, node: &Node, kind: &'static Kind, path: &ItemPath) {
        let mut lacks: Vec<&'static Field> =
            kind.fields.iter().filter(|field| field.occurs == Occurs::Required).collect();
        lacks.retain(|field| {
            let word = |word: &Word| word.text == field.key;
            !node.props.iter().any(|(name, _)| word(name))
                && !node.children.iter().any(|child| word(&child.name))
        });
        for field in &lacks {
            self.poison(&path.child(field.key));
        }
        let name = self.check_args(node, kind, path, &mut lacks);
        let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
        for (word, _) in node.props.iter().filter(|(word, _)| Some(word.span) != name) {
            match kind.field(&word.text) {
                Some(field) if !field.is_child() => self.once(&mut seen, word, path),
                known => self.unknown_property(word, kind, known, path, &mut lacks),
            }
        }
        for child in node.children.iter().filter(|child| Some(child.name.span) != name) {
            match kind.field(&child.name.text) {
                Some(field) if field.is_child() => {
                    if matches!(field.occurs, Occurs::Optional | Occurs::Required) {
                        self.once(&mut seen, &child.name, path);
                    }
                }
                known => self.unknown_node(child, kind, known, path, &mut lacks),
            }
        }
        for field in lacks {
            self.missing(node, kind, field);
        }
    }

    /// Checks what stands right after the word. Gives the word of a property that holds the name, if
    /// that is where it stands.
    fn check_args(
        &mut self,
        node: &Node,
        kind: &'static Kind,
        path: &ItemPath,
        lacks: &mut Vec<&'static Field>,
    ) -> Option<Span> {
        let allowed = match kind.arg {
            Arg::Nothing => 0,
            Arg::Name(_) | Arg::Value { .. } => 1,
            Arg::NameAndValues(_) => usize::MAX,
        };
        if let Some(extra) = node.args.get(allowed) {
            let title = match allowed {
                0 => format!("`{}` takes no value", kind.name),
                _ => format!("`{}` takes one value, not {}", kind.name, node.args.len()),
            };
            let finding =
                Diagnostic::new(&rules::SPEC_WRONG_TYPE, title).at(extra.span, "too much");
            self.report(finding.help(meant_by(node, kind, allowed, lacks)));
            self.poison(path);
        }
        if node.args.is_empty() {
            let (what, example) = match kind.arg {
                Arg::Nothing | Arg::Value { required: false, .. } => return None,
                Arg::Name(ty) | Arg::NameAndValues(ty) => ("a name", ty.example),
                Arg::Value { ty, .. } => (ty.name, ty.example),
            };
            self.poison(path);
            // A stranger with such a value is probably it, written under a word of its own.
            let ty = match kind.arg {
                Arg::Name(ty) | Arg::NameAndValues(ty) | Arg::Value { ty, .. } => Some(ty),
                Arg::Nothing => None,
            };
            let props = node.props.iter().map(|(word, value)| (word, value));
            let children = node.children.iter().filter_map(|child| match child.args.as_slice() {
                [value] if child.children.is_empty() => Some((&child.name, value)),
                _ => None,
            });
            let stranger = props.chain(children).find(|(word, value)| {
                kind.field(&word.text).is_none() && ty.is_some_and(|ty| takes(ty, value))
            });
            if let Some((word, value)) = stranger {
                let title = format!("`{}` is not a word of `{}`", word.text, kind.name);
                let finding = Diagnostic::new(&rules::SPEC_UNKNOWN_PROPERTY, title)
                    .at(word.span, format!("{what} stands right after `{}`", kind.name));
                self.report(finding.help(format!("write `{} {}`", kind.name, literal(value))));
                return Some(word.span);
            }
            let title = format!("`{}` needs {what}", kind.name);
            let finding = Diagnostic::new(&rules::SPEC_MISSING, title)
                .at(node.name.span, format!("{what} is missing after this"))
                .help(format!("write `{} {example}`", kind.name));
            self.report(finding);
        }
        None
    }

    fn once<'a>(&mut self, seen: &mut BTreeMap<&'a str, Span>, word: &'a Word, path: &ItemPath) {
        if let Some(first) = seen.insert(&word.text, word.span) {
            let title = format!("`{}` is stated twice", word.text);
            let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, title)
                .at(word.span, "stated again here")
                .at(first, "first stated here")
                .help("keep one of the two");
            self.report(finding);
            self.poison(&path.child(&word.text));
        }
    }

    fn unknown_property(
        &mut self,
        word: &Word,
        kind: &'static Kind,
        known: Option<&'static Field>,
        path: &ItemPath,
        lacks: &mut Vec<&'static Field>,
    ) {
        let Some(field) = known else { return self.unknown_word(word, kind, false, path, lacks) };
        let title = format!("`{}` is a child of `{}`, not a property", word.text, kind.name);
        let finding = Diagnostic::new(&rules::SPEC_UNKNOWN_PROPERTY, title)
            .at(word.span, "written as a property")
            .help(format!("write it in braces: `{{ {} … }}`", field.key));
        self.report(finding);
        self.poison(&path.child(&word.text));
    }

    fn unknown_node(
        &mut self,
        child: &Node,
        kind: &'static Kind,
        known: Option<&'static Field>,
        path: &ItemPath,
        lacks: &mut Vec<&'static Field>,
    ) {
        let word = &child.name;
        let Some(field) = known else { return self.unknown_word(word, kind, true, path, lacks) };
        let title = format!("`{}` is a property of `{}`, not a child", word.text, kind.name);
        let finding = Diagnostic::new(&rules::SPEC_UNKNOWN_NODE, title)
            .at(word.span, "written as a child")
            .help(format!("write it on the line of `{}`: `{}=…`", kind.name, field.key));
        self.report(finding);
        self.poison(&path.child(&word.text));
    }

    /// A word that the kind does not have. The nearest known word decides what it was meant to be,
    /// so that a mistake is the same finding in KDL and in YAML; else a word of an item inside, else
    /// what is missing.
    fn unknown_word(
        &mut self,
        word: &Word,
        kind: &'static Kind,
        as_child: bool,
        path: &ItemPath,
        lacks: &mut Vec<&'static Field>,
    ) {
        let near = did_you_mean(&word.text, kind.fields.iter().map(|field| field.key));
        let field = near.and_then(|key| kind.field(key));
        let is_child = field.map_or(as_child, Field::is_child);
        let rule = if is_child { &rules::SPEC_UNKNOWN_NODE } else { &rules::SPEC_UNKNOWN_PROPERTY };
        let title = match kind.name {
            "" => format!("`{}` is not a kind of item", word.text),
            name => format!("`{}` is not a word of `{name}`", word.text),
        };
        let finding = Diagnostic::new(rule, title).at(word.span, "not known here");
        let words = || listing(kind.fields.iter().map(|field| field.key));
        let inner = inner_kind(kind, &word.text).filter(|_| near.is_none());
        let lack = match lacks.as_slice() {
            [_] => Some(0),
            several => several.iter().position(|field| field.is_child() == as_child),
        };
        let finding = match (field, inner, lack) {
            (Some(field), ..) => {
                self.poison(&path.child(field.key));
                lacks.retain(|lack| lack.key != field.key);
                if word.text.ends_with(':') {
                    finding.help(format!("KDL has no colon after a word: write `{} …`", field.key))
                } else {
                    finding.help(format!("did you mean `{}`?", field.key))
                }
            }
            (None, Some(inner), _) => {
                self.poison(&path.child(inner.name));
                finding.help(format!("it stands in `{}`", inner.name))
            }
            (None, None, _) if kind.fields.is_empty() => finding.help("it takes nothing inside"),
            (None, None, Some(lack)) => {
                let field = lacks.remove(lack);
                let example = example(field);
                finding
                    .help(format!("`{}` is missing: perhaps `{example}` is meant", field.key))
                    .note(format!("`{}` knows {}", kind.name, words()))
            }
            (None, None, None) => {
                self.unclear.insert(path.clone());
                finding.help(format!("it knows {}", words()))
            }
        };
        self.report(finding);
    }

    fn missing(&mut self, node: &Node, kind: &'static Kind, field: &Field) {
        let example = example(field);
        let name = node.args.first().filter(|_| !matches!(kind.arg, Arg::Nothing));
        let (title, span) = match (kind.name, name) {
            ("", _) => (format!("the spec has no `{}`", field.key), node.name.span),
            (name, Some(Value { scalar: Scalar::String(arg), .. })) => {
                (format!("{name} `{arg}` states no `{}`", field.key), node.head())
            }
            (name, _) => (format!("`{name}` states no `{}`", field.key), node.head()),
        };
        let finding = Diagnostic::new(&rules::SPEC_MISSING, title)
            .at(span, format!("`{}` is missing in here", field.key))
            .help(format!("add `{example}`"));
        self.report(finding);
    }

    /// Reads the argument of an item.
    pub(super) fn arg<T: ValueType>(&mut self, node: &Node, path: &ItemPath) -> Option<At<T>> {
        self.value(node.args.first()?, path)
    }

    /// Reads the values after the argument of an item. Each has a path of its own, by its text.
    pub(super) fn rest<T: ValueType>(&mut self, node: &Node, path: &ItemPath) -> Vec<At<T>> {
        let values = node.args.iter().skip(1);
        values.filter_map(|value| self.value(value, &path.keyed("line", [text(value)]))).collect()
    }

    /// Reads a property.
    pub(super) fn property<T: ValueType>(
        &mut self,
        node: &Node,
        key: &str,
        path: &ItemPath,
    ) -> Option<At<T>> {
        // KDL keeps the last of two equal properties; that is reported as a duplicate.
        let (_, value) = node.props.iter().find(|(word, _)| word.text == key)?;
        self.value(value, &path.child(key))
    }

    /// Reads a child with one value.
    pub(super) fn single<T: ValueType>(
        &mut self,
        node: &Node,
        key: &str,
        path: &ItemPath,
    ) -> Option<At<T>> {
        let child = node.children.iter().find(|child| child.name.text == key)?;
        let path = path.child(key);
        self.leaf(child, Some(1), &T::TYPE, &path);
        self.value(child.args.first()?, &path)
    }

    /// Reads a child with several values.
    pub(super) fn list<T: ValueType>(
        &mut self,
        node: &Node,
        key: &str,
        path: &ItemPath,
    ) -> Option<Vec<At<T>>> {
        let child = node.children.iter().find(|child| child.name.text == key)?;
        let path = path.child(key);
        self.leaf(child, None, &T::TYPE, &path);
        self.place(&path, child.head());
        let values = child.args.iter();
        Some(values.filter_map(|value| self.value_in(value, &path)).collect())
    }

    /// A child that is a value and nothing else.
    fn leaf(&mut self, child: &Node, most: Option<usize>, ty: &super::Type, path: &ItemPath) {
        let name = &child.name.text;
        if let Some(finding) = bare_condition(child) {
            self.report(finding);
            self.poison(path);
            return;
        }
        let extra = child.props.first().map(|(word, _)| word.span);
        let extra = extra.or_else(|| child.children.first().map(|inner| inner.name.span));
        let extra = extra.or_else(|| child.args.get(most?).map(|arg| arg.span));
        if let Some(span) = extra {
            let title = format!("`{name}` takes {} and nothing else", ty.name);
            let finding = Diagnostic::new(&rules::SPEC_WRONG_TYPE, title).at(span, "too much");
            self.report(finding.help(format!("write `{name} {}`", ty.example)));
            self.poison(path);
        } else if child.args.is_empty() {
            let title = format!("`{name}` needs {}", ty.name);
            let finding = Diagnostic::new(&rules::SPEC_MISSING, title)
                .at(child.name.span, "nothing follows")
                .help(format!("write `{name} {}`", ty.example));
            self.report(finding);
            self.poison(path);
        }
    }

    fn value<T: ValueType>(&mut self, value: &Value, path: &ItemPath) -> Option<At<T>> {
        self.place(path, value.span);
        self.value_in(value, path)
    }

    fn value_in<T: ValueType>(&mut self, value: &Value, path: &ItemPath) -> Option<At<T>> {
        match T::read(value) {
            Ok(read) => Some(At { value: read, span: value.span, path: path.clone() }),
            Err(finding) => {
                self.report(*finding);
                self.poison(path);
                None
            }
        }
    }

    /// The children of one kind, each with its path; repeated keys are reported once.
    pub(super) fn children<'n>(
        &mut self,
        node: &'n Node,
        kind: &'static Kind,
        occurs: Occurs,
        path: &ItemPath,
    ) -> Vec<(&'n Node, ItemPath)> {
        let mut found: Vec<(&Node, ItemPath)> = Vec::new();
        let mut defined: BTreeMap<ItemPath, Span> = BTreeMap::new();
        for child in node.children.iter().filter(|child| child.name.text == kind.name) {
            let path = match occurs {
                Occurs::Optional | Occurs::Required => path.child(kind.name),
                Occurs::Named | Occurs::Listed => item_path(child, kind, occurs, path),
            };
            let repeats = matches!(occurs, Occurs::Named | Occurs::Listed);
            if let Some(first) = defined.get(&path) {
                if repeats {
                    let title = format!("{} is defined twice", describe(child));
                    let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, title)
                        .at(child.head(), "defined again here")
                        .at(*first, "first defined here")
                        .help("rename one of the two, or merge them");
                    self.report(finding);
                }
                continue;
            }
            self.place(&path, child.head());
            defined.insert(path.clone(), child.head());
            found.push((child, path));
        }
        found
    }
}

/// How a field is written.
fn example(field: &Field) -> String {
    match field.form {
        Form::Property(ty) => format!("{}={}", field.key, ty.example),
        Form::Value(ty) | Form::List(ty) => format!("{} {}", field.key, ty.example),
        Form::Kind(_) => format!("{} …", field.key),
    }
}

/// What values after an item were meant to be: a property with its `=` forgotten, the properties that
/// it lacks, or nothing. Takes what it names off the list.
fn meant_by(
    node: &Node,
    kind: &'static Kind,
    allowed: usize,
    lacks: &mut Vec<&'static Field>,
) -> String {
    let mut extra = node.args.iter().skip(allowed);
    let (first, second) = (extra.next(), extra.next());
    if let (Some(Value { scalar: Scalar::String(word), .. }), Some(value)) = (first, second)
        && kind.field(word).is_some_and(|field| !field.is_child())
    {
        lacks.retain(|lack| lack.key != word);
        return format!("write `{word}={}`", literal(value));
    }
    let (properties, rest): (Vec<_>, Vec<_>) =
        std::mem::take(lacks).into_iter().partition(|field| !field.is_child());
    *lacks = rest;
    let one = match (properties.as_slice(), kind.fields) {
        ([only], _) => Some(*only),
        ([], [first, ..]) if allowed == 0 => Some(first),
        _ => None,
    };
    if let (Some(field), Some(value), None) = (one, first, second)
        && let Form::Property(ty) = &field.form
        && takes(ty, value)
    {
        return format!("write `{}={}`", field.key, literal(value));
    }
    match properties.as_slice() {
        [] => "remove it".to_owned(),
        _ => {
            let all: Vec<String> = properties.iter().map(|field| example(field)).collect();
            format!("it takes `{}`", all.join(" "))
        }
    }
}

/// True if a value looks like one of the type.
fn takes(ty: &super::Type, value: &Value) -> bool {
    match (ty.shape, &value.scalar) {
        (Shape::Words(words), Scalar::String(text)) => words.contains(&text.as_str()),
        (Shape::Text(_), Scalar::String(_))
        | (Shape::Number { .. }, Scalar::Integer(_))
        | (Shape::Bool, Scalar::Bool(_)) => true,
        _ => false,
    }
}

/// A value as it is written.
fn literal(value: &Value) -> String {
    match &value.scalar {
        Scalar::String(text) => format!("\"{text}\""),
        Scalar::Integer(number) => number.to_string(),
        Scalar::Decimal(raw) => raw.clone(),
        Scalar::Bool(value) => format!("#{value}"),
        Scalar::Null | Scalar::Collection(_) => "…".to_owned(),
    }
}

/// The one kind inside this one that has the word.
fn inner_kind(kind: &'static Kind, word: &str) -> Option<&'static Kind> {
    let mut inner = kind.fields.iter().filter_map(|field| match field.form {
        Form::Kind(inner) if inner().field(word).is_some() => Some(inner()),
        _ => None,
    });
    match (inner.next(), inner.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// KDL reads a bare `>=580` as a property called `>`.
fn bare_condition(child: &Node) -> Option<Diagnostic> {
    let (word, value) = child.props.first()?;
    if !matches!(word.text.as_str(), ">" | "<") {
        return None;
    }
    let raw = match &value.scalar {
        Scalar::Integer(number) => number.to_string(),
        Scalar::Decimal(text) | Scalar::String(text) => text.clone(),
        Scalar::Bool(_) | Scalar::Null | Scalar::Collection(_) => String::new(),
    };
    let finding = Diagnostic::new(&rules::SPEC_SYNTAX, "a condition on a version stands in quotes")
        .at(Span { end: value.span.end, ..word.span }, "KDL reads a property here");
    Some(finding.help(format!("put it in quotes: `\"{}={raw}\"`", word.text)))
}

fn describe(node: &Node) -> String {
    match node.args.first() {
        Some(Value { scalar: Scalar::String(text), .. }) => format!("{} `{text}`", node.name.text),
        _ => format!("`{}`", node.name.text),
    }
}

/// A value as text, for paths.
fn text(value: &Value) -> String {
    match &value.scalar {
        Scalar::String(text) | Scalar::Decimal(text) => text.clone(),
        Scalar::Integer(number) => number.to_string(),
        Scalar::Bool(value) => value.to_string(),
        Scalar::Null | Scalar::Collection(_) => String::new(),
    }
}

fn item_path(child: &Node, kind: &'static Kind, occurs: Occurs, parent: &ItemPath) -> ItemPath {
    if occurs == Occurs::Named {
        let name = child.args.first().map(text).unwrap_or_default();
        return match parent.as_str() {
            _ if kind.unique => ItemPath::item(kind.name, name),
            "" => ItemPath::item(kind.name, name),
            _ => parent.keyed(kind.name, [name]),
        };
    }
    let keys = kind.key.iter().filter_map(|key| match *key {
        "is" => child.args.first().map(text),
        key => {
            let prop = child.props.iter().find(|(word, _)| word.text == key);
            let inner = || child.children.iter().find(|inner| inner.name.text == key);
            prop.map(|(_, value)| text(value)).or_else(|| inner()?.args.first().map(text))
        }
    });
    parent.keyed(kind.name, keys)
}

/// Decodes the whole spec. `file` is the entry file, for what the spec lacks as a whole.
pub fn spec(file: u32, nodes: Vec<Node>, cx: &mut Cx) -> kinds::Spec {
    let start = Span { file, start: 0, end: 0 };
    let root = Node {
        name: Word { text: String::new(), span: start },
        args: Vec::new(),
        props: Vec::new(),
        children: nodes,
    };
    kinds::Spec::decode(&root, ItemPath::default(), cx)
}
