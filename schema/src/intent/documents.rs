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

/// `index.json`: which class a node is of, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// [`INDEX_SCHEMA`].
    pub schema: String,
    /// The fleet.
    pub fleet: FleetName,
    /// Classes and their nodes. A node is in one class only.
    pub classes: IndexMap<ClassName, Hostlist>,
    /// Racks and their nodes.
    pub racks: IndexMap<RackName, Hostlist>,
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
/// [`Override`](super::Override), whose nodes are of that class.
pub fn overrides_file(class: &ClassName, number: u32, of: u32) -> String {
    match of {
        0 | 1 => format!("overrides/{class}.jsonl"),
        _ => format!("overrides/{class}/{number:03}.jsonl"),
    }
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
