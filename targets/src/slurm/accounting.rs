//! `accounting.sh`: accounts, QOS and their limits, as commands of sacctmgr.
//!
//! `sacctmgr load` is no help: it sets lists of QOS anew in one release and adds to them in another,
//! and before 25.05 it knows no QOS. Source: sacctmgr(1), releases 22.05 to 26.05.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Intent, Slurm};

use super::qos::{self, Qos};
use super::slurm_time::SlurmTime;
use super::tres::{self, GPU};
use crate::OutputFile;
use crate::write::header;
use crate::write::shell::command;

/// The name of the file.
pub const FILE: &str = "accounting.sh";

/// What the commands of the file are made of.
const FUNCTIONS: &str = include_str!("accounting_functions.sh");

/// Writes the file; none if the cluster has no database, or nothing to put into it.
pub fn emit(intent: &Intent, cluster: &Cluster, slurm: &Slurm) -> Option<OutputFile> {
    if slurm.database.is_none() || (intent.teams.is_empty() && intent.tiers.is_empty()) {
        return None;
    }
    let item = ItemPath::item("cluster", &cluster.name).child("slurm");
    let mut file = OutputFile::default();
    let head = format!("fleet {}, cluster {}", intent.fleet.name, cluster.name);
    let lines = [
        head.as_str(),
        "Accounts, QOS and their limits. Run it as an administrator of Slurm:",
        "1. `accounting.sh qos` before slurmctld reads slurm.conf. It adds QOS and does nothing else:",
        "   from 25.11 on slurmctld ends over a partition with a QOS that it does not know.",
        "2. `accounting.sh` once slurmctld has registered with slurmdbd, which then knows what can be",
        "   limited. Run it again after each change; then run `scontrol reconfigure`.",
        "It adds what is missing and sets what is stated here. It deletes nothing, and adds no users:",
        "`sacctmgr add user NAME account=TEAM` does.",
    ];
    file.push(
        [item.child("database"), item.clone()],
        format!("#!/bin/sh\n{}set -eu\n\ncluster={}\n\n{FUNCTIONS}", header(&lines), cluster.name),
    );

    let all = qos::all(intent, cluster, slurm);
    let tracked = tres::tracked(intent, cluster);
    let mut first = "\n# QOS: first all of them, since one names others.\n";
    for qos in &all {
        file.push(qos.items.clone(), format!("{first}{}", command("add_qos", &[&qos.name])));
        first = "";
    }
    file.push([item.clone()], "\n[ \"${1:-}\" != qos ] || exit 0\n\n".to_owned());
    for qos in &all {
        file.push(qos.items.clone(), set_qos(qos, &tracked));
    }
    let mut first = "\n# Accounts: a parent before its children.\n";
    for (name, team) in &intent.teams {
        let parent = team.parent.as_ref().and_then(|parent| intent.teams.get(parent));
        let parent = parent.map_or("root", |parent| &parent.account);
        let allowed = qos::of_account(intent, cluster, slurm, name, team, &all);
        let settings = [
            // Slurm's own share of an account that states none.
            format!("Fairshare={}", team.weight.unwrap_or(1)),
            format!("QOS={}", allowed.join(",")),
            format!("DefaultQOS={}", allowed.first().map_or("", String::as_str)),
        ];
        let [share, qos, default] = &settings;
        let add = command("add_account", &[&team.account, parent]);
        let set = command("set_account", &[&team.account, share, qos, default]);
        file.push([ItemPath::item("team", name)], format!("{first}{add}{set}"));
        first = "";
    }
    Some(file)
}

/// Every setting that may have been there before is set, to nothing where nothing is stated: a TRES
/// that is not named keeps the limit that it had.
fn set_qos(qos: &Qos, tracked: &[String]) -> String {
    let limit = |tres: &String| match qos.grp_tres.get(tres) {
        Some(cap) => format!("{tres}={cap}"),
        None => format!("{tres}=-1"),
    };
    let group: Vec<String> = tracked.iter().map(limit).collect();
    let per_job = qos.max_gpus_per_job.map_or("-1".to_owned(), |gpus| gpus.to_string());
    let wall = qos.max_wall.map_or("-1".to_owned(), |wall| SlurmTime(wall).to_string());
    let mut settings = vec![format!("Priority={}", qos.priority), "Flags=DenyOnLimit".to_owned()];
    if !group.is_empty() {
        settings.push(format!("GrpTRES={}", group.join(",")));
        settings.push(format!("MaxTRESPerJob={GPU}={per_job}"));
    }
    settings.push(format!("MaxWall={wall}"));
    if !qos.preempt.is_empty() {
        settings.push(format!("Preempt={}", qos.preempt.join(",")));
    }
    let words: Vec<&str> =
        std::iter::once(qos.name.as_str()).chain(settings.iter().map(String::as_str)).collect();
    let set = command("set_qos", &words);
    match qos.preempt.is_empty() {
        true => set + &command("preempts_nothing", &[&qos.name]),
        false => set,
    }
}
