//! Rules about a change: when they are silent. Their pages show when they speak.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use fleetc::plan;
use fleetc_tests::{Form, check_text, with_prelude};

/// Names of the rules that a change from one fragment to another draws.
fn drawn(old: &str, new: &str) -> Vec<&'static str> {
    let read = |text: &str| check_text(Form::Kdl, &with_prelude(Form::Kdl, text)).unwrap();
    let (old, new) = (read(old), read(new));
    let found = plan::findings(old.intent().unwrap(), new.intent().unwrap());
    found.iter().map(|finding| finding.rule.name).collect()
}

/// A cluster `serve` that Slurm schedules, so that the fleet has no Kubernetes.
const SLURM: &str = "cluster \"serve\" { slurm \"24.11\" { controllers \"ctl2\"; gres autodetect=\"nvml\"; driver \"580.105.08\" owner=\"os\" } }\n";

#[test]
fn a_priority_that_kubernetes_keeps_is_told_once_for_each_tier() {
    let old = "tier \"a\" priority=1\ntier \"b\" priority=2\ntier \"c\" priority=3\n";
    let new = "tier \"a\" priority=10\ntier \"b\" priority=20\ntier \"c\" priority=3\n";
    assert_eq!(drawn(old, new), ["quota/priority-changed"; 2]);
}

#[test]
fn a_priority_may_change_where_no_priority_class_stays() {
    let (old, new) = ("tier \"a\" priority=1\n", "tier \"a\" priority=10\n");
    // Slurm changes a QOS at once.
    assert_eq!(drawn(&format!("{SLURM}{old}"), &format!("{SLURM}{new}")), [""; 0]);
    // The Kubernetes cluster comes or goes with the change.
    assert_eq!(drawn(&format!("{SLURM}{old}"), new), [""; 0]);
    assert_eq!(drawn(old, &format!("{SLURM}{new}")), [""; 0]);
    // A tier that comes or goes is another object.
    assert_eq!(drawn(old, "tier \"b\" priority=10\n"), [""; 0]);
    // What is no part of the value may change.
    assert_eq!(drawn(old, "tier \"a\" priority=1 { max-time \"8h\" }\n"), [""; 0]);
}
