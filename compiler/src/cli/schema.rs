//! `fleetc schema`.

use std::io::Write;

use super::args::{Document, SchemaArgs};
use super::{OK, Outcome};

/// Prints the JSON Schema of a document, as it is committed.
pub fn run(args: &SchemaArgs, out: &mut dyn Write) -> Outcome {
    write!(out, "{}", text(args.document))?;
    Ok(OK)
}

fn text(document: Document) -> &'static str {
    macro_rules! committed {
        ($name:literal) => {
            include_str!(concat!("../../../schema/json/", $name, ".schema.json"))
        };
    }
    match document {
        Document::Spec => committed!("spec"),
        Document::Intent => committed!("intent"),
        Document::Index => committed!("index"),
        Document::Class => committed!("class"),
        Document::Override => committed!("override"),
        Document::SourceLine => committed!("source-line"),
        Document::Diagnostics => committed!("diagnostics"),
        Document::Plan => committed!("plan"),
        Document::Drift => committed!("drift"),
        Document::Report => committed!("report"),
        Document::Fix => committed!("fix"),
    }
}
