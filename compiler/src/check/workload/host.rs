//! What a workload asks of the host: processors, memory, shared memory, networks.

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::Imex;
use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::intent::{FabricKind, Sharing, WorkloadKind};
use fleetc_schema::units::{Bytes, BytesPerSec, Mib};

use super::{Job, jobs};
use crate::lower::Lowered;
use crate::sizing;

/// What of the installed memory jobs can have, in percent: kernel and firmware keep a part. Slurm's
/// `RealMemory` is written so; the kubelet keeps about as much. A choice of ours.
const MEMORY_FOR_JOBS_PERCENT: u64 = 95;

/// `/dev/shm` of a container that says nothing. Source: Docker and containerd, default of
/// `--shm-size`; Kubernetes has no field for it.
const DEFAULT_SHM: Bytes = Bytes(64 << 20);

/// `workload/strands-gpus`: processors or memory of a node run out before its GPUs do.
pub fn strands_gpus(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        let (Some(demand), Some(units)) = (job.workload.host, job.units_of_node()) else {
            continue;
        };
        let Some(class) = job.classes().next() else { continue };
        let host = &class.node.host;
        let cpu = demand.cpu.zip(host.cpu).map(|(cpu, has)| {
            let threads = u64::from(has.threads);
            let fit = threads / u64::from(cpu.max(1));
            let most = format!("{} CPUs", threads / u64::from(units.max(1)));
            Bound {
                word: "cpu",
                fit,
                at_most: fit,
                demand: format!("{cpu} CPUs"),
                has: format!("{threads} CPUs"),
                most,
            }
        });
        let memory = demand.memory.zip(host.memory).map(|(memory, has)| {
            let for_jobs = Mib(has.0 * MEMORY_FOR_JOBS_PERCENT / 100);
            let fit = |size: Mib| size.to_bytes().0 / memory.0.max(1);
            Bound {
                word: "memory",
                fit: fit(for_jobs),
                at_most: fit(has),
                demand: sizing::amount(memory),
                has: format!("{for_jobs} for jobs"),
                most: format!("{} GiB", for_jobs.0 / u64::from(units.max(1)) / 1024),
            }
        });
        let Some(bound) = cpu.into_iter().chain(memory).min_by_key(|bound| bound.fit) else {
            continue;
        };
        // That one alone exceeds the node is another finding.
        if bound.at_most == 0 || bound.fit >= u64::from(units) {
            continue;
        }
        found.push(stranded(&job, units, &bound));
    }
}

/// What bounds the number of GPUs that a node can serve.
struct Bound {
    word: &'static str,
    /// How many GPUs can be served.
    fit: u64,
    /// How many could, if nothing was kept for the system.
    at_most: u64,
    demand: String,
    has: String,
    /// What each GPU of a full node can have.
    most: String,
}

fn stranded(job: &Job<'_>, units: u32, bound: &Bound) -> Diagnostic {
    let (gpus, Bound { word, fit, at_most, demand, has, most }) = (job.workload.gpus, bound);
    // A pod stands on one node, with all that it asks for; a Slurm job can be spread thinner.
    let no_pod = job.kubernetes().is_some() && gpus <= units && u64::from(gpus) > *at_most;
    let title = match no_pod {
        true => format!(
            "workload `{}` asks for {gpus} × {demand}, and a node has {has}: no pod of it starts",
            job.name
        ),
        false => format!(
            "workload `{}` asks for {demand} for each of {units} GPUs or slices, and a node has {has}",
            job.name
        ),
    };
    let finding = Diagnostic::new(&rules::WORKLOAD_STRANDS_GPUS, title);
    let finding = if no_pod { finding.severity(Severity::Error) } else { finding };
    let left = u64::from(units) - fit;
    finding
        .at(job.item.child("host").child(word), format!("enough for {fit} of {units}"))
        .at(job.pool_path().child("system"), has.clone())
        .note(match no_pod {
            true => format!("a pod asks for all of it on one node: {gpus} × {demand}"),
            false => format!(
                "a full node leaves {left} of its {units} free, and nothing of this kind can use them"
            ),
        })
        .help(match no_pod {
            true => "ask for less, or split the replica over more pods".to_owned(),
            false => format!("ask for {most} or less for each"),
        })
}

