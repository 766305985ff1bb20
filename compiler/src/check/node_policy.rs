//! Policies against hardware.

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::{Catalog, Gpu, Pcie};
use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::intent::{NodeClass, NodePolicy, Scheduler};
use fleetc_schema::name::PolicyName;
use fleetc_schema::units::Watts;
use fleetc_schema::version::Version;
use indexmap::IndexMap;

use super::unsure;
use crate::language::listing;
use crate::lower::Lowered;

/// `node-policy/impossible`: a policy asks for what the hardware of one of its pools cannot do. One
/// finding for a value, whichever GPU products it is beyond.
pub fn impossible(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let Ok(catalog) = Catalog::embedded() else { return };
    let mut judged: IndexMap<&PolicyName, (&NodePolicy, IndexMap<&str, Held<'_>>)> =
        IndexMap::new();
    for class in lowered.intent.classes.values() {
        let (Some((name, policy)), Some(model)) = (&class.node.policy, &class.node.gpu) else {
            continue;
        };
        let Some(gpu) = catalog.gpus.get(&model.key) else { continue };
        let (_, held) = judged.entry(name).or_insert_with(|| (policy, IndexMap::new()));
        held.entry(gpu.key.as_str()).or_insert(Held { gpu, system: &class.node.paths.system });
    }
    for (name, (policy, held)) in judged {
        let held: Vec<Held<'_>> = held.into_values().collect();
        judge(name, policy, &held, found);
    }
}

/// So many GPU products are pointed at in one finding; its title names more.
const MOST_NAMED: usize = 4;

/// A GPU product that a policy is about, and an item that has it.
#[derive(Clone, Copy)]
struct Held<'a> {
    gpu: &'a Gpu,
    system: &'a ItemPath,
}

fn judge(name: &PolicyName, policy: &NodePolicy, held: &[Held<'_>], found: &mut Vec<Diagnostic>) {
    let mut judge = Judge { path: ItemPath::item("node-policy", name), held, found };
    if let Some(limit) = policy.power_limit {
        judge.power_limit(limit);
    }
    if let Some(links) = policy.nvlinks {
        judge.nvlinks(links);
    }
    if let Some(wanted) = policy.pcie_gen {
        judge.pcie("gen", "generation", wanted, |pcie| pcie.generation);
    }
    if let Some(wanted) = policy.pcie_width {
        judge.pcie("width", "width", wanted, |pcie| pcie.width);
    }
    if policy.ecc == Some(true) {
        let without = judge.beyond(|gpu| (!gpu.ecc).then(|| "no ECC".to_owned()));
        let help = "remove `ecc`, or give these pools a policy of their own".to_owned();
        judge.report(judge.path.child("ecc"), "ECC", &without, help);
    }
}

/// One policy and every GPU product that it is about.
struct Judge<'a, 'f> {
    path: ItemPath,
    held: &'a [Held<'a>],
    found: &'f mut Vec<Diagnostic>,
}

