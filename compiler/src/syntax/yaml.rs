//! YAML into the same tree as KDL, by the shapes in the table of kinds.
//!
//! A kind with a name is a map keyed by it, one with a value is a scalar or has the key `is`, one
//! that repeats without a name is a list, one with nothing inside is `true`. Scalars are read by the
//! YAML 1.2 core schema. Aliases are refused: they give one value two places.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fleetc_schema::diag::{Diagnostic, Span, rules};
use granit_parser::{Event, Parser, ScalarStyle};

use super::{MAX_DEPTH, Node, REPLACE, Scalar, Value, Word, span, syntax_error};
use crate::MAX_FINDINGS;
use crate::language::{Arg, Form, Kind, Occurs};

/// Parses a file by the fields of `root`.
pub fn parse(
    file: u32,
    text: &str,
    root: &'static Kind,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Node> {
    let most = diagnostics.len() + MAX_FINDINGS;
    let nodes = nodes(file, text, root, diagnostics);
    diagnostics.truncate(most);
    nodes
}

fn nodes(
    file: u32,
    text: &str,
    root: &'static Kind,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Node> {
    if let Some(first) = kdl_line(text) {
        let here = span(file, text, first);
        let found = syntax_error("this is KDL, and the file's name says YAML", here, "KDL");
        diagnostics.push(found.help("let the file's name end in `.kdl`"));
        return Vec::new();
    }
    let mut loader = Loader { file, text, diagnostics };
    let Some(document) = loader.document() else { return Vec::new() };
    if loader.diagnostics.iter().any(|found| found.rule == &rules::SPEC_SYNTAX) {
        return Vec::new();
    }
    let mut nodes = Nodes { diagnostics: loader.diagnostics };
    match document {
        Yaml::Map(entries, _) => nodes.fields(entries, root).1,
        Yaml::Scalar(Value { scalar: Scalar::Null, .. }) => Vec::new(),
        other => {
            let title = "a spec is a map: `pool: {…}`, `team: {…}`".to_owned();
            let found = syntax_error(title, other.span(), "not a map");
            nodes.diagnostics.push(found.help("begin with `fleet: {name: true}`"));
            Vec::new()
        }
    }
}

/// The first line that says something, if it is a word and a text, as in KDL.
fn kdl_line(text: &str) -> Option<std::ops::Range<usize>> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let said = line.trim();
        if !said.is_empty() && !said.starts_with("//") {
            let (word, _) = said.split_once(" \"")?;
            let is_word = word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            let from = start + (line.len() - line.trim_start().len());
            return is_word.then_some(from..from + said.len());
        }
        start += line.len();
    }
    None
}

/// A YAML value.
enum Yaml {
    Scalar(Value),
    List(Vec<Yaml>, Span),
    Map(Vec<(Word, Yaml)>, Span),
}

impl Yaml {
    fn span(&self) -> Span {
        match self {
            Self::Scalar(value) => value.span,
            Self::List(_, span) | Self::Map(_, span) => *span,
        }
    }

    /// The value itself, or what stands in for it where a scalar belongs.
    fn into_value(self) -> Value {
        match self {
            Self::Scalar(value) => value,
            Self::List(_, span) => Value { scalar: Scalar::Collection("a list"), span },
            Self::Map(_, span) => Value { scalar: Scalar::Collection("a map"), span },
        }
    }
}

/// From events to values.
struct Loader<'a> {
    file: u32,
    text: &'a str,
    diagnostics: &'a mut Vec<Diagnostic>,
}

type Events<'t> = Parser<'t, granit_parser::StrInput<'t>>;

