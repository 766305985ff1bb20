//! A control plane of one cluster: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and,
//! where the cluster queues with it, Kueue with its webhooks. There is no kubelet: Nodes are objects, and
//! a pod that is bound stays pending on its node.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_tests::folder;
use serde_json::{Value, json};

use super::Failure;
use super::objects::{items, set, text as text_at};
use crate::conformance::daemon::{Daemon, free_ports};
use crate::conformance::programs::Programs;
use crate::conformance::tool;
use crate::put;

const POLL: Duration = Duration::from_millis(200);
/// How often anything is asked for before it is given up: for at least three minutes. Each step takes
/// seconds, but a machine may be busy.
const POLLS: u32 = 900;

/// Controllers that make pods, count quotas, fill claims and clear up. None watches nodes: they stay as
/// they are written.
const CONTROLLERS: &str = "namespace-controller,job-controller,deployment-controller,\
    replicaset-controller,resourcequota-controller,resourceclaim-controller,garbage-collector-controller";
/// Nobody makes service accounts here, and Nodes are ready when they are made.
const NOT_ADMITTING: &str = "ServiceAccount,TaintNodesByCondition";

/// Where Kueue's manager looks for a certificate, whatever its configuration says, unless it makes its
/// own. Source: kueue v0.19.2 `cmd/kueue/main.go`.
const KUEUE_METRICS: &str = "/etc/kueue/metrics/certs";
/// Resources whose webhooks leave Kueue's own namespaces alone.
const PODS_AND_OWNERS: [&str; 3] = ["pods", "deployments", "statefulsets"];

/// A control plane that runs.
pub struct ControlPlane<'a> {
    programs: &'a Programs,
    folder: Utf8PathBuf,
    ports: Ports,
    /// The last that was started stops first.
    daemons: Vec<Daemon>,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    api: u16,
    webhooks: u16,
    health: u16,
}

impl Drop for ControlPlane<'_> {
    fn drop(&mut self) {
        while self.daemons.pop().is_some() {}
    }
}

impl<'a> ControlPlane<'a> {
    /// Starts one that behaves as a minor release, `1.34`.
    pub fn start(
        programs: &'a Programs,
        folder: Utf8PathBuf,
        release: &str,
    ) -> Result<Self, Failure> {
        std::fs::create_dir_all(&folder)?;
        let [etcd, peers, api, controllers, scheduler, webhooks, health] = free_ports()?;
        let ports = Ports { api, webhooks, health };
        let mut started = Self { programs, folder, ports, daemons: Vec::new() };
        let program = programs.controlplane.as_str();
        tool(program, &["certificate", started.folder.as_str()], &started.folder)?;
        put(&started.folder.join("tokens"), "conformance,admin,admin,system:masters\n")?;
        let kubeconfig = started.kubeconfig();
        put(&kubeconfig, &started.access().to_string())?;
        let emulated = format!("--emulated-version=kube={release}");

        let client = format!("http://127.0.0.1:{etcd}");
        started.daemon(
            "etcd",
            &programs.etcd,
            &[
                "--data-dir",
                started.folder.join("etcd").as_str(),
                "--unsafe-no-fsync",
                "--log-level=warn",
                "--listen-client-urls",
                &client,
                "--advertise-client-urls",
                &client,
                "--listen-peer-urls",
                &format!("http://127.0.0.1:{peers}"),
            ],
        )?;
        let (certificate, key) = (started.folder.join("tls.crt"), started.folder.join("tls.key"));
        started.daemon(
            "kube-apiserver",
            &programs.controlplane,
            &[
                "kube-apiserver",
                &emulated,
                "--etcd-servers",
                &client,
                "--bind-address=127.0.0.1",
                "--secure-port",
                &api.to_string(),
                "--tls-cert-file",
                certificate.as_str(),
                "--tls-private-key-file",
                key.as_str(),
                "--token-auth-file",
                started.folder.join("tokens").as_str(),
                "--authorization-mode=RBAC",
                // As kubeadm and every distribution have it: drivers and their agents need it.
                "--allow-privileged=true",
                "--service-account-issuer=https://conformance",
                "--service-account-key-file",
                key.as_str(),
                "--service-account-signing-key-file",
                key.as_str(),
                "--service-cluster-ip-range=10.96.0.0/16",
                "--endpoint-reconciler-type=none",
                "--disable-admission-plugins",
                NOT_ADMITTING,
            ],
        )?;
        started.until_up("ready", |plane| plane.kubectl(&["get", "--raw", "/readyz"]).is_ok())?;
        let shared = ["--leader-elect=false", "--bind-address=127.0.0.1", &emulated];
        for (name, port, more) in [
            ("kube-controller-manager", controllers, ["--controllers", CONTROLLERS].as_slice()),
            ("kube-scheduler", scheduler, &[]),
        ] {
            let (port, folder) = (port.to_string(), started.folder.join(name));
            let own = [
                "--kubeconfig",
                kubeconfig.as_str(),
                "--secure-port",
                &port,
                "--cert-dir",
                folder.as_str(),
            ];
            let args: Vec<&str> =
                [name].iter().chain(&shared).chain(&own).chain(more).copied().collect();
            started.daemon(name, &programs.controlplane, &args)?;
        }
        Ok(started)
    }

