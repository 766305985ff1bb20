//! MIG tables: geometry, names, sizes and counts follow from each other.

use super::catalog;
use crate::catalog::{Confidence, MemoryShare, MigTableRow};
use crate::mig::{Demand, GiProfile, MigProfile, place};

/// A profile's share of the memory, in eighths of the GPU.
fn eighths(row: &MigTableRow, profile: &GiProfile) -> u64 {
    u64::from(profile.memory_slices) * 8 / u64::from(row.table.memory_slices)
}

/// The GB of a name: the share times the total in whole GiB, rounded half up. Source:
/// NVIDIA/go-nvlib `pkg/nvlib/device/mig_profile.go` (2026-08-14).
fn label(eighths: u64, total_gib: u64) -> u64 {
    (eighths * total_gib * 2 + 8) / 16
}

/// Totals in MiB that NVML reports on the GPUs of a table.
fn totals(row: &MigTableRow) -> impl Iterator<Item = u64> {
    row.gpus.iter().filter_map(|gpu| catalog().gpus[gpu].nvml_total_mib.value)
}

#[test]
fn placements_lie_inside_the_gpu_and_start_at_a_multiple_of_their_size() {
    for row in catalog().mig_tables() {
        for profile in &row.table.profiles {
            assert!(profile.starts.is_sorted_by(|a, b| a < b), "{} {}", row.key, profile.name);
            for start in &profile.starts {
                assert!(start.is_multiple_of(profile.memory_slices));
                assert!(start + profile.memory_slices <= row.table.memory_slices);
            }
        }
    }
}

#[test]
fn the_most_instances_of_a_profile_follow_from_starts_and_engines() {
    for row in catalog().mig_tables() {
        for profile in &row.table.profiles {
            let most = u32::from(profile.max_count);
            let free = GiProfile { max_count: u8::MAX, ..profile.clone() };
            let fits = |count| place(&row.table, &[Demand { profile: &free, count }]).is_ok();
            assert!(fits(most) && !fits(most + 1), "{} {}", row.key, profile.name);
        }
    }
}

#[test]
fn no_profile_has_more_compute_or_engines_than_the_gpu() {
    for row in catalog().mig_tables() {
        let table = &row.table;
        for profile in &table.profiles {
            assert!(profile.name.slices <= table.compute_slices && profile.name.compute.is_none());
            assert!(profile.engines.fits_in(table.engine_totals), "{} {}", row.key, profile.name);
            assert!(row.facts.contains_key(&profile.name));
        }
        let mut ids: Vec<u32> = table.profiles.iter().map(|profile| profile.id).collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{}", row.key);
    }
}

#[test]
fn names_follow_from_the_total_that_nvml_reports() {
    let mut checked = 0;
    for row in catalog().mig_tables() {
        for total in totals(row) {
            for profile in &row.table.profiles {
                let gb = label(eighths(row, profile), total.div_ceil(1024));
                assert_eq!(u64::from(profile.name.label_gb), gb, "{} {}", row.key, profile.name);
            }
        }
        checked += usize::from(totals(row).next().is_some());
    }
    // Nobody has read the total of a GH200 with 144 GB.
    assert_eq!(checked, 16);
}

#[test]
fn names_of_other_drivers_follow_from_another_total() {
    for row in catalog().mig_tables() {
        for variant in &row.name_variants {
            let full = u64::from(variant.names[&0].label_gb);
            for (id, name) in &variant.names {
                let profile = row.table.profiles.iter().find(|p| p.id == *id).unwrap();
                let gb = label(eighths(row, profile), full);
                assert_eq!(u64::from(name.label_gb), gb, "{} {name}", row.key);
                let same = MigProfile { label_gb: profile.name.label_gb, ..name.clone() };
                assert_eq!(same, profile.name);
                assert_eq!(row.profile(name), Some(profile));
            }
        }
    }
    let named = |table: &str, name: &str| {
        let row = catalog().mig_table(table).unwrap();
        row.profile(&name.parse().unwrap()).map(|profile| profile.name.to_string())
    };
    assert_eq!(named("gb200-186gb", "1g.24gb").as_deref(), Some("1g.23gb"));
    assert_eq!(named("gb200-186gb", "1g.24gb+me").as_deref(), Some("1g.23gb+me"));
    assert_eq!(named("a100-80gb", "7g.79gb").as_deref(), Some("7g.80gb"));
    assert_eq!(named("h100-80gb-sxm", "1g.24gb"), None);
}

