//! What the agents of the schedulers see on the node, against what the spec computes.

use std::collections::{BTreeMap, BTreeSet};

use super::node::{Node, counted};
use super::outcome::{Answer, Contrast, Outcome};
use crate::state::{Reading, SlurmGres};

/// `slurm.gres`: fewer than `slurm.conf` says set the node INVAL.
pub(super) fn slurm_gres(node: &Node<'_>, outcome: &mut Outcome) {
    let wanted = &node.class().advertised.gres;
    if wanted.is_empty() {
        return;
    }
    let mut counts: BTreeMap<(&str, Option<&str>), u64> = BTreeMap::new();
    for gres in wanted {
        let count = counts.entry((&gres.name, Some(&gres.kind))).or_default();
        *count = count.saturating_add(u64::from(gres.count));
    }
    let expected = shown(&counts);
    let answer = match &node.state.host.slurm_gres {
        Reading::Value(found) => {
            let mut seen: BTreeMap<(&str, Option<&str>), u64> = BTreeMap::new();
            let named = |gres: &&SlurmGres| wanted.iter().any(|wanted| wanted.name == gres.name);
            for gres in found.iter().filter(named) {
                let count = seen.entry((&gres.name, gres.kind.as_deref())).or_default();
                *count = count.saturating_add(gres.count);
            }
            match seen == counts {
                true => Answer::Holds,
                false => Answer::Fails(
                    Contrast::new(expected, shown(&seen))
                        .advise("mend what other findings say of GPUs and MIG, then check again")
                        .advise("compare gres.conf on the node with the compiled one"),
                ),
            }
        }
        reading => Answer::unless_expected(true, "slurmd's resources", reading, expected),
    };
    outcome.node(&node.class().paths.sharing, answer);
}

