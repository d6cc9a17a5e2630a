//! `bpnmf demo`.

use crate::{Bench, exists};
use bpnmf_audio::{Channel, Sound};
use std::process::Stdio;

impl Bench {
    fn heard(&self, name: &str) -> Sound {
        bpnmf_audio::read(&self.path(name), Channel::Mean).unwrap()
    }

    /// The names in a folder, in order.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[test]
fn the_demo_finds_the_notes_of_its_piece_and_says_how_well() {
    let bench = Bench::new();
    let page = bench.ok("demo");
    let summary = bench.json("bpnmf-demo/summary.json");
    let parts = summary["n_components"].as_u64().unwrap();
    assert!((9..=11).contains(&parts), "{page}");
    assert!(page.contains(&format!("\nFound {parts} parts, in ")), "{page}");
    assert!(page.contains("; the piece has 10 notes.\n"), "{page}");
    for note in ["F3", "A3", "C4", "E4", "G4"].map(|name| format!("piano {name}")) {
        assert!(page.contains(&note), "{note}: {page}");
    }
    for note in ["C5", "D5", "E5", "G5", "A5"].map(|name| format!("clarinet {name}")) {
        assert!(page.contains(&note), "{note}: {page}");
    }
    let alike = page.matches("   0.99").count() + page.matches("   1.00").count();
    assert!(alike >= 9, "{page}");
    for stem in ["piano", "clarinet"] {
        let line = page.lines().find(|line| line.starts_with(&format!(" {stem}"))).unwrap();
        let scores: Vec<f64> = line.split_whitespace().skip(1).map(|score| score.parse().unwrap()).collect();
        assert!(scores.len() == 3 && scores.iter().all(|&score| score > 10.0), "{page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(!page.contains('\u{1b}'), "piped output is plain");
    let report = std::path::Path::new("bpnmf-demo").join("report.html");
    assert!(page.ends_with(&format!(" {}\n", report.display())), "{page}");

    assert_eq!(bench.names(""), ["bpnmf-demo"]);
    let files = [
        "components",
        "mixture.wav",
        "model.npz",
        "notes.csv",
        "notes.mid",
        "recording.wav",
        "report.html",
        "stems",
        "summary.json",
        "trace.csv",
        "truth",
    ];
    assert_eq!(bench.names("bpnmf-demo"), files);
    assert_eq!(bench.names("bpnmf-demo/truth"), ["clarinet.wav", "notes.csv", "piano.wav"]);
    assert_eq!(bench.names("bpnmf-demo/stems"), ["clarinet.wav", "piano.wav"]);
    assert_eq!(bench.names("bpnmf-demo/components").len() as u64, parts);

    let mixture = bench.heard("bpnmf-demo/mixture.wav");
    for (folder, tolerance) in [("truth", 0.0), ("stems", 1e-5)] {
        let [piano, clarinet] =
            ["piano", "clarinet"].map(|name| bench.heard(&format!("bpnmf-demo/{folder}/{name}.wav")));
        for (at, &sample) in mixture.samples.iter().enumerate() {
            let sum = piano.samples[at] + clarinet.samples[at];
            assert!((sum - sample).abs() <= tolerance, "{folder}, sample {at}: {sum}, not {sample}");
        }
    }
}

#[test]
fn a_demo_replaces_its_own_files_and_keeps_those_of_others() {
    let bench = Bench::new();
    assert_eq!(bench.ok("demo --quiet --out here"), "");
    let first = bench.bytes("here/model.npz");
    bench.write("here/mine.txt", "mine");
    std::fs::remove_file(bench.path("here/mixture.wav")).unwrap();
    assert_eq!(bench.ok("demo --quiet --out here"), "");
    assert_eq!((bench.bytes("here/model.npz"), bench.bytes("here/mine.txt")), (first, b"mine".to_vec()));
    assert!(exists(&bench.path("here/mixture.wav")));

    std::fs::create_dir(bench.path("bpnmf-demo")).unwrap();
    bench.write("bpnmf-demo/thesis.txt", "mine");
    assert_eq!(
        bench.fails("demo", 2),
        "bpnmf-demo holds files that are not of a demo: choose another folder with --out"
    );
    assert_eq!(bench.names("bpnmf-demo"), ["thesis.txt"]);
    bench.fails("demo --out here/mine.txt", 1);
}

#[test]
fn a_reader_who_has_seen_enough_ends_the_demo_without_an_error() {
    let bench = Bench::new();
    let mut child = bench.command("demo").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), crate::told(output.stderr).len()), (Some(0), 0));
}
