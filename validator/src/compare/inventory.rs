//! How many GPUs there are, where, and what they are.
//!
//! Three witnesses count: the class (exceptions are in it), PCI and NVML. A GPU that the driver
//! could not open is on PCI and not in NVML; one that an administrator has excluded is, too, and is not
//! counted.

use std::collections::BTreeSet;

use fleetc_schema::intent::GpuModel;
use fleetc_schema::pci::BusId;

use super::node::{Node, counted};
use super::outcome::{Answer, Contrast, Outcome};
use crate::intent::NodeIntent;
use crate::report::{Action, GpuRef, Severity};
use crate::state::{GpuState, Reading};

/// `gpu.count`.
pub(super) fn count(node: &Node<'_>, outcome: &mut Outcome) {
    let class = node.class();
    let wanted = class.gpus.len();
    let path = class.count_path(&node.intent.node);
    let state = node.state;
    let on_pci = state.pci_gpus.value();
    let on_pci = on_pci.map(|gpus| gpus.iter().map(|gpu| gpu.bus_id).collect::<BTreeSet<_>>());
    let in_nvml = state.gpus.value();
    let in_nvml = in_nvml.map(|gpus| gpus.iter().map(|gpu| gpu.bus_id).collect::<BTreeSet<_>>());
    let excluded = match &state.driver_state.excluded {
        Reading::Value(excluded) => Some(excluded.iter().map(|gpu| gpu.bus_id).collect()),
        Reading::NotApplicable(_) => Some(BTreeSet::new()),
        Reading::Unknown(_) => None,
    };
    let expected = counted(wanted, "GPU");
    let sides = Witnesses { on_pci: on_pci.as_ref(), in_nvml: in_nvml.as_ref() };
    // What PCI has too many of may be excluded, if nobody knows.
    let without = |excluded: &BTreeSet<BusId>| sides.at_odds(wanted, excluded);
    let fails = match &excluded {
        Some(excluded) => without(excluded),
        None => sides.at_odds(wanted, &sides.surplus(wanted)),
    };
    if fails {
        let mut seen = Vec::new();
        seen.extend(on_pci.as_ref().map(|gpus| format!("{} on PCI", gpus.len())));
        seen.extend(in_nvml.as_ref().map(|gpus| format!("{} in NVML", gpus.len())));
        let mut contrast = Contrast::new(expected.clone(), "");
        if let Some(pci) = &on_pci {
            let lost = class.gpus.iter().filter_map(|gpu| node.intent.address(gpu));
            let lost: BTreeSet<BusId> = lost.filter(|id| !pci.contains(id)).collect();
            seen.extend(listed("nothing at", lost.iter()).filter(|_| pci.len() < wanted));
        }
        let excluded = excluded.clone().unwrap_or_default();
        if let (Some(pci), Some(nvml)) = (&on_pci, &in_nvml) {
            let unopened: BTreeSet<BusId> = pci.difference(nvml).copied().collect();
            seen.extend(listed("not in NVML", unopened.difference(&excluded)));
            seen.extend(listed("not on PCI", nvml.difference(pci)));
            if unopened.difference(&excluded).next().is_some() {
                contrast = contrast.advise(
                    "look for NVRM in the kernel log: it says why the driver could not open a GPU \
                     (`dmesg | grep NVRM`)",
                );
            }
        }
        seen.extend(listed("excluded by the administrator", excluded.iter()));
        contrast.seen = seen.join(", ");
        let most = [&on_pci, &in_nvml].into_iter().flatten().map(BTreeSet::len).max();
        contrast
            .actions
            .extend(most.and_then(|most| count_action(most, wanted)).map(str::to_owned));
        outcome.node(path, Answer::Fails(contrast));
    } else if let (None, true) = (&excluded, without(&BTreeSet::new())) {
        let seen = listed("perhaps excluded, perhaps not opened", sides.surplus(wanted).iter());
        let contrast = Contrast::new(expected.clone(), seen.unwrap_or_default());
        outcome.node(path, Answer::Unread(contrast));
    }

    // A node without GPUs may well have no driver.
    let mut undecided = outcome.counts.undecided > 0;
    let pci = ("PCI", state.pci_gpus.absence(), is_expected(&state.pci_gpus, wanted));
    let nvml = ("NVML", state.gpus.absence(), is_expected(&state.gpus, wanted));
    for (witness, absence, is_expected) in [pci, nvml] {
        if let (Some(absence), false) = (absence, is_expected) {
            undecided = true;
            let contrast = Contrast::new(expected.clone(), format!("{witness} {absence}"));
            outcome.node(path, Answer::Unread(contrast));
        }
    }
    if !fails && !undecided && (on_pci.is_some() || in_nvml.is_some()) {
        outcome.node(path, Answer::Holds);
    }
}

