//! Plain KL-NMF by multiplicative updates (Lee & Seung 2001): what the search starts from, what projections start from, and
//! [`nmf`] for those who have factors of their own.

use super::kernels::{add_scaled, mixed_of, ratios_of, spread, sum_x_ln, weighed_of};
use super::single::{self, add_listed, tiled};
use super::view::{BATCH, BLOCK, Column, Ratios, View, by_feature};
use crate::error::Error;
use crate::kernel::doubles::Doubles;
use crate::kernel::{LANES, Lanes, Simd, Tile, dispatch, flat, flat_mut};
use crate::workers::Workers;

/// Non-negative factors. Every component of W adds up to one, so h is the counts it explains.
#[derive(Debug, Clone)]
pub(crate) struct Factors {
    /// W by components.
    pub(crate) w: Vec<f64>,
    /// H by columns.
    pub(crate) h: Vec<Vec<f64>>,
}

/// How W and H are updated.
pub(crate) struct Updates {
    pub(crate) iterations: usize,
    /// In so many of them, the first, W stays as it is.
    pub(crate) held: usize,
    /// H is raised to this power in every one, the sum of every column kept: above 1 the loud get louder.
    pub(crate) sharpness: f64,
}

/// What the components of W are held to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Norm {
    /// Every component adds up to one. Entries of W stay positive, and an h that is next to nothing becomes 0.
    One {
        /// See [`Updates::sharpness`].
        sharpness: f64,
    },
    /// Nothing: the updates as they are.
    Free,
}

/// A number that W and H are held in from one update to the next.
trait Number: Copy + Send + Sync {
    fn wide(self) -> f64;
    fn rounded(value: f64) -> Self;
}

impl Number for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }

    #[inline(always)]
    fn rounded(value: f64) -> Self {
        value
    }
}

impl Number for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn rounded(value: f64) -> Self {
        value as Self
    }
}

/// Below this share of a column a sharpened h is nothing.
const INAUDIBLE: f64 = 1e-4;

/// Raises h to a power and keeps its sum; what is far below the others goes.
fn sharpen<T: Number>(h: &mut [T], power: f64) {
    let before: f64 = h.iter().map(|h| h.wide()).sum();
    for h in h.iter_mut() {
        *h = T::rounded(if h.wide() < INAUDIBLE * before { 0.0 } else { libm::pow(h.wide(), power) });
    }
    let scale = before / h.iter().map(|h| h.wide()).sum::<f64>().max(f64::MIN_POSITIVE);
    h.iter_mut().for_each(|h| *h = T::rounded(h.wide() * scale));
}

/// Multiplicative updates from W, by components that each add up to one, and from even activations.
pub(crate) fn updated(view: &View, w: Vec<f64>, updates: &Updates, simd: Simd, workers: &Workers) -> Factors {
    let components = w.len() / view.features;
    let evenly = |total: f64| vec![total / components as f64; components];
    let h = view.columns.iter().map(|column| evenly(column.total)).collect();
    updated_from(view, Factors { w, h }, updates, simd, workers)
}

/// Multiplicative updates from the given factors.
pub(crate) fn updated_from(
    view: &View,
    factors: Factors,
    updates: &Updates,
    simd: Simd,
    workers: &Workers,
) -> Factors {
    let Updates { iterations, held, sharpness } = *updates;
    let Factors { mut w, h } = factors;
    let mut h = h.concat();
    update(&Columns::Counts(view), &mut w, &mut h, Norm::One { sharpness }, iterations, held, simd, workers);
    let components = w.len() / view.features;
    Factors { w, h: h.chunks(components.max(1)).map(<[f64]>::to_vec).collect() }
}

