//! Bad data and bad requests: exit code 2, one sentence that names the place, and nothing written.

use crate::{Bench, exists};
use bpnmf_io::Array;

/// The sentence about `arguments`; the folder `out` must not come into being.
fn refusal(bench: &Bench, arguments: &str) -> String {
    let sentence = bench.fails(&format!("fit {arguments} --out out"), 2);
    assert!(!exists(&bench.path("out")), "nothing is written: {arguments}");
    sentence
}

#[test]
fn a_missing_file_is_named() {
    assert_eq!(refusal(&Bench::new(), "nowhere.csv"), "nowhere.csv: there is no such file");
}

#[test]
fn an_unknown_format_is_refused_with_those_that_are_known() {
    let bench = Bench::new();
    bench.write("sheet.xlsx", "anything");
    assert_eq!(
        refusal(&bench, "sheet.xlsx"),
        "sheet.xlsx: files that end in .xlsx cannot be read: use .npy, .npz, .csv, .tsv, .txt, .mtx \
         (the text formats also with .gz after it), .h5ad or .h5"
    );
    bench.write("text.npy", "1,2\n3,4\n");
    assert!(refusal(&bench, "text.npy").starts_with("text.npy: "));
}

#[test]
fn a_truncated_array_is_refused() {
    let bench = Bench::new();
    let values = [1.0f64; 100];
    bpnmf_io::write_npy(&bench.path("whole.npy"), &Array::new(&[10, 10], &values[..])).unwrap();
    let whole = bench.bytes("whole.npy");
    for length in [0, 5, 20, 200, whole.len() - 1] {
        bench.write("part.npy", &whole[..length]);
        let sentence = refusal(&bench, "part.npy");
        assert!(sentence.starts_with("part.npy: "), "{sentence}");
    }
}

#[test]
fn entries_that_are_no_counts_are_named_with_their_place() {
    let bench = Bench::new();
    for (bad, told) in [
        (f64::NAN, "entry (1, 2) is NaN: counts must be finite; if it was not observed, use --missing"),
        (f64::INFINITY, "entry (1, 2) is inf: counts must be finite"),
        (
            -2.0,
            "entry (1, 2) is -2: counts cannot be negative; if these are logarithms or z-scores, give the raw counts",
        ),
    ] {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, bad];
        bpnmf_io::write_npy(&bench.path("bad.npy"), &Array::new(&[2, 3], &values[..])).unwrap();
        assert_eq!(refusal(&bench, "bad.npy"), format!("bad.npy: {told}"));
        assert_eq!(refusal(&bench, "bad.npy --transpose"), format!("bad.npy: {told}"), "as the file has it");
    }
}

#[test]
fn an_empty_matrix_is_refused() {
    let bench = Bench::new();
    bpnmf_io::write_npy(&bench.path("empty.npy"), &Array::new(&[0, 3], Vec::<f64>::new())).unwrap();
    assert!(refusal(&bench, "empty.npy").contains("empty (0 x 3)"));
    bench.write("empty.csv", "");
    assert!(refusal(&bench, "empty.csv").contains("empty"));
}

#[test]
fn a_ragged_table_and_text_in_a_cell_are_named_with_their_line() {
    let bench = Bench::new();
    bench.write("ragged.csv", "1,2,3\n4,5\n");
    assert_eq!(refusal(&bench, "ragged.csv"), "ragged.csv: line 2 has 2 cells, line 1 has 3");
    bench.write("text.csv", "1,2,3\n4,five,6\n");
    assert_eq!(refusal(&bench, "text.csv"), "text.csv: line 2, column 2 is \"five\": cells must be numbers");
}

#[test]
fn fractions_are_refused_by_what_needs_whole_counts_with_their_place_in_the_file() {
    let bench = Bench::new();
    bench.write("fractions.csv", "1,2,3\n4,5,6.5\n");
    let told = "fractions.csv: entry (1, 2) is 6.5, which is not a whole number: gibbs draws counts; \
                round the data or use the ssmf engine";
    assert_eq!(refusal(&bench, "fractions.csv --engine gibbs"), told);
    assert_eq!(refusal(&bench, "fractions.csv --engine gibbs --transpose"), told);
    assert_eq!(
        refusal(&bench, "fractions.csv --held-out 0.1"),
        "fractions.csv: entry (1, 2) is 6.5, which is not a whole number: --held-out splits counts; \
         round the data or leave --held-out out"
    );
}

