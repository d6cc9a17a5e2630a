//! The counts as the search reads them: the entries of every column in double precision, where they are if they can.

use super::kernels::add_scaled;
use super::single::tiled;
use crate::counts::{self, Counts};
use crate::kernel::{LANES, Simd, Tile};
use std::borrow::Cow;

/// Columns handled between two sums over columns: what every entry of them needs is kept no longer.
pub(crate) const BLOCK: usize = 1024;

/// Columns that a thread takes at a time.
pub(crate) const BATCH: usize = 32;

/// One column: every feature in order, or the positive entries only; if features are missing, those that were observed or
/// the positive ones.
#[derive(Debug, Clone)]
pub(crate) struct Column<'a> {
    /// Features of the entries; empty when all features are there in order.
    at: Cow<'a, [u32]>,
    /// The entries.
    pub(crate) x: Cow<'a, [f64]>,
    /// The same in single precision when all features are there.
    pub(crate) tiles: Vec<Tile>,
    pub(crate) total: f64,
    /// Features that were not observed.
    pub(crate) missing: &'a [u32],
}

impl<'a> Column<'a> {
    /// All features in order.
    pub(crate) fn dense(x: impl Into<Cow<'a, [f64]>>) -> Self {
        Self::new(Vec::new(), x)
    }

    /// The features that were observed.
    fn partial(values: &[f64], missing: &'a [u32]) -> Self {
        let mut unseen = missing.iter().peekable();
        let seen = |f: &u32| unseen.next_if(|&missing| missing == f).is_none();
        let at: Vec<u32> = (0..values.len() as u32).filter(seen).collect();
        let x: Vec<f64> = at.iter().map(|&f| values[f as usize]).collect();
        Self { missing, ..Self::new(at, x) }
    }

    fn new(at: impl Into<Cow<'a, [u32]>>, x: impl Into<Cow<'a, [f64]>>) -> Self {
        let (at, x) = (at.into(), x.into());
        let tiles = if at.is_empty() { tiled(&x, x.len(), 0.0) } else { Vec::new() };
        Self { at, total: x.iter().sum(), x, tiles, missing: &[] }
    }

    /// Column `t`. Half full it is read with all features, whatever way it is held: so that the storage does not matter.
    fn of(counts: &'a Counts, t: usize) -> Self {
        let (features, missing) = (counts.features(), counts.missing(t));
        let column = counts.column(t);
        let full = 2 * column.positive().count() >= features;
        match column {
            counts::Column::Dense(x) if full && missing.is_empty() => Self::dense(x),
            counts::Column::Dense(x) if full => Self::partial(x, missing),
            counts::Column::Sparse(rows, values) if !full => Self { missing, ..Self::new(rows, values) },
            column if full => {
                let mut x = vec![0.0; features];
                column.positive().for_each(|(f, value)| x[f] = value);
                if missing.is_empty() { Self::dense(x) } else { Self::partial(&x, missing) }
            }
            column => {
                let (at, x): (Vec<u32>, Vec<f64>) =
                    column.positive().map(|(f, value)| (f as u32, value)).unzip();
                Self { missing, ..Self::new(at, x) }
            }
        }
    }

    /// `row` at the entries of this column.
    #[inline(always)]
    pub(crate) fn gather<'b>(&self, row: &'b [f64], buffer: &'b mut Vec<f64>) -> &'b [f64] {
        if self.has_all(row.len()) {
            return row;
        }
        buffer.clear();
        buffer.extend(self.at.iter().map(|&f| row[f as usize]));
        buffer
    }

    /// Adds `scale * values`, which belong to the entries of this column, to `out`, which has all features.
    #[inline(always)]
    pub(crate) fn scatter(&self, simd: Simd, out: &mut [f64], values: &[f64], scale: f64) {
        if self.at.is_empty() {
            add_scaled(simd, out, values, scale);
        } else {
            for (&f, value) in self.at.iter().zip(values) {
                out[f as usize] += scale * value;
            }
        }
    }

    /// The column whose entries are `entry(x, row)`, not negative and 0 where x is; held the same way, and what is missing
    /// stays missing.
    pub(crate) fn mapped(&self, row: &[f64], entry: impl Fn(f64, f64) -> f64) -> Self {
        let mut buffer = Vec::new();
        let row = self.gather(row, &mut buffer);
        let entries = self.x.iter().zip(row).map(|(&x, &row)| entry(x, row));
        if self.at.is_empty() {
            return Self::dense(entries.collect::<Vec<f64>>());
        }
        if !self.missing.is_empty() {
            let x: Vec<f64> = entries.collect();
            return Self { missing: self.missing, ..Self::new(self.at.clone(), x) };
        }
        let (at, x): (Vec<u32>, Vec<f64>) = self.at.iter().zip(entries).filter(|(_, x)| *x > 0.0).unzip();
        Self::new(at, x)
    }

    /// The positive entries with their features.
    pub(crate) fn positive(&self) -> impl Iterator<Item = (usize, f64)> {
        let feature = |i: usize| self.at.get(i).map_or(i, |&f| f as usize);
        self.x.iter().enumerate().filter(|(_, x)| **x > 0.0).map(move |(i, x)| (feature(i), *x))
    }

