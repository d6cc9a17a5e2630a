//! The tables of the experiment in Markdown.

use super::rules::{self, Outcome, mean};
use super::score::Score;
use super::sets::{ALPHAS, COMPONENTS, Kind, Level, MEANS, Set, TUMOURS, VARIANTS};
use crate::rank::rules::Verdict;
use crate::spread::Spread;

/// The words around the tables of a document that is not there yet.
pub(super) const AROUND: &str = "\
# Counts that scatter more than Poisson

One setting for all rows: the default. The first table has published synthetic catalogues of mutational signatures (the
supplement of Liu et al., mSigHdp): samples of hundreds to 100,000 mutations, with negative binomial noise (`realistic`,
`moderate`) and without noise. Found and true signatures are paired by the Hungarian method on their cosines, and a pair counts
as a match from 0.9 on. PPV is the share of the found signatures that are matched, TPR that of the true ones, cosine the mean
of the matched: means over the seeds, as is their sum, which is at most 3. Alpha is what the fit says of the noise, variance
rate + rate^2 / alpha, as the median over the seeds; infinite is Poisson.

The data are not part of this project. The variable `BPNMF_DATA` names their folder; what is not there is skipped.
";

/// The figures others have published on a set: the number of signatures in five runs and the mean sum of the three scores.
type Published = (&'static str, &'static str);

/// On the realistic sets, single bases and indels; a score that was not published is empty.
const TOOLS: [(&str, Published, Published); 5] = [
    ("mSigHdp, samples cut to 10,000 mutations", ("21 to 23", "2.88"), ("13 to 16", "2.77")),
    ("mSigHdp", ("25 to 27", "2.63"), ("11 to 13", "2.91")),
    ("SigProfilerExtractor", ("16 to 18", "2.59"), ("9 to 10", "2.75")),
    ("signeR", ("28 to 32", "2.22"), ("12 to 14", "2.18")),
    ("SignatureAnalyzer", ("46", ""), ("14 to 15", "")),
];

/// All tables for which there are fits, or lines that say there are none: `skipped` are sets whose files are not there.
pub(super) fn markdown(outcomes: &[Outcome], skipped: &[Set]) -> String {
    let mut text = signatures(outcomes, skipped);
    text += &beside(outcomes);
    text += &misspecified(outcomes, skipped);
    text += &simulated(outcomes);
    text.trim_start().to_owned()
}

fn of(outcomes: &[Outcome], wanted: impl Fn(Set) -> bool) -> Vec<&Outcome> {
    outcomes.iter().filter(|fit| wanted(fit.set)).collect()
}

fn signatures(outcomes: &[Outcome], skipped: &[Set]) -> String {
    let mut text = String::new();
    for level in [Level::Realistic, Level::Moderate, Level::Noiseless] {
        for kind in [Kind::Sbs, Kind::Indel] {
            let set = Set::Published { kind, level };
            let fits = of(outcomes, |other| other == set);
            if let Some((truth, _)) = fits.first().and_then(|fit| fit.truth) {
                let verdict = rules::published(kind, level, &fits);
                let score = |figure: fn(&Score) -> f64| {
                    mean(fits.iter().filter_map(|fit| fit.truth.as_ref()).map(|(_, score)| figure(score)))
                };
                text += &format!(
                    "| {kind}, {level} | {truth} | {} | {:.3} | {:.3} | {:.3} | {:.3} | {} | {:.1} | {} |\n",
                    numbers(&fits),
                    score(|score| score.ppv),
                    score(|score| score.tpr),
                    score(|score| score.cosine),
                    score(Score::sum),
                    alpha(&fits),
                    Spread::of(fits.iter().map(|fit| fit.seconds)).median,
                    told(&verdict),
                );
            } else if skipped.contains(&set) {
                text +=
                    &format!("| {kind}, {level} | | not run: its files are not there | | | | | | | | |\n");
            }
        }
    }
    let head = "| data | truth | K | PPV | TPR | cosine | sum | alpha | seconds (median) | asked for | |\n\
                |---|---|---|---|---|---|---|---|---|---|---|\n";
    if text.is_empty() { text } else { format!("{head}{text}") }
}

