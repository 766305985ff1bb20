//! What the driver said in the kernel log since boot.
//!
//! What an XID calls for is in `fleetc_schema::xid`. An event stays in the log after it was dealt with:
//! once the driver asks for no recovery of the GPU, it is a warning. GPUs before Hopper do not tell, so
//! there it counts until the next boot.

use std::collections::BTreeMap;

use fleetc_schema::intent::{AlertClass, AlertSeverity};
use fleetc_schema::pci::BusId;
use fleetc_schema::xid::{ACTIONS, XIDS, Xid};

use super::node::Node;
use super::outcome::{Answer, Contrast, Outcome};
use crate::report::{Action, GpuRef};
use crate::state::{LogEvent, LogEventKind, Reading, RecoveryAction};

/// Whether what befell a GPU is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    /// The driver asks for nothing more.
    Over,
    /// It asks for something, or nobody says that it does not.
    Standing,
    /// That could not be read.
    Unknown,
}

fn since(node: &Node<'_>, gpu: Option<BusId>) -> Since {
    match (gpu, &node.state.gpus) {
        (None, _) => Since::Standing,
        (Some(_), Reading::NotApplicable(_)) => Since::Standing,
        (Some(_), Reading::Unknown(_)) => Since::Unknown,
        (Some(bus_id), Reading::Value(gpus)) => {
            let Some(gpu) = gpus.iter().find(|gpu| gpu.bus_id == bus_id) else {
                return Since::Standing;
            };
            match &gpu.health.recovery_action {
                Reading::Value(RecoveryAction::None) => Since::Over,
                Reading::Value(_) | Reading::NotApplicable(_) => Since::Standing,
                Reading::Unknown(_) => Since::Unknown,
            }
        }
    }
}

/// Whether a GPU that the driver could not start has started after all.
fn since_start(node: &Node<'_>, gpu: Option<BusId>) -> Since {
    match (gpu, &node.state.gpus) {
        (None, _) | (Some(_), Reading::NotApplicable(_)) => Since::Standing,
        (Some(_), Reading::Unknown(_)) => Since::Unknown,
        (Some(bus_id), Reading::Value(gpus)) => match gpus.iter().any(|gpu| gpu.bus_id == bus_id) {
            true => Since::Over,
            false => Since::Standing,
        },
    }
}

/// Events of one kind of one GPU.
struct Group<'a> {
    last: &'a LogEvent,
    count: usize,
}

