//! Mending: what is planned, what is refused, what is set, and what never is.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;
use std::time::Duration;

use fleetc_fake_nvml::node::Effect;
use fleetc_schema::intent::{CheckLevel, NodeCheck};
use fleetc_schema::units::Watts;
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::stage::{Run, Stage, fault, sliced, stage, whole};

/// A node at boot: systemd's control groups are there, slurmd is installed and does not run.
fn at_boot(stage: Stage) -> Stage {
    stage.write("etc/systemd/system/slurmd.service", "");
    stage.write("sys/fs/cgroup/system.slice/cgroup.procs", "");
    stage
}

/// Two H100 that should have persistence mode and 450 W; on the second nothing is as it should be.
fn broken() -> Stage {
    let mut stage = at_boot(stage("h100-sxm5-80gb", 2, &[]));
    let (_, policy) = stage.class.policy.as_mut().unwrap();
    (policy.persistence, policy.power_limit) = (Some(true), Some(Watts(450)));
    stage.write_intent();
    stage.node.gpus[0].power = Some([450_000, 700_000, 450_000, 200_000, 700_000]);
    let gpu = &mut stage.node.gpus[1];
    (gpu.persistence, gpu.compute_mode) = (0, 2);
    gpu.power = Some([600_500, 700_000, 600_500, 200_000, 700_000]);
    stage
}

/// The same with nothing wrong but persistence mode.
fn without_persistence() -> Stage {
    let mut stage = broken();
    let good = stage.node.gpus[0].power;
    let gpu = &mut stage.node.gpus[1];
    (gpu.compute_mode, gpu.power) = (0, good);
    stage
}

fn fix(stage: &Stage, args: &[&str]) -> Run {
    let intent = stage.path("intent");
    let first = ["fix", "--format", "json", "--intent", intent.to_str().unwrap()];
    stage.live(&[&first[..], args].concat())
}

/// The committed schema of what it prints.
fn schema() -> &'static Validator {
    static SCHEMA: OnceLock<Validator> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../schema/json/fix.schema.json");
        let text = fs::read_to_string(path).unwrap();
        jsonschema::options().build(&serde_json::from_str(&text).unwrap()).unwrap()
    })
}

fn document(run: &Run) -> Value {
    let document: Value =
        serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    let found: Vec<String> = schema().iter_errors(&document).map(|e| e.to_string()).collect();
    assert_eq!(found, [""; 0], "the committed schema holds: {document}");
    document
}

fn digest(run: &Run) -> String {
    document(run)["plan"]["digest"].as_str().unwrap().to_owned()
}

/// Check, index of the GPU, from, to and by whom, of each step.
fn steps(run: &Run) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let step = |step: &Value| {
        let gpu = &step["gpu"]["index"];
        let [check, from, to, by] = ["check", "from", "to", "by"].map(|key| text(&step[key]));
        format!("{check} {gpu}: {from} → {to}, {by}")
    };
    document(run)["plan"]["steps"].as_array().unwrap().iter().map(step).collect()
}

/// Plans, then applies just that plan.
fn apply(stage: &Stage, args: &[&str]) -> Run {
    let digest = digest(&fix(stage, args));
    fix(stage, &[args, &["--apply", &digest]].concat())
}

/// Applies the plan, and is refused for this reason alone; nothing is set.
fn is_refused(stage: &Stage, args: &[&str], why: &str) {
    let run = apply(stage, args);
    assert_eq!(run.code, 2, "{run:?}");
    let document = document(&run);
    let refused = document["refused"].as_array().unwrap();
    assert_eq!(refused.len(), 1, "{run:?}");
    assert!(refused[0].as_str().unwrap().contains(why), "{why}: {}", run.err);
    assert!(run.err.contains("refused: "), "{}", run.err);
    assert_eq!((&document["results"], &document["after"]), (&Value::Null, &Value::Null));
    assert_eq!(stage.setters(), [""; 0]);
}

const PERSISTENCE: &str = "nvmlDeviceSetPersistenceMode 1 1";

