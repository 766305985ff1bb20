//! Types of values: what each place of the language takes, and what to say when it is something
//! else.

use fleetc_schema::Hostlist;
use fleetc_schema::diag::{Diagnostic, Rule, rules};
use fleetc_schema::intent::GpuIndexes;
use fleetc_schema::mig::MigProfile;
use fleetc_schema::name::{
    ClusterName, FabricName, FileSystem, FleetName, GpuName, MountPoint, NamespaceName,
    PartitionName, PolicyName, PoolName, ReceiverName, SiteName, SystemName, TeamName, TierName,
    WorkloadName,
};
use fleetc_schema::units::{
    Bytes, BytesPerSec, Date, GbitPerSec, GpuHourPrice, Milliseconds, Parameters, Ratio, Seconds,
    UnitError, Watts,
};
use fleetc_schema::version::{Version, VersionReq};

use super::{Reference, Shape, Type, did_you_mean, listing};
use crate::syntax::{Scalar, Value};

/// A finding on the heap: a result should not be as large as a finding.
pub type Finding = Box<Diagnostic>;

/// A type that a value of the spec can have.
pub trait ValueType: Sized {
    /// What it is called in messages.
    const TYPE: Type;

    /// Reads it.
    ///
    /// # Errors
    /// The finding to report.
    fn read(value: &Value) -> Result<Self, Finding>;
}

/// The text of a value that must be a string.
fn text<'a>(value: &'a Value, ty: &Type) -> Result<&'a str, Finding> {
    let raw = match &value.scalar {
        Scalar::String(text) => return Ok(text),
        Scalar::Integer(number) => Some(number.to_string()),
        Scalar::Decimal(raw) => Some(raw.clone()),
        Scalar::Bool(_) | Scalar::Null | Scalar::Collection(_) => None,
    };
    let finding = wrong_type(value, ty);
    if matches!(value.scalar, Scalar::Collection(_)) && ty.name == Hostlist::TYPE.name {
        return Err(Box::new(
            finding.help("write one text with commas and ranges: `\"gpu01,gpu[03-08]\"`"),
        ));
    }
    Err(Box::new(match raw {
        Some(raw) => finding
            .note("a bare number loses its form: 1.10 is read as 1.1")
            .help(format!("put it in quotes: `\"{raw}\"`")),
        None => finding.help(format!("write it as `{}`", ty.example)),
    }))
}

fn wrong_type(value: &Value, ty: &Type) -> Diagnostic {
    let title = format!("expected {}, found {}", ty.name, value.scalar.describe());
    let label = format!("{} belongs here", ty.name);
    Diagnostic::new(&rules::SPEC_WRONG_TYPE, title).at(value.span, label)
}

fn refused(rule: &'static Rule, value: &Value, ty: &Type, error: impl ToString) -> Finding {
    let label = format!("not {}", ty.name);
    let finding = Diagnostic::new(rule, error.to_string()).at(value.span, label);
    // Versions are often written with a letter before them, conditions without a comparison.
    if let Scalar::String(text) = &value.scalar {
        let plain = text.trim_start_matches(['v', 'V']);
        let number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        if ty.name == Version::TYPE.name && plain != text && plain.parse::<Version>().is_ok() {
            return Box::new(finding.help(format!("write `\"{plain}\"`")));
        }
        if ty.name == VersionReq::TYPE.name && number(text) && text.parse::<Version>().is_ok() {
            return Box::new(finding.help(format!("write `\">={text}\"`, or `\"={text}\"`")));
        }
    }
    Box::new(finding.help(format!("write {} such as `{}`", ty.name, ty.example)))
}

/// An RFC 1123 label.
const LABEL: &str = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$";

macro_rules! pattern {
    () => {
        None
    };
    ($pattern:expr) => {
        Some($pattern)
    };
}

