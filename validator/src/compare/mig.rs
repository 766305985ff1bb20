//! MIG mode, the GPU and compute instances with their placements, and the devices that come of them.
//!
//! Instances are told apart by profile id and placement, as `nvidia-smi mig -cgi 19:6` writes them.
//! Source: nvml.h, API 13 (`nvmlGpuInstanceInfo_t`).

use std::collections::BTreeMap;

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{GpuInstance, GpuModel, NodeClass};
use fleetc_schema::mig::Placement;

use super::modes::on_off;
use super::node::{Node, counted, mig_is_on};
use super::nvidia_smi;
use super::outcome::{Answer, Contrast, Outcome};
use crate::report::Action;
use crate::state::{CapDevice, GpuInstanceState, GpuState, MigCap, MigMode, Reading};

/// A profile id and where an instance of it stands.
pub(super) type Instance = (u32, Placement);

/// What a GPU should be cut into.
struct Wanted<'a> {
    mode: bool,
    /// Sorted by placement.
    instances: Vec<Instance>,
    path: &'a ItemPath,
}

impl<'a> Wanted<'a> {
    fn new(mig: Option<&[GpuInstance]>, path: &'a ItemPath) -> Self {
        let instances = mig.unwrap_or_default().iter();
        let instances = instances.map(|instance| (instance.profile_id, instance.placement));
        Self { mode: mig.is_some(), instances: by_placement(instances), path }
    }
}

/// `mig.mode`.
pub(super) fn mode(node: &Node<'_>, outcome: &mut Outcome) {
    let Some(checks) = Checks::of(node) else { return };
    for (gpu, wanted) in wanted_modes(node) {
        outcome.gpu(gpu, wanted.path, checks.mode(gpu, &wanted));
    }
}

/// `mig.layout`.
pub(super) fn layout(node: &Node<'_>, outcome: &mut Outcome) {
    let Some(checks) = Checks::of(node) else { return };
    match wanted_layouts(node) {
        Ok(all) => {
            for (gpu, wanted) in all {
                outcome.gpu(gpu, wanted.path, checks.layout(gpu, &wanted));
            }
        }
        Err(why) => {
            let seen = format!("which GPU is which is unknown: {why}");
            let contrast = Contrast::new("the layout of each GPU", seen)
                .advise("mend what the other findings say, then check again");
            outcome.node(&node.class().paths.sharing, Answer::Unread(contrast));
        }
    }
}

/// `mig.compute`.
pub(super) fn compute(node: &Node<'_>, outcome: &mut Outcome) {
    let Some(checks) = Checks::of(node) else { return };
    let path = &node.class().paths.sharing;
    for gpu in node.gpus {
        // Whether the instances are there, and right, is for `mig.layout` to say.
        let instances = match &gpu.gpu_instances {
            Reading::Value(instances) if !instances.is_empty() => instances,
            _ => continue,
        };
        for instance in instances {
            outcome.gpu(gpu, path, checks.compute(gpu, instance));
        }
    }
}

/// `mig.devices`.
pub(super) fn devices(node: &Node<'_>, outcome: &mut Outcome) {
    if Checks::of(node).is_none() {
        return;
    }
    // If it is not certain which GPU is which, `mig.layout` has said so.
    for (gpu, wanted) in wanted_layouts(node).into_iter().flatten() {
        outcome.gpu(gpu, wanted.path, judge_devices(gpu, &wanted));
    }
}

/// Whether the instances are the right ones is for `mig.layout` to say. Without root they are not known:
/// then the number of devices, which anyone may list, is a hint.
fn judge_devices(gpu: &GpuState, wanted: &Wanted<'_>) -> Answer {
    if !wanted.mode || mig_is_on(gpu) == Some(false) {
        return Answer::NotHere;
    }
    let instances = gpu.gpu_instances.value();
    let made = instances.map(|instances| {
        let each = instances.iter().map(|gpu| gpu.compute_instances.value().map(Vec::len));
        each.sum::<Option<usize>>()
    });
    let expected = match made {
        Some(Some(made)) => made,
        // `mig.compute` has said that compute instances are not known.
        Some(None) => return Answer::NotHere,
        None => wanted.instances.len(),
    };
    let text = counted(expected, "MIG device");
    match &gpu.mig_devices {
        Reading::Value(devices) if devices.len() == expected => Answer::Holds,
        Reading::Value(devices) => {
            let contrast = Contrast::new(text, counted(devices.len(), "MIG device"))
                .advise("`nvidia-smi -L` shows them; make the instances anew");
            match (made, mig_is_on(gpu)) {
                (_, None) => Answer::Unread(contrast),
                (Some(_), Some(_)) => Answer::Fails(contrast),
                (None, Some(_)) => Answer::Worries(contrast),
            }
        }
        reading => Answer::unread("MIG devices", reading, text),
    }
}

