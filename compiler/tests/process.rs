//! The binary as a process: one case, so that what the command-line tests call is what users start.

use std::process::Command;

#[test]
fn the_binary_checks_the_example_fleet_without_colour_in_a_pipe() {
    let fleet = concat!(env!("CARGO_MANIFEST_DIR"), "/../fleets/lab");
    let run = Command::new(env!("CARGO_BIN_EXE_fleetc")).args(["check", fleet]).output().unwrap();
    assert_eq!(run.status.code(), Some(0));
    let dir = tempfile::tempdir().unwrap();
    let spec = dir.path().join("fleet.kdl");
    std::fs::write(&spec, "fleet \"x\" { colour \"red\" }\n").unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_fleetc")).arg("check").arg(&spec).output().unwrap();
    assert_eq!(run.status.code(), Some(1));
    assert!(!run.stdout.contains(&0x1b), "no colour in a pipe");
}