#[test]
fn flags_out_of_range_are_named() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    for (flags, told) in [
        ("--components 0", "--max-components is 0: it must be between 1 and 1000000"),
        ("--iterations 0", "--iterations is 0: it must be between 1 and 2^30"),
        ("--chains 0", "--chains is 0: it must be between 1 and 1000"),
        ("--chains 1001", "--chains is 1001: it must be between 1 and 1000"),
        ("--threads 0", "--threads is 0: it must be between 1 and 1024; leave it out to use all cores"),
        (
            "--threads 99999",
            "--threads is 99999: it must be between 1 and 1024; leave it out to use all cores",
        ),
        ("--preset paper --a -1", "--a is -1: it must be between 1e-6 and 1e9"),
        ("--preset paper --d nan", "--d is NaN: it must be between 1e-6 and 1e9"),
        ("--a0 0", "--a0 is 0: it must be between 1e-6 and 1e9"),
        ("--tolerance 2", "--tolerance is 2: it must be at least 0 and below 1"),
        ("--noise 0", "--noise is 0: it must be auto, poisson or a finite number above 0"),
        ("--noise -3", "--noise is -3: it must be auto, poisson or a finite number above 0"),
        ("--noise=-inf", "--noise is -inf: it must be auto, poisson or a finite number above 0"),
        ("--noise nan", "--noise is nan: it must be auto, poisson or a finite number above 0"),
        ("--noise nb", "--noise is nb: it must be auto, poisson or a finite number above 0"),
        ("--held-out 1", "--held-out is 1: it must be between 0 and 1"),
        ("--engine ssmf --sweeps 0", "--sweeps is 0: it must be at least 1"),
        ("--engine ssmf --step-power 1.5", "--step-power is 1.5: it must be between 0 and 1"),
        ("--engine ssmf --step-offset -1", "--step-offset is -1: it must be at least 0"),
        ("--preset paper --prune 1", "--prune is 1: it must be at least 0 and below 1"),
        (
            "--engine gibbs --iterations 10 --burn-in 10",
            "--burn-in is 10: it must be below the number of iterations, 10",
        ),
    ] {
        assert_eq!(refusal(&bench, &format!("table.csv {flags}")), told);
    }
}

#[test]
fn a_flag_of_another_engine_is_refused() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    for flag in ["--sweeps 2", "--step-power 0.6", "--step-offset 2", "--prune 0.1"] {
        for engine in ["gibbs", "gibbs-expected"] {
            let name = flag.split(' ').next().unwrap();
            assert_eq!(
                refusal(&bench, &format!("table.csv --engine {engine} {flag}")),
                format!("{name} belongs to the ssmf engine: leave it out or choose another --engine")
            );
        }
    }
    assert_eq!(
        refusal(&bench, "table.csv --engine ssmf --burn-in 5"),
        "--burn-in belongs to the Gibbs engines: leave it out or choose another --engine"
    );
}

#[test]
fn what_is_no_command_line_is_refused_with_code_2() {
    let bench = Bench::new();
    for arguments in
        ["", "fit", "fit a.csv", "fit a.csv --out o --engine magic", "fit a.csv --out o --seed x", "glue"]
    {
        assert_eq!(bench.run(arguments).status.code(), Some(2), "bpnmf {arguments}");
    }
}

#[test]
fn more_components_than_memory_holds_are_refused() {
    let bench = Bench::new();
    bpnmf_io::write_npy(&bench.path("wide.npy"), &Array::new(&[1, 2_000_000], vec![1u8; 2_000_000])).unwrap();
    let sentence = refusal(&bench, "wide.npy --preset paper --components 1000000");
    assert!(sentence.ends_with("B: use fewer --max-components, or --force to try it"), "{sentence}");
    let sentence = refusal(&bench, "wide.npy --preset paper --components 100000 --chains 900");
    assert!(sentence.contains(" in 900 chains need "), "{sentence}");
    assert!(
        sentence.ends_with("B: use fewer --max-components or --chains, or --force to try it"),
        "{sentence}"
    );
}

#[test]
fn results_are_overwritten_only_with_force() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    for name in ["model.npz", "summary.json", "trace.csv", "names.json", "report.html"] {
        let folder = format!("has-{name}");
        std::fs::create_dir(bench.path(&folder)).unwrap();
        bench.write(&format!("{folder}/{name}"), "precious");
        assert_eq!(
            bench.fails(&format!("fit table.csv --out {folder}"), 2),
            format!("{folder} already holds {name}: choose another folder or overwrite it with --force")
        );
        assert_eq!(bench.bytes(&format!("{folder}/{name}")), b"precious");
        bench.ok(&format!("fit table.csv --components 5 --iterations 3 --out {folder} --force"));
        assert_eq!(bench.json(&format!("{folder}/summary.json"))["iterations"], 3);
        assert!(!exists(&bench.path(&format!("{folder}/names.json"))), "the table has no names");
        assert!(!exists(&bench.path(&format!("{folder}/report.html"))), "nobody asked for a page");
    }
}

#[test]
fn a_folder_that_cannot_be_written_ends_with_code_1_before_the_work() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    for out in ["table.csv", "table.csv/inside", "table.csv/deep/inside"] {
        assert_eq!(
            bench.fails(&format!("fit table.csv --iterations 1000000 --no-stop --out {out}"), 1),
            format!(
                "cannot write to {out}: a file stands where a folder is needed; choose another --out folder"
            )
        );
    }
    assert_eq!(
        bench.fails("synth --seed 1 --out table.csv", 1).split(':').next(),
        Some("cannot write to table.csv")
    );
}
