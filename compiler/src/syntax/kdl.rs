//! KDL 2 into the tree. Source of the form: the KDL 2.0 specification.

use std::ops::Range;

use fleetc_schema::diag::{Diagnostic, Span};
use kdl::{KdlDocument, KdlEntry, KdlNode, KdlValue};

use super::{MAX_DEPTH, Node, Scalar, Value, Word, quote_help, span, syntax_error};
use crate::MAX_FINDINGS;

/// The most `/-` in a row, or in one another.
const MAX_SLASHDASHES: usize = 4;

/// Stack of the parser whatever it reads.
const LEAST_STACK: usize = 8 << 20;

/// The most stack that the parser takes for a byte, with room: measured with kdl 6 on runs of each
/// mark of the grammar, 0.5 KiB optimised and 2.1 KiB in a debug build.
const STACK_PER_BYTE: usize = if cfg!(debug_assertions) { 6 << 10 } else { 2 << 10 };

/// Parses a file; on errors the tree is empty and every finding is reported.
pub fn parse(file: u32, text: &str, diagnostics: &mut Vec<Diagnostic>) -> Vec<Node> {
    if let Some((at, refused)) = text.char_indices().find(|(_, letter)| is_refused(*letter)) {
        let title = format!("U+{:04X} may not stand in a KDL file", u32::from(refused));
        let found =
            syntax_error(title, span(file, text, at..at + refused.len_utf8()), "not seen here");
        let escape = format!("remove it; in a string it is `{}`", refused.escape_unicode());
        diagnostics.push(found.help(escape));
        return Vec::new();
    }
    if let Some((at, too)) = excess(text) {
        let here = span(file, text, at..at + 1);
        let found = match too {
            Excess::Depth => {
                let title = format!("the file nests deeper than {MAX_DEPTH} levels");
                syntax_error(title, here, "one level too many")
            }
            Excess::Slashdashes => {
                let title = format!("more than {MAX_SLASHDASHES} `/-` in a row or in one another");
                syntax_error(title, here, "one too many").help("one `/-` takes one item out")
            }
        };
        diagnostics.push(found);
        return Vec::new();
    }
    if let Some(found) = other_form(file, text) {
        diagnostics.push(found);
        return Vec::new();
    }
    let document = match document(text) {
        Ok(Ok(document)) => document,
        Err(title) => {
            diagnostics.push(syntax_error(title, span(file, text, 0..0), "from here on"));
            return Vec::new();
        }
        Ok(Err(error)) => {
            // A brace that is not closed follows from another mistake inside it, if there is one.
            let unclosed = |found: &&kdl::KdlDiagnostic| is_unclosed(message(found));
            let others = error.diagnostics.iter().filter(|found| !unclosed(found)).count();
            let causes = error.diagnostics.iter().filter(|found| others == 0 || !unclosed(found));
            let most = diagnostics.len() + MAX_FINDINGS;
            // After a mistake the parser is lost until the line ends: only what is understood as a
            // mistake of its own is a second one there.
            let strays = strays(text);
            let mut line = None;
            let judged = |found| {
                stray_brace(file, text, found, &strays)
                    .unwrap_or_else(|| finding(file, text, found))
            };
            for (at, found, understood) in causes.map(judged) {
                if diagnostics.len() == most {
                    break;
                }
                let before = text.get(..at).unwrap_or_default();
                let here = before.rfind('\n').unwrap_or(0);
                // A value after an `=` that is no property, and a brace that has its other half.
                let lost = !understood || before.ends_with('=');
                let brace = text.get(at..).is_some_and(|rest| rest.starts_with('}'));
                let torn = line.is_some() && !understood && brace;
                let follows = (line == Some(here) && lost) || torn;
                line = Some(here);
                if !follows && !diagnostics.contains(&found) {
                    diagnostics.push(found);
                }
            }
            return Vec::new();
        }
    };
    let most = diagnostics.len() + MAX_FINDINGS;
    let mut reader = Reader { file, text, diagnostics };
    let nodes = document.nodes().iter().map(|node| reader.node(node)).collect();
    diagnostics.truncate(most);
    nodes
}

