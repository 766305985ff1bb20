//! `fleetc-mig.sh` at work: the script of a compiled fleet, run by bash on GPUs that a stand-in for
//! `nvidia-smi` keeps in a file (`tests/fake-nvidia-smi`). What it leaves is compared with the Intent.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_schema::intent::{Class, Intent};
use fleetc_tests::{Form, Texts, check_text, compiled, repository, with_prelude};
use tempfile::TempDir;

/// Two GPUs a node: 4g beside 3g, and seven of 1g.
const FLEET: &str = "
cluster \"hpc\" { slurm \"24.11\" {
    controllers \"ctl1\"; gres autodetect=\"nvml\"; driver \"580.105.08\" owner=\"os\"
} }
pool \"cut\" {
    cluster \"hpc\"; system \"two\"; nodes \"cut[08-11],odd\"
    sharing \"mig\" strategy=\"mixed\" {
        gpus \"0\" { slice \"4g.40gb\" count=1; slice \"3g.40gb\" count=1 }
        gpus \"1\" { slice \"1g.10gb\" count=7 }
    }
}
pool \"whole\" { cluster \"hpc\"; system \"two\"; nodes \"whole1\"; sharing \"whole\" }
pool \"prep\" { cluster \"hpc\"; system \"cpus\"; nodes \"prep1\" }
system \"cpus\" { cpu sockets=2 cores=64 threads=128; memory \"512GiB\" }
";
const HOPPER: &str = "system \"two\" { gpus \"h100-sxm5-80gb\" count=2; cpu sockets=2 cores=64 threads=128; memory \"512GiB\" }";
const AMPERE: &str = "system \"two\" { gpus \"a100-sxm4-80gb\" count=2; cpu sockets=2 cores=64 threads=128; memory \"512GiB\" }";

const DRAINED: &str = "echo 'NodeName=cut08 State=IDLE+DRAIN ThreadsPerCore=2 '";
const IDLE: &str = "echo 'NodeName=cut08 State=IDLE ThreadsPerCore=2 '";
const NOTHING: &str = "true";

/// A node: its GPUs, and the programs that the script asks.
struct Node {
    folder: TempDir,
    intent: Intent,
}

/// What a run gave.
#[derive(Debug)]
struct Ran {
    status: i32,
    said: String,
}

fn texts(spec: &str) -> (Intent, Texts) {
    let checked = check_text(Form::Kdl, spec).unwrap();
    let files = compiled(&checked).unwrap_or_else(|| {
        let titles: Vec<&str> = checked.diagnostics.iter().map(|d| d.title.as_str()).collect();
        panic!("{titles:#?}")
    });
    (checked.intent().unwrap().clone(), files)
}

impl Node {
    fn new(system: &str, gpus: &str) -> Self {
        let spec = with_prelude(Form::Kdl, &format!("{system}{}", FLEET));
        let (intent, files) = texts(&spec);
        Self::of(intent, &files["clusters/hpc/mig/fleetc-mig.sh"], gpus)
    }

    fn of(intent: Intent, script: &str, gpus: &str) -> Self {
        let node = Self { folder: TempDir::new().unwrap(), intent };
        std::fs::write(node.path("script"), script).unwrap();
        std::fs::write(node.path("gpus"), gpus).unwrap();
        let fake = repository().join("tests/fake-nvidia-smi/nvidia-smi");
        node.program("nvidia-smi", &format!("exec bash {fake} \"$@\""));
        node.program("scontrol", DRAINED);
        node.program("squeue", NOTHING);
        node.program("systemctl", "exit 3");
        node
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().join(name)
    }

