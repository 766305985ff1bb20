//! The node that is judged, as the checks see it.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{GpuModel, GpuSlot, NodeClass, NodePolicy};
use fleetc_schema::name::PolicyName;
use fleetc_schema::pci::BusId;
use fleetc_schema::units::Seconds;

use super::Options;
use super::outcome::{Answer, Contrast, Outcome};
use super::slots::match_slots;
use super::table::{CheckId, Level, row};
use crate::intent::NodeIntent;
use crate::state::{GpuState, NodeState, Reading};

/// The node that is judged.
pub(super) struct Node<'a> {
    pub(super) intent: &'a NodeIntent,
    pub(super) state: &'a NodeState,
    options: &'a Options<'a>,
    /// GPUs of NVML, none on a node that should have none: `gpu.count` judges those.
    pub(super) gpus: &'a [GpuState],
    /// Which of them is which GPU of the class, or why that is not certain.
    pub(super) slots: Result<Vec<(&'a GpuState, &'a GpuSlot)>, String>,
}

impl<'a> Node<'a> {
    /// A node, with its options.
    pub(super) fn new(
        intent: &'a NodeIntent,
        state: &'a NodeState,
        options: &'a Options<'a>,
    ) -> Self {
        let has_gpus = intent.class.gpu.is_some() && !intent.class.gpus.is_empty();
        let gpus = state.gpus.value().filter(|_| has_gpus).map_or(&[][..], Vec::as_slice);
        let slots = match_slots(intent, &state.pci_gpus, gpus);
        Self { intent, state, options, gpus, slots }
    }

    pub(super) fn class(&self) -> &'a NodeClass {
        &self.intent.class
    }

    /// The GPU product; none if the node should have no GPU.
    pub(super) fn model(&self) -> Option<&'a GpuModel> {
        self.intent.class.gpu.as_ref().filter(|_| !self.intent.class.gpus.is_empty())
    }

    fn named_policy(&self) -> Option<&'a (PolicyName, NodePolicy)> {
        self.intent.class.policy.as_ref()
    }

    pub(super) fn policy(&self) -> Option<&'a NodePolicy> {
        self.named_policy().map(|(_, policy)| policy)
    }

    /// How much a check matters here.
    pub(super) fn level(&self, check: CheckId) -> Level {
        let said = self.policy().and_then(|policy| policy.checks.get(&check));
        said.copied().unwrap_or(row(check).level)
    }

    /// The item behind what the hardware is.
    pub(super) fn system_path(&self) -> ItemPath {
        self.intent.class.paths.system.clone()
    }

    /// The item behind the driver.
    pub(super) fn driver_path(&self) -> ItemPath {
        self.intent.class.paths.driver.clone().unwrap_or_else(|| self.system_path())
    }

    /// The item behind a value of the policy, which is below these words.
    pub(super) fn policy_path(&self, words: &[&str]) -> ItemPath {
        match self.named_policy() {
            Some((name, _)) => words
                .iter()
                .fold(ItemPath::item("node-policy", name), |path, word| path.child(word)),
            None => self.system_path(),
        }
    }

    /// The item behind one of several values of the policy.
    pub(super) fn policy_entry(&self, word: &str, key: impl std::fmt::Display) -> ItemPath {
        match self.named_policy() {
            Some((name, _)) => ItemPath::item("node-policy", name).keyed(word, [key]),
            None => self.system_path(),
        }
    }

    /// What was read of a GPU before.
    pub(super) fn earlier(&self, gpu: &GpuState) -> Option<&'a GpuState> {
        let uuid = gpu.identity.uuid.value()?;
        let gpus = self.options.earlier?.gpus.value()?;
        gpus.iter().find(|other| other.identity.uuid.value() == Some(uuid))
    }

    /// How long ago the earlier readings are, if both say when; a minute at least, since a rate over
    /// less says little.
    pub(super) fn earlier_age(&self) -> Option<Seconds> {
        let before = self.options.earlier?.host.time.value()?;
        let now = self.state.host.time.value()?;
        Some(Seconds(now.0.saturating_sub(before.0).max(60)))
    }

    /// True if the node has not been booted since the earlier readings, as far as is known.
    pub(super) fn is_up_since_earlier(&self) -> bool {
        let uptime = self.state.host.uptime.value();
        self.earlier_age().zip(uptime).is_some_and(|(age, uptime)| uptime.0 >= age.0)
    }

    /// How long ago the earlier readings are, in words: `26 h ago`, or `before`.
    pub(super) fn earlier_when(&self) -> String {
        self.earlier_age().map_or_else(|| "before".to_owned(), |age| format!("{} ago", span(age)))
    }

    /// A GPU of NVML by its address.
    pub(super) fn gpu_at(&self, bus_id: BusId) -> Option<&'a GpuState> {
        self.gpus.iter().find(|gpu| gpu.bus_id == bus_id)
    }

    /// What is wrong, or perhaps only not there yet: it counts once the grace time is over, and nobody
    /// can tell if that is so without an uptime.
    pub(super) fn once_settled(&self, contrast: Contrast) -> Answer {
        let grace = self.options.grace.0;
        let undecided = |contrast: Contrast, when: String| {
            let seen = format!("{}, {when}", contrast.seen);
            let contrast = Contrast { seen, actions: Vec::new(), ..contrast };
            Answer::Unread(contrast.advise("check again once the node has settled"))
        };
        match &self.state.host.uptime {
            Reading::Value(uptime) if uptime.0 >= grace => Answer::Fails(contrast),
            Reading::Value(uptime) => {
                let when = format!("{} s after boot: judged from {grace} s on", uptime.0);
                undecided(contrast, when)
            }
            reading => {
                let why = reading.absence().unwrap_or_default();
                undecided(contrast, format!("and the time since boot is {why}"))
            }
        }
    }

    /// Judges each GPU that NVML shows, whichever of the class it is.
    pub(super) fn each_gpu(
        &self,
        outcome: &mut Outcome,
        path: &ItemPath,
        judge: impl Fn(&'a GpuModel, &'a GpuState) -> Answer,
    ) {
        let Some(model) = self.model() else { return };
        for gpu in self.gpus {
            outcome.gpu(gpu, path, judge(model, gpu));
        }
    }
}

