//! Published JSON Schemas: every document that a command prints or writes is held against its own,
//! and the schema of the YAML form against specs, right and wrong.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::ffi::OsString;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc::Checked;
use fleetc_schema::intent::ClassDocument;
use fleetc_tests::{
    Form, check_beside, check_fleet, check_text, compiled, fenced_blocks, folder, repository,
    schemas, snapshot, with_prelude,
};
use jsonschema::Validator;
use serde_json::{Value, json};

/// The validator of a committed schema.
fn committed(path: &str) -> Validator {
    let text = std::fs::read_to_string(repository().join(path)).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{path}: {error}"));
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

fn ours(name: &str) -> Validator {
    committed(&format!("schema/json/{name}.schema.json"))
}

/// What a schema has against a document.
fn errors(validator: &Validator, document: &Value) -> Vec<String> {
    let errors = validator.iter_errors(document);
    errors.map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn holds(validator: &Validator, text: &str, what: &str) {
    let document: Value = serde_json::from_str(text).unwrap();
    assert_eq!(errors(validator, &document), [""; 0], "{what}:\n{text}");
}

/// Every fragment of the diagnostics suite, checked.
fn fragments() -> Vec<(String, Form, String, Checked)> {
    let mut all = Vec::new();
    for (name, page) in folder(&repository().join("tests/diagnostics")).unwrap() {
        for (words, line, text) in fenced_blocks(&page) {
            let form = match words.as_str() {
                "kdl" => Form::Kdl,
                "yaml" => Form::Yaml,
                _ => continue,
            };
            let spec = with_prelude(form, &text);
            let checked = check_text(form, &spec).unwrap();
            all.push((format!("{name}:{line}"), form, spec, checked));
        }
    }
    all
}

fn scratch() -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::try_from(dir.path().canonicalize().unwrap()).unwrap();
    (dir, path)
}

fn fleetc(args: &[&str]) -> String {
    let args = std::iter::once("fleetc").chain(args.iter().copied()).map(OsString::from);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = fleetc::cli::run(args, &mut out, &mut err);
    assert!(code < 2, "{}", String::from_utf8(err).unwrap());
    String::from_utf8(out).unwrap()
}

#[test]
fn findings_hold_as_json_and_as_sarif() {
    let (diagnostics, sarif) = (ours("diagnostics"), committed("tests/schemas/sarif-2.1.0.json"));
    for (name, _, _, checked) in fragments() {
        holds(&diagnostics, &fleetc::render::json::report(&checked), &name);
        holds(&sarif, &fleetc::render::sarif::report(&checked), &name);
    }
    let none = check_fleet("fleets/lab").unwrap();
    holds(&diagnostics, &fleetc::render::json::report(&none), "no finding");
    holds(&sarif, &fleetc::render::sarif::report(&none), "no finding");
}

#[test]
fn the_schemas_of_findings_refuse_what_is_no_finding() {
    let (diagnostics, sarif) = (ours("diagnostics"), committed("tests/schemas/sarif-2.1.0.json"));
    let label = json!({ "primary": true, "text": "", "file": "a.kdl", "line": 1, "colum": 1 });
    let finding = json!({
        "rule": "spec/syntax", "severity": "error", "title": "x", "labels": [label],
        "notes": [], "help": [],
    });
    let document = json!({
        "schema": "fleetc/diagnostics/v1", "errors": 1, "warnings": 0, "notes": 0,
        "diagnostics": [finding],
    });
    assert!(!errors(&diagnostics, &document).is_empty());
    assert!(!errors(&sarif, &json!({ "version": "2.1.0" })).is_empty());
    let driver = json!({ "driver": { "name": "x", "colour": "red" } });
    let log = json!({ "version": "2.1.0", "runs": [{ "tool": driver }] });
    assert!(!errors(&sarif, &log).is_empty());
}

/// Edits of the lab, each with plans of its own: values, items that go and come, another mode.
const EDITS: &[(&str, &str)] = &[
    ("slice \"3g.40gb\" count=2", "slice \"3g.40gb\" count=1"),
    ("missing 3", "missing 3 4"),
    ("nodes \"gpu[01-04]\"; sharing", "nodes \"gpu[01-05]\"; sharing"),
    ("sharing \"time-slicing\" replicas=4", "sharing \"whole\""),
    (
        "580.105.08\" owner=\"os\"\n        partition",
        "580.126.09\" owner=\"os\"\n        partition",
    ),
    ("monitoring { exporter \"dcgm-exporter\" version=\"4.8.3\" }", ""),
    ("fleet \"lab\"", "fleet \"laboratory\""),
];

#[test]
fn plans_hold() {
    let plan = ours("plan");
    let (_dir, root) = scratch();
    let old = repository().join("fleets/lab");
    let text = std::fs::read_to_string(old.join("fleet.kdl")).unwrap();
    let spec = root.join("fleet.kdl");
    std::fs::write(&spec, &text).unwrap();
    let same = fleetc(&["diff", old.as_str(), spec.as_str(), "--format", "json"]);
    holds(&plan, &same, "no change");
    for (from, to) in EDITS {
        assert!(text.contains(from), "{from}");
        std::fs::write(&spec, text.replace(from, to)).unwrap();
        for sides in [[&old, &spec], [&spec, &old]] {
            let json = fleetc(&["diff", sides[0].as_str(), sides[1].as_str(), "--format", "json"]);
            holds(&plan, &json, from);
            let document: Value = serde_json::from_str(&json).unwrap();
            assert_ne!(document["changes"], json!([]), "{from} changes nothing");
        }
    }
}

#[test]
fn the_intent_that_is_written_holds() {
    let files = compiled(&check_fleet("fleets/lab").unwrap()).unwrap();
    let (intent, index, class) = (ours("intent"), ours("index"), ours("class"));
    let line = ours("source-line");
    let known = ours("override");
    let mut seen = 0;
    for (path, text) in &files {
        let Some((_, name)) = path.split_once("/intent/") else { continue };
        match name {
            "fleet.json" => holds(&intent, text, path),
            "index.json" => holds(&index, text, path),
            "sources.jsonl" => text.lines().for_each(|text| holds(&line, text, path)),
            _ if name.starts_with("classes/") => holds(&class, text, path),
            _ if name.starts_with("overrides/") => {
                text.lines().for_each(|text| holds(&known, text, path));
            }
            _ => panic!("{path} has no schema"),
        }
        seen += 1;
    }
    assert!(seen > 5, "{seen}");
}

#[test]
fn reports_of_the_validator_hold() {
    let report = ours("report");
    let (_dir, root) = scratch();
    let out = root.join("out");
    fleetc(&["compile", repository().join("fleets/lab").as_str(), "-o", out.as_str()]);
    let intent = out.join("fleet/intent");
    let text = std::fs::read_to_string(intent.join("classes/slices.hpc.json")).unwrap();
    let class: ClassDocument<'_> = serde_json::from_str(&text).unwrap();
    let good = snapshot::conforming("mig01", &class.class);
    let mut bad = good.clone();
    bad["state"]["gpus"]["value"][2]["gpu_instances"]["value"] = json!([]);
    let mut unread = good.clone();
    unread["state"]["gpus"]["value"][2]["mig_mode"] = json!({ "unknown": "NVML did not answer" });
    for (state, verdict) in [(good, "conforms"), (bad, "does_not_conform"), (unread, "undecided")] {
        let text = validate(&root, &intent, &state);
        holds(&report, &text, verdict);
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["verdict"], verdict);
    }
}

