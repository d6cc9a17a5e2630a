//! What data that are no counts look like. Knows nothing of models; silent on what may be counts.

use crate::counts::Counts;
use std::fmt;

/// Why data are unlikely to be raw counts. Its text is one sentence that names what they look like and what to give instead.
///
/// ```
/// use bpnmf::{Counts, Suspicion};
/// let frequencies = Counts::from_dense(2, 3, vec![0.25, 0.75, 0.5, 0.5, 0.125, 0.875])?;
/// let sentence = Suspicion::of(&frequencies).unwrap().to_string();
/// assert_eq!(
///     sentence,
///     "every observation adds up to 1: the data look like frequencies, not counts; give the raw counts"
/// );
/// assert_eq!(Suspicion::of(&Counts::from_dense(2, 2, vec![1.0, 0.0, 3.0, 2.0])?), None);
/// # Ok::<(), bpnmf::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Suspicion {
    /// Fractions whose sum is the same in every observation: TPM, CPM, percentages, frequencies.
    EqualSums {
        /// The sum.
        total: f64,
    },
    /// Logarithms of one plus a count, or of one plus a normalised count.
    Logarithms {
        /// Of the logarithm: 2, e or 10.
        base: f64,
    },
    /// Whole numbers times a factor that is not 1.
    Scaled {
        /// `None` if it differs between observations.
        factor: Option<f64>,
    },
    /// More components were found than the matrix has rows or columns.
    TooManyComponents {
        /// Found.
        components: usize,
        /// F.
        features: usize,
        /// T.
        observations: usize,
    },
}

/// Below this share of entries that are not whole, data are counts with a few exceptions, such as expected counts.
const MOSTLY: f64 = 0.5;

/// The most observations that are looked at entry by entry; they are spread over all.
const MOST_LOOKED_AT: usize = 200;

/// Sums are the same if they differ by no more than this share. Digits that were cut off add up.
const SAME: f64 = 1e-3;

/// Sums that are not those of a known unit must agree in so many observations.
const LEAST_OBSERVATIONS: usize = 5;

/// Up to so many components are never too many.
const FEW: usize = 5;

/// The entries that must be whole, or multiples of something, before it is no coincidence.
const LEAST_ENTRIES: usize = 20;

/// The share of them that must be so: a file may have a few odd ones.
const NEARLY_ALL: f64 = 0.98;

/// How far from a whole number a number of few digits may be: one in 25 is so by chance.
const ROUNDING: f64 = 0.02;

/// Larger multiples are not looked at: their rounding error is as large as the unit.
const LARGEST_MULTIPLE: f64 = 20.0;

/// The bases of logarithms, and the largest logarithm of a count: that of about 1e9.
const BASES: [(f64, f64); 3] = [(std::f64::consts::E, 21.0), (2.0, 30.0), (10.0, 9.0)];

impl Suspicion {
    /// What the data look like; `None` if they may be counts. Takes a look at every entry at most, and at few if all are
    /// whole.
    pub fn of(counts: &Counts) -> Option<Self> {
        if counts.first_fraction().is_none() {
            return rounded_millions(counts).or_else(|| common_factor(counts));
        }
        if share_of_fractions(counts) < MOSTLY {
            return None;
        }
        let totals: Vec<f64> = whole_columns(counts).map(|t| counts.column_totals()[t]).collect();
        equal_sums(&totals)
            .map(|total| Self::EqualSums { total })
            .or_else(|| scaled(counts))
            // After the factor: of small numbers the logarithm is nearly the number.
            .or_else(|| BASES.into_iter().find_map(|(base, most)| logarithms(counts, base, most)))
    }

    /// Whether a search found more components than data of this size can tell apart: more than rows or columns. With
    /// up to five of them nothing is said, as few rows can be combined in more ways than there are rows.
    pub fn of_components(components: usize, counts: &Counts) -> Option<Self> {
        let (features, observations) = (counts.features(), counts.observations());
        let too_many = components > features.min(observations).max(FEW);
        too_many.then_some(Self::TooManyComponents { components, features, observations })
    }
}

