//! Names that items declare, and references to them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use fleetc_schema::diag::{Diagnostic, Rule, Span, rules};
use fleetc_schema::hostlist::clashes;
use fleetc_schema::{Hostlist, ItemPath};

use crate::language::{At, Cx, Reference, did_you_mean, kinds, listing};

/// Every declared name with its place, also of items that could not be lowered.
#[derive(Debug)]
pub struct Names {
    /// Clusters.
    pub clusters: Declared,
    /// Pools.
    pub pools: Declared,
    /// Teams, also those that are part of others.
    pub teams: Declared,
    /// Tiers.
    pub tiers: Declared,
    /// Sites.
    pub sites: Declared,
    /// Fabrics.
    pub fabrics: Declared,
    /// Receivers of alerts.
    pub receivers: Declared,
}

/// The names of one kind.
#[derive(Debug)]
pub struct Declared {
    kind: &'static str,
    names: BTreeMap<String, Span>,
    order: Vec<String>,
}

impl Names {
    /// Collects the declarations of a spec.
    pub fn declared(spec: &kinds::Spec) -> Self {
        let mut teams = Vec::new();
        let mut open: Vec<&kinds::Team> = spec.teams.iter().rev().collect();
        while let Some(team) = open.pop() {
            teams.push((&team.path, team.span));
            open.extend(team.teams.iter().rev());
        }
        let receivers = spec.monitoring.iter().flat_map(|monitoring| &monitoring.receivers);
        Self {
            clusters: Declared::of("cluster", spec.clusters.iter().map(|i| (&i.path, i.span))),
            pools: Declared::of("pool", spec.pools.iter().map(|i| (&i.path, i.span))),
            teams: Declared::of("team", teams.into_iter()),
            tiers: Declared::of("tier", spec.tiers.iter().map(|i| (&i.path, i.span))),
            sites: super::topology::declared_sites(spec),
            fabrics: Declared::of("fabric", spec.fabrics.iter().map(|i| (&i.path, i.span))),
            receivers: Declared::of("receiver", receivers.map(|i| (&i.path, i.span))),
        }
    }
}

impl Declared {
    /// The names of items of one kind, by their paths.
    pub fn of<'a>(kind: &'static str, items: impl Iterator<Item = (&'a ItemPath, Span)>) -> Self {
        let items: Vec<(String, Span)> =
            items.map(|(path, span)| (path.last_name().to_owned(), span)).collect();
        let order = items.iter().map(|(name, _)| name.clone()).collect();
        Self { kind, names: items.into_iter().collect(), order }
    }

    /// The typed name behind a reference. None if nothing declares it (reported), or if its
    /// declaration is illegal (reported there).
    pub fn resolve<T: FromStr>(&self, reference: &At<Reference>, cx: &mut Cx) -> Option<T> {
        let Reference(text) = &reference.value;
        if self.names.contains_key(text) {
            return text.parse().ok();
        }
        let title = format!("no {} is called `{text}`", self.kind);
        let finding =
            Diagnostic::new(&rules::NAME_UNKNOWN, title).at(reference.span, "not defined");
        let known = || self.order.iter().map(String::as_str);
        let finding = match did_you_mean(text, known()) {
            Some(near) => {
                let finding = match self.names.get(near) {
                    Some(span) => finding.at(*span, "the nearest name is defined here"),
                    None => finding,
                };
                finding.help(format!("did you mean `{near}`?"))
            }
            None if self.order.is_empty() => {
                finding.help(format!("define it: `{} \"{text}\" {{ … }}`", self.kind))
            }
            None => {
                let last = self.order.last().and_then(|name| self.names.get(name));
                let finding = match last {
                    Some(span) => finding.at(*span, format!("a {} is defined here", self.kind)),
                    None => finding,
                };
                finding
                    .help(format!("the fleet's {}s are {}", self.kind, listing(known())))
                    .help(format!("or define it: `{} \"{text}\" {{ … }}`", self.kind))
            }
        };
        cx.report(finding);
        cx.poison(&reference.path);
        None
    }
}

/// Names in backticks, for messages about a few.
pub fn quoted<T: fmt::Display>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    listing(names.iter().map(String::as_str))
}

/// A node in the lists of two owners: in two pools, two racks, or two parts of a split.
pub fn report_clashes(
    rule: &'static Rule,
    kind: &str,
    lists: &[(String, &At<Hostlist>)],
    cx: &mut Cx,
) {
    let indexed: Vec<(usize, &Hostlist)> =
        lists.iter().enumerate().map(|(index, (_, list))| (index, &list.value)).collect();
    for (a, b, common) in clashes(&indexed) {
        let (Some((first, first_list)), Some((second, second_list))) = (lists.get(a), lists.get(b))
        else {
            continue;
        };
        let are = if common.len() == 1 { "is" } else { "are" };
        let title = format!("`{common}` {are} in {kind} `{first}` and in {kind} `{second}`");
        let finding = Diagnostic::new(rule, title)
            .at(second_list.span, "here")
            .at(first_list.span, "and here");
        cx.report(finding.help(format!("leave `{common}` in one of the two")));
        cx.poison(&second_list.path);
    }
}
