//! What is refused, and what is said about it.

use std::fs;

use fleetc_validate::cli;
use serde_json::{Value, json};

use crate::fleet::{BUS_IDS, check, check_with, class, index, refused, snapshot, sources, stage};

#[test]
fn an_unknown_node_is_refused_and_the_fleet_named() {
    let run = check_with(&stage(), &["--node", "mig03\u{1b}"]);
    assert_eq!(run.code, cli::EXIT_INPUT);
    assert!(run.err.contains("node `mig03\\u{1b}` is not in fleet `lab`"), "{}", run.err);
}

#[test]
fn a_snapshot_of_another_node_is_refused() {
    let run = check_with(&stage(), &["--node", "mig02"]);
    assert_eq!((run.code, run.out.as_str()), (cli::EXIT_INPUT, ""));
    assert!(run.err.contains("was taken on node `mig01`, not on `mig02`"), "{}", run.err);
}

#[test]
fn a_bad_snapshot_is_refused_at_its_place() {
    let whole = snapshot().to_string();
    for length in (0..whole.len()).step_by(97) {
        let err = refused("node.json", whole.get(..length).unwrap());
        assert!(err.contains("DIR/node.json:1:"), "{err}");
    }
    let with = |change: &dyn Fn(&mut Value)| {
        let mut node = snapshot();
        change(&mut node);
        refused("node.json", &node.to_string())
    };
    let gpu = |node: &mut Value| node["state"]["gpus"]["value"][1].take();
    let err = with(&|node| node["more"] = json!(1));
    assert!(err.contains("unknown field `more`"), "{err}");
    let err = with(&|node| {
        node["state"]["gpus"]["value"][0]["gpu_instances"]["value"][0]["placement"]["more"] =
            json!(1);
    });
    assert!(err.contains("unknown field `more`"), "{err}");
    let err = with(&|node| node["state"]["gpus"]["value"][0] = gpu(node));
    assert!(err.contains("DIR/node.json:1:"), "{err}");
    let err = with(&|node| node["state"]["gpus"]["value"][0]["bus_id"] = json!(BUS_IDS[1]));
    assert!(err.contains("`gpus` holds 00000000:43:00.0 twice"), "{err}");
    let err = with(&|node| node["state"]["gpus"]["value"][0]["index"] = json!(1));
    assert!(err.contains("`gpus` holds the index 1 twice"), "{err}");
    let err = with(&|node| node["state"]["driver"] = json!({ "value": "1", "unknown": "x" }));
    assert!(err.contains("DIR/node.json:1:"), "{err}");
    let err = with(&|node| node["schema"] = json!("fleetc/snapshot/v3"));
    assert!(err.contains("`fleetc/snapshot/v3`, this program reads `fleetc/snapshot/v2`"), "{err}");
}

#[test]
fn a_bad_intent_is_refused_at_its_place() {
    let changed = |mut value: Value, change: &dyn Fn(&mut Value)| {
        change(&mut value);
        value.to_string()
    };
    let of_class = |change: &dyn Fn(&mut Value)| {
        refused("intent/classes/slices.hpc.json", &changed(class(), change))
    };
    let of_index =
        |change: &dyn Fn(&mut Value)| refused("intent/index.json", &changed(index(), change));

    let err = refused("intent/index.json", "{\n  \"schema\": \"fleetc/index/v1\",\n");
    assert!(err.contains("DIR/intent/index.json:3:0: EOF"), "{err}");
    let err = of_index(&|index| index["schema"] = json!("fleetc/class/v1"));
    assert!(err.contains("`fleetc/class/v1`, this program reads `fleetc/index/v1`"), "{err}");
    let err = of_index(&|index| index["classes"]["train"] = json!("mig02,mig[01,03]"));
    assert!(err.contains("node `mig01` is in two classes, `train` and `slices.hpc`"), "{err}");
    for hostile in ["../../node", "..", "/etc/passwd", "a/b", "a\u{0}b", ""] {
        let err = of_index(&|index| index["classes"] = json!({ hostile: "mig01" }));
        assert!(err.contains("DIR/intent/index.json:1:"), "{hostile}: {err}");
    }
    let err = of_index(&|index| index["classes"] = json!({ "gone": "mig01" }));
    assert!(err.contains("reading DIR/intent/classes/gone.json: "), "{err}");

    let err = of_class(&|class| class["schema"] = json!("fleetc/class/v2"));
    assert!(err.contains("`fleetc/class/v2`, this program reads `fleetc/class/v1`"), "{err}");
    let err = of_class(&|class| class["class"]["name"] = json!("train"));
    assert!(err.contains("it describes the class `train`, not `slices.hpc`"), "{err}");
    let err = of_class(&|class| class["class"]["gpus"][2]["index"] = json!(3));
    assert!(err.contains("not numbered 0, 1, 2"), "{err}");
    let err = of_class(&|class| class["class"]["gpu"] = json!(null));
    assert!(err.contains("names no product"), "{err}");
    let err = of_class(&|class| class["class"]["gpu"]["pci_device_ids"] = json!(["2330"]));
    assert!(err.contains("`2330` is not a PCI device id"), "{err}");
    let err = of_class(&|class| class["class"]["paths"]["system"] = json!("a/".repeat(4096)));
    assert!(err.contains("longer than 4096 bytes"), "{err}");
}

#[test]
fn bad_sources_are_refused_at_their_line() {
    let err = refused("intent/sources.jsonl", &format!("{}{{}}\n", sources()));
    assert!(err.contains("DIR/intent/sources.jsonl:5:2: missing field `path`"), "{err}");
    let err = refused("intent/sources.jsonl", &" ".repeat(1 << 17));
    assert!(err.contains("sources.jsonl: line 1 is longer than 65536 bytes"), "{err}");
}

#[test]
fn files_that_are_too_large_are_refused() {
    let dir = stage();
    let file = fs::File::create(dir.path().join("node.json")).unwrap();
    file.set_len((64 << 20) + 1).unwrap();
    let run = check(&dir);
    assert_eq!(run.code, cli::EXIT_INPUT);
    assert!(run.err.contains("node.json is larger than 67108864 bytes"), "{}", run.err);
}

#[cfg(unix)]
#[test]
fn links_are_followed_inside_the_folder_only() {
    use std::os::unix::fs::symlink;
    // As a mounted ConfigMap looks.
    let dir = stage();
    let intent = dir.path().join("intent");
    fs::create_dir(intent.join("..data")).unwrap();
    fs::rename(intent.join("index.json"), intent.join("..data/index.json")).unwrap();
    symlink("..data/index.json", intent.join("index.json")).unwrap();
    assert_eq!(check(&dir).code, 0);

    fs::rename(intent.join("..data/index.json"), dir.path().join("index.json")).unwrap();
    symlink(dir.path().join("index.json"), intent.join("..data/index.json")).unwrap();
    let run = check(&dir);
    assert_eq!(run.code, cli::EXIT_INPUT);
    assert!(run.err.contains("index.json leads out of its folder"), "{}", run.err);

    fs::remove_file(intent.join("index.json")).unwrap();
    symlink("classes", intent.join("index.json")).unwrap();
    assert!(check(&dir).err.contains("index.json is not a regular file"));
}
