//! Names of items, each with one checked constructor: if the type exists, the string is legal.
//!
//! Names that become Kubernetes object names or label values follow RFC 1123 (a label: lower-case
//! letters, digits, `-`, at most 63 characters). Partition names follow slurm.conf(5).

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use crate::serde_as_text;

/// Why a text is not a legal name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing between the quotes.
    #[error("a name must not be empty")]
    Empty,
    /// Longer than the longest that every consumer takes.
    #[error("`{name}` has {length} characters, at most {limit} are allowed")]
    TooLong {
        /// The name as written.
        name: String,
        /// Its length in characters.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// A character the rule does not allow.
    #[error("`{name}` holds `{character}`: {rule}")]
    Character {
        /// The name as written.
        name: String,
        /// The first character that is not allowed.
        character: char,
        /// The rule in words.
        rule: &'static str,
    },
    /// No path that something can be mounted at.
    #[error(
        "`{name}` is no mount point: write an absolute path without `.`, `..`, `//` and a `/` at its end"
    )]
    MountPoint {
        /// The path as written.
        name: String,
    },
    /// A word with a meaning of its own in a consumer.
    #[error("`{name}` is reserved by {by}")]
    Reserved {
        /// The name as written.
        name: String,
        /// Who reserves it.
        by: &'static str,
    },
}

/// The longest RFC 1123 label.
const LABEL_LIMIT: usize = 63;
/// The longest path of a mount that is taken; Linux has none above 4096 bytes.
const PATH_LIMIT: usize = 255;
const LABEL_RULE: &str =
    "use lower-case letters, digits and `-`, starting and ending with a letter or digit";

/// Checks an RFC 1123 label.
pub(crate) fn check_label(name: &str) -> Result<(), NameError> {
    check_length(name, LABEL_LIMIT)?;
    let refused =
        |character| NameError::Character { name: name.to_owned(), character, rule: LABEL_RULE };
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if let Some(character) = name.chars().find(|c| !allowed(*c)) {
        return Err(refused(character));
    }
    if name.starts_with('-') || name.ends_with('-') {
        return Err(refused('-'));
    }
    Ok(())
}

/// Checks a partition name: letters, digits, `-`, `_`, and none of Slurm's own words.
fn check_partition(name: &str) -> Result<(), NameError> {
    check_length(name, LABEL_LIMIT)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if let Some(character) = name.chars().find(|c| !allowed(*c)) {
        let rule = "use letters, digits, `-` and `_`";
        return Err(NameError::Character { name: name.to_owned(), character, rule });
    }
    if ["DEFAULT", "ALL"].iter().any(|word| name.eq_ignore_ascii_case(word)) {
        return Err(NameError::Reserved { name: name.to_owned(), by: "slurm.conf" });
    }
    Ok(())
}

/// Checks the name of a receiver: a route to `owner` leads to the contact of a team.
fn check_receiver(name: &str) -> Result<(), NameError> {
    check_label(name)?;
    match name {
        "owner" => Err(NameError::Reserved { name: name.to_owned(), by: "`route to=\"owner\"`" }),
        _ => Ok(()),
    }
}

/// Checks a catalog key: `dgx-h100`, `aws/p5.48xlarge`.
fn check_key(name: &str) -> Result<(), NameError> {
    check_length(name, LABEL_LIMIT)?;
    let allowed = |c: char| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | '/' | '_')
    };
    match name.chars().find(|c| !allowed(*c)) {
        Some(character) => Err(NameError::Character {
            name: name.to_owned(),
            character,
            rule: "use lower-case letters, digits, `-`, `.`, `_` and one `/` after a cloud's name",
        }),
        None => Ok(()),
    }
}

/// Checks a class name: RFC 1123 labels joined with dots, short enough for a label value.
fn check_class(name: &str) -> Result<(), NameError> {
    check_length(name, LABEL_LIMIT)?;
    name.split('.').try_for_each(|part| {
        let allowed =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        match part.chars().find(|c| !allowed(*c)) {
            None if part.is_empty() => Err(NameError::Empty),
            None => Ok(()),
            Some(character) => {
                Err(NameError::Character { name: name.to_owned(), character, rule: LABEL_RULE })
            }
        }
    })
}

