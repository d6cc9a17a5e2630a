//! SSMF-A (Algorithm 1): sample W, H and pi from q, sample the mask, step along the natural gradient.

use super::activations::Activations;
use super::dictionary::{Dictionary, stored};
use super::draws::{Place, draw_listed, draw_row, draw_sites};
use super::gibbs::{FREEZE_EVERY, init_mask, start_means};
use super::local::{Allocation, GROUP, LocalStep, Workspace, portions};
use super::mask::{Odds, Proposal, Sweep};
use super::scatter::{self, Scatter};
use super::state::{Averages, Slots, Variational, blend, fade, report};
use super::{Batch, Engine, Info, Init, State};
use crate::counts::Counts;
use crate::error::Error;
use crate::kernel::{Simd, flat_mut};
use crate::noise::Noise;
use crate::plan::EngineKind;
use crate::prior::CheckedPrior;
use crate::random::gamma::gamma_at;
use crate::random::{Key, Site};
use crate::search::Found;
use crate::statistics::{Sums, blocks_of};
use crate::workers::Workers;
use core::ops::Range;

/// Algorithm 1 of the paper, and the options in which its text and the authors' code differ.
///
/// | option | default | paper | authors' code |
/// |---|---|---|---|
/// | `kappa`, `t0` | 0.5, 1 | i^-0.5 from i = 1 | (t0 + i)^-kappa from i = 0: the same by default |
/// | `sweeps` | 1 | "after the burn-in period" | 1001 |
/// | `init` | [`Init::Random`] | "randomly" | W, H near 1, half of the mask on |
/// | `prune` | none | none | 1e-3, from the first iteration |
/// | prior | the paper's | 0.5, 0.5, 5, 5 | 0.1 each ([`crate::Prior::authors_code`]) |
///
/// The authors' code also adds 2e-16 to rates that would be zero. That is not offered: it lets a count go
/// unexplained for 36 nats. Here a column with counts cannot switch its last component off.
///
/// Counts that scatter more than Poisson counts ([`Noise::Scattered`]) are replaced in every step by the expectation of
/// latent Poisson counts L given the rates that were just sampled, as `E[Z]` stands for Z. The dispersions of the entries
/// follow the rates to the end: this is a stochastic approximation, not a chain whose target must stand still. L is of all
/// columns, so a batch must have them all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ssmf {
    /// Exponent of the step size (t0 + i)^-kappa, i from 0.
    pub kappa: f64,
    /// Offset of the step size.
    pub t0: f64,
    /// Sweeps over the mask in an iteration.
    pub sweeps: u32,
    /// Where q starts.
    pub init: Init,
    /// Components with `E[pi]` at or below this share of the largest are dropped for good.
    pub prune: Option<f64>,
    /// The first iteration (from 0) after which components are dropped.
    pub prune_from: u32,
    /// How counts scatter about their rates, if no search says so.
    pub noise: Noise,
    /// Which gradient it steps along.
    pub gradient: Gradient,
}

/// The gradient of [`Ssmf`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gradient {
    /// Of the paper, which calls it "-A": the draws are taken as if they did not move with q. It ends elsewhere than at the best
    /// bound.
    #[default]
    Approximate,
    /// Of Hoffman (2014), as a polish: unbiased where the mask is drawn from its conditional, so several sweeps an iteration are
    /// better.
    Full {
        /// Draws of W, H, pi and the mask in an iteration; at least 4 are advised.
        draws: u32,
        /// Iterations with the approximate gradient before it, with steps (1 + i)^-kappa.
        from: u32,
    },
}

impl Default for Ssmf {
    fn default() -> Self {
        let (init, noise) = (Init::Random, Noise::Poisson);
        let gradient = Gradient::Approximate;
        Self { kappa: 0.5, t0: 1.0, sweeps: 1, init, prune: None, prune_from: 0, noise, gradient }
    }
}

impl Ssmf {
    /// The step size of an iteration, counted from 0.
    pub fn step_size(&self, iteration: u32) -> f64 {
        let (t0, iteration) = match self.gradient {
            Gradient::Approximate => (self.t0, iteration),
            Gradient::Full { from, .. } if iteration < from => (1.0, iteration),
            Gradient::Full { from, .. } => (self.t0, iteration - from),
        };
        (t0 + f64::from(iteration)).powf(-self.kappa).min(1.0)
    }
}