/// `mig.caps`.
pub(super) fn caps(node: &Node<'_>, outcome: &mut Outcome) {
    if Checks::of(node).is_none() {
        return;
    }
    let path = &node.class().paths.sharing;
    // Slurm opens the device itself; container tools make the nodes that they need.
    let needs_node = !node.class().advertised.gres.is_empty();
    for gpu in node.gpus {
        let Some(instances) = gpu.gpu_instances.value().filter(|all| !all.is_empty()) else {
            continue;
        };
        outcome.gpu(gpu, path, judge_caps(node, gpu, instances, needs_node));
    }
}

fn judge_caps(
    node: &Node<'_>,
    gpu: &GpuState,
    instances: &[GpuInstanceState],
    needs_node: bool,
) -> Answer {
    let expected = "a capability of each MIG device";
    let caps: &[MigCap] = match &node.state.host.mig_caps {
        Reading::Value(caps) => caps,
        reading => return Answer::unread("capabilities", reading, expected),
    };
    let minor = match &gpu.identity.minor {
        Reading::Value(minor) => *minor,
        reading => return Answer::unread("the minor number", reading, expected),
    };
    let mut lacking = Vec::new();
    let mut look =
        |device: CapDevice, what: String| match caps.iter().find(|cap| cap.device == device) {
            None => lacking.push(format!("none of {what}")),
            Some(cap) if needs_node && !cap.has_node => {
                lacking.push(format!("no /dev/nvidia-caps/nvidia-cap{} of {what}", cap.cap));
            }
            Some(_) => {}
        };
    for instance in instances {
        let id = instance.id;
        look(CapDevice::GpuInstance { gpu: minor, id }, format!("GPU instance {id}"));
        for compute in instance.compute_instances.value().into_iter().flatten() {
            let device =
                CapDevice::ComputeInstance { gpu: minor, gpu_instance: id, id: compute.id };
            look(device, format!("compute instance {} in {id}", compute.id));
        }
    }
    if lacking.is_empty() {
        return Answer::Holds;
    }
    let help = "nvidia-modprobe -f /proc/driver/nvidia/capabilities/… makes a node; \
                `nvidia-mig-manager` makes all at boot";
    Answer::Fails(Contrast::new(expected, lacking.join(", ")).advise(help))
}

/// What each GPU should be: by its slot, or else what all GPUs of the class should be alike.
type WantedOf<'a> = Vec<(&'a GpuState, Wanted<'a>)>;

/// The mode of each GPU. If it is not certain which GPU is which, none unless all are alike.
fn wanted_modes<'a>(node: &Node<'a>) -> WantedOf<'a> {
    match &node.slots {
        Ok(matched) => by_slot(matched),
        Err(_) => alike(node, |a, b| a.mode == b.mode).unwrap_or_default(),
    }
}

/// The layout of each GPU.
///
/// # Errors
/// Says why it is not certain which GPU is which, where they should differ.
fn wanted_layouts<'a>(node: &Node<'a>) -> Result<WantedOf<'a>, String> {
    match &node.slots {
        Ok(matched) => Ok(by_slot(matched)),
        Err(why) => {
            let same =
                |a: &Wanted<'_>, b: &Wanted<'_>| a.mode == b.mode && a.instances == b.instances;
            alike(node, same).ok_or_else(|| why.clone())
        }
    }
}

fn by_slot<'a>(matched: &[(&'a GpuState, &'a fleetc_schema::intent::GpuSlot)]) -> WantedOf<'a> {
    let each = matched.iter();
    each.map(|(gpu, slot)| (*gpu, Wanted::new(slot.mig.as_deref(), &slot.path))).collect()
}

/// What every GPU of the class should be, if all should be the same.
fn alike<'a>(
    node: &Node<'a>,
    same: impl Fn(&Wanted<'a>, &Wanted<'a>) -> bool,
) -> Option<WantedOf<'a>> {
    let class = node.class();
    let path = &class.paths.sharing;
    let wanted = |mig: &'a Option<Vec<GpuInstance>>| Wanted::new(mig.as_deref(), path);
    let first = class.gpus.first()?;
    let all_same = class.gpus.iter().all(|slot| same(&wanted(&slot.mig), &wanted(&first.mig)));
    all_same.then(|| node.gpus.iter().map(|gpu| (gpu, wanted(&first.mig))).collect())
}

