//! Alertmanager: who is told what.
//!
//! An alert is routed by its label `route`, the class that a `route` of the spec names, and by `team`
//! where its owner is to be told. Secrets are named by file. A fleet that routes nothing leaves
//! Alertmanager to the site. Source: Alertmanager 0.25 documentation, "Configuration".

use fleetc_schema::ItemPath;
use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{Intent, Monitoring, Receiver, RouteTarget, StandardAlert, Team};
use fleetc_schema::name::TeamName;
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect};
use indexmap::IndexMap;
use serde::Serialize;

use crate::write::{header, yaml};
use crate::{OutputFile, OutputTree, Scope, Target};

/// The configuration of Alertmanager.
pub struct Routing;

/// The receiver of what nobody is told. Names of the spec are labels in lower case, like this one,
/// so the slash keeps ours apart.
const NOBODY: &str = "fleetc/nobody";

#[derive(Serialize)]
struct Config {
    #[serde(skip_serializing_if = "Option::is_none")]
    global: Option<Global>,
    route: Route,
    inhibit_rules: Vec<Inhibit>,
    receivers: Vec<ReceiverConfig>,
}

#[derive(Serialize)]
struct Global {
    slack_api_url_file: String,
}

#[derive(Serialize)]
struct Route {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    matchers: Vec<String>,
    receiver: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    group_by: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_wait: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_interval: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat_interval: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<Route>,
}

#[derive(Serialize)]
struct Inhibit {
    source_matchers: [String; 1],
    target_matchers: [String; 1],
    equal: Vec<&'static str>,
}

#[derive(Serialize)]
struct ReceiverConfig {
    name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pagerduty_configs: Vec<PagerDuty>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slack_configs: Vec<Slack>,
}

#[derive(Serialize)]
struct PagerDuty {
    routing_key_file: String,
    severity: &'static str,
}

#[derive(Serialize)]
struct Slack {
    channel: String,
    send_resolved: bool,
    title: &'static str,
    text: &'static str,
}

const SLACK_TITLE: &str = "[{{ .Status | toUpper }}] {{ .CommonLabels.severity }} \
     {{ .CommonLabels.alertname }} in {{ .CommonLabels.cluster }} {{ .CommonLabels.pool }}";
const SLACK_TEXT: &str =
    "{{ range .Alerts }}{{ .Annotations.summary }}\n  do: {{ .Annotations.action }}\n{{ end }}";

impl Target for Routing {
    fn id(&self) -> &'static str {
        "alertmanager"
    }

    fn summary(&self) -> &'static str {
        "who is told what: routes and receivers of Alertmanager"
    }

    fn versions(&self) -> String {
        "Alertmanager 0.25 and later".to_owned()
    }

    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>> {
        let routes = intent.monitoring.as_ref().is_some_and(|m| !m.routes.is_empty());
        if routes { vec![Scope::Fleet(intent)] } else { Vec::new() }
    }

    fn check(&self, _: &Scope<'_>, _: &mut Vec<Diagnostic>) {}

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let mut tree = OutputTree::default();
        let intent = scope.intent();
        let Some(monitoring) = &intent.monitoring else { return tree };
        let head = format!("fleet {}", intent.fleet.name);
        let text = header(&[&head, "amtool check-config alertmanager.yaml"])
            + &yaml::document(&config(intent, monitoring));
        let teams = intent.teams.iter().filter(|(_, team)| team.contact.is_some());
        let contacts = teams.map(|(name, _)| ItemPath::item("team", name).child("contact"));
        let items = std::iter::once(ItemPath::default().child("monitoring")).chain(contacts);
        tree.add("fleet/alertmanager/alertmanager.yaml", OutputFile::one(items, text));
        tree
    }

    fn disruption(&self, change: &Change, _: Option<&Scope<'_>>, _: Option<&Scope<'_>>) -> Effect {
        match &change.kind {
            ChangeKind::Alerting | ChangeKind::Team(..) | ChangeKind::TeamSettings(_) => {
                Effect::daemon(Disruption::Reload, "Alertmanager reads its routes")
            }
            ChangeKind::FleetName
            | ChangeKind::AsOf
            | ChangeKind::LabelPrefix
            | ChangeKind::Cluster(..)
            | ChangeKind::SchedulerVersion(_)
            | ChangeKind::Controllers(_)
            | ChangeKind::Database(_)
            | ChangeKind::AutoDetect(_)
            | ChangeKind::Driver(_)
            | ChangeKind::Partition(..)
            | ChangeKind::PartitionPools(..)
            | ChangeKind::PartitionSettings(..)
            | ChangeKind::Distribution(_)
            | ChangeKind::GpuOperator(_)
            | ChangeKind::Queue(_)
            | ChangeKind::Topology
            | ChangeKind::SlurmSettings(_)
            | ChangeKind::DraDriver(_)
            | ChangeKind::GitOps(_)
            | ChangeKind::Validator(_)
            | ChangeKind::Pool(..)
            | ChangeKind::System(_)
            | ChangeKind::Nodes(_)
            | ChangeKind::SharingMode(_)
            | ChangeKind::SharingName(_)
            | ChangeKind::MigStrategy(_)
            | ChangeKind::MigLayout(_)
            | ChangeKind::Replicas(_)
            | ChangeKind::Missing(_)
            | ChangeKind::ExceptionReason(_)
            | ChangeKind::MaxUnavailable(_)
            | ChangeKind::Taints(_)
            | ChangeKind::Overrides(_)
            | ChangeKind::Devices(_)
            | ChangeKind::PoolDriver(_)
            | ChangeKind::PoolSettings(_)
            | ChangeKind::Policy
            | ChangeKind::Tier
            | ChangeKind::Namespace(_)
            | ChangeKind::Quota(..)
            | ChangeKind::Workload
            | ChangeKind::Exporter => Effect::none(),
        }
    }
}

