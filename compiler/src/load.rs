//! From the entry file to one tree: includes are read in place, and a base is merged beneath.
//!
//! `include` and `extends` name files relative to the file that says so. Nothing above the root is
//! read. An overlay wins over its base: a named item merges per property and child; lists and items
//! that repeat without a name are replaced whole; `remove` takes an item of the base away;
//! `replace=#true` on an item stops merging there.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, Span, rules};

use crate::files::Files;
use crate::language::{Cx, Form as FieldForm, Kind, Occurs, kinds};
use crate::source::{Form, ReadError, Sources, form_of, normalise, read_marked};
use crate::syntax::{self, Node, REPLACE, Scalar, Value, Word};

/// The most files of a spec.
const MAX_FILES: usize = 1_000;

/// The most bytes of all files of a spec: each may have so many, and so may all of them.
const MAX_BYTES: usize = 4 << 20;

/// A value or item of a base that an overlay replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// Its path.
    pub path: ItemPath,
    /// Where the overlay says so.
    pub winner: Span,
    /// Where the base had it.
    pub loser: Span,
}

/// What loading gives beside the tree.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The tree of all files.
    pub nodes: Vec<Node>,
    /// The number of the entry file.
    pub entry: u32,
    /// True if a file could not be parsed: then most of the spec is unknown.
    pub unparsed: bool,
    /// What overlays replaced.
    pub overrides: Vec<Override>,
    /// Items that name inventories.
    pub inventories: Vec<Node>,
}

/// A word whose values name files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileWord {
    /// Files that are part of this one.
    Include,
    /// The spec beneath this one.
    Extends,
    /// Inventories.
    Inventory,
}

/// Visits every value that names a file.
pub fn each_file(nodes: &mut [Node], visit: &mut dyn FnMut(FileWord, &mut Value)) {
    for node in nodes {
        let word = match node.name.text.as_str() {
            "include" => FileWord::Include,
            "extends" => FileWord::Extends,
            "inventory" => FileWord::Inventory,
            "fleet" => {
                each_file(&mut node.children, visit);
                continue;
            }
            _ => continue,
        };
        node.args.iter_mut().for_each(|value| visit(word, value));
    }
}

/// Reads the entry file and everything it names.
///
/// # Errors
/// The entry file itself cannot be read; other files are findings.
pub fn load(
    files: &dyn Files,
    path: &Utf8Path,
    form: Form,
    sources: &mut Sources,
    cx: &mut Cx,
) -> Result<Loaded, ReadError> {
    let (text, not_utf8) = read_marked(files, path)?;
    let mut loader = Loader {
        files,
        sources,
        cx,
        open: Vec::new(),
        read: BTreeMap::new(),
        bytes: text.len(),
        unparsed: false,
        overrides: Vec::new(),
    };
    let entry = loader.sources.add(path.to_owned(), text.clone());
    let nodes = match not_utf8 {
        Some(at) => loader.not_utf8(entry, at),
        None => loader.file(path, form, entry, &text),
    };
    let (unparsed, overrides) = (loader.unparsed, loader.overrides);
    let (inventories, nodes) = nodes.into_iter().partition(|node| node.name.text == "inventory");
    Ok(Loaded { nodes, entry, unparsed, overrides, inventories })
}

struct Loader<'a> {
    files: &'a dyn Files,
    sources: &'a mut Sources,
    cx: &'a mut Cx,
    /// Files that are being read, the outermost first, each with what named it.
    open: Vec<(Utf8PathBuf, Option<Span>)>,
    /// Files that were included.
    read: BTreeMap<Utf8PathBuf, Span>,
    /// Bytes that were read.
    bytes: usize,
    unparsed: bool,
    overrides: Vec<Override>,
}

