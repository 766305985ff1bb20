//! Mending what is safe to mend on a node: persistence mode, compute mode, the power limit, and GPU
//! instances.
//!
//! A plan is made from what `check` finds, and shown with its digest. It is carried out only when it is
//! asked for by that digest, made anew and found the same, on a node that is out of service and on GPUs
//! that no process is on. Afterwards the node is read and judged again.
//!
//! Invariant: nothing here resets a GPU, reboots, or changes ECC mode, MIG mode, a driver or firmware.
//! Invariant: a step needs a value of the class or its policy, and a check that fails on a real reading.
//! Invariant: what is not certain refuses.

mod guard;
mod kubernetes;
mod plan;
mod render;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::compare::{self, Options};
use crate::intent::NodeIntent;
use crate::observe::{Live, ObserveError};
use crate::program;
use crate::report::Verdict;
use crate::state::NodeState;

pub use guard::Proof;
pub use plan::{By, Plan, Rest, Step};
#[cfg(feature = "json-schema")]
pub use render::schema;
pub use render::{FIX_SCHEMA, json, text};

/// How long the script may take that makes GPU instances: as long as its unit at boot.
const SCRIPT_DEADLINE: Duration = Duration::from_secs(480);

/// Something was not done, or must not be.
const EXIT_REFUSED: u8 = 2;

/// A node, and how it may be mended.
#[derive(Debug)]
pub struct Fix<'a> {
    /// What it should be.
    pub intent: &'a NodeIntent,
    /// How it is read and set.
    pub live: &'a Live,
    /// How it is judged.
    pub options: Options<'a>,
    /// The compiled `fleetc-mig.sh`, which makes GPU instances; by hand without.
    pub mig_script: Option<PathBuf>,
    /// How it is proved that the node is out of service.
    pub proof: Proof,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// The plan, as the node was found.
    pub plan: Plan,
    /// Why nothing was done, though it was asked for. Empty if nothing speaks against it.
    pub refused: Vec<String>,
    /// What came of each step, in the order of the plan; none if none was taken.
    pub results: Option<Vec<StepResult>>,
    /// The plan that is left now; none if no step was taken.
    pub after: Option<Plan>,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepResult {
    /// It was taken, and the node reads so now.
    Done,
    /// It was taken, and the check still does not hold.
    NotSeen,
    /// It failed; says why.
    Failed(String),
    /// A step before it failed, so it was not tried.
    NotTried,
    /// It is for people to take.
    ByHand,
}

impl Outcome {
    /// 0 if nothing is left to do and the node conforms, 1 if steps are left or the node does not, 2 if it
    /// was refused or cannot be judged.
    pub fn exit_code(&self) -> u8 {
        let Plan { verdict, steps, .. } = self.after.as_ref().unwrap_or(&self.plan);
        match (self.refused.is_empty(), steps.is_empty()) {
            (false, _) => EXIT_REFUSED,
            (true, false) => Verdict::DoesNotConform.exit_code(),
            (true, true) => verdict.exit_code(),
        }
    }

    fn planned(plan: Plan) -> Self {
        Self { plan, refused: Vec::new(), results: None, after: None }
    }

    fn refused(plan: Plan, refused: Vec<String>) -> Self {
        Self { refused, ..Self::planned(plan) }
    }
}

impl Plan {
    /// The steps that this program takes.
    fn to_take(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.by != By::Hand)
    }

    fn has(&self, step: &Step) -> bool {
        self.steps.iter().any(|other| other.check == step.check && other.gpu == step.gpu)
    }
}

impl Fix<'_> {
    /// What is to be done.
    ///
    /// # Errors
    /// Only if no process can be started.
    pub fn plan(&self) -> Result<Outcome, ObserveError> {
        Ok(Outcome::planned(self.look()?.0))
    }

    /// Does it, if it is the plan with this digest; `pid` is who holds the lock.
    ///
    /// # Errors
    /// Only if no process can be started.
    pub fn apply(&self, digest: &str, pid: u32) -> Result<Outcome, ObserveError> {
        let lock = guard::lock(&self.live.state_dir, pid);
        let (plan, state) = self.look()?;
        let lock = match lock {
            Ok(lock) => lock,
            Err(held) => return Ok(Outcome::refused(plan, vec![held])),
        };
        if plan.digest != digest {
            let why = format!(
                "this is another plan: --apply says {digest}, the plan of this node is {} now; read it, \
                 then give its digest",
                plan.digest
            );
            return Ok(Outcome::refused(plan, vec![why]));
        }
        if plan.to_take().next().is_none() {
            return Ok(Outcome::planned(plan));
        }
        let refused = guard::refusals(self.intent, &plan, &state, &self.proof);
        if !refused.is_empty() {
            return Ok(Outcome::refused(plan, refused));
        }
        let results = self.take(&plan);
        let after = self.look()?.0;
        drop(lock);
        let results = results.into_iter().zip(&plan.steps).map(|(result, step)| match result {
            StepResult::Done if !is_mended(step, &after) => StepResult::NotSeen,
            result => result,
        });
        let results = Some(results.collect());
        Ok(Outcome { plan, refused: Vec::new(), results, after: Some(after) })
    }

    /// Reads the node, judges it, and makes the plan.
    fn look(&self) -> Result<(Plan, NodeState), ObserveError> {
        let Self { intent, live, options, mig_script, .. } = self;
        let state = live.observe_twice(|state| compare::doubtful(intent, state, options))?;
        let report = compare::compare_with(intent, &state, options);
        Ok((plan::make(intent, &state, &report, mig_script.as_deref()), state))
    }

    /// Takes the steps. After one that fails no other is tried: someone should look first.
    fn take(&self, plan: &Plan) -> Vec<StepResult> {
        let mut failed = false;
        // The script makes all GPU instances at once.
        let mut scripted: Option<Result<(), String>> = None;
        let mut results = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            let taken = match (step.by, step.setting) {
                (By::Hand, _) => {
                    results.push(StepResult::ByHand);
                    continue;
                }
                (By::Script, _) => match &scripted {
                    Some(taken) => taken.clone(),
                    None if failed => Err(String::new()),
                    None => scripted.insert(self.run_script()).clone(),
                },
                (By::Nvml, _) if failed => Err(String::new()),
                (By::Nvml, Some(setting)) => self.live.set(step.gpu.bus_id, setting),
                (By::Nvml, None) => Err("nothing is to be set".to_owned()),
            };
            results.push(match taken {
                Ok(()) => StepResult::Done,
                Err(_) if failed => StepResult::NotTried,
                Err(why) => StepResult::Failed(why),
            });
            failed |= !matches!(results.last(), Some(StepResult::Done));
        }
        results
    }

    /// Runs `fleetc-mig.sh`. It has guards of its own, and never changes a mode or resets a GPU so.
    fn run_script(&self) -> Result<(), String> {
        let Some(script) = &self.mig_script else { return Err("there is no script".to_owned()) };
        // What it would ask the scheduler has been asked.
        let arguments = ["--apply", "--drained", "--node", &self.intent.node];
        let ran = program::run(script, &arguments, SCRIPT_DEADLINE).map(drop);
        ran.map_err(|why| format!("{}: {why}", script.display()))
    }
}

/// True if the check of a step no longer finds anything about its GPU.
fn is_mended(step: &Step, after: &Plan) -> bool {
    let left = |rest: &Rest| rest.finding.check == step.check && rest.finding.gpu == Some(step.gpu);
    !after.has(step) && !after.rest.iter().any(left)
}
