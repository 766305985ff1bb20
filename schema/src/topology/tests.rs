use super::*;
use crate::intent::{Attachment, Fabric, FabricKind, SwitchGroup};

fn list(text: &str) -> Hostlist {
    text.parse().unwrap()
}

/// A fabric of switches (names, uplinks) and attachments (switches, nodes, rails).
fn fabric(switches: &[(&str, &str)], attachments: &[(&str, &str, Option<u32>)]) -> Fabric {
    let group = |(names, uplinks): &(&str, &str)| SwitchGroup {
        names: list(names),
        uplinks: list(uplinks),
    };
    let attachment = |(switches, nodes, rails): &(&str, &str, Option<u32>)| Attachment {
        switches: list(switches),
        nodes: list(nodes),
        rails: *rails,
    };
    Fabric {
        kind: FabricKind::Infiniband,
        rate: None,
        switches: switches.iter().map(group).collect(),
        attachments: attachments.iter().map(attachment).collect(),
    }
}

/// Each logical switch with the names of those above it, sorted.
fn shape(logical: &LogicalFabric) -> Vec<(String, Vec<String>)> {
    let name = |at: &usize| logical.switches[*at].names.to_string();
    let mut all: Vec<(String, Vec<String>)> = logical
        .switches
        .iter()
        .map(|switch| (switch.names.to_string(), switch.uplinks.iter().map(name).collect()))
        .collect();
    all.sort();
    all
}

fn expected(switches: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let above = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    switches.iter().map(|(name, up)| ((*name).to_owned(), above(up))).collect()
}

#[test]
fn rails_are_one_leaf_and_spines_with_equal_down_links_one_switch() {
    let fabric = fabric(
        &[("spine[1-4]", ""), ("leaf[1-8]", "spine[1-4]")],
        &[("leaf[1-8]", "gpu[001-032]", Some(8))],
    );
    let logical = LogicalFabric::of(&fabric);
    assert_eq!(shape(&logical), expected(&[("leaf[1-8]", &["spine[1-4]"]), ("spine[1-4]", &[])]));
    let leaf = logical.switches.iter().find(|s| s.names == list("leaf[1-8]")).unwrap();
    assert_eq!((leaf.rails, leaf.attachments.as_slice()), (Some(8), [0].as_slice()));
}

#[test]
fn rails_with_spines_of_their_own_are_one_leaf_below_one_spine() {
    // Each rail has a plane: leaf 1 goes to spine 1 only. All rails are one leaf, so the planes have
    // equal down-links.
    let fabric = fabric(
        &[("spine[1-2]", ""), ("leaf1", "spine1"), ("leaf2", "spine2")],
        &[("leaf[1-2]", "gpu[1-4]", Some(2))],
    );
    assert_eq!(
        shape(&LogicalFabric::of(&fabric)),
        expected(&[("leaf[1-2]", &["spine[1-2]"]), ("spine[1-2]", &[])])
    );
}

#[test]
fn sets_of_rails_that_share_a_switch_are_one_leaf() {
    let fabric = fabric(
        &[("leaf[1-4]", "")],
        &[("leaf[1-4]", "a[1-4]", Some(4)), ("leaf[1-2]", "b[1-4]", Some(2))],
    );
    let logical = LogicalFabric::of(&fabric);
    assert_eq!(shape(&logical), expected(&[("leaf[1-4]", &[])]));
    assert_eq!(logical.switches[0].rails, Some(4));
}

#[test]
fn leaves_without_rails_stay_apart_though_their_uplinks_are_equal() {
    let fabric = fabric(
        &[("spine[1-2]", ""), ("leaf[1-2]", "spine[1-2]")],
        &[("leaf1", "gpu[1-2]", None), ("leaf2", "gpu[3-4]", None)],
    );
    assert_eq!(
        shape(&LogicalFabric::of(&fabric)),
        expected(&[("leaf1", &["spine[1-2]"]), ("leaf2", &["spine[1-2]"]), ("spine[1-2]", &[]),])
    );
}

