//! Diagnostics: what is wrong, where, why, and how to mend it. Data; renderers are elsewhere.
//!
//! A place is either a span of a spec file, or the path of an item, which the compiler turns into
//! the span of its nearest written ancestor. So a rule about the Intent needs no spans.

mod registry;

pub use registry::{Phase, Rule, Severity, rules};

use crate::ItemPath;

/// A part of a spec file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Number of the file, in the order of reading.
    pub file: u32,
    /// First byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

/// Where something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a file.
    Span(Span),
    /// In an item of the spec.
    Item(ItemPath),
}

impl From<Span> for Place {
    fn from(span: Span) -> Self {
        Self::Span(span)
    }
}

impl From<ItemPath> for Place {
    fn from(path: ItemPath) -> Self {
        Self::Item(path)
    }
}

impl From<&ItemPath> for Place {
    fn from(path: &ItemPath) -> Self {
        Self::Item(path.clone())
    }
}

/// A place with what there is to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub place: Place,
    /// What; may be empty.
    pub text: String,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The rule.
    pub rule: &'static Rule,
    /// How bad it is here.
    pub severity: Severity,
    /// What is wrong, lower-case start, no full stop.
    pub title: String,
    /// Where; the first is the subject, whose edit mends it, the others are related.
    pub labels: Vec<Label>,
    /// Why, or the numbers behind it. May hold several lines.
    pub notes: Vec<String>,
    /// How to mend it.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// A finding of a rule, at the rule's own severity.
    pub fn new(rule: &'static Rule, title: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity,
            title: title.into(),
            labels: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// The same finding at another severity.
    pub fn severity(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// Adds a place. The first one added is the subject.
    pub fn at(mut self, place: impl Into<Place>, text: impl Into<String>) -> Self {
        self.labels.push(Label { place: place.into(), text: text.into() });
        self
    }

    /// Adds a reason.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds a way to mend it.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }
}