    fn program(&self, name: &str, body: &str) {
        let path = self.path(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn run(&self, args: &[&str]) -> Ran {
        let search = format!("{}:{}", self.folder.path().display(), env!("PATH"));
        let output = Command::new("bash")
            .arg(self.path("script"))
            .args(args)
            .env("PATH", search)
            .env("FAKE_GPUS", self.path("gpus"))
            .env("SLURMD_NODENAME", "cut08")
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        Ran { status: output.status.code().unwrap(), said }
    }

    /// Commands that changed something, since the last call.
    fn changes(&self) -> Vec<String> {
        let log = self.path("gpus.log");
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let _ = std::fs::remove_file(log);
        text.lines().map(str::to_owned).collect()
    }

    fn lines(&self, kind: &str) -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(self.path("gpus")).unwrap();
        let words = text.lines().map(|line| line.split(' ').map(str::to_owned).collect());
        words.filter(|words: &Vec<String>| words[0] == kind).collect()
    }

    /// GPU, profile id and start of each instance; each has one compute instance, of all its slices.
    fn layout(&self) -> BTreeSet<(u8, u32, u8)> {
        let compute = self.lines("ci");
        let one = |gi: &Vec<String>| {
            let slices: Vec<&str> =
                compute.iter().filter(|ci| ci[1..3] == gi[1..3]).map(|ci| ci[4].as_str()).collect();
            let all = match gi[3].as_str() {
                "19" | "20" | "15" => "1",
                "14" => "2",
                "9" => "3",
                "5" => "4",
                _ => "7",
            };
            assert_eq!(slices, [all], "{gi:?}");
            (gi[1].parse().unwrap(), gi[3].parse().unwrap(), gi[4].parse().unwrap())
        };
        self.lines("gi").iter().map(one).collect()
    }

    fn wanted(&self, class: &str) -> BTreeSet<(u8, u32, u8)> {
        let class: &Class = self.intent.classes.get(class).unwrap();
        let gpus = class.node.gpus.iter();
        gpus.flat_map(|gpu| {
            let instances = gpu.mig.iter().flatten();
            instances.map(|i| (gpu.index, i.profile_id, i.placement.start))
        })
        .collect()
    }

    /// Applies, and holds what is there then: the layout of the class, and nothing to do any more.
    fn becomes_right(&self) -> Vec<String> {
        let before = std::fs::read_to_string(self.path("gpus")).unwrap();
        let dry = self.run(&[]);
        assert_eq!(dry.status, 1, "{dry:#?}");
        assert!(self.changes().is_empty(), "{dry:#?}");
        assert_eq!(std::fs::read_to_string(self.path("gpus")).unwrap(), before);
        let ran = self.run(&["--apply"]);
        assert_eq!(ran.status, 0, "{ran:#?}");
        assert_eq!(self.layout(), self.wanted("cut"));
        let changes = self.changes();
        self.stays();
        changes
    }

    fn stays(&self) {
        for args in [&[] as &[&str], &["--apply"], &["--boot"]] {
            let ran = self.run(args);
            assert_eq!(ran.status, 0, "{ran:#?}");
            assert!(ran.said.ends_with("GPU instances are as the fleet says\n"), "{ran:#?}");
            assert!(self.changes().is_empty(), "{ran:#?}");
        }
    }

    /// A run that must not do anything, and what it says.
    fn refuses(&self, args: &[&str], why: &str) {
        let ran = self.run(args);
        assert_eq!(ran.status, 2, "{ran:#?}");
        assert!(ran.said.contains(why), "{ran:#?}");
        assert!(self.changes().is_empty(), "{ran:#?}");
    }
}

/// Two H100 with this MIG mode, and what else there is.
fn h100(mode: &str, rest: &str) -> String {
    let gpu = |index| format!("gpu {index} 0x233010DE {mode} {mode} live NVIDIA H100 80GB HBM3\n");
    format!("{}{}{rest}", gpu(0), gpu(1))
}

fn a100(mode: &str, rest: &str) -> String {
    let gpu = |index| format!("gpu {index} 0x20B210DE {mode} {mode} reset NVIDIA A100-SXM4-80GB\n");
    format!("{}{}{rest}", gpu(0), gpu(1))
}

/// Seven instances of 1g on GPU 1, with their compute instances.
fn seven() -> String {
    (0..7).map(|at| format!("gi 1 {id} 19 {at}\nci 1 {id} 0 1\n", id = 7 + at)).collect()
}

#[test]
fn an_empty_node_gets_every_instance_at_its_start() {
    let node = Node::new(HOPPER, &h100("Enabled", ""));
    let changes = node.becomes_right();
    assert_eq!(
        changes[..2],
        ["mig -i 0 -cgi 5:0,9:4", "mig -i 1 -cgi 19:0,19:1,19:2,19:3,19:4,19:5,19:6"]
    );
    assert_eq!(changes.len(), 2 + 9);
}

#[test]
fn a_node_that_is_right_is_left_alone() {
    let rest = format!("gi 0 2 5 0\nci 0 2 0 4\ngi 0 1 9 4\nci 0 1 0 3\n{}", seven());
    let node = Node::new(HOPPER, &h100("Enabled", &rest));
    assert_eq!(node.layout(), node.wanted("cut"));
    node.stays();
    // Ids of instances say nothing, and processes do not matter to who changes nothing.
    let node = Node::new(HOPPER, &h100("Enabled", &format!("{rest}app 0 4711\n")));
    node.stays();
}

#[test]
fn what_is_right_survives_and_what_is_in_the_way_goes_first() {
    // A 3g at slice 0 stands where the 4g must be; the one at 4 stays.
    let rest = format!("gi 0 1 9 0\nci 0 1 0 3\ngi 0 2 9 4\nci 0 2 0 3\n{}", seven());
    let node = Node::new(HOPPER, &h100("Enabled", &rest));
    assert_eq!(
        node.becomes_right(),
        [
            "mig -dci -i 0 -gi 1",
            "mig -dgi -i 0 -gi 1",
            "mig -i 0 -cgi 5:0",
            // The instance that is new, whatever its id.
            "mig -cci -i 0 -gi 1",
        ]
    );
    // Nobody's process is on GPU 0: one on GPU 1, which does not change, is in nobody's way.
    let node = Node::new(HOPPER, &h100("Enabled", &format!("{rest}app 1 4711\n")));
    node.becomes_right();
}

#[test]
fn the_right_profile_at_the_wrong_place_is_not_right() {
    // 2g at 0 and 2, and six of 1g with one that has media engines.
    let rest = "gi 0 3 14 0\nci 0 3 0 2\ngi 0 4 14 2\nci 0 4 0 2\ngi 1 7 20 0\nci 1 7 0 1\ngi 1 8 19 6\nci 1 8 0 1\n";
    let node = Node::new(HOPPER, &h100("Enabled", rest));
    let changes = node.becomes_right();
    assert!(!changes.iter().any(|line| line.contains("-gi 8")), "{changes:?}");
}

#[test]
fn an_instance_is_covered_by_one_compute_instance() {
    // The 3g has three parts, the 4g has none: a run that was killed leaves that.
    let rest = format!("gi 0 2 5 0\ngi 0 1 9 4\nci 0 1 0 1\nci 0 1 1 1\nci 0 1 2 1\n{}", seven());
    let node = Node::new(HOPPER, &h100("Enabled", &rest));
    let changes = node.becomes_right();
    assert_eq!(changes, ["mig -dci -i 0 -gi 1", "mig -cci -i 0 -gi 2", "mig -cci -i 0 -gi 1"]);
}

#[test]
fn a_busy_gpu_is_not_touched() {
    let node =
        Node::new(HOPPER, &h100("Enabled", "gi 0 0 0 0\nci 0 0 0 7\napp 0 4711\napp 0 4712\n"));
    node.refuses(&["--apply"], "GPU 0 is in use by process 4711, 4712");
    node.refuses(&["--boot"], "GPU 0 is in use by process 4711, 4712");
}

#[test]
fn a_node_that_takes_jobs_is_not_touched() {
    let node = Node::new(HOPPER, &h100("Enabled", ""));
    node.program("scontrol", IDLE);
    node.refuses(&["--apply"], "State=DRAIN");
    node.program("scontrol", "echo 'slurm_load_node error' >&2; exit 1");
    node.refuses(&["--apply"], "slurm_load_node error");
    node.program("scontrol", DRAINED);
    node.program("squeue", "echo 17; echo 18");
    node.refuses(&["--apply"], "node cut08 has jobs: 17, 18");
    node.program("systemctl", "[ \"$3\" = slurmd.service ]");
    node.refuses(&["--boot"], "slurmd.service runs");
    // Someone who knows says so.
    assert_eq!(node.run(&["--apply", "--drained"]).status, 0);
    assert_eq!(node.layout(), node.wanted("cut"));
}

#[test]
fn the_mode_is_set_at_boot_only_and_where_it_takes_no_reset() {
    let node = Node::new(HOPPER, &h100("Disabled", ""));
    for args in [&[] as &[&str], &["--apply"]] {
        node.refuses(args, "nvidia-smi -i 1 -mig 1");
    }
    let ran = node.run(&["--boot"]);
    assert_eq!(ran.status, 0, "{ran:#?}");
    assert_eq!(node.layout(), node.wanted("cut"));
    assert_eq!(node.changes()[..2], ["-i 0 -mig 1", "-i 1 -mig 1"]);
    node.stays();

    let node = Node::new(AMPERE, &a100("Disabled", ""));
    for args in [&[] as &[&str], &["--apply"], &["--boot"]] {
        node.refuses(args, "reset the GPU or reboot");
    }
    let waiting = a100("Disabled", "").replace("Disabled Disabled", "Disabled Enabled");
    let node = Node::new(AMPERE, &waiting);
    node.refuses(&["--boot"], "waits to be Enabled");
    // After a reboot Ampere has its mode and no instance.
    let node = Node::new(AMPERE, &a100("Enabled", ""));
    assert_eq!(node.run(&["--boot"]).status, 0);
    assert_eq!(node.layout(), node.wanted("cut"));
}

#[test]
fn whole_gpus_lose_their_instances_and_their_mode() {
    let node = Node::new(HOPPER, &h100("Enabled", &seven()));
    node.refuses(&["--apply", "--node", "whole1"], "-mig 0");
    let ran = node.run(&["--boot", "--node", "whole1"]);
    assert_eq!(ran.status, 0, "{ran:#?}");
    assert!(node.lines("gpu").iter().all(|gpu| gpu[3] == "Disabled"));
    assert!(node.layout().is_empty());
}

#[test]
fn another_machine_than_the_class_is_not_touched() {
    let node = Node::new(HOPPER, &a100("Enabled", ""));
    node.refuses(&["--apply"], "GPU 0 is NVIDIA A100-SXM4-80GB");
    let all = h100("Enabled", "");
    let one = Node::new(HOPPER, all.lines().next().unwrap());
    one.refuses(&["--apply"], "the driver shows 1 GPUs, class cut has 2");
    let node = Node::new(HOPPER, &h100("[N/A]", ""));
    node.refuses(&["--apply"], "MIG mode [N/A]");
    let node = Node::new(HOPPER, &h100("Enabled", ""));
    node.program("nvidia-smi", "echo 'NVIDIA-SMI has failed' ; exit 9");
    node.refuses(&["--apply"], "NVIDIA-SMI has failed");
    node.refuses(&["--aply"], "unknown argument --aply");
}

#[test]
fn a_node_finds_its_class_by_its_name_and_no_other() {
    let node = Node::new(HOPPER, &h100("Enabled", ""));
    for name in ["cut08", "cut09", "cut11", "odd"] {
        assert_eq!(node.run(&["--node", name]).status, 1, "{name}");
    }
    for name in
        ["cut07", "cut12", "cut8", "cut008", "cut08x", "xcut08", "odd1", "od", "cut[08]", "*", ""]
    {
        let ran = node.run(&["--node", name]);
        // No name at all is the node's own, which this one says in its environment.
        let expected = if name.is_empty() { 1 } else { 2 };
        assert_eq!(ran.status, expected, "{name}: {ran:#?}");
    }
    assert_eq!(node.run(&["--class", "cut"]).status, 1);
    node.refuses(&["--class", "cu"], "no class of this cluster has node cu");
    let ran = node.run(&["--apply", "--node", "prep1"]);
    assert_eq!(
        (ran.status, ran.said.as_str()),
        (0, "fleetc-mig: class prep has no GPUs with MIG\n")
    );
}

/// A Kubernetes cluster with pools of whole GPUs and of slices; its operator is `{operator}`.
const SERVE: &str = "fleet \"example\"
cluster \"serve\" { kubernetes \"1.36\" {
    distribution \"upstream\"; {operator} driver \"580.105.08\" owner=\"os\"; queue \"none\"
} }
pool \"cut\" {
    cluster \"serve\"; system \"two\"; nodes \"cut08.example.com\"
    sharing \"mig\" strategy=\"mixed\" {
        gpus \"0\" { slice \"4g.40gb\" count=1; slice \"3g.40gb\" count=1 }
        gpus \"1\" { slice \"1g.10gb\" count=7 }
    }
}
";

