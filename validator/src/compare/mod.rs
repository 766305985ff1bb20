//! Comparing what a node should be with what was read on it.
//!
//! One file for each family of checks. Taking a reading away may leave a check undecided, but never
//! makes one fail: the checks are written so, and a property test holds them to it.

mod inventory;
mod mig;
mod nvidia_smi;
#[cfg(test)]
mod properties;
mod slots;

use fleetc_schema::ItemPath;

use crate::intent::NodeIntent;
use crate::report::{CheckId, Finding, GpuRef, Report, Severity, verdict_of};
use crate::state::{GpuState, NodeState};

/// Compares a node with its intent. The result depends on nothing else.
pub fn compare(intent: &NodeIntent, state: &NodeState) -> Report {
    let mut outcome = Outcome::default();
    inventory::check(intent, state, &mut outcome);
    mig::check(intent, state, &mut outcome);
    let Outcome { mut findings, passed } = outcome;
    for finding in &mut findings {
        finding.spec = intent.sources.place_of(&finding.path).cloned();
    }
    let gpu = |finding: &Finding| finding.gpu.map(|gpu| gpu.bus_id);
    findings.sort_by_key(|finding| (finding.severity, finding.check, gpu(finding)));
    Report {
        node: intent.node.clone(),
        fleet: intent.fleet.clone(),
        class: intent.class.name.clone(),
        rack: intent.rack.clone(),
        verdict: verdict_of(&findings),
        findings,
        passed,
    }
}

/// What the checks have come to so far.
#[derive(Default)]
struct Outcome {
    findings: Vec<Finding>,
    passed: u32,
}

impl Outcome {
    /// A check holds.
    fn pass(&mut self) {
        self.passed = self.passed.saturating_add(1);
    }

    /// A check fails, or cannot be decided.
    fn find(&mut self, subject: &Subject<'_>, severity: Severity, contrast: Contrast) {
        let Contrast { expected, seen, actions } = contrast;
        self.findings.push(Finding {
            check: subject.check,
            severity,
            gpu: subject.gpu.map(|gpu| GpuRef { bus_id: gpu.bus_id, index: gpu.index }),
            expected,
            seen,
            path: subject.path.clone(),
            spec: None,
            actions,
        });
    }
}

/// What a check is about.
struct Subject<'a> {
    check: CheckId,
    /// The GPU; none if it is the node.
    gpu: Option<&'a GpuState>,
    /// The item behind the expectation.
    path: &'a ItemPath,
}

/// What should be, what is, and what to do about it.
struct Contrast {
    expected: String,
    seen: String,
    actions: Vec<String>,
}
