//! YAML out of a tree of nodes, by the table of kinds: in block style, strings quoted by the rules of
//! the writer that the targets use.

use fleetc_targets::write::yaml;
use serde_json::json;

use super::convert::{decimal, groups};
use super::notes::{Lines, Noted};
use crate::language::{Arg, Form, Kind, Occurs};
use crate::syntax::{Node, Scalar, Value};

/// Prints the fields of the root.
pub fn print(root: &Noted<'_>, kind: &'static Kind) -> String {
    let mut writer = Writer::default();
    writer.fields(&[], root, kind, 0, false);
    writer.comments(&root.after, 0);
    writer.out
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Comments for the end of the line.
    beside: Vec<String>,
}

/// What an item is beside its key.
enum Body<'a> {
    Scalar(String),
    Values(&'a [Value]),
    Fields(&'a [Value]),
}

impl Writer {
    fn pad(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    /// Comments and empty lines; no empty line comes first.
    fn comments(&mut self, lines: &Lines, indent: usize) {
        for line in lines {
            match line {
                Some(line) => {
                    self.pad(indent);
                    self.out.push_str(&comment(line));
                }
                None if self.out.is_empty() => continue,
                None => {}
            }
            self.out.push('\n');
        }
    }

    fn end_line(&mut self) {
        for text in std::mem::take(&mut self.beside) {
            self.out.push(' ');
            self.out.push_str(&comment(&text));
        }
        self.out.push('\n');
    }

    /// The value of `is`, properties and children; the first stands on the line that was begun if
    /// `begun` is set, and what is before it has been written.
    fn fields(
        &mut self,
        is: &[Value],
        noted: &Noted<'_>,
        kind: &'static Kind,
        indent: usize,
        begun: bool,
    ) {
        let mut begun = begun;
        let mut start = |writer: &mut Self, first: Option<&Noted<'_>>| {
            if !std::mem::take(&mut begun) {
                if let Some(first) = first {
                    writer.comments(&first.before, indent);
                }
                writer.pad(indent);
            }
        };
        let props = noted.node.iter().flat_map(|node| &node.props);
        let is = is.iter().map(|value| ("is", value));
        for (word, value) in is.chain(props.map(|(word, value)| (word.text.as_str(), value))) {
            start(self, None);
            self.key(word);
            self.value(value, indent);
        }
        for group in groups(&noted.children, Noted::word) {
            let Some(first) = group.first() else { continue };
            start(self, Some(first));
            self.key(first.word());
            self.group(&group, kind, indent + 2);
        }
    }

    /// The items of one word, after its key.
    fn group(&mut self, group: &[&Noted<'_>], kind: &'static Kind, indent: usize) {
        let field = group.first().and_then(|first| kind.field(first.word()));
        let child = match field.map(|field| (&field.form, field.occurs)) {
            Some((Form::Kind(child), occurs)) => Some((child(), occurs)),
            _ => None,
        };
        let list = field.is_some_and(|field| matches!(field.form, Form::List(_)));
        let repeats = matches!(child, Some((_, Occurs::Named | Occurs::Listed)));
        if repeats {
            self.end_line();
        }
        for (index, noted) in group.iter().enumerate() {
            let Some(node) = noted.node else { continue };
            if repeats {
                if index > 0 {
                    self.comments(&noted.before, indent);
                }
                self.item(noted, node, child, indent);
                continue;
            }
            self.beside.extend(noted.side.clone());
            match child {
                Some((kind, _)) => self.body(noted, body(node, kind, &node.args), kind, indent),
                None => match node.args.as_slice() {
                    [value] if !list => self.value(value, indent - 2),
                    values => self.values(values, indent),
                },
            }
        }
    }

    /// An item of a map from names or of a list.
    fn item(
        &mut self,
        noted: &Noted<'_>,
        node: &Node,
        child: Option<(&'static Kind, Occurs)>,
        indent: usize,
    ) {
        let Some((kind, occurs)) = child else { return };
        if occurs == Occurs::Listed {
            let body = body(node, kind, &node.args);
            if let (Body::Fields([]), [], Some(first)) =
                (&body, node.props.as_slice(), noted.children.first())
            {
                self.comments(&first.before, indent);
            }
            self.pad(indent);
            self.out.push('-');
            self.beside.extend(noted.side.clone());
            match body {
                Body::Fields(is) => {
                    self.out.push(' ');
                    self.fields(is, noted, kind, indent + 2, true);
                    self.comments(&noted.after, indent + 2);
                }
                other => self.body(noted, other, kind, indent + 2),
            }
            return;
        }
        let (name, rest) = match node.args.split_first() {
            Some((Value { scalar: Scalar::String(name), .. }, rest)) => (name.as_str(), rest),
            _ => ("", node.args.as_slice()),
        };
        self.pad(indent);
        self.key(name);
        self.beside.extend(noted.side.clone());
        self.body(noted, body(node, kind, rest), kind, indent + 2);
    }

    /// What an item is, after its key.
    fn body(&mut self, noted: &Noted<'_>, body: Body<'_>, kind: &'static Kind, indent: usize) {
        match body {
            Body::Scalar(text) => {
                self.out.push(' ');
                self.scalar(&text, indent);
            }
            Body::Values(values) => self.values(values, indent),
            Body::Fields(is) => {
                self.end_line();
                self.fields(is, noted, kind, indent, false);
            }
        }
        self.comments(&noted.after, indent);
    }

    /// Several values: numbers on one line, others one a line.
    fn values(&mut self, values: &[Value], indent: usize) {
        let number = |value: &Value| matches!(value.scalar, Scalar::Integer(_));
        if values.iter().all(number) {
            let texts: Vec<String> = values.iter().map(|value| scalar(&value.scalar)).collect();
            self.out.push_str(&format!(" [{}]", texts.join(", ")));
            self.end_line();
            return;
        }
        self.end_line();
        for value in values {
            self.pad(indent);
            self.out.push('-');
            self.value(value, indent);
        }
    }

    fn key(&mut self, word: &str) {
        let line = yaml::document(&json!({ word: null }));
        self.out.push_str(line.strip_suffix(" null\n").unwrap_or(&line));
    }

    /// A value on the line of its key; the lines of a text stand deeper than the key.
    fn value(&mut self, value: &Value, indent: usize) {
        self.out.push(' ');
        self.scalar(&scalar(&value.scalar), indent + 2);
    }

    fn scalar(&mut self, text: &str, indent: usize) {
        let mut lines = text.split('\n');
        self.out.push_str(lines.next().unwrap_or_default());
        self.end_line();
        for line in lines {
            if !line.is_empty() {
                self.pad(indent);
                self.out.push_str(line);
            }
            self.out.push('\n');
        }
    }
}

/// What an item is; `args` are its arguments without its name.
fn body<'a>(node: &'a Node, kind: &Kind, args: &'a [Value]) -> Body<'a> {
    let takes_value = matches!(kind.arg, Arg::Value { .. });
    let alone = node.props.is_empty() && node.children.is_empty();
    match args {
        [value] if takes_value && alone => Body::Scalar(scalar(&value.scalar)),
        // Of a kind that may have a value, `true` would be that value.
        [] if takes_value && alone => Body::Scalar("{}".to_owned()),
        [] if alone && !has_values(kind) => Body::Scalar("true".to_owned()),
        values if has_values(kind) => Body::Values(values),
        is => Body::Fields(is),
    }
}

/// True if values follow the name of the kind.
fn has_values(kind: &Kind) -> bool {
    !matches!(kind.arg, Arg::Nothing | Arg::Name(_) | Arg::Value { .. })
}

fn scalar(scalar: &Scalar) -> String {
    match scalar {
        Scalar::String(text) => {
            let text = yaml::document(text);
            text.strip_suffix('\n').unwrap_or(&text).to_owned()
        }
        Scalar::Integer(number) => number.to_string(),
        Scalar::Decimal(raw) => decimal(raw),
        Scalar::Bool(value) => value.to_string(),
        Scalar::Null | Scalar::Collection(_) => "null".to_owned(),
    }
}

fn comment(text: &str) -> String {
    match text.is_empty() {
        true => "#".to_owned(),
        false => format!("# {text}"),
    }
}
