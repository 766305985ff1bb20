//! Placing GPU instances on a GPU.
//!
//! A layout is legal when no two placements overlap in memory slices, each start is in its
//! profile's list, no profile goes above its `max_count`, and the engines of all instances stay
//! within the GPU's. The search is exhaustive and its order fixed: a layout that can be placed is
//! found, and always at the same placement. Source: NVIDIA MIG User Guide, "Supported MIG Profiles".

use std::collections::BTreeSet;
use std::fmt;

use super::{Engines, GiProfile, MigTable, Placement};

/// How many instances of one profile are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand<'a> {
    /// The profile, of the table that is searched.
    pub profile: &'a GiProfile,
    /// How many.
    pub count: u32,
}

/// `4 × 1g.10gb`.
impl fmt::Display for Demand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {}", self.count, self.profile.name)
    }
}

/// A layout in words: `1 × 3g.40gb + 4 × 1g.10gb`; `nothing` if it is empty.
pub fn in_words(demands: &[Demand<'_>]) -> String {
    let some = demands.iter().filter(|demand| demand.count > 0);
    let parts: Vec<String> = some.map(ToString::to_string).collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(" + ") }
}

/// An instance of a profile and where it stands.
pub type Placed<'a> = (&'a GiProfile, Placement);

/// Why a layout cannot be had. [`conflict`](super::conflict) says between which profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLayout {
    /// The instances need more memory slices than the GPU has.
    TooManySlices {
        /// Slices asked for.
        wanted: u32,
        /// Slices that there are.
        available: u8,
    },
    /// The slices would do, but no arrangement of starts works.
    NoArrangement,
    /// It could be placed, but the engines do not go round, or a profile is above its `max_count`.
    Engines,
}

/// Places every instance, largest first, each at the lowest start that leaves room for the rest;
/// the result is in the order of the demands. The placements do not depend on that order.
///
/// # Errors
/// Says why no legal layout holds all that is asked for.
pub fn place<'a>(table: &MigTable, demands: &[Demand<'a>]) -> Result<Vec<Placed<'a>>, NoLayout> {
    let wanted = demands
        .iter()
        .map(|d| d.count.saturating_mul(u32::from(d.profile.memory_slices)))
        .fold(0, u32::saturating_add);
    if wanted > u32::from(table.memory_slices) {
        return Err(NoLayout::TooManySlices { wanted, available: table.memory_slices });
    }
    let steps = steps(table, demands).ok_or(NoLayout::NoArrangement)?;
    let mut search = Search::default();
    if !search.place(&steps, 0, 0, 0) {
        return Err(NoLayout::NoArrangement);
    }
    if !counts_fit(table, demands) {
        return Err(NoLayout::Engines);
    }
    let mut placed = search.placed;
    placed.sort_by_key(|(index, _, placement)| (*index, placement.start));
    Ok(placed.into_iter().map(|(_, profile, placement)| (profile, placement)).collect())
}

