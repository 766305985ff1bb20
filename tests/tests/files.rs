//! Specs of several files: includes, and overlays on a base.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use camino::Utf8Path;
use fleetc::files::Memory;
use fleetc::{Checked, check};
use fleetc_schema::ItemPath;
use fleetc_schema::diag::Place;

fn files(files: &[(&str, &str)]) -> Memory {
    Memory(files.iter().map(|(path, text)| ((*path).into(), (*text).to_owned())).collect())
}

fn checked(memory: &Memory, spec: &str) -> Checked {
    check(memory, Utf8Path::new(spec)).unwrap()
}

fn good(memory: &Memory, spec: &str) -> Checked {
    let checked = checked(memory, spec);
    let found: Vec<_> = checked.diagnostics.iter().map(|d| (d.rule.name, &d.title)).collect();
    assert!(found.is_empty(), "{found:?}");
    checked
}

const CLUSTER: &str = "cluster \"hpc\" { slurm \"24.11\" { controllers \"c\"; gres autodetect=\"nvml\"; driver \"580.1\" owner=\"os\" } }\n";

#[test]
fn included_files_are_part_of_the_spec_in_either_form() {
    let memory = files(&[
        (
            "f/fleet.kdl",
            "fleet \"x\" { include \"parts/clusters.kdl\" \"parts/pools.yaml\" }\nteam \"a\"\n",
        ),
        ("f/parts/clusters.kdl", &format!("include \"more.kdl\"\n{CLUSTER}")),
        ("f/parts/more.kdl", "team \"b\"\n"),
        ("f/parts/pools.yaml", "pool: {p: {cluster: hpc, system: dgx-h100, nodes: \"n[1-2]\"}}\n"),
    ]);
    let checked = good(&memory, "f");
    let intent = checked.intent().unwrap();
    assert_eq!(intent.pools.len(), 1);
    let teams: Vec<&str> = intent.teams.keys().map(|name| name.as_str()).collect();
    assert_eq!(teams, ["b", "a"], "in place, where the author put them");
    let span = checked.span(&Place::Item(ItemPath::item("pool", "p"))).unwrap();
    assert_eq!(checked.sources.of(span).unwrap().path, "f/parts/pools.yaml");
}

#[test]
fn splitting_a_spec_into_files_changes_the_side_table_alone() {
    let pool = "pool \"p\" { cluster \"hpc\"; system \"dgx-h100\"; nodes \"n[1-2]\" }\n";
    let one = files(&[("fleet.kdl", &format!("fleet \"x\"\n{CLUSTER}{pool}"))]);
    let many = files(&[
        ("fleet.kdl", &format!("fleet \"x\" {{ include \"p.kdl\" }}\n{CLUSTER}")),
        ("p.kdl", pool),
    ]);
    let tree = |memory| fleetc_tests::compiled(&good(memory, "")).unwrap();
    let (mut a, mut b) = (tree(&one), tree(&many));
    for tree in [&mut a, &mut b] {
        tree.remove(fleetc::SOURCES_FILE);
    }
    assert_eq!(a, b);
}

#[test]
fn a_circle_of_includes_is_shown_whole() {
    let memory = files(&[
        ("fleet.kdl", "fleet \"x\" { include \"a.kdl\" }\n"),
        ("a.kdl", "include \"b.kdl\"\n"),
        ("b.kdl", "include \"a.kdl\"\n"),
    ]);
    let checked = checked(&memory, "");
    let found = &checked.diagnostics[0];
    assert_eq!((checked.diagnostics.len(), found.rule.name), (1, "spec/include-cycle"));
    assert_eq!(found.notes, ["a.kdl → b.kdl → a.kdl"]);
}

#[test]
fn a_file_that_is_named_twice_is_read_once_and_reported() {
    let memory = files(&[
        ("fleet.kdl", "fleet \"x\" { include \"a.kdl\" \"./a.kdl\" }\n"),
        ("a.kdl", "team \"a\"\n"),
    ]);
    let checked = checked(&memory, "");
    let names: Vec<_> = checked.diagnostics.iter().map(|d| d.rule.name).collect();
    assert_eq!(names, ["spec/duplicate"]);
}

#[test]
fn mistakes_in_an_included_file_are_shown_there() {
    let memory = files(&[
        ("fleet.kdl", &format!("fleet \"x\" {{ include \"p.kdl\" }}\n{CLUSTER}")),
        ("p.kdl", "pool \"p\" { cluster \"hcp\"; system \"dgx-h100\"; nodes \"n[1-2]\" }\n"),
    ]);
    let checked = checked(&memory, "");
    let found = &checked.diagnostics[0];
    assert_eq!((checked.diagnostics.len(), found.rule.name), (1, "name/unknown"));
    let file = |label: usize| {
        let span = checked.span(&found.labels[label].place).unwrap();
        checked.sources.of(span).unwrap().path.as_str().to_owned()
    };
    assert_eq!((file(0).as_str(), file(1).as_str()), ("p.kdl", "fleet.kdl"));
}

