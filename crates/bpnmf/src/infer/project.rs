//! New observations on a dictionary that is known: Gibbs over S and H with W and pi as they are. It knows nothing of how
//! they were found.
//!
//! The draws of a column are keyed by what stands in it, not by where it stands: an observation has the same numbers
//! alone, in a batch and in any order, dense or compressed, and two different ones have independent errors.

use super::activations::Activations;
use super::allocate::Allocated;
use super::dictionary::{Dictionary, stored};
use super::draws::{Place, draw_sites};
use super::gibbs::{FREEZE_EVERY, FromPrior};
use super::local::{Allocation, LocalStep, Scratch};
use super::mask::{Odds, Sweep};
use super::scatter::{self, Scatter};
use crate::counts::Counts;
use crate::diagnose::scattered_column;
use crate::error::Error;
use crate::kernel::Simd;
use crate::meanfield::nmf::mixture;
use crate::noise::{LEAST_RATE, Noise};
use crate::posterior::Posterior;
use crate::prior::CheckedPrior;
use crate::random::{Key, Site};
use crate::special::{ln, ln_gamma};
use crate::workers::Workers;

/// Updates of the activations before the first sweep, all components on.
const UPDATES: usize = 20;

/// A component that explains less of a column than this at the start begins switched off.
const LEAST_SHARE: f64 = 0.02;

/// Sweeps for one when counts scatter: given latent counts a chain forgets where it was four times more slowly (in 12 sweeps
/// instead of 3).
const SWEEPS_A_DRAW: u32 = 4;

/// Components to project onto.
#[derive(Debug, Clone, PartialEq)]
pub struct Basis {
    /// W times the power of the likelihood.
    dictionary: Dictionary,
    odds: Odds,
    features: usize,
    components: usize,
    /// Of H.
    shape: f64,
    rate: f64,
    coarsening: f64,
    noise: Noise,
}

/// How long to sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectOptions {
    /// The seed of every random number.
    pub seed: u64,
    /// Sweeps before states are averaged, four for each where counts scatter.
    pub burn_in: u32,
    /// Sweeps that are averaged, four for each where counts scatter.
    pub draws: u32,
    /// Whether to keep every draw of H S.
    pub keep: bool,
}

impl Default for ProjectOptions {
    fn default() -> Self {
        Self { seed: 0, burn_in: 20, draws: 80, keep: false }
    }
}

/// What the components do in new observations, observation after observation: component k in column t at `t * K + k`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Projection {
    /// Posterior mean of H S.
    pub activations: Vec<f32>,
    /// Posterior standard deviation of H S.
    pub spread: Vec<f32>,
    /// Posterior probability that a component is on.
    pub inclusion: Vec<f32>,
    /// log p(x | W, posterior mean of H S) of every column, length T.
    pub log_likelihood: Vec<f64>,
    /// Draws of H S, if they were kept: draw i of column t at `(t * draws + i) * K`.
    pub draws: Vec<f32>,
}