/// True if no profile is above its `max_count` and the engines go round.
pub(super) fn counts_fit(table: &MigTable, demands: &[Demand<'_>]) -> bool {
    let total = |of: &GiProfile| {
        let same = demands.iter().filter(|d| d.profile.name == of.name);
        same.map(|d| d.count).fold(0, u32::saturating_add)
    };
    if demands.iter().any(|d| total(d.profile) > u32::from(d.profile.max_count)) {
        return false;
    }
    // No count is above 255 here.
    let each = demands.iter().flat_map(|d| (0..d.count).map(|_| d.profile.engines));
    each.fold(Engines::default(), Engines::plus).fits_in(table.engine_totals)
}

/// True if these instances may stand on one GPU together, at these places.
pub fn is_legal(table: &MigTable, placed: &[Placed<'_>]) -> bool {
    let mut taken = 0;
    for (profile, placement) in placed {
        let spots = spots(profile, table.memory_slices);
        match spots.iter().find(|spot| spot.placement == *placement) {
            Some(spot) if taken & spot.mask == 0 => taken |= spot.mask,
            _ => return false,
        }
    }
    let demands: Vec<Demand<'_>> =
        placed.iter().map(|(profile, _)| Demand { profile, count: 1 }).collect();
    counts_fit(table, &demands)
}

/// Every instance that could still be made beside these, one at a time, with none of them moved.
/// In canonical order of profiles, then by start; nothing if these do not fit together.
pub fn open_placements<'a>(table: &'a MigTable, placed: &[Placed<'_>]) -> Vec<Placed<'a>> {
    let mut open = Vec::new();
    for profile in table.canonical() {
        for spot in spots(profile, table.memory_slices) {
            let mut with = placed.to_vec();
            with.push((profile, spot.placement));
            if is_legal(table, &with) {
                open.push((profile, spot.placement));
            }
        }
    }
    open
}

/// A place where an instance of a profile may stand, with a bit for each memory slice it takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    pub placement: Placement,
    pub mask: u64,
}

/// The spots of a profile in rising order. A start that does not leave the instance inside the GPU
/// is none.
pub(super) fn spots(profile: &GiProfile, memory_slices: u8) -> Vec<Spot> {
    let size = profile.memory_slices;
    let mut starts = profile.starts.clone();
    starts.sort_unstable();
    starts.dedup();
    let spot = |start: u8| {
        let end = start.checked_add(size).filter(|end| size > 0 && *end <= memory_slices)?;
        let below = |bit: u8| 1_u128.checked_shl(u32::from(bit)).map(|bit| bit - 1);
        let mask = u64::try_from(below(end)? & !below(start)?).ok()?;
        Some(Spot { placement: Placement { start, size }, mask })
    };
    starts.into_iter().filter_map(spot).collect()
}

/// The instances of one demand, all alike.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub index: usize,
    pub profile: &'a GiProfile,
    pub count: usize,
    pub spots: Vec<Spot>,
}

/// The demands in the order in which they are placed. None if one has fewer spots than instances.
pub(super) fn steps<'a>(table: &MigTable, demands: &[Demand<'a>]) -> Option<Vec<Step<'a>>> {
    let mut steps = Vec::new();
    for (index, demand) in demands.iter().enumerate().filter(|(_, d)| d.count > 0) {
        let spots = spots(demand.profile, table.memory_slices);
        let count = usize::try_from(demand.count).ok().filter(|count| *count <= spots.len())?;
        steps.push(Step { index, profile: demand.profile, count, spots });
    }
    steps.sort_by(|a, b| a.profile.canonical_cmp(b.profile).then(a.index.cmp(&b.index)));
    Some(steps)
}

#[derive(Default)]
struct Search<'a> {
    placed: Vec<(usize, &'a GiProfile, Placement)>,
    /// States from which there is no way on: steps left, instances of the first that stand, first
    /// spot that the next may take, slices taken.
    dead: BTreeSet<(usize, usize, usize, u64)>,
}

impl<'a> Search<'a> {
    /// Depth first over spots in rising order. Instances of one step are alike, so each next one
    /// starts after the last.
    fn place(&mut self, steps: &[Step<'a>], standing: usize, from: usize, taken: u64) -> bool {
        let Some((step, rest)) = steps.split_first() else { return true };
        if standing == step.count {
            return self.place(rest, 0, 0, taken);
        }
        let state = (steps.len(), standing, from, taken);
        if self.dead.contains(&state) {
            return false;
        }
        for (at, spot) in step.spots.iter().enumerate().skip(from) {
            if taken & spot.mask != 0 {
                continue;
            }
            self.placed.push((step.index, step.profile, spot.placement));
            if self.place(steps, standing + 1, at + 1, taken | spot.mask) {
                return true;
            }
            self.placed.pop();
        }
        self.dead.insert(state);
        false
    }
}

#[cfg(test)]
#[cfg(feature = "catalog")]
mod tests {
    use super::*;
    use crate::mig::tests::{ask, table};

