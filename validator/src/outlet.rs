//! What a run leaves behind: a report on stdout, metrics in a file, a drained node, an exit code.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::cli::Trouble;
use crate::render::{self, Before};
use crate::report::{Report, Severity};
use crate::slurm::Drain;

/// The longest line where it is read in full.
const LINE: usize = 200;
/// What node-problem-detector takes of a line: `max_output_length` of its plugin configuration.
const NPD_LINE: usize = 80;

/// Where the result goes, and how it looks there.
#[derive(Debug, Args)]
pub(crate) struct Outlet {
    /// How to print the report [default: text, or a line in an exit style of another program].
    #[arg(long, visible_alias = "output", value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Whose exit codes to end with.
    #[arg(long, value_enum, value_name = "STYLE", default_value_t = ExitStyle::Native)]
    exit_style: ExitStyle,
    /// With the exit style prolog: an undecided node fails too.
    #[arg(long)]
    strict: bool,
    /// With the exit style nagios: warnings are a WARNING.
    #[arg(long)]
    warn: bool,
    /// Write metrics to this file too, for node_exporter's textfile collector.
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
    /// For the format k8s-condition: the Node as `kubectl get node NAME -o json` prints it, so that the
    /// time of the last transition is kept.
    #[arg(long, value_name = "FILE")]
    previous: Option<PathBuf>,
    /// Drain the node in Slurm if it does not conform, and give it back once it does.
    #[arg(long, requires = "max_drained")]
    drain_slurm: bool,
    /// Drain no node while so many are drained with our reason.
    #[arg(long, value_name = "N")]
    max_drained: Option<u32>,
    /// The scontrol to call.
    #[arg(long, value_name = "PROGRAM", default_value = "scontrol")]
    scontrol: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people, and for Slurm's drain reason.
    Text,
    /// One line of ASCII, cut to what its reader takes.
    Line,
    /// One document, `fleetc/report/v1`.
    Json,
    /// JUnit XML: a test case a finding.
    Junit,
    /// Metrics in the text format of Prometheus.
    Prometheus,
    /// A strategic merge patch of the node's status, for `kubectl patch --subresource=status`.
    #[value(name = "k8s-condition")]
    K8sCondition,
}

/// Whose exit codes to end with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ExitStyle {
    /// This program's own.
    #[default]
    Native,
    /// node-problem-detector's: 0 OK, 1 a problem, 2 unknown.
    Npd,
    /// Nagios': 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
    Nagios,
    /// A Slurm Prolog's: it fails only if the node does not conform, since a failure drains the node.
    Prolog,
    /// A Slurm HealthCheckProgram's: slurmd logs the line of a run that fails, and acts on nothing.
    SlurmHealth,
}

impl ExitStyle {
    /// The style that a command line asks for, whether the rest of it is right or not.
    pub fn of_args(args: &[OsString]) -> Self {
        let flag = "--exit-style";
        let mut values = args.iter().enumerate().filter_map(|(at, arg)| {
            let arg = arg.to_str()?;
            match arg.strip_prefix(flag)? {
                "" => args.get(at.saturating_add(1))?.to_str(),
                value => value.strip_prefix('='),
            }
        });
        values.next_back().and_then(|value| Self::from_str(value, false).ok()).unwrap_or_default()
    }

    /// This style's exit code for one of our own.
    pub fn code(self, native: u8) -> u8 {
        match self {
            Self::Native => native,
            Self::Npd => native.min(2),
            Self::Nagios => match native {
                0 => 0,
                1 => 2,
                _ => 3,
            },
            Self::Prolog => u8::from(native == 1),
            Self::SlurmHealth => u8::from(native != 0),
        }
    }
}

/// Where to write, and what the clock says.
pub(crate) struct Sinks<'a> {
    pub(crate) out: &'a mut dyn Write,
    pub(crate) err: &'a mut dyn Write,
    /// Seconds since 1970.
    pub(crate) now: Option<u64>,
}

impl Outlet {
    /// Leaves the result of a run everywhere that it belongs, and returns the exit code.
    pub(crate) fn leave(&self, result: &Result<Report, Trouble>, sinks: Sinks<'_>) -> u8 {
        let Sinks { out, err, now } = sinks;
        let mut code = match result {
            Ok(report) => report.verdict.exit_code(),
            Err(trouble) => {
                complain(err, &trouble.message);
                trouble.code
            }
        };
        match self.print(result, now) {
            Ok(text) => code = print(&text, code, out, err),
            Err(trouble) => {
                complain(err, &trouble.message);
                code = trouble.code;
            }
        }
        if let Some(file) = &self.textfile {
            let metrics = render::prometheus(result.as_ref().ok(), now);
            if let Err(error) = replace(file, metrics.as_bytes()) {
                complain(err, &format!("writing {}: {error}", file.display()));
                code = unwritten(code);
            }
        }
        if let (true, Some(max_drained), Ok(report)) = (self.drain_slurm, self.max_drained, result)
        {
            let drain = Drain { scontrol: self.scontrol.clone(), max_drained };
            match drain.apply(report) {
                Ok(None) => {}
                Ok(Some(done)) => complain(err, &done),
                Err(error) => complain(err, &format!("not drained: {error}")),
            }
        }
        let warns = |report: &Report| report.count(Severity::Warning) > 0;
        match self.exit_style {
            ExitStyle::Prolog if self.strict && code == 2 => 1,
            ExitStyle::Nagios if self.warn && code == 0 && result.as_ref().is_ok_and(warns) => 1,
            style => style.code(code),
        }
    }

