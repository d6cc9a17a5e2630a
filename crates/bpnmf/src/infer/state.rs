//! The state that every engine carries from step to step.

use super::activations::Activations;
use super::dictionary::Dictionary;
use super::jumps::{Jumped, in_model as in_model_of};
use super::mask::{Odds, Tiers};
use super::scatter::Scatter;
use crate::counts::Counts;
use crate::kernel::exact::sum_ln;
use crate::kernel::{Lanes, Simd, dispatch};
use crate::noise::Noise;
use crate::prior::{CheckedPrior, ComponentsPrior};
use crate::special::{ln, ln_beta, ln_gamma};
use crate::statistics::Sums;
use core::ops::Range;

/// W, H, S and pi as they stand, the parameters of q for the engine that has them, and running averages.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    pub(crate) dictionary: Dictionary,
    pub(crate) activations: Activations,
    pub(crate) odds: Odds,
    pub(crate) variational: Option<Variational>,
    pub(crate) averages: Averages,
    /// How counts scatter if they do so more than Poisson counts.
    pub(crate) scatter: Option<Scatter>,
    /// Numbers that only the engine knows the meaning of; empty for most.
    pub(crate) own: Vec<f64>,
    /// Steps taken.
    pub(crate) iteration: u32,
}

/// The parameters of q(W), q(H), q(pi), components side by side within a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Variational {
    /// Shape and rate of W_fk at `k * F + f`.
    pub(crate) nu_w: Vec<f64>,
    pub(crate) rho_w: Vec<f64>,
    /// Shape and rate of H_kt at `t * K + k`.
    pub(crate) nu_h: Vec<f64>,
    pub(crate) rho_h: Vec<f64>,
    /// Parameters of pi_k.
    pub(crate) alpha_pi: Vec<f64>,
    pub(crate) beta_pi: Vec<f64>,
}

/// Averages over the states that count. Weights are the engine's affair.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Averages {
    /// States averaged so far.
    pub(crate) draws: u32,
    /// W_fk at `k * F + f`; empty for an engine that reads it from q.
    pub(crate) dictionary: Vec<f32>,
    /// H_kt S_kt at `t * K + k`.
    pub(crate) masked: Vec<f32>,
    /// S_kt at `t * K + k`.
    pub(crate) inclusion: Vec<f32>,
    pub(crate) pi: Vec<f64>,
    pub(crate) log_likelihood: f64,
    /// How the states spread about their averages; `None` before the burn-in is over, and for an engine whose states are not
    /// draws from the posterior.
    pub(crate) spread: Option<Spread>,
}

/// Means and variances of what does not depend on the scale between W and H.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spread {
    /// Signatures, W_fk / sum_f W_fk, at `k * F + f`.
    pub(crate) signature: Moments,
    /// Exposures, H_kt S_kt sum_f W_fk, at `t * K + k`.
    pub(crate) exposure: Moments,
}

/// Means and variances of the same length.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moments {
    pub(crate) mean: Vec<f32>,
    pub(crate) variance: Vec<f32>,
}

impl Moments {
    pub(crate) fn new(length: usize) -> Self {
        Self { mean: vec![0.0; length], variance: vec![0.0; length] }
    }
}

impl Spread {
    pub(crate) fn new(features: usize, components: usize, observations: usize) -> Self {
        let (of_w, of_h) = (features * components, components * observations);
        Self { signature: Moments::new(of_w), exposure: Moments::new(of_h) }
    }

    /// Takes the signatures of one more state in, with the weight `rate`.
    pub(crate) fn blend_signatures(&mut self, simd: Simd, dictionary: &Dictionary, rate: f64) {
        let (features, signature) = (dictionary.features(), &mut self.signature);
        let rows = signature.mean.chunks_mut(features).zip(signature.variance.chunks_mut(features));
        for (k, (mean, variance)) in rows.enumerate() {
            let scale = (1.0 / dictionary.sum(k)) as f32;
            towards(simd, mean, variance, dictionary.row(k), scale, rate as f32);
        }
    }

