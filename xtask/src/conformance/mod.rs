//! Conformance: the output of the example fleets, held against the tools that read it (promtool,
//! Kustomize, as kubectl brings it or alone). A tool that is missing is a failure.

mod slurm;

use std::process::Command;

use camino::Utf8Path;
use fleetc_tests::{FLEETS, check_fleet, compiled};

use crate::{Outcome, put};

/// How often promtool runs the unit tests: one that passes now and then is a bug.
const RUNS: usize = 10;

/// Runs every suite.
pub fn run() -> Outcome {
    let version = tool("promtool", &["--version"], Utf8Path::new("."))?;
    println!("promtool: {}", version.lines().next().unwrap_or_default());
    let (program, _) = kustomize_program();
    let ask: &[&str] = if program == "kubectl" { &["version", "--client"] } else { &["version"] };
    let version = tool(program, ask, Utf8Path::new("."))?;
    println!("{program}: {}", version.lines().last().unwrap_or_default());
    let scratch = tempfile::tempdir()?;
    let scratch = Utf8Path::from_path(scratch.path()).ok_or("the temporary folder is not UTF-8")?;
    let mut passed = 0;
    for (name, spec) in FLEETS {
        let files = compiled(&check_fleet(spec)?).ok_or(format!("{spec} has errors"))?;
        let root = scratch.join(name);
        for (path, text) in &files {
            put(&root.join(path), text)?;
        }
        let rules = files.iter().filter(|(path, _)| path.ends_with("monitoring/rules.yaml"));
        for (path, text) in rules {
            let folder = root.join(path);
            let folder = folder.parent().ok_or("rules have a folder")?;
            tool("promtool", &["check", "rules", "rules.yaml"], folder)?;
            for _ in 0..RUNS {
                tool("promtool", &["test", "rules", "rules.test.yaml"], folder)?;
            }
            passed += 1 + RUNS;
            println!("{name}/{path}: rules accepted, unit tests passed {RUNS} of {RUNS}");
            wrong_rules_fail(folder, text)?;
            passed += 1;
        }
        for path in files.keys().filter(|path| path.ends_with("kubernetes/kustomization.yaml")) {
            let folder = root.join(path);
            let folder = folder.parent().ok_or("a kustomization has a folder")?;
            passed += kustomize(folder, &format!("{name}/{path}"))?;
        }
    }
    passed += slurm::run(scratch)?;
    println!("conformance: {passed} passed, 0 failed");
    Ok(())
}

/// The unit tests can fail: with every expectation raised by one, the quiet tests must alert.
fn wrong_rules_fail(folder: &Utf8Path, rules: &str) -> Outcome {
    let raised = rules.replace("expr: vector(", "expr: 1 + vector(");
    put(&folder.join("rules.yaml"), &raised)?;
    let result = tool("promtool", &["test", "rules", "rules.test.yaml"], folder);
    put(&folder.join("rules.yaml"), rules)?;
    match result {
        Ok(_) => Err("the unit tests pass with wrong expectations".into()),
        Err(_) => Ok(()),
    }
}

/// What builds a kustomization here, and the word for it.
fn kustomize_program() -> (&'static str, &'static str) {
    match Command::new("kubectl").arg("kustomize").arg("--help").output() {
        Ok(output) if output.status.success() => ("kubectl", "kustomize"),
        _ => ("kustomize", "build"),
    }
}

/// Kustomize builds the objects of a cluster: each of them once, stage by stage, with our labels. A
/// missing file fails. Gives how many of its checks passed.
fn kustomize(folder: &Utf8Path, what: &str) -> Result<usize, Box<dyn std::error::Error>> {
    let (program, word) = kustomize_program();
    let built = tool(program, &[word, "."], folder)?;
    let mut written = Vec::new();
    let mut stages: Vec<_> = folder.read_dir_utf8()?.collect::<Result<_, _>>()?;
    stages.sort_by(|a, b| a.file_name().cmp(b.file_name()));
    for stage in stages.iter().filter(|stage| stage.path().is_dir()) {
        let mut files: Vec<_> = stage.path().read_dir_utf8()?.collect::<Result<_, _>>()?;
        files.sort_by(|a, b| a.file_name().cmp(b.file_name()));
        let listed = files.iter().any(|file| file.file_name() == "kustomization.yaml");
        let objects = files.iter().filter(|file| {
            listed
                && file.file_name().ends_with(".yaml")
                && file.file_name() != "kustomization.yaml"
        });
        written.extend(objects.map(|file| file.path().to_owned()));
    }
    let line = |text: &str, start: &str| {
        text.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned()
    };
    let objects: Vec<&str> = built.split("\n---\n").collect();
    let kinds: Vec<String> = objects.iter().map(|object| line(object, "kind: ")).collect();
    let wanted: Vec<String> = written
        .iter()
        .map(|path| Ok(line(&std::fs::read_to_string(path)?, "kind: ")))
        .collect::<std::io::Result<_>>()?;
    if kinds != wanted {
        return Err(format!("{what}: kustomize builds {kinds:?}, written are {wanted:?}").into());
    }
    let ours = "    app.kubernetes.io/managed-by: fleetc";
    if let Some(object) = objects.iter().find(|object| !object.lines().any(|line| line == ours)) {
        return Err(format!("{what}: without our label:\n{object}").into());
    }
    let Some(first) = written.first() else { return Err(format!("{what}: no object").into()) };
    std::fs::remove_file(first)?;
    if tool(program, &[word, "."], folder).is_ok() {
        return Err(format!("{what}: kustomize does not miss {first}").into());
    }
    println!("{what}: kustomize builds {} objects in order", objects.len());
    Ok(3)
}

/// Runs a tool and gives what it printed; failing or missing is an error.
fn tool(
    name: &str,
    args: &[&str],
    folder: &Utf8Path,
) -> Result<String, Box<dyn std::error::Error>> {
    let output = Command::new(name)
        .args(args)
        .current_dir(folder)
        .output()
        .map_err(|error| format!("{name} cannot be run ({error}): conformance needs it"))?;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(text.into_owned()),
        false => Err(format!("{name} {}: {text}", args.join(" ")).into()),
    }
}