/// What the factors lose of the log-likelihood, but for a term of the counts alone.
pub(crate) fn divergence(view: &View, factors: &Factors, workers: &Workers) -> f64 {
    let features = view.features;
    let columns = workers.map(view.columns.iter().zip(&factors.h), |(column, h)| {
        let (mut field, mut buffer) = (vec![0.0; column.x.len()], Vec::new());
        for (row, h) in factors.w.chunks(features).zip(h).filter(|(_, h)| **h > 0.0) {
            add_scaled(workers.simd, &mut field, column.gather(row, &mut buffer), *h);
        }
        let unseen: f64 = factors.w.chunks(features).zip(h).map(|(row, h)| h * column.missing_of(row)).sum();
        h.iter().sum::<f64>() - unseen - sum_x_ln(workers.simd, &column.x, &field)
    });
    columns.iter().sum()
}

/// A column as a mixture of rows, by multiplicative updates from an even one: the counts that every row explains. The rows
/// belong to the entries of the column; each adds up to one over them and over entries of 0, which may be left out.
pub(crate) fn mixture(x: &[f64], mut rows: Vec<f64>, iterations: usize, simd: Simd) -> Vec<f64> {
    let (entries, components) = (x.len(), rows.len() / x.len().max(1));
    // An update depends on the shares of the rows in every entry alone: single precision holds them best near 1.
    for i in 0..entries {
        let of_entry = || (i..components * entries).step_by(entries);
        let largest = of_entry().map(|at| rows[at]).fold(f64::MIN_POSITIVE, f64::max);
        of_entry().for_each(|at| rows[at] /= largest);
    }
    let column = Column::dense(x);
    let layout = Layout::new(rows, entries, true);
    let mut h = vec![column.total / components.max(1) as f64; components];
    let (mut ratio, mut memory) = (vec![Tile::ZERO; column.tiles.len()], Memory::default());
    let (norm, total) = (Norm::One { sharpness: 1.0 }, column.total);
    for _ in 0..iterations {
        update_dense(simd, &mut h, &column.tiles, entries, total, &layout, norm, &mut ratio, &mut memory);
    }
    h
}

/// Plain KL-NMF: so many multiplicative updates of H and then of W (Lee & Seung 2001), none of which raises the KL
/// divergence of X from W H. An entry of W or H that is 0 stays 0, so a mask of H is kept, and updating H is fast where most
/// of it is 0.
///
/// `x` is X (F x T, column after column), `w` W (component after component: feature f of component k at `k * features + f`)
/// and `h` H (column after column: component k in column t at `t * K + k`). All are finite and not negative; X is at most
/// 1e15 or so. The result does not depend on the number of threads or the instructions. Errors if the lengths do not fit.
///
/// ```
/// use bpnmf::{Workers, nmf};
/// // Two features, three columns: (4, 2), (2, 4) and (6, 6) are mixtures of (2, 1) and (1, 2).
/// let x = [4.0, 2.0, 2.0, 4.0, 6.0, 6.0];
/// let (mut w, mut h) = (vec![0.9, 0.1, 0.2, 0.8], vec![1.0; 6]);
/// nmf(&x, 2, &mut w, &mut h, 200, &Workers::serial())?;
/// for (t, column) in x.chunks(2).enumerate() {
///     for (f, x) in column.iter().enumerate() {
///         let expected: f32 = (0..2).map(|k| w[k * 2 + f] * h[t * 2 + k]).sum();
///         assert!((expected - x).abs() < 0.01);
///     }
/// }
/// # Ok::<(), bpnmf::Error>(())
/// ```
pub fn nmf(
    x: &[f32],
    features: usize,
    w: &mut [f32],
    h: &mut [f32],
    iterations: usize,
    workers: &Workers,
) -> Result<(), Error> {
    let (components, observations) = (w.len() / features.max(1), x.len() / features.max(1));
    for (features, observations, found) in [
        (features, observations, x.len()),
        (features, components, w.len()),
        (components, observations, h.len()),
    ] {
        let expected = features * observations;
        if expected != found {
            return Err(Error::WrongLength { features, observations, expected, found });
        }
    }
    if components > 0 {
        let columns = Columns::Single { x, features };
        update(&columns, w, h, Norm::Free, iterations, 0, workers.simd, workers);
    }
    Ok(())
}

