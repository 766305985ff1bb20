//! The fleet itself, and its monitoring.

use fleetc_schema::diag::{Diagnostic, Severity, Span, rules};
use fleetc_schema::intent::{
    AlertChange, Exporter, Fleet, Monitoring, Receiver, Route, RouteTarget,
};
use fleetc_schema::name::FleetName;
use fleetc_schema::version::ExporterRelease;

use super::names::Names;
use crate::language::{At, Cx, kinds};

/// Prefix of our labels unless the fleet sets one.
const LABEL_PREFIX: &str = "fleetc.dev";

/// Lowers the one fleet item. A spec without one gets a stand-in, so that the rest is still read.
pub fn lower(spec: &kinds::Spec, start: Span, cx: &mut Cx) -> Fleet {
    if let [first, second, ..] = spec.fleets.as_slice() {
        let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, "the spec has two fleets")
            .at(second.span, "a second one")
            .at(first.span, "the first one");
        cx.report(finding.help("a spec describes one fleet: keep one of the two"));
    }
    let fleet = spec.fleets.first();
    if fleet.is_none() {
        let finding = Diagnostic::new(&rules::SPEC_MISSING, "the spec names no fleet");
        cx.report(finding.at(start, "no `fleet` in here").help("add `fleet \"northwind\"`"));
    }
    let name = fleet.and_then(|fleet| fleet.arg.as_ref()).map(|name| name.value.clone());
    Fleet {
        name: name.unwrap_or_else(stand_in),
        as_of: fleet.and_then(|fleet| fleet.as_of.as_ref()).map(|date| date.value),
        label_prefix: fleet
            .and_then(|fleet| label_prefix(fleet, cx))
            .unwrap_or_else(|| LABEL_PREFIX.into()),
    }
}

fn stand_in() -> FleetName {
    // The text is a legal name, which a test holds; an empty default would not be one.
    FleetName::new("unnamed").unwrap_or_else(|_| stand_in())
}

/// Checks that the prefix is a DNS subdomain, as the prefix of a Kubernetes label must be.
fn label_prefix(fleet: &kinds::Fleet, cx: &mut Cx) -> Option<String> {
    let prefix = fleet.label_prefix.as_ref()?;
    let label = |part: &str| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !part.is_empty()
            && part.chars().all(allowed)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    if prefix.value.len() <= 253 && prefix.value.split('.').all(label) {
        // Source: Kubernetes documentation, "Labels and Selectors".
        let kept = |domain: &str| {
            let rest = prefix.value.strip_suffix(domain);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if kept("kubernetes.io") || kept("k8s.io") {
            let title = format!("labels under `{}` are of Kubernetes itself", prefix.value);
            let finding = Diagnostic::new(&rules::NAME_ILLEGAL, title).severity(Severity::Warning);
            let finding = finding.at(prefix.span, "not a prefix of your own");
            let note = "a kubelet may not set them, and node feature discovery refuses them";
            cx.report(finding.note(note).help("write a domain of your own, or leave it out"));
        }
        return Some(prefix.value.clone());
    }
    let title = format!("`{}` is no prefix of a Kubernetes label", prefix.value);
    let finding = Diagnostic::new(&rules::NAME_ILLEGAL, title).at(prefix.span, "not a DNS name");
    cx.report(finding.help("write a DNS name such as `fleetc.dev`"));
    cx.poison(&prefix.path);
    None
}

/// Lowers the monitoring item.
pub fn monitoring(spec: &kinds::Spec, names: &Names, cx: &mut Cx) -> Option<Monitoring> {
    let item = spec.monitoring.as_ref()?;
    let text = |value: &At<String>| value.value.clone();
    let receiver = |item: &kinds::Receiver| {
        let key_file = item.pagerduty.as_ref().and_then(|pagerduty| pagerduty.key_file.as_ref());
        let receiver = Receiver {
            pagerduty_key_file: key_file.map(text),
            slack: item.slack.as_ref().map(text),
        };
        Some((item.arg.as_ref()?.value.clone(), receiver))
    };
    let alert = |item: &kinds::Alert| {
        let change = AlertChange {
            after: item.after.as_ref().map(|after| after.value),
            below: item.below.as_ref().map(|below| below.value),
        };
        Some((item.arg.as_ref()?.value, change))
    };
    let mut routes = Vec::new();
    for route in &item.routes {
        let Some(to) = &route.to else { continue };
        let to = match to.value.0.as_str() {
            "owner" => RouteTarget::Owner,
            _ => match names.receivers.resolve(to, cx) {
                Some(name) => RouteTarget::Receiver(name),
                None => continue,
            },
        };
        routes.push(Route { class: route.class.as_ref().map(|class| class.value), to });
    }
    slack_without_url(spec, item, cx);
    let exporter = item.exporter.as_ref()?;
    let version = exporter.version.as_ref()?;
    let known = ExporterRelease::of(&version.value);
    if super::clusters::release(version, "dcgm-exporter", known, ExporterRelease::ALL, cx).is_none()
    {
        cx.poison(&version.path);
        return None;
    }
    Some(Monitoring {
        exporter: Exporter { kind: exporter.arg.as_ref()?.value, version: version.value.clone() },
        slack_url_file: item.slack.as_ref().and_then(|slack| slack.url_file.as_ref()).map(text),
        receivers: item.receivers.iter().filter_map(receiver).collect(),
        routes,
        alerts: item.alerts.iter().filter_map(alert).collect(),
    })
}

/// Alertmanager does not start with a Slack channel and no URL of Slack.
fn slack_without_url(spec: &kinds::Spec, item: &kinds::Monitoring, cx: &mut Cx) {
    if item.slack.is_some() {
        return;
    }
    let routed = |name: &str| {
        let to = |route: &kinds::Route| route.to.as_ref().is_some_and(|to| to.value.0 == name);
        item.routes.iter().find(|route| to(route))
    };
    let receivers = item.receivers.iter().filter(|_| !item.routes.is_empty());
    let channel = receivers.filter_map(|receiver| receiver.slack.as_ref()).next();
    let owner = routed("owner").and_then(|_| {
        let mut open: Vec<&kinds::Team> = spec.teams.iter().rev().collect();
        while let Some(team) = open.pop() {
            if let Some(slack) = team.contact.as_ref().and_then(|contact| contact.slack.as_ref()) {
                return Some(slack);
            }
            open.extend(team.teams.iter().rev());
        }
        None
    });
    if let Some(channel) = channel.or(owner) {
        let title = "alerts go to Slack, and nothing says how to reach it";
        let finding = Diagnostic::new(&rules::SPEC_MISSING, title)
            .at(item.span, "no `slack` in here")
            .at(channel.span, "a channel")
            .note("Alertmanager refuses a configuration with a channel and no URL");
        cx.report(finding.help("add `slack url-file=\"/etc/alertmanager/slack\"`: the file holds the URL of the webhook"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stand_in_is_a_legal_name() {
        assert_eq!(stand_in().as_str(), "unnamed");
    }
}
