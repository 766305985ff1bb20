//! The arguments, once: help, completion and documentation come from here.

use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::source::Form;

/// Compiles one declarative spec of a GPU fleet into everything that must agree about its GPUs.
#[derive(Debug, Parser)]
#[command(name = "fleetc", version, disable_help_subcommand = true)]
pub struct Cli {
    /// Folder that nothing is read above [default: the nearest folder with .git, else the spec's]
    #[arg(long, global = true, value_name = "DIR")]
    pub root: Option<Utf8PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a small working fleet to start from, with a CI workflow; nothing is overwritten
    Init(InitArgs),
    /// Report everything that is wrong with a spec
    Check(CheckArgs),
    /// Write the output tree of a spec
    Compile(CompileArgs),
    /// Say what changes between two fleets, and what that disturbs
    Diff(DiffArgs),
    /// Hold many nodes' reports against the fleet: who conforms, fails, is missing or unknown
    Drift(DriftArgs),
    /// List the hardware catalog, or show an entry with its sources and doubts
    Catalog(CatalogArgs),
    /// Draw a MIG layout, or say why it does not fit and what is nearest
    Mig(MigArgs),
    /// Explain a rule, an item of a spec, a node, or a line of the output
    Explain(ExplainArgs),
    /// Put specs in one style and print the files that changed
    ///
    /// A folder stands for its spec and what that includes, a file for itself. KDL is printed anew: comments, empty lines and what stands on one line stay. Of YAML only
    /// blanks at line ends, line ends and the end of the file are touched, since no printer keeps its
    /// comments; tabs between words are refused. A file that does not parse is refused, and then none
    /// is written.
    Fmt(FmtArgs),
    /// Write a spec in the other form: KDL as YAML, YAML as KDL
    ///
    /// A folder stands for its spec and what that includes, a file for itself. Comments go along to the nearest item if they stand on lines of their own or at the end of a
    /// line. Other comments are dropped, as is what `/-` takes out, and their number is printed.
    Convert(ConvertArgs),
    /// Print the JSON Schema of a document
    Schema(SchemaArgs),
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FindingsFormat {
    /// For people.
    Text,
    /// For tools: fleetc/diagnostics/v1.
    Json,
    /// For code scanning: SARIF 2.1.0.
    Sarif,
    /// Annotations of a pull request: workflow commands of GitHub Actions.
    Github,
}

/// How a plan is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For tools.
    Json,
}

/// Arguments of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The folder of the fleet
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: Utf8PathBuf,
    /// The name of the fleet [default: the name of the folder]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// A .kdl or .yaml file, or a folder with fleet.kdl or fleet.yaml
    #[arg(value_name = "SPEC")]
    pub spec: Utf8PathBuf,
    /// How findings are printed
    #[arg(long, value_enum, default_value = "text")]
    pub format: FindingsFormat,
}

/// Arguments of `compile`.
#[derive(Debug, Args)]
pub struct CompileArgs {
    /// A .kdl or .yaml file, or a folder with fleet.kdl or fleet.yaml
    #[arg(value_name = "SPEC")]
    pub spec: Utf8PathBuf,
    /// Folder to write
    #[arg(short, long, value_name = "DIR")]
    pub output: Utf8PathBuf,
    /// Write nothing; exit 1 if the folder is not up to date
    #[arg(long, conflicts_with = "force")]
    pub check: bool,
    /// Overwrite files that were edited by hand or that fleetc did not write
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The fleet before: a spec or an output folder
    #[arg(value_name = "OLD")]
    pub old: Utf8PathBuf,
    /// The fleet after: a spec or an output folder
    #[arg(value_name = "NEW")]
    pub new: Utf8PathBuf,
    /// How the plan is printed
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Exit 1 if anything changes
    #[arg(long)]
    pub exit_code: bool,
    /// Show the text diff of every file, also of Intent documents and unit tests
    #[arg(long)]
    pub full: bool,
}

