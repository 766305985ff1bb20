//! The parent's side: it starts probes, waits for them no longer than it must, and ends them.
//!
//! Invariant: nothing here calls NVML. Every wait has an end, also for a process that cannot be killed
//! because it waits in the kernel: that one is left behind, and noted so that no other is started on
//! top of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use fleetc_schema::pci::BusId;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::probe::Told;
use crate::state::{ProbeEnd, StuckProbe};

/// How long killed probes are waited for, all together.
const REAP: Duration = Duration::from_millis(700);

/// How long probes that have told all are waited for: their library closes the GPUs as they end.
const LEAVE: Duration = Duration::from_millis(150);

/// How often a probe that should be gone is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The longest line of a probe that is taken.
const MAX_LINE: u64 = 16 << 20;

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
    /// Its word on the command line, and in notes.
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

/// Starts probes, and knows those that earlier runs have left behind.
pub(super) struct Engine {
    /// This program.
    program: PathBuf,
    /// How long any probe may live.
    lifetime: Duration,
    /// Where notes of running probes are kept; none if that folder cannot be had.
    notes: Option<PathBuf>,
    /// Probes of earlier runs that still wait in the kernel.
    left: BTreeMap<Subject, u32>,
    /// Probes that wait until they are let go, so that the driver stays attached to its GPUs.
    holding: Vec<(Child, ChildStdin, Option<PathBuf>)>,
}

/// A probe that runs.
struct Running {
    subject: Subject,
    child: Child,
    stdin: Option<ChildStdin>,
    note: Option<PathBuf>,
    last: Option<Vec<u8>>,
    done: bool,
    closed: bool,
}

enum Event {
    Line(Vec<u8>, bool),
    Closed,
}

#[expect(
    clippy::disallowed_methods,
    reason = "a deadline needs a clock; it reaches no output but as a reading that is missing"
)]
fn now() -> Instant {
    Instant::now()
}

