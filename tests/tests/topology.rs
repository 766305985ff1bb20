//! The topology graph of a spec: what is a vertex, what it costs, and what it answers.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::ffi::OsString;

use fleetc::Checked;
use fleetc_schema::Hostlist;
use fleetc_schema::topology::{BlockName, Topology};
use fleetc_tests::{Form, check_fleet, check_text, with_prelude};
use proptest::prelude::*;

fn checked(fragment: &str) -> Checked {
    let checked = check_text(Form::Kdl, &with_prelude(Form::Kdl, fragment)).unwrap();
    assert!(checked.intent().is_some(), "{:#?}", checked.diagnostics);
    checked
}

fn list(text: &str) -> Hostlist {
    text.parse().unwrap()
}

/// A pool of so many nodes on eight rails, in racks of equal size.
fn rails(nodes: u32, racks: u32) -> Topology {
    let spec = format!(
        "fabric \"compute\" kind=\"infiniband\" {{
            switch \"spine[1-4]\"
            switch \"leaf[1-8]\" uplinks=\"spine[1-4]\"
            attach \"leaf[1-8]\" nodes=\"gpu[00001-{nodes:05}]\" rails=8
        }}
        rack \"r[0001-{racks:04}]\" nodes=\"gpu[00001-{nodes:05}]\"
        pool \"slices\" {{ cluster \"serve\"; system \"dgx-h100\"; nodes \"mig1\" }}
        pool \"train\" {{ cluster \"hpc\"; system \"dgx-h100\"; nodes \"gpu[00001-{nodes:05}]\"; sharing \"whole\" }}"
    )
    .replace("\n        ", "\n");
    checked(&spec).topology().clone()
}