/// A span of time in one unit, rounded down.
pub(super) fn span(time: Seconds) -> String {
    match time.0 / 60 {
        minutes @ 0..120 => format!("{minutes} min"),
        minutes @ 120..2880 => format!("{} h", minutes / 60),
        minutes => format!("{} days", minutes / 1440),
    }
}

/// How much a counter has grown. One that is lower than before began anew, such as after a reboot.
pub(super) fn growth(now: u64, before: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

/// True if more than so many a minute came in a span of time.
pub(super) fn is_faster(count: u64, a_minute: u64, time: Seconds) -> bool {
    count.saturating_mul(60) > a_minute.saturating_mul(time.0)
}

/// Whether MIG mode is on; none if that is not known.
pub(super) fn mig_is_on(gpu: &GpuState) -> Option<bool> {
    match &gpu.mig_mode {
        Reading::Value(mode) => Some(mode.current),
        Reading::NotApplicable(_) => Some(false),
        Reading::Unknown(_) => None,
    }
}

/// A count with its noun: `1 GPU`, `2 GPUs`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// Judges that all GPUs of the node read alike.
pub(super) fn all_alike<T: Clone + Ord>(
    gpus: &[GpuState],
    what: &str,
    reading: impl Fn(&GpuState) -> Reading<T>,
    shown: impl Fn(&T) -> String,
) -> Answer {
    if gpus.len() < 2 {
        return Answer::NotHere;
    }
    let mut groups: std::collections::BTreeMap<T, Vec<u32>> = std::collections::BTreeMap::new();
    let mut unread = None;
    let mut applies = false;
    for gpu in gpus {
        match reading(gpu) {
            Reading::Value(value) => groups.entry(value).or_default().push(gpu.index),
            Reading::NotApplicable(_) => continue,
            absent @ Reading::Unknown(_) => unread = Some(absent),
        }
        applies = true;
    }
    let expected = format!("one {what} for all GPUs");
    if groups.len() > 1 {
        let each = groups.iter().map(|(value, indexes)| {
            let mut indexes = indexes.clone();
            indexes.sort_unstable();
            let list: Vec<String> = indexes.iter().map(u32::to_string).collect();
            format!("{} on GPU {}", shown(value), list.join(" "))
        });
        let seen = each.collect::<Vec<_>>().join(", ");
        return Answer::Fails(Contrast::new(expected, seen));
    }
    match unread {
        Some(absent) => Answer::unread(what, &absent, expected),
        None if applies => Answer::Holds,
        None => Answer::NotHere,
    }
}
