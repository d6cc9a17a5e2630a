//! What a fit writes.

use crate::{Bench, exists};

#[test]
fn a_fit_finds_the_two_parts_of_a_table_and_writes_all_about_them() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    bench.ok("fit table.csv --preset paper --engine gibbs --init scaled -k 10 --seed 5 --threads 1 --out new/folder");

    let summary = bench.json("new/folder/summary.json");
    assert_eq!(summary["n_components"], 2);
    assert_eq!(summary["method"], "gibbs");
    assert_eq!(summary["preset"], "paper");
    assert_eq!(summary["seed"], 5);
    assert_eq!(summary["iterations"], 400);
    assert_eq!(summary["threads"], 1);
    assert_eq!(summary["whole_counts"], true);
    assert_eq!(summary["version"], env!("CARGO_PKG_VERSION"));
    assert!(summary["held_out_log_likelihood"].is_null());
    let prior = serde_json::json!({ "a": 0.5, "b": 0.5, "c": 5.0, "d": 5.0, "a0": 1.0, "b0": 1.0, "components": 10, "number": "beta-process" });
    assert_eq!(summary["prior"], prior);
    assert_eq!(summary["input"]["path"], "table.csv");
    assert_eq!((&summary["input"]["features"], &summary["input"]["observations"]), (&6.into(), &12.into()));
    assert_eq!(summary["input"]["nonzeros"], 39);
    let first = &summary["components"][0];
    assert_eq!(first["index"], 0);
    assert!(first["share"].as_f64().unwrap() > 0.4);
    assert!(first["usage"].as_f64().unwrap() > 5.5);
    assert_eq!(first["top_features"].as_array().unwrap().len(), 5);
    let mut leaders: Vec<u64> =
        (0..2).map(|k| summary["components"][k]["top_features"][0].as_u64().unwrap()).collect();
    leaders.sort_unstable();
    assert_eq!(leaders, [2, 3], "without names the strongest features are indices");

    assert!(!exists(&bench.path("new/folder/names.json")), "there are no names");
    let left: Vec<_> = std::fs::read_dir(bench.path("new/folder")).unwrap().collect();
    assert_eq!(left.len(), 10, "three files and seven tables, and no temporary file stays behind");
}

#[test]
fn the_trace_has_a_row_an_iteration_and_shares_that_add_up() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    bench.ok("fit table.csv --preset paper -k 10 -n 7 --no-stop --out out");
    let trace = String::from_utf8(bench.bytes("out/trace.csv")).unwrap();
    let mut lines = trace.lines();
    assert_eq!(
        lines.next().unwrap(),
        "iteration,active,on_anywhere,sites_on,log_likelihood,log_joint,held_out,\
         h_free,linear,jensen,moments,logarithms,exact,forced,flips,seconds,\
         chain,activation,reconstruction_1,reconstruction_2,reconstruction_3,reconstruction_4,coarsening,n_components,\
         births,births_accepted,deaths,deaths_accepted"
    );
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 7);
    for (i, row) in rows.iter().enumerate() {
        assert_eq!((row.len(), row[0], row[16]), (28, (i + 1).to_string().as_str(), "1"));
        assert!(row[17..24].iter().all(|value| value.parse::<f64>().unwrap() > 0.0));
        assert_eq!(row[22], "1", "read in full");
        assert_eq!(row[24..], ["0"; 4], "the number is not sampled");
        assert_eq!(row[6], "", "nothing was held out");
        let decided: f64 = row[7..14].iter().map(|share| share.parse::<f64>().unwrap()).sum();
        assert!((decided - 1.0).abs() < 1e-9, "{decided}");
    }
}