macro_rules! texts {
    ($($ty:ty, $name:literal, $example:literal, $rule:ident $(, $pattern:expr)?;)+) => {$(
        impl ValueType for $ty {
            const TYPE: Type = Type {
                name: $name,
                example: $example,
                shape: Shape::Text(pattern!($($pattern)?)),
            };

            fn read(value: &Value) -> Result<Self, Finding> {
                let text = text(value, &Self::TYPE)?;
                text.parse().map_err(|e| refused(&rules::$rule, value, &Self::TYPE, e))
            }
        }
    )+};
}

texts! {
    FleetName, "a fleet name", "\"northwind\"", NAME_ILLEGAL, LABEL;
    ClusterName, "a cluster name", "\"hpc\"", NAME_ILLEGAL, LABEL;
    PartitionName, "a partition name", "\"gpu\"", NAME_ILLEGAL, "^[A-Za-z0-9_-]{1,63}$";
    SiteName, "a site", "\"fra1\"", NAME_ILLEGAL, LABEL;
    FabricName, "a fabric", "\"compute\"", NAME_ILLEGAL, LABEL;
    TierName, "a tier", "\"production\"", NAME_ILLEGAL, LABEL;
    ReceiverName, "a receiver", "\"dc-ops\"", NAME_ILLEGAL, LABEL;
    PoolName, "a pool name", "\"train\"", NAME_ILLEGAL, LABEL;
    PolicyName, "a policy name", "\"hopper\"", NAME_ILLEGAL, LABEL;
    TeamName, "a team name", "\"research\"", NAME_ILLEGAL, LABEL;
    NamespaceName, "a namespace", "\"research\"", NAME_ILLEGAL, LABEL;
    WorkloadName, "a workload name", "\"pretrain-8b\"", NAME_ILLEGAL, LABEL;
    SystemName, "a system", "\"dgx-h100\"", NAME_ILLEGAL, "^[a-z0-9._/-]{1,63}$";
    MountPoint, "a mount point", "\"/scratch\"", NAME_ILLEGAL, "^/";
    FileSystem, "a type of file system", "\"xfs\"", NAME_ILLEGAL, "^[a-z0-9._-]{1,63}$";
    GpuName, "a GPU product", "\"h100-sxm5-80gb\"", NAME_ILLEGAL, "^[a-z0-9._/-]{1,63}$";
    MigProfile, "a MIG profile", "\"1g.10gb\"", SPEC_WRONG_TYPE,
        r"^([0-9]+c\.)?[0-9]+g\.[0-9]+gb([+-][a-z.,]+)?$";
    Version, "a version", "\"24.11\"", SPEC_WRONG_TYPE, r"^[0-9]+(\.[0-9]+)*$";
    VersionReq, "a condition on a version", "\">=580\"", SPEC_WRONG_TYPE,
        r"^\s*(>=?|<=?|=)\s*[0-9.]+\s*(,\s*(>=?|<=?|=)\s*[0-9.]+\s*)*$";
    Date, "a date", "\"2026-11-30\"", SPEC_WRONG_TYPE, "^[0-9]{4}-[0-9]{2}-[0-9]{2}$";
}

impl ValueType for GpuIndexes {
    const TYPE: Type = Type {
        name: "GPU numbers",
        example: "\"0-3\"",
        shape: Shape::Text(Some("^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$")),
    };

    fn read(value: &Value) -> Result<Self, Finding> {
        let text = text(value, &Self::TYPE)?;
        match text.parse::<Self>() {
            Ok(indexes) if !indexes.is_empty() => Ok(indexes),
            Ok(_) => {
                let error = "no GPU is named";
                Err(refused(&rules::SPEC_WRONG_TYPE, value, &Self::TYPE, error))
            }
            Err(error) => Err(refused(&rules::SPEC_WRONG_TYPE, value, &Self::TYPE, error)),
        }
    }
}

impl ValueType for Reference {
    const TYPE: Type = Type { name: "a name", example: "\"…\"", shape: Shape::Text(None) };

    fn read(value: &Value) -> Result<Self, Finding> {
        text(value, &Self::TYPE).map(|text| Self(text.to_owned()))
    }
}

impl ValueType for String {
    const TYPE: Type = Type { name: "a text", example: "\"…\"", shape: Shape::Text(None) };

