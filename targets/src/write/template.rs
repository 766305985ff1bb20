//! Templates of scripts and units: text that stands still, with values in it.
//!
//! A value cannot be more than a value: each is written in the quotes of the language of the file,
//! whatever the template says.

use minijinja::value::Serde;
use minijinja::{Environment, Error, UndefinedBehavior, Value};
use serde::Serialize;

use super::shell::quoted;

/// The language of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// A shell: a value is one word.
    Shell,
    /// systemd.unit(5): `%` begins a specifier.
    Unit,
}

impl Language {
    fn value(self, text: &str) -> String {
        match self {
            Self::Shell => quoted(text),
            Self::Unit => text.replace('%', "%%"),
        }
    }
}

/// What a template gives with these values. Templates are part of the program, and a test renders each:
/// one that is wrong gives a file that says so, and that no shell goes on from.
pub fn render(template: &str, language: Language, values: &impl Serialize) -> String {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_formatter(move |out, _, value| {
        let written = out.write_str(&language.value(&value.to_string()));
        written.map_err(Error::from)
    });
    let text = environment.render_str(template, Value::from(Serde(values)));
    // A template loses the end of its last line.
    text.map_or_else(|_| WRONG.to_owned(), |text| text + "\n")
}

const WRONG: &str = "# fleetc could not write this file: please report it\nexit 70\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Values<'a> {
        name: &'a str,
        all: Vec<&'a str>,
        count: u32,
    }

    const VALUES: Values<'_> = Values { name: "$(reboot); it's", all: Vec::new(), count: 3 };

    #[test]
    fn a_value_is_one_word_of_the_shell() {
        let values = Values { all: vec!["a b", ""], ..VALUES };
        let template = "echo {{ name }}{% for one in all %} {{ one }}{% endfor %} {{ count }}\n";
        assert_eq!(
            render(template, Language::Shell, &values),
            "echo '$(reboot); it'\\''s' 'a b' '' 3\n"
        );
        assert_eq!(render("{{ name }}", Language::Unit, &Values { name: "5%", ..VALUES }), "5%%\n");
    }

    #[test]
    fn a_value_that_is_not_there_is_no_silent_gap() {
        assert_eq!(render("echo {{ nmae }}\n", Language::Shell, &VALUES), WRONG);
        assert_eq!(render("{% if %}", Language::Shell, &VALUES), WRONG);
    }
}
