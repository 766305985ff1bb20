//! `gpu.count` and `gpu.model`: how many GPUs there are, and what they are.
//!
//! Three witnesses count: the class (exceptions are in it), PCI and NVML. A GPU that the driver
//! could not open is on PCI and not in NVML.

use std::collections::BTreeSet;

use fleetc_schema::intent::GpuModel;

use super::{Contrast, Outcome, Subject};
use crate::intent::NodeIntent;
use crate::report::{CheckId, Severity};
use crate::state::{GpuState, NodeState, Reading};
use fleetc_schema::pci::BusId;

/// Runs the checks of this family.
pub(super) fn check(intent: &NodeIntent, state: &NodeState, outcome: &mut Outcome) {
    check_count(intent, state, outcome);
    check_addresses(intent, state, outcome);
    if let (Some(model), Some(gpus)) = (&intent.class.gpu, state.gpus.value()) {
        for gpu in gpus {
            check_model(intent, model, gpu, outcome);
        }
    }
}

fn check_count(intent: &NodeIntent, state: &NodeState, outcome: &mut Outcome) {
    let class = &intent.class;
    let wanted = class.gpus.len();
    let path = class.count_path(&intent.node);
    let subject = Subject { check: CheckId::GpuCount, gpu: None, path };
    let on_pci = state.pci_gpus.value();
    let on_pci = on_pci.map(|gpus| gpus.iter().map(|gpu| gpu.bus_id).collect::<BTreeSet<_>>());
    let in_nvml = state.gpus.value();
    let in_nvml = in_nvml.map(|gpus| gpus.iter().map(|gpu| gpu.bus_id).collect::<BTreeSet<_>>());

    let expected = match wanted {
        1 => "1 GPU".to_owned(),
        _ => format!("{wanted} GPUs"),
    };
    let differs = |witness: &Option<BTreeSet<BusId>>| {
        witness.as_ref().is_some_and(|gpus| gpus.len() != wanted)
    };
    let at_odds = matches!((&on_pci, &in_nvml), (Some(pci), Some(nvml)) if pci != nvml);
    let fails = differs(&on_pci) || differs(&in_nvml) || at_odds;
    if fails {
        let mut seen = Vec::new();
        seen.extend(on_pci.as_ref().map(|gpus| format!("{} on PCI", gpus.len())));
        seen.extend(in_nvml.as_ref().map(|gpus| format!("{} in NVML", gpus.len())));
        let mut actions = Vec::new();
        if let Some(pci) = &on_pci {
            let lost = class.gpus.iter().filter_map(|gpu| intent.address(gpu));
            let lost: BTreeSet<BusId> = lost.filter(|id| !pci.contains(id)).collect();
            seen.extend(listed("nothing at", lost.iter()).filter(|_| pci.len() < wanted));
        }
        if let (Some(pci), Some(nvml)) = (&on_pci, &in_nvml) {
            seen.extend(listed("not in NVML", pci.difference(nvml)));
            seen.extend(listed("not on PCI", nvml.difference(pci)));
            if at_odds {
                actions.push(
                    "look for NVRM in the kernel log: it says why the driver could not open a GPU \
                     (`dmesg | grep NVRM`)"
                        .to_owned(),
                );
            }
        }
        let most = [&on_pci, &in_nvml].into_iter().flatten().map(BTreeSet::len).max();
        actions.extend(most.and_then(|most| count_action(most, wanted)).map(str::to_owned));
        let contrast = Contrast { expected: expected.clone(), seen: seen.join(", "), actions };
        outcome.find(&subject, Severity::Blocking, contrast);
    }

    // A node without GPUs may well have no driver.
    let mut undecided = false;
    let pci = ("PCI", state.pci_gpus.absence(), is_expected(&state.pci_gpus, wanted));
    let nvml = ("NVML", state.gpus.absence(), is_expected(&state.gpus, wanted));
    for (witness, absence, is_expected) in [pci, nvml] {
        if let (Some(absence), false) = (absence, is_expected) {
            undecided = true;
            let actions = vec!["check again as root, with the driver loaded".to_owned()];
            let seen = format!("{witness} {absence}");
            let contrast = Contrast { expected: expected.clone(), seen, actions };
            outcome.find(&subject, Severity::Undecided, contrast);
        }
    }
    if !fails && !undecided && (on_pci.is_some() || in_nvml.is_some()) {
        outcome.pass();
    }
}

