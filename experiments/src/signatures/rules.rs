//! What the fits of the experiment must show. Knows no files.

use super::coverage;
use super::score::Score;
use super::sets::{Kind, Level, Set};
use crate::rank::rules::{Verdict, shares};
use std::ops::RangeInclusive;

/// What came of one fit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    pub(super) set: Set,
    pub(super) seed: u64,
    /// K.
    pub(super) found: usize,
    /// The true number of components and the score, where the truth is known.
    pub(super) truth: Option<(usize, Score)>,
    /// What was learned; `None` for Poisson.
    pub(super) alpha: Option<f64>,
    /// The share of the rates that their intervals cover, where the true ones are known.
    pub(super) coverage: Option<f64>,
    pub(super) seconds: f64,
}

/// What is asked of a published set.
struct Limits {
    components: RangeInclusive<usize>,
    /// Of the seeds that must find so many.
    share: f64,
    /// Of the mean over the seeds.
    sum: f64,
}

fn limits(kind: Kind, level: Level) -> Limits {
    let (components, share, sum) = match (kind, level) {
        (Kind::Sbs, Level::Realistic) => (20..=26, 1.0, 2.75),
        (Kind::Indel, Level::Realistic) => (11..=11, 0.8, 2.92),
        (Kind::Sbs, Level::Moderate) => (20..=26, 1.0, 2.65),
        (Kind::Indel, Level::Moderate) => (11..=12, 1.0, 2.89),
        (Kind::Sbs, Level::Noiseless) => (18..=27, 1.0, 2.55),
        (Kind::Indel, Level::Noiseless) => (10..=13, 1.0, 2.75),
    };
    Limits { components, share, sum }
}

/// The fits of one published set: K and the mean sum of the three scores.
pub(super) fn published(kind: Kind, level: Level, outcomes: &[&Outcome]) -> Verdict {
    let Limits { components, share, sum: least } = limits(kind, level);
    let hits = outcomes.iter().filter(|fit| components.contains(&fit.found)).count();
    let what = match (components.start(), components.end()) {
        (least, most) if least == most => format!("K {least}"),
        (least, most) => format!("K {least} to {most}"),
    };
    let found = shares(hits, outcomes.len(), share, &what);
    let sum = mean(outcomes.iter().filter_map(|fit| fit.truth).map(|(_, score)| score.sum()));
    both(found, Verdict { met: sum >= least, words: format!("sum {sum:.3}, at least {least} wanted") })
}

/// The fits of one type: K of the variants, seed by seed, moves by at most 1.
pub(super) fn misspecified(outcomes: &[&Outcome]) -> Verdict {
    const MOST: usize = 1;
    let moves = outcomes.iter().map(|fit| {
        let same = outcomes.iter().filter(|other| other.seed == fit.seed);
        same.map(|other| other.found.abs_diff(fit.found)).max().unwrap_or(0)
    });
    let moves = moves.max().unwrap_or(0);
    Verdict {
        met: moves <= MOST,
        words: format!("K of the variants moves by {moves}, at most {MOST} wanted"),
    }
}

/// All simulated fits: K exact on 85 of 90, alpha within 15 % wherever it is below the mean count, and intervals of rates that
/// cover 85 to 95 % of them, over all fits.
pub(super) fn simulated(outcomes: &[&Outcome]) -> Verdict {
    const EXACT: f64 = 85.0 / 90.0;
    const WITHIN: f64 = 0.15;
    const COVERED: RangeInclusive<f64> = 0.85..=0.95;
    let exact = outcomes.iter().filter(|fit| fit.truth.is_some_and(|(truth, _)| truth == fit.found)).count();
    let errors: Vec<f64> = outcomes.iter().filter_map(|fit| alpha_error(fit)).collect();
    let near = errors.iter().filter(|&&error| error <= WITHIN).count();
    let words = format!("alpha within {:.0} % where it is below the mean count", 100.0 * WITHIN);
    let found =
        both(shares(exact, outcomes.len(), EXACT, "K exact"), shares(near, errors.len(), 1.0, &words));
    let covered: Vec<f64> = outcomes.iter().filter_map(|fit| fit.coverage).collect();
    if covered.is_empty() {
        return found;
    }
    let share = mean(covered.into_iter());
    let words = format!(
        "90 % intervals of rates above {} cover {:.1} % of them, {:.0} to {:.0} wanted",
        coverage::LEAST_RATE,
        100.0 * share,
        100.0 * COVERED.start(),
        100.0 * COVERED.end()
    );
    both(found, Verdict { met: COVERED.contains(&share), words })
}

