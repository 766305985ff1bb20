//! The tokens of a KDL file as a tree: nodes with their parts in the order they were written, and
//! every comment at its place.
//!
//! A comment that stands before a node on its line belongs to that node; one after it, to its parts;
//! any other comment is an item of its own.

/// What stands between an item and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// Nothing but a `;`: both are on one line.
    Same,
    /// The end of a line.
    Line,
    /// At least one empty line.
    Blank,
}

/// A node or comment of a block, in order.
#[derive(Debug)]
pub struct Item<'t> {
    /// What stands before it.
    pub gap: Gap,
    /// What it is.
    pub body: Body<'t>,
}

/// What an item is.
#[derive(Debug)]
pub enum Body<'t> {
    /// A node.
    Node(Node<'t>),
    /// A comment between nodes.
    Comment(&'t str),
}

/// A node.
#[derive(Debug)]
pub struct Node<'t> {
    /// Block comments before it on its line.
    pub before: Vec<&'t str>,
    /// True if `/-` takes it out.
    pub out: bool,
    /// Its type annotation and name.
    pub head: Vec<Piece<'t>>,
    /// What follows the name.
    pub parts: Vec<Part<'t>>,
}

/// What follows the name of a node.
#[derive(Debug)]
pub enum Part<'t> {
    /// An argument or property; `out` if `/-` takes it out.
    Entry {
        /// True if `/-` takes it out.
        out: bool,
        /// Its pieces.
        pieces: Vec<Piece<'t>>,
    },
    /// A block comment.
    Comment(&'t str),
    /// A `\` that joins the next line, with the comment after it.
    Continuation(Option<&'t str>),
    /// Children.
    Block {
        /// True if `/-` takes them out.
        out: bool,
        /// True if they were written on one line.
        one_line: bool,
        /// The children.
        items: Vec<Item<'t>>,
    },
}

/// A piece of what is written without blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'t> {
    /// A name: of a node, property or type.
    Name(&'t str),
    /// A value.
    Value(&'t str),
    /// `(`, `)` or `=`.
    Mark(&'static str),
    /// A block comment among them.
    Comment(&'t str),
}
