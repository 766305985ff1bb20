//! Figures that two articles on GPU infrastructure state, against the rows.
//!
//! C are hardware figures, P prices and what follows from them. Each is either equal, or stands in
//! a table here with the reason why it is not.

use std::collections::BTreeSet;

use super::catalog;
use crate::catalog::{
    Architecture, Cloud, CloudShape, Direction, Gpu, LinkRate, Pcie, Price, PriceUnit, System,
};
use crate::units::Date;

/// Figures that the rows do not have, and why.
const DIFFERENT: &[(&str, &str)] = &[
    ("C5", "B200 with 192 GB: announced so, sold with 180; NVML's 183359 MiB are 192.3 GB"),
    ("C10", "20 TB over 72 GB300 is 277.8, which is NVML's figure in GiB, not the 288 GB label"),
    ("C11", "the same division for a B300: the HGX part has about 9 GiB less than a GB300"),
    ("C13", "50 PF NVFP4 for Rubin is an inference figure, and the dense one is not known"),
    ("C14", "Rubin Ultra: announced for 2027, no row"),
    ("P8", "GB300 NVL72 and HGX B300 are sold on request: no price, which is never zero"),
];

/// Figures that are not about hardware or prices of the catalog.
const ELSEWHERE: &[(&str, &str)] =
    &[("C26", "field numbers of DCGM"), ("C27", "API versions of Kubernetes")];

/// Collects which figures were compared.
#[derive(Default)]
struct Compared(BTreeSet<&'static str>);

impl Compared {
    fn equal<T: PartialEq + std::fmt::Debug>(&mut self, id: &'static str, ours: T, stated: T) {
        assert_eq!(ours, stated, "{id}");
        self.0.insert(id);
    }

    /// A figure as an article prints it.
    fn prints(&mut self, id: &'static str, ours: &str, stated: &str) {
        self.equal(id, ours, stated);
    }

    /// Every id from 1 to `last` is compared or listed.
    fn is_complete(&self, letter: char, last: u8) {
        for number in 1..=last {
            let id = format!("{letter}{number}");
            let listed = DIFFERENT.iter().chain(ELSEWHERE).any(|(other, _)| *other == id);
            assert!(listed || self.0.contains(id.as_str()), "{id}");
        }
    }
}

fn gpu(key: &str) -> &'static Gpu {
    catalog().gpu(key).unwrap()
}

fn system(key: &str) -> System {
    catalog().system(key).unwrap()
}

fn shape(key: &str) -> &'static CloudShape {
    catalog().cloud_shape(key).unwrap()
}

fn link(name: &str) -> &'static LinkRate {
    catalog().links.iter().find(|link| link.link.starts_with(name)).unwrap()
}

fn mib(key: &str) -> u64 {
    gpu(key).nvml_total_mib.value.unwrap()
}

/// Label, memory and bandwidth as articles print them.
fn memory(key: &str) -> (u32, &'static str, u32) {
    let gpu = gpu(key);
    (gpu.memory_gb, gpu.memory_type.as_str(), gpu.bandwidth_gb_per_s.value.unwrap())
}

/// `part / of` with so many decimals, rounded half up, as an article prints it.
fn ratio(part: u64, of: u64, decimals: u32) -> String {
    let scale = 10_u64.pow(decimals);
    let scaled = (part * scale + of / 2) / of;
    match decimals {
        0 => scaled.to_string(),
        _ => format!("{}.{:0width$}", scaled / scale, scaled % scale, width = decimals as usize),
    }
}

fn pair(gib: &str, gb: &str) -> (String, String) {
    (gib.to_owned(), gb.to_owned())
}

/// The memory of a GPU in GiB and in GB.
fn sizes(key: &str) -> (String, String) {
    (ratio(mib(key), 1024, 2), ratio(mib(key) << 20, 1_000_000_000, 1))
}

