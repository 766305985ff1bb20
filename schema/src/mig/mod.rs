//! MIG geometry: profiles, where they may stand on a GPU, and whether a layout can be placed.

mod layout;
mod profile;
mod table;

pub use layout::{Demand, NoLayout, nearest_layouts, place};
pub use profile::{MigProfile, MigProfileError};
pub use table::{Engines, GiProfile, MigTable, Placement};
