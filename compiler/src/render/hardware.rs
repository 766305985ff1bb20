//! The hardware catalog as lists and entries, as text and as JSON (`fleetc/catalog/v1`).

use fleetc_schema::catalog::{Architecture, Catalog, Cloud, CloudShape, Gpu, PriceUnit};
use fleetc_schema::units::{Bytes, Mib};
use fleetc_targets::write::json;
use serde::Serialize;

/// The schema tag of the document.
pub const SCHEMA: &str = "fleetc/catalog/v1";

/// Which rows are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Architecture, or product family.
    pub family: Option<Kin>,
    /// Memory of a GPU, at least.
    pub min_memory: Option<Bytes>,
    /// With MIG.
    pub mig: bool,
    /// With NVLink.
    pub nvlink: bool,
    /// Shapes of this cloud.
    pub cloud: Option<Cloud>,
    /// Millionths of a dollar for a GPU-hour, at most: rows without a price are left out.
    pub max_price: Option<u64>,
}

/// What GPUs have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kin {
    /// Their architecture, such as Hopper.
    Architecture(Architecture),
    /// Their product family, such as H100; in any case.
    Family(String),
}

impl Kin {
    fn has(&self, gpu: &Gpu) -> bool {
        match self {
            Self::Architecture(architecture) => *architecture == gpu.architecture,
            Self::Family(name) => {
                gpu.family.value.as_ref().is_some_and(|f| f.name.eq_ignore_ascii_case(name))
            }
        }
    }
}

/// A row of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// `gpu`, `system`, `rack` or `shape`.
    pub kind: &'static str,
    /// Its key.
    pub key: String,
    /// Its GPU product.
    pub gpu: String,
    /// GPUs of a node or rack; none for a GPU.
    pub gpus: Option<u16>,
    /// Memory of a GPU in MiB, as NVML reports it.
    pub memory_mib: Option<u64>,
    /// True if the GPU has MIG; none if nobody knows.
    pub mig: Option<bool>,
    /// GPUs of the NVLink domain; 1 without NVLink.
    pub nvlink_domain: u16,
    /// Millionths of a dollar for a GPU-hour.
    pub price_micros: Option<u64>,
}

/// The document of the JSON form.
#[derive(Serialize)]
pub(super) struct Document<'a, T> {
    pub(super) schema: &'a str,
    pub(super) rows: T,
}

/// The rows that pass the filter: GPUs, systems, racks, then shapes.
pub fn rows(catalog: &Catalog, filter: &Filter) -> Vec<Row> {
    let mut rows = Vec::new();
    let row = |kind, key: &str, gpu: &Gpu, gpus, domain, price| Row {
        kind,
        key: key.to_owned(),
        gpu: gpu.key.to_string(),
        gpus,
        memory_mib: gpu.nvml_total_mib.value,
        mig: gpu.mig.capable,
        nvlink_domain: domain,
        price_micros: price,
    };
    let of = |key: &str| catalog.gpu(key).filter(|gpu| passes(gpu, filter));
    if filter.cloud.is_none() && filter.max_price.is_none() {
        for gpu in catalog.gpus.values().filter(|gpu| passes(gpu, filter)) {
            rows.push(row("gpu", gpu.key.as_str(), gpu, None, gpu.nvlink.max_domain, None));
        }
        for system in catalog.systems.values() {
            if let Some(gpu) = of(system.gpu.as_str()) {
                let count = Some(u16::from(system.gpus_per_node));
                let key = system.key.as_str();
                rows.push(row("system", key, gpu, count, system.nvlink_domain, None));
            }
        }
        for rack in catalog.racks.values() {
            let tray = catalog.systems.get(&rack.tray);
            if let Some(gpu) = tray.and_then(|tray| of(tray.gpu.as_str())) {
                let gpus = rack.gpus_per_rack.saturating_mul(u16::from(rack.racks));
                rows.push(row(
                    "rack",
                    rack.key.as_str(),
                    gpu,
                    Some(gpus),
                    rack.nvlink_domain,
                    None,
                ));
            }
        }
    }
    for shape in catalog.cloud_shapes.values() {
        let price = gpu_hour(shape);
        let wanted = filter.cloud.is_none_or(|cloud| cloud == shape.cloud)
            && filter.max_price.is_none_or(|most| price.is_some_and(|price| price <= most));
        if let (true, Some(gpu)) = (wanted, of(shape.gpu.as_str())) {
            let count = Some(u16::from(shape.gpus_per_node));
            let key = shape.key.as_str();
            rows.push(row("shape", key, gpu, count, shape.nvlink_domain, price));
        }
    }
    rows
}

fn passes(gpu: &Gpu, filter: &Filter) -> bool {
    let memory = gpu.nvml_total_mib.value.map(|mib| Mib(mib).to_bytes());
    filter.family.as_ref().is_none_or(|kin| kin.has(gpu))
        && filter.min_memory.is_none_or(|least| memory.is_some_and(|memory| memory >= least))
        && (!filter.mig || gpu.has_mig())
        && (!filter.nvlink || gpu.nvlink.links.is_some_and(|links| links > 0))
}

/// The price of a GPU-hour, from that of a node-hour.
fn gpu_hour(shape: &CloudShape) -> Option<u64> {
    let price = shape.price.as_ref()?;
    match price.per {
        PriceUnit::GpuHour => Some(price.micros),
        PriceUnit::NodeHour => price.micros.checked_div(u64::from(shape.gpus_per_node)),
        PriceUnit::GpuYear | PriceUnit::Gpu5Years => None,
    }
}

/// A list as text.
pub fn list(rows: &[Row]) -> String {
    let mut text = String::new();
    let width = rows.iter().map(|row| row.key.len()).max().unwrap_or(0);
    let mut kind = "";
    for row in rows {
        if row.kind != kind {
            kind = row.kind;
            let head = match kind {
                "gpu" => "GPUs",
                "system" => "Systems",
                "rack" => "Racks",
                _ => "Cloud shapes",
            };
            let blank = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{blank}{head}\n"));
        }
        let memory = row.memory_mib.map_or("memory unknown".to_owned(), |m| Mib(m).to_string());
        let mig = match row.mig {
            Some(true) => "MIG",
            Some(false) => "",
            None => "MIG unknown",
        };
        let nvlink = match row.nvlink_domain {
            0 | 1 => String::new(),
            domain => format!("NVLink {domain}"),
        };
        let what = match row.gpus {
            Some(count) => format!("{count} × {}", row.gpu),
            None => String::new(),
        };
        let price = row.price_micros.map(|micros| format!("{} USD/gpu-hour", usd(micros)));
        let line = format!(
            "  {:width$}  {:26}  {:11}  {:11}  {:10}  {}",
            row.key,
            what,
            memory,
            mig,
            nvlink,
            price.unwrap_or_default()
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn usd(micros: u64) -> String {
    let cents = (micros + 5_000) / 10_000;
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// A list as JSON.
pub fn list_json(rows: &[Row]) -> String {
    json::pretty(&Document { schema: SCHEMA, rows })
}
