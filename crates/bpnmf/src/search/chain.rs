//! The last leg of the search: Gibbs sweeps from where the moves ended. Weak components that the bound cannot judge are
//! kept or dropped here, and the prior is learned from draws that have weak activations in them.

use crate::counts::Counts;
use crate::infer::activations::Activations;
use crate::infer::dictionary::{Dictionary, stored};
use crate::infer::mask::Odds;
use crate::infer::scatter::Scatter;
use crate::infer::state::{Averages, Variational};
use crate::infer::{Batch, Engine, Gibbs, Init, State};
use crate::meanfield::hyper::{A, C, shape_of};
use crate::meanfield::model::{Model, Part, with_numbers};
use crate::meanfield::view::View;
use crate::random::Key;
use crate::special::ln;
use crate::workers::Workers;

/// Slots beside the components found, so that a sampler can open new ones.
const SPARE: usize = 4;

/// Draws of counts the chain may spend: strong data need few sweeps, weak data many, and there they are cheap.
const BUDGET: f64 = 2e7;
const LEAST_SWEEPS: f64 = 90.0;
const MOST_SWEEPS: f64 = 300.0;

/// With more counts than this their allocation is taken at its expectation: its noise is too small to matter.
const MANY_COUNTS: f64 = 1e6;

/// Sweeps between two looks at the prior.
const LEARN_EVERY: usize = 5;

/// A state with W and H at their means under q.
pub(super) fn state_of(model: &Model) -> State {
    let (features, observations, prior) = (model.features, model.observations(), model.prior);
    let components = (model.components() + SPARE).min(prior.components().max(model.components()));
    let mut dictionary = Dictionary::new(features, components);
    for k in 0..components {
        let row = dictionary.row_mut(k);
        if k < model.components() {
            row.iter_mut().zip(model.means(k)).for_each(|(w, mean)| *w = stored(mean));
        } else {
            row.fill(stored(prior.a() / prior.b()));
        }
    }
    dictionary.settle();
    let mut activations = Activations::new(components, observations);
    for (t, parts) in model.parts.iter().enumerate() {
        for part in parts {
            activations.set(part.k, t, Some(stored(part.mean())));
        }
    }
    let odds = |&on: &u32| {
        let on = f64::from(on);
        ((prior.pi_on() + on) / (prior.pi_off() + observations as f64 - on)).ln()
    };
    State {
        odds: Odds::new(activations.usage().iter().map(odds).collect()),
        dictionary,
        activations,
        variational: None,
        averages: Averages::new(features, components, observations),
        scatter: None,
        own: Vec::new(),
        iteration: 0,
    }
}

/// The same with the parameters of q(W), q(H) and q(pi), for the engine that carries them.
pub(super) fn variational_state_of(model: &Model) -> State {
    let mut state = state_of(model);
    let (features, observations, prior) = (model.features, model.observations(), model.prior);
    let components = state.dictionary.components();
    let spare = components - model.components();
    let usage = state.activations.usage();
    let mut q = Variational {
        nu_w: model.shape.clone(),
        rho_w: (0..model.components()).flat_map(|k| model.rates(k)).collect(),
        nu_h: vec![prior.c(); observations * components],
        rho_h: vec![prior.d(); observations * components],
        alpha_pi: usage.iter().map(|&m| prior.pi_on() + f64::from(m)).collect(),
        beta_pi: usage.iter().map(|&m| prior.pi_off() + observations as f64 - f64::from(m)).collect(),
    };
    q.nu_w.extend(core::iter::repeat_n(prior.a(), spare * features));
    q.rho_w.extend(core::iter::repeat_n(prior.b(), spare * features));
    for (t, parts) in model.parts.iter().enumerate() {
        for part in parts {
            let at = t * components + part.k;
            (q.nu_h[at], q.rho_h[at]) = (part.shape, part.rate);
        }
    }
    state.averages = Averages { dictionary: Vec::new(), ..Averages::new(0, components, observations) };
    state.variational = Some(q);
    state
}

