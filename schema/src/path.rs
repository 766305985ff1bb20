//! Paths of items, down to the value: `pool/chat/sharing/gpus[0-3]/slice[1g.10gb]/count`.
//!
//! What repeats is keyed by its content, never by its position, so inserting an item renames
//! nothing. A key that holds `/`, `[`, `]`, `,` or `"` is quoted.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use crate::serde_as_text;

/// The path of an item or value of the spec.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ItemPath(String);

impl ItemPath {
    /// The path of a named item at the top of the spec: `pool/chat`.
    pub fn item(kind: &str, name: impl fmt::Display) -> Self {
        Self::default().child(kind).named(name)
    }

    /// One step down, to a property or child.
    pub fn child(&self, key: &str) -> Self {
        match self.0.as_str() {
            "" => Self(key.to_owned()),
            parent => Self(format!("{parent}/{key}")),
        }
    }

    /// One step down, to a child that repeats and is told apart by `keys`.
    pub fn keyed<K: fmt::Display>(&self, key: &str, keys: impl IntoIterator<Item = K>) -> Self {
        let keys: Vec<String> = keys.into_iter().map(|k| quoted(&k.to_string())).collect();
        let Self(parent) = self.child(key);
        Self(format!("{parent}[{}]", keys.join(",")))
    }

    fn named(&self, name: impl fmt::Display) -> Self {
        self.child(&quoted(&name.to_string()))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that the last step holds: `chat` of `pool/chat`, `gpu` of `…/partition[gpu]`.
    pub fn last_name(&self) -> &str {
        let text = self.0.as_str();
        let name = match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
            Some((_, key)) => key,
            None => text.split_once('/').map_or(text, |(_, name)| name),
        };
        name.trim_matches('"')
    }

    /// True if this is `outer`, or in it.
    pub fn is_within(&self, outer: &Self) -> bool {
        let rest = self.0.strip_prefix(outer.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '[']))
    }

    /// The item one step up, if there is one. A top-level item (`pool/chat`) has no parent.
    pub fn parent(&self) -> Option<Self> {
        let mut cut = None;
        let (mut quoted, mut steps) = (false, 0);
        for (at, c) in self.0.char_indices() {
            match c {
                '"' => quoted = !quoted,
                '/' if !quoted => {
                    steps += 1;
                    cut = Some(at);
                }
                _ => {}
            }
        }
        match cut {
            Some(at) if steps > 1 => self.0.get(..at).map(|text| Self(text.to_owned())),
            _ => None,
        }
    }
}

/// The longest key that stands in a path as it is: far longer than any name.
const MAX_KEY_BYTES: usize = 256;

/// A key as it stands in a path. Of one that is longer than any name, such as the hostlist of an
/// exception, the start and a checksum stand there: a path is copied for every value below it.
fn quoted(key: &str) -> String {
    if key.len() > MAX_KEY_BYTES {
        let most = MAX_KEY_BYTES - 20;
        let end = (0..=most).rev().find(|end| key.is_char_boundary(*end)).unwrap_or(0);
        return quoted(&format!("{}…{:016x}", key.get(..end).unwrap_or_default(), fnv(key)));
    }
    if key.contains(['/', '[', ']', ',', '"']) {
        format!("\"{}\"", key.replace('"', "'"))
    } else {
        key.to_owned()
    }
}

/// FNV-1a, 64 bits.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl fmt::Display for ItemPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ItemPath {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl Borrow<str> for ItemPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

serde_as_text!(ItemPath);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_down_to_the_value() {
        let path = ItemPath::item("pool", "chat").child("sharing").keyed("gpus", ["0-3"]);
        assert_eq!(path.as_str(), "pool/chat/sharing/gpus[0-3]");
        assert_eq!(
            path.keyed("slice", ["1g.10gb"]).child("count").as_str(),
            "pool/chat/sharing/gpus[0-3]/slice[1g.10gb]/count"
        );
    }

    #[test]
    fn the_last_step_holds_a_name() {
        assert_eq!(ItemPath::item("pool", "chat").last_name(), "chat");
        assert_eq!(ItemPath::item("system", "aws/p5").last_name(), "aws/p5");
        let receiver = ItemPath::default().child("monitoring").keyed("receiver", ["dc-ops"]);
        assert_eq!(receiver.last_name(), "dc-ops");
    }

    #[test]
    fn keys_with_separators_are_quoted() {
        let path = ItemPath::item("system", "aws/p5.48xlarge").child("cpu");
        assert_eq!(path.as_str(), "system/\"aws/p5.48xlarge\"/cpu");
        assert_eq!(path.parent(), Some(ItemPath::item("system", "aws/p5.48xlarge")));
        assert_eq!(path.parent().and_then(|p| p.parent()), None);
    }

    #[test]
    fn a_key_longer_than_any_name_is_cut_and_still_its_own() {
        let path = |last: char| {
            let list = "é".repeat(300) + &last.to_string();
            ItemPath::item("pool", "p").keyed("exception", [list]).child("reason")
        };
        assert!(path('a').as_str().len() < 300 && path('a') != path('b'));
        assert_eq!(path('a').parent().and_then(|p| p.parent()).unwrap().as_str(), "pool/p");
        let kept = "x".repeat(256);
        assert_eq!(ItemPath::item("pool", &kept).last_name(), kept);
    }

    #[test]
    fn parents_end_at_the_item() {
        let path = ItemPath::item("team", "x").keyed("quota", ["slices", "1g.10gb"]).child("limit");
        assert_eq!(path.parent().unwrap().as_str(), "team/x/quota[slices,1g.10gb]");
        assert_eq!(path.parent().unwrap().parent().unwrap().as_str(), "team/x");
    }
}
