//! From the instances that a GPU has to the layout that is wanted.
//!
//! An instance survives if the wanted layout has one of its profile at its place; nothing moves.
//! Which of the possible placements of the wanted layout keeps the most is found by trying all.
//! Sources: NVIDIA MIG User Guide, "Deployment Considerations" (a mode change needs a GPU reset on
//! Ampere only) and "Destroying GPU Instances" (compute instances go first, and the mode goes off
//! last); `nvidia-smi mig -cgi` takes `<profile>:<start>`.

use super::layout::{Step, steps};
use super::{Demand, MigTable, NoLayout, Placed, Placement, place};

/// A GPU instance as the node has it: by profile id, since names depend on the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instance {
    /// Id of its profile. Not the NVML enum index, nor the instance's own id.
    pub profile_id: u32,
    /// Where it stands.
    pub placement: Placement,
}

/// What has to be done to a GPU: destroy, then change the mode if it goes off; or change the mode
/// if it goes on, then create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition<'a> {
    /// Instances that survive, by start.
    pub keep: Vec<Placed<'a>>,
    /// Instances to destroy, with their compute instances before them, by start.
    pub destroy: Vec<Instance>,
    /// Instances to create after that, each at its explicit start, largest first.
    pub create: Vec<Placed<'a>>,
    /// The change of the MIG mode, if it flips.
    pub mode: Option<ModeChange>,
    /// True if the GPU must be reset for the mode to become current.
    pub needs_reset: bool,
}

/// A change of the MIG mode of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModeChange {
    /// From off to on.
    Enable,
    /// From on to off.
    Disable,
}

/// What loses its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// Nothing.
    Nothing,
    /// The instances that are destroyed, so many. Their neighbours go on.
    Instances(usize),
    /// Everything on the GPU.
    Gpu,
}

impl Transition<'_> {
    /// True if nothing has to be done.
    pub fn is_empty(&self) -> bool {
        self.destroy.is_empty() && self.create.is_empty() && self.mode.is_none()
    }

    /// What loses its work.
    pub fn drain(&self) -> Drain {
        match (self.mode, self.destroy.len()) {
            (Some(_), _) => Drain::Gpu,
            (None, 0) => Drain::Nothing,
            (None, count) => Drain::Instances(count),
        }
    }
}

/// The way from what a GPU has to what is wanted; on either side none means that MIG mode is off,
/// and an empty list that it is on without instances. The most instances survive that can, then
/// the most memory slices, then those at the lowest starts. `mode_needs_reset` is true on Ampere.
///
/// # Errors
/// The wanted layout cannot be placed.
pub fn transition<'a>(
    table: &MigTable,
    now: Option<&[Instance]>,
    wanted: Option<&[Demand<'a>]>,
    mode_needs_reset: bool,
) -> Result<Transition<'a>, NoLayout> {
    let mode = match (now, wanted) {
        (None, Some(_)) => Some(ModeChange::Enable),
        (Some(_), None) => Some(ModeChange::Disable),
        (None, None) | (Some(_), Some(_)) => None,
    };
    let mut destroy = now.unwrap_or_default().to_vec();
    destroy.sort_by_key(|instance| (instance.placement, instance.profile_id));
    let (mut keep, mut create) = (Vec::new(), Vec::new());
    for (profile, placement) in closest(table, &destroy, wanted.unwrap_or_default())? {
        let instance = Instance { profile_id: profile.id, placement };
        match destroy.iter().position(|other| *other == instance) {
            Some(index) => {
                destroy.remove(index);
                keep.push((profile, placement));
            }
            None => create.push((profile, placement)),
        }
    }
    keep.sort_by_key(|(_, placement)| placement.start);
    create
        .sort_by(|(a, at), (b, other)| a.canonical_cmp(b).then_with(|| at.start.cmp(&other.start)));
    let needs_reset = mode.is_some() && mode_needs_reset;
    Ok(Transition { keep, destroy, create, mode, needs_reset })
}