/// H of a site that is off: drawn from q.
pub(super) struct FromQ<'a> {
    pub(super) key: Key,
    pub(super) iteration: u32,
    pub(super) components: usize,
    pub(super) nu_h: &'a [f64],
    pub(super) rho_h: &'a [f64],
}

impl Proposal for FromQ<'_> {
    const KNOWN: bool = false;
    #[inline]
    fn draw(&self, t: usize, k: usize) -> f32 {
        let at = t * self.components + k;
        let draw = gamma_at(self.key, Site::Activation, self.iteration, t as u32, k as u32, self.nu_h[at]);
        stored(draw / self.rho_h[at])
    }
    fn draw_all(&self, simd: Simd, sites: &[[u32; 2]], out: &mut [f32]) {
        let place = Place { simd, key: self.key, site: Site::Activation, iteration: self.iteration, i: 0 };
        let at = |t: usize, k: usize| t * self.components + k;
        draw_listed(place, sites, out, |t, k| self.nu_h[at(t, k)], |t, k| self.rho_h[at(t, k)]);
    }
}

/// What the halves of an iteration are given beside the state.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    /// Poisson counts: the data, or those behind them.
    pub(super) counts: &'a Counts,
    pub(super) prior: &'a CheckedPrior,
    pub(super) key: Key,
    pub(super) workers: &'a Workers,
}

/// Lines 3 and 4: W and pi.
pub(super) fn draw_dictionary(key: Key, state: &mut State, workers: &Workers) {
    let State { dictionary, odds, variational, iteration, .. } = state;
    let q = variational.as_ref().expect("a state made by this engine");
    let (features, iteration) = (dictionary.features(), *iteration);
    workers.for_each(dictionary.rows_mut().enumerate(), |(k, row), _| {
        let (nu, rho) = (&q.nu_w[k * features..], &q.rho_w[k * features..]);
        let place = Place { simd: workers.simd, key, site: Site::Dictionary, iteration, i: k as u32 };
        draw_row(place, &mut flat_mut(row)[..features], |f| nu[f], |f| rho[f]);
    });
    dictionary.settle();
    odds.fill(|k| {
        key.stream(Site::Inclusion, iteration, 0, k as u32).logit_beta(q.alpha_pi[k], q.beta_pi[k])
    });
}

/// Line 5: H of the sites that are on, of some columns.
pub(super) fn draw_activations(columns: Range<usize>, key: Key, state: &mut State, workers: &Workers) {
    let State { activations, variational, iteration, .. } = state;
    let q = variational.as_ref().expect("a state made by this engine");
    let (tiles, components) = (activations.tiles(), activations.components());
    let (on, values) = activations.columns_mut(columns.start, columns.end);
    let groups = on.chunks(GROUP * tiles).zip(values.chunks_mut(GROUP * tiles)).enumerate();
    workers.for_each(groups, |(group, (on, values)), _| {
        let i = (columns.start + group * GROUP) as u32;
        let place = Place { simd: workers.simd, key, site: Site::Activation, iteration: *iteration, i };
        let at = |t: usize, k: usize| t * components + k;
        draw_sites(place, tiles, on, values, |t, k| q.nu_h[at(t, k)], |t, k| q.rho_h[at(t, k)]);
    });
}

