//! `bpnmf synth`.

use crate::{Bench, exists};

#[test]
fn synthetic_counts_come_with_their_truth() {
    let bench = Bench::new();
    let said =
        bench.ok("synth --seed 3 --features 10 --observations 50 --components 20 --gamma scale --out data");
    let arrays = bench.arrays("data/truth.npz");
    let shapes: Vec<(&str, &[usize])> =
        arrays.iter().map(|(name, shape, _)| (name.as_str(), shape.as_slice())).collect();
    let expected: [(&str, &[usize]); 5] =
        [("W", &[10, 20]), ("H", &[20, 50]), ("S", &[20, 50]), ("pi", &[20]), ("n_components", &[])];
    assert_eq!(shapes, expected);
    let on_often = arrays[2].2.chunks(50).filter(|on| on.iter().sum::<f64>() >= 1.0).count();
    assert_eq!(arrays[4].2, [on_often as f64]);
    assert_eq!(
        said,
        format!(
            "{}: 10 features x 50 observations, {on_often} of 20 parts are on in at least 1 % of the observations\n",
            std::path::Path::new("data").join("X.npy").display()
        )
    );

    let matrix = bpnmf_io::read_npy_array(&bench.path("data/X.npy")).unwrap();
    assert_eq!(matrix.shape(), [10, 50]);
    let values = matrix.to_f64();
    assert!(values.iter().all(|value| *value >= 0.0 && value.fract() == 0.0));
    let silent = (0..50).filter(|t| (0..20).all(|l| arrays[2].2[l * 50 + t] == 0.0));
    for t in silent {
        assert!((0..10).all(|f| values[f * 50 + t] == 0.0), "column {t} has no part that is on");
    }
}

#[test]
fn the_seed_decides_the_synthetic_counts() {
    let bench = Bench::new();
    for (seed, out) in [(1, "a"), (1, "b"), (2, "c")] {
        bench.ok(&format!("synth --seed {seed} --features 8 --observations 30 --out {out}"));
    }
    for name in ["X.npy", "truth.npz"] {
        assert_eq!(bench.bytes(&format!("a/{name}")), bench.bytes(&format!("b/{name}")));
        assert_ne!(bench.bytes(&format!("a/{name}")), bench.bytes(&format!("c/{name}")));
    }
}

#[test]
fn absurd_sizes_are_refused_and_files_are_kept() {
    let bench = Bench::new();
    assert_eq!(
        bench.fails("synth --seed 1 --features 1000000 --observations 1000000 --out data", 2),
        "1000000 features, 1000000 observations and 100 components are more than 2^31 values: ask for less"
    );
    for flag in ["--features", "--observations", "--components"] {
        let sentence = bench.fails(&format!("synth --seed 1 {flag} 0 --out data"), 2);
        assert_eq!(sentence, format!("{flag} is 0: it must be at least 1"));
    }
    assert!(!exists(&bench.path("data")));
    bench.ok("synth --seed 1 --features 5 --observations 5 --out data");
    assert_eq!(
        bench.fails("synth --seed 1 --features 5 --observations 5 --out data", 2),
        "data already holds X.npy: choose another folder or overwrite it with --force"
    );
    bench.ok("synth --seed 1 --features 5 --observations 5 --out data --force");
}
