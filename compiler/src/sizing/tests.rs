//! Numbers worked out by hand from the formulas: 2^30 bytes are a GiB, 10^9 a GB.

use fleetc_schema::catalog::Catalog;
use fleetc_schema::intent::{Dtype, Model, Parallel, Replicas, Workload, WorkloadKind};
use fleetc_schema::name::{ClusterName, PoolName, TeamName};
use fleetc_schema::units::{Bytes, Mib};

use super::*;

fn model(params: &str, dtype: Dtype) -> Model {
    Model {
        params: params.parse().unwrap(),
        active_params: None,
        dtype,
        cache_dtype: None,
        layers: None,
        kv_heads: None,
        head_dim: None,
        context: None,
        concurrency: None,
    }
}

/// With layers, heads, a dimension of 128, 4096 tokens and one sequence.
fn whole(params: &str, dtype: Dtype, layers: u32, kv_heads: u32) -> Model {
    Model {
        layers: Some(layers),
        kv_heads: Some(kv_heads),
        head_dim: Some(128),
        context: Some(4096),
        concurrency: Some(1),
        ..model(params, dtype)
    }
}

fn workload(model: Model) -> Workload {
    Workload {
        team: TeamName::new("a").unwrap(),
        pool: PoolName::new("a").unwrap(),
        cluster: ClusterName::new("a").unwrap(),
        tier: None,
        kind: WorkloadKind::Inference,
        slice: None,
        gpus: 1,
        parallel: None,
        replicas: Replicas { min: 1, max: 1 },
        memory: None,
        model: Some(model),
        host: None,
        data_rate: None,
        slo: None,
        gang: None,
        network: None,
        checkpoint: None,
        isolation: None,
    }
}

fn split(model: Model, parallel: Parallel) -> Workload {
    let gpus = parallel.tensor * parallel.pipeline * parallel.context * parallel.data;
    Workload { gpus, parallel: Some(parallel), ..workload(model) }
}

const ONE: Parallel = Parallel { tensor: 1, pipeline: 1, context: 1, data: 1, expert: 1 };

fn weights(workload: &Workload) -> u64 {
    derive(workload).unwrap().weights.bytes.0
}

fn cache(workload: &Workload) -> u64 {
    derive(workload).unwrap().cache.unwrap().bytes.0
}

fn seven() -> Model {
    whole("7B", Dtype::Fp16, 32, 32)
}

#[test]
fn weights_are_parameters_times_bytes() {
    for (params, dtype, bytes, shown) in [
        ("7B", Dtype::Fp16, 14_000_000_000, "13.04 GiB"),
        ("13B", Dtype::Bf16, 26_000_000_000, "24.21 GiB"),
        ("30B", Dtype::Fp16, 60_000_000_000, "55.88 GiB"),
        ("30B", Dtype::Int8, 30_000_000_000, "27.94 GiB"),
        ("30B", Dtype::Int4, 15_000_000_000, "13.97 GiB"),
        ("70B", Dtype::Fp16, 140_000_000_000, "130.39 GiB"),
        ("70B", Dtype::Fp8, 70_000_000_000, "65.19 GiB"),
        ("70B", Dtype::Fp4, 35_000_000_000, "32.6 GiB"),
        ("1.5B", Dtype::Fp32, 6_000_000_000, "5.59 GiB"),
    ] {
        let workload = workload(model(params, dtype));
        assert_eq!(weights(&workload), bytes, "{params}");
        assert_eq!(amount(Bytes(bytes)), shown, "{params}");
    }
}

#[test]
fn the_cache_is_keys_and_values_of_every_layer_head_token_and_sequence() {
    const KIB: u64 = 1 << 10;
    const GIB: u64 = 1 << 30;
    let per_token = |model: Model| cache(&workload(Model { context: Some(1), ..model }));
    assert_eq!(per_token(seven()), 512 * KIB);
    assert_eq!(per_token(whole("13B", Dtype::Fp16, 40, 40)), 800 * KIB);
    assert_eq!(per_token(whole("30B", Dtype::Fp16, 60, 52)), 1560 * KIB);
    assert_eq!(per_token(whole("70B", Dtype::Fp16, 80, 8)), 320 * KIB);
    let all = |model: Model| cache(&workload(model));
    assert_eq!(all(seven()), 2 * GIB);
    assert_eq!(all(Model { cache_dtype: Some(Dtype::Fp8), ..seven() }), GIB);
    assert_eq!(all(Model { concurrency: Some(8), ..seven() }), 16 * GIB);
    assert_eq!(all(Model { context: Some(32_768), ..seven() }), 16 * GIB);
    assert_eq!(all(Model { kv_heads: Some(8), ..seven() }), GIB / 2);
    let seventy = whole("70B", Dtype::Fp16, 80, 8);
    assert_eq!(all(seventy.clone()), 5 * GIB / 4);
    assert_eq!(all(Model { context: Some(32_768), ..seventy.clone() }), 10 * GIB);
    assert_eq!(all(Model { context: Some(131_072), ..seventy }), 40 * GIB);
}

