//! Inventories: what is known of each node, in a file of its own beside the spec.
//!
//! `inventory "nodes.csv"` names files relative to the one that says so: CSV with a header row (RFC
//! 4180), or JSON Lines (jsonlines.org), one object a node. A row is not kept: rows that follow each
//! other and differ in the number of their node only are one run, so memory goes with what differs.
//!
//! Invariant: a file is untrusted. Every mistake is a finding at its line and column, and neither a
//! long line nor a large file is more than refused.

mod csv;
mod jsonl;
mod table;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, Rule, Span, rules};

use crate::files::Files;
use crate::language::{Cx, did_you_mean, listing};
use crate::source::{self, ReadError, Sources};
use crate::syntax::{Node, Scalar, Value};

pub use table::{Run, Table, Text, Texts, WholeName};

/// The most bytes of an inventory: a million rows of 256.
pub const MAX_BYTES: u64 = 256 << 20;

/// The longest line that is taken.
const MAX_LINE_BYTES: usize = 16 << 10;

/// The most mistakes of one file that are shown.
pub const MAX_FINDINGS: usize = 100;

/// The most inventories of a spec.
const MAX_FILES: usize = 100;

/// Columns of an inventory, each with what it says.
pub const COLUMNS: &[(&str, &str)] = &[
    ("node", "The node: one name, not a list. Every row has one."),
    ("pool", "The pool that the node is of."),
    ("rack", "The rack that it stands in."),
    ("switch", "The switches that it hangs on, of any fabric: one, or one a rail."),
    ("pci", "PCI addresses of all GPUs of the complete node, rising: that of GPU 0 first."),
];

/// The page about inventories (`docs/inventory.md`), from the table of columns.
pub fn page() -> String {
    let mut table = "| column | says |\n| --- | --- |".to_owned();
    for (word, says) in COLUMNS {
        table.push_str(&format!("\n| `{word}` | {says} |"));
    }
    include_str!("page.md").replace("{columns}", &table)
}

/// A column: its place in [`COLUMNS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Node,
    Pool,
    Rack,
    Switch,
    Pci,
}

impl Column {
    fn of(word: &str) -> Option<Self> {
        match word {
            "node" => Some(Self::Node),
            "pool" => Some(Self::Pool),
            "rack" => Some(Self::Rack),
            "switch" => Some(Self::Switch),
            "pci" => Some(Self::Pci),
            _ => None,
        }
    }
}

/// What all inventories of a spec say.
#[derive(Debug, Default)]
pub struct Inventory {
    /// The rows.
    pub table: Table,
    /// True if a mistake left rows out: what is missing may stand in them.
    pub broken: bool,
}

/// Reads the files that `inventory` nodes name.
pub fn read(files: &dyn Files, nodes: &[Node], sources: &mut Sources, cx: &mut Cx) -> Inventory {
    let mut inventory = Inventory::default();
    let mut known: Vec<(Utf8PathBuf, Span)> = Vec::new();
    for node in nodes {
        let path = ItemPath::default().child(&node.name.text);
        cx.places.entry(path).or_insert(node.head());
        if let Some(wrong) = node.props.first().map(|(word, _)| word.span) {
            let title = "`inventory` takes files and nothing else";
            let finding = Diagnostic::new(&rules::SPEC_WRONG_TYPE, title).at(wrong, "too much");
            cx.report(finding.help("write `inventory \"nodes.csv\"`"));
        }
        if node.args.is_empty() {
            let finding = Diagnostic::new(&rules::SPEC_MISSING, "`inventory` names no file");
            let finding = finding.at(node.name.span, "nothing follows");
            cx.report(finding.help("write `inventory \"nodes.csv\"`"));
        }
        for value in &node.args {
            let read = named(files, value, &mut known, sources, cx);
            let fine = read.is_some_and(|(file, form)| {
                let text = sources.of(Span { file, start: 0, end: 0 });
                let text = text.map_or("", |source| source.text.as_str());
                rows(text, file, form, value.span, &mut inventory.table, cx)
            });
            inventory.broken |= !fine;
        }
    }
    inventory.broken |= inventory.table.drop_repeats(sources, cx);
    inventory
}

/// The form of an inventory.
#[derive(Debug, Clone, Copy)]
enum Form {
    Csv,
    JsonLines,
}