    fn read(value: &Value) -> Result<Self, Finding> {
        text(value, &Self::TYPE).map(str::to_owned)
    }
}

impl ValueType for Hostlist {
    const TYPE: Type = Type {
        name: "a hostlist",
        example: "\"gpu[001-032]\"",
        shape: Shape::Text(Some(r"^[A-Za-z0-9._-][A-Za-z0-9._,\[\]-]*$")),
    };

    fn read(value: &Value) -> Result<Self, Finding> {
        let text = text(value, &Self::TYPE)?;
        if text.is_empty() {
            let error = fleetc_schema::hostlist::HostlistProblem::Empty;
            return Err(refused(&rules::NAME_HOSTLIST, value, &Self::TYPE, error));
        }
        text.parse().map_err(|error: fleetc_schema::hostlist::HostlistError| {
            // The place inside the text is known if the text stands there as written.
            let quotes = u32::from(value.span.end - value.span.start == text.len() as u32 + 2);
            let written = value.span.end - value.span.start == text.len() as u32 + 2 * quotes;
            let at = |byte: usize| value.span.start + quotes + byte as u32;
            let span = match written && !error.at.is_empty() {
                true => fleetc_schema::diag::Span {
                    start: at(error.at.start),
                    end: at(error.at.end),
                    ..value.span
                },
                false => value.span,
            };
            let help = match &error.problem {
                fleetc_schema::hostlist::HostlistProblem::MixedPadding { last, range, .. } => {
                    let (first, end) = range.split_once('-').unwrap_or((range, ""));
                    let width = (*last).max(first.len());
                    format!("pad both ends alike: `{first:0>width$}-{end:0>width$}`")
                }
                fleetc_schema::hostlist::HostlistProblem::Twice(_) => {
                    "name each node once".to_owned()
                }
                fleetc_schema::hostlist::HostlistProblem::NotARange(range)
                    if range.contains("..") || range.contains(':') =>
                {
                    let ends: Vec<&str> =
                        range.split(['.', ':']).filter(|end| !end.is_empty()).collect();
                    format!("write a range with a dash: `{}`", ends.join("-"))
                }
                fleetc_schema::hostlist::HostlistProblem::Character('{' | '}') => {
                    "ranges stand in brackets: `gpu[001-032]`".to_owned()
                }
                fleetc_schema::hostlist::HostlistProblem::Character('*' | '?') => {
                    "name the nodes: patterns are not taken, ranges are: `gpu[001-032]`".to_owned()
                }
                fleetc_schema::hostlist::HostlistProblem::Character(' ' | ';') => {
                    "put a comma between two names: `gpu01,gpu02`".to_owned()
                }
                _ => format!("write a hostlist such as `{}`", Self::TYPE.example),
            };
            let title = error.to_string();
            Box::new(Diagnostic::new(&rules::NAME_HOSTLIST, title).at(span, "here").help(help))
        })
    }
}

/// A number and a unit.
const QUANTITY: &str = r"^\s*[0-9]+(\.[0-9]+)?\s*[A-Za-z]";

macro_rules! quantities {
    ($($ty:ty, $name:literal, $example:literal, $units:literal, $hint:expr;)+) => {$(
        impl ValueType for $ty {
            const TYPE: Type =
                Type { name: $name, example: $example, shape: Shape::Text(Some(QUANTITY)) };

            fn read(value: &Value) -> Result<Self, Finding> {
                let number = match &value.scalar {
                    Scalar::Integer(number) => Some(number.to_string()),
                    Scalar::Decimal(raw) => Some(raw.clone()),
                    _ => None,
                };
                let result = match &number {
                    Some(number) => Err(UnitError::NoUnit(number.clone())),
                    None => text(value, &Self::TYPE)?.parse::<Self>(),
                };
                result.map_err(|error| {
                    let rule = match &error {
                        UnitError::OutOfRange(_) => &rules::SPEC_OUT_OF_RANGE,
                        UnitError::NotANumber(_) => &rules::SPEC_WRONG_TYPE,
                        UnitError::NoUnit(_) | UnitError::OtherUnit { .. } => &rules::SPEC_UNIT,
                    };
                    let title = format!("{error}: {} is expected", $name);
                    let finding = Diagnostic::new(rule, title).at(value.span, "here");
                    let written = match &value.scalar {
                        Scalar::String(text) => text.as_str(),
                        _ => number.as_deref().unwrap_or_default(),
                    };
                    Box::new(finding.help(match meant($hint, written) {
                        Some(meant) => format!("write it as `\"{meant}\"`; units are {}", $units),
                        None => format!("write it as `{}`; units are {}", $example, $units),
                    }))
                })
            }
        }
    )+};
}

