//! `slurm.conf`: the whole file. Source: slurm.conf(5), releases 22.05 to 26.05.

use fleetc_schema::intent::{Class, Cluster, Intent, Partition, PreemptBy, PreemptMode, Slurm};
use fleetc_schema::name::PartitionName;
use fleetc_schema::units::Seconds;
use fleetc_schema::{Hostlist, ItemPath};

use super::qos::{self, Qos};
use super::{extra, is_elastic, node_line, partition_line, topology_conf, tres};
use crate::on_node::HEALTH_CHECK;
use crate::write::key_value::{KeyValueFile, Line};

/// The longest `bf_window` that slurmctld takes, and its default. Source: slurm.conf(5),
/// "SchedulerParameters".
const BF_WINDOW_MINUTES: std::ops::RangeInclusive<u64> = 1_440..=43_200;
/// The default of `bf_resolution`.
const BF_RESOLUTION_SECONDS: u64 = 60;

/// How long an elastic node may take to come. Slurm's default of 60 s is less than a GPU machine
/// takes to boot; this is what AWS ParallelCluster writes.
const RESUME_TIMEOUT: Seconds = Seconds(1_800);

/// How long processes may take to end before their node is drained. A process that holds GPUs is slow
/// to end, and Slurm's default of 60 s drains nodes that are well. IDRIS has this on the GPU nodes of
/// Jean Zay, as the chronicles of the BigScience 176B training say (2022).
const UNKILLABLE_STEP_TIMEOUT: Seconds = Seconds(180);
/// Keys that are written unless the site says them, or what their value must keep to:
/// `UnkillableStepTimeout` is no less than five times `MessageTimeout`. Source: slurm.conf(5).
pub const GIVES_WAY: [(&str, &[&str]); 1] =
    [("UnkillableStepTimeout", &["UnkillableStepTimeout", "MessageTimeout"])];

/// Weights of a job's priority: the order of QOS first, fair share within it, then age. A QOS's part
/// is its priority in proportion to the highest one, so that two QOS must differ by more than a
/// hundredth of it to be kept apart.
const PRIORITY_WEIGHTS: [(&str, u32); 3] =
    [("Age", 1_000), ("FairShare", 10_000), ("QOS", 1_000_000)];

/// Writes the file, all but the site's own lines.
pub fn emit(intent: &Intent, cluster: &Cluster, slurm: &Slurm) -> KeyValueFile {
    let item = ItemPath::item("cluster", &cluster.name).child("slurm");
    let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
    let mut file = KeyValueFile::new([item.clone()], &[&head]);
    let mut writer = Writer { intent, cluster, slurm, item, file: &mut file };
    let all_qos = qos::all(intent, cluster, slurm);
    writer.cluster();
    writer.resources();
    writer.scheduling(&all_qos);
    writer.preemption();
    writer.accounting();
    writer.power_saving();
    writer.health_check();
    for class in intent.classes_of(&cluster.name) {
        let items = node_line::items(class);
        writer.file.section(items.clone(), &[&format!("class {}", class.node.name)]);
        writer.file.line(items, node_line::line(intent, class));
    }
    if !slurm.partitions.is_empty() {
        writer.file.section([writer.item.clone()], &["Partitions."]);
    }
    for partition in &slurm.partitions {
        let item = writer.item.keyed("partition", [partition.0]);
        let line = partition_line::line(intent, cluster, slurm, partition, &all_qos);
        writer.file.line([item], line);
    }
    file
}

/// The partition with the longest time that a job may ask for, if every partition states one.
pub fn longest_time(slurm: &Slurm) -> Option<(&PartitionName, Seconds)> {
    let time = |(name, partition): (_, &Partition)| Some((name, partition.max_time?));
    let times: Option<Vec<(&PartitionName, Seconds)>> = slurm.partitions.iter().map(time).collect();
    times?.into_iter().max_by_key(|(_, time)| *time)
}

/// The longest window of the backfill scheduler.
pub const LONGEST_WINDOW: Seconds = Seconds(*BF_WINDOW_MINUTES.end() * 60);

struct Writer<'a> {
    intent: &'a Intent,
    cluster: &'a Cluster,
    slurm: &'a Slurm,
    item: ItemPath,
    file: &'a mut KeyValueFile,
}

