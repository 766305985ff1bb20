//! The table of rules. One row a rule; its page stands in `rules/<family>/<name>.md`.
//!
//! A name, once released, keeps its meaning for ever; a retired name is not used again.

use std::fmt;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Works, but is unwise.
    Warning,
    /// Will not parse, load, place, be admitted, schedule or start; or the spec contradicts itself.
    Error,
}

impl Severity {
    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// When a rule is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// While a spec is read and lowered: it decides whether there is an item at all.
    Read,
    /// Over the lowered fleet.
    Check,
    /// Over what changes between two fleets.
    Plan,
}

/// A rule: `family/name`.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// `family/name`.
    pub name: &'static str,
    /// The worst that it reports.
    pub severity: Severity,
    /// When it is asked.
    pub phase: Phase,
    /// What is wrong, in one line.
    pub summary: &'static str,
    /// Its page, Markdown.
    #[cfg(feature = "pages")]
    pub page: &'static str,
}

impl Rule {
    /// The part before the slash.
    pub fn family(&self) -> &'static str {
        self.name.split_once('/').map_or("", |(family, _)| family)
    }
}

macro_rules! rules {
    ($($const:ident = $name:literal, $severity:ident, $phase:ident, $summary:literal;)+) => {
        /// Every rule, as a constant.
        pub mod rules {
            use super::{Phase, Rule, Severity};

            $(
                #[doc = concat!("`", $name, "`: ", $summary, ".")]
                pub static $const: Rule = Rule {
                    name: $name,
                    severity: Severity::$severity,
                    phase: Phase::$phase,
                    summary: $summary,
                    #[cfg(feature = "pages")]
                    page: include_str!(concat!("rules/", $name, ".md")),
                };
            )+

            /// Every rule, in the order of the table.
            pub static ALL: &[&Rule] = &[$(&$const),+];

            /// The rule of this name.
            pub fn find(name: &str) -> Option<&'static Rule> {
                ALL.iter().copied().find(|rule| rule.name == name)
            }
        }
    };
}

