//! Names that follow from other names.

use super::catalog;
use crate::catalog::Confidence;

/// The label value that GPU feature discovery makes of a name: characters outside letters, digits,
/// `-`, `_`, `.` and blanks are dropped, words joined with `-`. Source: NVIDIA/k8s-device-plugin
/// `internal/lm/resource.go` (2026-08-19).
fn gfd_label(name: &str) -> String {
    let kept = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    let kept: String = name.chars().filter(kept).collect();
    kept.split_whitespace().collect::<Vec<_>>().join("-")
}

#[test]
fn the_product_label_follows_from_the_nvml_name() {
    assert_eq!(gfd_label("NVIDIA A100 (80GB)  PCIe"), "NVIDIA-A100-80GB-PCIe");
    for gpu in catalog().gpus.values() {
        let label = gpu.nvml_name.as_deref().map(gfd_label);
        assert_eq!(gpu.gfd_product, label, "{}", gpu.key);
        assert!(label.is_none_or(|label| label.len() <= 63));
    }
}

/// Products whose NVML name is not known, so that nobody can say whether slurmd will match.
const UNNAMED: &[&str] = &["vera-rubin"];

#[test]
fn slurmd_finds_the_gres_type_in_the_nvml_name() {
    // slurmd compares without case, after blanks became `_`. Source: gres.conf(5), AutoDetect.
    for gpu in catalog().gpus.values() {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(gpu.gres_type.chars().all(plain), "{}", gpu.gres_type);
        match &gpu.nvml_name {
            Some(name) => {
                let detected = name.to_lowercase().replace(' ', "_");
                assert!(detected.contains(&gpu.gres_type), "{detected}: {}", gpu.gres_type);
            }
            None => {
                assert!(UNNAMED.contains(&gpu.key.as_str()), "{}", gpu.key);
                assert_eq!(gpu.confidence, Confidence::Unsure);
            }
        }
    }
    // Once deployed these stay.
    let kept = ["h100", "h200", "a100", "l40s", "gb200", "b200", "rtx_pro_6000", "a10g"];
    for kept in kept {
        assert!(catalog().gpus.values().any(|gpu| gpu.gres_type == kept), "{kept}");
    }
}

#[test]
fn names_of_gpus_are_told_apart() {
    let mut names: Vec<&String> =
        catalog().gpus.values().filter_map(|gpu| gpu.nvml_name.as_ref()).collect();
    names.sort();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn figures_from_data_sheets_are_never_sure() {
    for gpu in catalog().gpus.values() {
        let row = gpu.confidence;
        let bandwidth = gpu.bandwidth_gb_per_s.value.is_some();
        assert!(!bandwidth || gpu.bandwidth_gb_per_s.confidence_in(row) < Confidence::Sure);
        let tdp = gpu.tdp_w.value.is_some();
        assert!(!tdp || gpu.tdp_w.confidence_in(row) < Confidence::Sure, "{}", gpu.key);
        let dense = gpu.gflops_dense.value.is_some();
        assert!(!dense || gpu.gflops_dense.confidence_in(row) < Confidence::Sure, "{}", gpu.key);
        // The capture of a T4 shows its PCIe link.
        let pcie = gpu.key.as_str() == "t4" || gpu.pcie.value.is_none();
        assert!(pcie || gpu.pcie.confidence_in(row) < Confidence::Sure, "{}", gpu.key);
    }
}

#[test]
fn families_order_generations() {
    let year = |key: &str| {
        catalog().gpu(key).unwrap().family.value.as_ref().map(|family| family.ship_year)
    };
    let keys = ["v100-sxm2-16gb", "a100-sxm4-80gb", "h100-pcie-80gb", "h200-sxm-141gb", "b200-sxm"];
    let years: Vec<u16> = keys.into_iter().filter_map(year).collect();
    assert_eq!(years, [2017, 2020, 2022, 2024, 2025]);
    assert!(year("vera-rubin") > year("gb300"));
    assert_eq!(year("l40s"), None);
    let last = |key: &str| catalog().gpu(key).unwrap().last_driver_branch.value;
    assert_eq!((last("v100-pcie-32gb"), last("t4")), (Some(580), None));
}
