//! The files by which nodes judge themselves: `index.json` says which class a node is of,
//! `classes/<name>.json` what such a node should be, `overrides/<name>.jsonl` what is known of single
//! nodes. They stand in the output, and ConfigMaps hold the same.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fleetc_schema::Hostlist;
use fleetc_schema::ItemPath;
use fleetc_schema::intent::{
    CLASS_SCHEMA, Class, ClassDocument, INDEX_SCHEMA, Index, Intent, Kubernetes, Override,
    overrides_file, overrides_number,
};
use indexmap::IndexMap;
use sha2::{Digest, Sha256};

use crate::OutputFile;
use crate::write::json;

/// The most bytes of overrides that stand in one file: half of what a ConfigMap takes.
const MAX_BYTES: usize = 512 << 10;

/// The name of the ConfigMap, and how the names of several begin.
const CONFIG_MAP: &str = "fleetc-intent";

/// The most bytes of files in one ConfigMap: what Kubernetes takes is 1 MiB, keys and all.
const MAX_CONFIG_MAP: usize = 1000 << 10;

/// A ConfigMap with files.
pub struct Held<'a> {
    /// Its name.
    pub name: String,
    /// Paths of the files within the folder, and what is in them.
    pub files: Vec<(&'a str, String)>,
}

/// All files in one ConfigMap as long as they fit, else one a file.
pub fn config_maps(files: &[(String, OutputFile)]) -> Vec<Held<'_>> {
    let texts: Vec<(&str, String)> =
        files.iter().map(|(path, file)| (path.as_str(), file.text())).collect();
    let fits =
        texts.iter().map(|(path, text)| path.len() + text.len()).sum::<usize>() <= MAX_CONFIG_MAP;
    match fits {
        true => vec![Held { name: CONFIG_MAP.to_owned(), files: texts }],
        false => {
            // Names of objects hold no `_`, which those of classes do.
            let name = |path: &str| format!("{CONFIG_MAP}-{}", key(path).replace('_', "-"));
            let one = |(path, text)| Held { name: name(path), files: vec![(path, text)] };
            texts.into_iter().map(one).collect()
        }
    }
}

/// The key of a file. No two are alike: the first word says what the file is, and of a class that has
/// numbered files there is no class whose name goes on with a number.
pub fn key(path: &str) -> String {
    path.replace('/', ".")
}

/// Where the ConfigMaps and the pods that mount them are: beside the GPU Operator, whose pods are
/// privileged too; without one where the spec asks for pods, in the namespace that every cluster has.
pub fn namespace(kubernetes: &Kubernetes) -> Option<&str> {
    let operator = kubernetes.gpu_operator.as_ref();
    let operator = operator.map(|operator| operator.namespace.as_str());
    operator.or(kubernetes.validator.is_some().then_some("kube-system"))
}

/// What nodes of these classes need, by path, the index first: it refers to nothing beside it.
pub fn files(intent: &Intent, classes: &[&Class]) -> Vec<(String, OutputFile)> {
    let mut index = index(intent, classes);
    let mut written = Vec::new();
    for class in classes {
        let overrides = shards(overrides_of(intent, class));
        let count = u32::try_from(overrides.len()).unwrap_or(u32::MAX);
        if count > 0 {
            index.overrides.insert(class.node.name.clone(), count);
        }
        for (number, lines) in (0..).zip(overrides) {
            let mut file = OutputFile::default();
            for line in lines {
                file.push([line.path.clone()], json::line(&line));
            }
            written.push((overrides_file(&class.node.name, number, count), file));
        }
        let document = ClassDocument {
            schema: Cow::Borrowed(CLASS_SCHEMA),
            class: Cow::Borrowed(&class.node),
        };
        let pool = ItemPath::item("pool", &class.node.pool);
        let file = OutputFile::one([pool], json::pretty(&document));
        written.push((format!("classes/{}.json", class.node.name), file));
    }
    index.files = written.iter().map(|(path, file)| (path.clone(), sha256(&file.text()))).collect();
    let fleet = ItemPath::item("fleet", &intent.fleet.name);
    let file = OutputFile::one([fleet], json::pretty(&index));
    std::iter::once(("index.json".to_owned(), file)).chain(written).collect()
}

