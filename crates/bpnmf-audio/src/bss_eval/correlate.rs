//! Correlations of signals for short lags, block by block. Knows nothing of scores.

use super::blocks::{Blocks, Signal};
use rayon::prelude::*;
use realfft::num_complex::Complex;

/// Correlations for the lags 0 to taps - 1.
pub(super) struct Correlations {
    references: usize,
    /// Of reference i with the later samples of reference j, at i * references + j.
    among: Vec<Vec<f64>>,
    /// Of reference i with the later samples of estimate k, at i * estimates + k.
    across: Vec<Vec<f64>>,
}

impl Correlations {
    /// Of all references with all references and all estimates.
    pub(super) fn new(references: &[Signal], estimates: &[Signal], blocks: &Blocks) -> Self {
        let parts = blocks.parts();
        let sums: Vec<_> =
            parts.par_iter().map(|starts| part(references, estimates, blocks, starts)).collect();
        let mut lags = vec![vec![0.0; blocks.taps]; references.len() * (references.len() + estimates.len())];
        for sum in sums {
            for (all, some) in lags.iter_mut().zip(sum) {
                all.iter_mut().zip(some).for_each(|(all, some)| *all += some);
            }
        }
        let across = lags.split_off(references.len() * references.len());
        Self { references: references.len(), among: lags, across }
    }

    /// The inner product of reference i delayed by a and reference j delayed by b.
    pub(super) fn among(&self, (i, a): (usize, usize), (j, b): (usize, usize)) -> f64 {
        if a >= b {
            self.among[i * self.references + j][a - b]
        } else {
            self.among[j * self.references + i][b - a]
        }
    }

    /// The inner products of reference i delayed by 0, 1, ... and estimate k.
    pub(super) fn across(&self, i: usize, k: usize) -> &[f64] {
        let estimates = self.across.len() / self.references;
        &self.across[i * estimates + k]
    }
}

/// The correlations over some blocks: of a block of the earlier signal with all later samples within reach.
fn part(references: &[Signal], estimates: &[Signal], blocks: &Blocks, starts: &[isize]) -> Vec<Vec<f64>> {
    let (n, later) = (references.len(), references.len() + estimates.len());
    let mut desk = blocks.desk();
    let mut early = vec![blocks.spectrum(); n];
    let mut late = vec![blocks.spectrum(); later];
    let mut sums = vec![blocks.spectrum(); n * later];
    for &start in starts {
        for (reference, spectrum) in references.iter().zip(&mut early) {
            reference.copy(start, &mut desk.time[..blocks.step]);
            desk.time[blocks.step..].fill(0.0);
            desk.forward(spectrum);
        }
        for (signal, spectrum) in references.iter().chain(estimates).zip(&mut late) {
            signal.copy(start, &mut desk.time);
            desk.forward(spectrum);
        }
        for i in 0..n {
            for j in 0..n {
                add_product(&early[i], &late[j], &mut sums[i * n + j]);
            }
            for k in 0..estimates.len() {
                add_product(&early[i], &late[n + k], &mut sums[n * n + i * estimates.len() + k]);
            }
        }
    }
    let lags = |sum: &mut Vec<Complex<f64>>| {
        desk.inverse(sum);
        desk.time[..blocks.taps].to_vec()
    };
    sums.iter_mut().map(lags).collect()
}

/// Adds conj(early) late.
fn add_product(early: &[Complex<f64>], late: &[Complex<f64>], sum: &mut [Complex<f64>]) {
    for ((sum, early), late) in sum.iter_mut().zip(early).zip(late) {
        sum.re += early.re * late.re + early.im * late.im;
        sum.im += early.re * late.im - early.im * late.re;
    }
}