/// A GPU at an address that the inventory does not state. One that is nowhere is missing, which is
/// counted. A GPU works wherever it is, so this is a warning: but it may not be the one that the spec
/// means by a number.
fn check_addresses(intent: &NodeIntent, state: &NodeState, outcome: &mut Outcome) {
    let Some(known) = &intent.known else { return };
    let expected: BTreeSet<BusId> =
        intent.class.gpus.iter().filter_map(|gpu| intent.address(gpu)).collect();
    let on_pci = state.pci_gpus.value();
    let in_nvml = state.gpus.value();
    let mut seen: BTreeSet<BusId> = BTreeSet::new();
    seen.extend(on_pci.into_iter().flatten().map(|gpu| gpu.bus_id));
    seen.extend(in_nvml.into_iter().flatten().map(|gpu| gpu.bus_id));
    let strangers: Vec<&BusId> = seen.difference(&expected).collect();
    if strangers.is_empty() {
        // Without a witness there is nothing to say; the count is undecided then.
        if on_pci.is_some() || in_nvml.is_some() {
            outcome.pass();
        }
        return;
    }
    let free = intent.class.gpus.iter().filter_map(|gpu| {
        let address = intent.address(gpu).filter(|address| !seen.contains(address))?;
        Some(format!("GPU {} at {address}", gpu.slot))
    });
    let free: Vec<String> = free.collect();
    let subject = Subject { check: CheckId::GpuAddress, gpu: None, path: &known.path };
    let expected = match free.is_empty() {
        true => format!("no more GPUs than the {} of the inventory", expected.len()),
        false => free.join(", "),
    };
    let seen: Vec<String> = strangers.into_iter().map(BusId::to_string).collect();
    let node = &intent.node;
    let actions = vec![format!(
        "if a board or the firmware was changed, correct the addresses of `{node}` in the inventory"
    )];
    let contrast = Contrast { expected, seen: format!("a GPU at {}", seen.join(", ")), actions };
    outcome.find(&subject, Severity::Warning, contrast);
}

/// True if nothing is lost when this witness has nothing to say.
fn is_expected<T>(reading: &Reading<T>, wanted: usize) -> bool {
    matches!(reading, Reading::NotApplicable(_)) && wanted == 0
}

fn listed<'a>(what: &str, gpus: impl Iterator<Item = &'a BusId>) -> Option<String> {
    let gpus: Vec<String> = gpus.map(BusId::to_string).collect();
    if gpus.is_empty() { None } else { Some(format!("{what}: {}", gpus.join(" "))) }
}

fn count_action(seen: usize, wanted: usize) -> Option<&'static str> {
    if seen < wanted {
        Some("find the GPU that is gone (`lspci -d 10de:`), or say `missing` in an `exception`")
    } else if seen > wanted {
        Some(
            "if a GPU is back, take its `exception` out of the spec, else change the pool's `system`",
        )
    } else {
        None
    }
}

/// What one reading says about the model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Fits,
    Differs,
    Missing,
    /// The class does not say what it should be.
    NotAsked,
}

fn answer<T, E>(reading: &Reading<T>, allowed: &[E], fits: impl Fn(&T, &E) -> bool) -> Answer {
    match reading.value() {
        _ if allowed.is_empty() => Answer::NotAsked,
        None => Answer::Missing,
        Some(value) if allowed.iter().any(|entry| fits(value, entry)) => Answer::Fits,
        Some(_) => Answer::Differs,
    }
}

