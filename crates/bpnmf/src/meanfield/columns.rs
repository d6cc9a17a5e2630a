//! One column under a model, compiled for the instructions of the machine: what its parts explain, and q(h) brought up to
//! date.

use super::kernels::{add_rows_of, dot_of, ratios_of};
use super::model::{Model, Part, geometric};
use super::single;
use super::turned::{Lined, explain_of, gather_of};
use super::view::Column;
use crate::kernel::doubles::Doubles;
use crate::kernel::{LANES, Lanes, Tile, dispatch};
use crate::special::exp_digammas;

/// A column as it is explained.
#[derive(Debug, Default)]
pub(crate) struct Explained {
    /// What its parts explain of every entry.
    pub(crate) field: Vec<f64>,
    /// x over that.
    pub(crate) ratio: Vec<f64>,
    /// Scratch: numbers of the parts by lines, and the ratio in single precision.
    lined: Lined,
    tiles: Vec<Tile>,
}

/// Several at a time.
const SEVERAL: usize = 8;

/// Brings exp E log h of all parts up to date.
#[inline(always)]
fn refresh_geometric(parts: &mut [Part]) {
    for parts in parts.chunks_mut(SEVERAL) {
        let mut shape = [parts[0].shape; SEVERAL];
        for (i, part) in parts.iter().enumerate() {
            shape[i] = part.shape;
        }
        let out = exp_digammas(&shape);
        parts.iter_mut().zip(out).for_each(|(part, out)| part.geometric = out / part.rate);
    }
}

/// exp E log of many Gamma variables, never 0.
#[inline(always)]
fn geometric_row_of<V: Lanes>(shapes: &[f64], rate: f64, out: &mut [f64]) {
    for (out, shape) in out.iter_mut().zip(shapes) {
        *out = geometric(*shape, rate).max(1e-300);
    }
}

/// The same, each with its rate.
#[inline(always)]
fn geometric_row_of_rates_of<V: Lanes>(shapes: &[f64], rates: &[f64], out: &mut [f64]) {
    for ((out, shape), rate) in out.iter_mut().zip(shapes).zip(rates) {
        *out = geometric(*shape, *rate).max(1e-300);
    }
}

