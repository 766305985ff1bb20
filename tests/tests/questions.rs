//! Questions that an engineer asks about hardware, answered by the commands.
//!
//! The expected answers are reasoned out from NVIDIA's documentation, not taken from our output.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::collections::BTreeSet;
use std::ffi::OsString;

use serde_json::Value;

fn run(args: &[&str]) -> (u8, String, String) {
    let args = std::iter::once("fleetc").chain(args.iter().copied()).map(OsString::from);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = fleetc::cli::run(args, &mut out, &mut err);
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn json(args: &[&str]) -> (u8, Value) {
    let (code, out, err) = run(&[args, &["--format", "json"]].concat());
    (code, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}")))
}

fn fits(args: &[&str]) -> bool {
    let (code, answer) = json(&[&["mig"], args].concat());
    assert_eq!(answer["fits"] == true, code == 0);
    code == 0
}

fn keys(args: &[&str], kind: &str) -> Vec<String> {
    let (_, answer) = json(&[&["catalog"], args].concat());
    let rows = answer["rows"].as_array().unwrap().iter();
    rows.filter(|row| row["kind"] == kind)
        .map(|row| row["key"].as_str().unwrap().to_owned())
        .collect()
}

/// What stands behind a field of an entry.
fn field<'a>(entry: &'a str, name: &str) -> &'a str {
    let line = entry.lines().find_map(|line| line.strip_prefix(&format!("  {name:28} ")));
    line.unwrap_or_else(|| panic!("no {name} in {entry}"))
}

#[test]
fn q1_does_4g_2g_1g_fit_a_b200() {
    // 4g at 0-3, 2g at 4-5, 1g at 6: seven slices of eight, and 1g may start at 6.
    assert!(fits(&["b200-sxm", "4g.90gb", "2g.45gb", "1g.23gb"]));
}

#[test]
fn q2_can_two_4g_share_an_h100() {
    // Both would start at slice 0.
    assert!(!fits(&["h100-sxm5-80gb", "4g.40gb=2"]));
}

#[test]
fn q3_how_many_1g_go_on_a_whole_dgx_h100() {
    // Seven a GPU, since none starts at slice 7; eight GPUs.
    assert!(fits(&["dgx-h100", "1g.10gb=56", "--for", "8"]));
    assert!(!fits(&["dgx-h100", "1g.10gb=57", "--for", "8"]));
}

#[test]
fn q4_what_does_a_1g_24gb_of_a_gb200_become_on_another_driver() {
    // Early drivers reported a total that makes it 24gb, later ones 23gb; both are profile 19.
    let (code, answer) = json(&["mig", "gb200", "1g.24gb"]);
    assert_eq!(code, 0);
    assert_eq!(answer["placed"][0]["profile"], "1g.23gb");
    assert_eq!(answer["placed"][0]["profile_id"], 19);
    assert_eq!(answer["renamed"][0]["asked"], "1g.24gb");
    assert_eq!(answer["renamed"][0]["profile"], "1g.23gb");
    // 186 and 189 GiB are the labels of the full profiles, 7g.186gb and 7g.189gb.
    let (_, text, _) = run(&["mig", "gb200", "1g.24gb"]);
    let said = "  1g.24gb is 1g.23gb (profile id 19) on other drivers: so call it drivers that \
                report 189 GiB in all, not 186\n    no source says which versions these are; ";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("NVIDIA/gpu-operator pull request 1303"), "{text}");
    let (_, text, _) = run(&["mig", "gb200", "1g.23gb"]);
    assert!(!text.contains("other drivers"), "{text}");
    let (_, text, _) = run(&["mig", "gb200", "--driver", "580.173.02"]);
    let line = text.lines().find(|line| line.contains("1g.23gb ")).unwrap();
    assert!(line.contains("some drivers: 1g.24gb"), "{line}");
    assert!(text.contains("driver 580.173.02: no source says which of the names"), "{text}");
    let (_, answer) = json(&["mig", "gb200"]);
    assert_eq!(answer["profiles"][0]["other_names"][0], "1g.24gb");
}

