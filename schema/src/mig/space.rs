//! Every layout of a GPU, as counts of profiles.
//!
//! Whether counts can be had is decided by the set of memory slices that they can fill together,
//! over all arrangements, and by the engines, which depend on the counts alone. So one walk over
//! the counts finds all of them. A table of eight memory slices has a hundred or so.

use super::layout::{Spot, spots};
use super::{Demand, Engines, GiProfile, MigTable, place};

/// Every layout that can be placed, by counts, the largest profiles first; without the empty one.
/// Each names only the profiles that it has, in canonical order.
pub fn layouts(table: &MigTable) -> Vec<Vec<Demand<'_>>> {
    let space = Space::of_table(table);
    let some = space.layouts.iter().rev().filter(|counts| counts.iter().any(|count| *count > 0));
    some.map(|counts| space.demands(counts)).collect()
}

/// The layouts to which nothing can be added, in the order of [`layouts`].
pub fn maximal_layouts(table: &MigTable) -> Vec<Vec<Demand<'_>>> {
    let space = Space::of_table(table);
    space.maximal().into_iter().rev().map(|counts| space.demands(counts)).collect()
}

/// True if the layout can be placed and no instance of any profile can be added to it, wherever
/// its own stand.
pub fn is_maximal(table: &MigTable, demands: &[Demand<'_>]) -> bool {
    place(table, demands).is_ok() && room_left(table, demands).is_empty()
}

/// How many instances of each profile alone could still be added to a layout, if its own may move.
/// Profiles without room are left out. For a GPU on which none may move, see
/// [`open_placements`](super::open_placements).
pub fn room_left<'a>(table: &'a MigTable, demands: &[Demand<'_>]) -> Vec<Demand<'a>> {
    let room = |profile: &&'a GiProfile| {
        let fits = |count: &u32| {
            let mut with = demands.to_vec();
            with.push(Demand { profile, count: *count });
            place(table, &with).is_ok()
        };
        (1..=u32::from(profile.max_count)).take_while(fits).last().unwrap_or(0)
    };
    let all = table.canonical().into_iter().map(|profile| (profile, room(&profile)));
    all.filter(|(_, count)| *count > 0).map(|(profile, count)| Demand { profile, count }).collect()
}

/// Layouts over some profiles: for each, a count of each profile.
#[derive(Debug, Clone)]
pub(super) struct Space<'a> {
    pub profiles: Vec<&'a GiProfile>,
    /// In rising lexicographic order, the empty one first.
    pub layouts: Vec<Vec<u32>>,
}

impl<'a> Space<'a> {
    /// The layouts of these profiles, each at most as often as it fits.
    pub fn new(table: &MigTable, profiles: Vec<&'a GiProfile>) -> Self {
        let spots = profiles.iter().map(|profile| spots(profile, table.memory_slices)).collect();
        let mut walk = Walk { table, profiles, spots, counts: Vec::new(), layouts: Vec::new() };
        walk.fill(0, &[0], Engines::default());
        Self { profiles: walk.profiles, layouts: walk.layouts }
    }

    /// The layouts of every profile of the table, in canonical order.
    pub fn of_table(table: &'a MigTable) -> Self {
        Self::new(table, table.canonical())
    }

    /// The same, without layouts that are part of another.
    pub fn maximal(&self) -> Vec<&Vec<u32>> {
        let grows = |counts: &Vec<u32>| {
            let mut more = counts.clone();
            (0..counts.len()).any(|index| {
                add(&mut more, index, 1);
                let found = self.layouts.binary_search(&more).is_ok();
                more.clone_from(counts);
                found
            })
        };
        self.layouts.iter().filter(|counts| !grows(counts)).collect()
    }

    /// The profiles that a layout has, with their counts.
    pub fn demands(&self, counts: &[u32]) -> Vec<Demand<'a>> {
        let all = self.profiles.iter().zip(counts);
        all.filter(|(_, count)| **count > 0)
            .map(|(profile, count)| Demand { profile, count: *count })
            .collect()
    }
}

/// Adds to one count.
pub(super) fn add(counts: &mut [u32], index: usize, more: u32) {
    if let Some(count) = counts.get_mut(index) {
        *count = count.saturating_add(more);
    }
}

struct Walk<'t, 'a> {
    table: &'t MigTable,
    profiles: Vec<&'a GiProfile>,
    spots: Vec<Vec<Spot>>,
    counts: Vec<u32>,
    layouts: Vec<Vec<u32>>,
}

impl Walk<'_, '_> {
    /// Goes through the counts of the profiles from `at` on. `masks` holds every set of memory
    /// slices that the instances so far can take.
    fn fill(&mut self, at: usize, masks: &[u64], engines: Engines) {
        let (Some(profile), Some(spots)) = (self.profiles.get(at).copied(), self.spots.get(at))
        else {
            self.layouts.push(self.counts.clone());
            return;
        };
        let spots = spots.clone();
        let mut masks = masks.to_vec();
        let mut engines = engines;
        for count in 0..=u32::from(profile.max_count) {
            if count > 0 {
                masks = extend(&masks, &spots);
                engines = engines.plus(profile.engines);
            }
            if masks.is_empty() || !engines.fits_in(self.table.engine_totals) {
                break;
            }
            self.counts.push(count);
            self.fill(at + 1, &masks, engines);
            self.counts.pop();
        }
    }
}

/// The sets of slices with one more instance.
fn extend(masks: &[u64], spots: &[Spot]) -> Vec<u64> {
    let mut more: Vec<u64> = masks
        .iter()
        .flat_map(|mask| spots.iter().map(|spot| (*mask, spot.mask)))
        .filter(|(mask, spot)| mask & spot == 0)
        .map(|(mask, spot)| mask | spot)
        .collect();
    more.sort_unstable();
    more.dedup();
    more
}
