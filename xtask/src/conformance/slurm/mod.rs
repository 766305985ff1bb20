//! Slurm's own daemons read what is written for them.
//!
//! On one machine, without systemd, MUNGE, cgroups or GPUs, a real slurmdbd and slurmctld load the
//! files of each Slurm cluster, in the release that is installed and in newer ones (see [`place`]):
//! the fleet is compiled for the release through an overlay. Then
//! - slurmctld says no error about the files as written, and some about wrong ones;
//! - `accounting.sh` runs, and running it again changes nothing;
//! - each workload is admitted, and one GPU more than a node has, or than a QOS allows, is refused;
//! - slurmctld knows the blocks that are written, and a job of a block's size stays within one;
//! - slurmd finds the devices of gres.conf, as many as slurm.conf says;
//! - a node drains itself and gives itself back (see [`boot`]).

mod blocks;
mod boot;
mod conf;
mod database;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_schema::diag::{Severity, rules};
use fleetc_schema::intent::{Class, Cluster, Intent, Scheduler, Slurm, Workload};
use fleetc_schema::version::SlurmRelease;
use fleetc_tests::{FLEETS, Texts, compiled};

use super::daemon::{Daemon, free_ports};
use super::overlay::overlaid;
use super::tool;
use crate::put;
use conf::Mode;
use database::Database;
use place::Place;

type Failure = Box<dyn std::error::Error>;

/// What slurmctld and slurmd say on a machine without a network of theirs, whatever the files say.
const NOISE: &[&str] = &[
    "mpi/pmix",
    "MPI: Cannot create context",
    "Could not open",
    "Trying backup state save file",
    "No fed_mgr state file",
    "hwloc_topo",
    "Domain socket directory",
    // Of a busy machine.
    "High latency for",
];
/// Fleets of words that the examples do not have; those that old releases lack in one of their own.
const MORE: [(&str, &str); 2] =
    [("conformance", "tests/conformance"), ("blocks", "tests/conformance/blocks")];
const READY: &str = "Running as primary controller";

/// Ports of one machine.
#[derive(Debug, Clone, Copy)]
struct Ports {
    slurmctld: u16,
    slurmd: u16,
    slurmdbd: u16,
}

impl Ports {
    fn free() -> Result<Self, Failure> {
        let [slurmctld, slurmd, slurmdbd] = free_ports()?;
        Ok(Self { slurmctld, slurmd, slurmdbd })
    }
}

/// Runs every suite of every fleet in every place, or in one; gives how many checks passed.
pub fn run(scratch: &Utf8Path, only: Option<&str>) -> Result<usize, Failure> {
    let places = Place::all(scratch, only)?;
    if places.is_empty() {
        return Err("no place is called so".into());
    }
    let mut passed = boot::run(&places, scratch)?;
    let database = Database::start(scratch)?;
    let mut written: BTreeSet<&str> = BTreeSet::new();
    for place in &places {
        for (fleet, spec) in FLEETS.iter().chain(&MORE) {
            for detects in [true, false] {
                match compiled_for(fleet, spec, place.release, detects)? {
                    Written::Yes(intent, files) => {
                        written.insert(fleet);
                        passed +=
                            of_fleet(place, &database, fleet, &intent, &files, detects, scratch)?;
                    }
                    // GPU instances cannot be listed by hand.
                    Written::NotForRelease(_) if !detects => {}
                    Written::NotForRelease(why) => {
                        println!("{fleet} is not for {}: {why}", place.name)
                    }
                }
            }
        }
    }
    match FLEETS.iter().chain(&MORE).find(|(fleet, _)| !written.contains(fleet)) {
        Some((fleet, _)) if only.is_none() => {
            Err(format!("no release of Slurm here reads {fleet}").into())
        }
        Some(_) | None => Ok(passed),
    }
}

fn of_fleet(
    place: &Place,
    database: &Database,
    fleet: &str,
    intent: &Intent,
    files: &Texts,
    detects: bool,
    scratch: &Utf8Path,
) -> Result<usize, Failure> {
    let mut passed = 0;
    for cluster in intent.clusters.values() {
        let Scheduler::Slurm(slurm) = &cluster.scheduler else { continue };
        let kind = if detects { "detected" } else { "listed" };
        let name = format!("slurm-{}-{fleet}-{}-{kind}", place.name, cluster.name);
        let folder = scratch.join(name);
        let database = Some(database);
        let lab = Lab { place, database, intent, cluster, slurm, files, folder };
        let what = format!("{fleet}/{} in {} with {kind} GPUs", cluster.name, place.name);
        let done = lab.run(detects).map_err(|error| format!("{what}: {error}"))?;
        println!("{what}: {done} checks of Slurm passed");
        passed += done;
    }
    Ok(passed)
}

