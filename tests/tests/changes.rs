//! Rules about a change: when they are silent. Their pages show when they speak.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use fleetc::plan;
use fleetc_schema::plan::Disruption;
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
    let old = "tier \"a\" priority=1\ntier \"b\" priority=2\ntier \"c\" priority=30\n";
    let new = "tier \"a\" priority=10\ntier \"b\" priority=20\ntier \"c\" priority=30\n";
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

#[test]
fn a_priority_is_told_only_where_a_cluster_offers_the_tier() {
    // `train` is of Slurm: the tier of all its jobs has no PriorityClass.
    let job = "workload \"w\" { team \"research\"; tier \"a\"; pool \"train\"; kind \"finetune\"; memory \"60GiB\" }\n";
    let (old, new) = ("tier \"a\" priority=1\n", "tier \"a\" priority=10\n");
    assert_eq!(drawn(&format!("{old}{job}"), &format!("{new}{job}")), [""; 0]);
    let service = job.replace("train", "slices").replace("memory", "slice \"3g.40gb\"; memory");
    let service = service.replace("60GiB", "30GiB").replace("finetune", "inference");
    let both = [format!("{old}{service}"), format!("{new}{service}")];
    assert_eq!(drawn(&both[0], &both[1]), ["quota/priority-changed"]);
}

#[test]
fn a_policy_that_kubernetes_keeps_is_told_for_each_tier_that_changes_it() {
    let stays = "tier \"b\" priority=20\ntier \"c\" priority=30\n";
    let gives = |way: &str| format!("tier \"a\" priority=1 preemptible={way}\n{stays}");
    // `b` stopped `a` and may no longer. `c` is above `b`, which never gave way: it never stopped any.
    assert_eq!(drawn(&gives("#true"), &gives("#false")), ["kubernetes/immutable-change"]);
    assert_eq!(drawn(&gives("#false"), &gives("#true")), ["kubernetes/immutable-change"]);
    // A new priority says it already.
    let risen = gives("#false").replace("priority=20", "priority=21");
    assert_eq!(drawn(&gives("#true"), &risen), ["quota/priority-changed"]);
    let slurm = |text: String| format!("{SLURM}{text}");
    assert_eq!(drawn(&slurm(gives("#true")), &slurm(gives("#false"))), [""; 0]);
}

#[test]
fn the_first_use_of_dra_is_told_if_more_than_one_job_depends_on_it() {
    let cluster = "cluster \"serve\" { kubernetes \"1.36\" { distribution \"upstream\"; gpu-operator \"26.7\" namespace=\"gpu-operator\"; driver \"580.105.08\" owner=\"os\"; dra-driver \"0.5\"; queue \"none\" } }\n";
    let pool = |name: &str, devices: &str| {
        format!(
            "pool \"{name}\" {{ cluster \"serve\"; system \"dgx-h100\"; nodes \"{name}[1-2]\"; sharing \"whole\"; devices \"{devices}\" }}\n"
        )
    };
    let job = |name: &str, pool: &str| {
        format!(
            "workload \"{name}\" {{ team \"research\"; pool \"{pool}\"; kind \"finetune\"; memory \"60GiB\" }}\n"
        )
    };
    let fleet =
        |a: &str, b: &str, jobs: &str| format!("{cluster}{}{}{jobs}", pool("a", a), pool("b", b));
    let told = ["dra/everything-at-once"];
    let jobs = job("x", "a") + &job("y", "a");
    let plain = fleet("device-plugin", "device-plugin", &jobs);
    assert_eq!(drawn(&plain, &fleet("dra", "device-plugin", &jobs)), told);
    let spread = job("x", "a") + &job("y", "b");
    assert_eq!(drawn(&plain, &fleet("dra", "dra", &spread)), told);
    // One job is a pilot, and so is a pool that nothing runs in yet.
    assert_eq!(drawn(&plain, &fleet("dra", "device-plugin", &spread)), [""; 0]);
    assert_eq!(drawn(&plain, &fleet("device-plugin", "dra", &jobs)), [""; 0]);
    // The second pool is no first use.
    let pilot = fleet("device-plugin", "dra", &jobs);
    assert_eq!(drawn(&pilot, &fleet("dra", "dra", &jobs)), [""; 0]);
}

#[test]
fn a_taint_that_evicts_drains_and_one_that_does_not_is_for_new_pods() {
    let pool = |taint: &str| {
        let text = format!(
            "pool \"slices\" {{ cluster \"serve\"; system \"dgx-h100\"; nodes \"mig[01-02]\"; sharing \"whole\"; {taint} }}\n"
        );
        check_text(Form::Kdl, &with_prelude(Form::Kdl, &text)).unwrap()
    };
    let effect = |old: &str, new: &str| {
        let (old, new) = (pool(old), pool(new));
        let plan = plan::plan(old.intent().unwrap(), new.intent().unwrap());
        (plan.disruption(), plan.disturbed_nodes().to_string())
    };
    let no_execute = "taint \"example.com/a\" effect=\"NoExecute\"";
    let no_schedule = "taint \"example.com/a\" effect=\"NoSchedule\"";
    assert_eq!(effect("", no_execute), (Disruption::Drain, "mig[01-02]".to_owned()));
    assert_eq!(effect(no_schedule, no_execute), (Disruption::Drain, "mig[01-02]".to_owned()));
    // Agents learn what they tolerate; no job notices.
    assert_eq!(effect("", no_schedule), (Disruption::RestartDaemon, String::new()));
    assert_eq!(effect(no_execute, ""), (Disruption::RestartDaemon, String::new()));
}

#[test]
fn a_pool_that_comes_and_lifts_caps_says_so() {
    let pool = |name: &str| {
        format!(
            "pool \"{name}\" {{ cluster \"serve\"; system \"dgx-h100\"; nodes \"{name}[1-2]\"; sharing \"whole\" }}\n"
        )
    };
    let team = "team \"t\" { quota \"kept\" guaranteed=8 }\n";
    let said = |added: &str, team: &str| {
        let read = |text: &str| check_text(Form::Kdl, &with_prelude(Form::Kdl, text)).unwrap();
        let old = read(&(pool("kept") + team));
        let new = read(&(pool("kept") + &pool(added) + team));
        let plan = plan::plan(old.intent().unwrap(), new.intent().unwrap());
        let effects = plan.steps.iter().flat_map(|step| &step.effects);
        let mut reasons = effects.flat_map(|effect| &effect.reasons);
        reasons.any(|(_, reason)| reason.contains("ResourceQuotas come or go"))
    };
    assert!(said("free", team));
    // Without quotas there are no caps to lift.
    assert!(!said("free", ""));
}