#[test]
fn q5_which_cards_have_90_gib_and_nvlink() {
    let cards = keys(&["--min-memory", "90GiB", "--nvlink"], "gpu");
    for card in ["h100-nvl-94gb", "h200-sxm-141gb", "h200-nvl-141gb", "b200-sxm", "gb200", "gb300"]
    {
        assert!(cards.iter().any(|key| key == card), "{card}");
    }
    // 80 GB is 79.65 GiB; RTX PRO 6000 has 96 GB and no NVLink.
    for card in ["h100-sxm5-80gb", "rtx-pro-6000-96gb", "l40s"] {
        assert!(!cards.iter().any(|key| key == card), "{card}");
    }
}

#[test]
fn q6_which_cards_have_mig_and_which_not() {
    let cards = keys(&["--mig"], "gpu");
    for card in ["a100-sxm4-40gb", "a30", "h100-pcie-80gb", "h200-sxm-141gb", "b200-sxm"] {
        assert!(cards.iter().any(|key| key == card), "{card}");
    }
    for card in ["l40s", "t4", "l4", "a10", "v100-sxm2-16gb"] {
        assert!(!cards.iter().any(|key| key == card), "{card}");
    }
}

#[test]
fn q7_is_a_2g_20gb_a_profile_of_an_a100_40gb() {
    // Its 2g is 2g.10gb: half the memory, half the label.
    let (code, _, err) = run(&["mig", "a100-sxm4-40gb", "2g.20gb"]);
    assert_eq!(code, 2);
    assert!(err.contains("has no profile `2g.20gb`") && err.contains("2g.10gb"), "{err}");
}

#[test]
fn q8_which_a100_is_meant() {
    let (code, _, err) = run(&["catalog", "A100"]);
    assert_eq!(code, 2);
    for product in ["a100-sxm4-40gb", "a100-pcie-40gb", "a100-sxm4-80gb", "a100-pcie-80gb"] {
        assert!(err.contains(product), "{err}");
    }
}

#[test]
fn q9_how_much_memory_has_an_h100_really() {
    let (_, text, _) = run(&["catalog", "h100-sxm5-80gb"]);
    assert!(text.contains("81559"), "{text}");
    let (_, list) = json(&["catalog", "--family", "hopper"]);
    let row =
        list["rows"].as_array().unwrap().iter().find(|r| r["key"] == "h100-sxm5-80gb").unwrap();
    assert_eq!(row["memory_mib"], 81_559);
}

#[test]
fn q10_what_remains_beside_two_3g_on_an_h100() {
    // 3g at 0-3 and 4-7: nothing.
    let (_, answer) = json(&["mig", "h100-sxm5-80gb", "3g.40gb=2"]);
    assert!(answer.get("room").is_none());
}

#[test]
fn q11_what_remains_beside_one_3g_and_three_1g() {
    // With the 3g at slice 4 there is a fourth start for a 1g below it.
    let (_, answer) = json(&["mig", "h100-sxm5-80gb", "3g.40gb", "1g.10gb=3"]);
    let room: Vec<&str> =
        answer["room"].as_array().unwrap().iter().map(|r| r["profile"].as_str().unwrap()).collect();
    assert!(room.contains(&"1g.10gb"), "{room:?}");
}

#[test]
fn q12_is_the_order_of_the_mig_guide_a_matter_of_placement() {
    // `-cgi 19,19,14,9` fails on an A100 and `-cgi 9,19,14,19` works: the layout is legal.
    assert!(fits(&["a100-sxm4-40gb", "1g.5gb=2", "2g.10gb", "3g.20gb"]));
}

#[test]
fn q13_can_an_a30_have_a_media_engine_twice() {
    // One JPEG and one OFA engine: 1g+me and 2g+me exclude each other.
    assert!(!fits(&["a30", "1g.6gb+me", "2g.12gb+me"]));
    assert!(fits(&["a30", "1g.6gb+me", "2g.12gb"]));
}

#[test]
fn q14_how_many_layouts_leave_no_room_on_an_a30() {
    // Counted by hand: 4g; of 2g, 2g+me, 1g and 1g+me with one media engine between them:
    // 2+2, 2+2me, 2+1+1, 2+1+1me, 2me+1+1, 1+1+1+1, 1+1+1+1me.
    let (_, answer) = json(&["mig", "a30", "--list"]);
    assert_eq!(answer["layouts"].as_array().unwrap().len(), 8);
}