impl<'a> Loader<'a> {
    /// The first document; a second one is refused. None: findings say why.
    fn document(&mut self) -> Option<Yaml> {
        let mut events = Parser::new_from_str(self.text);
        let mut document = None;
        loop {
            let (event, at) = self.next(&mut events)?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(..) if document.is_some() => {
                    let title = "a spec is one YAML document";
                    let found = syntax_error(title, at, "a second one starts here");
                    let help = "put it into a file of its own, and `include` that";
                    self.diagnostics.push(found.help(help));
                    return None;
                }
                Event::Scalar(..)
                | Event::SequenceStart(..)
                | Event::MappingStart(..)
                | Event::Alias(_) => document = Some(self.value(event, at, &mut events, 0)?),
                _ => {}
            }
        }
        let empty = Value { scalar: Scalar::Null, span: span(self.file, self.text, 0..0) };
        Some(document.unwrap_or(Yaml::Scalar(empty)))
    }

    /// The next event that is not a comment.
    fn next<'t>(&mut self, events: &mut Events<'t>) -> Option<(Event<'t>, Span)> {
        let event = events.find(|event| !matches!(event, Ok((Event::Comment(..), _))));
        match event? {
            Ok((event, at)) => {
                let range = at.byte_range().unwrap_or(0..0);
                Some((event, span(self.file, self.text, range)))
            }
            Err(error) => {
                let at = error.marker().byte_offset().unwrap_or(0);
                let finding = habit(self.file, self.text, at, &error.info())
                    .unwrap_or_else(|| self.unreadable(&error.info(), at));
                self.diagnostics.push(finding);
                None
            }
        }
    }

    /// What the parser does not take, at the character that it stopped at.
    fn unreadable(&self, why: &str, at: usize) -> Diagnostic {
        let mut start = at.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let before = self.text.get(..start).unwrap_or_default();
        if why.contains("tab") && before.ends_with('\t') {
            // It stops after the tabs.
            start = before.trim_end_matches('\t').len();
        }
        let rest = self.text.get(start..).unwrap_or_default();
        let length = rest.chars().next().map_or(0, char::len_utf8);
        let here = span(self.file, self.text, start..start + length);
        if why.contains("recursion limit") {
            let title = format!("the file nests deeper than {MAX_DEPTH} levels");
            return syntax_error(title, here, "far too deep");
        }
        let finding = syntax_error(format!("this is not YAML: {why}"), here, "here");
        finding.help(way_out(why, before, rest))
    }

    fn value<'t>(
        &mut self,
        event: Event<'t>,
        at: Span,
        events: &mut Events<'t>,
        depth: usize,
    ) -> Option<Yaml> {
        if depth > MAX_DEPTH {
            let title = format!("the file nests deeper than {MAX_DEPTH} levels");
            self.diagnostics.push(syntax_error(title, at, "one level too many"));
            return None;
        }
        match event {
            Event::Scalar(text, style, _, tag) => {
                if tag.is_some() {
                    let title = "the language has no YAML tags";
                    self.diagnostics.push(syntax_error(title, at, "tagged").help("remove the tag"));
                }
                Some(Yaml::Scalar(Value { scalar: core_schema(text, style), span: at }))
            }
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    let (event, here) = self.next(events)?;
                    if matches!(event, Event::SequenceEnd) {
                        return Some(Yaml::List(items, at));
                    }
                    items.push(self.value(event, here, events, depth + 1)?);
                }
            }
            Event::MappingStart(..) => {
                let mut entries: Vec<(Word, Yaml)> = Vec::new();
                let mut stated: BTreeMap<String, Span> = BTreeMap::new();
                loop {
                    let (event, here) = self.next(events)?;
                    if matches!(event, Event::MappingEnd) {
                        return Some(Yaml::Map(entries, at));
                    }
                    let key = self.key(event, here, events, depth)?;
                    let (event, here) = self.next(events)?;
                    let value = self.value(event, here, events, depth + 1)?;
                    match stated.get(&key.text) {
                        Some(first) => self.stated_twice(&key, *first),
                        None => {
                            stated.insert(key.text.clone(), key.span);
                            entries.push((key, value));
                        }
                    }
                }
            }
            Event::Alias(_) => {
                let title = "aliases are not part of the language";
                let finding = syntax_error(title, at, "an alias");
                self.diagnostics.push(finding.help("write the value out"));
                Some(Yaml::Scalar(Value { scalar: Scalar::Null, span: at }))
            }
            _ => Some(Yaml::Scalar(Value { scalar: Scalar::Null, span: at })),
        }
    }

    fn key<'t>(
        &mut self,
        event: Event<'t>,
        at: Span,
        events: &mut Events<'t>,
        depth: usize,
    ) -> Option<Word> {
        let text = match event {
            Event::Scalar(text, ..) => text.into_owned(),
            other => {
                let finding = syntax_error("a key is a word", at, "not a word");
                self.diagnostics.push(finding);
                self.value(other, at, events, depth + 1)?;
                String::new()
            }
        };
        Some(Word { text, span: at })
    }

    fn stated_twice(&mut self, key: &Word, first: Span) {
        let finding =
            Diagnostic::new(&rules::SPEC_DUPLICATE, format!("`{}` is stated twice", key.text))
                .at(key.span, "stated again here")
                .at(first, "first stated here")
                .help("keep one of the two");
        self.diagnostics.push(finding);
    }
}

