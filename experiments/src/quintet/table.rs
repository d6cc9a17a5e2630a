//! The table of the quintet in its document.

use super::methods::{Method, Outcome, Plan};
use crate::spread::Spread;

/// A method that was run.
pub(super) struct Done {
    pub(super) method: Method,
    pub(super) outcomes: Vec<Outcome>,
}

pub(super) const AROUND: &str = "\
# A woodwind quintet taken apart

54 s of flute, oboe, clarinet, horn and bassoon, rendered from single notes of a free sample library, and the five stems it
is the sum of. 22,050 Hz, window 1024, hop 512. The measure is the paper's: one part is picked for each instrument, the one
whose masked activation correlates best with the power of the stem, and filtered out of the recording; SDR, SIR and SAR of
BSS Eval (512 taps), in dB, are means over the five instruments. Medians over seeds and (least..largest); behind the
plus-minus the standard error over instruments, the median over seeds.

";

/// What the methods are, for those who read the table.
const NOTES: &str = "
- `bpnmf separate` chooses the levels of its counts by itself (see [audio.md](audio.md)). The paper does not say which it used, and
  as printed much depends on them: they are run at ours, and with the largest magnitude at 1000, which suits them better.
- *As printed*: the paper's algorithm and prior (a = b = 0.5, c = d = 5, K = 500 to begin with), nothing before it and nothing
  after it; the stop rule of `--preset paper` may end it early.
- The paper lets two instruments have the same part. Here a part is picked once, by whichever correlates better, in all rows;
  only where there are fewer than five parts do instruments share.
- `--pick all` gives all parts to instruments and splits those that several share: it uses the whole spectrogram of every stem,
  more than the paper's measure, which asks for its power alone. Hold it against the ideal mask, not against the others. `--stems 5` is told nothing but the number; its stems are
  scored in the order that suits best.
- KL-NMF: multiplicative updates on the full magnitudes from a random start, 200 of them. *Best K* is the one of 10, 20, 30,
  40, 60 and 80 with the best mean SDR: a choice that needs the true stems, in the rival's favour.
- The ideal ratio mask knows the true magnitudes; the mixture as every estimate knows nothing.
- Seconds are of one fit, without the filter and the scores, on a machine that was busy with other work: upper limits.

The paper's Table 1, for comparison of the kind, not of the figures: its recording is another one (the same piece played by
people), which is not public.

| | K | SDR | SIR | SAR |
|---|---|---|---|---|
| SSMF | 37 | 1.84 | 6.95 | 4.82 |
| Gibbs | 60 | 3.58 | 13.46 | 5.47 |
";

/// The table in Markdown.
pub(super) fn markdown(rows: &[Done]) -> String {
    let mut text =
        String::from("| method | seeds | K | SDR | SIR | SAR | seconds |\n|---|---|---|---|---|---|---|\n");
    for Done { method, outcomes } in rows {
        let (components, seconds): (Vec<f64>, Vec<f64>) = outcomes
            .iter()
            .filter_map(|outcome| Some((outcome.components? as f64, outcome.seconds?)))
            .unzip();
        let fitted = !components.is_empty();
        let optional = |figures: &[f64], digits: usize| {
            if fitted { Spread::of(figures.iter().copied()).told(digits) } else { String::new() }
        };
        let seeds = if fitted { outcomes.len().to_string() } else { String::new() };
        let scores = [0, 1, 2].map(|i| score(outcomes, i)).join(" | ");
        text += &format!(
            "| {} | {seeds} | {} | {scores} | {} |\n",
            method.title(),
            optional(&components, 0),
            optional(&seconds, 1)
        );
    }
    text
}

/// `3.58 ± 0.60 (3.10..3.90)`.
fn score(outcomes: &[Outcome], which: usize) -> String {
    let means: Vec<f64> = outcomes.iter().map(|outcome| outcome.score.means[which]).collect();
    if means.iter().any(|mean| mean.is_nan()) {
        return "no part for an instrument".into();
    }
    let told = Spread::of(means).told(2);
    let error = Spread::of(outcomes.iter().map(|outcome| outcome.score.errors[which])).median;
    match told.split_once(' ') {
        _ if error.is_nan() => told,
        Some((median, range)) => format!("{median} ± {error:.2} {range}"),
        None => format!("{told} ± {error:.2}"),
    }
}

/// All that stands between the marks of the document.
pub(super) fn section(rows: &[Done], command: &str, plan: &Plan, threads: usize) -> String {
    let run = |method: &Method| rows.iter().any(|done| done.method == *method);
    let missing: Vec<&str> =
        Method::EVERY.into_iter().filter(|method| !run(method)).map(Method::title).collect();
    let missing =
        if missing.is_empty() { String::new() } else { format!("\nNot run: {}.\n", missing.join(", ")) };
    let [ssmf, gibbs] = plan.printed_iterations;
    let table = markdown(rows);
    format!(
        "`{command}` prints this, on {threads} threads, with at most {ssmf} iterations of SSMF and {gibbs} of Gibbs as \
         printed:\n\n{table}{missing}{NOTES}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Score;

    #[test]
    fn scores_that_are_infinite_or_missing_are_told_as_such() {
        let outcome = |mean: f64, error: f64| Outcome {
            components: None,
            score: Score { means: [mean; 3], errors: [error; 3] },
            seconds: None,
        };
        assert_eq!(score(&[outcome(1.0, 0.5), outcome(3.0, 0.5)], 0), "2.00 ± 0.50 (1.00..3.00)");
        assert_eq!(score(&[outcome(f64::INFINITY, f64::NAN)], 0), "inf");
        assert_eq!(score(&[outcome(f64::NAN, f64::NAN)], 0), "no part for an instrument");
    }
}
