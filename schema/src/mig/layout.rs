//! Placing GPU instances on a GPU.
//!
//! A layout is legal when no two placements overlap in memory slices, each start is in its
//! profile's list, no profile goes above its `max_count`, and the engines of all instances stay
//! within the GPU's. The search is exhaustive and its order fixed: a layout that can be placed is
//! found, and always at the same placement. Source: NVIDIA MIG User Guide, "Supported MIG Profiles".

use super::{Engines, GiProfile, MigTable, Placement};

/// How many instances of one profile are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Demand<'a> {
    /// The profile, of the table that is searched.
    pub profile: &'a GiProfile,
    /// How many.
    pub count: u32,
}

/// Why a layout cannot be had.
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
    /// It could be placed, but the engines do not go round.
    Engines,
}

/// Places every instance, largest first; the result is in the order of the demands.
///
/// # Errors
/// Says why no legal layout holds all that is asked for.
pub fn place<'a>(
    table: &MigTable,
    demands: &[Demand<'a>],
) -> Result<Vec<(&'a GiProfile, Placement)>, NoLayout> {
    let wanted = demands
        .iter()
        .map(|d| d.count.saturating_mul(u32::from(d.profile.memory_slices)))
        .fold(0, u32::saturating_add);
    if wanted > u32::from(table.memory_slices) {
        return Err(NoLayout::TooManySlices { wanted, available: table.memory_slices });
    }
    let mut order: Vec<usize> = (0..demands.len()).collect();
    let size = |index: &usize| demands.get(*index).map_or(0, |d| d.profile.memory_slices);
    order.sort_by_key(|index| (std::cmp::Reverse(size(index)), *index));
    let mut queue = Vec::new();
    for index in order {
        if let Some(demand) = demands.get(index) {
            queue.extend((0..demand.count).map(|_| (index, demand.profile)));
        }
    }
    let mut placed = Vec::with_capacity(queue.len());
    if !search(&queue, 0, &mut placed) {
        return Err(NoLayout::NoArrangement);
    }
    let engines = queue.iter().fold(Engines::default(), |sum, (_, p)| sum.plus(p.engines));
    let over = |d: &Demand<'_>| d.count > u32::from(d.profile.max_count);
    if !engines.fits_in(table.engine_totals) || demands.iter().any(over) {
        return Err(NoLayout::Engines);
    }
    placed.sort_by_key(|(index, _, placement)| (*index, placement.start));
    Ok(placed.into_iter().map(|(_, profile, placement)| (profile, placement)).collect())
}

type Placed<'a> = Vec<(usize, &'a GiProfile, Placement)>;

/// Depth first over starts in rising order. `taken` holds a bit for each memory slice in use.
fn search<'a>(queue: &[(usize, &'a GiProfile)], taken: u64, placed: &mut Placed<'a>) -> bool {
    let Some(((index, profile), rest)) = queue.split_first() else { return true };
    // Instances of one profile are alike: the next one starts after the last.
    let after = match placed.last() {
        Some((last, _, placement)) if last == index => Some(placement.start),
        _ => None,
    };
    for start in &profile.starts {
        let slices = mask(*start, profile.memory_slices);
        if after.is_some_and(|after| *start <= after) || taken & slices != 0 {
            continue;
        }
        placed.push((*index, profile, Placement { start: *start, size: profile.memory_slices }));
        if search(rest, taken | slices, placed) {
            return true;
        }
        placed.pop();
    }
    false
}

fn mask(start: u8, size: u8) -> u64 {
    let ones = 1_u64.checked_shl(u32::from(size)).map_or(u64::MAX, |bit| bit - 1);
    ones.checked_shl(u32::from(start)).unwrap_or(0)
}

/// The legal layouts nearest to a demand that cannot be placed: at most `limit`, fewest instances
/// changed first, then those that keep more of what was asked for. Only profiles of the demand.
pub fn nearest_layouts<'a>(
    table: &MigTable,
    demands: &[Demand<'a>],
    limit: usize,
) -> Vec<Vec<Demand<'a>>> {
    let mut all = Vec::new();
    let mut counts = vec![0; demands.len()];
    enumerate(table, demands, 0, &mut counts, &mut all);
    let slices = |layout: &[Demand<'_>]| -> u32 {
        layout.iter().map(|d| d.count * u32::from(d.profile.memory_slices)).sum()
    };
    let distance = |layout: &[Demand<'_>]| -> u32 {
        let slices = |d: &Demand<'_>| u32::from(d.profile.memory_slices);
        layout.iter().zip(demands).map(|(a, b)| a.count.abs_diff(b.count) * slices(a)).sum()
    };
    all.retain(|layout| layout.iter().any(|d| d.count > 0));
    all.sort_by_key(|layout| (distance(layout), std::cmp::Reverse(slices(layout))));
    all.truncate(limit);
    all
}

fn enumerate<'a>(
    table: &MigTable,
    demands: &[Demand<'a>],
    at: usize,
    counts: &mut [u32],
    all: &mut Vec<Vec<Demand<'a>>>,
) {
    let layout = || -> Vec<Demand<'a>> {
        demands
            .iter()
            .zip(counts.iter())
            .map(|(d, c)| Demand { profile: d.profile, count: *c })
            .collect()
    };
    let Some(demand) = demands.get(at) else {
        let layout = layout();
        if place(table, &layout).is_ok() {
            all.push(layout);
        }
        return;
    };
    for count in 0..=u32::from(demand.profile.max_count) {
        if let Some(slot) = counts.get_mut(at) {
            *slot = count;
        }
        enumerate(table, demands, at + 1, counts, all);
    }
    if let Some(slot) = counts.get_mut(at) {
        *slot = 0;
    }
}

#[cfg(test)]
#[cfg(feature = "catalog")]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    fn h100() -> MigTable {
        let catalog = Catalog::embedded().unwrap();
        catalog.mig_table("h100-80gb-sxm").unwrap().table.clone()
    }

    fn layout(text: &[(&str, u32)]) -> Result<Vec<(String, u8)>, NoLayout> {
        let table = h100();
        let demands: Vec<Demand<'_>> = text
            .iter()
            .map(|(name, count)| Demand {
                profile: table.profile(&name.parse().unwrap()).unwrap(),
                count: *count,
            })
            .collect();
        let placed = place(&table, &demands)?;
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
    fn nearest_layouts_change_as_few_slices_as_they_can() {
        let table = h100();
        let profile = |name: &str| table.profile(&name.parse().unwrap()).unwrap();
        let demands = [
            Demand { profile: profile("3g.40gb"), count: 2 },
            Demand { profile: profile("2g.20gb"), count: 2 },
        ];
        let near: Vec<Vec<u32>> = nearest_layouts(&table, &demands, 3)
            .iter()
            .map(|layout| layout.iter().map(|d| d.count).collect())
            .collect();
        // Taking both 2g away changes 4 slices, so does one 3g; 2g starts at 0, 2 and 4 only.
        assert_eq!(near, [vec![1, 2], vec![2, 0], vec![1, 1]]);
    }
}
