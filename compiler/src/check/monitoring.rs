//! Alerts: those that a fleet changes, and who is told.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::intent::{
    AlertClass, Intent, Monitoring, RouteTarget, StandardAlert, Tier, Workload,
};
use fleetc_schema::name::{TeamName, TierName};
use fleetc_schema::units::Ratio;
use fleetc_targets::{Absent, absent_alert};
use indexmap::{IndexMap, IndexSet};

use super::tiers;
use crate::language::listing;
use crate::lower::Lowered;

/// The tier that is taken for what users depend on, by its name.
const PRODUCTION: &str = "production";

fn item() -> ItemPath {
    ItemPath::default().child("monitoring")
}

fn alert_item(alert: StandardAlert) -> ItemPath {
    item().keyed("alert", [alert])
}

/// `monitoring/metric-not-exported`: an alert is changed that this exporter cannot feed.
pub fn metric_not_exported(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let Some(monitoring) = &lowered.intent.monitoring else { return };
    for alert in monitoring.alerts.keys() {
        let Some(Absent::NotExported { metric, since }) = absent_alert(&lowered.intent, *alert)
        else {
            continue;
        };
        let version = &monitoring.exporter.version;
        let since: Vec<String> = since.iter().map(u32::to_string).collect();
        let since = since.join(".");
        let title =
            format!("`{alert}` needs {metric}, which dcgm-exporter {version} does not have");
        found.push(
            Diagnostic::new(&rules::MONITORING_METRIC_NOT_EXPORTED, title)
                .at(alert_item(*alert), "can never fire")
                .at(item().child("exporter").child("version"), "too old for it")
                .note("an exporter that is told to export a field that it does not know does not start")
                .help(format!("run dcgm-exporter {since} or later, or remove the alert")),
        );
    }
}

/// `monitoring/missing-on-mig`: an alert is changed whose metric is not there on GPUs in MIG mode, and
/// every GPU that could have it is in MIG mode.
pub fn missing_on_mig(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let Some(monitoring) = &lowered.intent.monitoring else { return };
    for alert in monitoring.alerts.keys() {
        if absent_alert(&lowered.intent, *alert) != Some(Absent::OnMig) {
            continue;
        }
        let title =
            format!("`{alert}` tells of nothing: every GPU that could have it is in MIG mode");
        let mig = lowered
            .intent
            .classes
            .values()
            .find(|class| class.node.gpus.iter().any(|gpu| gpu.mig.is_some()));
        let finding = Diagnostic::new(&rules::MONITORING_MISSING_ON_MIG, title)
            .at(alert_item(*alert), "is not written");
        let finding = match mig {
            Some(class) => finding.at(&class.node.paths.sharing, "MIG mode"),
            None => finding,
        };
        found.push(
            finding
                .note("NVML reports the NVLinks of a GPU in MIG mode as down")
                .help("remove it: these GPUs do not use NVLink"),
        );
    }
}

/// `monitoring/threshold`: a change after which an alert never fires, or always does.
pub fn threshold(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let Some(monitoring) = &lowered.intent.monitoring else { return };
    for (alert, change) in &monitoring.alerts {
        let kind = alert.kind();
        let finding = |title: String| Diagnostic::new(&rules::MONITORING_THRESHOLD, title);
        let (below, after) = (alert_item(*alert).child("below"), alert_item(*alert).child("after"));
        match (change.below, kind.below) {
            (Some(_), None) => found.push(
                finding(format!("`{alert}` has no threshold"))
                    .at(below, "changes nothing")
                    .note("it fires on what is there or is not, not on a share")
                    .help("remove `below`; `after` says how long it must hold"),
            ),
            (Some(Ratio(0)), Some(standard)) => found.push(
                finding(format!("`{alert}` never fires: nothing is below 0"))
                    .at(below, "below nothing")
                    .help(format!("write a share such as `below={standard}`")),
            ),
            (Some(Ratio(1_000_000)), Some(standard)) => found.push(
                finding(format!("`{alert}` always fires: every GPU is below 1 now and then"))
                    .severity(Severity::Warning)
                    .at(below, "above what a GPU at work reaches")
                    .help(format!("write a share such as `below={standard}`")),
            ),
            _ => {}
        }
        if let (Some(stated), Some(window)) = (change.after, kind.window)
            && stated >= window
        {
            let title = format!(
                "`{alert}` never fires: one event is seen for {window}, and it waits {stated}"
            );
            found.push(
                finding(title)
                    .at(after, format!("{stated} or longer of an event that is seen for {window}"))
                    .help(format!(
                        "write less than {window}, or remove it: {}",
                        standard_after(*alert)
                    )),
            );
        }
    }
}

