//! `gres.conf`.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent, Slurm};

use crate::OutputFile;
use crate::write::header;
use crate::write::key_value::Line;

/// slurmd reads GPUs and GPU instances through NVML, so no device, count or MIG layout stands here:
/// `slurm.conf` says how many of each type there must be, and slurmd checks what it found.
pub fn emit(intent: &Intent, cluster: &Cluster, slurm: &Slurm) -> OutputFile {
    let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
    let mut file = OutputFile::default();
    let item = ItemPath::item("cluster", &cluster.name).child("slurm");
    file.push([item.clone()], header(&[&head]));
    let line = Line::new("AutoDetect", slurm.autodetect);
    file.push([item.child("gres").child("autodetect")], line.end());
    file
}
