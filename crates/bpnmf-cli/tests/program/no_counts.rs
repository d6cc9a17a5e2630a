//! Data that are no counts are fitted, and it is said what they look like.

use crate::Bench;

/// 12 features x 8 observations of one part, as `change` makes them of a count and the total of its observation.
fn table(change: impl Fn(f64, f64) -> f64) -> String {
    let count = |f: usize, t: usize| ((f * f + 3) % 11 * (t + 1) + (f * t) % 3) as f64;
    let total = |t: usize| (0..12).map(|f| count(f, t)).sum();
    let row =
        |f: usize| (0..8).map(|t| change(count(f, t), total(t)).to_string()).collect::<Vec<_>>().join(",");
    (0..12).map(|f| row(f) + "\n").collect()
}

/// Fits a table with these flags, and gives what stands on stderr; the same is among the warnings of the summary.
fn told(bench: &Bench, table: &str, flags: &str) -> String {
    bench.write("data.csv", table);
    let output = bench.run(&format!("fit data.csv -n 5 --out out --force {flags}"));
    let told = crate::told(output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let warnings = bench.json("out/summary.json")["warnings"].to_string();
    for line in told.lines() {
        let sentence = line.strip_prefix("warning: ").expect("a warning");
        assert!(warnings.contains(sentence), "{warnings}");
    }
    told
}

#[test]
fn a_warning_names_what_the_data_look_like_and_quiet_does_not_hide_it() {
    let bench = Bench::new();
    for (table, name) in [
        (
            table(|count, total| 1e6 * count / total),
            "every observation adds up to 1000000: the data look like counts per million",
        ),
        (
            table(|count, total| count / total),
            "every observation adds up to 1: the data look like frequencies",
        ),
        (table(|count, _| count.ln_1p()), "the data look like logarithms"),
        (table(|count, _| 0.3 * count), "all entries are whole numbers times 0.3"),
    ] {
        for flags in ["", "--quiet"] {
            let told = told(&bench, &table, flags);
            assert!(told.starts_with(&format!("warning: {name}")), "{told}");
            assert!(told.ends_with("give the raw counts\n") && told.lines().count() == 1, "{told}");
        }
    }
}

#[test]
fn the_page_and_the_last_object_of_json_progress_have_the_warning_too() {
    let bench = Bench::new();
    bench.write("data.csv", table(|count, total| count / total));
    let output = bench.run("fit data.csv -n 5 --out out --json-progress --report");
    let events = String::from_utf8(output.stdout).unwrap();
    assert!(events.lines().last().unwrap().contains("look like frequencies"), "{events}");
    assert!(String::from_utf8(bench.bytes("out/report.html")).unwrap().contains("look like frequencies"));
}

#[test]
fn counts_and_expected_counts_get_no_warning() {
    let bench = Bench::new();
    assert_eq!(told(&bench, &table(|count, _| count), ""), "");
    assert_eq!(told(&bench, &table(|count, _| if count == 12.0 { 12.5 } else { count }), ""), "");
    bench.ok("synth --seed 1 --features 20 --observations 30 --out made");
    bench.ok("fit made/X.npy -n 5 --out of-made");
}
