//! Versions of what we write for, typed: the difference between two releases is a `match`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::serde_as_text;

/// A dotted version of numbers, such as a driver's `580.105.08`. Ordered number by number; the
/// text stays as written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    text: String,
    parts: Vec<u32>,
}

/// The text is not a dotted version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version: write numbers with dots, such as `580.105.08`")]
pub struct VersionError(pub String);

impl Version {
    /// True if this version is `other` or later.
    pub fn is_since(&self, other: &Self) -> bool {
        compare(&self.parts, &other.parts).is_ge()
    }

    /// True if this version is `major.minor` or later.
    pub fn is_at_least(&self, major: u32, minor: u32) -> bool {
        self.is_since_parts(&[major, minor])
    }

    /// True if this version has these numbers or comes later.
    pub fn is_since_parts(&self, parts: &[u32]) -> bool {
        compare(&self.parts, parts).is_ge()
    }
}

/// Compares number by number; a missing number is 0, so `580` equals `580.0`.
fn compare(a: &[u32], b: &[u32]) -> Ordering {
    let at = |parts: &[u32], index| parts.get(index).copied().unwrap_or(0);
    (0..a.len().max(b.len()))
        .map(|i| at(a, i).cmp(&at(b, i)))
        .find(|o| o.is_ne())
        .unwrap_or(Ordering::Equal)
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let number = |part: &str| match part.bytes().all(|b| b.is_ascii_digit()) {
            true => part.parse().ok(),
            false => None,
        };
        let parts: Option<Vec<u32>> = text.split('.').map(number).collect();
        match parts {
            Some(parts) => Ok(Self { text: text.to_owned(), parts }),
            None => Err(VersionError(text.to_owned())),
        }
    }
}

/// A condition on a version: `>=580`, `<590`, or several joined with commas.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VersionReq(Vec<(Comparison, Version)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Comparison {
    AtLeast,
    Above,
    AtMost,
    Below,
    Equal,
}

impl Comparison {
    const ALL: [(&'static str, Self); 5] = [
        (">=", Self::AtLeast),
        ("<=", Self::AtMost),
        (">", Self::Above),
        ("<", Self::Below),
        ("=", Self::Equal),
    ];
}

impl VersionReq {
    /// True if the version meets every condition.
    pub fn matches(&self, version: &Version) -> bool {
        self.0.iter().all(|(comparison, wanted)| {
            let order = compare(&version.parts, &wanted.parts);
            match comparison {
                Comparison::AtLeast => order.is_ge(),
                Comparison::Above => order.is_gt(),
                Comparison::AtMost => order.is_le(),
                Comparison::Below => order.is_lt(),
                Comparison::Equal => order.is_eq(),
            }
        })
    }
}

impl fmt::Display for VersionReq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (comparison, version)) in self.0.iter().enumerate() {
            let sign = Comparison::ALL.iter().find(|(_, c)| c == comparison).map_or("", |(s, _)| s);
            write!(f, "{}{sign}{version}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// The text is not a condition on a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a condition on a version: write `>=580` or `>=580,<590`")]
pub struct VersionReqError(pub String);

impl FromStr for VersionReq {
    type Err = VersionReqError;

