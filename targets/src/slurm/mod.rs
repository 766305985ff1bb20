//! Slurm: `slurm.conf`, `gres.conf`, `cgroup.conf`, `topology.conf` and `accounting.sh`.
//!
//! Source: the manual pages of SchedMD/slurm, releases 22.05 to 26.05.

mod accounting;
mod cgroup_conf;
mod check;
mod conflict;
mod disruption;
mod extra;
mod features;
mod gres_conf;
mod node_line;
mod partition_line;
mod qos;
mod slurm_conf;
mod slurm_time;
mod topology_conf;
mod topology_tree;
mod tres;

use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{Class, Cluster, Intent, Slurm};
use fleetc_schema::plan::{Change, Effect};
use fleetc_schema::version::SlurmRelease;

use crate::write::key_value::KeyValueFile;
use crate::{OutputFile, OutputTree, Scope, Target, slurm_clusters};

/// Slurm.
pub struct SlurmConf;

impl Target for SlurmConf {
    fn id(&self) -> &'static str {
        "slurm"
    }

    fn summary(&self) -> &'static str {
        "slurm.conf, gres.conf, cgroup.conf, topology.conf, accounting.sh"
    }

    fn versions(&self) -> String {
        let all = SlurmRelease::ALL;
        match (all.first(), all.last()) {
            (Some(first), Some(last)) => format!("Slurm {first} to {last}"),
            _ => String::new(),
        }
    }

    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>> {
        slurm_clusters(intent)
    }

    fn check(&self, scope: &Scope<'_>, found: &mut Vec<Diagnostic>) {
        if let Scope::Slurm(intent, cluster, slurm) = scope {
            conflict::conflicts(intent, cluster, slurm, found);
            check::all(intent, cluster, slurm, found);
        }
    }

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let mut tree = OutputTree::default();
        let Scope::Slurm(intent, cluster, slurm) = scope else { return tree };
        let folder = format!("clusters/{}/slurm", cluster.name);
        let files = configuration(intent, cluster, slurm);
        let accounting = accounting::emit(intent, cluster, slurm);
        let script = accounting.as_ref().map(|_| accounting::FILE);
        let ours: Vec<&str> = files.iter().map(|(name, _)| *name).chain(script).collect();
        for (name, item, text) in extra::others(slurm, cluster, &ours) {
            tree.add(format!("{folder}/{name}"), OutputFile::one([item], text));
        }
        for (name, mut file) in files {
            extra::add(&mut file, name, cluster, slurm);
            tree.add(format!("{folder}/{name}"), file.into_file());
        }
        if let Some(mut file) = accounting {
            if let Some((items, text)) = extra::block(accounting::FILE, cluster, slurm) {
                file.push([items], text);
            }
            tree.add(format!("{folder}/{}", accounting::FILE), file);
        }
        tree
    }

    fn disruption(
        &self,
        change: &Change,
        old: Option<&Scope<'_>>,
        new: Option<&Scope<'_>>,
    ) -> Effect {
        disruption::of(change, old, new)
    }
}

/// The files of `Key=Value` lines, without what the site adds. Their keys are what its lines must
/// not say again.
fn configuration(
    intent: &Intent,
    cluster: &Cluster,
    slurm: &Slurm,
) -> Vec<(&'static str, KeyValueFile)> {
    let mut files = vec![
        ("slurm.conf", slurm_conf::emit(intent, cluster, slurm)),
        ("gres.conf", gres_conf::emit(intent, cluster, slurm)),
        ("cgroup.conf", cgroup_conf::emit(intent, cluster)),
    ];
    files.extend(topology_conf::emit(intent, cluster).map(|file| ("topology.conf", file)));
    files
}

/// True if nodes of a class come and go.
fn is_elastic(intent: &Intent, class: &Class) -> bool {
    intent.pools.get(&class.node.pool).is_some_and(|pool| pool.elastic.is_some())
}
