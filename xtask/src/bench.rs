//! Whole-process times of the release build: what `fleetc check` costs as a fleet grows, what a row of
//! an inventory costs, what `fleetc compile` costs for a SuperPOD and for 320 of its units, and what a node
//! needs to find itself in its intent.
//!
//! CPU time of finished children, by getrusage; two commands in turn, so that a machine that slows
//! down slows both.

use std::process::{Command, Stdio};
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
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

/// Scalable units of the large SuperPOD, and counted runs of a compile.
const UNITS: u64 = 320;
const COMPILES: usize = 40;

/// Times a check of fleets of several sizes, in range form, and of inventories; and compiles.
pub fn run() -> Outcome {
    let built = Command::new("cargo")
        .args(["build", "--release", "--package", "fleetc", "--package", "fleetc-validate"])
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
    compiles(scratch)?;
    lookups(scratch)
}

/// Times the judgement of an empty snapshot against intents in which every node is known by itself: what
/// a large one costs more is the search.
#[expect(clippy::disallowed_methods, reason = "this is the benchmark that may read the clock")]
fn lookups(scratch: &Utf8Path) -> Outcome {
    println!(
        "fleetc-validate check of one node, whole process, least and median of {COMPILES} runs, in ms:"
    );
    let snapshot = scratch.join("snapshot.json");
    put(&snapshot, "{\"schema\":\"fleetc/snapshot/v2\",\"node\":\"n000005\",\"state\":{}}")?;
    for nodes in [SIZES.first(), SIZES.last()].into_iter().flatten() {
        let (spec, out) = (scratch.join("known"), scratch.join("known-out"));
        let rows: String = (0..*nodes).map(known).collect();
        put(&spec.join("nodes.csv"), &format!("node,pool,rack,pci\n{rows}"))?;
        put(&spec.join("fleet.kdl"), &spec_of("nodes.jsonl").replace("nodes.jsonl", "nodes.csv"))?;
        fleetc(&["compile", spec.as_str(), "-o", out.as_str()])?;
        let mut times = Vec::new();
        for _ in 0..=COMPILES {
            let start = Instant::now();
            Command::new(released("fleetc-validate"))
                .args(["check", "--node", "n000005", "--format", "line", "--intent"])
                .arg(out.join("clusters/a/intent"))
                .args(["--source", &format!("snapshot:{snapshot}")])
                .stdout(Stdio::null())
                .status()?;
            times.push(u64::try_from(start.elapsed().as_micros())?);
        }
        println!("  {nodes:>7} nodes  {}", spread(&mut times));
    }
    Ok(())
}

/// A row of a node with addresses of its own, in a rack of 32.
fn known(node: u64) -> String {
    let address = |bus: &str| format!("{:04x}:{bus}:{:02x}.0", node / 32, node % 32);
    let pci = PCI.map(address).join(" ");
    format!("n{node:06},train,r{:04},{pci}\n", node / 32)
}

/// A program of the release build.
fn released(name: &str) -> Utf8PathBuf {
    let target = option_env!("CARGO_TARGET_DIR").unwrap_or("target");
    repository().join(target).join("release").join(name)
}

/// Times compiles into an empty folder, and over one that holds the same already.
#[expect(clippy::disallowed_methods, reason = "this is the benchmark that may read the clock")]
fn compiles(scratch: &Utf8Path) -> Outcome {
    println!("fleetc compile, whole process, least and median of {COMPILES} runs, in ms:");
    let large = scratch.join("superpods");
    put(&large.join("fleet.kdl"), &superpods(UNITS))?;
    for (name, spec) in [
        ("127 nodes".to_owned(), repository().join("fleets/superpod-h100")),
        (format!("{} nodes", UNITS * 32), large),
    ] {
        let out = scratch.join("out");
        for empty in [true, false] {
            let (mut walls, mut cpus) = (Vec::new(), Vec::new());
            for round in 0..=COMPILES {
                if empty && out.exists() {
                    std::fs::remove_dir_all(&out)?;
                }
                let start = Instant::now();
                let cpu = fleetc(&["compile", spec.as_str(), "-o", out.as_str()])?;
                // The first run warms the caches of the machine.
                if round > 0 {
                    walls.push(u64::try_from(start.elapsed().as_micros())?);
                    cpus.push(cpu);
                }
            }
            let into = if empty { "empty folder" } else { "unchanged" };
            println!(
                "  {name:<12} {into:<13} wall {}  CPU {}",
                spread(&mut walls),
                spread(&mut cpus)
            );
        }
        std::fs::remove_dir_all(&out)?;
    }
    Ok(())
}

/// Least and median of microseconds, in milliseconds.
fn spread(times: &mut [u64]) -> String {
    let median = median(times);
    let least = times.first().copied().unwrap_or(0);
    let ms = |micros: u64| format!("{}.{}", micros / 1_000, micros % 1_000 / 100);
    format!("{} / {}", ms(least), ms(median))
}

