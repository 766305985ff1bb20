//! Policies against hardware.

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::{Catalog, Gpu};
use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::intent::{NodeClass, NodePolicy, Scheduler};
use fleetc_schema::name::PolicyName;
use fleetc_schema::version::Version;

use super::unsure;
use crate::lower::Lowered;

/// `node-policy/impossible`: a policy asks for what the hardware of one of its pools cannot do.
pub fn impossible(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let Ok(catalog) = Catalog::embedded() else { return };
    let mut judged = Vec::new();
    for class in lowered.intent.classes.values() {
        let (Some((name, policy)), Some(model)) = (&class.node.policy, &class.node.gpu) else {
            continue;
        };
        // One finding for a policy and a GPU product, however many classes they have in common.
        if judged.contains(&(name, &model.key)) {
            continue;
        }
        judged.push((name, &model.key));
        if let Some(gpu) = catalog.gpus.get(&model.key) {
            judge(name, policy, gpu, &class.node.paths.system, found);
        }
    }
}

fn judge(
    name: &PolicyName,
    policy: &NodePolicy,
    gpu: &Gpu,
    system: &ItemPath,
    found: &mut Vec<Diagnostic>,
) {
    let path = ItemPath::item("node-policy", name);
    let key = &gpu.key;
    let mut report = |place: ItemPath, title: String, label: String, help: String| {
        let finding = Diagnostic::new(&rules::NODE_POLICY_IMPOSSIBLE, title)
            .at(place, label)
            .at(system, format!("has {key} GPUs"));
        found.push(finding.help(help));
    };
    if let (Some(limit), Some(range)) = (policy.power_limit, gpu.power_limit_w.value)
        && !(range.min..=range.max).contains(&limit.0)
    {
        report(
            path.child("power-limit"),
            format!("a power limit of {limit} is outside what {key} takes"),
            format!("NVML takes {} to {} W", range.min, range.max),
            format!("write a limit between {}W and {}W", range.min, range.max),
        );
    }
    if let (Some(links), Some(most)) = (policy.nvlinks, gpu.nvlink.links)
        && links > most
    {
        report(
            path.child("nvlink").child("active"),
            format!("{links} active NVLinks on {key}, which has {most}"),
            "more than there are".to_owned(),
            match most {
                0 => "remove `nvlink`, or give these pools a policy of their own".to_owned(),
                links => format!("write `nvlink active={links}`"),
            },
        );
    }
    if let Some(pcie) = gpu.pcie.value {
        let asked = [
            ("gen", policy.pcie_gen, pcie.generation, "generation"),
            ("width", policy.pcie_width, pcie.width, "width"),
        ];
        for (word, wanted, most, what) in asked {
            if let Some(wanted) = wanted.filter(|wanted| *wanted > most) {
                report(
                    path.child("pcie").child(word),
                    format!("PCIe {what} {wanted} on {key}, which has {most}"),
                    "above what the device can do".to_owned(),
                    format!("write `{word}={most}`, or give these pools a policy of their own"),
                );
            }
        }
    }
    if policy.ecc == Some(true) && !gpu.ecc {
        report(
            path.child("ecc"),
            format!("ECC on {key}, which has none"),
            "cannot be on".to_owned(),
            "remove `ecc`, or give these pools a policy of their own".to_owned(),
        );
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
