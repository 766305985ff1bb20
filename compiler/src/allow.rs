//! `allow`: warnings that a fleet accepts at a place, each with a reason.
//!
//! An `allow` stands in an item and covers findings on it or below; at the fleet it takes `at=`. It
//! matches the subject of a finding or any related place. Errors cannot be allowed, and what an
//! `allow` no longer matches is reported, so that suppressions do not rot.

use std::collections::BTreeMap;

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, Phase, Place, Severity, Span, rules};
use indexmap::IndexMap;

use crate::MAX_FINDINGS;
use crate::language::{did_you_mean, kinds};

/// One `allow` that can be applied.
#[derive(Debug)]
struct Allow<'a> {
    rule: &'static str,
    /// What it covers; none: everything.
    scope: Option<ItemPath>,
    item: &'a kinds::Allow,
    used: bool,
}

/// Takes away what is allowed and reports what is wrong with the allows.
pub fn apply(
    spec: &kinds::Spec,
    places: &IndexMap<ItemPath, Span>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut found = Vec::new();
    let mut allows = Vec::new();
    for (owner, item) in every_allow(spec) {
        allows.extend(read(owner, item, places, &mut found));
    }
    if allows.is_empty() {
        diagnostics.append(&mut found);
        return;
    }
    // Of several at one place the first, which is the outermost.
    let mut items: BTreeMap<Span, &ItemPath> = BTreeMap::new();
    for (path, span) in places {
        items.entry(*span).or_insert(path);
    }
    diagnostics.retain(|finding| {
        if finding.severity == Severity::Error {
            return true;
        }
        let paths: Vec<&ItemPath> =
            finding.labels.iter().filter_map(|label| path_of(&label.place, &items)).collect();
        let covers = |allow: &&mut Allow<'_>| {
            allow.rule == finding.rule.name
                && match &allow.scope {
                    None => true,
                    Some(scope) => paths.iter().any(|path| path.is_within(scope)),
                }
        };
        match allows.iter_mut().find(covers) {
            Some(allow) => {
                allow.used = true;
                false
            }
            None => true,
        }
    });
    // Rules are silent about what could not be read: with errors about, nobody knows what is unused.
    let unread = diagnostics.iter().any(|finding| finding.severity == Severity::Error);
    for allow in allows.iter().filter(|allow| !allow.used) {
        let errors = rules::find(allow.rule).is_some_and(|rule| rule.severity == Severity::Error);
        if unread && !errors {
            continue;
        }
        let title = format!("nothing here draws `{}`", allow.rule);
        let finding = Diagnostic::new(&rules::SPEC_ALLOW_UNUSED, title);
        let finding = finding.at(allow.item.span, "allows nothing");
        found.push(match errors {
            true => finding.note("errors cannot be allowed").help("remove it and mend the error"),
            false => finding.help("remove it"),
        });
    }
    diagnostics.append(&mut found);
}

/// Every `allow` with the item that it stands in; none for the fleet.
fn every_allow(spec: &kinds::Spec) -> Vec<(Option<&ItemPath>, &kinds::Allow)> {
    let mut all = Vec::new();
    for fleet in &spec.fleets {
        all.extend(fleet.allows.iter().map(|allow| (None, allow)));
    }
    let mut add = |path, allows| {
        let allows: &Vec<kinds::Allow> = allows;
        all.extend(allows.iter().map(|allow| (Some(path), allow)));
    };
    spec.clusters.iter().for_each(|item| add(&item.path, &item.allows));
    spec.fabrics.iter().for_each(|item| add(&item.path, &item.allows));
    spec.racks.iter().for_each(|item| add(&item.path, &item.allows));
    spec.pools.iter().for_each(|item| add(&item.path, &item.allows));
    spec.policies.iter().for_each(|item| add(&item.path, &item.allows));
    spec.tiers.iter().for_each(|item| add(&item.path, &item.allows));
    spec.workloads.iter().for_each(|item| add(&item.path, &item.allows));
    spec.monitoring.iter().for_each(|item| add(&item.path, &item.allows));
    let mut teams: Vec<&kinds::Team> = spec.teams.iter().collect();
    while let Some(team) = teams.pop() {
        add(&team.path, &team.allows);
        teams.extend(&team.teams);
    }
    all
}

fn read<'a>(
    owner: Option<&ItemPath>,
    item: &'a kinds::Allow,
    places: &IndexMap<ItemPath, Span>,
    found: &mut Vec<Diagnostic>,
) -> Option<Allow<'a>> {
    let name = item.arg.as_ref()?;
    let Some(rule) = rules::find(&name.value) else {
        let title = format!("no rule is called `{}`", name.value);
        let finding = Diagnostic::new(&rules::NAME_UNKNOWN, title).at(name.span, "not a rule");
        let near = did_you_mean(&name.value, rules::ALL.iter().map(|rule| rule.name));
        found.push(match near {
            Some(near) => finding.help(format!("did you mean `{near}`?")),
            None => finding.help("`fleetc explain` lists the rules"),
        });
        return None;
    };
    if rule.phase == Phase::Plan {
        let title = format!("`{}` is about a change: a spec alone never draws it", rule.name);
        let finding = Diagnostic::new(&rules::SPEC_ALLOW_UNUSED, title);
        found.push(finding.at(item.span, "allows nothing").help("remove it"));
        return None;
    }
    let reason = item.reason.as_ref().map(|reason| reason.value.trim());
    if reason.is_none_or(str::is_empty) {
        let title = format!("`{}` is allowed without a reason", rule.name);
        let finding = Diagnostic::new(&rules::SPEC_ALLOW_WITHOUT_REASON, title);
        found.push(finding.at(item.span, "why?").help("add `reason=\"…\"`"));
    }
    let scope = match &item.at {
        None => owner.cloned(),
        Some(at) => {
            let Ok(path) = at.value.parse::<ItemPath>();
            if !places.contains_key(&path) {
                let title = format!("the spec has no item `{}`", at.value);
                let finding = Diagnostic::new(&rules::NAME_UNKNOWN, title);
                // Beyond those that are shown nobody reads a hint.
                let known = places.keys().take_while(|_| found.len() < MAX_FINDINGS);
                let near = did_you_mean(&at.value, known.map(ItemPath::as_str));
                let finding = finding.at(at.span, "not in the spec");
                found.push(match near {
                    Some(near) => finding.help(format!("did you mean `{near}`?")),
                    None => finding.help("write a path such as `pool/train`"),
                });
                return None;
            }
            Some(path)
        }
    };
    Some(Allow { rule: rule.name, scope, item, used: false })
}

/// The item of a place.
fn path_of<'a>(place: &'a Place, items: &BTreeMap<Span, &'a ItemPath>) -> Option<&'a ItemPath> {
    match place {
        Place::Item(path) => Some(path),
        Place::Span(span) => items.get(span).copied(),
    }
}
