//! Commands of a POSIX shell.
//!
//! Source: POSIX.1-2017, Shell Command Language, 2.2 Quoting.

/// A command with its words, quoted where the shell would read more than text.
pub fn command(name: &str, words: &[&str]) -> String {
    let mut line = name.to_owned();
    for word in words {
        line.push(' ');
        line.push_str(&quoted(word));
    }
    line.push('\n');
    line
}

/// A word that the shell reads as this text.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_the_shell_would_read_more_than_text() {
        assert_eq!(
            command("set", &["GrpTRES=gres/gpu:1g.10gb=42"]),
            "set GrpTRES=gres/gpu:1g.10gb=42\n"
        );
        assert_eq!(command("echo", &["", "a b", "it's", "$x"]), "echo '' 'a b' 'it'\\''s' '$x'\n");
    }
}