#[test]
fn q15_what_survives_a_change_from_seven_1g_to_3g_and_three_1g() {
    // The 3g may go to slices 4-7, where it takes the place of the 1g at 4, 5 and 6: four survive,
    // of which three are wanted, or it goes to 0-3 and three survive at 4, 5 and 6.
    let (_, answer) =
        json(&["mig", "h100-sxm5-80gb", "3g.40gb", "1g.10gb=3", "--from", "1g.10gb=7"]);
    let way = &answer["transition"];
    assert_eq!(way["keep"].as_array().unwrap().len(), 3);
    assert_eq!(way["destroy"].as_array().unwrap().len(), 4);
    assert_eq!(way["create"].as_array().unwrap().len(), 1);
    assert_eq!(way["needs_reset"], false);
}

#[test]
fn q16_does_turning_mig_on_reset_the_gpu() {
    // On Ampere it does, on Hopper it does not.
    let reset = |gpu: &str, slice: &str| {
        let (_, answer) = json(&["mig", gpu, slice, "--from", "off"]);
        assert_eq!(answer["transition"]["mode"], "on");
        answer["transition"]["needs_reset"].clone()
    };
    assert_eq!(reset("a100-sxm4-80gb", "3g.40gb"), true);
    assert_eq!(reset("h100-sxm5-80gb", "3g.40gb"), false);
}

#[test]
fn q17_what_does_an_h100_cost_at_aws() {
    // 55.04 a node-hour of eight GPUs.
    let (_, answer) = json(&["catalog", "--cloud", "aws", "--family", "hopper"]);
    let row = answer["rows"].as_array().unwrap().iter().find(|r| r["key"] == "aws/p5.48xlarge");
    assert_eq!(row.unwrap()["price_micros"], 6_880_000);
    let (_, text, _) = run(&["catalog", "aws/p5.48xlarge"]);
    assert_eq!(field(&text, "price"), "55.04 USD/node-hour, us-east-1, 2026-07-20");
    let (_, text, _) = run(&["catalog", "--cloud", "aws", "--family", "hopper"]);
    let line = text.lines().find(|line| line.contains("aws/p5.48xlarge")).unwrap();
    assert!(line.ends_with("6.88 USD/gpu-hour"), "{line}");
}

#[test]
fn q18_which_shapes_are_under_two_dollars_and_is_no_price_a_low_price() {
    let shapes = keys(&["--max-price", "2"], "shape");
    assert!(shapes.iter().any(|key| key == "aws/g4dn.xlarge"));
    assert!(!shapes.iter().any(|key| key == "aws/p5e.48xlarge"), "its price is not known");
    assert!(!shapes.iter().any(|key| key == "aws/p5.48xlarge"));
}

#[test]
fn q19_how_many_gpus_are_in_one_nvlink_domain() {
    let (_, answer) = json(&["catalog"]);
    let domain = |key: &str| {
        let rows = answer["rows"].as_array().unwrap();
        rows.iter().find(|row| row["key"] == key).unwrap()["nvlink_domain"].clone()
    };
    assert_eq!(domain("dgx-h100"), 8);
    assert_eq!(domain("gb200-nvl72"), 72);
    assert_eq!(domain("gb200-nvl72-compute-tray"), 72, "18 trays of 4 are one domain");
    // Two four-way bridges: the node is two domains.
    assert_eq!(domain("pcie-h200-nvl-8"), 4);
    assert_eq!(domain("pcie-l40s-4"), 1);
}

#[test]
fn q20_does_an_l40s_have_mig_and_what_is_said_of_a_gpu_nobody_knows() {
    let (code, _, err) = run(&["mig", "l40s"]);
    assert_eq!((code, err.as_str()), (2, "fleetc: l40s has no MIG\n"));
    let (code, _, err) = run(&["mig", "h10-sxm5-80gb"]);
    assert_eq!(code, 2);
    assert!(err.contains("did you mean `h100-sxm5-80gb`?"), "{err}");
    let (code, _, err) = run(&["mig", "h100-sxm5-80gb", "1c.3g.40gb"]);
    assert_eq!(code, 2);
    assert!(err.contains("a compute instance of `3g.40gb`"), "{err}");
    let (_, _, err) = run(&["mig", "a100-sxm4-80gb", "3g.20gb"]);
    assert!(err.contains("did you mean `3g.40gb`?"), "{err}");
}