#[test]
fn names_of_the_file_stand_beside_the_model_and_follow_a_transpose() {
    let bench = Bench::new();
    bench.write("named.csv", "gene,cell 1,cell 2,cell 3\nACTB,30,0,20\nTP53,0,4,5\n");
    bench.ok("fit named.csv -k 4 -n 20 --out out");
    let names =
        serde_json::json!({ "features": ["ACTB", "TP53"], "observations": ["cell 1", "cell 2", "cell 3"] });
    assert_eq!(bench.json("out/names.json"), names);
    assert_eq!(bench.json("out/summary.json")["components"][0]["top_features"][0], "ACTB");
    let told = bench.warns("fit named.csv --transpose -k 4 -n 20 --quiet --out turned");
    let hint = "warning: observations have names of genes (ACTB): if these are the features, leave --transpose out\n";
    assert!(told.starts_with(hint), "{told}");
    assert_eq!(bench.json("turned/names.json")["features"][2], "cell 3");
    assert_eq!(bench.json("turned/summary.json")["input"]["features"], 3);
}

/// A table by tabs: the names of its columns, and its rows with their names.
fn table(bench: &Bench, name: &str) -> (Vec<String>, Vec<(String, Vec<f64>)>) {
    let text = String::from_utf8(bench.bytes(name)).unwrap();
    let cells = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
    let mut lines = text.lines();
    let header = cells(lines.next().unwrap()).split_off(1);
    let row = |line: &str| {
        let cells = cells(line);
        (cells[0].clone(), cells[1..].iter().map(|cell| cell.parse().unwrap()).collect())
    };
    (header, lines.map(row).collect())
}

#[test]
fn tables_have_names_and_units_and_are_those_of_the_model_file() {
    let bench = Bench::new();
    let header: Vec<String> = (0..12).map(|t| format!("cell {t}")).collect();
    let row = |f: usize| {
        format!("g{f},{}\n", (0..12).map(|t| crate::value(f, t).to_string()).collect::<Vec<_>>().join(","))
    };
    bench.write("named.csv", format!("gene,{}\n{}", header.join(","), (0..6).map(row).collect::<String>()));
    bench.ok("fit named.csv --report --out out");
    let (components, signatures) = table(&bench, "out/signatures.tsv");
    assert_eq!(components, ["C1", "C2"]);
    assert_eq!(
        signatures.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["g0", "g1", "g2", "g3", "g4", "g5"]
    );
    let (_, exposures) = table(&bench, "out/exposures.tsv");
    assert_eq!(exposures.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), header);
    for k in 0..2 {
        let sum: f64 = signatures.iter().map(|(_, row)| row[k]).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    }
    // Every observation is as large as its counts.
    for (t, (_, row)) in exposures.iter().enumerate() {
        let counts: f64 = (0..6).map(|f| crate::value(f, t) as f64).sum();
        assert!((row.iter().sum::<f64>() / counts - 1.0).abs() < 0.1, "{t}: {row:?} of {counts}");
    }
    let arrays = bench.arrays("out/model.npz");
    let array = |name: &str| &arrays.iter().find(|(known, ..)| known == name).unwrap().2;
    for (file, name, across) in [
        ("signatures.tsv", "W", false),
        ("signatures_low.tsv", "W_low", false),
        ("signatures_high.tsv", "W_high", false),
        ("exposures.tsv", "H", true),
        ("exposures_low.tsv", "H_low", true),
        ("exposures_high.tsv", "H_high", true),
        ("inclusion.tsv", "S", true),
    ] {
        let (_, rows) = table(&bench, &format!("out/{file}"));
        for (i, (_, row)) in rows.iter().enumerate() {
            for (k, value) in row.iter().enumerate() {
                let at = if across { k * rows.len() + i } else { i * 2 + k };
                // Over what a column of W adds up to, or times it.
                let size: f64 = array("W").iter().skip(k).step_by(2).sum();
                let size = if name == "S" {
                    1.0
                } else if across {
                    size
                } else {
                    1.0 / size
                };
                let expected = array(name)[at] * size;
                assert!((value - expected).abs() <= 1e-5 * expected, "{file}: {value} {expected}");
            }
        }
    }
    // The same names in the summary, in the program's lines and on the page.
    let summary = bench.json("out/summary.json");
    assert_eq!(
        (&summary["components"][0]["name"], &summary["components"][1]["name"]),
        (&"C1".into(), &"C2".into())
    );
    let page = String::from_utf8(bench.bytes("out/report.html")).unwrap();
    assert!(page.contains("<h3>C1 ") && page.contains("<h3>C2 "), "cards have the names");
    // A table is read again as it was written.
    bench.ok(
        "fit out/exposures.tsv --transpose --chains 1 --preset paper --engine ssmf -n 3 --quiet --out again",
    );
    assert_eq!(bench.json("again/names.json")["features"], serde_json::json!(["C1", "C2"]));
    // Intervals that nobody knows do not outlive those of a former run.
    bench.ok("fit named.csv --engine ssmf --out out --force");
    assert!(!exists(&bench.path("out/signatures_low.tsv")) && exists(&bench.path("out/signatures.tsv")));
}

