//! The shapes and scales of the prior, learned from q.

use super::model::Model;
use crate::special::{digamma, ln};
use crate::workers::Workers;

/// The range of a, the shape of W.
pub(crate) const A: (f64, f64) = (0.03, 1000.0);
/// The range of c, the shape of H.
pub(crate) const C: (f64, f64) = (0.1, 1000.0);

/// The shape of a gamma distribution for which log E - E log is `gap`.
pub(crate) fn shape_of(gap: f64, (least, most): (f64, f64)) -> f64 {
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

/// Scales every component so that its h, relative to the sizes of the columns, have mean one where it is on.
fn normalise(model: &mut Model, workers: &Workers) {
    let mut scales = model.relative_means();
    for (k, usage) in model.usage().into_iter().enumerate() {
        scales[k] = if usage > 0 { scales[k] / usage as f64 } else { 1.0 };
    }
    model.scale(&scales);
    model.settle(workers);
}

/// Learns a, b and c = d from q. Every component is measured against its own mean: loud and soft ones count alike.
pub(crate) fn learn(model: &mut Model, workers: &Workers) {
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
    for (t, parts) in model.parts.iter().enumerate() {
        let size = model.size(t);
        for part in parts {
            gap += part.mean() / size - 1.0 - ln(part.geometric / size);
            sites += 1.0;
        }
    }
    let c = shape_of(gap / f64::max(sites, 1.0), C);
    model.set_prior(a, a / mean, c, c);
}

/// The best b given all else: the one with which the prior has the mean that W has. When components come or go it changes by
/// their number, and with narrow priors that is most of what they gain or lose.
pub(crate) fn learn_scale(model: &mut Model) {
    let all: f64 = model.sum.iter().sum();
    let entries = (model.features * model.components()) as f64;
    let prior = &model.prior;
    let (a, c, d) = (prior.a(), prior.c(), prior.d());
    if all > 0.0 {
        model.set_prior(a, a * entries / all, c, d);
    }
}