#[test]
fn q21_how_sure_is_the_memory_of_an_l4_and_who_says_so() {
    let (_, text, _) = run(&["catalog", "l4"]);
    let line = text.lines().find(|line| line.contains("nvml total mib")).unwrap();
    assert!(line.contains("(unsure)"), "{line}");
    assert!(text.contains("sources\n"), "{text}");
}

#[test]
fn q22_how_are_five_3g_and_thirty_1g_packed_on_eight_h100() {
    // 2 × 3g on two GPUs, 3g + 4 × 1g on a third, then 26 × 1g on four more: 7 + 7 + 7 + 5.
    let (code, answer) = json(&["mig", "h100-sxm5-80gb", "1g.10gb=30", "3g.40gb=5", "--for", "8"]);
    assert_eq!(code, 0);
    assert_eq!(answer["packing"]["memory_slices"]["used"], 50, "30 × 1 + 5 × 4");
    let (code, answer) = json(&["mig", "h100-sxm5-80gb", "3g.40gb=5", "--for", "2"]);
    assert_eq!(code, 1);
    assert_eq!(answer["packing"]["unserved"][0]["count"], 1);
    assert_eq!(answer["packing"]["proved"], true);
}

#[test]
fn q23_what_does_a_served_model_need_of_its_slice() {
    let spec = fleetc_tests::repository().join("fleets/northwind");
    let explain = |item: &str| run(&["explain", "item", spec.as_str(), item]).1;
    // 14 × 10^9 bytes are 13.04 GiB; 2^31 bytes a sequence, eight of them; 39.5 GiB in a 3g.40gb.
    let served = explain("workload/chat-7b");
    assert!(served.contains("    weights 7 × 10^9 × 2 B = 13.04 GiB\n"), "{served}");
    assert!(served.contains("4096 tokens × 8 sequences = 16 GiB\n    sum 29.04 GiB\n"), "{served}");
    assert!(
        served.contains("    73.5 % of the 39.5 GiB of 3g.40gb of h100-sxm5-80gb\n"),
        "{served}"
    );
    // What is stated wins: 6 of 9.75 GiB.
    let stated = explain("workload/embed");
    assert!(stated.contains("61.5 % of the 9.75 GiB of 1g.10gb of h100-sxm5-80gb\n"), "{stated}");
    assert!(!explain("workload/ablation/gpus").contains("GiB"));
}

#[test]
fn q24_which_devices_can_a_claim_name_on_a_cut_node() {
    let spec = fleetc_tests::with_prelude(
        fleetc_tests::Form::Kdl,
        "cluster \"serve\" { kubernetes \"1.36\" { distribution \"upstream\"; dra-driver \"0.5\"; driver \"580.105.08\" owner=\"os\"; queue \"none\" } }
pool \"cut\" {
    cluster \"serve\"; system \"dgx-h100\"; nodes \"cut1\"; devices \"dra\"
    sharing \"mig\" strategy=\"mixed\" {
        gpus \"0\" { slice \"3g.40gb\" count=1; slice \"1g.10gb\" count=4 }
        gpus \"1-7\" { slice \"7g.80gb\" count=1 }
    }
}
",
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fleet.kdl");
    std::fs::write(&file, spec).unwrap();
    let (_, out, err) = run(&["explain", "node", file.to_str().unwrap(), "cut1"]);
    // Profile ids of an H100 are 19, 9 and 0; 3g starts at 4 beside four 1g.
    for device in [
        "gpu-0-mig-1g10gb-19-3 type=mig productName=NVIDIA H100 80GB HBM3 profile=1g.10gb memory=",
        "gpu-0-mig-3g40gb-9-4 type=mig",
        "gpu-7-mig-7g80gb-0-0 type=mig",
    ] {
        assert!(out.contains(&format!("    {device}")), "{device}\n{out}{err}");
    }
    assert!(!out.contains("nvidia.com/mig-"), "the device plugin hands out none of them\n{out}");
}

