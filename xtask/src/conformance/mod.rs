//! Conformance: the output of the example fleets, held against the tools that read it: promtool, amtool,
//! systemd and Slurm as the machine has them, Slurm as newer Debians have it, and promtool, amtool,
//! Kustomize, Kubernetes and Kueue as they are newest; and its scripts against shellcheck. A tool that is
//! missing is a failure.

mod daemon;
mod judged;
mod kubernetes;
mod overlay;
mod programs;
mod slurm;

use std::collections::BTreeMap;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_schema::intent::{AlertClass, Intent, Monitoring, RouteTarget, StandardAlert};
use fleetc_schema::name::TeamName;
use fleetc_tests::{FLEETS, Texts, check_fleet, compiled, rule_files};

use crate::{Outcome, put};
use programs::Programs;

/// How often promtool runs the unit tests: one that passes now and then is a bug.
const RUNS: usize = 10;
/// Where the routes stand in the output.
const ALERTMANAGER: &str = "fleet/alertmanager/alertmanager.yaml";

/// A part of the conformance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Suite {
    /// Rules, routes and kustomizations
    Files,
    /// The API server, the scheduler and Kueue
    Kubernetes,
    /// Slurm's daemons
    Slurm,
}

/// Runs every suite, or the one that is asked for; Slurm in every place, or in one.
pub fn run(only: Option<Suite>, place: Option<&str>) -> Outcome {
    let scratch = tempfile::tempdir()?;
    let folder = Utf8PathBuf::try_from(scratch.path().to_owned())?;
    let suites = [Suite::Files, Suite::Kubernetes, Suite::Slurm];
    let asked = suites.into_iter().filter(|suite| only.is_none_or(|only| only == *suite));
    let passed = asked
        .map(|suite| match suite {
            Suite::Files => files(&folder, &Programs::all()?),
            Suite::Kubernetes => kubernetes::run(&folder, &Programs::all()?),
            Suite::Slurm => slurm::run(&folder, place),
        })
        .sum::<Result<usize, _>>();
    match passed {
        Ok(passed) => println!("conformance: {passed} passed, 0 failed"),
        Err(error) => {
            let _ = scratch.keep();
            return Err(format!("{error}\nfiles and logs stand in {folder}").into());
        }
    }
    Ok(())
}

/// What is read from files alone: rules, routes and kustomizations.
fn files(scratch: &Utf8Path, programs: &Programs) -> Result<usize, Box<dyn std::error::Error>> {
    // Fleets run what distributions have and what is newest.
    let promtools = ["promtool", programs.promtool.as_str()];
    let amtools = ["amtool", programs.amtool.as_str()];
    for name in promtools.iter().chain(&amtools) {
        let version = tool(name, &["--version"], Utf8Path::new("."))?;
        println!("{}: {}", tool_name(name), version.lines().next().unwrap_or_default());
    }
    let version = tool("systemd-analyze", &["--version"], Utf8Path::new("."))?;
    println!("{}", version.lines().next().unwrap_or_default());
    let version = tool("shellcheck", &["--version"], Utf8Path::new("."))?;
    println!("shellcheck: {}", version.lines().nth(1).unwrap_or_default());
    let mut passed = 0;
    for (name, spec) in FLEETS {
        let checked = check_fleet(spec)?;
        let files = compiled(&checked).ok_or(format!("{spec} has errors"))?;
        let intent = checked.intent().ok_or(format!("{spec} has errors"))?;
        let root = scratch.join(name);
        for (path, text) in &files {
            put(&root.join(path), text)?;
        }
        for promtool in promtools {
            passed += rules(promtool, name, &root, &files)?;
        }
        for amtool in amtools {
            passed += routes(amtool, name, &root, &files, intent)?;
        }
        passed += scripts(name, &root, &files)?;
        for path in files.keys().filter(|path| path.ends_with("kubernetes/kustomization.yaml")) {
            let folder = root.join(path);
            let folder = folder.parent().ok_or("a kustomization has a folder")?;
            passed += kustomize(programs, folder, &format!("{name}/{path}"))?;
        }
    }
    Ok(passed)
}

