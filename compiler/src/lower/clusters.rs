//! Clusters and partitions.

use fleetc_schema::Hostlist;
use fleetc_schema::diag::{Diagnostic, Severity, Span, rules};
use fleetc_schema::intent::{
    Cluster, Driver, GitOps, GitSource, GpuOperator, HealthCheck, Kubernetes, LevelLabel,
    Partition, PowerSaving, Preempt, Queue, QueueKind, Scheduler, Slurm, SlurmTopology,
    TopologyLevel, TopologyPlugin, Validator,
};
use fleetc_schema::name::{ClusterName, PartitionName, PoolName};
use fleetc_schema::units::Seconds;
use fleetc_schema::version::{Known, KubernetesRelease, KueueRelease, SlurmRelease, Version};
use indexmap::IndexMap;

use super::names::Names;
use super::pools::LoweredPool;
use crate::language::{At, Cx, kinds, listing};

type Pools = IndexMap<PoolName, LoweredPool>;

/// Lowers clusters.
pub fn lower(
    spec: &kinds::Spec,
    names: &Names,
    pools: &Pools,
    cx: &mut Cx,
) -> IndexMap<ClusterName, Cluster> {
    let mut clusters = IndexMap::new();
    for item in &spec.clusters {
        match lower_one(item, names, pools, cx) {
            Some(cluster) => {
                clusters.insert(cluster.name.clone(), cluster);
            }
            None => cx.poison(&item.path),
        }
    }
    clusters
}

fn lower_one(item: &kinds::Cluster, names: &Names, pools: &Pools, cx: &mut Cx) -> Option<Cluster> {
    let name = item.arg.as_ref()?.value.clone();
    let scheduler = match (&item.slurm, &item.kubernetes) {
        (Some(slurm), None) => Scheduler::Slurm(lower_slurm(slurm, &name, names, pools, cx)?),
        (None, Some(kubernetes)) => Scheduler::Kubernetes(lower_kubernetes(kubernetes, cx)?),
        (Some(slurm), Some(kubernetes)) => {
            let title = format!("cluster `{name}` has two schedulers");
            let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, title)
                .at(kubernetes.span, "a second scheduler")
                .at(slurm.span, "the first one");
            cx.report(finding.help("make two clusters, and split the pools that they share"));
            return None;
        }
        (None, None) if cx.unclear.contains(&item.path) => return None,
        (None, None)
            if ["slurm", "kubernetes"]
                .iter()
                .any(|word| cx.poisoned.contains(&item.path.child(word))) =>
        {
            return None;
        }
        (None, None) => {
            let title = format!("cluster `{name}` has no scheduler");
            let finding = Diagnostic::new(&rules::SPEC_MISSING, title)
                .at(item.span, "neither `slurm` nor `kubernetes` in here");
            cx.report(finding.help("add `slurm \"24.11\" { … }` or `kubernetes \"1.36\" { … }`"));
            return None;
        }
    };
    Some(Cluster { name, scheduler })
}

/// The release of a version that a scheduler states.
pub fn release<R: Copy + std::fmt::Display>(
    version: &At<Version>,
    what: &str,
    known: Known<R>,
    all: &[R],
    cx: &mut Cx,
) -> Option<R> {
    let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
    let releases = listing(texts.iter().map(String::as_str));
    let finding = |title: String| Diagnostic::new(&rules::SPEC_VERSION_UNKNOWN, title);
    match known {
        Known::Yes(release) => Some(release),
        Known::Newer(last) => {
            let title = format!("{what} {} is newer than what is known here", version.value);
            let finding = finding(title)
                .severity(Severity::Warning)
                .at(version.span, format!("read as {last}"));
            cx.report(finding.help(format!("known releases are {releases}")));
            Some(last)
        }
        Known::TooOld | Known::No => {
            let title = format!("nothing is written for {what} {}", version.value);
            let finding = finding(title).at(version.span, "not a release that is known");
            cx.report(finding.help(format!("known releases are {releases}")));
            None
        }
    }
}

fn lower_driver(item: &kinds::Driver) -> Option<Driver> {
    let version = item.arg.as_ref()?.value.clone();
    Some(Driver { version, owner: item.owner.as_ref()?.value })
}

