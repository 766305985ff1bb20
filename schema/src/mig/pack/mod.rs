//! Packing a mix of instances on several GPUs of one kind.
//!
//! What is served is compared by memory slices, then by compute slices. A packing is always legal,
//! never serves more than is asked, and serves at least as much as filling one GPU after the other
//! with the largest instances first. It is the best there is where [`Packing::proved`] says so:
//! either it reaches a bound on every packing, or the search over the maximal layouts of the
//! profiles asked for came to its end, which it does for a few GPUs. Otherwise the search stopped
//! at a fixed number of steps, and the packing is the best of three: one GPU after the other, the
//! relaxed problem rounded down with the best on the GPUs that remain, and what the search had
//! found. No clock is read: the same question has the same answer.

mod linear;
mod search;

use super::space::Space;
use super::{Demand, GiProfile, MigTable};
use search::Problem;

/// A mix of instances on several GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packing<'a> {
    /// The layout of each GPU, alike ones together, the largest profiles first. GPUs without any
    /// instance come last, with an empty layout.
    pub gpus: Vec<PackedGpus<'a>>,
    /// What is served, in the order asked, each profile once.
    pub served: Vec<Demand<'a>>,
    /// What is not, in the order asked; empty if everything is served.
    pub unserved: Vec<Demand<'a>>,
    /// Memory slices of all GPUs.
    pub memory: Usage,
    /// Compute slices of all GPUs.
    pub compute: Usage,
    /// True if no packing on these GPUs serves more.
    pub proved: bool,
}

/// GPUs with one layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedGpus<'a> {
    /// How many GPUs.
    pub gpus: u32,
    /// Their layout, in canonical order.
    pub layout: Vec<Demand<'a>>,
    /// Memory slices of each of these GPUs.
    pub memory: Usage,
    /// Compute slices of each of these GPUs.
    pub compute: Usage,
}

/// How many slices are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Slices of the instances.
    pub used: u64,
    /// Slices of the GPUs.
    pub total: u64,
    /// Free slices that no instance of the profiles asked for could take, whatever is added.
    pub stranded: u64,
}

impl Usage {
    fn plus(self, other: Self, times: u32) -> Self {
        let add = |a: u64, b: u64| a.saturating_add(b.saturating_mul(u64::from(times)));
        Self {
            used: add(self.used, other.used),
            total: add(self.total, other.total),
            stranded: add(self.stranded, other.stranded),
        }
    }
}

/// Lays out so many GPUs for a mix of instances. If everything can be served, it tries to leave
/// whole GPUs empty; that they are as many as can be is not proved. A profile that is named twice
/// counts as one.
pub fn pack<'a>(table: &MigTable, demands: &[Demand<'a>], gpus: u32) -> Packing<'a> {
    let asked = merged(demands);
    let mut profiles: Vec<&GiProfile> = asked.iter().map(|demand| demand.profile).collect();
    profiles.sort_by(|a, b| a.canonical_cmp(b));
    let space = Space::new(table, profiles);
    let count = |profile: &GiProfile| {
        asked.iter().find(|d| d.profile.name == profile.name).map_or(0, |d| d.count)
    };
    let wanted: Vec<u32> = space.profiles.iter().map(|profile| count(profile)).collect();
    let problem = Problem::new(&space, wanted, gpus);
    let solution = problem.solve(gpus);

    let served: Vec<u32> = (0..space.profiles.len())
        .map(|index| {
            let on = |(counts, gpus): &(Vec<u32>, u32)| counts.get(index).map_or(0, |c| c * gpus);
            solution.groups.iter().map(on).sum()
        })
        .collect();
    let of = |demand: &Demand<'a>| {
        let found = space.profiles.iter().position(|p| p.name == demand.profile.name);
        found.and_then(|index| served.get(index)).copied().unwrap_or(0)
    };
    let packed = solution.groups.iter().map(|(counts, gpus)| packed(table, &space, counts, *gpus));
    let packed: Vec<PackedGpus<'a>> = packed.collect();
    let sum = |usage: fn(&PackedGpus<'a>) -> Usage| {
        packed.iter().fold(Usage::default(), |sum, group| sum.plus(usage(group), group.gpus))
    };
    Packing {
        served: asked.iter().map(|d| Demand { count: of(d), ..*d }).collect(),
        unserved: asked
            .iter()
            .map(|d| Demand { count: d.count - of(d), ..*d })
            .filter(|d| d.count > 0)
            .collect(),
        memory: sum(|group| group.memory),
        compute: sum(|group| group.compute),
        proved: solution.proved,
        gpus: packed,
    }
}

fn merged<'a>(demands: &[Demand<'a>]) -> Vec<Demand<'a>> {
    let mut merged: Vec<Demand<'a>> = Vec::new();
    for demand in demands {
        match merged.iter_mut().find(|d| d.profile.name == demand.profile.name) {
            Some(same) => same.count = same.count.saturating_add(demand.count),
            None => merged.push(*demand),
        }
    }
    merged
}

fn packed<'a>(table: &MigTable, space: &Space<'a>, counts: &[u32], gpus: u32) -> PackedGpus<'a> {
    let holds = |other: &&Vec<u32>| other.iter().zip(counts).all(|(other, own)| other >= own);
    let usage = |total: u8, size: fn(&GiProfile) -> u8| {
        let slices = |counts: &[u32]| -> u64 {
            let each = space.profiles.iter().zip(counts);
            each.map(|(profile, count)| u64::from(size(profile)) * u64::from(*count)).sum()
        };
        let grown = space.layouts.iter().filter(holds).map(|layout| slices(layout));
        let (used, total) = (slices(counts), u64::from(total));
        Usage { used, total, stranded: total.saturating_sub(grown.max().unwrap_or(used)) }
    };
    PackedGpus {
        gpus,
        layout: space.demands(counts),
        memory: usage(table.memory_slices, |profile| profile.memory_slices),
        compute: usage(table.compute_slices, GiProfile::compute_slices),
    }
}

#[cfg(test)]
#[cfg(feature = "catalog")]
mod tests;
