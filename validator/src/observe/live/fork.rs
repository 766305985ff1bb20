//! A process of its own for a piece of work, without starting a program anew: that would cost each
//! probe more than its reading.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, pipe2};

use crate::cli::EXIT_BUG;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
}

/// A process that does a piece of work. It is not ended with this value.
pub(super) struct Fork {
    pid: Pid,
    end: Option<End>,
    /// What it tells.
    pub(super) told: File,
    /// While this is open it stays, also when its work is done.
    hold: Option<OwnedFd>,
}

impl Fork {
    /// Starts the work in a process of its own, with a stream for what it tells.
    ///
    /// # Errors
    /// If there can be no such process, or this one has more than one thread: the others would be gone
    /// in the new process, with whatever they have locked.
    pub(super) fn start(work: impl FnOnce(File)) -> io::Result<Self> {
        if fs::read_dir("/proc/self/task")?.count() != 1 {
            return Err(io::Error::other("only a process with one thread can read the node"));
        }
        let (told, tell) = pipe2(OFlag::O_CLOEXEC)?;
        let (held, hold) = pipe2(OFlag::O_CLOEXEC)?;
        let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        // SAFETY: this process has one thread, as was just seen, so nothing is locked or half done.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => {
                Ok(Self { pid: child, end: None, told: told.into(), hold: Some(hold) })
            }
            ForkResult::Child => {
                drop((told, hold));
                let done = catch_unwind(AssertUnwindSafe(|| {
                    alone(&null)?;
                    work(tell.into());
                    let _ = File::from(held).read(&mut [0]);
                    nix::Result::Ok(())
                }));
                let code = match done {
                    Ok(Ok(())) => 0,
                    Ok(Err(errno)) => errno as i32,
                    Err(_) => EXIT_BUG.into(),
                };
                // Never back to what the first process was about.
                process::exit(code)
            }
        }
    }

    /// It may go when its work is done.
    pub(super) fn let_go(&mut self) {
        self.hold = None;
    }

    /// The process's number.
    pub(super) fn id(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Kills it. One that waits in the kernel dies when that is over.
    pub(super) fn kill(&mut self) {
        if self.try_wait().is_none() {
            // The error is that it is gone already.
            let _ = kill(self.pid, Signal::SIGKILL);
        }
    }

    /// How it ended; none if it is still there.
    pub(super) fn try_wait(&mut self) -> Option<End> {
        if self.end.is_none() {
            self.end = match waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(_, code)) => Some(End::Exited(code)),
                Ok(WaitStatus::Signaled(_, signal, _)) => Some(End::Signaled(signal as i32)),
                // Somebody else has waited for it: this process must not ignore SIGCHLD.
                Err(Errno::ECHILD) => Some(End::Exited(-1)),
                Ok(_) | Err(_) => None,
            };
        }
        self.end
    }
}

/// Nothing that a library prints goes where the first process prints, and `ps` names what this is.
fn alone(null: &File) -> nix::Result<()> {
    dup2_stdin(null.as_fd())?;
    dup2_stdout(null.as_fd())?;
    dup2_stderr(null.as_fd())?;
    prctl::set_name(c"fleetc-probe")
}
