//! What a Slurm node runs: a unit before slurmd, the health check, and a check for a Prolog.
//!
//! Source: systemd.unit(5) and systemd.service(5); slurm.conf(5), "HealthCheckProgram" and "Prolog",
//! 22.05 to 26.05.

use fleetc_schema::intent::HealthCheck;

use crate::on_node::{HEALTH_CHECK, HISTORY, INTENT, PROGRAM, PROLOG};
use crate::write::{header, shell};

/// Files by name.
pub fn all(head: &str, check: &HealthCheck) -> Vec<(&'static str, String)> {
    vec![
        ("fleetc-validate.service", unit(head)),
        ("health-check.sh", health_check(head, check)),
        ("prolog.sh", prolog(head)),
    ]
}

/// The slurmd to ask for its resources: it stands where `scontrol` does, which differs by site.
const SLURMD: &str = "slurmd";

/// What is checked, and how it ends. A Prolog does not ask slurmd, since a job waits for it.
fn command(style: &str, more: &[&str]) -> String {
    let words = ["check", "--intent", INTENT, "--source", "nvml", "--exit-style", style];
    shell::command(PROGRAM, &[&words[..], more].concat())
}

/// At boot slurmd waits for the check, whatever it comes to: a GPU that is missing is in the journal
/// before Slurm finds a wrong count. Drained is the node by the health check, which slurmd runs before
/// it registers.
fn unit(head: &str) -> String {
    let comments = [
        head,
        "Install as /etc/systemd/system/fleetc-validate.service, then systemctl enable it.",
        &format!("It wants {PROGRAM}, and a copy of ../intent in {INTENT}."),
        "It does not stop slurmd: for that, add RequiredBy=slurmd.service under [Install].",
    ];
    let lines = [
        "[Unit]",
        "Description=Hold this node against the spec of the fleet",
        "After=nvidia-persistenced.service nvidia-fabricmanager.service nvidia-mig-manager.service fleetc-mig.service nvidia-imex.service",
        "Before=slurmd.service",
        "",
        "[Service]",
        "Type=oneshot",
        &format!(
            "ExecStart={}",
            command("native", &["--slurmd", SLURMD, "--history", HISTORY]).trim_end()
        ),
        "TimeoutStartSec=120",
        "",
        "[Install]",
        "WantedBy=multi-user.target slurmd.service",
    ];
    format!("{}\n{}\n", header(&comments), lines.join("\n"))
}

fn health_check(head: &str, check: &HealthCheck) -> String {
    let comments = [
        head,
        &format!("Install as {HEALTH_CHECK}, executable, owned by root: slurm.conf names it."),
        "slurmd runs it as root, at its start and then at intervals, and acts on nothing that it says: it",
        "drains the node itself, and gives it back once it conforms. A reason of someone else stays.",
    ];
    let most = check.max_drained.to_string();
    let readings = ["--slurmd", SLURMD, "--history", HISTORY];
    let drain = ["--drain-slurm", "--max-drained", &most];
    let command = command("slurm-health", &[&readings[..], &drain[..]].concat());
    script(&comments, &command)
}

fn prolog(head: &str) -> String {
    let comments = [
        head,
        &format!(
            "Install as {PROLOG}, executable, owned by root, and call it from a Prolog of yours, or"
        ),
        &format!("say Prolog={PROLOG} in slurm.conf. It fails only if the node does not"),
        "conform: what cannot be decided must not drain a fleet.",
    ];
    script(&comments, &command("prolog", &[]))
}

/// A script that becomes one program. slurmd gives it no PATH, and scontrol must be found.
fn script(comments: &[&str], command: &str) -> String {
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    format!("#!/bin/sh\n{}{path}\nexport PATH\nexec {command}", header(comments))
}
