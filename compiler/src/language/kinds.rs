//! The table of kinds. Each `kind!` is one row: the word, what follows it, its fields with their
//! types and documentation. The struct, its decoder and the row of the table come from it.

use fleetc_schema::diag::Span;
use fleetc_schema::intent::{
    AutoDetect, Distribution, DriverOwner, ExporterKind, GpuIndexes, Isolation, MigStrategy, Queue,
    WorkloadKind,
};
use fleetc_schema::mig::MigProfile;
use fleetc_schema::name::{
    ClusterName, FleetName, NamespaceName, PartitionName, PolicyName, PoolName, RackName,
    SystemName, TeamName, WorkloadName,
};
use fleetc_schema::units::{Bytes, Date, Seconds, Watts};
use fleetc_schema::version::{Version, VersionReq};
use fleetc_schema::{Hostlist, ItemPath};

use super::values::Count;
use super::{Arg, At, Cx, Field, Form, Kind, Occurs, Reference, ValueType};
use crate::syntax::Node;

/// Declares a kind: its struct, its row of the table and its decoder.
macro_rules! kind {
    (
        $(#[doc = $doc:literal])+
        $name:ident = $word:literal $argform:ident $(($arg:ty))? $(key [$($key:literal),+])? {
            $($field:ident = $fkey:literal $form:ident $ty:ty, $occurs:ident, $fdoc:literal;)*
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub struct $name {
            /// What stands after the word.
            pub arg: kind!(@argty $argform $($arg)?),
            $(#[doc = $fdoc] pub $field: kind!(@ty $form $occurs $ty),)*
            /// Its path.
            pub path: ItemPath,
            /// Where its word and argument stand.
            pub span: Span,
        }

        impl $name {
            /// Its row of the table.
            pub fn kind() -> &'static Kind {
                static KIND: Kind = Kind {
                    name: $word,
                    doc: concat!($($doc),+),
                    arg: kind!(@arg $argform $($arg)?),
                    fields: &[$(Field {
                        key: $fkey,
                        form: kind!(@form $form $ty),
                        occurs: Occurs::$occurs,
                        doc: $fdoc,
                    }),*],
                    key: &[$($($key),+)?],
                };
                &KIND
            }

            pub(super) fn decode(node: &Node, path: ItemPath, cx: &mut Cx) -> Self {
                cx.check_words(node, Self::kind(), &path);
                Self {
                    arg: kind!(@readarg $argform cx, node, &path),
                    $($field: kind!(@read $form $occurs $ty, cx, node, $fkey, &path),)*
                    path,
                    span: node.head(),
                }
            }
        }
    };

    (@argty nothing) => { () };
    (@argty name $arg:ty) => { Option<At<$arg>> };
    (@argty value $arg:ty) => { Option<At<$arg>> };
    (@argty maybe $arg:ty) => { Option<At<$arg>> };

    (@arg nothing) => { Arg::Nothing };
    (@arg name $arg:ty) => { Arg::Name(&<$arg as ValueType>::TYPE) };
    (@arg value $arg:ty) => { Arg::Value { ty: &<$arg as ValueType>::TYPE, required: true } };
    (@arg maybe $arg:ty) => { Arg::Value { ty: &<$arg as ValueType>::TYPE, required: false } };

    (@readarg nothing $cx:ident, $node:ident, $path:expr) => { () };
    (@readarg $form:ident $cx:ident, $node:ident, $path:expr) => { $cx.arg($node, $path) };

    (@ty property $occurs:ident $ty:ty) => { Option<At<$ty>> };
    (@ty child $occurs:ident $ty:ty) => { Option<At<$ty>> };
    (@ty list $occurs:ident $ty:ty) => { Option<Vec<At<$ty>>> };
    (@ty kind Optional $ty:ty) => { Option<$ty> };
    (@ty kind Required $ty:ty) => { Option<$ty> };
    (@ty kind $occurs:ident $ty:ty) => { Vec<$ty> };

    (@form property $ty:ty) => { Form::Property(&<$ty as ValueType>::TYPE) };
    (@form child $ty:ty) => { Form::Value(&<$ty as ValueType>::TYPE) };
    (@form list $ty:ty) => { Form::List(&<$ty as ValueType>::TYPE) };
    (@form kind $ty:ty) => { Form::Kind(<$ty>::kind) };

    (@read property $occurs:ident $ty:ty, $cx:ident, $node:ident, $key:literal, $path:expr) => {
        $cx.property::<$ty>($node, $key, $path)
    };
    (@read child $occurs:ident $ty:ty, $cx:ident, $node:ident, $key:literal, $path:expr) => {
        $cx.single::<$ty>($node, $key, $path)
    };
    (@read list $occurs:ident $ty:ty, $cx:ident, $node:ident, $key:literal, $path:expr) => {
        $cx.list::<$ty>($node, $key, $path)
    };
    (@read kind Optional $ty:ty, $cx:ident, $node:ident, $key:literal, $path:expr) => {
        kind!(@all $ty, Optional, $cx, $node, $path).into_iter().next()
    };
    (@read kind Required $ty:ty, $cx:ident, $node:ident, $key:literal, $path:expr) => {
        kind!(@all $ty, Required, $cx, $node, $path).into_iter().next()
    };
    (@read kind $occurs:ident $ty:ty, $cx:ident, $node:ident, $key:literal, $path:expr) => {
        kind!(@all $ty, $occurs, $cx, $node, $path)
    };
    (@all $ty:ty, $occurs:ident, $cx:ident, $node:ident, $path:expr) => {{
        let children = $cx.children($node, <$ty>::kind(), Occurs::$occurs, $path);
        children.into_iter().map(|(child, path)| <$ty>::decode(child, path, $cx)).collect::<Vec<_>>()
    }};
}

type AnyCount = Count<0, { u32::MAX }>;
/// A whole number above 0.
pub type Positive = Count<1, { u32::MAX }>;

kind! {
    /// A spec: everything at the top of its files.
    Spec = "" nothing {
        fleets = "fleet" kind Fleet, Named, "The fleet itself; a spec has one.";
        clusters = "cluster" kind Cluster, Named, "Who schedules.";
        systems = "system" kind System, Named, "Hardware that the catalog has not, or has otherwise.";
        racks = "rack" kind Rack, Named, "Where nodes stand.";
        pools = "pool" kind Pool, Named, "Alike nodes, one sharing policy, one owner each.";
        policies = "node-policy" kind NodePolicy, Named, "What a good node is.";
        teams = "team" kind Team, Named, "Who uses GPUs, and what they are guaranteed.";
        workloads = "workload" kind Workload, Named, "Shapes that must fit.";
        monitoring = "monitoring" kind Monitoring, Optional, "What watches the fleet.";
    }
}

kind! {
    /// The fleet: its name, and what holds for all of it.
    Fleet = "fleet" name(FleetName) {
        as_of = "as-of" child Date, Optional, "The date that dates in the spec are compared with.";
        label_prefix = "label-prefix" child String, Optional, "Prefix of our node labels; `fleetc.dev` unless said.";
    }
}

kind! {
    /// A cluster: one scheduler that owns nodes, `slurm` or `kubernetes`.
    Cluster = "cluster" name(ClusterName) {
        slurm = "slurm" kind Slurm, Optional, "A Slurm cluster, with its version.";
        kubernetes = "kubernetes" kind Kubernetes, Optional, "A Kubernetes cluster, with its version.";
    }
}

kind! {
    /// A Slurm cluster; the value is its version.
    Slurm = "slurm" value(Version) {
        controllers = "controllers" list Hostlist, Required, "Hosts of slurmctld.";
        database = "database" child Hostlist, Optional, "Host of slurmdbd.";
        gres = "gres" kind GresDetection, Required, "How slurmd finds its GPUs.";
        driver = "driver" kind Driver, Required, "The NVIDIA driver of the nodes.";
        partitions = "partition" kind Partition, Named, "Partitions.";
    }
}

kind! {
    /// How slurmd finds its GPUs.
    GresDetection = "gres" nothing {
        autodetect = "autodetect" property AutoDetect, Required, "`AutoDetect` of gres.conf: what this Slurm build has.";
    }
}

kind! {
    /// The NVIDIA driver; the value is its version.
    Driver = "driver" value(Version) {
        owner = "owner" property DriverOwner, Required, "Who installs it: `os` or `operator`.";
    }
}

kind! {
    /// A Slurm partition.
    Partition = "partition" name(PartitionName) {
        pools = "pools" list Reference, Required, "Pools whose nodes it holds.";
        max_time = "max-time" child Seconds, Optional, "The longest that a job may run.";
        default_time = "default-time" child Seconds, Optional, "How long a job may run that does not say.";
        default = "default" child bool, Optional, "True for the partition of jobs that name none.";
    }
}

kind! {
    /// A Kubernetes cluster; the value is its version.
    Kubernetes = "kubernetes" value(Version) {
        distribution = "distribution" child Distribution, Required, "Whose Kubernetes it is.";
        gpu_operator = "gpu-operator" kind GpuOperator, Optional, "The NVIDIA GPU Operator, with its version.";
        driver = "driver" kind Driver, Required, "The NVIDIA driver of the nodes.";
        queue = "queue" child Queue, Required, "What queues jobs.";
    }
}

kind! {
    /// The NVIDIA GPU Operator; the value is its version.
    GpuOperator = "gpu-operator" value(Version) {
        namespace = "namespace" property NamespaceName, Required, "Its namespace.";
    }
}

kind! {
    /// A system of the fleet's own: a server or tray that the catalog has not, or has otherwise.
    System = "system" name(SystemName) {
        extends = "extends" property Reference, Required, "The system of the catalog that it is like.";
        cpu = "cpu" kind Cpu, Optional, "Its processors.";
        memory = "memory" child Bytes, Optional, "Its memory.";
    }
}

kind! {
    /// The processors of a system.
    Cpu = "cpu" nothing {
        sockets = "sockets" property Count<1, 16>, Required, "Sockets.";
        cores = "cores" property Count<1, 4096>, Required, "Cores of all sockets.";
        threads = "threads" property Count<1, 8192>, Required, "Hardware threads of all cores.";
    }
}

kind! {
    /// A rack.
    Rack = "rack" name(RackName) {
        nodes = "nodes" property Hostlist, Required, "Nodes that stand in it.";
    }
}

kind! {
    /// A pool: alike nodes. It has one owner (`cluster`) or is split among several (`split`).
    Pool = "pool" name(PoolName) {
        cluster = "cluster" child Reference, Optional, "The cluster that owns its nodes.";
        system = "system" child Reference, Required, "Its hardware: a system of the catalog or of the fleet.";
        nodes = "nodes" child Hostlist, Required, "Its nodes.";
        split = "split" kind Split, Optional, "Owners of its nodes, if there are several.";
        sharing = "sharing" kind Sharing, Required, "How its GPUs are shared.";
        exceptions = "exception" kind Exception, Listed, "Nodes that differ.";
        max_unavailable = "max-unavailable" child Positive, Optional, "How many nodes may be out of service at once.";
    }
}

kind! {
    /// The owners of a pool that is split: every node has exactly one at a time.
    Split = "split" nothing {
        parts = "cluster" kind Part, Named, "An owner and its nodes.";
    }
}

kind! {
    /// One owner of a split pool.
    Part = "cluster" name(Reference) {
        nodes = "nodes" property Hostlist, Required, "The nodes that it owns.";
    }
}

kind! {
    /// How the GPUs of a pool are shared: `whole`, `mig`, `mps` or `time-slicing`.
    Sharing = "sharing" value(SharingMode) {
        strategy = "strategy" property MigStrategy, Optional, "With `mig`: how the device plugin names instances.";
        replicas = "replicas" property Count<2, 1024>, Optional, "With `mps` and `time-slicing`: clients of a GPU.";
        gpus = "gpus" kind Gpus, Named, "With `mig`: the layout of some GPUs. Every GPU of a node needs one.";
    }
}

kind! {
    /// The MIG layout of some GPUs of a node, by number.
    Gpus = "gpus" name(GpuIndexes) {
        slices = "slice" kind SliceCount, Named, "Instances of a profile.";
    }
}

kind! {
    /// Instances of one MIG profile on a GPU.
    SliceCount = "slice" name(MigProfile) {
        count = "count" property Count<1, 64>, Required, "How many.";
    }
}

kind! {
    /// Nodes of a pool that differ from it.
    Exception = "exception" nothing key ["node"] {
        node = "node" property Hostlist, Required, "The nodes.";
        missing = "missing" list Count<0, 63>, Required, "Numbers of the GPUs that are gone.";
        reason = "reason" child String, Optional, "Why.";
    }
}

kind! {
    /// What a good node is. Without `pools` it holds for every pool that no other policy names.
    NodePolicy = "node-policy" name(PolicyName) {
        pools = "pools" list Reference, Optional, "Pools that it holds for.";
        driver = "driver" child VersionReq, Optional, "Condition on the driver.";
        ecc = "ecc" child bool, Optional, "ECC mode.";
        persistence = "persistence" child bool, Optional, "Persistence mode.";
        power_limit = "power-limit" child Watts, Optional, "Power limit of a GPU.";
        pcie = "pcie" kind PciePolicy, Optional, "PCIe link of a GPU.";
        nvlink = "nvlink" kind NvlinkPolicy, Optional, "NVLinks of a GPU.";
    }
}

kind! {
    /// The PCIe link of a GPU.
    PciePolicy = "pcie" nothing {
        gen_ = "gen" property Count<1, 7>, Optional, "Generation.";
        width = "width" property Count<1, 32>, Optional, "Lanes.";
    }
}

kind! {
    /// The NVLinks of a GPU.
    NvlinkPolicy = "nvlink" nothing {
        active = "active" property Count<0, 64>, Required, "Links that are active.";
    }
}

kind! {
    /// A team.
    Team = "team" name(TeamName) {
        namespace = "namespace" child NamespaceName, Optional, "Its Kubernetes namespace; its own name unless said.";
        quotas = "quota" kind Quota, Listed, "What it is guaranteed in a pool.";
    }
}

kind! {
    /// What a team is guaranteed in a pool; the value is the pool.
    Quota = "quota" value(Reference) key ["is", "cluster", "slice"] {
        cluster = "cluster" property Reference, Optional, "On a split pool: the part that is meant.";
        slice = "slice" property MigProfile, Optional, "On a pool of slices: the profile that is counted.";
        guaranteed = "guaranteed" property AnyCount, Required, "How many it always gets.";
        limit = "limit" property AnyCount, Optional, "How many it may use at most.";
    }
}

kind! {
    /// A workload: a shape that must fit where it is to run.
    Workload = "workload" name(WorkloadName) {
        team = "team" child Reference, Required, "Whose it is.";
        pool = "pool" child Reference, Required, "Where it runs.";
        cluster = "cluster" child Reference, Optional, "On a split pool: the part that is meant.";
        slice = "slice" child MigProfile, Optional, "The slice that it asks for.";
        kind_ = "kind" child WorkloadKind, Required, "What it is.";
        gpus = "gpus" kind GpuCount, Optional, "GPUs of a job, or of a replica of a service; 1 unless said.";
        replicas = "replicas" kind Replicas, Optional, "How many alike run at once; 1 unless said.";
        memory = "memory" child Bytes, Optional, "Peak memory of a GPU or slice.";
        isolation = "isolation" child Isolation, Optional, "What it accepts from its neighbours.";
    }
}

kind! {
    /// GPUs of a job or replica; the value is how many.
    GpuCount = "gpus" value(Positive) {
        parallel = "parallel" kind Parallel, Optional, "How the job is spread over them.";
    }
}

kind! {
    /// Degrees of parallelism; what is not said is 1.
    Parallel = "parallel" nothing {
        tensor = "tensor" property Positive, Optional, "Tensor parallel degree.";
        pipeline = "pipeline" property Positive, Optional, "Pipeline parallel degree.";
        context = "context" property Positive, Optional, "Context parallel degree.";
        data = "data" property Positive, Optional, "Data parallel degree.";
    }
}

kind! {
    /// How many alike run at once: a value, or `min` and `max`.
    Replicas = "replicas" maybe(Positive) {
        min = "min" property Positive, Optional, "The least.";
        max = "max" property Positive, Optional, "The most.";
    }
}

kind! {
    /// What watches the fleet.
    Monitoring = "monitoring" nothing {
        exporter = "exporter" kind Exporter, Required, "What exports GPU metrics.";
    }
}

kind! {
    /// What exports GPU metrics; the value is the program.
    Exporter = "exporter" value(ExporterKind) {
        version = "version" property Version, Required, "Its version, which decides how metrics are called.";
    }
}

/// How the GPUs of a pool are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharingMode {
    /// A GPU goes to one job.
    Whole,
    /// GPUs are cut into GPU instances.
    Mig,
    /// Through MPS.
    Mps,
    /// Clients take turns.
    TimeSlicing,
}

impl SharingMode {
    /// Every word, in the order of the documentation.
    pub const WORDS: &'static [&'static str] = &["whole", "mig", "mps", "time-slicing"];

    /// The mode of a word, if it is one.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "whole" => Some(Self::Whole),
            "mig" => Some(Self::Mig),
            "mps" => Some(Self::Mps),
            "time-slicing" => Some(Self::TimeSlicing),
            _ => None,
        }
    }
}
