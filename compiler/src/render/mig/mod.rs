//! Answers of `fleetc mig`: layouts drawn, or why not; lists; packings; transitions. As text and as
//! JSON (`fleetc/mig/v1`).

mod subject;

pub use subject::{Renamed, Subject};

use fleetc_schema::catalog::Gpu;
use fleetc_schema::mig::{
    Demand, Drain, Instance, ModeChange, NoLayout, Packing, Placed, Transition, Usage, conflict,
    draw, in_words, maximal_layouts, nearest_layouts, open_placements, pack, place, room_left,
    transition,
};
use fleetc_schema::units::Mib;
use serde::Serialize;
use subject::{JsonMissing, JsonRenamed, other_names};

/// The schema tag of the document.
pub const SCHEMA: &str = "fleetc/mig/v1";

/// An answer: what is printed, and whether what was asked for can be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// For people.
    pub text: String,
    /// For tools.
    pub json: String,
    /// False if it cannot be had.
    pub fits: bool,
}

#[derive(Serialize, Default)]
struct Document<'a> {
    schema: &'a str,
    gpu: &'a str,
    fits: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    profiles: Vec<JsonProfile<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    placed: Vec<JsonPlaced>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    room: Vec<JsonCount>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    layouts: Vec<Vec<JsonCount>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packing: Option<JsonPacking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transition: Option<JsonTransition>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    renamed: Vec<JsonRenamed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<JsonMissing>,
}

#[derive(Serialize)]
struct JsonProfile<'a> {
    name: String,
    id: u32,
    memory_slices: u8,
    starts: &'a [u8],
    max_count: u8,
    memory_mib: Option<u64>,
    other_names: Vec<String>,
}

#[derive(Serialize)]
struct JsonPlaced {
    profile: String,
    profile_id: u32,
    start: u8,
    size: u8,
}

#[derive(Serialize)]
struct JsonCount {
    profile: String,
    count: u32,
}

#[derive(Serialize)]
struct JsonPacking {
    gpus: Vec<JsonPacked>,
    unserved: Vec<JsonCount>,
    memory_slices: JsonUsage,
    compute_slices: JsonUsage,
    proved: bool,
}

#[derive(Serialize)]
struct JsonPacked {
    gpus: u32,
    layout: Vec<JsonCount>,
}

#[derive(Serialize)]
struct JsonUsage {
    used: u64,
    total: u64,
    stranded: u64,
}

#[derive(Serialize)]
struct JsonTransition {
    keep: Vec<JsonPlaced>,
    destroy: Vec<JsonPlaced>,
    create: Vec<JsonPlaced>,
    mode: Option<&'static str>,
    needs_reset: bool,
    drain: &'static str,
}

fn counts(demands: &[Demand<'_>]) -> Vec<JsonCount> {
    let some = demands.iter().filter(|demand| demand.count > 0);
    some.map(|d| JsonCount { profile: d.profile.name.to_string(), count: d.count }).collect()
}

fn placed_json(placed: &[Placed<'_>]) -> Vec<JsonPlaced> {
    placed
        .iter()
        .map(|(profile, at)| JsonPlaced {
            profile: profile.name.to_string(),
            profile_id: profile.id,
            start: at.start,
            size: at.size,
        })
        .collect()
}

fn document<'a>(gpu: &'a Gpu, fits: bool) -> Document<'a> {
    Document { schema: SCHEMA, gpu: gpu.key.as_str(), fits, ..Document::default() }
}

/// The profiles of a GPU.
pub fn profiles(subject: &Subject<'_>) -> Answer {
    let Subject { gpu, row, .. } = subject;
    let mut text = format!(
        "{}: {} memory slices, {} compute slices\n",
        gpu.key, row.table.memory_slices, row.table.compute_slices
    );
    let mut document = document(gpu, true);
    for profile in &row.table.profiles {
        let memory = profile.memory_mib.map_or("memory unknown".to_owned(), |m| Mib(m).to_string());
        let starts: Vec<String> = profile.starts.iter().map(ToString::to_string).collect();
        let names = other_names(row, profile);
        let others = match names.is_empty() {
            true => String::new(),
            false => format!("  some drivers: {}", names.join(", ")),
        };
        text.push_str(&format!(
            "  {:14} id {:<3} {:14} {} of {} memory slices, at {}; at most {}{others}\n",
            profile.name.to_string(),
            profile.id,
            memory,
            profile.memory_slices,
            row.table.memory_slices,
            starts.join(" "),
            profile.max_count,
        ));
        document.profiles.push(JsonProfile {
            name: profile.name.to_string(),
            id: profile.id,
            memory_slices: profile.memory_slices,
            starts: &profile.starts,
            max_count: profile.max_count,
            memory_mib: profile.memory_mib,
            other_names: names,
        });
    }
    subject.answer(text, document)
}

