//! A node judges itself: slurmd starts the health check as it is written, and the program drains the
//! node and gives it back. Slurm is real; NVML is a library that answers from a file, and the kernel's
//! files are those of a folder.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_fake_nvml::STATE_VARIABLE;
use fleetc_fake_nvml::node::{Effect, Fault, Gpu, Node};
use fleetc_schema::catalog::Catalog;
use fleetc_schema::version::SlurmRelease;

use super::conf::Mode;
use super::{Daemon, Failure, Lab, Place, Ports, READY, Written, compiled_for, free_ports, tool};
use crate::conformance::judged::{built, executable};
use crate::put;

const FLEET: &str = "tests/conformance/boot";
/// The node that judges itself, and one that does not.
const NODE: &str = "n1";
const OTHER: &str = "n2";
/// Where the program and its intent are on a node.
const PROGRAM: &str = "/usr/bin/fleetc-validate";
const INTENT: &str = "/etc/fleetc/intent";
/// How long the program waits for a driver that hangs: less than a site's, and more than it takes.
const DEADLINE: &str = "4s";
/// slurmd kills a health check after this time.
const MOST: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(100);
const POLLS: u32 = 600;

/// What an operator says, and what this program says of another node.
const THEIRS: &str = "fan 3, ticket 4411";
const OURS: &str = "fleetc: gpu.count: has 1";

/// Boots the node in every place at once, since most of it is waiting; gives how many checks passed.
pub fn run(places: &[Place], scratch: &Utf8Path) -> Result<usize, Failure> {
    built()?;
    std::thread::scope(|scope| {
        let boot = |place| move || in_place(place, scratch).map_err(|error| error.to_string());
        let running: Vec<_> = places.iter().map(|place| scope.spawn(boot(place))).collect();
        let ended = running.into_iter().map(|handle| match handle.join() {
            Ok(passed) => passed.map_err(Failure::from),
            Err(_) => Err("the thread that booted a node ended early".into()),
        });
        ended.sum()
    })
}

fn in_place(place: &Place, scratch: &Utf8Path) -> Result<usize, Failure> {
    let Written::Yes(intent, files) = compiled_for("boot", FLEET, place.release, false)? else {
        return Err(format!("{FLEET} is not for {}", place.name).into());
    };
    let cluster = intent.clusters.values().next().ok_or("the fleet has a cluster")?;
    let fleetc_schema::intent::Scheduler::Slurm(slurm) = &cluster.scheduler else {
        return Err("the cluster is not of Slurm".into());
    };
    let folder = scratch.join(format!("boot-{}", place.name));
    let database = None;
    let lab = Lab { place, database, intent: &intent, cluster, slurm, files: &files, folder };
    let passed = lab.boot().map_err(|error| format!("boot in {}: {error}", place.name))?;
    println!("boot in {}: {passed} checks of a node that judges itself passed", place.name);
    Ok(passed)
}

