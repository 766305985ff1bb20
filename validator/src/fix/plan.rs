//! What is to be done about a report: steps that this program may take, and the rest, which it leaves to
//! people.

use std::path::Path;

use fleetc_schema::intent::NodePolicy;
use fleetc_schema::name::{ClassName, FleetName};
use fleetc_schema::units::Milliwatts;
use serde::Serialize;

use crate::intent::{NodeIntent, sha256};
use crate::observe::Setting;
use crate::report::{CheckId, Finding, GpuRef, Report, Severity, Verdict};
use crate::state::{GpuState, NodeState, Reading};

/// What is to be done on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
pub struct Plan {
    /// The node.
    pub node: String,
    /// The fleet.
    pub fleet: FleetName,
    /// The class of the node.
    pub class: ClassName,
    /// SHA-256 of the class's file, in hexadecimal.
    pub class_sha256: String,
    /// What `check` says of the node now.
    pub verdict: Verdict,
    /// SHA-256, in hexadecimal, of the node, the class and the steps: what `--apply` wants.
    pub digest: String,
    /// The steps, in their order.
    pub steps: Vec<Step>,
    /// What else is wrong or undecided, and is not mended here.
    pub rest: Vec<Rest>,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
pub struct Step {
    /// The check that fails, such as `persistence.mode`.
    #[cfg_attr(feature = "json-schema", schemars(with = "String", extend("pattern" = "^[a-z0-9_]+(\\.[a-z0-9_]+)+$")))]
    pub check: CheckId,
    /// The GPU.
    pub gpu: GpuRef,
    /// What it is.
    pub from: String,
    /// What it becomes.
    pub to: String,
    /// Who takes the step.
    pub by: By,
    /// For a step by hand: the commands, in order.
    #[serde(rename = "do")]
    pub commands: Vec<String>,
    /// What NVML is told.
    #[serde(skip)]
    pub(super) setting: Option<Setting>,
}

/// Who takes a step. In the order of a plan: persistence mode comes before what ends with the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// This program, through NVML.
    Nvml,
    /// The script that `--mig-script` names.
    Script,
    /// You.
    Hand,
}

impl By {
    fn as_str(self) -> &'static str {
        match self {
            Self::Nvml => "nvml",
            Self::Script => "script",
            Self::Hand => "hand",
        }
    }
}

/// What is wrong or undecided, and is not mended here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
pub struct Rest {
    /// What `check` finds, with its advice.
    pub finding: Finding,
    /// Why not, where it could have been a step; none for what never is one.
    pub why: Option<String>,
}

/// What a plan is made from.
struct Sight<'a> {
    policy: Option<&'a NodePolicy>,
    state: &'a NodeState,
    report: &'a Report,
    has_script: bool,
}

/// Makes a plan. It depends on nothing else.
pub(super) fn make(
    intent: &NodeIntent,
    state: &NodeState,
    report: &Report,
    mig_script: Option<&Path>,
) -> Plan {
    let policy = intent.class.policy.as_ref().map(|(_, policy)| policy);
    let sight = Sight { policy, state, report, has_script: mig_script.is_some() };
    let (mut steps, mut rest) = (Vec::new(), Vec::new());
    for finding in &report.findings {
        match sight.step(finding) {
            Ok(step) => steps.push(step),
            Err(_) if finding.severity == Severity::Info => {}
            Err(why) => rest.push(Rest { finding: finding.clone(), why }),
        }
    }
    steps.sort_by_key(|step: &Step| (step.by, step.check, step.gpu.bus_id));
    let Report { node, fleet, class, class_sha256, verdict, .. } = report.clone();
    let digest = digest(&node, &class_sha256, &steps);
    Plan { node, fleet, class, class_sha256, verdict, digest, steps, rest }
}