/// A layout drawn, or why it cannot be had and what is nearest.
pub fn layout(subject: &Subject<'_>, demands: &[Demand<'_>]) -> Answer {
    let Subject { gpu, row, .. } = subject;
    let table = &row.table;
    match place(table, demands) {
        Ok(placed) => {
            let room = room_left(table, demands);
            let mut text = format!("{}: {} fits\n", gpu.key, in_words(demands));
            indent(&mut text, &draw(table, &placed));
            if !room.is_empty() {
                let room: Vec<String> = room.iter().map(ToString::to_string).collect();
                let moved = open_placements(table, &placed).is_empty();
                let moved = if moved { " if the others stand elsewhere" } else { "" };
                text.push_str(&format!("  room for {}{moved}\n", room.join(", or for ")));
            }
            let mut document = document(gpu, true);
            document.placed = placed_json(&placed);
            document.room = counts(&room);
            subject.answer(text, document)
        }
        Err(why) => {
            let mut text = format!("{}: {} does not fit\n", gpu.key, in_words(demands));
            if let Some(conflict) = conflict(table, demands) {
                indent(&mut text, &draw(table, &conflict.fits));
                text.push_str(&format!("  no room for {} beside that\n", in_words(&conflict.rest)));
                text.push_str(&format!("  conflict: {}\n", in_words(&conflict.between)));
            }
            text.push_str(&match why {
                NoLayout::TooManySlices { wanted, available } => {
                    format!("  it needs {wanted} memory slices, the GPU has {available}\n")
                }
                NoLayout::NoArrangement => {
                    "  the memory slices would do, but no choice of starts keeps them apart\n"
                        .into()
                }
                NoLayout::Engines => {
                    "  it could be placed, but the engines do not go round\n".into()
                }
            });
            let near = nearest_layouts(table, demands, 3);
            let words: Vec<String> = near.iter().map(|layout| in_words(layout)).collect();
            if !words.is_empty() {
                text.push_str(&format!("  nearest that fit: {}\n", words.join("  ·  ")));
            }
            let mut document = document(gpu, false);
            document.layouts = near.iter().map(|layout| counts(layout)).collect();
            subject.answer(text, document)
        }
    }
}

/// Every layout to which nothing can be added.
pub fn list(subject: &Subject<'_>) -> Answer {
    let Subject { gpu, row, .. } = subject;
    let layouts = maximal_layouts(&row.table);
    let mut text = format!("{}: {} layouts leave no room\n", gpu.key, layouts.len());
    for layout in &layouts {
        text.push_str(&format!("  {}\n", in_words(layout)));
    }
    let mut document = document(gpu, true);
    document.layouts = layouts.iter().map(|layout| counts(layout)).collect();
    subject.answer(text, document)
}

/// A mix of demands on several GPUs.
pub fn packing(subject: &Subject<'_>, demands: &[Demand<'_>], gpus: u32) -> Answer {
    let Subject { gpu, row, .. } = subject;
    let packing: Packing<'_> = pack(&row.table, demands, gpus);
    let fits = packing.unserved.is_empty();
    let mut text = format!("{} on {gpus} × {}\n", in_words(demands), gpu.key);
    for part in &packing.gpus {
        text.push_str(&format!("  {:>4} × {}\n", part.gpus, in_words(&part.layout)));
    }
    let usage = |name: &str, usage: Usage| {
        let percent = (usage.used * 100).checked_div(usage.total).unwrap_or(0);
        let stranded = match usage.stranded {
            0 => String::new(),
            stranded => format!(", {stranded} stranded: no profile asked for can use them"),
        };
        format!("  {name}: {} of {} used, {percent} %{stranded}\n", usage.used, usage.total)
    };
    text.push_str(&usage("memory slices", packing.memory));
    text.push_str(&usage("compute slices", packing.compute));
    if !fits {
        let best =
            if packing.proved { "no packing serves more" } else { "a better packing may exist" };
        text.push_str(&format!("  not served: {}; {best}\n", in_words(&packing.unserved)));
    }
    let usage = |u: Usage| JsonUsage { used: u.used, total: u.total, stranded: u.stranded };
    let mut document = document(gpu, fits);
    document.packing = Some(JsonPacking {
        gpus: packing
            .gpus
            .iter()
            .map(|part| JsonPacked { gpus: part.gpus, layout: counts(&part.layout) })
            .collect(),
        unserved: counts(&packing.unserved),
        memory_slices: usage(packing.memory),
        compute_slices: usage(packing.compute),
        proved: packing.proved,
    });
    subject.answer(text, document)
}