    fn layout(names: &[(&str, u32)]) -> Result<Vec<(String, u8)>, NoLayout> {
        let table = table("h100-80gb-sxm");
        let placed = place(&table, &ask(&table, names))?;
        assert!(is_legal(&table, &placed));
        Ok(placed.into_iter().map(|(p, at)| (p.name.to_string(), at.start)).collect())
    }

    #[test]
    fn one_3g_leaves_room_for_four_1g_only_at_the_upper_half() {
        let placed = layout(&[("3g.40gb", 1), ("1g.10gb", 4)]).unwrap();
        let starts: Vec<u8> = placed.iter().map(|(_, start)| *start).collect();
        // A 1g cannot start at slice 7, so with the 3g at 0 only three would fit.
        assert_eq!(starts, [4, 0, 1, 2, 3]);
    }

    #[test]
    fn two_3g_instances_leave_no_room_for_a_4g() {
        assert_eq!(
            layout(&[("3g.40gb", 2), ("4g.40gb", 1)]),
            Err(NoLayout::TooManySlices { wanted: 12, available: 8 })
        );
    }

    #[test]
    fn slices_that_add_up_may_still_have_no_arrangement() {
        // 4 + 4 slices: the 4g must start at 0, and so must one of two halves of 4g.
        assert_eq!(layout(&[("4g.40gb", 2)]), Err(NoLayout::NoArrangement));
        assert_eq!(layout(&[("1g.10gb", 8)]), Err(NoLayout::NoArrangement));
    }

    #[test]
    fn one_media_engine_goes_to_one_instance() {
        assert_eq!(layout(&[("1g.10gb+me", 2)]), Err(NoLayout::Engines));
        assert!(layout(&[("1g.10gb+me", 1), ("1g.10gb", 6)]).is_ok());
    }

    #[test]
    fn placements_do_not_depend_on_the_order_of_the_demands() {
        let one = layout(&[("2g.20gb", 1), ("1g.20gb", 1), ("1g.10gb", 2)]).unwrap();
        let other = layout(&[("1g.10gb", 2), ("1g.20gb", 1), ("2g.20gb", 1)]).unwrap();
        let sorted = |mut layout: Vec<(String, u8)>| {
            layout.sort();
            layout
        };
        assert_eq!(sorted(one), sorted(other));
    }

    #[test]
    fn a_profile_named_twice_counts_as_one() {
        assert!(layout(&[("1g.10gb", 3), ("1g.10gb", 4)]).is_ok());
        assert_eq!(
            layout(&[("1g.10gb+me", 1), ("2g.20gb", 1), ("1g.10gb+me", 1)]),
            Err(NoLayout::Engines)
        );
    }

    #[test]
    fn absurd_counts_and_starts_are_refused_and_do_not_panic() {
        let mut table = table("h100-80gb-sxm");
        let (first, rest) = table.profiles.split_first_mut().unwrap();
        first.memory_slices = 0;
        for profile in rest {
            profile.starts = vec![7, 200, 255];
        }
        for profile in &table.profiles {
            for count in [1, 2, u32::MAX] {
                let placed = place(&table, &[Demand { profile, count }]);
                assert_eq!(placed.is_ok(), count == 1 && profile.memory_slices == 1);
            }
        }
    }

    #[test]
    fn what_is_still_open_depends_on_where_instances_stand() {
        let table = table("h100-80gb-sxm");
        let open = |start| {
            let placement = Placement { start, size: 4 };
            let profile = table.profile_by_id(9).unwrap();
            let open = open_placements(&table, &[(profile, placement)]);
            open.iter().filter(|(p, _)| p.memory_slices == 4).map(|(p, _)| p.id).collect::<Vec<_>>()
        };
        assert_eq!(open(0), [9]);
        assert_eq!(open(4), [5, 9]);
        assert!(open(2).is_empty());
    }
}
