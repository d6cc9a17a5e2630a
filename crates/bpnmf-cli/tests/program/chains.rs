//! Several chains: what is told about all of them, and that they do not disturb each other.

use crate::Bench;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// The rows of trace.csv by chain, without the column of the clock.
fn trace(bench: &Bench, name: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let text = String::from_utf8(bench.bytes(name)).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let (clock, chain) = (at("seconds"), at("chain"));
    let mut chains = BTreeMap::new();
    for mut row in lines {
        row[clock].clear();
        chains.entry(row[chain].clone()).or_insert_with(Vec::new).push(row);
    }
    chains
}

/// summary.json without what may differ between two runs of the same request.
fn summary(bench: &Bench, name: &str) -> Value {
    let mut summary = bench.json(name);
    for key in ["seconds", "threads"] {
        assert!(summary.as_object_mut().unwrap().remove(key).is_some());
    }
    summary
}

#[test]
fn the_summary_says_how_many_parts_there_are_and_how_sure_that_is() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    for (flags, chains) in [("--preset paper --engine gibbs --init scaled -k 10 --chains 3", 3), ("", 4)] {
        bench.ok(&format!("fit table.csv {flags} --out out --force"));
        let summary = bench.json("out/summary.json");
        assert_eq!(summary["chains"], chains);
        assert_eq!(summary["n_components"], 2);
        let (first, last) = (&summary["n_components_interval"][0], &summary["n_components_interval"][1]);
        assert!(first.as_u64().unwrap() <= 2 && last.as_u64().unwrap() >= 2);
        let pmf = summary["n_components_pmf"].as_array().unwrap();
        let most = pmf.iter().max_by(|x, y| x[1].as_f64().unwrap().total_cmp(&y[1].as_f64().unwrap()));
        assert_eq!(most.unwrap()[0], 2);
        for component in summary["components"].as_array().unwrap() {
            assert_eq!(component["recurrence"], 1.0);
            let [least, most] = [0, 1].map(|i| component["share_interval"][i].as_f64().unwrap());
            assert!(
                (least..=most).contains(&component["share"].as_f64().unwrap()) && least > 0.2 && most < 0.8
            );
        }
        let total: f64 = pmf.iter().map(|pair| pair[1].as_f64().unwrap()).sum();
        assert!((total - 1.0).abs() < 1e-12, "{total}");
        assert!((1..=chains).contains(&summary["chain_shown"].as_u64().unwrap()));

        let convergence = summary["convergence"].as_array().unwrap();
        let names: Vec<&str> =
            convergence.iter().map(|quantity| quantity["name"].as_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "log_joint",
                "components",
                "activation",
                "reconstruction_1",
                "reconstruction_2",
                "reconstruction_3",
                "reconstruction_4"
            ]
        );
        let r_hat = convergence[0]["r_hat"].as_f64().unwrap();
        assert!(r_hat > 0.9 && r_hat < 2.0, "{r_hat}");
        assert!(convergence[0]["ess"].as_f64().unwrap() > 1.0);
    }
}

#[test]
fn a_number_of_parts_near_the_most_there_can_be_is_warned_of() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    let printed =
        bench.warns("fit table.csv --preset paper --engine gibbs --init scaled -k 1 --out tight --quiet");
    let told =
        "the number of components comes within 10 % of the most there can be, 1: use more --max-components";
    assert_eq!(printed, format!("warning: {told}\n"));
    let tight = bench.json("tight/summary.json");
    assert!(tight["warnings"].as_array().unwrap().contains(&told.into()), "{}", tight["warnings"]);
    bench.ok("fit table.csv --preset paper --engine gibbs --init scaled -k 30 --out wide");
    let wide = bench.json("wide/summary.json");
    let about_size = |warning: &Value| warning.as_str().unwrap().contains("--max-components");
    assert!(!wide["warnings"].as_array().unwrap().iter().any(about_size), "{}", wide["warnings"]);
}

