//! The table of kinds. Each `kind!` is one row: the word, what follows it, its fields with their
//! types and documentation. The struct, its decoder and the row of the table come from it.

use fleetc_schema::catalog::Architecture;
use fleetc_schema::diag::Span;
use fleetc_schema::intent::{
    AlertClass, AutoDetect, CapacityModel, CheckLevel, Devices, Distribution, DriverOwner, Dtype,
    ElasticPlacement, ExporterKind, FabricKind, GitOpsTool, GpuIndexes, HugePageSize, Isolation,
    MigStrategy, NodeCheck, PreemptBy, PreemptMode, QueueKind, Readiness, StandardAlert,
    TaintEffect, TopologyLevel, TopologyPlugin, WorkloadKind,
};
use fleetc_schema::mig::MigProfile;
use fleetc_schema::name::{
    ClusterName, FabricName, FileSystem, FleetName, GpuName, MountPoint, NamespaceName,
    PartitionName, PolicyName, PoolName, ReceiverName, SiteName, SystemName, TeamName, TierName,
    WorkloadName,
};
use fleetc_schema::units::{
    Bytes, BytesPerSec, Date, GbitPerSec, GpuHourPrice, Milliseconds, Parameters, Ratio, Seconds,
    Watts,
};
use fleetc_schema::version::{Version, VersionReq};
use fleetc_schema::{Hostlist, ItemPath};

use super::values::{Count, GpuTotal};
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
                    unique: kind!(@unique $argform),
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

    (@unique unique) => { true };
    (@unique $argform:ident) => { false };

    (@argty nothing) => { () };
    (@argty name $arg:ty) => { Option<At<$arg>> };
    (@argty unique $arg:ty) => { Option<At<$arg>> };
    (@argty value $arg:ty) => { Option<At<$arg>> };
    (@argty listing $arg:ty) => { (Option<At<String>>, Vec<At<$arg>>) };
    (@argty maybe $arg:ty) => { Option<At<$arg>> };

    (@arg nothing) => { Arg::Nothing };
    (@arg name $arg:ty) => { Arg::Name(&<$arg as ValueType>::TYPE) };
    (@arg listing $arg:ty) => { Arg::NameAndValues(&<$arg as ValueType>::TYPE) };
    (@arg unique $arg:ty) => { Arg::Name(&<$arg as ValueType>::TYPE) };
    (@arg value $arg:ty) => { Arg::Value { ty: &<$arg as ValueType>::TYPE, required: true } };
    (@arg maybe $arg:ty) => { Arg::Value { ty: &<$arg as ValueType>::TYPE, required: false } };

    (@readarg nothing $cx:ident, $node:ident, $path:expr) => { () };
    (@readarg listing $cx:ident, $node:ident, $path:expr) => {
        ($cx.arg($node, $path), $cx.rest($node, $path))
    };
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
        include = "include" list String, Optional, "Files that are part of the spec, relative to this one.";
        inventory = "inventory" list String, Optional, "Files that say of each node its pool, rack, switches or PCI addresses: CSV or JSON Lines.";
        remove = "remove" kind Remove, Named, "Items of the base that this fleet has not: a kind, then names.";
        fleets = "fleet" kind Fleet, Named, "The fleet itself; a spec has one.";
        sites = "site" kind Site, Named, "Where racks stand.";
        clusters = "cluster" kind Cluster, Named, "Who schedules.";
        gpus = "gpu" kind Gpu, Named, "GPU products that the catalog has not, or has otherwise.";
        systems = "system" kind System, Named, "Hardware that the catalog has not, or has otherwise.";
        fabrics = "fabric" kind Fabric, Named, "Networks: switches, and nodes on them.";
        racks = "rack" kind Rack, Named, "Where nodes stand.";
        pools = "pool" kind Pool, Named, "Alike nodes, one sharing policy, one owner each.";
        policies = "node-policy" kind NodePolicy, Named, "What a good node is.";
        tiers = "tier" kind Tier, Named, "How urgent workloads are.";
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
        include = "include" list String, Optional, "Files that are part of the spec, relative to this one.";
        inventory = "inventory" list String, Optional, "Files that say of each node its pool, rack, switches or PCI addresses: CSV or JSON Lines.";
        extends = "extends" child String, Optional, "The fleet beneath this one: a file, or a folder with `fleet.kdl` or `fleet.yaml`.";
        allows = "allow" kind Allow, Listed, "Warnings that are accepted, each with its reason.";
    }
}