#[test]
fn hardware_figures_are_equal_or_listed() {
    let mut c = Compared::default();
    c.equal("C1", memory("h100-sxm5-80gb"), (80, "HBM3", 3350));
    c.equal("C1", sizes("h100-sxm5-80gb"), pair("79.65", "85.5"));
    c.equal("C2", memory("h200-sxm-141gb"), (141, "HBM3e", 4800));
    c.equal("C2", sizes("h200-sxm-141gb"), pair("140.40", "150.8"));
    c.prints("C3", &ratio(141, 80, 2), "1.76");
    c.prints("C3", &ratio(4800, 3350, 2), "1.43");
    c.prints("C3", &ratio(mib("h200-sxm-141gb"), mib("h100-sxm5-80gb"), 3), "1.763");
    let dense = |key: &str| gpu(key).gflops_dense.value.clone().unwrap();
    c.equal("C4", dense("h200-sxm-141gb"), dense("h100-sxm5-80gb"));
    c.equal("C4", dense("h100-sxm5-80gb").bf16, Some(989_000));
    c.equal("C4", dense("h100-sxm5-80gb").fp8, Some(1_979_000));
    assert_ne!(gpu("b200-sxm").memory_gb, 192, "C5");
    c.equal("C6", memory("b200-sxm"), (180, "HBM3e", 8000));
    c.equal("C6", sizes("b200-sxm"), pair("179.06", "192.3"));
    let bf16 = |key: &str| u64::from(dense(key).bf16.unwrap());
    c.prints("C7", &ratio(bf16("b200-sxm"), bf16("h200-sxm-141gb"), 1), "2.3");
    c.prints("C7", &ratio(8000, 4800, 1), "1.7");

    let rack = |key: &str| {
        let rack = catalog().rack(key).unwrap();
        (rack.nvlink_domain, rack.trays(), rack.cpus_per_rack, rack.hbm_gb)
    };
    c.equal("C8", rack("gb200-nvl72"), (72, 18, Some(36), Some(13_400)));
    c.equal("C9", rack("gb300-nvl72"), (72, 18, Some(36), Some(20_000)));
    c.equal("C9", 72 * memory("gb300").2, 576_000);
    assert_eq!((sizes("gb300"), gpu("gb300").memory_gb), (pair("277.55", "298.0"), 288), "C10");
    assert_eq!(
        (sizes("b300-sxm"), gpu("b300-sxm").memory_gb),
        (pair("268.59", "288.4"), 288),
        "C11"
    );
    c.equal("C12", memory("vera-rubin"), (288, "HBM4", 22_000));
    assert_eq!(gpu("vera-rubin").gflops_dense.value, None, "C13");
    assert!(catalog().gpus.keys().all(|key| !key.as_str().contains("ultra")), "C14");
    let l40s = gpu("l40s");
    c.equal("C15", memory("l40s"), (48, "GDDR6", 864));
    c.equal("C15", (l40s.architecture, l40s.nvlink.links), (Architecture::Ada, Some(0)));
    c.equal(
        "C15",
        (sizes("l40s"), l40s.pcie.value.unwrap().generation),
        (pair("44.99", "48.3"), 4),
    );
    c.equal("C16", memory("h100-nvl-94gb"), (94, "HBM3", 3938));
    c.equal("C16", gpu("h100-nvl-94gb").nvlink.max_domain, 2);
    c.prints("C16", &ratio(2 * mib("h100-nvl-94gb"), 1024, 1), "187.2");
    for key in ["a100-sxm4-80gb", "a100-pcie-80gb"] {
        c.prints("C17", &sizes(key).0, "80.00");
    }
    c.equal("C17", memory("h100-pcie-80gb").2, 2039);
    let aggregate = |key: &str| gpu(key).nvlink.aggregate_bidir_mb_per_s.unwrap() / 1000;
    c.equal("C18", (aggregate("h100-sxm5-80gb"), aggregate("b200-sxm")), (900, 1800));
    c.equal("C18", (link("NVLink, Hopper").gb_per_s, link("NVLink, Bl").gb_per_s), (900, 1800));
    c.equal("C18", link("NVLink, Hopper").direction, Direction::BothWays);
    c.equal("C18", system("dgx-h100").nvlink_domain, 8);
    let ndr = link("InfiniBand NDR");
    c.equal("C19", (ndr.gbit_per_s, ndr.gb_per_s), (Some(400), 50));
    c.equal("C19", ndr.direction, Direction::OneWay);
    let nics = system("dgx-h100").nics.unwrap().compute;
    c.equal("C19", (nics.count, nics.mbit_per_s), (Some(8), Some(400_000)));
    let p5 = shape("aws/p5.48xlarge").nics.as_ref().unwrap();
    c.equal("C19", p5.total_mbit_per_s.unwrap() / 8, 400_000);
    let slot = link("PCIe Gen5 x16");
    c.equal("C20", (slot.gb_per_s, slot.direction), (128, Direction::BothWays));
    let pcie = |key: &str| gpu(key).pcie.value.unwrap();
    c.equal("C20", pcie("h100-sxm5-80gb"), Pcie { generation: 5, width: 16 });
    c.equal("C20", (pcie("a100-sxm4-80gb").generation, pcie("l40s").generation), (4, 4));
    let instances = |key: &str| gpu(key).mig.max_instances;
    for seven in ["a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm-141gb", "b200-sxm", "gb300"] {
        c.equal("C21", instances(seven), Some(7));
    }
    for (key, stated) in [("a30", Some(4)), ("l40s", Some(0)), ("vera-rubin", None)] {
        c.equal("C21", instances(key), stated);
    }
    c.equal("C21", instances("rtx-pro-6000-blackwell-server"), Some(4));
    for table in ["a100-80gb", "h100-80gb-sxm", "h100-80gb-pcie"] {
        let table = &catalog().mig_table(table).unwrap().table;
        let sizes = ["1g.10gb", "3g.40gb", "7g.80gb"].map(|name| {
            table.profile(&name.parse().unwrap()).map(|p| p.memory_mib.unwrap_or(mib_of_whole()))
        });
        let [Some(one), Some(three), Some(seven)] = sizes else { panic!("C22") };
        c.equal("C22", (9_728..=9_984).contains(&one) && one < 10_240, true);
        c.equal("C22", (40_192..=40_448).contains(&three), true);
        c.equal("C22", (80_384..=80_896).contains(&seven), true);
    }
    c.equal("C23", gpu("h100-sxm5-80gb").gfd_product.as_deref(), Some("NVIDIA-H100-80GB-HBM3"));
    let notice = |cloud| catalog().spot_notice(cloud).unwrap().seconds;
    c.equal("C24", (notice(Cloud::Aws), notice(Cloud::Gcp)), (Some(120), Some(30)));
    let percent = |family: &str| {
        let rate = catalog().spot.interruptions.iter().find(|rate| rate.gpu_family == family);
        let rate = rate.unwrap();
        (rate.cloud, rate.percent.min, rate.percent.max, rate.period.is_some())
    };
    // The article names no period.
    c.equal("C25", percent("H100"), (Cloud::Aws, None, Some(5), false));
    c.equal("C25", percent("A100"), (Cloud::Aws, Some(15), Some(20), false));
    // A sample of slurm.conf: CPUs=96 RealMemory=1000000, which is half of this shape's memory.
    let azure = system("azure/Standard_ND96isr_H100_v5");
    c.equal("C28", (azure.cpu.unwrap().threads, azure.gpus_per_node), (96, 8));
    c.equal("C28", azure.memory_gib.value.is_some_and(|gib| gib == 1900), true);
    c.is_complete('C', 28);
}

