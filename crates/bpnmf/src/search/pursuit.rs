//! One column explained anew, greedily: add the best component, refresh the others, remove the worst, until nothing helps.

use super::kernels::{TINY, add_scaled, fit_strength, gain, loss, ratios, without};
use super::model::{Model, Part, geometric, insert, kl_gamma};
use super::view::Column;
use crate::special::ln;

/// Memory of a pursuit.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) field: Vec<f64>,
    pub(super) base: Vec<f64>,
    ratio: Vec<f64>,
    pub(super) row: Vec<f64>,
    products: Vec<f64>,
    /// The most each component can gain, and which it is.
    candidates: Vec<(f64, usize)>,
}

/// The most additions and removals in a column.
const MOST_STEPS: usize = 24;

/// The most components tried for an addition, the most promising first.
const MOST_CANDIDATES: usize = 5;

/// Changes `parts` to explain the column better, the component `banned` staying off.
pub(super) fn pursue(
    model: &Model,
    column: &Column,
    parts: &mut Vec<Part>,
    log_odds: &[f64],
    banned: Option<usize>,
    buffers: &mut Buffers,
) {
    model.field(column, parts, &mut buffers.field, &mut buffers.row);
    for step in 0..MOST_STEPS {
        refresh(model, column, parts, if step == 0 { 2 } else { 1 }, buffers);
        if let Some(part) = best_addition(model, column, parts, log_odds, banned, buffers) {
            let row = column.gather(model.row(part.k), &mut buffers.row);
            add_scaled(model.simd, &mut buffers.field, row, part.geometric);
            insert(parts, part);
        } else if let Some(at) = best_removal(model, column, parts, log_odds, buffers) {
            parts.remove(at);
            model.field(column, parts, &mut buffers.field, &mut buffers.row);
        } else {
            break;
        }
    }
}

/// The best q(h) of component `k` on top of `base`, from exp E log h = `start`.
fn fitted(
    model: &Model,
    column: &Column,
    base: &[f64],
    row: &[f64],
    k: usize,
    start: f64,
    rounds: usize,
) -> Part {
    let rate = model.prior.d() + model.sum_in(column, k);
    let (shape, geometric) =
        fit_strength(model.simd, &column.x, base, row, model.prior.c(), rate, start, rounds);
    Part { k, shape, rate, geometric }
}

/// Fits every q(h) that is on to the others, `rounds` times.
fn refresh(model: &Model, column: &Column, parts: &mut [Part], rounds: usize, buffers: &mut Buffers) {
    for _ in 0..rounds {
        for part in parts.iter_mut() {
            let row = column.gather(model.row(part.k), &mut buffers.row);
            without(model.simd, &buffers.field, row, part.geometric, &mut buffers.base);
            *part = fitted(model, column, &buffers.base, row, part.k, part.geometric, 2);
            core::mem::swap(&mut buffers.field, &mut buffers.base);
            add_scaled(model.simd, &mut buffers.field, row, part.geometric);
        }
    }
}

fn best_addition(
    model: &Model,
    column: &Column,
    parts: &[Part],
    log_odds: &[f64],
    banned: Option<usize>,
    buffers: &mut Buffers,
) -> Option<Part> {
    let (c, d) = (model.prior.c(), model.prior.d());
    let Buffers { field, base, ratio, row, products, candidates } = buffers;
    ratios(model.simd, &column.x, field, ratio);
    base.clear();
    base.extend(field.iter().map(|v| v + TINY));
    let start = geometric(c, d);
    // What no strength of a component can exceed: Jensen's inequality with the best h.
    let n = column.total;
    candidates.clear();
    model.products(column, ratio, products);
    for k in 0..model.components() {
        if Some(k) == banned || parts.binary_search_by_key(&k, |part| part.k).is_ok() {
            continue;
        }
        let slope = products[k] / model.sum_in(column, k);
        let bound = if slope > 1.0 { n * (ln(slope) - 1.0 + 1.0 / slope) } else { 0.0 } + log_odds[k];
        if bound > 0.0 || parts.is_empty() {
            candidates.push((bound, k));
        }
    }
    candidates.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
    let (mut best, mut most) = (None, 0.0);
    for &(bound, k) in candidates.iter().take(MOST_CANDIDATES) {
        if bound <= most && !parts.is_empty() {
            break;
        }
        let (row, sum) = (column.gather(model.row(k), row), model.sum_in(column, k));
        let part = fitted(model, column, base, row, k, start, 5);
        let value = log_odds[k] - sum * part.mean() - kl_gamma(part.shape, part.rate, c, d)
            + gain(model.simd, &column.x, base, row, part.geometric);
        if value > most {
            (best, most) = (Some(part), value);
        }
    }
    best
}

fn best_removal(
    model: &Model,
    column: &Column,
    parts: &[Part],
    log_odds: &[f64],
    buffers: &mut Buffers,
) -> Option<usize> {
    // A column with counts keeps its last component.
    if parts.len() < 2 && column.total > 0.0 {
        return None;
    }
    let (mut best, mut most) = (None, 1e-6);
    for (at, part) in parts.iter().enumerate() {
        let row = column.gather(model.row(part.k), &mut buffers.row);
        let value = model.cost(column, part) - log_odds[part.k]
            + loss(model.simd, &column.x, &buffers.field, row, part.geometric);
        if value > most {
            (best, most) = (Some(at), value);
        }
    }
    best
}
