//! Objects of a Kubernetes cluster: in which stage they are applied, and where their files stand.

use fleetc_schema::ItemPath;
use fleetc_schema::name::ClusterName;
use indexmap::IndexMap;
use serde::Serialize;

use crate::OutputFile;
use crate::write::yaml;

/// Name of the ConfigMap of the device plugin; the chart of the GPU Operator refers to it. It is not
/// made anew under another name when its content changes: charts are applied apart from objects, and
/// pods that start between the two would find no ConfigMap.
pub const DEVICE_PLUGIN_CONFIG: &str = "fleetc-device-plugin";

/// The ConfigMap with the metrics of dcgm-exporter, and the name of who scrapes them.
pub const DCGM_EXPORTER: &str = "fleetc-dcgm-exporter";

/// A stage of the output of a Kubernetes cluster. What is in a later one may need what is in an
/// earlier one, never the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Namespaces.
    Namespaces,
    /// PriorityClasses.
    Priorities,
    /// Labels of nodes, and the configurations that they choose from, which must be there first.
    Nodes,
    /// What else the GPU Operator and the drivers beside it need.
    Operator,
    /// What Dynamic Resource Allocation hands out.
    Devices,
    /// Queues.
    Queues,
    /// ResourceQuotas.
    Quotas,
    /// Rules of Prometheus.
    Monitoring,
    /// Templates of workloads: to be copied, never applied with the rest.
    Workloads,
}

impl Stage {
    /// Every stage, in the order of apply.
    pub const ALL: [Self; 9] = [
        Self::Namespaces,
        Self::Priorities,
        Self::Nodes,
        Self::Operator,
        Self::Devices,
        Self::Queues,
        Self::Quotas,
        Self::Monitoring,
        Self::Workloads,
    ];

    /// Its folder.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Namespaces => "10-namespaces",
            Self::Priorities => "20-priorities",
            Self::Nodes => "30-nodes",
            Self::Operator => "40-operator",
            Self::Devices => "50-devices",
            Self::Queues => "60-queues",
            Self::Quotas => "70-quotas",
            Self::Monitoring => "80-monitoring",
            Self::Workloads => "90-workloads",
        }
    }

    /// Its number, which is its wave under Argo CD too.
    pub fn number(self) -> &'static str {
        self.folder().split('-').next().unwrap_or_default()
    }

    /// True if a sync applies it.
    pub fn is_applied(self) -> bool {
        self != Self::Workloads
    }
}

/// The folder of a cluster's objects.
pub fn folder(cluster: &ClusterName) -> String {
    format!("clusters/{cluster}/kubernetes")
}

/// The path of a file beside the objects of a stage. Only `.yaml` right in a stage's folder is taken
/// for an object.
pub fn path(cluster: &ClusterName, stage: Stage, file: &str) -> String {
    format!("{}/{}/{file}", folder(cluster), stage.folder())
}

/// The path of an object.
pub fn object(cluster: &ClusterName, stage: Stage, kind: &str, name: &str) -> String {
    path(cluster, stage, &format!("{}-{name}.yaml", kind.to_ascii_lowercase()))
}

/// An object: what every kind has, and the body that is its own (`spec`, `data`, `value` …).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Object<'a, B> {
    /// Group and version.
    pub api_version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Name and labels.
    pub metadata: Metadata,
    /// The fields beside them.
    #[serde(flatten)]
    pub body: B,
}

/// A body that is one `spec`.
#[derive(Debug, Serialize)]
pub struct Spec<S> {
    /// It.
    pub spec: S,
}

/// Name, namespace and labels.
#[derive(Debug, Default, Serialize)]
pub struct Metadata {
    /// Name.
    pub name: String,
    /// Namespace; none for an object of the whole cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub labels: IndexMap<String, String>,
}

impl Metadata {
    /// Of an object of the whole cluster.
    pub fn of(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Of an object in a namespace.
    pub fn within(namespace: impl ToString, name: impl Into<String>) -> Self {
        Self { name: name.into(), namespace: Some(namespace.to_string()), ..Self::default() }
    }
}

impl<B: Serialize> Object<'_, B> {
    /// Where it goes: kind and name tell it apart within its stage.
    pub fn path(&self, cluster: &ClusterName, stage: Stage) -> String {
        self.path_as(cluster, stage, &self.metadata.name)
    }

    /// Where it goes under another name, if several namespaces have one of its own name.
    pub fn path_as(&self, cluster: &ClusterName, stage: Stage, name: &str) -> String {
        object(cluster, stage, self.kind, name)
    }

    /// Its file, under comment lines.
    pub fn file(&self, head: &str, items: impl IntoIterator<Item = ItemPath>) -> OutputFile {
        OutputFile::one(items, format!("{head}{}", yaml::document(self)))
    }
}

/// Eight hexadecimal digits of the content, for the name of an object that Kubernetes does not let
/// change: other content is another object.
///
/// FNV-1a over the JSON text: <http://www.isthe.com/chongo/tech/comp/fnv/>.
pub fn content_hash(content: &impl Serialize) -> String {
    let text = serde_json::to_string(content).unwrap_or_default();
    let hash = text
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

/// The name, or one of at most `limit` characters that holds its beginning and its hash.
pub fn shortened(name: String, limit: usize) -> String {
    if name.len() <= limit {
        return name;
    }
    let head: String = name.chars().take(limit.saturating_sub(9)).collect();
    format!("{}-{}", head.trim_end_matches(['-', '.']), content_hash(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // The published vector for "a", here with the quotes of JSON taken into account by hand:
        // the hash of the three bytes `"a"`.
        let by_hand = [0x22_u8, 0x61, 0x22].iter().fold(2_166_136_261_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(16_777_619)
        });
        assert_eq!(content_hash(&"a"), format!("{by_hand:08x}"));
        assert_ne!(content_hash(&"a"), content_hash(&"b"));
    }

    #[test]
    fn a_long_name_keeps_its_beginning_and_stays_unlike_others() {
        assert_eq!(shortened("chat.fleetc.dev".to_owned(), 63), "chat.fleetc.dev");
        let long = |last: char| shortened(format!("{}{last}", "a".repeat(80)), 63);
        assert_eq!(long('b').len(), 63);
        assert_ne!(long('b'), long('c'));
        assert_eq!(shortened("abcdefghijk-mnopqrstuv".to_owned(), 21).len(), 20);
    }
}
