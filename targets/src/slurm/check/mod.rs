//! What Slurm would refuse, or take and do nothing with.

mod gres;
mod names;
mod nodes;
mod partitions;
mod queue;

use fleetc_schema::ItemPath;
use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{Class, Cluster, Intent, Slurm};

type Check = fn(Fleet<'_>, &mut Vec<Diagnostic>);

/// Every rule.
const CHECKS: &[Check] = &[
    nodes::shared_gpus,
    nodes::missing_facts,
    nodes::version_features,
    nodes::gres_types,
    nodes::mig_needs_nvml,
    nodes::power_save,
    nodes::elastic_in_block,
    gres::autodetect_conflict,
    nodes::too_many,
    names::cluster,
    names::files_and_features,
    partitions::times,
    partitions::overlap,
    partitions::mixed,
    partitions::cpu_jobs,
    queue::limits_not_enforced,
    queue::requeue,
    queue::job_above_qos,
    queue::tier_holds_guarantee,
];

/// A Slurm cluster of a fleet.
#[derive(Clone, Copy)]
struct Fleet<'a> {
    intent: &'a Intent,
    cluster: &'a Cluster,
    slurm: &'a Slurm,
}

impl<'a> Fleet<'a> {
    fn classes(&self) -> impl Iterator<Item = &'a Class> + use<'a> {
        self.intent.classes_of(&self.cluster.name)
    }

    /// The item of the cluster's settings.
    fn path(&self) -> ItemPath {
        ItemPath::item("cluster", &self.cluster.name).child("slurm")
    }
}

/// Asks every rule about one cluster.
pub fn all(intent: &Intent, cluster: &Cluster, slurm: &Slurm, found: &mut Vec<Diagnostic>) {
    for check in CHECKS {
        check(Fleet { intent, cluster, slurm }, found);
    }
}
