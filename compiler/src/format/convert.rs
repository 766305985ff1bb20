//! A spec in its other form: KDL as YAML, YAML as KDL, by the table of kinds.
//!
//! Both forms hold the same tree, so a conversion is that tree printed the other way. Children of one
//! word are gathered in YAML, where a word is a key. Comments go along as far as there is a place for
//! them: those on lines of their own, and those at the end of a line.

use super::notes::{self, Noted};
use super::{Refused, parse, same, to_kdl, to_yaml};
use crate::language::kinds::Spec;
use crate::load::each_file;
use crate::source::Form;
use crate::syntax::{Node, Scalar, Value};

/// A spec in its other form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// The text.
    pub text: String,
    /// Comments that it does not hold, and parts that `/-` took out.
    pub dropped: usize,
}

/// Converts a spec without errors from a form to the other one.
///
/// # Errors
/// It does not parse, or has words that the table of kinds has not.
pub fn convert(from: Form, text: &str) -> Result<Converted, Refused> {
    convert_and_rename(from, text, &|name| name.to_owned())
}

/// Converts a spec that will name its files otherwise.
///
/// # Errors
/// As [`convert`].
pub fn convert_and_rename(
    from: Form,
    text: &str,
    rename: &dyn Fn(&str) -> String,
) -> Result<Converted, Refused> {
    let mut nodes = parse(from, text)?;
    each_file(&mut nodes, &mut |_, value| {
        if let Scalar::String(name) = &mut value.scalar {
            *name = rename(name);
        }
    });
    let noted = match from {
        Form::Kdl => notes::of_kdl(text, &nodes),
        Form::Yaml => notes::of_yaml(text, &nodes),
    };
    // A parser may refuse comments that another takes; the spec goes first.
    [noted, notes::without(text, from, &nodes)]
        .into_iter()
        .map(|(root, dropped)| Converted { text: print(from, &root), dropped })
        .find(|converted| {
            let read = parse(other(from), &converted.text);
            read.is_ok_and(|read| same(&gathered(&nodes), &gathered(&read)))
        })
        .ok_or(Refused::Bug)
}

/// The form that is not this one.
pub fn other(form: Form) -> Form {
    match form {
        Form::Kdl => Form::Yaml,
        Form::Yaml => Form::Kdl,
    }
}

fn print(from: Form, root: &Noted<'_>) -> String {
    match from {
        Form::Kdl => to_yaml::print(root, Spec::kind()),
        Form::Yaml => to_kdl::print(root),
    }
}

/// A number with a fraction or exponent as both forms write it.
pub(super) fn decimal(raw: &str) -> String {
    let text = raw.replace('_', "").to_ascii_lowercase();
    let (mantissa, exponent) = match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, format!("e{exponent}")),
        None => (text.as_str(), String::new()),
    };
    let mantissa = mantissa.strip_prefix('+').unwrap_or(mantissa);
    let zero = if mantissa.ends_with('.') { "0" } else { "" };
    format!("{mantissa}{zero}{exponent}")
}

/// The tree in the order of YAML: children of one word stand together, numbers are in one style.
fn gathered(nodes: &[Node]) -> Vec<Node> {
    let scalar = |value: &Value| Value {
        scalar: match &value.scalar {
            Scalar::Decimal(raw) => Scalar::Decimal(decimal(raw)),
            other => other.clone(),
        },
        span: value.span,
    };
    let one = |node: &Node| Node {
        name: node.name.clone(),
        args: node.args.iter().map(scalar).collect(),
        props: node.props.iter().map(|(word, value)| (word.clone(), scalar(value))).collect(),
        children: gathered(&node.children),
    };
    groups(nodes, |node| &node.name.text).into_iter().flatten().map(one).collect()
}

/// Items by a word of theirs, in the order in which the words first stand.
pub(super) fn groups<T>(items: &[T], word: impl Fn(&T) -> &str) -> Vec<Vec<&T>> {
    let mut groups: indexmap::IndexMap<String, Vec<&T>> = indexmap::IndexMap::new();
    for item in items {
        groups.entry(word(item).to_owned()).or_default().push(item);
    }
    groups.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::format;

    /// Converts there and back; gives both texts.
    fn there(from: Form, text: &str) -> Converted {
        let converted = convert(from, text).unwrap();
        let formatted = format(other(from), &converted.text).unwrap();
        assert_eq!(formatted, converted.text, "the result is in the style of `fmt`");
        convert(other(from), &converted.text).unwrap();
        converted
    }

    #[test]
    fn names_are_keys_and_values_stand_under_is() {
        let kdl = "\
pool \"slices\" {
    cluster \"hpc\"
    exception node=\"gpu02\" { missing 3 5; reason \"a: b\" }
    exception node=\"gpu03\" { missing 3 }
    sharing \"mig\" strategy=\"mixed\" {
        gpus \"0-3\" { slice \"1g.10gb\" count=7 }
    }
}
team \"research\"
pool \"dev\" { sharing \"whole\" }
";
        let yaml = "\
pool:
  slices:
    cluster: hpc
    exception:
      - node: gpu02
        missing: [3, 5]
        reason: \"a: b\"
      - node: gpu03
        missing: [3]
    sharing:
      is: mig
      strategy: mixed
      gpus:
        \"0-3\":
          slice:
            \"1g.10gb\":
              count: 7
  dev:
    sharing: whole
team:
  research: true
";
        assert_eq!(there(Form::Kdl, kdl).text, yaml);
        let back = there(Form::Yaml, yaml).text;
        assert_eq!(back.lines().count(), kdl.lines().count(), "{back}");
        assert!(
            back.starts_with("pool \"slices\" {\n    cluster \"hpc\"\n    exception"),
            "{back}"
        );
    }

    #[test]
    fn comments_go_to_the_nearest_item() {
        let kdl = "\
// head

// the pools
pool \"a\" { // brace
    cluster \"hpc\" // side
    /* own */
    system \"x\"
    // last
}

pool \"b\" /* no place */ { /-nodes \"n\" }
// end
";
        let yaml = "\
# head

# the pools
pool:
  a: # brace
    cluster: hpc # side
    # own
    system: x
    # last

  b: true
# end
";
        let converted = there(Form::Kdl, kdl);
        assert_eq!(converted.text, yaml);
        assert_eq!(converted.dropped, 2);
        let back = there(Form::Yaml, yaml);
        assert_eq!(back.dropped, 0);
        assert!(back.text.starts_with("// head\n\n// the pools\npool \"a\" { // brace\n"));
    }

    #[test]
    fn numbers_and_texts_survive() {
        let numbers = |values: &str| format!("cluster \"c\" {{\n    slurm {values}\n}}\n");
        let kdl = numbers(
            "1_000 { controllers +1.50 1e3 0x10 -0.5 \"1.50\" \"no\" \"x\\ny\\n\" \"\" #false #null }",
        );
        let yaml = there(Form::Kdl, &kdl).text;
        for line in
            ["is: 1000", "- 1.50", "- 16", "- \"1.50\"", "- \"no\"", "- |", "- \"\"", "- null"]
        {
            assert!(yaml.lines().any(|there| there.trim() == line), "{line}:\n{yaml}");
        }
        let back = there(Form::Yaml, &yaml.replace("- 1.50", "- +1.")).text;
        let values =
            "1000 { controllers 1.0 1e3 16 -0.5 \"1.50\" \"no\" \"x\\ny\\n\" \"\" #false #null }";
        assert_eq!(back, numbers(values));
    }
}
