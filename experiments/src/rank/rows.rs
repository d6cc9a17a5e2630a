//! What is fitted and what is asked of it: one row a requirement. Knows nothing of how a fit is made.

use super::data::Set;
use bpnmf::GammaReading;

/// One row of the table.
pub(super) struct Row {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// Its name in the table.
    pub(super) title: &'static str,
    pub(super) cases: Vec<Case>,
    pub(super) rule: Rule,
}

/// One fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Case {
    pub(super) set: Set,
    /// The seed of the data.
    pub(super) data_seed: u64,
    /// The seed of the fit.
    pub(super) fit_seed: u64,
    pub(super) truncation: Option<usize>,
}

/// What became of one fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    /// The true number of components.
    pub(super) truth: usize,
    /// K.
    pub(super) found: usize,
    /// See [`super::matching::least_cosine`].
    pub(super) cosine: Option<f64>,
    pub(super) seconds: f64,
}

/// What a row's fits must show.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// K between truth - below and truth + above on at least this share of the fits, and on every fit every true part
    /// that is on in at least 2 % of the columns matched at this cosine.
    Near { below: usize, above: usize, share: f64, cosine: Option<f64> },
    /// The largest and the smallest K differ by no more than this.
    Spread(usize),
    /// The mean distance from K to the truth is no more than this.
    MeanError(f64),
}

/// Whether a rule is kept, and by how much.
pub(super) struct Verdict {
    pub(super) met: bool,
    pub(super) words: String,
}

impl Rule {
    /// Judges the fits of a row; without any, nothing is met.
    pub(super) fn judge(self, outcomes: &[Outcome]) -> Verdict {
        let Verdict { met, words } = match self {
            Self::Near { below, above, share, cosine } => near(outcomes, below, above, share, cosine),
            Self::Spread(most) => {
                let found = || outcomes.iter().map(|outcome| outcome.found);
                let spread = found().max().unwrap_or(0) - found().min().unwrap_or(0);
                Verdict { met: spread <= most, words: format!("K moves by {spread}, at most {most} wanted") }
            }
            Self::MeanError(most) => {
                let distance: usize =
                    outcomes.iter().map(|outcome| outcome.found.abs_diff(outcome.truth)).sum();
                let mean = distance as f64 / outcomes.len().max(1) as f64;
                Verdict {
                    met: mean <= most,
                    words: format!("off by {mean:.1} on average, at most {most} wanted"),
                }
            }
        };
        Verdict { met: met && !outcomes.is_empty(), words }
    }
}

fn near(outcomes: &[Outcome], below: usize, above: usize, share: f64, cosine: Option<f64>) -> Verdict {
    let all = outcomes.len();
    let hits = outcomes
        .iter()
        .filter(|outcome| {
            (outcome.truth.saturating_sub(below)..=outcome.truth + above).contains(&outcome.found)
        })
        .count();
    // A little less than the share, so that 0.9 of 10 is 9 in any arithmetic.
    let wanted = (share * all as f64 - 1e-9).ceil() as usize;
    let margin = match (below, above) {
        (0, 0) => "exact".into(),
        (_, 0) => "not above the truth".into(),
        _ if below == above => format!("within {above}"),
        (0, _) => format!("from the truth to {above} above"),
        _ => format!("from {below} below the truth to {above} above"),
    };
    let mut verdict =
        Verdict { met: hits >= wanted, words: format!("K {margin} on {hits} of {all}, {wanted} wanted") };
    if let Some(least) = cosine {
        let matched = outcomes.iter().filter(|outcome| outcome.cosine.is_some_and(|c| c >= least)).count();
        verdict.met &= matched == all;
        verdict.words += &format!("; every part matched at {least} on {matched} of {all}, {all} wanted");
    }
    verdict
}