/// Reads the text of one file into the sources.
fn named(
    files: &dyn Files,
    value: &Value,
    known: &mut Vec<(Utf8PathBuf, Span)>,
    sources: &mut Sources,
    cx: &mut Cx,
) -> Option<(u32, Form)> {
    let Scalar::String(text) = &value.scalar else {
        let title = format!("expected a file, found {}", value.scalar.describe());
        let finding = Diagnostic::new(&rules::SPEC_WRONG_TYPE, title);
        let finding = finding.at(value.span, "a file belongs here");
        cx.report(finding.help("write its name in quotes"));
        return None;
    };
    let from = sources.of(value.span).and_then(|source| source.path.parent());
    let path = from.unwrap_or(Utf8Path::new("")).join(text);
    let report = |rule: &'static Rule, title: String, help: &str, cx: &mut Cx| {
        cx.report(Diagnostic::new(rule, title).at(value.span, "named here").help(help));
    };
    let Ok(path) = source::normalise(&path) else {
        let title = format!("`{text}` is outside the root");
        let help = "move the file below the root, or name a root with --root";
        report(&rules::SPEC_OUTSIDE_ROOT, title, help, cx);
        return None;
    };
    let form = match path.extension() {
        Some("csv") => Form::Csv,
        Some("jsonl" | "ndjson") => Form::JsonLines,
        _ => {
            let title = format!("`{text}` is neither CSV nor JSON Lines by its name");
            let help = "an inventory ends in .csv, .jsonl or .ndjson";
            report(&rules::SPEC_WRONG_TYPE, title, help, cx);
            return None;
        }
    };
    if let Some((_, first)) = known.iter().find(|(read, _)| *read == path) {
        let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, format!("`{path}` is read twice"))
            .at(value.span, "named again here")
            .at(*first, "first named here");
        cx.report(finding.help("name it once"));
        return None;
    }
    known.push((path.clone(), value.span));
    if known.len() > MAX_FILES {
        let title = format!("a spec has at most {MAX_FILES} inventories");
        report(&rules::SPEC_OUT_OF_RANGE, title, "join some of them", cx);
        return None;
    }
    let bytes = match files.read(&path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => {
            let rule = match error.kind() {
                std::io::ErrorKind::PermissionDenied => &rules::SPEC_OUTSIDE_ROOT,
                _ => &rules::SPEC_INCLUDE_NOT_FOUND,
            };
            let help = "names are relative to the file that holds them";
            report(rule, ReadError::Io { path, error }.to_string(), help, cx);
            return None;
        }
    };
    Some((decoded(bytes, path, sources, cx)?, form))
}

/// Puts the text of a file into the sources. None if it is no text, which is reported.
fn decoded(bytes: Vec<u8>, path: Utf8PathBuf, sources: &mut Sources, cx: &mut Cx) -> Option<u32> {
    let (text, wrong) = match String::from_utf8(bytes) {
        Ok(text) => {
            let wrong = control_at(&text).map(|at| (at, "a control character"));
            (text, wrong)
        }
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            (text, Some((at, "not UTF-8")))
        }
    };
    let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let text = if mark == 0 { text } else { text.get(mark..).unwrap_or_default().to_owned() };
    let Some((at, what)) = wrong else { return Some(sources.add(path, text)) };
    // What a terminal would obey is not shown to it.
    let shown =
        text.replace(|c: char| c.is_ascii_control() && !matches!(c, '\t' | '\n' | '\r'), "?");
    let file = sources.add(path.clone(), shown);
    let start = offset(at.saturating_sub(mark));
    let finding = Diagnostic::new(&rules::SPEC_SYNTAX, format!("`{path}` is no text"));
    let finding = finding.at(Span { file, start, end: start.saturating_add(1) }, what);
    cx.report(finding.help("save it as UTF-8, in a spreadsheet \"CSV UTF-8\""));
    None
}

/// The first byte that no text has: NUL, escapes and the like.
fn control_at(text: &str) -> Option<usize> {
    let wrong = |byte: u8| {
        (byte < b' ') & (byte != b'\t') & (byte != b'\n') & (byte != b'\r') | (byte == 0x7f)
    };
    // Without an early end in a chunk, so that many bytes are looked at together.
    let chunk = text
        .as_bytes()
        .chunks(4096)
        .position(|chunk| chunk.iter().fold(false, |found, byte| found | wrong(*byte)))?;
    let from = chunk * 4096;
    let inside = text.as_bytes().get(from..)?.iter().position(|byte| wrong(*byte))?;
    Some(from + inside)
}