/// The columns that are factorised.
#[derive(Clone, Copy)]
enum Columns<'a> {
    Counts(&'a View<'a>),
    /// All features of every column, one after the other.
    Single {
        x: &'a [f32],
        features: usize,
    },
}

impl Columns<'_> {
    fn features(&self) -> usize {
        match self {
            Self::Counts(view) => view.features,
            Self::Single { features, .. } => *features,
        }
    }

    fn ratios(&self) -> Ratios {
        match self {
            Self::Counts(view) => Ratios::new(view),
            Self::Single { x, features } => Ratios::of(x.len() / features, features.div_ceil(LANES)),
        }
    }

    fn compressed(&self, t: usize) -> Option<&[u32]> {
        match self {
            Self::Counts(view) => view.columns[t].compressed(),
            Self::Single { .. } => None,
        }
    }

    fn missing(&self, t: usize) -> &[u32] {
        match self {
            Self::Counts(view) => view.columns[t].missing,
            Self::Single { .. } => &[],
        }
    }

    fn any_compressed(&self) -> bool {
        match self {
            Self::Counts(view) => view.columns.iter().any(|column| column.compressed().is_some()),
            Self::Single { .. } => false,
        }
    }

    /// Updates the h of column `t`. x over what the new ones explain is left in `tiles` or, if the column is compressed, in
    /// `list`.
    fn update<T: Number>(
        &self,
        t: usize,
        h: &mut [T],
        layout: &Layout,
        norm: Norm,
        simd: Simd,
        (tiles, list): (&mut [Tile], &mut Vec<f64>),
        memory: &mut Memory,
    ) {
        match self {
            Self::Counts(view) if view.columns[t].compressed().is_some() => {
                update_compressed(simd, h, &view.columns[t], layout, norm, list, memory);
            }
            Self::Counts(view) => {
                let Column { x, tiles: x_tiles, total, .. } = &view.columns[t];
                update_dense(simd, h, x_tiles, x.len(), *total, layout, norm, tiles, memory);
            }
            Self::Single { x, features } => {
                let mut x_tiles = core::mem::take(&mut memory.x);
                x_tiles.resize(features.div_ceil(LANES), Tile::ZERO);
                flat_mut(&mut x_tiles)[..*features].copy_from_slice(&x[t * features..][..*features]);
                update_dense(simd, h, &x_tiles, *features, 0.0, layout, norm, tiles, memory);
                memory.x = x_tiles;
            }
        }
    }
}

/// W as the updates of H read it.
struct Layout {
    features: usize,
    /// By components.
    w: Vec<f64>,
    /// By features.
    turned: Vec<f64>,
    /// Both in tiles, if there are columns with all features.
    rows: Vec<Tile>,
    turned_rows: Vec<Tile>,
    /// The sum of every component.
    sums: Vec<f64>,
}

impl Layout {
    fn new(w: Vec<f64>, features: usize, dense: bool) -> Self {
        let turned = by_feature(&w, features.max(1));
        let components = w.len() / features.max(1);
        let rows = if dense { tiled(&w, features, 0.0) } else { Vec::new() };
        let turned_rows = if dense { tiled(&turned, components, 0.0) } else { Vec::new() };
        let sums = w.chunks(features.max(1)).map(|row| row.iter().sum()).collect();
        Self { features, w, turned, rows, turned_rows, sums }
    }
}