fn standard_after(alert: StandardAlert) -> String {
    match alert.kind().after.0 {
        0 => "it fires at once".to_owned(),
        _ => format!("it fires after {}", alert.kind().after),
    }
}

/// `monitoring/no-route`: alerts that nobody receives. A fleet that routes nothing leaves it to the site.
pub fn no_route(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    let Some(monitoring) = intent.monitoring.as_ref().filter(|m| !m.routes.is_empty()) else {
        return;
    };
    // A route that could not be read is reported, and may be the one.
    if lowered.poisoned.iter().any(|path| path.is_within(&item())) {
        return;
    }
    let finding = |title: String| Diagnostic::new(&rules::MONITORING_NO_ROUTE, title);
    let rest = monitoring.routes.iter().find(|route| route.class.is_none());
    let missing = unrouted(intent, monitoring);
    if rest.is_none() && !missing.is_empty() {
        let classes = listing(missing.iter().map(|class| class.as_str()));
        let are = if missing.len() == 1 { "alerts of class" } else { "alerts of the classes" };
        let first = monitoring.receivers.keys().next();
        let name = first.map_or("dc-ops", |name| name.as_str());
        found.push(
            finding(format!("nobody receives {are} {classes}"))
                .at(item(), "no route for them, and none for the rest")
                .help(format!(
                    "add `route to=\"{name}\"`, which takes every class without a route"
                )),
        );
    }
    let told = rest.is_some_and(|route| route.to != RouteTarget::Owner);
    let to_owner = monitoring.routes.iter().find(|route| route.to == RouteTarget::Owner);
    if let Some(route) = to_owner.filter(|_| !told && (rest.is_some() || missing.is_empty())) {
        let of = route.class.map_or_else(|| "alerts".to_owned(), |class| format!("{class} alerts"));
        found.push(
            finding(format!("nobody receives {of} whose owner is not known"))
                .at(route_item(route.class), "to the team, if there is one")
                .note("the team of a Slurm job or of a foreign namespace is not known to the exporter")
                .help("add a route for the rest: `route to=\"dc-ops\"`, with a receiver"),
        );
    }
    for (name, receiver) in &monitoring.receivers {
        let route = monitoring.routes.iter().find(|r| r.to == RouteTarget::Receiver(name.clone()));
        if let Some(route) = route
            && receiver.pagerduty_key_file.is_none()
            && receiver.slack.is_none()
        {
            found.push(
                finding(format!("receiver `{name}` tells nobody"))
                    .at(item().keyed("receiver", [name]), "neither `slack` nor `pagerduty`")
                    .at(route_item(route.class), "leads to it")
                    .help(
                        "add `slack \"#gpu-ops\"` or `pagerduty key-file=\"/etc/alertmanager/pd\"`",
                    ),
            );
        }
    }
}

fn route_item(class: Option<AlertClass>) -> ItemPath {
    item().keyed("route", class)
}

/// Classes of alerts that the fleet has, without a route of their own.
fn unrouted(intent: &Intent, monitoring: &Monitoring) -> IndexSet<AlertClass> {
    let routed = |class: AlertClass| monitoring.routes.iter().any(|r| r.class == Some(class));
    let present = StandardAlert::ALL.iter().filter(|alert| absent_alert(intent, **alert).is_none());
    present.map(|alert| alert.kind().class).filter(|class| !routed(*class)).collect()
}