    /// The values of the missing features, added up.
    #[inline(always)]
    pub(crate) fn unseen(&self, values: &[f64]) -> f64 {
        self.missing.iter().map(|&f| values[f as usize]).sum()
    }

    /// Whether all features are there, in order.
    #[inline(always)]
    pub(crate) fn has_all(&self, features: usize) -> bool {
        self.at.is_empty() && self.x.len() == features
    }

    /// The features of the entries if not all are there: such a column is read best with the components of a feature side
    /// by side.
    #[inline(always)]
    pub(crate) fn compressed(&self) -> Option<&[u32]> {
        (!self.at.is_empty()).then_some(&self.at)
    }

    /// All features of the column, zero where missing.
    pub(crate) fn to_dense(&self, features: usize) -> Vec<f64> {
        let mut out = vec![0.0; features];
        self.scatter(Simd::Plain, &mut out, &self.x, 1.0);
        out
    }
}

/// All columns.
#[derive(Debug, Clone)]
pub(crate) struct View<'a> {
    pub(crate) features: usize,
    pub(crate) columns: Vec<Column<'a>>,
    pub(crate) total: f64,
    /// Whether any entry is missing.
    pub(crate) partial: bool,
}

impl<'a> View<'a> {
    pub(crate) fn new(counts: &'a Counts) -> Self {
        let features = counts.features();
        let columns = (0..counts.observations()).map(|t| Column::of(counts, t)).collect();
        Self::of(features, columns)
    }

    /// The same with every entry times `power`: the likelihood raised to it, but for a constant.
    pub(crate) fn scaled(&self, power: f64) -> Self {
        let scaled = |column: &Column<'a>| {
            let x: Vec<f64> = column.x.iter().map(|x| x * power).collect();
            Column { missing: column.missing, ..Column::new(column.at.clone(), x) }
        };
        Self::of(self.features, self.columns.iter().map(scaled).collect())
    }

    /// How many of so many steps are taken: fewer where every one of them sees many entries. Differences of the evidence are
    /// larger there, so they can be told sooner.
    pub(crate) fn effort(&self, steps: usize) -> usize {
        /// Entries with which all steps are taken, and the least steps.
        const ENTRIES: f64 = 2e5;
        const LEAST: usize = 9;
        let entries: usize = self.columns.iter().map(|column| column.x.len()).sum();
        let share = (ENTRIES / entries.max(1) as f64).min(1.0);
        ((share * steps as f64) as usize).max(LEAST.min(steps))
    }

    /// What a gain of the bound must exceed to matter, in nats: a small part of what a component costs, which has a parameter
    /// for every feature and for every column.
    pub(crate) fn tolerance(&self) -> f64 {
        /// In nats a parameter.
        const LITTLE: f64 = 0.003;
        LITTLE * (self.features + self.columns.len()) as f64
    }

    /// The mean of the positive entries.
    pub(crate) fn mean_positive(&self) -> f64 {
        let positive = |column: &Column| column.x.iter().filter(|x| **x > 0.0).count();
        self.total / self.columns.iter().map(positive).sum::<usize>().max(1) as f64
    }

    pub(crate) fn of(features: usize, columns: Vec<Column<'a>>) -> Self {
        let total = columns.iter().map(|column| column.total).sum();
        let partial = columns.iter().any(|column| !column.missing.is_empty());
        Self { features, columns, total, partial }
    }
}

/// x over what is explained, for the columns at hand.
#[derive(Debug)]
pub(crate) struct Ratios {
    /// Of columns with all features: so many tiles for every column.
    pub(crate) tiles: Vec<Tile>,
    pub(crate) wide: usize,
    /// Of compressed columns.
    pub(crate) lists: Vec<Vec<f64>>,
}

impl Ratios {
    /// Memory for [`BLOCK`] columns.
    pub(crate) fn new(view: &View) -> Self {
        let dense = view.columns.iter().any(|column| column.compressed().is_none());
        Self::of(view.columns.len(), if dense { view.features.div_ceil(LANES) } else { 0 })
    }

    /// The same, of so many columns of so many tiles.
    pub(crate) fn of(columns: usize, wide: usize) -> Self {
        let columns = columns.min(BLOCK);
        Self { tiles: vec![Tile::ZERO; columns * wide], wide, lists: vec![Vec::new(); columns] }
    }

    /// Those of [`BATCH`] columns after the other: the tiles and the list of every column.
    pub(crate) fn batches(&mut self) -> impl Iterator<Item = Vec<(&mut [Tile], &mut Vec<f64>)>> {
        let wide = self.wide;
        let mut tiles = &mut self.tiles[..];
        self.lists.chunks_mut(BATCH).map(move |lists| {
            let own = |list| (tiles.split_off_mut(..wide).expect("some for each"), list);
            lists.iter_mut().map(own).collect()
        })
    }
}

/// W with the components of a feature side by side, from W with the features of a component side by side.
pub(crate) fn by_feature(w: &[f64], features: usize) -> Vec<f64> {
    let components = w.len() / features;
    let mut out = vec![0.0; w.len()];
    for (k, row) in w.chunks(features).enumerate() {
        for (f, &w) in row.iter().enumerate() {
            out[f * components + k] = w;
        }
    }
    out
}