rules! {
    SPEC_SYNTAX = "spec/syntax", Error, Read, "the file does not parse";
    SPEC_UNKNOWN_NODE = "spec/unknown-node", Error, Read, "a word that the language does not know here";
    SPEC_UNKNOWN_PROPERTY = "spec/unknown-property", Error, Read, "a property that the language does not know here";
    SPEC_WRONG_TYPE = "spec/wrong-type", Error, Read, "a value of another type than its place takes";
    SPEC_MISSING = "spec/missing", Error, Read, "something that an item cannot do without is not stated";
    SPEC_DUPLICATE = "spec/duplicate", Error, Read, "one thing is stated twice";
    SPEC_UNIT = "spec/unit", Error, Read, "a quantity without a unit, or with a unit of another kind";
    SPEC_OUT_OF_RANGE = "spec/out-of-range", Error, Read, "a value outside what its place takes";
    SPEC_INCLUDE_CYCLE = "spec/include-cycle", Error, Read, "a file that includes or extends itself";
    SPEC_INCLUDE_NOT_FOUND = "spec/include-not-found", Error, Read, "a file of the spec that cannot be read";
    SPEC_OUTSIDE_ROOT = "spec/outside-root", Error, Read, "a file above the root of the spec";
    SPEC_ALLOW_WITHOUT_REASON = "spec/allow-without-reason", Error, Check, "an accepted warning without a reason";
    SPEC_ALLOW_UNUSED = "spec/allow-unused", Warning, Check, "an accepted warning that nothing draws";
    SPEC_VERSION_UNKNOWN = "spec/version-unknown", Error, Read, "a version that nothing is written for";
    SPEC_UNUSED = "spec/unused", Warning, Check, "an item that nothing uses";
    SPEC_EXTRA_CONFLICT = "spec/extra-conflict", Error, Check, "a line of the site sets what is written for it";
    NAME_ILLEGAL = "name/illegal", Error, Read, "a name that a consumer refuses";
    NAME_UNKNOWN = "name/unknown", Error, Read, "a name that nothing in the fleet has";
    NAME_COLLISION = "name/collision", Error, Check, "two things that end under one name";
    NAME_HOSTLIST = "name/hostlist", Error, Read, "a hostlist that is malformed, repeats a name or is absurdly long";
    NAME_NODE_TWICE = "name/node-twice", Error, Read, "a node in two pools or two racks";
    INVENTORY_DISAGREES = "inventory/disagrees", Error, Read, "a row puts a node elsewhere than the spec does";
    INVENTORY_NODE_MISSING = "inventory/node-missing", Warning, Check, "a node of a pool that its inventory does not have";
    INVENTORY_NODE_WITHOUT_POOL = "inventory/node-without-pool", Warning, Check, "a row about a node that is in no pool";
    CATALOG_UNKNOWN_SYSTEM = "catalog/unknown-system", Error, Read, "a system that neither catalog nor fleet has";
    CATALOG_UNKNOWN_GPU = "catalog/unknown-gpu", Error, Read, "a GPU product that neither catalog nor fleet has";
    CATALOG_UNSURE_FACT = "catalog/unsure-fact", Warning, Check, "an error that would rest on a fact nobody is sure of";
    CATALOG_EXCEEDS_SYSTEM = "catalog/exceeds-system", Error, Read, "more than the system has";
    CATALOG_MISSING_FACT = "catalog/missing-fact", Error, Check, "a target needs a fact that neither catalog nor fleet states";
    TOPOLOGY_UNATTACHED_NODE = "topology/unattached-node", Warning, Check, "nodes whose place no scheduler can know";
    TOPOLOGY_CYCLE = "topology/cycle", Error, Check, "uplinks that lead in a circle";
    TOPOLOGY_ORPHAN_SWITCH = "topology/orphan-switch", Error, Check, "a switch with neither nodes nor switches";
    TOPOLOGY_TWO_UPLINK_TREES = "topology/two-uplink-trees", Error, Check, "nodes or switches of a fabric below two switches that are not alike";
    TOPOLOGY_BLOCK_SIZE = "topology/block-size", Error, Check, "blocks that this release of Slurm refuses";
    TOPOLOGY_NVLINK_DOMAIN_SIZE = "topology/nvlink-domain-size", Error, Check, "a rack product that has other nodes than its NVLink domain";
    TOPOLOGY_TENSOR_PARALLEL_LEAVES_NVLINK = "topology/tensor-parallel-leaves-nvlink", Warning, Check, "tensor parallel ranks that NVLink does not join";
    TOPOLOGY_PIPELINE_OVER_SLOW_LINK = "topology/pipeline-over-slow-link", Warning, Check, "pipeline stages in more than one fabric or site";
    TOPOLOGY_CROSSES_BLOCK = "topology/crosses-block", Warning, Check, "data parallel ranks in more than one fabric or site";
    TOPOLOGY_NOT_CONTIGUOUS = "topology/not-contiguous", Warning, Check, "a gang that asks for one block and fits into none";
    TOPOLOGY_PLACEMENT_UNKNOWN = "topology/placement-unknown", Warning, Check, "a gang on elastic nodes that may be far apart";
    TOPOLOGY_LEVEL_WITHOUT_LABEL = "topology/level-without-label", Error, Check, "a level of a queue whose node label nothing sets";
    TOPOLOGY_RACK_POWER = "topology/rack-power", Error, Check, "a rack whose nodes draw more than it has";
    MIG_NOT_CAPABLE = "mig/not-capable", Error, Read, "MIG on a GPU that has none";
    MIG_PROFILE_NOT_ON_GPU = "mig/profile-not-on-gpu", Error, Read, "a MIG profile that the GPU does not have";
    MIG_NO_PLACEMENT = "mig/no-placement", Error, Read, "GPU instances that cannot be placed together";
    MIG_ENGINES_EXCEEDED = "mig/engines-exceeded", Error, Read, "GPU instances that want more engines than the GPU has";
    MIG_WRONG_TABLE = "mig/wrong-table", Error, Read, "a MIG table of the fleet's own that contradicts itself";
    MIG_NO_TABLE = "mig/no-table", Error, Read, "MIG on a GPU whose profiles the catalog does not know";
    MIG_SLICES_LEFT_OVER = "mig/slices-left-over", Warning, Check, "a layout that leaves room for more instances";
    MIG_MIXED_WITH_SINGLE_STRATEGY = "mig/mixed-with-single-strategy", Error, Check, "the strategy `single` with more than one kind of device";
    MIG_TWO_GPU_TYPES = "mig/two-gpu-types", Warning, Check, "one resource name for instances of different GPUs";
    MIG_MULTI_GPU_WORKLOAD = "mig/multi-gpu-workload", Error, Check, "a job that spreads over MIG slices";
    MIG_NAME_BY_DRIVER = "mig/name-by-driver", Note, Check, "profiles that another driver names otherwise";
    MIG_MODE_NEEDS_RESET = "mig/mode-needs-reset", Warning, Plan, "a change of MIG mode on GPUs that cannot be reset";
    MIG_UNCOVERED_GPU = "mig/uncovered-gpu", Error, Read, "a MIG pool leaves a GPU of the node unsaid";
    SHARING_SLO_ON_TIME_SLICING = "sharing/slo-on-time-slicing", Warning, Check, "a promise to users on GPUs that clients take turns on";
    SHARING_SLO_ON_MPS = "sharing/slo-on-mps", Warning, Check, "a promise to users on GPUs whose clients share one fault domain";
    SHARING_MPS_MANY_TEAMS = "sharing/mps-many-teams", Warning, Check, "an MPS pool that several teams may use";
    SHARING_MEMORY_OVERSUBSCRIBED = "sharing/memory-oversubscribed", Warning, Check, "clients of one GPU may need more memory than it has";
    SHARING_REPLICAS = "sharing/replicas", Error, Check, "a number of clients a GPU that the device plugin refuses";
    SHARING_AMBIGUOUS_RESOURCE = "sharing/ambiguous-resource", Warning, Check, "shares of GPUs under the name of a GPU";
    SHARING_TRAINING_ON_SLICE = "sharing/training-on-slice", Warning, Check, "training on a MIG slice or a share of a GPU";
    OWNERSHIP_TWO_SCHEDULERS = "ownership/two-schedulers", Error, Read, "a node in two parts of a split";
    OWNERSHIP_DRIVER_UNOWNED = "ownership/driver-unowned", Warning, Check, "nobody installs the driver, or two do";
    OWNERSHIP_TWO_MECHANISMS = "ownership/two-mechanisms", Warning, Check, "GPUs of DRA that the device plugin may hand out too";
    OWNERSHIP_UNOWNED = "ownership/unowned", Warning, Check, "nodes of a split pool that no cluster owns";
    QUOTA_ABOVE_CAPACITY = "quota/above-capacity", Error, Check, "a pool guarantees more than it has";
    QUOTA_UNTYPED = "quota/untyped", Error, Read, "a quota that does not say which of several resources it counts";
    QUOTA_CHILD_ABOVE_PARENT = "quota/child-above-parent", Error, Check, "teams within a team are promised more than it has";
    QUOTA_LIMIT_BELOW_GUARANTEE = "quota/limit-below-guarantee", Error, Read, "a limit that does not hold the guarantee";
    QUOTA_UNREACHABLE = "quota/unreachable", Warning, Check, "a guarantee that whole jobs cannot use up";
    QUOTA_NO_FAIR_SHARE = "quota/no-fair-share", Warning, Check, "nothing says who gets what is idle";
    QUOTA_ONE_JOB_BLOCKS_ALL = "quota/one-job-blocks-all", Warning, Check, "a tier whose jobs can hold a whole interactive pool";
    QUOTA_PRIORITY_ORDER = "quota/priority-order", Error, Check, "priorities that contradict who gives way, or that Kubernetes refuses";
    QUOTA_PRIORITY_CHANGED = "quota/priority-changed", Warning, Plan, "a new priority for a tier that Kubernetes knows";
    WORKLOAD_DOES_NOT_FIT = "workload/does-not-fit", Error, Check, "a workload needs more memory than its GPU or slice has";
    WORKLOAD_TIGHT_FIT = "workload/tight-fit", Warning, Check, "a workload leaves less than a tenth of its memory free";
    WORKLOAD_OVERSIZED = "workload/oversized", Warning, Check, "a workload uses less than a quarter of what it holds";
    WORKLOAD_SHARDED_NEEDLESSLY = "workload/sharded-needlessly", Warning, Check, "inference is split over GPUs although one would hold it";
    WORKLOAD_BANDWIDTH_BELOW_SLO = "workload/bandwidth-below-slo", Warning, Check, "a GPU cannot read the weights as often as the SLO asks";
    WORKLOAD_KIND_AGAINST_GPU = "workload/kind-against-gpu", Warning, Check, "a kind of work on GPUs that are made for another";
    WORKLOAD_NO_TENANCY_DECISION = "workload/no-tenancy-decision", Warning, Check, "a workload on shared GPUs does not say what it accepts";
    WORKLOAD_PARALLEL_PRODUCT = "workload/parallel-product", Error, Check, "degrees of parallelism that do not make up the GPUs of the job";
    WORKLOAD_NO_QUEUE = "workload/no-queue", Error, Check, "no partition takes the jobs of a workload";
    WORKLOAD_NO_GANG = "workload/no-gang", Warning, Check, "a job over several nodes where nothing starts its pods together";
    WORKLOAD_SERVICE_ON_SLURM = "workload/service-on-slurm", Warning, Check, "a service under a scheduler of batch jobs";
    WORKLOAD_PRETRAIN_ON_PLAIN_KUBERNETES = "workload/pretrain-on-plain-kubernetes", Warning, Check, "pretraining on Kubernetes without a queue";
    WORKLOAD_NEVER_SCHEDULABLE = "workload/never-schedulable", Error, Check, "a workload asks for what its pool, tier or team never has";
    WORKLOAD_STRANDS_GPUS = "workload/strands-gpus", Warning, Check, "what a workload asks of the host leaves GPUs that nobody can use";
    WORKLOAD_NO_RDMA = "workload/no-rdma", Warning, Check, "a job over several nodes of Kubernetes without a fast fabric";
    WORKLOAD_SHM_TOO_SMALL = "workload/shm-too-small", Warning, Check, "a pod of several GPUs, or one that trains, with a `/dev/shm` of 64 MiB";
    WORKLOAD_FRACTIONAL_GPU = "workload/fractional-gpu", Error, Read, "a number of GPUs that is not whole";
    WORKLOAD_DATA_RATE = "workload/data-rate", Warning, Check, "a workload reads more than the storage network of a node carries";
    MONITORING_METRIC_NOT_EXPORTED = "monitoring/metric-not-exported", Error, Check, "an alert needs a metric that the exporter does not have";
    MONITORING_MISSING_ON_MIG = "monitoring/missing-on-mig", Warning, Check, "an alert on what GPUs in MIG mode do not report";
    MONITORING_THRESHOLD = "monitoring/threshold", Error, Check, "an alert that can never fire, or always does";
    MONITORING_NO_ROUTE = "monitoring/no-route", Warning, Check, "alerts that nobody receives";
    MONITORING_NO_CONTACT = "monitoring/no-contact", Warning, Check, "a team that is not told of its alerts";
    MONITORING_NOT_COVERED = "monitoring/not-covered", Warning, Check, "production where nothing watches the GPUs";
    MONITORING_NO_REAPER = "monitoring/no-reaper", Warning, Check, "a tier of sessions that nothing ends";
    NODE_POLICY_IMPOSSIBLE = "node-policy/impossible", Error, Check, "a policy asks for what the hardware cannot do";
    NODE_POLICY_DRIVER_MISMATCH = "node-policy/driver-mismatch", Error, Check, "a driver that its node policy does not accept";
    NODE_POLICY_DRIVER_TOO_OLD = "node-policy/driver-too-old", Error, Check, "MIG with a driver that cannot cut the GPU yet";
    NODE_POLICY_DRIVER_TOO_NEW = "node-policy/driver-too-new", Error, Check, "a driver that no longer knows the GPU";
    NODE_POLICY_NONE = "node-policy/none", Warning, Check, "a pool that the fleet's node policies leave out";
    NODE_POLICY_UNREADABLE_ON_MIG = "node-policy/unreadable-on-mig", Note, Check, "NVLinks asked of GPUs in MIG mode";
    KUBERNETES_TOO_MANY_NODES = "kubernetes/too-many-nodes", Warning, Check, "a cluster larger than its Kubernetes is tested with";
    KUBERNETES_OBJECT_TOO_LARGE = "kubernetes/object-too-large", Error, Check, "an object above what Kubernetes stores";
    KUBERNETES_UNTAINTED_GPU_NODES = "kubernetes/untainted-gpu-nodes", Warning, Check, "GPU nodes that pods without a GPU may fill";
    KUBERNETES_TAINT_NOT_TOLERATED = "kubernetes/taint-not-tolerated", Warning, Check, "a taint that keeps NVIDIA's agents off GPU nodes";
    KUBERNETES_OPEN_POOL_LIFTS_CAPS = "kubernetes/open-pool-lifts-caps", Warning, Check, "a pool without quotas hands out what teams are guaranteed in another";
    KUBERNETES_IMMUTABLE_CHANGE = "kubernetes/immutable-change", Warning, Plan, "a change to a field that an object keeps for life";
    KUEUE_DRA_UNSUPPORTED = "kueue/dra-unsupported", Error, Check, "a Kueue that does not count devices of DRA";
    KUEUE_TOO_MANY_FLAVORS = "kueue/too-many-flavors", Error, Check, "more pools or resources than queues of Kueue hold";
    KUEUE_PREEMPTS_BY_PRIORITY = "kueue/preempts-by-priority", Warning, Check, "a tier that does not give way and is stopped all the same";
    DRA_NO_DRIVER = "dra/no-driver", Error, Check, "devices of DRA in a cluster without its driver";
    DRA_SHARED_GPUS = "dra/shared-gpus", Error, Check, "replicas of GPUs that DRA hands out";
    DRA_TWO_DOMAINS_IN_CLIQUE = "dra/two-domains-in-clique", Warning, Check, "two workloads make NVLink domains on the same nodes";
    DRA_EVERYTHING_AT_ONCE = "dra/everything-at-once", Warning, Plan, "the first use of DRA in a cluster is for more than one job";
    SLURM_SHARED_GPUS = "slurm/shared-gpus", Error, Check, "a pool of shared GPUs under Slurm";
    SLURM_VERSION_FEATURE = "slurm/version-feature", Error, Check, "something that the release of Slurm does not have";
    SLURM_GRES_TYPE_NOT_SUBSTRING = "slurm/gres-type-not-substring", Error, Check, "a GRES type that slurmd does not find in the GPU's name";
    SLURM_MIG_NEEDS_NVML = "slurm/mig-needs-nvml", Error, Check, "GPU instances where slurmd does not ask NVML";
    SLURM_AUTODETECT_CONFLICT = "slurm/autodetect-conflict", Error, Check, "an added line of gres.conf that Slurm does not take beside what is written";
    SLURM_ELASTIC_IN_BLOCK = "slurm/elastic-in-block", Warning, Check, "elastic nodes in a block, in a release that takes them out of it";
    SLURM_POWER_SAVE = "slurm/power-save", Error, Check, "elastic nodes that nothing starts";
    SLURM_TOO_MANY_NODES = "slurm/too-many-nodes", Error, Check, "more nodes than a cluster of Slurm takes";
    SLURM_NAME_LENGTH = "slurm/name-length", Error, Check, "a name that slurmdbd cannot keep";
    SLURM_BACKFILL_BLIND = "slurm/backfill-blind", Warning, Check, "jobs that end later than the backfill scheduler looks";
    SLURM_NO_DEFAULT_TIME = "slurm/no-default-time", Warning, Check, "jobs that state no time are taken to run as long as they may";
    SLURM_PARTITION_OVERLAP = "slurm/partition-overlap", Warning, Check, "two partitions share nodes, and neither preempts the other";
    SLURM_MIXED_PARTITION = "slurm/mixed-partition", Warning, Check, "a partition with a pool that teams are guaranteed and one that is open";
    SLURM_CPU_JOBS_STRAND_GPUS = "slurm/cpu-jobs-strand-gpus", Warning, Check, "a partition of nodes with GPUs and nodes without";
    SLURM_GRES_DECREASE = "slurm/gres-decrease", Warning, Plan, "fewer GPUs or GPU instances on nodes that stay";
    SLURM_LIMITS_NOT_ENFORCED = "slurm/limits-not-enforced", Warning, Check, "quotas and tiers in a Slurm cluster without a database";
    SLURM_REQUEUE = "slurm/requeue", Warning, Check, "preempted training that begins again from nothing";
    SLURM_JOB_ABOVE_QOS = "slurm/job-above-qos", Error, Check, "a job that each QOS of its team is too small for";
    SLURM_TIER_HOLDS_GUARANTEE = "slurm/tier-holds-guarantee", Warning, Check, "a partition lets jobs that do not give way onto guaranteed GPUs";
}

#[cfg(test)]
mod tests {
    use super::rules::ALL;

    #[test]
    fn names_are_unique_and_have_a_family() {
        let mut names: Vec<&str> = ALL.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(ALL.iter().all(|rule| rule.name.split('/').count() == 2));
        assert!(ALL.iter().all(|rule| !rule.family().is_empty()));
    }

    #[test]
    #[cfg(feature = "pages")]
    fn each_page_starts_with_its_rule_and_shows_a_bad_and_a_good_spec() {
        for rule in ALL {
            assert!(rule.page.starts_with(&format!("# {}\n", rule.name)), "{}", rule.name);
            assert!(rule.page.contains("```kdl fail"), "{}", rule.name);
            assert!(rule.page.contains("```kdl ok"), "{}", rule.name);
        }
    }
}
