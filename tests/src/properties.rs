//! What holds of whatever text a parser is given: it ends, it panics nowhere, its findings stand
//! inside the text, and what it accepts prints and reads back.
//!
//! The fuzz targets under `fuzz/` and the property tests call the same functions, one a parser. A
//! function panics if its property does not hold.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a property fails by panicking"
)]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc::files::Memory;
use fleetc::format::convert::{convert, other};
use fleetc::format::{Refused, format};
use fleetc::language::kinds::Spec;
use fleetc::render::text::Width;
use fleetc::source::Form;
use fleetc::syntax::{self, Node};
use fleetc::{Checked, MAX_FINDINGS, render};
use fleetc_schema::catalog::CpuList;
use fleetc_schema::diag::{Diagnostic, Place, Span};
use fleetc_schema::hostlist::MAX_NODES;
use fleetc_schema::intent::{GpuIndexes, Intent, Resource};
use fleetc_schema::mig::MigProfile;
use fleetc_schema::name::{ClassName, GpuName, NamespaceName, PartitionName, PoolName, SystemName};
use fleetc_schema::pci::{BusId, DeviceId};
use fleetc_schema::units::{
    Bytes, Date, GbitPerSec, GpuHourPrice, Milliseconds, Parameters, Ratio, Seconds, Watts,
};
use fleetc_schema::version::{Version, VersionReq};
use fleetc_schema::{Hostlist, ItemPath};
use fleetc_validate::observe::{NvidiaSmi, Observe, Snapshot};
use fleetc_validate::state::NodeState;
use fleetc_validate::{compare, intent};

/// A property, by the name of its parser.
pub type Property = (&'static str, fn(&[u8]));

/// Every property; each has a fuzz target of its name.
pub const ALL: &[Property] = &[
    ("kdl_syntax", |bytes| on_text(bytes, |text| syntax_of(Form::Kdl, text))),
    ("yaml_syntax", |bytes| on_text(bytes, |text| syntax_of(Form::Yaml, text))),
    ("spec_kdl", |bytes| on_text(bytes, |text| spec(Form::Kdl, text))),
    ("spec_yaml", |bytes| on_text(bytes, |text| spec(Form::Yaml, text))),
    ("spec_files", |bytes| on_text(bytes, several_files)),
    ("format_kdl", |bytes| on_text(bytes, |text| formats(Form::Kdl, text))),
    ("format_yaml", |bytes| on_text(bytes, |text| formats(Form::Yaml, text))),
    ("convert_kdl", |bytes| on_text(bytes, |text| converts(Form::Kdl, text))),
    ("convert_yaml", |bytes| on_text(bytes, |text| converts(Form::Yaml, text))),
    ("inventory_csv", |bytes| on_text(bytes, |text| inventory("nodes.csv", text))),
    ("inventory_jsonl", |bytes| on_text(bytes, |text| inventory("nodes.jsonl", text))),
    ("hostlist", |bytes| on_text(bytes, hostlist)),
    ("words", |bytes| on_text(bytes, words)),
    ("item_path", |bytes| on_text(bytes, item_path)),
    ("mig_command", |bytes| on_text(bytes, mig_command)),
    ("manifest", manifest),
    ("node_intent", node_intent),
    ("snapshot", snapshot),
    ("nvidia_smi", nvidia_smi),
];

/// Runs the property of this name.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, property) = ALL.iter().find(|(known, _)| *known == name).expect("a property");
    property(bytes);
}

fn on_text(bytes: &[u8], property: impl Fn(&str)) {
    if let Ok(text) = str::from_utf8(bytes) {
        property(text);
    }
}

// ---- specs -------------------------------------------------------------------------------------

/// Reading a file gives a tree or findings, all of it inside the text.
pub fn syntax_of(form: Form, text: &str) {
    let mut found = Vec::new();
    let nodes = match form {
        Form::Kdl => syntax::kdl::parse(0, text, &mut found),
        Form::Yaml => syntax::yaml::parse(0, text, Spec::kind(), &mut found),
    };
    assert!(found.len() <= MAX_FINDINGS, "{} findings", found.len());
    for finding in &found {
        inside_labels(text, finding);
    }
    nodes.iter().for_each(|node| inside_node(text, node));
}

