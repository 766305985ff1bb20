//! `fleetc convert`.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};

use super::args::ConvertArgs;
use super::{CommandError, FAILED, OK, Outcome, Stream, locate, replace};
use crate::files::Disk;
use crate::format::convert::{Converted, convert_and_rename};
use crate::format::whole::{Part, beside, parts, relative};
use crate::output::WriteError;
use crate::source::{self, Form, form_of};
use crate::{check, render};

/// Writes a spec in the other form: a file alone, a folder with what its spec includes.
pub fn run(
    root: Option<&Utf8Path>,
    args: &ConvertArgs,
    out: &mut dyn Write,
    err: &mut dyn Stream,
) -> Outcome {
    let to = Form::from(args.to);
    let (files, path) = locate::locate(root, &args.spec)?;
    let checked = check(&files, &path)?;
    let width = err.width();
    write!(err, "{}", render::text::report(&checked, width))?;
    if checked.intent().is_none() {
        let counts = render::counts(&checked.diagnostics);
        writeln!(err, "{}: {counts}; nothing was written", args.spec)?;
        return Ok(FAILED);
    }
    let (entry, _) = source::entry_file(&files, &path)?;
    let home = entry.parent().unwrap_or(Utf8Path::new("")).to_owned();
    let mut converted: Vec<Part> = parts(&files, &entry)?;
    match args.spec.is_dir() {
        // What stands elsewhere or is in the other form already is named where it is.
        true => converted.retain(|part| part.form != to && part.path.starts_with(&home)),
        false => converted.retain(|part| part.path == entry && part.form != to),
    }
    if !converted.iter().any(|part| part.path == entry) {
        let why = format!("{} is {} already; `fleetc fmt` puts it in style", args.spec, name(to));
        return Err(CommandError::Other(why));
    }
    let target = Target::of(args.output.as_deref(), converted.len(), to)?;
    let job = Job { files: &files, home: &home, converted: &converted, target: &target, to };
    // Everything is converted before anything is written.
    let mut texts = Vec::new();
    for part in &converted {
        texts.push((job.place(&part.path), job.convert(part)?));
    }
    let mut dropped = 0;
    for (place, converted) in &texts {
        dropped += converted.dropped;
        match &target {
            Target::Standard => write!(out, "{}", converted.text)?,
            Target::File(file) => replace::file(file, &converted.text)?,
            Target::Folder(_) => {
                create_folder_of(place)?;
                replace::file(place, &converted.text)?;
                writeln!(out, "{place}")?;
            }
        }
    }
    if dropped > 0 {
        let comments = render::plural(u64::try_from(dropped).unwrap_or(0), "comment");
        writeln!(err, "{}: {comments} dropped, for want of a place", args.spec)?;
    }
    Ok(OK)
}

/// Where the result goes.
enum Target {
    Standard,
    File(Utf8PathBuf),
    Folder(Utf8PathBuf),
}

impl Target {
    fn of(output: Option<&Utf8Path>, parts: usize, to: Form) -> Result<Self, CommandError> {
        match output {
            None if parts == 1 => Ok(Self::Standard),
            None => {
                let why = format!("the spec has {parts} files: name a folder with -o");
                Err(CommandError::Other(why))
            }
            Some(output) => match form_of(output) {
                Some(form) if form != to => {
                    let why = format!("{output} does not end as {} does", name(to));
                    Err(CommandError::Other(why))
                }
                Some(_) if parts > 1 => {
                    let why =
                        format!("the spec has {parts} files: {output} must be a folder to be");
                    Err(CommandError::Other(why))
                }
                Some(_) => Ok(Self::File(output.to_owned())),
                None => Ok(Self::Folder(output.to_owned())),
            },
        }
    }
}

/// What it takes to convert the files of a spec.
struct Job<'a> {
    files: &'a Disk,
    /// The folder of the entry file.
    home: &'a Utf8Path,
    converted: &'a [Part],
    target: &'a Target,
    to: Form,
}

impl Job<'_> {
    /// Where a converted file goes.
    fn place(&self, path: &Utf8Path) -> Utf8PathBuf {
        let inner = path.strip_prefix(self.home).unwrap_or(path);
        match self.target {
            Target::Standard => self.files.root().join(path),
            Target::File(file) => file.clone(),
            Target::Folder(folder) => folder.join(inner).with_extension(match self.to {
                Form::Kdl => "kdl",
                Form::Yaml => "yaml",
            }),
        }
    }

    fn convert(&self, part: &Part) -> Result<Converted, CommandError> {
        let place = locate::full(&self.place(&part.path));
        let folder = place.parent().unwrap_or(&place);
        let strangers = std::cell::RefCell::new(Vec::new());
        let rename = |name: &str| {
            let Ok(path) = beside(&part.path, name) else { return name.to_owned() };
            // The name of a folder is that of the spec in it.
            let own = self.converted.iter().any(|part| part.path == path);
            let there = match own {
                true => locate::full(&self.place(&path)),
                false => self.files.root().join(&path),
            };
            if !own && !place.starts_with(self.files.root()) {
                strangers.borrow_mut().push(name.to_owned());
            }
            relative(folder, &there).to_string()
        };
        let converted = convert_and_rename(part.form, &part.text, &rename);
        if let Some(stranger) = strangers.take().first() {
            let (path, root) = (&part.path, self.files.root());
            let why =
                format!("{path} names `{stranger}`, which stays where it is: write below {root}");
            return Err(CommandError::Other(why));
        }
        converted.map_err(|_| {
            let why = "converted, it would say something else; nothing was written";
            CommandError::Bug(format!("{}: {why}", part.path))
        })
    }
}

fn create_folder_of(file: &Utf8Path) -> Result<(), WriteError> {
    let Some(folder) = file.parent() else { return Ok(()) };
    std::fs::create_dir_all(folder).map_err(|error| WriteError::Io {
        doing: "creating",
        path: folder.to_owned(),
        error,
    })
}

fn name(form: Form) -> &'static str {
    match form {
        Form::Kdl => "KDL",
        Form::Yaml => "YAML",
    }
}
