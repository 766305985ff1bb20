//! What each public source says of profiles and layouts, against the catalog's tables.
//!
//! A profile is written `NAME#ID=COUNT@STARTS`, the last three if the source has them: `COUNT` is how
//! many a GPU takes at most, and `STARTS` has a digit for each. The sources are those of the
//! catalog's `sources.json`, which also says what was read of each and when.

use std::collections::BTreeSet;

use super::super::*;
use crate::catalog::{Catalog, MigTableRow};

/// What a source shows of a table.
enum Shows {
    /// Profiles, each as often as it goes on a GPU alone.
    Profiles(&'static str),
    /// A layout that works.
    Layout(&'static str),
    /// A layout that works and leaves no room.
    Full(&'static str),
}
use Shows::{Full, Layout, Profiles};

/// A listing of an A100 with 40 GB: `-lgip` has ids and counts, `-lgipp` starts.
const A100_40: &str = "1g.5gb#19=7@0123456 1g.5gb+me#20=1@0123456 1g.10gb#15=4@0246 \
    2g.10gb#14=3@024 3g.20gb#9=2@04 4g.20gb#5=1@0 7g.40gb#0=1@0";
const A100_80: &str = "1g.10gb#19=7 1g.10gb+me#20=1 1g.20gb#15=4 2g.20gb#14=3 3g.40gb#9=2 \
    4g.40gb#5=1 7g.80gb#0=1";
const A30: &str = "1g.6gb#14=4@0123 1g.6gb+me#21=1@0123 2g.12gb#5=2@02 2g.12gb+me#6=1@02 \
    4g.24gb#0=1@0";
const H100_80: &str = "1g.10gb#19=7 1g.10gb+me#20=1 1g.20gb#15=4 2g.20gb#14=3 3g.40gb#9=2 \
    4g.40gb#5=1 7g.80gb#0=1";
const H100_80_STARTS: &str = "1g.10gb#19=7@0123456 1g.10gb+me#20=1@0123456 1g.20gb#15=4@0246 \
    2g.20gb#14=3@024 3g.40gb#9=2@04 4g.40gb#5=1@0 7g.80gb#0=1@0";
const H100_94: &str = "1g.12gb#19=7 1g.12gb+me#20=1 1g.24gb#15=4 2g.24gb#14=3 3g.47gb#9=2 \
    4g.47gb#5=1 7g.94gb#0=1";
const H100_94_STARTS: &str = "1g.12gb#19=7@0123456 1g.12gb+me#20=1@0123456 1g.24gb#15=4@0246 \
    2g.24gb#14=3@024 3g.47gb#9=2@04 4g.47gb#5=1@0 7g.94gb#0=1@0";
const H100_96: &str = "1g.12gb#19=7 1g.12gb+me#20=1 1g.24gb#15=4 2g.24gb#14=3 3g.48gb#9=2 \
    4g.48gb#5=1 7g.96gb#0=1";
const H200: &str = "1g.18gb#19=7 1g.18gb+me#20=1 1g.35gb#15=4 2g.35gb#14=3 3g.71gb#9=2 \
    4g.71gb#5=1 7g.141gb#0=1";
const B200: &str = "1g.23gb#19=7 1g.23gb+me#20=1 1g.45gb#15=4 2g.45gb#14=3 3g.90gb#9=2 \
    4g.90gb#5=1 7g.180gb#0=1";
const RTX_PRO_6000: &str = "1g.24gb#14=4 1g.24gb+me#21=1 1g.24gb+gfx#47=4 1g.24gb+me.all#65=1 \
    1g.24gb-me#67=4 2g.48gb#5=2 2g.48gb+gfx#35=2 2g.48gb+me.all#64=1 2g.48gb-me#66=2 4g.96gb#0=1 \
    4g.96gb+gfx#32=1";

/// Source, table, what it shows.
const CAPTURES: &[(&str, &str, Shows)] = &[
    // The guide's tables of profiles have names and counts, its listings ids and starts.
    ("mig_ug_latest", "a100-40gb", Profiles(A100_40)),
    ("mig_ug_latest", "a100-80gb", Profiles(A100_80)),
    ("mig_ug_latest", "a30", Profiles(A30)),
    ("mig_ug_latest", "h100-80gb-sxm", Profiles(H100_80)),
    ("mig_ug_latest", "h100-80gb-pcie", Profiles(H100_80)),
    ("mig_ug_latest", "h100-94gb", Profiles(H100_94)),
    ("mig_ug_latest", "h100-96gb", Profiles(H100_96)),
    ("mig_ug_latest", "h200-141gb", Profiles(H200)),
    ("mig_ug_latest", "h200-nvl-141gb", Profiles(H200)),
    ("mig_ug_latest", "b200-180gb", Profiles(B200)),
    ("mig_ug_latest", "rtx-pro-6000-96gb", Profiles(RTX_PRO_6000)),
    ("mig_ug_580", "a100-40gb", Profiles(A100_40)),
    ("mig_ug_580", "a100-40gb", Full("3g.20gb=2")),
    ("mig_ug_580", "a100-40gb", Full("3g.20gb=1 2g.10gb=1 1g.5gb=2")),
    // Their ids are indexes of NVML's enum, so only names, counts and starts are taken.
    (
        "gonvml_a100",
        "a100-40gb",
        Profiles(
            "1g.5gb=7@0123456 1g.5gb+me=1@0123456 1g.10gb=4@0246 2g.10gb=3@024 3g.20gb=2@04 \
         4g.20gb=1@0 7g.40gb=1@0",
        ),
    ),
    (
        "gonvml_a100",
        "a100-80gb",
        Profiles(
            "1g.10gb=7@0123456 1g.10gb+me=1@0123456 1g.20gb=4@0246 2g.20gb=3@024 3g.40gb=2@04 \
         4g.40gb=1@0 7g.80gb=1@0",
        ),
    ),
    (
        "gonvml_a30",
        "a30",
        Profiles("1g.6gb=4@0123 1g.6gb+me=1@0123 2g.12gb=2@02 2g.12gb+me=1@02 4g.24gb=1@0"),
    ),
    (
        "instaslice",
        "a100-40gb",
        Profiles(
            "1g.5gb@0123456 1g.5gb+me@0123456 1g.10gb@0246 2g.10gb@024 3g.20gb@04 4g.20gb@0 7g.40gb@0",
        ),
    ),
    (
        "instaslice",
        "a100-80gb",
        Profiles("1g.10gb@0123456 2g.20gb@024 3g.40gb@04 4g.40gb@0 7g.80gb@0"),
    ),
    (
        "instaslice",
        "h100-80gb-sxm",
        Profiles("1g.10gb@0123456 1g.20gb@0246 2g.20gb@024 3g.40gb@04 4g.40gb@0 7g.80gb@0"),
    ),
    (
        "instaslice",
        "h100-80gb-pcie",
        Profiles("1g.10gb@0123456 1g.20gb@0246 2g.20gb@024 3g.40gb@04 4g.40gb@0 7g.80gb@0"),
    ),
    (
        "instaslice",
        "h200-141gb",
        Profiles("1g.18gb@0123456 1g.35gb@0246 2g.35gb@024 3g.71gb@04 4g.71gb@0 7g.141gb@0"),
    ),
    ("a30_lgipp", "a30", Profiles(A30)),
    ("h100_lgip_2026", "h100-80gb-sxm", Profiles(H100_80)),
    (
        "testinfra_mig",
        "h100-80gb-sxm",
        Profiles("1g.10gb=7 1g.10gb+me=1 1g.20gb=4 2g.20gb=3 3g.40gb=2 4g.40gb=1 7g.80gb=1"),
    ),
    ("scaleway_mig", "h100-80gb-pcie", Profiles(H100_80_STARTS)),
    ("h100nvl_lgip", "h100-94gb", Profiles(H100_94_STARTS)),
    ("colfax_nvl", "h100-94gb", Profiles(H100_94_STARTS)),
    ("pr_gpuop_903", "h100-94gb", Profiles(H100_94)),
    ("gh200_lgip", "h100-96gb", Profiles(H100_96)),
    // Types of vGPU, one for each profile: names and counts.
    (
        "vgpu_hopper",
        "h20-96gb",
        Profiles("1g.12gb=7 1g.12gb+me=1 1g.24gb=4 2g.24gb=3 3g.48gb=2 4g.48gb=1 7g.96gb=1"),
    ),
    (
        "vgpu_hopper",
        "h20-141gb",
        Profiles("1g.18gb=7 1g.18gb+me=1 1g.35gb=4 2g.35gb=3 3g.71gb=2 4g.71gb=1 7g.141gb=1"),
    ),
    (
        "vgpu_hopper",
        "h200-nvl-141gb",
        Profiles("1g.18gb=7 1g.18gb+me=1 1g.35gb=4 2g.35gb=3 3g.71gb=2 4g.71gb=1 7g.141gb=1"),
    ),
    ("issue_migparted_120", "h200-141gb", Profiles(H200)),
    (
        "pr_migparted_139",
        "gh200-144gb",
        Profiles(
            "1g.18gb#19=7 1g.18gb+me#20=1 1g.36gb#15=4 2g.36gb#14=3 3g.72gb#9=2 4g.72gb#5=1 \
         7g.144gb#0=1",
        ),
    ),
    ("pr_migparted_166", "b200-180gb", Profiles(B200)),
    ("pr_migparted_187", "b200-180gb", Profiles(B200)),
    (
        "issue_migparted_227",
        "gb200-186gb",
        Profiles("1g.23gb#19=7 1g.23gb+me#20=1 1g.47gb#15=4 2g.47gb#14=3"),
    ),
    (
        "pr_gpuop_1303",
        "gb200-186gb",
        Profiles(
            "1g.24gb#19=7 1g.24gb+me#20=1 1g.47gb#15=4 2g.47gb#14=3 3g.95gb#9=2 4g.95gb#5=1 \
         7g.189gb#0=1",
        ),
    ),
    // Names of vGPU types in the driver's source.
    ("okm_595", "gb200-186gb", Profiles("1g.24gb 2g.47gb 3g.95gb 4g.95gb 7g.189gb")),
    ("okm_595", "b300-269gb", Profiles("1g.34gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb")),
    (
        "gpuop_2510_notes",
        "b300-269gb",
        Profiles("1g.34gb 1g.34gb+me 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb"),
    ),
    (
        "aws_hyperpod",
        "b300-269gb",
        Profiles("1g.34gb=7 1g.67gb=4 2g.67gb=3 3g.135gb=2 4g.135gb=1 7g.269gb=1"),
    ),
    (
        "playbook_station",
        "gb300-278gb",
        Profiles(
            "1g.35gb#19=7 1g.35gb+me#20=1 1g.70gb#15=4 2g.70gb#14=3 3g.139gb#9=2 4g.139gb#5=1 \
         7g.278gb#0=1",
        ),
    ),
    (
        "gcp_partition",
        "h200-141gb",
        Profiles("1g.18gb#19=7 1g.35gb#15=4 2g.35gb#14=3 3g.71gb#9=2 4g.71gb#5=1 7g.141gb#0=1"),
    ),
    (
        "gcp_partition",
        "b200-180gb",
        Profiles("1g.23gb#19=7 1g.45gb#15=4 2g.45gb#14=3 3g.90gb#9=2 4g.90gb#5=1 7g.180gb#0=1"),
    ),
    (
        "gcp_partition",
        "gb200-186gb",
        Profiles("1g.23gb#19=7 1g.47gb#15=4 2g.47gb#14=3 3g.93gb#9=2 4g.93gb#5=1 7g.186gb#0=1"),
    ),
    (
        "gcp_partition",
        "rtx-pro-6000-96gb",
        Profiles("1g.24gb#14=4 1g.24gb+gfx#47 2g.48gb#5=2 4g.96gb#0=1"),
    ),
    ("rtxpro_lgip", "rtx-pro-6000-96gb", Profiles(RTX_PRO_6000)),
    ("pr_gke_564", "rtx-pro-6000-96gb", Profiles(RTX_PRO_6000)),
    ("issue_cubecos_312", "rtx-pro-6000-96gb", Profiles(RTX_PRO_6000)),
    ("bottlerocket_pr", "rtx-pro-6000-96gb", Profiles(RTX_PRO_6000)),
    // Every `all-*` of mig-parted, then its `all-balanced`, by the device filters.
    (
        "migparted_default",
        "a100-40gb",
        Profiles("1g.5gb=7 1g.5gb+me=1 1g.10gb=4 2g.10gb=3 3g.20gb=2 4g.20gb=1 7g.40gb=1"),
    ),
    ("migparted_default", "a100-40gb", Full("1g.5gb=2 2g.10gb=1 3g.20gb=1")),
    (
        "migparted_default",
        "a100-80gb",
        Profiles("1g.10gb=7 1g.10gb+me=1 1g.20gb=4 2g.20gb=3 3g.40gb=2 4g.40gb=1 7g.80gb=1"),
    ),
    ("migparted_default", "a100-80gb", Full("1g.10gb=2 2g.20gb=1 3g.40gb=1")),
    ("migparted_default", "a30", Profiles("1g.6gb=4 1g.6gb+me=1 2g.12gb=2 2g.12gb+me=1 4g.24gb=1")),
    ("migparted_default", "a30", Full("1g.6gb=2 2g.12gb=1")),
    (
        "migparted_default",
        "h100-80gb-sxm",
        Profiles("1g.10gb=7 1g.10gb+me=1 1g.20gb=4 2g.20gb=3 3g.40gb=2 4g.40gb=1 7g.80gb=1"),
    ),
    ("migparted_default", "h100-80gb-sxm", Full("1g.10gb=2 2g.20gb=1 3g.40gb=1")),
    ("migparted_default", "h100-80gb-pcie", Full("1g.10gb=2 2g.20gb=1 3g.40gb=1")),
    (
        "migparted_default",
        "h100-94gb",
        Profiles("1g.12gb=7 1g.12gb+me=1 1g.24gb=4 2g.24gb=3 3g.47gb=2 4g.47gb=1 7g.94gb=1"),
    ),
    ("migparted_default", "h100-94gb", Full("1g.12gb=2 2g.24gb=1 3g.47gb=1")),
    (
        "migparted_default",
        "h100-96gb",
        Profiles("1g.12gb=7 1g.12gb+me=1 1g.24gb=4 2g.24gb=3 3g.48gb=2 4g.48gb=1 7g.96gb=1"),
    ),
    ("migparted_default", "h100-96gb", Full("1g.12gb=2 2g.24gb=1 3g.48gb=1")),
    ("migparted_default", "h20-96gb", Full("1g.12gb=2 2g.24gb=1 3g.48gb=1")),
    (
        "migparted_default",
        "h200-141gb",
        Profiles("1g.18gb=7 1g.18gb+me=1 1g.35gb=4 2g.35gb=3 3g.71gb=2 4g.71gb=1 7g.141gb=1"),
    ),
    ("migparted_default", "h200-141gb", Full("1g.18gb=2 2g.35gb=1 3g.71gb=1")),
    ("migparted_default", "h200-nvl-141gb", Full("1g.18gb=2 2g.35gb=1 3g.71gb=1")),
    (
        "migparted_default",
        "gh200-144gb",
        Profiles("1g.18gb=7 1g.18gb+me=1 1g.36gb=4 2g.36gb=3 3g.72gb=2 4g.72gb=1 7g.144gb=1"),
    ),
    ("migparted_default", "gh200-144gb", Full("1g.18gb=2 2g.36gb=1 3g.72gb=1")),
    (
        "migparted_default",
        "b200-180gb",
        Profiles("1g.23gb=7 1g.23gb+me=1 1g.45gb=4 2g.45gb=3 3g.90gb=2 4g.90gb=1 7g.180gb=1"),
    ),
    ("migparted_default", "b200-180gb", Full("1g.23gb=2 2g.45gb=1 3g.90gb=1")),
    (
        "migparted_default",
        "gb200-186gb",
        Profiles(
            "1g.23gb=7 1g.23gb+me=1 1g.24gb+me=1 1g.47gb=4 2g.47gb=3 3g.93gb=2 3g.95gb=2 4g.93gb=1 \
         4g.95gb=1 7g.186gb=1 7g.189gb=1",
        ),
    ),
    ("migparted_default", "gb200-186gb", Full("1g.23gb=2 2g.47gb=1 3g.93gb=1")),
    (
        "migparted_default",
        "b300-269gb",
        Profiles("1g.34gb=7 1g.34gb+me=1 1g.67gb=4 2g.67gb=3 3g.135gb=2 4g.135gb=1 7g.269gb=1"),
    ),
    ("migparted_default", "b300-269gb", Full("1g.34gb=2 2g.67gb=1 3g.135gb=1")),
    (
        "migparted_default",
        "gb300-278gb",
        Profiles("1g.35gb=7 1g.35gb+me=1 1g.70gb=4 2g.70gb=3 3g.139gb=2 4g.139gb=1 7g.278gb=1"),
    ),
    ("migparted_default", "gb300-278gb", Full("1g.35gb=2 2g.70gb=1 3g.139gb=1")),
    (
        "migparted_default",
        "rtx-pro-6000-96gb",
        Profiles(
            "1g.24gb=4 1g.24gb+me=1 1g.24gb+gfx=4 1g.24gb+me.all=1 1g.24gb-me=4 2g.48gb=2 2g.48gb+gfx=2 \
         2g.48gb+me.all=1 2g.48gb-me=2 4g.96gb=1 4g.96gb+gfx=1",
        ),
    ),
    ("migparted_default", "rtx-pro-6000-96gb", Full("1g.24gb=2 2g.48gb=1")),
    // Without its two slips.
    ("nos_geometries", "a30", Layout("4g.24gb=1")),
    ("nos_geometries", "a30", Layout("2g.12gb=2")),
    ("nos_geometries", "a30", Layout("1g.6gb=2 2g.12gb=1")),
    ("nos_geometries", "a30", Layout("1g.6gb=4")),
    ("nos_geometries", "a100-40gb", Layout("7g.40gb=1")),
    ("nos_geometries", "a100-40gb", Layout("1g.5gb=1 2g.10gb=1 4g.20gb=1")),
    ("nos_geometries", "a100-40gb", Layout("1g.5gb=3 4g.20gb=1")),
    ("nos_geometries", "a100-40gb", Layout("3g.20gb=2")),
    ("nos_geometries", "a100-40gb", Layout("1g.5gb=1 2g.10gb=1 3g.20gb=1")),
    ("nos_geometries", "a100-40gb", Layout("1g.5gb=3 3g.20gb=1")),
    ("nos_geometries", "a100-40gb", Layout("2g.10gb=2 3g.20gb=1")),
    ("nos_geometries", "a100-40gb", Layout("1g.5gb=2 2g.10gb=1 3g.20gb=1")),
    ("nos_geometries", "a100-40gb", Layout("1g.5gb=1 2g.10gb=3")),
    ("nos_geometries", "a100-40gb", Layout("1g.5gb=3 2g.10gb=2")),
    ("nos_geometries", "a100-40gb", Layout("1g.5gb=5 2g.10gb=1")),
    ("nos_geometries", "a100-40gb", Layout("1g.5gb=7")),
    ("nos_geometries", "a100-80gb", Layout("7g.79gb=1")),
    ("nos_geometries", "a100-80gb", Layout("1g.10gb=1 2g.20gb=1 4g.40gb=1")),
    ("nos_geometries", "a100-80gb", Layout("1g.10gb=3 4g.40gb=1")),
    ("nos_geometries", "a100-80gb", Layout("3g.40gb=2")),
    ("nos_geometries", "a100-80gb", Layout("1g.10gb=1 2g.20gb=1 3g.40gb=1")),
    ("nos_geometries", "a100-80gb", Layout("1g.10gb=3 3g.40gb=1")),
    ("nos_geometries", "a100-80gb", Layout("2g.20gb=2 3g.40gb=1")),
    ("nos_geometries", "a100-80gb", Layout("1g.10gb=2 2g.20gb=1 3g.40gb=1")),
    ("nos_geometries", "a100-80gb", Layout("1g.10gb=1 2g.20gb=3")),
    ("nos_geometries", "a100-80gb", Layout("1g.10gb=3 2g.20gb=2")),
    ("nos_geometries", "a100-80gb", Layout("1g.10gb=5 2g.20gb=1")),
    ("nos_geometries", "a100-80gb", Layout("1g.10gb=7")),
];

/// Compute instances: source, GPU instance of an A100, what it can be cut into as
/// `SLICES#ID=COUNT`.
const COMPUTE: &[(&str, &str, &str)] = &[
    ("lcip_captures", "1g.5gb", "1#0=1"),
    ("lcip_captures", "2g.10gb", "1#0=2 2#1=1"),
    ("lcip_captures", "3g.20gb", "1#0=3 2#1=1 3#2=1"),
    ("lcip_captures", "4g.20gb", "1#0=4 2#1=2 4#3=1"),
    ("migparted_known", "7g.40gb", "1#0=7 2#1=3 3#2=2 4#3=1 7#4=1"),
];

/// Sources that speak of MIG and show no layout.
const WITHOUT_A_LAYOUT: &[(&str, &str)] = &[
    ("mig_ug_gpus", "a list of products, without profiles"),
    ("mig_ug_620", "the least driver of each product"),
    ("nvlib_profile", "the code that makes names; see names.rs"),
    ("testinfra_vr", "MIG mode is there and off, profiles are not known"),
];

/// A profile as a source has it.
struct Shown<'a> {
    profile: &'a GiProfile,
    id: Option<u32>,
    count: Option<u32>,
    starts: Option<Vec<u8>>,
}

fn read<'a>(row: &'a MigTableRow, text: &str) -> Vec<Shown<'a>> {
    let one = |word: &str| {
        let (rest, starts) = word.split_once('@').map_or((word, None), |(r, s)| (r, Some(s)));
        let (rest, count) = rest.split_once('=').map_or((rest, None), |(r, c)| (r, Some(c)));
        let (name, id) = rest.split_once('#').map_or((rest, None), |(r, i)| (r, Some(i)));
        let parsed: MigProfile = name.parse().unwrap();
        assert_eq!(parsed.to_string(), name, "{}: it reads back", row.key);
        Shown {
            profile: row.profile(&parsed).unwrap_or_else(|| panic!("{}: no {name}", row.key)),
            id: id.map(|id| id.parse().unwrap()),
            count: count.map(|count| count.parse().unwrap()),
            starts: starts.map(|starts| starts.bytes().map(|digit| digit - b'0').collect()),
        }
    };
    text.split_whitespace().map(one).collect()
}

