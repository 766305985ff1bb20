//! Tiers.

use fleetc_schema::intent::Tier;
use fleetc_schema::name::TierName;
use indexmap::IndexMap;

use crate::language::kinds;

/// Lowers tiers.
pub fn lower(spec: &kinds::Spec) -> IndexMap<TierName, Tier> {
    let tier = |item: &kinds::Tier| {
        let tier = Tier {
            priority: item.priority.as_ref()?.value.0,
            preemptible: item.preemptible.as_ref().is_some_and(|flag| flag.value),
            max_gpus_per_job: item.max_gpus_per_job.as_ref().map(|count| count.value.0),
            max_time: item.max_time.as_ref().map(|time| time.value),
            idle_after: item.idle_after.as_ref().map(|time| time.value),
        };
        Some((item.arg.as_ref()?.value.clone(), tier))
    };
    spec.tiers.iter().filter_map(tier).collect()
}
