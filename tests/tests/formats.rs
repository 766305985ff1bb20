//! What tools get from `fleetc check`: SARIF results and GitHub annotations.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::ffi::OsString;

use camino::Utf8Path;
use fleetc::Checked;
use fleetc::files::Memory;
use fleetc_schema::diag::{Diagnostic, Severity, Span, rules};
use fleetc_tests::{Form, check_text, repository, with_prelude};
use serde_json::{Value, json};

const LAYOUT: &str = "pool \"slices\" {
    cluster \"serve\"; system \"dgx-h100\"; nodes \"mig[01-02]\"
    sharing \"mig\" strategy=\"mixed\" {
        gpus \"0-3\" { slice \"3g.40gb\" count=2; slice \"2g.20gb\" count=2 }
        gpus \"4-7\" { slice \"3g.40gb\" count=2; colour \"é\" }
    }
}
";

fn checked(fragment: &str) -> Checked {
    check_text(Form::Kdl, &with_prelude(Form::Kdl, fragment)).unwrap()
}

fn run_of(checked: &Checked) -> Value {
    let log: Value = serde_json::from_str(&fleetc::render::sarif::report(checked)).unwrap();
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(log["runs"].as_array().unwrap().len(), 1);
    log["runs"][0].clone()
}

fn fingerprints(checked: &Checked) -> Vec<(String, String)> {
    let run = run_of(checked);
    let results = run["results"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let one = |result: &Value| {
        (text(&result["ruleId"]), text(&result["partialFingerprints"]["ruleAndItem/v1"]))
    };
    results.iter().map(one).collect()
}

#[test]
fn a_sarif_result_names_rule_lines_items_and_what_to_do() {
    let run = run_of(&checked(LAYOUT));
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let result = &run["results"][0];
    assert_eq!(result["ruleId"], "mig/no-placement");
    assert_eq!(result["level"], "error");
    let message = result["message"]["text"].as_str().unwrap();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[0], "2 × 3g.40gb + 2 × 2g.20gb do not fit on one h100-sxm5-80gb");
    assert!(lines[1].starts_with("note: "), "{message}");
    assert!(lines[2].starts_with("note: ") && lines[3].starts_with("memory slices"), "{message}");
    assert!(lines.last().unwrap().starts_with("help: "), "{message}");
    assert_eq!(
        result["locations"],
        json!([{
            "physicalLocation": {
                "artifactLocation": { "uri": "fleet.kdl", "uriBaseId": "%SRCROOT%" },
                "region": { "startLine": 4, "startColumn": 22, "endLine": 4, "endColumn": 37 },
            },
            "logicalLocations": [
                { "fullyQualifiedName": "pool/slices/sharing/gpus[0-3]/slice[3g.40gb]" },
            ],
            "message": { "text": "each takes 4 of 8 memory slices, starting at 0 or 4" },
        }])
    );
    let related = result["relatedLocations"].as_array().unwrap();
    assert_eq!(related.len(), 1);
    assert_eq!(related[0]["physicalLocation"]["region"]["startColumn"], 47);
}

#[test]
fn rules_are_those_that_fired_each_once_with_its_page() {
    let run = run_of(&checked(LAYOUT));
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let ids: Vec<&str> = rules.iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["mig/no-placement", "spec/unknown-node"]);
    for result in run["results"].as_array().unwrap() {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(result["ruleId"], ids[index]);
    }
    assert_eq!(rules[0]["help"]["markdown"], rules::MIG_NO_PLACEMENT.page);
    assert_eq!(rules[0]["shortDescription"]["text"], rules::MIG_NO_PLACEMENT.summary);
    assert_eq!(rules[0]["defaultConfiguration"]["level"], "error");
}

#[test]
fn a_fleet_without_a_finding_is_a_run_without_a_result() {
    let run = run_of(&checked(""));
    assert_eq!((&run["results"], &run["tool"]["driver"]["rules"]), (&json!([]), &json!([])));
}

