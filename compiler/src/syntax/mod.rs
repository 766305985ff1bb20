//! One tree for both forms of a spec: nodes with arguments, properties and children, and the bytes
//! that each came from.
//!
//! Invariant: nothing here knows what a pool is. The YAML reader knows the table of kinds only as
//! shapes (does this word take a name, a value, a list?).

pub mod kdl;
pub mod yaml;

use fleetc_schema::diag::{Diagnostic, Span, rules};

/// The deepest nesting of a spec; the language needs eight levels.
pub const MAX_DEPTH: usize = 32;

/// The property of an item of an overlay that takes the place of the base's.
pub const REPLACE: &str = "replace";

/// A word of the spec with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The text.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: Word,
    /// Values without a name.
    pub args: Vec<Value>,
    /// Values with a name.
    pub props: Vec<(Word, Value)>,
    /// Nodes inside.
    pub children: Vec<Node>,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// What it is.
    pub scalar: Scalar,
    /// Where, quotes included.
    pub span: Span,
}

/// A scalar. Numbers that are not integers keep their text only, so no digit is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// Text.
    String(String),
    /// An integer.
    Integer(i128),
    /// A number with a fraction or exponent, as written.
    Decimal(String),
    /// True or false.
    Bool(bool),
    /// Nothing.
    Null,
    /// A list or map where a scalar belongs (YAML).
    Collection(&'static str),
}

impl Node {
    /// The bytes of its name and first argument if they stand side by side, else of its name.
    pub fn head(&self) -> Span {
        let beside = |arg: &Value| {
            let gap = arg.span.start.checked_sub(self.name.span.end);
            arg.span == self.name.span || gap.is_some_and(|gap| gap <= 2)
        };
        match self.args.first() {
            Some(arg) if beside(arg) => Span { end: arg.span.end, ..self.name.span },
            _ => self.name.span,
        }
    }
}

impl Scalar {
    /// What it is, in words.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Integer(_) => "a number",
            Self::Decimal(_) => "a number with a fraction",
            Self::Bool(_) => "true or false",
            Self::Null => "null",
            Self::Collection(what) => what,
        }
    }
}

/// Help for what people write without quotes and a parser takes for something else.
fn quote_help(token: &str) -> Option<String> {
    let token = token.trim_end_matches([';', '}']);
    match token {
        "true" | "false" | "null" => Some(format!("KDL writes it with a hash: `#{token}`")),
        _ if token.is_empty() || token.starts_with(['"', '{', '#']) => None,
        _ => {
            let starts_like_a_value =
                token.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '>' | '<' | '='));
            let hostlist = token.contains('[');
            let plain = token.chars().all(|c| !c.is_whitespace() && c != '"');
            (plain && (starts_like_a_value || hostlist))
                .then(|| format!("put it in quotes: `\"{token}\"`"))
        }
    }
}

/// The finding of a parser.
fn syntax_error(title: impl Into<String>, span: Span, label: &str) -> Diagnostic {
    Diagnostic::new(&rules::SPEC_SYNTAX, title).at(span, label)
}

/// A part of a text, in whole characters whatever a parser says of it.
fn span(file: u32, text: &str, range: std::ops::Range<usize>) -> Span {
    let (mut start, mut end) = (range.start.min(text.len()), range.end.min(text.len()));
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    end = end.max(start);
    while !text.is_char_boundary(end) {
        end += 1;
    }
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Span { file, start: number(start), end: number(end) }
}
