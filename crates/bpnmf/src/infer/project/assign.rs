//! New observations on known components of which nothing else is known: how often each is on and how its exposures scatter
//! is learned from the observations together, and then each of them is sampled by itself.
//!
//! Let N_t be the counts of column t and s_kt = h_kt / N_t the share of a component with sum_f W = 1. Given that it is on,
//! s ~ Gamma(c, d), the same for all; pi_k ~ Beta(s m, s (1 - m)). A column has pi_k as the other columns tell it, its own
//! not among them: (s m + sum_{u != t} S_ku) / (s + T - 1). c, d, m, s and the noise are those of the greatest likelihood,
//! found by rounds of sampling and maximising (Monte Carlo EM).

use super::{Basis, Moments, Own, ProjectOptions};
use crate::counts::Counts;
use crate::error::Error;
use crate::infer::local::Scratch;
use crate::infer::mask::Odds;
use crate::infer::project::transfer::Partners;
use crate::noise::Noise;
use crate::prior::Prior;
use crate::special::{digamma, ln, ln_beta};
use crate::workers::Workers;

/// Sweeps of a round, before and while moments are averaged.
const ROUND: (u32, u32) = (30, 40);

/// A share counts as so many observations of a mean share, before any is seen.
const SHARES_BEFORE: f64 = 2.0;
const SHARE_BEFORE: f64 = 0.1;

/// Shapes of the shares that are thought possible.
const SHAPES: [f64; 2] = [0.3, 20.0];

/// Scatter is believed in if it is so many standard errors above 0.
const SURE_OF_SCATTER: f64 = 4.0;

/// The ends of a 90 % interval.
const ENDS: [f64; 2] = [0.05, 0.95];

/// How to assign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AssignOptions {
    /// The seed of every random number.
    pub seed: u64,
    /// Sweeps before states are averaged, four for each where counts scatter.
    pub burn_in: u32,
    /// Sweeps that are averaged, four for each where counts scatter.
    pub draws: u32,
    /// Rounds in which the prior of the exposures is learned; 0 keeps that of the basis.
    pub rounds: u32,
    /// How counts scatter about their rates; `None` to learn it, or without rounds to keep that of the basis.
    pub noise: Option<Noise>,
}

impl Default for AssignOptions {
    fn default() -> Self {
        Self { seed: 0, burn_in: 100, draws: 400, rounds: 8, noise: None }
    }
}

/// What known components do in new observations: component k in column t at `t * K + k`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Assigned {
    /// Posterior mean of the counts that are expected of a component.
    pub exposures: Vec<f32>,
    /// Low and high ends of their 90 % intervals: quantiles of the draws, those in which it is off among them as 0.
    pub intervals: [Vec<f32>; 2],
    /// Posterior probability that a component is on.
    pub inclusion: Vec<f32>,
    /// log p(x | W, posterior mean of H S) of every column, length T.
    pub log_likelihood: Vec<f64>,
    /// How often each component is on, as it was used: learned or that of the basis.
    pub pi: Vec<f64>,
    /// How the counts scatter, as it was used.
    pub noise: Noise,
}

impl Assigned {
    /// The probability from which on a component is best said to be present: where the expected F1 of all that is said,
    /// 2 sum p / (number + sum of all p) over those that are said, is largest. At most 0.5; less where little is sure.
    pub fn present_from(&self) -> f32 {
        let mut sorted = self.inclusion.clone();
        sorted.sort_unstable_by(|one, other| other.total_cmp(one));
        let all: f64 = sorted.iter().map(|&p| f64::from(p)).sum();
        let (mut sum, mut best) = (0.0, (0.0, 0.5));
        for (i, &p) in sorted.iter().enumerate() {
            sum += f64::from(p);
            let expected = 2.0 * sum / ((i + 1) as f64 + all);
            if expected > best.0 {
                best = (expected, p);
            }
        }
        best.1.min(0.5)
    }
}

/// What is learned of the exposures.
struct Shares {
    /// Of the shares of components that are on.
    shape: f64,
    rate: f64,
    /// Of pi.
    mean: f64,
    strength: f64,
    /// P(S = 1) at t * K + k, and its sums over t.
    on: Vec<f64>,
    usage: Vec<f64>,
}