impl Lab<'_> {
    fn boot(&self) -> Result<usize, Failure> {
        for name in ["state", "spool", "dev"] {
            std::fs::create_dir_all(self.folder.join(name))?;
        }
        let user = tool("id", &["-un"], Utf8Path::new("."))?;
        self.write(Mode::AsWritten, Ports::free()?, user.trim())?;
        self.run_often()?;
        let node = Judged::install(self)?;
        let mut passed = node.unit()?;

        let mut slurmctld = self.controller("first", &["-c"])?;
        node.lacks_a_gpu()?;
        let others = node.slurmd(OTHER)?;
        let slurmd = node.slurmd(NODE)?;
        slurmctld.until("told of the node", |_| node.is_drained_by_us("gpu.count"))?;
        node.registers_drained(&slurmctld)?;
        passed += 2;
        passed += node.is_given_back()?;
        passed += node.leaves_others_alone()?;
        passed += node.keeps_the_limit()?;
        passed += node.hangs()?;

        slurmctld.stop()?;
        passed += node.without_controller()?;
        let mut slurmctld = self.controller("again", &[])?;
        slurmctld.until("told of the node", |_| node.is_drained_by_us("gpu.count"))?;
        passed += 1;
        slurmd.stop()?;
        others.stop()?;
        slurmctld.stop()?;
        Ok(passed)
    }

    /// slurmctld, with what it knew when it ended unless told otherwise.
    fn controller(&self, run: &str, more: &[&str]) -> Result<Daemon, Failure> {
        let conf = self.conf();
        let args = [&["-D", "-vv", "-f", conf.as_str()][..], more].concat();
        let log = self.folder.join(format!("slurmctld-{run}.log"));
        let program = self.program("slurmctld");
        let mut daemon = Daemon::start(&program, &args, ("SLURM_CONF", &conf), log)?;
        daemon.until("in control", |daemon| daemon.said().contains(READY))?;
        Ok(daemon)
    }

    /// The health check as slurm.conf names it, every few seconds; a port for each slurmd.
    fn run_often(&self) -> Result<(), Failure> {
        let conf = self.conf();
        let text = std::fs::read_to_string(&conf)?;
        let (every, most) = match self.place.release >= SlurmRelease::V26_05 {
            true => ("4", "HealthCheckTimeout=3\n"),
            false => ("2", ""),
        };
        let [port] = free_ports()?;
        let stated = conf_value(&text, "HealthCheckInterval")?;
        let often = text
            .replace(
                "HealthCheckProgram=/bin/true",
                &format!("HealthCheckProgram={}", self.health_check()),
            )
            .replace(
                &format!("HealthCheckInterval={stated}"),
                &format!("HealthCheckInterval={every}"),
            )
            .replace(&format!("NodeName={OTHER} "), &format!("NodeName={OTHER} Port={port} "));
        Ok(put(&conf, &format!("{often}{most}"))?)
    }

    fn health_check(&self) -> Utf8PathBuf {
        self.folder.join("health-check.sh")
    }
}

fn conf_value(text: &str, key: &str) -> Result<String, Failure> {
    let lines = super::conf::read(text);
    let value = lines.iter().find_map(|line| line.get(key)).map(str::to_owned);
    value.ok_or_else(|| format!("slurm.conf has no {key}").into())
}

/// The node, with what it needs to judge itself.
struct Judged<'a> {
    lab: &'a Lab<'a>,
    /// As it should be.
    good: Node,
}

/// How a node is to slurmctld.
#[derive(Debug)]
struct Seen {
    state: String,
    reason: String,
}

impl Seen {
    fn is_drained(&self) -> bool {
        self.state.contains("DRAIN")
    }
}

