//! Each rule's page is true: its bad example makes this rule fire and no other error, its good one
//! gives no error and does not fire the rule.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use fleetc::{Checked, plan};
use fleetc_schema::diag::{Phase, Severity, rules};
use fleetc_tests::{Form, Texts, check_beside, check_text, fenced_blocks, file_of, with_prelude};

fn findings(checked: &Checked) -> Vec<(&'static str, Severity, String)> {
    checked.diagnostics.iter().map(|d| (d.rule.name, d.severity, d.title.clone())).collect()
}

#[test]
fn examples_of_every_page_do_what_the_page_says() {
    let mut wrong = Vec::new();
    for rule in rules::ALL {
        // Files that stand on a page before a fragment lie beside it.
        let mut beside = Texts::new();
        for (words, _, fragment) in fenced_blocks(rule.page) {
            if let Some(name) = file_of(&words) {
                beside.insert(name.to_owned(), fragment);
                continue;
            }
            let text = with_prelude(Form::Kdl, &fragment);
            let checked = check_beside(Form::Kdl, &text, &beside).unwrap();
            let found = findings(&checked);
            let fires = found.iter().filter(|(name, ..)| *name == rule.name).count();
            let other_error = found
                .iter()
                .any(|(name, severity, _)| *name != rule.name && *severity == Severity::Error);
            let right = match words.as_str() {
                "kdl old" | "kdl fail" | "kdl ok" if rule.phase == Phase::Plan => !other_error,
                "kdl fail" => fires == 1 && !other_error,
                "kdl ok" => fires == 0 && !other_error && checked.intent().is_some(),
                _ => continue,
            };
            if !right {
                wrong.push(format!("{} ({words}): {found:#?}", rule.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_finding_of_an_example_has_a_place_a_title_and_a_help_line() {
    for rule in rules::ALL {
        let mut beside = Texts::new();
        for (words, _, fragment) in fenced_blocks(rule.page) {
            if let Some(name) = file_of(&words) {
                beside.insert(name.to_owned(), fragment);
                continue;
            }
            if words != "kdl fail" || rule.phase == Phase::Plan {
                continue;
            }
            let text = with_prelude(Form::Kdl, &fragment);
            let checked = check_beside(Form::Kdl, &text, &beside).unwrap();
            for found in &checked.diagnostics {
                assert!(!found.help.is_empty(), "{}: no help", found.rule.name);
                assert!(!found.title.ends_with('.'), "{}", found.title);
                let first = found.labels.first().expect("a place");
                assert!(checked.span(&first.place).is_some(), "{}", found.rule.name);
            }
        }
    }
}

#[test]
fn examples_of_changes_do_what_the_page_says() {
    for rule in rules::ALL.iter().filter(|rule| rule.phase == Phase::Plan) {
        let blocks = fenced_blocks(rule.page);
        let after = |words: &str| {
            let (_, _, fragment) = blocks.iter().find(|(found, ..)| found == words).unwrap();
            check_text(Form::Kdl, &with_prelude(Form::Kdl, fragment)).unwrap()
        };
        let (old, bad, good) = (after("kdl old"), after("kdl fail"), after("kdl ok"));
        let names = |new: &Checked| {
            let found = plan::findings(old.intent().unwrap(), new.intent().unwrap());
            for finding in &found {
                assert!(!finding.help.is_empty(), "{}: no help", rule.name);
                let first = finding.labels.first().expect("a place");
                assert!(new.span(&first.place).is_some(), "{}", rule.name);
            }
            found.iter().map(|finding| finding.rule.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&bad), [rule.name]);
        assert_eq!(names(&good), [""; 0]);
        assert_eq!(names(&old), [""; 0]);
    }
}
