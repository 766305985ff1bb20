//! What the tests share: paths of the repository, a prelude for fragments of specs, golden trees.

pub mod properties;
pub mod schemas;
pub mod snapshot;

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc::Checked;
use fleetc::files::{Disk, Memory};

/// The root of the repository.
pub fn repository() -> Utf8PathBuf {
    let here = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Example fleets that have a golden tree, with the path of their spec.
pub const FLEETS: &[(&str, &str)] = &[
    ("lab", "fleets/lab"),
    ("northwind", "fleets/northwind"),
    ("nvl72", "fleets/nvl72"),
    ("superpod-h100", "fleets/superpod-h100"),
];

/// Checks a spec of the repository.
///
/// # Errors
/// It cannot be read.
pub fn check_fleet(spec: &str) -> Result<Checked, fleetc::CheckError> {
    fleetc::check(&Disk::new(repository()), Utf8Path::new(spec))
}

/// Checks a text as `fleet.kdl` or `fleet.yaml`.
///
/// # Errors
/// It cannot be read.
pub fn check_text(form: Form, text: &str) -> Result<Checked, fleetc::CheckError> {
    let file = form.file();
    fleetc::check(&Memory::one(file, text), Utf8Path::new(file))
}

/// Checks a text as `fleet.kdl` or `fleet.yaml`, with other files beside it.
///
/// # Errors
/// It cannot be read.
pub fn check_beside(form: Form, text: &str, beside: &Texts) -> Result<Checked, fleetc::CheckError> {
    let mut files = Memory::one(form.file(), text);
    files.0.extend(beside.iter().map(|(path, text)| (path.into(), text.clone())));
    fleetc::check(&files, Utf8Path::new(form.file()))
}

/// The file that a block of a page holds: its words are `csv` or `jsonl`, then a name.
pub fn file_of(words: &str) -> Option<&str> {
    let (form, name) = words.split_once(' ')?;
    matches!(form, "csv" | "jsonl").then_some(name)
}

/// The files of an output folder or tree, by path.
pub type Texts = BTreeMap<String, String>;

/// What compiling a checked spec gives; none if it has errors.
pub fn compiled(checked: &Checked) -> Option<Texts> {
    let tree = fleetc::compile(checked)?;
    let mut files: Texts =
        tree.files().into_iter().map(|(path, file)| (path.to_string(), file.text())).collect();
    let manifest = fleetc_targets::write::json::pretty(&fleetc::output::manifest(&tree));
    files.insert(fleetc::output::MANIFEST.to_owned(), manifest);
    Some(files)
}

/// The rule files of a cluster by name: as they were written, or what its PrometheusRule objects hold.
///
/// # Errors
/// An object holds no groups.
pub fn rule_files(files: &Texts, cluster: &str) -> Result<Texts, String> {
    let mut found = Texts::new();
    for name in ["rules.yaml", "xids.yaml"] {
        if let Some(text) = files.get(&format!("clusters/{cluster}/monitoring/{name}")) {
            found.insert(name.to_owned(), text.clone());
        }
    }
    let mut groups: BTreeMap<&str, Vec<serde_json::Value>> = BTreeMap::new();
    let folder = format!("clusters/{cluster}/kubernetes/80-monitoring/prometheusrule-");
    for (path, text) in files.iter().filter(|(path, _)| path.starts_with(&folder)) {
        let object: serde_json::Value =
            serde_yaml::from_str(text).map_err(|error| format!("{path}: {error}"))?;
        let list = object.pointer("/spec/groups").and_then(|groups| groups.as_array());
        let name = if path.ends_with("-xids.yaml") { "xids.yaml" } else { "rules.yaml" };
        let all = groups.entry(name).or_default();
        all.extend(list.ok_or(format!("{path} holds no groups"))?.iter().cloned());
    }
    for (name, groups) in groups {
        let text = fleetc_targets::write::yaml::document(&serde_json::json!({ "groups": groups }));
        found.insert(name.to_owned(), text);
    }
    Ok(found)
}

/// The files of a folder, by path relative to it.
///
/// # Errors
/// A file cannot be read.
pub fn folder(root: &Utf8Path) -> std::io::Result<Texts> {
    let mut files = Texts::new();
    let mut open = vec![root.to_owned()];
    while let Some(next) = open.pop() {
        for entry in next.read_dir_utf8()? {
            let path = entry?.into_path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap_or(&path).to_string();
                files.insert(name, std::fs::read_to_string(&path)?);
            }
        }
    }
    Ok(files)
}