fn config(intent: &Intent, monitoring: &Monitoring) -> Config {
    let any = monitoring.routes.iter().find(|route| route.class.is_none());
    let fallback = match any.map(|route| &route.to) {
        Some(RouteTarget::Receiver(name)) => name.to_string(),
        Some(RouteTarget::Owner) | None => NOBODY.to_owned(),
    };
    let mut routes: Vec<Route> = Vec::new();
    for route in &monitoring.routes {
        let matchers: Vec<String> =
            route.class.iter().map(|class| matcher("route", class.as_str())).collect();
        match &route.to {
            RouteTarget::Receiver(_) if matchers.is_empty() => {}
            RouteTarget::Receiver(name) => {
                routes.push(Route { matchers, ..Route::to(name.to_string()) });
            }
            RouteTarget::Owner => routes.push(Route {
                matchers,
                group_by: vec!["alertname", "cluster", "severity", "team"],
                routes: owners(intent),
                ..Route::to(fallback.clone())
            }),
        }
    }
    // What holds for every class comes last: the first route that matches is taken.
    routes.sort_by_key(|route| route.matchers.is_empty());
    Config {
        global: monitoring.slack_url_file.clone().map(|file| Global { slack_api_url_file: file }),
        route: Route {
            // By severity too: PagerDuty refuses an event without one, and a group of two has none.
            group_by: vec!["alertname", "cluster", "severity", "pool"],
            group_wait: Some("30s"),
            group_interval: Some("5m"),
            repeat_interval: Some("4h"),
            routes,
            ..Route::to(fallback.clone())
        },
        inhibit_rules: inhibitions(),
        receivers: receivers(intent, monitoring, fallback == NOBODY),
    }
}

impl Route {
    fn to(receiver: String) -> Self {
        Self {
            matchers: Vec::new(),
            receiver,
            group_by: Vec::new(),
            group_wait: None,
            group_interval: None,
            repeat_interval: None,
            routes: Vec::new(),
        }
    }
}

fn matcher(label: &str, value: &str) -> String {
    format!("{label}=\"{value}\"")
}

/// The channel of a team, or of the nearest team around it that has one.
fn channel<'a>(intent: &'a Intent, name: &'a TeamName) -> Option<(&'a TeamName, &'a String)> {
    let around = std::iter::successors(Some(name), |name| {
        intent.teams.get(*name).and_then(|team| team.parent.as_ref())
    });
    let own = |team: &'a Team| team.contact.as_ref()?.slack.as_ref();
    around.into_iter().find_map(|name| Some((name, own(intent.teams.get(name)?)?)))
}

/// A name that no receiver of the spec has.
fn owner_receiver(team: &TeamName) -> String {
    format!("owner/{team}")
}

fn owners(intent: &Intent) -> Vec<Route> {
    let route = |name: &TeamName| {
        let (reached, _) = channel(intent, name)?;
        let matchers = vec![matcher("team", name.as_str())];
        Some(Route { matchers, ..Route::to(owner_receiver(reached)) })
    };
    intent.teams.keys().filter_map(route).collect()
}

fn receivers(intent: &Intent, monitoring: &Monitoring, nobody: bool) -> Vec<ReceiverConfig> {
    let mut all = Vec::new();
    if nobody {
        all.push(receiver(NOBODY.to_owned(), &Receiver { pagerduty_key_file: None, slack: None }));
    }
    all.extend(monitoring.receivers.iter().map(|(name, of)| receiver(name.to_string(), of)));
    if monitoring.routes.iter().any(|route| route.to == RouteTarget::Owner) {
        let mut told: IndexMap<&TeamName, &String> = IndexMap::new();
        told.extend(intent.teams.keys().filter_map(|name| channel(intent, name)));
        all.extend(told.into_iter().map(|(name, channel)| {
            let of = Receiver { pagerduty_key_file: None, slack: Some(channel.clone()) };
            receiver(owner_receiver(name), &of)
        }));
    }
    all
}

fn receiver(name: String, of: &Receiver) -> ReceiverConfig {
    let pagerduty = of.pagerduty_key_file.iter().map(|file| PagerDuty {
        routing_key_file: file.clone(),
        severity: "{{ .CommonLabels.severity }}",
    });
    let slack = of.slack.iter().map(|channel| Slack {
        channel: channel.clone(),
        send_resolved: true,
        title: SLACK_TITLE,
        text: SLACK_TEXT,
    });
    ReceiverConfig { name, pagerduty_configs: pagerduty.collect(), slack_configs: slack.collect() }
}

/// What need not be told while something else is.
fn inhibitions() -> Vec<Inhibit> {
    use StandardAlert as A;
    let rule = |source: A, target: A, equal: &[&'static str]| Inhibit {
        source_matchers: [matcher("alertname", source.as_str())],
        target_matchers: [matcher("alertname", target.as_str())],
        equal: equal.to_vec(),
    };
    let (node, gpu) = (["cluster", "node"], ["cluster", "node", "gpu"]);
    vec![
        rule(A::GpuXidHardware, A::GpuXidApplication, &gpu),
        rule(A::GpusMissing, A::MigLayoutDrift, &node),
        rule(A::GpuExporterDown, A::GpuProfilingLost, &node),
        rule(A::GpuProfilingLost, A::GpuAllocatedButIdle, &node),
    ]
}