    /// Takes its exposures in `columns` in.
    pub(crate) fn blend_exposures(
        &mut self,
        simd: Simd,
        dictionary: &Dictionary,
        activations: &Activations,
        columns: Range<usize>,
        rate: f64,
    ) {
        let components = dictionary.components();
        let at = columns.start * components..columns.end * components;
        let Moments { mean, variance } = &mut self.exposure;
        let moments = mean[at.clone()].chunks_mut(components).zip(variance[at].chunks_mut(components));
        let (mut parts, mut column) = (Vec::with_capacity(components), vec![0.0; components]);
        for (t, (mean, variance)) in columns.zip(moments) {
            column.fill(0.0);
            activations.column(t).list(&mut parts);
            parts.iter().for_each(|&(k, h)| column[k] = (f64::from(h) * dictionary.sum(k)) as f32);
            towards(simd, mean, variance, &column, 1.0, rate as f32);
        }
    }
}

dispatch! {
    /// Takes scale values into running means and variances with the weight `rate`: Welford's update, which does not take the
    /// difference of two large numbers.
    fn towards [] (mean: &mut [f32], variance: &mut [f32], values: &[f32], scale: f32, rate: f32) = towards_on
}

#[inline(always)]
fn towards_on<V: Lanes>(mean: &mut [f32], variance: &mut [f32], values: &[f32], scale: f32, rate: f32) {
    let keep = 1.0 - rate;
    for ((mean, variance), &value) in mean.iter_mut().zip(variance).zip(values) {
        let off = scale * value - *mean;
        *mean += rate * off;
        *variance = keep * (*variance + rate * (off * off));
    }
}

impl State {
    /// The noise of the counts it is a state of.
    pub fn noise(&self) -> Noise {
        self.scatter.as_ref().map_or(Noise::Poisson, Scatter::noise)
    }
}

impl Averages {
    pub(crate) fn new(features: usize, components: usize, observations: usize) -> Self {
        Self {
            draws: 0,
            dictionary: vec![0.0; features * components],
            masked: vec![0.0; components * observations],
            inclusion: vec![0.0; components * observations],
            pi: vec![0.0; components],
            log_likelihood: 0.0,
            spread: None,
        }
    }

    /// Moves the averages of `columns` towards the mask and `masked(t, k, h)` by the step `rate`.
    pub(crate) fn blend_columns(
        &mut self,
        simd: Simd,
        activations: &Activations,
        columns: Range<usize>,
        rate: f64,
        masked: impl Fn(usize, usize, f32) -> f64,
    ) {
        let components = activations.components();
        let at = columns.start * components..columns.end * components;
        let (means, inclusion) = (&mut self.masked[at.clone()], &mut self.inclusion[at]);
        let keep = (1.0 - rate) as f32;
        fade(simd, means, keep);
        fade(simd, inclusion, keep);
        let (mut parts, mut first) = (Vec::with_capacity(components), 0);
        for t in columns {
            activations.column(t).list(&mut parts);
            for &(k, h) in &parts {
                means[first + k] += (rate * masked(t, k, h)) as f32;
                inclusion[first + k] += rate as f32;
            }
            first += components;
        }
    }
}

dispatch! {
    /// values = keep values.
    pub(crate) fn fade [] (values: &mut [f32], keep: f32) = fade_on
}

#[inline(always)]
fn fade_on<V: Lanes>(values: &mut [f32], keep: f32) {
    values.iter_mut().for_each(|value| *value *= keep);
}

dispatch! {
    /// values = keep values + gain, in double precision.
    pub(crate) fn blend [] (values: &mut [f64], keep: f64, gain: f64) = blend_on
}

#[inline(always)]
fn blend_on<V: Lanes>(values: &mut [f64], keep: f64, gain: f64) {
    values.iter_mut().for_each(|value| *value = keep * *value + gain);
}

