//! How finely the data may be read. Counts bring their own noise; a quantised signal does not, and there the number of
//! components grows with the unit somebody happened to choose.

use super::births::expected;
use crate::counts::Counts;
use crate::meanfield::model::{Model, Part};
use crate::meanfield::view::View;
use crate::workers::Workers;
use std::sync::OnceLock;

/// Data whose small entries scatter less than this share of what Poisson counts would are not counts.
const SMOOTH: f64 = 0.65;

/// What the typical entry of smooth data, sum x^2 / sum x, is brought to. The number of components depends on it: the finer
/// the levels, the more a model of counts sees of what every part has of its own. At 10 an entry is known to about one
/// part in three.
pub const TYPICAL_ENTRY: f64 = 10.0;

/// Small entries are those expected between these; below, a count is nearly always zero, above, misfit of the model
/// can hide how smooth the data are.
const SMALL: (f64, f64) = (1.0, 8.0);

/// The least entries to judge by.
const ENOUGH: usize = 100;

/// Scatter about the fit over the scatter of Poisson counts, 1 for counts that the model explains.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Dispersion {
    /// Of the entries expected between 1 and 8. `None` if there are too few.
    pub small: Option<f64>,
    /// Of all entries expected at 1 and more, corrected for the parameters that were fitted.
    pub all: Option<f64>,
}

impl Dispersion {
    /// Whether the data are too smooth to be counts.
    pub(crate) fn is_smooth(&self) -> bool {
        self.small.is_some_and(|small| small < SMOOTH)
    }
}

/// The dispersion of the data about a fitted model, by its deviance. What was fitted to an entry is not scatter: the deviance
/// that Poisson counts would have is smaller by the leverage of the entry, its share in the information on every parameter.
pub(super) fn dispersion(model: &Model, view: &View, workers: &Workers) -> Dispersion {
    let information = information(model, view, workers);
    // Deviance, what Poisson counts would have, and the number of entries: of all entries and of the small ones.
    let columns = workers.map(model.parts.iter().zip(&view.columns), |(parts, column)| {
        let mut sums = [[0.0; 3]; 2];
        let mean = expected(model, column, parts);
        let leverage = leverages(model, parts, &mean, &information);
        let entries = column.to_dense(model.features).into_iter().zip(mean).zip(leverage);
        for ((x, mean), leverage) in entries {
            if mean < SMALL.0 {
                continue;
            }
            let entry = [deviance(x, mean), (expected_deviance(mean) - leverage).max(0.0), 1.0];
            let small = usize::from(mean < SMALL.1);
            for sums in sums.iter_mut().take(1 + small) {
                sums.iter_mut().zip(entry).for_each(|(sum, value)| *sum += value);
            }
        }
        sums
    });
    let total = |kind: usize, what: usize| columns.iter().map(|sums| sums[kind][what]).sum::<f64>();
    let ratio = |kind: usize| {
        let (entries, left) = (total(kind, 2), total(kind, 1));
        (entries >= ENOUGH as f64 && left > 0.1 * entries).then(|| total(kind, 0) / left)
    };
    Dispersion { small: ratio(1), all: ratio(0) }
}

/// Columns whose information on W is added up at a time.
const COLUMNS: usize = 64;

/// The information on log W_fk, by components: the sum over columns of (W_fk H_kt)^2 / mean_ft.
fn information(model: &Model, view: &View, workers: &Workers) -> Vec<f64> {
    let features = model.features;
    let mut all = vec![0.0; model.shape.len()];
    let blocks: Vec<_> = model.parts.chunks(COLUMNS).zip(view.columns.chunks(COLUMNS)).collect();
    // So many blocks at a time as there are threads: each has sums of its own, which are added in the order of the blocks.
    for group in blocks.chunks(workers.threads()) {
        let sums = workers.map(group.iter(), |(block, columns)| {
            let mut sums = vec![0.0; model.shape.len()];
            for (parts, column) in block.iter().zip(*columns) {
                let mean = expected(model, column, parts);
                for part in parts {
                    let own =
                        sums[part.k * features..][..features].iter_mut().zip(shares(model, part, &mean));
                    own.for_each(|(sum, information)| *sum += information);
                }
            }
            sums
        });
        for sums in sums {
            all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
        }
    }
    all
}

/// (W_fk H_kt)^2 / mean_ft of every feature, 0 where nothing is expected.
fn shares(model: &Model, part: &Part, mean: &[f64]) -> impl Iterator<Item = f64> {
    let h = part.mean();
    let own = model.shapes(part.k).iter().zip(model.rates(part.k)).map(move |(shape, rate)| h * shape / rate);
    own.zip(mean).map(|(own, &mean)| if mean > 0.0 { own * own / mean } else { 0.0 })
}

/// The leverage of every entry of a column: its share in the information on each parameter, times what of the parameter is
/// from the data rather than from the prior.
fn leverages(model: &Model, parts: &[Part], mean: &[f64], information: &[f64]) -> Vec<f64> {
    let (a, c, features) = (model.prior.a(), model.prior.c(), model.features);
    let mut out = vec![0.0; features];
    for part in parts {
        let own: Vec<f64> = shares(model, part, mean).collect();
        let of_h = (part.shape - c).max(0.0) / part.shape / own.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let of_w = model.shapes(part.k).iter().zip(&information[part.k * features..]);
        for ((out, own), (shape, all)) in out.iter_mut().zip(own).zip(of_w) {
            let of_w = if *all > 0.0 { (shape - a).max(0.0) / shape / all } else { 0.0 };
            *out += own * (of_h + of_w);
        }
    }
    out
}