impl Basis {
    /// W (F x K by rows, in the units of the data), pi, and the prior and the power of the likelihood they were found
    /// with. Errors if the lengths do not fit or a number is not finite.
    pub fn new(
        features: usize,
        dictionary: &[f32],
        pi: &[f64],
        prior: &CheckedPrior,
        coarsening: f64,
    ) -> Result<Self, Error> {
        let components = pi.len();
        if dictionary.len() != features * components {
            let (expected, found) = (features * components, dictionary.len());
            return Err(Error::WrongLength { features, observations: components, expected, found });
        }
        if !(coarsening > 0.0 && coarsening <= 1.0) {
            let range = "above 0 and at most 1";
            return Err(Error::BadOption { name: "coarsening", value: coarsening, range });
        }
        if let Some(at) = dictionary.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
            let (name, value) = ("an entry of the dictionary", f64::from(dictionary[at]));
            return Err(Error::BadOption { name, value, range: "finite and not negative" });
        }
        if let Some(&value) = pi.iter().find(|pi| !(0.0..=1.0).contains(*pi)) {
            return Err(Error::BadOption { name: "pi", value, range: "between 0 and 1" });
        }
        let mut scaled = Dictionary::new(features, components);
        for k in 0..components {
            for (f, w) in scaled.row_mut(k).iter_mut().enumerate() {
                *w = stored(coarsening * f64::from(dictionary[f * components + k]));
            }
        }
        scaled.settle();
        // Certainty is not learned from a finite number of columns.
        let logit = |pi: &f64| {
            let pi = pi.clamp(1e-12, 1.0 - 1e-12);
            ln(pi) - ln(1.0 - pi)
        };
        Ok(Self {
            dictionary: scaled,
            odds: Odds::new(pi.iter().map(logit).collect()),
            features,
            components,
            shape: prior.c(),
            rate: prior.d(),
            coarsening,
            noise: Noise::Poisson,
        })
    }

    /// The same components under counts that scatter otherwise: Poisson until this is said. A column then has latent counts
    /// as in [`crate::Gibbs`]; its dispersions follow its rates until the burn-in is over.
    pub fn with_noise(mut self, noise: Noise) -> Result<Self, Error> {
        self.noise = noise.check()?;
        Ok(self)
    }

    /// The components of a run.
    pub fn of(posterior: &Posterior, prior: &CheckedPrior, coarsening: f64) -> Result<Self, Error> {
        Self::new(posterior.features, &posterior.dictionary, &posterior.pi, prior, coarsening)
    }

    /// Projects every column of `counts`; once `go_on` is false, columns are left at 0.
    ///
    /// With fractions, or a power of the likelihood below 1, counts are shared out by their expectation, and the
    /// spread is a little too small.
    ///
    /// ```
    /// use bpnmf::*;
    /// let counts = Recipe { features: 20, observations: 60, ..Default::default() }.draw(3)?.counts;
    /// let Job { engine, prior, options, .. } = Plan::default().job(&counts)?.0;
    /// let workers = Workers::serial();
    /// let fit = run(engine.as_ref(), &counts, &prior, &options, &workers, &mut |_: &TraceRow| true)?;
    /// let found = fit.discovery.as_ref().expect("the default plan searches");
    /// let basis = Basis::of(&fit.posterior, &found.prior, found.coarsening)?.with_noise(fit.noise())?;
    /// let projection = basis.project(&counts, &ProjectOptions::default(), &workers, &|| true)?;
    /// assert_eq!(projection.activations.len(), fit.posterior.activations.len());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn project(
        &self,
        counts: &Counts,
        options: &ProjectOptions,
        workers: &Workers,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Projection, Error> {
        if counts.features() != self.features {
            let (value, range) = (counts.features() as f64, "that of the dictionary");
            return Err(Error::BadOption { name: "number of features", value, range });
        }
        if options.draws == 0 {
            return Err(Error::BadOption { name: "draws", value: 0.0, range: "at least 1" });
        }
        let (observations, components) = (counts.observations(), self.components);
        let kept = if options.keep { options.draws as usize * components } else { 0 };
        let mut out = Projection {
            activations: vec![0.0; observations * components],
            spread: vec![0.0; observations * components],
            inclusion: vec![0.0; observations * components],
            log_likelihood: vec![0.0; observations],
            draws: vec![0.0; observations * kept],
        };
        if components == 0 {
            for (t, value) in out.log_likelihood.iter_mut().enumerate() {
                *value = self.log_likelihood(counts, t, &[]);
            }
            return Ok(out);
        }
        let mut draws = out.draws.chunks_mut(kept.max(1));
        let columns = out
            .activations
            .chunks_mut(components)
            .zip(out.spread.chunks_mut(components))
            .zip(out.inclusion.chunks_mut(components))
            .zip(&mut out.log_likelihood)
            .enumerate()
            .map(|(t, (((mean, spread), inclusion), log_likelihood))| {
                (t, mean, spread, inclusion, log_likelihood, draws.next().unwrap_or_default())
            });
        workers.for_each(columns, |(t, mean, spread, inclusion, log_likelihood, draws), scratch| {
            if go_on() {
                self.column(counts, t, options, workers, scratch, [mean, spread, inclusion], draws);
                *log_likelihood = self.log_likelihood(counts, t, mean);
            }
        });
        Ok(out)
    }

    /// One column, by itself.
    fn column(
        &self,
        counts: &Counts,
        t: usize,
        options: &ProjectOptions,
        workers: &Workers,
        scratch: &mut Scratch,
        [mean, spread, inclusion]: [&mut [f32]; 3],
        mut draws: &mut [f32],
    ) {
        let components = self.components;
        let unseen = counts.missing(t).iter().map(|&f| (f as usize, f64::NAN));
        let key = Key::new(options.seed).of_entries(counts.column(t).positive().chain(unseen));
        let counts = &counts.one_column(t, self.coarsening);
        let whole = counts.first_fraction().is_none();
        let mut activations = self.start(counts, workers.simd);
        let tiles = activations.tiles();
        let mut sums_of_w = self.observed_sums(counts, 0);
        let allocation = if whole { Allocation::Sampled } else { Allocation::Expected };
        let data = counts;
        // The threads are taken: this one has memory of its own.
        let mut scatter = Scatter::new(self.noise).map(|mut scatter| {
            let own = Workers::serial().with_simd(workers.simd);
            scatter.freeze(data, &self.dictionary, &activations, &own);
            (scatter, own)
        });
        let scatters = scatter.as_ref().is_some_and(|(scatter, _)| scatter.scatters());
        let sweeps = if scatters { SWEEPS_A_DRAW } else { 1 };
        let burn_in = sweeps.saturating_mul(options.burn_in);
        let mut done = [Allocated::default()];
        let mut shares = vec![0.0; components];
        let mut sums = vec![[0.0f64; 3]; components];
        for iteration in 0..burn_in.saturating_add(sweeps.saturating_mul(options.draws)) {
            let mut counts = data;
            if let Some((scatter, own)) = &mut scatter {
                let follows = iteration < burn_in && iteration.is_multiple_of(FREEZE_EVERY);
                if follows {
                    scatter.freeze(data, &self.dictionary, &activations, own);
                }
                let place = scatter::Place { key, iteration, allocation };
                scatter.redraw(data, &self.dictionary, &activations, place, own);
                counts = scatter.latent().unwrap_or(data);
                if follows || iteration == 0 {
                    sums_of_w = self.observed_sums(counts, 0);
                }
            }
            let proposal = FromPrior { key, iteration, shape: self.shape, rate: self.rate };
            let local = LocalStep {
                sweep: Sweep {
                    counts,
                    dictionary: &self.dictionary,
                    odds: &self.odds,
                    proposal: &proposal,
                    key,
                    number: 0,
                },
                sweeps: 1,
                allocation,
                iteration,
            };
            let (on, values) = activations.columns_mut(0, 1);
            local.columns(workers, 0, on, values, &mut done, &mut shares, scratch);
            let posterior = |k: usize| (self.shape + shares[k], self.rate + sums_of_w[k]);
            let place = Place { simd: workers.simd, key, site: Site::Activation, iteration, i: 0 };
            draw_sites(place, tiles, on, values, |_, k| posterior(k).0, |_, k| posterior(k).1);
            if iteration < burn_in {
                continue;
            }
            let is_draw = (iteration + 1).is_multiple_of(sweeps);
            // The moments of H given the counts it was given: steadier than those of the draws.
            for (k, h) in activations.column(0).iter() {
                let (shape, rate) = posterior(k);
                let [first, second, on] = &mut sums[k];
                *first += shape / rate;
                *second += shape * (shape + 1.0) / (rate * rate);
                *on += 1.0;
                if is_draw && let Some(draw) = draws.get_mut(k) {
                    *draw = h;
                }
            }
            if is_draw {
                draws = draws.get_mut(components..).unwrap_or_default();
            }
        }
        let n = f64::from(sweeps) * f64::from(options.draws);
        for (k, [first, second, on]) in sums.into_iter().enumerate() {
            let average = first / n;
            mean[k] = average as f32;
            spread[k] = (second / n - average * average).max(0.0).sqrt() as f32;
            inclusion[k] = (on / n) as f32;
        }
    }

    /// Where a column starts: activations that explain it with all components on, and of those the ones that matter.
    fn start(&self, counts: &Counts, simd: Simd) -> Activations {
        let components = self.components;
        let entries: Vec<(usize, f64)> = counts.column(0).positive().collect();
        let mut activations = Activations::new(components, 1);
        if entries.is_empty() {
            return activations;
        }
        let sums = self.observed_sums(counts, 0);
        let x: Vec<f64> = entries.iter().map(|(_, x)| *x).collect();
        let mut rows = vec![0.0; components * x.len()];
        for (k, row) in rows.chunks_mut(x.len()).enumerate().filter(|(k, _)| sums[*k] > 0.0) {
            let w = self.dictionary.row(k);
            row.iter_mut().zip(&entries).for_each(|(to, &(f, _))| *to = f64::from(w[f]) / sums[k]);
        }
        let total = counts.total();
        let explained = mixture(&x, rows, UPDATES, simd);
        let largest = (0..components).max_by(|&i, &j| explained[i].total_cmp(&explained[j]));
        for k in 0..components {
            if explained[k] >= LEAST_SHARE * total || Some(k) == largest {
                // What has nothing where something was observed cannot explain it.
                let h = if sums[k] > 0.0 { explained[k] / sums[k] } else { 0.0 };
                activations.set(k, 0, Some(stored(h)));
            }
        }
        activations
    }

    /// The sums of the components over the features that were observed in column `t`.
    fn observed_sums(&self, counts: &Counts, t: usize) -> Vec<f64> {
        (0..self.components).map(|k| self.dictionary.observed_sum(k, counts.unexposed(t))).collect()
    }

    /// log p(x_t | W h), with log x!, in the units of the data; of the entries that were observed.
    fn log_likelihood(&self, counts: &Counts, t: usize, h: &[f32]) -> f64 {
        let scale = 1.0 / self.coarsening;
        let on = || h.iter().enumerate().map(|(k, &h)| (k, scale * f64::from(h)));
        let rate = |f: usize| -> f64 { on().map(|(k, h)| h * f64::from(self.dictionary.row(k)[f])).sum() };
        if let Some(alpha) = self.noise.alpha() {
            let factorials: f64 = counts.column(t).positive().map(|(_, x)| ln_gamma(x + 1.0)).sum();
            return scattered_column(counts, t, alpha, rate) - factorials;
        }
        let sums = self.observed_sums(counts, t);
        let mut sum: f64 = -on().map(|(k, h)| h * sums[k]).sum::<f64>();
        for (f, x) in counts.column(t).positive() {
            sum += x * ln(rate(f).max(LEAST_RATE)) - ln_gamma(x + 1.0);
        }
        sum
    }
}

#[cfg(test)]
mod tests;
