//! The fabric of NVSwitches, and what runs it: the fabric manager, and IMEX between nodes.

use std::collections::BTreeMap;

use super::node::{Node, mig_is_on};
use super::outcome::{Answer, Contrast, Outcome};
use crate::report::Action;
use crate::state::{
    Fabric, FabricFault, FabricHealth, FabricState, GpuState, Reading, Service, UnitState,
};

const LOOK_AT_FABRIC: &str = "systemctl status nvidia-fabricmanager, `nvidia-smi -q` under Fabric, \
                              and the kernel log say more";

/// True if the GPUs of the node must be in a fabric.
fn is_wanted(node: &Node<'_>) -> bool {
    node.model().is_some_and(|model| model.fabric == Some(true))
}

/// `fabric.state`.
pub(super) fn state(node: &Node<'_>, outcome: &mut Outcome) {
    if !is_wanted(node) {
        return;
    }
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let expected = "fabric registration completed";
        let seen = match &gpu.fabric {
            Reading::Value(fabric) => match fabric.state {
                FabricState::Completed => return Answer::Holds,
                FabricState::InProgress => "in progress",
                FabricState::NotStarted => "not started",
            },
            reading => {
                let mig = mig_is_on(gpu) == Some(true);
                return Answer::unless_expected(mig, "fabric", reading, expected);
            }
        };
        let contrast = Contrast::new(expected, format!("fabric registration {seen}"));
        let restart = match node.class().services.fabric_manager {
            Some(true) => "systemctl restart nvidia-fabricmanager",
            Some(false) | None => "look at the fabric manager on the switch trays of the rack",
        };
        node.once_settled(contrast.advise(LOOK_AT_FABRIC).advise(restart))
    });
}

/// The fabric of a GPU that has completed its registration. What else it says has no meaning before.
fn completed(gpu: &GpuState) -> Option<&Fabric> {
    gpu.fabric.value().filter(|fabric| fabric.state == FabricState::Completed)
}

/// `fabric.status`.
pub(super) fn status(node: &Node<'_>, outcome: &mut Outcome) {
    if !is_wanted(node) {
        return;
    }
    node.each_gpu(outcome, &node.system_path(), |_, gpu| match completed(gpu) {
        // `fabric.state` has said why.
        None => Answer::NotHere,
        Some(fabric) if fabric.status == 0 => Answer::Holds,
        Some(fabric) => {
            let seen = format!("fabric status {} (an NVML code)", fabric.status);
            Answer::Fails(Contrast::new("fabric status 0, success", seen).advise(LOOK_AT_FABRIC))
        }
    });
}

/// `fabric.health`.
pub(super) fn health(node: &Node<'_>, outcome: &mut Outcome) {
    if !is_wanted(node) {
        return;
    }
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let expected = "a healthy place in the fabric";
        let Some(fabric) = completed(gpu) else { return Answer::NotHere };
        match &fabric.health {
            Reading::Value(health) => judge_health(*health, expected),
            reading => Answer::unless_expected(true, "fabric health", reading, expected),
        }
    });
}

fn judge_health(health: FabricHealth, expected: &str) -> Answer {
    let passing = |fault: &FabricFault| {
        matches!(fault, FabricFault::RouteRecovery | FabricFault::AccessTimeoutRecovery)
    };
    let faults = health.faults();
    let mut seen: Vec<&str> = faults.iter().map(|fault| fault.as_str()).collect();
    match health.summary {
        Some(2) => seen.insert(0, "unhealthy"),
        Some(3) => seen.insert(0, "limited capacity"),
        _ => {}
    }
    let contrast = Contrast::new(expected, seen.join(", ")).advise(LOOK_AT_FABRIC);
    if health.summary == Some(2) || faults.iter().any(|fault| !passing(fault)) {
        Answer::Fails(contrast)
    } else if seen.is_empty() {
        Answer::Holds
    } else {
        Answer::Worries(contrast)
    }
}

/// `fabric.clique`.
pub(super) fn clique(node: &Node<'_>, outcome: &mut Outcome) {
    if !is_wanted(node) {
        return;
    }
    let mut groups: BTreeMap<(&str, u32), Vec<u32>> = BTreeMap::new();
    for gpu in node.gpus {
        let Some(fabric) = completed(gpu) else { continue };
        groups.entry((&fabric.cluster_uuid, fabric.clique)).or_default().push(gpu.index);
    }
    let answer = match groups.len() {
        0 => Answer::NotHere,
        1 => Answer::Holds,
        _ => {
            let each = groups.iter().map(|((cluster, clique), indexes)| {
                let mut indexes = indexes.clone();
                indexes.sort_unstable();
                let list: Vec<String> = indexes.iter().map(u32::to_string).collect();
                format!("clique {clique} of {cluster} on GPU {}", list.join(" "))
            });
            let seen = each.collect::<Vec<_>>().join(", ");
            let contrast = Contrast::new("one fabric clique for all GPUs", seen);
            Answer::Fails(contrast.advise("look at the partitions of the NVLink switches"))
        }
    };
    outcome.node(&node.system_path(), answer);
}

