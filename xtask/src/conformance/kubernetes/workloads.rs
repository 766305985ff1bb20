//! Workloads as their owners run them, one after the other: admitted where Kueue queues, bound to nodes
//! of their pool, on the devices that they claim. Then what a team may have at most, by the Intent: a
//! job for more is held by Kueue, and one for all of it is not.

use std::collections::BTreeSet;

use fleetc_schema::intent::{Devices, Intent, Resource, Team, Workload};
use fleetc_schema::name::{TeamName, WorkloadName};
use serde_json::Value;

use super::lab::Lab;
use super::objects::{condition, name, text};
use super::probes::claims_are_on;
use super::{Failure, jobs, site};

/// What a workload asks for, as Kueue counts it.
struct Demand {
    /// The resource.
    resource: String,
    /// How many of it a pod has.
    each: u64,
    /// The most that its team may have.
    most: u64,
}

impl Lab<'_> {
    /// Runs every template.
    pub fn workloads(&self, written: &[Value], templates: &[Value]) -> Result<usize, Failure> {
        let here = self.intent.workloads.iter().filter(|(_, w)| w.cluster == self.cluster.name);
        let mut passed = 0;
        for (name, workload) in here {
            let template = templates.iter().find(|t| text(t, "/metadata/name") == name.as_str());
            // A workload that does not say what it asks for has none.
            let Some(template) = template else { continue };
            let of = |error| format!("workload {name}: {error}");
            self.runs(name, workload, template).map_err(of)?;
            passed += 1;
            if self.queues() && workload.gpus > 0 {
                passed += self.is_limited(workload, written, template).map_err(of)?;
            }
        }
        Ok(passed)
    }

    /// One job or replica is admitted and bound.
    fn runs(
        &self,
        called: &WorkloadName,
        workload: &Workload,
        template: &Value,
    ) -> Result<(), Failure> {
        let home = text(template, "/metadata/namespace");
        let classes = self.intent.classes_of(&self.cluster.name);
        let nodes: BTreeSet<String> = classes
            .filter(|class| class.node.pool == workload.pool)
            .flat_map(site::nodes_of)
            .collect();
        let run = jobs::run(template)?;
        self.plane.create(&run.object)?;
        let label = format!("{}/workload", self.intent.fleet.label_prefix);
        let label = format!("/metadata/labels/{}", label.replace('/', "~1"));
        let kinds = match self.queues() {
            true => "pods,resourceclaims,workloads.kueue.x-k8s.io",
            false => "pods,resourceclaims",
        };
        self.plane.until("its pods run", || {
            let objects = self.plane.get(&[kinds, "-n", home])?;
            if self.queues() {
                let queued: Vec<&Value> = self.of_kind(&objects, "Workload").collect();
                let admitted = |queued: &&&Value| {
                    condition(queued, "Admitted").is_some_and(|(is, _)| is == "True")
                };
                if queued.is_empty() || queued.iter().filter(admitted).count() < queued.len() {
                    let said: Vec<String> = queued.iter().map(|queued| reserved(queued)).collect();
                    return Ok(Err(format!("it is not admitted: {said:?}")));
                }
            }
            let pods: Vec<&Value> = self
                .of_kind(&objects, "Pod")
                .filter(|pod| text(pod, &label) == called.as_str())
                .collect();
            if pods.len() as u64 != run.pods {
                return Ok(Err(format!("{} of {} pods are there", pods.len(), run.pods)));
            }
            for pod in pods {
                let node = text(pod, "/spec/nodeName");
                if node.is_empty() {
                    let said = condition(pod, "PodScheduled").map_or("", |(_, said)| said);
                    return Ok(Err(format!("{} is not bound: {said}", name(pod))));
                }
                if !nodes.contains(node) {
                    return Err(format!(
                        "{} is on {node}, not on a node of {}",
                        name(pod),
                        workload.pool
                    )
                    .into());
                }
                if let Err(missing) = claims_are_on(&objects, pod) {
                    return Ok(Err(missing));
                }
            }
            Ok(Ok(()))
        })?;
        self.clear(home)
    }

    /// A job above what the team may have is held, with the resource as the reason; one for all of it
    /// reserves it.
    fn is_limited(
        &self,
        workload: &Workload,
        written: &[Value],
        template: &Value,
    ) -> Result<usize, Failure> {
        let Demand { resource, each, most } = self.demand(workload, written, template)?;
        let home = text(template, "/metadata/namespace");
        let pods = most / each;
        self.plane.create(&jobs::job(template, "above", pods + 1)?)?;
        let words = format!("insufficient quota for {resource} in flavor");
        self.plane.until("a job above the quota is held", || {
            let objects = self.plane.get(&["workloads.kueue.x-k8s.io", "-n", home])?;
            let Some(queued) = objects.first() else {
                return Ok(Err("not seen by Kueue".to_owned()));
            };
            let said = reserved(queued);
            match condition(queued, "QuotaReserved") {
                Some(("True", _)) => Err(format!(
                    "{} × {each} {resource} of at most {most} are admitted: {said}",
                    pods + 1
                )
                .into()),
                Some((_, _)) if said.contains(&words) && said.contains("maximum capacity") => {
                    Ok(Ok(()))
                }
                _ => Ok(Err(said)),
            }
        })?;
        self.clear(home)?;
        // Where Kueue places pods too, the room in one domain counts, not the quota alone.
        let placed =
            jobs::pod(template).and_then(|pod| pod.pointer("/metadata/annotations")).is_some();
        if pods == 0 || placed {
            return Ok(1);
        }
        self.plane.create(&jobs::reservation(template, "all", pods)?)?;
        self.plane.until("a job for all of the quota is admitted", || {
            let objects = self.plane.get(&["workloads.kueue.x-k8s.io", "-n", home])?;
            let reserves = |queued: &&Value| {
                condition(queued, "QuotaReserved").is_some_and(|(is, _)| is == "True")
            };
            let said: Vec<String> = objects.iter().map(reserved).collect();
            Ok(match objects.iter().any(|queued| reserves(&queued)) {
                true => Ok(()),
                false => Err(format!("{pods} × {each} {resource} of {most}: {said:?}")),
            })
        })?;
        self.clear(home)?;
        Ok(2)
    }

    /// What a pod of a template has of the thing that its workload asks for, and what its team may have.
    fn demand(
        &self,
        workload: &Workload,
        written: &[Value],
        template: &Value,
    ) -> Result<Demand, Failure> {
        let (intent, cluster) = (self.intent, &self.cluster.name);
        let capacity = intent.capacity(&workload.pool, cluster);
        let unit = match &workload.slice {
            Some(slice) => Resource::Slice(slice.clone()),
            None => capacity.keys().next().cloned().ok_or("its pool hands out nothing")?,
        };
        let of_pool = capacity.get(&unit).copied().ok_or("its pool does not hand that out")?;
        let limits = around(intent, &workload.team).filter_map(|team| {
            let mut quotas = team.quotas.iter();
            let here = |pool, of| pool == &workload.pool && of == cluster;
            let quota =
                quotas.find(|quota| here(&quota.pool, &quota.cluster) && quota.resource == unit)?;
            quota.limit.map(u64::from)
        });
        let most = limits.fold(of_pool, u64::min);
        let pool = intent.pools.get(&workload.pool).ok_or("it has no pool")?;
        let pod = jobs::pod(template).ok_or("it has no pods")?;
        let (resource, each) = match pool.devices {
            Devices::DevicePlugin => {
                let resource = pool.sharing.kubernetes_resource(&unit);
                let at =
                    format!("/spec/containers/0/resources/limits/{}", resource.replace('/', "~1"));
                let each =
                    text(pod, &at).parse().map_err(|_| format!("a pod asks for no {resource}"))?;
                (resource, each)
            }
            Devices::Dra => self.claimed(written, pod, text(template, "/metadata/namespace"))?,
        };
        Ok(Demand { resource, each, most })
    }

    /// The resource under which the devices of a pod's first claim are counted, and how many they are.
    fn claimed(
        &self,
        written: &[Value],
        pod: &Value,
        home: &str,
    ) -> Result<(String, u64), Failure> {
        let claim = text(pod, "/spec/resourceClaims/0/resourceClaimTemplateName");
        let mut templates = self.of_kind(written, "ResourceClaimTemplate");
        let template = templates.find(|template| {
            text(template, "/metadata/name") == claim
                && text(template, "/metadata/namespace") == home
        });
        let template =
            template.ok_or_else(|| format!("no template of claims is called {claim}"))?;
        let request = "/spec/spec/devices/requests/0/exactly";
        let class = text(template, &format!("{request}/deviceClassName"));
        let count = template.pointer(&format!("{request}/count")).and_then(Value::as_u64);
        let configuration = self.configuration()?;
        let mappings =
            configuration.pointer("/resources/deviceClassMappings").and_then(Value::as_array);
        let maps = |mapping: &&Value| {
            let classes = mapping.get("deviceClassNames").and_then(Value::as_array);
            classes.is_some_and(|classes| classes.iter().any(|name| name == class))
        };
        let mapping = mappings.into_iter().flatten().find(maps);
        let mapping = mapping.ok_or_else(|| format!("{class} is counted as nothing"))?;
        Ok((text(mapping, "/name").to_owned(), count.ok_or("a claim states no count")?))
    }
}

/// What Kueue says of the quota of a job.
fn reserved(queued: &Value) -> String {
    condition(queued, "QuotaReserved").map_or("nothing", |(_, said)| said).to_owned()
}

/// A team and those around it.
fn around<'a>(intent: &'a Intent, team: &'a TeamName) -> impl Iterator<Item = &'a Team> {
    std::iter::successors(intent.teams.get(team), move |team| {
        intent.teams.get(team.parent.as_ref()?)
    })
}
