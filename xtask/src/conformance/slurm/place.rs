//! Where Slurm runs: on this machine as it is, or in the root of another release of Debian, which has
//! another release of Slurm.
//!
//! A root is made once, by debootstrap, and kept in the target folder. Whatever it needs mounted is
//! mounted for one process alone, in a mount namespace that ends with it: nothing is left behind, and
//! nothing is ever removed through a mount.

use std::process::Command;
use std::thread;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_schema::version::{Known, SlurmRelease, Version};

use super::super::tool;
use super::Failure;

/// Releases of Debian with a Slurm that is newer than that of the machine. `sid` moves: it has the
/// newest that there is.
const SUITES: &[&str] = &["trixie", "sid"];
const PACKAGES: &str = "--include=slurmctld,slurmd,slurm-client,slurmdbd";

/// Enters a root with a folder of this machine under the same path, and becomes a program there.
const ENTER: &str = "set -e
root=$1 shared=$2
shift 2
mount -t proc proc \"$root/proc\"
mount --rbind /sys \"$root/sys\"
mount -t tmpfs tmpfs \"$root/tmp\"
mkdir -p \"$root$shared\"
mount --bind \"$shared\" \"$root$shared\"
touch \"$root/etc/hosts\"
mount --bind /etc/hosts \"$root/etc/hosts\"
exec chroot \"$root\" \"$@\"";

/// Where Slurm runs.
#[derive(Debug, Clone)]
pub struct Place {
    /// The release of Debian, or `machine`.
    pub name: String,
    /// The release of Slurm.
    pub release: SlurmRelease,
    root: Option<Utf8PathBuf>,
}

impl Place {
    /// Every place, or the one of a name: the machine, then the roots, which are made if they are not
    /// there.
    pub fn all(scratch: &Utf8Path, only: Option<&str>) -> Result<Vec<Self>, Failure> {
        let is_meant = |name: &str| only.is_none_or(|only| only == name);
        let suites = || SUITES.iter().copied().filter(|suite| is_meant(suite));
        let made: Vec<Result<Utf8PathBuf, String>> = thread::scope(|scope| {
            let one = |suite: &'static str| {
                move || root(suite).map_err(|error| format!("root of {suite}: {error}"))
            };
            let running: Vec<_> = suites().map(|suite| scope.spawn(one(suite))).collect();
            let ended = running.into_iter().map(|handle| match handle.join() {
                Ok(made) => made,
                Err(_) => Err("the thread that made a root ended early".to_owned()),
            });
            ended.collect()
        });
        let mut places = Vec::new();
        if is_meant("machine") {
            places.push(Self::of("machine", None, scratch)?);
        }
        for (suite, root) in suites().zip(made) {
            places.push(Self::of(suite, Some(root?), scratch)?);
        }
        Ok(places)
    }

    fn of(name: &str, root: Option<Utf8PathBuf>, scratch: &Utf8Path) -> Result<Self, Failure> {
        let mut place = Self { name: name.to_owned(), release: SlurmRelease::V22_05, root };
        let output = place.command(scratch, "slurmctld").arg("-V").output();
        let output = output
            .map_err(|error| format!("slurmctld cannot be run ({error}): conformance needs it"))?;
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        let number = said.split_whitespace().last().unwrap_or_default();
        let version = number.parse::<Version>().map_err(|_| format!("{name}: {said}"))?;
        place.release = match SlurmRelease::of(&version) {
            Known::Yes(release) | Known::Newer(release) => release,
            Known::TooOld | Known::No => {
                return Err(format!("nothing is written for {said}").into());
            }
        };
        println!("slurmctld of {name}: {}, read as {}", said.trim(), place.release);
        Ok(place)
    }

    /// A program there. It sees the folder `shared` under the same path as this process.
    pub fn command(&self, shared: &Utf8Path, program: &str) -> Command {
        let Some(root) = &self.root else { return Command::new(program) };
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--", "sh", "-c", ENTER, "sh"]);
        command.args([root.as_str(), shared.as_str(), program]);
        command
    }
}

/// The root of a release of Debian.
fn root(suite: &str) -> Result<Utf8PathBuf, Failure> {
    // This program is `xtask` in a folder of the target folder.
    let program = Utf8PathBuf::try_from(std::env::current_exe()?)?;
    let target = program.ancestors().nth(2).ok_or("the target folder is not known")?;
    let folder = target.join("conformance");
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize_utf8()?;
    let root = folder.join(format!("slurm-{suite}"));
    if root.exists() {
        return Ok(root);
    }
    if tool("id", &["-u"], &folder)?.trim() != "0" {
        return Err("only root can make it".into());
    }
    // One that was not finished is made anew.
    let part = folder.join(format!("slurm-{suite}.part"));
    if part.exists() {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
        let mut points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
        if let Some(point) = points.find(|point| Utf8Path::new(point).starts_with(&part)) {
            return Err(format!("{point} is mounted: unmount it, and remove {part}").into());
        }
        std::fs::remove_dir_all(&part)?;
    }
    let mirror = mirror()?;
    println!("making a root of {suite} with debootstrap");
    let alone = ["--mount", "--propagation", "private", "--", "debootstrap", "--variant=minbase"];
    let asked = [PACKAGES, suite, part.as_str(), mirror.as_str()];
    tool("unshare", &[&alone[..], &asked[..]].concat(), &folder)
        .map_err(|error| last_lines(&error.to_string()))?;
    // What was fetched is installed.
    std::fs::remove_dir_all(part.join("var/cache/apt/archives"))?;
    std::fs::rename(&part, &root)?;
    Ok(root)
}

/// The mirror of Debian that this machine installs from, as its sources name it.
fn mirror() -> Result<String, Failure> {
    let mut files = vec![Utf8PathBuf::from("/etc/apt/sources.list")];
    if let Ok(folder) = Utf8Path::new("/etc/apt/sources.list.d").read_dir_utf8() {
        let mut more: Vec<_> = folder.filter_map(Result::ok).map(|e| e.into_path()).collect();
        more.sort();
        files.extend(more);
    }
    let texts = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    let all: Vec<String> = texts.collect();
    // `URIs: ADDRESS …`, or `deb [OPTIONS] ADDRESS SUITE …`.
    let words = all.iter().flat_map(|text| text.lines()).flat_map(|line| {
        let lead = ["URIs:", "deb "].into_iter().find_map(|lead| line.strip_prefix(lead));
        lead.unwrap_or_default().split_whitespace()
    });
    let mut archives = words.filter(|word| word.trim_end_matches('/').ends_with("/debian"));
    let found = archives.next().map(str::to_owned);
    found.ok_or_else(|| "apt's sources name no mirror of Debian".into())
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(12)..).unwrap_or_default().join("\n")
}
