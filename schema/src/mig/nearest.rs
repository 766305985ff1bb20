//! The layouts nearest to one that cannot be had.

use std::cmp::Reverse;

use super::space::Space;
use super::{Demand, GiProfile, MigTable};

/// The legal layouts nearest to what is asked for, over every profile of the table: at most
/// `limit`, none empty, none a part of one before it.
///
/// Nearest is the one that changes the fewest memory slices: an asked instance that is left out
/// counts its slices, an instance that was not asked for may take the slices of one that was.
/// Among equals, the one that keeps more slices of what was asked, then the one that uses more
/// compute slices, then the one with fewer instances, then the larger profiles. Each layout lists
/// what it keeps in the order asked, then what it adds in canonical order. If the layout asked for
/// is legal, it comes first.
pub fn nearest_layouts<'a>(
    table: &'a MigTable,
    demands: &[Demand<'a>],
    limit: usize,
) -> Vec<Vec<Demand<'a>>> {
    let space = Space::of_table(table);
    let asked: Vec<u32> = space.profiles.iter().map(|profile| count_of(demands, profile)).collect();
    let slices = |counts: &[u32]| weigh(&space, counts, GiProfile::memory);
    let wanted = demands
        .iter()
        .map(|d| d.count.saturating_mul(d.profile.memory()))
        .fold(0, u32::saturating_add);
    let rank = |counts: &[u32]| {
        let kept: Vec<u32> = counts.iter().zip(&asked).map(|(a, b)| *a.min(b)).collect();
        let kept = slices(&kept);
        let added = slices(counts) - kept;
        let compute = weigh(&space, counts, GiProfile::compute);
        let instances: u32 = counts.iter().sum();
        (added.max(wanted - kept), Reverse(kept), Reverse(compute), instances)
    };
    let some = space.layouts.iter().rev().filter(|counts| counts.iter().any(|count| *count > 0));
    let mut ranked: Vec<&Vec<u32>> = some.collect();
    ranked.sort_by_cached_key(|counts| rank(counts));
    let mut near: Vec<&Vec<u32>> = Vec::new();
    for counts in ranked {
        if near.len() >= limit {
            break;
        }
        let part_of = |other: &&Vec<u32>| counts.iter().zip(other.iter()).all(|(a, b)| a <= b);
        if !near.iter().any(part_of) {
            near.push(counts);
        }
    }
    near.into_iter().map(|counts| in_order(demands, space.demands(counts))).collect()
}

impl GiProfile {
    fn memory(&self) -> u32 {
        u32::from(self.memory_slices)
    }

    fn compute(&self) -> u32 {
        u32::from(self.compute_slices())
    }
}

fn weigh(space: &Space<'_>, counts: &[u32], weight: fn(&GiProfile) -> u32) -> u32 {
    space.profiles.iter().zip(counts).map(|(profile, count)| count * weight(profile)).sum()
}

fn count_of(demands: &[Demand<'_>], profile: &GiProfile) -> u32 {
    let same = demands.iter().filter(|d| d.profile.name == profile.name);
    same.map(|d| d.count).fold(0, u32::saturating_add)
}

/// What was asked for first, in the order asked.
fn in_order<'a>(asked: &[Demand<'_>], mut layout: Vec<Demand<'a>>) -> Vec<Demand<'a>> {
    layout.sort_by_key(|demand| {
        let place = asked.iter().position(|asked| asked.profile.name == demand.profile.name);
        place.unwrap_or(asked.len())
    });
    layout
}

#[cfg(test)]
#[cfg(feature = "catalog")]
mod tests {
    use super::*;
    use crate::mig::place;
    use crate::mig::tests::{ask, table, words};

    fn near(names: &[(&str, u32)]) -> Vec<String> {
        let table = table("h100-80gb-sxm");
        let near = nearest_layouts(&table, &ask(&table, names), 3);
        assert!(near.iter().all(|layout| place(&table, layout).is_ok()));
        near.iter().map(|layout| words(layout)).collect()
    }

    #[test]
    fn nearest_layouts_change_as_few_slices_as_they_can() {
        // 12 slices are asked for, so at least 4 go; both ways to lose 4 come first.
        assert_eq!(
            near(&[("3g.40gb", 2), ("2g.20gb", 2)]),
            ["1 × 3g.40gb + 2 × 2g.20gb", "2 × 3g.40gb", "1 × 3g.40gb + 1 × 2g.20gb + 2 × 1g.10gb"]
        );
    }

    #[test]
    fn what_has_to_go_is_replaced_by_what_fits_in_its_slices() {
        assert_eq!(near(&[("4g.40gb", 2)]).first().unwrap(), "1 × 4g.40gb + 1 × 3g.40gb");
        assert_eq!(near(&[("1g.10gb+me", 2)]).first().unwrap(), "1 × 1g.10gb+me + 1 × 1g.10gb");
        assert_eq!(near(&[("1g.10gb", 9)]).first().unwrap(), "7 × 1g.10gb");
    }

    #[test]
    fn a_legal_layout_is_nearest_to_itself() {
        let legal = near(&[("1g.10gb", 3), ("4g.40gb", 1)]);
        assert_eq!(legal.first().unwrap(), "3 × 1g.10gb + 1 × 4g.40gb");
    }

    #[test]
    fn absurd_counts_have_nearest_layouts_too() {
        assert_eq!(near(&[("7g.80gb", u32::MAX), ("1g.10gb", u32::MAX)]).len(), 3);
    }
}