/// Checks where a file system is mounted: an absolute path as the kernel prints it.
fn check_mount_point(path: &str) -> Result<(), NameError> {
    check_length(path, PATH_LIMIT)?;
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    let is_path =
        path == "/" || path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_plain));
    match is_path && !path.contains(|c: char| c.is_control() || c == '\\') {
        true => Ok(()),
        false => Err(NameError::MountPoint { name: path.to_owned() }),
    }
}

/// Checks the type of a file system: `xfs`, `nfs4`, `fuse.s3fs`.
fn check_file_system(name: &str) -> Result<(), NameError> {
    check_length(name, LABEL_LIMIT)?;
    let allowed =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
    match name.chars().find(|c| !allowed(*c)) {
        None => Ok(()),
        Some(character) => Err(NameError::Character {
            name: name.to_owned(),
            character,
            rule: "write it as the kernel does, such as `xfs`, `nfs4` or `fuse.s3fs`",
        }),
    }
}

fn check_length(name: &str, limit: usize) -> Result<(), NameError> {
    let length = name.chars().count();
    match length {
        0 => Err(NameError::Empty),
        _ if length > limit => Err(NameError::TooLong { name: name.to_owned(), length, limit }),
        _ => Ok(()),
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident, $check:path;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The name, if the text is a legal one.
            ///
            /// # Errors
            /// Says which rule the text breaks.
            pub fn new(text: &str) -> Result<Self, NameError> {
                $check(text)?;
                Ok(Self(text.to_owned()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        serde_as_text!($name);
    )+};
}

names! {
    /// Name of a fleet.
    FleetName, check_label;
    /// Name of a cluster: one scheduler that owns nodes.
    ClusterName, check_label;
    /// Name of a Slurm partition.
    PartitionName, check_partition;
    /// Name of a site.
    SiteName, check_label;
    /// Name of a rack.
    RackName, check_label;
    /// Name of a network fabric.
    FabricName, check_label;
    /// Name of a tier.
    TierName, check_label;
    /// Name of a receiver of alerts.
    ReceiverName, check_receiver;
    /// Name of a pool. Holds no dot, since class names join pool and cluster with one.
    PoolName, check_label;
    /// Name of a node class: the pool's, the cluster's if the pool is split, an exception's effect.
    ClassName, check_class;
    /// Name of a node policy.
    PolicyName, check_label;
    /// Name of a team; its Kubernetes namespace and Slurm account unless the spec says otherwise.
    TeamName, check_label;
    /// Name of a Kubernetes namespace.
    NamespaceName, check_label;
    /// Name of a workload.
    WorkloadName, check_label;
    /// Key of a system, in the catalog or defined by the fleet.
    SystemName, check_key;
    /// Key of a GPU product in the catalog.
    GpuName, check_key;
    /// Where a file system is mounted.
    MountPoint, check_mount_point;
    /// Type of a file system, as `/proc/mounts` has it.
    FileSystem, check_file_system;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_names_are_rfc_1123_labels() {
        assert!(PoolName::new("train-2").is_ok());
        for wrong in ["", "Train", "a.b", "-a", "a-", "a_b", "é", &"x".repeat(64)] {
            assert!(PoolName::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn slurm_reserves_partition_names_in_any_case() {
        assert!(matches!(PartitionName::new("Default"), Err(NameError::Reserved { .. })));
        assert!(PartitionName::new("gpu_long").is_ok());
    }

    #[test]
    fn mount_points_are_as_the_kernel_prints_them() {
        for right in ["/", "/scratch", "/mnt/local scratch", "/a.b/..c"] {
            assert!(MountPoint::new(right).is_ok(), "{right}");
        }
        let long = format!("/{}", "x".repeat(255));
        for wrong in ["", "scratch", "/scratch/", "//", "/a//b", "/a/../b", "/a/.", "/a\nb", &long]
        {
            assert!(MountPoint::new(wrong).is_err(), "{wrong}");
        }
        assert!(FileSystem::new("fuse.s3fs").is_ok());
        for wrong in ["", "XFS", "ext4 xfs"] {
            assert!(FileSystem::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn catalog_keys_may_name_a_cloud() {
        assert!(SystemName::new("aws/p5.48xlarge").is_ok());
        assert!(SystemName::new("DGX H100").is_err());
    }
}
