//! The checks of the validator by name, so that a spec can name one.
//!
//! A name, once released, keeps its meaning. What each check reads, and how, is in the validator's table.

use serde::{Deserialize, Serialize};

macro_rules! checks {
    ($($id:ident $name:literal $what:literal;)+) => {
        /// A check of the validator. In the order of a report.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
        pub enum NodeCheck {
            $(#[doc = $what] #[serde(rename = $name)] $id,)+
        }

        impl NodeCheck {
            /// Every check, in the order of a report.
            pub const ALL: &'static [Self] = &[$(Self::$id),+];

            /// The names of all checks.
            pub const WORDS: &'static [&'static str] = &[$($name),+];

            /// Its name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$id => $name,)+ }
            }

            /// What it says of a good node, in one sentence.
            pub fn what(self) -> &'static str {
                match self { $(Self::$id => $what,)+ }
            }

            /// The check of this name, if there is one.
            pub fn of(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$id),)+ _ => None }
            }
        }

        impl std::fmt::Display for NodeCheck {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

checks! {
    NvmlHang "nvml.hang"
        "Every probe of NVML comes to its end.";
    DriverMatch "driver.match"
        "Driver, kernel module and NVML are of one version.";
    DriverPolicy "driver.policy"
        "The driver meets the `driver` condition of the node policy.";
    DriverVersion "driver.version"
        "The driver is the version that the cluster or the pool states.";
    GpuCount "gpu.count"
        "The class, PCI and NVML agree on how many GPUs there are.";
    GpuHandle "gpu.handle"
        "NVML gives a handle for every GPU that it counts.";
    GpuLost "gpu.lost"
        "No call of NVML says that the GPU is lost, or has to be reset.";
    GpuOnBus "gpu.on_bus"
        "The GPU answers on the bus.";
    GpuKernelDriver "gpu.kernel_driver"
        "NVIDIA's driver has the GPU.";
    GpuAddress "gpu.address"
        "The GPUs are at the PCI addresses that the inventory states.";
    GpuModel "gpu.model"
        "The GPU is the product that the spec says, with its memory.";
    GpuMinor "gpu.minor"
        "The minor number of the GPU is its index, by which DRA names its device.";
    GpuPlace "gpu.place"
        "The GPUs are in one tray of one chassis, each on a module of its own.";
    GpuNuma "gpu.numa"
        "The GPU is at the NUMA node where the system has it.";
    MigMode "mig.mode"
        "MIG mode is as the spec says, and will stay so.";
    MigLayout "mig.layout"
        "The GPU instances are those of the spec, at its placements.";
    MigCompute "mig.compute"
        "Each GPU instance has one compute instance, over all of it.";
    MigDevices "mig.devices"
        "CUDA sees a MIG device for each compute instance.";
    MigCaps "mig.caps"
        "Each MIG device has its capability, and under Slurm the device node of it.";
    EccMode "ecc.mode"
        "ECC mode is as the node policy says, and will stay so.";
    PersistenceMode "persistence.mode"
        "Persistence mode is as the node policy says.";
    ComputeMode "compute.mode"
        "The GPU takes work: its compute mode is not `Prohibited`.";
    PowerLimit "power.limit"
        "The power limit is that of the node policy.";
    PowerEnforced "power.enforced"
        "No other limiter holds the GPU below its power limit.";
    PcieWidth "pcie.width"
        "The PCIe link has the lanes that the node policy or the board says.";
    PcieGeneration "pcie.generation"
        "GPU and slot can do the PCIe generation that the node policy says.";
    PcieGenerationInUse "pcie.generation_in_use"
        "Under load the PCIe link runs at the generation that it can do.";
    PcieAlike "pcie.alike"
        "The GPUs of the node have links of the same width and generation.";
    PcieReplay "pcie.replay"
        "At most 8 packets a minute are sent again over PCIe, since the earlier snapshot.";
    NvlinkActive "nvlink.active"
        "The GPU has the active NVLinks that the node policy or the product says.";
    NvlinkPeers "nvlink.peers"
        "The GPU reaches over NVLink every GPU of its NVLink domain in the node.";
    NvlinkErrors "nvlink.errors"
        "Since the earlier snapshot no NVLink has replayed or recovered, and few flits were corrupt.";
    FabricState "fabric.state"
        "The GPU has completed its registration with the NVSwitch fabric.";
    FabricStatus "fabric.status"
        "The registration with the fabric was a success.";
    FabricHealth "fabric.health"
        "The fabric calls the GPU's place in it healthy.";
    FabricClique "fabric.clique"
        "All GPUs of the node are in one fabric and one clique.";
    FabricDomain "fabric.domain"
        "A GPU whose NVLink domain spans nodes knows its domain.";
    FabricManagerRuns "fabric_manager.runs"
        "The fabric manager runs where the node has NVSwitches, and only there.";
    FabricManagerVersion "fabric_manager.version"
        "The fabric manager is of the driver's version.";
    ImexRuns "imex.runs"
        "IMEX runs under Slurm on nodes whose NVLink domain spans several, and not beside the DRA driver.";
    ImexVersion "imex.version"
        "IMEX is of the driver's version.";
    RecoveryAction "recovery.action"
        "The driver asks for no recovery of the GPU.";
    RemapFailure "remap.failure"
        "No row of memory failed to be remapped.";
    RemapPending "remap.pending"
        "No row of memory waits for a reset to be remapped.";
    RemapSpare "remap.spare"
        "Every bank of memory has a spare row left.";
    RemapGrowth "remap.growth"
        "No more rows are remapped than in the earlier snapshot.";
    RetiredPending "retired.pending"
        "No page of memory waits for a reboot to be retired.";
    RetiredCount "retired.count"
        "Fewer than 60 pages of memory are retired.";
    EccUncorrected "ecc.uncorrected"
        "No memory error was left uncorrected since the driver was loaded.";
    EccGrowth "ecc.growth"
        "No more errors were left uncorrected than in the earlier snapshot.";
    EccRate "ecc.rate"
        "At most 10 memory errors a minute are corrected, since the earlier snapshot.";
    SramThreshold "sram.threshold"
        "Errors of the SRAM are below the threshold of an RMA.";
    RepairPending "repair.pending"
        "No repair of a memory channel or a TPC waits for a reset.";
    MemoryLeak "memory.leak"
        "An idle GPU has its memory free.";
    ThrottleHardware "throttle.hardware"
        "Neither heat nor power makes hardware slow the GPU down.";
    ThermalMargin "thermal.margin"
        "The GPU is colder than where its clocks fall.";
    FirmwareVbios "firmware.vbios"
        "The GPUs of the node have one VBIOS version.";
    FirmwareInforom "firmware.inforom"
        "The GPUs of the node have one InfoROM version.";
    FirmwareInforomValid "firmware.inforom_valid"
        "The checksum of the InfoROM holds.";
    FirmwareGsp "firmware.gsp"
        "The GSP runs firmware of the driver's version.";
    LogXid "log.xid"
        "The kernel log has no XID of hardware, fabric or driver that calls for an end of work.";
    LogDriver "log.driver"
        "The driver lost no GPU and started every one.";
    LogSwitch "log.switch"
        "No NVSwitch reported an error.";
    LogComplete "log.complete"
        "The kernel log reaches back to the boot.";
    ModulesNvidia "modules.nvidia"
        "The kernel module `nvidia` is loaded.";
    ModulesUvm "modules.uvm"
        "The kernel module `nvidia_uvm` is loaded: no CUDA program starts without it.";
    ModulesDrm "modules.drm"
        "The kernel module `nvidia_drm` does not stand in the way of a GPU reset that MIG needs.";
    DevicesGpu "devices.gpu"
        "`/dev/nvidiactl` and `/dev/nvidiaN` of each GPU are there, N being its minor number.";
    DevicesUvm "devices.uvm"
        "`/dev/nvidia-uvm` is there.";
    HostCpu "host.cpu"
        "The node has the sockets, cores and threads that the spec says.";
    HostMemory "host.memory"
        "The node has the memory that the spec says, less 5 % for firmware and kernel.";
    HostMount "host.mount"
        "The file systems of the node policy are mounted.";
    HostHugepages "host.hugepages"
        "The kernel has set aside the huge pages of the node policy.";
    NetworkPorts "network.ports"
        "As many ports are active, at the rate of the fabric, as the spec attaches.";
    NetworkPortsDown "network.ports_down"
        "No port of a fabric's kind is down beside those that the spec needs: one may be a rail.";
    NetworkFirmware "network.firmware"
        "Adapters of one board have one firmware version.";
    SlurmGres "slurm.gres"
        "slurmd finds the generic resources that the spec computes.";
    SlurmFiles "slurm.files"
        "Device files of Slurm's `gpu` are GPUs of this node.";
    KubernetesResources "kubernetes.resources"
        "The kubelet hands out the extended resources that the spec computes, and no other of NVIDIA's GPUs.";
    KubernetesLabels "kubernetes.labels"
        "Labels of NVIDIA's at the Kubernetes node are those that the spec computes.";
}
