//! Running another program, without a shell and with a deadline.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// How often a program is looked at that has not ended yet.
const STEP: Duration = Duration::from_millis(10);

/// The most that a program may print: `scontrol` a line of 1 KiB for each of 65,000 nodes.
const MAX_OUTPUT: usize = 64 << 20;

/// How much is read at a time, and how often before the program is looked at again.
const CHUNK: usize = 64 << 10;
const MAX_READS: usize = 1024;

/// Runs a program and gives what it prints. On failure what it says, on either stream.
///
/// # Errors
/// It cannot be started, does not end in time, or fails.
pub(crate) fn run(program: &Path, args: &[&str], deadline: Duration) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut streams = [Stream::new(child.stdout.take()), Stream::new(child.stderr.take())];
    let mut left = deadline;
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if left.is_zero() => {
                // It may be past killing; this program ends all the same.
                let _ = child.kill();
                return Err(format!("no answer within {} s", deadline.as_secs()));
            }
            None => {
                read_all(&mut streams);
                thread::sleep(STEP);
                left = left.saturating_sub(STEP);
            }
        }
    };
    // The pipes may outlive it in the hands of a child of its own, so only what is there is read.
    read_all(&mut streams);
    let [out, err] = streams.map(|stream| String::from_utf8_lossy(&stream.text).into_owned());
    match status.success() {
        true => Ok(out),
        false => {
            let said = [err.trim(), out.trim()].into_iter().find(|text| !text.is_empty());
            Err(said.map_or_else(|| status.to_string(), str::to_owned))
        }
    }
}

/// What a program prints on one stream. It is read without a thread: a process that forks has none.
struct Stream {
    pipe: Option<File>,
    text: Vec<u8>,
}

impl Stream {
    fn new(pipe: Option<impl Into<OwnedFd>>) -> Self {
        Self { pipe: pipe.map(|pipe| pipe.into().into()), text: Vec::new() }
    }

    /// Reads what is there now. False if there is nothing.
    fn read(&mut self) -> bool {
        let Some(pipe) = &mut self.pipe else { return false };
        let mut ready = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        if !matches!(poll(&mut ready, PollTimeout::ZERO), Ok(1)) {
            return false;
        }
        let mut chunk = vec![0; CHUNK];
        let read = pipe.read(&mut chunk).ok().and_then(|length| chunk.get(..length));
        match read {
            Some(read) if !read.is_empty() => {
                // The rest is read and left out, so that the program does not wait for this one.
                let room = MAX_OUTPUT.saturating_sub(self.text.len()).min(read.len());
                self.text.extend_from_slice(read.get(..room).unwrap_or_default());
                true
            }
            _ => {
                self.pipe = None;
                false
            }
        }
    }
}

/// Reads what is there now, of a program that may go on printing for ever no more than this.
fn read_all(streams: &mut [Stream]) {
    for stream in streams {
        for _ in 0..MAX_READS {
            if !stream.read() {
                break;
            }
        }
    }
}
