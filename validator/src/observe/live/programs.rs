//! What programs and agents of the node say: versions of services, slurmd's generic resources, the Node
//! of Kubernetes. Each is asked once and waited for no longer than it must be.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::host::MAX_BYTES;
use crate::state::{Allocatable, Reading, SlurmGres};

/// How long a program is waited for that only says its version.
const VERSION_DEADLINE: Duration = Duration::from_secs(2);

/// How long slurmd is waited for, which asks the driver itself.
const SLURMD_DEADLINE: Duration = Duration::from_secs(10);

/// The version that a program says it has.
pub(super) fn version(program: &Path) -> Reading<String> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    if !program.exists() {
        return Reading::NotApplicable(format!("{name} is not installed"));
    }
    match output(Command::new(program).arg("--version"), VERSION_DEADLINE) {
        Ok(text) => match dotted_version(&text) {
            Some(version) => Reading::Value(version),
            None => Reading::Unknown(format!("{name} --version names no version")),
        },
        Err(why) => Reading::Unknown(format!("{name} --version: {why}")),
    }
}

/// The first word that is two or more numbers with dots between.
pub(super) fn dotted_version(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        word.contains('.')
            && word
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    text.split_whitespace().find(is_version).map(str::to_owned)
}

/// What a program prints on both streams, within its deadline.
#[expect(
    clippy::disallowed_methods,
    reason = "a deadline needs a clock; it reaches no output but as a reading that is missing"
)]
fn output(command: &mut Command, deadline: Duration) -> Result<String, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let until = Instant::now() + deadline;
    let (sender, lines) = std::sync::mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    ];
    for stream in streams.into_iter().flatten() {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stream.take(1 << 20).read_to_end(&mut bytes);
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    drop(sender);
    let mut text = String::new();
    loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(more) => text.push_str(&more),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                return Err(format!("no answer in {} s", deadline.as_secs()));
            }
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(text),
        Ok(status) => {
            let last = text.lines().last().unwrap_or_default();
            Err(format!("{status}: {last}"))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// `slurmd -G`: `Gres Name=gpu Type=h100 Count=1 … File=/dev/nvidia0 …`, a line each.
pub(super) fn slurm_gres(slurmd: &Path) -> Reading<Vec<SlurmGres>> {
    let text = match output(Command::new(slurmd).arg("-G"), SLURMD_DEADLINE) {
        Ok(text) => text,
        Err(why) => return Reading::Unknown(format!("slurmd -G: {why}")),
    };
    let found: Vec<SlurmGres> = text.lines().filter_map(gres).collect();
    match found.is_empty() {
        // It prints nothing without root, and does not say so.
        true => Reading::Unknown("slurmd -G prints no Gres: it takes root".to_owned()),
        false => Reading::Value(found),
    }
}

fn gres(line: &str) -> Option<SlurmGres> {
    let (_, fields) = line.split_once("Gres Name=")?;
    let mut words = fields.split_whitespace();
    let name = words.next()?.to_owned();
    let (mut kind, mut count, mut files) = (None, None, Vec::new());
    for word in words {
        match word.split_once('=') {
            Some(("Type", value)) => kind = Some(value.to_owned()),
            Some(("Count", value)) => count = value.parse().ok(),
            Some(("File", value)) => files.extend(value.split(',').map(str::to_owned)),
            _ => {}
        }
    }
    Some(SlurmGres { name, kind, count: count?, files })
}

/// The Node of Kubernetes: `kubectl get node NAME -o json`.
pub(super) fn kubernetes(file: &Path) -> Reading<Allocatable> {
    #[derive(Deserialize)]
    struct Node {
        metadata: Metadata,
        status: Status,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default)]
        labels: std::collections::BTreeMap<String, String>,
    }
    #[derive(Deserialize)]
    struct Status {
        #[serde(default)]
        allocatable: std::collections::BTreeMap<String, String>,
    }
    const PREFIX: &str = "nvidia.com/";
    let unknown = |why: String| Reading::Unknown(format!("{}: {why}", file.display()));
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    if let Err(error) = read {
        return unknown(error.to_string());
    }
    let node: Node = match serde_json::from_slice(&bytes) {
        Ok(node) => node,
        Err(error) => return unknown(error.to_string()),
    };
    let ours = |name: &String| name.starts_with(PREFIX);
    let resources = node.status.allocatable.into_iter().filter(|(name, _)| ours(name));
    let resources = resources.map(|(name, count)| Some((name, count.parse().ok()?)));
    let Some(resources) = resources.collect() else {
        return unknown("an extended resource is no whole number".to_owned());
    };
    let labels = node.metadata.labels.into_iter().filter(|(name, _)| ours(name)).collect();
    Reading::Value(Allocatable { resources, labels })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let module = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.105.08  Release \
                      Build  (dvs-builder@U22)  Wed Oct 29 23:15:11 UTC 2025";
        assert_eq!(dotted_version(module).as_deref(), Some("580.105.08"));
        let manager = "Fabric Manager version is : 580.105.08\n";
        assert_eq!(dotted_version(manager).as_deref(), Some("580.105.08"));
        assert_eq!(dotted_version("no version at v1.2 all."), None);
    }

    #[test]
    fn gres_of_slurmd_are_read() {
        let line = "slurmd: Gres Name=gpu Type=h100 Count=1 Index=0 ID=7696487 \
                    File=/dev/nvidia0 Links=-1,18 Flags=HAS_FILE,HAS_TYPE,ENV_NVML";
        let expected = SlurmGres {
            name: "gpu".into(),
            kind: Some("h100".into()),
            count: 1,
            files: vec!["/dev/nvidia0".into()],
        };
        assert_eq!(gres(line), Some(expected));
        assert_eq!(gres("slurmd: error: something"), None);
    }
}
