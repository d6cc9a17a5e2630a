//! Fits block by block: the files are those of any fit, from a file on disk as from memory, and what cannot be had is said.

use crate::{Bench, exists};
use bpnmf::{BLOCK_OBSERVATIONS, BlockSource};
use std::fmt::Write as _;

/// Three programs of eight features in 2500 observations, as coordinates.
fn mtx() -> String {
    let mut entries = String::new();
    let mut count = 0;
    for t in 0..2500usize {
        for f in 0..8usize {
            let on = |k: usize| (t + k * k).is_multiple_of(k + 2) || t % 3 == k;
            let rate = |k: usize| if on(k) && f / 3 == k { 6 + (f * 7 + k) % 5 } else { 0 };
            let mean: usize = (0..3).map(rate).sum();
            let value = mean + (t * 31 + f * 17) % 4;
            if mean > 0 {
                writeln!(entries, "{} {} {}", f + 1, t + 1, value).unwrap();
                count += 1;
            }
        }
    }
    format!("%%MatrixMarket matrix coordinate integer general\n8 2500 {count}\n{entries}")
}

#[test]
fn a_fit_block_by_block_leaves_the_files_of_any_fit_and_does_not_depend_on_threads() {
    let bench = Bench::new();
    bench.write("x.mtx", mtx());
    for (threads, out) in [(1, "one"), (2, "two")] {
        bench.ok(&format!(
            "fit x.mtx --blocks --sample 400 --chains 1 --seed 1 --threads {threads} --report --out {out}"
        ));
    }
    let summary = bench.json("one/summary.json");
    assert_eq!(summary["blocks"]["number"], 2500usize.div_ceil(BLOCK_OBSERVATIONS));
    assert_eq!(summary["blocks"]["sample"], 400);
    assert_eq!(summary["input"]["observations"], 2500);
    let arrays = bench.arrays("one/model.npz");
    let shapes: Vec<_> = arrays.iter().map(|(name, shape, _)| (name.as_str(), shape.clone())).collect();
    let found = summary["n_components"].as_u64().unwrap() as usize;
    let expected =
        [("W", vec![8, found]), ("H", vec![found, 2500]), ("S", vec![found, 2500]), ("pi", vec![found])];
    assert_eq!(shapes, expected);
    assert_eq!(arrays, bench.arrays("two/model.npz"));
    for name in ["exposures.tsv", "signatures.tsv", "inclusion.tsv"] {
        assert_eq!(bench.bytes(&format!("one/{name}")), bench.bytes(&format!("two/{name}")), "{name}");
    }
    assert!(String::from_utf8(bench.bytes("one/report.html")).unwrap().contains("These pages show the 400"));
}

#[test]
fn an_h5ad_on_disk_has_the_bits_of_the_same_counts_in_memory() {
    let bench = Bench::new();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../bpnmf-io/tests/fixtures");
    std::fs::copy(format!("{fixtures}/csr.h5ad"), bench.path("csr.h5ad")).unwrap();
    std::fs::copy(format!("{fixtures}/csc.h5ad"), bench.path("csc.h5ad")).unwrap();
    for name in ["csr", "csc"] {
        bench.warns(&format!("fit {name}.h5ad --blocks --chains 1 --quiet --out {name}"));
    }
    // The one is read from disk, the other, whose observations lie scattered, from memory.
    let options = bpnmf_io::ReadOptions::default();
    let file = bpnmf_io::open_blocks(&bench.path("csr.h5ad"), &options).unwrap().unwrap();
    assert_eq!((file.features(), file.observations()), (3, 4));
    assert!(bpnmf_io::open_blocks(&bench.path("csc.h5ad"), &options).unwrap().is_none());
    assert_eq!(bench.arrays("csr/model.npz"), bench.arrays("csc/model.npz"));
    assert_eq!(bench.bytes("csr/exposures.tsv"), bench.bytes("csc/exposures.tsv"));
}

#[test]
fn what_cannot_be_had_block_by_block_is_refused_before_the_work() {
    let bench = Bench::new();
    bench.write("x.mtx", mtx());
    for flag in ["--held-out 0.1", "--time-budget 5s", "--until-sure"] {
        let told = bench.fails(&format!("fit x.mtx --blocks {flag} --out o"), 2);
        let name = flag.split(' ').next().unwrap();
        assert!(told.starts_with(&format!("{name} cannot be had of a fit block by block")), "{told}");
        assert!(!exists(&bench.path("o")));
    }
    let told = bench.fails("fit x.mtx --blocks --sample 0 --out o", 2);
    assert!(told.starts_with("--sample is 0"), "{told}");
}
