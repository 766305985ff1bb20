//! The plugin of node-problem-detector: for who has it on the nodes anyway and wants no DaemonSet of
//! ours. The program and the intent must be on the node, or in its image.
//!
//! Its conditions are problems: true is bad. Source: kubernetes/node-problem-detector
//! `docs/custom_plugin_monitor.md` and `pkg/custompluginmonitor/types`: a rule's time is at most the
//! plugin's, and output is cut at `max_output_length`.

use fleetc_schema::units::Seconds;
use serde::Serialize;

use crate::on_node::{INTENT, PROGRAM};
use crate::write::json;

/// The file.
pub const FILE: &str = "node-problem-detector.json";

/// The condition.
const CONDITION: &str = "fleetc.dev/GPUDoesNotConform";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    plugin: &'static str,
    plugin_config: PluginConfig,
    source: &'static str,
    metrics_reporting: bool,
    conditions: [Condition; 1],
    rules: [Rule; 1],
}

#[derive(Serialize)]
struct PluginConfig {
    invoke_interval: String,
    timeout: &'static str,
    max_output_length: u32,
    concurrency: u32,
    enable_message_change_based_condition_update: bool,
}

#[derive(Serialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: &'static str,
    reason: &'static str,
    message: &'static str,
}

#[derive(Serialize)]
struct Rule {
    #[serde(rename = "type")]
    kind: &'static str,
    condition: &'static str,
    reason: &'static str,
    path: &'static str,
    args: [&'static str; 7],
    timeout: &'static str,
}

/// Its text.
pub fn config(Seconds(interval): Seconds) -> String {
    let timeout = "55s";
    json::pretty(&Config {
        plugin: "custom",
        plugin_config: PluginConfig {
            invoke_interval: format!("{interval}s"),
            timeout,
            max_output_length: 80,
            concurrency: 1,
            enable_message_change_based_condition_update: true,
        },
        source: super::NAME,
        metrics_reporting: true,
        conditions: [Condition {
            kind: CONDITION,
            reason: "GPUConforms",
            message: "the GPUs are what the spec says",
        }],
        rules: [Rule {
            kind: "permanent",
            condition: CONDITION,
            reason: "GPUDoesNotConform",
            path: PROGRAM,
            args: ["check", "--intent", INTENT, "--source", "nvml", "--exit-style", "npd"],
            timeout,
        }],
    })
}
