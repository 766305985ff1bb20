//! Memory of a GPU from the model that a workload holds.
//!
//! weights = parameters × bytes of a number; KV cache = 2 (keys and values) × layers × heads ×
//! dimension × bytes × tokens × sequences. Tensor parallelism deals out heads, pipeline parallelism
//! layers, context parallelism tokens, data parallelism sequences; the fullest GPU counts.

use std::fmt::Write as _;

use fleetc_schema::intent::{Dtype, Model, Parallel, Workload, WorkloadKind};
use fleetc_schema::units::{Bytes, Parameters};

use super::amount;

/// Bits of a number in the KV cache that engines keep unless told: quantised weights do not narrow
/// it. Source: vLLM documentation, "Quantized KV Cache" (`kv_cache_dtype="auto"` is the type of the
/// activations).
const CACHE_BITS: u32 = 16;

/// The narrowest cache that an engine may choose by itself: an FP8 checkpoint may bring one.
const LEAST_CACHE_BITS: u32 = 8;

/// A term of a sum, with its arithmetic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// `weights 7 × 10^9 × 2 B = 13.04 GiB`.
    pub text: String,
    /// How much it is.
    pub bytes: Bytes,
}

/// What follows from a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// Weights on one GPU, or the least of them that it must hold.
    pub weights: Term,
    /// KV cache on one GPU; none if it is unknown or the workload has none.
    pub cache: Option<Term>,
    /// The cache with the narrowest numbers that the engine may choose.
    pub least_cache: Bytes,
    /// Nothing was left out: weights and cache are all that grows with the model.
    pub complete: bool,
    /// What is unknown, or taken for granted.
    pub remarks: Vec<String>,
}

/// What a workload needs on one GPU or slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What it is known to need at least.
    pub least: Bytes,
    /// What it needs as far as is known.
    pub likely: Bytes,
    /// False if there is more that nobody stated.
    pub complete: bool,
    /// True if the spec states it as `memory`.
    pub stated: bool,
    /// Arithmetic and remarks, one a line.
    pub notes: Vec<String>,
}

/// What the workload needs of a GPU: what it states, else what follows from its model.
pub fn need(workload: &Workload) -> Option<Need> {
    if let Some(memory) = workload.memory {
        let notes = vec![format!("`memory` states {}", amount(memory))];
        return Some(Need { least: memory, likely: memory, complete: true, stated: true, notes });
    }
    let derived = derive(workload)?;
    let cache = derived.cache.as_ref().map_or(Bytes(0), |cache| cache.bytes);
    let sum = |part: Bytes| Bytes(derived.weights.bytes.0.saturating_add(part.0));
    let (least, likely) = (sum(derived.least_cache), sum(cache));
    let mut notes = vec![derived.weights.text];
    if let Some(cache) = derived.cache {
        notes.push(cache.text);
        notes.push(format!("sum {}", amount(likely)));
        if least < likely {
            notes.push(format!("with a cache of {LEAST_CACHE_BITS} bits {}", amount(least)));
        }
    }
    notes.extend(derived.remarks);
    Some(Need { least, likely, complete: derived.complete, stated: false, notes })
}

/// The most sequences at once with which the likely need stays within `size`, if the workload
/// derives its need and states how many there are.
pub fn most_sequences(workload: &Workload, size: Bytes) -> Option<u32> {
    let model = workload.model.as_ref().filter(|_| workload.memory.is_none())?;
    let holds = |sequences: u32| {
        let model = Model { concurrency: Some(sequences), ..model.clone() };
        let fewer = Workload { model: Some(model), ..workload.clone() };
        need(&fewer).is_some_and(|need| need.likely <= size)
    };
    let (mut low, mut high) = (0, model.concurrency?);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match holds(middle) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    (low > 0).then_some(low)
}

/// What follows from the model of a workload; none if it states none.
pub fn derive(workload: &Workload) -> Option<Derived> {
    let model = workload.model.as_ref()?;
    let serves = match workload.kind {
        WorkloadKind::Inference | WorkloadKind::BatchScoring => true,
        WorkloadKind::Pretrain
        | WorkloadKind::Finetune
        | WorkloadKind::Sweep
        | WorkloadKind::Notebook
        | WorkloadKind::Ci => false,
    };
    let one = Parallel { tensor: 1, pipeline: 1, context: 1, data: 1, expert: 1 };
    match (workload.parallel, workload.gpus) {
        (Some(split), _) if serves => Some(served(model, split)),
        (None, 1) if serves => Some(served(model, one)),
        // Sharded over all GPUs at best, as with FSDP; what else a GPU holds is not known.
        (_, gpus) => Some(Derived {
            weights: weights(model, u128::from(gpus.max(1))),
            cache: None,
            least_cache: Bytes(0),
            complete: false,
            remarks: vec![match serves {
                true => "at least: how the replica is spread is not stated (`parallel`)".to_owned(),
                false => "at least: activations and the states of training come on top".to_owned(),
            }],
        }),
    }
}

