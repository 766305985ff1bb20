//! The documents that carry the Intent to nodes and tools, as they stand in an output tree.

use std::borrow::Cow;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Intent, NodeClass};
use crate::name::{ClassName, FleetName, RackName};
use crate::{Hostlist, ItemPath};

/// The schema tag of `fleet.json`.
pub const INTENT_SCHEMA: &str = "fleetc/intent/v1";
/// The schema tag of `index.json`.
pub const INDEX_SCHEMA: &str = "fleetc/index/v1";
/// The schema tag of `classes/<name>.json`.
pub const CLASS_SCHEMA: &str = "fleetc/class/v1";
/// The schema tag of the report of a node: what the validator writes, and `fleetc drift` reads.
pub const REPORT_SCHEMA: &str = "fleetc/report/v1";

/// `fleet.json`: the whole Intent. The SHA-256 of its bytes is the digest of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IntentDocument<'a> {
    /// [`INTENT_SCHEMA`].
    pub schema: Cow<'a, str>,
    /// The Intent.
    pub intent: Cow<'a, Intent>,
}

// Who looks for one node alone may leave the lists as text: see `Hostlist::text_holds`.
/// `index.json`: which class a node is of, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Index<L = Hostlist> {
    /// [`INDEX_SCHEMA`].
    pub schema: String,
    /// The fleet.
    pub fleet: FleetName,
    /// Classes and their nodes. A node is in one class only.
    pub classes: IndexMap<ClassName, L>,
    /// Racks and their nodes.
    pub racks: IndexMap<RackName, L>,
    /// How many files hold the overrides of each class that has any; see [`overrides_file`].
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub overrides: IndexMap<ClassName, u32>,
    /// SHA-256 of every other file of the folder, in hex, by path. So the SHA-256 of this file, which the
    /// manifest has, is the digest of all that the nodes are judged by. Empty in a folder that was written
    /// before there was this.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub files: IndexMap<String, String>,
}

/// The file of overrides of a class with this number, from 0, of so many. Each of its lines is an
/// [`Override`](super::Override), whose nodes are of that class; which nodes stand in which file says
/// [`overrides_number`].
pub fn overrides_file(class: &ClassName, number: u32, of: u32) -> String {
    match of {
        0 | 1 => format!("overrides/{class}.jsonl"),
        _ => format!("overrides/{class}/{number:03}.jsonl"),
    }
}

/// The number of the file of overrides, of so many, that says what is known of a node: a node reads one
/// file, and a node that comes or goes changes one.
///
/// FNV-1a of 64 bits. Source: draft-eastlake-fnv, "FNV-1a Hash".
pub fn overrides_number(node: &str, of: u32) -> u32 {
    let hash = node.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    u32::try_from(hash % u64::from(of.max(1))).unwrap_or_default()
}

/// `classes/<name>.json`: what a node of the class should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClassDocument<'a> {
    /// [`CLASS_SCHEMA`].
    pub schema: Cow<'a, str>,
    /// The class.
    pub class: Cow<'a, NodeClass>,
}

/// A line of `sources.jsonl`: where an item or value of the spec is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SourceLine {
    /// The item.
    pub path: ItemPath,
    /// The file, relative to the root.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// First byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_the_published_hash() {
        // FNV-1a of the empty text is the offset basis; that of "a" is published beside it.
        assert_eq!(overrides_number("", 1_000), (0xcbf2_9ce4_8422_2325_u64 % 1_000) as u32);
        assert_eq!(overrides_number("a", 1_000), (0xaf63_dc4c_8601_ec8c_u64 % 1_000) as u32);
        assert_eq!((overrides_number("a", 1), overrides_number("a", 0)), (0, 0));
    }
}
