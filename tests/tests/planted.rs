//! Fifty mistakes in one fleet of several files, KDL, YAML and an inventory, are fifty findings in one run.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::collections::BTreeMap;

use fleetc_tests::{check_fleet, folder, repository};

/// File, line, `error[rule]` and token.
type Finding = (String, usize, String, String);

/// What the comments `//~` and `#~` of a file expect.
fn planted(file: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for part in line.split("~ ").skip(1) {
            let (rule, token) = part.split_once(' ').unwrap_or((part, ""));
            let token = token.trim().trim_matches('`').to_owned();
            found.push((file.to_owned(), index + 1, rule.to_owned(), token));
        }
    }
    found
}

#[test]
fn fifty_planted_mistakes_are_fifty_findings() {
    let spec = "tests/planted";
    let mut wanted = Vec::new();
    for (name, text) in folder(&repository().join(spec)).unwrap() {
        wanted.extend(planted(&format!("{spec}/{name}"), &text));
    }
    // A table has no comments.
    let row =
        (format!("{spec}/nodes.csv"), 4, "error[name/unknown]".to_owned(), "slcies".to_owned());
    wanted.push(row);
    let count = wanted.len();

    let checked = check_fleet(spec).unwrap();
    let mut reported: Vec<Finding> = Vec::new();
    for found in &checked.diagnostics {
        let span = checked.span(&found.labels[0].place).unwrap();
        let source = checked.sources.of(span).unwrap();
        let line = source.position(span.start).line as usize;
        let rule = format!("{}[{}]", found.severity, found.rule.name);
        let token = checked.sources.text(span).to_owned();
        reported.push((source.path.to_string(), line, rule, token));
        assert!(!found.help.is_empty(), "{}: no help", found.title);
    }
    let mut difference: BTreeMap<Finding, i32> = BTreeMap::new();
    for finding in wanted {
        *difference.entry(finding).or_default() -= 1;
    }
    for finding in reported {
        *difference.entry(finding).or_default() += 1;
    }
    difference.retain(|_, count| *count != 0);
    assert!(difference.is_empty(), "-1 is planted, +1 is reported: {difference:?}");
    assert_eq!(count, 50);
}
