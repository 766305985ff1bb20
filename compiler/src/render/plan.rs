//! A plan as text and as JSON (`fleetc/plan/v1`), and the text diffs behind it.

use fleetc_schema::intent::GpuInstance;
use fleetc_schema::plan::Disruption;
use fleetc_targets::OutputTree;
use fleetc_targets::write::json;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::plural;
use crate::plan::{ClusterEffect, InstanceChange, Plan, Step};

/// The schema tag of the document.
pub const SCHEMA: &str = "fleetc/plan/v1";

/// How much of the text diffs is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// Documents of the Intent and unit tests of rules as one line each, other files in full.
    Folded,
    /// Every file in full.
    Full,
}

/// The difference of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
pub struct FileDiff {
    /// Path in the output tree.
    pub path: String,
    /// Lines that are new.
    pub added: usize,
    /// Lines that are gone.
    pub removed: usize,
    #[serde(skip)]
    unified: String,
}

/// The differences of two trees, by path.
pub fn file_diffs(old: &OutputTree, new: &OutputTree) -> Vec<FileDiff> {
    let text = |tree: &OutputTree, path: &str| tree.get(path).map(|file| file.text());
    let mut paths: Vec<&str> =
        old.files().into_iter().chain(new.files()).map(|(path, _)| path.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut diffs = Vec::new();
    for path in paths {
        let (before, after) = (text(old, path), text(new, path));
        if before == after {
            continue;
        }
        let name = |side: &str, there: bool| match there {
            true => format!("{side}/{path}"),
            false => "/dev/null".to_owned(),
        };
        let names = (name("old", before.is_some()), name("new", after.is_some()));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let diff = TextDiff::from_lines(&before, &after);
        let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
        diffs.push(FileDiff {
            path: path.to_owned(),
            added: count(ChangeTag::Insert),
            removed: count(ChangeTag::Delete),
            unified: diff.unified_diff().context_radius(2).header(&names.0, &names.1).to_string(),
        });
    }
    diffs
}

/// Renders a plan: what it does to the fleet first, then the text.
pub fn text(fleet: &str, plan: &Plan, diffs: &[FileDiff], texts: Texts) -> String {
    if plan.is_empty() && diffs.is_empty() {
        return format!("{fleet}: no change\n");
    }
    let mut text = format!("{fleet}: {}\n", headline(plan));
    for step in &plan.steps {
        text.push('\n');
        text.push_str(&self::step(step));
    }
    text.push('\n');
    text.push_str(&files(diffs, texts));
    text
}

/// `5 changes · 8 nodes drain: mig[01-04]`.
fn headline(plan: &Plan) -> String {
    let mut parts = vec![plural(plan.steps.len() as u64, "change")];
    for disruption in [Disruption::Drain, Disruption::GpuReset, Disruption::Reboot] {
        let effects = plan.steps.iter().flat_map(|step| &step.effects);
        let nodes = effects
            .filter(|effect| effect.disruption == disruption)
            .fold(fleetc_schema::Hostlist::default(), |all, effect| all.union(&effect.nodes));
        if !nodes.is_empty() {
            let verb = match disruption {
                Disruption::GpuReset => "reset GPUs",
                Disruption::Reboot => "reboot",
                _ => "drain",
            };
            let verb = match (nodes.len(), verb) {
                (1, "reset GPUs") => "resets GPUs",
                (1, "reboot") => "reboots",
                (1, _) => "drains",
                (_, verb) => verb,
            };
            parts.push(format!("{} {verb}: {nodes}", plural(nodes.len(), "node")));
        }
    }
    if plan.disruption() < Disruption::Drain {
        parts.push("no node drains".to_owned());
    }
    parts.join(" · ")
}

fn step(step: &Step) -> String {
    let change = &step.change;
    let values = match (&change.old, &change.new) {
        (Some(old), Some(new)) => format!(": {old} → {new}"),
        (None, Some(new)) if new == "new" => ": added".to_owned(),
        (None, Some(new)) => format!(": none → {new}"),
        (Some(old), None) if old == "there" => ": removed".to_owned(),
        (Some(old), None) => format!(": {old} → none"),
        (None, None) => String::new(),
    };
    let mut text = format!("  {}  {}{values}\n", change.path, change.what);
    for change in &step.instances {
        text.push_str(&instances(change));
    }
    if step.effects.is_empty() {
        text.push_str("    none\n");
    }
    for effect in &step.effects {
        text.push_str(&format!("    {}\n", self::effect(effect)));
    }
    text
}

/// `GPUs 4-7 of mig[01-02]: 3g.40gb at 4 stays; 3g.40gb at 0 goes; 4 × 1g.10gb at
/// 0,1,2,3 come`.
fn instances(InstanceChange { gpus, nodes, way }: &InstanceChange) -> String {
    let ways = [
        (&way.keep, ["stays", "stay"]),
        (&way.destroy, ["goes", "go"]),
        (&way.create, ["comes", "come"]),
    ];
    let parts: Vec<String> =
        ways.into_iter().flat_map(|(instances, verbs)| by_profile(instances, verbs)).collect();
    let gpu = if gpus.len() == 1 { "GPU" } else { "GPUs" };
    format!("    {gpu} {gpus} of {nodes}: {}\n", parts.join("; "))
}

/// Instances of one profile together, with their starts.
fn by_profile(instances: &[GpuInstance], [one, many]: [&str; 2]) -> Vec<String> {
    let mut profiles: Vec<(&GpuInstance, Vec<String>)> = Vec::new();
    for instance in instances {
        let start = instance.placement.start.to_string();
        match profiles.iter_mut().find(|(other, _)| other.profile_id == instance.profile_id) {
            Some((_, starts)) => starts.push(start),
            None => profiles.push((instance, vec![start])),
        }
    }
    let words = |(instance, starts): (&GpuInstance, Vec<String>)| {
        let (profile, at) = (&instance.profile, starts.join(","));
        match starts.len() {
            1 => format!("{profile} at {at} {one}"),
            count => format!("{count} × {profile} at {at} {many}"),
        }
    };
    profiles.into_iter().map(words).collect()
}

fn effect(effect: &ClusterEffect) -> String {
    let place = match effect.cluster.as_str() {
        "" => "fleet".to_owned(),
        cluster => format!("{cluster} ({})", effect.scheduler),
    };
    let nodes = match effect.nodes.is_empty() {
        true => String::new(),
        false => format!(" {}: {}", plural(effect.nodes.len(), "node"), effect.nodes),
    };
    let reasons: Vec<String> =
        effect.reasons.iter().map(|(target, what)| format!("{target}: {what}")).collect();
    let recreate = if effect.recreate { " + recreate" } else { "" };
    let disruption = effect.disruption;
    format!("{disruption}{recreate}  {place}{nodes}\n      {}", reasons.join("\n      "))
}

fn files(diffs: &[FileDiff], texts: Texts) -> String {
    let added: usize = diffs.iter().map(|diff| diff.added).sum();
    let removed: usize = diffs.iter().map(|diff| diff.removed).sum();
    let count = plural(diffs.len() as u64, "file");
    let mut text = format!("text: {count}, +{added} −{removed}\n");
    let derived = |path: &str| path.contains("/intent/") || path.ends_with(".test.yaml");
    let folded = |diff: &&FileDiff| texts == Texts::Folded && derived(&diff.path);
    for diff in diffs.iter().filter(folded) {
        text.push_str(&format!("  {}  +{} −{} (folded)\n", diff.path, diff.added, diff.removed));
    }
    for diff in diffs.iter().filter(|diff| !folded(diff)) {
        text.push('\n');
        text.push_str(&diff.unified);
    }
    text
}

/// What `fleetc diff --format json` prints: what changes between two fleets and what that disturbs.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(title = "Plan", deny_unknown_fields))]
struct Document<'a> {
    /// The schema tag.
    #[cfg_attr(feature = "json-schema", schemars(extend("const" = SCHEMA)))]
    schema: &'a str,
    /// The fleet, as the new side calls it.
    fleet: &'a str,
    /// The worst disruption of any change.
    #[cfg_attr(feature = "json-schema", schemars(schema_with = "disruption_words"))]
    disruption: Disruption,
    /// Nodes that must be empty, reset or boot, as a hostlist.
    nodes: String,
    /// The changes, in order.
    changes: Vec<JsonStep<'a>>,
    /// Files of the output that differ.
    files: &'a [FileDiff],
}