/// True if a value has something that nobody knows, or speaks of it.
fn says_unknown(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.contains("unknown"),
        Value::Array(items) => items.iter().any(says_unknown),
        Value::Object(fields) => fields.values().any(says_unknown),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[test]
fn q25_is_anything_called_unknown_that_the_catalog_knows() {
    let catalog = fleetc_schema::catalog::Catalog::embedded().unwrap();
    let (_, list) = json(&["catalog"]);
    let listed = list["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap());
    let tables = catalog.mig_tables().map(|table| table.key.as_str());
    let keys: Vec<&str> = listed.chain(tables).collect();
    let (mut known, mut priced) = (0, 0);
    for key in keys {
        let (_, text, _) = run(&["catalog", key]);
        let (_, document) = json(&["catalog", key]);
        for (name, value) in document["rows"][0].as_object().unwrap() {
            let lists = value.as_array().is_some_and(|items| items.iter().any(Value::is_object));
            let apart = ["key", "source", "confidence", "note"].contains(&name.as_str());
            if apart || lists || (says_unknown(value) && name != "price") {
                continue;
            }
            let line = field(&text, &name.replace('_', " "));
            assert_eq!(line == "unknown", value.is_null(), "{key}: {name} {line}");
            for leaked in ["unknown", "confidence ", "value ", "micros "] {
                assert!(value.is_null() || !line.contains(leaked), "{key}: {name} {line}");
            }
            known += 1;
            priced += usize::from(name == "price" && !value.is_null());
        }
    }
    assert!(known > 1000, "{known}");
    let shapes = catalog.cloud_shapes.values();
    assert_eq!(priced, shapes.filter(|shape| shape.price.is_some()).count());
    assert!(priced > 20, "{priced}");
    let (_, text, _) = run(&["catalog", "b300-269gb"]);
    assert_eq!(field(&text, "placements"), "likely: as B200");
    let (_, text, _) = run(&["catalog", "h100-sxm5-80gb"]);
    assert!(field(&text, "mig").ends_with("min driver 525.85.12"), "{text}");
}

#[test]
fn q26_what_has_an_old_driver_of_the_profiles_of_an_a100() {
    // The guide has the 1g with double memory since 525, and MIG of an A100 since 450.80.02.
    let on = |slice: &str, driver: &str| {
        let (code, text, _) = run(&["mig", "a100-sxm4-40gb", slice, "--driver", driver]);
        (code, text)
    };
    let (code, text) = on("1g.10gb", "470.82.01");
    assert_eq!(code, 1);
    assert!(text.contains("  driver 470.82.01 has no 1g.10gb: it came with 525\n"), "{text}");
    assert_eq!(on("1g.5gb", "470.82.01").0, 0);
    assert_eq!(on("1g.10gb", "525.60.13").0, 0);
    let (code, text) = on("1g.5gb", "440.33");
    assert_eq!(code, 1);
    assert!(text.contains("has no MIG: it came with 450.80.02"), "{text}");
    let (code, _, err) = run(&["mig", "a100-sxm4-40gb", "--driver", "new"]);
    assert_eq!((code, err.contains("--driver new: write its version")), (2, true), "{err}");
}

#[test]
fn q27_what_is_lost_when_mig_goes_off() {
    // Both instances go first, then the mode; on Ampere that takes a reset, on Hopper none.
    let (code, text, _) = run(&["mig", "h100-sxm5-80gb", "off", "--from", "3g.40gb=2"]);
    assert_eq!(code, 0);
    let said = "h100-sxm5-80gb: to MIG mode off
  destroy  3g.40gb at 0
  destroy  3g.40gb at 4
  MIG mode off: takes no GPU reset
  everything on the GPU loses its work
";
    assert_eq!(text, said);
    let (_, answer) = json(&["mig", "a100-sxm4-80gb", "off", "--from", "1g.10gb=7"]);
    let way = &answer["transition"];
    assert_eq!(way["destroy"].as_array().unwrap().len(), 7);
    assert_eq!((&way["mode"], &way["drain"]), (&Value::from("off"), &Value::from("gpu")));
    assert_eq!(way["needs_reset"], true);
    let (_, answer) = json(&["mig", "a100-sxm4-80gb", "off", "--from", "off"]);
    assert_eq!(answer["transition"]["mode"], Value::Null);
    for wrong in [&["off"][..], &["off", "1g.10gb", "--from", "1g.10gb"], &["off", "--for", "2"]] {
        let (code, _, err) = run(&[&["mig", "a100-sxm4-80gb"], wrong].concat());
        assert_eq!(code, 2);
        assert!(err.contains("`off --from 3g.40gb=2`"), "{err}");
    }
}

/// A fleet with a product that the catalog lacks, and with one like an H100 but for its memory.
fn own_hardware(folder: &std::path::Path, sharing: &str) -> String {
    let spec = format!(
        "fleet \"lab\"
gpu \"rtx-pro-5000\" {{
    architecture \"blackwell\"; nvml-name \"NVIDIA RTX PRO 5000 Blackwell\"; memory \"48935MiB\"
    pci-device-ids \"0x2BB3\"; gres-type \"rtx_pro_5000\"; mig #true; nvlink #false
}}
gpu \"h100-94\" extends=\"h100-sxm5-80gb\" {{ memory \"94GiB\" }}
gpu \"h100-94-lab\" extends=\"h100-94\" {{ gres-type \"h100\" }}
system \"ws\" {{ gpus \"rtx-pro-5000\" count=4; cpu sockets=1 cores=64 threads=128; memory \"512GiB\" }}
system \"big\" extends=\"dgx-h100\" {{ gpus \"h100-94-lab\" count=8 }}
cluster \"hpc\" {{ slurm \"24.11\" {{ controllers \"ctl1\"; gres autodetect=\"nvml\"; driver \"580.105.08\" owner=\"os\" }} }}
cluster \"serve\" {{ kubernetes \"1.36\" {{ distribution \"upstream\"; driver \"580.105.08\" owner=\"os\"; queue \"none\" }} }}
pool \"a\" {{ cluster \"hpc\"; system \"ws\"; nodes \"a[1-2]\" }}
pool \"b\" {{ cluster \"serve\"; system \"ws\"; nodes \"b[1-2]\"; {sharing} }}
pool \"c\" {{ cluster \"hpc\"; system \"big\"; nodes \"c[1-2]\" }}
"
    );
    let file = folder.join("fleet.kdl");
    std::fs::write(&file, spec).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn q28_what_does_a_gpu_that_the_catalog_lacks_show() {
    let folder = tempfile::tempdir().unwrap();
    let file = own_hardware(folder.path(), "sharing \"whole\"");
    let (_, slurm, err) = run(&["explain", "node", &file, "a1"]);
    assert!(slurm.contains("Gres=gpu:rtx_pro_5000:4\n"), "{slurm}{err}");
    assert!(slurm.contains("4 × NVIDIA RTX PRO 5000 Blackwell\n"), "{slurm}");
    let (_, kubernetes, _) = run(&["explain", "node", &file, "b1"]);
    assert!(kubernetes.contains("nvidia.com/gpu: 4\n"), "{kubernetes}");
    // Nobody has said how the node is labelled.
    assert!(!kubernetes.contains("gpu.product"), "{kubernetes}");
}

#[test]
fn q29_what_is_known_of_mig_on_a_product_without_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let cut = "sharing \"mig\" { gpus \"0-3\" { slice \"2g.24gb\" count=2 } }";
    let file = own_hardware(folder.path(), cut);
    let (code, out, err) = run(&["check", &file]);
    assert_eq!(code, 1);
    // MIG User Guide, "Supported GPUs": two instances.
    let known = "RTX PRO 5000 Blackwell has MIG, 2 instances at most, since driver 575.57.08";
    assert!(out.contains(known) || err.contains(known), "{out}{err}");
}