#[test]
fn sizes_lie_in_their_eighth_of_the_total() {
    for row in catalog().mig_tables() {
        for profile in &row.table.profiles {
            let seen = &row.facts[&profile.name].memory_mib_seen;
            assert_eq!(profile.memory_mib, seen.iter().min().copied(), "{}", profile.name);
            for (memory, total) in seen.iter().flat_map(|m| totals(row).map(move |t| (*m, t))) {
                let share = (memory * 8).div_ceil(total);
                assert_eq!(share, eighths(row, profile), "{} {}", row.key, profile.name);
            }
        }
    }
}

#[test]
fn nvml_numbers_name_every_profile() {
    let numbers = &catalog().rules.nvml;
    for row in catalog().mig_tables() {
        for profile in &row.table.profiles {
            assert!(numbers.gpu_instance_profiles.contains_key(&profile.nvml), "{}", profile.nvml);
            let slices = format!("{}_SLICE", profile.name.slices);
            assert!(profile.nvml.starts_with(&slices), "{} {}", profile.nvml, profile.name);
        }
    }
    let ids = &catalog().rules.mig.gpu_instance_ids;
    assert_eq!((ids[&MemoryShare::Full], ids[&MemoryShare::Eighth]), ((0, 0), (7, 14)));
    assert_eq!(catalog().rules.mig.name_denominator, 8);
}

#[test]
fn compute_instances_divide_the_slices_of_their_gpu_instance() {
    let numbers = &catalog().rules.nvml.compute_instance_profiles;
    for row in catalog().mig_tables() {
        for profile in &row.table.profiles {
            let slices = profile.name.slices;
            let compute = row.compute_instances_of(profile);
            let mut default = compute.iter().filter(|ci| ci.default);
            assert_eq!(default.next().map(|ci| ci.slices), Some(slices), "{}", profile.name);
            assert_eq!(default.next(), None);
            for ci in compute {
                assert_eq!(ci.max_count, slices / ci.slices, "{} {}c", profile.name, ci.slices);
                assert_eq!(numbers[&format!("{}_SLICE", ci.slices)], ci.id);
            }
        }
    }
}

#[test]
fn what_was_not_read_stays_unknown() {
    let h20 = &catalog().mig_table("h20-96gb").unwrap().table.profiles[0];
    assert_eq!((h20.sm, h20.engines.dec, h20.engines.enc), (None, None, Some(0)));
    let b200 = catalog().mig_table("b200-180gb").unwrap();
    let name: MigProfile = "7g.180gb".parse().unwrap();
    let whole = b200.table.profile(&name).unwrap();
    assert_eq!((whole.sm, whole.engines.ce), (None, Some(16)));
    assert_eq!(b200.facts[&name].engine_confidence, Some(Confidence::Unsure));
    assert_eq!(b200.placements.confidence, Confidence::Likely);
}

#[test]
fn least_drivers_are_of_the_gpu_or_of_a_profile() {
    let of_gpu = |key: &str| {
        catalog().gpu(key).unwrap().mig.min_driver.value.as_ref().map(ToString::to_string)
    };
    assert_eq!(of_gpu("a100-sxm4-40gb").as_deref(), Some("450.80.02"));
    assert_eq!(of_gpu("h100-nvl-94gb").as_deref(), Some("525.85.12"));
    assert_eq!(of_gpu("h200-sxm-141gb").as_deref(), Some("550.90.07"));
    assert_eq!(of_gpu("b300-sxm").as_deref(), Some("580.82.07"));
    assert_eq!(of_gpu("gb300"), None);
    let of_profile = |table: &str, name: &str| {
        let facts = &catalog().mig_table(table).unwrap().facts;
        let driver = facts[&name.parse::<MigProfile>().unwrap()].min_driver.value.as_ref();
        driver.map(ToString::to_string)
    };
    assert_eq!(of_profile("a100-40gb", "1g.10gb").as_deref(), Some("525"));
    assert_eq!(of_profile("a30", "1g.6gb+me").as_deref(), Some("470"));
    assert_eq!(of_profile("a30", "1g.6gb"), None);
    assert_eq!(catalog().mig_products.len(), 6);
}