/// The placement of the wanted layout that keeps the most of what stands.
fn closest<'a>(
    table: &MigTable,
    now: &[Instance],
    wanted: &[Demand<'a>],
) -> Result<Vec<Placed<'a>>, NoLayout> {
    let first = place(table, wanted)?;
    let stands = |step: &Step<'_>, placement: Placement| {
        now.contains(&Instance { profile_id: step.profile.id, placement })
    };
    let choices: Vec<Choice<'a>> = steps(table, wanted)
        .unwrap_or_default()
        .into_iter()
        .map(|step| {
            let stand = step.spots.iter().map(|spot| stands(&step, spot.placement)).collect();
            Choice { step, stand }
        })
        .collect();
    let mut search = Closest { placed: Vec::new(), best: Score::default(), found: None };
    search.place(&choices, 0, 0, 0, Score::default());
    Ok(search.found.unwrap_or(first))
}

/// Instances to place, and for each of their spots whether one stands there now.
struct Choice<'a> {
    step: Step<'a>,
    stand: Vec<bool>,
}

impl Choice<'_> {
    /// What can survive at most, if so many are still to be placed from this spot on.
    fn at_most(&self, count: usize, from: usize) -> Score {
        let stand = self.stand.iter().skip(from).filter(|stands| **stands).count();
        Score::of(&self.step, stand.min(count))
    }
}

/// Instances that survive, and their memory slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Score {
    instances: usize,
    slices: usize,
}

impl Score {
    fn of(step: &Step<'_>, count: usize) -> Self {
        Self { instances: count, slices: count * usize::from(step.profile.memory_slices) }
    }

    fn plus(self, other: Self) -> Self {
        Self { instances: self.instances + other.instances, slices: self.slices + other.slices }
    }
}

struct Closest<'a> {
    placed: Vec<Placed<'a>>,
    best: Score,
    found: Option<Vec<Placed<'a>>>,
}

impl<'a> Closest<'a> {
    /// Every arrangement that may keep more than the best so far, in the order of [`place`].
    fn place(
        &mut self,
        choices: &[Choice<'a>],
        standing: usize,
        from: usize,
        taken: u64,
        score: Score,
    ) {
        let Some((choice, rest)) = choices.split_first() else {
            if score > self.best {
                self.best = score;
                self.found = Some(self.placed.clone());
            }
            return;
        };
        let step = &choice.step;
        let ahead = rest.iter().map(|choice| choice.at_most(choice.step.count, 0));
        let most = ahead.fold(score, Score::plus).plus(choice.at_most(step.count - standing, from));
        if most <= self.best {
            return;
        }
        if standing == step.count {
            self.place(rest, 0, 0, taken, score);
            return;
        }
        for (at, (spot, stands)) in step.spots.iter().zip(&choice.stand).enumerate().skip(from) {
            if taken & spot.mask != 0 {
                continue;
            }
            let kept = Score::of(step, usize::from(*stands));
            self.placed.push((step.profile, spot.placement));
            self.place(choices, standing + 1, at + 1, taken | spot.mask, score.plus(kept));
            self.placed.pop();
        }
    }
}

#[cfg(test)]
#[cfg(feature = "catalog")]
mod tests {
    use super::*;
    use crate::mig::tests::{ask, table};

    fn standing(table: &MigTable, instances: &[(u32, u8)]) -> Vec<Instance> {
        let one = |(profile_id, start): &(u32, u8)| Instance {
            profile_id: *profile_id,
            placement: Placement {
                start: *start,
                size: table.profile_by_id(*profile_id).map_or(1, |p| p.memory_slices),
            },
        };
        instances.iter().map(one).collect()
    }

