//! Proves on a node that the hardware is what the fleet's spec says.
//!
//! A [`intent::NodeIntent`] (what the compiled intent says of one node) is compared with a
//! [`state::NodeState`] (what a source read on it); [`compare::compare`] is pure and gives a
//! [`report::Report`], which the renderers print.
//!
//! Invariant: only a value that was read can fail a check; what could not be read never does.
//! Invariant: the library reads no environment and no clock. Same inputs, same bytes.
//! Invariant: it imports the schema without its catalog, and nothing of the compiler.

pub mod cli;
pub mod compare;
#[cfg(test)]
mod example;
pub mod fix;
pub mod input;
pub mod intent;
pub mod observe;
mod outlet;
mod program;
pub mod render;
pub mod report;
pub mod slurm;
pub mod state;
