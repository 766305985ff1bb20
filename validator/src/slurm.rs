//! Draining a node that does not conform, and giving it back once it does: `scontrol`, called without a
//! shell.
//!
//! A node that is drained, down or failing for a reason that does not start with [`PREFIX`] is someone
//! else's, and is left alone. A node that cannot be judged is left as it is. What could not be done now is
//! done at the next run, since each run judges anew: at the start of slurmd the controller may not know the
//! node yet.
//!
//! Source: scontrol(1), "show node" and "update", 22.05 to 26.05.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::report::{Report, Verdict};
use crate::{program, render};

/// What the reason of a node begins with that this program drained.
pub const PREFIX: &str = "fleetc: ";

/// Slurmctld's own reason for a node that is gone. Source: Slurm 22.05 to 26.05, `ping_nodes.c`.
const NOT_RESPONDING: &str = "Not responding";

/// The longest reason.
const MAX_REASON: usize = 200;

/// How long `scontrol` may take. Slurm kills a health check after 60 s.
const DEADLINE: Duration = Duration::from_secs(15);

/// How to drain.
#[derive(Debug, Clone)]
pub struct Drain {
    /// The program.
    pub scontrol: PathBuf,
    /// With so many nodes drained by this program no other is: what drains a whole cluster is a mistake
    /// in the spec, or in here.
    pub max_drained: u32,
}

/// What was done, in words; none if there was nothing to do.
pub type Done = Option<String>;

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DrainError(String);

impl Drain {
    /// Drains the node of a report, or gives it back.
    ///
    /// # Errors
    /// `scontrol` is missing, does not answer in time, or refuses.
    pub fn apply(&self, report: &Report) -> Result<Done, DrainError> {
        let node = &report.node;
        match report.verdict {
            Verdict::Undecided => Ok(None),
            Verdict::Conforms => {
                let seen = self.node(node)?;
                if !(seen.is_drained() && seen.is_ours()) {
                    return Ok(None);
                }
                self.undrain(node)?;
                Ok(Some(format!("{node} conforms again and is no longer drained")))
            }
            Verdict::DoesNotConform => self.drain(node, &reason(report)),
        }
    }

    fn drain(&self, node: &str, reason: &str) -> Result<Done, DrainError> {
        let seen = self.node(node)?;
        if let Some(theirs) = seen.theirs() {
            let state = &seen.state;
            return Ok(Some(format!(
                "{node} is not drained: it is {state} with the reason `{theirs}`, which is not ours"
            )));
        }
        if seen.is_drained() && seen.says(reason) {
            return Ok(None);
        }
        if !seen.is_drained() {
            let drained = self.drained()?.iter().filter(|name| *name != node).count();
            if self.is_full(drained) {
                let most = self.max_drained;
                return Ok(Some(format!(
                    "{node} is not drained: {drained} nodes are drained with our reason, and \
                     --max-drained is {most}"
                )));
            }
        }
        let reason = format!("Reason={reason}");
        self.scontrol(&["update", &format!("NodeName={node}"), "State=DRAIN", &reason])?;
        if seen.is_drained() {
            return Ok(Some(format!("{node} stays drained for another reason")));
        }
        // Nodes that fail at the same moment count the same number, and pass the limit together: the
        // last of them by name step back.
        let drained = self.drained()?;
        let most = usize::try_from(self.max_drained).unwrap_or(usize::MAX);
        if drained.iter().skip(most).any(|name| name == node) {
            self.undrain(node)?;
            return Ok(Some(format!(
                "{node} is not drained: others were drained at the same time, and --max-drained is \
                 {most}"
            )));
        }
        Ok(Some(format!("{node} is drained")))
    }

    fn is_full(&self, drained: usize) -> bool {
        u32::try_from(drained).map_or(true, |drained| drained >= self.max_drained)
    }

    fn undrain(&self, node: &str) -> Result<(), DrainError> {
        // It takes the drain away and nothing else: a node that is down stays so.
        self.scontrol(&["update", &format!("NodeName={node}"), "State=UNDRAIN"]).map(drop)
    }

