//! KDL out of a tree of nodes, in the style of `fmt`.

use super::convert::decimal;
use super::notes::{Lines, Noted};
use super::{WIDTH, strings};
use crate::syntax::{Node, Scalar};

/// Prints the nodes below the root.
pub fn print(root: &Noted<'_>) -> String {
    let mut out = String::new();
    children(&mut out, root, 0);
    out
}

fn children(out: &mut String, parent: &Noted<'_>, indent: usize) {
    for (index, child) in parent.children.iter().enumerate() {
        comments(out, &child.before, indent, index == 0);
        node(out, child, indent);
    }
    comments(out, &parent.after, indent, parent.children.is_empty());
}

fn node(out: &mut String, noted: &Noted<'_>, indent: usize) {
    let pad = " ".repeat(indent);
    let side = noted.side.as_deref().map(comment).map(|text| format!(" {text}"));
    let side = side.unwrap_or_default();
    let head = noted.node.map(head).unwrap_or_default();
    if noted.children.is_empty() && noted.after.is_empty() {
        out.push_str(&format!("{pad}{head}{side}\n"));
        return;
    }
    if let Some(flat) = flat(noted).filter(|text| indent + text.chars().count() <= WIDTH) {
        out.push_str(&format!("{pad}{flat}\n"));
        return;
    }
    out.push_str(&format!("{pad}{head} {{{side}\n"));
    children(out, noted, indent + 4);
    out.push_str(&format!("{pad}}}\n"));
}

/// The node on one line, if its children are leaves and nothing in it has a comment.
fn flat(noted: &Noted<'_>) -> Option<String> {
    let leaves = noted.children.iter().all(|child| child.children.is_empty());
    if !leaves || noted.has_comments() {
        return None;
    }
    let inside: Vec<String> =
        noted.children.iter().filter_map(|child| child.node).map(head).collect();
    Some(format!("{} {{ {} }}", head(noted.node?), inside.join("; ")))
}

/// The name, arguments and properties.
fn head(node: &Node) -> String {
    let args = node.args.iter().map(|value| format!(" {}", scalar(&value.scalar)));
    let props = node
        .props
        .iter()
        .map(|(word, value)| format!(" {}={}", strings::name(&word.text), scalar(&value.scalar)));
    std::iter::once(strings::name(&node.name.text)).chain(args).chain(props).collect()
}

fn scalar(scalar: &Scalar) -> String {
    match scalar {
        Scalar::String(text) => strings::quoted(text),
        Scalar::Integer(number) => number.to_string(),
        Scalar::Decimal(raw) => decimal(raw),
        Scalar::Bool(value) => format!("#{value}"),
        Scalar::Null | Scalar::Collection(_) => "#null".to_owned(),
    }
}

/// Comments and empty lines; no empty line comes first in a block.
fn comments(out: &mut String, lines: &Lines, indent: usize, first: bool) {
    for line in lines.iter().skip_while(|line| first && line.is_none()) {
        if let Some(line) = line {
            out.push_str(&format!("{}{}", " ".repeat(indent), comment(line)));
        }
        out.push('\n');
    }
}

fn comment(text: &str) -> String {
    match text.is_empty() {
        true => "//".to_owned(),
        false => format!("// {text}"),
    }
}
