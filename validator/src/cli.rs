//! The command line: reads arguments, calls one function, prints, picks an exit code.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use fleetc_schema::units::{Milliseconds, Seconds};

use crate::compare::{self, Options, row};
use crate::intent;
use crate::observe::{self, Live, NvidiaSmi, Observe, ObserveError, Snapshot};
use crate::outlet::{Outlet, Sinks, complain, print, unwritten};
use crate::report::{Report, Severity, Verdict};
use crate::state::NodeState;

pub use crate::outlet::ExitStyle;

/// The command line is wrong.
pub const EXIT_USAGE: u8 = 64;
/// The intent or the source of readings is missing or wrong, or the fleet has no such node.
pub const EXIT_INPUT: u8 = 65;
/// A bug of ours.
pub const EXIT_BUG: u8 = 70;
/// What may name the node if `--node` does not, in this order.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `SLURMD_NODENAME`, which slurmd sets for its health check.
    pub slurmd_nodename: Option<OsString>,
    /// `NODE_NAME`, which a pod gets from the downward API.
    pub node_name: Option<OsString>,
    /// The kernel's host name; its part before the first dot counts.
    pub host_name: Option<String>,
    /// This program, which is started again for each probe of the node; none where there is no such
    /// program, as in a library: then the node itself cannot be read.
    pub program: Option<PathBuf>,
    /// Seconds since 1970, for formats that say when; it changes no verdict.
    pub now: Option<u64>,
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
    Check(Box<Check>),
    /// Keep what can be read on this node, to judge it later or elsewhere.
    Snapshot(SnapshotArguments),
}

#[derive(Debug, Args)]
struct Check {
    /// Folder of the compiled intent: index.json, classes/, sources.jsonl.
    #[arg(long, value_name = "DIR")]
    intent: PathBuf,
    /// The node; else $SLURMD_NODENAME, $NODE_NAME, or the short host name.
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Where readings come from: nvml (this node), snapshot:FILE, or nvidia-smi:FILE for the output of
    /// `nvidia-smi -q -x`.
    #[arg(long, value_name = "SOURCE", default_value = "nvml")]
    source: Source,
    #[command(flatten)]
    live: LiveArguments,
    #[command(flatten)]
    captures: Captures,
    /// How long after boot what starts late is not yet judged: the fabric, daemons, device plugins.
    #[arg(long, value_name = "TIME", default_value_t = compare::GRACE)]
    grace: Seconds,
    #[command(flatten)]
    outlet: Outlet,
}

/// What nvidia-smi prints beside its XML.
#[derive(Debug, Args)]
struct Captures {
    /// With nvidia-smi:FILE: the output of `nvidia-smi -L`.
    #[arg(long, value_name = "FILE")]
    smi_list: Option<PathBuf>,
    /// With nvidia-smi:FILE: the output of `nvidia-smi mig -lgi`.
    #[arg(long, value_name = "FILE")]
    smi_gpu_instances: Option<PathBuf>,
    /// With nvidia-smi:FILE: the output of `nvidia-smi mig -lci`.
    #[arg(long, value_name = "FILE")]
    smi_compute_instances: Option<PathBuf>,
    /// With nvidia-smi:FILE: the output of `nvidia-smi topo -m`.
    #[arg(long, value_name = "FILE")]
    smi_topology: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct SnapshotArguments {
    /// The file; else stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The node; else $SLURMD_NODENAME, $NODE_NAME, or the short host name.
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    #[command(flatten)]
    live: LiveArguments,
}

/// How this node is read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reading this node")]
struct LiveArguments {
    /// NVML: a name that the loader looks up, or a path.
    #[arg(long, value_name = "PATH", default_value = observe::LIBRARY)]
    library: OsString,
    /// Where /sys, /proc and /dev of the node are.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// How long to wait for the driver, all in all.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    deadline: Milliseconds,
    /// Where probes that hang are noted, so that no other is started on top.
    #[arg(long, value_name = "DIR", default_value = observe::STATE_DIR)]
    state_dir: PathBuf,
    /// Ask this slurmd for its generic resources (`slurmd -G`, takes root).
    #[arg(long, value_name = "PATH")]
    slurmd: Option<PathBuf>,
    /// The Node of Kubernetes, as `kubectl get node NAME -o json` writes it.
    #[arg(long, value_name = "FILE")]
    kubernetes_node: Option<PathBuf>,
    /// Read the checksum of the InfoROM too, which takes a read of flash.
    #[arg(long)]
    inforom: bool,
}

impl LiveArguments {
    fn live(self, program: PathBuf) -> Live {
        let Self { library, root, deadline, state_dir, slurmd, kubernetes_node, inforom } = self;
        let deadline = Duration::from_millis(deadline.0);
        Live { program, library, root, state_dir, deadline, slurmd, kubernetes_node, inforom }
    }
}

#[derive(Debug, Clone)]
enum Source {
    Nvml,
    Snapshot(PathBuf),
    NvidiaSmi(PathBuf),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "nvml" => Ok(Self::Nvml),
            Some(("snapshot", file)) if !file.is_empty() => Ok(Self::Snapshot(file.into())),
            Some(("nvidia-smi", file)) if !file.is_empty() => Ok(Self::NvidiaSmi(file.into())),
            _ => Err("write `nvml`, `snapshot:FILE` or `nvidia-smi:FILE`".to_owned()),
        }
    }
}

