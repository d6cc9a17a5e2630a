//! One column explained anew, greedily: add the best component, refresh the others, remove the worst, until nothing helps.

use super::columns::{Explained, ascend_column};
use super::kernels::{TINY, fit_strength, gain, loss};
use super::model::{Model, Part, geometric, insert};
use super::single;
use super::view::Column;
use crate::kernel::Tile;
use crate::special::ln;

/// Memory of a pursuit.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) explained: Explained,
    base: Vec<f64>,
    pub(super) row: Vec<f64>,
    /// The base in single precision, for a column with all features.
    base_tiles: Vec<Tile>,
    products: Vec<f64>,
    /// The most each component can gain, and which it is.
    candidates: Vec<(f64, usize)>,
}

/// The most additions and removals in a column.
const MOST_STEPS: usize = 24;

/// Rounds of coordinate ascent before the first addition or removal.
const FIRST_TIMES: usize = 3;

/// Rounds of fitting q(h) of a component that may be added.
const FIT_ROUNDS: usize = 5;

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
    for step in 0..MOST_STEPS {
        let times = if step == 0 { FIRST_TIMES } else { 2 };
        ascend_column(model.simd, model, column, parts, times, &mut buffers.explained);
        if let Some(part) = best_addition(model, column, parts, log_odds, banned, buffers) {
            insert(parts, part);
        } else if let Some(at) = best_removal(model, column, parts, log_odds, buffers) {
            parts.remove(at);
        } else {
            break;
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
    let Buffers { explained: Explained { field, ratio, .. }, base, row, base_tiles, products, candidates } =
        buffers;
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
    let dense = column.compressed().is_none();
    if dense && !candidates.is_empty() {
        single::tile(base, single::TINY, base_tiles);
    }
    let (mut best, mut most) = (None, 0.0);
    for &(bound, k) in candidates.iter().take(MOST_CANDIDATES) {
        if bound <= most && !parts.is_empty() {
            break;
        }
        let (row, sum) = (column.gather(model.row(k), row), model.sum_in(column, k));
        let rate = d + sum;
        let (shape, geometric) = if dense {
            let wide = base_tiles.len();
            let row = &model.single()[k * wide..][..wide];
            single::fit_strength(model.simd, &column.tiles, base_tiles, row, c, rate, start, FIT_ROUNDS)
        } else {
            fit_strength(model.simd, &column.x, base, row, c, rate, start, FIT_ROUNDS)
        };
        let part = Part { k, shape, rate, geometric };
        let value = log_odds[k] - sum * part.mean() - model.kl_h(&part)
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
        let saved = model.cost(column, part) - log_odds[part.k];
        // log(1 - s) <= -s - s^2 / 2, and the mean of squares is at least the square of the mean.
        let claimed = 0.9 * (part.shape - model.prior.c()).max(0.0);
        if saved - claimed - 0.5 * claimed * claimed / column.total < most {
            continue;
        }
        let row = column.gather(model.row(part.k), &mut buffers.row);
        let value = saved + loss(model.simd, &column.x, &buffers.explained.field, row, part.geometric);
        if value > most {
            (best, most) = (Some(at), value);
        }
    }
    best
}
