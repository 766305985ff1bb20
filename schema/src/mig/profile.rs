//! MIG profile names: `1g.10gb`, `1g.10gb+me`, `1c.3g.40gb`, `1g.24gb-me`.
//!
//! Source of the grammar: NVIDIA/go-nvlib `pkg/nvlib/device/mig_profile.go` (2026-08-14). The GB in
//! a name are a label that the driver computes from the GPU's total memory; they size nothing.

use std::fmt;
use std::str::FromStr;

use crate::serde_as_text;

/// The name of a GPU instance profile, or of a compute instance in one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MigProfile {
    /// Compute slices of the compute instance, if it has fewer than its GPU instance.
    pub compute: Option<u8>,
    /// Compute slices of the GPU instance, the `g` of the name.
    pub slices: u8,
    /// The label in GB.
    pub label_gb: u16,
    /// Attributes after the size.
    pub attributes: Attributes,
}

/// What stands after the size of a profile name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attributes {
    /// `+me`, `+me.all`, `+gfx`: what the instance has beside compute and memory.
    With(Vec<String>),
    /// `-me`: what it does without.
    Without(String),
}

/// The text is not a MIG profile name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a MIG profile: write it as `1g.10gb`")]
pub struct MigProfileError(pub String);

const POSITIVE: [&str; 3] = ["me", "me.all", "gfx"];
const NEGATIVE: [&str; 1] = ["me"];

impl MigProfile {
    /// The Kubernetes resource under the mixed strategy: `nvidia.com/mig-1g.10gb.me`.
    ///
    /// Source: NVIDIA/k8s-device-plugin v0.20.0 `internal/rm/rm.go`: `+` becomes `.`, `-` stays.
    pub fn kubernetes_resource(&self) -> String {
        format!("nvidia.com/mig-{}", self.to_string().replace('+', "."))
    }
}

impl fmt::Display for MigProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(compute) = self.compute {
            write!(f, "{compute}c.")?;
        }
        write!(f, "{}g.{}gb", self.slices, self.label_gb)?;
        match &self.attributes {
            Attributes::With(names) if names.is_empty() => Ok(()),
            Attributes::With(names) => write!(f, "+{}", names.join(",")),
            Attributes::Without(name) => write!(f, "-{name}"),
        }
    }
}

impl FromStr for MigProfile {
    type Err = MigProfileError;

    fn from_str(text: &str) -> Result<Self, MigProfileError> {
        parse(text).ok_or_else(|| MigProfileError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<MigProfile> {
    let (size, attributes) = match (text.split_once('+'), text.split_once('-')) {
        (Some((size, names)), None) => {
            let names: Vec<String> = names.split(',').map(str::to_owned).collect();
            let known = names.iter().all(|name| POSITIVE.contains(&name.as_str()));
            (size, known.then_some(Attributes::With(names))?)
        }
        (None, Some((size, name))) => {
            let known = NEGATIVE.contains(&name);
            (size, known.then(|| Attributes::Without(name.to_owned()))?)
        }
        (None, None) => (text, Attributes::With(Vec::new())),
        (Some(_), Some(_)) => return None,
    };
    let parts: Vec<&str> = size.split('.').collect();
    let (compute, slices, label) = match parts.as_slice() {
        [compute, slices, label] => (Some(number(compute, "c")?), slices, label),
        [slices, label] => (None, slices, label),
        _ => return None,
    };
    let slices = number(slices, "g")?;
    let compute = compute.map(u8::try_from).transpose().ok()?;
    let slices = u8::try_from(slices).ok()?;
    if compute.is_some_and(|compute| compute >= slices) {
        return None;
    }
    Some(MigProfile { compute, slices, label_gb: number(label, "gb")?, attributes })
}

/// Reads `<number><suffix>` without leading zeros, above 0.
fn number(text: &str, suffix: &str) -> Option<u16> {
    let digits = text.strip_suffix(suffix)?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    if plain { digits.parse().ok() } else { None }
}

serde_as_text!(MigProfile);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_name_reads_and_prints() {
        for name in [
            "1g.10gb",
            "7g.80gb",
            "1g.10gb+me",
            "1g.24gb+me.all",
            "1g.24gb+gfx",
            "1g.24gb-me",
            "1c.3g.40gb",
            "2c.3g.71gb",
            "1g.5gb+gfx,me",
        ] {
            let profile: MigProfile = name.parse().unwrap();
            assert_eq!(profile.to_string(), name);
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for wrong in [
            "",
            "1g",
            "10gb",
            "1g.10",
            "1g10gb",
            "0g.10gb",
            "01g.10gb",
            "1g.10gb+xx",
            "1g.10gb-gfx",
            "1g.10gb+me-me",
            "3c.3g.40gb",
            "1g.10GB",
            "h100_1g.10gb",
        ] {
            assert!(wrong.parse::<MigProfile>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn resource_names_replace_plus_but_not_minus() {
        let resource = |name: &str| name.parse::<MigProfile>().unwrap().kubernetes_resource();
        assert_eq!(resource("1g.10gb"), "nvidia.com/mig-1g.10gb");
        assert_eq!(resource("1g.24gb+me.all"), "nvidia.com/mig-1g.24gb.me.all");
        assert_eq!(resource("1g.24gb-me"), "nvidia.com/mig-1g.24gb-me");
    }
}
