//! Findings as text at two widths, and findings that are about two files.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use fleetc::Checked;
use fleetc::render::text::{Width, report};
use fleetc_schema::diag::{Diagnostic, Span, rules};
use fleetc_tests::{Form, check_text, plain, with_prelude};

const LAYOUT: &str = "pool \"slices\" {
    cluster \"serve\"; system \"dgx-h100\"; nodes \"mig[01-02]\"
    sharing \"mig\" strategy=\"mixed\" {
        gpus \"0-3\" {
            slice \"3g.40gb\" count=2
            slice \"2g.20gb\" count=2
        }
        gpus \"4-7\" { slice \"3g.40gb\" count=2 }
    }
}
";

fn with(findings: impl FnOnce(&mut Checked) -> Diagnostic) -> Checked {
    let mut checked = check_text(Form::Kdl, &with_prelude(Form::Kdl, LAYOUT)).unwrap();
    checked.diagnostics = vec![findings(&mut checked)];
    checked
}

fn token(file: u32, text: &str, token: &str) -> Span {
    let start = u32::try_from(text.find(token).unwrap()).unwrap();
    Span { file, start, end: start + u32::try_from(token.len()).unwrap() }
}

/// A layout that does not fit: two labels with long texts, a note and a long help line.
fn checked() -> Checked {
    with(|_| {
        let title = "2 × 3g.40gb + 2 × 2g.20gb do not fit on one h100-sxm5-80gb";
        let nearest = "1 × 3g.40gb + 2 × 2g.20gb  ·  2 × 3g.40gb  ·  1 × 3g.40gb + 1 × 2g.20gb";
        Diagnostic::new(&rules::MIG_NO_PLACEMENT, title)
            .at(
                token(0, LAYOUT, "slice \"3g.40gb\""),
                "each takes 4 of 8 memory slices, starting at 0 or 4",
            )
            .at(
                token(0, LAYOUT, "slice \"2g.20gb\""),
                "each takes 2 of 8 memory slices, starting at 0, 2 or 4",
            )
            .note("they need 12 memory slices, the GPU has 8")
            .help(format!("nearest that fit: {nearest}"))
    })
}

/// A finding about two files, the first of which has two labels.
fn about_two_files() -> Checked {
    with(|checked| {
        let base = "rack \"r1\" nodes=\"mig[01-02]\"\nrack \"r2\" nodes=\"mig[02-03]\"\n";
        let file = checked.sources.add("base/racks.kdl".into(), base.to_owned());
        let title =
            "node `mig02` stands in two racks, and no node can stand in more than one of them";
        Diagnostic::new(&rules::NAME_NODE_TWICE, title)
            .at(token(file, base, "\"mig[02-03]\""), "second")
            .at(token(0, LAYOUT, "nodes \"mig[01-02]\""), "its pool")
            .at(token(file, base, "\"mig[01-02]\""), "first")
            .note("mig01  r1\nmig02  r1 and r2, which is one rack more than a node can stand in")
            .help("remove it from one of the two")
    })
}

fn at(checked: &Checked, columns: usize) -> String {
    plain(&report(checked, Width::of(Some(columns))))
}

#[test]
fn in_60_columns_titles_labels_and_help_lines_are_broken() {
    let expected = "\
error[mig/no-placement]: 2 × 3g.40gb + 2 × 2g.20gb do not
  fit on one h100-sxm5-80gb
   ╭─[fleet.kdl:5:13]
 4 │         gpus \"0-3\" {
 5 │             slice \"3g.40gb\" count=2
   ·             ───────┬───────
   ·                    ╰─┤ each takes 4 of 8 memory
   ·                      │ slices, starting at 0 or 4
 6 │             slice \"2g.20gb\" count=2
   ·             ───────┬───────
   ·                    ╰─┤ each takes 2 of 8 memory
   ·                      │ slices, starting at 0, 2 or 4
 7 │         }
   ╰────
  note: they need 12 memory slices, the GPU has 8
  help: nearest that fit: 1 × 3g.40gb + 2 × 2g.20gb  ·
        2 × 3g.40gb  ·  1 × 3g.40gb + 1 × 2g.20gb

";
    assert_eq!(at(&checked(), 60), expected);
    assert_eq!(at(&checked(), 20), expected, "60 columns are the least");
}

#[test]
fn in_110_columns_they_stand_on_one_line() {
    let expected = "\
error[mig/no-placement]: 2 × 3g.40gb + 2 × 2g.20gb do not fit on one h100-sxm5-80gb
   ╭─[fleet.kdl:5:13]
 4 │         gpus \"0-3\" {
 5 │             slice \"3g.40gb\" count=2
   ·             ───────┬───────
   ·                    ╰── each takes 4 of 8 memory slices, starting at 0 or 4
 6 │             slice \"2g.20gb\" count=2
   ·             ───────┬───────
   ·                    ╰── each takes 2 of 8 memory slices, starting at 0, 2 or 4
 7 │         }
   ╰────
  note: they need 12 memory slices, the GPU has 8
  help: nearest that fit: 1 × 3g.40gb + 2 × 2g.20gb  ·  2 × 3g.40gb  ·  1 × 3g.40gb + 1 × 2g.20gb

";
    assert_eq!(at(&checked(), 110), expected);
    assert_eq!(
        plain(&report(&checked(), Width::default())),
        expected,
        "so it is without a terminal"
    );
}

#[test]
fn a_finding_about_two_files_shows_the_lines_of_both() {
    let expected = "\
error[name/node-twice]: node `mig02` stands in two racks,
  and no node can stand in more than one of them
   ╭─[base/racks.kdl:2:17]
 1 │ rack \"r1\" nodes=\"mig[01-02]\"
   ·                 ──────┬─────
   ·                       ╰── first
 2 │ rack \"r2\" nodes=\"mig[02-03]\"
   ·                 ──────┬─────
   ·                       ╰── second
   ╰────
   ╭─[fleet.kdl:2:41]
 1 │ pool \"slices\" {
 2 │     cluster \"serve\"; system \"dgx-h100\"; nodes \"mig[01-02]\"
   ·                                         ─────────┬────────
   ·                                                  ╰── its pool
 3 │     sharing \"mig\" strategy=\"mixed\" {
   ╰────
  note: mig01  r1
        mig02  r1 and r2, which is one rack more than a node
        can stand in
  help: remove it from one of the two

";
    assert_eq!(at(&about_two_files(), 60), expected);
    assert_eq!(at(&about_two_files(), 110).lines().count(), expected.lines().count() - 2);
}

#[test]
fn no_line_of_prose_is_wider_than_the_terminal() {
    for columns in [60, 70, 80, 100] {
        for checked in [checked(), about_two_files()] {
            for line in at(&checked, columns).lines().filter(|line| !line.contains(['│', '─']))
            {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
        }
    }
}

#[test]
fn colours_are_ansi_codes() {
    let text = report(&checked(), Width::default());
    assert!(text.starts_with("\u{1b}[31merror[mig/no-placement]:\u{1b}[0m 2 × 3g.40gb"), "{text}");
    assert!(!plain(&text).contains('\u{1b}'));
}

#[test]
fn the_head_of_a_box_counts_characters_as_json_does() {
    let text = "/* größer */ colour 1\nfleet \"x\"\n";
    let checked = check_text(Form::Kdl, text).unwrap();
    let drawn = plain(&report(&checked, Width::default()));
    assert!(drawn.contains("[fleet.kdl:1:14]"), "{drawn}");
}