/// What a run says about every slot, whether it counts as a component or not.
#[derive(Debug, Clone)]
pub struct Slots<'a> {
    /// Posterior mean of W_fk at `k * F + f`.
    pub(crate) dictionary: Vec<f64>,
    /// Posterior mean of H_kt S_kt at `t * K + k`.
    pub(crate) masked: &'a [f32],
    /// Posterior probability that S_kt is on, at `t * K + k`.
    pub(crate) inclusion: &'a [f32],
    /// Posterior mean of pi_k.
    pub(crate) pi: Vec<f64>,
    /// Posterior mean of log p(X | W, H, S).
    pub(crate) log_likelihood: f64,
    /// Of at least two draws from the posterior.
    pub(crate) spread: Option<&'a Spread>,
}

impl Slots<'_> {
    /// K, the number of slots.
    pub(crate) fn components(&self) -> usize {
        self.pi.len()
    }
}

/// What a step reports. It is not carried on.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Info {
    /// Components on in at least 1 % of the columns, and at least one.
    pub active: usize,
    /// Components on anywhere.
    pub on_anywhere: usize,
    /// Sites that are on.
    pub sites_on: u64,
    /// log p(X | W, H, S). Where counts scatter it is that of negative binomial counts, given their frozen dispersions.
    pub log_likelihood: f64,
    /// log p(X, S, W, H) with pi, the H of sites that are off and the W of components that are off summed out.
    pub log_joint: f64,
    /// The expected number of counts, sum over f, k, t of W_fk H_kt S_kt.
    pub activation: f64,
    /// How the sites of the mask were decided.
    pub tiers: Tiers,
    /// Moves between numbers of components that went before.
    pub jumped: Jumped,
}

/// The number of columns a component must be on in to count: 1 % of T, at least one.
pub(crate) fn least_usage(observations: usize) -> f64 {
    (0.01 * observations as f64).max(1.0)
}

/// Evaluates what a step reports at the (W, H, S) the local step saw. `scale` is T over the columns of the batch.
pub(crate) fn report(
    counts: &Counts,
    prior: &CheckedPrior,
    dictionary: &Dictionary,
    odds: &Odds,
    stats: &Sums,
    scale: f64,
    simd: Simd,
) -> Info {
    let observations = counts.observations() as f64;
    let log_likelihood = scale * stats.log_likelihood - counts.ln_factorials();
    let (alpha, beta) = prior.shapes_of_pi();
    let none = ln_beta(alpha, beta);
    let mut in_model = 0;
    let (mut mask, mut w, mut on_anywhere, mut active, mut sites_on) = (0.0, 0.0, 0, 0, 0.0);
    let mut expected = 0.0;
    let least = least_usage(counts.observations());
    for k in 0..dictionary.components() {
        let usage = scale * stats.usage[k];
        if in_model_of(odds, k) {
            in_model += 1;
            mask += ln_beta(alpha + usage, beta + observations - usage) - none;
        }
        if usage > 0.0 {
            on_anywhere += 1;
            active += usize::from(usage >= least);
            sites_on += usage;
            expected += scale * stats.expected(dictionary, k);
            w += (prior.a() - 1.0) * sum_ln(simd, dictionary.row(k)) - prior.b() * dictionary.sum(k);
        }
    }
    if prior.number() == ComponentsPrior::BetaProcess {
        // Slots that hold nothing because they were dropped are off everywhere, too.
        let dropped = (prior.components() - dictionary.components()) as f64;
        mask += dropped * (ln_beta(alpha, beta + observations) - none);
    } else {
        mask += prior.number().ln_of_set(in_model, dictionary.components());
    }
    let entries = on_anywhere as f64 * counts.features() as f64;
    w += entries * (prior.a() * ln(prior.b()) - ln_gamma(prior.a()));
    let activation: f64 = stats.activation.iter().sum();
    let h = scale * ((prior.c() - 1.0) * stats.ln_activation - prior.d() * activation)
        + sites_on * (prior.c() * ln(prior.d()) - ln_gamma(prior.c()));
    Info {
        active,
        on_anywhere,
        sites_on: sites_on as u64,
        log_likelihood,
        log_joint: log_likelihood + mask + w + h,
        activation: expected,
        tiers: stats.tiers,
        jumped: Jumped::default(),
    }
}
