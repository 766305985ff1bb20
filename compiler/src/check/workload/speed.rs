//! Bandwidth and price: the second and the last gate. Sparse throughput is never used.

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::{Catalog, CloudShape, Gpu, PriceUnit};
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{Resource, Sharing, WorkloadKind};
use fleetc_schema::mig::MigProfile;
use fleetc_schema::units::{GpuHourPrice, Mib};

use super::{Job, jobs};
use crate::lower::Lowered;
use crate::sizing;

/// The most GPUs of a job that is taken for a small one. A choice of ours.
const SMALL_JOB: u32 = 2;

/// What a GPU reads, in bytes a second; none if the catalog does not know.
pub fn rate(gpu: &Gpu) -> Option<u64> {
    gpu.bandwidth_gb_per_s.value.map(|gb| u64::from(gb) * 1_000_000_000)
}

/// What a GPU instance reads: its part of the memory slices. No data sheet states it.
pub fn rate_of_slice(gpu: &Gpu, profile: &MigProfile) -> Option<u64> {
    let row = Catalog::embedded().ok()?.mig_table_of(gpu)?;
    let slices = u64::from(row.profile(profile)?.memory_slices);
    Some(rate(gpu)? / u64::from(row.table.memory_slices.max(1)) * slices)
}

/// True unless the workload promises more tokens a second than one GPU or slice can read at `rate`.
pub fn meets_slo(job: &Job<'_>, rate: Option<u64>) -> bool {
    let tokens = job.workload.slo.and_then(|slo| slo.tokens_per_second);
    match (tokens, &job.workload.model, rate) {
        (Some(tokens), Some(model), Some(rate)) => {
            sizing::fits_rate(tokens, rate, sizing::read_per_token(model))
        }
        _ => true,
    }
}

/// `workload/bandwidth-below-slo`: the memory cannot be read as often as the SLO asks.
pub fn bandwidth_below_slo(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        let workload = job.workload;
        let (Some(model), WorkloadKind::Inference) = (&workload.model, workload.kind) else {
            continue;
        };
        let Some(wanted) = workload.slo.and_then(|slo| slo.tokens_per_second) else { continue };
        // Of a mixture of experts that does not say how many are active nothing is known.
        let experts = workload.parallel.is_some_and(|split| split.expert > 1);
        let unknown = experts && model.active_params.is_none();
        let (Some(place), Some(gpu)) = (sizing::place(&lowered.intent, workload), job.gpu()) else {
            continue;
        };
        let too_large =
            sizing::need(workload).is_some_and(|need| need.least.0 > place.size.to_bytes().0);
        let one = match &place.resource {
            Resource::Slice(profile) => rate_of_slice(gpu, profile),
            Resource::Gpu | Resource::Shared => rate(gpu),
        };
        // How a replica of several GPUs is spread must be known: ranks read at the same time.
        let spread = match (workload.parallel, workload.gpus) {
            (Some(split), _) => Some(split.tensor),
            (None, 1) => Some(1),
            (None, _) => None,
        };
        let (Some(one), Some(tensor)) = (one, spread) else { continue };
        let read = sizing::read_per_token(model);
        let all = one.saturating_mul(u64::from(tensor.max(1)));
        if unknown || too_large || sizing::fits_rate(wanted, all, read) {
            continue;
        }
        let bound = sizing::decode_bound(all, read);
        let bound = format!("{}.{}", bound / 10, bound % 10);
        let ranks = if tensor > 1 { format!("{tensor} × ") } else { String::new() };
        let title = format!(
            "workload `{}` promises {wanted} tokens a second, and {ranks}{} can read its weights {bound} times a second",
            job.name, place.name
        );
        let part = match &place.resource {
            Resource::Slice(_) => ", its part by memory slices",
            Resource::Gpu | Resource::Shared => "",
        };
        found.push(
            Diagnostic::new(&rules::WORKLOAD_BANDWIDTH_BELOW_SLO, title)
                .at(job.item.child("slo").child("tokens-per-second"), format!("{bound} at most"))
                .at(job.item.child("model"), "each token reads these weights once")
                .note(format!(
                    "{ranks}{} GB/s{part} / {} GB a token = {bound} tokens a second, before the cache is read",
                    decimal(one, 1_000_000_000),
                    decimal(read.0, 1_000_000_000),
                ))
                .help(match part.is_empty() {
                    true => "take a GPU with more bandwidth, a narrower `dtype`, or more `tensor` ranks",
                    false => "take a larger slice or a whole GPU, or a narrower `dtype`",
                })
                .help("of a mixture of experts state `active-params`"),
        );
    }
}

