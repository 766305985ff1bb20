//! The search behind [`pack`](super::pack): counts of profiles, no names.
//!
//! What is served is worth one number: memory slices, and compute slices as a fraction too small
//! to add up to one. A bound on it follows from any price of a profile: an instance that is served
//! brings its price, which the layouts must hold, and at most its value above the price, which the
//! demand must have.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::linear::relax;
use crate::mig::space::Space;

/// Steps after which the exhaustive searches of one packing give up, all together.
const STEPS: u32 = 150_000;
/// How many numbers of GPUs are tried, at most, when everything is served.
const TRIES: usize = 4;
/// Prices are multiples of 2⁻⁴⁰ of a value.
const PRICE: u128 = 1 << 40;

type Counts = Vec<u32>;

/// Layouts and on how many GPUs each stands, the largest profiles first.
#[derive(Debug, Clone)]
pub(super) struct Solution {
    pub groups: Vec<(Counts, u32)>,
    pub proved: bool,
}

/// What is asked for, and the layouts worth trying.
pub(super) struct Problem<'s, 'a> {
    space: &'s Space<'a>,
    wanted: Counts,
    /// What a memory slice is worth in compute slices: more than all of them.
    slice: u128,
    /// The value of one instance of each profile.
    values: Vec<u128>,
    /// Layouts that are part of no other, none above what is asked for; the most valuable first.
    layouts: Vec<Counts>,
    steps: Cell<u32>,
}

/// GPUs by what they serve, and what is left to serve.
#[derive(Debug, Clone)]
struct State {
    groups: BTreeMap<Counts, u32>,
    left: Counts,
}

/// A price of each profile, and the most that one of the layouts from each on holds by it.
struct Prices {
    each: Vec<u128>,
    most: Vec<u128>,
}

impl<'s, 'a> Problem<'s, 'a> {
    pub fn new(space: &'s Space<'a>, wanted: Counts, gpus: u32) -> Self {
        let compute: u8 = space.profiles.iter().map(|p| p.compute_slices()).max().unwrap_or(0);
        let slice = u128::from(gpus) * u128::from(u8::MAX) * u128::from(compute.max(1)) + 1;
        let value = |p: &&crate::mig::GiProfile| {
            u128::from(p.memory_slices) * slice + u128::from(p.compute_slices())
        };
        let values: Vec<u128> = space.profiles.iter().map(value).collect();
        let within = |counts: &&Counts| counts.iter().zip(&wanted).all(|(a, b)| a <= b);
        let bounded = Space {
            profiles: space.profiles.clone(),
            layouts: space.layouts.iter().filter(within).cloned().collect(),
        };
        let mut layouts: Vec<Counts> = bounded.maximal().into_iter().rev().cloned().collect();
        layouts.sort_by_key(|counts| std::cmp::Reverse(sum(&values, counts)));
        Self { space, wanted, slice, values, layouts, steps: Cell::new(STEPS) }
    }

    pub fn solve(&self, gpus: u32) -> Solution {
        let all = sum(&self.values, &self.wanted);
        let (mut state, proved) = self.serve(gpus);
        if self.value(&state) == all {
            for fewer in (self.least(gpus)..gpus).take(TRIES) {
                let (smaller, _) = self.serve(fewer);
                if self.value(&smaller) == all {
                    state = smaller;
                    break;
                }
            }
        }
        let used: u32 = state.groups.values().sum();
        if gpus > used {
            state.groups.insert(vec![0; self.wanted.len()], gpus - used);
        }
        Solution { groups: state.groups.into_iter().rev().collect(), proved }
    }

    /// A number of GPUs below which not everything can be served, if so many are enough.
    fn least(&self, enough: u32) -> u32 {
        let all = sum(&self.values, &self.wanted);
        let (mut too_few, mut enough) = (0, enough);
        while enough.saturating_sub(too_few) > 1 {
            let middle = too_few + (enough - too_few) / 2;
            let (prices, _) = self.prices(middle);
            match self.bound(&prices, 0, middle, &self.wanted) < all {
                true => too_few = middle,
                false => enough = middle,
            }
        }
        enough
    }

    /// Serves as much as it can. True if that is proved to be the most.
    fn serve(&self, gpus: u32) -> (State, bool) {
        let (prices, copies) = self.prices(gpus);
        let bound = self.bound(&prices, 0, gpus, &self.wanted);
        let simple = self.one_after_the_other(gpus);
        if self.value(&simple) == bound {
            return (simple, true);
        }
        let rounded = self.rounded(gpus, &copies, &prices);
        let state = if self.value(&rounded) > self.value(&simple) { rounded } else { simple };
        if self.value(&state) == bound {
            return (state, true);
        }
        let (found, proved) = self.exhaust(gpus, &self.wanted, self.value(&state), &prices);
        (found.map_or(state, |chosen| self.take_all(self.empty(), &chosen)), proved)
    }

