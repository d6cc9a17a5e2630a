//! Plain KL-NMF by multiplicative updates: what the search starts from.

use super::kernels::{add_listed, add_rows_of, dot_of, mixed_of, ratios_of, spread, weighed_of};
use super::view::{BLOCK, Column, View, by_feature};
use crate::kernel::{Lanes, Simd, dispatch};
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
    for iteration in 0..updates.iterations {
        let turned = if compressed { by_feature(&w, features) } else { Vec::new() };
        let mut sums = Sums::new(features, components, compressed, workers);
        for (h, columns) in h.chunks_mut(BLOCK).zip(view.columns.chunks(BLOCK)) {
            let ratios = workers.map(h.iter_mut().zip(columns), |(h, column)| {
                update_h(simd, h, column, &w, &turned, updates)
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

dispatch! {
    /// Updates the h of a column, and gives x over what is explained with the new ones. `turned` is W by features, for
    /// columns that are compressed.
    fn update_h [] (h: &mut [f64], column: &Column<'_>, w: &[f64], turned: &[f64], updates: &Updates) -> Vec<f64> = update_h_of
}
/// x over what h explains.
#[inline(always)]
fn ratios_to<V: Lanes>(
    h: &[f64],
    column: &Column<'_>,
    w: &[f64],
    turned: &[f64],
    field: &mut Vec<f64>,
    ratio: &mut Vec<f64>,
) {
    if let Some(at) = column.compressed() {
        mixed_of::<V>(turned, at, h, field);
    } else {
        field.clear();
        field.resize(column.x.len(), 0.0);
        let rows = w.chunks_exact(w.len() / h.len()).zip(h);
        add_rows_of::<V>(field, rows.filter(|(_, h)| **h > 0.0).map(|(row, h)| (row, *h)));
    }
    ratios_of::<V>(&column.x, field, ratio);
}

#[inline(always)]
fn update_h_of<V: Lanes>(
    h: &mut [f64],
    column: &Column<'_>,
    w: &[f64],
    turned: &[f64],
    updates: &Updates,
) -> Vec<f64> {
    let components = h.len();
    let features = w.len() / components;
    let row = |k: usize| &w[k * features..][..features];
    let (mut field, mut ratio) = (Vec::new(), Vec::new());
    ratios_to::<V>(h, column, w, turned, &mut field, &mut ratio);
    let mut products = Vec::new();
    if let Some(at) = column.compressed() {
        products.resize(components, 0.0);
        weighed_of::<V>(turned, at, &ratio, &mut products);
    }
    for (k, h) in h.iter_mut().enumerate().filter(|(_, h)| **h > 0.0) {
        let product = match products.get(k) {
            Some(product) => *product,
            None => dot_of::<V>(&ratio, row(k)),
        };
        // Where nothing was observed there is as much as expected.
        *h *= product + column.unseen(row(k));
        if *h < 1e-9 * column.total {
            *h = 0.0;
        }
    }
    if updates.sharpness > 1.0 {
        sharpen(h, updates.sharpness);
    }
    ratios_to::<V>(h, column, w, turned, &mut field, &mut ratio);
    ratio
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
        ratios: &[Vec<f64>],
        simd: Simd,
        workers: &Workers,
    ) {
        let (features, width) = (self.features, self.width);
        workers.for_each(self.dense.chunks_mut(features).enumerate(), |(k, sums), _| {
            let on = || (0..columns.len()).filter(|&t| h[t][k] > 0.0);
            let whole = on().filter(|&t| columns[t].has_all(features));
            let list: Vec<(usize, f64)> = whole.map(|t| (t, h[t][k])).collect();
            add_listed(simd, sums, &list, ratios);
            for t in on() {
                columns[t].missing.iter().for_each(|&f| sums[f as usize] += h[t][k]);
            }
        });
        workers.for_each(self.grouped.chunks_mut(width * features).enumerate(), |(group, sums), _| {
            let mine = group * width..group * width + sums.len() / features;
            for ((column, h), ratio) in columns.iter().zip(h).zip(ratios) {
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
