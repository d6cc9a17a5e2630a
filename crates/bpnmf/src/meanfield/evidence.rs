//! How well a model explains the data: the bound of the mean field, and the bound with its correction.
//!
//! The bound prices every parameter as if the counts were already allocated. A parameter that shares its counts with other
//! components is known less well than that, so it costs less. The complete-data curvature of log w_fk is a + sum_t x phi,
//! the observed one about a + sum_t x phi^2; half the log of their ratio is given back, and never more than KL was paid for
//! the parameter. The same for h_kt.

use super::kernels::{add_scaled, kl_gamma, scattered, sum_x_ln};
use super::model::{Model, Part};
use super::single::{add_listed, dot};
use super::view::{BATCH, BLOCK, Column, Ratios, View};
use crate::kernel::{Lanes, Tile, dispatch, flat_mut};
use crate::special::ln;
use crate::workers::Workers;

/// Parameters handled side by side.
const SEVERAL: usize = 8;

/// Half the log of complete over observed information, at most the KL that was paid. The curvatures are without the prior.
#[inline(always)]
fn given_back(prior: f64, once: f64, twice: f64, paid: f64) -> f64 {
    let once = once.max(0.0);
    (0.5 * ln((prior + once) / (prior + twice.clamp(0.0, once)))).min(paid.max(0.0))
}

dispatch! {
    /// KL of q(h) of the parts of a column of the given size, one after the other.
    fn kl_parts [] (model: &Model, parts: &[Part], size: f64, out: &mut Vec<f64>) = kl_parts_of
}

#[inline(always)]
fn kl_parts_of<V: Lanes>(model: &Model, parts: &[Part], size: f64, out: &mut Vec<f64>) {
    let (c, d, constant) = (model.prior.c(), model.prior.d(), model.prior.constant_h());
    out.clear();
    for parts in parts.chunks(SEVERAL) {
        let (mut shapes, mut rates) = ([parts[0].shape; SEVERAL], [parts[0].rate * size; SEVERAL]);
        for (i, part) in parts.iter().enumerate() {
            (shapes[i], rates[i]) = (part.shape, part.rate * size);
        }
        out.extend_from_slice(&kl_gamma(&shapes, &rates, c, d, constant)[..parts.len()]);
    }
}

/// What a column adds to the evidence, and where it is known from.
#[derive(Default)]
struct Scratch {
    field: Vec<f64>,
    buffer: Vec<f64>,
    kl: Vec<f64>,
}

/// The bound with what is given back, and what it is made of.
pub(crate) struct Evidence {
    pub(crate) evidence: f64,
    /// What q(W), q(H) and the mask of every component cost it.
    pub(crate) costs: Vec<f64>,
    /// sum_t x phi^2 of every entry of W.
    pub(crate) squares: Vec<f64>,
}

/// x over the square of what is explained of a column, `field`: in `tiles`, or in `list` if it is compressed.
fn over_squares(column: &Column, field: &[f64], tiles: &mut [Tile], list: &mut Vec<f64>) {
    let square = |x: f64, v: f64| x / (v * v).max(1e-60);
    let squares = column.x.iter().zip(field).map(|(&x, &v)| square(x, v));
    if column.compressed().is_none() {
        tiles.fill(Tile::ZERO);
        flat_mut(tiles).iter_mut().zip(squares).for_each(|(to, value)| *to = value.min(1e30) as f32);
    } else {
        list.clear();
        list.extend(squares);
    }
}

impl Model {
    /// The bound on log p(X, S), but for the factorials of X and a term that no move changes.
    pub(crate) fn bound(&self, view: &View, workers: &Workers) -> f64 {
        let batches = self.parts.chunks(BATCH).zip(view.columns.chunks(BATCH));
        let columns = workers.map(batches, |(block, columns)| {
            let mut scratch = Scratch::default();
            let values = block.iter().zip(columns);
            values.map(|(parts, column)| self.column_share(column, parts, &mut scratch)).sum::<f64>()
        });
        let mut total = columns.iter().sum::<f64>() + self.bound_elsewhere();
        let usage = self.usage();
        let w = workers.map(0..self.components(), |k| if usage[k] > 0 { self.kl_w(k) } else { 0.0 });
        for (&m, w) in usage.iter().zip(w) {
            total += self.mask_term(m) - w;
        }
        total
    }

    /// The share of one column in the bound, without the prior of its mask; `scratch` then holds what it was made of.
    fn column_share(&self, column: &Column, parts: &[Part], scratch: &mut Scratch) -> f64 {
        let Scratch { field, buffer, kl } = scratch;
        self.field(column, parts, field, buffer);
        kl_parts(self.simd, self, parts, column.size, kl);
        let expected: f64 = parts.iter().map(|part| self.sum_in(column, part.k) * part.mean()).sum();
        sum_x_ln(self.simd, &column.x, field) - expected - kl.iter().sum::<f64>()
    }

