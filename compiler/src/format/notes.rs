//! Which comment belongs to which item, for the way from one form to the other.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser};

use super::kdl::extras;
use super::reader;
use super::tokens::NEWLINES;
use super::tree::{Body, Gap, Item, Part};
use crate::source::Form;
use crate::syntax::Node;

/// Comments without their marks, each on its own line; none is an empty line.
pub type Lines = Vec<Option<String>>;

/// A node with its comments.
#[derive(Debug, Default)]
pub struct Noted<'n> {
    /// The node; none at the root.
    pub node: Option<&'n Node>,
    /// Lines before it.
    pub before: Lines,
    /// At the end of its line.
    pub side: Option<String>,
    /// Its children.
    pub children: Vec<Noted<'n>>,
    /// Lines after the last of its children.
    pub after: Lines,
}

impl<'n> Noted<'n> {
    fn of(node: &'n Node) -> Self {
        Self { node: Some(node), ..Self::default() }
    }

    /// The word of the node.
    pub fn word(&self) -> &str {
        self.node.map_or("", |node| node.name.text.as_str())
    }

    /// True if there is a comment inside or at its side.
    pub fn has_comments(&self) -> bool {
        let in_child =
            |child: &Self| child.before.iter().any(Option::is_some) || child.has_comments();
        self.side.is_some() || !self.after.is_empty() || self.children.iter().any(in_child)
    }
}

/// The tree without comments, and how many there were.
pub fn without<'n>(text: &str, form: Form, nodes: &'n [Node]) -> (Noted<'n>, usize) {
    fn bare(node: &Node) -> Noted<'_> {
        Noted { children: node.children.iter().map(bare).collect(), ..Noted::of(node) }
    }
    let all = match form {
        Form::Kdl => kdl_count(text),
        Form::Yaml => yaml_comments(text).len(),
    };
    (Noted { children: nodes.iter().map(bare).collect(), ..Noted::default() }, all)
}

/// Comments and parts that are taken out.
fn kdl_count(text: &str) -> usize {
    let (comments, [_, taken_out, _]) = extras(text);
    comments.len() + taken_out
}

/// The tree of a KDL text with its comments, and how many have no place.
pub fn of_kdl<'n>(text: &str, nodes: &'n [Node]) -> (Noted<'n>, usize) {
    let mut root = Noted::default();
    let mut kept = 0;
    kdl_items(&reader::read(text), nodes, &mut root, &mut kept);
    (root, kdl_count(text).saturating_sub(kept))
}

fn kdl_items<'n>(items: &[Item<'_>], nodes: &'n [Node], parent: &mut Noted<'n>, kept: &mut usize) {
    let mut nodes = nodes.iter();
    let (mut waiting, mut blank) = (Lines::new(), false);
    // Whose line it is: the parent's at its brace, a child's after it, nobody's after a comment.
    let mut line = Line::Parent;
    for item in items {
        if item.gap != Gap::Same {
            line = Line::Nobody;
        }
        blank |= item.gap == Gap::Blank;
        let first = parent.children.is_empty() && waiting.is_empty();
        match &item.body {
            Body::Comment(text) => {
                *kept += 1;
                let owner = match line {
                    Line::Parent if parent.node.is_some() => Some(&mut *parent),
                    Line::Child => parent.children.last_mut(),
                    _ => None,
                };
                let text = comment_lines(text);
                match (owner, text.as_slice()) {
                    (Some(owner), [text]) if owner.side.is_none() => {
                        owner.side = Some(text.clone());
                    }
                    _ => {
                        waiting.extend((std::mem::take(&mut blank) && !first).then_some(None));
                        waiting.extend(text.into_iter().map(Some));
                    }
                }
                line = Line::Nobody;
            }
            Body::Node(node) if node.out => line = Line::Nobody,
            Body::Node(written) => {
                let Some(node) = nodes.next() else { continue };
                let mut noted = Noted::of(node);
                waiting.extend((std::mem::take(&mut blank) && !first).then_some(None));
                noted.before = std::mem::take(&mut waiting);
                for text in &written.before {
                    noted.before.extend(comment_lines(text).into_iter().map(Some));
                    *kept += 1;
                }
                kdl_parts(&written.parts, node, &mut noted, kept);
                parent.children.push(noted);
                line = Line::Child;
            }
        }
    }
    parent.after.append(&mut waiting);
}

#[derive(Clone, Copy)]
enum Line {
    Parent,
    Child,
    Nobody,
}

fn kdl_parts<'n>(parts: &[Part<'_>], node: &'n Node, noted: &mut Noted<'n>, kept: &mut usize) {
    let mut side = Vec::new();
    for part in parts {
        match part {
            Part::Comment(text) => side.extend(comment_lines(text)),
            Part::Block { out: false, items, .. } => {
                side.clear();
                kdl_items(items, &node.children, noted, kept);
            }
            _ => side.clear(),
        }
    }
    if let [text] = side.as_slice()
        && noted.side.is_none()
    {
        *kept += 1;
        noted.side = Some(text.clone());
    }
}