impl Sight<'_> {
    /// The step that mends a finding.
    ///
    /// # Errors
    /// Says why there is none; nothing where there never is.
    fn step(&self, finding: &Finding) -> Result<Step, Option<String>> {
        // What was not read fails nothing, and mends nothing.
        let gpu = finding.gpu.filter(|_| finding.severity != Severity::Undecided).ok_or(None)?;
        let state = self.gpu(gpu).ok_or(None)?;
        let unfit = [CheckId::GpuLost, CheckId::GpuModel];
        let unfit = || unfit.into_iter().find(|check| self.has_finding(*check, Some(gpu)));
        let made = match finding.check {
            CheckId::PersistenceMode => self.persistence(state),
            CheckId::ComputeMode => Ok(nvml(
                Setting::ComputeModeDefault,
                finding.seen.clone(),
                "compute mode Default".to_owned(),
            )),
            CheckId::PowerLimit => self.power_limit(state),
            CheckId::MigLayout | CheckId::MigCompute => self.mig(gpu, finding),
            _ => return Err(None),
        };
        let Made { by, setting, from, to, commands } = made?;
        if let Some(check) = unfit() {
            return Err(Some(format!("{} comes first", check.as_str())));
        }
        Ok(Step { check: finding.check, gpu, from, to, by, commands, setting })
    }

    fn persistence(&self, gpu: &GpuState) -> Result<Made, Option<String>> {
        let wanted = self.policy.and_then(|policy| policy.persistence).ok_or(None)?;
        let seen = *gpu.modes.persistence.value().ok_or(None)?;
        let text = |mode| format!("persistence mode {}", if mode { "on" } else { "off" });
        Ok(nvml(Setting::Persistence(wanted), text(seen), text(wanted)))
    }

    fn power_limit(&self, gpu: &GpuState) -> Result<Made, Option<String>> {
        let wanted = self.policy.and_then(|policy| policy.power_limit).ok_or(None)?;
        let wanted = wanted.to_milliwatts();
        let power = &gpu.power;
        let seen = *power.limit.value().ok_or(None)?;
        let (min, max) = match (&power.min_limit, &power.max_limit) {
            (Reading::Value(min), Reading::Value(max)) => (*min, *max),
            (Reading::Value(_), absent) | (absent, _) => {
                let why = absent.absence().unwrap_or_default();
                return Err(Some(format!("which limits the GPU takes is {why}")));
            }
        };
        if wanted < min || wanted > max {
            return Err(Some(format!(
                "the policy says {}, the GPU takes {} to {}",
                watts(wanted),
                watts(min),
                watts(max)
            )));
        }
        let text = |limit| format!("power limit {}", watts(limit));
        Ok(nvml(Setting::PowerLimit(wanted), text(seen), text(wanted)))
    }

    /// Instances, and never the mode: where that is not right, it comes first, by hand.
    fn mig(&self, gpu: GpuRef, finding: &Finding) -> Result<Made, Option<String>> {
        if self.has_finding(CheckId::MigMode, Some(gpu)) {
            return Err(Some("mig.mode comes first".to_owned()));
        }
        let (from, to) = (finding.seen.clone(), finding.expected.clone());
        // The script does all of the node or nothing, and it does nothing where a mode is wrong.
        let by_script = self.has_script && !self.has_finding(CheckId::MigMode, None);
        let (by, commands) = match by_script {
            true => (By::Script, Vec::new()),
            false => (By::Hand, finding.actions.clone()),
        };
        Ok(Made { by, setting: None, from, to, commands })
    }

    fn gpu(&self, gpu: GpuRef) -> Option<&GpuState> {
        let mut gpus = self.state.gpus.value().into_iter().flatten();
        gpus.find(|other| other.bus_id == gpu.bus_id)
    }

    /// True if a check finds something about a GPU, or about any.
    fn has_finding(&self, check: CheckId, gpu: Option<GpuRef>) -> bool {
        let mut found = self.report.findings.iter().filter(|finding| finding.check == check);
        found.any(|finding| gpu.is_none() || finding.gpu == gpu)
    }
}

/// What a step is made of, beside its check and GPU.
struct Made {
    by: By,
    setting: Option<Setting>,
    from: String,
    to: String,
    commands: Vec<String>,
}

fn nvml(setting: Setting, from: String, to: String) -> Made {
    Made { by: By::Nvml, setting: Some(setting), from, to, commands: Vec::new() }
}

/// Exact, so that the digest is.
fn watts(limit: Milliwatts) -> String {
    match limit.0 % 1000 {
        0 => format!("{} W", limit.0 / 1000),
        rest => format!("{}.{rest:03} W", limit.0 / 1000),
    }
}

