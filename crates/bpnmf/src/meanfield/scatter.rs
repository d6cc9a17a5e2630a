//! How much counts scatter beyond Poisson, learned from a model: alpha of the variance mean + mean^2 / alpha.

use super::kernels::TINY;
use super::model::Model;
use super::view::View;
use crate::special::{digamma_ln_gammas, exp, ln, ln_1p};
use crate::workers::Workers;

/// With a smaller ratio of the typical entry, sum x^2 / sum x, to alpha counts are Poisson counts for all that can be seen.
const POISSON: f64 = 0.15;

/// The range of log alpha.
const LOG_ALPHA: (f64, f64) = (-3.0, 16.0);

/// Entries that are looked at, zeros and others: of larger data every so manieth column is.
const ENTRIES: usize = 2_000_000;
const POSITIVE: usize = 200_000;

/// Zeros are counted by the logarithm of their mean, in steps of one part in so many.
const FINE: f64 = 16.0;

/// What the evidence says of alpha: its terms that depend on it.
struct Entries {
    /// Count, mean and log of the geometric mean over the mean, of the positive entries.
    positive: Vec<[f64; 3]>,
    /// Zeros: the mean, and how many there are of it.
    zeros: Vec<(f64, f64)>,
    /// sum x^2 / sum x.
    typical: f64,
}

impl Entries {
    /// Of data that are `1 / power` times what the model is of.
    fn new(model: &Model, view: &View, power: f64, workers: &Workers) -> Self {
        let positive: usize = view.columns.iter().map(|column| column.x.len()).sum();
        let every = (view.features * view.columns.len() / ENTRIES).max(positive / POSITIVE) + 1;
        let columns = model.parts.iter().zip(&view.columns).step_by(every);
        let looked = workers.map(columns, |(parts, column)| {
            let means = model.expected(parts);
            let (mut field, mut buffer) = (Vec::new(), Vec::new());
            model.field(column, parts, &mut field, &mut buffer);
            let mut seen = vec![false; means.len()];
            column.missing.iter().for_each(|&f| seen[f as usize] = true);
            let mut positive = Vec::new();
            for ((f, &x), &geometric) in column.places().zip(column.x.iter()).zip(&field) {
                if x > 0.0 {
                    let mean = means[f].max(TINY);
                    positive.push([x, mean / power, ln(geometric.max(TINY) / mean)]);
                    seen[f] = true;
                }
            }
            let zeros: Vec<f64> = means
                .iter()
                .zip(seen)
                .filter(|(mean, seen)| !seen && **mean > 0.0)
                .map(|(mean, _)| mean / power)
                .collect();
            (positive, zeros)
        });
        let least = libm::exp(-20.0);
        let mut bins = vec![(0.0, 0.0); (60.0 * FINE) as usize];
        for mean in looked.iter().flat_map(|(_, zeros)| zeros).filter(|mean| **mean > least) {
            let bin = ((ln(*mean) + 20.0) * FINE) as usize;
            let (sum, number) = &mut bins[bin.min((60.0 * FINE) as usize - 1)];
            *sum += mean;
            *number += 1.0;
        }
        let zeros = bins.into_iter().filter(|(_, n)| *n > 0.0).map(|(sum, n)| (sum / n, n)).collect();
        let positive: Vec<[f64; 3]> = looked.into_iter().flat_map(|(positive, _)| positive).collect();
        let (once, twice) = positive.iter().fold((0.0, 0.0), |(s, ss), [x, ..]| (s + x, ss + x * x));
        Self { positive, zeros, typical: if once > 0.0 { twice / once } else { 0.0 } }
    }

    /// The log-likelihood, but for what does not depend on alpha, with what the uncertainty of the means takes from it.
    fn value(&self, log_alpha: f64) -> f64 {
        let alpha = exp(log_alpha);
        let ([_], [own]) = digamma_ln_gammas(&[alpha]);
        let mut value = 0.0;
        for chunk in self.positive.chunks(8) {
            let mut shapes = [alpha; 8];
            shapes.iter_mut().zip(chunk).for_each(|(shape, [x, ..])| *shape += x);
            let (_, gammas) = digamma_ln_gammas(&shapes);
            for ([x, mean, gap], gamma) in chunk.iter().zip(gammas) {
                value += gamma - own - x * log_alpha - (alpha + x) * ln_1p(mean / alpha)
                    + x * alpha / (alpha + mean) * gap;
            }
        }
        value - self.zeros.iter().map(|(mean, number)| number * alpha * ln_1p(mean / alpha)).sum::<f64>()
    }
}

/// The alpha that the evidence likes best, in the units of the model; infinite where the counts are as good as Poisson
/// counts. `view` is not weighed, and its entries are `1 / power` times those that the model is of.
pub(crate) fn learned(model: &Model, view: &View, power: f64, workers: &Workers) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let entries = Entries::new(model, view, power, workers);
    let (mut low, mut high) = LOG_ALPHA;
    // The neighbours of the best of a coarse grid, then the golden section.
    let grid = (0..20).map(|i| low + (high - low) * f64::from(i) / 19.0);
    let values = workers.map(grid, |z| (entries.value(z), z));
    let best = values.iter().max_by(|x, y| x.0.total_cmp(&y.0)).expect("a grid").1;
    let step = (high - low) / 19.0;
    (low, high) = ((best - step).max(low), (best + step).min(high));
    let (mut left, mut right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut at_left, mut at_right) = (entries.value(left), entries.value(right));
    while high - low > 0.02 {
        if at_left > at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - GOLDEN * (high - low);
            at_left = entries.value(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + GOLDEN * (high - low);
            at_right = entries.value(right);
        }
    }
    let alpha = exp(0.5 * (low + high));
    if entries.typical < POISSON * alpha { f64::INFINITY } else { alpha * power }
}
