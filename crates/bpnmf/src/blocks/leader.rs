//! The global half of a fit of blocks: q(W) and q(pi), what is drawn from them for a round, and what the sums of a round make of
//! them.

use super::BlockStatistics;
use super::outcome::Totals;
use super::rounds::{Round, Stage, rounds};
use crate::counts::Counts;
use crate::error::Error;
use crate::infer::Shared;
use crate::infer::dictionary::{Dictionary, stored};
use crate::infer::draws::{Place, draw_row};
use crate::infer::mask::Odds;
use crate::kernel::{Simd, flat_mut};
use crate::noise::Noise;
use crate::prior::CheckedPrior;
use crate::random::{Key, Site};
use crate::run::Fit;
use crate::special::ln;

/// The exponent of the step size (t0 + i)^-kappa.
pub(super) const KAPPA: f64 = 0.7;

/// Certainty is not learned from a finite number of columns.
const LEAST_PI: f64 = 1e-12;

/// A fit of blocks between two rounds: what the search found, and what the rounds so far have made of it.
///
/// A round is local work, [`Shared::local`], on each of the blocks of [`Self::next_round`] with what [`Self::shared`] gives;
/// the sums are added up and come back by [`Self::take`].
#[derive(Debug, Clone, PartialEq)]
pub struct BlockFit {
    pub(super) features: usize,
    pub(super) components: usize,
    /// T.
    pub(super) observations: usize,
    pub(super) seed: u64,
    pub(super) prior: CheckedPrior,
    pub(super) noise: Noise,
    pub(super) coarsening: f64,
    pub(super) whole: bool,
    /// Shape and rate of W_fk at `k * F + f`, those of pi_k.
    pub(super) nu_w: Vec<f64>,
    pub(super) rho_w: Vec<f64>,
    pub(super) alpha_pi: Vec<f64>,
    pub(super) beta_pi: Vec<f64>,
    /// Columns that the search has seen for one of a step.
    pub(super) head_start: f64,
    /// Steps that were made.
    pub(super) steps: u32,
    rounds: Vec<Round>,
    /// Rounds that are over.
    pub(super) done: usize,
    /// log p(X | W, H, S) of the last round, for all columns.
    pub(super) log_likelihood: f64,
    /// After the last round.
    pub(super) totals: Option<Totals>,
}

impl BlockFit {
    /// Starts from what a fit of the columns `sample` found, with the prior of its job, as a model of `observations` columns.
    pub fn begin(fit: &Fit, prior: &CheckedPrior, sample: &Counts, observations: usize, seed: u64) -> Self {
        let posterior = &fit.posterior;
        let (features, components) = (posterior.features, posterior.components());
        let discovery = fit.discovery.as_ref();
        let prior = discovery.map_or(*prior, |discovery| discovery.prior);
        let coarsening = discovery.map_or(1.0, |discovery| discovery.coarsening);
        let scale = observations as f64 / sample.observations() as f64;
        let occupied = sample.column_totals().iter().filter(|total| **total > 0.0).count();
        let mut begun = Self::empty(features, observations, seed, prior, fit.noise(), coarsening);
        begun.components = components;
        begun.whole = sample.first_fraction().is_none();
        for k in 0..components {
            let row = &posterior.activations[k * posterior.observations..][..posterior.observations];
            let activation: f64 = row.iter().map(|&h| f64::from(h)).sum();
            let rate = prior.b() + scale * activation;
            for f in 0..features {
                let w = coarsening * f64::from(posterior.dictionary[f * components + k]);
                begun.nu_w.push((rate * w).max(f64::MIN_POSITIVE));
                begun.rho_w.push(rate);
            }
            let usage = posterior.usage[k];
            begun.alpha_pi.push(prior.pi_on() + scale * usage);
            begun.beta_pi.push(prior.pi_off() + scale * (occupied as f64 - usage).max(0.0));
        }
        begun.plan_rounds();
        let of_step = begun.rounds.first().map_or(1, |round| round.blocks.len() * super::BLOCK_OBSERVATIONS);
        begun.head_start = sample.observations() as f64 / of_step.min(observations) as f64;
        begun
    }

    /// Of no component.
    pub(super) fn empty(
        features: usize,
        observations: usize,
        seed: u64,
        prior: CheckedPrior,
        noise: Noise,
        coarsening: f64,
    ) -> Self {
        Self {
            features,
            components: 0,
            observations,
            seed,
            prior,
            noise,
            coarsening,
            whole: true,
            nu_w: Vec::new(),
            rho_w: Vec::new(),
            alpha_pi: Vec::new(),
            beta_pi: Vec::new(),
            head_start: 1.0,
            steps: 0,
            rounds: Vec::new(),
            done: 0,
            log_likelihood: f64::NAN,
            totals: None,
        }
    }

    /// The rounds that so many columns need; none without components.
    pub(super) fn plan_rounds(&mut self) {
        self.rounds = if self.components == 0 { Vec::new() } else { rounds(self.observations) };
    }

    /// F.
    pub fn features(&self) -> usize {
        self.features
    }

    /// K.
    pub fn components(&self) -> usize {
        self.components
    }

    /// How many rounds there are, and how many of them are over.
    pub fn progress(&self) -> (usize, usize) {
        (self.done, self.rounds.len())
    }

    /// log p(X | W, H, S) by the last round, for all columns.
    pub fn log_likelihood(&self) -> f64 {
        self.log_likelihood
    }