#[test]
fn a_report_is_written_when_asked_for_and_does_not_outlive_its_result() {
    let bench = Bench::new();
    bench.write("named.csv", "gene,cell 1,cell 2,cell 3\nA<b>&\"'C,30,0,20\nTP53,0,4,5\n");
    bench.ok("fit named.csv --out out");
    assert!(!exists(&bench.path("out/report.html")), "nobody asked");
    bench.ok("fit named.csv --out out --report --force");
    let page = String::from_utf8(bench.bytes("out/report.html")).unwrap();
    let parts = bench.json("out/summary.json")["n_components"].as_u64().unwrap();
    assert!(page.contains(&format!("<b>{parts} component")), "the same number as in the summary");
    assert!(page.contains("A&lt;b&gt;&amp;&quot;&#39;C") && !page.contains("A<b>"));
    assert!(page.contains("<h1>named.csv</h1>") && page.contains("strongest in cell 1, cell 3"));

    let sentence = bench.fails("fit named.csv --out out", 2);
    assert!(sentence.contains("--force"), "{sentence}");
    bench.ok("fit named.csv --out out --force");
    assert!(!exists(&bench.path("out/report.html")), "the page was about another run");
}

#[test]
fn held_out_counts_are_scored_every_iteration() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    for engine in ["ssmf", "gibbs", "gibbs-expected"] {
        bench.ok(&format!(
            "fit table.csv --engine {engine} -k 10 -n 5 --chains 1 --held-out 0.2 --out {engine}"
        ));
        let summary = bench.json(&format!("{engine}/summary.json"));
        assert_eq!(summary["held_out_fraction"], 0.2);
        let score = summary["held_out_log_likelihood"].as_f64().unwrap();
        assert!(score < 0.0, "{score}");
        let trace = String::from_utf8(bench.bytes(&format!("{engine}/trace.csv"))).unwrap();
        let traced: f64 = trace.lines().last().unwrap().split(',').nth(6).unwrap().parse().unwrap();
        assert!((traced - score).abs() < 1e-12, "{traced} {score}");
    }
}

#[test]
fn a_run_stops_early_when_its_objective_settles_unless_told_not_to() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    bench.ok("fit table.csv --preset paper -k 5 --tolerance 0.05 --out early");
    let early = bench.json("early/summary.json");
    assert_eq!(early["stop_reason"], "converged");
    assert!(early["iterations"].as_u64().unwrap() < 200);
    bench.ok("fit table.csv --preset paper -k 5 --no-stop --out late");
    let late = bench.json("late/summary.json");
    assert_eq!((&late["stop_reason"], &late["iterations"]), (&"iteration limit".into(), &200.into()));
}

#[test]
fn the_prior_is_the_one_that_was_asked_for() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    bench.ok("fit table.csv -k 5 -n 3 --prior authors --c 2 --b0 3 --preset paper --out out");
    let summary = bench.json("out/summary.json");
    let prior = serde_json::json!({ "a": 0.1, "b": 0.1, "c": 2.0, "d": 0.1, "a0": 1.0, "b0": 3.0, "components": 5, "number": "beta-process" });
    assert_eq!(summary["prior"], prior);
    assert_eq!(summary["preset"], "paper");
}

#[test]
fn fractions_are_fitted_by_the_engines_that_use_expectations() {
    let bench = Bench::new();
    bench.write("fractions.csv", "1.5,2,3.25\n4,0.5,6.5\n");
    for engine in ["ssmf", "gibbs-expected"] {
        bench.ok(&format!("fit fractions.csv --preset paper --engine {engine} -k 5 -n 10 --out {engine}"));
        assert_eq!(bench.json(&format!("{engine}/summary.json"))["whole_counts"], false);
    }
}