impl Engine {
    /// An engine of this program, with its notes in this folder.
    pub(super) fn new(program: PathBuf, notes: &Path, lifetime: Duration) -> Self {
        let notes = match fs::create_dir_all(notes) {
            Ok(()) => Some(notes.to_owned()),
            Err(_) => None,
        };
        let left = notes.as_deref().map(left_behind).unwrap_or_default();
        Self { program, lifetime, notes, left, holding: Vec::new() }
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
        probes: &[(Subject, Vec<OsString>)],
        limit: Duration,
    ) -> std::io::Result<Vec<Ended>> {
        let started = now();
        let until = started + limit;
        let (sender, events) = mpsc::channel();
        let mut running: Vec<Running> = Vec::with_capacity(probes.len());
        for (number, (subject, arguments)) in probes.iter().enumerate() {
            let spawned = Command::new(&self.program)
                .arg("probe")
                .arg(subject.word())
                .arg(self.lifetime.as_millis().to_string())
                .args(arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn();
            let mut child = match spawned {
                Ok(child) => child,
                Err(error) => {
                    // None of those that started may outlive this.
                    for mut probe in running {
                        let _ = probe.child.kill();
                    }
                    return Err(error);
                }
            };
            let notes = self.notes.as_deref();
            let note = notes.and_then(|folder| note(folder, *subject, child.id(), self.lifetime));
            if let Some(stdout) = child.stdout.take() {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    let mut lines = BufReader::new(stdout);
                    loop {
                        let mut line = Vec::new();
                        let read = lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
                        if !matches!(read, Ok(length) if length > 0) {
                            break;
                        }
                        // What was cut off in the middle says nothing, nor what a library prints.
                        if !line.ends_with(b"\n") || !line.starts_with(STARTS) {
                            continue;
                        }
                        let done = is_done(&line);
                        if sender.send((number, Event::Line(line, done))).is_err() {
                            return;
                        }
                    }
                    let _ = sender.send((number, Event::Closed));
                });
            }
            let stdin = child.stdin.take();
            let (last, done, closed) = (None, false, false);
            running.push(Running { subject: *subject, child, stdin, note, last, done, closed });
        }
        drop(sender);
        let take = |running: &mut Vec<Running>, (number, event): (usize, Event)| {
            let Some(probe) = running.get_mut(number) else { return };
            match event {
                Event::Line(line, done) => {
                    probe.last = Some(line);
                    probe.done |= done;
                }
                Event::Closed => probe.closed = true,
            }
        };
        while !running.iter().all(|probe| probe.done || probe.closed) {
            match events.recv_timeout(until.saturating_duration_since(now())) {
                Ok(event) => take(&mut running, event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        for probe in running.iter_mut().filter(|probe| !probe.done && !probe.closed) {
            // The error is that it is gone already.
            let _ = probe.child.kill();
        }
        // What was under way when the probe was killed is still in the pipe.
        while let Ok(event) = events.try_recv() {
            take(&mut running, event);
        }
        let after_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(self.reap(running, after_ms))
    }

    /// Waits for processes that should be gone, for a short while.
    fn reap(&mut self, running: Vec<Running>, after_ms: u64) -> Vec<Ended> {
        let until = now() + REAP;
        let mut ended = Vec::with_capacity(running.len());
        for mut probe in running {
            if probe.done {
                if let Some(stdin) = probe.stdin {
                    self.holding.push((probe.child, stdin, probe.note));
                }
                ended.push(Ended { last: probe.last, stuck: None });
                continue;
            }
            drop(probe.stdin);
            let pid = probe.child.id();
            let end = match wait(&mut probe.child, until) {
                Some(_) if !probe.closed => ProbeEnd::Killed { after_ms },
                Some(status) => match status.signal() {
                    // Killed at the deadline; the line that tells so was read first.
                    Some(9) => ProbeEnd::Killed { after_ms },
                    Some(signal) => ProbeEnd::Crashed { signal },
                    None => ProbeEnd::Exited { code: status.code().unwrap_or(-1) },
                },
                None => ProbeEnd::Unkillable { after_ms },
            };
            match end {
                ProbeEnd::Unkillable { .. } => keep(probe.note.as_deref(), probe.subject, pid),
                _ => forget(probe.note.as_deref()),
            }
            let told = probe.last.as_deref().map(serde_json::from_slice::<Told<IgnoredAny>>);
            let call = told.and_then(Result::ok).map(|told| told.call);
            let call = call.filter(|call| !call.is_empty());
            let stuck = Some(StuckProbe { gpu: probe.subject.gpu(), call, end, pid });
            ended.push(Ended { last: probe.last, stuck });
        }
        ended
    }

    /// Lets go the probes that have told all, and waits for them for a short while. One that takes
    /// longer to end is left to end by itself.
    pub(super) fn finish(self) {
        let until = now() + LEAVE;
        let mut leaving = Vec::new();
        for (child, stdin, note) in self.holding {
            // The end of its input is what it waits for.
            drop(stdin);
            leaving.push((child, note));
        }
        for (mut child, note) in leaving {
            if wait(&mut child, until).is_some() {
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
fn wait(child: &mut Child, until: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if now() < until => std::thread::sleep(LOOK_EVERY),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Notes that a process runs, what it is about, and when it should be gone.
fn note(folder: &Path, subject: Subject, pid: u32, lifetime: Duration) -> Option<PathBuf> {
    let (start, _) = process(pid)?;
    let uptime = uptime()?;
    // It ends itself two seconds after its deadline, if it can.
    let gone = uptime.saturating_add(lifetime.as_secs()).saturating_add(4);
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
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((fields.nth(18)?.parse().ok()?, state))
}

fn uptime() -> Option<u64> {
    fs::read_to_string("/proc/uptime").ok()?.split('.').next()?.parse().ok()
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
