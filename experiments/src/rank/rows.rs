//! What is fitted and what is asked of it: one row a requirement. Knows nothing of how a fit is made.

use super::change::Change;
use super::data::{Set, usual_size};
use super::rules::Rule;
use bpnmf::GammaReading;
use std::ops::Range;
use std::str::FromStr;

/// One row of the table.
pub(super) struct Row {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// Its name in the table.
    pub(super) title: &'static str,
    pub(super) cases: Vec<Case>,
    pub(super) rule: Rule,
    pub(super) detail: Detail,
    /// Whether the algorithm as printed is run beside it.
    pub(super) literal: bool,
}

/// What is told of a row besides its line in the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Detail {
    Nothing,
    /// A table of K with mean counts as columns.
    ByMean,
    /// A table of seconds.
    Times,
}

impl Row {
    pub(super) fn new(name: &'static str, title: &'static str, cases: Vec<Case>, rule: Rule) -> Self {
        Self { name, title, cases, rule, detail: Detail::Nothing, literal: false }
    }

    fn detailed(self, detail: Detail) -> Self {
        Self { detail, ..self }
    }
}

/// One fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Case {
    pub(super) set: Set,
    /// The seed of the data.
    pub(super) data_seed: u64,
    pub(super) change: Option<Change>,
    /// The seed of the fit.
    pub(super) fit_seed: u64,
    pub(super) truncation: Option<usize>,
}

impl Case {
    /// One seed for data and fit, all else as it is by default.
    pub(super) fn new(set: Set, seed: u64) -> Self {
        Self { set, data_seed: seed, change: None, fit_seed: seed, truncation: None }
    }

    /// Whether it is fitted to the same data.
    pub(super) fn shares_data(&self, other: &Self) -> bool {
        (self.set, self.data_seed, self.change) == (other.set, other.data_seed, other.change)
    }
}

/// The name of a data set, or NAME+CHANGE; the seeds are 1.
impl FromStr for Case {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let (set, change) =
            name.split_once('+').map_or((name, None), |(set, change)| (set, Some(change.parse())));
        Ok(Self { change: change.transpose()?, ..Self::new(set.parse()?, 1) })
    }
}

/// Which seeds there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seeds {
    pub(super) first: u64,
    /// The most seeds a row may have.
    pub(super) most: Option<u64>,
}

impl Seeds {
    fn of(self, n: u64) -> Range<u64> {
        self.first..self.first + n.min(self.most.unwrap_or(n))
    }

    /// New data every time where it is made up; a file is the same for every seed.
    fn every(self, set: Set, n: u64) -> Vec<Case> {
        self.of(n).map(|seed| Case::new(set, seed)).collect()
    }

    /// Fits of one data set.
    fn of_one(self, set: Set, n: u64) -> Vec<Case> {
        self.of(n).map(|fit_seed| Case { fit_seed, ..Case::new(set, self.first) }).collect()
    }

    fn truncated(self, set: Set, truncations: [usize; 3], n: u64) -> Vec<Case> {
        let with = |truncation| {
            self.every(set, n).into_iter().map(move |case| Case { truncation: Some(truncation), ..case })
        };
        truncations.into_iter().flat_map(with).collect()
    }

    /// Every data set as it is and changed.
    fn changed(self, set: Set, change: Change, n: u64) -> Vec<Case> {
        let both = |case| [case, Case { change: Some(change), ..case }];
        self.every(set, n).into_iter().flat_map(both).collect()
    }
}

fn near(below: usize, above: usize, share: f64) -> Rule {
    Rule::Near { below, above, share, cosine: None }
}

fn cell(components: usize, shape: f64, mean: f64) -> Set {
    Set::Grid { components, shape, mean, size: usual_size(components) }
}

/// The whole suite.
pub(super) fn suite(seeds: Seeds) -> Vec<Row> {
    let mut rows = known(seeds);
    rows.extend(made_up(seeds));
    rows.extend(trivial(seeds));
    rows.extend(scatter(seeds));
    rows.extend(nothing(seeds));
    rows.extend(cost(seeds));
    rows
}

