//! The rows of all inventories, folded into runs while they are read.

use std::borrow::Cow;

use fleetc_schema::Hostlist;
use fleetc_schema::diag::{Diagnostic, Span, rules};
use fleetc_schema::hostlist::{self, HostlistProblem, MAX_NODES, NameParts, Shape};
use indexmap::{IndexMap, IndexSet};

use super::{Column, Errors, MAX_FINDINGS, lines, says_nothing};
use crate::language::Cx;
use crate::source::Sources;

/// The longest name of a node: that of a DNS name. Source: RFC 1035, section 2.3.4.
const MAX_NAME_BYTES: usize = 253;

/// A cell and where it stands.
pub(super) struct Cell<'t> {
    /// Its text, without quotes and escapes.
    pub text: Cow<'t, str>,
    /// Its first byte.
    pub start: u32,
    /// The byte after its last.
    pub end: u32,
}

impl<'t> Cell<'t> {
    /// A part of a line, without the blanks around it.
    pub fn trimmed(part: &'t str, at: usize) -> Self {
        let blank = [' ', '\t'];
        let text = part.trim_start_matches(blank);
        let start = super::offset(at + part.len() - text.len());
        let text = text.trim_end_matches(blank);
        let end = start.saturating_add(super::offset(text.len()));
        Self { text: Cow::Borrowed(text), start, end }
    }
}

/// What one row says.
pub(super) struct Row<'t> {
    line: (u32, u32),
    node: Option<Cell<'t>>,
    facts: [Option<Cell<'t>>; FACTS],
}

/// How many columns there are beside `node`.
const FACTS: usize = 4;

impl<'t> Row<'t> {
    /// A row that says nothing yet.
    pub fn at(line: (u32, u32)) -> Self {
        Self { line, node: None, facts: [None, None, None, None] }
    }

    /// States a cell.
    pub fn set(&mut self, column: Column, cell: Cell<'t>) {
        let [pool, rack, switch, pci] = &mut self.facts;
        let slot = match column {
            Column::Node => &mut self.node,
            Column::Pool => pool,
            Column::Rack => rack,
            Column::Switch => switch,
            Column::Pci => pci,
        };
        *slot = Some(cell);
    }

    /// States a cell unless it is empty.
    pub fn fill(&mut self, column: Column, cell: Cell<'t>) {
        if !cell.text.trim().is_empty() {
            self.set(column, cell);
        }
    }
}

/// A number of a text among those of its column; none if the cell is empty.
type Id = Option<u32>;

/// Rows that follow each other: their nodes differ in the number only, which counts up by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    shape: u32,
    lo: u64,
    hi: u64,
    /// The number of the node in the first row, and where that row begins.
    first: (u64, u32),
    file: u32,
    facts: [Id; FACTS],
}

/// Distinct texts of a column, in the order of appearance, each with its first place.
#[derive(Debug, Default)]
pub struct Texts {
    all: IndexMap<String, Span>,
    last: u32,
}

/// A text of a column.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    /// Its number.
    pub id: u32,
    /// The text.
    pub text: &'a str,
    /// Where it stands first.
    pub span: Span,
}

impl Texts {
    /// The number of a text; rows mostly say what the row before said.
    fn id(&mut self, cell: Option<&Cell<'_>>, file: u32) -> Id {
        let cell = cell?;
        let last = usize::try_from(self.last).unwrap_or(usize::MAX);
        if self.all.get_index(last).is_some_and(|(text, _)| *text == *cell.text) {
            return Some(self.last);
        }
        let at = match self.all.get_index_of(&*cell.text) {
            Some(at) => at,
            None => {
                let span = Span { file, start: cell.start, end: cell.end };
                self.all.insert_full(cell.text.clone().into_owned(), span).0
            }
        };
        self.last = u32::try_from(at).unwrap_or(u32::MAX);
        Some(self.last)
    }

    /// A text, if it stands somewhere.
    pub fn find(&self, text: &str) -> Option<Text<'_>> {
        let (at, text, span) = self.all.get_full(text)?;
        Some(Text { id: u32::try_from(at).ok()?, text, span: *span })
    }

    /// Every text.
    pub fn iter(&self) -> impl Iterator<Item = Text<'_>> {
        (0..).zip(&self.all).map(|(id, (text, span))| Text { id, text, span: *span })
    }
}

/// A shape that owns its texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WholeName {
    prefix: String,
    suffix: String,
    digits: usize,
}

impl WholeName {
    fn shape(&self) -> Shape<'_> {
        Shape { prefix: &self.prefix, suffix: &self.suffix, digits: self.digits }
    }
}

