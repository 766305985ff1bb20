//! What the rules of a cluster are written from.

use std::collections::BTreeMap;

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{
    Class, Cluster, Intent, Monitoring, Pool, Scheduler, Sharing, StandardAlert,
};
use fleetc_schema::mig::MigProfile;
use fleetc_schema::name::TeamName;
use fleetc_schema::units::{Ratio, Seconds};
use indexmap::IndexSet;

use super::metrics::{Exported, Metric};

/// Labels of a series or an alert.
pub type Labels = BTreeMap<&'static str, String>;

/// Labels from pairs.
pub fn labels<const N: usize>(pairs: [(&'static str, &str); N]) -> Labels {
    pairs.into_iter().map(|(key, value)| (key, value.to_owned())).collect()
}

/// Why a cluster has no such alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Absent {
    /// No node has the hardware.
    NoHardware,
    /// What the alert watches is not there on GPUs in MIG mode, and all GPUs are.
    OnMig,
    /// The exporter does not know the metric before this version.
    NotExported {
        /// What it is called later.
        metric: &'static str,
        /// The numbers of the first version that has it.
        since: &'static [u32],
    },
}

/// A cluster with GPUs in a fleet with monitoring.
#[derive(Clone)]
pub struct Site<'a> {
    pub intent: &'a Intent,
    pub cluster: &'a Cluster,
    /// Classes that have GPUs.
    pub classes: Vec<&'a Class>,
    monitoring: &'a Monitoring,
    exported: Exported<'a>,
}

impl<'a> Site<'a> {
    pub fn of(intent: &'a Intent, cluster: &'a Cluster) -> Option<Self> {
        let monitoring = intent.monitoring.as_ref()?;
        let classes: Vec<&Class> =
            intent.classes_of(&cluster.name).filter(|class| !class.node.gpus.is_empty()).collect();
        let exported = Exported::by(&monitoring.exporter.version);
        (!classes.is_empty()).then_some(Self { intent, cluster, classes, monitoring, exported })
    }

