//! MIG layouts of a pool: profiles looked up, instances placed.

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::{Catalog, Gpu, MigProduct, MigTableRow};
use fleetc_schema::diag::{Diagnostic, Span, rules};
use fleetc_schema::intent::{GpuIndexes, GpuInstance, MigLayout, Slice};
use fleetc_schema::mig::{
    Demand, GiProfile, MigProfile, MigTable, NoLayout, conflict, draw, in_words, nearest_layouts,
    place,
};
use fleetc_schema::units::Mib;

use super::names::quoted;
use crate::language::{At, Cx, did_you_mean, kinds};

/// The layout of some GPUs, with placements.
#[derive(Debug, Clone)]
pub struct Placed {
    /// As it goes into the Intent.
    pub layout: MigLayout,
    /// The instances of each of these GPUs.
    pub instances: Vec<GpuInstance>,
    /// Its item.
    pub path: ItemPath,
}

/// What a layout is for.
#[derive(Debug, Clone, Copy)]
pub struct Board<'a> {
    /// The GPU product.
    pub gpu: &'a Gpu,
    /// GPUs of a node.
    pub count: u8,
    /// Where the pool says which system it is.
    pub system: Span,
}

/// What is known of the MIG of a product without a table.
fn known_of(product: &MigProduct) -> String {
    let mut text = format!("{} has MIG", product.product);
    if let Some(count) = product.max_instances {
        text.push_str(&format!(", {count} instances at most"));
    }
    if let Some(driver) = &product.min_driver.value {
        text.push_str(&format!(", since driver {driver}"));
    }
    text.push_str("; where they may stand is not known here");
    text
}

/// Lowers the layouts of a pool. None if any of them is wrong; every mistake is reported.
pub fn lower(
    sharing: &kinds::Sharing,
    board: Board<'_>,
    catalog: &Catalog,
    cx: &mut Cx,
) -> Option<Vec<Placed>> {
    let key = &board.gpu.key;
    if board.gpu.mig.capable == Some(false) {
        let title = format!("MIG on {key}, which has none");
        let finding = Diagnostic::new(&rules::MIG_NOT_CAPABLE, title)
            .at(sharing.span, "cannot be cut into slices")
            .at(board.system, format!("has {key} GPUs"));
        cx.report(finding.help("share it whole, or through `mps` or `time-slicing`"));
        return None;
    }
    let Some(table) = catalog.mig_table_of(board.gpu) else {
        let title = format!("the catalog has no MIG profiles of {key}");
        let finding = Diagnostic::new(&rules::MIG_NO_TABLE, title)
            .at(sharing.span, "cannot be placed without them")
            .at(board.system, format!("has {key} GPUs"));
        let finding = finding.note(catalog.mig_product_of(board.gpu).map_or_else(
            || "the GPU may well have MIG; where its instances may stand is not known here".into(),
            known_of,
        ));
        cx.report(finding.help(
            "share it whole, or state its profiles in the `mig-table` of a `gpu` of your own",
        ));
        return None;
    };
    let mut placed = Vec::new();
    let mut covered: Vec<(GpuIndexes, Span)> = Vec::new();
    let mut complete = true;
    for gpus in &sharing.gpus {
        let Some(indexes) = &gpus.arg else {
            complete = false;
            continue;
        };
        // What is wrong by itself says nothing about the others.
        match indexes_fit(indexes, board, &covered, cx) {
            true => covered.push((indexes.value.clone(), indexes.span)),
            false => complete = false,
        }
        match lower_one(gpus, &indexes.value, board, table, cx) {
            Some(layout) => placed.push(layout),
            None => complete = false,
        }
    }
    complete &= !complete || all_covered(sharing, board, &covered, cx);
    complete.then_some(placed)
}

