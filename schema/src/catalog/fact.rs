//! A value with its own source, where it differs from its row's.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// How sure a fact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Sources disagree, or it was inferred or recalled. Never the ground of an error by itself.
    Unsure,
    /// Stated by one good source, derived by a rule that has one, or recalled from a data sheet.
    Likely,
    /// Read from a capture or from the vendor's own table, or two independent sources agree.
    Sure,
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

impl<T> Fact<T> {
    /// What a fleet states about its own hardware: sure, and without a document.
    pub fn stated(value: T) -> Self {
        Self { value: Some(value), source: Some(Vec::new()), confidence: Some(Confidence::Sure) }
    }

    /// Its confidence, in a row of this one.
    pub fn confidence_in(&self, row: Confidence) -> Confidence {
        self.confidence.unwrap_or(row)
    }
}

impl<T> Default for Fact<T> {
    /// Not known.
    fn default() -> Self {
        Self { value: None, source: None, confidence: None }
    }
}

impl<T> From<Option<T>> for Fact<T> {
    /// A value whose source and confidence are the row's.
    fn from(value: Option<T>) -> Self {
        Self { value, source: None, confidence: None }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fact<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FactVisitor(PhantomData))
    }
}

const STATED: &[&str] = &["value", "source", "confidence"];

/// Tells the three forms apart without a copy of the input: a map whose first key is `value` is a
/// fact with its source, any other map is a plain value.
struct FactVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FactVisitor<T> {
    type Value = Fact<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, null, or an object of value, source and confidence")
    }

    fn visit_unit<E: Error>(self) -> Result<Fact<T>, E> {
        Ok(Fact::default())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Fact<T>, E> {
        plain(value.into_deserializer())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Fact<T>, E> {
        plain(value.into_deserializer())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Fact<T>, E> {
        plain(value.into_deserializer())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Fact<T>, A::Error> {
        plain(SeqAccessDeserializer::new(seq))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fact<T>, A::Error> {
        let first: Option<String> = map.next_key()?;
        if first.as_deref() != Some("value") {
            return plain(MapAccessDeserializer::new(Replayed { first, map }));
        }
        let value = map.next_value()?;
        let (mut source, mut confidence) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "source" => source = Some(map.next_value()?),
                "confidence" => confidence = Some(map.next_value()?),
                other => return Err(Error::unknown_field(other, STATED)),
            }
        }
        if source.is_none() {
            return Err(Error::missing_field("source"));
        }
        if confidence.is_none() {
            return Err(Error::missing_field("confidence"));
        }
        Ok(Fact { value, source, confidence })
    }
}

fn plain<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Fact<T>, D::Error> {
    T::deserialize(from).map(|value| Fact::from(Some(value)))
}

/// A map whose first key has been read already.
struct Replayed<A> {
    first: Option<String>,
    map: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Replayed<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        match self.first.take() {
            Some(key) => seed.deserialize(key.into_deserializer()).map(Some),
            None => self.map.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Range {
        min: u32,
        max: u32,
    }

    fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<Fact<T>, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_fact_is_plain_null_or_with_its_source() {
        assert_eq!(read::<u32>("8").unwrap(), Fact::from(Some(8)));
        assert_eq!(read::<u32>("null").unwrap(), Fact::default());
        assert_eq!(read::<bool>("false").unwrap().value, Some(false));
        assert_eq!(read::<Vec<String>>(r#"["a"]"#).unwrap().value, Some(vec!["a".to_owned()]));
        let range = read::<Range>(r#"{"min": 1, "max": 2}"#).unwrap();
        assert_eq!(range, Fact::from(Some(Range { min: 1, max: 2 })));
        let text = r#"{"value": {"min": 1, "max": 2}, "source": ["x"], "confidence": "unsure"}"#;
        let fact = read::<Range>(text).unwrap();
        assert_eq!(fact.confidence_in(Confidence::Sure), Confidence::Unsure);
        assert_eq!(fact.source, Some(vec!["x".to_owned()]));
        let unknown = r#"{"value": null, "source": ["x"], "confidence": "likely"}"#;
        assert_eq!(read::<Range>(unknown).unwrap().value, None);
    }

    #[test]
    fn unknown_missing_and_mistyped_fields_are_refused() {
        for wrong in [
            r#"{"value": 1, "source": ["x"]}"#,
            r#"{"value": 1, "confidence": "sure"}"#,
            r#"{"value": 1, "source": ["x"], "confidence": "certain"}"#,
            r#"{"value": 1, "source": ["x"], "confidence": "sure", "by": "me"}"#,
            r#"{"value": "1", "source": ["x"], "confidence": "sure"}"#,
            "-1",
            "1.5",
            "{}",
        ] {
            assert!(read::<u32>(wrong).is_err(), "{wrong}");
        }
        assert!(read::<Range>(r#"{"min": 1, "max": 2, "step": 1}"#).is_err());
    }
}