/// The lines of a comment of KDL without its marks.
fn comment_lines(text: &str) -> Vec<String> {
    if let Some(line) = text.strip_prefix("//") {
        return vec![clean(line)];
    }
    let body = text.strip_prefix("/*").and_then(|text| text.strip_suffix("*/")).unwrap_or(text);
    let lines = body.split(NEWLINES).map(|line| {
        let line = line.trim();
        line.strip_prefix("* ").unwrap_or(line)
    });
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).map(clean).collect();
    if lines.is_empty() { vec![String::new()] } else { lines }
}

/// A line that stays one line, and a comment, in both forms.
fn clean(line: &str) -> String {
    let line = line.trim_end().strip_prefix(' ').unwrap_or(line);
    line.trim_end().replace(super::strings::is_hidden, " ")
}

/// The tree of a YAML text with its comments; all of them have a place.
pub fn of_yaml<'n>(text: &str, nodes: &'n [Node]) -> (Noted<'n>, usize) {
    let mut anchors = Vec::new();
    gather_anchors(nodes, &mut 0, &mut anchors);
    let comments = yaml_comments(text).into_iter();
    let comments = comments.map(|(at, line)| Anchor { at, what: What::Comment(line) });
    anchors.extend(comments);
    anchors.sort_by_key(|anchor| anchor.at);
    let mut notes: BTreeMap<usize, Noted<'n>> = BTreeMap::new();
    let mut after = Lines::new();
    for (index, anchor) in anchors.iter().enumerate() {
        let previous = index.checked_sub(1).and_then(|index| anchors.get(index));
        let since = previous.and_then(|previous| text.get(previous.at..anchor.at));
        let blank = since.is_some_and(has_empty_line);
        match &anchor.what {
            What::Name(node) if blank => notes.entry(*node).or_default().before.push(None),
            What::Name(_) | What::Part(_) => {}
            What::Comment(line) => match owner(text, &anchors, anchor.at) {
                Some((node, true)) if notes.get(&node).is_none_or(|note| note.side.is_none()) => {
                    notes.entry(node).or_default().side = Some(line.clone());
                }
                owner => {
                    let lines = match owner {
                        Some((node, _)) => &mut notes.entry(node).or_default().before,
                        None => &mut after,
                    };
                    lines.extend(blank.then_some(None));
                    lines.push(Some(line.clone()));
                }
            },
        }
    }
    let mut count = 0;
    let children = nodes.iter().map(|node| yaml_item(node, &mut count, &mut notes));
    (Noted { children: children.collect(), after, ..Noted::default() }, 0)
}

/// A place of a YAML text that a comment can be near to.
struct Anchor {
    at: usize,
    what: What,
}

enum What {
    /// The name of a node. Nodes are numbered in the order of the text.
    Name(usize),
    /// A value or property of a node.
    Part(usize),
    Comment(String),
}

/// The node that a comment belongs to: the first on its line, else the next one.
fn owner(text: &str, anchors: &[Anchor], at: usize) -> Option<(usize, bool)> {
    let line = text.get(..at).and_then(|text| text.rfind('\n')).map_or(0, |at| at + 1);
    let node = |anchor: &Anchor| match anchor.what {
        What::Name(node) | What::Part(node) => Some(node),
        What::Comment(_) => None,
    };
    let from = anchors.partition_point(|anchor| anchor.at < line);
    let near = || anchors.iter().skip(from).filter_map(|a| Some((a.at, node(a)?)));
    let here = near().next().filter(|(start, _)| *start < at);
    let next = || near().find(|(start, _)| *start > at);
    match here {
        Some((_, node)) => Some((node, true)),
        None => next().map(|(_, node)| (node, false)),
    }
}

fn gather_anchors(nodes: &[Node], count: &mut usize, anchors: &mut Vec<Anchor>) {
    for node in nodes {
        let number = *count;
        *count += 1;
        let start = |span: fleetc_schema::diag::Span| span.start as usize;
        anchors.push(Anchor { at: start(node.name.span), what: What::Name(number) });
        let props = node.props.iter().map(|(word, _)| word.span);
        let parts = props.chain(node.args.iter().map(|arg| arg.span));
        anchors.extend(parts.map(|span| Anchor { at: start(span), what: What::Part(number) }));
        gather_anchors(&node.children, count, anchors);
    }
}

fn yaml_item<'n>(
    node: &'n Node,
    count: &mut usize,
    notes: &mut BTreeMap<usize, Noted<'n>>,
) -> Noted<'n> {
    let note = notes.remove(count).unwrap_or_default();
    *count += 1;
    let children = node.children.iter().map(|child| yaml_item(child, count, notes)).collect();
    Noted { node: Some(node), children, ..note }
}

/// True if an empty line is among those that start in the text.
fn has_empty_line(text: &str) -> bool {
    // What stands before the first line end and after the last is not a line of its own.
    let lines = text.split_once('\n').and_then(|(_, rest)| rest.rsplit_once('\n'));
    lines.is_some_and(|(lines, _)| lines.split('\n').any(|line| line.trim().is_empty()))
}

/// Comments of a YAML text with the byte where each starts.
fn yaml_comments(text: &str) -> Vec<(usize, String)> {
    let events = Parser::new_from_str(text).map_while(Result::ok);
    let comments = events.filter_map(|(event, span)| match event {
        Event::Comment(text, _) => Some((span.byte_range()?.start, clean(&text))),
        _ => None,
    });
    comments.collect()
}
