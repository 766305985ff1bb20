//! The node itself: NVML and the files of the kernel.
//!
//! NVML can hang for ever inside the driver, where no signal reaches. So this process never loads it:
//! one probe process reads the host, one the inventory, then one each GPU, with a deadline. A sick GPU
//! costs its own readings only. What a probe had read before it was ended is kept.

mod engine;
#[expect(unsafe_code, reason = "a fork takes the word of its caller")]
mod fork;
mod gpu;
mod host;
mod inventory;
mod kernel_log;
mod probe;
mod programs;
#[expect(unsafe_code, reason = "NVML is a library of C functions")]
mod raw;
mod set;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fleetc_schema::pci::BusId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use self::engine::{Ended, Engine, Subject, Work};
use self::host::Host;
use self::inventory::{Inventory, Progress};
use self::probe::{Probe, Told, words};
use self::raw::{Fault, Nvml};
use super::{Observe, ObserveError};
use crate::state::{GpuState, NodeState, ProbeEnd, Reading, RefusedGpu, StuckProbe, UnixTime};

pub use self::set::Setting;

/// The name that the loader looks NVML up by.
pub const LIBRARY: &str = "libnvidia-ml.so.1";

/// Where notes of running probes are kept.
pub const STATE_DIR: &str = "/run/fleetc-validate";

/// How the node is read.
#[derive(Debug, Clone)]
pub struct Live {
    /// NVML: a name that the loader looks up, or a path.
    pub library: OsString,
    /// Where `/sys`, `/proc` and `/dev` are.
    pub root: PathBuf,
    /// Where notes of running probes are kept.
    pub state_dir: PathBuf,
    /// How long all of it may take.
    pub deadline: Duration,
    /// The program slurmd, if it is to be asked for its generic resources.
    pub slurmd: Option<PathBuf>,
    /// A file with the Node of Kubernetes as JSON.
    pub kubernetes_node: Option<PathBuf>,
    /// True if the checksum of the InfoROM is to be read from flash.
    pub inforom: bool,
    /// What the clock says.
    pub now: Option<UnixTime>,
}

/// What the probe of a GPU finds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GpuProbe {
    gpu: GpuState,
    /// NVML says that it has no such GPU, or that the GPU cannot be used; its return code.
    refused: Option<u32>,
    /// Why nothing could be read, though NVML does not say that the GPU is at fault.
    failed: Option<String>,
    /// True if NVML has told its index.
    has_index: bool,
}

impl Observe for Live {
    fn observe(&self) -> Result<NodeState, ObserveError> {
        let mut run = self.start();
        let state = run.read()?;
        run.engine.finish();
        Ok(state)
    }
}

impl Live {
    /// Reads the node, then some GPUs once more in fresh processes if the first readings call for it.
    ///
    /// # Errors
    /// Only if no process can be started.
    pub fn observe_twice(
        &self,
        doubtful: impl FnOnce(&NodeState) -> BTreeSet<BusId>,
    ) -> Result<NodeState, ObserveError> {
        let mut run = self.start();
        let mut state = run.read()?;
        let again = doubtful(&state);
        if !again.is_empty() {
            run.read_again(&mut state, &again)?;
        }
        run.engine.finish();
        Ok(state)
    }

    /// Sets something of a GPU, in a process of its own. One that does not answer in time is ended, and
    /// then nobody knows whether it is set: read it again.
    ///
    /// # Errors
    /// Says why it is not set, or may not be.
    pub fn set(&self, gpu: BusId, setting: Setting) -> Result<(), String> {
        let mut run = self.start();
        let subject = Subject::Gpu(gpu);
        if let Some(left) = run.engine.left(subject) {
            return Err(unanswered(&left));
        }
        let work: Work<'_> = Box::new(move |tell| {
            set::run(tell, gpu, self.deadline, &self.library, setting);
        });
        let ended = run.spawn(vec![(subject, work)], self.deadline);
        let ended = ended.map_err(|error| crate::cli::chain(&error))?.pop();
        run.engine.finish();
        match ended {
            Some(Ended { stuck: Some(stuck), .. }) => Err(unanswered(&stuck)),
            Some(ended) => set::outcome(&ended),
            None => Err("its process told nothing".to_owned()),
        }
    }

    fn start(&self) -> Run<'_> {
        let engine = Engine::new(&self.state_dir, self.deadline);
        Run { live: self, engine, started: now() }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a deadline needs a clock; it reaches no output but as a reading that is missing"
)]
fn now() -> Instant {
    Instant::now()
}

struct Run<'a> {
    live: &'a Live,
    engine: Engine,
    started: Instant,
}