/// Who has seen which GPUs.
#[derive(Clone, Copy)]
struct Witnesses<'a> {
    on_pci: Option<&'a BTreeSet<BusId>>,
    in_nvml: Option<&'a BTreeSet<BusId>>,
}

impl Witnesses<'_> {
    /// True if a witness has another number than is wanted, or the two differ. Excluded GPUs do not
    /// count on PCI.
    fn at_odds(self, wanted: usize, excluded: &BTreeSet<BusId>) -> bool {
        let on_pci = self.on_pci.map(|gpus| gpus.difference(excluded).collect::<BTreeSet<_>>());
        let in_nvml = self.in_nvml.map(|gpus| gpus.iter().collect::<BTreeSet<_>>());
        let differs = |gpus: &Option<BTreeSet<&BusId>>| {
            gpus.as_ref().is_some_and(|gpus| gpus.len() != wanted)
        };
        let disagree = matches!((&on_pci, &in_nvml), (Some(pci), Some(nvml)) if pci != nvml);
        differs(&on_pci) || differs(&in_nvml) || disagree
    }

    /// GPUs of PCI that may be excluded, if nobody knows: those that NVML does not show; without NVML as
    /// many as are too many.
    fn surplus(self, wanted: usize) -> BTreeSet<BusId> {
        match (self.on_pci, self.in_nvml) {
            (Some(pci), Some(nvml)) => pci.difference(nvml).copied().collect(),
            (Some(pci), None) => pci.iter().skip(wanted).copied().collect(),
            (None, _) => BTreeSet::new(),
        }
    }
}

/// `gpu.address`: a GPU at an address that the inventory does not state. One that is nowhere is missing,
/// which is counted. A GPU works wherever it is, so this is a warning: but it may not be the one that the
/// spec means by a number.
pub(super) fn addresses(node: &Node<'_>, outcome: &mut Outcome) {
    let intent = node.intent;
    let Some(known) = &intent.known else { return };
    let expected: BTreeSet<BusId> =
        intent.class.gpus.iter().filter_map(|gpu| intent.address(gpu)).collect();
    let on_pci = node.state.pci_gpus.value();
    let in_nvml = node.state.gpus.value();
    let mut seen: BTreeSet<BusId> = BTreeSet::new();
    seen.extend(on_pci.into_iter().flatten().map(|gpu| gpu.bus_id));
    seen.extend(in_nvml.into_iter().flatten().map(|gpu| gpu.bus_id));
    let strangers: Vec<&BusId> = seen.difference(&expected).collect();
    if strangers.is_empty() {
        // Without a witness there is nothing to say; the count is undecided then.
        if on_pci.is_some() || in_nvml.is_some() {
            outcome.node(&known.path, Answer::Holds);
        }
        return;
    }
    let free = intent.class.gpus.iter().filter_map(|gpu| {
        let address = intent.address(gpu).filter(|address| !seen.contains(address))?;
        Some(format!("GPU {} at {address}", gpu.slot))
    });
    let free: Vec<String> = free.collect();
    let expected = match free.is_empty() {
        true => format!("no more GPUs than the {} of the inventory", expected.len()),
        false => free.join(", "),
    };
    let seen: Vec<String> = strangers.into_iter().map(BusId::to_string).collect();
    let contrast = Contrast::new(expected, format!("a GPU at {}", seen.join(", "))).advise(format!(
        "if a board or the firmware was changed, correct the addresses of `{}` in the inventory",
        intent.node
    ));
    outcome.node(&known.path, Answer::Fails(contrast));
}

/// `gpu.handle`: a GPU that NVML counts and refuses, with its reason.
pub(super) fn handles(node: &Node<'_>, outcome: &mut Outcome) {
    if node.model().is_none() {
        return;
    }
    let path = node.class().count_path(&node.intent.node);
    let driver = &node.state.driver_state;
    for refused in &driver.refused {
        let which = match (refused.bus_id, refused.index) {
            (Some(bus_id), _) => format!("GPU at {bus_id}"),
            (None, Some(index)) => format!("GPU {index}"),
            (None, None) => "a GPU".to_owned(),
        };
        let seen = format!("{which}: {} (NVML code {})", refused.why, refused.code);
        let contrast = Contrast::new("a handle for every GPU", seen);
        // 15 lost, 16 reset required, 8 no power, 11 interrupts.
        let contrast = match refused.code {
            16 => contrast.by(Action::Reset).advise("reset the GPU: `nvidia-smi --gpu-reset -i …`"),
            8 => contrast.by(Action::Look).advise("check the power cables of the GPU"),
            15 => contrast.advise("power-cycle the node; if it comes back so, replace the GPU"),
            _ => contrast.advise("reboot the node; `dmesg | grep NVRM` says more"),
        };
        outcome.node(path, Answer::Fails(contrast));
    }
    let shown = node.state.gpus.value().map(Vec::len);
    match (&driver.gpu_count, shown) {
        _ if !driver.refused.is_empty() => {}
        (Reading::Value(count), Some(shown)) => {
            let counted_by_nvml = usize::try_from(*count).unwrap_or(usize::MAX);
            let answer = match counted_by_nvml > shown {
                true => Answer::Fails(Contrast::new(
                    format!("a handle for each of {count} GPUs"),
                    counted(shown, "handle"),
                )),
                false => Answer::Holds,
            };
            outcome.node(path, answer);
        }
        (Reading::NotApplicable(_), _) => outcome.node(path, Answer::NotHere),
        // Without a list of GPUs `gpu.count` has said it.
        (_, None) => {}
        (count @ Reading::Unknown(_), Some(_)) => {
            outcome
                .node(path, Answer::unread("the count of NVML", count, "a handle for every GPU"));
        }
    }
}

