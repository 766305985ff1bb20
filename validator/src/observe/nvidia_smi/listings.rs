//! What `nvidia-smi -L`, `mig -lgi`, `mig -lci` and `topo -m` print, laid over what the XML said.
//!
//! They are tables for people: lines that are no row are passed over, and a row that is not understood
//! is refused at its place, since half a table is worse than none.

use std::path::Path;

use fleetc_schema::mig::Placement;

use crate::input::InputError;
use crate::intent::MAX_INSTANCES;
use crate::state::{
    ComputeInstanceState, GpuInstanceState, GpuState, Mode, NodeState, P2pStatus, PeerLink, Reading,
};

/// A line, and its number.
struct Row<'a> {
    file: &'a Path,
    line: usize,
    text: &'a str,
}

impl Row<'_> {
    /// A refusal at a word of the line, or at its start.
    fn refuse(&self, word: &str, problem: impl Into<String>) -> InputError {
        // A word of the line is a part of it.
        let offset = word.as_ptr().addr().checked_sub(self.text.as_ptr().addr());
        let within = offset.filter(|offset| *offset <= self.text.len());
        let column = within.unwrap_or_default().saturating_add(1);
        let (file, message) = (self.file.to_owned(), problem.into());
        InputError::Place { file, line: self.line, column, message }
    }

    fn number<N: std::str::FromStr>(&self, word: &str) -> Result<N, InputError> {
        word.parse().map_err(|_| self.refuse(word, format!("`{word}` is not a number")))
    }

    /// `start:size`.
    fn placement(&self, word: &str) -> Result<Placement, InputError> {
        let refuse = || self.refuse(word, format!("`{word}` is not a placement: `start:size`"));
        let (start, size) = word.split_once(':').ok_or_else(refuse)?;
        let start = start.parse().map_err(|_| refuse())?;
        let size = size.parse().map_err(|_| refuse())?;
        Ok(Placement { start, size })
    }
}

fn rows<'a>(file: &'a Path, text: &'a str) -> impl Iterator<Item = Row<'a>> {
    (1..).zip(text.lines()).map(move |(line, text)| Row { file, line, text })
}

/// The GPU of an index.
fn gpu<'a>(
    row: &Row<'_>,
    word: &str,
    state: &'a mut NodeState,
) -> Result<&'a mut GpuState, InputError> {
    let index: u32 = row.number(word)?;
    let gpus = match &mut state.gpus {
        Reading::Value(gpus) => gpus.as_mut_slice(),
        Reading::NotApplicable(_) | Reading::Unknown(_) => &mut [],
    };
    let found = gpus.iter_mut().find(|gpu| gpu.index == index);
    found.ok_or_else(|| row.refuse(word, format!("the XML has no GPU {index}")))
}

/// GPUs with MIG mode on, whose instances a table lists all of.
fn with_mig(state: &mut NodeState) -> impl Iterator<Item = &mut GpuState> {
    let gpus = match &mut state.gpus {
        Reading::Value(gpus) => gpus.as_mut_slice(),
        Reading::NotApplicable(_) | Reading::Unknown(_) => &mut [],
    };
    gpus.iter_mut().filter(|gpu| matches!(gpu.mig_mode, Reading::Value(Mode { current: true, .. })))
}

/// The words of a row of a table of `nvidia-smi mig`; none if the line is no row.
fn cells<'a>(row: &Row<'a>) -> Option<Vec<&'a str>> {
    let inner = row.text.trim().strip_prefix('|')?.strip_suffix('|')?;
    let words: Vec<&str> = inner.split_whitespace().collect();
    // Headings begin with words.
    let first = words.first()?;
    first.bytes().all(|byte| byte.is_ascii_digit()).then_some(words)
}