/// A fleet with the shape of `fleets/superpod-h100`, of so many scalable units of 32 nodes: eight leaves
/// a unit, 16 spines for four units, 64 cores, eight racks a unit; ten classes of nodes.
fn superpods(units: u64) -> String {
    let nodes = units * 32;
    let list = |first: u64, last: u64| format!("dgx[{first:05}-{last:05}]");
    let mut spec = "fleet \"superpods\"\n\
        cluster \"superpod\" { slurm \"25.05\" { controllers \"bcm[1-2]\"; database \"bcm3\"; \
        driver \"580.105.08\" owner=\"os\"; gres autodetect=\"nvml\"; preempt \"qos\" mode=\"requeue\"; \
        topology \"tree\" fabric=\"compute\"\n"
        .to_owned();
    // Four pools of whole GPUs, of which four nodes each lack one; then two small pools.
    let large = nodes * 23 / 100;
    for pool in 0..4 {
        spec += &format!(
            "partition \"p{pool}\" {{ pools \"train{pool}\"; max-time \"7d\"; default-time \"4h\" }}\n"
        );
    }
    spec += "partition \"people\" { pools \"people\"; max-time \"12h\"; default-time \"2h\"; tiers \"interactive\" }\n\
        partition \"debug\" { pools \"debug\"; max-time \"1d\"; default-time \"1h\" } } }\n\
        tier \"interactive\" priority=800 { max-gpus-per-job 8; max-time \"12h\" }\n\
        tier \"scavenge\" priority=100 preemptible=#true\n\
        node-policy \"all\" { driver \">=580\"; ecc #true; persistence #true; nvlink active=18 }\n\
        monitoring { exporter \"dcgm-exporter\" version=\"4.8.3\" }\n";
    for pool in 0..4 {
        let (first, last) = (pool * large + 1, (pool + 1) * large);
        let holes: Vec<String> =
            (1..=4).map(|hole| format!("{:05}", first + hole * large / 5)).collect();
        spec += &format!(
            "pool \"train{pool}\" {{ cluster \"superpod\"; system \"dgx-h100\"; nodes \"{}\"; sharing \"whole\"; \
             exception node=\"dgx[{}]\" {{ missing 3 }}; max-unavailable 16 }}\n",
            list(first, last),
            holes.join(",")
        );
    }
    let (people, debug) = (4 * large, 4 * large + nodes / 25);
    spec += &format!(
        "pool \"people\" {{ cluster \"superpod\"; system \"dgx-h100\"; nodes \"{}\"; sharing \"whole\" }}\n\
         pool \"debug\" {{ cluster \"superpod\"; system \"dgx-h100\"; nodes \"{}\"; \
         sharing \"mig\" strategy=\"mixed\" {{ gpus \"0-3\" {{ slice \"1g.10gb\" count=7 }}; \
         gpus \"4-7\" {{ slice \"3g.40gb\" count=2 }} }} }}\n",
        list(people + 1, debug),
        list(debug + 1, nodes)
    );
    spec += "fabric \"compute\" kind=\"infiniband\" rate=\"400Gb/s\" {\nswitch \"core[01-64]\"\n";
    for group in 0..units.div_ceil(4) {
        spec += &format!("switch \"g{group}-spine[01-16]\" uplinks=\"core[01-64]\"\n");
    }
    let unit_nodes = |unit: u64| list(unit * 32 + 1, unit * 32 + 32);
    for unit in 0..units {
        let (group, nodes) = (unit / 4, unit_nodes(unit));
        spec += &format!(
            "switch \"u{unit}-leaf[1-8]\" uplinks=\"g{group}-spine[01-16]\"\n\
             attach \"u{unit}-leaf[1-8]\" nodes=\"{nodes}\" rails=8\n"
        );
    }
    spec += "}\n";
    for unit in 0..units {
        let nodes = unit_nodes(unit);
        spec += &format!("rack \"u{unit}-r[1-8]\" nodes=\"{nodes}\" power=\"44kW\"\n");
    }
    // Twelve teams, three a pool, each with two workloads.
    for team in 0..12 {
        let (pool, held) = (team / 3, large * 2 / 64 * 64);
        spec += &format!(
            "team \"t{team}\" {{ quota \"train{pool}\" guaranteed={held} limit={}; weight {} }}\n",
            held * 2,
            team % 3 + 1
        );
        for gpus in [64, 256] {
            spec += &format!(
                "workload \"w{team}-{gpus}\" {{ team \"t{team}\"; pool \"train{pool}\"; kind \"pretrain\"; gpus {gpus}; \
                 gang contiguous=#true; network \"compute\"; memory \"60GiB\"; checkpoint every=\"30m\" }}\n"
            );
        }
    }
    spec
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

/// Without a GPU Operator: no ConfigMap takes the bundle of a million nodes in 250,000 racks. Rows of
/// JSON name no switches.
fn spec_of(file: &str) -> String {
    let last = ROWS / 32 - 1;
    let fabric = match file.ends_with(".csv") {
        true => format!(
            "fabric \"compute\" kind=\"infiniband\" {{ \
             switch \"leaf[00000-{last:05}]a\"; switch \"leaf[00000-{last:05}]b\" }}\n"
        ),
        false => String::new(),
    };
    format!(
        "fleet \"big\"\ninventory \"{file}\"\n\
         cluster \"a\" {{ kubernetes \"1.36\" {{ distribution \"upstream\"; \
         driver \"580.105.08\" owner=\"os\"; queue \"none\" }} }}\n\
         pool \"train\" {{ cluster \"a\"; system \"dgx-h100\"; sharing \"whole\" }}\n{fabric}"
    )
}

/// Microseconds of CPU that one check takes.
fn check(spec: &Utf8Path) -> Result<u64, Box<dyn std::error::Error>> {
    fleetc(&["check", spec.as_str()])
}

/// Microseconds of CPU that one run takes.
fn fleetc(args: &[&str]) -> Result<u64, Box<dyn std::error::Error>> {
    let spent = || -> nix::Result<i64> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
        Ok(micros(usage.user_time()) + micros(usage.system_time()))
    };
    let before = spent()?;
    let status = Command::new(released("fleetc"))
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(format!("fleetc {} failed", args.join(" ")).into());
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
