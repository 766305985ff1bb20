//! What a check comes to, for the node or for a GPU.

use fleetc_schema::ItemPath;

use super::table::{CheckId, Level, row};
use crate::report::{Action, CheckCounts, Finding, GpuRef, Severity};
use crate::state::{GpuState, Reading};

/// What a check comes to once.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It holds.
    Holds,
    /// There is nothing to judge, as expected.
    NotHere,
    /// It does not hold.
    Fails(Contrast),
    /// It does not quite hold: a warning, whatever the level of the check above that.
    Worries(Contrast),
    /// It cannot be decided.
    Unread(Contrast),
}

/// What should be, what is, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Contrast {
    pub(super) expected: String,
    pub(super) seen: String,
    pub(super) actions: Vec<String>,
    /// The word of what to do, if it is not the one of the table.
    pub(super) action: Option<Action>,
}

impl Contrast {
    pub(super) fn new(expected: impl Into<String>, seen: impl Into<String>) -> Self {
        let (expected, seen) = (expected.into(), seen.into());
        Self { expected, seen, actions: Vec::new(), action: None }
    }

    /// Adds a command or a sentence.
    pub(super) fn advise(mut self, action: impl Into<String>) -> Self {
        self.actions.push(action.into());
        self
    }

    /// Says what to do in another word than the table's.
    pub(super) fn by(mut self, action: Action) -> Self {
        self.action = Some(action);
        self
    }
}

impl Answer {
    /// A reading that a check needs and does not have.
    pub(super) fn unread<T>(what: &str, reading: &Reading<T>, expected: impl Into<String>) -> Self {
        let seen = format!("{what} {}", reading.absence().unwrap_or_default());
        Self::Unread(Contrast::new(expected, seen.trim_end()))
    }

    /// The same, where it is expected under a condition that there is no such thing.
    pub(super) fn unless_expected<T>(
        is_expected: bool,
        what: &str,
        reading: &Reading<T>,
        expected: impl Into<String>,
    ) -> Self {
        match reading {
            Reading::NotApplicable(_) if is_expected => Self::NotHere,
            _ => Self::unread(what, reading, expected),
        }
    }
}

/// What a check has come to so far.
pub(super) struct Outcome {
    check: CheckId,
    level: Level,
    pub(super) findings: Vec<Finding>,
    pub(super) counts: CheckCounts,
}

impl Outcome {
    /// Nothing yet.
    pub(super) fn new(check: CheckId, level: Level) -> Self {
        let (passed, failed, undecided, not_applicable) = (0, 0, 0, 0);
        let counts = CheckCounts { check, passed, failed, undecided, not_applicable };
        Self { check, level, findings: Vec::new(), counts }
    }

    /// Takes what the check comes to for the node.
    pub(super) fn node(&mut self, path: &ItemPath, answer: Answer) {
        self.take(None, path, answer);
    }

    /// Takes what the check comes to for a GPU.
    pub(super) fn gpu(&mut self, gpu: &GpuState, path: &ItemPath, answer: Answer) {
        self.take(Some(GpuRef { bus_id: gpu.bus_id, index: gpu.index }), path, answer);
    }

    /// Takes what the check comes to, for the node if there is no GPU.
    pub(super) fn take(&mut self, gpu: Option<GpuRef>, path: &ItemPath, answer: Answer) {
        let one_more = |count: &mut u32| *count = count.saturating_add(1);
        let (severity, contrast) = match answer {
            Answer::Holds => return one_more(&mut self.counts.passed),
            Answer::NotHere => return one_more(&mut self.counts.not_applicable),
            Answer::Fails(contrast) => {
                one_more(&mut self.counts.failed);
                let severity = match self.level {
                    Level::Block => Severity::Blocking,
                    Level::Warn => Severity::Warning,
                    Level::Info => Severity::Info,
                };
                (severity, contrast)
            }
            Answer::Worries(contrast) => {
                one_more(&mut self.counts.failed);
                let severity = match self.level {
                    Level::Block | Level::Warn => Severity::Warning,
                    Level::Info => Severity::Info,
                };
                (severity, contrast)
            }
            Answer::Unread(contrast) => {
                one_more(&mut self.counts.undecided);
                if self.level != Level::Block {
                    return;
                }
                let contrast = match contrast.actions.is_empty() {
                    true => contrast.advise("check again as root, with the driver loaded"),
                    false => contrast,
                };
                (Severity::Undecided, contrast.by(Action::Look))
            }
        };
        let Contrast { expected, seen, actions, action } = contrast;
        self.findings.push(Finding {
            check: self.check,
            severity,
            gpu,
            expected,
            seen,
            path: path.clone(),
            spec: None,
            action: action.unwrap_or(row(self.check).action),
            actions,
        });
    }
}