fn indexes_fit(
    indexes: &At<GpuIndexes>,
    board: Board<'_>,
    covered: &[(GpuIndexes, Span)],
    cx: &mut Cx,
) -> bool {
    let count = board.count;
    if let Some(max) = indexes.value.last().filter(|max| *max >= count) {
        let title =
            format!("GPU {max} is out of range: a node has {count} GPUs, 0 to {}", count - 1);
        let finding = Diagnostic::new(&rules::CATALOG_EXCEEDS_SYSTEM, title)
            .at(indexes.span, "beyond the last GPU")
            .at(board.system, format!("{count} GPUs a node"));
        cx.report(finding.help(format!("numbers go from 0 to {}", count - 1)));
        return false;
    }
    let twice = covered.iter().find_map(|(other, span)| {
        Some((indexes.value.iter().find(|i| other.contains(*i))?, *span))
    });
    if let Some((gpu, first)) = twice {
        let title = format!("GPU {gpu} is laid out twice");
        let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, title)
            .at(indexes.span, "laid out again here")
            .at(first, "first laid out here");
        cx.report(finding.help("name each GPU in one `gpus`"));
        return false;
    }
    true
}

fn all_covered(
    sharing: &kinds::Sharing,
    board: Board<'_>,
    covered: &[(GpuIndexes, Span)],
    cx: &mut Cx,
) -> bool {
    let named = |gpu: u8| covered.iter().any(|(indexes, _)| indexes.contains(gpu));
    let unsaid = GpuIndexes::new((0..board.count).filter(|gpu| !named(*gpu)).collect());
    if unsaid.is_empty() {
        return true;
    }
    if cx.poisoned.contains(&sharing.path.child("gpus")) {
        return false;
    }
    let (which, verb) = match unsaid.len() {
        1 => ("GPU", "has"),
        _ => ("GPUs", "have"),
    };
    let title = format!("{which} {unsaid} {verb} no MIG layout");
    let finding = Diagnostic::new(&rules::MIG_UNCOVERED_GPU, title)
        .at(sharing.span, "does not name them")
        .note("mig-parted leaves a GPU as it is if no entry names it");
    cx.report(finding.help(format!("add `gpus \"{unsaid}\" {{ slice … }}`")));
    false
}

fn lower_one(
    gpus: &kinds::Gpus,
    indexes: &GpuIndexes,
    board: Board<'_>,
    row: &MigTableRow,
    cx: &mut Cx,
) -> Option<Placed> {
    let table = &row.table;
    let mut demands = Vec::new();
    let mut slices = Vec::new();
    let mut known = true;
    for slice in &gpus.slices {
        let (Some(name), Some(count)) = (&slice.arg, &slice.count) else {
            known = false;
            continue;
        };
        match row.profile(&name.value) {
            Some(profile) => {
                demands.push(Demand { profile, count: count.value.0 });
                slices.push(Slice { profile: name.value.clone(), count: count.value.0 });
            }
            None => {
                not_on_gpu(name, board, row, cx);
                cx.poison(&slice.path);
                known = false;
            }
        }
    }
    if !known {
        return None;
    }
    let path = gpus.path.clone();
    // A profile keeps the name that the author wrote: it is what that fleet's driver prints.
    let written = |profile: &GiProfile| {
        let index = demands.iter().position(|demand| demand.profile.id == profile.id);
        index.and_then(|index| slices.get(index)).map(|slice: &Slice| slice.profile.clone())
    };
    match place(table, &demands) {
        Ok(placed) => {
            let instances = placed.into_iter().map(|(profile, placement)| GpuInstance {
                profile: written(profile).unwrap_or_else(|| profile.name.clone()),
                profile_id: profile.id,
                placement,
                memory: profile.memory_mib.map(Mib),
            });
            let layout = MigLayout { gpus: indexes.clone(), slices: slices.clone() };
            Some(Placed { layout, instances: instances.collect(), path })
        }
        Err(why) => {
            no_placement(gpus, board, table, &demands, why, cx);
            cx.poison(&path);
            None
        }
    }
}

