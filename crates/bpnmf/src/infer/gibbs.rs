//! Gibbs sampling: exact, or with expected counts as the paper prints it (Algorithm 2).

use super::activations::Activations;
use super::conditionals::Conditionals;
use super::dictionary::{Dictionary, stored};
use super::draws::{Place, draw_listed};
use super::jumps::{self, Jumped, Jumps, Moving};
use super::local::{Allocation, Workspace};
use super::mask::{Odds, Proposal};
use super::scatter::{self, Scatter};
use super::state::{Averages, Slots, Spread, report};
use super::{Batch, Engine, Info, Init, State};
use crate::counts::Counts;
use crate::error::Error;
use crate::kernel::Simd;
use crate::noise::Noise;
use crate::plan::EngineKind;
use crate::prior::CheckedPrior;
use crate::random::gamma::gamma_at;
use crate::random::{Key, Site};
use crate::search::Found;
use crate::statistics::{Sums, blocks_of};
use crate::workers::Workers;
use core::ops::Range;

/// The Gibbs sampler.
///
/// One step: S with Z summed out, in the fixed order of the components; Z given the new S; W; H given the new W; pi.
/// H where S is off is a fresh draw from its prior, made only if the sweep needs it.
///
/// Counts that scatter more than Poisson counts ([`Noise::Scattered`]) are replaced by latent Poisson counts L, which are
/// drawn at the beginning of every step, given the rates as they stand. The dispersion of every entry follows the rates
/// during the burn-in and is frozen after it; given these dispersions the sampler is exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gibbs {
    /// Use `E[Z]` in place of a draw of Z. That is Algorithm 2 as printed; it is **not** a valid Gibbs sampler: the
    /// multinomial noise is missing, so the chain is too narrow and keeps components that the model would drop.
    pub expected: bool,
    /// Steps before states are averaged.
    pub burn_in: u32,
    /// Where the chain starts.
    pub init: Init,
    /// How counts scatter about their rates, if no search says so.
    pub noise: Noise,
    /// Moves between numbers of components; `None` for none. They need sampled counts.
    pub jumps: Option<Jumps>,
}

/// Steps between two looks at the rates, by which the dispersions are set, as long as they follow them.
pub(super) const FREEZE_EVERY: u32 = 5;

impl Default for Gibbs {
    fn default() -> Self {
        Self { expected: false, burn_in: 200, init: Init::Random, noise: Noise::Poisson, jumps: None }
    }
}

/// H of a site that is off: its prior.
pub(super) struct FromPrior {
    pub(super) key: Key,
    pub(super) iteration: u32,
    pub(super) shape: f64,
    pub(super) rate: f64,
}

impl Proposal for FromPrior {
    const KNOWN: bool = false;
    fn draw(&self, t: usize, k: usize) -> f32 {
        let draw = gamma_at(self.key, Site::OffActivation, self.iteration, t as u32, k as u32, self.shape);
        stored(draw / self.rate)
    }
    fn draw_all(&self, simd: Simd, sites: &[[u32; 2]], out: &mut [f32]) {
        let place = Place { simd, key: self.key, site: Site::OffActivation, iteration: self.iteration, i: 0 };
        draw_listed(place, sites, out, |_, _| self.shape, |_, _| self.rate);
    }
}

impl Gibbs {
    fn allocation(&self) -> Allocation {
        if self.expected { Allocation::Expected } else { Allocation::Sampled }
    }

    /// What moves between numbers of components do before an iteration.
    fn jump(
        &self,
        counts: &Counts,
        state: &mut State,
        prior: &CheckedPrior,
        key: Key,
        workers: &Workers,
    ) -> Jumped {
        let State { dictionary, activations, odds, iteration, .. } = state;
        if *iteration == 0 {
            jumps::start(prior, activations, odds);
        }
        let Some(jumps) = self.jumps.filter(|_| !self.expected) else { return Jumped::default() };
        let mut moving = Moving { dictionary, activations, odds };
        jumps::admit(prior, &mut moving, key, *iteration);
        if !(*iteration + 1).is_multiple_of(jumps.every.max(1)) {
            return Jumped::default();
        }
        jumps::jump(jumps, counts, prior, &mut moving, key, *iteration, workers)
    }

    /// One iteration given the Poisson counts `counts`: those of `data`, or those behind them if they scatter.
    pub(super) fn step_given(
        &self,
        counts: &Counts,
        scatter: Option<&Scatter>,
        state: &mut State,
        data: &Counts,
        prior: &CheckedPrior,
        key: Key,
        workers: &Workers,
    ) -> Info {
        let jumped = self.jump(counts, state, prior, key, workers);
        let conditionals = Conditionals { counts, prior, key, iteration: state.iteration, workers };
        let workspace = &mut *workers.workspace();
        workspace.begin();
        for (block, columns) in blocks_of(0..counts.observations()) {
            self.local(conditionals, columns, scatter.map(|scatter| (scatter, data)), state, workspace);
            workspace.keep(block);
        }
        workspace.total();
        let info = self.global(conditionals, &workspace.stats, scatter, data, state);
        for (_, columns) in blocks_of(0..counts.observations()) {
            self.follow(conditionals, columns, &workspace.kept_shares, state);
        }
        Info { jumped, ..info }
    }

