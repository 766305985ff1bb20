//! See `properties::ALL` in the tests.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fleetc_tests::properties::run("nvidia_smi", bytes));