/// Multiplicative updates of H, by columns, and of W, by components, which is held at first.
fn update<T: Number>(
    columns: &Columns<'_>,
    w: &mut [T],
    h: &mut [T],
    norm: Norm,
    iterations: usize,
    held: usize,
    simd: Simd,
    workers: &Workers,
) {
    let features = columns.features();
    let components = w.len() / features;
    let compressed = columns.any_compressed();
    let mut ratios = columns.ratios();
    let dense = ratios.wide > 0;
    let mut made = None;
    for iteration in 0..iterations {
        let wide = |w: &[T]| w.iter().map(|w| w.wide()).collect();
        let layout: &Layout = made.get_or_insert_with(|| Layout::new(wide(w), features, dense));
        let held = iteration < held;
        let mut sums = Sums::new(features, components, compressed, workers);
        for (block, h) in h.chunks_mut(BLOCK * components).enumerate() {
            let batches = h.chunks_mut(BATCH * components).enumerate().zip(ratios.batches());
            workers.for_each(batches, |((batch, h), ratios), _| {
                let mut memory = Memory::default();
                let first = block * BLOCK + batch * BATCH;
                for ((t, h), ratio) in h.chunks_mut(components).enumerate().zip(ratios) {
                    columns.update(first + t, h, layout, norm, simd, ratio, &mut memory);
                }
            });
            if !held {
                sums.add(columns, block * BLOCK, h, &ratios, simd, workers);
            }
        }
        if held {
            continue;
        }
        let mut totals = vec![0.0; components];
        for h in h.chunks(components) {
            totals.iter_mut().zip(h).for_each(|(total, h)| *total += h.wide());
        }
        workers.for_each(w.chunks_mut(features).zip(totals).enumerate(), |(k, (row, total)), _| {
            update_w(row, sums.of(k), total, norm);
        });
        made = None;
    }
}

/// Multiplies a row of W by the sums of ratio times h; `total` is the sum of h.
fn update_w<T: Number>(row: &mut [T], sums: impl Iterator<Item = f64>, total: f64, norm: Norm) {
    match norm {
        Norm::One { .. } => {
            row.iter_mut().zip(sums).for_each(|(w, sum)| *w = T::rounded((w.wide() * sum).max(1e-12)));
            let total: f64 = row.iter().map(|w| w.wide()).sum();
            row.iter_mut().for_each(|w| *w = T::rounded((w.wide() / total).max(1e-15)));
        }
        Norm::Free if total > 0.0 => {
            row.iter_mut().zip(sums).for_each(|(w, sum)| *w = T::rounded(w.wide() * (sum / total)));
        }
        Norm::Free => {}
    }
}

/// Multiplies the h of a column by their products with the ratios. `total` is that of the column.
fn scale<T: Number>(
    h: &mut [T],
    products: impl Iterator<Item = f64>,
    total: f64,
    layout: &Layout,
    norm: Norm,
) {
    match norm {
        Norm::One { sharpness } => {
            for (h, product) in h.iter_mut().zip(products) {
                let new = h.wide() * product;
                *h = T::rounded(if new < 1e-9 * total { 0.0 } else { new });
            }
            if sharpness > 1.0 {
                sharpen(h, sharpness);
            }
        }
        Norm::Free => {
            for ((h, product), sum) in h.iter_mut().zip(products).zip(&layout.sums) {
                if *sum > 0.0 {
                    *h = T::rounded(h.wide() * (product / sum));
                }
            }
        }
    }
}

/// Scratch of updates.
#[derive(Debug, Default)]
struct Memory {
    x: Vec<Tile>,
    list: Vec<(usize, f32)>,
    tiles: Vec<Tile>,
    h: Vec<f64>,
    products: Vec<f64>,
    field: Vec<f64>,
}

/// A product with one row of W takes so many times as long as its share in the products with all of them.
const ONE_BY_ONE: usize = 4;

dispatch! {
    /// Updates the h of a column with all features or none; `ratio` is x over what is explained with the new ones.
    fn update_dense [T: Number] (h: &mut [T], x: &[Tile], entries: usize, total: f64, layout: &Layout, norm: Norm, ratio: &mut [Tile], memory: &mut Memory) = update_dense_of
}

