//! A fleet of the repository with some items changed, by an overlay that stands in no file.

use std::io;

use camino::Utf8Path;
use fleetc::Checked;
use fleetc::files::{Disk, Files};
use fleetc_tests::repository;

/// The disk of the repository with one spec more.
struct Overlay {
    disk: Disk,
    text: String,
}

const OVERLAY: &str = "conformance.kdl";

impl Files for Overlay {
    fn read(&self, path: &Utf8Path, most: u64) -> io::Result<Vec<u8>> {
        match path.as_str() {
            OVERLAY => Ok(self.text.clone().into_bytes()),
            _ => self.disk.read(path, most),
        }
    }

    fn has(&self, path: &Utf8Path) -> bool {
        path == OVERLAY || self.disk.has(path)
    }
}

/// Checks a fleet with other items laid over it.
pub fn overlaid(
    fleet: &str,
    spec: &str,
    items: &str,
) -> Result<Checked, Box<dyn std::error::Error>> {
    let text = format!("fleet \"{fleet}\" {{ extends \"{spec}/fleet.kdl\" }}\n{items}");
    let files = Overlay { disk: Disk::new(repository().canonicalize_utf8()?), text };
    Ok(fleetc::check(&files, Utf8Path::new(OVERLAY))?)
}
