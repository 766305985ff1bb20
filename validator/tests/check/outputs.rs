//! The report in the forms of other programs, and their exit codes.

use std::fs;

use fleetc_validate::cli::{EXIT_INPUT, EXIT_USAGE, Environment};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fleet::{Run, run, snapshot, stage, write};

/// Conforms; has a warning; lacks an instance; cannot be read; is of another node.
const NODES: [&str; 5] = ["good", "warned", "bad", "unread", "foreign"];

/// A node in one of these states.
fn node(name: &str) -> TempDir {
    let (dir, mut node) = (stage(), snapshot());
    let gpus = &mut node["state"]["gpus"]["value"];
    match name {
        "warned" => gpus[0]["device_id"] = json!({ "value": "0x2339" }),
        "bad" => {
            gpus[1]["gpu_instances"]["value"].as_array_mut().unwrap().pop();
            gpus[1]["mig_devices"]["value"].as_array_mut().unwrap().pop();
            gpus[2]["memory_mib"] = json!({ "value": 40_000 });
            gpus[2]["name"] = json!({ "value": "a \"b\" <c> & d\u{1b}|\n\\" });
        }
        "unread" => node["state"]["gpus"] = json!({ "unknown": "NVML does not answer" }),
        "foreign" => node["node"] = json!("mig02"),
        _ => {}
    }
    write(dir.path(), "node.json", &node.to_string());
    dir
}

fn check(name: &str, more: &[&str]) -> Run {
    check_in(&node(name), more)
}

fn check_in(dir: &TempDir, more: &[&str]) -> Run {
    let intent = dir.path().join("intent");
    let source = format!("snapshot:{}", dir.path().join("node.json").display());
    let args = ["check", "--intent", intent.to_str().unwrap(), "--source", &source];
    let env = Environment { now: Some(1_796_000_000), ..Environment::default() };
    run(&[&args[..], &["--node", "mig01"], more].concat(), env)
}

#[test]
fn exit_codes_by_style() {
    let codes = |more: &[&str]| NODES.map(|name| check(name, more).code);
    assert_eq!(codes(&[]), [0, 0, 1, 2, EXIT_INPUT]);
    assert_eq!(codes(&["--exit-style", "npd"]), [0, 0, 1, 2, 2]);
    assert_eq!(codes(&["--exit-style", "nagios"]), [0, 0, 2, 3, 3]);
    assert_eq!(codes(&["--exit-style", "nagios", "--warn"]), [0, 1, 2, 3, 3]);
    // What is not known must not drain a fleet.
    assert_eq!(codes(&["--exit-style", "prolog"]), [0, 0, 1, 0, 0]);
    assert_eq!(codes(&["--exit-style", "prolog", "--strict"]), [0, 0, 1, 1, 0]);
    assert_eq!(codes(&["--exit-style", "slurm-health"]), [0, 0, 1, 1, 1]);
    let usage = |style| run(&["check", "--exit-style", style, "--nope"], Environment::default());
    assert_eq!(usage("prolog").code, 0);
    assert_eq!(usage("npd").code, 2);
    assert_eq!(usage("native").code, EXIT_USAGE);
    assert!(usage("prolog").err.contains("--nope"));
}

