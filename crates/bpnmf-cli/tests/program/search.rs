//! The preset `auto`: its flags, what it tells about the search, and that it finds what is there.

use crate::{Bench, exists};
use bpnmf_io::Array;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// The sentence about `flags`; nothing may be written.
fn refusal(bench: &Bench, flags: &str) -> String {
    let sentence = bench.fails(&format!("fit table.csv {flags} --out out"), 2);
    assert!(!exists(&bench.path("out")), "nothing is written: {flags}");
    sentence
}

/// The rows of trace.csv under its header.
fn rows(bench: &Bench, name: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let text = String::from_utf8(bench.bytes(name)).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    (lines.next().unwrap(), lines.collect())
}

/// A smooth signal, not counts: four humps that rise and fall at times of their own, times `scale`.
fn smooth(bench: &Bench, name: &str, scale: f64) {
    let bump = |x: f64, at: f64, width: f64| (-((x - at) / width).powi(2)).exp();
    let value = |f: usize, t: usize| -> f64 {
        let part = |k: usize| {
            let (k, f, t) = (k as f64, f as f64, t as f64);
            bump(f, 5.0 + 10.0 * k, 2.0) * bump(t, 20.0 + 25.0 * k, 9.0)
        };
        (0..4).map(part).sum()
    };
    let values: Vec<f64> = (0..40 * 120).map(|i| (scale * value(i / 120, i % 120)).round()).collect();
    bpnmf_io::write_npy(&bench.path(name), &Array::new(&[40, 120], &values[..])).unwrap();
}

#[test]
fn what_is_learned_cannot_be_set_and_what_belongs_to_the_search_needs_it() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    for flag in ["--a 1", "--b 1", "--c 1", "--d 1", "--prior authors"] {
        let name = flag.split(' ').next().unwrap();
        assert_eq!(
            refusal(&bench, flag),
            format!(
                "{name} cannot be set here, a, b, c and d are learned: leave it out or use --preset paper"
            )
        );
    }
    assert_eq!(
        refusal(&bench, "--init scaled"),
        "--init cannot be set here, the search decides the start: leave it out or use --preset paper"
    );
    for flag in ["--coarsening 0.5", "--force-components 3"] {
        let name = flag.split(' ').next().unwrap();
        assert_eq!(
            refusal(&bench, &format!("--preset paper {flag}")),
            format!("{name} belongs to the search: leave it out or use --preset auto")
        );
    }
}

#[test]
fn flags_of_the_search_out_of_range_are_named() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    for (flags, told) in [
        ("--coarsening 0", "--coarsening is 0: it must be above 0 and at most 1"),
        ("--coarsening -1", "--coarsening is -1: it must be above 0 and at most 1"),
        ("--coarsening 1.5", "--coarsening is 1.5: it must be above 0 and at most 1"),
        ("--coarsening nan", "--coarsening is NaN: it must be above 0 and at most 1"),
        ("--force-components 0", "--force-components is 0: it must be between 1 and 10000"),
        (
            "--force-components 6 --max-components 5",
            "--force-components is 6: it must be between 1 and 5, the number of --max-components",
        ),
    ] {
        assert_eq!(refusal(&bench, flags), told);
    }
}

#[test]
fn the_summary_tells_what_the_search_found() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    bench.ok("fit table.csv --b0 2 --out out");
    let summary = bench.json("out/summary.json");
    assert_eq!((&summary["preset"], &summary["method"]), (&"auto".into(), &"gibbs".into()));
    assert_eq!((&summary["n_components"], &summary["n_surplus"]), (&2.into(), &0.into()));
    assert_eq!(summary["coarsening"], 1.0);
    let dispersion = summary["dispersion"].as_object().unwrap();
    assert!(dispersion.contains_key("small") && dispersion.contains_key("all"));
    let path = summary["resolution_path"].as_array().unwrap();
    let powers: Vec<f64> = path.iter().map(|at| at["coarsening"].as_f64().unwrap()).collect();
    assert!(powers.len() > 1 && powers.is_sorted() && powers.last() == Some(&1.0), "{powers:?}");
    assert_eq!(path.last().unwrap()["n_components"], 2);
    let prior = &summary["prior"];
    assert_eq!((&prior["a0"], &prior["b0"], &prior["components"]), (&1.0.into(), &2.0.into(), &500.into()));
    let given = ["a", "b", "c", "d"].iter().zip([0.5, 0.5, 5.0, 5.0]);
    assert!(given.into_iter().all(|(name, value)| prior[name] != value), "learned: {prior}");
    for component in summary["components"].as_array().unwrap() {
        assert!(component["evidence"].as_f64().unwrap() > 10.0);
        assert!((5.0..8.0).contains(&component["usage"].as_f64().unwrap()));
    }
}

