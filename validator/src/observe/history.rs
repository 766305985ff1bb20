//! What was read on the node before, in a file that goes from run to run, so that what must not grow
//! can be judged.
//!
//! Two states are kept, a day apart. The older one is compared with, so that growth is told for a day
//! at least, however often the node is judged.

use std::fs;
use std::io;
use std::path::Path;

use fleetc_schema::units::Seconds;
use serde::{Deserialize, Serialize};

use super::ObserveError;
use super::snapshot::check;
use crate::input::{self, InputError};
use crate::outlet::replace;
use crate::state::NodeState;

/// The schema tag of a history.
const HISTORY_SCHEMA: &str = "fleetc/history/v1";

/// How far kept states lie apart.
const APART: Seconds = Seconds(24 * 3600);

/// How many states are kept.
const KEPT: usize = 2;

/// What was read on a node before, oldest first. Each state says when it was read.
#[derive(Debug, Default)]
pub(crate) struct History {
    states: Vec<NodeState>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: String,
    node: String,
    states: Vec<NodeState>,
}

impl History {
    /// Reads the history of a node; there is none before its first run. What claims to come from a
    /// later time than `now`, seconds since 1970, was read while the clock was wrong, and is left out.
    ///
    /// # Errors
    /// The file cannot be read, is no history, or is one of another node.
    pub(crate) fn read(file: &Path, node: &str, now: Option<u64>) -> Result<Self, ObserveError> {
        let bytes = match input::contents(file) {
            Err(error) if error.is_missing() => return Ok(Self::default()),
            bytes => bytes?,
        };
        let Document { schema: _, node: taken_on, mut states } =
            input::document(file, &bytes, HISTORY_SCHEMA)?;
        if taken_on != node {
            let (file, node) = (file.to_owned(), node.to_owned());
            return Err(ObserveError::OtherNode { file, taken_on, node });
        }
        let wrong = match states.len() > KEPT {
            true => Err(format!("it holds more than {KEPT} states")),
            false => states.iter().try_for_each(check),
        };
        wrong.map_err(|problem| InputError::content(file, problem))?;
        states.retain(|state| match (state.host.time.value(), now) {
            (Some(time), Some(now)) => time.0 <= now,
            _ => false,
        });
        Ok(Self { states })
    }

    /// What was read at first of all that is kept.
    pub(crate) fn oldest(&self) -> Option<&NodeState> {
        self.states.first()
    }

    /// Takes a state, if it is of use and the last one is old enough. True if it was taken.
    ///
    /// A node without a readable GPU, or with a probe that did not end, leaves what is kept as it is.
    pub(crate) fn take(&mut self, state: &NodeState) -> bool {
        let Some(now) = state.host.time.value() else { return false };
        let has_gpus = state.gpus.value().is_some_and(|gpus| !gpus.is_empty());
        let last = self.states.last().and_then(|state| state.host.time.value());
        let is_due = last.is_none_or(|last| now.0.saturating_sub(last.0) >= APART.0);
        if !(has_gpus && state.stuck.is_empty() && is_due) {
            return false;
        }
        self.states.push(state.clone());
        let surplus = self.states.len().saturating_sub(KEPT);
        self.states.drain(..surplus);
        true
    }

    /// Writes it, and its folder if that is not there. A reader finds the old one or the new one.
    pub(crate) fn write(&self, file: &Path, node: &str) -> io::Result<()> {
        if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let (schema, node) = (HISTORY_SCHEMA.to_owned(), node.to_owned());
        let document = Document { schema, node, states: self.states.clone() };
        let mut bytes = serde_json::to_vec(&document)?;
        bytes.push(b'\n');
        replace(file, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::state::{ProbeEnd, Reading, StuckProbe, UnixTime};

    fn at(time: u64) -> NodeState {
        let mut state = example::state_of(&example::whole());
        state.host.time = Reading::Value(UnixTime(time));
        state
    }

    fn times(history: &History) -> Vec<u64> {
        history.states.iter().map(|state| state.host.time.value().unwrap().0).collect()
    }

    const HOUR: u64 = 3600;

    #[test]
    fn what_is_compared_with_is_a_day_to_two_days_old() {
        let mut history = History::default();
        let mut oldest = Vec::new();
        // Judged every hour for five days.
        for hour in 0..120 {
            let state = at(1_000_000 + hour * HOUR);
            let before = history.oldest().map(|old| old.host.time.value().unwrap().0);
            oldest.extend(before.map(|before| hour - (before - 1_000_000) / HOUR));
            history.take(&state);
        }
        let settled = oldest.get(48..).unwrap();
        assert_eq!(settled.iter().min(), Some(&25), "growth of the last day is told");
        assert_eq!(settled.iter().max(), Some(&48));
    }

    #[test]
    fn states_of_no_use_are_not_kept() {
        let mut history = History::default();
        let mut stuck = at(5);
        stuck.stuck.push(StuckProbe { gpu: None, call: None, end: ProbeEnd::StillThere, pid: 1 });
        let mut timeless = at(5);
        timeless.host.time = Reading::Unknown("no clock".into());
        let mut without_gpus = at(5);
        without_gpus.gpus = Reading::Value(Vec::new());
        for state in [stuck, timeless, without_gpus] {
            assert!(!history.take(&state));
        }
        assert!(history.take(&at(5)));
        assert!(!history.take(&at(6)), "the last one is young");
        assert_eq!(times(&history), [5]);
    }

    #[test]
    fn it_is_read_back_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/history.json");
        assert_eq!(times(&History::read(&file, "n1", Some(9)).unwrap()), [0; 0], "not there yet");
        let day = 24 * HOUR;
        let mut history = History::default();
        assert!(history.take(&at(day)) && history.take(&at(2 * day)) && history.take(&at(3 * day)));
        history.write(&file, "n1").unwrap();
        let read = |node: &str, now| History::read(&file, node, now);
        assert_eq!(times(&read("n1", Some(3 * day)).unwrap()), [2 * day, 3 * day]);
        assert_eq!(read("n1", Some(3 * day)).unwrap().states, history.states);
        // The clock has gone back.
        assert_eq!(times(&read("n1", Some(2 * day)).unwrap()), [2 * day]);
        assert_eq!(times(&read("n1", None).unwrap()), [0; 0], "nobody knows when");
        let of_other = read("n2", Some(0)).unwrap_err().to_string();
        assert!(of_other.ends_with("was taken on node `n1`, not on `n2`"), "{of_other}");
    }
}