/// What the checks need to know of the class.
struct Checks<'a> {
    model: &'a GpuModel,
    profiles: BTreeMap<u32, String>,
    /// Compute slices by profile id.
    slices: BTreeMap<u32, u8>,
}

impl<'a> Checks<'a> {
    /// None without GPUs to judge: then `gpu.count` has said all there is.
    fn of(node: &Node<'a>) -> Option<Self> {
        let model = node.model().filter(|_| !node.gpus.is_empty())?;
        let class = node.class();
        let instances = class.gpus.iter().filter_map(|slot| slot.mig.as_ref()).flatten();
        let slices =
            instances.map(|instance| (instance.profile_id, instance.profile.slices)).collect();
        Some(Self { model, profiles: profile_names(class), slices })
    }

    fn mode(&self, gpu: &GpuState, wanted: &Wanted<'_>) -> Answer {
        let expected = format!("MIG mode {}", on_off(wanted.mode));
        match &gpu.mig_mode {
            Reading::Value(mode) if mode.current != wanted.mode => {
                let is_pending = mode.pending == wanted.mode;
                let seen = match is_pending {
                    true => format!(
                        "MIG mode {}, {} pending",
                        on_off(mode.current),
                        on_off(wanted.mode)
                    ),
                    false => format!("MIG mode {}", on_off(mode.current)),
                };
                let mut contrast = Contrast::new(expected, seen);
                contrast.actions = self.mode_actions(gpu, wanted, mode);
                Answer::Fails(if is_pending { contrast.by(Action::Reset) } else { contrast })
            }
            Reading::Value(mode) if mode.pending != mode.current => {
                let expected = format!("{expected}, and to stay so");
                let (current, pending) = (on_off(mode.current), on_off(mode.pending));
                let seen = format!("MIG mode {current}, {pending} pending");
                let set = nvidia_smi::set_mode(gpu.bus_id, wanted.mode);
                Answer::Worries(Contrast::new(expected, seen).advise(set))
            }
            Reading::Value(_) => Answer::Holds,
            Reading::NotApplicable(_) if !self.model.mig_capable && !wanted.mode => Answer::NotHere,
            reading => match Answer::unread("MIG mode", reading, expected) {
                Answer::Unread(contrast) => Answer::Unread(contrast.advise(format!(
                    "`nvidia-smi -i {} -q -d MIG` tells what the driver answers",
                    gpu.bus_id
                ))),
                answer => answer,
            },
        }
    }

    fn layout(&self, gpu: &GpuState, wanted: &Wanted<'_>) -> Answer {
        let expected = self.described(&wanted.instances);
        let mode_is_on = gpu.mig_mode.value().is_some_and(|mode| mode.current);
        let seen = match &gpu.gpu_instances {
            Reading::Value(seen) => {
                by_placement(seen.iter().map(|seen| (seen.profile_id, seen.placement)))
            }
            // Whether the mode itself is right is the other check's business.
            Reading::NotApplicable(_) if !mode_is_on => return Answer::NotHere,
            reading => {
                let seen = format!("GPU instances {}", reading.absence().unwrap_or_default());
                let help = "check again as root: only root may list GPU instances";
                return Answer::Unread(Contrast::new(expected, seen).advise(help));
            }
        };
        if seen == wanted.instances {
            return Answer::Holds;
        }
        if seen.is_empty() && !mode_is_on {
            // One cause, one finding: there can be no instance, and `mig.mode` says why.
            return Answer::NotHere;
        }
        let mut contrast = Contrast::new(expected, self.described(&seen));
        contrast.actions = nvidia_smi::change(gpu.bus_id, &wanted.instances, &seen);
        match counts(&seen) == counts(&wanted.instances) {
            true => Answer::Worries(contrast),
            false => Answer::Fails(contrast),
        }
    }