    /// Prices that bound well what so many GPUs serve, beside the two simple sets, and how many
    /// GPUs each layout should have.
    fn prices(&self, gpus: u32) -> ([Prices; 3], Vec<f64>) {
        let scale = as_float(self.slice);
        let values: Vec<f64> = self.values.iter().map(|value| as_float(*value) / scale).collect();
        let layouts: Vec<&[u32]> = self.layouts.iter().map(Vec::as_slice).collect();
        let relaxed = relax(&values, &self.wanted, &layouts, gpus);
        // No price needs to be above the value, whatever the floats say.
        let highest: Vec<u128> = self.values.iter().map(|value| value * PRICE).collect();
        let scaled =
            |(price, most): (&f64, &u128)| whole(price * scale * as_float(PRICE)).min(*most);
        let relaxed_prices = relaxed.prices.iter().zip(&highest).map(scaled).collect();
        let sets = [relaxed_prices, highest, vec![0; self.values.len()]];
        (sets.map(|each| self.priced(each)), relaxed.gpus)
    }

    fn priced(&self, each: Vec<u128>) -> Prices {
        let mut best = 0;
        let held = self.layouts.iter().rev().map(|counts| {
            best = sum(&each, counts).max(best);
            best
        });
        let mut most: Vec<u128> = held.collect();
        most.reverse();
        Prices { each, most }
    }

    /// The most that so many GPUs with layouts from `at` on can serve of what is left.
    fn bound(&self, prices: &[Prices], at: usize, gpus: u32, left: &[u32]) -> u128 {
        let by = |prices: &Prices| {
            let held = prices.most.get(at).copied().unwrap_or(0) * u128::from(gpus);
            let above =
                self.values.iter().zip(&prices.each).zip(left).map(|((value, price), left)| {
                    (value * PRICE).saturating_sub(*price) * u128::from(*left)
                });
            (held + above.sum::<u128>()) / PRICE
        };
        prices.iter().map(by).min().unwrap_or(0)
    }

    fn value(&self, state: &State) -> u128 {
        state
            .groups
            .iter()
            .map(|(counts, gpus)| sum(&self.values, counts) * u128::from(*gpus))
            .sum()
    }

    fn empty(&self) -> State {
        State { groups: BTreeMap::new(), left: self.wanted.clone() }
    }

    /// Fills one GPU after the other, with as many of the largest as fit, then of the next.
    fn one_after_the_other(&self, gpus: u32) -> State {
        let mut state = self.empty();
        let mut free = gpus;
        while free > 0 {
            let within = |counts: &&Counts| counts.iter().zip(&state.left).all(|(a, b)| a <= b);
            let Some(layout) = self.space.layouts.iter().rfind(within) else { break };
            let times = times(layout, &state.left).min(free);
            if times == 0 || layout.iter().all(|count| *count == 0) {
                break;
            }
            free -= times;
            state.take(layout.clone(), times);
        }
        state
    }

    /// The whole GPUs of a relaxed solution, and the best on the few that remain.
    fn rounded(&self, gpus: u32, copies: &[f64], prices: &[Prices]) -> State {
        let mut free = gpus;
        let mut chosen = Vec::new();
        for (at, copies) in copies.iter().enumerate() {
            // A little above, for what is whole but for the rounding of floats.
            let copies = u32::try_from(whole(copies + 1e-6)).unwrap_or(free).min(free);
            free -= copies;
            chosen.push((at, copies));
        }
        let state = self.take_all(self.empty(), &chosen);
        let (rest, _) = self.exhaust(free, &state.left, 0, prices);
        self.take_all(state, &rest.unwrap_or_default())
    }

    /// Takes the chosen layouts, without what nobody asked for.
    fn take_all(&self, mut state: State, chosen: &[(usize, u32)]) -> State {
        for (at, copies) in chosen {
            let Some(layout) = self.layouts.get(*at) else { continue };
            let mut copies = *copies;
            while copies > 0 {
                let counts: Counts =
                    layout.iter().zip(&state.left).map(|(count, left)| *count.min(left)).collect();
                if counts.iter().all(|count| *count == 0) {
                    break;
                }
                let times = times(&counts, &state.left).min(copies);
                copies -= times;
                state.take(counts, times);
            }
        }
        state
    }

    /// The best choice of layouts, if it is worth more than `than`; true if there is none better.
    fn exhaust(
        &self,
        gpus: u32,
        wanted: &[u32],
        than: u128,
        prices: &[Prices],
    ) -> (Option<Vec<(usize, u32)>>, bool) {
        let mut search =
            Exhaust { problem: self, prices, best: than, choice: None, chosen: Vec::new() };
        let ended = search.descend(0, gpus, wanted, 0);
        (search.choice, ended)
    }
}