/// How far the learned alpha is off, as a share of the true one, where that is below the mean count.
fn alpha_error(fit: &Outcome) -> Option<f64> {
    let Set::Simulated { mean, alpha: Some(alpha), .. } = fit.set else { return None };
    (alpha < mean).then(|| fit.alpha.map_or(f64::INFINITY, |found| (found / alpha - 1.0).abs()))
}

fn both(one: Verdict, other: Verdict) -> Verdict {
    Verdict { met: one.met && other.met, words: format!("{}; {}", one.words, other.words) }
}

/// 0 of nothing.
pub(super) fn mean(figures: impl Iterator<Item = f64>) -> f64 {
    let (sum, many) = figures.fold((0.0, 0), |(sum, many), figure| (sum + figure, many + 1));
    sum / f64::from(many.max(1))
}

#[cfg(test)]
mod tests {
    use super::super::sets::{Tumour, Variant};
    use super::*;

    fn fit(set: Set, seed: u64, found: usize, alpha: Option<f64>) -> Outcome {
        let score = Score { ppv: 0.9, tpr: 1.0, cosine: 0.95 };
        Outcome { set, seed, found, truth: Some((5, score)), alpha, coverage: None, seconds: 1.0 }
    }

    #[test]
    fn a_published_set_needs_both_its_number_and_its_sum() {
        let set = Set::Published { kind: Kind::Indel, level: Level::Moderate };
        let judged = |found: &[usize], cosine: f64| {
            let mut fits: Vec<Outcome> = found.iter().map(|&k| fit(set, 1, k, None)).collect();
            fits.iter_mut().for_each(|fit| fit.truth = Some((11, Score { ppv: 1.0, tpr: 1.0, cosine })));
            published(Kind::Indel, Level::Moderate, &fits.iter().collect::<Vec<_>>())
        };
        assert!(judged(&[11, 12, 11], 0.95).met);
        assert!(!judged(&[11, 13, 11], 0.95).met && !judged(&[11, 12, 11], 0.88).met);
        assert_eq!(
            judged(&[11, 13], 0.88).words,
            "K 11 to 12 on 1 of 2, 2 wanted; sum 2.880, at least 2.89 wanted"
        );
    }

    #[test]
    fn variants_are_compared_seed_by_seed() {
        let fits: Vec<Outcome> = [(1, 10), (1, 11), (2, 13), (2, 12)]
            .iter()
            .map(|&(seed, k)| {
                let set = Set::Misspecified { tumour: Tumour::Lung, variant: Variant::Clean };
                fit(set, seed, k, None)
            })
            .collect();
        let fits: Vec<&Outcome> = fits.iter().collect();
        assert!(misspecified(&fits).met);
        let far = Outcome { found: 15, ..fits[3].clone() };
        let fits = [&fits[..3], &[&far]].concat();
        assert_eq!(misspecified(&fits).words, "K of the variants moves by 2, at most 1 wanted");
    }

    #[test]
    fn alpha_is_asked_for_only_where_it_is_below_the_mean_count() {
        let set = |alpha| Set::Simulated { components: 5, mean: 30.0, alpha };
        let judged = |alpha, found, learned| simulated(&[&fit(set(alpha), 1, found, learned)]);
        assert!(judged(Some(20.0), 5, Some(22.9)).met && !judged(Some(20.0), 5, Some(23.1)).met);
        assert!(!judged(Some(20.0), 5, None).met && !judged(Some(20.0), 6, Some(20.0)).met);
        assert!(judged(Some(100.0), 5, None).met && judged(None, 5, Some(7.0)).met);
    }

    #[test]
    fn intervals_are_judged_by_the_mean_over_the_fits() {
        let set = Set::Simulated { components: 5, mean: 30.0, alpha: None };
        let judged = |shares: [f64; 2]| {
            let fits = shares.map(|share| Outcome { coverage: Some(share), ..fit(set, 1, 5, None) });
            simulated(&fits.iter().collect::<Vec<_>>()).met
        };
        assert!(judged([0.8, 0.96]) && !judged([0.8, 0.88]) && !judged([0.95, 0.97]));
    }
}
