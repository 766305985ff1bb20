//! Whole-process times of the release build: what `fleetc check` costs as a fleet grows, and what a
//! row of an inventory costs.
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

/// Rows of the inventories.
const ROWS: u64 = 1_000_000;
/// Counted runs over each inventory.
const INVENTORY_RUNS: usize = 5;

/// Times a check of fleets of several sizes, in range form, and of inventories.
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
    println!("inventories of {ROWS} rows, the same, median of {INVENTORY_RUNS} runs:");
    for (name, file, text) in [
        ("CSV", "nodes.csv", csv(false)),
        ("CSV, no two neighbours alike", "nodes.csv", csv(true)),
        ("JSON Lines", "nodes.jsonl", json_lines()),
    ] {
        let folder = scratch.join("inventory");
        put(&folder.join(file), &text)?;
        put(&folder.join("fleet.kdl"), &spec_of(file))?;
        let mut times = Vec::new();
        for _ in 0..INVENTORY_RUNS {
            times.push(check(&folder)?);
        }
        let (median, bytes) = (median(&mut times), text.len() >> 20);
        println!(
            "  {name}: {bytes} MiB, {} ms, {} ns a row",
            median / 1_000,
            median * 1_000 / ROWS
        );
    }
    Ok(())
}

/// The addresses of a DGX H100.
const PCI: [&str; 8] = ["1b", "43", "52", "61", "9d", "c3", "d1", "df"];

/// Racks of four nodes, each on a switch for each of two rails.
fn csv(mixed: bool) -> String {
    let pci = PCI.map(|bus| format!("0000:{bus}:00.0")).join(" ");
    let row = |n: u64| {
        let (rack, leaf) = (n / 4, n / 32);
        format!("n{n:07},train,r{rack:06},leaf{leaf:05}a leaf{leaf:05}b,{pci}\n")
    };
    // A stride that meets every number once.
    let at = |n: u64| if mixed { n * 7_919 % ROWS } else { n };
    "node,pool,rack,switch,pci\n".to_owned() + &(0..ROWS).map(|n| row(at(n))).collect::<String>()
}

fn json_lines() -> String {
    let pci = PCI.map(|bus| format!("\"0000:{bus}:00.0\"")).join(",");
    let row = |n: u64| {
        let rack = n / 4;
        format!(
            "{{\"node\":\"n{n:07}\",\"pool\":\"train\",\"rack\":\"r{rack:06}\",\"pci\":[{pci}]}}\n"
        )
    };
    (0..ROWS).map(row).collect()
}

fn spec_of(file: &str) -> String {
    let leaves = ROWS / 32;
    format!(
        "fleet \"big\"\ninventory \"{file}\"\n\
         cluster \"a\" {{ kubernetes \"1.36\" {{ distribution \"upstream\"; \
         gpu-operator \"26.7\" namespace=\"gpu-operator\"; driver \"580.105.08\" owner=\"os\"; queue \"none\" }} }}\n\
         pool \"train\" {{ cluster \"a\"; system \"dgx-h100\"; sharing \"whole\" }}\n\
         fabric \"compute\" kind=\"infiniband\" {{ \
         switch \"leaf[00000-{leaves:05}]a\"; switch \"leaf[00000-{leaves:05}]b\" }}\n"
    )
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