#[test]
fn q30_where_does_a_value_of_own_hardware_come_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = own_hardware(folder.path(), "sharing \"whole\"");
    let explain = |item: &str| run(&["explain", "item", &file, item]).1;
    let gpu = explain("gpu/h100-94");
    for line in [
        "    nvml-name: NVIDIA H100 80GB HBM3  (from catalog h100-sxm5-80gb)\n",
        "    memory: 94 GiB  (written, replaces 79.65 GiB from catalog h100-sxm5-80gb)\n",
        "    MIG profiles: not known  (follows from what is written; h100-80gb-sxm in catalog h100-sxm5-80gb)\n",
    ] {
        assert!(gpu.contains(line), "{line}{gpu}");
    }
    let second = explain("gpu/h100-94-lab");
    assert!(second.contains("    memory: 94 GiB  (from gpu/h100-94)\n"), "{second}");
    assert!(second.contains("    gres-type: h100  (written, as in gpu/h100-94)\n"), "{second}");
    let system = explain("system/big");
    for line in [
        "    gpus: h100-94-lab count=8  (written, replaces h100-sxm5-80gb count=8 from catalog dgx-h100)\n",
        "    cpu: sockets=2 cores=112 threads=224  (from catalog dgx-h100)\n",
        // Other GPUs draw another power.
        "    power: not known  (follows from what is written; 10200W in catalog dgx-h100)\n",
    ] {
        assert!(system.contains(line), "{line}{system}");
    }
    assert!(!explain("gpu/rtx-pro-5000").contains("catalog"), "it extends nothing");
}