kind! {
    /// Items of the base that this fleet has not: their kind, then their names.
    Remove = "remove" listing(String) {}
}

kind! {
    /// A warning that is accepted here and below; the value is the rule.
    Allow = "allow" value(String) key ["is", "at"] {
        at = "at" property String, Optional, "The item that it is accepted on, if not the one that it stands in.";
        reason = "reason" property String, Optional, "Why; an `allow` without a reason is refused.";
    }
}

kind! {
    /// A site: a place where racks stand.
    Site = "site" name(SiteName) {
        region = "region" child String, Optional, "The region that it is in.";
    }
}

kind! {
    /// A cluster: one scheduler that owns nodes, `slurm` or `kubernetes`.
    Cluster = "cluster" name(ClusterName) {
        allows = "allow" kind Allow, Listed, "Warnings that are accepted, each with its reason.";
        slurm = "slurm" kind Slurm, Optional, "A Slurm cluster, with its version.";
        kubernetes = "kubernetes" kind Kubernetes, Optional, "A Kubernetes cluster, with its version.";
    }
}

kind! {
    /// A Slurm cluster; the value is its version.
    Slurm = "slurm" value(Version) {
        controllers = "controllers" list Hostlist, Required, "Hosts of slurmctld.";
        hosted_by = "hosted-by" property Reference, Optional, "The Kubernetes cluster that its daemons run in.";
        database = "database" child Hostlist, Optional, "Host of slurmdbd.";
        login = "login" list Hostlist, Optional, "Hosts where people log in.";
        gres = "gres" kind GresDetection, Required, "How slurmd finds its GPUs.";
        driver = "driver" kind Driver, Required, "The NVIDIA driver of the nodes.";
        preempt = "preempt" kind Preempt, Optional, "Whether running jobs make room; the value is what decides.";
        power_saving = "power-saving" kind PowerSaving, Optional, "How elastic nodes come and go.";
        health_check = "health-check" kind HealthCheck, Optional, "Whether nodes judge themselves and drain if they do not conform.";
        topology = "topology" kind SlurmTopology, Optional, "What slurmctld knows of the topology; a tree of the fabrics, or racks, unless said.";
        extra = "extra" kind Extra, Named, "Lines that the site adds to a file.";
        partitions = "partition" kind Partition, Named, "Partitions.";
    }
}

kind! {
    /// Running jobs make room for others; the value is what decides: `qos` or `partition`.
    Preempt = "preempt" value(PreemptBy) {
        mode = "mode" property PreemptMode, Required, "What happens to a job that gives way.";
    }
}

kind! {
    /// What slurmctld knows of the topology; the value is how it sees it: `tree` (switches) or
    /// `block` (NVLink domains, or racks where there are none).
    SlurmTopology = "topology" value(TopologyPlugin) {
        fabric = "fabric" property Reference, Optional, "With `tree`: the fabric whose switches are meant; each node's first unless said.";
        block_sizes = "block-sizes" list Positive, Optional, "With `block`: `BlockSizes` in nodes, the base size first.";
    }
}

kind! {
    /// How elastic nodes come and go.
    PowerSaving = "power-saving" nothing {
        resume = "resume" property String, Required, "The program that brings nodes.";
        suspend = "suspend" property String, Required, "The program that takes them away.";
        idle = "idle" property Seconds, Required, "How long a node is idle before it goes.";
    }
}

kind! {
    /// Nodes judge themselves: `fleetc-validate` as `HealthCheckProgram`, which drains a node that does
    /// not conform and gives it back once it does.
    HealthCheck = "health-check" nothing {
        interval = "interval" property Seconds, Required, "How often slurmd runs it: more than 60 s, which it may take.";
        max_drained = "max-drained" property Positive, Required, "Drain no node while so many are drained by it.";
    }
}

kind! {
    /// Lines that the site adds to a file of Slurm: the file, then the lines.
    Extra = "extra" listing(String) {}
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
        tiers = "tiers" list Reference, Optional, "Tiers whose jobs it takes; all unless said.";
    }
}