#[test]
fn other_programs_get_one_line_that_they_do_not_cut() {
    for name in NODES {
        for (style, most) in [("npd", 80), ("nagios", 300), ("prolog", 200), ("slurm-health", 200)]
        {
            let run = check(name, &["--exit-style", style]);
            assert_eq!(run.out.lines().count(), 1, "{name} {style}: {}", run.out);
            let line = run.out.strip_suffix('\n').unwrap();
            assert!(line.len() <= most, "{name} {style}: {line}");
            assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{name}: {line}");
            assert!(!line.is_empty());
        }
    }
    let line = |name, style| check(name, &["--exit-style", style]).out;
    assert_eq!(line("good", "npd"), "conforms to lab, class slices.hpc\n");
    assert_eq!(
        line("bad", "npd"),
        "gpu.model GPU 2 (+1): has a 'b' <c> & d\\u{1b}|\\u{a}\\ (PCI device id 0x2330, 4...\n"
    );
    assert!(line("unread", "npd").starts_with("undecided: gpu.count: NVML unknown: NVML does not"));
    let report = check("good", &["--format", "json"]).out;
    let report: Value = serde_json::from_str(&report).unwrap();
    let passed = report["passed"].as_u64().unwrap();
    assert!(passed > 0);
    let conforms = "OK - conforms to lab, class slices.hpc | blocking=0 warning=0 undecided=0";
    assert_eq!(line("good", "nagios"), format!("{conforms} passed={passed}\n"));
    let bad = line("bad", "nagios");
    assert_eq!(bad.matches('|').count(), 1, "what follows the bar is data: {bad}");
    assert!(bad.starts_with("CRITICAL - gpu.model GPU 2 (+1): has a 'b' <c> & d"), "{bad}");
    assert!(line("foreign", "nagios").starts_with("UNKNOWN - "));
    let text = check("good", &["--exit-style", "npd", "--format", "text"]).out;
    assert!(text.contains(&format!("✓ {passed} checks passed")), "{text}");
}