fn validate(root: &Utf8Path, intent: &Utf8Path, state: &Value) -> String {
    let file = root.join("node.json");
    std::fs::write(&file, state.to_string()).unwrap();
    let source = format!("snapshot:{file}");
    let args = ["check", "--intent", intent.as_str(), "--node", "mig01", "--source", &source];
    let args = std::iter::once("fleetc-validate").chain(args).chain(["--format", "json"]);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let env = fleetc_validate::cli::Environment::default();
    fleetc_validate::cli::run(args.map(OsString::from), env, &mut out, &mut err);
    String::from_utf8(out).unwrap()
}

fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap()
}

#[test]
fn the_schema_of_the_yaml_form_takes_the_example_fleet() {
    let text = std::fs::read_to_string(repository().join("fleets/lab/yaml/fleet.yaml")).unwrap();
    assert_eq!(errors(&ours("spec"), &yaml(&text)), [""; 0]);
}

#[test]
fn the_schema_of_the_yaml_form_takes_whatever_compiles() {
    let spec = ours("spec");
    let mut compiled = 0;
    for (name, form, text, checked) in fragments() {
        if form == Form::Yaml && checked.intent().is_some() {
            assert_eq!(errors(&spec, &yaml(&text)), [""; 0], "{name}:\n{text}");
            compiled += 1;
        }
    }
    assert!(compiled > 0);
}

