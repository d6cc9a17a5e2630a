//! A model with as many components as singular values show, where the bound of the mean field wants fewer: plain KL-NMF with
//! too many of them, and the one whose content the others can take over best goes, until so many are left.

use super::eliminate::{SIDES, Side, mixture};
use super::start;
use crate::kernel::Simd;
use crate::meanfield::model::Model;
use crate::meanfield::nmf::{Factors, Updates, divergence, updated_from};
use crate::meanfield::view::View;
use crate::prior::CheckedPrior;
use crate::random::Key;
use crate::workers::Workers;

/// The NMF starts with this many times the components, and with so many more at least.
const TIMES: usize = 2;
const MORE: usize = 6;

/// Multiplicative updates at the start and at the end, and after a deletion before it is judged.
const UPDATES: usize = 50;
const JUDGED_AFTER: usize = 5;

/// Factors without a component, its content given to the others.
fn without(factors: &Factors, features: usize, k: usize, side: Side, workers: &Workers) -> Factors {
    let components = factors.w.len() / features;
    let others: Vec<usize> = (0..components).filter(|&j| j != k).collect();
    let own = &factors.w[k * features..(k + 1) * features];
    let mut w: Vec<f64> =
        others.iter().flat_map(|&j| &factors.w[j * features..(j + 1) * features]).copied().collect();
    let mut h: Vec<Vec<f64>> = factors.h.iter().map(|h| others.iter().map(|&j| h[j]).collect()).collect();
    match side {
        Side::Dictionary => {
            let (takers, _) = mixture(own.to_vec(), w.clone(), workers);
            for (h, before) in h.iter_mut().zip(&factors.h) {
                h.iter_mut().zip(&takers).for_each(|(h, share)| *h += share * before[k]);
            }
        }
        Side::Activations => {
            let rows = others.iter().flat_map(|&j| factors.h.iter().map(move |h| h[j])).collect();
            let (takers, _) = mixture(factors.h.iter().map(|h| h[k]).collect(), rows, workers);
            for ((row, share), j) in w.chunks_mut(features).zip(&takers).zip(0..) {
                row.iter_mut().zip(own).for_each(|(w, own)| *w = (*w + share * own) / (1.0 + share));
                h.iter_mut().for_each(|h: &mut Vec<f64>| h[j] *= 1.0 + share);
            }
        }
    }
    Factors { w, h }
}

/// A model with `wanted` components.
pub(super) fn model(
    view: &View,
    wanted: usize,
    prior: CheckedPrior,
    key: Key,
    simd: Simd,
    workers: &Workers,
) -> Model {
    let features = view.features;
    let updates = |iterations| Updates { iterations, held: 0, sharpness: 1.0 };
    let many = (TIMES * wanted).max(wanted + MORE).min(features).min(view.columns.len());
    let mut factors = start::factorise(view, many, UPDATES, key, simd, workers);
    while factors.w.len() > wanted * features {
        let candidates = (0..factors.w.len() / features).flat_map(|k| SIDES.map(|side| (k, side)));
        let judged = workers.map(candidates, |(k, side)| {
            let alone = Workers::serial().with_simd(simd);
            let less = without(&factors, features, k, side, &alone);
            let less = updated_from(view, less, &updates(JUDGED_AFTER), simd, &alone);
            (divergence(view, &less, &alone), less)
        });
        let best = judged.into_iter().min_by(|x, y| x.0.total_cmp(&y.0)).expect("there are candidates");
        factors = best.1;
    }
    let factors = updated_from(view, factors, &updates(UPDATES), simd, workers);
    start::model_on(view, &factors, prior, simd, workers, |n, mean, _, _| n > 0.05 * mean)
}