impl Loader<'_> {
    fn file(&mut self, path: &Utf8Path, form: Form, number: u32, text: &str) -> Vec<Node> {
        if self.open.is_empty() {
            self.open.push((path.to_owned(), None));
        }
        let before = self.cx.diagnostics.len();
        let nodes = match form {
            Form::Kdl => syntax::kdl::parse(number, text, &mut self.cx.diagnostics),
            Form::Yaml => {
                let root = kinds::Spec::kind();
                syntax::yaml::parse(number, text, root, &mut self.cx.diagnostics)
            }
        };
        self.unparsed |= nodes.is_empty() && self.cx.diagnostics.len() > before;
        let mut all = Vec::new();
        let mut bases = Vec::new();
        for mut node in nodes {
            let mut included = Vec::new();
            match node.name.text.as_str() {
                "include" => {
                    included.extend(self.values(&node, path, Naming::Include));
                    all.extend(included);
                    continue;
                }
                "fleet" => {
                    let (directives, children) =
                        std::mem::take(&mut node.children).into_iter().partition(|child| {
                            matches!(child.name.text.as_str(), "include" | "inventory" | "extends")
                        });
                    node.children = children;
                    let directives: Vec<Node> = directives;
                    for directive in &directives {
                        match directive.name.text.as_str() {
                            // The same as at the top of the file.
                            "inventory" => included.push(directive.clone()),
                            "include" => {
                                included.extend(self.values(directive, path, Naming::Include));
                            }
                            _ if bases.is_empty() => {
                                bases.push(self.values(directive, path, Naming::Base));
                            }
                            _ => self.second_base(directive),
                        }
                    }
                }
                _ => {}
            }
            all.push(node);
            all.extend(included);
        }
        match bases.pop() {
            Some(base) => self.overlay(base, all),
            None => self.without_directives(all),
        }
    }

    fn second_base(&mut self, directive: &Node) {
        let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, "a fleet extends one base");
        let finding = finding.at(directive.name.span, "a second one");
        self.cx.report(finding.help("let the base extend the other one"));
    }

    /// The trees of the files that a directive names.
    fn values(&mut self, directive: &Node, from: &Utf8Path, naming: Naming) -> Vec<Node> {
        if directive.args.is_empty() {
            let title = format!("`{}` names no file", directive.name.text);
            let finding = Diagnostic::new(&rules::SPEC_MISSING, title);
            let finding = finding.at(directive.name.span, "nothing follows");
            self.cx.report(finding.help(format!("write `{} \"pools.kdl\"`", directive.name.text)));
        }
        let mut nodes = Vec::new();
        for value in &directive.args {
            if self.read.len() > MAX_FILES {
                // That there are too many was said at the first of them.
                break;
            }
            match &value.scalar {
                Scalar::String(text) => nodes.extend(self.named(text, value, from, naming)),
                other => {
                    let title = format!("expected a file, found {}", other.describe());
                    let finding = Diagnostic::new(&rules::SPEC_WRONG_TYPE, title);
                    let finding = finding.at(value.span, "a file belongs here");
                    self.cx.report(finding.help("write its name in quotes"));
                }
            }
        }
        nodes
    }

    fn named(&mut self, text: &str, value: &Value, from: &Utf8Path, naming: Naming) -> Vec<Node> {
        let folder = from.parent().unwrap_or(Utf8Path::new(""));
        let Ok(mut path) = normalise(&folder.join(text)) else {
            let title = format!("`{text}` is outside the root");
            let finding = Diagnostic::new(&rules::SPEC_OUTSIDE_ROOT, title)
                .at(value.span, "above the root")
                .note("a spec reads nothing above its root: the folder with .git, else its own");
            self.cx
                .report(finding.help("move the file below the root, or name a root with --root"));
            return Vec::new();
        };
        if naming == Naming::Base && !self.files.has(&path) {
            // A folder means its fleet file.
            let fleet = ["fleet.kdl", "fleet.yaml"].map(|name| path.join(name));
            path = fleet.into_iter().find(|file| self.files.has(file)).unwrap_or(path);
        }
        if let Some(at) = self.open.iter().position(|(open, _)| *open == path) {
            self.cycle(value, at);
            return Vec::new();
        }
        if let Some(first) = self.read.get(&path) {
            let finding =
                Diagnostic::new(&rules::SPEC_DUPLICATE, format!("`{path}` is read twice"))
                    .at(value.span, "named again here")
                    .at(*first, "first named here");
            self.cx.report(finding.help("name it once"));
            return Vec::new();
        }
        self.read.insert(path.clone(), value.span);
        let (form, text, not_utf8) = match self.read_file(&path) {
            Ok(read) => read,
            Err(error) => {
                let rule = match &error {
                    ReadError::Io { error, .. }
                        if error.kind() == std::io::ErrorKind::PermissionDenied =>
                    {
                        &rules::SPEC_OUTSIDE_ROOT
                    }
                    _ => &rules::SPEC_INCLUDE_NOT_FOUND,
                };
                let title = match &error {
                    ReadError::Io { error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
                        format!("there is no file `{path}`")
                    }
                    ReadError::UnknownForm { .. } => {
                        format!("`{path}` is no spec: the name of one ends in .kdl, .yaml or .yml")
                    }
                    error => error.to_string(),
                };
                let named = format!("{path}.{}", from.extension().unwrap_or("kdl"));
                let help = if text.contains(['*', '?']) {
                    "name each file: patterns are not taken".to_owned()
                } else if self.files.has(Utf8Path::new(&named)) {
                    let ending = named.get(path.as_str().len()..).unwrap_or_default();
                    format!("did you mean `{text}{ending}`?")
                } else {
                    "names are relative to the file that holds them".to_owned()
                };
                let finding = Diagnostic::new(rule, title).at(value.span, "named here");
                self.cx.report(finding.help(help));
                self.unparsed = true;
                return Vec::new();
            }
        };
        let number = self.sources.add(path.clone(), text.clone());
        if let Some(at) = not_utf8 {
            return self.not_utf8(number, at);
        }
        self.open.push((path.clone(), Some(value.span)));
        let nodes = self.file(&path, form, number, &text);
        self.open.pop();
        nodes
    }

    /// Reports a file that is not UTF-8; nothing of it is known.
    fn not_utf8(&mut self, file: u32, at: usize) -> Vec<Node> {
        self.unparsed = true;
        let start = u32::try_from(at).unwrap_or(u32::MAX);
        // A mark stands for what could not be read.
        let mark = u32::try_from(char::REPLACEMENT_CHARACTER.len_utf8()).unwrap_or_default();
        let span = Span { file, start, end: start.saturating_add(mark) };
        let finding = Diagnostic::new(&rules::SPEC_SYNTAX, "the file is not UTF-8");
        let finding = finding.at(span, format!("the first wrong byte is number {at}, from 0"));
        self.cx.report(finding.help("save it as UTF-8: some editors write UTF-16 or Latin-1"));
        Vec::new()
    }

    fn read_file(&mut self, path: &Utf8Path) -> Result<(Form, String, Option<usize>), ReadError> {
        let refused = |why: String| {
            let error = std::io::Error::other(why);
            Err(ReadError::Io { path: path.to_owned(), error })
        };
        if self.read.len() > MAX_FILES {
            return refused(format!("a spec has at most {MAX_FILES} files"));
        }
        let Some(form) = form_of(path) else {
            return Err(ReadError::UnknownForm { path: path.to_owned() });
        };
        let (text, not_utf8) = read_marked(self.files, path)?;
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > MAX_BYTES {
            let most = MAX_BYTES >> 20;
            return refused(format!("the files of a spec have at most {most} MiB together"));
        }
        Ok((form, text, not_utf8))
    }

    fn cycle(&mut self, value: &Value, at: usize) {
        let around: Vec<&str> = self.open.iter().skip(at).map(|(path, _)| path.as_str()).collect();
        let first = around.first().copied().unwrap_or_default();
        let title = format!("`{first}` is read while it is being read");
        let mut finding = Diagnostic::new(&rules::SPEC_INCLUDE_CYCLE, title)
            .at(value.span, "closes the circle")
            .note(format!("{} → {first}", around.join(" → ")));
        for span in self.open.iter().skip(at + 1).filter_map(|(_, span)| *span) {
            finding = finding.at(span, "on the way");
        }
        self.cx.report(finding.help("take one of these names away"));
    }

    /// Without a base there is nothing to remove or replace.
    fn without_directives(&mut self, nodes: Vec<Node>) -> Vec<Node> {
        let (removals, nodes): (Vec<Node>, Vec<Node>) =
            nodes.into_iter().partition(|node| node.name.text == "remove");
        // In a file that is itself included, the overlay is further out.
        if self.open.len() > 1 && !removals.is_empty() {
            return nodes.into_iter().chain(removals).collect();
        }
        for removal in &removals {
            let finding = Diagnostic::new(&rules::NAME_UNKNOWN, "there is no base to remove from");
            let finding = finding.at(removal.name.span, "removes from nothing");
            self.cx.report(finding.help("`remove` belongs into a fleet that `extends` another"));
        }
        nodes
    }

    /// Merges an overlay onto its base.
    fn overlay(&mut self, base: Vec<Node>, overlay: Vec<Node>) -> Vec<Node> {
        let (removals, overlay): (Vec<Node>, Vec<Node>) =
            overlay.into_iter().partition(|node| node.name.text == "remove");
        let mut base = base;
        if !removals.is_empty() {
            self.remove(&mut base, &removals);
        }
        self.children(base, overlay, kinds::Spec::kind(), &ItemPath::default())
    }

    fn remove(&mut self, base: &mut Vec<Node>, removals: &[Node]) {
        let text = |value: &Value| match &value.scalar {
            Scalar::String(text) => text.clone(),
            _ => String::new(),
        };
        let key = |node: &Node| (node.name.text.clone(), name_of(node).map(str::to_owned));
        let there: BTreeSet<_> = base.iter().map(key).collect();
        let mut gone = BTreeSet::new();
        for removal in removals {
            let mut words = removal.args.iter();
            let kind = words.next().map(text).unwrap_or_default();
            if removal.args.len() < 2 {
                let title = "`remove` needs a kind and a name";
                let finding = Diagnostic::new(&rules::SPEC_MISSING, title);
                let finding = finding.at(removal.name.span, "of what, called how?");
                self.cx.report(finding.help("write `remove \"pool\" \"train\"`"));
            }
            for value in words {
                let key = (kind.clone(), Some(text(value)));
                if there.contains(&key) && gone.insert(key) {
                    continue;
                }
                let title = format!("the base has no {kind} `{}`", text(value));
                let finding = Diagnostic::new(&rules::NAME_UNKNOWN, title);
                self.cx.report(finding.at(value.span, "not in the base").help("remove this line"));
            }
        }
        base.retain(|node| !gone.contains(&key(node)));
    }

    /// Merges the children of one item; the result keeps the order of the base, new items last.
    fn children(
        &mut self,
        base: Vec<Node>,
        overlay: Vec<Node>,
        kind: &'static Kind,
        path: &ItemPath,
    ) -> Vec<Node> {
        let is_whole = |word: &str| {
            kind.field(word).is_some_and(|field| {
                field.occurs == Occurs::Listed || !matches!(field.form, FieldForm::Kind(_))
            })
        };
        let mut merged = base;
        self.drop_all(&mut merged, overlay.iter().filter(|node| is_whole(&node.name.text)), path);
        let key = |node: &Node, named: bool| {
            let name = name_of(node).filter(|_| named).map(str::to_owned);
            (node.name.text.clone(), name)
        };
        let is_named = |word: &str| {
            let field = kind.field(word);
            field.is_some_and(|field| field.occurs == Occurs::Named && word != "fleet")
        };
        // Of two items of one name the first is merged onto; the other is reported later.
        let mut places = BTreeMap::new();
        for (at, node) in merged.iter().enumerate() {
            places.entry(key(node, is_named(&node.name.text))).or_insert(at);
        }
        let mut fresh: Vec<Node> = Vec::new();
        for node in overlay {
            let word = node.name.text.clone();
            let field = kind.field(&word).filter(|_| !is_whole(&word));
            let named = is_named(&word);
            let place = places.get(&key(&node, named)).copied();
            let (Some(field), Some(at)) = (field, place) else {
                fresh.push(node);
                continue;
            };
            let FieldForm::Kind(child) = field.form else { continue };
            let below = match (path.as_str(), name_of(&node)) {
                ("", Some(name)) => ItemPath::item(&word, name),
                (_, Some(name)) if named => path.keyed(&word, [name]),
                _ => path.child(&word),
            };
            if let Some(slot) = merged.get_mut(at) {
                let old = std::mem::replace(slot, node.clone());
                let item = self.item(old, node, child(), &below);
                if let Some(slot) = merged.get_mut(at) {
                    *slot = item;
                }
            }
        }
        merged.extend(fresh);
        merged
    }

    /// Takes what the overlay states whole out of the base.
    fn drop_all<'n>(
        &mut self,
        nodes: &mut Vec<Node>,
        whole: impl Iterator<Item = &'n Node>,
        path: &ItemPath,
    ) {
        let mut winners: BTreeMap<&str, &Node> = BTreeMap::new();
        for node in whole {
            winners.entry(&node.name.text).or_insert(node);
        }
        nodes.retain(|old| {
            let Some(winner) = winners.get(old.name.text.as_str()) else { return true };
            let (path, winner, loser) = (path.child(&old.name.text), winner.head(), old.head());
            self.overrides.push(Override { path, winner, loser });
            false
        });
    }

    /// Merges an item onto the same item of the base.
    fn item(&mut self, base: Node, overlay: Node, kind: &'static Kind, path: &ItemPath) -> Node {
        let replace = |(word, value): &(Word, Value)| {
            word.text == REPLACE && value.scalar == Scalar::Bool(true)
        };
        if overlay.props.iter().any(replace) {
            self.overrides.push(Override {
                path: path.clone(),
                winner: overlay.head(),
                loser: base.head(),
            });
            let props = overlay.props.into_iter().filter(|prop| !replace(prop)).collect();
            return Node { props, ..overlay };
        }
        let args = match (overlay.args.is_empty(), base.args == overlay.args) {
            (true, _) => base.args,
            (false, true) => overlay.args,
            (false, false) => {
                if let (Some(new), Some(old)) = (overlay.args.first(), base.args.first())
                    && new.scalar != old.scalar
                {
                    let (winner, loser) = (new.span, old.span);
                    self.overrides.push(Override { path: path.clone(), winner, loser });
                }
                overlay.args
            }
        };
        let mut props = base.props;
        for (word, value) in overlay.props {
            match props.iter_mut().find(|(other, _)| other.text == word.text) {
                Some(slot) => {
                    let (winner, loser) = (value.span, slot.1.span);
                    self.overrides.push(Override { path: path.child(&word.text), winner, loser });
                    *slot = (word, value);
                }
                None => props.push((word, value)),
            }
        }
        let children = self.children(base.children, overlay.children, kind, path);
        Node { name: overlay.name, args, props, children }
    }
}

/// Whether a file is part of this one, or beneath it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    Include,
    Base,
}

fn name_of(node: &Node) -> Option<&str> {
    match node.args.first().map(|value| &value.scalar) {
        Some(Scalar::String(text)) => Some(text),
        _ => None,
    }
}