fn overlay(text: &str) -> Memory {
    let base = format!(
        "fleet \"base\" {{ as-of \"2026-11-30\" }}\n{CLUSTER}\
         pool \"p\" {{ cluster \"hpc\"; system \"dgx-h100\"; nodes \"n[1-4]\"; features \"a\" \"b\"; max-unavailable 2 }}\n\
         pool \"q\" {{ cluster \"hpc\"; system \"dgx-h100\"; nodes \"m[1-4]\" }}\n\
         team \"t\" {{ weight 2; quota \"p\" guaranteed=8; quota \"q\" guaranteed=8 }}\n"
    );
    let text = format!("fleet \"top\" {{ extends \"../base\" }}\n{text}");
    files(&[("base/fleet.kdl", &base), ("top/fleet.kdl", &text)])
}

#[test]
fn an_overlay_wins_per_property_and_keeps_the_rest() {
    let memory =
        overlay("pool \"p\" { nodes \"n[1-2]\" }\nteam \"u\" { quota \"p\" guaranteed=1 }\n");
    let checked = good(&memory, "top");
    let intent = checked.intent().unwrap();
    assert_eq!(intent.fleet.name.as_str(), "top");
    assert_eq!(intent.fleet.as_of.unwrap().to_string(), "2026-11-30");
    let pool = intent.pools.get("p").unwrap();
    assert_eq!(pool.nodes.to_string(), "n[1-2]");
    assert_eq!((pool.max_unavailable, pool.features.len()), (Some(2), 2));
    let teams: Vec<&str> = intent.teams.keys().map(|name| name.as_str()).collect();
    assert_eq!(teams, ["t", "u"], "the base first, then what is new");
}

#[test]
fn lists_and_items_without_a_name_are_replaced_whole() {
    let memory =
        overlay("pool \"p\" { features \"c\" }\nteam \"t\" { quota \"p\" guaranteed=4 }\n");
    let intent = good(&memory, "top").intent().unwrap().clone();
    assert_eq!(intent.pools.get("p").unwrap().features, ["c"]);
    let team = intent.teams.get("t").unwrap();
    assert_eq!((team.quotas.len(), team.quotas[0].guaranteed, team.weight), (1, 4, Some(2)));
}

#[test]
fn an_item_can_be_removed_or_replaced() {
    let memory = overlay(
        "remove \"pool\" \"q\"\n\
         team \"t\" replace=#true { quota \"p\" guaranteed=1 }\n",
    );
    let intent = good(&memory, "top").intent().unwrap().clone();
    assert!(!intent.pools.contains_key("q"));
    let team = intent.teams.get("t").unwrap();
    assert_eq!((team.quotas.len(), team.weight), (1, None));

    let wrong = checked(&overlay("remove \"pool\" \"z\"\n"), "top");
    let found: Vec<_> = wrong.diagnostics.iter().map(|d| (d.rule.name, d.title.as_str())).collect();
    assert_eq!(found, [("name/unknown", "the base has no pool `z`")]);
}

#[test]
fn an_overlay_in_yaml_does_the_same() {
    let kdl = overlay(
        "remove \"pool\" \"q\"\n\
         team \"t\" replace=#true { quota \"p\" guaranteed=1 }\n",
    );
    let base = kdl.0.get(Utf8Path::new("base/fleet.kdl")).unwrap().clone();
    let yaml = files(&[
        ("base/fleet.kdl", &base),
        (
            "top/fleet.yaml",
            "fleet: {top: {extends: ../base}}\n\
             remove: {pool: q}\n\
             team: {t: {replace: true, quota: [{is: p, guaranteed: 1}]}}\n",
        ),
    ]);
    assert_eq!(good(&yaml, "top").intent(), good(&kdl, "top").intent());
}

#[test]
fn winner_and_loser_of_an_override_are_known() {
    let memory = overlay("pool \"p\" { nodes \"n[1-2]\" }\n");
    let checked = good(&memory, "top");
    let path = ItemPath::item("pool", "p").child("nodes");
    let over = checked.overrides().iter().find(|over| over.path == path).unwrap();
    let place = |span| {
        let source = checked.sources.of(span).unwrap();
        (source.path.as_str(), checked.sources.text(span))
    };
    assert_eq!(place(over.winner), ("top/fleet.kdl", "nodes \"n[1-2]\""));
    assert_eq!(place(over.loser), ("base/fleet.kdl", "nodes \"n[1-4]\""));
}

#[test]
fn chains_of_bases_merge_from_the_bottom() {
    let memory = files(&[
        (
            "a/fleet.kdl",
            &format!("fleet \"a\"\n{CLUSTER}team \"t\" {{ weight 1; namespace \"a\" }}\n"),
        ),
        ("b/fleet.kdl", "fleet \"b\" { extends \"../a\" }\nteam \"t\" { weight 2 }\n"),
        (
            "c/fleet.kdl",
            "fleet \"c\" { extends \"../b/fleet.kdl\" }\nteam \"t\" { account \"x\" }\n",
        ),
    ]);
    let intent = good(&memory, "c").intent().unwrap().clone();
    let team = intent.teams.get("t").unwrap();
    assert_eq!((team.weight, team.namespace.as_str(), team.account.as_str()), (Some(2), "a", "x"));
    assert_eq!(intent.fleet.name.as_str(), "c");
}