impl Run<'_> {
    /// What is left of the time.
    fn left(&self) -> Duration {
        self.live.deadline.saturating_sub(self.started.elapsed())
    }

    fn read(&mut self) -> Result<NodeState, ObserveError> {
        // A half at most, so that a hang here leaves time for the GPUs.
        let limit = self.live.deadline / 2;
        let mut state = NodeState::default();
        let mut probes = vec![(Subject::Host, self.live.host())];
        let left = self.engine.left(Subject::Inventory);
        if left.is_none() {
            probes.push((Subject::Inventory, self.live.inventory()));
        }
        let mut ended = self.spawn(probes, limit)?.into_iter();
        let host = ended.next().map_or_else(Host::default, |ended| {
            let host = told(&ended);
            state.stuck.extend(ended.stuck);
            host
        });
        let (inventory, stuck) = match ended.next() {
            Some(ended) => (told(&ended), ended.stuck),
            None => (Inventory::default(), left),
        };
        let why_not = why_not(&inventory, &host, stuck.as_ref());
        state.stuck.extend(stuck);
        state.pci_gpus = host.pci_gpus;
        state.host = host.host;
        let no_clock = || Reading::Unknown("the clock does not tell".to_owned());
        state.host.time = self.live.now.map_or_else(no_clock, Reading::Value);
        state.driver_state = inventory.driver_state;
        state.driver_state.kernel_module = host.kernel_module;
        match why_not {
            Some(why) => {
                state.driver = why.driver_or(inventory.driver);
                state.gpus = why.reading();
                state.peers = why.reading();
            }
            None => {
                state.driver = inventory.driver;
                state.peers = inventory.peers;
                let listed = inventory.listed.iter();
                let indexes = listed.map(|listed| (listed.bus_id, listed.index)).collect();
                self.read_gpus(&mut state, &indexes, host.gpu_nodes)?;
                if state.pci_gpus.value().is_none() {
                    without_pci(&mut state, &inventory.without_handle);
                }
            }
        }
        Ok(state)
    }

    /// One probe for each GPU that PCI or NVML shows.
    fn read_gpus(
        &mut self,
        state: &mut NodeState,
        indexes: &BTreeMap<BusId, u32>,
        gpu_nodes: Option<usize>,
    ) -> Result<(), ObserveError> {
        let on_pci = state.pci_gpus.value().into_iter().flatten();
        // Where there are fewer devices than GPUs, as in a container that was given some of them,
        // NVML cannot find the others, and that says nothing about them.
        let without_nodes = gpu_nodes.is_some_and(|nodes| nodes < on_pci.clone().count());
        let all: BTreeSet<BusId> =
            on_pci.map(|gpu| gpu.bus_id).chain(indexes.keys().copied()).collect();
        let mut probes = Vec::new();
        let mut found: Vec<(BusId, Option<GpuProbe>, Option<StuckProbe>)> = Vec::new();
        for bus_id in all {
            match self.engine.left(Subject::Gpu(bus_id)) {
                Some(left) => found.push((bus_id, None, Some(left))),
                None => probes.push(bus_id),
            }
        }
        // A quarter is kept for second readings, so that a GPU that hangs leaves time for those of
        // the others.
        let limit = self.left().saturating_sub(self.live.deadline / 4);
        let ended = self.spawn_gpus(&probes, self.live.extent(), limit)?;
        for (bus_id, ended) in probes.into_iter().zip(ended) {
            let told = ended.told::<GpuProbe>();
            found.push((bus_id, told.map(|told| told.state), ended.stuck));
        }
        found.sort_by_key(|(bus_id, ..)| *bus_id);

        let mut gpus: Vec<(GpuState, bool)> = Vec::new();
        for (bus_id, probe, stuck) in found {
            let index = indexes.get(&bus_id).copied();
            let refused = probe.as_ref().and_then(|probe| probe.refused);
            if let Some(code) = refused.filter(|code| !(without_nodes && is_not_found(*code))) {
                let why = words(Fault::Code(code));
                let refused = RefusedGpu { bus_id: Some(bus_id), index, code, why };
                state.driver_state.refused.push(refused);
                continue;
            }
            let (mut gpu, mut has_index, failed) = match probe {
                Some(probe) if probe.refused.is_some() => {
                    let why = "NVML does not find it, and there are fewer /dev/nvidiaN than GPUs";
                    (probe.gpu, false, Some(why.to_owned()))
                }
                Some(probe) => (probe.gpu, probe.has_index, probe.failed),
                None => (GpuState::new(bus_id, 0), false, None),
            };
            if let Some(why) = failed {
                gpu = without_answer(gpu, &why);
            }
            if let (Some(index), false) = (index, has_index) {
                (gpu.index, has_index) = (index, true);
            }
            if let Some(stuck) = stuck {
                gpu = without_answer(gpu, &unanswered(&stuck));
                state.stuck.push(stuck);
            }
            gpus.push((gpu, has_index));
        }
        number(&mut gpus, state.driver_state.gpu_count.value().copied());
        state.gpus = listed(gpus);
        Ok(())
    }

    /// Reads what is read twice, and drops what did not come out the same.
    fn read_again(
        &mut self,
        state: &mut NodeState,
        again: &BTreeSet<BusId>,
    ) -> Result<(), ObserveError> {
        let stuck: BTreeSet<Option<BusId>> = state.stuck.iter().map(|stuck| stuck.gpu).collect();
        let again = again.iter().filter(|bus_id| !stuck.contains(&Some(**bus_id)));
        let probes: Vec<BusId> = again.copied().collect();
        let limit = self.left();
        let mut ended = match limit.is_zero() {
            true => Vec::new(),
            false => self.spawn_gpus(&probes, Extent::Volatile, limit)?,
        }
        .into_iter();
        let Reading::Value(gpus) = &mut state.gpus else { return Ok(()) };
        for bus_id in probes {
            let ended = ended.next();
            let gpu = gpus.iter_mut().find(|gpu| gpu.bus_id == bus_id);
            let Some(gpu) = gpu else { continue };
            let told = ended.as_ref().and_then(Ended::told::<GpuProbe>);
            state.stuck.extend(ended.and_then(|ended| ended.stuck));
            match told {
                Some(Told { done: true, state, .. }) => {
                    let second = state.gpu;
                    agree(&mut gpu.condition, second.condition);
                    agree(&mut gpu.mig_mode, second.mig_mode);
                    agree(&mut gpu.gpu_instances, second.gpu_instances);
                    agree(&mut gpu.mig_devices, second.mig_devices);
                    agree(&mut gpu.nvlinks, second.nvlinks);
                    agree(&mut gpu.fabric, second.fabric);
                }
                // One reading alone turns no node away.
                _ => {
                    let why = || "it was read once, and not a second time".to_owned();
                    gpu.condition = Reading::Unknown(why());
                    gpu.mig_mode = Reading::Unknown(why());
                    gpu.gpu_instances = Reading::Unknown(why());
                    gpu.mig_devices = Reading::Unknown(why());
                    gpu.nvlinks = Reading::Unknown(why());
                    gpu.fabric = Reading::Unknown(why());
                }
            }
        }
        Ok(())
    }

    /// One probe for each of these GPUs.
    fn spawn_gpus(
        &mut self,
        gpus: &[BusId],
        extent: Extent,
        limit: Duration,
    ) -> Result<Vec<Ended>, ObserveError> {
        let live = self.live;
        let probe = |bus_id: &BusId| (Subject::Gpu(*bus_id), live.gpu(*bus_id, extent));
        self.spawn(gpus.iter().map(probe).collect(), limit)
    }

    fn spawn(
        &mut self,
        probes: Vec<(Subject, Work<'_>)>,
        limit: Duration,
    ) -> Result<Vec<Ended>, ObserveError> {
        self.engine.run(probes, limit.min(self.live.deadline)).map_err(ObserveError::Probe)
    }
}