/// A fleet for a release of Slurm.
enum Written {
    Yes(Box<Intent>, Texts),
    /// It says what the release does not have.
    NotForRelease(String),
}

/// A fleet for another release of Slurm, with its GPUs detected or listed.
fn compiled_for(
    fleet: &str,
    spec: &str,
    release: SlurmRelease,
    detects: bool,
) -> Result<Written, Failure> {
    let plain = fleetc_tests::check_fleet(spec)?;
    let clusters = plain.partial_intent().clusters.values();
    let slurm = clusters.filter(|cluster| matches!(cluster.scheduler, Scheduler::Slurm(_)));
    let gres = if detects { "" } else { "gres autodetect=\"off\"" };
    let items: String = slurm
        .map(|cluster| {
            format!("cluster \"{}\" {{ slurm \"{release}\" {{ {gres} }} }}\n", cluster.name)
        })
        .collect();
    let checked = overlaid(fleet, spec, &items)?;
    if let (Some(texts), Some(intent)) = (compiled(&checked), checked.intent()) {
        return Ok(Written::Yes(Box::new(intent.clone()), texts));
    }
    let errors = checked.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let of_release =
        [&rules::SLURM_VERSION_FEATURE, &rules::TOPOLOGY_BLOCK_SIZE, &rules::SLURM_MIG_NEEDS_NVML];
    let mut others =
        errors.clone().filter(|found| !of_release.iter().any(|rule| rule.name == found.rule.name));
    match (others.next(), errors.clone().next()) {
        (None, Some(first)) => Ok(Written::NotForRelease(first.title.clone())),
        (other, _) => {
            let title = other.map_or_else(String::new, |found| found.title.clone());
            Err(format!("{fleet} has errors for {release}: {title}").into())
        }
    }
}

/// One cluster on one machine.
struct Lab<'a> {
    place: &'a Place,
    /// None where no accounts are kept.
    database: Option<&'a Database>,
    intent: &'a Intent,
    cluster: &'a Cluster,
    slurm: &'a Slurm,
    files: &'a Texts,
    folder: Utf8PathBuf,
}

