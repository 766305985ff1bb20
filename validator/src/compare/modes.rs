//! Modes and limits that someone sets.

use super::node::Node;
use super::nvidia_smi;
use super::outcome::{Answer, Contrast, Outcome};
use crate::report::Action;
use crate::state::{ComputeMode, Reading};

/// `on` or `off`.
pub(super) fn on_off(mode: bool) -> &'static str {
    if mode { "on" } else { "off" }
}

/// `ecc.mode`: a change takes effect at a reset or a reboot.
pub(super) fn ecc(node: &Node<'_>, outcome: &mut Outcome) {
    let Some(wanted) = node.policy().and_then(|policy| policy.ecc) else { return };
    node.each_gpu(outcome, &node.policy_path(&["ecc"]), |_, gpu| {
        let expected = format!("ECC {}", on_off(wanted));
        let set = format!("nvidia-smi -i {} -e {}", gpu.bus_id, u8::from(wanted));
        match &gpu.modes.ecc {
            Reading::Value(mode) if mode.current == wanted && mode.pending == wanted => {
                Answer::Holds
            }
            Reading::Value(mode) if mode.current == wanted => {
                let seen = format!("ECC {}, {} pending", on_off(wanted), on_off(mode.pending));
                let expected = format!("{expected}, and to stay so");
                Answer::Worries(Contrast::new(expected, seen).advise(set))
            }
            Reading::Value(mode) => {
                let seen = match mode.pending == wanted {
                    true => format!("ECC {}, {} pending", on_off(mode.current), on_off(wanted)),
                    false => format!("ECC {}", on_off(mode.current)),
                };
                let contrast = Contrast::new(expected, seen);
                let contrast = match mode.pending == wanted {
                    true => contrast.by(Action::Reboot),
                    false => contrast.advise(set),
                };
                Answer::Fails(contrast.advise(nvidia_smi::apply_mode(gpu.bus_id)))
            }
            reading => Answer::unread("ECC mode", reading, expected),
        }
    });
}

/// `persistence.mode`: the daemon that sets it starts late.
pub(super) fn persistence(node: &Node<'_>, outcome: &mut Outcome) {
    let Some(wanted) = node.policy().and_then(|policy| policy.persistence) else { return };
    node.each_gpu(outcome, &node.policy_path(&["persistence"]), |_, gpu| {
        let expected = format!("persistence mode {}", on_off(wanted));
        match &gpu.modes.persistence {
            Reading::Value(mode) if *mode == wanted => Answer::Holds,
            Reading::Value(mode) => {
                let contrast = Contrast::new(expected, format!("persistence {}", on_off(*mode)));
                let contrast = match wanted {
                    true => contrast.advise("systemctl enable --now nvidia-persistenced"),
                    false => contrast.advise("systemctl disable --now nvidia-persistenced"),
                };
                node.once_settled(contrast)
            }
            reading => Answer::unread("persistence mode", reading, expected),
        }
    });
}

/// `compute.mode`: it ends with a reboot, and someone may have left it.
pub(super) fn compute(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let expected = "a compute mode in which work runs";
        match &gpu.modes.compute {
            Reading::Value(ComputeMode::Prohibited) => Answer::Fails(
                Contrast::new(expected, "compute mode Prohibited")
                    .advise(format!("nvidia-smi -i {} -c DEFAULT", gpu.bus_id)),
            ),
            Reading::Value(
                ComputeMode::Default | ComputeMode::ExclusiveProcess | ComputeMode::ExclusiveThread,
            ) => Answer::Holds,
            reading => Answer::unless_expected(true, "compute mode", reading, expected),
        }
    });
}

/// `power.limit`: limits are set anew each time that the driver is loaded.
pub(super) fn power_limit(node: &Node<'_>, outcome: &mut Outcome) {
    let Some(wanted) = node.policy().and_then(|policy| policy.power_limit) else { return };
    node.each_gpu(outcome, &node.policy_path(&["power-limit"]), |_, gpu| {
        let expected = format!("a power limit of {} W", wanted.0);
        match &gpu.power.limit {
            Reading::Value(limit) if *limit == wanted.to_milliwatts() => Answer::Holds,
            Reading::Value(limit) => {
                let seen = format!("{} W", limit.0 / 1000);
                let contrast = Contrast::new(expected, seen);
                let set = format!("nvidia-smi -i {} -pl {}", gpu.bus_id, wanted.0);
                node.once_settled(contrast.advise(set))
            }
            reading => Answer::unread("power limit", reading, expected),
        }
    });
}

/// `power.enforced`.
pub(super) fn power_enforced(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let expected = "no limiter below the power limit";
        match (&gpu.power.limit, &gpu.power.enforced_limit) {
            (Reading::Value(limit), Reading::Value(enforced)) if enforced < limit => {
                let seen = format!("{} W enforced of {} W", enforced.0 / 1000, limit.0 / 1000);
                let help = "look for a limit of the module, the board or the power supplies";
                Answer::Fails(Contrast::new(expected, seen).advise(help))
            }
            (Reading::Value(_), Reading::Value(_)) => Answer::Holds,
            (reading, Reading::Value(_)) | (_, reading) => {
                Answer::unless_expected(true, "power limit", reading, expected)
            }
        }
    });
}
