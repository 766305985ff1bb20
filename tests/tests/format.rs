//! `fleetc fmt` and `fleetc convert`: nothing is lost, nothing changes its meaning, and doing it again
//! changes nothing.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::ffi::OsString;

use camino::Utf8PathBuf;
use fleetc::format::convert::convert;
use fleetc::format::format;
use fleetc::language::kinds::Spec;
use fleetc::language::{Arg, Form as FieldForm, Kind, Occurs};
use fleetc::source::Form;
use fleetc_tests::{Texts, check_text, compiled, folder, repository};
use proptest::prelude::*;

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

/// The output of a spec, but for the side table.
fn output(form: Form, text: &str) -> Texts {
    let named = match form {
        Form::Kdl => fleetc_tests::Form::Kdl,
        Form::Yaml => fleetc_tests::Form::Yaml,
    };
    let checked = check_text(named, text).unwrap();
    let found: Vec<&String> = checked.diagnostics.iter().map(|found| &found.title).collect();
    let mut output = compiled(&checked).unwrap_or_else(|| panic!("{found:?}\n{text}"));
    output.remove(fleetc::SOURCES_FILE);
    output
}

fn lab(form: Form) -> String {
    let file = match form {
        Form::Kdl => "fleets/lab/fleet.kdl",
        Form::Yaml => "fleets/lab/yaml/fleet.yaml",
    };
    std::fs::read_to_string(repository().join(file)).unwrap()
}

#[test]
fn fleets_to_copy_are_in_style() {
    for (path, text) in folder(&repository().join("fleets")).unwrap() {
        let form = match path.rsplit_once('.') {
            Some((_, "kdl")) => Form::Kdl,
            Some((_, "yaml")) => Form::Yaml,
            _ => continue,
        };
        assert_eq!(format(form, &text).unwrap(), text, "{path}: fleetc fmt");
    }
}

#[test]
fn of_yaml_only_blanks_and_line_ends_change() {
    let lab = lab(Form::Yaml);
    let noisy = format!("{}\n \n", lab.replace('\n', " \t\r\n"));
    assert_eq!(format(Form::Yaml, &noisy).unwrap(), lab);
}

#[test]
fn a_fleet_compiles_to_the_same_bytes_in_its_other_form_and_back() {
    for (from, to) in [(Form::Kdl, Form::Yaml), (Form::Yaml, Form::Kdl)] {
        let text = lab(from);
        let there = convert(from, &text).unwrap();
        assert_eq!(there.dropped, 0);
        assert_eq!(output(to, &there.text), output(from, &text));
        let back = convert(to, &there.text).unwrap();
        assert_eq!(output(from, &back.text), output(from, &text));
        assert_eq!(format(to, &there.text).unwrap(), there.text);
        assert_eq!(format(from, &back.text).unwrap(), back.text);
    }
}

// ---- noise in the text of a fleet ------------------------------------------------------------

/// Words, strings, braces, semicolons and line ends of a text without comments.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            ' ' => {
                rest = &rest[1..];
                continue;
            }
            '{' | '}' | ';' | '\n' => 1,
            _ => {
                let mut quoted = false;
                let end = rest.find(|c: char| {
                    quoted ^= c == '"';
                    !quoted && " {};\n".contains(c)
                });
                end.unwrap_or(rest.len())
            }
        };
        tokens.push(&rest[..length]);
        rest = &rest[length..];
    }
    tokens
}

/// Noise that KDL takes between two tokens, with `N` for the number of the comment.
fn noise(before: &str, after: &str) -> &'static [&'static str] {
    let starts = |token: &str| matches!(token, "{" | ";" | "\n");
    let ends = |token: &str| matches!(token, "}" | ";" | "\n");
    match (starts(before), ends(after)) {
        (false, false) => &[
            " ",
            "  ",
            "\t",
            " /* N */ ",
            "/* N\n  N */",
            " \\\n  ",
            "\\ // N\n",
            " /-\"gone\" ",
            " /-gone=1\t",
        ][..if after == "{" || before == "}" { 6 } else { 9 }],
        (true, false) => &[
            "",
            " ",
            "\n",
            "\n\n\n",
            "// N\n",
            " /* N */ ",
            "/* N */\n",
            "/* N\n N */ ",
            "\r\n\t",
            "\n/-gone { a 1; b }\n",
            "\n/- // N\ngone 1\n",
        ],
        (false, true) if after == ";" => &["", " ", " /* N */", "\t"],
        (false, true) if after == "\n" => {
            &["", "  ", ";", " ; ", " // N", "; // N", " /* N */ ", "; /* N */", " \\ // N\n"]
        }
        (false, true) => &["", " ", ";", "\n", "\n\n", " // N\n", "; /* N */ ", "\n// N\n"],
        (true, true) => &["", " ", "\n", " // N\n", "/* N */\n", "\n\n\n"],
    }
}