/// The rows of all inventories.
#[derive(Debug, Default)]
pub struct Table {
    runs: Vec<Run>,
    /// Numbers of runs, by shape and number of the node.
    order: Vec<usize>,
    shapes: IndexSet<WholeName>,
    rows: u64,
    /// Texts of the column `pool`.
    pub pools: Texts,
    /// Texts of the column `rack`.
    pub racks: Texts,
    /// Texts of the column `switch`.
    pub switches: Texts,
    /// Texts of the column `pci`.
    pub pci: Texts,
}

impl Run {
    /// The number of the pool's text.
    pub fn pool(&self) -> Option<u32> {
        self.facts[0]
    }

    /// The number of the rack's text.
    pub fn rack(&self) -> Option<u32> {
        self.facts[1]
    }

    /// The number of the switches' text.
    pub fn switch(&self) -> Option<u32> {
        self.facts[2]
    }

    /// The number of the addresses' text.
    pub fn pci(&self) -> Option<u32> {
        self.facts[3]
    }
}

impl Table {
    /// Adds a row. False if no more are taken.
    pub(super) fn push(&mut self, file: u32, row: Row<'_>, errors: &mut Errors) -> bool {
        let Some(node) = &row.node else {
            let title = || "the row names no node".to_owned();
            let help = "name its node, or remove the row";
            errors.report(&rules::SPEC_MISSING, row.line, title, "`node` is empty", help);
            return true;
        };
        if !is_one_name(node, errors) {
            return true;
        }
        if self.rows >= MAX_NODES {
            let title = || format!("the inventories have more than {MAX_NODES} rows");
            let help = "no cluster has as many: is this the right file?";
            errors.report(&rules::SPEC_OUT_OF_RANGE, row.line, title, "one too many", help);
            return false;
        }
        self.rows += 1;
        let [pool, rack, switch, pci] = &row.facts;
        let facts = [
            self.pools.id(pool.as_ref(), file),
            self.racks.id(rack.as_ref(), file),
            self.switches.id(switch.as_ref(), file),
            self.pci.id(pci.as_ref(), file),
        ];
        let NameParts { shape, number } = NameParts::of(&node.text);
        if let Some(last) = self.runs.last_mut()
            && last.facts == facts
            && last.file == file
            && last.hi.checked_add(1) == Some(number)
            && shape.digits > 0
            && self.shapes.get_index(last.shape as usize).is_some_and(|s| s.shape() == shape)
        {
            last.hi = number;
            return true;
        }
        let shape = self.shape(shape);
        let first = (number, row.line.0);
        self.runs.push(Run { shape, lo: number, hi: number, first, file, facts });
        true
    }

    fn shape(&mut self, shape: Shape<'_>) -> u32 {
        if let Some(last) = self.runs.last()
            && self.shapes.get_index(last.shape as usize).is_some_and(|s| s.shape() == shape)
        {
            return last.shape;
        }
        let Shape { prefix, suffix, digits } = shape;
        let owned = WholeName { prefix: prefix.to_owned(), suffix: suffix.to_owned(), digits };
        u32::try_from(self.shapes.insert_full(owned).0).unwrap_or(u32::MAX)
    }

