//! A real API server, scheduler and Kueue take what is written for a Kubernetes cluster.
//!
//! Each cluster of each fleet gets a control plane of its own on loopback (`control_plane`), without
//! containers and kubelets, that behaves as the release which the fleet is written for, and once more,
//! compiled through an overlay, as the oldest that is written for. The site's part is played from the
//! Intent: definitions of resources (`crds`), Nodes and devices (`site`), and owners of workloads, who
//! fill in their templates (`jobs`). Then
//! - Kueue runs with the configuration that is written for it, and with a wrong word in it does not;
//! - every stage applies in order, strictly; applied again nothing changes, and every value stands in the
//!   cluster as it was written;
//! - every ClusterQueue is active, and every template is taken as it is;
//! - a pod gets all that a node of its class has, and never one more (`probes`);
//! - each workload is admitted and bound, to its pool, on the devices that it claims; a job above what its
//!   team may have is held, and one that has all of it is not (`workloads`);
//! - wrong objects are refused by the API server, by a schema and by Kueue.
//!
//! Nothing here waits for a time: each wait is for something to hold, and an error when it takes minutes.

mod control_plane;
mod crds;
mod jobs;
mod judge;
mod lab;
mod objects;
mod probes;
mod site;
mod workloads;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_schema::diag::Severity;
use fleetc_schema::intent::{Cluster, Intent, Kubernetes, QueueKind, Scheduler};
use fleetc_schema::version::KubernetesRelease;
use fleetc_tests::{FLEETS, Texts, check_fleet, compiled};

use super::overlay::overlaid;
use super::programs::Programs;
use crate::put;
use control_plane::ControlPlane;
use lab::{Lab, Passed, REFUSERS};

type Failure = Box<dyn std::error::Error>;

/// Fleets of words that the examples do not have.
const MORE: [(&str, &str); 2] =
    [("conformance", "tests/conformance/kube"), ("places", "tests/conformance/places")];
/// Control planes that run at once; each takes a gigabyte.
const AT_ONCE: usize = 2;

/// A fleet, compiled for a release, with its files on disk.
struct Compiled {
    fleet: &'static str,
    release: KubernetesRelease,
    intent: Intent,
    files: Texts,
    root: Utf8PathBuf,
}

/// Runs every cluster of every fleet; gives how many checks passed.
#[expect(clippy::disallowed_methods, reason = "tells how long each took")]
pub fn run(scratch: &Utf8Path, programs: &Programs) -> Result<usize, Failure> {
    let oldest = *KubernetesRelease::ALL.first().ok_or("some release is written for")?;
    let mut fleets = Vec::new();
    for (fleet, spec) in FLEETS.iter().chain(&MORE) {
        let plain = check_fleet(spec)?;
        let plain = plain.intent().ok_or(format!("{spec} has errors"))?;
        let own = kubernetes(plain).map(|(_, kubernetes)| kubernetes.version);
        for release in own.chain([oldest]).collect::<BTreeSet<_>>() {
            let Some((intent, files)) = compiled_for(fleet, spec, release, programs)? else {
                continue;
            };
            let root = scratch.join(format!("kubernetes-{fleet}-{release}"));
            for (path, text) in &files {
                put(&root.join(path), text)?;
            }
            fleets.push((plain.clone(), Compiled { fleet, release, intent, files, root }));
        }
    }
    let mut trials = Vec::new();
    for (plain, compiled) in &fleets {
        let own: BTreeSet<_> = kubernetes(plain)
            .filter(|(_, kubernetes)| kubernetes.version == compiled.release)
            .map(|(cluster, _)| &cluster.name)
            .collect();
        let here = kubernetes(&compiled.intent)
            .filter(|(cluster, _)| own.contains(&cluster.name) || compiled.release == oldest);
        trials.extend(here.map(|(cluster, kubernetes)| (compiled, cluster, kubernetes)));
    }
    if !trials.iter().any(|(compiled, ..)| compiled.release == oldest) {
        return Err(format!("no cluster runs on Kubernetes {oldest}").into());
    }

    let next = AtomicUsize::new(0);
    let work = || -> Result<Passed, String> {
        let mut all = Passed::default();
        while let Some((compiled, cluster, kubernetes)) = trials.get(next.fetch_add(1, Relaxed)) {
            let what =
                format!("{}/{} on Kubernetes {}", compiled.fleet, cluster.name, compiled.release);
            let start = Instant::now();
            let passed = trial(programs, compiled, cluster, kubernetes).map_err(|error| {
                // The others end after what they are at.
                next.store(trials.len(), Relaxed);
                format!("{what}: {error}")
            })?;
            println!("{what}: {} checks passed in {} s", passed.checks, start.elapsed().as_secs());
            all.add(passed);
        }
        Ok(all)
    };
    let ended: Vec<Result<Passed, String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let early = |_| Err("a thread ended early".to_owned());
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(early)).collect()
    });
    let mut all = Passed::default();
    for passed in ended {
        all.add(passed?);
    }
    match all.refused == BTreeSet::from(REFUSERS) {
        true => Ok(all.checks),
        false => Err(format!("wrong objects were refused by {:?} alone", all.refused).into()),
    }
}

fn trial(
    programs: &Programs,
    compiled: &Compiled,
    cluster: &Cluster,
    kubernetes: &Kubernetes,
) -> Result<Passed, Failure> {
    let Compiled { release, intent, files, root, .. } = compiled;
    let folder = root.join("plane").join(cluster.name.as_str());
    let plane = ControlPlane::start(programs, folder, release.as_str())?;
    Lab { intent, cluster, kubernetes, files, root, plane }.run()
}

fn kubernetes(intent: &Intent) -> impl Iterator<Item = (&Cluster, &Kubernetes)> {
    intent.clusters.values().filter_map(|cluster| match &cluster.scheduler {
        Scheduler::Kubernetes(kubernetes) => Some((cluster, kubernetes)),
        Scheduler::Slurm(_) => None,
    })
}

/// A fleet for another release of Kubernetes, and for the Kueue that is there; none if it has errors
/// then, which is said.
fn compiled_for(
    fleet: &str,
    spec: &str,
    release: KubernetesRelease,
    programs: &Programs,
) -> Result<Option<(Intent, Texts)>, Failure> {
    let plain = check_fleet(spec)?;
    let kueue = programs.kueue_release();
    let items: String = kubernetes(plain.partial_intent())
        .map(|(cluster, kubernetes)| {
            let queue = match kubernetes.queue.kind {
                QueueKind::Kueue => format!("queue \"kueue\" version=\"{kueue}\""),
                QueueKind::None | QueueKind::Kai | QueueKind::Volcano => String::new(),
            };
            format!("cluster \"{}\" {{ kubernetes \"{release}\" {{ {queue} }} }}\n", cluster.name)
        })
        .collect();
    let checked = overlaid(fleet, spec, &items)?;
    let Some(texts) = compiled(&checked) else {
        let errors = checked.diagnostics.iter().filter(|found| found.severity == Severity::Error);
        for error in errors {
            println!(
                "{fleet} is not written for Kubernetes {release}: {}: {}",
                error.rule.name, error.title
            );
        }
        return Ok(None);
    };
    Ok(checked.intent().cloned().map(|intent| (intent, texts)))
}
