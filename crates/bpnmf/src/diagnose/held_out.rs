//! The held-out likelihood: counts that the fit has not seen judge it.

use crate::counts::Counts;
use crate::infer::activations::Activations;
use crate::infer::dictionary::Dictionary;
use crate::infer::state::State;
use crate::noise::{LEAST_RATE, Noise, ln_scattered};
use crate::special::ln;

/// Counts put aside by thinning, to judge a fit to the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOut {
    counts: Counts,
    /// Held-out rate over fitted rate: fraction / (1 - fraction).
    ratio: f64,
}

impl HeldOut {
    /// Who needs whole counts, in [`Error::NotWhole`](crate::Error::NotWhole) about counts that cannot be split.
    pub const WHO: &str = "thinning";

    /// Splits `counts` into what to fit and what to hold out (see [`Counts::thinned`]).
    pub fn split(counts: &Counts, fraction: f64, seed: u64) -> Result<(Counts, Self), crate::Error> {
        let (kept, held) = counts.thinned(fraction, seed)?;
        Ok((kept, Self { counts: held, ratio: fraction / (1.0 - fraction) }))
    }

    /// log p(held-out counts | W, H, S of the state), per observed entry of the matrix. The state was fitted to counts times
    /// `coarsening`.
    ///
    /// Where counts scatter, the held-out ones are negative binomial with the share that was held out of their rates and
    /// the same alpha: that is what thinning makes of such counts. That the kept counts of an entry say something about how
    /// it was scattered, and so about its held-out ones, is not used.
    pub fn score(&self, state: &State, coarsening: f64) -> f64 {
        self.score_factors(&state.dictionary, &state.activations, coarsening, state.noise())
    }

    /// The same of W, H and S by themselves.
    pub(crate) fn score_factors(
        &self,
        dictionary: &Dictionary,
        activations: &Activations,
        coarsening: f64,
        noise: Noise,
    ) -> f64 {
        let ratio = self.ratio / coarsening;
        let mut score = -self.counts.ln_factorials();
        for t in 0..self.counts.observations() {
            let column = activations.column(t);
            let rate = |f: usize| -> f64 {
                let parts = column.iter().map(|(k, h)| f64::from(h) * f64::from(dictionary.row(k)[f]));
                ratio * parts.sum::<f64>()
            };
            if let Some(alpha) = noise.alpha() {
                score += scattered_column(&self.counts, t, alpha, rate);
                continue;
            }
            let unexposed = self.counts.unexposed(t);
            let expected: f64 =
                column.iter().map(|(k, h)| f64::from(h) * dictionary.observed_sum(k, unexposed)).sum();
            score -= ratio * expected;
            for (f, x) in self.counts.column(t).positive() {
                // A held-out count where the state has no rate at all: as bad as a rate can be.
                score += x * ln(rate(f).max(LEAST_RATE));
            }
        }
        score / self.counts.observed() as f64
    }
}

/// log p of the observed counts of column `t` that scatter by `alpha` about `rate(f)`, without log x!.
pub(crate) fn scattered_column(counts: &Counts, t: usize, alpha: f64, rate: impl Fn(usize) -> f64) -> f64 {
    let mut missing = counts.missing(t).iter().map(|&f| f as usize).peekable();
    let mut positive = counts.column(t).positive().peekable();
    let mut sum = 0.0;
    for f in 0..counts.features() {
        let x = positive.next_if(|&(at, _)| at == f).map_or(0.0, |(_, x)| x);
        if missing.next_if_eq(&f).is_none() {
            sum += ln_scattered(x, rate(f), alpha);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::{Batch, Engine, Gibbs, Init};
    use crate::prior::Prior;
    use crate::random::Key;
    use crate::special::ln_gamma;
    use crate::workers::Workers;

    /// By the definition of the negative binomial, entry by entry, dense and with missing entries.
    #[test]
    fn held_out_counts_that_scatter_are_negative_binomial_with_the_same_alpha() {
        let (features, observations, alpha) = (7, 9, 6.0);
        let values = (0..63).map(|i| f64::from(i * i % 40)).collect();
        let full = Counts::from_dense(features, observations, values).unwrap();
        let partial = full.clone().with_missing((0..=9).map(|t| 2 * t).collect(), [1, 5].repeat(9)).unwrap();
        for counts in [full, partial] {
            let (kept, held_out) = HeldOut::split(&counts, 0.25, 3).unwrap();
            let prior = Prior { components: 4, ..Default::default() }.check().unwrap();
            let noise = Noise::Scattered { alpha };
            let engine = Gibbs { init: Init::Scaled, noise, ..Default::default() };
            let mut state = engine.init(&kept, &prior, Key::new(1));
            engine.step(&mut state, &Batch::all(&kept), &prior, Key::new(1), &Workers::serial()).unwrap();
            let mut sum = 0.0;
            for t in 0..observations {
                let x: std::collections::HashMap<_, _> = held_out.counts.column(t).positive().collect();
                for f in (0..features).filter(|f| !counts.missing(t).contains(&(*f as u32))) {
                    let parts = state.activations.column(t);
                    let rate: f64 =
                        parts.iter().map(|(k, h)| f64::from(h) * f64::from(state.dictionary.row(k)[f])).sum();
                    let (x, rate) = (x.get(&f).copied().unwrap_or(0.0), rate / 3.0);
                    sum += ln_gamma(alpha + x) - ln_gamma(alpha) - ln_gamma(x + 1.0)
                        + x * (rate / (alpha + rate)).ln()
                        + alpha * (alpha / (alpha + rate)).ln();
                }
            }
            let exact = sum / counts.observed() as f64;
            let ours = held_out.score(&state, 1.0);
            assert!((ours / exact - 1.0).abs() < 1e-9, "{ours} {exact}");
            // With nearly no scatter it is the Poisson one.
            let (w, h) = (&state.dictionary, &state.activations);
            let little = held_out.score_factors(w, h, 1.0, Noise::Scattered { alpha: 1e13 });
            let poisson = held_out.score_factors(w, h, 1.0, Noise::Poisson);
            assert!((little / poisson - 1.0).abs() < 1e-7, "{little} {poisson}");
        }
    }
}
