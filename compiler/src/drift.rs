//! Many nodes' reports, held against the fleet: which classes are what the spec says, and which are not.
//!
//! Reports are taken one by one and only names of nodes are kept of them, so the cost grows with the
//! reports and the memory with the nodes.

use std::collections::{BTreeMap, BTreeSet};

use fleetc_schema::Hostlist;
use fleetc_schema::intent::{Class, Intent};
use fleetc_schema::name::{ClassName, FleetName};
use indexmap::IndexMap;
use serde::Deserialize;

use crate::output::Manifest;

/// Most names and files that are told one by one; how many there are beside them is told too.
const TOLD: usize = 20;

/// The longest words about one of them.
const LONGEST: usize = 200;

/// The most checks that are told of a class, and the longest name of one: far more than there are.
const MAX_CHECKS: usize = 256;
const LONGEST_CHECK: usize = 64;

/// What is read of a report; what else it holds, a newer validator may have added.
#[derive(Debug, Clone, Deserialize)]
pub struct Report {
    /// The schema tag.
    pub schema: String,
    /// The node.
    pub node: String,
    /// The fleet that it was judged by.
    pub fleet: String,
    /// The class.
    pub class: String,
    /// SHA-256 of the class's file.
    pub class_sha256: String,
    /// What the validator came to.
    pub verdict: Verdict,
    /// What it found.
    pub findings: Vec<Finding>,
}

/// A verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The node is what its class says.
    Conforms,
    /// It is not.
    DoesNotConform,
    /// It could not be told.
    Undecided,
}

/// A finding.
#[derive(Debug, Clone, Deserialize)]
pub struct Finding {
    /// The check.
    pub check: String,
    /// `blocking`, `warning`, `undecided` or `info`.
    pub severity: String,
}

/// The reports so far.
pub struct Drift<'a> {
    intent: &'a Intent,
    /// SHA-256 of the classes' files.
    digests: BTreeMap<&'a str, &'a str>,
    classes: IndexMap<&'a ClassName, Seen>,
    seen: BTreeSet<String>,
    twice: Told,
    unknown: Told,
    unreadable: Told,
}

/// What the reports of a class say, by the names of its nodes.
#[derive(Debug, Default)]
struct Seen {
    conforming: Vec<String>,
    failing: Vec<String>,
    undecided: Vec<String>,
    old: Vec<String>,
    /// Checks that fail, or could not be decided, with the nodes.
    checks: BTreeMap<String, Vec<String>>,
}

/// Something that is counted, the first of it with its words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Vec<String>,
}

impl Told {
    fn add(&mut self, words: impl FnOnce() -> String) {
        self.count = self.count.saturating_add(1);
        if self.first.len() < TOLD {
            // Words come from files that anyone may have written.
            self.first.push(words().chars().take(LONGEST).collect());
        }
    }
}

/// A class with its nodes, each in one list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassDrift {
    /// The class.
    pub class: ClassName,
    /// All its nodes.
    pub nodes: Hostlist,
    /// Those that conform.
    pub conforming: Hostlist,
    /// Those that do not.
    pub failing: Hostlist,
    /// Those that could not be judged.
    pub undecided: Hostlist,
    /// Those that were judged by another class or by an older version of it.
    pub old: Hostlist,
    /// Those without a report.
    pub missing: Hostlist,
    /// True if nodes may be gone: they are of an elastic pool.
    pub elastic: bool,
    /// Checks with the nodes where they fail or could not be decided.
    pub checks: BTreeMap<String, Hostlist>,
}

/// The fleet against the reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The fleet.
    pub fleet: FleetName,
    /// Its classes, in the order of the spec.
    pub classes: Vec<ClassDrift>,
    /// Nodes with more than one report; the first counts.
    pub twice: Told,
    /// Reports of nodes that the fleet has not.
    pub unknown: Told,
    /// Reports that cannot be read.
    pub unreadable: Told,
}

