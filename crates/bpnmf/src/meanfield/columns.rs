//! One column under a model, compiled for the instructions of the machine: what its parts explain, and q(h) brought up to
//! date.

use super::kernels::{add_rows_of, dot_of, ratios_of, weighed_of};
use super::model::{Model, Part, geometric};
use super::single;
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
    /// Memory: the rows of the parts at the entries, or the ratio in single precision.
    gathered: Vec<f64>,
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
    pub(crate) fn field [] (model: &Model, column: &Column<'_>, parts: &[Part], field: &mut Vec<f64>, buffer: &mut Vec<f64>) = field_of
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
            weighed_of::<V>(model.turned(), at, ratio, out);
        }
        None => {
            for (row, out) in model.geometric.chunks_exact(model.features).zip(out) {
                *out = dot_of::<V>(ratio, row);
            }
        }
    }
}

#[inline(always)]
fn field_of<V: Lanes>(
    model: &Model,
    column: &Column<'_>,
    parts: &[Part],
    field: &mut Vec<f64>,
    buffer: &mut Vec<f64>,
) {
    field.clear();
    field.resize(column.x.len(), 0.0);
    if column.compressed().is_none() {
        add_rows_of::<V>(field, parts.iter().map(|part| (model.row(part.k), part.geometric)));
        return;
    }
    for part in parts {
        let row = column.gather(model.row(part.k), buffer);
        add_rows_of::<V>(field, core::iter::once((row, part.geometric)));
    }
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

/// The rows of the parts at the entries of a column.
struct Rows<'a> {
    model: &'a Model,
    /// One after the other, if the column is compressed.
    gathered: &'a [f64],
    entries: usize,
}

impl Rows<'_> {
    /// That of the part `i`, which is `k`.
    #[inline(always)]
    fn of(&self, i: usize, k: usize) -> &[f64] {
        if self.gathered.is_empty() {
            self.model.row(k)
        } else {
            &self.gathered[i * self.entries..][..self.entries]
        }
    }

    /// x over what the parts explain.
    #[inline(always)]
    fn ratios<V: Lanes>(&self, x: &[f64], parts: &[Part], field: &mut Vec<f64>, ratio: &mut Vec<f64>) {
        field.clear();
        field.resize(x.len(), 0.0);
        let rows = parts.iter().enumerate().map(|(i, part)| (self.of(i, part.k), part.geometric));
        add_rows_of::<V>(field, rows);
        ratios_of::<V>(x, field, ratio);
    }
}

#[inline(always)]
fn ascend_column_of<V: Doubles>(
    model: &Model,
    column: &Column<'_>,
    parts: &mut [Part],
    times: usize,
    explained: &mut Explained,
) {
    let Explained { field, ratio, gathered, tiles } = explained;
    gathered.clear();
    if times > 0 {
        expect(model, column, parts);
    }
    let Some(at) = column.compressed() else {
        tiles.resize(model.features.div_ceil(LANES), Tile::ZERO);
        for _ in 0..times {
            claim_of::<V>(model, column, parts, tiles);
        }
        return Rows { model, gathered, entries: column.x.len() }.ratios::<V>(&column.x, parts, field, ratio);
    };
    for part in parts.iter() {
        let row = model.row(part.k);
        gathered.extend(at.iter().map(|&f| row[f as usize]));
    }
    let rows = Rows { model, gathered, entries: column.x.len() };
    rows.ratios::<V>(&column.x, parts, field, ratio);
    for _ in 0..times {
        for (i, part) in parts.iter_mut().enumerate() {
            let claimed = part.geometric * dot_of::<V>(ratio, rows.of(i, part.k));
            part.shape = model.prior.c() + claimed;
        }
        refresh_geometric(parts);
        rows.ratios::<V>(&column.x, parts, field, ratio);
    }
}

/// The rates of q(h), which do not change while q(W) stays.
#[inline(always)]
fn expect(model: &Model, column: &Column<'_>, parts: &mut [Part]) {
    parts.iter_mut().for_each(|part| part.rate = model.d_in(column) + model.sum_in(column, part.k));
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
        expect(model, column, parts);
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
        expect(model, column, parts);
    }
    for _ in 0..times {
        claim_of::<V>(model, column, parts, ratio);
    }
    single::explain_of::<V>(model.single(), listed(parts), &column.tiles, field, ratio);
}
