//! Lines that a site adds to gres.conf, against those that are written.

use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::{Hostlist, ItemPath};

use super::Fleet;
use crate::slurm::features::Feature;
use crate::slurm::{extra, gres_conf, is_elastic};

const FILE: &str = "gres.conf";

/// What an added line says of GPUs.
struct Added {
    place: ItemPath,
    /// Its nodes; none: every node.
    nodes: Option<Hostlist>,
    autodetect: Option<String>,
    /// True for a record of GPUs.
    is_gpu: bool,
    /// Keys that every record of a node has, or none.
    lacks: Option<&'static str>,
}

impl Added {
    fn of(fleet: Fleet<'_>, line: &str) -> Self {
        let value = |key: &str| {
            let pairs = line.split_whitespace().filter_map(|pair| pair.split_once('='));
            let mut values = pairs.filter(|(name, _)| name.eq_ignore_ascii_case(key));
            values.next().map(|(_, value)| value.trim_matches('"').to_owned())
        };
        let has_file = ["File", "MultipleFiles"].iter().any(|key| value(key).is_some());
        Self {
            place: extra::item(fleet.cluster, FILE).keyed("line", [line]),
            nodes: value("NodeName").and_then(|list| list.parse().ok()),
            autodetect: value("AutoDetect"),
            is_gpu: value("Name").is_some_and(|name| name.eq_ignore_ascii_case("gpu")),
            lacks: match (value("Type").is_some(), has_file) {
                (true, true) => None,
                (false, _) => Some("Type"),
                (true, false) => Some("File"),
            },
        }
    }

    /// Those of a list that the line is for.
    fn of_nodes(&self, list: &Hostlist) -> Hostlist {
        self.nodes.as_ref().map_or_else(|| list.clone(), |nodes| nodes.intersection(list))
    }
}

/// `slurm/autodetect-conflict`: AutoDetect on elastic nodes, and a record of GPUs that lacks what the
/// written ones have. A second record of named nodes is `spec/extra-conflict`. Source: SchedMD/slurm,
/// src/interfaces/gres.c, 22.05 to 26.05; gres.conf(5).
pub fn autodetect_conflict(fleet: Fleet<'_>, found: &mut Vec<Diagnostic>) {
    let Some(lines) = fleet.slurm.extra.get(FILE) else { return };
    let nodes = |wanted: &dyn Fn(&fleetc_schema::intent::Class) -> bool| {
        let classes = fleet.classes().filter(|class| wanted(class));
        classes.fold(Hostlist::default(), |all, class| all.union(&class.nodes))
    };
    let (intent, slurm) = (fleet.intent, fleet.slurm);
    let elastic = nodes(&|class| is_elastic(intent, class));
    let listed =
        nodes(&|class| !class.node.gpus.is_empty() && !gres_conf::detects(intent, slurm, class));
    let setting = fleet.path().child("gres").child("autodetect");
    for line in lines.iter().filter(|line| !line.trim_start().starts_with('#')) {
        let added = Added::of(fleet, line);
        let finding = |title: String, label: &str| {
            Diagnostic::new(&rules::SLURM_AUTODETECT_CONFLICT, title).at(added.place.clone(), label)
        };
        let detects = added.autodetect.as_ref().filter(|v| !v.eq_ignore_ascii_case("off"));
        let gone = added.of_nodes(&elastic);
        if detects.is_some() && !gone.is_empty() {
            let note = match Feature::AutoDetectSkipsCloud.is_in(slurm.version) {
                true => {
                    "slurmctld reads gres.conf for nodes in state CLOUD, and skips it over AutoDetect: they have no GPU"
                }
                false => "slurmctld ends: `Cannot use AutoDetect on cloud node`",
            };
            let stays = nodes(&|class| !is_elastic(intent, class));
            found.push(
                finding(
                    format!("elastic nodes `{gone}` cannot detect their GPUs"),
                    "also for them",
                )
                .note(note)
                .help(match stays.is_empty() {
                    true => "remove the line: their devices are listed".to_owned(),
                    false => format!("name the other nodes: `NodeName={stays} AutoDetect=…`"),
                }),
            );
            continue;
        }
        // One that names nodes is a second record of theirs, which is another finding.
        if let (true, Some(key), None) = (added.is_gpu, added.lacks, &added.nodes)
            && !listed.is_empty()
        {
            let title = format!("records of GPUs of `{listed}` are with and without `{key}`");
            found.push(
                finding(title, &format!("without `{key}`"))
                    .at(setting.clone(), "so devices are listed, each with `Type` and `File`")
                    .note("slurmd ends over records of one name that are not alike in this")
                    .help("remove the line: every GPU of the node is listed already"),
            );
        }
    }
}
