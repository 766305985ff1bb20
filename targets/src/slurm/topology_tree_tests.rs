//! Trees of fabrics, against trees that were drawn by hand.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use fleetc_schema::intent::{Attachment, Fabric, FabricKind, SwitchGroup};

use super::*;

fn list(text: &str) -> Hostlist {
    match text {
        "" => Hostlist::default(),
        text => text.parse().unwrap(),
    }
}

/// Switches as `names` or `names uplinks`, attachments as `switches nodes`.
fn fabric(switches: &[(&str, &str)], attachments: &[(&str, &str)]) -> Fabric {
    let switches = switches
        .iter()
        .map(|(names, uplinks)| SwitchGroup { names: list(names), uplinks: list(uplinks) });
    let attachments = attachments.iter().map(|(switches, nodes)| Attachment {
        switches: list(switches),
        nodes: list(nodes),
        rails: None,
    });
    Fabric {
        kind: FabricKind::Infiniband,
        rate: None,
        switches: switches.collect(),
        attachments: attachments.collect(),
    }
}

fn lines(fabric: &Fabric, nodes: &str) -> Vec<String> {
    let mut left = list(nodes);
    let name = FabricName::new("compute").unwrap();
    let line =
        |switch: Switch| format!("{}: {}{}", switch.name, switch.nodes, switch.switches.join(" "));
    of_fabric(&name, fabric, &mut left).into_iter().map(line).collect()
}

#[test]
fn rails_are_one_leaf_and_alike_spines_one_spine() {
    let rails = fabric(
        &[("spine[1-4]", ""), ("leaf[1-8]", "spine[1-4]"), ("leaf[9-16]", "spine[1-4]")],
        &[("leaf[1-8]", "gpu[01-32]"), ("leaf[9-16]", "gpu[33-64]")],
    );
    assert_eq!(
        lines(&rails, "gpu[01-64]"),
        ["leaf1-8: gpu[01-32]", "leaf9-16: gpu[33-64]", "spine1-4: leaf1-8 leaf9-16"]
    );
}

#[test]
fn switches_without_nodes_of_the_cluster_are_left_out() {
    let front = fabric(
        &[("agg1", ""), ("tor[1-3]", "agg1")],
        &[("tor1", "web[1-9]"), ("tor2", "gpu[1-4],gpu9"), ("tor3", "")],
    );
    assert_eq!(lines(&front, "gpu[1-4]"), ["tor2: gpu[1-4]", "agg1: tor2"]);
    assert!(lines(&front, "other1").is_empty());
}

#[test]
fn planes_above_a_joined_spine_are_joined_too() {
    // Two pods of two spines; spine a of a pod goes to cores 1-2, spine b to cores 3-4.
    let clos = fabric(
        &[
            ("core[1-4]", ""),
            ("pod1a", "core[1-2]"),
            ("pod1b", "core[3-4]"),
            ("pod2a", "core[1-2]"),
            ("pod2b", "core[3-4]"),
            ("leaf1", "pod1a,pod1b"),
            ("leaf2", "pod2a,pod2b"),
        ],
        &[("leaf1", "n[1-2]"), ("leaf2", "n[3-4]")],
    );
    assert_eq!(
        lines(&clos, "n[1-4]"),
        [
            "leaf1: n[1-2]",
            "leaf2: n[3-4]",
            "pod1a_pod1b: leaf1",
            "pod2a_pod2b: leaf2",
            "core1-4: pod1a_pod1b pod2a_pod2b",
        ]
    );
}

#[test]
fn nodes_on_a_spine_get_a_leaf_under_it() {
    let mixed = fabric(&[("s1", ""), ("l1", "s1")], &[("l1", "a[1-2]"), ("s1", "b1")]);
    assert_eq!(lines(&mixed, "a[1-2],b1"), ["l1: a[1-2]", "s1.nodes: b1", "s1: l1 s1.nodes"]);
}

#[test]
fn a_node_stands_in_one_switch_and_a_loop_is_cut() {
    let twice = fabric(&[("a", "b"), ("b", "a")], &[("a", "n[1-2]"), ("b", "n[2-3]")]);
    assert_eq!(lines(&twice, "n[1-3]"), ["a: n[1-2]", "b.nodes: n3", "b: a b.nodes"]);
}

#[test]
fn one_name_in_two_fabrics_is_told_apart() {
    let switch = |name: &str, below: &[&str]| Switch {
        name: name.to_owned(),
        nodes: Hostlist::default(),
        switches: below.iter().map(|name| (*name).to_owned()).collect(),
        items: Vec::new(),
    };
    let mut tree = [
        switch("leaf1", &[]),
        switch("top", &["leaf1"]),
        switch("leaf1", &[]),
        switch("top", &["leaf1"]),
    ];
    rename_clashes(&mut tree);
    let names: Vec<String> =
        tree.iter().map(|s| format!("{} {}", s.name, s.switches.join(","))).collect();
    assert_eq!(names, ["leaf1 ", "top leaf1", "leaf1.2 ", "top.2 leaf1.2"]);
}
