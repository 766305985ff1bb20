//! Files that nobody would write on purpose: each ends in a finding at the exact place, in the entry
//! file, in a file that it includes and in its base, and none takes long.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers, and measures"
)]

use std::ffi::OsString;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use fleetc::source::Form;

/// Far more than a check takes in a debug build on a busy machine, far less than a hang.
const SOON: Duration = Duration::from_secs(20);

const CLUSTER: &str = "cluster \"hpc\" { slurm \"24.11\" { controllers \"c\"; gres autodetect=\"nvml\"; driver \"580.1\" owner=\"os\" } }\n";

/// Where a hostile text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    Entry,
    Include,
    Base,
}

struct Spec {
    _dir: tempfile::TempDir,
    root: Utf8PathBuf,
    /// The file that holds the text, relative to the root.
    file: &'static str,
    entry: &'static str,
}

/// A spec with the text in one of its files. The entry file itself is all text.
fn spec(place: Where, form: Form, text: &[u8]) -> Spec {
    let dir = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::try_from(dir.path().canonicalize().unwrap()).unwrap();
    let (file, entry, around) = match (place, form) {
        (Where::Entry, Form::Kdl) => ("fleet.kdl", "fleet.kdl", String::new()),
        (Where::Entry, Form::Yaml) => ("fleet.yaml", "fleet.yaml", String::new()),
        (Where::Include, Form::Kdl) => {
            ("part.kdl", "fleet.kdl", format!("fleet \"x\" {{ include \"part.kdl\" }}\n{CLUSTER}"))
        }
        (Where::Include, Form::Yaml) => (
            "part.yaml",
            "fleet.kdl",
            format!("fleet \"x\" {{ include \"part.yaml\" }}\n{CLUSTER}"),
        ),
        (Where::Base, Form::Kdl) => {
            ("base.kdl", "fleet.kdl", "fleet \"x\" { extends \"base.kdl\" }\n".to_owned())
        }
        (Where::Base, Form::Yaml) => {
            ("base.yaml", "fleet.kdl", "fleet \"x\" { extends \"base.yaml\" }\n".to_owned())
        }
    };
    std::fs::write(root.join(entry), around).unwrap();
    std::fs::write(root.join(file), text).unwrap();
    Spec { _dir: dir, root, file, entry }
}

struct Found {
    code: u8,
    err: String,
    /// Rule, what is told of it, line, column, file.
    findings: Vec<(String, String, u64, u64, String)>,
}

/// Runs `fleetc check` in both forms of output.
fn check(spec: &Spec) -> Found {
    let start = Instant::now();
    let path = spec.root.join(spec.entry).to_string();
    let root = spec.root.to_string();
    let run = |format: &str| {
        let args = ["fleetc", "--root", &root, "check", &path, "--format", format];
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = fleetc::cli::run(args.map(OsString::from), &mut out, &mut err);
        (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    };
    let (code, text, err) = run("text");
    let (_, json, _) = run("json");
    let took = start.elapsed();
    assert!(took < SOON, "{took:?}");
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t' && c != '\u{1b}';
    assert!(!text.contains(harmful), "{:?}", text.find(harmful));
    let mut findings = Vec::new();
    if code == 1 {
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        for finding in document["diagnostics"].as_array().unwrap() {
            let label = &finding["labels"][0];
            let words = |key: &str| finding[key].as_array().unwrap().iter();
            let told: Vec<&str> =
                words("notes").chain(words("help")).map(|t| t.as_str().unwrap()).collect();
            findings.push((
                finding["rule"].as_str().unwrap().to_owned(),
                format!("{} | {}", finding["title"].as_str().unwrap(), told.join(" | ")),
                label["line"].as_u64().unwrap(),
                label["column"].as_u64().unwrap(),
                label["file"].as_str().unwrap().to_owned(),
            ));
        }
    }
    Found { code, err, findings }
}

/// One finding of this rule at this line and column of the file, with these words in it.
fn one(form: Form, text: impl AsRef<[u8]>, rule: &str, at: (u64, u64), words: &str) {
    let text = text.as_ref();
    let shown = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
    for place in [Where::Entry, Where::Include, Where::Base] {
        let spec = spec(place, form, text);
        let found = check(&spec);
        assert_eq!(found.code, 1, "{place:?} {shown}: {}", found.err);
        // A text that parses lacks what a spec needs; that is not the point here.
        let mut about =
            found.findings.iter().filter(|found| found.0 == rule && found.4 == spec.file);
        let Some((_, told, line, column, _)) = about.next() else {
            panic!("{place:?} {shown}: {:?}", found.findings)
        };
        assert_eq!((*line, *column), at, "{place:?} {shown}: {told}");
        assert!(told.contains(words), "{place:?} {shown}: {told}");
        assert!(found.findings.len() <= 100, "{}", found.findings.len());
    }
}

#[test]
fn deep_nesting_is_refused_at_its_first_brace_too_many() {
    let deep = "deeper than 32 levels";
    one(Form::Kdl, "a {".repeat(20_000), "spec/syntax", (1, 99), deep);
    one(Form::Yaml, "- ".repeat(20_000), "spec/syntax", (1, 67), deep);
    one(Form::Yaml, "{a: ".repeat(30), "spec/syntax", (1, 117), "this is not YAML");
    one(Form::Yaml, "[".repeat(20_000), "spec/syntax", (1, 256), deep);
    let block: String = (0..500).map(|depth| " ".repeat(depth) + "a:\n").collect();
    one(Form::Yaml, block, "spec/syntax", (34, 34), deep);
    one(Form::Kdl, "/*".repeat(2_000), "spec/syntax", (1, 1), "comment");
    one(Form::Kdl, "/- ".repeat(2_000), "spec/syntax", (1, 13), "more than 4 `/-`");
}

#[test]
fn aliases_that_multiply_are_refused_at_the_first() {
    let mut bomb = "a: &a0 [x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..100 {
        let many = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("b{level}: &a{level} [{many}]\n"));
    }
    one(Form::Yaml, bomb, "spec/syntax", (2, 10), "write the value out");
}