/// Characters that a KDL file may not hold. Source: the KDL 2.0 specification, "Disallowed Literal
/// Code Points".
fn is_refused(letter: char) -> bool {
    matches!(
        letter,
        '\0'..='\u{8}'
            | '\u{e}'..='\u{1f}'
            | '\u{7f}'
            | '\u{200e}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
    )
}

/// Runs the parser, which goes a level deeper for each mistake or comment mark: its stack grows with
/// the text, so that a hostile file ends in a finding and not in an abort. Memory is only taken as far
/// as the stack is used.
fn document(text: &str) -> Result<Result<KdlDocument, kdl::KdlError>, &'static str> {
    let stack = text.len().saturating_mul(STACK_PER_BYTE).saturating_add(LEAST_STACK);
    std::thread::scope(|scope| {
        let parser = std::thread::Builder::new().stack_size(stack);
        let parser = parser.spawn_scoped(scope, || KdlDocument::parse_v2(text));
        let parser = parser.map_err(|_| "there is not enough memory to parse the file")?;
        parser.join().map_err(|_| "the file cannot be parsed")
    })
}

struct Reader<'a> {
    file: u32,
    text: &'a str,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Reader<'_> {
    fn node(&mut self, node: &KdlNode) -> Node {
        let name = self.word(node.name());
        self.refuse_annotation(node.ty());
        let (mut args, mut props) = (Vec::new(), Vec::new());
        for entry in node.entries() {
            self.refuse_annotation(entry.ty());
            let value = self.value(entry);
            match entry.name() {
                Some(name) => props.push((self.word(name), value)),
                None => args.push(value),
            }
        }
        let children = node.children().map(KdlDocument::nodes).unwrap_or_default();
        let children = children.iter().map(|child| self.node(child)).collect();
        Node { name, args, props, children }
    }

    fn word(&mut self, name: &kdl::KdlIdentifier) -> Word {
        let at = name.span();
        let range = at.offset()..at.offset() + at.len();
        let here = span(self.file, self.text, range);
        let text = self.without_typographic_quotes(name.value(), here);
        Word { text: text.to_owned(), span: here }
    }

    /// A text editor for prose writes `“x”`, which KDL takes for a word with quotes in it.
    fn without_typographic_quotes<'t>(&mut self, text: &'t str, here: Span) -> &'t str {
        let is_quote = |c: char| matches!(c, '\u{2018}'..='\u{201f}' | '«' | '»');
        if !text.starts_with(is_quote) {
            return text;
        }
        let plain = text.trim_matches(is_quote);
        let found = syntax_error("typographic quotes are letters to KDL", here, "not quoted")
            .help(format!("write plain quotes: `\"{plain}\"`"));
        self.diagnostics.push(found);
        plain
    }

    fn value(&mut self, entry: &KdlEntry) -> Value {
        let at = entry.span();
        let end = at.offset() + at.len();
        let text = entry.format().map_or("", |format| format.value_repr.as_str());
        let start = match text.len() {
            0 => at.offset(),
            length => end.saturating_sub(length),
        };
        let scalar = match entry.value() {
            KdlValue::String(word) if text.starts_with(['"', '#']) => Scalar::String(word.clone()),
            KdlValue::String(word) => {
                let here = span(self.file, self.text, start..end);
                Scalar::String(self.without_typographic_quotes(word, here).to_owned())
            }
            KdlValue::Integer(number) => Scalar::Integer(*number),
            KdlValue::Float(number) if text.is_empty() => Scalar::Decimal(number.to_string()),
            KdlValue::Float(_) => Scalar::Decimal(text.to_owned()),
            KdlValue::Bool(value) => Scalar::Bool(*value),
            KdlValue::Null => Scalar::Null,
        };
        Value { scalar, span: span(self.file, self.text, start..end) }
    }

    fn refuse_annotation(&mut self, annotation: Option<&kdl::KdlIdentifier>) {
        if let Some(annotation) = annotation {
            let word = self.word(annotation);
            let title = format!("the language has no type annotations such as `({})`", word.text);
            let found = syntax_error(title, word.span, "remove it")
                .help("a unit stands in the value: `\"80GiB\"`");
            self.diagnostics.push(found);
        }
    }
}