/// Runs the chain and leaves the model at its last state, with the prior it learned. `go_on` may end it. The chain has at
/// least `floor` components if it starts with so many: where it falls below, it goes on from where it was before.
pub(super) fn settle(
    model: &mut Model,
    view: &View,
    counts: &Counts,
    floor: usize,
    key: Key,
    workers: &Workers,
    go_on: &mut dyn FnMut(usize) -> bool,
) {
    let noise = super::noise_of(model.alpha);
    let mut state = State { scatter: Scatter::new(noise), ..state_of(model) };
    let whole = counts.first_fraction().is_none();
    let expected = !whole || view.total > MANY_COUNTS;
    let gibbs = Gibbs { expected, burn_in: u32::MAX, init: Init::Scaled, noise, jumps: None };
    let sweeps = (BUDGET / view.total).clamp(LEAST_SWEEPS, MOST_SWEEPS) as usize;
    let batch = Batch::all(counts);
    let mut prior = model.prior;
    let (mut learned, mut looks) = ([0.0; 4], 0.0);
    let mut above = (floor > 1).then(|| state.clone());
    for sweep in 1..=sweeps {
        let info =
            gibbs.step(&mut state, &batch, &prior, key, workers).expect("all columns, and counts that suit");
        if sweep % LEARN_EVERY == 0
            && let Some(above) = &mut above
        {
            if info.active < floor {
                let iteration = state.iteration;
                state = State { iteration, ..above.clone() };
            } else {
                *above = state.clone();
            }
        }
        if sweep % LEARN_EVERY == 0
            && let Some(numbers) = from_draw(&state, counts.observations())
        {
            prior = with_numbers(&prior, numbers);
            if 2 * sweep > sweeps {
                learned.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number.ln());
                looks += 1.0;
            }
        }
        if workers.late() || sweep % LEARN_EVERY == 0 && !go_on(info.active) {
            break;
        }
    }
    model.prior =
        if looks > 0.0 { with_numbers(&prior, learned.map(|sum| (sum / looks).exp())) } else { prior };
    let view = view.weighed(model, workers);
    read(model, &view, &state, workers);
    model.ascend(&view, 3, workers);
}

/// W, H and S of a state as a model.
fn read(model: &mut Model, view: &View, state: &State, workers: &Workers) {
    let columns: Vec<Vec<(usize, f64)>> = (0..model.observations())
        .map(|t| state.activations.column(t).iter().map(|(k, h)| (k, f64::from(h))).collect())
        .collect();
    let w = |k: usize, f: usize| f64::from(state.dictionary.row(k)[f]);
    fill(model, view, state.dictionary.components(), &w, &columns, workers);
}

/// Puts W and the active h into a model, each with the precision that its counts give it.
pub(super) fn fill(
    model: &mut Model,
    view: &View,
    components: usize,
    w: &dyn Fn(usize, usize) -> f64,
    columns: &[Vec<(usize, f64)>],
    workers: &Workers,
) {
    let (prior, features) = (model.prior, model.features);
    model.sizes = view.sizes();
    model.rate = vec![prior.b(); components];
    model.unseen = vec![0.0; if view.partial { components * features } else { 0 }];
    for (column, on) in view.columns.iter().zip(columns) {
        for &(k, h) in on {
            model.rate[k] += h;
            if !model.unseen.is_empty() {
                column.add_unseen(model.simd, h, &mut model.unseen[k * features..][..features]);
            }
        }
    }
    let least = 0.5 * prior.a();
    for i in 0..model.unseen.len() {
        model.unseen[i] = model.unseen[i].min(model.rate[i / features] - prior.b());
    }
    model.shape.resize(components * features, 0.0);
    for k in 0..components {
        let rates: Vec<f64> = model.rates(k).collect();
        for (f, rate) in rates.into_iter().enumerate() {
            model.shape[k * features + f] = (w(k, f) * rate).max(least);
        }
    }
    model.settle(workers);
    model.parts = view
        .columns
        .iter()
        .zip(columns)
        .map(|(column, on)| {
            on.iter()
                .map(|&(k, h)| {
                    let rate = model.d_in(column) + model.sum_in(column, k);
                    Part::new(k, (h * rate).max(0.5 * prior.c()), rate)
                })
                .collect()
        })
        .collect();
    model.drop_empty();
}

/// (a, b, c, d) from one draw of W, H and S. Unlike q with its point mask, a draw has weak activations in it, too.
pub(crate) fn from_draw(state: &State, observations: usize) -> Option<[f64; 4]> {
    let components = state.dictionary.components();
    let (mut sums, mut logs, mut sites) =
        (vec![0.0; components], vec![0.0; components], vec![0.0; components]);
    for t in 0..observations {
        for (k, h) in state.activations.column(t).iter() {
            sums[k] += f64::from(h);
            logs[k] += ln(f64::from(h));
            sites[k] += 1.0;
        }
    }
    let all: f64 = sites.iter().sum();
    let mean_h = sums.iter().sum::<f64>() / all;
    let (mut gap_h, mut freedom) = (0.0, 0.0);
    let (mut gap_w, mut mean_w, mut used) = (0.0, 0.0, 0.0);
    for k in 0..components {
        if sites[k] >= 3.0 {
            gap_h += sites[k] * ln(sums[k] / sites[k]) - logs[k];
            freedom += sites[k] - 1.0;
        }
        if sites[k] > 0.0 {
            let row = state.dictionary.row(k);
            let features = row.len() as f64;
            let average = state.dictionary.sum(k) / features;
            gap_w += ln(average) - row.iter().map(|w| ln(f64::from(*w))).sum::<f64>() / features;
            mean_w += average;
            used += 1.0;
        }
    }
    if used == 0.0 || freedom < 3.0 {
        return None;
    }
    let (a, c) = (shape_of(gap_w / used, A), shape_of(gap_h / freedom, C));
    Some([a, a * used / mean_w, c, c / mean_h])
}
