//! ConfigMap of the MIG manager: the entries of mig-parted, under the key that the operator asks for.
//!
//! A node picks its entry with the label `nvidia.com/mig.config`. Source: NVIDIA/gpu-operator v26.7.0
//! `deployments/gpu-operator/values.yaml`: a ConfigMap of one's own has the key `config.yaml`.

use fleetc_schema::intent::{Cluster, GpuOperator, Intent};
use indexmap::IndexMap;
use serde::Serialize;

use crate::manifest::{self, Metadata, Stage};
use crate::write::{header, mig_parted, yaml};
use crate::{OutputFile, OutputTree};

/// Its name. A change of its content reaches a node when the MIG manager there starts again, so that
/// layouts change node by node, after a drain, and never on a whole fleet at once.
pub const CONFIG_MAP: &str = "fleetc-mig-parted";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConfigMap<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Metadata,
    data: IndexMap<&'a str, String>,
}

/// Writes the ConfigMap, if any class has MIG.
pub fn emit(tree: &mut OutputTree, intent: &Intent, cluster: &Cluster, operator: &GpuOperator) {
    let classes = mig_parted::classes(intent, cluster);
    if classes.is_empty() {
        return;
    }
    let object = ConfigMap {
        api_version: "v1",
        kind: "ConfigMap",
        metadata: Metadata::within(operator.namespace.as_str(), CONFIG_MAP),
        data: IndexMap::from([("config.yaml", mig_parted::config(&classes))]),
    };
    let lines = [
        &format!(
            "fleet {}, cluster {}: one entry a class, chosen by the node label",
            intent.fleet.name, cluster.name
        ),
        "nvidia.com/mig.config. The MIG manager reads its entry when it starts: after a change, drain a",
        "node, delete its nvidia-mig-manager pod, wait for nvidia.com/mig.config.state=success.",
    ];
    let text = header(&lines) + &yaml::document(&object);
    let path = manifest::object(&cluster.name, Stage::Nodes, "ConfigMap", CONFIG_MAP);
    tree.add(path, OutputFile::one(mig_parted::items(&classes), text));
}
