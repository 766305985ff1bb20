//! A MIG table that the fleet states of a GPU of its own.

use std::collections::BTreeMap;

use fleetc_schema::catalog::Gpu;
use fleetc_schema::diag::{Diagnostic, Span, rules};
use fleetc_schema::mig::{Engines, GiProfile, MigTable};

use crate::language::{Cx, kinds};

/// Lowers a table. None if it contradicts itself or the GPU; every mistake is reported.
pub fn lower(stated: &kinds::OwnMigTable, gpu: &Gpu, cx: &mut Cx) -> Option<MigTable> {
    let memory_slices = slices(stated.memory_slices.as_ref()?.value.0);
    let compute_slices = slices(stated.compute_slices.as_ref()?.value.0);
    let mut is_right = true;
    if gpu.mig.capable == Some(false) {
        let title = format!("a MIG table of `{}`, which has no MIG", gpu.key);
        let finding = Diagnostic::new(&rules::MIG_WRONG_TABLE, title)
            .at(stated.span, "says how it can be cut");
        cx.report(finding.help("remove it, or say `mig #true`"));
        is_right = false;
    }
    if stated.profiles.is_empty() {
        let finding = Diagnostic::new(&rules::MIG_WRONG_TABLE, "a MIG table without a profile")
            .at(stated.span, "nothing can be cut");
        cx.report(finding.help("add a `profile` for each row of `nvidia-smi mig -lgip`"));
        is_right = false;
    }
    let mut profiles = Vec::new();
    let mut ids: BTreeMap<u32, Span> = BTreeMap::new();
    for profile in &stated.profiles {
        match lower_profile(profile, (memory_slices, compute_slices), &mut ids, cx) {
            Some(profile) => profiles.push(profile),
            None => is_right = false,
        }
    }
    let engine_totals = Engines::default();
    is_right.then_some(MigTable { memory_slices, compute_slices, engine_totals, profiles })
}

/// Counts of slices are at most 16.
fn slices(count: u32) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}

fn lower_profile(
    stated: &kinds::OwnProfile,
    (memory, compute): (u8, u8),
    ids: &mut BTreeMap<u32, Span>,
    cx: &mut Cx,
) -> Option<GiProfile> {
    let name = stated.arg.as_ref()?;
    let id = stated.id.as_ref()?;
    let size = stated.memory_slices.as_ref()?;
    let mut is_right = true;
    let mut report = |span: Span, label: String, title: String, help: String| {
        let finding = Diagnostic::new(&rules::MIG_WRONG_TABLE, title).at(span, label);
        cx.report(finding.help(help));
        is_right = false;
    };
    let written = &name.value;
    if written.is_compute_instance() {
        report(
            name.span,
            "names a compute instance".to_owned(),
            format!("`{written}` is no GPU instance"),
            format!("write `{}`", written.gpu_instance()),
        );
    } else if written.slices > compute {
        report(
            name.span,
            format!("takes {} compute slices", written.slices),
            format!("`{written}` does not fit on a GPU of {compute} compute slices"),
            "correct the name, or `compute-slices`".to_owned(),
        );
    }
    if let Some(first) = ids.insert(id.value.0, id.span) {
        let title = format!("two profiles have the id {}", id.value.0);
        let finding = Diagnostic::new(&rules::MIG_WRONG_TABLE, title)
            .at(id.span, "the same id")
            .at(first, "first stated here");
        cx.report(finding.help("ids are in the column ID of `nvidia-smi mig -lgip`"));
        return None;
    }
    let size_of = slices(size.value.0);
    let mut starts = Vec::new();
    for start in stated.starts.as_ref()? {
        let at = slices(start.value.0);
        if at.saturating_add(size_of) > memory {
            report(
                start.span,
                format!("takes the slices {at} to {}", at.saturating_add(size_of) - 1),
                format!("`{written}` cannot start at {at}: the GPU has {memory} memory slices"),
                "starts are in `nvidia-smi mig -lgipp`".to_owned(),
            );
        }
        starts.push(at);
    }
    starts.sort_unstable();
    starts.dedup();
    let most = most(&starts, size_of).min(compute / written.slices.max(1));
    let max_count = match &stated.count {
        Some(count) => slices(count.value.0).min(most),
        None => most,
    };
    is_right.then(|| GiProfile {
        name: written.clone(),
        id: id.value.0,
        nvml: format!("{}_SLICE", written.slices),
        memory_slices: size_of,
        max_count,
        starts,
        memory_mib: stated.memory.as_ref().map(|memory| memory.value.0 >> 20),
        sm: None,
        engines: Engines::default(),
    })
}

/// How many instances of one size stand side by side, given where they may start, in order: whichever
/// ends first goes first.
fn most(starts: &[u8], size: u8) -> u8 {
    let (mut count, mut free) = (0_u8, 0_u8);
    for start in starts {
        if *start >= free {
            count = count.saturating_add(1);
            free = start.saturating_add(size);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_of_one_size_stand_side_by_side() {
        // H100: 1g.20gb starts at 0, 2, 4, 6; 4g at 0; 3g at 0 and 4.
        assert_eq!(most(&[0, 2, 4, 6], 2), 4);
        assert_eq!(most(&[0], 4), 1);
        assert_eq!(most(&[0, 4], 4), 2);
        // Starts that overlap: 0-2 and 3-5.
        assert_eq!(most(&[0, 1, 2, 3], 3), 2);
    }
}
