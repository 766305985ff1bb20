//! Daemons that are started for a test and always stopped: by [`Drop`], and by the kernel should
//! this process end first.

use std::fs::File;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

const POLL: Duration = Duration::from_millis(50);
/// How often a daemon is asked before a step is given up: for at least two minutes. Each step takes
/// a second or two, but a machine may be busy.
const POLLS: u32 = 2_400;

type Failure = Box<dyn std::error::Error>;

/// Where ports are looked for: below those that the kernel deals out for outgoing connections, so that
/// none is taken between here and the start of a daemon.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// Ports that nobody has, and that this process gives to nobody else.
#[expect(clippy::disallowed_methods, reason = "two runs at once begin at different places")]
pub fn free_ports<const N: usize>() -> Result<[u16; N], Failure> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(197);
    let width = u32::from(PORTS.end - PORTS.start);
    let mut ports = [0; N];
    for port in &mut ports {
        *port = loop {
            let step = TRIED.fetch_add(1, Ordering::Relaxed);
            if step > width {
                return Err("there are no free ports".into());
            }
            let next = PORTS.start + u16::try_from(start.wrapping_add(step) % width)?;
            if TcpListener::bind(("127.0.0.1", next)).is_ok() {
                break next;
            }
        };
    }
    Ok(ports)
}

/// A daemon that runs.
pub struct Daemon {
    name: String,
    child: Child,
    log: Utf8PathBuf,
}

impl Daemon {
    /// Starts a program that stays in the foreground, with a variable of its environment; what it
    /// says goes to `log`.
    pub fn start(
        program: &Command,
        args: &[&str],
        (variable, value): (&str, &Utf8Path),
        log: Utf8PathBuf,
    ) -> Result<Self, Failure> {
        let file = File::create(&log)?;
        // A daemon must not outlive this process, however that ends.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program.get_program())
            .args(program.get_args())
            .args(args)
            .env(variable, value)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .map_err(|error| format!("setpriv cannot be run ({error}): conformance needs it"))?;
        let name = log.file_stem().unwrap_or_default().to_owned();
        Ok(Self { name, child, log })
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until something holds; an error if the daemon ends before, or takes too long.
    pub fn until(
        &mut self,
        what: &str,
        mut holds: impl FnMut(&Self) -> bool,
    ) -> Result<(), Failure> {
        for _ in 0..POLLS {
            if holds(self) {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("{} ended ({status}): {}", self.name, self.said()).into());
            }
            sleep(POLL);
        }
        Err(format!("{} is not {what} after {POLLS} polls: {}", self.name, self.said()).into())
    }

    /// Asks it to end, and waits; what does not end in time is killed.
    pub fn stop(mut self) -> Result<(), Failure> {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status()?;
        for _ in 0..POLLS {
            if self.child.try_wait()?.is_some() {
                break;
            }
            sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
