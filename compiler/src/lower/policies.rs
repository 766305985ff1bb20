//! Node policies, and which of them holds for a pool.

use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::{CheckLevel, NodeCheck, NodePolicy, WantedHugePages, WantedMount};
use fleetc_schema::name::{PolicyName, PoolName};
use indexmap::IndexMap;

use super::names::Names;
use crate::language::{Cx, kinds};

/// Lowers policies. A pool has one policy at most.
pub fn lower(spec: &kinds::Spec, names: &Names, cx: &mut Cx) -> IndexMap<PolicyName, NodePolicy> {
    let mut policies = IndexMap::new();
    let mut general: Option<&kinds::NodePolicy> = None;
    let mut named: IndexMap<PoolName, fleetc_schema::diag::Span> = IndexMap::new();
    for item in &spec.policies {
        let Some(name) = &item.arg else { continue };
        let mut pools = Vec::new();
        for reference in item.pools.iter().flatten() {
            let Some(pool) = names.pools.resolve::<PoolName>(reference, cx) else { continue };
            if let Some(first) = named.insert(pool.clone(), reference.span) {
                let title = format!("pool `{pool}` has two policies");
                let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, title)
                    .at(reference.span, "named again here")
                    .at(first, "first named here");
                cx.report(finding.help("name it in one policy"));
            }
            pools.push(pool);
        }
        if item.pools.is_none() {
            if let Some(first) = general {
                let title = "two policies hold for every pool that no other names";
                let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, title)
                    .at(item.span, "the second one")
                    .at(first.span, "the first one");
                cx.report(finding.help("add `pools \"…\"` to one of them"));
            }
            general = general.or(Some(item));
        }
        let small = |count: u32| u8::try_from(count).ok();
        let pcie = item.pcie.as_ref();
        let policy = NodePolicy {
            pools,
            driver: item.driver.as_ref().map(|req| req.value.clone()),
            ecc: item.ecc.as_ref().map(|flag| flag.value),
            persistence: item.persistence.as_ref().map(|flag| flag.value),
            power_limit: item.power_limit.as_ref().map(|limit| limit.value),
            pcie_gen: pcie.and_then(|p| p.gen_.as_ref()).and_then(|n| small(n.value.0)),
            pcie_width: pcie.and_then(|p| p.width.as_ref()).and_then(|n| small(n.value.0)),
            nvlinks: item
                .nvlink
                .as_ref()
                .and_then(|n| n.active.as_ref())
                .and_then(|n| small(n.value.0)),
            mounts: item.mounts.iter().filter_map(mount).collect(),
            hugepages: item.hugepages.iter().filter_map(hugepages).collect(),
            checks: item.checks.iter().filter_map(severity).collect(),
        };
        policies.insert(name.value.clone(), policy);
    }
    policies
}

fn mount(item: &kinds::MountPolicy) -> Option<WantedMount> {
    let kind = item.type_.as_ref().map(|kind| kind.value.clone());
    Some(WantedMount { target: item.arg.as_ref()?.value.clone(), kind })
}

fn hugepages(item: &kinds::HugePagesPolicy) -> Option<WantedHugePages> {
    let (size, count) = (item.arg.as_ref()?.value, item.count.as_ref()?.value.0);
    Some(WantedHugePages { size, count })
}

/// How much a check matters, if all of it could be read.
fn severity(item: &kinds::CheckSeverity) -> Option<(NodeCheck, CheckLevel)> {
    Some((item.arg.as_ref()?.value, item.severity.as_ref()?.value))
}

/// The policy of a pool: one that names it, else the one that names none.
pub fn of_pool<'a>(
    policies: &'a IndexMap<PolicyName, NodePolicy>,
    pool: &PoolName,
) -> Option<(&'a PolicyName, &'a NodePolicy)> {
    let naming = policies.iter().find(|(_, policy)| policy.pools.contains(pool));
    naming.or_else(|| policies.iter().find(|(_, policy)| policy.pools.is_empty()))
}