/// What to do about what the parser does not take, by its words and by what stands around the place.
fn way_out(why: &str, before: &str, rest: &str) -> String {
    let first = rest.chars().next();
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    let says = |words: &str| why.contains(words);
    let fixed = match first {
        Some('\t') => "YAML is indented with blanks: put blanks in place of the tab",
        Some('{') if says("unclosed bracket") => "close it with `}`",
        Some('[') if says("unclosed bracket") => "close it with `]`",
        _ if says("misplaced bracket") => "remove it: no bracket is open here",
        _ if says("mismatched bracket '['") => "close the `[` with `]` first",
        _ if says("mismatched bracket '{'") => "close the `{` with `}` first",
        Some('{' | '[') if says("a flow mapping, did not find") => {
            "put a colon and a blank between the key and what it holds: `key: {…}`"
        }
        _ if says("a flow mapping, did not find") => {
            "close the `{` before this with `}`, or put a `,` between its entries"
        }
        _ if says("a flow sequence, did not find") => {
            "close the `[` before this with `]`, or put a `,` between its items"
        }
        _ if says("flow mapping") => "remove the `,` that nothing follows, or close the `{`",
        _ if says("expected '-'") => "items of a list begin with `- `: a key stands beside none",
        _ if says("expected key") && line == "-" => {
            "a map holds keys: a list with `- ` has a key of its own, and is indented below it"
        }
        _ if says("expected key") && line.is_empty() => {
            "indent it with as many blanks as the keys that it belongs to"
        }
        _ if says("expected key") || says("trailing content") => {
            "a value ends its line: start a new line, or put all of it in one pair of quotes"
        }
        _ if says("unclosed quote") => "end the text with the mark that it begins with",
        _ if says("escape") => "write a backslash twice, or put the text in single quotes",
        Some('>' | '|') => {
            let text = rest.lines().next().unwrap_or_default().trim_end();
            return format!("put it in quotes: `\"{text}\"`");
        }
        _ if says("anchor") => "write the value out; a text that begins with `*` stands in quotes",
        Some(control) if control.is_control() => "remove it",
        _ if says("':'") => "end the key with a colon",
        _ => "a text that holds or begins with a mark of YAML stands in quotes: `\"…\"`",
    };
    fixed.to_owned()
}