impl<'a> Judge<'a, '_> {
    /// The products that do less than is asked, each with what it does.
    fn beyond(&self, does: impl Fn(&Gpu) -> Option<String>) -> Vec<(Held<'a>, String)> {
        self.held.iter().filter_map(|held| Some((*held, does(held.gpu)?))).collect()
    }

    /// Reports a value, if there are products that it is beyond.
    fn report(
        &mut self,
        place: ItemPath,
        asked: &str,
        beyond: &[(Held<'a>, String)],
        help: String,
    ) {
        if beyond.is_empty() {
            return;
        }
        let keys = listing(beyond.iter().map(|(held, _)| held.gpu.key.as_str()));
        let title = format!("{asked} cannot be had on {keys}");
        let mut finding = Diagnostic::new(&rules::NODE_POLICY_IMPOSSIBLE, title)
            .at(place, "beyond what the hardware does");
        for (held, does) in beyond.iter().take(MOST_NAMED) {
            finding = finding.at(held.system, format!("has {} GPUs: {does}", held.gpu.key));
        }
        self.found.push(finding.help(help));
    }

    fn power_limit(&mut self, limit: Watts) {
        let outside = self.beyond(|gpu| {
            let range = gpu.power_limit_w.value?;
            let fits = (range.min..=range.max).contains(&limit.0);
            (!fits).then(|| format!("{} to {} W", range.min, range.max))
        });
        let ranges = || self.held.iter().filter_map(|held| held.gpu.power_limit_w.value);
        let least = ranges().map(|range| range.min).max().unwrap_or_default();
        let most = ranges().map(|range| range.max).min().unwrap_or_default();
        let help = match least <= most {
            true => format!("write a limit between {least}W and {most}W"),
            false => "no limit suits them all: give these pools policies of their own".to_owned(),
        };
        let place = self.path.child("power-limit");
        self.report(place, &format!("a power limit of {limit}"), &outside, help);
    }

    fn nvlinks(&mut self, links: u8) {
        let fewer = self.beyond(|gpu| {
            let most = gpu.nvlink.links.filter(|most| links > *most)?;
            Some(format!("{most} NVLinks"))
        });
        let help = match self.held.iter().filter_map(|held| held.gpu.nvlink.links).min() {
            Some(0) | None => {
                "remove `nvlink`, or give these pools a policy of their own".to_owned()
            }
            Some(least) => format!("write `nvlink active={least}`"),
        };
        let place = self.path.child("nvlink").child("active");
        self.report(place, &format!("{links} active NVLinks"), &fewer, help);
    }

    fn pcie(&mut self, word: &str, what: &str, wanted: u8, of: fn(&Pcie) -> u8) {
        let most = |gpu: &Gpu| gpu.pcie.value.as_ref().map(of);
        let less = self.beyond(|gpu| {
            let most = most(gpu).filter(|most| wanted > *most)?;
            Some(format!("{what} {most}"))
        });
        let least = self.held.iter().filter_map(|held| most(held.gpu)).min().unwrap_or_default();
        let help = format!("write `{word}={least}`, or give these pools a policy of their own");
        let place = self.path.child("pcie").child(word);
        self.report(place, &format!("PCIe {what} {wanted}"), &less, help);
    }
}

/// `node-policy/driver-mismatch`: the driver that the fleet installs is none that the policy accepts, or
/// the nodes of one NVLink domain have two.
pub fn driver_mismatch(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let mut told = Vec::new();
    for class in gpu_classes(lowered) {
        let Some((name, policy)) = &class.policy else { continue };
        let Some(wanted) = &policy.driver else { continue };
        let version = &class.driver.version;
        let place = driver_path(lowered, class);
        if wanted.matches(version) || told.contains(&(name, place.clone())) {
            continue;
        }
        let title = format!("policy `{name}` wants driver {wanted}, and {version} is installed");
        let condition = ItemPath::item("node-policy", name).child("driver");
        found.push(
            Diagnostic::new(&rules::NODE_POLICY_DRIVER_MISMATCH, title)
                .at(condition, format!("{version} does not meet it"))
                .at(&place, format!("for pool `{}`", class.pool))
                .note("every node of the pool fails the check of its driver, however well it is")
                .help(format!("accept {version}, or install a driver that is {wanted}")),
        );
        told.push((name, place));
    }
    two_drivers_in_a_rack(lowered, found);
}

/// The nodes of a rack product share NVLink, and IMEX, which comes with the driver, should be of one version
/// on all of them. No document at hand says which versions go together, so this is a warning.
fn two_drivers_in_a_rack(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let mut told = Vec::new();
    for (rack, item) in lowered.intent.racks.iter().filter(|(_, rack)| rack.domain.is_some()) {
        let here = |class: &&fleetc_schema::intent::Class| {
            !class.nodes.intersection(&item.nodes).is_empty()
        };
        let mut classes = lowered.intent.classes.values().filter(here).map(|class| &class.node);
        let Some(first) = classes.next() else { continue };
        let same = |other: &NodeClass| {
            let (a, b) = (&first.driver.version, &other.driver.version);
            a.is_since(b) && b.is_since(a)
        };
        let Some(other) = classes.find(|class| !same(class)) else { continue };
        let places = (driver_path(lowered, first), driver_path(lowered, other));
        if told.contains(&places) {
            continue;
        }
        let title = format!(
            "nodes of rack `{rack}` have drivers {} and {}",
            first.driver.version, other.driver.version
        );
        found.push(
            Diagnostic::new(&rules::NODE_POLICY_DRIVER_MISMATCH, title)
                .severity(Severity::Warning)
                .at(&places.1, format!("of pool `{}`", other.pool))
                .at(&places.0, format!("of pool `{}`", first.pool))
                .note("they are one NVLink domain, and IMEX, which comes with the driver, wants one version on all of its nodes")
                .help("install one driver on a whole rack"),
        );
        told.push(places);
    }
}

/// `node-policy/driver-too-old`: MIG on a driver that cannot cut this GPU yet.
pub fn driver_too_old(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let mut told = Vec::new();
    for class in gpu_classes(lowered) {
        let (Some(model), Some(gpu)) = (&class.gpu, lowered.gpus.get(&class.pool)) else {
            continue;
        };
        let cut = class.gpus.iter().any(|slot| slot.mig.is_some());
        let version = &class.driver.version;
        let Some(least) = too_old_for_mig(gpu, version).filter(|_| cut) else { continue };
        let place = driver_path(lowered, class);
        if told.contains(&(&model.key, place.clone())) {
            continue;
        }
        let key = &model.key;
        let title = format!("MIG on {key} needs driver {least}, and {version} is installed");
        let finding = Diagnostic::new(&rules::NODE_POLICY_DRIVER_TOO_OLD, title)
            .at(&place, "an earlier one")
            .at(&class.paths.sharing, format!("cuts {key}"))
            .note("nvidia-smi refuses to turn MIG mode on, and no GPU instance can be made")
            .help(format!("install {least} or later"));
        found.push(unsure::weigh(
            finding,
            key,
            |row| &row.mig.min_driver,
            "the first driver with MIG",
            "nvidia-smi mig -lgip",
        ));
        told.push((key, place));
    }
}

/// The first driver that cuts this GPU, if this one is earlier.
pub(super) fn too_old_for_mig<'a>(gpu: &'a Gpu, version: &Version) -> Option<&'a Version> {
    gpu.mig.min_driver.value.as_ref().filter(|least| !version.is_since(least))
}