/// The way from one layout to another; on either side none is a GPU with MIG mode off. None if the
/// wanted layout cannot be placed.
pub fn change(
    subject: &Subject<'_>,
    from: Option<&[Placed<'_>]>,
    to: Option<&[Demand<'_>]>,
    mode_needs_reset: bool,
) -> Option<Answer> {
    let Subject { gpu, row, .. } = subject;
    let now: Option<Vec<Instance>> = from.map(|placed| {
        placed.iter().map(|(p, at)| Instance { profile_id: p.id, placement: *at }).collect()
    });
    let way: Transition<'_> = transition(&row.table, now.as_deref(), to, mode_needs_reset).ok()?;
    let goal = match to {
        None => "MIG mode off".to_owned(),
        Some([]) => "no instances".to_owned(),
        Some(to) => in_words(to),
    };
    let mut text = format!("{}: to {goal}\n", gpu.key);
    let name = |id: u32| {
        let profile = row.table.profiles.iter().find(|profile| profile.id == id);
        profile.map(|profile| profile.name.to_string()).unwrap_or_default()
    };
    let reset = if way.needs_reset { "takes a GPU reset" } else { "takes no GPU reset" };
    if way.mode == Some(ModeChange::Enable) {
        text.push_str(&format!("  MIG mode on: {reset}\n"));
    }
    for (profile, at) in &way.keep {
        text.push_str(&format!("  keep     {} at {}\n", profile.name, at.start));
    }
    for gone in &way.destroy {
        text.push_str(&format!(
            "  destroy  {} at {}\n",
            name(gone.profile_id),
            gone.placement.start
        ));
    }
    for (profile, at) in &way.create {
        text.push_str(&format!("  create   {} at {}\n", profile.name, at.start));
    }
    // The instances go before the mode does.
    if way.mode == Some(ModeChange::Disable) {
        text.push_str(&format!("  MIG mode off: {reset}\n"));
    }
    text.push_str(&match way.drain() {
        Drain::Nothing => "  nothing loses its work\n".to_owned(),
        Drain::Instances(count) if way.keep.is_empty() => {
            format!("  {}\n", lose_work(count))
        }
        Drain::Instances(count) => format!("  {}, the others go on\n", lose_work(count)),
        Drain::Gpu => "  everything on the GPU loses its work\n".to_owned(),
    });
    let mut document = document(gpu, true);
    document.transition = Some(JsonTransition {
        keep: placed_json(&way.keep),
        destroy: way
            .destroy
            .iter()
            .map(|gone| JsonPlaced {
                profile: name(gone.profile_id),
                profile_id: gone.profile_id,
                start: gone.placement.start,
                size: gone.placement.size,
            })
            .collect(),
        create: placed_json(&way.create),
        mode: way.mode.map(|mode| match mode {
            ModeChange::Enable => "on",
            ModeChange::Disable => "off",
        }),
        needs_reset: way.needs_reset,
        drain: match way.drain() {
            Drain::Nothing => "nothing",
            Drain::Instances(_) => "instances",
            Drain::Gpu => "gpu",
        },
    });
    Some(subject.answer(text, document))
}

fn lose_work(count: usize) -> String {
    match count {
        1 => "1 instance loses its work".to_owned(),
        _ => format!("{count} instances lose their work"),
    }
}

fn indent(text: &mut String, lines: &[String]) {
    for line in lines {
        text.push_str(&format!("  {line}\n"));
    }
}
