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

/// Blocks of the README that name a file of a golden tree are parts of it.
#[test]
fn the_readme_shows_what_is_written() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let mut shown = 0;
    for block in readme.split("\n```").skip(1).step_by(2) {
        let (info, text) = block.split_once('\n').unwrap();
        let Some((_, path)) = info.split_once(' ') else { continue };
        let golden = repository().join("tests/golden").join(path);
        let file = std::fs::read_to_string(&golden).unwrap_or_else(|e| panic!("{golden}: {e}"));
        assert!(file.contains(&format!("{text}\n")), "{path} does not hold:\n{text}");
        shown += 1;
    }
    assert!(shown >= 3, "{shown}");
}
