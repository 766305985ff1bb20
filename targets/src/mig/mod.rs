//! MIG layouts: the configuration of mig-parted, one entry a class; and where no MIG manager owns them,
//! a script that puts every GPU instance at its place, with the unit that does so at boot.
//!
//! Source: NVIDIA/mig-parted v0.15.0 `api/spec/v1`: the version is required and unknown fields are
//! refused. mig-parted has no field for placements and leaves a GPU alone that no entry names, so
//! every GPU of a class is named; placements are in the Intent, where the script has them from and the
//! validator reads them.

mod script;

use fleetc_schema::diag::Diagnostic;
use fleetc_schema::intent::{Class, Cluster, Intent};
use fleetc_schema::plan::{Change, ChangeKind, Disruption, Effect};

use crate::changed::Sides;
use crate::write::{header, mig_parted};
use crate::{OutputFile, OutputTree, Scope, Target, clusters};

/// mig-parted.
pub struct MigParted;

impl Target for MigParted {
    fn id(&self) -> &'static str {
        "mig"
    }

    fn summary(&self) -> &'static str {
        "configuration of mig-parted, and a script and unit that place GPU instances"
    }

    fn versions(&self) -> String {
        "mig-parted 0.5 to 0.15, nvidia-smi of driver 470 and later".to_owned()
    }

    fn scopes<'a>(&self, intent: &'a Intent) -> Vec<Scope<'a>> {
        clusters(intent).collect()
    }

    fn check(&self, _: &Scope<'_>, _: &mut Vec<Diagnostic>) {}

    fn emit(&self, scope: &Scope<'_>) -> OutputTree {
        let mut tree = OutputTree::default();
        let Some(cluster) = scope.cluster() else { return tree };
        let intent = scope.intent();
        let classes = mig_parted::classes(intent, cluster);
        if !classes.is_empty() {
            let file = file(intent, cluster, &classes);
            tree.add(format!("clusters/{}/mig/mig-parted.yaml", cluster.name), file);
        }
        script::emit(&mut tree, intent, cluster);
        tree
    }

    fn disruption(
        &self,
        change: &Change,
        old: Option<&Scope<'_>>,
        new: Option<&Scope<'_>>,
    ) -> Effect {
        let sides = Sides { old, new };
        match &change.kind {
            ChangeKind::MigLayout(pool) | ChangeKind::Missing(pool) => Effect::on(
                Disruption::Drain,
                sides.differing(pool, |class| {
                    class.gpus.iter().map(|g| g.mig.clone()).collect::<Vec<_>>()
                }),
                "GPU instances are destroyed and created: no process may use them",
            ),
            ChangeKind::SharingMode(pool) => {
                let nodes = sides.differing(pool, |class| {
                    class.gpus.iter().map(|gpu| gpu.mig.is_some()).collect::<Vec<_>>()
                });
                let resets = [old, new].into_iter().flatten().any(|scope| {
                    let classes = scope.intent().classes_of_pool(pool);
                    let mut gpus = classes.filter_map(|class| class.node.gpu.as_ref());
                    gpus.any(|gpu| gpu.mig_mode_needs_reset)
                });
                match resets {
                    true => Effect::on(
                        Disruption::GpuReset,
                        nodes,
                        "MIG mode changes: Ampere takes a reset",
                    ),
                    false => Effect::on(Disruption::Drain, nodes, "MIG mode changes"),
                }
            }
            // The layout of a pool's nodes does not depend on these.
            ChangeKind::FleetName
            | ChangeKind::AsOf
            | ChangeKind::LabelPrefix
            | ChangeKind::Cluster(..)
            | ChangeKind::SchedulerVersion(_)
            | ChangeKind::Controllers(_)
            | ChangeKind::Database(_)
            | ChangeKind::AutoDetect(_)
            | ChangeKind::Driver(_)
            | ChangeKind::Partition(..)
            | ChangeKind::PartitionPools(..)
            | ChangeKind::PartitionSettings(..)
            | ChangeKind::Distribution(_)
            | ChangeKind::GpuOperator(_)
            | ChangeKind::Queue(_)
            | ChangeKind::Topology
            | ChangeKind::SlurmSettings(_)
            | ChangeKind::DraDriver(_)
            | ChangeKind::GitOps(_)
            | ChangeKind::Validator(_)
            | ChangeKind::SharingName(_)
            | ChangeKind::Devices(_)
            | ChangeKind::Taints(_)
            | ChangeKind::PoolDriver(_)
            | ChangeKind::PoolSettings(_)
            | ChangeKind::Tier
            | ChangeKind::TeamSettings(_)
            | ChangeKind::Alerting
            | ChangeKind::Pool(..)
            | ChangeKind::System(_)
            | ChangeKind::Nodes(_)
            | ChangeKind::MigStrategy(_)
            | ChangeKind::Replicas(_)
            | ChangeKind::ExceptionReason(_)
            | ChangeKind::Overrides(_)
            | ChangeKind::MaxUnavailable(_)
            | ChangeKind::Policy
            | ChangeKind::Team(..)
            | ChangeKind::Namespace(_)
            | ChangeKind::Quota(..)
            | ChangeKind::Workload
            | ChangeKind::Exporter => Effect::none(),
        }
    }
}

fn file(intent: &Intent, cluster: &Cluster, classes: &[&Class]) -> OutputFile {
    let head = format!("fleet {}, cluster {}: one entry a class.", intent.fleet.name, cluster.name);
    let text = header(&[&head]) + &mig_parted::config(classes);
    OutputFile::one(mig_parted::items(classes), text)
}
