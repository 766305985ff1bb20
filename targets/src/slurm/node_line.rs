//! `NodeName` lines of slurm.conf: one a class.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Class, Intent};

use super::is_elastic;
use crate::write::key_value::Line;

/// Share of the installed memory that `RealMemory` states, in percent. The kernel and firmware keep
/// a part for themselves, and a node that registers with less than `RealMemory` is set INVAL.
const REAL_MEMORY_PERCENT: u64 = 95;

/// The line of a class.
pub fn line(intent: &Intent, class: &Class) -> Line {
    let mut line = Line::new("NodeName", &class.nodes);
    if let Some(cpu) = class.node.host.cpu {
        line = line
            .pair("CPUs", cpu.threads)
            .pair("Boards", 1)
            .pair("SocketsPerBoard", cpu.sockets)
            .pair("CoresPerSocket", cpu.cores / cpu.sockets.max(1))
            .pair("ThreadsPerCore", threads_per_core(class));
    }
    let gres = class.node.advertised.gres.iter();
    let gres: Vec<String> =
        gres.map(|gres| format!("{}:{}:{}", gres.name, gres.kind, gres.count)).collect();
    let pool = intent.pools.get(&class.node.pool);
    let features = pool.map(|pool| pool.features.join(","));
    line.maybe("RealMemory", real_memory(class))
        .maybe("Gres", (!gres.is_empty()).then(|| gres.join(",")))
        .maybe("Features", features.filter(|features| !features.is_empty()))
        .maybe("Weight", pool.and_then(|pool| pool.weight))
        .maybe("State", is_elastic(intent, class).then_some("CLOUD"))
}

/// Items behind the line.
pub fn items(class: &Class) -> Vec<ItemPath> {
    let pool = ItemPath::item("pool", &class.node.pool);
    let exceptions = class.node.paths.exceptions.iter().map(|source| source.path.clone());
    exceptions.chain([pool.child("sharing"), pool.child("nodes"), pool]).collect()
}

/// `RealMemory` in MiB; none if nothing states the memory.
pub fn real_memory(class: &Class) -> Option<u64> {
    class.node.host.memory.map(|installed| installed.0.saturating_mul(REAL_MEMORY_PERCENT) / 100)
}

/// Hardware threads of a core; 1 if nothing states the processors.
pub fn threads_per_core(class: &Class) -> u64 {
    class.node.host.cpu.map_or(1, |cpu| u64::from(cpu.threads / cpu.cores.max(1)).max(1))
}