#[test]
fn a_sum_shows_its_terms() {
    let need = need(&workload(Model { concurrency: Some(8), ..seven() })).unwrap();
    assert_eq!(need.likely, Bytes(14_000_000_000 + (16 << 30)));
    assert_eq!(need.least, need.likely);
    assert!(need.complete);
    assert_eq!(
        need.notes,
        [
            "weights 7 × 10^9 × 2 B = 13.04 GiB",
            "KV cache 2 × 32 layers × 32 heads × 128 × 2 B × 4096 tokens × 8 sequences = 16 GiB",
            "sum 29.04 GiB",
        ]
    );
    assert_eq!(percent(need.likely, Mib(40_448)), "73.5 %");
}

#[test]
fn what_is_not_stated_leaves_a_lower_bound() {
    let partly = need(&workload(Model { layers: None, ..seven() })).unwrap();
    assert_eq!((partly.least, partly.complete), (Bytes(14_000_000_000), false));
    assert_eq!(partly.notes[1], "KV cache unknown without `layers`");
    let alone = need(&workload(Model { concurrency: None, ..seven() })).unwrap();
    assert_eq!((alone.likely, alone.complete), (Bytes(14_000_000_000 + (2 << 30)), false));
    // Under narrow weights the engine may choose the width of the cache: 1 GiB at least, 2 likely.
    let narrow = need(&workload(whole("7B", Dtype::Int8, 32, 32))).unwrap();
    assert_eq!(narrow.least, Bytes(7_000_000_000 + (1 << 30)));
    assert_eq!(narrow.likely, Bytes(7_000_000_000 + (2 << 30)));
}

#[test]
fn the_fullest_gpu_of_a_split_counts() {
    let seventy = || whole("70B", Dtype::Fp16, 80, 8);
    // Two ranks: half the weights, 4 of 8 heads: 65.19 + 0.625 GiB.
    let two = split(seventy(), Parallel { tensor: 2, ..ONE });
    assert_eq!((weights(&two), cache(&two)), (70_000_000_000, 5 << 27));
    assert_eq!(amount(need(&two).unwrap().likely), "65.82 GiB");
    // Sixteen ranks and 8 heads: each still holds one.
    let sixteen = split(seventy(), Parallel { tensor: 16, ..ONE });
    assert_eq!((weights(&sixteen), cache(&sixteen)), (8_750_000_000, 5 << 25));
    // Three stages of 80 layers: 27 on the fullest.
    let stages = split(seventy(), Parallel { pipeline: 3, ..ONE });
    assert_eq!((weights(&stages), cache(&stages)), (46_666_666_667, 27 * (1 << 24)));
    // Data ranks hold the weights each, and share the sequences: 5 of 9.
    let many = Model { concurrency: Some(9), ..seventy() };
    let data = split(many, Parallel { data: 2, ..ONE });
    assert_eq!((weights(&data), cache(&data)), (140_000_000_000, 5 * (5 << 28)));
    // Context ranks share the tokens.
    let context = split(seventy(), Parallel { context: 4, ..ONE });
    assert_eq!((weights(&context), cache(&context)), (140_000_000_000, 5 << 26));
    // Experts are dealt out; the rest is not, so a quarter is the least.
    let experts = split(seventy(), Parallel { data: 4, expert: 4, ..ONE });
    assert_eq!(weights(&experts), 35_000_000_000);
    assert!(!derive(&experts).unwrap().complete);
}

#[test]
fn of_training_the_weights_alone_are_certain_and_may_be_sharded() {
    let training = Workload { kind: WorkloadKind::Finetune, gpus: 8, ..workload(seven()) };
    let need = need(&training).unwrap();
    assert_eq!((need.least, need.complete), (Bytes(1_750_000_000), false));
    assert!(derive(&training).unwrap().cache.is_none());
}

