//! What must hold for every node: a missing reading never makes a check fail.

use std::collections::BTreeSet;

use fleetc_schema::mig::Placement;
use fleetc_schema::units::Mib;
use proptest::prelude::*;

use super::compare;
use crate::example;
use crate::intent::NodeIntent;
use crate::report::{CheckId, Report, Severity, Verdict};
use crate::state::{GpuInstanceState, GpuState, MigMode, NodeState, PciGpu, Reading};
use fleetc_schema::pci::BusId;

fn intents() -> impl Strategy<Value = NodeIntent> {
    let classes = vec![
        example::mixed_mig(),
        example::uniform_mig(),
        example::partly_mig(),
        example::whole(),
        example::without_mig(),
        example::without_gpus(),
        example::at_known_addresses(example::whole()),
        example::at_known_addresses(example::mixed_mig()),
        without_ids(example::whole()),
        without_names(example::mixed_mig()),
    ];
    prop::sample::select(classes)
}

fn without_ids(mut intent: NodeIntent) -> NodeIntent {
    intent.device_ids.clear();
    intent
}

fn without_names(mut intent: NodeIntent) -> NodeIntent {
    if let Some(model) = &mut intent.class.gpu {
        model.nvml_names.clear();
    }
    intent
}

/// A reading that is mostly there: the good value, another one, or none.
fn reading<T: Clone + std::fmt::Debug + 'static>(
    good: Reading<T>,
    other: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Reading<T>> {
    prop_oneof![
        8 => Just(good),
        2 => other.prop_map(Reading::Value),
        1 => Just(Reading::NotApplicable("not here".into())),
        1 => Just(Reading::Unknown("no answer".into())),
    ]
}

fn instance() -> impl Strategy<Value = GpuInstanceState> {
    let profile = prop::sample::select(vec![(19, 1), (9, 4), (14, 2)]);
    (0_u32..9, profile, 0_u8..7).prop_map(|(id, (profile_id, size), start)| GpuInstanceState {
        id,
        profile_id,
        placement: Placement { start, size },
    })
}

fn gpu(good: GpuState) -> impl Strategy<Value = GpuState> {
    let GpuState { bus_id, index, name, device_id, memory, mig_mode, gpu_instances } = good;
    let names = prop::sample::select(vec!["NVIDIA L40S", "NVIDIA H100 80GB HBM3", "other"]);
    let ids = prop::sample::select(vec!["0x26b9", "0x2330", "0x0001"]);
    let mode = any::<(bool, bool)>();
    let fewer = gpu_instances.value().cloned().unwrap_or_default();
    let instances = prop_oneof![
        prop::collection::vec(instance(), 0..4),
        Just(fewer.iter().skip(1).cloned().collect::<Vec<_>>()),
        Just(Vec::new()),
    ];
    (
        reading(name, names.prop_map(str::to_owned)),
        reading(device_id, ids.prop_map(|id| id.parse().unwrap())),
        reading(memory, prop::sample::select(vec![Mib(46_068), Mib(81_000), Mib(1)])),
        reading(mig_mode, mode.prop_map(|(current, pending)| MigMode { current, pending })),
        reading(gpu_instances, instances),
    )
        .prop_map(move |(name, device_id, memory, mig_mode, gpu_instances)| GpuState {
            bus_id,
            index,
            name,
            device_id,
            memory,
            mig_mode,
            gpu_instances,
        })
}

/// States near that of a conforming node: readings differ, GPUs are gone, foreign or out of order.
fn state(intent: &NodeIntent) -> impl Strategy<Value = NodeState> + use<> {
    let good = example::state_of(intent);
    let goods = good.gpus.value().cloned().unwrap_or_default();
    let pci = good.pci_gpus.value().cloned().unwrap_or_default();
    let gpus: Vec<_> = goods.into_iter().map(gpu).collect();
    let gone = || prop_oneof![4 => Just(None), 1 => (0_usize..4).prop_map(Some)];
    let foreign = prop::bool::weighted(0.1);
    let changes = (gone(), gone(), foreign, prop::bool::weighted(0.1));
    (gpus, changes).prop_flat_map(move |(mut gpus, (gone, gone_on_pci, foreign, swapped))| {
        let mut pci = pci.clone();
        if let Some(at) = gone.filter(|at| *at < gpus.len()) {
            gpus.remove(at);
        }
        if let Some(at) = gone_on_pci.filter(|at| *at < pci.len()) {
            pci.remove(at);
        }
        if let Some(gpu) = gpus.first_mut().filter(|_| foreign) {
            gpu.bus_id = example::bus_id(9);
        }
        if let [a, b, ..] = gpus.as_mut_slice()
            && swapped
        {
            std::mem::swap(&mut a.index, &mut b.index);
        }
        let other: Vec<PciGpu> = Vec::new();
        let gpus = match good.gpus.value() {
            Some(_) => Reading::Value(gpus),
            None => good.gpus.clone(),
        };
        let driver = good.driver.clone();
        (reading(Reading::Value(pci), Just(other)), reading(gpus, Just(Vec::new())))
            .prop_map(move |(pci_gpus, gpus)| NodeState { driver: driver.clone(), pci_gpus, gpus })
    })
}

