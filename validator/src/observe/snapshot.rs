//! Snapshot files: the readings of a node, kept.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Observe, ObserveError};
use crate::input::{self, InputError};
use crate::intent::MAX_INSTANCES;
use crate::state::{GpuState, NodeState, PciGpu, Reading};

/// The schema tag of a snapshot.
pub const SNAPSHOT_SCHEMA: &str = "fleetc/snapshot/v1";

/// A snapshot file, of a node that is known beforehand.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The file.
    pub file: PathBuf,
    /// The node that it must be of.
    pub node: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: String,
    node: String,
    driver: Reading<String>,
    pci_gpus: Reading<Vec<PciGpu>>,
    gpus: Reading<Vec<GpuState>>,
}

impl Observe for Snapshot {
    fn observe(&self) -> Result<NodeState, ObserveError> {
        let read = |source| InputError::read(&self.file, source);
        let file = File::open(&self.file).map_err(read)?;
        let bytes = input::read_to_end(&self.file, file)?;
        let document: Document = input::document(&self.file, &bytes, SNAPSHOT_SCHEMA)?;
        let Document { schema: _, node: taken_on, driver, pci_gpus, gpus } = document;
        if taken_on != self.node {
            let (file, node) = (self.file.clone(), self.node.clone());
            return Err(ObserveError::OtherNode { file, taken_on, node });
        }
        let state = NodeState { driver, pci_gpus, gpus };
        check(&state).map_err(|problem| InputError::content(&self.file, problem))?;
        Ok(state)
    }
}

/// Bus ids and indexes tell GPUs apart, so no two may be equal.
fn check(state: &NodeState) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for gpu in state.pci_gpus.value().into_iter().flatten() {
        if !seen.insert(gpu.bus_id) {
            return Err(format!("`pci_gpus` holds {} twice", gpu.bus_id));
        }
    }
    let (mut bus_ids, mut indexes) = (BTreeSet::new(), BTreeSet::new());
    for gpu in state.gpus.value().into_iter().flatten() {
        if !bus_ids.insert(gpu.bus_id) {
            return Err(format!("`gpus` holds {} twice", gpu.bus_id));
        }
        if !indexes.insert(gpu.index) {
            return Err(format!("`gpus` holds the index {} twice", gpu.index));
        }
        if gpu.gpu_instances.value().is_some_and(|instances| instances.len() > MAX_INSTANCES) {
            return Err(format!("{} has more than {MAX_INSTANCES} GPU instances", gpu.bus_id));
        }
    }
    Ok(())
}
