//! Names as consumers see them: two things under one name, and names that one of them keeps.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::hostlist::clashes;
use fleetc_schema::intent::{Intent, Scheduler, Team};
use fleetc_schema::name::{ClusterName, TeamName};
use indexmap::IndexMap;

use crate::lower::Lowered;

/// `name/collision`: a node that an elastic pool will bring is called like one that is there.
pub fn elastic_nodes(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let pools: Vec<_> = lowered.intent.pools.iter().collect();
    let lists: Vec<_> = pools.iter().enumerate().map(|(at, (_, pool))| (at, &pool.nodes)).collect();
    for (first, second, common) in clashes(&lists) {
        let (Some((first, one)), Some((second, other))) = (pools.get(first), pools.get(second))
        else {
            continue;
        };
        // Two pools with nodes by name are `name/node-twice`.
        let (elastic, named) = match (one.elastic, other.elastic) {
            (Some(_), _) => (first, second),
            (None, Some(_)) => (second, first),
            (None, None) => continue,
        };
        let title = format!("`{common}` of pool `{named}` and of elastic pool `{elastic}`");
        found.push(
            Diagnostic::new(&rules::NAME_COLLISION, title)
                .at(ItemPath::item("pool", named).child("nodes"), "named here")
                .at(ItemPath::item("pool", elastic).child("count"), "brought from here")
                .note(format!("nodes of an elastic pool are called `{elastic}-0001` and so on"))
                .help("rename the nodes, or one of the pools"),
        );
    }
}

/// `name/collision`: teams in one Kubernetes namespace, or in that of the GPU Operator.
pub fn namespaces(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    if first_kubernetes(intent).is_none() {
        return;
    }
    // Where any pool is governed each team has a ResourceQuota, and two of them contradict.
    let counted = intent.pools.iter().any(|(name, pool)| {
        let governed = |owner| is_kubernetes(intent, owner) && intent.is_governed(name, owner);
        pool.parts.keys().any(governed)
    });
    let severity = if counted { Severity::Error } else { Severity::Warning };
    let mut seen: IndexMap<&str, &TeamName> = IndexMap::new();
    for (name, team) in &intent.teams {
        let namespace = team.namespace.as_str();
        let place = |team| ItemPath::item("team", team).child("namespace");
        if lowered.is_poisoned(&place(name)) {
            continue;
        }
        let Some(first) = seen.insert(namespace, name) else { continue };
        let title = format!("teams `{first}` and `{name}` have one namespace, `{namespace}`");
        // The one that says so can be edited; a name is its own namespace where nothing is said.
        let stated = |team| lowered.places.contains_key(&place(team));
        let (here, there) = if stated(name) { (name, first) } else { (first, name) };
        found.push(
            Diagnostic::new(&rules::NAME_COLLISION, title)
                .severity(severity)
                .at(place(here), "the same namespace")
                .at(place(there), "as here")
                .note("a ResourceQuota counts a whole namespace: what one team uses counts against the other")
                .help("give each team a namespace of its own, or make them one team"),
        );
    }
    for (cluster, operator) in intent.clusters.iter().filter_map(|(name, cluster)| {
        let Scheduler::Kubernetes(kubernetes) = &cluster.scheduler else { return None };
        Some((name, kubernetes.gpu_operator.as_ref()?))
    }) {
        let Some(team) = seen.get(operator.namespace.as_str()) else { continue };
        let title = format!("team `{team}` is in the namespace of the GPU Operator");
        let item = ItemPath::item("cluster", cluster).child("kubernetes").child("gpu-operator");
        found.push(
            Diagnostic::new(&rules::NAME_COLLISION, title)
                .severity(Severity::Warning)
                .at(ItemPath::item("team", team).child("namespace"), "its quota counts here")
                .at(item.child("namespace"), "the operator's pods run here")
                .note("pods that prove a node ask for a GPU, and count against the team's quota")
                .help("give the team a namespace of its own"),
        );
    }
}

/// `name/collision` and `name/illegal`: Slurm accounts.
pub fn accounts(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    let slurm = intent.clusters.keys().find(|cluster| !is_kubernetes(intent, cluster));
    let Some(cluster) = slurm else { return };
    let counted = |team: &Team| {
        let mut quotas = team.quotas.iter();
        quotas.any(|quota| !is_kubernetes(intent, &quota.cluster))
    };
    let mut seen: IndexMap<String, (&TeamName, &Team)> = IndexMap::new();
    for (name, team) in &intent.teams {
        let place = |team| ItemPath::item("team", team).child("account");
        if lowered.is_poisoned(&place(name)) {
            continue;
        }
        if let Some((problem, help)) = illegal_account(&team.account) {
            let title = format!("`{}` is no account of Slurm: {problem}", team.account);
            found.push(
                Diagnostic::new(&rules::NAME_ILLEGAL, title)
                    .at(place(name), "not an account")
                    .at(ItemPath::item("cluster", cluster), "a Slurm cluster")
                    .help(help),
            );
        }
        // Source: sacctmgr(1), "The contents of Slurm's database are maintained in lower case".
        let Some((first, other)) = seen.insert(team.account.to_lowercase(), (name, team)) else {
            continue;
        };
        let both = counted(team) && counted(other);
        let title = format!("teams `{first}` and `{name}` have one account, `{}`", team.account);
        let stated = lowered.places.contains_key(&place(name));
        let (here, there) = if stated { (name, first) } else { (first, name) };
        let finding = Diagnostic::new(&rules::NAME_COLLISION, title)
            .severity(if both { Severity::Error } else { Severity::Warning })
            .at(place(here), "the same account")
            .at(place(there), "as here")
            .note("limits and fair share are the account's: what one team uses counts against the other");
        let finding = match team.account == other.account {
            true => finding,
            false => finding.note("Slurm keeps accounts in lower case"),
        };
        found.push(finding.help("give each team an account of its own, or make them one team"));
    }
}

