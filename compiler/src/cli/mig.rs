//! `fleetc mig`.

use std::io::Write;

use fleetc_schema::catalog::{Architecture, Catalog, Gpu, MigTableRow};
use fleetc_schema::mig::{Demand, MigProfile, place};

use super::args::{Format, MigArgs};
use super::catalog::unknown;
use super::{CheckError, CommandError, FAILED, OK, Outcome};
use crate::language::listing;
use crate::lower::{MissingProfile, missing_profile};
use crate::render::mig::{self, Answer};

/// Draws a layout, lists layouts, packs a mix, or shows a transition.
pub fn run(args: &MigArgs, out: &mut dyn Write) -> Outcome {
    let catalog = Catalog::embedded().map_err(CheckError::from)?;
    let gpu = find_gpu(catalog, &args.gpu)?;
    let row = table(catalog, gpu)?;
    let demands = demands(gpu, row, &args.slices)?;
    let answer = match (&args.from, args.gpus) {
        (Some(from), _) => transition(gpu, row, from, &demands)?,
        (None, Some(gpus)) => mig::packing(gpu, row, &demands, gpus),
        (None, None) if args.list => mig::list(gpu, row),
        (None, None) if demands.is_empty() => mig::profiles(gpu, row),
        (None, None) => mig::layout(gpu, row, &demands),
    };
    let text = match args.format {
        Format::Json => &answer.json,
        _ => &answer.text,
    };
    write!(out, "{text}")?;
    Ok(if answer.fits { OK } else { FAILED })
}

/// A GPU by its key, or that of a system.
fn find_gpu<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Gpu, CommandError> {
    let of_system = || catalog.gpu(catalog.system(name)?.gpu.as_str());
    catalog.gpu(name).or_else(of_system).ok_or_else(|| unknown(catalog, name))
}

fn table<'a>(catalog: &'a Catalog, gpu: &Gpu) -> Result<&'a MigTableRow, CommandError> {
    let key = &gpu.key;
    catalog.mig_table_of(gpu).ok_or_else(|| {
        CommandError::Other(match gpu.mig.capable {
            Some(false) => format!("{key} has no MIG"),
            Some(true) => format!("{key} has MIG, but the catalog does not know its profiles"),
            None => format!("whether {key} has MIG is not known"),
        })
    })
}

/// `3g.40gb=2`, or `3g.40gb` for one.
fn demands<'a>(
    gpu: &Gpu,
    row: &'a MigTableRow,
    slices: &[String],
) -> Result<Vec<Demand<'a>>, CommandError> {
    let mut demands: Vec<Demand<'a>> = Vec::new();
    for text in slices {
        let (name, count) = text.split_once('=').unwrap_or((text, "1"));
        let Ok(count) = count.parse::<u32>() else {
            return Err(CommandError::Other(format!("`{text}`: write `3g.40gb=2`")));
        };
        let names: Vec<String> = row.table.profiles.iter().map(|p| p.name.to_string()).collect();
        let known = || names.iter().map(String::as_str);
        let profile = name.parse::<MigProfile>().ok().and_then(|name| row.profile(&name));
        let Some(profile) = profile else {
            let hint = match missing_profile(name, row) {
                MissingProfile::ComputeInstance { of } => {
                    format!("it is a compute instance of `{of}`, and layouts are of GPU instances")
                }
                MissingProfile::Near(near) => format!("did you mean `{near}`?"),
                MissingProfile::Unknown => format!("it has {}", listing(known())),
            };
            return Err(CommandError::Other(format!(
                "{} has no profile `{name}`: {hint}",
                gpu.key
            )));
        };
        match demands.iter_mut().find(|demand| demand.profile.id == profile.id) {
            Some(demand) => demand.count = demand.count.saturating_add(count),
            None => demands.push(Demand { profile, count }),
        }
    }
    Ok(demands)
}

fn transition(
    gpu: &Gpu,
    row: &MigTableRow,
    from: &str,
    to: &[Demand<'_>],
) -> Result<Answer, CommandError> {
    let reset = gpu.architecture == Architecture::Ampere;
    let off = from == "off";
    let slices: Vec<String> = match off {
        true => Vec::new(),
        false => from.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect(),
    };
    let now = demands(gpu, row, &slices)?;
    let Ok(now) = place(&row.table, &now) else {
        return Err(CommandError::Other(format!("--from {from}: this layout does not fit itself")));
    };
    let now = (!off).then_some(now.as_slice());
    match mig::change(gpu, row, now, to, reset) {
        Some(answer) => Ok(answer),
        None => Ok(mig::layout(gpu, row, to)),
    }
}
