//! The node validator of this build, for nodes that are pretended.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use fleetc_tests::repository;

use crate::put;

type Failure = Box<dyn std::error::Error>;

/// The program, and an NVML that answers from a file.
pub fn built() -> Result<(Utf8PathBuf, Utf8PathBuf), Failure> {
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--package", "fleetc-validate", "--package", "fleetc-fake-nvml"])
        .current_dir(repository())
        .status()?;
    if !built.success() {
        return Err("the program cannot be built".into());
    }
    let xtask = Utf8PathBuf::try_from(std::env::current_exe()?)?;
    // This program is `xtask` in a folder of the target folder, whatever it was built for.
    let folder = xtask.ancestors().nth(2).ok_or("the target folder is not known")?.join("debug");
    Ok((folder.join("fleetc-validate"), folder.join("libfleetc_fake_nvml.so")))
}

/// Writes a program.
pub fn executable(path: &Utf8Path, text: &str) -> Result<(), Failure> {
    put(path, text)?;
    Ok(std::fs::set_permissions(path, Permissions::from_mode(0o755))?)
}