/// Data sets others have used, and what is run beside the algorithm as printed.
fn known(seeds: Seeds) -> Vec<Row> {
    let rate = Set::Synthetic { gamma: GammaReading::Rate, observations: 1000 };
    let scale = Set::Synthetic { gamma: GammaReading::Scale, observations: 1000 };
    let row = |name, title, cases, rule| Row { literal: true, ..Row::new(name, title, cases, rule) };
    vec![
        row(
            "synth_rate",
            "paper's recipe, rate",
            seeds.every(rate, 20),
            Rule::Near { below: 1, above: 1, share: 0.9, cosine: Some(0.98) },
        ),
        row("synth_scale", "paper's recipe, scale", seeds.every(scale, 20), near(2, 2, 0.8)),
        row("clip", "ten notes, maximum 1000", seeds.every(Set::Clip { level: 1000 }, 10), near(1, 1, 0.9)),
        row(
            "clip_levels",
            "ten notes, maximum 300, 1000, 3000",
            [300, 1000, 3000].into_iter().flat_map(|level| seeds.every(Set::Clip { level }, 1)).collect(),
            Rule::Spread(2),
        ),
        row("bars", "bars", seeds.every(Set::Bars, 10), near(0, 0, 0.9)),
        row("swimmer", "swimmer, intensity 10", seeds.every(Set::Swimmer, 10), near(0, 1, 0.9)),
        row("breast21", "21 breast cancers", seeds.every(Set::Breast21, 10), near(1, 3, 0.9)),
        row(
            "low_rank",
            "rank 10, mean 4.7, truncation 20, 50, 100",
            seeds.truncated(Set::LowRank { mean: 4.7 }, [20, 50, 100], 3),
            near(0, 0, 1.0),
        ),
        row(
            "low_rank_weak",
            "rank 10, mean 0.46, truncation 20, 50, 100",
            seeds.truncated(Set::LowRank { mean: 0.46 }, [20, 50, 100], 3),
            Rule::MeanError(2.3),
        ),
        row(
            "missing",
            "rank 10, mean 4.7, with 10, 25, 50 % of the entries missing",
            [10, 25, 50].into_iter().flat_map(|percent| seeds.every(Set::Partial { percent }, 3)).collect(),
            near(1, 1, 1.0),
        ),
        row(
            "truncation",
            "paper's recipe, rate, truncation 100, 300, 1000",
            seeds.truncated(rate, [100, 300, 1000], 1),
            Rule::Spread(1),
        ),
        row("noise", "noise, Poisson(5)", seeds.every(Set::Noise { rate: 5.0 }, 10), near(1, 0, 1.0)),
    ]
}

/// Data exactly as the likelihood has it, from few counts to many and from few components to many.
fn made_up(seeds: Seeds) -> Vec<Row> {
    let cells = |components: &[usize], shapes: &[f64], means: &[f64]| {
        let mut cases = Vec::new();
        for &components in components {
            for &shape in shapes {
                cases.extend(means.iter().flat_map(|&mean| seeds.every(cell(components, shape, mean), 3)));
            }
        }
        cases
    };
    let means = [0.46, 0.7, 1.0, 1.5, 2.0, 3.0, 4.7, 7.0, 10.0, 20.0, 50.0];
    let sparse = [60, 100].into_iter().flat_map(|components| {
        [5.0, 50.0].into_iter().flat_map(move |mean| seeds.every(Set::Sparse { components, mean }, 1))
    });
    vec![
        Row::new(
            "grid",
            "grid: K0 3, 5, 10, 20, H of shape 0.5, 1, 5, mean 50, 300, 3000",
            cells(&[3, 5, 10, 20], &[0.5, 1.0, 5.0], &[50.0, 300.0, 3000.0]),
            Rule::All(&[
                Rule::Near { below: 0, above: 0, share: 102.0 / 108.0, cosine: None },
                Rule::Near { below: 3, above: 3, share: 1.0, cosine: None },
            ]),
        )
        .detailed(Detail::ByMean),
        Row::new(
            "grid_weak",
            "grid: K0 3, 5, 10, H of shape 0.5, 1, mean 5",
            cells(&[3, 5, 10], &[0.5, 1.0], &[5.0]),
            near(0, 0, 16.0 / 18.0),
        )
        .detailed(Detail::ByMean),
        Row::new(
            "levels",
            "levels: rank 10, mean 0.46 to 50",
            means.into_iter().flat_map(|mean| seeds.every(Set::LowRank { mean }, 5)).collect(),
            Rule::Levels,
        )
        .detailed(Detail::ByMean),
        Row::new(
            "many",
            "60 and 100 components, each on in 5 % of the columns, mean 5, 50",
            sparse.collect(),
            Rule::Within(0.03),
        ),
    ]
}

/// Data with nothing or next to nothing in them.
fn trivial(seeds: Seeds) -> Vec<Row> {
    vec![
        Row::new(
            "trivial_noise",
            "noise, Poisson(0.5) and Poisson(5)",
            [0.5, 5.0].into_iter().flat_map(|rate| seeds.every(Set::Noise { rate }, 10)).collect(),
            near(0, 0, 1.0),
        ),
        Row::new("constant", "every count 3", seeds.every(Set::Constant, 3), near(0, 0, 1.0)),
        Row::new("rank_one", "rank 1, mean 5", seeds.every(Set::RankOne { mean: 5.0 }, 3), near(0, 0, 1.0)),
        Row::new(
            "background",
            "a flat background and four sparse components, mean 1, 10",
            [1.0, 10.0].into_iter().flat_map(|mean| seeds.every(Set::Background { mean }, 3)).collect(),
            near(1, 1, 1.0),
        ),
    ]
}