    pub fn exported(&self) -> Exported<'a> {
        self.exported
    }

    /// How the exporter calls a metric.
    pub fn name(&self, metric: Metric) -> Result<&'static str, Absent> {
        let row = metric.row();
        let absent = Absent::NotExported { metric: row.name(), since: row.since };
        self.exported.name(metric).ok_or(absent)
    }

    pub fn is_kubernetes(&self) -> bool {
        matches!(self.cluster.scheduler, Scheduler::Kubernetes(_))
    }

    /// How long an alert holds before it fires.
    pub fn after(&self, alert: StandardAlert) -> Seconds {
        let change = self.monitoring.alerts.get(&alert);
        change.and_then(|change| change.after).unwrap_or(alert.kind().after)
    }

    /// The value below which an alert fires.
    pub fn below(&self, alert: StandardAlert) -> Option<Ratio> {
        let standard = alert.kind().below?;
        let change = self.monitoring.alerts.get(&alert);
        Some(change.and_then(|change| change.below).unwrap_or(standard))
    }

    fn pool(&self, class: &Class) -> Option<&'a Pool> {
        self.intent.pools.get(&class.node.pool)
    }

    /// True if nodes of the class come and go.
    pub fn is_elastic(&self, class: &Class) -> bool {
        self.pool(class).is_some_and(|pool| pool.elastic.is_some())
    }

    /// How GPUs of the class are shared.
    pub fn sharing(&self, class: &Class) -> &'static str {
        self.pool(class).map_or("whole", |pool| pool.sharing.mode())
    }

    /// The team that alone uses the nodes of a class, if there is one.
    pub fn team(&self, class: &Class) -> Option<&'a TeamName> {
        let only = match &self.pool(class)?.sharing {
            Sharing::Mps(shared) | Sharing::TimeSlicing(shared) => shared.team.as_ref(),
            Sharing::Whole | Sharing::Mig { .. } => None,
        };
        if only.is_some() {
            return only;
        }
        let here = |team: &&(&'a TeamName, &'a fleetc_schema::intent::Team)| {
            team.1
                .quotas
                .iter()
                .any(|quota| quota.pool == class.node.pool && quota.cluster == self.cluster.name)
        };
        let teams: Vec<_> = self.intent.teams.iter().collect();
        let holders: Vec<&TeamName> = teams.iter().filter(here).map(|(name, _)| *name).collect();
        let roots: IndexSet<&TeamName> = holders.iter().map(|name| self.root(name)).collect();
        match (holders.as_slice(), roots.first()) {
            ([only], _) => Some(*only),
            (_, Some(root)) if roots.len() == 1 => Some(*root),
            _ => None,
        }
    }

    fn root(&self, name: &'a TeamName) -> &'a TeamName {
        let parent = |name: &&'a TeamName| self.intent.teams.get(*name)?.parent.as_ref();
        std::iter::successors(Some(name), parent).last().unwrap_or(name)
    }

    /// NVLinks that each GPU of a class should have up; none if nobody can say, or nobody can see: NVML
    /// reports the links of a GPU in MIG mode as down. Source: NVIDIA/DCGM v4.6.0, DcgmHealthWatch.cpp.
    pub fn nvlinks(class: &Class) -> Option<u8> {
        (!has_mig(class)).then(|| Self::nvlinks_of_board(class)).flatten()
    }

    fn nvlinks_of_board(class: &Class) -> Option<u8> {
        let node = &class.node;
        let stated = node.policy.as_ref().and_then(|(_, policy)| policy.nvlinks);
        // A single GPU has nobody to talk to: clouds cut such machines out of larger boards. Boards of up
        // to four may join GPUs without a switch: where one is gone, its peers lack links.
        let all = node.gpus.len() + node.missing.len();
        let unsure = all < 2 || (all <= 4 && !node.missing.is_empty());
        let built_in = node.gpu.as_ref().filter(|_| !unsure).map(|gpu| gpu.nvlinks);
        stated.or(built_in).filter(|links| *links > 0)
    }

    /// True if an alert can tell of nodes of this class.
    pub fn covers(&self, alert: StandardAlert, class: &Class) -> Result<(), Absent> {
        use StandardAlert as A;
        let policy = class.node.policy.as_ref().map(|(_, policy)| policy);
        let has = |yes: bool| if yes { Ok(()) } else { Err(Absent::NoHardware) };
        match alert {
            A::GpuNodesSilent | A::GpuExporterDown => has(!self.is_elastic(class)),
            A::MigLayoutDrift => has(class.node.gpu.as_ref().is_some_and(|gpu| gpu.mig_capable)),
            A::GpuEccOff => has(policy.is_some_and(|policy| policy.ecc == Some(true))),
            A::GpuPowerLimitDrift => has(policy.is_some_and(|policy| policy.power_limit.is_some())),
            A::NvlinkDown => match (Self::nvlinks_of_board(class), has_mig(class)) {
                (None, _) => Err(Absent::NoHardware),
                (Some(_), true) => Err(Absent::OnMig),
                (Some(_), false) => Ok(()),
            },
            A::NvlinkRecoveryErrors | A::FabricManagerFailed | A::FabricHealthDegraded => {
                has(Self::nvlinks_of_board(class).is_some())
            }
            // Clients of a shared GPU cannot be told apart: the value is given to one of them.
            A::GpuAllocatedButIdle => has(matches!(self.sharing(class), "whole" | "mig")),
            A::GpusMissing
            | A::GpuXidHardware
            | A::GpuXidFabric
            | A::GpuXidDriver
            | A::GpuXidApplication
            | A::GpuXidConfig
            | A::GpuXidFacility
            | A::GpuXidUnknown
            | A::GpuRecoveryActionRequired
            | A::GpuDoubleBitEcc
            | A::GpuSramThresholdExceeded
            | A::GpuRowRemapFailure
            | A::GpuRowRemapPending
            | A::GpuRowRemapBanksExhausted
            | A::GpuMemoryUnrepairable
            | A::GpuThermalThrottle
            | A::GpuHwSlowdown
            | A::GpuDriverDrift
            | A::PcieLinkDegraded
            | A::GpuProfilingLost => Ok(()),
        }
    }

    /// The first class that an alert can tell of.
    pub fn subject(&self, alert: StandardAlert) -> Result<&'a Class, Absent> {
        let mut worst = Absent::NoHardware;
        for class in &self.classes {
            match self.covers(alert, class) {
                Ok(()) => return Ok(class),
                Err(absent) => worst = worst.max(absent),
            }
        }
        Err(worst)
    }

    /// Labels that every series and alert of a class has.
    pub fn class_labels(&self, class: &Class) -> Labels {
        let mut all =
            labels([("class", class.node.name.as_str()), ("pool", class.node.pool.as_str())]);
        if let Some(team) = self.team(class) {
            all.insert("team", team.to_string());
        }
        all
    }

    /// Profiles of the cluster, in the order of first appearance.
    pub fn profiles(&self) -> IndexSet<MigProfile> {
        self.classes.iter().flat_map(|class| class.node.mig_counts().into_keys()).collect()
    }

    /// Items behind the rules: pools, and what the fleet says about monitoring.
    pub fn items(&self) -> Vec<ItemPath> {
        let mut items: IndexSet<ItemPath> = IndexSet::new();
        items.extend(self.classes.iter().map(|class| ItemPath::item("pool", &class.node.pool)));
        items.insert(ItemPath::default().child("monitoring"));
        items.into_iter().collect()
    }
}

/// True if a GPU of the class is in MIG mode.
pub fn has_mig(class: &Class) -> bool {
    class.node.gpus.iter().any(|gpu| gpu.mig.is_some())
}
