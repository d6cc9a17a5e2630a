//! The mean field with a point mask as an engine: coordinate ascent of q(W), q(H) and S on the bound that the search uses.

use super::activations::Activations;
use super::dictionary::{Dictionary, stored};
use super::mask::Tiers;
use super::scatter::Scatter;
use super::state::{Averages, Slots, least_usage};
use super::{Batch, Engine, Info, Init, Jumped, Ssmf, State};
use crate::counts::Counts;
use crate::error::Error;
use crate::meanfield::columns::means;
use crate::meanfield::kernels::sum_x_ln;
use crate::meanfield::model::{Model, Part};
use crate::meanfield::view::{BATCH, Column, Ratios, View};
use crate::noise::{Noise, ln_scattered};
use crate::plan::EngineKind;
use crate::prior::CheckedPrior;
use crate::random::Key;
use crate::search::{Found, remask_some};
use crate::special::{digamma, ln, ln_beta};
use crate::workers::Workers;

/// The mean field with a point mask: q(W) q(H) of gamma distributions, S at its most probable value, pi summed out.
///
/// One step: every sixteenth column, another one in each of sixteen steps, switches components on and off as long as the bound
/// rises; then q(H) of all columns, twice; q(W); and the best scale of every component between W and H. Nothing is random
/// after the start.
///
/// With m_k columns on, log p(S_k) is convex in m_k, so that its tangent at the m_k before a step is a lower bound however
/// many columns change together: a column that switches k needs no more than psi(a0 / K + m_k) - psi(b0 (K - 1) / K + T -
/// m_k). So the bound never falls, although all columns are taken at the same time.
///
/// Counts that scatter ([`Noise::Scattered`]) weigh less by their rate under the model, anew in every step: the bound rises
/// within a step, given these weights.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Map {
    /// Where q starts.
    pub init: Init,
    /// How counts scatter about their rates, if no search says so.
    pub noise: Noise,
}

/// Every so manieth column chooses its mask in a step: that takes longer than all the rest, and changes least.
const TURNS: usize = 16;

/// Updates of q(H) for every one of q(W), as in the search.
const H_STEPS: usize = 2;

/// The columns as the mean field reads them.
fn viewed<'a>(counts: &'a Counts, noise: Noise) -> View<'a> {
    let view = View::new(counts);
    // As in the search: activations of counts that scatter are measured against the totals of their columns.
    if noise.alpha().is_some() { view.sized() } else { view }
}

/// The mean field that a state stands for.
fn model_of(state: &State, view: &View, prior: &CheckedPrior, workers: &Workers) -> Model {
    let q = state.variational.as_ref().expect("a state made by this engine");
    let (features, components) = (state.dictionary.features(), state.dictionary.components());
    let mut model = Model::empty(workers.simd, features, state.activations.observations(), *prior);
    model.alpha = state.noise().alpha().unwrap_or(f64::INFINITY);
    model.sizes = view.sizes();
    model.shape = q.nu_w.clone();
    model.rate = q.rho_w.chunks(features).map(|rates| rates.iter().copied().fold(0.0, f64::max)).collect();
    let lacking = q.rho_w.iter().enumerate().map(|(at, rate)| model.rate[at / features] - rate);
    let unseen: Vec<f64> = lacking.collect();
    if unseen.iter().any(|unseen| *unseen > 0.0) {
        model.unseen = unseen;
    }
    let parts = |t: usize| {
        let at = |k: usize| t * components + k;
        let on = state.activations.column(t).iter();
        on.map(|(k, _)| Part::new(k, q.nu_h[at(k)], q.rho_h[at(k)])).collect()
    };
    model.parts = workers.map(0..model.observations(), parts);
    model.settle(workers);
    model
}

/// The log odds at which no column can lower log p(S), see [`Map`].
fn tangents(model: &Model) -> Vec<f64> {
    let observations = model.observations() as f64;
    let (on, off) = (model.prior.pi_on(), model.prior.pi_off());
    let slope = |m: usize| digamma(on + m as f64) - digamma(off + observations - m as f64);
    model.usage().into_iter().map(slope).collect()
}

/// log p(x | W, H, S) of a column at the means of q, without log x!, and the counts that it expects.
fn likelihood(model: &Model, column: &Column, parts: &[Part], buffers: &mut [Vec<f64>; 2]) -> [f64; 2] {
    let [rates, buffer] = buffers;
    let expected: f64 = parts.iter().map(|part| model.sum_in(column, part.k) * part.mean()).sum();
    if model.alpha.is_finite() {
        let mut seen = vec![true; model.features];
        column.missing.iter().for_each(|&f| seen[f as usize] = false);
        let (x, rates) = (column.to_dense(model.features), model.expected(parts));
        let terms = (0..model.features).filter(|&f| seen[f]);
        return [terms.map(|f| ln_scattered(x[f], rates[f], model.alpha)).sum(), expected];
    }
    means(model.simd, model, column, parts, rates, buffer);
    [sum_x_ln(model.simd, &column.x, rates) - expected, expected]
}