impl Ssmf {
    /// Line 6, the local half of an iteration: the mask and E[Z] of the columns of a block; the updates of q(H), whose columns
    /// are then done with. Leaves its sums in `workspace`.
    pub(super) fn local(
        &self,
        given: Given<'_>,
        columns: Range<usize>,
        state: &mut State,
        workspace: &mut Workspace,
    ) {
        let Given { counts, prior, key, workers } = given;
        let State { dictionary, activations, odds, variational, averages, iteration, .. } = state;
        let (iteration, components) = (*iteration, dictionary.components());
        let q = variational.as_mut().expect("a state made by this engine");
        let eta = self.step_size(iteration);
        let keep = 1.0 - eta;
        workspace.start(counts, dictionary);
        for columns in portions(counts, columns, workers) {
            let proposal = FromQ { key, iteration, components, nu_h: &q.nu_h, rho_h: &q.rho_h };
            let local = LocalStep {
                sweep: Sweep { counts, dictionary, odds, proposal: &proposal, key, number: 0 },
                sweeps: self.sweeps,
                allocation: Allocation::Expected,
                iteration,
            };
            local.run(columns.clone(), activations, workers, workspace);

            let at = columns.start * components..columns.end * components;
            let size = GROUP * components;
            let parameters = q.nu_h[at.clone()].chunks_mut(size).zip(q.rho_h[at.clone()].chunks_mut(size));
            let means = averages.masked[at.clone()].chunks_mut(size);
            let means = means.zip(averages.inclusion[at].chunks_mut(size));
            let groups = parameters.zip(means).zip(workspace.shares.chunks(size)).enumerate();
            workers.for_each(groups, |(group, (((nu, rho), (masked, inclusion)), shares)), _| {
                blend(workers.simd, nu, keep, eta * prior.c());
                blend(workers.simd, rho, keep, eta * prior.d());
                fade(workers.simd, masked, keep as f32);
                fade(workers.simd, inclusion, keep as f32);
                let first = group * GROUP;
                for (c, parts) in workspace.parts().skip(first).take(nu.len() / components).enumerate() {
                    let unexposed = counts.unexposed(columns.start + first + c);
                    for &(k, _) in parts {
                        let at = c * components + k;
                        let (share, sum) = (shares[at], dictionary.observed_sum(k, unexposed));
                        nu[at] += eta * share;
                        rho[at] += eta * sum;
                        masked[at] += (eta * ((prior.c() + share) / (prior.d() + sum))) as f32;
                        inclusion[at] += eta as f32;
                    }
                }
            });
        }
        workspace.finish(Allocation::Expected, dictionary);
    }

    /// Line 7, the global half: the report of what there was, then q(W) and q(pi) given the sums over all blocks of a batch.
    pub(super) fn global(&self, given: Given<'_>, batch: &Batch<'_>, sums: &Sums, state: &mut State) -> Info {
        let Given { prior, workers, .. } = given;
        let State { dictionary, odds, variational, averages, iteration, .. } = state;
        let q = variational.as_mut().expect("a state made by this engine");
        let (features, components) = (dictionary.features(), dictionary.components());
        let (eta, scale) = (self.step_size(*iteration), batch.scale());
        let keep = 1.0 - eta;
        let info = report(batch.counts, prior, dictionary, odds, sums, scale, workers.simd);
        let parameters = q.nu_w.chunks_mut(features).zip(q.rho_w.chunks_mut(features));
        workers.for_each(parameters.enumerate(), |(k, (nu, rho)), _| {
            let allocated = &sums.allocated[k * features..][..features];
            for f in 0..features {
                nu[f] = keep * nu[f] + eta * (prior.a() + scale * allocated[f]);
                rho[f] =
                    keep * rho[f] + eta * (prior.b() + scale * sums.observed_activation(k, k * features + f));
            }
        });
        let observations = batch.counts.observations() as f64;
        for k in 0..components {
            let usage = scale * sums.usage[k];
            q.alpha_pi[k] = keep * q.alpha_pi[k] + eta * (prior.pi_on() + usage);
            q.beta_pi[k] = keep * q.beta_pi[k] + eta * (prior.pi_off() + observations - usage);
        }
        averages.draws += 1;
        averages.log_likelihood += eta * (info.log_likelihood - averages.log_likelihood);
        *iteration += 1;
        info
    }
}

