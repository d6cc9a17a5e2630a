//! What the fits of a row must show, and whether they do. Knows nothing of how a fit is made.

use super::data::Set;
use super::rows::Case;
use crate::spread::Spread;

/// What became of one fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    pub(super) case: Case,
    /// The true number of components, where it is known.
    pub(super) truth: Option<usize>,
    /// K.
    pub(super) found: usize,
    /// See [`super::matching::least_cosine`].
    pub(super) cosine: Option<f64>,
    pub(super) seconds: f64,
}

impl Outcome {
    /// The distance from K to the truth; 0 where that is not known.
    pub(super) fn error(&self) -> usize {
        self.truth.map_or(0, |truth| self.found.abs_diff(truth))
    }
}

/// What a row's fits must show.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// K between truth - below and truth + above on at least this share of the fits, and on every fit every true part
    /// that is on in at least 2 % of the columns matched at this cosine.
    Near { below: usize, above: usize, share: f64, cosine: Option<f64> },
    /// K off by no more than this share of the truth on every fit.
    Within(f64),
    /// The largest and the smallest K differ by no more than this.
    Spread(usize),
    /// The same, among the fits of each data set, however it was changed.
    Unmoved(usize),
    /// One K on at least this share of the fits.
    Same(f64),
    /// Every K within this share of their median, or within 1.
    AroundMedian(f64),
    /// The mean distance from K to the truth is no more than this.
    MeanError(f64),
    /// The mean distance from K to the truth at every mean count is no more than [`most_error`], and it does not rise by
    /// more than 1 from one mean count to the next.
    Levels,
    /// The last data set takes no more than so many times the seconds of the first.
    Slower(f64),
    /// Seconds grow with no more than this power of the true number of components.
    Growth(f64),
    /// All of these.
    All(&'static [Rule]),
}

/// Whether a rule is kept, and by how much.
pub(crate) struct Verdict {
    pub(crate) met: bool,
    pub(crate) words: String,
}

impl Rule {
    /// Judges the fits of a row; without any, nothing is met.
    pub(super) fn judge(self, outcomes: &[Outcome]) -> Verdict {
        if outcomes.is_empty() {
            return Verdict { met: false, words: "there are no fits".into() };
        }
        match self {
            Self::Near { below, above, share, cosine } => near(outcomes, below, above, share, cosine),
            Self::Within(share) => {
                let allowed = |outcome: &Outcome| share * outcome.truth.unwrap_or(0) as f64;
                let hits = outcomes.iter().filter(|fit| fit.error() as f64 <= allowed(fit)).count();
                shares(hits, outcomes.len(), 1.0, &format!("K within {:.0} %", 100.0 * share))
            }
            Self::Spread(most) => {
                let spread = spread(outcomes.iter());
                Verdict { met: spread <= most, words: format!("K moves by {spread}, at most {most} wanted") }
            }
            Self::Unmoved(most) => {
                let sets = groups(outcomes, |case| (case.set, case.data_seed));
                let spread = sets.iter().map(|(_, fits)| spread(fits.iter().copied())).max().unwrap_or(0);
                let words = format!("K of a data set moves by at most {spread}, {most} wanted");
                Verdict { met: spread <= most, words }
            }
            Self::Same(share) => {
                let as_often = |k: usize| outcomes.iter().filter(|outcome| outcome.found == k).count();
                let hits = outcomes.iter().map(|outcome| as_often(outcome.found)).max().unwrap_or(0);
                shares(hits, outcomes.len(), share, "the same K")
            }
            Self::AroundMedian(share) => {
                let median = Spread::of(outcomes.iter().map(|outcome| outcome.found as f64)).median;
                let allowed = (share * median).max(1.0);
                let near = |outcome: &&Outcome| (outcome.found as f64 - median).abs() <= allowed;
                let hits = outcomes.iter().filter(near).count();
                let words = format!("K within {allowed:.1} of the median {median}");
                shares(hits, outcomes.len(), 1.0, &words)
            }
            Self::MeanError(most) => {
                let mean = mean_error(outcomes.iter());
                Verdict {
                    met: mean <= most,
                    words: format!("off by {mean:.1} on average, at most {most} wanted"),
                }
            }
            Self::Levels => levels(outcomes),
            Self::Slower(most) => {
                let times = times(outcomes);
                let ratio = times[times.len() - 1].1 / times[0].1;
                let words = format!("the last takes {ratio:.1} times the first, at most {most} wanted");
                Verdict { met: ratio <= most, words }
            }
            Self::Growth(most) => growth(outcomes, most),
            Self::All(rules) => {
                let verdicts: Vec<Verdict> = rules.iter().map(|rule| rule.judge(outcomes)).collect();
                let words: Vec<&str> = verdicts.iter().map(|verdict| verdict.words.as_str()).collect();
                Verdict { met: verdicts.iter().all(|verdict| verdict.met), words: words.join("; ") }
            }
        }
    }
}

