//! `nvidia-smi -q -x`, in its schemas v11, v12 and v13, with what its other commands print.
//!
//! For who has a capture of a node and not the node. The XML has less than NVML: no GPUs that PCI shows
//! alone, no placements of GPU instances, no NVLinks. Those stay unknown, so that checks on them are
//! undecided. What follows from another fact is told as inferred.
//!
//! Source: the documents' own structure, as public captures of drivers 470 to 595 show it.

mod gpu;
mod listings;
mod xml;

use std::path::{Path, PathBuf};

use super::{Observe, ObserveError};
use crate::input::{self, InputError};
use crate::state::{DriverState, NodeState, Reading};
use xml::Element;

/// The outermost element.
const ROOT: &str = "nvidia_smi_log";

/// The most GPUs that are taken.
const MAX_GPUS: usize = 64;

/// Captures of one node.
#[derive(Debug, Clone, Default)]
pub struct NvidiaSmi {
    /// `nvidia-smi -q -x`.
    pub query: PathBuf,
    /// `nvidia-smi -L`: names and UUIDs of MIG devices.
    pub list: Option<PathBuf>,
    /// `nvidia-smi mig -lgi`: GPU instances with their placements.
    pub gpu_instances: Option<PathBuf>,
    /// `nvidia-smi mig -lci`: compute instances.
    pub compute_instances: Option<PathBuf>,
    /// `nvidia-smi topo -m`: which GPUs NVLink joins, and NUMA nodes.
    pub topology: Option<PathBuf>,
}

/// What was read, and what of it was not read but follows from something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inferred {
    /// The state.
    pub state: NodeState,
    /// Facts that were inferred, each in a few words.
    pub inferred: Vec<&'static str>,
}

impl Observe for NvidiaSmi {
    fn observe(&self) -> Result<NodeState, ObserveError> {
        self.read().map(|read| read.state)
    }
}

impl NvidiaSmi {
    /// Reads the captures.
    ///
    /// # Errors
    /// A file is missing or is not what it should be.
    pub fn read(&self) -> Result<Inferred, ObserveError> {
        let bytes = input::contents(&self.query)?;
        let root = xml::parse(&self.query, &bytes)?;
        let mut inferred = Vec::new();
        let mut state = node(&self.query, &root, &mut inferred)?;
        if let Some(file) = &self.list {
            listings::mig_devices(file, &text(file)?, &mut state)?;
        }
        if let Some(file) = &self.gpu_instances {
            listings::gpu_instances(file, &text(file)?, &mut state)?;
        }
        if let Some(file) = &self.compute_instances {
            listings::compute_instances(file, &text(file)?, &mut state)?;
        }
        if let Some(file) = &self.topology {
            listings::topology(file, &text(file)?, &mut state)?;
            inferred.push("peers over NVLink, from the links of the topology matrix");
        }
        Ok(Inferred { state, inferred })
    }
}

fn text(file: &Path) -> Result<String, InputError> {
    let bytes = input::contents(file)?;
    String::from_utf8(bytes).map_err(|_| InputError::content(file, "not UTF-8"))
}

fn node(
    file: &Path,
    root: &Element,
    inferred: &mut Vec<&'static str>,
) -> Result<NodeState, InputError> {
    if root.name != ROOT {
        let problem = format!("`{}`, where `nvidia-smi -q -x` has `{ROOT}`", root.name);
        return Err(xml::at(file, root.at, problem));
    }
    let mut gpus = Vec::new();
    for (index, element) in (0..).zip(root.all("gpu")) {
        let id = element.id.as_deref().unwrap_or_default();
        let bus_id = id.parse().map_err(|error: fleetc_schema::pci::BusIdError| {
            xml::at(file, element.at, error.to_string())
        })?;
        let gpu = gpu::read(element, bus_id, index);
        if gpus.len() >= MAX_GPUS {
            return Err(xml::at(file, element.at, format!("more than {MAX_GPUS} GPUs")));
        }
        if gpus.iter().any(|other: &crate::state::GpuState| other.bus_id == bus_id) {
            return Err(xml::at(file, element.at, format!("a second GPU at {bus_id}")));
        }
        gpus.push(gpu);
    }
    if !gpus.is_empty() {
        inferred.push("NVML indexes, from the order of the GPUs");
    }
    // v13 has another name for it, and will lose the old one.
    let first = |names: [&str; 2]| match gpu::string(root, &[names[0]]) {
        Reading::Value(value) => Reading::Value(value),
        other => match gpu::string(root, &[names[1]]) {
            Reading::Value(value) => Reading::Value(value),
            _ => other,
        },
    };
    Ok(NodeState {
        driver: first(["driver_version", "kmd_version"]),
        driver_state: DriverState {
            kernel_module: gpu::string(root, &["kmd_version"]),
            cuda: first(["cuda_version", "cuda_umd_version"]),
            gpu_count: gpu::number(root, &["attached_gpus"]),
            ..DriverState::default()
        },
        pci_gpus: Reading::Unknown("nvidia-smi shows only what the driver opened".to_owned()),
        gpus: Reading::Value(gpus),
        ..NodeState::default()
    })
}

#[cfg(test)]
mod tests;