#[test]
fn a_stated_peak_wins() {
    let stated = Workload { memory: Some(Bytes(6 << 30)), ..workload(seven()) };
    let need = need(&stated).unwrap();
    assert_eq!((need.least, need.likely, need.stated), (Bytes(6 << 30), Bytes(6 << 30), true));
}

#[test]
fn numbers_beyond_all_memory_saturate() {
    let most = Some(u32::MAX);
    let absurd = Model {
        layers: most,
        kv_heads: most,
        head_dim: most,
        context: most,
        concurrency: most,
        ..model("9999T", Dtype::Fp32)
    };
    assert_eq!(need(&workload(absurd)).unwrap().likely, Bytes(u64::MAX));
}

#[test]
fn the_most_sequences_are_found() {
    let many = workload(Model { concurrency: Some(100), ..seven() });
    // 90 % of 39.5 GiB are 35.55; 13.04 + 2 × 11 are 35.04.
    assert_eq!(most_sequences(&many, Bytes(38_171_000_000)), Some(11));
    assert_eq!(most_sequences(&many, Bytes(14_000_000_000)), None);
}

#[test]
fn decoding_is_bound_by_how_often_the_weights_can_be_read() {
    let catalog = Catalog::embedded().unwrap();
    let rate = |gpu: &str| {
        u64::from(catalog.gpu(gpu).unwrap().bandwidth_gb_per_s.value.unwrap()) * 1_000_000_000
    };
    let gpus = [
        "h100-sxm5-80gb",
        "h200-sxm-141gb",
        "b200-sxm",
        "h100-nvl-94gb",
        "h100-pcie-80gb",
        "a100-sxm4-80gb",
        "l40s",
    ];
    // In tenths, in the order of `gpus`: 3350, 4800, 8000, 3938, 2039, 2039 and 864 GB/s.
    for (params, dtype, tenths) in [
        ("7B", Dtype::Fp16, [2393, 3429, 5714, 2813, 1456, 1456, 617]),
        ("13B", Dtype::Fp16, [1288, 1846, 3077, 1515, 784, 784, 332]),
        ("30B", Dtype::Int8, [1117, 1600, 2667, 1313, 680, 680, 288]),
        ("30B", Dtype::Int4, [2233, 3200, 5333, 2625, 1359, 1359, 576]),
    ] {
        let read = read_per_token(&model(params, dtype));
        let found = gpus.map(|gpu| decode_bound(rate(gpu), read));
        assert_eq!(found, tenths, "{params}");
    }
    let seventy = read_per_token(&model("70B", Dtype::Fp16));
    assert_eq!(decode_bound(rate("h200-sxm-141gb"), seventy), 343);
    assert_eq!(decode_bound(rate("b200-sxm"), seventy), 571);
    // Two and four ranks of tensor parallelism, and 8 bits on one H200.
    assert_eq!(decode_bound(2 * rate("h100-sxm5-80gb"), seventy), 479);
    assert_eq!(decode_bound(4 * rate("h100-sxm5-80gb"), seventy), 957);
    let eight = read_per_token(&model("70B", Dtype::Fp8));
    assert_eq!(decode_bound(rate("h200-sxm-141gb"), eight), 686);
    // With a cache of 2 GiB read too: 14 + 2.147 GB a token.
    let with_cache = Bytes(14_000_000_000 + (2 << 30));
    let found = ["h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm"]
        .map(|gpu| decode_bound(rate(gpu), with_cache));
    assert_eq!(found, [2075, 2973, 4954]);
}

#[test]
fn a_promise_is_held_to_the_exact_bound() {
    // 864 / 14 = 61.7.
    let read = read_per_token(&model("7B", Dtype::Fp16));
    assert!(fits_rate(61, 864_000_000_000, read));
    assert!(!fits_rate(62, 864_000_000_000, read));
    // Of a mixture of experts only the active ones are read.
    let experts =
        Model { active_params: Some("22B".parse().unwrap()), ..model("235B", Dtype::Fp8) };
    assert_eq!(read_per_token(&experts), Bytes(22_000_000_000));
}

#[test]
fn a_tenth_is_kept_free() {
    let size = Mib(1000);
    assert!(leaves_headroom(Mib(900).to_bytes(), size));
    assert!(!leaves_headroom(Bytes(Mib(900).to_bytes().0 + 1), size));
    assert_eq!(percent(Mib(767).to_bytes(), size), "76.7 %");
    assert_eq!(percent(Mib(1000).to_bytes(), size), "100 %");
    assert_eq!(amount(Bytes(50 << 20)), "50 MiB");
}
