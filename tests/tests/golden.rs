//! Golden trees: the output of the example fleets, as users get it.
//!
//! `cargo xtask bless` writes them anew; read that diff before you commit it.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use fleetc_tests::{FLEETS, check_fleet, compiled, folder, repository};

#[test]
fn golden_trees_are_what_the_fleets_compile_to() {
    for (name, spec) in FLEETS {
        let actual = compiled(&check_fleet(spec).unwrap()).unwrap();
        let golden = folder(&repository().join("tests/golden").join(name)).unwrap();
        let paths = |tree: &fleetc_tests::Texts| tree.keys().cloned().collect::<Vec<_>>();
        assert_eq!(paths(&actual), paths(&golden), "{name}: files differ; cargo xtask bless");
        for (path, text) in &actual {
            assert_eq!(Some(text), golden.get(path), "{name}/{path} differs; cargo xtask bless");
        }
    }
}
