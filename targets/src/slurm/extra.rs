//! Lines that the site adds to a file, at its end.

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{Cluster, Slurm};

use crate::write::header;
use crate::write::key_value::KeyValueFile;

/// Adds the site's lines for the file of this name, if there are any.
pub fn add(file: &mut KeyValueFile, name: &str, cluster: &Cluster, slurm: &Slurm) {
    if let Some((item, text)) = block(name, cluster, slurm) {
        file.verbatim([item], text);
    }
}

/// The site's lines for the file of this name, under a comment that says whose they are.
pub fn block(name: &str, cluster: &Cluster, slurm: &Slurm) -> Option<(ItemPath, String)> {
    let lines = slurm.extra.get(name)?;
    let head = header(&["The site's own lines."]);
    Some((item(cluster, name), format!("\n{head}{}", text(lines))))
}

/// Files that hold nothing but the site's lines, such as `plugstack.conf`.
pub fn others<'a>(
    slurm: &'a Slurm,
    cluster: &'a Cluster,
    ours: &'a [&str],
) -> impl Iterator<Item = (&'a str, ItemPath, String)> {
    let of_site = slurm.extra.iter().filter(|(name, _)| !ours.contains(&name.as_str()));
    of_site
        .filter(|(name, _)| is_file_name(name))
        .map(|(name, lines)| (name.as_str(), item(cluster, name), text(lines)))
}

/// True for a plain file name: it is put beside the files that are written here.
pub fn is_file_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !name.is_empty() && name.chars().all(plain) && !name.starts_with('.')
}

/// The item of the site's lines for a file.
pub fn item(cluster: &Cluster, name: &str) -> ItemPath {
    ItemPath::item("cluster", &cluster.name).child("slurm").keyed("extra", [name])
}

/// True if the site sets a key in the file of this name. Keys are read in any case.
pub fn sets(slurm: &Slurm, name: &str, key: &str) -> bool {
    let mut lines = slurm.extra.get(name).into_iter().flatten();
    lines.any(|line| {
        let (word, _) = line.split_once('=').unwrap_or((line, ""));
        word.trim().eq_ignore_ascii_case(key)
    })
}

fn text(lines: &[String]) -> String {
    let lines = lines.iter().flat_map(|line| line.lines());
    lines.map(|line| format!("{}\n", line.trim_end())).collect()
}
