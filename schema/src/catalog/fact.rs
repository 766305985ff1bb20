//! A value with its own source, where it differs from its row's.

use serde::{Deserialize, Deserializer};

/// How sure a fact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Read from a capture or from the vendor's own table.
    Sure,
    /// Stated by one good source, or recalled from a data sheet.
    Likely,
    /// Sources disagree or it was inferred. Never the ground of an error by itself.
    Unsure,
}

/// A field of a catalog row. In JSON a plain value (source and confidence are the row's), `null`
/// (not known), or `{ "value": …, "source": […], "confidence": … }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact<T> {
    /// The value; none if nobody knows it. Never zero for "unknown".
    pub value: Option<T>,
    /// Keys of its sources, if they are not the row's.
    pub source: Option<Vec<String>>,
    /// Its confidence, if it is not the row's.
    pub confidence: Option<Confidence>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fact<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form<T> {
            Stated { value: Option<T>, source: Vec<String>, confidence: Confidence },
            Plain(Option<T>),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Stated { value, source, confidence } => {
                Self { value, source: Some(source), confidence: Some(confidence) }
            }
            Form::Plain(value) => Self { value, source: None, confidence: None },
        })
    }
}