impl Engine for Ssmf {
    fn name(&self) -> &'static str {
        EngineKind::Ssmf.name()
    }

    fn check(&self, _: &Counts) -> Result<(), Error> {
        if !(0.0..=1.0).contains(&self.kappa) {
            return Err(Error::BadOption { name: "kappa", value: self.kappa, range: "between 0 and 1" });
        }
        if !(self.t0 >= 0.0 && self.t0.is_finite()) {
            return Err(Error::BadOption { name: "t0", value: self.t0, range: "at least 0" });
        }
        if self.sweeps == 0 {
            return Err(Error::BadOption { name: "sweeps", value: 0.0, range: "at least 1" });
        }
        if let Some(value) = self.prune.filter(|cutoff| !(0.0..1.0).contains(cutoff)) {
            return Err(Error::BadOption { name: "prune", value, range: "at least 0 and below 1" });
        }
        if let Gradient::Full { draws, .. } = self.gradient
            && !(1..=10_000).contains(&draws)
        {
            return Err(Error::BadOption {
                name: "draws",
                value: f64::from(draws),
                range: "between 1 and 10000",
            });
        }
        self.noise.check()?;
        Ok(())
    }

    fn noise(&self) -> Noise {
        self.noise
    }

    fn scatters(&self) -> bool {
        true
    }

    fn init(&self, counts: &Counts, prior: &CheckedPrior, key: Key) -> State {
        let (features, observations) = (counts.features(), counts.observations());
        let components = prior.components();
        let mut activations = Activations::new(components, observations);
        init_mask(self.init, key, &mut activations, observations);
        let mut q = Variational {
            nu_w: vec![0.0; components * features],
            rho_w: vec![0.0; components * features],
            nu_h: vec![prior.c(); observations * components],
            rho_h: vec![prior.d(); observations * components],
            alpha_pi: Vec::new(),
            beta_pi: Vec::new(),
        };
        // 100 Gamma(100, 100): parameters near 100, so that draws stay within some ten per cent of their mean.
        let near_hundred = |part: u32, i: usize, j: usize| {
            let mut stream = key.stream(Site::Init, part, i as u32, j as u32);
            (stream.gamma(100.0), stream.gamma(100.0))
        };
        let means = start_means(self.init, counts);
        for k in 0..components {
            for f in 0..features {
                let at = k * features + f;
                (q.nu_w[at], q.rho_w[at]) = match self.init {
                    Init::Random => near_hundred(0, k, f),
                    Init::Scaled => {
                        let draw = key.stream(Site::Init, 0, k as u32, f as u32).gamma(1.0);
                        (10.0, 10.0 / (means[f] * draw.max(1e-6)))
                    }
                };
            }
        }
        let usage = activations.usage();
        for k in 0..components {
            let mut stream = key.stream(Site::Init, 4, 0, k as u32);
            let (alpha, beta) = match self.init {
                Init::Random => (stream.uniform(), stream.uniform()),
                Init::Scaled => (
                    prior.pi_on() + f64::from(usage[k]),
                    prior.pi_off() + (observations - usage[k] as usize) as f64,
                ),
            };
            q.alpha_pi.push(alpha);
            q.beta_pi.push(beta);
        }
        if self.init == Init::Random {
            for t in 0..observations {
                for k in 0..components {
                    let at = t * components + k;
                    (q.nu_h[at], q.rho_h[at]) = near_hundred(1, t, k);
                }
            }
        }
        State {
            dictionary: Dictionary::new(features, components),
            activations,
            odds: Odds::new(vec![0.0; components]),
            variational: Some(q),
            averages: Averages { dictionary: Vec::new(), ..Averages::new(0, components, observations) },
            scatter: Scatter::new(self.noise),
            own: Vec::new(),
            iteration: 0,
        }
    }

    fn step(
        &self,
        state: &mut State,
        batch: &Batch<'_>,
        prior: &CheckedPrior,
        key: Key,
        workers: &Workers,
    ) -> Result<Info, Error> {
        let data = batch.counts;
        if state.scatter.is_some() && batch.columns != (0..data.observations()) {
            return Err(Error::PartialBatch {
                engine: "ssmf with counts that scatter",
                given: batch.columns.len(),
                all: data.observations(),
            });
        }
        let iteration = state.iteration;
        if let Gradient::Full { draws, from } = self.gradient
            && iteration >= from
        {
            return Ok(self.full_step(state, batch, Given { counts: data, prior, key, workers }, draws));
        }
        // Lines 3 to 5: sample W and pi now, H of the sites that are on, and of the others when it is needed.
        draw_dictionary(key, state, workers);
        draw_activations(batch.columns.clone(), key, state, workers);
        let mut scatter = state.scatter.take();
        if let Some(scatter) = &mut scatter {
            let (dictionary, activations) = (&state.dictionary, &state.activations);
            if iteration.is_multiple_of(FREEZE_EVERY) || !scatter.is_frozen() {
                scatter.freeze(data, dictionary, activations, workers);
            }
            let place = scatter::Place { key, iteration, allocation: Allocation::Expected };
            scatter.redraw(data, dictionary, activations, place, workers);
        }
        let latent = scatter.as_ref().and_then(Scatter::latent);
        let given = Given { counts: latent.unwrap_or(data), prior, key, workers };
        let workspace = &mut *workers.workspace();
        workspace.begin();
        for (block, columns) in blocks_of(batch.columns.clone()) {
            self.local(given, columns.clone(), state, workspace);
            if let Some(scatter) = &scatter {
                let State { dictionary, activations, .. } = &*state;
                let Workspace { stats, column_sums, .. } = &mut *workspace;
                scatter.put_right(data, dictionary, activations, columns, stats, column_sums, workers);
            }
            workspace.keep(block);
        }
        workspace.total();
        let mut info = self.global(given, batch, &workspace.stats, state);
        if latent.is_some() {
            info.activation = workspace.stats.expected_scattered;
        }
        state.scatter = scatter;
        if let Some(cutoff) = self.prune.filter(|_| iteration >= self.prune_from) {
            prune(state, cutoff, data.features());
        }
        Ok(info)
    }

    fn start(&self, found: &Found) -> State {
        State { scatter: Scatter::new(found.discovery.noise), ..found.variational_state() }
    }

    fn slots<'a>(&self, state: &'a State) -> Slots<'a> {
        let q = state.variational.as_ref().expect("a state made by this engine");
        let pi = q.alpha_pi.iter().zip(&q.beta_pi).map(|(alpha, beta)| alpha / (alpha + beta)).collect();
        Slots {
            dictionary: q.nu_w.iter().zip(&q.rho_w).map(|(nu, rho)| nu / rho).collect(),
            masked: &state.averages.masked,
            inclusion: &state.averages.inclusion,
            pi,
            log_likelihood: state.averages.log_likelihood,
            spread: None,
        }
    }
}

