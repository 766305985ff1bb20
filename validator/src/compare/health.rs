//! What the driver wants done, heat and throttling.

use super::node::Node;
use super::nvidia_smi;
use super::outcome::{Answer, Contrast, Outcome};
use crate::report::Action;
use crate::state::{GpuState, Reading, RecoveryAction};

/// `recovery.action`: the one flag that says if a GPU is fit for use, since Hopper.
pub(super) fn recovery(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let expected = "no recovery asked for";
        let wanted = match &gpu.health.recovery_action {
            Reading::Value(wanted) => *wanted,
            reading => return Answer::unless_expected(true, "recovery action", reading, expected),
        };
        let reset = nvidia_smi::reset(gpu.bus_id);
        let (seen, action, help) = match wanted {
            RecoveryAction::None => return Answer::Holds,
            RecoveryAction::GpuReset => ("a reset of the GPU", Action::Reset, vec![reset]),
            RecoveryAction::NodeReboot | RecoveryAction::SystemReboot => {
                ("a reboot", Action::Reboot, vec!["drain the node, and reboot it".to_owned()])
            }
            RecoveryAction::DrainP2p => (
                "an end of peer-to-peer traffic, then a reset",
                Action::Reset,
                vec!["end the jobs that use GPUs together".to_owned(), reset],
            ),
            RecoveryAction::DrainAndReset => (
                "no new work, then a reset",
                Action::Reset,
                vec!["drain the node".to_owned(), reset],
            ),
            RecoveryAction::RecoverImex => {
                ("a recovery of IMEX", Action::Look, vec!["restart nvidia-imex".to_owned()])
            }
            RecoveryAction::BusReset => (
                "a reset of the bus",
                Action::Reboot,
                vec!["drain the node, and reboot it".to_owned()],
            ),
        };
        let mut contrast = Contrast::new(expected, format!("the driver asks for {seen}"));
        contrast.actions = help;
        Answer::Fails(contrast.by(action))
    });
}

/// `throttle.hardware`: on an idle GPU a fault of cooling or power; under load perhaps a hot day.
pub(super) fn throttle(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let expected = "no slowdown by hardware";
        let reasons = match &gpu.health.clocks_event_reasons {
            Reading::Value(reasons) => *reasons,
            reading => return Answer::unread("clocks event reasons", reading, expected),
        };
        let faults: Vec<&str> = reasons.faults().collect();
        if faults.is_empty() {
            return Answer::Holds;
        }
        let seen = [faults.join(", ")].into_iter().chain(circumstances(gpu));
        let seen = seen.collect::<Vec<_>>().join(", ");
        let contrast = Contrast::new(expected, seen)
            .advise("check fans, inlet air, coolant and power supplies of the node");
        // Processes of other namespaces are not seen in a container, so they do not tell if it is idle.
        match reasons.is_idle() {
            true => Answer::Fails(contrast),
            false => Answer::Worries(contrast),
        }
    });
}

/// Temperature and power limit, as far as they are known.
fn circumstances(gpu: &GpuState) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(gpu.health.thermal.gpu.value().map(|heat| format!("{} °C", heat.0)));
    facts.extend(
        gpu.power.enforced_limit.value().map(|limit| format!("limit {} W", limit.0 / 1000)),
    );
    facts
}

/// `thermal.margin`.
pub(super) fn thermal(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let expected = "a GPU colder than where its clocks fall";
        let thermal = &gpu.health.thermal;
        let hot = |seen: String| {
            let help = "check fans, inlet air and coolant of the node";
            Answer::Fails(Contrast::new(expected, seen).advise(help))
        };
        match (&thermal.margin, &thermal.gpu, &thermal.slowdown) {
            (Reading::Value(margin), ..) if margin.0 <= 0 => {
                hot(format!("{} °C to the slowdown", margin.0))
            }
            (_, Reading::Value(heat), Reading::Value(slowdown)) if heat >= slowdown => {
                hot(format!("{} °C, slowdown at {} °C", heat.0, slowdown.0))
            }
            (Reading::Value(_), ..) | (_, Reading::Value(_), Reading::Value(_)) => Answer::Holds,
            (_, reading, Reading::Value(_)) | (_, _, reading) => {
                Answer::unless_expected(true, "temperature", reading, expected)
            }
        }
    });
}