impl fmt::Display for Suspicion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const INSTEAD: &str = "not counts; give the raw counts";
        match *self {
            Self::EqualSums { total } => {
                let unit = known_unit(total);
                let kind = unit.map_or("values that were normalised", |(_, kind)| kind);
                let total = unit.map_or(total, |(unit, _)| unit);
                write!(out, "every observation adds up to {total}: the data look like {kind}, {INSTEAD}")
            }
            Self::Logarithms { base } => {
                let name = if base == std::f64::consts::E { "e".into() } else { base.to_string() };
                write!(out, "the data look like logarithms, log(1 + count) to base {name}, {INSTEAD}")
            }
            Self::Scaled { factor: Some(factor) } => write!(
                out,
                "all entries are whole numbers times {}: the data look like counts that were scaled, {INSTEAD}",
                (factor * 1e6).round() / 1e6
            ),
            Self::Scaled { factor: None } => write!(
                out,
                "the entries of every observation are whole numbers times a factor of its own: the data look like counts \
                 that were normalised, {INSTEAD}"
            ),
            Self::TooManyComponents { components, features, observations } => {
                let (least, what) = if features < observations {
                    (features, "features")
                } else {
                    (observations, "observations")
                };
                write!(
                    out,
                    "{components} components were found but there are only {least} {what}: so many cannot be told apart, \
                     which happens where data are no counts, such as values that were normalised or scaled; give the raw \
                     counts"
                )
            }
        }
    }
}

/// The unit whose sum this is within 1 %, and what it is called.
fn known_unit(total: f64) -> Option<(f64, &'static str)> {
    const UNITS: [(f64, &str); 4] = [
        (1.0, "frequencies"),
        (100.0, "percentages"),
        (1e4, "counts per ten thousand"),
        (1e6, "counts per million (CPM or TPM)"),
    ];
    UNITS.into_iter().find(|(unit, _)| (total / unit - 1.0).abs() <= 0.01)
}

/// The observations that have counts and of which every entry was observed.
fn whole_columns(counts: &Counts) -> impl Iterator<Item = usize> {
    (0..counts.observations()).filter(|&t| counts.missing(t).is_empty() && counts.column_totals()[t] > 0.0)
}

/// Observations spread over all.
fn looked_at(counts: &Counts) -> impl Iterator<Item = usize> {
    (0..counts.observations()).step_by(counts.observations().div_ceil(MOST_LOOKED_AT))
}

/// The share of the positive entries that are not whole.
fn share_of_fractions(counts: &Counts) -> f64 {
    let (mut fractions, mut all) = (0usize, 0usize);
    for t in looked_at(counts) {
        for (_, value) in counts.column(t).positive() {
            all += 1;
            fractions += usize::from(value.fract() != 0.0);
        }
    }
    fractions as f64 / all.max(1) as f64
}

/// The sum that all of these are, if there are enough of them for it to be no coincidence.
fn equal_sums(totals: &[f64]) -> Option<f64> {
    let (least, most) = totals
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(least, most), &total| (least.min(total), most.max(total)));
    let middle = f64::midpoint(least, most);
    let known = known_unit(middle).is_some_and(|(unit, _)| {
        // Few digits of many small numbers: a sum of 1 may be 0.99.
        let near = totals.iter().all(|total| (total / unit - 1.0).abs() <= 0.01);
        let exact = totals.iter().all(|total| (total / unit - 1.0).abs() <= 1e-6);
        (totals.len() >= 2 && near) || (totals.len() == 1 && exact)
    });
    let unknown = totals.len() >= LEAST_OBSERVATIONS && most - least <= SAME * most;
    (known || unknown).then_some(middle)
}

/// Counts per million that were rounded: their sums are near a million, and not exactly, as those of counts that were drawn to
/// be so many are.
fn rounded_millions(counts: &Counts) -> Option<Suspicion> {
    const MILLION: f64 = 1e6;
    const NEAR: f64 = 1e-4;
    let totals: Vec<f64> = whole_columns(counts).map(|t| counts.column_totals()[t]).collect();
    let near = totals.iter().all(|total| (total / MILLION - 1.0).abs() <= NEAR);
    let exact = totals.iter().all(|total| *total == MILLION);
    (totals.len() >= LEAST_OBSERVATIONS && near && !exact).then_some(Suspicion::EqualSums { total: MILLION })
}

/// A whole number above 1 that divides all of many whole entries, not all the same.
fn common_factor(counts: &Counts) -> Option<Suspicion> {
    let divisor = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let (mut factor, mut seen) = (0, Distinct::default());
    for t in 0..counts.observations() {
        for (_, value) in counts.column(t).positive() {
            factor = divisor(factor, value as u64);
            if factor == 1 {
                return None;
            }
            seen.add(value);
        }
    }
    let enough = counts.nonzeros() >= LEAST_ENTRIES && seen.enough();
    enough.then_some(Suspicion::Scaled { factor: Some(factor as f64) })
}

