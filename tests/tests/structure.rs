//! The shape of the workspace: which crate may import which, and what the validator may link.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::process::Command;

use fleetc_schema::diag::{Phase, Rule, rules};
use fleetc_tests::repository;

/// Crates of the workspace that each may depend on, besides itself.
const EDGES: &[(&str, &[&str])] = &[
    ("fleetc-schema", &[]),
    ("fleetc-targets", &["fleetc-schema"]),
    ("fleetc", &["fleetc-schema", "fleetc-targets"]),
    ("fleetc-validate", &["fleetc-schema"]),
    // It must not learn what NVML says from who reads it.
    ("fleetc-fake-nvml", &[]),
];

fn dependencies(package: &str, more: &[&str]) -> Vec<String> {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let output = Command::new(cargo)
        .args(["tree", "--offline", "--locked", "-e", "normal", "--prefix", "none", "-p", package])
        .args(more)
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn crates_import_only_what_the_architecture_allows() {
    for (package, allowed) in EDGES {
        for dependency in dependencies(package, &[]) {
            let ours = EDGES.iter().any(|(name, _)| *name == dependency);
            let fine = dependency == *package || allowed.contains(&dependency.as_str());
            assert!(!ours || fine, "{package} imports {dependency}");
        }
    }
}

#[test]
fn the_validator_links_no_kdl_no_renderer_and_no_schema_engine() {
    let linked = dependencies("fleetc-validate", &[]);
    for refused in
        ["kdl", "miette", "jsonschema", "schemars", "granit-parser", "petgraph", "similar"]
    {
        assert!(!linked.iter().any(|name| name == refused), "{refused}");
    }
}

#[test]
fn only_the_border_to_nvml_and_one_fork_are_unsafe() {
    for package in ["schema", "targets", "compiler", "validator", "xtask", "tests"] {
        for (path, text) in fleetc_tests::folder(&repository().join(package)).unwrap() {
            let path = format!("{package}/{path}");
            let is_border = path == "validator/src/observe/live/raw.rs"
                || path.starts_with("tests/fake-nvml/src/");
            let is_unsafe = |line: &str| {
                ["unsafe {", "unsafe fn", "unsafe extern", "unsafe impl"]
                    .iter()
                    .any(|word| line.contains(word) && !line.contains('"'))
            };
            let is_code = path.ends_with(".rs") && !is_border;
            let places = match is_code {
                true => text.lines().filter(|line| is_unsafe(line)).count(),
                false => 0,
            };
            let forks = usize::from(path == "validator/src/observe/live/fork.rs");
            assert_eq!(places, forks, "{path}");
        }
    }
}

#[test]
fn targets_know_no_disk_and_no_spec() {
    let sources = fleetc_tests::folder(&repository().join("targets/src")).unwrap();
    for (path, text) in sources {
        for refused in ["std::fs", "std::env", "kdl::", "std::process"] {
            assert!(!text.contains(refused), "{path} uses {refused}");
        }
    }
}

#[test]
fn every_rule_has_a_page_and_every_page_a_rule() {
    let root = repository().join("schema/src/diag/rules");
    let mut pages: Vec<String> = fleetc_tests::folder(&root)
        .unwrap()
        .into_keys()
        .map(|path| path.trim_end_matches(".md").to_owned())
        .collect();
    let mut rules: Vec<String> = rules::ALL.iter().map(|rule| rule.name.to_owned()).collect();
    pages.sort();
    rules.sort();
    assert_eq!(pages, rules);
}

#[test]
fn every_rule_is_in_a_diagnostics_test() {
    let pages = fleetc_tests::folder(&repository().join("tests/diagnostics")).unwrap();
    let all: String = pages.into_values().collect();
    let of_a_spec = |rule: &&&Rule| rule.phase != Phase::Plan;
    for rule in rules::ALL.iter().filter(of_a_spec) {
        assert!(all.contains(&format!("[{}]", rule.name)), "{}", rule.name);
    }
}

#[test]
fn committed_schemas_are_fresh() {
    for (name, text) in fleetc_tests::schemas::all() {
        let path = repository().join("schema/json").join(&name);
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(committed, text, "{name} is stale: cargo xtask generate");
    }
}

#[test]
fn every_property_has_a_fuzz_target() {
    let fuzz = repository().join("fuzz");
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    let mut targets: Vec<String> = fleetc_tests::folder(&fuzz.join("fuzz_targets"))
        .unwrap()
        .into_keys()
        .map(|file| file.trim_end_matches(".rs").to_owned())
        .collect();
    let properties = fleetc_tests::properties::ALL.iter().map(|(name, _)| (*name).to_owned());
    let mut properties: Vec<String> = properties.collect();
    targets.sort();
    properties.sort();
    assert_eq!(targets, properties);
    for name in targets {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
    }
}