    fn compute(&self, gpu: &GpuState, instance: &GpuInstanceState) -> Answer {
        let id = instance.id;
        let expected = format!("one compute instance over all of GPU instance {id}");
        let help = || format!("nvidia-smi mig -i {} -gi {id} -dci, then -cci", gpu.bus_id);
        let found = match &instance.compute_instances {
            Reading::Value(found) => found,
            reading => return Answer::unread("compute instances", reading, expected),
        };
        match found.as_slice() {
            [] => Answer::Fails(
                Contrast::new(expected, "none")
                    .advise(format!("nvidia-smi mig -i {} -gi {id} -cci", gpu.bus_id)),
            ),
            [only] => match self.slices.get(&instance.profile_id) {
                Some(slices) if only.placement.size < *slices => {
                    let size = usize::from(only.placement.size);
                    let seen = format!("one of {} of {slices}", counted(size, "slice"));
                    Answer::Fails(Contrast::new(expected, seen).advise(help()))
                }
                Some(_) | None => Answer::Holds,
            },
            more => Answer::Fails(
                Contrast::new(expected, counted(more.len(), "compute instance")).advise(help()),
            ),
        }
    }

    /// What turns MIG mode into the one that is wanted, and then makes the instances.
    fn mode_actions(&self, gpu: &GpuState, wanted: &Wanted<'_>, seen: &MigMode) -> Vec<String> {
        let mut actions = Vec::new();
        if gpu.gpu_instances.value().is_some_and(|instances| !instances.is_empty()) {
            actions.extend(nvidia_smi::destroy(gpu.bus_id));
        }
        let is_pending = seen.pending == wanted.mode;
        if !is_pending {
            actions.push(nvidia_smi::set_mode(gpu.bus_id, wanted.mode));
        }
        if is_pending || self.model.mig_mode_needs_reset {
            actions.push(nvidia_smi::apply_mode(gpu.bus_id));
        }
        actions.extend(nvidia_smi::create(gpu.bus_id, &wanted.instances));
        actions
    }

    /// `7 × 1g.10gb (at 0-6)`, in the order of placements.
    fn described(&self, instances: &[Instance]) -> String {
        let mut groups: Vec<(u32, Vec<u8>)> = Vec::new();
        for (profile, Placement { start, .. }) in instances {
            match groups.iter_mut().find(|(other, _)| other == profile) {
                Some((_, starts)) => starts.push(*start),
                None => groups.push((*profile, vec![*start])),
            }
        }
        let described = groups.into_iter().map(|(profile, starts)| {
            let unknown = || format!("profile {profile}");
            let name = self.profiles.get(&profile).cloned().unwrap_or_else(unknown);
            format!("{} × {name} (at {})", starts.len(), ranges(&starts))
        });
        let described: Vec<String> = described.collect();
        if described.is_empty() { "no GPU instance".to_owned() } else { described.join(" + ") }
    }
}

/// Names of the profiles that the class uses.
fn profile_names(class: &NodeClass) -> BTreeMap<u32, String> {
    let instances = class.gpus.iter().filter_map(|slot| slot.mig.as_ref()).flatten();
    instances.map(|instance| (instance.profile_id, instance.profile.to_string())).collect()
}

fn by_placement(instances: impl Iterator<Item = Instance>) -> Vec<Instance> {
    let mut sorted: Vec<Instance> = instances.collect();
    sorted.sort_by_key(|(profile, placement)| (*placement, *profile));
    sorted
}

fn counts(instances: &[Instance]) -> BTreeMap<u32, u32> {
    let mut counts = BTreeMap::new();
    for (profile, _) in instances {
        let count: &mut u32 = counts.entry(*profile).or_default();
        *count = count.saturating_add(1);
    }
    counts
}

