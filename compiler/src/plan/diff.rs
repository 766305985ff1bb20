//! The typed difference of two Intents.
//!
//! Every struct is taken apart without `..`: a new field does not compile here until it has a change.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::hash::Hash;

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{
    Cluster, Exception, Exporter, Fleet, GitOps, GitSource, Intent, Kubernetes, MigLayout,
    Monitoring, Override, Partition, Pool, Quota, Scheduler, Shared, Sharing, Slurm, Taint, Team,
    Validator,
};
use fleetc_schema::name::{ClusterName, PartitionName, PoolName, TeamName};
use fleetc_schema::plan::{Change, ChangeKind, Presence};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value};

/// The most overrides that a change spells out.
const MAX_OVERRIDES: usize = 8;

/// Every change from `old` to `new`, in the order of the Intent.
pub fn changes(old: &Intent, new: &Intent) -> Vec<Change> {
    let mut found = Found(Vec::new());
    // Classes are computed from the rest: what changed in them changed there.
    let Intent {
        fleet,
        clusters,
        sites,
        fabrics,
        racks,
        pools,
        classes: _,
        policies,
        tiers,
        teams,
        workloads,
        monitoring,
    } = new;
    found.fleet(&old.fleet, fleet);
    found.clusters(&old.clusters, clusters);
    found.uniform(&|| ChangeKind::Topology, "site", &old.sites, sites);
    found.uniform(&|| ChangeKind::Topology, "fabric", &old.fabrics, fabrics);
    found.uniform(&|| ChangeKind::Topology, "rack", &old.racks, racks);
    found.pools(&old.pools, pools);
    found.uniform(&|| ChangeKind::Policy, "node-policy", &old.policies, policies);
    found.uniform(&|| ChangeKind::Tier, "tier", &old.tiers, tiers);
    found.teams(&old.teams, teams);
    found.uniform(&|| ChangeKind::Workload, "workload", &old.workloads, workloads);
    found.monitoring(old.monitoring.as_ref(), monitoring.as_ref());
    found.0
}

/// The changes so far.
struct Found(Vec<Change>);

