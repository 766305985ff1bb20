//! Memory of GPUs and slices: the first gate.

use fleetc_schema::catalog::Catalog;
use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::intent::{
    Class, Isolation, Parallel, Resource, Sharing, Workload, WorkloadKind,
};
use fleetc_schema::units::{Bytes, Mib};

use super::{Job, jobs, speed};
use crate::check::unsure;
use crate::lower::Lowered;
use crate::sizing::{self, Need, Place};

/// The most clients of one GPU that a help line proposes.
const MOST_CLIENTS: u64 = 48;

/// A job with what it needs and what it is given.
struct Sized<'a> {
    job: Job<'a>,
    need: Need,
    place: Place<'a>,
}

impl<'a> Sized<'a> {
    fn all(lowered: &'a Lowered) -> impl Iterator<Item = Sized<'a>> {
        jobs(lowered).filter_map(|job| {
            let need = sizing::need(job.workload)?;
            let place = sizing::place(&lowered.intent, job.workload)?;
            Some(Sized { job, need, place })
        })
    }

    fn fits(&self) -> bool {
        self.need.least.0 <= self.place.size.to_bytes().0
    }

    /// Starts a finding: the label is on what states the need.
    fn at(&self, finding: Diagnostic, label: impl Into<String>) -> Diagnostic {
        let word = if self.need.stated { "memory" } else { "model" };
        let finding = finding.at(self.job.item.child(word), label);
        match &self.job.workload.slice {
            Some(_) => finding.at(self.job.item.child("slice"), "asks for this slice"),
            None => finding.at(self.job.item.child("pool"), "runs in this pool"),
        }
    }

    /// Adds the arithmetic, unless the spec states the sum.
    fn proof(&self, finding: Diagnostic) -> Diagnostic {
        if self.need.stated { finding } else { finding.note(self.need.notes.join("\n")) }
    }
}

/// `workload/does-not-fit`: what it needs exceeds the GPU, slice or share.
///
/// A GPU or slice whose size nobody has read says nothing.
pub fn does_not_fit(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for sized in Sized::all(lowered) {
        if sized.fits() {
            found.extend(below_weights(&sized));
            continue;
        }
        let (Sized { job, need, place }, name) = (&sized, sized.job.name);
        let (least, size) = (sizing::amount(need.least), place.size);
        let whole = need.complete && need.least == need.likely;
        let words = if whole { "needs" } else { "needs at least" };
        let title = format!("workload `{name}` {words} {least}, and {} has {size}", place.name);
        let finding = Diagnostic::new(&rules::WORKLOAD_DOES_NOT_FIT, title);
        let percent = sizing::percent(need.least, size);
        let finding = sized.at(finding, format!("{least}, {percent} of what there is"));
        let finding = sized.proof(finding);
        let finding = match place.resource {
            Resource::Shared if matches!(job.pool.sharing, Sharing::Mps(_)) => {
                finding.note("MPS gives each client an equal share of the memory and no more")
            }
            _ => finding.note(format!(
                "{size} is {} MiB as NVML reports it, not the GB on the label",
                size.0
            )),
        };
        let finding = match mend(&sized) {
            Some(help) => finding.help(help),
            None => finding.help("take a larger GPU or slice, or spread the job over more of them"),
        };
        let finding = match need.stated {
            true => finding,
            false => finding
                .help("if a part of it is kept elsewhere, state the peak of a GPU: `memory \"…\"`"),
        };
        found.push(match place.resource {
            Resource::Gpu | Resource::Shared => {
                let command = "nvidia-smi --query-gpu=memory.total --format=csv";
                let key = &place.gpu.key;
                unsure::weigh(finding, key, |row| &row.nvml_total_mib, "the memory", command)
            }
            Resource::Slice(_) => finding,
        });
    }
}

/// What would hold it in the same pool, or what the place would hold.
fn mend(sized: &Sized<'_>) -> Option<String> {
    let Sized { job, need, place } = sized;
    if let Some(larger) = larger(place.class, need.least.to_mib_ceil()) {
        return Some(format!("`{larger}` of the same pool holds it"));
    }
    if let (Resource::Shared, Sharing::Mps(_)) = (&place.resource, &job.pool.sharing) {
        let memory = place.gpu.memory?.nominal.to_bytes().0;
        let clients = memory / need.least.0.max(1);
        return (clients > 1).then(|| format!("lower `replicas` of the pool to {clients}"));
    }
    let most = sizing::most_sequences(job.workload, headroom(place.size).to_bytes())?;
    Some(format!("`concurrency={most}` fits, or take a larger GPU or slice"))
}

/// The most that leaves a tenth free.
fn headroom(size: Mib) -> Mib {
    Mib(size.0 * 9 / 10)
}

/// A stated peak below the weights that the model has: one of the two is wrong, unless weights are
/// kept in the host's memory.
fn below_weights(sized: &Sized<'_>) -> Option<Diagnostic> {
    let stated = sized.job.workload.memory?;
    let derived = sizing::derive(sized.job.workload)?;
    if stated >= derived.weights.bytes {
        return None;
    }
    let weights = sizing::amount(derived.weights.bytes);
    let title = format!(
        "workload `{}` states {}, and the weights of its model alone are {weights}",
        sized.job.name,
        sizing::amount(stated)
    );
    Some(
        Diagnostic::new(&rules::WORKLOAD_DOES_NOT_FIT, title)
            .severity(Severity::Warning)
            .at(sized.job.item.child("memory"), "less than the weights")
            .at(sized.job.item.child("model"), format!("{weights} of weights"))
            .note(derived.weights.text)
            .help(format!("state {weights} or more, or correct the model"))
            .help("if a part of the weights is kept in the host's memory, say so in an `allow`"),
    )
}

/// The smallest slice of the pool that holds it.
fn larger(class: &Class, needed: Mib) -> Option<String> {
    let instances = class.node.gpus.iter().filter_map(|slot| slot.mig.as_ref()).flatten();
    instances
        .filter_map(|instance| Some((instance.memory?, &instance.profile)))
        .filter(|(memory, _)| *memory >= needed)
        .min()
        .map(|(_, profile)| profile.to_string())
}

/// `workload/tight-fit`: it fits, and leaves less than the headroom.
pub fn tight_fit(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for sized in Sized::all(lowered) {
        let Sized { job, need, place } = &sized;
        if !sized.fits() || sizing::leaves_headroom(need.likely, place.size) {
            continue;
        }
        let (likely, size) = (sizing::amount(need.likely), place.size);
        let percent = sizing::percent(need.likely, size);
        let title = format!(
            "workload `{}` needs {likely}, {percent} of the {size} of {}",
            job.name, place.name
        );
        let most = headroom(size);
        let sequences = sizing::most_sequences(job.workload, most.to_bytes());
        let finding = Diagnostic::new(&rules::WORKLOAD_TIGHT_FIT, title);
        let finding = sized.proof(sized.at(finding, percent));
        found.push(
            finding
                .note("the runtime, activations and fragmentation need room too: a tenth is kept for them")
                .help(match sequences {
                    Some(sequences) => {
                        format!("stay within {most}: `concurrency={sequences}`, or a larger GPU or slice")
                    }
                    None => format!("stay within {most}, or take a larger GPU or slice"),
                }),
        );
    }
}

/// `workload/oversized`: less than a quarter of what it holds is used.
pub fn oversized(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for sized in Sized::all(lowered) {
        let Sized { job, need, place } = &sized;
        let workload = job.workload;
        let small = matches!(workload.kind, WorkloadKind::Inference | WorkloadKind::Notebook);
        let chosen = workload.isolation == Some(Isolation::Whole);
        let much = u128::from(need.likely.0) * 4 >= u128::from(place.share.to_bytes().0);
        if !small || chosen || much || workload.gpus > 1 || !need.complete {
            continue;
        }
        let Some(help) = smaller(&sized) else { continue };
        let likely = sizing::amount(need.likely);
        let percent = sizing::percent(need.likely, place.share);
        let (whose, share) = match place.share == place.size {
            true => (place.name.clone(), place.share),
            false => (format!("its part of {}", place.name), place.share),
        };
        let title =
            format!("workload `{}` needs {likely}, {percent} of the {share} of {whose}", job.name);
        let finding = Diagnostic::new(&rules::WORKLOAD_OVERSIZED, title);
        let finding = sized.proof(sized.at(finding, format!("{percent} of what it holds")));
        found.push(finding.note("what one workload holds, no other can use").help(help));
    }
}

/// What holds it and is smaller, in a sentence; none if nothing is.
fn smaller(sized: &Sized<'_>) -> Option<String> {
    let Sized { job, need, place } = sized;
    let holds = |size: Mib| sizing::leaves_headroom(need.likely, size);
    if let Resource::Shared = place.resource {
        // Fewer than two replicas are no share, and another finding.
        let replicas = match &job.pool.sharing {
            Sharing::Mps(shared) | Sharing::TimeSlicing(shared) => shared.replicas,
            Sharing::Whole | Sharing::Mig { .. } => 1,
        };
        if replicas < 2 {
            return None;
        }
        let clients = clients(place.gpu.memory?.nominal, need.likely);
        return Some(format!("raise `replicas` of the pool to {clients}, or take a smaller GPU"));
    }
    let gpu = job.gpu()?;
    let row = Catalog::embedded().ok().and_then(|catalog| catalog.mig_table_of(gpu));
    let mut slices: Vec<(Mib, String)> = Vec::new();
    for profile in row.iter().flat_map(|row| &row.table.profiles) {
        let Some(memory) = profile.memory_mib.map(Mib) else { continue };
        let rate = speed::rate_of_slice(gpu, &profile.name);
        let plain = !profile.name.to_string().contains(['+', '-']);
        if plain && memory < place.size && holds(memory) && speed::meets_slo(job, rate) {
            slices.push((memory, format!("`{}`", profile.name)));
        }
    }
    if let Some(least) = slices.iter().map(|(memory, _)| *memory).min() {
        let names: Vec<String> =
            slices.into_iter().filter(|(memory, _)| *memory == least).map(|(_, n)| n).collect();
        return Some(format!("a slice of {} holds it: {} ({least})", gpu.key, names.join(" or ")));
    }
    if place.resource != Resource::Gpu {
        return None;
    }
    if let Some((pool, memory)) = smaller_pool(sized) {
        return Some(format!("pool `{pool}` has GPUs of {memory}, which hold it"));
    }
    let promises = job.workload.slo.is_some();
    let clients = clients(place.size, need.likely);
    (!promises).then(|| {
        format!("share the GPU: `sharing \"mps\"` or `\"time-slicing\"` with `replicas={clients}`")
    })
}

/// How many such clients one GPU holds with headroom.
fn clients(size: Mib, need: Bytes) -> u64 {
    (size.to_bytes().0 / 10 * 9 / need.0.max(1)).clamp(1, MOST_CLIENTS)
}

/// The pool of the same cluster with the smallest whole GPUs that hold it and are smaller.
fn smaller_pool(sized: &Sized<'_>) -> Option<(String, Mib)> {
    let Sized { job, need, place } = sized;
    let intent = &job.lowered.intent;
    let pools = intent.pools.iter().filter(|(_, pool)| {
        pool.parts.contains_key(&job.workload.cluster) && pool.sharing == Sharing::Whole
    });
    pools
        .filter_map(|(name, _)| {
            let gpu = job.lowered.gpus.get(name)?;
            let memory = Mib(gpu.nvml_total_mib.value?);
            let holds = sizing::leaves_headroom(need.likely, memory) && memory < place.size;
            let fast = speed::meets_slo(job, speed::rate(gpu));
            (holds && fast).then(|| (memory, name.to_string()))
        })
        .min()
        .map(|(memory, name)| (name, memory))
}

/// `workload/sharded-needlessly`: one GPU would hold what is split over several.
pub fn sharded_needlessly(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for sized in Sized::all(lowered) {
        let Sized { job, place, .. } = &sized;
        let workload = job.workload;
        let serves = matches!(workload.kind, WorkloadKind::Inference | WorkloadKind::BatchScoring);
        let Some(split) = workload.parallel.filter(|p| p.tensor.saturating_mul(p.pipeline) > 1)
        else {
            continue;
        };
        let expert = split.expert > 1 || split.context > 1;
        if !serves || !sized.fits() || expert || place.resource != Resource::Gpu {
            continue;
        }
        let Some((need, notes)) = unsplit(workload, split) else { continue };
        let rate = job.gpu().and_then(speed::rate);
        if !sizing::leaves_headroom(need, place.size) || !speed::meets_slo(job, rate) {
            continue;
        }
        let ranks = split.tensor.saturating_mul(split.pipeline);
        let amount = sizing::amount(need);
        let percent = sizing::percent(need, place.size);
        let title = format!(
            "workload `{}` is split over {ranks} GPUs, and needs {amount} in all: {percent} of one {}",
            job.name, place.name
        );
        let finding = Diagnostic::new(&rules::WORKLOAD_SHARDED_NEEDLESSLY, title);
        let finding = match workload.slo {
            Some(_) => finding.severity(Severity::Note),
            None => finding,
        };
        let finding = match &notes {
            Some(notes) => finding.note(notes.as_str()),
            None => finding,
        };
        let whole = job.item.child("gpus");
        found.push(
            finding
                .at(whole.child("parallel"), format!("split over {ranks} GPUs"))
                .note("a split model waits for its slowest link at every layer; replicas do not")
                .help(match workload.gpus == ranks {
                    true => format!("run it on one GPU, with {ranks} times the replicas"),
                    false => "set `tensor` and `pipeline` to 1".to_owned(),
                }),
        );
    }
}

/// What one GPU would have to hold, with the arithmetic if it was derived.
fn unsplit(workload: &Workload, split: Parallel) -> Option<(Bytes, Option<String>)> {
    let alone = Workload {
        parallel: Some(Parallel { tensor: 1, pipeline: 1, ..split }),
        memory: None,
        ..workload.clone()
    };
    let ranks = u64::from(split.tensor).saturating_mul(u64::from(split.pipeline));
    let stated = workload.memory.map(|memory| Bytes(memory.0.saturating_mul(ranks)));
    let derived = sizing::need(&alone).filter(|need| need.complete);
    match (stated, derived) {
        (Some(stated), _) => Some((stated, None)),
        (None, Some(need)) => Some((need.likely, Some(need.notes.join("\n")))),
        (None, None) => None,
    }
}