impl<'a> Drift<'a> {
    /// No report yet. The manifest has the digests of the classes' files.
    pub fn new(intent: &'a Intent, manifest: &'a Manifest) -> Self {
        let digest = |file: &'a crate::output::ManifestFile| {
            let name = file.path.as_str().strip_prefix("fleet/intent/classes/")?;
            Some((name.strip_suffix(".json")?, file.sha256.as_deref()?))
        };
        Self {
            intent,
            digests: manifest.files.iter().filter_map(digest).collect(),
            classes: intent.classes.keys().map(|name| (name, Seen::default())).collect(),
            seen: BTreeSet::new(),
            twice: Told::default(),
            unknown: Told::default(),
            unreadable: Told::default(),
        }
    }

    /// Takes a report.
    pub fn add(&mut self, report: Report) {
        let Report { node, fleet, class, class_sha256, verdict, findings, .. } = report;
        let Some((name, _)) = self.class_of(&node, &class) else {
            self.unknown.add(|| format!("{node} (fleet {fleet}, class {class})"));
            return;
        };
        if !self.seen.insert(node.clone()) {
            self.twice.add(|| node);
            return;
        }
        let is_current = name.as_str() == class
            && self.intent.fleet.name.as_str() == fleet
            && self.digests.get(name.as_str()).is_some_and(|digest| *digest == class_sha256);
        let Some(seen) = self.classes.get_mut(name) else { return };
        if !is_current {
            seen.old.push(node);
            return;
        }
        let (list, severity) = match verdict {
            Verdict::Conforms => (&mut seen.conforming, None),
            Verdict::DoesNotConform => (&mut seen.failing, Some("blocking")),
            Verdict::Undecided => (&mut seen.undecided, Some("undecided")),
        };
        list.push(node.clone());
        let why =
            findings.into_iter().filter(|finding| Some(finding.severity.as_str()) == severity);
        let checks: BTreeSet<String> = why.map(|finding| finding.check).collect();
        for check in checks {
            let is_new = !seen.checks.contains_key(&check);
            if check.len() > LONGEST_CHECK || (is_new && seen.checks.len() >= MAX_CHECKS) {
                continue;
            }
            seen.checks.entry(check).or_default().push(node.clone());
        }
    }

    /// Takes a file that holds no report.
    pub fn unreadable(&mut self, place: &str, why: &str) {
        self.unreadable.add(|| format!("{place}: {why}"));
    }

    /// The class that has a node. The one that the report names is looked at first, so that few look at
    /// all of them.
    fn class_of(&self, node: &str, named: &str) -> Option<(&'a ClassName, &'a Class)> {
        let intent = self.intent;
        let has = |(_, class): &(&'a ClassName, &'a Class)| class.nodes.contains(node);
        let named = named.parse::<ClassName>().ok();
        let named = named.and_then(|name| intent.classes.get_key_value(&name));
        named.filter(has).or_else(|| intent.classes.iter().find(has))
    }

    /// What they come to.
    pub fn summary(self) -> Summary {
        let Self { intent, classes, twice, unknown, unreadable, .. } = self;
        let class = |(name, seen): (&ClassName, Seen)| {
            let class = intent.classes.get(name)?;
            let pool = intent.pools.get(&class.node.pool);
            let Seen { conforming, failing, undecided, old, checks } = seen;
            let mut drift = ClassDrift {
                class: name.clone(),
                nodes: class.nodes.clone(),
                conforming: list(conforming),
                failing: list(failing),
                undecided: list(undecided),
                old: list(old),
                missing: class.nodes.clone(),
                elastic: pool.is_some_and(|pool| pool.elastic.is_some()),
                checks: checks.into_iter().map(|(check, nodes)| (check, list(nodes))).collect(),
            };
            let told = [&drift.conforming, &drift.failing, &drift.undecided, &drift.old];
            let missing =
                told.iter().fold(class.nodes.clone(), |left, nodes| left.difference(nodes));
            drift.missing = missing;
            Some(drift)
        };
        Summary {
            fleet: intent.fleet.name.clone(),
            classes: classes.into_iter().filter_map(class).collect(),
            twice,
            unknown,
            unreadable,
        }
    }
}

/// Names of nodes, each once, as a list. They are nodes of the fleet, so a list of them reads.
fn list(mut names: Vec<String>) -> Hostlist {
    names.sort_unstable();
    let part = |names: &[String]| names.join(",").parse::<Hostlist>().unwrap_or_default();
    names.chunks(PART).fold(Hostlist::default(), |all, names| all.union(&part(names)))
}

/// So many names stay below the limits of a list, however they are scattered.
const PART: usize = 8_192;

impl ClassDrift {
    /// Nodes that should have a report and have none. Elastic ones may be gone.
    pub fn lacks(&self) -> u64 {
        if self.elastic { 0 } else { self.missing.len() }
    }
}

impl Summary {
    /// True if every node that should be there conforms to what the spec says now, and there is no
    /// report beside.
    pub fn holds(&self) -> bool {
        let class = |class: &ClassDrift| {
            let bad = [&class.failing, &class.undecided, &class.old];
            bad.iter().all(|nodes| nodes.is_empty()) && class.lacks() == 0
        };
        let beside = [&self.twice, &self.unknown, &self.unreadable];
        self.classes.iter().all(class) && beside.iter().all(|told| told.count == 0)
    }
}
