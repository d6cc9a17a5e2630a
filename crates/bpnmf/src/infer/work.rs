//! The column a sweep is working on: its counts, its running rate, and single-precision shadows for the bounds.

use super::activations::ActiveColumn;
use super::dictionary::Dictionary;
use crate::counts::{Column, Counts};
use crate::kernel::exact::add_scaled;
use crate::kernel::{LANES, Lanes, Tile, flat_mut};
use crate::special::ln_1p;

/// After this many flips the running rate is built anew.
const FLIPS_TO_REBUILD: u32 = 16;

/// If switching a component off leaves less than this share of a rate, cancellation has eaten digits: build it anew.
const CANCELLATION: f64 = 1e-3;

/// Rates above this, or below one over it, have no single-precision shadow worth using.
const SHADOW_LIMIT: f32 = 1e18;

/// One column being swept. Entries are all F features, or only the positive ones (`compact`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Work {
    pub(crate) compact: bool,
    /// Features of the entries; empty unless compact.
    pub(crate) rows: Vec<u32>,
    pub(crate) x: Vec<f64>,
    /// The rate at every entry, in double precision: the truth. Padded to whole tiles.
    pub(crate) rate: Vec<f64>,
    pub(crate) total: f64,
    /// 1 / total, or 0.
    pub(crate) inverse_total: f32,
    /// Components that are on.
    pub(crate) active: usize,
    flips: u32,
    /// The components that are on, while the rate is built.
    parts: Vec<(usize, f32)>,
    /// Shadows: counts, 1 where they are positive, 1 / rate there, and count / rate; zero elsewhere.
    pub(crate) x_shadow: Vec<Tile>,
    positive: Vec<Tile>,
    pub(crate) inverse: Vec<Tile>,
    pub(crate) ratio: Vec<Tile>,
    /// Counts of the entries 0, 16, 32 ..., of 1, 17, ..., and so on, and 1 over them (0 for 0).
    pub(crate) block_totals: [f32; LANES],
    pub(crate) block_inverses: [f32; LANES],
    /// Set when a rate is out of range: the shadows mean nothing.
    pub(crate) wild: bool,
    /// Relative error of a sum of products with `ratio`.
    pub(crate) error: f32,
}

impl Work {
    /// Takes up column `t` without shadows.
    #[inline(always)]
    pub(crate) fn load_counts(&mut self, counts: &Counts, t: usize, compact: bool) {
        self.compact = compact;
        self.rows.clear();
        self.x.clear();
        match counts.column(t) {
            Column::Sparse(rows, values) if compact => {
                self.rows.extend_from_slice(rows);
                self.x.extend_from_slice(values);
            }
            Column::Dense(values) if !compact => self.x.extend_from_slice(values),
            Column::Dense(values) => {
                for (f, &value) in values.iter().enumerate() {
                    if value > 0.0 {
                        self.rows.push(f as u32);
                        self.x.push(value);
                    }
                }
            }
            column @ Column::Sparse(..) => {
                self.x.resize(counts.features(), 0.0);
                for (f, value) in column.positive() {
                    self.x[f] = value;
                }
            }
        }
        self.total = counts.column_totals()[t];
        self.flips = 0;
        self.rate.clear();
        self.rate.resize(self.x.len().next_multiple_of(LANES), 0.0);
    }

    /// Takes up column `t`.
    #[inline(always)]
    pub(crate) fn load(&mut self, counts: &Counts, t: usize, compact: bool) {
        self.load_counts(counts, t, compact);
        let tiles = self.x.len().div_ceil(LANES);
        for shadow in [&mut self.x_shadow, &mut self.positive, &mut self.inverse, &mut self.ratio] {
            shadow.clear();
            shadow.resize(tiles, Tile::ZERO);
        }
        self.inverse_total = if self.total > 0.0 { (1.0 / self.total) as f32 } else { 0.0 };
        self.block_totals = [0.0; LANES];
        let shadows = flat_mut(&mut self.x_shadow).iter_mut().zip(flat_mut(&mut self.positive));
        for ((shadow, positive), &x) in shadows.zip(&self.x) {
            *shadow = x as f32;
            *positive = if x > 0.0 { 1.0 } else { 0.0 };
        }
        for tile in &self.x_shadow {
            for i in 0..LANES {
                self.block_totals[i] += tile.0[i];
            }
        }
        self.block_inverses = self.block_totals.map(|total| if total > 0.0 { 1.0 / total } else { 0.0 });
        // Each term carries a few roundings, the sum one for every term.
        self.error = (self.x.len() as f32 + 16.0) * f32::EPSILON;
    }

