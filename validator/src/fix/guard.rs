//! What must hold before anything is changed. What is not certain refuses.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use fleetc_schema::pci::BusId;

use super::kubernetes;
use super::plan::Plan;
use crate::intent::NodeIntent;
use crate::slurm::SlurmNode;
use crate::state::{NodeState, Reading, UnitState};

/// The file that one fix holds at a time.
const LOCK: &str = "fix.lock";

/// How it is proved that a node is out of service.
#[derive(Debug, Clone)]
pub struct Proof {
    /// The scontrol to ask.
    pub scontrol: PathBuf,
    /// The Node of Kubernetes, as `kubectl get node NAME -o json` writes it.
    pub kubernetes_node: Option<PathBuf>,
    /// Its pods, as `kubectl get pods -A -o json --field-selector spec.nodeName=NAME` does.
    pub kubernetes_pods: Option<PathBuf>,
    /// Seconds since 1970.
    pub now: Option<u64>,
}

/// Takes the lock; it is free again once the file is dropped, or the process is dead.
///
/// # Errors
/// Says who has it, or why it cannot be had.
pub(super) fn lock(folder: &Path, pid: u32) -> Result<File, String> {
    let path = folder.join(LOCK);
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(folder).map_err(failed)?;
    let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {
            let noted = file.set_len(0).and_then(|()| file.rewind());
            noted.and_then(|()| writeln!(file, "{pid}")).map_err(failed)?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Who it is is only told.
            let _ = file.take(32).read_to_string(&mut holder);
            let holder = holder.trim();
            Err(format!("another fix, process {holder}, is at work: {}", path.display()))
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Every reason not to take the steps of a plan that this program takes.
pub(super) fn refusals(
    intent: &NodeIntent,
    plan: &Plan,
    state: &NodeState,
    proof: &Proof,
) -> Vec<String> {
    let mut refusals: Vec<String> = stuck(state).into_iter().collect();
    let gpus: BTreeSet<BusId> = plan.to_take().map(|step| step.gpu.bus_id).collect();
    refusals.extend(gpus.into_iter().filter_map(|gpu| in_use(state, gpu)));
    refusals.extend(slurm_busy(intent, state, proof));
    refusals.extend(kubernetes_busy(intent, state, proof));
    refusals
}

/// A driver that does not answer is not asked for more.
fn stuck(state: &NodeState) -> Option<String> {
    let stuck = state.stuck.first()?;
    let of = stuck.gpu.map_or_else(|| "the node".to_owned(), |gpu| format!("GPU {gpu}"));
    let call = stuck.call.as_deref().unwrap_or("the driver");
    Some(format!(
        "a probe of {of} did not come to its end ({call}, process {}): nvml.hang comes first",
        stuck.pid
    ))
}

fn in_use(state: &NodeState, bus_id: BusId) -> Option<String> {
    let gpu = state.gpus.value()?.iter().find(|gpu| gpu.bus_id == bus_id)?;
    match &gpu.processes.compute {
        Reading::Value(processes) => {
            let list: Vec<String> = processes.iter().map(u32::to_string).collect();
            (!list.is_empty()).then(|| {
                let which = if list.len() == 1 { "process" } else { "processes" };
                format!("GPU {bus_id} is in use by {which} {}", list.join(", "))
            })
        }
        reading => {
            let why = reading.absence().unwrap_or_default();
            Some(format!("whether a process is on GPU {bus_id} is {why}"))
        }
    }
}

/// Whether the agent of a scheduler may hand out work here. One that is installed and does not run, as at
/// boot, hands out nothing; one that is not to be seen may all the same, where the class says so.
fn may_run(unit: &Reading<UnitState>, is_of_class: bool) -> bool {
    match unit {
        Reading::Value(UnitState::Inactive) => false,
        Reading::Value(UnitState::NotFound) => is_of_class,
        Reading::Value(UnitState::Active) | Reading::NotApplicable(_) | Reading::Unknown(_) => true,
    }
}

/// What is known of an agent that may run.
fn shown(unit: &Reading<UnitState>) -> String {
    match unit {
        Reading::Value(UnitState::Active) => "runs".to_owned(),
        Reading::Value(UnitState::Inactive) => "does not run".to_owned(),
        Reading::Value(UnitState::NotFound) => "is no unit here, and the class is its".to_owned(),
        reading => format!("is {}", reading.absence().unwrap_or_default()),
    }
}

fn slurm_busy(intent: &NodeIntent, state: &NodeState, proof: &Proof) -> Option<String> {
    let unit = &state.host.slurmd;
    if !may_run(unit, !intent.class.advertised.gres.is_empty()) {
        return None;
    }
    match SlurmNode::ask(&proof.scontrol, &intent.node) {
        Ok(node) => node.busy(),
        Err(error) => Some(format!("slurmd {}, and Slurm cannot be asked: {error}", shown(unit))),
    }
}

fn kubernetes_busy(intent: &NodeIntent, state: &NodeState, proof: &Proof) -> Option<String> {
    let unit = &state.host.kubelet;
    let advertised = &intent.class.advertised;
    if !may_run(unit, !advertised.resources.is_empty() || !advertised.devices.is_empty()) {
        return None;
    }
    match (&proof.kubernetes_node, &proof.kubernetes_pods) {
        (Some(node), Some(pods)) => kubernetes::busy(&intent.node, (node, pods), proof.now),
        _ => Some(format!(
            "the kubelet {}: give --kubernetes-node and --kubernetes-pods, which show that the node is \
             cordoned and no pod has a GPU",
            shown(unit)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fix_holds_the_lock_and_a_dead_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("state");
        let held = lock(&folder, 11).unwrap();
        let refused = lock(&folder, 12).unwrap_err();
        assert!(refused.starts_with("another fix, process 11, is at work"), "{refused}");
        drop(held);
        // As after a crash: the file is there, and nobody holds it.
        assert_eq!(fs::read_to_string(folder.join(LOCK)).unwrap(), "11\n");
        drop(lock(&folder, 12).unwrap());
        assert_eq!(fs::read_to_string(folder.join(LOCK)).unwrap(), "12\n");
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(lock(&file, 1).is_err(), "no folder, no lock, no fix");
    }

    #[test]
    fn an_agent_hands_out_nothing_only_if_that_is_certain() {
        let unknown = Reading::Unknown("x".to_owned());
        for (unit, of_class, other) in [
            (Reading::Value(UnitState::Active), true, true),
            (Reading::Value(UnitState::Inactive), false, false),
            (Reading::Value(UnitState::NotFound), true, false),
            (unknown, true, true),
        ] {
            assert_eq!(
                (may_run(&unit, true), may_run(&unit, false)),
                (of_class, other),
                "{unit:?}"
            );
        }
    }
}
