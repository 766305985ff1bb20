//! The memory of a GPU: what failed in it, what waits for a reset, what grows.
//!
//! Rows are remapped since Ampere; before, pages were retired. Source: nvml.h, API 13; NVIDIA GPU Memory
//! Error Management, "Row Remapping" and "RMA Policy Thresholds".

use fleetc_schema::intent::GpuModel;

use super::node::{Node, growth, is_faster, mig_is_on, span};
use super::nvidia_smi;
use super::outcome::{Answer, Contrast, Outcome};
use crate::state::{GpuState, Reading, RemappedRows, RetiredPages};

/// Retired pages with which a GPU is a case for an RMA. Source: NVIDIA, "Dynamic Page Retirement".
const RETIRED_LIMIT: u32 = 60;

/// Memory in use without a process that is more than a driver keeps for itself, in MiB.
const LEAK_MIB: u64 = 1024;

/// Corrected errors a minute that are too many. Source: NVIDIA/DCGM, `dcgm_gpu_hardware_limits.h`,
/// `DCGM_LIMIT_MAX_SBE_RATE`, read 2026-11-30; DCGM itself calls it preliminary, so it never blocks.
const CORRECTED_A_MINUTE: u64 = 10;

const REPLACE: &str = "run the vendor's field diagnostics, and open an RMA";

/// Judges remapped rows, where the GPU has any. With GPU instances NVML does not tell.
fn remapped(
    model: &GpuModel,
    gpu: &GpuState,
    expected: &str,
    judge: impl Fn(&RemappedRows) -> Answer,
) -> Answer {
    if model.row_remap == Some(false) {
        return Answer::NotHere;
    }
    match &gpu.health.remapped_rows {
        Reading::Value(rows) => judge(rows),
        reading => {
            let unknown_product = model.row_remap.is_none();
            let is_expected = unknown_product || mig_is_on(gpu) == Some(true);
            Answer::unless_expected(is_expected, "remapped rows", reading, expected)
        }
    }
}

/// `remap.failure`.
pub(super) fn remap_failure(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |model, gpu| {
        let expected = "no failed remapping";
        remapped(model, gpu, expected, |rows| match rows.failure {
            false => Answer::Holds,
            true => Answer::Fails(
                Contrast::new(expected, "a row of memory could not be remapped").advise(REPLACE),
            ),
        })
    });
}

/// `remap.pending`.
pub(super) fn remap_pending(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |model, gpu| {
        let expected = "no row that waits to be remapped";
        remapped(model, gpu, expected, |rows| match rows.pending {
            false => Answer::Holds,
            true => Answer::Fails(
                Contrast::new(expected, "a row of memory waits for a reset")
                    .advise("drain the node")
                    .advise(nvidia_smi::apply_mode(gpu.bus_id)),
            ),
        })
    });
}

/// `remap.spare`.
pub(super) fn remap_spare(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |model, gpu| {
        let expected = "a spare row in every bank";
        if model.row_remap == Some(false) {
            return Answer::NotHere;
        }
        match &gpu.health.row_histogram {
            Reading::Value(banks) if banks.none == 0 => Answer::Holds,
            Reading::Value(banks) => Answer::Fails(
                Contrast::new(expected, format!("{} without one", banks_of(banks.none)))
                    .advise("plan the replacement: the next error there cannot be remapped"),
            ),
            reading => Answer::unless_expected(true, "banks", reading, expected),
        }
    });
}

fn banks_of(count: u32) -> String {
    super::node::counted(usize::try_from(count).unwrap_or(usize::MAX), "bank")
}

/// `remap.growth`.
pub(super) fn remap_growth(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |model, gpu| {
        let before = node.earlier(gpu).and_then(|gpu| gpu.health.remapped_rows.value());
        let Some(before) = before else { return Answer::NotHere };
        let total = |rows: &RemappedRows| rows.correctable.saturating_add(rows.uncorrectable);
        let when = node.earlier_when();
        let expected = format!("{} remapped rows, as {when}", total(before));
        remapped(model, gpu, &expected, |rows| match total(rows) > total(before) {
            false => Answer::Holds,
            true => Answer::Fails(
                Contrast::new(expected.as_str(), format!("{} remapped rows", total(rows)))
                    .advise("watch it: a GPU that goes on so runs out of spare rows"),
            ),
        })
    });
}

/// Judges retired pages, where the GPU has any.
fn retired(
    model: &GpuModel,
    gpu: &GpuState,
    expected: &str,
    judge: impl Fn(&RetiredPages) -> Answer,
) -> Answer {
    if model.row_remap != Some(false) {
        return Answer::NotHere;
    }
    match &gpu.health.retired_pages {
        Reading::Value(pages) => judge(pages),
        reading => Answer::unread("retired pages", reading, expected),
    }
}

/// `retired.pending`.
pub(super) fn retired_pending(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |model, gpu| {
        let expected = "no page that waits to be retired";
        retired(model, gpu, expected, |pages| match pages.pending {
            false => Answer::Holds,
            true => Answer::Fails(
                Contrast::new(expected, "a page of memory waits for a reboot")
                    .advise("drain the node, and reboot it"),
            ),
        })
    });
}