/// `monitoring/no-contact`: alerts go to the owner, and a team cannot be told.
pub fn no_contact(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    let Some(monitoring) = &intent.monitoring else { return };
    let Some(route) = monitoring.routes.iter().find(|route| route.to == RouteTarget::Owner) else {
        return;
    };
    for (name, team) in &intent.teams {
        let path = ItemPath::item("team", name);
        if reachable(intent, name) || lowered.is_poisoned(&path) {
            continue;
        }
        // A team that only holds others has no jobs of its own.
        let part_of_it = intent.teams.values().any(|other| other.parent.as_ref() == Some(name));
        let works = !team.quotas.is_empty()
            || intent.workloads.values().any(|workload| workload.team == *name);
        if part_of_it && !works {
            continue;
        }
        let mail = team.contact.as_ref().and_then(|contact| contact.email.as_ref());
        let finding = Diagnostic::new(
            &rules::MONITORING_NO_CONTACT,
            format!("team `{name}` is not told of its alerts"),
        );
        let finding = match mail {
            Some(_) => finding
                .at(path.child("contact"), "only a mail address")
                .note("Alertmanager needs a mail server to write to it, and no word names one"),
            None => finding.at(path, "has no contact, nor has a team around it"),
        };
        found.push(
            finding
                .at(route_item(route.class), "alerts go to the owner")
                .help(format!("add `contact slack=\"#{name}\"`")),
        );
    }
}

/// True if the team, or one around it, has a channel.
fn reachable(intent: &Intent, name: &TeamName) -> bool {
    let around = std::iter::successors(Some(name), |name| {
        intent.teams.get(*name).and_then(|team| team.parent.as_ref())
    });
    let has_channel = |team: &TeamName| {
        let contact = intent.teams.get(team).and_then(|team| team.contact.as_ref());
        contact.is_some_and(|contact| contact.slack.is_some())
    };
    around.into_iter().any(has_channel)
}

/// `monitoring/not-covered`: production runs where nothing watches.
pub fn not_covered(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    if intent.monitoring.is_some() || lowered.is_poisoned(&item()) {
        return;
    }
    let mut pools: IndexMap<_, _> = IndexMap::new();
    for (name, workload) in &intent.workloads {
        if workload.tier.as_ref().is_some_and(|tier| tier.as_str() == PRODUCTION) {
            pools.entry(&workload.pool).or_insert(name);
        }
    }
    for (pool, workload) in pools {
        let title = format!("production runs in pool `{pool}`, and nothing watches its GPUs");
        found.push(
            Diagnostic::new(&rules::MONITORING_NOT_COVERED, title)
                .at(ItemPath::item("pool", pool), "has no alerts")
                .at(ItemPath::item("workload", workload), "of the tier `production`")
                .help("add `monitoring { exporter \"dcgm-exporter\" version=\"4.8.3\" }`"),
        );
    }
}

/// `monitoring/no-reaper`: nothing ends a session that somebody has left.
pub fn no_reaper(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    // One job of the tier that holds a whole pool is the worse end of the same.
    let blocking = tiers::blocking(lowered);
    for (name, tier) in &intent.tiers {
        // A session that gives way holds nobody up.
        let Tier { max_time: None, idle_after: None, preemptible: false, .. } = tier else {
            continue;
        };
        let item = ItemPath::item("tier", name);
        let sessions: Vec<(&_, &Workload)> = intent
            .workloads
            .iter()
            .filter(|(_, workload)| {
                tiers::is_interactive(workload) && workload.tier.as_ref() == Some(name)
            })
            .collect();
        let ends = |(_, w): &(&_, &Workload)| {
            tiers::partitions_end_jobs(intent, &w.cluster, &w.pool, name)
        };
        let Some((workload, _)) = sessions.iter().find(|session| !ends(session)) else { continue };
        if lowered.is_poisoned(&item) || blocks(&blocking, name) {
            continue;
        }
        let title = format!("nothing ends a session of tier `{name}` that somebody has left");
        found.push(
            Diagnostic::new(&rules::MONITORING_NO_REAPER, title)
                .at(item, "neither `idle-after` nor `max-time`")
                .at(ItemPath::item("workload", workload), "people work here")
                .note("a kernel that is idle does not crash, so nothing gives its GPU back")
                .help("add `idle-after \"1h\"`, or `max-time \"8h\"`"),
        );
    }
}

fn blocks<P, V>(blocking: &IndexMap<(&TierName, P), V>, name: &TierName) -> bool {
    blocking.keys().any(|(tier, _)| *tier == name)
}