fn lower_slurm(
    item: &kinds::Slurm,
    cluster: &ClusterName,
    names: &Names,
    pools: &Pools,
    cx: &mut Cx,
) -> Option<Slurm> {
    let version = item.arg.as_ref().and_then(|version| {
        let known = SlurmRelease::of(&version.value);
        release(version, "Slurm", known, SlurmRelease::ALL, cx)
    });
    let partitions = partitions(item, cluster, names, pools, cx);
    let hosts = |hosts: &[At<Hostlist>]| {
        hosts.iter().fold(Hostlist::default(), |all, host| all.union(&host.value))
    };
    let controllers = hosts(item.controllers.as_ref()?);
    let login = item.login.as_ref().map(|login| hosts(login)).unwrap_or_default();
    let hosted_by = match &item.hosted_by {
        Some(host) => Some(names.clusters.resolve(host, cx)?),
        None => None,
    };
    let preempt = match &item.preempt {
        Some(preempt) => {
            Some(Preempt { by: preempt.arg.as_ref()?.value, mode: preempt.mode.as_ref()?.value })
        }
        None => None,
    };
    let power_saving = match &item.power_saving {
        Some(power) => Some(PowerSaving {
            resume: power.resume.as_ref()?.value.clone(),
            suspend: power.suspend.as_ref()?.value.clone(),
            idle: power.idle.as_ref()?.value,
        }),
        None => None,
    };
    let health_check = match &item.health_check {
        Some(check) => Some(lower_health_check(check, cx)?),
        None => None,
    };
    let topology = match &item.topology {
        Some(topology) => Some(lower_topology(topology, names, cx)?),
        None => None,
    };
    let extra = |item: &kinds::Extra| {
        let (file, lines) = &item.arg;
        let lines = lines.iter().map(|line| line.value.clone()).collect();
        Some((file.as_ref()?.value.clone(), lines))
    };
    Some(Slurm {
        version: version?,
        controllers,
        database: item.database.as_ref().map(|host| host.value.clone()),
        autodetect: item.gres.as_ref()?.autodetect.as_ref()?.value,
        driver: lower_driver(item.driver.as_ref()?)?,
        login,
        preempt,
        power_saving,
        health_check,
        topology,
        extra: item.extra.iter().filter_map(extra).collect(),
        hosted_by,
        partitions,
    })
}

/// What slurmd takes: a number of 16 bits, above the time that the program may take.
///
/// Source: slurm.conf(5), "HealthCheckInterval" and, in 26.05, "HealthCheckTimeout": a program is
/// killed after 60 s, and the timeout must be less than the interval.
const HEALTH_CHECK_SECONDS: std::ops::RangeInclusive<u64> = 61..=65_535;

fn lower_health_check(item: &kinds::HealthCheck, cx: &mut Cx) -> Option<HealthCheck> {
    let interval = item.interval.as_ref()?;
    let Seconds(seconds) = interval.value;
    if !HEALTH_CHECK_SECONDS.contains(&seconds) {
        let title = format!("nodes cannot judge themselves every {}", interval.value);
        let (least, most) = HEALTH_CHECK_SECONDS.into_inner();
        let finding = Diagnostic::new(&rules::SPEC_OUT_OF_RANGE, title)
            .at(interval.span, format!("not {least} to {most} s"))
            .note("slurmd gives the program 60 s, and keeps the interval in 16 bits");
        cx.report(finding.help("write `interval=\"5m\"`"));
        return None;
    }
    let max_drained = item.max_drained.as_ref()?.value.0;
    Some(HealthCheck { interval: interval.value, max_drained })
}

/// An image is a reference without blanks; a pause of no time would keep a core busy.
fn lower_validator(item: &kinds::Validator, cx: &mut Cx) -> Option<Validator> {
    let (image, interval) = (item.image.as_ref()?, item.interval.as_ref()?);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    if image.value.is_empty() || !image.value.chars().all(plain) {
        let title = format!("`{}` is no image", image.value);
        let finding =
            Diagnostic::new(&rules::NAME_ILLEGAL, title).at(image.span, "not a reference");
        cx.report(finding.help("write `image=\"registry.example.com/fleetc-validate:1.0\"`"));
        return None;
    }
    if interval.value.0 < SHORTEST_PAUSE.0 {
        let title = format!("nodes cannot judge themselves every {}", interval.value);
        let finding = Diagnostic::new(&rules::SPEC_OUT_OF_RANGE, title)
            .at(interval.span, format!("below {SHORTEST_PAUSE}"))
            .note("each time every node reads its GPUs and patches its status");
        cx.report(finding.help("write `interval=\"5m\"`"));
        return None;
    }
    let readiness = item.readiness.as_ref().map(|mode| mode.value);
    Some(Validator { image: image.value.clone(), interval: interval.value, readiness })
}

/// The least between two runs of the DaemonSet: a run may take as long.
const SHORTEST_PAUSE: Seconds = Seconds(60);

