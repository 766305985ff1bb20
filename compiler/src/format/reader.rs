//! From tokens to the tree of a KDL file. What has no meaning where it stands (a `\` between nodes, a
//! `;` after nothing) is left out; its comments are not.

use super::tokens::{NEWLINES, Token, tokens};
use super::tree::{Body, Gap, Item, Node, Part, Piece};

/// Reads the tree of a text that parses.
pub fn read(text: &str) -> Vec<Item<'_>> {
    let mut reader = Reader { tokens: tokens(text), at: 0 };
    let mut items = Vec::new();
    // A brace too many does not parse; it ends nothing here.
    while reader.at < reader.tokens.len() {
        items.append(&mut reader.items());
        reader.at += 1;
    }
    items
}

struct Reader<'t> {
    tokens: Vec<Token<'t>>,
    at: usize,
}

/// Items that are being gathered, and what stands since the last of them.
#[derive(Default)]
struct Gathered<'t> {
    items: Vec<Item<'t>>,
    newlines: usize,
    /// Block comments whose line may yet bring a node.
    pending: Vec<&'t str>,
}

impl<'t> Gathered<'t> {
    fn push(&mut self, body: Body<'t>) {
        let gap = match self.newlines {
            0 if self.ends_line(&body) => Gap::Line,
            0 => Gap::Same,
            1 => Gap::Line,
            _ => Gap::Blank,
        };
        self.items.push(Item { gap, body });
        self.newlines = 0;
    }

    /// True if nothing can follow the last item on its line. After a node that is taken out a parser
    /// may take no `;`.
    fn ends_line(&self, next: &Body<'t>) -> bool {
        match self.items.last().map(|item| &item.body) {
            Some(Body::Comment(text)) => text.starts_with("//"),
            Some(Body::Node(node)) => node.out && matches!(next, Body::Node(_)),
            None => false,
        }
    }

    /// A comment to the end of its line.
    fn line_comment(&mut self, text: &'t str) {
        self.settle();
        self.push(Body::Comment(text));
    }

