//! MIG geometry: profiles, where they may stand on a GPU, and what fits together.
//!
//! A layout is a set of GPU instances on one GPU. As counts of profiles it is a list of
//! [`Demand`]s, with a place for each instance a list of [`Placed`]. It is legal when no two
//! instances share a memory slice, each start is in its profile's list, no profile goes above its
//! `max_count`, and the engines of all instances stay within the GPU's. Every answer here is
//! exhaustive over these rules and in a fixed order, except [`pack`], which says what it proved.

mod conflict;
mod drawing;
mod layout;
mod names;
mod nearest;
mod pack;
mod profile;
mod space;
mod table;
#[cfg(test)]
#[cfg(feature = "catalog")]
mod tests;
mod transition;

pub use conflict::{Conflict, Engine, EngineShort, conflict};
pub use drawing::draw;
pub use layout::{Demand, NoLayout, Placed, in_words, is_legal, open_placements, place};
pub use names::{label_gb, names_for_total};
pub use nearest::nearest_layouts;
pub use pack::{PackedGpus, Packing, Usage, pack};
pub use profile::{Attribute, Attributes, MigProfile, MigProfileError};
pub use space::{is_maximal, layouts, maximal_layouts, room_left};
pub use table::{Engines, GiProfile, MigTable, Placement};
pub use transition::{Drain, Instance, ModeChange, Transition, transition};