/// Whether there are at least three different numbers: two levels, on and off, say nothing about a unit.
#[derive(Default)]
struct Distinct(Vec<f64>);

impl Distinct {
    const LEAST: usize = 3;

    fn add(&mut self, value: f64) {
        if self.0.len() < Self::LEAST && !self.0.contains(&value) {
            self.0.push(value);
        }
    }

    fn enough(&self) -> bool {
        self.0.len() >= Self::LEAST
    }
}

/// Numbers that should be whole, and how many are.
#[derive(Default)]
struct Whole {
    all: usize,
    hits: usize,
    seen: Distinct,
}

impl Whole {
    fn add(&mut self, value: f64) {
        let whole = value.round();
        self.all += 1;
        if whole >= 1.0 && (value - whole).abs() <= ROUNDING {
            self.hits += 1;
            self.seen.add(whole);
        }
    }

    /// Whether they are, and that is no coincidence.
    fn sure(&self) -> bool {
        self.all >= LEAST_ENTRIES && self.seen.enough() && self.hits as f64 >= NEARLY_ALL * self.all as f64
    }
}

/// Whether one less than the powers of the base are counts, or add up to the same in every observation, or are counts
/// times a factor in every observation.
fn logarithms(counts: &Counts, base: f64, most: f64) -> Option<Suspicion> {
    /// Above, the digits of a logarithm do not show whether it is that of a whole number.
    const LARGEST: f64 = 200.0;
    let power = |value: f64| (value * base.ln()).exp_m1();
    let (mut whole, mut multiples, mut sums) = (Whole::default(), Whole::default(), Vec::new());
    for t in looked_at(counts) {
        let values: Vec<f64> = counts.column(t).positive().map(|(_, value)| value).collect();
        if values.iter().any(|&value| value > most) {
            return None;
        }
        let powers: Vec<f64> = values.into_iter().map(power).collect();
        powers.iter().filter(|&&power| power <= LARGEST).for_each(|&power| whole.add(power));
        add_multiples(&powers, &mut multiples);
        if counts.missing(t).is_empty() && !powers.is_empty() {
            sums.push(powers.iter().sum());
        }
    }
    (whole.sure() || multiples.sure() || equal_sums(&sums).is_some())
        .then_some(Suspicion::Logarithms { base })
}

/// Entries that are whole numbers times a factor, one for all or one an observation.
fn scaled(counts: &Counts) -> Option<Suspicion> {
    let (mut own, mut all) = (Whole::default(), Vec::new());
    for t in looked_at(counts) {
        let values: Vec<f64> = counts.column(t).positive().map(|(_, value)| value).collect();
        add_multiples(&values, &mut own);
        all.extend(values);
    }
    let mut common = Whole::default();
    let factor = add_multiples(&all, &mut common).filter(|_| common.sure());
    (factor.is_some() || own.sure()).then_some(Suspicion::Scaled { factor })
}

