//! What a comparison found, as data. Renderers are in [`crate::render`].

use fleetc_schema::ItemPath;
use fleetc_schema::name::{ClassName, FleetName, RackName};
use serde::{Serialize, Serializer};

use crate::intent::SpecPlace;
use fleetc_schema::pci::BusId;

/// What a node is to its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The node must not take work.
    Blocking,
    /// It can take work, but is not quite what the spec says.
    Warning,
    /// A blocking check that could not be decided.
    Undecided,
}

/// A check. In the order of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckId {
    /// The spec, PCI and NVML agree on how many GPUs there are.
    GpuCount,
    /// The GPUs are at the PCI addresses that the inventory states.
    GpuAddress,
    /// A GPU is the product that the spec says.
    GpuModel,
    /// MIG mode is as the spec says, and will stay so.
    MigMode,
    /// The GPU instances are those of the spec, at its placements.
    MigLayout,
}

impl CheckId {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GpuCount => "gpu.count",
            Self::GpuAddress => "gpu.address",
            Self::GpuModel => "gpu.model",
            Self::MigMode => "mig.mode",
            Self::MigLayout => "mig.layout",
        }
    }
}

impl Serialize for CheckId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A GPU of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GpuRef {
    /// Where it is.
    pub bus_id: BusId,
    /// Its NVML index.
    pub index: u32,
}

/// A check that does not hold, or could not be decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check.
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
    /// Where that item is written, if the intent tells.
    pub spec: Option<SpecPlace>,
    /// What to do about it: commands and sentences, in order.
    #[serde(rename = "do")]
    pub actions: Vec<String>,
}

/// The result of comparing a node with what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The node.
    pub node: String,
    /// The fleet.
    pub fleet: FleetName,
    /// The class of the node.
    pub class: ClassName,
    /// The rack that it stands in, if the spec says.
    pub rack: Option<RackName>,
    /// What follows from the findings.
    pub verdict: Verdict,
    /// The findings: by severity, then check, then GPU.
    pub findings: Vec<Finding>,
    /// How many checks hold; a check of each GPU counts once a GPU.
    pub passed: u32,
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