/// One change.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
struct JsonStep<'a> {
    /// The path of the item, on the new side if it is there.
    item: &'a str,
    /// What changes, in a few words.
    what: &'a str,
    /// The old value; none if the item is new.
    old: Option<&'a str>,
    /// The new value; none if the item is gone.
    new: Option<&'a str>,
    /// The worst disruption of its effects.
    #[cfg_attr(feature = "json-schema", schemars(schema_with = "disruption_words"))]
    disruption: Disruption,
    /// What it does, cluster by cluster.
    effects: Vec<JsonEffect<'a>>,
    /// What it does to GPU instances; empty unless it changes a MIG layout.
    instances: Vec<JsonInstances>,
}

/// What a change does to the instances of GPUs that go the same way.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
struct JsonInstances {
    /// GPU numbers on a complete node, such as `0-3,6`.
    gpus: String,
    /// The nodes, as a hostlist.
    nodes: String,
    /// Instances that stay; none where the MIG manager of the GPU Operator cuts the GPUs.
    keep: Vec<JsonInstance>,
    /// Instances that are destroyed.
    destroy: Vec<JsonInstance>,
    /// Instances that are created.
    create: Vec<JsonInstance>,
}

/// A GPU instance.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
struct JsonInstance {
    /// Its profile.
    profile: String,
    /// The profile id of NVML.
    profile_id: u32,
    /// Its first memory slice.
    start: u8,
}