fn message(found: &kdl::KdlDiagnostic) -> &str {
    found.message.as_deref().unwrap_or("this is not KDL")
}

fn is_unclosed(message: &str) -> bool {
    message.to_ascii_lowercase().contains("closing '}'")
}

/// A file of another form, told by how it begins.
fn other_form(file: u32, text: &str) -> Option<Diagnostic> {
    let start = text.find(|c: char| !c.is_whitespace())?;
    let first = text.get(start..)?;
    let here = span(file, text, start..start + 1);
    let json = first.starts_with(['{', '[']);
    let yaml = first.starts_with("---") || first.starts_with("%YAML");
    match (json, yaml) {
        (true, _) => Some(
            syntax_error(
                "this is JSON, and the file's name says KDL",
                here,
                "JSON begins like this",
            )
            .help("JSON is YAML too: let the file's name end in `.yaml`"),
        ),
        (_, true) => Some(
            syntax_error(
                "this is YAML, and the file's name says KDL",
                here,
                "YAML begins like this",
            )
            .help("let the file's name end in `.yaml`"),
        ),
        _ => None,
    }
}

/// Turns a finding of the parser into ours, with help for what people bring along from other
/// languages. Gives where it is, and whether it was understood.
fn finding(file: u32, text: &str, found: &kdl::KdlDiagnostic) -> (usize, Diagnostic, bool) {
    let start = found.span.offset().min(text.len());
    let end = (start + found.span.len()).min(text.len());
    let token = text.get(start..end).unwrap_or_default();
    let message = message(found);
    if let Some(habit) = habit(file, text, start, end) {
        return (start, habit, true);
    }
    if message.contains("property value")
        && let Some(equals) = token.rfind('=')
    {
        let name = token.get(..equals).unwrap_or_default();
        let from = name.trim_end_matches(|c: char| !c.is_whitespace()).len();
        let here = span(file, text, start + from..start + equals + 1);
        let value = text.get(start + equals + 1..).unwrap_or_default();
        let ends = |c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}' | '=' | '(' | ')');
        let value = value.split(ends).next().unwrap_or_default();
        let digits = value.trim_start_matches(['-', '+']);
        if digits.starts_with(|c: char| c.is_ascii_digit()) {
            let at = start + equals + 1;
            let here = span(file, text, at..at + value.len());
            let numeric = digits.bytes().all(|b| b.is_ascii_digit() || b == b'_');
            let found = match numeric {
                true => syntax_error(format!("`{value}` is too large a number"), here, "too large"),
                false => {
                    let title = format!("`{value}` is no number");
                    let finding = syntax_error(title, here, "starts like a number");
                    finding.help(format!("put it in quotes: `\"{value}\"`"))
                }
            };
            return (start, found, true);
        }
        let found = syntax_error("a property has no value", here, "nothing follows the `=`")
            .help("write the value right after the `=`, without a blank");
        return (start, found, true);
    }
    if is_unclosed(message) {
        // The place is the brace, or what follows it.
        let before = text.get(..start).and_then(|text| text.rfind('{'));
        let brace = if token.starts_with('{') { start } else { before.unwrap_or(start) };
        let here = span(file, text, brace..brace + 1);
        let found = syntax_error("a `{` is not closed", here, "opened here").help("add a `}`");
        return (start, found, true);
    }
    let here = span(file, text, start..end);
    let (title, label) = match message {
        m if m.contains("end of document") => {
            ("nothing may stand here".to_owned(), "a node ends before this")
        }
        m if m.contains("quoted string") => ("the string does not end".to_owned(), "starts here"),
        m if m.contains("integer") || m.contains("float") => {
            (format!("`{token}` is no number"), "starts like a number")
        }
        m if m.contains("identifier") => {
            (format!("`{token}` is neither a word nor a value"), "cannot stand here bare")
        }
        m => (lower_first(m), "here"),
    };
    let diagnostic = syntax_error(title, here, label);
    match quote_help(token) {
        Some(help) => (start, diagnostic.help(help), true),
        None if message.contains("end of document") => {
            (start, diagnostic.help("start a new line, or put `;` between nodes"), false)
        }
        None => match &found.help {
            Some(help) => (start, diagnostic.help(lower_first(help)), false),
            None => (start, diagnostic, false),
        },
    }
}

