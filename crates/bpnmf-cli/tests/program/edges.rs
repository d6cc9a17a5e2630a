//! The corners that must work: one row, one column, no counts, enormous counts, one component, every format.

use crate::{Bench, table, value};
use bpnmf_io::Array;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

const ENGINES: [&str; 4] = ["ssmf", "gibbs", "gibbs-expected", "map"];

/// What differs in more than a number: with and without a search, with each engine.
fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    ["auto", "paper"].into_iter().flat_map(|preset| ENGINES.map(|engine| (preset, engine)))
}

/// Fits a matrix in every way, and checks that the files are whole and every number is finite.
fn fits(bench: &Bench, name: &str, features: usize, observations: usize) {
    fits_with(bench, name, features, observations, "");
}

fn fits_with(bench: &Bench, name: &str, features: usize, observations: usize, flags: &str) {
    for (preset, engine) in kinds() {
        let out = format!("{name}-{preset}-{engine}");
        bench.ok(&format!("fit {name} --preset {preset} --engine {engine} -k 8 -n 20 --out {out} {flags}"));
        let summary = bench.json(&format!("{out}/summary.json"));
        let parts = summary["components"].as_array().unwrap().len();
        assert!(summary["n_components"].is_u64());
        for key in ["log_likelihood", "log_joint", "mean_log_likelihood", "seconds"] {
            assert!(summary[key].is_f64(), "{out}: {key} is {}", summary[key]);
        }
        let arrays = bench.arrays(&format!("{out}/model.npz"));
        let shapes: Vec<(&str, &[usize])> =
            arrays.iter().map(|(name, shape, _)| (name.as_str(), shape.as_slice())).collect();
        let (of_w, of_h) = ([features, parts], [parts, observations]);
        let mut expected: Vec<(&str, &[usize])> =
            vec![("W", &of_w), ("H", &of_h), ("S", &of_h), ("pi", &of_h[..1])];
        // Two draws are needed, and without a count there are none.
        if engine == "gibbs" && summary["stop_reason"] != "no counts" {
            let ends: [(&str, &[usize]); 4] =
                [("W_low", &of_w), ("H_low", &of_h), ("W_high", &of_w), ("H_high", &of_h)];
            expected.extend(ends);
            for (mean, low, high) in [(0, 4, 6), (1, 5, 7)] {
                let [mean, low, high] = [mean, low, high].map(|i| &arrays[i].2);
                assert!((0..mean.len()).all(|i| low[i] <= mean[i] && mean[i] <= high[i]), "{out}");
            }
        }
        assert_eq!(shapes, expected, "{out}");
        for (array, _, values) in &arrays {
            assert!(values.iter().all(|value| value.is_finite() && *value >= 0.0), "{out}: {array}");
        }
        assert!(!String::from_utf8(bench.bytes(&format!("{out}/trace.csv"))).unwrap().contains("NaN"));
    }
}

fn save(bench: &Bench, name: &str, features: usize, observations: usize, values: &[f64]) {
    bpnmf_io::write_npy(&bench.path(name), &Array::new(&[features, observations], values)).unwrap();
}

#[test]
fn one_observation_or_one_feature_or_both_are_enough() {
    let bench = Bench::new();
    save(&bench, "column.npy", 4, 1, &[3.0, 0.0, 7.0, 1.0]);
    save(&bench, "row.npy", 1, 4, &[3.0, 0.0, 7.0, 1.0]);
    save(&bench, "single.npy", 1, 1, &[9.0]);
    fits(&bench, "column.npy", 4, 1);
    fits(&bench, "row.npy", 1, 4);
    fits(&bench, "single.npy", 1, 1);
}

#[test]
fn rows_and_columns_of_zeros_are_fitted() {
    let bench = Bench::new();
    let values: Vec<f64> = (0..5 * 6)
        .map(|i| (i / 6, i % 6))
        .map(|(f, t)| if f == 2 || t == 3 { 0.0 } else { (f + 2 * t) as f64 })
        .collect();
    save(&bench, "holes.npy", 5, 6, &values);
    fits(&bench, "holes.npy", 5, 6);
}

