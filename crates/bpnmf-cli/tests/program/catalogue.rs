//! Components beside known signatures.

use crate::{Bench, exists};
use std::path::PathBuf;

/// The names of all 96 types of substitutions, in the order of the field.
fn channels() -> Vec<String> {
    let mut names = Vec::new();
    for group in ["C>A", "C>G", "C>T", "T>A", "T>C", "T>G"] {
        for before in "ACGT".chars() {
            names.extend("ACGT".chars().map(|after| format!("{before}[{group}]{after}")));
        }
    }
    names
}

/// Signature `s`: peaks of its own on a low floor.
fn signature(s: usize) -> Vec<f64> {
    let raw: Vec<f64> = (0..96)
        .map(|f| if (f * 7 + s * 13) % 24 < 4 { (1 + (f * (s + 3)) % 5) as f64 } else { 0.03 })
        .collect();
    let sum: f64 = raw.iter().sum();
    raw.iter().map(|value| value / sum).collect()
}

/// A table with a column for each of `columns`, its rows in another order and names in another way of writing.
fn table(columns: &[(&str, Vec<f64>)], other: bool) -> String {
    let names = channels();
    let header = if other { "Type,Trinucleotide" } else { "Mutation Types" };
    let mut text =
        format!("{header},{}\n", columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(","));
    for i in 0..96 {
        let f = if other { (i * 5 + 1) % 96 } else { i };
        let name: Vec<char> = names[f].chars().collect();
        let written = if other {
            format!("{}>{},{}{}{}", name[2], name[4], name[0], name[2], name[6])
        } else {
            names[f].clone()
        };
        let values: Vec<String> = columns.iter().map(|(_, values)| values[f].to_string()).collect();
        text += &format!("{written},{}\n", values.join(","));
    }
    text
}

/// Status and signature by component.
fn matches(bench: &Bench, name: &str) -> Vec<(String, String)> {
    let text = String::from_utf8(bench.bytes(name)).unwrap();
    let cells = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
    text.lines().skip(1).map(cells).map(|cells| (cells[1].clone(), cells[2].clone())).collect()
}

#[test]
fn each_true_signature_is_matched_and_no_other_and_what_is_unknown_is_new() {
    let bench = Bench::new();
    // Counts of signatures 0, 1 and 2; 2 is not in the catalogue, 3 and 4 are not in the data.
    let sample = |t: usize| -> Vec<f64> {
        let weights = [[2000.0, 100.0, 0.0], [0.0, 2500.0, 300.0], [300.0, 0.0, 1800.0]][t % 3];
        let scale = 1.0 + (t * 37 % 11) as f64 / 5.0;
        (0..96).map(|f| (0..3).map(|s| scale * weights[s] * signature(s)[f]).sum::<f64>().round()).collect()
    };
    let names: Vec<String> = (0..24).map(|t| format!("tumour {t}")).collect();
    let samples: Vec<(&str, Vec<f64>)> =
        names.iter().enumerate().map(|(t, name)| (name.as_str(), sample(t))).collect();
    bench.write("counts.csv", table(&samples, false));
    let known = [("S0", signature(0)), ("S1", signature(1)), ("S3", signature(3)), ("S4", signature(4))];
    bench.write("known.csv", table(&known, true));
    let printed =
        bench.ok("fit counts.csv --catalogue known.csv --report --noise poisson --coarsening 1 --out out");
    let mut found = matches(&bench, "out/matches.tsv");
    found.sort();
    let pair = |status: &str, name: &str| (status.to_owned(), name.to_owned());
    assert_eq!(found[..2], [pair("match", "S0"), pair("match", "S1")]);
    assert!(found[2..].iter().all(|(status, _)| status == "new") && found.len() == 3, "{found:?}");
    assert!(printed.contains("in the catalogue\n") && printed.contains("S0 (cosine 1.00)"), "{printed}");
    let page = String::from_utf8(bench.bytes("out/report.html")).unwrap();
    assert!(page.contains("S0 (cosine 1.00)") && page.contains("new: no signature of the catalogue"));
    // The panel of the field, with its colours.
    assert!(
        page.contains("class=\"groups\"") && page.contains("#1ebff0") && page.contains(">T&gt;G</b>"),
        "panel"
    );
    bench.ok("fit counts.csv --out out --force --chains 1");
    assert!(!exists(&bench.path("out/matches.tsv")), "the matches were those of another run");

    bench.write("other.csv", "gene,S0\nTP53,1\nACTB,2\n");
    let told = bench.fails("fit counts.csv --catalogue other.csv --out bad", 2);
    assert!(
        told.starts_with("other.csv: 96 of 96 features of the data are not in it, \"A[C>A]A\" is one"),
        "{told}"
    );
}

#[test]
fn published_signatures_are_found_in_21_breast_cancers_and_unrelated_ones_are_not() {
    let Some(data) = std::env::var_os("BPNMF_DATA").map(PathBuf::from) else {
        eprintln!("skipped: BPNMF_DATA does not say where the published catalogues are");
        return;
    };
    let bench = Bench::new();
    let text = std::fs::read_to_string(data.join("signatures_sbs/truth.sigs.csv")).unwrap();
    let keep = ["SBS1", "SBS2", "SBS3", "SBS5", "SBS13", "SBS7a", "SBS22"];
    let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let columns: Vec<usize> = (0..header.len()).filter(|&i| i < 2 || keep.contains(&header[i])).collect();
    let cut = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        columns.iter().map(|&i| cells[i]).collect::<Vec<_>>().join(",") + "\n"
    };
    bench.write("known.csv", text.lines().map(cut).collect::<String>());
    let samples = data.join("breast21/Samples_SBS.txt");
    bench.warns(&format!("fit {} --catalogue known.csv --seed 1 --quiet --out out", samples.display()));
    let table = String::from_utf8(bench.bytes("out/matches.tsv")).unwrap();
    let told: Vec<&str> =
        table.lines().skip(1).flat_map(|line| line.split('\t').nth(4).unwrap().split(';')).collect();
    // Ultraviolet light and aristolochic acid have nothing to do with these.
    assert!(!told.contains(&"SBS7a") && !told.contains(&"SBS22"), "{table}");
    assert!(told.contains(&"SBS13"), "{table}");
}
