//! Where the search starts: a plain KL-NMF with generously many components, grown from columns that differ.

use crate::kernel::Simd;
use crate::meanfield::kernels::surprise;
use crate::meanfield::model::{Model, Part};
use crate::meanfield::nmf::{Factors, Updates, updated};
use crate::meanfield::view::View;
use crate::prior::CheckedPrior;
use crate::random::{Key, Site};
use crate::workers::Workers;

/// A component starts on where it explains at least this share of a column ...
const SHARE_OF_COLUMN: f64 = 0.05;
/// ... and at least this share of what it explains where it is loud.
const SHARE_OF_LOUD: f64 = 0.1;

/// Columns far from each other: each drawn with a probability that grows with the deviance of its best explanation so
/// far. They are blurred a little with the mean column, so that no entry of W starts at zero.
fn seeds(view: &View, count: usize, key: Key, workers: &Workers) -> Vec<f64> {
    let features = view.features;
    let mut stream = key.stream(Site::Init, 10, 0, 0);
    let mut mean = vec![0.0; features];
    for column in &view.columns {
        column.scatter(workers.simd, &mut mean, &column.x, 1.0 / view.total);
    }
    let floor = 1e-9 / features as f64;
    mean.iter_mut().for_each(|m| *m = m.max(floor));
    let mut deviance = vec![f64::INFINITY; view.columns.len()];
    let mut latest = mean.clone();
    let mut chosen = Vec::with_capacity(count * features);
    for _ in 0..count {
        let with_latest = workers.map(view.columns.iter(), |column| {
            let mut buffer = Vec::new();
            let row = column.gather(&latest, &mut buffer);
            let seen = (1.0 - column.missing_of(&latest)).max(1e-9);
            surprise(workers.simd, &column.x, row, seen / column.total)
        });
        for (least, new) in deviance.iter_mut().zip(with_latest) {
            *least = least.min(new.max(0.0));
        }
        let mut target = stream.uniform() * deviance.iter().sum::<f64>();
        let mut pick = 0;
        for (t, _) in view.columns.iter().enumerate().filter(|(_, column)| column.total > 0.0) {
            pick = t;
            target -= deviance[t];
            if target <= 0.0 {
                break;
            }
        }
        latest = mean.iter().map(|m| 0.1 * m).collect();
        let column = &view.columns[pick];
        column.scatter(workers.simd, &mut latest, &column.x, 0.9 / column.total);
        chosen.extend_from_slice(&latest);
    }
    chosen
}

/// Multiplicative updates from columns that differ.
pub(super) fn factorise(
    view: &View,
    components: usize,
    iterations: usize,
    key: Key,
    simd: Simd,
    workers: &Workers,
) -> Factors {
    let seeds = seeds(view, components, key, workers);
    updated(view, seeds, &Updates { iterations, held: 0, sharpness: 1.0 }, simd, workers)
}

/// Multiplicative updates from a guess of W, by components. H becomes sparse on the way: a guess has more components than
/// there are parts, and every column should choose among them.
pub(super) fn factorise_guess(view: &View, guess: &[f32], simd: Simd, workers: &Workers) -> Factors {
    /// So much of every component is spread over all features, for what the guess does not know.
    const SPREAD: f64 = 1e-4;
    let features = view.features;
    let mut w = Vec::with_capacity(guess.len());
    for row in guess.chunks(features) {
        let total: f64 = row.iter().map(|&w| f64::from(w)).sum();
        let share = (1.0 - SPREAD) / total.max(f64::MIN_POSITIVE);
        w.extend(row.iter().map(|&w| f64::from(w) * share + SPREAD / features as f64));
    }
    updated(view, w, &Updates { iterations: 40, held: 15, sharpness: 1.05 }, simd, workers)
}

/// A model from factors: scaled so that h is about one where a component is on.
pub(super) fn model(
    view: &View,
    factors: &Factors,
    prior: CheckedPrior,
    simd: Simd,
    workers: &Workers,
) -> Model {
    let audible =
        |n: f64, _: f64, loud: f64, total: f64| n > SHARE_OF_LOUD * loud && n > SHARE_OF_COLUMN * total;
    model_on(view, factors, prior, simd, workers, audible)
}

/// The same with a component on where `on` says so, given what it explains of the column, its mean over the columns, what it
/// explains where it is loud, and the counts of the column.
pub(super) fn model_on(
    view: &View,
    factors: &Factors,
    prior: CheckedPrior,
    simd: Simd,
    workers: &Workers,
    on: impl Fn(f64, f64, f64, f64) -> bool,
) -> Model {
    let features = view.features;
    let components = factors.w.len() / features;
    let mut model = Model::empty(simd, features, view.columns.len(), prior);
    model.sizes = view.sizes();
    let mut scales = Vec::with_capacity(components);
    let mut lists = Vec::with_capacity(components);
    for k in 0..components {
        let explained = || factors.h.iter().map(|h| h[k]);
        let (once, twice) = (explained().sum::<f64>(), explained().map(|n| n * n).sum::<f64>());
        let loud = if once > 0.0 { twice / once } else { 0.0 };
        let mean = once / view.columns.len() as f64;
        let on: Vec<usize> = explained()
            .enumerate()
            .filter(|&(t, n)| n > 0.0 && on(n, mean, loud, view.columns[t].total))
            .map(|(t, _)| t)
            .collect();
        scales.push(on.iter().map(|&t| factors.h[t][k]).sum::<f64>() / on.len().max(1) as f64);
        lists.push(on);
    }
    // On average W must be a / b.
    let mean = scales.iter().sum::<f64>() / (components * features) as f64;
    model.set_prior(prior.a(), prior.a() / mean.max(1e-12), prior.c(), prior.c());
    for (k, on) in lists.iter().enumerate() {
        let rate = model.prior.b() + on.len() as f64;
        let row = &factors.w[k * features..][..features];
        model.push(row.iter().map(|w| prior.a() + w * scales[k] * rate), rate);
        for &t in on {
            let part = Part::new(k, prior.c() + factors.h[t][k], model.d_in(&view.columns[t]) + scales[k]);
            model.parts[t].push(part);
        }
    }
    model.settle(workers);
    model.drop_empty();
    model
}

/// A model must explain something: if nothing is left, the mean column, on wherever there are counts.
pub(super) fn at_least_one(model: &mut Model, view: &View, workers: &Workers) {
    if model.components() > 0 {
        return;
    }
    let mut row = vec![0.0; view.features];
    for column in &view.columns {
        column.scatter(workers.simd, &mut row, &column.x, 1.0);
    }
    let on: Vec<usize> = (0..view.columns.len()).filter(|&t| view.columns[t].total > 0.0).collect();
    let (a, b, c) = (model.prior.a(), model.prior.b(), model.prior.c());
    let rate = b + on.len() as f64;
    model.push(row.into_iter().map(|x| a + x), rate);
    model.settle(workers);
    for t in on {
        let part = Part::new(0, c + view.columns[t].total, model.d_in(&view.columns[t]) + model.sum[0]);
        model.parts[t].push(part);
    }
}
