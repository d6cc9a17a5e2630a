//! Plain KL-NMF by multiplicative updates: what the search starts from.

use super::kernels::{mixed_of, ratios_of, spread, weighed_of};
use super::single::{self, add_listed, tiled};
use super::view::{BATCH, BLOCK, Column, Ratios, View, by_feature};
use crate::kernel::{LANES, Lanes, Simd, Tile, dispatch, flat};
use crate::workers::Workers;

/// Non-negative factors. Every component of W adds up to one, so h is the counts it explains.
#[derive(Debug, Clone)]
pub(super) struct Factors {
    /// W by components.
    pub(super) w: Vec<f64>,
    /// H by columns.
    pub(super) h: Vec<Vec<f64>>,
}

/// How W and H are updated.
pub(super) struct Updates {
    pub(super) iterations: usize,
    /// In so many of them, the first, W stays as it is.
    pub(super) held: usize,
    /// H is raised to this power in every one, the sum of every column kept: above 1 the loud get louder.
    pub(super) sharpness: f64,
}

/// Below this share of a column a sharpened h is nothing.
const INAUDIBLE: f64 = 1e-4;

/// Raises h to a power and keeps its sum; what is far below the others goes.
fn sharpen(h: &mut [f64], power: f64) {
    let before: f64 = h.iter().sum();
    for h in h.iter_mut() {
        *h = if *h < INAUDIBLE * before { 0.0 } else { libm::pow(*h, power) };
    }
    let scale = before / h.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    h.iter_mut().for_each(|h| *h *= scale);
}

/// Multiplicative updates from W, by components that each add up to one.
pub(super) fn updated(
    view: &View,
    mut w: Vec<f64>,
    updates: &Updates,
    simd: Simd,
    workers: &Workers,
) -> Factors {
    let features = view.features;
    let components = w.len() / features;
    let evenly = |total: f64| vec![total / components as f64; components];
    let mut h: Vec<Vec<f64>> = view.columns.iter().map(|column| evenly(column.total)).collect();
    let compressed = view.columns.iter().any(|column| column.compressed().is_some());
    let mut ratios = Ratios::new(view);
    for iteration in 0..updates.iterations {
        let turned = by_feature(&w, features);
        let dense = ratios.wide > 0;
        let rows = if dense { tiled(&w, features, 0.0) } else { Vec::new() };
        let columns_of_w = if dense { tiled(&turned, components, 0.0) } else { Vec::new() };
        let mut sums = Sums::new(features, components, compressed, workers);
        for (h, columns) in h.chunks_mut(BLOCK).zip(view.columns.chunks(BLOCK)) {
            let batches = h.chunks_mut(BATCH).zip(columns.chunks(BATCH)).zip(ratios.batches());
            workers.for_each(batches, |((h, columns), ratios), _| {
                let mut memory = Memory::default();
                for ((h, column), (tiles, list)) in h.iter_mut().zip(columns).zip(ratios) {
                    if column.compressed().is_some() {
                        update_compressed(simd, h, column, &w, &turned, updates, list);
                    } else {
                        update_dense(simd, h, column, &rows, &columns_of_w, updates, tiles, &mut memory);
                    }
                }
            });
            if iteration >= updates.held {
                sums.add(columns, h, &ratios, simd, workers);
            }
        }
        if iteration < updates.held {
            continue;
        }
        workers.for_each(w.chunks_mut(features).enumerate(), |(k, row), _| {
            row.iter_mut().zip(sums.of(k)).for_each(|(w, sum)| *w = (*w * sum).max(1e-12));
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|w| *w = (*w / total).max(1e-15));
        });
    }
    Factors { w, h }
}

/// Multiplies the h of a column by their products with the ratios; what is next to nothing becomes 0.
fn scale(h: &mut [f64], products: impl Iterator<Item = f64>, total: f64, updates: &Updates) {
    for (h, product) in h.iter_mut().zip(products) {
        *h *= product;
        if *h < 1e-9 * total {
            *h = 0.0;
        }
    }
    if updates.sharpness > 1.0 {
        sharpen(h, updates.sharpness);
    }
}

/// Memory of updates.
#[derive(Debug, Default)]
struct Memory {
    list: Vec<(usize, f32)>,
    products: Vec<Tile>,
}

