//! What tells whether a GPU is well.

use serde::{Deserialize, Serialize};

use super::Reading;
use fleetc_schema::units::Celsius;

/// Memory errors, temperature, throttling.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Health {
    /// What the driver wants done: field 230, `NVML_FI_DEV_GET_GPU_RECOVERY_ACTION`.
    pub recovery_action: Reading<RecoveryAction>,
    /// `nvmlDeviceGetRemappedRows`; not applicable before Ampere, and while there are GPU instances.
    pub remapped_rows: Reading<RemappedRows>,
    /// Banks by how many rows are left: `nvmlDeviceGetRowRemapperHistogram`.
    pub row_histogram: Reading<RowHistogram>,
    /// `nvmlDeviceGetRetiredPages_v2`; not applicable since Ampere.
    pub retired_pages: Reading<RetiredPages>,
    /// Errors since the driver was loaded: `nvmlDeviceGetTotalEccErrors`.
    pub ecc_volatile: Reading<EccCounts>,
    /// Errors in the life of the GPU.
    pub ecc_aggregate: Reading<EccCounts>,
    /// True if SRAM errors passed the threshold of an RMA: `nvmlDeviceGetSramEccErrorStatus`. Root only.
    pub sram_threshold_exceeded: Reading<bool>,
    /// `nvmlDeviceGetRepairStatus`.
    pub repair_pending: Reading<RepairPending>,
    /// Why clocks are below their maximum: `nvmlDeviceGetCurrentClocksEventReasons`.
    pub clocks_event_reasons: Reading<ClocksEventReasons>,
    /// Errors of each active NVLink since the driver was loaded. Not applicable on a GPU without any,
    /// while it has MIG mode on, and where `nvmlDeviceGetNvLinkErrorCounter` is gone.
    pub nvlink_errors: Reading<Vec<NvLinkErrors>>,
    /// Temperatures.
    pub thermal: Thermal,
}

/// Errors of one NVLink: `nvmlNvLinkErrorCounter_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvLinkErrors {
    /// Its number.
    pub link: u32,
    /// What had to be sent again.
    pub replay: u64,
    /// How often the link had to be trained again.
    pub recovery: u64,
    /// Units of flow control with a wrong checksum.
    pub crc_flit: u64,
}

/// `nvmlDeviceGpuRecoveryAction_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryAction {
    /// Nothing.
    None,
    /// Reset the GPU.
    GpuReset,
    /// Reboot the node.
    NodeReboot,
    /// End peer-to-peer traffic, then reset.
    DrainP2p,
    /// Start no more work, wait for what runs, then reset.
    DrainAndReset,
    /// Recover IMEX.
    RecoverImex,
    /// Reset the bus.
    BusReset,
    /// Reboot the whole system.
    SystemReboot,
}

/// Rows of memory that others stand in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemappedRows {
    /// For errors that could be corrected.
    pub correctable: u32,
    /// For errors that could not.
    pub uncorrectable: u32,
    /// True if a row waits for a reset to be remapped.
    pub pending: bool,
    /// True if a remapping failed: a case for an RMA.
    pub failure: bool,
}

/// Banks by how many spare rows are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowHistogram {
    /// All.
    pub max: u32,
    /// Most.
    pub high: u32,
    /// Some.
    pub partial: u32,
    /// Few.
    pub low: u32,
    /// None: the next error cannot be remapped.
    pub none: u32,
}

/// Pages of memory that are no longer used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetiredPages {
    /// For several single-bit errors.
    pub single_bit: u32,
    /// For a double-bit error.
    pub double_bit: u32,
    /// True if a page waits for a reboot: `nvmlDeviceGetRetiredPagesPendingStatus`.
    pub pending: bool,
}

/// Memory errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EccCounts {
    /// Corrected.
    pub corrected: u64,
    /// Not corrected.
    pub uncorrected: u64,
}

/// Repairs that wait for a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepairPending {
    /// Of a memory channel.
    pub channel: bool,
    /// Of a TPC.
    pub tpc: bool,
}

/// The set of `nvmlClocksEventReason*`, as NVML gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClocksEventReasons(pub u64);

impl ClocksEventReasons {
    /// Reasons that are a fault of hardware, power or cooling, with their names.
    const FAULTS: [(u64, &'static str); 3] = [
        (0x08, "hardware slowdown"),
        (0x40, "hardware thermal slowdown"),
        (0x80, "hardware power brake"),
    ];

    /// `nvmlClocksEventReasonGpuIdle`.
    const IDLE: u64 = 0x01;

    /// True if clocks are low because nothing runs.
    pub fn is_idle(self) -> bool {
        self.0 & Self::IDLE != 0
    }

    /// The faults among the reasons: the rest, such as idleness and the power cap, is as it should be.
    pub fn faults(self) -> impl Iterator<Item = &'static str> {
        Self::FAULTS.into_iter().filter(move |(bit, _)| self.0 & bit != 0).map(|(_, name)| name)
    }
}

/// Temperatures.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thermal {
    /// `nvmlDeviceGetTemperature`, of the GPU.
    pub gpu: Reading<Celsius>,
    /// Where clocks fall: `nvmlDeviceGetTemperatureThreshold`.
    pub slowdown: Reading<Celsius>,
    /// Where the GPU stops.
    pub shutdown: Reading<Celsius>,
    /// How far it is to the slowdown: `nvmlDeviceGetMarginTemperature`. May be below 0.
    pub margin: Reading<Celsius>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idleness_and_the_power_cap_are_no_faults() {
        let faults = |reasons| ClocksEventReasons(reasons).faults().collect::<Vec<_>>();
        assert!(faults(0x1 | 0x2 | 0x4 | 0x20).is_empty());
        assert_eq!(faults(0x1 | 0x80), ["hardware power brake"]);
    }
}
