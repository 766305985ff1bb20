//! The metrics that the exporter is told to export: the one table of their names.
//!
//! A metric is called exactly as its row of the CSV spells it, so a CSV of our own fixes the names
//! whatever the exporter ships. DCGM 4.6 renamed half of its fields and keeps the old names as aliases;
//! dcgm-exporter 4.9 uses the new ones in its own rows. Rows of 4.8 and earlier keep the names that
//! people know, rows of 4.9 and later have the new ones. A name that the exporter does not know stops
//! it at its start, so each row says since when it is known.
//!
//! Sources: NVIDIA/DCGM `dcgmlib/dcgm_fields.h` v4.0.0 to v4.6.0; NVIDIA/go-dcgm `const_fields.go` at the
//! commit that each tag of NVIDIA/dcgm-exporter pins, and v1.4611.0; `etc/default-counters.csv`.

use fleetc_schema::version::Version;

use crate::write::csv;

/// The type in the CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Gauge,
    Counter,
    /// No series: a label on all others.
    Label,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Label => "label",
        }
    }
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// Its name up to exporter 4.8.
    name: &'static str,
    /// Its name from exporter 4.9 on.
    renamed: &'static str,
    /// The first exporter that knows it.
    pub since: &'static [u32],
    pub kind: Kind,
    pub help: &'static str,
}

impl Row {
    /// The name that people know it by.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

macro_rules! metrics {
    ($($metric:ident $name:literal $renamed:literal [$($since:literal),+] $kind:ident $help:literal;)+) => {
        /// A metric of the exporter.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Metric { $($metric,)+ }

        impl Metric {
            /// Its row.
            pub fn row(self) -> &'static Row {
                match self {
                    $(Self::$metric => {
                        static ROW: Row = Row {
                            name: $name,
                            renamed: $renamed,
                            since: &[$($since),+],
                            kind: Kind::$kind,
                            help: $help,
                        };
                        &ROW
                    })+
                }
            }

            /// Every metric, in the order of the CSV.
            pub const ALL: &'static [Self] = &[$(Self::$metric),+];
        }
    };
}

metrics! {
    GpuTemp "DCGM_FI_DEV_GPU_TEMP" "DCGM_FI_DEV_GPU_TEMP_CELSIUS" [4, 0] Gauge "GPU temperature (in C).";
    MemoryTemp "DCGM_FI_DEV_MEMORY_TEMP" "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS" [4, 0] Gauge "Memory temperature (in C).";
    PowerUsage "DCGM_FI_DEV_POWER_USAGE" "DCGM_FI_DEV_BOARD_POWER_WATTS" [4, 0] Gauge "Power draw (in W).";
    PowerLimit "DCGM_FI_DEV_ENFORCED_POWER_LIMIT" "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS" [4, 0] Gauge "Enforced power limit (in W).";
    Energy "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" [4, 0] Counter "Energy since the driver was loaded (in mJ).";
    SmClock "DCGM_FI_DEV_SM_CLOCK" "DCGM_FI_DEV_SM_CLOCK" [4, 0] Gauge "SM clock (in MHz).";
    MemClock "DCGM_FI_DEV_MEM_CLOCK" "DCGM_FI_DEV_MEM_CLOCK" [4, 0] Gauge "Memory clock (in MHz).";
    ClocksEventReasons "DCGM_FI_DEV_CLOCKS_EVENT_REASONS" "DCGM_FI_DEV_CLOCKS_EVENT_REASONS" [4, 0] Gauge "Why clocks are held down (bitmask).";
    FbUsed "DCGM_FI_DEV_FB_USED" "DCGM_FI_DEV_FB_USED" [4, 0] Gauge "Frame buffer used (in MiB).";
    FbFree "DCGM_FI_DEV_FB_FREE" "DCGM_FI_DEV_FB_FREE" [4, 0] Gauge "Frame buffer free (in MiB).";
    FbReserved "DCGM_FI_DEV_FB_RESERVED" "DCGM_FI_DEV_FB_RESERVED" [4, 0] Gauge "Frame buffer reserved (in MiB).";
    GrEngineActive "DCGM_FI_PROF_GR_ENGINE_ACTIVE" "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO" [4, 0] Gauge "Share of time that any engine is active (0 to 1).";
    SmActive "DCGM_FI_PROF_SM_ACTIVE" "DCGM_FI_PROF_SM_UTIL_RATIO" [4, 0] Gauge "Share of cycles that an SM has work (0 to 1).";
    TensorActive "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" "DCGM_FI_PROF_TENSOR_UTIL_RATIO" [4, 0] Gauge "Share of cycles that the tensor pipe is active (0 to 1).";
    DramActive "DCGM_FI_PROF_DRAM_ACTIVE" "DCGM_FI_PROF_DRAM_UTIL_RATIO" [4, 0] Gauge "Share of cycles that device memory is active (0 to 1).";
    XidCount "DCGM_EXP_XID_ERRORS_COUNT" "DCGM_EXP_XID_ERRORS_COUNT" [4, 0] Gauge "XIDs within the window.";
    RecoveryAction "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION" "DCGM_FI_DEV_GPU_RECOVERY_ACTION" [4, 8] Gauge "What the driver asks for: 0 nothing; 1 GPU reset; 2 reboot; 3 drain P2P; 4 drain and reset; 5 recover the IMEX domain.";
    EccMode "DCGM_FI_DEV_ECC_CURRENT" "DCGM_FI_DEV_ECC_MODE" [4, 0] Gauge "ECC mode (0 or 1).";
    EccDbe "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL" "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL" [4, 0] Counter "Double-bit errors since the driver was loaded.";
    EccSbe "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL" "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL" [4, 0] Counter "Single-bit errors since the driver was loaded.";
    SramThreshold "DCGM_FI_DEV_THRESHOLD_SRM" "DCGM_FI_DEV_SRAM_EXCEEDED" [4, 5] Gauge "SRAM has had more errors than NVIDIA takes (0 or 1).";
    RemapFailure "DCGM_FI_DEV_ROW_REMAP_FAILURE" "DCGM_FI_DEV_ROW_REMAP_FAILED" [4, 0] Gauge "A row could not be remapped (0 or 1).";
    RemapPending "DCGM_FI_DEV_ROW_REMAP_PENDING" "DCGM_FI_DEV_ROW_REMAP_PENDING" [4, 0] Gauge "A row is remapped at the next reset (0 or 1).";
    RemapBanksNone "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE" "DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE" [4, 0] Gauge "Banks without spare rows.";
    RemappedUncorrectable "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS" "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL" [4, 0] Counter "Rows remapped for uncorrectable errors.";
    RemappedCorrectable "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS" "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL" [4, 0] Counter "Rows remapped for correctable errors.";
    MemoryUnrepairable "DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG" "DCGM_FI_DEV_MEMORY_UNREPAIRABLE" [4, 8] Gauge "Memory cannot be repaired (0 or 1).";
    NvlinkState "DCGM_FI_DEV_NVLINK_GET_STATE" "DCGM_FI_DEV_NVLINK_LINK_STATUS" [4, 8] Gauge "State of a link: 0 inactive; 1 active; 2 asleep.";
    NvlinkRecovery "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL" "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL" [4, 0] Counter "Recoveries of links (NVLink 4 and earlier).";
    NvlinkRecoveryFailed "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS" "DCGM_FI_DEV_NVLINK_RECOVERY_FAILED_TOTAL" [4, 0] Counter "Recoveries of links that failed (NVLink 5).";
    FabricManager "DCGM_FI_DEV_FABRIC_MANAGER_STATUS" "DCGM_FI_DEV_FABRIC_MANAGER_STATUS" [4, 0] Gauge "Fabric manager: 0 not supported; 1 not started; 2 in progress; 3 success; 4 failure.";
    FabricHealth "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY" "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY" [4, 8, 3] Gauge "NVLink fabric: 0 not supported; 1 healthy; 2 unhealthy; 3 limited capacity.";
    PcieWidth "DCGM_FI_DEV_PCIE_LINK_WIDTH" "DCGM_FI_DEV_PCIE_LINK_WIDTH" [4, 0] Gauge "PCIe lanes in use.";
    PcieMaxWidth "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH" "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH" [4, 0] Gauge "PCIe lanes that there are.";
    PcieReplay "DCGM_FI_DEV_PCIE_REPLAY_COUNTER" "DCGM_FI_DEV_PCIE_REPLAY_TOTAL" [4, 0] Counter "PCIe replays.";
    DriverVersion "DCGM_FI_DRIVER_VERSION" "DCGM_FI_SYSTEM_DRIVER_VERSION" [4, 0] Label "Driver version.";
}