impl Lab<'_> {
    fn text(&self, file: &str) -> &str {
        let path = format!("clusters/{}/slurm/{file}", self.cluster.name);
        self.files.get(&path).map_or("", String::as_str)
    }

    fn conf(&self) -> Utf8PathBuf {
        self.folder.join("slurm.conf")
    }

    /// A program of Slurm, where it runs.
    fn program(&self, name: &str) -> Command {
        self.place.command(&self.folder, name)
    }

    /// Runs a command of Slurm; gives whether it succeeded, and what it said.
    fn ask(&self, name: &str, args: &[&str]) -> Result<(bool, String), Failure> {
        let program = self.program(name);
        let output = Command::new("timeout")
            .arg("120")
            .arg(program.get_program())
            .args(program.get_args())
            .args(args)
            .env("SLURM_CONF", self.conf())
            .current_dir(&self.folder)
            .output()?;
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        Ok((output.status.success(), text.into_owned()))
    }

    /// Runs a command that must succeed.
    fn must(&self, name: &str, args: &[&str]) -> Result<String, Failure> {
        match self.ask(name, args)? {
            (true, text) => Ok(text),
            (false, text) => Err(format!("{name} {}: {text}", args.join(" ")).into()),
        }
    }

    fn run(&self, detects: bool) -> Result<usize, Failure> {
        let user = tool("id", &["-un"], Utf8Path::new("."))?;
        let user = user.trim();
        let ports = Ports::free()?;
        for name in ["state", "spool", "dev"] {
            std::fs::create_dir_all(self.folder.join(name))?;
        }
        self.write(Mode::AsWritten, ports, user)?;
        let slurmdbd = self.slurmdbd(ports, user)?;
        let mut passed = 0;

        let script = self.folder.join("accounting.sh");
        self.must("sh", &[script.as_str(), "qos"])?;
        // A TRES is known once slurmctld has registered with it; only then can it be limited.
        let mut slurmctld = self.slurmctld("first")?;
        self.no_errors(&slurmctld)?;
        slurmctld.until("registered with slurmdbd", |_| {
            let port = self.ask("sacctmgr", &["-nP", "show", "cluster", "format=controlport"]);
            port.is_ok_and(|(done, text)| done && !matches!(text.trim(), "" | "0"))
        })?;
        passed += 1;

        self.must("sh", &[script.as_str()])?;
        self.accounts_are_stated()?;
        let accounts = self.accounts()?;
        self.must("sh", &[script.as_str()])?;
        if self.accounts()? != accounts {
            return Err("accounting.sh changes something when it runs again".into());
        }
        for team in self.intent.teams.values() {
            let account = format!("account={}", team.account);
            self.must("sacctmgr", &["-i", "add", "user", user, &account])?;
        }
        slurmctld.stop()?;
        self.wrong_files_fail()?;
        passed += 4;

        let slurmctld = self.slurmctld("as-written")?;
        self.no_errors(&slurmctld)?;
        slurmctld.stop()?;
        passed += 1;

        self.write(Mode::Cloud, ports, user)?;
        let slurmctld = self.slurmctld("cloud")?;
        self.no_errors(&slurmctld)?;
        passed += 1 + self.workloads()? + self.limits()? + self.blocks()?;
        slurmctld.stop()?;
        slurmdbd.stop()?;

        if !detects {
            passed += self.devices()?;
        }
        Ok(passed)
    }

    /// Writes the files of the cluster for this machine.
    fn write(&self, mode: Mode, ports: Ports, user: &str) -> Result<(), Failure> {
        let slurm = self.text("slurm.conf");
        put(&self.conf(), &conf::slurm_conf(slurm, mode, &self.folder, ports, user))?;
        let (gres, devices) = conf::gres_conf(self.text("gres.conf"), slurm, mode, &self.folder);
        put(&self.folder.join("gres.conf"), &gres)?;
        for device in devices {
            if !Utf8Path::new(&device).is_symlink() {
                std::os::unix::fs::symlink("/dev/null", &device)?;
            }
        }
        for name in ["topology.conf", "accounting.sh"] {
            put(&self.folder.join(name), self.text(name))?;
        }
        // There are no cgroups here; before 24.05 that needs no word.
        let plugin = match self.place.release >= SlurmRelease::V24_05 {
            true => "CgroupPlugin=disabled\n",
            false => "",
        };
        put(&self.folder.join("cgroup.conf"), &format!("{}{plugin}", self.text("cgroup.conf")))?;
        Ok(())
    }

    fn slurmdbd(&self, ports: Ports, user: &str) -> Result<Daemon, Failure> {
        let database = self.database.ok_or("slurmdbd wants a database")?;
        let name = database.add()?;
        let (slurmdbd, database, folder) = (ports.slurmdbd, database.port, &self.folder);
        let text = format!(
            "AuthType=auth/none\nDbdHost=localhost\nDbdAddr=127.0.0.1\nDbdPort={slurmdbd}\n\
             SlurmUser={user}\nStorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\n\
             StoragePort={database}\nStorageUser=slurm\nStoragePass=lab\nStorageLoc={name}\n\
             PidFile={folder}/slurmdbd.pid\n"
        );
        // slurmdbd looks for its file beside slurm.conf, and wants it for itself.
        let path = folder.join("slurmdbd.conf");
        put(&path, &text)?;
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let mut daemon = Daemon::start(
            &self.program("slurmdbd"),
            &["-D"],
            ("SLURM_CONF", &self.conf()),
            folder.join("slurmdbd.log"),
        )?;
        let add = ["-i", "add", "cluster", self.cluster.name.as_str()];
        daemon.until("answering", |_| self.ask("sacctmgr", &add).is_ok_and(|(done, _)| done))?;
        Ok(daemon)
    }

    fn slurmctld(&self, run: &str) -> Result<Daemon, Failure> {
        let log = self.folder.join(format!("slurmctld-{run}.log"));
        let conf = self.conf();
        let args = ["-D", "-c", "-v", "-f", conf.as_str()];
        let mut daemon =
            Daemon::start(&self.program("slurmctld"), &args, ("SLURM_CONF", &conf), log)?;
        daemon.until("in control", |daemon| daemon.said().contains(READY))?;
        Ok(daemon)
    }

    /// What slurmctld said until it was in control: after that it may speak to nodes that are not
    /// there.
    fn no_errors(&self, slurmctld: &Daemon) -> Result<(), Failure> {
        let said = slurmctld.said();
        let loaded = said.split(READY).next().unwrap_or_default();
        let errors = errors(loaded);
        match errors.is_empty() {
            true => Ok(()),
            false => Err(format!("slurmctld says\n{}", errors.join("\n")).into()),
        }
    }

    /// These checks can fail: slurmctld ends over a word that it does not know, and what it says
    /// about a GRES that it drops is seen.
    fn wrong_files_fail(&self) -> Result<(), Failure> {
        let wrong = [
            ("slurm.conf", "FromAnotherRelease=yes\n"),
            ("slurm.conf", "NodeName=stranger NodeAddr=127.0.0.1 Gres=fpga:1\n"),
        ];
        for (file, line) in wrong {
            let path = self.folder.join(file);
            let text = std::fs::read_to_string(&path)?;
            put(&path, &format!("{text}{line}"))?;
            let started = self.slurmctld("wrong");
            let seen = started.and_then(|slurmctld| self.no_errors(&slurmctld));
            put(&path, &text)?;
            if seen.is_ok() {
                return Err(format!("slurmctld takes `{}`", line.trim()).into());
            }
        }
        Ok(())
    }

    /// Everything that `accounting.sh` may change, as sacctmgr shows it.
    fn accounts(&self) -> Result<String, Failure> {
        let qos = "format=name,priority,flags,grptres,maxtresperjob,maxwall,preempt";
        let assoc = "format=cluster,account,user,parentname,fairshare,qos,defaultqos";
        let qos = self.must("sacctmgr", &["-nP", "show", "qos", qos])?;
        Ok(qos + &self.must("sacctmgr", &["-nP", "show", "assoc", assoc])?)
    }

    /// slurmdbd keeps what `accounting.sh` states: every QOS with what it preempts, every account.
    fn accounts_are_stated(&self) -> Result<(), Failure> {
        let kept = self.must("sacctmgr", &["-nP", "show", "qos", "format=name,preempt"])?;
        let sorted = |names: &str| {
            let mut names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
            names.sort_unstable();
            names.join(",")
        };
        let kept: BTreeMap<&str, String> = kept
            .lines()
            .filter_map(|line| line.split_once('|'))
            .map(|(name, preempt)| (name, sorted(preempt)))
            .collect();
        for line in self.text("accounting.sh").lines() {
            let Some((name, settings)) =
                line.strip_prefix("set_qos ").and_then(|line| line.split_once(' '))
            else {
                continue;
            };
            let preempt = settings.split(' ').find_map(|word| word.strip_prefix("Preempt="));
            let stated = sorted(preempt.unwrap_or_default());
            if kept.get(name) != Some(&stated) {
                return Err(
                    format!("QOS {name} preempts {:?}, not {stated}", kept.get(name)).into()
                );
            }
        }
        let accounts = self.must("sacctmgr", &["-nP", "show", "account", "format=account"])?;
        let lost = |account: &&String| !accounts.lines().any(|line| line == account.as_str());
        match self.intent.teams.values().map(|team| &team.account).find(lost) {
            None => Ok(()),
            Some(account) => Err(format!("there is no account {account}: {accounts}").into()),
        }
    }

    /// Whether slurmctld would plan a job.
    fn admits(&self, args: &[String]) -> Result<(bool, String), Failure> {
        let args = args.iter().map(String::as_str);
        let all: Vec<&str> = ["--test-only", "--wrap=true"].into_iter().chain(args).collect();
        self.ask("sbatch", &all)
    }

    /// Each workload is admitted under a QOS of its account and partition, and with one GPU more
    /// than a node has under none.
    fn workloads(&self) -> Result<usize, Failure> {
        let mut passed = 0;
        let here = |workload: &&Workload| workload.cluster == self.cluster.name;
        for (name, workload) in self.intent.workloads.iter().filter(|(_, w)| here(w)) {
            let shape = self.shape(workload).ok_or(format!("{name} has no partition or GPU"))?;
            let mut refusals = Vec::new();
            let mut admitted = false;
            for qos in &shape.qos {
                let (done, said) = self.admits(&shape.args(qos, shape.per_node, shape.nodes))?;
                admitted |= done;
                refusals.push(said);
                let (done, _) = self.admits(&shape.args(qos, shape.most + 1, 1))?;
                if done {
                    return Err(format!(
                        "{name}: a node with {} GPUs is given {}",
                        shape.most,
                        shape.most + 1
                    )
                    .into());
                }
            }
            if !admitted {
                return Err(format!("{name} is refused: {}", refusals.concat()).into());
            }
            passed += 2;
        }
        Ok(passed)
    }

    fn shape(&self, workload: &Workload) -> Option<Shape> {
        let mut partitions = self.slurm.partitions.iter();
        let (partition, _) = partitions.find(|(_, p)| p.pools.contains(&workload.pool))?;
        let classes = self.intent.classes_of(&self.cluster.name);
        let classes: Vec<&Class> = classes.filter(|c| c.node.pool == workload.pool).collect();
        let gres = classes.iter().flat_map(|class| &class.node.advertised.gres);
        let wanted = workload.slice.as_ref().map(ToString::to_string);
        let gres = gres
            .filter(|gres| wanted.as_ref().is_none_or(|kind| *kind == gres.kind))
            .max_by_key(|gres| gres.count)?;
        let per_node = gres.count.min(workload.gpus);
        let account = self.intent.teams.get(&workload.team)?.account.clone();
        let of_account = self.qos_of_account(&account);
        let of_partition = self.qos_of_partition(partition.as_str());
        let qos = of_account
            .into_iter()
            .filter(|qos| of_partition.as_ref().is_none_or(|all| all.contains(qos)))
            .collect();
        Some(Shape {
            account,
            partition: partition.to_string(),
            qos,
            kind: gres.kind.clone(),
            per_node,
            nodes: workload.gpus.div_ceil(per_node.max(1)),
            most: gres.count,
        })
    }

    fn qos_of_account(&self, account: &str) -> Vec<String> {
        let text = self.text("accounting.sh");
        let line = text.lines().find(|line| line.starts_with(&format!("set_account {account} ")));
        let words = line.into_iter().flat_map(str::split_whitespace);
        let qos = words.filter_map(|word| word.strip_prefix("QOS="));
        qos.flat_map(|all| all.split(',')).map(str::to_owned).collect()
    }

    fn qos_of_partition(&self, partition: &str) -> Option<Vec<String>> {
        let lines = conf::read(self.text("slurm.conf"));
        let line = lines.iter().find(|line| line.get("PartitionName") == Some(partition))?;
        Some(line.get("AllowQos")?.split(',').map(str::to_owned).collect())
    }

    /// What a QOS is capped at is admitted, and one GPU more is refused.
    fn limits(&self) -> Result<usize, Failure> {
        let lines = conf::read(self.text("slurm.conf"));
        let mut passed = 0;
        for (qos, caps) in self.caps() {
            let allows = |line: &&conf::Line| {
                let all = line.get("AllowQos").into_iter().flat_map(|all| all.split(','));
                line.lead() == "PartitionName" && all.into_iter().any(|name| name == qos)
            };
            let partition = lines.iter().find(allows).and_then(|line| line.get("PartitionName"));
            let account = self.intent.teams.values().map(|team| team.account.clone());
            let account =
                account.into_iter().find(|account| self.qos_of_account(account).contains(&qos));
            let (Some(partition), Some(account)) = (partition, account) else { continue };
            for (kind, cap) in caps {
                let job = |gpus: u64, nodes: Option<u64>| {
                    let gpus = format!("--gpus={kind}{gpus}");
                    let mut args = vec![
                        format!("-A{account}"),
                        format!("-p{partition}"),
                        format!("--qos={qos}"),
                        gpus,
                    ];
                    args.extend(nodes.map(|nodes| format!("-N{nodes}")));
                    self.admits(&args)
                };
                // As many as fill nodes: not every rest of a node is a job that can be placed.
                let most = self.gpus_of_node(partition, &kind).unwrap_or(cap);
                let whole = if cap < most { cap } else { cap / most.max(1) * most };
                // A job that states no nodes is planned as one, which is less than a block.
                let nodes = self.text("topology.conf").contains("BlockName=");
                let nodes = nodes.then(|| whole.div_ceil(most.max(1)));
                if whole > 0
                    && let (false, said) = job(whole, nodes)?
                {
                    return Err(format!("{qos} refuses {kind}{whole}: {said}").into());
                }
                match job(cap + 1, None)? {
                    (true, _) => return Err(format!("{qos} admits {kind}{}", cap + 1).into()),
                    (false, said) if !said.contains("QOS") => {
                        return Err(format!("{qos} does not refuse, but: {said}").into());
                    }
                    (false, _) => passed += 2,
                }
            }
        }
        Ok(passed)
    }

    /// The most GPUs of a node of a partition, of the type that `kind` starts with, if it names one.
    fn gpus_of_node(&self, partition: &str, kind: &str) -> Option<u64> {
        let (_, partition) = self.slurm.partitions.iter().find(|(p, _)| p.as_str() == partition)?;
        let classes = self.intent.classes_of(&self.cluster.name);
        let classes = classes.filter(|class| partition.pools.contains(&class.node.pool));
        let gres = classes.flat_map(|class| &class.node.advertised.gres);
        let of_kind =
            gres.filter(|gres| kind.is_empty() || kind.trim_end_matches(':') == gres.kind);
        of_kind.map(|gres| u64::from(gres.count)).max()
    }

    /// Caps of each QOS in `accounting.sh`, by the GPUs that they count: those of a type as `type:`.
    fn caps(&self) -> BTreeMap<String, Vec<(String, u64)>> {
        let mut caps = BTreeMap::new();
        let lines = self.text("accounting.sh").lines();
        for line in lines.filter_map(|line| line.strip_prefix("set_qos ")) {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap_or_default().to_owned();
            let Some(tres) = words.find_map(|word| word.strip_prefix("GrpTRES=")) else { continue };
            let all: Vec<(String, u64)> = tres
                .split(',')
                .filter_map(|tres| {
                    let (name, cap) = tres.split_once('=')?;
                    let kind = name.strip_prefix("gres/gpu")?;
                    let kind =
                        kind.strip_prefix(':').map_or(String::new(), |kind| format!("{kind}:"));
                    Some((kind, cap.parse().ok()?))
                })
                .collect();
            // Where types are capped, a request without one says less.
            let typed = all.iter().any(|(kind, _)| !kind.is_empty());
            caps.insert(
                name,
                all.into_iter().filter(|(kind, _)| kind.is_empty() != typed).collect(),
            );
        }
        caps
    }

    /// slurmd of a node of each class finds what its line of slurm.conf says.
    fn devices(&self) -> Result<usize, Failure> {
        let mut passed = 0;
        for class in self.intent.classes_of(&self.cluster.name) {
            let Some(node) = class.nodes.first() else { continue };
            let conf = self.conf();
            let said = self.must("slurmd", &["-G", "-N", &node, "-f", conf.as_str()])?;
            let errors = errors(&said);
            if !errors.is_empty() {
                return Err(format!("slurmd of {node} says\n{}", errors.join("\n")).into());
            }
            for gres in &class.node.advertised.gres {
                let (kind, count) =
                    (format!("Type={} ", gres.kind), format!("Count={} ", gres.count));
                if !said.lines().any(|line| line.contains(&kind) && line.contains(&count)) {
                    return Err(
                        format!("slurmd of {node} does not find {count}of {kind}: {said}").into()
                    );
                }
            }
            passed += 1;
        }
        Ok(passed)
    }
}

/// A workload as a job.
struct Shape {
    account: String,
    partition: String,
    qos: Vec<String>,
    kind: String,
    per_node: u32,
    nodes: u32,
    most: u32,
}

impl Shape {
    fn args(&self, qos: &str, gpus: u32, nodes: u32) -> Vec<String> {
        vec![
            format!("-A{}", self.account),
            format!("-p{}", self.partition),
            format!("--qos={qos}"),
            format!("-N{nodes}"),
            format!("--gres=gpu:{}:{gpus}", self.kind),
        ]
    }
}

/// Lines of a log that are errors, but for what this machine always says.
fn errors(log: &str) -> Vec<String> {
    let is_error = |line: &&str| ["error:", "fatal:"].iter().any(|word| line.contains(word));
    let is_known = |line: &&str| NOISE.iter().any(|noise| line.contains(noise));
    log.lines().filter(is_error).filter(|line| !is_known(line)).map(str::to_owned).collect()
}
