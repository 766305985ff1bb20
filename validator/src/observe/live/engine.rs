//! The parent's side: it starts probes, waits for them no longer than it must, and ends them.
//!
//! Invariant: nothing here calls NVML, and nothing starts a thread, since each probe is a fork of this
//! process. Every wait has an end, also for a process that cannot be killed
//! because it waits in the kernel: that one is left behind, and noted so that no other is started on
//! top of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::mem;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fleetc_schema::pci::BusId;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::de::{DeserializeOwned, IgnoredAny};

use super::fork::{End, Fork};
use super::probe::Told;
use crate::state::{ProbeEnd, StuckProbe};

/// How long killed probes are waited for, all together.
const REAP: Duration = Duration::from_millis(700);

/// How long probes that have told all are waited for: their library closes the GPUs as they end.
const LEAVE: Duration = Duration::from_millis(150);

/// How often a probe that should be gone is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How much is read of a probe at a time.
const CHUNK: usize = 64 << 10;

/// How often a pipe is read that nobody writes to any more: Linux gives it 64 KiB.
const DRAIN: usize = 2;

/// The longest line of a probe that is taken.
const MAX_LINE: usize = 16 << 20;

/// How a line of a probe starts.
const STARTS: &[u8] = b"{\"call\":";

/// How a line starts that a probe ends with: the name of its last call, then this.
const DONE: &[u8] = b"\"done\":true,\"state\":";
const DONE_WITHIN: usize = 256;

/// What a probe is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// The host: files.
    Host,
    /// The node: NVML's inventory.
    Inventory,
    /// A GPU.
    Gpu(BusId),
}

impl Subject {
    /// Its word in notes.
    pub(super) fn word(self) -> String {
        match self {
            Self::Host => "host".to_owned(),
            Self::Inventory => "inventory".to_owned(),
            Self::Gpu(bus_id) => format!("gpu={bus_id}"),
        }
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "host" => Some(Self::Host),
            "inventory" => Some(Self::Inventory),
            _ => word.strip_prefix("gpu=")?.parse().ok().map(Self::Gpu),
        }
    }

    pub(super) fn gpu(self) -> Option<BusId> {
        match self {
            Self::Host | Self::Inventory => None,
            Self::Gpu(bus_id) => Some(bus_id),
        }
    }
}

/// What came of a probe.
pub(super) struct Ended {
    /// The last line that it printed.
    last: Option<Vec<u8>>,
    /// Why it did not come to its end; none if it did.
    pub(super) stuck: Option<StuckProbe>,
}

impl Ended {
    /// What it told last, if it told anything.
    pub(super) fn told<S: DeserializeOwned>(&self) -> Option<Told<S>> {
        serde_json::from_slice(self.last.as_deref()?).ok()
    }
}

/// What a probe does, in its own process.
pub(super) type Work<'a> = Box<dyn FnOnce(File) + 'a>;

/// Starts probes, and knows those that earlier runs have left behind.
pub(super) struct Engine {
    /// How long any probe may live.
    lifetime: Duration,
    /// Where notes of running probes are kept; none if that folder cannot be had.
    notes: Option<PathBuf>,
    /// Probes of earlier runs that still wait in the kernel.
    left: BTreeMap<Subject, u32>,
    /// Probes that wait until they are let go, so that the driver stays attached to its GPUs.
    holding: Vec<(Fork, Option<PathBuf>)>,
}

/// A probe that runs.
struct Running {
    subject: Subject,
    process: Fork,
    note: Option<PathBuf>,
    /// What it has told since the end of a line.
    partial: Vec<u8>,
    last: Option<Vec<u8>>,
    done: bool,
    closed: bool,
}

impl Running {
    fn is_awaited(&self) -> bool {
        !self.done && !self.closed
    }

