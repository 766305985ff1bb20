//! Why a layout cannot be had, in full: what conflicts, and what of it would fit.

use super::layout::counts_fit;
use super::{Demand, Engines, MigTable, NoLayout, Placed, place};

/// A layout that cannot be had, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict<'a> {
    /// The rule that it breaks.
    pub why: NoLayout,
    /// A smallest set of instances of the ask that cannot be had either: without any one of them
    /// the others can be placed. Where several sets do, the one with the larger profiles. In
    /// canonical order.
    pub between: Vec<Demand<'a>>,
    /// What is short in that set; empty unless the engines are.
    pub short: Vec<EngineShort>,
    /// The largest part of the ask that fits, taken in the order asked up to the first instance
    /// that does not; with placements, to draw.
    pub fits: Vec<Placed<'a>>,
    /// The instances from there on, in the order asked: the first is of the profile that no longer
    /// fits.
    pub rest: Vec<Demand<'a>>,
}

/// An engine that does not go round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineShort {
    /// Which.
    pub engine: Engine,
    /// How many the instances need.
    pub wanted: u8,
    /// How many the GPU has.
    pub available: u8,
}

/// An engine beside the SMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Copy engines.
    Copy,
    /// Video decoders (NVDEC).
    Decoder,
    /// Video encoders (NVENC).
    Encoder,
    /// JPEG decoders.
    Jpeg,
    /// Optical flow accelerators.
    OpticalFlow,
}

/// Takes apart what cannot be placed. None if it can.
pub fn conflict<'a>(table: &MigTable, demands: &[Demand<'a>]) -> Option<Conflict<'a>> {
    let why = place(table, demands).err()?;
    let between = irreducible(table, demands);
    let engines = !counts_fit(table, &between);
    let (fits, rest) = split(table, demands);
    let short = if engines { short(table, &between) } else { Vec::new() };
    Some(Conflict { why, between, short, fits, rest })
}

/// Takes instances away, smallest first, as long as the others still cannot be placed.
fn irreducible<'a>(table: &MigTable, demands: &[Demand<'a>]) -> Vec<Demand<'a>> {
    let mut between: Vec<Demand<'a>> = Vec::new();
    for demand in demands.iter().filter(|d| d.count > 0) {
        match between.iter_mut().find(|d| d.profile.name == demand.profile.name) {
            Some(same) => same.count = same.count.saturating_add(demand.count),
            None => between.push(*demand),
        }
    }
    // One above `max_count` is enough to break the rule, and keeps the loop short.
    for demand in &mut between {
        demand.count = demand.count.min(u32::from(demand.profile.max_count) + 1);
    }
    between.sort_by(|a, b| a.profile.canonical_cmp(b.profile));
    for index in (0..between.len()).rev() {
        loop {
            let mut less = between.clone();
            match less.get_mut(index) {
                Some(demand) if demand.count > 0 => demand.count -= 1,
                _ => break,
            }
            if place(table, &less).is_ok() {
                break;
            }
            between = less;
        }
    }
    between.retain(|demand| demand.count > 0);
    between
}

/// The part of the ask that fits, and the rest.
fn split<'a>(table: &MigTable, demands: &[Demand<'a>]) -> (Vec<Placed<'a>>, Vec<Demand<'a>>) {
    let mut head: Vec<Demand<'a>> = Vec::new();
    let mut fits = Vec::new();
    for (index, demand) in demands.iter().enumerate() {
        head.push(Demand { count: 0, ..*demand });
        for left in (1..=demand.count).rev() {
            if let Some(last) = head.last_mut() {
                last.count += 1;
            }
            match place(table, &head) {
                Ok(placed) => fits = placed,
                Err(_) => {
                    let first = Demand { count: left, ..*demand };
                    let others = demands.iter().skip(index + 1).filter(|d| d.count > 0);
                    return (fits, std::iter::once(first).chain(others.copied()).collect());
                }
            }
        }
    }
    (fits, Vec::new())
}

fn short(table: &MigTable, demands: &[Demand<'_>]) -> Vec<EngineShort> {
    let each = demands.iter().flat_map(|d| (0..d.count).map(|_| d.profile.engines));
    let sum = each.fold(Engines::default(), Engines::plus);
    let totals = table.engine_totals;
    let all = [
        (Engine::Copy, sum.ce, totals.ce),
        (Engine::Decoder, sum.dec, totals.dec),
        (Engine::Encoder, sum.enc, totals.enc),
        (Engine::Jpeg, sum.jpeg, totals.jpeg),
        (Engine::OpticalFlow, sum.ofa, totals.ofa),
    ];
    let known = all.into_iter().filter_map(|(engine, sum, total)| Some((engine, sum?, total?)));
    known
        .filter(|(_, wanted, available)| wanted > available)
        .map(|(engine, wanted, available)| EngineShort { engine, wanted, available })
        .collect()
}

#[cfg(test)]
#[cfg(feature = "catalog")]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::mig::layouts;
    use crate::mig::tests::{ask, table, words};

    fn check(names: &[(&str, u32)], between: &str, fits: &str, rest: &str) -> Vec<EngineShort> {
        let table = table("h100-80gb-sxm");
        let conflict = conflict(&table, &ask(&table, names)).unwrap();
        let stand = conflict.fits.iter().map(|(p, at)| format!("{}@{}", p.name, at.start));
        assert_eq!(words(&conflict.between), between);
        assert_eq!(stand.collect::<Vec<_>>().join(" "), fits);
        assert_eq!(words(&conflict.rest), rest);
        conflict.short
    }

    #[test]
    fn two_3g_leave_no_room_for_one_2g() {
        let asked = [("3g.40gb", 2), ("2g.20gb", 2)];
        check(&asked, "2 × 3g.40gb + 1 × 2g.20gb", "3g.40gb@0 3g.40gb@4", "2 × 2g.20gb");
    }

    #[test]
    fn two_4g_conflict_with_each_other_alone() {
        let asked = [("1g.10gb", 1), ("4g.40gb", 2), ("1g.20gb", 1)];
        check(&asked, "2 × 4g.40gb", "1g.10gb@4 4g.40gb@0", "1 × 4g.40gb + 1 × 1g.20gb");
    }

    #[test]
    fn the_optical_flow_accelerator_is_what_two_me_profiles_lack() {
        let short = check(&[("1g.10gb+me", 3)], "2 × 1g.10gb+me", "1g.10gb+me@0", "2 × 1g.10gb+me");
        assert_eq!(short, [EngineShort { engine: Engine::OpticalFlow, wanted: 2, available: 1 }]);
    }

    #[test]
    fn absurd_counts_end_soon() {
        check(
            &[("1g.10gb", u32::MAX), ("7g.80gb", u32::MAX)],
            "2 × 7g.80gb",
            "1g.10gb@0 1g.10gb@1 1g.10gb@2 1g.10gb@3 1g.10gb@4 1g.10gb@5 1g.10gb@6",
            "4294967288 × 1g.10gb + 4294967295 × 7g.80gb",
        );
    }

    #[test]
    fn what_fits_has_no_conflict() {
        let catalog = Catalog::embedded().unwrap();
        for row in catalog.mig_tables() {
            for layout in layouts(&row.table) {
                assert_eq!(conflict(&row.table, &layout), None);
            }
        }
    }
}
