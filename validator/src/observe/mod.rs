//! Sources of readings. Each gives the same [`NodeState`], so the same findings follow.

mod snapshot;

use crate::input::InputError;
use crate::state::NodeState;

pub use snapshot::{SNAPSHOT_SCHEMA, Snapshot};

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