/// Reads the rows of one file. False if there was a mistake.
fn rows(text: &str, file: u32, form: Form, named: Span, table: &mut Table, cx: &mut Cx) -> bool {
    let mut errors = Errors { file, found: Vec::new(), more: 0 };
    match form {
        Form::Csv => csv::read(text, file, table, &mut errors),
        Form::JsonLines => jsonl::read(text, file, table, &mut errors),
    }
    let fine = errors.found.is_empty();
    cx.diagnostics.append(&mut errors.found);
    if errors.more > 0 {
        let title = format!("{} more mistakes in this inventory are not shown", errors.more);
        let finding = Diagnostic::new(&rules::SPEC_SYNTAX, title).at(named, "this file");
        cx.report(finding.help("mend those that are shown, and check again"));
    }
    fine
}

/// Mistakes of one file.
struct Errors {
    file: u32,
    found: Vec<Diagnostic>,
    more: usize,
}

impl Errors {
    /// Adds a finding at these bytes, unless there are too many already.
    fn report(
        &mut self,
        rule: &'static Rule,
        (start, end): (u32, u32),
        title: impl FnOnce() -> String,
        label: &str,
        help: impl Into<String>,
    ) {
        if self.found.len() >= MAX_FINDINGS {
            self.more = self.more.saturating_add(1);
            return;
        }
        let span = Span { file: self.file, start, end };
        self.found.push(Diagnostic::new(rule, title()).at(span, label).help(help));
    }

    fn syntax(&mut self, at: (u32, u32), title: &str, label: &str, help: &str) {
        self.report(&rules::SPEC_SYNTAX, at, || title.to_owned(), label, help);
    }

    fn unknown_column(&mut self, word: &str, at: (u32, u32)) {
        let words = || COLUMNS.iter().map(|(word, _)| *word);
        let help = match did_you_mean(&word.to_ascii_lowercase(), words()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if Column::of(&word.to_ascii_lowercase()).is_some() => {
                format!("did you mean `{}`?", word.to_ascii_lowercase())
            }
            None => format!("leave it out: an inventory has {}", listing(words())),
        };
        let title = || format!("`{}` is not a column of an inventory", word.escape_debug());
        self.report(&rules::SPEC_UNKNOWN_PROPERTY, at, title, "not known here", help);
    }
}

/// A position in a file as spans hold it; no file is larger than [`MAX_BYTES`].
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The first letter of a text that begins here, whatever its length; nothing if there is none.
fn letter(text: &str, at: usize) -> (u32, u32) {
    let length = text.chars().next().map_or(0, char::len_utf8);
    (offset(at), offset(at + length))
}

/// The lines of a text: where each begins, and its text without its end.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        let line = line.strip_suffix('\n').unwrap_or(line);
        (at, line.strip_suffix('\r').unwrap_or(line))
    })
}