/// `fabric.domain`.
pub(super) fn domain(node: &Node<'_>, outcome: &mut Outcome) {
    let class = node.class();
    let on_node = class.gpus.len() + class.missing.len();
    let domain = node.model().and_then(|model| model.nvlink_domain);
    let Some(domain) = domain.filter(|gpus| is_wanted(node) && usize::from(*gpus) > on_node) else {
        return;
    };
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let Some(fabric) = completed(gpu) else { return Answer::NotHere };
        let none = fabric.cluster_uuid.chars().all(|c| matches!(c, '0' | '-'));
        match none {
            false => Answer::Holds,
            true => Answer::Fails(
                Contrast::new(
                    format!("the UUID of an NVLink domain of {domain} GPUs"),
                    "a UUID of zeros: the node is alone",
                )
                .advise("look at the cables to the NVLink switches, and at their fabric manager"),
            ),
        }
    });
}

/// `fabric_manager.runs`.
pub(super) fn manager_runs(node: &Node<'_>, outcome: &mut Outcome) {
    let wanted = node.class().services.fabric_manager;
    let service = &node.state.host.fabric_manager;
    runs(node, outcome, "nvidia-fabricmanager", service, wanted);
}

/// `imex.runs`.
pub(super) fn imex_runs(node: &Node<'_>, outcome: &mut Outcome) {
    runs(node, outcome, "nvidia-imex", &node.state.host.imex, node.class().services.imex);
}

fn runs(
    node: &Node<'_>,
    outcome: &mut Outcome,
    unit: &str,
    service: &Service,
    wanted: Option<bool>,
) {
    let Some(wanted) = wanted.filter(|_| node.model().is_some()) else { return };
    let expected = match wanted {
        true => format!("{unit} active"),
        false => format!("no {unit} on this node"),
    };
    let answer = match &service.unit {
        Reading::Value(UnitState::Active) if wanted => Answer::Holds,
        Reading::Value(UnitState::Active) => Answer::Fails(
            Contrast::new(expected, "active").advise(format!("systemctl disable --now {unit}")),
        ),
        Reading::Value(UnitState::Inactive | UnitState::NotFound) if !wanted => Answer::Holds,
        Reading::Value(UnitState::Inactive) => node.once_settled(
            Contrast::new(expected, "inactive").advise(format!("systemctl enable --now {unit}")),
        ),
        Reading::Value(UnitState::NotFound) => node.once_settled(
            Contrast::new(expected, "not installed")
                .advise(format!("install {unit} of the driver's version")),
        ),
        reading => Answer::unless_expected(!wanted, unit, reading, expected),
    };
    outcome.node(&node.system_path(), answer);
}

/// `fabric_manager.version`: it refuses to work with another driver, so does CUDA then.
pub(super) fn manager_version(node: &Node<'_>, outcome: &mut Outcome) {
    let wanted = node.class().services.fabric_manager;
    let service = &node.state.host.fabric_manager;
    version(node, outcome, "the fabric manager", service, wanted);
}

/// `imex.version`.
pub(super) fn imex_version(node: &Node<'_>, outcome: &mut Outcome) {
    version(node, outcome, "IMEX", &node.state.host.imex, node.class().services.imex);
}

fn version(
    node: &Node<'_>,
    outcome: &mut Outcome,
    what: &str,
    service: &Service,
    wanted: Option<bool>,
) {
    if wanted != Some(true) || node.model().is_none() {
        return;
    }
    let driver = &node.state.driver;
    let expected = match driver.value() {
        Some(driver) => format!("{what} {driver}"),
        None => format!("{what} of the driver's version"),
    };
    let answer = match (&service.version, driver) {
        (Reading::Value(seen), Reading::Value(driver)) if seen == driver => Answer::Holds,
        (Reading::Value(seen), Reading::Value(_)) => Answer::Fails(
            Contrast::new(expected, format!("{what} {seen}"))
                .by(Action::Reconfigure)
                .advise("install the version of the driver, and hold both back from lone upgrades"),
        ),
        (Reading::Value(_), reading) => Answer::unread("driver", reading, expected),
        // Whether it is installed is the other check's business.
        (reading, _) => Answer::unless_expected(true, what, reading, expected),
    };
    outcome.node(&node.driver_path(), answer);
}