#[test]
fn without_a_search_there_is_no_path_and_no_evidence() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    bench.ok("fit table.csv --preset paper -k 10 --out out");
    let summary = bench.json("out/summary.json");
    assert_eq!((&summary["method"], &summary["coarsening"]), (&"ssmf".into(), &1.0.into()));
    assert_eq!(summary["resolution_path"], serde_json::json!([]));
    assert_eq!(summary["dispersion"], serde_json::json!({ "small": null, "all": null }));
    assert!(summary["components"][0]["evidence"].is_null());
    assert!(summary["components"][0]["usage"].as_f64().unwrap() > 1.0);
    let (_, rows) = rows(&bench, "out/trace.csv");
    assert_eq!(rows[0][0], "1", "no path");
}

#[test]
fn the_path_stands_on_top_of_the_rows_of_every_chain() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    bench.ok("fit table.csv --chains 2 -n 6 --out out");
    let shown = bench.json("out/summary.json");
    let (header, rows) = rows(&bench, "out/trace.csv");
    let coarsening = header.iter().position(|name| name == "coarsening").unwrap();
    assert_eq!(header[coarsening + 1], "n_components");
    let chain = header.iter().position(|name| name == "chain").unwrap();
    for (place, number) in [(1, "1"), (2, "2")] {
        let of_chain: Vec<&Vec<String>> = rows.iter().filter(|row| row[chain] == number).collect();
        let (path, iterations): (Vec<&Vec<String>>, Vec<_>) =
            of_chain.iter().copied().partition(|row| row[0] == "0");
        assert!(path.len() > 1 && of_chain[path.len()][0] == "1", "on top, chain {number}");
        assert_eq!(iterations.len(), 6);
        assert!(iterations.iter().all(|row| row[coarsening] == "1" && !row[chain + 1].is_empty()));
        for row in &path {
            let filled: Vec<usize> = (0..row.len()).filter(|&i| !row[i].is_empty()).collect();
            assert_eq!(filled, [0, 1, chain, coarsening, coarsening + 1]);
            assert_eq!(row[1], row[coarsening + 1]);
        }
        if shown["chain_shown"] == place {
            let told: Vec<(String, String)> = shown["resolution_path"]
                .as_array()
                .unwrap()
                .iter()
                .map(|at| (at["n_components"].to_string(), at["coarsening"].as_f64().unwrap().to_string()))
                .collect();
            let traced: Vec<(String, String)> =
                path.iter().map(|row| (row[1].clone(), row[coarsening].clone())).collect();
            assert_eq!(traced, told);
        }
    }
}

#[test]
fn the_parts_of_synthetic_counts_are_counted_right_with_nothing_set() {
    let bench = Bench::new();
    bench.ok("synth --seed 1 --out data");
    bench.ok("fit data/X.npy --out out");
    assert_eq!(bench.json("out/summary.json")["n_components"], 16);
    assert_eq!(bench.arrays("data/truth.npz").last().unwrap().2, [16.0]);
}

#[test]
fn forced_components_are_exactly_as_many_as_were_asked_for() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    for wanted in [1, 2, 3, 7] {
        for engine in ["gibbs", "ssmf"] {
            let flags = format!("--force-components {wanted} --engine {engine} --chains 2");
            bench.ok(&format!("fit table.csv {flags} --out out --force"));
            let summary = bench.json("out/summary.json");
            assert_eq!(summary["n_components"], wanted, "{flags}");
            assert!(summary["n_components_interval"].is_null(), "{flags}: it was given");
            assert_eq!(summary["resolution_path"], serde_json::json!([]), "{flags}");
            assert_eq!(summary["components"].as_array().unwrap().len(), wanted, "{flags}");
            assert_eq!(bench.arrays("out/model.npz")[0].1, [6, wanted], "{flags}");
        }
    }
}

#[test]
fn smooth_data_are_read_more_coarsely_unless_told_not_to() {
    let bench = Bench::new();
    smooth(&bench, "smooth.npy", 1000.0);
    bench.ok("fit smooth.npy --chains 1 --out chosen");
    let chosen = bench.json("chosen/summary.json");
    let power = chosen["coarsening"].as_f64().unwrap();
    assert!(power > 0.0 && power < 0.2, "{power}");
    assert_eq!(chosen["n_components"], 4);
    let (header, rows) = rows(&bench, "chosen/trace.csv");
    let coarsening = header.iter().position(|name| name == "coarsening").unwrap();
    assert_eq!(rows.last().unwrap()[coarsening], power.to_string());
    for power in [1.0, 0.05] {
        bench.ok(&format!("fit smooth.npy --chains 1 --coarsening {power} --out told --force"));
        let told = bench.json("told/summary.json");
        assert_eq!(told["coarsening"], power);
        let arrays = bench.arrays("told/model.npz");
        let (w, h, parts) = (&arrays[0].2, &arrays[1].2, arrays[3].2.len());
        let total: f64 = (0..parts)
            .map(|k| {
                let of_w: f64 = (0..40).map(|f| w[f * parts + k]).sum();
                of_w * h[k * 120..][..120].iter().sum::<f64>()
            })
            .sum();
        let ratio = total / told["input"]["total"].as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 0.05, "W H is in the units of the data: {ratio}");
    }
}

