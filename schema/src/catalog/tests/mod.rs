//! Tests of the catalog as a whole.

mod lookup;
mod mig;
mod names;
mod references;
mod vectors;

use super::Catalog;

fn catalog() -> &'static Catalog {
    Catalog::embedded().unwrap()
}