    /// The comments that wait belong to the node before them on their line, else to themselves.
    fn settle(&mut self) {
        for text in std::mem::take(&mut self.pending) {
            match self.items.last_mut() {
                Some(Item { body: Body::Node(node), .. }) if self.newlines == 0 => {
                    node.parts.push(Part::Comment(text));
                }
                _ => self.push(Body::Comment(text)),
            }
        }
    }
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).copied()
    }

    /// The items up to a closing brace or the end.
    fn items(&mut self) -> Vec<Item<'t>> {
        let mut gathered = Gathered::default();
        while let Some(token) = self.peek() {
            match token {
                Token::Close => break,
                Token::Newline => {
                    gathered.settle();
                    gathered.newlines += 1;
                    self.at += 1;
                }
                Token::LineComment(text) => {
                    gathered.line_comment(text);
                    self.at += 1;
                }
                Token::BlockComment(text) => {
                    gathered.pending.push(text);
                    self.at += 1;
                }
                Token::Continuation => {
                    self.at += 1;
                    self.joined_line(&mut gathered);
                }
                Token::SlashDash => {
                    self.at += 1;
                    self.after_slash_dash(&mut gathered);
                    self.node(true, &mut gathered);
                }
                Token::Atom(_) | Token::OpenType => self.node(false, &mut gathered),
                Token::Semicolon | Token::CloseType | Token::Equals | Token::Open => self.at += 1,
            }
        }
        gathered.settle();
        gathered.items
    }

    /// What follows a `\` between nodes: it does nothing there, so only its comment stays.
    fn joined_line(&mut self, gathered: &mut Gathered<'t>) {
        while let Some(token) = self.peek() {
            match token {
                Token::BlockComment(text) => gathered.pending.push(text),
                Token::LineComment(text) => gathered.line_comment(text),
                _ => break,
            }
            self.at += 1;
        }
    }

    /// Comments between `/-` and its node come before both.
    fn after_slash_dash(&mut self, gathered: &mut Gathered<'t>) {
        while let Some(token) = self.peek() {
            match token {
                Token::Newline | Token::Continuation => {}
                Token::BlockComment(text) => gathered.pending.push(text),
                Token::LineComment(text) => gathered.line_comment(text),
                _ => break,
            }
            self.at += 1;
        }
    }

    fn node(&mut self, out: bool, gathered: &mut Gathered<'t>) {
        if gathered.pending.iter().any(|text| text.contains(NEWLINES)) {
            gathered.settle();
            gathered.newlines = gathered.newlines.max(1);
        }
        let mut before = std::mem::take(&mut gathered.pending);
        let (mut head, mut joined) = (Vec::new(), Vec::new());
        self.typed(&mut head, Piece::Name, &mut joined);
        for part in joined {
            match part {
                Part::Comment(text) => before.push(text),
                Part::Continuation(Some(text)) => gathered.line_comment(text),
                _ => {}
            }
        }
        let mut parts = self.parts();
        let trailing = trailing_comments(&mut parts);
        gathered.push(Body::Node(Node { before, out, head, parts }));
        for text in trailing {
            gathered.line_comment(text);
        }
    }

    fn parts(&mut self) -> Vec<Part<'t>> {
        let mut parts = Vec::new();
        while let Some(token) = self.peek() {
            match token {
                Token::Newline | Token::LineComment(_) | Token::Close => break,
                Token::Semicolon => {
                    self.at += 1;
                    break;
                }
                // After its children a node is over.
                Token::Atom(_) | Token::OpenType
                    if parts.iter().any(|part| matches!(part, Part::Block { .. })) =>
                {
                    break;
                }
                Token::BlockComment(text) => {
                    parts.push(Part::Comment(text));
                    self.at += 1;
                }
                Token::Continuation => {
                    self.at += 1;
                    self.continuation(&mut parts);
                }
                Token::SlashDash => {
                    self.at += 1;
                    self.part_taken_out(&mut parts);
                }
                Token::Open => self.block(false, &mut parts),
                Token::Atom(_) | Token::OpenType => self.entry(false, &mut parts),
                Token::CloseType | Token::Equals => self.at += 1,
            }
        }
        parts
    }

    /// What follows a `\`: its line ends with a comment or without.
    fn continuation(&mut self, parts: &mut Vec<Part<'t>>) {
        let mut comment = None;
        while let Some(token) = self.peek() {
            match token {
                Token::BlockComment(text) => parts.push(Part::Comment(text)),
                Token::LineComment(text) => comment = Some(text),
                Token::Newline => {
                    self.at += 1;
                    break;
                }
                _ => break,
            }
            self.at += 1;
        }
        parts.push(Part::Continuation(comment));
    }

    fn part_taken_out(&mut self, parts: &mut Vec<Part<'t>>) {
        while let Some(token) = self.peek() {
            match token {
                Token::Newline | Token::Continuation => {}
                Token::BlockComment(text) => parts.push(Part::Comment(text)),
                Token::LineComment(text) => parts.push(Part::Continuation(Some(text))),
                _ => break,
            }
            self.at += 1;
        }
        match self.peek() {
            Some(Token::Open) => self.block(true, parts),
            _ => self.entry(true, parts),
        }
    }

    fn block(&mut self, out: bool, parts: &mut Vec<Part<'t>>) {
        self.at += 1;
        let start = self.at;
        let items = self.items();
        let inside = self.tokens.get(start..self.at).unwrap_or_default();
        let one_line = !inside.iter().any(Token::breaks_line);
        self.at += 1;
        parts.push(Part::Block { out, one_line, items });
    }

    fn entry(&mut self, out: bool, parts: &mut Vec<Part<'t>>) {
        let mut pieces = Vec::new();
        match self.is_property() {
            true => {
                self.atom(&mut pieces, Piece::Name);
                self.within(&mut pieces, parts);
                self.mark(Token::Equals, "=", &mut pieces);
                self.within(&mut pieces, parts);
                self.typed(&mut pieces, Piece::Value, parts);
            }
            false => self.typed(&mut pieces, Piece::Value, parts),
        }
        parts.push(Part::Entry { out, pieces });
    }

    /// True if an `=` follows the next token; blanks, comments and joined lines may stand between.
    fn is_property(&self) -> bool {
        let after = self.tokens.iter().skip(self.at + 1).copied();
        let mut joined = false;
        for token in after {
            match token {
                Token::Equals => return true,
                Token::BlockComment(_) => {}
                Token::Continuation => joined = true,
                Token::LineComment(_) if joined => {}
                Token::Newline if joined => joined = false,
                _ => return false,
            }
        }
        false
    }

    /// A name or value with the type annotation before it.
    fn typed(
        &mut self,
        pieces: &mut Vec<Piece<'t>>,
        piece: fn(&'t str) -> Piece<'t>,
        before: &mut Vec<Part<'t>>,
    ) {
        if self.peek() == Some(Token::OpenType) {
            self.mark(Token::OpenType, "(", pieces);
            self.within(pieces, before);
            self.atom(pieces, Piece::Name);
            self.within(pieces, before);
            self.mark(Token::CloseType, ")", pieces);
            self.within(pieces, before);
        }
        self.atom(pieces, piece);
    }

    fn mark(&mut self, token: Token<'t>, text: &'static str, pieces: &mut Vec<Piece<'t>>) {
        if self.peek() == Some(token) {
            self.at += 1;
            pieces.push(Piece::Mark(text));
        }
    }

    fn atom(&mut self, pieces: &mut Vec<Piece<'t>>, piece: fn(&'t str) -> Piece<'t>) {
        if let Some(Token::Atom(text)) = self.peek() {
            self.at += 1;
            pieces.push(piece(text));
        }
    }

    /// Comments inside a property. What follows a `\` there comes before the property.
    fn within(&mut self, pieces: &mut Vec<Piece<'t>>, before: &mut Vec<Part<'t>>) {
        while let Some(token) = self.peek() {
            match token {
                Token::BlockComment(text) => {
                    pieces.push(Piece::Comment(text));
                    self.at += 1;
                }
                Token::Continuation => {
                    self.at += 1;
                    self.continuation(before);
                    if matches!(before.last(), Some(Part::Continuation(None))) {
                        before.pop();
                    }
                }
                _ => break,
            }
        }
    }
}

/// Takes off joined lines that bring nothing, and gives the comments that they had. Two `\` in a row
/// are one, and one before children is none.
fn trailing_comments<'t>(parts: &mut Vec<Part<'t>>) -> Vec<&'t str> {
    let mut kept: Vec<Part<'t>> = Vec::new();
    for part in parts.drain(..) {
        if matches!(part, Part::Continuation(_) | Part::Block { out: false, .. })
            && matches!(kept.last(), Some(Part::Continuation(None)))
        {
            kept.pop();
        }
        kept.push(part);
    }
    let mut comments = Vec::new();
    while let Some(Part::Continuation(comment)) =
        kept.pop_if(|part| matches!(part, Part::Continuation(_)))
    {
        comments.extend(comment);
    }
    comments.reverse();
    *parts = kept;
    comments
}
