//! One cluster: what is written for it, applied to its control plane as a sync would, and checked.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_schema::intent::{Cluster, Intent, Kubernetes, QueueKind};
use fleetc_tests::Texts;
use serde_json::{Value, json};

use super::control_plane::ControlPlane;
use super::objects::{condition, differs, name, set, text};
use super::{Failure, crds, jobs, site};

/// Who must refuse a wrong object, in some cluster.
pub const REFUSERS: [&str; 3] = ["API server", "schema", "Kueue"];
/// A namespace that no team has, for pods of nobody's.
pub const NOBODY: &str = "fleetc-conformance";
/// A word that no object has.
const WRONG: &str = "fromAnotherRelease";

/// What a trial gave.
#[derive(Default)]
pub struct Passed {
    /// How many checks passed.
    pub checks: usize,
    /// Who refused a wrong object.
    pub refused: BTreeSet<&'static str>,
}

impl Passed {
    /// Adds those of another trial.
    pub fn add(&mut self, other: Self) {
        self.checks += other.checks;
        self.refused.extend(other.refused);
    }
}

/// One cluster with its control plane.
pub struct Lab<'a> {
    pub intent: &'a Intent,
    pub cluster: &'a Cluster,
    pub kubernetes: &'a Kubernetes,
    pub files: &'a Texts,
    pub root: &'a Utf8Path,
    pub plane: ControlPlane<'a>,
}