/// A tree is of switches, blocks have sizes.
fn lower_topology(
    item: &kinds::SlurmTopology,
    names: &Names,
    cx: &mut Cx,
) -> Option<SlurmTopology> {
    let plugin = item.arg.as_ref()?;
    let sizes = item.block_sizes.as_ref();
    let fabric_span = item.fabric.as_ref().map(|fabric| fabric.span);
    let sizes_span = sizes.and_then(|sizes| sizes.first()).map(|size| size.span);
    let misplaced = match plugin.value {
        TopologyPlugin::Tree => {
            sizes_span.map(|span| (&rules::SPEC_UNKNOWN_NODE, "block-sizes", span, "`block`"))
        }
        TopologyPlugin::Block => {
            fabric_span.map(|span| (&rules::SPEC_UNKNOWN_PROPERTY, "fabric", span, "`tree`"))
        }
    };
    if let Some((rule, word, span, belongs)) = misplaced {
        let title = format!("`{word}` belongs to topology {belongs}");
        let finding = Diagnostic::new(rule, title)
            .at(span, "has no meaning here")
            .at(plugin.span, "this topology has none");
        cx.report(finding.help(format!("remove it, or take topology {belongs}")));
    }
    let fabric = match &item.fabric {
        Some(fabric) => Some(names.fabrics.resolve(fabric, cx)?),
        None => None,
    };
    Some(SlurmTopology {
        plugin: plugin.value,
        fabric,
        block_sizes: sizes.into_iter().flatten().map(|size| size.value.0).collect(),
    })
}

fn partitions(
    item: &kinds::Slurm,
    cluster: &ClusterName,
    names: &Names,
    pools: &Pools,
    cx: &mut Cx,
) -> IndexMap<PartitionName, Partition> {
    let mut partitions = IndexMap::new();
    let mut default: Option<&At<bool>> = None;
    for item in &item.partitions {
        let Some(name) = &item.arg else { continue };
        let mut members = Vec::new();
        for reference in item.pools.iter().flatten() {
            let Some(pool) = names.pools.resolve::<PoolName>(reference, cx) else { continue };
            let Some(lowered) = pools.get(&pool) else { continue };
            if lowered.pool.parts.contains_key(cluster) {
                members.push(pool);
                continue;
            }
            let title = format!("pool `{pool}` has no node in cluster `{cluster}`");
            let finding = Diagnostic::new(&rules::NAME_UNKNOWN, title)
                .at(reference.span, "not in this cluster")
                .at(&lowered.path, "owned by another");
            cx.report(finding.help(format!("remove it, or give `{cluster}` nodes of the pool")));
        }
        if let Some(flag) = item.default.as_ref().filter(|flag| flag.value) {
            if let Some(first) = default {
                let finding =
                    Diagnostic::new(&rules::SPEC_DUPLICATE, "two partitions are the default")
                        .at(flag.span, "the second one")
                        .at(first.span, "the first one")
                        .note("slurmctld says nothing and takes the last");
                cx.report(finding.help("let one partition be the default"));
            }
            default = default.or(Some(flag));
        }
        let partition = Partition {
            pools: members,
            max_time: item.max_time.as_ref().map(|time| time.value),
            default_time: item.default_time.as_ref().map(|time| time.value),
            default: item.default.as_ref().is_some_and(|flag| flag.value),
            tiers: item
                .tiers
                .iter()
                .flatten()
                .filter_map(|tier| names.tiers.resolve(tier, cx))
                .collect(),
        };
        partitions.insert(name.value.clone(), partition);
    }
    partitions
}

/// A program that queues has a version.
fn queue(item: &kinds::Queue, cx: &mut Cx) -> Option<Queue> {
    let kind = item.arg.as_ref()?;
    let version = item.version.as_ref().map(|version| version.value.clone());
    let levels = levels(item, kind, cx);
    match (kind.value, &item.version) {
        (QueueKind::None, Some(version)) => {
            let finding = Diagnostic::new(&rules::SPEC_UNKNOWN_PROPERTY, "nothing has no version")
                .at(version.span, "of what?")
                .at(kind.span, "nothing queues");
            cx.report(finding.help("remove it"));
            None
        }
        (QueueKind::Kueue | QueueKind::Kai | QueueKind::Volcano, None) => {
            if !cx.poisoned.contains(&item.path.child("version")) {
                let title = format!("`{}` states no `version`", kind.value);
                let finding = Diagnostic::new(&rules::SPEC_MISSING, title)
                    .at(item.span, "`version` is missing in here");
                cx.report(finding.help("add `version=\"0.19\"`"));
            }
            None
        }
        (QueueKind::Kueue, Some(stated)) => {
            let known = KueueRelease::of(&stated.value);
            release(stated, "Kueue", known, KueueRelease::ALL, cx)?;
            Some(Queue { kind: QueueKind::Kueue, version, levels })
        }
        (kind, _) => Some(Queue { kind, version, levels }),
    }
}

