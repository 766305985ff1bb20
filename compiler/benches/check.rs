//! How long checking and compiling take, in process. Whole processes: `cargo xtask bench`.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use camino::Utf8Path;
use fleetc::files::Memory;

fn main() {
    divan::main();
}

/// Two Slurm clusters that share this many nodes, in range form, with an exception in each pool.
fn fleet(nodes: u64) -> Memory {
    let half = nodes / 2;
    let width = half.to_string().len();
    let mut spec = "fleet \"big\"\n".to_owned();
    for cluster in ["a", "b"] {
        spec += &format!(
            "cluster \"{cluster}\" {{ slurm \"24.11\" {{ controllers \"ctl{cluster}\"; \
             gres autodetect=\"nvml\"; driver \"580.105.08\" owner=\"os\"; \
             partition \"gpu\" {{ pools \"{cluster}\" }} }} }}\n\
             pool \"{cluster}\" {{ cluster \"{cluster}\"; system \"dgx-h100\"; \
             nodes \"{cluster}[{:0width$}-{half:0width$}]\"; sharing \"whole\"; \
             exception node=\"{cluster}{:0width$}\" {{ missing 3 }} }}\n",
            1, 2
        );
    }
    Memory::one("fleet.kdl", &spec)
}

#[divan::bench(args = [10, 1_000, 100_000])]
fn check(bencher: divan::Bencher<'_, '_>, nodes: u64) {
    let files = fleet(nodes);
    bencher.bench(|| fleetc::check(&files, Utf8Path::new("fleet.kdl")));
}

#[divan::bench(args = [10, 1_000, 100_000])]
fn compile(bencher: divan::Bencher<'_, '_>, nodes: u64) {
    let files = fleet(nodes);
    bencher.bench(|| {
        let checked = fleetc::check(&files, Utf8Path::new("fleet.kdl"));
        checked.ok().and_then(|checked| fleetc::compile(&checked))
    });
}

/// Nodes that are known one by one: each has PCI addresses of its own, and racks of 32.
fn known_nodes(nodes: u32) -> Memory {
    let pci = |node: u32| {
        let buses = [0x1b, 0x43, 0x52, 0x61, 0x9d, 0xc3, 0xd1, 0xdf];
        let address = |bus: &i32| format!("{:04x}:{bus:02x}:{:02x}.0", node >> 5, node & 31);
        buses.iter().map(address).collect::<Vec<_>>().join(" ")
    };
    let row = |node: u32| format!("n{node:06},train,r{:04},{}\n", node / 32, pci(node));
    let rows: String = (0..nodes).map(row).collect();
    let spec = "fleet \"big\"\ninventory \"nodes.csv\"\n\
        cluster \"a\" { kubernetes \"1.36\" { distribution \"upstream\"; queue \"none\"; \
        driver \"580.105.08\" owner=\"os\" } }\n\
        pool \"train\" { cluster \"a\"; system \"dgx-h100\"; sharing \"whole\" }\n";
    let mut files = Memory::one("fleet.kdl", spec);
    files.0.insert("nodes.csv".into(), format!("node,pool,rack,pci\n{rows}"));
    files
}

/// The intent that the nodes of such a fleet are given.
fn intent(nodes: u32) -> tempfile::TempDir {
    const FOLDER: &str = "clusters/a/intent/";
    let files = known_nodes(nodes);
    let checked = fleetc::check(&files, Utf8Path::new("fleet.kdl")).unwrap();
    let tree = fleetc::compile(&checked).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (path, file) in tree.files() {
        let Some(name) = path.as_str().strip_prefix(FOLDER) else { continue };
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file.text()).unwrap();
    }
    folder
}

/// A node finds what it should be.
#[divan::bench(args = [10, 1_000, 100_000])]
fn lookup(bencher: divan::Bencher<'_, '_>, nodes: u32) {
    let folder = intent(nodes);
    let node = format!("n{:06}", nodes / 2);
    bencher.bench(|| fleetc_validate::intent::load(folder.path(), &node).map(|found| found.known));
}

#[divan::bench]
fn catalog() -> bool {
    fleetc_schema::catalog::Catalog::embedded().is_ok()
}