#[test]
fn metrics_have_one_series_a_check_and_gpu() {
    let metrics = check("bad", &["--format", "prometheus"]).out;
    let value = |series: &str| {
        let mut lines = metrics.lines().filter_map(|line| line.rsplit_once(' '));
        lines.find(|(name, _)| *name == series).map(|(_, value)| value.to_owned())
    };
    let at = |series: &str| value(&format!("fleetc_validate_{series}"));
    assert_eq!(at(r#"verdict{verdict="does_not_conform"}"#).as_deref(), Some("1"));
    assert_eq!(at(r#"verdict{verdict="conforms"}"#).as_deref(), Some("0"));
    assert_eq!(at(r#"verdict{verdict="error"}"#).as_deref(), Some("0"));
    assert_eq!(at(r#"findings{severity="blocking"}"#).as_deref(), Some("2"));
    let finding = |check: &str, gpu: &str| {
        at(&format!(r#"finding{{check="{check}",severity="blocking",gpu="{gpu}"}}"#))
    };
    assert_eq!(finding("mig.layout", "00000000:43:00.0").as_deref(), Some("1"));
    assert_eq!(finding("gpu.model", "00000000:52:00.0").as_deref(), Some("1"));
    assert_eq!(at("last_run_timestamp_seconds").as_deref(), Some("1796000000"));
    assert!(!metrics.contains("<c>"), "no text that was read is in a label: {metrics}");
    for name in NODES {
        let metrics = check(name, &["--format", "prometheus"]).out;
        let series = metrics.lines().filter(|line| !line.starts_with('#'));
        let mut series: Vec<&str> = series.map(|line| line.rsplit_once(' ').unwrap().0).collect();
        let all = series.len();
        series.sort_unstable();
        series.dedup();
        assert_eq!(series.len(), all, "a series stands twice: {metrics}");
        assert_eq!(metrics.matches(r#"verdict=""#).count(), 4);
    }
}

#[test]
fn a_textfile_is_replaced_whole_and_says_when_there_is_no_report() {
    let (dir, foreign) = (node("good"), node("foreign"));
    let file = dir.path().join("fleetc.prom");
    let more = ["--textfile", file.to_str().unwrap()];
    let run = check_in(&dir, &more);
    assert!(run.out.starts_with("mig01: conforms to lab"), "stdout stays a report: {}", run.out);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("fleetc_validate_verdict{verdict=\"conforms\"} 1\n"), "{text}");
    assert_eq!(check_in(&foreign, &more).code, EXIT_INPUT);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("fleetc_validate_verdict{verdict=\"error\"} 1\n"), "{text}");
    assert!(!text.contains("intent_info"), "nothing of the run before is left: {text}");
    let others = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(others.into_iter().all(|name| name != "fleetc.prom.new"));
    // A verdict that does not arrive is not one that conforms.
    let run = check_in(&dir, &["--textfile", "/no/such/folder/x.prom"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("writing /no/such/folder/x.prom"), "{}", run.err);
}

#[test]
fn junit_has_a_test_case_for_each_finding() {
    let xml = check("bad", &["--format", "junit"]).out;
    let counts = r#"tests="3" failures="2" errors="0" skipped="0""#;
    assert!(xml.contains(&format!("<testsuites name=\"lab\" {counts}>")), "{xml}");
    assert_eq!(xml.matches("<testcase ").count(), 3);
    assert_eq!(xml.matches("<failure ").count(), 2);
    let case = "<testcase classname=\"mig.layout\" name=\"GPU 00000000:43:00.0\">";
    assert!(xml.contains(case), "{xml}");
    assert!(xml.contains("has a &quot;b&quot; &lt;c&gt; &amp; d|&#10;\\ (PCI"), "{xml}");
    assert!(xml.contains("spec: lab/fleet.kdl:33&#10;do: nvidia-smi mig -i"), "{xml}");
    let xml = check("unread", &["--format", "junit"]).out;
    assert!(
        xml.contains("<error type=\"undecided\" message=\"wants 3 GPUs; NVML unknown"),
        "{xml}"
    );
    assert!(check("warned", &["--format", "junit"]).out.contains("<skipped message="));
    let xml = check("good", &["--format", "junit"]).out;
    assert!(xml.contains(r#"tests="1" failures="0" errors="0" skipped="0""#), "{xml}");
}

#[test]
fn a_condition_is_a_patch_and_keeps_the_time_of_its_transition() {
    let dir = node("bad");
    let condition = |dir: &TempDir, more: &[&str]| {
        let run = check_in(dir, &[&["--output", "k8s-condition"][..], more].concat());
        let patch: Value = serde_json::from_str(&run.out).unwrap();
        patch["status"]["conditions"][0].clone()
    };
    let fresh = condition(&dir, &[]);
    assert_eq!(fresh["type"], "fleetc.dev/GPUConforms");
    assert_eq!((&fresh["status"], &fresh["reason"]), (&json!("False"), &json!("DoesNotConform")));
    assert_eq!(fresh["lastHeartbeatTime"], "2026-11-30T00:53:20Z");
    assert_eq!(fresh["lastTransitionTime"], fresh["lastHeartbeatTime"]);
    let with_before = |dir: &TempDir, status: &str| {
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": "x" });
        let ours = json!({ "type": "fleetc.dev/GPUConforms", "status": status,
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let node = json!({ "kind": "Node", "status": { "conditions": [ready, ours] } });
        write(dir.path(), "before.json", &node.to_string());
        let file = dir.path().join("before.json");
        condition(dir, &["--previous", file.to_str().unwrap()])["lastTransitionTime"].clone()
    };
    assert_eq!(with_before(&dir, "False"), "2026-01-01T00:00:00Z");
    assert_eq!(with_before(&dir, "True"), "2026-11-30T00:53:20Z");
    let status = |name| {
        let condition = condition(&node(name), &[]);
        (condition["status"].clone(), condition["reason"].clone())
    };
    assert_eq!(status("good"), (json!("True"), json!("Conforms")));
    assert_eq!(status("unread"), (json!("Unknown"), json!("Undecided")));
    assert_eq!(status("foreign"), (json!("Unknown"), json!("NotChecked")));
    write(dir.path(), "before.json", "{");
    let file = dir.path().join("before.json");
    let more = ["--format", "k8s-condition", "--previous", file.to_str().unwrap()];
    assert_eq!(check_in(&dir, &more).code, EXIT_INPUT);
}