impl State {
    fn take(&mut self, counts: Counts, times: u32) {
        for (left, count) in self.left.iter_mut().zip(&counts) {
            *left = left.saturating_sub(count.saturating_mul(times));
        }
        *self.groups.entry(counts).or_default() += times;
    }
}

struct Exhaust<'p, 's, 'a> {
    problem: &'p Problem<'s, 'a>,
    prices: &'p [Prices],
    best: u128,
    choice: Option<Vec<(usize, u32)>>,
    chosen: Vec<(usize, u32)>,
}

impl Exhaust<'_, '_, '_> {
    /// Decides how many GPUs take the layout at `at`, then goes on to the next. False if it had to
    /// stop early.
    fn descend(&mut self, at: usize, gpus: u32, left: &[u32], value: u128) -> bool {
        let problem = self.problem;
        if value > self.best {
            self.best = value;
            self.choice = Some(self.chosen.clone());
        }
        let Some(steps) = problem.steps.get().checked_sub(1) else { return false };
        problem.steps.set(steps);
        let Some(layout) = problem.layouts.get(at) else { return true };
        if gpus == 0 || value + problem.bound(self.prices, at, gpus, left) <= self.best {
            return true;
        }
        // More copies than serve anything are of no use.
        let useful = left.iter().zip(layout).filter(|(_, count)| **count > 0);
        let most = useful.map(|(left, count)| left.div_ceil(*count)).max().unwrap_or(0).min(gpus);
        for copies in (0..=most).rev() {
            let serve = |(left, count): (&u32, &u32)| count.saturating_mul(copies).min(*left);
            let served: Counts = left.iter().zip(layout).map(serve).collect();
            let after: Counts =
                left.iter().zip(&served).map(|(left, count)| left - count).collect();
            self.chosen.push((at, copies));
            let more = sum(&problem.values, &served);
            let ended = self.descend(at + 1, gpus - copies, &after, value + more);
            self.chosen.pop();
            if !ended {
                return false;
            }
        }
        true
    }
}

fn sum(each: &[u128], counts: &[u32]) -> u128 {
    each.iter().zip(counts).map(|(one, count)| one * u128::from(*count)).sum()
}

/// How many times the whole layout can be taken from what is left.
fn times(layout: &[u32], left: &[u32]) -> u32 {
    layout.iter().zip(left).filter_map(|(count, left)| left.checked_div(*count)).min().unwrap_or(0)
}

/// Rounds, where no digit matters.
fn as_float(number: u128) -> f64 {
    number as f64
}

/// The whole part; 0 for what is negative or no number.
fn whole(number: f64) -> u128 {
    number as u128
}

#[cfg(test)]
#[cfg(feature = "catalog")]
mod tests {
    use super::*;
    use crate::mig::tests::{Lcg, tables};

    /// The most that can be served, by every layout on every GPU.
    fn brute_force(problem: &Problem<'_, '_>, gpus: u32, left: &[u32]) -> u128 {
        if gpus == 0 {
            return 0;
        }
        let serve = |layout: &Counts| {
            let served: Counts = layout.iter().zip(left).map(|(a, b)| *a.min(b)).collect();
            let after: Counts = left.iter().zip(&served).map(|(a, b)| a - b).collect();
            sum(&problem.values, &served) + brute_force(problem, gpus - 1, &after)
        };
        problem.space.layouts.iter().map(serve).max().unwrap()
    }

    #[test]
    fn the_search_finds_the_best_and_every_bound_is_above_it() {
        let mut random = Lcg(6);
        for (key, table, _) in tables() {
            for round in 0..80 {
                let profiles = table
                    .canonical()
                    .into_iter()
                    .filter(|_| random.below(2) == 0)
                    .take(4)
                    .collect();
                let space = Space::new(&table, profiles);
                let wanted: Counts = space
                    .profiles
                    .iter()
                    .map(|_| u32::try_from(random.below(7)).unwrap())
                    .collect();
                let gpus = 1 + round % 3;
                let problem = Problem::new(&space, wanted.clone(), gpus);
                let best = brute_force(&problem, gpus, &wanted);
                let (prices, _) = problem.prices(gpus);
                for one in &prices {
                    let bound = problem.bound(std::slice::from_ref(one), 0, gpus, &wanted);
                    assert!(bound >= best, "{key} {gpus} {wanted:?}");
                    let (found, ended) =
                        problem.exhaust(gpus, &wanted, 0, std::slice::from_ref(one));
                    assert!(ended);
                    let state = problem.take_all(problem.empty(), &found.unwrap_or_default());
                    assert_eq!(problem.value(&state), best, "{key} {gpus} {wanted:?}");
                    problem.steps.set(STEPS);
                }
                // Nothing is better than the best.
                assert_eq!(problem.exhaust(gpus, &wanted, best, &prices), (None, true));
            }
        }
    }
}
