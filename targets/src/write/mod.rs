//! Writers: all text of the output is made here.
//!
//! Text ends with one newline, uses LF and has no trailing blanks. Values are quoted where a reader
//! could take them for something else.

pub mod csv;
pub mod json;
pub mod key_value;
pub mod mig_parted;
pub mod shell;
pub mod template;
pub mod yaml;

/// Comment lines that head a file: the fleet, and what the file is. Never a spec file or line.
pub fn header(lines: &[&str]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        text.push_str("# ");
        text.push_str(line);
        text.push('\n');
        text
    })
}