    fn ids(placed: &[Placed<'_>]) -> Vec<(u32, u8)> {
        placed.iter().map(|(profile, at)| (profile.id, at.start)).collect()
    }

    #[test]
    fn the_1g_at_slice_6_survives_three_2g() {
        let table = table("h100-80gb-sxm");
        let now =
            standing(&table, &[(19, 0), (19, 1), (19, 2), (19, 3), (19, 4), (19, 5), (19, 6)]);
        let wanted = ask(&table, &[("2g.20gb", 3), ("1g.10gb", 1)]);
        let steps = transition(&table, Some(&now), Some(&wanted), false).unwrap();
        assert_eq!(ids(&steps.keep), [(19, 6)]);
        assert_eq!(ids(&steps.create), [(14, 0), (14, 2), (14, 4)]);
        assert_eq!(steps.drain(), Drain::Instances(6));
    }

    #[test]
    fn an_instance_at_an_unusual_place_is_kept_there() {
        let table = table("h100-80gb-sxm");
        let now = standing(&table, &[(9, 4), (19, 2)]);
        let wanted = ask(&table, &[("3g.40gb", 1), ("1g.10gb", 1), ("2g.20gb", 1)]);
        let steps = transition(&table, Some(&now), Some(&wanted), false).unwrap();
        assert_eq!(ids(&steps.keep), [(19, 2), (9, 4)]);
        assert_eq!((steps.destroy.len(), ids(&steps.create)), (0, vec![(14, 0)]));
        assert_eq!(steps.drain(), Drain::Nothing);
        let same = transition(
            &table,
            Some(&now),
            Some(&ask(&table, &[("3g.40gb", 1), ("1g.10gb", 1)])),
            true,
        );
        assert!(same.unwrap().is_empty());
    }

    #[test]
    fn of_as_many_survivors_the_larger_ones_stay() {
        let table = table("h100-80gb-sxm");
        // A 4g can be only at slice 0, so the 3g there has to go; the one at 4 stays.
        let now = standing(&table, &[(9, 0), (9, 4)]);
        let wanted = ask(&table, &[("4g.40gb", 1), ("3g.40gb", 1)]);
        let steps = transition(&table, Some(&now), Some(&wanted), false).unwrap();
        assert_eq!((ids(&steps.keep), ids(&steps.create)), (vec![(9, 4)], vec![(5, 0)]));
        // Either the 2g or the 1g can stay beside a 3g and what else is wanted, not both.
        let now = standing(&table, &[(14, 0), (19, 4)]);
        let wanted = ask(&table, &[("3g.40gb", 1), ("2g.20gb", 1), ("1g.10gb", 1)]);
        let steps = transition(&table, Some(&now), Some(&wanted), false).unwrap();
        assert_eq!(ids(&steps.keep), [(14, 0)]);
    }

    #[test]
    fn the_mode_flips_with_a_reset_on_ampere_only() {
        let table = table("a100-40gb");
        let wanted = ask(&table, &[("1g.5gb", 7)]);
        let now = standing(&table, &[(0, 0)]);
        for reset in [false, true] {
            let on = transition(&table, None, Some(&wanted), reset).unwrap();
            assert_eq!((on.mode, on.needs_reset), (Some(ModeChange::Enable), reset));
            assert_eq!((on.create.len(), on.drain()), (7, Drain::Gpu));
            let off = transition(&table, Some(&now), None, reset).unwrap();
            assert_eq!((off.mode, off.needs_reset), (Some(ModeChange::Disable), reset));
            assert_eq!((off.destroy.len(), off.drain()), (1, Drain::Gpu));
            let empty = transition(&table, Some(&now), Some(&[]), reset).unwrap();
            assert_eq!((empty.mode, empty.needs_reset), (None, false));
            assert_eq!(empty.drain(), Drain::Instances(1));
            assert!(transition(&table, None, None, reset).unwrap().is_empty());
        }
    }

    #[test]
    fn what_the_table_does_not_know_is_destroyed() {
        let table = table("a30");
        // Id 19 is a 1g on parts with seven slices only.
        let now = standing(&table, &[(19, 0), (14, 1)]);
        let steps = transition(&table, Some(&now), Some(&ask(&table, &[("1g.6gb", 4)])), true);
        let steps = steps.unwrap();
        assert_eq!(steps.destroy.iter().map(|i| i.profile_id).collect::<Vec<_>>(), [19]);
        assert_eq!((ids(&steps.keep), steps.create.len()), (vec![(14, 1)], 3));
    }

    #[test]
    fn a_layout_that_cannot_be_placed_has_no_way_to_it() {
        let table = table("a30");
        let wanted = ask(&table, &[("4g.24gb", 2)]);
        let error = transition(&table, Some(&[]), Some(&wanted), true).unwrap_err();
        assert_eq!(error, NoLayout::TooManySlices { wanted: 8, available: 4 });
    }
}