/// SHA-256 in hex.
fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Which class each node is of, and its rack; racks of other clusters' nodes are left out.
fn index(intent: &Intent, classes: &[&Class]) -> Index {
    let nodes = classes.iter().fold(Hostlist::default(), |all, class| all.union(&class.nodes));
    let racks = intent.racks.iter().map(|(name, rack)| (name, rack.nodes.intersection(&nodes)));
    Index {
        schema: INDEX_SCHEMA.to_owned(),
        fleet: intent.fleet.name.clone(),
        classes: classes
            .iter()
            .map(|class| (class.node.name.clone(), class.nodes.clone()))
            .collect::<IndexMap<_, _>>(),
        racks: racks
            .filter(|(_, nodes)| !nodes.is_empty())
            .map(|(name, nodes)| (name.clone(), nodes))
            .collect(),
        overrides: IndexMap::new(),
        files: IndexMap::new(),
    }
}

/// What is known of single nodes of a class.
fn overrides_of(intent: &Intent, class: &Class) -> Vec<Override> {
    let pool = intent.pools.get(&class.node.pool);
    let here = |each: &Override| {
        let nodes = each.nodes.intersection(&class.nodes);
        (!nodes.is_empty()).then(|| Override { nodes, ..each.clone() })
    };
    pool.iter().flat_map(|pool| &pool.overrides).filter_map(here).collect()
}

/// Lines of overrides by file. Where they do not go into one, each node decides for itself, so that it
/// reads one file, and a node that comes or goes changes no other.
fn shards(lines: Vec<Override>) -> Vec<Vec<Override>> {
    if lines.is_empty() {
        return Vec::new();
    }
    let bytes: usize = lines.iter().map(|line| json::line(line).len()).sum();
    if bytes <= MAX_BYTES {
        return vec![lines];
    }
    // Half full on average, so that none is too full; a power of two, so that the number is rarely
    // another.
    let count = (bytes * 2).div_ceil(MAX_BYTES).next_power_of_two();
    let mut files = vec![Vec::new(); count];
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    for line in lines {
        for (number, nodes) in dealt(&line.nodes, count) {
            let file = usize::try_from(number).ok().and_then(|at| files.get_mut(at));
            if let Some(file) = file {
                file.push(Override { nodes, ..line.clone() });
            }
        }
    }
    files
}

/// The nodes of a list by the file that they stand in.
fn dealt(nodes: &Hostlist, count: u32) -> BTreeMap<u32, Hostlist> {
    let mut dealt: BTreeMap<u32, String> = BTreeMap::new();
    for name in nodes.names() {
        let list = dealt.entry(overrides_number(&name, count)).or_default();
        if !list.is_empty() {
            list.push(',');
        }
        list.push_str(&name);
    }
    // Names of a list are names of one.
    dealt.into_iter().filter_map(|(number, list)| Some((number, list.parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(node: u32) -> Override {
        let nodes: Hostlist = format!("n{node:06}").parse().unwrap();
        let path = ItemPath::item("pool", "p").keyed("pci", [format!("n{node:06}")]);
        Override { nodes, pci: Vec::new(), path }
    }

    fn bytes(lines: &[Override]) -> usize {
        lines.iter().map(|line| json::line(line).len()).sum()
    }

    #[test]
    fn few_lines_stand_in_one_file() {
        assert!(shards(Vec::new()).is_empty());
        let files = shards((0..5_000).map(line).collect());
        assert_eq!(files.iter().map(Vec::len).collect::<Vec<_>>(), [5_000]);
        assert!(bytes(&files[0]) <= MAX_BYTES);
    }

    #[test]
    fn a_line_more_changes_one_of_many_files() {
        let before = shards((0..50_000).map(line).collect());
        let after = shards((0..50_001).map(line).collect());
        // A line has 68 bytes: 3.4 MB, dealt to files of at most 512 KiB that are half full.
        assert_eq!((before.len(), after.len()), (16, 16));
        assert!(before.iter().all(|file| bytes(file) <= MAX_BYTES && !file.is_empty()));
        assert_eq!(before.iter().map(Vec::len).sum::<usize>(), 50_000);
        assert_eq!(before.iter().zip(&after).filter(|(a, b)| a != b).count(), 1);
    }

    #[test]
    fn every_node_of_a_line_stands_in_the_file_that_it_reads() {
        let mut lines: Vec<Override> = (0..20_000).map(line).collect();
        let many: Hostlist = "m[000001-000500]".parse().unwrap();
        lines.push(Override { nodes: many.clone(), ..line(0) });
        let files = shards(lines);
        let count = u32::try_from(files.len()).unwrap();
        assert!(count > 1);
        let holds = |name: &str| {
            let number = usize::try_from(overrides_number(name, count)).unwrap();
            files[number].iter().filter(|line| line.nodes.contains(name)).count()
        };
        assert!(many.names().all(|name| holds(&name) == 1));
        assert_eq!(holds("n019999"), 1);
        let all: u64 = files.iter().flatten().map(|line| line.nodes.len()).sum();
        assert_eq!(all, 20_500, "and in no other");
    }
}