/// How much of a GPU is read.
#[derive(Debug, Clone, Copy)]
enum Extent {
    /// Everything but the checksum of the InfoROM.
    Usual,
    /// That too.
    WithInforom,
    /// What is read twice.
    Volatile,
}

/// What probes do, in their own processes.
impl Live {
    fn extent(&self) -> Extent {
        match self.inforom {
            true => Extent::WithInforom,
            false => Extent::Usual,
        }
    }

    fn host(&self) -> Work<'_> {
        Box::new(|tell| {
            let probe = Probe::start(tell, Host::default(), self.deadline);
            let extra = host::Extra {
                slurmd: self.slurmd.clone(),
                kubernetes_node: self.kubernetes_node.clone(),
            };
            host::read(&self.root, &extra, &probe);
            probe.finish();
        })
    }

    fn inventory(&self) -> Work<'_> {
        Box::new(|tell| {
            let probe = Probe::start(tell, Inventory::default(), self.deadline);
            inventory::read(&self.library, &probe);
            probe.finish();
        })
    }

    fn gpu(&self, bus_id: BusId, extent: Extent) -> Work<'_> {
        Box::new(move |tell| {
            let gpu = GpuState::new(bus_id, 0);
            let start = GpuProbe { gpu, refused: None, failed: None, has_index: false };
            let probe = Probe::start(tell, start, self.deadline);
            read_gpu(bus_id, &self.library, extent, &probe);
            probe.finish();
        })
    }
}

