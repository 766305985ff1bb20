//! The link of a GPU to the host.
//!
//! What a link is now says little while it is idle, and what GPU and slot can do already has the slot in
//! it: so width is judged as it is, generation by what it can be, both against the spec.

use super::node::{Node, all_alike, growth, is_faster, span};
use super::outcome::{Answer, Contrast, Outcome};
use crate::state::{GpuState, Reading};

const RESEAT: &str =
    "reseat the GPU and check the slot, the riser and the BIOS settings of the slot";

/// Replays a minute that are too many. Source: NVIDIA/DCGM, `dcgm_gpu_hardware_limits.h`,
/// `DCGM_LIMIT_MAX_PCIREPLAY_RATE`, read 2026-11-30.
const REPLAYS_A_MINUTE: u64 = 8;

/// `pcie.width`.
pub(super) fn width(node: &Node<'_>, outcome: &mut Outcome) {
    let said = node.policy().and_then(|policy| policy.pcie_width);
    let Some(wanted) = said.or(node.class().host.pcie_width) else { return };
    let path = match said {
        Some(_) => node.policy_path(&["pcie", "width"]),
        None => node.system_path(),
    };
    node.each_gpu(outcome, &path, |_, gpu| {
        judge(&gpu.pcie.width, wanted, |lanes| format!("{lanes} PCIe lanes"))
    });
}

/// `pcie.generation`.
pub(super) fn generation(node: &Node<'_>, outcome: &mut Outcome) {
    let Some(wanted) = node.policy().and_then(|policy| policy.pcie_gen) else { return };
    node.each_gpu(outcome, &node.policy_path(&["pcie", "gen"]), |_, gpu| {
        judge(&gpu.pcie.max_generation, wanted, |generation| {
            format!("PCIe generation {generation}")
        })
    });
}

fn judge(reading: &Reading<u32>, wanted: u8, shown: impl Fn(u32) -> String) -> Answer {
    let wanted = u32::from(wanted);
    let expected = shown(wanted);
    match reading {
        Reading::Value(seen) if *seen >= wanted => Answer::Holds,
        Reading::Value(seen) => Answer::Fails(Contrast::new(expected, shown(*seen)).advise(RESEAT)),
        reading => Answer::unread("PCIe link", reading, expected),
    }
}

/// `pcie.generation_in_use`: a link may fall to a lower one and stay there, without a word in any log.
pub(super) fn generation_in_use(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let expected = "the link at its generation under load";
        match is_busy(gpu) {
            Some(true) => {}
            Some(false) => return Answer::NotHere,
            None => return Answer::Unread(Contrast::new(expected, "load unknown")),
        }
        match (&gpu.pcie.generation, &gpu.pcie.max_generation) {
            (Reading::Value(seen), Reading::Value(most)) if seen < most => {
                let seen = format!("PCIe generation {seen} under load");
                let help = "read it again under load; if it stays, reset the GPU, then reseat it";
                Answer::Fails(Contrast::new(format!("PCIe generation {most}"), seen).advise(help))
            }
            (Reading::Value(_), Reading::Value(_)) => Answer::Holds,
            (reading, Reading::Value(_)) | (_, reading) => {
                Answer::unread("PCIe generation", reading, expected)
            }
        }
    });
}

/// True if a process runs and clocks are up; none if that is not known.
fn is_busy(gpu: &GpuState) -> Option<bool> {
    let processes = gpu.processes.compute.value()?;
    let reasons = gpu.health.clocks_event_reasons.value()?;
    Some(!processes.is_empty() && !reasons.is_idle())
}

/// `pcie.alike`.
pub(super) fn alike(node: &Node<'_>, outcome: &mut Outcome) {
    let link = |gpu: &GpuState| match (&gpu.pcie.max_generation, &gpu.pcie.max_width) {
        (Reading::Value(generation), Reading::Value(width)) => {
            Reading::Value((*generation, *width))
        }
        (absent, Reading::Value(_)) | (_, absent) => absent.clone().map(|_| (0, 0)),
    };
    let shown = |(generation, width): &(u32, u32)| format!("generation {generation} x{width}");
    let answer = match all_alike(node.gpus, "PCIe link", link, shown) {
        Answer::Fails(contrast) => Answer::Fails(contrast.advise(RESEAT)),
        answer => answer,
    };
    outcome.node(&node.system_path(), answer);
}

/// `pcie.replay`: good links replay too, now and then.
pub(super) fn replays(node: &Node<'_>, outcome: &mut Outcome) {
    let Some(age) = node.earlier_age() else { return };
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let before = node.earlier(gpu).and_then(|gpu| gpu.pcie.replays.value());
        let Some(before) = before else { return Answer::NotHere };
        let expected = format!("at most {REPLAYS_A_MINUTE} PCIe replays a minute");
        let count = match &gpu.pcie.replays {
            Reading::Value(now) => growth((*now).into(), (*before).into()),
            reading => return Answer::unless_expected(true, "PCIe replays", reading, expected),
        };
        match is_faster(count, REPLAYS_A_MINUTE, age) {
            false => Answer::Holds,
            true => Answer::Fails(
                Contrast::new(expected, format!("{count} in {}", span(age))).advise(RESEAT),
            ),
        }
    });
}