impl Basis {
    /// Components of which only W is known (F x K by rows); its columns are scaled to add up to 1. For [`Basis::assign`]
    /// with rounds. Errors if a column is empty.
    pub fn known(features: usize, dictionary: &[f32], components: usize) -> Result<Self, Error> {
        let mut sums = vec![0.0; components];
        for row in dictionary.chunks_exact(components.max(1)) {
            sums.iter_mut().zip(row).for_each(|(sum, w)| *sum += f64::from(*w));
        }
        if let Some(&value) = sums.iter().find(|sum| sum.is_nan() || **sum <= 0.0) {
            return Err(Error::BadOption { name: "the sum of a component", value, range: "above 0" });
        }
        let scaled: Vec<f32> = dictionary
            .iter()
            .enumerate()
            .map(|(i, w)| (f64::from(*w) / sums[i % components]) as f32)
            .collect();
        let prior = Prior { c: 1.0, d: 1.0, components: components.max(1), ..Prior::default() }.check()?;
        Self::new(features, &scaled, &vec![SHARE_BEFORE; components], &prior, 1.0)
    }

    /// Assigns every column of `counts`; once `go_on` is false, columns are left at 0.
    ///
    /// ```
    /// use bpnmf::*;
    /// let signatures = [0.8, 0.1, 0.1, 0.1, 0.1, 0.8]; // 3 features x 2 components
    /// let counts = Counts::from_dense(3, 2, vec![80.0, 10.0, 10.0, 45.0, 10.0, 45.0])?;
    /// let basis = Basis::known(3, &signatures, 2)?;
    /// let found = basis.assign(&counts, &AssignOptions::default(), &Workers::serial(), &|| true)?;
    /// assert!(found.exposures[0] > 85.0 && found.inclusion[1] < 0.5);
    /// assert!(found.inclusion[2] > 0.9 && found.inclusion[3] > 0.9);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn assign(
        &self,
        counts: &Counts,
        options: &AssignOptions,
        workers: &Workers,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Assigned, Error> {
        self.check(counts, options.draws)?;
        if self.components == 0 {
            let how = ProjectOptions { seed: options.seed, burn_in: 0, draws: 1, keep: false };
            let log_likelihood = self.project(counts, &how, workers, go_on)?.log_likelihood;
            let (noise, nothing) = (options.noise.unwrap_or(self.noise), Vec::new());
            let intervals = [Vec::new(), Vec::new()];
            let (exposures, inclusion, pi) = (nothing, Vec::new(), Vec::new());
            return Ok(Assigned { exposures, intervals, inclusion, log_likelihood, pi, noise });
        }
        let mut basis = self.clone();
        let learns_noise = options.noise.is_none() && options.rounds > 0;
        match options.noise {
            Some(noise) => basis.noise = noise.check()?,
            None if learns_noise => basis.noise = Noise::Poisson,
            None => {}
        }
        let partners = Partners::new(&basis.dictionary);
        let mut shares = (options.rounds > 0).then(|| Shares::new(self.components, counts.observations()));
        for round in 0..options.rounds {
            let sampled = ProjectOptions {
                seed: options.seed.wrapping_add(u64::from(round) + 1),
                burn_in: ROUND.0,
                draws: ROUND.1,
                keep: false,
            };
            let moments = basis.moments(counts, shares.as_ref(), &partners, &sampled, workers, go_on);
            if let Some(shares) = &mut shares {
                shares.learn(&moments, counts.column_totals());
            }
            if learns_noise {
                basis.noise = basis.scatter_of(counts, &moments);
            }
        }
        Ok(basis.sampled(counts, shares.as_ref(), &partners, options, workers, go_on))
    }

