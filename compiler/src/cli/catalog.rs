//! `fleetc catalog`.

use std::collections::BTreeSet;
use std::io::Write;

use fleetc_schema::catalog::{Architecture, Catalog, Cloud};
use fleetc_schema::units::{Bytes, GpuHourPrice};

use super::args::{CatalogArgs, Format};
use super::{CheckError, CommandError, OK, Outcome};
use crate::language::{did_you_mean, listing};
use crate::render::entry;
use crate::render::hardware::{self, Filter, Kin};

/// Lists the catalog, or shows an entry.
pub fn run(args: &CatalogArgs, out: &mut dyn Write) -> Outcome {
    let catalog = Catalog::embedded().map_err(CheckError::from)?;
    if let Some(name) = &args.name {
        let text = match args.format {
            Format::Json => entry::entry_json(catalog, name),
            _ => entry::entry(catalog, name),
        };
        return match text {
            Some(text) => {
                write!(out, "{text}")?;
                Ok(OK)
            }
            None => Err(unknown(catalog, name)),
        };
    }
    let rows = hardware::rows(catalog, &filter(catalog, args)?);
    let text = match args.format {
        Format::Json => hardware::list_json(&rows),
        _ => hardware::list(&rows),
    };
    write!(out, "{text}")?;
    Ok(OK)
}

fn filter(catalog: &Catalog, args: &CatalogArgs) -> Result<Filter, CommandError> {
    let wrong = |what: &str, text: &str, why: String| {
        CommandError::Other(format!("--{what} {text}: {why}"))
    };
    let family = match &args.family {
        None => None,
        Some(text) => {
            let value = serde_json::Value::String(text.to_ascii_lowercase());
            let architecture: Result<Architecture, _> = serde_json::from_value(value);
            let families = catalog.gpus.values().filter_map(|gpu| gpu.family.value.as_ref());
            let names: BTreeSet<&str> = families.map(|family| family.name.as_str()).collect();
            let kin = match architecture {
                Ok(architecture) => Kin::Architecture(architecture),
                Err(_) if names.iter().any(|name| name.eq_ignore_ascii_case(text)) => {
                    Kin::Family(text.clone())
                }
                Err(_) => {
                    let known = "volta, turing, ampere, ada, hopper, blackwell or rubin";
                    let why = format!("one of {known}, or a family: {}", listing(names));
                    return Err(wrong("family", text, why));
                }
            };
            Some(kin)
        }
    };
    let cloud = match &args.cloud {
        None => None,
        Some(text) => {
            let value = serde_json::Value::String(text.to_ascii_lowercase());
            let cloud: Result<Cloud, _> = serde_json::from_value(value);
            let known = "one of aws, gcp, azure, oci or coreweave".to_owned();
            Some(cloud.map_err(|_| wrong("cloud", text, known))?)
        }
    };
    let min_memory = match &args.min_memory {
        None => None,
        Some(text) => {
            let memory: Result<Bytes, _> = text.parse();
            Some(memory.map_err(|error| wrong("min-memory", text, error.to_string()))?)
        }
    };
    let max_price = match &args.max_price {
        None => None,
        Some(text) => {
            let price: Result<GpuHourPrice, _> = format!("{text} USD/gpu-hour").parse();
            let price =
                price.map_err(|_| wrong("max-price", text, "a number of dollars".into()))?;
            Some(price.0)
        }
    };
    Ok(Filter { family, min_memory, mig: args.mig, nvlink: args.nvlink, cloud, max_price })
}

/// The catalog has no such key: near ones, or the products of a line.
pub fn unknown(catalog: &Catalog, name: &str) -> CommandError {
    let keys = || {
        let gpus = catalog.gpus.keys().map(|key| key.as_str());
        let racks = catalog.racks.keys().map(|key| key.as_str());
        gpus.chain(catalog.system_keys().map(|key| key.as_str())).chain(racks)
    };
    let line = format!("{}-", name.to_ascii_lowercase());
    let products: Vec<&str> = keys().filter(|key| key.starts_with(&line)).collect();
    let shape = catalog.shape_named(name).map(|shape| shape.key.as_str());
    let hint = match (products.is_empty(), shape.or_else(|| did_you_mean(name, keys()))) {
        (false, _) => format!("its products are {}", listing(products)),
        (true, Some(near)) => format!("did you mean `{near}`?"),
        (true, None) => "`fleetc catalog` lists it".to_owned(),
    };
    CommandError::Other(format!("the catalog has no `{name}`: {hint}"))
}
