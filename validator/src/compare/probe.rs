//! `nvml.hang` and `gpu.lost`: probes that NVML left without an answer, and GPUs that it calls lost.

use super::node::Node;
use super::nvidia_smi;
use super::outcome::{Answer, Contrast, Outcome};
use crate::report::{Action, GpuRef};
use crate::state::{Condition, GpuState, ProbeEnd, Reading, StuckProbe};

/// `nvml.hang`: a driver that does not answer has not said that anything is wrong, and may be slow. One
/// that still holds the probe of an earlier run is at fault, and only a reboot ends that.
pub(super) fn hangs(node: &Node<'_>, outcome: &mut Outcome) {
    let path = node.system_path();
    if node.state.stuck.is_empty() {
        // A node without GPUs may have no NVML to ask.
        let answer = if node.model().is_some() { Answer::Holds } else { Answer::NotHere };
        return outcome.node(&path, answer);
    }
    for probe in &node.state.stuck {
        let gpu = probe.gpu.and_then(|bus_id| node.gpu_at(bus_id));
        let gpu = gpu.map(|gpu| GpuRef { bus_id: gpu.bus_id, index: gpu.index });
        let contrast = Contrast::new("an answer", seen(probe, gpu.is_some())).advise(action(probe));
        let answer = match probe.end {
            ProbeEnd::StillThere => Answer::Fails(contrast),
            ProbeEnd::Killed { .. }
            | ProbeEnd::Unkillable { .. }
            | ProbeEnd::Crashed { .. }
            | ProbeEnd::Exited { .. } => Answer::Unread(contrast),
        };
        outcome.take(gpu, &path, answer);
    }
}

/// `gpu.lost`.
pub(super) fn lost(node: &Node<'_>, outcome: &mut Outcome) {
    let path = node.system_path();
    for gpu in node.gpus {
        // One cause, one finding: why it is not known has been said.
        let is_stuck = node.state.stuck.iter().any(|probe| probe.gpu == Some(gpu.bus_id));
        if gpu.condition.value().is_some() || !is_stuck {
            outcome.gpu(gpu, &path, judge_condition(gpu));
        }
    }
}

fn judge_condition(gpu: &GpuState) -> Answer {
    let expected = "a GPU that can be used";
    let says = |what| Contrast::new(expected, format!("NVML says that the GPU {what}"));
    match &gpu.condition {
        Reading::Value(Condition::Usable) => Answer::Holds,
        Reading::Value(Condition::Lost) => Answer::Fails(
            says("is lost")
                .advise("drain the node and power-cycle it; if the GPU is lost again, replace it"),
        ),
        Reading::Value(Condition::ResetRequired) => {
            let reset = format!("drain the node, then {}", nvidia_smi::apply_mode(gpu.bus_id));
            Answer::Fails(says("requires a reset").advise(reset).by(Action::Reset))
        }
        reading => Answer::unread("its condition", reading, expected),
    }
}

fn seen(probe: &StuckProbe, has_gpu: bool) -> String {
    let call = probe.call.as_deref().unwrap_or("NVML");
    let seconds = |ms: u64| format!("{}.{} s", ms / 1000, ms % 1000 / 100);
    let what = match probe.end {
        ProbeEnd::Killed { after_ms } => format!("{call} gave none in {}", seconds(after_ms)),
        ProbeEnd::Unkillable { after_ms } => {
            format!("{call} gave none in {}, and waits in the kernel", seconds(after_ms))
        }
        ProbeEnd::StillThere => "an earlier probe still waits in the kernel".to_owned(),
        // What it called last was not told any more.
        ProbeEnd::Crashed { signal } => {
            format!("the probe crashed with signal {signal} in {call} or a later call")
        }
        ProbeEnd::Exited { code } => format!("the probe ended early, with exit code {code}"),
    };
    match probe.gpu.filter(|_| !has_gpu) {
        Some(bus_id) => format!("{what} (GPU {bus_id})"),
        None => what,
    }
}

fn action(probe: &StuckProbe) -> String {
    let pid = probe.pid;
    match probe.end {
        ProbeEnd::Killed { .. } => {
            "look for NVRM in the kernel log; if it hangs again, drain and reboot the node"
                .to_owned()
        }
        ProbeEnd::Unkillable { .. } => format!(
            "process {pid} cannot be ended (`cat /proc/{pid}/stack` shows where it waits): check \
             again; if it is still there, reboot the node"
        ),
        ProbeEnd::StillThere => format!(
            "process {pid} cannot be ended (`cat /proc/{pid}/stack` shows where it waits): drain and \
             reboot the node"
        ),
        ProbeEnd::Crashed { .. } | ProbeEnd::Exited { .. } => {
            "run `nvidia-smi -q`; if it crashes too, install the driver anew".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::example;
    use crate::report::{Severity, Verdict};

    #[test]
    fn a_gpu_that_nvml_calls_lost_blocks() {
        let intent = example::whole();
        let found = |condition| {
            let mut state = example::state_of(&intent);
            if let Reading::Value(gpus) = &mut state.gpus {
                gpus[1].condition = condition;
            }
            let report = compare(&intent, &state);
            let seen = report.findings.iter().map(|f| (f.check.as_str(), f.severity, f.action));
            seen.collect::<Vec<_>>()
        };
        let lost = |severity, action| [("gpu.lost", severity, action)];
        assert_eq!(found(Reading::Value(Condition::Usable)), []);
        let seen = found(Reading::Value(Condition::Lost));
        assert_eq!(seen, lost(Severity::Blocking, Action::Reboot));
        let seen = found(Reading::Value(Condition::ResetRequired));
        assert_eq!(seen, lost(Severity::Blocking, Action::Reset));
        assert_eq!(found(Reading::default()), lost(Severity::Undecided, Action::Look));
    }

    #[test]
    fn a_probe_that_hangs_is_told_and_blocks_once_a_later_run_finds_it() {
        let intent = example::whole();
        let mut state = example::state_of(&intent);
        let probe = |gpu, call: Option<&str>, end| StuckProbe {
            gpu,
            call: call.map(str::to_owned),
            end,
            pid: 4711,
        };
        let end = ProbeEnd::Killed { after_ms: 2_050 };
        state.stuck.push(probe(Some(example::bus_id(1)), Some("nvmlDeviceGetMigMode"), end));
        let end = ProbeEnd::Unkillable { after_ms: 10_000 };
        state.stuck.push(probe(Some(example::bus_id(7)), Some("nvmlInit_v2"), end));
        let report = compare(&intent, &state);
        assert_eq!(report.verdict, Verdict::Undecided);
        let seen: Vec<_> =
            report.findings.iter().map(|f| (f.gpu.map(|gpu| gpu.index), f.seen.as_str())).collect();
        let expected = [
            (
                None,
                "nvmlInit_v2 gave none in 10.0 s, and waits in the kernel (GPU 00000000:80:00.0)",
            ),
            (Some(1), "nvmlDeviceGetMigMode gave none in 2.0 s"),
        ];
        assert_eq!(seen, expected);
        assert!(report.findings[0].actions[0].contains("/proc/4711/stack"));

        state.stuck = vec![probe(None, None, ProbeEnd::StillThere)];
        assert_eq!(compare(&intent, &state).verdict, Verdict::DoesNotConform);
    }
}