quantities! {
    Bytes, "an amount of memory", "\"60GiB\"", "KiB, MiB, GiB, TiB (binary) and kB, MB, GB, TB (decimal)",
        &[("gib", "GiB"), ("gi", "GiB"), ("mib", "MiB"), ("mi", "MiB"), ("ti", "TiB"), ("gb", "GB"), ("g", "GB"), ("mb", "MB"), ("m", "MB"), ("tb", "TB"), ("t", "TB"), ("", "GiB")];
    Watts, "a power", "\"700W\"", "W and kW", &[("w", "W"), ("watt", "W"), ("watts", "W"), ("kw", "kW"), ("", "W")];
    Seconds, "a time", "\"4h\"", "s, m, h, d and w",
        &[("sec", "s"), ("secs", "s"), ("second", "s"), ("seconds", "s"), ("min", "m"), ("mins", "m"), ("minute", "m"), ("minutes", "m"), ("hour", "h"), ("hours", "h"), ("hr", "h"), ("hrs", "h"), ("day", "d"), ("days", "d"), ("-00:00:00", "d"), ("week", "w"), ("weeks", "w")];
    Milliseconds, "a latency", "\"300ms\"", "ms, s and m", &[("msec", "ms"), ("milliseconds", "ms"), ("sec", "s"), ("seconds", "s"), ("", "ms")];
    GbitPerSec, "a network rate", "\"400Gb/s\"", "Gb/s and Tb/s", &[("g", "Gb/s"), ("gb", "Gb/s"), ("gbe", "Gb/s"), ("gbps", "Gb/s"), ("gbit/s", "Gb/s"), ("gb/s", "Gb/s"), ("t", "Tb/s"), ("tbps", "Tb/s"), ("tb/s", "Tb/s"), ("", "Gb/s")];
    BytesPerSec, "a data rate", "\"2GB/s\"", "MB/s, GB/s and TB/s",
        &[("mb", "MB/s"), ("gb", "GB/s"), ("g", "GB/s"), ("", "GB/s")];
    Parameters, "a number of parameters", "\"7B\"", "M, B and T", &[("b", "B"), ("m", "M"), ("t", "T"), ("bn", "B"), ("billion", "B"), ("", "B")];
    GpuHourPrice, "a price", "\"2.10 USD/gpu-hour\"", "USD/gpu-hour",
        &[("", " USD/gpu-hour"), ("usd", " USD/gpu-hour"), ("usd/h", " USD/gpu-hour"), ("usd/gpu/h", " USD/gpu-hour")];
}

/// What a quantity with an unknown unit was probably meant to be: units as people write them, in lower
/// case, with ours.
fn meant(units: &[(&str, &str)], written: &str) -> Option<String> {
    let text = written.trim().trim_start_matches('$');
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim().to_lowercase();
    let (_, ours) = units.iter().find(|(theirs, _)| *theirs == unit)?;
    (!number.is_empty()).then(|| format!("{number}{ours}"))
}

impl ValueType for Ratio {
    const TYPE: Type = Type { name: "a share", example: "0.05", shape: Shape::Share };

