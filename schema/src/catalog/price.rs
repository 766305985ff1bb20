//! Prices, and what renting spare capacity means.
//!
//! Money is a whole number of millionths of its currency. A price that nobody states is absent,
//! never zero.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Cloud, Confidence};
use crate::units::{Date, decimal};

/// A list price.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Millionths of the currency.
    pub micros: u64,
    /// The currency.
    pub currency: Currency,
    /// What it pays for.
    pub per: PriceUnit,
    /// When it was the price.
    pub date: Date,
    /// Where, in the words of the source.
    pub region: Option<String>,
    /// Keys of its sources.
    pub source: Vec<String>,
    /// How sure it is.
    pub confidence: Confidence,
}

/// A currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Currency {
    /// United States dollar.
    Usd,
}

/// What a price pays for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PriceUnit {
    /// A node for an hour.
    NodeHour,
    /// A GPU for an hour.
    GpuHour,
    /// A GPU for a year.
    GpuYear,
    /// A GPU for five years.
    #[serde(rename = "gpu-5-years")]
    Gpu5Years,
}

/// `55.04 USD/node-hour, us-east-1, 2026-07-20`.
impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", decimal(self.micros, 1_000_000), self.currency, self.per)?;
        if let Some(region) = &self.region {
            write!(f, ", {region}")?;
        }
        write!(f, ", {}", self.date)
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Usd => "USD",
        })
    }
}

impl fmt::Display for PriceUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NodeHour => "node-hour",
            Self::GpuHour => "gpu-hour",
            Self::GpuYear => "gpu-year",
            Self::Gpu5Years => "gpu-5-years",
        })
    }
}

/// The price of something that is not an instance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListPrice {
    /// What is sold.
    pub product: String,
    /// Its price.
    pub price: Price,
}

/// What clouds say about spare capacity.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spot {
    /// How long before an instance is taken away its cloud says so.
    pub notices: Vec<SpotNotice>,
    /// How often instances are taken away.
    pub interruptions: Vec<InterruptionRate>,
    /// How far spot prices lie below the list.
    pub discounts: Vec<SpotDiscount>,
}

/// The notice that a cloud gives before it takes an instance away.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpotNotice {
    /// The cloud.
    pub cloud: Cloud,
    /// Seconds of notice.
    pub seconds: Option<u32>,
    /// How the notice comes.
    pub signal: Option<String>,
    /// Keys of its sources; none if nothing is known.
    pub source: Vec<String>,
    /// How sure it is.
    pub confidence: Confidence,
    /// Doubts and remarks.
    #[serde(default)]
    pub note: Option<String>,
}

/// The share of spot instances that are taken away.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptionRate {
    /// The cloud.
    pub cloud: Cloud,
    /// The GPU family, such as `H100`.
    pub gpu_family: String,
    /// The share in percent.
    pub percent: PercentRange,
    /// The period that the share is of; none if the source does not say.
    pub period: Option<String>,
    /// Keys of its sources.
    pub source: Vec<String>,
    /// How sure it is.
    pub confidence: Confidence,
    /// Doubts and remarks.
    #[serde(default)]
    pub note: Option<String>,
}

/// How far spot prices lie below the list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpotDiscount {
    /// The cloud.
    pub cloud: Cloud,
    /// Its shapes, by the start of their name.
    pub shape_family: String,
    /// The discount in percent.
    pub percent: PercentRange,
    /// When it was so.
    pub date: Date,
    /// Keys of its sources.
    pub source: Vec<String>,
    /// How sure it is.
    pub confidence: Confidence,
}

/// A range in percent; an end that is absent is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PercentRange {
    /// The least.
    pub min: Option<u8>,
    /// The most.
    pub max: Option<u8>,
}