kind! {
    /// A Kubernetes cluster; the value is its version.
    Kubernetes = "kubernetes" value(Version) {
        distribution = "distribution" child Distribution, Required, "Whose Kubernetes it is.";
        gpu_operator = "gpu-operator" kind GpuOperator, Optional, "The NVIDIA GPU Operator, with its version.";
        driver = "driver" kind Driver, Required, "The NVIDIA driver of the nodes.";
        dra_driver = "dra-driver" child Version, Optional, "The NVIDIA driver of Dynamic Resource Allocation.";
        queue = "queue" kind Queue, Required, "What queues jobs.";
        gitops = "gitops" kind GitOps, Optional, "What applies the output: `argocd` or `flux`.";
        validator = "validator" kind Validator, Optional, "Whether nodes judge themselves and report it as a condition.";
    }
}

kind! {
    /// Nodes judge themselves: `fleetc-validate` as a DaemonSet, which sets the condition
    /// `fleetc.dev/GPUConforms` of a node.
    Validator = "validator" nothing {
        image = "image" property String, Required, "An image of yours with `fleetc-validate`, `kubectl` and a shell.";
        interval = "interval" property Seconds, Required, "How often each node judges itself.";
        readiness = "readiness" property Readiness, Optional, "When a NodeReadinessRule taints nodes `readiness.k8s.io/gpu-unproven:NoSchedule`: until they conformed once, or `continuous`: whenever they are not known to. Its controller and CRD are yours.";
    }
}

kind! {
    /// What applies the output: `argocd` or `flux`, and where it finds it.
    GitOps = "gitops" value(GitOpsTool) {
        repo = "repo" property String, Optional, "URL of the Git repository that the output stands in.";
        branch = "branch" property String, Optional, "The branch that is applied; needed with `repo`.";
        folder = "path" property String, Optional, "The folder of the output in the repository; its root unless said.";
    }
}

kind! {
    /// What queues jobs: `none`, `kueue`, `kai` or `volcano`.
    Queue = "queue" value(QueueKind) {
        version = "version" property Version, Optional, "Its version; needed unless nothing queues.";
        levels = "level" kind Level, Named, "Levels of the topology that jobs are placed by, coarsest first.";
    }
}

kind! {
    /// A level of the topology: `site`, `leaf`, `rack`, `nvlink-domain` or `host`.
    Level = "level" name(TopologyLevel) {
        label = "label" property String, Optional, "The node label that carries it, where something else sets it; ours unless said.";
    }
}

kind! {
    /// The NVIDIA GPU Operator; the value is its version.
    GpuOperator = "gpu-operator" value(Version) {
        namespace = "namespace" property NamespaceName, Required, "Its namespace.";
    }
}

kind! {
    /// A GPU product of the fleet's own: one that the catalog has not, or has otherwise.
    Gpu = "gpu" name(GpuName) {
        extends = "extends" property Reference, Optional, "The product that it is like; without one, all of the words below are needed.";
        architecture = "architecture" child Architecture, Optional, "Its architecture.";
        nvml_name = "nvml-name" child String, Optional, "The name that NVML reports.";
        memory = "memory" child Bytes, Optional, "The memory that NVML reports.";
        device_ids = "pci-device-ids" list String, Optional, "PCI device ids, such as `0x2330`.";
        gres_type = "gres-type" child String, Optional, "The type in Slurm's GRES; sticks once deployed.";
        mig = "mig" child bool, Optional, "Whether it has MIG.";
        mig_table = "mig-table" kind OwnMigTable, Optional, "How it can be cut, as `nvidia-smi mig -lgip` and `-lgipp` print it.";
        nvlink = "nvlink" child bool, Optional, "Whether NVLink can join it to others: a system says how many with `nvlink-domain`.";
    }
}

kind! {
    /// The GPU instances that a GPU of the fleet's own can be cut into.
    OwnMigTable = "mig-table" nothing {
        memory_slices = "memory-slices" property Count<1, 16>, Required, "Memory slices of the GPU.";
        compute_slices = "compute-slices" property Count<1, 16>, Required, "Compute slices of the GPU.";
        profiles = "profile" kind OwnProfile, Named, "A profile of GPU instances.";
    }
}

kind! {
    /// A profile of GPU instances; the value is its name.
    OwnProfile = "profile" name(MigProfile) {
        id = "id" property Count<0, 1023>, Required, "Its id, which the driver takes.";
        memory_slices = "memory-slices" property Count<1, 16>, Required, "Memory slices of an instance.";
        count = "count" property Count<1, 16>, Optional, "How many fit at most, if fewer than their starts allow.";
        memory = "memory" property Bytes, Optional, "Memory of an instance.";
        starts = "starts" list Count<0, 15>, Required, "Memory slices at which an instance may start.";
    }
}