#[test]
fn chains_that_do_not_agree_are_warned_of_with_quiet_too_and_one_chain_is_not() {
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 30 --observations 150 --out data");
    for chains in [2, 1] {
        let told = bench.warns(&format!(
            "fit data/X.npy --preset paper -k 100 -n 20 --chains {chains} --out out --force --quiet --report"
        ));
        let warnings = bench.json("out/summary.json")["warnings"].clone();
        let page = String::from_utf8(bench.bytes("out/report.html")).unwrap();
        if chains == 1 {
            assert!(!told.contains("chains") && !warnings.to_string().contains("chains"), "{told}");
            continue;
        }
        let warning = warnings[0].as_str().unwrap();
        assert!(warning.starts_with("the chains ") && warning.contains("R-hat"), "{warning}");
        assert!(told.starts_with(&format!("warning: {warning}\n")), "{told}");
        assert!(page.contains(warning), "{warning}");
    }
}

#[test]
fn one_chain_does_not_say_how_sure_it_is() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    bench.ok("fit table.csv --chains 1 --report --out out");
    let summary = bench.json("out/summary.json");
    assert_eq!((&summary["chains"], &summary["n_components"]), (&1.into(), &2.into()));
    for key in ["n_components_interval", "n_components_pmf"] {
        assert!(summary[key].is_null(), "{key}");
    }
    assert!(summary["convergence"].as_array().unwrap().iter().all(|quantity| quantity["r_hat"].is_null()));
    for component in summary["components"].as_array().unwrap() {
        assert!(component["recurrence"].is_null() && component["share_interval"].is_null());
    }
    let page = String::from_utf8(bench.bytes("out/report.html")).unwrap();
    assert!(page.contains("One chain: not known.") && !page.contains("90 % interval"));
}

#[test]
fn every_place_has_the_same_number_of_parts() {
    let bench = Bench::new();
    for seed in [3, 5] {
        bench.ok(&format!("synth --seed {seed} --features 20 --observations 80 --out data --force"));
        let printed = bench.ok("fit data/X.npy --chains 3 -n 20 --report --json-progress --out out --force");
        let summary = bench.json("out/summary.json");
        let number = summary["n_components"].as_u64().unwrap();
        let done: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
        assert_eq!(done["n_components"], number);
        assert_eq!(summary["components"].as_array().unwrap().len() as u64, number);
        assert_eq!(bench.arrays("out/model.npz")[3].1, [number as usize]);
        assert_eq!(summary["resolution_path"].as_array().unwrap().last().unwrap()["n_components"], number);
        let [first, last] = [0, 1].map(|i| summary["n_components_interval"][i].as_u64().unwrap());
        assert!((first..=last).contains(&number));
        let page = String::from_utf8(bench.bytes("out/report.html")).unwrap();
        assert!(page.contains(&format!("is made of <b>{number} components</b>")), "{number}");
        assert_eq!(page.matches("<article>").count() as u64, number);
        // The middle row of the chain that is shown has it, too.
        let shown = trace(&bench, "out/trace.csv").remove(&summary["chain_shown"].to_string()).unwrap();
        let rows = shown.iter().filter(|row| row[0].parse::<usize>().unwrap() > 4);
        let mut numbers: Vec<u64> = rows.map(|row| row[23].parse().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers[(numbers.len() - 1) / 2], number);
    }
}

#[test]
fn chains_do_not_depend_on_threads_and_the_first_is_the_run_alone() {
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 20 --observations 80 --out data");
    for engine in ["ssmf", "gibbs"] {
        let fit = |flags: &str, out: &str| {
            bench.ok(&format!(
                "fit data/X.npy --preset paper --engine {engine} -k 20 -n 24 --no-stop --seed 7 {flags} --out {out} --force"
            ));
        };
        fit("--chains 3 --threads 1", "one");
        for threads in [2, 5] {
            fit(&format!("--chains 3 --threads {threads}"), "more");
            for name in ["model.npz", "trace.csv", "summary.json"] {
                let (one, more) = (format!("one/{name}"), format!("more/{name}"));
                match name {
                    "model.npz" => assert!(bench.bytes(&one) == bench.bytes(&more)),
                    "trace.csv" => assert!(trace(&bench, &one) == trace(&bench, &more)),
                    _ => assert_eq!(summary(&bench, &one), summary(&bench, &more)),
                }
            }
        }
        fit("", "alone");
        let (chains, alone) = (trace(&bench, "one/trace.csv"), trace(&bench, "alone/trace.csv"));
        assert_eq!((chains.len(), alone.len()), (3, 1));
        assert_eq!(chains["1"], alone["1"]);
        assert!(chains["2"].len() == 24 && chains["2"][23][4..7] != chains["1"][23][4..7]);
    }
}