/// What applies the output. Where it stands may be left out, but not half of it.
fn lower_gitops(item: &kinds::GitOps, cx: &mut Cx) -> Option<GitOps> {
    let tool = item.arg.as_ref()?.value;
    let missing = |word: &str, why: Span, cx: &mut Cx| {
        if !cx.poisoned.contains(&item.path.child(word)) {
            let title = format!("`{tool}` is not told its `{word}`");
            let finding = Diagnostic::new(&rules::SPEC_MISSING, title)
                .at(item.span, format!("`{word}` is missing in here"))
                .at(why, "of what?");
            let example = match word {
                "branch" => "branch=\"main\"",
                _ => "repo=\"https://git.example.com/fleet.git\"",
            };
            cx.report(finding.help(format!("add `{example}`")));
        }
        None
    };
    let source = match (&item.repo, &item.branch) {
        (Some(repo), Some(branch)) => Some(GitSource {
            repo: repo.value.clone(),
            branch: branch.value.clone(),
            path: match &item.folder {
                Some(folder) => Some(repository_folder(folder, cx)?),
                None => None,
            },
        }),
        (Some(repo), None) => return missing("branch", repo.span, cx),
        (None, branch) => match branch.as_ref().or(item.folder.as_ref()) {
            Some(at) => return missing("repo", at.span, cx),
            None => None,
        },
    };
    Some(GitOps { tool, source })
}

/// A folder within a repository, as Argo CD and Flux take it.
fn repository_folder(folder: &At<String>, cx: &mut Cx) -> Option<String> {
    let text = folder.value.trim_start_matches("./").trim_end_matches('/');
    let problem = match text {
        "" => "names no folder",
        _ if text.starts_with('/') => "is no folder of a repository: it starts with `/`",
        _ if text.split('/').any(|part| part == "..") => "leads out of the repository",
        _ => return Some(text.to_owned()),
    };
    let title = format!("`{}` {problem}", folder.value);
    let finding = Diagnostic::new(&rules::NAME_ILLEGAL, title).at(folder.span, "not a folder");
    cx.report(finding.help("write it from the root of the repository: `path=\"out\"`"));
    None
}

/// Levels of the topology; the node is the last of them. Source: the CRDs of Kueue and KAI, which
/// take `kubernetes.io/hostname` at the lowest level only.
fn levels(
    item: &kinds::Queue,
    kind: &At<QueueKind>,
    cx: &mut Cx,
) -> IndexMap<TopologyLevel, LevelLabel> {
    let mut levels = IndexMap::new();
    if let Some(level) = item.levels.first().filter(|_| kind.value == QueueKind::None) {
        let title = "`level` belongs to a queue that places jobs";
        let finding = Diagnostic::new(&rules::SPEC_UNKNOWN_NODE, title)
            .at(level.span, "has no meaning here")
            .at(kind.span, "nothing queues");
        cx.report(finding.help("remove it, or name a queue such as `queue \"kueue\"`"));
        return levels;
    }
    let mut host: Option<Span> = None;
    for level in &item.levels {
        let Some(name) = &level.arg else { continue };
        if let Some(host) = host {
            let title = format!("level `{}` stands below the node", name.value);
            let finding = Diagnostic::new(&rules::SPEC_OUT_OF_RANGE, title)
                .at(level.span, "after `host`")
                .at(host, "the finest level there is");
            cx.report(finding.help("name levels from coarse to fine, `host` last"));
        }
        if name.value == TopologyLevel::Host {
            host = Some(level.span);
        }
        let label = level.label.as_ref().map(|label| label.value.clone());
        levels.insert(name.value, LevelLabel { label });
    }
    levels
}

fn lower_kubernetes(item: &kinds::Kubernetes, cx: &mut Cx) -> Option<Kubernetes> {
    let version = item.arg.as_ref().and_then(|version| {
        let known = KubernetesRelease::of(&version.value);
        release(version, "Kubernetes", known, KubernetesRelease::ALL, cx)
    });
    let gpu_operator = match &item.gpu_operator {
        None => None,
        Some(operator) => Some(GpuOperator {
            version: operator.arg.as_ref()?.value.clone(),
            namespace: operator.namespace.as_ref()?.value.clone(),
        }),
    };
    Some(Kubernetes {
        version: version?,
        distribution: item.distribution.as_ref()?.value,
        gpu_operator,
        driver: lower_driver(item.driver.as_ref()?)?,
        dra_driver: item.dra_driver.as_ref().map(|version| version.value.clone()),
        queue: queue(item.queue.as_ref()?, cx)?,
        gitops: match &item.gitops {
            Some(gitops) => Some(lower_gitops(gitops, cx)?),
            None => None,
        },
        validator: match &item.validator {
            Some(validator) => Some(lower_validator(validator, cx)?),
            None => None,
        },
    })
}