    /// W_.k at the entries: the dictionary's own row, or gathered into `buffer`.
    #[inline(always)]
    pub(crate) fn component<'a>(
        &self,
        dictionary: &'a Dictionary,
        k: usize,
        buffer: &'a mut Vec<Tile>,
    ) -> &'a [f32] {
        if !self.compact {
            return dictionary.padded_row(k);
        }
        buffer.resize(self.x_shadow.len(), Tile::ZERO);
        let row = dictionary.row(k);
        let gathered = flat_mut(buffer);
        for (out, &f) in gathered.iter_mut().zip(&self.rows) {
            *out = row[f as usize];
        }
        gathered
    }

    /// Builds the rate anew from the components that are on, in their order.
    #[inline(always)]
    pub(crate) fn rebuild<V: Lanes>(&mut self, dictionary: &Dictionary, column: ActiveColumn<'_>) {
        self.flips = 0;
        self.parts.clear();
        self.parts.extend(column.iter());
        self.active = self.parts.len();
        if self.compact {
            self.rate.fill(0.0);
            for &(k, h) in &self.parts {
                let (row, h) = (dictionary.row(k), f64::from(h));
                for (rate, &f) in self.rate.iter_mut().zip(&self.rows) {
                    *rate += f64::from(row[f as usize]) * h;
                }
            }
            return;
        }
        // A few tiles of all components at a time, so that their rates stay in registers.
        let tiles = self.rate.len() / LANES;
        let mut tile = 0;
        while tile < tiles {
            let at = tile * LANES;
            if tiles - tile >= 4 {
                self.rebuild_tiles::<V, { 4 * LANES }>(dictionary, at);
                tile += 4;
            } else {
                self.rebuild_tiles::<V, LANES>(dictionary, at);
                tile += 1;
            }
        }
    }

    /// Builds `WIDTH` rates from entry `at` on.
    #[inline(always)]
    fn rebuild_tiles<V: Lanes, const WIDTH: usize>(&mut self, dictionary: &Dictionary, at: usize) {
        let mut sums = [0.0; WIDTH];
        for &(k, h) in &self.parts {
            add_scaled::<V>(&mut sums, &dictionary.padded_row(k)[at..at + WIDTH], h);
        }
        self.rate[at..at + WIDTH].copy_from_slice(&sums);
    }

    /// Brings the shadows up to date with the rate.
    #[inline(always)]
    pub(crate) fn refresh<V: Lanes>(&mut self) {
        // The ratio's place holds the rate for a moment.
        for (shadow, &rate) in flat_mut(&mut self.ratio).iter_mut().zip(&self.rate) {
            *shadow = rate as f32;
        }
        let (tiny, one) = (V::splat(f32::MIN_POSITIVE), V::splat(1.0));
        let (mut largest_rate, mut largest_inverse) = (V::splat(0.0), V::splat(0.0));
        for i in 0..self.ratio.len() {
            let positive = V::load(&self.positive[i].0);
            let rate = V::load(&self.ratio[i].0).max(tiny);
            let inverse = one.div(rate).mul(positive);
            largest_rate = largest_rate.max(rate.mul(positive));
            largest_inverse = largest_inverse.max(inverse);
            inverse.store(&mut self.inverse[i].0);
            V::load(&self.x_shadow[i].0).mul(inverse).store(&mut self.ratio[i].0);
        }
        let limit = V::splat(SHADOW_LIMIT);
        self.wild = (largest_rate.gt(limit) | largest_inverse.gt(limit)) != 0;
    }

    /// The gain of switching a component on, sum over f of x log(1 + w h / rate), while it is off.
    #[inline(always)]
    pub(crate) fn gain_while_off(&self, w: &[f32], h: f32) -> f64 {
        let h = f64::from(h);
        let mut gain = 0.0;
        for i in 0..self.x.len() {
            if self.x[i] > 0.0 {
                gain += self.x[i] * ln_1p(f64::from(w[i]) * h / self.rate[i]);
            }
        }
        gain
    }

    /// The same gain while it is on: the rate holds its part. `others(i)` is the rate at entry i without it, summed anew.
    #[inline(always)]
    pub(crate) fn gain_while_on(&self, w: &[f32], h: f32, others: impl Fn(usize) -> f64) -> f64 {
        let h = f64::from(h);
        let mut gain = 0.0;
        for i in 0..self.x.len() {
            if self.x[i] > 0.0 {
                let own = f64::from(w[i]) * h;
                let mut without = self.rate[i] - own;
                if without < CANCELLATION * self.rate[i] {
                    without = others(i);
                }
                gain += self.x[i] * ln_1p(own / without);
            }
        }
        gain
    }

    /// Adds a component to the running rate; true if the rate must now be built anew.
    #[inline(always)]
    pub(crate) fn switch_on<V: Lanes>(&mut self, w: &[f32], h: f32) -> bool {
        self.active += 1;
        self.flips += 1;
        add_scaled::<V>(&mut self.rate, w, h);
        self.flips.is_multiple_of(FLIPS_TO_REBUILD)
    }

    /// Takes a component out of the running rate; true if the rate must now be built anew.
    #[inline(always)]
    pub(crate) fn switch_off(&mut self, w: &[f32], h: f32) -> bool {
        self.active -= 1;
        self.flips += 1;
        let h = f64::from(h);
        let mut cancelled = false;
        for ((rate, &x), &w) in self.rate.iter_mut().zip(&self.x).zip(w) {
            let without = *rate - f64::from(w) * h;
            cancelled |= (x > 0.0) & (without < CANCELLATION * *rate);
            *rate = without;
        }
        cancelled || self.flips.is_multiple_of(FLIPS_TO_REBUILD)
    }
}