#[test]
fn json_progress_says_which_chain_an_iteration_is_of() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    let printed = bench.ok("fit table.csv --preset paper -k 5 -n 4 --chains 3 --out out --json-progress");
    let events: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 13);
    for chain in 1..=3 {
        let iterations: Vec<&Value> = events[..12]
            .iter()
            .filter(|event| event["chain"] == chain)
            .map(|event| &event["iteration"])
            .collect();
        assert_eq!(iterations, [1, 2, 3, 4], "chain {chain}");
    }
    let (done, summary) = (&events[12], bench.json("out/summary.json"));
    assert_eq!(done["event"], "done");
    assert_eq!(done["n_components_interval"], summary["n_components_interval"]);
    assert_eq!(done["warnings"], summary["warnings"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_all_chains() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    for threads in [1, 2, 4] {
        let mut command = bench.command(&format!(
            "fit table.csv --preset paper -k 50 -n 100000000 --no-stop --chains 4 --threads {threads} --out out --force --json-progress"
        ));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (0..40).for_each(|_| drop(lines.next().unwrap().unwrap()));
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let last: Value = serde_json::from_str(&lines.last().unwrap().unwrap()).unwrap();
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{told}");
        assert_eq!(
            told,
            "error: interrupted with 0 of 4 chains complete: the results so far are in out; go on with bpnmf resume out\n"
        );
        assert_eq!(last["stop_reason"], "interrupted");
        let summary = bench.json("out/summary.json");
        assert_eq!(summary["stop_reason"], "interrupted");
        let begun = summary["chains"].as_u64().unwrap();
        assert!((1..=4).contains(&begun), "{begun}");
        assert!(summary["iterations"].as_u64().unwrap() > 1, "not one that was only begun");
    }
}

#[test]
fn chains_until_they_are_sure_are_those_of_a_run_with_so_many_and_do_not_depend_on_threads() {
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 25 --observations 200 -k 30 --gamma scale --out data");
    bench.ok("fit data/X.npy --out sure --chains 2 --until-sure --threads 1");
    let summary = bench.json("sure/summary.json");
    let (chains, reason) = (summary["chains"].as_u64().unwrap(), summary["stop_reason"].as_str().unwrap());
    assert!([4, 8, 16, 32, 64].contains(&chains), "{chains}");
    assert!(["sure", "chain limit"].contains(&reason), "{reason}");
    bench.ok("fit data/X.npy --out again --chains 2 --until-sure --threads 3");
    bench.ok(&format!("fit data/X.npy --out same --chains {chains}"));
    for out in ["again", "same"] {
        assert!(bench.bytes(&format!("{out}/model.npz")) == bench.bytes("sure/model.npz"), "{out}");
        assert_eq!(
            bench.json(&format!("{out}/summary.json"))["n_components_pmf"],
            summary["n_components_pmf"]
        );
    }
}

#[test]
fn a_time_budget_is_kept_in_a_search_and_the_result_is_complete() {
    let bench = Bench::new();
    bench.ok("synth --seed 2 --features 100 --observations 1000 --out data");
    let begin = std::time::Instant::now();
    bench.ok("fit data/X.npy --out out --time-budget 1s");
    let seconds = begin.elapsed().as_secs_f64();
    let summary = bench.json("out/summary.json");
    assert_eq!(summary["stop_reason"], "time budget");
    // What was found is judged after that; the machine may be busy.
    assert!(seconds < 15.0, "{seconds}");
    assert!(summary["n_components"].as_u64().unwrap() > 0 && !bench.path("out/checkpoint").exists());
    for (flags, sentence) in [
        (
            "--time-budget soon",
            "--time-budget: \"soon\" is no time: write 60s, 5m, 2h or a number of seconds, above 0",
        ),
        (
            "--time-budget -1s",
            "--time-budget: \"-1s\" is no time: write 60s, 5m, 2h or a number of seconds, above 0",
        ),
        ("--until-sure --force-components 3", "chains cannot go on until the number of components is sure"),
    ] {
        let told = bench.fails(&format!("fit data/X.npy --out bad {flags}"), 2);
        assert!(told.contains(sentence), "{told}");
    }
}
