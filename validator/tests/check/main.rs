//! `fleetc-validate check`, from the command line to the report, in process.

#![cfg(test)]

#[cfg(unix)]
mod drain;
mod fleet;
mod outputs;
mod refusals;

use std::ffi::OsString;
use std::fs;
use std::io;

use fleetc_validate::cli::{self, Environment};
use serde_json::{Value, json};

use fleet::{check, check_changed, check_with, run, snapshot, stage, write};

#[test]
fn a_node_that_conforms() {
    let run = check(&stage());
    let text = "\
mig01: conforms to lab (class slices.hpc)

  ✓ 71 checks passed

  blocking: 0   warning: 0   undecided: 0
";
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, text, ""));
}

#[test]
fn a_missing_instance_is_found_with_its_spec_line_and_the_command() {
    let run = check_changed(|node| {
        let instances = &mut node["gpus"]["value"][1]["gpu_instances"]["value"];
        instances.as_array_mut().unwrap().pop();
        node["gpus"]["value"][1]["mig_devices"]["value"].as_array_mut().unwrap().pop();
    });
    let text = "\
mig01: does not conform to lab (class slices.hpc)

  ✗ mig.layout  GPU 1 00000000:43:00.0  wants 7 × 1g.10gb (at 0-6), has 6 × 1g.10gb (at 0-5)  \
lab/fleet.kdl:33
                do: nvidia-smi mig -i 00000000:43:00.0 -cgi 19:6 -C
  ✓ 69 more checks passed

  blocking: 1   warning: 0   undecided: 0
";
    assert_eq!((run.code, run.out.as_str()), (1, text));
}