#[test]
fn the_schema_of_the_yaml_form_refuses_what_the_compiler_refuses() {
    let spec = ours("spec");
    for (wrong, at) in [
        ("pool: {a: {colour: red}}", "/pool/a"),
        ("colour: red", ""),
        ("pool: [a]", "/pool"),
        ("pool: {A B: {cluster: hpc, system: dgx-h100, nodes: a, sharing: whole}}", "/pool"),
        ("pool: {a: {cluster: hpc, system: dgx-h100, nodes: a, sharing: hole}}", "/pool/a/sharing"),
        ("pool: {a: {cluster: hpc, nodes: a, sharing: whole}}", "/pool/a"),
        ("pool: {a: true}", "/pool/a"),
        ("rack: {r1: {nodes: 7}}", "/rack/r1"),
        ("pool: {a: {cluster: hpc, system: dgx-h100, nodes: 7, sharing: whole}}", "/pool/a/nodes"),
        ("team: {a: {quota: {is: train, guaranteed: 1}}}", "/team/a"),
        ("team: {a: {quota: [{is: train, guaranteed: -1}]}}", "/team/a"),
        ("team: {a: {quota: [{is: train}]}}", "/team/a"),
        ("team: {a: false}", "/team/a"),
        ("cluster: {a: {slurm: \"24.11\"}}", "/cluster/a"),
        (
            "monitoring: {exporter: {is: dcgm-exporter, version: 4.8}}",
            "/monitoring/exporter/version",
        ),
        ("fleet: {a: {as-of: \"30.11.2026\"}}", "/fleet/a"),
        ("node-policy: {a: {power-limit: \"700\"}}", "/node-policy/a"),
        ("node-policy: {a: {ecc: yes please}}", "/node-policy/a"),
        ("node-policy: {a: {pcie: {gen: 9}}}", "/node-policy/a"),
    ] {
        let found = errors(&spec, &yaml(wrong));
        assert!(!found.is_empty(), "{wrong}");
        assert!(found.iter().all(|error| error.starts_with(at)), "{wrong}: {found:#?}");
        let checked = check_text(Form::Yaml, &with_prelude(Form::Yaml, wrong)).unwrap();
        assert!(checked.intent().is_none(), "{wrong} compiles");
    }
}

#[test]
fn fleetc_schema_prints_the_committed_ones() {
    let names = [
        "spec",
        "intent",
        "index",
        "class",
        "override",
        "source-line",
        "diagnostics",
        "plan",
        "drift",
        "report",
        "fix",
    ];
    for name in names {
        let path = repository().join("schema/json").join(format!("{name}.schema.json"));
        assert_eq!(fleetc(&["schema", name]), std::fs::read_to_string(path).unwrap());
        ours(name);
    }
    assert_eq!(fleetc(&["schema"]), fleetc(&["schema", "spec"]));
    let files = folder(&repository().join("schema/json")).unwrap();
    assert_eq!(files.len(), names.len(), "each committed schema can be printed");
}

