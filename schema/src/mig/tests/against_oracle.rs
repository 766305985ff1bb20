//! Every answer held against the oracle's, on every geometry of the catalog.

use std::collections::BTreeSet;

use super::super::*;
use super::{Lcg, Pairs, counts, counts_of, demands, number, obeys_the_rules, tables};
use crate::catalog::Catalog;

fn pairs_of(table: &MigTable, placed: &[Placed<'_>]) -> Pairs {
    let mut pairs: Pairs =
        placed.iter().map(|(profile, at)| (number(table, profile), at.start)).collect();
    pairs.sort_unstable();
    pairs
}

fn placed_of<'a>(table: &'a MigTable, pairs: &[(usize, u8)]) -> Vec<Placed<'a>> {
    let one = |(number, start): &(usize, u8)| {
        let profile = &table.profiles[*number];
        (profile, Placement { start: *start, size: profile.memory_slices })
    };
    pairs.iter().map(one).collect()
}

fn instances_of(placed: &[Placed<'_>]) -> Vec<Instance> {
    let one = |(profile, placement): &Placed<'_>| Instance {
        profile_id: profile.id,
        placement: *placement,
    };
    placed.iter().map(one).collect()
}

fn memory(table: &MigTable, counts: &[u32]) -> u32 {
    let each = counts.iter().zip(&table.profiles);
    each.map(|(count, profile)| count * u32::from(profile.memory_slices)).sum()
}

fn compute(table: &MigTable, counts: &[u32]) -> u32 {
    let each = counts.iter().zip(&table.profiles);
    each.map(|(count, profile)| count * u32::from(profile.compute_slices())).sum()
}

/// Counts of each profile up to one above its `max_count`, with so many memory slices at most.
fn asks(table: &MigTable, slices: u32) -> Vec<Vec<u32>> {
    let mut asks = vec![Vec::new()];
    for profile in &table.profiles {
        let longer = asks.iter().flat_map(|ask: &Vec<u32>| {
            (0..=u32::from(profile.max_count) + 1).map(move |count| {
                let mut ask = ask.clone();
                ask.push(count);
                ask
            })
        });
        asks = longer.filter(|ask| memory(table, ask) <= slices).collect();
    }
    asks
}

#[test]
fn the_numbers_of_layouts_are_the_published_ones() {
    for row in Catalog::embedded().unwrap().mig_tables() {
        let published = match (row.table.memory_slices, row.table.profiles.len()) {
            (8, 7) => (127, 44),
            (4, 5) => (19, 8),
            (4, 11) => (114, 64),
            other => panic!("{} is of a new kind: {other:?}", row.key),
        };
        let found = (layouts(&row.table).len(), maximal_layouts(&row.table).len());
        assert_eq!(found, published, "{}", row.key);
    }
}

#[test]
fn exactly_the_layouts_of_the_oracle_are_found() {
    for (key, table, naive) in tables() {
        let found: Vec<Vec<u32>> =
            layouts(&table).iter().map(|layout| counts_of(&table, layout)).collect();
        let found_once: BTreeSet<&Vec<u32>> = found.iter().collect();
        assert_eq!(found_once.len(), found.len(), "{key}");
        let some = naive.keys().filter(|counts| counts.iter().any(|count| *count > 0));
        assert!(some.eq(found_once), "{key}");
        for counts in naive.keys() {
            assert!(compute(&table, counts) <= u32::from(table.compute_slices), "{key} {counts:?}");
        }
    }
}

#[test]
fn an_ask_is_placed_if_and_only_if_the_oracle_knows_an_arrangement() {
    for (key, table, naive) in tables() {
        for ask in asks(&table, u32::from(table.memory_slices) + 1) {
            match (place(&table, &demands(&table, &ask)), naive.get(&ask)) {
                (Ok(placed), Some(arrangements)) => {
                    assert!(is_legal(&table, &placed));
                    assert!(arrangements.contains(&pairs_of(&table, &placed)), "{key} {ask:?}");
                }
                (Err(_), None) => {}
                (placed, _) => panic!("{key} {ask:?} {placed:?}"),
            }
        }
    }
}

#[test]
fn maximal_layouts_and_room_are_those_of_the_oracle() {
    for (key, table, naive) in tables() {
        let room = |counts: &[u32]| -> Vec<u32> {
            let more = |number: usize| {
                let with = |count: &u32| {
                    let mut counts = counts.to_vec();
                    counts[number] += count;
                    naive.contains_key(&counts)
                };
                (1..=8).rev().find(with).unwrap_or(0)
            };
            (0..counts.len()).map(more).collect()
        };
        let maximal: BTreeSet<Vec<u32>> =
            maximal_layouts(&table).iter().map(|layout| counts_of(&table, layout)).collect();
        for counts in naive.keys() {
            let asked = demands(&table, counts);
            let expected = room(counts);
            assert_eq!(counts_of(&table, &room_left(&table, &asked)), expected, "{key} {counts:?}");
            let full = expected.iter().all(|count| *count == 0);
            assert_eq!(is_maximal(&table, &asked), full, "{key} {counts:?}");
            assert_eq!(maximal.contains(counts), full, "{key} {counts:?}");
        }
    }
}

#[test]
fn placements_that_are_open_are_those_of_the_oracle() {
    let mut random = Lcg(1);
    for (key, table, naive) in tables() {
        let all: Vec<&Pairs> = naive.values().flatten().collect();
        for _ in 0..150 {
            let pairs = all[random.below(all.len())];
            let placed = placed_of(&table, pairs);
            let mut expected = Vec::new();
            for (number, profile) in table.profiles.iter().enumerate() {
                for start in &profile.starts {
                    let mut with = pairs.clone();
                    with.push((number, *start));
                    if obeys_the_rules(&table, &with) {
                        expected.push((number, *start));
                    }
                }
            }
            let open = open_placements(&table, &placed);
            assert_eq!(pairs_of(&table, &open), expected, "{key} {pairs:?}");
        }
    }
}

