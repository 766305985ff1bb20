//! The language reference (`docs/language.md`), from the table of kinds.
//!
//! Its words, types and sentences are the table's; its examples are taken from specs where they
//! have one, so that names and numbers belong together.

mod examples;

use super::{Arg, Form, Kind, Occurs, Shape, Type};
use crate::syntax::Node;
use examples::Examples;

/// What stands before the tables: the two forms, by example.
const INTRO: &str = include_str!("intro.md");

/// The page. `specs` are the nodes of specs to take examples from, best first.
pub fn page(root: &'static Kind, specs: &[Node]) -> String {
    let mut sections = Vec::new();
    collect(root, None, &mut sections);
    let page = Page { root, sections, examples: Examples::new(root, specs) };
    let mut text = INTRO.to_owned();
    text.push_str("\n## Values\n\n| | written in KDL |\n| --- | --- |\n");
    for ty in page.texts() {
        text.push_str(&format!("| {} | {} |\n", ty.name, code(ty.example)));
    }
    text.push_str("\n## At the top of a spec\n\n");
    text.push_str(&page.table(root));
    for section in page.sections.iter().skip(1) {
        text.push('\n');
        text.push_str(&page.section(section));
    }
    text
}

/// A kind with the kinds that it stands in.
struct Section {
    kind: &'static Kind,
    parents: Vec<&'static Kind>,
}

/// Every kind once, each before those that only stand inside it.
fn collect(kind: &'static Kind, parent: Option<&'static Kind>, sections: &mut Vec<Section>) {
    if let Some(known) = sections.iter_mut().find(|known| std::ptr::eq(known.kind, kind)) {
        known.parents.extend(parent);
        return;
    }
    sections.push(Section { kind, parents: parent.into_iter().collect() });
    for field in kind.fields {
        if let Form::Kind(child) = field.form {
            collect(child(), Some(kind), sections);
        }
    }
}

struct Page {
    root: &'static Kind,
    sections: Vec<Section>,
    examples: Examples,
}

