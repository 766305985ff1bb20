//! A spec in one style, and in its other form: `fleetc fmt` and `fleetc convert`.
//!
//! Invariant: what is printed means what was read, or nothing is printed. Every result is parsed
//! again and held against the first reading.

pub mod convert;
mod kdl;
mod notes;
mod reader;
mod strings;
mod to_kdl;
mod to_yaml;
mod tokens;
mod tree;
pub mod whole;
mod yaml;

use fleetc_schema::diag::{Diagnostic, rules};

use crate::language::kinds::Spec;
use crate::source::Form;
use crate::syntax::{self, Node};

/// The longest line that is made out of several.
const WIDTH: usize = 110;

/// Why a text is not formatted or converted.
#[derive(Debug)]
pub enum Refused {
    /// It does not parse; the spans are those of file 0.
    Syntax(Vec<Diagnostic>),
    /// The result would say something else: a bug of ours.
    Bug,
}

/// A text in the style of its form.
///
/// # Errors
/// It does not parse.
pub fn format(form: Form, text: &str) -> Result<String, Refused> {
    let before = parse(form, text)?;
    let printed = match form {
        Form::Kdl => kdl::print(text),
        Form::Yaml => yaml::clean(text)?,
    };
    let after = parse(form, &printed).map_err(|_| Refused::Bug)?;
    let lossless = match form {
        Form::Kdl => kdl::extras(text) == kdl::extras(&printed),
        Form::Yaml => true,
    };
    match lossless && same(&before, &after) {
        true => Ok(printed),
        false => Err(Refused::Bug),
    }
}

/// The tree of a text that has no mistake in its syntax.
fn parse(form: Form, text: &str) -> Result<Vec<Node>, Refused> {
    let mut found = Vec::new();
    let nodes = match form {
        Form::Kdl => syntax::kdl::parse(0, text, &mut found),
        Form::Yaml => syntax::yaml::parse(0, text, Spec::kind(), &mut found),
    };
    found.retain(|found| found.rule == &rules::SPEC_SYNTAX);
    match found.is_empty() {
        true => Ok(nodes),
        false => Err(Refused::Syntax(found)),
    }
}

/// True if two trees say the same in the same order, wherever they stand.
fn same(a: &[Node], b: &[Node]) -> bool {
    let alike = |(a, b): (&Node, &Node)| {
        let props = |node: &Node| -> Vec<(String, syntax::Scalar)> {
            let props = node.props.iter();
            props.map(|(word, value)| (word.text.clone(), value.scalar.clone())).collect()
        };
        let args = a.args.iter().map(|arg| &arg.scalar);
        a.name.text == b.name.text
            && args.eq(b.args.iter().map(|arg| &arg.scalar))
            && props(a) == props(b)
            && same(&a.children, &b.children)
    };
    a.len() == b.len() && a.iter().zip(b).all(alike)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_does_not_parse_is_refused_with_its_findings() {
        for (form, text) in [
            (Form::Kdl, "pool {"),
            (Form::Kdl, "pool (GiB)80"),
            (Form::Yaml, "a: [1"),
            (Form::Yaml, "a: 1\n---\nb: 2\n"),
        ] {
            let refused = format(form, text);
            assert!(matches!(&refused, Err(Refused::Syntax(found)) if !found.is_empty()), "{text}");
        }
    }

    /// Tokens in any order: what parses of them is odder than anything that people write.
    fn soup() -> impl Strategy<Value = String> {
        let token = prop::sample::select(vec![
            "a",
            "\"s\"",
            "1",
            "#true",
            "{",
            "}",
            ";",
            "\n",
            "\n\n\n",
            "\r\n",
            " ",
            "\t",
            "=",
            "(",
            ")",
            "/-",
            "// c \n",
            "/* d */",
            "/* e\n  */",
            "\\\n",
            "\\ // f\n",
        ]);
        prop::collection::vec(token, 0..16).prop_map(|tokens| tokens.concat())
    }

    fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
        prop::sample::select(texts).prop_map(str::to_owned)
    }

    /// Nodes with noise wherever KDL allows some.
    fn nodes() -> impl Strategy<Value = String> {
        let blank =
            || one_of(&[" ", " ", "  ", "\t", " /* d */ ", "\\\n", " \\ // f\n", "/* e\n  */ "]);
        let none = || one_of(&["", "", "", " ", "/*g*/", " \\\n"]);
        let out = || one_of(&["", "", "", "/-", "/- ", "/-\n", "/- // h\n", "/-/*i*/"]);
        let atom = || {
            one_of(&[
                "b-c",
                "\"s\"",
                "#\"r\"#",
                "#\"\\\"#",
                "-2.50",
                "#null",
                "\"\"\"\n x\n  y\n \"\"\"",
                "\"j\\\n  k\"",
            ])
        };
        let property = move || {
            (one_of(&["a", "\"k\""]), none(), none(), atom())
                .prop_map(|(name, before, after, value)| format!("{name}{before}={after}{value}"))
        };
        let entry = move || {
            (blank(), out(), prop_oneof![atom(), property()])
                .prop_map(|(blank, out, entry)| format!("{blank}{out}{entry}"))
        };
        let entries = move || prop::collection::vec(entry(), 0..3).prop_map(|all| all.concat());
        let between = || {
            one_of(&[
                ";",
                "; ",
                "\n",
                "\n",
                "\n\n",
                "\n\n\n",
                " // c \n",
                "\r\n",
                ";\n // l\n",
                " ; /* m */ ",
                "\n/* n */\n",
                "\n /* o */ ",
                "\n\\\n",
                "; /* p\n */ ",
            ])
        };
        let before =
            || one_of(&["", "", " ", "\n", " // q\n", "/* r */", "/* s */\n", "\n\n", "\n// t\n"]);
        let leaf = move || {
            (out(), one_of(&["a", "long-word-of-a-node", "\"u v\""]), entries())
                .prop_map(|(out, name, entries)| format!("{out}{name}{entries}"))
        };
        leaf().prop_recursive(3, 24, 4, move |inner| {
            let list = || {
                (before(), prop::collection::vec((inner.clone(), between()), 0..4)).prop_map(
                    |(before, all)| {
                        all.into_iter().fold(before, |text, (node, end)| text + &node + &end)
                    },
                )
            };
            let children = (out(), list()).prop_map(|(out, list)| format!("{out}{{{list}}}"));
            (leaf(), blank(), children, prop::option::of((none(), list())), none()).prop_map(
                |(node, blank, children, more, end)| {
                    let more = more.map(|(blank, list)| format!("{blank}/-{{{list}}}"));
                    format!("{node}{blank}{children}{}{end}", more.unwrap_or_default())
                },
            )
        })
    }

    proptest! {
        #[test]
        fn whatever_parses_is_printed_once_and_for_all(text in prop_oneof![soup(), nodes()]) {
            match format(Form::Kdl, &text) {
                Ok(once) => {
                    prop_assert_eq!(format(Form::Kdl, &once).unwrap(), once);
                }
                Err(refused) => prop_assert!(matches!(refused, Refused::Syntax(_))),
            }
        }

        #[test]
        fn no_text_is_too_odd(text in any::<String>()) {
            prop_assert!(!matches!(format(Form::Kdl, &text), Err(Refused::Bug)));
            prop_assert!(!matches!(format(Form::Yaml, &text), Err(Refused::Bug)));
            kdl::print(&text);
        }
    }
}
