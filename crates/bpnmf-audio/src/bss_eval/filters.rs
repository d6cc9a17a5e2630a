//! The filters that bring the references nearest to an estimate. Knows correlations, not signals.

use super::cholesky::Cholesky;
use super::correlate::Correlations;
use ndarray::{Array2, s};
use rayon::prelude::*;

/// The first weight on the diagonal of a system whose columns double precision cannot tell apart.
const FIRST_RIDGE: f64 = 1e-12;

/// Distortion filters of all references and estimates.
pub(super) struct Filters {
    /// Of reference i when it alone is to give the estimates: taps x estimates.
    pub(super) alone: Vec<Array2<f64>>,
    /// Of reference i when all together are to give the estimates: taps x estimates.
    pub(super) together: Vec<Array2<f64>>,
    /// Delayed copies of the references are copies or mixtures of each other, to double precision.
    pub(super) dependent: bool,
}

impl Filters {
    /// Solves the normal equations of every reference alone and of all together.
    pub(super) fn new(lags: &Correlations, references: usize, estimates: usize, taps: usize) -> Self {
        let each: Vec<(Array2<f64>, bool)> =
            (0..references).into_par_iter().map(|i| solve(lags, &[i], estimates, taps)).collect();
        let mut dependent = each.iter().any(|(_, dependent)| *dependent);
        let alone: Vec<Array2<f64>> = each.into_iter().map(|(filters, _)| filters).collect();
        if references == 1 {
            return Self { together: alone.clone(), alone, dependent };
        }
        let (stacked, joint) = solve(lags, &(0..references).collect::<Vec<_>>(), estimates, taps);
        dependent |= joint;
        let together = (0..references).map(|i| stacked.slice(s![i * taps..(i + 1) * taps, ..]).to_owned());
        Self { alone, together: together.collect(), dependent }
    }
}

/// The filters of some references, one below the other, for all estimates, and whether they needed a ridge.
fn solve(lags: &Correlations, of: &[usize], estimates: usize, taps: usize) -> (Array2<f64>, bool) {
    let order = of.len() * taps;
    let delayed = |row: usize| (of[row / taps], row % taps);
    let mut ridge = 0.0;
    let factors = loop {
        let entry = |r: usize, c: usize| {
            let product = lags.among(delayed(r), delayed(c));
            if r == c { product * (1.0 + ridge) } else { product }
        };
        match Cholesky::new(order, entry) {
            Some(factors) => break factors,
            None => ridge = f64::max(10.0 * ridge, FIRST_RIDGE),
        }
    };
    let mut right = Array2::from_shape_fn((order, estimates), |(row, k)| {
        let (i, delay) = delayed(row);
        lags.across(i, k)[delay]
    });
    factors.solve(&mut right);
    (right, ridge > 0.0)
}