/// The fleet with noise; `picks` choose it. Gives the comments too.
fn noisy(text: &str, picks: &[usize]) -> (String, Vec<String>) {
    let tokens = tokens(text);
    let mut noisy = String::new();
    let mut comments = Vec::new();
    let mut before = "\n";
    for (index, token) in tokens.iter().enumerate() {
        let choices = noise(before, token);
        let pick = picks[index % picks.len()];
        // Most boundaries stay as they are, so that lines stay lines.
        let plain = if matches!((before, *token), ("{" | ";" | "\n", _) | (_, "}" | ";" | "\n")) {
            ""
        } else {
            " "
        };
        let chosen = if pick.is_multiple_of(3) { choices[pick / 3 % choices.len()] } else { plain };
        if chosen.contains('N') {
            let name = format!("n{index}n");
            comments.extend(vec![name.clone(); chosen.matches('N').count()]);
            noisy.push_str(&chosen.replace('N', &name));
        } else {
            noisy.push_str(chosen);
        }
        noisy.push_str(token);
        before = token;
    }
    (noisy, comments)
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn noise_goes_and_comments_stay(picks in prop::collection::vec(0_usize..99, 97)) {
        let lab = lab(Form::Kdl).lines().filter(|l| !l.starts_with("//")).fold(
            String::new(), |text, line| text + line + "\n",
        );
        let (noisy, comments) = noisy(&lab, &picks);
        let once = format(Form::Kdl, &noisy).unwrap_or_else(|why| panic!("{why:?}\n{noisy}"));
        prop_assert_eq!(&format(Form::Kdl, &once).unwrap(), &once);
        prop_assert_eq!(output(Form::Kdl, &once), output(Form::Kdl, &lab));
        for comment in &comments {
            let expected = comments.iter().filter(|other| *other == comment).count();
            prop_assert_eq!(once.matches(comment.as_str()).count(), expected, "{}", comment);
        }
        for line in once.lines() {
            prop_assert!(!line.ends_with([' ', '\t', '\r', ';']), "{}", line);
        }
        prop_assert!(!once.contains("\n\n\n") && once.ends_with('\n') && !once.ends_with("\n\n"));
        let yaml = convert(Form::Kdl, &once).unwrap();
        prop_assert_eq!(output(Form::Yaml, &yaml.text), output(Form::Kdl, &lab));
    }
}

// ---- specs that the table of kinds allows ------------------------------------------------------

/// Values that readers take for something else, or that need care.
const ODD: &[&str] = &[
    "\"no\"",
    "\"08\"",
    "\"1e3\"",
    "\"1.10\"",
    "\"12:30\"",
    "\"~\"",
    "\"\"",
    "\" a \"",
    "\"a: b\"",
    "\"- a\"",
    "\"a #b\"",
    "\"#a\"",
    "\"[a]\"",
    "\"{a: b}\"",
    "\"&a\"",
    "\"*a\"",
    "\"<<\"",
    "\"is\"",
    "\"true\"",
    "\"é\"",
    "\"a\\nb\\n\"",
    "\"a\\n\\n b\"",
    "\"\\t\"",
    "\"\\\"'\\\\\"",
    "\"gpu[01-04]\"",
    "\">=580\"",
    "\"\\u{85}\"",
    "#true",
    "#false",
    "#null",
    "0",
    "-7",
    "0x1f",
    "1_000",
    "1.50",
    "-0.5",
    "1e3",
    "2.5E-4",
    "bare",
    "#\"raw\"#",
];
const SIDES: &[&str] = &["", "", "", "", " // side", " /* side */", " //", " // a: b # c"];
const ABOVE: &[&str] =
    &["", "", "", "", "\n", "// above\n", "\n// a\n\n// b\n", "/* x\n * y */\n", "/-gone 1\n"];

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(texts).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        one_of(ODD),
        "[a-zA-Z0-9 :,.#'-]{0,12}".prop_map(|text| format!("\"{text}\"")),
        any::<i64>().prop_map(|number| number.to_string()),
    ]
}

/// One line of an item and what it holds.
fn node(
    head: String,
    values: Vec<String>,
    inside: Option<String>,
    above: &str,
    side: &str,
) -> String {
    let values: String = values.iter().map(|value| format!(" {value}")).collect();
    match inside {
        Some(inside) => format!("{above}{head}{values} {{{side}\n{inside}}}\n"),
        None => format!("{above}{head}{values}{side}\n"),
    }
}