/// What people often get wrong in YAML: tabs, a bare text with brackets in a flow map, a colon that
/// lacks on the line above or stands on a line that is indented otherwise.
fn habit(file: u32, text: &str, at: usize, info: &str) -> Option<Diagnostic> {
    let before = text.get(..at)?;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.get(start..)?;
    let rest = text.get(at..)?;
    if info.contains("tab") {
        let from = line.find('\t').map_or(at, |tab| start + tab);
        let here = span(file, text, from..from + 1);
        let finding = syntax_error("YAML is not indented with tabs", here, "a tab");
        return Some(finding.help("indent with blanks"));
    }
    if rest.starts_with('[') && line.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '-') {
        let from = start + line.rfind([' ', ',', '{', '[']).map_or(0, |end| end + 1);
        let end = rest.find([' ', '}', '\n']).map_or(text.len(), |end| at + end);
        let word = text.get(from..end)?.trim_end_matches(',');
        let here = span(file, text, from..from + word.len());
        let finding = syntax_error("a text with brackets stands in quotes", here, "not quoted");
        return Some(finding.help(format!("put it in quotes: `\"{word}\"`")));
    }
    if info.contains("mapping values are not allowed") {
        let word = line.trim_start();
        let from = start + (line.len() - word.len());
        let here = span(file, text, from..at);
        let finding = syntax_error("a key cannot stand here", here, "belongs to the line above");
        return Some(finding.help(
            "indent it like its neighbours, and end the line above with its colon or value",
        ));
    }
    None
}

/// A plain scalar by the core schema of YAML 1.2; a quoted one is text.
fn core_schema(text: Cow<'_, str>, style: ScalarStyle) -> Scalar {
    if style != ScalarStyle::Plain {
        return Scalar::String(text.into_owned());
    }
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(&text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let number = digits(whole)
        && fraction.is_none_or(|part| part.is_empty() || digits(part))
        && exponent.is_none_or(|part| digits(part.strip_prefix(['-', '+']).unwrap_or(part)));
    match text.as_ref() {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "true" | "True" | "TRUE" => Scalar::Bool(true),
        "false" | "False" | "FALSE" => Scalar::Bool(false),
        _ if number && fraction.is_none() && exponent.is_none() => match text.parse() {
            Ok(integer) => Scalar::Integer(integer),
            Err(_) => Scalar::Decimal(text.into_owned()),
        },
        _ if number => Scalar::Decimal(text.into_owned()),
        _ => Scalar::String(text.into_owned()),
    }
}

/// From values to nodes, by kind.
struct Nodes<'a> {
    diagnostics: &'a mut Vec<Diagnostic>,
}

type Props = Vec<(Word, Value)>;