    /// What goes to stdout. Without a report only what a program reads goes there.
    fn print(&self, result: &Result<Report, Trouble>, now: Option<u64>) -> Result<String, Trouble> {
        let format = self.format.unwrap_or(match self.exit_style {
            ExitStyle::Native => Format::Text,
            _ => Format::Line,
        });
        let bug = |error: serde_json::Error| Trouble::bug(&error);
        Ok(match (format, result) {
            (Format::Text, Ok(report)) => render::text(report),
            (Format::Json, Ok(report)) => render::json(report).map_err(bug)?,
            (Format::Junit, Ok(report)) => render::junit(report),
            (Format::Text | Format::Json | Format::Junit, Err(_)) => String::new(),
            (Format::Line, _) => self.line(result),
            (Format::Prometheus, _) => render::prometheus(result.as_ref().ok(), now),
            (Format::K8sCondition, _) => {
                let before = self.before()?;
                let report = result.as_ref().map_err(|trouble| trouble.message.as_str());
                render::condition(report, before.as_ref(), now).map_err(bug)?
            }
        })
    }

    fn line(&self, result: &Result<Report, Trouble>) -> String {
        let most = match self.exit_style {
            ExitStyle::Npd => NPD_LINE,
            _ => LINE,
        };
        let mut text = match result {
            Ok(report) => render::line(report, most),
            Err(trouble) => render::ascii(&trouble.message, most),
        };
        if self.exit_style == ExitStyle::Nagios {
            let state = match result {
                Ok(report) => match report.verdict.exit_code() {
                    0 if self.warn && report.count(Severity::Warning) > 0 => "WARNING",
                    0 => "OK",
                    1 => "CRITICAL",
                    _ => "UNKNOWN",
                },
                Err(_) => "UNKNOWN",
            };
            // What follows a bar is data, so the text has none.
            text = format!("{state} - {}", text.replace('|', "/"));
            if let Ok(report) = result {
                let count = |severity| report.count(severity);
                text.push_str(&format!(
                    " | blocking={} warning={} undecided={} passed={}",
                    count(Severity::Blocking),
                    count(Severity::Warning),
                    count(Severity::Undecided),
                    report.passed,
                ));
            }
        }
        text.push('\n');
        text
    }

    /// The condition that the node has now; none where nothing says.
    fn before(&self) -> Result<Option<Before>, Trouble> {
        let Some(file) = &self.previous else { return Ok(None) };
        crate::input::contents(file)
            .and_then(|bytes| {
                let json = |error| crate::input::InputError::json(file, None, &error);
                render::before(&bytes).map_err(json)
            })
            .map_err(|error| Trouble::input(&error))
    }
}

/// Writes the output. A reader that has seen enough, such as `head -1`, is no reason to complain;
/// otherwise output that was cut short must not look like success.
pub(crate) fn print(text: &str, code: u8, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => code,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => code,
        Err(error) => {
            complain(err, &format!("writing the report: {error}"));
            unwritten(code)
        }
    }
}

/// The verdict could not be written out, though it is that the node conforms: undecided.
pub(crate) fn unwritten(code: u8) -> u8 {
    if code == 0 { 2 } else { code }
}

pub(crate) fn complain(err: &mut dyn Write, message: &str) {
    // Nothing is left to try if stderr does not take it.
    let _ = writeln!(err, "fleetc-validate: {}", render::printable(message));
}

/// Writes a file so that a reader finds the old one or the new one: another beside it takes its name.
/// The collector reads `*.prom` only, so it does not see the other.
pub(crate) fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = file.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut other = name.to_owned();
    other.push(".new");
    let other = file.with_file_name(other);
    let written = File::create(&other).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&other, file));
    if renamed.is_err() {
        // It may not be there; the first error is the one to tell.
        let _ = fs::remove_file(&other);
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_other_programs() {
        // Own codes, then npd, nagios, prolog, slurm-health.
        let table = [
            (0, [0, 0, 0, 0]),
            (1, [1, 2, 1, 1]),
            (2, [2, 3, 0, 1]),
            (64, [2, 3, 0, 1]),
            (65, [2, 3, 0, 1]),
            (70, [2, 3, 0, 1]),
        ];
        for (native, codes) in table {
            let styles =
                [ExitStyle::Npd, ExitStyle::Nagios, ExitStyle::Prolog, ExitStyle::SlurmHealth];
            assert_eq!(styles.map(|style| style.code(native)), codes, "{native}");
            assert_eq!(ExitStyle::Native.code(native), native);
        }
    }

    #[test]
    fn the_style_is_known_before_the_rest_is_read() {
        let of = |args: &[&str]| {
            ExitStyle::of_args(&args.iter().map(OsString::from).collect::<Vec<_>>())
        };
        assert_eq!(of(&["x", "chekc", "--exit-style", "prolog"]), ExitStyle::Prolog);
        assert_eq!(of(&["x", "--exit-style=slurm-health", "--no-such"]), ExitStyle::SlurmHealth);
        assert_eq!(of(&["x", "--exit-style"]), ExitStyle::Native);
        assert_eq!(of(&["x", "--exit-styles", "npd"]), ExitStyle::Native);
    }
}