/// `workload/no-rdma`: pods on several nodes that talk over TCP.
pub fn no_rdma(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        if job.kubernetes().is_none() || !job.spans_nodes() || joined_by_nvlink(&job) {
            continue;
        }
        let gpus = job.workload.gpus;
        let fabric = |name| Some((name, lowered.intent.fabrics.get(name)?));
        let (place, label, help) = match job.workload.network.as_ref().and_then(fabric) {
            None => (
                job.item.clone(),
                "no `network`".to_owned(),
                "name its fabric with `network`, of kind infiniband, roce or efa".to_owned(),
            ),
            Some((name, fabric)) if fabric.kind == FabricKind::Ethernet => (
                job.item.child("network"),
                format!("`{name}` is ethernet"),
                format!("take a fabric of kind infiniband, roce or efa instead of `{name}`"),
            ),
            Some(_) => continue,
        };
        let title = format!("workload `{}` spreads {gpus} GPUs over nodes without RDMA", job.name);
        found.push(
            Diagnostic::new(&rules::WORKLOAD_NO_RDMA, title)
                .at(place, label)
                .at(job.item.child("gpus"), format!("{gpus} GPUs, more than a node has"))
                .note("a pod sees a fabric only if it asks for its devices; without, NCCL falls back to TCP and says so in its log alone")
                .help(help),
        );
    }
}

/// True if the job stays in one NVLink domain of several nodes, which carries its traffic.
fn joined_by_nvlink(job: &Job<'_>) -> bool {
    let gpu = job.gpu();
    gpu.is_some_and(|gpu| {
        gpu.imex == Imex::Domain && job.workload.gpus <= u32::from(gpu.nvlink.max_domain)
    })
}

/// `workload/shm-too-small`: workers and NCCL exchange data in `/dev/shm`.
pub fn shm_too_small(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        let workload = job.workload;
        let trains = matches!(workload.kind, WorkloadKind::Pretrain | WorkloadKind::Finetune);
        let stated = workload.host.and_then(|host| host.shm);
        let enough = stated.is_some_and(|shm| shm > DEFAULT_SHM);
        // Several slices are a finding of their own: one larger slice needs no exchange.
        let several = workload.gpus > 1 && !matches!(job.pool.sharing, Sharing::Mig { .. });
        if job.kubernetes().is_none() || enough || !(trains || several) {
            continue;
        }
        let has = sizing::amount(stated.unwrap_or(DEFAULT_SHM));
        let why = match workload.gpus {
            1 => "trains".to_owned(),
            gpus => format!("has {gpus} GPUs"),
        };
        let title = format!("workload `{}` {why}, and its `/dev/shm` has {has}", job.name);
        let (place, label) = match (stated, workload.host) {
            (Some(_), _) => (job.item.child("host").child("shm"), "no more than the default"),
            (None, Some(_)) => (job.item.child("host"), "no `shm`"),
            (None, None) => (job.item.clone(), "no `host shm`"),
        };
        found.push(
            Diagnostic::new(&rules::WORKLOAD_SHM_TOO_SMALL, title)
                .at(place, label)
                .note("NCCL and data loaders exchange through `/dev/shm`; when it is full they end with a bus error")
                .help("add `host shm=\"8GiB\"`: a volume in memory, counted to the pod's memory"),
        );
    }
}

/// `workload/data-rate`: more than the storage network of a node carries.
///
/// Rates of local disks are not in the catalog, so nothing is said about them.
pub fn data_rate(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        let (Some(rate), Some(units)) = (job.workload.data_rate, job.units_of_node()) else {
            continue;
        };
        let storage = lowered.nics.get(&job.workload.pool).and_then(|nics| nics.storage.as_ref());
        let Some((count, each)) = storage.and_then(|nic| Some((nic.count?, nic.mbit_per_s?)))
        else {
            continue;
        };
        let on_node = total_on_node(&job, units);
        let wanted = rate.0.saturating_mul(u64::from(on_node));
        let carries = u64::from(count) * u64::from(each) * (1_000_000 / 8);
        if wanted <= carries {
            continue;
        }
        let (wanted, carries) = (BytesPerSec(wanted), BytesPerSec(carries));
        let title = format!(
            "workload `{}` reads {wanted} on a node, and its storage network carries {carries}",
            job.name
        );
        found.push(
            Diagnostic::new(&rules::WORKLOAD_DATA_RATE, title)
                .at(job.item.child("data").child("rate"), format!("{on_node} × {rate}"))
                .at(
                    ItemPath::item("pool", &job.workload.pool).child("system"),
                    format!("{count} × {} Gb/s for storage", each / 1000),
                )
                .note("GPUs that wait for data look allocated and do nothing")
                .help("cache the data on local disks, or read it in a smaller form"),
        );
    }
}

/// How many GPUs or slices of the workload may stand on one node.
fn total_on_node(job: &Job<'_>, units: u32) -> u32 {
    let all = u64::from(job.workload.gpus) * u64::from(job.workload.replicas.min);
    u32::try_from(all).unwrap_or(u32::MAX).min(units)
}
