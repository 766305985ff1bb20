//! What a release of Slurm must have for something that a spec may say. Each is stated here once.
//!
//! Source: NEWS, RELEASE_NOTES and manual pages of SchedMD/slurm, branches 22.05 to 26.05.

use fleetc_schema::version::SlurmRelease;

/// Something that not every release has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// AutoDetect on a node in state CLOUD costs that node its gres.conf. Before, slurmctld ends.
    AutoDetectSkipsCloud,
    /// `AutoDetect=nvidia` in gres.conf.
    AutoDetectNvidia,
    /// `BlockSizes` in topology.conf. 23.11 has `BlockLevels` instead.
    BlockSizes,
    /// A hostlist with text after its last bracket: `r[1-2]-ib`. Before, slurmctld ends with
    /// "Unable to create NodeName list".
    HostlistSuffix,
    /// The profile of a GPU instance read from the device's name, with what follows its size:
    /// `1g.10gb+me`. Before, it was computed from the attributes of the instance.
    MigProfileSuffix,
    /// `scontrol reconfigure` starts new daemons and hands over once they run, so that nearly every
    /// change needs no restart. Source: scontrol(1), "reconfigure".
    ReconfigureByNewProcess,
    /// The plugin topology/block.
    TopologyBlock,
}

impl Feature {
    /// The first release that has it.
    pub fn since(self) -> SlurmRelease {
        match self {
            Self::MigProfileSuffix => SlurmRelease::V23_02,
            Self::AutoDetectSkipsCloud
            | Self::HostlistSuffix
            | Self::ReconfigureByNewProcess
            | Self::TopologyBlock => SlurmRelease::V23_11,
            Self::BlockSizes => SlurmRelease::V24_05,
            Self::AutoDetectNvidia => SlurmRelease::V24_11,
        }
    }

    /// True if a release has it.
    pub fn is_in(self, release: SlurmRelease) -> bool {
        release >= self.since()
    }
}
