//! The command line: parse arguments, call one function, print, pick an exit code.
//!
//! Exit codes: 0 fine, 1 the fleet does not hold, 2 could not run, 70 a bug of ours. Data goes to
//! `out`, everything else to `err`.

mod args;
mod catalog;
mod check;
mod compile;
mod convert;
mod diff;
mod drift;
mod explain;
mod fmt;
mod init;
mod locate;
mod mig;
mod replace;
mod schema;
mod stream;

use std::ffi::OsString;
use std::io;

use clap::Parser;

use crate::CheckError;
pub use args::Cli;
use args::Command;
pub use stream::Stream;

/// Fine.
pub const OK: u8 = 0;
/// The fleet does not hold.
pub const FAILED: u8 = 1;
/// Could not run.
pub const COULD_NOT_RUN: u8 = 2;
/// A bug of ours.
pub const BUG: u8 = 70;

/// Why a command could not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Read(#[from] crate::source::ReadError),
    #[error(transparent)]
    Write(#[from] crate::output::WriteError),
    #[error("printing: {0}")]
    Print(#[from] io::Error),
    #[error("{0}")]
    Other(String),
    #[error("{0}\nthis is a bug of ours: please report it with the spec")]
    Bug(String),
}

type Outcome = Result<u8, CommandError>;

/// Runs a command line and returns its exit code.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Stream,
    err: &mut dyn Stream,
) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let stream: &mut dyn Stream = if error.use_stderr() { err } else { out };
            // A reader that went away needs no message.
            let _ = write!(stream, "{}", error.render().ansi());
            return if error.use_stderr() { COULD_NOT_RUN } else { OK };
        }
    };
    let root = cli.root.as_deref();
    let outcome = match &cli.command {
        Command::Init(args) => init::run(args, out),
        Command::Check(args) => check::run(root, args, out, err),
        Command::Compile(args) => compile::run(root, args, out, err),
        Command::Diff(args) => diff::run(root, args, out, err),
        Command::Drift(args) => drift::run(root, args, out, err),
        Command::Catalog(args) => catalog::run(args, out),
        Command::Mig(args) => mig::run(args, out),
        Command::Explain(args) => explain::run(root, args, out, err),
        Command::Fmt(args) => fmt::run(root, args, out, err),
        Command::Convert(args) => convert::run(root, args, out, err),
        Command::Schema(args) => schema::run(args, out),
    };
    match outcome {
        Ok(code) => code,
        Err(CommandError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => OK,
        Err(error) => {
            let _ = writeln!(err, "fleetc: {error}");
            if matches!(error, CommandError::Bug(_)) { BUG } else { COULD_NOT_RUN }
        }
    }
}
