//! Tokens of KDL 2 with their text, comments included: nothing but blanks is left out, so a printer
//! over them can lose nothing. Source: the grammar of the KDL 2.0 specification.
//!
//! Only text that parses is cut here; what other text gives is a list of tokens all the same.

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'t> {
    /// The end of a line.
    Newline,
    /// `;`
    Semicolon,
    /// `{`
    Open,
    /// `}`
    Close,
    /// `(`
    OpenType,
    /// `)`
    CloseType,
    /// `=`
    Equals,
    /// `/-`, which takes out what follows.
    SlashDash,
    /// `\`, which joins the next line.
    Continuation,
    /// `// …` without the end of its line.
    LineComment(&'t str),
    /// `/* … */`, which may stand anywhere between tokens.
    BlockComment(&'t str),
    /// A string, number or keyword, as written.
    Atom(&'t str),
}

/// Characters that end a line. CR LF counts as one.
pub const NEWLINES: [char; 7] = ['\r', '\n', '\u{85}', '\u{b}', '\u{c}', '\u{2028}', '\u{2029}'];

/// True if the character cannot stand in a bare word. The blanks and line ends of the specification
/// are together the white space of Unicode.
fn ends_word(c: char) -> bool {
    c.is_whitespace() || "\\/(){}[];\"#=".contains(c)
}

impl Token<'_> {
    /// True if a line ends in it or with it.
    pub fn breaks_line(&self) -> bool {
        match self {
            Self::Newline | Self::Continuation | Self::LineComment(_) => true,
            Self::Atom(text) | Self::BlockComment(text) => text.contains(NEWLINES),
            _ => false,
        }
    }
}

/// Cuts a text into tokens.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let simple = |token| (Some(token), first.len_utf8());
        let (token, length) = match first {
            '\r' if rest.starts_with("\r\n") => (Some(Token::Newline), 2),
            c if NEWLINES.contains(&c) => simple(Token::Newline),
            c if c.is_whitespace() => (None, c.len_utf8()),
            ';' => simple(Token::Semicolon),
            '{' => simple(Token::Open),
            '}' => simple(Token::Close),
            '(' => simple(Token::OpenType),
            ')' => simple(Token::CloseType),
            '=' => simple(Token::Equals),
            '\\' => simple(Token::Continuation),
            '/' if rest.starts_with("/-") => (Some(Token::SlashDash), 2),
            '/' if rest.starts_with("//") => {
                let length = rest.find(NEWLINES).unwrap_or(rest.len());
                (rest.get(..length).map(Token::LineComment), length)
            }
            '/' if rest.starts_with("/*") => {
                let length = block_comment(rest);
                (rest.get(..length).map(Token::BlockComment), length)
            }
            _ => {
                let length = atom(rest).max(first.len_utf8());
                (rest.get(..length).map(Token::Atom), length)
            }
        };
        tokens.extend(token);
        rest = rest.get(length..).unwrap_or_default();
    }
    tokens
}

/// The length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'/'), Some(b'*')) => (at, depth) = (at + 2, depth + 1),
            (Some(b'*'), Some(b'/')) => (at, depth) = (at + 2, depth - 1),
            (Some(_), _) => at += 1,
            (None, _) => return text.len(),
        }
        if depth == 0 {
            return at;
        }
    }
}

/// The length of the string, number or keyword that the text starts with.
fn atom(text: &str) -> usize {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let quoted = text.get(hashes..).unwrap_or_default();
    let Some(body) = quoted.strip_prefix('"') else {
        let word = quoted.find(ends_word).unwrap_or(quoted.len());
        return hashes + word;
    };
    let marks = quotes(quoted);
    let body = body.get(marks.len() - 1..).unwrap_or_default();
    let before = hashes + marks.len();
    if hashes > 0 {
        let close = format!("{marks}{}", "#".repeat(hashes));
        return body.find(&close).map_or(text.len(), |at| before + at + close.len());
    }
    let mut skip = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if skip => skip = false,
            '\\' => skip = true,
            '"' if body.get(at..).is_some_and(|rest| rest.starts_with(marks)) => {
                return before + at + marks.len();
            }
            _ => {}
        }
    }
    text.len()
}

/// The quotes that a string starts with: three if the end of the line follows.
fn quotes(text: &str) -> &'static str {
    let after = text.strip_prefix("\"\"\"");
    match after.is_some_and(|rest| rest.starts_with(NEWLINES)) {
        true => "\"\"\"",
        false => "\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_every_kind_are_one_token() {
        for text in [
            r#""a \" { // b""#,
            r##"#"a "quoted" \"#"##,
            r###"##"a "# b"##"###,
            "\"\"\"\n  a \"b\" \\\"\"\"\n  \"\"\"",
            "#\"\"\"\n  a \\ \"\"\n  \"\"\"#",
            "\"\"",
            "\"a \\\n   b\"",
            "#true",
            "-1.5e3",
            "0x1_f",
            "a-b.c,d",
            "é",
        ] {
            assert_eq!(tokens(text), [Token::Atom(text)], "{text}");
        }
    }

    #[test]
    fn comments_keep_their_text_and_nest() {
        let found = tokens("a /* x /* y */ ** */ // z\r\nb//c");
        assert_eq!(
            found,
            [
                Token::Atom("a"),
                Token::BlockComment("/* x /* y */ ** */"),
                Token::LineComment("// z"),
                Token::Newline,
                Token::Atom("b"),
                Token::LineComment("//c"),
            ]
        );
    }

    #[test]
    fn punctuation_needs_no_blanks() {
        use Token::{Atom, Close, CloseType, Equals, Open, OpenType, Semicolon, SlashDash};
        let found = tokens("(t)a b=1{/-c;}");
        let expected = [
            OpenType,
            Atom("t"),
            CloseType,
            Atom("a"),
            Atom("b"),
            Equals,
            Atom("1"),
            Open,
            SlashDash,
            Atom("c"),
            Semicolon,
            Close,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_does_not_parse_is_cut_to_its_end() {
        for text in ["\"a", "/* a /* b */", "#\"a\"", "[", "\"\"\"\nx", "\\", "###"] {
            assert!(!tokens(text).is_empty(), "{text}");
        }
    }
}
