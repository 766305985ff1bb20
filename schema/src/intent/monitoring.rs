//! Monitoring: what exports metrics, who is told, and changes to the standard alerts.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::words;
use crate::name::{AlertName, ReceiverName};
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
    pub alerts: IndexMap<AlertName, AlertChange>,
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