/// `retired.count`.
pub(super) fn retired_count(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |model, gpu| {
        let expected = format!("fewer than {RETIRED_LIMIT} retired pages");
        retired(model, gpu, &expected, |pages| {
            let count = pages.single_bit.saturating_add(pages.double_bit);
            match count < RETIRED_LIMIT {
                true => Answer::Holds,
                false => Answer::Fails(
                    Contrast::new(expected.as_str(), format!("{count} retired pages"))
                        .advise(REPLACE),
                ),
            }
        })
    });
}

/// True if ECC is off, so that nothing is counted.
fn ecc_is_off(gpu: &GpuState) -> bool {
    gpu.modes.ecc.value().is_some_and(|mode| !mode.current)
}

/// `ecc.uncorrected`.
pub(super) fn ecc_uncorrected(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let expected = "no uncorrected memory error since the driver was loaded";
        match &gpu.health.ecc_volatile {
            Reading::Value(counts) if counts.uncorrected == 0 => Answer::Holds,
            Reading::Value(counts) => Answer::Fails(
                Contrast::new(expected, format!("{} uncorrected", counts.uncorrected))
                    .advise("drain the node")
                    .advise(nvidia_smi::apply_mode(gpu.bus_id)),
            ),
            reading => Answer::unless_expected(ecc_is_off(gpu), "ECC counts", reading, expected),
        }
    });
}

/// `ecc.growth`.
pub(super) fn ecc_growth(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let before = node.earlier(gpu).and_then(|gpu| gpu.health.ecc_aggregate.value());
        let Some(before) = before else { return Answer::NotHere };
        let when = node.earlier_when();
        let expected = format!("{} uncorrected in its life, as {when}", before.uncorrected);
        match &gpu.health.ecc_aggregate {
            Reading::Value(counts) if counts.uncorrected <= before.uncorrected => Answer::Holds,
            Reading::Value(counts) => Answer::Fails(
                Contrast::new(expected, format!("{} uncorrected", counts.uncorrected))
                    .advise("watch it: memory that goes on so is a case for the vendor"),
            ),
            reading => Answer::unless_expected(ecc_is_off(gpu), "ECC counts", reading, expected),
        }
    });
}

/// `ecc.rate`: a corrected error does no harm. Many tell of a row that goes bad.
pub(super) fn ecc_rate(node: &Node<'_>, outcome: &mut Outcome) {
    let Some(age) = node.earlier_age() else { return };
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let before = node.earlier(gpu).and_then(|gpu| gpu.health.ecc_aggregate.value());
        let Some(before) = before else { return Answer::NotHere };
        let expected = format!("at most {CORRECTED_A_MINUTE} corrected errors a minute");
        let counts = match &gpu.health.ecc_aggregate {
            Reading::Value(counts) => counts,
            reading => {
                return Answer::unless_expected(ecc_is_off(gpu), "ECC counts", reading, expected);
            }
        };
        let count = growth(counts.corrected, before.corrected);
        match is_faster(count, CORRECTED_A_MINUTE, age) {
            false => Answer::Holds,
            true => {
                Answer::Fails(Contrast::new(expected, format!("{count} in {}", span(age))).advise(
                    "watch its remapped rows; run the vendor's field diagnostics if it goes on",
                ))
            }
        }
    });
}

/// `sram.threshold`.
pub(super) fn sram_threshold(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let expected = "SRAM errors below the threshold of an RMA";
        match &gpu.health.sram_threshold_exceeded {
            Reading::Value(false) => Answer::Holds,
            Reading::Value(true) => {
                Answer::Fails(Contrast::new(expected, "more errors than that").advise(REPLACE))
            }
            reading => Answer::unless_expected(true, "SRAM errors", reading, expected),
        }
    });
}

/// `repair.pending`.
pub(super) fn repair_pending(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let expected = "no repair that waits for a reset";
        match &gpu.health.repair_pending {
            Reading::Value(repair) if !repair.channel && !repair.tpc => Answer::Holds,
            Reading::Value(repair) => {
                let what = match (repair.channel, repair.tpc) {
                    (true, true) => "a memory channel and a TPC wait",
                    (true, false) => "a memory channel waits",
                    (false, _) => "a TPC waits",
                };
                Answer::Fails(
                    Contrast::new(expected, what)
                        .advise("drain the node")
                        .advise(nvidia_smi::apply_mode(gpu.bus_id)),
                )
            }
            reading => Answer::unless_expected(true, "repairs", reading, expected),
        }
    });
}

/// `memory.leak`: memory that nobody holds comes back with a reset only. In a container, processes of
/// others are not seen, so this is a warning.
pub(super) fn leak(node: &Node<'_>, outcome: &mut Outcome) {
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let expected = "its memory free while nothing runs";
        let processes = match &gpu.processes.compute {
            Reading::Value(processes) => processes,
            reading => return Answer::unread("processes", reading, expected),
        };
        if !processes.is_empty() {
            return Answer::NotHere;
        }
        match &gpu.memory_used {
            Reading::Value(used) if used.0 <= LEAK_MIB => Answer::Holds,
            Reading::Value(used) => Answer::Fails(
                Contrast::new(expected, format!("{} MiB in use without a process", used.0))
                    .advise(format!("fuser -v /dev/nvidia* finds who holds GPU {}", gpu.index))
                    .advise(nvidia_smi::apply_mode(gpu.bus_id)),
            ),
            reading => Answer::unread("memory in use", reading, expected),
        }
    });
}
