//! `cgroup.conf`. Source: cgroup.conf(5), releases 22.05 to 26.05.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent};

use crate::write::key_value::{KeyValueFile, Line};

/// A job sees the GPUs, cores and memory that it was given, and no others. Without ConstrainDevices
/// every job sees every GPU of its node.
pub fn emit(intent: &Intent, cluster: &Cluster) -> KeyValueFile {
    let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
    let item = ItemPath::item("cluster", &cluster.name).child("slurm");
    let mut file = KeyValueFile::new([item.clone()], &[&head]);
    for key in ["ConstrainCores", "ConstrainDevices", "ConstrainRAMSpace"] {
        file.line([item.clone()], Line::new(key, "yes"));
    }
    file
}
