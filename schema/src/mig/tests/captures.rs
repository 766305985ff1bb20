//! Commands and rules that were captured or published, against the catalog's tables. The listings
//! stand in `sources.rs`.
//!
//! Sources: NVIDIA MIG User Guide ("Getting Started with MIG", "Supported MIG Profiles"); GB200
//! listings in NVIDIA/gpu-operator pull request 1303.

use super::super::*;
use super::{ask, table};

/// The profiles of `nvidia-smi mig -cgi 9,19,14,19` or `9:4,14:0`: ids, and starts if given.
fn cgi<'a>(table: &'a MigTable, text: &str) -> Vec<(&'a GiProfile, Option<u8>)> {
    let one = |tuple: &str| {
        let (id, start) = tuple.split_once(':').map_or((tuple, None), |(id, at)| (id, Some(at)));
        let profile = table.profile_by_id(id.parse().unwrap()).unwrap();
        (profile, start.map(|start| start.parse().unwrap()))
    };
    text.split(',').map(one).collect()
}

fn once<'a>(profiles: &[(&'a GiProfile, Option<u8>)]) -> Vec<Demand<'a>> {
    profiles.iter().map(|(profile, _)| Demand { profile, count: 1 }).collect()
}

#[test]
fn a_layout_is_legal_in_any_order_though_the_driver_takes_it_in_one_only() {
    // The guide has `-cgi 9,19,14,19` work on an A100 and `-cgi 19,19,14,9` fail.
    let table = table("a100-40gb");
    let (works, fails) = (cgi(&table, "9,19,14,19"), cgi(&table, "19,19,14,9"));
    let placed = |profiles| {
        let mut placed = place(&table, &once(profiles)).unwrap();
        placed.sort_by_key(|(_, placement)| *placement);
        placed
    };
    assert_eq!(placed(&works), placed(&fails));
    // Without starts it depends on where the driver puts the first three: here it has no 3g left.
    let three = [(&fails[0], 0), (&fails[1], 4), (&fails[2], 2)];
    let stand = three.map(|((p, _), start)| (*p, Placement { start, size: p.memory_slices }));
    assert!(is_legal(&table, &stand));
    assert!(open_placements(&table, &stand).iter().all(|(profile, _)| profile.id != 9));
}

#[test]
fn explicit_starts_are_legal_in_the_order_that_failed_without() {
    let table = table("a100-40gb");
    for (text, legal) in [
        ("9:4,14:0,19:2,19:3", true),
        ("19:2,19:3,14:0,9:4", true),
        ("9:4,9:0", true),
        ("9:4,14:4", false),
        ("14:1", false),
        ("19:7", false),
        ("5:4", false),
        ("15:6,14:4,9:0", true),
        ("14:6", false),
    ] {
        let stand: Vec<Placed<'_>> = cgi(&table, text)
            .into_iter()
            .map(|(p, start)| (p, Placement { start: start.unwrap(), size: p.memory_slices }))
            .collect();
        assert_eq!(is_legal(&table, &stand), legal, "{text}");
    }
}

#[test]
fn on_an_a30_the_two_media_profiles_exclude_each_other() {
    let table = table("a30");
    let both = ask(&table, &[("1g.6gb+me", 1), ("2g.12gb+me", 1)]);
    assert_eq!(place(&table, &both), Err(NoLayout::Engines));
    let short = conflict(&table, &both).unwrap().short;
    let one_of_two = |engine| EngineShort { engine, wanted: 2, available: 1 };
    assert_eq!(short, [one_of_two(Engine::Jpeg), one_of_two(Engine::OpticalFlow)]);
    assert!(place(&table, &ask(&table, &[("2g.12gb", 1), ("1g.6gb+me", 1)])).is_ok());
}

#[test]
fn beside_every_media_engine_in_one_instance_stand_only_instances_without() {
    let table = table("rtx-pro-6000-96gb");
    let all = Attributes::With([Attribute::MeAll].into());
    let mut seen = 0;
    for layout in layouts(&table) {
        let (takes_all, others): (Vec<&Demand<'_>>, Vec<&Demand<'_>>) =
            layout.iter().partition(|d| d.profile.name.attributes == all);
        if !takes_all.is_empty() {
            seen += others.len();
            assert!(others.iter().all(|d| d.profile.name.attributes == Attributes::WithoutMe));
        }
    }
    assert!(seen > 0);
}

#[test]
fn an_early_gb200_driver_names_every_profile_otherwise() {
    let names = names_for_total(&table("gb200-186gb"), 189 * 1024);
    let then: Vec<String> = names.iter().map(|(_, then)| then.to_string()).collect();
    assert_eq!(
        then,
        ["1g.24gb", "1g.24gb+me", "1g.47gb", "2g.47gb", "3g.95gb", "4g.95gb", "7g.189gb"]
    );
    let now: Vec<String> = names.iter().map(|(now, _)| now.to_string()).collect();
    assert_eq!(
        now,
        ["1g.23gb", "1g.23gb+me", "1g.47gb", "2g.47gb", "3g.93gb", "4g.93gb", "7g.186gb"]
    );
}