#[test]
fn findings_come_by_severity_and_an_unwritten_item_points_to_its_ancestor() {
    let run = check_changed(|node| {
        let gpus = &mut node["gpus"]["value"];
        gpus[0]["gpu_instances"] = json!({ "unknown": "no permission\u{1b}[2J" });
        gpus[1]["mig_mode"] = json!({ "value": { "current": true, "pending": false } });
        gpus[2]["memory_mib"] = json!({ "value": 40_000 });
    });
    let text = "\
mig01: does not conform to lab (class slices.hpc)

  ✗ gpu.model   GPU 2 00000000:52:00.0  wants h100-sxm5-80gb (PCI device id 0x2330, 80000-83000 \
MiB), has NVIDIA H100 80GB HBM3 (PCI device id 0x2330, 40000 MiB)  lab/fleet.kdl:29
                do: put the right GPU in, or change the pool's `system` in the spec
  ! mig.mode    GPU 1 00000000:43:00.0  wants MIG mode on, and to stay so, has MIG mode on, off \
pending  lab/fleet.kdl:33
                do: nvidia-smi -i 00000000:43:00.0 -mig 1
  ? mig.layout  GPU 0 00000000:1b:00.0  wants 7 × 1g.10gb (at 0-6); GPU instances unknown: no \
permission\\u{1b}[2J  lab/fleet.kdl:33
                do: check again as root: only root may list GPU instances
  ✓ 60 more checks passed

  blocking: 1   warning: 1   undecided: 1
";
    assert_eq!((run.code, run.out.as_str()), (1, text));
}

#[test]
fn a_lost_gpu_is_found_by_count_and_points_to_the_exception() {
    let run = check_changed(|node| {
        node["gpus"]["value"].as_array_mut().unwrap().remove(0);
        node["driver_state"]["gpu_count"]["value"] = json!(2);
    });
    let text = "  ✗ gpu.count  wants 3 GPUs, has 3 on PCI, 2 in NVML, not in NVML: 00000000:1b:00.0  \
                lab/fleet.kdl:36\n";
    assert!(run.out.contains(text), "{}", run.out);
    // PCI tells which two are left, so their layouts are judged, and hold.
    assert!(run.out.contains("✓ 51 more checks passed"), "{}", run.out);
    assert_eq!(run.code, 1);
}

#[test]
fn warnings_alone_conform() {
    let run = check_changed(|node| {
        node["gpus"]["value"][0]["device_id"] = json!({ "value": "0x2339" });
    });
    assert!(run.out.contains("  ! gpu.model  GPU 0 "), "{}", run.out);
    assert_eq!(run.code, 0);
}

#[test]
fn a_snapshot_of_version_1_is_still_read() {
    let kept = ["driver", "pci_gpus", "gpus"];
    let (dir, mut node) = (stage(), snapshot());
    node["state"].as_object_mut().unwrap().retain(|field, _| kept.contains(&field.as_str()));
    write(dir.path(), "node.json", &node.to_string());
    let new = check(&dir);
    let mut old = node["state"].clone();
    old["schema"] = json!("fleetc/snapshot/v1");
    old["node"] = json!("mig01");
    write(dir.path(), "node.json", &old.to_string());
    let old = check(&dir);
    assert_eq!((old.code, &old.out), (new.code, &new.out), "{}", old.err);
    // It knows nothing of the kernel log, say, so it proves nothing.
    assert!(old.out.contains("  ? log.xid "), "{}", old.out);
    assert_eq!(old.code, 2);
}

#[test]
fn what_cannot_be_read_is_undecided() {
    let run = check_changed(|node| node["gpus"] = json!({ "unknown": "NVML does not answer" }));
    let first = "mig01: cannot be judged against lab (class slices.hpc)\n";
    assert!(run.out.starts_with(first), "{}", run.out);
    assert_eq!(run.code, 2);
}

#[test]
fn the_json_report_says_all_of_it() {
    let (dir, mut node) = (stage(), snapshot());
    node["state"]["gpus"]["value"][2]["gpu_instances"]["value"] = json!([]);
    node["state"]["gpus"]["value"][2]["mig_devices"]["value"] = json!([]);
    write(dir.path(), "node.json", &node.to_string());
    let run = check_with(&dir, &["--node", "mig01", "--format", "json"]);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let expected = json!({
        "schema": "fleetc/report/v1",
        "node": "mig01",
        "fleet": "lab",
        "class": "slices.hpc",
        "class_sha256": report["class_sha256"],
        "rack": "r2",
        "verdict": "does_not_conform",
        "findings": [{
            "check": "mig.layout",
            "severity": "blocking",
            "gpu": { "bus_id": "00000000:52:00.0", "index": 2 },
            "expected": "2 × 3g.40gb (at 0,4)",
            "seen": "no GPU instance",
            "path": "pool/slices/sharing/gpus[3]",
            "spec": "lab/fleet.kdl:29",
            "action": "reconfigure",
            "do": ["nvidia-smi mig -i 00000000:52:00.0 -cgi 9:0,9:4 -C"],
        }],
        "passed": 67,
    });
    let mut report = report;
    let checks = report["checks"].take();
    report.as_object_mut().unwrap().remove("checks");
    assert_eq!(report, expected);
    let counts = |check: &str| {
        let mut all = checks.as_array().unwrap().iter();
        all.find(|counts| counts["check"] == check).cloned()
    };
    let layout = json!({
        "check": "mig.layout", "passed": 2, "failed": 1, "undecided": 0, "not_applicable": 0,
    });
    assert_eq!(counts("mig.layout"), Some(layout));
    let remap = json!({
        "check": "remap.failure", "passed": 0, "failed": 0, "undecided": 0, "not_applicable": 3,
    });
    assert_eq!(counts("remap.failure"), Some(remap));
    assert_eq!(counts("ecc.mode"), None, "no policy asks for it");
    assert!(run.out.ends_with("}\n"));
    // `printf %s CLASS | sha256sum`: other text, other digest; the same text, the same.
    let digest = report["class_sha256"].as_str().unwrap();
    assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
    write(dir.path(), "intent/classes/slices.hpc.json", &format!("{} ", fleet::class()));
    let other = check_with(&dir, &["--node", "mig01", "--format", "json"]);
    let other: Value = serde_json::from_str(&other.out).unwrap();
    assert_ne!(other["class_sha256"], report["class_sha256"]);
    assert_eq!(run.code, 1);
}

#[test]
fn without_sources_the_item_stands_for_its_line() {
    let (dir, mut node) = (stage(), snapshot());
    fs::remove_file(dir.path().join("intent/sources.jsonl")).unwrap();
    node["state"]["pci_gpus"] = json!({ "value": [] });
    write(dir.path(), "node.json", &node.to_string());
    let run = check(&dir);
    assert!(run.out.contains("  pool/slices/exception[mig[01-02]]\n"), "{}", run.out);
}

#[test]
fn the_environment_names_the_node_if_nothing_else_does() {
    let dir = stage();
    let node = |node_name: Option<&str>, slurmd: Option<&str>, host: Option<&str>| {
        let intent = dir.path().join("intent");
        let source = format!("snapshot:{}", dir.path().join("node.json").display());
        let env = Environment {
            slurmd_nodename: slurmd.map(OsString::from),
            node_name: node_name.map(OsString::from),
            host_name: host.map(str::to_owned),
            ..Environment::default()
        };
        run(&["check", "--intent", intent.to_str().unwrap(), "--source", &source], env).code
    };
    assert_eq!(node(None, Some("mig01"), Some("other")), 0);
    assert_eq!(node(Some("other"), Some("mig01"), None), 0);
    assert_eq!(node(Some("mig01"), Some(""), Some("other")), 0);
    assert_eq!(node(None, None, Some("mig01.lab.example.org\n")), 0);
    assert_eq!(node(None, None, Some("other")), cli::EXIT_INPUT);
    assert_eq!(node(None, None, None), cli::EXIT_USAGE);
}

#[test]
fn wrong_usage_is_64_and_help_is_not() {
    let code = |args: &[&str]| run(args, Environment::default()).code;
    assert_eq!(code(&["--help"]), 0);
    assert_eq!(code(&["--version"]), 0);
    assert_eq!(code(&["check", "--help"]), 0);
    assert!(!run(&["--help"], Environment::default()).out.is_empty());
    for wrong in
        [&[][..], &["check"], &["chekc"], &["check", "--intent", "x", "--source", "nvidia"]]
    {
        let run = run(wrong, Environment::default());
        assert_eq!((run.code, run.out.as_str()), (cli::EXIT_USAGE, ""), "{wrong:?}");
        assert!(!run.err.is_empty());
    }
    assert_eq!(code(&["check", "--intent", "x", "--source", "snapshot:"]), cli::EXIT_USAGE);
}

#[test]
fn a_report_that_cannot_be_written_is_no_success() {
    struct Full(io::ErrorKind);
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let dir = stage();
    let intent = dir.path().join("intent");
    let source = format!("snapshot:{}", dir.path().join("node.json").display());
    let code = |kind| {
        let args = ["", "check", "--intent", intent.to_str().unwrap(), "--source", &source];
        let args = args.iter().chain(&["--node", "mig01"]).map(OsString::from);
        cli::run(args, Environment::default(), &mut Full(kind), &mut io::sink())
    };
    assert_eq!(code(io::ErrorKind::StorageFull), 2);
    assert_eq!(code(io::ErrorKind::BrokenPipe), 0);
}