fn demands<'a>(shown: &[Shown<'a>]) -> Vec<Demand<'a>> {
    let one = |shown: &Shown<'a>| Demand { profile: shown.profile, count: shown.count.unwrap() };
    shown.iter().map(one).collect()
}

#[test]
fn every_capture_is_what_the_catalog_says_and_every_layout_fits() {
    for (source, key, shows) in CAPTURES {
        let row = Catalog::embedded().unwrap().mig_table(key).unwrap();
        let table = &row.table;
        match shows {
            Layout(text) => {
                assert!(place(table, &demands(&read(row, text))).is_ok(), "{source} {key} {text}");
            }
            Full(text) => {
                let layout = read(row, text);
                assert!(is_maximal(table, &demands(&layout)), "{source} {key} {text}");
            }
            Profiles(text) => {
                for Shown { profile, id, count, starts } in read(row, text) {
                    let at = format!("{source} {key} {}", profile.name);
                    assert_eq!(id.unwrap_or(profile.id), profile.id, "{at}");
                    assert!(starts.is_none_or(|starts| starts == profile.starts), "{at}");
                    let fits = |count| place(table, &[Demand { profile, count }]).is_ok();
                    assert!(fits(count.unwrap_or(1)), "{at}");
                    assert!(count.is_none_or(|most| !fits(most + 1)), "{at}");
                }
            }
        }
    }
}

