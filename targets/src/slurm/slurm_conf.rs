//! `slurm.conf`: GresTypes, NodeName by class, PartitionName.

use std::fmt;

use fleetc_schema::intent::{Class, Cluster, Intent, Partition, Slurm};
use fleetc_schema::name::PartitionName;
use fleetc_schema::units::{Mib, Seconds};
use fleetc_schema::{Hostlist, ItemPath};

use crate::OutputFile;
use crate::write::header;
use crate::write::key_value::Line;

/// Share of the installed memory that `RealMemory` states, in percent. The kernel and firmware keep
/// a part for themselves, and a node that registers with less than `RealMemory` is set INVAL.
const REAL_MEMORY_PERCENT: u64 = 95;

/// Writes the file.
pub fn emit(intent: &Intent, cluster: &Cluster, slurm: &Slurm) -> OutputFile {
    let mut file = OutputFile::default();
    let item = ItemPath::item("cluster", &cluster.name).child("slurm");
    let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
    let rest = "Include it in the site's slurm.conf: it holds what must agree about GPUs.";
    file.push([item.clone()], header(&[&head, rest]));

    let classes: Vec<&Class> = intent.classes_of(&cluster.name).collect();
    let types = gres_types(&classes);
    if !types.is_empty() {
        let line = Line::new("GresTypes", types.join(",")).end();
        file.push([item.child("gres")], format!("\n{line}"));
    }
    for class in classes {
        let pool = ItemPath::item("pool", &class.node.pool);
        let items = class.node.paths.exceptions.iter().map(|source| source.path.clone());
        let text = format!("\n{}{}", header(&[&format!("class {}", class.node.name)]), node(class));
        file.push(items.chain([pool.child("sharing"), pool.child("nodes"), pool]), text);
    }
    for (index, (name, partition)) in slurm.partitions.iter().enumerate() {
        let blank = if index == 0 { "\n" } else { "" };
        let text = format!("{blank}{}", self::partition(intent, cluster, name, partition));
        file.push([item.keyed("partition", [name])], text);
    }
    file
}

/// Without GresTypes slurmctld drops every `Gres=` without a word.
fn gres_types(classes: &[&Class]) -> Vec<String> {
    let gres = classes.iter().flat_map(|class| &class.node.advertised.gres);
    let mut types: Vec<String> = gres.map(|gres| gres.name.clone()).collect();
    types.sort();
    types.dedup();
    types
}

fn node(class: &Class) -> String {
    let host = &class.node.host;
    let mut line = Line::new("NodeName", &class.nodes);
    if let Some(cpu) = host.cpu {
        line = line
            .pair("CPUs", cpu.threads)
            .pair("Boards", 1)
            .pair("SocketsPerBoard", cpu.sockets)
            .pair("CoresPerSocket", cpu.cores / cpu.sockets.max(1))
            .pair("ThreadsPerCore", cpu.threads / cpu.cores.max(1));
    }
    let memory = host.memory.map(|Mib(installed)| installed * REAL_MEMORY_PERCENT / 100);
    let gres: Vec<String> = class
        .node
        .advertised
        .gres
        .iter()
        .map(|gres| format!("{}:{}:{}", gres.name, gres.kind, gres.count))
        .collect();
    let gres = (!gres.is_empty()).then(|| gres.join(","));
    line.maybe("RealMemory", memory).maybe("Gres", gres).end()
}

fn partition(
    intent: &Intent,
    cluster: &Cluster,
    name: &PartitionName,
    partition: &Partition,
) -> String {
    let parts = partition
        .pools
        .iter()
        .filter_map(|pool| intent.pools.get(pool).and_then(|pool| pool.parts.get(&cluster.name)));
    let nodes = parts.fold(Hostlist::default(), |all, part| all.union(part));
    Line::new("PartitionName", name)
        .pair("Nodes", &nodes)
        .maybe("Default", partition.default.then_some("YES"))
        .maybe("MaxTime", partition.max_time.map(SlurmTime))
        .maybe("DefaultTime", partition.default_time.map(SlurmTime))
        .end()
}

/// A time as Slurm writes it: `days-hours:minutes:seconds`.
struct SlurmTime(Seconds);

impl fmt::Display for SlurmTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Seconds(all)) = *self;
        let (days, hours) = (all / 86_400, all / 3_600 % 24);
        let (minutes, seconds) = (all / 60 % 60, all % 60);
        if days > 0 {
            write!(f, "{days}-")?;
        }
        write!(f, "{hours:02}:{minutes:02}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_days_hours_minutes_seconds() {
        let time = |seconds| SlurmTime(Seconds(seconds)).to_string();
        assert_eq!(time(172_800), "2-00:00:00");
        assert_eq!(time(14_400), "04:00:00");
        assert_eq!(time(90_061), "1-01:01:01");
    }
}
