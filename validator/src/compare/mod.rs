//! Comparing what a node should be with what was read on it.
//!
//! Each check is a row of [`table`] and a function; one file for each family. Taking a reading away may
//! leave a check undecided, but never makes one fail: the checks are written so, and a property test
//! holds them to it.
//!
//! A check needs an expectation: from the intent, or one that holds for any hardware, such as that no
//! row of memory failed to be remapped. It never rests on what a GPU says of its own best.

mod agents;
mod driver;
mod fabric;
mod health;
mod host;
mod inventory;
mod kernel_log;
mod memory;
mod mig;
mod modes;
mod node;
mod nvidia_smi;
mod nvlink;
mod outcome;
mod page;
mod pcie;
mod place;
mod probe;
#[cfg(test)]
mod properties;
mod slots;
#[cfg(test)]
mod states;
mod table;

use std::collections::BTreeSet;

use fleetc_schema::pci::BusId;
use fleetc_schema::units::Seconds;

use crate::intent::NodeIntent;
use crate::report::{CheckCounts, Finding, Report, Severity, verdict_of};
use crate::state::NodeState;

use node::Node;
use outcome::Outcome;
pub use page::page;
pub use table::{CHECKS, Check, CheckId, Level, row};

/// How long after boot what starts late is not yet judged: the fabric, daemons, device plugins.
pub const GRACE: Seconds = Seconds(300);

/// What a comparison may be told beside the intent and the readings.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// How long after boot what starts late is not yet judged.
    pub grace: Seconds,
    /// What was read on the node before, for what must not grow.
    pub earlier: Option<&'a NodeState>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { grace: GRACE, earlier: None }
    }
}

/// Compares a node with its intent. The result depends on nothing else.
pub fn compare(intent: &NodeIntent, state: &NodeState) -> Report {
    compare_with(intent, state, &Options::default())
}

/// The same, with more than the intent and the readings.
pub fn compare_with(intent: &NodeIntent, state: &NodeState, options: &Options<'_>) -> Report {
    let node = Node::new(intent, state, options);
    let (mut findings, mut checks, mut passed) = (Vec::new(), Vec::new(), 0_u32);
    for check in CHECKS {
        let mut outcome = Outcome::new(*check, node.level(*check));
        (row(*check).run)(&node, &mut outcome);
        passed = passed.saturating_add(outcome.counts.passed);
        checks.extend(Some(outcome.counts).filter(CheckCounts::is_any));
        findings.append(&mut outcome.findings);
    }
    for finding in &mut findings {
        finding.spec = intent.sources.place_of(&finding.path).cloned();
    }
    let gpu = |finding: &Finding| finding.gpu.map(|gpu| gpu.bus_id);
    findings.sort_by_key(|finding| (finding.severity, finding.check, gpu(finding)));
    Report {
        node: intent.node.clone(),
        fleet: intent.fleet.clone(),
        class: intent.class.name.clone(),
        class_sha256: intent.class_sha256.clone(),
        rack: intent.rack.clone(),
        verdict: verdict_of(&findings),
        findings,
        passed,
        checks,
    }
}

/// The GPUs that are to be read a second time before the node is turned away for them.
pub fn doubtful(intent: &NodeIntent, state: &NodeState, options: &Options<'_>) -> BTreeSet<BusId> {
    let found = compare_with(intent, state, options).findings.into_iter();
    let found = found.filter(|finding| finding.severity == Severity::Blocking);
    let found = found.filter(|finding| row(finding.check).is_read_twice);
    found.filter_map(|finding| Some(finding.gpu?.bus_id)).collect()
}
