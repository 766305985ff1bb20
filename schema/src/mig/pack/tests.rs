use super::*;
use crate::mig::tests::{Lcg, ask, demands, table, tables};
use crate::mig::{layouts, place};

type Served = (u64, u64);

fn worth(layout: &[Demand<'_>]) -> Served {
    layout.iter().fold((0, 0), |(memory, compute), d| {
        let count = u64::from(d.count);
        let profile = d.profile;
        (
            memory + count * u64::from(profile.memory_slices),
            compute + count * u64::from(profile.compute_slices()),
        )
    })
}

/// Fills one GPU after the other with whatever of the ask fits next, in the table's order or
/// largest first.
fn naive_greedy(table: &MigTable, asked: &[Demand<'_>], gpus: u32, largest_first: bool) -> Served {
    let mut left = asked.to_vec();
    if largest_first {
        left.sort_by(|a, b| a.profile.canonical_cmp(b.profile));
    }
    let mut served = (0, 0);
    for _ in 0..gpus {
        let mut on_one: Vec<Demand<'_>> = Vec::new();
        for demand in &mut left {
            while demand.count > 0 {
                on_one.push(Demand { count: 1, ..*demand });
                if place(table, &on_one).is_err() {
                    on_one.pop();
                    break;
                }
                demand.count -= 1;
            }
        }
        let (memory, compute) = worth(&on_one);
        served = (served.0 + memory, served.1 + compute);
    }
    served
}

/// The best of all combinations of layouts.
fn brute_force(all: &[Vec<Demand<'_>>], left: &[Demand<'_>], gpus: u32) -> Served {
    if gpus == 0 {
        return (0, 0);
    }
    let mut best = (0, 0);
    for layout in all {
        let mut left = left.to_vec();
        let mut served = Vec::new();
        for demand in layout {
            let Some(ask) = left.iter_mut().find(|d| d.profile.id == demand.profile.id) else {
                continue;
            };
            let count = demand.count.min(ask.count);
            ask.count -= count;
            served.push(Demand { count, ..*demand });
        }
        let (memory, compute) = worth(&served);
        let others = brute_force(all, &left, gpus - 1);
        best = best.max((memory + others.0, compute + others.1));
    }
    best
}

/// Checks what must hold of any packing, and says what it serves.
fn checked<'a>(table: &MigTable, asked: &[Demand<'a>], gpus: u32) -> (Served, Packing<'a>) {
    let packing = pack(table, asked, gpus);
    assert_eq!(packing.gpus.iter().map(|group| group.gpus).sum::<u32>(), gpus);
    let mut total = (0, 0);
    for demand in &packing.served {
        let on = |group: &PackedGpus<'_>| {
            let same = group.layout.iter().filter(|d| d.profile.id == demand.profile.id);
            same.map(|d| d.count * group.gpus).sum::<u32>()
        };
        assert_eq!(packing.gpus.iter().map(on).sum::<u32>(), demand.count);
        let unserved = packing.unserved.iter().find(|d| d.profile.id == demand.profile.id);
        let ask: u32 =
            asked.iter().filter(|d| d.profile.id == demand.profile.id).map(|d| d.count).sum();
        assert_eq!(demand.count + unserved.map_or(0, |d| d.count), ask);
    }
    for group in &packing.gpus {
        assert!(group.gpus > 0 && place(table, &group.layout).is_ok());
        let (memory, compute) = worth(&group.layout);
        assert_eq!((group.memory.used, group.compute.used), (memory, compute));
        for usage in [group.memory, group.compute] {
            assert!(usage.used + usage.stranded <= usage.total, "{group:?}");
        }
        total =
            (total.0 + memory * u64::from(group.gpus), total.1 + compute * u64::from(group.gpus));
    }
    assert_eq!(total, worth(&packing.served));
    assert_eq!(total, (packing.memory.used, packing.compute.used));
    assert_eq!(packing.memory.total, u64::from(gpus) * u64::from(table.memory_slices));
    assert_eq!(packing, pack(table, asked, gpus));
    (total, packing)
}