#[test]
fn a_plan_says_each_step_and_sets_nothing() {
    let stage = broken();
    let run = fix(&stage, &[]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    let expected = [
        "persistence.mode 1: persistence mode off → persistence mode on, nvml",
        "compute.mode 1: compute mode Prohibited → compute mode Default, nvml",
        "power.limit 1: power limit 600.500 W → power limit 450 W, nvml",
    ];
    assert_eq!(steps(&run), expected);
    assert_eq!(document(&run)["plan"]["rest"], json!([]));
    assert_eq!(stage.setters(), [""; 0]);
    assert_eq!(fix(&stage, &[]).out, run.out, "same node, same bytes");
}

#[test]
fn a_plan_that_is_applied_leaves_a_node_that_conforms() {
    let mut stage = broken();
    let run = apply(&stage, &[]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    let document = document(&run);
    assert_eq!(document["results"], json!(["done", "done", "done"]));
    assert_eq!(document["after"]["verdict"], "conforms");
    assert_eq!(document["after"]["steps"], json!([]));
    let set =
        [PERSISTENCE, "nvmlDeviceSetComputeMode 1 0", "nvmlDeviceSetPowerManagementLimit 1 450000"];
    assert_eq!(stage.setters(), set);
    stage.reload();
    assert_eq!(stage.check().findings(), []);
    let again = fix(&stage, &[]);
    assert_eq!((again.code, steps(&again)), (0, Vec::new()));
}

#[test]
fn a_step_is_a_step_whatever_its_check_matters() {
    let mut stage = without_persistence();
    let (_, policy) = stage.class.policy.as_mut().unwrap();
    policy.checks.insert(NodeCheck::PersistenceMode, CheckLevel::Info);
    stage.write_intent();
    assert_eq!(stage.check().code, 0);
    let run = fix(&stage, &[]);
    assert_eq!((run.code, steps(&run).len()), (1, 1), "{run:?}");
}

#[test]
fn exclusive_process_is_left_as_it_is() {
    let mut stage = at_boot(whole());
    stage.node.gpus[0].compute_mode = 3;
    let run = fix(&stage, &[]);
    assert_eq!((run.code, steps(&run)), (0, Vec::new()), "MPS wants it, and no check fails");
}

#[test]
fn what_may_only_be_late_is_no_step_yet() {
    let stage = without_persistence();
    stage.write("proc/uptime", "60.00 100.00\n");
    assert_eq!(steps(&fix(&stage, &[])), [""; 0]);
    assert_eq!(steps(&fix(&stage, &["--grace", "30s"])).len(), 1);
}

#[test]
fn another_plan_is_refused_with_both_digests() {
    let mut stage = broken();
    let old = digest(&fix(&stage, &[]));
    stage.node.gpus[0].persistence = 0;
    let run = fix(&stage, &["--apply", &old]);
    let new = digest(&run);
    assert_ne!(old, new);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.err.contains(&old) && run.err.contains(&new), "{}", run.err);
    assert_eq!(stage.setters(), [""; 0]);
    let wrong = fix(&stage, &["--apply", "abc"]);
    assert_eq!(wrong.code, 64);
    assert!(wrong.err.contains("64 hexadecimal digits"), "{}", wrong.err);
}

#[test]
fn a_process_on_a_gpu_of_the_plan_refuses() {
    let mut stage = broken();
    stage.node.gpus[1].processes = vec![4242];
    is_refused(&stage, &[], "GPU 00000000:20:00.0 is in use by process 4242");
    // On a GPU that nothing is done to, it does not matter.
    let mut stage = broken();
    stage.node.gpus[0].processes = vec![4242];
    assert_eq!(apply(&stage, &[]).code, 0);
}

#[test]
fn processes_that_are_not_known_refuse() {
    for (code, why) in [(999, "unknown error"), (4, "no permission"), (3, "not supported")] {
        let mut stage = broken();
        let call = "nvmlDeviceGetComputeRunningProcesses_v3";
        stage.node.faults.push(fault(call, Some(1), Effect::Return(code)));
        is_refused(&stage, &[], why);
    }
}

#[test]
fn a_process_that_comes_between_or_through_mps_keeps_the_gpu_as_it_is() {
    let mut stage = broken();
    stage.node.gpus[1].mps_processes = vec![77];
    let run = apply(&stage, &[]);
    assert_eq!(run.code, 1);
    let failed = json!({ "failed": "process 77 is on the GPU" });
    assert_eq!(document(&run)["results"], json!([failed, "not_tried", "not_tried"]));
    assert_eq!(stage.setters(), [""; 0]);
}

/// It prints the file `node` as scontrol(1) shows a node, and fails without.
const SCONTROL: &str = "#!/bin/sh\n\
    [ \"$*\" = \"--oneliner show node n1\" ] || { echo \"invalid: $*\" >&2; exit 1; }\n\
    cat \"$(dirname \"$0\")/node\"\n";

fn program(stage: &Stage, name: &str, text: &str) -> String {
    let path = stage.path(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn where_slurmd_runs_the_node_is_drained_and_empty_or_nothing_is_done() {
    let stage = broken();
    stage.write("sys/fs/cgroup/system.slice/slurmd.service/cgroup.procs", "812\n");
    let scontrol = program(&stage, "scontrol", SCONTROL);
    let args = ["--scontrol", scontrol.as_str()];
    let show = |cpus: u32, state: &str, tres: &str| {
        let line = format!(
            "NodeName=n1 Arch=x86_64 CPUAlloc={cpus} State={state} ThreadsPerCore=1 \
             CfgTRES=cpu=8,gres/gpu=2 AllocTRES={tres} CurrentWatts=0\n"
        );
        fs::write(stage.path("node"), line).unwrap();
    };
    is_refused(&stage, &args, "slurmd runs, and Slurm cannot be asked: ");
    show(0, "IDLE", "");
    is_refused(&stage, &args, "Slurm has n1 as IDLE: scontrol update NodeName=n1 State=DRAIN");
    show(4, "MIXED+DRAIN", "cpu=4,gres/gpu=1");
    is_refused(&stage, &args, "n1 is drained and still has jobs");
    is_refused(&stage, &["--scontrol", "/nowhere/scontrol"], "Slurm cannot be asked");
    show(0, "IDLE+DRAIN", "");
    let run = apply(&stage, &args);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert_eq!(stage.setters().len(), 3);
}

#[test]
fn steps_of_jobs_that_outlive_slurmd_keep_the_node_at_work() {
    let stage = broken();
    let scope = "sys/fs/cgroup/system.slice/slurmstepd.scope";
    stage.write(&format!("{scope}/cgroup.procs"), "");
    stage.write(&format!("{scope}/cgroup.events"), "populated 1\nfrozen 0\n");
    is_refused(&stage, &["--scontrol", "/nowhere/scontrol"], "slurmd runs");
}

#[test]
fn where_a_kubelet_runs_two_files_show_that_the_node_is_out_of_service() {
    for unit in ["kubelet", "k3s-agent"] {
        let stage = broken();
        stage.write(&format!("sys/fs/cgroup/system.slice/{unit}.service/cgroup.procs"), "91\n");
        is_refused(&stage, &[], "the kubelet runs: give --kubernetes-node and --kubernetes-pods");
        let (node, pods) = (stage.path("node.json"), stage.path("pods.json"));
        let write = |unschedulable: bool, gpus: u32| {
            let node_json = json!({ "metadata": { "name": "n1", "labels": {} },
                "spec": { "unschedulable": unschedulable }, "status": { "allocatable": {} } });
            fs::write(&node, node_json.to_string()).unwrap();
            let limits = match gpus {
                0 => json!({}),
                gpus => json!({ "nvidia.com/gpu": gpus.to_string() }),
            };
            let pod = json!({ "metadata": { "namespace": "team", "name": "train-0" },
                "spec": { "nodeName": "n1", "containers": [{ "resources": { "limits": limits } }] },
                "status": { "phase": "Running" } });
            fs::write(&pods, json!({ "items": [pod] }).to_string()).unwrap();
        };
        let [node, pods] = [&node, &pods].map(|path| path.to_str().unwrap());
        let args = ["--kubernetes-node", node, "--kubernetes-pods", pods];
        write(false, 0);
        is_refused(&stage, &args, "node n1 takes pods");
        write(true, 2);
        is_refused(&stage, &args, "pod team/train-0 has a GPU");
        write(true, 0);
        assert_eq!(apply(&stage, &args).code, 0);
        assert_eq!(stage.setters().len(), 3);
    }
}

#[test]
fn agents_that_are_not_to_be_seen_refuse() {
    let stage = broken();
    fs::remove_dir_all(stage.path("root/sys/fs/cgroup")).unwrap();
    let run = apply(&stage, &["--scontrol", "/nowhere/scontrol"]);
    assert_eq!(run.code, 2);
    let refused = document(&run)["refused"].to_string();
    assert!(refused.contains("slurmd is unknown") && refused.contains("the kubelet is unknown"));
    assert_eq!(stage.setters(), [""; 0]);
}

#[test]
fn a_limit_that_the_gpu_does_not_take_is_no_step() {
    let mut stage = broken();
    let (_, policy) = stage.class.policy.as_mut().unwrap();
    policy.power_limit = Some(Watts(900));
    stage.write_intent();
    let run = apply(&stage, &[]);
    assert_eq!(run.code, 0, "a limit is a warning: {run:?}");
    let rest = document(&run)["after"]["rest"].as_array().unwrap().clone();
    assert_eq!(rest.len(), 2, "both GPUs");
    assert_eq!(rest[0]["why"], "the policy says 900 W, the GPU takes 200 W to 700 W");
    assert!(!stage.setters().iter().any(|call| call.contains("Power")), "{:?}", stage.setters());

    // Nor one whose bounds nobody knows.
    let mut stage = broken();
    let call = "nvmlDeviceGetPowerManagementLimitConstraints";
    stage.node.faults.push(fault(call, None, Effect::Return(999)));
    let run = fix(&stage, &[]);
    assert_eq!(steps(&run).len(), 2, "{run:?}");
    let why = "which limits the GPU takes is unknown: NVML: unknown error";
    assert_eq!(document(&run)["plan"]["rest"][0]["why"], why);
}

#[test]
fn the_driver_has_the_last_word_on_a_limit() {
    let mut stage = broken();
    // The constraints were read wide, and are narrower when the limit is set.
    let wide = Effect::Set("/power".into(), json!([600_500, 700_000, 600_500, 200_000, 700_000]));
    stage.node.gpus[1].power = Some([600_500, 700_000, 600_500, 500_000, 700_000]);
    let call = "nvmlDeviceGetPowerManagementLimitConstraints";
    stage.node.faults.push(fault(call, Some(1), wide));
    let run = apply(&stage, &[]);
    assert_eq!(run.code, 1);
    let failed = json!({ "failed": "nvmlDeviceSetPowerManagementLimit: NVML: invalid argument" });
    assert_eq!(document(&run)["results"], json!(["done", "done", failed]));
    let left = document(&run)["after"]["steps"].as_array().unwrap().clone();
    assert_eq!((left.len(), &left[0]["check"]), (1, &json!("power.limit")));
}

#[test]
fn a_setter_that_hangs_ends_in_time_and_is_told() {
    let mut stage = broken();
    stage.deadline = "3s";
    stage.node.faults.push(fault("nvmlDeviceSetComputeMode", Some(1), Effect::Hang));
    let run = apply(&stage, &[]);
    // The setter's deadline, and what reading the node twice takes.
    assert!(run.took < Duration::from_secs(3 + 3), "it took {:?}", run.took);
    assert_eq!(run.code, 1, "{run:?}");
    let results = document(&run)["results"].clone();
    assert_eq!((&results[0], &results[2]), (&json!("done"), &json!("not_tried")));
    let why = results[1]["failed"].as_str().unwrap();
    assert!(why.starts_with("nvmlDeviceSetComputeMode did not answer in 3."), "{why}");
    assert_eq!(stage.setters(), [PERSISTENCE, "nvmlDeviceSetComputeMode 1 0"]);
    let left = document(&run)["after"]["steps"].as_array().unwrap().len();
    assert_eq!(left, 2, "what is set stays, the rest is left");
    assert!(!stage.notes().keys().any(|note| note.starts_with("probe-")), "it could be killed");
}

#[test]
fn a_setter_that_crashes_is_told() {
    let mut stage = without_persistence();
    stage.node.faults.push(fault("nvmlDeviceSetPersistenceMode", Some(1), Effect::Crash));
    let run = apply(&stage, &[]);
    assert_eq!(run.code, 1);
    let failed = json!([{ "failed": "the probe crashed with signal 6" }]);
    assert_eq!(document(&run)["results"], failed);
}

#[test]
fn what_is_set_and_does_not_read_so_is_not_done() {
    let mut stage = without_persistence();
    // The driver says that it did it, and did not.
    stage.node.faults.push(fault("nvmlDeviceSetPersistenceMode", Some(1), Effect::Return(0)));
    let run = apply(&stage, &[]);
    assert_eq!((run.code, &document(&run)["results"]), (1, &json!(["not_seen"])));
}

#[test]
fn without_root_nothing_is_set_and_the_reason_is_told() {
    let mut stage = broken();
    stage.node.root = false;
    let run = apply(&stage, &[]);
    assert_eq!(run.code, 1, "{run:?}");
    let why = "nvmlDeviceSetPersistenceMode: no permission: only root may set it";
    let results = json!([{ "failed": why }, "not_tried", "not_tried"]);
    assert_eq!(document(&run)["results"], results);
    assert_eq!(document(&run)["after"]["steps"].as_array().unwrap().len(), 3);
    assert_eq!(stage.setters(), [PERSISTENCE]);
}

#[test]
fn a_driver_that_lacks_a_setter_is_told() {
    let mut stage = without_persistence();
    let copy = stage.path("libnvidia-ml.so.1");
    let lacks = ["nvmlDeviceSetPersistenceMode", "nvmlDeviceGetMPSComputeRunningProcesses_v3"];
    fleetc_fake_nvml::without_symbols(&stage.library, &lacks, &copy).unwrap();
    stage.library = copy;
    let results = document(&apply(&stage, &[]))["results"].clone();
    let why = results[0]["failed"].as_str().unwrap();
    assert!(why.contains("this driver's library has no nvmlDeviceSetPersistenceMode"), "{why}");
}

#[test]
fn nothing_is_done_while_the_driver_does_not_answer() {
    let mut stage = broken();
    stage.deadline = "3s";
    stage.node.faults.push(fault("nvmlDeviceGetMemoryInfo_v2", Some(0), Effect::Hang));
    is_refused(&stage, &[], "a probe of GPU 00000000:10:00.0 did not come to its end");
}

#[test]
fn one_fix_works_at_a_time() {
    let stage = broken();
    let digest = digest(&fix(&stage, &[]));
    let lock = File::create(stage.path("notes/fix.lock")).unwrap();
    lock.lock().unwrap();
    fs::write(stage.path("notes/fix.lock"), "4711\n").unwrap();
    let run = fix(&stage, &["--apply", &digest]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("another fix, process 4711, is at work"), "{}", run.err);
    assert_eq!(stage.setters(), [""; 0]);
    // A plan changes nothing, and waits for nobody.
    assert_eq!(fix(&stage, &[]).code, 1);
    // Whoever held it is gone, and its file is left.
    drop(lock);
    assert_eq!(fix(&stage, &["--apply", &digest]).code, 0);
}

#[test]
fn modes_that_take_a_reset_are_never_set() {
    let mut stage = at_boot(sliced());
    let (_, policy) = stage.class.policy.as_mut().unwrap();
    (policy.ecc, policy.persistence) = (Some(true), Some(true));
    stage.write_intent();
    stage.node.gpus[0].ecc = Some((0, 0));
    let mig = stage.node.gpus[1].mig.as_mut().unwrap();
    (mig.current, mig.pending) = (0, 0);
    mig.gpu_instances.clear();
    stage.node.gpus[2].mig.as_mut().unwrap().pending = 0;
    stage.node.gpus[3].persistence = 0;
    let run = apply(&stage, &[]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(document(&run)["results"], json!(["done"]));
    assert_eq!(stage.setters(), ["nvmlDeviceSetPersistenceMode 3 1"], "and nothing else");
    let after = document(&run)["after"].clone();
    let rest = after["rest"].as_array().unwrap();
    let advice = |check: &str, gpu: u64| {
        let found = rest.iter().map(|rest| &rest["finding"]);
        let mut found = found.filter(|f| f["check"] == check && f["gpu"]["index"] == gpu);
        found.next().unwrap()["do"][0].as_str().unwrap().to_owned()
    };
    assert_eq!(advice("ecc.mode", 0), "nvidia-smi -i 00000000:10:00.0 -e 1");
    assert_eq!(advice("mig.mode", 1), "nvidia-smi -i 00000000:20:00.0 -mig 1");
    assert_eq!(advice("mig.mode", 2), "nvidia-smi -i 00000000:30:00.0 -mig 1");
}

/// A node that lacks the last of the first GPU's instances.
fn short_of_an_instance() -> Stage {
    let mut stage = at_boot(sliced());
    stage.node.gpus[0].mig.as_mut().unwrap().gpu_instances.pop();
    stage
}

#[test]
fn instances_are_made_by_hand_without_a_script() {
    let stage = short_of_an_instance();
    let run = fix(&stage, &[]);
    let layout = "mig.layout 0: 6 × 1g.10gb (at 0-5) → 7 × 1g.10gb (at 0-6), hand";
    assert_eq!((run.code, steps(&run)), (1, vec![layout.to_owned()]), "{run:?}");
    let command = json!(["nvidia-smi mig -i 00000000:10:00.0 -cgi 19:6 -C"]);
    assert_eq!(document(&run)["plan"]["steps"][0]["do"], command);
    let run = apply(&stage, &[]);
    assert_eq!((run.code, &document(&run)["results"]), (1, &Value::Null), "none for it to take");
}

/// It notes how it was called, and puts the state in place that is beside it.
const MIG_SCRIPT: &str = "#!/bin/sh\n\
    here=$(dirname \"$0\")\n\
    printf '%s\\n' \"$@\" > \"$here/called\"\n\
    [ ! -f \"$here/refuses\" ] || { cat \"$here/refuses\" >&2; exit 2; }\n\
    cp \"$here/after.json\" \"$here/state.json\"\n";

#[test]
fn instances_are_made_by_the_script() {
    let mut stage = short_of_an_instance();
    let script = program(&stage, "fleetc mig.sh", MIG_SCRIPT);
    let args = ["--mig-script", script.as_str()];
    let mut made = stage.node.clone();
    made.gpus = sliced().node.gpus.clone();
    fs::write(stage.path("after.json"), serde_json::to_string(&made).unwrap()).unwrap();
    // It may refuse, and then says why.
    fs::write(stage.path("refuses"), "fleetc-mig: GPU 0 is in use by process 7\n").unwrap();
    let run = apply(&stage, &args);
    assert_eq!(run.code, 1, "{run:?}");
    let why = document(&run)["results"][0]["failed"].as_str().unwrap().to_owned();
    assert!(why.ends_with("fleetc-mig: GPU 0 is in use by process 7"), "{why}");
    fs::remove_file(stage.path("refuses")).unwrap();
    let plan = fix(&stage, &args);
    let layout = "mig.layout 0: 6 × 1g.10gb (at 0-5) → 7 × 1g.10gb (at 0-6), script";
    assert_eq!(steps(&plan), [layout]);
    let run = apply(&stage, &args);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert_eq!(document(&run)["results"], json!(["done"]));
    let called = fs::read_to_string(stage.path("called")).unwrap();
    assert_eq!(called, "--apply\n--drained\n--node\nn1\n");
    assert_eq!(stage.setters(), [""; 0]);
    stage.reload();
    assert_eq!(stage.check().code, 0);
}

#[test]
fn a_script_is_not_run_on_a_gpu_in_use() {
    let mut stage = short_of_an_instance();
    let script = program(&stage, "fleetc-mig.sh", MIG_SCRIPT);
    stage.node.gpus[0].processes = vec![5];
    is_refused(&stage, &["--mig-script", &script], "is in use by process 5");
    assert!(!stage.path("called").exists());
}

#[test]
fn the_text_says_what_to_do_and_what_came_of_it() {
    let mut stage = broken();
    stage.node.gpus[0].ecc = Some((0, 0));
    let (_, policy) = stage.class.policy.as_mut().unwrap();
    policy.ecc = Some(true);
    stage.write_intent();
    let digest = digest(&fix(&stage, &[]));
    let intent = stage.path("intent");
    let text = |args: &[&str]| {
        stage.live(&[&["fix", "--intent", intent.to_str().unwrap()][..], args].concat()).out
    };
    let plan = text(&[]);
    for words in [
        "n1: does not conform to lab (class p): 3 steps\n",
        "  1  persistence.mode  GPU 1 00000000:20:00.0  persistence mode off → persistence mode on\n",
        "not mended here:\n  ✗ ecc.mode  GPU 0 00000000:10:00.0  wants ECC on, has ECC off\n",
        "       do: nvidia-smi -i 00000000:10:00.0 -e 1\n",
        &format!("  the same with --apply {digest}\n"),
    ] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    let done = text(&["--apply", &digest]);
    for words in ["       done\n", "read again: does not conform to lab (class p)\n", "ecc.mode"] {
        assert!(done.contains(words), "{words}: {done}");
    }
}
