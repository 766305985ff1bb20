//! TRES of GPUs: what is counted and limited. Source: tres.html and resource_limits.html.

use fleetc_schema::intent::{Cluster, Intent};

/// GPUs of any type.
pub const GPU: &str = "gres/gpu";

/// GPUs of a type.
pub fn typed(kind: &str) -> String {
    format!("{GPU}:{kind}")
}

/// Every GPU TRES of a cluster, for `AccountingStorageTRES`: what is not among them has no limit.
pub fn tracked(intent: &Intent, cluster: &Cluster) -> Vec<String> {
    let mut tracked = Vec::new();
    for gres in intent.classes_of(&cluster.name).flat_map(|class| &class.node.advertised.gres) {
        if tracked.is_empty() {
            tracked.push(GPU.to_owned());
        }
        let typed = typed(&gres.kind);
        if !tracked.contains(&typed) {
            tracked.push(typed);
        }
    }
    tracked
}
