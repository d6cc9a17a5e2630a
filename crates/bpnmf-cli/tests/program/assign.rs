//! Known signatures in new samples.

use crate::{Bench, exists};

/// Signature `s` of 12 types: a peak of three, low elsewhere.
fn share(s: usize, f: usize) -> f64 {
    if f / 3 == s { 0.3 } else { 0.1 / 9.0 }
}

/// Types x signatures, rows from the last to the first.
fn known(bench: &Bench, name: &str, signatures: usize) {
    let names: Vec<String> = (0..signatures).map(|s| format!("S{s}")).collect();
    let mut text = format!("type\t{}\n", names.join("\t"));
    for f in (0..12).rev() {
        let values: Vec<String> = (0..signatures).map(|s| share(s, f).to_string()).collect();
        text += &format!("type {f}\t{}\n", values.join("\t"));
    }
    bench.write(name, text);
}

/// Types x samples: sample t has 300 of signature t % 3, and every other one 200 of signature 3, too.
fn samples(bench: &Bench, name: &str) {
    let names: Vec<String> = (0..8).map(|t| format!("sample {t}")).collect();
    let mut text = format!("type\t{}\n", names.join("\t"));
    for f in 0..12 {
        let value =
            |t: usize| 300.0 * share(t % 3, f) + if t.is_multiple_of(2) { 200.0 * share(3, f) } else { 0.0 };
        let values: Vec<String> = (0..8).map(|t| value(t).round().to_string()).collect();
        text += &format!("type {f}\t{}\n", values.join("\t"));
    }
    bench.write(name, text);
}

/// Rows of a table: the name, and the numbers.
fn rows(bench: &Bench, name: &str) -> Vec<(String, Vec<f64>)> {
    let text = String::from_utf8(bench.bytes(name)).unwrap();
    let row = |line: &str| {
        let mut cells = line.split('\t');
        (cells.next().unwrap().to_owned(), cells.map(|cell| cell.parse().unwrap()).collect())
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn exposures_presence_and_intervals_are_those_of_the_truth_and_the_same_for_a_seed() {
    let bench = Bench::new();
    known(&bench, "known.tsv", 4);
    samples(&bench, "new.tsv");
    let printed = bench.ok("assign new.tsv --signatures known.tsv --out out --threads 1");
    assert!(printed.starts_with("4 of 4 signatures present in 8 samples"), "{printed}");
    let [exposures, low, high, inclusion] = ["exposures", "exposures_low", "exposures_high", "inclusion"]
        .map(|name| rows(&bench, &format!("out/{name}.tsv")));
    for (t, (name, found)) in exposures.iter().enumerate() {
        assert_eq!(*name, format!("sample {t}"));
        for (s, &found) in found.iter().enumerate() {
            let truth = if s == t % 3 {
                300.0
            } else if s == 3 && t.is_multiple_of(2) {
                200.0
            } else {
                0.0
            };
            assert!((found - truth).abs() < 30.0, "{name}, S{s}: {found}, {truth} is true");
            assert!((inclusion[t].1[s] >= 0.5) == (truth > 0.0), "{name}, S{s}: {}", inclusion[t].1[s]);
            assert!(low[t].1[s] <= truth && truth <= high[t].1[s], "{name}, S{s}");
        }
    }
    let header = String::from_utf8(bench.bytes("out/exposures.tsv")).unwrap();
    assert!(header.starts_with("observation\tS0\tS1\tS2\tS3\n"), "{header}");
    for (_, sample) in rows(&bench, "out/samples.tsv") {
        assert!(sample[1] <= 2.0 && sample[2] > 0.99, "counts, present, cosine, likelihood: {sample:?}");
    }
    let summary = bench.json("out/summary.json");
    assert_eq!((&summary["noise"], &summary["prior"]), (&"poisson".into(), &"learned".into()));
    bench.ok("assign new.tsv --signatures known.tsv --out again --threads 2 --quiet");
    assert_eq!(bench.bytes("out/exposures.tsv"), bench.bytes("again/exposures.tsv"));
    bench.ok("assign new.tsv --signatures known.tsv --out other --seed 1 --quiet");
    assert_ne!(bench.bytes("out/exposures.tsv"), bench.bytes("other/exposures.tsv"));
}

#[test]
fn the_components_of_a_fit_are_found_in_new_samples() {
    let bench = Bench::new();
    samples(&bench, "new.tsv");
    bench.ok("fit new.tsv --noise poisson --coarsening 1 --seed 1 --out fit --quiet");
    bench.ok("assign new.tsv --signatures fit --out out --quiet");
    let [of_fit, found] = ["fit/exposures.tsv", "out/exposures.tsv"].map(|name| rows(&bench, name));
    for ((name, of_fit), (_, found)) in of_fit.iter().zip(&found) {
        for (one, other) in of_fit.iter().zip(found) {
            assert!((one - other).abs() < 40.0, "{name}: {of_fit:?} {found:?}");
        }
    }
    assert_eq!(bench.json("out/summary.json")["prior"], "of the fit");
}

#[test]
fn what_cannot_be_assigned_is_refused_with_the_remedy_and_nothing_is_written() {
    let bench = Bench::new();
    known(&bench, "known.tsv", 4);
    samples(&bench, "new.tsv");
    bench.write("other.tsv", "gene\tS0\nTP53\t1\nACTB\t2\n");
    let told = bench.fails("assign new.tsv --signatures other.tsv --out out", 2);
    assert!(told.contains("name its rows as the features are named"), "{told}");
    let told = bench.fails("assign new.tsv --signatures . --out out", 2);
    assert!(told.contains("no model.npz") && told.contains("the output folder of bpnmf fit"), "{told}");
    let told = bench.fails("assign new.tsv --signatures known.tsv --out out --draws 3", 2);
    assert!(told.starts_with("--draws is 3"), "{told}");
    assert!(!exists(&bench.path("out")), "something was written");
    bench.ok("assign new.tsv --signatures known.tsv --out out --quiet");
    let told = bench.fails("assign new.tsv --signatures known.tsv --out out", 2);
    assert!(told.contains("overwrite it with --force"), "{told}");
}

#[test]
fn shells_and_the_manual_know_all_commands() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = bench.ok(&format!("completions {shell}"));
        assert!(script.contains("assign") && script.contains("signatures"), "{shell}");
    }
    assert!(bench.ok("man").contains(".TH bpnmf 1"));
    bench.ok("man --out pages");
    assert!(String::from_utf8(bench.bytes("pages/bpnmf-assign.1")).unwrap().contains("signatures"));
}