/// `nvidia-smi mig -lgi`: GPU, `MIG`, profile, profile id, instance id, placement.
pub(super) fn gpu_instances(
    file: &Path,
    text: &str,
    state: &mut NodeState,
) -> Result<(), InputError> {
    check_title(file, text, "GPU instances:")?;
    for gpu in with_mig(state) {
        gpu.gpu_instances = Reading::Value(Vec::new());
    }
    for row in rows(file, text) {
        let Some(words) = cells(&row) else { continue };
        let [index, "MIG", _, profile, id, placement] = words.as_slice() else {
            return Err(row.refuse("", "not a row of `nvidia-smi mig -lgi`"));
        };
        let instance = GpuInstanceState {
            id: row.number(id)?,
            profile_id: row.number(profile)?,
            placement: row.placement(placement)?,
            compute_instances: Reading::Unknown(
                "not in the XML: give the output of `nvidia-smi mig -lci`".to_owned(),
            ),
        };
        let gpu = gpu(&row, index, state)?;
        let Reading::Value(instances) = &mut gpu.gpu_instances else {
            return Err(row.refuse(index, "in the XML this GPU has MIG mode off"));
        };
        if instances.len() >= MAX_INSTANCES || instances.iter().any(|old| old.id == instance.id) {
            return Err(row.refuse(id, "a GPU instance twice, or more than a GPU has"));
        }
        instances.push(instance);
    }
    Ok(())
}

/// `nvidia-smi mig -lci`: GPU, GPU instance, `MIG`, profile, profile id, instance id, placement.
pub(super) fn compute_instances(
    file: &Path,
    text: &str,
    state: &mut NodeState,
) -> Result<(), InputError> {
    check_title(file, text, "Compute instances:")?;
    for gpu in with_mig(state) {
        if let Reading::Value(instances) = &mut gpu.gpu_instances {
            for instance in instances {
                instance.compute_instances = Reading::Value(Vec::new());
            }
        }
    }
    for row in rows(file, text) {
        let Some(words) = cells(&row) else { continue };
        let [index, within, "MIG", _, profile, id, placement] = words.as_slice() else {
            return Err(row.refuse("", "not a row of `nvidia-smi mig -lci`"));
        };
        let within_id: u32 = row.number(within)?;
        let compute = ComputeInstanceState {
            id: row.number(id)?,
            profile_id: row.number(profile)?,
            placement: row.placement(placement)?,
        };
        let gpu = gpu(&row, index, state)?;
        // Without `-lgi` nothing says where they would stand.
        let Reading::Value(instances) = &mut gpu.gpu_instances else { continue };
        let found = instances.iter_mut().find(|instance| instance.id == within_id);
        let Some(Reading::Value(all)) = found.map(|instance| &mut instance.compute_instances)
        else {
            let problem = format!("`nvidia-smi mig -lgi` has no GPU instance {within_id} here");
            return Err(row.refuse(within, problem));
        };
        if all.len() >= MAX_INSTANCES || all.iter().any(|old| old.id == compute.id) {
            return Err(row.refuse(id, "a compute instance twice, or more than there can be"));
        }
        all.push(compute);
    }
    Ok(())
}

/// The table says what it lists; without instances nvidia-smi says that none is found.
fn check_title(file: &Path, text: &str, title: &str) -> Result<(), InputError> {
    let is_none = text.lines().any(|line| line.starts_with("No ") && line.contains("found"));
    match text.contains(title) || is_none {
        true => Ok(()),
        false => Err(InputError::content(file, format!("holds no table `{title}`"))),
    }
}

