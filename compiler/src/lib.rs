//! fleetc: compiles one declarative spec of a GPU fleet into everything that must agree about its
//! GPUs.
//!
//! The way through is [`check`] (text → [`Checked`]), [`emit`] (Intent → output tree) and
//! [`output::write`] (tree → folder); [`plan::plan`] compares two Intents.
//!
//! Invariant: nothing here writes a target's syntax, and nothing but [`files`], [`output`] and the
//! command line touches the disk.

mod allow;
pub mod check;
pub mod cli;
pub mod drift;
pub mod files;
pub mod format;
pub mod inventory;
pub mod language;
mod letters;
pub mod load;
pub mod lower;
pub mod output;
pub mod plan;
pub mod render;
pub mod sizing;
pub mod source;
pub mod syntax;

use std::cmp::Reverse;

use camino::Utf8Path;
use fleetc_schema::ItemPath;
use fleetc_schema::catalog::{Catalog, CatalogError};
use fleetc_schema::diag::{Diagnostic, Place, Severity, Span};
use fleetc_schema::intent::{Intent, SourceLine};
use fleetc_schema::topology::Topology;
use fleetc_targets::write::json;
use fleetc_targets::{OutputFile, OutputTree, TARGETS};
use indexmap::IndexMap;

use files::Files;
use language::Cx;
use lower::Rows;
use source::{ReadError, Sources};

/// Path of the side table in an output tree: the only output that may change when only layout,
/// comments or syntax of the spec change.
pub const SOURCES_FILE: &str = "fleet/intent/sources.jsonl";

/// The most findings of one file that are kept: whoever has more mends these first.
pub const MAX_FINDINGS: usize = 100;

/// So much of a word is looked at for letters that are not what they seem.
const LONGEST_WORD: usize = 256;

/// Why a spec cannot be checked at all.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The embedded catalog is broken: a bug of ours.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// A spec that was read, with everything found about it.
#[derive(Debug)]
pub struct Checked {
    /// Its files.
    pub sources: Sources,
    /// Findings, by place.
    pub diagnostics: Vec<Diagnostic>,
    intent: Intent,
    topology: Topology,
    places: IndexMap<ItemPath, Span>,
    overrides: Vec<load::Override>,
    origins: IndexMap<ItemPath, Vec<lower::Origin>>,
}

impl Checked {
    /// Where items and values are written.
    pub fn places(&self) -> &IndexMap<ItemPath, Span> {
        &self.places
    }

    /// What overlays replaced.
    pub fn overrides(&self) -> &[load::Override] {
        &self.overrides
    }

    /// Where the values of the fleet's own hardware come from, by item.
    pub(crate) fn origins(&self) -> &IndexMap<ItemPath, Vec<lower::Origin>> {
        &self.origins
    }

    /// The Intent, if no finding is an error.
    pub fn intent(&self) -> Option<&Intent> {
        let error = self.diagnostics.iter().any(|found| found.severity == Severity::Error);
        (!error).then_some(&self.intent)
    }

    /// The Intent as far as it could be lowered, for summaries.
    pub fn partial_intent(&self) -> &Intent {
        &self.intent
    }

    /// Where things are.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Where something is written: an item that nobody wrote is where its nearest ancestor is.
    pub fn span(&self, place: &Place) -> Option<Span> {
        match place {
            Place::Span(span) => Some(*span),
            Place::Item(path) => {
                let mut path = path.clone();
                loop {
                    if let Some(span) = self.places.get(&path) {
                        return Some(*span);
                    }
                    path = path.parent()?;
                }
            }
        }
    }

    /// The item or value that stands exactly here, if one does.
    pub fn item_at(&self, span: Span) -> Option<&ItemPath> {
        self.places.iter().find(|(_, place)| **place == span).map(|(path, _)| path)
    }

    /// Tells of letters that look like others, where a finding is about a word with some.
    fn name_hidden_letters(&mut self) {
        let hidden = |found: &Diagnostic| {
            let span = self.span(&found.labels.first()?.place)?;
            let text = self.sources.text(span);
            let most = text.char_indices().nth(LONGEST_WORD).map_or(text.len(), |(at, _)| at);
            letters::hidden(text.get(..most).unwrap_or_default())
        };
        let notes: Vec<Option<String>> = self.diagnostics.iter().map(hidden).collect();
        for (found, note) in self.diagnostics.iter_mut().zip(notes) {
            found.notes.extend(note);
        }
    }

    /// The side table: a line for every item and value, in the order of the spec.
    pub fn source_lines(&self) -> OutputFile {
        let mut file = OutputFile::default();
        for (path, span) in &self.places {
            let Some(source) = self.sources.of(*span) else { continue };
            let position = source.position(span.start);
            let line = SourceLine {
                path: path.clone(),
                file: source.path.to_string(),
                line: position.line,
                column: position.column,
                start: span.start,
                end: span.end,
            };
            file.push([path.clone()], json::line(&line));
        }
        file
    }
}