    fn read(value: &Value) -> Result<Self, Finding> {
        let text = match &value.scalar {
            Scalar::Decimal(raw) | Scalar::String(raw) => raw.clone(),
            Scalar::Integer(number) => number.to_string(),
            Scalar::Bool(_) | Scalar::Null | Scalar::Collection(_) => {
                return Err(Box::new(wrong_type(value, &Self::TYPE).help("write it as `0.05`")));
            }
        };
        text.parse().map_err(|error| {
            let rule = match error {
                UnitError::OutOfRange(_) => &rules::SPEC_OUT_OF_RANGE,
                _ => &rules::SPEC_WRONG_TYPE,
            };
            let title = format!("`{text}` is not a share between 0 and 1");
            let finding = Diagnostic::new(rule, title).at(value.span, "here");
            Box::new(finding.help("write it as `0.05`, or as `\"5%\"`"))
        })
    }
}

impl ValueType for bool {
    const TYPE: Type = Type { name: "true or false", example: "#true", shape: Shape::Bool };

    fn read(value: &Value) -> Result<Self, Finding> {
        match &value.scalar {
            Scalar::Bool(value) => Ok(*value),
            Scalar::String(word) => {
                let meant = match word.to_ascii_lowercase().as_str() {
                    "yes" | "on" | "true" | "1" => Some(true),
                    "no" | "off" | "false" | "0" => Some(false),
                    _ => None,
                };
                let finding = wrong_type(value, &Self::TYPE);
                Err(Box::new(match meant {
                    Some(meant) => finding.help(format!("write `#{meant}`")),
                    None => finding.help("write `#true` or `#false`"),
                }))
            }
            _ => {
                let help = "write `#true` or `#false`";
                Err(Box::new(wrong_type(value, &Self::TYPE).help(help)))
            }
        }
    }
}

/// A whole number between two bounds, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> ValueType for Count<MIN, MAX> {
    const TYPE: Type =
        Type { name: "a whole number", example: "8", shape: Shape::Number { min: MIN, max: MAX } };

    fn read(value: &Value) -> Result<Self, Finding> {
        let number = match &value.scalar {
            Scalar::Integer(number) => *number,
            Scalar::String(text) if text.parse::<u32>().is_ok() => {
                let finding = wrong_type(value, &Self::TYPE);
                return Err(Box::new(finding.help(format!("write it without quotes: `{text}`"))));
            }
            Scalar::Decimal(raw) if !raw.contains('.') => {
                let title = format!("`{raw}` is not a whole number that can be counted with");
                let finding = Diagnostic::new(&rules::SPEC_OUT_OF_RANGE, title);
                let finding = finding.at(value.span, "a whole number belongs here");
                return Err(Box::new(finding.help("write it as `8`")));
            }
            _ => return Err(Box::new(wrong_type(value, &Self::TYPE).help("write it as `8`"))),
        };
        match u32::try_from(number) {
            Ok(number) if (MIN..=MAX).contains(&number) => Ok(Self(number)),
            _ => {
                let range = match MAX {
                    u32::MAX => format!("{MIN} or more"),
                    _ => format!("between {MIN} and {MAX}"),
                };
                let title = format!("`{number}` is out of range: a number {range} is expected");
                let finding = Diagnostic::new(&rules::SPEC_OUT_OF_RANGE, title);
                Err(Box::new(
                    finding
                        .at(value.span, format!("must be {range}"))
                        .help(format!("write a number {range}")),
                ))
            }
        }
    }
}

/// A number of GPUs: whole, as every scheduler counts devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuTotal(pub u32);

impl ValueType for GpuTotal {
    const TYPE: Type = <Count<1, { u32::MAX }> as ValueType>::TYPE;

    fn read(value: &Value) -> Result<Self, Finding> {
        let part = match &value.scalar {
            Scalar::Decimal(raw) => fraction(raw),
            Scalar::String(text) => fraction(text),
            Scalar::Integer(_) | Scalar::Bool(_) | Scalar::Null | Scalar::Collection(_) => None,
        };
        let Some(part) = part else {
            return Count::<1, { u32::MAX }>::read(value).map(|Count(count)| Self(count));
        };
        let title = format!("`{part}` of a GPU cannot be asked for");
        Err(Box::new(
            Diagnostic::new(&rules::WORKLOAD_FRACTIONAL_GPU, title)
                .at(value.span, "GPUs are counted whole")
                .note("the kubelet and slurmd hand out devices; a fraction of KAI or Run:ai shares a GPU without isolation, and fleetc does not write it yet")
                .help("use a pool of parts and ask for one: `sharing \"mig\"` (memory and SMs of its own), `sharing \"mps\"` (one team) or `sharing \"time-slicing\"` (development)"),
        ))
    }
}