#[test]
fn bytes_that_are_not_utf8_are_shown_where_they_are() {
    one(Form::Kdl, b"team \"a\"\nteam \"b\xff\"\n", "spec/syntax", (2, 8), "not UTF-8");
    one(Form::Yaml, b"team:\n  b\xc3: true\n", "spec/syntax", (2, 4), "save it as UTF-8");
    let utf16: Vec<u8> = [0xfeff_u16]
        .into_iter()
        .chain("team \"a\"\n".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    one(Form::Kdl, utf16, "spec/syntax", (1, 1), "UTF-16");
}

#[test]
fn marks_and_line_ends_of_other_systems_change_no_place() {
    for start in ["", "\u{feff}"] {
        for end in ["\n", "\r\n"] {
            let kdl = format!("{start}team \"a\" {{{end}    colour 1{end}}}{end}");
            one(Form::Kdl, kdl, "spec/unknown-node", (2, 5), "not a word of `team`");
            let yaml = format!("{start}team:{end}  a:{end}    colour: 1{end}");
            one(Form::Yaml, yaml, "spec/unknown-node", (3, 5), "not a word of `team`");
        }
    }
    one(Form::Kdl, "team \"a\"\n\u{feff}team \"b\"\n", "spec/syntax", (2, 1), "U+FEFF");
    one(Form::Yaml, "team:\n  a: true\n\u{feff}tier: {}\n", "spec/syntax", (3, 1), "BOM");
}

#[test]
fn what_is_stated_twice_is_shown_where_it_is_stated_again() {
    let twice = "keep one of the two";
    let kdl = "team \"a\" { quota \"p\" guaranteed=1 guaranteed=2 }\n";
    one(Form::Kdl, kdl, "spec/duplicate", (1, 35), twice);
    one(Form::Kdl, "team \"a\" {\n weight 1\n weight 2\n}\n", "spec/duplicate", (3, 2), twice);
    one(Form::Yaml, "team:\n  a: {weight: 1, weight: 2}\n", "spec/duplicate", (2, 18), twice);
    one(Form::Yaml, "team: {a: true}\nteam: {b: true}\n", "spec/duplicate", (2, 1), twice);
}

#[test]
fn numbers_that_no_place_takes_keep_their_digits() {
    for number in [
        "9007199254740993",
        "18446744073709551616",
        "170141183460469231731687303715884105727",
        "-1",
    ] {
        let kdl = format!("team \"a\" {{ quota \"p\" guaranteed={number} }}\n");
        one(Form::Kdl, kdl, "spec/out-of-range", (1, 33), number);
        let yaml = format!("team: {{a: {{quota: [{{is: p, guaranteed: {number}}}]}}}}\n");
        one(Form::Yaml, yaml, "spec/out-of-range", (1, 40), number);
    }
    let (huge, far) = ("170141183460469231731687303715884105728", "1e400");
    let kdl = |number| format!("team \"a\" {{ quota \"p\" guaranteed={number} }}\n");
    one(Form::Kdl, kdl(huge), "spec/syntax", (1, 33), "is too large a number");
    one(Form::Kdl, kdl(far), "spec/out-of-range", (1, 33), far);
    for number in [huge, far] {
        let yaml = format!("team: {{a: {{quota: [{{is: p, guaranteed: {number}}}]}}}}\n");
        one(Form::Yaml, yaml, "spec/out-of-range", (1, 40), number);
    }
}

#[test]
fn letters_that_look_like_others_are_named() {
    let cyrillic = "it holds U+0435, a Cyrillic `\u{435}` that looks like `e`";
    one(Form::Kdl, "t\u{435}am \"a\"\n", "spec/unknown-node", (1, 1), cyrillic);
    one(Form::Yaml, "t\u{435}am: {a: true}\n", "spec/unknown-node", (1, 1), cyrillic);
    let name =
        "team \"a\" { quota \"tr\u{430}in\" guaranteed=1 }\npool \"train\" { cluster \"hpc\" }\n";
    one(Form::Kdl, name, "name/unknown", (1, 18), "a Cyrillic `\u{430}` that looks like `a`");
    one(Form::Kdl, "team \u{201c}a\u{201d}\n", "spec/syntax", (1, 6), "that looks like `\"`");
    one(Form::Yaml, "team: {a\u{2013}b: true}\n", "name/illegal", (1, 8), "that looks like `-`");
}

#[test]
fn what_cannot_be_seen_is_named() {
    let mark = "it holds U+200B, a mark of no width";
    one(Form::Kdl, "te\u{200b}am \"a\"\n", "spec/unknown-node", (1, 1), mark);
    one(Form::Yaml, "te\u{200b}am: {a: true}\n", "spec/unknown-node", (1, 1), mark);
    one(Form::Kdl, "team \"a\u{200b}\"\n", "name/illegal", (1, 6), mark);
    one(Form::Kdl, "team \"a\u{202e}\"\n", "spec/syntax", (1, 8), "turns the direction of text");
    one(
        Form::Kdl,
        "team \"a\u{0}b\"\n",
        "spec/syntax",
        (1, 8),
        "U+0000 may not stand in a KDL file",
    );
    one(Form::Kdl, "team \"a\u{1b}[2J\"\n", "spec/syntax", (1, 8), "a control character");
    one(Form::Yaml, "team: {\"a\u{0}\": true}\n", "spec/syntax", (1, 10), "this is not YAML");
    // Written as an escape it is a name like any other, and printed as one.
    one(Form::Kdl, "team \"a\\u{1b}[2J\"\n", "name/illegal", (1, 6), "");
    one(Form::Yaml, "team: {\"a\\e[2J\": true}\n", "name/illegal", (1, 8), "");
}

#[test]
fn tabs_that_yaml_does_not_take_are_shown() {
    let blanks = "indent with blanks";
    one(Form::Yaml, "team:\n\ta: true\n", "spec/syntax", (2, 1), blanks);
    one(Form::Yaml, "team:\n  a:\n  \tweight: 1\n", "spec/syntax", (3, 3), blanks);
}

#[test]
fn a_huge_file_is_refused_unread() {
    for place in [Where::Entry, Where::Include, Where::Base] {
        for form in [Form::Kdl, Form::Yaml] {
            let spec = spec(place, form, b"");
            // Sparse: it takes no room on the disk.
            let file =
                std::fs::File::options().write(true).open(spec.root.join(spec.file)).unwrap();
            file.set_len(100 << 20).unwrap();
            let found = check(&spec);
            match place {
                Where::Entry => {
                    assert_eq!(found.code, 2);
                    assert!(found.err.contains("larger than 4 MiB"), "{}", found.err);
                }
                Where::Include | Where::Base => {
                    assert_eq!(found.code, 1);
                    let (rule, told, line, ..) = &found.findings[0];
                    assert_eq!((rule.as_str(), *line), ("spec/include-not-found", 1));
                    assert!(told.contains("larger than 4 MiB"), "{told}");
                }
            }
        }
    }
}

#[test]
fn files_that_are_too_large_together_or_too_many_are_refused_once() {
    let dir = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::try_from(dir.path().canonicalize().unwrap()).unwrap();
    let big = ("#".repeat(1_500) + "\n").repeat(1_000);
    let mut names = String::new();
    for number in 0..4 {
        let name = format!("part{number}.yaml");
        std::fs::write(root.join(&name), &big).unwrap();
        names.push_str(&format!(" \"{name}\""));
    }
    let check_of = |text: String| {
        std::fs::write(root.join("fleet.kdl"), text).unwrap();
        check(&Spec {
            _dir: tempfile::tempdir().unwrap(),
            root: root.clone(),
            file: "fleet.kdl",
            entry: "fleet.kdl",
        })
    };
    let found = check_of(format!("fleet \"x\" {{ include{names} }}\n"));
    assert!(found.findings[0].1.contains("at most 4 MiB together"), "{:?}", found.findings);

    let many: String = (0..1_500).map(|number| format!(" \"n{number}.kdl\"")).collect();
    let found = check_of(format!("fleet \"x\" {{ include{many} }}\n"));
    assert_eq!(found.findings.len(), 100);
    assert!(found.findings[99].1.contains("more findings about this file are not shown"));
}

#[test]
fn a_file_of_mistakes_gives_a_hundred_findings_and_says_how_many_more() {
    let mistakes = "colour 1\n".repeat(1_000) + "team \"a\" { nodes \"x\" }\n";
    let spec = spec(Where::Entry, Form::Kdl, mistakes.as_bytes());
    let found = check(&spec);
    assert_eq!((found.code, found.findings.len()), (1, 100));
    // 1,000 unknown words, one unknown word of the team; that there is no fleet.
    assert!(found.findings[99].1.contains("902 more findings"), "{}", found.findings[99].1);
}

#[test]
fn what_repeats_costs_by_its_number_and_not_by_its_square() {
    let many =
        |count: usize, each: &dyn Fn(usize) -> String| -> String { (0..count).map(each).collect() };
    let long = "x".repeat(50_000);
    let quotas = |count| many(count, &|n| format!("      - {{is: p{n}, guaranteed: 1}}\n"));
    // Most of them in YAML, which a debug build reads faster.
    for (form, text) in [
        (Form::Yaml, format!("team:\n{}", many(3_000, &|n| format!("  t{n}: true\n")))),
        (Form::Yaml, format!("team:\n{}", many(3_000, &|_| "  t: true\n".to_owned()))),
        (Form::Yaml, format!("team: {{{}}}", many(3_000, &|n| format!("t{n}: {{}},")))),
        (Form::Yaml, format!("team:\n  t:\n    quota:\n{}", quotas(1_000))),
        (Form::Yaml, format!("team:\n  {long}:\n    quota:\n{}", quotas(1_000))),
        (Form::Yaml, format!("\"{}\": 1\n", "x".repeat(20_000))),
        (Form::Yaml, many(3_000, &|n| format!("w{n}: 1\n"))),
        (Form::Kdl, many(500, &|n| format!("team \"t{n}\";"))),
        (Form::Kdl, format!("{} \"a\"\n", "x".repeat(20_000))),
        (Form::Kdl, "colour 1;".repeat(500)),
    ] {
        let found = check(&spec(Where::Base, form, text.as_bytes()));
        assert!(found.code <= 1, "{}: {}", &text[..40], found.err);
    }
    // An overlay as large as its base.
    let teams = format!("team:\n{}", many(3_000, &|n| format!("  t{n}: {{weight: 2}}\n")));
    let base = spec(Where::Base, Form::Yaml, teams.as_bytes());
    let names: Vec<String> = (0..1_500).map(|number| format!("t{number}")).collect();
    let over = format!(
        "fleet: {{x: {{extends: base.yaml}}}}\nremove: {{team: [{}]}}\n{teams}",
        names.join(", ")
    );
    std::fs::write(base.root.join("fleet.yaml"), over).unwrap();
    let found = check(&Spec { entry: "fleet.yaml", ..base });
    assert_eq!((found.code, found.findings.len()), (0, 0), "{:?}", found.findings.first());
}

#[test]
fn a_line_longer_than_any_terminal_is_drawn_around_its_mistake() {
    let text = format!("/*{}*/ colour 1 /*{}*/\n", "-".repeat(70_000), "-".repeat(70_000));
    let spec = spec(Where::Entry, Form::Kdl, text.as_bytes());
    let path = spec.root.join(spec.entry).to_string();
    let args = ["fleetc", "check", &path].map(OsString::from);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    assert_eq!(fleetc::cli::run(args, &mut out, &mut err), 1);
    let out = fleetc_tests::plain(&String::from_utf8(out).unwrap());
    assert!(out.contains("[fleet.kdl:1:70006]"), "{out}");
    assert!(out.contains("--*/ colour 1 /*--") && out.len() < 10_000, "{out}");
}
