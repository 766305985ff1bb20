//! NVIDIA's XID codes: what each is about, how urgent it is, and what is done about it.
//!
//! Codes, names and first actions are those of NVIDIA's XID catalog (documentation, "Analyzing Xid
//! Errors with the Xid Catalog", copy of 2026-07-14, codes to 172) and of open-gpu-kernel-modules
//! 595.45.04, `nverror.h` (codes to 176). Class and severity are ours: the published lists of providers
//! disagree on 63, 68, 69, 92, 94 and 109. Codes that the catalog marks unused are not in the table.
//!
//! Not every XID of the kernel log reaches the exporter: 62 does not. Source: NVIDIA/DCGM issue 235.

use crate::intent::{AlertClass, AlertSeverity};

/// One code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Xid {
    /// The number in the kernel log.
    pub code: u16,
    /// NVIDIA's name.
    pub name: &'static str,
    /// What it is about; none for what calls for nobody.
    pub class: Option<AlertClass>,
    /// How urgent it is.
    pub severity: AlertSeverity,
    /// NVIDIA's first action, as one word of [`ACTIONS`].
    pub action: &'static str,
}

/// The words of `action`, with what they mean.
pub static ACTIONS: &[(&str, &str)] = &[
    ("none", "nothing at once"),
    ("restart_app", "restart the application only"),
    ("reset_gpu", "end what runs on the GPU and reset it"),
    ("drain_and_reset", "stop new work on the node, wait for its jobs, reset the GPU"),
    ("restart_vm", "restart the virtual machine that has the GPU"),
    ("reboot_node", "restart the host; power-cycle it if the GPU is lost from the bus"),
    ("check_mechanicals", "check seating and power connectors"),
    ("contact_support", "hand it to the vendor"),
    ("update_sw_fw", "update software and firmware"),
    ("rma", "replace the part"),
    ("follow_xid_154", "do what XID 154 names"),
    ("workflow_nvlink", "decode the registers of XID 74"),
    ("workflow_nvlink5", "decode unit and error status of XID 144 to 150"),
    ("check_uvm", "reset the GPU if unified memory or vGPU is in use"),
];

macro_rules! xids {
    (@class Nobody) => { None };
    (@class $class:ident) => { Some(AlertClass::$class) };
    ($($code:literal $name:ident $class:ident $severity:ident $action:ident;)+) => {
        /// Every known code, rising.
        pub static XIDS: &[Xid] = &[$(Xid {
            code: $code,
            name: stringify!($name),
            class: xids!(@class $class),
            severity: AlertSeverity::$severity,
            action: stringify!($action),
        }),+];
    };
}

