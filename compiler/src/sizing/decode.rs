//! How fast one sequence can decode: each token reads all weights that it uses once.
//!
//! An upper bound: the cache, collectives and the engine only make it slower. Tensor parallel ranks
//! read at the same time, pipeline stages one after the other.

use fleetc_schema::intent::Model;
use fleetc_schema::units::Bytes;

/// Bytes of weights that a token reads: of a mixture of experts, only those of the active ones.
pub fn read_per_token(model: &Model) -> Bytes {
    let params = model.active_params.unwrap_or(model.params);
    let bits = u128::from(params.0) * u128::from(model.dtype.bits());
    Bytes(u64::try_from(bits.div_ceil(8)).unwrap_or(u64::MAX))
}

/// Tokens a second of one sequence at most, in tenths, rounded; `rate` is in bytes a second.
pub fn decode_bound(rate: u64, read: Bytes) -> u64 {
    let read = u128::from(read.0.max(1));
    u64::try_from((u128::from(rate) * 10 + read / 2) / read).unwrap_or(u64::MAX)
}

/// True if so many tokens a second can be read at this rate.
pub fn fits_rate(tokens_per_second: u32, rate: u64, read: Bytes) -> bool {
    u128::from(tokens_per_second) * u128::from(read.0) <= u128::from(rate)
}
