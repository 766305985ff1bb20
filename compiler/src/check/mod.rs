//! Rules about the fleet, over the lowered Intent. One family a file, one function a rule.
//!
//! A rule takes the lowered fleet and reports every finding; it is silent about poisoned items.

mod node_policy;
mod ownership;
mod quota;
mod workload;

use fleetc_schema::diag::Diagnostic;

use crate::lower::Lowered;

type Check = fn(&Lowered, &mut Vec<Diagnostic>);

/// Every fleet rule.
const CHECKS: &[Check] =
    &[ownership::unowned, quota::above_capacity, workload::does_not_fit, node_policy::impossible];

/// Asks every fleet rule.
pub fn fleet(lowered: &Lowered) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for check in CHECKS {
        check(lowered, &mut found);
    }
    found
}
