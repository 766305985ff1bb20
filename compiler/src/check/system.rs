//! What is asked of a node against the system that it is.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};

use crate::lower::Lowered;

/// `catalog/exceeds-system`: processors or memory for one GPU that no node of the pool has in all.
pub fn host_exceeded(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, workload) in &lowered.intent.workloads {
        let Some(demand) = workload.host else { continue };
        let mut classes = lowered.intent.classes_of(&workload.cluster);
        let Some(class) = classes.find(|class| class.node.pool == workload.pool) else { continue };
        let (system, host) = (&class.node.system, &class.node.host);
        let item = ItemPath::item("workload", name).child("host");
        let mut report = |word: &str, wanted: String, has: String| {
            let title = format!("workload `{name}` wants {wanted} for each GPU, a node has {has}");
            found.push(
                Diagnostic::new(&rules::CATALOG_EXCEEDS_SYSTEM, title)
                    .at(item.child(word), "more than the whole node has")
                    .at(&class.node.paths.system, format!("`{system}` has {has}"))
                    .help("ask for less, or take a pool of larger nodes"),
            );
        };
        if let (Some(cpu), Some(has)) = (demand.cpu, host.cpu)
            && cpu > u32::from(has.threads)
        {
            report("cpu", format!("{cpu} CPUs"), has.threads.to_string());
        }
        if let (Some(memory), Some(has)) = (demand.memory, host.memory)
            && memory.0 > has.to_bytes().0
        {
            report("memory", memory.to_mib_ceil().to_string(), has.to_string());
        }
    }
}