/// An item with its sides: at least one is there.
enum Side<'a, T> {
    Removed(&'a T),
    Added(&'a T),
    Both(&'a T, &'a T),
}

/// Items of both sides: those of the new side in its order, then those that are gone.
fn sides<'a, K: Hash + Eq, T>(
    old: &'a IndexMap<K, T>,
    new: &'a IndexMap<K, T>,
) -> Vec<(&'a K, Side<'a, T>)> {
    let mut all: Vec<(&K, Side<'_, T>)> = new
        .iter()
        .map(|(name, after)| match old.get(name) {
            Some(before) => (name, Side::Both(before, after)),
            None => (name, Side::Added(after)),
        })
        .collect();
    let gone = old.iter().filter(|(name, _)| !new.contains_key(*name));
    all.extend(gone.map(|(name, before)| (name, Side::Removed(before))));
    all
}

fn words<T: Display>(value: Option<&T>) -> Option<String> {
    value.map(ToString::to_string)
}

fn yes_no(value: Option<bool>) -> Option<String> {
    value.map(|value| if value { "on" } else { "off" }.to_owned())
}

fn joined<T: Display>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

impl Found {
    /// Adds a change if the two sides differ.
    fn value(
        &mut self,
        kind: impl FnOnce() -> ChangeKind,
        path: impl FnOnce() -> ItemPath,
        what: &str,
        old: Option<String>,
        new: Option<String>,
    ) {
        if old != new {
            self.0.push(Change { kind: kind(), path: path(), what: what.to_owned(), old, new });
        }
    }

    /// Adds a change for each of several settings that differ; both sides are tuples of them.
    fn settings(
        &mut self,
        kind: &dyn Fn() -> ChangeKind,
        path: &ItemPath,
        words: &[&str],
        old: &impl Serialize,
        new: &impl Serialize,
    ) {
        let list = |value: serde_json::Result<Value>| match value {
            Ok(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let (old, new) = (list(serde_json::to_value(old)), list(serde_json::to_value(new)));
        for (word, (before, after)) in words.iter().zip(old.iter().zip(&new)) {
            self.value(kind, || path.child(word), word, text(before), text(after));
        }
    }

    fn presence(&mut self, kind: ChangeKind, path: ItemPath, what: String, presence: Presence) {
        let (old, new) = match presence {
            Presence::Added => (None, Some("new".to_owned())),
            Presence::Removed => (Some("there".to_owned()), None),
        };
        self.0.push(Change { kind, path, what, old, new });
    }

    fn fleet(&mut self, old: &Fleet, new: &Fleet) {
        let Fleet { name, as_of, label_prefix } = new;
        let path = || ItemPath::item("fleet", name);
        self.value(
            || ChangeKind::FleetName,
            path,
            "name",
            words(Some(&old.name)),
            words(Some(name)),
        );
        self.value(
            || ChangeKind::AsOf,
            || path().child("as-of"),
            "date of comparison",
            words(old.as_of.as_ref()),
            words(as_of.as_ref()),
        );
        self.value(
            || ChangeKind::LabelPrefix,
            || path().child("label-prefix"),
            "prefix of node labels",
            words(Some(&old.label_prefix)),
            words(Some(label_prefix)),
        );
    }

    fn clusters(
        &mut self,
        old: &IndexMap<ClusterName, Cluster>,
        new: &IndexMap<ClusterName, Cluster>,
    ) {
        for (name, side) in sides(old, new) {
            let path = ItemPath::item("cluster", name);
            let mut presence = |presence| {
                let kind = ChangeKind::Cluster(name.clone(), presence);
                self.presence(kind, path.clone(), "cluster".to_owned(), presence);
            };
            match side {
                Side::Added(_) => presence(Presence::Added),
                Side::Removed(_) => presence(Presence::Removed),
                Side::Both(before, after) => {
                    let Cluster { name: _, scheduler } = after;
                    match (&before.scheduler, scheduler) {
                        (Scheduler::Slurm(before), Scheduler::Slurm(after)) => {
                            self.slurm(name, &path.child("slurm"), before, after);
                        }
                        (Scheduler::Kubernetes(before), Scheduler::Kubernetes(after)) => {
                            self.kubernetes(name, &path.child("kubernetes"), before, after);
                        }
                        (Scheduler::Slurm(_), Scheduler::Kubernetes(_))
                        | (Scheduler::Kubernetes(_), Scheduler::Slurm(_)) => {
                            presence(Presence::Removed);
                            presence(Presence::Added);
                        }
                    }
                }
            }
        }
    }

    fn slurm(&mut self, cluster: &ClusterName, path: &ItemPath, old: &Slurm, new: &Slurm) {
        let Slurm {
            version,
            controllers,
            database,
            autodetect,
            driver,
            login,
            preempt,
            power_saving,
            health_check,
            topology,
            extra,
            hosted_by,
            partitions,
        } = new;
        let c = || cluster.clone();
        let at = |key: &'static str| move || path.child(key);
        self.value(
            || ChangeKind::SchedulerVersion(c()),
            || path.clone(),
            "Slurm",
            words(Some(&old.version)),
            words(Some(version)),
        );
        self.value(
            || ChangeKind::Controllers(c()),
            at("controllers"),
            "controllers",
            words(Some(&old.controllers)),
            words(Some(controllers)),
        );
        self.value(
            || ChangeKind::Database(c()),
            at("database"),
            "database",
            words(old.database.as_ref()),
            words(database.as_ref()),
        );
        self.value(
            || ChangeKind::AutoDetect(c()),
            at("gres"),
            "AutoDetect",
            words(Some(&old.autodetect)),
            words(Some(autodetect)),
        );
        self.driver(cluster, path, &old.driver, driver);
        let before = (
            &old.login,
            &old.preempt,
            &old.power_saving,
            &old.health_check,
            &old.topology,
            &old.extra,
            &old.hosted_by,
        );
        let after = (login, preempt, power_saving, health_check, topology, extra, hosted_by);
        let words =
            ["login", "preempt", "power-saving", "health-check", "topology", "extra", "hosted-by"];
        self.settings(&|| ChangeKind::SlurmSettings(c()), path, &words, &before, &after);
        for (name, side) in sides(&old.partitions, partitions) {
            let path = path.keyed("partition", [name]);
            match side {
                Side::Both(before, after) => self.partition(cluster, name, &path, before, after),
                Side::Added(_) => self.partition_presence(cluster, name, path, Presence::Added),
                Side::Removed(_) => self.partition_presence(cluster, name, path, Presence::Removed),
            }
        }
    }

    fn partition_presence(
        &mut self,
        cluster: &ClusterName,
        name: &PartitionName,
        path: ItemPath,
        presence: Presence,
    ) {
        let kind = ChangeKind::Partition(cluster.clone(), name.clone(), presence);
        self.presence(kind, path, format!("partition {name}"), presence);
    }

    fn partition(
        &mut self,
        cluster: &ClusterName,
        name: &PartitionName,
        path: &ItemPath,
        old: &Partition,
        new: &Partition,
    ) {
        let Partition { pools, max_time, default_time, default, tiers } = new;
        let settings = || ChangeKind::PartitionSettings(cluster.clone(), name.clone());
        self.value(
            || ChangeKind::PartitionPools(cluster.clone(), name.clone()),
            || path.child("pools"),
            "pools of the partition",
            Some(joined(&old.pools)),
            Some(joined(pools)),
        );
        self.value(
            settings,
            || path.child("max-time"),
            "MaxTime",
            words(old.max_time.as_ref()),
            words(max_time.as_ref()),
        );
        self.value(
            settings,
            || path.child("default-time"),
            "DefaultTime",
            words(old.default_time.as_ref()),
            words(default_time.as_ref()),
        );
        self.value(
            settings,
            || path.child("tiers"),
            "tiers",
            Some(joined(&old.tiers)),
            Some(joined(tiers)),
        );
        self.value(
            settings,
            || path.child("default"),
            "default partition",
            yes_no(Some(old.default)),
            yes_no(Some(*default)),
        );
    }

    fn driver(
        &mut self,
        cluster: &ClusterName,
        path: &ItemPath,
        old: &fleetc_schema::intent::Driver,
        new: &fleetc_schema::intent::Driver,
    ) {
        let fleetc_schema::intent::Driver { version, owner } = new;
        self.value(
            || ChangeKind::Driver(cluster.clone()),
            || path.child("driver"),
            "NVIDIA driver",
            Some(format!("{} ({})", old.version, old.owner)),
            Some(format!("{version} ({owner})")),
        );
    }

    fn kubernetes(
        &mut self,
        cluster: &ClusterName,
        path: &ItemPath,
        old: &Kubernetes,
        new: &Kubernetes,
    ) {
        let Kubernetes {
            version,
            distribution,
            gpu_operator,
            driver,
            dra_driver,
            queue,
            gitops,
            validator,
        } = new;
        let c = || cluster.clone();
        let at = |key: &'static str| move || path.child(key);
        let operator = |operator: &fleetc_schema::intent::GpuOperator| {
            let fleetc_schema::intent::GpuOperator { version, namespace } = operator;
            format!("{version} in {namespace}")
        };
        let git = |gitops: &GitOps| {
            let GitOps { tool, source } = gitops;
            let from = |source: &GitSource| {
                let GitSource { repo, branch, path } = source;
                let path = path.as_deref().unwrap_or(".");
                format!("{tool} from {repo}, branch {branch}, folder {path}")
            };
            source.as_ref().map_or_else(|| tool.to_string(), from)
        };
        self.value(
            || ChangeKind::SchedulerVersion(c()),
            || path.clone(),
            "Kubernetes",
            words(Some(&old.version)),
            words(Some(version)),
        );
        self.value(
            || ChangeKind::Distribution(c()),
            at("distribution"),
            "distribution",
            words(Some(&old.distribution)),
            words(Some(distribution)),
        );
        self.value(
            || ChangeKind::GpuOperator(c()),
            at("gpu-operator"),
            "GPU Operator",
            old.gpu_operator.as_ref().map(operator),
            gpu_operator.as_ref().map(operator),
        );
        self.driver(cluster, path, &old.driver, driver);
        self.value(|| ChangeKind::Queue(c()), at("queue"), "queue", json(&old.queue), json(queue));
        self.value(
            || ChangeKind::DraDriver(c()),
            at("dra-driver"),
            "DRA driver",
            words(old.dra_driver.as_ref()),
            words(dra_driver.as_ref()),
        );
        self.value(
            || ChangeKind::GitOps(c()),
            at("gitops"),
            "what applies the output",
            old.gitops.as_ref().map(git),
            gitops.as_ref().map(git),
        );
        let daemon = |validator: &Validator| {
            let Validator { image, interval, readiness } = validator;
            let taints = readiness.map_or(String::new(), |mode| format!(", taints {mode}"));
            format!("{image} every {interval}{taints}")
        };
        self.value(
            || ChangeKind::Validator(c()),
            at("validator"),
            "node validator",
            old.validator.as_ref().map(daemon),
            validator.as_ref().map(daemon),
        );
    }

    fn pools(&mut self, old: &IndexMap<PoolName, Pool>, new: &IndexMap<PoolName, Pool>) {
        for (name, side) in sides(old, new) {
            let path = ItemPath::item("pool", name);
            let mut presence = |presence, nodes: u64| {
                let kind = ChangeKind::Pool(name.clone(), presence);
                self.presence(kind, path.clone(), format!("pool of {nodes} nodes"), presence);
            };
            match side {
                Side::Added(pool) => presence(Presence::Added, pool.nodes.len()),
                Side::Removed(pool) => presence(Presence::Removed, pool.nodes.len()),
                Side::Both(before, after) => self.pool(name, &path, before, after),
            }
        }
    }

    fn pool(&mut self, name: &PoolName, path: &ItemPath, old: &Pool, new: &Pool) {
        let Pool {
            system,
            nodes,
            parts,
            elastic,
            devices,
            sharing,
            exceptions,
            overrides,
            max_unavailable,
            capacity,
            placement,
            features,
            weight,
            taints,
            driver,
            gpu_reset,
        } = new;
        let p = || name.clone();
        self.value(
            || ChangeKind::System(p()),
            || path.child("system"),
            "system",
            words(Some(&old.system)),
            words(Some(system)),
        );
        let owners = |pool: &Pool| {
            let parts: Vec<String> =
                pool.parts.iter().map(|(owner, nodes)| format!("{owner}: {nodes}")).collect();
            parts.join("; ")
        };
        let moved = old.nodes != *nodes || old.parts != *parts || old.elastic != *elastic;
        if moved {
            self.0.push(Change {
                kind: ChangeKind::Nodes(p()),
                path: path.child(if old.nodes == *nodes { "split" } else { "nodes" }),
                what: "nodes and owners".to_owned(),
                old: Some(owners(old)),
                new: Some(owners(new)),
            });
        }
        self.sharing(name, &path.child("sharing"), &old.sharing, sharing);
        self.exceptions(name, path, &old.exceptions, exceptions);
        self.overrides(name, path, &old.overrides, overrides);
        self.value(
            || ChangeKind::MaxUnavailable(p()),
            || path.child("max-unavailable"),
            "nodes out of service at once",
            words(old.max_unavailable.as_ref()),
            words(max_unavailable.as_ref()),
        );
        self.value(
            || ChangeKind::Devices(p()),
            || path.child("devices"),
            "who advertises the GPUs",
            words(Some(&old.devices)),
            words(Some(devices)),
        );
        self.value(
            || ChangeKind::PoolDriver(p()),
            || path.child("driver"),
            "NVIDIA driver",
            words(old.driver.as_ref()),
            words(driver.as_ref()),
        );
        let listed = |taints: &[Taint]| (!taints.is_empty()).then(|| joined(taints));
        self.value(
            || ChangeKind::Taints(p()),
            || path.child("taint"),
            "taints",
            listed(&old.taints),
            listed(taints),
        );
        let before = (&old.capacity, &old.placement, &old.features, &old.weight, &old.gpu_reset);
        let after = (capacity, placement, features, weight, gpu_reset);
        let words = ["capacity", "placement", "features", "weight", "gpu-reset"];
        self.settings(&|| ChangeKind::PoolSettings(p()), path, &words, &before, &after);
    }

    fn sharing(&mut self, name: &PoolName, path: &ItemPath, old: &Sharing, new: &Sharing) {
        let p = || name.clone();
        match (old, new) {
            (Sharing::Whole, Sharing::Whole) => {}
            (
                Sharing::Mig { strategy: old_strategy, layouts: old_layouts },
                Sharing::Mig { strategy, layouts },
            ) => {
                self.value(
                    || ChangeKind::MigStrategy(p()),
                    || path.child("strategy"),
                    "MIG strategy",
                    words(Some(old_strategy)),
                    words(Some(strategy)),
                );
                self.layouts(name, path, old_layouts, layouts);
            }
            (Sharing::Mps(before), Sharing::Mps(after))
            | (Sharing::TimeSlicing(before), Sharing::TimeSlicing(after)) => {
                let Shared { replicas, rename, team } = after;
                self.value(
                    || ChangeKind::Replicas(p()),
                    || path.child("replicas"),
                    "clients of a GPU",
                    words(Some(&before.replicas)),
                    words(Some(replicas)),
                );
                self.value(
                    || ChangeKind::SharingName(p()),
                    || path.child("rename"),
                    "shares have a name of their own",
                    yes_no(Some(before.rename)),
                    yes_no(Some(*rename)),
                );
                self.value(
                    || ChangeKind::PoolSettings(p()),
                    || path.child("team"),
                    "the one team of the pool",
                    words(before.team.as_ref()),
                    words(team.as_ref()),
                );
            }
            (
                Sharing::Whole | Sharing::Mig { .. } | Sharing::Mps(_) | Sharing::TimeSlicing(_),
                _,
            ) => self.value(
                || ChangeKind::SharingMode(p()),
                || path.clone(),
                "sharing",
                Some(old.mode().to_owned()),
                Some(new.mode().to_owned()),
            ),
        }
    }

    /// Layouts by their GPUs; if the sets of GPUs differ, each side as a whole.
    fn layouts(&mut self, name: &PoolName, path: &ItemPath, old: &[MigLayout], new: &[MigLayout]) {
        let slices = |layout: &MigLayout| {
            let MigLayout { gpus: _, slices } = layout;
            let parts: Vec<String> = slices
                .iter()
                .map(|slice| {
                    let fleetc_schema::intent::Slice { profile, count } = slice;
                    format!("{count} × {profile}")
                })
                .collect();
            match parts.is_empty() {
                true => "no instance".to_owned(),
                false => parts.join(" + "),
            }
        };
        let same_gpus =
            old.len() == new.len() && old.iter().zip(new).all(|(a, b)| a.gpus == b.gpus);
        if same_gpus {
            for (before, after) in old.iter().zip(new) {
                self.value(
                    || ChangeKind::MigLayout(name.clone()),
                    || path.keyed("gpus", [&after.gpus]),
                    &format!("MIG layout of GPUs {}", after.gpus),
                    Some(slices(before)),
                    Some(slices(after)),
                );
            }
            return;
        }
        let all = |layouts: &[MigLayout]| {
            let parts: Vec<String> =
                layouts.iter().map(|l| format!("GPUs {}: {}", l.gpus, slices(l))).collect();
            parts.join("; ")
        };
        self.value(
            || ChangeKind::MigLayout(name.clone()),
            || path.clone(),
            "MIG layouts",
            Some(all(old)),
            Some(all(new)),
        );
    }

    fn exceptions(
        &mut self,
        name: &PoolName,
        path: &ItemPath,
        old: &[Exception],
        new: &[Exception],
    ) {
        let missing = |exceptions: &[Exception]| {
            let parts: Vec<String> = exceptions
                .iter()
                .filter(|exception| !exception.missing.is_empty())
                .map(|exception| {
                    let Exception { nodes, missing, reason: _, path: _ } = exception;
                    format!("{nodes} without GPU {missing}")
                })
                .collect();
            match parts.is_empty() {
                true => "none".to_owned(),
                false => parts.join("; "),
            }
        };
        let (before, after) = (missing(old), missing(new));
        let place = || new.first().or(old.first()).map_or_else(|| path.clone(), |e| e.path.clone());
        if before == after && old != new {
            self.0.push(Change {
                kind: ChangeKind::ExceptionReason(name.clone()),
                path: place(),
                what: "wording of an exception".to_owned(),
                old: None,
                new: None,
            });
        }
        self.value(
            || ChangeKind::Missing(name.clone()),
            place,
            "GPUs that are gone",
            Some(before),
            Some(after),
        );
    }

    fn overrides(&mut self, name: &PoolName, path: &ItemPath, old: &[Override], new: &[Override]) {
        let addresses = |overrides: &[Override]| {
            let one = |each: &Override| {
                let Override { nodes, pci, path: _ } = each;
                format!("{nodes} at {}", joined(pci))
            };
            let mut parts: Vec<String> = overrides.iter().take(MAX_OVERRIDES).map(one).collect();
            let more = overrides.len().saturating_sub(MAX_OVERRIDES);
            parts.extend((more > 0).then(|| format!("and {more} more")));
            (!parts.is_empty()).then(|| parts.join("; "))
        };
        // Each is known by its path, which names its first node.
        let without = |all: &[Override], other: &[Override]| -> Vec<Override> {
            let other: BTreeMap<&ItemPath, &Override> =
                other.iter().map(|each| (&each.path, each)).collect();
            let same = |each: &&Override| other.get(&each.path) == Some(each);
            all.iter().filter(|each| !same(each)).cloned().collect()
        };
        let (gone, come) = (without(old, new), without(new, old));
        let place = || come.first().map_or_else(|| path.clone(), |each| each.path.clone());
        self.value(
            || ChangeKind::Overrides(name.clone()),
            place,
            "PCI addresses of GPUs",
            addresses(&gone),
            addresses(&come),
        );
    }

    fn teams(&mut self, old: &IndexMap<TeamName, Team>, new: &IndexMap<TeamName, Team>) {
        for (name, side) in sides(old, new) {
            let path = ItemPath::item("team", name);
            let mut presence = |presence| {
                let kind = ChangeKind::Team(name.clone(), presence);
                self.presence(kind, path.clone(), "team".to_owned(), presence);
            };
            let (before, after): (&[Quota], &[Quota]) = match side {
                Side::Added(team) => {
                    presence(Presence::Added);
                    (&[], &team.quotas)
                }
                Side::Removed(team) => {
                    presence(Presence::Removed);
                    (&team.quotas, &[])
                }
                Side::Both(before, after) => {
                    let Team { parent, namespace, account, contact, weight, quotas } = after;
                    let team = || ChangeKind::TeamSettings(name.clone());
                    let settings = (parent, account, contact, weight);
                    let old = (&before.parent, &before.account, &before.contact, &before.weight);
                    let words = ["parent", "account", "contact", "weight"];
                    self.settings(&team, &path, &words, &old, &settings);
                    self.value(
                        || ChangeKind::Namespace(name.clone()),
                        || path.child("namespace"),
                        "namespace",
                        Some(before.namespace.to_string()),
                        Some(namespace.to_string()),
                    );
                    (&before.quotas, quotas)
                }
            };
            self.quotas(name, before, after);
        }
    }

    fn quotas(&mut self, team: &TeamName, old: &[Quota], new: &[Quota]) {
        let same = |a: &Quota, b: &Quota| {
            a.pool == b.pool && a.cluster == b.cluster && a.resource == b.resource
        };
        let amount = |quota: &Quota| {
            let Quota { pool: _, cluster: _, resource: _, guaranteed, limit, path: _ } = quota;
            match limit {
                Some(limit) => format!("{guaranteed}, at most {limit}"),
                None => guaranteed.to_string(),
            }
        };
        let gone = old.iter().filter(|quota| !new.iter().any(|other| same(quota, other)));
        for quota in new.iter().chain(gone) {
            let find = |side: &[Quota]| side.iter().find(|other| same(quota, other)).map(amount);
            let kind =
                || ChangeKind::Quota(team.clone(), quota.pool.clone(), quota.cluster.clone());
            let what =
                format!("guarantee of {} in {} ({})", quota.resource, quota.pool, quota.cluster);
            self.value(kind, || quota.path.clone(), &what, find(old), find(new));
        }
    }

    fn monitoring(&mut self, old: Option<&Monitoring>, new: Option<&Monitoring>) {
        let exporter = |monitoring: &Monitoring| {
            let Exporter { kind, version } = &monitoring.exporter;
            format!("{kind} {version}")
        };
        let path = || ItemPath::default().child("monitoring");
        let item = || path().child("exporter");
        self.value(|| ChangeKind::Exporter, item, "exporter", old.map(exporter), new.map(exporter));
        let (Some(old), Some(new)) = (old, new) else { return };
        let Monitoring { exporter: _, slack_url_file, receivers, routes, alerts } = new;
        let before = (&old.slack_url_file, &old.receivers, &old.routes, &old.alerts);
        let after = (slack_url_file, receivers, routes, alerts);
        self.value(|| ChangeKind::Alerting, path, "alerting", json(&before), json(&after));
    }

    /// Items all of whose fields are one kind of change: each field by its name. They are compared
    /// as they are written into `fleet.json`, so a new field is compared too.
    fn uniform<K: Hash + Eq + Display, T: Serialize>(
        &mut self,
        kind: &dyn Fn() -> ChangeKind,
        word: &str,
        old: &IndexMap<K, T>,
        new: &IndexMap<K, T>,
    ) {
        for (name, side) in sides(old, new) {
            let path = ItemPath::item(word, name);
            match side {
                Side::Added(_) => {
                    self.presence(kind(), path, word.to_owned(), Presence::Added);
                }
                Side::Removed(_) => {
                    self.presence(kind(), path, word.to_owned(), Presence::Removed);
                }
                Side::Both(before, after) => self.fields(kind, &path, before, after),
            }
        }
    }

    /// The fields of an item that differ.
    fn fields(
        &mut self,
        kind: &dyn Fn() -> ChangeKind,
        path: &ItemPath,
        old: &impl Serialize,
        new: &impl Serialize,
    ) {
        let map = |value: serde_json::Result<Value>| match value {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        };
        let (old, new) = (map(serde_json::to_value(old)), map(serde_json::to_value(new)));
        for (key, after) in &new {
            let word = key.replace('_', "-");
            self.value(kind, || path.child(&word), &word, old.get(key).and_then(text), text(after));
        }
    }
}

/// A value of `fleet.json` in a line; none for null.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().filter_map(text).collect();
            Some(if items.is_empty() { "none".to_owned() } else { items.join(", ") })
        }
        Value::Object(map) => {
            let fields = map.iter().filter_map(|(key, value)| Some((key, text(value)?)));
            let fields: Vec<String> =
                fields.map(|(key, value)| format!("{}={value}", key.replace('_', "-"))).collect();
            Some(fields.join(" "))
        }
        other => Some(other.to_string()),
    }
}

fn json(value: &impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok().and_then(|value| text(&value))
}
