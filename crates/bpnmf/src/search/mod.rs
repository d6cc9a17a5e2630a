//! The search for the number of components, before sampling starts.
//!
//! A sampler that starts from nothing holds every true part in several copies that no single-site move can merge. So the
//! start is global, a plain NMF with more components than there can be, and moves that change many sites at once (merge,
//! delete, births from the residual) are judged by the evidence bound with a point mask. What the bound cannot judge is
//! left to a short chain. None of this claims to be a sampler: it chooses where sampling starts, and the prior it uses.
//!
//! The search knows nothing of engines' results, files or terminals.

mod births;
mod chain;
mod eliminate;
mod explore;
mod floor;
mod journal;
mod mask;
mod proportional;
mod pursuit;
mod rank;
mod resolution;
mod start;
mod symmetric;
#[cfg(test)]
mod tests;
mod unmix;

use crate::counts::Counts;
use crate::error::Error;
use crate::infer::State;
use crate::infer::state::Slots;
use crate::meanfield::model::Model;
use crate::meanfield::view::View;
use crate::noise::Noise;
use crate::prior::CheckedPrior;
use crate::random::Key;
use crate::workers::Workers;
use eliminate::BULK;
use explore::{Level, Run, Scatter, active, force};
pub(crate) use journal::{Journal, Stage};
pub(crate) use mask::remask_some;
pub(crate) use rank::SMALLEST_BULK;
pub(crate) use resolution::coarsened;
pub use resolution::{Dispersion, TYPICAL_ENTRY};
use std::sync::Arc;

/// The path of resolutions looks at so many columns at least, if there are so many: a component that counts is on in ten of
/// them.
const PATH_COLUMNS: usize = 1000;

/// How to look for the number of components.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// The power of the likelihood: 1 for the plain model, less to read the data more coarsely. `None` to choose:
    /// 1 for counts, less for data too smooth to be counts, whose unit is arbitrary.
    pub coarsening: Option<f64>,
    /// Exactly this many components, whatever the evidence says.
    pub components: Option<usize>,
    /// Whether the truncation level may grow when the components come within 10 % of it.
    pub grows: bool,
    /// What the parts may look like, if something is known of it: W by components, features times any number. The
    /// search then starts there instead of from columns of the data. Only the shape of each counts; parts that are not
    /// in the data go, and what was not guessed is found all the same. Not used if it holds more components than the
    /// prior allows.
    pub guess: Option<Arc<[f32]>>,
    /// For columns in the order of time: a component that is never on in more than this many columns in a row, and has
    /// less than 1 % of the counts, is the edge of others and does not count. 0 for columns in no order.
    pub passing: usize,
    /// How counts scatter about their rates; `None` to learn it.
    pub noise: Option<Noise>,
    /// How often the search starts again from the dictionary that it found, as long as the evidence gains by it.
    pub restarts: usize,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            coarsening: None,
            components: None,
            grows: true,
            guess: None,
            passing: 0,
            noise: None,
            restarts: 1,
        }
    }
}

/// The number of components at one resolution.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Resolution {
    /// The power of the likelihood.
    pub coarsening: f64,
    /// The components that count there.
    pub components: usize,
}

/// What the search found and what the sampling that follows works with.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Discovery {
    /// The power of the likelihood.
    pub coarsening: f64,
    /// The variance of the counts over their rates, where the search found that it is the same for all rates; `coarsening` is
    /// then one over it.
    pub factor: Option<f64>,
    /// Scatter of the data about the fit.
    pub dispersion: Dispersion,
    /// How the counts scatter about their rates.
    pub noise: Noise,
    /// The prior, its shapes and scales learned from the data.
    pub prior: CheckedPrior,
    /// The number of components at this resolution and at coarser ones, coarsest first. A plateau is what to trust.
    pub path: Vec<Resolution>,
    /// [`Search::components`], if that many were asked for.
    pub forced: Option<usize>,
    /// The components that singular values show beyond the noise of counts: there are at least so many. 0 if they say
    /// nothing, because entries are missing, the matrix is too large, or the noise is not that of counts.
    pub rank: usize,
    /// Where counts are so few that components can be hidden below the noise: the numbers between which singular values
    /// allow the number of components to be, with a probability of about 90 %.
    pub range: Option<(usize, usize)>,
    /// Seconds the search took.
    pub seconds: f64,
}

/// Where the search is, for those who watch.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SearchStep {
    /// What was just done.
    pub stage: &'static str,
    /// Components on in at least 1 % of the columns.
    pub active: usize,
    /// Seconds since the start.
    pub seconds: f64,
}

/// The end of a search: the discovery, the counts to sample with, and where to start.
pub struct Found {
    pub(crate) discovery: Discovery,
    /// The coarsened counts, if they are not the counts themselves.
    pub(crate) counts: Option<Counts>,
    model: Model,
}

impl Found {
    /// A state for engines that carry W and H.
    pub(crate) fn state(&self) -> State {
        chain::state_of(&self.model)
    }

