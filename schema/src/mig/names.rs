//! The GB label of a profile name, as a driver computes it from the total memory.
//!
//! Source: NVIDIA/go-nvlib `pkg/nvlib/device/mig_profile.go`: the share of the memory is rounded up
//! to eighths, the total up to whole GiB, and their product half away from zero. So a driver that
//! reports another total renames every profile: a GB200 with 186 GiB has `1g.23gb`, with 189 GiB
//! `1g.24gb`. The profile id stays.

use super::{GiProfile, MigProfile, MigTable};

/// The label of an instance with so much memory on a GPU with this total, both in MiB. None if the
/// total is zero or the label too large for a name.
pub fn label_gb(instance_mib: u64, total_mib: u64) -> Option<u16> {
    if total_mib == 0 {
        return None;
    }
    of_eighths(instance_mib.checked_mul(8)?.div_ceil(total_mib), total_mib)
}

/// The names of a table's profiles now, and on a driver that reports this total (in MiB), in the
/// table's order. The share of an instance is that of its memory slices, which no driver changes.
pub fn names_for_total(table: &MigTable, total_mib: u64) -> Vec<(MigProfile, MigProfile)> {
    let slices = u64::from(table.memory_slices);
    let then = |now: &GiProfile| {
        let eighths = (u64::from(now.memory_slices) * 8).div_ceil(slices.max(1));
        let label_gb = of_eighths(eighths, total_mib)?;
        Some((now.name.clone(), MigProfile { label_gb, ..now.name.clone() }))
    };
    table.profiles.iter().filter_map(then).collect()
}

fn of_eighths(eighths: u64, total_mib: u64) -> Option<u16> {
    // Rounding eighths × GiB / 8 half up is exact in integers: add half of the divisor.
    let sixteenths = eighths.checked_mul(total_mib.div_ceil(1024))?.checked_mul(2)?;
    u16::try_from(sixteenths.checked_add(8)? / 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_from_the_totals_that_were_captured() {
        // Total MiB, then the labels of 1, 2, 4 and 8 eighths.
        for (total, labels) in [
            (81559, [10, 20, 40, 80]),
            (95830, [12, 24, 47, 94]),
            (97871, [12, 24, 48, 96]),
            (143_771, [18, 35, 71, 141]),
            (183_359, [23, 45, 90, 180]),
            (189_471, [23, 47, 93, 186]),
            (275_040, [34, 67, 135, 269]),
            (284_208, [35, 70, 139, 278]),
            (40960, [5, 10, 20, 40]),
        ] {
            for (eighths, label) in [1, 2, 4, 8].into_iter().zip(labels) {
                // An instance has a little less than its share, never more.
                assert_eq!(label_gb(total * eighths / 8 - 300, total), Some(label), "{total}");
            }
        }
        assert_eq!(label_gb(9984, 81559), Some(10));
        assert_eq!(label_gb(1, 0), None);
        assert_eq!(label_gb(u64::MAX, 1), None);
    }
}

#[cfg(test)]
#[cfg(feature = "catalog")]
mod catalog_tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::mig::tests::table;

    #[test]
    fn no_name_changes_on_a_total_that_rounds_to_the_label_of_the_full_gpu() {
        let catalog = Catalog::embedded().unwrap();
        for row in catalog.mig_tables() {
            let full = row.table.profiles.iter().max_by_key(|p| p.memory_slices).unwrap();
            let total = u64::from(full.name.label_gb) * 1024;
            let names = names_for_total(&row.table, total - 500);
            assert_eq!(names.len(), row.table.profiles.len());
            assert!(names.iter().all(|(now, then)| now == then), "{}: {names:?}", row.key);
        }
    }

    #[test]
    fn names_are_those_of_the_total_that_the_gpu_reports() {
        let catalog = Catalog::embedded().unwrap();
        for row in catalog.mig_tables() {
            for gpu in &row.gpus {
                // Where nobody has read the total, the name of the full GPU is all there is.
                let Some(total) = catalog.gpus[gpu].nvml_total_mib.value else { continue };
                for (now, then) in names_for_total(&row.table, total) {
                    assert_eq!(now, then, "{gpu}");
                }
                for profile in &row.table.profiles {
                    let label = profile.memory_mib.and_then(|memory| label_gb(memory, total));
                    assert!(label.is_none_or(|label| label == profile.name.label_gb), "{gpu}");
                }
            }
        }
    }

    #[test]
    fn three_gib_more_rename_the_profiles_but_not_what_they_are() {
        let then: Vec<String> = names_for_total(&table("h100-80gb-sxm"), 83 * 1024)
            .into_iter()
            .map(|(now, then)| format!("{now} {then}"))
            .collect();
        assert_eq!(
            then,
            [
                "1g.10gb 1g.10gb",
                "1g.10gb+me 1g.10gb+me",
                "1g.20gb 1g.21gb",
                "2g.20gb 2g.21gb",
                "3g.40gb 3g.42gb",
                "4g.40gb 4g.42gb",
                "7g.80gb 7g.83gb",
            ]
        );
    }
}