/// Items of a kind: the word, what follows it, its properties and children. Not a spec without
/// mistakes, but one whose words stand where they belong.
fn items(kind: &'static Kind, most: usize, depth: u32) -> BoxedStrategy<String> {
    // What is neither is a name with values after it.
    let no_values = matches!(kind.arg, Arg::Nothing | Arg::Name(_));
    let (least, more) = match kind.arg {
        Arg::Value { required, .. } => (usize::from(required), 1),
        _ => (0, if no_values { 0 } else { 3 }),
    };
    let has_name = !matches!(kind.arg, Arg::Nothing | Arg::Value { .. });
    let item = (
        prop::collection::vec(value(), least..=more),
        properties(kind),
        prop::option::of(fields(kind, depth)),
        one_of(ABOVE),
        one_of(SIDES),
        "[a-z0-9.\\[\\]: -]{0,6}",
    );
    prop::collection::vec(item, 0..=most)
        .prop_map(move |items| {
            let items = items.into_iter().enumerate();
            let item = items.map(|(index, (mut values, properties, inside, above, side, name))| {
                if has_name {
                    values.insert(0, format!("\"{name}{index}\""));
                }
                values.extend(properties);
                node(kind.name.to_owned(), values, inside, &above, &side)
            });
            item.collect()
        })
        .boxed()
}

fn properties(kind: &'static Kind) -> BoxedStrategy<Vec<String>> {
    let fields = kind.fields.iter().filter(|field| !field.is_child());
    let fields: Vec<_> = fields
        .map(|field| {
            prop::option::of(value().prop_map(|value| format!("{}={value}", field.key))).boxed()
        })
        .collect();
    fields.prop_map(|fields| fields.into_iter().flatten().collect()).boxed()
}

/// The children of an item.
fn fields(kind: &'static Kind, depth: u32) -> BoxedStrategy<String> {
    let leaf = |key: &'static str, most: usize| {
        let leaf = (prop::collection::vec(value(), 1..=most), one_of(ABOVE), one_of(SIDES));
        let leaf = leaf.prop_map(move |(values, above, side)| {
            node(key.to_owned(), values, None, &above, &side)
        });
        prop::option::weighted(0.3, leaf).prop_map(Option::unwrap_or_default).boxed()
    };
    let fields: Vec<BoxedStrategy<String>> = kind
        .fields
        .iter()
        .filter(|field| field.is_child())
        .map(|field| match (&field.form, field.occurs) {
            (FieldForm::Property(_) | FieldForm::Value(_), _) => leaf(field.key, 1),
            (FieldForm::List(_), _) => leaf(field.key, 3),
            (FieldForm::Kind(_), _) if depth == 0 => Just(String::new()).boxed(),
            (FieldForm::Kind(child), Occurs::Named | Occurs::Listed) => {
                items(child(), 2, depth - 1)
            }
            (FieldForm::Kind(child), _) => items(child(), 1, depth - 1),
        })
        .collect();
    fields.prop_map(|fields| fields.concat()).boxed()
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn any_spec_goes_to_yaml_and_back(kdl in fields(Spec::kind(), 4)) {
        let yaml = convert(Form::Kdl, &kdl).unwrap_or_else(|why| panic!("{why:?}\n{kdl}"));
        prop_assert_eq!(yaml.dropped, kdl.matches("/-gone").count(), "{}", yaml.text);
        let read: Result<serde_yaml::Value, _> = serde_yaml::from_str(&yaml.text);
        prop_assert!(read.is_ok(), "another reader: {:?}\n{}", read, yaml.text);
        prop_assert_eq!(&format(Form::Yaml, &yaml.text).unwrap(), &yaml.text);

        let back = convert(Form::Yaml, &yaml.text).unwrap_or_else(|why| panic!("{why:?}\n{kdl}"));
        prop_assert_eq!(back.dropped, 0);
        prop_assert_eq!(&format(Form::Kdl, &back.text).unwrap(), &back.text);
        let again = convert(Form::Kdl, &back.text).unwrap();
        prop_assert_eq!(again.dropped, 0);
        let third = convert(Form::Yaml, &again.text).unwrap();
        prop_assert_eq!(third.text, back.text);
    }
}