#[test]
fn data_with_fractions_are_fitted_by_an_engine_that_can() {
    let bench = Bench::new();
    bench.write("table.csv", "10.5,0,30.25,0\n20,1,64.5,0.5\n0,40.5,1,20\n0,81,0,42.5\n");
    bench.ok("fit table.csv --out out");
    assert_eq!(bench.json("out/summary.json")["method"], "ssmf");
    std::fs::remove_dir_all(bench.path("out")).unwrap();
    assert_eq!(
        refusal(&bench, "--burn-in 5"),
        "--burn-in belongs to the Gibbs engines: leave it out or choose another --engine"
    );
    let told = "table.csv: entry (0, 0) is 10.5, which is not a whole number: gibbs draws counts; \
                round the data or use the ssmf engine";
    assert_eq!(refusal(&bench, "--engine gibbs"), told);
}

#[test]
fn only_a_truncation_that_was_asked_for_is_warned_of() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    let warnings = |flags: &str| {
        let told = bench.warns(&format!("fit table.csv {flags} --out out --force --quiet"));
        let warnings = bench.json("out/summary.json")["warnings"].to_string();
        let sentences = told.lines().map(|line| line.strip_prefix("warning: ").unwrap());
        assert!(sentences.into_iter().all(|sentence| warnings.contains(sentence)), "{told}");
        warnings
    };
    let told =
        "the number of components comes within 10 % of the most there can be, 2: use more --max-components";
    assert!(warnings("--max-components 2").contains(told));
    assert!(!warnings("").contains("--max-components"));
    assert!(!warnings("--components 2 --force-components 2").contains("--max-components"));
}

#[test]
fn json_progress_tells_the_steps_of_the_search() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    let printed = bench.ok("fit table.csv -n 4 --chains 2 --out out --json-progress");
    let events: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for chain in [1, 2] {
        let of_chain: Vec<&Value> = events.iter().filter(|event| event["chain"] == chain).collect();
        let (search, iterations) = of_chain.split_at(of_chain.len() - 4);
        assert!(search.len() > 2 && search.iter().all(|event| event["event"] == "search"));
        assert!(iterations.iter().all(|event| event["event"] == "iteration"));
        for event in search {
            assert!(event["stage"].is_string() && event["active"].is_u64() && event["seconds"].is_f64());
            assert_eq!(event.as_object().unwrap().len(), 5);
        }
    }
    assert_eq!(events.last().unwrap()["coarsening"], 1.0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_during_the_search_ends_the_run_with_what_there_is() {
    let bench = Bench::new();
    bench.ok("synth --seed 1 --out data");
    let mut command =
        bench.command("fit data/X.npy -n 1000000 --no-stop --chains 1 --out out --json-progress");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["event"], "search");
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    lines.last().unwrap().unwrap();
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{told}");
    assert_eq!(
        told,
        "error: interrupted after iteration 1 of 1000000: the results so far are in out; go on with bpnmf resume out\n",
        "the search ends early, one iteration makes a result of it"
    );
    let summary = bench.json("out/summary.json");
    assert_eq!(summary["stop_reason"], "interrupted");
    assert!(summary["n_components"].as_u64().unwrap() > 0);
}

#[test]
fn several_searches_do_not_depend_on_threads() {
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 20 --observations 80 --gamma scale --out data");
    for engine in ["gibbs", "ssmf"] {
        let fit = |threads: usize| {
            let flags = format!("--engine {engine} --chains 3 -n 20 --seed 7 --threads {threads}");
            bench.ok(&format!("fit data/X.npy {flags} --out out --force"));
            let mut summary = bench.json("out/summary.json");
            for key in ["seconds", "threads"] {
                summary.as_object_mut().unwrap().remove(key).unwrap();
            }
            (bench.bytes("out/model.npz"), summary)
        };
        let (one, two) = (fit(1), fit(2));
        assert!(one.0 == two.0, "the model, {engine}");
        assert_eq!(one.1, two.1, "{engine}");
    }
}
