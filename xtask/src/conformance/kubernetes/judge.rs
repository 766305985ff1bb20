//! The validator's DaemonSet without a kubelet: its script runs as written, with its own account, and sets
//! the condition of a node. The account may do that and nothing more.

use std::process::Command;

use camino::Utf8PathBuf;
use fleetc_fake_nvml::STATE_VARIABLE;
use fleetc_fake_nvml::node::Node;
use serde_json::{Value, json};

use super::Failure;
use super::lab::Lab;
use super::objects::{condition, name, text};
use crate::conformance::daemon::Daemon;
use crate::conformance::judged::{built, executable};
use crate::put;

const CONDITION: &str = "fleetc.dev/GPUConforms";

/// What the account may do: verb, resource and subresource.
const MAY: [(&str, &str, &str); 3] =
    [("get", "nodes", ""), ("get", "nodes", "status"), ("patch", "nodes", "status")];
/// What it may not.
const MAY_NOT: [(&str, &str, &str); 9] = [
    ("list", "nodes", ""),
    ("patch", "nodes", ""),
    ("update", "nodes", ""),
    ("delete", "nodes", ""),
    ("create", "nodes", ""),
    ("update", "nodes", "status"),
    ("create", "nodes", "proxy"),
    ("get", "secrets", ""),
    ("create", "pods", ""),
];