/// The values as multiples of their unit, which is the least of them or a half or a third of that. The least itself, which is
/// whole by definition, and large multiples are left out.
fn add_multiples(values: &[f64], whole: &mut Whole) -> Option<f64> {
    let least = values.iter().copied().reduce(f64::min)?;
    let judged = |unit: f64| {
        let mut whole = Whole::default();
        let multiples =
            values.iter().filter(|&&value| value > least * (1.0 + SAME)).map(|value| value / unit);
        multiples.filter(|&multiple| multiple <= LARGEST_MULTIPLE).for_each(|multiple| whole.add(multiple));
        whole
    };
    let share = |whole: &Whole| whole.hits as f64 / whole.all.max(1) as f64;
    let (mut unit, mut best) = (least, judged(least));
    for part in [2.0, 3.0] {
        let other = judged(least / part);
        // A finer unit fits more by chance: it must fit much more.
        if share(&best) < NEARLY_ALL && share(&other) >= NEARLY_ALL {
            (unit, best) = (least / part, other);
        }
    }
    whole.all += best.all;
    whole.hits += best.hits;
    best.seen.0.iter().for_each(|&value| whole.seen.add(value));
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::stream;

    const SIZE: (usize, usize) = (40, 12);

    /// Counts of very different features and observations.
    fn raw() -> Vec<Vec<f64>> {
        let mut stream = stream(5);
        let rates: Vec<f64> = (0..SIZE.0).map(|_| 20.0 * stream.gamma(0.5)).collect();
        (0..SIZE.1)
            .map(|_| {
                let depth = stream.gamma(2.0);
                rates.iter().map(|rate| stream.poisson(rate * depth)).collect()
            })
            .collect()
    }

    fn counts(columns: &[Vec<f64>]) -> Counts {
        Counts::from_dense(columns[0].len(), columns.len(), columns.concat()).unwrap()
    }

    fn told(columns: &[Vec<f64>]) -> Option<Suspicion> {
        let dense = counts(columns);
        let found = Suspicion::of(&dense);
        // Held sparse, they are the same.
        let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
        for t in 0..dense.observations() {
            for (f, value) in dense.column(t).positive() {
                rows.push(f as u32);
                values.push(value);
            }
            starts.push(rows.len());
        }
        let sparse =
            Counts::from_sparse(dense.features(), dense.observations(), starts, rows, values).unwrap();
        assert_eq!(Suspicion::of(&sparse), found);
        found
    }

    fn changed(change: impl Fn(f64, f64) -> f64) -> Vec<Vec<f64>> {
        let column = |column: Vec<f64>| {
            let total = column.iter().sum();
            column.into_iter().map(|value| change(value, total)).collect()
        };
        raw().into_iter().map(column).collect()
    }

    fn digits(value: f64, digits: i32) -> f64 {
        let scale = 10f64.powi(digits);
        (value * scale).round() / scale
    }

    #[test]
    fn fractions_with_equal_sums_are_named_by_their_sum() {
        for (sum, cut, name) in [
            (1.0, 15, "frequencies"),
            (1.0, 4, "frequencies"),
            (100.0, 2, "percentages"),
            (1e4, 3, "counts per ten thousand"),
            (1e6, 2, "counts per million (CPM or TPM)"),
            (8271.4, 6, "values that were normalised"),
        ] {
            let suspicion = told(&changed(|value, total| digits(sum * value / total, cut))).unwrap();
            assert!(matches!(suspicion, Suspicion::EqualSums { total } if (total / sum - 1.0).abs() < 0.01));
            let sentence = suspicion.to_string();
            assert!(sentence.contains(name) && sentence.ends_with("give the raw counts"), "{sentence}");
        }
        let lonely = |sum: f64| told(&[changed(|value, total| sum * value / total)[0].clone()]);
        assert_eq!(lonely(1e6).unwrap().to_string().matches("adds up to 1000000").count(), 1);
        assert!(!matches!(lonely(8271.4), Some(Suspicion::EqualSums { .. })));
    }

    #[test]
    fn counts_per_million_are_told_even_if_they_were_rounded() {
        let rounded = changed(|value, total| (1e6 * value / total).round());
        assert_eq!(told(&rounded), Some(Suspicion::EqualSums { total: 1e6 }));
        // Counts drawn to be exactly so many are counts.
        let mut drawn = rounded;
        for column in &mut drawn {
            let total: f64 = column.iter().sum();
            let most = column.iter().copied().fold(0.0, f64::max);
            *column.iter_mut().find(|value| **value == most).unwrap() += 1e6 - total;
        }
        assert_eq!(told(&drawn), None);
    }

    #[test]
    fn logarithms_of_counts_are_told_with_their_base() {
        for base in [2.0, std::f64::consts::E, 10.0] {
            for cut in [4, 15] {
                let logs = changed(|value, _| digits(value.ln_1p() / base.ln(), cut));
                assert_eq!(told(&logs), Some(Suspicion::Logarithms { base }), "{base} {cut}");
            }
        }
        let singles = changed(|value, _| f64::from((value as f32).ln_1p()));
        let sentence = told(&singles).unwrap().to_string();
        assert!(sentence.contains("log(1 + count) to base e, not counts; give the raw counts"), "{sentence}");
    }

    #[test]
    fn logarithms_of_normalised_counts_are_told_with_and_without_all_features() {
        let normalised = |value: f64, total: f64| (1e4 * value / total).ln_1p();
        let all = changed(normalised);
        assert_eq!(told(&all), Some(Suspicion::Logarithms { base: std::f64::consts::E }));
        let some: Vec<Vec<f64>> = all.iter().map(|column| column[..30].to_vec()).collect();
        assert_eq!(told(&some), Some(Suspicion::Logarithms { base: std::f64::consts::E }));
        let millions = changed(|value, total| digits((1e6 * value / total).ln_1p() / 2f64.ln(), 4));
        assert_eq!(told(&millions), Some(Suspicion::Logarithms { base: 2.0 }));
    }

    #[test]
    fn counts_times_a_factor_are_told() {
        for factor in [10.0, 2.0, 0.37, 2.5, 1e-4] {
            let found = told(&changed(|value, _| value * factor));
            assert!(
                matches!(found, Some(Suspicion::Scaled { factor: Some(own) }) if (own / factor - 1.0).abs() < 1e-6),
                "{factor}: {found:?}"
            );
        }
        let sentence = told(&changed(|value, _| value * 0.37)).unwrap().to_string();
        assert!(sentence.starts_with("all entries are whole numbers times 0.37: "), "{sentence}");
        // Divided by the size of the observation, and then some features were left out.
        let own = changed(|value, total| value / total.sqrt());
        let some: Vec<Vec<f64>> = own.iter().map(|column| column[5..].to_vec()).collect();
        assert_eq!(told(&some), Some(Suspicion::Scaled { factor: None }));
    }

    #[test]
    fn counts_and_what_may_be_counts_are_passed_over_in_silence() {
        assert_eq!(told(&raw()), None);
        // Expected counts: a fraction where a read fits in two places.
        let mut expected = raw();
        for column in &mut expected {
            column.iter_mut().step_by(7).for_each(|value| *value += 0.5);
            column.iter_mut().skip(1).step_by(9).for_each(|value| *value += 0.37);
        }
        assert_eq!(told(&expected), None);
        // The same number of counts in every observation, on and off, one level, and nothing at all.
        let rarefied = vec![vec![3.0, 0.0, 7.0], vec![5.0, 5.0, 0.0], vec![1.0, 8.0, 1.0]];
        assert_eq!(told(&rarefied), None);
        assert_eq!(told(&changed(|value, _| if value > 9.0 { 255.0 } else { 0.0 })), None);
        assert_eq!(told(&[vec![0.0; 4], vec![0.0; 4]]), None);
        assert_eq!(told(&[vec![10.0, 20.0, 30.0]]), None);
        // Magnitudes of a sound, or rates: fractions without a unit.
        let mut stream = stream(9);
        for scale in [0.01, 1.0, 30.0, 1000.0] {
            let smooth: Vec<Vec<f64>> =
                (0..30).map(|_| (0..50).map(|_| scale * stream.gamma(0.7)).collect()).collect();
            assert_eq!(told(&smooth), None, "{scale}");
        }
    }

    #[test]
    fn sums_of_observations_with_missing_entries_say_nothing() {
        let mut columns = changed(|value, total| 1e6 * (value + 0.1) / (total + 4.0));
        columns.iter_mut().skip(1).for_each(|column| column[3] = f64::NAN);
        let partial = Counts::from_dense_with_missing(SIZE.0, SIZE.1, columns.concat()).unwrap();
        assert_eq!(Suspicion::of(&partial), Some(Suspicion::EqualSums { total: partial.column_totals()[0] }));
        columns[0][0] = f64::NAN;
        let none = Counts::from_dense_with_missing(SIZE.0, SIZE.1, columns.concat()).unwrap();
        assert!(!matches!(Suspicion::of(&none), Some(Suspicion::EqualSums { .. })));
    }

    #[test]
    fn more_components_than_rows_or_columns_are_too_many() {
        let data = counts(&raw());
        assert_eq!(Suspicion::of_components(12, &data), None);
        let sentence = Suspicion::of_components(13, &data).unwrap().to_string();
        assert!(
            sentence.starts_with("13 components were found but there are only 12 observations"),
            "{sentence}"
        );
        let sentence = Suspicion::of_components(13, &data.transposed()).unwrap().to_string();
        assert!(sentence.contains("only 12 features"), "{sentence}");
        let narrow = counts(&[vec![1.0, 2.0, 3.0], vec![0.0, 4.0, 1.0]]);
        assert!(
            Suspicion::of_components(5, &narrow).is_none() && Suspicion::of_components(6, &narrow).is_some()
        );
    }
}