/// The rules of every cluster, with their unit tests.
fn rules(
    promtool: &str,
    name: &str,
    root: &Utf8Path,
    files: &Texts,
) -> Result<usize, Box<dyn std::error::Error>> {
    let mut passed = 0;
    for (tests, _) in files.iter().filter(|(path, _)| path.ends_with("/rules.test.yaml")) {
        let folder = root.join(tests);
        let folder = folder.parent().ok_or("tests have a folder")?;
        let cluster = tests.split('/').nth(1).ok_or("tests are of a cluster")?;
        // What Kubernetes gets are objects: promtool reads what they hold.
        let rules = rule_files(files, cluster)?;
        for (file, text) in &rules {
            put(&folder.join(file), text)?;
            tool(promtool, &["check", "rules", file], folder)?;
            passed += 1;
        }
        for tests in ["rules.test.yaml", "xids.test.yaml"] {
            run_often(promtool, &["test", "rules", tests], folder)?;
            passed += RUNS;
        }
        let by = tool_name(promtool);
        println!("{name}/{cluster}: {by} takes the rules, unit tests passed {RUNS} of {RUNS}");
        let rules = rules.get("rules.yaml").ok_or("a cluster has rules")?;
        wrong_rules_fail(promtool, folder, rules)?;
        passed += 1;
        if folder.join("scrape.yaml").exists() {
            tool(promtool, &["check", "config", "scrape.yaml"], folder)?;
            passed += 1;
        }
    }
    Ok(passed)
}

/// Runs promtool as often as asked, a few at a time.
fn run_often(promtool: &str, args: &[&str], folder: &Utf8Path) -> Outcome {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from).min(RUNS);
    for start in (0..RUNS).step_by(at_once) {
        let runs = at_once.min(RUNS - start);
        let failed = std::thread::scope(|scope| {
            let run = || tool(promtool, args, folder).err().map(|error| error.to_string());
            let handles: Vec<_> = (0..runs).map(|_| scope.spawn(run)).collect();
            let ended = handles.into_iter().map(|handle| match handle.join() {
                Ok(failed) => failed,
                Err(_) => Some("the thread that ran promtool ended early".to_owned()),
            });
            ended.flatten().next()
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
    }
    Ok(())
}

/// The unit tests can fail: with every expectation raised by one, the quiet tests must alert.
fn wrong_rules_fail(promtool: &str, folder: &Utf8Path, rules: &str) -> Outcome {
    let raised = rules.replace("expr: vector(", "expr: 1 + vector(");
    put(&folder.join("rules.yaml"), &raised)?;
    let result = tool(promtool, &["test", "rules", "rules.test.yaml"], folder);
    put(&folder.join("rules.yaml"), rules)?;
    match result {
        Ok(_) => Err("the unit tests pass with wrong expectations".into()),
        Err(_) => Ok(()),
    }
}

/// Every class of alerts, and every team, against the receiver that the spec names.
fn routes(
    amtool: &str,
    name: &str,
    root: &Utf8Path,
    files: &Texts,
    intent: &Intent,
) -> Result<usize, Box<dyn std::error::Error>> {
    let Some(monitoring) = intent.monitoring.as_ref().filter(|m| !m.routes.is_empty()) else {
        return match files.contains_key(ALERTMANAGER) {
            true => Err(format!("{name} routes nothing and has {ALERTMANAGER}").into()),
            false => Ok(0),
        };
    };
    let file = root.join(ALERTMANAGER);
    let folder = file.parent().ok_or("the file has a folder")?;
    tool(amtool, &["check-config", "alertmanager.yaml"], folder)?;
    let mut asked = BTreeMap::new();
    for alert in StandardAlert::ALL {
        let class = alert.kind().class;
        asked.insert((alert.as_str(), None), receiver(monitoring, class, intent, None));
        for team in intent.teams.keys() {
            let told = receiver(monitoring, class, intent, Some(team));
            asked.insert((alert.as_str(), Some(team.as_str())), told);
        }
    }
    for ((alert, team), wanted) in &asked {
        let kind = StandardAlert::of(alert).ok_or("an alert has its name")?.kind();
        let labels = [
            format!("alertname={alert}"),
            format!("route={}", kind.class),
            format!("team={}", team.unwrap_or_default()),
        ];
        let labels = labels.iter().filter(|label| !label.ends_with('=')).map(String::as_str);
        let fixed = ["config", "routes", "test", "--config.file=alertmanager.yaml"];
        let args: Vec<&str> = fixed.into_iter().chain(labels).collect();
        let told = tool(amtool, &args, folder)?;
        // The line after it, if there is one, is a warning about the tool's own settings.
        if told.lines().next() != Some(wanted.as_str()) {
            return Err(
                format!("{name}: {alert} of {team:?} goes to {told}, not to {wanted}").into()
            );
        }
    }
    let by = tool_name(amtool);
    let count = asked.len();
    println!("{name}/{ALERTMANAGER}: {by} takes it, {count} alerts reach their receivers");
    Ok(1 + asked.len())
}

/// Who is told by the words of the spec.
fn receiver(
    monitoring: &Monitoring,
    class: AlertClass,
    intent: &Intent,
    team: Option<&TeamName>,
) -> String {
    let of = |wanted| monitoring.routes.iter().find(|route| route.class == wanted).map(|r| &r.to);
    let rest = match of(None) {
        Some(RouteTarget::Receiver(name)) => name.to_string(),
        Some(RouteTarget::Owner) | None => "fleetc/nobody".to_owned(),
    };
    match of(Some(class)).or(of(None)) {
        Some(RouteTarget::Receiver(name)) => name.to_string(),
        Some(RouteTarget::Owner) => {
            let mut next = team;
            while let Some(name) = next {
                let of = intent.teams.get(name);
                let contact = of.and_then(|team| team.contact.as_ref());
                if contact.is_some_and(|contact| contact.slack.is_some()) {
                    return format!("owner/{name}");
                }
                next = of.and_then(|team| team.parent.as_ref());
            }
            rest
        }
        None => rest,
    }
}

/// Scripts hold nothing that a shell reads otherwise than it looks, and systemd takes the units.
fn scripts(
    name: &str,
    root: &Utf8Path,
    files: &Texts,
) -> Result<usize, Box<dyn std::error::Error>> {
    let mut passed = 0;
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".sh")) {
        tool("shellcheck", &[path], root)?;
        put(&root.join("wrong.sh"), &format!("{text}\nls $1\n"))?;
        if tool("shellcheck", &["wrong.sh"], root).is_ok() {
            return Err(format!("{name}/{path}: shellcheck misses a word without quotes").into());
        }
        println!("{name}/{path}: nothing that shellcheck would have otherwise");
        passed += 2;
    }
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".service")) {
        let unit = Utf8Path::new(path).file_name().ok_or("a unit has a name")?;
        unit_is_taken(&format!("{name}/{path}"), unit, text, root)?;
        passed += 2;
    }
    Ok(passed)
}

