//! The fuzz targets under `fuzz/`: a corpus from what the repository holds, a dictionary from the
//! table of kinds, and a run of each target.

use std::collections::BTreeSet;
use std::process::Command;

use camino::Utf8Path;
use fleetc::language::kinds::Spec;
use fleetc::language::{Form as Field, Kind};
use fleetc_tests::properties::{self, NEXT_FILE};
use fleetc_tests::{Form, check_text, compiled, fenced_blocks, folder, repository, with_prelude};

use crate::{Outcome, put};

/// Readings of the node that the property `snapshot` judges.
const SNAPSHOT: &str = r#"{
 "schema": "fleetc/snapshot/v2", "node": "gpu01", "state": {
 "driver": {"value": "580.105.08"},
 "pci_gpus": {"value": [{"bus_id": "00000000:1b:00.0", "device_id": "0x2330"}]},
 "gpus": {"value": [{
  "bus_id": "00000000:1b:00.0", "index": 0, "name": {"value": "NVIDIA H100 80GB HBM3"},
  "device_id": {"value": "0x2330"}, "memory_mib": {"value": 81559},
  "mig_mode": {"value": {"current": true, "pending": true}},
  "gpu_instances": {"value": [{"id": 1, "profile_id": 9, "placement": {"start": 0, "size": 4}}]}
 }]}
}}"#;

/// Arguments of `fleetc mig`, one a line.
const MIG: &[&str] = &[
    "h100-sxm5-80gb\n3g.40gb=2",
    "dgx-h100\n1g.10gb=7\n--for\n4",
    "a100-sxm4-40gb\n--list",
    "h100-sxm5-80gb\n1g.10gb+me=2\n--from\n3g.40gb=2,1g.10gb",
    "h100-sxm5-80gb\n--from\noff\n--format\njson",
];

/// Scalars that stand in no fleet of the repository.
const WORDS: &[&str] = &[
    "r[1-3]n[01-18]",
    "n[8-12],n1[0-9]-ib",
    "1c.3g.40gb",
    "1g.24gb+me.all",
    ">=580,<590",
    "0-55,112-167",
    "0-3,5",
    "0000:1b:00.0",
    "0x2330",
    "1.5TiB",
    "2.10 USD/gpu-hour",
    "5%",
    "2028-02-29",
    "7B",
    "gpu.shared",
];

/// Runs the targets, or only writes what they start from.
pub fn run(minutes: u64, seeds: bool, targets: &[String]) -> Outcome {
    let fuzz = repository().join("fuzz");
    let known = || properties::ALL.iter().map(|(name, _)| *name);
    if let Some(stranger) = targets.iter().find(|name| !known().any(|known| known == *name)) {
        return Err(format!("no target is called {stranger}").into());
    }
    write_seeds(&fuzz.join("corpus"))?;
    let dictionary = fuzz.join("corpus/words.dict");
    put(&dictionary, &words_of_the_language())?;
    if seeds {
        return Ok(());
    }
    for name in known().filter(|name| targets.is_empty() || targets.iter().any(|t| t == name)) {
        let status = Command::new("cargo")
            .args(["+nightly", "fuzz", "run", "--sanitizer", "none", name, "--", "-timeout=5"])
            .arg(format!("-max_total_time={}", minutes * 60))
            .arg(format!("-dict={dictionary}"))
            .arg("-max_len=8192")
            .arg("-print_final_stats=1")
            .current_dir(repository())
            .status()?;
        if !status.success() {
            return Err(format!("{name}: see fuzz/artifacts/{name}/").into());
        }
    }
    Ok(())
}