dispatch! {
    /// exp E log of Gamma variables, each with its rate, never 0.
    pub(crate) fn geometric_row_of_rates [] (shapes: &[f64], rates: &[f64], out: &mut [f64]) = geometric_row_of_rates_of
}
dispatch! {
    /// exp E log of Gamma variables of one rate, never 0.
    pub(crate) fn geometric_row [] (shapes: &[f64], rate: f64, out: &mut [f64]) = geometric_row_of
}
dispatch! {
    /// See [`Model::field`].
    pub(crate) fn field [] (model: &Model, column: &Column<'_>, parts: &[Part], field: &mut Vec<f64>) = field_of
}
dispatch! {
    /// The mean of every entry of a column under its parts. `buffer` is memory.
    pub(crate) fn means [] (model: &Model, column: &Column<'_>, parts: &[Part], means: &mut Vec<f64>, buffer: &mut Vec<f64>) = means_of
}
dispatch! {
    /// See [`Model::products`].
    pub(crate) fn products [] (model: &Model, column: &Column<'_>, ratio: &[f64], out: &mut [f64]) = products_of
}
dispatch! {
    /// Coordinate ascent of q(h) of one column with all features, `times` over; then x over what is explained.
    pub(crate) fn ascend_dense [] (model: &Model, column: &Column<'_>, parts: &mut [Part], times: usize, ratio: &mut [Tile]) = ascend_dense_of
}
dispatch! {
    /// The same; then what is explained and a little more, and x over it.
    pub(crate) fn explain_dense [] (model: &Model, column: &Column<'_>, parts: &mut [Part], times: usize, field: &mut [Tile], ratio: &mut [Tile]) = explain_dense_of
}
dispatch! {
    /// Coordinate ascent of q(h) of one column, `times` over; then what is explained, and x over it.
    pub(crate) fn ascend_column [] (model: &Model, column: &Column<'_>, parts: &mut [Part], times: usize, explained: &mut Explained) = ascend_column_of
}

#[inline(always)]
fn products_of<V: Lanes>(model: &Model, column: &Column<'_>, ratio: &[f64], out: &mut [f64]) {
    match column.compressed() {
        Some(at) => {
            let mut lined = Lined::default();
            lined.set((0..out.len()).map(|k| (k, 0.0)));
            gather_of::<V>(model.turned(), at, ratio, &mut lined);
            let mut place = 0;
            out.iter_mut().enumerate().for_each(|(k, out)| *out = lined.next(k, &mut place));
        }
        None => {
            for (row, out) in model.geometric.chunks_exact(model.features).zip(out) {
                *out = dot_of::<V>(ratio, row);
            }
        }
    }
}

#[inline(always)]
fn field_of<V: Lanes>(model: &Model, column: &Column<'_>, parts: &[Part], field: &mut Vec<f64>) {
    if let Some(at) = column.compressed() {
        let mut lined = Lined::default();
        lined.set(strengths(parts));
        return explain_of::<V>(model.turned(), at, &lined, field);
    }
    field.clear();
    field.resize(column.x.len(), 0.0);
    add_rows_of::<V>(field, parts.iter().map(|part| (model.row(part.k), part.geometric)));
}

#[inline(always)]
fn means_of<V: Lanes>(
    model: &Model,
    column: &Column<'_>,
    parts: &[Part],
    means: &mut Vec<f64>,
    buffer: &mut Vec<f64>,
) {
    means.clear();
    means.resize(column.x.len(), 0.0);
    if column.compressed().is_none() {
        add_rows_of::<V>(means, parts.iter().map(|part| (model.mean_row(part.k), part.mean())));
        return;
    }
    for part in parts {
        let row = column.gather(model.mean_row(part.k), buffer);
        add_rows_of::<V>(means, core::iter::once((row, part.mean())));
    }
}

/// The parts, each with its strength.
#[inline(always)]
fn strengths(parts: &[Part]) -> impl Iterator<Item = (usize, f64)> {
    parts.iter().map(|part| (part.k, part.geometric))
}

#[inline(always)]
fn ascend_column_of<V: Doubles>(
    model: &Model,
    column: &Column<'_>,
    parts: &mut [Part],
    times: usize,
    explained: &mut Explained,
) {
    let Explained { field, ratio, lined, tiles } = explained;
    if times > 0 {
        expect(model, column, parts, lined);
    }
    let Some(at) = column.compressed() else {
        tiles.resize(model.features.div_ceil(LANES), Tile::ZERO);
        for _ in 0..times {
            claim_of::<V>(model, column, parts, tiles);
        }
        field.clear();
        field.resize(column.x.len(), 0.0);
        add_rows_of::<V>(field, parts.iter().map(|part| (model.row(part.k), part.geometric)));
        return ratios_of::<V>(&column.x, field, ratio);
    };
    let rows = model.turned();
    lined.set(strengths(parts));
    explain_of::<V>(rows, at, lined, field);
    ratios_of::<V>(&column.x, field, ratio);
    for _ in 0..times {
        gather_of::<V>(rows, at, ratio, lined);
        let mut place = 0;
        for part in parts.iter_mut() {
            part.shape = model.prior.c() + part.geometric * lined.next(part.k, &mut place);
        }
        refresh_geometric(parts);
        lined.set(strengths(parts));
        explain_of::<V>(rows, at, lined, field);
        ratios_of::<V>(&column.x, field, ratio);
    }
}

/// The rates of q(h), which do not change while q(W) stays.
#[inline(always)]
fn expect(model: &Model, column: &Column<'_>, parts: &mut [Part], lined: &mut Lined) {
    let d = model.d_in(column);
    if column.lacking().is_none() {
        return parts.iter_mut().for_each(|part| part.rate = d + model.sum_in(column, part.k));
    }
    let components: Vec<usize> = parts.iter().map(|part| part.k).collect();
    let sums = model.sums_in(column, components.iter().copied(), lined);
    parts.iter_mut().zip(sums).for_each(|(part, sum)| part.rate = d + sum);
}

/// The rows of the parts, each with its strength.
#[inline(always)]
fn listed(parts: &[Part]) -> impl Iterator<Item = (usize, f32)> + Clone {
    parts.iter().map(|part| (part.k, part.geometric as f32))
}

/// x over what the parts explain of a column with all features.
#[inline(always)]
fn single_ratios_of<V: Doubles>(model: &Model, column: &Column<'_>, parts: &[Part], ratio: &mut [Tile]) {
    single::ratios_of::<V>(model.single(), listed(parts), &column.tiles, ratio);
}

/// One step of coordinate ascent of q(h) of a column with all features. `ratio` is memory.
#[inline(always)]
fn claim_of<V: Doubles>(model: &Model, column: &Column<'_>, parts: &mut [Part], ratio: &mut [Tile]) {
    single_ratios_of::<V>(model, column, parts, ratio);
    let (rows, wide) = (model.single(), ratio.len());
    for part in parts.iter_mut() {
        let claimed = part.geometric * single::dot_of::<V>(ratio, &rows[part.k * wide..][..wide]);
        part.shape = model.prior.c() + claimed;
    }
    refresh_geometric(parts);
}

#[inline(always)]
fn ascend_dense_of<V: Doubles>(
    model: &Model,
    column: &Column<'_>,
    parts: &mut [Part],
    times: usize,
    ratio: &mut [Tile],
) {
    if times > 0 {
        expect(model, column, parts, &mut Lined::default());
    }
    for _ in 0..times {
        claim_of::<V>(model, column, parts, ratio);
    }
    single_ratios_of::<V>(model, column, parts, ratio);
}

#[inline(always)]
fn explain_dense_of<V: Doubles>(
    model: &Model,
    column: &Column<'_>,
    parts: &mut [Part],
    times: usize,
    field: &mut [Tile],
    ratio: &mut [Tile],
) {
    if times > 0 {
        expect(model, column, parts, &mut Lined::default());
    }
    for _ in 0..times {
        claim_of::<V>(model, column, parts, ratio);
    }
    single::explain_of::<V>(model.single(), listed(parts), &column.tiles, field, ratio);
}