#[test]
fn q31_which_products_are_an_h100() {
    let keys = |family: &str| -> Vec<String> {
        let (_, list) = json(&["catalog", "--family", family]);
        let rows = list["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "gpu");
        rows.map(|row| row["key"].as_str().unwrap().to_owned()).collect()
    };
    let h100 = keys("h100");
    assert_eq!(h100, keys("H100"));
    assert!(h100.len() >= 3 && h100.iter().all(|key| key.starts_with("h100")), "{h100:?}");
    let (code, _, err) = run(&["catalog", "--family", "h1000"]);
    assert_eq!(code, 2);
    assert!(err.contains("or a family: ") && err.contains("H100"), "{err}");
}

#[test]
fn q32_what_does_a_node_offer_that_is_cut_by_the_fleets_own_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fleet.kdl");
    let spec = r#"fleet "lab"
cluster "serve" { kubernetes "1.36" { distribution "upstream"; driver "580.105.08" owner="os"; queue "none" } }
cluster "hpc" { slurm "24.11" { controllers "ctl1"; gres autodetect="nvml"; driver "580.105.08" owner="os" } }
gpu "x1" {
    architecture "blackwell"; nvml-name "NVIDIA X1"; memory "48000MiB"; pci-device-ids "0xffff"
    gres-type "nvidia_x1"; mig #true; nvlink #false
    mig-table memory-slices=4 compute-slices=4 {
        profile "1g.12gb" id=14 memory-slices=1 { starts 0 1 2 3 }
        profile "2g.24gb" id=5 memory-slices=2 { starts 0 2 }
    }
}
system "x" { gpus "x1" count=4; cpu sockets=1 cores=64 threads=128; memory "512GiB" }
pool "x" {
    system "x"; nodes "x[1-2]"
    split { cluster "serve" nodes="x1"; cluster "hpc" nodes="x2" }
    sharing "mig" { gpus "0-3" { slice "2g.24gb" count=1; slice "1g.12gb" count=2 } }
}
"#;
    std::fs::write(&file, spec).unwrap();
    let file = file.to_str().unwrap();
    let (_, node, err) = run(&["explain", "node", file, "x1"]);
    // Four GPUs with one 2g and two 1g each.
    assert!(node.contains("nvidia.com/mig-1g.12gb: 8\n"), "{node}{err}");
    assert!(node.contains("nvidia.com/mig-2g.24gb: 4\n"), "{node}");
    let out = folder.path().join("out");
    let (code, _, err) = run(&["compile", file, "-o", out.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    let read = |path: &str| std::fs::read_to_string(out.join(path)).unwrap();
    let slurm = read("clusters/hpc/slurm/slurm.conf");
    assert!(slurm.contains("Gres=gpu:2g.24gb:4,gpu:1g.12gb:8"), "{slurm}");
    // nvidia-smi is told ids and starts: the 2g, which has fewer places, goes where it leaves a run.
    let script = read("clusters/hpc/mig/fleetc-mig.sh");
    let places = script.lines().find(|line| line.contains("5:") && line.contains("14:")).unwrap();
    let starts: BTreeSet<&str> = places
        .split(['\'', ' ', '"', ')'])
        .filter(|word| word.starts_with("5:") || word.starts_with("14:"))
        .collect();
    assert_eq!(starts.len(), 3, "{places}");
}
