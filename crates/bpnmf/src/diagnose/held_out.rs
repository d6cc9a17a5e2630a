//! The held-out likelihood: counts that the fit has not seen judge it.

use crate::counts::Counts;
use crate::infer::activations::Activations;
use crate::infer::dictionary::Dictionary;
use crate::infer::state::State;
use crate::special::ln;

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

    /// log p(held-out counts | W, H, S of the state), per observed entry of the matrix. The state was fitted to counts times
    /// `coarsening`.
    pub fn score(&self, state: &State, coarsening: f64) -> f64 {
        self.score_factors(&state.dictionary, &state.activations, coarsening)
    }

    /// The same of W, H and S by themselves.
    pub(crate) fn score_factors(
        &self,
        dictionary: &Dictionary,
        activations: &Activations,
        coarsening: f64,
    ) -> f64 {
        let ratio = self.ratio / coarsening;
        let mut score = -self.counts.ln_factorials();
        for t in 0..self.counts.observations() {
            let column = activations.column(t);
            let unexposed = self.counts.unexposed(t);
            let expected: f64 =
                column.iter().map(|(k, h)| f64::from(h) * dictionary.observed_sum(k, unexposed)).sum();
            score -= ratio * expected;
            for (f, x) in self.counts.column(t).positive() {
                let rate: f64 =
                    column.iter().map(|(k, h)| f64::from(h) * f64::from(dictionary.row(k)[f])).sum();
                // A held-out count where the state has no rate at all: as bad as a rate can be.
                score += x * ln((ratio * rate).max(1e-300));
            }
        }
        score / self.counts.observed() as f64
    }
}