    /// The local half of an iteration: the mask and the counts of the columns of a block given W and pi. Leaves its sums in
    /// `workspace`.
    pub(super) fn local(
        &self,
        conditionals: Conditionals<'_>,
        columns: Range<usize>,
        scatter: Option<(&Scatter, &Counts)>,
        state: &mut State,
        workspace: &mut Workspace,
    ) {
        let State { dictionary, activations, odds, .. } = state;
        let allocation = self.allocation();
        conditionals.mask_and_counts_of(
            columns.clone(),
            allocation,
            dictionary,
            activations,
            odds,
            workspace,
        );
        if let Some((scatter, data)) = scatter {
            let Workspace { stats, column_sums, .. } = workspace;
            let workers = conditionals.workers;
            scatter.put_right(data, dictionary, activations, columns, stats, column_sums, workers);
        }
    }

    /// The global half: the report of what there was, then W and pi given the sums over all blocks, and their averages.
    pub(super) fn global(
        &self,
        conditionals: Conditionals<'_>,
        sums: &Sums,
        scatter: Option<&Scatter>,
        data: &Counts,
        state: &mut State,
    ) -> Info {
        let Conditionals { prior, iteration, workers, .. } = conditionals;
        let State { dictionary, odds, averages, .. } = state;
        let (features, components) = (dictionary.features(), dictionary.components());
        let in_model: Vec<bool> = (0..components).map(|k| jumps::in_model(odds, k)).collect();
        let mut info = report(data, prior, dictionary, odds, sums, 1.0, workers.simd);
        if scatter.is_some_and(|scatter| scatter.latent().is_some()) {
            info.activation = sums.expected_scattered;
        }
        conditionals.dictionary(sums, dictionary, |_| prior.b());
        conditionals.odds(&sums.usage, odds, jumps::shapes(prior, |k| in_model[k]));

        // Until the burn-in is over the average is the last state itself.
        averages.draws = if iteration <= self.burn_in { 1 } else { averages.draws + 1 };
        let rate = 1.0 / f64::from(averages.draws);
        for k in 0..components {
            let means = &mut averages.dictionary[k * features..][..features];
            for (mean, &w) in means.iter_mut().zip(dictionary.row(k)) {
                *mean += (rate * f64::from(w - *mean)) as f32;
            }
            let pi = 1.0 / (1.0 + (-odds.logit()[k]).exp());
            averages.pi[k] += rate * (pi - averages.pi[k]);
        }
        averages.log_likelihood += rate * (info.log_likelihood - averages.log_likelihood);
        // States of the expected counts are no draws from the posterior.
        if iteration >= self.burn_in && !self.expected {
            let new = || Spread::new(features, components, data.observations());
            averages.spread.get_or_insert_with(new).blend_signatures(workers.simd, dictionary, rate);
        }
        state.iteration += 1;
        info
    }

    /// What the columns of a block do after the global half: H given the new W, and their averages. `shares` is the sum over
    /// f of Z_ftk at `t * K + k`.
    pub(super) fn follow(
        &self,
        conditionals: Conditionals<'_>,
        columns: Range<usize>,
        shares: &[f64],
        state: &mut State,
    ) {
        let simd = conditionals.workers.simd;
        let State { dictionary, activations, averages, .. } = state;
        conditionals.activations_of(columns.clone(), shares, dictionary, activations);
        let rate = 1.0 / f64::from(averages.draws);
        averages.blend_columns(simd, activations, columns.clone(), rate, |_, _, h| f64::from(h));
        if let Some(spread) = averages.spread.as_mut().filter(|_| conditionals.iteration >= self.burn_in) {
            spread.blend_exposures(simd, dictionary, activations, columns, rate);
        }
    }
}