/// The GPUs, if it is known of each which one it is.
fn listed(gpus: Vec<(GpuState, bool)>) -> Reading<Vec<GpuState>> {
    let nameless: Vec<String> = gpus
        .iter()
        .filter(|(_, has_index)| !has_index)
        .map(|(gpu, _)| match &gpu.name {
            Reading::Unknown(why) => format!("{} ({why})", gpu.bus_id),
            Reading::Value(_) | Reading::NotApplicable(_) => gpu.bus_id.to_string(),
        })
        .collect();
    let distinct: BTreeSet<u32> = gpus.iter().map(|(gpu, _)| gpu.index).collect();
    if !nameless.is_empty() {
        Reading::Unknown(format!("NVML gave no index of {}", nameless.join(", ")))
    } else if distinct.len() < gpus.len() {
        Reading::Unknown("NVML gave two GPUs the same index".to_owned())
    } else {
        Reading::Value(gpus.into_iter().map(|(gpu, _)| gpu).collect())
    }
}

/// PCI could not be read, so GPUs that NVML counts and gives no handle for are known by index only.
fn without_pci(state: &mut NodeState, without_handle: &[(u32, u32)]) {
    let mut unsure = Vec::new();
    for (index, code) in without_handle {
        match is_definite(*code) {
            true => state.driver_state.refused.push(RefusedGpu {
                bus_id: None,
                index: Some(*index),
                code: *code,
                why: words(Fault::Code(*code)),
            }),
            false => unsure.push(format!("{index} ({})", words(Fault::Code(*code)))),
        }
    }
    if !unsure.is_empty() {
        state.gpus = Reading::Unknown(format!("no handle for the index {}", unsure.join(", ")));
    }
}

/// True if the code says that the GPU is gone or cannot be used: insufficient power, interrupts, a
/// corrupted InfoROM, lost, reset required, not found.
fn is_definite(code: u32) -> bool {
    matches!(code, 6 | 8 | 11 | 14 | 15 | 16 | 28)
}

/// NOT_FOUND and GPU_NOT_FOUND.
fn is_not_found(code: u32) -> bool {
    matches!(code, 6 | 28)
}

/// Two readings of the same thing that differ are none.
fn agree<T: PartialEq>(first: &mut Reading<T>, second: Reading<T>) {
    if *first != second {
        *first = Reading::Unknown("two readings, one after the other, differ".to_owned());
    }
}

/// Gives the GPUs that did not tell their index the indexes that are left, by bus id: NVML numbers by
/// bus id. Only if it counts as many as there are.
fn number(gpus: &mut [(GpuState, bool)], count: Option<u32>) {
    if u32::try_from(gpus.len()).ok() != count {
        return;
    }
    let told: BTreeSet<u32> =
        gpus.iter().filter(|(_, has_index)| *has_index).map(|(gpu, _)| gpu.index).collect();
    let mut left = (0..count.unwrap_or(0)).filter(|index| !told.contains(index));
    for (gpu, has_index) in gpus.iter_mut().filter(|(_, has_index)| !has_index) {
        let Some(index) = left.next() else { return };
        (gpu.index, *has_index) = (index, true);
    }
}

/// Gives the readings that a probe has not come to a reason.
fn without_answer<S: Serialize + DeserializeOwned>(state: S, why: &str) -> S {
    let replaced = || -> serde_json::Result<S> {
        let mut json = serde_json::to_value(&state)?;
        super::replace_unread(&mut json, why);
        // Through text, as everything else is read: the program has one reader of states, not two.
        serde_json::from_slice(&serde_json::to_vec(&json)?)
    };
    replaced().unwrap_or(state)
}

/// What a probe told last; the readings that it has not come to say why.
fn told<S: Serialize + DeserializeOwned + Default>(ended: &Ended) -> S {
    let state = ended.told::<S>().map(|told| told.state).unwrap_or_default();
    match &ended.stuck {
        Some(stuck) => without_answer(state, &unanswered(stuck)),
        None => state,
    }
}

