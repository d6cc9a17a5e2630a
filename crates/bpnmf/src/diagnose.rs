//! Judging a run: the stop rule and the held-out likelihood.

use crate::counts::Counts;
use crate::infer::state::State;
use crate::special::ln;

/// When to stop: the objective is averaged over windows, and two windows in a row must agree with the one before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StopRule {
    /// Iterations in a window.
    pub window: usize,
    /// Relative change below which two windows agree.
    pub tolerance: f64,
}

impl Default for StopRule {
    fn default() -> Self {
        Self { window: 20, tolerance: 1e-4 }
    }
}

impl StopRule {
    /// Whether the objective, one value an iteration, and the number of components have settled.
    ///
    /// Windows agree when their means differ by less than the tolerance or by less than two standard errors of the
    /// difference, and the number of components differs by no more than one.
    pub fn settled(&self, objective: &[f64], components: &[usize]) -> bool {
        let w = self.window;
        if w < 2 || !objective.len().is_multiple_of(w) || objective.len() < 3 * w {
            return false;
        }
        let windows = objective.len() / w;
        let agree = |last: usize| {
            let (mean, variance) = moments(&objective[last * w..(last + 1) * w]);
            let (before, variance_before) = moments(&objective[(last - 1) * w..last * w]);
            let error = ((variance + variance_before) / w as f64).sqrt();
            let moved = components[(last + 1) * w - 1].abs_diff(components[last * w - 1]);
            (mean - before).abs() < (self.tolerance * mean.abs()).max(2.0 * error) && moved <= 1
        };
        agree(windows - 1) && agree(windows - 2)
    }
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

/// Counts put aside by thinning, to judge a fit to the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOut {
    counts: Counts,
    /// Held-out rate over fitted rate: fraction / (1 - fraction).
    ratio: f64,
}

impl HeldOut {
    /// Splits `counts` into what to fit and what to hold out (see [`Counts::thinned`]).
    pub fn split(counts: &Counts, fraction: f64, seed: u64) -> Result<(Counts, Self), crate::Error> {
        let (kept, held) = counts.thinned(fraction, seed)?;
        Ok((kept, Self { counts: held, ratio: fraction / (1.0 - fraction) }))
    }

    /// log p(held-out counts | W, H, S of the state), per entry of the matrix.
    pub fn score(&self, state: &State) -> f64 {
        let (dictionary, activations) = (&state.dictionary, &state.activations);
        let mut score = -self.counts.ln_factorials();
        for t in 0..self.counts.observations() {
            let column = activations.column(t);
            let expected: f64 = column.iter().map(|(k, h)| f64::from(h) * dictionary.sum(k)).sum();
            score -= self.ratio * expected;
            for (f, x) in self.counts.column(t).positive() {
                let rate: f64 =
                    column.iter().map(|(k, h)| f64::from(h) * f64::from(dictionary.row(k)[f])).sum();
                // A held-out count where the state has no rate at all: as bad as a rate can be.
                score += x * ln((self.ratio * rate).max(1e-300));
            }
        }
        score / (self.counts.features() as f64 * self.counts.observations() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_objective_does_not_stop_and_a_flat_one_does() {
        let rule = StopRule::default();
        let rising: Vec<f64> = (0..100).map(|i| -1e6 + 1e4 * f64::from(i)).collect();
        let wobble = |i: i32| if i % 2 == 0 { 3.0 } else { -3.0 };
        let flat: Vec<f64> = (0..60).map(|i| -1e6 + wobble(i)).collect();
        assert!(!rule.settled(&rising, &[5; 100]));
        assert!(rule.settled(&flat, &[5; 60]));
        assert!(!rule.settled(&flat[..40], &[5; 40]), "two windows are not enough");
        let mut falling = vec![50; 60];
        falling[59] = 40;
        assert!(!rule.settled(&flat, &falling), "the number of components still moves");
    }
}