impl Nodes<'_> {
    /// The fields of an item: properties and children.
    fn fields(&mut self, entries: Vec<(Word, Yaml)>, kind: &'static Kind) -> (Props, Vec<Node>) {
        let (mut props, mut children) = (Vec::new(), Vec::new());
        for (key, value) in entries {
            let Some(field) = kind.field(&key.text) else {
                if key.text == REPLACE {
                    props.push((key, value.into_value()));
                    continue;
                }
                let values = match value {
                    Yaml::Scalar(value) => vec![value],
                    Yaml::List(..) | Yaml::Map(..) => Vec::new(),
                };
                children.push(leaf(key, values));
                continue;
            };
            match field.form {
                Form::Property(_) => props.push((key, value.into_value())),
                Form::Value(_) => children.push(leaf(key, vec![value.into_value()])),
                Form::List(_) => {
                    let values = match value {
                        Yaml::List(items, _) => items.into_iter().map(Yaml::into_value).collect(),
                        other => vec![other.into_value()],
                    };
                    children.push(leaf(key, values));
                }
                Form::Kind(child) => self.items(key, value, child(), field.occurs, &mut children),
            }
        }
        (props, children)
    }

    fn items(
        &mut self,
        key: Word,
        value: Yaml,
        kind: &'static Kind,
        occurs: Occurs,
        children: &mut Vec<Node>,
    ) {
        match (occurs, value) {
            (Occurs::Named, Yaml::Map(entries, _)) if unnamed(&entries, kind) => {
                let title = format!("`{}` is a map from names to items, found an item", key.text);
                let name = entries.iter().find_map(|(word, value)| match value {
                    Yaml::Scalar(Value { scalar: Scalar::String(text), .. })
                        if word.text == "name" =>
                    {
                        Some(text.as_str())
                    }
                    _ => None,
                });
                let first = entries.first().map_or(key.span, |(word, _)| word.span);
                let finding = Diagnostic::new(&rules::SPEC_WRONG_TYPE, title)
                    .at(first, "a name belongs here, with the item below it");
                let name = name.unwrap_or("name");
                self.diagnostics
                    .push(finding.help(format!("write `{}: {{{name}: {{…}}}}`", key.text)));
            }
            (Occurs::Named, Yaml::Map(entries, _)) => {
                for (name, body) in entries {
                    let arg = Value { scalar: Scalar::String(name.text), span: name.span };
                    let word = Word { text: key.text.clone(), span: name.span };
                    if matches!(kind.arg, Arg::NameAndValues(_)) {
                        let values = match body {
                            Yaml::List(items, _) => items,
                            other => vec![other],
                        };
                        let args = std::iter::once(arg);
                        let args = args.chain(values.into_iter().map(Yaml::into_value)).collect();
                        children.push(leaf(word, args));
                        continue;
                    }
                    children.push(self.item(word, vec![arg], body, kind));
                }
            }
            (Occurs::Named, other) => {
                self.wrong_shape(&key, &other, "a map from names to items", "{name: {…}}");
                // A text is read as the name, so that what refers to it finds it.
                if let Yaml::Scalar(value @ Value { scalar: Scalar::String(_), .. }) = other {
                    children.push(leaf(key, vec![value]));
                }
            }
            (Occurs::Listed, Yaml::List(items, _)) => {
                for body in items {
                    let word = Word { text: key.text.clone(), span: start_of(&body) };
                    children.push(self.item(word, Vec::new(), body, kind));
                }
            }
            (Occurs::Listed, other) => self.wrong_shape(&key, &other, "a list", "[{…}]"),
            (Occurs::Optional | Occurs::Required, body) => {
                children.push(self.item(key, Vec::new(), body, kind));
            }
        }
    }

    fn item(&mut self, word: Word, args: Vec<Value>, body: Yaml, kind: &'static Kind) -> Node {
        let mut node = Node { name: word, args, props: Vec::new(), children: Vec::new() };
        match body {
            Yaml::Map(mut entries, _) => {
                if matches!(kind.arg, Arg::Value { .. })
                    && let Some(at) = entries.iter().position(|(key, _)| key.text == "is")
                {
                    node.args.push(entries.remove(at).1.into_value());
                }
                (node.props, node.children) = self.fields(entries, kind);
            }
            // An item with nothing inside.
            Yaml::Scalar(Value { scalar: Scalar::Bool(true) | Scalar::Null, .. })
                if !matches!(kind.arg, Arg::Value { .. }) => {}
            scalar @ Yaml::Scalar(_) if matches!(kind.arg, Arg::Value { .. }) => {
                node.args.push(scalar.into_value());
            }
            other => {
                let word = node.name.clone();
                self.wrong_shape(&word, &other, "a map", "{…}");
            }
        }
        node
    }

    fn wrong_shape(&mut self, key: &Word, found: &Yaml, wanted: &str, example: &str) {
        let what = match found {
            Yaml::Scalar(value) => value.scalar.describe(),
            Yaml::List(..) => "a list",
            Yaml::Map(..) => "a map",
        };
        let title = format!("`{}` is {wanted}, found {what}", key.text);
        let finding = Diagnostic::new(&rules::SPEC_WRONG_TYPE, title)
            .at(found.span(), format!("{wanted} belongs here"))
            .help(format!("write `{}: {example}`", key.text));
        self.diagnostics.push(finding);
    }
}

