//! What a comparison found, as data. Renderers are in [`crate::render`].

use fleetc_schema::ItemPath;
use fleetc_schema::name::{ClassName, FleetName, RackName};
use serde::Serialize;

use crate::intent::SpecPlace;

pub use crate::compare::{CHECKS, Check, CheckId, Level, row};
use fleetc_schema::pci::BusId;

/// What a node is to its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every check that matters was decided, and holds. There may be warnings.
    Conforms,
    /// At least one blocking check fails.
    DoesNotConform,
    /// No blocking check fails, but at least one could not be decided.
    Undecided,
}

impl Verdict {
    /// The exit code of a verdict: 0, 1 or 2.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Conforms => 0,
            Self::DoesNotConform => 1,
            Self::Undecided => 2,
        }
    }
}

/// How much a finding matters. In the order of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The node must not take work.
    Blocking,
    /// It can take work, but is not quite what the spec says.
    Warning,
    /// A blocking check that could not be decided.
    Undecided,
    /// Good to know.
    Info,
}

/// What is done about a finding, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing.
    None,
    /// Reset the GPU.
    Reset,
    /// Reboot the node.
    Reboot,
    /// Replace hardware.
    Replace,
    /// Set what the spec says, or correct the spec.
    Reconfigure,
    /// Look at it: what is wrong is not certain.
    Look,
}

impl Action {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Reset => "reset",
            Self::Reboot => "reboot",
            Self::Replace => "replace",
            Self::Reconfigure => "reconfigure",
            Self::Look => "look",
        }
    }
}

/// A GPU of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
pub struct GpuRef {
    /// Its PCI bus id, as NVML prints it: `00000000:1b:00.0`.
    #[cfg_attr(feature = "json-schema", schemars(with = "String", extend("pattern" = "^[0-9a-f]{8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]$")))]
    pub bus_id: BusId,
    /// Its NVML index.
    pub index: u32,
}

/// A check that does not hold, or could not be decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
pub struct Finding {
    /// The check, such as `mig.layout`.
    #[cfg_attr(feature = "json-schema", schemars(with = "String", extend("pattern" = "^[a-z0-9_]+(\\.[a-z0-9_]+)+$")))]
    pub check: CheckId,
    /// How much it matters.
    pub severity: Severity,
    /// The GPU; none if it is about the node.
    pub gpu: Option<GpuRef>,
    /// What the spec says.
    pub expected: String,
    /// What was read, or why nothing was.
    pub seen: String,
    /// The item of the spec whose edit would change the expectation.
    pub path: ItemPath,
    /// Where that item is written, `file:line`, if the intent tells.
    #[cfg_attr(feature = "json-schema", schemars(with = "Option<String>"))]
    pub spec: Option<SpecPlace>,
    /// What to do about it, in one word.
    pub action: Action,
    /// What to do about it: commands and sentences, in order.
    #[serde(rename = "do")]
    pub actions: Vec<String>,
}

/// How one check came out over the node, or over its GPUs one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
pub struct CheckCounts {
    /// The check, such as `mig.layout`.
    #[cfg_attr(feature = "json-schema", schemars(with = "String", extend("pattern" = "^[a-z0-9_]+(\\.[a-z0-9_]+)+$")))]
    pub check: CheckId,
    /// How often it holds.
    pub passed: u32,
    /// How often it does not.
    pub failed: u32,
    /// How often it could not be decided.
    pub undecided: u32,
    /// How often there was nothing to judge, as expected.
    pub not_applicable: u32,
}

impl CheckCounts {
    /// True if the check had anything to judge, or to leave.
    pub(crate) fn is_any(&self) -> bool {
        let Self { check: _, passed, failed, undecided, not_applicable } = self;
        [passed, failed, undecided, not_applicable].into_iter().any(|count| *count > 0)
    }
}

/// The result of comparing a node with what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The node.
    pub node: String,
    /// The fleet.
    pub fleet: FleetName,
    /// The class of the node.
    pub class: ClassName,
    /// SHA-256 of the class's file, in hexadecimal: what the node was judged by.
    pub class_sha256: String,
    /// The rack that it stands in, if the spec says.
    pub rack: Option<RackName>,
    /// What follows from the findings.
    pub verdict: Verdict,
    /// The findings: by severity, then check, then GPU.
    pub findings: Vec<Finding>,
    /// How many checks hold; a check of each GPU counts once a GPU.
    pub passed: u32,
    /// How each check came out that anything asks for here, in the order of the table.
    pub checks: Vec<CheckCounts>,
}

impl Report {
    /// How many findings have this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// The verdict that follows from findings.
pub(crate) fn verdict_of(findings: &[Finding]) -> Verdict {
    let any = |severity| findings.iter().any(|finding| finding.severity == severity);
    if any(Severity::Blocking) {
        Verdict::DoesNotConform
    } else if any(Severity::Undecided) {
        Verdict::Undecided
    } else {
        Verdict::Conforms
    }
}
