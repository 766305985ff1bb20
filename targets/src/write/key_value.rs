//! The `Key=Value` lines of slurm.conf and gres.conf.
//!
//! Source: slurm.conf(5): keys and values joined by `=`, blanks between pairs, double quotes around
//! a value with blanks, `#` starts a comment.

use std::fmt::Display;

/// A line of `Key=Value` pairs.
#[derive(Debug, Clone, Default)]
pub struct Line(String);

impl Line {
    /// A line that starts with this pair.
    pub fn new(key: &str, value: impl Display) -> Self {
        Self::default().pair(key, value)
    }

    /// Adds a pair.
    pub fn pair(mut self, key: &str, value: impl Display) -> Self {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        // A double quote or a line break cannot be written in a value: they are left out.
        let value = value.to_string().replace(['"', '\n', '\r'], "");
        let quote = value.is_empty() || value.contains(|c: char| c.is_whitespace() || c == '#');
        self.0.push_str(key);
        self.0.push('=');
        if quote {
            self.0.push('"');
        }
        self.0.push_str(&value);
        if quote {
            self.0.push('"');
        }
        self
    }

    /// Adds a pair if there is a value.
    pub fn maybe(self, key: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.pair(key, value),
            None => self,
        }
    }

    /// The line with its end.
    pub fn end(self) -> String {
        let Self(mut text) = self;
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_blanks_or_hashes_are_quoted() {
        let line =
            Line::new("NodeName", "gpu[01-04]").pair("Reason", "at RMA #3").maybe("X", None::<u8>);
        assert_eq!(line.end(), "NodeName=gpu[01-04] Reason=\"at RMA #3\"\n");
        assert_eq!(Line::new("A", "x\"y\nz").end(), "A=xyz\n");
    }
}