/// Arguments of `drift`.
#[derive(Debug, Args)]
pub struct DriftArgs {
    /// Folder of reports, as `fleetc-validate check --format json` prints them: a file each (.json), or
    /// one a line (.jsonl)
    #[arg(value_name = "FOLDER")]
    pub folder: Utf8PathBuf,
    /// The fleet: a spec or an output folder
    #[arg(long, value_name = "SPEC")]
    pub spec: Utf8PathBuf,
    /// How it is printed
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `catalog`.
#[derive(Debug, Args)]
pub struct CatalogArgs {
    /// Key of a GPU, system, rack, cloud shape or MIG table
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Only GPUs of this architecture or product family, such as hopper or H100
    #[arg(long, value_name = "FAMILY")]
    pub family: Option<String>,
    /// Only GPUs with this much memory as NVML reports it, such as 90GiB
    #[arg(long, value_name = "MEMORY")]
    pub min_memory: Option<String>,
    /// Only GPUs with MIG
    #[arg(long)]
    pub mig: bool,
    /// Only GPUs with NVLink
    #[arg(long)]
    pub nvlink: bool,
    /// Only shapes of this cloud
    #[arg(long, value_name = "CLOUD")]
    pub cloud: Option<String>,
    /// Only shapes with a list price of at most so many dollars a GPU-hour
    #[arg(long, value_name = "USD")]
    pub max_price: Option<String>,
    /// How it is printed
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `mig`.
#[derive(Debug, Args)]
pub struct MigArgs {
    /// Key of a GPU, or of a system for its GPU
    #[arg(value_name = "GPU")]
    pub gpu: String,
    /// Slices with their counts, such as 3g.40gb=2, or `off` with --from; none lists the profiles
    #[arg(value_name = "SLICES")]
    pub slices: Vec<String>,
    /// List every layout that leaves no room
    #[arg(long, conflicts_with_all = ["gpus", "from"])]
    pub list: bool,
    /// Pack the slices on so many GPUs
    #[arg(long = "for", value_name = "GPUS", conflicts_with = "from")]
    pub gpus: Option<u32>,
    /// Show the way from this layout (3g.40gb=2,1g.10gb=1), from `off`, or from `` for none
    #[arg(long, value_name = "SLICES")]
    pub from: Option<String>,
    /// What this version of the NVIDIA driver has, and by which names
    #[arg(long, value_name = "VERSION")]
    pub driver: Option<String>,
    /// How it is printed
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// `rule NAME` or just NAME; `item SPEC PATH`; `node SPEC NAME`; `line SPEC FILE:LINE`; nothing
    /// lists the rules
    #[arg(value_name = "WHAT", num_args = 0..=3)]
    pub what: Vec<String>,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The document
    #[arg(value_enum, value_name = "DOCUMENT", default_value = "spec")]
    pub document: Document,
}

/// A document with a JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Document {
    /// A spec in YAML.
    Spec,
    /// fleet/intent/fleet.json.
    Intent,
    /// fleet/intent/index.json.
    Index,
    /// fleet/intent/classes/*.json.
    Class,
    /// A line of fleet/intent/overrides/*.jsonl.
    Override,
    /// A line of fleet/intent/sources.jsonl.
    SourceLine,
    /// What `check --format json` prints.
    Diagnostics,
    /// What `diff --format json` prints.
    Plan,
    /// What `drift --format json` prints.
    Drift,
    /// What `fleetc-validate check --format json` prints.
    Report,
    /// What `fleetc-validate fix --format json` prints.
    Fix,
}

/// A form of specs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SpecForm {
    /// KDL 2.
    Kdl,
    /// YAML.
    Yaml,
}

impl From<SpecForm> for Form {
    fn from(form: SpecForm) -> Self {
        match form {
            SpecForm::Kdl => Self::Kdl,
            SpecForm::Yaml => Self::Yaml,
        }
    }
}

/// Arguments of `fmt`.
#[derive(Debug, Args)]
pub struct FmtArgs {
    /// Files or folders with fleet.kdl or fleet.yaml; `-` reads standard input and writes standard
    /// output
    #[arg(value_name = "SPEC", required = true)]
    pub specs: Vec<Utf8PathBuf>,
    /// Write nothing; print the files that would change, and exit 1 if there are any
    #[arg(long)]
    pub check: bool,
    /// Form of standard input
    #[arg(long, value_enum)]
    pub form: Option<SpecForm>,
}

/// Arguments of `convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// A .kdl or .yaml file, or a folder with fleet.kdl or fleet.yaml
    #[arg(value_name = "SPEC")]
    pub spec: Utf8PathBuf,
    /// The form to write
    #[arg(long, value_enum)]
    pub to: SpecForm,
    /// File to write, instead of standard output; a folder if the spec has several files
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<Utf8PathBuf>,
}