/// What a step reports. `weighed` is what it worked on, `view` the counts.
fn report(model: &Model, counts: &Counts, view: &View, weighed: &View, workers: &Workers) -> Info {
    let batches = model.parts.chunks(BATCH).zip(view.columns.chunks(BATCH));
    let columns = workers.map(batches, |(block, columns)| {
        let mut buffers = [Vec::new(), Vec::new()];
        let sums =
            block.iter().zip(columns).map(|(parts, column)| likelihood(model, column, parts, &mut buffers));
        sums.fold([0.0; 2], |[one, two], [a, b]| [one + a, two + b])
    });
    let [log_likelihood, activation] = columns.iter().fold([0.0; 2], |[one, two], [a, b]| [one + a, two + b]);
    let (prior, observations) = (&model.prior, model.observations() as f64);
    let (usage, least) = (model.usage(), least_usage(model.observations()));
    // What the bound of the search leaves out because no move changes it.
    let (on, off) = (prior.pi_on(), prior.pi_off());
    let components = prior.components().max(model.components()) as f64;
    let none = components * (ln_beta(on, off + observations) - ln_beta(on, off));
    Info {
        active: usage.iter().filter(|m| **m > 0 && **m as f64 >= least).count(),
        on_anywhere: usage.iter().filter(|m| **m > 0).count(),
        sites_on: usage.iter().map(|m| *m as u64).sum(),
        log_likelihood: log_likelihood - counts.ln_factorials(),
        log_joint: model.bound(weighed, workers) + none - counts.ln_factorials(),
        activation,
        tiers: Tiers::default(),
        jumped: Jumped::default(),
    }
}

/// Makes the state that of the model.
fn keep(state: &mut State, model: &Model, info: &Info) {
    let State { dictionary, activations, odds, variational, averages, .. } = state;
    let q = variational.as_mut().expect("a state made by this engine");
    let (features, components) = (model.features, model.components());
    let (prior, observations) = (&model.prior, model.observations());
    q.nu_w.clone_from(&model.shape);
    for k in 0..components {
        q.rho_w[k * features..][..features].iter_mut().zip(model.rates(k)).for_each(|(to, rate)| *to = rate);
        let row = dictionary.row_mut(k).iter_mut();
        row.zip(model.means(k)).for_each(|(w, mean)| *w = stored(mean));
    }
    dictionary.settle();
    q.nu_h.fill(prior.c());
    q.rho_h.fill(prior.d());
    averages.masked.fill(0.0);
    averages.inclusion.fill(0.0);
    *activations = Activations::new(components, observations);
    for (t, parts) in model.parts.iter().enumerate() {
        for part in parts {
            let at = t * components + part.k;
            (q.nu_h[at], q.rho_h[at]) = (part.shape, part.rate);
            activations.set(part.k, t, Some(stored(part.mean())));
            averages.masked[at] = part.mean() as f32;
            averages.inclusion[at] = 1.0;
        }
    }
    for (k, m) in model.usage().into_iter().enumerate() {
        q.alpha_pi[k] = prior.pi_on() + m as f64;
        q.beta_pi[k] = prior.pi_off() + (observations - m) as f64;
    }
    odds.fill(|k| ln(q.alpha_pi[k]) - ln(q.beta_pi[k]));
    averages.draws += 1;
    averages.log_likelihood = info.log_likelihood;
}

impl Engine for Map {
    fn name(&self) -> &'static str {
        EngineKind::Map.name()
    }

    fn check(&self, _: &Counts) -> Result<(), Error> {
        self.noise.check().map(drop)
    }

    fn noise(&self) -> Noise {
        self.noise
    }

    fn scatters(&self) -> bool {
        true
    }

    /// That of [`Ssmf`], which has the same parameters.
    fn init(&self, counts: &Counts, prior: &CheckedPrior, key: Key) -> State {
        let state = Ssmf { init: self.init, noise: self.noise, ..Ssmf::default() }.init(counts, prior, key);
        let (features, components) = (counts.features(), prior.components());
        State { dictionary: Dictionary::new(features, components), ..state }
    }

    fn start(&self, found: &Found) -> State {
        State { scatter: Scatter::new(found.discovery.noise), ..found.variational_state() }
    }

    fn step(
        &self,
        state: &mut State,
        batch: &Batch<'_>,
        prior: &CheckedPrior,
        _: Key,
        workers: &Workers,
    ) -> Result<Info, Error> {
        let counts = batch.counts;
        if batch.columns != (0..counts.observations()) {
            let (given, all) = (batch.columns.len(), counts.observations());
            return Err(Error::PartialBatch { engine: self.name(), given, all });
        }
        let view = viewed(counts, state.noise());
        let mut model = model_of(state, &view, prior, workers);
        let weighed = view.weighed(&model, workers);
        let log_odds = tangents(&model);
        let turn = state.iteration as usize % TURNS;
        remask_some(&mut model, &weighed, &log_odds, |t| t % TURNS == turn, workers);
        if !weighed.partial {
            // The start may have a rate for every feature; from here on they are the same.
            model.unseen.clear();
        }
        model.step(&weighed, H_STEPS, &mut Ratios::new(&weighed), workers);
        let info = report(&model, counts, &view, &weighed, workers);
        keep(state, &model, &info);
        state.iteration += 1;
        Ok(info)
    }

    fn slots<'a>(&self, state: &'a State) -> Slots<'a> {
        let q = state.variational.as_ref().expect("a state made by this engine");
        let Averages { masked, inclusion, log_likelihood, .. } = &state.averages;
        let pi = q.alpha_pi.iter().zip(&q.beta_pi).map(|(alpha, beta)| alpha / (alpha + beta)).collect();
        Slots {
            dictionary: q.nu_w.iter().zip(&q.rho_w).map(|(nu, rho)| nu / rho).collect(),
            masked,
            inclusion,
            pi,
            log_likelihood: *log_likelihood,
            spread: None,
        }
    }
}