/// Nobody has listed the 7g of an H100 SXM: the size of the PCIe card stands in for it.
fn mib_of_whole() -> u64 {
    let pcie = &catalog().mig_table("h100-80gb-pcie").unwrap().table;
    pcie.profile(&"7g.80gb".parse().unwrap()).unwrap().memory_mib.unwrap()
}

fn price(key: &str) -> &'static Price {
    shape(key).price.as_ref().unwrap()
}

/// Millionths of a dollar for a GPU-hour.
fn per_gpu(key: &str) -> u64 {
    price(key).micros / u64::from(shape(key).gpus_per_node)
}

fn listed(product: &str) -> &'static Price {
    let found = catalog().prices.iter().find(|list| list.product.ends_with(product));
    &found.unwrap().price
}

/// How much less than `base` a price is, in percent.
fn less(base: u64, micros: u64) -> String {
    ratio(100 * (base - micros), base, 1)
}

#[test]
fn prices_are_equal_or_listed() {
    let mut p = Compared::default();
    let (h100, h200) = ("coreweave/gd-8xh100ib-i128", "coreweave/gd-8xh200ib-i128");
    let (a100, b200) = ("coreweave/gd-8xa100-i128", "coreweave/b200-8x");
    let (p5, gb200) = ("aws/p5.48xlarge", "coreweave/gb200-4x");
    p.equal("P1", (price(p5).micros, per_gpu(p5)), (55_040_000, 6_880_000));
    p.equal("P1", price(p5).per, PriceUnit::NodeHour);
    let [discount] = catalog().spot.discounts.as_slice() else { panic!("P2") };
    let (least, most) = (discount.percent.min.unwrap(), discount.percent.max.unwrap());
    p.equal("P2", (discount.cloud, least, most), (Cloud::Aws, 60, 70));
    let spot = |percent: u8| per_gpu(p5) * u64::from(100 - percent) / 100;
    p.equal("P2", (spot(most), spot(least)), (2_064_000, 2_752_000));
    p.equal("P2", (8 * spot(most), 8 * spot(least)), (16_512_000, 22_016_000));
    p.equal("P3", (price(h100).micros, per_gpu(h100)), (49_240_000, 6_155_000));
    p.prints("P3", &less(price(p5).micros, price(h100).micros), "10.5");
    p.equal("P4", (price(h200).micros, per_gpu(h200)), (50_440_000, 6_305_000));
    p.prints("P4", &ratio(price(h200).micros, price(h100).micros, 3), "1.024");
    p.equal("P5", (price(a100).micros, per_gpu(a100)), (21_600_000, 2_700_000));
    p.equal("P6", (price(b200).micros, per_gpu(b200)), (68_800_000, 8_600_000));
    p.equal("P7", (price(gb200).micros, per_gpu(gb200)), (42_000_000, 10_500_000));
    let trays = u64::from(catalog().rack("gb200-nvl72").unwrap().trays());
    p.equal("P7", trays * price(gb200).micros, 756_000_000);
    assert_eq!(shape("coreweave/gb300-4x").price, None, "P8");

    let (year, five) = (listed("one year"), listed("five years"));
    p.equal("P9", (year.micros, year.per), (4_500_000_000, PriceUnit::GpuYear));
    p.prints("P9", &ratio(year.micros, 8760 * 1_000_000, 3), "0.514");
    p.equal("P9", 8 * year.micros, 36_000_000_000);
    p.equal("P10", (five.micros, five.per), (18_000_000_000, PriceUnit::Gpu5Years));
    p.equal("P10", five.micros / 5, 3_600_000_000);
    p.prints("P10", &ratio(five.micros, 43_800 * 1_000_000, 3), "0.411");
    p.prints("P10", &less(year.micros, five.micros / 5), "20.0");
    let hour = listed("marketplace");
    p.equal("P11", (hour.micros, hour.per), (1_000_000, PriceUnit::GpuHour));
    p.equal("P11", per_gpu(p5) + hour.micros, 7_880_000);
    p.equal("P11", year.micros / hour.micros, 4500);
    p.prints("P11", &ratio(100 * 4500, 8760, 1), "51.4");

    let (aws_h200, aws_a100, aws_b200) =
        ("aws/p5en.48xlarge", "aws/p4de.24xlarge", "aws/p6-b200.48xlarge");
    for (theirs, aws, stated) in [
        (h100, p5, "10.5"),
        (h200, aws_h200, "20.3"),
        (a100, aws_a100, "21.3"),
        (b200, aws_b200, "39.6"),
    ] {
        p.prints("P12", &less(per_gpu(aws), per_gpu(theirs)), stated);
    }
    p.equal("P12", (per_gpu(aws_h200), per_gpu(aws_a100), per_gpu(aws_b200)), {
        (7_912_000, 3_430_881, 14_241_600)
    });
    let (one, eight) = (per_gpu("aws/g6e.xlarge"), per_gpu("aws/g6e.48xlarge"));
    p.prints("P12", &ratio(one, per_gpu(p5), 2), "0.27");
    p.prints("P12", &ratio(eight, per_gpu(p5), 2), "0.55");

    // Dollars for a TB/s and for a GiB, by GPU.
    for (key, per_tb, per_gib) in [
        (a100, "1.32", "0.034"),
        (h100, "1.84", "0.077"),
        (h200, "1.31", "0.045"),
        (b200, "1.08", "0.048"),
        (gb200, "1.31", "0.057"),
    ] {
        let gpu = gpu(shape(key).gpu.as_str());
        let bandwidth = u64::from(gpu.bandwidth_gb_per_s.value.unwrap());
        p.prints("P13", &ratio(per_gpu(key), bandwidth * 1000, 2), per_tb);
        let total = gpu.nvml_total_mib.value.unwrap();
        p.prints("P13", &ratio(per_gpu(key) * 1024, total * 1_000_000, 3), per_gib);
    }
    // 182.5 days of 8 GPUs, and what 80 % of them cost for nothing.
    let half_year = price(p5).micros * 4380;
    p.prints("P14", &ratio(half_year, 1_000_000, 0), "241075");
    p.prints("P14", &ratio(half_year * 4 / 5, 1_000_000, 0), "192860");
    for (percent, stated) in
        [(20, "34.40"), (25, "27.52"), (30, "22.93"), (60, "11.47"), (70, "9.83")]
    {
        p.prints("P15", &ratio(per_gpu(p5) * 100, percent * 1_000_000, 2), stated);
    }
    let inside = |micros: u64| (spot(most)..=spot(least)).contains(&micros);
    p.equal("P16", [2_100_000, 2_000_000, 2_800_000].map(inside), [true, false, false]);
    let as_of = "2026-11-30".parse().unwrap();
    p.equal("P17", days(price(h100).date, as_of), 110);
    p.equal("P17", days(price(p5).date, as_of), 133);
    p.is_complete('P', 17);
}

/// Days between two dates of one year.
fn days(from: Date, to: Date) -> u16 {
    assert_eq!(from.year, to.year);
    let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let of = |date: Date| before[usize::from(date.month) - 1] + u16::from(date.day);
    of(to) - of(from)
}

#[test]
fn what_differs_names_its_reason_and_stands_in_one_table() {
    let mut ids = BTreeSet::new();
    for (id, reason) in DIFFERENT.iter().chain(ELSEWHERE) {
        assert!(reason.len() > 10 && ids.insert(id), "{id}");
    }
}