/// Why a probe told no more, in words.
fn unanswered(stuck: &StuckProbe) -> String {
    let call = stuck.call.as_deref().unwrap_or("NVML");
    let seconds = |ms: u64| format!("{}.{} s", ms / 1000, ms % 1000 / 100);
    match stuck.end {
        ProbeEnd::Killed { after_ms } => format!("{call} did not answer in {}", seconds(after_ms)),
        ProbeEnd::Unkillable { after_ms } => format!(
            "{call} did not answer in {}, and its process cannot be killed",
            seconds(after_ms)
        ),
        ProbeEnd::StillThere => {
            let pid = stuck.pid;
            format!("an earlier probe, process {pid}, still waits in the kernel")
        }
        ProbeEnd::Crashed { signal } => format!("the probe crashed with signal {signal}"),
        ProbeEnd::Exited { code } => format!("the probe ended early, with exit code {code}"),
    }
}

/// Why there is nothing from NVML.
struct WhyNot {
    why: String,
    /// True if it is as it should be on a node without GPUs.
    not_applicable: bool,
}

impl WhyNot {
    fn reading<T>(&self) -> Reading<T> {
        match self.not_applicable {
            true => Reading::NotApplicable(self.why.clone()),
            false => Reading::Unknown(self.why.clone()),
        }
    }

    fn driver_or(&self, driver: Reading<String>) -> Reading<String> {
        match driver {
            Reading::Value(driver) => Reading::Value(driver),
            Reading::NotApplicable(_) | Reading::Unknown(_) => self.reading(),
        }
    }
}

/// Why NVML cannot be asked for its GPUs; none if it can.
fn why_not(inventory: &Inventory, host: &Host, stuck: Option<&StuckProbe>) -> Option<WhyNot> {
    let has_no_gpu = host.pci_gpus.value().is_some_and(Vec::is_empty);
    let module = host.kernel_module.value();
    let unknown = |why: String| Some(WhyNot { why, not_applicable: false });
    let absent = |why: &str| {
        if has_no_gpu {
            let why = format!("PCI shows no NVIDIA GPU, and {why}");
            return Some(WhyNot { why, not_applicable: true });
        }
        unknown(why.to_owned())
    };
    match &inventory.progress {
        Progress::Listing | Progress::Listed => None,
        Progress::Starting => {
            unknown(stuck.map_or_else(|| "the probe of NVML told nothing".to_owned(), unanswered))
        }
        Progress::NoLibrary(loader) => match module {
            Some(module) => unknown(format!(
                "the driver {module} is loaded, but its library cannot be: {loader}; give \
                 --library PATH"
            )),
            None => absent(&format!("NVIDIA's library is not installed: {loader}")),
        },
        Progress::NoInit(9) => match (module, host.has_control_node) {
            (Some(module), Some(false)) => unknown(format!(
                "the driver {module} is loaded, but /dev/nvidiactl is not here: give this \
                 container the devices of the host"
            )),
            (Some(module), _) => {
                unknown(format!("the driver {module} is loaded, but NVML does not reach it"))
            }
            (None, _) => absent("NVIDIA's kernel driver is not loaded"),
        },
        Progress::NoInit(18) => {
            let library = inventory.driver_state.nvml.value();
            let library = library.map_or("another version", String::as_str);
            let module = module.map_or("of another version", String::as_str);
            unknown(format!(
                "the kernel module is {module} and NVML is {library}: the driver was changed, and \
                 not loaded since"
            ))
        }
        Progress::NoInit(4) => unknown(
            "no permission to open NVIDIA's devices: run it as root, or in a privileged container"
                .to_owned(),
        ),
        Progress::NoInit(code) => unknown(words(Fault::Code(*code))),
    }
}

fn read_gpu(bus_id: BusId, library: &OsStr, extent: Extent, all: &Probe<GpuProbe>) {
    let nvml = match Nvml::load(library) {
        Ok(nvml) => nvml,
        Err(why) => return all.set(|found| found.failed = Some(why)),
    };
    if let Err(fault) = nvml.init() {
        return all.set(|found| found.failed = Some(format!("nvmlInit_v2: {}", words(fault))));
    }
    let device = match nvml.by_bus_id(&bus_id.to_string()) {
        Ok(device) => device,
        Err(Fault::Code(code)) if is_definite(code) => {
            return all.set(|found| found.refused = Some(code));
        }
        Err(fault) => return all.set(|found| found.failed = Some(words(fault))),
    };
    if let Ok(index) = nvml.index(device) {
        all.set(|found| (found.gpu.index, found.has_index) = (index, true));
    }
    let inforom = match extent {
        Extent::Volatile => {
            gpu::read_volatile(&nvml, device, all);
            return gpu::read_condition(all);
        }
        Extent::WithInforom => true,
        Extent::Usual => false,
    };
    gpu::read(&nvml, device, gpu::Extra { inforom }, all);
}