kind! {
    /// A system of the fleet's own: a server or tray that the catalog has not, or has otherwise.
    System = "system" name(SystemName) {
        extends = "extends" property Reference, Optional, "The system of the catalog that it is like.";
        gpus = "gpus" kind SystemGpus, Optional, "Its GPUs; none unless said, or unless it extends a system that has some.";
        cpu = "cpu" kind Cpu, Optional, "Its processors.";
        memory = "memory" child Bytes, Optional, "Its memory.";
        power = "power" child Watts, Optional, "The power of the whole node.";
        nvlink_domain = "nvlink-domain" child Count<1, 1024>, Optional, "GPUs that NVLink joins: 1 for none, 2 for bridged pairs.";
    }
}

kind! {
    /// The GPUs of a system; the value is the product.
    SystemGpus = "gpus" value(Reference) {
        count = "count" property Count<1, 64>, Required, "How many.";
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
    /// A network fabric.
    Fabric = "fabric" name(FabricName) {
        kind_ = "kind" property FabricKind, Required, "What it is made of.";
        rate = "rate" property GbitPerSec, Optional, "Rate of a node's port.";
        switches = "switch" kind Switch, Named, "Switches that are alike.";
        attachments = "attach" kind Attach, Listed, "Nodes on switches.";
        allows = "allow" kind Allow, Listed, "Warnings that are accepted, each with its reason.";
    }
}

kind! {
    /// Switches that are alike; the name is a hostlist.
    Switch = "switch" name(Hostlist) {
        uplinks = "uplinks" property Hostlist, Optional, "Switches above each of them.";
    }
}

kind! {
    /// Nodes on switches; the value is the switches.
    Attach = "attach" value(Hostlist) key ["is", "nodes"] {
        nodes = "nodes" property Hostlist, Required, "The nodes.";
        rails = "rails" property Count<2, 64>, Optional, "Ports of a node, one to each of so many switches.";
    }
}

kind! {
    /// A rack, or several that are alike: the name is a hostlist, and nodes are dealt out in order.
    Rack = "rack" name(Hostlist) {
        nodes = "nodes" property Hostlist, Optional, "Nodes that stand in it, unless an inventory says so.";
        system = "system" property Reference, Optional, "The rack product, if it is one.";
        power = "power" property Watts, Optional, "The power that it may draw.";
        site = "site" property Reference, Optional, "The site that it stands at.";
        partitions = "partitions" property Count<2, 64>, Optional, "Partitions that the NVLink switches of a rack product are cut into.";
        allows = "allow" kind Allow, Listed, "Warnings that are accepted, each with its reason.";
    }
}

kind! {
    /// A pool: alike nodes. It has one owner (`cluster`) or is split among several (`split`).
    Pool = "pool" name(PoolName) {
        cluster = "cluster" child Reference, Optional, "The cluster that owns its nodes.";
        system = "system" child Reference, Required, "Its hardware: a system of the catalog or of the fleet.";
        nodes = "nodes" child Hostlist, Optional, "Its nodes, unless an inventory says so.";
        count = "count" child Count<1, 9999>, Optional, "How many nodes there may be, instead of `nodes`: they come and go.";
        devices = "devices" child Devices, Optional, "Who advertises the GPUs under Kubernetes; `device-plugin` unless said.";
        capacity = "capacity" kind Capacity, Optional, "How the hardware is paid for.";
        placement = "placement" child ElasticPlacement, Optional, "With `count`: how close the nodes are asked for.";
        features = "features" list String, Optional, "`Features` of its Slurm nodes.";
        weight = "weight" child Positive, Optional, "`Weight` of its Slurm nodes: the lowest goes first.";
        taints = "taint" kind Taint, Named, "Taints of its Kubernetes nodes: what keeps pods away that do not tolerate them.";
        driver = "driver" child Version, Optional, "The NVIDIA driver, if it is another than the cluster's.";
        gpu_reset = "gpu-reset" child bool, Optional, "False where a GPU cannot be reset, as in a VM with passthrough.";
        allows = "allow" kind Allow, Listed, "Warnings that are accepted, each with its reason.";
        split = "split" kind Split, Optional, "Owners of its nodes, if there are several.";
        sharing = "sharing" kind Sharing, Optional, "How its GPUs are shared; `whole` unless said.";
        exceptions = "exception" kind Exception, Listed, "Nodes that differ.";
        max_unavailable = "max-unavailable" child Positive, Optional, "How many nodes may be out of service at once.";
    }
}

kind! {
    /// A taint of the Kubernetes nodes of a pool; the name is its key.
    Taint = "taint" name(String) {
        value = "value" property String, Optional, "Its value.";
        effect = "effect" property TaintEffect, Required, "What it does to pods that do not tolerate it.";
    }
}

kind! {
    /// How the hardware of a pool is paid for; the value is the model.
    Capacity = "capacity" value(CapacityModel) {
        provider = "provider" property String, Optional, "Whose it is.";
        region = "region" property String, Optional, "Where it is.";
        price = "price" property GpuHourPrice, Optional, "What it costs.";
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
        replicas = "replicas" property Count<0, 1024>, Optional, "With `mps` and `time-slicing`: clients of a GPU.";
        rename = "rename" property bool, Optional, "With `mps` and `time-slicing`: false to advertise shares under the name of a GPU.";
        team = "team" property Reference, Optional, "With `mps` and `time-slicing`: the one team that may use the pool.";
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
        mounts = "mount" kind MountPolicy, Named, "File systems that are mounted.";
        hugepages = "hugepages" kind HugePagesPolicy, Named, "Huge pages of the kernel.";
        checks = "check" kind CheckSeverity, Named, "Checks that matter more or less than usual.";
        allows = "allow" kind Allow, Listed, "Warnings that are accepted, each with its reason.";
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
    /// A file system that is mounted, such as the scratch disks of a node.
    MountPolicy = "mount" name(MountPoint) {
        type_ = "type" property FileSystem, Optional, "Its type; any will do unless said.";
    }
}

kind! {
    /// Huge pages of one size, set aside by the kernel.
    HugePagesPolicy = "hugepages" name(HugePageSize) {
        count = "count" property Positive, Required, "How many there are at least.";
    }
}

kind! {
    /// How much a check of the validator matters; `docs/checks.md` lists them.
    CheckSeverity = "check" name(NodeCheck) {
        severity = "severity" property CheckLevel, Required, "`block`: no work on a node that fails it; `warn`; `info`.";
    }
}

kind! {
    /// A tier.
    Tier = "tier" name(TierName) {
        priority = "priority" property AnyCount, Required, "A higher one goes first.";
        preemptible = "preemptible" property bool, Optional, "True if its jobs may be stopped for others.";
        max_gpus_per_job = "max-gpus-per-job" child Positive, Optional, "GPUs that a job may have at most.";
        max_time = "max-time" child Seconds, Optional, "How long a job may run at most.";
        idle_after = "idle-after" child Seconds, Optional, "How long a job may hold GPUs without using them.";
        allows = "allow" kind Allow, Listed, "Warnings that are accepted, each with its reason.";
    }
}

kind! {
    /// A team. Its name is its own in the whole fleet, also if it is part of another.
    Team = "team" unique(TeamName) {
        namespace = "namespace" child NamespaceName, Optional, "Its Kubernetes namespace; its own name unless said.";
        account = "account" child String, Optional, "Its Slurm account; its own name unless said.";
        contact = "contact" kind Contact, Optional, "Where it can be reached.";
        weight = "weight" child Positive, Optional, "Its share of what is idle, against its neighbours.";
        teams = "team" kind Team, Named, "Teams that are part of it, within its guarantee.";
        allows = "allow" kind Allow, Listed, "Warnings that are accepted, each with its reason.";
        quotas = "quota" kind Quota, Listed, "What it is guaranteed in a pool.";
    }
}

kind! {
    /// Where a team can be reached.
    Contact = "contact" nothing {
        slack = "slack" property String, Optional, "Slack channel.";
        email = "email" property String, Optional, "Mail address.";
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
        tier = "tier" child Reference, Optional, "How urgent it is.";
        model = "model" kind Model, Optional, "The model that it holds, from which memory is derived.";
        host = "host" kind HostDemand, Optional, "What it needs of the host, for each GPU or slice.";
        data = "data" kind Data, Optional, "What it reads, for each GPU or slice.";
        slo = "slo" kind Slo, Optional, "What it promises its users.";
        gang = "gang" kind Gang, Optional, "Set if all its pods or tasks must start together.";
        network = "network" child Reference, Optional, "The fabric that it talks over.";
        checkpoint = "checkpoint" kind Checkpoint, Optional, "How it saves its state.";
        allows = "allow" kind Allow, Listed, "Warnings that are accepted, each with its reason.";
        gpus = "gpus" kind GpuCount, Optional, "GPUs of a job, or of a replica of a service; 1 unless said.";
        replicas = "replicas" kind Replicas, Optional, "How many alike run at once; 1 unless said.";
        memory = "memory" child Bytes, Optional, "Peak memory of a GPU or slice.";
        isolation = "isolation" child Isolation, Optional, "What it accepts from its neighbours.";
    }
}

kind! {
    /// GPUs of a job or replica; the value is how many.
    GpuCount = "gpus" value(GpuTotal) {
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
        expert = "expert" property Positive, Optional, "Expert parallel degree, which reuses data ranks.";
    }
}

kind! {
    /// The model of a workload.
    Model = "model" nothing {
        params = "params" property Parameters, Required, "Parameters.";
        active_params = "active-params" property Parameters, Optional, "Of a mixture of experts: parameters that a token uses.";
        dtype = "dtype" property Dtype, Required, "Number format of the weights.";
        cache_dtype = "cache-dtype" property Dtype, Optional, "Number format of the KV cache.";
        layers = "layers" property Positive, Optional, "Layers.";
        kv_heads = "kv-heads" property Positive, Optional, "Heads of keys and values.";
        head_dim = "head-dim" property Positive, Optional, "Dimension of a head.";
        context = "context" property Positive, Optional, "Tokens of a sequence.";
        concurrency = "concurrency" property Positive, Optional, "Sequences at once.";
    }
}

kind! {
    /// What a workload needs of the host.
    HostDemand = "host" nothing {
        cpu = "cpu" property Positive, Optional, "CPUs for each GPU or slice.";
        memory = "memory" property Bytes, Optional, "Memory for each GPU or slice.";
        shm = "shm" property Bytes, Optional, "`/dev/shm` of a pod.";
    }
}

kind! {
    /// The data that a workload reads.
    Data = "data" nothing {
        rate = "rate" property BytesPerSec, Required, "Bytes a second for each GPU or slice.";
    }
}

kind! {
    /// What a workload promises its users.
    Slo = "slo" nothing {
        p99 = "p99" property Milliseconds, Optional, "Latency that 99 of 100 requests stay under.";
        tokens_per_second = "tokens-per-second" property Positive, Optional, "Tokens a second of one sequence.";
    }
}

kind! {
    /// All pods or tasks start together.
    Gang = "gang" nothing {
        contiguous = "contiguous" property bool, Optional, "True if they must stand in one block of the topology.";
    }
}

kind! {
    /// How a workload saves its state.
    Checkpoint = "checkpoint" nothing {
        every = "every" property Seconds, Required, "Time between two.";
        takes = "takes" property Seconds, Optional, "Time that one takes.";
        sharded = "sharded" property bool, Optional, "True if each rank writes its own part.";
        tested = "tested" property Date, Optional, "When restoring was last tried.";
        on_notice = "on-notice" property bool, Optional, "True if the job depends on a save when it is told to stop.";
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
        slack = "slack" kind Slack, Optional, "The Slack workspace.";
        receivers = "receiver" kind Receiver, Named, "Who can be told.";
        routes = "route" kind Route, Listed, "Who is told what.";
        alerts = "alert" kind Alert, Named, "Changes to the standard alerts.";
        allows = "allow" kind Allow, Listed, "Warnings that are accepted, each with its reason.";
    }
}

kind! {
    /// The Slack workspace.
    Slack = "slack" nothing {
        url_file = "url-file" property String, Required, "File that holds the URL of the webhook.";
    }
}

kind! {
    /// Who can be told. Secrets are named by file, never written.
    Receiver = "receiver" name(ReceiverName) {
        pagerduty = "pagerduty" kind PagerDuty, Optional, "By PagerDuty.";
        slack = "slack" child String, Optional, "In a Slack channel.";
    }
}

kind! {
    /// Told by PagerDuty.
    PagerDuty = "pagerduty" nothing {
        key_file = "key-file" property String, Required, "File that holds the routing key.";
    }
}

kind! {
    /// Who is told about a class of alerts.
    Route = "route" nothing key ["class"] {
        class = "class" property AlertClass, Optional, "The class; every class without a route of its own unless said.";
        to = "to" property Reference, Required, "A receiver, or `owner`: the contact of the team whose workload it is.";
    }
}

kind! {
    /// A change to a standard alert.
    Alert = "alert" name(StandardAlert) {
        after = "after" property Seconds, Optional, "How long before it fires.";
        below = "below" property Ratio, Optional, "The value below which it fires.";
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