    fn from_str(text: &str) -> Result<Self, VersionReqError> {
        let error = || VersionReqError(text.to_owned());
        text.split(',')
            .map(|part| {
                let part = part.trim();
                let (sign, comparison) = Comparison::ALL
                    .into_iter()
                    .find(|(sign, _)| part.starts_with(sign))
                    .ok_or_else(error)?;
                let version = part.strip_prefix(sign).unwrap_or_default().trim_start();
                Ok((comparison, version.parse().map_err(|_| error())?))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

serde_as_text!(Version, VersionReq);

/// How a version in a spec stands to the releases that we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known<R> {
    /// One that we write for.
    Yes(R),
    /// Later than the latest that we know, read as that one.
    Newer(R),
    /// Earlier than the earliest that we write for.
    TooOld,
    /// Between known releases, but not one of them.
    No,
}

macro_rules! releases {
    ($(#[$doc:meta])* $name:ident, $($variant:ident = ($text:literal, $major:literal, $minor:literal)),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = concat!("Release ", $text, ".")] $variant,)+
        }

        impl $name {
            /// Every release that we write for, oldest first.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// `major.minor` as the project writes it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            fn numbers(self) -> [u32; 2] {
                match self { $(Self::$variant => [$major, $minor],)+ }
            }

            /// Finds the release of a version; a patch number does not matter.
            pub fn of(version: &Version) -> Known<Self> {
                let at = |index| version.parts.get(index).copied().unwrap_or(0);
                let wanted = [at(0), at(1)];
                let ends = (Self::ALL.first(), Self::ALL.last());
                match (Self::ALL.iter().find(|r| r.numbers() == wanted), ends) {
                    (Some(release), _) => Known::Yes(*release),
                    (None, (_, Some(last))) if wanted > last.numbers() => Known::Newer(*last),
                    (None, (Some(first), _)) if wanted < first.numbers() => Known::TooOld,
                    _ => Known::No,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = VersionError;
            fn from_str(text: &str) -> Result<Self, VersionError> {
                let known = Self::ALL.iter().find(|release| release.as_str() == text);
                known.copied().ok_or_else(|| VersionError(text.to_owned()))
            }
        }

        serde_as_text!($name);
    };
}

releases! {
    /// A Slurm release. Source: the release notes of SchedMD/slurm, branches 22.05 to 26.05.
    SlurmRelease,
    V22_05 = ("22.05", 22, 5),
    V23_02 = ("23.02", 23, 2),
    V23_11 = ("23.11", 23, 11),
    V24_05 = ("24.05", 24, 5),
    V24_11 = ("24.11", 24, 11),
    V25_05 = ("25.05", 25, 5),
    V25_11 = ("25.11", 25, 11),
    V26_05 = ("26.05", 26, 5),
}

releases! {
    /// A Kubernetes minor release.
    KubernetesRelease,
    V1_34 = ("1.34", 1, 34),
    V1_35 = ("1.35", 1, 35),
    V1_36 = ("1.36", 1, 36),
    V1_37 = ("1.37", 1, 37),
}

releases! {
    /// A Kueue minor release, from the first that stores `kueue.x-k8s.io/v1beta2`. Source:
    /// kubernetes-sigs/kueue, tags v0.16.0 to v0.19.2.
    KueueRelease,
    V0_16 = ("0.16", 0, 16),
    V0_17 = ("0.17", 0, 17),
    V0_18 = ("0.18", 0, 18),
    V0_19 = ("0.19", 0, 19),
}

releases! {
    /// A release of dcgm-exporter. Source: the tags of NVIDIA/dcgm-exporter, 4.0.0-4.0.1 to 4.5.3-4.8.2,
    /// and the release pages of 4.8.3, 4.8.4 and 4.9.0. Before 4.0 (DCGM 3) fields that the alerts need
    /// have other names or are not there.
    ExporterRelease,
    V4_0 = ("4.0", 4, 0),
    V4_1 = ("4.1", 4, 1),
    V4_2 = ("4.2", 4, 2),
    V4_3 = ("4.3", 4, 3),
    V4_4 = ("4.4", 4, 4),
    V4_5 = ("4.5", 4, 5),
    V4_6 = ("4.6", 4, 6),
    V4_7 = ("4.7", 4, 7),
    V4_8 = ("4.8", 4, 8),
    V4_9 = ("4.9", 4, 9),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn versions_compare_number_by_number() {
        let req: VersionReq = ">=580.105,<590".parse().unwrap();
        assert!(req.matches(&version("580.105.08")));
        assert!(req.matches(&version("580.126")));
        assert!(!req.matches(&version("580.95.05")));
        assert!(!req.matches(&version("590")));
        assert_eq!(req.to_string(), ">=580.105,<590");
        assert!("580".parse::<VersionReq>().is_err());
        assert!("580.x".parse::<Version>().is_err());
        assert!("".parse::<Version>().is_err());
    }

    #[test]
    fn a_patch_number_does_not_change_the_release() {
        assert_eq!(SlurmRelease::of(&version("24.11.5")), Known::Yes(SlurmRelease::V24_11));
        assert_eq!(SlurmRelease::of(&version("27.05")), Known::Newer(SlurmRelease::V26_05));
        assert_eq!(SlurmRelease::of(&version("21.08")), Known::TooOld);
        assert_eq!(SlurmRelease::of(&version("24.08")), Known::No);
        assert_eq!(KubernetesRelease::of(&version("1.36")), Known::Yes(KubernetesRelease::V1_36));
    }
}
