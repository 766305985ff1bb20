//! Programs that the machine does not have in the release that is needed: built from Go modules, with
//! versions and sums that are fixed, into `target/conformance/bin`. A program is built anew only when
//! its name there, which holds the version, is not there.

use std::hash::{DefaultHasher, Hasher};
use std::process::Command;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_tests::{folder, repository};
use serde_json::Value;

use crate::put;

type Failure = Box<dyn std::error::Error>;

/// Modules of ours: the folder, and the module whose version counts. Their `go.sum` fixes the rest.
const MODULES: &str = "tests/conformance/kube";
const ETCD: &str = "go.etcd.io/etcd/server/v3";
const KUBERNETES: &str = "k8s.io/kubernetes";

/// Programs that are modules themselves.
const KUEUE: (&str, &str) = ("sigs.k8s.io/kueue", "v0.19.2");
/// Prometheus 3 numbers its Go module so that 3.16.0 is 0.316.0.
const PROMTOOL: (&str, &str) = ("github.com/prometheus/prometheus", "v0.316.0");
const AMTOOL: (&str, &str) = ("github.com/prometheus/alertmanager", "v0.35.0");

/// Where the programs are.
#[derive(Debug)]
pub struct Programs {
    /// etcd.
    pub etcd: Utf8PathBuf,
    /// kube-apiserver, kube-controller-manager, kube-scheduler, kubectl: its first argument picks one.
    pub controlplane: Utf8PathBuf,
    /// Kueue's manager.
    pub kueue: Utf8PathBuf,
    /// Kueue's CustomResourceDefinitions and webhooks.
    pub kueue_files: Utf8PathBuf,
    /// promtool of Prometheus 3.
    pub promtool: Utf8PathBuf,
    /// amtool.
    pub amtool: Utf8PathBuf,
}

impl Programs {
    /// All of them; builds what is missing.
    pub fn all() -> Result<Self, Failure> {
        // This program stands in `target/debug`.
        let here = Utf8PathBuf::try_from(std::env::current_exe()?)?;
        let target = here.ancestors().nth(2).ok_or("xtask stands in no target folder")?;
        let bin = target.join("conformance/bin");
        std::fs::create_dir_all(&bin)?;
        Ok(Self {
            etcd: of_module(&bin, "etcd", ETCD)?,
            promtool: of_tool(&bin, "cmd/promtool", PROMTOOL)?,
            amtool: of_tool(&bin, "cmd/amtool", AMTOOL)?,
            kueue: of_tool(&bin, "cmd/kueue", KUEUE)?,
            kueue_files: kueue_files(&bin)?,
            controlplane: of_module(&bin, "controlplane", KUBERNETES)?,
        })
    }

    /// The minor release of Kueue, as a spec writes it.
    pub fn kueue_release(&self) -> String {
        minor(KUEUE.1).replace("v", "")
    }
}

/// `v1.37` of `v1.37.2`.
fn minor(version: &str) -> String {
    version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
}

/// A program of ours. What it is made of is in its name, so that an edit builds it anew.
fn of_module(bin: &Utf8Path, name: &str, counts: &str) -> Result<Utf8PathBuf, Failure> {
    let module = repository().join(MODULES).join(name);
    let files = folder(&module)?;
    let mut hasher = DefaultHasher::new();
    for (path, text) in &files {
        hasher.write(path.as_bytes());
        hasher.write(text.as_bytes());
    }
    let required = files.get("go.mod").map_or("", String::as_str);
    let lines = required.lines().map(|line| line.trim().trim_start_matches("require "));
    let version = lines.filter_map(|line| line.strip_prefix(counts)?.split(' ').nth(1)).next();
    let version = version.ok_or_else(|| format!("{module}/go.mod does not require {counts}"))?;
    let path = bin.join(format!("{name}-{version}-{:08x}", hasher.finish() >> 32));
    if path.exists() {
        return Ok(path);
    }
    // Kueue refuses a server that does not say its version.
    let number = minor(version);
    let (major, of_major) = number.trim_start_matches('v').split_once('.').unwrap_or_default();
    let variable = "-X k8s.io/component-base/version";
    let link = format!(
        "-s -w {variable}.gitVersion={version} {variable}.gitMajor={major} {variable}.gitMinor={of_major}"
    );
    let made = Utf8PathBuf::from(format!("{path}.part"));
    let args =
        ["build", "-buildvcs=false", "-trimpath", "-ldflags", &link, "-o", made.as_str(), "."];
    build(&format!("{name} {version}"), &args, &module, None)?;
    std::fs::rename(&made, &path)?;
    Ok(path)
}

/// A program of a module that is one.
fn of_tool(
    bin: &Utf8Path,
    package: &str,
    (module, version): (&str, &str),
) -> Result<Utf8PathBuf, Failure> {
    let name = package.rsplit('/').next().unwrap_or(package);
    let path = bin.join(format!("{name}-{version}"));
    if path.exists() {
        return Ok(path);
    }
    let made = tempfile::tempdir_in(bin)?;
    let made = Utf8Path::from_path(made.path()).ok_or("the folder is not UTF-8")?;
    let what = format!("{module}/{package}@{version}");
    let args = ["install", "-trimpath", "-ldflags", "-s -w", &what];
    build(&format!("{name} {version}"), &args, bin, Some(made))?;
    std::fs::rename(made.join(name), &path)?;
    Ok(path)
}

/// The files of Kueue's module that are installed beside it.
fn kueue_files(bin: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    let (module, version) = KUEUE;
    let path = bin.join(format!("kueue-{version}-files"));
    if path.exists() {
        return Ok(path);
    }
    let what = format!("{module}@{version}");
    let said = go(&["mod", "download", "-json", &what], bin, None)?;
    let said: Value = serde_json::from_str(&said)?;
    let from = said.get("Dir").and_then(Value::as_str).ok_or("go names no folder of Kueue")?;
    let from = Utf8Path::new(from).join("config/components");
    let made = Utf8PathBuf::from(format!("{path}.part"));
    for (name, text) in folder(&from.join("crd/bases"))? {
        put(&made.join("crds").join(name), &text)?;
    }
    for (file, name) in
        [("crd/kustomization.yaml", "crds.yaml"), ("webhook/manifests.yaml", "webhooks.yaml")]
    {
        put(&made.join(name), &std::fs::read_to_string(from.join(file))?)?;
    }
    std::fs::rename(&made, &path)?;
    Ok(path)
}

/// Builds, and says so before and after: a cold build takes minutes.
#[expect(clippy::disallowed_methods, reason = "tells how long it took")]
fn build(what: &str, args: &[&str], at: &Utf8Path, bin: Option<&Utf8Path>) -> Result<(), Failure> {
    println!("building {what} from its Go module; the first time takes minutes");
    let start = Instant::now();
    go(args, at, bin)?;
    println!("built {what} in {} s", start.elapsed().as_secs());
    Ok(())
}

fn go(args: &[&str], at: &Utf8Path, bin: Option<&Utf8Path>) -> Result<String, Failure> {
    let mut command = Command::new("go");
    command.args(args).current_dir(at).env("CGO_ENABLED", "0");
    command.envs(bin.map(|bin| ("GOBIN", bin)));
    let output = command.output().map_err(|error| {
        format!("go cannot be run ({error}): conformance needs it, in release 1.26 or later")
    })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("go {}: {said}", args.join(" ")).into())
        }
    }
}
