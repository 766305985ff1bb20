//! Same input, same bytes; and a change of the spec touches only what it is about.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use fleetc_tests::{
    FLEETS, Form, Texts, check_beside, check_fleet, check_text, compiled, folder, repository,
};

fn lab() -> String {
    std::fs::read_to_string(repository().join("fleets/lab/fleet.kdl")).unwrap()
}

fn tree(form: Form, text: &str) -> Texts {
    let checked = check_text(form, text).unwrap();
    let found: Vec<&String> = checked.diagnostics.iter().map(|d| &d.title).collect();
    compiled(&checked).unwrap_or_else(|| panic!("{found:?}"))
}

fn differing<'a>(a: &'a Texts, b: &'a Texts) -> Vec<&'a str> {
    let mut paths: Vec<&str> = a.keys().chain(b.keys()).map(String::as_str).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.retain(|path| a.get(*path) != b.get(*path));
    paths
}

#[test]
fn twins_give_the_same_bytes_but_for_the_side_table() {
    for (_, spec) in FLEETS {
        let kdl = compiled(&check_fleet(spec).unwrap()).unwrap();
        let yaml = compiled(&check_fleet(&format!("{spec}/yaml")).unwrap()).unwrap();
        assert_eq!(differing(&kdl, &yaml), ["fleet/intent/sources.jsonl"], "{spec}");
    }
}

#[test]
fn the_example_fleets_have_no_finding_in_either_form() {
    for (_, spec) in FLEETS {
        for spec in [(*spec).to_owned(), format!("{spec}/yaml")] {
            let checked = check_fleet(&spec).unwrap();
            let found: Vec<&String> = checked.diagnostics.iter().map(|d| &d.title).collect();
            assert!(found.is_empty(), "{spec}: {found:?}");
        }
    }
}

#[test]
fn compiling_twice_gives_the_same_bytes() {
    assert_eq!(tree(Form::Kdl, &lab()), tree(Form::Kdl, &lab()));
}

#[test]
fn a_comment_or_another_layout_changes_the_side_table_alone() {
    let spec = lab();
    let commented = format!("// a comment\n\n{}", spec.replace(";", "; /* here too */ "));
    let (before, after) = (tree(Form::Kdl, &spec), tree(Form::Kdl, &commented));
    assert_eq!(differing(&before, &after), ["fleet/intent/sources.jsonl"]);
}

#[test]
fn no_output_but_the_side_table_names_a_spec_file() {
    for (path, text) in tree(Form::Kdl, &lab()) {
        let names = text.contains("fleet.kdl");
        assert_eq!(names, path == "fleet/intent/sources.jsonl", "{path}");
    }
}

/// Files of which one more pool changes lines of others, and how those lines begin.
const SHARED_LINES: [(&str, &str); 2] = [
    // The switch above all others lists them.
    ("slurm/topology.conf", "SwitchName=racks "),
    // Slurm has one list of the nodes that are never powered down.
    ("slurm/slurm.conf", "SuspendExcNodes="),
];

/// Every old line is still there, in order, though a comma may follow it now.
fn adds_lines_only(before: &Texts, after: &Texts, others: &str) {
    let changed = differing(before, after);
    assert!(changed.len() > 2, "there is one pool more: {changed:?}");
    assert!(changed.iter().all(|path| !path.starts_with(others)), "{changed:?}");
    for path in changed {
        let ours = ["fleetc.manifest.json", "fleet/intent/sources.jsonl"];
        // Unit tests of rules, which nobody applies, try an alert on the first class that it tells of:
        // the new one may be it.
        if path.ends_with(".test.yaml") {
            continue;
        }
        let Some(old) = before.get(path).filter(|_| !ours.contains(&path)) else { continue };
        let is_shared = |line: &str| {
            SHARED_LINES.iter().any(|(file, start)| path.ends_with(file) && line.starts_with(start))
        };
        let mut lines = after[path].lines();
        for line in old.lines().filter(|line| !is_shared(line)) {
            let tail = line.trim_end_matches(',');
            assert!(lines.any(|l| l.trim_end_matches(',') == tail), "{path}: {line}");
        }
    }
}

#[test]
fn inserting_a_pool_adds_lines_and_changes_none() {
    let spec = lab();
    let inserted = |more: &str| {
        let at = spec.find("pool \"train\"").unwrap();
        tree(Form::Kdl, &format!("{}{more}\n{}", &spec[..at], &spec[at..]))
    };
    let before = tree(Form::Kdl, &spec);
    let whole =
        r#"pool "alpha" { cluster "hpc"; system "dgx-h100"; nodes "alpha[1-2]"; sharing "whole" }"#;
    adds_lines_only(&before, &inserted(whole), "clusters/serve/");
    let sliced = r#"pool "alpha" {
            cluster "serve"; system "dgx-h100"; nodes "alpha[1-2]"
            sharing "mig" strategy="mixed" { gpus "0-7" { slice "2g.20gb" count=3 } }
        }"#;
    adds_lines_only(&before, &inserted(sliced), "clusters/hpc/");
}

#[test]
fn inserting_a_pool_into_a_fleet_with_elastic_nodes_changes_no_line() {
    let mut files = folder(&repository().join("fleets/northwind")).unwrap();
    let fleet = files.remove("fleet.kdl").unwrap();
    let pools = files["pools.kdl"].clone();
    let at = pools.find("pool \"pretrain\"").unwrap();
    let mut compile = |more: &str| {
        files.insert("pools.kdl".to_owned(), format!("{}{more}{}", &pools[..at], &pools[at..]));
        let checked = check_beside(Form::Kdl, &fleet, &files).unwrap();
        let found: Vec<&String> = checked.diagnostics.iter().map(|d| &d.title).collect();
        compiled(&checked).unwrap_or_else(|| panic!("{found:?}"))
    };
    let alpha = "pool \"alpha\" { cluster \"hpc\"; system \"dgx-h100\"; nodes \"alpha[1-2]\"; sharing \"whole\" }\n";
    adds_lines_only(&compile(""), &compile(alpha), "clusters/serve/");
}

#[test]
fn text_ends_with_one_newline_and_lines_with_no_blank() {
    for (path, text) in tree(Form::Kdl, &lab()) {
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{path}");
        assert!(text.lines().all(|line| !line.ends_with([' ', '\t', '\r'])), "{path}");
    }
}

#[test]
fn no_two_targets_write_one_path() {
    let checked = check_fleet("fleets/lab").unwrap();
    let intent = checked.intent().unwrap();
    let mut all = Vec::new();
    for target in fleetc_targets::TARGETS {
        for scope in target.scopes(intent) {
            let tree = target.emit(&scope);
            all.extend(tree.files().into_iter().map(|(path, _)| path.to_owned()));
        }
    }
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn the_intent_reads_back_as_it_was_written() {
    use fleetc_schema::intent::IntentDocument;
    let checked = check_fleet("fleets/lab").unwrap();
    let files = compiled(&checked).unwrap();
    let read: IntentDocument<'_> = serde_json::from_str(&files["fleet/intent/fleet.json"]).unwrap();
    assert_eq!(read.intent.as_ref(), checked.intent().unwrap());
}

#[test]
fn yaml_files_are_read_by_another_reader() {
    for (path, text) in tree(Form::Kdl, &lab()) {
        if path.ends_with(".yaml") {
            let value: serde_json::Value = serde_yaml::from_str(&text).unwrap();
            assert!(value.is_object(), "{path}");
        }
    }
}
