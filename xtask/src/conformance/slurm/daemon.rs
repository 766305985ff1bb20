//! Daemons that are started for a test and always stopped: by [`Drop`], and by the kernel should
//! this process end first.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

const POLL: Duration = Duration::from_millis(50);
/// How often a daemon is asked before a step is given up: for at least two minutes. Each step takes
/// a second or two, but a machine may be busy.
const POLLS: u32 = 2_400;

type Failure = Box<dyn std::error::Error>;

/// A daemon that runs.
pub struct Daemon {
    name: String,
    child: Child,
    log: Utf8PathBuf,
}

impl Daemon {
    /// Starts a daemon that stays in the foreground; what it says goes to `log`.
    pub fn start(
        name: &str,
        program: &Command,
        args: &[&str],
        slurm_conf: &Utf8Path,
        log: Utf8PathBuf,
    ) -> Result<Self, Failure> {
        let file = File::create(&log)?;
        // A daemon must not outlive this process, however that ends.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program.get_program())
            .args(program.get_args())
            .args(args)
            .env("SLURM_CONF", slurm_conf)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .map_err(|error| format!("setpriv cannot be run ({error}): conformance needs it"))?;
        Ok(Self { name: name.to_owned(), child, log })
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
