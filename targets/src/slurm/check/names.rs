//! Names that a file or a command of Slurm cannot hold.

use fleetc_schema::ItemPath;
use fleetc_schema::diag::{Diagnostic, rules};

use super::Fleet;
use crate::slurm::extra;

/// The longest name of a cluster: it is a part of the names of the database's tables. Source:
/// slurm.conf(5), "ClusterName".
const CLUSTER_NAME_LIMIT: usize = 40;

/// `slurm/name-length`: a cluster whose tables the database cannot make.
pub fn cluster(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    let name = fleet.cluster.name.as_str();
    let length = name.len();
    if length <= CLUSTER_NAME_LIMIT || fleet.slurm.database.is_none() {
        return;
    }
    let title = format!(
        "the name of the cluster has {length} characters, and Slurm takes {CLUSTER_NAME_LIMIT}"
    );
    found.push(
        Diagnostic::new(&rules::SLURM_NAME_LENGTH, title)
            .at(ItemPath::item("cluster", name), "too long for the tables of slurmdbd")
            .at(fleet.path().child("database"), "kept there")
            .note("the name is a part of each table's name, and MariaDB takes 64 characters")
            .help("use a shorter name: it sticks once the cluster is registered"),
    );
}

/// `name/illegal`: files and features that Slurm would read as something else.
pub fn files_and_features(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    let illegal = |name: &str, place: ItemPath, what: &str, help: &str| {
        Diagnostic::new(&rules::NAME_ILLEGAL, format!("`{name}` cannot be the name of {what}"))
            .at(place, format!("not the name of {what}"))
            .help(help)
    };
    for name in fleet.slurm.extra.keys().filter(|name| !extra::is_file_name(name)) {
        let place = extra::item(fleet.cluster, name);
        let help = "write a file name such as `slurm.conf`: it stands beside the others";
        found.push(illegal(name, place, "a file", help));
    }
    for (pool, item) in &fleet.intent.pools {
        if !item.parts.contains_key(&fleet.cluster.name) {
            continue;
        }
        for feature in item.features.iter().filter(|feature| !is_word(feature)) {
            let place = ItemPath::item("pool", pool).child("features");
            let help = "use letters, digits, `-`, `_` and `.`: constraints of jobs join features with signs";
            found.push(illegal(feature, place, "a feature", help));
        }
    }
}

fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.chars().all(plain)
}
