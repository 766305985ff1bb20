//! The story of the README: one edit to a fleet shows up everywhere that must agree.
//!
//! In pool `slices`, which both clusters share, GPUs 4-7 go from 2 × 3g.40gb to 1 × 3g.40gb + 4 ×
//! 1g.10gb, and the quotas follow. Per node that is 28 + 16 = 44 of 1g.10gb and 4 of 3g.40gb.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::ffi::OsString;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_tests::{Texts, folder, repository, snapshot};
use serde_json::Value;

const EDITS: [(&str, &str); 4] = [
    (
        "gpus \"4-7\" { slice \"3g.40gb\" count=2 }",
        "gpus \"4-7\" { slice \"3g.40gb\" count=1; slice \"1g.10gb\" count=4 }",
    ),
    (
        "quota \"slices\" cluster=\"hpc\" slice=\"1g.10gb\" guaranteed=42",
        "quota \"slices\" cluster=\"hpc\" slice=\"1g.10gb\" guaranteed=74",
    ),
    (
        "quota \"slices\" cluster=\"serve\" slice=\"1g.10gb\" guaranteed=42",
        "quota \"slices\" cluster=\"serve\" slice=\"1g.10gb\" guaranteed=74",
    ),
    (
        "quota \"slices\" cluster=\"serve\" slice=\"3g.40gb\" guaranteed=8",
        "quota \"slices\" cluster=\"serve\" slice=\"3g.40gb\" guaranteed=4",
    ),
];

struct Story {
    dir: tempfile::TempDir,
    before: Texts,
    after: Texts,
    spec_line: usize,
}

fn run(args: &[&str]) -> (u8, String) {
    let args = std::iter::once("fleetc").chain(args.iter().copied()).map(OsString::from);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = fleetc::cli::run(args, &mut out, &mut err);
    (code, String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap())
}

fn story() -> Story {
    let dir = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::try_from(dir.path().to_owned()).unwrap();
    let old = std::fs::read_to_string(repository().join("fleets/lab/fleet.kdl")).unwrap();
    let mut new = old.clone();
    for (from, to) in EDITS {
        assert_eq!(new.matches(from).count(), 1, "{from}");
        new = new.replace(from, to);
    }
    let spec_line = new.lines().position(|line| line.contains("gpus \"4-7\"")).unwrap() + 1;
    for (name, text) in [("before", &old), ("after", &new)] {
        let spec = root.join(name);
        std::fs::create_dir(&spec).unwrap();
        std::fs::write(spec.join("fleet.kdl"), text).unwrap();
        let out = root.join(format!("out-{name}"));
        let (code, text) = run(&["compile", spec.as_str(), "-o", out.as_str()]);
        assert_eq!(code, 0, "{text}");
    }
    let tree = |name: &str| folder(&root.join(name)).unwrap();
    let (before, after) = (tree("out-before"), tree("out-after"));
    Story { dir, before, after, spec_line }
}

impl Story {
    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.dir.path()).unwrap().join(name)
    }

    /// A line of a file that was there before and is otherwise after.
    fn line_changes(&self, file: &str, from: &str, to: &str) {
        let has = |tree: &Texts, text: &str| tree[file].contains(text);
        assert!(has(&self.before, from) && !has(&self.after, from), "{file}: {from}");
        assert!(has(&self.after, to) && !has(&self.before, to), "{file}: {to}");
    }
}

