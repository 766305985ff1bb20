//! Sources of readings. Each gives the same [`NodeState`], so the same findings follow.

mod history;
mod live;
pub mod nvidia_smi;
mod snapshot;

use crate::input::InputError;
use crate::state::{NOT_READ, NodeState};
use serde_json::Value;

pub(crate) use history::History;
pub use live::{LIBRARY, Live, STATE_DIR, Setting};
pub use nvidia_smi::NvidiaSmi;
pub use snapshot::{SNAPSHOT_SCHEMA, Snapshot, to_json};

/// A source of readings.
pub trait Observe {
    /// Reads the node, as far as it can be read: what cannot is unknown in the result.
    ///
    /// # Errors
    /// Only if the source itself cannot be used.
    fn observe(&self) -> Result<NodeState, ObserveError>;
}

/// Why a source cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// A file is missing or wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// There is no process for a probe.
    #[error("starting a process to read the node")]
    Probe(#[source] std::io::Error),
    /// The readings are of another node.
    #[error("{} was taken on node `{taken_on}`, not on `{node}`", file.display())]
    OtherNode {
        /// The snapshot.
        file: std::path::PathBuf,
        /// The node that it was taken on.
        taken_on: String,
        /// The node that is judged.
        node: String,
    },
}

/// Gives every reading that was not read a reason, in a state as JSON.
fn replace_unread(json: &mut Value, why: &str) {
    match json {
        Value::Object(fields) => {
            let unread = fields.get_mut("unknown").filter(|reason| **reason == NOT_READ);
            if let Some(reason) = unread {
                *reason = Value::from(why);
            }
            fields.values_mut().for_each(|field| replace_unread(field, why));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_unread(item, why)),
        _ => {}
    }
}
