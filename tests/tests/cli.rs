//! The command line: exit codes, streams and flags, end to end. Edge cases belong lower.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::ffi::OsString;

use camino::Utf8PathBuf;
use fleetc_tests::repository;
use serde_json::Value;

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

fn scratch() -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::try_from(dir.path().canonicalize().unwrap()).unwrap();
    (dir, path)
}

fn lab() -> String {
    repository().join("fleets/lab").to_string()
}

#[test]
fn help_goes_to_stdout_and_a_wrong_command_line_exits_2() {
    let help = run(&["--help"]);
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    for word in [
        "init", "check", "compile", "diff", "drift", "catalog", "mig", "explain", "fmt", "convert",
        "schema",
    ] {
        assert!(help.out.contains(word), "{word}");
    }
    for args in [&["nonsense"][..], &[], &["check"], &["compile", "x"]] {
        let wrong = run(args);
        assert_eq!((wrong.code, wrong.out.as_str()), (2, ""), "{args:?}");
        assert!(!wrong.err.is_empty());
    }
}

#[test]
fn check_exits_0_for_a_good_fleet_and_says_so_on_stderr() {
    let run = run(&["check", &lab()]);
    assert_eq!((run.code, run.out.as_str()), (0, ""));
    assert!(run.err.ends_with("no finding\n"), "{}", run.err);
}

#[test]
fn check_exits_1_for_a_fleet_that_does_not_hold_and_2_if_there_is_none() {
    let (_dir, root) = scratch();
    let spec = root.join("fleet.kdl");
    std::fs::write(&spec, "fleet \"x\"\npool \"a\" { nodes \"a[1-2]\" }\n").unwrap();
    let bad = run(&["check", spec.as_str()]);
    assert_eq!(bad.code, 1);
    assert!(bad.out.contains("[spec/missing]") && bad.err.contains("2 errors"), "{}", bad.err);

    let none = run(&["check", root.join("nowhere").as_str()]);
    assert_eq!((none.code, none.out.as_str()), (2, ""));
    assert!(none.err.contains("no such spec"), "{}", none.err);
}

