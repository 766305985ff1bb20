//! The words of the field: units, names, hostlists, the hardware catalog, MIG geometry, the
//! Intent, the vocabulary of a plan, and diagnostics.
//!
//! Invariant: this crate imports no other crate of the workspace, opens no file and parses no
//! document but its own embedded catalog. `FromStr` of units, names, hostlists and MIG profiles
//! lives here, so a string is read once, at the edge, into a type that cannot be wrong.

#[cfg(feature = "catalog")]
pub mod catalog;
pub mod diag;
pub mod hostlist;
pub mod intent;
pub mod mig;
pub mod name;
pub mod path;
pub mod pci;
pub mod plan;
pub mod serde_text;
#[cfg(feature = "topology")]
pub mod topology;
pub mod units;
pub mod version;
pub mod xid;

pub use hostlist::Hostlist;
pub use path::ItemPath;
