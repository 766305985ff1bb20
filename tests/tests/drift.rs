//! `fleetc drift`: many nodes' reports against the fleet.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::ffi::OsString;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_schema::intent::ClassDocument;
use fleetc_tests::{repository, snapshot};
use serde_json::{Value, json};

struct Run {
    code: u8,
    out: String,
    err: String,
}

fn run(args: &[&str]) -> Run {
    let args = std::iter::once("fleetc").chain(args.iter().copied()).map(OsString::from);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = fleetc::cli::run(args, &mut out, &mut err);
    Run { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

/// A scratch folder with the output of the lab fleet and an empty folder of reports.
struct Lab {
    _dir: tempfile::TempDir,
    root: Utf8PathBuf,
}

/// The nodes of the lab fleet by class, as its spec has them.
const NODES: [(&str, &[&str]); 5] = [
    ("train", &["gpu01", "gpu03", "gpu04"]),
    ("train.missing-3", &["gpu02"]),
    ("slices.hpc", &["mig01", "mig02"]),
    ("slices.serve", &["mig03", "mig04"]),
    ("dev", &["dev1", "dev2"]),
];

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::try_from(dir.path().canonicalize().unwrap()).unwrap();
        let spec = repository().join("fleets/lab");
        let out = root.join("out");
        assert_eq!(run(&["compile", spec.as_str(), "-o", out.as_str()]).code, 0);
        std::fs::create_dir(root.join("reports")).unwrap();
        Self { _dir: dir, root }
    }

    /// What the validator says of a node, after a change of its readings.
    fn report(&self, node: &str, class: &str, change: impl FnOnce(&mut Value)) -> String {
        let intent = self.root.join("out/fleet/intent");
        let text = std::fs::read_to_string(intent.join(format!("classes/{class}.json"))).unwrap();
        let document: ClassDocument<'_> = serde_json::from_str(&text).unwrap();
        let mut state = snapshot::conforming(node, &document.class);
        change(&mut state["state"]);
        let file = self.root.join("node.json");
        std::fs::write(&file, state.to_string()).unwrap();
        let source = format!("snapshot:{file}");
        let args = ["check", "--intent", intent.as_str(), "--node", node, "--source", &source];
        let args = std::iter::once("fleetc-validate").chain(args).chain(["--format", "json"]);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let env = fleetc_validate::cli::Environment::default();
        fleetc_validate::cli::run(args.map(OsString::from), env, &mut out, &mut err);
        String::from_utf8(out).unwrap()
    }

    /// Reports of all nodes, which all conform.
    fn all(&self) {
        for (class, nodes) in NODES {
            for node in nodes {
                self.put(&format!("{node}.json"), &self.report(node, class, |_| {}));
            }
        }
    }

    fn put(&self, file: &str, text: &str) {
        std::fs::write(self.root.join("reports").join(file), text).unwrap();
    }

    fn drift(&self, spec: &Utf8Path, more: &[&str]) -> Run {
        let reports = self.root.join("reports");
        run(&[&["drift", reports.as_str(), "--spec", spec.as_str()], more].concat())
    }

    fn json(&self) -> (u8, Value) {
        let run = self.drift(&self.root.join("out"), &["--format", "json"]);
        (run.code, serde_json::from_str(&run.out).unwrap())
    }
}

fn class<'a>(document: &'a Value, name: &str) -> &'a Value {
    let classes = document["classes"].as_array().unwrap();
    classes.iter().find(|class| class["class"] == name).unwrap()
}

#[test]
fn a_fleet_whose_nodes_all_conform_holds() {
    let lab = Lab::new();
    lab.all();
    for spec in [lab.root.join("out"), repository().join("fleets/lab")] {
        let run = lab.drift(&spec, &[]);
        let text = "\
lab: 10 of 10 nodes conform

  class            nodes  conform  fail  undecided  old  missing
  train                3        3     0          0    0        0
  train.missing-3      1        1     0          0    0        0
  slices.hpc           2        2     0          0    0        0
  slices.serve         2        2     0          0    0        0
  dev                  2        2     0          0    0        0
";
        assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, text, ""));
    }
}

