//! How long checking and compiling take, in process. Whole processes: `cargo xtask bench`.

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

#[divan::bench]
fn catalog() -> bool {
    fleetc_schema::catalog::Catalog::embedded().is_ok()
}
