//! The properties that the fuzz targets ask, over texts that are generated or bent; and specs that
//! are decoded to what they were generated from.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use fleetc::source::Form;
use fleetc_schema::Hostlist;
use fleetc_tests::properties::{self, NEXT_FILE};
use fleetc_tests::{check_text, repository, with_prelude};
use proptest::prelude::*;

/// A few cases: the fuzz targets try the many. `PROPTEST_CASES` is for those who want more here.
fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let asked = default.cases != 256;
    let cases = if asked { default.cases } else { cases };
    ProptestConfig { failure_persistence: None, cases, ..default }
}

/// Pieces that a parser may stumble over.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "'",
    "=",
    ";",
    ",",
    ":",
    "\n",
    "\r\n",
    "\t",
    " ",
    "/-",
    "//",
    "/*",
    "*/",
    "\\",
    "#",
    "#\"",
    "\"\"\"",
    "#true",
    "true",
    "null",
    "-",
    "0",
    "-1",
    "1.5",
    "99999999999",
    "0x",
    "é",
    "\u{feff}",
    "\u{200b}",
    "\u{0}",
    "\u{435}",
    "<<",
    "&a ",
    "*a",
    "!t ",
    "? ",
    "- ",
    "|",
    ">",
    "is",
    "pool",
    "team",
    "include",
    "extends",
    "remove",
    "replace=#true",
    "allow",
    "quota",
    "slice",
    "nodes",
    "missing",
];