/// Some profiles of the table, each up to so often.
fn random_ask<'a>(table: &'a MigTable, random: &mut Lcg, most: usize) -> Vec<Demand<'a>> {
    let mut counts = vec![0; table.profiles.len()];
    for _ in 0..=random.below(4) {
        counts[random.below(table.profiles.len())] = u32::try_from(random.below(most)).unwrap();
    }
    demands(table, &counts).into_iter().filter(|d| d.count > 0).collect()
}

#[test]
fn a_few_gpus_are_packed_as_well_as_by_brute_force() {
    let mut random = Lcg(4);
    for (key, table, _) in tables() {
        for round in 0..60 {
            let gpus = round % 3;
            let asked = random_ask(&table, &mut random, 6);
            let (served, packing) = checked(&table, &asked, gpus);
            assert!(packing.proved, "{key} {asked:?}");
            let asked_alone = |layout: &Vec<Demand<'_>>| {
                layout.iter().all(|d| asked.iter().any(|a| a.profile.id == d.profile.id))
            };
            let all: Vec<_> = layouts(&table).into_iter().filter(asked_alone).collect();
            assert_eq!(served, brute_force(&all, &asked, gpus), "{key} {gpus} {asked:?}");
        }
    }
}

#[test]
fn many_gpus_are_packed_no_worse_than_one_after_the_other() {
    let mut random = Lcg(5);
    for (key, table, _) in tables() {
        for _ in 0..12 {
            let gpus = u32::try_from(1 + random.below(64)).unwrap();
            let asked = random_ask(&table, &mut random, 200);
            let (served, packing) = checked(&table, &asked, gpus);
            // Not promised, but so today: a weaker bound or rounding would show here.
            assert!(packing.proved || table.memory_slices < 8, "{key} {gpus} {asked:?}");
            for largest_first in [false, true] {
                let naive = naive_greedy(&table, &asked, gpus, largest_first);
                assert!(served >= naive, "{key} {gpus} {asked:?}");
            }
        }
    }
}

#[test]
fn a_mix_is_spread_so_that_whole_gpus_stay_empty() {
    let table = table("h100-80gb-sxm");
    let asked = ask(&table, &[("1g.10gb", 9), ("3g.40gb", 3), ("2g.20gb", 2)]);
    let (_, packing) = checked(&table, &asked, 8);
    assert!(packing.proved && packing.unserved.is_empty());
    let last = packing.gpus.last().unwrap();
    // 25 memory slices are asked for: four GPUs are the fewest.
    assert_eq!((last.gpus, last.layout.len()), (4, 0));
    assert_eq!((packing.memory.used, packing.memory.total), (25, 64));
}

#[test]
fn slices_that_no_asked_profile_can_use_are_stranded() {
    let table = table("h100-80gb-sxm");
    // Slice 7 beside seven 1g; slices 6 and 7 beside three 2g; one compute slice beside two 3g.
    for (name, memory, compute) in [
        ("1g.10gb", 1, 0),
        ("2g.20gb", 2, 1),
        ("3g.40gb", 0, 1),
        ("4g.40gb", 4, 3),
        ("7g.80gb", 0, 0),
    ] {
        let (_, packing) = checked(&table, &ask(&table, &[(name, 70)]), 10);
        let stranded = (packing.memory.stranded, packing.compute.stranded);
        assert_eq!(stranded, (memory * 10, compute * 10), "{name}");
    }
    // What could still be added is free, not stranded: here another 3g.
    let (_, packing) = checked(&table, &ask(&table, &[("3g.40gb", 1)]), 1);
    assert_eq!((packing.memory.used, packing.memory.stranded), (4, 0));
}

#[test]
fn absurd_questions_have_answers() {
    let (_, table, _) = tables().into_iter().next().unwrap();
    let all = demands(&table, &vec![u32::MAX; table.profiles.len()]);
    let (_, packing) = checked(&table, &all, u32::MAX / 8);
    assert_eq!(packing.memory.used, packing.memory.total);
    assert!(pack(&table, &[], 3).served.is_empty());
    assert!(pack(&table, &all, 0).gpus.is_empty());
    let none = demands(&table, &vec![0; table.profiles.len()]);
    assert_eq!(pack(&table, &none, 2).memory.used, 0);
}