    /// A state for engines that carry q.
    pub(crate) fn variational_state(&self) -> State {
        chain::variational_state_of(&self.model)
    }
}

/// The counts that sampling works with after a search, if they are not the counts themselves.
pub(crate) fn counts_after(discovery: &Discovery, counts: &Counts) -> Option<Counts> {
    (discovery.coarsening < 1.0).then(|| resolution::coarsened(counts, discovery.coarsening))
}

/// Sees a search.
pub(crate) trait Watch {
    /// Something was done; `false` ends the search.
    fn step(&mut self, step: &SearchStep) -> bool;

    /// Where the search stands; `false` ends it.
    fn stands(&mut self, stage: &Stage<'_>) -> bool {
        let _ = stage;
        true
    }
}

impl<F: FnMut(&SearchStep) -> bool> Watch for F {
    fn step(&mut self, step: &SearchStep) -> bool {
        self(step)
    }
}

impl Search {
    /// Errors unless the options are in range.
    pub(crate) fn check(&self, features: usize) -> Result<(), Error> {
        if let Some(guess) = &self.guess {
            if guess.is_empty() || guess.len() % features != 0 {
                let range = "a whole number of components of all features";
                return Err(Error::BadOption { name: "guess", value: guess.len() as f64, range });
            }
            if let Some(w) = guess.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
                let value = f64::from(*w);
                return Err(Error::BadOption { name: "guess", value, range: "finite and not negative" });
            }
        }
        if let Some(value) = self.coarsening.filter(|power| !(*power > 0.0 && *power <= 1.0)) {
            return Err(Error::BadOption { name: "coarsening", value, range: "above 0 and at most 1" });
        }
        if let Some(noise) = self.noise {
            noise.check()?;
        }
        if self.components == Some(0) {
            return Err(Error::BadOption { name: "components", value: 0.0, range: "at least 1" });
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn run(
        &self,
        counts: &Counts,
        prior: &CheckedPrior,
        key: Key,
        workers: &Workers,
        watch: &mut dyn Watch,
    ) -> Result<Found, Error> {
        self.run_from(None, counts, prior, key, workers, watch)
    }

    /// Searches, from where it was stopped if it was. `counts` must hold at least one count.
    pub(crate) fn run_from(
        &self,
        past: Option<Journal>,
        counts: &Counts,
        prior: &CheckedPrior,
        key: Key,
        workers: &Workers,
        watch: &mut dyn Watch,
    ) -> Result<Found, Error> {
        let (start, done) = (std::time::Instant::now(), Vec::new());
        let view = View::new(counts);
        let mut scatter = Scatter::new(self.noise, &view);
        let asks = self.noise.is_none() && self.coarsening.is_none() && scatter.alpha.is_finite();
        let factor = if asks { proportional::factor(&view) } else { None };
        if factor.is_some() {
            // A share of such counts, one over the factor, are as good as Poisson counts.
            scatter = Scatter::POISSON;
        }
        let view = if scatter.alpha.is_finite() { view.sized() } else { view };
        let mut run = Run { key, workers, start, watch, stopped: false, done, past, astray: None, scatter };
        let mut coarse = None;
        let mut model = None;
        let mut power = factor.map_or(self.coarsening.unwrap_or(1.0), f64::recip);
        if self.coarsening.is_none() && factor.is_none() {
            let mut first = run.explore(&view, prior, self);
            let chosen = run.stage("coarsening", &mut first, |_, first| {
                resolution::power(resolution::dispersion(first, &view, workers), counts).to_bits()
            });
            run.check_past()?;
            power = f64::from_bits(chosen);
            model = (power == 1.0).then_some(first);
            if power < 1.0 && self.noise.is_none() && !resolution::leaves_enough(&view, power) {
                run.scatter = Scatter { alpha: resolution::SMOOTH_ALPHA, learned: false };
                power = 1.0;
            }
            if let Some(first) = model.as_mut().filter(|_| self.noise.is_none() && view.partial) {
                // Singular values need every entry, so they could not be asked before there was a model.
                let alpha = run.stage("filled", first, |run, first| {
                    let filled = view.filled(first, key.derived(450), workers);
                    let alpha = rank::alpha(&filled);
                    run.say("filled", active(first));
                    alpha.to_bits()
                });
                run.check_past()?;
                let alpha = f64::from_bits(alpha);
                if alpha.is_finite() && !run.stopped {
                    run.scatter = Scatter { alpha, learned: true };
                    model = None;
                }
            }
        }
        if power < 1.0 {
            let fewer = resolution::coarsened(counts, power);
            if fewer.nonzeros() == 0 {
                return Err(Error::NothingLeft { coarsening: power });
            }
            coarse = Some(fewer);
        }
        let view = coarse.as_ref().map_or(view, View::new);
        let view = if run.scatter.alpha.is_finite() { view.sized() } else { view };
        let mut model = model.unwrap_or_else(|| run.explore(&view, prior, self));
        run.check_past()?;
        if run.past.is_some() {
            return Err(Error::BadCheckpoint { reason: "its search went another way".to_owned() });
        }
        let dispersion = resolution::dispersion(&model, &view, workers);
        let (rank, range) = if self.guess.is_none() { run.raise(&mut model, &view) } else { (0, None) };
        let mut path = vec![Resolution { coarsening: power, components: active(&model) }];
        if !run.stopped {
            self.coarser(&mut run, counts, &model, power, &mut path);
        }
        if !run.stopped {
            let mut go_on = |active: usize| {
                run.say("chain", active);
                !run.stopped
            };
            let used = coarse.as_ref().unwrap_or(counts);
            chain::settle(&mut model, &view, used, rank, key.derived(500), workers, &mut go_on);
        }
        if let Some(wanted) = self.components {
            let view = run.weigh(&mut model, Level::of(&view));
            force(&mut model, &view, wanted, key.derived(600), workers);
        }
        let seconds = run.start.elapsed().as_secs_f64();
        let (prior, forced) = (model.prior, self.components);
        let noise = noise_of(model.alpha);
        let discovery = Discovery {
            coarsening: power,
            factor,
            dispersion,
            noise,
            prior,
            path,
            forced,
            rank,
            range,
            seconds,
        };
        Ok(Found { discovery, counts: coarse, model })
    }

    /// Follows the model to coarser resolutions. Of many columns every so manieth is looked at: what the path tells is how the
    /// number of components changes, and the model itself does not come from it.
    fn coarser(
        &self,
        run: &mut Run<'_>,
        counts: &Counts,
        model: &Model,
        power: f64,
        path: &mut Vec<Resolution>,
    ) {
        const STEPS: [f64; 3] = [0.3, 0.1, 0.03];
        let every = (model.observations() / PATH_COLUMNS).max(1);
        let mut model = model.sampled(every);
        let mut before = 1.0;
        for step in STEPS {
            let fewer = resolution::coarsened(counts, power * step);
            let view = View::new(&fewer).sampled(every);
            if view.total < 1.0 {
                break;
            }
            let a = model.prior.a();
            let scale = step / before;
            before = step;
            model.shape.iter_mut().for_each(|nu| *nu = a + (*nu - a).max(0.0) * scale);
            model.set_prior(a, model.prior.b() / scale, model.prior.c(), model.prior.d());
            model.alpha *= scale;
            model.settle(run.workers);
            let view = view.weighed(&model, run.workers);
            model.ascend(&view, 1, run.workers);
            mask::remask(&mut model, &view, run.workers);
            model.drop_empty();
            crate::meanfield::hyper::learn(&mut model, run.workers);
            model.ascend(&view, 1, run.workers);
            run.eliminate(&mut model, &view, BULK);
            path.insert(0, Resolution { coarsening: power * step, components: active(&model) });
            if run.stopped || model.components() == 1 {
                break;
            }
        }
    }
}

/// The noise of counts with the variance mean + mean^2 / alpha.
fn noise_of(alpha: f64) -> Noise {
    if alpha.is_finite() { Noise::Scattered { alpha } } else { Noise::Poisson }
}

/// What deleting each slot costs, from the averages of a run: nothing to lose where it is nowhere likely to be on.
pub(crate) fn evidence(
    slots: &Slots<'_>,
    counts: &Counts,
    discovery: &Discovery,
    workers: &Workers,
) -> Vec<f64> {
    let features = counts.features();
    let components = slots.components();
    let columns: Vec<Vec<(usize, f64)>> = (0..counts.observations())
        .map(|t| {
            let at = t * components;
            let on = (0..components).filter(|k| slots.inclusion[at + k] >= 0.5);
            on.map(|k| (k, f64::from(slots.masked[at + k]) / f64::from(slots.inclusion[at + k]))).collect()
        })
        .collect();
    let mut used = vec![false; components];
    columns.iter().flatten().for_each(|(k, _)| used[*k] = true);
    let mut evidence = vec![f64::NEG_INFINITY; components];
    let kept: Vec<usize> = (0..components).filter(|&k| used[k]).collect();
    if kept.is_empty() {
        return evidence;
    }
    let view = View::new(counts);
    let mut model = Model::empty(workers.simd, features, counts.observations(), discovery.prior);
    let w = |k: usize, f: usize| slots.dictionary[k * features + f];
    chain::fill(&mut model, &view, components, &w, &columns, workers);
    model.alpha = discovery.noise.alpha().unwrap_or(f64::INFINITY);
    let view = view.weighed(&model, workers);
    if model.alpha.is_finite() {
        chain::fill(&mut model, &view, components, &w, &columns, workers);
    }
    model.ascend(&view, 3, workers);
    for (&k, value) in kept.iter().zip(eliminate::evidence(&model, &view, workers)) {
        evidence[k] = value;
    }
    evidence
}