#[test]
fn the_language_reference_is_fresh() {
    let path = repository().join(schemas::LANGUAGE_PAGE);
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let fresh = schemas::language_page().unwrap();
    assert_eq!(committed, fresh, "{} is stale: cargo xtask generate", schemas::LANGUAGE_PAGE);
}

#[test]
fn the_page_of_checks_is_fresh() {
    let name = schemas::CHECKS_PAGE;
    let committed = std::fs::read_to_string(repository().join(name)).unwrap_or_default();
    assert_eq!(committed, schemas::checks_page(), "{name} is stale: cargo xtask generate");
}

#[test]
fn the_page_about_inventories_is_fresh_and_its_examples_say_the_same() {
    let committed = std::fs::read_to_string(repository().join(schemas::INVENTORY_PAGE));
    let page = fleetc::inventory::page();
    let name = schemas::INVENTORY_PAGE;
    assert_eq!(committed.unwrap_or_default(), page, "{name} is stale: cargo xtask generate");
    let blocks = fenced_blocks(&page);
    let block = |wanted: &str| {
        let (_, _, text) = blocks.iter().find(|(words, ..)| words == wanted).unwrap();
        text.clone()
    };
    let spec = with_prelude(Form::Kdl, &block("kdl"));
    let intent = |name: &str, words: &str| {
        let beside = [(name.to_owned(), block(words))].into();
        let spec = spec.replace("nodes.csv", name);
        let checked = check_beside(Form::Kdl, &spec, &beside).unwrap();
        let titles: Vec<&String> = checked.diagnostics.iter().map(|found| &found.title).collect();
        assert!(titles.is_empty(), "{words}: {titles:?}");
        checked.intent().unwrap().clone()
    };
    let csv = intent("nodes.csv", "csv nodes.csv");
    assert_eq!(csv.pools.get("train").unwrap().nodes.to_string(), "gpu[001-002]");
    assert_eq!(csv.pools.get("train").unwrap().overrides.len(), 1);
    assert_eq!(csv, intent("nodes.jsonl", "jsonl nodes.jsonl"));
}

#[test]
fn the_example_of_the_language_reference_is_one_fleet_in_two_forms() {
    let page = schemas::language_page().unwrap();
    let blocks = fenced_blocks(&page);
    let first = |form: Form, words: &str| {
        let (_, _, text) = blocks.iter().find(|(found, ..)| found == words).unwrap();
        let checked = check_text(form, text).unwrap();
        let titles: Vec<&String> = checked.diagnostics.iter().map(|found| &found.title).collect();
        assert!(titles.is_empty(), "{words}: {titles:?}");
        checked.intent().unwrap().clone()
    };
    assert_eq!(first(Form::Kdl, "kdl"), first(Form::Yaml, "yaml"));
}

#[test]
fn specs_that_the_language_reference_takes_examples_from_have_no_finding() {
    for spec in schemas::EXAMPLES {
        assert!(check_fleet(spec).unwrap().diagnostics.is_empty(), "{spec}");
    }
}

#[test]
fn no_schema_engine_is_linked_into_a_binary() {
    for package in ["fleetc", "fleetc-validate"] {
        let cargo = option_env!("CARGO").unwrap_or("cargo");
        let tree = std::process::Command::new(cargo)
            .args(["tree", "--offline", "--locked", "-e", "normal", "--prefix", "none"])
            .args(["-p", package])
            .current_dir(repository())
            .output()
            .unwrap();
        let text = String::from_utf8(tree.stdout).unwrap();
        assert!(text.contains("serde_json"), "{package}");
        for refused in ["jsonschema ", "schemars "] {
            assert!(!text.lines().any(|line| line.starts_with(refused)), "{package}: {refused}");
        }
    }
}
