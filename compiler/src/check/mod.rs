//! Rules about the fleet, over the lowered Intent. One family a file, one function a rule.
//!
//! A rule takes the lowered fleet and reports every finding; it is silent about poisoned items.

mod dra;
mod inventory;
mod kubernetes;
mod mig;
mod monitoring;
mod names;
mod node_policy;
mod ownership;
mod quota;
mod sharing;
mod system;
mod tiers;
mod topology;
mod unsure;
mod unused;
mod workload;

use fleetc_schema::diag::{Diagnostic, Rule, rules};
use fleetc_targets::TARGETS;

use crate::language::kinds;
use crate::lower::Lowered;

type Check = fn(&Lowered, &mut Vec<Diagnostic>);

/// Every fleet rule.
const CHECKS: &[Check] = &[
    mig::slices_left_over,
    mig::mixed_with_single_strategy,
    mig::two_gpu_types,
    mig::multi_gpu_workload,
    mig::name_by_driver,
    mig::driver_too_old,
    sharing::slo,
    sharing::mps_many_teams,
    sharing::memory_oversubscribed,
    sharing::replicas,
    sharing::ambiguous_resource,
    sharing::training_on_slice,
    inventory::node_missing,
    inventory::node_without_pool,
    ownership::unowned,
    ownership::driver_unowned,
    ownership::two_mechanisms,
    quota::above_capacity,
    quota::child_above_parent,
    quota::limit_above_parent,
    quota::unreachable,
    quota::no_fair_share,
    tiers::one_job_blocks_all,
    tiers::priority_order,
    names::elastic_nodes,
    names::namespaces,
    names::accounts,
    names::node_names,
    names::reserved,
    workload::does_not_fit,
    workload::tight_fit,
    workload::oversized,
    workload::sharded_needlessly,
    workload::bandwidth_below_slo,
    workload::kind_against_gpu,
    workload::no_tenancy_decision,
    workload::parallel_product,
    workload::no_queue,
    workload::no_gang,
    workload::service_on_slurm,
    workload::pretrain_on_plain_kubernetes,
    workload::never_schedulable,
    workload::strands_gpus,
    workload::no_rdma,
    workload::shm_too_small,
    workload::data_rate,
    monitoring::metric_not_exported,
    monitoring::missing_on_mig,
    monitoring::threshold,
    monitoring::no_route,
    monitoring::no_contact,
    monitoring::not_covered,
    monitoring::no_reaper,
    system::host_exceeded,
    node_policy::impossible,
    node_policy::driver_mismatch,
    node_policy::driver_too_old,
    node_policy::driver_too_new,
    node_policy::none,
    node_policy::unreadable_on_mig,
    topology::outside_blocks,
    topology::unattached_node,
    topology::cycle,
    topology::orphan_switch,
    topology::two_uplink_trees,
    topology::block_size,
    topology::nvlink_domain_size,
    topology::tensor_parallel_leaves_nvlink,
    topology::pipeline_over_slow_link,
    topology::crosses_block,
    topology::not_contiguous,
    topology::placement_unknown,
    topology::level_without_label,
    topology::rack_power,
    dra::no_driver,
    kubernetes::too_many_nodes,
    kubernetes::untainted_gpu_nodes,
    kubernetes::taint_not_tolerated,
];

/// Asks every fleet rule.
pub fn fleet(lowered: &Lowered) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for check in CHECKS {
        check(lowered, &mut found);
    }
    found
}

/// Rules of targets that rest on which pools teams have quotas on. Targets see the Intent alone, in which
/// a quota that could not be read is missing.
const ON_QUOTAS: &[&Rule] = &[
    &rules::KUBERNETES_OPEN_POOL_LIFTS_CAPS,
    &rules::SLURM_CPU_JOBS_STRAND_GPUS,
    &rules::SLURM_JOB_ABOVE_QOS,
    &rules::SLURM_MIXED_PARTITION,
    &rules::SLURM_TIER_HOLDS_GUARANTEE,
];

/// Asks every target about every scope of it.
pub fn targets(lowered: &Lowered) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for target in TARGETS {
        for scope in target.scopes(&lowered.intent) {
            target.check(&scope, &mut found);
        }
    }
    if lowered.is_any_poisoned("team") {
        found.retain(|found| !ON_QUOTAS.contains(&found.rule));
    }
    found
}

/// What the spec defines and nothing uses: `spec/unused`. Asked only if nothing is wrong so far, since
/// a misspelt reference would be two findings.
pub fn unused(spec: &kinds::Spec, lowered: &Lowered) -> Vec<Diagnostic> {
    unused::find(spec, lowered)
}
