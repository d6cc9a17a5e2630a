//! Components taken out of each other. A component may hold a share of another: wherever it is on, the other seems to be on
//! as well. The evidence is better when W of the one is without W of the other and the other is on in these columns, but no
//! coordinate ascent leads there.

use super::mask::remask_columns;
use crate::meanfield::model::{Model, Part, insert};
use crate::meanfield::view::View;
use crate::workers::Workers;

/// The share of W_j in W_k is the quantile of W_k / W_j below which this share of W_j lies.
const QUANTILE: f64 = 0.25;

/// The least share of W_k that is worth it, and what is left of every entry of W_k.
const LEAST_SHARE: f64 = 0.03;
const LEFT: f64 = 0.02;

/// The most pairs that are tried, those with the most counts first; fewer where every step sees many entries.
const MOST_PAIRS: usize = 100;

/// How much of W_j is in W_k.
fn contained(model: &Model, k: usize, j: usize) -> f64 {
    let mut ratios: Vec<(f64, f64)> =
        model.mean_row(k).iter().zip(model.mean_row(j)).map(|(own, other)| (own / other, *other)).collect();
    ratios.sort_by(|x, y| x.0.total_cmp(&y.0));
    let mut left = QUANTILE * model.sum[j];
    for (ratio, other) in ratios {
        left -= other;
        if left <= 0.0 {
            return ratio;
        }
    }
    0.0
}

/// The model with `share` of W_j taken out of W_k, and j on where k is.
fn without(model: &Model, view: &View, k: usize, j: usize, workers: &Workers) -> Model {
    let (features, share) = (model.features, contained(model, k, j));
    let mut after = model.clone();
    let rates: Vec<f64> = model.rates(k).collect();
    let rows = model.mean_row(k).iter().zip(model.mean_row(j)).zip(&rates);
    let shapes = after.shape[k * features..][..features].iter_mut();
    for (shape, ((own, other), rate)) in shapes.zip(rows) {
        *shape = model.prior.a() + (own - share * other).max(LEFT * own) * rate;
    }
    let columns = model.columns_of(k);
    for (t, part) in &columns {
        let (column, given) = (&view.columns[*t], share * part.mean());
        let parts = &mut after.parts[*t];
        match parts.binary_search_by_key(&j, |part| part.k) {
            Ok(at) => {
                let (shape, rate) = (parts[at].shape, parts[at].rate);
                parts[at] = Part::new(j, shape + given * rate, rate);
            }
            Err(_) => {
                let rate = model.d_in(column) + model.sum_in(column, j);
                insert(parts, Part::new(j, model.prior.c() + given * rate, rate));
            }
        }
    }
    after.settle(workers);
    after.ascend(view, 4, workers);
    let touched: Vec<usize> = columns.iter().map(|(t, _)| *t).collect();
    remask_columns(&mut after, view, &touched, workers);
    after.ascend(view, 2, workers);
    after
}

/// Components are taken out of each other as long as the evidence gains. How many were.
pub(super) fn unmix(model: &mut Model, view: &View, workers: &Workers) -> usize {
    let mut counts = vec![0.0; model.components()];
    model.parts.iter().flatten().for_each(|part| counts[part.k] += part.mean() * model.sum[part.k]);
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for k in 0..model.components() {
        for j in (0..model.components()).filter(|&j| j != k) {
            let share = contained(model, k, j) * model.sum[j] / model.sum[k];
            if share > LEAST_SHARE {
                pairs.push((share * counts[k], k, j));
            }
        }
    }
    pairs.sort_by(|x, y| y.0.total_cmp(&x.0).then((x.1, x.2).cmp(&(y.1, y.2))));
    pairs.truncate(view.effort(MOST_PAIRS));
    let mut evidence = model.evidence(view, workers);
    let least = view.tolerance();
    let mut looks = workers.map(pairs.into_iter(), |(_, k, j)| {
        let alone = Workers::serial().with_simd(workers.simd);
        (without(model, view, k, j, &alone).evidence(view, &alone), k, j)
    });
    looks.retain(|(after, ..)| *after > evidence + least);
    looks.sort_by(|x, y| y.0.total_cmp(&x.0).then((x.1, x.2).cmp(&(y.1, y.2))));
    let mut taken = 0;
    for (_, k, j) in looks {
        let after = without(model, view, k, j, workers);
        let there = after.evidence(view, workers);
        if there > evidence + least && after.usage().iter().all(|m| *m > 0) {
            (*model, evidence, taken) = (after, there, taken + 1);
        }
    }
    taken
}