#[test]
fn fingerprints_stay_when_lines_move_and_differ_between_findings() {
    let before = fingerprints(&checked(LAYOUT));
    let moved = format!("// a comment\n\n{}", LAYOUT.replace("; slice", "\n        slice"));
    assert_eq!(before, fingerprints(&checked(&moved)));
    let two = format!("team \"a\" {{ colour \"x\" }}\nteam \"b\" {{ colour \"x\" }}\n{LAYOUT}");
    let mut all = fingerprints(&checked(&two));
    assert_eq!(all.len(), before.len() + 2);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), before.len() + 2, "equal tokens are told apart");
}

#[test]
fn files_are_relative_to_the_root_and_percent_encoded() {
    let files = Memory::one("fleets/a b/é.kdl", "fleet \"x\"\ncolour \"red\"\n");
    let checked = fleetc::check(&files, Utf8Path::new("fleets/a b/é.kdl")).unwrap();
    let run = run_of(&checked);
    let location = &run["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "fleets/a%20b/%C3%A9.kdl");
    let annotation = fleetc::render::github::report(&checked);
    assert!(annotation.starts_with("::error file=fleets/a b/é.kdl,line=2,col=1,"), "{annotation}");
}

#[test]
fn an_annotation_is_one_line_at_the_token() {
    let text = fleetc::render::github::report(&checked(LAYOUT));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    let head =
        "::error file=fleet.kdl,line=5,col=47,endLine=5,endColumn=53,title=spec/unknown-node::";
    assert_eq!(
        lines[1],
        format!(
            "{head}`colour` is not a word of `gpus`%0Ahere: not known here%0Ahelp: it knows `slice`"
        )
    );
    assert!(
        lines[0].contains("%0Afleet.kdl:4:47: each takes 2 of 8 memory slices"),
        "other places are named: {text}"
    );
}

/// The lab's files with one finding of our own.
fn with(finding: Diagnostic) -> Checked {
    let mut checked = checked("");
    checked.diagnostics = vec![finding];
    checked
}

#[test]
fn severities_have_the_words_of_each_tool() {
    for (severity, command, level) in [
        (Severity::Error, "::error ", "error"),
        (Severity::Warning, "::warning ", "warning"),
        (Severity::Note, "::notice ", "note"),
    ] {
        let checked = with(Diagnostic::new(&rules::OWNERSHIP_UNOWNED, "x").severity(severity));
        assert!(fleetc::render::github::report(&checked).starts_with(command));
        assert_eq!(run_of(&checked)["results"][0]["level"], level);
    }
}

#[test]
fn a_finding_without_a_place_or_over_several_lines_has_no_columns() {
    let none = with(Diagnostic::new(&rules::SPEC_MISSING, "100 %, a: b\r\n::error::c"));
    assert_eq!(
        fleetc::render::github::report(&none),
        "::error title=spec/missing::100 %25, a: b%0D%0A::error::c\n"
    );
    assert_eq!(run_of(&none)["results"][0]["locations"], json!([]));
    let span = Span { file: 0, start: 0, end: 40 };
    let several = with(Diagnostic::new(&rules::SPEC_MISSING, "x").at(span, ""));
    assert_eq!(
        fleetc::render::github::report(&several),
        "::error file=fleet.kdl,line=1,endLine=3,title=spec/missing::x\n"
    );
}

#[test]
fn the_command_prints_them_on_stdout() {
    let lab = repository().join("fleets/lab");
    for (format, out, err) in [("sarif", "{\n  \"$schema\"", ""), ("github", "", "no finding\n")] {
        let args = ["fleetc", "check", lab.as_str(), "--format", format].map(OsString::from);
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        assert_eq!(fleetc::cli::run(args, &mut stdout, &mut stderr), 0);
        let (stdout, stderr) =
            (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert!(stdout.starts_with(out) && stderr.ends_with(err), "{format}: {stdout}{stderr}");
    }
}
