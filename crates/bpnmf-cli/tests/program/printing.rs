//! What is printed, and how a run that is interrupted ends.

use crate::Bench;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

#[test]
fn a_piped_fit_prints_plain_lines_on_stderr_and_the_summary_on_stdout_unless_it_shall_be_quiet() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    let output = bench.run("fit table.csv --seed 1 --out out");
    let (stdout, stderr) = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).into();
    assert!(stdout.starts_with("2 components (90 %: 2), 4 chains"), "{stdout}");
    assert!(stdout.contains("out: model.npz, "), "{stdout}");
    assert!(stderr.starts_with("[0:00] table.csv: 12 observations x 6 features"), "{stderr}");
    assert!(!stderr.contains(['\u{1b}', '\r']), "no control characters: {stderr:?}");
    // A run of a moment has no more to say.
    assert!(stderr.lines().all(|line| line.starts_with('[') || line.starts_with("warning: ")), "{stderr}");
    assert_eq!(bench.ok("fit table.csv --seed 1 --out out --force --quiet"), "");
    let output = bench.run("fit table.csv --seed 1 --out out --force --quiet");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn a_log_says_how_far_a_run_is_every_few_seconds() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    let run = "fit table.csv --preset paper -k 50 -n 100000000 --no-stop --out out --time-budget 7s";
    let lines: Vec<String> =
        String::from_utf8(bench.run(run).stderr).unwrap().lines().map(str::to_owned).collect();
    assert!((2..=3).contains(&lines.len()), "{lines:?}");
    assert!(lines[1].starts_with("[0:0") && lines[1].contains(" of 100,000,000 at most: "), "{lines:?}");
    assert!(lines[1].contains(" left"), "{lines:?}");
    assert!(lines[1].as_str() > "[0:05]", "the first after five seconds: {lines:?}");
}

#[test]
fn a_doubt_about_the_data_is_told_at_once_and_again_at_the_end() {
    let bench = Bench::new();
    let row =
        |f: usize| (0..12).map(|t| (3 * crate::value(f, t)).to_string()).collect::<Vec<_>>().join(",") + "\n";
    bench.write("tripled.csv", (0..6).map(row).collect::<String>());
    let output = bench.run("fit tripled.csv --out out");
    let (stdout, stderr) = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).into();
    assert!(stderr.contains("\nwarning: all entries"), "{stderr}");
    assert!(stdout.contains("\nwarning: all entries"), "{stdout}");
    let quiet = bench.warns("fit tripled.csv --out out --force --quiet");
    assert!(quiet.starts_with("warning: all entries") && quiet.lines().count() == 1, "{quiet}");
}

#[test]
fn json_progress_is_one_object_an_iteration_and_one_at_the_end() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    let printed = bench.ok("fit table.csv --preset paper -k 5 -n 4 --out out --json-progress");
    let events: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 5);
    for (i, event) in events[..4].iter().enumerate() {
        assert_eq!((&event["event"], &event["iteration"]), (&"iteration".into(), &(i + 1).into()));
        assert!(event["log_joint"].is_f64() && event["active"].is_u64() && event["of"] == 4);
    }
    assert_eq!(events[4]["event"], "done");
    assert_eq!(events[4]["stop_reason"], "iteration limit");
    assert_eq!(events[4]["n_components"], bench.json("out/summary.json")["n_components"]);
}

#[test]
fn a_reader_that_goes_away_does_not_end_a_fit() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    let mut command =
        bench.command("fit table.csv -k 5 -n 300 --no-stop --chains 1 --out out --json-progress");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!((child.wait().unwrap().code(), told.as_str()), (Some(0), ""));
    assert_eq!(bench.json("out/summary.json")["iterations"], 300);
}

#[cfg(unix)]
#[test]
fn an_interrupted_fit_writes_what_it_has_and_says_so() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    let mut command =
        bench.command("fit table.csv --preset paper -k 50 -n 100000000 --no-stop --out out --json-progress");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let last: Value = serde_json::from_str(&lines.last().unwrap().unwrap()).unwrap();
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{told}");
    let done = last["iterations"].as_u64().unwrap();
    assert_eq!(
        told,
        format!(
            "error: interrupted after iteration {done} of 100000000: the results so far are in out; go on with bpnmf resume \
             out\n"
        )
    );
    let summary = bench.json("out/summary.json");
    assert_eq!((&summary["stop_reason"], &summary["iterations"]), (&"interrupted".into(), &done.into()));
}

#[test]
fn every_command_has_help_with_examples() {
    let bench = Bench::new();
    for command in ["", "fit", "resume", "synth", "demo"] {
        let help = bench.ok(&format!("{command} --help"));
        assert!(help.contains("Examples:\n  bpnmf "), "{help}");
    }
    let help = bench.ok("fit --help");
    assert!(
        help.contains("--chains <N>")
            && help.contains("--noise <auto|poisson|ALPHA>")
            && help.contains("--force-components <N>")
            && !help.contains("--simd"),
        "{help}"
    );
    assert_eq!(bench.ok("--version"), format!("bpnmf {}\n", env!("CARGO_PKG_VERSION")));
}
