//! Which CPUs and network cards are near which GPU, as `nvidia-smi topo -m` shows them.
//!
//! The numbers of network cards depend on which cards are installed: a map is what a system has as
//! delivered, and a fleet may say otherwise.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::Confidence;
use crate::name::SystemName;
use crate::serde_as_text;

/// The affinity map of a system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AffinityMap {
    /// Key, such as `dgx-a100`.
    pub key: String,
    /// Systems that it was seen on.
    pub systems: Vec<SystemName>,
    /// The word of the matrix between any two GPUs, such as `NV18`.
    pub gpu_to_gpu: String,
    /// NUMA nodes per socket, where the firmware was set so.
    #[serde(default)]
    pub nps: Option<u8>,
    /// NUMA nodes that have CPUs.
    pub numa_nodes: Option<u8>,
    /// CPUs of the machine that it was seen on. The map holds for no other number.
    pub cpu_threads: u16,
    /// Network cards that are near no GPU in particular.
    #[serde(default)]
    pub other_nics: Vec<String>,
    /// Every GPU, in the order of its NVML index.
    pub gpus: Vec<GpuAffinity>,
    /// Keys of the row's sources.
    pub source: Vec<String>,
    /// Confidence of the row.
    pub confidence: Confidence,
    /// Doubts and remarks.
    #[serde(default)]
    pub note: Option<String>,
}

/// What is near a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuAffinity {
    /// NVML index.
    pub gpu: u8,
    /// NUMA node.
    pub numa: u8,
    /// CPUs of that NUMA node.
    pub cpus: CpuList,
    /// Network cards behind the same PCIe switch (`PIX` or `PXB`), by the column of the matrix.
    pub nics: Vec<String>,
}

/// CPU numbers as Linux lists them: `0-55,112-167`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(Vec<(u16, u16)>);

/// The text is not a list of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a list of CPUs: write rising ranges, such as `0-55,112-167`")]
pub struct CpuListError(String);

impl CpuList {
    /// First and last CPU of each range, rising.
    pub fn ranges(&self) -> &[(u16, u16)] {
        &self.0
    }

    /// How many CPUs there are.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|(first, last)| u32::from(last - first) + 1).sum()
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let error = || CpuListError(text.to_owned());
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first = first.parse().map_err(|_| error())?;
            let last = last.parse().map_err(|_| error())?;
            let rising = ranges.last().is_none_or(|(_, before)| *before < first);
            if first > last || !rising {
                return Err(error());
            }
            ranges.push((first, last));
        }
        Ok(Self(ranges))
    }
}

serde_as_text!(CpuList);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_read_and_print() {
        let list: CpuList = "0-55,112-167".parse().unwrap();
        assert_eq!((list.count(), list.to_string()), (112, "0-55,112-167".to_owned()));
        assert_eq!("3".parse::<CpuList>().unwrap().ranges(), [(3, 3)]);
        for wrong in ["", "5-3", "0-3,2-5", "a", "1-", "-1"] {
            assert!(wrong.parse::<CpuList>().is_err(), "{wrong}");
        }
    }
}