#[test]
fn every_comment_of_a_yaml_file_finds_a_place() {
    let mut text = String::new();
    for (index, line) in lab(Form::Yaml).lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        text.push_str(&format!("{:indent$}# o{index}o\n{line} # s{index}s\n", ""));
    }
    let kdl = convert(Form::Yaml, &text).unwrap();
    assert_eq!(kdl.dropped, 0);
    for (index, _) in lab(Form::Yaml).lines().enumerate() {
        for comment in [format!("// o{index}o\n"), format!("s{index}s\n")] {
            assert_eq!(kdl.text.matches(&comment).count(), 1, "{comment}\n{}", kdl.text);
        }
    }
    assert_eq!(output(Form::Kdl, &kdl.text), output(Form::Yaml, &text));
}

// ---- the command line --------------------------------------------------------------------------

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

/// A folder with files.
fn scratch(files: &[(&str, &str)]) -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::try_from(dir.path().canonicalize().unwrap()).unwrap();
    for (name, text) in files {
        std::fs::write(path.join(name), text).unwrap();
    }
    (dir, path)
}

#[test]
fn fmt_writes_what_changes_and_touches_nothing_else() {
    let (_dir, root) = scratch(&[
        ("fleet.kdl", "fleet  \"x\";\n"),
        ("good.kdl", "fleet \"x\"\n"),
        ("marked.yaml", "\u{feff}fleet: {x: true}\r\n"),
    ]);
    let path = |name: &str| root.join(name).to_string();
    let time = |name: &str| std::fs::metadata(root.join(name)).unwrap().modified().unwrap();
    let good = time("good.kdl");
    let (folder, good_file, yaml) = (root.to_string(), path("good.kdl"), path("marked.yaml"));
    let files = [folder.as_str(), good_file.as_str(), yaml.as_str()];
    let changed = format!("{}\n{yaml}\n", path("fleet.kdl"));

    let check = run(&[&["fmt", "--check"], &files[..]].concat());
    assert_eq!((check.code, check.out.as_str(), check.err.as_str()), (1, changed.as_str(), ""));
    assert_eq!(std::fs::read_to_string(path("fleet.kdl")).unwrap(), "fleet  \"x\";\n");

    let write = run(&[&["fmt"], &files[..]].concat());
    assert_eq!((write.code, write.out.as_str()), (0, changed.as_str()));
    assert_eq!(std::fs::read_to_string(path("fleet.kdl")).unwrap(), "fleet \"x\"\n");
    assert_eq!(std::fs::read_to_string(&yaml).unwrap(), "fleet: {x: true}\n");
    assert_eq!(time("good.kdl"), good);

    let again = run(&[&["fmt", "--check"], &files[..]].concat());
    assert_eq!((again.code, again.out.as_str()), (0, ""));
    assert_eq!(root.read_dir_utf8().unwrap().count(), 3, "no file is left behind");
}

#[test]
fn fmt_refuses_what_does_not_parse_and_then_writes_nothing() {
    let (_dir, root) =
        scratch(&[("a.kdl", "a  1\n"), ("b.kdl", "pool {\n"), ("c.yaml", "a:\t1\n")]);
    let path = |name: &str| root.join(name).to_string();
    let refused = run(&["fmt", &path("a.kdl"), &path("b.kdl"), &path("c.yaml")]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert!(refused.err.contains("a `{` is not closed"), "{}", refused.err);
    assert!(refused.err.contains("a tab stands between the words"), "{}", refused.err);
    assert_eq!(std::fs::read_to_string(path("a.kdl")).unwrap(), "a  1\n");

    assert_eq!(run(&["fmt", &path("nowhere.kdl")]).code, 2);
    assert_eq!(run(&["fmt"]).code, 2);
    assert_eq!(run(&["fmt", &path("a.kdl"), "--form", "kdl"]).code, 2);
    assert_eq!(run(&["fmt", "-"]).code, 2, "standard input has no form of its own");
}

#[cfg(unix)]
#[test]
fn fmt_keeps_links_and_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let (_dir, root) = scratch(&[("real.kdl", "a  1\n")]);
    let (real, link) = (root.join("real.kdl"), root.join("fleet.kdl"));
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&real, &link).unwrap();
    assert_eq!(run(&["fmt", link.as_str()]).code, 0);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "a 1\n");
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn convert_writes_the_other_form_and_says_what_it_dropped() {
    let lab = repository().join("fleets/lab").to_string();
    let (_dir, root) = scratch(&[]);
    let file = root.join("fleet.yaml").to_string();
    let printed = run(&["convert", &lab, "--to", "yaml"]);
    assert_eq!((printed.code, printed.err.as_str()), (0, ""));
    let written = run(&["convert", &lab, "--to", "yaml", "-o", &file]);
    assert_eq!((written.code, written.out.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), printed.out);
    assert_eq!(run(&["check", &file]).code, 0);

    let spec = root.join("fleet.kdl");
    std::fs::write(&spec, "fleet \"x\" /* lost */ { /-label-prefix \"a\" }\n").unwrap();
    let dropped = run(&["convert", spec.as_str(), "--to", "yaml"]);
    assert_eq!((dropped.code, dropped.out.as_str()), (0, "fleet:\n  x: true\n"));
    assert!(dropped.err.contains("2 comments dropped"), "{}", dropped.err);
}