/// So many hits, of which a share is wanted.
pub(crate) fn shares(hits: usize, all: usize, share: f64, what: &str) -> Verdict {
    // A little less than the share, so that 0.9 of 10 is 9 in any arithmetic.
    let wanted = (share * all as f64 - 1e-9).ceil() as usize;
    Verdict { met: hits >= wanted, words: format!("{what} on {hits} of {all}, {wanted} wanted") }
}

fn near(outcomes: &[Outcome], below: usize, above: usize, share: f64, cosine: Option<f64>) -> Verdict {
    let all = outcomes.len();
    let hit = |outcome: &&Outcome| {
        outcome
            .truth
            .is_some_and(|truth| (truth.saturating_sub(below)..=truth + above).contains(&outcome.found))
    };
    let margin = match (below, above) {
        (0, 0) => "exact".into(),
        (_, 0) => "not above the truth".into(),
        _ if below == above => format!("within {above}"),
        (0, _) => format!("from the truth to {above} above"),
        _ => format!("from {below} below the truth to {above} above"),
    };
    let mut verdict = shares(outcomes.iter().filter(hit).count(), all, share, &format!("K {margin}"));
    if let Some(least) = cosine {
        let matched = outcomes.iter().filter(|outcome| outcome.cosine.is_some_and(|c| c >= least)).count();
        verdict.met &= matched == all;
        verdict.words += &format!("; every part matched at {least} on {matched} of {all}, {all} wanted");
    }
    verdict
}

/// The largest mean error allowed at a mean count.
fn most_error(mean: f64) -> f64 {
    match mean {
        ..1.0 => 2.0,
        ..4.7 => 1.0,
        _ => 0.0,
    }
}

fn levels(outcomes: &[Outcome]) -> Verdict {
    let errors: Vec<(f64, f64)> = groups(outcomes, |case| case.set)
        .iter()
        .filter_map(|(set, fits)| Some((set.mean()?, mean_error(fits.iter().copied()))))
        .collect();
    let far: Vec<String> = errors
        .iter()
        .filter(|(mean, error)| *error > most_error(*mean))
        .map(|(mean, error)| format!("{error:.1} at mean {mean}"))
        .collect();
    let rise = errors.windows(2).map(|pair| pair[1].1 - pair[0].1).fold(0.0, f64::max);
    let far_words = if far.is_empty() { "nowhere".into() } else { format!("by {}", far.join(", ")) };
    Verdict {
        met: far.is_empty() && rise <= 1.0,
        words: format!(
            "off on average by at most 2 below mean 1, 1 below 4.7, 0 from there wanted, further off {far_words}; \
             the error rises by {rise:.1}, at most 1 wanted"
        ),
    }
}

fn growth(outcomes: &[Outcome], most: f64) -> Verdict {
    let truths: Vec<f64> =
        groups(outcomes, |case| case.set).iter().map(|(_, fits)| fits[0].truth.unwrap_or(1) as f64).collect();
    let seconds: Vec<f64> = times(outcomes).iter().map(|(_, seconds)| *seconds).collect();
    let power = truths
        .iter()
        .zip(&seconds)
        .skip(1)
        .map(|(truth, time)| (time / seconds[0]).ln() / (truth / truths[0]).ln())
        .fold(0.0, f64::max);
    Verdict {
        met: power <= most,
        words: format!("seconds grow from the first with K0 to at most {power:.1}, {most} wanted"),
    }
}

/// The data sets in the order they were fitted, and the median of the seconds a fit took.
pub(super) fn times(outcomes: &[Outcome]) -> Vec<(Set, f64)> {
    let median = |fits: &[&Outcome]| Spread::of(fits.iter().map(|fit| fit.seconds)).median;
    groups(outcomes, |case| case.set).into_iter().map(|(set, fits)| (set, median(&fits))).collect()
}

/// The fits that agree in something, in the order of the first of each.
pub(super) fn groups<K: PartialEq>(
    outcomes: &[Outcome],
    key: impl Fn(&Case) -> K,
) -> Vec<(K, Vec<&Outcome>)> {
    let mut groups: Vec<(K, Vec<&Outcome>)> = Vec::new();
    for outcome in outcomes {
        let own = key(&outcome.case);
        match groups.iter_mut().find(|(key, _)| *key == own) {
            Some((_, fits)) => fits.push(outcome),
            None => groups.push((own, vec![outcome])),
        }
    }
    groups
}

