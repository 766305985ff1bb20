//! KDL in one style: four blanks a level, one empty line at most, one blank before `{` and inside
//! braces, no `;` at the end of a line. What the author wrote on one line stays on one line if it
//! fits; every comment stays.

use std::borrow::Cow;

use super::WIDTH;
use super::reader;
use super::strings::{self, Role};
use super::tokens::{NEWLINES, Token, tokens};
use super::tree::{Body, Gap, Item, Node, Part, Piece};

/// Blanks of a level.
const LEVEL: usize = 4;

/// Prints a text that parses.
pub fn print(text: &str) -> String {
    let items = reader::read(text);
    let mut printer = Printer { out: String::new() };
    printer.items(&items, 0);
    if !printer.out.is_empty() {
        printer.out.push('\n');
    }
    printer.out
}

struct Printer {
    out: String,
}

impl Printer {
    /// Prints items line by line; the first starts where the output ends.
    fn items(&mut self, items: &[Item<'_>], indent: usize) {
        for (index, line) in lines(items).enumerate() {
            if index > 0 {
                let blank = line.first().is_some_and(|item| item.gap == Gap::Blank);
                self.out.push_str(if blank { "\n\n" } else { "\n" });
                self.pad(indent);
            }
            self.line(line, indent);
        }
    }

    /// Prints what the author wrote on one line, on one line if it fits.
    fn line(&mut self, line: &[Item<'_>], indent: usize) {
        let (nodes, comment) = match line.split_last() {
            Some((Item { body: Body::Comment(text), .. }, nodes)) if text.starts_with("//") => {
                (nodes, Some(*text))
            }
            _ => (line, None),
        };
        match flat_items(nodes).filter(|text| nodes.len() > 1 && indent + width(text) <= WIDTH) {
            Some(text) => self.out.push_str(&text),
            None => {
                for (index, item) in nodes.iter().enumerate() {
                    if index > 0 {
                        self.out.push('\n');
                        self.pad(indent);
                    }
                    match &item.body {
                        Body::Node(node) => self.node(node, indent),
                        Body::Comment(text) => self.out.push_str(&comment_text(text)),
                    }
                }
            }
        }
        if let Some(text) = comment {
            if !nodes.is_empty() {
                self.out.push(' ');
            }
            self.out.push_str(&comment_text(text));
        }
    }

    fn node(&mut self, node: &Node<'_>, indent: usize) {
        self.out.push_str(&head(node, indent));
        // After a `\` the indent stands for the blank.
        let mut blank = " ";
        for part in &node.parts {
            self.out.push_str(blank);
            blank = " ";
            match part {
                Part::Entry { out, pieces } => self.out.push_str(&entry(*out, pieces, indent)),
                Part::Comment(text) => self.out.push_str(&comment_text(text)),
                Part::Continuation(comment) => {
                    self.out.push('\\');
                    if let Some(text) = comment {
                        self.out.push(' ');
                        self.out.push_str(&comment_text(text));
                    }
                    self.out.push('\n');
                    self.pad(indent + LEVEL);
                    blank = "";
                }
                Part::Block { out, items, .. } => {
                    let flat = flat_part(part);
                    match flat.filter(|text| self.column() + width(text) <= WIDTH) {
                        Some(text) => self.out.push_str(&text),
                        None => self.block(*out, items, indent),
                    }
                }
            }
        }
    }

    /// Prints children over several lines. Comments at the opening brace stay there.
    fn block(&mut self, out: bool, items: &[Item<'_>], indent: usize) {
        self.out.push_str(if out { "/-{" } else { "{" });
        let mut rest = items;
        if let Some(first) = lines(items).next()
            && first.iter().all(|item| item.gap == Gap::Same)
            && first.iter().all(|item| matches!(item.body, Body::Comment(_)))
        {
            self.out.push(' ');
            self.line(first, indent + LEVEL);
            rest = items.get(first.len()..).unwrap_or_default();
        }
        if !rest.is_empty() {
            self.out.push('\n');
            self.pad(indent + LEVEL);
            self.items(rest, indent + LEVEL);
        }
        self.out.push('\n');
        self.pad(indent);
        self.out.push('}');
    }

    fn pad(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    /// Characters since the last line end.
    fn column(&self) -> usize {
        self.out.rsplit('\n').next().map_or(0, width)
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Items by the lines that they were written on.
fn lines<'a, 't>(items: &'a [Item<'t>]) -> impl Iterator<Item = &'a [Item<'t>]> {
    items.chunk_by(|_, next| next.gap == Gap::Same)
}

/// Items on one line, if they can be.
fn flat_items(items: &[Item<'_>]) -> Option<String> {
    let mut text = String::new();
    let mut between = "";
    for (index, item) in items.iter().enumerate() {
        if index > 0 && item.gap != Gap::Same {
            return None;
        }
        text.push_str(between);
        match &item.body {
            Body::Node(node) => {
                text.push_str(&flat_node(node)?);
                between = "; ";
            }
            Body::Comment(comment) => {
                text.push_str(comment);
                between = " ";
            }
        }
    }
    (!text.contains(NEWLINES)).then_some(text)
}

fn flat_node(node: &Node<'_>) -> Option<String> {
    let mut text = head(node, 0);
    for part in &node.parts {
        text.push(' ');
        text.push_str(&flat_part(part)?);
    }
    Some(text)
}

/// A part on one line; none for children that were not written on one.
fn flat_part<'t>(part: &Part<'t>) -> Option<Cow<'t, str>> {
    match part {
        Part::Entry { out, pieces } => Some(entry(*out, pieces, 0).into()),
        Part::Comment(text) => Some((*text).into()),
        Part::Continuation(_) => None,
        Part::Block { out, one_line, items } => {
            let out = if *out { "/-" } else { "" };
            match (items.is_empty(), one_line) {
                (true, _) => Some(format!("{out}{{}}").into()),
                (false, true) => Some(format!("{out}{{ {} }}", flat_items(items)?).into()),
                (false, false) => None,
            }
        }
    }
}

/// What stands before the parts of a node.
fn head(node: &Node<'_>, indent: usize) -> String {
    let before = node.before.iter().map(|text| format!("{text} "));
    let mut text: String = before.collect();
    text.push_str(&entry(node.out, &node.head, indent));
    text
}

fn entry(out: bool, pieces: &[Piece<'_>], indent: usize) -> String {
    let mut text = if out { "/-".to_owned() } else { String::new() };
    for piece in pieces {
        match piece {
            Piece::Name(atom) => text.push_str(&strings::print(atom, Role::Name, indent + LEVEL)),
            Piece::Value(atom) => text.push_str(&strings::print(atom, Role::Value, indent + LEVEL)),
            Piece::Mark(mark) => text.push_str(mark),
            Piece::Comment(comment) => text.push_str(&comment_text(comment)),
        }
    }
    text
}

/// A comment without blanks at the ends of its lines.
fn comment_text(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let lines: Vec<&str> = text.split(NEWLINES).map(str::trim_end).collect();
    lines.join("\n")
}

/// What a tree of values does not show: the comments, and how much there is of anything else.
pub(super) fn extras(text: &str) -> (Vec<String>, [usize; 3]) {
    let (mut comments, mut counts) = (Vec::new(), [0; 3]);
    let [atoms, taken_out, blocks] = &mut counts;
    for token in tokens(text) {
        match token {
            Token::LineComment(text) | Token::BlockComment(text) => {
                comments.push(comment_text(text));
            }
            Token::Atom(_) => *atoms += 1,
            Token::SlashDash => *taken_out += 1,
            Token::Open => *blocks += 1,
            _ => {}
        }
    }
    comments.sort();
    (comments, counts)
}

#[cfg(test)]
mod tests {
    use crate::format::format;
    use crate::source::Form;

    fn check(text: &str, expected: &str) {
        let printed = format(Form::Kdl, text).unwrap_or_else(|error| panic!("{error:?}: {text}"));
        assert_eq!(printed, expected, "{text}");
        assert_eq!(format(Form::Kdl, expected).unwrap(), expected, "twice: {text}");
    }

    #[test]
    fn blanks_and_semicolons_are_normal() {
        check("a   1  b = 2;\n\n\n\nc{d;e;}\n", "a 1 b=2\n\nc { d; e }\n");
        check("\n\n  a\n\t b ; c ;  \n", "a\nb; c\n");
        check("a {\n}\nb { }\n", "a {}\nb {}\n");
        check("a {\n\n  b\n\n}\n", "a {\n    b\n}\n");
        check("a\r\n\r\nb {\r\nc\r\n}", "a\n\nb {\n    c\n}\n");
        check("", "");
        check(" \n\n", "");
    }

    #[test]
    fn what_stands_on_one_line_stays_there_if_it_fits() {
        let long = "x".repeat(50);
        check(&format!("a {{ {long}; b }}"), &format!("a {{ {long}; b }}\n"));
        check(&format!("a {{ {long}; {long}; b }}"), &format!("a {{\n    {long}; {long}; b\n}}\n"));
        check(
            &format!("a {{ {long}; {long}; {long} }}"),
            &format!("a {{\n    {long}\n    {long}\n    {long}\n}}\n"),
        );
        check(&format!("{long}; {long}; b {{ c }}"), &format!("{long}\n{long}\nb {{ c }}\n"));
        check("a; b {\n c\n}; d", "a\nb {\n    c\n}\nd\n");
        check("a { b { c; d }; e }", "a { b { c; d }; e }\n");
    }

    #[test]
    fn comments_stay_where_they_stand() {
        check(
            "// head\n\n\n//  next\na   // side\n\n/* own */\n  b { // brace\n c\n   // last\n}  // after\n// end",
            "// head\n\n//  next\na // side\n\n/* own */\nb { // brace\n    c\n    // last\n} // after\n// end\n",
        );
        check(
            "a /*1*/ /*2*/b=/*3*/1/*4*/{ /*5*/ }/*6*/",
            "a /*1*/ /*2*/ b=/*3*/1 /*4*/ { /*5*/ } /*6*/\n",
        );
        check("/*1*/a; /*2*/ b; /*3*/\n", "/*1*/ a; /*2*/ b /*3*/\n");
        check("a { /*1*/\n b }\n", "a { /*1*/\n    b\n}\n");
        check("a { /*1*/ b\n }\n", "a {\n    /*1*/ b\n}\n");
        check("/* x  \n   y */ a\n", "/* x\n   y */\na\n");
        check("a; /* x\n y */ b\n", "a /* x\n y */\nb\n");
        check("a {\n  /* x */ /* y */ // z\n}\n", "a {\n    /* x */ /* y */ // z\n}\n");
        let comment = format!("// {}", "x".repeat(120));
        check(&format!("a {{ b; c }}   {comment}"), &format!("a {{ b; c }} {comment}\n"));
    }

    #[test]
    fn slashdash_keeps_what_it_takes_out() {
        check("/- a  1 {b}\nc", "/-a 1 { b }\nc\n");
        check("a /-1 /- b = 2 3 /-{ c } { d }", "a /-1 /-b=2 3 /-{ c } { d }\n");
        check("a { b }   /- { c\n}", "a { b } /-{\n    c\n}\n");
        check("/- // why\n a\n", "// why\n/-a\n");
        check("a /- // why\n b c\n", "a \\ // why\n    /-\"b\" \"c\"\n");
        check("a { b; /-c }", "a { b; /-c }\n");
        check("/-a {} b", "/-a {}\nb\n");
        check("/-(t)a (u)1", "/-(t)a (u)1\n");
        check("/- kdl-version 2\na", "/-kdl-version 2\na\n");
    }

    #[test]
    fn lines_that_the_author_joined_stay_joined() {
        check("a 1 \\\n  2 \\  // why\n 3 {\n b }", "a 1 \\\n    2 \\ // why\n    3 {\n    b\n}\n");
        check("a \\\n \\\n 1 \\\n\nb", "a \\\n    1\nb\n");
        check("a 1 \\ // why\n\nb", "a 1 // why\nb\n");
        check("a \\\n{ b }", "a { b }\n");
        check("a b \\ // why\n = \\\n 1", "a \\ // why\n    b=1\n");
        check("\\\na; \\ // why\n b", "a // why\nb\n");
    }

    #[test]
    fn strings_keep_their_text() {
        check("\"a\" b c=d \"e f\"", "a \"b\" c=\"d\" \"e f\"\n");
        check(
            "a {\nb \"\"\"\nx\n  y\n\"\"\"\n}",
            "a {\n    b \"\"\"\n        x\n          y\n        \"\"\"\n}\n",
        );
        check("a { b #\"x\"y\"# }", "a { b #\"x\"y\"# }\n");
        check("a 0x1F 1_000 1.50 #true", "a 0x1F 1_000 1.50 #true\n");
    }
}