impl Page {
    /// Types of texts, each once. Words and numbers are spelt out where they stand.
    fn texts(&self) -> Vec<&'static Type> {
        let mut types: Vec<&'static Type> = Vec::new();
        let mut add = |ty: &'static Type| {
            let known = types.iter().any(|known| known.name == ty.name);
            if matches!(ty.shape, Shape::Text(_)) && !known {
                types.push(ty);
            }
        };
        for Section { kind, .. } in &self.sections {
            match kind.arg {
                Arg::Nothing => {}
                Arg::Name(ty) | Arg::NameAndValues(ty) | Arg::Value { ty, .. } => add(ty),
            }
            for field in kind.fields {
                match field.form {
                    Form::Property(ty) | Form::Value(ty) | Form::List(ty) => add(ty),
                    Form::Kind(_) => {}
                }
            }
        }
        types
    }

    /// `pool`, or `sharing in pool`, as a heading says it.
    fn title(&self, section: &Section) -> String {
        let mut parents: Vec<String> = Vec::new();
        for parent in section.parents.iter().filter(|parent| !parent.name.is_empty()) {
            let parent = code(parent.name);
            if !parents.contains(&parent) {
                parents.push(parent);
            }
        }
        match parents.is_empty() {
            true => code(section.kind.name),
            false => format!("{} in {}", code(section.kind.name), and(&parents)),
        }
    }

    fn link(&self, kind: &'static Kind) -> String {
        let section = self.sections.iter().find(|section| std::ptr::eq(section.kind, kind));
        let anchor = section.map(|section| anchor(&self.title(section))).unwrap_or_default();
        format!("[{}](#{anchor})", code(kind.name))
    }

    fn section(&self, section: &Section) -> String {
        let kind = section.kind;
        let top = section.parents.iter().any(|parent| std::ptr::eq(*parent, self.root));
        let level = if top { "##" } else { "###" };
        let mut text = format!("{level} {}\n\n{}\n", self.title(section), kind.doc.trim());
        if let Some(argument) = self.argument(kind) {
            text.push_str(&format!("{argument}\n"));
        }
        let (kdl, yaml) = self.examples.of(kind, self.occurs(kind));
        text.push_str(&format!("\n```kdl\n{kdl}```\n\n```yaml\n{yaml}```\n"));
        if !kind.fields.is_empty() {
            text.push('\n');
            text.push_str(&self.table(kind));
        }
        text
    }

    /// How often the kind stands in what it stands in.
    fn occurs(&self, kind: &'static Kind) -> Occurs {
        let fields = self.sections.iter().flat_map(|section| section.kind.fields);
        let mut here = fields.filter(|field| match field.form {
            Form::Kind(child) => std::ptr::eq(child(), kind),
            Form::Property(_) | Form::Value(_) | Form::List(_) => false,
        });
        here.next().map_or(Occurs::Optional, |field| field.occurs)
    }

    /// What stands after the word.
    fn argument(&self, kind: &'static Kind) -> Option<String> {
        let word = code(kind.name);
        match kind.arg {
            Arg::Nothing => None,
            Arg::Name(ty) | Arg::Value { ty, required: true } => {
                Some(format!("{word} is followed by {}.", self.takes(kind, "", ty)))
            }
            Arg::NameAndValues(ty) => {
                Some(format!("{word} is followed by {}, then values.", self.takes(kind, "", ty)))
            }
            Arg::Value { ty, required: false } => {
                Some(format!("{word} may be followed by {}.", self.takes(kind, "", ty)))
            }
        }
    }

    fn table(&self, kind: &'static Kind) -> String {
        let mut text = "| | takes | how often | | for example |\n".to_owned();
        text.push_str("| --- | --- | --- | --- | --- |\n");
        for field in kind.fields {
            let (takes, example) = match field.form {
                Form::Kind(child) => (format!("see {}", self.link(child())), String::new()),
                Form::Property(ty) | Form::Value(ty) | Form::List(ty) => {
                    (self.takes(kind, field.key, ty), code(&self.examples.field(kind, field, ty)))
                }
            };
            let takes = match field.form {
                Form::List(_) => format!("{takes}; one or more"),
                Form::Property(_) | Form::Value(_) | Form::Kind(_) => takes,
            };
            let often = match field.occurs {
                Occurs::Optional => "at most once",
                Occurs::Required => "once",
                Occurs::Named => "any number, by name",
                Occurs::Listed => "any number",
            };
            let cells = [code(field.key), takes, often.to_owned(), field.doc.to_owned(), example];
            let cells = cells.map(|cell| cell.replace('|', "\\|"));
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        text
    }

    /// The type of a value in words; the words themselves if there are only some.
    fn takes(&self, kind: &'static Kind, key: &str, ty: &Type) -> String {
        match ty.shape {
            Shape::Words(words) => {
                let words: Vec<String> = words.iter().map(|word| code(word)).collect();
                or(&words)
            }
            Shape::Number { min: 0, max: u32::MAX } => ty.name.to_owned(),
            Shape::Number { min, max: u32::MAX } => format!("{}, {min} or more", ty.name),
            Shape::Number { min, max } => format!("{} from {min} to {max}", ty.name),
            Shape::Share | Shape::Bool => ty.name.to_owned(),
            Shape::Text(_) => match self.examples.target(kind, key, ty) {
                Some(target) => format!("the name of a {}", self.link(target)),
                None => ty.name.to_owned(),
            },
        }
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn and(parts: &[String]) -> String {
    joined(parts, "and")
}

fn or(parts: &[String]) -> String {
    joined(parts, "or")
}

fn joined(parts: &[String], word: &str) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

/// The anchor that a Markdown renderer gives a heading.
fn anchor(title: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | ' ' | '_');
    title.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::kinds::Spec;

    #[test]
    fn every_link_leads_to_a_heading_and_no_two_headings_are_alike() {
        let text = page(Spec::kind(), &[]);
        let mut anchors: Vec<String> = text
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(|line| line.trim_start_matches('#'))
            .map(|title| anchor(title.trim_start()))
            .collect();
        let links = text.split("](#").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links {
            assert!(anchors.iter().any(|anchor| anchor == link), "{link}");
        }
        let count = anchors.len();
        anchors.sort();
        anchors.dedup();
        assert_eq!(anchors.len(), count);
    }

    #[test]
    fn names_say_what_they_refer_to() {
        let text = page(Spec::kind(), &[]);
        let has = |line: &str| assert!(text.contains(line), "{line}\n{text}");
        has("| `pools` | the name of a [`pool`](#pool); one or more | once |");
        has("| `extends` | the name of a [`system`](#system) | at most once |");
    }
}