#[test]
fn every_option_of_the_fast_engine_is_heard() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    let model = |flags: &str| {
        bench.ok(&format!("fit table.csv --preset paper -k 10 -n 15 {flags} --out out --force"));
        bench.bytes("out/model.npz")
    };
    let plain = model("");
    let options = [
        "--init scaled",
        "--sweeps 3",
        "--step-power 0.8",
        "--step-offset 5",
        "--prune 0.5",
        "--a 2",
        "--seed 1",
    ];
    for flags in options {
        assert_ne!(model(flags), plain, "{flags}");
    }
    assert_eq!(model("--prune 0.5 --prune-from 1000"), plain, "pruning that never starts");
}

#[test]
fn the_noise_that_was_asked_for_is_in_summary_and_page_for_every_engine() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    for flags in [
        "--preset paper --engine ssmf",
        "--preset paper --engine gibbs",
        "--preset paper --engine gibbs-expected",
        "--engine ssmf",
        "--engine gibbs",
    ] {
        for (noise, name, alpha, told) in [
            ("poisson", "poisson", None, "Counts scatter as Poisson counts do."),
            ("4", "scattered", Some(4.0), "Counts scatter 50 % beyond counting noise (alpha = 4.0)."),
        ] {
            bench.ok(&format!("fit table.csv {flags} --noise {noise} -k 5 -n 6 --report --force --out out"));
            let summary = bench.json("out/summary.json");
            assert_eq!(
                (summary["noise"].as_str(), summary["alpha"].as_f64()),
                (Some(name), alpha),
                "{flags}"
            );
            let page = String::from_utf8(bench.bytes("out/report.html")).unwrap();
            // A table this small does not say how its counts scatter, so the search does not claim to know.
            let read = noise == "poisson" && !flags.contains("paper");
            let told = if read { "Counts are read as Poisson counts: with fewer than 40 rows" } else { told };
            assert!(page.contains(told) && page.contains("<h2>How counts scatter</h2>"), "{flags}");
            assert_eq!(page.contains("class=\"counting\""), alpha.is_some(), "{flags}");
        }
    }
}

#[test]
fn without_a_search_nobody_learns_the_noise_and_counts_are_poisson() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    for (noise, out) in [("auto", "auto"), ("poisson", "poisson"), ("4", "scattered")] {
        bench.ok(&format!(
            "fit table.csv --preset paper --noise {noise} -k 5 -n 9 --held-out 0.2 --out {out}"
        ));
    }
    let model = |out: &str| bench.bytes(&format!("{out}/model.npz"));
    assert_eq!(model("auto"), model("poisson"));
    assert_ne!(model("auto"), model("scattered"));
    assert!(bench.json("scattered/summary.json")["held_out_log_likelihood"].is_f64());
}

#[test]
fn the_number_of_parts_is_sampled_if_a_prior_is_asked_for_and_refused_where_it_cannot_be() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    bench.ok("fit table.csv --components-prior geometric:0.3 -n 150 --chains 1 --out out");
    let trace = String::from_utf8(bench.bytes("out/trace.csv")).unwrap();
    let rows = trace.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let sampled: Vec<Vec<&str>> = rows.filter(|row| row[0] != "0").collect();
    let tries = |row: &Vec<&str>| row[24].parse::<u32>().unwrap() + row[26].parse::<u32>().unwrap();
    assert_eq!(sampled.iter().map(tries).sum::<u32>(), 2);
    assert_eq!((tries(&sampled[69]), tries(&sampled[139])), (1, 1));
    assert_eq!(bench.json("out/summary.json")["prior"]["number"], "geometric:0.3");
    for (flags, sentence) in [
        ("--components-prior poisson", "it must be beta-process, uniform, poisson:MEAN"),
        (
            "--components-prior uniform --engine ssmf",
            "only the engine gibbs samples the number of components",
        ),
        ("--components-prior uniform --force-components 2", "a number that is forced has none"),
    ] {
        let told = bench.fails(&format!("fit table.csv --out bad {flags}"), 2);
        assert!(told.contains(sentence), "{told}");
    }
}