#[test]
fn convert_refuses_a_spec_with_errors_and_its_own_form() {
    let (_dir, root) = scratch(&[("fleet.kdl", "fleet \"x\" { colour \"red\" }\n")]);
    let spec = root.join("fleet.kdl").to_string();
    let refused = run(&["convert", &spec, "--to", "yaml"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert!(refused.err.contains("`colour` is not a word of `fleet`"), "{}", refused.err);

    std::fs::write(&spec, "fleet \"x\"\n").unwrap();
    let same = run(&["convert", &spec, "--to", "kdl"]);
    assert_eq!(same.code, 2);
    assert!(same.err.contains("KDL already"), "{}", same.err);
    let named = run(&["convert", &spec, "--to", "yaml", "-o", &spec]);
    assert_eq!(named.code, 2);
    assert_eq!(std::fs::read_to_string(&spec).unwrap(), "fleet \"x\"\n");
}

#[test]
fn a_folder_is_converted_with_what_it_includes() {
    let northwind = repository().join("fleets/northwind").to_string();
    let several = run(&["convert", &northwind, "--to", "yaml"]);
    assert_eq!((several.code, several.out.as_str()), (2, ""));
    assert!(several.err.contains("name a folder with -o"), "{}", several.err);

    let (_dir, root) = scratch(&[
        ("shared.kdl", "team \"shared\" { contact slack=\"#s\" }\n"),
        ("a.kdl", "include \"b/b.kdl\" \"c.yaml\"\n"),
        ("c.yaml", "team:\n  c:\n    contact: {slack: \"#c\"}\n"),
    ]);
    std::fs::create_dir_all(root.join("f/b")).unwrap();
    std::fs::create_dir(root.join(".git")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
    write("f/fleet.kdl", "fleet \"x\" { include \"a.kdl\" \"../shared.kdl\" }\n");
    std::fs::rename(root.join("a.kdl"), root.join("f/a.kdl")).unwrap();
    std::fs::rename(root.join("c.yaml"), root.join("f/c.yaml")).unwrap();
    write("f/b/b.kdl", "team \"b\" { contact slack=\"#b\" }\n");

    let (spec, twin) = (root.join("f").to_string(), root.join("f/twin/yaml").to_string());
    let written = run(&["convert", &spec, "--to", "yaml", "-o", &twin]);
    let files = ["fleet.yaml", "a.yaml", "b/b.yaml"].map(|file| format!("{twin}/{file}\n"));
    assert_eq!((written.code, written.out), (0, files.concat()), "{}", written.err);
    let text = |file: &str| std::fs::read_to_string(format!("{twin}/{file}")).unwrap();
    assert!(
        text("fleet.yaml").contains("- a.yaml\n")
            && text("fleet.yaml").contains("- ../../../shared.kdl\n")
    );
    assert!(text("a.yaml").contains("- b/b.yaml\n") && text("a.yaml").contains("- ../../c.yaml\n"));
    let intent = |spec: &str| run(&["explain", "item", spec, "team/b"]).code;
    assert_eq!((intent(&spec), intent(&twin)), (0, 0));

    let (_other, outside) = scratch(&[]);
    let refused = run(&["convert", &spec, "--to", "yaml", "-o", outside.as_str()]);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""));
    assert!(refused.err.contains("stays where it is"), "{}", refused.err);
    assert_eq!(outside.read_dir_utf8().unwrap().count(), 0);
}

#[test]
fn fmt_of_a_folder_takes_what_its_spec_includes_and_not_its_base() {
    let (_dir, root) = scratch(&[
        ("fleet.kdl", "fleet \"x\" { include \"a.kdl\"; extends \"base.kdl\" }\n"),
        ("a.kdl", "team  \"a\"\n"),
        ("base.kdl", "fleet  \"base\"\n"),
        ("other.kdl", "team  \"other\"\n"),
    ]);
    let done = run(&["fmt", root.as_str()]);
    assert_eq!((done.code, done.out), (0, format!("{}\n", root.join("a.kdl"))), "{}", done.err);
}