#[test]
fn every_node_is_in_one_list_and_told_why() {
    let lab = Lab::new();
    lab.all();
    let reports = lab.root.join("reports");
    lab.put(
        "gpu03.json",
        &lab.report("gpu03", "train", |state| {
            state["gpus"]["value"].as_array_mut().unwrap().pop();
        }),
    );
    lab.put(
        "mig01.json",
        &lab.report("mig01", "slices.hpc", |state| {
            state["gpus"]["value"][2]["gpu_instances"] = json!({ "unknown": "no permission" });
        }),
    );
    std::fs::remove_file(reports.join("dev2.json")).unwrap();
    let old = std::fs::read_to_string(reports.join("gpu01.json")).unwrap();
    let mut old: Value = serde_json::from_str(&old).unwrap();
    old["class_sha256"] = json!("0".repeat(64));
    lab.put("gpu01.json", &old.to_string());
    // The exception is gone from the spec that the node has.
    let mut other = old.clone();
    (other["node"], other["class"]) = (json!("gpu02"), json!("train"));
    lab.put("gpu02.json", &other.to_string());
    other["node"] = json!("gone\u{1b}[2J");
    lab.put("gone.json", &other.to_string());
    lab.put(
        "again.jsonl",
        &format!(
            "{}\n\n{{\n",
            std::fs::read_to_string(reports.join("gpu04.json"))
                .map(|text| { serde_json::from_str::<Value>(&text).unwrap().to_string() })
                .unwrap()
        ),
    );
    lab.put("notes.txt", "no report");
    let (code, document) = lab.json();
    assert_eq!((code, &document["holds"]), (1, &json!(false)));
    let train = class(&document, "train");
    assert_eq!(train["failing"], "gpu03");
    assert_eq!(train["old"], "gpu01");
    assert_eq!(train["conforming"], "gpu04");
    assert_eq!(train["checks"]["gpu.count"], "gpu03");
    assert_eq!(
        class(&document, "train.missing-3")["old"],
        "gpu02",
        "it was judged by another class"
    );
    let slices = class(&document, "slices.hpc");
    assert_eq!((&slices["undecided"], &slices["conforming"]), (&json!("mig01"), &json!("mig02")));
    assert_eq!(slices["checks"]["mig.layout"], "mig01");
    assert_eq!(class(&document, "dev")["missing"], "dev2");
    assert_eq!(document["twice"], json!({ "count": 1, "first": ["gpu04"] }));
    assert_eq!(document["unknown"]["count"], 1);
    assert_eq!(document["unreadable"]["count"], 1);
    let place = document["unreadable"]["first"][0].as_str().unwrap();
    assert!(place.starts_with("again.jsonl:3: "), "{place}");

    let text = lab.drift(&lab.root.join("out"), &[]).out;
    for line in [
        "lab: 5 of 10 nodes conform",
        "  fails  train  gpu.count  1 node: gpu03",
        "  undecided  slices.hpc  mig.layout  1 node: mig01",
        "  old intent  train  1 node: gpu01",
        "  missing  dev  1 node: dev2",
        "reported twice: 1",
        "  gone\\u{1b}[2J (fleet lab, class train)",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn each_of_them_alone_is_a_drift() {
    let lab = Lab::new();
    lab.all();
    assert_eq!(lab.json().0, 0);
    let good = std::fs::read_to_string(lab.root.join("reports/gpu01.json")).unwrap();
    let with = |file: &str, text: &str| {
        lab.put(file, text);
        let code = lab.json().0;
        std::fs::remove_file(lab.root.join("reports").join(file)).unwrap();
        code
    };
    assert_eq!(with("x.json", &good.replace("\"gpu01\"", "\"gpu09\"")), 1);
    assert_eq!(with("x.json", &good), 1);
    assert_eq!(with("x.json", "{"), 1);
    assert_eq!(with("x.json", &good.replace("report/v1", "report/v0")), 1);
    assert_eq!(with("x.txt", "{"), 0);
    // A newer validator may say more.
    let more = good.replacen('{', "{\"more\": [1],", 1);
    lab.put("gpu01.json", &more);
    assert_eq!(lab.json().0, 0);
    lab.put("gpu01.json", &good.replace("\"fleet\": \"lab\"", "\"fleet\": \"other\""));
    assert_eq!(class(&lab.json().1, "train")["old"], "gpu01");
}

#[test]
fn without_a_folder_or_a_fleet_it_cannot_run() {
    let lab = Lab::new();
    assert_eq!(lab.drift(&lab.root.join("nothing"), &[]).code, 2);
    let run = run(&["drift", "/no/such/folder", "--spec", lab.root.join("out").as_str()]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("reading /no/such/folder"), "{}", run.err);
    assert_eq!(lab.json().0, 1, "without reports every node is missing");
}

#[test]
fn ten_thousand_reports_are_one_table() {
    let lab = Lab::new();
    let spec = lab.root.join("fleet.kdl");
    let head = std::fs::read_to_string(repository().join("fleets/lab/fleet.kdl")).unwrap();
    let text = head
        .replace("nodes=\"gpu[01-04]\"", "nodes=\"gpu[00001-09999]\"")
        .replace("nodes \"gpu[01-04]\"", "nodes \"gpu[00001-09999]\"")
        .replace("node=\"gpu02\"", "node=\"gpu00002\"");
    std::fs::write(&spec, text).unwrap();
    let out = lab.root.join("large");
    let compiled = run(&["compile", spec.as_str(), "-o", out.as_str()]);
    assert_eq!(compiled.code, 0, "{}{}", compiled.out, compiled.err);
    let manifest = std::fs::read_to_string(out.join("fleetc.manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let files = manifest["files"].as_array().unwrap();
    let digest = files.iter().find(|file| file["path"] == "fleet/intent/classes/train.json");
    let digest = digest.unwrap()["sha256"].as_str().unwrap();
    let mut lines = String::new();
    for node in (1..=9_999).filter(|node| *node != 2) {
        // Every other one fails, so that names do not fold.
        let (verdict, findings) = match node % 2 {
            0 => ("conforms", json!([])),
            _ => ("does_not_conform", json!([{ "check": "gpu.count", "severity": "blocking" }])),
        };
        let report = json!({ "schema": "fleetc/report/v1", "node": format!("gpu{node:05}"),
            "fleet": "lab", "class": "train", "class_sha256": digest, "verdict": verdict,
            "findings": findings });
        lines.push_str(&format!("{report}\n"));
    }
    lab.put("all.jsonl", &lines);
    let run = lab.drift(&out, &["--format", "json"]);
    let document: Value = serde_json::from_str(&run.out).unwrap();
    let train = class(&document, "train");
    let count =
        |list: &Value| list.as_str().unwrap().parse::<fleetc_schema::Hostlist>().unwrap().len();
    assert_eq!((count(&train["failing"]), count(&train["conforming"])), (5_000, 4_998));
    assert_eq!(train["missing"], "");
    let text = lab.drift(&out, &[]).out;
    let long = text.lines().find(|line| line.contains("5000 nodes: ")).unwrap();
    assert!(long.ends_with(",…") && long.chars().count() < 130, "{long}");
}