/// The text if it is a number that is not whole: `0.5`, `1.5`.
fn fraction(text: &str) -> Option<&str> {
    let (whole, rest) = text.trim().split_once('.')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole) && digits(rest) && rest.bytes().any(|byte| byte != b'0')).then_some(text)
}

/// A closed set of words.
macro_rules! closed_sets {
    ($($ty:ty, $name:literal, $example:literal;)+) => {$(
        impl ValueType for $ty {
            const TYPE: Type =
                Type { name: $name, example: $example, shape: Shape::Words(Self::WORDS) };

            fn read(value: &Value) -> Result<Self, Finding> {
                let word = text(value, &Self::TYPE)?;
                Self::of(word).ok_or_else(|| {
                    let title = format!("`{word}` is not {}", $name);
                    let finding = Diagnostic::new(&rules::SPEC_OUT_OF_RANGE, title)
                        .at(value.span, "not one of its words");
                    let words = Self::WORDS.iter().copied();
                    Box::new(match did_you_mean(word, words.clone()) {
                        Some(near) => finding.help(format!("did you mean `\"{near}\"`?")),
                        None => finding.help(format!("it is one of {}", listing(words))),
                    })
                })
            }
        }
    )+};
}

closed_sets! {
    fleetc_schema::intent::AutoDetect, "an AutoDetect of gres.conf", "\"nvml\"";
    fleetc_schema::intent::DriverOwner, "an owner of the driver", "\"os\"";
    fleetc_schema::intent::Distribution, "a distribution of Kubernetes", "\"upstream\"";
    fleetc_schema::intent::QueueKind, "a queue", "\"none\"";
    fleetc_schema::intent::GitOpsTool, "what applies the output", "\"argocd\"";
    fleetc_schema::intent::Readiness, "when a taint keeps pods away", "\"bootstrap-only\"";
    fleetc_schema::intent::PreemptBy, "what decides on preemption", "\"qos\"";
    fleetc_schema::intent::PreemptMode, "a mode of preemption", "\"requeue\"";
    fleetc_schema::intent::FabricKind, "a kind of fabric", "\"infiniband\"";
    fleetc_schema::catalog::Architecture, "an architecture", "\"blackwell\"";
    fleetc_schema::intent::TaintEffect, "an effect of a taint", "\"NoSchedule\"";
    fleetc_schema::intent::Devices, "who advertises GPUs", "\"device-plugin\"";
    fleetc_schema::intent::CapacityModel, "a purchase model", "\"owned\"";
    fleetc_schema::intent::ElasticPlacement, "a placement of elastic nodes", "\"cluster\"";
    fleetc_schema::intent::TopologyPlugin, "a topology of Slurm", "\"tree\"";
    fleetc_schema::intent::TopologyLevel, "a level of the topology", "\"rack\"";
    fleetc_schema::intent::Dtype, "a number format", "\"fp16\"";
    fleetc_schema::intent::AlertClass, "a class of alerts", "\"hardware\"";
    fleetc_schema::intent::NodeCheck, "a check of the validator", "\"pcie.width\"";
    fleetc_schema::intent::CheckLevel, "how much a check matters", "\"warn\"";
    fleetc_schema::intent::HugePageSize, "a size of huge pages", "\"2MiB\"";
    fleetc_schema::intent::StandardAlert, "a standard alert", "\"GpusMissing\"";
    fleetc_schema::intent::MigStrategy, "a MIG strategy", "\"mixed\"";
    fleetc_schema::intent::WorkloadKind, "a kind of workload", "\"inference\"";
    fleetc_schema::intent::Isolation, "an isolation", "\"shared\"";
    fleetc_schema::intent::ExporterKind, "an exporter", "\"dcgm-exporter\"";
    super::kinds::SharingMode, "a way of sharing", "\"whole\"";
}