    fn node(&self, node: &str) -> Result<SlurmNode, DrainError> {
        SlurmNode::ask(&self.scontrol, node)
    }

    /// The nodes that this program drained, by name.
    fn drained(&self) -> Result<Vec<String>, DrainError> {
        let text = self.scontrol(&["--oneliner", "show", "node"])?;
        let nodes = text.lines().filter_map(SlurmNode::read);
        let ours = nodes.filter(|node| node.is_drained() && node.is_ours());
        let mut names: Vec<String> = ours.map(|node| node.name).collect();
        names.sort();
        Ok(names)
    }

    fn scontrol(&self, args: &[&str]) -> Result<String, DrainError> {
        ask(&self.scontrol, args)
    }
}

/// What `scontrol` answers.
fn ask(scontrol: &Path, args: &[&str]) -> Result<String, DrainError> {
    program::run(scontrol, args, DEADLINE).map_err(|problem| {
        let program = scontrol.display();
        DrainError(format!("{program} {}: {problem}", args.join(" ")))
    })
}

/// The reason to drain a node for.
fn reason(report: &Report) -> String {
    format!("{PREFIX}{}", render::line(report, MAX_REASON - PREFIX.len()))
}

/// A line of `scontrol --oneliner show node`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SlurmNode {
    name: String,
    /// Base state and flags, such as `IDLE+DRAIN`.
    state: String,
    /// With the name and time of who gave it.
    reason: Option<String>,
    /// Processors that jobs have: `CPUAlloc`.
    allocated_cpus: Option<String>,
    /// What jobs have, such as `cpu=8,gres/gpu=2`; empty if nothing: `AllocTRES`.
    allocated_tres: Option<String>,
}

impl SlurmNode {
    /// Asks the controller about a node.
    pub(crate) fn ask(scontrol: &Path, node: &str) -> Result<Self, DrainError> {
        let text = ask(scontrol, &["--oneliner", "show", "node", node])?;
        let found = text.lines().filter_map(Self::read).find(|found| found.name == node);
        found.ok_or_else(|| DrainError(format!("scontrol shows no node `{node}`")))
    }

    /// Why the node may have work, or get some; none if it is drained and no job is left on it.
    pub(crate) fn busy(&self) -> Option<String> {
        let Self { name, state, allocated_cpus, allocated_tres, .. } = self;
        let has = |what: &str| state.split('+').any(|flag| flag.trim_end_matches('*') == what);
        if !self.is_drained() {
            return Some(format!(
                "Slurm has {name} as {state}: scontrol update NodeName={name} State=DRAIN \
                 Reason=fix, and let its jobs end"
            ));
        }
        let jobs = match (allocated_cpus.as_deref(), allocated_tres.as_deref()) {
            _ if ["ALLOCATED", "MIXED", "COMPLETING"].into_iter().any(has) => state.clone(),
            (Some("0"), None | Some("")) => return None,
            (Some("0"), Some(tres)) => format!("AllocTRES={tres}"),
            (Some(cpus), _) => format!("CPUAlloc={cpus}"),
            (None, _) => return Some(format!("scontrol does not say what jobs have on {name}")),
        };
        Some(format!("{name} is drained and still has jobs ({jobs}): let them end"))
    }

    fn read(line: &str) -> Option<Self> {
        let value = |key: &str| {
            let (_, rest) = line.split_once(key)?;
            Some(rest.split(' ').next().unwrap_or_default().to_owned())
        };
        let word = |key: &str| value(key).filter(|word| !word.is_empty());
        let name = line.trim_start().strip_prefix("NodeName=")?;
        let name = name.split_whitespace().next()?.to_owned();
        // A comment before the reason may hold any text, so the last one counts.
        let reason = line.rsplit_once(" Reason=").map(|(_, reason)| reason.trim().to_owned());
        let reason = reason.filter(|reason| !reason.is_empty());
        let (allocated_cpus, allocated_tres) = (word(" CPUAlloc="), value(" AllocTRES="));
        Some(Self { name, state: word(" State=")?, reason, allocated_cpus, allocated_tres })
    }

