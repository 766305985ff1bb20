//! Lines that a site adds, against the lines that are written.
//!
//! What is written is read off the writer: the files of the cluster are made without any added line,
//! so a key that the writer learns is a key that is found here. Source of the form: slurm.conf(5),
//! and the parser of SchedMD/slurm (`src/common/parse_config.c`).

use fleetc_schema::diag::{Diagnostic, Severity, rules};
use fleetc_schema::intent::{Cluster, Intent, Scheduler, Slurm};
use fleetc_schema::{Hostlist, ItemPath};
use indexmap::IndexMap;

use super::{SlurmConf, slurm_conf};
use crate::{OutputTree, Scope, Target};

/// Keys that begin a record: several may stand, each for what its value names. Source: tables of type
/// array in SchedMD/slurm, `src/common/read_config.c` and the topology and gres plugins.
const RECORDS: [&str; 9] = [
    "NodeName",
    "PartitionName",
    "NodeSet",
    "DownNodes",
    "FrontendName",
    "Include",
    "Name",
    "SwitchName",
    "BlockName",
];

/// Other keys that a site may set several times: each adds one. Of the programs, newer releases take
/// several.
const REPEATED: [&str; 5] =
    ["SlurmctldHost", "Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld"];

/// `spec/extra-conflict`: an added line that sets what is written, or what another added line sets; and
/// lines that are no lines.
pub fn conflicts(intent: &Intent, cluster: &Cluster, slurm: &Slurm, found: &mut Vec<Diagnostic>) {
    if slurm.extra.is_empty() {
        return;
    }
    let item = ItemPath::item("cluster", &cluster.name).child("slurm");
    let written = written(intent, cluster, slurm);
    for (file, lines) in &slurm.extra {
        let item = item.keyed("extra", [file]);
        // Of a file that holds nothing but the site's lines there is nothing to say, nor of a script.
        let Some(text) = written.get(file).filter(|_| file.ends_with(".conf")) else { continue };
        let gives_way = |own: &Setting| slurm_conf::GIVES_WAY.iter().any(|(word, _)| own.is(word));
        let taken = text.lines().filter_map(Setting::of).filter(|own| !gives_way(own));
        let taken: Vec<Setting> = taken.collect();
        let mut before: Vec<(Setting, &String)> = Vec::new();
        for line in lines.iter().filter(|line| !is_blank(line)) {
            let place = item.keyed("line", [line]);
            let Some(setting) = Setting::of(line) else {
                found.push(
                    Diagnostic::new(
                        &rules::SPEC_WRONG_TYPE,
                        format!("`{line}` is no line of {file}"),
                    )
                    .at(place, "no `Key=Value`")
                    .note("slurmctld exits on a line that it cannot read")
                    .help("write `Key=Value`, such as `MpiDefault=pmix`"),
                );
                continue;
            };
            let again = || before.iter().find(|(other, _)| other.meets(&setting));
            if let Some(own) = taken.iter().find(|own| own.meets(&setting)) {
                found.push(written_twice(file, &setting, own, place));
            } else if let Some((_, first)) = again().filter(|_| setting.stands_once(file)) {
                let title = format!("two lines for {file} set `{}`", setting.subject());
                found.push(
                    Diagnostic::new(&rules::SPEC_EXTRA_CONFLICT, title)
                        .severity(Severity::Warning)
                        .at(place, "set again")
                        .at(item.keyed("line", [first]), "set here")
                        .note("Slurm logs an error and takes the last")
                        .help("keep one of the two"),
                );
            }
            before.push((setting, line));
        }
    }
}

fn written_twice(file: &str, setting: &Setting, own: &Setting, place: ItemPath) -> Diagnostic {
    let title = format!("the added line sets `{}`, which is written in {file}", setting.subject());
    let (note, help) = match setting.key.to_ascii_lowercase().as_str() {
        "nodename" if file == "slurm.conf" => (
            "slurmctld ends with `Duplicated NodeName`",
            "remove the line: nodes are those of the pools",
        ),
        "partitionname" => (
            "two partitions of one name are one that neither owner knows",
            "remove the line, or rename the partition",
        ),
        _ => (
            "Slurm takes the last of the two, so what the spec says would not hold",
            "remove the line: the spec decides this one",
        ),
    };
    Diagnostic::new(&rules::SPEC_EXTRA_CONFLICT, title)
        .at(place, format!("written as `{}={}`", own.key, own.value))
        .note(note)
        .help(help)
}

/// The files of the cluster as they are without added lines, by name.
fn written(intent: &Intent, cluster: &Cluster, slurm: &Slurm) -> IndexMap<String, String> {
    let slurm = Slurm { extra: IndexMap::new(), ..slurm.clone() };
    let scheduler = Scheduler::Slurm(slurm.clone());
    let cluster = Cluster { name: cluster.name.clone(), scheduler };
    let tree: OutputTree = SlurmConf.emit(&Scope::Slurm(intent, &cluster, &slurm));
    let file = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    tree.files().into_iter().map(|(path, text)| (file(path.as_ref()), text.text())).collect()
}