    /// True if no inventory has a row.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs, in the order of the rows.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The nodes of runs.
    pub fn nodes<'a>(&self, runs: impl IntoIterator<Item = &'a Run>) -> Hostlist {
        // Merged by the number of a shape: comparing its texts for a million runs takes long.
        let mut all: Vec<(u32, u64, u64)> =
            runs.into_iter().map(|run| (run.shape, run.lo, run.hi)).collect();
        all.sort_unstable();
        all.dedup_by(|next, last| {
            let joins = next.0 == last.0 && next.1 <= last.2.saturating_add(1);
            if joins {
                last.2 = last.2.max(next.2);
            }
            joins
        });
        let shape = |at: u32| self.shapes.get_index(at as usize).map(WholeName::shape);
        Hostlist::of_ranges(all.into_iter().filter_map(|(at, lo, hi)| Some((shape(at)?, lo, hi))))
    }

    fn shape_of(&self, run: &Run) -> Option<Shape<'_>> {
        self.shapes.get_index(run.shape as usize).map(WholeName::shape)
    }

    /// The run that names this node.
    pub fn run_of(&self, node: &str) -> Option<&Run> {
        let NameParts { shape, number } = NameParts::of(node);
        let (at, _) = self.shapes.get_full(&WholeName {
            prefix: shape.prefix.to_owned(),
            suffix: shape.suffix.to_owned(),
            digits: shape.digits,
        })?;
        let run = |index: &usize| self.runs.get(*index);
        let key = (u32::try_from(at).ok()?, number);
        let after =
            self.order.partition_point(|i| run(i).is_some_and(|run| (run.shape, run.lo) <= key));
        let found = run(self.order.get(after.checked_sub(1)?)?)?;
        (found.shape == key.0 && number <= found.hi).then_some(found)
    }

    /// Where the row of a node stands: its name in it.
    pub fn row_of(&self, node: &str, sources: &Sources) -> Option<Span> {
        let run = self.run_of(node)?;
        self.row_span(run, NameParts::of(node).number, sources)
    }

    /// Where the row of one number of a run stands.
    fn row_span(&self, run: &Run, number: u64, sources: &Sources) -> Option<Span> {
        let (first, start) = run.first;
        let source = sources.of(Span { file: run.file, start, end: start })?;
        let text = source.text.get(start as usize..)?;
        // A run is unbroken, so the rows between are as many as the numbers between.
        let after = usize::try_from(number.checked_sub(first)?).ok()?;
        let (at, line) = lines(text).filter(|(_, line)| !says_nothing(line)).nth(after)?;
        let name = self.shape_of(run)?.name(number);
        let (at, length) = match line.find(&name) {
            Some(inside) => (at + inside, name.len()),
            None => (at, line.len()),
        };
        let start = start.saturating_add(super::offset(at));
        Some(Span { file: run.file, start, end: start.saturating_add(super::offset(length)) })
    }

    /// Leaves one row of each node, and reports the others. True if there are any.
    pub(super) fn drop_repeats(&mut self, sources: &Sources, cx: &mut Cx) -> bool {
        let order = self.sorted();
        let mut repeats: Vec<(usize, usize, u64, u64)> = Vec::new();
        let mut widest: Option<(usize, u32, u64)> = None;
        for at in order {
            let Some(run) = self.runs.get_mut(at) else { continue };
            let (shape, lo, hi) = (run.shape, run.lo, run.hi);
            if let Some((other, _, end)) = widest.filter(|(_, s, end)| *s == shape && lo <= *end) {
                repeats.push((other, at, lo, hi.min(end)));
                // What is left of the run; nothing if `lo` is above `hi`.
                run.lo = end.saturating_add(1);
                if hi <= end {
                    continue;
                }
            }
            widest = Some((at, shape, hi));
        }
        for (a, b, lo, hi) in repeats.iter().copied().take(MAX_FINDINGS) {
            let (earlier, later) = (a.min(b), a.max(b));
            let run = |at: usize| self.runs.get(at);
            let (Some(first), Some(second)) = (run(earlier), run(later)) else { continue };
            let Some(shape) = self.shape_of(first) else { continue };
            let nodes = Hostlist::of_ranges([(shape, lo, hi)]);
            let have = if nodes.len() == 1 { "has" } else { "have" };
            let title = format!("`{nodes}` {have} two rows");
            let mut finding = Diagnostic::new(&rules::NAME_NODE_TWICE, title);
            if let Some(span) = self.row_span(second, lo, sources) {
                finding = finding.at(span, "a second row");
            }
            if let Some(span) = self.row_span(first, lo, sources) {
                finding = finding.at(span, "the first row");
            }
            cx.report(finding.help("keep one row a node"));
        }
        self.runs.retain(|run| run.lo <= run.hi);
        self.order = self.sorted();
        !repeats.is_empty()
    }

    fn sorted(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.runs.len()).collect();
        order.sort_by_key(|at| self.runs.get(*at).map(|run| (run.shape, run.lo, *at)));
        order
    }
}

/// Checks that a cell holds one node name.
fn is_one_name(node: &Cell<'_>, errors: &mut Errors) -> bool {
    let at = (node.start, node.end);
    match hostlist::check_name(&node.text) {
        Ok(()) if node.text.len() <= MAX_NAME_BYTES => true,
        Ok(()) => {
            let length = node.text.len();
            let title =
                || format!("the name has {length} characters, at most {MAX_NAME_BYTES} are taken");
            errors.report(&rules::NAME_ILLEGAL, at, title, "too long", "use a shorter name");
            false
        }
        Err(error) => {
            let (title, help) = match error.problem {
                HostlistProblem::Character('[' | ']' | ',') => (
                    format!("`{}` is a list, and a row is one node", node.text),
                    "write a row for each node, or use `nodes` in the spec".to_owned(),
                ),
                problem => {
                    (problem.to_string(), "use letters, digits, `-`, `.` and `_`".to_owned())
                }
            };
            errors.report(&rules::NAME_HOSTLIST, at, || title, "not a node name", help);
            false
        }
    }
}