/// The whole suite; `most` is the most seeds a row may have.
pub(super) fn suite(most: Option<u64>) -> Vec<Row> {
    let seeds = |n: u64| 1..=n.min(most.unwrap_or(n));
    // New data every time where it is made up; a file is the same for every seed.
    let every = |set: Set, n: u64| -> Vec<Case> {
        seeds(n).map(|seed| Case { set, data_seed: seed, fit_seed: seed, truncation: None }).collect()
    };
    let truncated = |set: Set, truncations: [usize; 3], n: u64| -> Vec<Case> {
        let case =
            |truncation, seed| Case { set, data_seed: seed, fit_seed: seed, truncation: Some(truncation) };
        truncations
            .into_iter()
            .flat_map(|truncation| seeds(n).map(move |seed| case(truncation, seed)))
            .collect()
    };
    let near = |below, above, share| Rule::Near { below, above, share, cosine: None };
    let rate = Set::Synthetic { gamma: GammaReading::Rate, observations: 1000 };
    let scale = Set::Synthetic { gamma: GammaReading::Scale, observations: 1000 };
    let row = |name, title, cases, rule| Row { name, title, cases, rule };
    vec![
        row(
            "synth_rate",
            "paper's recipe, rate",
            every(rate, 20),
            Rule::Near { below: 1, above: 1, share: 0.9, cosine: Some(0.98) },
        ),
        row("synth_scale", "paper's recipe, scale", every(scale, 20), near(2, 2, 0.8)),
        row("clip", "ten notes, maximum 1000", every(Set::Clip { level: 1000 }, 10), near(1, 1, 0.9)),
        row(
            "clip_levels",
            "ten notes, maximum 300, 1000, 3000",
            [300, 1000, 3000].into_iter().flat_map(|level| every(Set::Clip { level }, 1)).collect(),
            Rule::Spread(2),
        ),
        row("bars", "bars", every(Set::Bars, 10), near(0, 0, 0.9)),
        row("swimmer", "swimmer, intensity 10", every(Set::Swimmer, 10), near(0, 1, 0.9)),
        row("breast21", "21 breast cancers", every(Set::Breast21, 10), near(1, 3, 0.9)),
        row(
            "low_rank",
            "rank 10, mean 4.7, truncation 20, 50, 100",
            truncated(Set::LowRank { mean: 4.7 }, [20, 50, 100], 3),
            near(0, 0, 1.0),
        ),
        row(
            "low_rank_weak",
            "rank 10, mean 0.46, truncation 20, 50, 100",
            truncated(Set::LowRank { mean: 0.46 }, [20, 50, 100], 3),
            Rule::MeanError(2.3),
        ),
        row(
            "missing",
            "rank 10, mean 4.7, with 10, 25, 50 % of the entries missing",
            [10, 25, 50].into_iter().flat_map(|percent| every(Set::Partial { percent }, 3)).collect(),
            near(1, 1, 1.0),
        ),
        row(
            "truncation",
            "paper's recipe, rate, truncation 100, 300, 1000",
            truncated(rate, [100, 300, 1000], 1),
            Rule::Spread(1),
        ),
        row("noise", "noise, Poisson(5)", every(Set::Noise, 10), near(1, 0, 1.0)),
    ]
}

/// A few small fits with a wide margin, to see that nothing is broken.
pub(super) fn quick() -> Vec<Row> {
    let row = |name, title, set| Row {
        name,
        title,
        cases: vec![Case { set, data_seed: 1, fit_seed: 1, truncation: None }],
        rule: Rule::Near { below: 2, above: 2, share: 1.0, cosine: None },
    };
    vec![
        row("noise", "noise, Poisson(5)", Set::Noise),
        row("low_rank", "rank 10, mean 4.7", Set::LowRank { mean: 4.7 }),
        row(
            "synth_rate",
            "paper's recipe, rate, 300 columns",
            Set::Synthetic { gamma: GammaReading::Rate, observations: 300 },
        ),
        row("bars", "bars", Set::Bars),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(pairs: &[(usize, usize)]) -> Vec<Outcome> {
        pairs
            .iter()
            .map(|&(found, truth)| Outcome { truth, found, cosine: Some(0.99), seconds: 1.0 })
            .collect()
    }

    #[test]
    fn nine_of_ten_within_the_margin_are_enough_and_eight_are_not() {
        let rule = Rule::Near { below: 1, above: 3, share: 0.9, cosine: Some(0.98) };
        let mut fits =
            outcomes(&[(4, 5), (8, 5), (5, 5), (5, 5), (5, 5), (5, 5), (5, 5), (5, 5), (5, 5), (9, 5)]);
        assert!(rule.judge(&fits).met);
        fits[0].cosine = Some(0.97);
        assert!(!rule.judge(&fits).met);
        fits[0] = outcomes(&[(3, 5)])[0];
        assert!(!rule.judge(&fits).met);
        assert!(!rule.judge(&[]).met);
    }

    #[test]
    fn spread_and_mean_error_are_those_of_the_fits() {
        let fits = outcomes(&[(9, 10), (11, 10), (10, 10)]);
        assert!(Rule::Spread(2).judge(&fits).met && !Rule::Spread(1).judge(&fits).met);
        assert!(Rule::MeanError(0.7).judge(&fits).met && !Rule::MeanError(0.6).judge(&fits).met);
    }

    #[test]
    fn no_row_has_more_seeds_than_allowed_and_all_names_differ() {
        let rows = suite(Some(2));
        assert!(rows.iter().all(|row| row.cases.iter().all(|case| case.fit_seed <= 2)));
        let mut names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows.len());
    }
}