impl<'a> Judged<'a> {
    /// Puts the files of the node where they belong, or as near as it can be.
    fn install(lab: &'a Lab<'a>) -> Result<Self, Failure> {
        let folder = &lab.folder;
        let written = format!("clusters/{}/", lab.cluster.name);
        for (path, text) in lab.files {
            if let Some(name) = path.strip_prefix(&format!("{written}intent/")) {
                put(&folder.join("intent").join(name), text)?;
            }
        }
        let text = lab.files.get(&format!("{written}validator/health-check.sh"));
        let text = text.ok_or("no health check is written")?;
        let script = text
            .replace(PROGRAM, folder.join("fleetc-validate").as_str())
            .replace(INTENT, folder.join("intent").as_str());
        executable(&lab.health_check(), &script)?;
        let (program, library) = built()?;
        // A root of another release sees this folder and no other.
        let here = |file: &Utf8Path| folder.join("bin").join(file.file_name().unwrap_or_default());
        std::fs::create_dir_all(folder.join("bin"))?;
        std::fs::copy(&program, here(&program))?;
        std::fs::copy(&library, here(&library))?;
        // slurmd of a node that is not called as its host wants to be told.
        let slurmd = format!("#!/bin/sh\nexec /usr/sbin/slurmd -N {NODE} \"$@\"\n");
        executable(&folder.join("bin/slurmd"), &slurmd)?;
        let wrapper = format!(
            "#!/bin/sh\n[ \"$SLURMD_NODENAME\" = {NODE} ] || exit 0\necho run >> {folder}/begun\nPATH={folder}/bin:$PATH\n\
             export PATH SLURM_CONF={conf} {STATE_VARIABLE}={folder}/node.json\n\
             {program} \"$@\" --library {library} --root {folder}/root --state-dir {folder}/notes \
             --deadline {DEADLINE} 2>> {folder}/said\n\
             code=$?\necho $code >> {folder}/codes\nexit $code\n",
            conf = lab.conf(),
            program = here(&program),
            library = here(&library),
        );
        executable(&folder.join("fleetc-validate"), &wrapper)?;
        let node = Self { lab, good: good(lab)? };
        node.write_kernel()?;
        node.conforms()?;
        Ok(node)
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        self.lab.folder.join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn write_kernel(&self) -> Result<(), Failure> {
        let root = self.path("root");
        let driver = &self.good.driver;
        let module =
            format!("NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Wed Oct 29 2025\n");
        for (file, text) in [
            ("proc/driver/nvidia/version", module.as_str()),
            ("proc/uptime", "86400.12 600000.00\n"),
            ("proc/modules", "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 1 - Live 0x0\n"),
            ("dev/kmsg", "6,0,0,-;Linux version 6.8.0\n"),
            ("dev/nvidiactl", ""),
        ] {
            put(&root.join(file), text)?;
        }
        for gpu in &self.good.gpus {
            put(&root.join(format!("dev/nvidia{}", gpu.minor)), "")?;
            // sysfs has a domain of four digits, in lower case.
            let name = gpu.bus_id.replacen("0000", "", 1).to_lowercase();
            let at = root.join("sys/bus/pci/devices").join(name);
            let device = format!("0x{:04x}\n", gpu.device_id >> 16);
            for (file, text) in [
                ("vendor", "0x10de\n"),
                ("class", "0x030200\n"),
                ("device", device.as_str()),
                ("config", "\u{de}\u{10}rest"),
                ("numa_node", "-1\n"),
            ] {
                put(&at.join(file), text)?;
            }
            symlink("../../../bus/pci/drivers/nvidia", at.join("driver"))?;
        }
        Ok(())
    }

    /// What NVML answers from now on: a reader finds all of the old or all of the new.
    fn answers(&self, node: &Node) -> Result<(), Failure> {
        put(&self.path("node.json.new"), &serde_json::to_string(node)?)?;
        Ok(std::fs::rename(self.path("node.json.new"), self.path("node.json"))?)
    }

    fn conforms(&self) -> Result<(), Failure> {
        self.answers(&self.good)
    }

    fn lacks_a_gpu(&self) -> Result<(), Failure> {
        let mut node = self.good.clone();
        node.gpus.pop();
        self.answers(&node)
    }

    fn hangs_in_nvml(&self) -> Result<(), Failure> {
        let fault =
            Fault { call: "nvmlInit_v2".to_owned(), gpu: None, after: 0, effect: Effect::Hang };
        self.answers(&Node { faults: vec![fault], ..self.good.clone() })
    }

    /// The slurmd of a node, which starts the health check before anything else.
    fn slurmd(&self, node: &str) -> Result<Daemon, Failure> {
        let conf = self.lab.conf();
        let args = ["-D", "-v", "-N", node, "-f", conf.as_str()];
        let log = self.path(&format!("slurmd-{node}.log"));
        Daemon::start(&self.lab.program("slurmd"), &args, ("SLURM_CONF", &conf), log)
    }

    fn seen(&self) -> Result<Seen, Failure> {
        let text = self.lab.must("scontrol", &["show", "node", NODE])?;
        let after = |key: &str| text.lines().find_map(|line| line.split_once(key));
        let state = after("State=").and_then(|(_, rest)| rest.split_whitespace().next());
        let reason = after("Reason=").map_or("", |(_, reason)| reason);
        Ok(Seen { state: state.unwrap_or_default().to_owned(), reason: reason.to_owned() })
    }

    fn set(&self, node: &str, state: &str, reason: Option<&str>) -> Result<(), Failure> {
        let (node, state) = (format!("NodeName={node}"), format!("State={state}"));
        let reason = reason.map(|reason| format!("Reason={reason}"));
        let args = ["update", node.as_str(), state.as_str()].into_iter().chain(reason.as_deref());
        self.lab.must("scontrol", &args.collect::<Vec<_>>()).map(drop)
    }

    fn is_drained_by_us(&self, check: &str) -> bool {
        let start = format!("fleetc: {check} ");
        self.seen().is_ok_and(|seen| seen.is_drained() && seen.reason.starts_with(&start))
    }

    /// Exit codes of the runs that have ended.
    fn codes(&self) -> Vec<String> {
        self.text("codes").lines().map(str::to_owned).collect()
    }

    /// Waits for something; else an error with all that is known.
    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) -> Result<(), Failure> {
        for _ in 0..POLLS {
            if holds() {
                return Ok(());
            }
            sleep(POLL);
        }
        Err(self.problem(what))
    }