/// Drops the components with E[pi] at or below `cutoff` times the largest.
fn prune(state: &mut State, cutoff: f64, features: usize) {
    let q = state.variational.as_mut().expect("a state made by this engine");
    let components = q.alpha_pi.len();
    let mean = |k: usize| q.alpha_pi[k] / (q.alpha_pi[k] + q.beta_pi[k]);
    let largest = (0..components).map(mean).fold(0.0, f64::max);
    let kept: Vec<usize> = (0..components).filter(|&k| mean(k) > cutoff * largest).collect();
    if kept.is_empty() || kept.len() == components {
        return;
    }
    let rows = |values: &[f64]| -> Vec<f64> {
        kept.iter().flat_map(|&k| &values[k * features..(k + 1) * features]).copied().collect()
    };
    *q = Variational {
        nu_w: rows(&q.nu_w),
        rho_w: rows(&q.rho_w),
        nu_h: picked(&q.nu_h, components, &kept),
        rho_h: picked(&q.rho_h, components, &kept),
        alpha_pi: picked(&q.alpha_pi, components, &kept),
        beta_pi: picked(&q.beta_pi, components, &kept),
    };
    state.averages.masked = picked(&state.averages.masked, components, &kept);
    state.averages.inclusion = picked(&state.averages.inclusion, components, &kept);
    state.averages.pi = picked(&state.averages.pi, components, &kept);
    state.dictionary = state.dictionary.selected(&kept);
    state.activations = state.activations.selected(&kept);
    // The rates of its columns are others now: the next step looks at them again.
    state.scatter = Scatter::new(state.noise());
    state.odds = Odds::new(picked(state.odds.logit(), components, &kept));
}

/// The elements `kept` of every run of `components` values.
fn picked<T: Copy>(values: &[T], components: usize, kept: &[usize]) -> Vec<T> {
    values.chunks(components).flat_map(|chunk| kept.iter().map(|&k| chunk[k])).collect()
}
