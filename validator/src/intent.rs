//! Loading what the compiled intent says of one node.
//!
//! The folder holds `index.json`, `classes/<name>.json`, perhaps `overrides/<name>.jsonl` and
//! `sources.jsonl`, as the compiler writes them.

mod sources;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use fleetc_schema::hostlist::HostlistError;
use fleetc_schema::intent::{
    CLASS_SCHEMA, ClassDocument, GpuIndexes, GpuSlot, INDEX_SCHEMA, Index, NodeClass, Override,
    overrides_file, overrides_number,
};
use fleetc_schema::name::{ClassName, FleetName, RackName};
use fleetc_schema::{Hostlist, ItemPath};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::input::{self, Folder, InputError};
use fleetc_schema::pci::{BusId, DeviceId};

pub use sources::{Sources, SpecPlace};

/// The longest item path that is taken: far longer than any real one.
const MAX_PATH_BYTES: usize = 4096;

/// The most GPU instances of one GPU that are taken: NVML knows no GPU with more than 8.
pub(crate) const MAX_INSTANCES: usize = 64;

/// The most files that hold the overrides of one class.
const MAX_OVERRIDE_FILES: u32 = 1_024;

/// What one node should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeIntent {
    /// The node.
    pub node: String,
    /// The fleet.
    pub fleet: FleetName,
    /// Where the node stands.
    pub rack: Option<RackName>,
    /// All that its class says.
    pub class: NodeClass,
    /// SHA-256 of the class's file, in hexadecimal: what the node was judged by.
    pub class_sha256: String,
    /// PCI device ids of the class's GPU product.
    pub device_ids: Vec<DeviceId>,
    /// What is known of this very node, beside its class.
    pub known: Option<Override>,
    /// Where the items behind the expectations are written.
    pub sources: Sources,
}

impl NodeIntent {
    /// The PCI address that a GPU of the class should have, if that is known.
    pub fn address(&self, gpu: &GpuSlot) -> Option<BusId> {
        self.known.as_ref()?.pci.get(usize::from(gpu.slot)).copied()
    }
}

/// Why the intent of a node cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum IntentError {
    /// A file is missing or wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The fleet has no such node.
    #[error("node `{node}` is not in fleet `{fleet}` ({})", index.display())]
    UnknownNode {
        /// The node.
        node: String,
        /// The fleet that was searched.
        fleet: FleetName,
        /// Its index.
        index: PathBuf,
    },
}

/// Reads what the intent in a folder says of a node.
///
/// # Errors
/// Says which file is missing or wrong, or that the fleet has no such node.
pub fn load(folder: &Path, node: &str) -> Result<NodeIntent, IntentError> {
    let folder = Folder::open(folder)?;
    let index_file = folder.file("index.json")?;
    let shown = index_file.shown;
    let bytes = input::read_to_end(&shown, index_file.file)?;
    let index: Index<String> = input::document(&shown, &bytes, INDEX_SCHEMA)?;
    let contradiction = |problem| InputError::content(&shown, problem);
    let class_name = only_one("classes", node, &index.classes).map_err(contradiction)?;
    let rack = only_one("racks", node, &index.racks).map_err(contradiction)?.cloned();
    let Some(class_name) = class_name else {
        let fleet = index.fleet;
        return Err(IntentError::UnknownNode { node: node.to_owned(), fleet, index: shown });
    };
    let Loaded { class, class_sha256, device_ids } = load_class(&folder, &index, class_name)?;
    let known = load_override(&folder, &index, &class, node)?;
    let mut wanted = item_paths(&class, node);
    wanted.extend(known.iter().map(|known| known.path.clone()));
    let sources = match folder.file("sources.jsonl") {
        Ok(file) => Sources::read(&file.shown, file.file, &wanted)?,
        Err(error) if error.is_missing() => Sources::default(),
        Err(error) => return Err(error.into()),
    };
    let node = node.to_owned();
    let fleet = index.fleet;
    Ok(NodeIntent { node, fleet, rack, class, class_sha256, device_ids, known, sources })
}

