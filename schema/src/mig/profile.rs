//! MIG profile names: `1g.10gb`, `1g.10gb+me`, `1c.3g.40gb`, `1g.24gb-me`.
//!
//! Source of the grammar: NVIDIA/go-nvlib `pkg/nvlib/device/mig_profile.go` (2026-08-14). The GB in
//! a name are a label that the driver computes from the GPU's total memory; they size nothing.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;
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
    /// `+me`, `+me.all`, `+gfx`: what the instance has beside compute and memory. Often empty.
    With(BTreeSet<Attribute>),
    /// `-me`: an instance without media engines. No other attribute can be taken away.
    WithoutMe,
}

/// An attribute of a profile name, in the order in which a name lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// `gfx`: graphics, such as vGPU needs.
    Gfx,
    /// `me`: media extensions, the media engines that plain profiles of this size lack.
    Me,
    /// `me.all`: every media engine of the GPU.
    MeAll,
}

/// The text is not a MIG profile name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a MIG profile: write it as `1g.10gb`")]
pub struct MigProfileError(pub String);

impl Attribute {
    /// Every attribute.
    pub const ALL: [Self; 3] = [Self::Gfx, Self::Me, Self::MeAll];

    /// As a name has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gfx => "gfx",
            Self::Me => "me",
            Self::MeAll => "me.all",
        }
    }
}

impl MigProfile {
    /// The Kubernetes resource under the mixed strategy: `nvidia.com/mig-1g.10gb.me`.
    ///
    /// Source: NVIDIA/k8s-device-plugin v0.20.0 `internal/rm/rm.go`: `+` becomes `.`, `-` stays.
    pub fn kubernetes_resource(&self) -> String {
        format!("nvidia.com/mig-{}", self.to_string().replace('+', "."))
    }

    /// True for a compute instance that is smaller than its GPU instance: `1c.3g.40gb`.
    pub fn is_compute_instance(&self) -> bool {
        self.compute.is_some()
    }

    /// The GPU instance that it is, or that a compute instance of this name stands in: `3g.40gb`
    /// for `1c.3g.40gb`.
    pub fn gpu_instance(&self) -> Self {
        Self { compute: None, ..self.clone() }
    }

    /// The order in which lists name profiles: most memory first, then most compute, then plain,
    /// `+gfx`, `+me`, `+me.all`, `-me`; compute instances after their GPU instance, largest first.
    pub fn canonical_cmp(&self, other: &Self) -> Ordering {
        let key = |name: &Self| (Reverse(name.label_gb), Reverse(name.slices));
        let compute = |name: &Self| (name.compute.is_some(), Reverse(name.compute));
        key(self)
            .cmp(&key(other))
            .then_with(|| self.attributes.cmp(&other.attributes))
            .then_with(|| compute(self).cmp(&compute(other)))
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::With(names) => names.iter().enumerate().try_for_each(|(index, name)| {
                write!(f, "{}{}", if index == 0 { "+" } else { "," }, name.as_str())
            }),
            Self::WithoutMe => f.write_str("-me"),
        }
    }
}

impl fmt::Display for MigProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(compute) = self.compute {
            write!(f, "{compute}c.")?;
        }
        write!(f, "{}g.{}gb{}", self.slices, self.label_gb, self.attributes)
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
        (Some((size, names)), None) => (size, Attributes::With(attributes(names)?)),
        (None, Some((size, "me"))) => (size, Attributes::WithoutMe),
        (None, None) => (text, Attributes::With(BTreeSet::new())),
        _ => return None,
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

/// Any order, each attribute once.
fn attributes(names: &str) -> Option<BTreeSet<Attribute>> {
    let mut all = BTreeSet::new();
    for name in names.split(',') {
        let attribute = Attribute::ALL.into_iter().find(|known| known.as_str() == name)?;
        if !all.insert(attribute) {
            return None;
        }
    }
    Some(all)
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

    fn name(text: &str) -> MigProfile {
        text.parse().unwrap()
    }

    #[test]
    fn every_form_of_a_name_reads_and_prints() {
        for text in [
            "1g.10gb",
            "7g.80gb",
            "1g.10gb+me",
            "1g.24gb+me.all",
            "1g.24gb+gfx",
            "1g.24gb-me",
            "1c.3g.40gb",
            "2c.3g.71gb",
            "1c.2g.12gb+me",
            "1c.2g.48gb-me",
            "1g.5gb+gfx,me",
        ] {
            assert_eq!(name(text).to_string(), text);
        }
        assert_eq!(name("1g.5gb+me,gfx"), name("1g.5gb+gfx,me"));
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
            "1g.0gb",
            "1g.gb",
            "1g.10gb+",
            "1g.10gb+xx",
            "1g.10gb+me,",
            "1g.10gb+me,me",
            "1g.10gb+me+gfx",
            "1g.10gb-",
            "1g.10gb-gfx",
            "1g.10gb-me.all",
            "1g.10gb+me-me",
            "1g.10gb-me+me",
            "1g.10gb.me",
            "0c.3g.40gb",
            "3c.3g.40gb",
            "1c.1c.3g.40gb",
            "1g.10GB",
            " 1g.10gb",
            "300g.10gb",
            "1g.70000gb",
            "h100_1g.10gb",
        ] {
            assert!(wrong.parse::<MigProfile>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn resource_names_replace_plus_but_not_minus() {
        let resource = |text: &str| name(text).kubernetes_resource();
        assert_eq!(resource("1g.10gb"), "nvidia.com/mig-1g.10gb");
        assert_eq!(resource("1g.24gb+me.all"), "nvidia.com/mig-1g.24gb.me.all");
        assert_eq!(resource("1g.24gb-me"), "nvidia.com/mig-1g.24gb-me");
    }

    #[test]
    fn a_compute_instance_knows_its_gpu_instance() {
        assert_eq!(name("1c.2g.12gb+me").gpu_instance(), name("2g.12gb+me"));
        assert_eq!(name("3g.40gb").gpu_instance(), name("3g.40gb"));
        assert!(name("2c.3g.40gb").is_compute_instance() && !name("3g.40gb").is_compute_instance());
    }

    #[test]
    fn the_canonical_order_is_largest_first_and_plain_before_attributes() {
        let sorted = [
            "7g.80gb",
            "4g.40gb",
            "3g.40gb",
            "2c.3g.40gb",
            "1c.3g.40gb",
            "2g.20gb",
            "1g.20gb",
            "1g.10gb",
            "1g.10gb+gfx",
            "1g.10gb+me",
            "1g.10gb+me.all",
            "1g.10gb-me",
        ];
        let mut names = sorted.map(name);
        names.reverse();
        names.sort_by(MigProfile::canonical_cmp);
        assert_eq!(names.map(|name| name.to_string()), sorted);
    }
}
