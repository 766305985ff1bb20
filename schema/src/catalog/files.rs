//! The embedded JSON, and reading it.

use indexmap::IndexMap;
use serde::de::DeserializeOwned;

/// A file of the catalog: its path under `schema/catalog/` and its text.
pub(super) type File = (&'static str, &'static str);

macro_rules! embedded {
    (
        documents { $($document:ident = $file:literal;)+ }
        rows { $($name:ident = [$($path:literal),+ $(,)?];)+ }
    ) => {
        $(pub(super) const $document: File =
            ($file, include_str!(concat!("../../catalog/", $file)));)+
        $(pub(super) const $name: &[File] =
            &[$(($path, include_str!(concat!("../../catalog/", $path)))),+];)+

        /// Every file.
        #[cfg(test)]
        pub(super) const ALL: &[&[File]] = &[$(&[$document],)+ $($name),+];
    };
}

embedded! {
    documents {
        SOURCES = "sources.json";
        SPOT = "spot.json";
        RULES = "rules.json";
    }
    rows {
        GPUS = [
            "gpus/volta.json",
            "gpus/turing.json",
            "gpus/ampere.json",
            "gpus/ada.json",
            "gpus/hopper.json",
            "gpus/blackwell.json",
            "gpus/rubin.json",
        ];
        MIG_TABLES = ["mig/ampere.json", "mig/hopper.json", "mig/blackwell.json"];
        MIG_COMPUTE = ["mig/compute.json"];
        MIG_PRODUCTS = ["mig/products.json"];
        SYSTEMS = [
            "systems/nvidia-dgx.json",
            "systems/nvidia-hgx.json",
            "systems/nvidia-nvl72.json",
            "systems/pcie.json",
        ];
        RACKS = ["racks.json"];
        CLOUDS = [
            "clouds/aws.json",
            "clouds/gcp.json",
            "clouds/azure.json",
            "clouds/oci.json",
            "clouds/coreweave.json",
        ];
        AFFINITY = ["affinity.json"];
        LINKS = ["links.json"];
        PRICES = ["prices.json"];
    }
}

/// A catalog file that does not parse: a bug of ours, since the files are embedded.
#[derive(Debug, thiserror::Error)]
#[error("catalog file {file}: {error}")]
pub struct CatalogError {
    file: &'static str,
    #[source]
    error: serde_json::Error,
}

/// Reads a file that is one document.
pub(super) fn document<T: DeserializeOwned>((file, text): File) -> Result<T, CatalogError> {
    serde_json::from_str(text).map_err(|error| CatalogError { file, error })
}

/// Reads the rows of all files, in their order.
pub(super) fn rows<T: DeserializeOwned>(files: &[File]) -> Result<Vec<T>, CatalogError> {
    let mut all = Vec::new();
    for (file, text) in files {
        let rows: Vec<T> =
            serde_json::from_str(text).map_err(|error| CatalogError { file, error })?;
        all.extend(rows);
    }
    Ok(all)
}

/// Rows by their key.
pub(super) fn keyed<K: std::hash::Hash + Eq, T>(
    rows: Vec<T>,
    key: impl Fn(&T) -> K,
) -> IndexMap<K, T> {
    rows.into_iter().map(|row| (key(&row), row)).collect()
}