/// `gpu.on_bus`.
pub(super) fn on_bus(node: &Node<'_>, outcome: &mut Outcome) {
    each_on_pci(node, outcome, |pci| {
        let expected = "an answer on the bus";
        match &pci.answers {
            Reading::Value(true) => Answer::Holds,
            Reading::Value(false) => {
                let contrast = Contrast::new(expected, "all ones: the GPU has fallen off the bus");
                Answer::Fails(contrast.advise("power-cycle the node; check seating and power"))
            }
            reading => Answer::unread("the answer on the bus", reading, expected),
        }
    });
}

/// `gpu.kernel_driver`.
pub(super) fn kernel_driver(node: &Node<'_>, outcome: &mut Outcome) {
    let excluded = node.state.driver_state.excluded.value();
    each_on_pci(node, outcome, |pci| {
        let expected = "the driver `nvidia`";
        match &pci.kernel_driver {
            Reading::Value(driver) if driver == "nvidia" => Answer::Holds,
            Reading::Value(driver) => {
                let contrast = Contrast::new(expected, format!("the driver `{driver}`"));
                Answer::Fails(contrast.advise(format!(
                    "unbind it from `{driver}`, keep that from loading at boot, and reboot"
                )))
            }
            // The driver leaves an excluded GPU alone.
            Reading::NotApplicable(_)
                if excluded.is_some_and(|all| all.iter().any(|gpu| gpu.bus_id == pci.bus_id)) =>
            {
                Answer::NotHere
            }
            reading => Answer::unread("the kernel driver", reading, expected),
        }
    });
}

/// Judges each GPU that PCI shows, on a node that should have any.
fn each_on_pci(
    node: &Node<'_>,
    outcome: &mut Outcome,
    judge: impl Fn(&crate::state::PciGpu) -> Answer,
) {
    if node.model().is_none() {
        return;
    }
    let path = node.system_path();
    let on_pci = node.state.pci_gpus.value().map_or(&[][..], Vec::as_slice);
    let mut all: Vec<&crate::state::PciGpu> = on_pci.iter().collect();
    all.sort_by_key(|pci| pci.bus_id);
    for (rank, pci) in (0_u32..).zip(all) {
        // A GPU that NVML has lost has no index; its rank says which one it is.
        let index = node.gpu_at(pci.bus_id).map_or(rank, |gpu| gpu.index);
        outcome.take(Some(GpuRef { bus_id: pci.bus_id, index }), &path, judge(pci));
    }
}

/// `gpu.minor`: DRA names devices by the minor number, and the spec by the index. They are the same
/// unless a GPU was taken from the driver, or the kernel found GPUs in another order.
pub(super) fn minors(node: &Node<'_>, outcome: &mut Outcome) {
    if node.class().advertised.devices.is_empty() {
        return;
    }
    let path = node.class().paths.sharing.clone();
    for (gpu, slot) in node.slots.iter().flatten() {
        let expected = format!("/dev/nvidia{}", slot.index);
        let answer = match &gpu.identity.minor {
            Reading::Value(minor) if *minor == u32::from(slot.index) => Answer::Holds,
            Reading::Value(minor) => {
                let contrast = Contrast::new(expected, format!("/dev/nvidia{minor}"));
                Answer::Fails(contrast.advise(format!(
                    "claims that name the device `gpu-{}` get another GPU: select by attribute",
                    slot.index
                )))
            }
            reading => Answer::unread("the minor number", reading, expected),
        };
        outcome.gpu(gpu, &path, answer);
    }
}