/// A line that says nothing: blank, or a comment.
fn is_blank(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// What a line sets: its first key, that key's value, and of a record for nodes what `Name` it is of.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    key: String,
    value: String,
    name: Option<String>,
}

impl Setting {
    /// Reads `Key=Value …`, with blanks around the `=` and an operator before it if there are any, or
    /// `Include FILE`.
    fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        let in_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        let end = line.find(|c| !in_key(c))?;
        let (key, rest) = line.split_at_checked(end)?;
        let rest = rest.trim_start();
        let include = key.eq_ignore_ascii_case("Include").then_some(rest);
        let value =
            include.or_else(|| rest.trim_start_matches(['+', '-', '*', '/']).strip_prefix('='));
        let value = value.map(str::trim_start).filter(|value| !value.is_empty())?;
        let value = match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => value.split(char::is_whitespace).next().unwrap_or_default(),
        };
        let name = rest.split(char::is_whitespace).find_map(|pair| pair.strip_prefix("Name="));
        (!key.is_empty()).then(|| Self {
            key: key.to_owned(),
            value: value.to_owned(),
            name: name.map(str::to_ascii_lowercase),
        })
    }

    fn is(&self, word: &str) -> bool {
        self.key.eq_ignore_ascii_case(word)
    }

    fn is_record(&self) -> bool {
        RECORDS.iter().any(|word| self.is(word))
    }

    /// True if two such lines of the site are one too many.
    fn stands_once(&self, file: &str) -> bool {
        match self.is_record() {
            true => file == "slurm.conf" && (self.is("NodeName") || self.is("PartitionName")),
            false => !REPEATED.iter().any(|word| self.is(word)),
        }
    }

    /// True if both set one thing: the same key, or for records the same nodes or name. Keys are read
    /// in any case, values as they stand.
    fn meets(&self, other: &Self) -> bool {
        if !self.is(&other.key) || self.name != other.name {
            return false;
        }
        if !self.is_record() {
            return true;
        }
        // Defaults for the records after them may be set again and again.
        if self.value.eq_ignore_ascii_case("DEFAULT") {
            return false;
        }
        let nodes = |setting: &Self| setting.value.parse::<Hostlist>();
        match (nodes(self), nodes(other)) {
            (Ok(one), Ok(two)) if self.is("NodeName") => !one.intersection(&two).is_empty(),
            _ => self.value == other.value,
        }
    }

    /// The key, with the name if it begins a record.
    fn subject(&self) -> String {
        match self.is_record() {
            true => format!("{}={}", self.key, self.value),
            false => self.key.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(line: &str) -> Option<(String, String)> {
        Setting::of(line).map(|setting| (setting.key, setting.value))
    }

    #[test]
    fn a_line_sets_its_first_key() {
        for (line, key, value) in [
            ("MpiDefault=pmix", "MpiDefault", "pmix"),
            (
                "  SlurmctldParameters += idle_on_node_suspend",
                "SlurmctldParameters",
                "idle_on_node_suspend",
            ),
            ("NodeName=login[1-2] CPUs=8", "NodeName", "login[1-2]"),
            ("Comment=\"two words\"", "Comment", "two words"),
            ("Include /etc/slurm/site.conf", "Include", "/etc/slurm/site.conf"),
        ] {
            assert_eq!(setting(line), Some((key.to_owned(), value.to_owned())), "{line}");
        }
        for line in ["MpiDefault", "MpiDefault pmix", "=pmix", "MpiDefault=", "", "Include"] {
            assert_eq!(setting(line), None, "{line}");
        }
    }

    #[test]
    fn keys_meet_in_any_case_and_records_by_what_they_name() {
        let meet = |a: &str, b: &str| Setting::of(a).unwrap().meets(&Setting::of(b).unwrap());
        assert!(meet("GresTypes=gpu", "grestypes=gpu,nic"));
        assert!(!meet("GresTypes=gpu", "MpiDefault=pmix"));
        assert!(meet("NodeName=gpu[01-04]", "nodename=gpu03 CPUs=1"));
        assert!(!meet("NodeName=gpu[01-04]", "NodeName=login1"));
        assert!(meet("PartitionName=gpu", "PartitionName=gpu"));
        assert!(!meet("PartitionName=gpu", "PartitionName=GPU"));
        assert!(!meet("PartitionName=DEFAULT", "PartitionName=DEFAULT"));
        assert!(!meet("Include a.conf", "Include b.conf"));
        assert!(!meet("NodeName=gpu[01-04] Name=gpu Type=h100", "NodeName=gpu01 Name=nic"));
        assert!(meet("SlurmctldHost=ctl1", "SlurmctldHost=ctl2"));
    }
}
