//! Draining in Slurm, against a `scontrol` that keeps its nodes in files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use tempfile::TempDir;

use crate::fleet::{Run, check_with, snapshot, stage, write};

/// A file a node in `slurm/`: its state in the first line, its reason in the second. It prints lines as
/// scontrol(1) describes them, and refuses what it refuses. Every call is a line of `log`.
const SCONTROL: &str = r#"#!/bin/sh
dir=$(dirname "$0")
echo "$*" >> "$dir/log"
show() {
    [ -f "$dir/slurm/$1" ] || { echo "Node $1 not found" >&2; exit 1; }
    { read -r state; read -r reason; } < "$dir/slurm/$1"
    printf 'NodeName=%s Arch=x86_64 CPUTot=8 State=%s ThreadsPerCore=1 Comment=Reason=x' "$1" "$state"
    [ -z "$reason" ] || printf ' Reason=%s [root@2026-11-30T00:00:00]' "$reason"
    echo
}
case "$1 $2 $3" in
"--oneliner show node")
    if [ $# -eq 4 ]; then show "$4"; else for file in "$dir"/slurm/*; do show "$(basename "$file")"; done; fi
    ;;
"update NodeName="*" State=DRAIN")
    case "$4" in Reason=?*) ;; *) echo "You must specify a reason" >&2; exit 1 ;; esac
    [ ! -f "$dir/refuses" ] || { cat "$dir/refuses" >&2; exit 1; }
    printf 'IDLE+DRAIN\n%s\n' "${4#Reason=}" > "$dir/slurm/${2#NodeName=}"
    [ ! -f "$dir/meanwhile" ] || cp "$dir"/meanwhile.d/* "$dir/slurm/"
    ;;
"update NodeName="*" State=UNDRAIN")
    printf 'IDLE\n\n' > "$dir/slurm/${2#NodeName=}"
    ;;
*)
    echo "invalid: $*" >&2
    exit 1
    ;;
esac
"#;

const OURS: &str = "fleetc: gpu.count: has 2";

/// A node that lacks a MIG instance, or does not, in a cluster with these nodes beside it.
fn cluster(conforms: bool, nodes: &[(&str, &str, &str)]) -> TempDir {
    let (dir, mut node) = (stage(), snapshot());
    if !conforms {
        node["state"]["gpus"]["value"][1]["gpu_instances"]["value"].as_array_mut().unwrap().pop();
        node["state"]["gpus"]["value"][1]["mig_devices"]["value"].as_array_mut().unwrap().pop();
    }
    write(dir.path(), "node.json", &node.to_string());
    write(dir.path(), "scontrol", SCONTROL);
    let program = dir.path().join("scontrol");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(dir.path().join("slurm")).unwrap();
    for (name, state, reason) in nodes {
        set(&dir, name, state, reason);
    }
    dir
}

fn set(dir: &TempDir, node: &str, state: &str, reason: &str) {
    write(dir.path(), &format!("slurm/{node}"), &format!("{state}\n{reason}\n"));
}

fn run(dir: &TempDir, max: &str) -> Run {
    let program = dir.path().join("scontrol");
    let drain = ["--drain-slurm", "--max-drained", max, "--scontrol", program.to_str().unwrap()];
    check_with(dir, &[&["--node", "mig01", "--exit-style", "slurm-health"][..], &drain].concat())
}

/// State and reason of the node.
fn now(dir: &TempDir) -> (String, String) {
    let text = fs::read_to_string(dir.path().join("slurm/mig01")).unwrap();
    let mut lines = text.lines().map(str::to_owned);
    (lines.next().unwrap(), lines.next().unwrap_or_default())
}

fn calls(dir: &TempDir) -> usize {
    fs::read_to_string(dir.path().join("log")).map_or(0, |log| log.lines().count())
}

#[test]
fn a_node_is_drained_once_and_given_back_when_it_conforms() {
    let dir = cluster(false, &[("mig01", "IDLE", ""), ("gpu01", "IDLE", "")]);
    let first = run(&dir, "2");
    assert_eq!(first.code, 1);
    assert!(first.err.contains("mig01 is drained"), "{}", first.err);
    let reason = "fleetc: mig.layout GPU 1: has 6 x 1g.10gb (at 0-5), wants 7 x 1g.10gb (at 0-6)";
    assert_eq!(now(&dir), ("IDLE+DRAIN".to_owned(), reason.to_owned()));
    let before = calls(&dir);
    let second = run(&dir, "2");
    assert_eq!((second.err.as_str(), calls(&dir) - before), ("", 1), "nothing is said anew");
    write(dir.path(), "node.json", &snapshot().to_string());
    let third = run(&dir, "2");
    assert!(third.err.contains("mig01 conforms again"), "{}", third.err);
    assert_eq!((third.code, now(&dir).0.as_str()), (0, "IDLE"));
    let before = calls(&dir);
    run(&dir, "2");
    assert_eq!(calls(&dir) - before, 1, "a good node costs one question");
}

#[test]
fn another_finding_is_another_reason() {
    let dir = cluster(false, &[("mig01", "IDLE+DRAIN", OURS)]);
    assert!(run(&dir, "0").err.contains("stays drained for another reason"));
    assert!(now(&dir).1.starts_with("fleetc: mig.layout GPU 1"), "{:?}", now(&dir));
}

#[test]
fn a_reason_that_is_not_ours_is_left_alone() {
    for (state, reason) in [
        ("IDLE+DRAIN", "fan 3, ticket 4411"),
        ("DOWN", "Node unexpectedly rebooted"),
        ("IDLE+DRAIN", "Not responding"),
        ("MIXED+DRAIN", "not fleetc: x"),
    ] {
        let bad = cluster(false, &[("mig01", state, reason)]);
        let run_bad = run(&bad, "9");
        assert!(run_bad.err.contains("which is not ours"), "{}", run_bad.err);
        assert_eq!((run_bad.code, now(&bad)), (1, (state.to_owned(), reason.to_owned())));
        let good = cluster(true, &[("mig01", state, reason)]);
        assert_eq!(run(&good, "9").code, 0);
        assert_eq!(now(&good), (state.to_owned(), reason.to_owned()), "only ours are given back");
    }
}

#[test]
fn a_reason_that_holds_nothing_keeps_no_bad_node_in_service() {
    // Left over from a drain that is over, and slurmctld's own for a node that boots.
    for (state, reason) in [("IDLE", "fan 3, ticket 4411"), ("DOWN*", "Not responding")] {
        let bad = cluster(false, &[("mig01", state, reason)]);
        assert!(run(&bad, "9").err.contains("mig01 is drained"), "{state} {reason}");
        assert!(now(&bad).1.starts_with("fleetc: mig.layout"), "{:?}", now(&bad));
    }
}

#[test]
fn no_more_nodes_are_drained_than_allowed() {
    let others = [
        ("mig01", "IDLE", ""),
        ("gpu01", "IDLE+DRAIN", OURS),
        ("gpu02", "DOWN+DRAIN", OURS),
        ("gpu03", "IDLE+DRAIN", "fan 3"),
        ("gpu04", "IDLE", OURS),
    ];
    let dir = cluster(false, &others);
    let full = run(&dir, "2");
    assert!(full.err.contains("2 nodes are drained with our reason"), "{}", full.err);
    assert_eq!((full.code, now(&dir).0.as_str()), (1, "IDLE"));
    assert!(run(&dir, "3").err.contains("mig01 is drained"));
    assert_eq!(now(&dir).0, "IDLE+DRAIN");
}

#[test]
fn nodes_that_fail_together_do_not_pass_the_limit_together() {
    let dir = cluster(false, &[("mig01", "IDLE", ""), ("gpu01", "IDLE", ""), ("zzz", "IDLE", "")]);
    // While this node is drained, another one is.
    let meanwhile = |name: &str| {
        let _ = fs::remove_dir_all(dir.path().join("meanwhile.d"));
        fs::create_dir(dir.path().join("meanwhile.d")).unwrap();
        write(dir.path(), &format!("meanwhile.d/{name}"), &format!("IDLE+DRAIN\n{OURS}\n"));
        write(dir.path(), "meanwhile", "");
    };
    meanwhile("gpu01");
    let late = run(&dir, "1");
    assert!(late.err.contains("others were drained at the same time"), "{}", late.err);
    assert_eq!(now(&dir).0, "IDLE");
    set(&dir, "gpu01", "IDLE", "");
    meanwhile("zzz");
    assert!(run(&dir, "1").err.contains("mig01 is drained"), "the first by name stays");
    assert_eq!(now(&dir).0, "IDLE+DRAIN");
}

#[test]
fn what_is_not_known_drains_nothing_and_gives_nothing_back() {
    let dir = cluster(true, &[("mig01", "IDLE+DRAIN", OURS)]);
    let mut node = snapshot();
    node["state"]["gpus"] = json!({ "unknown": "NVML does not answer" });
    write(dir.path(), "node.json", &node.to_string());
    run(&dir, "9");
    write(dir.path(), "node.json", "{");
    run(&dir, "9");
    assert_eq!((calls(&dir), now(&dir).1.as_str()), (0, OURS));
}

#[test]
fn what_scontrol_refuses_is_said_and_changes_no_verdict() {
    let dir = cluster(false, &[("mig01", "IDLE", "")]);
    write(dir.path(), "refuses", "slurm_update error: Invalid user id\n");
    let refused = run(&dir, "9");
    assert!(refused.err.contains("not drained: "), "{}", refused.err);
    assert!(refused.err.contains("Invalid user id"), "{}", refused.err);
    assert_eq!((refused.code, now(&dir).0.as_str()), (1, "IDLE"));
    fs::remove_file(dir.path().join("slurm/mig01")).unwrap();
    assert!(run(&dir, "9").err.contains("Node mig01 not found"), "the controller knows it later");
    fs::remove_file(dir.path().join("scontrol")).unwrap();
    let missing = run(&dir, "9");
    assert!(missing.err.contains("not drained: "), "{}", missing.err);
    assert_eq!(missing.code, 1);
}

#[test]
fn draining_wants_its_limit() {
    let usage = check_with(&stage(), &["--node", "mig01", "--drain-slurm"]);
    assert_eq!(usage.code, fleetc_validate::cli::EXIT_USAGE);
    assert!(usage.err.contains("--max-drained"), "{}", usage.err);
}