fn served(model: &Model, split: Parallel) -> Derived {
    let expert = split.expert.max(1);
    let parts = [split.tensor, split.pipeline, expert];
    let parts = parts.iter().map(|part| u128::from((*part).max(1))).product();
    let mut remarks = Vec::new();
    if expert > 1 {
        remarks.push("at least: what is no expert is on every one of its ranks".to_owned());
    }
    let unstated = [
        ("layers", model.layers),
        ("kv-heads", model.kv_heads),
        ("head-dim", model.head_dim),
        ("context", model.context),
    ];
    let unstated: Vec<String> =
        unstated.iter().filter(|(_, v)| v.is_none()).map(|(word, _)| format!("`{word}`")).collect();
    if !unstated.is_empty() {
        remarks.push(format!("KV cache unknown without {}", unstated.join(", ")));
    }
    let (cache, least_cache) = match cache(model, split, &mut remarks) {
        Some((cache, least)) => (Some(cache), least),
        None => (None, Bytes(0)),
    };
    Derived {
        weights: weights(model, parts),
        complete: cache.is_some() && expert == 1 && model.concurrency.is_some(),
        cache,
        least_cache,
        remarks,
    }
}

fn weights(model: &Model, parts: u128) -> Term {
    let bits = u128::from(model.params.0) * u128::from(model.dtype.bits());
    let bytes = saturated(bits.div_ceil(8).div_ceil(parts));
    let mut text = format!("weights {} × {}", powers(model.params), width(model.dtype.bits()));
    if parts > 1 {
        let _ = write!(text, " / {parts} GPUs");
    }
    let _ = write!(text, " = {}", amount(bytes));
    Term { text, bytes }
}

/// The cache of the fullest GPU, and the least that it may be; none if a factor is not stated.
fn cache(model: &Model, split: Parallel, remarks: &mut Vec<String>) -> Option<(Term, Bytes)> {
    let (layers, of_layers) = dealt(model.layers?, split.pipeline);
    let (heads, of_heads) = dealt(model.kv_heads?, split.tensor);
    let dimension = model.head_dim?;
    let (tokens, of_tokens) = dealt(model.context?, split.context);
    let (sequences, of_sequences) = dealt(model.concurrency.unwrap_or(1), split.data);
    let weights = model.dtype.bits();
    let (bits, least) = match model.cache_dtype.map(Dtype::bits) {
        Some(bits) => (bits, bits),
        None => (weights.max(CACHE_BITS), weights.max(LEAST_CACHE_BITS)),
    };
    let bytes = |bits: u32| {
        let factors = [layers, heads, dimension, tokens, sequences];
        let numbers = factors.iter().fold(2_u128, |n, f| n.saturating_mul(u128::from(*f)));
        saturated(numbers.saturating_mul(u128::from(bits)).div_ceil(8))
    };
    let text = format!(
        "KV cache 2 × {} × {} × {dimension} × {} × {} × {} = {}",
        counted(layers, "layer", of_layers),
        counted(heads, "head", of_heads),
        width(bits),
        counted(tokens, "token", of_tokens),
        counted(sequences, "sequence", of_sequences),
        amount(bytes(bits)),
    );
    if bits != least {
        let at = "`cache-dtype` is not stated";
        remarks.push(format!("{at}: {} bits a number, as engines keep it", bits));
    }
    if model.concurrency.is_none() {
        remarks.push("at least: `concurrency` is not stated, one sequence is counted".to_owned());
    }
    Some((Term { text, bytes: bytes(bits) }, bytes(least)))
}

/// What the fullest of several ranks gets, and how it came about if there are several.
fn dealt(all: u32, ranks: u32) -> (u32, Option<(u32, u32)>) {
    let ranks = ranks.max(1);
    (all.div_ceil(ranks), (ranks > 1).then_some((all, ranks)))
}

/// `40 layers (80 / 2)`.
fn counted(count: u32, word: &str, of: Option<(u32, u32)>) -> String {
    let plural = if count == 1 { "" } else { "s" };
    let dealt = of.map(|(all, ranks)| format!(" ({all} / {ranks})")).unwrap_or_default();
    format!("{count} {word}{plural}{dealt}")
}

/// `7 × 10^9` for 7B, `350 × 10^6` for 350M.
fn powers(params: Parameters) -> String {
    let text = params.to_string();
    let power = match text.chars().last() {
        Some('T') => 12,
        Some('B') => 9,
        Some('M') => 6,
        _ => return text,
    };
    format!("{} × 10^{power}", text.trim_end_matches(['T', 'B', 'M']))
}

/// The size of a number, as `2 B` or `0.5 B`.
fn width(bits: u32) -> String {
    match bits {
        4 => "0.5 B".to_owned(),
        bits => format!("{} B", bits / 8),
    }
}

fn saturated(bytes: u128) -> Bytes {
    Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
}