/// `node-policy/driver-too-new`: a driver that no longer knows the GPU.
pub fn driver_too_new(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let mut told = Vec::new();
    for class in gpu_classes(lowered) {
        let (Some(model), Some(gpu)) = (&class.gpu, lowered.gpus.get(&class.pool)) else {
            continue;
        };
        let version = &class.driver.version;
        let later = |last: &u16| version.is_at_least(u32::from(*last) + 1, 0);
        let Some(last) = gpu.last_driver_branch.value.filter(later) else { continue };
        let place = driver_path(lowered, class);
        if told.contains(&(&model.key, place.clone())) {
            continue;
        }
        let key = &model.key;
        let title = format!("{key} has no driver after branch {last}, and {version} is installed");
        let finding = Diagnostic::new(&rules::NODE_POLICY_DRIVER_TOO_NEW, title)
            .at(&place, "does not know the GPU any more")
            .at(&class.paths.system, format!("has {key} GPUs"))
            .note("the driver loads and finds no GPU: the node has 0 instead of all")
            .help(format!("give pool `{}` a `driver` of branch {last}", class.pool));
        found.push(unsure::weigh(
            finding,
            key,
            |row| &row.last_driver_branch,
            "the last driver branch",
            "nvidia-smi",
        ));
        told.push((key, place));
    }
}

/// `node-policy/none`: a fleet that has policies leaves a pool without one. A fleet without any is
/// judged by its inventory alone, on purpose.
pub fn none(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let read = |path: &ItemPath| path.as_str().starts_with("node-policy/");
    if lowered.intent.policies.is_empty() || lowered.poisoned.iter().any(read) {
        return;
    }
    let mut told = Vec::new();
    for class in gpu_classes(lowered) {
        if class.policy.is_some() || told.contains(&&class.pool) {
            continue;
        }
        told.push(&class.pool);
        let others: Vec<String> =
            lowered.intent.policies.keys().map(|name| format!("`{name}`")).collect();
        let title = format!("pool `{}` has no node policy", class.pool);
        found.push(
            Diagnostic::new(&rules::NODE_POLICY_NONE, title)
                .at(ItemPath::item("pool", &class.pool), "no policy names it")
                .note("its nodes are never asked for driver, ECC, power limit or links, and pass as they are")
                .help(format!(
                    "add it to the `pools` of {}, or write a policy without `pools` for the rest",
                    others.join(" or ")
                )),
        );
    }
}

/// `node-policy/unreadable-on-mig`: NVLinks of GPUs in MIG mode, which nothing reports.
pub fn unreadable_on_mig(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let mut told = Vec::new();
    for class in gpu_classes(lowered) {
        let Some((name, policy)) = &class.policy else { continue };
        let (Some(links), Some(gpu)) = (policy.nvlinks, lowered.gpus.get(&class.pool)) else {
            continue;
        };
        let count = class.gpus.iter().filter(|slot| slot.mig.is_some()).count();
        // More links than there are is an error of its own.
        let impossible = gpu.nvlink.links.is_some_and(|most| links > most);
        if count == 0 || impossible || told.contains(&name) {
            continue;
        }
        told.push(name);
        let title =
            format!("policy `{name}` asks for NVLinks that pool `{}` does not show", class.pool);
        let links = ItemPath::item("node-policy", name).child("nvlink");
        found.push(
            Diagnostic::new(&rules::NODE_POLICY_UNREADABLE_ON_MIG, title)
                .at(links.child("active"), "cannot be read in MIG mode")
                .at(
                    &class.paths.sharing,
                    format!("MIG mode on {count} of {} GPUs", class.gpus.len()),
                )
                .note("NVML has no answer for a GPU in MIG mode; the report says so, and the verdict does not depend on it")
                .help("nothing to do, or give this pool a policy without `nvlink`"),
        );
    }
}

/// Classes with GPUs.
fn gpu_classes(lowered: &Lowered) -> impl Iterator<Item = &NodeClass> {
    lowered.intent.classes.values().map(|class| &class.node).filter(|node| node.gpu.is_some())
}

/// Where it is written which driver nodes of a class have.
fn driver_path(lowered: &Lowered, class: &NodeClass) -> ItemPath {
    let own = lowered.intent.pools.get(&class.pool).is_some_and(|pool| pool.driver.is_some());
    if own {
        return ItemPath::item("pool", &class.pool).child("driver");
    }
    let cluster = lowered.intent.clusters.get(&class.cluster);
    let scheduler = match cluster.map(|cluster| &cluster.scheduler) {
        Some(Scheduler::Kubernetes(_)) => "kubernetes",
        Some(Scheduler::Slurm(_)) | None => "slurm",
    };
    ItemPath::item("cluster", &class.cluster).child(scheduler).child("driver")
}