fn write_seeds(corpus: &Utf8Path) -> Outcome {
    let mut specs = [BTreeSet::new(), BTreeSet::new()];
    let [kdl, yaml] = &mut specs;
    for (path, text) in folder(&repository().join("fleets"))? {
        match Utf8Path::new(&path).extension() {
            Some("kdl") => kdl.insert(text),
            Some("yaml") => yaml.insert(text),
            _ => continue,
        };
    }
    let pages = ["tests/diagnostics", "schema/src/diag/rules"];
    let mut files = BTreeSet::new();
    let mut rows = [BTreeSet::new(), BTreeSet::new()];
    for page in pages.iter().map(|path| folder(&repository().join(path))) {
        for (words, _, text) in page?.values().flat_map(|page| fenced_blocks(page)) {
            let (form, all) = match words.as_str() {
                words if words.starts_with("csv") => {
                    rows[0].insert(text);
                    continue;
                }
                words if words.starts_with("jsonl") => {
                    rows[1].insert(text);
                    continue;
                }
                words if words.starts_with("yaml") => (Form::Yaml, &mut *yaml),
                words if words.starts_with("kdl") => (Form::Kdl, &mut *kdl),
                _ => continue,
            };
            all.insert(with_prelude(form, &text));
            if form == Form::Kdl {
                let prelude = with_prelude(Form::Kdl, "");
                files.insert([text.as_str(), &prelude, "team: {a: {weight: 2}}\n"].join(NEXT_FILE));
            }
        }
    }
    let mut words: BTreeSet<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
    words.extend(kdl.iter().flat_map(|text| text.split('"').skip(1).step_by(2)).map(str::to_owned));
    let [kdl, yaml] = specs;

    let checked = check_text(Form::Kdl, &with_prelude(Form::Kdl, ""))?;
    let tree = compiled(&checked).ok_or("the prelude has errors")?;
    let file = |path: &str| tree.get(path).cloned().ok_or(format!("{path} is not written"));
    let intent = [
        file("fleet/intent/index.json")?,
        file("fleet/intent/classes/train.json")?,
        file("fleet/intent/sources.jsonl")?,
    ];
    let paths = checked.places().keys().map(ToString::to_string).collect();
    let one = |text: String| BTreeSet::from([text]);
    for (name, seeds) in [
        ("kdl_syntax", &kdl),
        ("spec_kdl", &kdl),
        ("format_kdl", &kdl),
        ("convert_kdl", &kdl),
        ("yaml_syntax", &yaml),
        ("spec_yaml", &yaml),
        ("format_yaml", &yaml),
        ("convert_yaml", &yaml),
        ("spec_files", &files),
        ("inventory_csv", &rows[0]),
        ("inventory_jsonl", &rows[1]),
        ("hostlist", &words),
        ("words", &words),
        ("item_path", &paths),
        ("mig_command", &MIG.iter().map(|args| (*args).to_owned()).collect()),
        ("manifest", &one(file(fleetc::output::MANIFEST)?)),
        ("node_intent", &one(intent.join(NEXT_FILE))),
        ("snapshot", &one(SNAPSHOT.to_owned())),
        ("nvidia_smi", &captures()?),
    ] {
        for (number, seed) in seeds.iter().enumerate() {
            put(&corpus.join(name).join(format!("seed-{number:04}")), seed)?;
        }
    }
    Ok(())
}

/// What nvidia-smi prints, as the validator's own tests have it.
fn captures() -> Result<BTreeSet<String>, Box<dyn std::error::Error>> {
    let folder = repository().join("validator/src/observe/nvidia_smi/captures");
    let read = |name: &str| std::fs::read_to_string(folder.join(name));
    let names = ["v11-a100-mig.xml", "v11-a100-mig.list.txt", "v11-a100-mig.lgi.txt"];
    let more = ["v11-a100-mig.lci.txt", "v11-a100.topo.txt"];
    let all: Result<Vec<String>, _> = names.into_iter().chain(more).map(read).collect();
    Ok(BTreeSet::from([all?.join(NEXT_FILE), read("v13-gb200.xml")?]))
}

/// The words of the language and of its closed sets, in the form of libFuzzer.
fn words_of_the_language() -> String {
    fn walk(kind: &'static Kind, seen: &mut Vec<&'static str>, words: &mut BTreeSet<String>) {
        if seen.contains(&kind.name) {
            return;
        }
        seen.push(kind.name);
        for field in kind.fields {
            words.insert(field.key.to_owned());
            match field.form {
                Field::Kind(child) => walk(child(), seen, words),
                Field::Property(ty) | Field::Value(ty) | Field::List(ty) => {
                    words.insert(ty.example.to_owned());
                }
            }
        }
    }
    let mut words = BTreeSet::new();
    walk(Spec::kind(), &mut Vec::new(), &mut words);
    words.extend(
        ["/-", "#true", "#null", "\"\"\"", "#\"", "is", "replace", "remove", "----"]
            .map(str::to_owned),
    );
    let escaped = |byte: u8| match byte {
        b'\\' | b'"' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02X}"),
    };
    let quoted = |word: String| format!("\"{}\"\n", word.bytes().map(escaped).collect::<String>());
    words.into_iter().map(quoted).collect()
}