#[test]
fn a_conflict_is_between_as_few_instances_as_can_be() {
    for (key, table, naive) in tables() {
        for ask in asks(&table, u32::from(table.memory_slices) + 1) {
            let asked = demands(&table, &ask);
            let Some(conflict) = conflict(&table, &asked) else {
                assert!(naive.contains_key(&ask));
                continue;
            };
            let between = counts_of(&table, &conflict.between);
            assert!(between.iter().zip(&ask).all(|(a, b)| a <= b), "{key} {ask:?}");
            assert!(!naive.contains_key(&between), "{key} {ask:?} {between:?}");
            for number in 0..between.len() {
                let mut less = between.clone();
                if less[number] > 0 {
                    less[number] -= 1;
                    assert!(naive.contains_key(&less), "{key} {ask:?} {between:?}");
                }
            }
            // What fits is the ask up to an instance, and with that one it does not.
            let mut fits = counts(&table, &pairs_of(&table, &conflict.fits));
            let rest = counts_of(&table, &conflict.rest);
            assert!(naive.contains_key(&fits) && is_legal(&table, &conflict.fits));
            assert!(fits.iter().zip(&rest).map(|(a, b)| a + b).eq(ask.iter().copied()));
            let blocked = number(&table, conflict.rest[0].profile);
            assert!(fits[blocked + 1..].iter().all(|count| *count == 0));
            assert!(rest[..blocked].iter().all(|count| *count == 0));
            fits[blocked] += 1;
            assert!(!naive.contains_key(&fits), "{key} {ask:?}");
        }
    }
}

#[test]
fn no_layout_of_the_oracle_is_nearer_than_the_first() {
    let mut random = Lcg(2);
    for (key, table, naive) in tables() {
        let asks = asks(&table, 2 * u32::from(table.memory_slices));
        for _ in 0..200 {
            let ask = &asks[random.below(asks.len())];
            let rank = |counts: &Vec<u32>| {
                let kept: Vec<u32> = counts.iter().zip(ask).map(|(a, b)| *a.min(b)).collect();
                let kept = memory(&table, &kept);
                let lost = memory(&table, ask) - kept;
                let added = memory(&table, counts) - kept;
                let unused = u32::from(table.compute_slices) - compute(&table, counts);
                (lost.max(added), lost, unused, counts.iter().sum::<u32>())
            };
            let some = naive.keys().filter(|counts| counts.iter().any(|count| *count > 0));
            let best = some.map(rank).min().unwrap();
            let near: Vec<Vec<u32>> = nearest_layouts(&table, &demands(&table, ask), 5)
                .iter()
                .map(|layout| counts_of(&table, layout))
                .collect();
            assert_eq!(rank(&near[0]), best, "{key} {ask:?} {near:?}");
            assert!(near.is_sorted_by_key(rank) && near.len() <= 5);
            for (index, one) in near.iter().enumerate() {
                assert!(naive.contains_key(one));
                let part_of = |other: &Vec<u32>| one.iter().zip(other).all(|(a, b)| a <= b);
                assert!(!near[..index].iter().any(part_of), "{key} {ask:?} {near:?}");
            }
        }
    }
}

#[test]
fn as_many_instances_survive_a_transition_as_can() {
    let mut random = Lcg(3);
    for (key, table, naive) in tables() {
        let all: Vec<&Pairs> = naive.values().flatten().collect();
        let layouts: Vec<(&Vec<u32>, &Vec<Pairs>)> = naive.iter().collect();
        for _ in 0..1500 {
            let stands = all[random.below(all.len())];
            let (wanted, arrangements) = layouts[random.below(layouts.len())];
            let survivors = |arrangement: &Pairs| {
                let kept: Pairs =
                    arrangement.iter().filter(|pair| stands.contains(pair)).copied().collect();
                (kept.len(), memory(&table, &counts(&table, &kept)))
            };
            let best = arrangements.iter().map(survivors).max().unwrap();
            let now = instances_of(&placed_of(&table, stands));
            let asked = demands(&table, wanted);
            let found = transition(&table, Some(&now), Some(&asked), true).unwrap();
            let kept = counts(&table, &pairs_of(&table, &found.keep));
            assert_eq!(
                (found.keep.len(), memory(&table, &kept)),
                best,
                "{key} {stands:?} {wanted:?}"
            );
            simulate(&table, &now, &found, wanted);
            assert_eq!((found.mode, found.needs_reset), (None, false));
        }
    }
}

/// Does what the transition says, one instance at a time.
fn simulate(table: &MigTable, now: &[Instance], steps: &Transition<'_>, wanted: &[u32]) {
    let mut stand = now.to_vec();
    for instance in &steps.destroy {
        let index = stand.iter().position(|other| other == instance).unwrap();
        stand.remove(index);
    }
    assert_eq!(stand.len(), steps.keep.len());
    for (profile, placement) in &steps.create {
        stand.push(Instance { profile_id: profile.id, placement: *placement });
        let pairs: Pairs = stand
            .iter()
            .map(|i| (number(table, table.profile_by_id(i.profile_id).unwrap()), i.placement.start))
            .collect();
        assert!(obeys_the_rules(table, &pairs));
    }
    for kept in instances_of(&steps.keep) {
        assert!(now.contains(&kept) && stand.contains(&kept));
    }
    let ids = stand.iter().map(|instance| table.profile_by_id(instance.profile_id).unwrap());
    let reached: Vec<Demand<'_>> = ids.map(|profile| Demand { profile, count: 1 }).collect();
    assert_eq!(counts_of(table, &reached), wanted);
}