impl Engine for Gibbs {
    fn name(&self) -> &'static str {
        if self.expected { EngineKind::GibbsExpected.name() } else { EngineKind::Gibbs.name() }
    }

    fn check(&self, counts: &Counts) -> Result<(), Error> {
        self.noise.check()?;
        if self.expected { Ok(()) } else { counts.require_whole(self.name()) }
    }

    fn noise(&self) -> Noise {
        self.noise
    }

    fn scatters(&self) -> bool {
        true
    }

    fn start(&self, found: &Found) -> State {
        State { scatter: Scatter::new(found.discovery.noise), ..found.state() }
    }

    /// A chain that has just burnt in has not been averaged over: run on for as long again.
    fn least_iterations(&self) -> usize {
        2 * self.burn_in as usize
    }

    /// A chain that ended before its burn-in was over is judged by its second half, for want of better.
    fn burn_in(&self, iterations: usize) -> usize {
        let burn_in = self.burn_in as usize;
        if burn_in < iterations { burn_in } else { iterations / 2 }
    }

    fn init(&self, counts: &Counts, prior: &CheckedPrior, key: Key) -> State {
        let (features, observations) = (counts.features(), counts.observations());
        let components = prior.components();
        let mut dictionary = Dictionary::new(features, components);
        let mut activations = Activations::new(components, observations);
        init_mask(self.init, key, &mut activations, observations);
        let means = start_means(self.init, counts);
        for k in 0..components {
            for (f, w) in dictionary.row_mut(k).iter_mut().enumerate() {
                *w = stored(start_w(self.init, key, means[f], k, f));
            }
        }
        dictionary.settle();
        for t in 0..observations {
            let on: Vec<usize> = activations.column(t).iter().map(|(k, _)| k).collect();
            for k in on {
                let mut stream = key.stream(Site::Init, 3, t as u32, k as u32);
                let h = match self.init {
                    Init::Random => stream.gamma(100.0) / 100.0,
                    Init::Scaled => 1.0,
                };
                activations.set(k, t, Some(stored(h)));
            }
        }
        let usage = activations.usage();
        let odds = Odds::new(
            usage
                .iter()
                .enumerate()
                .map(|(k, &on)| {
                    let (on, off) = (f64::from(on), (observations - on as usize) as f64);
                    key.stream(Site::Init, 4, 0, k as u32)
                        .logit_beta(prior.pi_on() + on, prior.pi_off() + off)
                })
                .collect(),
        );
        State {
            dictionary,
            activations,
            odds,
            variational: None,
            averages: Averages::new(features, components, observations),
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
        let counts = batch.counts;
        if batch.columns != (0..counts.observations()) {
            return Err(Error::PartialBatch {
                engine: self.name(),
                given: batch.columns.len(),
                all: counts.observations(),
            });
        }
        let iteration = state.iteration;
        let Some(mut scatter) = state.scatter.take() else {
            return Ok(self.step_given(counts, None, state, counts, prior, key, workers));
        };
        let (dictionary, activations) = (&state.dictionary, &state.activations);
        let burning_in = iteration < self.burn_in && iteration.is_multiple_of(FREEZE_EVERY);
        if burning_in || !scatter.is_frozen() {
            scatter.freeze(counts, dictionary, activations, workers);
        }
        let place = scatter::Place { key, iteration, allocation: self.allocation() };
        scatter.redraw(counts, dictionary, activations, place, workers);
        let latent = scatter.latent().unwrap_or(counts);
        let info = self.step_given(latent, Some(&scatter), state, counts, prior, key, workers);
        state.scatter = Some(scatter);
        Ok(info)
    }

    fn slots<'a>(&self, state: &'a State) -> Slots<'a> {
        let averages = &state.averages;
        Slots {
            dictionary: averages.dictionary.iter().map(|&w| f64::from(w)).collect(),
            masked: &averages.masked,
            inclusion: &averages.inclusion,
            pi: averages.pi.clone(),
            log_likelihood: averages.log_likelihood,
            spread: averages.spread.as_ref().filter(|_| averages.draws > 1),
        }
    }
}

/// The mask a run starts from; H is not set.
pub(super) fn init_mask(init: Init, key: Key, activations: &mut Activations, observations: usize) {
    let components = activations.components();
    for t in 0..observations {
        let mut stream = key.stream(Site::Init, 2, t as u32, 0);
        match init {
            Init::Random => {
                for k in 0..components {
                    if stream.uniform() < 0.5 {
                        activations.set(k, t, Some(1.0));
                    }
                }
            }
            Init::Scaled => {
                for _ in 0..5.min(components) {
                    let k = (stream.uniform() * components as f64) as usize;
                    activations.set(k.min(components - 1), t, Some(1.0));
                }
            }
        }
    }
}

/// The mean of W_f. at the start.
pub(super) fn start_means(init: Init, counts: &Counts) -> Vec<f64> {
    match init {
        Init::Random => vec![1.0; counts.features()],
        Init::Scaled => {
            let floor = 0.01 * counts.total() / (counts.features() as f64 * counts.observations() as f64);
            let scale = 1.0 / (5.0 * counts.observations() as f64);
            counts.row_totals().into_iter().map(|total| (total * scale).max(floor).max(1e-6)).collect()
        }
    }
}

/// W_fk at the start of a chain.
fn start_w(init: Init, key: Key, mean: f64, k: usize, f: usize) -> f64 {
    let mut stream = key.stream(Site::Init, 0, k as u32, f as u32);
    match init {
        Init::Random => stream.gamma(100.0) / 100.0,
        Init::Scaled => stream.gamma(1.0) * mean,
    }
}