    fn problem(&self, what: &str) -> Failure {
        let seen = self.seen().map_or_else(|error| error.to_string(), |seen| format!("{seen:?}"));
        let (codes, said) = (self.codes().join(" "), self.text("said"));
        format!("{NODE}: not so: {what}\nslurmctld shows {seen}\nruns ended with {codes}\nthe program said\n{said}")
            .into()
    }

    fn must(&self, what: &str, holds: bool) -> Result<(), Failure> {
        match holds {
            true => Ok(()),
            false => Err(self.problem(what)),
        }
    }

    /// Waits until slurmd has run the health check with what NVML answers now: a run that has begun may
    /// have asked before. Gives what was said meanwhile.
    fn judged(&self, code: &str) -> Result<String, Failure> {
        let (begun, said) = (self.text("begun").lines().count(), self.text("said").len());
        let what = format!("one more run, which ends with {code}");
        self.until(&what, || self.codes().len() > begun)?;
        let last = self.codes().get(begun).cloned();
        self.must(&what, last.as_deref() == Some(code))?;
        Ok(self.text("said").get(said..).unwrap_or_default().to_owned())
    }

    /// systemd takes the unit, and starts slurmd after it: a slurmd that is to start before it makes a
    /// circle.
    fn unit(&self) -> Result<usize, Failure> {
        let path = format!("clusters/{}/validator/fleetc-validate.service", self.lab.cluster.name);
        let text = self.lab.files.get(&path).ok_or("no unit is written")?;
        let folder = self.path("units");
        put(&folder.join("fleetc-validate.service"), &text.replace(PROGRAM, "/bin/true"))?;
        let verify = |slurmd: &str| -> Result<String, Failure> {
            let unit = format!(
                "[Unit]\nWants=fleetc-validate.service\n{slurmd}\n[Service]\nExecStart=/bin/true\n"
            );
            put(&folder.join("slurmd.service"), &unit)?;
            let output = Command::new("systemd-analyze")
                .args(["verify", "--man=no", "./slurmd.service", "./fleetc-validate.service"])
                .current_dir(&folder)
                .output()?;
            Ok(String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let said = verify("")?;
        if said.contains("fleetc-validate.service") || said.contains("slurmd.service") {
            return Err(format!("{path}: systemd says {said}").into());
        }
        let said = verify("Before=fleetc-validate.service")?;
        if !said.contains("ordering cycle") {
            return Err(format!("{path} does not stand before slurmd: systemd says {said}").into());
        }
        Ok(2)
    }

    /// The node was drained before slurmctld heard of it.
    fn registers_drained(&self, slurmctld: &Daemon) -> Result<(), Failure> {
        let mut registered = None;
        self.until("slurmd has registered", || {
            let said = slurmctld.said();
            registered = said
                .lines()
                .position(|line| line.contains(NODE) && line.contains("registered with"));
            registered.is_some()
        })?;
        let said = slurmctld.said();
        let drained = said.lines().position(|line| line.contains(NODE) && line.contains("DRAIN"));
        self.must("it is drained before it registers", drained < registered && drained.is_some())
    }

    fn is_given_back(&self) -> Result<usize, Failure> {
        self.conforms()?;
        self.until("a node that conforms is given back", || {
            self.seen().is_ok_and(|seen| !seen.is_drained())
        })?;
        // It says so once scontrol has come back, which is after slurmctld shows it.
        self.until("it says so", || self.text("said").contains("conforms again"))?;
        Ok(2)
    }

    /// What an operator has drained stays so, whatever the node is like.
    fn leaves_others_alone(&self) -> Result<usize, Failure> {
        let stays = |what: &str| {
            let seen = self.seen()?;
            self.must(what, seen.is_drained() && seen.reason.starts_with(THEIRS))
        };
        self.set(NODE, "DRAIN", Some(THEIRS))?;
        self.judged("0")?;
        stays("a node that conforms stays drained for the reason of an operator")?;
        self.lacks_a_gpu()?;
        let said = self.judged("1")?;
        stays("the reason of an operator stays")?;
        self.must("whose reason it is, is said", said.contains(&format!("`{THEIRS}")))?;
        Ok(3)
    }

    /// No more nodes are drained than the spec says.
    fn keeps_the_limit(&self) -> Result<usize, Failure> {
        self.set(OTHER, "DRAIN", Some(OURS))?;
        self.set(NODE, "RESUME", None)?;
        let said = self.judged("1")?;
        self.must("the limit holds", !self.seen()?.is_drained())?;
        self.must("the limit is said", said.contains("--max-drained is 1"))?;
        // What is drained for another reason does not count.
        self.set(OTHER, "DRAIN", Some(THEIRS))?;
        self.until("with room it is drained", || self.is_drained_by_us("gpu.count"))?;
        Ok(3)
    }

    /// A driver that does not answer says nothing of the node: what is drained stays so, what is not,
    /// too.
    fn hangs(&self) -> Result<usize, Failure> {
        self.hangs_in_nvml()?;
        self.judged("1")?;
        self.must(
            "a node that cannot be judged is not given back",
            self.is_drained_by_us("gpu.count"),
        )?;
        self.is_given_back()?;
        self.hangs_in_nvml()?;
        self.judged("1")?;
        self.must("a node that cannot be judged is not drained", !self.seen()?.is_drained())?;
        Ok(4)
    }

    /// Without slurmctld the program ends, and says that it did not drain.
    #[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
    fn without_controller(&self) -> Result<usize, Failure> {
        self.lacks_a_gpu()?;
        let (script, said) = (self.lab.health_check(), self.text("said").len());
        let started = Instant::now();
        let place = self.lab.place.command(&self.lab.folder, script.as_str());
        let output = Command::new(place.get_program())
            .args(place.get_args())
            .env("SLURMD_NODENAME", NODE)
            .output()?;
        let took = started.elapsed();
        let said = self.text("said").get(said..).unwrap_or_default().to_owned();
        println!(
            "boot in {}: without slurmctld it ended in {} ms",
            self.lab.place.name,
            took.as_millis()
        );
        self.must("without slurmctld it ends in time", took < MOST)?;
        self.must("the verdict stands", output.status.code() == Some(1))?;
        self.must("it is said that the node is not drained", said.contains("not drained: "))?;
        Ok(3)
    }
}

/// NVML of a node that is what its class says.
fn good(lab: &Lab<'_>) -> Result<Node, Failure> {
    let classes = lab.intent.classes_of(&lab.cluster.name);
    let class = classes.into_iter().find(|class| class.nodes.contains(NODE));
    let class = &class.ok_or("the node has no class")?.node;
    let model = class.gpu.as_ref().ok_or("the node has GPUs")?;
    let row = Catalog::embedded()?.gpu(model.key.as_str()).ok_or("the catalog has the GPU")?;
    let name = row.nvml_name.clone().ok_or("the catalog has its name")?;
    let memory = model.memory.as_ref().ok_or("the catalog has its memory")?.nominal;
    let id = model.pci_device_ids.first().ok_or("the catalog has its PCI device id")?;
    let id = u32::from_str_radix(id.trim_start_matches("0x"), 16)?;
    let gpu = |at: u32| Gpu {
        bus_id: format!("00000000:{:02X}:00.0", 0x10 * (at + 1)),
        device_id: id << 16 | 0x10de,
        name: name.clone(),
        uuid: format!("GPU-00000000-0000-0000-0000-{at:012}"),
        minor: at,
        memory: (memory.0 << 20, 600 << 20, 0),
        mig: None,
        nvlinks: Vec::new(),
        fabric: None,
        ..Gpu::default()
    };
    let gpus = (0..u32::try_from(class.gpus.len())?).map(gpu).collect();
    Ok(Node { gpus, ..Node::default() })
}