/// What an exporter of one version exports. The only way to a name.
#[derive(Debug, Clone, Copy)]
pub struct Exported<'a> {
    version: &'a Version,
}

impl<'a> Exported<'a> {
    pub fn by(version: &'a Version) -> Self {
        Self { version }
    }

    /// How this exporter calls the metric; none if it does not know it.
    pub fn name(self, metric: Metric) -> Option<&'static str> {
        let row = metric.row();
        self.version.is_since_parts(row.since).then(|| match self.version.is_at_least(4, 9) {
            true => row.renamed,
            false => row.name,
        })
    }

    /// The CSV that tells the exporter what to export.
    pub fn csv(self, head: &str) -> String {
        let mut text = head.to_owned();
        for metric in Metric::ALL {
            if let Some(name) = self.name(*metric) {
                let Row { kind, help, .. } = metric.row();
                text.push_str(&csv::row(&[name, kind.as_str(), help]));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn names_are_those_of_the_version() {
        let name = |text: &str, metric| Exported::by(&version(text)).name(metric);
        assert_eq!(name("4.8.3", Metric::GpuTemp), Some("DCGM_FI_DEV_GPU_TEMP"));
        assert_eq!(name("4.9.0", Metric::GpuTemp), Some("DCGM_FI_DEV_GPU_TEMP_CELSIUS"));
        assert_eq!(name("4.8.2", Metric::FabricHealth), None);
        assert!(name("4.8.3", Metric::FabricHealth).is_some());
        assert_eq!(name("4.7.1", Metric::NvlinkState), None);
        assert!(name("4.8", Metric::NvlinkState).is_some());
    }

    #[test]
    fn a_row_has_three_columns_and_names_are_unique() {
        for text in ["4.0", "4.8.3", "4.9.0"] {
            let csv = Exported::by(&version(text)).csv("");
            let rows: Vec<Vec<&str>> = csv
                .lines()
                .filter(|line| !line.starts_with('#'))
                .map(|line| line.split(',').collect())
                .collect();
            assert!(rows.iter().all(|row| row.len() == 3), "a comma in a help text");
            let mut names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        }
    }
}
