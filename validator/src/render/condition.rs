//! The verdict as a condition of a Kubernetes node: a strategic merge patch of its status.
//!
//! Conditions merge by their type, so the patch leaves others alone:
//! `kubectl patch node NAME --subresource=status --type=strategic -p "$(…)"`. Source: `NodeCondition`
//! of the core/v1 API, whose list has the merge key `type`.

use serde::{Deserialize, Serialize};

use super::line::{ascii, line};
use crate::report::{Report, Verdict};

/// The type of the condition.
pub const CONDITION: &str = "fleetc.dev/GPUConforms";

/// The longest message: what a line of `kubectl describe node` bears.
const MAX_MESSAGE: usize = 256;

#[derive(Serialize)]
struct Patch {
    status: Status,
}

#[derive(Serialize)]
struct Status {
    conditions: [Condition; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_heartbeat_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_transition_time: Option<String>,
}

/// What is read of a node: its conditions.
#[derive(Deserialize)]
struct Node {
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Default, Deserialize)]
struct NodeStatus {
    #[serde(default)]
    conditions: Vec<NodeCondition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    #[serde(default)]
    last_transition_time: Option<String>,
}

/// The condition that a node had before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    status: String,
    since: Option<String>,
}

/// The condition in a Node as `kubectl get node NAME -o json` prints it; none if it has none.
///
/// # Errors
/// The text is not such an object.
pub fn before(node: &[u8]) -> serde_json::Result<Option<Before>> {
    let Node { status } = serde_json::from_slice(node)?;
    let ours = status.conditions.into_iter().find(|condition| condition.kind == CONDITION);
    Ok(ours.map(|ours| Before { status: ours.status, since: ours.last_transition_time }))
}

/// The patch, with a newline at its end. `report` is a report, or why there is none; `now` is in
/// seconds since 1970.
///
/// # Errors
/// Only if it cannot be serialised, which would be a bug.
pub fn condition(
    report: Result<&Report, &str>,
    before: Option<&Before>,
    now: Option<u64>,
) -> serde_json::Result<String> {
    let (status, reason, message) = match report {
        Ok(report) => {
            let (status, reason) = match report.verdict {
                Verdict::Conforms => ("True", "Conforms"),
                Verdict::DoesNotConform => ("False", "DoesNotConform"),
                Verdict::Undecided => ("Unknown", "Undecided"),
            };
            (status, reason, line(report, MAX_MESSAGE))
        }
        Err(why) => ("Unknown", "NotChecked", ascii(why, MAX_MESSAGE)),
    };
    let now = now.map(time);
    let since = match before {
        Some(Before { status: old, since: Some(since) }) if *old == status => Some(since.clone()),
        _ => now.clone(),
    };
    let condition = Condition {
        kind: CONDITION,
        status,
        reason,
        message,
        last_heartbeat_time: now,
        last_transition_time: since,
    };
    let patch = Patch { status: Status { conditions: [condition] } };
    serde_json::to_string(&patch).map(|text| text + "\n")
}

/// Seconds since 1970 as RFC 3339 has them, in UTC.
///
/// The day is found by the algorithm of Howard Hinnant's `civil_from_days`, for days after 1970.
fn time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // Months count from March, so that a leap day is the last of a year.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + next;
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_date() {
        // `date -u -d @N +%FT%TZ`.
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(time(951_868_799), "2000-02-29T23:59:59Z");
        assert_eq!(time(951_868_800), "2000-03-01T00:00:00Z");
        assert_eq!(time(1_796_000_000), "2026-11-30T00:53:20Z");
        assert_eq!(time(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(time(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