/// `gpu.model`.
pub(super) fn models(node: &Node<'_>, outcome: &mut Outcome) {
    let path = node.system_path();
    node.each_gpu(outcome, &path, |model, gpu| judge_model(node.intent, model, gpu));
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
enum Said {
    Fits,
    Differs,
    Missing,
    /// The class does not say what it should be.
    NotAsked,
}

fn answer<T, E>(reading: &Reading<T>, allowed: &[E], fits: impl Fn(&T, &E) -> bool) -> Said {
    match reading.value() {
        _ if allowed.is_empty() => Said::NotAsked,
        None => Said::Missing,
        Some(value) if allowed.iter().any(|entry| fits(value, entry)) => Said::Fits,
        Some(_) => Said::Differs,
    }
}

/// The PCI device id comes first, the name second: either can show that it is the product, and
/// only both together that it is not. A name that fits a foreign device id may be a board that the
/// catalog does not know, hence a warning.
fn judge_identity(device_id: Said, name: Said) -> Option<Severity> {
    use Said::{Differs, Fits, Missing, NotAsked};
    match (device_id, name) {
        (Fits, _) | (Missing | NotAsked, Fits) | (NotAsked, NotAsked) => None,
        (Differs, Fits) => Some(Severity::Warning),
        (Differs, Differs | NotAsked) | (NotAsked, Differs) => Some(Severity::Blocking),
        (Missing, Differs | Missing | NotAsked) | (Differs | NotAsked, Missing) => {
            Some(Severity::Undecided)
        }
    }
}

fn judge_memory(memory: Said) -> Option<Severity> {
    match memory {
        Said::Fits | Said::NotAsked => None,
        Said::Differs => Some(Severity::Blocking),
        Said::Missing => Some(Severity::Undecided),
    }
}

fn judge_model(intent: &NodeIntent, model: &GpuModel, gpu: &GpuState) -> Answer {
    let device_id = answer(&gpu.device_id, &intent.device_ids, |seen, id| seen == id);
    let name = answer(&gpu.name, &model.nvml_names, |seen, name| seen == name);
    let range = model.memory.as_slice();
    let memory = answer(&gpu.memory, range, |mib, range| (range.min..=range.max).contains(mib));
    if [device_id, name, memory].iter().all(|answer| *answer == Said::NotAsked) {
        return Answer::NotHere;
    }
    let judged = [judge_identity(device_id, name), judge_memory(memory)];
    // A value that is wrong outweighs one that is missing, which outweighs one that is odd.
    let order = [Severity::Blocking, Severity::Undecided, Severity::Warning];
    let Some(severity) = order.into_iter().find(|severity| judged.contains(&Some(*severity)))
    else {
        return Answer::Holds;
    };
    let absent = [
        ("device id", gpu.device_id.absence(), device_id),
        ("name", gpu.name.absence(), name),
        ("memory", gpu.memory.absence(), memory),
    ];
    let absent = absent.into_iter().filter(|(_, _, answer)| *answer == Said::Missing);
    let absent: Vec<String> =
        absent.filter_map(|(what, why, _)| Some(format!("{what} {}", why?))).collect();
    let expected = described(intent, model);
    if severity == Severity::Undecided {
        let contrast = Contrast::new(expected, absent.join(", "));
        let help = "check again as root; `nvidia-smi -q` tells what the driver answers";
        return Answer::Unread(contrast.advise(help));
    }
    let shown = gpu.name.value().map_or("a GPU without a name", String::as_str);
    let mut facts = Vec::new();
    facts.extend(gpu.device_id.value().map(|id| format!("PCI device id {id}")));
    facts.extend(gpu.memory.value().map(|memory| format!("{} MiB", memory.0)));
    facts.extend(absent);
    let contrast = Contrast::new(expected, format!("{shown} ({})", facts.join(", ")));
    match severity {
        Severity::Blocking => {
            let help = "put the right GPU in, or change the pool's `system` in the spec";
            Answer::Fails(contrast.advise(help))
        }
        Severity::Warning | Severity::Undecided | Severity::Info => {
            let help = "if this board is right, add its device id to a `gpu` of the fleet";
            Answer::Worries(contrast.advise(help).by(Action::Reconfigure))
        }
    }
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
    use crate::report::{CheckId, Finding};
    use crate::state::NodeState;
    use fleetc_schema::units::Mib;

    /// What NVML counts goes with what it shows.
    fn count_anew(state: &mut NodeState) {
        let shown = state.gpus.value().map_or(0, Vec::len);
        state.driver_state.gpu_count = Reading::Value(u32::try_from(shown).unwrap());
    }

    /// Findings of a node of two whole H100 after a change to its state.
    fn findings(change: impl FnOnce(&mut NodeState, &mut Vec<GpuState>)) -> Vec<Finding> {
        let intent = example::whole();
        let mut state = example::state_of(&intent);
        let mut gpus = state.gpus.value().unwrap().clone();
        change(&mut state, &mut gpus);
        if state.gpus.value().is_some() {
            state.gpus = Reading::Value(gpus);
            count_anew(&mut state);
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
        count_anew(&mut state);
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