    /// Starts Kueue as a site installs it, with the configuration of the manager that is given.
    pub fn start_kueue(&mut self, configuration: &Value) -> Result<(), Failure> {
        let authority = tool("base64", &["-w0", "tls.crt"], &self.folder)?;
        let port = self.ports.webhooks;
        let at = |path: &str| json!({ "url": format!("https://127.0.0.1:{port}{path}"), "caBundle": authority });
        // `patches/webhook_in_cohorts.yaml`: these have versions that Kueue converts.
        let list = std::fs::read_to_string(self.programs.kueue_files.join("crds.yaml"))?;
        let list: Value = serde_yaml::from_str(&list)?;
        let patches = list.get("patches").and_then(Value::as_array).into_iter().flatten();
        let converted: BTreeSet<&str> = patches
            .filter_map(|patch| text_at(patch, "/path").split("webhook_in_").nth(1))
            .filter_map(|file| file.strip_suffix(".yaml"))
            .collect();
        for text in folder(&self.programs.kueue_files.join("crds"))?.values() {
            let mut definition: Value = serde_yaml::from_str(text)?;
            if converted.contains(text_at(&definition, "/spec/names/plural")) {
                let webhook =
                    json!({ "conversionReviewVersions": ["v1"], "clientConfig": at("/convert") });
                set(
                    &mut definition,
                    "/spec",
                    "conversion",
                    json!({ "strategy": "Webhook", "webhook": webhook }),
                )?;
            }
            self.apply(&definition)?;
        }
        self.established()?;
        self.apply(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "kueue-system" } }))?;
        metrics_certificate(&self.folder)?;
        let mut configuration = configuration.clone();
        self.at_home(&mut configuration)?;

        // A word that Kueue does not know ends it: what is ours is read strictly.
        let mut wrong = configuration.clone();
        set(&mut wrong, "", "fromAnotherRelease", json!(true))?;
        let said = match self.kueue("kueue-wrong", &wrong) {
            Ok(_) => return Err("Kueue takes a configuration with an unknown word".into()),
            Err(error) => error.to_string(),
        };
        if !["unknown field", "fromAnotherRelease"].iter().all(|words| said.contains(words)) {
            return Err(format!("Kueue ends over another thing than a wrong word: {said}").into());
        }

        let kueue = self.kueue("kueue", &configuration)?;
        self.daemons.push(kueue);
        let pods = configuration.pointer("/integrations/frameworks").and_then(Value::as_array);
        let pods = pods.is_some_and(|all| all.iter().any(|name| name == "pod"));
        let manifests = std::fs::read_to_string(self.programs.kueue_files.join("webhooks.yaml"))?;
        for text in manifests.split("\n---\n").filter(|text| !text.trim().is_empty()) {
            let mut hooks: Value = serde_yaml::from_str(text)?;
            let Some(list) = hooks.get_mut("webhooks").and_then(Value::as_array_mut) else {
                continue;
            };
            let subject = |hook: &Value| {
                let name = hook.pointer("/rules/0/resources/0").and_then(Value::as_str);
                name.unwrap_or_default().split('/').next().unwrap_or_default().to_owned()
            };
            list.retain(|hook| pods || !PODS_AND_OWNERS.contains(&subject(hook).as_str()));
            for hook in list {
                let path = hook.pointer("/clientConfig/service/path").and_then(Value::as_str);
                let path = path.ok_or("a webhook of Kueue has no path")?.to_owned();
                let pods = PODS_AND_OWNERS.contains(&subject(hook).as_str());
                set(hook, "", "clientConfig", at(&path))?;
                if pods {
                    let system = json!({
                        "key": "kubernetes.io/metadata.name", "operator": "NotIn",
                        "values": ["kube-system", "kueue-system"],
                    });
                    set(hook, "", "namespaceSelector", json!({ "matchExpressions": [system] }))?;
                }
            }
            self.apply(&hooks)?;
        }
        Ok(())
    }

    /// What depends on the machine and nothing else.
    fn at_home(&self, configuration: &mut Value) -> Result<(), Failure> {
        let Ports { webhooks, health, .. } = self.ports;
        let gates = configuration.get("featureGates").cloned();
        let mut gates = gates.unwrap_or_else(|| json!({}));
        // An aggregated API needs a service network.
        set(&mut gates, "", "VisibilityOnDemand", json!(false))?;
        for (word, value) in [
            ("health", json!({ "healthProbeBindAddress": format!("127.0.0.1:{health}") })),
            ("metrics", json!({ "bindAddress": "0" })),
            ("webhook", json!({ "port": webhooks, "host": "127.0.0.1", "certDir": self.folder })),
            ("leaderElection", json!({ "leaderElect": false })),
            ("internalCertManagement", json!({ "enable": false })),
            ("clientConnection", json!({ "qps": 300, "burst": 500 })),
            ("featureGates", gates),
        ] {
            set(configuration, "", word, value)?;
        }
        Ok(())
    }

    /// Kueue's manager when it is ready; an error with what it said if it ends before.
    fn kueue(&self, name: &str, configuration: &Value) -> Result<Daemon, Failure> {
        let file = self.folder.join(format!("{name}.json"));
        put(&file, &configuration.to_string())?;
        let mut kueue = self.spawn(name, &self.programs.kueue, &["--config", file.as_str()])?;
        let health = self.ports.health;
        kueue.until("ready", |_| is_ready(health))?;
        Ok(kueue)
    }

    fn spawn(&self, name: &str, program: &Utf8Path, args: &[&str]) -> Result<Daemon, Failure> {
        let log = self.folder.join(format!("{name}.log"));
        Daemon::start(&Command::new(program), args, ("KUBECONFIG", &self.kubeconfig()), log)
    }

    fn daemon(&mut self, name: &str, program: &Utf8Path, args: &[&str]) -> Result<(), Failure> {
        let daemon = self.spawn(name, program, args)?;
        self.daemons.push(daemon);
        Ok(())
    }

    /// Waits for what was started last.
    fn until_up(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> Result<(), Failure> {
        let Some(mut last) = self.daemons.pop() else { return Ok(()) };
        let result = last.until(what, |_| holds(self));
        self.daemons.push(last);
        result
    }

    fn kubeconfig(&self) -> Utf8PathBuf {
        self.folder.join("kubeconfig")
    }

    fn access(&self) -> Value {
        let server = format!("https://127.0.0.1:{}", self.ports.api);
        let authority = self.folder.join("tls.crt");
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": { "server": server, "certificate-authority": authority } }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "admin" } }],
            "users": [{ "name": "admin", "user": { "token": "conformance" } }],
        })
    }

    /// Runs kubectl; failing is an error with what it said.
    pub fn kubectl(&self, args: &[&str]) -> Result<String, Failure> {
        self.kubectl_with(args, "")
    }

    fn kubectl_with(&self, args: &[&str], input: &str) -> Result<String, Failure> {
        let mut child = Command::new("timeout")
            .args(["120", self.programs.controlplane.as_str(), "kubectl"])
            .args(args)
            .env("KUBECONFIG", self.kubeconfig())
            // Discovery is cached by server; another run's is not ours.
            .env("KUBECACHEDIR", self.folder.join("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that ends before it has read all says why.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(format!("kubectl {}: {said}", args.join(" ")).into())
            }
        }
    }

    /// Objects as they are now.
    pub fn get(&self, args: &[&str]) -> Result<Vec<Value>, Failure> {
        let args: Vec<&str> = ["get", "-o", "json"].iter().chain(args).copied().collect();
        Ok(items(serde_json::from_str(&self.kubectl(&args)?)?))
    }

    /// Applies what is given to kubectl, server-side and strictly; gives the objects as they became.
    pub fn apply_from(&self, args: &[&str]) -> Result<Vec<Value>, Failure> {
        let fixed = ["apply", "--server-side", "--validate=strict", "-o", "json"];
        let args: Vec<&str> = fixed.iter().chain(args).copied().collect();
        Ok(items(serde_json::from_str(&self.kubectl(&args)?)?))
    }

    /// Applies an object, or a `List`.
    pub fn apply(&self, object: &Value) -> Result<(), Failure> {
        let fixed = ["apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", "-"];
        self.kubectl_with(&fixed, &object.to_string()).map(drop)
    }

    /// Whether the server would take an object; what it said if not.
    pub fn would_take(&self, object: &Value) -> Result<(), String> {
        let fixed = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--validate=strict",
            "--dry-run=server",
            "-f",
            "-",
        ];
        self.kubectl_with(&fixed, &object.to_string()).map(drop).map_err(|error| error.to_string())
    }

    /// What the server would make of an object.
    pub fn dry_run(&self, object: &Value) -> Result<Value, Failure> {
        let fixed = ["create", "--validate=strict", "--dry-run=server", "-o", "json", "-f", "-"];
        Ok(serde_json::from_str(&self.kubectl_with(&fixed, &object.to_string())?)?)
    }

    /// What the server answers to an object that is a question.
    pub fn answered(&self, question: &Value) -> Result<Value, Failure> {
        let fixed = ["create", "-o", "json", "-f", "-"];
        Ok(serde_json::from_str(&self.kubectl_with(&fixed, &question.to_string())?)?)
    }

    /// A program `kubectl` that acts as an account.
    pub fn kubectl_as(&self, account: &str) -> String {
        let (program, kubeconfig) = (&self.programs.controlplane, self.kubeconfig());
        let cache = self.folder.join("cache");
        format!(
            "#!/bin/sh\nKUBECONFIG={kubeconfig} KUBECACHEDIR={cache} \\\n\
             exec {program} kubectl --as={account} \"$@\"\n"
        )
    }

    /// Makes objects that are not there.
    pub fn create(&self, object: &Value) -> Result<(), Failure> {
        self.kubectl_with(&["create", "--validate=strict", "-f", "-"], &object.to_string())
            .map(drop)
    }

    /// Waits until every definition of a resource is served.
    pub fn established(&self) -> Result<(), Failure> {
        self.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=110s"])
            .map(drop)
    }

    /// Asks until there is an answer. While there is none, the answer says what is still missing.
    pub fn until<T>(
        &self,
        what: &str,
        mut ask: impl FnMut() -> Result<Result<T, String>, Failure>,
    ) -> Result<T, Failure> {
        let mut last = String::new();
        for _ in 0..POLLS {
            match ask()? {
                Ok(answer) => return Ok(answer),
                Err(missing) => last = missing,
            }
            sleep(POLL);
        }
        Err(format!("{what}: asked {POLLS} times, and still {last}").into())
    }
}

/// Puts a certificate where Kueue wants one. It stays: another run may be reading it, and nothing is ever
/// served with it.
fn metrics_certificate(from: &Utf8Path) -> Result<(), Failure> {
    let folder = Utf8Path::new(KUEUE_METRICS);
    let put = || -> std::io::Result<()> {
        let parent = folder.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)?;
        let made = tempfile::tempdir_in(parent)?;
        for name in ["tls.crt", "tls.key"] {
            std::fs::copy(from.join(name), made.path().join(name))?;
        }
        match std::fs::rename(made.path(), folder) {
            Err(_) if folder.join("tls.key").exists() => Ok(()),
            result => result,
        }
    };
    let refused =
        |error| format!("{folder} cannot be written ({error}): Kueue knows no other place");
    if folder.join("tls.key").exists() { Ok(()) } else { Ok(put().map_err(refused)?) }
}

/// Asks a daemon on loopback whether it is ready.
fn is_ready(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n")?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        Ok(said)
    };
    ask().is_ok_and(|said| said.lines().next().is_some_and(|line| line.contains(" 200 ")))
}