/// One change of a text.
#[derive(Debug, Clone)]
enum Edit {
    Insert(usize, &'static str),
    Remove(usize, usize),
    /// A part once more, elsewhere.
    Copy(usize, usize, usize),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let at = 0..usize::MAX;
    let edit = prop_oneof![
        (at.clone(), prop::sample::select(PIECES)).prop_map(|(at, piece)| Edit::Insert(at, piece)),
        (at.clone(), 1_usize..40).prop_map(|(at, length)| Edit::Remove(at, length)),
        (at.clone(), 1_usize..80, at).prop_map(|(from, length, to)| Edit::Copy(from, length, to)),
    ];
    prop::collection::vec(edit, 1..5)
}

fn bent(text: &str, edits: &[Edit]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for edit in edits {
        let place = |at: &usize| at % (letters.len() + 1);
        match edit {
            Edit::Insert(at, piece) => {
                let at = place(at);
                letters.splice(at..at, piece.chars());
            }
            Edit::Remove(at, length) => {
                let at = place(at);
                letters.drain(at..(at + length).min(letters.len()));
            }
            Edit::Copy(from, length, to) => {
                let (from, to) = (place(from), place(to));
                let part = letters[from..(from + length).min(letters.len())].to_vec();
                letters.splice(to..to, part);
            }
        }
    }
    letters.into_iter().collect()
}

/// Specs to bend, in both forms.
fn specs(form: Form) -> [String; 2] {
    let (lab, prelude) = match form {
        Form::Kdl => ("fleets/lab/fleet.kdl", fleetc_tests::Form::Kdl),
        Form::Yaml => ("fleets/lab/yaml/fleet.yaml", fleetc_tests::Form::Yaml),
    };
    let lab = std::fs::read_to_string(repository().join(lab)).unwrap();
    [lab, with_prelude(prelude, "")]
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn a_bent_spec_is_checked_without_a_panic(which in 0_usize..2, edits in edits()) {
        for form in [Form::Kdl, Form::Yaml] {
            properties::spec(form, &bent(&specs(form)[which], &edits));
        }
    }

    #[test]
    fn a_bent_spec_is_formatted_or_refused(which in 0_usize..2, edits in edits()) {
        for form in [Form::Kdl, Form::Yaml] {
            properties::formats(form, &bent(&specs(form)[which], &edits));
        }
    }

    #[test]
    fn a_bent_spec_that_holds_says_the_same_in_its_other_form(edits in edits()) {
        for form in [Form::Kdl, Form::Yaml] {
            properties::converts(form, &bent(&specs(form)[1], &edits[..1]));
        }
    }

    #[test]
    fn bent_files_that_belong_together_are_checked_without_a_panic(edits in edits()) {
        let [_, prelude] = specs(Form::Kdl);
        let part = "team: {a: {weight: 2}}\n";
        let files = ["pool \"train\" { nodes \"gpu[01-02]\" }\n", &prelude, part].join(NEXT_FILE);
        properties::several_files(&bent(&files, &edits));
    }
}

/// What nvidia-smi prints, to bend: XML alone, and with its tables.
fn captures() -> [String; 2] {
    let folder = repository().join("validator/src/observe/nvidia_smi/captures");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let all = ["mig.xml", "mig.list.txt", "mig.lgi.txt", "mig.lci.txt"];
    let mut all: Vec<String> = all.map(|name| read(&format!("v11-a100-{name}"))).to_vec();
    all.push(read("v11-a100.topo.txt"));
    [read("v13-gb200.xml"), all.join(NEXT_FILE)]
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn a_bent_capture_is_judged_or_refused(which in 0_usize..2, edits in edits()) {
        properties::nvidia_smi(bent(&captures()[which], &edits).as_bytes());
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn no_text_is_too_odd_for_a_parser(text in any::<String>()) {
        for form in [Form::Kdl, Form::Yaml] {
            properties::syntax_of(form, &text);
        }
        properties::hostlist(&text);
        properties::words(&text);
        properties::item_path(&text);
    }

    #[test]
    fn lists_of_names_print_and_read_back(text in "[a-c]?[0-9]{0,3}(\\[[0-9]{1,3}(-[0-9]{1,3})?\\])?[a-b0-9]{0,2}(,[n0-9\\[\\]-]{1,9})?") {
        properties::hostlist(&text);
    }

    #[test]
    fn words_print_and_read_back(
        text in "([<>=]{0,2}[0-9]{1,4}(\\.[0-9]{1,4}){0,2} ?(KiB|GiB|TB|kW|W|ms|s|h|d|Gb/s|Tb/s|%|M|B|T|USD/gpu-hour)?)|([0-9]c\\.)?[0-9]{1,2}g\\.[0-9]{1,3}gb[+-]?(me|gfx|me\\.all)?(,me)?|[0-9]{1,2}(-[0-9]{1,2})?(,[0-9]{1,2})?|[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\\.[0-7]",
    ) {
        properties::words(&text);
    }

    #[test]
    fn paths_have_ancestors(text in "[a-b/\\[\\]\",]{0,16}") {
        properties::item_path(&text);
    }
}

// ---- what is generated is what is decoded -----------------------------------------------------

#[derive(Debug, Clone)]
struct Pool {
    nodes: u32,
    width: usize,
    max_unavailable: Option<u32>,
    features: Vec<String>,
}

#[derive(Debug, Clone)]
struct Team {
    weight: Option<u32>,
    /// By the number of the pool: guaranteed, and how much more the limit is.
    quotas: Vec<(usize, u32, Option<u32>)>,
}

fn pool() -> impl Strategy<Value = Pool> {
    let features = prop::collection::btree_set("[a-z]{1,6}", 1..4);
    (1_u32..2_000, 4_usize..6, prop::option::of(1_u32..9), features).prop_map(
        |(nodes, width, max_unavailable, features)| Pool {
            nodes,
            width,
            max_unavailable,
            features: features.into_iter().collect(),
        },
    )
}

fn team(pools: usize) -> impl Strategy<Value = Team> {
    let quota = (0..pools, 0_u32..8, prop::option::of(0_u32..99));
    (prop::option::of(1_u32..99), prop::collection::vec(quota, 0..3)).prop_map(
        |(weight, quotas)| {
            let mut quotas = quotas;
            quotas.sort();
            quotas.dedup_by_key(|(pool, ..)| *pool);
            Team { weight, quotas }
        },
    )
}

fn fleet() -> impl Strategy<Value = (Vec<Pool>, Vec<Team>)> {
    prop::collection::vec(pool(), 1..4).prop_flat_map(|pools| {
        let teams = prop::collection::vec(team(pools.len()), 0..4);
        (Just(pools), teams)
    })
}

/// The fleet as people write it.
fn written(pools: &[Pool], teams: &[Team]) -> String {
    let mut text = "fleet \"x\"\ncluster \"hpc\" { slurm \"24.11\" { controllers \"c\"; gres autodetect=\"nvml\"; driver \"580.1\" owner=\"os\" } }\n".to_owned();
    for (number, Pool { nodes, width, max_unavailable, features }) in pools.iter().enumerate() {
        text += &format!(
            "pool \"p{number}\" {{\n cluster \"hpc\"; system \"dgx-h100\"\n nodes \"p{number}n[{:0width$}-{nodes:0width$}]\"\n",
            1
        );
        text +=
            &max_unavailable.map_or_else(String::new, |most| format!(" max-unavailable {most}\n"));
        text += &format!(" features \"{}\"\n}}\n", features.join("\" \""));
    }
    for (number, Team { weight, quotas }) in teams.iter().enumerate() {
        text += &format!("team \"t{number}\" {{\n");
        text += &weight.map_or_else(String::new, |weight| format!(" weight {weight}\n"));
        for (pool, guaranteed, more) in quotas {
            let limit =
                more.map_or_else(String::new, |more| format!(" limit={}", guaranteed + more));
            text += &format!(" quota \"p{pool}\" guaranteed={guaranteed}{limit}\n");
        }
        text += "}\n";
    }
    text
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn a_spec_is_decoded_to_what_it_was_written_from((pools, teams) in fleet()) {
        let text = written(&pools, &teams);
        let checked = check_text(fleetc_tests::Form::Kdl, &text).unwrap();
        let intent = checked.partial_intent();
        prop_assert_eq!(intent.pools.len(), pools.len());
        for (number, pool) in pools.iter().enumerate() {
            let read = intent.pools.get(format!("p{number}").as_str()).unwrap();
            let all = |list: &Hostlist| (list.len(), list.first());
            let first = format!("p{number}n{:0w$}", 1, w = pool.width);
            prop_assert_eq!(all(&read.nodes), (u64::from(pool.nodes), Some(first)));
            prop_assert_eq!(read.max_unavailable, pool.max_unavailable);
            prop_assert_eq!(&read.features, &pool.features);
        }
        prop_assert_eq!(intent.teams.len(), teams.len());
        for (number, team) in teams.iter().enumerate() {
            let read = intent.teams.get(format!("t{number}").as_str()).unwrap();
            prop_assert_eq!(read.weight, team.weight);
            let quotas: Vec<_> = read
                .quotas
                .iter()
                .map(|q| (q.pool.to_string(), q.guaranteed, q.limit))
                .collect();
            let wanted: Vec<_> = team
                .quotas
                .iter()
                .map(|(pool, least, more)| (format!("p{pool}"), *least, more.map(|more| least + more)))
                .collect();
            prop_assert_eq!(quotas, wanted);
        }
        properties::converts(Form::Kdl, &text);
    }
}

#[test]
fn rows_with_letters_of_several_bytes_are_shown_in_whole_letters() {
    for text in ["\u{feff}\u{feff}{\"node\": \"a\"}\n", "{\"node\" é: 1}\n", "é\n"] {
        properties::inventory("nodes.jsonl", text);
    }
    let long = "é".repeat(20_000);
    for text in ["node,pool\n\"a\"é,p\n", long.as_str()] {
        properties::inventory("nodes.csv", text);
    }
    properties::inventory("nodes.jsonl", &long);
}
