//! What was read before, from run to run: growth is told, and a history of no use costs no verdict.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::stage::{Run, Stage, stage};

fn check(stage: &Stage, flag: &str, file: &str) -> Run {
    let (intent, file) = (stage.path("intent"), stage.path(file));
    let args = ["check", "--format", "json", "--intent", intent.to_str().unwrap()];
    stage.live(&[&args[..], &[flag, file.to_str().unwrap()]].concat())
}

fn kept(stage: &Stage) -> Value {
    serde_json::from_slice(&fs::read(stage.path("state/history.json")).unwrap()).unwrap()
}

const HISTORY: &str = "state/history.json";

#[test]
fn growth_since_an_earlier_run_is_told_until_a_day_has_gone() {
    let mut stage = stage("h100-sxm5-80gb", 2, &[]);
    let first = check(&stage, "--history", HISTORY);
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    let before = kept(&stage);
    assert_eq!(before["node"], "n1");
    assert_eq!(before["states"].as_array().unwrap().len(), 1);

    stage.node.gpus[1].remapped_rows = Some([1, 4, 0, 0]);
    for _ in 0..2 {
        let run = check(&stage, "--history", HISTORY);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        assert_eq!(run.seen("remap.growth"), ["5 remapped rows"]);
        assert!(run.out.contains("0 remapped rows, as 1 min ago"), "{}", run.out);
    }
    assert_eq!(kept(&stage), before, "what was read a minute ago says nothing of a day");
    let files = fs::read_dir(stage.path("state")).unwrap().count();
    assert_eq!(files, 1, "no other file is left");

    // The same, a day and two later.
    for (days, when) in [(1, "24 h"), (2, "2 days")] {
        age(&stage, days);
        let run = check(&stage, "--history", HISTORY);
        assert!(run.out.contains(&format!("as {when} ago")), "{}", run.out);
        assert_eq!(kept(&stage)["states"].as_array().unwrap().len(), 2);
    }
    let run = check(&stage, "--history", HISTORY);
    assert_eq!(run.seen("remap.growth"), [""; 0], "the growth is more than two days old");
}

/// Makes what is kept a day older, but leaves what was added since where it is.
fn age(stage: &Stage, days: u64) {
    let mut history = kept(stage);
    let oldest = &mut history["states"][0]["host"]["time"]["value"];
    *oldest = (oldest.as_u64().unwrap() - 24 * 3600).into();
    if days > 1 {
        let second = &mut history["states"][1]["host"]["time"]["value"];
        *second = (second.as_u64().unwrap() - 24 * 3600).into();
    }
    fs::write(stage.path(HISTORY), history.to_string()).unwrap();
}

#[test]
fn a_history_of_no_use_is_told_and_made_anew() {
    let stage = stage("h100-sxm5-80gb", 1, &[]);
    assert_eq!(check(&stage, "--history", HISTORY).code, 0);
    let good = fs::read_to_string(stage.path(HISTORY)).unwrap();
    let nothing = r#"{"schema":"fleetc/history/v9","node":"n1","states":[]}"#;
    for (text, why) in [
        ("", "EOF while parsing"),
        (good.split_at(good.len() / 2).0, "EOF while parsing"),
        (nothing, "its schema is `fleetc/history/v9`, this program reads `fleetc/history/v1`"),
        (&good.replace("\"n1\"", "\"n2\""), "was taken on node `n2`, not on `n1`"),
    ] {
        fs::write(stage.path(HISTORY), text).unwrap();
        let run = check(&stage, "--history", HISTORY);
        assert_eq!((run.code, run.findings()), (0, Vec::new()), "{}", run.err);
        let begins = "fleetc-validate: the history begins anew, since it cannot be used: ";
        assert!(run.err.starts_with(begins) && run.err.contains(why), "{}", run.err);
        let again = check(&stage, "--history", HISTORY);
        assert_eq!((again.code, again.err.as_str()), (0, ""), "it was replaced");
    }
}

#[test]
fn a_history_that_cannot_be_written_changes_no_verdict() {
    let stage = stage("h100-sxm5-80gb", 1, &[]);
    // A file where its folder should be: no one can write below it, not even root.
    fs::write(stage.path("state"), "").unwrap();
    let run = check(&stage, "--history", HISTORY);
    assert_eq!((run.code, run.findings()), (0, Vec::new()), "{}", run.err);
    assert!(run.err.contains("state/history.json: "), "{}", run.err);
}

#[test]
fn a_run_that_could_not_read_the_gpus_keeps_what_was_read_before() {
    let mut stage = stage("h100-sxm5-80gb", 1, &[]);
    check(&stage, "--history", HISTORY);
    let before = kept(&stage);
    stage.node.init = 9;
    age(&stage, 1);
    let aged = kept(&stage);
    assert_ne!(before, aged);
    assert_eq!(check(&stage, "--history", HISTORY).code, 2);
    assert_eq!(kept(&stage), aged);
}

#[test]
fn an_earlier_snapshot_must_be_one_of_this_node() {
    let mut stage = stage("h100-sxm5-80gb", 1, &[]);
    stage.snapshot();
    stage.node.gpus[0].ecc_errors = Some([0, 0, 0, 2]);
    let run = check(&stage, "--earlier", "snapshot.json");
    assert_eq!((run.code, run.seen("ecc.growth")), (0, vec!["2 uncorrected".to_owned()]));

    let refused = |file: &str, why: &str| {
        let run = check(&stage, "--earlier", file);
        assert_eq!((run.code, run.out.as_str()), (65, ""), "{}", run.err);
        assert!(run.err.contains(why), "{}", run.err);
    };
    refused("nowhere.json", "reading ");
    let text = fs::read_to_string(stage.path("snapshot.json")).unwrap();
    fs::write(stage.path("other.json"), text.replace("\"n1\"", "\"n2\"")).unwrap();
    refused("other.json", "was taken on node `n2`, not on `n1`");
    fs::write(stage.path("half.json"), text.split_at(100).0).unwrap();
    refused("half.json", "EOF while parsing");

    let both = ["check", "--intent", "x", "--earlier", "a", "--history", "b"];
    assert_eq!(stage.live(&both).code, 64, "one of the two");
}

#[test]
fn a_history_is_for_its_owner_to_write() {
    let stage = stage("h100-sxm5-80gb", 1, &[]);
    check(&stage, "--history", HISTORY);
    let mode = fs::metadata(stage.path(HISTORY)).unwrap().permissions().mode();
    assert_eq!(mode & 0o022, 0);
}