#[test]
fn json_findings_name_rule_place_and_item() {
    let (_dir, root) = scratch();
    let spec = root.join("fleet.kdl");
    let text = "fleet \"x\"\nnode-policy \"p\" { pools \"é\" }\n";
    std::fs::write(&spec, text).unwrap();
    let run = run(&["check", spec.as_str(), "--format", "json"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    let document: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(document["schema"], "fleetc/diagnostics/v1");
    assert_eq!(document["errors"], 1);
    let found = &document["diagnostics"][0];
    assert_eq!(found["rule"], "name/unknown");
    let label = &found["labels"][0];
    assert_eq!(label["file"], "fleet.kdl");
    assert_eq!((&label["line"], &label["column"]), (&Value::from(2), &Value::from(25)));
    assert_eq!(label["end_column"], 28, "columns are characters, not bytes");
    assert_eq!((&label["start"], &label["end"]), (&Value::from(34), &Value::from(38)));
}

#[test]
fn compile_writes_nothing_for_a_fleet_with_errors() {
    let (_dir, root) = scratch();
    std::fs::write(root.join("fleet.kdl"), "fleet \"x\" { colour \"red\" }\n").unwrap();
    let out = root.join("out");
    let run = run(&["compile", root.as_str(), "-o", out.as_str()]);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert!(run.err.contains("nothing was written"), "{}", run.err);
    assert!(!out.exists());
}

#[test]
fn compile_lists_what_no_target_writes() {
    let (_dir, root) = scratch();
    let northwind = repository().join("fleets/northwind");
    let run = run(&["compile", northwind.as_str(), "-o", root.join("out").as_str()]);
    assert_eq!(run.code, 0, "{}", run.err);
    let (_, list) = run.out.split_once("written by no target:\n").unwrap();
    let words = |item: &str| {
        let line = list.lines().find(|line| line.trim_start().starts_with(item)).unwrap();
        line.trim_start().trim_start_matches(item).trim().to_owned()
    };
    assert_eq!(words("team/product"), "email");
    let written = ["cluster/", "fabric/", "tier/", "pool/burst", "pool/chat", "pool/domain"];
    for written in written {
        assert!(!list.contains(written), "all of {written} is written: {list}");
    }
}

#[test]
fn compile_check_says_what_is_stale() {
    let (_dir, root) = scratch();
    let out = root.join("out");
    let (out, lab) = (out.as_str(), lab());
    let stale = run(&["compile", &lab, "-o", out, "--check"]);
    assert_eq!(stale.code, 1);
    assert!(stale.out.contains("differs  clusters/hpc/slurm/slurm.conf"), "{}", stale.out);
    let first = run(&["compile", &lab, "-o", out]);
    assert_eq!(first.code, 0);
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let told = first.out.replace(out, "out/lab");
    assert!(
        readme.contains(&format!("```\n{}\n```", told.trim_end())),
        "the README says else:\n{told}"
    );
    assert_eq!(run(&["compile", &lab, "-o", out, "--check"]).code, 0);
    let again = run(&["compile", &lab, "-o", out]);
    assert!(again.out.contains("(0 written, 58 unchanged, 0 removed)"), "{}", again.out);
}

#[test]
fn a_file_edited_by_hand_is_refused_until_forced() {
    let (_dir, root) = scratch();
    let out = root.join("out");
    let lab = lab();
    assert_eq!(run(&["compile", &lab, "-o", out.as_str()]).code, 0);
    let file = out.join("clusters/hpc/slurm/gres.conf");
    std::fs::write(&file, "AutoDetect=off\n").unwrap();
    let refused = run(&["compile", &lab, "-o", out.as_str()]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("clusters/hpc/slurm/gres.conf"), "{}", refused.err);
    assert_eq!(run(&["compile", &lab, "-o", out.as_str(), "--force"]).code, 0);
    assert!(std::fs::read_to_string(file).unwrap().contains("AutoDetect=nvml"));
}

#[test]
fn diff_refuses_an_output_folder_whose_intent_was_edited() {
    let (_dir, root) = scratch();
    let out = root.join("out");
    assert_eq!(run(&["compile", &lab(), "-o", out.as_str()]).code, 0);
    let fleet = out.join("fleet/intent/fleet.json");
    let text = std::fs::read_to_string(&fleet).unwrap().replace("gpu02", "gpu03");
    std::fs::write(&fleet, text).unwrap();
    let run = run(&["diff", out.as_str(), &lab()]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("digest"), "{}", run.err);
}

#[test]
fn explain_prints_the_page_of_a_rule_and_lists_them() {
    for args in [&["explain", "rule", "mig/no-placement"][..], &["explain", "mig/no-placement"]] {
        let page = run(args);
        assert_eq!(page.code, 0);
        assert!(page.out.starts_with("# mig/no-placement\n"));
    }
    let list = run(&["explain"]);
    assert_eq!(list.out.lines().count(), fleetc_schema::diag::rules::ALL.len());
    let near = run(&["explain", "mig/no-placment"]);
    assert_eq!(near.code, 2);
    assert!(near.err.contains("did you mean `mig/no-placement`?"), "{}", near.err);
}

#[test]
fn a_spec_above_or_linked_out_of_the_root_is_not_read() {
    let (_dir, root) = scratch();
    std::fs::create_dir(root.join("inner")).unwrap();
    std::fs::write(root.join("fleet.kdl"), "fleet \"x\"\n").unwrap();
    let inner = root.join("inner");
    let above = run(&["--root", inner.as_str(), "check", root.join("fleet.kdl").as_str()]);
    assert_eq!(above.code, 2);
    assert!(above.err.contains("outside the root"), "{}", above.err);

    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(root.join("fleet.kdl"), inner.join("fleet.kdl")).unwrap();
        let linked = run(&["--root", inner.as_str(), "check", inner.as_str()]);
        assert_eq!(linked.code, 2);
        assert!(linked.err.contains("outside the root"), "{}", linked.err);
    }
}

#[test]
fn files_that_are_no_spec_are_refused_with_their_name() {
    let (_dir, root) = scratch();
    let cases: [(&str, &[u8], &str); 2] =
        [("a.toml", b"x", "ends in .kdl"), ("c.kdl", &[b' '; (4 << 20) + 1], "larger than 4 MiB")];
    for (name, bytes, why) in cases {
        let spec = root.join(name);
        std::fs::write(&spec, bytes).unwrap();
        let run = run(&["check", spec.as_str()]);
        assert_eq!(run.code, 2, "{name}");
        assert!(run.err.contains(name) && run.err.contains(why), "{}", run.err);
    }
    // What is in the file is wrong, so that is a finding.
    let spec = root.join("b.kdl");
    std::fs::write(&spec, b"fleet \"\xff\"").unwrap();
    for command in ["check", "compile"] {
        let out = root.join("out").to_string();
        let more: &[&str] = if command == "compile" { &["-o", &out] } else { &[] };
        let run = run(&[&[command, spec.as_str()], more].concat());
        assert_eq!(run.code, 1, "{command}");
        assert!((run.out + &run.err).contains("the file is not UTF-8"), "{command}");
    }
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_are_read() {
    let (_dir, root) = scratch();
    let text = std::fs::read_to_string(repository().join("fleets/lab/fleet.kdl")).unwrap();
    let spec = root.join("fleet.kdl");
    std::fs::write(&spec, format!("\u{feff}{}", text.replace('\n', "\r\n"))).unwrap();
    assert_eq!(run(&["check", spec.as_str()]).code, 0);
}

// ---- init --------------------------------------------------------------------------------------

#[test]
fn init_writes_a_fleet_without_findings_and_overwrites_nothing() {
    let (_dir, root) = scratch();
    std::fs::create_dir(root.join(".git")).unwrap();
    let folder = root.join("fleets/first one");
    let made = run(&["init", folder.as_str(), "--name", "first"]);
    assert_eq!((made.code, made.err.as_str()), (0, ""));
    let workflow = folder.join(".github/workflows/fleet-first.yml");
    assert!(workflow.exists(), "a path with a blank is not for a shell: beside the fleet");

    let folder = root.join("fleets/second");
    let made = run(&["init", folder.as_str()]);
    assert_eq!((made.code, made.err.as_str()), (0, ""));
    let workflow =
        std::fs::read_to_string(root.join(".github/workflows/fleet-second.yml")).unwrap();
    let read: Value = serde_yaml::from_str(&workflow).unwrap();
    let steps = read["jobs"]["fleet"]["steps"].as_array().unwrap();
    let commands: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    for command in
        ["fleetc check fleets/second --format github", "fleetc fmt --check fleets/second"]
    {
        assert!(commands.contains(&command), "{commands:?}");
    }
    assert!(
        !workflow.contains('@') || workflow.matches('@').count() == 2,
        "two actions by version"
    );

    let spec = folder.join("fleet.kdl");
    assert!(std::fs::read_to_string(&spec).unwrap().contains("fleet \"second\""));
    let checked = run(&["check", folder.as_str()]);
    assert_eq!((checked.code, checked.out.as_str()), (0, ""), "{}", checked.err);
    assert_eq!(run(&["fmt", "--check", folder.as_str()]).out, "");
    let out = root.join("out").to_string();
    assert_eq!(run(&["compile", folder.as_str(), "-o", &out]).code, 0);

    std::fs::write(&spec, "mine").unwrap();
    std::fs::remove_dir_all(root.join(".github")).unwrap();
    let again = run(&["init", folder.as_str()]);
    assert_eq!((again.code, again.out.as_str()), (2, ""));
    assert!(again.err.contains("nothing was written"), "{}", again.err);
    assert_eq!(std::fs::read_to_string(&spec).unwrap(), "mine");
    assert!(!root.join(".github").exists());
    assert_eq!(run(&["init", root.join("x").as_str(), "--name", "No Name"]).code, 2);
    assert!(!root.join("x").exists());
}