#[test]
fn what_is_merged_makes_the_level_above_equal() {
    // Two pods of two spines, and two cores: core r takes spine r of each pod.
    let fabric = fabric(
        &[
            ("core[1-2]", ""),
            ("a1,b1", "core1"),
            ("a2,b2", "core2"),
            ("la", "a[1-2]"),
            ("lb", "b[1-2]"),
        ],
        &[("la", "x[1-4]", None), ("lb", "y[1-4]", None)],
    );
    assert_eq!(
        shape(&LogicalFabric::of(&fabric)),
        expected(&[
            ("a[1-2]", &["core[1-2]"]),
            ("b[1-2]", &["core[1-2]"]),
            ("core[1-2]", &[]),
            ("la", &["a[1-2]"]),
            ("lb", &["b[1-2]"]),
        ])
    );
}

#[test]
fn spines_with_other_down_links_stay_apart() {
    let fabric = fabric(
        &[("spine[1-2]", ""), ("leaf1", "spine[1-2]"), ("leaf2", "spine2")],
        &[("leaf1", "x1", None), ("leaf2", "x2", None)],
    );
    let logical = LogicalFabric::of(&fabric);
    assert_eq!(
        shape(&logical),
        expected(&[
            ("leaf1", &["spine1", "spine2"]),
            ("leaf2", &["spine2"]),
            ("spine1", &[]),
            ("spine2", &[]),
        ])
    );
    let island = logical.switches[0].island;
    assert!(logical.switches.iter().all(|switch| switch.island == island));
}

#[test]
fn a_circle_is_found_and_no_way_up_leads_through_it() {
    for switches in
        [&[("a", "b"), ("b", "c"), ("c", "a"), ("leaf", "a")][..], &[("a", "a"), ("leaf", "a")]]
    {
        let logical = LogicalFabric::of(&fabric(switches, &[("leaf", "x1", None)]));
        let circle = if switches.len() > 2 { "a,b,c" } else { "a" };
        assert_eq!(logical.cycles, [list(circle)]);
        let leaf = logical.switches.iter().position(|s| s.names == list("leaf")).unwrap();
        assert!(logical.path_up(leaf).len() <= switches.len());
    }
}

#[test]
fn two_circles_are_told_apart() {
    let fabric = fabric(&[("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")], &[]);
    let mut cycles: Vec<String> =
        LogicalFabric::of(&fabric).cycles.iter().map(ToString::to_string).collect();
    cycles.sort();
    assert_eq!(cycles, ["a,b", "c,d"]);
}

#[test]
fn switches_that_hold_nothing_and_nodes_on_two_leaves_are_found() {
    let fabric = fabric(
        &[("spine[1-2]", ""), ("leaf[1-3]", "spine1")],
        &[("leaf1", "x[1-3]", None), ("leaf2", "x[3-4]", None)],
    );
    let logical = LogicalFabric::of(&fabric);
    let orphans = logical.orphans().fold(Hostlist::default(), |all, s| all.union(&s.names));
    assert_eq!(orphans, list("leaf3,spine2"));
    let twice: Vec<Hostlist> =
        logical.nodes_on_two(&fabric).into_iter().map(|(_, _, nodes)| nodes).collect();
    assert_eq!(twice, [list("x3")]);
}

#[test]
fn parts_that_no_switch_joins_are_islands() {
    let fabric = fabric(
        &[("spine1", ""), ("leaf[1-2]", "spine1"), ("leaf3", "")],
        &[("leaf1", "x1", None), ("leaf2", "x2", None), ("leaf3", "x3", None)],
    );
    let logical = LogicalFabric::of(&fabric);
    let island = |name: &str| {
        logical.switches.iter().find(|switch| switch.names == list(name)).unwrap().island
    };
    assert_eq!(island("leaf1"), island("leaf2"));
    assert_eq!(island("leaf1"), island("spine1"));
    assert_ne!(island("leaf1"), island("leaf3"));
}

#[test]
fn blocks_hold_jobs_by_complete_nodes() {
    let block = |nodes: &[(u32, u64)]| Block {
        nodes: Hostlist::default(),
        by_gpus: nodes.iter().copied().collect(),
    };
    // Sixteen GPUs are two complete nodes, and not 5 + 5 + 3 + 3.
    assert!(block(&[(8, 2)]).holds(2, 0, 8));
    assert!(!block(&[(5, 2), (3, 2)]).holds(2, 0, 8));
    // Twelve are one complete node and four GPUs of another.
    assert!(block(&[(8, 1), (4, 1)]).holds(1, 4, 8));
    assert!(!block(&[(8, 1), (3, 1)]).holds(1, 4, 8));
    assert!(!block(&[(8, 1)]).holds(1, 4, 8));
    assert!(block(&[(8, 2)]).holds(1, 4, 8));
}