impl Writer<'_> {
    fn cluster(&mut self) {
        let path = ItemPath::item("cluster", &self.cluster.name);
        self.file.section([path.clone()], &["The cluster."]);
        self.file.line([path], Line::new("ClusterName", &self.cluster.name));
        let controllers = self.item.child("controllers");
        for host in self.slurm.controllers.names() {
            self.file.line([controllers.clone()], Line::new("SlurmctldHost", host));
        }
    }

    /// What a job is given, and that it is kept to it.
    fn resources(&mut self) {
        let comment =
            "Jobs are given cores, memory and GPUs, and are kept to them (see cgroup.conf).";
        self.setting("", comment, []);
        self.lines(
            "",
            [
                Line::new("SelectType", "select/cons_tres"),
                Line::new("SelectTypeParameters", "CR_Core_Memory"),
                Line::new("ProctrackType", "proctrack/cgroup"),
                Line::new("TaskPlugin", "task/affinity,task/cgroup"),
            ],
        );
        // Without GresTypes slurmctld drops every `Gres=` without a word.
        let classes = self.intent.classes_of(&self.cluster.name);
        let gres = classes.flat_map(|class| &class.node.advertised.gres);
        let mut types: Vec<&str> = gres.map(|gres| gres.name.as_str()).collect();
        types.sort_unstable();
        types.dedup();
        if !types.is_empty() {
            self.lines("gres", [Line::new("GresTypes", types.join(","))]);
            for (key, unless) in GIVES_WAY {
                if !unless.iter().any(|word| extra::sets(self.slurm, "slurm.conf", word)) {
                    let Seconds(timeout) = UNKILLABLE_STEP_TIMEOUT;
                    self.lines("", [Line::new(key, timeout)]);
                }
            }
        }
        if let Some(told) = topology_conf::Told::of(self.intent, self.cluster) {
            self.file.line(told.items(), Line::new("TopologyPlugin", told.plugin()));
        }
    }

    fn scheduling(&mut self, all_qos: &[Qos]) {
        self.setting("", "Who goes first.", [Line::new("SchedulerType", "sched/backfill")]);
        if let Some((partition, Seconds(longest))) = longest_time(self.slurm) {
            let minutes =
                longest.div_ceil(60).clamp(*BF_WINDOW_MINUTES.start(), *BF_WINDOW_MINUTES.end());
            if minutes > *BF_WINDOW_MINUTES.start() {
                // A longer window with the same number of steps costs as much as before.
                let days = minutes.div_ceil(*BF_WINDOW_MINUTES.start());
                let resolution = days * BF_RESOLUTION_SECONDS;
                let value = format!("bf_window={minutes},bf_resolution={resolution}");
                let item = self.item.keyed("partition", [partition]).child("max-time");
                self.file.line([item], Line::new("SchedulerParameters", value));
            }
        }
        self.lines("", [Line::new("PriorityType", "priority/multifactor")]);
        if !all_qos.is_empty() || (self.slurm.database.is_some() && !self.intent.teams.is_empty()) {
            let weights = PRIORITY_WEIGHTS;
            let line = |(name, weight)| Line::new(&format!("PriorityWeight{name}"), weight);
            self.lines("", weights.map(line));
        }
    }

    fn preemption(&mut self) {
        let Some(preempt) = self.slurm.preempt else { return };
        let by = match preempt.by {
            PreemptBy::Qos => "preempt/qos",
            PreemptBy::Partition => "preempt/partition_prio",
        };
        let mode = match preempt.mode {
            PreemptMode::Requeue => "REQUEUE",
            PreemptMode::Cancel => "CANCEL",
        };
        self.setting("preempt", "Who gives way.", [Line::new("PreemptType", by)]);
        self.lines("preempt", [Line::new("PreemptMode", mode)]);
        if preempt.mode == PreemptMode::Requeue {
            self.lines("preempt", [Line::new("JobRequeue", 1)]);
        }
    }

    fn accounting(&mut self) {
        let Some(database) = &self.slurm.database else { return };
        let line = Line::new("AccountingStorageType", "accounting_storage/slurmdbd");
        self.setting("database", "Accounts, QOS and limits (see accounting.sh).", [line]);
        let hosts = ["AccountingStorageHost", "AccountingStorageBackupHost"];
        for (key, host) in hosts.into_iter().zip(database.names()) {
            self.lines("database", [Line::new(key, host)]);
        }
        let tracked = tres::tracked(self.intent, self.cluster);
        if !tracked.is_empty() {
            self.lines("database", [Line::new("AccountingStorageTRES", tracked.join(","))]);
        }
        if !self.intent.teams.is_empty() || !self.intent.tiers.is_empty() {
            // Without it QOS and limits are stored and do nothing.
            let line = Line::new("AccountingStorageEnforce", "associations,limits,qos");
            self.lines("database", [line]);
        }
    }

    fn power_saving(&mut self) {
        let Some(power) = &self.slurm.power_saving else { return };
        let Seconds(idle) = power.idle;
        let Seconds(resume_timeout) = RESUME_TIMEOUT;
        let lines = [
            Line::new("ResumeProgram", &power.resume),
            Line::new("SuspendProgram", &power.suspend),
            Line::new("SuspendTime", idle),
            Line::new("ResumeTimeout", resume_timeout),
        ];
        self.setting("power-saving", "Elastic nodes come and go.", lines);
        // SuspendTime is for every node: those that stay are named.
        let (intent, name) = (self.intent, &self.cluster.name);
        let stays = intent.classes_of(name).filter(|class| !is_elastic(intent, class));
        let all = |all: Hostlist, class: &Class| all.union(&class.nodes);
        let stays = stays.fold(Hostlist::default(), all);
        if !stays.is_empty() {
            self.lines("power-saving", [Line::new("SuspendExcNodes", stays)]);
        }
    }

    fn health_check(&mut self) {
        let Some(check) = &self.slurm.health_check else { return };
        let Seconds(interval) = check.interval;
        let comment = "Nodes judge themselves against the spec (see ../validator).";
        let lines = [
            Line::new("HealthCheckProgram", HEALTH_CHECK),
            Line::new("HealthCheckInterval", interval),
            // Nodes take turns over the interval. Those that are drained are asked too: one that
            // conforms again is given back.
            Line::new("HealthCheckNodeState", "ANY,CYCLE"),
        ];
        self.setting("health-check", comment, lines);
    }

    /// A section with its first lines.
    fn setting<const N: usize>(&mut self, key: &str, comment: &str, lines: [Line; N]) {
        let item = self.path(key);
        self.file.section([item], &[comment]);
        self.lines(key, lines);
    }

    fn lines<const N: usize>(&mut self, key: &str, lines: [Line; N]) {
        for line in lines {
            let item = self.path(key);
            self.file.line([item], line);
        }
    }

    fn path(&self, key: &str) -> ItemPath {
        if key.is_empty() { self.item.clone() } else { self.item.child(key) }
    }
}
