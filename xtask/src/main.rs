//! Chores: `cargo xtask bless | generate | conformance | bench | fuzz`.

mod bench;
mod conformance;
mod fuzz;

use std::io;
use std::process::ExitCode;

use camino::Utf8Path;
use clap::{Parser, Subcommand};
use fleetc_tests::{FLEETS, check_fleet, compiled, repository, schemas};

/// Chores of the workspace.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the golden trees anew; read the diff before you commit it
    Bless,
    /// Write what is generated and committed: the JSON Schemas and the language reference
    Generate,
    /// Hold the output of the example fleets against the tools that read it
    Conformance {
        /// Only this suite
        #[arg(long, value_name = "SUITE")]
        only: Option<conformance::Suite>,
        /// Slurm in one place only: `machine`, `trixie` or `sid`
        #[arg(long, value_name = "PLACE")]
        place: Option<String>,
    },
    /// Time whole processes of the release build: the cost of a check by the number of nodes
    Bench,
    /// Run the fuzz targets, one after another; needs cargo-fuzz and a nightly toolchain
    Fuzz {
        /// Minutes for each target
        #[arg(long, default_value_t = 3)]
        minutes: u64,
        /// Write the corpus and the dictionary, and stop
        #[arg(long)]
        seeds: bool,
        /// The targets; none: all of them
        #[arg(value_name = "TARGET")]
        targets: Vec<String>,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Bless => bless(),
        Command::Generate => generate(),
        Command::Conformance { only, place } => conformance::run(only, place.as_deref()),
        Command::Bench => bench::run(),
        Command::Fuzz { minutes, seeds, targets } => fuzz::run(minutes, seeds, &targets),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn bless() -> Outcome {
    for (name, spec) in FLEETS {
        let files = compiled(&check_fleet(spec)?).ok_or(format!("{spec} has errors"))?;
        let root = repository().join("tests/golden").join(name);
        if root.exists() {
            std::fs::remove_dir_all(&root)?;
        }
        for (path, text) in files {
            put(&root.join(path), &text)?;
        }
    }
    Ok(())
}

fn generate() -> Outcome {
    for (name, text) in schemas::all() {
        put(&repository().join("schema/json").join(name), &text)?;
    }
    put(&repository().join(schemas::LANGUAGE_PAGE), &schemas::language_page()?)?;
    put(&repository().join(schemas::INVENTORY_PAGE), &fleetc::inventory::page())?;
    put(&repository().join(schemas::CHECKS_PAGE), &schemas::checks_page())?;
    Ok(())
}

fn put(path: &Utf8Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, text)
}