/// One data set, many seeds of the fit.
fn scatter(seeds: Seeds) -> Vec<Row> {
    let (same, around) = (Rule::Same(0.9), Rule::AroundMedian(0.05));
    vec![
        Row::new(
            "seeds_grid",
            "ten fits of one data set: K0 10, H of shape 1, mean 300",
            seeds.of_one(cell(10, 1.0, 300.0), 10),
            same,
        ),
        Row::new("seeds_bars", "ten fits of one data set: bars", seeds.of_one(Set::Bars, 10), same),
        Row::new("seeds_swimmer", "ten fits of one data set: swimmer", seeds.of_one(Set::Swimmer, 10), same),
        Row::new("seeds_digits", "ten fits of one data set: digits", seeds.of_one(Set::Digits, 10), around),
        Row::new(
            "seeds_cells",
            "ten fits of one data set: 1,000 single cells",
            seeds.of_one(Set::Cells { cells: 1000 }, 10),
            around,
        ),
    ]
}

/// Changes that say nothing about what is in the data.
fn nothing(seeds: Seeds) -> Vec<Row> {
    let sets = [cell(10, 1.0, 50.0), Set::LowRank { mean: 4.7 }];
    let changed = |change| sets.into_iter().flat_map(|set| seeds.changed(set, change, 3)).collect();
    vec![
        Row::new(
            "nothing_zero_rows",
            "rank 10, mean 50 and 4.7, as it is and with 20,000 zero rows",
            changed(Change::ZeroRows(20_000)),
            Rule::Unmoved(0),
        ),
        Row::new(
            "nothing_rows",
            "rank 10, mean 50 and 4.7, as it is and with rows shuffled",
            changed(Change::ShuffledRows),
            Rule::Unmoved(1),
        ),
        Row::new(
            "nothing_columns",
            "rank 10, mean 50 and 4.7, as it is and with columns shuffled",
            changed(Change::ShuffledColumns),
            Rule::Unmoved(1),
        ),
        Row::new(
            "nothing_truncation",
            "rank 10, mean 50 and 4.7, truncation 100, 300, 1000",
            sets.into_iter().flat_map(|set| seeds.truncated(set, [100, 300, 1000], 3)).collect(),
            Rule::Unmoved(0),
        ),
    ]
}

/// What a fit costs; K is told by other rows.
fn cost(seeds: Seeds) -> Vec<Row> {
    let wide = |components| Set::Grid { components, shape: 1.0, mean: 300.0, size: (100, 200) };
    vec![
        Row::new(
            "cost_mean",
            "seconds against the mean count: K0 10, H of shape 1",
            [5.0, 50.0, 300.0, 3000.0]
                .into_iter()
                .flat_map(|mean| seeds.every(cell(10, 1.0, mean), 3))
                .collect(),
            Rule::Slower(5.0),
        )
        .detailed(Detail::Times),
        Row::new(
            "cost_components",
            "seconds against K0: 100 x 200, H of shape 1, mean 300",
            [3, 5, 10, 20].into_iter().flat_map(|components| seeds.every(wide(components), 3)).collect(),
            Rule::Growth(2.0),
        )
        .detailed(Detail::Times),
    ]
}

/// A few small fits with a wide margin, to see that nothing is broken.
pub(super) fn quick() -> Vec<Row> {
    let row = |name, title, set| Row::new(name, title, vec![Case::new(set, 1)], near(2, 2, 1.0));
    vec![
        row("noise", "noise, Poisson(5)", Set::Noise { rate: 5.0 }),
        row("low_rank", "rank 10, mean 4.7", Set::LowRank { mean: 4.7 }),
        row(
            "synth_rate",
            "paper's recipe, rate, 300 columns",
            Set::Synthetic { gamma: GammaReading::Rate, observations: 300 },
        ),
        row("bars", "bars", Set::Bars),
    ]
}

/// Data sets that were named on the command line.
pub(super) fn named(sets: &[Case], seeds: Seeds) -> Row {
    let of = |&set: &Case| seeds.of(3).map(move |seed| Case { data_seed: seed, fit_seed: seed, ..set });
    let cases = sets.iter().flat_map(of).collect();
    Row::new("sets", "the data sets that were named", cases, near(0, 0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_has_other_seeds_than_those_allowed_and_all_names_differ() {
        let rows = suite(Seeds { first: 5, most: Some(2) });
        for case in rows.iter().flat_map(|row| &row.cases) {
            assert!((5..7).contains(&case.fit_seed) && (5..7).contains(&case.data_seed));
        }
        let mut names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows.len());
    }

    #[test]
    fn the_rows_have_as_many_fits_as_their_rules_say() {
        let rows = suite(Seeds { first: 1, most: None });
        let fits = |name: &str| rows.iter().find(|row| row.name == name).unwrap().cases.len();
        assert_eq!((fits("grid"), fits("grid_weak"), fits("levels"), fits("many")), (108, 18, 55, 4));
        assert_eq!((fits("nothing_zero_rows"), fits("nothing_truncation")), (12, 18));
    }
}