    /// Takes what it tells, once there is something.
    fn take(&mut self) {
        let mut chunk = vec![0; CHUNK];
        let read = match self.process.told.read(&mut chunk) {
            Ok(0) => None,
            Ok(length) => chunk.get(..length),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return,
            Err(_) => None,
        };
        let Some(read) = read else {
            self.closed = true;
            return;
        };
        let mut lines = read.split(|byte| *byte == b'\n');
        let rest = lines.next_back().unwrap_or_default();
        for line in lines {
            let mut whole = mem::take(&mut self.partial);
            whole.extend_from_slice(line);
            if whole.starts_with(STARTS) {
                self.done |= is_done(&whole);
                self.last = Some(whole);
            }
        }
        self.partial.extend_from_slice(rest);
        if self.partial.len() > MAX_LINE {
            self.process.kill();
            self.closed = true;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a deadline needs a clock; it reaches no output but as a reading that is missing"
)]
fn now() -> Instant {
    Instant::now()
}

/// Waits for what probes tell, no longer than this, and takes it. False if there was nothing.
fn take(running: &mut [Running], limit: Duration) -> bool {
    let mut awaited: Vec<&mut Running> =
        running.iter_mut().filter(|probe| probe.is_awaited()).collect();
    let streams = awaited.iter().map(|probe| probe.process.told.as_fd());
    let mut streams: Vec<PollFd<'_>> =
        streams.map(|stream| PollFd::new(stream, PollFlags::POLLIN)).collect();
    // Rounded up: a wait of nothing would turn in circles.
    let limit = PollTimeout::try_from(limit.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX);
    if streams.is_empty() {
        return false;
    }
    match poll(&mut streams, limit) {
        Ok(0) => return false,
        Err(error) => return error == Errno::EINTR,
        Ok(_) => {}
    }
    let ready: Vec<bool> = streams.iter().map(|stream| stream.any() == Some(true)).collect();
    for (probe, is_ready) in awaited.iter_mut().zip(ready) {
        if is_ready {
            probe.take();
        }
    }
    true
}

impl Engine {
    /// An engine with its notes in this folder.
    pub(super) fn new(notes: &Path, lifetime: Duration) -> Self {
        let notes = match fs::create_dir_all(notes) {
            Ok(()) => Some(notes.to_owned()),
            Err(_) => None,
        };
        let left = notes.as_deref().map(left_behind).unwrap_or_default();
        Self { lifetime, notes, left, holding: Vec::new() }
    }

    /// The process of an earlier run that is still about this.
    pub(super) fn left(&self, subject: Subject) -> Option<StuckProbe> {
        let pid = *self.left.get(&subject)?;
        Some(StuckProbe { gpu: subject.gpu(), call: None, end: ProbeEnd::StillThere, pid })
    }