/// The realistic sets, beside what others found there.
fn beside(outcomes: &[Outcome]) -> String {
    let own = |kind| {
        let fits = of(outcomes, |set| set == Set::Published { kind, level: Level::Realistic });
        if fits.is_empty() {
            return (String::new(), String::new());
        }
        let (least, most) = fits
            .iter()
            .fold((usize::MAX, 0), |(least, most), fit| (least.min(fit.found), most.max(fit.found)));
        let found = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let sum = mean(fits.iter().filter_map(|fit| fit.truth).map(|(_, score)| score.sum()));
        (found, format!("{sum:.2}"))
    };
    let (sbs, indel) = (own(Kind::Sbs), own(Kind::Indel));
    if sbs.0.is_empty() && indel.0.is_empty() {
        return String::new();
    }
    let line = |name: &str, sbs: (&str, &str), indel: (&str, &str)| {
        format!("| {name} | {} | {} | {} | {} |\n", sbs.0, sbs.1, indel.0, indel.1)
    };
    let mut text = String::from(
        "\nThe realistic sets beside figures of others, computed from the signatures published for five seeds each (the truth is \
         23 and 11):\n\n| | sbs: K | sbs: sum | indel: K | indel: sum |\n|---|---|---|---|---|\n",
    );
    text += &line("bpnmf", (&sbs.0, &sbs.1), (&indel.0, &indel.1));
    for (name, sbs, indel) in TOOLS {
        text += &line(name, sbs, indel);
    }
    text
}

fn misspecified(outcomes: &[Outcome], skipped: &[Set]) -> String {
    let mut text = String::new();
    for tumour in TUMOURS {
        let is = |set| matches!(set, Set::Misspecified { tumour: other, .. } if other == tumour);
        let fits = of(outcomes, is);
        if fits.is_empty() {
            if skipped.iter().any(|set| is(*set)) {
                text += &format!("| {tumour} | not run: its files are not there | | | | | |\n");
            }
            continue;
        }
        let cells = VARIANTS
            .map(|variant| numbers(&of(outcomes, |set| set == Set::Misspecified { tumour, variant })));
        text += &format!("| {tumour} | {} | {} |\n", cells.join(" | "), told(&rules::misspecified(&fits)));
    }
    if text.is_empty() {
        return text;
    }
    let names = VARIANTS.map(|variant| variant.to_string()).join(" | ");
    format!(
        "\nCatalogues (of BayesPowerNMF) as the model has them and in three variants with the same signatures, K of every \
         seed:\n\n| | {names} | asked for | |\n|---|---|---|---|---|---|---|\n{text}"
    )
}

fn simulated(outcomes: &[Outcome]) -> String {
    let all = of(outcomes, Set::is_made_up);
    if all.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "\nNegative binomial counts made up as those of the grid of `./run rank` are: 96 x 100, W of shape 0.3, H of shape 1, \
         new data for every seed. K of every seed, the \
         median of alpha, and how many percent of the rates above 5 lie within their 90 % intervals, which go from the quantile \
         0.05 to the quantile 0.95 of the draws:\n\n| |",
    );
    text += &MEANS.map(|mean| format!(" mean {mean} |")).concat();
    text += &format!("\n|---|{}\n", "---|".repeat(MEANS.len()));
    for components in COMPONENTS {
        for true_alpha in ALPHAS {
            let cell =
                |mean| of(outcomes, |set| set == Set::Simulated { components, mean, alpha: true_alpha });
            let cells = MEANS.map(|mean| match &cell(mean)[..] {
                [] => String::new(),
                fits => format!("{}; {}{}", numbers(fits), alpha(fits), coverage(fits)),
            });
            if cells.iter().any(|cell| !cell.is_empty()) {
                let name = true_alpha.map_or_else(|| "infinite".into(), |alpha| alpha.to_string());
                text += &format!("| K0 {components}, alpha {name} | {} |\n", cells.join(" | "));
            }
        }
    }
    let Verdict { met, words } = rules::simulated(&all);
    text += &format!(
        "\n{words}: {}. The median fit takes {:.1} s.\n",
        if met { "ok" } else { "MISSED" },
        Spread::of(all.iter().map(|fit| fit.seconds)).median
    );
    text
}

