//! Snapshot files: the readings of a node, kept.
//!
//! A snapshot holds each reading with the reason of its absence, so the same findings follow from it as
//! from the node. What it leaves out is unknown. Version 1 knew fewer readings, and is still read.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Observe, ObserveError};
use crate::input::{self, InputError};
use crate::intent::MAX_INSTANCES;
use crate::state::{NodeState, Reading};

/// The schema tag of a snapshot.
pub const SNAPSHOT_SCHEMA: &str = "fleetc/snapshot/v2";

/// The tag of those before, of the same shape.
const OLD_SCHEMA: &str = "fleetc/snapshot/v1";

/// The most entries of any list: far more than any node has.
const MAX_ENTRIES: usize = 4096;

/// A snapshot file, of a node that is known beforehand.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The file.
    pub file: PathBuf,
    /// The node that it must be of.
    pub node: String,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    node: &'a str,
    state: &'a NodeState,
}

/// Writes a snapshot of a node, with a newline at its end.
///
/// # Errors
/// Only if a state cannot be serialised, which would be a bug.
pub fn to_json(node: &str, state: &NodeState) -> serde_json::Result<String> {
    let document = Document { schema: SNAPSHOT_SCHEMA, node, state };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    #[serde(rename = "schema")]
    _schema: String,
    node: String,
    state: NodeState,
}

/// Version 1: three readings, which stand beside the node's name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadOld {
    #[serde(rename = "schema")]
    _schema: String,
    node: String,
    driver: Reading<String>,
    pci_gpus: Reading<Vec<crate::state::PciGpu>>,
    gpus: Reading<Vec<crate::state::GpuState>>,
}

impl Observe for Snapshot {
    fn observe(&self) -> Result<NodeState, ObserveError> {
        let read = |source| InputError::read(&self.file, source);
        let file = File::open(&self.file).map_err(read)?;
        let bytes = input::read_to_end(&self.file, file)?;
        let (taken_on, state) = match input::schema_of(&self.file, &bytes)?.as_str() {
            OLD_SCHEMA => {
                let old: ReadOld = input::document(&self.file, &bytes, OLD_SCHEMA)?;
                let ReadOld { _schema, node, driver, pci_gpus, gpus } = old;
                (node, NodeState { driver, pci_gpus, gpus, ..NodeState::default() })
            }
            _ => {
                let Read { _schema, node, state } =
                    input::document(&self.file, &bytes, SNAPSHOT_SCHEMA)?;
                (node, state)
            }
        };
        if taken_on != self.node {
            let (file, node) = (self.file.clone(), self.node.clone());
            return Err(ObserveError::OtherNode { file, taken_on, node });
        }
        check(&state).map_err(|problem| InputError::content(&self.file, problem))?;
        Ok(state)
    }
}

/// Bus ids and indexes tell GPUs apart, so no two may be equal; no list is without end.
pub(super) fn check(state: &NodeState) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for gpu in bounded("pci_gpus", &state.pci_gpus)? {
        if !seen.insert(gpu.bus_id) {
            return Err(format!("`pci_gpus` holds {} twice", gpu.bus_id));
        }
    }
    let (mut bus_ids, mut indexes) = (BTreeSet::new(), BTreeSet::new());
    for gpu in bounded("gpus", &state.gpus)? {
        if !bus_ids.insert(gpu.bus_id) {
            return Err(format!("`gpus` holds {} twice", gpu.bus_id));
        }
        if !indexes.insert(gpu.index) {
            return Err(format!("`gpus` holds the index {} twice", gpu.index));
        }
        let at = gpu.bus_id;
        for instance in at_most(MAX_INSTANCES, at, "GPU instances", &gpu.gpu_instances)? {
            let compute = &instance.compute_instances;
            at_most(MAX_INSTANCES, at, "compute instances in one GPU instance", compute)?;
        }
        at_most(MAX_INSTANCES, at, "MIG devices", &gpu.mig_devices)?;
        at_most(MAX_INSTANCES, at, "MIG profiles", &gpu.mig_profiles)?;
        let mut links = BTreeSet::new();
        for link in at_most(MAX_INSTANCES, at, "NVLinks", &gpu.nvlinks)? {
            if !links.insert(link.link) {
                return Err(format!("{at} holds the NVLink {} twice", link.link));
            }
        }
    }
    bounded("peers", &state.peers)?;
    Ok(())
}

fn bounded<'a, T>(what: &str, list: &'a Reading<Vec<T>>) -> Result<&'a [T], String> {
    let list = list.value().map_or(&[][..], Vec::as_slice);
    match list.len() > MAX_ENTRIES {
        true => Err(format!("`{what}` holds more than {MAX_ENTRIES} entries")),
        false => Ok(list),
    }
}

fn at_most<'a, T>(
    most: usize,
    gpu: impl std::fmt::Display,
    what: &str,
    list: &'a Reading<Vec<T>>,
) -> Result<&'a [T], String> {
    let list = list.value().map_or(&[][..], Vec::as_slice);
    match list.len() > most {
        true => Err(format!("{gpu} has more than {most} {what}")),
        false => Ok(list),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn a_state_is_read_back_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("node.json");
        for intent in [example::mixed_mig(), example::whole(), example::without_gpus()] {
            let state = example::state_of(&intent);
            std::fs::write(&file, to_json("n1", &state).unwrap()).unwrap();
            let snapshot = Snapshot { file: file.clone(), node: "n1".into() };
            assert_eq!(snapshot.observe().unwrap(), state, "{}", intent.class.name);
        }
    }
}