    fn is_drained(&self) -> bool {
        self.state.split('+').any(|flag| flag.starts_with("DRAIN"))
    }

    /// The reason of someone else that holds the node. One that is left on a node in service holds
    /// nothing: 24.11 keeps the reason of a node that is resumed. Nor does that of slurmctld for a node
    /// that was gone, which goes by itself when the node is back.
    fn theirs(&self) -> Option<&str> {
        let is_held = self.state.split('+').any(|flag| {
            ["DRAIN", "DOWN", "FAIL", "ERROR", "INVAL"].iter().any(|word| flag.starts_with(word))
        });
        let reason = self.reason.as_deref().filter(|_| is_held && !self.is_ours())?;
        let is_gone = self.says(NOT_RESPONDING) && !self.is_drained();
        Some(reason).filter(|_| !is_gone)
    }

    /// True if the reason is this program's.
    fn is_ours(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| reason.starts_with(PREFIX))
    }

    /// True if the reason is this one: who gave it and when follows.
    fn says(&self, reason: &str) -> bool {
        let rest = self.reason.as_ref().and_then(|text| text.strip_prefix(reason));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ["))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_read_from_its_line() {
        let line = "NodeName=gpu01 Arch=x86_64 CPUAlloc=0 State=IDLE+DRAIN ThreadsPerCore=1 \
                    Comment=a Reason=b Reason=fleetc: mig.layout GPU 1: has 6 [root@2026-11-30T00:00:00]";
        let node = SlurmNode::read(line).unwrap();
        assert_eq!((node.name.as_str(), node.state.as_str()), ("gpu01", "IDLE+DRAIN"));
        assert!(node.is_drained() && node.is_ours());
        assert!(node.says("fleetc: mig.layout GPU 1: has 6"));
        assert!(!node.says("fleetc: mig.layout GPU 1"));
        let idle = SlurmNode::read("NodeName=gpu01 State=IDLE ThreadsPerCore=1 ").unwrap();
        assert!(!idle.is_drained() && !idle.is_ours() && idle.reason.is_none());
        let other = SlurmNode::read("NodeName=a State=MIXED+DRAIN Reason=fan [x@1]").unwrap();
        assert!(other.is_drained() && !other.is_ours());
        assert_eq!(SlurmNode::read("slurm_load_node error"), None);
    }

    #[test]
    fn a_node_is_out_of_work_only_if_it_is_drained_and_nothing_is_allocated() {
        let busy = |rest: &str| SlurmNode::read(&format!("NodeName=a {rest}")).unwrap().busy();
        let idle = "CPUAlloc=0 State=IDLE+DRAIN CfgTRES=cpu=8,gres/gpu=8 AllocTRES= CurrentWatts=0";
        assert_eq!(busy(idle), None);
        assert_eq!(busy("CPUAlloc=0 State=DOWN*+DRAIN CfgTRES=cpu=8 AllocTRES="), None);
        for (line, why) in [
            ("CPUAlloc=0 State=IDLE AllocTRES=", "Slurm has a as IDLE: scontrol update"),
            ("CPUAlloc=4 State=IDLE+DRAIN AllocTRES=", "still has jobs (CPUAlloc=4)"),
            ("CPUAlloc=0 State=IDLE+DRAIN AllocTRES=gres/gpu=1 x", "(AllocTRES=gres/gpu=1)"),
            ("CPUAlloc=0 State=MIXED+DRAIN AllocTRES=", "still has jobs (MIXED+DRAIN)"),
            ("CPUAlloc=0 State=IDLE+COMPLETING+DRAIN AllocTRES=", "(IDLE+COMPLETING+DRAIN)"),
            ("State=IDLE+DRAIN", "does not say what jobs have on a"),
        ] {
            let busy = busy(line).unwrap_or_default();
            assert!(busy.contains(why), "{line}: {busy}");
        }
    }
}
