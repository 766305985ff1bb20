//! The table of checks: by which reading each judges, how much it matters, and what is done.
//!
//! What a check says of a good node stands with its name in the schema, since a spec can name it.
//! `docs/checks.md` is made from both.

use std::fmt;

use fleetc_schema::intent::{CheckLevel, NodeCheck};

use super::outcome::Outcome;
use super::{Node, agents, driver, fabric, health, host, inventory, kernel_log, memory, mig};
use super::{modes, nvlink, pcie, place, probe};
use crate::report::Action;

/// A check, by name.
pub type CheckId = NodeCheck;

/// How much a check matters unless a policy says otherwise.
pub type Level = CheckLevel;

/// Every check, in the order of a report.
pub const CHECKS: &[CheckId] = NodeCheck::ALL;

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Check {
    /// How much it matters.
    pub level: Level,
    /// What is done as a rule when it fails.
    pub action: Action,
    /// Where the reading comes from.
    pub reads: &'static str,
    /// True if a node is turned away for it only after a second reading of the GPU, in a fresh process:
    /// for what flaps, or what tools were seen to disagree about.
    pub is_read_twice: bool,
    /// When it is expected that there is nothing to judge; empty if never.
    pub absent: &'static str,
    /// Runs it.
    pub(super) run: fn(&Node<'_>, &mut Outcome),
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.level, self.action.as_str())
    }
}

macro_rules! read_twice {
    (reads) => {
        false
    };
    (reads_twice) => {
        true
    };
}

macro_rules! table {
    ($($id:ident $level:ident $action:ident $run:path, $how:ident $reads:literal, absent $absent:literal;)+) => {
        /// The row of a check.
        pub fn row(check: CheckId) -> &'static Check {
            match check {
                $(CheckId::$id => &Check {
                    level: Level::$level,
                    action: Action::$action,
                    reads: $reads,
                    is_read_twice: read_twice!($how),
                    absent: $absent,
                    run: $run,
                },)+
            }
        }
    };
}