/// K of every seed.
fn numbers(fits: &[&Outcome]) -> String {
    fits.iter().map(|fit| fit.found.to_string()).collect::<Vec<_>>().join(" ")
}

/// The median of alpha.
fn alpha(fits: &[&Outcome]) -> String {
    let median = Spread::of(fits.iter().map(|fit| fit.alpha.unwrap_or(f64::INFINITY))).median;
    alpha_told(Some(median).filter(|median| median.is_finite()))
}

/// How many percent of the rates their intervals cover, after a semicolon; nothing if that is not known.
fn coverage(fits: &[&Outcome]) -> String {
    let covered: Vec<f64> = fits.iter().filter_map(|fit| fit.coverage).collect();
    if covered.is_empty() { String::new() } else { format!("; {:.0} %", 100.0 * mean(covered.into_iter())) }
}

/// `43.2`, `1240` or `infinite`.
pub(super) fn alpha_told(alpha: Option<f64>) -> String {
    match alpha {
        None => "infinite".into(),
        Some(alpha) if alpha < 100.0 => format!("{alpha:.1}"),
        Some(alpha) => format!("{alpha:.0}"),
    }
}

/// The last two cells of a line.
fn told(verdict: &Verdict) -> String {
    format!("{} | {}", verdict.words, if verdict.met { "ok" } else { "MISSED" })
}

#[cfg(test)]
mod tests {
    use super::super::sets;
    use super::*;

    fn fit(set: Set, seed: u64, alpha: Option<f64>) -> Outcome {
        let truth = Some((11, Score { ppv: 1.0, tpr: 1.0, cosine: 0.95 }));
        Outcome { set, seed, found: 11, truth, alpha, coverage: None, seconds: 2.0 }
    }

    #[test]
    fn every_line_of_every_table_has_as_many_cells_as_its_head() {
        let sets = sets::all();
        let outcomes: Vec<Outcome> =
            sets.iter().flat_map(|&set| [fit(set, 1, None), fit(set, 2, Some(50.0))]).collect();
        for text in [markdown(&outcomes, &[]), markdown(&[], &sets), markdown(&outcomes[..4], &sets[5..])] {
            let mut width = None;
            for line in text.lines() {
                let cells = line.matches('|').count();
                assert!(cells == 0 || *width.get_or_insert(cells) == cells, "{line}");
                if cells == 0 {
                    width = None;
                }
            }
        }
        assert_eq!(markdown(&[], &[]), "");
    }

    #[test]
    fn a_line_tells_the_means_over_the_seeds_and_the_verdict() {
        let set = Set::Published { kind: Kind::Indel, level: Level::Realistic };
        let text = markdown(&[fit(set, 1, Some(40.0)), fit(set, 2, Some(50.0))], &[]);
        let line = "| indel, realistic | 11 | 11 11 | 1.000 | 1.000 | 0.950 | 2.950 | 45.0 | 2.0 | \
                    K 11 on 2 of 2, 2 wanted; sum 2.950, at least 2.92 wanted | ok |";
        assert!(text.contains(line), "{text}");
        assert!(
            text.contains("| bpnmf |  |  | 11 | 2.95 |\n") && text.contains("| signeR | 28 to 32 | 2.22 |")
        );
    }
}