    /// The last round, which is the result.
    fn sampled(
        &self,
        counts: &Counts,
        shares: Option<&Shares>,
        partners: &Partners,
        options: &AssignOptions,
        workers: &Workers,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Assigned {
        let (observations, components) = (counts.observations(), self.components);
        let sites = || vec![0.0f32; observations * components];
        let (mut exposures, mut low, mut high, mut inclusion) = (sites(), sites(), sites(), sites());
        let mut log_likelihood = vec![0.0; observations];
        // In counts of the data.
        let scale: Vec<f64> = (0..components).map(|k| self.dictionary.sum(k) / self.coarsening).collect();
        let how =
            ProjectOptions { seed: options.seed, burn_in: options.burn_in, draws: options.draws, keep: true };
        let chunk = components.max(1);
        let columns = exposures
            .chunks_mut(chunk)
            .zip(low.chunks_mut(chunk).zip(high.chunks_mut(chunk)))
            .zip(inclusion.chunks_mut(chunk).zip(&mut log_likelihood))
            .enumerate();
        workers.for_each(columns, |(t, ((mean, (low, high)), (on, log_likelihood))), scratch| {
            if !go_on() {
                return;
            }
            let mut draws = vec![0.0; options.draws as usize * components];
            let found = self.one(counts, t, shares, partners, &how, workers, scratch, &mut draws);
            let activations: Vec<f32> = found.iter().map(|of| of.first as f32).collect();
            *log_likelihood = self.log_likelihood(counts, t, &activations);
            let mut sorted = vec![0.0; options.draws as usize];
            for (k, of) in found.iter().enumerate() {
                mean[k] = (scale[k] * of.first) as f32;
                on[k] = of.on as f32;
                sorted.iter_mut().zip(draws[k..].iter().step_by(components)).for_each(|(to, h)| *to = *h);
                sorted.sort_unstable_by(f32::total_cmp);
                let at =
                    |p: f64| scale[k] * f64::from(sorted[(p * (sorted.len() - 1) as f64).round() as usize]);
                (low[k], high[k]) = (at(ENDS[0]) as f32, at(ENDS[1]) as f32);
            }
        });
        let pi = match shares {
            Some(shares) => (0..components).map(|k| shares.pi(k, 0.0, observations as f64)).collect(),
            None => self.odds.logit().iter().map(|logit| 1.0 / (1.0 + crate::special::exp(-logit))).collect(),
        };
        Assigned { exposures, intervals: [low, high], inclusion, log_likelihood, pi, noise: self.noise }
    }

    /// The moments of all columns, component k in column t at t * K + k.
    fn moments(
        &self,
        counts: &Counts,
        shares: Option<&Shares>,
        partners: &Partners,
        options: &ProjectOptions,
        workers: &Workers,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Vec<Moments> {
        let mut all = vec![Moments::default(); counts.observations() * self.components];
        let columns = all.chunks_mut(self.components.max(1)).enumerate();
        workers.for_each(columns, |(t, out), scratch| {
            if go_on() {
                let found = self.one(counts, t, shares, partners, options, workers, scratch, &mut []);
                out.copy_from_slice(&found);
            }
        });
        all
    }

    /// One column, with what was learned or as the basis has it.
    fn one(
        &self,
        counts: &Counts,
        t: usize,
        shares: Option<&Shares>,
        partners: &Partners,
        options: &ProjectOptions,
        workers: &Workers,
        scratch: &mut Scratch,
        draws: &mut [f32],
    ) -> Vec<Moments> {
        let learned = shares.map(|shares| (shares.odds(t), shares));
        let own = match &learned {
            Some((odds, shares)) => {
                let total = counts.column_totals()[t].max(1.0);
                Own { odds, shape: shares.shape, rate: shares.rate / total, partners: Some(partners) }
            }
            None => Own { odds: &self.odds, shape: self.shape, rate: self.rate, partners: Some(partners) },
        };
        self.column(counts, t, &own, options, workers, scratch, draws)
    }

    /// How counts scatter about their rates at the mean activations: 1 / alpha by weighted least squares of
    /// (x - rate)^2 - rate on rate^2, for what the activations have taken of it.
    fn scatter_of(&self, counts: &Counts, moments: &[Moments]) -> Noise {
        let (features, components) = (self.features, self.components);
        let mut entries = Vec::with_capacity(features * counts.observations());
        for t in 0..counts.observations() {
            let found = &moments[t * components..][..components];
            let mut rates = vec![0.0; features];
            for (k, of) in found.iter().enumerate().filter(|(_, of)| of.first > 0.0) {
                let row = self.dictionary.row(k);
                rates
                    .iter_mut()
                    .zip(row)
                    .for_each(|(rate, w)| *rate += of.first * f64::from(*w) / self.coarsening);
            }
            let mut values = vec![0.0; features];
            counts.column(t).positive().for_each(|(f, x)| values[f] = x);
            let unseen = counts.missing(t);
            let on: f64 = found.iter().map(|of| of.on).sum();
            let left = 1.0 - (on / (features - unseen.len()).max(1) as f64).min(0.9);
            let seen = (0..features).filter(|&f| unseen.binary_search(&(f as u32)).is_err());
            entries.extend(seen.map(|f| (rates[f], (values[f] - rates[f]).powi(2) / left)));
        }
        let mut inverse = 0.0f64;
        let mut error = f64::INFINITY;
        for _ in 0..20 {
            let (mut with, mut all) = (0.0, 0.0);
            for &(rate, square) in &entries {
                let variance = rate + rate * rate * inverse;
                let weight = rate * rate / (2.0 * variance * variance + rate).max(f64::MIN_POSITIVE);
                with += weight * (square - rate);
                all += weight * rate * rate;
            }
            if all <= 0.0 {
                return Noise::Poisson;
            }
            inverse = (with / all).max(0.0);
            error = (1.0 / all).sqrt();
        }
        if inverse > SURE_OF_SCATTER * error {
            Noise::Scattered { alpha: 1.0 / inverse }
        } else {
            Noise::Poisson
        }
    }
}

impl Shares {
    fn new(components: usize, observations: usize) -> Self {
        let on = vec![SHARE_BEFORE; components * observations];
        let usage = vec![SHARE_BEFORE * observations as f64; components];
        Self { shape: 1.0, rate: 1.0 / SHARE_BEFORE, mean: SHARE_BEFORE, strength: 2.0, on, usage }
    }

    /// pi of component k by all columns but one, in which it is on with probability `own`, or by all of `columns`.
    fn pi(&self, k: usize, own: f64, columns: f64) -> f64 {
        let (mean, strength) = (self.mean, self.strength);
        ((strength * mean + self.usage[k] - own) / (strength + columns)).clamp(1e-6, 1.0 - 1e-6)
    }

    /// log odds of pi in column t.
    fn odds(&self, t: usize) -> Odds {
        let components = self.usage.len();
        let others = (self.on.len() / components.max(1)) as f64 - 1.0;
        let logit = |k: usize| {
            let pi = self.pi(k, self.on[t * components + k], others);
            ln(pi) - ln(1.0 - pi)
        };
        Odds::new((0..components).map(logit).collect())
    }

    fn learn(&mut self, moments: &[Moments], totals: &[f64]) {
        let components = self.usage.len();
        let (mut n, mut share, mut log) =
            (SHARES_BEFORE, SHARES_BEFORE * SHARE_BEFORE, SHARES_BEFORE * (ln(SHARE_BEFORE) + digamma(1.0)));
        self.usage.fill(0.0);
        for (i, of) in moments.iter().enumerate() {
            let (t, k) = (i / components, i % components);
            self.on[i] = of.on;
            self.usage[k] += of.on;
            if totals[t] > 0.0 && of.on > 0.0 {
                n += of.on;
                share += of.first / totals[t];
                log += of.log - of.on * ln(totals[t]);
            }
        }
        let mean = share / n;
        self.shape = shape_of(ln(mean) - log / n);
        self.rate = self.shape / mean;
        (self.mean, self.strength) = self.likeliest(totals.len() as f64);
    }

    /// The mean and the strength of the beta distribution of pi under which the usages are likeliest, with weak priors.
    fn likeliest(&self, observations: f64) -> (f64, f64) {
        let mut best = (f64::NEG_INFINITY, (self.mean, self.strength));
        for step in 0..48 {
            let logit = -6.0 + 0.18 * f64::from(step);
            let mean = 1.0 / (1.0 + crate::special::exp(-logit));
            for power in -4..=10 {
                let strength = crate::special::exp(f64::from(power) * 0.5);
                let (a, b) = (strength * mean, strength * (1.0 - mean));
                let of = |n: f64| ln_beta(a + n, b + (observations - n).max(0.0));
                let likelihood: f64 = self.usage.iter().map(|&n| of(n)).sum();
                let before = ln(mean) + 4.0 * ln(1.0 - mean) - (f64::from(power) * 0.5 - 0.7).powi(2) / 4.5;
                let value = likelihood - self.usage.len() as f64 * ln_beta(a, b) + before;
                if value > best.0 {
                    best = (value, (mean, strength));
                }
            }
        }
        best.1
    }
}

/// The shape at which log shape - digamma(shape) is `gap`.
fn shape_of(gap: f64) -> f64 {
    let [mut low, mut high] = SHAPES;
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if ln(middle) - digamma(middle) > gap { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests;