/// Rising numbers with runs folded: `0-2,4`.
fn ranges(numbers: &[u8]) -> String {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let text = runs.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    text.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::example;
    use crate::intent::NodeIntent;
    use crate::report::{CheckId, Finding, Severity, Verdict};
    use crate::state::NodeState;

    /// The MIG findings of a node after a change to its first GPU.
    fn findings(intent: &NodeIntent, change: impl FnOnce(&mut GpuState)) -> Vec<Finding> {
        findings_at(0, intent, change)
    }

    /// The MIG findings of a node after a change to the GPU with this index.
    fn findings_at(
        index: usize,
        intent: &NodeIntent,
        change: impl FnOnce(&mut GpuState),
    ) -> Vec<Finding> {
        let mut state = example::state_of(intent);
        if let Reading::Value(gpus) = &mut state.gpus {
            change(&mut gpus[index]);
        }
        let found = compare(intent, &state).findings.into_iter();
        found.filter(|f| matches!(f.check, CheckId::MigMode | CheckId::MigLayout)).collect()
    }

    fn of(findings: &[Finding]) -> Vec<(CheckId, Severity, &str)> {
        findings.iter().map(|f| (f.check, f.severity, f.seen.as_str())).collect()
    }

    fn instances(gpu: &mut GpuState) -> &mut Vec<GpuInstanceState> {
        match &mut gpu.gpu_instances {
            Reading::Value(instances) => instances,
            _ => panic!("no instances"),
        }
    }

    fn mode(current: bool, pending: bool) -> Reading<MigMode> {
        Reading::Value(MigMode { current, pending })
    }

    #[test]
    fn a_missing_instance_is_made_without_touching_the_others() {
        let found = findings(&example::uniform_mig(), |gpu| instances(gpu).truncate(6));
        let text = "6 × 1g.10gb (at 0-5)";
        assert_eq!(of(&found), [(CheckId::MigLayout, Severity::Blocking, text)]);
        assert_eq!(found[0].expected, "7 × 1g.10gb (at 0-6)");
        assert_eq!(found[0].actions, ["nvidia-smi mig -i 00000000:10:00.0 -cgi 19:6 -C"]);
    }

    #[test]
    fn a_foreign_instance_makes_the_layout_start_over() {
        let found = findings_at(2, &example::mixed_mig(), |gpu| instances(gpu)[1].profile_id = 5);
        let text = "1 × 3g.40gb (at 0) + 1 × profile 5 (at 4)";
        assert_eq!(of(&found), [(CheckId::MigLayout, Severity::Blocking, text)]);
        let actions = [
            "nvidia-smi mig -i 00000000:30:00.0 -dci",
            "nvidia-smi mig -i 00000000:30:00.0 -dgi",
            "nvidia-smi mig -i 00000000:30:00.0 -cgi 9:0,9:4 -C",
        ];
        assert_eq!(found[0].actions, actions);
    }

    #[test]
    fn equal_counts_at_other_placements_are_a_warning() {
        let mut intent = example::uniform_mig();
        for slot in &mut intent.class.gpus {
            slot.mig.as_mut().unwrap().pop();
        }
        let found = findings(&intent, |gpu| instances(gpu)[0].placement.start = 6);
        let text = "6 × 1g.10gb (at 1-6)";
        assert_eq!(of(&found), [(CheckId::MigLayout, Severity::Warning, text)]);
    }

    #[test]
    fn the_order_of_instances_does_not_matter() {
        assert_eq!(findings(&example::uniform_mig(), |gpu| instances(gpu).reverse()), []);
    }

    #[test]
    fn mode_off_is_one_finding_with_the_way_to_the_layout() {
        let intent = example::uniform_mig();
        for empty in [Reading::Value(Vec::new()), Reading::NotApplicable("MIG mode is off".into())]
        {
            let found = findings(&intent, |gpu| {
                gpu.mig_mode = mode(false, false);
                gpu.gpu_instances = empty;
            });
            assert_eq!(of(&found), [(CheckId::MigMode, Severity::Blocking, "MIG mode off")]);
            let all = "19:0,19:1,19:2,19:3,19:4,19:5,19:6";
            let actions = [
                "nvidia-smi -i 00000000:10:00.0 -mig 1".to_owned(),
                format!("nvidia-smi mig -i 00000000:10:00.0 -cgi {all} -C"),
            ];
            assert_eq!(found[0].actions, actions);
        }
    }

    #[test]
    fn a_pending_change_to_what_is_wanted_needs_a_reset() {
        let found = findings_at(2, &example::partly_mig(), |gpu| {
            gpu.mig_mode = mode(false, true);
            instances(gpu).clear();
        });
        let text = "MIG mode off, on pending";
        assert_eq!(of(&found), [(CheckId::MigMode, Severity::Blocking, text)]);
        assert!(found[0].actions[0].contains("--gpu-reset"), "{:?}", found[0].actions);
    }

    #[test]
    fn ampere_changes_its_mode_by_a_reset() {
        let mut intent = example::whole();
        intent.class.gpu.as_mut().unwrap().mig_mode_needs_reset = true;
        let found = findings(&intent, |gpu| gpu.mig_mode = mode(true, true));
        let actions = [
            "nvidia-smi -i 00000000:10:00.0 -mig 0",
            "nvidia-smi --gpu-reset -i 00000000:10:00.0, or a reboot",
        ];
        assert_eq!(found[0].actions, actions);
    }

    #[test]
    fn a_pending_change_away_from_what_is_wanted_is_a_warning() {
        let found = findings(&example::whole(), |gpu| gpu.mig_mode = mode(false, true));
        let text = "MIG mode off, on pending";
        assert_eq!(of(&found), [(CheckId::MigMode, Severity::Warning, text)]);
        assert_eq!(found[0].actions, ["nvidia-smi -i 00000000:10:00.0 -mig 0"]);
    }

    #[test]
    fn instances_on_a_whole_gpu_are_blocking() {
        let found = findings(&example::whole(), |gpu| {
            gpu.mig_mode = mode(true, true);
            let placement = Placement { start: 0, size: 8 };
            let compute_instances = Reading::default();
            let instance = GpuInstanceState { id: 0, profile_id: 0, placement, compute_instances };
            gpu.gpu_instances = Reading::Value(vec![instance]);
        });
        let expected = [
            (CheckId::MigMode, Severity::Blocking, "MIG mode on"),
            (CheckId::MigLayout, Severity::Blocking, "1 × profile 0 (at 0)"),
        ];
        assert_eq!(of(&found), expected);
        assert!(found[1].actions[1].ends_with("-dgi"));
        assert_eq!(found[1].actions.len(), 2);
    }

    #[test]
    fn mode_on_without_instances_is_blocking_even_where_none_can_be_seen() {
        let found = findings(&example::uniform_mig(), |gpu| instances(gpu).clear());
        assert_eq!(of(&found), [(CheckId::MigLayout, Severity::Blocking, "no GPU instance")]);
    }

    #[test]
    fn no_mig_is_expected_where_the_product_has_none_and_only_there() {
        let no_mig = || Reading::NotApplicable("no MIG".to_owned());
        assert_eq!(findings(&example::without_mig(), |gpu| gpu.mig_mode = no_mig()), []);
        let found = findings(&example::whole(), |gpu| gpu.mig_mode = no_mig());
        let text = "MIG mode not applicable: no MIG";
        assert_eq!(of(&found), [(CheckId::MigMode, Severity::Undecided, text)]);
    }

    #[test]
    fn instances_that_only_root_may_list_are_undecided() {
        let unknown = || Reading::Unknown("no permission".to_owned());
        let found = findings(&example::uniform_mig(), |gpu| gpu.gpu_instances = unknown());
        let text = "GPU instances unknown: no permission";
        assert_eq!(of(&found), [(CheckId::MigLayout, Severity::Undecided, text)]);
    }

    /// A node that has lost its first GPU, both in NVML and on PCI.
    fn without_first(intent: &NodeIntent) -> NodeState {
        let mut state = example::state_of(intent);
        if let (Reading::Value(pci), Reading::Value(gpus)) = (&mut state.pci_gpus, &mut state.gpus)
        {
            pci.remove(0);
            gpus.remove(0);
            let shown = u32::try_from(gpus.len()).unwrap();
            state.driver_state.gpu_count = Reading::Value(shown);
        }
        state
    }

    #[test]
    fn a_lost_gpu_does_not_put_the_blame_on_those_after_it() {
        let intent = example::mixed_mig();
        let report = compare(&intent, &without_first(&intent));
        let which = "which GPU is which is unknown: NVML shows 3 of 4 GPUs";
        assert_eq!(
            of(&report.findings),
            [
                (CheckId::GpuCount, Severity::Blocking, "3 on PCI, 3 in NVML"),
                (CheckId::MigLayout, Severity::Undecided, which),
            ]
        );
        assert_eq!(report.verdict, Verdict::DoesNotConform);
    }

    #[test]
    fn gpus_that_should_all_be_alike_are_judged_without_knowing_which_is_which() {
        let intent = example::uniform_mig();
        let mut state = without_first(&intent);
        if let Reading::Value(gpus) = &mut state.gpus {
            instances(&mut gpus[0]).clear();
            gpus[0].mig_devices = Reading::Value(Vec::new());
        }
        let report = compare(&intent, &state);
        assert_eq!(
            of(&report.findings),
            [
                (CheckId::GpuCount, Severity::Blocking, "1 on PCI, 1 in NVML"),
                (CheckId::MigLayout, Severity::Blocking, "no GPU instance"),
            ]
        );
    }

    #[test]
    fn runs_of_slices_fold() {
        assert_eq!(ranges(&[0, 1, 2, 4, 6, 7]), "0-2,4,6-7");
        assert_eq!(ranges(&[254, 255]), "254-255");
        assert_eq!(ranges(&[]), "");
    }
}