fn inside_labels(text: &str, finding: &Diagnostic) {
    for label in &finding.labels {
        if let Place::Span(span) = label.place {
            inside(text, span);
        }
    }
}

fn inside_node(text: &str, node: &Node) {
    inside(text, node.name.span);
    inside(text, node.head());
    node.args.iter().for_each(|value| inside(text, value.span));
    for (word, value) in &node.props {
        inside(text, word.span);
        inside(text, value.span);
    }
    node.children.iter().for_each(|child| inside_node(text, child));
}

/// A span is a part of its text and splits no character.
fn inside(text: &str, span: Span) {
    let range = span.start as usize..span.end as usize;
    assert!(text.get(range.clone()).is_some(), "{range:?} of {} bytes", text.len());
}

/// Checks a text as the only file of a spec.
pub fn spec(form: Form, text: &str) {
    checked(&Memory::one(file(form), text), file(form));
}

fn file(form: Form) -> &'static str {
    match form {
        Form::Kdl => "fleet.kdl",
        Form::Yaml => "fleet.yaml",
    }
}

/// What parts the texts of [`several_files`].
pub const NEXT_FILE: &str = "\n----\n";

/// Checks a text in parts: an overlay, what it includes, and the base.
pub fn several_files(text: &str) {
    let mut parts = text.splitn(3, NEXT_FILE);
    let mut part = || parts.next().unwrap_or_default().to_owned();
    let overlay =
        format!("fleet \"top\" {{ extends \"base.kdl\"; include \"part.yaml\" }}\n{}", part());
    let files = [("top.kdl", overlay), ("base.kdl", part()), ("part.yaml", part())];
    let files = files.into_iter().map(|(path, text)| (Utf8PathBuf::from(path), text));
    checked(&Memory(files.collect()), "top.kdl");
}

/// The fleet around the texts of [`inventory`]: pools, racks and switches that rows may name.
const AROUND_INVENTORY: &str = "fleet \"f\" { inventory \"@\" }
cluster \"c\" { slurm \"24.11\" { controllers \"ctl\"; gres autodetect=\"nvml\"; driver \"580.1\" owner=\"os\" } }
fabric \"ib\" kind=\"infiniband\" { switch \"leaf[1-2]\" }
fabric \"eth\" kind=\"ethernet\" { switch \"tor1\" }
rack \"r1\"
pool \"p\" { cluster \"c\"; system \"dgx-h100\" }
pool \"q\" { cluster \"c\"; system \"dgx-h100\"; nodes \"q[1-4]\" }
";

/// Checks a fleet whose nodes stand in a text.
pub fn inventory(name: &str, text: &str) {
    let spec = AROUND_INVENTORY.replace('@', name);
    let files = [("fleet.kdl", spec), (name, text.to_owned())];
    let files = files.into_iter().map(|(path, text)| (Utf8PathBuf::from(path), text));
    checked(&Memory(files.collect()), "fleet.kdl");
}

/// Checks a spec, renders what is found, and compiles it if it holds.
fn checked(files: &Memory, path: &str) -> Checked {
    let checked = fleetc::check(files, Utf8Path::new(path)).expect("the files are there");
    let mut by_file = std::collections::BTreeMap::<u32, usize>::new();
    for finding in &checked.diagnostics {
        assert!(!finding.labels.is_empty(), "{}: {}", finding.rule.name, finding.title);
        for (index, label) in finding.labels.iter().enumerate() {
            let span = checked.span(&label.place).expect("a place in a file");
            let source = checked.sources.of(span).expect("a file that was read");
            inside(&source.text, span);
            if index == 0 {
                *by_file.entry(span.file).or_default() += 1;
            }
        }
    }
    assert!(by_file.values().all(|count| *count <= MAX_FINDINGS), "{by_file:?}");
    for span in checked.places().values() {
        inside(&checked.sources.of(*span).expect("a file").text, *span);
    }
    render::text::report(&checked, Width::default());
    render::json::report(&checked);
    render::sarif::report(&checked);
    render::github::report(&checked);
    if let Some(intent) = checked.intent() {
        fleetc::compile(&checked).expect("a spec without errors compiles");
        assert!(fleetc::plan::plan(intent, intent).is_empty(), "a fleet differs from itself");
        let json = serde_json::to_string(intent).expect("an Intent is JSON");
        let read: Intent = serde_json::from_str(&json).expect("what was written");
        assert_eq!(&read, intent);
    }
    checked
}