fn not_on_gpu(name: &At<MigProfile>, board: Board<'_>, row: &MigTableRow, cx: &mut Cx) {
    let key = &board.gpu.key;
    let written = name.value.to_string();
    let missing = missing_profile(&written, row);
    let title = match &missing {
        MissingProfile::ComputeInstance { of } => {
            format!("`{written}` is a compute instance of `{of}`, and slices are GPU instances")
        }
        MissingProfile::Near(_) | MissingProfile::Unknown => {
            format!("MIG profile `{written}` does not exist on {key}")
        }
    };
    let finding = Diagnostic::new(&rules::MIG_PROFILE_NOT_ON_GPU, title)
        .at(name.span, "no such profile")
        .at(board.system, format!("has {key} GPUs"));
    let finding = match missing {
        MissingProfile::ComputeInstance { of } => finding.help(format!("write `{of}`")),
        MissingProfile::Near(near) => finding.help(format!("did you mean `{near}`?")),
        MissingProfile::Unknown => finding,
    };
    let names = row.table.profiles.iter().map(|profile| &profile.name);
    cx.report(finding.help(format!("it has {}", quoted(names))));
}

/// What the name of a profile that a GPU does not have may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingProfile {
    /// A compute instance in a GPU instance that the GPU has.
    ComputeInstance {
        /// The GPU instance.
        of: MigProfile,
    },
    /// A profile that is near.
    Near(MigProfile),
    /// Nothing that is near.
    Unknown,
}

/// Looks for what is meant by the name of a profile that a GPU does not have. As many compute slices
/// come before likeness: whoever writes `3g.20gb` has another GPU in mind, on which `3g` is as much of it.
pub fn missing_profile(written: &str, row: &MigTableRow) -> MissingProfile {
    let name = written.parse::<MigProfile>().ok();
    let around = name.as_ref().filter(|name| name.is_compute_instance());
    if let Some(of) = around.and_then(|name| row.profile(&name.gpu_instance())) {
        return MissingProfile::ComputeInstance { of: of.name.clone() };
    }
    let profiles = &row.table.profiles;
    let alike = || {
        let names: Vec<String> = profiles.iter().map(|p| p.name.to_string()).collect();
        let near = did_you_mean(written, names.iter().map(String::as_str))?;
        profiles.iter().find(|profile| profile.name.to_string() == near)
    };
    let near = name.and_then(|name| row.table.nearest(&name)).or_else(alike);
    near.map_or(MissingProfile::Unknown, |near| MissingProfile::Near(near.name.clone()))
}

fn no_placement(
    gpus: &kinds::Gpus,
    board: Board<'_>,
    table: &MigTable,
    demands: &[Demand<'_>],
    why: NoLayout,
    cx: &mut Cx,
) {
    let key = &board.gpu.key;
    let title = format!("{} do not fit on one {key}", in_words(demands));
    let rule = match why {
        NoLayout::Engines => &rules::MIG_ENGINES_EXCEEDED,
        NoLayout::TooManySlices { .. } | NoLayout::NoArrangement => &rules::MIG_NO_PLACEMENT,
    };
    let mut finding = Diagnostic::new(rule, title);
    for (slice, demand) in gpus.slices.iter().zip(demands) {
        finding = finding.at(slice.span, needs(demand.profile, table));
    }
    let finding = match why {
        NoLayout::TooManySlices { wanted, available } => {
            finding.note(format!("they need {wanted} memory slices, the GPU has {available}"))
        }
        NoLayout::NoArrangement => {
            finding.note("the memory slices would do, but no choice of starts keeps them apart")
        }
        NoLayout::Engines => finding
            .note("they could be placed, but the GPU's media and copy engines do not go round"),
    };
    let finding = match conflict(table, demands) {
        Some(conflict) if !conflict.fits.is_empty() => {
            let left = in_words(&conflict.rest);
            let map = draw(table, &conflict.fits).join("\n");
            finding.note(format!("{left} finds no room beside the others:\n{map}"))
        }
        _ => finding,
    };
    let near: Vec<String> =
        nearest_layouts(table, demands, 3).iter().map(|layout| in_words(layout)).collect();
    cx.report(match near.is_empty() {
        true => finding,
        false => finding.help(format!("nearest that fit: {}", near.join("  ·  "))),
    });
}

fn needs(profile: &GiProfile, table: &MigTable) -> String {
    let starts: Vec<String> = profile.starts.iter().map(ToString::to_string).collect();
    let starts = match starts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => starts.join(""),
    };
    format!(
        "each takes {} of {} memory slices, starting at {starts}",
        profile.memory_slices, table.memory_slices
    )
}