/// The key of the one list that holds the node; none if no list does.
fn only_one<'a, K: std::fmt::Display>(
    what: &str,
    node: &str,
    lists: impl IntoIterator<Item = (&'a K, &'a String)>,
) -> Result<Option<&'a K>, String> {
    let mut found = None;
    for (key, list) in lists {
        let holds = holds(list, node).map_err(|error| format!("{what} `{key}`: {error}"))?;
        match found.filter(|_| holds) {
            Some(other) => {
                return Err(format!("node `{node}` is in two {what}, `{other}` and `{key}`"));
            }
            None if holds => found = Some(key),
            None => {}
        }
    }
    Ok(found)
}

/// True if a list holds the node. Most lists are of one range, and need not be read for that.
fn holds(list: &str, node: &str) -> Result<bool, HostlistError> {
    match Hostlist::text_holds(list, node) {
        Some(holds) => Ok(holds),
        None => list.parse().map(|list: Hostlist| list.contains(node)),
    }
}

/// SHA-256 in hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a file of the folder. One that is not the one that the index lists is refused: the folder was
/// edited, or copied in part.
fn listed(
    folder: &Folder,
    index: &Index<String>,
    name: &str,
) -> Result<(PathBuf, Vec<u8>), InputError> {
    let file = folder.file(name)?;
    let bytes = input::read_to_end(&file.shown, file.file)?;
    match index.files.get(name) {
        Some(hash) if sha256(&bytes) != *hash => {
            let problem = "it is not the file that index.json lists: the folder was edited, or copied in part";
            Err(InputError::content(&file.shown, problem))
        }
        // Folders of an earlier version list none.
        Some(_) | None => Ok((file.shown, bytes)),
    }
}

/// A class's file.
struct Loaded {
    class: NodeClass,
    class_sha256: String,
    device_ids: Vec<DeviceId>,
}

fn load_class(
    folder: &Folder,
    index: &Index<String>,
    name: &ClassName,
) -> Result<Loaded, InputError> {
    // A class name holds no `/` and no empty part, so this stays in the folder.
    let (shown, bytes) = listed(folder, index, &format!("classes/{name}.json"))?;
    let document: ClassDocument<'static> = input::document(&shown, &bytes, CLASS_SCHEMA)?;
    let class = document.class.into_owned();
    let device_ids = check_class(name, &class);
    let device_ids = device_ids.map_err(|problem| InputError::content(&shown, problem))?;
    let class_sha256 = sha256(&bytes);
    Ok(Loaded { class, class_sha256, device_ids })
}

/// Finds what is known of a node in the overrides of its class.
fn load_override(
    folder: &Folder,
    index: &Index<String>,
    class: &NodeClass,
    node: &str,
) -> Result<Option<Override>, InputError> {
    let files = index.overrides.get(&class.name).copied().unwrap_or_default();
    if files == 0 {
        return Ok(None);
    }
    if files > MAX_OVERRIDE_FILES {
        let problem = format!("more than {MAX_OVERRIDE_FILES} files of overrides");
        return Err(InputError::content(Path::new("index.json"), problem));
    }
    // As for the class: the name stays in the folder.
    let number = overrides_number(node, files);
    let (shown, bytes) = listed(folder, index, &overrides_file(&class.name, number, files))?;
    let mut known: Option<Override> = None;
    for (line, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if text.is_empty() {
            continue;
        }
        let wrong = |error| InputError::json(&shown, Some(line), &error);
        // Most lines are about other nodes; of those no more is read than which.
        let Nodes { nodes } = serde_json::from_slice(text).map_err(wrong)?;
        let problem = |problem| InputError::content(&shown, format!("line {line}: {problem}"));
        if !holds(&nodes, node).map_err(|error| problem(error.to_string()))? {
            continue;
        }
        let read: Override = serde_json::from_slice(text).map_err(wrong)?;
        let checked = match &known {
            Some(_) => Err(format!("node `{node}` has two overrides")),
            None => check_override(class, &read),
        };
        checked.map_err(problem)?;
        known = Some(read);
    }
    Ok(known)
}

