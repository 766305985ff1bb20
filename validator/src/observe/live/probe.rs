//! A probe's own side: it reads into a state, and tells its parent as it goes.
//!
//! A probe is a process of its own, since a call into a sick driver may never come back. It prints one
//! line of JSON when it is done. If it takes long, a second thread prints what was read so far, and
//! which call is waited for, so that nothing is lost when the probe is killed.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::raw::{Fault, NO_PERMISSION, NOT_SUPPORTED, VERSION_MISMATCH};
use crate::state::Reading;

/// How often a slow probe tells how far it is.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// How long after its deadline a probe ends itself, should nobody have killed it.
const END_AFTER: Duration = Duration::from_secs(2);

/// The call that the probe is in, or was last.
static CALL: Mutex<&str> = Mutex::new("");

/// Notes the name of a call that is about to be made.
pub(super) fn entering(call: &'static str) {
    *lock(&CALL) = call;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere does not make the readings wrong: each is set whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a probe prints, one a line; the last one counts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Told<S> {
    /// The call that is waited for, or was last.
    pub(super) call: String,
    /// True if nothing is left to read.
    pub(super) done: bool,
    /// What was read so far.
    pub(super) state: S,
}

/// The readings of a running probe.
pub(super) struct Probe<S>(Arc<Mutex<Progress<S>>>);

struct Progress<S> {
    out: File,
    state: S,
    changed: bool,
    told: String,
}

impl<S: Serialize + Send + 'static> Probe<S> {
    /// Starts to read into a state, within a deadline, and tells it there.
    #[expect(
        clippy::disallowed_methods,
        reason = "a deadline needs a clock; it reaches no output but as a reading that is missing"
    )]
    pub(super) fn start(out: File, state: S, deadline: Duration) -> Self {
        let progress = Progress { out, state, changed: false, told: String::new() };
        let probe = Self(Arc::new(Mutex::new(progress)));
        let (watched, started) = (Arc::clone(&probe.0), Instant::now());
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(TELL_EVERY);
                tell(&watched, false);
                if started.elapsed() > deadline + END_AFTER {
                    // Whoever started this is gone. An orderly exit would run the library's own exit
                    // handlers, which may wait for the call that does not come back.
                    std::process::abort();
                }
            }
        });
        probe
    }

    /// Sets readings.
    pub(super) fn set(&self, change: impl FnOnce(&mut S)) {
        let mut progress = lock(&self.0);
        change(&mut progress.state);
        progress.changed = true;
    }

    /// Tells what was read so far: what a crash must not take away.
    pub(super) fn tell(&self) {
        tell(&self.0, false);
    }

    /// Tells all.
    pub(super) fn finish(self) {
        tell(&self.0, true);
    }
}

fn tell<S: Serialize>(progress: &Mutex<Progress<S>>, done: bool) {
    let call = *lock(&CALL);
    let mut progress = lock(progress);
    if !done && !progress.changed && progress.told == call {
        return;
    }
    let told = Told { call: call.to_owned(), done, state: &progress.state };
    let Ok(mut line) = serde_json::to_vec(&told) else { return };
    line.push(b'\n');
    if progress.out.write_all(&line).is_err() {
        // Nobody reads any more.
        std::process::abort();
    }
    progress.changed = false;
    call.clone_into(&mut progress.told);
}

/// A call's outcome as a reading.
pub(super) fn reading<T>(outcome: Result<T, Fault>) -> Reading<T> {
    match outcome {
        Ok(value) => Reading::Value(value),
        Err(fault) => absent(fault),
    }
}

/// A reading that is not there, and why.
pub(super) fn absent<T>(fault: Fault) -> Reading<T> {
    match fault {
        Fault::Missing(call) => {
            Reading::NotApplicable(format!("this driver's library has no {call}"))
        }
        NOT_SUPPORTED => Reading::NotApplicable("NVML: not supported".to_owned()),
        VERSION_MISMATCH => {
            Reading::NotApplicable("NVML: this driver has other versions of the call".to_owned())
        }
        // FUNCTION_NOT_FOUND and DEPRECATED: the driver has it no longer, or not yet.
        Fault::Code(13) => Reading::NotApplicable("NVML: function not found".to_owned()),
        Fault::Code(26) => Reading::NotApplicable("NVML: deprecated".to_owned()),
        NO_PERMISSION => Reading::Unknown("no permission: only root may read it".to_owned()),
        fault @ Fault::Code(_) => Reading::Unknown(words(fault)),
    }
}

/// A fault in words. Source: nvml.h, API 13, `nvmlReturn_t`.
pub(super) fn words(fault: Fault) -> String {
    let code = match fault {
        Fault::Missing(call) => return format!("this driver's library has no {call}"),
        Fault::Code(code) => code,
    };
    let words = match code {
        1 => "not initialised",
        2 => "invalid argument",
        3 => "not supported",
        4 => "no permission",
        6 => "not found",
        7 => "insufficient size",
        8 => "external power cables are not attached",
        9 => "the driver is not loaded",
        10 => "timeout",
        11 => "the kernel detected an interrupt issue with the GPU",
        12 => "library not found",
        13 => "function not found",
        14 => "the InfoROM is corrupted",
        15 => "the GPU is lost",
        16 => "the GPU requires a reset",
        17 => "the operating system refuses",
        18 => "driver and library versions differ",
        19 => "the GPU is in use",
        20 => "out of memory",
        21 => "no data",
        23 => "insufficient resources",
        24 => "frequency not supported",
        25 => "version of the argument",
        26 => "deprecated",
        27 => "not ready",
        28 => "GPU not found",
        29 => "invalid state",
        30 => "this kind of reset is not supported",
        999 => "unknown error",
        _ => return format!("NVML answers {code}, which this program does not know"),
    };
    format!("NVML: {words}")
}

/// A value that this program does not know: of a driver that is newer than it.
pub(super) fn unknown_value<T>(call: &str, value: impl std::fmt::Display) -> Reading<T> {
    Reading::Unknown(format!("{call} answers {value}, which this program does not know"))
}
