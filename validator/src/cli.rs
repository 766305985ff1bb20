//! The command line: reads arguments, calls one function, prints, picks an exit code.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use fleetc_schema::units::{Milliseconds, Seconds};

use crate::compare::{self, Options};
use crate::fix::{self, Fix, Outcome, Proof};
use crate::intent;
use crate::observe::{self, History, Live, NvidiaSmi, Observe, ObserveError, Snapshot};
use crate::outlet::{Outlet, Sinks, complain, print, unwritten};
use crate::report::{Report, Verdict};
use crate::state::{NodeState, UnixTime};

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
    /// Seconds since 1970, for formats that say when, and for the age of files; it changes no verdict.
    pub now: Option<u64>,
    /// The id of this process, which holds the lock of a fix.
    pub pid: u32,
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
    /// Show what of this node can be mended without a reset, and do it if told so.
    ///
    /// Mended are persistence mode, compute mode, the power limit, and with --mig-script GPU instances: where
    /// the class or its policy says a value and a check fails on a real reading. It never resets a GPU,
    /// reboots, or changes ECC mode, MIG mode, a driver or firmware. Without --apply it does nothing.
    #[command(
        after_help = "Exit codes: 0 nothing is left to do and the node conforms, 1 steps are left or it \
        does not, 2 refused, or it cannot be judged, 64 wrong usage, 65 wrong input, 70 a bug."
    )]
    Fix(Box<FixArguments>),
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
    before: Before,
    #[command(flatten)]
    outlet: Outlet,
}

