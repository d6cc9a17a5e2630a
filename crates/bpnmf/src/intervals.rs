//! 90 % intervals of W and of H S: what the draws of all chains that have a component say about it. Knows posteriors alone.

use crate::posterior::Posterior;
use crate::special::gamma_quantile;

/// At most so much of the probability is beyond each end of an interval.
const BEYOND: f64 = 0.05;

/// How the draws of one chain spread about their means: of what does not depend on the scale between W and H, laid out as in
/// [`Posterior`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spread {
    /// Mean and variance of the signature W_fk / sum_f W_fk, F x K' by rows.
    pub(crate) signature: Vec<[f32; 2]>,
    /// Mean and variance of the exposure H_kt S_kt sum_f W_fk, K' x T by rows.
    pub(crate) exposure: Vec<[f32; 2]>,
}

/// 90 % intervals of W and of H S, in the units of the model: the scale between W and H is held at that of the model.
///
/// So `W_low / sum_f W` to `W_high / sum_f W` is the interval of the signature, and `H_low sum_f W` to `H_high sum_f W` that of
/// the exposure, in expected counts. Over the chains that have a component, mean and variance are those of the mixture; of one
/// chain alone, and of a component that no other chain has, they are those within the chain.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Intervals {
    /// Low and high ends of W, each laid out as [`Posterior::dictionary`].
    pub dictionary: [Vec<f32>; 2],
    /// Low and high ends of H S, each laid out as [`Posterior::activations`].
    pub activations: [Vec<f32>; 2],
}

/// The intervals of `model`, whose components are those of the other chains by `pairs`, for each of the `others`. `None` if the
/// model has no draws.
pub(crate) fn intervals(
    model: &Posterior,
    others: &[&Posterior],
    pairs: &[Vec<(usize, usize)>],
) -> Option<Intervals> {
    let own = model.spread.as_ref()?;
    let (features, columns, number) = (model.features, model.observations, model.components());
    let empty = |length: usize| [vec![0.0; length], vec![0.0; length]];
    let mut found = Intervals { dictionary: empty(features * number), activations: empty(number * columns) };
    for k in 0..number {
        let mut chains = vec![Chain { posterior: model, spread: own, k }];
        for (posterior, pairs) in others.iter().zip(pairs) {
            let same = pairs.iter().find(|(mine, _)| *mine == k);
            if let (Some(&(_, k)), Some(spread)) = (same, &posterior.spread) {
                chains.push(Chain { posterior, spread, k });
            }
        }
        let sum = |values: &dyn Fn(usize) -> f32| (0..features).map(|f| f64::from(values(f))).sum::<f64>();
        let at = |f: usize| f * number + k;
        // Signatures add up to 1, but for the features that were set aside.
        let size = sum(&|f| model.dictionary[at(f)]) / sum(&|f| own.signature[at(f)][0]);
        for f in 0..features {
            let ends = signature_interval(mixture(chains.iter().map(|chain| chain.signature(f))));
            put(&mut found.dictionary, at(f), ends.map(|end| end * size), model.dictionary[at(f)]);
        }
        for t in 0..columns {
            let inclusion = chains.iter().map(|chain| chain.inclusion(t)).sum::<f64>() / chains.len() as f64;
            let ends = exposure_interval(mixture(chains.iter().map(|chain| chain.exposure(t))), inclusion);
            let at = k * columns + t;
            put(&mut found.activations, at, ends.map(|end| end / size), model.activations[at]);
        }
    }
    Some(found)
}

/// A component of one chain.
struct Chain<'a> {
    posterior: &'a Posterior,
    spread: &'a Spread,
    k: usize,
}

impl Chain<'_> {
    fn signature(&self, f: usize) -> [f32; 2] {
        self.spread.signature[f * self.posterior.components() + self.k]
    }

    fn exposure(&self, t: usize) -> [f32; 2] {
        self.spread.exposure[self.k * self.posterior.observations + t]
    }

    fn inclusion(&self, t: usize) -> f64 {
        f64::from(self.posterior.inclusion[self.k * self.posterior.observations + t])
    }
}

/// Stores the ends of an interval, stretched to hold the mean of the model.
fn put(ends: &mut [Vec<f32>; 2], at: usize, [low, high]: [f64; 2], mean: f32) {
    ends[0][at] = (low as f32).min(mean);
    ends[1][at] = (high as f32).max(mean);
}

/// Mean and variance of the mixture of several chains: the mean of the means; the mean of the variances and the variance of
/// the means, over one less than there are chains.
fn mixture(chains: impl ExactSizeIterator<Item = [f32; 2]> + Clone) -> [f64; 2] {
    let n = chains.len() as f64;
    let (mut mean, mut within) = (0.0, 0.0);
    chains.clone().for_each(|[m, v]| (mean, within) = (mean + f64::from(m) / n, within + f64::from(v) / n));
    let apart: f64 = chains.map(|[m, _]| (f64::from(m) - mean).powi(2)).sum();
    [mean, within + apart / (n - 1.0).max(1.0)]
}

/// The ends below which a share has so much probability: of a gamma variable with this mean and variance; of what is missing to
/// 1 where that is the smaller one. Both are limits of the beta distribution.
fn signature_interval([mean, variance]: [f64; 2]) -> [f64; 2] {
    if mean > 0.5 {
        let [low, high] = signature_interval([1.0 - mean, variance]);
        return [1.0 - high, 1.0 - low];
    }
    [BEYOND, 1.0 - BEYOND].map(|p| quantile([mean, variance], p).min(1.0))
}

/// The same of an exposure: 0 with the probability that the component is off, otherwise a gamma variable; all together have
/// this mean and variance.
fn exposure_interval([mean, variance]: [f64; 2], inclusion: f64) -> [f64; 2] {
    let on = inclusion.clamp(0.0, 1.0);
    let level = |p: f64| (p - (1.0 - on)) / on;
    let given_on = mean / on;
    let variance_on = (variance + mean * mean) / on - given_on * given_on;
    [BEYOND, 1.0 - BEYOND]
        .map(|p| if p > 1.0 - on { quantile([given_on, variance_on], level(p)) } else { 0.0 })
}

/// The quantile of a gamma variable with this mean and variance.
fn quantile([mean, variance]: [f64; 2], p: f64) -> f64 {
    if !(mean > 0.0 && variance > 0.0) {
        return mean.max(0.0);
    }
    let shape = mean * mean / variance;
    gamma_quantile(shape, p) * variance / mean
}

#[cfg(test)]
mod tests;
