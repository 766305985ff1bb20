//! The command line: reads arguments, calls one function, prints, picks an exit code.

use std::error::Error;
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::observe::{Observe, Snapshot};
use crate::report::Report;
use crate::{compare, intent, render};

/// The command line is wrong.
pub const EXIT_USAGE: u8 = 64;
/// The intent or the source of readings is missing or wrong, or the fleet has no such node.
pub const EXIT_INPUT: u8 = 65;
/// A bug of ours.
pub const EXIT_BUG: u8 = 70;
/// The verdict could not be written out, though it is that the node conforms.
const EXIT_UNWRITTEN: u8 = 2;

/// What may name the node if `--node` does not, in this order.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `SLURMD_NODENAME`, which slurmd sets for its health check.
    pub slurmd_nodename: Option<OsString>,
    /// `NODE_NAME`, which a pod gets from the downward API.
    pub node_name: Option<OsString>,
    /// The kernel's host name; its part before the first dot counts.
    pub host_name: Option<String>,
}

impl Environment {
    /// The node's name; empty ones do not count.
    fn node(&self) -> Option<String> {
        let text = |name: &OsString| name.to_string_lossy().into_owned();
        let host = self
            .host_name
            .as_deref()
            .map(|name| name.trim().split('.').next().unwrap_or_default().to_owned());
        let names =
            [self.slurmd_nodename.as_ref().map(text), self.node_name.as_ref().map(text), host];
        names.into_iter().flatten().find(|name| !name.is_empty())
    }
}

/// Proves on a node that the hardware is what the fleet's spec says.
#[derive(Debug, Parser)]
#[command(name = "fleetc-validate", version)]
#[command(after_help = "Exit codes: 0 conforms (there may be warnings), 1 does not conform, \
    2 undecided, 64 wrong usage, 65 wrong input, 70 a bug.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare this node with what the compiled intent says of it.
    Check(Check),
}

#[derive(Debug, Args)]
struct Check {
    /// Folder of the compiled intent: index.json, classes/, sources.jsonl.
    #[arg(long, value_name = "DIR")]
    intent: PathBuf,
    /// The node; else $SLURMD_NODENAME, $NODE_NAME, or the short host name.
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Where readings come from: snapshot:FILE.
    #[arg(long, value_name = "SOURCE")]
    source: Source,
    /// How to print the report.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone)]
enum Source {
    Snapshot(PathBuf),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("snapshot", file)) if !file.is_empty() => Ok(Self::Snapshot(file.into())),
            _ => Err("write `snapshot:FILE`".to_owned()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people, and for Slurm's drain reason.
    Text,
    /// One document, `fleetc/report/v1`.
    Json,
}

/// Runs the program and returns its exit code. The first argument is the program's name.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    env: Environment,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let command = match Cli::try_parse_from(args) {
        Ok(Cli { command }) => command,
        // Help and version are errors to clap, but go to stdout and succeed.
        Err(error) if !error.use_stderr() => {
            return print(&error.render().to_string(), 0, out, err);
        }
        Err(error) => {
            // Nothing is left to try if stderr does not take it.
            let _ = write!(err, "{}", error.render());
            return EXIT_USAGE;
        }
    };
    let Command::Check(Check { intent, node, source, format }) = command;
    let Some(node) = node.filter(|name| !name.is_empty()).or_else(|| env.node()) else {
        complain(err, "nothing names this node: give --node NAME");
        return EXIT_USAGE;
    };
    let Source::Snapshot(file) = source;
    let report = match check(intent, file, node) {
        Ok(report) => report,
        Err(error) => {
            complain(err, &chain(error.as_ref()));
            return EXIT_INPUT;
        }
    };
    let text = match format {
        Format::Text => render::text(&report),
        Format::Json => match render::json(&report) {
            Ok(text) => text,
            Err(error) => {
                complain(err, &format!("this is a bug of ours, please report it: {error}"));
                return EXIT_BUG;
            }
        },
    };
    print(&text, report.verdict.exit_code(), out, err)
}

fn check(intent: PathBuf, snapshot: PathBuf, node: String) -> Result<Report, Box<dyn Error>> {
    let intent = intent::load(&intent, &node)?;
    let state = Snapshot { file: snapshot, node }.observe()?;
    Ok(compare::compare(&intent, &state))
}

/// Writes the output. A reader that has seen enough, such as `head -1`, is no reason to complain;
/// otherwise output that was cut short must not look like success.
fn print(text: &str, code: u8, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => code,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => code,
        Err(error) => {
            complain(err, &format!("writing the report: {error}"));
            if code == 0 { EXIT_UNWRITTEN } else { code }
        }
    }
}

fn complain(err: &mut dyn Write, message: &str) {
    // Nothing is left to try if stderr does not take it.
    let _ = writeln!(err, "fleetc-validate: {}", render::printable(message));
}

/// An error and what caused it.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
