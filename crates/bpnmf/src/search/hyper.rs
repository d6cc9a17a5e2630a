//! The shapes and scales of the prior, learned: from q while the search goes on, from draws of the chain at its end.

use super::model::Model;
use crate::infer::State;
use crate::special::{digamma, ln};
use crate::workers::Workers;

/// The range of a, the shape of W.
const A: (f64, f64) = (0.03, 10.0);
/// The range of c, the shape of H.
const C: (f64, f64) = (0.2, 20.0);

/// The shape of a gamma distribution for which log E - E log is `gap`.
fn shape_of(gap: f64, (least, most): (f64, f64)) -> f64 {
    let (mut low, mut high) = (least, most);
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if ln(middle) - digamma(middle) > gap {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low * high).sqrt()
}

/// Scales every component so that its h have mean one where it is on.
fn normalise(model: &mut Model, workers: &Workers) {
    let mut scales = vec![0.0; model.components()];
    for part in model.parts.iter().flatten() {
        scales[part.k] += part.mean();
    }
    for (k, usage) in model.usage().into_iter().enumerate() {
        scales[k] = if usage > 0 { scales[k] / usage as f64 } else { 1.0 };
        model.rate[k] /= scales[k];
        let unseen = model.unseen.iter_mut().skip(k * model.features).take(model.features);
        unseen.for_each(|unseen| *unseen /= scales[k]);
    }
    for part in model.parts.iter_mut().flatten() {
        part.rate *= scales[part.k];
        part.geometric /= scales[part.k];
    }
    model.settle(workers);
}

/// Learns a, b and c = d from q. Every component is measured against its own mean: loud and soft ones count alike.
pub(super) fn learn(model: &mut Model, workers: &Workers) {
    normalise(model, workers);
    let (features, components) = (model.features as f64, model.components() as f64);
    let (mut gap, mut mean) = (0.0, 0.0);
    for k in 0..model.components() {
        let average = model.sum[k] / features;
        gap += ln(average) - model.row(k).iter().map(|g| ln(*g)).sum::<f64>() / features;
        mean += average / components;
    }
    let a = shape_of(gap / components, A);
    let (mut gap, mut sites) = (0.0, 0.0);
    for part in model.parts.iter().flatten() {
        gap += part.mean() - 1.0 - ln(part.geometric);
        sites += 1.0;
    }
    let c = shape_of(gap / f64::max(sites, 1.0), C);
    model.set_prior(a, a / mean, c, c);
}

/// (a, b, c, d) from one draw of W, H and S. Unlike q with its point mask, a draw has weak activations in it, too.
pub(super) fn from_draw(state: &State, observations: usize) -> Option<[f64; 4]> {
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
