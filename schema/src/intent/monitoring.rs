//! Monitoring: what exports metrics, who is told, and changes to the standard alerts.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::words;
use crate::name::ReceiverName;
use crate::units::{Ratio, Seconds};
use crate::version::Version;

/// Monitoring of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Monitoring {
    /// What exports GPU metrics.
    pub exporter: Exporter,
    /// File that holds the URL of the Slack webhook.
    pub slack_url_file: Option<String>,
    /// Who can be told.
    pub receivers: IndexMap<ReceiverName, Receiver>,
    /// Who is told what.
    pub routes: Vec<Route>,
    /// Changes to the standard alerts.
    pub alerts: IndexMap<StandardAlert, AlertChange>,
}

/// The exporter of GPU metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Exporter {
    /// Which program.
    pub kind: ExporterKind,
    /// Its version, which decides how metrics are called.
    pub version: Version,
}

words! {
    /// A program that exports GPU metrics.
    ExporterKind {
        /// NVIDIA/dcgm-exporter.
        DcgmExporter = "dcgm-exporter",
    }
}

/// Who can be told. Secrets are named by file, never written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Receiver {
    /// File that holds the PagerDuty routing key.
    pub pagerduty_key_file: Option<String>,
    /// Slack channel.
    pub slack: Option<String>,
}

/// Who is told about a class of alerts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The class; none: every class without a route of its own.
    pub class: Option<AlertClass>,
    /// Who is told.
    pub to: RouteTarget,
}

words! {
    /// What an alert is about, which decides who can act on it.
    AlertClass {
        /// A GPU or node is broken.
        Hardware = "hardware",
        /// NVLink or the network.
        Fabric = "fabric",
        /// The driver.
        Driver = "driver",
        /// The job that runs there.
        Application = "application",
        /// Something is not as the spec says.
        Config = "config",
        /// Power and cooling.
        Facility = "facility",
        /// Daemons and exporters.
        Platform = "platform",
    }
}

/// Who is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RouteTarget {
    /// The contact of the team whose workload it is.
    Owner,
    /// A receiver.
    Receiver(ReceiverName),
}

/// A change to a standard alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AlertChange {
    /// How long before it fires.
    pub after: Option<Seconds>,
    /// The value below which it fires.
    pub below: Option<Ratio>,
}

words! {
    /// How urgent an alert is.
    AlertSeverity {
        /// Somebody is woken.
        Critical = "critical",
        /// Somebody looks in working hours.
        Warning = "warning",
        /// Good to know.
        Info = "info",
    }
}

/// What a standard alert is, before a fleet changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlertKind {
    /// What it is about.
    pub class: AlertClass,
    /// How urgent it is; none if the XID decides.
    pub severity: Option<AlertSeverity>,
    /// How long it holds before it fires.
    pub after: Seconds,
    /// The value below which it fires, if it has one that a fleet may change.
    pub below: Option<Ratio>,
    /// How long one event is seen; none if what it watches stays as it is.
    pub window: Option<Seconds>,
}

