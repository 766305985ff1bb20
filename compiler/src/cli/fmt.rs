//! `fleetc fmt`.

use std::io::{self, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};

use super::args::FmtArgs;
use super::{CommandError, FAILED, OK, Outcome, Stream, locate, replace};
use crate::files::{Files, MAX_FILE_BYTES, Memory};
use crate::format::whole::{Part, parts, relative};
use crate::format::{self, Refused};
use crate::source::{self, Form};
use crate::{check, render};

/// Puts specs in one style, or says which are not. If one of them does not parse, none is written.
pub fn run(
    root: Option<&Utf8Path>,
    args: &FmtArgs,
    out: &mut dyn Write,
    err: &mut dyn Stream,
) -> Outcome {
    if args.specs.iter().any(|spec| spec == "-") {
        return pipe(args, &mut io::stdin().lock(), out, err);
    }
    if args.form.is_some() {
        return Err(CommandError::Other("--form is for standard input, `-`".to_owned()));
    }
    let mut changed = Vec::new();
    let mut refused = false;
    let mut all = Vec::new();
    for spec in &args.specs {
        all.extend(find(root, spec)?);
    }
    for file in all {
        match format::format(file.form, &file.text) {
            Ok(text) if text.as_bytes() == file.bytes => {}
            Ok(text) => changed.push((file, text)),
            Err(why) => {
                refused = true;
                report(&file.path, &file.text, why, err)?;
            }
        }
    }
    if refused && !args.check {
        writeln!(err, "nothing was written")?;
        return Ok(FAILED);
    }
    for (file, text) in &changed {
        if !args.check {
            replace::file(&file.shown, text)?;
        }
        writeln!(out, "{}", file.shown)?;
    }
    Ok(if refused || (args.check && !changed.is_empty()) { FAILED } else { OK })
}

/// From standard input to standard output.
fn pipe(
    args: &FmtArgs,
    input: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Stream,
) -> Outcome {
    let other = |why: &str| Err(CommandError::Other(why.to_owned()));
    let form = match (args.form, args.specs.as_slice()) {
        (_, [_, _, ..]) => return other("`-` stands alone"),
        (None, _) => return other("`-` needs --form kdl or --form yaml"),
        (Some(form), _) => Form::from(form),
    };
    let mut bytes = Vec::new();
    input
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CommandError::Other(format!("reading standard input: {error}")))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return other("standard input is larger than a spec may be");
    }
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return other("standard input is not UTF-8");
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format::format(form, text) {
        Ok(formatted) if args.check => match formatted.as_bytes() == bytes {
            true => Ok(OK),
            false => {
                writeln!(out, "-")?;
                Ok(FAILED)
            }
        },
        Ok(formatted) => {
            write!(out, "{formatted}")?;
            Ok(OK)
        }
        Err(why) => {
            let name = match form {
                Form::Kdl => "stdin.kdl",
                Form::Yaml => "stdin.yaml",
            };
            report(name.into(), text, why, err)?;
            Ok(FAILED)
        }
    }
}

/// A file to be formatted.
struct File {
    /// Where it is, as the user sees it.
    shown: Utf8PathBuf,
    /// Where it is below the root.
    path: Utf8PathBuf,
    form: Form,
    bytes: Vec<u8>,
    text: String,
}

/// A file alone, or the files of the spec of a folder.
fn find(root: Option<&Utf8Path>, spec: &Utf8Path) -> Result<Vec<File>, CommandError> {
    let (files, path) = locate::locate(root, spec)?;
    let (entry, form) = source::entry_file(&files, &path)?;
    let whole = match spec.is_dir() {
        true => parts(&files, &entry)?,
        false => {
            let text = source::read_text(&files, &entry)?;
            vec![Part { path: entry, form, text }]
        }
    };
    let mut found = Vec::new();
    for Part { path: part, form, text } in whole {
        let bytes = files
            .read(&part, MAX_FILE_BYTES)
            .map_err(|error| source::ReadError::Io { path: part.clone(), error })?;
        let shown = match spec.is_dir() {
            true => spec.join(relative(&path, &part)),
            false => spec.to_owned(),
        };
        found.push(File { shown, path: part, form, bytes, text });
    }
    Ok(found)
}

/// Prints why a text is refused.
fn report(
    path: &Utf8Path,
    text: &str,
    why: Refused,
    err: &mut dyn Stream,
) -> Result<(), CommandError> {
    match why {
        Refused::Syntax(found) => {
            let mut checked = check(&Memory::one(path.as_str(), text), path)?;
            checked.diagnostics = found;
            let width = err.width();
            write!(err, "{}", render::text::report(&checked, width))?;
            writeln!(err, "{path}: {}", render::counts(&checked.diagnostics))?;
            Ok(())
        }
        Refused::Bug => {
            let why =
                format!("{path}: formatted, it would say something else; nothing was written");
            Err(CommandError::Bug(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::SpecForm;

    fn piped(form: Option<SpecForm>, check: bool, input: &[u8]) -> (Option<u8>, String, String) {
        let args = FmtArgs { specs: vec!["-".into()], check, form };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = pipe(&args, &mut &*input, &mut out, &mut err).ok();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (code, text(out), text(err))
    }

    #[test]
    fn standard_input_goes_to_standard_output() {
        let kdl = Some(SpecForm::Kdl);
        assert_eq!(piped(kdl, false, b"a  1;"), (Some(OK), "a 1\n".into(), String::new()));
        assert_eq!(piped(kdl, true, b"a  1;"), (Some(FAILED), "-\n".into(), String::new()));
        assert_eq!(piped(kdl, true, b"a 1\n"), (Some(OK), String::new(), String::new()));
        let yaml = Some(SpecForm::Yaml);
        assert_eq!(piped(yaml, false, b"a: 1 \r\n"), (Some(OK), "a: 1\n".into(), String::new()));
        let (code, out, err) = piped(kdl, false, b"pool {");
        assert_eq!((code, out.as_str()), (Some(FAILED), ""));
        assert!(err.contains("stdin.kdl:1:6") && err.contains("1 error"), "{err}");
    }

    #[test]
    fn standard_input_without_a_form_or_that_is_no_text_cannot_be_read() {
        assert_eq!(piped(None, false, b"a 1").0, None);
        assert_eq!(piped(Some(SpecForm::Kdl), false, b"\xff").0, None);
        let large = vec![b' '; (4 << 20) + 1];
        assert_eq!(piped(Some(SpecForm::Kdl), false, &large).0, None);
    }
}