#[test]
fn the_numbers_change_in_every_file_that_has_them() {
    let story = story();
    story.line_changes(
        "clusters/hpc/slurm/slurm.conf",
        "Gres=gpu:1g.10gb:28,gpu:3g.40gb:8\n",
        "Gres=gpu:1g.10gb:44,gpu:3g.40gb:4\n",
    );
    for cluster in ["hpc", "serve"] {
        story.line_changes(
            &format!("clusters/{cluster}/mig/mig-parted.yaml"),
            "\"3g.40gb\": 2\n",
            "\"3g.40gb\": 1\n        \"1g.10gb\": 4\n",
        );
        let rules = match cluster {
            "hpc" => "clusters/hpc/monitoring/rules.yaml",
            _ => {
                "clusters/serve/kubernetes/80-monitoring/prometheusrule-fleetc-serve-expected.yaml"
            }
        };
        story.line_changes(rules, "vector(28)", "vector(44)");
        let class = format!("clusters/{cluster}/intent/classes/slices.{cluster}.json");
        let advertised = |tree: &Texts| {
            let document: Value = serde_json::from_str(&tree[&class]).unwrap();
            let advertised = &document["class"]["advertised"];
            (advertised["gres"].to_string(), advertised["resources"].to_string())
        };
        let gres = |small, large| match cluster {
            "hpc" => format!(
                "[{{\"name\":\"gpu\",\"type\":\"1g.10gb\",\"count\":{small}}},\
                 {{\"name\":\"gpu\",\"type\":\"3g.40gb\",\"count\":{large}}}]"
            ),
            _ => "[]".to_owned(),
        };
        let resources = |small, large| match cluster {
            "serve" => {
                format!("{{\"nvidia.com/mig-1g.10gb\":{small},\"nvidia.com/mig-3g.40gb\":{large}}}")
            }
            _ => "{}".to_owned(),
        };
        assert_eq!(advertised(&story.before), (gres(28, 8), resources(28, 8)));
        assert_eq!(advertised(&story.after), (gres(44, 4), resources(44, 4)));
    }
    story.line_changes(
        "clusters/hpc/mig/fleetc-mig.sh",
        "gpu 7 on 9:0:3g.40gb 9:4:3g.40gb\n",
        "gpu 7 on 9:4:3g.40gb 19:0:1g.10gb 19:1:1g.10gb 19:2:1g.10gb 19:3:1g.10gb\n",
    );
    story.line_changes(
        "clusters/hpc/slurm/accounting.sh",
        "GrpTRES=gres/gpu=42,gres/gpu:h100=-1,gres/gpu:1g.10gb=42,gres/gpu:3g.40gb=0 ",
        "GrpTRES=gres/gpu=74,gres/gpu:h100=-1,gres/gpu:1g.10gb=74,gres/gpu:3g.40gb=0 ",
    );
    story.line_changes(
        "clusters/serve/kubernetes/70-quotas/resourcequota-product.yaml",
        "requests.nvidia.com/mig-1g.10gb: \"42\"\n    requests.nvidia.com/mig-3g.40gb: \"8\"\n",
        "requests.nvidia.com/mig-1g.10gb: \"74\"\n    requests.nvidia.com/mig-3g.40gb: \"4\"\n",
    );
}

#[test]
fn files_that_do_not_count_slices_stay_as_they_are() {
    let story = story();
    let changed: Vec<&str> = story
        .after
        .iter()
        .filter(|(path, text)| story.before.get(*path) != Some(*text))
        .map(|(path, _)| path.as_str())
        .collect();
    assert_eq!(
        changed,
        [
            "clusters/hpc/intent/classes/slices.hpc.json",
            "clusters/hpc/intent/index.json",
            "clusters/hpc/mig/fleetc-mig.sh",
            "clusters/hpc/mig/mig-parted.yaml",
            "clusters/hpc/monitoring/rules.test.yaml",
            "clusters/hpc/monitoring/rules.yaml",
            "clusters/hpc/slurm/accounting.sh",
            "clusters/hpc/slurm/slurm.conf",
            "clusters/serve/intent/classes/slices.serve.json",
            "clusters/serve/intent/index.json",
            "clusters/serve/kubernetes/30-nodes/configmap-fleetc-mig-parted.yaml",
            "clusters/serve/kubernetes/40-operator/configmap-fleetc-intent.yaml",
            "clusters/serve/kubernetes/70-quotas/resourcequota-product.yaml",
            "clusters/serve/kubernetes/80-monitoring/prometheusrule-fleetc-serve-expected.yaml",
            "clusters/serve/mig/mig-parted.yaml",
            "clusters/serve/monitoring/rules.test.yaml",
            "fleet/intent/classes/slices.hpc.json",
            "fleet/intent/classes/slices.serve.json",
            "fleet/intent/fleet.json",
            "fleet/intent/index.json",
            "fleet/intent/sources.jsonl",
            "fleetc.manifest.json",
        ]
    );
    // slurmd finds the instances through NVML, and so does the device plugin.
    for file in [
        "clusters/hpc/slurm/gres.conf",
        "clusters/serve/kubernetes/30-nodes/configmap-fleetc-device-plugin.yaml",
    ] {
        assert_eq!(story.before[file], story.after[file], "{file}");
    }
}