/// What was read on the node before, for what must not grow.
#[derive(Debug, Args)]
struct Before {
    /// A snapshot of before: errors that have grown since are told.
    #[arg(long, value_name = "FILE", conflicts_with = "history")]
    earlier: Option<PathBuf>,
    /// The same from run to run: compare with what this file keeps of a day or two ago, and keep there
    /// what is read now. A file that is not there yet, or is damaged, is made anew.
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
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

#[derive(Debug, Args)]
struct FixArguments {
    /// Folder of the compiled intent: index.json, classes/, sources.jsonl.
    #[arg(long, value_name = "DIR")]
    intent: PathBuf,
    /// The node; else $SLURMD_NODENAME, $NODE_NAME, or the short host name.
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Carry out the plan with this digest, if the node still needs just that, is out of service, and no
    /// process is on the GPUs. Processes outside of this PID namespace are not to be seen: run it on the
    /// host.
    #[arg(long, value_name = "DIGEST", value_parser = sha256_digest)]
    apply: Option<String>,
    /// The fleetc-mig.sh of this cluster, which makes GPU instances; without, their commands are shown.
    #[arg(long, value_name = "PATH")]
    mig_script: Option<PathBuf>,
    /// The scontrol to ask whether the node is drained, where slurmd runs.
    #[arg(long, value_name = "PROGRAM", default_value = "scontrol")]
    scontrol: PathBuf,
    /// Where a kubelet runs, beside --kubernetes-node: the pods of the node, as `kubectl get pods -A -o json
    /// --field-selector spec.nodeName=NAME` writes them. Both files at most 5 minutes old.
    #[arg(long, value_name = "FILE")]
    kubernetes_pods: Option<PathBuf>,
    /// How long after boot what starts late is not yet judged.
    #[arg(long, value_name = "TIME", default_value_t = compare::GRACE)]
    grace: Seconds,
    /// How to print the plan and what came of it.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = FixFormat::Text)]
    format: FixFormat,
    #[command(flatten)]
    live: LiveArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FixFormat {
    /// For people.
    Text,
    /// One document, `fleetc/fix/v1`.
    Json,
}

fn sha256_digest(text: &str) -> Result<String, String> {
    match text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        true => Ok(text.to_owned()),
        false => {
            Err("a digest has 64 hexadecimal digits: `fix` without --apply shows it".to_owned())
        }
    }
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
    fn live(self, now: Option<u64>) -> Live {
        let Self { library, root, deadline, state_dir, slurmd, kubernetes_node, inforom } = self;
        let deadline = Duration::from_millis(deadline.0);
        let now = now.map(UnixTime);
        Live { library, root, state_dir, deadline, slurmd, kubernetes_node, inforom, now }
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

    /// The source of readings cannot be used.
    fn unread(error: &ObserveError) -> Self {
        let code = match error {
            // A node that has no process left is not judged.
            ObserveError::Probe(_) => Verdict::Undecided.exit_code(),
            ObserveError::Input(_) | ObserveError::OtherNode { .. } => EXIT_INPUT,
        };
        Self { code, message: chain(error) }
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
        Command::Fix(arguments) => match run_fix(*arguments, env) {
            Ok((outcome, text)) => {
                for why in &outcome.refused {
                    complain(err, &format!("refused: {why}"));
                }
                print(&text, outcome.exit_code(), out, err)
            }
            Err(trouble) => {
                complain(err, &trouble.message);
                trouble.code
            }
        },
    }
}

fn run_check(arguments: Check, env: Environment, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let Check { intent, node, source, live, captures, grace, before, outlet } = arguments;
    let now = env.now;
    let result = named(node, &env).and_then(|node| {
        let readings = Readings { source, live: live.live(now), captures, before };
        check(&intent, readings, node, Timing { grace, now }, err).map_err(|error| {
            let unread = error.downcast_ref().map(Trouble::unread);
            unread.unwrap_or_else(|| Trouble::input(error.as_ref()))
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
    live: Live,
    captures: Captures,
    before: Before,
}

/// What depends on the clock.
struct Timing {
    grace: Seconds,
    /// Seconds since 1970.
    now: Option<u64>,
}

fn check(
    intent: &Path,
    Readings { source, live, captures, before }: Readings,
    node: String,
    Timing { grace, now }: Timing,
    err: &mut dyn Write,
) -> Result<Report, Box<dyn Error>> {
    let intent = intent::load(intent, &node)?;
    let snapshot = before.earlier.map(|file| Snapshot { file, node: node.clone() }.observe());
    let snapshot = snapshot.transpose()?;
    let kept = before.history.as_deref().map(|file| (file, history(file, &node, now, err)));
    let oldest = kept.as_ref().and_then(|(_, history)| history.oldest());
    let options = Options { grace, earlier: snapshot.as_ref().or(oldest) };
    let state = match source {
        Source::Snapshot(file) => Snapshot { file, node: node.clone() }.observe()?,
        Source::Nvml => live.observe_twice(|state| compare::doubtful(&intent, state, &options))?,
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
    let report = compare::compare_with(&intent, &state, &options);
    if let Some((file, mut history)) = kept {
        keep(&mut history, &state, file, &node, err);
    }
    Ok(report)
}

/// What is kept of earlier runs. One that cannot be used is told, and is as if there were none: it
/// must neither turn a node away nor keep it from being judged.
fn history(file: &Path, node: &str, now: Option<u64>, err: &mut dyn Write) -> History {
    History::read(file, node, now).unwrap_or_else(|error| {
        let error = chain(&error);
        complain(err, &format!("the history begins anew, since it cannot be used: {error}"));
        History::default()
    })
}

/// Keeps what was read for later runs. The verdict stands, whether that works or not.
fn keep(history: &mut History, state: &NodeState, file: &Path, node: &str, err: &mut dyn Write) {
    if !history.take(state) {
        return;
    }
    if let Err(error) = history.write(file, node) {
        complain(err, &format!("writing {}: {error}", file.display()));
    }
}

fn run_snapshot(
    arguments: SnapshotArguments,
    env: Environment,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Trouble> {
    let SnapshotArguments { output, node, live } = arguments;
    let node = named(node, &env)?;
    let state = live.live(env.now).observe().map_err(|error| Trouble::input(&error))?;
    let text = observe::to_json(&node, &state).map_err(|error| Trouble::bug(&error))?;
    let Some(file) = output else { return Ok(print(&text, 0, out, err)) };
    fs::write(&file, text).map(|()| 0).map_err(|error| Trouble {
        code: unwritten(0),
        message: format!("writing {}: {error}", file.display()),
    })
}

/// What is done, or is to be, and how it prints.
fn run_fix(arguments: FixArguments, env: Environment) -> Result<(Outcome, String), Trouble> {
    let FixArguments { intent, node, apply, mig_script, scontrol, kubernetes_pods, .. } = arguments;
    let FixArguments { grace, format, live, .. } = arguments;
    let node = named(node, &env)?;
    let live = live.live(env.now);
    let intent = intent::load(&intent, &node).map_err(|error| Trouble::input(&error))?;
    let kubernetes_node = live.kubernetes_node.clone();
    let proof = Proof { scontrol, kubernetes_node, kubernetes_pods, now: env.now };
    let options = Options { grace, ..Options::default() };
    let fix = Fix { intent: &intent, live: &live, options, mig_script, proof };
    let outcome = match apply {
        None => fix.plan(),
        Some(digest) => fix.apply(&digest, env.pid),
    };
    let outcome = outcome.map_err(|error| Trouble::unread(&error))?;
    let text = match format {
        FixFormat::Text => fix::text(&outcome),
        FixFormat::Json => fix::json(&outcome).map_err(|error| Trouble::bug(&error))?,
    };
    Ok((outcome, text))
}

/// An error and what caused it.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