/// `nvidia-smi -L`: `GPU 0: NAME (UUID: …)`, and below it `MIG 1g.10gb Device 0: (UUID: …)`.
pub(super) fn mig_devices(
    file: &Path,
    text: &str,
    state: &mut NodeState,
) -> Result<(), InputError> {
    let mut current: Option<String> = None;
    for row in rows(file, text) {
        let line = row.text.trim();
        if let Some(rest) = line.strip_prefix("GPU ") {
            let Some((index, _)) = rest.split_once(':') else {
                return Err(row.refuse("", "not a line of `nvidia-smi -L`"));
            };
            gpu(&row, index, state)?;
            current = Some(index.to_owned());
            continue;
        }
        let Some(rest) = line.strip_prefix("MIG ") else { continue };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (Some(index), [profile, "Device", number, "(UUID:", uuid]) =
            (&current, words.as_slice())
        else {
            return Err(row.refuse("", "not a line of `nvidia-smi -L`"));
        };
        let number: u32 = row.number(number.trim_end_matches(':'))?;
        let gpu = gpu(&row, index, state)?;
        let name = gpu.name.value().map_or_else(String::new, |name| format!("{name} "));
        if let Reading::Value(devices) = &mut gpu.mig_devices
            && let Some(device) = devices.iter_mut().find(|device| device.index == number)
        {
            device.name = Reading::Value(format!("{name}MIG {profile}"));
            device.uuid = Reading::Value(uuid.trim_end_matches(')').to_owned());
        }
    }
    Ok(())
}

/// `nvidia-smi topo -m`: a matrix of GPUs and adapters, then affinities. `NV18` is a pair joined by 18
/// NVLinks, any other word a path over PCIe or the processors.
pub(super) fn topology(file: &Path, text: &str, state: &mut NodeState) -> Result<(), InputError> {
    let plain = without_colours(text);
    let mut lines = rows(file, &plain).skip_while(|row| !row.text.contains("GPU0"));
    let heading =
        lines.next().ok_or_else(|| InputError::content(file, "holds no matrix of GPUs"))?;
    let columns: Vec<&str> = columns(heading.text);
    let near = columns.iter().position(|column| *column == "NUMA Affinity");
    let mut peers: Vec<PeerLink> = Vec::new();
    for row in lines {
        let cells: Vec<&str> = row.text.split('\t').map(str::trim).collect();
        let Some(index) = cells.first().and_then(|cell| cell.strip_prefix("GPU")) else { continue };
        let a = gpu(&row, index, state)?.bus_id;
        // The first cell is the name of the row.
        let cells = cells.get(1..).unwrap_or_default();
        for (column, cell) in columns.iter().zip(cells) {
            let Some(other) = column.strip_prefix("GPU").filter(|other| is_number(other)) else {
                continue;
            };
            let b = gpu(&row, other, state)?.bus_id;
            if a >= b {
                continue;
            }
            let nvlink = match cell.strip_prefix("NV") {
                Some(links) if is_number(links) => P2pStatus::Ok,
                _ if ["PIX", "PXB", "PHB", "NODE", "SYS"].contains(cell) => {
                    P2pStatus::TopologyNotSupported
                }
                _ => return Err(row.refuse(cell, format!("`{cell}` is no link of GPUs"))),
            };
            if peers.iter().any(|peer| peer.a == a && peer.b == b) {
                return Err(row.refuse("", "a GPU twice"));
            }
            peers.push(PeerLink { a, b, nvlink });
        }
        let nodes = near.and_then(|near| cells.get(near)).and_then(|cell| numa_nodes(cell));
        if let Some(nodes) = nodes {
            gpu(&row, index, state)?.numa.near_nodes = Reading::Value(nodes);
        }
    }
    peers.sort_by_key(|peer| (peer.a, peer.b));
    state.peers = Reading::Value(peers);
    Ok(())
}

/// The titles of the columns. They are parted by tabs, and some hold blanks.
fn columns(heading: &str) -> Vec<&str> {
    heading.split('\t').map(str::trim).filter(|column| !column.is_empty()).collect()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `0`, `0-1`, `0,3-9`.
fn numa_nodes(text: &str) -> Option<Vec<u32>> {
    let mut nodes = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        // A kernel has at most 1,024 nodes.
        if last >= 1_024 || first > last {
            return None;
        }
        nodes.extend(first..=last);
    }
    Some(nodes)
}

/// The text without what steers a terminal: the heading is underlined.
fn without_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic());
        rest = end.and_then(|end| after.get(end..)).and_then(|after| after.get(1..)).unwrap_or("");
    }
    out.push_str(rest);
    out
}
