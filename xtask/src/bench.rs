//! Whole-process times of the release build: what `fleetc check` costs as a fleet grows.
//!
//! CPU time of finished children, by getrusage; two commands in turn, so that a machine that slows
//! down slows both.

use std::process::{Command, Stdio};

use camino::Utf8Path;
use fleetc_tests::repository;
use nix::sys::resource::{UsageWho, getrusage};

use crate::{Outcome, put};

/// Counted runs of each command, after one that is not counted.
const RUNS: usize = 30;
/// Sizes in nodes; the first is what the others are held against.
const SIZES: [u64; 4] = [10, 1_000, 10_000, 100_000];

/// Times a check of fleets of several sizes, in range form.
pub fn run() -> Outcome {
    let built = Command::new("cargo")
        .args(["build", "--release", "--package", "fleetc"])
        .current_dir(repository())
        .status()?;
    if !built.success() {
        return Err("the release build failed".into());
    }
    let scratch = tempfile::tempdir()?;
    let scratch = Utf8Path::from_path(scratch.path()).ok_or("the temporary folder is not UTF-8")?;
    let mut times: Vec<Vec<u64>> = vec![Vec::new(); SIZES.len()];
    for (size, nodes) in SIZES.iter().enumerate() {
        put(&scratch.join(size.to_string()).join("fleet.kdl"), &fleet(*nodes))?;
    }
    for round in 0..=RUNS {
        for (size, times) in times.iter_mut().enumerate() {
            let spent = check(&scratch.join(size.to_string()))?;
            if round > 0 {
                times.push(spent);
            }
        }
    }
    println!("fleetc check, whole process, CPU time, median of {RUNS} runs:");
    let medians: Vec<u64> = times.iter_mut().map(|times| median(times)).collect();
    let base = medians.first().copied().unwrap_or(1).max(1);
    for (nodes, median) in SIZES.iter().zip(&medians) {
        let percent = median * 100 / base;
        println!("  {nodes:>7} nodes  {:>2}.{:03} ms  {percent} %", median / 1_000, median % 1_000);
    }
    Ok(())
}

/// Microseconds of CPU that one check takes.
fn check(spec: &Utf8Path) -> Result<u64, Box<dyn std::error::Error>> {
    let spent = || -> nix::Result<i64> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
        Ok(micros(usage.user_time()) + micros(usage.system_time()))
    };
    let before = spent()?;
    let status = Command::new(repository().join("target/release/fleetc"))
        .args(["check", spec.as_str()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(format!("check of {spec} failed").into());
    }
    Ok(u64::try_from(spent()? - before)?)
}

fn median(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

/// Two Slurm clusters that share this many nodes.
fn fleet(nodes: u64) -> String {
    let half = nodes / 2;
    let width = half.to_string().len();
    let mut spec = "fleet \"big\"\n".to_owned();
    for name in ["a", "b"] {
        let list = format!("{name}[{:0width$}-{half:0width$}]", 1);
        spec += &format!(
            "cluster \"{name}\" {{ slurm \"24.11\" {{ controllers \"ctl{name}\"; \
             gres autodetect=\"nvml\"; driver \"580.105.08\" owner=\"os\"; \
             partition \"gpu\" {{ pools \"{name}\" }} }} }}\n\
             pool \"{name}\" {{ cluster \"{name}\"; system \"dgx-h100\"; nodes \"{list}\"; \
             sharing \"whole\"; exception node=\"{name}{:0width$}\" {{ missing 3 }} }}\n\
             rack \"r{name}\" nodes=\"{list}\"\n",
            2
        );
    }
    spec + "team \"x\" { quota \"a\" guaranteed=8 }\nmonitoring { exporter \"dcgm-exporter\" version=\"4.8.3\" }\n"
}
