//! What a workload needs of a GPU: memory from its model, and how fast it can decode.
//!
//! Integers only. Each term keeps its arithmetic, so that a finding can show where a number comes
//! from. What nobody stated is unknown: a sum without it is a lower bound, and an error may rest on
//! that, never on a guess.

mod decode;
mod model;
mod place;
#[cfg(test)]
mod tests;

pub use decode::{decode_bound, fits_rate, read_per_token};
pub use model::{Derived, Need, Term, derive, most_sequences, need};
pub use place::{Place, place, resource};

use fleetc_schema::units::{Bytes, Mib};

/// An amount as people read it: GiB, or MiB below a tenth of one.
pub fn amount(bytes: Bytes) -> String {
    const TENTH_OF_GIB: u64 = 103;
    let mib = bytes.to_mib_ceil();
    if mib.0 < TENTH_OF_GIB { format!("{} MiB", mib.0) } else { mib.to_string() }
}

/// How much of `size` is `part`, as `76.7 %`: a tenth at most is lost.
pub fn percent(part: Bytes, size: Mib) -> String {
    let size = u128::from(size.to_bytes().0.max(1));
    let tenths = (u128::from(part.0) * 1000 + size / 2) / size;
    match tenths % 10 {
        0 => format!("{} %", tenths / 10),
        rest => format!("{}.{rest} %", tenths / 10),
    }
}

/// True if `part` leaves a tenth of `size` free. The headroom is a choice of ours: room for the
/// runtime, activations and fragmentation.
pub fn leaves_headroom(part: Bytes, size: Mib) -> bool {
    u128::from(part.0) * 10 <= u128::from(size.to_bytes().0) * 9
}