/// What a change does to one cluster.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
struct JsonEffect<'a> {
    /// The cluster; empty for the fleet as a whole.
    cluster: &'a str,
    /// Who schedules there.
    scheduler: &'a str,
    /// The worst that a target says.
    #[cfg_attr(feature = "json-schema", schemars(schema_with = "disruption_words"))]
    disruption: Disruption,
    /// True if an immutable object must be made anew under another name.
    recreate: bool,
    /// The nodes that are disturbed, as a hostlist.
    nodes: String,
    /// How many they are.
    node_count: u64,
    /// What each target says.
    reasons: Vec<JsonReason<'a>>,
}

/// What one target says about a change.
#[derive(Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "json-schema", schemars(deny_unknown_fields))]
struct JsonReason<'a> {
    /// The target.
    target: &'a str,
    /// What happens there.
    what: &'a str,
}

/// The words of a disruption, mildest first.
#[cfg(feature = "json-schema")]
fn disruption_words(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let words = [
        Disruption::None,
        Disruption::Reload,
        Disruption::RestartDaemon,
        Disruption::Drain,
        Disruption::GpuReset,
        Disruption::Reboot,
    ];
    schemars::json_schema!({ "enum": words })
}

/// The JSON Schema of the document.
#[cfg(feature = "json-schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Document<'static>)
}

/// Renders a plan as JSON.
pub fn document(fleet: &str, plan: &Plan, diffs: &[FileDiff]) -> String {
    json::pretty(&Document {
        schema: SCHEMA,
        fleet,
        disruption: plan.disruption(),
        nodes: plan.disturbed_nodes().to_string(),
        changes: plan.steps.iter().map(json_step).collect(),
        files: diffs,
    })
}

fn json_step(step: &Step) -> JsonStep<'_> {
    JsonStep {
        item: step.change.path.as_str(),
        what: &step.change.what,
        old: step.change.old.as_deref(),
        new: step.change.new.as_deref(),
        disruption: step.disruption,
        effects: step
            .effects
            .iter()
            .map(|effect| JsonEffect {
                cluster: &effect.cluster,
                scheduler: effect.scheduler,
                disruption: effect.disruption,
                recreate: effect.recreate,
                nodes: effect.nodes.to_string(),
                node_count: effect.nodes.len(),
                reasons: effect
                    .reasons
                    .iter()
                    .map(|(target, what)| JsonReason { target, what })
                    .collect(),
            })
            .collect(),
        instances: step.instances.iter().map(json_instances).collect(),
    }
}

fn json_instances(InstanceChange { gpus, nodes, way }: &InstanceChange) -> JsonInstances {
    let list = |instances: &[GpuInstance]| {
        let one = |instance: &GpuInstance| JsonInstance {
            profile: instance.profile.to_string(),
            profile_id: instance.profile_id,
            start: instance.placement.start,
        };
        instances.iter().map(one).collect()
    };
    JsonInstances {
        gpus: gpus.to_string(),
        nodes: nodes.to_string(),
        keep: list(&way.keep),
        destroy: list(&way.destroy),
        create: list(&way.create),
    }
}