// ---- forms of a spec ---------------------------------------------------------------------------

/// Formatting is refused at places inside the text, or changes nothing the second time.
pub fn formats(form: Form, text: &str) {
    match format(form, text) {
        Ok(once) => assert_eq!(format(form, &once).expect("formatted text parses"), once),
        Err(Refused::Syntax(found)) => {
            assert!(!found.is_empty());
            found.iter().for_each(|finding| inside_labels(text, finding));
        }
        Err(Refused::Bug) => panic!("what is printed would say something else"),
    }
}

/// A spec that holds says the same in its other form, there and back.
pub fn converts(form: Form, text: &str) {
    let intent = |form, text: &str| {
        let checked = checked(&Memory::one(file(form), text), file(form));
        checked.intent().cloned()
    };
    let Some(before) = intent(form, text) else {
        // The words may be unknown; but no text may be too odd for the parsers.
        let _ = convert(form, text);
        return;
    };
    let there = convert(form, text).expect("a spec without errors converts");
    assert_eq!(intent(other(form), &there.text).as_ref(), Some(&before), "{}", there.text);
    let back = convert(other(form), &there.text).expect("what was converted converts back");
    assert_eq!(intent(form, &back.text).as_ref(), Some(&before), "{}", back.text);
}

// ---- words -------------------------------------------------------------------------------------

/// A hostlist prints and reads back; what is wrong with one is shown inside it.
pub fn hostlist(text: &str) {
    match text.parse::<Hostlist>() {
        Ok(list) => {
            let printed = list.to_string();
            assert_eq!(printed.parse::<Hostlist>().expect(&printed), list);
            assert!(list.len() <= MAX_NODES);
            assert_eq!(list.first().is_none(), list.is_empty());
            assert!(list.first().is_none_or(|name| list.contains(&name)));
            assert_eq!(list.union(&list), list);
            assert_eq!(list.intersection(&list), list);
            assert!(list.difference(&list).is_empty());
            assert_eq!(list.slice(1, list.len()).len(), list.len().saturating_sub(1));
        }
        Err(error) => assert!(text.get(error.at.clone()).is_some(), "{:?}", error.at),
    }
}