impl Lab<'_> {
    /// Judges a node as the DaemonSet would; gives how many checks passed.
    pub fn judges(&self, written: &[Value]) -> Result<usize, Failure> {
        if self.kubernetes.validator.is_none() {
            return Ok(0);
        }
        let set = self.of_kind(written, "DaemonSet").next().ok_or("there is no DaemonSet")?;
        let home = text(set, "/metadata/namespace");
        let account = text(set, "/spec/template/spec/serviceAccountName");
        let account = format!("system:serviceaccount:{home}:{account}");
        let classes = self.intent.classes_of(&self.cluster.name);
        let with_gpus = classes.into_iter().find(|class| !class.node.gpus.is_empty());
        let node = with_gpus.and_then(|class| class.nodes.first()).ok_or("no node has GPUs")?;
        let passed = self.may_do_no_more(&account, &node)? + self.reports(set, &account, &node)?;
        Ok(passed + self.rules_choose_nodes(written)?)
    }

    fn may_do_no_more(&self, account: &str, node: &str) -> Result<usize, Failure> {
        let asked = MAY.iter().map(|act| (act, true)).chain(MAY_NOT.iter().map(|act| (act, false)));
        for ((verb, resource, subresource), wanted) in asked {
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": { "user": account, "resourceAttributes": {
                    "verb": verb, "resource": resource, "subresource": subresource,
                } },
            });
            let answer = self.plane.answered(&review)?;
            let allowed = answer.pointer("/status/allowed").and_then(Value::as_bool);
            if allowed != Some(wanted) {
                let what = format!("{verb} {resource}/{subresource}");
                return Err(
                    format!("{account}: {what} is allowed: {allowed:?}, not {wanted}").into()
                );
            }
        }
        let cordon = json!({ "spec": { "unschedulable": true } }).to_string();
        let acts: [&[&str]; 2] =
            [&["patch", "node", node, "-p", &cordon], &["delete", "node", node]];
        for act in acts {
            let said = self.plane.kubectl(&[act, &["--as", account]].concat());
            if !said.as_ref().is_err_and(|error| error.to_string().contains("Forbidden")) {
                return Err(format!("{account} may {}: {said:?}", act.join(" ")).into());
            }
        }
        // What it may patch is the status alone: the server leaves the rest as it is.
        let status =
            ["patch", "node", node, "--subresource=status", "-p", &cordon, "--as", account];
        self.plane.kubectl(&status)?;
        let live = self.node(node)?;
        if live.pointer("/spec/unschedulable").is_some() {
            return Err(format!("{account} cordons {node} by its status").into());
        }
        Ok(MAY.len() + MAY_NOT.len() + 3)
    }

    fn node(&self, name: &str) -> Result<Value, Failure> {
        let found = self.plane.get(&["node", name])?;
        found.into_iter().next().ok_or_else(|| format!("there is no node {name}").into())
    }

    /// The script sets the condition: first of a node whose driver does not answer, then of one without
    /// its GPUs.
    fn reports(&self, set: &Value, account: &str, node: &str) -> Result<usize, Failure> {
        let folder = self.root.join(format!("judge-{}", self.cluster.name));
        let state = folder.join("nvml.json");
        let script = self.script(set, account, node, &folder)?;
        let mut said = Vec::new();
        for (answers, wanted) in [(None, "Unknown"), (Some(Node::default()), "False")] {
            if let Some(answers) = answers {
                put(&state, &serde_json::to_string(&answers)?)?;
                std::fs::create_dir_all(folder.join("host/sys/bus/pci/devices"))?;
            }
            let log = folder.join(format!("script-{wanted}.log"));
            let running =
                Daemon::start(&Command::new("sh"), &[script.as_str()], ("HOME", &folder), log)?;
            let message = self.plane.until("the script sets the condition", || {
                let live = self.node(node)?;
                let seen = condition(&live, CONDITION);
                let (status, message) = seen.unwrap_or(("absent", ""));
                Ok(match status == wanted && !message.is_empty() {
                    true => Ok(message.to_owned()),
                    false => Err(format!("{node} is {status}: {message}, not {wanted}")),
                })
            });
            let message = message.map_err(|error| format!("{error}\n{}", running.said()))?;
            running.stop()?;
            said.push(message);
        }
        match said.last().is_some_and(|message| message.contains("gpu.count")) {
            true => Ok(2),
            false => Err(format!("the condition of {node} says {said:?}").into()),
        }
    }

    /// The script of the DaemonSet with this machine's paths, as an account.
    fn script(
        &self,
        set: &Value,
        account: &str,
        node: &str,
        folder: &Utf8PathBuf,
    ) -> Result<Utf8PathBuf, Failure> {
        let (program, library) = built()?;
        let text = text(set, "/spec/template/spec/containers/0/args/0");
        let intent = self.root.join(format!("clusters/{}/intent", self.cluster.name));
        let here = text
            .replace("/usr/bin/fleetc-validate", folder.join("bin/fleetc-validate").as_str())
            .replace("/etc/fleetc/intent", intent.as_str())
            .replace("cd /tmp\n", &format!("cd {folder}\n"))
            .replace("--root /host", &format!("--root {folder}/host"));
        put(&folder.join("host/proc/uptime"), "86400.12 600000.00\n")?;
        let wrapper = format!(
            "#!/bin/sh\nexec {program} \"$@\" --library {library} --state-dir {folder}/notes --deadline 10s\n"
        );
        executable(&folder.join("bin/fleetc-validate"), &wrapper)?;
        executable(&folder.join("bin/kubectl"), &self.plane.kubectl_as(account))?;
        let script = folder.join("script.sh");
        let environment = format!(
            "PATH={folder}/bin:$PATH NODE_NAME={node} {STATE_VARIABLE}={folder}/nvml.json\n\
             export PATH NODE_NAME {STATE_VARIABLE}\n"
        );
        put(&script, &format!("{environment}{here}"))?;
        Ok(script)
    }

    /// Each rule that taints chooses nodes.
    fn rules_choose_nodes(&self, written: &[Value]) -> Result<usize, Failure> {
        let mut passed = 0;
        for rule in self.of_kind(written, "NodeReadinessRule") {
            let labels = rule.pointer("/spec/nodeSelector/matchLabels").and_then(Value::as_object);
            let labels = labels.into_iter().flatten();
            let chosen: Vec<String> = labels
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                .collect();
            if self.plane.get(&["nodes", "-l", &chosen.join(",")])?.is_empty() {
                return Err(format!("{} chooses no node: {chosen:?}", name(rule)).into());
            }
            passed += 1;
        }
        Ok(passed)
    }
}
