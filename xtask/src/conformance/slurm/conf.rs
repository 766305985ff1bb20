//! Reads Slurm's files as written, and makes them load on one machine: only what belongs to a site
//! (hosts, ports, paths, authentication, programs) is changed. Nodes, GRES, partitions, scheduling,
//! preemption, accounting and topology stay as they are.

use camino::Utf8Path;

use super::Ports;

/// A line of `Key=Value` pairs.
#[derive(Debug, Clone)]
pub struct Line(pub Vec<(String, String)>);

impl Line {
    /// The value of a key, in whatever case it is written.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
        found.map(|(_, value)| value.as_str())
    }

    /// The key that the line starts with.
    pub fn lead(&self) -> &str {
        self.0.first().map_or("", |(key, _)| key)
    }

    fn set(&mut self, key: &str, value: &str) {
        self.0.retain(|(name, _)| !name.eq_ignore_ascii_case(key));
        self.0.push((key.to_owned(), value.to_owned()));
    }

    fn text(&self) -> String {
        let pair = |(key, value): &(String, String)| match value.contains(' ') || value.is_empty() {
            true => format!("{key}=\"{value}\""),
            false => format!("{key}={value}"),
        };
        self.0.iter().map(pair).collect::<Vec<_>>().join(" ")
    }
}

/// The lines of a file, without comments.
pub fn read(text: &str) -> Vec<Line> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(|line| Line(pairs(line))).collect()
}

fn pairs(line: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut rest = line.trim_start();
    while let Some((key, after)) = rest.split_once('=') {
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(' ').unwrap_or((after, "")),
        };
        pairs.push((key.to_owned(), value.to_owned()));
        rest = next.trim_start();
    }
    pairs
}

/// How much of the fleet is pretended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nodes are what the file says: those that no slurmd speaks for cannot run jobs.
    AsWritten,
    /// Every node is in state CLOUD: slurmctld plans with them alone, and reads gres.conf itself.
    Cloud,
}

/// Keys of a site that are replaced by those of one machine.
const SITE: &[&str] = &[
    "SlurmctldHost",
    "ProctrackType",
    "TaskPlugin",
    "ResumeProgram",
    "SuspendProgram",
    "HealthCheckProgram",
    "MpiDefault",
    "SwitchType",
    "StateSaveLocation",
    "AccountingStorageHost",
    "AccountingStorageBackupHost",
];

/// `slurm.conf` for one machine.
pub fn slurm_conf(text: &str, mode: Mode, folder: &Utf8Path, ports: Ports, user: &str) -> String {
    let Ports { slurmctld, slurmd, slurmdbd, .. } = ports;
    let mut out = format!(
        "SlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort={slurmctld}\nSlurmdPort={slurmd}\n\
         AuthType=auth/none\nCredType=cred/none\nSlurmUser={user}\nSlurmdUser={user}\n\
         StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool/%n\n\
         SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd.%n.pid\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
         MailProg=/bin/true\nSlurmdParameters=config_overrides\n\
         AccountingStorageHost=127.0.0.1\nAccountingStoragePort={slurmdbd}\n\
         ResumeProgram=/bin/true\nSuspendProgram=/bin/true\n\
         HealthCheckProgram=/bin/true\n"
    );
    let mut sleeps = false;
    for mut line in read(text) {
        let lead = line.lead().to_owned();
        sleeps |= lead == "SuspendTime";
        if SITE.contains(&lead.as_str()) || (mode == Mode::Cloud && lead == "SuspendExcNodes") {
            continue;
        }
        if lead == "NodeName" {
            line.set("NodeAddr", "127.0.0.1");
            if mode == Mode::Cloud {
                line.set("State", "CLOUD");
            }
        }
        out.push_str(&line.text());
        out.push('\n');
    }
    if !sleeps {
        out.push_str("SuspendTime=600\n");
    }
    out
}

/// `gres.conf` for one machine, with its devices in `folder`, and the devices that it names.
///
/// Nodes in state CLOUD cannot detect anything, so under [`Mode::Cloud`] what NVML would find on
/// them is listed, by the `Gres` of their lines in slurm.conf.
pub fn gres_conf(gres: &str, slurm: &str, mode: Mode, folder: &Utf8Path) -> (String, Vec<String>) {
    let mut lines = read(gres);
    if mode == Mode::Cloud {
        lines.retain(|line| line.get("Name").is_some());
        let nodes = read(slurm).into_iter().filter(|line| line.lead() == "NodeName");
        for node in nodes {
            let (Some(names), Some(gres)) = (node.get("NodeName"), node.get("Gres")) else {
                continue;
            };
            if lines.iter().any(|line| line.get("NodeName") == Some(names)) {
                continue;
            }
            for gres in gres.split(',') {
                let parts: Vec<&str> = gres.split(':').collect();
                let [name, kind, count] = parts.as_slice() else { continue };
                let last = count.parse::<u32>().unwrap_or(0).saturating_sub(1);
                let pair = |key: &str, value: String| (key.to_owned(), value);
                lines.push(Line(vec![
                    pair("NodeName", names.to_owned()),
                    pair("Name", (*name).to_owned()),
                    pair("Type", (*kind).to_owned()),
                    pair("File", format!("/dev/{}-[0-{last}]", kind.replace(['.', '+'], "_"))),
                ]));
            }
        }
    }
    let mut devices = Vec::new();
    let mut out = String::new();
    for mut line in lines {
        if let Some(file) = line.get("File").map(str::to_owned) {
            let here = file.replace("/dev/", &format!("{folder}/dev/"));
            devices.extend(expanded(&here));
            line.set("File", &here);
        }
        out.push_str(&line.text());
        out.push('\n');
    }
    (out, devices)
}

/// The names of a list with one bracket of one range, as our files of devices have it.
fn expanded(list: &str) -> Vec<String> {
    let Some((head, range)) = list.split_once('[') else { return vec![list.to_owned()] };
    let range = range.trim_end_matches(']');
    let mut names = Vec::new();
    for part in range.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let ends = first.parse::<u32>().ok().zip(last.parse::<u32>().ok());
        if let Some((first, last)) = ends {
            names.extend((first..=last).map(|number| format!("{head}{number}")));
        }
    }
    names
}