#[test]
fn missing_entries_rows_and_columns_are_fitted() {
    let bench = Bench::new();
    let value = |f: usize, t: usize| match (f, t) {
        (2, _) | (_, 3) | (0, 0) | (4, 5) => f64::NAN,
        _ => (f + 2 * t) as f64,
    };
    let values: Vec<f64> = (0..5 * 6).map(|i| value(i / 6, i % 6)).collect();
    save(&bench, "gaps.npy", 5, 6, &values);
    fits_with(&bench, "gaps.npy", 5, 6, "--missing");
    assert_eq!(bench.json("gaps.npy-auto-gibbs/summary.json")["input"]["missing"], 12);
    save(&bench, "nothing.npy", 2, 3, &[f64::NAN; 6]);
    fits_with(&bench, "nothing.npy", 2, 3, "--missing");
    // The model is another one than that of zeros in their place.
    let zeros: Vec<f64> = values.iter().map(|x| if x.is_nan() { 0.0 } else { *x }).collect();
    save(&bench, "zeros.npy", 5, 6, &zeros);
    bench.ok("fit zeros.npy -n 20 --out zeros");
    let log_likelihood = |out: &str| bench.json(&format!("{out}/summary.json"))["log_likelihood"].as_f64();
    assert!(log_likelihood("gaps.npy-auto-gibbs") > log_likelihood("zeros"));
}

#[test]
fn a_matrix_without_counts_has_no_components() {
    let bench = Bench::new();
    save(&bench, "zeros.npy", 3, 5, &[0.0; 15]);
    fits(&bench, "zeros.npy", 3, 5);
    for (preset, engine) in kinds() {
        let summary = bench.json(&format!("zeros.npy-{preset}-{engine}/summary.json"));
        assert_eq!((&summary["n_components"], &summary["stop_reason"]), (&0.into(), &"no counts".into()));
    }
}

#[test]
fn counts_of_a_million_millions_are_fitted() {
    let bench = Bench::new();
    let values: Vec<f64> = (0..12).map(|i| 1e12 * f64::from(1 + i % 4)).collect();
    save(&bench, "huge.npy", 3, 4, &values);
    fits(&bench, "huge.npy", 3, 4);
}

#[test]
fn one_component_is_enough() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    for (preset, engine) in kinds() {
        let flags = format!("--preset {preset} --engine {engine}");
        bench.ok(&format!("fit table.csv -k 1 -n 10 {flags} --out out --force"));
        assert_eq!(bench.json("out/summary.json")["n_components"], 1, "{flags}");
    }
}

#[test]
fn every_format_of_the_same_matrix_gives_the_same_model() {
    let bench = Bench::new();
    bench.write("a.csv", table(","));
    bench.write("b.tsv", table("\t"));
    bench.write("c.txt", table(" "));
    let mut entries = String::new();
    let mut nonzeros = 0;
    for (f, t) in (0..6 * 12).map(|i| (i / 12, i % 12)).filter(|&(f, t)| value(f, t) > 0) {
        entries += &format!("{} {} {}\n", f + 1, t + 1, value(f, t));
        nonzeros += 1;
    }
    let sparse = format!("%%MatrixMarket matrix coordinate integer general\n6 12 {nonzeros}\n{entries}");
    bench.write("d.mtx", &sparse);
    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    zipped.write_all(sparse.as_bytes()).unwrap();
    bench.write("e.mtx.gz", zipped.finish().unwrap());
    let values: Vec<f64> = (0..6 * 12).map(|i| value(i / 12, i % 12) as f64).collect();
    save(&bench, "f.npy", 6, 12, &values);
    let turned: Vec<f64> = (0..6 * 12).map(|i| value(i % 6, i / 6) as f64).collect();
    save(&bench, "g.npy", 12, 6, &turned);
    for (preset, engine) in kinds() {
        let model = |name: &str, flags: &str| {
            let out = format!("{name}-{preset}-{engine}");
            let flags = format!("{flags} --preset {preset} --engine {engine}");
            bench.ok(&format!("fit {name} {flags} -k 6 -n 30 --out {out}"));
            bench.bytes(&format!("{out}/model.npz"))
        };
        let expected = model("a.csv", "");
        for name in ["b.tsv", "c.txt", "d.mtx", "e.mtx.gz", "f.npy"] {
            assert_eq!(model(name, ""), expected, "{name}, {preset}, {engine}");
        }
        assert_eq!(model("g.npy", "--transpose"), expected, "transposed, {preset}, {engine}");
    }
}

#[test]
fn a_sparse_archive_gives_the_model_of_the_dense_matrix() {
    let bench = Bench::new();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../bpnmf-io/tests/fixtures/csr_matrix.npz");
    std::fs::copy(fixture, bench.path("sparse.npz")).unwrap();
    bench.write("dense.csv", "1,0,2,0\n0,3,0,0\n4,0,0,5\n");
    for name in ["sparse.npz", "dense.csv"] {
        bench.ok(&format!("fit {name} -k 6 -n 30 --out {name}-out"));
    }
    assert_eq!(bench.bytes("sparse.npz-out/model.npz"), bench.bytes("dense.csv-out/model.npz"));
}