#[test]
fn ten_thousand_nodes_are_as_many_vertices_as_ten() {
    // One rack, one leaf of eight rails, one spine of four; a group and the domains in its nodes,
    // for each of the two pools.
    assert_eq!(rails(10, 1).size(), 3 + 2 * 2);
    assert_eq!(rails(10_000, 1).size(), 3 + 2 * 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn vertices_count_by_groups_and_not_by_nodes(each in 1_u32..200, racks in 1_u32..40) {
        // A rack, a group and the domains of its nodes for each rack; the other pool; two switches.
        let size = rails(each * racks, racks).size();
        prop_assert_eq!(size as u32, 3 * racks + 2 + 2);
    }

    #[test]
    fn every_node_of_a_class_is_in_one_group(each in 1_u32..50, racks in 1_u32..20) {
        let topology = rails(each * racks, racks);
        let nodes: u64 = topology.standings().map(|s| s.group.nodes.len()).sum();
        prop_assert_eq!(nodes, u64::from(each * racks) + 1);
    }
}

#[test]
fn a_node_knows_its_rack_site_leaf_and_domain() {
    let checked = check_fleet("fleets/northwind").unwrap();
    let topology = checked.topology();
    let standing = topology.standing_of("gb019").unwrap();
    assert_eq!(standing.rack.unwrap().as_str(), "r02");
    assert_eq!(standing.site.unwrap().as_str(), "fra1");
    // The second rack of 18 trays is a domain of its own.
    assert_eq!(standing.joined_in().unwrap().as_str(), "r02");
    assert_eq!(standing.domain.unwrap().gpus, 72);
    let standing = topology.standing_of("gpu007").unwrap();
    assert_eq!(standing.group.nodes, list("gpu007"), "its exception makes a group of its own");
    assert_eq!((standing.group.gpus, standing.group.complete), (7, 8));
    let (fabric, leaf) = standing.leaves[0];
    let logical = topology.fabric(fabric).unwrap();
    let up: Vec<String> =
        logical.path_up(leaf).iter().map(|at| logical.switches[*at].names.to_string()).collect();
    assert_eq!(up, ["leaf[1-8]", "spine[1-4]"]);
    assert!(topology.standing_of("gpu999").is_none());
}

#[test]
fn the_tree_of_a_cluster_holds_its_own_nodes_and_no_empty_switch() {
    let checked = check_fleet("fleets/northwind").unwrap();
    let tree = |cluster: &str| {
        let front = "front".parse().unwrap();
        let tree = checked.topology().tree(&front, |s| s.group.cluster.as_str() == cluster);
        let mut shown: Vec<String> = tree
            .iter()
            .map(|switch| {
                let below: Vec<String> =
                    switch.children.iter().map(|at| tree[*at].names.to_string()).collect();
                format!("{} [{}] ({})", switch.names, switch.nodes, below.join(" "))
            })
            .collect();
        shown.sort();
        shown
    };
    // Slurm has the first ten of the shared nodes and the CPU nodes, all on tor2.
    assert_eq!(tree("hpc"), ["agg1 [] (tor2)", "tor2 [flex[01-10],prep[01-04]] ()"]);
    assert_eq!(
        tree("serve"),
        ["agg1 [] (tor1 tor2)", "tor1 [dev[1-4],inf[01-08],sm[1-2]] ()", "tor2 [flex[11-16]] ()",]
    );
}

#[test]
fn blocks_of_slurm_are_nvlink_domains_and_racks() {
    let checked = checked(
        "rack \"r1\" nodes=\"gpu[01-04]\"
rack \"n[1-2]\" system=\"gb200-nvl72\" nodes=\"gb[01-36]\" power=\"140kW\"
rack \"x[1-2]\" system=\"gb200-nvl36x2\" nodes=\"gx[01-18]\" power=\"140kW\"
pool \"domain\" { cluster \"hpc\"; system \"gb200-nvl72-compute-tray\"; nodes \"gb[01-36]\"; sharing \"whole\" }
pool \"halves\" { cluster \"hpc\"; system \"gb200-nvl72-compute-tray\"; nodes \"gx[01-18]\"; sharing \"whole\" }",
    );
    let blocks = checked.topology().slurm_blocks(&"hpc".parse().unwrap());
    let rack = |name: &str| name.parse().unwrap();
    let nodes: Vec<(BlockName, String)> =
        blocks.into_iter().map(|(name, block)| (name, block.nodes.to_string())).collect();
    assert_eq!(
        nodes,
        [
            (BlockName::Rack(rack("r1")), "gpu[01-04]".to_owned()),
            (BlockName::Domain(rack("n1")), "gb[01-18]".to_owned()),
            (BlockName::Domain(rack("n2")), "gb[19-36]".to_owned()),
            // Two racks that are cabled as one.
            (BlockName::Domain(rack("x1")), "gx[01-18]".to_owned()),
        ]
    );
}

#[test]
fn nvlink_reaches_as_far_as_the_system_and_what_is_there() {
    let cases = [
        ("dgx-h100", 8),
        ("pcie-h100-nvl-8", 2),
        ("pcie-l40s-8", 1),
        ("gb200-nvl72-compute-tray", 72),
    ];
    for (system, reach) in cases {
        let checked = check_text(
            Form::Kdl,
            &with_prelude(
                Form::Kdl,
                &format!("pool \"p\" {{ cluster \"serve\"; system \"{system}\"; nodes \"p[1-4]\"; sharing \"whole\" }}"),
            ),
        )
        .unwrap();
        let class = &checked.partial_intent().classes["p"];
        assert_eq!(checked.topology().nvlink_reach(class), Some(reach), "{system}");
    }
}

fn explained(node: &str) -> String {
    let spec = fleetc_tests::repository().join("fleets/northwind");
    let args = ["fleetc", "explain", "node", spec.as_str(), node].map(OsString::from);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    assert_eq!(fleetc::cli::run(args, &mut out, &mut err), 0);
    String::from_utf8(out).unwrap()
}

#[test]
fn explain_shows_where_a_node_is() {
    let rails = explained("gpu001");
    assert!(
        rails.contains("  fabric   compute: leaf[1-8], 8 rails, below spine[1-4]\n"),
        "{rails}"
    );
    assert!(rails.contains("  NVLink   one domain of 8 GPUs in the node\n"), "{rails}");
    let tray = explained("gb019");
    assert!(tray.contains("  rack     r02 at fra1\n"), "{tray}");
    let domain = "  NVLink   one domain of 72 GPUs with the other nodes of rack r02\n";
    assert!(tray.contains(domain), "{tray}");
    assert!(explained("dev1").contains("  NVLink   none: GPUs meet over PCIe\n"));
    assert!(!explained("prep01").contains("NVLink"));
}

#[test]
fn a_plan_names_what_changed_in_the_topology() {
    let spec = |topology: &str, level: &str, placement: &str, partitions: &str| {
        checked(&format!(
            "cluster \"hpc\" {{ slurm \"24.11\" {{ controllers \"ctl1\"; gres autodetect=\"nvml\"; driver \"580.105.08\" owner=\"os\"; {topology} }} }}
cluster \"serve\" {{ kubernetes \"1.36\" {{ distribution \"upstream\"; gpu-operator \"26.7\" namespace=\"gpu-operator\"; driver \"580.105.08\" owner=\"os\"; queue \"kueue\" version=\"0.19\" {{ {level} }} }} }}
pool \"burst\" {{ cluster \"serve\"; system \"aws/p5.48xlarge\"; count 4; {placement} }}
rack \"n1\" system=\"gb200-nvl72\" nodes=\"gb[01-18]\" power=\"140kW\" {partitions}
rack \"r1\" nodes=\"gpu[01-04],mig[01-02]\""
        ))
    };
    let old = spec("", "level \"host\"", "", "");
    let new = spec(
        "topology \"block\" { block-sizes 4 8 }",
        "level \"rack\"; level \"host\"",
        "placement \"cluster\"",
        "partitions=2",
    );
    let changes = fleetc::plan::changes(old.intent().unwrap(), new.intent().unwrap());
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "cluster/hpc/slurm/topology",
            "cluster/serve/kubernetes/queue",
            "rack/n1/partitions",
            "pool/burst/placement",
        ]
    );
}
