//! New observations on a dictionary that is known: Gibbs over S and H with W and pi as they are. It knows nothing of how
//! they were found.
//!
//! The draws of a column are keyed by what stands in it, not by where it stands: an observation has the same numbers
//! alone, in a batch and in any order, dense or compressed, and two different ones have independent errors.

use super::activations::Activations;
use super::allocate::Allocated;
use super::dictionary::{Dictionary, stored};
use super::draws::{Place, draw_sites};
use super::gibbs::FromPrior;
use super::local::{Allocation, LocalStep, Scratch};
use super::mask::{Odds, Sweep};
use crate::counts::Counts;
use crate::error::Error;
use crate::posterior::Posterior;
use crate::prior::CheckedPrior;
use crate::random::{Key, Site};
use crate::special::{ln, ln_gamma};
use crate::workers::Workers;

/// Updates of the activations before the first sweep, all components on.
const UPDATES: usize = 20;

/// A component that explains less of a column than this at the start begins switched off.
const LEAST_SHARE: f64 = 0.02;

/// The smallest rate under a count, as bad as a rate can be.
const LEAST_RATE: f64 = 1e-300;

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
}

/// How long to sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectOptions {
    /// The seed of every random number.
    pub seed: u64,
    /// Sweeps before states are averaged.
    pub burn_in: u32,
    /// Sweeps that are averaged.
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
        })
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
    /// let Settings { engine, prior, options } = Plan::default().settings_for(&counts)?;
    /// let workers = Workers::serial();
    /// let fit = run(engine.as_ref(), &counts, &prior, &options, &workers, &mut |_: &TraceRow| true)?;
    /// let found = fit.discovery.as_ref().expect("the default plan searches");
    /// let basis = Basis::of(&fit.posterior, &found.prior, found.coarsening)?;
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
        let mut activations = self.start(counts);
        let tiles = activations.tiles();
        let sums_of_w = self.observed_sums(counts, 0);
        let mut done = [Allocated::default()];
        let mut shares = vec![0.0; components];
        let mut sums = vec![[0.0f64; 3]; components];
        for iteration in 0..options.burn_in + options.draws {
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
                allocation: if whole { Allocation::Sampled } else { Allocation::Expected },
                iteration,
            };
            let (on, values) = activations.columns_mut(0, 1);
            local.columns(workers, 0, on, values, &mut done, &mut shares, scratch);
            let posterior = |k: usize| (self.shape + shares[k], self.rate + sums_of_w[k]);
            let place = Place { simd: workers.simd, key, site: Site::Activation, iteration, i: 0 };
            draw_sites(place, tiles, on, values, |_, k| posterior(k).0, |_, k| posterior(k).1);
            if iteration < options.burn_in {
                continue;
            }
            // The moments of H given the counts it was given: steadier than those of the draws.
            for (k, h) in activations.column(0).iter() {
                let (shape, rate) = posterior(k);
                let [first, second, on] = &mut sums[k];
                *first += shape / rate;
                *second += shape * (shape + 1.0) / (rate * rate);
                *on += 1.0;
                if let Some(draw) = draws.get_mut(k) {
                    *draw = h;
                }
            }
            draws = draws.get_mut(components..).unwrap_or_default();
        }
        let n = f64::from(options.draws);
        for (k, [first, second, on]) in sums.into_iter().enumerate() {
            let average = first / n;
            mean[k] = average as f32;
            spread[k] = (second / n - average * average).max(0.0).sqrt() as f32;
            inclusion[k] = (on / n) as f32;
        }
    }

    /// Where a column starts: activations that explain it with all components on, and of those the ones that matter.
    fn start(&self, counts: &Counts) -> Activations {
        let components = self.components;
        let entries: Vec<(usize, f64)> = counts.column(0).positive().collect();
        let mut activations = Activations::new(components, 1);
        if entries.is_empty() {
            return activations;
        }
        // What has nothing where something was observed cannot explain it.
        let sums = self.observed_sums(counts, 0);
        let over = |value: f64, sum: f64| if sum > 0.0 { value / sum } else { 0.0 };
        let total = counts.total();
        let mut h: Vec<f64> = sums.iter().map(|&sum| over(total / components as f64, sum)).collect();
        let mut ratio = vec![0.0; entries.len()];
        for _ in 0..UPDATES {
            ratio.fill(0.0);
            for (k, h) in h.iter().enumerate() {
                let row = self.dictionary.row(k);
                for (rate, &(f, _)) in ratio.iter_mut().zip(&entries) {
                    *rate += h * f64::from(row[f]);
                }
            }
            ratio.iter_mut().zip(&entries).for_each(|(rate, &(_, x))| *rate = x / rate.max(LEAST_RATE));
            for (k, h) in h.iter_mut().enumerate() {
                let row = self.dictionary.row(k);
                let explained: f64 =
                    ratio.iter().zip(&entries).map(|(r, &(f, _))| r * f64::from(row[f])).sum();
                *h *= over(explained, sums[k]);
            }
        }
        let largest = (0..components).max_by(|&i, &j| (h[i] * sums[i]).total_cmp(&(h[j] * sums[j])));
        for k in 0..components {
            if h[k] * sums[k] >= LEAST_SHARE * total || Some(k) == largest {
                activations.set(k, 0, Some(stored(h[k])));
            }
        }
        activations
    }

    /// The sums of the components over the features that were observed in column `t`.
    fn observed_sums(&self, counts: &Counts, t: usize) -> Vec<f64> {
        (0..self.components).map(|k| self.dictionary.observed_sum(k, counts.missing(t))).collect()
    }

    /// log p(x_t | W h), with log x!, in the units of the data; of the entries that were observed.
    fn log_likelihood(&self, counts: &Counts, t: usize, h: &[f32]) -> f64 {
        let scale = 1.0 / self.coarsening;
        let on = || h.iter().enumerate().map(|(k, &h)| (k, scale * f64::from(h)));
        let sums = self.observed_sums(counts, t);
        let mut sum: f64 = -on().map(|(k, h)| h * sums[k]).sum::<f64>();
        for (f, x) in counts.column(t).positive() {
            let rate: f64 = on().map(|(k, h)| h * f64::from(self.dictionary.row(k)[f])).sum();
            sum += x * ln(rate.max(LEAST_RATE)) - ln_gamma(x + 1.0);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, Settings};
    use crate::run::{Fit, TraceRow, run};
    use crate::synth::Recipe;

    fn fitted() -> (Counts, Fit, Basis) {
        let counts = Recipe { features: 30, observations: 120, ..Default::default() }.draw(5).unwrap().counts;
        let Settings { engine, prior, options } = Plan::default().settings_for(&counts).unwrap();
        let go = &mut |_: &TraceRow| true;
        let fit = run(engine.as_ref(), &counts, &prior, &options, &Workers::serial(), go).unwrap();
        let found = fit.discovery.as_ref().unwrap();
        let basis = Basis::of(&fit.posterior, &found.prior, found.coarsening).unwrap();
        (counts, fit, basis)
    }

    fn selected(counts: &Counts, columns: &[usize], sparse: bool) -> Counts {
        let features = counts.features();
        if !sparse {
            let mut values = vec![0.0; features * columns.len()];
            for (at, &t) in columns.iter().enumerate() {
                counts.column(t).positive().for_each(|(f, x)| values[at * features + f] = x);
            }
            return Counts::from_dense(features, columns.len(), values).unwrap();
        }
        let (mut starts, mut rows, mut values) = (vec![0], vec![], vec![]);
        for &t in columns {
            for (f, x) in counts.column(t).positive() {
                rows.push(f as u32);
                values.push(x);
            }
            starts.push(rows.len());
        }
        Counts::from_sparse(features, columns.len(), starts, rows, values).unwrap()
    }

    #[test]
    fn an_observation_has_the_same_numbers_wherever_it_stands_and_however_it_is_held() {
        let (counts, _, basis) = fitted();
        let options = ProjectOptions { keep: true, ..Default::default() };
        let k = basis.components;
        let all = basis.project(&counts, &options, &Workers::serial(), &|| true).unwrap();
        let columns = [17, 3, 99];
        for (sparse, workers) in [(false, Workers::serial()), (true, Workers::new(2).unwrap())] {
            let some = selected(&counts, &columns, sparse);
            let some = basis.project(&some, &options, &workers, &|| true).unwrap();
            for (at, t) in columns.into_iter().enumerate() {
                assert_eq!(some.activations[at * k..][..k], all.activations[t * k..][..k]);
                assert_eq!(some.spread[at * k..][..k], all.spread[t * k..][..k]);
                assert_eq!(some.log_likelihood[at], all.log_likelihood[t]);
                let many = options.draws as usize * k;
                assert_eq!(some.draws[at * many..][..many], all.draws[t * many..][..many]);
            }
        }
    }

    /// The fit knows W with an error and averages over it; so a few sites may be further off than their spread says.
    #[test]
    fn the_projection_of_what_was_fitted_agrees_with_the_fit() {
        let (counts, fit, basis) = fitted();
        let projection =
            basis.project(&counts, &ProjectOptions::default(), &Workers::serial(), &|| true).unwrap();
        let (k, observations) = (basis.components, counts.observations());
        let (mut far, mut squares, mut sites) = (0, 0.0, 0);
        for t in 0..observations {
            for c in 0..k {
                let at = t * k + c;
                let difference = projection.activations[at] - fit.posterior.activations[c * observations + t];
                let spread = projection.spread[at].max(0.02);
                sites += 1;
                far += usize::from(difference.abs() > 2.0 * spread);
                squares += f64::from(difference / spread).powi(2);
            }
        }
        assert!(far * 20 < sites, "{far} of {sites} sites are further than two standard deviations off");
        assert!(squares < 0.5 * f64::from(sites as u32), "{}", squares / f64::from(sites as u32));
        // At the mean of the activations the counts are likelier than they are on the average over the draws.
        let at_mean: f64 = projection.log_likelihood.iter().sum();
        let over_draws = fit.posterior.log_likelihood;
        assert!(at_mean > over_draws && at_mean < 0.8 * over_draws, "{at_mean} {over_draws}");
    }

    /// A feature that is missing everywhere might as well not be there.
    #[test]
    fn what_is_missing_says_nothing() {
        let (counts, fit, basis) = fitted();
        let (features, k) = (counts.features(), basis.components);
        let some = selected(&counts, &[4, 9], false);
        let (starts, rows) = ((0..3).map(|t| 10 * t).collect(), [0; 2].iter().flat_map(|_| 20..30).collect());
        let options = ProjectOptions { draws: 30_000, ..Default::default() };
        let partial = some.with_missing(starts, rows).unwrap();
        let partial = basis.project(&partial, &options, &Workers::serial(), &|| true).unwrap();
        let found = fit.discovery.as_ref().unwrap();
        let w = &fit.posterior.dictionary[..20 * k];
        let fewer = Basis::new(20, w, &fit.posterior.pi, &found.prior, found.coarsening).unwrap();
        let mut values = Vec::new();
        for t in [4, 9] {
            let mut column = vec![0.0; features];
            counts.column(t).positive().for_each(|(f, x)| column[f] = x);
            values.extend_from_slice(&column[..20]);
        }
        let fewer_counts = Counts::from_dense(20, 2, values).unwrap();
        let other = fewer.project(&fewer_counts, &options, &Workers::serial(), &|| true).unwrap();
        for at in 0..2 * k {
            let (one, two) = (partial.activations[at], other.activations[at]);
            assert!((one - two).abs() < 0.2 * other.spread[at] + 0.02, "{one} {two}");
        }
        for (one, two) in partial.log_likelihood.iter().zip(&other.log_likelihood) {
            assert!((one - two).abs() < 0.5, "{one} {two}");
        }
    }

    #[test]
    fn draws_have_the_moments_that_are_reported() {
        let (counts, _, basis) = fitted();
        let options = ProjectOptions { draws: 2000, keep: true, ..Default::default() };
        let one = selected(&counts, &[4], false);
        let projection = basis.project(&one, &options, &Workers::serial(), &|| true).unwrap();
        for k in 0..basis.components {
            let draws: Vec<f64> =
                projection.draws.iter().skip(k).step_by(basis.components).map(|&h| f64::from(h)).collect();
            let mean = draws.iter().sum::<f64>() / 2000.0;
            let spread = (draws.iter().map(|h| (h - mean).powi(2)).sum::<f64>() / 2000.0).sqrt();
            let reported = (f64::from(projection.activations[k]), f64::from(projection.spread[k]));
            assert!((mean - reported.0).abs() < 0.1 * reported.1 + 0.01, "{mean} {reported:?}");
            assert!((spread - reported.1).abs() < 0.1 * reported.1 + 0.01, "{spread} {reported:?}");
        }
    }
}