/// The PCI device id comes first, the name second: either can show that it is the product, and
/// only both together that it is not. A name that fits a foreign device id may be a board that the
/// catalog does not know, hence a warning.
fn judge_identity(device_id: Answer, name: Answer) -> Option<Severity> {
    use Answer::{Differs, Fits, Missing, NotAsked};
    match (device_id, name) {
        (Fits, _) | (Missing | NotAsked, Fits) | (NotAsked, NotAsked) => None,
        (Differs, Fits) => Some(Severity::Warning),
        (Differs, Differs | NotAsked) | (NotAsked, Differs) => Some(Severity::Blocking),
        (Missing, Differs | Missing | NotAsked) | (Differs | NotAsked, Missing) => {
            Some(Severity::Undecided)
        }
    }
}

fn judge_memory(memory: Answer) -> Option<Severity> {
    match memory {
        Answer::Fits | Answer::NotAsked => None,
        Answer::Differs => Some(Severity::Blocking),
        Answer::Missing => Some(Severity::Undecided),
    }
}

fn check_model(intent: &NodeIntent, model: &GpuModel, gpu: &GpuState, outcome: &mut Outcome) {
    let device_id = answer(&gpu.device_id, &intent.device_ids, |seen, id| seen == id);
    let name = answer(&gpu.name, &model.nvml_names, |seen, name| seen == name);
    let range = model.memory.as_slice();
    let memory = answer(&gpu.memory, range, |mib, range| (range.min..=range.max).contains(mib));
    if [device_id, name, memory].iter().all(|answer| *answer == Answer::NotAsked) {
        return;
    }
    let judged = [judge_identity(device_id, name), judge_memory(memory)];
    // A value that is wrong outweighs one that is missing, which outweighs one that is odd.
    let order = [Severity::Blocking, Severity::Undecided, Severity::Warning];
    let Some(severity) = order.into_iter().find(|severity| judged.contains(&Some(*severity)))
    else {
        return outcome.pass();
    };
    let absent = [
        ("device id", gpu.device_id.absence(), device_id),
        ("name", gpu.name.absence(), name),
        ("memory", gpu.memory.absence(), memory),
    ];
    let absent = absent.into_iter().filter(|(_, _, answer)| *answer == Answer::Missing);
    let absent: Vec<String> =
        absent.filter_map(|(what, why, _)| Some(format!("{what} {}", why?))).collect();
    let seen = match severity {
        Severity::Undecided => absent.join(", "),
        Severity::Blocking | Severity::Warning => {
            let name = gpu.name.value().map_or("a GPU without a name", String::as_str);
            let mut facts = Vec::new();
            facts.extend(gpu.device_id.value().map(|id| format!("PCI device id {id}")));
            facts.extend(gpu.memory.value().map(|memory| format!("{} MiB", memory.0)));
            facts.extend(absent);
            format!("{name} ({})", facts.join(", "))
        }
    };
    let action = match severity {
        Severity::Blocking => "put the right GPU in, or change the pool's `system` in the spec",
        Severity::Undecided => "check again as root; `nvidia-smi -q` tells what the driver answers",
        Severity::Warning => "if this board is right, add its device id to a `gpu` of the fleet",
    };
    let contrast =
        Contrast { expected: described(intent, model), seen, actions: vec![action.into()] };
    let path = &intent.class.paths.system;
    outcome.find(&Subject { check: CheckId::GpuModel, gpu: Some(gpu), path }, severity, contrast);
}

