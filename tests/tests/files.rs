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

const CLUSTER: &str = "cluster \"hpc\" { slurm \"24.11\" { controllers \"c\"; database \"d\"; gres autodetect=\"nvml\"; driver \"580.1\" owner=\"os\" } }\n";

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

const POOL: &str = "pool \"p\" { cluster \"hpc\"; system \"dgx-h100\" }\n";

/// The addresses of a DGX H100.
const PCI: &str = "0000:1b:00.0 0000:43:00.0 0000:52:00.0 0000:61:00.0 \
                   0000:9d:00.0 0000:c3:00.0 0000:d1:00.0 0000:df:00.0";

fn with_inventory(name: &str, text: &str, more: &str) -> Memory {
    let spec = format!("fleet \"x\"\ninventory \"{name}\"\n{CLUSTER}{more}");
    files(&[("f/fleet.kdl", &spec), (&format!("f/{name}"), text)])
}

#[test]
fn an_inventory_says_where_nodes_are_and_the_spec_need_not() {
    let text = format!(
        "pci,node,switch,rack,pool\n\
         {PCI},n01,leaf1 leaf2 tor1,r1,p\n\
         {PCI},n02,leaf1 leaf2 tor1,r1,p\n\
         ,n03,tor1,r2,p\n\
         {PCI},n04,tor1,r2,p\n"
    );
    let fabrics = "fabric \"a\" kind=\"infiniband\" { switch \"leaf[1-2]\" }\n\
                   fabric \"b\" kind=\"ethernet\" { switch \"tor1\" }\n\
                   rack \"r1\" power=\"40kW\"\n";
    let memory = with_inventory("nodes.csv", &text, &format!("{POOL}{fabrics}"));
    let checked = good(&memory, "f");
    let intent = checked.intent().unwrap();
    let pool = intent.pools.get("p").unwrap();
    assert_eq!(pool.nodes.to_string(), "n[01-04]");
    let racks: Vec<(&str, String)> =
        intent.racks.iter().map(|(name, rack)| (name.as_str(), rack.nodes.to_string())).collect();
    assert_eq!(racks, [("r1", "n[01-02]".to_owned()), ("r2", "n[03-04]".to_owned())]);
    assert!(intent.racks.get("r1").unwrap().power.is_some());
    let attached = |fabric: &str| -> Vec<(String, String, Option<u32>)> {
        let attachments = &intent.fabrics.get(fabric).unwrap().attachments;
        let one = |a: &fleetc_schema::intent::Attachment| {
            (a.switches.to_string(), a.nodes.to_string(), a.rails)
        };
        attachments.iter().map(one).collect()
    };
    assert_eq!(attached("a"), [("leaf[1-2]".to_owned(), "n[01-02]".to_owned(), Some(2))]);
    assert_eq!(attached("b"), [("tor1".to_owned(), "n[01-04]".to_owned(), None)]);
    let overrides: Vec<(String, usize, &str)> = pool
        .overrides
        .iter()
        .map(|each| (each.nodes.to_string(), each.pci.len(), each.path.as_str()))
        .collect();
    assert_eq!(overrides, [("n[01-02,04]".to_owned(), 8, "pool/p/pci[n01]")]);
    let place = |path: ItemPath| {
        let span = checked.span(&Place::Item(path)).unwrap();
        let source = checked.sources.of(span).unwrap();
        (source.path.as_str(), source.position(span.start).line, checked.sources.text(span))
    };
    let pool = ItemPath::item("pool", "p");
    assert_eq!(place(pool.child("nodes")), ("f/nodes.csv", 2, "n01"));
    assert_eq!(place(pool.keyed("pci", ["n01"])), ("f/nodes.csv", 2, PCI));
    assert_eq!(place(ItemPath::item("rack", "r2")), ("f/nodes.csv", 4, "r2"));

    let tree = fleetc_tests::compiled(&checked).unwrap();
    for folder in ["fleet", "clusters/hpc"] {
        let lines = tree.get(&format!("{folder}/intent/overrides/p.jsonl")).unwrap();
        assert_eq!(lines.lines().count(), 1, "nodes that are alike share a line");
        assert!(lines.starts_with("{\"nodes\":\"n[01-02,04]\",\"pci\":[\"00000000:1b:00.0\","));
        assert!(tree.get(&format!("{folder}/intent/index.json")).unwrap().contains("\"p\": 1"));
    }
}