xids! {
    8 ROBUST_CHANNEL_FIFO_ERROR_IDLE_TIMEOUT Application Info restart_app;
    11 ROBUST_CHANNEL_GR_ERROR_MISSING_HW Application Info restart_app;
    13 ROBUST_CHANNEL_GR_EXCEPTION Application Info restart_app;
    25 ROBUST_CHANNEL_GR_ILLEGAL_NOTIFY Application Info restart_app;
    31 ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT Application Info restart_app;
    32 ROBUST_CHANNEL_PBDMA_ERROR Application Info restart_app;
    37 ROBUST_CHANNEL_FECS_ERR_UNIMP_FIRMWARE_METHOD Driver Warning none;
    38 ROBUST_CHANNEL_FECS_ERR_WATCHDOG_TIMEOUT Driver Warning none;
    39 ROBUST_CHANNEL_CE0_ERROR Application Info restart_app;
    40 ROBUST_CHANNEL_CE1_ERROR Application Info restart_app;
    41 ROBUST_CHANNEL_CE2_ERROR Application Info restart_app;
    43 ROBUST_CHANNEL_RESETCHANNEL_VERIF_ERROR Application Info restart_app;
    44 ROBUST_CHANNEL_GR_FAULT_DURING_CTXSW Driver Warning none;
    45 ROBUST_CHANNEL_PREEMPTIVE_REMOVAL Application Info none;
    46 ROBUST_CHANNEL_GPU_TIMEOUT_ERROR Hardware Critical reset_gpu;
    47 ROBUST_CHANNEL_NVENC0_ERROR Hardware Warning contact_support;
    48 ROBUST_CHANNEL_GPU_ECC_DBE Hardware Critical drain_and_reset;
    54 SILENT_RUNNING_PWR_REDUCED_CLOCKING Hardware Critical check_mechanicals;
    56 DISPLAY_CHANNEL_EXCEPTION Hardware Warning contact_support;
    57 FB_LINK_TRAINING_FAILURE_ERROR Hardware Warning contact_support;
    58 FB_MEMORY_ERROR Hardware Warning contact_support;
    59 PMU_ERROR Driver Warning contact_support;
    60 ROBUST_CHANNEL_SEC2_ERROR Driver Warning restart_app;
    61 PMU_BREAKPOINT Driver Warning contact_support;
    62 PMU_HALT_ERROR Hardware Critical reset_gpu;
    63 INFOROM_DRAM_RETIREMENT_EVENT Hardware Warning drain_and_reset;
    64 INFOROM_DRAM_RETIREMENT_FAILURE Hardware Critical rma;
    65 ROBUST_CHANNEL_NVENC1_ERROR Hardware Warning contact_support;
    66 ROBUST_CHANNEL_FECS_ERR_REG_ACCESS_VIOLATION Driver Warning none;
    67 ROBUST_CHANNEL_FECS_ERR_VERIF_VIOLATION Driver Warning none;
    68 ROBUST_CHANNEL_NVDEC0_ERROR Application Info restart_app;
    69 ROBUST_CHANNEL_GR_CLASS_ERROR Application Info restart_app;
    70 ROBUST_CHANNEL_CE3_ERROR Application Info restart_app;
    71 ROBUST_CHANNEL_CE4_ERROR Application Info restart_app;
    72 ROBUST_CHANNEL_CE5_ERROR Application Info restart_app;
    73 ROBUST_CHANNEL_NVENC2_ERROR Hardware Warning contact_support;
    74 NVLINK_ERROR Fabric Critical workflow_nvlink;
    75 ROBUST_CHANNEL_CE6_ERROR Application Info restart_app;
    76 ROBUST_CHANNEL_CE7_ERROR Application Info restart_app;
    77 ROBUST_CHANNEL_CE8_ERROR Application Info restart_app;
    78 VGPU_START_ERROR Config Warning update_sw_fw;
    79 ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS Hardware Critical reboot_node;
    80 PBDMA_PUSHBUFFER_CRC_MISMATCH Application Warning restart_app;
    81 ROBUST_CHANNEL_VGA_SUBSYSTEM_ERROR Hardware Warning contact_support;
    82 ROBUST_CHANNEL_NVJPG0_ERROR Application Info restart_app;
    83 ROBUST_CHANNEL_NVDEC1_ERROR Application Info restart_app;
    84 ROBUST_CHANNEL_NVDEC2_ERROR Application Info restart_app;
    85 ROBUST_CHANNEL_CE9_ERROR Application Info restart_app;
    86 ROBUST_CHANNEL_OFA0_ERROR Application Info restart_app;
    88 ROBUST_CHANNEL_NVDEC3_ERROR Application Info restart_app;
    89 ROBUST_CHANNEL_NVDEC4_ERROR Application Info restart_app;
    90 LTC_ERROR Hardware Warning contact_support;
    92 EXCESSIVE_SBE_INTERRUPTS Hardware Warning none;
    93 INFOROM_ERASE_LIMIT_EXCEEDED Hardware Info none;
    94 ROBUST_CHANNEL_CONTAINED_ERROR Hardware Warning restart_app;
    95 ROBUST_CHANNEL_UNCONTAINED_ERROR Hardware Critical drain_and_reset;
    96 ROBUST_CHANNEL_NVDEC5_ERROR Application Info restart_app;
    97 ROBUST_CHANNEL_NVDEC6_ERROR Application Info restart_app;
    98 ROBUST_CHANNEL_NVDEC7_ERROR Application Info restart_app;
    99 ROBUST_CHANNEL_NVJPG1_ERROR Application Info restart_app;
    100 ROBUST_CHANNEL_NVJPG2_ERROR Application Info restart_app;
    101 ROBUST_CHANNEL_NVJPG3_ERROR Application Info restart_app;
    102 ROBUST_CHANNEL_NVJPG4_ERROR Application Info restart_app;
    103 ROBUST_CHANNEL_NVJPG5_ERROR Application Info restart_app;
    104 ROBUST_CHANNEL_NVJPG6_ERROR Application Info restart_app;
    105 ROBUST_CHANNEL_NVJPG7_ERROR Application Info restart_app;
    106 SMBPBI_TEST_MESSAGE Nobody Info none;
    107 SMBPBI_TEST_MESSAGE_SILENT Nobody Info none;
    108 NVLINK_REMOTE_TRANSLATION_ERROR Application Info none;
    109 ROBUST_CHANNEL_CTXSW_TIMEOUT_ERROR Driver Critical reset_gpu;
    110 SEC_FAULT_ERROR Hardware Critical reset_gpu;
    119 GSP_RPC_TIMEOUT Driver Critical reset_gpu;
    120 GSP_ERROR Driver Critical reset_gpu;
    121 C2C_ERROR Fabric Warning none;
    122 SPI_PMU_RPC_READ_FAIL Hardware Warning contact_support;
    123 SPI_PMU_RPC_WRITE_FAIL Hardware Warning contact_support;
    124 SPI_PMU_RPC_ERASE_FAIL Hardware Warning contact_support;
    125 INFOROM_FS_ERROR Hardware Warning contact_support;
    126 ROBUST_CHANNEL_CE10_ERROR Application Info restart_app;
    127 ROBUST_CHANNEL_CE11_ERROR Application Info restart_app;
    128 ROBUST_CHANNEL_CE12_ERROR Application Info restart_app;
    129 ROBUST_CHANNEL_CE13_ERROR Application Info restart_app;
    130 ROBUST_CHANNEL_CE14_ERROR Application Info restart_app;
    131 ROBUST_CHANNEL_CE15_ERROR Application Info restart_app;
    132 ROBUST_CHANNEL_CE16_ERROR Application Info restart_app;
    133 ROBUST_CHANNEL_CE17_ERROR Application Info restart_app;
    134 ROBUST_CHANNEL_CE18_ERROR Application Info restart_app;
    135 ROBUST_CHANNEL_CE19_ERROR Application Info restart_app;
    136 ALI_TRAINING_FAIL Fabric Critical reset_gpu;
    137 NVLINK_PRIV_ERR Application Info none;
    138 ROBUST_CHANNEL_DLA_ERROR Nobody Info none;
    139 ROBUST_CHANNEL_OFA1_ERROR Application Info restart_app;
    140 UNRECOVERABLE_ECC_ERROR_ESCAPE Hardware Critical reset_gpu;
    141 ROBUST_CHANNEL_FAST_PATH_ERROR Driver Warning none;
    142 ROBUST_CHANNEL_NVENC3_ERROR Hardware Warning contact_support;
    143 GPU_INIT_ERROR Hardware Critical reset_gpu;
    144 NVLINK_SAW_ERROR Fabric Warning workflow_nvlink5;
    145 NVLINK_RLW_ERROR Fabric Warning workflow_nvlink5;
    146 NVLINK_TLW_ERROR Fabric Warning workflow_nvlink5;
    147 NVLINK_TREX_ERROR Fabric Warning workflow_nvlink5;
    148 NVLINK_NVLPW_CTRL_ERROR Fabric Warning workflow_nvlink5;
    149 NVLINK_NETIR_ERROR Fabric Warning workflow_nvlink5;
    150 NVLINK_MSE_ERROR Fabric Warning workflow_nvlink5;
    151 ROBUST_CHANNEL_KEY_ROTATION_ERROR Driver Critical restart_vm;
    152 ROBUST_CHANNEL_DLA_SMMU_ERROR Nobody Info none;
    153 ROBUST_CHANNEL_DLA_TIMEOUT Nobody Info none;
    154 GPU_RECOVERY_ACTION_CHANGED Hardware Critical follow_xid_154;
    155 NVLINK_SW_DEFINED_ERROR Fabric Warning reset_gpu;
    156 RESOURCE_RETIREMENT_EVENT Hardware Critical reset_gpu;
    157 RESOURCE_RETIREMENT_FAILURE Hardware Warning contact_support;
    158 GPU_FATAL_TIMEOUT Hardware Critical reset_gpu;
    159 ROBUST_CHANNEL_CHI_NON_DATA_ERROR Driver Warning check_uvm;
    160 CHANNEL_RETIREMENT_EVENT Hardware Warning none;
    161 CHANNEL_RETIREMENT_FAILURE Hardware Warning none;
    162 PSHC_REENGAGED Facility Info none;
    163 PSHC_DISENGAGED Facility Info none;
    164 PSHC_LOW_LIFETIME Facility Info none;
    165 PSHC_ZERO_LIFETIME Facility Info none;
    166 NVLINK_SECURE_CRYPTO_ERR Config Warning contact_support;
    167 PCIE_FATAL_TIMEOUT Hardware Critical contact_support;
    168 REDUCED_GPU_MEMORY_CAPACITY Config Warning restart_vm;
    169 SEC2_HALT_ERROR Hardware Critical contact_support;
    170 NVLINK_SECURE_OTHER Config Warning contact_support;
    171 UNCORRECTABLE_DRAM_ERROR Hardware Critical drain_and_reset;
    172 UNCORRECTABLE_SRAM_ERROR Hardware Critical drain_and_reset;
    173 C2C_FATAL_LINK_FAILURE Fabric Critical contact_support;
    174 ROBUST_CHANNEL_RESETCHANNEL_KILL_PROCESS_SILENT Application Info none;
    175 MEMORY_SUBSYSTEM_ERROR Hardware Critical contact_support;
    176 PCIE_CORRECTABLE_ERROR_FAULT Hardware Warning contact_support;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_rise_and_actions_are_known() {
        assert!(XIDS.windows(2).all(|pair| pair[0].code < pair[1].code));
        for xid in XIDS {
            assert!(ACTIONS.iter().any(|(word, _)| *word == xid.action), "{}", xid.code);
        }
    }

    #[test]
    fn a_lost_gpu_pages_and_an_illegal_address_does_not() {
        let find = |code| XIDS.iter().find(|xid| xid.code == code).unwrap();
        assert_eq!(find(79).class, Some(AlertClass::Hardware));
        assert_eq!(find(79).severity, AlertSeverity::Critical);
        assert_eq!(find(31).class, Some(AlertClass::Application));
        assert_eq!(find(31).severity, AlertSeverity::Info);
        assert_eq!(find(74).class, Some(AlertClass::Fabric));
    }
}