fn described(intent: &NodeIntent, model: &GpuModel) -> String {
    let mut facts = Vec::new();
    let ids: Vec<String> = intent.device_ids.iter().map(ToString::to_string).collect();
    match (ids.as_slice(), model.nvml_names.as_slice()) {
        ([], []) => {}
        ([], names) => facts.push(names.join(" or ")),
        (ids, _) => facts.push(format!("PCI device id {}", ids.join(" or "))),
    }
    facts.extend(model.memory.map(|range| format!("{}-{} MiB", range.min.0, range.max.0)));
    format!("{} ({})", model.key, facts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::example;
    use crate::report::Finding;
    use fleetc_schema::units::Mib;

    /// Findings of a node of two whole H100 after a change to its state.
    fn findings(change: impl FnOnce(&mut NodeState, &mut Vec<GpuState>)) -> Vec<Finding> {
        let intent = example::whole();
        let mut state = example::state_of(&intent);
        let mut gpus = state.gpus.value().unwrap().clone();
        change(&mut state, &mut gpus);
        if state.gpus.value().is_some() {
            state.gpus = Reading::Value(gpus);
        }
        let check = [CheckId::GpuCount, CheckId::GpuModel];
        let found = compare(&intent, &state).findings.into_iter();
        found.filter(|finding| check.contains(&finding.check)).collect()
    }

    fn seen(findings: &[Finding]) -> Vec<(Severity, &str)> {
        findings.iter().map(|finding| (finding.severity, finding.seen.as_str())).collect()
    }

    fn unknown<T>() -> Reading<T> {
        Reading::Unknown("no answer".into())
    }

    #[test]
    fn three_witnesses_that_agree_are_no_finding() {
        assert_eq!(findings(|_, _| ()), []);
    }

    #[test]
    fn a_gpu_that_the_driver_could_not_open_is_named() {
        let found = findings(|_, gpus| gpus.truncate(1));
        let text = "2 on PCI, 1 in NVML, not in NVML: 00000000:20:00.0";
        assert_eq!(seen(&found), [(Severity::Blocking, text)]);
        assert!(found[0].actions[0].contains("NVRM"));
    }

    #[test]
    fn a_gpu_that_is_gone_is_seen_by_both() {
        let found = findings(|state, gpus| {
            gpus.pop();
            let kept = state.pci_gpus.value().unwrap()[..1].to_vec();
            state.pci_gpus = Reading::Value(kept);
        });
        assert_eq!(seen(&found), [(Severity::Blocking, "1 on PCI, 1 in NVML")]);
        assert_eq!(found[0].expected, "2 GPUs");
        assert!(found[0].actions[0].contains("lspci"));
    }

    #[test]
    fn equal_counts_of_different_gpus_do_not_agree() {
        let found = findings(|_, gpus| gpus[1].bus_id = example::bus_id(7));
        let text =
            "2 on PCI, 2 in NVML, not in NVML: 00000000:20:00.0, not on PCI: 00000000:80:00.0";
        assert_eq!(seen(&found), [(Severity::Blocking, text)]);
    }

    /// The same, of a node whose addresses are known.
    fn at_known_addresses(change: impl FnOnce(&mut NodeState, &mut Vec<GpuState>)) -> Vec<Finding> {
        let intent = example::at_known_addresses(example::whole());
        let mut state = example::state_of(&intent);
        let mut gpus = state.gpus.value().unwrap().clone();
        change(&mut state, &mut gpus);
        state.gpus = Reading::Value(gpus);
        compare(&intent, &state).findings
    }

    #[test]
    fn gpus_at_their_addresses_are_one_more_check_that_passes() {
        assert_eq!(at_known_addresses(|_, _| ()), []);
        let (plain, known) = (example::whole(), example::at_known_addresses(example::whole()));
        let passed = |intent| compare(intent, &example::state_of(intent)).passed;
        assert_eq!(passed(&known), passed(&plain) + 1);
    }

    #[test]
    fn a_gpu_at_another_address_is_told_with_the_one_that_is_free() {
        let found = at_known_addresses(|state, gpus| {
            gpus[1].bus_id = example::bus_id(7);
            let mut pci = state.pci_gpus.value().unwrap().clone();
            pci[1].bus_id = example::bus_id(7);
            state.pci_gpus = Reading::Value(pci);
        });
        assert_eq!(seen(&found), [(Severity::Warning, "a GPU at 00000000:80:00.0")]);
        assert_eq!(found[0].check, CheckId::GpuAddress);
        assert_eq!(found[0].expected, "GPU 1 at 00000000:20:00.0");
        assert_eq!(found[0].path.as_str(), "pool/p/pci[n1]");
        assert!(found[0].actions[0].contains("`n1` in the inventory"));
    }

    #[test]
    fn a_gpu_that_is_gone_is_named_by_its_address_and_is_no_second_finding() {
        let found = at_known_addresses(|state, gpus| {
            gpus.remove(0);
            let kept = state.pci_gpus.value().unwrap()[1..].to_vec();
            state.pci_gpus = Reading::Value(kept);
        });
        let text = "1 on PCI, 1 in NVML, nothing at: 00000000:10:00.0";
        assert_eq!(seen(&found), [(Severity::Blocking, text)]);
    }

    #[test]
    fn a_witness_that_is_silent_leaves_the_count_undecided() {
        let found = findings(|state, _| state.gpus = unknown());
        assert_eq!(seen(&found), [(Severity::Undecided, "NVML unknown: no answer")]);
        let found = findings(|state, _| state.pci_gpus = Reading::NotApplicable("vm".into()));
        assert_eq!(seen(&found), [(Severity::Undecided, "PCI not applicable: vm")]);
    }

    #[test]
    fn a_node_without_gpus_needs_no_driver_but_must_not_have_any() {
        let intent = example::without_gpus();
        let mut state = example::state_of(&intent);
        assert_eq!(compare(&intent, &state).findings, []);
        assert_eq!(compare(&intent, &state).passed, 1);
        state.pci_gpus = example::state_of(&example::whole()).pci_gpus;
        let report = compare(&intent, &state);
        assert_eq!(seen(&report.findings), [(Severity::Blocking, "2 on PCI")]);
    }

    #[test]
    fn another_product_is_blocking() {
        let found = findings(|_, gpus| {
            gpus[1].device_id = Reading::Value("0x26b9".parse().unwrap());
            gpus[1].name = Reading::Value("NVIDIA L40S".into());
            gpus[1].memory = Reading::Value(Mib(46_068));
        });
        let text = "NVIDIA L40S (PCI device id 0x26b9, 46068 MiB)";
        assert_eq!(seen(&found), [(Severity::Blocking, text)]);
        assert_eq!(found[0].expected, "h100-sxm5-80gb (PCI device id 0x2330, 80759-82359 MiB)");
        assert_eq!(found[0].gpu.unwrap().index, 1);
    }

    #[test]
    fn the_device_id_is_asked_first_and_the_name_second() {
        let odd_id = || Reading::Value("0x2339".parse().unwrap());
        let odd_name = || Reading::Value("NVIDIA H100".to_owned());
        assert_eq!(findings(|_, gpus| gpus[0].name = odd_name()), []);
        assert_eq!(findings(|_, gpus| gpus[0].name = unknown()), []);
        assert_eq!(findings(|_, gpus| gpus[0].device_id = unknown()), []);
        let found = findings(|_, gpus| gpus[0].device_id = odd_id());
        let text = "NVIDIA H100 80GB HBM3 (PCI device id 0x2339, 81559 MiB)";
        assert_eq!(seen(&found), [(Severity::Warning, text)]);
    }

    #[test]
    fn an_identity_that_rests_on_a_missing_reading_is_undecided() {
        let found = findings(|_, gpus| {
            gpus[0].device_id = unknown();
            gpus[0].name = Reading::Value("NVIDIA H100".into());
        });
        assert_eq!(seen(&found), [(Severity::Undecided, "device id unknown: no answer")]);
    }

    #[test]
    fn memory_outside_of_its_range_is_blocking() {
        for (mib, found) in [(80_758, 1), (80_759, 0), (82_359, 0), (82_360, 1)] {
            let findings = findings(|_, gpus| gpus[0].memory = Reading::Value(Mib(mib)));
            assert_eq!(findings.len(), found, "{mib}");
        }
        let found = findings(|_, gpus| {
            gpus[0].memory = Reading::Value(Mib(1));
            gpus[0].device_id = unknown();
            gpus[0].name = unknown();
        });
        let text =
            "a GPU without a name (1 MiB, device id unknown: no answer, name unknown: no answer)";
        assert_eq!(seen(&found), [(Severity::Blocking, text)]);
    }
}