/// What is said of a `}` for which no `{` is open, if that is what the parser met: `strays` has them all.
fn stray_brace(
    file: u32,
    text: &str,
    found: &kdl::KdlDiagnostic,
    strays: &[usize],
) -> Option<(usize, Diagnostic, bool)> {
    let at = found.span.offset();
    let index = strays.binary_search(&at).ok()?;
    let from = index.checked_sub(1).and_then(|before| strays.get(before)).map_or(0, |at| at + 1);
    let (title, brace) = ("a `}` closes nothing", span(file, text, at..at + 1));
    let found = match forgotten_brace(text, from..at) {
        Some(line) => {
            let line = span(file, text, line);
            syntax_error(title, line, "no `{` here, and what follows is indented")
                .at(brace, "closes nothing")
                .help("end the line with ` {`")
        }
        None => syntax_error(title, brace, "no `{` is open here")
            .help("remove it, or end the line of the node that it closes with ` {`"),
    };
    Some((at, found, true))
}

/// The last line within that has no `{` at its end although the next is indented below it.
fn forgotten_brace(text: &str, within: Range<usize>) -> Option<Range<usize>> {
    let mut start = within.start;
    let mut found = None;
    // The line before with its indentation, unless it goes on or opens a block.
    let mut above: Option<(usize, Range<usize>)> = None;
    for line in text.get(within)?.split_inclusive('\n') {
        let code = line.split(" //").next().unwrap_or_default();
        let said = code.trim();
        let indent = code.len() - code.trim_start().len();
        if !said.is_empty() && !said.starts_with("//") {
            if let Some((outer, range)) = above.take()
                && outer < indent
            {
                found = Some(range);
            }
            let ends = said.ends_with(['{', '\\']) || said.starts_with('}');
            let range = start + indent..start + indent + said.len();
            above = (!ends).then_some((indent, range));
        }
        start += line.len();
    }
    found
}