dispatch! {
    /// Updates the h of a column with all features; `ratio` is x over what is explained with the new ones. W is given in
    /// tiles, by components and by features.
    fn update_dense [] (h: &mut [f64], column: &Column<'_>, rows: &[Tile], turned: &[Tile], updates: &Updates, ratio: &mut [Tile], memory: &mut Memory) = update_dense_of
}

#[inline(always)]
fn update_dense_of<V: Lanes>(
    h: &mut [f64],
    column: &Column<'_>,
    rows: &[Tile],
    turned: &[Tile],
    updates: &Updates,
    ratio: &mut [Tile],
    memory: &mut Memory,
) {
    let Memory { list, products } = memory;
    list.clear();
    list.extend(h.iter().map(|h| *h as f32).enumerate());
    single::ratios_of::<V>(rows, list.iter().copied(), &column.tiles, ratio);
    products.clear();
    products.resize(h.len().div_ceil(LANES), Tile::ZERO);
    let entries = flat(ratio)[..column.x.len()].iter().copied().enumerate();
    single::add_rows_of::<V>(turned, entries, products);
    scale(h, flat(products).iter().map(|product| f64::from(*product)), column.total, updates);
    list.iter_mut().zip(&*h).for_each(|(listed, h)| listed.1 = *h as f32);
    single::ratios_of::<V>(rows, list.iter().copied(), &column.tiles, ratio);
}

dispatch! {
    /// Updates the h of a compressed column; `ratio` is x over what is explained with the new ones. `turned` is W by
    /// features.
    fn update_compressed [] (h: &mut [f64], column: &Column<'_>, w: &[f64], turned: &[f64], updates: &Updates, ratio: &mut Vec<f64>) = update_compressed_of
}

#[inline(always)]
fn update_compressed_of<V: Lanes>(
    h: &mut [f64],
    column: &Column<'_>,
    w: &[f64],
    turned: &[f64],
    updates: &Updates,
    ratio: &mut Vec<f64>,
) {
    let Some(at) = column.compressed() else { return };
    let features = w.len() / h.len();
    let (mut field, mut products) = (Vec::new(), vec![0.0; h.len()]);
    mixed_of::<V>(turned, at, h, &mut field);
    ratios_of::<V>(&column.x, &field, ratio);
    weighed_of::<V>(turned, at, ratio, &mut products);
    // Where nothing was observed there is as much as expected.
    let all =
        products.iter().zip(w.chunks_exact(features)).map(|(product, row)| product + column.unseen(row));
    scale(h, all, column.total, updates);
    mixed_of::<V>(turned, at, h, &mut field);
    ratios_of::<V>(&column.x, &field, ratio);
}

/// Sums over columns of ratio times h, for every entry of W. Threads take components, each in the order of the columns.
struct Sums {
    features: usize,
    /// Components that a thread takes.
    width: usize,
    /// Of columns with all features: by components.
    dense: Vec<f64>,
    /// Of compressed columns: a group of components after the other, in each the components of a feature side by side.
    grouped: Vec<f64>,
}

impl Sums {
    fn new(features: usize, components: usize, compressed: bool, workers: &Workers) -> Self {
        let all = features * components;
        Self {
            features,
            width: components.div_ceil(workers.threads()),
            dense: vec![0.0; all],
            grouped: vec![0.0; if compressed { all } else { 0 }],
        }
    }

    fn add(
        &mut self,
        columns: &[Column<'_>],
        h: &[Vec<f64>],
        ratios: &Ratios,
        simd: Simd,
        workers: &Workers,
    ) {
        let (features, width) = (self.features, self.width);
        workers.for_each(self.dense.chunks_mut(features).enumerate(), |(k, sums), _| {
            if ratios.wide > 0 {
                let whole = |(t, h): (usize, &Vec<f64>)| {
                    columns[t].compressed().is_none().then_some((t, h[k] as f32)).filter(|(_, h)| *h > 0.0)
                };
                let list: Vec<(usize, f32)> = h.iter().enumerate().filter_map(whole).collect();
                add_listed(simd, &ratios.tiles, ratios.wide, &list, sums);
            }
            for (column, h) in columns.iter().zip(h) {
                column.missing.iter().for_each(|&f| sums[f as usize] += h[k]);
            }
        });
        workers.for_each(self.grouped.chunks_mut(width * features).enumerate(), |(group, sums), _| {
            let mine = group * width..group * width + sums.len() / features;
            for ((column, h), ratio) in columns.iter().zip(h).zip(&ratios.lists) {
                if let Some(at) = column.compressed() {
                    spread(simd, sums, at, ratio, &h[mine.clone()]);
                }
            }
        });
    }

    /// The sums of a component.
    fn of(&self, k: usize) -> impl Iterator<Item = f64> {
        let first = k / self.width * self.width * self.features;
        let group = &self.grouped[first.min(self.grouped.len())..];
        let width = self.width.min(group.len() / self.features);
        let dense = &self.dense[k * self.features..][..self.features];
        let lane = k % self.width;
        dense
            .iter()
            .enumerate()
            .map(move |(f, sum)| if width > 0 { sum + group[f * width + lane] } else { *sum })
    }
}