/// True for a line that says nothing: blanks, or the bare commas of a spreadsheet's empty row.
fn says_nothing(line: &str) -> bool {
    let blank = |byte: u8| matches!(byte, b' ' | b'\t' | b',');
    // Most lines are decided by their first byte.
    line.bytes().all(blank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Memory;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Reads one file; gives the inventory and the titles of what was found.
    fn of(name: &str, text: &str) -> (Inventory, Vec<String>) {
        let (mut sources, mut cx) = (Sources::default(), Cx::default());
        let spec = format!("inventory \"{name}\"\n");
        let file = sources.add("fleet.kdl".into(), spec.clone());
        let nodes = crate::syntax::kdl::parse(file, &spec, &mut Vec::new());
        let inventory = read(&Memory::one(name, text), &nodes, &mut sources, &mut cx);
        (inventory, cx.diagnostics.into_iter().map(|found| found.title).collect())
    }

    /// What a row says beside its node.
    type Facts = [Option<String>; 4];

    fn facts_of(table: &Table, node: &str) -> Option<Facts> {
        let run = table.run_of(node)?;
        let text = |texts: &Texts, id: Option<u32>| {
            Some(texts.iter().find(|text| Some(text.id) == id)?.text.to_owned())
        };
        Some([
            text(&table.pools, run.pool()),
            text(&table.racks, run.rack()),
            text(&table.switches, run.switch()),
            text(&table.pci, run.pci()),
        ])
    }

    fn rows() -> impl Strategy<Value = BTreeMap<String, Facts>> {
        let number = (0_u32..30, 1_usize..3).prop_map(|(n, width)| format!("{n:0width$}"));
        let prefix = prop::sample::select(vec!["n", "gpu", "r1-", ""]);
        let node = (prefix, number).prop_map(|(prefix, number)| prefix.to_owned() + &number);
        let text = prop_oneof![
            4 => prop::sample::select(vec!["p", "q", "r1", "leaf1 leaf2"]).prop_map(str::to_owned),
            1 => "[a-c\"\\\\,;é]{1,5}",
        ];
        let fact = || prop::option::of(text.clone());
        let facts = (fact(), fact(), fact(), fact()).prop_map(|(a, b, c, d)| [a, b, c, d]);
        prop::collection::btree_map(node, facts, 1..30)
    }

    fn csv_cell(text: &str, quote: bool) -> String {
        match quote || text.contains(['"', ',']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.to_owned(),
        }
    }

    proptest! {
        #[test]
        fn rows_that_are_written_are_read_back(
            rows in rows(),
            backwards in any::<bool>(),
            quote in any::<bool>(),
            end in prop::sample::select(vec!["\n", "\r\n"]),
        ) {
            let mut csv = format!("rack,node,pci,switch,pool{end}");
            let mut jsonl = String::new();
            let mut order: Vec<_> = rows.iter().collect();
            if backwards {
                order.reverse();
            }
            for (node, [pool, rack, switch, pci]) in order {
                let cell = |fact: &Option<String>| csv_cell(fact.as_deref().unwrap_or(""), quote);
                let cells = [cell(rack), csv_cell(node, quote), cell(pci), cell(switch), cell(pool)];
                csv += &(cells.join(",") + end);
                let row = serde_json::json!({
                    "node": node, "pool": pool, "rack": rack, "switch": switch, "pci": pci,
                });
                jsonl += &format!("{row}{end}");
            }
            for (name, text) in [("n.csv", csv), ("n.jsonl", jsonl)] {
                let (inventory, found) = of(name, &text);
                prop_assert_eq!(found, Vec::<String>::new(), "{}", text);
                prop_assert!(!inventory.broken);
                let all = inventory.table.nodes(inventory.table.runs());
                prop_assert_eq!(all.len(), rows.len() as u64);
                for (node, facts) in &rows {
                    let read = facts_of(&inventory.table, node);
                    prop_assert_eq!(read.as_ref(), Some(facts));
                }
            }
        }

        #[test]
        fn no_text_makes_a_reader_panic(text in any::<String>()) {
            for name in ["n.csv", "n.jsonl"] {
                of(name, &text);
                of(name, &format!("node,pool\n{text}"));
            }
        }

        #[test]
        fn texts_of_the_letters_of_a_form_never_panic(
            csv in "[nab0-2,\" \r\n;]{0,60}",
            jsonl in "[{}\\[\\]\":,nodepcil0-2 \n\\\\]{0,60}",
        ) {
            of("n.csv", &format!("node,pool\n{csv}"));
            of("n.jsonl", &jsonl);
        }
    }

    #[test]
    fn neighbours_that_say_the_same_are_one_run() {
        let row = |n: u32| format!("n{n:03},{},r{}\n", "p", n / 10);
        let text: String = (0..100).map(row).collect();
        let (inventory, found) = of("n.csv", &format!("node,pool,rack\n{text}"));
        assert!(found.is_empty());
        assert_eq!(inventory.table.runs().len(), 10);
    }

    #[test]
    fn a_row_is_found_again_by_its_number() {
        let (mut sources, mut cx) = (Sources::default(), Cx::default());
        let spec = "inventory \"n.csv\"\n";
        let file = sources.add("fleet.kdl".into(), spec.into());
        let nodes = crate::syntax::kdl::parse(file, spec, &mut Vec::new());
        let text = "\u{feff}pool,node\r\np,n1\r\n\r\n,\r\np,\"n2\"\r\np,n3\r\nq,n4\r\n";
        let inventory = read(&Memory::one("n.csv", text), &nodes, &mut sources, &mut cx);
        assert_eq!(inventory.table.runs().len(), 2);
        for (node, line, column) in [("n1", 2, 3), ("n2", 5, 4), ("n3", 6, 3), ("n4", 7, 3)] {
            let span = inventory.table.row_of(node, &sources).unwrap();
            let at = sources.of(span).unwrap().position(span.start);
            assert_eq!((sources.text(span), at.line, at.column), (node, line, column));
        }
        assert_eq!(inventory.table.row_of("n5", &sources), None);
        assert_eq!(inventory.table.row_of("n01", &sources), None);
    }
}