table! {
    NvmlHang Block Reboot probe::hangs,
        reads "how the probes ended; one that cannot be killed waits in the kernel",
        absent "";
    DriverMatch Block Reboot driver::versions_match,
        reads "`nvmlSystemGetDriverVersion`, `/proc/driver/nvidia/version`, `nvmlSystemGetNVMLVersion`",
        absent "on a node without GPUs";
    DriverPolicy Block Reconfigure driver::meets_policy,
        reads "`nvmlSystemGetDriverVersion`",
        absent "without such a condition, and on a node without GPUs";
    DriverVersion Warn Reconfigure driver::is_that_of_spec,
        reads "`nvmlSystemGetDriverVersion`",
        absent "on a node without GPUs";
    GpuCount Block Look inventory::count,
        reads "`/sys/bus/pci/devices`, `nvmlDeviceGetHandleByPciBusId_v2`, `nvmlGetExcludedDeviceInfoByIndex`",
        absent "PCI and NVML on a node without GPUs";
    GpuHandle Block Reboot inventory::handles,
        reads "`nvmlDeviceGetCount_v2`, the reason of each refusal",
        absent "on a node without GPUs";
    GpuLost Block Reboot probe::lost,
        reads_twice "the code that every call about the GPU returns: 15 lost, 16 reset required",
        absent "on a node without GPUs";
    GpuOnBus Block Reboot inventory::on_bus,
        reads "PCI configuration space: all ones if it has fallen off",
        absent "on a node without GPUs";
    GpuKernelDriver Block Reconfigure inventory::kernel_driver,
        reads "`/sys/bus/pci/devices/*/driver`",
        absent "on a node without GPUs";
    GpuAddress Warn Reconfigure inventory::addresses,
        reads "PCI and NVML",
        absent "where no inventory states addresses";
    GpuModel Block Replace inventory::models,
        reads "`pciDeviceId`, `nvmlDeviceGetName`, `nvmlDeviceGetMemoryInfo_v2`",
        absent "what the catalog does not know of the product";
    GpuMinor Warn Look inventory::minors,
        reads "`nvmlDeviceGetMinorNumber`",
        absent "where no DRA driver hands out the GPUs";
    GpuPlace Warn Look place::places,
        reads "`nvmlDeviceGetPlatformInfo`, `nvmlDeviceGetModuleId`",
        absent "with fewer than two GPUs; on cards without a baseboard, which all say one number";
    GpuNuma Warn Look place::numa,
        reads "`numa_node` of `/sys/bus/pci/devices`",
        absent "where the catalog does not know it of the system; where the kernel does not tell: -1";
    MigMode Block Reconfigure mig::mode,
        reads_twice "`nvmlDeviceGetMigMode`, current and pending",
        absent "on a product without MIG, if it is to be off";
    MigLayout Block Reconfigure mig::layout,
        reads_twice "`nvmlDeviceGetGpuInstances`, as root",
        absent "while MIG mode is off: `mig.mode` judges that";
    MigCompute Block Reconfigure mig::compute,
        reads_twice "`nvmlGpuInstanceGetComputeInstances`, as root",
        absent "where there is no GPU instance";
    MigDevices Block Reconfigure mig::devices,
        reads_twice "`nvmlDeviceGetMigDeviceHandleByIndex`; a warning against the spec where instances cannot be listed",
        absent "on a GPU that the spec does not cut, and while MIG mode is off";
    MigCaps Block Reconfigure mig::caps,
        reads "`/proc/driver/nvidia-caps/mig-minors`, `/dev/nvidia-caps`",
        absent "where there is no GPU instance";
    EccMode Block Reconfigure modes::ecc,
        reads "`nvmlDeviceGetEccMode`, current and pending",
        absent "where no policy says";
    PersistenceMode Warn Reconfigure modes::persistence,
        reads "`nvmlDeviceGetPersistenceMode`, after the grace time",
        absent "where no policy says";
    ComputeMode Block Reconfigure modes::compute,
        reads "`nvmlDeviceGetComputeMode`",
        absent "where NVML has no such mode, such as on a vGPU";
    PowerLimit Warn Reconfigure modes::power_limit,
        reads "`nvmlDeviceGetPowerManagementLimit`, after the grace time",
        absent "where no policy says";
    PowerEnforced Warn Look modes::power_enforced,
        reads "`nvmlDeviceGetEnforcedPowerLimit`",
        absent "where NVML tells no limits";
    PcieWidth Block Look pcie::width,
        reads "`nvmlDeviceGetCurrPcieLinkWidth`, which does not fall when idle",
        absent "where neither policy nor board says: slots differ";
    PcieGeneration Block Look pcie::generation,
        reads "`nvmlDeviceGetMaxPcieLinkGeneration`; what is in use falls when idle",
        absent "where no policy says: hosts differ";
    PcieGenerationInUse Warn Look pcie::generation_in_use,
        reads "`nvmlDeviceGetCurrPcieLinkGeneration`, with a process and no idle clocks",
        absent "while the GPU is idle";
    PcieAlike Warn Look pcie::alike,
        reads "`nvmlDeviceGetMaxPcieLinkWidth`, `nvmlDeviceGetMaxPcieLinkGeneration`",
        absent "with fewer than two GPUs";
    PcieReplay Warn Look pcie::replays,
        reads "`nvmlDeviceGetPcieReplayCounter`, now and then: some are normal, so their rate counts",
        absent "without an earlier snapshot of the GPU, or the time of one";
    NvlinkActive Block Look nvlink::active,
        reads_twice "`nvmlDeviceGetNvLinkState` of each link",
        absent "on a GPU with MIG mode on, where NVML does not tell or calls them down; on PCIe cards, where bridges are a choice";
    NvlinkPeers Block Look nvlink::peers,
        reads "`nvmlDeviceGetP2PStatus` of each pair, after the grace time",
        absent "on a GPU with MIG mode on; where a GPU's domain is itself, or not known";
    NvlinkErrors Warn Look nvlink::errors,
        reads "`nvmlDeviceGetNvLinkErrorCounter` of each active link, now and then",
        absent "without an earlier snapshot of the GPU; on a GPU with MIG mode on; after a boot since then; where NVML no longer has these counters";
    FabricState Block Look fabric::state,
        reads_twice "`nvmlDeviceGetGpuFabricInfoV`; in progress counts after the grace time",
        absent "before Hopper, on PCIe cards, on boards without NVSwitches; on a GPU with MIG mode on";
    FabricStatus Block Look fabric::status,
        reads_twice "`status` of the same call",
        absent "as for `fabric.state`, and while it is not completed";
    FabricHealth Block Look fabric::health,
        reads_twice "`healthMask` and `healthSummary` of the same call",
        absent "as for `fabric.status`; with drivers that do not tell";
    FabricClique Block Look fabric::clique,
        reads_twice "`clusterUuid` and `cliqueId` of the same call",
        absent "as for `fabric.state`";
    FabricDomain Block Look fabric::domain,
        reads_twice "`clusterUuid`: all zero on a node by itself",
        absent "where the domain lies within the node";
    FabricManagerRuns Block Reconfigure fabric::manager_runs,
        reads "unit `nvidia-fabricmanager`, after the grace time",
        absent "where the node may do as it likes: PCIe cards, a driver of the GPU Operator";
    FabricManagerVersion Block Reconfigure fabric::manager_version,
        reads "`nv-fabricmanager --version`",
        absent "where none must run, or none is installed";
    ImexRuns Block Reconfigure fabric::imex_runs,
        reads "unit `nvidia-imex`, after the grace time",
        absent "where the domain lies within the node";
    ImexVersion Warn Reconfigure fabric::imex_version,
        reads "`nvidia-imex --version`",
        absent "where none must run, or none is installed";
    RecoveryAction Block Reset health::recovery,
        reads "field 230, `NVML_FI_DEV_GET_GPU_RECOVERY_ACTION`",
        absent "before Hopper, and with drivers that do not tell";
    RemapFailure Block Replace memory::remap_failure,
        reads "`nvmlDeviceGetRemappedRows`",
        absent "before Ampere; on a GPU with MIG mode on: it is read before instances are made";
    RemapPending Warn Reset memory::remap_pending,
        reads "`nvmlDeviceGetRemappedRows`",
        absent "as for `remap.failure`";
    RemapSpare Warn Replace memory::remap_spare,
        reads "`nvmlDeviceGetRowRemapperHistogram`",
        absent "as for `remap.failure`";
    RemapGrowth Warn Look memory::remap_growth,
        reads "`nvmlDeviceGetRemappedRows`, now and then",
        absent "without an earlier snapshot of the GPU; as for `remap.failure`";
    RetiredPending Warn Reboot memory::retired_pending,
        reads "`nvmlDeviceGetRetiredPagesPendingStatus`",
        absent "since Ampere";
    RetiredCount Warn Replace memory::retired_count,
        reads "`nvmlDeviceGetRetiredPages_v2`",
        absent "since Ampere";
    EccUncorrected Block Reset memory::ecc_uncorrected,
        reads "`nvmlDeviceGetTotalEccErrors`, volatile",
        absent "while ECC mode is off";
    EccGrowth Warn Look memory::ecc_growth,
        reads "`nvmlDeviceGetTotalEccErrors`, aggregate, now and then",
        absent "without an earlier snapshot of the GPU";
    EccRate Warn Look memory::ecc_rate,
        reads "`nvmlDeviceGetTotalEccErrors`, aggregate, now and then",
        absent "without an earlier snapshot of the GPU, or the time of one; while ECC mode is off";
    SramThreshold Block Replace memory::sram_threshold,
        reads "`nvmlDeviceGetSramEccErrorStatus`, as root",
        absent "before Ampere, and with drivers that do not tell";
    RepairPending Warn Reset memory::repair_pending,
        reads "`nvmlDeviceGetRepairStatus`",
        absent "with drivers before 575";
    MemoryLeak Warn Reset memory::leak,
        reads "`nvmlDeviceGetMemoryInfo_v2`, `nvmlDeviceGetComputeRunningProcesses_v3`",
        absent "while a process runs";
    ThrottleHardware Block Look health::throttle,
        reads "`nvmlDeviceGetCurrentClocksEventReasons`; a warning unless the GPU is idle",
        absent "";
    ThermalMargin Warn Look health::thermal,
        reads "`nvmlDeviceGetTemperature`, `nvmlDeviceGetTemperatureThreshold`, `nvmlDeviceGetMarginTemperature`",
        absent "where NVML tells no threshold";
    FirmwareVbios Warn Reconfigure driver::vbios_alike,
        reads "`nvmlDeviceGetVbiosVersion`",
        absent "with fewer than two GPUs";
    FirmwareInforom Warn Reconfigure driver::inforom_alike,
        reads "`nvmlDeviceGetInforomImageVersion`",
        absent "with fewer than two GPUs";
    FirmwareInforomValid Warn Replace driver::inforom_valid,
        reads "`nvmlDeviceValidateInforom`, on demand",
        absent "where NVML does not tell";
    FirmwareGsp Warn Reboot driver::gsp,
        reads "`nvmlDeviceGetGspFirmwareVersion`",
        absent "where no GSP runs";
    LogXid Block Look kernel_log::xids,
        reads "the kernel log since boot, against the table of XIDs; a warning once the driver asks for nothing more",
        absent "";
    LogDriver Block Look kernel_log::driver_faults,
        reads "the kernel log: `fallen off the bus`, `RmInitAdapter failed`, `API mismatch`",
        absent "";
    LogSwitch Warn Look kernel_log::sxids,
        reads "the kernel log: SXIDs",
        absent "";
    LogComplete Info None kernel_log::complete,
        reads "the first record of the kernel log",
        absent "";
    ModulesNvidia Block Reconfigure host::module_nvidia,
        reads "`/proc/modules`, after the grace time",
        absent "on a node without GPUs";
    ModulesUvm Block Reconfigure host::module_uvm,
        reads "`/proc/modules`, after the grace time",
        absent "on a node without GPUs";
    ModulesDrm Info Look host::module_drm,
        reads "`/proc/modules`",
        absent "unless the spec cuts GPUs whose MIG mode changes by a reset: Ampere";
    DevicesGpu Block Reconfigure host::device_nodes,
        reads "`/dev`, `nvmlDeviceGetMinorNumber`, after the grace time",
        absent "on a node without GPUs";
    DevicesUvm Block Reconfigure host::device_uvm,
        reads "`/dev`, after the grace time",
        absent "on a node without GPUs";
    HostCpu Warn Look host::cpu,
        reads "`/sys/devices/system/cpu`",
        absent "where neither catalog nor fleet states them";
    HostMemory Warn Look host::memory,
        reads "`MemTotal` of `/proc/meminfo`",
        absent "where neither catalog nor fleet states it";
    HostMount Block Reconfigure host::mounts,
        reads "`/proc/1/mounts`, after the grace time",
        absent "where no policy says";
    HostHugepages Warn Reconfigure host::hugepages,
        reads "`/sys/kernel/mm/hugepages`, after the grace time",
        absent "where no policy says";
    NetworkPorts Block Look host::ports,
        reads "`/sys/class/infiniband`, after the grace time",
        absent "where the spec attaches the node to no InfiniBand or RoCE fabric";
    NetworkPortsDown Warn Look host::ports_down,
        reads "`/sys/class/infiniband`, after the grace time",
        absent "where the spec attaches the node to no InfiniBand or RoCE fabric";
    NetworkFirmware Warn Reconfigure host::port_firmware,
        reads "`fw_ver` and `board_id` of `/sys/class/infiniband`",
        absent "without two adapters of one board";
    SlurmGres Block Reconfigure agents::slurm_gres,
        reads "`slurmd -G`, as root",
        absent "on a node that no Slurm cluster owns, or that has none; where slurmd was not asked";
    SlurmFiles Block Reconfigure agents::slurm_files,
        reads "`slurmd -G`, `nvmlDeviceGetMinorNumber`, `/dev/nvidia-caps`",
        absent "as for `slurm.gres`, and where slurmd names no files";
    KubernetesResources Block Look agents::kubernetes_resources,
        reads "`status.allocatable` of the node, after the grace time",
        absent "off Kubernetes, and where the node was not asked for";
    KubernetesLabels Warn Look agents::kubernetes_labels,
        reads "labels of the node, after the grace time",
        absent "as for `kubernetes.resources`";
}