/// Why there is no report.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// The exit code.
    pub(crate) code: u8,
    /// What to say.
    pub(crate) message: String,
}

impl Trouble {
    /// The intent or the source of readings is missing or wrong.
    pub(crate) fn input(error: &dyn Error) -> Self {
        Self { code: EXIT_INPUT, message: chain(error) }
    }

    /// What cannot be.
    pub(crate) fn bug(error: &dyn Error) -> Self {
        let message = format!("this is a bug of ours, please report it: {}", chain(error));
        Self { code: EXIT_BUG, message }
    }
}

/// Runs the program and returns its exit code. The first argument is the program's name.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    env: Environment,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let style = ExitStyle::of_args(&args);
    let command = match Cli::try_parse_from(args) {
        Ok(Cli { command }) => command,
        // Help and version are errors to clap, but go to stdout and succeed.
        Err(error) if !error.use_stderr() => {
            return print(&error.render().to_string(), 0, out, err);
        }
        Err(error) => {
            // Nothing is left to try if stderr does not take it.
            let _ = write!(err, "{}", error.render());
            return style.code(EXIT_USAGE);
        }
    };
    match command {
        Command::Check(arguments) => run_check(*arguments, env, out, err),
        Command::Snapshot(arguments) => {
            run_snapshot(arguments, env, out, err).unwrap_or_else(|trouble| {
                complain(err, &trouble.message);
                trouble.code
            })
        }
    }
}

fn run_check(arguments: Check, env: Environment, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let Check { intent, node, source, live, captures, grace, outlet } = arguments;
    let now = env.now;
    let result = named(node, &env).and_then(|node| {
        let live = env.program.map(|program| live.live(program));
        let readings = Readings { source, live, captures };
        check(&intent, readings, node, grace, err).map_err(|error| {
            let code = match error.downcast_ref() {
                // A node that has no process left is not judged.
                Some(ObserveError::Probe { .. }) => Verdict::Undecided.exit_code(),
                _ => EXIT_INPUT,
            };
            Trouble { code, ..Trouble::input(error.as_ref()) }
        })
    });
    outlet.leave(&result, Sinks { out, err, now })
}

fn named(node: Option<String>, env: &Environment) -> Result<String, Trouble> {
    let message = || "nothing names this node: give --node NAME".to_owned();
    let node = node.filter(|name| !name.is_empty()).or_else(|| env.node());
    node.ok_or_else(|| Trouble { code: EXIT_USAGE, message: message() })
}

/// Where readings come from.
struct Readings {
    source: Source,
    live: Option<Live>,
    captures: Captures,
}

fn check(
    intent: &Path,
    Readings { source, live, captures }: Readings,
    node: String,
    grace: Seconds,
    err: &mut dyn Write,
) -> Result<Report, Box<dyn Error>> {
    let intent = intent::load(intent, &node)?;
    let options = Options { grace, ..Options::default() };
    let judged = |state: &NodeState| compare::compare_with(&intent, state, &options);
    let state = match source {
        Source::Snapshot(file) => Snapshot { file, node }.observe()?,
        Source::Nvml => live.ok_or(NO_PROGRAM)?.observe_twice(|state| {
            let found = judged(state).findings.into_iter();
            let found = found.filter(|finding| finding.severity == Severity::Blocking);
            let found = found.filter(|finding| row(finding.check).is_read_twice);
            found.filter_map(|finding| Some(finding.gpu?.bus_id)).collect()
        })?,
        Source::NvidiaSmi(query) => {
            let read = NvidiaSmi {
                query,
                list: captures.smi_list,
                gpu_instances: captures.smi_gpu_instances,
                compute_instances: captures.smi_compute_instances,
                topology: captures.smi_topology,
            };
            let read = read.read()?;
            for fact in read.inferred {
                complain(err, &format!("inferred: {fact}"));
            }
            read.state
        }
    };
    Ok(judged(&state))
}

fn run_snapshot(
    arguments: SnapshotArguments,
    env: Environment,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Trouble> {
    let SnapshotArguments { output, node, live } = arguments;
    let node = named(node, &env)?;
    let no_program = || Trouble { code: EXIT_INPUT, message: NO_PROGRAM.to_owned() };
    let program = env.program.ok_or_else(no_program)?;
    let state = live.live(program).observe().map_err(|error| Trouble::input(&error))?;
    let text = observe::to_json(&node, &state).map_err(|error| Trouble::bug(&error))?;
    let Some(file) = output else { return Ok(print(&text, 0, out, err)) };
    fs::write(&file, text).map(|()| 0).map_err(|error| Trouble {
        code: unwritten(0),
        message: format!("writing {}: {error}", file.display()),
    })
}

const NO_PROGRAM: &str = "the node is read by the program `fleetc-validate` only";

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