#[test]
fn where_the_mig_manager_owns_the_layout_there_is_no_second_owner() {
    let paths = |operator: &str| {
        let spec = format!("{}{HOPPER}", SERVE.replace("{operator}", operator));
        let (_, files) = texts(&spec);
        let here = files.into_keys().filter(|path| path.starts_with("clusters/serve/mig/"));
        here.map(|path| path.rsplit('/').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(paths("gpu-operator \"26.7\" namespace=\"gpu-operator\";"), ["mig-parted.yaml"]);
    assert_eq!(paths(""), ["fleetc-mig.service", "fleetc-mig.sh", "mig-parted.yaml"]);
}

#[test]
fn kubernetes_must_have_let_go_of_the_node() {
    let (intent, files) = texts(&format!("{}{HOPPER}", SERVE.replace("{operator}", "")));
    let node = Node::of(intent, &files["clusters/serve/mig/fleetc-mig.sh"], &h100("Enabled", ""));
    let apply = ["--apply", "--node", "cut08.example.com"];
    node.program("kubectl", "exit 1");
    node.refuses(&apply, "say --drained");
    node.program("kubectl", NOTHING);
    node.refuses(&apply, "takes pods");
    node.program(
        "kubectl",
        "case $2 in node) printf true ;; *) echo '{\"nvidia.com/gpu\":\"1\"}' ;; esac",
    );
    node.refuses(&apply, "has pods with GPUs");
    node.program("kubectl", "case $2 in node) printf true ;; *) echo '{\"cpu\":\"1\"}' ;; esac");
    assert_eq!(node.run(&apply).status, 0);
    assert_eq!(node.layout(), node.wanted("cut"));
}

/// Whatever pair of instances stands there, one run makes it right.
#[test]
fn every_start_leads_to_the_layout() {
    let profiles = [(19_u32, 1_u8), (14, 2), (9, 3), (5, 4)];
    let spots: Vec<(u32, u8, u8)> = profiles
        .iter()
        .flat_map(|(id, slices)| {
            let starts: &[u8] = match id {
                19 => &[3, 6],
                14 => &[0, 4],
                9 => &[0, 4],
                _ => &[0],
            };
            starts.iter().map(|start| (*id, *slices, *start))
        })
        .collect();
    let size = |id: u32| match id {
        19 => 1,
        14 => 2,
        _ => 4,
    };
    let node = Node::new(HOPPER, "");
    let mut tried = 0;
    for first in &spots {
        for second in &spots {
            let (low, high) = (first.2.min(second.2), first.2.max(second.2));
            let lower = if first.2 == low { first.0 } else { second.0 };
            if first > second || low + size(lower) > high {
                continue;
            }
            let rest = format!(
                "gi 0 1 {} {}\nci 0 1 0 {}\ngi 0 2 {} {}\nci 0 2 0 {}\n",
                first.0, first.2, first.1, second.0, second.2, second.1
            );
            std::fs::write(node.path("gpus"), h100("Enabled", &(rest + &seven()))).unwrap();
            let ran = node.run(&["--apply"]);
            assert_eq!(ran.status, 0, "{first:?} {second:?} {ran:#?}");
            assert_eq!(node.layout(), node.wanted("cut"));
            node.changes();
            tried += 1;
        }
    }
    assert!(tried > 5, "{tried}");
}

#[test]
fn the_script_and_the_unit_are_what_bash_and_systemd_read() {
    let node = Node::new(HOPPER, "");
    let output = Command::new("bash").arg("-n").arg(node.path("script")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (_, files) = texts(&format!("{}{HOPPER}", SERVE.replace("{operator}", "")));
    let unit = &files["clusters/serve/mig/fleetc-mig.service"];
    for line in ["Before=kubelet.service nvidia-dcgm.service dcgm-exporter.service", "Type=oneshot"]
    {
        assert!(unit.lines().any(|has| has == line), "{unit}");
    }
}