#[inline(always)]
fn update_dense_of<T: Number, V: Doubles>(
    h: &mut [T],
    x: &[Tile],
    entries: usize,
    total: f64,
    layout: &Layout,
    norm: Norm,
    ratio: &mut [Tile],
    memory: &mut Memory,
) {
    let Memory { list, tiles, products, .. } = memory;
    list.clear();
    list.extend(h.iter().map(|h| h.wide() as f32).enumerate().filter(|(_, h)| *h > 0.0));
    let rows = &layout.rows;
    single::ratios_of::<V>(rows, list.iter().copied(), x, ratio);
    products.clear();
    if norm == Norm::Free && ONE_BY_ONE * list.len() < h.len() {
        products.resize(h.len(), 0.0);
        for &(k, _) in list.iter() {
            products[k] = single::dot_of::<V>(ratio, &rows[k * ratio.len()..][..ratio.len()]);
        }
    } else {
        tiles.clear();
        tiles.resize(h.len().div_ceil(LANES), Tile::ZERO);
        let entries = flat(ratio)[..entries].iter().copied().enumerate();
        single::add_rows_of::<V>(&layout.turned_rows, entries, tiles);
        products.extend(flat(tiles).iter().map(|product| f64::from(*product)));
    }
    scale(h, products.iter().copied(), total, layout, norm);
    list.iter_mut().for_each(|(k, listed)| *listed = h[*k].wide() as f32);
    single::ratios_of::<V>(rows, list.iter().copied(), x, ratio);
}

dispatch! {
    /// Updates the h of a compressed column; `ratio` is x over what is explained with the new ones.
    fn update_compressed [T: Number] (h: &mut [T], column: &Column<'_>, layout: &Layout, norm: Norm, ratio: &mut Vec<f64>, memory: &mut Memory) = update_compressed_of
}

#[inline(always)]
fn update_compressed_of<T: Number, V: Lanes>(
    h: &mut [T],
    column: &Column<'_>,
    layout: &Layout,
    norm: Norm,
    ratio: &mut Vec<f64>,
    memory: &mut Memory,
) {
    let Some(at) = column.compressed() else { return };
    let Memory { h: wide, products, field, .. } = memory;
    let Layout { w, turned, features, .. } = layout;
    let widen = |h: &[T], wide: &mut Vec<f64>| {
        wide.clear();
        wide.extend(h.iter().map(|h| h.wide()));
    };
    widen(h, wide);
    mixed_of::<V>(turned, at, wide, field);
    ratios_of::<V>(&column.x, field, ratio);
    products.resize(h.len(), 0.0);
    weighed_of::<V>(turned, at, ratio, products);
    // Where nothing was observed there is as much as expected.
    let all =
        products.iter().zip(w.chunks_exact(*features)).map(|(product, row)| product + column.missing_of(row));
    scale(h, all, column.total, layout, norm);
    widen(h, wide);
    mixed_of::<V>(turned, at, wide, field);
    ratios_of::<V>(&column.x, field, ratio);
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

    /// Adds the columns of a block, which begins at column `first`.
    fn add<T: Number>(
        &mut self,
        columns: &Columns<'_>,
        first: usize,
        h: &[T],
        ratios: &Ratios,
        simd: Simd,
        workers: &Workers,
    ) {
        let (features, width) = (self.features, self.width);
        let h: Vec<&[T]> = h.chunks(self.dense.len() / features).collect();
        workers.for_each(self.dense.chunks_mut(features).enumerate(), |(k, sums), _| {
            if ratios.wide > 0 {
                let whole = |(t, h): (usize, &&[T])| {
                    let h = h[k].wide() as f32;
                    (h > 0.0 && columns.compressed(first + t).is_none()).then_some((t, h))
                };
                let list: Vec<(usize, f32)> = h.iter().enumerate().filter_map(whole).collect();
                add_listed(simd, &ratios.tiles, ratios.wide, &list, sums);
            }
            for (t, h) in h.iter().enumerate() {
                columns.missing(first + t).iter().for_each(|&f| sums[f as usize] += h[k].wide());
            }
        });
        workers.for_each(self.grouped.chunks_mut(width * features).enumerate(), |(group, sums), _| {
            let mine = group * width..group * width + sums.len() / features;
            let mut wide = Vec::with_capacity(width);
            for ((t, h), ratio) in h.iter().enumerate().zip(&ratios.lists) {
                if let Some(at) = columns.compressed(first + t) {
                    wide.clear();
                    wide.extend(h[mine.clone()].iter().map(|h| h.wide()));
                    spread(simd, sums, at, ratio, &wide);
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
