//! The language: one table of kinds, and the typed items that reading it gives.
//!
//! A kind is declared once, in [`kinds`], by the `kind!` macro. From that come the table row (what
//! the YAML reader, "did you mean" and the language reference use) and the struct with its decoder.

mod decode;
mod in_yaml;
pub mod json_schema;
pub mod kinds;
pub mod reference;
mod values;

pub use decode::{At, Cx, Reference, spec};
pub use in_yaml::in_yaml;
pub use kinds::Positive;
pub use values::{Count, ValueType};

/// A kind of item: a row of the table.
#[derive(Debug)]
pub struct Kind {
    /// Its word.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// What stands right after the word.
    pub arg: Arg,
    /// Its properties and children, in the order of the documentation.
    pub fields: &'static [Field],
    /// For kinds that repeat as a list: the fields that tell two apart; `is` is the argument.
    pub key: &'static [&'static str],
    /// True if its name is its own in the whole fleet, however deep it stands.
    pub unique: bool,
}

/// What stands right after the word of a kind.
#[derive(Debug)]
pub enum Arg {
    /// Nothing.
    Nothing,
    /// A name. In YAML the kind is a map keyed by it.
    Name(&'static Type),
    /// A name, then values. In YAML a map from names to lists.
    NameAndValues(&'static Type),
    /// A value. In YAML a scalar, or the key `is` beside other fields.
    Value {
        /// Its type.
        ty: &'static Type,
        /// True if the kind cannot do without.
        required: bool,
    },
}

/// A property or child of a kind.
#[derive(Debug)]
pub struct Field {
    /// Its word.
    pub key: &'static str,
    /// How it is written.
    pub form: Form,
    /// How often.
    pub occurs: Occurs,
    /// What it says.
    pub doc: &'static str,
}

/// How a field is written.
#[derive(Debug)]
pub enum Form {
    /// `key=value` in KDL.
    Property(&'static Type),
    /// A child with one value.
    Value(&'static Type),
    /// A child with several values.
    List(&'static Type),
    /// A child of a kind of its own.
    Kind(fn() -> &'static Kind),
}

/// How often a field may stand in its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurs {
    /// At most once.
    Optional,
    /// Exactly once.
    Required,
    /// Any number, told apart by name.
    Named,
    /// Any number, told apart by the kind's key. In YAML a list.
    Listed,
}

/// A type of values, for messages.
#[derive(Debug)]
pub struct Type {
    /// With its article: "a hostlist".
    pub name: &'static str,
    /// A value, as written in KDL.
    pub example: &'static str,
    /// What the JSON Schema of the YAML form says about it.
    pub shape: Shape,
}

/// What values of a type look like in YAML, as far as a JSON Schema can say it. It may let through
/// what the compiler refuses, never the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A text; with a regular expression, if every legal one matches it.
    Text(Option<&'static str>),
    /// One of a closed set of words.
    Words(&'static [&'static str]),
    /// A whole number between two bounds, both included.
    Number {
        /// The least.
        min: u32,
        /// The most; `u32::MAX` is no bound.
        max: u32,
    },
    /// A number between 0 and 1, or a text such as `5%`.
    Share,
    /// True or false.
    Bool,
}

impl Kind {
    /// The field of this word.
    pub fn field(&self, key: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.key == key)
    }
}

impl Field {
    /// True if it is a child node in KDL.
    pub fn is_child(&self) -> bool {
        !matches!(self.form, Form::Property(_))
    }
}

/// The longest word that is compared with those known: longer than any of them.
const LONGEST_WORD: usize = 128;

/// The known word nearest to what was written, if one is near enough to be meant. Case and the kind of
/// dash do not count; of a word that is cut short, the only one that begins with it is meant.
pub fn did_you_mean<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if written.len() > LONGEST_WORD {
        return None;
    }
    let plain = |word: &str| word.to_lowercase().replace('_', "-");
    let meant = plain(written);
    let length = meant.chars().count();
    let limit = (length / 3).max(1);
    let known: Vec<&str> = known.into_iter().filter(|word| *word != written).collect();
    let near = known
        .iter()
        // So many letters more or less are so many edits at least.
        .filter(|word| word.len() >= length.saturating_sub(limit))
        .filter(|word| word.chars().count().abs_diff(length) <= limit)
        .map(|word| (strsim::damerau_levenshtein(&meant, &plain(word)), *word))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word);
    let mut longer = known.iter().filter(|word| meant.len() > 2 && plain(word).starts_with(&meant));
    match (near, longer.next(), longer.next()) {
        (Some(near), ..) => Some(near),
        (None, Some(only), None) => Some(only),
        _ => None,
    }
}

/// The words of a list in backticks: at most eight, then how many more.
pub fn listing<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    let shown: Vec<String> = words.iter().take(8).map(|word| format!("`{word}`")).collect();
    match words.len().saturating_sub(8) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_words_are_suggested() {
        let known = ["pool", "team", "sharing", "nodes"];
        assert_eq!(did_you_mean("shairng", known), Some("sharing"));
        assert_eq!(did_you_mean("pol", known), Some("pool"));
        assert_eq!(did_you_mean("colour", known), None);
        assert_eq!(did_you_mean("x", known), None);
        assert_eq!(did_you_mean("DGX_H100", ["dgx-h100", "dgx-h200"]), Some("dgx-h100"));
        assert_eq!(did_you_mean("shar", known), Some("sharing"), "the only one that begins so");
        assert_eq!(did_you_mean("dcgm", ["dcgm-exporter", "other"]), Some("dcgm-exporter"));
        assert_eq!(did_you_mean("gpu", ["gpus-by-slot", "gpu-reset-it"]), None, "which?");
    }

    #[test]
    fn in_one_kind_a_word_stands_once_and_keys_are_fields() {
        fn walk(kind: &'static Kind, seen: &mut Vec<&'static str>) {
            if seen.contains(&kind.name) {
                return;
            }
            seen.push(kind.name);
            for (index, field) in kind.fields.iter().enumerate() {
                assert!(kind.fields[..index].iter().all(|f| f.key != field.key), "{}", field.key);
                assert!(field.key != "is", "`is` is the argument in YAML");
                assert!(!field.doc.is_empty());
                if let Form::Kind(child) = field.form {
                    assert_eq!(child().name, field.key);
                    if field.occurs == Occurs::Named {
                        let named = matches!(child().arg, Arg::Name(_) | Arg::NameAndValues(_));
                        assert!(named, "{}", field.key);
                    }
                    if field.occurs == Occurs::Listed {
                        assert!(!child().key.is_empty(), "{}", field.key);
                    }
                    walk(child(), seen);
                }
            }
            for key in kind.key {
                assert!(*key == "is" || kind.field(key).is_some(), "{key}");
            }
        }
        walk(kinds::Spec::kind(), &mut Vec::new());
    }
}