/// Which nodes a line of overrides is about.
#[derive(Deserialize)]
struct Nodes<'a> {
    #[serde(borrow)]
    nodes: Cow<'a, str>,
}

/// Checks what the comparison rests on: an address for every GPU of the complete node, rising.
fn check_override(class: &NodeClass, known: &Override) -> Result<(), String> {
    let Override { pci, path, .. } = known;
    if pci.len() > usize::from(GpuIndexes::LIMIT) || !pci.is_sorted_by(|a, b| a < b) {
        return Err("the PCI addresses of a node do not rise, or are too many".to_owned());
    }
    if class.gpus.iter().any(|gpu| usize::from(gpu.slot) >= pci.len()) {
        return Err(format!("a node has more GPUs than the {} PCI addresses", pci.len()));
    }
    match path.as_str().len() > MAX_PATH_BYTES {
        true => Err(format!("an item path is longer than {MAX_PATH_BYTES} bytes")),
        false => Ok(()),
    }
}

/// Checks what the comparison rests on, and reads the PCI device ids.
fn check_class(name: &ClassName, class: &NodeClass) -> Result<Vec<DeviceId>, String> {
    if class.name != *name {
        return Err(format!("it describes the class `{}`, not `{name}`", class.name));
    }
    if class.gpu.is_none() && !class.gpus.is_empty() {
        return Err("it has GPUs, but names no product".to_owned());
    }
    if (0..).zip(&class.gpus).any(|(index, slot)| usize::from(slot.index) != index) {
        return Err("its GPUs are not numbered 0, 1, 2 and so on".to_owned());
    }
    if class.gpus.iter().flat_map(|slot| &slot.mig).any(|mig| mig.len() > MAX_INSTANCES) {
        return Err(format!("a GPU has more than {MAX_INSTANCES} GPU instances"));
    }
    let paths = class.gpus.iter().map(|slot| &slot.path);
    let exceptions = class.paths.exceptions.iter().map(|exception| &exception.path);
    let shared = [&class.paths.system, &class.paths.sharing];
    let mut paths = paths.chain(exceptions).chain(shared).chain(&class.paths.driver);
    if paths.any(|path| path.as_str().len() > MAX_PATH_BYTES) {
        return Err(format!("an item path is longer than {MAX_PATH_BYTES} bytes"));
    }
    let ids = class.gpu.iter().flat_map(|model| &model.pci_device_ids);
    ids.map(|id| id.parse().map_err(|error: fleetc_schema::pci::DeviceIdError| error.to_string()))
        .collect()
}

/// Every item that a finding may name.
fn item_paths(class: &NodeClass, node: &str) -> Vec<ItemPath> {
    let shared = [class.count_path(node), &class.paths.system, &class.paths.sharing];
    let slots = class.gpus.iter().map(|slot| &slot.path);
    let mut paths: Vec<ItemPath> =
        shared.into_iter().chain(slots).chain(&class.paths.driver).cloned().collect();
    if let Some((name, said)) = &class.policy {
        let policy = ItemPath::item("node-policy", name);
        let words = ["driver", "ecc", "persistence", "power-limit"];
        paths.extend(words.map(|word| policy.child(word)));
        paths.extend(["gen", "width"].map(|word| policy.child("pcie").child(word)));
        paths.push(policy.child("nvlink").child("active"));
        paths.extend(said.mounts.iter().map(|mount| policy.keyed("mount", [&mount.target])));
        paths.extend(said.hugepages.iter().map(|pages| policy.keyed("hugepages", [pages.size])));
    }
    paths.extend(class.host.ports.iter().map(|ports| ItemPath::item("fabric", &ports.fabric)));
    paths
}