/// What people bring along from other languages: `#` comments, commas, assignments, and a brace on a
/// line of its own.
fn habit(file: u32, text: &str, start: usize, end: usize) -> Option<Diagnostic> {
    let token = text.get(start..end)?;
    let before = text.get(..start)?;
    let own_line =
        before.trim_end_matches([' ', '\t']).ends_with(['\n']) || before.trim().is_empty();
    let at = |from: usize, length: usize| span(file, text, from..from + length);
    if token.starts_with('#') && text.get(start + 1..)?.starts_with([' ', '\t', '#', '!', '\n']) {
        let found = syntax_error("KDL has no comments with `#`", at(start, 1), "not a comment");
        return Some(found.help("a comment begins with `//`"));
    }
    // The parser shows the value before a comma, or the comma.
    let comma = match token.trim_end().strip_suffix(',') {
        Some(value) => Some(start + value.len()),
        None => text.get(end..)?.starts_with(',').then_some(end),
    };
    if let Some(comma) = comma.filter(|_| token.len() < 100 && !token.contains('\n')) {
        let found = syntax_error("KDL has no comma between values", at(comma, 1), "not needed");
        return Some(found.help("put a blank between two values: `pools \"a\" \"b\"`"));
    }
    let equals = match token.trim_end() {
        "=" => Some(start),
        other => other.strip_suffix(" =").map(|name| start + name.len() + 1),
    };
    if let Some(equals) = equals {
        let after = text.get(equals + 1..)?.trim_start();
        let word = text.get(..equals)?.trim_end();
        let word = word.get(word.rfind([' ', '\t', '\n', '{', ';']).map_or(0, |at| at + 1)..)?;
        let found =
            syntax_error("a value follows its word without `=`", at(equals, 1), "not needed");
        return Some(match after.starts_with('{') {
            true => found.help("write the `{` right after the node"),
            false => {
                let value = after.split([' ', ';', '\n', '}']).next().unwrap_or("…");
                let help = format!("write `{word} {value}`");
                // Without blanks it is no property that lost its way, but a node with an `=`.
                let tight = text.get(..equals)?.ends_with(word)
                    && !text.get(equals + 1..)?.starts_with(char::is_whitespace);
                found.help(match tight {
                    true => help,
                    false => format!("{help}; a property has no blanks: `{word}={value}`"),
                })
            }
        });
    }
    if token.starts_with('{') && own_line && start > 0 {
        let found =
            syntax_error("a `{` on a line of its own has no node", at(start, 1), "of what?");
        return Some(found.help("write it at the end of the node's line"));
    }
    None
}

fn lower_first(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// What a file has too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excess {
    Depth,
    Slashdashes,
}

/// The first `{` below the deepest level allowed, or the first `/-` beyond those allowed,
/// outside strings and comments. The parser takes twice the time for each `/-` more.
fn excess(text: &str) -> Option<(usize, Excess)> {
    let bytes = text.as_bytes();
    // Of each block that is open, whether a `/-` stands before it.
    let mut open: Vec<bool> = Vec::new();
    let (mut at, mut slashdashes) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        let here = slashdashes;
        let mark = (*byte, bytes.get(at + 1));
        match mark {
            (b'/', Some(b'-')) => {
                slashdashes += 1;
                let around = open.iter().filter(|slashed| **slashed).count();
                if slashdashes + around > MAX_SLASHDASHES {
                    return Some((at, Excess::Slashdashes));
                }
            }
            (b'-', _) if at > 0 && bytes.get(at - 1) == Some(&b'/') => {}
            (b'/', Some(b'/' | b'*')) => {}
            _ if byte.is_ascii_whitespace() => {}
            _ => slashdashes = 0,
        }
        match byte {
            b'{' if open.len() == MAX_DEPTH => return Some((at, Excess::Depth)),
            b'{' => open.push(here > 0),
            b'}' => {
                open.pop();
            }
            _ => {}
        }
        at = after(text, at);
    }
    None
}

/// Every `}` outside strings and comments for which no `{` is open.
fn strays(text: &str) -> Vec<usize> {
    let (mut at, mut open) = (0, 0_usize);
    let mut found = Vec::new();
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'{' => open += 1,
            b'}' if open == 0 => found.push(at),
            b'}' => open -= 1,
            _ => {}
        }
        at = after(text, at);
    }
    found
}