/// Every scalar of the language that is more than a word: units, versions, names, PCI addresses.
pub fn words(text: &str) {
    fn one<T: FromStr<Err: Display> + Display + PartialEq + Debug>(text: &str) {
        match text.parse::<T>() {
            Ok(value) => {
                let printed = value.to_string();
                match printed.parse::<T>() {
                    Ok(read) => assert_eq!(read, value, "printed as `{printed}`"),
                    Err(error) => panic!("{value:?} is printed as `{printed}`: {error}"),
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    one::<Bytes>(text);
    one::<Watts>(text);
    one::<Seconds>(text);
    one::<Milliseconds>(text);
    one::<GbitPerSec>(text);
    one::<Ratio>(text);
    one::<Parameters>(text);
    one::<GpuHourPrice>(text);
    one::<Date>(text);
    one::<Version>(text);
    one::<VersionReq>(text);
    one::<MigProfile>(text);
    one::<GpuIndexes>(text);
    one::<CpuList>(text);
    one::<Resource>(text);
    one::<PoolName>(text);
    one::<PartitionName>(text);
    one::<ClassName>(text);
    one::<SystemName>(text);
    one::<GpuName>(text);
    one::<NamespaceName>(text);
    one::<BusId>(text);
    one::<DeviceId>(text);
    if let Ok(profile) = text.parse::<MigProfile>() {
        assert!(!profile.gpu_instance().is_compute_instance());
    }
}

/// A path has finitely many ancestors, each of them around it.
pub fn item_path(text: &str) {
    let Ok(path) = text.parse::<ItemPath>();
    let mut inner = path.clone();
    while let Some(outer) = inner.parent() {
        assert!(outer.as_str().len() < inner.as_str().len());
        assert!(inner.is_within(&outer), "{inner} in {outer}");
        inner = outer;
    }
    assert!(text.contains(path.last_name()));
    let below = ItemPath::item("pool", text).keyed("gpus", [text]);
    assert_eq!(below.child("count").parent(), Some(below));
}

/// `fleetc mig` with these arguments, one a line, ends with an answer or a complaint.
pub fn mig_command(text: &str) {
    let args = ["fleetc", "mig"].into_iter().chain(text.lines()).map(Into::into);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = fleetc::cli::run(args, &mut out, &mut err);
    assert!(code <= 2, "exit code {code}: {}", String::from_utf8_lossy(&err));
    assert_eq!(out.is_empty(), code == 2, "an answer or none");
}

// ---- files of the output and of a node ---------------------------------------------------------

/// A folder with this file.
fn folder(file: &str, bytes: &[u8]) -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = Utf8PathBuf::try_from(dir.path().to_owned()).expect("UTF-8");
    std::fs::write(path.join(file), bytes).expect("a file");
    (dir, path)
}

/// A manifest that is read names no path outside its folder.
pub fn manifest(bytes: &[u8]) {
    let (_dir, folder) = folder(fleetc::output::MANIFEST, bytes);
    let Ok(Some(manifest)) = fleetc::output::read_manifest(&folder) else { return };
    for file in &manifest.files {
        assert!(file.path.is_relative(), "{}", file.path);
        assert!(file.path.components().all(|part| part.as_str() != ".."), "{}", file.path);
    }
}

/// The intent of a node: its index, its class and the side table, parted by [`NEXT_FILE`].
pub fn node_intent(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.splitn(3, NEXT_FILE);
    let mut part = || parts.next().unwrap_or_default();
    let (_dir, folder) = folder("index.json", part().as_bytes());
    std::fs::create_dir(folder.join("classes")).expect("a folder");
    std::fs::write(folder.join("classes/train.json"), part()).expect("a file");
    std::fs::write(folder.join("sources.jsonl"), part()).expect("a file");
    let Ok(intent) = intent::load(folder.as_std_path(), "gpu01") else { return };
    let report = compare::compare(&intent, &NodeState::default());
    assert_ne!(report.verdict.exit_code(), 1, "only a value can fail a check");
    fleetc_validate::render::text(&report);
    fleetc_validate::render::json(&report).expect("a report is JSON");
}

/// The readings of a node, held against a class with eight GPUs.
pub fn snapshot(bytes: &[u8]) {
    let (_dir, folder) = folder("snapshot.json", bytes);
    let file = folder.join("snapshot.json").into_std_path_buf();
    let Ok(state) = (Snapshot { file, node: "gpu01".to_owned() }).observe() else { return };
    judge(&state);
}

/// The XML of nvidia-smi, then what its other commands print, parted by [`NEXT_FILE`]; held against the
/// same class.
pub fn nvidia_smi(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.splitn(5, NEXT_FILE);
    let (_dir, folder) = folder("query.xml", parts.next().unwrap_or_default().as_bytes());
    let mut file = |name: &str| {
        let path = folder.join(name).into_std_path_buf();
        std::fs::write(&path, parts.next()?).expect("a file");
        Some(path)
    };
    let source = NvidiaSmi {
        query: folder.join("query.xml").into_std_path_buf(),
        list: file("list"),
        gpu_instances: file("lgi"),
        compute_instances: file("lci"),
        topology: file("topo"),
    };
    match source.read() {
        Ok(read) => judge(&read.state),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Holds a state against a class with eight GPUs.
fn judge(state: &NodeState) {
    static INTENT: std::sync::OnceLock<intent::NodeIntent> = std::sync::OnceLock::new();
    let intent = INTENT.get_or_init(|| {
        let text = crate::with_prelude(crate::Form::Kdl, "");
        let checked = crate::check_text(crate::Form::Kdl, &text).expect("the prelude is read");
        let dir = tempfile::tempdir().expect("a folder");
        for (path, text) in crate::compiled(&checked).expect("the prelude compiles") {
            let Some(name) = path.strip_prefix("fleet/intent/") else { continue };
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        intent::load(dir.path(), "gpu01").expect("the intent of a node")
    });
    let report = compare::compare(intent, state);
    fleetc_validate::render::text(&report);
    fleetc_validate::render::json(&report).expect("a report is JSON");
    fleetc_validate::render::junit(&report);
    fleetc_validate::render::prometheus(Some(&report), None);
    fleetc_validate::render::condition(Ok(&report), None, None).expect("a patch is JSON");
    let line = fleetc_validate::render::line(&report, 80);
    assert!(line.len() <= 80 && line.is_ascii(), "{line}");
}