/// The longest account: a column `tinytext` in Slurm's database.
const ACCOUNT_LIMIT: usize = 255;

/// Why sacctmgr would not take a text for this one account, and what to do.
fn illegal_account(account: &str) -> Option<(String, &'static str)> {
    // `:`, `=` and `,` separate in what sacctmgr reads, a leading `+` or `-` adds and removes.
    let separates = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, ':' | '=' | ',' | '"' | '\'' | '\\' | '#')
    };
    if account.is_empty() {
        return Some(("it is empty".to_owned(), "leave it out for the team's name"));
    }
    if account.eq_ignore_ascii_case("root") {
        return Some(("it is the one above all others".to_owned(), "write another `account`"));
    }
    if account.len() > ACCOUNT_LIMIT {
        let title = format!("it has {} bytes, at most {ACCOUNT_LIMIT} are allowed", account.len());
        return Some((title, "write a shorter one"));
    }
    let signed = account.chars().next().filter(|c| matches!(c, '+' | '-'));
    let wrong = signed.or_else(|| account.chars().find(|c| separates(*c)))?;
    Some((format!("it holds `{wrong}`"), "use letters, digits, `-`, `_` and `.`"))
}

/// `name/illegal`: node names that the scheduler of a pool does not take.
pub fn node_names(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    for (name, pool) in &lowered.intent.pools {
        if pool.elastic.is_some() {
            continue;
        }
        let place = ItemPath::item("pool", name).child("nodes");
        for (cluster, nodes) in &pool.parts {
            let item = ItemPath::item("cluster", cluster);
            let finding = match is_kubernetes(&lowered.intent, cluster) {
                true => {
                    let text = nodes.to_string();
                    let wrong = |c: &char| c.is_ascii_uppercase() || *c == '_';
                    let Some(c) = text.chars().find(wrong) else { continue };
                    let title = format!("`{text}` holds `{c}`, which no Kubernetes node has");
                    Diagnostic::new(&rules::NAME_ILLEGAL, title)
                        .at(&place, "not names of nodes")
                        .at(item, "a Kubernetes cluster")
                        .note("a node is called by a DNS name in lower case, and kubelet writes it so")
                        .help("use lower-case letters, digits, `-` and `.`")
                }
                false => {
                    let words = ["ALL", "All", "all", "DEFAULT", "Default", "default"];
                    let Some(word) = words.iter().find(|word| nodes.contains(word)) else {
                        continue;
                    };
                    let title = format!("`{word}` is reserved by slurm.conf");
                    Diagnostic::new(&rules::NAME_ILLEGAL, title)
                        .at(&place, "not the name of a node")
                        .at(item, "a Slurm cluster")
                        .help("rename the node")
                }
            };
            found.push(finding);
        }
    }
}

/// `name/illegal`: names of teams and tiers that Kubernetes keeps for itself.
pub fn reserved(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let intent = &lowered.intent;
    let Some(cluster) = first_kubernetes(intent) else { return };
    let cluster = ItemPath::item("cluster", cluster);
    for (name, team) in &intent.teams {
        let namespace = team.namespace.as_str();
        // Source: Kubernetes documentation, "Namespaces": `kube-` is reserved, and `default` is where
        // what names no namespace lands.
        if namespace != "default" && !namespace.starts_with("kube-") {
            continue;
        }
        let title = format!("team `{name}` is in the namespace `{namespace}` of Kubernetes itself");
        found.push(
            Diagnostic::new(&rules::NAME_ILLEGAL, title)
                .severity(Severity::Warning)
                .at(ItemPath::item("team", name).child("namespace"), "not a team's own")
                .at(&cluster, "a Kubernetes cluster")
                .note("its quota counts pods of others there")
                .help("give the team a namespace of its own: `namespace \"…\"`"),
        );
    }
    for name in intent.tiers.keys().filter(|name| name.as_str().starts_with("system-")) {
        let title = format!("`{name}` begins with `system-`, which Kubernetes keeps for itself");
        found.push(
            Diagnostic::new(&rules::NAME_ILLEGAL, title)
                .at(ItemPath::item("tier", name), "not the name of a PriorityClass")
                .at(&cluster, "a Kubernetes cluster")
                .help("rename the tier"),
        );
    }
}

/// The first Kubernetes cluster of the fleet.
pub fn first_kubernetes(intent: &Intent) -> Option<&ClusterName> {
    intent.clusters.keys().find(|cluster| is_kubernetes(intent, cluster))
}

fn is_kubernetes(intent: &Intent, cluster: &ClusterName) -> bool {
    let scheduler = intent.clusters.get(cluster).map(|cluster| &cluster.scheduler);
    matches!(scheduler, Some(Scheduler::Kubernetes(_)))
}
