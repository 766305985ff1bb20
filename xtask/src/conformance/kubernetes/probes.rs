//! Pods of nobody's, outside every queue: one for all that a node of a class has of a resource, which is
//! bound to such a node, and one for one more, which never is.

use std::collections::BTreeSet;

use fleetc_schema::intent::{Class, Devices, Resource};
use serde_json::Value;

use super::jobs::{Ask, claim_template, probe};
use super::lab::{Lab, NOBODY};
use super::objects::{condition, text};
use super::{Failure, site};

/// What is expected of a pod.
enum Expected {
    /// It is bound to one of these nodes, and so are its devices.
    Bound(BTreeSet<String>),
    /// No node has as much; the scheduler says so in some of these words.
    Pending(Vec<String>),
}

impl Lab<'_> {
    /// Asks for all that each class advertises, and for one more.
    pub fn probes(&self, written: &[Value]) -> Result<usize, Failure> {
        let (mut objects, mut expected) = (Vec::new(), Vec::new());
        let label = format!("{}/class", self.intent.fleet.label_prefix);
        for (at, class) in self.intent.classes_of(&self.cluster.name).enumerate() {
            let nodes: BTreeSet<String> = site::nodes_of(class).collect();
            let on = (label.as_str(), class.node.name.as_str());
            let resources = class.node.advertised.resources.iter();
            for (number, (resource, count)) in resources.enumerate() {
                for (kind, count, expected_of) in [
                    ("all", *count, Expected::Bound(nodes.clone())),
                    (
                        "more",
                        count + 1,
                        Expected::Pending(vec![format!("Insufficient {resource}")]),
                    ),
                ] {
                    let name = format!("resource-{at}-{number}-{kind}");
                    objects.push(probe(NOBODY, &name, on, &Ask::Resource(resource, count)));
                    expected.push((name, expected_of));
                }
            }
            let pool = self.intent.pools.get(&class.node.pool);
            if pool.is_none_or(|pool| pool.devices != Devices::Dra) {
                continue;
            }
            for (number, (unit, count)) in class.node.advertised.units.iter().enumerate() {
                let device_class = self.device_class(written, class, unit)?;
                let count = u64::from(*count);
                // It tries sets of devices one after the other, and gives up where there are too many.
                let none = ["cannot allocate all claims", "timed out trying to allocate devices"];
                for (kind, count, expected_of) in [
                    ("all", count, Expected::Bound(nodes.clone())),
                    ("more", count + 1, Expected::Pending(none.map(str::to_owned).to_vec())),
                ] {
                    let name = format!("devices-{at}-{number}-{kind}");
                    objects.push(claim_template(NOBODY, &name, &device_class, count));
                    objects.push(probe(NOBODY, &name, on, &Ask::Claim(&name)));
                    expected.push((name, expected_of));
                }
            }
        }
        self.plane.create(&site::list(objects))?;
        self.plane.until("pods get what a node has", || {
            let pods = self.plane.get(&["pods,resourceclaims", "-n", NOBODY])?;
            for (name, expected) in &expected {
                if let Err(missing) = is_so(&pods, name, expected)? {
                    return Ok(Err(missing));
                }
            }
            Ok(Ok(()))
        })?;
        self.clear(NOBODY)?;
        Ok(expected.len())
    }

    /// The class of a unit's devices, by the name that is documented for it.
    fn device_class(
        &self,
        written: &[Value],
        class: &Class,
        unit: &Resource,
    ) -> Result<String, Failure> {
        let pool = &class.node.pool;
        let part = match unit {
            Resource::Gpu | Resource::Shared => pool.to_string(),
            Resource::Slice(profile) => format!("{pool}-{}", profile.to_string().replace('+', ".")),
        };
        let wanted = format!("{part}.{}", self.intent.fleet.label_prefix);
        let found = self
            .of_kind(written, "DeviceClass")
            .any(|found| text(found, "/metadata/name") == wanted);
        if found { Ok(wanted) } else { Err(format!("no DeviceClass {wanted} is written").into()) }
    }
}

/// Whether a pod is as expected yet; an error if it can no longer be.
fn is_so(
    objects: &[Value],
    name: &str,
    expected: &Expected,
) -> Result<Result<(), String>, Failure> {
    let pod =
        objects.iter().find(|o| text(o, "/kind") == "Pod" && text(o, "/metadata/name") == name);
    let Some(pod) = pod else { return Ok(Err(format!("{name} is not there"))) };
    let node = text(pod, "/spec/nodeName");
    let said = condition(pod, "PodScheduled").map_or("", |(_, said)| said);
    match expected {
        Expected::Bound(nodes) if nodes.contains(node) => Ok(claims_are_on(objects, pod)),
        Expected::Bound(_) if node.is_empty() => Ok(Err(format!("{name} is not bound: {said}"))),
        Expected::Bound(nodes) => {
            Err(format!("{name} is bound to {node}, not to one of {nodes:?}").into())
        }
        Expected::Pending(_) if !node.is_empty() => {
            Err(format!("{name} is bound to {node}: {pod}").into())
        }
        Expected::Pending(words) if words.iter().any(|words| said.contains(words)) => Ok(Ok(())),
        Expected::Pending(words) => {
            Ok(Err(format!("{name} is told `{said}`, not one of {words:?}")))
        }
    }
}

/// Whether every claim of a bound pod has its devices, all of them of the pod's node.
pub fn claims_are_on(objects: &[Value], pod: &Value) -> Result<(), String> {
    let (name, node) = (text(pod, "/metadata/name"), text(pod, "/spec/nodeName"));
    let claims = pod.pointer("/spec/resourceClaims").and_then(Value::as_array);
    for claim in claims.into_iter().flatten() {
        let called = text(claim, "/name");
        let of_pod = |object: &&Value| {
            text(object, "/kind") == "ResourceClaim"
                && text(object, "/metadata/ownerReferences/0/name") == name
                && text(object, "/metadata/annotations/resource.kubernetes.io~1pod-claim-name")
                    == called
        };
        let found =
            objects.iter().find(of_pod).ok_or_else(|| format!("{name} has no claim {called}"))?;
        let results = found.pointer("/status/allocation/devices/results").and_then(Value::as_array);
        let results = results.ok_or_else(|| format!("claim {called} of {name} has no devices"))?;
        let asked = found.pointer("/spec/devices/requests/0/exactly/count").and_then(Value::as_u64);
        let here = results.iter().filter(|result| text(result, "/pool") == node).count();
        if here != results.len() || asked.is_some_and(|asked| usize::try_from(asked) != Ok(here)) {
            return Err(format!("{name} on {node} asks for {asked:?} devices and has {results:?}"));
        }
    }
    Ok(())
}