    /// What is to be done next; `None` if all is done.
    pub fn next_round(&self) -> Option<&Round> {
        self.rounds.get(self.done)
    }

    /// All rounds.
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// W and pi for the next round: drawn from q for a step, else their means.
    pub fn shared(&self) -> Shared {
        match self.next_round() {
            Some(Round { number, stage: Stage::Step, .. }) => self.drawn(*number),
            _ => self.means(),
        }
    }

    fn made(&self, dictionary: Dictionary, logit: Vec<f64>) -> Shared {
        Shared {
            dictionary,
            odds: Odds::new(logit),
            shape: self.prior.c(),
            rate: self.prior.d(),
            coarsening: self.coarsening,
            noise: self.noise,
            whole: self.whole,
        }
    }

    pub(super) fn drawn(&self, round: u32) -> Shared {
        let (features, key) = (self.features, Key::new(self.seed).derived(u64::MAX));
        let mut dictionary = Dictionary::new(features, self.components);
        for (k, row) in dictionary.rows_mut().enumerate() {
            let (nu, rho) = (&self.nu_w[k * features..], &self.rho_w[k * features..]);
            // The same bits with any instructions.
            let simd = Simd::Auto.resolved();
            let place = Place { simd, key, site: Site::Dictionary, iteration: round, i: k as u32 };
            draw_row(place, &mut flat_mut(row)[..features], |f| nu[f], |f| rho[f]);
        }
        dictionary.settle();
        let logit = |k: usize| {
            key.stream(Site::Inclusion, round, 0, k as u32).logit_beta(self.alpha_pi[k], self.beta_pi[k])
        };
        self.made(dictionary, (0..self.components).map(logit).collect())
    }

    fn means(&self) -> Shared {
        let mut dictionary = Dictionary::new(self.features, self.components);
        for k in 0..self.components {
            for (f, w) in dictionary.row_mut(k).iter_mut().enumerate() {
                *w = stored(self.nu_w[k * self.features + f] / self.rho_w[k * self.features + f]);
            }
        }
        dictionary.settle();
        let logit = |pi: f64| {
            let pi = pi.clamp(LEAST_PI, 1.0 - LEAST_PI);
            ln(pi) - ln(1.0 - pi)
        };
        self.made(dictionary, self.pi().into_iter().map(logit).collect())
    }

    /// Posterior mean of pi.
    pub(super) fn pi(&self) -> Vec<f64> {
        self.alpha_pi.iter().zip(&self.beta_pi).map(|(alpha, beta)| alpha / (alpha + beta)).collect()
    }

    /// Posterior mean of W_fk at `k * F + f`, in the units of the data.
    pub(super) fn dictionary(&self) -> Vec<f64> {
        self.nu_w.iter().zip(&self.rho_w).map(|(nu, rho)| nu / rho / self.coarsening).collect()
    }

    /// Takes the sums over all blocks of the next round in. Errors if they are not those of its columns.
    pub fn take(&mut self, statistics: BlockStatistics) -> Result<(), Error> {
        let Some(round) = self.rounds.get(self.done) else {
            return Err(Error::BadBlock { reason: "there is no round left".into() });
        };
        let columns: usize =
            round.blocks.iter().map(|&block| super::columns_of(block, self.observations).len()).sum();
        if statistics.columns() != columns as u64 {
            let reason = format!(
                "the sums of round {} are of {} columns, it has {columns}",
                round.number + 1,
                statistics.columns()
            );
            return Err(Error::BadBlock { reason });
        }
        match round.stage {
            Stage::Step => {
                let step = (1.0 + self.head_start + f64::from(self.steps)).powf(-KAPPA);
                self.steps += 1;
                self.blend(statistics, self.observations as f64, step)?;
            }
            Stage::Whole => self.blend(statistics, self.observations as f64, 1.0)?,
            Stage::Means => self.total(statistics)?,
        }
        self.done += 1;
        Ok(())
    }

    /// One step of this size towards what the sums say, as if all of `observations` columns were like these.
    pub(super) fn blend(
        &mut self,
        statistics: BlockStatistics,
        observations: f64,
        step: f64,
    ) -> Result<(), Error> {
        if statistics.shape() != (self.features, self.components) {
            return Err(Error::BadBlock { reason: "the sums are of another model".into() });
        }
        let scale = observations / statistics.columns() as f64;
        let occupied = scale * statistics.occupied() as f64;
        // Without counts nothing is learned.
        let Some(sums) = statistics.into_sums() else { return Ok(()) };
        let (keep, prior) = (1.0 - step, self.prior);
        for k in 0..self.components {
            for at in k * self.features..(k + 1) * self.features {
                let (nu, rho) = (&mut self.nu_w[at], &mut self.rho_w[at]);
                *nu = keep * *nu + step * (prior.a() + scale * sums.allocated[at]);
                *rho = keep * *rho + step * (prior.b() + scale * sums.observed_activation(k, at));
            }
            let usage = scale * sums.usage[k];
            self.alpha_pi[k] = keep * self.alpha_pi[k] + step * (prior.pi_on() + usage);
            self.beta_pi[k] = keep * self.beta_pi[k] + step * (prior.pi_off() + (occupied - usage).max(0.0));
        }
        self.log_likelihood = scale * sums.log_likelihood;
        Ok(())
    }
}