/// Judges the events of the log that `key` picks, those of one key together.
fn each_group<'a, K: Ord>(
    node: &Node<'a>,
    outcome: &mut Outcome,
    expected: &str,
    key: impl Fn(&'a LogEventKind) -> Option<K>,
    judge: impl Fn(&Group<'a>) -> Answer,
) {
    let path = node.system_path();
    if node.model().is_none() {
        return;
    }
    let log = match &node.state.host.kernel_log {
        Reading::Value(log) => log,
        reading => {
            let answer = Answer::unread("the kernel log", reading, expected);
            return outcome.node(&path, answer);
        }
    };
    let mut groups: BTreeMap<(Option<BusId>, K), Group<'a>> = BTreeMap::new();
    for event in &log.events {
        let Some(key) = key(&event.kind) else { continue };
        let group = groups.entry((event.gpu, key)).or_insert(Group { last: event, count: 0 });
        (group.last, group.count) = (event, group.count.saturating_add(1));
    }
    let mut calm = true;
    for ((bus_id, _), group) in &groups {
        let answer = judge(group);
        // What calls for nobody is no event of its own: the log as a whole is calm.
        if answer == Answer::Holds {
            continue;
        }
        calm = false;
        let known = bus_id.and_then(|bus_id| node.gpu_at(bus_id));
        let gpu = known.map(|gpu| GpuRef { bus_id: gpu.bus_id, index: gpu.index });
        outcome.take(gpu, &path, answer);
    }
    if calm {
        outcome.node(&path, Answer::Holds);
    }
}

/// `XID 79 (…), 3 times, last 120 s after boot`, and where, if NVML does not know the GPU.
fn described(node: &Node<'_>, what: &str, group: &Group<'_>) -> String {
    let mut text = what.to_owned();
    if let Some(bus_id) = group.last.gpu.filter(|bus_id| node.gpu_at(*bus_id).is_none()) {
        text = format!("{text} of {bus_id}");
    }
    if group.count > 1 {
        text = format!("{text}, {} times", group.count);
    }
    format!("{text}, last {} s after boot", group.last.at)
}

/// A fault counts as long as it stands.
fn judge_fault(since: Since, contrast: Contrast) -> Answer {
    match since {
        Since::Over => {
            let seen = format!("{}; it is over, as far as the driver tells", contrast.seen);
            Answer::Worries(Contrast { seen, ..contrast }.by(Action::Look))
        }
        Since::Standing => Answer::Fails(contrast),
        Since::Unknown => {
            let seen = format!("{}; whether it was dealt with is unknown", contrast.seen);
            Answer::Unread(Contrast { seen, ..contrast })
        }
    }
}

/// `log.xid`.
pub(super) fn xids(node: &Node<'_>, outcome: &mut Outcome) {
    let expected = "no XID that calls for an end of work";
    let key = |kind: &LogEventKind| match kind {
        LogEventKind::Xid { code, .. } => Some(*code),
        _ => None,
    };
    each_group(node, outcome, expected, key, |group| {
        let LogEventKind::Xid { code, .. } = &group.last.kind else { return Answer::Holds };
        let Some(xid) = XIDS.iter().find(|xid| xid.code == *code) else {
            let seen = described(node, &format!("XID {code}, which no table knows"), group);
            return Answer::Worries(Contrast::new(expected, seen));
        };
        let seen = described(node, &format!("XID {code} ({})", xid.name), group);
        let meaning = ACTIONS.iter().find(|(word, _)| *word == xid.action);
        let contrast = Contrast::new(expected, seen).by(word_of(xid));
        let contrast = contrast.advise(meaning.map_or(xid.action, |(_, meaning)| meaning));
        match (xid.class, xid.severity) {
            (None | Some(AlertClass::Application), _) | (_, AlertSeverity::Info) => Answer::Holds,
            (Some(_), AlertSeverity::Critical) => {
                judge_fault(since(node, group.last.gpu), contrast)
            }
            (Some(_), AlertSeverity::Warning) => Answer::Worries(contrast),
        }
    });
}

/// What is done about an XID, in our words.
fn word_of(xid: &Xid) -> Action {
    match xid.action {
        "reset_gpu" | "drain_and_reset" | "check_uvm" => Action::Reset,
        "restart_vm" | "reboot_node" => Action::Reboot,
        "rma" => Action::Replace,
        "update_sw_fw" => Action::Reconfigure,
        _ => Action::Look,
    }
}

/// `log.driver`.
pub(super) fn driver_faults(node: &Node<'_>, outcome: &mut Outcome) {
    let expected = "every GPU started, and none lost";
    let key = |kind: &LogEventKind| match kind {
        LogEventKind::FallenOffBus => Some(0_u8),
        LogEventKind::InitFailed { .. } => Some(1),
        LogEventKind::ApiMismatch { .. } => Some(2),
        LogEventKind::Xid { .. } | LogEventKind::Sxid { .. } => None,
    };
    each_group(node, outcome, expected, key, |group| {
        let gpu = group.last.gpu;
        let told = |what: &str| Contrast::new(expected, described(node, what, group));
        match &group.last.kind {
            LogEventKind::FallenOffBus => {
                let help = "power-cycle the node; check seating and power; then replace the GPU";
                judge_fault(
                    since(node, gpu),
                    told("a GPU fell off the bus").by(Action::Reboot).advise(help),
                )
            }
            LogEventKind::InitFailed { text } => {
                let what = format!("the driver could not start a GPU ({})", text.trim());
                let help = "reboot the node; if it comes back so, replace the GPU";
                judge_fault(since_start(node, gpu), told(&what).by(Action::Reboot).advise(help))
            }
            // A program brought a library of another version; `driver.match` judges the node's own.
            LogEventKind::ApiMismatch { .. } => {
                let help = "find the container or the program with a library of another driver";
                Answer::Worries(told("library and kernel module differ").advise(help))
            }
            LogEventKind::Xid { .. } | LogEventKind::Sxid { .. } => Answer::Holds,
        }
    });
}

/// `log.switch`.
pub(super) fn sxids(node: &Node<'_>, outcome: &mut Outcome) {
    let expected = "no error of an NVSwitch";
    let key = |kind: &LogEventKind| match kind {
        LogEventKind::Sxid { code, .. } => Some(*code),
        _ => None,
    };
    each_group(node, outcome, expected, key, |group| {
        let LogEventKind::Sxid { code, .. } = &group.last.kind else { return Answer::Holds };
        let seen = described(node, &format!("SXID {code}"), group);
        let help =
            "look it up in NVIDIA's fabric manager guide: fatal ones need a reset of all GPUs";
        Answer::Fails(Contrast::new(expected, seen).advise(help))
    });
}

/// `log.complete`.
pub(super) fn complete(node: &Node<'_>, outcome: &mut Outcome) {
    let expected = "a kernel log that reaches back to the boot";
    let answer = match &node.state.host.kernel_log {
        Reading::Value(log) if log.truncated => {
            Answer::Fails(Contrast::new(expected, "its first records are gone: XIDs may be, too"))
        }
        Reading::Value(_) => Answer::Holds,
        reading => Answer::unread("the kernel log", reading, expected),
    };
    if node.model().is_some() {
        outcome.node(&node.system_path(), answer);
    }
}