/// Turns values into unknowns where `taken` says so.
fn without_some(mut state: NodeState, mut taken: impl FnMut() -> bool) -> NodeState {
    fn take<T>(reading: &mut Reading<T>, taken: bool) {
        if taken && reading.value().is_some() {
            *reading = Reading::Unknown("taken away".into());
        }
    }
    // The lists carry all else, so they go more rarely.
    take(&mut state.pci_gpus, taken() && taken());
    take(&mut state.gpus, taken() && taken());
    if let Reading::Value(gpus) = &mut state.gpus {
        for gpu in gpus {
            take(&mut gpu.name, taken());
            take(&mut gpu.device_id, taken());
            take(&mut gpu.memory, taken());
            take(&mut gpu.mig_mode, taken());
            take(&mut gpu.gpu_instances, taken());
        }
    }
    state
}

fn blocking(report: &Report) -> BTreeSet<(CheckId, Option<BusId>)> {
    let found = report.findings.iter().filter(|finding| finding.severity == Severity::Blocking);
    found.map(|finding| (finding.check, finding.gpu.map(|gpu| gpu.bus_id))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn taking_readings_away_only_moves_towards_undecided(
        (intent, state) in intents().prop_flat_map(|intent| (Just(intent.clone()), state(&intent))),
        taken in prop::collection::vec(prop::bool::weighted(0.3), 32),
    ) {
        let before = compare(&intent, &state);
        let mut taken = taken.into_iter().cycle();
        let after = compare(&intent, &without_some(state, || taken.next().unwrap_or_default()));
        prop_assert!(
            blocking(&after).is_subset(&blocking(&before)),
            "{:#?}\n{:#?}", before.findings, after.findings
        );
        let allowed = match before.verdict {
            Verdict::Conforms => [Verdict::Conforms, Verdict::Undecided],
            Verdict::DoesNotConform => [Verdict::DoesNotConform, Verdict::Undecided],
            Verdict::Undecided => [Verdict::Undecided; 2],
        };
        prop_assert!(
            allowed.contains(&after.verdict),
            "{:#?}\n{:#?}", before.findings, after.findings
        );
    }

    #[test]
    fn a_node_with_no_reading_at_all_is_undecided(intent in intents()) {
        let unknown = || Reading::Unknown("NVML hangs".to_owned());
        let state = NodeState {
            driver: unknown(),
            pci_gpus: Reading::Unknown(String::new()),
            gpus: Reading::Unknown(String::new()),
        };
        prop_assert_eq!(compare(&intent, &state).verdict, Verdict::Undecided);
    }

    #[test]
    fn the_same_node_gives_the_same_report(
        (intent, state) in intents().prop_flat_map(|intent| (Just(intent.clone()), state(&intent))),
    ) {
        let first = compare(&intent, &state);
        let mut other = state;
        if let Reading::Value(gpus) = &mut other.gpus {
            gpus.reverse();
        }
        if let Reading::Value(gpus) = &mut other.pci_gpus {
            gpus.reverse();
        }
        prop_assert_eq!(compare(&intent, &other), first);
    }
}

#[test]
fn every_example_conforms() {
    for intent in [
        example::mixed_mig(),
        example::uniform_mig(),
        example::partly_mig(),
        example::whole(),
        example::without_mig(),
        example::without_gpus(),
    ] {
        let report = compare(&intent, &example::state_of(&intent));
        assert_eq!(report.findings, [], "{}", intent.class.name);
        assert_eq!(report.verdict, Verdict::Conforms);
    }
}