fn spread<'a>(outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> usize {
    let found = || outcomes.clone().map(|outcome| outcome.found);
    found().max().unwrap_or(0) - found().min().unwrap_or(0)
}

fn mean_error<'a>(outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> f64 {
    let many = outcomes.clone().count().max(1);
    outcomes.map(Outcome::error).sum::<usize>() as f64 / many as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fits of one data set.
    fn outcomes(pairs: &[(usize, usize)]) -> Vec<Outcome> {
        pairs.iter().map(|&(found, truth)| outcome(5.0, found, truth)).collect()
    }

    fn outcome(mean: f64, found: usize, truth: usize) -> Outcome {
        let case = Case::new(Set::LowRank { mean }, 1);
        Outcome { case, truth: Some(truth), found, cosine: Some(0.99), seconds: 1.0 }
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
    }

    #[test]
    fn without_fits_nothing_is_met() {
        let rules = [
            Rule::Within(0.1),
            Rule::Spread(1),
            Rule::Unmoved(1),
            Rule::Same(0.9),
            Rule::AroundMedian(0.1),
            Rule::MeanError(1.0),
            Rule::Levels,
            Rule::Slower(5.0),
            Rule::Growth(2.0),
            Rule::All(&[]),
        ];
        assert!(rules.iter().all(|rule| !rule.judge(&[]).met));
    }

    #[test]
    fn spread_and_mean_error_are_those_of_the_fits() {
        let fits = outcomes(&[(9, 10), (11, 10), (10, 10)]);
        assert!(Rule::Spread(2).judge(&fits).met && !Rule::Spread(1).judge(&fits).met);
        assert!(Rule::MeanError(0.7).judge(&fits).met && !Rule::MeanError(0.6).judge(&fits).met);
    }

    #[test]
    fn what_is_asked_of_one_data_set_is_not_asked_across_data_sets() {
        let mut fits = outcomes(&[(9, 10), (10, 10), (20, 10)]);
        assert!(!Rule::Unmoved(1).judge(&fits).met);
        fits[2].case.data_seed = 2;
        assert!(Rule::Unmoved(1).judge(&fits).met && !Rule::Unmoved(0).judge(&fits).met);
    }

    #[test]
    fn shares_are_those_of_the_truth_of_the_mode_and_of_the_median() {
        let fits = outcomes(&[(61, 60), (103, 100)]);
        assert!(Rule::Within(0.03).judge(&fits).met && !Rule::Within(0.01).judge(&fits).met);
        let fits = outcomes(&[(41, 0), (40, 0), (40, 0), (38, 0)]);
        assert!(Rule::Same(0.5).judge(&fits).met && !Rule::Same(0.7).judge(&fits).met);
        assert!(Rule::AroundMedian(0.05).judge(&fits).met && !Rule::AroundMedian(0.04).judge(&fits).met);
        assert!(Rule::AroundMedian(0.0).judge(&outcomes(&[(3, 0), (4, 0), (5, 0)])).met);
        let both = Rule::All(&[Rule::Same(0.5), Rule::Spread(1)]);
        assert!(!both.judge(&fits).met && both.judge(&fits[..3]).met);
    }

    #[test]
    fn strong_levels_must_be_exact_and_no_level_much_worse_than_the_one_before() {
        let fits = |found: [usize; 4]| -> Vec<Outcome> {
            [0.46, 1.0, 3.0, 4.7].iter().zip(found).map(|(&mean, found)| outcome(mean, found, 10)).collect()
        };
        assert!(Rule::Levels.judge(&fits([8, 9, 11, 10])).met);
        assert!(!Rule::Levels.judge(&fits([8, 9, 10, 11])).met);
        assert!(!Rule::Levels.judge(&fits([7, 9, 10, 10])).met);
        assert!(!Rule::Levels.judge(&fits([8, 8, 10, 10])).met);
    }

    #[test]
    fn growth_is_the_power_of_the_number_of_components() {
        let mut fits = vec![outcome(1.0, 3, 3), outcome(2.0, 6, 6), outcome(3.0, 12, 12)];
        (fits[1].seconds, fits[2].seconds) = (2.0, 16.0);
        assert!(Rule::Growth(2.0).judge(&fits).met && !Rule::Growth(1.9).judge(&fits).met);
        assert!(Rule::Slower(16.0).judge(&fits).met && !Rule::Slower(15.0).judge(&fits).met);
    }
}
