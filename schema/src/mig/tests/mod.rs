//! A naive second opinion on layouts, for every table of the catalog, and what tests share.
//!
//! The oracle goes through all subsets of (profile, start) pairs, marks slices in a row of flags,
//! and adds up engines, one pair after the other. It shares no code with the search.

mod against_oracle;
mod captures;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::catalog::Catalog;

/// Pairs of a profile's number in the table and a start, rising.
pub(super) type Pairs = Vec<(usize, u8)>;

/// Every legal layout with all its arrangements, by count of each profile in the table's order.
pub(super) type Layouts = BTreeMap<Vec<u32>, Vec<Pairs>>;

/// A fixed sequence of numbers that look random.
pub(super) struct Lcg(pub u64);

impl Lcg {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// A table of the catalog.
pub(super) fn table(key: &str) -> MigTable {
    Catalog::embedded().unwrap().mig_table(key).unwrap().table.clone()
}

/// Profiles by name, with counts.
pub(super) fn ask<'a>(table: &'a MigTable, names: &[(&str, u32)]) -> Vec<Demand<'a>> {
    let one = |(name, count): &(&str, u32)| Demand {
        profile: table.profile(&name.parse().unwrap()).unwrap(),
        count: *count,
    };
    names.iter().map(one).collect()
}

/// `2 × 3g.40gb + 1 × 2g.20gb`.
pub(super) fn words(layout: &[Demand<'_>]) -> String {
    let words = layout.iter().map(|d| format!("{} × {}", d.count, d.profile.name));
    words.collect::<Vec<_>>().join(" + ")
}

/// The tables of the catalog, of equal geometry only one, with their keys and layouts.
pub(super) fn tables() -> Vec<(String, MigTable, Layouts)> {
    let mut seen = BTreeSet::new();
    let mut tables = Vec::new();
    for row in Catalog::embedded().unwrap().mig_tables() {
        let table = row.table.clone();
        let shape = |p: &GiProfile| (p.id, p.starts.clone(), p.memory_slices, p.engines);
        let geometry = format!(
            "{} {:?} {:?}",
            table.memory_slices,
            table.engine_totals,
            table.profiles.iter().map(shape).collect::<Vec<_>>()
        );
        if seen.insert(geometry) {
            let layouts = naive(&table);
            tables.push((row.key.clone(), table, layouts));
        }
    }
    tables
}

/// All legal layouts of a table, by trying every subset of pairs.
pub(super) fn naive(table: &MigTable) -> Layouts {
    let mut pairs = Vec::new();
    for (number, profile) in table.profiles.iter().enumerate() {
        pairs.extend(profile.starts.iter().map(|start| (number, *start)));
    }
    let mut layouts = Layouts::new();
    choose(table, &pairs, &mut Vec::new(), &mut layouts);
    layouts
}

fn choose(table: &MigTable, pairs: &[(usize, u8)], chosen: &mut Pairs, layouts: &mut Layouts) {
    let Some((pair, rest)) = pairs.split_first() else {
        let counts = counts(table, chosen);
        layouts.entry(counts).or_default().push(chosen.clone());
        return;
    };
    choose(table, rest, chosen, layouts);
    chosen.push(*pair);
    if obeys_the_rules(table, chosen) {
        choose(table, rest, chosen, layouts);
    }
    chosen.pop();
}

pub(super) fn counts(table: &MigTable, pairs: &[(usize, u8)]) -> Vec<u32> {
    let mut counts = vec![0; table.profiles.len()];
    for (number, _) in pairs {
        counts[*number] += 1;
    }
    counts
}

pub(super) fn obeys_the_rules(table: &MigTable, pairs: &[(usize, u8)]) -> bool {
    let mut taken = vec![false; usize::from(table.memory_slices)];
    let mut engines = [0_u32; 5];
    for (number, start) in pairs {
        let profile = &table.profiles[*number];
        let first = usize::from(*start);
        for slice in &mut taken[first..first + usize::from(profile.memory_slices)] {
            if std::mem::replace(slice, true) {
                return false;
            }
        }
        for (sum, count) in engines.iter_mut().zip(list(profile.engines)) {
            *sum += u32::from(count.unwrap_or(0));
        }
    }
    let totals = list(table.engine_totals).map(|total| u32::from(total.unwrap()));
    let enough = engines.iter().zip(totals).all(|(sum, total)| *sum <= total);
    let counts = counts(table, pairs);
    enough && counts.iter().zip(&table.profiles).all(|(c, p)| *c <= u32::from(p.max_count))
}

fn list(engines: Engines) -> [Option<u8>; 5] {
    [engines.ce, engines.dec, engines.enc, engines.jpeg, engines.ofa]
}

pub(super) fn demands<'a>(table: &'a MigTable, counts: &[u32]) -> Vec<Demand<'a>> {
    let all = table.profiles.iter().zip(counts);
    all.map(|(profile, count)| Demand { profile, count: *count }).collect()
}

pub(super) fn number(table: &MigTable, profile: &GiProfile) -> usize {
    table.profiles.iter().position(|other| other.id == profile.id).unwrap()
}

pub(super) fn counts_of(table: &MigTable, layout: &[Demand<'_>]) -> Vec<u32> {
    let mut counts = vec![0; table.profiles.len()];
    for demand in layout {
        counts[number(table, demand.profile)] += demand.count;
    }
    counts
}