/// Reads, decodes, lowers and checks the spec at `path`, relative to the root of `files`.
///
/// # Errors
/// Only if there is nothing to check: what is wrong with the spec is in the diagnostics.
pub fn check(files: &dyn Files, path: &Utf8Path) -> Result<Checked, CheckError> {
    let (path, form) = source::entry_file(files, path)?;
    let mut sources = Sources::default();
    let mut cx = Cx::default();
    let loaded = load::load(files, &path, form, &mut sources, &mut cx)?;
    let (file, nodes, unparsed) = (loaded.entry, loaded.nodes, loaded.unparsed);
    let start = Span { file, start: 0, end: 0 };
    let catalog = Catalog::embedded()?;
    let inventory = match unparsed {
        true => inventory::Inventory::default(),
        false => inventory::read(files, &loaded.inventories, &mut sources, &mut cx),
    };
    let mut spec = match unparsed {
        // A file was not understood: what is missing elsewhere would be findings of the same cause.
        true => language::spec(file, Vec::new(), &mut Cx::default()),
        false => language::spec(file, nodes, &mut cx),
    };
    let syntax_findings = std::mem::take(&mut cx.diagnostics);
    let rows = Rows { inventory: &inventory, sources: &sources };
    let mut lowered = lower::lower(&mut spec, catalog, start, rows, cx);
    let mut diagnostics = syntax_findings;
    if !unparsed {
        diagnostics.append(&mut lowered.diagnostics);
        if !diagnostics.iter().any(|found| found.severity == Severity::Error) {
            diagnostics.extend(check::unused(&spec, &lowered));
        }
        diagnostics.extend(check::fleet(&lowered));
        diagnostics.extend(check::targets(&lowered));
        allow::apply(&spec, &lowered.places, &mut diagnostics);
    }
    let mut checked = Checked {
        sources,
        diagnostics,
        intent: lowered.intent,
        topology: lowered.topology,
        places: lowered.places,
        overrides: loaded.overrides,
        origins: lowered.origins,
    };
    let mut order: Vec<(Option<Span>, Diagnostic)> = std::mem::take(&mut checked.diagnostics)
        .into_iter()
        .map(|found| (found.labels.first().and_then(|label| checked.span(&label.place)), found))
        .collect();
    order.sort_by_key(|(span, _)| *span);
    let form = |span: Span| source::form_of(&checked.sources.of(span)?.path);
    for (span, found) in &mut order {
        if span.and_then(form) == Some(source::Form::Yaml) {
            found.help = found.help.iter().map(|help| language::in_yaml(help)).collect();
        }
    }
    checked.diagnostics = order
        .chunk_by(|(a, _), (b, _)| a.map(|span| span.file) == b.map(|span| span.file))
        .flat_map(most_of)
        .collect();
    checked.name_hidden_letters();
    Ok(checked)
}

/// The findings of one file, in order; of too many, errors before warnings before notes. The last one
/// says how many are left out.
fn most_of(found: &[(Option<Span>, Diagnostic)]) -> Vec<Diagnostic> {
    let mut chosen: Vec<(usize, &Diagnostic)> =
        found.iter().map(|(_, finding)| finding).enumerate().collect();
    if found.len() > MAX_FINDINGS {
        chosen.sort_by_key(|(_, finding)| Reverse(finding.severity));
        chosen.truncate(MAX_FINDINGS);
        chosen.sort_unstable_by_key(|(index, _)| *index);
    }
    let mut kept: Vec<Diagnostic> = chosen.iter().map(|(_, finding)| (*finding).clone()).collect();
    let left_out = found.len() - kept.len();
    if let Some(last) = kept.last_mut().filter(|_| left_out > 0) {
        last.notes.push(format!("{left_out} more findings about this file are not shown"));
    }
    kept
}

/// Writes every target's files for every scope, and what applies them. Bytes are a function of the Intent alone.
pub fn emit(intent: &Intent) -> OutputTree {
    let mut tree = OutputTree::default();
    for target in TARGETS {
        for scope in target.scopes(intent) {
            tree.extend(target.emit(&scope));
        }
    }
    let bundles = fleetc_targets::bundles(intent, &tree);
    tree.extend(bundles);
    tree
}

/// The whole output of a checked spec: the targets' files and the side table. None if it has errors.
pub fn compile(checked: &Checked) -> Option<OutputTree> {
    let mut tree = emit(checked.intent()?);
    tree.add(SOURCES_FILE, checked.source_lines());
    Some(tree)
}