    /// The share of one column in the evidence, what is given back apart. For counts that scatter it is that of their own
    /// likelihood; the bound has a quadratic approximation in its place.
    fn evidence_share(&self, column: &Column, parts: &[Part], scratch: &mut Scratch) -> f64 {
        let share = self.column_share(column, parts, scratch);
        if column.lacks.is_empty() {
            return share;
        }
        let Scratch { field, buffer, kl } = scratch;
        let mut mean = vec![0.0; column.x.len()];
        let mut expected = 0.0;
        for part in parts {
            let (row, h) = (column.gather(self.mean_row(part.k), buffer), part.mean());
            add_scaled(self.simd, &mut mean, row, h);
            expected += h * self.sum_seen(column, part.k);
        }
        let listed: f64 = mean.iter().sum();
        let data = scattered(self.simd, &column.counts, &mean, field, self.alpha);
        // Entries that are not listed are zeros of so small a rate that they are Poisson counts.
        let unlisted = if column.compressed().is_some() { expected - listed } else { 0.0 };
        data - unlisted.max(0.0) - kl.iter().sum::<f64>()
    }

    /// The sum of E W of a component over the features that were observed in a column, whatever they weigh.
    fn sum_seen(&self, column: &Column, k: usize) -> f64 {
        let row = self.mean_row(k);
        self.sum[k] - column.missing.iter().map(|&f| row[f as usize]).sum::<f64>()
    }

    /// The bound with what is given back.
    pub(crate) fn evidence(&self, view: &View, workers: &Workers) -> f64 {
        self.evidence_in_full(view, workers).evidence
    }

    /// The evidence and what it is made of.
    pub(crate) fn evidence_in_full(&self, view: &View, workers: &Workers) -> Evidence {
        let mut costs = vec![0.0; self.components()];
        let mut squares = Ratios::new(view);
        let mut twice = vec![0.0; self.shape.len()];
        let mut total = self.bound_elsewhere();
        for (block, columns) in self.parts.chunks(BLOCK).zip(view.columns.chunks(BLOCK)) {
            let batches = block.chunks(BATCH).zip(columns.chunks(BATCH)).zip(squares.batches());
            let values = workers.map(batches, |((block, columns), squares)| {
                let mut scratch = Scratch::default();
                let mut costs = Vec::new();
                let all = block.iter().zip(columns).zip(squares);
                let share = all
                    .map(|((parts, column), (tiles, list))| {
                        let share = self.evidence_share(column, parts, &mut scratch);
                        let back = self.given_back_for_h(column, parts, &mut scratch, tiles, list);
                        costs.extend(parts.iter().zip(&scratch.kl).map(|(part, cost)| (part.k, *cost)));
                        share + back
                    })
                    .sum::<f64>();
                (share, costs)
            });
            total += values.iter().map(|(share, _)| share).sum::<f64>();
            values.iter().flat_map(|(_, costs)| costs).for_each(|(k, cost)| costs[*k] += cost);
            self.add_squares(block, columns, &squares, &mut twice, workers);
        }
        self.settle_squares(&mut twice);
        let usage = self.usage();
        let w =
            workers.map(0..self.components(), |k| if usage[k] > 0 { self.cost_of_w(k, &twice) } else { 0.0 });
        for ((&m, w), cost) in usage.iter().zip(w).zip(&mut costs) {
            total += self.mask_term(m) - w;
            *cost += w - self.mask_term(m);
        }
        Evidence { evidence: total, costs, squares: twice }
    }

    /// x over the squares of what is explained by a block of columns, each times the square of its exp E log h, is added to
    /// `twice`.
    fn add_squares(
        &self,
        block: &[Vec<Part>],
        columns: &[Column],
        squares: &Ratios,
        twice: &mut [f64],
        workers: &Workers,
    ) {
        let mut lists: Vec<[Vec<(usize, f32)>; 2]> = vec![Default::default(); self.components()];
        for (t, parts) in block.iter().enumerate() {
            let compressed = usize::from(columns[t].compressed().is_some());
            let square = |part: &Part| (part.geometric * part.geometric) as f32;
            parts.iter().for_each(|part| lists[part.k][compressed].push((t, square(part))));
        }
        workers.for_each(twice.chunks_mut(self.features).zip(&lists), |(twice, [dense, compressed]), _| {
            if !dense.is_empty() {
                add_listed(self.simd, &squares.tiles, squares.wide, dense, twice);
            }
            for &(t, h) in compressed {
                columns[t].scatter(self.simd, twice, &squares.lists[t], f64::from(h));
            }
        });
    }

