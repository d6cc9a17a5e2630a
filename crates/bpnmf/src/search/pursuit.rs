//! One column explained anew, greedily: add the best component, refresh the others, remove the worst, until nothing helps.

use crate::kernel::Tile;
use crate::meanfield::columns::{Explained, ascend_column, explain_dense};
use crate::meanfield::kernels::{TINY, fit_strength, gain, loss};
use crate::meanfield::model::{Model, Part, geometric, insert};
use crate::meanfield::single;
use crate::meanfield::view::Column;
use crate::special::ln;

/// Memory of a pursuit.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) explained: Explained,
    base: Vec<f64>,
    pub(super) row: Vec<f64>,
    /// What is explained of a column in single precision, and x over that.
    field: Vec<Tile>,
    ratio: Vec<Tile>,
    products: Vec<f64>,
    /// The sum of E W of every component in the column, if not all of it counts in full.
    sums: Vec<f64>,
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

/// What an addition or a removal must gain, in nats: more than the rounding of single precision.
const LEAST_GAIN: f64 = 0.01;

/// The most counts of a column in single precision: its sums are off by less than [`LEAST_GAIN`] or so.
const MOST_IN_SINGLE: f64 = 1e5;

/// Whether a column is read in single precision.
fn in_single(model: &Model, column: &Column) -> bool {
    column.has_all(model.features) && column.total <= MOST_IN_SINGLE
}

/// Changes `parts` to explain the column better, the component `banned` staying off.
pub(super) fn pursue(
    model: &Model,
    column: &Column,
    parts: &mut Vec<Part>,
    log_odds: &[f64],
    banned: Option<usize>,
    buffers: &mut Buffers,
) {
    buffers.sums.clear();
    if !column.is_whole() {
        buffers.sums.extend((0..model.components()).map(|k| model.sum_in(column, k)));
    }
    for step in 0..MOST_STEPS {
        let times = if step == 0 { FIRST_TIMES } else { 2 };
        if in_single(model, column) {
            let Buffers { field, ratio, .. } = buffers;
            field.resize(column.tiles.len(), Tile::ZERO);
            ratio.resize(column.tiles.len(), Tile::ZERO);
            explain_dense(model.simd, model, column, parts, times, field, ratio);
        } else {
            ascend_column(model.simd, model, column, parts, times, &mut buffers.explained);
        }
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
    let (c, d) = (model.prior.c(), model.d_in(column));
    let Buffers { explained, base, row, field, ratio, products, sums, candidates } = buffers;
    let sums = if sums.is_empty() { &model.sum } else { &*sums };
    let single = in_single(model, column);
    if single {
        products.resize(model.components(), 0.0);
        single::products(model.simd, model.single(), ratio, products);
    } else {
        base.clear();
        base.extend(explained.field.iter().map(|v| v + TINY));
        model.products(column, &explained.ratio, products);
    }
    let start = geometric(c, d);
    // What no strength of a component can exceed: Jensen's inequality with the best h.
    let n = column.total;
    candidates.clear();
    for k in 0..model.components() {
        if Some(k) == banned || parts.binary_search_by_key(&k, |part| part.k).is_ok() {
            continue;
        }
        let slope = products[k] / sums[k];
        // It is no more than half of n (slope - 1)^2 / slope, which most do not reach.
        let roughly = 0.5 * n * (slope - 1.0) * (slope - 1.0).max(0.0) / slope;
        let bound = match roughly + log_odds[k] > 0.0 || parts.is_empty() {
            true if slope > 1.0 => n * (ln(slope) - 1.0 + 1.0 / slope) + log_odds[k],
            _ => log_odds[k],
        };
        if bound > 0.0 || parts.is_empty() {
            candidates.push((bound, k));
        }
    }
    candidates.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
    let (mut best, mut most) = (None, LEAST_GAIN);
    for &(bound, k) in candidates.iter().take(MOST_CANDIDATES) {
        if bound <= most && !parts.is_empty() {
            break;
        }
        let (simd, sum) = (model.simd, sums[k]);
        let rate = d + sum;
        let (shape, geometric, gained) = if single {
            let (x, row) = (&column.tiles, model.single_row(k));
            let (shape, h) = single::fit_strength(simd, x, field, row, c, rate, start, FIT_ROUNDS);
            (shape, h, single::gain(simd, x, field, row, h))
        } else {
            let row = column.gather(model.row(k), row);
            let (shape, h) = fit_strength(simd, &column.x, base, row, c, rate, start, FIT_ROUNDS);
            (shape, h, gain(simd, &column.x, base, row, h))
        };
        let part = Part { k, shape, rate, geometric };
        let value = log_odds[k] - sum * part.mean() - model.kl_h(column, &part) + gained;
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
    let single = in_single(model, column);
    let (mut best, mut most) = (None, LEAST_GAIN);
    for (at, part) in parts.iter().enumerate() {
        let saved = model.cost(column, part) - log_odds[part.k];
        // log(1 - s) <= -s - s^2 / 2, and the mean of squares is at least the square of the mean.
        let claimed = 0.9 * (part.shape - model.prior.c()).max(0.0);
        if saved - claimed - 0.5 * claimed * claimed / column.total < most {
            continue;
        }
        let (simd, h) = (model.simd, part.geometric);
        let lost = if single {
            single::loss(simd, &column.tiles, &buffers.field, model.single_row(part.k), h)
        } else {
            let row = column.gather(model.row(part.k), &mut buffers.row);
            loss(simd, &column.x, &buffers.explained.field, row, h)
        };
        let value = saved + lost;
        if value > most {
            (best, most) = (Some(at), value);
        }
    }
    best
}