impl Lab<'_> {
    /// Runs every check.
    pub fn run(&mut self) -> Result<Passed, Failure> {
        let definitions = crds::definitions()?;
        self.plane.apply(&definitions)?;
        let templates = self.objects("90-workloads")?;
        let mut there = site::nodes(self.intent, &self.cluster.name, &templates);
        there.extend(site::devices(self.intent, self.cluster, self.kubernetes));
        if !there.is_empty() {
            self.plane.create(&site::list(there))?;
        }
        self.plane.established()?;
        let mut passed = 1;
        if self.queues() {
            self.start_kueue()?;
            passed += 2;
        }

        let mut written = Vec::new();
        for stage in self.stages()? {
            let folder = self.folder().join(&stage);
            self.plane.apply_from(&["-k", folder.as_str()])?;
            written.extend(self.objects(&stage)?);
        }
        self.plane.apply(&site::namespace(NOBODY))?;
        let homes = self.of_kind(&written, "Namespace").map(|home| text(home, "/metadata/name"));
        for home in homes.chain([NOBODY]) {
            self.is_known(home)?;
        }
        for object in self.gitops()? {
            let home = text(&object, "/metadata/namespace");
            self.plane.apply(&site::namespace(home))?;
            self.plane.would_take(&object)?;
            passed += 1;
        }
        passed += written.len();
        let domains: Vec<Value> = self.of_kind(&written, "ComputeDomain").cloned().collect();
        for template in site::channel_templates(&domains)? {
            self.plane.create(&template)?;
        }
        for template in &templates {
            let template = jobs::with_defaults(template)?;
            self.plane.would_take(&template)?;
            self.plane.would_take(&jobs::filled(&template)?)?;
            passed += 1;
        }
        if self.queues() {
            passed += self.queues_are_active()?;
        }
        self.applies_again_unchanged()?;
        passed += 1 + self.stands_as_written(&written)?;
        let refused = self.wrong_objects_are_refused(&written, &definitions)?;
        passed += refused.len();
        passed += self.judges(&written)?;
        passed += self.probes(&written)?;
        passed += self.quotas(&written)?;
        passed += self.workloads(&written, &templates)?;
        Ok(Passed { checks: passed, refused })
    }

    /// True if Kueue queues here.
    pub fn queues(&self) -> bool {
        self.kubernetes.queue.kind == QueueKind::Kueue
    }

    fn folder(&self) -> Utf8PathBuf {
        self.root.join(format!("clusters/{}/kubernetes", self.cluster.name))
    }

    /// The stages that a sync applies, in order.
    fn stages(&self) -> Result<Vec<String>, Failure> {
        let text = std::fs::read_to_string(self.folder().join("kustomization.yaml"))?;
        let list: Value = serde_yaml::from_str(&text)?;
        let stages =
            list.get("resources").and_then(Value::as_array).ok_or("no stage is applied")?;
        Ok(stages.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// The objects of a folder of the cluster's.
    fn objects(&self, folder: &str) -> Result<Vec<Value>, Failure> {
        self.read(&format!("clusters/{}/kubernetes/{folder}/", self.cluster.name))
    }

    /// What tells Argo CD or Flux of the cluster.
    fn gitops(&self) -> Result<Vec<Value>, Failure> {
        self.read(&format!("fleet/gitops/{}/", self.cluster.name))
    }

    fn read(&self, folder: &str) -> Result<Vec<Value>, Failure> {
        let right_in = |path: &str| {
            let file = path.strip_prefix(folder).filter(|file| !file.contains('/'));
            file.is_some_and(|file| file.ends_with(".yaml") && file != "kustomization.yaml")
        };
        let files = self.files.iter().filter(|(path, _)| right_in(path));
        files.map(|(_, text)| Ok(serde_yaml::from_str(text)?)).collect()
    }

    /// Those of one kind.
    pub fn of_kind<'o>(
        &self,
        objects: &'o [Value],
        kind: &'static str,
    ) -> impl Iterator<Item = &'o Value> {
        objects.iter().filter(move |object| text(object, "/kind") == kind)
    }

    /// Kueue runs with the text that its ConfigMap holds, and its webhooks are asked.
    fn start_kueue(&mut self) -> Result<(), Failure> {
        self.plane.start_kueue(&self.configuration()?)?;
        // The API server hears of webhooks a moment after they are stored.
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": { "name": "asked", "namespace": "default", "labels": { "kueue.x-k8s.io/queue-name": "any" } },
            "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "any" }] } } },
        });
        let queue = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": { "name": "asked" },
            "spec": { "resourceGroups": [twice(), twice()] },
        });
        self.plane.until("Kueue's webhooks are asked", || {
            let job = self.plane.dry_run(&job)?;
            let held = job.pointer("/spec/suspend") == Some(&json!(true));
            let checked =
                self.plane.would_take(&queue).is_err_and(|said| said.contains("admission webhook"));
            Ok(if held && checked {
                Ok(())
            } else {
                Err(format!("held: {held}, checked: {checked}"))
            })
        })
    }

    /// The configuration of Kueue's manager.
    pub fn configuration(&self) -> Result<Value, Failure> {
        let queues = self.objects("60-queues")?;
        let map = self.of_kind(&queues, "ConfigMap").next().ok_or("Kueue has no configuration")?;
        let data = map.get("data").and_then(Value::as_object).and_then(|data| data.values().next());
        let data = data.and_then(Value::as_str).ok_or("the configuration of Kueue is empty")?;
        Ok(serde_yaml::from_str(data)?)
    }

    /// Waits until Kueue, which is asked about each pod, has heard of a namespace.
    fn is_known(&self, namespace: &str) -> Result<(), Failure> {
        let ask = jobs::Ask::Resource("cpu", 1);
        let pod = jobs::probe(namespace, "asked", ("kubernetes.io/os", "linux"), &ask);
        self.plane.until("a namespace is known", || match self.plane.would_take(&pod) {
            Err(said) if !said.contains("not found") => Err(said.into()),
            other => Ok(other),
        })
    }

    fn queues_are_active(&self) -> Result<usize, Failure> {
        self.plane.until("queues are active", || {
            let queues = self
                .plane
                .get(&["clusterqueues.kueue.x-k8s.io,localqueues.kueue.x-k8s.io", "-A"])?;
            let active = |queue: &&Value| {
                condition(queue, "Active").is_some_and(|(status, _)| status == "True")
            };
            let missing: Vec<String> = queues
                .iter()
                .filter(|queue| !active(queue))
                .map(|queue| {
                    let said = condition(queue, "Active").map_or("nothing", |(_, said)| said);
                    format!("{} {}: {said}", text(queue, "/kind"), text(queue, "/metadata/name"))
                })
                .collect();
            let written = self.objects("60-queues")?;
            let wanted = self.of_kind(&written, "ClusterQueue").count()
                + self.of_kind(&written, "LocalQueue").count();
            Ok(match missing.is_empty() && queues.len() == wanted && wanted > 0 {
                true => Ok(queues.len()),
                false => Err(format!(
                    "{} of {wanted} are there, not active are {missing:?}",
                    queues.len()
                )),
            })
        })
    }

    /// What is applied twice is changed once. Controllers may still be writing a status when the first is
    /// compared with the second, so one pair of all that are tried must be alike; what we write and the
    /// cluster has otherwise would change each time.
    fn applies_again_unchanged(&self) -> Result<(), Failure> {
        let folder = self.folder();
        let versions = |objects: Vec<Value>| -> BTreeMap<String, String> {
            let version = |object: &Value| text(object, "/metadata/resourceVersion").to_owned();
            objects.iter().map(|object| (name(object), version(object))).collect()
        };
        self.plane.until("applying again changes nothing", || {
            let before = versions(self.plane.get(&["-k", folder.as_str()])?);
            let after = versions(self.plane.apply_from(&["-k", folder.as_str()])?);
            let changed: Vec<&String> =
                after.keys().filter(|name| after.get(*name) != before.get(*name)).collect();
            Ok(if changed.is_empty() { Ok(()) } else { Err(format!("changed are {changed:?}")) })
        })
    }

    /// Every value is in the cluster as it was written: what the server writes in another way would look
    /// changed for ever to whoever compares texts.
    fn stands_as_written(&self, written: &[Value]) -> Result<usize, Failure> {
        let folder = self.folder();
        let live: BTreeMap<String, Value> = self
            .plane
            .get(&["-k", folder.as_str()])?
            .into_iter()
            .map(|object| (name(&object), object))
            .collect();
        let mut others = Vec::new();
        for object in written {
            let there =
                live.get(&name(object)).ok_or_else(|| format!("{} is not there", name(object)))?;
            if let Some(path) = differs(object, there) {
                let [ours, theirs] = [object, there].map(|object| object.pointer(&path));
                others.push(format!("{}: {path} is {ours:?}, not {theirs:?}", name(object)));
            }
        }
        match others.is_empty() {
            true => Ok(written.len()),
            false => Err(format!("not in the cluster as written: {}", others.join("; ")).into()),
        }
    }

    /// These checks can fail: each of those who read our objects refuses one with a mistake.
    fn wrong_objects_are_refused(
        &self,
        written: &[Value],
        definitions: &Value,
    ) -> Result<BTreeSet<&'static str>, Failure> {
        let defined =
            definitions.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_defined = |object: &&Value| {
            defined
                .iter()
                .any(|definition| definition.pointer("/spec/names/kind") == object.get("kind"))
        };
        let unknown = |object: Option<&Value>, at: &str| -> Result<Option<Value>, Failure> {
            let Some(mut object) = object.cloned() else { return Ok(None) };
            set(&mut object, at, WRONG, json!(true))?;
            Ok(Some(object))
        };
        let namespace = self.of_kind(written, "Namespace").next();
        let mut queue = self.of_kind(written, "ClusterQueue").next().cloned();
        if let Some(groups) = queue
            .as_mut()
            .and_then(|queue| queue.pointer_mut("/spec/resourceGroups")?.as_array_mut())
        {
            groups.extend(groups.first().cloned());
        }
        let wrong = [
            (unknown(namespace, "/metadata")?, WRONG),
            (unknown(written.iter().find(is_defined), "/spec")?, WRONG),
            (queue, "admission webhook"),
        ];
        let mut refused = BTreeSet::new();
        for (who, (object, saying)) in REFUSERS.into_iter().zip(wrong) {
            let Some(object) = object else { continue };
            match self.plane.would_take(&object) {
                Ok(()) => return Err(format!("{who} takes {object}").into()),
                Err(said) if !said.contains(saying) => {
                    return Err(format!(
                        "{who} refuses {} over another thing: {said}",
                        name(&object)
                    )
                    .into());
                }
                Err(_) => {
                    refused.insert(who);
                }
            }
        }
        Ok(refused)
    }

    /// A ResourceQuota holds: what it allows is taken, and one more is refused.
    fn quotas(&self, written: &[Value]) -> Result<usize, Failure> {
        let mut passed = 0;
        for quota in self.of_kind(written, "ResourceQuota") {
            let hard = quota.pointer("/spec/hard").and_then(Value::as_object);
            for (key, most) in hard.into_iter().flatten() {
                let resource = key.strip_prefix("requests.").ok_or("a quota is of requests")?;
                let most: u64 = most.as_str().ok_or("a quota is a text")?.parse()?;
                let home = text(quota, "/metadata/namespace");
                let pod = |count| {
                    let ask = jobs::Ask::Resource(resource, count);
                    jobs::probe(home, "quota", ("kubernetes.io/os", "linux"), &ask)
                };
                // Until its controller has counted, the server refuses everything.
                self.plane.until("a quota is counted", || {
                    Ok(match self.plane.would_take(&pod(most + 1)) {
                        Err(said) if said.contains("exceeded quota") => Ok(()),
                        Err(said) if said.contains("status unknown") => Err(said),
                        other => {
                            return Err(format!(
                                "{home} may have {most} of {resource}, and for {}: {other:?}",
                                most + 1
                            )
                            .into());
                        }
                    })
                })?;
                if most > 0 {
                    self.plane.would_take(&pod(most))?;
                }
                passed += 1;
            }
        }
        Ok(passed)
    }

    /// Takes away whatever runs in a namespace. Without kubelets pods must be told to be gone.
    pub fn clear(&self, namespace: &str) -> Result<(), Failure> {
        let queued = if self.queues() { ",workloads.kueue.x-k8s.io" } else { "" };
        let kinds = format!("deployments,replicasets,jobs,pods{queued}");
        let all = format!("{kinds},resourceclaims");
        self.plane.until("a namespace is empty", || {
            let delete = [
                "delete",
                &kinds,
                "--all",
                "-n",
                namespace,
                "--wait=false",
                "--force",
                "--grace-period=0",
            ];
            self.plane.kubectl(&delete)?;
            let left: Vec<String> =
                self.plane.get(&[&all, "-n", namespace])?.iter().map(name).collect();
            Ok(if left.is_empty() { Ok(()) } else { Err(format!("there are {left:?}")) })
        })
    }
}

/// A group of resources, which a queue may have once.
fn twice() -> Value {
    let quota = json!({ "name": "cpu", "nominalQuota": "1" });
    json!({ "coveredResources": ["cpu"], "flavors": [{ "name": "any", "resources": [quota] }] })
}