macro_rules! alerts {
    (@severity ByXid) => { None };
    (@severity $severity:ident) => { Some(AlertSeverity::$severity) };
    (@opt) => { None };
    (@opt $value:expr) => { Some($value) };
    ($($(#[$doc:meta])* $name:ident = $word:literal $class:ident $severity:ident $after:literal
        $(below $below:literal)? $(window $window:literal)?;)+) => {
        words! {
            /// An alert that every cluster with the hardware for it gets.
            StandardAlert { $($(#[$doc])* $name = $word,)+ }
        }

        impl StandardAlert {
            /// Every alert, in the order of the output.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// What it is.
            pub fn kind(self) -> AlertKind {
                match self {
                    $(Self::$name => AlertKind {
                        class: AlertClass::$class,
                        severity: alerts!(@severity $severity),
                        after: Seconds($after),
                        below: alerts!(@opt $(Ratio($below))?),
                        window: alerts!(@opt $(Seconds($window))?),
                    },)+
                }
            }
        }
    };
}

// The exporter counts XIDs over a window of 5 minutes (`--xid-count-window-size`, 300000 ms).
alerts! {
    /// A node has fewer GPUs than its class.
    GpusMissing = "GpusMissing" Hardware Critical 300;
    /// Nodes that nothing scrapes.
    GpuNodesSilent = "GpuNodesSilent" Platform Critical 600;
    /// The exporter of a node does not answer.
    GpuExporterDown = "GpuExporterDown" Platform Critical 300;
    /// GPU instances of a node are not those of its class.
    MigLayoutDrift = "MigLayoutDrift" Config Warning 900;
    /// An XID that tells of broken hardware.
    GpuXidHardware = "GpuXidHardware" Hardware ByXid 0 window 300;
    /// An XID of NVLink.
    GpuXidFabric = "GpuXidFabric" Fabric ByXid 0 window 300;
    /// An XID of the driver or the firmware.
    GpuXidDriver = "GpuXidDriver" Driver ByXid 0 window 300;
    /// An XID that a program caused.
    GpuXidApplication = "GpuXidApplication" Application ByXid 0 window 300;
    /// An XID that a setting caused.
    GpuXidConfig = "GpuXidConfig" Config ByXid 0 window 300;
    /// An XID of power or cooling.
    GpuXidFacility = "GpuXidFacility" Facility ByXid 0 window 300;
    /// An XID that is not in the table.
    GpuXidUnknown = "GpuXidUnknown" Hardware Warning 0 window 300;
    /// The driver asks for a reset or a reboot.
    GpuRecoveryActionRequired = "GpuRecoveryActionRequired" Hardware Critical 60;
    /// An uncorrectable memory error.
    GpuDoubleBitEcc = "GpuDoubleBitEcc" Hardware Critical 0;
    /// More errors in SRAM than NVIDIA takes.
    GpuSramThresholdExceeded = "GpuSramThresholdExceeded" Hardware Critical 0;
    /// A row of memory could not be remapped.
    GpuRowRemapFailure = "GpuRowRemapFailure" Hardware Critical 0;
    /// A row is remapped at the next reset.
    GpuRowRemapPending = "GpuRowRemapPending" Hardware Warning 300;
    /// Banks of memory without spare rows.
    GpuRowRemapBanksExhausted = "GpuRowRemapBanksExhausted" Hardware Warning 0;
    /// Memory that cannot be repaired.
    GpuMemoryUnrepairable = "GpuMemoryUnrepairable" Hardware Critical 0;
    /// ECC is off and the policy asks for it.
    GpuEccOff = "GpuEccOff" Config Warning 600;
    /// A GPU slows down since it is hot.
    GpuThermalThrottle = "GpuThermalThrottle" Facility Warning 300;
    /// A GPU is slowed down by the board or the power supply.
    GpuHwSlowdown = "GpuHwSlowdown" Hardware Critical 300;
    /// The power limit is not that of the policy.
    GpuPowerLimitDrift = "GpuPowerLimitDrift" Config Warning 900;
    /// The driver is not that of the class.
    GpuDriverDrift = "GpuDriverDrift" Config Warning 1800;
    /// A GPU has fewer active NVLinks than it should.
    NvlinkDown = "NvlinkDown" Fabric Critical 300;
    /// NVLinks that had to recover, or could not.
    NvlinkRecoveryErrors = "NvlinkRecoveryErrors" Fabric Critical 0 window 3600;
    /// The fabric manager failed.
    FabricManagerFailed = "FabricManagerFailed" Fabric Critical 600;
    /// The NVLink fabric is not healthy.
    FabricHealthDegraded = "FabricHealthDegraded" Fabric Critical 300;
    /// A GPU runs with fewer PCIe lanes than it has.
    PcieLinkDegraded = "PcieLinkDegraded" Hardware Warning 600;
    /// Nothing tells how busy the GPUs of a node are.
    GpuProfilingLost = "GpuProfilingLost" Platform Warning 1800;
    /// GPUs that are held and not used.
    GpuAllocatedButIdle = "GpuAllocatedButIdle" Application Info 3600 below 50_000;
}
