//! Where things are: sites, racks, and fabrics with their switches.

use serde::{Deserialize, Serialize};

use super::words;
use crate::Hostlist;
use crate::name::{SiteName, SystemName};
use crate::units::{GbitPerSec, Watts};

/// A site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// The region that it is in, as residency rules name it.
    pub region: Option<String>,
}

/// A rack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rack {
    /// Nodes that stand in it.
    pub nodes: Hostlist,
    /// The rack product, if it is one.
    pub product: Option<SystemName>,
    /// The NVLink domain of the rack product.
    pub domain: Option<RackDomain>,
    /// Partitions that its NVLink switches are cut into; none: one.
    pub partitions: Option<u32>,
    /// The power that the rack may draw.
    pub power: Option<Watts>,
    /// The site that it stands at.
    pub site: Option<SiteName>,
}

/// The NVLink domain of a rack product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RackDomain {
    /// GPUs of the domain.
    pub gpus: u16,
    /// Racks that it stands in: one, or two that are cabled as one.
    pub racks: u8,
    /// Trays of one rack, each a node.
    pub trays: u16,
}

/// A network fabric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fabric {
    /// What it is made of.
    pub kind: FabricKind,
    /// The rate of a node's port.
    pub rate: Option<GbitPerSec>,
    /// Its switches, in groups that are alike.
    pub switches: Vec<SwitchGroup>,
    /// Nodes and the switches that they hang on.
    pub attachments: Vec<Attachment>,
}

words! {
    /// What a fabric is made of; it decides the pod resource of a gang. In the order of what jobs gain
    /// from staying within one.
    FabricKind {
        /// InfiniBand.
        Infiniband = "infiniband",
        /// AWS Elastic Fabric Adapter.
        Efa = "efa",
        /// RDMA over Ethernet.
        Roce = "roce",
        /// Ethernet without RDMA.
        Ethernet = "ethernet",
    }
}

/// Switches that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SwitchGroup {
    /// Their names.
    pub names: Hostlist,
    /// Switches above each of them.
    pub uplinks: Hostlist,
}

/// Nodes and the switches that they hang on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// The switches: one, or one a rail.
    pub switches: Hostlist,
    /// The nodes.
    pub nodes: Hostlist,
    /// Rails of a node: port `r` of each node goes to switch `r`.
    pub rails: Option<u32>,
}