    /// Runs probes side by side until each is done or its time is over.
    ///
    /// # Errors
    /// Only if a process cannot be started.
    pub(super) fn run(
        &mut self,
        probes: Vec<(Subject, Work<'_>)>,
        limit: Duration,
    ) -> std::io::Result<Vec<Ended>> {
        let started = now();
        let gone = self.gone();
        let mut running: Vec<Running> = Vec::with_capacity(probes.len());
        for (subject, work) in probes {
            let forked = Fork::start(|tell| {
                // These are not for this one to hold.
                running.clear();
                self.holding.clear();
                work(tell);
            });
            let process = match forked {
                Ok(process) => process,
                Err(error) => {
                    // None of those that started may outlive this.
                    running.iter_mut().for_each(|probe| probe.process.kill());
                    return Err(error);
                }
            };
            let notes = self.notes.as_deref().zip(gone);
            let note = notes.and_then(|(folder, gone)| note(folder, subject, process.id(), gone));
            let (partial, last, done, closed) = (Vec::new(), None, false, false);
            running.push(Running { subject, process, note, partial, last, done, closed });
        }
        let until = started + limit;
        while take(&mut running, until.saturating_duration_since(now())) && now() < until {}
        for probe in running.iter_mut().filter(|probe| probe.is_awaited()) {
            probe.process.kill();
        }
        // What was under way when the probe was killed is still in the pipe, which is no longer than this.
        for _ in 0..DRAIN {
            take(&mut running, Duration::ZERO);
        }
        let after_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(self.reap(running, after_ms))
    }

    /// When a probe that starts now should be gone, in seconds since boot.
    fn gone(&self) -> Option<u64> {
        // It ends itself two seconds after its deadline, if it can.
        Some(uptime()?.saturating_add(self.lifetime.as_secs()).saturating_add(4))
    }

    /// Waits for processes that should be gone, for a short while.
    fn reap(&mut self, running: Vec<Running>, after_ms: u64) -> Vec<Ended> {
        let until = now() + REAP;
        let mut ended = Vec::with_capacity(running.len());
        for Running { subject, mut process, note, last, done, closed, partial: _ } in running {
            if done {
                self.holding.push((process, note));
                ended.push(Ended { last, stuck: None });
                continue;
            }
            let pid = process.id();
            let end = match wait(&mut process, until) {
                Some(_) if !closed => ProbeEnd::Killed { after_ms },
                // Killed at the deadline; the line that tells so was read first.
                Some(End::Signaled(9)) => ProbeEnd::Killed { after_ms },
                Some(End::Signaled(signal)) => ProbeEnd::Crashed { signal },
                Some(End::Exited(code)) => ProbeEnd::Exited { code },
                None => ProbeEnd::Unkillable { after_ms },
            };
            match end {
                ProbeEnd::Unkillable { .. } => keep(note.as_deref(), subject, pid),
                _ => forget(note.as_deref()),
            }
            let told = last.as_deref().map(serde_json::from_slice::<Told<IgnoredAny>>);
            let call = told.and_then(Result::ok).map(|told| told.call);
            let call = call.filter(|call| !call.is_empty());
            ended.push(Ended {
                last,
                stuck: Some(StuckProbe { gpu: subject.gpu(), call, end, pid }),
            });
        }
        ended
    }

    /// Lets go the probes that have told all, and waits for them for a short while. One that takes
    /// longer to end is left to end by itself.
    pub(super) fn finish(self) {
        let until = now() + LEAVE;
        let mut leaving = self.holding;
        leaving.iter_mut().for_each(|(process, _)| process.let_go());
        for (mut process, note) in leaving {
            if wait(&mut process, until).is_some() {
                forget(note.as_deref());
            }
        }
    }
}

/// True if a probe says that nothing is left to read. The rest of its line is read when it is needed.
fn is_done(line: &[u8]) -> bool {
    let head = line.get(..DONE_WITHIN).unwrap_or(line);
    head.windows(DONE.len()).any(|window| window == DONE)
}

/// Waits for a process until then.
fn wait(process: &mut Fork, until: Instant) -> Option<End> {
    loop {
        match process.try_wait() {
            Some(end) => return Some(end),
            None if now() < until => std::thread::sleep(LOOK_EVERY),
            None => return None,
        }
    }
}

/// Notes that a process runs, what it is about, and when it should be gone.
fn note(folder: &Path, subject: Subject, pid: u32, gone: u64) -> Option<PathBuf> {
    let (start, _) = process(pid)?;
    let file = folder.join(format!("probe-{pid}"));
    fs::write(&file, format!("{} {start} {gone}\n", subject.word())).ok()?;
    Some(file)
}

/// Notes that a process should be gone, and is not.
fn keep(note: Option<&Path>, subject: Subject, pid: u32) {
    if let (Some(note), Some((start, _))) = (note, process(pid)) {
        let _ = fs::write(note, format!("{} {start} 0\n", subject.word()));
    }
}

fn forget(note: Option<&Path>) {
    if let Some(note) = note {
        let _ = fs::remove_file(note);
    }
}

/// Probes of earlier runs that should be gone and are not. Forgets those that are.
fn left_behind(folder: &Path) -> BTreeMap<Subject, u32> {
    let mut left = BTreeMap::new();
    let Ok(entries) = fs::read_dir(folder) else { return left };
    for entry in entries.flatten().take(4096) {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix("probe-")?.parse::<u32>().ok());
        let Some(pid) = pid else { continue };
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let mut words = text.split_whitespace();
        let subject = words.next().and_then(Subject::parse);
        let start = words.next().and_then(|start| start.parse::<u64>().ok());
        let gone = words.next().and_then(|gone| gone.parse::<u64>().ok());
        let is_alive =
            matches!(process(pid), Some((since, state)) if Some(since) == start && state != 'Z');
        match (subject, gone) {
            (Some(subject), Some(gone)) if is_alive => {
                // Before its time is over it is of a run beside this one.
                if uptime().is_some_and(|uptime| uptime > gone) {
                    left.insert(subject, pid);
                }
            }
            _ => forget(Some(&entry.path())),
        }
    }
    left
}

/// When a process started, in ticks since boot, and its state: fields 22 and 3 of `/proc/PID/stat`.
fn process(pid: u32) -> Option<(u64, char)> {
    let stat = of_kernel(&format!("/proc/{pid}/stat"))?;
    // The name, in parentheses, may hold anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((fields.nth(18)?.parse().ok()?, state))
}

fn uptime() -> Option<u64> {
    of_kernel("/proc/uptime")?.split('.').next()?.parse().ok()
}

/// A short file of the kernel, which gives it in one piece.
fn of_kernel(path: &str) -> Option<String> {
    let mut text = [0; 1024];
    let length = File::open(path).ok()?.read(&mut text).ok()?;
    Some(String::from_utf8_lossy(text.get(..length)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_whether_it_is_the_last() {
        let line = |done| {
            let told = Told { call: "nvmlDeviceGetMigMode".into(), done, state: "\"done\":true" };
            serde_json::to_vec(&told).unwrap()
        };
        assert!(is_done(&line(true)) && line(true).starts_with(STARTS));
        assert!(!is_done(&line(false)));
    }

    #[test]
    fn subjects_are_read_back() {
        let gpu = Subject::Gpu("0000:1b:00.0".parse().unwrap());
        for subject in [Subject::Host, Subject::Inventory, gpu] {
            assert_eq!(Subject::parse(&subject.word()), Some(subject));
        }
        assert_eq!(Subject::parse("gpu=x"), None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the process that is sure to be alive")]
    fn only_a_living_process_past_its_time_is_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        let (start, _) = process(pid).unwrap();
        let note = dir.path().join(format!("probe-{pid}"));
        let write = |start: u64, gone: u64| {
            fs::write(&note, format!("inventory {start} {gone}\n")).unwrap();
            left_behind(dir.path())
        };
        assert_eq!(write(start, 0), BTreeMap::from([(Subject::Inventory, pid)]));
        assert!(write(start, u64::MAX).is_empty(), "it may still run");
        assert!(note.exists());
        assert!(write(start + 1, 0).is_empty(), "another process with the same number");
        assert!(!note.exists());
    }
}
