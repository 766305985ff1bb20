//! The Markdown files under `tests/diagnostics/` are the specification of what is reported.
//!
//! A block `kdl` or `yaml` is a fragment over the prelude. A comment `//~` (in YAML `#~`) says what
//! is expected on its line: `error[rule] "token": part of a help line`, the token as written in
//! backticks. Everything that is reported must be expected, and nothing else may be; only what of the
//! prelude is unused need not. A block `kdl topology` is about that family: warnings and notes of others
//! are left out, errors are not. A block `report` after a fragment holds the whole text report. A block
//! `csv nodes.csv` or `jsonl …` is a file that lies beside the fragments after it; what it expects is
//! not part of it.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use camino::Utf8Path;
use fleetc::Checked;
use fleetc::render::text::Width;
use fleetc_schema::diag::Severity;
use fleetc_tests::{
    Form, Texts, check_beside, fenced_blocks, file_of, folder, plain, repository, with_prelude,
};

/// What a comment expects.
#[derive(Debug, PartialEq, Eq, Clone)]
struct Expected {
    file: String,
    line: usize,
    rule: String,
    token: String,
    help: String,
}

fn expectations(file: &str, fragment: &str) -> Vec<Expected> {
    let mut all = Vec::new();
    for (index, line) in fragment.lines().enumerate() {
        for part in line.split("~ ").skip(1) {
            let part = part.trim_end_matches(['/', '#', ' ']);
            let (rule, rest) = part.split_once(' ').unwrap_or((part, ""));
            let mut quoted = rest.splitn(3, '`');
            let (_, token, help) = (quoted.next(), quoted.next(), quoted.next());
            all.push(Expected {
                file: file.to_owned(),
                line: index + 1,
                rule: rule.to_owned(),
                token: token.unwrap_or_default().to_owned(),
                help: help.unwrap_or_default().trim_start_matches(':').trim().to_owned(),
            });
        }
    }
    all
}

/// Compares what is reported with what is expected; gives what does not match.
fn mismatches(checked: &Checked, mut expected: Vec<Expected>, lines: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    for found in &checked.diagnostics {
        let span = found.labels.first().and_then(|label| checked.span(&label.place)).unwrap();
        let source = checked.sources.of(span).unwrap();
        let line = source.position(span.start).line as usize;
        // What a fragment does not use of the prelude is no news.
        if found.rule.name == "spec/unused" && line > lines {
            continue;
        }
        let token = checked.sources.text(span);
        let head = format!("{}[{}]", found.severity, found.rule.name);
        let matching = expected.iter().position(|e| {
            e.file == source.path
                && e.line == line
                && e.rule == head
                && (e.token.is_empty() || e.token == token)
                && (e.help.is_empty() || found.help.iter().any(|help| help.contains(&e.help)))
        });
        match matching {
            Some(at) => {
                expected.remove(at);
            }
            None => wrong.push(format!(
                "  {}:{line}: {head} `{token}` {:?}\n    {}",
                source.path, found.help, found.title
            )),
        }
    }
    wrong.extend(expected.iter().map(|e| format!("  not reported: {e:?}")));
    wrong
}

#[test]
fn everything_reported_is_expected_and_the_other_way_round() {
    let root = repository().join("tests/diagnostics");
    let pages = folder(&root).unwrap();
    assert!(!pages.is_empty());
    let mut wrong = Vec::new();
    let mut fragments = 0;
    for (name, page) in pages {
        assert_eq!(Utf8Path::new(&name).extension(), Some("md"), "{name}");
        let mut last: Option<Checked> = None;
        let mut beside = Texts::new();
        let mut expected_beside: Vec<Expected> = Vec::new();
        for (words, line, text) in fenced_blocks(&page) {
            if let Some(file) = file_of(&words) {
                expected_beside.retain(|expected| expected.file != file);
                expected_beside.extend(expectations(file, &text));
                let bare = |line: &str| line.split("//~").next().unwrap().trim_end().to_owned();
                let lines: Vec<String> = text.lines().map(bare).collect();
                beside.insert(file.to_owned(), lines.join("\n") + "\n");
                continue;
            }
            let (form, family) = words.split_once(' ').unwrap_or((&words, ""));
            let form = match form {
                "kdl" => Form::Kdl,
                "yaml" => Form::Yaml,
                "report" => {
                    let report = last.as_ref().map(report).unwrap_or_default();
                    if report != text {
                        wrong.push(format!("{name}:{line}: the report is\n{report}"));
                    }
                    continue;
                }
                _ => panic!("{name}:{line}: a block is kdl, yaml, csv, jsonl or report: `{words}`"),
            };
            fragments += 1;
            let mut checked = check_beside(form, &with_prelude(form, &text), &beside).unwrap();
            checked.diagnostics.retain(|found| {
                let about = family.is_empty() || found.rule.family() == family;
                about || found.severity == Severity::Error
            });
            let mut expected = expectations(form.file(), &text);
            let read = expected_beside.iter().filter(|expected| text.contains(&expected.file));
            expected.extend(read.cloned());
            let found = mismatches(&checked, expected, text.lines().count());
            if !found.is_empty() {
                wrong.push(format!("{name}:{line}:\n{}", found.join("\n")));
            }
            last = Some(checked);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(fragments > 20, "the suite has {fragments} fragments");
}

/// The text report without colour.
fn report(checked: &Checked) -> String {
    let text = plain(&fleetc::render::text::report(checked, Width::default()));
    text.trim_end_matches('\n').to_owned() + "\n"
}