/// True if a map holds the words of one item where names belong: all of them words of the kind, and
/// none an item.
fn unnamed(entries: &[(Word, Yaml)], kind: &Kind) -> bool {
    let known = |word: &str| kind.field(word).is_some() || matches!(word, "name" | "is");
    let is_item = |value: &Yaml| {
        matches!(
            value,
            Yaml::Map(..) | Yaml::Scalar(Value { scalar: Scalar::Bool(_) | Scalar::Null, .. })
        )
    };
    let takes_values = matches!(kind.arg, Arg::NameAndValues(_));
    !takes_values
        && !entries.is_empty()
        && entries.iter().all(|(word, _)| known(&word.text))
        && entries.iter().any(|(_, value)| !is_item(value))
}

fn leaf(name: Word, args: Vec<Value>) -> Node {
    Node { name, args, props: Vec::new(), children: Vec::new() }
}

/// Where a list item starts: its first key, or its value.
fn start_of(body: &Yaml) -> Span {
    match body {
        Yaml::Map(entries, span) => entries.first().map_or(*span, |(key, _)| key.span),
        other => other.span(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::kinds::Spec;

    fn nodes(text: &str) -> (Vec<Node>, Vec<Diagnostic>) {
        let mut diagnostics = Vec::new();
        let nodes = parse(0, text, Spec::kind(), &mut diagnostics);
        (nodes, diagnostics)
    }

    #[test]
    fn scalars_follow_the_core_schema() {
        let read = |text: &str| core_schema(text.into(), ScalarStyle::Plain);
        assert_eq!(read("12"), Scalar::Integer(12));
        assert_eq!(read("24.11"), Scalar::Decimal("24.11".into()));
        assert_eq!(read("1e3"), Scalar::Decimal("1e3".into()));
        assert_eq!(read("no"), Scalar::String("no".into()));
        assert_eq!(read("12:30"), Scalar::String("12:30".into()));
        assert_eq!(read("580.105.08"), Scalar::String("580.105.08".into()));
        assert_eq!(read("~"), Scalar::Null);
        assert_eq!(
            core_schema("12".into(), ScalarStyle::DoubleQuoted),
            Scalar::String("12".into())
        );
    }

    #[test]
    fn aliases_duplicate_keys_and_second_documents_are_refused() {
        for text in
            ["a: &x 1\nb: *x\n", "rack: {r1: {nodes: a}, r1: {nodes: b}}", "a: 1\n---\nb: 2"]
        {
            assert!(!nodes(text).1.is_empty(), "{text}");
        }
    }

    #[test]
    fn places_are_whole_characters() {
        for text in
            ["a: {é", "é\u{0}", "a: \"\u{1f600}", "a\u{feff}é: 1\n\u{feff}", "- é\n\u{e9}: ["]
        {
            for found in nodes(text).1 {
                let fleetc_schema::diag::Place::Span(span) = found.labels[0].place else {
                    panic!()
                };
                assert!(text.get(span.start as usize..span.end as usize).is_some(), "{text}");
            }
        }
    }

    #[test]
    fn deep_nesting_and_alias_bombs_end_early() {
        assert_eq!(nodes(&"[".repeat(10_000)).1.len(), 1);
        let mut bomb = "a: &a [x]\n".to_owned();
        for _ in 0..20 {
            bomb.push_str("b: [*a, *a]\n");
        }
        assert!(!nodes(&bomb).1.is_empty());
    }

    #[test]
    fn comments_may_stand_anywhere() {
        let text = "# a\nrack: # b\n  # c\n  r1: {nodes: \"x\"} # d\n# e\nteam: [ # f\n  # g\n]\n";
        let (nodes, found) = nodes(text);
        assert_eq!(nodes.len(), 1);
        assert_eq!(found.len(), 1, "a list of teams: {found:?}");
    }

    #[test]
    fn an_empty_file_is_an_empty_spec() {
        assert!(nodes("# nothing\n").0.is_empty());
        assert!(nodes("").1.is_empty());
    }
}
