//! Scores as a table for a person or as JSON for a program. Knows no sounds.

use crate::text;
use bpnmf_audio::Scores;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Characters in a line of a note.
const WIDTH: usize = 100;

/// Characters of a name in the table.
const MOST_NAME: usize = 60;

/// What is measured, as the JSON has it and as the table has it.
const MEASURES: [(&str, &str); 3] = [("sdr", "SDR"), ("sir", "SIR"), ("sar", "SAR")];

/// One reference, the estimate that was taken for it, and its scores.
struct Source {
    reference: String,
    estimate: String,
    scores: [Option<f64>; 3],
}

/// All there is to say about scores.
pub(super) struct Page {
    sources: Vec<Source>,
    mean: [Option<f64>; 3],
    standard_error: [Option<f64>; 3],
    warnings: Vec<String>,
}

impl Page {
    pub(super) fn new(
        references: &[PathBuf],
        estimates: &[PathBuf],
        scores: &Scores,
        mut warnings: Vec<String>,
    ) -> Self {
        let source = |(i, reference): (usize, &PathBuf)| Source {
            reference: reference.display().to_string(),
            estimate: estimates[scores.permutation[i]].display().to_string(),
            scores: [scores.sdr[i], scores.sir[i], scores.sar[i]],
        };
        let sources: Vec<Source> = references.iter().enumerate().map(source).collect();
        let finite: [Vec<f64>; 3] = std::array::from_fn(|m| {
            sources.iter().filter_map(|source| source.scores[m]).filter(|score| score.is_finite()).collect()
        });
        for ((_, name), finite) in MEASURES.iter().zip(&finite) {
            if sources.len() > 1 && !finite.is_empty() && finite.len() < sources.len() {
                warnings.push(format!(
                    "the mean {name} is over {} of {} sources: the others have no finite {name}",
                    finite.len(),
                    sources.len()
                ));
            }
        }
        let (mean, standard_error) = (
            finite.each_ref().map(|scores| mean(scores)),
            finite.each_ref().map(|scores| standard_error(scores)),
        );
        Self { sources, mean, standard_error, warnings }
    }

    /// One object in one line.
    pub(super) fn json(&self) -> String {
        let source = |source: &Source| {
            let mut object = measures(&source.scores);
            object.insert("reference".to_owned(), json!(source.reference));
            object.insert("estimate".to_owned(), json!(source.estimate));
            Value::Object(object)
        };
        let object = json!({
            "sources": self.sources.iter().map(source).collect::<Vec<_>>(),
            "mean": measures(&self.mean),
            "standard_error": measures(&self.standard_error),
            "warnings": self.warnings,
        });
        format!("{object}\n")
    }

    /// A line a source, the mean and its standard error, and what is to be doubted.
    pub(super) fn table(&self) -> String {
        let mut rows = vec![["reference".to_owned(), "estimate".to_owned()]];
        let name = |name: &str| text::shortened(name, MOST_NAME);
        rows.extend(self.sources.iter().map(|source| [name(&source.reference), name(&source.estimate)]));
        let mut numbers = vec![MEASURES.map(|(_, name)| format!("{name} dB"))];
        numbers.extend(self.sources.iter().map(|source| source.scores.map(decibel)));
        if self.sources.len() > 1 {
            rows.extend(["mean", "standard error"].map(|name| [name.to_owned(), String::new()]));
            numbers.extend([self.mean, self.standard_error].map(|scores| scores.map(decibel)));
        }
        let width = |c: usize| rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1)];
        let mut page = String::new();
        for ([reference, estimate], [sdr, sir, sar]) in rows.iter().zip(&numbers) {
            let [first, second] = widths;
            page += &format!("{reference:<first$}  {estimate:<second$}  {sdr:>8}  {sir:>8}  {sar:>8}\n");
        }
        for warning in &self.warnings {
            page += &text::wrapped(&format!("note: {warning}"), WIDTH);
        }
        page
    }
}

fn measures(scores: &[Option<f64>; 3]) -> Map<String, Value> {
    MEASURES.iter().zip(scores).map(|((key, _), score)| ((*key).to_owned(), value(*score))).collect()
}

/// JSON has no infinite numbers.
fn value(score: Option<f64>) -> Value {
    match score {
        Some(f64::INFINITY) => json!("Infinity"),
        Some(f64::NEG_INFINITY) => json!("-Infinity"),
        score => json!(score),
    }
}

fn decibel(score: Option<f64>) -> String {
    match score {
        Some(f64::INFINITY) => "∞".to_owned(),
        Some(f64::NEG_INFINITY) => "-∞".to_owned(),
        Some(score) => format!("{score:.2}"),
        None => "–".to_owned(),
    }
}

fn mean(scores: &[f64]) -> Option<f64> {
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

/// The standard deviation (with n - 1) over the root of n.
fn standard_error(scores: &[f64]) -> Option<f64> {
    let (mean, n) = (mean(scores)?, scores.len() as f64);
    let squares: f64 = scores.iter().map(|score| (score - mean) * (score - mean)).sum();
    (scores.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(sdr: &[Option<f64>]) -> Page {
        let names =
            |letter: &str| (0..sdr.len()).map(|i| format!("{letter}{i}.wav").into()).collect::<Vec<_>>();
        let scores = Scores {
            sdr: sdr.to_vec(),
            sir: vec![Some(f64::INFINITY); sdr.len()],
            sar: vec![Some(1.0); sdr.len()],
            permutation: (0..sdr.len()).rev().collect(),
            doubts: vec![],
        };
        Page::new(&names("a"), &names("x"), &scores, vec![])
    }

    #[test]
    fn the_mean_has_its_standard_error() {
        let page = page(&[Some(1.0), Some(2.0), Some(6.0)]);
        assert_eq!(page.mean, [Some(3.0), None, Some(1.0)]);
        assert!((page.standard_error[0].unwrap() - (7.0f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(page.standard_error[1..], [None, Some(0.0)]);
        assert_eq!(page.warnings, [""; 0]);
    }

    #[test]
    fn infinite_and_missing_scores_are_left_out_of_the_mean_and_named() {
        let page = page(&[Some(f64::NEG_INFINITY), None, Some(6.0)]);
        assert_eq!((page.mean[0], page.standard_error[0]), (Some(6.0), None));
        assert_eq!(page.warnings, ["the mean SDR is over 1 of 3 sources: the others have no finite SDR"]);
        let json: Value = serde_json::from_str(&page.json()).unwrap();
        assert_eq!(
            json["sources"][0],
            json!({"reference": "a0.wav", "estimate": "x2.wav", "sdr": "-Infinity", "sir": "Infinity", "sar": 1.0})
        );
        assert_eq!(json["sources"][1]["sdr"], Value::Null);
        assert_eq!(json["standard_error"], json!({"sdr": null, "sir": null, "sar": 0.0}));
    }

    #[test]
    fn a_table_of_one_source_has_no_mean() {
        assert_eq!(
            page(&[Some(12.345)]).table(),
            "reference  estimate    SDR dB    SIR dB    SAR dB\n\
             a0.wav     x0.wav       12.35         ∞      1.00\n"
        );
        assert_eq!(page(&[Some(1.0), Some(2.0)]).table().lines().count(), 5);
    }
}