/// Twice the log-likelihood that a Poisson count loses by its mean not being the count itself.
pub(super) fn deviance(x: f64, mean: f64) -> f64 {
    let mean = mean.max(1e-300);
    let log = if x > 0.0 { x * crate::special::ln(x / mean) } else { 0.0 };
    2.0 * (log - x + mean)
}

/// The expected deviance of a Poisson count about its own mean.
pub(super) fn expected_deviance(mean: f64) -> f64 {
    /// Entries of the table a unit of the root of the mean; there are means up to [`LARGE`] in it.
    const FINE: f64 = 256.0;
    const LARGE: f64 = 30.0;
    static TABLE: OnceLock<Vec<f64>> = OnceLock::new();
    if mean >= LARGE {
        return 1.0 + 1.0 / (6.0 * mean);
    }
    let table = TABLE.get_or_init(|| {
        let entries = (LARGE.sqrt() * FINE) as usize + 2;
        (0..entries).map(|i| summed_deviance((i as f64 / FINE).powi(2))).collect()
    });
    // It grows with the mean as mean log mean at first: as the square of the root but for a logarithm.
    let at = mean.max(0.0).sqrt() * FINE;
    let (i, between) = (at as usize, at.fract());
    table[i] + between * (table[i + 1] - table[i])
}

/// The same as the sum that it is.
fn summed_deviance(mean: f64) -> f64 {
    let mut probability = libm::exp(-mean);
    let mut sum = probability * deviance(0.0, mean);
    for x in 1..200 {
        let x = f64::from(x);
        probability *= mean / x;
        sum += probability * deviance(x, mean);
        if x > mean && probability < 1e-12 {
            break;
        }
    }
    sum
}

/// The power the likelihood should be raised to, from a first look: 1 for counts.
pub(super) fn power(dispersion: Dispersion, counts: &Counts) -> f64 {
    if !dispersion.is_smooth() {
        return 1.0;
    }
    let (mut once, mut twice) = (0.0, 0.0);
    for t in 0..counts.observations() {
        for (_, x) in counts.column(t).positive() {
            once += x;
            twice += x * x;
        }
    }
    (TYPICAL_ENTRY * once / twice).min(1.0)
}

/// Smooth data that cannot be read more coarsely are read as if they scattered with this alpha: no entry is known better than
/// to one part in nine.
pub(super) const SMOOTH_ALPHA: f64 = 80.0;

/// Whether the typical column is left with enough counts when all are times `power`. Where the totals of columns differ by
/// decades one power for all of them leaves nothing of most.
pub(super) fn leaves_enough(view: &View, power: f64) -> bool {
    /// Counts of the median column.
    const LEFT: f64 = 30.0;
    let mut totals: Vec<f64> = view.columns.iter().map(|column| column.total).collect();
    totals.sort_by(f64::total_cmp);
    totals[totals.len() / 2] * power >= LEFT
}

/// The counts times `power`, rounded; what rounding takes from an entry is carried to the next one of the column, so that
/// they are right on average. Raising the likelihood of whole counts to a power is the same as multiplying them by it;
/// rounding keeps every engine's counts whole. No random number is asked: the seed must not choose the data.
pub(crate) fn coarsened(counts: &Counts, power: f64) -> Counts {
    let (features, observations) = (counts.features(), counts.observations());
    let mut entries = Vec::new();
    let mut starts = vec![0];
    for t in 0..observations {
        let mut carried = 0.5;
        for (f, x) in counts.column(t).positive() {
            let wanted = x * power + carried;
            let rounded = wanted.floor();
            carried = wanted - rounded;
            if rounded > 0.0 {
                entries.push((f, rounded));
            }
        }
        starts.push(entries.len());
    }
    let made = if counts.is_sparse() {
        let (rows, values) = entries.into_iter().map(|(f, value)| (f as u32, value)).unzip();
        Counts::from_sparse(features, observations, starts, rows, values)
    } else {
        let mut values = vec![0.0; features * observations];
        for t in 0..observations {
            for (f, value) in &entries[starts[t]..starts[t + 1]] {
                values[t * features + f] = *value;
            }
        }
        Counts::from_dense(features, observations, values)
    };
    made.expect("as valid as the counts they come from").missing_like(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Site};

    #[test]
    fn the_expected_deviance_is_read_from_a_table_that_is_fine_enough() {
        for i in 0..3000 {
            let mean = f64::from(i) * 0.01;
            let difference = expected_deviance(mean) - summed_deviance(mean);
            assert!(difference.abs() < 1e-4, "mean {mean}: {difference}");
        }
    }

    #[test]
    fn the_expected_deviance_is_that_of_poisson_draws() {
        for mean in [1.0, 3.0, 7.5, 29.0, 31.0] {
            let mut stream = Key::new(5).stream(Site::Synthesis, 0, 0, 0);
            let draws = 200_000;
            let average =
                (0..draws).map(|_| deviance(stream.poisson(mean), mean)).sum::<f64>() / f64::from(draws);
            let difference = average - expected_deviance(mean);
            assert!(difference.abs() < 0.015, "mean {mean}: {average} {difference}");
        }
    }

    #[test]
    fn coarsened_counts_are_right_on_average_and_whole() {
        let counts = Counts::from_dense(100, 100, vec![7.0; 10_000]).unwrap();
        let coarse = coarsened(&counts, 0.3);
        assert!(coarse.first_fraction().is_none());
        assert!((coarse.total() - 21_000.0).abs() <= 100.0, "{}", coarse.total());
        assert!((0..100).all(|t| coarse.column(t).positive().all(|(_, x)| x == 2.0 || x == 3.0)));
    }
}