#[test]
fn the_plan_says_which_nodes_drain_in_which_scheduler() {
    let story = story();
    let (old, new) = (story.path("out-before"), story.path("after"));
    let (code, json) = run(&["diff", old.as_str(), new.as_str(), "--format", "json"]);
    assert_eq!(code, 0, "a difference is no failure");
    let plan: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(plan["schema"], "fleetc/plan/v1");
    assert_eq!(plan["nodes"], "mig[01-04]");
    let changes = plan["changes"].as_array().unwrap();
    let items: Vec<&str> = changes.iter().map(|change| change["item"].as_str().unwrap()).collect();
    assert_eq!(
        items,
        [
            "pool/slices/sharing/gpus[4-7]",
            "team/research/quota[slices,hpc,1g.10gb]",
            "team/product/quota[slices,serve,1g.10gb]",
            "team/product/quota[slices,serve,3g.40gb]",
        ]
    );
    let layout = &changes[0];
    assert_eq!(layout["old"], "2 × 3g.40gb");
    assert_eq!(layout["new"], "1 × 3g.40gb + 4 × 1g.10gb");
    let effects: Vec<(&str, &str, &str, &str)> = layout["effects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|effect| {
            let text = |key: &str| effect[key].as_str().unwrap();
            (text("cluster"), text("scheduler"), text("disruption"), text("nodes"))
        })
        .collect();
    assert_eq!(
        effects,
        [("hpc", "Slurm", "drain", "mig[01-02]"), ("serve", "Kubernetes", "drain", "mig[03-04]")]
    );
    for quota in &changes[1..] {
        assert_eq!(quota["disruption"], "reload");
        assert_eq!(quota["instances"], Value::Array(Vec::new()));
    }
    // The 3g goes to slice 4 where one stands, and the 1g below it take the place of the other; the
    // MIG manager clears the GPU first.
    let ways = layout["instances"].as_array().unwrap();
    let at: Vec<(&str, &str)> = ways
        .iter()
        .map(|way| (way["gpus"].as_str().unwrap(), way["nodes"].as_str().unwrap()))
        .collect();
    assert_eq!(at, [("4-7", "mig[01-02]"), ("4-7", "mig[03-04]")]);
    let starts = |way: usize, what: &str| -> Vec<(String, u64)> {
        let all = ways[way][what].as_array().unwrap().iter();
        let one = |i: &Value| (i["profile"].as_str().unwrap().into(), i["start"].as_u64().unwrap());
        all.map(one).collect()
    };
    let three_g = |start| ("3g.40gb".to_owned(), start);
    let one_g = [0, 1, 2, 3].map(|start| ("1g.10gb".to_owned(), start));
    assert_eq!(starts(0, "keep"), [three_g(4)]);
    assert_eq!(starts(0, "destroy"), [three_g(0)]);
    assert_eq!(starts(0, "create"), one_g);
    assert!(starts(1, "keep").is_empty());
    assert_eq!(starts(1, "destroy"), [three_g(0), three_g(4)]);
    assert_eq!(starts(1, "create").len(), 5);

    let (code, text) = run(&["diff", old.as_str(), new.as_str()]);
    assert_eq!(code, 0);
    assert!(text.starts_with("lab: 4 changes · 4 nodes drain: mig[01-04]\n"), "{text}");
    let survivors = "    GPUs 4-7 of mig[01-02]: 3g.40gb at 4 stays; 3g.40gb at 0 goes; \
                     4 × 1g.10gb at 0,1,2,3 come\n    \
                     GPUs 4-7 of mig[03-04]: 2 × 3g.40gb at 0,4 go; \
                     4 × 1g.10gb at 0,1,2,3 come; 3g.40gb at 4 comes\n";
    assert!(text.contains(survivors), "{text}");
    let typed = text.find("MIG layout of GPUs 4-7").unwrap();
    let unified = text.find("+++ new/clusters/hpc/slurm/slurm.conf").unwrap();
    assert!(typed < unified, "what it does to the fleet stands before the text");
    let (code, _) = run(&["diff", old.as_str(), new.as_str(), "--exit-code"]);
    assert_eq!(code, 1);
    let (code, text) = run(&["diff", old.as_str(), story.path("before").as_str(), "--exit-code"]);
    assert_eq!((code, text.as_str()), (0, "lab: no change\n"));
}

#[test]
fn a_node_with_the_old_layout_is_refused_at_the_line_of_the_spec() {
    let story = story();
    let class = |tree: &Texts, name: &str| -> fleetc_schema::intent::NodeClass {
        let document: fleetc_schema::intent::ClassDocument<'_> =
            serde_json::from_str(&tree[name]).unwrap();
        document.class.into_owned()
    };
    for (node, name) in [("mig01", "slices.hpc"), ("mig03", "slices.serve")] {
        let old = class(&story.before, &format!("fleet/intent/classes/{name}.json"));
        let new = class(&story.after, &format!("fleet/intent/classes/{name}.json"));
        let validate = |state: &fleetc_schema::intent::NodeClass, tree: &str| {
            let file = story.path("node.json");
            std::fs::write(&file, snapshot::conforming(node, state).to_string()).unwrap();
            let intent = story.path(tree).join("fleet/intent");
            let source = format!("snapshot:{file}");
            let args = ["fleetc-validate", "check", "--intent", intent.as_str(), "--node", node];
            let args = args.iter().copied().chain(["--source", &source]).map(OsString::from);
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let env = fleetc_validate::cli::Environment::default();
            let code = fleetc_validate::cli::run(args, env, &mut out, &mut err);
            (code, String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap())
        };
        assert_eq!(validate(&old, "out-before").0, 0, "the old layout is what the old spec says");
        assert_eq!(validate(&new, "out-after").0, 0, "the new layout is what the new spec says");
        let (code, text) = validate(&old, "out-after");
        assert_eq!(code, 1, "{text}");
        let first = text.lines().next().unwrap();
        assert_eq!(first, format!("{node}: does not conform to lab (class {name})"));
        let line = format!("fleet.kdl:{}", story.spec_line);
        assert_eq!(text.matches(&line).count(), 4, "GPUs 4 to 7, each at {line}:\n{text}");
    }
}