/// systemd takes a unit as it is on a node, but for where its program is: systemd looks if it is there.
fn unit_is_taken(what: &str, unit: &str, text: &str, root: &Utf8Path) -> Outcome {
    let program = text.lines().find_map(|line| line.strip_prefix("ExecStart="));
    let program = program.and_then(|line| line.split(' ').next());
    let program = program.ok_or(format!("{what} starts no program"))?;
    let here = text.replace(&format!("ExecStart={program}"), "ExecStart=/bin/true");
    put(&root.join(unit), &here)?;
    let file = format!("./{unit}");
    let verify = ["verify", "--man=no", file.as_str()];
    let said = tool("systemd-analyze", &verify, root)?;
    // A section or word that it does not know is said, and no failure.
    let names_it = |said: &str| said.contains(&format!("{unit}:"));
    if names_it(&said) {
        return Err(format!("{what}: {said}").into());
    }
    put(&root.join(unit), &here.replace("Type=oneshot", "Type=onceshot"))?;
    let said = tool("systemd-analyze", &verify, root).unwrap_or_else(|error| error.to_string());
    if !names_it(&said) {
        return Err(format!("{what}: systemd takes a type that it does not have").into());
    }
    println!("{what}: systemd takes it");
    Ok(())
}

/// Kustomize builds the objects of a cluster: each of them once, stage by stage, with our labels. A
/// missing file fails. Gives how many of its checks passed.
fn kustomize(
    programs: &Programs,
    folder: &Utf8Path,
    what: &str,
) -> Result<usize, Box<dyn std::error::Error>> {
    let build = || tool(programs.controlplane.as_str(), &["kubectl", "kustomize", "."], folder);
    let built = build()?;
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
    if build().is_ok() {
        return Err(format!("{what}: kustomize does not miss {first}").into());
    }
    println!("{what}: kustomize builds {} objects in order", objects.len());
    Ok(3)
}

/// The last part of a tool's path; what is built here has its version in it.
fn tool_name(tool: &str) -> &str {
    Utf8Path::new(tool).file_name().unwrap_or(tool)
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
