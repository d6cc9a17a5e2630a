//! The counts as the search reads them: the entries of every column in double precision, where they are if they can.

use super::kernels::{add_scaled, dot, gathered};
use super::model::Model;
use super::single::tiled;
use crate::counts::{self, Counts};
use crate::kernel::{LANES, Simd, Tile};
use crate::random::{Key, Site};
use crate::workers::Workers;
use std::borrow::Cow;
use std::sync::Arc;

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
    /// How large activations are expected to be in it, relative to other columns.
    pub(crate) size: f64,
    /// Features that were not observed.
    pub(crate) missing: &'a [u32],
    /// Where entries weigh less than one, see [`View::weighed`]: what of its weight each lacks. Empty if none does.
    pub(crate) lacks: Vec<f64>,
    /// The entries before they were weighed, if they were.
    pub(crate) counts: Vec<f64>,
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
        let (lacks, counts) = (Vec::new(), Vec::new());
        Self { at, total: x.iter().sum(), size: 1.0, x, tiles, missing: &[], lacks, counts }
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

    /// The features of the entries.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        (0..self.x.len()).map(|i| self.at.get(i).map_or(i, |&f| f as usize))
    }

    /// The positive entries with their features.
    pub(crate) fn positive(&self) -> impl Iterator<Item = (usize, f64)> {
        let feature = |i: usize| self.at.get(i).map_or(i, |&f| f as usize);
        self.x.iter().enumerate().filter(|(_, x)| **x > 0.0).map(move |(i, x)| (feature(i), *x))
    }

    /// The values of the missing features, added up.
    #[inline(always)]
    pub(crate) fn missing_of(&self, values: &[f64]) -> f64 {
        self.missing.iter().map(|&f| values[f as usize]).sum()
    }

    /// The values of all features, added up: of each what of it was not observed.
    #[inline(always)]
    pub(crate) fn unseen(&self, simd: Simd, values: &[f64]) -> f64 {
        let lacking = match &self.lacks[..] {
            [] => 0.0,
            lacks if self.at.is_empty() => dot(simd, lacks, values),
            lacks => gathered(simd, lacks, &self.at, values),
        };
        self.missing_of(values) + lacking
    }

    /// Adds `h` times what was not observed of every feature to `out`.
    pub(crate) fn add_unseen(&self, simd: Simd, h: f64, out: &mut [f64]) {
        self.missing.iter().for_each(|&f| out[f as usize] += h);
        if !self.lacks.is_empty() {
            self.scatter(simd, out, &self.lacks, h);
        }
    }

    /// Multiplies the values of all features by what of each was observed.
    pub(crate) fn expose(&self, values: &mut [f64]) {
        self.missing.iter().for_each(|&f| values[f as usize] = 0.0);
        for (i, lack) in self.lacks.iter().enumerate() {
            values[self.at.get(i).map_or(i, |&f| f as usize)] *= 1.0 - lack;
        }
    }

    /// Whether every entry of it counts in full.
    #[inline(always)]
    pub(crate) fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.lacks.is_empty()
    }

    /// The column with every entry times `factor`.
    fn times(&self, factor: f64) -> Self {
        let x: Vec<f64> = self.x.iter().map(|x| x * factor).collect();
        Self { missing: self.missing, size: self.size, ..Self::new(self.at.clone(), x) }
    }

    /// The column with every entry weighed for counts that scatter about rates of `means`, see [`View::weighed`].
    fn weighed(&self, means: &[f64], alpha: f64) -> Self {
        /// A zero is listed where its rate is at least this share of alpha.
        const LISTED: f64 = 0.02;
        let (at, counts): (Vec<u32>, Vec<f64>) = if self.has_all(means.len()) {
            (Vec::new(), self.x.to_vec())
        } else {
            let mut x = self.to_dense(means.len());
            let mut listed: Vec<bool> = means.iter().map(|mean| *mean >= LISTED * alpha).collect();
            self.missing.iter().for_each(|&f| listed[f as usize] = false);
            self.at.iter().for_each(|&f| listed[f as usize] = true);
            let at: Vec<u32> = (0..means.len() as u32).filter(|&f| listed[f as usize]).collect();
            let counts = at.iter().map(|&f| core::mem::take(&mut x[f as usize])).collect();
            (at, counts)
        };
        let mean = |i: usize| means[at.get(i).map_or(i, |&f| f as usize)];
        let x: Vec<f64> = counts.iter().enumerate().map(|(i, x)| x * alpha / (alpha + mean(i))).collect();
        let lacks = (0..counts.len()).map(|i| mean(i) / (alpha + mean(i))).collect();
        Self { missing: self.missing, size: self.size, lacks, counts, ..Self::new(at, x) }
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
    /// Whether any entry is missing, or weighs less than one.
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
        let scaled = |column: &Column<'a>| column.times(power);
        Self::of(self.features, self.columns.iter().map(scaled).collect())
    }

    /// The same with entries weighed for counts that scatter more than Poisson counts, with variance mean + mean^2 / alpha:
    /// an entry weighs w = alpha / (alpha + mean) by its rate under the model. The Poisson likelihood of w x with the
    /// exposure w has the score and the information of the counts. For Poisson counts it is the view itself.
    pub(crate) fn weighed(&self, model: &Model, workers: &Workers) -> Cow<'_, Self> {
        if model.alpha.is_infinite() {
            return Cow::Borrowed(self);
        }
        let columns = workers.map(model.parts.iter().zip(&self.columns), |(parts, column)| {
            column.weighed(&model.expected(parts), model.alpha)
        });
        Cow::Owned(Self::of(self.features, columns))
    }

    /// The same with a draw from the model, with Poisson noise, for every entry that is missing; it is the view itself if none is.
    pub(crate) fn filled(&self, model: &Model, key: Key, workers: &Workers) -> Cow<'_, Self> {
        if self.columns.iter().all(|column| column.missing.is_empty()) {
            return Cow::Borrowed(self);
        }
        let columns =
            workers.map((0u32..).zip(model.parts.iter().zip(&self.columns)), |(t, (parts, column))| {
                if column.missing.is_empty() {
                    return column.clone();
                }
                let rates = model.expected(parts);
                let mut stream = key.stream(Site::Synthesis, 0, t, 0);
                let drawn = column.missing.iter().map(|&f| (f, stream.poisson(rates[f as usize])));
                let mut entries: Vec<(u32, f64)> =
                    column.positive().map(|(f, x)| (f as u32, x)).chain(drawn).collect();
                entries.retain(|(_, x)| *x > 0.0);
                entries.sort_unstable_by_key(|(f, _)| *f);
                let (at, x): (Vec<u32>, Vec<f64>) = entries.into_iter().unzip();
                Column::new(at, x)
            });
        Cow::Owned(Self::of(self.features, columns))
    }

    /// The same with activations expected to be as large as the total of a column is, relative to the mean of all.
    pub(crate) fn sized(self) -> Self {
        let mean = self.total / self.columns.len().max(1) as f64;
        let sized = |column: Column<'a>| Column { size: (column.total / mean).max(1e-6), ..column };
        Self { columns: self.columns.into_iter().map(sized).collect(), ..self }
    }

    /// The sizes of the columns; empty if all are one.
    pub(crate) fn sizes(&self) -> Arc<[f64]> {
        let sizes = || self.columns.iter().map(|column| column.size);
        if sizes().all(|size| size == 1.0) { Arc::new([]) } else { sizes().collect() }
    }

    /// The same with every column times the weight of its typical entry if the counts scatter, and these weights. For Poisson
    /// counts it is the view itself, and there are none.
    pub(crate) fn balanced(&self, alpha: f64) -> (Cow<'_, Self>, Vec<f64>) {
        if alpha.is_infinite() {
            return (Cow::Borrowed(self), Vec::new());
        }
        let weight = |column: &Column| {
            let squares: f64 = column.x.iter().map(|x| x * x).sum();
            if column.total > 0.0 { 1.0 / (1.0 + squares / column.total / alpha) } else { 1.0 }
        };
        let weights: Vec<f64> = self.columns.iter().map(weight).collect();
        let scaled = |(column, weight): (&Column<'a>, &f64)| column.times(*weight);
        let columns = self.columns.iter().zip(&weights).map(scaled).collect();
        (Cow::Owned(Self::of(self.features, columns)), weights)
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

    /// The mean of the positive entries, each with the weight of counts that scatter about it with alpha.
    pub(crate) fn mean_positive(&self, alpha: f64) -> f64 {
        let positive = || self.columns.iter().flat_map(|column| column.x.iter()).filter(|x| **x > 0.0);
        let weighed: f64 = positive().map(|x| x / (1.0 + x / alpha)).sum();
        weighed / positive().count().max(1) as f64
    }

    pub(crate) fn of(features: usize, columns: Vec<Column<'a>>) -> Self {
        let total = columns.iter().map(|column| column.total).sum();
        let partial = columns.iter().any(|column| !column.is_whole());
        Self { features, columns, total, partial }
    }

    /// The given columns.
    pub(crate) fn only(&self, columns: &[usize]) -> Self {
        Self::of(self.features, columns.iter().map(|&t| self.columns[t].clone()).collect())
    }

    /// Every so manieth column.
    pub(crate) fn sampled(&self, step: usize) -> Self {
        Self::of(self.features, self.columns.iter().step_by(step).cloned().collect())
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
