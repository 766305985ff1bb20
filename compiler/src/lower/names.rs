//! Names that items declare, and references to them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use fleetc_schema::diag::{Diagnostic, Span, rules};

use crate::language::{At, Cx, Reference, did_you_mean, kinds, listing};

/// Every declared name with its place, also of items that could not be lowered.
#[derive(Debug)]
pub struct Names {
    /// Clusters.
    pub clusters: Declared,
    /// Pools.
    pub pools: Declared,
    /// Teams.
    pub teams: Declared,
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
        let name = |path: &fleetc_schema::ItemPath| {
            let text = path.as_str();
            text.split_once('/').map_or(text, |(_, name)| name).trim_matches('"').to_owned()
        };
        Self {
            clusters: Declared::new(
                "cluster",
                spec.clusters.iter().map(|i| (name(&i.path), i.span)),
            ),
            pools: Declared::new("pool", spec.pools.iter().map(|i| (name(&i.path), i.span))),
            teams: Declared::new("team", spec.teams.iter().map(|i| (name(&i.path), i.span))),
        }
    }
}

impl Declared {
    fn new(kind: &'static str, items: impl Iterator<Item = (String, Span)>) -> Self {
        let items: Vec<(String, Span)> = items.collect();
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
            None => finding.help(format!("the fleet's {}s are {}", self.kind, listing(known()))),
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