/// SHA-256 of canonical JSON: keys sorted, no blanks.
fn digest(node: &str, class_sha256: &str, steps: &[Step]) -> String {
    let steps = steps.iter().map(|step| {
        let Step { check, gpu, from, to, by, commands, setting: _ } = step;
        let bus_id = gpu.bus_id.to_string();
        serde_json::json!({
            "bus_id": bus_id,
            "by": by.as_str(),
            "check": check.as_str(),
            "do": commands,
            "from": from,
            "to": to,
        })
    });
    let steps: Vec<serde_json::Value> = steps.collect();
    let document = serde_json::json!({
        "class_sha256": class_sha256,
        "node": node,
        "steps": steps,
    });
    sha256(document.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::example;

    fn plan_of(intent: &NodeIntent, change: impl FnOnce(&mut GpuState), script: bool) -> Plan {
        let mut state = example::state_of(intent);
        if let Reading::Value(gpus) = &mut state.gpus {
            change(&mut gpus[0]);
        }
        let report = compare(intent, &state);
        make(intent, &state, &report, script.then_some(Path::new("fleetc-mig")))
    }

    #[test]
    fn a_good_node_has_no_steps_and_the_digest_of_none() {
        let plan = plan_of(&example::uniform_mig(), |_| {}, false);
        assert_eq!((plan.steps, plan.rest), (Vec::new(), Vec::new()));
        assert_eq!(plan.verdict, Verdict::Conforms);
    }

    #[test]
    fn the_digest_is_of_canonical_json() {
        let bytes = br#"{"class_sha256":"c","node":"n","steps":[]}"#;
        assert_eq!(digest("n", "c", &[]), sha256(bytes));
    }

    #[test]
    fn everything_that_a_step_says_changes_the_digest() {
        let intent = example::uniform_mig();
        let plan = plan_of(&intent, drop_instance, false);
        let [step] = plan.steps.as_slice() else { panic!("{plan:?}") };
        let mut others = vec![step.clone(); 5];
        others[0].from.push('x');
        others[1].to.push('x');
        others[2].by = By::Script;
        others[3].gpu.bus_id = example::bus_id(9);
        others[4].check = CheckId::MigCompute;
        for other in others {
            let digest = digest(&plan.node, &plan.class_sha256, std::slice::from_ref(&other));
            assert_ne!(digest, plan.digest, "{other:?}");
        }
        let steps = &plan.steps;
        assert_ne!(digest("other", &plan.class_sha256, steps), plan.digest);
        assert_ne!(digest(&plan.node, "other", steps), plan.digest);
    }

    fn drop_instance(gpu: &mut GpuState) {
        if let Reading::Value(instances) = &mut gpu.gpu_instances {
            instances.pop();
        }
        if let Reading::Value(devices) = &mut gpu.mig_devices {
            devices.pop();
        }
    }

    #[test]
    fn instances_are_made_by_hand_unless_a_script_is_there() {
        let intent = example::uniform_mig();
        let by_hand = plan_of(&intent, drop_instance, false);
        assert_eq!(by_hand.steps[0].by, By::Hand);
        let command = "nvidia-smi mig -i 00000000:10:00.0 -cgi 19:6 -C";
        assert_eq!(by_hand.steps[0].commands, [command]);
        let by_script = plan_of(&intent, drop_instance, true);
        assert_eq!((by_script.steps[0].by, by_script.steps[0].commands.len()), (By::Script, 0));
    }

    #[test]
    fn where_a_mode_is_wrong_nothing_is_done_about_instances() {
        let mode = |gpu: &mut GpuState| {
            drop_instance(gpu);
            gpu.mig_mode = Reading::Value(crate::state::MigMode { current: true, pending: false });
        };
        let plan = plan_of(&example::uniform_mig(), mode, true);
        assert_eq!(plan.steps, []);
        let checks: Vec<_> = plan.rest.iter().map(|rest| rest.finding.check).collect();
        assert!(checks.contains(&CheckId::MigMode) && checks.contains(&CheckId::MigLayout));
        let layout = plan.rest.iter().find(|rest| rest.finding.check == CheckId::MigLayout);
        assert_eq!(layout.unwrap().why.as_deref(), Some("mig.mode comes first"));
    }

    #[test]
    fn a_gpu_of_another_product_is_left_alone() {
        let wrong = |gpu: &mut GpuState| {
            gpu.modes.compute = Reading::Value(crate::state::ComputeMode::Prohibited);
            gpu.device_id = Reading::Value("0x20b0".parse().unwrap());
            gpu.name = Reading::Value("NVIDIA A100-SXM4-40GB".into());
        };
        let plan = plan_of(&example::whole(), wrong, false);
        assert_eq!(plan.steps, []);
        let mode = plan.rest.iter().find(|rest| rest.finding.check == CheckId::ComputeMode);
        assert_eq!(mode.unwrap().why.as_deref(), Some("gpu.model comes first"));
    }

    #[test]
    fn watts_are_exact() {
        assert_eq!(watts(Milliwatts(450_000)), "450 W");
        assert_eq!(watts(Milliwatts(450_050)), "450.050 W");
    }
}
