//! `fleetc mig`.

use std::io::Write;

use fleetc_schema::catalog::{Architecture, Catalog, Gpu, MigTableRow};
use fleetc_schema::mig::{Demand, MigProfile, place};
use fleetc_schema::version::Version;

use super::args::{Format, MigArgs};
use super::catalog::unknown;
use super::{CheckError, CommandError, FAILED, OK, Outcome};
use crate::language::listing;
use crate::lower::{MissingProfile, missing_profile};
use crate::render::mig::{self, Answer, Subject};

/// The word for MIG mode off, in place of a layout.
const OFF: &str = "off";

/// Draws a layout, lists layouts, packs a mix, or shows a transition.
pub fn run(args: &MigArgs, out: &mut dyn Write) -> Outcome {
    let catalog = Catalog::embedded().map_err(CheckError::from)?;
    let gpu = find_gpu(catalog, &args.gpu)?;
    let driver = driver(args.driver.as_deref())?;
    let mut subject = Subject::new(catalog, gpu, table(catalog, gpu)?, driver.as_ref());
    let off = args.slices.iter().any(|slice| slice == OFF);
    if off && (args.slices.len() > 1 || args.from.is_none() || args.gpus.is_some()) {
        let why = "write what the GPU has now: `off --from 3g.40gb=2`";
        return Err(CommandError::Other(format!("`off` is MIG mode off and no slice: {why}")));
    }
    let slices: &[String] = if off { &[] } else { &args.slices };
    let demands = demands(&mut subject, slices)?;
    let answer = match (&args.from, args.gpus) {
        (Some(from), _) => transition(&mut subject, from, (!off).then_some(demands.as_slice()))?,
        (None, Some(gpus)) => mig::packing(&subject, &demands, gpus),
        (None, None) if args.list => mig::list(&subject),
        (None, None) if demands.is_empty() => mig::profiles(&subject),
        (None, None) => mig::layout(&subject, &demands),
    };
    let text = match args.format {
        Format::Json => &answer.json,
        _ => &answer.text,
    };
    write!(out, "{text}")?;
    Ok(if answer.fits { OK } else { FAILED })
}

fn driver(text: Option<&str>) -> Result<Option<Version>, CommandError> {
    let wrong =
        |text| CommandError::Other(format!("--driver {text}: write its version, as 580.105.08"));
    text.map(|text| text.parse().map_err(|_| wrong(text))).transpose()
}

/// A GPU by its key, or that of a system.
fn find_gpu<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Gpu, CommandError> {
    let of_system = || catalog.gpu(catalog.system(name)?.gpu.as_str());
    catalog.gpu(name).or_else(of_system).ok_or_else(|| unknown(catalog, name))
}

fn table<'a>(catalog: &'a Catalog, gpu: &'a Gpu) -> Result<&'a MigTableRow, CommandError> {
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
    subject: &mut Subject<'a>,
    slices: &[String],
) -> Result<Vec<Demand<'a>>, CommandError> {
    let mut demands: Vec<Demand<'a>> = Vec::new();
    for text in slices {
        let (name, count) = text.split_once('=').unwrap_or((text, "1"));
        let Ok(count) = count.parse::<u32>() else {
            return Err(CommandError::Other(format!("`{text}`: write `3g.40gb=2`")));
        };
        let parsed: Option<MigProfile> = name.parse().ok();
        let Some(profile) = parsed.and_then(|name| subject.profile(&name)) else {
            let hint = match missing_profile(name, subject.row) {
                MissingProfile::ComputeInstance { of } => {
                    format!("it is a compute instance of `{of}`, and layouts are of GPU instances")
                }
                MissingProfile::Near(near) => format!("did you mean `{near}`?"),
                MissingProfile::Unknown => {
                    let profiles = subject.row.table.profiles.iter();
                    let names: Vec<String> = profiles.map(|p| p.name.to_string()).collect();
                    format!("it has {}", listing(names.iter().map(String::as_str)))
                }
            };
            return Err(CommandError::Other(format!(
                "{} has no profile `{name}`: {hint}",
                subject.gpu.key
            )));
        };
        match demands.iter_mut().find(|demand| demand.profile.id == profile.id) {
            Some(demand) => demand.count = demand.count.saturating_add(count),
            None => demands.push(Demand { profile, count }),
        }
    }
    Ok(demands)
}

fn transition<'a>(
    subject: &mut Subject<'a>,
    from: &str,
    to: Option<&[Demand<'a>]>,
) -> Result<Answer, CommandError> {
    let reset = subject.gpu.architecture == Architecture::Ampere;
    let off = from == OFF;
    let slices: Vec<String> = match off {
        true => Vec::new(),
        false => from.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect(),
    };
    let now = demands(subject, &slices)?;
    let Ok(now) = place(&subject.row.table, &now) else {
        return Err(CommandError::Other(format!("--from {from}: this layout does not fit itself")));
    };
    let now = (!off).then_some(now.as_slice());
    let way = mig::change(subject, now, to, reset);
    Ok(way.unwrap_or_else(|| mig::layout(subject, to.unwrap_or_default())))
}