#[test]
fn rows_in_any_order_and_form_are_the_same_fleet() {
    let sorted = "node,pool,rack\nn01,p,r1\nn02,p,r1\nn03,p,r1\n";
    let forms = [
        (
            "a.csv",
            "\u{feff}node,pool,rack\r\nn03,p,r1\r\n\r\nn01,p,r1\r\nn02,p,r1\r\n,,\r\n".to_owned(),
        ),
        (
            "b.csv",
            "\"node\",\"pool\" , rack\n\"n02\",p,\"r1\"\nn01 ,p,\tr1\nn03,p,r1"
                .replace("\" ,", "\","),
        ),
        (
            "c.jsonl",
            "{\"node\":\"n02\",\"pool\":\"p\",\"rack\":\"r1\"}\n\n\
             {\"rack\":\"r\\u0031\",\"node\":\"n01\",\"pool\":\"p\"}\n\
             {\"node\":\"n03\",\"pool\":\"p\",\"rack\":\"r1\",\"pci\":null}\r\n"
                .to_owned(),
        ),
    ];
    let intent = |name: &str, text: &str| {
        good(&with_inventory(name, text, POOL), "f").intent().unwrap().clone()
    };
    let wanted = intent("nodes.csv", sorted);
    assert_eq!(wanted.pools.get("p").unwrap().nodes.to_string(), "n[01-03]");
    for (name, text) in forms {
        assert_eq!(intent(name, &text), wanted, "{name}");
    }
}

/// Rule, line and column of every finding.
fn places(checked: &Checked) -> Vec<(&'static str, u32, u32)> {
    let place = |found: &fleetc_schema::diag::Diagnostic| {
        let span = checked.span(&found.labels[0].place).unwrap();
        let at = checked.sources.of(span).unwrap().position(span.start);
        (found.rule.name, at.line, at.column)
    };
    checked.diagnostics.iter().map(place).collect()
}

#[test]
fn what_is_no_text_is_refused_at_its_byte() {
    let nul = with_inventory("nodes.csv", "node,pool\nn01,p\nn\0,p\n", POOL);
    assert_eq!(places(&checked(&nul, "f")), [("spec/syntax", 3, 2)]);
    let pad = "n,p\n".repeat(2_000);
    let escape = with_inventory("nodes.csv", &format!("node,pool\n{pad}n01,\u{1b}[2J\n"), POOL);
    let found = checked(&escape, "f");
    assert_eq!(places(&found), [("spec/syntax", 2_002, 5)]);
    let drawn = fleetc_tests::plain(&fleetc::render::text::report(&found, Default::default()));
    assert!(drawn.contains("n01,?[2J"), "{drawn}");

    let dir = tempfile::tempdir().unwrap();
    let root = camino::Utf8PathBuf::try_from(dir.path().canonicalize().unwrap()).unwrap();
    let spec = format!("fleet \"x\"\ninventory \"nodes.csv\"\n{CLUSTER}{POOL}");
    std::fs::write(root.join("fleet.kdl"), spec).unwrap();
    std::fs::write(root.join("nodes.csv"), b"node,pool\nn01,\xc3\xa9\xff\n").unwrap();
    let disk = fleetc::files::Disk::new(root.clone());
    let found = check(&disk, Utf8Path::new("fleet.kdl")).unwrap();
    assert_eq!(places(&found), [("spec/syntax", 2, 6)]);
}