fn shown(counts: &BTreeMap<(&str, Option<&str>), u64>) -> String {
    let each = counts.iter().map(|((name, kind), count)| match kind {
        Some(kind) => format!("{name}:{kind}:{count}"),
        None => format!("{name}:{count}"),
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() { "no such resource".to_owned() } else { each.join(",") }
}

/// `slurm.files`: numbers of device files change with the layout and with the order in which the kernel
/// finds GPUs, and gres.conf may hold those of before.
pub(super) fn slurm_files(node: &Node<'_>, outcome: &mut Outcome) {
    if node.class().advertised.gres.is_empty() {
        return;
    }
    let Some(found) = node.state.host.slurm_gres.value() else { return };
    let files: BTreeSet<&String> =
        found.iter().filter(|gres| gres.name == "gpu").flat_map(|gres| &gres.files).collect();
    if files.is_empty() {
        return outcome.node(&node.class().paths.sharing, Answer::NotHere);
    }
    let minors: BTreeSet<u32> =
        node.gpus.iter().filter_map(|gpu| gpu.identity.minor.value().copied()).collect();
    // The file of a GPU that is gone is no stale one: `gpu.count` says that it is gone.
    let complete = node.gpus.len() == node.class().gpus.len();
    let of_gpu = |minor: u32| match minors.contains(&minor) || !complete {
        true => Some(true),
        false => Some(false).filter(|_| minors.len() == node.gpus.len()),
    };
    let (mut stale, mut unread) = (Vec::new(), Vec::new());
    for file in files {
        let number = |prefix: &str| file.strip_prefix(prefix)?.parse::<u32>().ok();
        let judged = if let Some(minor) = number("/dev/nvidia") {
            of_gpu(minor)
        } else if let Some(cap) = number("/dev/nvidia-caps/nvidia-cap") {
            node.state.host.mig_caps.value().map(|caps| caps.iter().any(|line| line.cap == cap))
        } else {
            Some(true)
        };
        match judged {
            Some(true) => {}
            Some(false) => stale.push(file.as_str()),
            None => unread.push(file.as_str()),
        }
    }
    let expected = "device files of GPUs that are there";
    let answer = if !stale.is_empty() {
        let contrast = Contrast::new(expected, format!("stale: {}", stale.join(" ")));
        Answer::Fails(
            contrast.advise("use `AutoDetect=nvml`, or write the files of gres.conf anew"),
        )
    } else if !unread.is_empty() {
        Answer::Unread(Contrast::new(expected, format!("not certain: {}", unread.join(" "))))
    } else {
        Answer::Holds
    };
    outcome.node(&node.class().paths.sharing, answer);
}

/// True for a resource that the device plugin makes of GPUs; other plugins use the prefix, too.
fn is_of_gpus(resource: &str) -> bool {
    resource
        .strip_prefix("nvidia.com/")
        .is_some_and(|name| name == "gpu" || name == "gpu.shared" || name.starts_with("mig-"))
}

/// `kubernetes.resources`.
pub(super) fn kubernetes_resources(node: &Node<'_>, outcome: &mut Outcome) {
    let advertised = &node.class().advertised;
    // With the driver of Dynamic Resource Allocation the plugin must hand out none.
    if advertised.resources.is_empty() && advertised.devices.is_empty() {
        return;
    }
    let listed = |resources: &BTreeMap<&str, u64>| {
        let each = resources.iter().map(|(name, count)| format!("{name}={count}"));
        let each: Vec<String> = each.collect();
        if each.is_empty() { "no extended resource of GPUs".to_owned() } else { each.join(" ") }
    };
    let wanted: BTreeMap<&str, u64> =
        advertised.resources.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    let expected = listed(&wanted);
    let answer = match &node.state.host.kubernetes {
        Reading::Value(allocatable) => {
            let seen: BTreeMap<&str, u64> = allocatable
                .resources
                .iter()
                .map(|(name, count)| (name.as_str(), *count))
                .filter(|(name, count)| {
                    wanted.contains_key(name) || (is_of_gpus(name) && *count > 0)
                })
                .collect();
            match seen == wanted {
                true => Answer::Holds,
                false => node.once_settled(
                    Contrast::new(expected, listed(&seen))
                        .advise("mend what other findings say of GPUs and MIG, then check again")
                        .advise(
                            "look at the pod of the device plugin on this node, and restart it",
                        ),
                ),
            }
        }
        reading => Answer::unless_expected(true, "what the kubelet hands out", reading, expected),
    };
    outcome.node(&node.class().paths.sharing, answer);
}

/// `kubernetes.labels`.
pub(super) fn kubernetes_labels(node: &Node<'_>, outcome: &mut Outcome) {
    let labels = node.class().advertised.labels.iter();
    let wanted: BTreeMap<&String, &String> =
        labels.filter(|(name, _)| name.starts_with("nvidia.com/")).collect();
    if wanted.is_empty() {
        return;
    }
    let expected = format!("{} as the spec computes", counted(wanted.len(), "label"));
    let answer = match &node.state.host.kubernetes {
        Reading::Value(node_object) => {
            let seen = |name: &String| node_object.labels.get(name);
            let mut wrong: Vec<String> = wanted
                .iter()
                .filter(|(name, value)| seen(name) != Some(**value))
                .map(|(name, value)| match seen(name) {
                    Some(seen) => format!("{name}={seen} instead of {value}"),
                    None => format!("no {name}, which is to be {value}"),
                })
                .collect();
            let failed = node_object.labels.get("nvidia.com/mig.config.state");
            wrong.extend(
                failed
                    .filter(|state| *state == "failed")
                    .map(|_| "nvidia.com/mig.config.state=failed".to_owned()),
            );
            match wrong.is_empty() {
                true => Answer::Holds,
                false => node.once_settled(
                    Contrast::new(expected, wrong.join(", "))
                        .advise("apply the compiled labels; the log of the MIG manager says more"),
                ),
            }
        }
        reading => Answer::unless_expected(true, "labels", reading, expected),
    };
    outcome.node(&node.class().paths.sharing, answer);
}