/// Where the next byte outside strings and comments is looked for: behind the one that begins at a byte,
/// or behind the byte.
fn after(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let skip_to = |from: usize, end: &str| {
        text.get(from..)
            .and_then(|rest| rest.find(end))
            .map_or(bytes.len(), |n| from + n + end.len())
    };
    match (bytes.get(at), bytes.get(at + 1)) {
        (Some(b'/'), Some(b'/')) => skip_to(at, "\n"),
        (Some(b'/'), Some(b'*')) => skip_to(at + 2, "*/"),
        (Some(b'"'), _) => {
            let mut end = at + 1;
            while let Some(byte) = bytes.get(end) {
                match byte {
                    b'\\' => end += 1,
                    b'"' | b'\n' => break,
                    _ => {}
                }
                end += 1;
            }
            end + 1
        }
        _ => at + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str) -> Vec<(String, String, Vec<String>)> {
        let mut diagnostics = Vec::new();
        parse(0, text, &mut diagnostics);
        diagnostics
            .into_iter()
            .map(|d| {
                let place = match &d.labels[0].place {
                    fleetc_schema::diag::Place::Span(s) => {
                        text.get(s.start as usize..s.end as usize).unwrap().to_owned()
                    }
                    other => panic!("{other:?}"),
                };
                (d.title, place, d.help)
            })
            .collect()
    }

    #[test]
    fn values_have_the_bytes_of_the_value_alone() {
        let text = "é \"x\" a=\"b c\" 0x10 1.50";
        let mut diagnostics = Vec::new();
        let nodes = parse(0, text, &mut diagnostics);
        let slice = |s: Span| text.get(s.start as usize..s.end as usize).unwrap();
        assert_eq!(slice(nodes[0].props[0].1.span), "\"b c\"");
        assert_eq!(slice(nodes[0].args[1].span), "0x10");
        assert_eq!(nodes[0].args[1].scalar, Scalar::Integer(16));
        assert_eq!(nodes[0].args[2].scalar, Scalar::Decimal("1.50".into()));
    }

    #[test]
    fn what_needs_quotes_gets_our_own_help() {
        for (text, token) in [
            ("nodes gpu[01-04]", "gpu[01-04]"),
            ("max-time 2d", "2d"),
            ("slice 1g.10gb", "1g.10gb"),
            ("slurm 24.11x", "24.11x"),
        ] {
            let found = errors(text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].1, token);
            assert_eq!(found[0].2, [format!("put it in quotes: `\"{token}\"`")]);
        }
        assert_eq!(errors("default true")[0].2, ["KDL writes it with a hash: `#true`"]);
    }

    #[test]
    fn a_property_without_value_is_shown_at_the_property() {
        assert_eq!(errors("pool \"a\" gpu=")[0].1, "gpu=");
    }

    #[test]
    fn places_are_whole_characters() {
        assert_eq!(errors("é\u{a0}𑱐={")[0].1, "𑱐=");
        assert_eq!(errors("a \"é")[0].1, "\"é");
    }

    #[test]
    fn a_number_that_is_too_large_is_no_missing_value() {
        let digits = "9".repeat(40);
        let found = errors(&format!("a b={digits}"));
        assert_eq!((found.len(), found[0].1.as_str()), (1, digits.as_str()));
        assert!(found[0].0.contains("too large"));
    }

    #[test]
    fn several_mistakes_are_found_in_one_pass() {
        assert_eq!(errors("a 2h\nb 3h\nc {}\n").len(), 2);
    }

    #[test]
    fn long_runs_of_a_mark_end_in_findings_and_never_in_an_abort() {
        for (mark, before, after) in [
            ("/- ", "", "a"),
            ("\"", "a ", ""),
            ("=", "a ", ""),
            ("* ", "/* ", "*/"),
            ("*", "/*", "/"),
            ("/ ", "/* ", "*/"),
            ("a{}", "", ""),
            ("a /-{ ", "", ""),
            (";", "", ""),
            ("\\\n", "a ", ""),
        ] {
            let text = format!("{before}{}{after}", mark.repeat(10_000));
            assert!(errors(&text).len() <= MAX_FINDINGS, "{mark}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_braces_in_strings_do_not_count() {
        let deep = "a {".repeat(100_000);
        assert!(errors(&deep)[0].0.contains("deeper than"));
        let strings = "a \"{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{\" // {{{{\n".repeat(3);
        assert!(errors(&strings).is_empty());
    }
}