#[test]
fn every_capture_of_compute_instances_is_what_the_catalog_says() {
    let row = Catalog::embedded().unwrap().mig_table("a100-40gb").unwrap();
    for (source, gi, text) in COMPUTE {
        let profile = row.profile(&gi.parse().unwrap()).unwrap();
        let known: Vec<String> = row
            .compute_instances_of(profile)
            .iter()
            .map(|ci| format!("{}#{}={}", ci.slices, ci.id, ci.max_count))
            .collect();
        assert_eq!(known.join(" "), *text, "{source} {gi}");
    }
}

#[test]
fn every_source_of_mig_has_its_captures_here() {
    let catalog = Catalog::embedded().unwrap();
    let shown: BTreeSet<(&str, &str)> = CAPTURES.iter().map(|(s, key, _)| (*s, *key)).collect();
    let no_layout = |source: &str| WITHOUT_A_LAYOUT.iter().any(|(other, _)| *other == source);
    for row in catalog.mig_tables() {
        let variants = row.name_variants.iter().flat_map(|variant| &variant.source);
        for source in row.source.iter().chain(variants) {
            let there = shown.contains(&(source.as_str(), row.key.as_str()));
            assert!(there || no_layout(source), "{source} says something of {}", row.key);
        }
    }
    let compute: BTreeSet<&str> = COMPUTE.iter().map(|(source, ..)| *source).collect();
    for (source, document) in &catalog.sources {
        let text = document.to_ascii_lowercase();
        let of_mig = ["mig", "-lgi", "-lcip"].iter().any(|word| text.contains(word));
        let there = shown.iter().any(|(other, _)| other == source) || compute.contains(&**source);
        assert!(!of_mig || there || no_layout(source), "{source}: {document}");
    }
    let named = shown.iter().map(|(source, _)| *source).chain(compute);
    for source in named.chain(WITHOUT_A_LAYOUT.iter().map(|(source, _)| *source)) {
        assert!(catalog.sources.contains_key(source), "{source}");
    }
}