#[test]
#[cfg(unix)]
fn an_inventory_is_a_file_below_the_root() {
    let dir = tempfile::tempdir().unwrap();
    let root = camino::Utf8PathBuf::try_from(dir.path().canonicalize().unwrap()).unwrap();
    std::fs::create_dir_all(root.join("fleet/folder.csv")).unwrap();
    std::fs::write(root.join("secret.csv"), "node\nn01\n").unwrap();
    std::os::unix::fs::symlink(root.join("secret.csv"), root.join("fleet/link.csv")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", root.join("fleet/zero.csv")).unwrap();
    let spec =
        "fleet \"x\"\ninventory \"link.csv\" \"zero.csv\" \"folder.csv\" \"../secret.csv\"\n";
    std::fs::write(root.join("fleet/fleet.kdl"), spec).unwrap();
    let disk = fleetc::files::Disk::new(root.join("fleet"));
    let found = check(&disk, Utf8Path::new("fleet.kdl")).unwrap();
    let rules: Vec<&str> = found.diagnostics.iter().map(|found| found.rule.name).collect();
    let outside = "spec/outside-root";
    assert_eq!(rules, [outside, outside, "spec/include-not-found", outside]);
}

#[test]
fn a_file_full_of_mistakes_shows_the_first_hundred() {
    let rows: String = (0..250).map(|n| format!("n {n},p\n")).collect();
    let memory = with_inventory("nodes.csv", &format!("node,pool\n{rows}"), POOL);
    let found = checked(&memory, "f");
    assert_eq!(found.diagnostics.len(), 101);
    let last = found.diagnostics.iter().find(|found| found.title.contains("more")).unwrap();
    assert_eq!(last.title, "150 more mistakes in this inventory are not shown");

    // As many names that nothing has.
    let rows: String = (0..250).map(|n| format!("n{n},p{n}\n")).collect();
    let memory = with_inventory("nodes.csv", &format!("node,pool\n{rows}"), "");
    let found = checked(&memory, "f");
    assert_eq!(found.diagnostics.len(), 101);
    assert!(found.diagnostics.iter().any(|f| f.title.starts_with("150 more mistakes in column")));

    let long = format!("node,pool\nn01,{}\nn02,p\n", "p".repeat(20_000));
    let found = checked(&with_inventory("nodes.csv", &long, POOL), "f");
    assert_eq!(places(&found), [("spec/syntax", 2, 1)]);
}

#[test]
fn a_mistake_in_an_inventory_does_not_make_others() {
    // The pool might have any number of nodes: nothing is said about its quota.
    let more = format!("{POOL}team \"t\" {{ quota \"p\" guaranteed=16 }}\n");
    let memory = with_inventory("nodes.csv", "node,pool\nn01,p\nn02\n", &more);
    assert_eq!(places(&checked(&memory, "f")), [("spec/syntax", 3, 1)]);
}

#[test]
fn a_finding_far_down_a_file_is_drawn_as_near_its_top() {
    let rows: String = (0..5_000).map(|n| format!("n{n:04},p\n")).collect();
    let text = format!("node,pool\n{rows}n0001,p\n");
    let found = checked(&with_inventory("nodes.csv", &text, POOL), "f");
    let drawn = fleetc_tests::plain(&fleetc::render::text::report(&found, Default::default()));
    let wanted = "\
error[name/node-twice]: `n0001` has two rows
      ╭─[f/nodes.csv:5002:1]
 5001 │ n4999,p
 5002 │ n0001,p
      · ──┬──
      ·   ╰── a second row
      ╰────
   ╭─[f/nodes.csv:3:1]
 2 │ n0000,p
 3 │ n0001,p
   · ──┬──
   ·   ╰── the first row
 4 │ n0002,p
   ╰────
  help: keep one row a node
";
    assert_eq!(drawn.trim_end(), wanted.trim_end(), "{drawn}");
}

#[test]
fn an_overlay_has_its_own_inventories() {
    let base = format!("fleet \"b\"\ninventory \"nodes.csv\"\n{CLUSTER}{POOL}");
    let memory = |top: &str| {
        files(&[
            ("base/fleet.kdl", &base),
            ("base/nodes.csv", "node,pool\nn1,p\n"),
            ("top/fleet.kdl", &format!("fleet \"t\" {{ extends \"../base\" }}\n{top}")),
            ("top/few.csv", "node,pool\nm1,p\n"),
        ])
    };
    let nodes = |top: &str| {
        let checked = good(&memory(top), "top");
        checked.intent().unwrap().pools.get("p").unwrap().nodes.to_string()
    };
    assert_eq!(nodes(""), "n1", "the base's file is beside the base");
    assert_eq!(nodes("inventory \"few.csv\"\n"), "m1");
    let mut own = memory("");
    let text = "fleet \"t\" { extends \"../base\"; inventory \"few.csv\" }\n";
    own.0.insert("top/fleet.kdl".into(), text.to_owned());
    let checked = good(&own, "top");
    let pool = checked.intent().unwrap().pools.get("p").unwrap();
    assert_eq!(pool.nodes.to_string(), "m1", "in `fleet` it is the same");
    let yaml = "fleet: {t: {extends: ../base, inventory: few.csv}}\n";
    own.0.remove(Utf8Path::new("top/fleet.kdl"));
    own.0.insert("top/fleet.yaml".into(), yaml.to_owned());
    assert_eq!(good(&own, "top").intent(), checked.intent());
}

#[test]
fn a_node_is_held_against_its_row() {
    use fleetc_schema::intent::ClassDocument;

    let dir = tempfile::tempdir().unwrap();
    let root = camino::Utf8PathBuf::try_from(dir.path().to_owned()).unwrap();
    let checked = fleetc_tests::check_fleet("fleets/northwind").unwrap();
    for (path, text) in fleetc_tests::compiled(&checked).unwrap() {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let intent = root.join("fleet/intent");
    let class = std::fs::read_to_string(intent.join("classes/chat.json")).unwrap();
    let class: ClassDocument<'_> = serde_json::from_str(&class).unwrap();
    let snapshot = fleetc_tests::snapshot::conforming("inf05", &class.class).to_string();
    let places = |places: [&str; 8]| {
        // The snapshot's own addresses are 10, 18, 20 and so on.
        (0_u8..).zip(places).fold(snapshot.clone(), |text, (slot, place)| {
            let own = format!("00000000:{:02x}:00.0", 0x10 + slot * 8);
            text.replace(&own, &format!("00000000@{place}:00.0"))
        })
    };
    let validate = |text: String| {
        let file = root.join("node.json");
        std::fs::write(&file, text.replace('@', ":")).unwrap();
        let source = format!("snapshot:{file}");
        let args = ["fleetc-validate", "check", "--intent", intent.as_str(), "--node", "inf05"];
        let args = args.into_iter().chain(["--source", &source]).map(std::ffi::OsString::from);
        let env = fleetc_validate::cli::Environment::default();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = fleetc_validate::cli::run(args, env, &mut out, &mut err);
        (code, String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap())
    };
    let right = ["1b", "43", "52", "61", "9d", "c3", "d1", "df"];
    let (code, text) = validate(places(right));
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains("gpu.address"), "{text}");
    let moved = ["1b", "43", "52", "61", "9d", "c3", "d1", "e1"];
    let (code, text) = validate(places(moved));
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("gpu.address"), "{text}");
    assert!(text.contains("GPU 7 at 00000000:df:00.0"), "{text}");
    assert!(text.contains("00000000:e1:00.0"), "{text}");
    assert!(text.contains("fleets/northwind/nodes.csv:2"), "{text}");

    let told = fleetc::render::explain::node(&checked, "inf05").unwrap();
    assert!(told.contains("  PCI\n    index 0: 00000000:1b:00.0\n    index 1: 00000000:43:00.0\n"));

    // A line that is broken is the intent's fault, not the node's.
    let lines = intent.join("overrides/chat.jsonl");
    let line = std::fs::read_to_string(&lines).unwrap();
    for wrong in [
        line.repeat(2),
        line.replace("00000000:1b:00.0", "00000000:ff:00.0"),
        line.replace("\"00000000:1b:00.0\",", ""),
        line.replace("pci", "pcl"),
    ] {
        std::fs::write(&lines, wrong).unwrap();
        let (code, text) = validate(places(right));
        assert_eq!(code, 65, "{text}");
        assert!(text.contains("chat.jsonl"), "{text}");
    }
}