/// A form of a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// KDL.
    Kdl,
    /// YAML.
    Yaml,
}

impl Form {
    /// The name of the entry file.
    pub fn file(self) -> &'static str {
        match self {
            Self::Kdl => "fleet.kdl",
            Self::Yaml => "fleet.yaml",
        }
    }
}

/// A fleet that a fragment stands in. Each item is left out if the fragment has one of that kind and
/// name (in YAML: of that kind).
const PRELUDE: &[(&str, &str)] = &[
    ("fleet", "fleet \"example\"\n"),
    (
        "cluster \"hpc\"",
        "cluster \"hpc\" { slurm \"24.11\" { controllers \"ctl1\"; database \"db1\"; gres autodetect=\"nvml\"; driver \"580.105.08\" owner=\"os\"; power-saving resume=\"/opt/resume\" suspend=\"/opt/suspend\" idle=\"10m\" } }\n",
    ),
    (
        "cluster \"serve\"",
        "cluster \"serve\" { kubernetes \"1.36\" { distribution \"upstream\"; gpu-operator \"26.7\" namespace=\"gpu-operator\"; driver \"580.105.08\" owner=\"os\"; queue \"none\" } }\n",
    ),
    (
        "pool \"train\"",
        "pool \"train\" { cluster \"hpc\"; system \"dgx-h100\"; nodes \"gpu[01-04]\"; sharing \"whole\" }\n",
    ),
    (
        "pool \"slices\"",
        "pool \"slices\" {
    cluster \"serve\"; system \"dgx-h100\"; nodes \"mig[01-02]\"
    sharing \"mig\" strategy=\"mixed\" {
        gpus \"0-3\" { slice \"1g.10gb\" count=7 }
        gpus \"4-7\" { slice \"3g.40gb\" count=2 }
    }
}
",
    ),
    ("team \"research\"", "team \"research\"\n"),
];

const YAML_PRELUDE: &[(&str, &str)] = &[
    ("fleet", "fleet: {example: true}\n"),
    (
        "cluster",
        "cluster:
  hpc: {slurm: {is: \"24.11\", controllers: [ctl1], database: db1, gres: {autodetect: nvml}, driver: {is: 580.105.08, owner: os}, power-saving: {resume: /opt/resume, suspend: /opt/suspend, idle: 10m}}}
  serve: {kubernetes: {is: \"1.36\", distribution: upstream, gpu-operator: {is: \"26.7\", namespace: gpu-operator}, driver: {is: 580.105.08, owner: os}, queue: none}}
",
    ),
    (
        "pool",
        "pool:
  train: {cluster: hpc, system: dgx-h100, nodes: \"gpu[01-04]\", sharing: whole}
  slices:
    cluster: serve
    system: dgx-h100
    nodes: \"mig[01-02]\"
    sharing: {is: mig, strategy: mixed, gpus: {\"0-3\": {slice: {1g.10gb: {count: 7}}}, \"4-7\": {slice: {3g.40gb: {count: 2}}}}}
",
    ),
    ("team", "team: {research: true}\n"),
];

/// The fragment with the prelude after it, so that its lines keep their numbers.
pub fn with_prelude(form: Form, fragment: &str) -> String {
    let (prelude, starts) = match form {
        Form::Kdl => (PRELUDE, ""),
        Form::Yaml => (YAML_PRELUDE, ":"),
    };
    let has = |key: &str| {
        fragment.lines().any(|line| {
            line.strip_prefix(key).is_some_and(|rest| {
                rest.starts_with(starts) && !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
            })
        })
    };
    let items = prelude.iter().filter(|(key, _)| !has(key)).map(|(_, text)| *text);
    format!("{fragment}\n{}", items.collect::<String>())
}

/// Fenced blocks of a Markdown page: the words after the fence, the first line's number, the text.
pub fn fenced_blocks(page: &str) -> Vec<(String, usize, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, usize, String)> = None;
    for (number, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(words), None) => open = Some((words.to_owned(), number + 2, String::new())),
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some((words, start, mut text))) => {
                text.push_str(line);
                text.push('\n');
                open = Some((words, start, text));
            }
            (None, None) => {}
        }
    }
    blocks
}

/// A text without its ANSI codes.
pub fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (index, part) in text.split('\u{1b}').enumerate() {
        let code = if index == 0 { None } else { part.split_once('m') };
        plain.push_str(code.map_or(part, |(_, rest)| rest));
    }
    plain
}