/// A number of units with one decimal, if it has one.
fn decimal(number: u64, unit: u64) -> String {
    let tenths = (u128::from(number) * 10 + u128::from(unit) / 2) / u128::from(unit.max(1));
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

/// `workload/kind-against-gpu`: small work on GPUs that are made to be joined, and large work on
/// GPUs that are not.
pub fn kind_against_gpu(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for job in jobs(lowered) {
        let Some(gpu) = job.gpu() else { continue };
        found.extend(match job.workload.kind {
            WorkloadKind::Pretrain => pretraining_without_nvlink(&job, gpu),
            WorkloadKind::Finetune | WorkloadKind::Inference | WorkloadKind::BatchScoring => {
                cheaper(&job, gpu)
            }
            WorkloadKind::Sweep | WorkloadKind::Notebook | WorkloadKind::Ci => None,
        });
    }
}

/// Pretraining over more GPUs than NVLink joins here. Tensor parallelism over them is a rule of its
/// own, about the topology.
fn pretraining_without_nvlink(job: &Job<'_>, gpu: &Gpu) -> Option<Diagnostic> {
    let domain = u32::from(gpu.nvlink.max_domain.max(1));
    let tensor = job.workload.parallel.map_or(1, |split| split.tensor);
    let joined = gpu.nvlink.nvswitch || domain > SMALL_JOB;
    if joined || job.workload.gpus <= domain || tensor > domain {
        return None;
    }
    let title = format!(
        "workload `{}` pretrains on {} × {}, which {}",
        job.name,
        job.workload.gpus,
        gpu.key,
        if domain == 1 { "have no NVLink" } else { "NVLink joins in pairs only" }
    );
    Some(
        Diagnostic::new(&rules::WORKLOAD_KIND_AGAINST_GPU, title)
            .at(job.item.child("kind"), "exchanges gradients at every step")
            .at(job.item.child("pool"), "GPUs that talk over PCIe")
            .note("gradients of every step cross PCIe, which the GPUs of a node share with each other")
            .help("pretrain on GPUs behind NVSwitch; these are for one- and two-GPU work"),
    )
}

/// A price for a GPU-hour, with where it comes from.
struct Offer {
    micros: u64,
    from: String,
}

/// Small work on whole GPUs behind NVSwitch, although a cheaper GPU of the same cloud meets memory
/// and bandwidth. Without prices of both there is nothing to say.
fn cheaper(job: &Job<'_>, gpu: &Gpu) -> Option<Diagnostic> {
    let whole = job.pool.sharing == Sharing::Whole;
    if !gpu.nvlink.nvswitch || !whole || job.workload.gpus > SMALL_JOB {
        return None;
    }
    let need = sizing::need(job.workload).filter(|need| need.complete)?;
    let place = sizing::place(&job.lowered.intent, job.workload)?;
    if need.likely.0 > place.size.to_bytes().0 {
        return None;
    }
    let catalog = Catalog::embedded().ok()?;
    let shape = catalog.cloud_shape(place.class.node.system.as_str())?;
    let now = match job.pool.capacity.as_ref().and_then(|capacity| capacity.price) {
        Some(GpuHourPrice(micros)) => Offer { micros, from: "stated for the pool".to_owned() },
        None => offer(shape)?,
    };
    let suits = |other: &&CloudShape| {
        let Some(row) = catalog.gpu(other.gpu.as_str()) else { return false };
        let memory = row.nvml_total_mib.value.map(Mib);
        other.cloud == shape.cloud
            && !row.nvlink.nvswitch
            && u32::from(other.gpus_per_node) >= job.workload.gpus
            && memory.is_some_and(|memory| sizing::leaves_headroom(need.likely, memory))
            && (job.workload.gpus > 1 || meets_slo(job, rate(row)))
    };
    let offers = catalog.cloud_shapes.values().filter(suits);
    let (offer, other) = offers
        .filter_map(|shape| Some((offer(shape)?, shape)))
        .filter(|(offer, _)| offer.micros < now.micros)
        .min_by_key(|(offer, _)| offer.micros)?;
    let title = format!(
        "workload `{}` runs on {} GPU of {}, and {} holds it for less",
        job.name, job.workload.gpus, gpu.key, other.gpu
    );
    let usd =
        |micros: u64| format!("{}.{:02} USD", micros / 1_000_000, micros % 1_000_000 / 10_000);
    Some(
        Diagnostic::new(&rules::WORKLOAD_KIND_AGAINST_GPU, title)
            .at(job.item.child("pool"), format!("{} a GPU-hour", usd(now.micros)))
            .at(ItemPath::item("pool", &job.workload.pool).child("system"), "joined by NVSwitch")
            .note(format!(
                "{} {} a GPU-hour ({}), {} {} ({})",
                gpu.key,
                usd(now.micros),
                now.from,
                other.gpu,
                usd(offer.micros),
                offer.from
            ))
            .note(format!(
                "it needs {} of a GPU, and nothing of what joins these",
                sizing::amount(need.likely)
            ))
            .help(format!("a pool of `{}` would hold it", other.key)),
    )
}

/// The list price of a shape for a GPU-hour, with its date.
fn offer(shape: &CloudShape) -> Option<Offer> {
    let price = shape.price.as_ref()?;
    let gpus = match price.per {
        PriceUnit::NodeHour => u64::from(shape.gpus_per_node.max(1)),
        PriceUnit::GpuHour => 1,
        PriceUnit::GpuYear | PriceUnit::Gpu5Years => return None,
    };
    let from = format!("{}, list of {}", shape.key, price.date);
    Some(Offer { micros: price.micros / gpus, from })
}