    /// From the sums of [`Self::add_squares`] to sum x phi^2, over all columns.
    fn settle_squares(&self, twice: &mut [f64]) {
        twice.iter_mut().zip(&self.geometric).for_each(|(twice, g)| *twice *= g * g);
        if let Some(elsewhere) = &self.elsewhere {
            twice.iter_mut().zip(&elsewhere.squares).for_each(|(twice, squares)| *twice += squares);
        }
    }

    /// sum x phi and sum x phi^2 of every entry of W over the columns at hand.
    pub(crate) fn claims_and_squares(&mut self, view: &View, workers: &Workers) -> (Vec<f64>, Vec<f64>) {
        let mut claims = self.claim(view, 0, &mut Ratios::new(view), workers);
        claims.iter_mut().zip(&self.geometric).for_each(|(claims, g)| *claims *= g);
        let mut squares = Ratios::new(view);
        let mut twice = vec![0.0; self.shape.len()];
        for (block, columns) in self.parts.chunks(BLOCK).zip(view.columns.chunks(BLOCK)) {
            let batches = block.chunks(BATCH).zip(columns.chunks(BATCH)).zip(squares.batches());
            workers.for_each(batches, |((block, columns), squares), _| {
                let (mut field, mut buffer) = (Vec::new(), Vec::new());
                for ((parts, column), (tiles, list)) in block.iter().zip(columns).zip(squares) {
                    self.field(column, parts, &mut field, &mut buffer);
                    over_squares(column, &field, tiles, list);
                }
            });
            self.add_squares(block, columns, &squares, &mut twice, workers);
        }
        self.settle_squares(&mut twice);
        (claims, twice)
    }

    /// What is given back for the h of a column; `scratch` then holds what each of them costs. x over the square of what is
    /// explained is left in `tiles` or in `list`.
    fn given_back_for_h(
        &self,
        column: &Column,
        parts: &[Part],
        scratch: &mut Scratch,
        tiles: &mut [Tile],
        list: &mut Vec<f64>,
    ) -> f64 {
        let Scratch { field, buffer, kl } = scratch;
        let dense = column.compressed().is_none();
        over_squares(column, field, tiles, list);
        let wide = tiles.len();
        let mut back = 0.0;
        for (part, paid) in parts.iter().zip(kl.iter_mut()) {
            let sum = if dense {
                dot(self.simd, tiles, &self.squares()[part.k * wide..][..wide])
            } else {
                let row = column.gather(self.row(part.k), buffer);
                row.iter().zip(list.iter()).map(|(w, square)| w * w * square).sum()
            };
            let twice = part.geometric * part.geometric * sum;
            let own = given_back(self.prior.c(), part.shape - self.prior.c(), twice, *paid);
            *paid -= own;
            back += own;
        }
        back
    }

    /// See [`cost_of_row`]. `twice` is sum_t x phi^2 of every entry.
    fn cost_of_w(&self, k: usize, twice: &[f64]) -> f64 {
        let at = k * self.features..(k + 1) * self.features;
        let rates: Vec<f64> = self.rates(k).collect();
        cost_of_row(self.simd, self, self.shapes(k), &rates, &twice[at])
    }
}

dispatch! {
    /// KL of a row of q(W) less what is given back; `twice` is sum_t x phi^2 of every entry.
    fn cost_of_row [] (model: &Model, shapes: &[f64], rates: &[f64], twice: &[f64]) -> f64 = cost_of_row_of
}

#[inline(always)]
fn cost_of_row_of<V: Lanes>(model: &Model, shapes: &[f64], rates: &[f64], twice: &[f64]) -> f64 {
    let (a, b, constant) = (model.prior.a(), model.prior.b(), model.prior.constant_w());
    let mut cost = 0.0;
    for start in (0..shapes.len()).step_by(SEVERAL) {
        let n = SEVERAL.min(shapes.len() - start);
        let (mut shape, mut rate, mut square) =
            ([shapes[start]; SEVERAL], [rates[start]; SEVERAL], [0.0; SEVERAL]);
        shape[..n].copy_from_slice(&shapes[start..][..n]);
        rate[..n].copy_from_slice(&rates[start..][..n]);
        square[..n].copy_from_slice(&twice[start..][..n]);
        let paid = kl_gamma(&shape, &rate, a, b, constant);
        let mut net = [0.0; SEVERAL];
        for i in 0..SEVERAL {
            net[i] = paid[i] - given_back(a, shape[i] - a, square[i], paid[i]);
        }
        cost += net[..n].iter().sum::<f64>();
    }
    cost
}
