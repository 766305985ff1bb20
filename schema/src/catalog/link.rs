//! Peak rates of links between GPUs and between nodes.

use serde::Deserialize;

use super::Confidence;

/// The peak rate of a kind of link, before encoding and protocol take their share.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkRate {
    /// The link.
    pub link: String,
    /// Its rate as sold in Gbit/s, where it is sold so.
    pub gbit_per_s: Option<u32>,
    /// Its rate in GB/s.
    pub gb_per_s: u32,
    /// What has this rate.
    pub per: LinkEnd,
    /// What the rate counts.
    pub direction: Direction,
    /// Keys of the row's sources.
    pub source: Vec<String>,
    /// Confidence of the row.
    pub confidence: Confidence,
    /// Doubts and remarks.
    #[serde(default)]
    pub note: Option<String>,
}

/// What a rate is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkEnd {
    /// A port.
    Port,
    /// A GPU, all its links together.
    Gpu,
    /// A slot.
    Slot,
}

/// Which way a rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// One way.
    OneWay,
    /// Both ways added.
    BothWays,
}
