//! The driver, its library, and the firmware that it loads or finds.

use std::str::FromStr;

use fleetc_schema::version::Version;

use super::node::{Node, all_alike};
use super::outcome::{Answer, Contrast, Outcome};
use crate::report::Action;
use crate::state::Reading;

/// `driver.match`: after an upgrade without a reboot, library and kernel module differ.
pub(super) fn versions_match(node: &Node<'_>, outcome: &mut Outcome) {
    if node.model().is_none() {
        return;
    }
    let state = node.state;
    // NVML's own version is that of CUDA's major release and the driver's: `13.580.105.08`.
    let nvml = state.driver_state.nvml.clone().map(|version| {
        let rest = version.split_once('.').map(|(_, rest)| rest.to_owned());
        rest.unwrap_or(version)
    });
    let readings = [
        ("driver", &state.driver),
        ("kernel module", &state.driver_state.kernel_module),
        ("NVML", &nvml),
    ];
    let expected = "one version of driver, kernel module and NVML";
    let values: Vec<(&str, &String)> =
        readings.iter().filter_map(|(what, reading)| Some((*what, reading.value()?))).collect();
    let differ = values.windows(2).any(|pair| match pair {
        [(_, a), (_, b)] => a != b,
        _ => false,
    });
    let answer = if differ {
        let seen: Vec<String> =
            values.iter().map(|(what, version)| format!("{what} {version}")).collect();
        let contrast = Contrast::new(expected, seen.join(", "));
        Answer::Fails(contrast.advise("reboot the node, so that the installed driver is loaded"))
    } else {
        let absent = readings.iter().find(|(_, reading)| reading.value().is_none());
        match absent {
            Some((what, reading)) => Answer::unread(what, reading, expected),
            None => Answer::Holds,
        }
    };
    outcome.node(&node.driver_path(), answer);
}

/// `driver.policy`.
pub(super) fn meets_policy(node: &Node<'_>, outcome: &mut Outcome) {
    let Some(wanted) = node.policy().and_then(|policy| policy.driver.as_ref()) else { return };
    if node.model().is_none() {
        return;
    }
    let expected = format!("a driver {wanted}");
    let answer = match &node.state.driver {
        Reading::Value(text) => match Version::from_str(text) {
            Ok(version) if wanted.matches(&version) => Answer::Holds,
            Ok(_) => {
                let contrast = Contrast::new(expected, format!("driver {text}"));
                Answer::Fails(contrast.advise("install the driver that the spec states"))
            }
            Err(error) => Answer::Unread(Contrast::new(expected, error.to_string())),
        },
        reading => Answer::unread("driver", reading, expected),
    };
    outcome.node(&node.policy_path(&["driver"]), answer);
}

/// `driver.version`.
pub(super) fn is_that_of_spec(node: &Node<'_>, outcome: &mut Outcome) {
    if node.model().is_none() {
        return;
    }
    let wanted = &node.class().driver.version;
    let expected = format!("driver {wanted}");
    let answer = match &node.state.driver {
        Reading::Value(text) if *text == wanted.to_string() => Answer::Holds,
        Reading::Value(text) => {
            let contrast = Contrast::new(expected, format!("driver {text}"));
            Answer::Fails(contrast.advise("bring the driver to the version of the spec"))
        }
        reading => Answer::unread("driver", reading, expected),
    };
    outcome.node(&node.driver_path(), answer);
}

/// `firmware.vbios`.
pub(super) fn vbios_alike(node: &Node<'_>, outcome: &mut Outcome) {
    let reading = |gpu: &crate::state::GpuState| gpu.firmware.vbios.clone();
    let answer = all_alike(node.gpus, "VBIOS", reading, String::clone);
    outcome.node(&node.system_path(), answer);
}

/// `firmware.inforom`.
pub(super) fn inforom_alike(node: &Node<'_>, outcome: &mut Outcome) {
    let reading = |gpu: &crate::state::GpuState| gpu.firmware.inforom.clone();
    let answer = all_alike(node.gpus, "InfoROM", reading, String::clone);
    outcome.node(&node.system_path(), answer);
}

/// `firmware.inforom_valid`.
pub(super) fn inforom_valid(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |_, gpu| match &gpu.firmware.inforom_valid {
        Reading::Value(true) => Answer::Holds,
        Reading::Value(false) => Answer::Fails(
            Contrast::new("an InfoROM whose checksum holds", "a corrupted InfoROM")
                .advise("flash the InfoROM with the vendor's tool, else replace the GPU"),
        ),
        reading => Answer::unless_expected(true, "the InfoROM", reading, "a sound InfoROM"),
    });
}

/// `firmware.gsp`: the driver loads it, so another version is one of before.
pub(super) fn gsp(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.driver_path(), |_, gpu| {
        let Some(driver) = node.state.driver.value() else {
            return Answer::unread("driver", &node.state.driver, "GSP firmware of the driver");
        };
        let expected = format!("GSP firmware {driver}");
        match &gpu.firmware.gsp {
            Reading::Value(version) if version == driver => Answer::Holds,
            Reading::Value(version) => Answer::Fails(
                Contrast::new(expected, format!("GSP firmware {version}"))
                    .by(Action::Reboot)
                    .advise("reboot the node, so that the driver loads its firmware"),
            ),
            reading => Answer::unless_expected(true, "GSP firmware", reading, expected),
        }
    });
}
